"""Texts as embeddings, with the counts of their words beside."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from skdplda._checks import check_structure
from skdplda._types import ArrayLike


class EmbeddedTexts:
    """Embeddings of texts, with the counts of their words: what `EmbeddingTopics` takes in a pipeline.

    To scikit-learn it is a sequence of documents: it has a length, a shape and `[]`.

    Parameters
    ----------
    vectors : ndarray or sparse matrix of shape (n_documents, n_dimensions)
        One row a text.
    counts : sparse matrix of shape (n_documents, n_words) or None, default=None
        Of the same texts.
    words : array-like of str of shape (n_words,) or None, default=None
        The words of the columns.
    word_vectors : array-like of shape (n_words, n_dimensions) or None, default=None
        Embeddings of the words, by the same model: clusters are then called by words near their centres.
    word_frequencies : array-like of shape (n_words,) or None, default=None
        Public frequencies of the words, positive, on any scale: where few words stand out of the noise, clusters are
        called by words that are frequent elsewhere.

    Attributes
    ----------
    shape : tuple of int
        (n_documents, n_dimensions).

    Raises
    ------
    ValueError
        If the rows of the two differ in number, the words, or their vectors, are not as many as the columns, or the
        arrays of a sparse matrix do not describe one.

    Examples
    --------
    >>> import numpy as np
    >>> from skdplda.semantics import EmbeddedTexts
    >>> X = EmbeddedTexts(np.eye(3), np.ones((3, 2)), ["tea", "milk"])
    >>> X.shape, len(X[:2])
    ((3, 3), 2)
    """

    def __init__(
        self,
        vectors: Any,
        counts: Any = None,
        words: ArrayLike | None = None,
        word_vectors: Any = None,
        word_frequencies: ArrayLike | None = None,
    ) -> None:
        check_structure(vectors, "vectors")
        check_structure(counts, "counts")
        if counts is not None and counts.shape[0] != vectors.shape[0]:
            raise ValueError(
                f"counts must have one row a text: vectors have {vectors.shape[0]} rows, counts {counts.shape[0]}."
            )
        self.vectors, self.counts = vectors, counts
        self.words = None if words is None else np.asarray(words, dtype=object)
        if counts is not None and self.words is not None and self.words.shape != counts.shape[1:]:
            raise ValueError(f"words must name the {counts.shape[1]} columns of counts; got shape {self.words.shape}.")
        n_words = None if counts is None else counts.shape[1]
        for name, given in (("word_vectors", word_vectors), ("word_frequencies", word_frequencies)):
            n_rows = None if given is None else np.shape(given)[0]
            if None not in (n_rows, n_words) and n_rows != n_words:
                raise ValueError(f"{name} must have a row for each of the {n_words} words; got {n_rows}.")
        self.word_vectors, self.word_frequencies, self.shape = word_vectors, word_frequencies, vectors.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> "EmbeddedTexts":
        counts = self.counts
        if counts is not None:
            counts = (sp.csr_array(counts) if sp.issparse(counts) else counts)[rows]
        return EmbeddedTexts(self.vectors[rows], counts, self.words, self.word_vectors, self.word_frequencies)
