"""What is made of the released tables: post-processing, free of privacy cost."""

import numpy as np

__all__ = ["AveragedTables"]

EXACT_TABLES = 10  # about as many are averaged without noise
INITIAL_SHAPE = 0.1  # of the gamma law of the first public table: few words a topic


class AveragedTables:
    """Each round starts from the last released table; the model is the mean of the last half of them.

    Parameters
    ----------
    n_words, n_topics : int
        Shape of the tables.
    plan : NoisePlan
        Number of rounds, noise and sampling rate.
    max_norm : float
        Scale of the noise is `plan.multiplier * max_norm`.
    key : int
        Of the public random table that the first round starts from.
    """

    def __init__(self, n_words, n_topics, plan, max_norm, key):
        rng = np.random.default_rng(key)
        self.table = rng.gamma(INITIAL_SHAPE, 1 / INITIAL_SHAPE, (n_words, n_topics)).astype(np.float32)
        self._plan = plan
        # Noisy tables are averaged to the last one; tables without noise differ little from round to round.
        self._stride = 1 if plan.multiplier else max(1, plan.n_rounds // (2 * EXACT_TABLES))
        self._sum = np.zeros((n_words, n_topics))
        self._n = 0

    def update(self, noisy, round_):
        """Take a released table."""
        if self._plan.multiplier or self._plan.sampling_rate < 1:
            self.table = (np.maximum(noisy, 0) / self._plan.sampling_rate).astype(np.float32)
        else:
            self.table = noisy
        if round_ >= self._plan.n_rounds // 2 and (self._plan.n_rounds - 1 - round_) % self._stride == 0:
            self._sum += noisy
            self._n += 1

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        return np.maximum(self._sum, 0) / (self._n * self._plan.sampling_rate)

    def arrays(self):
        """Return the state."""
        return {"table": self.table, "sum": self._sum, "n": np.array(self._n)}

    def restore(self, arrays):
        """Take the state back."""
        self.table, self._sum, self._n = arrays["table"], arrays["sum"], int(arrays["n"])
