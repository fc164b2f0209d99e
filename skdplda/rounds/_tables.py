"""The M-steps: what is made of the released tables. This is post-processing, free of privacy cost."""

import math

import numpy as np

from skdplda._arithmetic import gamma_rows, mean, power, total
from skdplda.rounds._bounds import BOUND_IN_TOKENS, NORM_BOUND, word_weights
from skdplda.rounds._checkpoint import held
from skdplda.rounds._loop import Tables

__all__ = [
    "OnlineTables",
    "SmoothedTables",
    "initial_table",
    "model_noise",
    "signal_to_noise",
]

# Exponential forgetting factor of the averaged releases; frontier_ablation.csv, row "model: no forgetting".
FORGET = 0.2
# Smoothing of the next table of `SmoothedTables` towards the word frequencies, in standard deviations of the noise: of
# drawn topics, which need little.
SMOOTHING = 0.2


def model_noise(plan, bound_in_tokens=BOUND_IN_TOKENS):
    """Return the standard deviation of the noise in a cell of the model of `SmoothedTables`.

    Parameters
    ----------
    plan : NoisePlan
        Of the fit.
    bound_in_tokens : float, default=BOUND_IN_TOKENS
        What NORM_BOUND stands for in the tables.
    """
    deviation = np.array([plan.deviation(t) for t in range(plan.n_rounds)])
    forgotten = np.cumprod(np.append(1.0, np.full(plan.n_rounds - 1, 1 - FORGET)))
    weight = forgotten[::-1] / deviation**2
    return math.sqrt(total((weight * deviation) ** 2)) / total(weight) * bound_in_tokens / plan.sampling_rate


def signal_to_noise(counts, deviation):
    """Return how far topics stand out from the word frequencies, in standard deviations of the noise.

    Parameters
    ----------
    counts : ndarray of shape (n_words, n_topics)
        Weighted means of releases, with noise.
    deviation : float or ndarray of shape (n_words,) or (n_words, n_topics)
        Standard deviation of the noise in a cell.

    Returns
    -------
    cells : ndarray of shape (n_topics, n_words), float32
        Count less what the topic would have with the word frequencies of all, over the deviation; about normal where a
        topic is noise.
    topics : ndarray of shape (n_topics,)
        Root mean square of that, less the 1 of the noise under the root: 0 for noise.
    """
    deviation = np.asarray(deviation, dtype=np.float64)
    deviation = deviation if deviation.ndim == 2 else np.broadcast_to(deviation, len(counts))[:, None]
    words = np.maximum(total(counts, axis=1, keepdims=True), 0)
    masses = np.maximum(total(counts, axis=0), 0)
    cells = (counts - words * (masses / max(total(masses), 1e-300))) / deviation
    return cells.T.astype(np.float32), np.sqrt(np.maximum(mean(cells**2, axis=0) - 1, 0))


def initial_table(shape, key, gamma_shape=1.0):
    """Return the public random table that the first round starts from.

    Its cells are independent, of the Gamma distribution with shape `gamma_shape` and mean 1: the larger the shape, the
    more alike the topics are at first.
    """
    seed = int(np.random.default_rng(key).integers(2**64, dtype=np.uint64))
    return gamma_rows(seed, gamma_shape, *shape)


