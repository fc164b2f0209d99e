"""Names that signatures use, from one place."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
else:

    class ArrayLike:
        """What NumPy makes an array of: in a signature it shows as one word, where NumPy's own is a page of unions."""


__all__ = ["ArrayLike", "Estimator", "Function", "Iterable", "Iterator", "Matrix", "PathLike", "Seed", "Sequence"]

Estimator: TypeAlias = Any  # scikit-learn has no types
Function: TypeAlias = Callable[..., Any]
Matrix: TypeAlias = Any  # counts: array-like, data frame or sparse matrix, one row a document
PathLike: TypeAlias = str | os.PathLike[str]
Seed: TypeAlias = int | bytes | np.random.RandomState | None
