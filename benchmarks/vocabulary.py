"""How many words each mechanism may name, and how fast.

Three corpora: 20 Newsgroups (bodies of all posts, English stop words left out; unit: a post), TweetRumors (the cleaned
tweets of the paper that proposed the pipeline; unit: a tweet) and Enron (raw mail of six mailboxes, a stand-in for the
whole; unit: the sender). For each epsilon and mechanism: the number of words selected and the share of all tokens that
they cover. Mechanisms of the literature are shown with the best of several bounds on the words of a unit, chosen here
with hindsight, which flatters them. "sieve" is our own mechanism, five rounds of the weighted Gaussian one (Theorem 2
of doc/theory/vocabulary.rst); it has one bound for all, its default. How its rounds divide the budget, and its floors,
were chosen on these three corpora at four of these epsilons, with other seeds.

Times are CPU seconds of the whole fit on counts of 20 Newsgroups, after vectorizing, the best of three; and of the
weighted Gaussian mechanism on synthetic documents, whose number grows.

Rows are written as they come; a second run goes on where the first was interrupted.

    python benchmarks/vocabulary.py --data FOLDER
"""

import argparse
import json
import lzma
import os
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from results import Rows, save
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import DPVocabularySelector
from skdplda.datasets import load_20newsgroups
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.plots import VocabularyDisplay
from skdplda.published import PublishedItemFrequencySelector

DELTA, BOUNDS, SIEVE_BOUND = 1e-5, (5, 20, 50, 100, 200, 400), 200
EPSILONS, KEYS = (0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0), ["corpus", "epsilon", "mechanism"]
DATA = {"20 Newsgroups": "20news", "TweetRumors": "tweets", "Enron by sender": "enron"}
PUBLISHED = "item_frequency_published"  # in tables: `PublishedItemFrequencySelector`
MECHANISMS = (
    "sieve",
    "mad2r",
    "mad",
    "sips",
    "policy_gaussian",
    "weighted_gaussian",
    "item_frequency",
    "policy_laplace",
    "truncated_geometric",
    PUBLISHED,
)
SEEDS = (101, 102, 103)


def corpora(data):
    """Return {name: (counts, users or None)}."""
    posts = load_20newsgroups("all", path=data / "20news_bydate_raw.jsonl.xz").data
    tweets = json.loads((data / "pheme_clean.json").read_text())["text"]
    with lzma.open(data / "enron_ham_raw.jsonl.xz", "rt") as file:
        mails = [json.loads(line) for line in file]
    english = CountVectorizer(stop_words="english")
    return {
        "20 Newsgroups": (english.fit_transform(posts), None),
        "TweetRumors": (CountVectorizer(token_pattern=r"\S+").fit_transform(tweets), None),
        "Enron by sender": (
            english.fit_transform(f"{mail['subject']}\n{mail['body']}" for mail in mails),
            [mail["frm"].strip() or f"unknown {i}" for i, mail in enumerate(mails)],
        ),
    }


def select(X, users, seed=None, **parameters):
    """Return the selected columns, none where nothing was, and the CPU seconds of the fit."""
    kind = DPVocabularySelector
    if parameters["method"] == PUBLISHED:
        kind, parameters = PublishedItemFrequencySelector, {k: v for k, v in parameters.items() if k != "method"}
    selector = kind(delta=DELTA, random_state=seed, **parameters)
    begin = time.process_time()
    try:
        support = selector.fit(X, groups=users).get_support()
    except ValueError as error:
        if "No word was used by enough" not in str(error):
            raise
        support = np.zeros(X.shape[1], dtype=bool)
    return support, time.process_time() - begin


def sizes(X, users, epsilon, mechanism, seeds):
    """Return the values of a row, of the bound with most words."""
    tokens, trials = np.asarray(X.sum(axis=0)).ravel(), []
    for bound in (SIEVE_BOUND,) if mechanism == "sieve" else BOUNDS:
        runs = [
            select(X, users, seed, epsilon=epsilon, method=mechanism, max_words_per_unit=bound)[0] for seed in seeds
        ]
        words = np.array([support.sum() for support in runs])
        mass = np.mean([tokens[support].sum() / tokens.sum() for support in runs])
        trials.append((words.mean(), words.min(), words.max(), mass, bound))
    mean, least, most, mass, bound = max(trials)
    values = {"delta": DELTA, "status": "claimed" if mechanism.endswith("published") else "proven", "bound": bound}
    return values | {"words": mean, "least": least, "most": most, "token_mass": mass, "all words": X.shape[1]}


