"""From events to numbers and back: the cost of a mechanism, and the noise that meets a budget.

Every number returned is an upper bound on the true cost: floating-point results are rounded outwards, the
numerical accountant's discretisation is pessimistic, and its rounding error is added to delta.
dp-accounting is imported inside the functions (see `_events`).
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, ndtr

from skdplda.privacy._events import (
    check_delta,
    check_epsilon,
    check_nonnegative,
    check_real,
    check_steps,
    gaussian_event,
    laplace_event,
    leaves_of,
)

__all__ = ["calibrate_gaussian", "calibrate_laplace", "delta_of", "epsilon_of"]

ULP = 2.0**-52
OUTWARDS = 1 + 2.0**-40  # covers the rounding error of the formulas that have no finer bound
PLD_SLACK = 1e-12  # above the error of long FFT convolutions, measured against exact binomial sums: 1e-14
PLD_LEAST_DELTA = 1e-11  # below it the slack would dominate: Renyi bounds take over
CALIBRATION_RTOL = 4e-4
LEAST_NOISE = 0.05  # where delta alone pays for everything, calibration stops here


class _Parts(NamedTuple):
    """What a composition amounts to, sorted by kind: hashable, and all that the accounting needs."""

    precision: float = 0.0  # sum of 1 / noise_multiplier^2 over the plain Gaussian releases: mu^2
    pure: tuple = ()  # ((epsilon, count), ...)
    sampled: tuple = ()  # (((rate, noise_multiplier), count), ...)
    rho: float = 0.0  # zCDP
    xi: float = 0.0
    private: bool = True

    @property
    def pure_sum(self):
        """Basic composition of the pure part."""
        return math.fsum(epsilon * count for epsilon, count in self.pure)

    @property
    def only_pure(self):
        """Whether basic composition covers everything."""
        return not (self.precision or self.sampled or self.rho or self.xi)

    @property
    def concentrated(self):
        """The zCDP parameter of everything but the sampled part (pure epsilon is epsilon^2/2-zCDP)."""
        return self.rho + self.precision / 2 + math.fsum(e * e / 2 * n for e, n in self.pure)


def parts_of(event):
    """Sort a composition by kind; raise ValueError for an event that has no accounting here."""
    precision, rho, xi, private, pure, sampled = 0.0, 0.0, 0.0, True, {}, {}
    for leaf, count in leaves_of(event):
        kind = type(leaf).__name__
        rate = 1.0
        if kind == "PoissonSampledDpEvent":
            rate, leaf = leaf.sampling_probability, leaf.event
            kind = type(leaf).__name__
            if rate == 0:
                continue
        if kind == "NonPrivateDpEvent":
            private = False
        elif kind == "GaussianDpEvent":
            sigma = leaf.noise_multiplier
            if sigma == 0:
                private = False
            elif rate == 1:
                precision += count / sigma / sigma
            else:
                sampled[rate, sigma] = sampled.get((rate, sigma), 0) + count
        elif kind in ("DiscreteLaplaceDpEvent", "LaplaceDpEvent"):
            if kind == "LaplaceDpEvent":
                epsilon = 1 / leaf.noise_multiplier if leaf.noise_multiplier else math.inf
            else:
                epsilon = leaf.noise_parameter * leaf.sensitivity or math.inf
            if rate < 1:
                epsilon = math.log1p(rate * math.expm1(epsilon)) * OUTWARDS if epsilon < 700 else epsilon
            private = private and epsilon < math.inf
            pure[epsilon] = pure.get(epsilon, 0) + count
        elif kind == "ZCDpEvent" and rate == 1:
            rho, xi = rho + count * leaf.rho, xi + count * leaf.xi
        else:
            raise ValueError(f"no accounting is known for the event {event!r}")
    private = private and math.isfinite(precision)  # a denormal noise multiplier is none
    return _Parts(precision, tuple(sorted(pure.items())), tuple(sorted(sampled.items())), rho, xi, private)


# --- the cost of an event -----------------------------------------------------------------------------


def epsilon_of(event, delta):
    """Compute the smallest known epsilon of an event at a given delta.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Compositions of Gaussian, Poisson-subsampled Gaussian, Laplace, discrete Laplace and zCDP events.
    delta : float
        In [0, 1].

    Returns
    -------
    epsilon : float
        An upper bound on the true value: the least of the bounds that apply, among basic composition of
        pure events, the exact Gaussian formula [1]_, privacy loss distributions, and Renyi divergences.

    Raises
    ------
    ValueError
        If `delta` is outside [0, 1], or no accounting is known for the event.

    References
    ----------
    .. [1] B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018,
       Theorem 8.

    Examples
    --------
    >>> from skdplda.privacy import epsilon_of, gaussian_event, pure_event
    >>> round(epsilon_of(gaussian_event(20, steps=300), 1e-6), 4)
    4.1518
    >>> epsilon_of(pure_event(0.05, steps=300), 0.0)
    15.0
    """
    delta = check_real("delta", delta, ">= 0 and <= 1")
    if not 0 <= delta <= 1:
        raise ValueError(f"delta must be >= 0 and <= 1; got {delta:g}")
    return _epsilon(parts_of(event), delta)


def delta_of(event, epsilon):
    """Compute the smallest known delta of an event at a given epsilon.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        See `epsilon_of`.
    epsilon : float
        At least 0.

    Returns
    -------
    delta : float
        An upper bound on the true value.

    Raises
    ------
    ValueError
        If `epsilon` is negative, or no accounting is known for the event.
    """
    return _delta(parts_of(event), check_nonnegative("epsilon", epsilon))


@lru_cache(maxsize=256)
def _epsilon(parts, delta):
    if delta >= 1 or parts == _Parts():
        return 0.0
    if not parts.private:
        return math.inf
    bounds = [parts.pure_sum if parts.only_pure else math.inf]
    if delta > 0:
        if parts.precision and not (parts.sampled or parts.rho or parts.xi):
            bounds.append(parts.pure_sum + _gaussian_epsilon(math.sqrt(parts.precision), delta))
            if not parts.pure:
                return bounds[-1]
        if not parts.sampled:
            bounds.append(_zcdp_epsilon(parts.concentrated, parts.xi, delta))
            bounds.append(parts.pure_sum + _zcdp_epsilon(parts.rho + parts.precision / 2, parts.xi, delta))
        use_pld = delta >= PLD_LEAST_DELTA and not (parts.rho or parts.xi)
        if use_pld:
            bounds.append(_loss_distribution(parts).get_epsilon_for_delta(delta - PLD_SLACK) * OUTWARDS)
        if parts.sampled and not (use_pld and bounds[-1] < math.inf):
            bounds.append(renyi_accountant(parts).get_epsilon(delta) * OUTWARDS)
    return max(0.0, float(min(bounds)))


@lru_cache(maxsize=256)
def _delta(parts, epsilon):
    if math.isinf(epsilon) or parts == _Parts():
        return 0.0
    if not parts.private:
        return 1.0
    rest = epsilon - parts.pure_sum
    if parts.only_pure and rest >= 0:
        return 0.0
    bounds = [1.0]
    if parts.precision and not (parts.sampled or parts.rho or parts.xi):
        if rest >= 0:
            bounds.append(_gaussian_delta(math.sqrt(parts.precision), rest))
        if not parts.pure:
            return min(bounds)
    if not parts.sampled:
        bounds.append(_zcdp_delta(parts.concentrated, parts.xi, epsilon))
        if rest >= 0:
            bounds.append(_zcdp_delta(parts.rho + parts.precision / 2, parts.xi, rest))
    if not (parts.rho or parts.xi):
        bounds.append(float(_loss_distribution(parts).get_delta_for_epsilon(epsilon)) * OUTWARDS + PLD_SLACK)
    if parts.sampled and (parts.rho or parts.xi or min(bounds) < PLD_LEAST_DELTA):
        bounds.append(float(renyi_accountant(parts).get_delta(epsilon)) * OUTWARDS)
    return float(min(bounds))


def _gaussian_delta(mu, epsilon):
    """Delta of a Gaussian mechanism of sensitivity / noise = mu, rounded outwards.

    Phi(a) - e^eps Phi(b) with a = mu/2 - eps/mu, b = -mu/2 - eps/mu. As e^eps phi(b) = phi(a), both terms
    share the factor exp(-a^2/2)/2 and only values of erfcx are subtracted: nothing cancels but their slopes.
    """
    mu *= 1 + 4 * ULP
    ratio = epsilon / mu
    upper, lower = (ratio - mu / 2) / math.sqrt(2), (ratio + mu / 2) / math.sqrt(2)
    if upper > 27:  # below the least positive float
        return 5e-324
    if upper < -4:  # delta is near 1 and erfcx would grow without bound
        return min(1.0, float(ndtr(-upper * math.sqrt(2))) * (1 + 8 * ULP))
    difference = erfcx(upper) * (1 + 8 * ULP) - erfcx(lower) * (1 - 8 * ULP)
    return min(1.0, float(0.5 * math.exp(-upper * upper) * difference) * (1 + 16 * ULP * (1 + lower * lower)))


def _gaussian_epsilon(mu, delta):
    """Smallest epsilon, up to rounding, with _gaussian_delta(mu, epsilon) <= delta."""
    return _least(lambda epsilon: _gaussian_delta(mu, epsilon) <= delta, mu * mu / 2 + mu)


def _least(safe, guess):
    """Bisect for the least x >= 0 with safe(x), for a monotone condition; the result is safe."""
    if safe(0.0):
        return 0.0
    low, high = 0.0, guess
    while high < math.inf and not safe(high):
        low, high = high, 2 * high
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high or high - low <= 2 * ULP * high:
            return high
        low, high = (low, middle) if safe(middle) else (middle, high)


def _minimize_over_orders(bound):
    """Least value of a bound over Renyi orders above 1: every order is valid, so a grid is enough."""
    t = np.linspace(-6.0, 30.0, 721)
    for _ in range(3):
        values = bound(1 + np.exp(t))
        best = int(np.nanargmin(values))
        t = np.linspace(t[max(best - 1, 0)], t[min(best + 1, t.size - 1)], 101)
    return float(np.nanmin(values))


def _zcdp_epsilon(rho, xi, delta):
    """Epsilon of (xi, rho)-zCDP: Canonne, Kamath and Steinke 2020, Proposition 12."""

    def bound(order):
        return xi + rho * order + np.log1p(-1 / order) - (math.log(delta) + np.log(order)) / (order - 1)

    return max(0.0, _minimize_over_orders(bound) * OUTWARDS + 2.0**-44)


def _zcdp_delta(rho, xi, epsilon):
    """Delta of (xi, rho)-zCDP, from the same proposition."""

    def bound(order):
        rounding = 8 * ULP * (1 + xi + rho * order + epsilon)
        return (order - 1) * (xi + rho * order - epsilon + np.log1p(-1 / order) + rounding) - np.log(order)

    return min(1.0, math.exp(min(0.0, _minimize_over_orders(bound) + 2.0**-40)))


@lru_cache(maxsize=8)
def _loss_distribution(parts):
    """Privacy loss distribution of the Gaussian, sampled and pure parts, on a grid that suits them."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.dp_event import DiscreteLaplaceDpEvent
    from dp_accounting.pld import PLDAccountant

    interval = _grid_interval(parts)
    pure = parts.pure
    if parts.precision or parts.sampled or len(pure) > 1:  # a larger epsilon dominates: move up to the grid
        interval = 2.0 ** math.floor(math.log2(interval))  # a power of two, so that multiples are exact
        pure = [(math.ceil(epsilon / interval) * interval, count) for epsilon, count in pure]
    accountant = PLDAccountant(value_discretization_interval=interval)
    if parts.precision:
        accountant.compose(GaussianDpEvent(1 / math.sqrt(parts.precision)))
    for epsilon, count in pure:
        accountant.compose(SelfComposedDpEvent(DiscreteLaplaceDpEvent(epsilon, 1), count))
    for (rate, sigma), count in parts.sampled:
        accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), count))
    return accountant._pld


