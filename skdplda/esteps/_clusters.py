"""The E-step of clusters of embeddings: directions in whole numbers, and two kinds of bounded contributions.

Everything that a contribution is made of is an integer, so that sums are exact: their bits do not depend on threads,
blocks or the documents beside. Bounds are proven in doc/theory/embedding.rst.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import exp
from skdplda._rows import rows_of
from skdplda._validation import check_groups, unit_of_documents
from skdplda.rounds._bounds import MARGIN, NORM_BOUND, Contributions, bounded_by_kernel, unit_weights, weighted_words
from skdplda.rounds._queries import BLEND, JUDGE_PRIOR, Query, WordTotals, judged

LEVELS = 2**16  # of a row's numbers, over its largest: squares of up to 2**16 of them add up exactly in 53 bits
FINE = 2**20  # length of a row before the centre is taken away
# Length of a direction. Products of two are sums of integers below 2**24, which single precision adds up exactly in
# any order: a document's cluster does not depend on how a matrix product is divided.
LENGTH = 2**12
# Of a document's squared norm, this share says that it is there, and the rest its direction; not tuned.
SIZE_SHARE = 0.1
SIZE = int(NORM_BOUND * math.sqrt(SIZE_SHARE) * (1 - MARGIN))  # a document's contribution to the size of its cluster
STEP = int(NORM_BOUND * math.sqrt(1 - SIZE_SHARE) / LENGTH)  # and to the sum of directions, per unit of its direction
# Of soft assignment: length of a document's weights and of its direction, and a contribution per unit of both.
WEIGHTS, SOFT_LENGTH = 2**7, 2**9
SOFT_STEP = int(NORM_BOUND * math.sqrt(1 - SIZE_SHARE) / (WEIGHTS * SOFT_LENGTH))
SINGLE_MARGIN = 1e-6  # as MARGIN, of single precision
APART, FINEST = (
    2**12,
    2**10,
)  # steps of products of directions, and the largest weight before it is scaled
NOWHERE = -1  # the cluster of a document without a direction
BLOCK = 2**20  # numbers that a block of rows has, about
MOST_ROWS = 2**15  # of a block: sums of so many directions fit into 32 bits
EXACT_ROWS = 2**8  # whose weighted directions single precision adds up exactly


class Embeddings(NamedTuple):
    """What documents are to the E-step: vectors, (n_documents, n_dimensions), any numbers; and word counts, or None."""

    vectors: Any
    counts: Any = None

    @property
    def shape(self):
        """Shape of the vectors."""
        return self.vectors.shape


@dataclass(frozen=True, eq=False)
class DirectionSums(Query):
    """Sizes and sums of directions by cluster, (n_clusters, 1 + n_dimensions).

    A unit's, over all clusters and of all of its documents, are bounded together.
    """

    n_dimensions: int
    centre: Any = None  # int64, (n_dimensions,): taken away from rows of length FINE
    # Whole numbers in float32, (n_clusters, n_dimensions), rows of length LENGTH at most. None: one cluster.
    centres: Any = None
    # A direction is divided among clusters in proportion to exp(sharpness x cosine). None: it goes to the nearest one.
    sharpness: float | None = None
    kind = "directions"
    lemma = "embedding, Lemma 2"

    @property
    def shape(self):
        """Shape of the sum."""
        return (1 if self.centres is None else len(self.centres)), 1 + self.n_dimensions

    @property
    def step(self):
        """What a direction of length 1 contributes to the sum of directions, on the grid."""
        return STEP * LENGTH if self.sharpness is None else SOFT_STEP * WEIGHTS * SOFT_LENGTH


@dataclass(frozen=True, eq=False)
class EmbeddedWords(WordTotals):
    """The words of documents that have embeddings, (n_words, 1)."""

    lemma = "embedding, Lemma 3"


@dataclass(frozen=True, eq=False)
class ClusterWords(Query):
    """Weighted word counts by cluster, (n_clusters, n_words); a unit's are bounded together."""

    centre: Any  # as in `DirectionSums`
    centres: Any
    word_weights: Any  # positive int64, (n_words,) or (n_clusters, n_words)
    kind = "cluster_words"
    lemma = "embedding, Lemma 4"

    @property
    def shape(self):
        """Shape of the sum."""
        return len(self.centres), self.word_weights.shape[-1]


