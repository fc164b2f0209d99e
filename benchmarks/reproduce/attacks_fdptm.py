"""Reproduce Figure 6 of Manzonelli, Zhang and Vadhan (2024): the likelihood ratio attack on fully private topics.

TweetRumors, 5 topics, 64 shadow models, online, epsilon of the vocabulary in 1, 5, 10 with epsilon of the topics at 5
and the other way round. Two families:

* "as published": the set union of Carvalho et al. with its printed threshold, and the topics of Zhu et al., whose table
  is made of exact counts. Their epsilons are claims that do not hold.
* "proven": the same selection with a threshold that keeps delta, and PrivateCGSLDA with Gaussian noise. Both have delta
  1e-5, a document contributes 25 words to the selection, and the epsilons add up.

Each is attacked by shadow models that select words of their own, and by ones that take the words with which the target
was released, as the authors' do; the picture is of these. A model's statistic leaves out words that it did not select.
Beside them plain sampling with the vocabulary of the target's half.

What is stored: the paper's ten repetitions, 21 settings. Intervals are over repetitions. Noise has no seed here, so
that a second run has other numbers: of two settings areas moved by 0.002 and 0.005. A setting takes one to two minutes
of processor time; every shadow model is kept in --directory, so that the same command goes on.

    python benchmarks/reproduce/attacks_fdptm.py --directory shadows
"""

import argparse
import json
import os
import sys
import warnings
from functools import cache, partial
from pathlib import Path

import matplotlib
import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from results import Rows, code_of

from skdplda import PrivacyLeakWarning, PrivateCGSLDA
from skdplda.attacks import AttackResult, membership_experiment
from skdplda.published import PriTopLDA, PublishedItemFrequencySelector
from skdplda.vocabulary import DPVocabularySelector

TOPICS, DELTA, CUTOFF, WORDS = 5, 1e-5, 3.0, 25
PAIRS = [(1.0, 5.0), (5.0, 5.0), (10.0, 5.0), (5.0, 1.0), (5.0, 10.0)]
FAMILIES = {
    "as published": (PublishedItemFrequencySelector, partial(PriTopLDA, max_iter=100)),
    "proven": (partial(DPVocabularySelector, method="item_frequency"), partial(PrivateCGSLDA, delta=DELTA)),
}
PLAIN = ("no privacy", np.inf, np.inf, "target")
KEYS = ["family", "epsilon vocabulary", "epsilon topics", "words"]
ATTACK, FPR = "LiRA online (zeta)", 0.001


@cache
def tweets(folder, sample):
    """Return the counts of the tweets; `sample` takes the first ones."""
    texts = json.loads((folder / "pheme_clean.json").read_text(encoding="utf-8"))["text"][:sample]
    return sp.csr_array(CountVectorizer(token_pattern=r"\S+").fit_transform(texts).astype(np.int32))


def topics_on_all_words(pipeline):
    """Return the topics of a fitted pipeline; words that were not selected have zeros."""
    selected = pipeline[0].get_support()
    table = np.zeros((TOPICS, len(selected)))
    table[:, selected] = pipeline[-1].topic_word_
    return table


def setting(family, first, second, words):
    """Return the estimator of a cell, and what the experiment needs to know of it."""
    if family not in FAMILIES:
        return PrivateCGSLDA(TOPICS, epsilon=np.inf), {"vocabulary": "target"}
    select, model = FAMILIES[family]
    selector = select(epsilon=first, delta=DELTA, cutoff=CUTOFF, max_words_per_unit=WORDS)
    pipeline = make_pipeline(selector, model(TOPICS, epsilon=second))
    return pipeline, {"vocabulary": "given", "topic_word": topics_on_all_words, "selection": words}


