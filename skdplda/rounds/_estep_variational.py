"""The variational E-step of the private loop: a document's result follows from itself, its past and public tables."""

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma

from skdplda._kernels._variational import e_step, expected_topics
from skdplda._validation import unit_of_documents
from skdplda.rounds._inferred import ExpectedPriors
from skdplda.rounds._sensitivity import GRID, shortened, unit_weights, word_weights

__all__ = ["HALF", "TOKEN_WEIGHT", "VariationalEStep", "cut_documents"]

HALF = 0.5  # added to a count, because exp(digamma(x + 1/2)) is about x, for x above 1/2

# What a token adds to the integer sums where nothing is bounded: a power of two, so that soft counts of 1 / 4096 remain
# and 2**50 tokens still fit.
TOKEN_WEIGHT = 2**12
# The kernel drops topics that have fewer expected tokens in a document. That only saves time: a test bounds the change.
LEAST_COUNTS = 1e-3


def cut_documents(X, max_length, key, numbers):
    """Return the documents with at most `max_length` tokens each, drawn without replacement.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_words)
        As from `check_counts`.
    max_length : int or None
        None returns X.
    key : int
        Of the draws, which depend on the document's number as well, and on no other document.
    numbers : ndarray of shape (n_documents,)
        Of the documents.
    """
    if max_length is None:
        return X
    counts = X.data.copy()
    for d in np.flatnonzero(X.sum(axis=1, dtype=np.int64) > max_length):
        entries = slice(X.indptr[d], X.indptr[d + 1])
        last = np.cumsum(X.data[entries], dtype=np.int64)
        tokens = np.random.default_rng([key, int(numbers[d])]).choice(
            last[-1], max_length, replace=False, shuffle=False
        )
        counts[entries] = np.bincount(np.searchsorted(last, tokens, side="right"), minlength=len(last))
    cut = sp.csr_array((counts, X.indices, X.indptr), shape=X.shape)
    cut.indptr, cut.indices = X.indptr, X.indices  # the constructor may narrow them
    return cut


class VariationalEStep:
    """E-step of the private loop: variational inference of each document's topics.

    Parameters
    ----------
    X, units, randomness, n_threads, first_document
        As in `skdplda.rounds.EStep`; X as from `check_counts`, or a `DiskCounts`.
    n_topics : int
        Number of topics.
    priors : callable
        Returns alpha, of shape (n_topics,), and beta of a round. `ExpectedPriors` are inferred: only with `exact` and
        `remember`, for documents in memory.
    exact : bool
        Whether each token counts TOKEN_WEIGHT, without a bound.
    max_norm : float or None
        Bound on the L2 norm of a unit's word counts, which GRID stands for. None: the soft counts of each document are
        scaled to the L2 norm bound, in fixed point; for users their word counts are, which bounds the soft counts.
    max_length : int or None
        As in `cut_documents`.
    max_iter : int
        Most iterations a document.
    tol : float
        A document stops when the mean change of its parameters is below.
    weighted : bool, default=False
        Whether soft counts are weighted by `word_weights` of the table before they are scaled.
    remember : bool, default=False
        Whether documents go on from their topics of the last round; not for documents on disk.
    collapsed : bool, default=False
        Whether topics are inferred by CVB0, where a token does not see itself, in place of mean-field inference.
        Documents of few words need it, and so do tables of large numbers, against which the prior of words is nothing.
    """

    def __init__(
        self, X, units=None, *, n_topics, priors, exact, max_norm, max_length, max_iter, tol, randomness, n_threads,
        weighted=False, remember=False, collapsed=False, first_document=0,
    ):  # fmt: skip
        self._shape, self.priors = (X.shape[1], n_topics), priors
        self._max_iter, self._tol = max_iter, tol
        self._norm = GRID if units is None and max_norm is None and not exact else 0
        self._least = None if exact or self._norm else max_norm or 1.0
        self._max_length, self._key, self._n_threads = max_length, randomness.key, n_threads
        self._source, self._unit, self._weight = X, None, None
        self._weighted, self._collapsed = weighted, collapsed
        self._state = np.full((X.shape[0], n_topics), -1.0, np.float32) if remember else None
        self.n_units = X.shape[0]
        if sp.issparse(X):
            self._source = cut_documents(X, max_length, self._key, first_document + np.arange(X.shape[0]))
            self._weight = self._weights(self._source, units)
            if units is not None:
                self.n_units, self._unit = len(units[0]) - 1, unit_of_documents(units)

    def _weights(self, X, units=None):
        """Return what a token of each document adds; None where the kernel needs no weights."""
        if self._least is None:
            return None
        alone = np.arange(X.shape[0] + 1), np.arange(X.shape[0])
        return unit_weights(X, alone if units is None else units, 2, self._least)

    def _parts(self, active):
        """Yield (documents, weights, numbers of the active ones among them): one block, or those of a file."""
        if sp.issparse(self._source):
            which = np.arange(self._source.shape[0])
            if active is not None:
                which = np.flatnonzero(active if self._unit is None else active[self._unit])
            yield self._source, self._weight, which
            return
        for numbers, block in self._source.blocks(active):
            X = cut_documents(shortened(block), self._max_length, self._key, numbers)
            yield X, self._weights(X), np.arange(len(numbers))

    def collect(self, table, round_, active):
        """Infer the active units' topics from the table and return the sum of their contributions."""
        total = np.zeros(self._shape, np.int64)
        infers = isinstance(self.priors, ExpectedPriors)
        if infers:
            self.priors.fit_words(table, round_)
            self._state[:] = -1  # documents start anew
        alpha, beta = self.priors(round_)
        if infers and self.priors.shape is not None:  # the kernel has one number for all words
            table, beta = table + np.float32(beta) * self.priors.shape.astype(np.float32)[:, None], 0.0
        mass = table.sum(axis=0, dtype=np.float64) + len(table) * beta
        scale = np.exp(-digamma(mass)) * mass.mean()
        more = HALF if self._collapsed else 0.0  # CVB0 has counts themselves
        expected = expected_topics(np.ascontiguousarray(table, np.float32), scale, beta + more, self._n_threads)
        word_weight = word_weights(table) if self._weighted else None
        for X, weight, documents in self._parts(active):
            e_step(
                X.indptr, X.indices, X.data, documents, expected, alpha.astype(np.float32), weight, TOKEN_WEIGHT,
                self._norm, self._max_iter, self._tol, LEAST_COUNTS, total, self._n_threads,
                word_weight=word_weight, state=self._state, collapsed=self._collapsed,
            )  # fmt: skip
        if infers:
            self.priors.update(round_, self._state, total / TOKEN_WEIGHT)
        return total

    def arrays(self):
        """Return the hidden state."""
        state = {} if self._state is None else {"state": self._state}
        return state | (self.priors.arrays() if isinstance(self.priors, ExpectedPriors) else {})

    def restore(self, arrays):
        """Restore the hidden state."""
        self._state = arrays.get("state")
        if isinstance(self.priors, ExpectedPriors):
            self.priors.restore(arrays)
