"""Released clusters of embeddings: words, and directions to place new embeddings by."""

from typing import Any

import numpy as np

from skdplda._arithmetic import total
from skdplda._types import ArrayLike, Sequence
from skdplda.models import BaseClusterModel
from skdplda.privacy import PrivacyGuarantee
from skdplda.releases._model import ReleasedTopicModel


class ReleasedClusterModel(BaseClusterModel, ReleasedTopicModel):
    """Clusters of embeddings, their words and their privacy guarantee; a model that is safe to publish.

    Made by `release` of a fitted `EmbeddingTopics`, and by `load_released`. It is a `ReleasedTopicModel` whose methods
    take embeddings of the same public model where that one takes texts or counts; only `perplexity` takes counts.

    Parameters
    ----------
    topic_word : array-like of shape (n_components, n_words)
        Word distributions of the clusters; rows sum to 1.
    vocabulary : sequence of str of shape (n_words,) or None, default=None
        The words, in the order of the columns.
    cluster_centers : array-like of shape (n_components, n_dimensions)
        Directions of length 1, after `projection` and without the centre.
    centre : array-like of shape (n_dimensions,)
        What is taken away from rows of length 1.
    cluster_sizes : array-like of shape (n_components,)
        Number of documents, or weight of users, with noise.
    size_deviation : float or array-like of shape (n_components,)
        Standard deviation of each size.
    concentration : float
        How sharply `transform` divides a text.
    projection : array-like of shape (n_features, n_dimensions) or None, default=None
        Public map of embeddings to fewer dimensions.
    privacy_guarantee : PrivacyGuarantee
        What covers these values.
    details : dict or None, default=None
        As of `ReleasedTopicModel`.
    topic_names : sequence of str of shape (n_components,) or None, default=None
        None: "topic_0", "topic_1", ...
    signal_to_noise : array-like of shape (n_components, n_words) or None, default=None
        As of `ReleasedTopicModel`.
    keyword_scores : array-like of shape (n_components, n_words) or None, default=None
        As `keyword_scores_` of `EmbeddingTopics`.

    Attributes
    ----------
    cluster_centers_, centre_, cluster_sizes_, size_deviation_, concentration_, projection_, keyword_scores_
        As given, read-only.
    topic_word_, topic_sizes_, topic_names_, signal_to_noise_, vocabulary_, privacy_guarantee_, details_
        As of `ReleasedTopicModel`.
    n_features_in_ : int
        Dimensions of an embedding.

    Raises
    ------
    ValueError
        If arrays, words or numbers do not fit each other, or are not as described.

    See Also
    --------
    release : Makes one from a fitted pipeline.
    load_released : Reads one from a file.

    Examples
    --------
    >>> import numpy as np
    >>> from skdplda import EmbeddingTopics, release
    >>> X = np.repeat(np.eye(3), 2000, axis=0)
    >>> fitted = EmbeddingTopics(3, epsilon=2.0, public_rows=np.eye(3)).fit(X, counts=X.astype(int))
    >>> release(fitted, feature_names=["tea", "milk", "iron"]).predict(np.eye(3)).tolist()
    [0, 1, 2]
    """

    def __init__(
        self,
        topic_word: ArrayLike,
        vocabulary: Sequence[str] | None = None,
        *,
        cluster_centers: ArrayLike,
        centre: ArrayLike,
        cluster_sizes: ArrayLike,
        size_deviation: ArrayLike,
        concentration: float,
        projection: ArrayLike | None = None,
        privacy_guarantee: PrivacyGuarantee,
        details: dict[str, Any] | None = None,
        topic_names: Sequence[str] | None = None,
        signal_to_noise: ArrayLike | None = None,
        keyword_scores: ArrayLike | None = None,
    ) -> None:
        super().__init__(
            topic_word,
            vocabulary,
            privacy_guarantee=privacy_guarantee,
            details=details,
            signal_to_noise=signal_to_noise,
        )
        n_components = len(self.topic_word_)
        self.cluster_centers_ = _numbers("cluster_centers", cluster_centers, (n_components, None))
        n_dimensions = self.cluster_centers_.shape[1]
        self.centre_ = _numbers("centre", centre, (n_dimensions,))
        self.cluster_sizes_ = _numbers("cluster_sizes", cluster_sizes, (n_components,))
        several = np.ndim(size_deviation) > 0  # of merged clusters
        size_deviation = _numbers("size_deviation", size_deviation, (n_components,) if several else ())
        self.size_deviation_ = size_deviation if several else float(size_deviation)
        self.concentration_ = float(_numbers("concentration", concentration, ()))
        self.projection_ = None if projection is None else _numbers("projection", projection, (None, n_dimensions))
        self.keyword_scores_ = (
            None if keyword_scores is None else _numbers("keyword_scores", keyword_scores, self.topic_word_.shape)
        )
        self.n_features_in_ = n_dimensions if projection is None else self.projection_.shape[0]
        lengths = np.sqrt((self.cluster_centers_**2).sum(axis=1))
        if not np.allclose(lengths[lengths > 0], 1):
            raise ValueError("cluster_centers must be of length 1, or zeros; got others.")
        if not (
            np.all(self.size_deviation_ >= 0) and self.concentration_ >= 0 and self.centre_ @ self.centre_ <= 1 + 1e-9
        ):
            raise ValueError("size_deviation and concentration must be from 0, and centre of length 1 at most.")

        self.topic_sizes_ = self._topic_sizes()
        self.topic_sizes_.flags.writeable = False
        if topic_names is not None:
            self.topic_names_ = self._new_names(list(topic_names))

    @property
    def words_(self) -> np.ndarray | None:
        """The words, by their name in `EmbeddingTopics`."""
        return self.vocabulary_

    def _fitted_projection(self):
        return self.projection_

    def _merged(self, tables):
        return ReleasedClusterModel(
            tables["components_"] / total(tables["components_"], axis=1, keepdims=True),
            self.vocabulary_,
            cluster_centers=tables["cluster_centers_"],
            centre=self.centre_,
            cluster_sizes=tables["cluster_sizes_"],
            size_deviation=tables["size_deviation_"],
            concentration=self.concentration_,
            projection=self.projection_,
            privacy_guarantee=self.privacy_guarantee_,
            details=self.details_,
            topic_names=tables["topic_names_"],
            signal_to_noise=tables["signal_to_noise_"],
            keyword_scores=tables["keyword_scores_"],
        )

    def _takes(self):
        return ["embeddings"]

    def _arrays(self):
        return super()._arrays() | {
            "cluster_centers": self.cluster_centers_,
            "centre": self.centre_,
            "cluster_sizes": self.cluster_sizes_,
            "scale": np.append(self.size_deviation_, self.concentration_),
            "projection": self.projection_,
            "keyword_scores": self.keyword_scores_,
        }

    def __repr__(self, **options):
        n_components, n_words = self.topic_word_.shape
        return f"ReleasedClusterModel({n_components} clusters, {n_words} words, {self.privacy_guarantee_!r})"


def _numbers(name, values, shape):
    """Return finite numbers of a shape, of which None may be any, as an array that is read-only."""
    found = np.array(values, dtype=np.float64, order="C")
    fits = found.ndim == len(shape) and all(own in (None, n) for own, n in zip(shape, found.shape, strict=True))
    if not fits or 0 in found.shape or not np.isfinite(found).all():
        raise ValueError(f"{name} must have finite numbers and the shape {shape}; got shape {found.shape}.")
    found.flags.writeable = False
    return found
