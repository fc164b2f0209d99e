"""Reproduce Figures 6, 8, 9 and 10 of Zhao et al. (2021): LP-LDA and OLP-LDA.

Zhao, Ren, Yang, Han, Zhao and Yang, "Latent Dirichlet Allocation Model Training With Differential Privacy", IEEE TIFS
16, 2021. 1,000 words, K=50, beta=0.01; mini-batches of 160, lambda=0.5, omega=0.4; prior corpora of 500, 200 and 1,000
documents. KOS and NIPS of the paper's corpora. Its Enron, 10,000 documents, is not to be had: all 16,921 raw mails of
six mailboxes stand in for it, as in Figures 4 and 5 (`hdp_figures.py`). A document is the set of its words. The
conference version of Figure 6 (IJCAI 2019) has alpha=0.1, the journal alpha=1; Figure 6 is there for both, all else for
the first.

CDP-LDA ends with the topics of its last sweep; LP-LDA as this package has it draws with a table that is frozen within a
sweep, and takes a mean of many sweeps. "LP-LDA, last sample" and "CGS, last sample" have CDP-LDA's sampler and its last
sweep. All have three seeds. Documents of a stream come once: each user sends
one report. Fits and batches have the paper's 300 sweeps.

Perplexity is measured twice: topic proportions from the test document itself ("fold-in", the papers' way), and from one
half of it for the other half ("completion").

The epsilon of the papers is that of one bit, and so is the axis here. A document without a bound on its words has 1,000
times as much; the table says both. CDP-LDA's epsilon is a published claim that does not hold: its true value is inf.

What agrees with the papers, and what does not: doc/reproductions.rst. On mail each fourth batch of Figure 8 has a row,
and the picture's average is of these.

    python benchmarks/reproduce/local_figures.py
    python benchmarks/reproduce/local_figures.py --only figure=6 corpus=KOS
"""

import math
import sys
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from corpora import path_of
from hdp_figures import corpus
from results import Table, run

from skdplda import LocalPrivateLDA
from skdplda.datasets import load_uci_bow
from skdplda.local import LocalRandomizer, bit_epsilon_of_coin
from skdplda.metrics import perplexity, unigram_perplexity
from skdplda.models._local_estimators import moment_estimate, reconstruct
from skdplda.published._gibbs_sampler import fit_published

N_WORDS, BATCH = 1000, 160
MAILS = "Enron (six mailboxes)"
N_TRAIN = {"KOS": 3000, "NIPS": 1350, MAILS: 15_200}
N_PRIOR = {"KOS": 500, "NIPS": 200, MAILS: 1000}
PRIOR_SIZES = {"KOS": (100, 250, 500, 1000), "NIPS": (50, 100, 200, 400), MAILS: (100, 250, 500, 1000)}
BATCH_SIZES = (40, 80, 160, 320)
EVERY = {"KOS": 1, "NIPS": 1, MAILS: 4}  # so many batches, Figure 8 has a row
SWEEPS = 300
COINS = (0.5, 0.2, 0.1, 0.05, 0.01, 0.001)  # f, from epsilon 1.10 to 7.60
STREAM_EPSILONS = (1.0, 3.0, 5.0, math.inf)
DATA = {"KOS": "kos", "NIPS": "nips", MAILS: "enron"}
EXACT = ("non-private", "CGS, last sample")
METHODS = ("LP-LDA (moment)", "likelihood", "CDP-LDA (claimed)", "LP-LDA, last sample", *EXACT)
COLORS = {
    "LP-LDA (moment)": "#D55E00",
    "likelihood": "#0072B2",
    "CDP-LDA (claimed)": "#999999",
    "LP-LDA, last sample": "#CC79A7",
    "OLP-LDA": "#D55E00",
    "OLP-LDA, no prior": "#E69F00",
    "O-LDA": "#009E73",
}


@dataclass(frozen=True)
class Settings:
    """Of a fit (`batch_size` 0), or a stream in batches after a prior corpus; `every` so many batches have a row."""

    figure: int
    corpus: str
    method: str
    alpha: float
    bit_epsilon: float
    prior: int
    batch_size: int
    seed: int
    sweeps: int = SWEEPS
    every: int = 0
    topics: int = 50
    beta: float = 0.01
    correlation: float = 0.5
    prior_weight: float = 0.4
    n_words: int = N_WORDS


def cells():
    """Return what there is to measure."""
    found = []
    for name in N_TRAIN:
        for alpha in (0.1, 1.0):
            for method in METHODS:
                for epsilon in [math.inf] if method in EXACT else [round(bit_epsilon_of_coin(f), 4) for f in COINS]:
                    found += [Settings(6, name, method, alpha, epsilon, 0, 0, seed) for seed in range(3)]
        for seed in range(3):
            found += streams(name, seed)
    return found


