"""Checks that need numpy and scipy alone: a user's device, which makes a report, loads no scikit-learn."""

import os
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp

LARGEST_COUNT = 2**31 - 1
MOST_THREADS = 4 * (os.cpu_count() or 1)  # more do not help; from some ten thousands on, processes die


def is_integer(value):
    """Whether the value is an integer and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def is_real(value):
    """Whether the value is a real number and not a bool."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def kind_of(value):
    """Return the type of a value with its article, as an error says it."""
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def at_most(n_jobs):
    """Return joblib's number of processes, at most four a core; None and negative numbers stay what they are."""
    return n_jobs if n_jobs is None else min(n_jobs, MOST_THREADS)


def effective_n_jobs(n_jobs):
    """Return the number of threads that joblib would take, at most four a core; results do not depend on it."""
    if n_jobs is not None and (not is_integer(n_jobs) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None, or an integer such as 2, or -1 for all processors; got {n_jobs!r}.")
    import joblib

    return min(joblib.effective_n_jobs(n_jobs), MOST_THREADS)


def check_structure(X, name="X"):
    """Raise ValueError for a sparse matrix whose arrays do not describe a matrix of its shape.

    That is, if pointers fall or leave the arrays, an index lies outside of the shape, or arrays differ in length; the
    message has its name. Anything but a sparse matrix passes, and nothing is changed. Kernels, and scipy's own
    conversions, follow pointers and indices without looking. So everything that takes a matrix from outside calls this
    first: estimators, readers of files, workers.
    """
    if sp.issparse(X) and X.shape[-1] > LARGEST_COUNT:
        raise ValueError(f"{name} must have fewer than 2**31 columns; got shape {X.shape}.")
    if not sp.issparse(X):
        return
    if X.format not in ("csr", "csc", "bsr", "coo"):  # these have no pointers, and scipy does not check their indices
        try:
            if X.format == "lil" and [*map(len, X.rows)] != [*map(len, X.data)]:  # of which the conversion may die
                raise ValueError("its rows and their data differ in length")
            X = X.tocoo()
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            raise ValueError(f"{name} is a damaged sparse matrix of format {X.format!r}: {error}.") from None
    if X.format == "coo":
        sound = all(
            axis.shape == X.data.shape and within(axis, size) for axis, size in zip(X.coords, X.shape, strict=True)
        )
    else:
        block = X.blocksize if X.format == "bsr" else (1, 1)
        n_rows, n_columns = (size // length for size, length in zip(X.shape, block, strict=True))
        major, minor = (n_columns, n_rows) if X.format == "csc" else (n_rows, n_columns)
        sound = are_rows(X.indptr, X.indices, X.data, major, minor)
    if not sound:
        raise ValueError(
            f"{name} is a damaged sparse matrix: its pointers must rise from 0 to the number of its entries, and its"
            f" indices lie within the shape {X.shape}. Was an array of it changed by hand?"
        )


def are_rows(indptr, indices, data, n_rows, n_columns):
    """Whether three arrays are compressed rows of `n_columns` columns."""
    return (
        indptr.shape == (n_rows + 1,)
        and indptr.dtype.kind in "iu"
        and indices.ndim == 1
        and indptr[0] == 0
        and indptr[-1] <= len(indices) == len(data)  # arrays may be longer than what is used of them
        and bool((indptr[1:] >= indptr[:-1]).all())
        and within(indices[: indptr[-1]], n_columns)
    )


def within(indices, size):
    """Whether all indices are integers from 0 to size - 1."""
    return indices.dtype.kind in "iu" and (not indices.size or (indices.min() >= 0 and indices.max() < size))


def exact_counts(X, name="X"):
    """Return word counts as canonical CSR of int32; raise a ValueError for what is no count. X itself is left alone."""
    check_structure(X, name)
    try:
        counts, n_axes = sp.csr_array(X), np.ndim(X)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a matrix of counts; got {type(X).__name__} ({error}).") from None
    if n_axes != 2:
        raise ValueError(f"{name} must have two dimensions (documents, words); got {n_axes}.")
    if not counts.has_canonical_format:
        counts = counts.copy()
        counts.sum_duplicates()
    values = counts.data
    whole = values.dtype.kind in "biu" or (values.dtype.kind == "f" and np.array_equal(values, np.rint(values)))
    if not whole or values.min(initial=0) < 0 or values.max(initial=0) > LARGEST_COUNT:
        raise ValueError(f"{name} must hold non-negative integer counts below 2**31.")
    if counts.indptr[-1] > LARGEST_COUNT:
        raise ValueError(f"{name} has 2**31 entries or more; take a sample of the documents.")
    parts = (part.astype(np.int32, copy=False) for part in (values, counts.indices, counts.indptr))
    return sp.csr_array(tuple(parts), shape=counts.shape)


def check_prior(name, value, default, size=None):
    """Return a prior as float, or as an array of `size` floats; `default` is taken for None.

    ValueError for one outside of 1e-30 to 1e30 or of another length; a `size` of None allows a scalar only.
    """
    allowed = "a number from 1e-30 to 1e30" + ("" if size is None else f" or {size} of them, one a topic")
    try:
        prior = np.asarray(default if value is None else value, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} must be {allowed}; got {value!r:.500}, which no float holds.") from None
    if prior.ndim > (size is not None) or (prior.ndim == 1 and len(prior) != size):
        raise ValueError(f"{name} must be {allowed}; got an array of shape {prior.shape}.")
    if not np.all((prior >= 1e-30) & (prior <= 1e30)):  # within single precision
        raise ValueError(f"{name} must be {allowed}; got {value!r}.")
    return float(prior) if size is None else np.broadcast_to(prior, (size,)).copy()
