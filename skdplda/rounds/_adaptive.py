"""The M-step that divides one budget while the fit runs, by what the releases prove.

    words    the sum of the documents' word counts            tells how much signal there is, and so how many rounds pay
    frequent topic-word counts of the frequent words alone    where the signal is weak: fewer cells share the noise
    topics   topic-word counts, a number of rounds
    votes    do topics explain the documents better than word frequencies do? If not, the rest goes to `words` again,
             and a part of it if they do but the signal is weak
    priors   with which prior do topics explain them best? Asked at the end, if it is to be inferred

All this is post-processing of what was released, and the shares of the budget add up to one: doc/theory/adaptive.rst.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skdplda._arithmetic import matmul, power, total
from skdplda.rounds._plan import PRECISION_RATIO, growing
from skdplda.rounds._prior import WordPrior
from skdplda.rounds._seeding import starting_topics
from skdplda.rounds._sensitivity import GRID, NORM_BOUND, word_weights
from skdplda.rounds._shrinkage import floor_of, loglinear, principal, shrink_frequencies, shrink_topics, unit_columns
from skdplda.rounds._tables import FORGET, initial_table, signal_to_noise

__all__ = ["JUDGES", "MOST_ROUNDS", "AdaptiveTables", "Question", "audited_question", "least_share", "told_noise"]

# Shares of the budget, chosen on Enron, KOS, news and NIPS; doc/frontier.rst, "Little budget".
WORDS_SHARE, VOTES_SHARE = 0.06, 0.02
# The votes are asked for when so much is spent, apart from what frequent words and vectors that do not fit had: later,
# topics are clearer; earlier, more is left if they do not pay.
VOTES_AFTER = 0.3
# In the votes topics are mixed half and half with the word frequencies, as the final shrinkage would: topics that are
# right but noisy get a chance.
BLEND = 0.5
# Standard deviations of their noise above which votes, the noise included, let topics go on. Below a signal of all
# topics together, noise in word frequencies costs much: topics must prove more, and words get a part of what is left.
ENOUGH_VOTES, ENOUGH_IF_SCARCE, SCARCE_SIGNAL, LATE_SHARE = 1.0, 2.0, 100.0, 0.25
# Where the prior of topic proportions is inferred: which there are, as means over the topics; with which of them topics
# are voted on; the part of the units that judge topics, and so are in none; the shares of their votes and of the
# question which prior it is. Chosen on KOS.
MEAN_PRIORS, VOTED_PRIOR, JUDGES, JUDGES_SHARE, PRIORS_SHARE = (0.1, 0.3, 1.0, 3.0), 2, 0.1, 0.06, 0.03
# Topic rounds: START + signal / STEP, in [FEWEST, MOST_ROUNDS]. The signal is a topic's mass over the noise that the
# whole budget would leave in a topic's column. Helped by vectors, fewer are enough: signal / HELPED, in
# [FEWEST_HELPED, MOST_ROUNDS], and fewest where users are the units. Chosen on KOS and Enron's senders.
START, FEWEST, STEP, MOST_ROUNDS, FEWEST_HELPED, HELPED, HELPED_USERS = 4, 8, 6.0, 20, 2, 6.0, 18.0
# Topics that are kept apart, over the root of the signal of all together; the others have the word frequencies. Fewer
# where users are the units: their contributions are bounded as if all their words were in one topic.
APART, APART_USERS, FEWEST_APART = 1.0, 0.36, 2
# As many topics as the others weigh at most, where documents vote and where they are read: they are all alike.
MOST_OTHERS = 10
# The signals below which no topics are tried, of each of at most so many: all that is left goes to the word
# frequencies. Chosen on KOS, news, NIPS and Enron's mails.
LEAST_SIGNAL, LEAST_SIGNAL_HELPED, MOST_COUNTED = 9.0, 4.0, 10
FEW, FEW_RATIO = 6, 4.0  # so few rounds have a smaller PRECISION_RATIO
# Vectors: the share that asks whether they fit, and how many standard deviations of its noise say yes; the share and
# the rounds that find clusters of documents; the signals above which clusters, and vectors at all, are not worth it.
FIT_SHARE, ENOUGH_FIT, VECTORS_SHARE, VECTORS_ROUNDS, START_SIGNAL, MOST_SIGNAL = 0.01, 2.0, 0.1, 4, 100.0, 170.0
# Frequent words first: the signals below which they come, the share and the rounds, and the part of all tokens that
# they carry. Topics of few words stand out from the noise when those of all words do not.
FREQUENT_SIGNAL, FREQUENT_SHARE, FREQUENT_ROUNDS, FREQUENT_MASS = 60.0, 0.1, 6, 0.5
ROUND_STEPS = 6  # of the log-linear model, in a round
SMOOTHING = 1.0  # of the next table, in standard deviations of the noise, towards what vectors or word frequencies say
FORGET_SQUARES = (1 - FORGET) * (1 - FORGET)  # the factor of variances that FORGET stands for
GAMMA_SHAPE = 10.0  # of the Gamma initialisation: topics that start far apart settle too early
# Mean of a cell of the table that an E-step gets, so large that its priors, which stand for counts, do not matter.
CELL = 1000.0


def least_share(n_rounds):
    """Return a bound below the share of every release, of at most `n_rounds` (None: MOST_ROUNDS) topic rounds."""
    left = 1 - (WORDS_SHARE + FIT_SHARE + max(VECTORS_SHARE, FREQUENT_SHARE) + JUDGES_SHARE + PRIORS_SHARE)
    return min(FIT_SHARE, (1 - LATE_SHARE) * left / (PRECISION_RATIO * (n_rounds or MOST_ROUNDS)) * (1 - 1e-9))


def least_total(n_topics, least=LEAST_SIGNAL):
    """Return the signal of all topics together below which none are tried, where `least` is that of one."""
    return least * min(n_topics, MOST_COUNTED)


def topic_shares(n_rounds, left, infers):
    """Return the shares of topic rounds, and leave some of what is left for the votes.

    Parameters
    ----------
    n_rounds : int
        How many.
    left : float
        Of the budget.
    infers : bool
        Whether the prior of topic proportions is asked for.
    """
    precisions = growing(n_rounds, PRECISION_RATIO if n_rounds > FEW else FEW_RATIO)
    left -= (JUDGES_SHARE if infers else VOTES_SHARE) * (n_rounds > 1)  # after a single round, nothing is to decide
    left -= PRIORS_SHARE * infers
    return (precisions * (left / total(precisions))).tolist()


def planned_noise(plan, n_rounds=None, *, vectors=False, infers=False):
    """Return the greatest standard deviations of noise in a cell of released topics, without data.

    Parameters
    ----------
    plan : BudgetPlan
        The budget.
    n_rounds : int or None, default=None
        Topic rounds; None for those that the releases may ask for.
    vectors : bool, default=False
        Whether there are public vectors, which have a share of their own.
    infers : bool, default=False
        Whether the prior of topic proportions is inferred, which has one too.

    Returns
    -------
    noise : tuple of float
        Of the first and the last round, and of the weighted mean of all; over the norm of a contribution.
    """
    left = 1 - WORDS_SHARE - FIT_SHARE * vectors
    after_frequent = left - max(FREQUENT_SHARE, VECTORS_SHARE * vectors)
    if n_rounds is not None:
        return tuple(noise_of_topics(plan, n_rounds, after_frequent, LATE_SHARE, infers))
    most = round(START + FREQUENT_SIGNAL / STEP)  # where the signal is so weak that frequent words come first
    return tuple(
        np.maximum(
            noise_of_topics(plan, MOST_ROUNDS, left, 0.0, infers),
            noise_of_topics(plan, most, after_frequent, LATE_SHARE, infers),
        ).tolist()
    )


def noise_of_topics(plan, n_rounds, left, late, infers):
    """Return the three numbers of `planned_noise`, (3,), where so much of the budget is left for topics and votes.

    `late` is the part that words may get of it after the first round.
    """
    first, *later = topic_shares(n_rounds, left, infers)
    shares = [first, *((1 - late) * share for share in later)]
    weight = squares = 0.0
    for share in shares:
        weight, squares = (1 - FORGET) * weight + share, FORGET_SQUARES * squares + share
    return plan.deviation(0) * np.array([*(1 / np.sqrt([shares[0], shares[-1]])), math.sqrt(squares) / weight])


def told_noise(plan, norm_bound, n_components, max_iter, **options):
    """Return what `noise_deviation` of an estimator tells of this form, with `norm_bound` in tokens.

    The options are `vectors` and `infers` of `planned_noise`.
    """
    if n_components == 1:  # word frequencies alone, released once
        first = last = model = float(norm_bound * plan.deviation(0))
        rounds = 1
    else:
        first, last, model = (float(norm_bound * noise) for noise in planned_noise(plan, max_iter, **options))
        rounds = max_iter or MOST_ROUNDS
    return {"first_round": first, "last_round": last, "in_model": model, "rounds": rounds}


class Question(NamedTuple):
    """What the E-step is asked in a round that is not one of topics, or of the frequent ones: a table asks for these.

    Parameters
    ----------
    kind : {"words", "fit", "vectors", "clusters", "votes", "priors"}
        What is to be summed. None of them moves hidden state.
    table : ndarray of shape (n_words, n_topics) or None
        For "clusters", "votes" and "priors": the public table.
    vectors : ndarray of shape (n_words, n_dimensions) or None
        For "fit", "vectors" and "clusters": public vectors of words, times their weights.
    centres : ndarray of shape (n_dimensions, n_topics) or None
        For "vectors" and "clusters": of length 1.
    word_weights : ndarray of shape (n_words,) or None
        For "clusters": of words in a contribution; None where users are the units.
    priors : ndarray of shape (n_priors, n_topics) or None
        For "priors": of topic proportions. For "votes" the first one; None for JUDGE_PRIOR.
    """

    kind: str
    table: Any = None
    vectors: Any = None
    centres: Any = None
    word_weights: Any = None
    priors: Any = None


def audited_question(kind, table, vectors=None):
    """Return a question of a kind that a fit may ask, for audits, whatever the budget is.

    Parameters
    ----------
    kind : {"topics", "frequent", "words", "votes", "priors", "fit", "vectors"}
        "frequent" is asked of the first half of the words, "votes" as where no prior is inferred.
    table : ndarray of shape (n_words, n_topics)
        The first one.
    vectors : ndarray of shape (n_words, n_dimensions) or None, default=None
        Of words.
    """
    if kind == "topics":
        return table
    if kind == "frequent":
        return np.where((np.arange(len(table)) <= len(table) // 2)[:, None], table, np.float32(0))
    centres = None if vectors is None else unit_columns(matmul(vectors.T, table))
    return Question(kind, table, vectors, centres, priors=priors_of(table) if kind == "priors" else None)


def priors_of(table):
    """Return priors of topic proportions, (number of MEAN_PRIORS, n_topics), in proportion to the topics' masses."""
    return np.outer(MEAN_PRIORS, in_proportion(total(table, axis=0)))


