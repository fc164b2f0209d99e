"""Reproduce Figure 7 of Zhao et al. (2021): membership inference against a text classifier on private topics.

Fangyuan Zhao, Xuebin Ren, Shusen Yang, Qing Han, Peng Zhao and Xinyu Yang, "Latent Dirichlet Allocation Model
Training With Differential Privacy", IEEE TIFS 16. Three panels against epsilon: accuracy of the shadow-classifier
attack, and prediction accuracy and F1 of the classifier, for LP-LDA (local), CDP-LDA (noise on the counts once) and
plain sampling; beside them our proven central form.

The paper's corpus (Victorian authors) is not to be had: two groups of 20 Newsgroups stand in, comp.graphics and
sci.med, as presence bits of the 1,000 words of most posts (a vocabulary from the data, the same for all). 50 topics,
alpha = 1 and beta = 0.01 as in the paper. CDP-LDA's epsilon is the paper's parameter, which no proof supports;
LP-LDA's is per bit; ours is per document.

What is stored are three repetitions; bars in the picture are one standard deviation of them. What agrees: accuracy of
prediction rises with epsilon for LP-LDA (0.736, 0.730 and 0.792 at 0.5, 1 and 2, from 4 on 0.912 to 0.928, as without
privacy, 0.923) and for CDP-LDA (0.775 and 0.749 at 0.5 and 1, 0.904 at 10), and CDP-LDA is ahead of LP-LDA up to an
epsilon of 2, behind from 4 on. F1 is the same to 0.001. What does not: the attack's accuracy lies between 0.507 and
0.530 for both and every epsilon, with 0.522 without privacy and deviations of up to 0.022. The paper's rises with
epsilon and stays below that without privacy; ours has no trend, and LP-LDA is above it at 0.5 and from 4 on.

Our proven form predicts nothing: 0.504 up to an epsilon of 7, 0.516 at 10, with F1 at 0.335 where all is called one
class, and nothing for the attack to find (0.497 to 0.500). A target is trained on 489 posts. Up to 7 its documents'
vote finds no topics that explain them better than word frequencies do: all 50 topics are these, each document gets the
proportions 1/50, and a classifier of them can but name the larger class. At 10 topics come out in some fits, and the
proportions differ between documents by 0.002 only, which a logistic regression with C=100 makes next to nothing of;
with proportions scaled to a deviation of 1, two of three such fits had 0.71 and 0.74 (a trial that is not stored).

The default makes some 500 fits; --quick takes half a minute. Each line of the table is kept as soon as it is known: the
same command goes on.

    python benchmarks/reproduce/attacks_classifier.py
"""

import argparse
import math
import os
import sys
import warnings
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from results import Rows

from skdplda import LocalPrivateLDA, NoisyTopicsWarning, PrivacyLeakWarning, PrivateCGSLDA
from skdplda.attacks import shadow_classifier_attack
from skdplda.datasets import frequent_words, load_20newsgroups
from skdplda.local import LocalRandomizer
from skdplda.published import CDPLDA

PAIR = ("comp.graphics", "sci.med")
EPSILONS, KEYS = (0.5, 1, 2, 4, 7, 10), ["model", "epsilon", "repetition"]
PRIORS = {"doc_topic_prior": 1.0, "topic_word_prior": 0.01}
STYLES = {"plain": ("0.35", "--"), "CDP-LDA": ("#D55E00", "-"), "LP-LDA": ("#009E73", "-."), "proven": ("#0072B2", ":")}
SHIFTS = {"CDP-LDA": 0.97, "LP-LDA": 1.0, "proven": 1.03}  # so that bars stand side by side
MEANING = {"CDP-LDA": "claimed, nothing is proven", "LP-LDA": "for a bit", "proven": "for a document"}
MEASURES = {"attack": "Accuracy of the attack", "accuracy": "Prediction accuracy", "f1": "F1 score"}


