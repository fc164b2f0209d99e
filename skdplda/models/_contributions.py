"""How much a privacy unit may say: the tokens of its documents that count, and one integer weight for each of them."""

import numpy as np
import scipy.sparse as sp

from skdplda._validation import unit_of_documents
from skdplda.models._rounds import GRID
from skdplda.semantics import UnitMatrix

__all__ = ["MOST_TOKENS", "shortened", "unit_weights"]

MOST_TOKENS = 2**20  # of a document that take part: a public number, so that no length makes a fit fail


def shortened(X):
    """Return documents of at most MOST_TOKENS tokens each: longer ones lose tokens evenly, without a word.

    Of n tokens, t of them up to and including a word, floor(t MOST_TOKENS / n) are left up to it. So what is left of a
    document is a function of the document alone, and of no draw.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_words) or UnitMatrix
        Counts.

    Returns
    -------
    X : csr_array or UnitMatrix
        The same object if no document is longer.
    """
    counts, bounds = (X.counts, X.counts.indptr[X.start]) if isinstance(X, UnitMatrix) else (X, X.indptr)
    ends = np.concatenate([[0], np.cumsum(counts.data, dtype=np.int64)])[bounds]
    long = np.flatnonzero(np.diff(ends) > MOST_TOKENS)
    if not len(long):
        return X
    data = counts.data.copy()
    for d in long:
        entries = slice(bounds[d], bounds[d + 1])
        before = np.cumsum(data[entries], dtype=np.int64)
        data[entries] = np.diff(np.floor(before / before[-1] * MOST_TOKENS), prepend=0)
    cut = sp.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)
    if isinstance(X, UnitMatrix):
        return UnitMatrix(X.start, cut)
    cut.indptr, cut.indices = X.indptr, X.indices  # the constructor may narrow them
    return cut


def unit_weights(X, units, order, least=1.0):
    """Return what each token of a document adds to a sum: one integer a document, the same for all of its unit.

    A unit's counts of (word, topic) have at most the norm of its counts of words, whatever the topics are; the weight
    brings that norm to GRID, rounded down.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_words)
        As from `check_counts`.
    units : tuple of ndarray
        As from `check_groups`.
    order : {1, 2}
        Of the norm.
    least : float, default=1.0
        At least 1. Units of a smaller norm have the weight of this one: their norm stays below GRID.

    Returns
    -------
    weight : ndarray of shape (n_documents,), int32
        0 where the norm exceeds GRID.
    """
    start, documents = units
    n_units = len(start) - 1
    counts = sp.csr_array((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
    if n_units < len(documents):
        members = sp.csr_array((np.ones(len(documents)), documents, start), shape=(n_units, len(documents)))
        counts = members @ counts
    total = (counts**order).sum(axis=1)
    norm = np.maximum(total ** (1 / order), least)
    weight = np.floor(GRID / (norm * (1 + 1e-9)))  # above what rounding may have taken off the norm
    weight[weight**order * total > GRID**order] = 0  # never; whole numbers below 2**53, so this is exact
    return weight.astype(np.int32)[unit_of_documents(units)]
