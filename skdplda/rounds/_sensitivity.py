"""How much a privacy unit may say: one integer weight for each of its documents."""

import numpy as np
import scipy.sparse as sp

from skdplda._validation import unit_of_documents

__all__ = ["GRID", "UNIT", "equal_contributions", "unit_weights", "word_weights"]

GRID = 2**20  # norm of a unit's contribution: sums are integers, in units of 1 / GRID of a unit
UNIT = 5.0  # a unit's contribution in the tables: a document of 25 different words counts each once
MARGIN = 1e-9  # of a contribution: above what floating point may add to responsibilities and shares that sum to 1


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


def equal_contributions(X, privacy_units, order):
    """Return what each word of each semantic unit adds to the sums, over all topics.

    A word that stands c times in a document adds sqrt(c) in all: shares of 1 / sqrt(c) a time. Then the cells (word,
    topic) of a privacy unit have at most the norm of its words' square roots, whatever the topics are; the integer
    weight brings that norm to GRID. Rounding every term towards zero cannot make it larger. (Repeated words would
    take most of the norm, and of the noise, for themselves.)

    Parameters
    ----------
    X : UnitMatrix
        The documents.
    privacy_units : tuple of ndarray
        As from `check_groups`.
    order : {1, 2}
        Of the norm.

    Returns
    -------
    weighted : csr_array of shape (n_units, n_words), float64
        Zero in the units of a privacy unit whose norm exceeds GRID.
    """
    damped, counts = X.to_counts().astype(np.float64), X.counts.tocoo()
    damped.data = np.sqrt(damped.data)
    weight = unit_weights(damped, privacy_units, order)
    document = np.repeat(np.arange(len(X)), np.diff(X.start))[counts.row]
    # Each entry's cell of the document-word matrix, found in the sorted list of them.
    cells = np.repeat(np.arange(len(X)), np.diff(damped.indptr)) * X.shape[1] + damped.indices
    cell = np.searchsorted(cells, document * X.shape[1] + counts.col)
    data = counts.data / damped.data[cell] * (weight[document] * (1 - MARGIN))
    return sp.csr_array((data, X.counts.indices, X.counts.indptr), shape=X.counts.shape)


def word_weights(table):
    """Return the weight of each word in a contribution, (n_words,): rare words speak up, from the public table alone.

    The fourth root evens out the noise: a word's release is divided by its weight.
    """
    frequency = np.maximum(table.sum(axis=1, dtype=np.float64), 1e-9)
    return np.clip((frequency / frequency.mean()) ** -0.25, 0.2, 5).astype(np.float32)
