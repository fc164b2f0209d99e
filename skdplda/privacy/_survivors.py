"""How likely a new word passes where rounds are judged by their weighted mean (doc/theory/vocabulary.rst, Theorem 2).

A word that one unit alone uses gets much weight only after the unit's other new words were dropped. Noise alone keeps
some of them above the floors, and those divide the weight. Their number, a chain of binomial numbers, does not depend
on the noise of the word itself.
"""

from functools import lru_cache

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom

from skdplda._types import Function

__all__ = ["MeanOfRounds", "passing"]

FINE = 512  # steps of the mean weight; each is rounded up
COARSE = 128  # and in the end
STEP = 2**-10  # scales of noise above 1 / STEP of the grid, as all that the program draws are, have one table


class MeanOfRounds:
    """Rounds whose noisy weights are judged by the weighted mean of all rounds until then.

    Parameters
    ----------
    coefficients : tuple of float
        Positive, of each round in the mean.
    scales : tuple of float
        Of the noise of each round.
    """

    def __init__(self, coefficients: tuple, scales: tuple) -> None:
        self.coefficients = np.array(coefficients, dtype=np.float64)
        self.sums = np.cumsum(self.coefficients)
        self.deviations = np.sqrt(np.cumsum((self.coefficients * scales) ** 2)) / self.sums


def passing(mean: MeanOfRounds, floors: tuple, grid: int, most: int, round_: int) -> Function:
    """Return a function of a round's threshold: how likely is it that new words of one unit pass?

    Parameters
    ----------
    mean : MeanOfRounds
        The rounds.
    floors : tuple of float
        Of each round but the last; -inf keeps all words.
    grid : int
        Weight of one unit.
    most : int
        New words.
    round_ : int
        From 0.

    Returns
    -------
    bounds : callable
        `bounds(threshold)`, of shape (most,), are upper bounds on the probability that one of 1, ..., `most` new words
        passes in this round and none did before.
    """
    steps = np.maximum(1 / mean.deviations[:-1], STEP) + 1e-12
    kept = tuple((np.asarray(floors) / mean.deviations[:-1] + steps).round(12).tolist())
    lows, laws = _mean_weights(tuple((mean.coefficients / mean.sums[-1]).tolist()), kept, most)
    law, deviation, n = laws[round_], mean.deviations[round_], np.arange(1, most + 1)
    weights, row = np.arange(COARSE + 1) / COARSE * grid, np.searchsorted(lows, n, side="right") - 1

    def bounds(threshold):
        return n * (law @ ndtr((weights + 1 - threshold) / deviation))[row]  # + 1: the noise is rounded

    return bounds


def _ladder(most, ratio):
    """Return integers from 1 to `most`, the small ones all, others in steps of a ratio."""
    rungs, rung = [], 1
    while rung <= most:
        rungs.append(rung)
        rung = max(rung + 1, int(rung * ratio))
    return np.array(rungs)


@lru_cache(maxsize=32)
def _mean_weights(coefficients, kept, most):
    """Return numbers of new words, and of each round the law of a new word's mean weight, for each such number.

    `kept` has how many deviations of the mean's noise keep another word after each round. The mean weight is 0, ..., 1
    in steps of 1 / COARSE. The number of others falls from rung to rung, which makes the weight larger.
    """
    lows, rungs = _ladder(most, 1.1), np.append(0, _ladder(most, 1.3))
    ends = np.append(rungs[1:] - 1, most)

    def others(now, chance):  # P(so many are left, rounded down to a rung)
        return np.maximum(np.diff(binom.cdf(ends, np.asarray(now)[..., None], chance), prepend=0), 0)

    stays = ndtr(-np.array(kept))
    moves = [others(rungs, chance) for chance in stays]
    sums = np.cumsum(coefficients)
    n_rounds, edge = len(coefficients), FINE + len(coefficients) + 1
    laws = np.zeros((n_rounds, len(lows), COARSE + 1))
    now = np.zeros((len(lows), len(rungs), edge))  # number of words, others left, steps of weight until now
    first = np.ceil(coefficients[0] / np.sqrt(lows) * FINE).astype(int)
    rows = np.arange(len(lows))
    laws[0, rows, np.ceil(COARSE / np.sqrt(lows)).astype(int)] = 1
    if n_rounds > 1:
        now[rows, :, first] = others(lows - 1, stays[0])
    for i in range(1, n_rounds):
        gains = np.ceil(coefficients[i] / np.sqrt(1 + rungs) * FINE).astype(int)
        after = np.zeros_like(now)
        for rung, gain in enumerate(gains):
            after[:, rung, gain:] = now[:, rung, : edge - gain]
        weight = np.minimum(np.ceil(np.arange(edge) / FINE / sums[i] * COARSE), COARSE).astype(int)
        for step in range(edge):
            laws[i, :, weight[step]] += after[:, :, step].sum(axis=1)
        if i < n_rounds - 1:
            now = np.einsum("nrs,rq->nqs", after, moves[i])
    return lows, laws
