"""Arithmetic with the same bits on every machine, for whatever a seeded fit or a guarantee depends on.

`exp`, `log`, special functions and random laws of NumPy and SciPy, `numpy.linalg` and every product of matrices by a
BLAS may differ in the last bit between processors, versions and numbers of threads. That bit can change the noise of a
seeded fit, whose key is a digest of what the noise is added to. What stands here uses operations that IEEE 754 fixes,
in a fixed order: the kernels `_arithmetic` and `_linear_algebra`. Also fixed are +, -, *, /, `sqrt`, `square`,
comparisons, sums of integers, cumulative sums and `bincount` of NumPy. `tests/test_same_bits.py` forbids the others in
the packages that fits use.
"""

# ruff: noqa: F401

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from skdplda._kernels import _linear_algebra as kernel
from skdplda._kernels._arithmetic import (
    digamma,
    exp,
    expm1,
    gamma_rows,
    log,
    log1p,
    log_ndtr,
    mills,
    ndtr,
    ndtri,
)
from skdplda._kernels._linear_algebra import eigen, gram, inverse, mixture_weights
from skdplda._types import Function

NORMAL_PAIRS = 2**14  # pairs of numbers that are drawn at a time, within the cache


def _numbers(a: Any) -> np.ndarray:
    return np.ascontiguousarray(a, np.float64)