def _grid_interval(parts):
    """Choose a grid fine against the loss of one step, coarse enough for about a million points.

    The default grid of 1e-4 can be wider than the loss of a step, and then overstates epsilon by up to 70 %.
    """
    if len(parts.pure) == 1 and not (parts.precision or parts.sampled):
        return parts.pure[0][0]  # the loss lives on {-epsilon, epsilon}: this grid is exact
    finest, variance, reach = 0.01, 0.0, 0.0
    for epsilon, count in parts.pure:
        finest, variance = min(finest, epsilon / 512), variance + count * epsilon**2
    if parts.precision:
        finest, variance = min(finest, math.sqrt(parts.precision) / 40), variance + parts.precision
    for (rate, sigma), count in parts.sampled:
        chi2 = math.expm1(min(sigma**-2, 700))
        deviation = min(1 / sigma, rate * math.sqrt(chi2))
        finest, variance = min(finest, deviation / 40), variance + count * deviation**2
        tail = 10 / sigma + 0.5 / sigma**2
        reach = max(reach, math.log1p(rate * math.exp(tail)) if tail < 700 else tail)
    return max(finest, (variance + 16 * math.sqrt(variance)) / 1e6, reach / 2e5)


def renyi_accountant(parts):
    """Renyi accountant for sampled releases beside anything else; integer orders have exact formulas."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.dp_event import ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(orders=[*range(2, 65), *(2**k for k in range(7, 12))])
    accountant.compose(ZCDpEvent(parts.concentrated, parts.xi))
    for (rate, sigma), count in parts.sampled:
        accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), count))
    return accountant


# --- the noise that meets a budget --------------------------------------------------------------------


def calibrate_gaussian(epsilon, delta, steps=1, sampling_rate=1.0):
    """Find the least Gaussian noise for a total privacy budget.

    Parameters
    ----------
    epsilon : float
        Total budget of all steps; inf asks for no noise.
    delta : float
        In (0, 1).
    steps : int, default=1
        Number of adaptive releases.
    sampling_rate : float, default=1.0
        Poisson sampling rate of each release; see `gaussian_event`.

    Returns
    -------
    noise_multiplier : float
        Standard deviation over L2 sensitivity, 0.0 for infinite epsilon. The cost that `epsilon_of` reports
        for it never exceeds `epsilon`; it is within 0.1 % of the least such value (with sampling, from
        0.05 upwards).

    Raises
    ------
    ValueError
        If a parameter is out of range, or `delta` is 0: no Gaussian noise gives pure privacy.

    Examples
    --------
    >>> from skdplda.privacy import calibrate_gaussian
    >>> round(calibrate_gaussian(1.0, 1e-5, steps=20), 3)
    16.684
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    gaussian_event(1.0, steps, sampling_rate)  # checks both
    if math.isinf(epsilon):
        return 0.0
    if delta == 0:
        raise ValueError("delta must be > 0 for Gaussian noise; use Laplace noise for delta=0, or give a delta")

    def cost(sigma):
        return epsilon_of(gaussian_event(sigma, steps, sampling_rate), delta)

    if sampling_rate == 1:
        sigma = math.sqrt(steps) * _least_sigma(epsilon, delta)
        return _nudge_until_safe(cost, epsilon, sigma)
    # Guess by the central limit theorem for subsampled Gaussians (Dong, Roth, Su 2022, Corollary 5.4).
    mu = 1 / _least_sigma(epsilon, delta)
    guess = math.log1p((mu / sampling_rate) ** 2 / steps) ** -0.5
    return search_noise(cost, epsilon, guess)


