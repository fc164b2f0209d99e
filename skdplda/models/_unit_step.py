"""EM over semantic units: the E-step of the private loop, and what word similarity makes of its tables."""

import numpy as np
import scipy.sparse as sp

from skdplda._kernels._mixture import responsibilities, word_sums
from skdplda._validation import check_groups, counts_of, unit_of_documents
from skdplda.metrics import perplexity
from skdplda.models._contributions import unit_weights
from skdplda.models._rounds import GRID
from skdplda.models._rules import SmoothedTables, initial_table
from skdplda.semantics import UnitMatrix

__all__ = [
    "NOTHING",
    "ConsistentTables",
    "LastTable",
    "PublicPerplexity",
    "UnitStep",
    "consistent",
    "equal_contributions",
    "part_of_units",
]

MARGIN = 1e-9  # of a contribution: above what floating point may add to responsibilities and shares that sum to 1
NOTHING = np.empty((0, 0))
EVERYONE = np.empty(0, np.uint8)


def consistent(table, similarity, tau):
    """Return a table whose topics have moved towards words that mean much the same: eq. (11) of Shi et al. (2019).

    With p the distribution of a topic, p + tau p (R p) / (p' R p), normalised; totals of topics stay.

    Parameters
    ----------
    table : ndarray of shape (n_words, n_topics)
        Not negative.
    similarity : csr_array of shape (n_words, n_words) or None
        Called R. None changes nothing.
    tau : float
        At least 0.

    Returns
    -------
    table : ndarray of shape (n_words, n_topics)
        Of the same dtype.
    """
    if similarity is None or tau == 0:
        return table
    near = similarity @ table
    pull = (table * near).sum(axis=0)  # p' R p times the squared total; R p has one total, hence the other one
    pull = np.divide(table.sum(axis=0), pull, out=np.zeros_like(pull), where=pull > 0)
    return table * ((1 + tau * near * pull) / (1 + tau * (pull > 0))).astype(table.dtype)


def equal_contributions(X, privacy_units, order):
    """Return what each word of each semantic unit adds to the sums, over all topics.

    A word that stands c times in a document adds sqrt(c) in all: shares of 1 / sqrt(c) a time. Then the cells (word,
    topic) of a privacy unit have at most the norm of its words' square roots, whatever the topics are; the integer
    weight brings that norm to GRID. Rounding every term towards zero cannot make it larger. (Repeated words would
    take most of the norm, and of the noise, for themselves.)

    Parameters
    ----------
    X : UnitMatrix
        The documents.
    privacy_units : tuple of ndarray
        As from `check_groups`.
    order : {1, 2}
        Of the norm.

    Returns
    -------
    weighted : csr_array of shape (n_units, n_words), float64
        Zero in the units of a privacy unit whose norm exceeds GRID.
    """
    damped, counts = X.to_counts().astype(np.float64), X.counts.tocoo()
    damped.data = np.sqrt(damped.data)
    weight = unit_weights(damped, privacy_units, order)
    document = np.repeat(np.arange(len(X)), np.diff(X.start))[counts.row]
    # Each entry's cell of the document-word matrix, found in the sorted list of them.
    cells = np.repeat(np.arange(len(X)), np.diff(damped.indptr)) * X.shape[1] + damped.indices
    cell = np.searchsorted(cells, document * X.shape[1] + counts.col)
    data = counts.data / damped.data[cell] * (weight[document] * (1 - MARGIN))
    # What was used is what is bounded: the numbers themselves, added up by word of the privacy unit.
    unit = unit_of_documents(privacy_units)
    mass = sp.csr_array((np.bincount(cell, data, len(cells)), damped.indices, damped.indptr), shape=damped.shape)
    shape = len(privacy_units[0]) - 1, len(unit)
    members = sp.csr_array((np.ones(len(unit)), (unit, np.arange(len(unit)))), shape=shape)
    data[((members @ mass) ** order).sum(axis=1)[unit][document] > GRID**order] = 0
    return sp.csr_array((data, X.counts.indices, X.counts.indptr), shape=X.counts.shape)


