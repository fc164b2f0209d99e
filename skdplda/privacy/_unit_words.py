"""The words of privacy units, and the sums over units from which words are selected."""

from typing import Any

import numpy as np

from skdplda._kernels import _partition  # type: ignore[attr-defined]

FILLS = {
    "policy_gaussian": _partition.fill_gaussian,
    "policy_laplace": _partition.fill_level,
    "item_frequency": _partition.fill_first,
}


class UnitWords:
    """The words that privacy units use, at most `most` of each. Methods return sums over units, still without noise.

    `start`, `words` and `counts` are as in `select_partitions`. A unit keeps words at random: the draws follow from the
    key and the unit's number, which `numbers` has where the units are a part of all.
    """

    def __init__(
        self,
        start: np.ndarray,
        words: np.ndarray,
        counts: np.ndarray | None,
        n_words: int,
        most: int,
        key: int,
        numbers: np.ndarray | None = None,
    ) -> None:
        kept = _partition.truncate(start, words, counts, most, key, numbers)
        self._start = np.concatenate([[0], np.cumsum(np.minimum(np.diff(start), most))]).astype(np.int64)
        self._words, self._n_words, self._key = words if kept.all() else words[kept], n_words, key
        self._counts = None if counts is None else counts[kept]

    def used(self) -> np.ndarray:
        """Return for each word, int64, a positive number if a unit uses it, else 0."""
        flags = np.zeros(self._n_words, dtype=np.int64)
        flags[self._words] = 1
        return flags

    def shared(self, active: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Add up weights, of shape (n_words,), where a unit with n active words gives share[n] to each of them.

        `active`, uint8, is 1 for the words that take part; `share`, int64, has the shape (most + 1,).
        """
        total = np.zeros(self._n_words, dtype=np.int64)
        _partition.share_equally(self._start, self._words, np.array(active), np.array(share), total)
        return total

    def size(self) -> np.ndarray:
        """Return the number of units, of shape (1,)."""
        return np.array([len(self._start) - 1])

    def rerouted(self, active: np.ndarray, share: np.ndarray, back: np.ndarray, back_share: np.ndarray) -> np.ndarray:
        """Add up weights, of shape (n_words,), where a unit also gives what comes back to it.

        A unit with n active words gives share[n] to each of them, and back_share[n] times the sum of `back` over them,
        rounded down. `active` and `share` are as in `shared`; `back`, of shape (n_words,), has the part of a word's
        weight that comes back; `back_share` has the shape of `share`.
        """
        total = np.zeros(self._n_words, dtype=np.int64)
        given = (np.array(array) for array in (active, share, back, back_share))
        _partition.reroute(self._start, self._words, *given, total)
        return total

    def filled(self, plan: Any) -> np.ndarray:
        """Add up weights, of shape (n_words,), where units give one after the other, by a plan of `IN_TURN`."""
        total, words, n_units = np.zeros(self._n_words, dtype=np.int64), self._words, len(self._start) - 1
        if plan.by_frequency:  # ties stay in their random order
            words = words[np.lexsort((-self._counts, np.repeat(np.arange(n_units), np.diff(self._start))))]
        order = np.random.default_rng(self._key).permutation(n_units)
        FILLS[plan.method](self._start, words, order, plan.cap, plan.grid, total)
        return total
