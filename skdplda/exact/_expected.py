"""The last rounds without noise: expected topic counts, in place of the tokens' topics."""

import numpy as np

from skdplda._kernels._expected import ExpectedCounts, next_table
from skdplda.rounds._checkpoint import checked_array

# Rounds at most, times the topics at most, and of how many rounds one, rounded up: doc/kernels.rst, "Expected counts".
EXPECTED_ROUNDS, ROUNDS_TOPICS, ONE_OF = 8, 20_000, 4
MOST_TOPICS = 65520  # that the kernel takes
LEAST_ALPHA = 1e-3  # that its grid has digits for: a token's part of alpha is a whole number there
BLOCK = 8192  # documents at most of one thread's share of the work


def first_expected(n_rounds, n_topics, alpha):
    """Return the number of the first round of expected counts.

    None for a single round, for too many topics, and for an alpha, of shape (n_topics,), that is nearly nothing.
    """
    n_expected = min(EXPECTED_ROUNDS, max(1, ROUNDS_TOPICS // n_topics), -(-n_rounds // ONE_OF))
    takes = n_rounds > 1 and n_topics <= MOST_TOPICS and np.min(alpha) >= LEAST_ALPHA
    return n_rounds - n_expected if takes else None


class ExpectedTopics:
    """What documents contribute to the last rounds, given the topics that their tokens have in the end.

    X has counts, as from `check_counts`; the others are as in `GibbsEStep`.
    """

    def __init__(self, X, n_topics, n_threads):
        self._X, self._n_topics, self._n_threads, self._counts = X, n_topics, n_threads, None

    def start(self, topics):
        """Begin with the topics that tokens have, unless it goes on from what was restored."""
        if self._counts is None:
            self._counts = self._start(topics)

    def collect(self, table, alpha, beta):
        """Return the sums that `expected_table` makes the next table of."""
        return self._counts.collect(table, alpha.astype(np.float32), beta, self._n_threads)

    def _start(self, topics, resumed=None):
        block = max(1, min(BLOCK, -(-self._X.shape[0] // self._n_threads)))
        return ExpectedCounts(self._X, topics, self._n_topics, block, resumed)

    def arrays(self):
        """Return the hidden state, once there is one."""
        return {} if self._counts is None else {"topics": self._counts.topics(self._X), "expected": self._counts.tokens}

    def restore(self, arrays):
        """Restore the hidden state."""
        if "expected" in arrays:
            counts = checked_array(arrays, "expected", (None,), np.float32, least=0)
            self._counts = self._start(arrays["topics"], counts)


def expected_table(sums, table, alpha, beta):
    """Make the next table, of expected counts, of the sums that were collected from a table, in its place."""
    return next_table(sums, table, alpha.astype(np.float32), beta)
