"""What events cost, at their limits: the work is bounded before it begins, and no number is below the truth."""

import math
import subprocess
import sys

import mpmath
import numpy as np
import pytest
from dp_accounting import ComposedDpEvent, GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.dp_event import DiscreteLaplaceDpEvent, LaplaceDpEvent, RepeatAndSelectDpEvent, ZCDpEvent
from dp_accounting.rdp import RdpAccountant
from internals import Rule, parts_of, renyi_accountant
from internals import loss_distribution as _loss_distribution
from scipy.stats import binom

from skdplda.privacy import (
    LedgerEntry,
    PrivacyGuarantee,
    compose_events,
    delta_of,
    epsilon_of,
    gaussian_event,
    pure_event,
    selection_event,
)

MOST_KINDS = 64  # that are accounted one by one
HUGE = 10**400  # an integer that no float holds

# What a file may hold: 2**count was computed once, or a grid of 4.9 GiB.
ENDLESS = {
    "many tiny steps": "pure_event(1e-9, 10**12)",
    "many steps": "pure_event(1e-3, 10**9)",
    "many steps and another": "compose_events([pure_event(1e-3, 10**7), pure_event(0.5)])",
    "many kinds": "compose_events([pure_event(rng.uniform(0.01, 0.1), 3) for _ in range(500)])",
    "many sampled kinds": "compose_events([gaussian_event(rng.uniform(1, 3), 20, rng.uniform(0.01, 0.1)) "
    "for _ in range(200)])",
}
CHILD = """
import os, resource, sys, tempfile
import dp_accounting.pld, dp_accounting.rdp  # once, not in each fork
import numpy as np
from skdplda import PrivacyGuarantee, ReleasedTopicModel, load_released
from skdplda.privacy import compose_events, delta_of, epsilon_of, gaussian_event, pure_event, selection_event

def work(event):
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    guarantee = PrivacyGuarantee.from_event(event, 1e-6, status="proven")
    assert 0 < guarantee.epsilon <= sum(g.epsilon for g in [PrivacyGuarantee.from_event(event, 0.0)])
    again = PrivacyGuarantee.from_json(guarantee.to_json())
    assert again.epsilon_at(1e-7) >= again.epsilon and 0 <= again.delta_at(again.epsilon) <= 1.01e-6
    both = guarantee.compose(guarantee)
    assert guarantee.epsilon < both.epsilon
    path = os.path.join(tempfile.mkdtemp(), "model.zip")
    ReleasedTopicModel([[1.0]], ["pear"], privacy_guarantee=guarantee).save(path)
    assert load_released(path).privacy_guarantee_ == guarantee
    os.write(1, b"ended\\n")

for event in sys.argv[1:]:
    if (child := os.fork()) == 0:
        try:
            rng = np.random.default_rng(0)
            work(eval(event))
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
"""


def test_the_work_on_an_event_has_an_end():
    command = [sys.executable, "-c", CHILD, *ENDLESS.values()]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["ended"] * len(ENDLESS), found.stderr[-2000:]


def exact_delta(epsilon, steps, at):
    """Delta of randomized response, composed: Kairouz, Oh and Viswanath (2017), Theorem 3.3."""
    least = math.floor((at / epsilon + steps) / 2)
    more, less = (binom.sf(least, steps, 1 / (1 + math.exp(sign * epsilon))) for sign in (-1, 1))
    return more - math.exp(at) * less


@pytest.mark.parametrize("steps", [10**3, 20_000, 10**5, 10**6])
@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0, 5.0])
def test_many_steps_cost_no_less_than_they_do(steps, scale):
    """The rounding of a long convolution grows with the steps, and differs between versions of SciPy."""
    epsilon = scale / math.sqrt(steps)
    event = pure_event(epsilon, steps)
    for at in np.linspace(0.0, scale**2 / 2 + 9 * scale, 40):
        true = exact_delta(epsilon, steps, at)
        assert delta_of(event, at) >= true * (1 - 1e-9)
        if 1e-9 < true < 0.5:
            assert epsilon_of(event, true) >= at * (1 - 1e-9)


def test_many_sampled_kinds_cost_no_less_than_each_of_them():
    rng = np.random.default_rng(0)
    kinds = [(rng.uniform(0.01, 0.1), rng.uniform(1.0, 3.0), int(rng.integers(1, 9))) for _ in range(2 * MOST_KINDS)]
    event = compose_events([gaussian_event(sigma, count, rate) for rate, sigma, count in kinds])
    accountant = RdpAccountant(orders=[*range(2, 17)])
    for rate, sigma, count in kinds:
        accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), count))
    least, order = accountant.get_epsilon_and_optimal_order(1e-6)
    assert order < 16  # larger ones give no less
    assert least <= epsilon_of(event, 1e-6) <= 1.5 * least


