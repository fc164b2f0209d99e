"""Guarantees and what they cost: events, accounting, calibration, noise, private selection and the ledger.

`__all__` is for users. The other names are for the other packages of skdplda only, and may change.
"""

# ruff: noqa: F401

from skdplda.privacy._accountant import LedgerEntry, PrivacyAccountant, active_accountant
from skdplda.privacy._accounting import dearest_event, delta_of, epsilon_of, epsilon_with_sampler_error, least
from skdplda.privacy._budget_charge import BudgetCharge
from skdplda.privacy._calibration import (
    calibrate_gaussian,
    calibrate_laplace,
    divide_epsilon,
    finite_noise,
)
from skdplda.privacy._events import (
    bounded_range_event,
    check_delta,
    check_epsilon,
    compose_events,
    gaussian_event,
    gaussian_part,
    laplace_event,
    leaves_of,
    pure_event,
    selection_event,
    zcdp_event,
)
from skdplda.privacy._guarantee import PrivacyGuarantee, check_compatible, doubted
from skdplda.privacy._hidden_seeds import HiddenSeedsMixin, is_seed
from skdplda.privacy._mechanisms import (
    MECHANISMS,
    MOST_DRAWS,
    Mechanism,
    mechanism_of,
    pure_mechanisms,
    without_slack,
)
from skdplda.privacy._monitor import InherentPrivacyHistory
from skdplda.privacy._noise import (
    LARGEST_SCALE,
    NORM_BOUND,
    delta_slack,
    discrete_gaussian,
    discrete_laplace,
    rounded_gaussian,
    sampler_assumption,
)
from skdplda.privacy._observation import observe, observing
from skdplda.privacy._open_ledgers import LedgerAwareMixin, prepaid
from skdplda.privacy._origin import believed_guarantee, is_covered, is_of_package, stated_guarantee
from skdplda.privacy._partition import (
    PartitionPlan,
    epsilon_needed,
    has_levels,
    level_parts,
    mechanisms_of,
    most_units,
    plan_partition,
    select_partitions,
    select_words,
)
from skdplda.privacy._randomness import Randomness, is_guessable_seed, seeded_guarantee
from skdplda.privacy._released import COLUMNS, CURATOR, KNOWN, check_released
from skdplda.privacy._spending import Spending
from skdplda.privacy._statement import check_code, protects, right_of_100, round_up, statement_rows
from skdplda.privacy._unit_words import UnitWords
from skdplda.privacy._units import Adjacency, PrivacyUnit, Status, TrustModel

__all__ = [
    "Adjacency",
    "InherentPrivacyHistory",
    "LedgerEntry",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyUnit",
    "Status",
    "TrustModel",
    "calibrate_gaussian",
    "calibrate_laplace",
    "delta_of",
    "divide_epsilon",
    "epsilon_of",
    "gaussian_event",
    "laplace_event",
    "pure_event",
    "zcdp_event",
]
