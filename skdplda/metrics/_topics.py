"""Topics beside each other: how far apart they are, and which words tell one from the others."""

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform

from skdplda._arithmetic import eigen, log, matmul, mean, total
from skdplda._types import ArrayLike

TINY = 1e-300  # in place of a probability of 0, whose logarithm is not finite


def topic_distances(topic_word: ArrayLike | Any) -> np.ndarray:
    """Compute the Jensen-Shannon distance between each two topics [1]_; of clusters, 1 less their cosine.

    Parameters
    ----------
    topic_word : array-like of shape (n_topics, n_words), or fitted model
        Topic-word distributions; rows sum to 1. Of a model its own, or the directions of its clusters.

    Returns
    -------
    distances : ndarray of shape (n_topics, n_topics)
        Symmetric; 0 for equal topics, 1 for topics that have no word in common. Of clusters up to 2.

    References
    ----------
    .. [1] D. Endres, J. Schindelin (2003). A new metric for probability distributions. IEEE Transactions on
       Information Theory 49(7). In bits, so that it is at most 1.

    Examples
    --------
    >>> from skdplda.metrics import topic_distances
    >>> topic_distances([[1.0, 0.0], [0.0, 1.0]]).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if hasattr(topic_word, "cluster_centers_"):
        cosine = pdist(topic_word.cluster_centers_, "cosine")
        return squareform(np.maximum(np.nan_to_num(cosine, nan=1.0), 0))  # no direction: as if orthogonal
    topic_word = getattr(topic_word, "topic_word_", topic_word)
    in_nats = np.nan_to_num(pdist(np.asarray(topic_word, dtype=float), "jensenshannon"))  # rounding below 0 gives nan
    return squareform(in_nats / np.sqrt(np.log(2)))


def topic_map(distances: ArrayLike) -> np.ndarray:
    """Place topics in the plane so that near ones are alike, by classical multidimensional scaling [1]_.

    Parameters
    ----------
    distances : array-like of shape (n_topics, n_topics)
        Symmetric, as from `topic_distances`.

    Returns
    -------
    places : ndarray of shape (n_topics, 2)
        The same on every machine; the mean is at the origin.

    References
    ----------
    .. [1] W. Torgerson (1952). Multidimensional scaling: I. Theory and method. Psychometrika 17(4).

    Examples
    --------
    >>> from skdplda.metrics import topic_map
    >>> topic_map([[0.0, 1.0], [1.0, 0.0]]).round(3).tolist()
    [[0.5, 0.0], [-0.5, 0.0]]
    """
    squares = np.asarray(distances, dtype=float) ** 2
    rows = mean(squares, axis=0)
    values, vectors = eigen((rows[:, None] + rows - squares - mean(rows)) / 2)
    places = np.zeros((len(rows), 2))
    for axis in range(min(2, len(rows))):
        vector = vectors[-1 - axis]
        vector = vector * np.sign(vector[np.argmax(np.abs(vector) > np.abs(vector).max() * (1 - 1e-9))])
        places[:, axis] = vector * np.sqrt(max(values[-1 - axis], 0.0))
    return places


def apart(places, boxes, width, share):
    """Return centres of boxes of which none lies on another, all between 0 and a width, and the height.

    `boxes`, (n, 2), are widths and heights. `places`, (n, 2), are those of `topic_map`; they get this width, or this
    share of it as height. Boxes that overlap push each other away, along the shorter way or to the sides; what is left
    goes down.
    """
    span = np.maximum(np.ptp(places, axis=0), 1e-9)
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    scale = min((width - boxes[:, 0].max()) / span[0], share * width / span[1])
    places, room = (places - middle) * scale * [1, -1] + [width / 2, 0], boxes / 2 + 3
    least, most = room[:, 0], np.maximum(width - room[:, 0], room[:, 0])
    places[:, 0] = np.clip(places[:, 0], least, most)
    for _ in range(200):
        between = places[:, None] - places[None]
        over = np.maximum(room[:, None] + room[None] - np.abs(between), 0) * ~np.eye(len(places), dtype=bool)[..., None]
        over *= (over > 0).all(axis=2, keepdims=True)
        if not over.any():
            break
        along = (over * [min(300 / width, 1), 1]).argmin(axis=2)[..., None] == [0, 1]  # there is room at the sides
        order = np.sign(np.arange(len(places))[:, None] - np.arange(len(places)))[..., None]
        places += (np.where(between == 0, order, np.sign(between)) * over * along).sum(axis=1) * 0.4
        places[:, 0] = np.clip(places[:, 0], least, most)
    places[:, 1] -= (places - room)[:, 1].min()
    done = []
    for box in np.argsort(places[:, 1], kind="stable"):
        while len(
            hit := np.flatnonzero((np.abs(places[box] - places[done]) < room[box] + room[done] - 1e-6).all(axis=1))
        ):
            below = done[hit[0]]
            places[box, 1] = places[below, 1] + room[box, 1] + room[below, 1]
        done.append(box)
    return places, float((places + room)[:, 1].max())


def topic_relevance(topic_word: ArrayLike, weight: float, sizes: ArrayLike | None = None) -> np.ndarray:
    """Compute how relevant each word is to each topic: equation 1 of [1]_.

    It is `weight` log p(word | topic) + (1 - `weight`) log(p(word | topic) / p(word)). The latter is the lift: it puts
    words first that are rare in the other topics.

    Parameters
    ----------
    topic_word : array-like of shape (n_topics, n_words)
        Topic-word distributions; rows sum to 1.
    weight : float
        Called lambda in [1]_, from 0, the lift alone, to 1, the order of probabilities.
    sizes : array-like of shape (n_topics,), default=None
        Share of each topic, for p(word). None: all the same.

    Returns
    -------
    relevance : ndarray of shape (n_topics, n_words)
        Larger is more relevant; finite.

    Raises
    ------
    ValueError
        If `weight` is outside 0..1.

    References
    ----------
    .. [1] C. Sievert, K. Shirley (2014). LDAvis: A method for visualizing and interpreting topics. Workshop on
       Interactive Language Learning, Visualization, and Interfaces.

    Examples
    --------
    >>> from skdplda.metrics import topic_relevance
    >>> topics = [[0.6, 0.4, 0.0], [0.6, 0.0, 0.4]]
    >>> topic_relevance(topics, 1.0).argmax(axis=1).tolist(), topic_relevance(topics, 0.5).argmax(axis=1).tolist()
    ([0, 0], [1, 2])
    """
    if not 0 <= weight <= 1:
        raise ValueError(f"relevance must be from 0 (lift) to 1 (probability); got {weight!r}.")
    topics = np.asarray(topic_word, dtype=float)
    sizes = np.ones(len(topics)) if sizes is None else np.asarray(sizes, dtype=float)
    overall = log(np.maximum(matmul(sizes / total(sizes), topics), TINY))
    return log(np.maximum(topics, TINY)) - (1 - weight) * overall
