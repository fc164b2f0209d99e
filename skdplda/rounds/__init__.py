"""The private loop: strategies that ask, sums with noise that answer, and the budget that they spend.

`__all__` is for users. `BudgetPlan`, `FORGET`, `NORM_BOUND` and `least_total` are for the audits only.
"""

# ruff: noqa: F401

from skdplda.privacy import Spending
from skdplda.rounds._adaptive import least_total
from skdplda.rounds._bounds import NORM_BOUND, Bounded, Contributions
from skdplda.rounds._loop import Ask, EStep, RoundReport, Tables
from skdplda.rounds._queries import Query, TopicWordCounts
from skdplda.rounds._spending import BudgetPlan, NoisePlan
from skdplda.rounds._tables import FORGET

__all__ = [
    "Ask",
    "Bounded",
    "Contributions",
    "EStep",
    "NoisePlan",
    "Query",
    "RoundReport",
    "Spending",
    "Tables",
    "TopicWordCounts",
]
