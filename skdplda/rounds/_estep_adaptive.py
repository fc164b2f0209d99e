"""The E-step of the adaptive loop: beside topics, it answers the questions that decide how the budget is spent."""

import numpy as np
import scipy.sparse as sp

from skdplda._validation import check_groups, unit_of_documents
from skdplda.metrics import score_samples
from skdplda.rounds._sensitivity import GRID, shortened, unit_weights

__all__ = ["AdaptiveEStep"]

# A document's vote is its gain in nats a held-out token, times this, in [-1, 1]; chosen with the votes' share.
VOTES_PER_NAT = 10.0
# Prior of topic proportions when documents judge topics: that of `score`.
JUDGE_PRIOR = 0.1


class AdaptiveEStep:
    """E-step of the private loop for every `Question`; topics are asked of the E-step of the model.

    Parameters
    ----------
    X, units, randomness, n_threads, first_document
        As in `skdplda.rounds.EStep`; X as from `check_counts`, or a `DiskCounts`.
    make : callable
        Returns the model's E-step; takes the same.
    prepare : callable or None, default=None
        `prepare(X, key, numbers)` returns documents as they take part, for the other questions.
    """

    def __init__(self, X, units=None, *, make, randomness, n_threads, first_document=0, prepare=None):
        self._topics = make(X, units, randomness=randomness, n_threads=n_threads, first_document=first_document)
        self.n_units = self._topics.n_units
        self._X, self._units, self._n_threads = X, units, n_threads
        self._randomness, self._first, self._prepare = randomness, first_document, prepare

    def collect(self, question, round_, active):
        """Return the sum of the units' contributions to a question."""
        if question.kind == "topics":
            return self._topics.collect(np.ascontiguousarray(question.table), round_, active)
        total = 0
        for X, units in self._parts():
            total = total + getattr(self, f"_sum_{question.kind}")(X, units, question)
        return total

    def _parts(self):
        """Yield (documents, units): all of them, or the blocks of a file."""
        if sp.issparse(self._X):
            numbers = self._first + np.arange(self._X.shape[0])
            yield self._prepared(self._X, numbers), self._units or check_groups(None, self._X.shape[0])
            return
        for numbers, block in self._X.blocks(None):
            X = self._prepared(shortened(block), numbers)
            yield X, check_groups(None, X.shape[0])

    def _prepared(self, X, numbers):
        return X if self._prepare is None else self._prepare(X, self._randomness.key, numbers)

    def _sum_words(self, X, units, question):
        """Return the sum of word counts, each unit's scaled to the L2 norm GRID, rounded down."""
        weights = unit_weights(X, units, 2).astype(np.int64)
        per_token = np.repeat(weights, np.diff(X.indptr)) * X.data
        total = np.zeros((X.shape[1], 1), np.int64)
        np.add.at(total[:, 0], X.indices, per_token)
        return total

    def _sum_votes(self, X, units, question):
        """Return the sum of votes: each in [-GRID, GRID], the mean of those of a unit's documents."""
        topics = np.ascontiguousarray(question.table.T, np.float64)
        topics = topics / topics.sum(axis=1, keepdims=True)
        words = np.ascontiguousarray(question.table.sum(axis=1)[None], np.float64)
        words = words / words.sum()
        prior, options = np.full(len(topics), JUDGE_PRIOR), {"n_threads": self._n_threads}
        gain = score_samples(X, topics, doc_topic_prior=prior, **options)
        gain = gain - score_samples(X, words, **options)
        votes = np.clip(VOTES_PER_NAT * np.nan_to_num(gain, posinf=0.0, neginf=0.0), -1, 1)
        size = np.diff(units[0])[unit_of_documents(units)]
        return np.trunc(votes * (GRID / size)).astype(np.int64).sum().reshape(1, 1)

    def arrays(self):
        """Return the hidden state."""
        return self._topics.arrays()

    def restore(self, arrays):
        """Restore the hidden state."""
        self._topics.restore(arrays)
