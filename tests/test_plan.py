"""The noise plan: what it says of its noise, how it divides a budget, and that the event covers all of it."""

from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import ComposedDpEvent
from internals import HybridPlan
from internals import divided_budget as divided
from scipy import stats
from scipy.optimize import brentq

from skdplda import PrivateCGSLDA
from skdplda.privacy import MECHANISMS, PrivacyAccountant, delta_of, epsilon_of, gaussian_event, plan_partition
from skdplda.rounds import BudgetPlan, NoisePlan, Spending


@pytest.mark.parametrize(("mechanism", "factor"), [("gaussian", 1.0), ("laplace", 2**0.5)])
def test_a_plan_tells_the_deviation_of_its_noise(mechanism, factor):
    plan = NoisePlan(mechanism, 1.0, (2.0, 3.5), None)
    assert [plan.deviation(0), plan.deviation(1), plan.deviation(-1)] == pytest.approx(
        [2.0 * factor, 3.5 * factor, 3.5 * factor]
    )


def test_the_precision_of_gaussian_rounds_grows_tenfold():
    """From the first round to the last, geometrically; together they are one mechanism of the exact multiplier."""
    precision = np.array(NoisePlan.calibrate("gaussian", 2.0, 1e-6, 5, 1.0).multipliers) ** -2
    np.testing.assert_allclose(precision / precision[0], 10 ** (np.arange(5) / 4), rtol=1e-9)

    def delta(sigma):  # Balle and Wang (2018), Theorem 8
        return stats.norm.cdf(0.5 / sigma - 2 * sigma) - np.exp(2) * stats.norm.cdf(-0.5 / sigma - 2 * sigma)

    sigma = brentq(lambda sigma: delta(sigma) - 1e-6, 0.1, 100, xtol=1e-12)
    assert precision.sum() ** -0.5 == pytest.approx(sigma, rel=1e-5)


def test_the_releases_of_a_plan_are_taken_one_after_the_other_and_no_more():
    plan = NoisePlan.calibrate("gaussian", 2.0, 1e-6, 3)
    for skipped in range(4):  # by an earlier run
        spending = Spending(plan)
        spending.skip(skipped)
        assert tuple(spending.take() for _ in range(3 - skipped)) == plan.multipliers[skipped:]
        assert tuple(spending.multipliers) == plan.multipliers
        for share in (None, 0.1):
            with pytest.raises(RuntimeError, match="release 3 is not one of the plan"):
                spending.take(share)
    with pytest.raises(RuntimeError, match="release 0 is not one of the plan"):
        Spending(plan).take(0.1)  # a plan of fixed releases has no shares


def test_laplace_rounds_divide_epsilon_evenly():
    assert NoisePlan.calibrate("laplace", 2.0, 0.0, 5, 1.0).multipliers == pytest.approx((2.5,) * 5)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate"), [(5.0, 1e-11, 1.0), (22.0, 1e-4, 1.0), (22.0, 1e-4, 0.5), (60.0, 1e-6, 1.0)]
)
def test_the_error_of_the_samplers_is_paid_for_within_delta(epsilon, delta, rate):
    """Where it matters: with an epsilon so large, or a delta so small, that it is a good part of delta."""
    plan = NoisePlan.calibrate("gaussian", epsilon, delta, 3, rate)
    slack = (1 + np.exp(epsilon)) * 2.0**-46  # 2^50 draws, each 2^-96 from its law
    assert slack > delta / 100
    if slack > delta / 2:  # each is within a factor of 1 +- 2^-99 of its law
        assert delta_of(plan.event, epsilon - 2.0**-47) * (1 + 2.0**-47) <= delta
    else:
        assert delta_of(plan.event, epsilon) + slack <= delta * (1 + 1e-6)


@pytest.mark.parametrize("delta", [1e-5, 1e-13, 1e-50])
def test_no_budget_is_left_over(delta):
    plans = [NoisePlan.calibrate("gaussian", epsilon, delta, 3) for epsilon in (1.0, 5.0, 18.0, 20.0, 50.0, 120.0)]
    noise = [plan.multipliers[-1] for plan in plans]
    assert noise == sorted(noise, reverse=True)
    assert [epsilon_of(plan.event, delta) for plan in plans[3:]] == pytest.approx([20.0, 50.0, 120.0], rel=1e-6)


