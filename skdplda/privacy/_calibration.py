"""From a budget to the noise that meets it, from the safe side."""

import math
from collections.abc import Iterable
from functools import lru_cache

from skdplda._arithmetic import exp, log, log1p
from skdplda._types import ArrayLike
from skdplda.privacy._accounting import ULP, epsilon_of, gaussian_delta, least, rounded_up
from skdplda.privacy._events import (
    add_up,
    check_delta,
    check_epsilon,
    check_real,
    check_steps,
    gaussian_event,
    laplace_event,
)

CALIBRATION_RTOL = 4e-4  # of the noise, too much at most: chosen by hand, for less time than a fit takes
NOISE_BITS = 16  # of a noise multiplier: where the search tries does not depend on the last bits of a cost
LARGEST_NOISE = 1e60  # that is searched for: beyond, a cost no longer falls
LEAST_NOISE = 0.05  # where delta alone covers every loss, any noise would do: calibration stops here


def calibrate_gaussian(epsilon: float, delta: float, steps: int = 1, sampling_rate: float = 1.0) -> float:
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
        If a parameter is out of range, `delta` is 0, as no Gaussian noise gives pure privacy, or the noise would be
        larger than any float.

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
        raise ValueError(
            "delta must be > 0 for Gaussian noise; got 0. Give a delta, such as 1e-6, or use Laplace noise"
        )
    return finite_noise(_gaussian_noise, epsilon, delta, int(steps), float(sampling_rate))


@lru_cache(maxsize=256)  # a statement before the fit, and the fit, need the same
def _gaussian_noise(epsilon, delta, steps, sampling_rate):
    """Return the least Gaussian noise for numbers that are checked."""

    def cost(sigma):
        return epsilon_of(gaussian_event(sigma, steps, sampling_rate), delta)

    if sampling_rate == 1:
        sigma = math.sqrt(steps) * _least_sigma(epsilon, delta)
        return _nudge_until_safe(cost, epsilon, sigma)
    # Guess by the central limit theorem for subsampled Gaussians (Dong, Roth, Su 2022, Corollary 5.4).
    mu = 1 / _least_sigma(epsilon, delta)
    guess = 1 / math.sqrt(log1p((mu / sampling_rate) * (mu / sampling_rate) / steps))
    return search_noise(cost, epsilon, guess)


def divide_epsilon(epsilon: float, delta: float, shares: ArrayLike) -> list[float]:
    """Divide a budget among fits with Gaussian noise, such as those of twelve months, by their precisions.

    A `PrivacyAccountant` of the same budget, with ``rule="gaussian", reserve=0.0``, accepts a fit of each epsilon at
    `delta`, of all estimators in their default form, and then no further one.

    Parameters
    ----------
    epsilon : float
        Total budget, finite.
    delta : float
        In (0, 1), of the whole and of each fit: what is shared is noise.
    shares : array-like of shape (n_fits,)
        Positive; fits of equal ones have equal noise.

    Returns
    -------
    epsilons : list of float
        One a fit. Their sum is above `epsilon`, as noise adds up by its precision.

    Raises
    ------
    ValueError
        If a number is out of range, or a share so small that its noise would be larger than any float.

    Examples
    --------
    >>> from skdplda.privacy import divide_epsilon
    >>> [round(part, 2) for part in divide_epsilon(2.0, 1e-6, [3, 1, 1])]
    [1.51, 0.84, 0.84]
    """
    if not isinstance(shares, Iterable):
        raise ValueError(f"shares must be a list, such as [1] * 12; got {shares!r}.")
    parts = [check_real("shares", share, "> 0") for share in shares]
    if not parts or not all(0 < share < math.inf for share in parts) or math.isinf(check_epsilon(epsilon)):
        raise ValueError(f"shares must be positive, one at least, of a finite epsilon; got {shares!r}, {epsilon!r}.")
    largest = max(parts)
    parts = [share / largest for share in parts]
    sigma, margin = calibrate_gaussian(epsilon, delta), 1e-9
    while True:  # what a fit makes of its epsilon is rounded
        noise = [sigma * math.sqrt(add_up(parts) / share) * (1 + margin) for share in parts]
        found = [epsilon_of(gaussian_event(one), delta) for one in noise]
        if not all(found):
            raise ValueError(
                f"shares must not be so small, or delta={delta} so large, that an epsilon is 0; got {shares!r} of"
                f" epsilon={epsilon!r}."
            )
        precision = add_up(1 / (s * s) for s in (calibrate_gaussian(one, delta) for one in found))
        if epsilon_of(gaussian_event((1 - 1e-9) / math.sqrt(precision)), delta) <= epsilon:
            return found
        margin *= 4


