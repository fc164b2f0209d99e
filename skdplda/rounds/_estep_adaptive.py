"""The E-step of the adaptive loop: beside topics, it answers the questions that decide how the budget is spent."""

from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import exp, matmul, total
from skdplda.metrics import score_samples
from skdplda.rounds._checkpoint import held
from skdplda.rounds._documents import Documents
from skdplda.rounds._sensitivity import GRID, MARGIN

__all__ = ["AdaptiveEStep"]

# A document's vote is its gain in nats a held-out token, times this, in [-1, 1]; chosen with the votes' share.
VOTES_PER_NAT = 10.0
# A document's votes for priors are its gains in nats a held-out token, scaled to this norm: few gains are larger.
LARGEST_GAIN = 1.0
# Prior of topic proportions when documents judge topics: that of `score`.
JUDGE_PRIOR = 0.1
# What is taken off a vote for the vectors: permuted vectors, which say nothing, got -0.3 to 0.011 on ten corpora,
# GloVe's 0.13 to 0.95.
DOUBT = 0.05
# How much the cosine of a document and a centre counts, when the document is divided among the clusters.
SHARPNESS = 8.0
LEAST_LENGTH = 1e-100  # of a vector that is scaled to length 1
CHUNK = 2**24  # numbers in memory at a time


