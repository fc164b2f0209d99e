"""The first topics of fits without noise: units chosen at random, each of which is one."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from skdplda._rows import rows_of


@dataclass(frozen=True)
class SeedCounts:
    """The words of each of `n_topics` units, as of a topic.

    `shape` is (n_words, n_topics), and `topics` has the topic of each unit, or -1.
    """

    shape: tuple
    topics: np.ndarray

    def total(self, X, unit):
        """Return the counts, csr_array: rows of X, as in `GibbsEStep`, are of the units that `unit` says."""
        topic = self.topics[unit]
        row = np.flatnonzero(topic >= 0)
        if not len(row):  # of a part of the documents
            return sp.csr_array(self.shape, dtype=np.int32)
        numbers = topic[row], np.arange(len(row))
        of_topics = sp.csr_array((np.ones(len(row), np.int32), numbers), shape=(self.shape[1], len(row)))
        return sp.csr_array((of_topics @ rows_of(X, row)).T, dtype=np.int32)


def drawn_seeds(shape, n_units, key):
    """Return `SeedCounts` of as many units as topics, chosen at random."""
    order = np.argsort(np.random.PCG64(key).random_raw(n_units), kind="stable")
    topics = np.full(n_units, -1, np.int32)
    topics[order[: shape[1]]] = np.arange(shape[1])
    return SeedCounts(shape, topics)
