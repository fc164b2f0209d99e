"""The private loop: E-steps, noisy sums, M-steps and the guarantee that they keep.

`__all__` is for users. `BudgetPlan`, `FORGET`, `GRID` and `least_total` are for the audits only, `seeded_names` for
pipelines.
"""

# ruff: noqa: F401

from skdplda.rounds._adaptive import least_total
from skdplda.rounds._loop import EStep, RoundReport, Tables
from skdplda.rounds._plan import BudgetPlan, NoisePlan
from skdplda.rounds._prior import PublicPrior, WordPrior, seeded_names
from skdplda.rounds._sensitivity import GRID
from skdplda.rounds._tables import FORGET

__all__ = ["EStep", "NoisePlan", "PublicPrior", "RoundReport", "Tables", "WordPrior"]
