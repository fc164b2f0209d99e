"""Reproduce Figures 4 and 5 of Zhao et al. (2021): the topic-based attack, and perplexity under noise.

Fangyuan Zhao, Xuebin Ren, Shusen Yang, Qing Han, Peng Zhao and Xinyu Yang, "Latent Dirichlet Allocation Model
Training With Differential Privacy", IEEE TIFS 16, 2021. K=50, alpha=1, beta=0.01, inherent epsilon 10 a sweep. KOS and
NIPS are the paper's corpora; its third, the UCI Enron corpus, is not to be had, and all 16,921 raw mails of six Enron
mailboxes stand in for it (the paper has 10,000 documents of 150 users; most of these mails lack their first paragraph,
see corpora.py). A document is the set of its words among the 1,000 that most documents have (English stop words apart),
as in the paper's Table II.

HDP-LDA bounds the draws by C / beta = e^5 - 1 = 147.4. The paper says that it takes a larger beta there, but not
which: a grid has 0.01, 0.1, 1 and 5, and C follows. "published" is Algorithm 1, whose noise adds up in the counts;
"fresh" has new noise on a copy of the counts in each sweep, as Algorithm 3 records it, and its model is of exact
counts; "delayed" is the sound form (delayed counts, as in AD-LDA) with the same two epsilons a sweep. A run has 300
sweeps (the paper names 300 for its non-private model, and none here), and three seeds.

What a point really costs stands beside what the paper says of it. The paper's epsilon counts one sweep's noise; its own
sum over sweeps of noise and draws is `paper_total`. `proven_total` is proven, at delta=1e-5, for everything that an
attacker of Figure 4 sees; it is infinite where draws or counts are not covered.

What agrees and what does not: doc/reproductions.rst. Eq. (24) does not show what can be known: it counts how frequent
words are once a sweep. Naive Bayes ("bayes") uses the same trace.

Results are kept as they come: run again to go on. A fit of 300 sweeps of KOS takes 4 to 12 s of processor time, an
attack on mail up to 25.

    python benchmarks/reproduce/hdp_figures.py
"""

import math
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure
from sklearn.feature_extraction.text import CountVectorizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from corpora import json_rows, path_of
from results import Table, run

from skdplda._validation import tokens_of
from skdplda.attacks import TopicTraceAttack
from skdplda.datasets import load_uci_bow
from skdplda.metrics import perplexity, unigram_perplexity
from skdplda.models._hdp_accounting import HybridPlan
from skdplda.models._hdp_sampler import DelayedCountSweeps
from skdplda.privacy import Randomness
from skdplda.published._gibbs_sampler import fit_published

N_TRAIN = {"KOS": 3000, "NIPS": 1350, "Enron (six mailboxes)": 15_200}
DATA = {"KOS": "kos", "NIPS": "nips", "Enron (six mailboxes)": "enron"}
BETA, N_WORDS = 0.01, 1000
EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
ATTACKS = [  # method, noise epsilon of a sweep, beta
    ("CGS", math.inf, BETA),
    ("CDP-LDA+", 1.0, BETA),
    ("CDP-LDA+", 10.0, BETA),
    ("HDP-LDA published", 1.0, 1.0),
    ("HDP-LDA published", 10.0, 1.0),
    ("HDP-LDA published", 10.0, BETA),
    ("HDP-LDA fresh", 1.0, 1.0),
    ("HDP-LDA fresh", 10.0, 1.0),
    ("HDP-LDA fresh", 10.0, BETA),
    ("HDP-LDA delayed", 1.0, 1.0),
    ("HDP-LDA delayed", 10.0, 1.0),
    ("HDP-LDA delayed", 10.0, BETA),
]
FORMS = ("published", "fresh", "delayed")
UNLIMITED = {"CGS": "hybrid", "CDP-LDA+": "laplace-every", "CDP-LDA+ fresh": "laplace-every-fresh"}
BETAS = (BETA, 0.1, 1.0, 5.0)  # C follows from each: C / beta is what limits the draws
FITS = [
    ("CGS", math.inf, BETA),
    *[("CDP-LDA+", epsilon, BETA) for epsilon in EPSILONS],
    *[(f"HDP-LDA {form}", epsilon, 1.0) for form in FORMS for epsilon in EPSILONS],
    *[("limited inherent", math.inf, beta) for beta in BETAS],
    *[(f"HDP-LDA {form}", e, beta) for form in FORMS for beta in BETAS for e in (1.0, 10.0)],
    *[("CDP-LDA+ fresh", epsilon, BETA) for epsilon in EPSILONS],
]
FITS = list(dict.fromkeys(FITS))


