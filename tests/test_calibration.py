"""The cost of events against exact formulas, and calibration that never overspends."""

import math

import mpmath
import numpy as np
import pytest
from internals import equal_precision as _equal_precision
from internals import rounded_up
from scipy.stats import binom, norm

from skdplda.privacy import (
    PrivacyGuarantee,
    calibrate_gaussian,
    calibrate_laplace,
    check_delta,
    check_epsilon,
    delta_of,
    epsilon_of,
    gaussian_event,
    laplace_event,
    pure_event,
    zcdp_event,
)

INF = math.inf


def composed(*events):
    from dp_accounting import ComposedDpEvent

    return ComposedDpEvent(list(events))


def exact_gaussian_delta(mu, epsilon):
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        upper, lower = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return mpmath.ncdf(upper) - mpmath.exp(epsilon) * mpmath.ncdf(lower)


def exact_pure_delta(groups, epsilon):
    """Delta of composed randomized responses: the loss is a sum of scaled binomials."""
    loss, mass = np.zeros(1), np.ones(1)
    for step, count in groups:
        k = np.arange(count + 1)
        loss = np.add.outer(loss, step * (2 * k - count)).ravel()
        mass = np.multiply.outer(mass, binom.pmf(k, count, 1 / (1 + math.exp(-step)))).ravel()
    return float(np.sum(mass * np.maximum(0, -np.expm1(np.minimum(epsilon - loss, 0)))))


def exact_sampled_delta(sigma, rate, epsilon):
    """Delta of one Poisson-sampled Gaussian release, the worse of removing and adding a record."""

    def masses(x):  # below x: without the record, with it
        without = norm.cdf(x / sigma)
        return without, (1 - rate) * without + rate * norm.cdf((x - 1) / sigma)

    def crossing(ratio):  # where the likelihood ratio with / without takes this value
        return 0.5 + sigma**2 * math.log((ratio - 1 + rate) / rate)

    without, with_ = masses(crossing(math.exp(epsilon)))
    remove = (1 - with_) - math.exp(epsilon) * (1 - without)
    if math.exp(-epsilon) <= 1 - rate:
        return remove
    without, with_ = masses(crossing(math.exp(-epsilon)))
    return max(remove, without - math.exp(epsilon) * with_)


@pytest.mark.parametrize(
    ("event", "delta", "expected", "tolerance"),
    [
        (lambda: gaussian_event(20, steps=300), 1e-6, 4.15182, 1e-5),
        (lambda: pure_event(0.05, steps=300), 1e-6, 4.1225, 1e-4),
        (lambda: pure_event(0.05, steps=300), 0.0, 15.0, 0.0),
        (lambda: pure_event(3**0.5 / 1000, steps=10_000), 1e-6, 0.7146, 1e-4),
        (lambda: pure_event(0.00173, steps=10_000), 1e-6, 0.7136875, 1e-6),
        (lambda: zcdp_event(0.375), 1e-6, 4.44067, 1e-5),
        (lambda: zcdp_event(300 * 0.05**2 / 8), 1e-6, 2.068, 1e-3),
        (lambda: gaussian_event(1.0, steps=400, sampling_rate=0.05), 1e-5, 6.69997, 2e-4),
        (lambda: gaussian_event(5.8, steps=10_000, sampling_rate=0.01), 1e-5, 0.6239, 1e-4),
    ],
)
def test_known_costs(event, delta, expected, tolerance):
    assert epsilon_of(event(), delta) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("mu", [1e-4, 0.01, 0.3, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.5, 3.0, 50.0])
def test_gaussian_delta_bounds_the_exact_value_tightly(mu, epsilon):
    exact = exact_gaussian_delta(1 / (1 / mu), epsilon)
    bound = delta_of(gaussian_event(1 / mu), epsilon)
    assert bound >= exact
    assert bound <= max(float(exact) * (1 + 1e-8), 1e-300)


@pytest.mark.parametrize("sigma", [0.05, 0.7, 5.0, 400.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-9, 1e-5, 0.1])
def test_gaussian_epsilon_bounds_the_exact_value(sigma, delta):
    epsilon = epsilon_of(gaussian_event(sigma, steps=7), delta)
    mu = mpmath.sqrt(7) / mpmath.mpf(sigma)
    assert exact_gaussian_delta(mu, epsilon) <= delta
    if epsilon > 0:
        assert exact_gaussian_delta(mu, epsilon * (1 - 1e-7)) > delta


