"""Reproduce Figures 2 and 3 and Table 1 of Shi et al. (2019), with the epsilon of a sound accounting beside each point.

Yexuan Shi, Zhiyang Su, Di Jiang, Zimu Zhou, Wenbin Zhang and Yongxin Tong, "Semantic Consistent Topic Discovery with
Differential Privacy". The paper trains on 500 articles of the New York Times and Google's word2vec vectors; neither
is to be had here. Stand-ins: 500 news articles of 2017 and GloVe vectors of 100 dimensions, from the folder that
SKDPLDA_DATA names; similarity is cosines, as published. As in the paper, stop words go, and three words in a row of
one sentence are a unit; perplexity is eq. (16), on the training documents, with the topic proportions that EM has at
the time.

Fresh noise in each iteration is shown in both readings of the paper: on all counts, as its formulas say, for which
epsilon is counted (one word present or absent, delta = 1e-5), and on the counts that are not 0, which gives its
curves and has no epsilon. LDA is collapsed Gibbs sampling with the paper's priors, folded in.

What agrees and what does not: doc/reproductions.rst. Eq. (16) judges words one by one, and three words that share a
topic fit them less well than words that have one each; nothing in the paper says how its LDA was folded in.

    python benchmarks/reproduce/pctd_figures.py
"""

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter
from sklearn.feature_extraction.text import CountVectorizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from corpora import json_rows, path_of
from results import Table, run

from skdplda import PrivateCGSLDA
from skdplda.exact._loop import answer_exactly
from skdplda.metrics import coherence, log_likelihood, perplexity
from skdplda.models._pctd_tables import LastTable
from skdplda.privacy import Randomness, epsilon_of, gaussian_event
from skdplda.published._gibbs_sampler import fit_published
from skdplda.published._pctd_noise import NoisySegmentEStep
from skdplda.rounds import NoisePlan, Spending
from skdplda.rounds._loop import rounds_of
from skdplda.semantics import SemanticUnitVectorizer, word_similarity

DELTA, NO_PRIOR = 1e-5, 1e-30
SIGMAS = {0.15: "#0072B2", 0.2: "#009E73", 0.25: "#D55E00", 0.3: "#CC79A7"}  # Okabe and Ito
SUPPORTS = {"observed": "noise on counts that are not 0", "all": "noise on all counts"}
PCTDS = {  # sigma, support of the noise, whether words are similar
    "PCTD without noise": (0.0, "all", True),
    "PCTD, published noise where counts are not 0": (0.25, "observed", True),
    "PCTD, published noise on all counts": (0.25, "all", True),
    "PCTD without noise or similarity": (0.0, "all", False),
}
MODELS = {"LDA": None, **PCTDS}


@dataclass(frozen=True)
class Convergence:
    """Of the rows of one run of Figure 2; a support of "LDA" is that model, whose iterations are sweeps."""

    support: str
    sigma: float
    seed: int
    topics: int = 30
    iterations: int = 50
    tau: float = 0.3
    n_documents: int = 500


@dataclass(frozen=True)
class Perplexity:
    """Of a row of Figure 3; `sweeps` are of LDA."""

    model: str
    topics: int
    seed: int
    iterations: int = 35
    sweeps: int = 200
    tau: float = 0.3
    n_documents: int = 500


@dataclass(frozen=True)
class Words:
    """Of the rows of Table 1."""

    seed: int = 0
    topics: int = 30
    iterations: int = 35
    sweeps: int = 200
    tau: float = 0.3
    n_documents: int = 500


def convergence_cells():
    """Return what there is to measure."""
    noises = [(support, sigma) for support in SUPPORTS for sigma in SIGMAS] + [("none", 0.0), ("LDA", 0.0)]
    return [Convergence(*noise, seed) for noise in noises for seed in range(3)]


def perplexity_cells():
    """Return what there is to measure."""
    return [Perplexity(m, k, seed) for k in (10, 20, 30, 40, 50) for seed in range(3) for m in MODELS]


@cache
def corpus(n_documents):
    """Return the units of the articles, the words, their similarity, and reference texts for coherence."""
    texts = [f"{article['title']}.\n\n{article['text']}" for article in json_rows("news")]
    chosen = np.random.default_rng(0).permutation(len(texts))
    train = [texts[i] for i in chosen[:n_documents]]
    pattern = r"(?u)\b[^\W\d_]{2,}\b"
    words = CountVectorizer(stop_words="english", token_pattern=pattern).fit(train).get_feature_names_out()
    vectorizer = SemanticUnitVectorizer(3, vocabulary=words, stop_words="english", token_pattern=pattern)
    glove = np.load(path_of("glove"))
    vectors = dict(zip(str(glove["words"]).split("\n"), glove["vectors"], strict=True))
    reference = [vectorizer.build_analyzer()(texts[i]) for i in chosen[n_documents:]]
    return vectorizer.transform(train), words, word_similarity(words, vectors, normalize=False), reference


