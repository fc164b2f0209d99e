"""The E-step of clusters of embeddings: directions in whole numbers, and two kinds of bounded contributions.

Everything that a contribution is made of is an integer, so that sums are exact: their bits do not depend on threads,
blocks or the documents beside. Bounds are proven in doc/theory/embedding.rst.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skdplda._validation import check_groups, unit_of_documents
from skdplda.rounds._sensitivity import GRID, MARGIN, unit_weights

__all__ = ["FINE", "LENGTH", "SIZE", "STEP", "ClusterEStep", "ClusterQuestion", "Embeddings", "grid_directions"]

LEVELS = 2**16  # of a row's numbers, over its largest: squares of up to 2**16 of them add up exactly in 53 bits
FINE = 2**20  # length of a row before the centre is taken away
# Length of a direction. Products of two are sums of integers below 2**24, which single precision adds up exactly in
# any order: a document's cluster does not depend on how a matrix product is divided.
LENGTH = 2**12
# Of a document's squared norm, this share says that it is there, and the rest its direction; not tuned.
SIZE_SHARE = 0.1
SIZE = int(GRID * SIZE_SHARE**0.5 * (1 - MARGIN))  # a document's contribution to the size of its cluster
STEP = int(GRID * (1 - SIZE_SHARE) ** 0.5 / LENGTH)  # and to the sum of directions, per unit of its direction
NOWHERE = -1  # the cluster of a document without a direction
LARGEST = 2**63 - 1
LARGEST_DAMPED = 2**24  # L1 norm of a unit's sum, above which it is divided before it is squared
BLOCK = 2**20  # numbers that a block of rows has, about
MOST_ROWS = 2**15  # of a block: sums of so many directions fit into 32 bits


class Embeddings(NamedTuple):
    """What documents are to the E-step.

    Parameters
    ----------
    vectors : ndarray or csr_array of shape (n_documents, n_dimensions)
        Any numbers.
    counts : csr_array of shape (n_documents, n_words) or None
        As from `check_counts`, shortened.
    """

    vectors: Any
    counts: Any = None

    @property
    def shape(self):
        """Shape of the vectors."""
        return self.vectors.shape


class ClusterQuestion(NamedTuple):
    """What the E-step is asked.

    Parameters
    ----------
    kind : {"directions", "words", "cluster_words"}
        Sizes and sums of directions by cluster; word totals; word counts by cluster.
    centre : ndarray of shape (n_dimensions,), int64, or None, default=None
        Taken away from rows of length FINE. None: nothing.
    centres : ndarray of shape (n_clusters, n_dimensions), float32, or None, default=None
        Whole numbers, rows of length LENGTH at most. None: all documents are in one cluster.
    word_weights : ndarray of shape (n_words,), int64, or None, default=None
        For "cluster_words": positive.
    """

    kind: str
    centre: Any = None
    centres: Any = None
    word_weights: Any = None


def grid_directions(rows, centre=None):
    """Return the directions of rows as whole numbers of length LENGTH at most, (n, n_dimensions), float64.

    A row that has no direction is one of zeros: if a number in it is not finite, if all are 0, or if nothing is left
    without the centre. Each row is made from itself alone, to the last bit: all that is added up is whole numbers.

    Parameters
    ----------
    rows : ndarray of shape (n, n_dimensions)
        Any numbers.
    centre : ndarray of shape (n_dimensions,) or None, default=None
        As in `ClusterQuestion`.
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
    q[(q * q).sum(axis=1) > LENGTH**2] = 0  # exact: the bound holds in any case
    return q


def _of_length(q, length):
    """Return whole-numbered rows at a length, rounded towards zero, in place; zeros stay."""
    squares = (q * q).sum(axis=1)  # exact
    scale = np.where(squares > 0, length * (1 - MARGIN) / np.sqrt(np.maximum(squares, 1)), 0.0)
    return np.trunc(np.multiply(q, scale[:, None], out=q), out=q)


def scaled_to_grid(values, unit, n_units):
    """Return whole numbers whose L2 norm, over all entries of a unit, is GRID at most, and nearly GRID if not 0.

    Contribution bounding: a unit's entries are scaled by one factor, made of them alone, and rounded towards zero.

    Parameters
    ----------
    values : ndarray of shape (n,) or (n, m), int64
        Beyond a sum of absolute values of 2**63 a unit's may wrap around: it then has other numbers, within the bound.
    unit : ndarray of shape (n,)
        Of each entry or row.
    n_units : int
        How many.
    """
    rows = values.reshape(len(values), int(np.prod(values.shape[1:])))  # there may be none
    total = np.zeros(n_units, np.int64)
    np.add.at(total, unit, np.abs(rows).sum(axis=1))
    divisor = (total & LARGEST) // LARGEST_DAMPED + 1
    rows = np.trunc(rows / divisor[unit, None])  # now the squares add up to 2**48 at most, exactly
    scale = GRID * (1 - MARGIN) / np.sqrt(np.maximum(_squared_norms(rows, unit, n_units), 1))
    rows = np.trunc(rows * scale[unit, None])
    rows[~(_squared_norms(rows, unit, n_units) <= GRID**2)[unit]] = 0  # exact: the bound holds in any case
    return rows.astype(np.int64).reshape(values.shape)


def _squared_norms(rows, unit, n_units):
    """Return the sum of the squares of a unit's rows, exact as long as it is below 2**53: (n_units,)."""
    return np.bincount(unit, (rows * rows).sum(axis=1), n_units)