def calibrate_laplace(epsilon, steps=1, delta=0.0):
    """Find the least Laplace noise for a total privacy budget.

    Parameters
    ----------
    epsilon : float
        Total budget of all steps; inf asks for no noise.
    steps : int, default=1
        Number of adaptive releases.
    delta : float, default=0.0
        In [0, 1). With 0 the epsilons of the steps add up; a small delta pays for many steps.

    Returns
    -------
    scale : float
        Scale over L1 sensitivity, 0.0 for infinite epsilon. The cost that `epsilon_of` reports for it never
        exceeds `epsilon`; it is within 0.1 % of the least such value.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> from skdplda.privacy import calibrate_laplace
    >>> calibrate_laplace(2.0, steps=10)
    5.0
    """
    epsilon, delta, steps = check_epsilon(epsilon), check_delta(delta), check_steps(steps)
    if math.isinf(epsilon):
        return 0.0

    def cost(scale):
        return epsilon_of(laplace_event(scale, steps), delta)

    if delta == 0:
        return _nudge_until_safe(cost, epsilon, steps / epsilon)
    return search_noise(cost, epsilon, min(steps / epsilon, math.sqrt(steps) * _least_sigma(epsilon, delta)))


def _least_sigma(epsilon, delta):
    """Noise multiplier of one Gaussian release."""
    return _least(lambda sigma: sigma > 0 and _gaussian_delta(1 / sigma, epsilon) <= delta, 1.0)