@dataclass(frozen=True)
class Settings:
    """Of a fit of so many sweeps; `epsilon` is of one sweep's noise, `inherent` of its draws."""

    corpus: str
    method: str
    epsilon: float
    beta: float
    seed: int
    run: int = 300
    alpha: float = 1.0
    inherent: float = 10.0
    topics: int = 50
    n_words: int = N_WORDS
    delta: float = 1e-5


@dataclass(frozen=True)
class Attack(Settings):
    """Of an attack on so many tokens, by topics of such a prior."""

    attacked: int = 1000
    attack_beta: float = BETA


def attack_cells():
    """Return what there is to measure: one seed after the other."""
    return [Attack(name, *one, seed) for seed in range(3) for name in N_TRAIN for one in ATTACKS]


def fit_cells():
    """Return what there is to measure."""
    return [Settings(name, *one, seed) for seed in range(3) for name in N_TRAIN for one in FITS]


@cache
def corpus(name, n_words=N_WORDS):
    """Return the presence bits of the training and test documents."""
    if name in ("KOS", "NIPS"):
        X = load_uci_bow(path_of(DATA[name])).data.tocsc()
        most = np.argsort(-np.diff(X.indptr), kind="stable")[:n_words]
        X = X[:, most].tocsr()
    else:
        texts = [f"{mail['subject']}\n{mail['body']}" for mail in json_rows("enron")]
        X = CountVectorizer(stop_words="english", token_pattern=r"\b[a-zA-Z]{3,}\b", binary=True).fit_transform(texts)
        X = X[:, np.argsort(-np.diff(X.tocsc().indptr), kind="stable")[:n_words]]
    X = sp.csr_array(X).astype(np.int32)
    X.data[:] = 1
    X.sort_indices()
    X.indptr = X.indptr.astype(np.int64)
    order = np.random.default_rng(0).permutation(X.shape[0]) if name.startswith("Enron") else np.arange(X.shape[0])
    return X[order[: N_TRAIN[name]]], X[order[N_TRAIN[name] :]]


def odds(s):
    """Return C / beta, which limits the draws."""
    return math.expm1(s.inherent / 2)


def fit(X, s, observer=None):
    """Return the topic-word counts of one fit; `observer` sees each sweep's (table, topics), tokens in X's order."""
    if s.method == "HDP-LDA delayed":
        plan = HybridPlan("laplace", 2 / s.epsilon, s.inherent, s.run)
        starts, words = tokens_of(X)
        prior = np.full(s.topics, s.alpha)
        sampler = DelayedCountSweeps(starts, words, X.shape[1], plan, prior, s.beta * odds(s), Randomness(s.seed), 1)
        for _ in range(s.run):
            table = sampler.table
            sampler.sweep()
            if observer is not None:
                observer(table, sampler.topics)
        return sampler.pseudo_counts().T
    found = fit_published(
        X,
        s.topics,
        form=UNLIMITED.get(s.method, "hybrid-fresh" if s.method == "HDP-LDA fresh" else "hybrid"),
        epsilon=s.epsilon,
        doc_topic_prior=s.alpha,
        topic_word_prior=s.beta,
        max_iter=s.run,
        seed=s.seed,
        count_clip=np.inf if s.method in UNLIMITED else s.beta * odds(s),
        observer=observer,
    )
    return np.maximum(found.word_topic, 0)


