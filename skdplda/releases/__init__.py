"""From a fitted pipeline to one file that is safe to publish.

`__all__` is for users. `FACTS` and `flat_steps` are for the other packages of skdplda only.
"""

# ruff: noqa: F401

from skdplda.releases._card import FACTS
from skdplda.releases._clusters import ReleasedClusterModel
from skdplda.releases._guarantee import flat_steps, privacy_guarantee
from skdplda.releases._insights import make_insights_pipeline
from skdplda.releases._load import load_released
from skdplda.releases._model import ReleasedTopicModel
from skdplda.releases._pipeline import PrivatePipeline
from skdplda.releases._recipe import make_fdptm_pipeline
from skdplda.releases._release import release

__all__ = [
    "PrivatePipeline",
    "ReleasedClusterModel",
    "ReleasedTopicModel",
    "load_released",
    "make_fdptm_pipeline",
    "make_insights_pipeline",
    "privacy_guarantee",
    "release",
]
