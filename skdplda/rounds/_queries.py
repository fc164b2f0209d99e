"""What a strategy may ask: sums over the privacy units, to which each unit adds a bounded part in whole numbers.

    WordTotals    how often the words occur                          how much signal there is
    TopicWordCounts  topic-word counts, given a table                summed by the E-step of the model
    VectorVotes   do words of one document have vectors alike?       votes
    VectorSums    directions of documents, by cluster                clusters in the space of the words' vectors
    ClusterCounts topic-word counts, a document's cluster its topic  the first topics
    TopicVotes    do topics explain documents better than words do?  votes
    PriorVotes    with which prior do topics explain them best?      gains

A query is public: it is made of released and public values. Bounds are proven in doc/theory/adaptive.rst and
doc/theory/rounds.rst; `lemma` says where.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import exp, matmul, total
from skdplda._rows import chunks, rows_of
from skdplda.rounds._bounds import MARGIN, NORM_BOUND, Bounded, Contributions, bounded_by_kernel, weighted_words
from skdplda.rounds._held_out import documents_of, gains_of_unseen, own_parts

__all__ = [
    "BLEND",
    "ENOUGH_VOTES",
    "JUDGE_PRIOR",
    "ClusterCounts",
    "PriorVotes",
    "Query",
    "TopicVotes",
    "TopicWordCounts",
    "VectorSums",
    "VectorVotes",
    "WordTotals",
    "judged",
]

# A document's vote is its gain in nats of all tokens that it holds out, times this, in [-1, 1]. Chosen on KOS and
# tweets, and on the same words shuffled, of 1 to 10, and of 10 to 1,000 of the gain a token.
VOTES_PER_NAT = 10.0
# The most nats in a document's vote for a prior; few gain or lose more.
LARGEST_GAIN = 1.0
# Prior of topic proportions when documents judge topics.
JUDGE_PRIOR = 0.1
# In the votes topics are mixed half and half with the word frequencies, as the final shrinkage would: topics that are
# right but noisy get a chance.
BLEND = 0.5
# Standard deviations of their noise above which votes, the noise included, say that there are topics: where nothing is
# gained, noise exceeds them in one fit of twenty.
ENOUGH_VOTES = 1.65
# What is taken off a vote for the vectors: permuted vectors, which say nothing, got -0.3 to 0.011 on ten corpora,
# GloVe's 0.13 to 0.95.
DOUBT = 0.05
# How much the cosine of a document and a centre counts, when the document is divided among the clusters.
SHARPNESS = 8.0
LEAST_LENGTH = 1e-100  # of a vector that is scaled to length 1


def normalized_rows(rows):
    """Return rows of length 1, or zeros where all numbers are below LEAST_LENGTH; no square overflows or underflows."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = np.divide(rows, largest, out=np.zeros(rows.shape), where=largest > LEAST_LENGTH)
    return scaled / np.sqrt(np.maximum(total(scaled * scaled, axis=1), 1.0))[:, None]


def divided(X, query):
    """Return documents' directions in the space of the words' vectors, and how they divide among the centres.

    Directions have length 1, or 0 for documents without a vector; rows of the division sum to 1.
    """
    sums = matmul(X, query.vectors)
    length = np.sqrt(total(sums**2, axis=1, keepdims=True))
    closeness = matmul(X, matmul(query.vectors, query.centres))
    closeness = np.divide(SHARPNESS * closeness, length, out=np.zeros(closeness.shape), where=length > LEAST_LENGTH)
    clusters = exp(closeness - closeness.max(axis=1, keepdims=True))
    return normalized_rows(sums), clusters / total(clusters, axis=1, keepdims=True)


class Query:
    """A sum over the privacy units, to which each unit adds a part of norm NORM_BOUND at most, in whole numbers.

    Attributes
    ----------
    shape : tuple of int
        Of the sum.
    kind : str
        What is summed.
    lemma : str
        Where the theory guide proves the bound.
    """

    kind: str
    lemma: str

    def collect(self, e_step: Any) -> Bounded:
        """Return the sum, before noise.

        Parameters
        ----------
        e_step : EStep
            Of the documents.

        Returns
        -------
        sums : Bounded
            Of the query's shape.

        Raises
        ------
        NotImplementedError
            If the E-step of a model answers in its place.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class TopicWordCounts(Query):
    """Topic-word counts, given a table. A table of fewer columns than the model has topics is of fewer topics.

    Parameters
    ----------
    table : ndarray of shape (n_words, n_topics), or csr_array
        Public.
    some : bool, default=False
        Whether the documents have some words alone: those whose rows of the table are not zero.
    """

    table: Any
    some: bool = field(default=False, kw_only=True)
    kind = "topics"
    lemma = "rounds, Lemmas 1 to 3; adaptive, Lemma 6"

    @property
    def words(self) -> np.ndarray:
        """Flags of the words that take part, (n_words,)."""
        return self.table.any(axis=1) if self.some else np.ones(self.table.shape[0], bool)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the sum."""
        return int(np.count_nonzero(self.words)), self.table.shape[1]


