"""Figure 1 of Park, Foulds, Chaudhuri and Welling (2016), Private topic modeling, on stand-in corpora.

Held-out perplexity of VIPS against documents seen, and against the mini-batch size, for the three accountings of
the paper (zCDP, advanced, linear composition), for privacy loss distributions (PLD), and without privacy. The paper's
400,000 articles of Wikipedia are not to be had here: 20 Newsgroups and 3,824 news articles stand in for them, and are
so named in the figure. They are 20 and 100 times smaller, so that the same epsilon is that much more noise in the
topics: what carries over is the order of the accountings. Words are the most frequent ones that are no English stop
words.

The order is that of the paper: PLD, zCDP, advanced, linear, where there are many steps. With 100 topics, corpora of
this size and mini-batches, all private models stay above the words alone; rounds of all documents (the default of
VIPSLDA) are what brings them below, see benchmarks/utility.py.

Every curve of the paper's accountings is a claim; the table gives beside it the epsilon that its noise is worth by PLD.
Perplexity is by document completion, not the paper's bound.

    python benchmarks/reproduce/vips_figure1.py --data FOLDER
"""

import argparse
import json
import lzma
import math
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import VIPSLDA
from skdplda.datasets import load_20newsgroups
from skdplda.metrics import perplexity, unigram_perplexity
from skdplda.privacy import epsilon_of

DELTA, ETA, ALPHA = 1e-5, 0.1, 0.1
COLORS = {"none": "#000000", "pld": "#0072b2", "zcdp": "#009e73", "advanced": "#e69f00", "linear": "#d55e00"}
LABELS = {"none": "no privacy", "pld": "PLD", "zcdp": "zCDP", "advanced": "advanced", "linear": "linear"}
STATUS = {"none": "", "pld": " (proven)"}  # the others are claimed
DASHES = {"none": "-.", "pld": "-", "zcdp": "--", "advanced": "--", "linear": "--"}  # dashed: claimed, not proven
NOMINAL = {"20 Newsgroups": 20_000, "news articles": 4_000}  # public estimates


def corpora(data, n_words, n_test):
    """Yield name, training and test counts."""
    with lzma.open(data / "news_articles.jsonl.xz", "rt") as file:
        articles = [json.loads(line)["text"] for line in file]
    texts = {"20 Newsgroups": load_20newsgroups("all", path=data / "20news_bydate_raw.jsonl.xz").data}
    texts["news articles"] = articles
    for name, documents in texts.items():
        X = CountVectorizer(stop_words="english", max_features=n_words).fit_transform(documents)
        X = X[np.random.default_rng(0).permutation(X.shape[0])]
        yield name, X[n_test:], X[:n_test]


def curve(name, train, test, accounting, epsilon, batch, options):
    """Return one row for each measured step of a fit."""
    rate = batch / NOMINAL[name]
    steps = max(1, round(options.passes / rate))
    measured = {max(1, round(steps * share)) for share in np.geomspace(0.05, 1, options.points)}
    if options.points == 1:
        measured = {steps}
    rows = []

    def report(state):
        if state.n_done in measured:
            topics = state.table.T.astype(float) + ETA
            topics /= topics.sum(axis=1, keepdims=True)
            rows.append((round(state.n_done * batch), perplexity(test, topics, doc_topic_prior=ALPHA)))

    model = VIPSLDA(
        options.topics,
        epsilon=epsilon,
        delta=DELTA,
        accounting="pld" if accounting == "none" else accounting,
        learning_method="online",
        batch_size=batch,
        nominal_size=NOMINAL[name],
        max_iter=steps,
        max_norm=options.norm,
        max_doc_length=options.length,
        topic_word_prior=ETA,
        doc_topic_prior=ALPHA,
        callback=report,
        random_state=bytes(32),  # as long as a secret, so that the status is that of a release
        n_jobs=1,
    )
    model.fit(train)
    guarantee = model.privacy_guarantee_
    noise = 0.0 if accounting == "none" else model._plan().multipliers[0]
    true = math.inf if accounting == "none" else epsilon_of(model._plan().event, DELTA)
    common = {
        "corpus": name,
        "accounting": accounting,
        "epsilon": epsilon,
        "true_epsilon": true,
        "status": guarantee.status,
    }
    common |= {"batch": batch, "steps": steps, "noise_multiplier": noise}
    print(common, [round(value) for _, value in rows], flush=True)
    return [{**common, "documents_seen": seen, "perplexity": value} for seen, value in rows]


