"""Contribution bounding: what a privacy unit may add to a released sum, in whole numbers.

`Contributions` adds them up, and its `bounded` is a `Bounded`: the only sum that gets noise. What each unit adds is
checked in integers where it is made: here, or in the kernels that scale by themselves, which tests compare with these
functions. Soft counts, the default of `PrivateCGSLDA` and `VIPSLDA`, are scaled by `add_scaled_soft_counts` of
`_kernels/soft_counts.h`.
"""

import hashlib
import math
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import mean, power, total
from skdplda._rows import chunks, csr_of, rows_of, run_sums
from skdplda._validation import unit_of_documents
from skdplda.privacy import NORM_BOUND
from skdplda.semantics import EmbeddedTexts, UnitMatrix

# The most tokens of a document that take part: a public number, so that no length makes a fit fail.
MOST_TOKENS = 2**20
LARGEST = 2**63 - 1
LARGEST_DAMPED = 2**24  # L1 norm of a unit's sum, above which it is divided before it is squared
FINEST = 2**30  # the largest of a unit's real values, before they are scaled as whole numbers
# Relative margin of a contribution, above what floating point may add to soft counts that sum to 1.
MARGIN = 1e-9
SLACK = 1 + 1e-6  # of the norm of a whole sum, which is computed in floating point


class Bounded:
    """A sum of what privacy units contribute, each of them NORM_BOUND at most, before noise: the data, and secret.

    `Contributions` makes it: `converse` adds noise to no other sum. Its numbers do not change, and it is not pickled.

    Attributes
    ----------
    total : ndarray of the sum's shape, int64
        Read-only.
    norm : {1, 2}
        Order of the norm in which a unit's contribution is bounded.
    bound : int
        Of a contribution's norm: NORM_BOUND.

    Raises
    ------
    TypeError
        If it is called.
    """

    __slots__ = ("_total", "norm")
    _total: np.ndarray
    norm: int
    bound: ClassVar[int] = NORM_BOUND

    def __new__(cls):
        raise TypeError(
            "a Bounded cannot be made of a sum: nobody could know what a privacy unit adds to it. Give the units'"
            " values to skdplda.rounds.Contributions, and take its bounded()."
        )

    @property
    def total(self) -> np.ndarray:
        """The sum, read-only; a view, which nobody else has."""
        return self._total.view()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Bounded never changes: {name} cannot be set.")

    def __reduce__(self) -> tuple:
        raise TypeError("a Bounded cannot be made of a sum that was stored: it is the data, and is not pickled.")

    def __repr__(self) -> str:
        return f"<Bounded: a sum of shape {self.total.shape}, of units of L{self.norm} norm {self.bound} at most>"


def _make_bounded(total, norm):
    made = object.__new__(Bounded)  # an array of bytes can never be made writeable, nor can a view of it
    object.__setattr__(made, "_total", np.frombuffer(total.tobytes(), total.dtype).reshape(total.shape))
    object.__setattr__(made, "norm", norm)
    return made