def streams(name, seed):
    """Return those of Figures 8 to 10."""
    prior = N_PRIOR[name]
    three = ("OLP-LDA", 3.0), ("likelihood", 3.0), ("O-LDA", math.inf)
    found = []
    for epsilon in STREAM_EPSILONS:
        for method in ("O-LDA",) if math.isinf(epsilon) else ("OLP-LDA", "likelihood"):
            found.append(Settings(8, name, method, 0.1, epsilon, prior, BATCH, seed, every=EVERY[name]))
    found += [Settings(9, name, m, 0.1, e, size, BATCH, seed) for size in PRIOR_SIZES[name] for m, e in three]
    for size in BATCH_SIZES:
        found += [Settings(10, name, m, 0.1, e, prior, size, seed) for m, e in three]
        found.append(Settings(10, name, "OLP-LDA, no prior", 0.1, 3.0, 0, size, seed))
    return found


@cache
def presence(name, n_words):
    """Return the presence bits of a corpus: the training and the test documents, words of most documents only."""
    if name == MAILS:
        return tuple(map(sp.csr_matrix, corpus(name, n_words)))  # all of them, as for Figures 4 and 5
    X = load_uci_bow(path_of(DATA[name])).data
    most = np.argsort(-np.diff(X.tocsc().indptr), kind="stable")[:n_words]
    X = (X[:, most] > 0).astype(np.int32).tocsr()
    return X[: N_TRAIN[name]], X[N_TRAIN[name] :]


def measures(s, model, batch=0, true=None):
    """Return the values of a row."""
    test = presence(s.corpus, s.n_words)[1]
    return {
        "document_epsilon": min(s.bit_epsilon * s.n_words, math.inf) if true is None else true,
        "batch": batch,
        "completion": round(model.perplexity(test), 2),
        "fold_in": round(model.perplexity(test, method="fold-in"), 2),
    }


def local(s, reconstruction):
    """Return the estimator with the paper's settings."""
    return LocalPrivateLDA(
        s.topics,
        randomizer=LocalRandomizer(s.bit_epsilon),
        reconstruction=reconstruction,
        doc_topic_prior=s.alpha,
        topic_word_prior=s.beta,
        correlation=s.correlation,
        prior_weight=s.prior_weight,
        max_iter=s.sweeps,
        random_state=s.seed,
    )


def sampled(s, X, mechanism="hybrid", epsilon=math.inf):
    """Return a model whose topics are the last sweep's of the papers' sampler, without noise unless told."""
    found = fit_published(
        sp.csr_array(X), s.topics, form=mechanism, epsilon=epsilon, doc_topic_prior=s.alpha,
        topic_word_prior=s.beta, max_iter=s.sweeps, seed=s.seed,
    )  # fmt: skip
    topics = np.maximum(found.word_topic, 0) + s.beta
    return SimpleNamespace(
        perplexity=partial(perplexity, topic_word=topics / topics.sum(axis=1, keepdims=True), doc_topic_prior=s.alpha)
    )


def last_sample(s, train):
    """Return the model of CDP-LDA's sampler: of the documents, or of what LP-LDA makes of their reports."""
    if math.isinf(s.bit_epsilon):
        return sampled(s, train)
    randomizer = LocalRandomizer(s.bit_epsilon, random_state=s.seed)
    reports, channel = sp.csr_array(randomizer.fit_transform(train)), randomizer.channel(s.n_words)
    present = moment_estimate(np.asarray(reports.sum(axis=0)).ravel().astype(float), len(train.indptr) - 1, channel)
    return sampled(s, reconstruct(reports, present, np.random.default_rng(s.seed)))


def measure(s):
    """Return the values of a row, or those of a stream."""
    train, _ = presence(s.corpus, s.n_words)
    if s.batch_size:
        return stream(s, train)
    if s.method == "CDP-LDA (claimed)":  # the true counts with noise, once
        return measures(s, sampled(s, train, "laplace-first", s.bit_epsilon), true=math.inf)
    if s.method.endswith("last sample"):
        return measures(s, last_sample(s, train))
    return measures(s, local(s, "moment" if s.method.endswith("(moment)") else "likelihood").fit(train))


def stream(s, train):
    """One stream: a prior corpus, then each other document once; a row every so many batches, or after the last."""
    order = np.random.default_rng(s.seed).permutation(train.shape[0])
    starts = list(range(s.prior, train.shape[0] - s.batch_size + 1, s.batch_size))
    wanted = range(len(starts), 0, -s.every) if s.every else [len(starts)]
    model = local(s, "likelihood" if s.method == "likelihood" else "bayes")
    if s.prior:
        model.fit_prior(train[order[: s.prior]])
    found = []
    for batch, start in enumerate(starts, start=1):
        model.partial_fit(train[order[start : start + s.batch_size]])
        if batch in wanted:
            found.append(measures(s, model, batch))
    return found


