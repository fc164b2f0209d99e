"""N-grams by levels: those of n words are made of released n-grams of n - 1 words (theory guide, Theorem 8)."""

import numpy as np
import scipy.sparse as sp

from skdplda._reading import ReadTexts

LONGEST_WORD = 1000  # characters; longer ones are no words of a language, and are left out. Not tuned.


class Tokens:
    """The words of documents in their order; then n-grams of released words, level by level.

    A level's n-grams are those that start and end with a released n-gram of the level before, which are functions of a
    document's own text and of what was released.
    """

    def __init__(self, read: ReadTexts) -> None:
        numbers, sizes = map(np.concatenate, zip(*read.parts, strict=True))
        self.names = read.names  # of the n-grams of this level
        self._last = self.names  # the last word of each
        self._starts = numbers  # -1: no n-gram here
        self._document = np.repeat(np.arange(len(sizes)), sizes)
        self._n_documents = len(sizes)

    def counts(self) -> sp.csr_array:
        """Return how often each document has each n-gram of this level, of shape (n_documents, n_grams)."""
        here = self._starts >= 0
        rows, columns = self._document[here], self._starts[here]
        shape = (self._n_documents, len(self.names))
        return sp.csr_array((np.ones(rows.size, np.int32), (rows, columns)), shape=shape)

    def ascend(self, released: np.ndarray) -> None:
        """Go to the next level, where `released` has the numbers of this level's n-grams that were released."""
        kept = np.full(len(self.names) + 1, -1)  # the last one is for -1
        kept[released] = np.arange(len(released))
        starts, after = kept[self._starts], np.full(self._starts.size, -1)
        after[:-1] = starts[1:]
        after[:-1][self._document[:-1] != self._document[1:]] = -1
        both = (starts >= 0) & (after >= 0)
        pairs, numbers = np.unique(starts[both] * max(len(released), 1) + after[both], return_inverse=True)
        first, second = np.divmod(pairs, max(len(released), 1))
        names, last = [self.names[j] for j in released], [self._last[j] for j in released]
        self.names = [f"{names[i]} {last[j]}" for i, j in zip(first, second, strict=True)]
        self._last = [last[j] for j in second]
        self._starts = np.full(starts.size, -1)
        self._starts[both] = numbers
