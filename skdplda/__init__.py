"""Differentially private topic models that drop into scikit-learn."""

import warnings
from importlib.metadata import version

from skdplda.exceptions import BudgetExceededError, IncompatibleGuaranteeError, PrivacyLeakWarning
from skdplda.models import HDPLDA, PCTD, VIPSLDA, LocalPrivateLDA, PrivateCGSLDA
from skdplda.privacy import PrivacyAccountant, PrivacyGuarantee
from skdplda.releases import ReleasedTopicModel, load_released, make_fdptm_pipeline, privacy_guarantee, release
from skdplda.vocabulary import DPCountVectorizer, DPVocabularySelector

__all__ = [
    "HDPLDA",
    "PCTD",
    "VIPSLDA",
    "BudgetExceededError",
    "DPCountVectorizer",
    "DPVocabularySelector",
    "IncompatibleGuaranteeError",
    "LocalPrivateLDA",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "PrivateCGSLDA",
    "ReleasedTopicModel",
    "load_released",
    "make_fdptm_pipeline",
    "privacy_guarantee",
    "release",
]

__version__ = version("skdplda")

# On every fit, not once a line of code; appended, so that a user's own filters come first.
warnings.simplefilter("always", PrivacyLeakWarning, append=True)
