"""The M-steps: what is made of the released tables. This is post-processing, free of privacy cost."""

import numpy as np

from skdplda._arithmetic import gamma_rows, mean, total
from skdplda.rounds._bounds import NORM_BOUND, word_weights
from skdplda.rounds._checkpoint import checked_array
from skdplda.rounds._loop import Tables
from skdplda.rounds._prices import BOUND_IN_TOKENS, FORGET, model_noise

# Smoothing of the next table of `SmoothedTables` towards the word frequencies, in standard deviations of the noise: of
# drawn topics, which need little, and of weighted soft counts; frontier_ablation.csv, rows "smoothing 0.2 between
# rounds" and "no smoothing between rounds".
SMOOTHING, SOFT_SMOOTHING = 0.2, 1.0
# What a token of a document counts that is a topic at first, without noise: doc/kernels.rst, "How soon".
SEED_WEIGHT = 4.0


def signal_to_noise(counts, deviation):
    """Return how far topics exceed the word frequencies, in standard deviations of the noise, by cell and by topic.

    `counts`, (n_words, n_topics), are weighted means of releases, and `deviation` is that of their noise: a number, or
    by word, or by cell. A cell's number, of (n_topics, n_words), float32, is its count less what the topic would have
    with the word frequencies of all, over the deviation: about normal where a topic is noise. A topic's is the root
    mean square of these, less the 1 of the noise under the root.
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
    noise of old rounds on and keep topics alike for longer. Smoothing towards the public word frequencies, by so many
    standard deviations of the noise, gives a word that the noise took out of a topic a way back.

    The first table has the `key` and `gamma_shape`; `bound_in_tokens` is what NORM_BOUND is in the tables. `weighted`
    says that contributions were weighted by `word_weights` of the table.
    """

    grow = False  # in the first round without noise, as `ExactTables`

    def __init__(self, shape, plan, key, bound_in_tokens=BOUND_IN_TOKENS, gamma_shape=1.0, weighted=False):
        self.table = initial_table(shape, key, gamma_shape)
        self._plan, self._scale = plan, bound_in_tokens / plan.sampling_rate
        self._smoothing, self._weighted = SOFT_SMOOTHING if weighted else SMOOTHING, weighted
        self._sum, self._words, self._weight = np.zeros(shape), np.zeros(shape[0]), 0.0

    def begin(self, exact):
        """Return what is asked first, without noise, where these are the counts of documents as topics."""
        self.table = np.multiply(exact, SEED_WEIGHT, dtype=np.float32)
        return self.query()

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
        self.table = checked_array(arrays, "table", self.table.shape, np.float32, np.float64, least=0)
        self._sum = checked_array(arrays, "sum", self._sum.shape, np.float64)
        self._words = checked_array(arrays, "words", self._words.shape, np.float64)
        self._weight = float(checked_array(arrays, "weight", (), np.float64, least=0))


class OneTable(Tables):
    """Tables whose state is the last table alone."""

    def arrays(self):
        """Return the state."""
        return {"table": self.table}

    def restore(self, arrays):
        """Restore the state."""
        self.table = checked_array(arrays, "table", self.table.shape, np.float32, np.float64, least=0)