class Contributions:
    """What privacy units contribute to a sum, added up part by part, and bounded whatever the values are.

    A unit's values belong in one call. Calls of `add_scaled` have ascending units, so that none comes twice, and a sum
    takes one method; `add_whole` and `add_rows` number within a call, and what several calls add is not compared.

    Parameters
    ----------
    shape : tuple of int
        Of the sum.
    norm : {1, 2}, default=2
        Order of the norm in which a unit's contribution is bounded.

    Raises
    ------
    ValueError
        If `norm` is neither 1 nor 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skdplda.rounds import Bounded, Contributions
    >>> sums = Contributions((4, 1))
    >>> sums.add_scaled(np.array([[3.0], [4.0], [1e300]]), np.array([0, 1, 2]), np.array([0, 0, 1]), n_units=2)
    >>> (sums.bounded().total / Bounded.bound).round(3).ravel()
    array([0.6, 0.8, 1. , 0. ])
    """

    def __reduce__(self) -> tuple:
        raise TypeError("Contributions cannot be copied or pickled: units could then be counted twice in one sum.")

    def __init__(self, shape: tuple[int, ...], norm: int = 2) -> None:
        if norm not in (1, 2):
            raise ValueError(f"norm must be 1 or 2; got {norm!r}.")
        self._total: np.ndarray | None = np.zeros(shape, np.int64)
        self._norm, self._method = norm, None
        self._last = -1  # the largest number of a unit that `add_scaled` was given

    @np.errstate(all="ignore")  # a warning would be an output
    def add_scaled(self, values: np.ndarray, place: np.ndarray, unit: np.ndarray, n_units: int) -> None:
        """Add the values of some units, each of which is scaled to the L2 norm bound, by one factor for all of its own.

        Parameters
        ----------
        values : ndarray of shape (n,) or (n, m)
            Any numbers, real or whole. All of a unit must be in one call.
        place : ndarray of shape (n,)
            Where they are added: numbers of cells of the sum, or of its rows of m cells.
        unit : ndarray of shape (n,)
            Number of each value's unit, from 0, above those of all calls before.
        n_units : int
            How many there are in all calls together.

        Raises
        ------
        ValueError
            If a place or a unit is not one of those that there are, a unit is not above those of the calls before,
            another method was called before, or the bound is that of the L1 norm.
        """
        if self._norm != 2:
            raise ValueError("values are scaled in the L2 norm; use Contributions(shape), or add_whole.")
        place, unit = self._checked("add_scaled", values, place, unit, n_units)
        first, last = (unit.min(), unit.max()) if len(unit) else (self._last + 1, self._last)
        if first <= self._last:
            raise ValueError(
                f"unit must be above {self._last}, the largest of the calls before; got {first}. All values of a unit"
                " must be in one call: what it gives to two is not bounded together."
            )
        self._last = last
        values, place, unit = self._merged(values, place, unit - first)
        self._add(scaled(values, unit, last - first + 1), place)

    @np.errstate(all="ignore")  # a warning would be an output
    def add_whole(self, values: np.ndarray, place: np.ndarray, part: np.ndarray, n_parts: int) -> None:
        """Add whole numbers as they are, but for those of a part whose norm exceeds the bound, which are left out.

        Parameters
        ----------
        values : ndarray of shape (n,) or (n, m)
            Whole numbers.
        place : ndarray of shape (n,)
            As in `add_scaled`.
        part : ndarray of shape (n,)
            Number of each value's unit, from 0; or of its document, where a user's share the bound by their values.
        n_parts : int
            How many.

        Raises
        ------
        ValueError
            If a place or a part is not one of those that there are, or another method was called before.
        """
        place, part = self._checked("add_whole", values, place, part, n_parts)
        values, place, part = self._merged(values, place, part)
        norms = _norms(values, part, n_parts, self._norm)
        sound = (norms <= NORM_BOUND**self._norm)[part]
        self._add(values[sound], place[sound])

    @np.errstate(all="ignore")  # a warning would be an output
    def add_rows(self, rows: np.ndarray, n_parts: np.ndarray | int = 1) -> None:
        """Add whole numbers of documents, one row for each, of all cells of the sum.

        Parameters
        ----------
        rows : ndarray of shape (n_documents, ...)
            A row that is beyond its part of the bound, or has what is no number, is left out.
        n_parts : int or ndarray of shape (n_documents,), default=1
            How many documents the document's unit has: its part is so much smaller.

        Raises
        ------
        ValueError
            If another method was called before.
        """
        total = self._open("add_rows")
        rows, n_parts = rows.reshape(len(rows), total.size), np.maximum(np.ceil(np.asarray(n_parts, np.float64)), 1)
        norms = _norms(rows, np.arange(len(rows)), len(rows), self._norm)
        sound = norms * n_parts**self._norm <= NORM_BOUND**self._norm  # exact near the bound
        rows = rows if sound.all() else rows[sound]
        total += np.trunc(rows).sum(axis=0, dtype=np.float64).astype(np.int64).reshape(total.shape)  # exact below 2**53

    def _checked(self, method, values, place, unit, n_units):
        """Return places and units as int64, all of which there are."""
        n_places = self._n_places(values)
        place, unit = np.asarray(place, np.int64), np.asarray(unit, np.int64)  # else keys might wrap around
        for name, numbers, n in (("place", place, n_places), ("unit", unit, n_units)):
            if len(numbers) != len(values) or (len(numbers) and not 0 <= numbers.min() <= numbers.max() < n):
                raise ValueError(f"{name} must have a number below {n} for each of the {len(values)} values.")
        self._open(method)
        return place, unit

    def _n_places(self, values):
        """Return the number of places that values may have: cells, or rows of cells."""
        total = self._open()
        return total.size if values.ndim == 1 else len(total)

    def _merged(self, values, place, unit):
        """Return values, places and units, where no unit has a place twice."""
        n_places = self._n_places(values)
        keys = unit * n_places + place
        if (np.diff(keys) > 0).all():
            return values, place, unit
        keys, cell = np.unique(keys, return_inverse=True)
        sums = np.zeros((len(keys), *values.shape[1:]), values.dtype)
        np.add.at(sums, cell, values)
        return sums, keys % n_places, keys // n_places

    def _add(self, values, place):
        """Add whole numbers that are bounded; their sums are exact below 2**53."""
        if values.ndim == 1:
            values, sums = values[:, None], self._total.reshape(-1, 1)
        else:
            sums = self._total.reshape(len(self._total), -1)
        for k in range(values.shape[1]):
            sums[:, k] += np.bincount(place, np.trunc(values[:, k]), len(sums)).astype(np.int64)

    def _open(self, method=None):
        """Return the sum so far, to add to by one method alone."""
        if self._total is None:
            raise RuntimeError("these contributions are summed already: a Bounded does not change. Begin with others.")
        if method and self._method not in (None, method):
            raise ValueError(
                f"{method} must not follow {self._method}: what a unit gives to both is not bounded together. Use one"
                " method for a sum."
            )
        self._method = method or self._method
        return self._total

    def bounded(self) -> Bounded:
        """Return the sum, once.

        Returns
        -------
        sums : Bounded
            Of all that was added.

        Raises
        ------
        RuntimeError
            If it was returned before, as adding raises then.
        """
        total, self._total = self._open(), None
        return _make_bounded(total, self._norm)


