"""Names of what signatures take: documents, files, seeds."""

import os
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

__all__ = ["Estimator", "Function", "Matrix", "Path", "Seed"]

Estimator: TypeAlias = Any  # scikit-learn has no types
Function: TypeAlias = Callable[..., Any]
Matrix: TypeAlias = ArrayLike | sp.spmatrix | sp.sparray  # rows are documents; data frames are ArrayLike
Path: TypeAlias = str | os.PathLike[str]
Seed: TypeAlias = int | np.random.RandomState | None
