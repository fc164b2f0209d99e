"""The bits of reports that are one, and the topics drawn for them: here, or on workers."""

import math
from functools import partial

import numpy as np

from skdplda._arithmetic import mean, total
from skdplda._kernels._gibbs import TokenBlocks
from skdplda.models._local_estimators import document_lengths

# The most groups of documents of like length, and the least documents of a group. Chosen by hand: more groups follow
# the lengths more closely, from fewer documents each.
GROUPS, GROUP_SIZE = 8, 32
# Tokens and prior of the noise topic: so many that drawn topics do not change its weight.
STEADY = 2.0**24


def presence(X):
    """Return counts as ones, without stored zeros."""
    X = X.copy()
    X.data = np.minimum(X.data, 1)
    X.eliminate_zeros()
    X.indptr = X.indptr.astype(np.int64)
    return X


def like_length(lengths, most, size):
    """Bin documents by length into at most `most` bins of at least `size` documents.

    Returns the bin of each document, uint8, and the mean length of each bin, at least 0.5.
    """
    n = max(1, min(most, len(lengths) // size))
    group = np.empty(len(lengths), np.uint8)
    for number, documents in enumerate(np.array_split(np.argsort(lengths, kind="stable"), n)):
        group[documents] = number
    return group, [max(0.5, mean(lengths[group == number])) for number in range(n)]


def refuse_raw(n_ones, n_bits, channel):
    """Refuse bits that are no reports: with fewer ones than noise alone makes."""
    # Present words only raise the expected number of ones, and by Chernoff's bound fewer than the limit below come with
    # probability at most 1e-9.
    least = channel.one_if_absent * n_bits
    if n_ones < least - 6.5 * math.sqrt(least):
        raise ValueError(
            "X has fewer ones than noise alone makes, so these are no reports of this randomizer"
            f" (bit_epsilon={channel.bit_epsilon:g}), and the guarantee would not hold. Use input='counts' for"
            " raw documents, or the randomizer that the devices had."
        )


class NoiseTopic:
    """The noise of reports as a topic of its own in a Gibbs sampler; see "Sampler" in doc/theory/local.rst.

    Given theta and phi, the bit of a word is 1 with probability q + (p - q) * length * theta . phi_w. So a 1 is noise
    with weight q, and a word of topic k with weight (p - q) * length * theta_k * phi_kw. The length has a gamma prior
    and is summed out with theta, which makes the weight of a topic s (n_dk + alpha_k) phi_kw, where s = (p - q) / (p -
    q + sum(alpha) / prior mean of the length). That mean is estimated for each document, and shared by a group of
    documents of like length. Without noise (q = 0) there is no such topic, and one group. `n_topics` does not count the
    noise.
    """

    def __init__(self, channel, n_topics, n_words):
        self._channel, self._n_topics, self._n_words = channel, n_topics, n_words
        self._noisy = channel.one_if_absent > 0
        self.n_columns = n_topics + int(self._noisy)
        self.n_streams = GROUPS if self._noisy else 1

    def group(self, bits, n_documents):
        """Return the group of each document, by the estimated length."""
        group, self._lengths = np.zeros(n_documents, np.uint8), [math.nan]
        if self._noisy:
            lengths = document_lengths(bits.sizes(), self._n_words, self._channel)
            group, self._lengths = like_length(lengths, GROUPS, GROUP_SIZE)
        return group

    def complete(self, table, alpha, beta):
        """Fill the column of the noise; return the kernel's prior, (n_columns,), and totals, (n_groups, n_columns).

        The kernel weighs a topic by (n_dk + prior) (table + beta) / (total + n_words beta). The total of the noise
        makes that q / s.
        """
        p, q, k = self._channel.one_if_present, self._channel.one_if_absent, self._n_topics
        weight = np.full(self.n_columns, STEADY, np.float32)
        weight[:k] = alpha
        if self._noisy:
            table[:, k] = STEADY
        totals = np.tile(total(table, axis=0), (len(self._lengths), 1))
        if self._noisy:
            s = (p - q) / (p - q + total(alpha) / np.array(self._lengths))
            totals[:, k] = (STEADY + beta) * STEADY * s / q - self._n_words * beta
        return weight, totals


class Bits:
    """Bits on this machine, of documents in groups: X has ones and no stored zeros, `n_topics` counts the noise."""

    def __init__(self, X, n_topics, n_threads):
        self._X, self._n_topics, self._n_threads = X, n_topics, n_threads

    def sizes(self):
        """Return how many ones each report has."""
        return np.diff(self._X.indptr)

    def divide(self, group, first=None):
        """Form groups, before the first draw: `group` has the number of each document's group.

        Where the documents are a part of all, `first` has the number of documents before, of each group.
        """
        self._groups, shape = [], (self._X.shape[1], self._n_topics)
        for number in range(int(group.max()) + 1 if first is None else len(first)):
            X = self._X[np.flatnonzero(group == number)]
            rows = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.int32)
            before = 0 if first is None else first[number]
            self._groups.append((TokenBlocks(*rows, *shape, self._n_threads), before))
        self._X, self._counts = None, np.zeros(shape, np.int32)
        return np.zeros(1, np.int64)

    def draw(self, table, alpha, beta, key, number, totals):
        """Draw all topics and return their counts, (n_words, n_topics); group g has stream number + g and totals[g]."""
        for g, (tokens, before) in enumerate(self._groups):
            tokens.sweep(table, alpha, beta, 1.0, 1, key, number + g, None, self._n_threads, totals[g], before)
        for tokens, _ in self._groups:
            tokens.move(self._counts, self._n_threads)
        return self._counts


class PartOfBits(Bits):
    """On a worker: the reports of one part."""

    def __init__(self, X, *, units, first_document, n_threads, n_topics):
        if X.nnz and X.data.max() > 1:
            raise ValueError(f"X must hold presence bits, ones and zeros; got a count of {X.data.max()}.")
        X = presence(X)
        super().__init__(X, n_topics, n_threads)
        self._ones = np.asarray(X.sum(axis=0), dtype=np.int64).ravel()
        self._first = first_document

    def ones(self):
        """Return how many reports have each bit."""
        return self._ones

    def sizes(self, n_documents):
        """Return how many ones each report of all parts has, zero for those of other parts."""
        sizes, here = np.zeros(n_documents, np.int64), super().sizes()
        sizes[self._first : self._first + len(here)] = here
        return sizes


class ShardedBits:
    """`Bits` of reports on workers, from `ShardedDocuments`."""

    def __init__(self, documents, n_topics):
        self.shape, self._pool, self._bounds = documents.shape, documents.pool, documents.first
        self._pool.build(partial(PartOfBits, n_topics=n_topics), documents.arguments())

    def ones(self):
        """Return how many reports have each bit."""
        return self._pool.total("ones", ())

    def sizes(self):
        """Return how many ones each report has."""
        return self._pool.total("sizes", (self.shape[0],))

    def divide(self, group):
        """Form groups, before the first draw."""
        n = int(group.max()) + 1
        first, own = np.zeros(n, np.int64), []
        for a, b in zip(self._bounds[:-1], self._bounds[1:], strict=True):
            own.append((group[a:b], first.tolist()))
            first += np.bincount(group[a:b], minlength=n)
        self._pool.total("divide", (), own)

    def draw(self, *public):
        """Draw all topics and return their counts, (n_words, n_topics)."""
        return self._pool.total("draw", public)
