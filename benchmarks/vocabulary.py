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

    python benchmarks/vocabulary.py --data FOLDER --output benchmarks/results
"""

import argparse
import json
import lzma
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import DPVocabularySelector
from skdplda.datasets import load_20newsgroups
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.plots import VocabularySizeDisplay

DELTA, BOUNDS, SIEVE_BOUND = 1e-5, (5, 20, 50, 100, 200, 400), 200
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
    "item_frequency_published",
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
            [mail["frm"] for mail in mails],
        ),
    }


def select(X, users, seed=None, **parameters):
    """Return the selected columns, none where nothing was, and the CPU seconds of the fit."""
    selector = DPVocabularySelector(delta=DELTA, random_state=seed, **parameters)
    begin = time.process_time()
    try:
        support = selector.fit(X, groups=users).get_support()
    except ValueError as error:
        if "No word was used by enough" not in str(error):
            raise
        support = np.zeros(X.shape[1], dtype=bool)
    return support, time.process_time() - begin


def sizes(corpus, X, users, epsilons, seeds, mechanisms):
    """Return rows of the table of sizes."""
    tokens = np.asarray(X.sum(axis=0)).ravel()
    rows = []
    for epsilon in epsilons:
        for mechanism in mechanisms:
            trials = []
            for bound in (SIEVE_BOUND,) if mechanism == "sieve" else BOUNDS:
                runs = [
                    select(X, users, seed, epsilon=epsilon, mechanism=mechanism, max_words_per_unit=bound)[0]
                    for seed in seeds
                ]
                words = np.array([support.sum() for support in runs])
                share = np.mean([tokens[support].sum() / tokens.sum() for support in runs])
                trials.append((words.mean(), words.min(), words.max(), share, bound))
            mean, least, most, share, bound = max(trials)
            rows.append(
                {
                    "corpus": corpus,
                    "epsilon": epsilon,
                    "delta": DELTA,
                    "mechanism": mechanism,
                    "status": "claimed" if mechanism.endswith("published") else "proven",
                    "bound": bound,
                    "words": mean,
                    "least": least,
                    "most": most,
                    "token share": share,
                    "all words": X.shape[1],
                }
            )
            print(f"{corpus:<16}{epsilon:>5g} {mechanism:<26}{mean:>9.1f}{100 * share:>7.1f} %  bound {bound}")
    return rows


def speed(X, numbers):
    """Return rows of the table of CPU seconds."""
    rows = []
    for mechanism in MECHANISMS:
        seconds = min(select(X, None, epsilon=1.0, mechanism=mechanism)[1] for _ in range(3))
        rows.append({"mechanism": mechanism, "documents": X.shape[0], "entries": X.nnz, "CPU s": seconds})
    rng = np.random.default_rng(0)
    ranks = np.arange(1, 50_001)
    cumulative = np.cumsum(1 / ranks)
    for number in numbers:
        words = np.searchsorted(cumulative, rng.random((number, 50)) * cumulative[-1]).astype(np.int32)
        start = np.arange(0, words.size + 1, 50)
        synthetic = sp.csr_array((np.ones(words.size, np.int32), words.ravel(), start), shape=(number, len(ranks)))
        synthetic.sum_duplicates()
        seconds = min(select(synthetic, None, epsilon=1.0, mechanism="weighted_gaussian")[1] for _ in range(3))
        rows.append({"mechanism": "weighted_gaussian", "documents": number, "entries": synthetic.nnz, "CPU s": seconds})
    return rows


def merged(table, older):
    """Return the older table with the rows of `table` in the place of theirs, or else at the end."""
    cell = ["corpus", "epsilon", "mechanism"]
    rows = {tuple(row[name] for name in cell): row for part in (older, table) for row in part.to_dict("records")}
    return pd.DataFrame(rows.values())


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
    table = table.assign(name=table["mechanism"].str.replace("_published", " (printed: no guarantee)"))
    curves = {name: part["words"].to_numpy() for name, part in table.groupby("name", sort=False)}
    claimed = table.loc[table["status"] != "proven", "name"].unique()
    epsilons = np.sort(table["epsilon"].unique())
    VocabularySizeDisplay(epsilons=epsilons, sizes=curves, claimed=claimed).plot(ax)


def main():
    """Print and save tables and figures."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1, 2, 3, 5, 7, 10])
    parser.add_argument(
        "--mechanisms",
        choices=MECHANISMS,
        nargs="+",
        help="these only; others keep their rows in --output, and no times",
    )
    parser.add_argument("--quick", action="store_true", help="TweetRumors only, one seed, fewer documents")
    parser.add_argument("--output", type=Path, help="folder for vocabulary.csv, vocabulary_speed.csv and the figures")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    warnings.simplefilter("ignore", PrivacyLeakWarning)  # seeds make the numbers reproducible

    found = corpora(Path(arguments.data))
    chosen = {"TweetRumors": found["TweetRumors"]} if arguments.quick else found
    seeds = SEEDS[:1] if arguments.quick else SEEDS
    limits = arguments.epsilon, seeds, arguments.mechanisms or MECHANISMS
    table = pd.DataFrame([row for name, (X, users) in chosen.items() for row in sizes(name, X, users, *limits)])
    if arguments.mechanisms and arguments.output:
        table = merged(table, pd.read_csv(arguments.output / "vocabulary.csv"))
    best = table[(table["status"] == "proven") & (table["mechanism"] != "sieve")]
    best = best.groupby(["corpus", "epsilon"])["words"].max().rename("best of the literature")
    sieve = table[table["mechanism"] == "sieve"].set_index(["corpus", "epsilon"])["words"].rename("sieve")
    print(pd.concat([sieve, best], axis=1).assign(ratio=lambda t: t.iloc[:, 0] / t.iloc[:, 1]).to_string())
    options = {"index": False, "float_format": "%.4f", "lineterminator": "\n"}
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        table.assign(delta=table["delta"].map("{:g}".format)).to_csv(arguments.output / "vocabulary.csv", **options)
        draw(table, arguments.output)
    if arguments.mechanisms:
        return
    times = speed(found["20 Newsgroups"][0], [10_000, 100_000] + [300_000, 1_000_000] * (not arguments.quick))
    times = pd.DataFrame(times)
    print(times.to_string(index=False, float_format="{:.3f}".format))
    if arguments.output:
        times.to_csv(arguments.output / "vocabulary_speed.csv", **options)


if __name__ == "__main__":
    main()