def line(ax, frame, x, y, method, label=None, **style):
    """Draw the mean over seeds, and a band from the least to the largest."""
    grouped = frame.groupby(x)[y]
    mean = grouped.mean()
    style = {"color": COLORS.get(method, "black"), "linewidth": 2, **style}
    ax.plot(mean.index, mean, label=label or method, **style)
    ax.fill_between(mean.index, grouped.min(), grouped.max(), color=style["color"], alpha=0.15, linewidth=0)


def finish(fig, axes, path, note):
    """Add what all pictures share, and save."""
    for ax in np.ravel(axes):
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    fig.supxlabel(note, fontsize=8.5, color="0.35")
    fig.savefig(path, dpi=140)


BIT = "ε is the loss of one bit; of a whole document of any length, 1,000 times as much.  "
ENRON = "All raw mails of 6 mailboxes stand in for the paper's Enron.  Mean and range of the seeds."


def draw(tables, output):
    """Draw the pictures of the figures that the table has."""
    table = tables["local_figures"]
    corpora = [name for name in N_TRAIN if name in set(table.corpus)]
    unigram = {
        name: {
            measure: unigram_perplexity(*presence(name, N_WORDS), method=method)
            for measure, method in (("completion", "document-completion"), ("fold_in", "fold-in"))
        }
        for name in corpora
    }
    for alpha, suffix in ((0.1, ""), (1.0, "_alpha1")):
        part = table[(table.figure == 6) & (table.alpha == alpha)]
        named = [name for name in corpora if name in set(part.corpus)]
        if not named:
            continue
        fig = Figure(figsize=(4 * len(named), 6.6), layout="constrained")
        axes = fig.subplots(2, len(named), squeeze=False)
        for i, (measure, label) in enumerate((("fold_in", "fold-in (the papers')"), ("completion", "completion"))):
            for ax, name in zip(axes[i], named, strict=True):
                here = part[part.corpus == name]
                for method in ("CDP-LDA (claimed)", "LP-LDA, last sample", "LP-LDA (moment)", "likelihood"):
                    dashes = "--" if method.startswith("CDP") else "-"
                    mine = here[here.method == method]
                    if len(mine):
                        line(ax, mine, "bit_epsilon", measure, method, linestyle=dashes, marker="o", markersize=4)
                for method, dashes in (("non-private", ":"), ("CGS, last sample", "--")):
                    exact = here[here.method == method][measure].mean()
                    ax.axhline(exact, color="black", linestyle=dashes, linewidth=0.9, label=method)
                ax.axhline(unigram[name][measure], color="black", linestyle="-.", linewidth=0.8, label="unigram")
                ax.set(xlabel="ε of one bit", ylabel=f"perplexity, {label}", title=name if i == 0 else None)
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
        note = BIT + "\nCDP-LDA: Laplace noise once, a published claim that does not hold.  " * (alpha < 1)
        finish(fig, axes, output / f"local_figure6{suffix}.png", f"{note}\nα = {alpha:g}.  {ENRON}")
    for figure, x, title in (
        (8, "batch", "mini-batches"),
        (9, "prior", "documents of the prior corpus"),
        (10, "batch_size", "documents of a mini-batch"),
    ):
        part = table[table.figure == figure]
        if not len(part):
            continue
        fig = Figure(figsize=(4 * len(corpora), 3.8), layout="constrained")
        axes = fig.subplots(1, len(corpora), squeeze=False)
        for ax, name in zip(axes[0], corpora, strict=True):
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            here = part[part.corpus == name].copy()
            if figure == 8:
                runs = here.sort_values("batch").groupby(["method", "bit_epsilon", "seed"])["fold_in"]
                here["fold_in"] = runs.transform(lambda s: s.expanding().mean())
            for (method, epsilon), mine in here.groupby(["method", "bit_epsilon"]):
                style, label = {}, method
                if figure == 8 and math.isfinite(epsilon):
                    style = {"linestyle": {1.0: ":", 3.0: "--", 5.0: "-"}[epsilon]}
                    label = f"{method}, ε={epsilon:g}"
                elif figure != 8:
                    style = {"marker": "o", "markersize": 4}
                line(ax, mine, x, "fold_in", method, label, **style)
            if figure == 9:
                exact = table[(table.figure == 6) & (table.corpus == name) & (table.alpha == 0.1)]
                exact = exact[exact.method == "non-private"].fold_in
                if len(exact):
                    ax.axhline(exact.mean(), color="black", linestyle="--", label="non-private, one batch")
            ylabel = "average perplexity so far" if figure == 8 else "perplexity after the last batch"
            ax.set(xlabel=title, ylabel=ylabel + ", fold-in", title=name)
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
        some = f"Average of the batches so far; on mail, of each {EVERY[MAILS]}th.\n"
        note = BIT + (some if figure == 8 else "OLP-LDA and likelihood at ε = 3.\n") + ENRON
        finish(fig, axes, output / f"local_figure{figure}.png", note)


TABLES = [
    Table("local_figures", Settings, cells, measure, lambda s: [DATA[s.corpus]]),
]
if __name__ == "__main__":
    run(TABLES, __doc__, draw)