def bounded_by_kernel(total, norm, n_units):
    """Return the `Bounded` of a sum that a kernel, or other machines, made of contributions that were bounded there.

    A test of the kernel shows each unit's bound. Here, what so many units may add together is checked.
    """
    if total.dtype != np.int64:
        raise TypeError(f"a sum of contributions must be of int64; got {total.dtype}.")
    size = np.abs(total).sum(dtype=np.float64) if norm == 1 else math.sqrt(_square(total.reshape(-1)))
    if not size <= n_units * NORM_BOUND * SLACK:
        raise RuntimeError("a sum is beyond what its units may add: nothing was released; please report this.")
    return _make_bounded(total, norm)


def _square(x):
    return float(np.einsum("i,i->", x, x, dtype=np.float64, casting="same_kind"))


def total_of(sums, norm):
    """Return what a `Bounded` adds up to, or refuse what is none, or is not bounded in the norm of this order.

    What is bounded in L1 is bounded in L2. Of a `norm` of None, which promises nothing, any sum is taken.
    """
    if norm is None:
        return sums.total if type(sums) is Bounded else sums
    if type(sums) is not Bounded:  # nor of a class that derives from it
        raise TypeError(
            "collect must return a Bounded, as skdplda.rounds.Contributions makes it, because noise hides only what is"
            f" bounded; got {type(sums).__name__}. Nothing was released."
        )
    if sums.norm > norm:
        raise ValueError(
            f"the noise is for contributions that are bounded in the L{norm} norm, and these are in L{sums.norm}:"
            f" use Contributions(shape, norm={norm}). Nothing was released."
        )
    return sums.total


