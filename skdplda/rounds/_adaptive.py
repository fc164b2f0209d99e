"""The strategy that divides one budget while the fit runs, by what the releases prove.

`adaptive` asks for word frequencies first, which show how much signal there is, and so how many rounds of topics pay;
with public vectors whether these fit; where the signal is weak for topics of the frequent words alone; then for topics,
with a vote in between whether they explain the documents better than word frequencies do. `Knowledge` is what the
releases prove. All this is post-processing, and the shares of the budget add up to one: doc/theory/adaptive.rst.
"""

import math

import numpy as np

from skdplda._arithmetic import matmul, mean, power, total
from skdplda.priors._public import WordPrior
from skdplda.priors._seeding import starting_topics
from skdplda.priors._shrinkage import floor_of, loglinear, principal, shrink_frequencies, shrink_topics, unit_columns
from skdplda.rounds._bounds import NORM_BOUND, word_weights
from skdplda.rounds._held_out import scaled_to_frequencies
from skdplda.rounds._loop import Ask
from skdplda.rounds._prices import (
    BOUND_IN_TOKENS,
    FIT_SHARE,
    FORGET,
    FREQUENT_SHARE,
    FREQUENT_SIGNAL,
    LATE_SHARE,
    MOST_ROUNDS,
    PRIORS_SHARE,
    START,
    STEP,
    VECTORS_SHARE,
    VOTES_SHARE,
    WORDS_SHARE,
    topic_shares,
)
from skdplda.rounds._queries import (
    BLEND,
    ENOUGH_VOTES,
    ClusterCounts,
    PriorVotes,
    TopicVotes,
    TopicWordCounts,
    VectorSums,
    VectorVotes,
    WordTotals,
)
from skdplda.rounds._tables import initial_table, signal_to_noise

__all__ = ["MOST_ROUNDS", "Knowledge", "adaptive", "audited_query"]

# The shares of the budget are in `_prices`; these numbers, too, were chosen on Enron, KOS, news and NIPS.
# The votes are asked for when so much is spent, apart from what frequent words and vectors that do not fit had: later,
# topics are clearer; earlier, more is left if they do not pay.
VOTES_AFTER = 0.3
# Below a signal of all topics together, noise in word frequencies costs much: topics must prove more, in deviations of
# the votes' noise, and words get a part of what is left.
ENOUGH_IF_SCARCE, SCARCE_SIGNAL = 2.0, 100.0
# Priors of topic proportions that documents vote for, over the default one: few words say little of topics. Chosen on
# 20 Newsgroups and KOS cut to 3 to 12 words, and whole.
PRIORS = (1.0, 5.0, 25.0)
# Topic rounds: START + signal / STEP, in [FEWEST, MOST_ROUNDS]. The signal is a topic's mass over the noise that the
# whole budget would leave in a topic's column. Helped by vectors, fewer are enough: signal / HELPED, in
# [FEWEST_HELPED, MOST_ROUNDS]. Chosen on KOS and Enron's senders.
FEWEST, FEWEST_HELPED, HELPED = 8, 2, 6.0
# Topics that are kept apart, over the root of the signal of all together; the others have the word frequencies.
APART, FEWEST_APART = 1.0, 2
# As many topics as the others weigh at most, where documents vote and where they are read: they are all alike.
MOST_OTHERS = 10
# The signals below which no topics are tried, of each of at most so many: all that is left goes to the word
# frequencies. Chosen on KOS, news, NIPS and Enron's mails.
LEAST_SIGNAL, LEAST_SIGNAL_HELPED, MOST_COUNTED = 9.0, 4.0, 10
# Vectors: how many standard deviations of the noise say that they fit; the rounds that find clusters of documents; the
# signals above which clusters, and vectors at all, are not worth it.
ENOUGH_FIT, VECTORS_ROUNDS, START_SIGNAL, MOST_SIGNAL = 2.0, 4, 100.0, 170.0
# Frequent words first: their rounds, and the part of all tokens that they carry. Topics of few words exceed the noise
# when those of all words do not.
FREQUENT_ROUNDS, FREQUENT_MASS = 6, 0.5
ROUND_STEPS = 6  # of the log-linear model, in a round
SMOOTHING = 1.0  # of the next table, in standard deviations of the noise, towards what vectors or word frequencies say
# At least so much of a mean cell at first, which falls to nothing over that part of the rounds: where noise is nothing,
# topics settle too early. Chosen on KOS, NIPS, news and Enron's mails at 50 and 1000, with 20 Newsgroups in view.
FIRST_SMOOTHING, SMOOTHED_ROUNDS = 0.3, 0.75
# Of the Gamma initialisation, chosen on Enron, news and NIPS: topics that start far apart settle too early. In
# frontier_ablation.csv, row "Gamma initialisation of shape 1", there is little difference.
GAMMA_SHAPE = 10.0
# Mean of a cell of the table that an E-step gets, so large that its priors, which are counts, do not matter.
CELL = 1000.0