def in_proportion(masses):
    """Return a prior of topic proportions with mean 1, (n_topics,), in proportion to the topics' masses."""
    return masses * (len(masses) / total(masses))


class AdaptiveTables:
    """Word frequencies first, then topics, then a vote; the model is what all releases prove.

    Parameters
    ----------
    shape : tuple of int
        (n_words, n_topics).
    plan : BudgetPlan
        The noise of the whole budget.
    key : int
        Of the first table.
    weighted : bool
        Whether contributions to topics are weighted by `word_weights` of the table, which those of users are not.
    n_rounds : int or None, default=None
        Topic rounds; None lets the signal decide.
    prior : WordPrior or None, default=None
        Public knowledge.
    infers : bool, default=False
        Whether the prior of topic proportions is asked for at the end.

    Attributes
    ----------
    mean_prior : float or None
        That prior, as its mean over the topics; None where it was not asked for.
    """

    def __init__(
        self,
        shape,
        plan,
        key,
        *,
        weighted,
        n_rounds=None,
        prior=None,
        infers=False,
    ):
        self.table = initial_table(shape, key, GAMMA_SHAPE)
        self._plan, self._weighted, self._n_rounds = plan, weighted, n_rounds
        self._infers, self.mean_prior = infers, None
        self._prior = WordPrior() if prior is None else prior
        self._public = floor_of(self._prior.frequencies)
        self._seed = int(np.random.default_rng(key).integers(2**32))
        self._vectors, self._centres = None, None  # of words, once they fit, and of topics
        self._frequent = np.zeros(shape[0], bool)  # the words that come first
        n_words, n_topics = shape
        self._start, self._n_apart = self.table, n_topics
        self.spent, self._todo = [], [("words", WORDS_SHARE if n_topics > 1 else 1.0)]
        self._frequencies = np.full(n_words, 1 / n_words)
        self._evidence = np.zeros((2, n_words))  # of word frequencies: weighted sums, and the sums of the weights
        self._mass, self._words_share = 0.0, 0.0  # of all words, as released by `words`, and for what share
        self._sum, self._share, self._squares, self._signal = np.zeros(shape), 0.0, 0.0, 0.0
        self._before, self._voted, self._topics_pay = 0.0, False, n_topics > 1

    @property
    def next_share(self):
        """Share of the budget that the next release takes; None after the last."""
        return self._todo[0][1] if self._todo else None

    @property
    def n_planned(self):
        """Number of releases that are planned as of now."""
        return len(self.spent) + len(self._todo)

    @property
    def question(self):
        """What the next release is a sum of."""
        kind = self._todo[0][0]
        if kind == "words":
            return Question(kind)
        if kind == "votes" and not self._infers:
            return Question(kind, self._voted_table())
        if kind in ("votes", "priors"):
            counts = self._shrunk()[:, : self._n_apart + MOST_OTHERS]
            priors = priors_of(counts)
            return Question(kind, counts, priors=priors if kind == "priors" else priors[[VOTED_PRIOR]])
        table = np.ascontiguousarray(self.table[:, : self._n_apart])  # of fewer columns: asks for fewer topics
        if kind == "topics":
            return table
        if kind == "frequent":  # a table that has rows of zeros asks for topics of the other words
            return np.where(self._frequent[:, None], table, np.float32(0))
        weights = self._word_weights() if self._weighted else None
        vectors = self._vectors * np.clip(power(self._frequencies * len(self.table), -0.5), 0.2, 5)[:, None]
        return Question(kind, table if kind == "clusters" else None, vectors, self._centres, weights)

    def update(self, noisy, round_):
        """Take a release, and decide what is asked next."""
        kind, share = self._todo.pop(0)
        self.spent.append(share)
        getattr(self, f"_take_{kind}")(noisy / GRID, share)

    def _deviation(self, share):
        """Return the standard deviation of the noise of a release, over the norm of a contribution."""
        return self._plan.deviation(0) / np.sqrt(share)

    def _note_frequencies(self, sums, deviation):
        """Note what released sums of words prove of their frequencies, whatever scale they are on.

        Every release of topics tells of them too, the first as well as the last: how often a word stands in all topics
        together does not depend on whether these are right already.
        """
        scale = max(total(sums), math.sqrt(total(deviation**2)))
        self._evidence += scale * sums / deviation**2, (scale / deviation) ** 2

    def _proven_frequencies(self):
        """Return the word frequencies that all releases so far prove, with sum 1."""
        weighted, weights = self._evidence
        frequencies = shrink_frequencies(weighted / weights, power(weights, -0.5), self._public)
        return frequencies / total(frequencies)

    def _take_words(self, sums, share):
        first, words = len(self.spent) == 1, sums[:, 0]
        self._note_frequencies(words, np.full(len(words), self._deviation(share)))
        self._mass += share * total(words)
        self._words_share += share
        if self._topics_pay and not first:  # after the last topics, whose weights stay
            return
        n_words, n_topics = self.table.shape
        self._frequencies = self._proven_frequencies()
        if not self._topics_pay:
            self.table = self._scaled(np.repeat(self._frequencies[:, None], n_topics, axis=1))
            return
        signal = max(total(words) / math.sqrt(n_words) / self._deviation(1.0), 0.0)
        n_seeded = len(self._prior.names)
        apart = APART if self._weighted else APART_USERS
        self._n_apart = min(max(round(apart * math.sqrt(signal)), FEWEST_APART, n_seeded), n_topics)
        self._signal, self._start = signal / self._n_apart, self._start[:, : self._n_apart]
        self._sum = self._sum[:, : self._n_apart]
        self._seed_topics(self._starting(replace(self._prior, vectors=None)))  # not asked yet
        if self._prior.vectors is not None and self._signal < MOST_SIGNAL:
            self._vectors = principal(self._prior.vectors, self._frequencies)
            self._todo = [("fit", FIT_SHARE)]
        else:
            self._plan_topics("topics")

    def _starting(self, prior):
        """Return the topics that a prior says to start from, (n_words, number of topics apart), or None."""
        return starting_topics(prior, self._n_apart, self._frequencies, self._seed)

    def _seed_topics(self, start):
        """Let seeded topics begin as in `start`, and make the table that topics start from."""
        if len(informed := self._prior.informed):
            self._start[:, informed] = (start / np.maximum(self._frequencies, 1e-300)[:, None])[:, informed]
        self.table = self._scaled(self._start * self._frequencies[:, None])

    def _take_fit(self, sums, share):
        if sums[0, 0] < ENOUGH_FIT * self._deviation(share):
            self._vectors = None
            self._plan_topics("topics")
            return
        weak = self._signal < START_SIGNAL
        if weak or len(self._prior.informed):
            start = self._starting(self._prior)
            self._seed_topics(start)
        if not weak:
            self._plan_topics("topics")
            return
        self._centres = unit_columns(matmul(self._vectors.T, start))
        self._todo = [("vectors", VECTORS_SHARE / VECTORS_ROUNDS)] * VECTORS_ROUNDS

    def _take_vectors(self, sums, share):
        self._centres = unit_columns(sums)
        if not self._todo:
            self._plan_topics("clusters")

    def _plan_topics(self, first):
        """Plan the topic rounds, the first of which may be one of clusters; none if the signal is too weak for them."""
        n_rounds, helped = self._n_rounds, self._vectors is not None
        least = least_total(self.table.shape[1], LEAST_SIGNAL_HELPED if helped else LEAST_SIGNAL)
        if self._signal * self._n_apart < least:
            self._give_up()
            return
        if self._signal < FREQUENT_SIGNAL and not helped and not self._frequent.any():
            order = np.argsort(-self._frequencies, kind="stable")
            before = np.cumsum(self._frequencies[order]) - self._frequencies[order]
            some = order[before < FREQUENT_MASS]
            if len(some) < len(order):
                self._frequent[some] = True
                self._todo = [("frequent", FREQUENT_SHARE / FREQUENT_ROUNDS)] * FREQUENT_ROUNDS
                return
        if n_rounds is None and helped:
            step = HELPED if self._weighted else HELPED_USERS
            n_rounds = int(np.clip(np.rint(self._signal / step), FEWEST_HELPED, MOST_ROUNDS))
        elif n_rounds is None:
            n_rounds = int(np.clip(np.rint(START + self._signal / STEP), FEWEST, MOST_ROUNDS))
        self._before = math.fsum(self.spent[1:])
        shares = topic_shares(n_rounds, 1 - math.fsum(self.spent), self._infers)
        self._todo = [(first, shares[0]), *(("topics", share) for share in shares[1:])]
        self._todo += [("priors", PRIORS_SHARE)] * self._infers

    def _take_frequent(self, sums, share):
        """Take topics of the frequent words; the others are in each topic as often as in all, or as its seeds say."""
        weights, deviation = self._word_weights(self._frequent), self._deviation(share)
        released, frequencies = sums / weights[:, None], self._frequencies[self._frequent]
        floor = SMOOTHING * deviation * len(weights) * (frequencies / total(frequencies))
        table = np.maximum(released, 0) + floor[:, None]
        others = np.ones(self._start.shape)
        others[:, self._prior.informed] = self._start[:, self._prior.informed]
        others *= total(table, axis=0)
        others[self._frequent] = table
        self.table = self._scaled(others)
        if not self._todo:
            self._plan_topics("topics")

    def _take_clusters(self, sums, share):
        self._take_topics(sums, share)

    def _take_topics(self, sums, share):
        weights = self._word_weights()
        deviation, released = self._deviation(share), sums
        released /= weights[:, None]  # in place, here and below: a pass over all cells costs as much as some sweeps
        self._note_frequencies(total(released, axis=1), deviation / weights * np.sqrt(released.shape[1]))
        self._sum = (1 - FORGET) * self._sum
        self._sum += share * released
        self._share = (1 - FORGET) * self._share + share
        self._squares = FORGET_SQUARES * self._squares + share
        expected = self._frequencies[:, None]
        if self._vectors is not None:
            masses = np.maximum(total(released, axis=0), deviation * math.sqrt(total(1 / (weights * weights))))
            expected = loglinear(released, expected * masses, deviation / weights, self._vectors, ROUND_STEPS)
            expected = expected / total(expected, axis=0)
        floor = SMOOTHING * deviation * len(weights) * expected
        np.maximum(released, 0, out=released)
        released += floor
        self.table = self._scaled(released)
        after = VOTES_AFTER + (self._before if self._vectors is None else 0.0)
        more = self._todo and self._todo[0][0] == "topics"
        if not self._voted and more and math.fsum(self.spent) + self._todo[0][1] / 2 >= after:
            self._voted = True
            self._todo.insert(0, ("votes", JUDGES_SHARE if self._infers else VOTES_SHARE))

    def _take_votes(self, sums, share):
        scarce = self._signal * self._n_apart < SCARCE_SIGNAL
        enough = ENOUGH_IF_SCARCE if scarce and not self._infers else ENOUGH_VOTES
        if sums[0, 0] < enough * self._deviation(share):
            self._give_up()
        elif scarce:
            left = 1 - math.fsum(self.spent)
            self._todo = [(kind, share * (1 - LATE_SHARE)) for kind, share in self._todo]
            self._todo.append(("words", LATE_SHARE * left))

    def _take_priors(self, sums, share):
        self.mean_prior = MEAN_PRIORS[int(np.argmax(sums[:, 0]))]

    def _give_up(self):
        """Plan to spend all that is left on the word frequencies."""
        self._topics_pay = False
        self._todo = [("words", 1 - math.fsum(self.spent))]

    def _word_weights(self, some=slice(None)):
        """Return the weights of words, or of some, in the contributions to the next round of topics."""
        table = self.table[some, : self._n_apart]
        return word_weights(table) if self._weighted else np.ones(len(table), np.float32)

    def _scaled(self, table):
        """Return a table whose words have the word frequencies, and whose mean cell is CELL.

        No cell is negative, and no row is zero: that would take the word out of the question. What is given is lost.
        """
        np.maximum(table, 1e-300, out=table)
        rows = self._frequencies / total(table, axis=1)
        table *= (rows * (CELL * table.size))[:, None]
        return self._with_others(table, CELL * len(table) * self._frequencies).astype(np.float32)

    def _with_others(self, topics, other):
        """Return topics that are kept apart, and `other` in place of each of the rest."""
        n_others = self.table.shape[1] - topics.shape[1]
        return np.hstack([topics, np.tile(other[:, None], n_others)]) if n_others else topics

    def relative_priors(self):
        """Return the factors of the topics' priors where documents are read, (n_topics,): below 1 for many others."""
        n_topics = self.table.shape[1]
        factors = np.ones(n_topics)
        factors[self._n_apart :] = MOST_OTHERS / max(n_topics - self._n_apart, MOST_OTHERS)
        return factors

    def _voted_table(self):
        """Return the topics as released so far, mixed with the word frequencies, (n_words, n_topics)."""
        counts = self._shrunk()[:, : self._n_apart + MOST_OTHERS]
        topics = counts / total(counts, axis=0)
        return BLEND * topics + (1 - BLEND) * (total(counts, axis=1) / total(counts))[:, None]

    def _shrunk(self):
        """Return what the releases prove, (n_words, n_topics), in norms of a contribution."""
        frequencies, (counts, deviation) = self._proven_frequencies(), self._mean_release()
        shrunk = shrink_topics(counts, deviation, frequencies, self._vectors)
        return self._with_others(shrunk, math.sqrt(total(deviation**2)) * frequencies)

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        if self._topics_pay:
            return NORM_BOUND * self._shrunk()
        mass = max(self._mass / self._words_share, self._deviation(self._words_share))
        n_topics = self.table.shape[1]
        return np.repeat((NORM_BOUND * mass / n_topics * self._frequencies)[:, None], n_topics, axis=1)

    def signal_to_noise(self):
        """Return the numbers of cells and topics, as `signal_to_noise` does; zeros where topics do not pay."""
        n_words, n_topics = self.table.shape
        cells, topics = np.zeros((n_topics, n_words), np.float32), np.zeros(n_topics)
        if self._topics_pay:
            cells[: self._n_apart], topics[: self._n_apart] = signal_to_noise(*self._mean_release())
        return cells, topics

    def _mean_release(self):
        """Return the weighted mean of the topic releases, and the deviation of its noise in the cells of each word."""
        deviation = self._deviation(1.0) * np.sqrt(self._squares) / self._share
        return self._sum / self._share, deviation / self._word_weights()

    def arrays(self):
        """Return the state."""
        kinds, shares = zip(*self._todo, strict=True) if self._todo else ((), ())
        return {
            "table": self.table,
            "start": self._start,
            "evidence": self._evidence,
            "frequencies": self._frequencies,
            "frequent": self._frequent,
            "sum": self._sum,
            "spent": np.array(self.spent),
            "kinds": np.array(kinds, dtype="U8"),
            "shares": np.array(shares),
            "numbers": np.array(
                [
                    *(self._words_share, self._share, self._squares, self._before),
                    *(self._voted, self._topics_pay, self._signal, self._mass, self._n_apart),
                ]
            ),
            "mean_prior": np.array([] if self.mean_prior is None else [self.mean_prior]),
        } | {name: a for name, a in (("vectors", self._vectors), ("centres", self._centres)) if a is not None}

    def restore(self, arrays):
        """Restore the state."""
        self.table, self._start, self._evidence = arrays["table"], arrays["start"], arrays["evidence"]
        self._frequencies, self._sum, self.spent = arrays["frequencies"], arrays["sum"], arrays["spent"].tolist()
        self._frequent = arrays["frequent"]
        self._todo = list(zip(arrays["kinds"].tolist(), arrays["shares"].tolist(), strict=True))
        self._words_share, self._share, self._squares, self._before = arrays["numbers"][:4].tolist()
        self._signal, self._mass, apart = arrays["numbers"][6:].tolist()
        self._n_apart, self.mean_prior = int(apart), next(iter(arrays["mean_prior"].tolist()), None)
        self._vectors, self._centres = arrays.get("vectors"), arrays.get("centres")
        self._voted, self._topics_pay = bool(arrays["numbers"][4]), bool(arrays["numbers"][5])
