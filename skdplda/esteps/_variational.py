"""The variational E-step of the private loop: a document's result follows from itself, its past and public tables."""

import numpy as np

from skdplda._arithmetic import digamma, exp, mean, total
from skdplda._kernels._variational import e_step, expected_topics
from skdplda.esteps._documents import CutDocuments
from skdplda.exact._inferred import ExpectedPriors
from skdplda.exact._seeds import SeedCounts
from skdplda.rounds._bounds import NORM_BOUND, bounded_by_kernel, word_weights
from skdplda.rounds._checkpoint import checked_array

HALF = 0.5  # added to a count, because exp(digamma(x + 1/2)) is about x, for x above 1/2

# What a token adds to the integer sums where nothing is bounded: a power of two, so that soft counts of 1 / 4096 remain
# and 2**50 tokens still fit.
TOKEN_WEIGHT = 2**12
# The kernel drops topics that have fewer expected tokens in a document. That only saves time: a test bounds the change.
LEAST_COUNTS = 1e-3
# Most iterations for a document that goes on from the last round; frontier_ablation.csv, rows "5 updates a document"
# and "50 updates a document". With more than FEW_TOPICS fewer, over-relaxed, are as good, and worse with ten topics
# (doc/kernels.rst).
REMEMBERED_UPDATES = 16
FEW_TOPICS, FEWER_UPDATES, RELAXATION = 32, 8, 1.4
ROUND_ALPHA = 0.5  # of the prior of topic proportions: in rounds, documents are better divided among fewer topics


def round_priors(priors, round_):
    """Return the priors of a round of tables of large numbers, to which beta is nothing, from those of the model."""
    return ROUND_ALPHA * priors(round_)[0], 0.0


def remembered_updates(n_topics, most):
    """Return most iterations, and any relaxation, of documents that go on from the last round; `most` was asked for."""
    if most is None and n_topics > FEW_TOPICS:
        return {"max_iter": FEWER_UPDATES, "relaxation": RELAXATION}
    return {"max_iter": most or REMEMBERED_UPDATES}


class VariationalEStep:
    """E-step of the private loop: variational inference of each document's topics.

    X and `max_length` are as in `cut_documents`. `priors` returns alpha, of shape (n_topics,), and beta of a round;
    `ExpectedPriors` are inferred: only with `exact` and `remember`, for documents in memory. If `exact`, each token
    counts TOKEN_WEIGHT, without a bound. `max_norm` bounds the L2 norm of a unit's word counts, which is NORM_BOUND in
    fixed point; with None, the soft counts of a unit, of all of its documents together, are scaled to the norm bound,
    if `weighted` after weighting by `word_weights` of the table. A document stops after `max_iter` iterations, or when
    the mean change of its parameters is below `tol`. If `remember`, documents go on from their topics of the last
    round; not on disk. If `collapsed`, topics are inferred by CVB0, where a token does not see itself, in place of
    mean-field inference. Documents of few words need it, and so do tables of large numbers, against which the prior of
    words is nothing. `relaxation` is the factor of each change of a document's topics, as in the kernel's `e_step`.
    """

    def __init__(
        self, X, units=None, *, n_topics, priors, exact, max_norm, max_length, max_iter, tol, randomness, n_threads,
        weighted=False, remember=False, collapsed=False, relaxation=1.0, first_document=0,
    ):  # fmt: skip
        self._shape, self.priors = (X.shape[1], n_topics), priors
        self._max_iter, self._tol, self._relaxation, self._exact = max_iter, tol, relaxation, exact
        self._norm = NORM_BOUND if max_norm is None and not exact else 0
        self._least = None if exact or self._norm else max_norm
        self._n_threads, self._weighted, self._collapsed = n_threads, weighted, collapsed
        self._remembers, self._state = remember, None  # memory is taken in the first round: there may be none
        self._documents = CutDocuments(
            X, units, max_length=max_length, key=randomness.key, first_document=first_document
        )
        self.n_units = self._documents.n_units

    def _parts(self, active):
        """Yield (documents, weights, numbers of active ones, units): all that are in memory, or blocks."""
        documents = self._documents
        if self._norm:
            for X, rows, units in documents.by_unit(active):
                yield X, None, rows, units
            return
        if active is not None and documents.unit is not None:
            active = active[documents.unit]
        for numbers, X in documents.blocks(active):
            weight = None if self._least is None else documents.weights(X, numbers, 2, self._least)
            yield X, weight, np.arange(len(numbers)) if active is None else np.flatnonzero(active[numbers]), None

    def collect(self, query, round_, active):
        """Infer the active units' topics from the table and return the sum of their contributions."""
        if isinstance(query, SeedCounts):
            return self._seeds(query)
        table = query.table
        counts = np.zeros(self._shape, np.int64)
        infers = isinstance(self.priors, ExpectedPriors)
        if self._remembers and self._state is None:
            self._state = np.full((self._documents.shape[0], self._shape[1]), -1.0, np.float32)
        if infers:
            self.priors.fit_words(table, round_)
            self._state[:] = -1  # documents start anew
        alpha, beta = self.priors(round_)
        if infers and self.priors.shape is not None:  # the kernel has one number for all words
            table, beta = table + np.float32(beta) * self.priors.shape.astype(np.float32)[:, None], 0.0
        mass = total(table, axis=0) + len(table) * beta
        scale = exp(-digamma(mass)) * mean(mass)
        more = HALF if self._collapsed else 0.0  # CVB0 has counts themselves
        expected = expected_topics(np.ascontiguousarray(table, np.float32), scale, beta + more, self._n_threads)
        word_weight = word_weights(table) if self._weighted else None
        for X, weight, documents, units in self._parts(active):
            e_step(
                X.indptr, X.indices, X.data, documents, expected, alpha.astype(np.float32), weight, TOKEN_WEIGHT,
                self._norm, self._max_iter, self._tol, LEAST_COUNTS, counts, self._n_threads,
                word_weight=word_weight, state=self._state, collapsed=self._collapsed, relaxation=self._relaxation,
                units=units,
            )  # fmt: skip
        if infers:
            self.priors.update(round_, self._state, counts / TOKEN_WEIGHT)
        return counts if self._exact else bounded_by_kernel(counts, 2, self.n_units)

    def _seeds(self, query):
        """Return the counts of documents as topics: only without noise."""
        counts, unit = np.zeros(self._shape, np.int32), self._documents.unit
        for numbers, X in self._documents.blocks(None):
            counts += query.total(X, numbers if unit is None else unit[numbers])
        return counts

    def arrays(self):
        """Return the hidden state."""
        state = {} if self._state is None else {"state": self._state}
        return state | (self.priors.arrays() if isinstance(self.priors, ExpectedPriors) else {})

    def restore(self, arrays):
        """Restore the hidden state."""
        shape = self._documents.shape[0], self._shape[1]
        known = self._remembers and "state" in arrays  # there is none before the first round of topics
        self._state = checked_array(arrays, "state", shape, np.float32) if known else None
        if isinstance(self.priors, ExpectedPriors):
            self.priors.restore(arrays)