def least_total(n_topics, least=LEAST_SIGNAL):
    """Return the signal of all topics together below which none are tried, where `least` is that of one."""
    return least * min(n_topics, MOST_COUNTED)


def audited_query(kind, table, vectors=None):
    """Return a query of a kind that a fit may have, for audits, whatever the budget is.

    `table`, (n_words, n_topics), is the first one, of which "frequent" has the first half of the words; `vectors` are
    those of words.
    """
    if kind == "frequent":
        table = np.where((np.arange(len(table)) <= len(table) // 2)[:, None], table, np.float32(0))
    if kind == "vectors":
        return VectorSums(vectors, unit_columns(matmul(vectors.T, table)))
    return {
        "topics": lambda: TopicWordCounts(table),
        "frequent": lambda: TopicWordCounts(table, some=True),
        "words": lambda: WordTotals(len(table)),
        "votes": lambda: TopicVotes(table, left=np.ones(table.shape), word_weights=word_weights(table)),
        "priors": lambda: PriorVotes(table, np.ones(table.shape), 0.1 * np.array(PRIORS), word_weights(table)),
        "vector_votes": lambda: VectorVotes((vectors,)),
    }[kind]()


def in_proportion(masses):
    """Return a prior of topic proportions with mean 1, (n_topics,), in proportion to the topics' masses."""
    return masses * (len(masses) / total(masses))


def adaptive(known):
    """Yield queries of word frequencies first, then of topics; return the `Knowledge` that their answers make."""
    infers = known.first_prior is not None
    n_words, n_topics = known.shape
    if n_topics == 1:
        yield from _words_alone(known)
        return known

    known.begin((yield from known.ask(WordTotals(n_words), WORDS_SHARE, 1)))
    clustered = False
    if known.prior.vectors is not None and known.signal < MOST_SIGNAL:
        clustered = yield from _vectors(known)
    least = least_total(n_topics, LEAST_SIGNAL if known.vectors is None else LEAST_SIGNAL_HELPED)
    if known.signal * known.n_apart < least:
        yield from _words_alone(known)
        return known
    if known.vectors is None and known.signal < FREQUENT_SIGNAL:
        yield from _frequent_words(known)

    before = math.fsum(known.spent[1:]) if known.vectors is None else 0.0  # the votes come as late as without these
    shares = topic_shares(known.n_rounds, known.left, infers)
    late, voted = 0.0, False  # what is left for words in the end, if topics do not prove much
    while shares:
        share, n_after = shares.pop(0), len(shares) + infers + (late > 0)
        query = known.clusters() if clustered else TopicWordCounts(known.apart())
        clustered = False
        known.note_topics((yield from known.ask(query, share, n_after + 1)), share)
        if not voted and shares and math.fsum(known.spent) + shares[0] / 2 >= VOTES_AFTER + before:
            voted = True
            votes = yield from known.ask(known.votes(), VOTES_SHARE, n_after + 1)
            scarce = known.signal * known.n_apart < SCARCE_SIGNAL
            enough = ENOUGH_IF_SCARCE if scarce else ENOUGH_VOTES
            if votes[0, 0] < enough * known.deviation(VOTES_SHARE):
                yield from _words_alone(known)
                return known
            if scarce:
                late = LATE_SHARE * known.left
                shares = [share * (1 - LATE_SHARE) for share in shares]
    if infers:
        share = PRIORS_SHARE * (1 - LATE_SHARE if late else 1)
        gains = (yield from known.ask(known.prior_votes(), share, 1 + (late > 0)))[:, 0]
        if gains.max() > ENOUGH_VOTES * known.deviation(share):
            known.prior_factor = (*PRIORS[1:], None)[int(np.argmax(gains))]
    if late:
        known.note_words((yield from known.ask(WordTotals(n_words), late, 1)), late)
    if known.prior_factor is None:
        known.leave_topics()
    return known


def _words_alone(known):
    """Spend all that is left on the word frequencies: topics do not pay."""
    share, known.topics_pay = known.left, False
    known.note_words((yield from known.ask(WordTotals(known.shape[0]), share, 1)), share)
    known.leave_topics()


def _vectors(known):
    """Ask which vectors fit, and where the signal is weak for clusters; return whether topics start from these."""
    sets = known.prior.vector_sets
    scaled = tuple(known.scaled_vectors(principal(vectors, known.frequencies)) for vectors in sets)
    votes = (yield from known.ask(VectorVotes(scaled), FIT_SHARE, 1))[:, 0]
    fit = votes >= ENOUGH_FIT * known.deviation(FIT_SHARE)
    if not fit.any():
        return False
    if not fit.all():
        known.prior = known.prior.with_sets([vectors for vectors, fits in zip(sets, fit, strict=True) if fits])
    known.vectors = principal(known.prior.vectors, known.frequencies)
    weak = known.signal < START_SIGNAL
    if weak or len(known.prior.informed):
        start = known.starting(known.prior)
        known.seed_topics(start)
    if not weak:
        return False
    known.centres = unit_columns(matmul(known.vectors.T, start))
    for n_left in range(VECTORS_ROUNDS, 0, -1):
        query = VectorSums(known.scaled_vectors(known.vectors), known.centres)
        known.centres = unit_columns((yield from known.ask(query, VECTORS_SHARE / VECTORS_ROUNDS, n_left)))
    return True


def _frequent_words(known):
    """Ask for topics of the frequent words, if these are not all."""
    order = np.argsort(-known.frequencies, kind="stable")
    before = np.cumsum(known.frequencies[order]) - known.frequencies[order]
    some = order[before < FREQUENT_MASS]
    if len(some) == len(order):
        return
    frequent = np.zeros(len(order), bool)
    frequent[some] = True
    share = FREQUENT_SHARE / FREQUENT_ROUNDS
    for n_left in range(FREQUENT_ROUNDS, 0, -1):
        query = TopicWordCounts(np.where(frequent[:, None], known.apart(), np.float32(0)), some=True)
        known.note_frequent((yield from known.ask(query, share, n_left)), frequent, share)


class Knowledge:
    """What the releases prove; post-processing of these and of public values.

    `shape` is (n_words, n_topics); `plan` has the noise of the whole budget; `key` is that of the first table.
    Contributions to topics are weighted by `word_weights` of the table. `n_rounds` are topic rounds, None lets the
    signal decide; `prior` is a `WordPrior` or None; `first_prior` is the mean of the prior of topic proportions, if
    documents vote for a multiple of it at the end, or None.

    The next round of topics starts from `table`. `forget` is the weight that a round takes from all earlier ones in the
    model; `spent` are shares of the budget; `signal` is that of a topic, over the noise that the whole budget would
    leave. `n_apart` topics are kept apart, the others have the word frequencies. If `topics_pay`, the model has topics;
    `prior_factor` multiplies the prior of their proportions, and is 1 where they do not pay.
    """

    def __init__(self, shape, plan, key, *, n_rounds=None, prior=None, first_prior=None):
        self.prior = prior = WordPrior() if prior is None else prior
        self.shape, self._plan = shape, plan
        self.first_prior, self._given_rounds, self.forget = first_prior, n_rounds, FORGET
        self.table = self._start = initial_table(shape, key, GAMMA_SHAPE)
        self._public = floor_of(prior.frequencies)
        self._seed = int(np.random.default_rng(key).integers(2**32))
        n_words, self.n_apart = shape
        self.spent, self.signal, self.topics_pay, self.prior_factor = [], 0.0, True, 1.0
        self.vectors, self.centres = None, None  # of words, once they fit, and of topics
        self.frequencies = np.full(n_words, 1 / n_words)
        self._evidence = np.zeros((2, n_words))  # of word frequencies: weighted sums, and the sums of the weights
        self._mass, self._words_share = 0.0, 0.0  # of all words, as released by `WordTotals`, and for what share
        self._sum, self._share, self._squares = np.zeros(shape), 0.0, 0.0
        self._n_noted = 0  # rounds of topics so far
        self._noise_weights = None  # of words in the noise of the model, where topics were left out

    def strategy(self):
        """Return the strategy."""
        return adaptive(self)

    def ask(self, query, share, n_left):
        """Ask, of `n_left` releases that are left, and return the noisy sum in norms of a contribution."""
        noisy = yield Ask(query, share, self.table, len(self.spent) + n_left)
        self.spent.append(share)
        return noisy / NORM_BOUND

    @property
    def left(self):
        """What is left of the budget."""
        return 1.0 - math.fsum(self.spent)

    def deviation(self, share):
        """Return the standard deviation of the noise of a release, over the norm of a contribution."""
        return self._plan.deviation(0) / np.sqrt(share)

    @property
    def n_rounds(self):
        """Number of topic rounds: those given, or what the signal says."""
        if self._given_rounds is not None:
            return self._given_rounds
        if self.vectors is None:
            return int(np.clip(np.rint(START + self.signal / STEP), FEWEST, MOST_ROUNDS))
        return int(np.clip(np.rint(self.signal / HELPED), FEWEST_HELPED, MOST_ROUNDS))

    def _note_frequencies(self, sums, deviation):
        """Note what released sums of words prove of their frequencies, whatever scale they are on.

        Every release of topics is evidence too, the first as well as the last: how often a word occurs in all topics
        together does not depend on whether these are right already.
        """
        scale = max(total(sums), math.sqrt(total(deviation**2)))
        self._evidence += scale * sums / deviation**2, (scale / deviation) ** 2

    def proven_frequencies(self):
        """Return the word frequencies that all releases so far prove, with sum 1."""
        weighted, weights = self._evidence
        frequencies = shrink_frequencies(weighted / weights, power(weights, -0.5), self._public)
        return frequencies / total(frequencies)

    def note_words(self, sums, share):
        """Take word totals, and return them as (n_words,)."""
        words = sums[:, 0]
        self._note_frequencies(words, np.full(len(words), self.deviation(share)))
        self._mass += share * total(words)
        self._words_share += share
        return words

    def begin(self, sums):
        """Take the first word totals: how much signal is there, and how many topics are kept apart?"""
        words = self.note_words(sums, WORDS_SHARE)
        n_words, n_topics = self.shape
        self.frequencies = self.proven_frequencies()
        signal = max(total(words) / math.sqrt(n_words) / self.deviation(1.0), 0.0)
        n_seeded = len(self.prior.names)
        self.n_apart = min(max(round(APART * math.sqrt(signal)), FEWEST_APART, n_seeded), n_topics)
        self.signal, self._start = signal / self.n_apart, self._start[:, : self.n_apart]
        self._sum = self._sum[:, : self.n_apart]
        self.seed_topics(self.starting(self.prior.with_sets([])))  # not asked yet

    def starting(self, prior):
        """Return the topics that a prior says to start from, (n_words, number of topics apart), or None."""
        return starting_topics(prior, self.n_apart, self.frequencies, self._seed)

    def seed_topics(self, start):
        """Let seeded topics begin as in `start`, and make the table that topics start from."""
        if len(informed := self.prior.informed):
            self._start[:, informed] = (start / np.maximum(self.frequencies, 1e-300)[:, None])[:, informed]
        self.table = self.scaled(self._start * self.frequencies[:, None])

    def leave_topics(self):
        """Take the word frequencies for the model: topics do not pay."""
        self.topics_pay, self.prior_factor, self.frequencies = False, 1.0, self.proven_frequencies()
        self.table = self.scaled(np.repeat(self.frequencies[:, None], self.shape[1], axis=1))

    def scaled_vectors(self, vectors):
        """Return vectors of words, times their weights, of which rare words have more."""
        return vectors * np.clip(power(self.frequencies * len(self.table), -0.5), 0.2, 5)[:, None]

    def apart(self):
        """Return the table of the topics that are kept apart."""
        return np.ascontiguousarray(self.table[:, : self.n_apart])

    def clusters(self):
        """Return the query for the first topics by the clusters of documents."""
        return ClusterCounts(self.scaled_vectors(self.vectors), self.centres, self._word_weights())

    def votes(self):
        """Return the query whether topics pay, of topics as released so far, mixed with the word frequencies."""
        return TopicVotes(**self._judged(), blend=BLEND)

    def prior_votes(self):
        """Return the query which prior of topic proportions it is; all others together have that of MOST_OTHERS."""
        of_a_topic = self.first_prior * in_proportion(self.relative_priors())[0]
        return PriorVotes(**self._judged(), priors=of_a_topic * np.array(PRIORS))

    def _judged(self):
        """Return what documents vote on: topics, what is left in them of a contribution, and its words' weights."""
        counts, left = self._shrunk()
        counts, left = scaled_to_frequencies(counts[:, : self.n_apart + MOST_OTHERS], left, self.proven_frequencies())
        return {"table": counts, "left": left, "word_weights": self._word_weights()}

    def note_frequent(self, sums, frequent, share):
        """Take topics of the frequent words; the others are in each topic as often as in all, or as its seeds say."""
        weights, deviation = self._word_weights(frequent), self.deviation(share)
        released, frequencies = sums / weights[:, None], self.frequencies[frequent]
        floor = SMOOTHING * deviation * len(weights) * (frequencies / total(frequencies))
        table = np.maximum(released, 0) + floor[:, None]
        others = np.ones(self._start.shape)
        others[:, self.prior.informed] = self._start[:, self.prior.informed]
        others *= total(table, axis=0)
        others[frequent] = table
        self.table = self.scaled(others)

    def note_topics(self, released, share):
        """Take topic-word counts."""
        weights, deviation = self._word_weights(), self.deviation(share)
        released /= weights[:, None]  # in place, here and below: a pass over all cells costs as much as some sweeps
        self._note_frequencies(total(released, axis=1), deviation / weights * np.sqrt(released.shape[1]))
        kept = 1 - self.forget
        self._sum = kept * self._sum
        self._sum += share * released
        self._share = kept * self._share + share
        self._squares = kept * kept * self._squares + share
        expected = self.frequencies[:, None]
        if self.vectors is not None:
            masses = np.maximum(total(released, axis=0), deviation * math.sqrt(total(1 / (weights * weights))))
            expected = loglinear(released, expected * masses, deviation / weights, self.vectors, ROUND_STEPS)
            expected = expected / total(expected, axis=0)
        np.maximum(released, 0, out=released)
        left = 1 - self._n_noted / (SMOOTHED_ROUNDS * self.n_rounds)
        self._n_noted += 1
        smoothing = max(SMOOTHING * deviation, FIRST_SMOOTHING * left * mean(released))
        released += smoothing * len(weights) * expected
        self.table = self.scaled(released)

    def _word_weights(self, some=slice(None)):
        """Return the weights of words, or of some, in the contributions to the next round of topics."""
        return word_weights(self.table[some, : self.n_apart])

    def scaled(self, table):
        """Return a table whose words have the word frequencies, and whose mean cell is CELL.

        No cell is negative. What is given is lost.
        """
        np.maximum(table, 1e-300, out=table)
        rows = self.frequencies / total(table, axis=1)
        table *= (rows * (CELL * table.size))[:, None]
        return self._with_others(table, CELL * len(table) * self.frequencies).astype(np.float32)

    def _with_others(self, topics, other):
        """Return topics that are kept apart, and `other` in place of each of the rest."""
        n_others = self.table.shape[1] - topics.shape[1]
        return np.hstack([topics, np.tile(other[:, None], n_others)]) if n_others else topics

    def relative_priors(self):
        """Return the factors of the topics' priors where documents are read, (n_topics,): below 1 for many others."""
        n_topics = self.table.shape[1]
        factors = np.ones(n_topics)
        factors[self.n_apart :] = MOST_OTHERS / max(n_topics - self.n_apart, MOST_OTHERS)
        return factors

    def _shrunk(self):
        """Return what the releases prove, (n_words, n_topics), in norms of a contribution.

        Beside it is what of a contribution is left in it, (n_words, number of topics apart).
        """
        frequencies, (counts, deviation) = self.proven_frequencies(), self._mean_release()
        shrunk, left = shrink_topics(counts, deviation, frequencies, self.vectors)
        return self._with_others(shrunk, math.sqrt(total(deviation**2)) * frequencies), left

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        if self.topics_pay:
            return BOUND_IN_TOKENS * self._shrunk()[0]
        mass = max(self._mass / self._words_share, self.deviation(self._words_share))
        n_topics = self.table.shape[1]
        return np.repeat((BOUND_IN_TOKENS * mass / n_topics * self.frequencies)[:, None], n_topics, axis=1)

    def signal_to_noise(self):
        """Return the numbers of cells and topics, as `signal_to_noise` does; zeros where topics do not pay."""
        n_words, n_topics = self.table.shape
        cells, topics = np.zeros((n_topics, n_words), np.float32), np.zeros(n_topics)
        if self.topics_pay:
            cells[: self.n_apart], topics[: self.n_apart] = signal_to_noise(*self._mean_release())
        return cells, topics

    def _mean_release(self):
        """Return the weighted mean of the topic releases, and the deviation of its noise in the cells of each word."""
        deviation = self.deviation(1.0) * np.sqrt(self._squares) / self._share
        weights = self._word_weights() if self._noise_weights is None else self._noise_weights
        return self._sum / self._share, deviation / weights

    def keep_apart(self, n_topics):
        """Leave so many topics apart, those of most signal to noise, and give the others the word frequencies."""
        if n_topics < self.n_apart and self.topics_pay:
            clear = np.sort(np.argsort(-self.signal_to_noise()[1][: self.n_apart], kind="stable")[:n_topics])
            self._noise_weights, self._sum, self.n_apart = self._word_weights(), self._sum[:, clear], n_topics
