"""Guarantees and what they cost: events, accounting, calibration, noise, private selection and the ledger.

`__all__` is for users. The names imported `as` themselves are for other packages of skdplda only, and may change.
"""

import warnings
from typing import Any

from skdplda.privacy._accountant import LedgerEntry, PrivacyAccountant, active_accountant
from skdplda.privacy._accounting import delta_of, epsilon_of
from skdplda.privacy._accounting import epsilon_with_sampler_error as epsilon_with_sampler_error
from skdplda.privacy._budget_charge import BudgetCharge
from skdplda.privacy._calibration import calibrate_gaussian, calibrate_laplace
from skdplda.privacy._composition import ACCOUNTINGS as ACCOUNTINGS
from skdplda.privacy._composition import CLAIMED_ACCOUNTINGS as CLAIMED_ACCOUNTINGS
from skdplda.privacy._composition import noise_multiplier
from skdplda.privacy._events import (
    bounded_range_event,
    compose_events,
    gaussian_event,
    laplace_event,
    pure_event,
    selection_event,
    zcdp_event,
)
from skdplda.privacy._events import check_delta as check_delta
from skdplda.privacy._events import check_epsilon as check_epsilon
from skdplda.privacy._events import gaussian_part as gaussian_part
from skdplda.privacy._guarantee import PrivacyGuarantee
from skdplda.privacy._mechanisms import MECHANISMS as MECHANISMS
from skdplda.privacy._mechanisms import Mechanism, mechanism_of
from skdplda.privacy._mechanisms import without_slack as without_slack
from skdplda.privacy._monitor import InherentPrivacyHistory, exact_draw_loss, monitor_draw
from skdplda.privacy._noise import (
    delta_slack,
    discrete_gaussian,
    discrete_laplace,
    rounded_gaussian,
    sampler_slack,
)
from skdplda.privacy._noise import sampler_assumption as sampler_assumption
from skdplda.privacy._open_ledgers import LedgerAwareMixin as LedgerAwareMixin
from skdplda.privacy._open_ledgers import prepaid as prepaid
from skdplda.privacy._partition import PartitionPlan, plan_partition, select_partitions
from skdplda.privacy._partition import epsilon_needed as epsilon_needed
from skdplda.privacy._partition import select_words as select_words
from skdplda.privacy._randomness import Randomness
from skdplda.privacy._randomness import is_guessable_seed as is_guessable_seed
from skdplda.privacy._randomness import seeded_guarantee as seeded_guarantee
from skdplda.privacy._unit_words import UnitWords as UnitWords
from skdplda.privacy._units import Adjacency, PrivacyUnit, Status, TrustModel

__all__ = [
    "Adjacency",
    "BudgetCharge",
    "InherentPrivacyHistory",
    "LedgerEntry",
    "Mechanism",
    "PartitionPlan",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyUnit",
    "Randomness",
    "Status",
    "TrustModel",
    "active_accountant",
    "bounded_range_event",
    "calibrate_gaussian",
    "calibrate_laplace",
    "compose_events",
    "delta_of",
    "delta_slack",
    "discrete_gaussian",
    "discrete_laplace",
    "epsilon_of",
    "exact_draw_loss",
    "gaussian_event",
    "laplace_event",
    "mechanism_of",
    "monitor_draw",
    "noise_multiplier",
    "plan_partition",
    "pure_event",
    "rounded_gaussian",
    "sampler_slack",
    "select_partitions",
    "selection_event",
    "zcdp_event",
]

RENAMED = {"Payment": "BudgetCharge"}


def __getattr__(name: str) -> Any:
    """Return a renamed object by its old name, for one release."""
    if name not in RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = RENAMED[name]
    warnings.warn(
        f"skdplda.privacy.{name} is now skdplda.privacy.{new}; the old name goes with the next release.",
        FutureWarning,
        stacklevel=2,
    )
    return globals()[new]
