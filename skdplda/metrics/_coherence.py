"""Coherence and diversity of topics, from counts alone."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.sparse import csc_matrix

from skdplda._checks import check_structure
from skdplda._types import ArrayLike, Matrix


def topic_diversity(topic_word: ArrayLike, n_words: int = 25) -> float:
    """Share of distinct words among the top words of all topics.

    Parameters
    ----------
    topic_word : array-like of shape (n_components, n_words)
        Weight of each word in each topic.
    n_words : int, default=25
        Words per topic; the whole vocabulary where it is smaller.

    Returns
    -------
    diversity : float
        From 1 / n_components (all topics share their words) to 1 (no word is shared).

    References
    ----------
    .. [1] A. B. Dieng, F. J. R. Ruiz, D. M. Blei (2020). Topic modeling in embedding spaces. TACL 8.

    Examples
    --------
    >>> from skdplda.metrics import topic_diversity
    >>> topic_diversity([[3, 2, 1, 0], [0, 3, 2, 1]], n_words=2)
    0.75
    """
    top = _top_words(topic_word, n_words)
    return len(np.unique(top)) / top.size


def u_mass_coherence(topics: Any, X: Matrix, *, n_words: int = 10, eps: float = 1.0) -> np.ndarray:
    """UMass coherence of each topic: how often its top words share a document.

    For the top words v_1, ..., v_M of a topic, sum_{m=2}^M sum_{l<m} log((D(v_m, v_l) + eps) / D(v_l)), where
    D counts the documents that contain all the given words: equation (1) of [1]_. A word in no document, which
    noisy topics may have, would divide by zero: its D(v_l) counts as 1. So the value is always finite, and such a
    pair adds log(eps), which is 0 at eps=1.

    Parameters
    ----------
    topics : array-like of shape (n_components, n_words), or sequence of sequences of int
        Weight of each word in each topic (anything with as many columns as `X`), or the top words of each
        topic as columns of `X`, best first.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Reference documents; only whether a count is positive matters.
    n_words : int, default=10
        Words per topic (M).
    eps : float, default=1.0
        Added to each joint count; 1 in [1]_.

    Returns
    -------
    coherence : ndarray of shape (n_components,)
        The sums; nearer to zero is more coherent. gensim reports means over pairs with a tiny `eps` instead.

    Raises
    ------
    ValueError
        If `topics` does not fit `X`, or `eps` is not positive.

    References
    ----------
    .. [1] D. Mimno, H. M. Wallach, E. Talley, M. Leenders, A. McCallum (2011). Optimizing semantic
       coherence in topic models. EMNLP.

    Examples
    --------
    >>> from skdplda.metrics import u_mass_coherence
    >>> X = [[1, 1, 0], [1, 1, 0], [1, 0, 1]]
    >>> u_mass_coherence([[0, 1], [0, 2]], X, n_words=2).round(3).tolist()
    [0.0, -0.405]
    """
    if not isinstance(eps, Real) or not 0 < eps < np.inf:
        raise ValueError(f"eps must be a positive finite number, got {eps!r}.")
    check_structure(X)
    present = csc_matrix(X) > 0
    values = []
    for words in _word_lists(topics, present.shape[1], n_words):
        together = present[:, words].astype(np.int64)
        together = (together.T @ together).toarray()
        alone = np.maximum(np.diag(together), 1)
        later, earlier = np.tril_indices(len(words), -1)
        values.append(np.log((together[later, earlier] + eps) / alone[earlier]).sum())
    return np.array(values)


def _top_words(topic_word, n_words):
    """Return the columns of the `n_words` largest weights of each topic, best first, ties in column order."""
    topic_word = np.asarray(topic_word)
    if topic_word.ndim != 2 or 0 in topic_word.shape:
        raise ValueError(f"topic_word must have shape (n_components, n_words), got {topic_word.shape}.")
    if not isinstance(n_words, Integral) or n_words < 1:
        raise ValueError(f"n_words must be an integer of at least 1, got {n_words!r}.")
    return np.argsort(-topic_word.astype(np.float64), axis=1, kind="stable")[:, :n_words]


def _word_lists(topics, n_columns, n_words):
    """Return the top words of each topic, from weights or from words."""
    topics = list(topics)
    if all(len(topic) == n_columns for topic in topics):
        return list(_top_words(topics, n_words))
    if not isinstance(n_words, Integral) or n_words < 1:
        raise ValueError(f"n_words must be an integer of at least 1, got {n_words!r}.")
    lists = [np.asarray(topic)[:n_words] for topic in topics]
    for words in lists:
        if words.dtype.kind not in "iu" or words.min() < 0 or words.max() >= n_columns:
            raise ValueError(
                f"topics must hold {n_columns} weights each, as X has columns, or words as integers from 0 to "
                f"{n_columns - 1}; got {words.tolist()}."
            )
    return lists
