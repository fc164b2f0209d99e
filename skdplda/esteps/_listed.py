"""The Gibbs E-step of many topics without noise: tables as lists of the topics that each word has."""

import numpy as np
import scipy.sparse as sp

from skdplda._kernels._listed import ListedTokens
from skdplda._validation import check_groups, unit_of_documents
from skdplda.exact._expected import ExpectedTopics
from skdplda.exact._seeds import SeedCounts
from skdplda.rounds._checkpoint import checked_array


class ListedEStep:
    """E-step of the loop without noise: local sweeps of delayed-count Gibbs sampling, as `GibbsEStep` with order None.

    The law of the draws and the parameters are the same. A token costs the topics that its word has, and no step of a
    round visits all words times all topics.
    """

    def __init__(
        self, X, units=None, *, n_topics, priors, n_sweeps, first_expected=None, randomness, n_threads, first_document=0
    ):  # fmt: skip
        units = check_groups(None, X.shape[0]) if units is None else units
        self.n_units, self._unit = len(units[0]) - 1, unit_of_documents(units)
        self._X, self._shape = X, (X.shape[1], n_topics)
        self._tokens = ListedTokens(X.indptr, X.indices, X.data, *self._shape, n_threads)
        self._priors, self._n_sweeps = priors, n_sweeps
        self._first_expected, self._expected = first_expected, ExpectedTopics(X, n_topics, n_threads)
        self._randomness, self._n_threads, self._first = randomness, n_threads, first_document

    def collect(self, query, round_, active):
        """Sample the active units' topics from the table and return the sum of all: csr_array, (n_words, n_topics).

        In rounds of expected counts, the sums that `ExpectedTopics` collects.
        """
        if isinstance(query, SeedCounts):
            return query.total(self._X, self._unit)
        active = None if active is None else active[self._unit]
        table, (alpha, beta) = query.table, self._priors(round_)
        if self._first_expected is not None and round_ >= self._first_expected:
            if self._tokens is not None:
                topics, self._tokens = self._tokens.topics, None  # it will not be needed again
                self._expected.start(topics)
                del topics
            return self._expected.collect(table, alpha, beta)
        table = sp.csr_array(table)
        self._tokens.sweep(
            table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data, alpha.astype(np.float32), beta,
            1.0, self._n_sweeps, self._randomness.key, round_, active, self._n_threads, self._first,
        )  # fmt: skip
        return self._total()

    def _total(self):
        start, topics, counts = self._tokens.sums(self._n_threads)
        return sp.csr_array((counts, topics, start), self._shape)

    def arrays(self):
        """Return the hidden state."""
        return self._expected.arrays() or {"topics": self._tokens.topics}

    def restore(self, arrays):
        """Restore the hidden state."""
        self._tokens.set_topics(checked_array(arrays, "topics", self._tokens.topics.shape, np.uint16))
        self._expected.restore(arrays)
