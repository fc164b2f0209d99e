"""The E-step of the private loop for segments, which PCTD calls semantic units: each has one topic."""

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import log, matmul, total
from skdplda._kernels._mixture import responsibilities, scaled_sums
from skdplda._validation import check_groups, unit_of_documents
from skdplda.rounds._bounds import NORM_BOUND, bounded_by_kernel
from skdplda.rounds._checkpoint import checked_array
from skdplda.semantics import UnitMatrix

NOTHING = np.empty((0, 0))
EVERYONE = np.empty(0, np.uint8)


def cells_of(X, unit, n_units):
    """Return what segments add to words of privacy units, as `scaled_sums` takes it.

    A word that occurs c times in a document adds sqrt(c) in all, 1 / sqrt(c) each time, because repeated words would
    otherwise take most of the norm. `unit` has the privacy unit of each document.
    """
    counts = X.counts.tocoo()
    document = np.repeat(np.arange(len(X)), np.diff(X.start))[counts.row]
    place = np.unique(document * X.shape[1] + counts.col, return_inverse=True)[1]
    times = np.maximum(np.bincount(place, counts.data), 1)[place]  # whole numbers: exact
    cells, cell = np.unique(unit[document] * X.shape[1] + counts.col, return_inverse=True)
    parts = sp.csr_array((counts.data / np.sqrt(times), (cell, counts.row)), shape=(len(cells), X.n_units))
    units = np.searchsorted(cells // X.shape[1], np.arange(n_units + 1))
    indices = parts.indptr.astype(np.int64), parts.indices.astype(np.int32)
    return units, *indices, parts.data, (cells % X.shape[1]).astype(np.int32)


class SegmentEStep:
    """E-step of the private loop: the responsibilities of topics for each document's segments.

    X is a `UnitMatrix`, or word counts, of which each token is a segment; `units`, `n_threads` and `first_document` are
    as in `skdplda.rounds.EStep`, and nothing is drawn. If `bounded`, what a privacy unit contributes is scaled to the
    L2 norm NORM_BOUND, in integers; else each word counts 1. `alpha`, (n_topics,), and `beta` are the priors of topic
    proportions and of words. A document's topic proportions are updated `n_updates` times a round.
    """

    def __init__(
        self, X, units=None, *, n_topics, bounded, alpha, beta, n_updates, n_threads, randomness=None, first_document=0,
    ):  # fmt: skip
        X = X if isinstance(X, UnitMatrix) else UnitMatrix.from_counts(X)
        units = check_groups(None, len(X)) if units is None else units
        self.n_units = len(units[0]) - 1
        self._unit, self._bounded = unit_of_documents(units), bounded
        self._start = X.start
        self._indptr = X.counts.indptr.astype(np.int64)
        self._words = X.counts.indices.astype(np.int32)
        self._counts = X.counts.data.astype(np.float64)
        if bounded:
            self._cells = cells_of(X, self._unit, self.n_units)
        else:
            self._by_word = sp.csr_array(X.counts.astype(np.float64).T)
        self._shape = X.shape[1], n_topics
        self._responsibilities = np.empty((X.n_units, n_topics))
        self._theta = np.full((len(X), n_topics), 1 / n_topics)
        self._alpha, self._beta, self._n_updates, self._n_threads = alpha, beta, n_updates, n_threads
        self.log_likelihood = np.empty(len(X))  # of each document under the last table, before the update

    def collect(self, query, round_, active):
        """Infer the topics of the active documents' segments and return the sum of their contributions."""
        active = EVERYONE if active is None else np.ascontiguousarray(active[self._unit])
        self.infer(self.log_topics(query.table), self._counts, NOTHING, active)
        if not self._bounded:
            return matmul(self._by_word, self._responsibilities, self._n_threads)
        found = np.empty(self._shape, np.int64)
        scaled_sums(*self._cells, self._responsibilities, NORM_BOUND, found, self._n_threads)
        return bounded_by_kernel(found, 2, self.n_units)

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
        theta = checked_array(arrays, "theta", self._theta.shape, np.float64, least=0)
        self._theta = np.ascontiguousarray(theta)
