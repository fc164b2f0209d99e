"""Mechanisms of integer noise, one object each: all that depends on the law of the noise is here.

Rounds, hybrid sweeps, selections, searches, guarantees, audits and the command line index `MECHANISMS`, and take or
refuse a mechanism by its properties. A new one is a row, a test of its law, and a theorem in doc/theory/noise.rst.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from skdplda._arithmetic import exp, log, log1p, log_ndtr
from skdplda._types import Function, Sequence
from skdplda.privacy._accounting import epsilon_of, least
from skdplda.privacy._calibration import calibrate_gaussian, calibrate_laplace
from skdplda.privacy._events import gaussian_event, laplace_event, zcdp_event
from skdplda.privacy._noise import delta_slack, discrete_gaussian, discrete_laplace, rounded_gaussian
from skdplda.privacy._spending import ROUNDING, divided

# The samplers' error as a factor, in relation to epsilon and delta: far more than it is from LEAST_EPSILON on, so that
# a ledger, which rounds too, can afford the whole of a fit.
ERROR_SHARE = 2.0**-30
LEAST_EPSILON, LEAST_DELTA = 2.0**-18, 1e-100
MOST_DRAWS = 2**50  # more noise values than any fit has: the slack of the samplers, without looking at data


@dataclass(frozen=True)
class Mechanism:
    """Integer noise of one law, for a statistic of integers whose sensitivity is bounded in one norm.

    Scales are in units of that sensitivity: a noise multiplier is (scale of the noise) / (sensitivity).
    """

    name: str  # by which users choose it
    label: str  # its law, for statements
    sampler: Function  # sampler(scale, shape, random_state, n_threads) returns integers
    multiplier: Function  # multiplier(epsilon, delta, steps) returns that of each of equal releases, with exact noise
    event: Function  # event(multiplier, steps=1) returns what equal releases cost; 0 is no noise, inf no release
    log_cdf: Function | None  # log_cdf(k, scale) returns ln P(noise <= k), or less; None where it is not known
    norm: int = 2  # order, 1 or 2, of the norm in which the sensitivity must be bounded
    deviation: float = 1.0  # standard deviation of the noise over its scale
    has_delta: bool = True  # whether it needs a positive delta
    adds_precisions: bool = True  # whether releases of multipliers m cost what one of precision sum(1 / m**2) costs
    is_sampled: bool = False  # whether it post-processes Gaussian noise, whose cost under Poisson sampling is known

    def calibrate(
        self, epsilon: float, delta: float, precisions: Sequence[float], part: float = 1.0
    ) -> tuple[tuple[float, ...], Any]:
        """Return the noise multiplier of each release, and the event of all.

        Epsilon and delta are of all releases together, for exact noise (see `without_slack`). Precisions (inverse
        variances) are divided in the given proportions, or equally where they do not add up. With a `part` the releases
        have so much of the precision of an (epsilon, delta) release; ValueError where precisions do not add up.
        """
        if not self.adds_precisions:
            if part < 1:
                raise ValueError(f"{self.name} noise has no part of a budget, because its precisions do not add up.")
            multiplier = self.multiplier(epsilon, delta, len(precisions))
            return (multiplier,) * len(precisions), self.event(multiplier, len(precisions))
        multiplier = self.multiplier(epsilon, delta, 1)
        if part < 1:
            multiplier = multiplier / math.sqrt(part) * (1 + ROUNDING)
        return divided(multiplier, precisions), self.event(multiplier)


def mechanism_of(name: str) -> Mechanism:
    """Return a mechanism by its name; ValueError if there is none."""
    if name not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {', '.join(MECHANISMS)}; got {name!r}.")
    return MECHANISMS[name]


def pure_mechanisms(pattern: str = "mechanism={!r}") -> str:
    """Return the mechanisms that need no delta, as what to write in place of another."""
    return " or ".join(pattern.format(m.name) for m in MECHANISMS.values() if not m.has_delta)


def without_slack(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the (epsilon, delta) that exact noise has to keep, so that the samplers' error fits in beside."""
    epsilon, delta = float(epsilon), float(delta)  # in single precision, the error would be lost in delta's rounding
    if math.isinf(epsilon):
        return epsilon, delta
    target, slack = with_error(epsilon, delta, MOST_DRAWS)
    return target, delta - slack


def with_error(epsilon: float, delta: float, n_draws: int) -> tuple[float, float]:
    """Return the epsilon that exact noise has to keep, and what of delta is for the samplers' numerical error.

    The error of 2**50 draws costs (1 + e^epsilon) times 1e-14 of delta (doc/theory/noise.rst, Theorem 3). Where that is
    more than half of it, the error is counted as a factor (Theorem 5). ValueError if epsilon or delta is too small for
    that.
    """
    slack = delta_slack(n_draws, epsilon)
    if slack <= delta / 2:
        return epsilon, slack
    if delta < LEAST_DELTA or epsilon < LEAST_EPSILON:
        raise ValueError(
            f"delta={delta!r} is too small for Gaussian noise; use a delta above {LEAST_DELTA:g}, or"
            f" {pure_mechanisms()} of PrivateCGSLDA or HDPLDA, which needs none."
        )
    return epsilon * (1 - ERROR_SHARE), delta * ERROR_SHARE


def _laplace_multiplier(epsilon, delta, steps):
    return calibrate_laplace(epsilon, steps)


@lru_cache(maxsize=256)
def _discrete_gaussian_multiplier(epsilon, delta, steps):
    if math.isinf(epsilon):
        return 0.0
    one = least(lambda m: m > 0 and epsilon_of(_discrete_gaussian_event(m), delta) <= epsilon, 1.0)
    return one * math.sqrt(steps) * (1 + 1e-12 * (steps > 1))


def _discrete_gaussian_event(multiplier, steps=1):
    """A release of multiplier m is (1 / (2 m^2))-zCDP, and these parameters add up (Canonne et al. 2020, Theorem 4)."""
    return zcdp_event(steps * (0.5 / multiplier / multiplier) if multiplier else math.inf)


def _gaussian_log_cdf(k, scale):
    return log_ndtr((k + 0.5) / scale)


def _laplace_log_cdf(k, scale):
    beyond = exp(-(np.abs(k + 0.5) + 0.5) / scale) / (1 + exp(-1 / scale))
    return np.where(k >= 0, log1p(-beyond), log(beyond))


def _discrete_gaussian_log_cdf(k, scale):
    """A lower bound: sums of the density against its integrals (doc/theory/noise.rst, Lemma 1)."""
    return log_ndtr(k / scale) - np.where(k < 0, log1p(1 / (scale * math.sqrt(2 * math.pi))), 0.0)


_ALL = (
    Mechanism(
        "gaussian", "rounded Gaussian", rounded_gaussian, calibrate_gaussian, gaussian_event, _gaussian_log_cdf,
        is_sampled=True,
    ),
    Mechanism(
        "laplace", "discrete Laplace", discrete_laplace, _laplace_multiplier, laplace_event, _laplace_log_cdf,
        norm=1, deviation=math.sqrt(2), has_delta=False, adds_precisions=False,
    ),
    Mechanism(
        "discrete-gaussian", "discrete Gaussian", discrete_gaussian, _discrete_gaussian_multiplier,
        _discrete_gaussian_event, _discrete_gaussian_log_cdf,
    ),
)  # fmt: skip
MECHANISMS: dict[str, Mechanism] = {mechanism.name: mechanism for mechanism in _ALL}
