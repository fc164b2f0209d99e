"""Delayed-count Gibbs sweeps with released draws: a public table, one draw a token, true counts plus noise, repeat.

The table stays as it is for a sweep, as in AD-LDA (Newman, Asuncion, Smyth and Welling, 2009, JMLR 10).
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from tqdm import tqdm

from skdplda._arithmetic import exp, expm1, log, total
from skdplda._arithmetic import mean as average
from skdplda._kernels._released import count_topics, order_tokens, released_sweep
from skdplda._validation import tokens_of
from skdplda.privacy import Spending, observe
from skdplda.rounds._bounds import some_tokens
from skdplda.rounds._prices import FORGET
from skdplda.rounds._tables import signal_to_noise

LARGEST = 2**30 - 1  # of a table's integers
# Smoothing of preferences towards the word frequencies, in standard deviations of the noise. No ablation table has it:
# below the noise, a count tells nothing.
SMOOTHING = 0.5


@dataclass(frozen=True, eq=False)
class TopicTrace:
    """Everything that a fit of `HDPLDA` released, or of a published form.

    Parameters
    ----------
    topics : ndarray of shape (n_sweeps, n_tokens), uint16
        The topic drawn for each token in each sweep. The tokens of a document stand together, in an order that is
        secret and random, but the same in all sweeps; of published forms, in the order of the words.
    tables : ndarray of shape (n_sweeps + 1, n_components, n_words), float32
        Topic-word tables: `topics[t]` was drawn when `tables[t]` was public; `tables[t + 1]` holds the counts of
        `topics[t]` plus noise. The first is public and random; of published forms, noisy counts of random topics.
    document_starts : ndarray of shape (n_documents + 1,), int64
        Document d has the tokens from `document_starts[d]` to `document_starts[d + 1] - 1`. Public: the guarantee is
        for words replaced in their places.
    """

    topics: np.ndarray
    tables: np.ndarray
    document_starts: np.ndarray


def trace_of(topics, tables, document_starts):
    """Return the trace of a list of topics and one of (n_words, n_topics) tables."""
    return TopicTrace(np.stack(topics), np.stack([table.T for table in tables]).astype(np.float32), document_starts)


class DelayedCountSweeps:
    """The sampler. Only `topics`, `table` and values computed from them may be released; `words` are the data.

    The tokens stand in an order that reveals nothing: see `order_tokens`. The plan has the noise and the range of the
    draws. Counts are cut to [0, count_clip], and the range makes the prior of the weights: count_clip / (C / beta).
    None cuts the log-preferences of words for topics instead, around their mean. The result does not depend on
    `n_threads`.
    """

    def __init__(self, document_starts, words, n_words, plan, alpha, count_clip, randomness, n_threads):
        self.document_starts, self.words, self._alpha = document_starts, words, alpha
        self._plan, self._spending, self._clip, self._n_threads = plan, Spending(plan), count_clip, n_threads
        self._randomness, self._key = randomness, randomness.draw_key()
        odds = exp(min(plan.eta / 2, 700.0))  # of the largest weight to the least: the range is at most eta
        self._least = max(1, math.floor(LARGEST / odds))
        self._most = max(self._least, math.floor(min(LARGEST, self._least * odds * (1 - 2.0**-50))))
        self._shape = n_words, len(alpha)
        self._counts = np.zeros(self._shape, np.int64)
        self._frequency, self._n = np.zeros(n_words), 0
        self.topics = np.zeros(len(words), np.uint16)
        self.table = np.random.default_rng(randomness.table_key).random(self._shape)
        if count_clip is not None and count_clip < math.inf:
            self.table *= count_clip
        self._sum, self._weight = np.zeros(self._shape), 0.0

    @classmethod
    def of_counts(cls, X, *arguments):
        """Return the sampler of a count matrix: the tokens of a document in secret random order.

        Counts do not say where a word stands. In the order of words, a replaced word would move those between; in a
        random order, the same for both data sets, it is replaced in its place.
        """
        starts, words = tokens_of(X)
        sampler = cls(starts, words, X.shape[1], *arguments)
        order_tokens(starts, words, sampler._key)
        return sampler

    def sweep(self):
        """Draw all topics from the table, and make the next table."""
        weights, rate = self._weights()
        self._n += 1
        self._draw(weights, self._alpha, rate, self._most, self._n)
        self.table = self._counts
        if not self._plan.noiseless:
            scale = self._spending.take()
            key = self._randomness.noise(self._n, self._plan.mechanism, scale, self._counts)
            noise = self._plan.draw(scale, self._shape, key, self._n_threads)
            self.table = self._counts + noise
            observe("sweep", weights=weights, rate=rate, alpha=self._alpha, topics=self.topics, noisy=self.table)
        self._sum = (1 - FORGET) * self._sum + self.table
        self._weight = (1 - FORGET) * self._weight + 1
        self._frequency += self.table.sum(axis=1)

    def _draw(self, weights, alpha, rate, most, number):
        """Draw all topics, and count them."""
        tokens = self.document_starts, self.words, self.topics
        released_sweep(*tokens, weights, alpha, rate, most, self._key, number, self._n_threads)
        count_topics(self.words, self.topics, self._counts)

    def run(self, trace, verbose=0):
        """Do all sweeps; return the counts of the model, the trace if asked, and signal and noise."""
        tables, topics = [self.table], []
        for _ in tqdm(range(self._plan.n_sweeps), disable=not verbose):
            self.sweep()
            if trace:
                topics.append(self.topics.copy())
                tables.append(self.table.copy())
        trace = trace_of(topics, tables, self.document_starts) if trace else None
        return self.pseudo_counts(), trace, self.signal_to_noise()

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), a mean of the tables, recent ones first."""
        return np.maximum(self._sum, 0) / self._weight

    def signal_to_noise(self):
        """Return the numbers of cells and topics, as `rounds._tables.signal_to_noise` does; None without noise.

        Noise is what a cell would hold if topics said nothing: that of the tables, and that of n draws of one topic,
        binomial, where the word has n tokens. Both are new in each sweep, so that the mean of tables has less.
        """
        if not self._plan.private:
            return None
        mean = self._sum / self._weight
        tokens, masses = np.maximum(total(mean, axis=1), 0), np.maximum(total(mean, axis=0), 0)
        share = masses / max(total(masses), 1e-300)
        kept = np.cumprod(np.append(1.0, np.full(self._n - 1, (1 - FORGET) * (1 - FORGET))))
        variance = self._plan.deviation * self._plan.deviation + tokens[:, None] * (share * (1 - share))
        return signal_to_noise(mean, np.sqrt(variance * total(kept)) / self._weight)

    def _weights(self):
        """Return the integer table of the draws and each topic's factor, from public values alone."""
        if self._clip is None and self._n:
            part, rate = self._preferences(), np.ones(self._shape[1])
        else:
            # Without a bound, the largest count of the table takes its place.
            clip = max(1.0, float(self.table.max(initial=0))) if self._clip == math.inf else self._clip or 1.0
            part, rate = np.clip(self.table, 0, clip) / clip, None
        weights = np.floor(part * (self._most - self._least)).astype(np.uint32) + np.uint32(self._least)
        if rate is None:
            rate = 1 / total(weights, axis=0)
        return weights, rate

    def _preferences(self):
        """Return how much of the weights' range each word and topic gets, in [0, 1].

        The log of p(word | topic), less the word's mean over topics, is cut to a window of half the range: all of it
        tells topics apart, and none of it how frequent the word is.
        """
        frequency = np.maximum(self._frequency, 1e-9)
        smoothing = SMOOTHING * max(self._plan.deviation, 1.0) * frequency / average(frequency)
        smooth = log(np.maximum(self.table, 0) + smoothing[:, None])
        smooth -= log(total(exp(smooth), axis=0))
        smooth -= average(smooth, axis=1, keepdims=True)
        half = log(self._most / self._least) / 2
        if half == 0:
            return np.zeros(self._shape)
        return np.minimum(expm1(np.clip(smooth, -half, half) + half) / expm1(2 * half), 1.0)


