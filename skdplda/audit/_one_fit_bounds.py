"""How many right guesses about the canaries of one fit a claim allows: doc/theory/one_fit.rst has the theorems."""

from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import beta, binom

from skdplda._arithmetic import bracket

INDEPENDENT = "independent noise"  # the noise of different canaries' cells is independent
DEPENDENT = "any dependence"
SHARES = {  # of the canaries that may be guessed about; the claim alone chooses one
    INDEPENDENT: (1.0, 0.85, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1),
    DEPENDENT: (1.0, 0.5, 0.25, 0.1, 0.05, 0.02),
}
SURELY = 0.02  # part of the error probability that is left to the place of the last guess
MOST = 8.0  # times the claimed loss; no audit shows more
PRECISION, COARSE = 1e-4, 1e-2  # of the factor that is shown, and while the number of guesses is chosen


def right_guesses(scores, present, n_guesses, rng):
    """Return how many of the surest guesses are right: presence where a score is positive; ties fall by a coin."""
    surest = np.lexsort((rng.random(len(scores)), -np.abs(scores)))[:n_guesses]
    guess = np.where(scores == 0, rng.random(len(scores)) < 0.5, scores > 0)
    return int((guess[surest] == present[surest]).sum())


def refutes(composition, bound, n_canaries, n_guesses, n_right, error):
    """Return whether so many right guesses have a probability below `error` under a `Composition`."""
    if bound == INDEPENDENT and n_guesses == n_canaries:
        return bool(binom.sf(n_right - 1, n_guesses, right_of(composition)) < error)
    pair = pair_of(composition)
    if bound == DEPENDENT:
        return not _possible(pair, n_canaries, n_guesses, n_right, error)
    # With all but a small part of the error, fewer than this share of losses are above that of the last guess.
    share = float(beta.ppf(SURELY * error, n_guesses + 1, n_canaries - n_guesses))
    return bool(binom.sf(n_right - 1, n_guesses, pair.right(share)) < (1 - SURELY) * error)


def _possible(pair, n_canaries, n_guesses, n_right, error):
    """Return whether some dependence of the canaries lets `n_right` guesses be right with probability `error`.

    The recursion of the theorem: the least probabilities of fewer right guesses that the pair requires.
    """
    hits, alarms = pair.least_alarms
    mass, right = error, n_right * error  # of all outcomes so far; mean number of right guesses in them
    wrong = (n_guesses - n_right) * error
    for n in range(n_right - 1, -1, -1):
        if right > n_canaries:
            return False
        needed = n_canaries * float(np.interp(right / n_canaries, hits, alarms))
        more = (needed - wrong) / (n_guesses - n)
        if more <= 0:  # and so for all fewer right guesses
            return True
        mass, right, wrong = mass + more, right + n * more, needed
        if mass > 1:
            return False
    return True


def largest_refuted(composition, bound, n_canaries, n_guesses, n_right, error, precision=PRECISION):
    """Return by which factor the claimed losses may be scaled and still be refuted; 0 if none is."""
    if n_right <= n_guesses / 2:
        return 0.0
    if bound == INDEPENDENT and n_guesses == n_canaries:
        return _largest_factor(composition, float(beta.ppf(error, n_right, n_guesses - n_right + 1)), precision)
    low, _ = bracket(
        lambda factor: refutes(composition.scaled(factor), bound, n_canaries, n_guesses, n_right, error),
        0.0,
        MOST,
        rtol=precision,
        atol=precision,
        most=MOST,
    )
    return low


def _largest_factor(composition, right, precision):
    """Return the largest factor tried, at which guesses about all canaries are right less often than `right`."""
    refuted = [0.0]

    def beyond(factor):
        more = right_of(composition.scaled(factor)) - right
        if more < 0:
            refuted.append(factor)
        return more

    least = 10 * precision
    if beyond(least) < 0 <= beyond(MOST):
        brentq(beyond, least, MOST, xtol=precision, rtol=precision)
    return max(refuted)


@lru_cache(maxsize=64)
def pair_of(composition):
    """Return the `LossPair` of a composition; searches begin alike."""
    return composition.pair()


@lru_cache(maxsize=64)
def right_of(composition):
    """Return how often guesses about all canaries are right at most; searches begin alike."""
    return composition.right()


@lru_cache(maxsize=64)
def chosen_share(composition, bound, n_canaries, error):
    """Return how many guesses show most where the canaries lose just what is claimed. No data are used."""
    if bound == INDEPENDENT and composition.adaptive:
        return n_canaries  # of fewer guesses only the dominating pair knows, which is above what any draws reveal
    pair = pair_of(composition)
    best, chosen = -1.0, n_canaries
    for share in SHARES[bound]:
        n_guesses = max(1, round(share * n_canaries))
        n_right = int(n_guesses * pair.right(n_guesses / n_canaries))
        if bound == INDEPENDENT:
            less = pair_of(composition.scaled(0.9)).right(n_guesses / n_canaries)
            mean = n_right / n_guesses
            shown = (mean - less) * np.sqrt(n_guesses / max(mean * (1 - mean), 1e-9))
        else:
            shown = largest_refuted(composition, bound, n_canaries, n_guesses, n_right, error, COARSE)
        if shown > best:
            best, chosen = shown, n_guesses
    return chosen