def total(a: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Sum of all numbers, or along an axis, as `np.sum`, added up in a fixed order; also of a csr_array."""
    if not isinstance(a, np.ndarray) and sp.issparse(a):
        places = {0: a.indices, 1: np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))}
        return total(a.data) if axis is None else np.bincount(places[axis], a.data, a.shape[1 - axis])
    a = np.asarray(a)
    a = a if a.dtype in (np.float32, np.float64) else a.astype(np.float64)
    if axis is None or a.ndim == 1:
        found = float(kernel.row_sums(np.ascontiguousarray(a).reshape(1, -1))[0])
        return np.full((1,) * a.ndim, found) if keepdims else found
    if axis == 0 and a.ndim == 2:
        found = kernel.column_sums(np.ascontiguousarray(a))
    else:
        rows = np.ascontiguousarray(np.moveaxis(a, axis, -1))
        found = kernel.row_sums(rows.reshape(math.prod(rows.shape[:-1]), a.shape[axis])).reshape(rows.shape[:-1])
    return np.expand_dims(found, axis) if keepdims else found


def mean(a: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """Mean of all numbers, or along an axis; as `total`."""
    return total(a, axis, keepdims) / (np.size(a) if axis is None else np.shape(a)[axis])


def matmul(a: Any, b: Any, n_threads: int = 1) -> Any:
    """Product of two matrices or vectors, the first of which may be a sparse matrix, added up in a fixed order.

    The result does not depend on `n_threads`. It is a float for two vectors.
    """
    columns = _numbers(b)
    vector = columns.ndim == 1
    columns = columns[:, None] if vector else columns
    if not isinstance(a, np.ndarray) and sp.issparse(a):
        a = a.tocsr()
        if a.shape[1] != len(columns):
            raise ValueError(f"b must have {a.shape[1]} rows; got {len(columns)}")
        found = kernel.sparse_product(
            a.indptr.astype(np.int64), a.indices.astype(np.int32, copy=False), _numbers(a.data), columns, n_threads
        )
        return found[:, 0] if vector else found
    rows = _numbers(a)
    found = kernel.product(rows if rows.ndim == 2 else rows.reshape(1, -1), columns, n_threads)
    if rows.ndim == 1:
        return float(found[0, 0]) if vector else found[0]
    return found[:, 0] if vector else found


def power(x: Any, exponent: float) -> Any:
    """Numbers from 0 to a power: of halves and quarters by square roots, else by our own `exp` and `log`."""
    scalar, x = np.ndim(x) == 0, np.asarray(x, np.float64)
    with np.errstate(divide="ignore"):
        if exponent in (0.25, 0.5):
            found = np.sqrt(x) if exponent == 0.5 else np.sqrt(np.sqrt(x))
        elif exponent in (-0.25, -0.5):
            found = 1 / (np.sqrt(x) if exponent == -0.5 else np.sqrt(np.sqrt(x)))
        else:
            found = np.asarray(exp(exponent * np.asarray(log(x))))
    return float(found) if scalar else found


def geomspace(first: float, last: float, n: int) -> np.ndarray:
    """Return at least 2 numbers from the first to the last, both positive, whose logarithms are evenly spaced."""
    found = exp(log(first) + (log(last) - log(first)) * (np.arange(n) / (n - 1)))
    found[0], found[-1] = first, last
    return found


def bracket(
    condition: Function, low: float, high: float, rtol: float = 0.0, atol: float = 0.0, most: float = math.inf
) -> tuple[float, float]:
    """Return the last number found that meets a condition, as `low` does, and the first that does not, by bisection.

    While `high` meets it, and is below `most`, it is doubled. The two are neighbours, or within a tolerance.
    """
    while high < most and condition(high):
        low, high = high, 2 * high
    while high - low > max(rtol * high, atol) and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if condition(middle) else (low, middle)
    return low, high


def root(function: Function, low: float, high: float, tolerance: float) -> float:
    """Return where a function that grows reaches zero, at most `tolerance` below the root, where it is at most 0.

    It is at most 0 at `low` and above at `high`. By secants, with half the value at an end that stays (the Illinois
    method), and by bisections where these are slow: about as fast as `scipy.optimize.brentq`.
    """
    at_low, at_high, below, turn, before = function(low), function(high), False, 0, math.inf
    while high - low > tolerance:
        turn, width = turn + 1, high - low
        slow = turn % 3 == 0 and width > before / 8
        before = width if turn % 3 == 0 else before
        part = 0.5 if slow else at_low / (at_low - at_high)
        part += (1 if below else -1) * tolerance / 3 / width  # beyond the root, so that both ends close in
        margin = min(0.25, tolerance / 4 / width)
        x = low + width * (min(max(part, margin), 1 - margin) if 0 <= part <= 1 else 0.5)
        x = x if low < x < high else low + width / 2
        if not low < x < high:  # neighbours
            break
        value = function(x)
        stays, below = below == (value <= 0), value <= 0
        if below:
            low, at_low, at_high = x, value, at_high / 2 if stays else at_high
        else:
            high, at_high, at_low = x, value, at_low / 2 if stays else at_low
    return low


def normal(rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
    """Draw standard normal numbers by Marsaglia's polar method: uniform numbers have the same bits everywhere."""
    found, n = np.empty(size), 0
    flat = found.reshape(-1)
    while n < len(flat):
        n_pairs = min(NORMAL_PAIRS, int(0.64 * (len(flat) - n)) + 16)  # of which a share of pi / 4 is kept
        x, y = 2 * rng.random((2, n_pairs)) - 1
        square = x * x + y * y
        inside = np.flatnonzero((square > 0) & (square < 1))
        square = square[inside]
        factor = np.sqrt(-2 * log(square) / square)
        for part in (x, y):
            part = part[inside][: len(flat) - n]
            np.multiply(part, factor[: len(part)], out=flat[n : n + len(part)])
            n += len(part)
    return found


def orthonormal(rows: Any) -> np.ndarray:
    """Make rows orthogonal and of length 1, each a combination of the first rows with a positive factor of its own.

    Rows that are, but for rounding, combinations of the rows above them become zero.
    """
    found = np.array(rows, np.float64)
    for i, row in enumerate(found):
        whole = total(row * row)
        for _ in range(2 if i else 0):  # the second time takes away what rounding left
            row -= matmul(matmul(found[:i], row), found[:i])
        square = total(row * row)
        row *= 1 / math.sqrt(square) if square > 1e-20 * whole else 0.0
    return found