class SmoothedTables(Tables):
    """Each round starts from the last release, smoothed; the model is a weighted mean of all releases.

    Recent and precise releases weigh more. Only the model is a mean, because a mean that is fed back would carry the
    noise of old rounds on and keep topics alike for longer. Smoothing towards the public word frequencies gives a word
    that the noise took out of a topic a way back.

    Parameters
    ----------
    shape : tuple of int
        (n_words, n_topics).
    plan : NoisePlan
        Number of rounds, noise and sampling rate.
    key : int
        Of the first table.
    bound_in_tokens : float, default=BOUND_IN_TOKENS
        What NORM_BOUND stands for in the tables.
    gamma_shape : float, default=1.0
        As in `initial_table`.
    smoothing : float or None, default=None
        In standard deviations of the noise. None: SMOOTHING.
    weighted : bool, default=False
        Whether contributions were weighted by `word_weights` of the table.
    """

    def __init__(
        self, shape, plan, key, bound_in_tokens=BOUND_IN_TOKENS, gamma_shape=1.0, smoothing=None, weighted=False
    ):
        self.table = initial_table(shape, key, gamma_shape)
        self._plan, self._scale = plan, bound_in_tokens / plan.sampling_rate
        self._smoothing, self._weighted = SMOOTHING if smoothing is None else smoothing, weighted
        self._sum, self._words, self._weight = np.zeros(shape), np.zeros(shape[0]), 0.0

    def update(self, noisy, round_):
        """Make the next table from a release."""
        noisy = noisy * (self._scale / NORM_BOUND)
        if self._weighted:
            noisy /= word_weights(self.table)[:, None]
        sigma = self._scale * self._plan.deviation(round_)
        ratio = 1.0 if self._plan.noiseless else self._plan.deviation(-1) / self._plan.deviation(round_)
        precision = ratio * ratio
        self._sum = (1 - FORGET) * self._sum + precision * noisy
        self._weight = (1 - FORGET) * self._weight + precision
        self._words += precision * total(noisy, axis=1)
        frequency = np.maximum(self._words, 1e-9)
        smoothing = self._smoothing * sigma * frequency / mean(frequency)
        self.table = (np.maximum(noisy, 0) + smoothing[:, None]).astype(np.float32)

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        return np.maximum(self._sum, 0) / self._weight

    def signal_to_noise(self):
        """Return the numbers of cells and topics, as `signal_to_noise` does; None without noise."""
        if self._plan.noiseless:
            return None
        deviation = model_noise(self._plan, self._scale * self._plan.sampling_rate)
        return signal_to_noise(
            self._sum / self._weight, deviation / word_weights(self.table) if self._weighted else deviation
        )

    def arrays(self):
        """Return the state."""
        return {"table": self.table, "sum": self._sum, "words": self._words, "weight": np.array(self._weight)}

    def restore(self, arrays):
        """Restore the state."""
        self.table = held(arrays, "table", self.table.shape, np.float32, np.float64, least=0)
        self._sum = held(arrays, "sum", self._sum.shape, np.float64)
        self._words = held(arrays, "words", self._words.shape, np.float64)
        self._weight = float(held(arrays, "weight", (), np.float64, least=0))


class OneTable(Tables):
    """Tables whose state is the last table alone."""

    def arrays(self):
        """Return the state."""
        return {"table": self.table}

    def restore(self, arrays):
        """Restore the state."""
        self.table = held(arrays, "table", self.table.shape, np.float32, np.float64, least=0)


class OnlineTables(OneTable):
    """Each round moves the table towards the positive part of its release, by a step size that falls.

    With rho = (offset + round + 1)^-decay, the table becomes (1 - rho) table + rho release. The table is without the
    prior.

    Parameters
    ----------
    shape : tuple of int
        (n_words, n_topics).
    rate : float
        Part of all documents that a round sees, a public number.
    key : int
        Of the first table.
    bound_in_tokens : float
        What NORM_BOUND stands for in the tables.
    offset, decay : float
        Called tau_0 and kappa in Hoffman, Blei and Bach (2010).
    gamma_shape : float, default=1.0
        As in `initial_table`.
    deviation : float, default=0.0
        Standard deviation of a cell's noise in a release, over the norm of a contribution; the same in all rounds.
    """

    def __init__(self, shape, rate, key, bound_in_tokens, offset, decay, gamma_shape=1.0, deviation=0.0):
        self.table = initial_table(shape, key, gamma_shape)
        self._scale, self._offset, self._decay = bound_in_tokens / NORM_BOUND / rate, offset, decay
        self._deviation = deviation * bound_in_tokens / rate

    def _step(self, round_):
        """Return the step size of a round."""
        return power(self._offset + np.asarray(round_) + 1, -self._decay)

    def update(self, noisy, round_):
        """Make the next table from a release."""
        rho = self._step(round_)
        step = np.maximum(noisy, 0, out=np.empty(noisy.shape, np.float32), casting="unsafe")
        step *= np.float32(rho * self._scale)
        self.table = self.table * np.float32(1 - rho)
        self.table += step

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        return self.table.astype(np.float64)

    def signal_to_noise(self):
        """Return the numbers of cells and topics, as `signal_to_noise` does; None without noise.

        A release weighs its step times what later steps leave of it. The positive part has less noise than the release,
        and much less where there is nothing, so that the signal is told too small rather than too large.
        """
        if not self._deviation or not self.n_done:
            return None
        steps = self._step(np.arange(self.n_done))
        weights = steps * np.append(np.cumprod(1 - steps[:0:-1])[::-1], 1)
        return signal_to_noise(self.pseudo_counts(), self._deviation * math.sqrt(total(weights**2)))