@pytest.mark.parametrize("groups", [[(0.05, 300)], [(0.00173, 10_000)], [(1.0, 5)], [(0.2, 40), (0.31, 25)]])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10])
def test_pure_composition_is_safe_and_tight(groups, delta):
    epsilon = epsilon_of(composed(*(pure_event(step, count) for step, count in groups)), delta)
    assert exact_pure_delta(groups, epsilon) <= delta
    assert exact_pure_delta(groups, epsilon * 0.99) > delta
    assert epsilon <= math.fsum(step * count for step, count in groups)


@pytest.mark.parametrize("sigma", [0.6, 1.0, 4.0])
@pytest.mark.parametrize("rate", [0.01, 0.2, 0.7])
@pytest.mark.parametrize("epsilon", [0.05, 0.8])
def test_one_sampled_release_is_safe_and_tight(sigma, rate, epsilon):
    exact = exact_sampled_delta(sigma, rate, epsilon)
    bound = delta_of(gaussian_event(sigma, sampling_rate=rate), epsilon)
    assert exact <= bound <= exact * 1.002 + 2e-12
    if exact > 1e-9:
        assert epsilon * (1 - 1e-9) <= epsilon_of(gaussian_event(sigma, sampling_rate=rate), exact)


def test_mixed_events_cost_less_than_their_sum_and_more_than_each():
    parts = [pure_event(0.1, 5), gaussian_event(3.0, 4), gaussian_event(2.0, 100, 0.01), pure_event(0.03)]
    together = epsilon_of(composed(*parts), 1e-6)
    assert together < epsilon_of(parts[1], 1e-6) + 0.5 + epsilon_of(parts[2], 0.5e-6)
    assert together > max(epsilon_of(part, 1e-6) for part in parts)
    assert delta_of(composed(*parts), together) == pytest.approx(1e-6, rel=1e-5)  # both are rounded up


def test_concentrated_events_join_everything():
    zcdp = zcdp_event(0.02)
    for other in (pure_event(0.1, 3), gaussian_event(4.0, 2), gaussian_event(2.0, 50, 0.02)):
        together = epsilon_of(composed(zcdp, other), 1e-6)
        assert max(epsilon_of(zcdp, 1e-6), epsilon_of(other, 1e-6)) < together < 3
        assert delta_of(composed(zcdp, other), together) <= 1e-6 * (1 + 1e-6)
        assert epsilon_of(composed(zcdp, other), 0.0) == INF


def test_equal_splits_of_a_composition_cost_the_same():
    whole = gaussian_event(10.0, 12)
    split = composed(gaussian_event(10.0, 5), composed(gaussian_event(10.0, 7)))
    assert epsilon_of(split, 1e-6) == epsilon_of(whole, 1e-6)
    sampled = composed(gaussian_event(2.0, 3, 0.1), gaussian_event(2.0, 4, 0.1))
    assert epsilon_of(sampled, 1e-6) == epsilon_of(gaussian_event(2.0, 7, 0.1), 1e-6)


def test_tiny_deltas_stay_finite_and_monotone():
    event = gaussian_event(3.0, 100, 0.02)
    costs = [epsilon_of(event, delta) for delta in (1e-6, 1e-9, 1e-11, 1e-14, 1e-30)]
    assert costs == sorted(costs)
    assert costs[-1] < INF
    assert epsilon_of(event, 0.0) == INF


