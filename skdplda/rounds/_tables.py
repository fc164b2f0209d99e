"""What is made of the released tables: post-processing, free of privacy cost."""

import numpy as np

from skdplda.rounds._sensitivity import GRID, UNIT, word_weights

__all__ = [
    "UNIT",
    "ExactTables",
    "OnlineTables",
    "SmoothedTables",
    "annealed",
    "constant",
    "model_noise",
    "word_weights",
]

KEPT_TABLES = 10  # about as many exact tables are averaged
FORGET = 0.2  # by which an older release weighs less in the model
SMOOTHING = 0.2  # of the next table towards the word frequencies, in standard deviations of the noise


def model_noise(plan, unit=UNIT):
    """Return the standard deviation of the noise in a cell of `SmoothedTables`' model, where GRID stands for `unit`."""
    deviation = np.array([plan.deviation(t) for t in range(plan.n_rounds)])
    weight = (1 - FORGET) ** np.arange(plan.n_rounds)[::-1] / deviation**2
    return float(np.sqrt(np.sum((weight * deviation) ** 2)) / weight.sum() * unit / plan.sampling_rate)


def initial_table(shape, key, evenness=1.0):
    """Return the public random table that the first round starts from: positive, all cells alike in law.

    Their mean is 1, their variance 1 / `evenness`.
    """
    return np.random.default_rng(key).gamma(evenness, 1 / evenness, shape).astype(np.float32)


