"""The noise of every round and what it costs, known before any data are."""

from dataclasses import dataclass

import numpy as np

from skdplda.privacy import (
    CLAIMED_ACCOUNTINGS,
    calibrate_gaussian,
    calibrate_laplace,
    delta_slack,
    discrete_laplace,
    gaussian_event,
    laplace_event,
    noise_multiplier,
    rounded_gaussian,
)
from skdplda.rounds._sensitivity import GRID

__all__ = ["NoisePlan"]

PRECISION_RATIO = 10.0  # of the last round to the first: early rounds only have to break the symmetry
MOST_DRAWS = 2**50  # more cells times rounds than any fit has: the slack of the samplers, without looking at data


@dataclass(frozen=True)
class NoisePlan:
    """The noise of every round and what it costs, known before any data are.

    Parameters
    ----------
    mechanism : {"gaussian", "laplace"}
        Rounded Gaussian noise for an L2 bound, discrete Laplace noise for an L1 bound.
    sampling_rate : float
        Probability that a unit takes part in a round.
    multipliers : tuple of float
        Scale of each round's noise over the norm of a contribution; zeros for no noise.
    event : dp_accounting.DpEvent
        What all rounds cost together.
    """

    mechanism: str
    sampling_rate: float
    multipliers: tuple
    event: object

    @classmethod
    def calibrate(cls, mechanism, epsilon, delta, n_rounds, sampling_rate):
        """Return the plan with the least noise that keeps the target.

        Gaussian rounds without sampling may differ: rounds of multipliers m_t are exactly one Gaussian mechanism of
        multiplier z with 1 / z^2 = sum_t 1 / m_t^2. The other plans have equal rounds.

        The samplers' numerical error costs (1 + e^epsilon) times 1e-14 of delta. Where that is more than half of it,
        the noise is that of the largest epsilon at which it is not, which is on the safe side.
        """
        if mechanism == "laplace":
            scale = calibrate_laplace(epsilon, n_rounds)
            return cls(mechanism, sampling_rate, (scale,) * n_rounds, laplace_event(scale, n_rounds))
        if sampling_rate < 1:
            return cls.equal(epsilon, delta, n_rounds, sampling_rate)
        sigma = calibrate_gaussian(*_without_slack(epsilon, delta))
        share = PRECISION_RATIO ** (np.arange(n_rounds) / max(n_rounds - 1, 1))
        multipliers = sigma / np.sqrt(share / share.sum()) * (1 + 1e-12)  # above what rounding may have taken
        return cls(mechanism, sampling_rate, tuple(multipliers.tolist()), gaussian_event(sigma))

    @classmethod
    def equal(cls, epsilon, delta, n_rounds, sampling_rate=1.0, accounting="pld", visits=None):
        """Return a plan of equal Gaussian rounds.

        Parameters
        ----------
        epsilon, delta : float
            Target.
        n_rounds : int
            Number of releases.
        sampling_rate : float, default=1.0
            Of the Poisson sample of each round.
        accounting : str, default="pld"
            One of `privacy.ACCOUNTINGS`. The claimed ones leave no room for the samplers' error.
        visits : int, default=None
            The most rounds in which one unit takes part; None for all.
        """
        if accounting not in CLAIMED_ACCOUNTINGS:
            epsilon, delta = _without_slack(epsilon, delta)
        steps = n_rounds if visits is None else min(visits, n_rounds)
        sigma = noise_multiplier(accounting, epsilon, delta, steps, sampling_rate)
        return cls("gaussian", sampling_rate, (sigma,) * n_rounds, gaussian_event(sigma, steps, sampling_rate))

    @property
    def n_rounds(self):
        """Number of releases."""
        return len(self.multipliers)

    @property
    def norm(self):
        """Order of the norm in which contributions are bounded."""
        return 1 if self.mechanism == "laplace" else 2

    @property
    def noiseless(self):
        """Whether there is no noise at all."""
        return self.multipliers[0] == 0

    def deviation(self, round_):
        """Return the standard deviation of a cell's noise in a round, over the norm of a contribution."""
        return self.multipliers[round_] * (2**0.5 if self.mechanism == "laplace" else 1.0)

    def draw(self, round_, shape, random_state, n_threads):
        """Return a round's noise, integers of the given shape."""
        sampler = rounded_gaussian if self.mechanism == "gaussian" else discrete_laplace
        return sampler(self.multipliers[round_] * GRID, shape, random_state, n_threads)


def _without_slack(epsilon, delta):
    """Return the target of exact Gaussian noise that leaves what the samplers' error may cost."""
    if np.isinf(epsilon):
        return epsilon, delta
    if delta / 2 <= delta_slack(MOST_DRAWS, 0.0):
        raise ValueError(
            f"delta={delta!r} is too small for Gaussian noise; use a delta above 1e-12, or"
            " mechanism='laplace' where there is one."
        )
    target = min(epsilon, np.log(delta / delta_slack(MOST_DRAWS, 0.0) - 1.0))
    return target, delta - delta_slack(MOST_DRAWS, target)