def totals(s, sweeps):
    """Return (the paper's sum over sweeps, what is proven)."""
    draws = math.inf if s.method in UNLIMITED else s.inherent
    paper = sweeps * (s.epsilon + (0 if s.method.startswith("CDP-LDA+") else draws))
    proven = math.inf
    if s.method == "HDP-LDA delayed":
        proven = HybridPlan("laplace", 2 / s.epsilon, s.inherent, sweeps).epsilon(s.delta)
    return paper, proven


def attack(s):
    """Return one row for each of some sweeps: how well both rules do by then."""
    X, seen = corpus(s.corpus, s.n_words)[0], {1, 2, 3, 5, 10, *range(20, s.run + 1, 20)}
    words = tokens_of(X)[1]
    tokens = np.random.default_rng(s.seed).choice(len(words), s.attacked, replace=False)
    tokens[-1] = len(words) - 1  # the paper attacks the last word
    options = s.attacked, X.shape[1]
    attacks = {rule: TopicTraceAttack(*options, rule, s.attack_beta) for rule in ("paper", "bayes")}
    rows = []

    def observe(table, topics):
        for one in attacks.values():
            one.observe(table.T, topics[tokens])
        done = attacks["paper"].n_sweeps_
        if done in seen:
            found = {
                f"{rule} {name}": value
                for rule, one in attacks.items()
                for name, value in one.success(words[tokens]).items()
            }
            paper, proven = totals(s, done)
            rows.append({"sweeps": done, "paper_total": paper, "proven_total": proven, **found})

    fit(X, s, observe)
    return rows


def judge(s):
    """Return one row: perplexity in the paper's way, and of the other half of each document."""
    X, test = corpus(s.corpus, s.n_words)
    topics = fit(X, s) + s.beta
    topics /= topics.sum(axis=1, keepdims=True)
    options = {"doc_topic_prior": s.alpha}
    paper, proven = totals(s, s.run)
    return {
        "sweeps": s.run,
        "paper_total": paper,
        "proven_total": proven,
        "perplexity": perplexity(test, topics, method="fold-in", **options),
        "completion": perplexity(test, topics, **options),
        "unigram": unigram_perplexity(X, test),
    }


COLORS = {
    "CGS": "#000000",
    "limited inherent": "#56B4E9",
    "CDP-LDA+": "#D55E00",
    "CDP-LDA+ fresh": "#E69F00",
    "HDP-LDA published": "#CC79A7",
    "HDP-LDA fresh": "#009E73",
    "HDP-LDA delayed": "#0072B2",
}
OF_BETA = {BETA: ("o", ":"), 0.1: ("^", "-."), 1.0: ("s", "-"), 5.0: ("D", "--")}  # beta -> marker, dashes


def panels(table, title):
    """Return a figure with one panel a corpus."""
    names = [name for name in N_TRAIN if name in set(table.corpus)]
    figure = Figure(figsize=(max(4.4 * len(names), 12.5), 4.9), layout="constrained")
    axes = figure.subplots(1, len(names), squeeze=False)
    figure.suptitle(title, fontsize=10)
    for ax, name in zip(axes[0], names, strict=True):
        ax.set_title(name)
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    return figure, dict(zip(names, axes[0], strict=True))