def annealed(alpha, beta, n_topics, round_, n_rounds):
    """Return the priors of a round without noise: large at first, so that topics form before counts freeze them.

    They fall linearly to their values, over 30 rounds (45 for more than 100 topics) or half of all.
    """
    length = min(30 if n_topics <= 100 else 45, n_rounds // 2)
    left = max(0.0, 1 - round_ / length) if length else 0.0
    return np.maximum(alpha, 0.3 * left), max(beta, 25 / n_topics * left)


def constant(alpha, beta, round_):
    """Return the priors of a round where all rounds have the same."""
    return alpha, beta


class ExactTables:
    """Without noise, each round starts from the last table; the model is the mean of some of the last half.

    Parameters
    ----------
    shape : tuple of int
        (n_words, n_topics).
    plan : NoisePlan
        Number of rounds.
    key : int
        Of the first table.
    """

    def __init__(self, shape, plan, key):
        self.table = initial_table(shape, key)
        self._last = plan.n_rounds - 1
        self._stride = max(1, plan.n_rounds // (2 * KEPT_TABLES))  # neighbouring tables differ little
        self._sum, self._n = np.zeros(shape), 0

    def update(self, exact, round_):
        """Take a table of counts; it is not copied."""
        self.table = exact
        if 2 * round_ >= self._last and (self._last - round_) % self._stride == 0:
            self._sum += exact
            self._n += 1

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        return self._sum / self._n

    def arrays(self):
        """Return the state."""
        return {"table": self.table, "sum": self._sum, "n": np.array(self._n)}

    def restore(self, arrays):
        """Take the state back."""
        self.table, self._sum, self._n = arrays["table"], arrays["sum"], int(arrays["n"])


class SmoothedTables:
    """Each round starts from the last release, smoothed; the model is the mean of all, recent and precise ones first.

    Averages are for the model alone: fed back, they would carry old noise on and delay the topics' parting. Smoothing
    towards the public word frequencies keeps a word that noise took out of a topic from staying out.

    Parameters
    ----------
    shape : tuple of int
        (n_words, n_topics).
    plan : NoisePlan
        Number of rounds, noise and sampling rate.
    key : int
        Of the first table.
    unit : float, default=UNIT
        What GRID stands for.
    evenness : float, default=1.0
        Of the first table.
    smoothing : float or None, default=None
        In standard deviations of the noise; None: SMOOTHING.
    weighted : bool, default=False
        Whether contributions were weighted by `word_weights` of the table.
    """

    def __init__(self, shape, plan, key, unit=UNIT, evenness=1.0, smoothing=None, weighted=False):
        self.table = initial_table(shape, key, evenness)
        self._plan, self._unit = plan, unit / plan.sampling_rate
        self._smoothing, self._weighted = SMOOTHING if smoothing is None else smoothing, weighted
        self._sum, self._words, self._weight = np.zeros(shape), np.zeros(shape[0]), 0.0

    def update(self, noisy, round_):
        """Take a released table."""
        noisy = noisy * (self._unit / GRID)
        if self._weighted:
            noisy /= word_weights(self.table)[:, None]
        sigma = self._unit * self._plan.deviation(round_)
        precision = 1.0 if self._plan.noiseless else (self._plan.deviation(-1) / self._plan.deviation(round_)) ** 2
        self._sum = (1 - FORGET) * self._sum + precision * noisy
        self._weight = (1 - FORGET) * self._weight + precision
        self._words += precision * noisy.sum(axis=1)
        frequency = np.maximum(self._words, 1e-9)
        smoothing = self._smoothing * sigma * frequency / frequency.mean()
        self.table = (np.maximum(noisy, 0) + smoothing[:, None]).astype(np.float32)

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        return np.maximum(self._sum, 0) / self._weight

    def arrays(self):
        """Return the state."""
        return {"table": self.table, "sum": self._sum, "words": self._words, "weight": np.array(self._weight)}

    def restore(self, arrays):
        """Take the state back."""
        self.table, self._sum, self._words = arrays["table"], arrays["sum"], arrays["words"]
        self._weight = float(arrays["weight"])


class OnlineTables:
    """Each round moves the table towards its release, without the negative part, by a share that falls.

    With rho = (offset + round + 1)^-decay, the table becomes (1 - rho) table + rho release. The prior stands apart: it
    is the same before and after.

    Parameters
    ----------
    shape : tuple of int
        (n_words, n_topics).
    rate : float
        Share of all documents that a round sees, a public number.
    key : int
        Of the first table.
    unit : float
        What GRID stands for.
    offset, decay : float
        Called tau_0 and kappa.
    evenness : float, default=1.0
        Of the first table.
    """

    def __init__(self, shape, rate, key, unit, offset, decay, evenness=1.0):
        self.table = initial_table(shape, key, evenness)
        self._scale, self._offset, self._decay = unit / GRID / rate, offset, decay

    def update(self, noisy, round_):
        """Take a released table."""
        rho = (self._offset + round_ + 1) ** -self._decay
        self.table = self.table * np.float32(1 - rho) + np.maximum(noisy, 0).astype(np.float32) * np.float32(
            rho * self._scale
        )

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        return self.table.astype(np.float64)

    def arrays(self):
        """Return the state."""
        return {"table": self.table}

    def restore(self, arrays):
        """Take the state back."""
        self.table = arrays["table"]


def consistent(table, similarity, tau):
    """Return a table whose topics have moved towards words that mean much the same: eq. (11) of Shi et al. (2019).

    With p the distribution of a topic, p + tau p (R p) / (p' R p), normalised; totals of topics stay.

    Parameters
    ----------
    table : ndarray of shape (n_words, n_topics)
        Not negative.
    similarity : csr_array of shape (n_words, n_words) or None
        Called R. None changes nothing.
    tau : float
        At least 0.

    Returns
    -------
    table : ndarray of shape (n_words, n_topics)
        Of the same dtype.
    """
    if similarity is None or tau == 0:
        return table
    near = similarity @ table
    pull = (table * near).sum(axis=0)  # p' R p times the squared total; R p has one total, hence the other one
    pull = np.divide(table.sum(axis=0), pull, out=np.zeros_like(pull), where=pull > 0)
    return table * ((1 + tau * near * pull) / (1 + tau * (pull > 0))).astype(table.dtype)


class LastTable:
    """Each round starts from the last table, and the last one is the model: EM.

    Parameters
    ----------
    shape : tuple of int
        (n_words, n_topics).
    key : int
        Of the first table.
    similarity, tau
        As in `consistent`.
    """

    def __init__(self, shape, key, similarity, tau):
        self.table = initial_table(shape, key)
        self._similarity, self._tau = similarity, tau

    def update(self, sums, round_):
        """Take a table of sums, possibly noisy."""
        self.table = consistent(np.maximum(sums, 0.0), self._similarity, self._tau)

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        return self.table

    def arrays(self):
        """Return the state."""
        return {"table": self.table}

    def restore(self, arrays):
        """Take the state back."""
        self.table = arrays["table"]


class ConsistentTables(SmoothedTables):
    """`SmoothedTables`, and word similarity after each round.

    Parameters
    ----------
    shape, plan, key
        As in `SmoothedTables`.
    similarity, tau
        As in `LastTable`.
    """

    def __init__(self, shape, plan, key, similarity, tau):
        super().__init__(shape, plan, key)
        self._similarity, self._tau = similarity, tau

    def update(self, noisy, round_):
        """Take a released table."""
        super().update(noisy, round_)
        self.table = consistent(self.table, self._similarity, self._tau)

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        return consistent(super().pseudo_counts(), self._similarity, self._tau)
