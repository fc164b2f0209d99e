"""Laws of the privacy loss: the pair of laws that is hardest to hide behind the noise of a whole fit.

Whatever a fit releases of one canary can be made of one draw from P where the canary is present, from Q where it is
absent. A `LossPair` holds the law of ln dP/dQ on a grid, rounded so that it separates P from Q better than the true
one.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr

N_GRID = 2**16  # points of the loss: rounding moves a test by about 1e-3 of a standard deviation
ROUNDING = 1e-15  # of Fourier transforms: less is no probability
WIDTH = 15.0  # standard deviations of the loss on either side; what lies beyond counts as an infinite loss
# Of the worst case over draws: steps that a range is divided into, one more than it has, and about how many numbers
# are looked at.
LEAST_STEPS, MOST_STEPS, WORK = 8, 256, 2e7
FAR, CERTAIN = 8.0, 40.0  # standard deviations of the loss, and odds exp(CERTAIN), that are no doubt


class LossPair:
    """Two laws P and Q, by the law of the loss ln dP/dQ under P.

    `loss` ascends; `p` are its probabilities under P, and `q`, under Q, exp(-loss) times as much. What is left to 1
    decides between them for sure.
    """

    def __init__(self, loss, p, q):
        self._loss, self._mean = loss, (p + q) / 2
        only = max(0.0, 1 - p.sum()), max(0.0, 1 - q.sum())
        self.tpr = np.concatenate([[only[0]], only[0] + np.cumsum(p[::-1]), [1.0]])  # losses above a falling threshold
        self.fpr = np.concatenate([[0.0], np.cumsum(q[::-1]), [1.0]])
        order = np.argsort(-np.abs(loss), kind="stable")
        right = np.where(loss > 0, p, q)[order] / 2
        self._share = sum(only) / 2 + np.cumsum((p + q)[order] / 2)
        self._right = sum(only) / 2 + np.cumsum(right)

    def right(self, share):
        """Return how often the surest guesses, this share of all, are right; coins are fair."""
        place = int(np.searchsorted(self._share, share, side="right")) - 1
        if place < 0 or not self._share[place]:
            return 1.0
        return float(min(1.0, self._right[place] / self._share[place]))

    def expected(self, step, chances):
        """Return the mean of a function of the loss under a fair mixture of P and Q.

        It grows with the loss's size; at the k-th multiple of `step`, it is `chances[k]`. In between it counts as that
        at the next, and beyond all as 1.
        """
        place = np.ceil(np.abs(self._loss) / step - 1e-9).astype(int)
        reached = np.append(chances, 1.0)[np.minimum(place, len(chances))]
        return float(min(1.0, 1 - self._mean.sum() + self._mean @ reached))

    @cached_property
    def least_alarms(self):
        """Return the least false-alarm rate at each hit rate, as points (hit rates, false-alarm rates).

        For tests of P against Q and of Q against P, whichever is less; the points lie on a convex curve.
        """
        both = np.minimum(self.fpr, np.interp(self.tpr, 1 - self.fpr[::-1], 1 - self.tpr[::-1]))
        return _convex(self.tpr, both)


def _convex(x, y):
    """Return the largest convex function below points, as points."""
    grid = np.concatenate([[0.0], np.geomspace(1e-9, 0.01, 1000), np.linspace(0.01, 1, 3000)])
    chosen = np.unique(np.searchsorted(x, grid).clip(0, len(x) - 1))
    x, y = x[chosen], y[chosen]
    across, up, kept = x.tolist(), y.tolist(), []  # Python's numbers: a third of the time
    for i in range(len(across)):
        while len(kept) > 1 and (up[kept[-1]] - up[kept[-2]]) * (across[i] - across[kept[-2]]) >= (
            up[i] - up[kept[-2]]
        ) * (across[kept[-1]] - across[kept[-2]]):
            kept.pop()
        kept.append(i)
    return x[kept], y[kept]


@dataclass(frozen=True)
class Composition:
    """Adaptive releases that a canary's loss is made of.

    `gaussian`, called mu, is the root of the sum of 1 / multiplier ** 2 of all Gaussian releases; `sampled` has (1 /
    multiplier, sampling rate, number of releases) of the sampled Gaussian mechanism, `laplacian` (1 / multiplier,
    number of releases), `ranges` (range of the log-ratio, number of draws).
    """

    gaussian: float = 0.0
    sampled: tuple = (0.0, 1.0, 0)
    laplacian: tuple = (0.0, 0)
    ranges: tuple = (0.0, 0)

    def scaled(self, factor):
        """Return what less noise leaves: all losses so many times as large."""
        return replace(
            self,
            gaussian=factor * self.gaussian,
            sampled=(factor * self.sampled[0], *self.sampled[1:]),
            laplacian=(factor * self.laplacian[0], self.laplacian[1]),
            ranges=(factor * self.ranges[0], self.ranges[1]),
        )

    @property
    def adaptive(self):
        """Whether no single pair is worst: then `right` knows more than the pair that dominates all."""
        return bool(self.ranges[1] and self.ranges[0])

    def right(self):
        """Return how often a guess about a canary is right at most, where all are guessed about."""
        if not self.adaptive:
            return self.pair().right(1.0)
        others = replace(self, ranges=(0.0, 0))
        reach = min(CERTAIN, FAR * math.sqrt(self._variance) + self._variance)
        step, chances = worst_draws(*self.ranges, reach)
        return others.pair().expected(step, chances)

    @property
    def _variance(self):
        """About that of the loss, or more."""
        mu, rate, rounds = self.sampled
        one = rate * math.sqrt(math.expm1(min(mu * mu, 50.0))) if rate < 1 else mu
        released = self.gaussian**2 + rounds * min(mu, one) ** 2 + self.laplacian[1] * self.laplacian[0] ** 2
        return released + self.ranges[1] * self.ranges[0] ** 2 / 3

    def pair(self):
        """Return the `LossPair` of all releases."""
        mu, rate, rounds = self.sampled
        epsilon, steps = self.laplacian
        eta, draws = self.ranges
        variance = self._variance
        half = WIDTH * math.sqrt(variance) + variance + 4 * mu + epsilon + eta + 1e-9
        step = 2 * half / N_GRID
        edges = step * (np.arange(N_GRID + 1) - N_GRID // 2)  # a loss in (edges[j], edges[j + 1]] counts as the latter
        laws = []
        if self.gaussian:
            laws.append((lambda x: ndtr((x - self.gaussian**2 / 2) / self.gaussian), 1))
        if rounds:
            laws.append((lambda x: _sampled_law(x, mu, rate), rounds))
        if steps:
            laws.append((lambda x: _laplace_law(x, epsilon), steps))
        if draws:
            laws.append((lambda x: _range_law(np.clip(x, -eta, eta), eta), draws))
        transforms, number = [np.ones(N_GRID // 2 + 1)] * 2, 0
        for law, count in laws:
            below = law(edges)
            p = np.diff(below)
            p[0] += below[0]
            for i, part in enumerate((p, p * np.exp(-edges[1:]))):
                transforms[i] = transforms[i] * np.fft.rfft(part) ** count
            number += count
        parts = []
        for transform in transforms:
            part = np.fft.irfft(transform, N_GRID)
            part = np.roll(part, (number - 1) * (1 - N_GRID // 2))  # cell j of each law is the loss edges[j + 1]
            parts.append(np.where(part > ROUNDING, part, 0.0))
        return LossPair(edges[1:], *parts)


def worst_draws(eta, n_draws, reach):
    """Return (step, chances): how often a guess is right after the worst draws of range eta, by the odds before them.

    Each draw may be chosen by what the former ones gave. `chances[k]` is for odds of exp(k * step) or its inverse, and
    larger odds than exp(reach) are taken for certainty. The recursion of doc/theory/one_fit.rst, Lemma 3: one more draw
    takes the odds up by i steps or down by n - i.
    """
    n = int(np.clip(math.sqrt(WORK * eta / (2 * reach * n_draws)), LEAST_STEPS, MOST_STEPS))
    step = eta / (n - 1)
    most = math.ceil(reach / step)
    odds = step * np.arange(-most, most + 1)
    present = 1 / (1 + np.exp(-odds))
    chances = np.maximum(present, 1 - present)
    up = step * np.arange(1, n)
    first = np.expm1(up - n * step) / np.expm1(-n * step)  # probability of up under P; exp(-up) times as much, Q
    for _ in range(n_draws):
        wider = np.concatenate([np.ones(n), chances, np.ones(n)])
        for i in range(1, n):
            p = first[i - 1] * (present + (1 - present) * math.exp(-up[i - 1]))
            one, other = (wider[n + shift : n + shift + len(odds)] for shift in (i, i - n))
            chances = np.maximum(chances, other + p * (one - other))
    return step, chances[most:]


def _laplace_law(x, epsilon):
    """Return P(loss <= x) of one Laplace release."""
    inside = np.exp((np.clip(x, -epsilon, epsilon) - epsilon) / 2) / 2
    return np.where(x >= epsilon, 1.0, np.where(x < -epsilon, 0.0, inside))


def _range_law(x, eta):
    """Return P(loss <= x) of the pair that dominates all draws of range eta; see doc/theory/one_fit.rst, Lemma 2."""
    return np.expm1((eta + x) / 2) / math.expm1(eta)


def _sampled_law(x, mu, rate):
    """Return P(loss <= x) of one sampled Gaussian release, where the canary is present."""
    if rate == 1:
        return ndtr((x - mu * mu / 2) / mu)
    inside = np.expm1(x) + rate
    place = np.log(np.maximum(inside, 1e-300) / rate) / mu + mu / 2  # in standard deviations of the noise
    return np.where(inside > 0, (1 - rate) * ndtr(place) + rate * ndtr(place - mu), 0.0)