def test_limits():
    from dp_accounting import NoOpDpEvent

    for event in (gaussian_event(0), laplace_event(0, 3), pure_event(INF), zcdp_event(INF)):
        assert epsilon_of(event, 0.5) == INF
        assert delta_of(event, 100.0) == 1.0
    for event in (gaussian_event(INF), laplace_event(INF), pure_event(0), zcdp_event(0), NoOpDpEvent()):
        assert epsilon_of(event, 0.0) == 0.0
        assert delta_of(event, 0.0) == 0.0
    assert epsilon_of(gaussian_event(1e-200), 1e-6) == INF
    assert epsilon_of(gaussian_event(1e150), 1e-6) == 0.0
    assert epsilon_of(gaussian_event(1.0), 1.0) == 0.0
    assert delta_of(laplace_event(2.0, 4), 2.0) == 0.0
    assert delta_of(gaussian_event(1.0), INF) == 0.0


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5])
@pytest.mark.parametrize("steps", [1, 20, 1000])
def test_gaussian_calibration_is_safe_and_tight(epsilon, delta, steps):
    sigma = calibrate_gaussian(epsilon, delta, steps)
    assert epsilon_of(gaussian_event(sigma, steps), delta) <= epsilon
    assert exact_gaussian_delta(mpmath.sqrt(steps) / mpmath.mpf(sigma), epsilon) <= delta
    assert epsilon_of(gaussian_event(sigma * (1 - 1e-6), steps), delta) > epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps", "rate"),
    [
        (5.0, 1e-5, 400, 0.05),
        (1.0, 1e-6, 400, 0.05),
        (0.1, 1e-5, 1000, 0.01),
        (20.0, 1e-5, 100, 0.5),
        (2.0, 1e-9, 1, 0.3),
        (1.0, 1e-13, 100, 0.1),
    ],
)
def test_sampled_calibration_is_safe_and_tight(epsilon, delta, steps, rate):
    sigma = calibrate_gaussian(epsilon, delta, steps, sampling_rate=rate)
    assert epsilon_of(gaussian_event(sigma, steps, rate), delta) <= epsilon
    assert epsilon_of(gaussian_event(sigma * 0.999, steps, rate), delta) > epsilon
    assert sigma < calibrate_gaussian(epsilon, delta, steps)


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 3.0])
@pytest.mark.parametrize("steps", [1, 3, 7, 300])
def test_pure_laplace_calibration_is_exact(epsilon, steps):
    scale = calibrate_laplace(epsilon, steps)
    assert scale == pytest.approx(steps / epsilon, rel=1e-14)
    assert epsilon_of(laplace_event(scale, steps), 0.0) <= epsilon


@pytest.mark.parametrize(("epsilon", "steps", "delta"), [(1.0, 300, 1e-6), (5.0, 10_000, 1e-6), (0.7, 1, 1e-3)])
def test_approximate_laplace_calibration_is_safe_and_tight(epsilon, steps, delta):
    scale = calibrate_laplace(epsilon, steps, delta)
    assert exact_pure_delta([(1 / scale, steps)], epsilon) <= delta
    assert epsilon_of(laplace_event(scale, steps), delta) <= epsilon
    assert epsilon_of(laplace_event(scale * 0.999, steps), delta) > epsilon
    assert scale < steps / epsilon


def test_known_noise_multipliers():
    assert calibrate_gaussian(1.0, 1e-6) == pytest.approx(4.224679, abs=1e-6)
    assert calibrate_gaussian(1.0, 1e-6, steps=300) == pytest.approx(73.1736, abs=1e-4)
    assert calibrate_gaussian(5.0, 1e-5, steps=20) == pytest.approx(3.988556, abs=1e-6)


def test_infinite_epsilon_needs_no_noise():
    assert calibrate_gaussian(INF, 1e-5, 20, 0.1) == 0.0
    assert calibrate_gaussian(INF, 0.0) == 0.0
    assert calibrate_laplace(INF, 5) == 0.0


def test_gaussian_noise_has_no_pure_privacy():
    with pytest.raises(ValueError, match=r"delta must be > 0 for Gaussian noise.*Laplace"):
        calibrate_gaussian(1.0, 0.0)


def test_delta_alone_can_pay():
    sigma = calibrate_gaussian(1.0, 0.1, sampling_rate=0.05)  # a record is seen with probability 0.05
    assert epsilon_of(gaussian_event(sigma, sampling_rate=0.05), 0.1) == 0.0


@pytest.mark.parametrize("epsilon", [-1, 0, float("nan"), -INF])
def test_epsilon_out_of_range(epsilon):
    with pytest.raises(ValueError, match=rf"epsilon must be > 0 or inf; got {epsilon}"):
        check_epsilon(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, float("nan"), INF])
def test_delta_out_of_range(delta):
    with pytest.raises(ValueError, match=rf"delta must be >= 0 and < 1; got {delta}"):
        check_delta(delta)


