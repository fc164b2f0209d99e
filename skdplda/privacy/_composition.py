"""Noise for a budget under a named accounting."""

import math
from functools import lru_cache
from typing import Literal

from skdplda.privacy._accounting import parts_of, renyi_epsilon
from skdplda.privacy._calibration import calibrate_gaussian, finite_noise, search_noise
from skdplda.privacy._events import check_delta, check_epsilon, gaussian_event

__all__ = ["ACCOUNTINGS", "noise_multiplier"]

ACCOUNTINGS = ("pld", "rdp")


def noise_multiplier(
    accounting: Literal["pld", "rdp"],
    epsilon: float,
    delta: float,
    steps: int,
    sampling_rate: float,
) -> float:
    """Find the Gaussian noise that an accounting asks for.

    Parameters
    ----------
    accounting : {"pld", "rdp"}
        "pld" is `calibrate_gaussian`; "rdp" the same by Renyi divergences alone.
    epsilon, delta : float
        Budget of all steps.
    steps : int
        Number of releases.
    sampling_rate : float
        Of Poisson sampling; 1 for none.

    Returns
    -------
    noise_multiplier : float
        Standard deviation over L2 sensitivity; 0.0 for infinite epsilon.

    Raises
    ------
    ValueError
        If a number is out of range, the accounting is unknown, or the noise leaves the range of floats.

    See Also
    --------
    skdplda.published.vips_noise_multiplier : The paths of a paper, which are only claimed.

    Examples
    --------
    >>> from skdplda.privacy import noise_multiplier
    >>> [round(noise_multiplier(name, 0.5, 1e-4, 40, 0.01), 2) for name in ("pld", "rdp")]
    [0.91, 1.23]
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    gaussian_event(1.0, steps, sampling_rate)  # checks both
    if accounting not in ACCOUNTINGS:
        raise ValueError(f"accounting must be one of {ACCOUNTINGS}; got {accounting!r}")
    if accounting == "pld" or math.isinf(epsilon):
        return calibrate_gaussian(epsilon, delta, steps, sampling_rate)
    if delta == 0:
        raise ValueError("delta must be > 0 for Gaussian noise; got 0")
    return finite_noise(_renyi_noise, epsilon, delta, int(steps), float(sampling_rate))


@lru_cache(maxsize=64)
def _renyi_noise(epsilon, delta, steps, sampling_rate):
    """Return the least Gaussian noise by Renyi divergences alone."""

    def cost(sigma):
        return renyi_epsilon(parts_of(gaussian_event(sigma, steps, sampling_rate)), delta)

    return search_noise(cost, epsilon, 1.0)
