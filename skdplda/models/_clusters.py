"""What fitted and released clusters of embeddings do with texts, and tell of themselves."""

import math
from copy import copy
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.cluster.hierarchy import cut_tree

from skdplda._arithmetic import exp, log, log1p, matmul, normal, total
from skdplda._checks import is_integer
from skdplda._types import ArrayLike, Sequence
from skdplda._validation import (
    MOST_DIMENSIONS,
    check_counts,
    check_embeddings,
    check_is_fitted,
    check_sample_weight,
    fitted_parameter,
)
from skdplda.esteps._clusters import FINE, LENGTH, grid_directions
from skdplda.models._base import BaseTopicModel
from skdplda.models._cluster_names import rms_of
from skdplda.models._topics import NAMING, distinct_triples
from skdplda.semantics import EmbeddedTexts

CLEAR = 3.0  # standard deviations of its noise that a cluster's size must have, where no words say that it is there
ONE_IN_TWENTY = 1.645  # the same, where words are known; noise exceeds as many deviations once in twenty times
PROJECTION_SEED = 0  # of public random projections
BLOCK_ROWS = 4096  # at a time


class BaseClusterModel(BaseTopicModel):
    """Base of clusters of embeddings, fitted or released; methods take embeddings where other models take counts.

    It has `cluster_centers_`, `centre_`, `cluster_sizes_`, `size_deviation_` and `concentration_` when it is fitted,
    and `topic_word_` if words were counted.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        tags.input_tags.allow_nan = True
        return tags

    @property
    def _n_features_out(self):
        return len(self.cluster_centers_)

    def transform(self, X: Any) -> np.ndarray:
        """Cluster probabilities of texts, by a mixture of von Mises-Fisher distributions of equal concentration.

        Each row depends on its own text and on released values only. Those of a private text are that text's data.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or EmbeddedTexts
            Embeddings.

        Returns
        -------
        doc_topic : ndarray of shape (n_documents, n_components)
            Rows sum to 1. A row without a direction gets the clusters' shares.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If X has another number of dimensions.
        """
        cosines, known = self._cosines(X)
        sizes = log(self._topic_sizes())
        found = np.where(known[:, None], self.concentration_ * cosines + sizes, sizes)
        found = exp(found - found.max(axis=1, keepdims=True))
        return found / total(found, axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The nearest cluster of each text.

        Parameters
        ----------
        X : as in `transform`

        Returns
        -------
        labels : ndarray of shape (n_documents,)
            From 0; -1 for a row without a direction.
        """
        cosines, known = self._cosines(X)
        return np.where(known, cosines.argmax(axis=1), -1)

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:  # type: ignore[override]
        """Mean cosine of texts and the directions of their nearest clusters; larger is better.

        Parameters
        ----------
        X : as in `transform`
        y : ignored
        sample_weight : array-like of shape (n_documents,), default=None
            Weight of each text.

        Returns
        -------
        score : float
            From -1 to 1; 0 if no row has a direction.

        Raises
        ------
        ValueError
            If weights are of another number, negative or not finite, or X has another number of dimensions.
        """
        found = self.score_samples(X)
        weight = np.ones(len(found)) if sample_weight is None else check_sample_weight(sample_weight, len(found))
        weight = np.where(np.isnan(found), 0.0, weight)
        return matmul(np.nan_to_num(found), weight) / total(weight) if weight.any() else 0.0

    def score_samples(self, X: Any) -> np.ndarray:  # type: ignore[override]
        """Cosine of each text and the direction of its nearest cluster.

        Parameters
        ----------
        X : as in `transform`

        Returns
        -------
        score : ndarray of shape (n_documents,)
            From -1 to 1; nan for a row without a direction.
        """
        cosines, known = self._cosines(X)
        return np.where(known, cosines.max(axis=1), np.nan)

    def topic_levels(
        self, numbers: Sequence[int] | None = None, feature_names: ArrayLike | None = None
    ) -> pd.DataFrame:
        """Join clusters to fewer ones on each level, named by the same rule: of released values only.

        The tree of `topic_hierarchy` is cut. A group's words are those of its clusters together: their scores, or where
        words have no vectors their relevance times the cluster's size, add up.

        Parameters
        ----------
        numbers : sequence of int or None, default=None
            How many groups each level above the clusters has at most, coarse levels first. None: two levels, of the
            third root of the number of clusters and its square, rounded up.
        feature_names : array-like of str of shape (n_words,), default=None
            As in `top_words`.

        Returns
        -------
        levels : DataFrame of shape (n_components, n_levels)
            The name of each cluster's group on each level, "level_1", "level_2", ..., coarse first; on the last level
            it is the cluster's own name.

        Raises
        ------
        ValueError
            If numbers do not increase, or are not from 1 to the number of clusters.
        """
        self._check_words()
        n, names = len(self.cluster_centers_), self.get_feature_names_out()
        if numbers is None:
            root = next(r for r in range(1, n + 1) if r * r * r >= n)
            square = next(r for r in range(1, n + 1) if r * r * r >= n * n)
            numbers = sorted({root, square} - {n})
        numbers = list(numbers)
        sound = all(is_integer(number) and 1 <= number <= n for number in numbers)
        if not sound or sorted(set(numbers)) != numbers:
            raise ValueError(f"numbers must be integers from 1 to {n} that increase; got {numbers!r}.")
        scores, tree, words = self._relevance(), self.topic_hierarchy(), self._names_of_words(feature_names)
        scores = np.maximum(scores, 0) if self._scores() is not None else scores * self._topic_sizes()[:, None]
        columns = {}
        for level, number in enumerate(numbers, start=1):
            group = cut_tree(tree, number)[:, 0] if n > 1 else np.zeros(n, int)
            sums = np.stack([total(scores[group == g], axis=0) for g in range(group.max() + 1)])
            rows = words[np.argsort(-sums, axis=1, kind="stable")[:, :NAMING]].tolist()
            found = [", ".join(map(str, row)) for row in distinct_triples(rows)]
            found = [name if found.count(name) == 1 else f"{name} ({g})" for g, name in enumerate(found)]
            columns[f"level_{level}"] = np.array(found, dtype=object)[group]
        columns[f"level_{len(numbers) + 1}"] = names
        return pd.DataFrame(columns, index=pd.RangeIndex(n, name="topic"))

    def predict_levels(
        self, X: Any, numbers: Sequence[int] | None = None, feature_names: ArrayLike | None = None
    ) -> pd.DataFrame:
        """The way of each text through the levels of clusters: that of its nearest cluster.

        Parameters
        ----------
        X : as in `transform`
        numbers, feature_names : as in `topic_levels`
            As in `topic_levels`.

        Returns
        -------
        levels : DataFrame of shape (n_documents, n_levels)
            Names; None for a row without a direction.

        Raises
        ------
        ValueError
            As `topic_levels`, or if X has another number of dimensions.
        """
        levels = self.topic_levels(numbers, feature_names)
        found = levels.astype(object).reindex(self.predict(X)).reset_index(drop=True)
        return found.where(found.notna(), None)

    def topic_info(self, n_words: int = 10, feature_names: ArrayLike | None = None) -> pd.DataFrame:
        """A table of the clusters, as of all topics, with their released sizes and the error of these.

        Parameters
        ----------
        n_words : int, default=10
            Words a cluster.
        feature_names : array-like of str of shape (n_words,), default=None
            As in `top_words`.

        Returns
        -------
        info : DataFrame of shape (n_components, 7)
            As of the other models, where "size" is the cluster's share of the released sizes; and "documents", the
            released size, with "documents_deviation", its `size_deviation_`. Of a fit with `groups` these two are
            called "weight" and "weight_deviation": what a user adds to all clusters is bounded jointly, so that a size
            is a weight of users, to be compared with other clusters', and their sum no number of users. "noise" is
            true of clusters whose size or whose words noise alone would reach in one of twenty cases; of all whose
            words do not tell of documents, as these voted; and, where no words are known, of sizes below three
            standard deviations.
        """
        self._check_words()
        info, name = super().topic_info(n_words, feature_names), self._size_name()
        info["noise"] = info["noise"].fillna(False) | ~self._clear_clusters()
        return info.assign(**{name: self.cluster_sizes_, f"{name}_deviation": self.size_deviation_})

    def _size_name(self):
        """Return what the released sizes are numbers of: "documents", or "weight" of users."""
        return "weight" if self.privacy_guarantee_.unit == "user" else "documents"

    def _topic_sizes(self):
        """Return each cluster's share of the released sizes; one below its noise counts as that noise."""
        check_is_fitted(self)
        sizes = np.maximum(self.cluster_sizes_, np.maximum(self.size_deviation_, 1e-9))
        return sizes / total(sizes)

    def _clear_clusters(self):
        """Return whether each cluster's size stands out of its noise, (n_components,)."""
        return self.cluster_sizes_ > self._clear_deviations() * self.size_deviation_

    def _clear_deviations(self):
        """Return how many deviations of its noise a cluster's size must have.

        Where words are known these are tested, too, and both tests must say that a cluster is there: of clusters that
        are noise in one or both of them, one in twenty passes.
        """
        return CLEAR if self._word_signal() is None else ONE_IN_TWENTY

    def _noise_floor(self):
        """Return the signal-to-noise ratios that clusters of noise exceed once in twenty times, (n_components,).

        Squares of noise in n words add up to chi-square of n degrees of freedom; its quantile is by Wilson and Hilferty
        (1931).
        """
        scores, cells = self._scores(), self._word_signal()
        n = np.full(len(cells), cells.shape[1]) if scores is None else np.count_nonzero(scores >= 0, axis=1)
        spread = 2 / (9 * np.maximum(n, 1))
        quantile = 1 - spread + ONE_IN_TWENTY * np.sqrt(spread)
        return np.sqrt(quantile * quantile * quantile - 1)

    def _vocabulary(self):
        return self.words_

    def _relevance(self, weight=None):
        """Return by how much each word tells of each cluster, (n_components, n_words); `weight` is for other models.

        It is the score of names near centres, or class-based tf-idf.
        """
        self._check_words()
        if self._scores() is not None:
            return self._scores()
        shares = self.topic_word_ * self._topic_sizes()[:, None]
        return self.topic_word_ * log1p(1 / len(shares) / np.maximum(total(shares, axis=0), 1e-300))

    def _scores(self):
        """Return `keyword_scores_`, or None of a fit without vectors of words."""
        return getattr(self, "keyword_scores_", None)

    def _topic_signal(self):
        cells, scores = self._word_signal(), self._scores()
        return super()._topic_signal() if cells is None or scores is None else rms_of(cells, scores >= 0)

    def _clear_words(self):
        cells, scores = self._word_signal(), self._scores()
        if cells is None or scores is None:
            return super()._clear_words()
        asked = scores >= 0  # in these cells, of all clusters, the noise is looked at
        return asked & (cells > math.sqrt(2 * log(max(2, int(np.count_nonzero(asked))))))

    def _check_words(self):
        check_is_fitted(self)
        if not hasattr(self, "topic_word_"):
            raise ValueError("this model was fitted without counts, and knows no words: give fit(X, counts=...).")

    def _held_out(self, X):
        """Return word counts and the clusters' words, for `perplexity`."""
        self._check_words()
        n_words = self.topic_word_.shape[1]
        shape = getattr(X, "shape", ())
        if len(shape) != 2 or shape[1] == n_words:  # else it may be embeddings, of which signs tell nothing
            X = check_counts(copy(self), X, reset=True)
        if X.shape[1] != n_words:
            raise ValueError(
                f"X must have counts of the {n_words} words of {type(self).__name__}; got {X.shape[1]} columns."
            )
        return X, self.topic_word_

    def _embeddings(self, X, *, reset):
        """Return embeddings as a matrix of numbers, in memory or on disk; rows may have any numbers."""
        self._refuse_workers(X)
        return check_embeddings(self, X, reset=reset)

    def _refuse_workers(self, X):
        X = X.vectors if isinstance(X, EmbeddedTexts) else X
        if hasattr(type(X), "__dask_graph__") or hasattr(type(X), "_on_workers"):
            raise TypeError(
                f"{type(self).__name__} takes these embeddings in memory, or as numpy.memmap; got a"
                f" {type(X).__name__}, which is on workers. Call compute() on it, or map the method over its blocks."
            )

    def _cosines(self, X):
        """Return the cosines of rows and clusters, (n, n_components), and which rows have a direction, (n,)."""
        check_is_fitted(self)
        X = self._embeddings(X.vectors if isinstance(X, EmbeddedTexts) else X, reset=False)
        found, known = np.empty((X.shape[0], len(self.cluster_centers_))), np.empty(X.shape[0], bool)
        centre, projection = np.trunc(self.centre_ * FINE), self._fitted_projection()
        centres = np.rint(self.cluster_centers_ * FINE).T  # whole numbers: a row's products do not depend on its block
        for first in range(0, len(found), BLOCK_ROWS):
            rows = slice(first, first + BLOCK_ROWS)
            block = projected_rows(X[rows], projection)
            directions = grid_directions(block.toarray() if sp.issparse(block) else block, centre)
            found[rows] = directions @ centres / (LENGTH * FINE)
            known[rows] = directions.any(axis=1)
        return found, known

    def _fitted_projection(self):
        """Return the matrix of `projection` as it was when the model was fitted, or None."""
        return projection_matrix(fitted_parameter(self, "projection"), self.n_features_in_)

    def merge_topics(self, groups: Any) -> Any:
        """Make one cluster of each group of clusters: post-processing, of released values.

        Its direction is that of the mean of theirs, weighted by their released sizes; sizes, and scores of words, add
        up.

        Parameters
        ----------
        groups : sequence of sequences
            As in other models.

        Returns
        -------
        model : estimator
            A copy with fewer clusters, whose `size_deviation_` has a number for each of them.

        Raises
        ------
        ValueError
            If there is no such cluster, or one is in two groups, or the clusters have no words.
        """
        self._check_words()
        return super().merge_topics(groups)

    def _merged_places(self, members):
        centers = matmul(members, self.cluster_centers_ * self._topic_sizes()[:, None])
        lengths = np.sqrt(total(centers * centers, axis=1, keepdims=True))
        deviations = np.broadcast_to(self.size_deviation_, (members.shape[1],))
        scores = self._scores()
        if scores is not None:  # below 0 are those of words that a cluster is not asked for
            scores = np.stack([_added(scores[row > 0]) for row in members])
        return {
            "cluster_centers_": centers / np.where(lengths > 0, lengths, 1.0),
            "cluster_sizes_": matmul(members, self.cluster_sizes_),
            "size_deviation_": np.sqrt(matmul(members, deviations * deviations)),
            "keyword_scores_": scores,
        }


