"""Contribution bounding: what a privacy unit may add to a released sum, in integers on a fixed-point grid.

Documents that contribute soft counts, the default of `PrivateCGSLDA` and `VIPSLDA`, are scaled to the norm GRID in the
kernel itself: `add_scaled_soft_counts` of `_kernels/variational_document.h`.
"""

import numpy as np
import scipy.sparse as sp

from skdplda._validation import unit_of_documents
from skdplda.semantics import UnitMatrix

__all__ = ["GRID", "MOST_TOKENS", "NORM_BOUND", "equal_contributions", "shortened", "unit_weights", "word_weights"]

# Norm bound of a privacy unit's contribution in fixed point: sums are integers, and 1 / GRID is the resolution. Large,
# so that rounding is far below the noise; small enough that the sum of 2**40 units fits into 64 bits.
GRID = 2**20
# What GRID stands for in the tables, in tokens. Only its size relative to the priors matters. By definition, a document
# of 25 different words counts each of them once (its L2 norm is 5).
NORM_BOUND = 5.0
# The most tokens of a document that take part: a public number, so that no length makes a fit fail.
MOST_TOKENS = 2**20
# Relative margin of a contribution, above what floating point may add to soft counts that sum to 1.
MARGIN = 1e-9


def shortened(X):
    """Return documents of at most MOST_TOKENS tokens each: longer ones lose tokens evenly, without a warning.

    A warning would tell that there is such a document.

    If t of a document's n tokens stand up to and including a word, floor(t MOST_TOKENS / n) are left up to it. So what
    is left is a function of the document alone, and of no draw.

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

    Contribution bounding: whatever its topics are, a unit's counts of (word, topic) have at most the norm of its counts
    of words. The weight scales that norm to GRID, rounded down.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_words)
        As from `check_counts`.
    units : tuple of ndarray
        As from `check_groups`.
    order : {1, 2}
        Of the norm.
    least : float, default=1.0
        At least 1. Units of a smaller norm get the weight of this norm, and stay below GRID.

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
    weight = np.floor(GRID / (norm * (1 + MARGIN)))  # the norm was rounded
    weight[weight**order * total > GRID**order] = 0  # exact, in whole numbers below 2**53: the bound holds in any case
    return weight.astype(np.int32)[unit_of_documents(units)]


def equal_contributions(X, privacy_units, order):
    """Return what each word of each segment adds to the sums, over all topics.

    A word that stands c times in a document adds sqrt(c) in all, 1 / sqrt(c) each time, because repeated words would
    otherwise take most of the norm. Then the cells (word, topic) of a privacy unit have at most the norm of its words'
    square roots, whatever the topics are, and the integer weight scales that norm to GRID. Rounding every term towards
    zero cannot make it larger.

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
    weighted : csr_array of shape (n_segments, n_words), float64
        Zero in the segments of a privacy unit whose norm exceeds GRID.
    """
    damped, counts = X.to_counts().astype(np.float64), X.counts.tocoo()
    damped.data = np.sqrt(damped.data)
    weight = unit_weights(damped, privacy_units, order)
    document = np.repeat(np.arange(len(X)), np.diff(X.start))[counts.row]
    # Each entry's cell of the document-word matrix, found in the sorted list of them.
    cells = np.repeat(np.arange(len(X)), np.diff(damped.indptr)) * X.shape[1] + damped.indices
    cell = np.searchsorted(cells, document * X.shape[1] + counts.col)
    data = counts.data / damped.data[cell] * (weight[document] * (1 - MARGIN))
    # The bound is checked on the numbers themselves, added up by word of the privacy unit.
    unit = unit_of_documents(privacy_units)
    mass = sp.csr_array((np.bincount(cell, data, len(cells)), damped.indices, damped.indptr), shape=damped.shape)
    shape = len(privacy_units[0]) - 1, len(unit)
    members = sp.csr_array((np.ones(len(unit)), (unit, np.arange(len(unit)))), shape=shape)
    data[((members @ mass) ** order).sum(axis=1)[unit][document] > GRID**order] = 0
    return sp.csr_array((data, X.counts.indices, X.counts.indptr), shape=X.counts.shape)


def word_weights(table):
    """Return the weight of each word in a contribution, (n_words,).

    Inverse fourth-root frequency weights, from the public table. A word's release is divided by its weight, so its
    noise has variance 1 / weight**2, in units of the noise. Of all weights with the same expected squared norm of a
    document, sum(frequency * weight**2), these minimise the sum of the variances; frontier_ablation.csv, row "words
    weigh alike". The clip, at 5**4 times the mean frequency and at 1 / 5**4 of it, keeps a word that the noise made
    look absent from taking the whole norm.
    """
    frequency = np.maximum(table.sum(axis=1, dtype=np.float64), 1e-9)
    return np.clip((frequency / frequency.mean()) ** -0.25, 0.2, 5).astype(np.float32)