def pctd(s, sigma, support, similar=True):
    """Run Algorithm 1 and return the perplexity after each iteration, and the topics."""
    X, _, similarity, _ = corpus(s.n_documents)
    n_topics, seed = s.topics, s.seed
    step = NoisySegmentEStep(
        X,
        n_topics=n_topics,
        bounded=False,
        alpha=np.full(n_topics, NO_PRIOR),
        beta=NO_PRIOR,
        n_updates=1,
        n_threads=2,
        sigma=sigma,
        support=support,
        randomness=Randomness(seed),
    )
    counts, history, topics = X.to_counts(), [], []

    def follow(report):
        phi = report.table.T + NO_PRIOR
        topics[:] = [phi / phi.sum(axis=1, keepdims=True)]
        total = log_likelihood(counts, topics[0], step.arrays()["theta"]).sum()
        history.append(np.exp(-total / counts.sum()))

    tables = LastTable((X.shape[1], n_topics), Randomness(seed).key, similarity if similar else None, s.tau)
    plan = NoisePlan("gaussian", 1.0, (0.0,) * s.iterations, None)
    asks = rounds_of(tables, s.iterations)
    answer_exactly(asks, step, Spending(plan), Randomness(seed), callback=follow)
    return history, topics[0]


def lda_by_sweeps(s):
    """Return the perplexity of LDA after each sweep: topics of one sample, and documents folded in."""
    counts, tables, alpha = corpus(s.n_documents)[0].to_counts(), [], s.topics / 50
    fit_published(
        counts, s.topics, form="hybrid", doc_topic_prior=alpha, topic_word_prior=0.01,
        max_iter=s.iterations + 1, seed=s.seed, observer=lambda table, _: tables.append(table + 0.01),
    )  # fmt: skip
    topics = ((table / table.sum(axis=0)).T for table in tables[1:])
    return [perplexity(counts, topic_word=phi, doc_topic_prior=alpha, method="fold-in") for phi in topics]


def lda(s):
    """Return the perplexity and the topics of LDA."""
    counts = corpus(s.n_documents)[0].to_counts()
    model = PrivateCGSLDA(
        s.topics, epsilon=np.inf, max_iter=s.sweeps, doc_topic_prior=s.topics / 50, topic_word_prior=0.01,
        random_state=s.seed, n_jobs=2,
    ).fit(counts)  # fmt: skip
    total = log_likelihood(counts, model.topic_word_, model.transform(counts)).sum()
    return np.exp(-total / counts.sum()), model.topic_word_


def price(sigma, iterations, support):
    """Return the epsilon of so many iterations."""
    if support in ("observed", "LDA") or sigma == 0:
        return np.inf
    return epsilon_of(gaussian_event(sigma, steps=iterations), DELTA)


def converge(s):
    """Return one row for each iteration."""
    support = "all" if s.support == "none" else s.support
    history = lda_by_sweeps(s) if support == "LDA" else pctd(s, s.sigma, support)[0]
    prices = (price(s.sigma, t, s.support) for t in range(1, len(history) + 1))
    found = enumerate(zip(history, prices, strict=True), 1)
    return [{"iteration": t, "perplexity": value, "epsilon": epsilon} for t, (value, epsilon) in found]


def judge(s):
    """Return one row, of LDA or PCTD."""
    if s.model == "LDA":
        return {"perplexity": lda(s)[0], "epsilon": np.inf}
    sigma, support, similar = MODELS[s.model]
    return {"perplexity": pctd(s, sigma, support, similar)[0][-1], "epsilon": price(sigma, s.iterations, support)}


def table_1(s):
    """Return the ten most probable words, with probabilities, of three topics of each model.

    The topics are those in which the first words of three of LDA are most probable: three different words and topics.
    """
    _, words, _, reference = corpus(s.n_documents)
    models = {"LDA": lda(s)[1]}
    for name, (sigma, support, similar) in PCTDS.items():
        models[name] = pctd(s, sigma, support, similar)[1]
    base = models["LDA"]
    words, rows = np.asarray(words), []
    heads = list(dict.fromkeys(base[k].argmax() for k in np.argsort(-base.max(axis=1), kind="stable")))[:3]
    for name, phi in models.items():
        judged = coherence(phi, reference, words, measure="c_npmi", n_words=10)
        free = np.ones(len(phi), dtype=bool)
        for number, head in enumerate(heads, 1):
            k = np.where(free, phi[:, head], -1.0).argmax()
            free[k] = False
            top = np.argsort(-phi[k], kind="stable")[:10]
            shown = " ".join(f"{words[w]} {phi[k, w]:.4f}" for w in top)
            rows.append({"model": name, "mean c_npmi": round(judged, 4), "topic": number, "words": shown})
    return rows


