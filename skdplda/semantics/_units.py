"""The container of semantic units: rows are documents, and each document is a few rows of counts."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from skdplda._checks import check_structure
from skdplda._rows import entries_of
from skdplda._types import ArrayLike


class UnitMatrix:
    """Word counts of semantic units, sliced by documents.

    To scikit-learn it is a sequence of documents: it has a length, a shape and `[]`, and so passes through pipelines,
    cross validation and searches. Do not change what it holds.

    Parameters
    ----------
    start : array-like of shape (n_documents + 1,)
        Rows of `counts` at which the units of each document begin; the last entry is their number.
    counts : sparse matrix of shape (n_units, n_words)
        Non-negative integers below 2**31. Rows may be empty.
    words : array-like of str of shape (n_words,) or None, default=None
        The words of the columns, for the `prior` of a model.

    Attributes
    ----------
    start : ndarray of shape (n_documents + 1,), int64
        As given.
    counts : csr_array of shape (n_units, n_words), int32
        As given, duplicates summed.
    words : ndarray of shape (n_words,), object, or None
        As given.
    shape : tuple of int
        (n_documents, n_words).

    Raises
    ------
    ValueError
        If `start` does not divide the rows, words do not fit the columns, an entry is negative, not finite, fractional
        or too large, or the arrays of a sparse matrix do not describe one.

    Examples
    --------
    >>> from skdplda.semantics import UnitMatrix
    >>> X = UnitMatrix([0, 2, 3], [[1, 1, 0], [0, 2, 0], [0, 0, 1]])
    >>> X.shape, X[:1].n_units
    ((2, 3), 2)
    >>> X.to_counts().toarray()
    array([[1, 3, 0],
           [0, 0, 1]])
    """

    def __init__(self, start: ArrayLike, counts: Any, words: ArrayLike | None = None) -> None:
        given, start = start, np.array(start, dtype=np.int64)
        check_structure(counts, "counts")
        counts = sp.csr_array(counts, copy=sp.issparse(counts))
        if not counts.has_canonical_format and counts.dtype.kind in "iu":
            counts = counts.astype(np.int64)  # sums that do not wrap around
        counts.sum_duplicates()
        counts.eliminate_zeros()
        if (
            start.ndim != 1
            or len(start) == 0
            or start[0] != 0
            or start[-1] != counts.shape[0]
            or (np.diff(start) < 0).any()
            or (start != np.asarray(given)).any()
        ):
            raise ValueError(
                f"start must rise from 0 to the {counts.shape[0]} rows of counts, one entry more than documents;"
                f" got {given!r}."
            )
        data = counts.data
        if not (
            np.isfinite(data).all() and (data >= 0).all() and (data < 2**31).all() and (data == np.rint(data)).all()
        ):
            raise ValueError(
                "counts must be non-negative integers below 2**31; got negative, fractional or other values."
            )
        self.words = None if words is None else np.array(words, dtype=object)
        if self.words is not None and self.words.shape != counts.shape[1:]:
            raise ValueError(f"words must name the {counts.shape[1]} columns; got shape {self.words.shape}.")
        self.start = start
        self.counts = sp.csr_array((data.astype(np.int32), counts.indices, counts.indptr), shape=counts.shape)

    @classmethod
    def from_counts(cls, X: Any) -> "UnitMatrix":
        """Make every word occurrence a unit of its own, as in a model without units.

        Parameters
        ----------
        X : sparse matrix of shape (n_documents, n_words)
            Non-negative integers.

        Returns
        -------
        units : UnitMatrix
            One row for each word occurrence.
        """
        check_structure(X)
        X = sp.csr_array(X)
        words = np.repeat(X.indices, X.data)
        start = np.concatenate([[0], np.cumsum(X.data, dtype=np.int64)])[X.indptr]
        ones = np.ones(len(words), dtype=np.int32)
        return cls(start, sp.csr_array((ones, words, np.arange(len(words) + 1)), shape=(len(words), X.shape[1])))

    def checked(self) -> "UnitMatrix":
        """Make the same units again, so that all checks look at what the arrays hold now.

        Returns
        -------
        units : UnitMatrix
            Equal, with arrays of its own.

        Raises
        ------
        ValueError
            If somebody has changed an array, so that it does not describe units any more.
        """
        return type(self)(self.start, self.counts, self.words)

    @property
    def shape(self) -> tuple[int, int]:
        """Documents and words."""
        return len(self.start) - 1, self.counts.shape[1]

    @property
    def n_units(self) -> int:
        """Number of units, empty ones included."""
        return int(self.start[-1])

    def __array__(self, dtype=None, copy=None):
        raise TypeError("a UnitMatrix is no array of documents: take to_counts() for their words, counts for units'.")

    def __len__(self):
        return self.shape[0]

    def __repr__(self):
        return f"<UnitMatrix of {self.shape[0]} documents, {self.n_units} units and {self.shape[1]} words>"

    def __getitem__(self, key):
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # scikit-learn's way to take rows
            key = key[0]
        if isinstance(key, tuple):
            raise IndexError("a UnitMatrix is sliced by documents only: X[documents].")
        documents = np.atleast_1d(np.arange(len(self))[key])
        start, units = entries_of(self.start, documents)
        return type(self)(start, self.counts[units], self.words)

    def to_counts(self) -> Any:
        """Word counts of whole documents.

        Returns
        -------
        X : csr_array of shape (n_documents, n_words), int64
            Sums over the units of each document.
        """
        members = np.ones(self.n_units, np.int64), np.arange(self.n_units), self.start
        counts = sp.csr_array(sp.csr_array(members, shape=(len(self), self.n_units)) @ self.counts)
        counts.sort_indices()
        return counts
