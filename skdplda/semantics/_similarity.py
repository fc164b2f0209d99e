"""A sparse graph of words that mean much the same, from public word vectors."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import matmul, total
from skdplda._types import Sequence

BLOCK_CELLS = 2**24  # similarities held at a time: 128 MB
# Length of a vector in whole numbers. A product of two, and each part of its sum, is below 2**53: exact in any order.
LENGTH = 2.0**26


def word_similarity(
    vocabulary: Sequence[str], vectors: Any, *, threshold: float = 0.5, top_n: int | None = 10, normalize: bool = True
) -> Any:
    """Cosine similarity of words, as a sparse symmetric matrix.

    The vectors must be public, or trained on other data: this function knows nothing of privacy.

    Parameters
    ----------
    vocabulary : sequence of str
        The words, in the order of the topic model's columns.
    vectors : gensim.models.KeyedVectors, mapping of str to array, or array-like of shape (n_words, n_dimensions)
        Vectors by word; or rows in the order of `vocabulary`. A word without a vector (not there, or zero, or NaN) is
        similar to itself only.
    threshold : float, default=0.5
        In (0, 1]. Less similar pairs are left out.
    top_n : int or None, default=10
        How many neighbours a word may choose, most similar first; it also has those that chose it. None: no limit.
    normalize : bool, default=True
        Whether R becomes D^-1/2 R D^-1/2, where D has the sums of its rows: words with many neighbours, mostly frequent
        and general ones, then draw no more than others. False is [1]_.

    Returns
    -------
    similarity : csr_array of shape (n_words, n_words), float64
        Called R in [1]_, eq. (10). Symmetric; before it is normalised, the diagonal is 1.

    Raises
    ------
    ValueError
        If the vectors have different lengths or another number of rows than there are words, a word stands twice, or
        a number is out of range.

    References
    ----------
    .. [1] Shi, Su, Jiang, Zhou, Zhang and Tong (2019). Semantic Consistent Topic Discovery with Differential Privacy.
       Eq. 10.

    Examples
    --------
    >>> from skdplda.semantics import word_similarity
    >>> R = word_similarity(["tea", "coffee", "of"], {"tea": [3, 4], "coffee": [4, 3]})
    >>> R.toarray().round(2)
    array([[0.51, 0.49, 0.  ],
           [0.49, 0.51, 0.  ],
           [0.  , 0.  , 1.  ]])
    """
    words = [str(word) for word in vocabulary]
    if not (isinstance(threshold, Real) and 0 < threshold <= 1):
        raise ValueError(f"threshold must be > 0 and <= 1; got {threshold!r}.")
    if top_n is not None and not (isinstance(top_n, Integral) and top_n >= 1):
        raise ValueError(f"top_n must be an integer of at least 1, or None; got {top_n!r}.")
    if isinstance(vocabulary, str) or len(set(words)) < len(words):
        raise ValueError("vocabulary must be a sequence of distinct words.")
    found, points = _points(words, vectors)
    n_found = len(found)
    n_rows = max(1, BLOCK_CELLS // max(n_found, 1))
    rows, columns, values = [], [], []
    for begin in range(0, n_found, n_rows):
        cosine = points[begin : begin + n_rows] @ points.T / (LENGTH * LENGTH)
        cosine[np.arange(len(cosine)), begin + np.arange(len(cosine))] = -1.0  # the diagonal comes later
        row, column = np.nonzero(cosine >= threshold)
        value = cosine[row, column]
        if top_n is not None:
            order = np.lexsort((column, -value, row))
            row, column, value = row[order], column[order], value[order]
            first = np.searchsorted(row, np.arange(len(cosine)))
            chosen = np.arange(len(row)) - first[row] < top_n
            row, column, value = row[chosen], column[chosen], value[chosen]
        rows.append(found[begin + row])
        columns.append(found[column])
        values.append(np.minimum(value, 1.0))
    R = sp.coo_array(sp.eye_array(len(words)))
    if n_found:
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        chosen = sp.csr_array(entries, shape=R.shape)
        R = sp.coo_array(chosen.maximum(chosen.T) + R)
    if normalize:
        root = np.sqrt(matmul(R, np.ones(len(words))))
        R.data /= root[R.row] * root[R.col]
    return sp.csr_array(R)


def _points(words, vectors):
    """Return the numbers of the words that have a vector, and those vectors at length LENGTH, in whole numbers."""
    if hasattr(vectors, "key_to_index"):  # gensim's KeyedVectors
        index = vectors.key_to_index
        known = [i for i, word in enumerate(words) if word in index]
        table = np.asarray(vectors.vectors)[[index[words[i]] for i in known]]
    elif isinstance(vectors, Mapping):
        known = [i for i, word in enumerate(words) if word in vectors]
        rows = [np.asarray(vectors[words[i]], dtype=np.float32) for i in known]
        if len({row.shape for row in rows}) > 1 or any(row.ndim != 1 for row in rows):
            shapes = sorted({row.shape for row in rows})
            raise ValueError(f"vectors must all have the same length; got shapes {shapes[:4]}.")
        table = np.array(rows) if rows else np.zeros((0, 1))
    else:
        table = np.asarray(vectors)
        if table.ndim != 2 or len(table) != len(words) or table.dtype.kind not in "fiu":
            raise ValueError(
                f"vectors must have one row of numbers for each of the {len(words)} words, or name their words"
                f" (KeyedVectors, or a dict); got an array of shape {table.shape}."
            )
        known = np.arange(len(words))
    table = table.astype(np.float32).astype(np.float64)
    length = np.sqrt(total(table**2, axis=1))
    good = np.isfinite(length) & (length > 0)
    return np.asarray(known, dtype=np.int64)[good], np.rint(table[good] * (LENGTH / length[good])[:, None])