@dataclass(frozen=True, eq=False)
class ClusterVotes(Query):
    """Votes of documents whether the words of clusters explain theirs better than word frequencies do, (1, 1)."""

    centre: Any  # as in `ClusterWords`, whose answer the table is made of
    centres: Any
    word_weights: Any
    table: Any  # word counts, (n_words, n_clusters), in norms of a contribution
    left: Any  # what of a contribution to a cell is left in the table, of its shape
    kind = "cluster_votes"
    lemma = "embedding, Lemma 5"
    shape = (1, 1)


def grid_directions(rows, centre=None):
    """Return the directions of rows as whole numbers of length LENGTH at most, (n, n_dimensions), float64.

    A row that has no direction is one of zeros: if a number in it is not finite, if all are 0, or if nothing is left
    without the `centre`, as in `DirectionSums`. Each row is made from itself alone, to the last bit: all that is added
    up is whole numbers.
    """
    with np.errstate(all="ignore"):  # wider numbers may become infinite
        rows = np.asarray(rows).astype(np.float64)
    largest = np.abs(rows).max(axis=1)
    sound = np.isfinite(largest) & (largest > 0)  # a NaN is its row's largest
    scaled = np.divide(rows, largest[:, None], out=np.zeros(rows.shape), where=sound[:, None])
    q = np.trunc(np.multiply(scaled, LEVELS, out=scaled), out=scaled)
    if centre is not None:
        q = _of_length(q, FINE) - centre
        q[~sound] = 0
    q = _of_length(q, LENGTH)
    q[_squares(q) > LENGTH**2] = 0  # exact: the bound holds in any case
    return q


def _squares(rows):
    """Return the sum of squares of each row of whole numbers, exact below 2**53."""
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64, casting="same_kind")


def _of_length(q, length):
    """Return whole-numbered rows at a length, rounded towards zero, in place; zeros stay."""
    squares = _squares(q)
    scale = np.where(squares > 0, length * (1 - MARGIN) / np.sqrt(np.maximum(squares, 1)), 0.0)
    return np.trunc(np.multiply(q, scale[:, None], out=q), out=q)