def test_more_searches_than_can_be_accounted_for_are_refused():
    searches = [selection_event(gaussian_event(5.0, 2, 0.01), 3.0 + number) for number in range(MOST_KINDS)]
    with pytest.raises(ValueError, match="at most 64 different mechanisms in searches"):
        epsilon_of(compose_events(searches), 1e-6)


@pytest.mark.parametrize(
    "event",
    [
        SelfComposedDpEvent(GaussianDpEvent(1.0), HUGE),
        SelfComposedDpEvent(SelfComposedDpEvent(GaussianDpEvent(1.0), 2**30), 2**30),
        ComposedDpEvent([SelfComposedDpEvent(DiscreteLaplaceDpEvent(0.1, 1), 2**53 + 1)]),
        GaussianDpEvent(HUGE),
        LaplaceDpEvent(HUGE),
        DiscreteLaplaceDpEvent(HUGE, 1),
        DiscreteLaplaceDpEvent(1.0, HUGE),
        ZCDpEvent(HUGE),
        RepeatAndSelectDpEvent(GaussianDpEvent(1.0), HUGE, 1),
    ],
    ids=lambda event: type(event).__name__,
)
def test_integers_that_no_float_holds_are_refused_in_events(event):
    for cost in (lambda: epsilon_of(event, 1e-6), lambda: delta_of(event, 1.0), lambda: compose_events([event, event])):
        with pytest.raises(ValueError, match=r"float|2\*\*53"):
            cost()
    with pytest.raises(ValueError, match=r"float|2\*\*53"):
        PrivacyGuarantee(epsilon=1.0, delta=1e-6, event=event)


def test_integers_that_no_float_holds_are_refused_elsewhere():
    good = PrivacyGuarantee.from_event(gaussian_event(5.0), 1e-6)
    for wrong in (
        lambda: PrivacyGuarantee(epsilon=HUGE),
        lambda: PrivacyGuarantee(epsilon=1.0, delta=HUGE),
        lambda: good.epsilon_at(HUGE),
        lambda: good.delta_at(HUGE),
        lambda: good.for_group(HUGE),
        lambda: gaussian_event(HUGE),
        lambda: gaussian_event(1.0, HUGE),
        lambda: pure_event(HUGE),
        lambda: PrivacyGuarantee.from_json(good.to_json().replace('"delta": 1e-06', f'"delta": {HUGE}')),
        lambda: PrivacyGuarantee.from_json(good.to_json().replace("5.0", str(HUGE))),
        lambda: PrivacyGuarantee.from_json(good.to_json().replace("5.0", "1" + 5000 * "0")),
    ):
        with pytest.raises(ValueError, match=r"float|2\*\*53|JSON"):
            wrong()


def test_a_composition_of_too_many_levels_is_refused():
    event = GaussianDpEvent(1.0)
    for _ in range(10_000):
        event = SelfComposedDpEvent(event, 1)
    with pytest.raises(ValueError, match="too deep"):
        epsilon_of(event, 1e-6)


def test_events_at_the_limits_of_floats_have_a_cost_or_are_refused():
    rng = np.random.default_rng(0)
    numbers = [0, 5e-324, 1e-300, 1e-9, 0.5, 1.0, 10.0, 1e6, 1e17, 1e300, math.inf, 10**20, HUGE]

    def number():
        return numbers[rng.integers(len(numbers))]

    def event(depth=0):
        kind = rng.integers(8 if depth < 3 else 5)
        if kind == 0:
            return GaussianDpEvent(number())
        if kind == 1:
            return LaplaceDpEvent(number())
        if kind == 2:
            return DiscreteLaplaceDpEvent(number(), 1)
        if kind == 3:
            return ZCDpEvent(number(), 0)
        if kind == 4:
            return PoissonSampledDpEvent([1e-300, 0.01, 1][rng.integers(3)], GaussianDpEvent(number()))
        if kind == 5:
            return SelfComposedDpEvent(event(depth + 1), [2, 10**6, 10**12, 2**53][rng.integers(4)])
        if kind == 6:
            return ComposedDpEvent([event(depth + 1) for _ in range(3)])
        return RepeatAndSelectDpEvent(event(depth + 1), 5.0, 1.0)

    found = refused = 0
    for _ in range(200):
        some = event()
        try:
            epsilon, delta = epsilon_of(some, 1e-6), delta_of(some, 1.0)
        except ValueError:
            refused += 1
        else:
            assert epsilon >= 0 and 0 <= delta <= 1
            found += 1
    # Of 24 seeds 174 have a cost, and 26 are refused, with deviations of 4.4.
    assert found > 140 and refused > 0