def draw_attack(table, path, rule):
    """Figure 4: success of the attack against sweeps."""
    wording = {"paper": "eq. (24)", "bayes": "naive Bayes, which the paper does not try"}[rule]
    title = (
        f"Mean inferred probability of the true word, {Attack.attacked} tokens; {wording}\n"
        f"ε: of one sweep's noise, beside 10 for its draws; in brackets the total after {table.sweeps.max()} sweeps"
    )
    figure, axes = panels(table, title)
    for name, ax in axes.items():
        part = table[table.corpus == name].groupby(["method", "epsilon", "beta", "sweeps"]).mean(numeric_only=True)
        for (method, epsilon, beta), curve in part.groupby(level=[0, 1, 2]):
            color, dashes = COLORS[method], "-" if epsilon != 1 else "--"
            if method.startswith("HDP") and beta < 1:  # two that lie on each other: one in the gaps of the other
                dashes = (3.0 * method.endswith("delayed"), (2, 4))
            label = method if method == "CGS" else f"{method}, ε={epsilon:g}"
            label += f", β={beta:g}" if method.startswith("HDP") else ""
            total = curve.proven_total.iloc[-1]
            label += f" (proven: {total:,.0f})" if np.isfinite(total) else " (no finite ε)"
            x = curve.index.get_level_values("sweeps")
            ax.plot(x, curve[f"{rule} probability"], ls=dashes, color=color, linewidth=1.8, label=label)
        ax.set(xlabel="sweeps", ylim=(-0.02, 1.02))
        ax.axhline(1 / N_WORDS, color="0.6", linewidth=0.8)
    next(iter(axes.values())).set_ylabel("success of the attack")
    handles, labels = next(iter(axes.values())).get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(path, dpi=130)


def draw_perplexity(table, path):
    """Figure 5: perplexity against the epsilon of one sweep's noise."""
    sweeps = int(table.sweeps.iloc[0])
    figure, axes = panels(table, f"Perplexity in the paper's way (fold-in), {sweeps} sweeps, K={Settings.topics}")
    for name, ax in axes.items():
        mine = table[table.corpus == name]
        part = mine.groupby(["method", "beta", "epsilon"]).mean(numeric_only=True)
        ax.axhline(mine.unigram.iloc[0], color="0.6", linewidth=1, label="unigram")
        for (method, beta), curve in part.groupby(level=[0, 1]):
            several = method.startswith(("HDP", "lim"))  # values of beta
            color, (marker, dashes) = COLORS[method], OF_BETA[beta] if several else ("v", "-")
            x = curve.index.get_level_values("epsilon")
            label = method + (f", β={beta:g}" if several else "")
            if np.isinf(x).all():
                ax.axhline(curve.perplexity.iloc[0], color=color, linestyle=dashes, label=label)
            else:
                ax.plot(x, curve.perplexity, ls=dashes, color=color, marker=marker, ms=5, linewidth=1.8, label=label)
        delayed = part.xs("HDP-LDA delayed", level="method").xs(1.0, level="beta") if len(part) else part
        if len(delayed):
            note = "second row of the axis: proven total, HDP-LDA delayed\nall others: not private (no finite ε)"
            ax.text(0.98, 0.98, note, transform=ax.transAxes, ha="right", va="top", fontsize=8, color="0.25")
            shown = delayed.proven_total[delayed.index >= 1]  # that of 0.5 would lie on the next: 856
            ax.set_xticks(shown.index, [f"{x:g}\n{total:,.0f}" for x, total in shown.items()], fontsize=8)
        ax.set(xlabel="ε of one sweep's noise (the paper's axis)")
        ax.set_ylim(top=ax.get_ylim()[1] * 1.12)
    next(iter(axes.values())).set_ylabel("perplexity")
    handles, labels = next(iter(axes.values())).get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.savefig(path, dpi=130)


def report(tables, folder):
    """Draw both figures, of whole runs."""
    tables = {name: table[table.run == Settings.run] for name, table in tables.items()}
    if len(tables.get("hdp_figure4", ())):
        draw_attack(tables["hdp_figure4"], folder / "hdp_figure4.png", "paper")
        draw_attack(tables["hdp_figure4"], folder / "hdp_figure4_bayes.png", "bayes")
    if len(tables.get("hdp_figure5", ())):
        draw_perplexity(tables["hdp_figure5"], folder / "hdp_figure5.png")


TABLES = [
    Table("hdp_figure4", Attack, attack_cells, attack, lambda s: [DATA[s.corpus]]),
    Table("hdp_figure5", Settings, fit_cells, judge, lambda s: [DATA[s.corpus]]),
]
if __name__ == "__main__":
    run(TABLES, __doc__, report)
