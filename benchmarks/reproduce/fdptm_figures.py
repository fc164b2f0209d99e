"""Reproduce Figures 4 and 5 of Manzonelli et al. (2024): coherence of fully private topics on TweetRumors.

Nico Manzonelli, Wanrong Zhang and Salil Vadhan, "Membership Inference Attacks and Privacy in Topic Modeling", 2024,
sections 4.4 and 4.5: K=5, delta=1e-5 for the words, cut-off alpha=3, coherence of the 10 most probable words of each
topic by their equation (4), here beside c_npmi. One tweet is one author. pheme_clean.json, the authors' own file, is
taken from the folder that the environment variable SKDPLDA_DATA names.

Figure 4: words selected with epsilon_1, topics without noise. Figure 5: one of epsilon_1 (words) and epsilon_2 (topics)
varies, the other is 3. M1 is "item_frequency", the authors' with a threshold that keeps its guarantee, or the package's
default. M2 is "laplace-last" (Zhu et al. 2016), the authors', whose claimed epsilon_2 does not hold, or "gaussian",
proven for documents at delta=1e-5. The table has the total of words and topics, accounted jointly, and its status.

Agreement. Figure 4: as in the paper, from epsilon_1 = 1 on little changes beyond the spread over seeds, and all words
without privacy are no better than selected ones. The level differs: the paper's baseline is near -1117, here -133;
with 20 words and 1e-12 in the place of the 1 in equation (4) it is near -1200. Figure 5, "laplace-last": epsilon_1
saturates as in the paper, at 2 and not 3, but so does epsilon_2, at 1; its released counts are exact at any
epsilon_2. "gaussian": epsilon_2 helps up to 5, as the paper says of its own, and a larger epsilon_1 harms from 3 on,
since more words share the same noise. So most of the budget should go to the topics, as the paper concludes;
accounted jointly, the words cost little of it: "sieve" with 3 and "gaussian" with 3 make 4.3 and not 6, at
delta=2e-5.

The seeds make the numbers repeatable. They are for public data only.

    python benchmarks/reproduce/fdptm_figures.py
"""

import argparse
import json
import math
import os
import sys
import time
import warnings
from pathlib import Path

import matplotlib
import pandas as pd
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline

from skdplda import PrivacyLeakWarning, PrivateCGSLDA, privacy_guarantee
from skdplda.metrics import coherence, u_mass_coherence
from skdplda.vocabulary import DPVocabularySelector

K, DELTA, CUTOFF, FIXED, N_TOP = 5, 1e-5, 3.0, 3.0, 10
EPSILONS = [0.5, 1, 2, 3, 5, 10]
OWN = DPVocabularySelector().mechanism
TOPICS = {
    "scikit-learn": lambda epsilon, seed: LatentDirichletAllocation(K, random_state=seed),
    "non-private": lambda epsilon, seed: PrivateCGSLDA(K, epsilon=math.inf, random_state=seed),
    "laplace-last": lambda epsilon, seed: PrivateCGSLDA(
        K, epsilon=epsilon, mechanism="laplace-last", random_state=seed
    ),
    "gaussian": lambda epsilon, seed: PrivateCGSLDA(K, epsilon=epsilon, delta=DELTA, random_state=seed.to_bytes(32)),
}
# Okabe and Ito's palette; lines differ by their markers too. A claim that does not hold is dashed.
STYLES = [("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D")]
NAMES = {"laplace-last": "laplace-last (ε₂ claimed, does not hold)", "non-private": "PrivateCGSLDA"}
MEASURES = {"u_mass": "Coherence, equation (4)", "c_npmi": "c_npmi"}


def measure(texts, tokens, words, epsilon_1, topics, epsilon_2, seed):
    """Fit one pipeline and return a row of the table."""
    selector = DPVocabularySelector(epsilon=epsilon_1, delta=DELTA, mechanism=words, cutoff=CUTOFF)
    selector.set_params(random_state=(1000 + seed).to_bytes(32))  # not the topics' own; as long as a secret
    pipeline = Pipeline(
        [
            ("counts", CountVectorizer(token_pattern=r"\S+", lowercase=False)),
            ("words", selector),
            ("topics", TOPICS[topics](epsilon_2, seed)),
        ]
    )
    begin = time.process_time()
    pipeline.fit(texts)
    seconds = time.process_time() - begin
    names = pipeline[:-1].get_feature_names_out()
    weights = pipeline[-1].components_
    private = topics in ("laplace-last", "gaussian")
    total = privacy_guarantee(pipeline) if private else selector.privacy_cost()
    return {
        "words": words,
        "epsilon_1": epsilon_1,
        "topics": topics,
        "epsilon_2": epsilon_2,
        "seed": seed,
        "n_words": len(names),
        "u_mass": u_mass_coherence(weights, pipeline[:-1].transform(texts), n_top=N_TOP).mean(),
        "c_npmi": coherence(weights, tokens, names, measure="c_npmi", n_top=N_TOP),
        "total_epsilon": total.epsilon if private else math.inf,
        "total_delta": total.delta,
        "status": str(total.status) if private else "topics not private",
        "cpu_s": seconds,
    }


