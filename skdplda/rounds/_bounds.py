"""Contribution bounding: what a privacy unit may add to a released sum, in integers on a fixed-point grid.

Documents that contribute soft counts, the default of `PrivateCGSLDA` and `VIPSLDA`, are scaled to the norm GRID in the
kernel itself: `add_scaled_soft_counts` of `_kernels/soft_counts.h`.
"""

import hashlib

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import mean, power, total
from skdplda._validation import unit_of_documents
from skdplda.semantics import EmbeddedTexts, UnitMatrix

__all__ = [
    "GRID",
    "MOST_TOKENS",
    "NORM_BOUND",
    "equal_contributions",
    "scaled_to_grid",
    "scaled_values",
    "shortened",
    "some_tokens",
    "unit_weights",
    "word_weights",
]

# Norm bound of a privacy unit's contribution in fixed point: sums are integers, and 1 / GRID is the resolution. Large,
# so that rounding is far below the noise; small enough that the sum of 2**40 units fits into 64 bits.
GRID = 2**20
# What GRID stands for in the tables, in tokens. Only its size relative to the priors matters. By definition, a document
# of 25 different words counts each of them once (its L2 norm is 5).
NORM_BOUND = 5.0
# The most tokens of a document that take part: a public number, so that no length makes a fit fail.
MOST_TOKENS = 2**20
LARGEST = 2**63 - 1
LARGEST_DAMPED = 2**24  # L1 norm of a unit's sum, above which it is divided before it is squared
FINEST = 2**30  # the largest of a unit's real values, before they are scaled as whole numbers
# Relative margin of a contribution, above what floating point may add to soft counts that sum to 1.
MARGIN = 1e-9


def shortened(X):
    """Return documents of at most MOST_TOKENS tokens each: longer ones lose tokens evenly, without a warning.

    A warning would tell that there is such a document. X is a csr_array or a UnitMatrix of counts, and is returned as
    it is if no document is longer; or EmbeddedTexts, with counts or without.

    If t of a document's n tokens stand up to and including a word, floor(t MOST_TOKENS / n) are left up to it. So what
    is left is a function of the document alone, and of no draw.
    """
    if isinstance(X, EmbeddedTexts):
        return X if X.counts is None else EmbeddedTexts(X.vectors, shortened(X.counts), X.words, X.word_vectors)
    counts, bounds = (X.counts, X.counts.indptr[X.start]) if isinstance(X, UnitMatrix) else (X, X.indptr)

    def evenly(document, before):
        return np.diff(np.floor(before / before[-1] * MOST_TOKENS), prepend=0)

    cut = _cut(counts, bounds, evenly)
    if cut is None:
        return X
    return UnitMatrix(X.start, cut) if isinstance(X, UnitMatrix) else cut


def some_tokens(X, key, first_document=0):
    """Return documents of at most MOST_TOKENS tokens each: of longer ones a random subset, all subsets alike.

    Which of a document's tokens stay depends on their number, which is public, and not on their words: a token in the
    place of another stays or goes as that one does. The draws are words of SHAKE-256, from a key of eight uint32 and
    the document's number; `first_document` is that of the first one, where these are a part of a corpus. The same
    object is returned if no document is longer.
    """

    def at_random(document, before):
        stream = hashlib.shake_256(b"tokens" + key.tobytes() + int(first_document + document).to_bytes(8, "little"))
        entries = np.searchsorted(before, _subset(int(before[-1]), MOST_TOKENS, stream), side="right")
        return np.bincount(entries, minlength=len(before))

    cut = _cut(X, X.indptr, at_random)
    return X if cut is None else cut


def _cut(counts, bounds, left):
    """Return counts where a document of more than MOST_TOKENS tokens has `left(document, running totals)`, or None."""
    ends = np.concatenate([[0], np.cumsum(counts.data, dtype=np.int64)])[bounds]
    long = np.flatnonzero(np.diff(ends) > MOST_TOKENS)
    if not len(long):
        return None
    data = counts.data.copy()
    for d in long:
        entries = slice(bounds[d], bounds[d + 1])
        data[entries] = left(d, np.cumsum(data[entries], dtype=np.int64))
    cut = sp.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)
    cut.indptr, cut.indices = counts.indptr, counts.indices  # the constructor may narrow them
    return cut


def _subset(n, size, stream):
    """Return `size` different numbers below n, all such sets alike: the first different ones of a sequence."""
    if 2 * size > n:
        kept = np.ones(n, bool)
        kept[_subset(n, n - size, stream)] = False
        return np.flatnonzero(kept)
    length = 16 * size + 64  # bytes, where about 11 are enough
    while True:
        words = np.frombuffer(stream.digest(length), "<u8")
        words = words[words <= 2**64 - 1 - 2**64 % n] % np.uint64(
            n
        )  # the remainders are uniform: equally many words give each
        numbers, first = np.unique(words, return_index=True)
        if len(numbers) >= size:
            return numbers[np.argsort(first)[:size]].astype(np.int64)
        length *= 2


