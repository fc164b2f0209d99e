"""Reproduce Figure 7 of Zhao et al. (2021): membership inference against a text classifier on private topics.

Fangyuan Zhao, Xuebin Ren, Shusen Yang, Qing Han, Peng Zhao and Xinyu Yang, "Latent Dirichlet Allocation Model
Training With Differential Privacy", IEEE TIFS 16. Three panels against epsilon: accuracy of the shadow-classifier
attack, and prediction accuracy and F1 of the classifier, for LP-LDA (local), CDP-LDA (noise on the counts once) and
plain sampling; beside them our proven central form.

The paper's corpus (Victorian authors) is not to be had: two groups of 20 Newsgroups stand in, comp.graphics and
sci.med, as presence bits of the 1,000 words of most posts (a vocabulary from the data, the same for all). 50 topics,
alpha = 1 and beta = 0.01 as in the paper. CDP-LDA's epsilon is the paper's parameter, which no proof supports;
LP-LDA's is per bit; ours is per document.

Three repetitions; bars in the picture are one standard deviation of them. What agrees and what does not:
doc/reproductions.rst. Our proven form is trained on 489 posts, of which at most epsilons the documents' vote finds no
topics better than word frequencies: all documents then have the same proportions, and the classifier can but name the
larger class.

It makes some 500 fits. Each line of the table is kept as soon as it is known: the same command goes on.

    python benchmarks/reproduce/attacks_classifier.py
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
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from corpora import path_of
from results import Table, run

from skdplda import LocalPrivateLDA, PrivateCGSLDA
from skdplda.attacks import shadow_classifier_attack
from skdplda.datasets import frequent_words, load_20newsgroups
from skdplda.local import LocalRandomizer
from skdplda.published import CDPLDA

PAIR, EPSILONS = ("comp.graphics", "sci.med"), (0.5, 1.0, 2.0, 4.0, 7.0, 10.0)
STYLES = {"plain": ("0.35", "--"), "CDP-LDA": ("#D55E00", "-"), "LP-LDA": ("#009E73", "-."), "proven": ("#0072B2", ":")}
SHIFTS = {"CDP-LDA": 0.97, "LP-LDA": 1.0, "proven": 1.03}  # so that bars stand side by side
MEANING = {"CDP-LDA": "claimed, nothing is proven", "LP-LDA": "for a bit", "proven": "for a document"}
MEASURES = {"attack": "Accuracy of the attack", "accuracy": "Prediction accuracy", "f1": "F1 score"}


@dataclass(frozen=True)
class Settings:
    """Of a row; a sample of 0 takes all posts."""

    model: str
    epsilon: float
    repetition: int
    shadows: int = 8
    topics: int = 50
    sweeps: int = 300
    delta: float = 1e-5
    alpha: float = 1.0
    beta: float = 0.01
    n_words: int = 1000
    sample: int = 0


def cells():
    """Return what there is to measure."""
    found = []
    for seed in range(3):
        found.append(Settings("plain", math.inf, seed))
        found += [Settings(name, epsilon, seed) for name in list(MEANING) for epsilon in EPSILONS]
    return found


@cache
def read_pair(sample, n_words):
    """Return presence bits and classes."""
    posts = load_20newsgroups("all", path=path_of("20news"))
    names = np.asarray(posts.target_names)[posts.target]
    chosen = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(names, PAIR)))[: sample or None]
    texts = [posts.data[i] for i in chosen]
    words = frequent_words(texts, n_words, stop_words="english", binary=True)
    X = sp.csr_array(CountVectorizer(vocabulary=words, binary=True).transform(texts))
    some = np.flatnonzero(np.asarray(X.sum(axis=1)).ravel() > 0)
    return X[some], names[chosen][some]


def made(s):
    """Return the model: without privacy, the paper's two, or our central form."""
    options = {"doc_topic_prior": s.alpha, "topic_word_prior": s.beta}
    if s.model == "proven":
        return PrivateCGSLDA(s.topics, epsilon=s.epsilon, delta=s.delta, **options)
    options["max_iter"] = s.sweeps
    if s.model == "LP-LDA":
        return LocalPrivateLDA(s.topics, randomizer=LocalRandomizer(s.epsilon), reconstruction="moment", **options)
    return (CDPLDA if s.model == "CDP-LDA" else PrivateCGSLDA)(s.topics, epsilon=s.epsilon, **options)


def measure(s):
    """Return the values of one line of the table."""
    (X, y), classifier = (
        read_pair(s.sample, s.n_words),
        make_pipeline(made(s), LogisticRegression(C=100.0, max_iter=2000)),
    )
    found = shadow_classifier_attack(classifier, X, y, n_shadows=s.shadows, random_state=s.repetition)
    return {
        "attack": found.membership_accuracy,
        "AUC": found.result.auc,
        "TPR at 1 %": found.result.tpr_at(0.01).rate,
        "accuracy": found.prediction_accuracy,
        "f1": found.f1,
        "documents": X.shape[0] // 2,
    }


def draw(tables, folder):
    """Draw the three panels."""
    table = tables["attacks_classifier"]
    print(table.groupby(["model", "epsilon"], sort=False).mean(numeric_only=True).round(3).to_string())
    fig = Figure(figsize=(12, 3.8), layout="constrained")
    axes = fig.subplots(1, 3)
    for ax, (measure, title) in zip(axes, MEASURES.items(), strict=True):
        for name, part in table.groupby("model", sort=False):
            color, dashes = STYLES[name]
            found = part.groupby("epsilon")[measure].agg(["mean", "std"]).fillna(0)  # one repetition has no deviation
            mean, bars = found["mean"], found["std"]
            if name == "plain":
                ax.axhline(mean.iloc[0], color=color, linestyle=dashes, label="no privacy")
                ax.axhspan(*(mean.iloc[0] + bars.iloc[0] * np.array([-1, 1])), color=color, alpha=0.12, linewidth=0)
            else:
                label = f"{name} ({MEANING[name]})"
                x = mean.index * SHIFTS[name]
                ax.errorbar(
                    x, mean, bars, color=color, linestyle=dashes, marker="o", elinewidth=1, capsize=2, label=label
                )
        ticks = sorted(table["epsilon"][np.isfinite(table["epsilon"])].unique())
        if measure == "attack":
            ax.axhline(0.5, color="0.8", linewidth=0.8)
        ax.set(xscale="log", xlabel="epsilon (of each form's own meaning)", ylabel=title)
        ax.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    fig.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize="small"
    )
    fig.suptitle(
        f"20 Newsgroups, {' and '.join(PAIR)}, as stand-in; repetitions: {table['repetition'].nunique()};"
        " bars and band: one standard deviation of them",
        fontsize="small",
        color="0.35",
    )
    fig.savefig(folder / "attacks_classifier.png", dpi=130)


TABLES = [
    Table("attacks_classifier", Settings, cells, measure, lambda s: ["20news"]),
]
if __name__ == "__main__":
    run(TABLES, __doc__, draw)
