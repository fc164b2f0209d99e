"""Private topic models."""

from skdplda.models._cgs import PrivateCGSLDA
from skdplda.models._vips import VIPSLDA

__all__ = ["VIPSLDA", "PrivateCGSLDA"]
