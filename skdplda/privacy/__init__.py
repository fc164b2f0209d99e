"""Promises and their price: guarantees, events, calibration and the ledger."""

from skdplda.privacy._accountant import LedgerEntry, PrivacyAccountant, active_accountant
from skdplda.privacy._accounting import delta_of, epsilon_of
from skdplda.privacy._calibration import calibrate_gaussian, calibrate_laplace
from skdplda.privacy._events import (
    check_delta,
    check_epsilon,
    compose_events,
    failure_event,
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
from skdplda.privacy._payment import Payment, prepaid
from skdplda.privacy._units import Adjacency, PrivacyUnit, Status, TrustModel

__all__ = [
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
    "compose_events",
    "delta_of",
    "delta_slack",
    "discrete_laplace",
    "epsilon_of",
    "exact_draw_loss",
    "failure_event",
    "gaussian_event",
    "gaussian_part",
    "laplace_event",
    "monitor_draw",
    "prepaid",
    "pure_event",
    "rounded_gaussian",
    "sampler_slack",
    "selection_event",
    "zcdp_event",
]
