"""Private topic models."""

from skdplda.models._cgs import PrivateCGSLDA

__all__ = ["PrivateCGSLDA"]