def shortened(X):
    """Return documents of at most MOST_TOKENS tokens each: longer ones lose tokens evenly, without a warning.

    A warning would reveal that there is such a document. X is a csr_array or a UnitMatrix of counts, and is returned as
    it is if no document is longer; or EmbeddedTexts, with counts or without.

    If t of a document's n tokens are of words up to this one, floor(t MOST_TOKENS / n) are left up to it. So what
    is left is a function of the document alone, and of no draw.
    """
    if isinstance(X, EmbeddedTexts):
        if X.counts is None:
            return X
        return EmbeddedTexts(X.vectors, shortened(X.counts), X.words, X.word_vectors, X.word_frequencies)
    counts, bounds = (X.counts, X.counts.indptr[X.start]) if isinstance(X, UnitMatrix) else (X, X.indptr)

    def evenly(document, before):
        return np.diff(np.floor(before / before[-1] * MOST_TOKENS), prepend=0)

    cut = _cut(counts, bounds, MOST_TOKENS, evenly)
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

    def tokens(document, n_tokens):
        stream = hashlib.shake_256(b"tokens" + key.tobytes() + int(first_document + document).to_bytes(8, "little"))
        return _subset(n_tokens, MOST_TOKENS, stream)

    return cut_to_tokens(X, MOST_TOKENS, tokens)


def cut_to_tokens(X, most, tokens):
    """Return documents where one of n tokens, more than `most`, has those of `tokens(document, n)`, numbers below n."""

    def left(document, before):
        kept = np.searchsorted(before, tokens(document, int(before[-1])), side="right")
        return np.bincount(kept, minlength=len(before))

    cut = _cut(X, X.indptr, most, left)
    return X if cut is None else cut


def _cut(counts, bounds, most, left):
    """Return counts where a document of more than `most` tokens has `left(document, running totals)`, or None."""
    long = np.flatnonzero(run_sums(counts.data, bounds) > most)
    if not len(long):
        return None
    data = counts.data.copy()
    for d in long:
        entries = slice(bounds[d], bounds[d + 1])
        data[entries] = left(d, np.cumsum(data[entries], dtype=np.int64))
    return csr_of(data, counts.indices, counts.indptr, counts.shape)


def _subset(n, size, stream):
    """Return `size` different numbers below n, all such sets alike: the first different ones of a sequence."""
    if 2 * size > n:
        kept = np.ones(n, bool)
        kept[_subset(n, n - size, stream)] = False
        return np.flatnonzero(kept)
    length = 16 * size + 64  # bytes, where about 11 are enough
    while True:
        words = np.frombuffer(stream.digest(length), "<u8")
        # Remainders are uniform: equally many words give each.
        words = words[words <= 2**64 - 1 - 2**64 % n] % np.uint64(n)
        numbers, first = np.unique(words, return_index=True)
        if len(numbers) >= size:
            return numbers[np.argsort(first, kind="stable")[:size]].astype(np.int64)
        length *= 2


