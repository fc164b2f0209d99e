"""The M-step of online learning: a table that moves towards each release by a step that falls."""

import math

import numpy as np

from skdplda._arithmetic import power, total
from skdplda.rounds._bounds import NORM_BOUND
from skdplda.rounds._tables import OneTable, initial_table, signal_to_noise


class OnlineTables(OneTable):
    """Each round moves the table towards the positive part of its release, by a step size that falls.

    With rho = (offset + round + 1)^-decay, where offset and decay are called tau_0 and kappa in Hoffman, Blei and Bach
    (2010), the table becomes (1 - rho) table + rho release. It is without the prior, and starts from `key` and
    `gamma_shape`. `rate` is the part of all documents that a round has, a public number; `bound_in_tokens` what
    NORM_BOUND is in the tables. `deviation` is that of a cell's noise in every release, over the norm of a
    contribution.
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
        and much less where there is nothing, so that the signal is stated too small rather than too large.
        """
        if not self._deviation or not self.n_done:
            return None
        steps = self._step(np.arange(self.n_done))
        weights = steps * np.append(np.cumprod(1 - steps[:0:-1])[::-1], 1)
        return signal_to_noise(self.pseudo_counts(), self._deviation * math.sqrt(total(weights**2)))