@pytest.mark.parametrize("value", ["1", None, True, 1j, [1.0]])
def test_only_real_numbers(value):
    with pytest.raises(TypeError, match="epsilon must be a real number"):
        check_epsilon(value)
    with pytest.raises(TypeError, match="delta must be a real number"):
        check_delta(value)


def test_numpy_numbers_become_floats():
    assert type(check_epsilon(np.float32(2))) is float
    assert type(check_epsilon(np.int64(2))) is float
    assert check_epsilon(INF) == INF
    assert check_delta(0) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian_event(-1), "noise_multiplier must be >= 0 or inf; got -1"),
        (lambda: gaussian_event(1, steps=0), "steps must be an integer >= 1; got 0"),
        (lambda: gaussian_event(1, steps=1.5), "steps must be an integer >= 1; got 1.5"),
        (lambda: gaussian_event(1, sampling_rate=0), "sampling_rate must be > 0 and <= 1; got 0"),
        (lambda: laplace_event(-2), "scale must be >= 0 or inf; got -2"),
        (lambda: zcdp_event(-2), "rho must be >= 0 or inf; got -2"),
        (lambda: calibrate_gaussian(1, 1e-5, sampling_rate=2), "sampling_rate must be > 0 and <= 1; got 2"),
        (lambda: epsilon_of(pure_event(1), 1.5), "delta must be >= 0 and <= 1; got 1.5"),
        (lambda: delta_of(pure_event(1), -1), "epsilon must be >= 0 or inf; got -1"),
    ],
)
def test_messages_name_parameter_value_and_range(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_unknown_events_are_refused():
    from dp_accounting import PoissonSampledDpEvent, UnsupportedDpEvent

    for event in (UnsupportedDpEvent(), PoissonSampledDpEvent(0.1, zcdp_event(1.0))):
        with pytest.raises(ValueError, match="no accounting is known for the event"):
            epsilon_of(composed(pure_event(1.0), event), 1e-6)


def out_of_range():
    from dp_accounting import (
        GaussianDpEvent,
        LaplaceDpEvent,
        NonPrivateDpEvent,
        PoissonSampledDpEvent,
        SelfComposedDpEvent,
        dp_event,
    )

    one, nan = GaussianDpEvent(1.0), float("nan")
    yield from (GaussianDpEvent(-1.0), GaussianDpEvent(nan), LaplaceDpEvent(-1.0), LaplaceDpEvent("1"))
    yield from (dp_event.ZCDpEvent(-1.0), dp_event.ZCDpEvent(1.0, -2.0), dp_event.ZCDpEvent(nan))
    yield from (dp_event.DiscreteLaplaceDpEvent(-1.0, 1), dp_event.DiscreteLaplaceDpEvent(1.0, -1))
    yield from (PoissonSampledDpEvent(-0.1, one), PoissonSampledDpEvent(1.5, one), PoissonSampledDpEvent(nan, one))
    yield PoissonSampledDpEvent(0.5, GaussianDpEvent(nan))
    yield from (SelfComposedDpEvent(one, -1), SelfComposedDpEvent(one, 0.5), SelfComposedDpEvent(one, True))
    yield SelfComposedDpEvent(SelfComposedDpEvent(NonPrivateDpEvent(), -1), -1)
    yield from (dp_event.RepeatAndSelectDpEvent(one, 0.5, 1.0), dp_event.RepeatAndSelectDpEvent(one, 5.0, -2.0))
    yield dp_event.RepeatAndSelectDpEvent(GaussianDpEvent(-1.0), 5.0, 1.0)


@pytest.mark.parametrize("event", list(out_of_range()), ids=repr)
def test_numbers_of_an_event_are_checked(event):
    with pytest.raises(ValueError, match="must be"):
        epsilon_of(event, 1e-6)
    with pytest.raises(ValueError, match="must be"):
        PrivacyGuarantee(epsilon=1.0, delta=1e-6, event=event)


def test_sampling_degenerates_and_amplifies():
    from dp_accounting import LaplaceDpEvent, PoissonSampledDpEvent

    assert gaussian_event(2.0, 3, 1.0) == gaussian_event(2.0, 3)
    assert epsilon_of(PoissonSampledDpEvent(0.0, pure_event(1.0)), 0.0) == 0.0
    amplified = epsilon_of(PoissonSampledDpEvent(0.1, LaplaceDpEvent(0.5)), 0.0)
    assert amplified == pytest.approx(math.log1p(0.1 * math.expm1(2.0)), rel=1e-11)


@pytest.mark.parametrize("mu", [0.02, 0.3, 2.0])
@pytest.mark.parametrize("place", [37.0, 37.4, 37.6, 38.0, 38.19, 38.3, 40.0])
def test_a_tiny_gaussian_delta_is_not_below_the_exact_one(mu, place):
    """Below 1e-308 floats have fewer bits, and 5e-324 was called an upper bound of 2e-319."""
    epsilon = mu * (place + mu / 2)
    assert exact_gaussian_delta(mu, epsilon) <= delta_of(gaussian_event(1 / mu), epsilon)


@pytest.mark.parametrize("n_bits", [10, 21, 24])
def test_rounding_up_keeps_few_bits_and_never_falls(n_bits):
    for value in [*np.random.default_rng(0).random(500), 1.0, 2.0**-1022, 1e300, 3.0]:
        found = rounded_up(value, n_bits)
        assert value <= found <= value * (1 + 2.0 ** (1 - n_bits))
        assert found == rounded_up(found, n_bits) == rounded_up(math.nextafter(found, 0), n_bits)
    assert [rounded_up(value, n_bits) for value in (0.0, INF)] == [0.0, INF]


def test_what_dp_accounting_computes_has_few_bits():
    """Its last bits differ between machines."""
    for event, delta in ((gaussian_event(1.3, 20, 0.1), 1e-6), (pure_event(0.1, 30), 1e-5)):
        epsilon = epsilon_of(event, delta)
        assert math.ldexp(epsilon, 21 - math.frexp(epsilon)[1]).is_integer()
        assert math.ldexp(delta_of(event, epsilon), 40).is_integer() or delta_of(event, epsilon) > 2.0**-19
    noise = calibrate_gaussian(2.0, 1e-6, 20, 0.1)
    assert math.ldexp(noise, 16 - math.frexp(noise)[1]).is_integer()


@pytest.mark.parametrize("epsilon", [1e-9, 3e-8, 1e-6, 7e-5, 0.01, 0.7, 3.0, 20.0, 600.0])
def test_the_gaussian_that_tells_as_much_as_randomized_response_is_not_underrated(epsilon):
    """At small epsilon the quotient is near a half, and its rounding error was left out."""
    with mpmath.workprec(400):
        chance = 1 / (1 + mpmath.exp(epsilon))
        mu = mpmath.mpf(_equal_precision(epsilon)) ** 0.5
        assert mpmath.ncdf(-mu / 2) <= chance
        assert mpmath.ncdf(-mu * (1 - 1e-9) / 2 + mpmath.mpf(2) ** -45) >= chance


@pytest.mark.parametrize("epsilon", [5e-324, 1e-200, 1e155, 1.7e308])
@pytest.mark.parametrize(("delta", "rate"), [(5e-324, 1.0), (5e-324, 0.01), (1e-6, 0.01)])
def test_extreme_budgets_get_finite_noise_or_a_sentence(epsilon, delta, rate):
    try:
        noise = calibrate_gaussian(epsilon, delta, 40, rate)
    except ValueError as error:
        assert "beyond the range of floats" in str(error) or "delta of" in str(error)
    else:
        assert 0 < noise < math.inf


@pytest.mark.parametrize("delta", [0.0, 5e-324])
@pytest.mark.parametrize("epsilon", [5e-324, 1e-310])
def test_laplace_noise_beyond_floats_is_refused(epsilon, delta):
    with pytest.raises(ValueError, match="beyond the range of floats"):
        calibrate_laplace(epsilon, 2**53, delta)


def test_noise_for_a_small_delta_and_sampled_steps_is_found():
    """No Renyi order of the grid is high enough; that of unsampled steps is, and costs no less."""
    noise = calibrate_gaussian(1e-5, 1e-15, 40, 0.01)
    assert noise <= calibrate_gaussian(1e-5, 1e-15, 40) * 1.001
    assert epsilon_of(gaussian_event(noise, 40, 0.01), 1e-15) <= 1e-5
