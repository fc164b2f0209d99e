"""Mechanisms of integer noise, one object each: all that depends on the law of the noise stands here.

Rounds, hybrid plans, selections, searches, guarantees and the command line index `MECHANISMS`. A new mechanism is a
row of it, a test of its law, and a theorem in doc/theory/noise.rst.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdplda._types import Function
from skdplda.privacy._accounting import epsilon_of, least
from skdplda.privacy._calibration import calibrate_gaussian, calibrate_laplace
from skdplda.privacy._events import gaussian_event, laplace_event, zcdp_event
from skdplda.privacy._noise import delta_slack, discrete_gaussian, discrete_laplace, rounded_gaussian

__all__ = ["MECHANISMS", "Mechanism", "mechanism_of", "without_slack"]

MOST_DRAWS = 2**50  # more noise values than any fit has: the slack of the samplers, without looking at data


@dataclass(frozen=True)
class Mechanism:
    """Integer noise of one law, for a statistic of integers whose sensitivity is bounded in one norm.

    Scales are in units of that sensitivity: a noise multiplier is (scale of the noise) / (sensitivity).

    Parameters
    ----------
    name : str
        By which users choose it.
    label : str
        Its law, for statements.
    norm : {1, 2}
        Order of the norm in which the sensitivity must be bounded.
    sampler : callable
        `sampler(scale, shape, random_state, n_threads)` returns integers.
    deviation : float
        Standard deviation of the noise over its scale.
    calibrate : callable
        `calibrate(epsilon, delta, precisions)` returns the noise multiplier of each release, and the event of all. The
        precisions (inverse variances) of the releases are wished in these proportions; a law may decline.
    has_delta : bool
        Whether it needs a positive delta.
    is_sampled : bool
        Whether its cost is known where privacy units take part at random (Poisson sampling).
    """

    name: str
    label: str
    norm: int
    sampler: Function
    deviation: float
    calibrate: Function
    has_delta: bool
    is_sampled: bool


def mechanism_of(name: str) -> Mechanism:
    """Return a mechanism by name.

    Parameters
    ----------
    name : str
        One of `MECHANISMS`.

    Returns
    -------
    mechanism : Mechanism
        Its row of `MECHANISMS`.

    Raises
    ------
    ValueError
        If there is none of that name.

    Examples
    --------
    >>> from skdplda.privacy import mechanism_of
    >>> mechanism_of("laplace").label
    'discrete Laplace'
    """
    if name not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {', '.join(MECHANISMS)}; got {name!r}.")
    return MECHANISMS[name]


def without_slack(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the (epsilon, delta) that exact noise has to keep, so that the samplers' numerical error fits in beside.

    The error costs (1 + e^epsilon) times 1e-14 of delta. Where that is more than half of it, the target is the largest
    epsilon at which it is not, which is on the safe side. A delta that is not above the error raises ValueError.
    """
    if math.isinf(epsilon):
        return epsilon, delta
    slack = delta_slack(MOST_DRAWS, 0.0)
    if delta / 2 <= slack:
        pure = " or ".join(f"mechanism={m.name!r}" for m in MECHANISMS.values() if not m.has_delta)
        raise ValueError(
            f"delta={delta!r} is too small for Gaussian noise; use a delta above 1e-12, or {pure} where there is one."
        )
    target = min(epsilon, math.log(delta / slack - 1.0))
    return target, delta - delta_slack(MOST_DRAWS, target)


def _divided(multiplier, precisions):
    """Divide the precision of one Gaussian release over several: 1 / multiplier^2 is the sum of theirs."""
    shares = np.asarray(precisions, dtype=np.float64)
    return tuple((multiplier / np.sqrt(shares / shares.sum()) * (1 + 1e-12)).tolist())  # above what rounding took


def _calibrate_gaussian(epsilon, delta, precisions):
    """Releases of multipliers m_t are exactly one Gaussian release of multiplier z, 1 / z^2 = sum_t 1 / m_t^2."""
    multiplier = calibrate_gaussian(*without_slack(epsilon, delta))
    return _divided(multiplier, precisions), gaussian_event(multiplier)


def _calibrate_laplace(epsilon, delta, precisions):
    """Equal releases: their epsilons add up."""
    scale = calibrate_laplace(epsilon, len(precisions))
    return (scale,) * len(precisions), laplace_event(scale, len(precisions))


def _calibrate_discrete_gaussian(epsilon, delta, precisions):
    """A release of multiplier m is (1 / (2 m^2))-zCDP, and these parameters add up (Canonne et al. 2020, Theorem 4)."""
    if math.isinf(epsilon):
        return (0.0,) * len(precisions), zcdp_event(math.inf)
    target, left = without_slack(epsilon, delta)
    multiplier = least(lambda m: m > 0 and epsilon_of(zcdp_event(0.5 / m**2), left) <= target, 1.0)
    return _divided(multiplier, precisions), zcdp_event(0.5 / multiplier**2)


MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism("gaussian", "rounded Gaussian", 2, rounded_gaussian, 1.0, _calibrate_gaussian, True, True),
        Mechanism("laplace", "discrete Laplace", 1, discrete_laplace, 2**0.5, _calibrate_laplace, False, False),
        Mechanism(
            "discrete-gaussian",
            "discrete Gaussian",
            2,
            discrete_gaussian,
            1.0,
            _calibrate_discrete_gaussian,
            True,
            False,
        ),
    )
}
