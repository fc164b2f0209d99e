"""Private topic models."""

from skdplda.models._base import BaseRoundsModel, BaseTopicModel
from skdplda.models._cgs import PrivateCGSLDA
from skdplda.models._hdp import HDPLDA
from skdplda.models._hdp_sampler import TopicTrace
from skdplda.models._local import LocalPrivateLDA
from skdplda.models._pctd import PCTD
from skdplda.models._vips import VIPSLDA

__all__ = [
    "HDPLDA",
    "PCTD",
    "VIPSLDA",
    "BaseRoundsModel",
    "BaseTopicModel",
    "LocalPrivateLDA",
    "PrivateCGSLDA",
    "TopicTrace",
]
