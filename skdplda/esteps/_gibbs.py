"""The Gibbs E-step of the private loop: what stays hidden, and what a unit contributes."""

from functools import partial

import numpy as np

from skdplda._kernels._gibbs import TokenBlocks
from skdplda._validation import check_groups, unit_of_documents
from skdplda.exact._expected import ExpectedTopics
from skdplda.exact._inferred import InferredPriors
from skdplda.exact._seeds import SeedCounts
from skdplda.rounds._bounds import bounded_by_kernel, unit_weights
from skdplda.rounds._checkpoint import checked_array


class GibbsEStep:
    """E-step of the private loop: local sweeps of delayed-count Gibbs sampling.

    All documents draw from the table of the last round, as the processors of AD-LDA do [1]_.

    Parameters
    ----------
    X, units, randomness, n_threads, first_document
        As in `skdplda.rounds.EStep`; X as from `check_counts`.
    n_topics : int
        Number of topics.
    order : {1, 2, None}
        Norm in which a unit's contribution is bounded by NORM_BOUND. None: each token counts 1, and the sum is the next
        table, so that draws need the self-count correction.
    priors : callable
        Returns alpha, of shape (n_topics,), and beta of a round.
    n_sweeps : int
        Local sweeps a round.
    first_expected : int or None, default=None
        Number of the first round of `ExpectedTopics`, if there is one. Only with order None.

    References
    ----------
    .. [1] D. Newman, A. Asuncion, P. Smyth, M. Welling (2009). Distributed algorithms for topic models. JMLR 10.
    """

    def __init__(
        self, X, units=None, *, n_topics, order, priors, n_sweeps, first_expected=None, randomness,
        n_threads, first_document=0,
    ):  # fmt: skip
        units = check_groups(None, X.shape[0]) if units is None else units
        self.n_units = len(units[0]) - 1
        self._unit, self._order = unit_of_documents(units), order
        self._exact = order is None
        self._weight = None if order is None else unit_weights(X, units, order)
        self._tokens = TokenBlocks(X.indptr, X.indices, X.data, X.shape[1], n_topics, n_threads)
        self._sum = np.zeros((X.shape[1], n_topics), np.int32) if order is None else None  # running counts
        self._X, self._shape = X, (X.shape[1], n_topics)
        self.priors, self._n_sweeps = priors, n_sweeps
        self._first_expected, self._expected = first_expected, ExpectedTopics(X, n_topics, n_threads)
        self._randomness, self._n_threads = randomness, n_threads
        self._first = first_document

    def collect(self, query, round_, active):
        """Sample the active units' topics from the table and return the sum of their contributions."""
        if isinstance(query, SeedCounts):
            return query.total(self._X, self._unit).toarray()
        key, n_threads = self._randomness.key, self._n_threads
        active = None if active is None else active[self._unit]
        table = query.table
        self_count = 1.0 if self._exact else 0.0
        alpha, beta = self.priors(round_)
        alpha = alpha.astype(np.float32)
        if self._first_expected is not None and round_ >= self._first_expected:
            if self._tokens is not None:
                topics, self._tokens, self._sum = self._tokens.topics, None, None  # they will not be needed again
                self._expected.start(topics)
                del topics
            return self._expected.collect(table, alpha, beta)
        self._tokens.sweep(
            table, alpha, beta, self_count, self._n_sweeps, key, round_, active, n_threads, first_document=self._first
        )
        if self._exact:
            self._tokens.move(self._sum, n_threads)
            if isinstance(self.priors, InferredPriors):
                self.priors.update(round_, partial(self._tokens.document_topics, n_threads), self._sum)
            return self._sum
        found = np.zeros(self._shape, np.int64)
        weight = self._weight if active is None else self._weight * active
        self._tokens.sum_weighted(found, weight, n_threads)
        return bounded_by_kernel(found, self._order, self.n_units)

    def arrays(self):
        """Return the hidden state."""
        state = self._expected.arrays() or {"topics": self._tokens.topics}
        if isinstance(self.priors, InferredPriors):
            state |= self.priors.arrays()
        return state

    def restore(self, arrays):
        """Restore the hidden state."""
        self._tokens.set_topics(checked_array(arrays, "topics", self._tokens.topics.shape, np.uint16))
        self._expected.restore(arrays)
        if isinstance(self.priors, InferredPriors):
            self.priors.restore(arrays)
        if self._exact:
            counts = np.zeros(self._sum.shape, np.int64)
            self._tokens.sum_weighted(counts, np.ones(len(self._unit), np.int32), self._n_threads)
            self._sum[:] = counts