def worth(lines):
    """Return a line of text: the epsilon of each claimed path by PLD."""
    true = lines[lines.status == "claimed"].groupby("accounting", sort=False).true_epsilon.first()
    return "worth: " + ", ".join(f"{LABELS[name]} {value:.2g}" for name, value in true.items())


def draw(table, path):
    """One row of panels for each corpus: a panel for each epsilon, and one for the mini-batch size."""
    names, budgets = table.corpus.unique(), sorted(set(table.epsilon) - {math.inf})
    main_batch = table[table.epsilon == budgets[0]].batch.iloc[0]
    figure = Figure(figsize=(3.2 * (len(budgets) + 1), 3.5 * len(names)), layout="constrained")
    axes = figure.subplots(len(names), len(budgets) + 1, sharey="row", squeeze=False)
    for row, name in zip(axes, names, strict=True):
        of_corpus = table[table.corpus == name]
        for ax, epsilon in zip(row, budgets, strict=False):
            chosen = of_corpus[(of_corpus.batch == main_batch) & of_corpus.epsilon.isin([epsilon, math.inf])]
            ax.set_title(f"{name} (stand-in), $\\varepsilon$ = {epsilon:g}\n{worth(chosen)}", fontsize=8)
            for accounting, lines in chosen.groupby("accounting", sort=False):
                color, label = COLORS[accounting], LABELS[accounting] + STATUS.get(accounting, " (claimed)")
                ax.plot(
                    lines.documents_seen,
                    lines.perplexity,
                    marker="o",
                    ls=DASHES[accounting],
                    ms=3,
                    color=color,
                    label=label,
                )
            ax.set_xlabel(f"documents seen, {main_batch} a mini-batch")
        ax = row[-1]
        ax.set_title(f"{name} (stand-in), $\\varepsilon$ = {budgets[-1]:g}\nafter one pass", fontsize=8)
        last = of_corpus.sort_values("documents_seen").groupby(["accounting", "epsilon", "batch"]).last().reset_index()
        for accounting, color in COLORS.items():
            lines = last[(last.accounting == accounting) & last.epsilon.isin([budgets[-1], math.inf])]
            style = {"marker": "o", "ms": 3, "ls": DASHES[accounting], "color": color, "label": LABELS[accounting]}
            ax.plot(lines.batch, lines.perplexity, **style)
        ax.set_xlabel("documents a mini-batch")
        for ax in row:
            ax.set(xscale="log", yscale="log")
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
                axis.set_minor_formatter(NullFormatter())
            ax.axhline(of_corpus.words_alone.iloc[0], color="#999999", ls=":", lw=1, label="words alone")
            ax.grid(alpha=0.2)
        row[0].set_ylabel("held-out perplexity")
    axes[0, 0].legend(frameon=False, fontsize=7)
    figure.savefig(path, dpi=130)


def main():
    """Fit, save the table, draw."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--words", type=int, default=2000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 5.0])
    parser.add_argument("--batch", type=int, default=400)
    parser.add_argument("--batches", type=int, nargs="+", default=[50, 200, 400, 1000])
    parser.add_argument("--passes", type=float, default=1.0)
    parser.add_argument("--points", type=int, default=5)
    parser.add_argument("--norm", type=float, default=10.0)
    parser.add_argument("--length", type=int, default=200)
    parser.add_argument("--test", type=int, default=400)
    parser.add_argument("--quick", action="store_true", help="10 topics, 500 words")
    parser.add_argument("--redraw", action="store_true", help="from the saved table")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    if options.redraw:
        draw(pd.read_csv(options.output / "vips_figure1.csv"), options.output / "vips_figure1.png")
        return
    if options.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    if options.quick:
        options.topics, options.words, options.points = 10, 500, 2
    warnings.simplefilter("ignore")
    rows = []
    for name, train, test in corpora(Path(options.data), options.words, options.test):
        begin = len(rows)
        for batch in options.batches:
            rows += curve(name, train, test, "none", math.inf, batch, options)
            for epsilon in options.epsilon if batch == options.batch else options.epsilon[-1:]:
                for accounting in ("pld", "zcdp", "advanced", "linear"):
                    rows += curve(name, train, test, accounting, epsilon, batch, options)
        alone = unigram_perplexity(train, test)
        rows[begin:] = [{**row, "words_alone": alone} for row in rows[begin:]]
    table = pd.DataFrame(rows)
    options.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.output / "vips_figure1.csv", index=False, float_format="%.4f", lineterminator="\n")
    draw(table, options.output / "vips_figure1.png")


if __name__ == "__main__":
    main()
