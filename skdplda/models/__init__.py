"""Private topic models."""

from skdplda.models._base import BaseRoundsModel, BaseTopicModel
from skdplda.models._cgs import PrivateCGSLDA
from skdplda.models._clusters import BaseClusterModel
from skdplda.models._embedding import EmbeddingTopics
from skdplda.models._hdp import HDPLDA
from skdplda.models._hdp_sampler import TopicTrace
from skdplda.models._labels import LabelCounts, count_labels
from skdplda.models._local import LocalPrivateLDA
from skdplda.models._pctd import PCTD
from skdplda.models._periods import TopicCounts
from skdplda.models._suggest import TopicSuggestion, suggest_n_components  # noqa: F401  (of model_selection, for users)
from skdplda.models._vips import VIPSLDA
from skdplda.models._warm_start import warm_started

__all__ = [
    "HDPLDA",
    "PCTD",
    "VIPSLDA",
    "BaseClusterModel",
    "BaseRoundsModel",
    "BaseTopicModel",
    "EmbeddingTopics",
    "LabelCounts",
    "LocalPrivateLDA",
    "PrivateCGSLDA",
    "TopicCounts",
    "TopicTrace",
    "count_labels",
    "warm_started",
]
