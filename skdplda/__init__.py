"""Differentially private topic models that drop into scikit-learn."""

import warnings
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

from skdplda.exceptions import (
    BudgetExceededError,
    EmptySelectionError,
    IncompatibleGuaranteeError,
    NoisyTopicsWarning,
    PrivacyLeakWarning,
    UnreachableLedgerError,
)

if TYPE_CHECKING:
    from skdplda.models import (
        HDPLDA,
        PCTD,
        VIPSLDA,
        EmbeddingTopics,
        LabelCounts,
        LocalPrivateLDA,
        PrivateCGSLDA,
        count_labels,
        warm_started,
    )
    from skdplda.priors import PublicPrior
    from skdplda.privacy import PrivacyAccountant, PrivacyGuarantee
    from skdplda.releases import (
        ReleasedClusterModel,
        ReleasedTopicModel,
        load_released,
        make_fdptm_pipeline,
        make_insights_pipeline,
        privacy_guarantee,
        release,
    )
    from skdplda.vocabulary import DPCountVectorizer, DPVocabularySelector

__all__ = [
    "HDPLDA",
    "PCTD",
    "VIPSLDA",
    "BudgetExceededError",
    "DPCountVectorizer",
    "DPVocabularySelector",
    "EmbeddingTopics",
    "EmptySelectionError",
    "IncompatibleGuaranteeError",
    "LabelCounts",
    "LocalPrivateLDA",
    "NoisyTopicsWarning",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "PrivateCGSLDA",
    "PublicPrior",
    "ReleasedClusterModel",
    "ReleasedTopicModel",
    "UnreachableLedgerError",
    "count_labels",
    "load_released",
    "make_fdptm_pipeline",
    "make_insights_pipeline",
    "privacy_guarantee",
    "release",
    "warm_started",
]

import_module("skdplda._kernels")  # which says what to do where the kernels are not compiled
__version__ = version("skdplda")

# A package is imported when it, or a name of it, is asked for: a user's device needs `skdplda.local` alone, and does
# not load what only a server needs.
_SHOWN = ("models", "priors", "privacy", "releases", "vocabulary")
_PACKAGES = (
    *_SHOWN,
    "attacks",
    "audit",
    "datasets",
    "local",
    "metrics",
    "model_selection",
    "plots",
    "published",
    "reports",
    "rounds",
    "semantics",
)


def __getattr__(name):
    if name in _PACKAGES:
        return import_module(f"skdplda.{name}")
    if name in __all__:
        for package in _SHOWN:
            shown = import_module(f"skdplda.{package}")
            if name in shown.__all__:
                return globals().setdefault(name, getattr(shown, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__, *_PACKAGES})


# On every fit, not once a line of code; appended, so that a user's own filters come first.
warnings.simplefilter("always", PrivacyLeakWarning, append=True)