@pytest.mark.parametrize("event", [LaplaceDpEvent(math.inf), PoissonSampledDpEvent(0.01, LaplaceDpEvent(math.inf))])
def test_a_release_of_noise_without_bound_costs_nothing(event):
    assert max(epsilon_of(event, 0.0), epsilon_of(event, 1e-6), delta_of(event, 0.0)) <= 1e-12  # rounded up
    for other in (LaplaceDpEvent(2.0), PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0))):
        both = ComposedDpEvent([event, other])
        for cost, least in (
            (epsilon_of(both, 1e-6), epsilon_of(other, 1e-6)),
            (delta_of(both, 0.5), delta_of(other, 0.5)),
        ):
            assert least <= cost <= 1.00001 * least + 1e-12  # rounded up


@pytest.mark.parametrize(
    ("event", "least"),
    [
        (gaussian_event(0.618, 400, 0.001), 0.45),  # the fit of Park et al. (2016), Figure 3
        (compose_events([pure_event(0.001, 5000), gaussian_event(2.0)]), 1.0),
        (compose_events([gaussian_event(1 + 0.1 * kind, 10, 0.05) for kind in range(10)]), 1.0),
    ],
)
def test_what_fits_do_is_accounted_by_loss_distributions(event, least):
    assert _loss_distribution(parts_of(event)) is not None
    assert epsilon_of(event, 1e-4) > least


@pytest.mark.parametrize("noise", [1e170, 1e200, 1.7e308])
@pytest.mark.parametrize("steps", [1, 2**53])
def test_vanishing_gaussian_releases_are_not_free(noise, steps):
    """Their precision underflows; no Gaussian noise is pure, whatever its scale."""
    event = gaussian_event(noise, steps)
    assert epsilon_of(event, 0.0) == math.inf
    assert delta_of(event, 0.0) >= 0.39 * math.sqrt(steps) / noise > 0


@pytest.mark.parametrize(("rate", "noise"), [(0.5, 1e8), (0.1, 1e8), (0.5, 1e4), (0.1, 100.0), (1e-10, 1.0)])
def test_rounding_of_sampled_steps_is_on_the_safe_side(rate, noise):
    """dp-accounting tells divergences of less than nothing here, and then an epsilon of 0."""
    mp = mpmath.mp.clone()
    mp.dps = 60
    accountant = renyi_accountant(parts_of(gaussian_event(noise, 2**40, rate)))
    q, variance = mp.mpf(rate), mp.mpf(noise) ** 2
    for order, told in zip(accountant._orders, accountant._rdp, strict=True):
        order = int(order)
        if order > 64:
            break
        moments = (
            mp.binomial(order, i) * q**i * (1 - q) ** (order - i) * mp.expm1(i * (i - 1) / (2 * variance))
            for i in range(2, order + 1)
        )
        assert told * (1 + 2.0**-40) >= 2**40 * mp.log1p(mp.fsum(moments)) / (order - 1)


def test_a_cost_is_no_less_than_no_divergence_tells():
    """An epsilon of 0 was told: total variation of this event is far above delta."""
    event = gaussian_event(1e8, 2**40, 0.5)
    variation = 0.39 * 0.5 * math.sqrt(2**40) / 1e8  # about that of one release with the noise of the mean
    assert variation > 1e-3
    assert epsilon_of(event, 1e-12) > 0


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.5])
@pytest.mark.parametrize(("noise", "rate"), [(1.0, 1e-50), (1e10, 1e-300), (0.05, 1 - 2.0**-53)])
def test_rates_at_their_limits_have_a_cost(noise, rate, delta):
    """dp-accounting raises on its way to a loss distribution of such rates."""
    event = gaussian_event(noise, 1, rate)
    assert 0 <= epsilon_of(event, delta) <= epsilon_of(gaussian_event(noise), delta) * (1 + 1e-9)
    assert 0 <= delta_of(event, 1.0) <= delta_of(gaussian_event(noise), 1.0) * (1 + 1e-9)


def test_the_best_of_runs_that_tell_nothing_has_a_cost():
    event = selection_event(gaussian_event(1e45), 2.0, math.inf)
    assert epsilon_of(event, 1e-6) >= 0 and 0 <= delta_of(event, 1.0) < 1e-6


def test_integers_whose_product_no_float_holds_have_no_privacy():
    event = DiscreteLaplaceDpEvent(10**300, 10**300)
    assert epsilon_of(event, 1e-6) == math.inf and delta_of(event, 1.0) == 1.0
    guarantee = PrivacyGuarantee(epsilon=math.inf, delta=1e-6, event=event)
    assert Rule("gaussian", 1.0, 1e-6, 1e-7).cost([LedgerEntry(None, guarantee)]) == math.inf
    assert guarantee.for_group(2).epsilon == math.inf
