"""Differentially private topic models that drop into scikit-learn."""

import warnings
from importlib.metadata import version

from skdplda.exceptions import BudgetExceededError, IncompatibleGuaranteeError, PrivacyLeakWarning
from skdplda.models import PCTD, PrivateCGSLDA
from skdplda.privacy import PrivacyAccountant, PrivacyGuarantee

__all__ = [
    "PCTD",
    "BudgetExceededError",
    "IncompatibleGuaranteeError",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "PrivateCGSLDA",
]

__version__ = version("skdplda")

# On every fit, not once a line of code; appended, so that a user's own filters come first.
warnings.simplefilter("always", PrivacyLeakWarning, append=True)