@dataclass(frozen=True, eq=False)
class WordTotals(Query):
    """Word counts, each unit's scaled to the L2 norm NORM_BOUND, rounded down: (n_words, 1)."""

    n_words: int
    kind = "words"
    lemma = "adaptive, Lemma 1"

    @property
    def shape(self):
        """Shape of the sum."""
        return self.n_words, 1

    def collect(self, e_step):
        """Return the sum, before noise."""
        total = np.zeros(self.shape, np.int64)
        for numbers, X in e_step.documents.blocks():
            total[:, 0] += weighted_words(X, e_step.documents.weights(X, numbers, 2))
        return bounded_by_kernel(total, 2, e_step.n_units)


class Votes(Query):
    """Votes of documents: rows of norm 1 at most, of a unit the mean: (n_votes, 1)."""

    @np.errstate(all="ignore")  # a warning would be an output
    def collect(self, e_step):
        """Return the sum, before noise."""
        sums = Contributions(self.shape)
        for numbers, X in e_step.documents.blocks():
            sizes = e_step.documents.sizes(numbers)
            scale = NORM_BOUND * (1 - MARGIN) / sizes
            sums.add_rows(np.trunc(self.votes(X, e_step, numbers) * scale[:, None]), sizes)
        return sums.bounded()


@dataclass(frozen=True, eq=False)
class VectorVotes(Votes):
    """Votes whether words of one document have vectors that point the same way: (n_sets, 1), one for each set.

    A document's vote is the sum of the products of its words' vectors in pairs, over that of each with itself, in
    [-1, 1], less DOUBT; and that over the root of n_sets.
    """

    sets: Any  # public vectors of words, times their weights: arrays (n_words, n_dimensions)
    kind = "vector_votes"
    lemma = "adaptive, Lemma 2"

    @property
    def shape(self):
        """Shape of the sum."""
        return len(self.sets), 1

    def votes(self, X, e_step, numbers):
        """Return the votes of documents, rows of norm 1 at most, (n_documents, n_sets)."""
        X = X.astype(np.float64)
        votes = [self._of_set(X, vectors) for vectors in self.sets]
        return np.stack(votes, axis=1) / np.sqrt(len(votes))

    def _of_set(self, X, vectors):
        alone = matmul(X.multiply(X), total(vectors**2, axis=1))
        pairs = total(matmul(X, vectors) ** 2, axis=1) - alone
        ratio = np.divide(pairs, alone, out=np.zeros(len(pairs)), where=alone > 0)
        return (np.clip(ratio, -1, 1) - DOUBT) / (1 + DOUBT)


@dataclass(frozen=True, eq=False)
class VectorSums(Query):
    """Outer products of a document's direction and its division among clusters, (n_dimensions, n_clusters)."""

    vectors: Any  # public ones of words, times their weights, (n_words, n_dimensions)
    centres: Any  # of length 1, (n_dimensions, n_clusters)
    kind = "vectors"
    lemma = "adaptive, Lemma 3"

    @property
    def shape(self):
        """Shape of the sum."""
        return self.centres.shape

    def collect(self, e_step):
        """Return the sum, before noise."""
        sums = Contributions(self.shape)
        for numbers, X in e_step.documents.blocks():
            sizes = e_step.documents.sizes(numbers)
            scale = NORM_BOUND * (1 - MARGIN) / sizes
            for rows in chunks(X.shape[0], self.centres.size):
                directions, clusters = divided(rows_of(X, rows), self)
                products = directions[:, :, None] * normalized_rows(clusters)[:, None, :]
                sums.add_rows(np.trunc(products * scale[rows, None, None]), sizes[rows])
        return sums.bounded()