def unit_weights(X, units, order, least=1.0):
    """Return what each token of a document adds to a sum: one integer a document, the same for all of its unit.

    Contribution bounding: whatever its topics are, a unit's counts of (word, topic) have at most the norm of its counts
    of words, of order 1 or 2. The weight, int32, scales that norm to the bound, rounded down; it is 0 where the norm
    exceeds the bound. Units of a norm below `least`, which is at least 1, get the weight of this norm. X and `units`
    are as from `check_counts` and `check_groups`.
    """
    start, documents = units
    n_units = len(start) - 1
    alone = np.array_equal(documents, np.arange(n_units))  # each document, in its place, is a unit
    entries = X.indptr if alone else np.append(0, np.cumsum(np.diff(X.indptr)[documents]))[start]
    norm_to_order = np.empty(n_units)
    for some in chunks(n_units, 32, entries):
        first, last = start[some.start], start[some.stop]
        counts = rows_of(X, some if alone else documents[first:last]).astype(np.float64)
        if not alone:
            pointers = start[some.start : some.stop + 1] - first
            shape = len(pointers) - 1, last - first
            members = sp.csr_array((np.ones(last - first), np.arange(last - first), pointers), shape=shape)
            counts = members @ counts  # whole numbers, or ones times roots: only the sums are rounded, in their order
        norm_to_order[some] = total(counts**order, axis=1)
    norm = np.maximum(np.sqrt(norm_to_order) if order == 2 else norm_to_order, least)
    weight = np.floor(NORM_BOUND / (norm * (1 + MARGIN)))  # the norm was rounded
    # Exact, in whole numbers below 2**53: the bound holds in any case.
    weight[weight**order * norm_to_order > NORM_BOUND**order] = 0
    return weight.astype(np.int32)[unit_of_documents(units)]


def weighted_words(X, weights):
    """Return the sum of documents' words, each as often as `unit_weights` says of its document, exact: (n_words,)."""
    words = np.zeros(X.shape[1], np.int64)
    for rows in chunks(X.shape[0], 32, X.indptr):
        some = rows_of(X, rows)
        counts = np.repeat(weights[rows].astype(np.int64), np.diff(some.indptr)) * some.data
        words += np.bincount(some.indices, counts, X.shape[1]).astype(np.int64)
    return words


def scaled(values, unit, n_units):
    """Return whole numbers whose L2 norm, over all entries of a unit, is NORM_BOUND at most, and near it if not 0.

    Contribution bounding: a unit's entries are scaled by one factor, made of them alone, and rounded towards zero.
    `values`, (n,) or (n, m), are those of the units in `unit`, (n,). Real values are divided by the unit's largest
    first, and so are of any size; a unit with one that is not finite has zeros. Whole numbers may wrap around beyond a
    sum of absolute values of 2**63: the unit then has other numbers, within the bound.
    """
    rows = values.reshape(len(values), int(np.prod(values.shape[1:])))  # there may be none
    if values.dtype.kind == "f":
        rows = _finest(rows, unit, n_units)
    total = np.zeros(n_units, np.int64)
    np.add.at(total, unit, np.abs(rows).sum(axis=1))
    divisor = (total & LARGEST) // LARGEST_DAMPED + 1
    rows = np.trunc(rows / divisor[unit, None])  # now the squares add up to 2**48 at most, exactly
    scale = NORM_BOUND * (1 - MARGIN) / np.sqrt(np.maximum(_norms(rows, unit, n_units, 2), 1))
    rows = np.trunc(rows * scale[unit, None])
    rows[~(_norms(rows, unit, n_units, 2) <= NORM_BOUND**2)[unit]] = 0  # exact: the bound holds in any case
    return rows.astype(np.int64).reshape(values.shape)


def _finest(values, unit, n_units):
    """Return real values as whole numbers, the largest of a unit as FINEST."""
    largest = np.zeros(n_units)
    np.maximum.at(largest, unit, np.abs(values).max(axis=1, initial=0.0))  # a NaN is its unit's largest
    sound = (np.isfinite(largest) & (largest > 0))[unit]
    whole = np.zeros(values.shape, np.int64)
    whole[sound] = np.trunc(values[sound] / largest[unit][sound, None] * FINEST)
    return whole


def _norms(rows, unit, n_units, order):
    """Return the norms of whole numbers by unit, to their order, exact as long as they are below 2**53: (n_units,)."""
    rows = np.asarray(rows, np.float64).reshape(len(rows), int(np.prod(rows.shape[1:])))  # nothing wraps around
    powers = np.abs(rows) if order == 1 else rows * rows
    return np.bincount(unit, powers.sum(axis=1), n_units)


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