def draw(tables, folder):
    """Draw both figures."""
    table_2, table_3 = tables["pctd_figure2"], tables["pctd_figure3"]
    stand_in = "500 news articles and GloVe vectors, stand-ins for the paper's New York Times sample and word2vec"
    fig = Figure(figsize=(10.5, 4.4), layout="constrained")
    axes = fig.subplots(1, 2, sharex=True)
    runs = table_2.groupby(["support", "sigma", "iteration"])
    mean, low, high = runs[["perplexity", "epsilon"]].mean(), runs["perplexity"].min(), runs["perplexity"].max()
    n_seeds = table_2["seed"].nunique()
    spread = f" Means of {n_seeds} seeds, and their range." if n_seeds > 1 else ""
    for ax, (support, title) in zip(axes, SUPPORTS.items(), strict=True):
        for sigma, color in SIGMAS.items():
            frame = mean.loc[support, sigma]
            last = frame.index[-1]
            epsilon = frame["epsilon"].iloc[-1]
            label = f"σ = {sigma:g}" + (f", ε = {np.ceil(epsilon):,.0f} after {last}" if np.isfinite(epsilon) else "")
            ax.plot(frame.index, frame["perplexity"], color=color, linewidth=2, label=label)
            ax.fill_between(frame.index, low[support, sigma], high[support, sigma], color=color, alpha=0.2, linewidth=0)
        exact = mean.loc["none", 0.0]["perplexity"]
        ax.plot(exact.index, exact, color="0.3", linestyle="--", linewidth=1.5, label="no noise")
        sampled = mean.loc["LDA", 0.0]["perplexity"]
        ax.plot(sampled.index, sampled, color="black", linestyle=":", linewidth=1.5, label="LDA, sweeps")
        title = title[0].upper() + title[1:] + (": ε = ∞" if support == "observed" else "")
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        ax.set(title=title, xlabel="EM iterations", ylabel="Training perplexity, eq. (16)")
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=9)
    fig.suptitle("Figure 2 of Shi et al. (2019): convergence under the published noise, 30 topics", fontsize=12)
    fig.supxlabel(
        f"{stand_in}.{spread}\n"
        "ε: one word present or absent, δ = 1e-5, all iterations counted; noise that leaves out counts of 0 has none.",
        fontsize=8.5,
        color="0.35",
    )
    fig.savefig(folder / "pctd_figure2.png", dpi=150)

    fig = Figure(figsize=(7.5, 4.8), layout="constrained")
    ax = fig.subplots()
    runs = table_3.groupby(["model", "topics"])
    mean, low, high = runs[["perplexity", "epsilon"]].mean(), runs["perplexity"].min(), runs["perplexity"].max()
    styles = dict(
        zip(
            table_3["model"].unique(),
            [("0.3", "o-"), ("#0072B2", "s-"), ("#D55E00", "^-"), ("#CC79A7", "v-"), ("#56B4E9", "s:")],
            strict=True,
        )
    )
    for name, (color, style) in styles.items():
        frame = mean.loc[name]
        epsilon = frame["epsilon"].iloc[0]
        label = f"{name} (ε = {np.ceil(epsilon):.0f})" if np.isfinite(epsilon) else f"{name} (ε = ∞)"
        bars = frame["perplexity"] - low[name], high[name] - frame["perplexity"]
        ax.errorbar(
            frame.index, frame["perplexity"], bars, fmt=style, color=color, linewidth=2, elinewidth=1.2, label=label
        )
    ticks = sorted(table_3["topics"].unique())
    ax.set(xlabel="Topics", ylabel="Training perplexity, eq. (16)", yscale="log", xticks=ticks)
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.yaxis.set_minor_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.set_title("Figure 3 of Shi et al. (2019): perplexity and topics, σ = 0.25, 35 iterations", fontsize=11)
    ax.grid(alpha=0.3, which="both")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
    fig.supxlabel(f"{stand_in}.\nε: one word present or absent, δ = 1e-5.{spread}", fontsize=8, color="0.35")
    fig.savefig(folder / "pctd_figure3.png", dpi=150)


def read(s):
    """Return the names of what a row is of."""
    return ["news", "glove"]


TABLES = [
    Table("pctd_figure2", Convergence, convergence_cells, converge, read),
    Table("pctd_figure3", Perplexity, perplexity_cells, judge, read),
    Table("pctd_table1", Words, lambda: [Words(seed) for seed in range(3)], table_1, read),
]
if __name__ == "__main__":
    run(TABLES, __doc__, draw)
