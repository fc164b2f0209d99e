"""Noise on the word counts of segments in each iteration, as published, drawn without drawing it for every word."""

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import eigen, matmul, normal
from skdplda.esteps._segments import NOTHING, SegmentEStep

NEGLIGIBLE = 1e-12  # eigenvalues of the topics' Gram matrix below this share of the largest carry rounding errors only


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
        shape = (len(self._indptr) - 1, self._shape[0])
        self._order = sp.csc_array(sp.csr_array((entries, self._words, self._indptr), shape=shape)).data

    def collect(self, query, round_, active):
        """Return the noisy sums of all documents."""
        rng = np.random.default_rng(self._randomness.generator_seed(round_))
        log_phi, sigma, by_word = self.log_topics(query.table), self._sigma, self._by_word
        if self._support == "observed":
            noisy = self._counts + sigma * normal(rng, len(self._counts))
            self.infer(log_phi, noisy, NOTHING)
            by_word = sp.csr_array((noisy[self._order], by_word.indices, by_word.indptr), shape=by_word.shape)
            return matmul(by_word, self._responsibilities, self._n_threads)
        noise, along, basis = likelihood_noise(log_phi, len(self._responsibilities), sigma, rng)
        self.infer(log_phi, self._counts, noise)
        found = matmul(by_word, self._responsibilities, self._n_threads)
        return found + sum_noise(self._responsibilities, along, basis, sigma, rng)
