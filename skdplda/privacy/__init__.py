"""Promises and their price: guarantees, events, calibration and the ledger."""

from skdplda.privacy._accountant import LedgerEntry, PrivacyAccountant, active_accountant
from skdplda.privacy._calibration import calibrate_gaussian, calibrate_laplace, delta_of, epsilon_of
from skdplda.privacy._composition import ACCOUNTINGS, CLAIMED_ACCOUNTINGS, noise_multiplier
from skdplda.privacy._events import (
    check_delta,
    check_epsilon,
    gaussian_event,
    laplace_event,
    pure_event,
    zcdp_event,
)
from skdplda.privacy._guarantee import PrivacyGuarantee
from skdplda.privacy._monitor import InherentPrivacyHistory, exact_draw_loss, monitor_draw
from skdplda.privacy._noise import delta_slack, discrete_laplace, rounded_gaussian, sampler_slack
from skdplda.privacy._payment import Payment
from skdplda.privacy._units import Adjacency, PrivacyUnit, Status, TrustModel

__all__ = [
    "ACCOUNTINGS",
    "CLAIMED_ACCOUNTINGS",
    "Adjacency",
    "InherentPrivacyHistory",
    "LedgerEntry",
    "Payment",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyUnit",
    "Status",
    "TrustModel",
    "active_accountant",
    "calibrate_gaussian",
    "calibrate_laplace",
    "check_delta",
    "check_epsilon",
    "delta_of",
    "delta_slack",
    "discrete_laplace",
    "epsilon_of",
    "exact_draw_loss",
    "gaussian_event",
    "laplace_event",
    "monitor_draw",
    "noise_multiplier",
    "pure_event",
    "rounded_gaussian",
    "sampler_slack",
    "zcdp_event",
]