class ClusterEStep:
    """E-step of the private loop for `ClusterQuestion`; it keeps nothing between rounds but what follows from a centre.

    Parameters
    ----------
    X : Embeddings
        The documents.
    units, randomness, n_threads, first_document
        As in `skdplda.rounds.EStep`. Nothing is drawn.
    """

    def __init__(self, X, units=None, *, randomness=None, n_threads=1, first_document=0):
        self._X, n_documents = X, X.shape[0]
        self._units = check_groups(None, n_documents) if units is None else units
        self.n_units = len(self._units[0]) - 1
        self._unit = unit_of_documents(self._units)
        self._directions, self._centre = None, None

    def collect(self, question, round_, active):
        """Return the sum of the units' contributions to a `ClusterQuestion`."""
        return getattr(self, f"_sum_{question.kind}")(question)

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

    def _labels(self, question):
        """Yield (slice, directions, clusters) of documents."""
        for rows, directions in self._blocks(question.centre):
            if question.centres is None:
                labels = np.zeros(len(directions), np.int64)
            else:
                labels = (directions @ question.centres.T).argmax(axis=1)  # exact: the first of equals
            labels[~directions.any(axis=1)] = NOWHERE
            yield rows, directions, labels

    def _sum_directions(self, question):
        """Return sizes and sums of directions by cluster, (n_clusters, 1 + n_dimensions).

        A unit's, over all clusters and of all of its documents, are bounded together.
        """
        n_clusters = 1 if question.centres is None else len(question.centres)
        total = np.zeros((n_clusters, 1 + self._X.shape[1]), np.int64)
        shared = np.diff(self._units[0])[self._unit] > 1  # documents whose unit has others
        cells, sums = [], []  # of those
        for rows, directions, labels in self._labels(question):
            alone = (labels != NOWHERE) & ~shared[rows]
            total[:, 0] += SIZE * np.bincount(labels[alone], minlength=n_clusters)
            members = _members(labels[alone], n_clusters)
            total[:, 1:] += STEP * (members @ directions[alone].astype(np.int32)).astype(np.int64)
            some = (labels != NOWHERE) & shared[rows]
            if some.any():
                cell, place = np.unique(self._unit[rows][some] * n_clusters + labels[some], return_inverse=True)
                found = np.empty((len(cell), 1 + self._X.shape[1]), np.int32)
                found[:, 0] = np.bincount(place)
                found[:, 1:] = _members(place, len(cell)) @ directions[some].astype(np.int32)
                cells.append(cell)
                sums.append(found)
        if cells:
            self._add_shared(total, np.concatenate(cells), np.concatenate(sums), n_clusters)
        return total

    def _add_shared(self, total, cells, sums, n_clusters):
        """Add units of several documents: `sums` has their numbers of documents and directions, by cell and block."""
        order = np.argsort(cells, kind="stable")
        cells, sums = cells[order], sums[order]
        unit = cells // n_clusters
        step = max(1, BLOCK // sums.shape[1])
        ends = np.append(np.flatnonzero(np.diff(unit)) + 1, len(unit))  # no unit is cut
        first = 0
        while first < len(unit):
            last = ends[min(np.searchsorted(ends, first + step), len(ends) - 1)]
            cell, place = np.unique(cells[first:last], return_inverse=True)
            values = np.zeros((len(cell), sums.shape[1]), np.int64)
            np.add.at(values, place, sums[first:last])
            values *= np.append(SIZE, np.full(sums.shape[1] - 1, STEP))
            _, number = np.unique(cell // n_clusters, return_inverse=True)
            np.add.at(total, cell % n_clusters, scaled_to_grid(values, number, number[-1] + 1))
            first = last

    def _sum_words(self, question):
        """Return the sum of word counts, each unit's scaled to the L2 norm GRID, rounded down: (n_words, 1)."""
        counts = self._X.counts
        per_token = np.repeat(unit_weights(counts, self._units, 2).astype(np.int64), np.diff(counts.indptr))
        total = np.zeros((counts.shape[1], 1), np.int64)
        np.add.at(total[:, 0], counts.indices, per_token * counts.data)
        return total

    def _sum_cluster_words(self, question):
        """Return weighted word counts by cluster, (n_clusters, n_words); a unit's are bounded together."""
        counts, n_clusters = self._X.counts, len(question.centres)
        n_words = counts.shape[1]
        labels = np.concatenate([found for _, _, found in self._labels(question)])
        order = self._units[1]  # documents, unit by unit
        total = np.zeros(n_clusters * n_words, np.int64)
        ends = np.concatenate([[0], np.cumsum(np.diff(counts.indptr)[order])])[self._units[0]]
        first = 0
        while first < self.n_units:
            last = max(first + 1, np.searchsorted(ends, ends[first] + BLOCK, side="right") - 1)
            documents = order[self._units[0][first] : self._units[0][last]]
            documents = documents[labels[documents] != NOWHERE]
            part = sp.coo_array(counts[documents])
            of = documents[part.row]
            keys = (self._unit[of] - first) * (n_clusters * n_words) + labels[of] * n_words + part.col
            keys, place = np.unique(keys, return_inverse=True)
            values = np.zeros(len(keys), np.int64)
            np.add.at(values, place, part.data.astype(np.int64) * question.word_weights[part.col])
            unit, cell = np.divmod(keys, n_clusters * n_words)
            np.add.at(total, cell, scaled_to_grid(values, unit, last - first))
            first = last
        return total.reshape(n_clusters, n_words)

    def arrays(self):
        """Return the hidden state: none."""
        return {}

    def restore(self, arrays):
        """Restore the hidden state: none."""


def _members(labels, n_clusters):
    """Return which documents are in which cluster, a csr_array of shape (n_clusters, n_documents) of ones."""
    order = np.argsort(labels, kind="stable").astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_clusters))])
    return sp.csr_array((np.ones(len(labels), np.int32), order, starts), shape=(n_clusters, len(labels)))
