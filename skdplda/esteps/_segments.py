"""The E-step of the private loop for segments, which PCTD calls semantic units: each has one topic."""

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import log, total
from skdplda._kernels._mixture import responsibilities, word_sums
from skdplda._validation import check_groups, unit_of_documents
from skdplda.rounds._bounds import bounded_elsewhere, equal_contributions
from skdplda.rounds._checkpoint import held
from skdplda.semantics import UnitMatrix

NOTHING = np.empty((0, 0))
EVERYONE = np.empty(0, np.uint8)


class SegmentEStep:
    """E-step of the private loop: the responsibilities of topics for each document's segments.

    X is a `UnitMatrix`, or word counts, of which each token is a segment; `units`, `n_threads` and `first_document` are
    as in `skdplda.rounds.EStep`, and nothing is drawn. With an `order` of 2 the contribution of a privacy unit has L2
    norm NORM_BOUND at most, in integers; with None each word counts 1. `alpha`, (n_topics,), and `beta` are the priors
    of topic proportions and of words. A document's topic proportions are updated `n_updates` times a round.
    """

    def __init__(
        self, X, units=None, *, n_topics, order, alpha, beta, n_updates, n_threads, randomness=None, first_document=0,
    ):  # fmt: skip
        X = X if isinstance(X, UnitMatrix) else UnitMatrix.from_counts(X)
        units = check_groups(None, len(X)) if units is None else units
        self.n_units = len(units[0]) - 1
        self._unit, self._order = unit_of_documents(units), order
        self._start = X.start
        self._indptr = X.counts.indptr.astype(np.int64)
        self._words = X.counts.indices.astype(np.int32)
        self._counts = X.counts.data.astype(np.float64)
        weighted = X.counts.astype(np.float64)
        if order is not None:
            weighted = equal_contributions(X, units, order)
        by_word = sp.csc_array(weighted)
        self._by_word = by_word.indptr.astype(np.int64), by_word.indices.astype(np.int32), by_word.data
        self._shape = X.shape[1], n_topics
        self._responsibilities = np.empty((X.n_units, n_topics))
        self._theta = np.full((len(X), n_topics), 1 / n_topics)
        self._alpha, self._beta, self._n_updates, self._n_threads = alpha, beta, n_updates, n_threads
        self.log_likelihood = np.empty(len(X))  # of each document under the last table, before the update

    def collect(self, query, round_, active):
        """Infer the topics of the active documents' segments and return the sum of their contributions."""
        active = EVERYONE if active is None else np.ascontiguousarray(active[self._unit])
        self.infer(self.log_topics(query.table), self._counts, NOTHING, active)
        exact = self._order is None
        found = np.empty(self._shape, np.float64 if exact else np.int64)
        word_sums(*self._by_word, self._responsibilities, found, self._n_threads)
        return found if exact else bounded_elsewhere(found, self._order, self.n_units)

    def log_topics(self, table):
        """Return the logarithm of the topics' word probabilities, (n_words, n_topics)."""
        table = np.ascontiguousarray(table, dtype=np.float64) + self._beta
        return log(table / total(table, axis=0))

    def infer(self, log_phi, counts, extra, active=EVERYONE):
        """Compute responsibilities and topic proportions; `extra` is added to the segments' log-likelihoods."""
        responsibilities(
            self._start, self._indptr, self._words, counts, log_phi, extra, self._alpha, active,
            self._theta, self._responsibilities, self.log_likelihood, self._n_updates, self._n_threads,
        )  # fmt: skip

    def arrays(self):
        """Return the hidden state."""
        return {"theta": self._theta}

    def restore(self, arrays):
        """Restore the hidden state."""
        theta = held(arrays, "theta", self._theta.shape, np.float64, least=0)
        self._theta = np.ascontiguousarray(theta)
