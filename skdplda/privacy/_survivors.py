"""How likely a new word passes where rounds are judged by their weighted mean (doc/theory/vocabulary.rst, Theorem 2).

A word that one unit alone uses gets much weight only after the unit's other new words were dropped. Noise alone keeps
some of them above the floors, and those divide the weight. Their number, a chain of binomial numbers, does not depend
on the noise of the word itself.
"""

from functools import lru_cache

import numpy as np

from skdplda._arithmetic import matmul, ndtr, total
from skdplda._types import Function

FINE = 512  # steps of the mean weight; each is rounded up
COARSE = 128  # and in the end
STEP = 2**-10  # scales of noise above 1 / STEP of the grid, as all that the program draws are, have one table


class MeanOfRounds:
    """Rounds whose noisy weights are judged by the mean of all until then, with weights and scales of noise."""

    def __init__(self, coefficients: tuple, scales: tuple) -> None:
        self.coefficients = np.array(coefficients, dtype=np.float64)
        self.sums = np.cumsum(self.coefficients)
        self.deviations = np.sqrt(np.cumsum((self.coefficients * scales) ** 2)) / self.sums


def passing(mean: MeanOfRounds, floors: tuple, grid: int, most: int, round_: int) -> Function:
    """Return a function of a round's threshold: how likely is it that new words of one unit pass?

    `bounds(threshold)`, of shape (most,), are upper bounds on the probability that one of 1, ..., `most` new words
    passes in this round, counted from 0, and none did before. `floors` are of each round but the last, -inf keeps all
    words; `grid` is the weight of one unit.
    """
    steps = np.maximum(1 / mean.deviations[:-1], STEP) + 1e-12
    kept = tuple((np.asarray(floors) / mean.deviations[:-1] + steps).round(12).tolist())
    lows, laws = _mean_weights(tuple((mean.coefficients / mean.sums[-1]).tolist()), kept, most)
    law, deviation, n = laws[round_], mean.deviations[round_], np.arange(1, most + 1)
    weights, row = np.arange(COARSE + 1) / COARSE * grid, np.searchsorted(lows, n, side="right") - 1

    def bounds(threshold):
        return n * matmul(law, ndtr((weights + 1 - threshold) / deviation))[row]  # + 1: the noise is rounded

    return bounds


def _ladder(most, ratio):
    """Return integers from 1 to `most`, the small ones all, others in steps of a ratio."""
    rungs, rung = [], 1
    while rung <= most:
        rungs.append(rung)
        rung = max(rung + 1, int(rung * ratio))
    return np.array(rungs)


def _binomial(n, chance, group):
    """Return the probability of each group of numbers, where 0, ..., n successes of n trials are in these groups.

    Quotients of neighbours are multiplied from the most likely number on, and the products divided by their sum: n
    roundings change what is likely by less than 2**-40 of it, and nothing by more than n 2**-51 of it.
    """
    k = np.arange(n)
    odds = chance / (1 - chance) if chance < 1 else np.inf
    rise = (n - k) / (k + 1) * odds  # P(k + 1) / P(k), which falls
    top = int(np.count_nonzero(rise > 1))
    below = np.cumprod(1 / rise[:top][::-1])[::-1]
    found = np.bincount(group[: n + 1], np.concatenate([below, [1.0], np.cumprod(rise[top:])]), group[-1] + 1)
    return found / total(found)


@lru_cache(maxsize=32)
def _mean_weights(coefficients, kept, most):
    """Return numbers of new words, and of each round the law of a new word's mean weight, for each such number.

    `kept` has how many deviations of the mean's noise keep another word after each round. The mean weight is 0, ..., 1
    in steps of 1 / COARSE. The number of others falls from rung to rung, which makes the weight larger.
    """
    lows, rungs = _ladder(most, 1.1), np.append(0, _ladder(most, 1.3))
    rung_of = np.searchsorted(rungs, np.arange(most + 1), side="right") - 1

    def others(now, chance):  # P(so many are left, rounded down to a rung)
        return np.array([_binomial(n, chance, rung_of) for n in now.tolist()])

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
        at_steps = total(after, axis=1)
        for step in range(edge):
            laws[i, :, weight[step]] += at_steps[:, step]
        if i < n_rounds - 1:
            moved = matmul(np.moveaxis(after, 1, 2).reshape(-1, len(rungs)), moves[i])
            now = np.moveaxis(moved.reshape(len(lows), edge, len(rungs)), 2, 1)
    return lows, laws