def _nudge_until_safe(cost, epsilon, noise):
    """Increase the result of a closed form until its reported cost is within epsilon."""
    step = ULP
    while cost(noise) > epsilon:
        noise, step = noise * (1 + step), 2 * step
    return noise


def search_noise(cost, epsilon, guess):
    """Least noise with cost(noise) <= epsilon, to a relative CALIBRATION_RTOL from the safe side.

    Brackets around the guess, then follows the secant of log cost against log noise, aimed a little to the
    side that was not hit last, so that both ends of the bracket close in.
    """
    low = high = None  # (noise, cost): too little noise, enough noise
    noise, factor = guess, 1.02
    while low is None or high is None:
        value = cost(noise)
        if value <= epsilon:
            high = noise, value
            if noise <= LEAST_NOISE:
                return noise
            noise = noise / factor
        else:
            low = noise, value
            noise = noise * factor
        factor = min(factor**2, 16.0)
    safe, turn = True, 0
    while high[0] > low[0] * (1 + CALIBRATION_RTOL):
        turn += 1
        width = math.log(high[0] / low[0])
        part = 0.5  # plain bisection now and then, and where the secant is undefined
        if turn % 4 and high[1] > 0 and low[1] < math.inf:
            part = math.log(low[1] / epsilon) / math.log(low[1] / high[1])
            part += (-1 if safe else 1) * CALIBRATION_RTOL / 3 / width
        margin = min(0.25, CALIBRATION_RTOL / 4 / width)
        noise = low[0] * math.exp(width * min(max(part, margin), 1 - margin))
        value = cost(noise)
        safe = value <= epsilon
        low, high = (low, (noise, value)) if safe else ((noise, value), high)
    return high[0]