def calibrate_laplace(epsilon: float, steps: int = 1, delta: float = 0.0) -> float:
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
        If a parameter is out of range, or the noise would be larger than any float.

    Examples
    --------
    >>> from skdplda.privacy import calibrate_laplace
    >>> calibrate_laplace(2.0, steps=10)
    5.0
    """
    epsilon, delta, steps = check_epsilon(epsilon), check_delta(delta), check_steps(steps)
    if math.isinf(epsilon):
        return 0.0

    return finite_noise(_laplace_noise, epsilon, delta, steps)


def _laplace_noise(epsilon, delta, steps):
    """Return the least Laplace noise for numbers that are checked."""

    def cost(scale):
        return epsilon_of(laplace_event(scale, steps), delta)

    if delta == 0:
        return _nudge_until_safe(cost, epsilon, steps / epsilon)
    return search_noise(cost, epsilon, min(steps / epsilon, math.sqrt(steps) * _least_sigma(epsilon, delta)))


def finite_noise(find, epsilon, delta, *others):
    """Return find(epsilon, delta, *others); ValueError where what it takes leaves the range of floats."""
    try:
        noise = find(epsilon, delta, *others)
    except (OverflowError, ZeroDivisionError):
        noise = math.inf
    if not 0 < noise < math.inf:
        raise ValueError(
            f"epsilon={epsilon:g} and delta={delta:g} ask for noise beyond the range of floats; take numbers of a"
            " budget: an epsilon from 0.01 to 100, a delta of 0, or from 1e-15 to 1e-3"
        )
    return noise


def _least_sigma(epsilon, delta):
    """Noise multiplier of one Gaussian release."""
    return least(lambda sigma: sigma > 0 and gaussian_delta(1 / sigma, epsilon) <= delta, 1.0)


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
    noise, factor = rounded_up(guess or LEAST_NOISE, NOISE_BITS), 1.02
    while low is None or high is None:
        if noise > LARGEST_NOISE:
            raise OverflowError("no noise is enough")
        value = cost(noise)
        if value <= epsilon:
            high = noise, value
            if noise <= LEAST_NOISE:
                return noise
            noise = rounded_up(noise / factor, NOISE_BITS)
        else:
            low = noise, value
            noise = rounded_up(noise * factor, NOISE_BITS)
        factor = min(factor * factor, 16.0)
    safe, turn = True, 0
    while high[0] > low[0] * (1 + CALIBRATION_RTOL):
        turn += 1
        width = log(high[0] / low[0])
        part = 0.5  # plain bisection now and then, and where the secant is undefined
        if turn % 4 and high[1] > 0 and low[1] < math.inf:
            part = log(low[1] / epsilon) / log(low[1] / high[1])
            part += (-1 if safe else 1) * CALIBRATION_RTOL / 3 / width
        margin = min(0.25, CALIBRATION_RTOL / 4 / width)
        noise = rounded_up(low[0] * exp(width * min(max(part, margin), 1 - margin)), NOISE_BITS)
        value = cost(noise)
        safe = value <= epsilon
        low, high = (low, (noise, value)) if safe else ((noise, value), high)
    return high[0]
