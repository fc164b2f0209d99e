"""The Gibbs E-step of the private loop: what stays hidden, and what a unit contributes."""

from functools import partial

import numpy as np

from skdplda._arithmetic import mean, total
from skdplda._kernels._gibbs import TokenBlocks
from skdplda._kernels._variational import e_step, expected_topics
from skdplda._validation import check_groups, unit_of_documents
from skdplda.esteps._documents import CutDocuments
from skdplda.esteps._variational import HALF, REMEMBERED_UPDATES, VariationalEStep, round_priors
from skdplda.exact._expected import ExpectedTopics
from skdplda.exact._inferred import InferredPriors
from skdplda.exact._seeds import SeedCounts
from skdplda.rounds._bounds import NORM_BOUND, bounded_elsewhere, unit_weights, word_weights
from skdplda.rounds._checkpoint import held

# Rounds of topics that `StartedGibbsEStep` infers before it draws, chosen on KOS and Enron's mails (doc/frontier.rst,
# "Why the rules are as they are").
INFERRED_ROUNDS = 16
MEAN_CHANGE = 1e-3  # at which a document stops in such a round
# With more than FEW_TOPICS, updates of a document cost more than draws. There are fewer then, over-relaxed: as good
# with 50 and 200 topics, and worse with 10 (doc/kernels.rst).
FEW_TOPICS, FEWER_UPDATES, RELAXATION = 32, 8, 1.4


class GibbsEStep:
    """E-step of the private loop: local sweeps of delayed-count Gibbs sampling.

    All documents draw from the table of the last round, as the processors of AD-LDA do [1]_.

    Parameters
    ----------
    X, units, randomness, n_threads, first_document
        As in `skdplda.rounds.EStep`; X as from `check_counts`.
    n_topics : int
        Number of topics.
    order : {1, 2, None}
        Norm in which a unit's contribution is bounded by NORM_BOUND. None: each token counts 1, and the sum is the next
        table, so that draws need the self-count correction.
    priors : callable
        Returns alpha, of shape (n_topics,), and beta of a round.
    n_sweeps : int
        Local sweeps a round.
    soft_counts : bool
        Whether documents contribute the expected topic counts of their words, given how many of their tokens have each
        topic, in place of their tokens' topics: weighted by `word_weights` of the table, and those of a unit scaled to
        the L2 norm bound, in fixed point. Only with order 2.
    first_expected : int or None, default=None
        Number of the first round of `ExpectedTopics`, if there is one. Only with order None.

    References
    ----------
    .. [1] D. Newman, A. Asuncion, P. Smyth, M. Welling (2009). Distributed algorithms for topic models. JMLR 10.
    """

    def __init__(
        self, X, units=None, *, n_topics, order, priors, n_sweeps, soft_counts, first_expected=None, randomness,
        n_threads, first_document=0,
    ):  # fmt: skip
        self._documents = CutDocuments(X, units, max_length=None, key=None) if soft_counts else None
        units = check_groups(None, X.shape[0]) if units is None else units
        self.n_units = len(units[0]) - 1
        self._unit, self._order = unit_of_documents(units), order
        self._exact = order is None
        self._weight = None if order is None or soft_counts else unit_weights(X, units, order)
        self._tokens = TokenBlocks(X.indptr, X.indices, X.data, X.shape[1], n_topics, n_threads)
        self._sum = np.zeros((X.shape[1], n_topics), np.int32) if order is None else None  # running counts
        self._X, self._shape = X, (X.shape[1], n_topics)
        self.priors, self._n_sweeps = priors, n_sweeps
        self._first_expected, self._expected = first_expected, ExpectedTopics(X, n_topics, n_threads)
        self._randomness, self._n_threads = randomness, n_threads
        self._first = first_document

    def collect(self, query, round_, active):
        """Sample the active units' topics from the table and return the sum of their contributions."""
        if isinstance(query, SeedCounts):
            return query.total(self._X, self._unit).toarray()
        units, key, n_threads = active, self._randomness.key, self._n_threads
        active = None if active is None else active[self._unit]
        table = query.table
        self_count = 1.0 if self._exact else 0.0
        alpha, beta = self.priors(round_)
        alpha = alpha.astype(np.float32)
        if self._first_expected is not None and round_ >= self._first_expected:
            topics = None if self._tokens is None else self._tokens.topics
            self._tokens = self._sum = None  # they will not be needed again
            return self._expected.collect(table, alpha, beta, topics)
        self._tokens.sweep(
            table, alpha, beta, self_count, self._n_sweeps, key, round_, active, n_threads, first_document=self._first
        )
        if self._exact:
            self._tokens.move(self._sum, n_threads)
            if isinstance(self.priors, InferredPriors):
                self.priors.update(round_, partial(self._tokens.document_topics, n_threads), self._sum)
            return self._sum
        found = np.zeros(self._shape, np.int64)
        if self._documents is not None:
            self._sum_soft_counts(found, table, alpha, beta, units)
        else:
            weight = self._weight if active is None else self._weight * active
            self._tokens.sum_weighted(found, weight, n_threads)
        return bounded_elsewhere(found, self._order, self.n_units)

    def _sum_soft_counts(self, found, table, alpha, beta, active):
        """Add to the sum the words' probabilities of topics, given the documents' topic counts."""
        mass = total(table, axis=0) + len(table) * beta
        table = np.ascontiguousarray(table, np.float32)
        rows = expected_topics(table, mean(mass) / mass, beta + HALF, self._n_threads)
        for X, documents, units in self._documents.by_unit(active):  # one part: all are in memory
            e_step(
                X.indptr, X.indices, X.data, documents, rows, alpha + np.float32(HALF), None, 1, NORM_BOUND, 1, 0.0,
                0.0, found, self._n_threads, word_weight=word_weights(table),
                state=self._tokens.document_topics(self._n_threads), given=True, units=units,
            )  # fmt: skip

    def arrays(self):
        """Return the hidden state."""
        state = self._expected.arrays() or {"topics": self._tokens.topics}
        if isinstance(self.priors, InferredPriors):
            state |= self.priors.arrays()
        return state

    def restore(self, arrays):
        """Restore the hidden state."""
        self._tokens.set_topics(held(arrays, "topics", self._tokens.topics.shape, np.uint16))
        self._expected.restore(arrays)
        if isinstance(self.priors, InferredPriors):
            self.priors.restore(arrays)
        if self._exact:
            counts = np.zeros(self._sum.shape, np.int64)
            self._tokens.sum_weighted(counts, np.ones(len(self._unit), np.int32), self._n_threads)
            self._sum[:] = counts


