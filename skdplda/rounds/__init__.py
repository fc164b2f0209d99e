"""The private loop: strategies that ask, sums with noise that answer, and the budget that they spend.

`__all__` is for users. The other names are for other packages of skdplda. A module is imported when a name of it is
asked for: a price needs none of those that read documents.
"""

# ruff: noqa: F401

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skdplda.privacy import NORM_BOUND, Spending
    from skdplda.rounds._adaptive import least_total
    from skdplda.rounds._bounds import Bounded, Contributions
    from skdplda.rounds._loop import Ask, EStep, RoundReport, Tables
    from skdplda.rounds._plans import BudgetPlan, NoisePlan
    from skdplda.rounds._prices import FORGET, GibbsPrice, VariationalPrice
    from skdplda.rounds._queries import Query, TopicWordCounts

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

_PLACES = {
    "privacy": ("NORM_BOUND", "Spending"),
    "rounds._adaptive": ("least_total",),
    "rounds._bounds": ("Bounded", "Contributions"),
    "rounds._loop": ("Ask", "EStep", "RoundReport", "Tables"),
    "rounds._prices": ("FORGET", "GibbsPrice", "VariationalPrice"),
    "rounds._queries": ("Query", "TopicWordCounts"),
    "rounds._plans": ("BudgetPlan", "NoisePlan"),
}


def __getattr__(name):
    for place, names in _PLACES.items():
        if name in names:
            return globals().setdefault(name, getattr(import_module(f"skdplda.{place}"), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *(name for names in _PLACES.values() for name in names)})