def read_pair(folder, quick):
    """Return presence bits and classes."""
    posts = load_20newsgroups("all", path=folder / "20news_bydate_raw.jsonl.xz")
    names = np.asarray(posts.target_names)[posts.target]
    chosen = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(names, PAIR)))[: 240 if quick else None]
    texts = [posts.data[i] for i in chosen]
    words = frequent_words(texts, 1000, stop_words="english", binary=True)
    X = sp.csr_array(CountVectorizer(vocabulary=words, binary=True).transform(texts))
    some = np.flatnonzero(np.asarray(X.sum(axis=1)).ravel() > 0)
    return X[some], names[chosen][some]


def plain(epsilon, topics, sweeps):
    """Return the model without privacy."""
    return PrivateCGSLDA(topics, epsilon=np.inf, max_iter=sweeps, **PRIORS)


def claimed(epsilon, topics, sweeps):
    """Return the paper's CDP-LDA."""
    return CDPLDA(topics, epsilon=epsilon, max_iter=sweeps, **PRIORS)


def proven(epsilon, topics, sweeps):
    """Return our central form."""
    return PrivateCGSLDA(topics, epsilon=epsilon, delta=1e-5, **PRIORS)


def reported(epsilon, topics, sweeps):
    """Return the paper's LP-LDA."""
    randomizer = LocalRandomizer(epsilon)
    return LocalPrivateLDA(topics, randomizer=randomizer, reconstruction="moment", max_iter=sweeps, **PRIORS)


MODELS = {"plain": plain, "CDP-LDA": claimed, "proven": proven, "LP-LDA": reported}


def cells(epsilons=EPSILONS, repetitions=3):
    """Return what there is to measure."""
    found = []
    for seed in range(repetitions):
        found.append(("plain", math.inf, seed))
        found += [(name, epsilon, seed) for name in list(MODELS)[1:] for epsilon in epsilons]
    return {"attacks_classifier": [dict(zip(KEYS, one, strict=True)) for one in found]}


def line(X, y, model, seed, shadows):
    """Return the values of one line of the table."""
    classifier = make_pipeline(model, LogisticRegression(C=100.0, max_iter=2000))
    found = shadow_classifier_attack(classifier, X, y, n_shadows=shadows, random_state=seed)
    return {
        "attack": found.membership_accuracy,
        "AUC": found.result.auc,
        "TPR at 1 %": found.result.tpr_at(0.01).rate,
        "accuracy": found.prediction_accuracy,
        "f1": found.f1,
        "documents": X.shape[0] // 2,
    }


def draw(table, path):
    """Draw the three panels."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
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
    fig.savefig(path, dpi=130)


def main():
    """Run, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--shadows", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="240 posts, 2 epsilons, 2 shadow classifiers, 20 sweeps")
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "results")
    args = parser.parse_args()
    if "SKDPLDA_DATA" not in os.environ:
        sys.exit("Set SKDPLDA_DATA to the folder of the corpora.")
    topics, sweeps = (10, 20) if args.quick else (50, 300)
    if args.quick:
        args.epsilon, args.repetitions, args.shadows = [1.0, 7.0], 1, 2
    matplotlib.use("Agg")
    for kind in (PrivacyLeakWarning, NoisyTopicsWarning):
        warnings.simplefilter("ignore", kind)
    X, y = read_pair(Path(os.environ["SKDPLDA_DATA"]), args.quick)
    print(f"{X.shape[0]:,} posts, {X.shape[1]:,} words")
    rows = Rows(args.output / f"attacks_classifier{'_quick' if args.quick else ''}.csv", KEYS)
    for cell in cells(args.epsilon, args.repetitions)["attacks_classifier"]:
        make = MODELS[cell["model"]]
        model = make(cell["epsilon"], topics, sweeps)
        work = partial(line, X, y, model, cell["repetition"], args.shadows)
        rows.measure(cell, work, [read_pair, make, line], ["20news"])
    print(rows.table.groupby(KEYS[:2], sort=False).mean(numeric_only=True).round(3).to_string())
    if not args.quick:
        draw(rows.table, args.output / "attacks_classifier.png")


if __name__ == "__main__":
    main()
