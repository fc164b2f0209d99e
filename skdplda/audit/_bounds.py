"""Lower bounds on the privacy loss, from how well an attacker distinguished neighbouring data."""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom, norm

from skdplda.attacks import binomial_interval, check_confidence
from skdplda.privacy import epsilon_of, gaussian_event

LARGEST_EPSILON = 50.0  # beyond what any number of guesses can show


def epsilon_lower_bound(
    true_positives: int,
    positives: int,
    false_positives: int,
    negatives: int,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> float:
    """Smallest epsilon that an attacker's hits leave possible, by Clopper-Pearson bounds.

    An (epsilon, delta) mechanism keeps TPR <= e^epsilon FPR + delta and 1 - FPR <= e^epsilon (1 - TPR) + delta [1]_.

    Parameters
    ----------
    true_positives, positives : int
        Fits with the canary called so, and all of them; the rule was chosen on other fits.
    false_positives, negatives : int
        Fits without the canary that were called so, and all of them.
    delta : float, default=0.0
        Of the claim.
    confidence : float, default=0.95
        The bound is too large with probability 1 - confidence at most.

    Returns
    -------
    epsilon : float
        At least 0; inf is never shown by finitely many fits.

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    .. [1] Kairouz, Oh and Viswanath (2017). The Composition Theorem for Differential Privacy. IEEE Trans. Inf. Theory
       63(6). Theorem 2.1.

    Examples
    --------
    >>> from skdplda.audit import epsilon_lower_bound
    >>> round(epsilon_lower_bound(500, 500, 0, 500, confidence=0.95), 3)
    4.906
    >>> epsilon_lower_bound(250, 500, 250, 500)
    0.0
    """
    if not 0 <= delta <= 1:
        raise ValueError(f"delta must be from 0 to 1; got {delta!r}.")
    hit, alarm = _rates(true_positives, positives, false_positives, negatives, confidence)
    bounds = [0.0]
    for above, below in ((hit, alarm), (1 - alarm, 1 - hit)):
        if above > delta:
            bounds.append(math.log((above - delta) / below))
    return max(bounds)


def mu_lower_bound(
    true_positives: int, positives: int, false_positives: int, negatives: int, *, confidence: float = 0.95
) -> float:
    """Return the smallest mu of Gaussian differential privacy that an attacker's hits leave possible.

    The arguments are those of `epsilon_lower_bound`. It judges a claim of mu-GDP, such as rounds of Gaussian noise
    without sampling make; for these it is sharper than the bound on epsilon. Source: Nasr et al. (2023), Tight Auditing
    of Differentially Private Machine Learning.
    """
    hit, alarm = _rates(true_positives, positives, false_positives, negatives, confidence)
    return max(0.0, float(norm.ppf(hit) - norm.ppf(alarm)))


def epsilon_of_mu(mu, delta):
    """Return epsilon at delta of mu-GDP."""
    return 0.0 if mu == 0 else epsilon_of(gaussian_event(1 / mu), delta)


def one_run_p_value(n_canaries: int, n_guesses: int, n_correct: int, epsilon: float, delta: float = 0.0) -> float:
    """Return the largest probability of so many right guesses about one run of an (epsilon, delta) mechanism.

    Each canary was put in by a fair coin of its own, and the number of guesses was fixed before the run. With W of the
    binomial law of `n_guesses` trials of probability e^epsilon / (1 + e^epsilon), and v right guesses, the bound is P[W
    >= v] + 2 m delta max_i P[v > W >= v - i] / i, i from 1 to the number m of canaries: Steinke, Nasr and Jagielski
    (2023), Theorem 5.2.
    """
    if not 0 <= n_correct <= n_guesses <= n_canaries:
        raise ValueError(
            "numbers must satisfy 0 <= n_correct <= n_guesses <= n_canaries; got"
            f" {n_correct}, {n_guesses}, {n_canaries}."
        )
    if not (epsilon >= 0 and 0 <= delta <= 1):
        raise ValueError(f"epsilon must be at least 0 and delta from 0 to 1; got {epsilon!r}, {delta!r}.")
    chance = 1 / (1 + math.exp(-epsilon))
    tail = float(binom.sf(n_correct - 1, n_guesses, chance))
    if delta == 0 or n_correct == 0:
        return min(tail, 1.0)
    below = np.cumsum(binom.pmf(np.arange(n_correct - 1, -1, -1), n_guesses, chance))
    steepest = float((below / np.arange(1, n_correct + 1)).max())
    return min(tail + 2 * n_canaries * delta * steepest, 1.0)


def one_run_lower_bound(
    n_canaries: int, n_guesses: int, n_correct: int, *, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """Smallest epsilon that right guesses about one run leave possible [1]_.

    Parameters
    ----------
    n_canaries : int
        Each put in by a fair coin of its own.
    n_guesses, n_correct : int
        Canaries guessed about, fixed before the run, and right guesses.
    delta : float, default=0.0
        Of the claim; its term is kept.
    confidence : float, default=0.95
        The bound is too large with probability 1 - confidence at most.

    Returns
    -------
    epsilon : float
        At least 0.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski (2023). Privacy Auditing with One (1) Training Run. NeurIPS. Theorem 5.2.

    Examples
    --------
    >>> from skdplda.audit import one_run_lower_bound
    >>> 5.7 < one_run_lower_bound(1000, 1000, 1000) < 5.9
    True
    """
    check_confidence(confidence)

    def excess(epsilon):
        return one_run_p_value(n_canaries, n_guesses, n_correct, epsilon, delta) - (1 - confidence)

    if excess(0.0) >= 0:
        return 0.0
    if excess(LARGEST_EPSILON) < 0:
        return LARGEST_EPSILON
    found = brentq(excess, 0.0, LARGEST_EPSILON, xtol=1e-9)
    return max(0.0, found - 1e-8)  # on the safe side of the root


def _rates(true_positives, positives, false_positives, negatives, confidence):
    """Return a lower bound of the hit rate and an upper bound of the false alarms; both hold with the confidence."""
    check_confidence(confidence)
    for found, trials in ((true_positives, positives), (false_positives, negatives)):
        if not 0 <= found <= trials or trials < 1:
            raise ValueError(f"hits must be from 0 to the number of fits, at least 1; got {found} of {trials}.")
    hit, _ = binomial_interval(true_positives, positives, confidence)
    _, alarm = binomial_interval(false_positives, negatives, confidence)
    return hit, alarm