@pytest.mark.parametrize("n_rounds", [1, 2, 20])
def test_unequal_rounds_cost_what_the_event_says(n_rounds):
    plan = NoisePlan.calibrate("gaussian", 2.0, 1e-6, n_rounds, 1.0)
    assert plan.n_rounds == n_rounds
    together = ComposedDpEvent([gaussian_event(multiplier) for multiplier in plan.multipliers])
    assert epsilon_of(together, 1e-6) <= 2.0
    assert epsilon_of(together, 1e-6) == pytest.approx(epsilon_of(plan.event, 1e-6), rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-300])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_more_noise_than_can_be_drawn_is_refused(mechanism, epsilon):
    with pytest.raises(ValueError, match=rf"^epsilon={epsilon!r} is too small: .*Use a larger epsilon"):
        NoisePlan.calibrate(mechanism, epsilon, 1e-12, 20)
    with pytest.raises(ValueError, match=rf"^epsilon={epsilon!r} is too small: .*Use a larger epsilon"):
        NoisePlan.equal(epsilon, 1e-12, 20)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_it_is_refused_before_the_budget_is_charged(mechanism):
    """The samplers would have refused it, after the charge."""
    with PrivacyAccountant(1.0, 1e-5) as accountant, pytest.raises(ValueError, match="Use a larger epsilon"):
        PrivateCGSLDA(2, epsilon=1e-12, delta=1e-12, mechanism=mechanism).fit(np.ones((3, 4), int))
    assert accountant.ledger == ()


@pytest.mark.parametrize(
    "plan",
    [
        NoisePlan("gaussian", 1.0, (2.0, 2.0, 2.0), None),
        HybridPlan.calibrate(1.0, 1e-5, 3, 0.5),
        plan_partition("sips", 1.0, 1e-5, 5, 2.0),
    ],
    ids=lambda plan: type(plan).__name__,
)
def test_a_plan_of_any_kind_has_so_many_releases(plan):
    spending = Spending(plan)
    assert [spending.take() for _ in range(3)] == list(plan.multipliers) == spending.multipliers
    with pytest.raises(RuntimeError, match="release 3 is not one of the plan"):
        spending.take()
    with pytest.raises(RuntimeError, match="release 0 is not one of the plan"):
        Spending(plan).take(0.5)


@pytest.mark.parametrize("proportions", [[1.0], [1, 2, 3], np.logspace(0, 6, 40), np.full(1000, 1e-9)])
def test_what_divides_a_budget_never_exceeds_it(proportions):
    """Whatever rounding does: precisions add up to no more than that of the whole, in exact numbers."""
    multipliers = divided(2.5, proportions)
    precision = sum(1 / Fraction(multiplier) ** 2 for multiplier in multipliers)
    assert 1 - 1e-11 < precision * Fraction(2.5) ** 2 <= 1


def test_a_part_of_a_budget_is_for_noise_whose_precisions_add_up():
    gaussian, laplace = MECHANISMS["gaussian"], MECHANISMS["laplace"]
    (half,), event = gaussian.calibrate(1.0, 1e-5, [1.0], 0.5)
    (whole,), _ = gaussian.calibrate(1.0, 1e-5, [1.0])
    assert half == pytest.approx(whole * 2**0.5) and epsilon_of(event, 1e-5) < 1
    with pytest.raises(ValueError, match="laplace noise has no part of a budget"):
        laplace.calibrate(1.0, 0.0, [1.0, 1.0], 0.5)


def test_what_was_spent_is_kept_as_a_number():
    plan = BudgetPlan.of(1.0, 1e-5, 1e-3)
    share, spending = np.array(0.5), Spending(plan)
    spending.take(share)
    share *= 0.1
    with pytest.raises(RuntimeError, match="exceeds what is left"):
        spending.take(0.6)
    assert Spending(plan).take(np.float32(0.25)) == Spending(plan).take(0.25)
    for taken in (spending, Spending(plan)):
        with pytest.raises(RuntimeError, match="cannot be skipped"):
            taken.skip(1)
    with pytest.raises(RuntimeError, match="too small"):
        Spending(plan).take(5e-324)
