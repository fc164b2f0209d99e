"""The M-steps of PCTD: topics that are consistent with word similarity, eq. (11) of Shi et al. (2019)."""

import numpy as np

from skdplda._arithmetic import matmul, total
from skdplda.priors._public import WordPrior
from skdplda.priors._seeding import starting_topics
from skdplda.priors._shrinkage import floor_of, principal, shrink_frequencies, shrink_topics
from skdplda.rounds._prices import model_noise
from skdplda.rounds._tables import OneTable, SmoothedTables, initial_table


def consistent(table, similarity, tau):
    """Return a table whose topics have moved towards words of similar meaning: eq. (11) of Shi et al. (2019).

    The distribution p of a topic becomes p + tau p (R p) / (p' R p), normalised, where R is the similarity of words,
    None to change nothing, and tau is at least 0. The totals of topics stay, and the dtype.
    """
    if similarity is None or tau == 0:
        return table
    near = matmul(similarity, table)
    pull = total(table * near, axis=0)  # p' R p times the squared total; R p has one total, hence the other one
    pull = np.divide(total(table, axis=0), pull, out=np.zeros_like(pull), where=pull > 0)
    return table * ((1 + tau * near * pull) / (1 + tau * (pull > 0))).astype(table.dtype)


class LastTable(OneTable):
    """Each round starts from the last table, and the last one is the model: EM, with `consistent` after each round."""

    def __init__(self, shape, key, similarity, tau):
        self.table = initial_table(shape, key)
        self._similarity, self._tau = similarity, tau

    def update(self, sums, round_):
        """Make the next table from sums, noisy or not."""
        self.table = consistent(np.maximum(sums, 0.0), self._similarity, self._tau)

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        return self.table.copy()


class ConsistentTables(SmoothedTables):
    """`SmoothedTables`, and word similarity after each round, as in `consistent`.

    The model is what the releases prove: topics are shrunk towards word frequencies, and towards what a `WordPrior`
    says, from which topics start half, and half even. All of it is post-processing of released tables.
    """

    def __init__(self, shape, plan, key, similarity, tau, prior=None):
        super().__init__(shape, plan, key)
        self._similarity, self._tau = similarity, tau
        self._prior = WordPrior() if prior is None else prior
        start = starting_topics(self._prior, shape[1], None, key % 2**32)
        if start is not None:
            self.table = ((start * shape[0] + 1) / 2).astype(np.float32)

    def update(self, noisy, round_):
        """Make the next table from a release."""
        super().update(noisy, round_)
        self.table = consistent(self.table, self._similarity, self._tau)

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        if self._plan.noiseless:
            return consistent(super().pseudo_counts(), self._similarity, self._tau)
        counts, prior = self._sum / self._weight, self._prior
        deviation = np.full(len(counts), model_noise(self._plan))
        frequencies = shrink_frequencies(
            total(counts, axis=1), deviation * np.sqrt(counts.shape[1]), floor_of(prior.frequencies)
        )
        frequencies /= total(frequencies)
        vectors = None if prior.vectors is None else principal(prior.vectors, frequencies)
        return consistent(shrink_topics(counts, deviation, frequencies, vectors)[0], self._similarity, self._tau)
