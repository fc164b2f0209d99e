"""Counts as a small release of their own, with Laplace noise: what topics over time and labels have in common."""

from dataclasses import replace

from skdplda.exact._loop import answer_exactly
from skdplda.privacy import Randomness, Spending, check_epsilon
from skdplda.rounds._guarantee import rounds_guarantee
from skdplda.rounds._loop import Ask, converse
from skdplda.rounds._plans import NoisePlan


def counting_plan(epsilon):
    """Return the plan of one release of a pure epsilon."""
    return NoisePlan.calibrate("laplace", check_epsilon(epsilon), 0.0, 1)


def counts_guarantee(plan, unit, epsilon, *, not_covered, **changes):
    """Return the guarantee of counts, of which `changes` are further fields."""
    released = ("counts", "deviation")
    guarantee = rounds_guarantee(
        plan, unit, float(epsilon), 0.0, hidden="", has_noise=False, released=released, **changes
    )
    return replace(guarantee, not_covered=not_covered)


def counted(query, e_step, plan, name):
    """Return the answer to one question, with the noise of the plan, or exact if it has none; `name` is for the key."""
    talk = answer_exactly if plan.noiseless else converse
    return talk(_asked_once(query), e_step, Spending(plan), Randomness(None, name))


def _asked_once(query):
    return (yield Ask(query, None, None, 1))
