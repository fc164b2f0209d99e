"""Names that signatures use, from one place."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

__all__ = [
    "Any",
    "ArrayLike",
    "Estimator",
    "Function",
    "Iterable",
    "Iterator",
    "Literal",
    "Matrix",
    "Path",
    "Seed",
    "Self",
    "Sequence",
]

Estimator: TypeAlias = Any  # scikit-learn has no types
Function: TypeAlias = Callable[..., Any]
Matrix: TypeAlias = Any  # counts: array-like, data frame or sparse matrix, one row a document
Path: TypeAlias = str | os.PathLike[str]
Seed: TypeAlias = int | np.random.RandomState | None
