"""Private topic models."""

from skdplda.models._audit import audit_trace
from skdplda.models._base import BaseTopicModel
from skdplda.models._cgs import PrivateCGSLDA
from skdplda.models._hdp import HDPLDA
from skdplda.models._hdp_sweeps import TopicTrace
from skdplda.models._pctd import PCTD

__all__ = ["HDPLDA", "PCTD", "BaseTopicModel", "PrivateCGSLDA", "TopicTrace", "audit_trace"]
