"""Private topic models."""

from skdplda.models._base import BaseTopicModel
from skdplda.models._cgs import PrivateCGSLDA

__all__ = ["BaseTopicModel", "PrivateCGSLDA"]