class ClusterEStep:
    """E-step of the private loop for its queries; it keeps nothing between rounds but what follows from a centre.

    X are `Embeddings`; the others are as in `skdplda.rounds.EStep`. Nothing is drawn.
    """

    def __init__(self, X, units=None, *, randomness=None, n_threads=1, first_document=0):
        self._X, n_documents = X, X.shape[0]
        self._units = check_groups(None, n_documents) if units is None else units
        self.n_units = len(self._units[0]) - 1
        self._unit, self._n_threads = unit_of_documents(self._units), n_threads
        self._directions, self._centre = None, None

    def collect(self, query, round_, active):
        """Return the sum of the units' contributions, by the method of the query's kind."""
        return getattr(self, f"sum_{query.kind}")(query)

    def _blocks(self, centre):
        """Yield (slice, directions) of documents, as whole numbers in single precision."""
        n, step = self._X.shape[0], max(1, min(BLOCK // self._X.shape[1], MOST_ROWS))
        kept = centre is not None
        if kept and (self._directions is None or not np.array_equal(centre, self._centre)):
            self._directions, self._centre = np.empty(self._X.shape, np.int16), centre
            for first in range(0, n, step):
                rows = slice(first, first + step)
                self._directions[rows] = grid_directions(self._rows(rows), centre)
        for first in range(0, n, step):
            rows = slice(first, first + step)
            found = self._directions[rows] if kept else grid_directions(self._rows(rows))
            yield rows, found.astype(np.float32)

    def _rows(self, rows):
        vectors = self._X.vectors[rows]
        return vectors.toarray() if sp.issparse(vectors) else vectors

    def _products(self, query):
        """Yield (slice, directions, products with the clusters) of documents, exact; None for one cluster."""
        for rows, directions in self._blocks(query.centre):
            yield rows, directions, None if query.centres is None else directions @ query.centres.T

    def _labels(self, query):
        """Return the cluster of each document."""
        labels = np.empty(self._X.shape[0], np.int64)
        for rows, directions, products in self._products(query):
            labels[rows] = nearest_cluster(directions, products)
        return labels

    def sum_directions(self, query):
        """Return sizes and sums of directions by cluster, (n_clusters, 1 + n_dimensions).

        A unit's, over all clusters and of all of its documents, are bounded together.
        """
        n_clusters = 1 if query.centres is None else len(query.centres)
        total = np.zeros((n_clusters, 1 + self._X.shape[1]), np.int64)
        shared = np.diff(self._units[0])[self._unit] > 1  # documents whose unit has others
        table = None if query.sharpness is None else weight_table(query.sharpness)
        labels, of_shared = np.empty(len(shared), np.int64), []
        for rows, directions, products in self._products(query):
            labels[rows] = nearest_cluster(directions, products)
            known, alone = labels[rows] != NOWHERE, ~shared[rows]
            total[:, 0] += SIZE * np.bincount(labels[rows][known & alone], minlength=n_clusters)
            if table is None:
                members = _members(labels[rows], known & alone, n_clusters)
                total[:, 1:] += STEP * (members @ directions.astype(np.int32)).astype(np.int64)
                of_shared.append(_members(labels[rows], known & ~alone, n_clusters).T.tocsr()[~alone])
            else:
                weights = soft_weights(products, table)
                weights[~known] = 0
                of_shared.append(sp.csr_array(weights[~alone].astype(np.int16)))
                weights[~alone] = 0
                total[:, 1:] += SOFT_STEP * _weighted_sums(weights, soft_directions(directions))
        if shared.any():
            sums = Contributions(total.shape)
            self._add_shared(sums, query, np.flatnonzero(shared), labels, sp.vstack(of_shared, format="csr"))
            total += sums.bounded().total
        return bounded_by_kernel(total, 2, self.n_units)

    def _add_shared(self, sums, query, documents, labels, weights):
        """Add units of several documents, which have the rows of `weights`, (n_documents, n_clusters)."""
        n_clusters, n_dimensions = weights.shape[1], self._X.shape[1]
        order = np.argsort(self._unit[documents], kind="stable")  # documents, unit by unit
        documents, weights = documents[order], weights[order]
        names, unit = np.unique(self._unit[documents], return_inverse=True)
        n_together = min(len(names), max(1, 8 * BLOCK // (n_clusters * (1 + n_dimensions))))  # units; none is cut
        for begin in range(0, len(names), n_together):
            rows = slice(*np.searchsorted(unit, (begin, begin + n_together)))
            cell, found = self._unit_sums(query, documents[rows], unit[rows] - begin, labels, weights[rows])
            sums.add_scaled(found, cell % n_clusters, begin + cell // n_clusters, len(names))

    def _unit_sums(self, query, documents, unit, labels, weights):
        """Return (unit * n_clusters + cluster, sums before they are scaled) of units' occupied clusters."""
        n_clusters, (n_weights,) = weights.shape[1], weights.data.shape
        known = labels[documents] != NOWHERE
        keys = np.append(
            np.repeat(unit * n_clusters, np.diff(weights.indptr)) + weights.indices,
            (unit * n_clusters + labels[documents])[known],
        )
        cells, place = np.unique(keys, return_inverse=True)
        sums = np.zeros((len(cells), 1 + self._X.shape[1]), np.int64)
        np.add.at(sums[:, 0], place[n_weights:], SIZE)
        step = STEP if query.sharpness is None else SOFT_STEP
        for first in range(0, len(documents), MOST_ROWS):  # of a user with many documents
            rows = slice(first, first + MOST_ROWS)
            part = weights[rows].tocoo()
            inner = slice(weights.indptr[first], weights.indptr[first] + part.nnz)
            to_cells = sp.csr_array(
                (part.data.astype(np.int64), (place[inner], part.row)), (len(cells), weights[rows].shape[0])
            )
            directions = self._directions_of(documents[rows], query)
            sums[:, 1:] += step * (to_cells @ directions.astype(np.int64))
        return cells, sums

    def _directions_of(self, documents, query):
        """Return the directions of some documents, in whole numbers, as long as the query takes them."""
        if query.centre is None:
            return grid_directions(self._rows(documents))
        found = self._directions[documents]
        return found if query.sharpness is None else soft_directions(found)

    def sum_words(self, query):
        """Return the sum of word counts, each unit's scaled to the norm bound, rounded down: (n_words, 1)."""
        total = weighted_words(self._X.counts, unit_weights(self._X.counts, self._units, 2))
        return bounded_by_kernel(total[:, None], 2, self.n_units)

    def sum_cluster_words(self, query):
        """Return weighted word counts by cluster, (n_clusters, n_words); a unit's are bounded together."""
        counts, n_words = self._X.counts, self._X.counts.shape[1]
        labels, sums = self._labels(query), Contributions(query.shape)
        weights = np.broadcast_to(query.word_weights, query.shape)
        order = self._units[1]  # documents, unit by unit
        ends = np.concatenate([[0], np.cumsum(np.diff(counts.indptr)[order])])[self._units[0]]
        first = 0
        while first < self.n_units:
            last = max(first + 1, np.searchsorted(ends, ends[first] + BLOCK, side="right") - 1)
            documents = order[self._units[0][first] : self._units[0][last]]
            documents = documents[labels[documents] != NOWHERE]
            part = rows_of(counts, documents)
            of, words = np.repeat(documents, np.diff(part.indptr)), part.indices
            values = part.data.astype(np.int64) * weights[labels[of], words]
            sums.add_scaled(values, labels[of] * n_words + words, self._unit[of], self.n_units)
            first = last
        return sums.bounded()

    @np.errstate(all="ignore")  # a warning would be an output
    def sum_cluster_votes(self, query):
        """Return the votes, each unit's the mean of its documents' votes, (1, 1)."""
        counts, labels, sums = self._X.counts, self._labels(query), Contributions(query.shape)
        weights = np.broadcast_to(query.word_weights, query.table.T.shape).T
        document = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        known = labels[document] != NOWHERE
        weighted = np.where(known, counts.data * weights[counts.indices, labels[document]], 0.0)
        # At least the norm of what the unit had as `sum_cluster_words` scales it: cells that documents share add up.
        squares = np.bincount(self._unit[document], weighted * weighted, self.n_units)
        scale = (1 / np.sqrt(np.maximum(squares, 1e-300)))[self._unit]

        def own(rows):
            part = slice(counts.indptr[rows][0], counts.indptr[min(rows.stop, counts.shape[0])])
            words, of, there = counts.indices[part], document[part], np.flatnonzero(known[part])
            parts = np.zeros((len(words), query.table.shape[1]))
            parts[there, labels[of][there]] = (counts.data[part] * scale[of])[there]
            return parts * query.left[words]

        prior = np.full(query.table.shape[1], JUDGE_PRIOR)
        votes = judged(counts, query.table, own, BLEND, prior, self._n_threads)
        votes[labels == NOWHERE] = 0
        sizes = np.diff(self._units[0])[self._unit]
        sums.add_rows(np.trunc(votes * (NORM_BOUND * (1 - MARGIN) / sizes)[:, None]), sizes)
        return sums.bounded()

    def arrays(self):
        """Return the hidden state: none."""
        return {}

    def restore(self, arrays):
        """Restore the hidden state: none."""


def nearest_cluster(directions, products):
    """Return the cluster of each document: the first of those with the largest product, or NOWHERE."""
    labels = np.zeros(len(directions), np.int64) if products is None else products.argmax(axis=1)
    labels[~directions.any(axis=1)] = NOWHERE
    return labels


def weight_table(sharpness):
    """Return whole-numbered weights, by how far a product is below the largest one, in steps of APART."""
    cosine = np.arange(2 * LENGTH**2 // APART + 1) * (APART / LENGTH**2)
    return np.rint(FINEST * exp(-sharpness * cosine)).astype(np.float32)


def soft_weights(products, table):
    """Return the weights of documents in clusters, whole numbers of length WEIGHTS at most, and nearly so.

    `products`, (n_documents, n_clusters), are those of directions and clusters, both of length LENGTH; `table` is as
    from `weight_table`.
    """
    below = products.max(axis=1, keepdims=True) - products
    below *= np.float32(1 / APART)
    weights = table.take(below.astype(np.uint16))
    scale = WEIGHTS * (1 - SINGLE_MARGIN) / np.sqrt(_squares(weights))  # the nearest cluster has a weight
    weights *= scale.astype(np.float32)[:, None]
    np.trunc(weights, out=weights)
    weights[_squares(weights) > WEIGHTS**2] = 0  # exact: the bound holds in any case
    return weights


def soft_directions(directions):
    """Return whole-numbered directions of length SOFT_LENGTH at most."""
    return np.trunc(directions * np.float32(SOFT_LENGTH / LENGTH))


def _weighted_sums(weights, directions):
    """Return the sums of weighted directions, exact, (n_clusters, n_dimensions)."""
    total = np.zeros((weights.shape[1], directions.shape[1]), np.int64)
    for first in range(0, len(weights), EXACT_ROWS):
        rows = slice(first, first + EXACT_ROWS)
        total += (weights[rows].T @ directions[rows]).astype(np.int64)
    return total


def _members(labels, known, n_clusters):
    """Return which documents are in which cluster, a csr_array of shape (n_clusters, n_documents) of ones."""
    rows = np.flatnonzero(known)
    return sp.csr_array((np.ones(len(rows), np.int32), (labels[rows], rows)), (n_clusters, len(labels)))
