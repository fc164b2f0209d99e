"""Private topic models."""

import warnings
from typing import Any

from skdplda.models._base import BaseRoundsModel, BaseTopicModel
from skdplda.models._cgs import PrivateCGSLDA
from skdplda.models._clusters import BaseClusterModel
from skdplda.models._embedding import EmbeddingTopics
from skdplda.models._hdp import HDPLDA
from skdplda.models._hdp_sampler import TopicTrace
from skdplda.models._local import LocalPrivateLDA
from skdplda.models._pctd import PCTD
from skdplda.models._periods import TopicCounts
from skdplda.models._suggest import TopicSuggestion, suggest_n_components  # noqa: F401  (of model_selection, for users)
from skdplda.models._vips import VIPSLDA

__all__ = [
    "HDPLDA",
    "PCTD",
    "VIPSLDA",
    "BaseClusterModel",
    "BaseRoundsModel",
    "BaseTopicModel",
    "EmbeddingTopics",
    "LocalPrivateLDA",
    "PrivateCGSLDA",
    "TopicCounts",
    "TopicTrace",
]


def _audit_trace(estimator, X):
    return estimator.audit_trace(X)


def __getattr__(name: str) -> Any:
    """Return a function that has become a method by its old name, for one release."""
    if name != "audit_trace":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        "skdplda.models.audit_trace is now a method, estimator.audit_trace(X); the old name goes with version 0.2.",
        FutureWarning,
        stacklevel=2,
    )
    return _audit_trace
