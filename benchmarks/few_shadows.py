"""Attacks with few shadow models on TweetRumors: members found at 0.1 % false alarms, by number of shadow models.

Three statistics stand beside zeta. "mean_topic" is the log-likelihood of a document under the mean of all topics: with
few models, its best mixture of topics is the noisier number. "rare_words" is the same with each word weighted by one
over the root of the number of documents that have it, and "shared_words" is that without words of one document alone,
since the vocabulary names these documents by itself. All were chosen on the first repetition.

The corpus, the model (scikit-learn's LatentDirichletAllocation, 5 topics) and the targets' halves are those of
benchmarks/reproduce/attacks_manzonelli.py, whose table has LiRA with 128 shadow models. Intervals are those over
repetitions. Shadow models are kept in SKDPLDA_SCRATCH: the same command goes on, and more models take those of fewer.

    SKDPLDA_SCRATCH=shadows python benchmarks/few_shadows.py
"""

import sys
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from apart import scratch
from corpora import tweet_texts
from results import Table, run
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

from skdplda.attacks import ExperimentResults, bayesian_ratio_attack, membership_experiment

LEAST = 1e-12  # of a probability in a logarithm


@dataclass(frozen=True)
class Settings:
    """Of the rows of one experiment; a sample of 0 takes all tweets."""

    models: int = 16
    repetitions: int = 5
    topics: int = 5
    fpr: float = 0.001
    sample: int = 0


def cells():
    """Return what there is to measure."""
    return [Settings()]


def mean_topic(topic_word, X):
    """Return documents' log-likelihoods under the mean of all topics."""
    return X @ np.log(topic_word.mean(axis=0) + LEAST)


def rare_words(topic_word, X, least=1):
    """Return documents' weighted log-likelihoods, by word: rare words weigh more."""
    documents = np.bincount(X.indices, minlength=X.shape[1])
    weights = np.where(documents >= least, 1 / np.sqrt(np.maximum(documents, 1)), 0)
    return (X > 0) @ (weights * np.log(topic_word.mean(axis=0) + LEAST))


def shared_words(topic_word, X):
    """Return the same of words that other documents have, too."""
    return rare_words(topic_word, X, 2)


STATISTICS = ("zeta", mean_topic, rare_words, shared_words)
TOGETHER = (("zeta", mean_topic), ("zeta", rare_words))  # as if they were independent


def judge(s):
    """Return the results of all attacks."""
    texts = tweet_texts()[: s.sample or None]
    X = sp.csr_array(CountVectorizer(token_pattern=r"\S+").fit_transform(texts).astype(np.int32))
    X = X[np.flatnonzero(np.asarray(X.sum(axis=1)).ravel() > 0)]
    together = []

    def callback(members, documents, table, shadows):
        asked = (table, documents, members, shadows)
        found = [bayesian_ratio_attack(*asked, statistics=names) for names in TOGETHER]
        together.append({result.name: result for result in found})

    results = membership_experiment(
        LatentDirichletAllocation(s.topics, random_state=0),
        X,
        n_models=s.models,
        repetitions=s.repetitions,
        statistics=STATISTICS,
        attacks=("online", "offline", "bayesian", "relative"),
        proportions="maximum",
        directory=scratch() / f"tweets_{s.topics}_{X.shape[0]}",
        random_state=0,
        callback=callback,
        verbose=sys.stderr.isatty(),
    )
    return ExperimentResults([{**run, **more} for run, more in zip(results.runs, together, strict=True)])


def measure(s):
    """Return a row for each attack."""
    results, rows = judge(s), []
    for name in results:
        at = results.tpr_at(name, s.fpr)
        each = [run[name].tpr_at(s.fpr).rate for run in results.runs]
        rows.append(
            {
                "attack": name,
                "TPR %": 100 * at.rate,
                "low %": 100 * at.low,
                "high %": 100 * at.high,
                "least %": 100 * min(each),
                "most %": 100 * max(each),
                "AUC": results[name].auc,
            }
        )
    return rows


TABLES = [
    Table("attacks_few_shadows", Settings, cells, measure, lambda s: ["tweets"]),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
