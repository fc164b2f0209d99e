"""EM over semantic units: the E-step of the private loop, and what word similarity makes of its tables."""

import numpy as np
import scipy.sparse as sp

from skdplda._kernels._mixture import responsibilities, word_sums
from skdplda._validation import check_groups, unit_of_documents
from skdplda.rounds._sensitivity import equal_contributions
from skdplda.semantics import UnitMatrix

__all__ = ["NOTHING", "UnitStep", "part_of_units"]

NOTHING = np.empty((0, 0))
EVERYONE = np.empty(0, np.uint8)


class UnitStep:
    """E-step of the private loop: each document's responsibilities of topics for its semantic units.

    Parameters
    ----------
    X : UnitMatrix
        The documents.
    privacy_units : tuple of ndarray
        As from `check_groups`.
    n_topics : int
        Number of topics.
    order : {2, None}
        2: a privacy unit's contribution has norm GRID at most, in integers. None: each word counts 1.
    alpha : ndarray of shape (n_topics,)
        Prior of topic proportions.
    beta : float
        Prior of words.
    n_updates : int
        Of a document's topic proportions a round.
    n_threads : int
        The result does not depend on it.
    """

    def __init__(self, X, privacy_units, n_topics, order, alpha, beta, n_updates, n_threads):
        self.n_units = len(privacy_units[0]) - 1
        self._unit = unit_of_documents(privacy_units)
        self._start = X.start
        self._indptr = X.counts.indptr.astype(np.int64)
        self._words = X.counts.indices.astype(np.int32)
        self._counts = X.counts.data.astype(np.float64)
        weighted = X.counts.astype(np.float64)
        if order is not None:
            weighted = equal_contributions(X, privacy_units, order)
        by_word = sp.csc_array(weighted)
        self._by_word = by_word.indptr.astype(np.int64), by_word.indices.astype(np.int32), by_word.data
        self._sum = np.empty((X.shape[1], n_topics), np.float64 if order is None else np.int64)
        self._r = np.empty((X.n_units, n_topics))
        self._theta = np.full((len(X), n_topics), 1 / n_topics)
        self._alpha, self._beta, self._n_updates, self._n_threads = alpha, beta, n_updates, n_threads
        self.log_likelihood = np.empty(len(X))  # of each document under the last table, before the update

    def collect(self, table, round_, active):
        """Share out the active documents' units among topics and return the sum of their contributions."""
        active = EVERYONE if active is None else np.ascontiguousarray(active[self._unit])
        self.divide(self.log_topics(table), self._counts, NOTHING, active)
        word_sums(*self._by_word, self._r, self._sum, self._n_threads)
        return self._sum

    def log_topics(self, table):
        """Return the logarithm of the topics' word probabilities, (n_words, n_topics)."""
        table = np.ascontiguousarray(table, dtype=np.float64) + self._beta
        return np.log(table / table.sum(axis=0))

    def divide(self, log_phi, counts, extra, active=EVERYONE):
        """Compute responsibilities and topic proportions."""
        responsibilities(
            self._start,
            self._indptr,
            self._words,
            counts,
            log_phi,
            extra,
            self._alpha,
            active,
            self._theta,
            self._r,
            self.log_likelihood,
            self._n_updates,
            self._n_threads,
        )

    def arrays(self):
        """Return the hidden state."""
        return {"theta": self._theta}

    def restore(self, arrays):
        """Take the hidden state back."""
        self._theta = np.ascontiguousarray(arrays["theta"])


def part_of_units(X, units, *, first_document=0, randomness, **options):
    """Return the `UnitStep` of a part of a corpus, which has no draws to name."""
    X = X if isinstance(X, UnitMatrix) else UnitMatrix.from_counts(X)
    return UnitStep(X, check_groups(None, len(X)) if units is None else units, **options)
