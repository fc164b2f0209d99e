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

Ten repetitions, as the paper; intervals are over these.
A setting takes one to two minutes of processor time; every shadow model is kept in SKDPLDA_SCRATCH, so that the same
command goes on.

    SKDPLDA_SCRATCH=shadows python benchmarks/reproduce/attacks_fdptm.py
"""

import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from apart import scratch
from corpora import tweet_texts
from results import Table, run

from skdplda import PrivateCGSLDA
from skdplda.attacks import AttackResult, membership_experiment
from skdplda.published import PriTopLDA, PublishedItemFrequencySelector
from skdplda.vocabulary import DPVocabularySelector

PAIRS = [(1.0, 5.0), (5.0, 5.0), (10.0, 5.0), (5.0, 1.0), (5.0, 10.0)]
FAMILIES, ATTACK = ("as published", "proven"), "LiRA online (zeta)"


@dataclass(frozen=True)
class Settings:
    """Of a row; a sample of 0 takes all tweets."""

    family: str
    epsilon_vocabulary: float
    epsilon_topics: float
    words: str
    repetitions: int = 10
    models: int = 64
    topics: int = 5
    delta: float = 1e-5
    cutoff: float = 3.0
    document_words: int = 25
    published_sweeps: int = 100
    fpr: float = 0.001
    sample: int = 0


PLAIN = Settings("no privacy", np.inf, np.inf, "target")


def cells():
    """Return what there is to measure."""
    found = [(family, *pair, words) for family in FAMILIES for pair in PAIRS for words in ("own", "target")]
    return [PLAIN, *(Settings(*one) for one in found)]


@cache
def tweets(sample):
    """Return the counts of the tweets; `sample` takes the first ones."""
    texts = tweet_texts()[: sample or None]
    return sp.csr_array(CountVectorizer(token_pattern=r"\S+").fit_transform(texts).astype(np.int32))


def topics_on_all_words(pipeline):
    """Return the topics of a fitted pipeline; words that were not selected have zeros."""
    selected = pipeline[0].get_support()
    table = np.zeros((len(pipeline[-1].topic_word_), len(selected)))
    table[:, selected] = pipeline[-1].topic_word_
    return table


def setting(s):
    """Return the estimator of a cell, and what the experiment needs to know of it."""
    if s.family not in FAMILIES:
        return PrivateCGSLDA(s.topics, epsilon=s.epsilon_topics), {"vocabulary": "target"}
    options = {"delta": s.delta, "cutoff": s.cutoff, "max_words_per_unit": s.document_words, "random_state": 0}
    if s.family == "proven":
        selector = DPVocabularySelector(s.epsilon_vocabulary, method="item_frequency", **options)
        model = PrivateCGSLDA(s.topics, epsilon=s.epsilon_topics, delta=s.delta)
    else:
        selector = PublishedItemFrequencySelector(epsilon=s.epsilon_vocabulary, **options)
        model = PriTopLDA(s.topics, epsilon=s.epsilon_topics, max_iter=s.published_sweeps)
    return make_pipeline(selector, model), {
        "vocabulary": "given",
        "topic_word": topics_on_all_words,
        "selection": s.words,
    }


def place(s):
    """Return the folder of shadow models of a cell; the scores of all repetitions are beside it."""
    return scratch() / "_".join(["fdptm", *map(str, asdict(s).values())]).replace(" ", "_")


def attack(s):
    """Return the values of a row."""
    estimator, options = setting(s)
    found = membership_experiment(
        estimator,
        tweets(s.sample),
        n_models=s.models,
        repetitions=s.repetitions,
        thresholds=(),
        attacks=("online",),
        directory=place(s),
        random_state=0,
        verbose=sys.stderr.isatty(),
        **options,
    )
    at, each = found.tpr_at(ATTACK, s.fpr), [run[ATTACK].auc for run in found.runs]
    np.savez(f"{place(s)}.npz", scores=found[ATTACK].scores, labels=found[ATTACK].labels)
    return {
        "TPR %": 100 * at.rate,
        "low %": 100 * at.low,
        "high %": 100 * at.high,
        "AUC": found[ATTACK].auc,
        "least AUC": min(each),
        "most AUC": max(each),
    }


def curve(s, name):
    """Return a result under a name."""
    with np.load(f"{place(s)}.npz") as kept:
        return AttackResult(kept["scores"], kept["labels"], name)


def draw(tables, folder):
    """Draw one panel for each family and varied epsilon, if all scores are there."""
    print(tables["attacks_fdptm"].to_string(index=False, float_format="{:.3f}".format))
    if not all(Path(f"{place(s)}.npz").exists() for s in cells()):
        return
    from skdplda.plots import AttackRocDisplay

    fig = Figure(figsize=(10, 12), layout="constrained")
    axes = fig.subplots(2, 2)
    for row, family in enumerate(FAMILIES):
        for column, (fixed, varied) in enumerate((("topics", "vocabulary"), ("vocabulary", "topics"))):
            chosen = sorted(pair for pair in PAIRS if pair[1 - column] == 5.0)
            curves = [curve(Settings(family, *pair, "target"), f"{varied} {pair[column]:g}") for pair in chosen]
            meaning = "claims that fail" if family == "as published" else "delta 1e-5 each"
            title = f"{family} ({meaning}): epsilon of the {fixed} 5"
            AttackRocDisplay(results=[curve(PLAIN, PLAIN.family), *curves]).plot(axes[row, column], title=title)
    title = f"TweetRumors, online attack, shadow models with the target's words, {PLAIN.repetitions} repetition(s)"
    fig.suptitle(title, fontsize="small", color="0.35")
    fig.savefig(folder / "attacks_fdptm.png", dpi=130)


TABLES = [
    Table("attacks_fdptm", Settings, cells, attack, lambda s: ["tweets"]),
]
if __name__ == "__main__":
    run(TABLES, __doc__, draw)
