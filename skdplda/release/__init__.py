"""From a fitted pipeline to one file that is safe to publish."""

from skdplda.release._file import load_released
from skdplda.release._guarantee import privacy_guarantee
from skdplda.release._model import ReleasedTopicModel
from skdplda.release._release import release

__all__ = ["ReleasedTopicModel", "load_released", "privacy_guarantee", "release"]