@dataclass(frozen=True, eq=False)
class ClusterCounts(Query):
    """The first topic-word counts, in which all words of a document have its clusters as topics."""

    vectors: Any  # as in `VectorSums`
    centres: Any
    word_weights: Any  # in a contribution, (n_words,)
    kind = "clusters"
    lemma = "adaptive, Lemma 4"

    @property
    def shape(self):
        """Shape of the sum."""
        return len(self.vectors), self.centres.shape[1]

    def collect(self, e_step):
        """Return the sum, before noise."""
        sums = Contributions(self.shape)
        if e_step.documents.unit is not None:
            self._add_users(sums, e_step.documents, e_step.n_units)
            return sums.bounded()
        for _, X in e_step.documents.blocks():
            for rows in chunks(X.shape[0], self.shape[1], X.indptr):
                self._add(sums, rows_of(X, rows).astype(np.float64))
        return sums.bounded()

    def _add_users(self, sums, documents, n_units):
        """Add the contributions of users, whose documents are scaled together."""
        done = 0
        for X, rows, units in documents.by_unit():
            ends = np.concatenate([[0], np.cumsum(np.diff(X.indptr)[rows])])[units]  # entries up to each user
            for some in chunks(len(units) - 1, self.shape[1], ends):
                counts = rows_of(X, rows[units[some.start] : units[some.stop]]).astype(np.float64)
                user = np.repeat(np.arange(some.start, some.stop), np.diff(units[some.start : some.stop + 1]))
                document = documents_of(counts)
                values = (counts.data * self.word_weights[counts.indices])[:, None] * divided(counts, self)[1][document]
                sums.add_scaled(values, counts.indices, done + user[document], n_units)
            done += len(units) - 1

    def _add(self, sums, counts):
        """Add the contributions of some documents."""
        _, clusters = divided(counts, self)
        counts = sp.csr_array(counts * self.word_weights)
        clusters = normalized_rows(clusters)
        norm = np.sqrt(total(counts.multiply(counts).tocsr(), axis=1))
        scale = NORM_BOUND * (1 - MARGIN) / np.maximum(norm, 1e-300)
        document = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        values = np.trunc((counts.data * scale[document])[:, None] * clusters[document])
        sums.add_whole(values, counts.indices, document, counts.shape[0])


@dataclass(frozen=True, eq=False)
class TopicVotes(Votes):
    """Votes whether topics explain documents better than word frequencies do.

    Documents judge by words that they hold out, and by topics without what they have added to these themselves.
    """

    table: Any  # the public one, (n_words, n_topics), in norms of a contribution
    # What of a contribution to a cell is left in the table, but for the last topics, which are the word frequencies.
    left: Any
    word_weights: Any  # in a contribution, (n_words,)
    blend: float = 1.0  # part of the topics in a mixture with the word frequencies, which votes are about
    kind = "votes"
    lemma = "adaptive, Lemma 2"
    shape = (1, 1)

    def votes(self, X, e_step, numbers):
        """Return the votes of documents, in [-1, 1], (n_documents, 1)."""
        prior = np.full(self.table.shape[1], JUDGE_PRIOR)
        return judged(X, self.table, own_of(self, X, e_step, numbers, prior), self.blend, prior, e_step.n_threads)


@dataclass(frozen=True, eq=False)
class PriorVotes(Votes):
    """Votes for priors of topic proportions, and for no topics: nats that documents gain over the first prior.

    Votes are for the other priors, and at last for word frequencies alone, as a prior without end would say.
    """

    table: Any  # as in `TopicVotes`, with `left` and `word_weights`
    left: Any
    priors: Any  # of the proportion of each topic, (n_votes,)
    word_weights: Any
    kind = "priors"
    lemma = "adaptive, Lemma 7"

    @property
    def shape(self):
        """Shape of the sum."""
        return len(self.priors), 1

    def votes(self, X, e_step, numbers):
        """Return the votes of documents, rows of norm 1 at most, (n_documents, n_votes)."""
        priors = np.outer(self.priors, np.ones(self.table.shape[1]))
        own = own_of(self, X, e_step, numbers, priors[0])
        nats = nats_of_unseen(X, self.table, own, 1.0, priors, e_step.n_threads)
        others = np.hstack([nats[:, 1:], np.zeros((len(nats), 1))])
        gains = np.clip(others - nats[:, :1], -LARGEST_GAIN, LARGEST_GAIN)
        return gains / np.sqrt(np.maximum(total(gains * gains, axis=1), 1.0))[:, None]


def own_of(query, X, e_step, numbers, prior):
    """Return what gives, of some rows of X, what these have added to the table: `own` of `gains_of_unseen`."""
    given = query.table, query.left, query.word_weights, e_step.documents.shares(numbers)
    return own_parts(X, *given, prior, e_step.n_threads)


def nats_of_unseen(X, table, own, blend, priors, n_threads):
    """Return the nats that documents gain with each prior, (n_documents, n_priors); `own(rows)` is of some."""
    nats, table = np.empty((X.shape[0], len(priors))), np.ascontiguousarray(table, np.float64)
    given = blend, priors, n_threads, total(table, axis=0)
    for rows in chunks(X.shape[0], 8 * table.shape[1], X.indptr):
        nats[rows] = gains_of_unseen(rows_of(X, rows), table, own(rows), *given)
    return nats


def judged(X, table, own, blend, prior, n_threads):
    """Return the votes of documents whether topics pay, in [-1, 1], (n_documents, 1)."""
    return np.clip(VOTES_PER_NAT * nats_of_unseen(X, table, own, blend, [prior], n_threads), -1, 1)