def unit_weights(X, units, order, least=1.0):
    """Return what each token of a document adds to a sum: one integer a document, the same for all of its unit.

    Contribution bounding: whatever its topics are, a unit's counts of (word, topic) have at most the norm of its counts
    of words, of order 1 or 2. The weight, int32, scales that norm to GRID, rounded down; it is 0 where the norm exceeds
    GRID. Units of a norm below `least`, which is at least 1, get the weight of this norm, and stay below GRID. X and
    `units` are as from `check_counts` and `check_groups`.
    """
    start, documents = units
    n_units = len(start) - 1
    counts = sp.csr_array((X.data.astype(np.float64), X.indices, X.indptr), shape=X.shape)
    if not np.array_equal(documents, np.arange(n_units)):  # else each document, in its place, is a unit
        members = sp.csr_array((np.ones(len(documents)), documents, start), shape=(n_units, len(documents)))
        counts = members @ counts  # whole numbers, or ones times roots: nothing to round but the sums, in their order
    norm_to_order = total(counts**order, axis=1)
    norm = np.maximum(np.sqrt(norm_to_order) if order == 2 else norm_to_order, least)
    weight = np.floor(GRID / (norm * (1 + MARGIN)))  # the norm was rounded
    # Exact, in whole numbers below 2**53: the bound holds in any case.
    weight[weight**order * norm_to_order > GRID**order] = 0
    return weight.astype(np.int32)[unit_of_documents(units)]


def equal_contributions(X, privacy_units, order):
    """Return what each word of each segment of a UnitMatrix adds to the sums, over all topics: (n_segments, n_words).

    A word that stands c times in a document adds sqrt(c) in all, 1 / sqrt(c) each time, because repeated words would
    otherwise take most of the norm. Then the cells (word, topic) of a privacy unit have at most the norm of its words'
    square roots, of order 1 or 2, whatever the topics are, and the integer weight scales that norm to GRID. Rounding
    every term towards zero cannot make it larger. The segments of a privacy unit whose norm exceeds GRID have zeros.
    `privacy_units` are as from `check_groups`.
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
    data[total((members @ mass) ** order, axis=1)[unit][document] > GRID**order] = 0
    return sp.csr_array((data, X.counts.indices, X.counts.indptr), shape=X.counts.shape)


def scaled_to_grid(values, unit, n_units):
    """Return whole numbers whose L2 norm, over all entries of a unit, is GRID at most, and nearly GRID if not 0.

    Contribution bounding: a unit's entries are scaled by one factor, made of them alone, and rounded towards zero.

    Parameters
    ----------
    values : ndarray of shape (n,) or (n, m), int64
        Beyond a sum of absolute values of 2**63 a unit's may wrap around: it then has other numbers, within the bound.
    unit : ndarray of shape (n,)
        Of each entry or row.
    n_units : int
        How many.
    """
    rows = values.reshape(len(values), int(np.prod(values.shape[1:])))  # there may be none
    total = np.zeros(n_units, np.int64)
    np.add.at(total, unit, np.abs(rows).sum(axis=1))
    divisor = (total & LARGEST) // LARGEST_DAMPED + 1
    rows = np.trunc(rows / divisor[unit, None])  # now the squares add up to 2**48 at most, exactly
    scale = GRID * (1 - MARGIN) / np.sqrt(np.maximum(_squared_norms(rows, unit, n_units), 1))
    rows = np.trunc(rows * scale[unit, None])
    rows[~(_squared_norms(rows, unit, n_units) <= GRID**2)[unit]] = 0  # exact: the bound holds in any case
    return rows.astype(np.int64).reshape(values.shape)


def _squared_norms(rows, unit, n_units):
    """Return the sum of the squares of a unit's rows, exact as long as it is below 2**53: (n_units,)."""
    return np.bincount(unit, (rows * rows).sum(axis=1), n_units)


def scaled_values(values, unit, n_units):
    """Return `scaled_to_grid` of real values, (n, m): a unit with one that is not finite has zeros.

    A unit's values are divided by the largest of them first, and so are of any size.
    """
    largest = np.zeros(n_units)
    np.maximum.at(largest, unit, np.abs(values).max(axis=1, initial=0.0))  # a NaN is its unit's largest
    sound = (np.isfinite(largest) & (largest > 0))[unit]
    whole = np.zeros(values.shape, np.int64)
    whole[sound] = np.trunc(values[sound] / largest[unit][sound, None] * FINEST)
    return scaled_to_grid(whole, unit, n_units)


def word_weights(table):
    """Return the weight of each word in a contribution, (n_words,).

    Inverse fourth-root frequency weights, from the public table. A word's release is divided by its weight, so its
    noise has variance 1 / weight**2, in units of the noise. Of all weights with the same expected squared norm of a
    document, sum(frequency * weight**2), these minimise the sum of the variances; frontier_ablation.csv, row "words
    weigh alike". The clip, at 5**4 times the mean frequency and at 1 / 5**4 of it, keeps a word that the noise made
    look absent from taking the whole norm.
    """
    frequency = np.maximum(total(table, axis=1), 1e-9)
    return np.clip(power(frequency / mean(frequency), -0.25), 0.2, 5).astype(np.float32)