def jobs(epsilons):
    """Yield (figure, what varies, words, epsilon_1, topics, epsilon_2)."""
    for words in ("item_frequency", OWN):
        for topics in ("scikit-learn", "non-private"):
            for epsilon in epsilons:
                yield 4, "epsilon_1", words, epsilon, topics, math.inf
    for words, topics in (("item_frequency", "laplace-last"), ("item_frequency", "gaussian"), (OWN, "gaussian")):
        for epsilon in epsilons:
            yield 5, "epsilon_1", words, epsilon, topics, FIXED
            yield 5, "epsilon_2", words, FIXED, topics, epsilon


def baseline(texts, tokens, seed):
    """Return a row for scikit-learn's LDA on all words."""
    vectorizer = CountVectorizer(token_pattern=r"\S+", lowercase=False)
    X = vectorizer.fit_transform(texts)
    weights = LatentDirichletAllocation(K, random_state=seed).fit(X).components_
    return {
        "words": "all",
        "topics": "scikit-learn",
        "seed": seed,
        "n_words": X.shape[1],
        "u_mass": u_mass_coherence(weights, X, n_top=N_TOP).mean(),
        "c_npmi": coherence(weights, tokens, vectorizer.get_feature_names_out(), measure="c_npmi", n_top=N_TOP),
    }


def measure_all(texts, tokens, epsilons, seeds):
    """Return the table: rows of both figures, and the baseline as figure 0."""
    rows = []
    for figure, varies, *job in jobs(epsilons):
        rows += [{"figure": figure, "varies": varies, **measure(texts, tokens, *job, seed)} for seed in seeds]
    rows += [{"figure": 0, **baseline(texts, tokens, seed)} for seed in seeds]
    return pd.DataFrame(rows)


def draw(table, figure, path, title, panels):
    """Draw a row a panel and a column a measure: lines with bars of one standard deviation over the seeds."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    levels, table = table[table["figure"] == 0][[*MEASURES]].mean(), table[table["figure"] == figure]
    size = (10, 1.6 + 3 * len(panels))
    fig, axes = plt.subplots(
        len(panels), len(MEASURES), figsize=size, layout="constrained", sharey="col", squeeze=False
    )
    for row, (varies, heading, x_label) in zip(axes, panels, strict=True):
        lines = table[table["varies"] == varies].groupby(["words", "topics"], sort=False)
        for ax, (name, label) in zip(row, MEASURES.items(), strict=True):
            for i, (((words, topics), part), style) in enumerate(zip(lines, STYLES, strict=False)):
                stats = part.groupby(varies)[name].agg(["mean", "std"])
                color, marker = style
                ax.errorbar(
                    stats.index * 1.03 ** (i - 1),  # side by side
                    stats["mean"],
                    yerr=stats["std"],
                    color=color,
                    linestyle="--" if topics == "laplace-last" else "-",
                    marker=marker,
                    markersize=4,
                    elinewidth=1,
                    capsize=2,
                    label=f"{words} + {NAMES.get(topics, topics)}",
                )
            ax.axhline(levels[name], color="#555555", linewidth=1, label="no privacy: all words, scikit-learn")
            ax.set_xscale("log")
            epsilons = sorted(table[varies].unique())
            ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
            ax.minorticks_off()
            ax.set_xlabel(x_label)
            ax.set_ylabel(label)
            ax.set_title(heading, fontsize="medium")
            ax.grid(alpha=0.3)
            ax.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0][0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="small", frameon=False)
    fig.suptitle(title, fontsize="large")
    fig.savefig(path, dpi=150)
    plt.close(fig)


def main():
    """Fit, print and save the table, draw the figures."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--quick", action="store_true", help="three epsilons, one seed")
    parser.add_argument("--redraw", action="store_true", help="draw the table that is there")
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "results")
    args = parser.parse_args()
    if "SKDPLDA_DATA" not in os.environ:
        sys.exit("Set SKDPLDA_DATA to the folder of pheme_clean.json.")
    texts = json.loads((Path(os.environ["SKDPLDA_DATA"]) / "pheme_clean.json").read_text())["text"]
    tokens = [text.split() for text in texts]
    epsilons, seeds = ([1, 3, 10], args.seeds[:1]) if args.quick else (EPSILONS, args.seeds)
    warnings.simplefilter("ignore", PrivacyLeakWarning)

    file = args.output / "fdptm_figures.csv"
    table = pd.read_csv(file) if args.redraw else measure_all(texts, tokens, epsilons, seeds)
    keys = ["figure", "varies", "words", "topics", "epsilon_1", "epsilon_2", "status"]
    shown = ["n_words", "u_mass", "c_npmi", "total_epsilon", "total_delta"]
    mean = table.groupby(keys, sort=False, dropna=False)[shown].mean()
    print(mean.to_string(float_format="{:.4g}".format))
    args.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(file, index=False, float_format="%.6g", lineterminator="\n")
    note = f"TweetRumors, K = {K}; bars: one standard deviation over {table['seed'].nunique()} seeds"
    draw(
        table,
        4,
        args.output / "fdptm_figure4.png",
        f"Private words, topics without privacy. {note}",
        [("epsilon_1", "ε₂ = ∞", "ε₁ of the words")],
    )
    draw(
        table,
        5,
        args.output / "fdptm_figure5.png",
        f"Private words and private topics. {note}",
        [
            ("epsilon_1", f"ε₂ = {FIXED:g}", "ε₁ of the words"),
            ("epsilon_2", f"ε₁ = {FIXED:g}", "ε₂ of the topics"),
        ],
    )


if __name__ == "__main__":
    main()
