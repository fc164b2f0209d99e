"""Contribution bounding: what a privacy unit may add to a released sum, in integers on a fixed-point grid."""

import numpy as np
import scipy.sparse as sp

from skdplda._validation import unit_of_documents
from skdplda.semantics import UnitMatrix

__all__ = ["GRID", "MOST_TOKENS", "UNIT", "equal_contributions", "shortened", "unit_weights", "word_weights"]

GRID = 2**20  # norm of a unit's contribution: sums are integers, in units of 1 / GRID of a unit
UNIT = 5.0  # a unit's contribution in the tables: a document of 25 different words counts each once
MOST_TOKENS = 2**20  # of a document that take part: a public number, so that no length makes a fit fail
MARGIN = 1e-9  # of a contribution: above what floating point may add to responsibilities and shares that sum to 1


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
    # What was used is what is bounded: the numbers themselves, added up by word of the privacy unit.
    unit = unit_of_documents(privacy_units)
    mass = sp.csr_array((np.bincount(cell, data, len(cells)), damped.indices, damped.indptr), shape=damped.shape)
    shape = len(privacy_units[0]) - 1, len(unit)
    members = sp.csr_array((np.ones(len(unit)), (unit, np.arange(len(unit)))), shape=shape)
    data[((members @ mass) ** order).sum(axis=1)[unit][document] > GRID**order] = 0
    return sp.csr_array((data, X.counts.indices, X.counts.indptr), shape=X.counts.shape)


def word_weights(table):
    """Return the weight of each word in a contribution, (n_words,): rare words speak up, from the public table alone.

    The fourth root evens out the noise: a word's release is divided by its weight.
    """
    frequency = np.maximum(table.sum(axis=1, dtype=np.float64), 1e-9)
    return np.clip((frequency / frequency.mean()) ** -0.25, 0.2, 5).astype(np.float32)