def chunks(n_documents, width):
    """Yield slices of documents, so that `width` numbers each fit into memory."""
    step = max(1, CHUNK // width)
    for first in range(0, n_documents, step):
        yield slice(first, first + step)


def first_priors(priors, n_topics, round_):
    """Return the priors of a round, of the first topics alone."""
    alpha, beta = priors(round_)
    return alpha[:n_topics], beta


def unit_rows(rows):
    """Return rows of length 1, or zeros where all numbers are below LEAST_LENGTH; no square overflows or underflows."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    scaled = np.divide(rows, largest, out=np.zeros(rows.shape), where=largest > LEAST_LENGTH)
    return scaled / np.sqrt(np.maximum(total(scaled * scaled, axis=1), 1.0))[:, None]


def nearest(X, question):
    """Return documents' directions in the space of the words' vectors, and how they divide among the centres.

    Directions have length 1, or 0 for documents without a vector; rows of the division sum to 1.
    """
    sums = matmul(X, question.vectors)
    length = np.sqrt(total(sums**2, axis=1, keepdims=True))
    closeness = matmul(X, matmul(question.vectors, question.centres))
    closeness = np.divide(SHARPNESS * closeness, length, out=np.zeros(closeness.shape), where=length > LEAST_LENGTH)
    clusters = exp(closeness - closeness.max(axis=1, keepdims=True))
    return unit_rows(sums), clusters / total(clusters, axis=1, keepdims=True)


class AdaptiveEStep:
    """E-step of the private loop that answers every `Question`; topics are asked of the E-step of the model.

    A table asks for topics, as many as it has columns. Where rows of it are zero, it asks for those of the other words:
    of documents from which the words of these rows are taken out, before anything else is done.

    Parameters
    ----------
    X, units, randomness, n_threads, first_document
        As in `skdplda.rounds.EStep`; X as in `Documents`.
    make : callable
        Returns the model's E-step; takes the same.
    max_length : int or None, default=None
        As in `cut_documents`, for the other questions; the model's E-step cuts documents alike.
    judges : float, default=0.0
        Part of the units that judge topics and are in none; 0 for all units in all sums.
    """

    def __init__(
        self, X, units=None, *, make, randomness, n_threads, first_document=0, max_length=None, judges=0.0
    ):  # fmt: skip
        self._make = partial(make, randomness=randomness, n_threads=n_threads)
        self._topics = self._make(X, units, first_document=first_document)
        self.n_units = self._topics.n_units
        # Some words, or fewer topics, and the E-step of these.
        self._words, self._n_topics, self._of_words = None, None, None
        self._units, self._first, self._n_threads = units, first_document, n_threads
        self._documents = Documents(X, units, max_length=max_length, key=randomness.key, first_document=first_document)
        self._randomness, self._judges = randomness, judges

    @cached_property
    def _judging(self):
        """Flags of the units that judge topics, by draws of the numbers of their first documents."""
        draws = np.random.PCG64(np.random.SeedSequence(self._randomness.key, spawn_key=(0,)))
        draws = draws.advance(self._first).random_raw(self._documents.shape[0])
        if self._units is not None:
            draws = draws[self._units[1][self._units[0][:-1]]]
        return draws < np.uint64(self._judges * 2.0**64)

    def _learning(self):
        """Return flags of the units that are in sums of topics; None for all."""
        return (~self._judging).astype(np.uint8) if self._judges else None

    def collect(self, question, round_, active):
        """Return the sum of the units' contributions to a `Question`, or to a table, which asks for topics."""
        if isinstance(question, np.ndarray):
            words = question.any(axis=1)
            if not words.all() or question.shape[1] < self._make.keywords["n_topics"]:
                return self._sum_some_topics(question[words], words, round_)
            self._words, self._of_words = None, None
            return self._topics.collect(question, round_, self._learning())
        found = 0
        for numbers, X in self._documents.blocks():
            found = found + getattr(self, f"_sum_{question.kind}")(X, numbers, question)
        return found

    def _sum_some_topics(self, table, words, round_):
        """Return the sum of topic-word counts of documents of these words alone, (number of words, n_topics)."""
        if self._words is None or self._n_topics != table.shape[1] or not np.array_equal(words, self._words):
            self._begin(words, table.shape[1])
        return self._of_words.collect(table, round_, self._learning())

    def _begin(self, words, n_topics):
        """Make the E-step of documents of these words alone, for so many topics."""
        some, priors = self._documents.only(words), partial(first_priors, self._make.keywords["priors"], n_topics)
        make = partial(self._make, n_topics=n_topics, priors=priors)
        self._words, self._n_topics = words, n_topics
        self._of_words = make(some, self._units, first_document=self._first)

    def _sum_words(self, X, numbers, question):
        """Return the sum of word counts, each unit's scaled to the L2 norm GRID, rounded down."""
        weights = self._documents.weights(X, numbers, 2).astype(np.int64)
        per_token = np.repeat(weights, np.diff(X.indptr)) * X.data
        found = np.zeros((X.shape[1], 1), np.int64)
        np.add.at(found[:, 0], X.indices, per_token)
        return found

    def _sum_fit(self, X, numbers, question):
        """Return the sum of votes whether words that stand together have vectors that point the same way.

        A document's vote is the sum of the products of its words' vectors in pairs, over that of each with itself, in
        [-1, 1], less DOUBT.
        """
        vectors, X = question.vectors, X.astype(np.float64)
        alone = matmul(X.multiply(X), total(vectors**2, axis=1))
        pairs = total(matmul(X, vectors) ** 2, axis=1) - alone
        ratio = np.divide(pairs, alone, out=np.zeros(len(pairs)), where=alone > 0)
        return self._votes((np.clip(ratio, -1, 1) - DOUBT) / (1 + DOUBT), numbers)

    def _sum_vectors(self, X, numbers, question):
        """Return the sum of outer products of a document's direction and its clusters, (n_dimensions, n_clusters)."""
        X, numbers = self._divided(X, numbers, judges=False)
        found, scale = np.zeros(question.centres.shape), GRID * (1 - MARGIN) / self._documents.sizes(numbers)
        for rows in chunks(X.shape[0], question.centres.size):
            directions, clusters = nearest(X[rows], question)
            products = directions[:, :, None] * unit_rows(clusters)[:, None, :]
            found += np.trunc(products * scale[rows, None, None]).sum(axis=0)  # whole numbers: exact
        return found.astype(np.int64)

    def _sum_clusters(self, X, numbers, question):
        """Return the first topic-word counts, in which all words of a document have its clusters as topics."""
        X, numbers = self._divided(X, numbers, judges=False)
        found = np.zeros(question.table.shape)
        user_scale = None
        if question.word_weights is None:
            user_scale = self._documents.weights(X, numbers, 2).astype(np.float64)
        for rows in chunks(X.shape[0], question.table.shape[1]):
            counts = X[rows].astype(np.float64)
            _, clusters = nearest(counts, question)
            if user_scale is not None:
                scale = user_scale[rows]
            else:
                counts = sp.csr_array(counts * question.word_weights)
                clusters = unit_rows(clusters)
                norm = np.sqrt(total(counts.multiply(counts).tocsr(), axis=1))
                scale = GRID * (1 - MARGIN) / np.maximum(norm, 1e-300)
            document = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
            values = counts.data * scale[document]
            for k in range(found.shape[1]):
                cells = np.trunc(values * clusters[document, k])
                found[:, k] += np.bincount(counts.indices, cells, len(found))
        return found.astype(np.int64)

    def _votes(self, votes, numbers):
        """Return the sum of rows of norm 1 at most, (n_votes, 1): of a unit, the mean, on the grid."""
        scale = GRID * (1 - MARGIN) / self._documents.sizes(numbers)
        votes = votes if votes.ndim == 2 else votes[:, None]
        return np.trunc(votes * scale[:, None]).astype(np.int64).sum(axis=0)[:, None]

    def _sum_votes(self, X, numbers, question):
        """Return the sum of votes: each in [-GRID, GRID], the mean of those of a unit's documents."""
        X, numbers = self._divided(X, numbers, judges=True)
        priors = np.full((1, question.table.shape[1]), JUDGE_PRIOR) if question.priors is None else question.priors
        gains = self._gains(X, question.table, priors[:1])
        return self._votes(np.clip(VOTES_PER_NAT * gains, -1, 1), numbers)

    def _sum_priors(self, X, numbers, question):
        """Return the sum of gains with each prior, (n_priors, 1): of a unit, the mean, of norm GRID at most."""
        X, numbers = self._divided(X, numbers, judges=True)
        gains = self._gains(X, question.table, question.priors) / LARGEST_GAIN
        return self._votes(gains / np.sqrt(np.maximum(total(gains**2, axis=1), 1.0))[:, None], numbers)

    def _divided(self, X, numbers, *, judges):
        """Return the documents, and their numbers, of units that judge topics, or of the others; all without judges."""
        if not self._judges:
            return X, numbers
        asked = self._judging == judges
        rows = np.flatnonzero(asked[numbers if self._documents.unit is None else self._documents.unit[numbers]])
        return X[rows], numbers[rows]

    def _gains(self, X, table, priors):
        """Return nats a held-out token that topics gain over word frequencies, (n_documents, n_priors)."""
        topics, options = np.ascontiguousarray(table.T, np.float64), {"n_threads": self._n_threads}
        topics = topics / total(topics, axis=1, keepdims=True)
        words = total(table, axis=1)[None]
        words = score_samples(X, words / total(words), **options)
        gains = [score_samples(X, topics, doc_topic_prior=prior, **options) - words for prior in priors]
        return np.nan_to_num(np.stack(gains, axis=1), posinf=0.0, neginf=0.0)

    def arrays(self):
        """Return the hidden state."""
        if self._words is None:
            return self._topics.arrays()
        return {"words": self._words, "n_topics": np.array(self._n_topics)} | self._of_words.arrays()

    def restore(self, arrays):
        """Restore the hidden state."""
        arrays = dict(arrays)
        if "words" not in arrays:
            self._topics.restore(arrays)
            return
        words = held(arrays, "words", self._documents.shape[1:], bool)
        n_topics = int(held(arrays, "n_topics", (), int, least=1, most=self._make.keywords["n_topics"]))
        if not words.any():
            raise ValueError("its array 'words' asks for no words")
        self._begin(words, n_topics)
        self._of_words.restore({name: a for name, a in arrays.items() if name not in ("words", "n_topics")})
