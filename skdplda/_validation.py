"""Checks of what users pass. The only file that names scikit-learn's semi-private helpers."""

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import TypeVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from skdplda._types import Function

__all__ = [
    "Interval",
    "Options",
    "StrOptions",
    "check_block",
    "check_counts",
    "check_groups",
    "check_is_fitted",
    "check_prior",
    "counts_of",
    "fit_context",
    "fitted_parameter",
    "note_parameters",
    "take_rows",
    "unit_of_documents",
]

LARGEST_COUNT = 2**31 - 1
Method = TypeVar("Method", bound=Function)


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Method], Method]:
    """Return scikit-learn's decorator, which checks parameters; type checkers see the method as it is."""
    return _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)


def note_parameters(estimator):
    """Keep what a fit was given: parameters can be set at any time, and statements are about the fit."""
    parameters = estimator.get_params(deep=False).items()
    estimator._fitted_parameters = {name: value for name, value in parameters if not hasattr(value, "get_params")}


def fitted_parameter(estimator, name, default=None):
    """Return a parameter as it was when the estimator was fitted; as it is, where that is not known."""
    return getattr(estimator, "_fitted_parameters", {}).get(name, getattr(estimator, name, default))


def check_counts(estimator, X, *, reset):
    """Return X as CSR of int32 counts with int64 pointers and int32 indices, duplicates summed, X untouched.

    Parameters
    ----------
    estimator : BaseEstimator
        Whose `n_features_in_` and `feature_names_in_` are set or checked.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Counts. Fractions are rounded, with a warning.
    reset : bool
        Whether this is `fit`.

    Returns
    -------
    counts : csr_array of shape (n_documents, n_words)
        Data and indices of int32.

    Raises
    ------
    TypeError
        For a collection that lies on workers.
    ValueError
        For NaN, infinity, negative counts, counts of 2**31 or more, no documents, no words.
    """
    if hasattr(type(X), "__dask_graph__") or hasattr(type(X), "_on_workers"):
        raise TypeError(
            f"{type(estimator).__name__} takes these data as a matrix in memory; got a {type(X).__name__}, which is on"
            " workers. Call compute() on it, or map the method over its blocks."
        )
    X = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype="numeric")
    whom = f"{type(estimator).__name__}. Topic models need word counts"
    check_non_negative(X, whom)
    X = sp.csr_array(X, copy=sp.issparse(X))
    X.sum_duplicates()
    if X.dtype.kind == "f":
        rounded = np.rint(X.data)
        if not np.array_equal(rounded, X.data):
            warnings.warn(
                f"{type(estimator).__name__} counts words; the fractional values in X were rounded. Pass counts,"
                " for instance from CountVectorizer, not weights such as tf-idf.",
                UserWarning,
                stacklevel=4,
            )
    else:
        rounded = X.data
    if len(rounded) and rounded.max() > LARGEST_COUNT:
        raise ValueError(f"X has a count of {rounded.max()}; counts must be below 2**31.")
    counts = sp.csr_array(
        (rounded.astype(np.int32), X.indices.astype(np.int32), X.indptr.astype(np.int64)), shape=X.shape
    )
    counts.indptr = counts.indptr.astype(np.int64)  # the constructor narrows it to the indices' type
    counts.indices = counts.indices.astype(np.int32, copy=False)
    return counts


def check_block(block, name):
    """Return a block of documents as canonical CSR, or say what it is not.

    Parameters
    ----------
    block : sparse matrix or array-like of shape (n_documents, n_words)
        Counts. It is not changed.
    name : str
        The block, for the message.

    Returns
    -------
    counts : csr_array of shape (n_documents, n_words)
        Of the block's dtype.

    Raises
    ------
    ValueError
        For anything but integers from 0 to 2**31 - 1.
    """
    X = sp.csr_array(block)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    values = X.data
    if values.dtype.kind not in "biuf" or (
        values.size and not (values.min() >= 0 and values.max() <= LARGEST_COUNT and (values == np.rint(values)).all())
    ):
        raise ValueError(f"{name} must hold non-negative integer counts below 2**31.")
    return X


def counts_of(X):
    """Return word counts, those of documents whose counts are of semantic units too."""
    return X.to_counts() if hasattr(X, "to_counts") else X


def check_prior(name, value, default, size=None):
    """Return a prior as float, or as an array of `size` floats.

    Parameters
    ----------
    name : str
        The parameter, for the message.
    value : float, array-like or None
        What the user passed.
    default : float
        Taken for None.
    size : int or None, default=None
        Length of the vector; None allows a scalar only.

    Returns
    -------
    prior : float or ndarray of shape (size,)
        From 1e-30 to 1e30.

    Raises
    ------
    ValueError
        If the prior is out of range, or has another length.
    """
    prior = np.asarray(default if value is None else value, dtype=np.float64)
    allowed = "a number from 1e-30 to 1e30" + ("" if size is None else f" or {size} of them, one a topic")
    if prior.ndim > (size is not None) or (prior.ndim == 1 and len(prior) != size):
        raise ValueError(f"{name} must be {allowed}; got an array of shape {prior.shape}.")
    if not np.all((prior >= 1e-30) & (prior <= 1e30)):  # within single precision
        raise ValueError(f"{name} must be {allowed}; got {value!r}.")
    return float(prior) if size is None else np.broadcast_to(prior, (size,)).copy()


def check_groups(groups, n_documents):
    """Return (start, documents): the documents of each privacy unit, units in the order of their sorted names.

    Parameters
    ----------
    groups : array-like of shape (n_documents,) or None
        The user of each document; None makes each document its own unit.
    n_documents : int
        Number of documents.

    Returns
    -------
    start : ndarray of shape (n_units + 1,)
        Into `documents`.
    documents : ndarray of shape (n_documents,)
        Document numbers, unit by unit.

    Raises
    ------
    ValueError
        If the length differs or a group is missing (None, NaN, NaT or pandas' NA).
    """
    if groups is None:
        return np.arange(n_documents + 1, dtype=np.int64), np.arange(n_documents, dtype=np.int64)
    groups = np.asarray(groups)
    if groups.shape != (n_documents,):
        raise ValueError(f"groups must have one entry a document, shape ({n_documents},); got {groups.shape}.")
    if pd.isna(groups).any():
        raise ValueError("groups has missing entries; give each document of unknown origin a group of its own.")
    _, unit = np.unique(groups, return_inverse=True)
    documents = np.argsort(unit, kind="stable").astype(np.int64)
    start = np.concatenate([[0], np.cumsum(np.bincount(unit))]).astype(np.int64)
    return start, documents


def unit_of_documents(units):
    """Return the number of each document's unit, from `check_groups`' (start, documents)."""
    start, documents = units
    unit = np.empty(len(documents), np.int64)
    unit[documents] = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return unit


def is_integer(value):
    """Whether the value is an integer and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def is_real(value):
    """Whether the value is a real number and not a bool."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