class StartedGibbsEStep:
    """E-step of the private loop: its first rounds infer topics, as `VariationalEStep`, and later ones draw them.

    Draws settle early: under noise one topic may stay two halves, while two others share a third. Inferred topics stay
    soft until they have come apart. The parameters are those of `GibbsEStep`; the norm is L2.
    """

    def __init__(self, X, units=None, *, n_topics, priors, n_sweeps, soft_counts, **options):
        few = n_topics <= FEW_TOPICS
        self._now = VariationalEStep(
            X, units, n_topics=n_topics, priors=partial(round_priors, priors), exact=False, max_norm=None,
            max_length=None, max_iter=REMEMBERED_UPDATES if few else FEWER_UPDATES,
            relaxation=1.0 if few else RELAXATION, tol=MEAN_CHANGE, weighted=soft_counts, remember=True, collapsed=True,
            **options,
        )  # fmt: skip
        draws = {"n_topics": n_topics, "priors": priors, "n_sweeps": n_sweeps, "soft_counts": soft_counts, "order": 2}
        self._draw = partial(GibbsEStep, X, units, **draws, **options)
        self.n_units, self._n_done = self._now.n_units, 0

    def collect(self, table, round_, active):
        """Return the sum of the active units' contributions."""
        if self._n_done == INFERRED_ROUNDS:
            self._begin_to_draw()
        self._n_done += 1
        return self._now.collect(table, round_, active)

    def arrays(self):
        """Return the hidden state."""
        return {"n_done": np.array(self._n_done)} | self._now.arrays()

    def restore(self, arrays):
        """Restore the hidden state."""
        arrays = dict(arrays)
        self._n_done = int(held(arrays, "n_done", (), int, least=0))
        del arrays["n_done"]
        if self._n_done > INFERRED_ROUNDS:
            self._begin_to_draw()
        self._now.restore(arrays)

    def _begin_to_draw(self):
        self._now = None  # its memory is free for the tokens
        self._now = self._draw()