def _added(scores):
    """Return the scores of words in clusters together, (n_words,)."""
    return np.where((scores >= 0).any(axis=0), total(np.maximum(scores, 0), axis=0), scores.max(axis=0))


def projected_rows(vectors, given):
    """Return vectors after a public projection, row by row in whole numbers, or as they are if it is None."""
    n_features = vectors.shape[1]
    matrix = projection_matrix(given, n_features)
    if matrix is None:
        return vectors
    if matrix.shape[1] > MOST_DIMENSIONS:
        raise ValueError(f"projection must have at most {MOST_DIMENSIONS} columns; got {matrix.shape[1]}.")
    if matrix.shape[0] != n_features:
        raise ValueError(f"projection must have {n_features} rows, as X has columns; got {matrix.shape[0]}.")
    length = np.sqrt(total(matrix**2, axis=0)).max()
    matrix = np.rint(matrix * (FINE / max(length, 1e-300)))
    found = np.empty((vectors.shape[0], matrix.shape[1]))
    for first in range(0, len(found), BLOCK_ROWS):
        rows = vectors[first : first + BLOCK_ROWS]
        rows = grid_directions(rows.toarray() if sp.issparse(rows) else rows)
        found[first : first + BLOCK_ROWS] = rows @ matrix  # whole numbers below 2**53: exact
    return found


def projection_matrix(given, n_features):
    """Return the matrix of a projection, which may be a number of dimensions or None, (n_features, n_dimensions)."""
    if not isinstance(given, Integral):
        return None if given is None else np.asarray(given, np.float64)
    if given > n_features:
        raise ValueError(f"projection={given} must be at most the {n_features} dimensions of X.")
    return normal(np.random.default_rng(PROJECTION_SEED), (n_features, int(given)))
