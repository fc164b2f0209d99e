"""Noise for a budget under a named accounting: ours, and what a paper of 2016 compared."""

import math
from functools import lru_cache
from typing import Literal

from skdplda._arithmetic import expm1, log, log1p
from skdplda.privacy._accounting import ULP, least, parts_of, renyi_epsilon
from skdplda.privacy._calibration import calibrate_gaussian, finite_noise, search_noise
from skdplda.privacy._events import check_delta, check_epsilon, gaussian_event

__all__ = ["ACCOUNTINGS", "CLAIMED_ACCOUNTINGS", "noise_multiplier"]

CLAIMED_ACCOUNTINGS = ("zcdp", "advanced", "linear")
ACCOUNTINGS = ("pld", "rdp", *CLAIMED_ACCOUNTINGS)
# Delta of one step before subsampling, which zCDP leaves open. Chosen by hand: a smaller one has a larger epsilon.
STEP_DELTA = 1e-6


def noise_multiplier(
    accounting: Literal["pld", "rdp", "zcdp", "advanced", "linear"],
    epsilon: float,
    delta: float,
    steps: int,
    sampling_rate: float,
) -> float:
    """Find the Gaussian noise that an accounting asks for.

    Parameters
    ----------
    accounting : {"pld", "rdp", "zcdp", "advanced", "linear"}
        "pld" is `calibrate_gaussian`; "rdp" the same by Renyi divergences alone. The others are the paths of [1]_, to
        reproduce it: a total budget is mapped to one for each step by zCDP, by advanced or by linear composition, that
        to the budget of the step before subsampling by eps = ln(1 + q (e^eps' - 1)), delta = q delta', and that to
        noise by sigma = sqrt(2 ln(1.25 / delta')) / eps', also where eps' > 1, for which the formula has no proof.
    epsilon, delta : float
        Budget of all steps.
    steps : int
        Number of releases.
    sampling_rate : float
        Called nu in [1]_.

    Returns
    -------
    noise_multiplier : float
        Standard deviation over L2 sensitivity; 0.0 for infinite epsilon.

    Raises
    ------
    ValueError
        If a number is out of range, a path leaves a step a delta of 1 or more, or the noise leaves the range of floats.

    Notes
    -----
    [1]_ leaves open how delta is divided. Here each step gets delta / steps by linear composition; by advanced
    composition half of delta pays for the composition and the steps share the rest; by zCDP, which spends all of delta
    on its conversion, delta' is 1e-6.

    References
    ----------
    .. [1] M. Park, J. Foulds, K. Chaudhuri, M. Welling (2016). Private topic modeling. arXiv:1609.04120. Eqs. 5 and 6.

    Examples
    --------
    >>> from skdplda.privacy import noise_multiplier
    >>> [round(noise_multiplier(name, 0.5, 1e-4, 40, 0.01), 2) for name in ("pld", "zcdp")]
    [0.91, 2.08]
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    gaussian_event(1.0, steps, sampling_rate)  # checks both
    if accounting not in ACCOUNTINGS:
        raise ValueError(f"accounting must be one of {ACCOUNTINGS}; got {accounting!r}")
    if accounting == "pld" or math.isinf(epsilon):
        return calibrate_gaussian(epsilon, delta, steps, sampling_rate)
    if delta == 0:
        raise ValueError("delta must be > 0 for Gaussian noise; got 0")
    if accounting == "rdp":
        return finite_noise(_renyi_noise, epsilon, delta, int(steps), float(sampling_rate))
    return finite_noise(_published_noise, epsilon, delta, int(steps), float(sampling_rate), accounting)


def _published_noise(epsilon, delta, steps, sampling_rate, accounting):
    """Return the noise of a path of 2016."""
    step_epsilon, step_delta = SHARES[accounting](epsilon, delta, steps, sampling_rate)
    before, tolerance = log1p(expm1(step_epsilon) / sampling_rate), step_delta / sampling_rate
    if not tolerance < 1:
        raise ValueError(
            f"accounting={accounting!r} leaves each of {steps} steps a delta of {tolerance:.3g} before subsampling; it"
            " must be below 1. Take more steps, a larger sampling rate, a smaller delta, or accounting='pld'."
        )
    return math.sqrt(2 * log(1.25 / tolerance)) / before


@lru_cache(maxsize=64)
def _renyi_noise(epsilon, delta, steps, sampling_rate):
    """Return the least Gaussian noise by Renyi divergences alone."""

    def cost(sigma):
        return renyi_epsilon(parts_of(gaussian_event(sigma, steps, sampling_rate)), delta)

    return search_noise(cost, epsilon, 1.0)


def _zcdp_share(epsilon, delta, steps, sampling_rate):
    """Epsilon and delta of a step as rho-zCDP, with total + 2 sqrt(total ln(1/delta)) = epsilon."""
    bits = log(1 / delta)
    root = math.sqrt(bits + epsilon) - math.sqrt(bits)
    return math.sqrt(4 * root * root / steps * log(1.25 / (STEP_DELTA * sampling_rate))), STEP_DELTA * sampling_rate


def _advanced_share(epsilon, delta, steps, sampling_rate):
    """Epsilon and delta of a step by Theorem 3.20 of Dwork and Roth (2014)."""

    def spends(step):
        return math.sqrt(2 * steps * log(2 / delta)) * step + steps * step * expm1(step) >= epsilon

    return least(spends, min(epsilon, 700.0)) * (1 - 4 * ULP), delta / (2 * steps)


def _linear_share(epsilon, delta, steps, sampling_rate):
    """Epsilon and delta of a step by Theorem 3.16 of Dwork and Roth (2014)."""
    return epsilon / steps, delta / steps


SHARES = {"zcdp": _zcdp_share, "advanced": _advanced_share, "linear": _linear_share}
