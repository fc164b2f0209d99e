"""The M-step without noise, and the priors of its rounds."""

import math

import numpy as np
import scipy.sparse as sp

from skdplda._checks import check_structure
from skdplda._rows import csr_of
from skdplda.exact._expected import expected_table
from skdplda.rounds._checkpoint import checked_array
from skdplda.rounds._loop import Tables
from skdplda.rounds._queries import TopicWordCounts

# About as many tables have the model without noise as their mean. Neighbouring tables are alike, so that more of them
# would cost time and change little. The fewer tokens a topic has, the sooner it is another one: of many topics only the
# last tables are kept, five of 1000, one from 5000 on. Chosen on KOS, and looked at on NIPS: doc/kernels.rst.
KEPT_TABLES, LAST_TABLES = 10, 5000
# What makes alpha large while many topics are drawn, and how many tokens a document needs for it to stay large: "How
# soon" in doc/kernels.rst.
WARM, LONG = 0.4, 25
TURNED = 16  # words whose rows become columns at a time: half the time of all at once
LISTS = ("data", "indices", "indptr")  # the parts of a csr_array


def annealed(alpha, beta, n_topics, round_, n_rounds, first_expected=None, mean_length=0.0):
    """Return the priors of a round without noise: large at first, so that topics form before large counts hold them.

    They fall linearly to `alpha`, (n_topics,), of topic proportions, and `beta`, of words, over 30 rounds (45 for more
    than 100 topics), or in half of all rounds: alpha from 0.3, or 0.6 for 101 to 1500 topics; beta from 25 / n_topics,
    or, if it is less, 5000 / n_topics**2. With more than 100 topics and rounds of expected counts, from
    `first_expected` on, alpha falls until these from WARM times the root of a document's tokens a topic, `mean_length`
    over the topics, 0.6 at most, but not below the least alpha times a document's tokens over LONG. The numbers come
    from the tables in "Fewer sweeps" and "How soon" of doc/kernels.rst.
    """
    many = n_topics > 100
    length = min(45 if many else 30, n_rounds // 2)
    left = max(0.0, 1 - round_ / length) if length else 0.0
    first_alpha, first_beta = 0.6 if many and n_topics <= 1500 else 0.3, min(25 / n_topics, 5000 / n_topics**2)
    beta_now = max(beta, first_beta * left)
    if not many or first_expected is None:
        return np.maximum(alpha, first_alpha * left), beta_now
    warm = min(0.6, WARM * math.sqrt(mean_length / n_topics))
    stays = min(warm, alpha.min() * mean_length / LONG)
    warm = max(stays, warm * (1 - round_ / first_expected)) if round_ < first_expected else 0.0
    return np.maximum(alpha, warm), beta_now


def constant(alpha, beta, round_):
    """Return the priors of a round: the same in all rounds."""
    return alpha, beta


class MeanTable:
    """The mean of about KEPT_TABLES tables, evenly spaced in the last half of the rounds.

    Of many topics, it is that of the last LAST_TABLES / n_topics rounds of this half, and at least of the last one.
    With `lists`, tables and their mean are of type csr_array.
    """

    def __init__(self, shape, n_rounds, lists=False):
        most = max(1, LAST_TABLES // shape[1])
        self._last, self._stride = n_rounds - 1, max(1, min(n_rounds // 2, most) // KEPT_TABLES)
        self._first = max(self._last / 2, n_rounds - most)
        self.sum, self.n = sp.csr_array(shape) if lists else np.zeros(shape), 0

    def add(self, counts, round_):
        """Add the table of a round, if it is one of those that are kept."""
        if round_ >= self._first and (self._last - round_) % self._stride == 0:
            if self.n == 0 and counts.dtype == np.int32 and 2 * KEPT_TABLES * counts.sum(dtype=np.int64) < 2**31:
                self.sum = counts.copy()  # whole numbers are added faster
            else:
                self.sum += counts
            self.n += 1

    @property
    def value(self):
        """The mean."""
        return self.sum / self.n


class ExactTables(Tables):
    """Without noise, each round starts from the last table; the first one counts nothing.

    The model is the table of the last round if it is one of expected counts, else a `MeanTable`, as with inferred
    priors. `priors` are as in `GibbsEStep`, for rounds of expected counts, of which `first_expected` is the number of
    the first, if there is one. With `lists`, tables list the topics of each word (csr_array), as `ListedEStep` takes
    them. Those of expected counts do not.
    """

    grow = True  # in the first round

    def __init__(self, shape, plan, priors=None, first_expected=None, lists=False):
        self._counts = sp.csr_array(shape, dtype=np.int32) if lists else np.zeros(shape, np.int32)
        self._mean = MeanTable(shape, plan.n_rounds, lists) if first_expected is None else None
        self._priors, self._first_expected, self._lists = priors, first_expected, lists
        self._sums = None  # the last of expected counts, whose memory the model takes

    def query(self):
        """Return what the next round asks, of the table or of its lists."""
        return TopicWordCounts(self._counts)

    @property
    def table(self):
        """What the next round starts from: (n_words, n_topics), or the lists of it."""
        return self._counts

    def begin(self, exact):
        """Return what is asked in the first round after a part of the units, of which these are the counts."""
        self._counts = sp.csr_array(exact) if self._lists else exact
        return self.query()

    def update(self, exact, round_):
        """Make the next table from exact counts, which are not copied, or from the sums of expected ones."""
        if self._first_expected is not None and round_ >= self._first_expected:
            expected_table(exact, self._counts, *self._priors(round_))
            self._sums = exact
            return
        self._counts = sp.csr_array(exact) if self._lists else exact
        if self._mean is not None:
            self._mean.add(self._counts, round_)
        elif round_ + 1 == self._first_expected:
            counts = self._counts.astype(np.float32)
            self._counts = counts.toarray() if self._lists else counts

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative, topic by topic in memory."""
        counts, n = (self._counts, 1) if self._mean is None else (self._mean.sum, self._mean.n)
        if sp.issparse(counts):
            return self._mean.value.T.toarray(order="C").T
        room, self._sums = np.empty(counts.size) if self._sums is None else self._sums.reshape(-1), None
        model = room[: counts.size].reshape(counts.shape[::-1])
        for first in range(0, len(counts), TURNED):
            np.divide(counts[first : first + TURNED].T, np.float64(n), out=model[:, first : first + TURNED])
        return model.T

    def arrays(self):
        """Return the state."""
        found = arrays_of("table", self._counts)
        return found if self._mean is None else found | arrays_of("sum", self._mean.sum) | {"n": np.array(self._mean.n)}

    def restore(self, arrays):
        """Restore the state."""
        shape, lists = self._counts.shape, sp.issparse(self._counts)
        self._counts = table_of("table", arrays, shape, lists)
        if self._mean is not None:
            self._mean.sum, self._mean.n = (
                table_of("sum", arrays, shape, lists),
                int(checked_array(arrays, "n", (), int, least=0)),
            )


def arrays_of(name, table):
    """Return the arrays of a table or of its lists, by names that begin with this one."""
    return {f"{name}_{part}": getattr(table, part) for part in LISTS} if sp.issparse(table) else {name: table}


def table_of(name, arrays, shape, lists):
    """Return the table that `arrays_of` took apart; lists may have become a table."""
    dtypes = np.int32, np.int64, np.float32, np.float64
    if not lists or name in arrays:
        return checked_array(arrays, name, shape, *dtypes, least=0)
    data, indices, indptr = (checked_array(arrays, f"{name}_{part}", (None,), *dtypes, least=0) for part in LISTS)
    table = csr_of(data, indices, indptr, shape)
    check_structure(table, name)
    return table
