"""Private topic models."""

from skdplda.models._cgs import PrivateCGSLDA
from skdplda.models._pctd import PCTD

__all__ = ["PCTD", "PrivateCGSLDA"]
