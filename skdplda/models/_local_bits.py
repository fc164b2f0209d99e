"""The bits of reports that are one, and the topics drawn for them: here, or on workers."""

from functools import partial

import numpy as np

from skdplda._kernels._gibbs import TokenBlocks

__all__ = ["Bits", "ShardedBits", "presence"]


def presence(X):
    """Return counts as ones, without stored zeros."""
    X = X.copy()
    X.data = np.minimum(X.data, 1)
    X.eliminate_zeros()
    X.indptr = X.indptr.astype(np.int64)
    return X


class Bits:
    """Bits on this machine.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_words)
        Ones, and no stored zeros.
    n_topics : int
        That of the noise included.
    n_threads : int
        The result does not depend on it.
    first_document, longest : int, default=0
        As in `GibbsStep`.
    """

    def __init__(self, X, n_topics, n_threads, first_document=0, longest=0):
        rows = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.int32)
        self._tokens = TokenBlocks(*rows, X.shape[1], n_topics, n_threads)
        self._counts = np.zeros((X.shape[1], n_topics), np.int32)
        self._place, self._n_threads = {"first_document": first_document, "longest": longest}, n_threads

    def draw(self, table, alpha, beta, key, number, totals):
        """Draw all topics and return their counts, (n_words, n_topics)."""
        self._tokens.sweep(table, alpha, beta, 1.0, 1, key, number, None, self._n_threads, totals, **self._place)
        self._tokens.move(self._counts, self._n_threads)
        return self._counts


class PartOfBits(Bits):
    """On a worker: the reports of one part."""

    def __init__(self, X, *, units, first_document, longest, n_threads, n_topics):
        if X.nnz and X.data.max() > 1:
            raise ValueError(f"X must hold presence bits, ones and zeros; got a count of {X.data.max()}.")
        X = presence(X)
        super().__init__(X, n_topics, n_threads, first_document, longest)
        self._ones = np.asarray(X.sum(axis=0), dtype=np.int64).ravel()

    def ones(self):
        """Return how many reports have each bit."""
        return self._ones


class ShardedBits:
    """`Bits` of reports on workers.

    Parameters
    ----------
    documents : ShardedDocuments
        The reports.
    n_topics : int
        As in `Bits`.
    """

    def __init__(self, documents, n_topics):
        self.shape, self._crew = documents.shape, documents.crew
        self._crew.build(partial(PartOfBits, n_topics=n_topics), documents.arguments())

    def ones(self):
        """Return how many reports have each bit."""
        return self._crew.total("ones", ())

    def draw(self, *public):
        """Draw all topics and return their counts, (n_words, n_topics)."""
        return self._crew.total("draw", public)
