"""Noise on the word counts of segments: once for every word of the vocabulary, or in each iteration as published."""

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import eigen, log, matmul, mean, normal, total
from skdplda._kernels._mixture import word_sums
from skdplda.esteps._segments import NOTHING, SegmentEStep
from skdplda.privacy import mechanism_of
from skdplda.rounds._bounds import GRID
from skdplda.semantics import UnitMatrix

__all__ = ["NoisySegmentEStep", "likelihood_noise", "noisy_segments", "sum_noise"]

NEWTON_STEPS = 12  # double the correct digits each; a test compares the result with the most probable count
BLOCK_CELLS = 2**22  # noisy counts held at a time
NEGLIGIBLE = 1e-12  # eigenvalues of the topics' Gram matrix below this share of the largest carry rounding errors only


# --- once: sound --------------------------------------------------------------------------------------


def noisy_segments(X, sigma, randomness, n_threads):
    """Release every segment's count of every word once, and return what the counts probably were, as a UnitMatrix.

    The noise is integer, on counts in fixed point of resolution 1 / GRID, with standard deviation `sigma` in a count; 0
    returns X. A released block is not kept: each cell becomes the most probable count under a Poisson law whose rate is
    the word's frequency in the releases, and is stored unless that is 0. All of this is post-processing of the noisy
    counts and of their shape.
    """
    n_segments, n_words = X.counts.shape
    if sigma == 0 or n_segments == 0:
        return X
    n_rows = max(1, BLOCK_CELLS // n_words)
    totals, rows, columns, values = np.zeros(n_words), [], [], []
    for block, begin in enumerate(range(0, n_segments, n_rows)):
        exact = X.counts[begin : begin + n_rows]
        exact = exact.astype(np.int64).toarray()
        noise = mechanism_of("gaussian").sampler(
            sigma * GRID, exact.shape, randomness.noise(block, sigma, exact), n_threads
        )
        noisy = (noise + GRID * exact) / GRID
        totals += total(noisy, axis=0)
        done = begin + len(noisy)
        rate = np.maximum(totals, 0.0) + 3 * sigma * np.sqrt(done)  # an upper bound: later blocks lower the rates
        row, column = np.nonzero(_probable(noisy, rate / done, sigma) > 0)
        rows.append(begin + row)
        columns.append(column)
        values.append(noisy[row, column])
    row, column, value = (np.concatenate(parts) for parts in (rows, columns, values))
    count = _probable(value, _rates(totals, n_segments, sigma)[column], sigma)
    kept = count > 0
    counts = sp.coo_array((count[kept], (row[kept], column[kept])), shape=X.counts.shape)
    return UnitMatrix(X.start, counts)


def _rates(totals, n_segments, sigma):
    """Return how often each word occurs in a segment: noisy totals, shrunk to their mean as far as they are noise."""
    centre, variance = mean(totals), n_segments * (sigma * sigma)
    signal = max(mean((totals - centre) ** 2) - variance, 0.0)
    return np.maximum(centre + signal / (signal + variance) * (totals - centre), 1.0) / n_segments


def _probable(noisy, rate, sigma):
    """Return the most probable counts under Poisson rates, from noisy ones.

    n + 1 is more probable than n where gap(n) = n + 1/2 + sigma^2 log((n + 1) / rate) - noisy is negative, and the gap
    grows with n: the count is the first n without. The gap is concave, so Newton's steps stay below its root.
    """
    variance = sigma * sigma
    bar = 0.5 - variance * log(rate)
    count, several = np.zeros(noisy.shape), noisy > bar
    noisy, bar = noisy[several], np.broadcast_to(bar, several.shape)[several]
    n = np.zeros(noisy.shape)
    for _ in range(NEWTON_STEPS):
        n -= (n + variance * log(1 + n) + bar - noisy) / (1 + variance / (1 + n))
    count[several] = np.clip(np.ceil(n - 1e-9), 1, 2.0**31 - 1)
    return count


# --- in each iteration: as published ------------------------------------------------------------------


def likelihood_noise(log_phi, n_segments, sigma, rng):
    """Draw what noise on every word count adds to the segments' log-likelihoods, without drawing the noise itself.

    The noise is E, of shape (n_segments, n_words), with independent N(0, sigma^2) entries. With an orthonormal basis Q
    of the span of the topics, log_phi = Q B, the log-likelihoods get E log_phi = (E Q) B; E Q is normal too.

    `log_phi`, of shape (n_words, n_topics), has the log-probabilities of words. Returned are E log_phi, E Q and Q, of
    shapes (n_segments, n_topics), (n_segments, rank) and (n_words, rank).
    """
    size, axes = eigen(matmul(log_phi.T, log_phi))
    kept = size > NEGLIGIBLE * size[-1]
    size, axes = np.sqrt(size[kept])[:, None], axes[kept]
    along = sigma * normal(rng, (n_segments, len(size)))
    return matmul(along, axes * size), along, matmul(log_phi, (axes / size).T)


def sum_noise(r, along, basis, sigma, rng):
    """Draw what the same noise adds to the M-step's sums, given what it added to the log-likelihoods.

    Given E Q, the rest E (I - Q Q') is still normal and independent of it, and so of the responsibilities.

    `r`, of shape (n_segments, n_topics), has the responsibilities, a function of the counts and of `along`; the rest is
    that of `likelihood_noise`. Returned is E' r, of shape (n_words, n_topics).
    """
    size, axes = eigen(matmul(r.T, r))
    root = axes * np.sqrt(np.maximum(size, 0.0))[:, None]  # root' root = r' r
    rest = sigma * normal(rng, (len(basis), r.shape[1]))
    rest -= matmul(basis, matmul(basis.T, rest))
    return matmul(basis, matmul(along.T, r)) + matmul(rest, root)


class NoisySegmentEStep(SegmentEStep):
    """Algorithm 1 of Shi et al. (2019): fresh normal noise on the segments' word counts in each iteration.

    `sigma` is its standard deviation; `support` says which counts get it: those of all words ("all"), or those that are
    not 0 ("observed"). The other parameters are those of `SegmentEStep`.
    """

    def __init__(self, X, units=None, *, sigma, support, randomness, **settings):
        super().__init__(X, units, **settings)
        self._sigma, self._support, self._randomness = sigma, support, randomness
        entries = np.arange(len(self._words))
        shape = (len(self._indptr) - 1, len(self._sum))
        self._order = sp.csc_array(sp.csr_array((entries, self._words, self._indptr), shape=shape)).data

    def collect(self, query, round_, active):
        """Return the noisy sums of all documents."""
        rng = np.random.default_rng(self._randomness.generator_seed(round_))
        log_phi, sigma = self.log_topics(query.table), self._sigma
        if self._support == "observed":
            noisy = self._counts + sigma * normal(rng, len(self._counts))
            self.infer(log_phi, noisy, NOTHING)
            start, segments, _ = self._by_word
            word_sums(start, segments, noisy[self._order], self._responsibilities, self._sum, self._n_threads)
            return self._sum
        noise, along, basis = likelihood_noise(log_phi, len(self._responsibilities), sigma, rng)
        self.infer(log_phi, self._counts, noise)
        word_sums(*self._by_word, self._responsibilities, self._sum, self._n_threads)
        return self._sum + sum_noise(self._responsibilities, along, basis, sigma, rng)
