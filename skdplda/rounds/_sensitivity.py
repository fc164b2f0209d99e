"""How much a privacy unit may say: one integer weight for each of its documents."""

import numpy as np
import scipy.sparse as sp

from skdplda._validation import unit_of_documents
from skdplda.rounds._loop import GRID

__all__ = ["unit_weights"]


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
    norm = (counts**order).sum(axis=1) ** (1 / order)
    weight = np.floor(GRID / (np.maximum(norm, least) * (1 + 1e-9)))  # above what rounding may have taken off the norm
    return weight.astype(np.int32)[unit_of_documents(units)]