def speed(X, numbers):
    """Return rows of the table of CPU seconds."""
    rows = []
    for mechanism in MECHANISMS:
        seconds = min(select(X, None, epsilon=1.0, method=mechanism)[1] for _ in range(3))
        rows.append({"mechanism": mechanism, "documents": X.shape[0], "entries": X.nnz, "CPU s": seconds})
    rng = np.random.default_rng(0)
    ranks = np.arange(1, 50_001)
    cumulative = np.cumsum(1 / ranks)
    for number in numbers:
        words = np.searchsorted(cumulative, rng.random((number, 50)) * cumulative[-1]).astype(np.int32)
        start = np.arange(0, words.size + 1, 50)
        synthetic = sp.csr_array((np.ones(words.size, np.int32), words.ravel(), start), shape=(number, len(ranks)))
        synthetic.sum_duplicates()
        seconds = min(select(synthetic, None, epsilon=1.0, method="weighted_gaussian")[1] for _ in range(3))
        rows.append({"method": "weighted_gaussian", "documents": number, "entries": synthetic.nnz, "CPU s": seconds})
    return rows


def draw(table, folder):
    """Draw one figure of the sizes for all corpora, and one for TweetRumors alone, as the paper has it."""
    from matplotlib import pyplot as plt

    proven = table[table["status"] == "proven"]
    names = list(proven["corpus"].unique())
    figure, axes = plt.subplots(1, len(names), figsize=(4.6 * len(names), 4.0), layout="constrained")
    for name, ax in zip(names, np.atleast_1d(axes), strict=True):
        panel(proven[proven["corpus"] == name], ax)
        stand_in = " (six mailboxes, a stand-in)" if name.startswith("Enron") else ""
        ax.set_title(name + stand_in, loc="left", fontsize="medium")
        if name != names[0]:
            ax.get_legend().remove()
    figure.suptitle(
        f"Words selected, delta = {DELTA:g}; the bound on a unit's words chosen with hindsight, but for sieve"
    )
    figure.savefig(folder / "vocabulary.png", dpi=150)
    if "TweetRumors" in names:
        figure, ax = plt.subplots(figsize=(5.6, 4.0), layout="constrained")
        panel(table[(table["corpus"] == "TweetRumors") & table["mechanism"].isin(["sieve", *PAPER])], ax)
        ax.set_title("TweetRumors, of 5,942 words", loc="left", fontsize="medium")
        figure.savefig(folder / "vocabulary_figure9.png", dpi=150)


PAPER = ("item_frequency", "item_frequency_published")  # the selection that the paper used, sound and as printed


def panel(table, ax):
    """Draw the curves of one corpus."""
    names = table["mechanism"].str.replace("_published", " (printed: no guarantee)")
    VocabularyDisplay.from_results(table.assign(mechanism=names), ax=ax)


def cells():
    """Return the cells of the stored table, for `check.py`."""
    names = [(corpus, e, m) for corpus in DATA for e in EPSILONS for m in MECHANISMS]
    return {"vocabulary": [dict(zip(KEYS, name, strict=True)) for name in names]}


def main():
    """Measure what is missing of the tables or is of older code, and draw the figures."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--part", choices=("words", "speed"), help="one table only")
    parser.add_argument("--corpora", choices=tuple(DATA), nargs="+", default=list(DATA))
    parser.add_argument("--quick", action="store_true", help="TweetRumors only, one seed, fewer documents; not stored")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    warnings.simplefilter("ignore", PrivacyLeakWarning)  # seeds make the numbers reproducible
    found = corpora(Path(arguments.data))
    if arguments.quick:
        for cell in cells()["vocabulary"]:
            if cell["corpus"] == "TweetRumors":
                print(cell, sizes(*found["TweetRumors"], cell["epsilon"], cell["mechanism"], SEEDS[:1]), flush=True)
    elif arguments.part != "speed":
        rows = Rows(arguments.output / "vocabulary.csv", KEYS)
        for cell in cells()["vocabulary"]:
            corpus, epsilon, mechanism = cell.values()
            if corpus not in arguments.corpora:
                continue
            work = partial(sizes, *found[corpus], epsilon, mechanism, SEEDS)
            rows.measure(cell, work, [corpora, sizes], [DATA[corpus]])
        proven = rows.table[rows.table["status"] == "proven"]
        best = proven[proven["mechanism"] != "sieve"].groupby(KEYS[:2])["words"].max().rename("best of the literature")
        sieve = proven[proven["mechanism"] == "sieve"].set_index(KEYS[:2])["words"].rename("sieve")
        print(pd.concat([sieve, best], axis=1).assign(ratio=lambda t: t.iloc[:, 0] / t.iloc[:, 1]).to_string())
        draw(rows.table, arguments.output)
    if arguments.part != "words":
        numbers = [10_000, 100_000] + [300_000, 1_000_000] * (not arguments.quick)
        times = pd.DataFrame(speed(found["20 Newsgroups"][0], numbers))
        print(times.to_string(index=False, float_format="{:.3f}".format))
        if not arguments.quick:
            save(times, arguments.output / "vocabulary_speed.csv", [corpora, speed], ["20news"])


if __name__ == "__main__":
    main()
