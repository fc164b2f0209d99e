"""Private topic models."""

from skdplda.models._cgs import PrivateCGSLDA
from skdplda.models._local import LocalPrivateLDA

__all__ = ["LocalPrivateLDA", "PrivateCGSLDA"]
