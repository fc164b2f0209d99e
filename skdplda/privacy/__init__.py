"""Promises and their price: guarantees, events, calibration and the ledger."""

from skdplda.privacy._accountant import LedgerEntry, PrivacyAccountant
from skdplda.privacy._accounting import delta_of, epsilon_of
from skdplda.privacy._calibration import calibrate_gaussian, calibrate_laplace
from skdplda.privacy._composition import ACCOUNTINGS, CLAIMED_ACCOUNTINGS, noise_multiplier
from skdplda.privacy._events import (
    bounded_range_event,
    check_delta,
    check_epsilon,
    compose_events,
    gaussian_event,
    gaussian_part,
    laplace_event,
    pure_event,
    selection_event,
    zcdp_event,
)
from skdplda.privacy._guarantee import PrivacyGuarantee
from skdplda.privacy._monitor import InherentPrivacyHistory, exact_draw_loss, monitor_draw
from skdplda.privacy._noise import delta_slack, discrete_laplace, rounded_gaussian, sampler_slack
from skdplda.privacy._open_ledgers import TellsOpenLedgers, active_accountant, prepaid
from skdplda.privacy._partition import (
    PartitionPlan,
    epsilon_needed,
    plan_partition,
    select_partitions,
    select_words,
)
from skdplda.privacy._payment import Payment
from skdplda.privacy._randomness import Randomness, equal_noise, is_guessable, seeded_guarantee
from skdplda.privacy._unit_words import UnitWords
from skdplda.privacy._units import Adjacency, PrivacyUnit, Status, TrustModel

__all__ = [
    "ACCOUNTINGS",
    "CLAIMED_ACCOUNTINGS",
    "Adjacency",
    "InherentPrivacyHistory",
    "LedgerEntry",
    "PartitionPlan",
    "Payment",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyUnit",
    "Randomness",
    "Status",
    "TellsOpenLedgers",
    "TrustModel",
    "UnitWords",
    "active_accountant",
    "bounded_range_event",
    "calibrate_gaussian",
    "calibrate_laplace",
    "check_delta",
    "check_epsilon",
    "compose_events",
    "delta_of",
    "delta_slack",
    "discrete_laplace",
    "epsilon_needed",
    "epsilon_of",
    "equal_noise",
    "exact_draw_loss",
    "gaussian_event",
    "gaussian_part",
    "is_guessable",
    "laplace_event",
    "monitor_draw",
    "noise_multiplier",
    "plan_partition",
    "prepaid",
    "pure_event",
    "rounded_gaussian",
    "sampler_slack",
    "seeded_guarantee",
    "select_partitions",
    "select_words",
    "selection_event",
    "zcdp_event",
]