def attack(folder, sample, models, repetitions, place, *cell):
    """Return the values of a row; shadow models are kept in a folder, and the scores of all repetitions beside it."""
    estimator, options = setting(*cell)
    found = membership_experiment(
        estimator,
        tweets(folder, sample),
        n_models=models,
        repetitions=repetitions,
        thresholds=(),
        attacks=("online",),
        directory=place,
        random_state=0,
        verbose=sys.stderr.isatty(),
        **options,
    )
    at, each = found.tpr_at(ATTACK, FPR), [run[ATTACK].auc for run in found.runs]
    np.savez(f"{place}.npz", scores=found[ATTACK].scores, labels=found[ATTACK].labels)
    return {
        "repetitions": repetitions,
        "models": models,
        "TPR %": 100 * at.rate,
        "low %": 100 * at.low,
        "high %": 100 * at.high,
        "AUC": found[ATTACK].auc,
        "least AUC": min(each),
        "most AUC": max(each),
    }


def cells():
    """Return what there is to measure."""
    found = [(family, *pair, words) for family in FAMILIES for pair in PAIRS for words in ("own", "target")]
    return {"attacks_fdptm": [dict(zip(KEYS, cell, strict=True)) for cell in [PLAIN, *found]]}


def draw(curve, repetitions, path):
    """Draw one panel for each family and varied epsilon; `curve(cell, name)` returns a result under this name."""
    import matplotlib.pyplot as plt

    from skdplda.plots import AttackRocDisplay

    fig, axes = plt.subplots(2, 2, figsize=(10, 12), layout="constrained")
    for row, family in enumerate(FAMILIES):
        for column, (fixed, varied) in enumerate((("topics", "vocabulary"), ("vocabulary", "topics"))):
            chosen = sorted(pair for pair in PAIRS if pair[1 - column] == 5.0)
            curves = [curve((family, *pair, "target"), f"{varied} {pair[column]:g}") for pair in chosen]
            meaning = "claims that fail" if family == "as published" else "delta 1e-5 each"
            title = f"{family} ({meaning}): epsilon of the {fixed} 5"
            AttackRocDisplay(results=[curve(PLAIN, PLAIN[0]), *curves]).plot(axes[row, column], title=title)
    title = f"TweetRumors, online attack, shadow models with the target's words, {repetitions} repetition(s)"
    fig.suptitle(title, fontsize="small", color="0.35")
    fig.savefig(path, dpi=130)


def main():
    """Measure what is missing, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--directory", type=Path, required=True, help="keeps the shadow models' statistics")
    parser.add_argument("--quick", action="store_true", help="600 documents, 4 models, 2 repetitions")
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "results")
    args = parser.parse_args()
    if "SKDPLDA_DATA" not in os.environ:
        sys.exit("Set SKDPLDA_DATA to the folder of the corpora.")
    sample = 600 if args.quick else None
    if args.quick:
        args.models, args.repetitions = 4, 2
    matplotlib.use("Agg")
    warnings.simplefilter("ignore", PrivacyLeakWarning)
    roots = [attack, membership_experiment]
    code = code_of(*roots).rpartition("@")[2]  # models of older code are not taken for models of this

    def place(cell):
        return args.directory / "_".join(["fdptm", *map(str, cell), str(sample), code]).replace(" ", "_")

    def curve(cell, name):
        with np.load(f"{place(cell)}.npz") as kept:
            return AttackResult(kept["scores"], kept["labels"], name)

    rows = Rows(args.output / f"attacks_fdptm{'_quick' if args.quick else ''}.csv", KEYS)
    wanted = cells()["attacks_fdptm"]
    for cell in wanted:
        values = tuple(cell.values())
        data = Path(os.environ["SKDPLDA_DATA"])
        work = partial(attack, data, sample, args.models, args.repetitions, place(values), *values)
        rows.measure(cell, work, roots, ["tweets"])
    print(rows.table.drop(columns=["code", "data"]).to_string(index=False, float_format="{:.3f}".format))
    if all(Path(f"{place(tuple(cell.values()))}.npz").exists() for cell in wanted):
        draw(curve, args.repetitions, args.output / "attacks_fdptm.png")


if __name__ == "__main__":
    main()