class PartOfTokens:
    """On a worker: the tokens of one part and their topics. The streams have the documents' numbers."""

    def __init__(self, X, *, units, first_document, n_threads, key, n_topics):
        self._starts, self._words = tokens_of(some_tokens(X, key, first_document))
        order_tokens(self._starts, self._words, key, first_document)
        self._key, self._first, self._n_threads = key, first_document, n_threads
        self._topics = np.zeros(len(self._words), np.uint16)
        self._counts = np.zeros((X.shape[1], n_topics), np.int64)

    def draw(self, weights, alpha, rate, most, number):
        """Draw all topics, and return their counts."""
        tokens = self._starts, self._words, self._topics
        public = [np.array(array) for array in (weights, alpha, rate)]
        released_sweep(*tokens, *public, most, self._key, number, self._n_threads, self._first)
        count_topics(self._words, self._topics, self._counts)
        return self._counts


class ShardedSweeps(DelayedCountSweeps):
    """The sampler of documents on workers, as from `load_documents`: the topics stay there.

    The key of the draws travels to the workers, and nothing else of the randomness.
    """

    def __init__(self, documents, plan, alpha, count_clip, randomness, n_threads):
        nothing = np.zeros(1, np.int64), np.zeros(0, np.int32)
        super().__init__(*nothing, documents.shape[1], plan, alpha, count_clip, randomness, n_threads)
        self._pool = documents.pool
        self._pool.build(partial(PartOfTokens, key=self._key, n_topics=len(alpha)), documents.arguments())

    def _draw(self, *public):
        self._counts = self._pool.total("draw", public)