class UnitStep:
    """E-step of the private loop: each document's responsibilities of topics for its semantic units.

    Parameters
    ----------
    X : UnitMatrix
        The documents.
    privacy_units : tuple of ndarray
        As from `check_groups`.
    n_topics : int
        Number of topics.
    order : {2, None}
        2: a privacy unit's contribution has norm GRID at most, in integers. None: each word counts 1.
    alpha : ndarray of shape (n_topics,)
        Prior of topic proportions.
    beta : float
        Prior of words.
    n_updates : int
        Of a document's topic proportions a round.
    n_threads : int
        The result does not depend on it.
    """

    def __init__(self, X, privacy_units, n_topics, order, alpha, beta, n_updates, n_threads):
        self.n_units = len(privacy_units[0]) - 1
        self._unit = unit_of_documents(privacy_units)
        self._start = X.start
        self._indptr = X.counts.indptr.astype(np.int64)
        self._words = X.counts.indices.astype(np.int32)
        self._counts = X.counts.data.astype(np.float64)
        weighted = X.counts.astype(np.float64)
        if order is not None:
            weighted = equal_contributions(X, privacy_units, order)
        by_word = sp.csc_array(weighted)
        self._by_word = by_word.indptr.astype(np.int64), by_word.indices.astype(np.int32), by_word.data
        self._sum = np.empty((X.shape[1], n_topics), np.float64 if order is None else np.int64)
        self._r = np.empty((X.n_units, n_topics))
        self._theta = np.full((len(X), n_topics), 1 / n_topics)
        self._alpha, self._beta, self._n_updates, self._n_threads = alpha, beta, n_updates, n_threads
        self.log_likelihood = np.empty(len(X))  # of each document under the last table, before the update

    def collect(self, table, round_, active):
        """Share out the active documents' units among topics and return the sum of their contributions."""
        active = EVERYONE if active is None else np.ascontiguousarray(active[self._unit])
        self.divide(self.log_topics(table), self._counts, NOTHING, active)
        word_sums(*self._by_word, self._r, self._sum, self._n_threads)
        return self._sum

    def log_topics(self, table):
        """Return the logarithm of the topics' word probabilities, (n_words, n_topics)."""
        table = np.ascontiguousarray(table, dtype=np.float64) + self._beta
        return np.log(table / table.sum(axis=0))

    def divide(self, log_phi, counts, extra, active=EVERYONE):
        """Compute responsibilities and topic proportions."""
        responsibilities(
            self._start,
            self._indptr,
            self._words,
            counts,
            log_phi,
            extra,
            self._alpha,
            active,
            self._theta,
            self._r,
            self.log_likelihood,
            self._n_updates,
            self._n_threads,
        )

    def arrays(self):
        """Return the hidden state."""
        return {"theta": self._theta}

    def restore(self, arrays):
        """Take the hidden state back."""
        self._theta = np.ascontiguousarray(arrays["theta"])


def part_of_units(X, units, *, first_document, randomness, **options):
    """Return the `UnitStep` of a part of a corpus, which has no draws to name."""
    X = X if isinstance(X, UnitMatrix) else UnitMatrix.from_counts(X)
    return UnitStep(X, check_groups(None, len(X)) if units is None else units, **options)


class LastTable:
    """Each round starts from the last table, and the last one is the model: EM.

    Parameters
    ----------
    shape : tuple of int
        (n_words, n_topics).
    key : int
        Of the first table.
    similarity, tau
        As in `consistent`.
    watch : callable
        Sees each table.
    """

    def __init__(self, shape, key, similarity, tau, watch):
        self.table = initial_table(shape, key)
        self._similarity, self._tau, self._watch = similarity, tau, watch

    def update(self, sums, round_):
        """Take a table of sums, possibly noisy."""
        self.table = consistent(np.maximum(sums, 0.0), self._similarity, self._tau)
        self._watch(self.table)

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        return self.table

    def arrays(self):
        """Return the state."""
        return {"table": self.table}

    def restore(self, arrays):
        """Take the state back."""
        self.table = arrays["table"]


class ConsistentTables(SmoothedTables):
    """`SmoothedTables`, and word similarity after each round.

    Parameters
    ----------
    shape, plan, key
        As in `SmoothedTables`.
    similarity, tau, watch
        As in `LastTable`.
    """

    def __init__(self, shape, plan, key, similarity, tau, watch):
        super().__init__(shape, plan, key)
        self._similarity, self._tau, self._watch = similarity, tau, watch

    def update(self, noisy, round_):
        """Take a released table."""
        super().update(noisy, round_)
        self.table = consistent(self.table, self._similarity, self._tau)
        self._watch(self.table)

    def pseudo_counts(self):
        """Return the model, without the prior: (n_words, n_topics), not negative."""
        return consistent(super().pseudo_counts(), self._similarity, self._tau)


class PublicPerplexity:
    """Follows the perplexity of public documents from table to table.

    Parameters
    ----------
    public : UnitMatrix, array-like or sparse matrix of shape (n_documents, n_words), or None
        The documents; None follows nothing.
    n_words : int
        Of the model.
    alpha, beta
        The priors, as in `UnitStep`.
    n_threads : int
        The result does not depend on it.
    """

    def __init__(self, public, n_words, alpha, beta, n_threads):
        self._X = counts_of(public)
        self._alpha, self._beta, self._n_threads, self.history = alpha, beta, n_threads, []
        if public is None:
            return
        if not hasattr(self._X, "shape"):
            self._X = np.asarray(public)
        if self._X.shape[1:] != (n_words,):
            raise ValueError(f"public must have the {n_words} words of X; got shape {self._X.shape}.")
        try:  # before a budget is charged
            perplexity(self._X, np.full((1, n_words), 1 / n_words))
        except ValueError as error:
            raise ValueError(f"public cannot be followed: {error}") from None

    def __call__(self, table):
        """Take a table of shape (n_words, n_topics)."""
        if self._X is None:
            return
        topics = table.T + self._beta
        topics = topics / topics.sum(axis=1, keepdims=True)
        self.history.append(perplexity(self._X, topics, doc_topic_prior=self._alpha, n_threads=self._n_threads))
