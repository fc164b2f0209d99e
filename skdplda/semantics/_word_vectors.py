"""Embeddings of texts as weighted means of public word vectors."""

from collections.abc import Mapping
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.metadata_routing import UNUSED

from skdplda._arithmetic import matmul, total
from skdplda._checks import effective_n_jobs, kind_of
from skdplda._reading import ReadTexts, count_words
from skdplda._texts import LETTERS
from skdplda._types import Iterable
from skdplda._validation import Interval

ZIPF_SHIFT = (
    2.7  # of the frequency of the word of rank r, 1 / (r + ZIPF_SHIFT): Mandelbrot's law, his value for English
)
MOST_ROWS = 10_000  # words that stand for public texts; of 5,000, 10,000 and 20,000 best on Enron, KOS and news
CHUNK = 2000  # texts at a time


class WordVectorEmbedder(TransformerMixin, BaseEstimator):
    """Embed texts as weighted means of public word vectors, frequent words weighing less.

    A word of frequency p weighs a / (a + p), the smoothed inverse frequency of [1]_, equation 3. Nothing is learned:
    each text is embedded on its own, from public values.

    Parameters
    ----------
    keyed_vectors : gensim.models.KeyedVectors, mapping of str to array, or pair (words, array)
        Public word vectors, as `PublicPrior.from_vectors` takes them.
    frequencies : mapping of str to float, pair (words, counts) or None, default=None
        Public, or released, frequencies on any scale. A word that is not in the table counts as half of its smallest
        number. None: by the order of the vectors, most frequent first, as published vectors stand, by Zipf's law.
    smoothing : float, default=1e-3
        Called a in [1]_.
    token_pattern : str, default=LETTERS
        What a word is, as in `DPCountVectorizer`, whose default this is: it keeps the vowel signs of Indic scripts.
        Texts are put into lower case.
    n_jobs : int or None, default=None
        Threads, as in joblib; vectors do not depend on it. With a `token_pattern` other than this and that of
        `CountVectorizer`, texts are read by one.

    Attributes
    ----------
    n_features_in_ : int
        Not set: texts have no columns.

    Raises
    ------
    ValueError
        If vectors or frequencies are of another kind.

    References
    ----------
    .. [1] S. Arora, Y. Liang, T. Ma (2017). A simple but tough-to-beat baseline for sentence embeddings.

    Examples
    --------
    >>> from skdplda.semantics import WordVectorEmbedder
    >>> embedder = WordVectorEmbedder((["tea", "milk"], [[1.0, 0.0], [0.0, 1.0]]), frequencies={"tea": 1, "milk": 1})
    >>> embedder.transform(["Tea, tea", "milk", "?"]).astype(float).round(3).tolist()
    [[0.004, 0.0], [0.0, 0.002], [0.0, 0.0]]
    """

    __metadata_request__fit = {"raw_documents": UNUSED}  # noqa: RUF012
    __metadata_request__transform = {"raw_documents": UNUSED}  # noqa: RUF012

    def __init__(
        self,
        keyed_vectors: Any,
        *,
        frequencies: Any = None,
        smoothing: float = 1e-3,
        token_pattern: str = LETTERS,
        n_jobs: int | None = None,
    ) -> None:
        self.keyed_vectors = keyed_vectors
        self.frequencies = frequencies
        self.smoothing = smoothing
        self.token_pattern = token_pattern
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags

    def __sklearn_clone__(self):
        return self  # nothing is learned, and vectors are large

    def fit(self, raw_documents: Any = None, y: Any = None) -> Self:
        """Do nothing: nothing is learned.

        Parameters
        ----------
        raw_documents : object
            Ignored.
        y : None
            Ignored.

        Returns
        -------
        self : WordVectorEmbedder
            As it was.
        """
        return self

    def transform(self, raw_documents: Iterable[str]) -> np.ndarray:
        """Embed texts.

        Parameters
        ----------
        raw_documents : iterable of str
            Texts.

        Returns
        -------
        vectors : ndarray of shape (n_documents, n_dimensions), float32
            Sums of weighted vectors, whose direction is that of the mean; zeros for a text without a known word.

        Raises
        ------
        ValueError
            If `raw_documents` is one string.
        """
        if isinstance(raw_documents, (str, bytes)):
            raise ValueError("raw_documents must be a list of texts; got one text. Put it into a list.")
        words, vectors, frequencies = self._table()
        if isinstance(raw_documents, ReadTexts):
            counts = raw_documents.among(words).counts(self.n_jobs)
        else:
            counts = count_words(raw_documents, self._counter(), words, n_jobs=self.n_jobs)
        weighted = vectors * (self.smoothing / (self.smoothing + frequencies))[:, None]
        found = np.empty((counts.shape[0], vectors.shape[1]), np.float32)
        n_threads = effective_n_jobs(self.n_jobs)
        for first in range(0, len(found), CHUNK):
            found[first : first + CHUNK] = matmul(counts[first : first + CHUNK], weighted, n_threads)
        return found

    def _counter(self):
        return CountVectorizer(token_pattern=self.token_pattern)

    def public_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what stands for public texts: `public_rows` and `public_weights` of `EmbeddingTopics`.

        Returns
        -------
        vectors : ndarray of shape (n_words, n_dimensions)
            Of the most frequent words, 10,000 at most.
        weights : ndarray of shape (n_words,)
            Share of a word in the sums of texts.
        """
        _, vectors, frequencies = self._table()
        weights = frequencies * self.smoothing / (self.smoothing + frequencies)
        known = np.flatnonzero(vectors.any(axis=1))
        kept = known[np.argsort(-weights[known], kind="stable")[:MOST_ROWS]]
        return vectors[kept], weights[kept]

    def public_words(self, n_words: int = 20_000) -> list[str]:
        """Return words that have vectors, as a public vocabulary: candidates for the names of clusters.

        Parameters
        ----------
        n_words : int, default=20,000
            How many at most.

        Returns
        -------
        words : list of str
            The most frequent ones first.
        """
        words, vectors, frequencies = self._table()
        order = np.argsort(-frequencies, kind="stable")
        return [words[i] for i in order[vectors.any(axis=1)[order]][:n_words]]

    def word_frequencies(self, words: Iterable[str]) -> np.ndarray:
        """Return the public frequencies of words, `word_frequencies` of `EmbeddedTexts`.

        Parameters
        ----------
        words : iterable of str of length n_words
            Words; one without a vector counts as the rarest that has one.

        Returns
        -------
        frequencies : ndarray of shape (n_words,)
            Positive; they sum to 1.
        """
        known, _, frequencies = self._table()
        table, least = dict(zip(known, frequencies.tolist(), strict=True)), frequencies.min()
        found = np.array([table.get(word, least) for word in words], np.float64)
        return found / max(total(found), 1e-300)

    def _table(self):
        """Return words, vectors and frequencies that sum to 1."""
        words, vectors = _pair("keyed_vectors", self.keyed_vectors)
        try:
            vectors = np.asarray(vectors, np.float64)
        except ValueError:  # of different lengths
            raise ValueError("keyed_vectors must have one vector of numbers a word, all of one length.") from None
        if vectors.ndim != 2 or len(vectors) != len(words) or not np.isfinite(vectors).all() or not len(words):
            raise ValueError(f"keyed_vectors must have one vector of finite numbers a word; got shape {vectors.shape}.")
        if len(set(words)) < len(words):
            raise ValueError("keyed_vectors must have distinct words; got one twice.")
        if not Interval(Real, 0, None, closed="neither").is_satisfied_by(self.smoothing):
            raise ValueError(f"smoothing must be above 0, and finite; got {self.smoothing!r}.")
        if self.frequencies is None:
            frequencies = 1 / (np.arange(len(words)) + 1 + ZIPF_SHIFT)
        else:
            known, counts = _pair("frequencies", self.frequencies)
            counts = np.asarray(counts, np.float64)
            if counts.shape != (len(known),) or not (np.isfinite(counts) & (counts >= 0)).all() or not counts.any():
                raise ValueError("frequencies must be numbers from 0, one a word, not all 0.")
            table = dict(zip(known, counts, strict=True))
            least = counts[counts > 0].min() / 2
            frequencies = np.array([max(table.get(word, 0.0), least) for word in words])
        return words, vectors, frequencies / total(frequencies)


def _pair(name, given):
    """Return (words, values) of a mapping, a pair or gensim's KeyedVectors."""
    if hasattr(given, "key_to_index"):
        return [str(word) for word in given.index_to_key], given.vectors
    if isinstance(given, Mapping):
        return [str(word) for word in given], list(given.values())
    if isinstance(given, (tuple, list)) and len(given) == 2:
        if isinstance(given[0], (str, bytes)) or np.ndim(given[0]) != 1:
            raise ValueError(
                f"{name} must be a pair (words, values), of a list of words; got one string. Split it first."
            )
        return [str(word) for word in given[0]], given[1]
    raise ValueError(f"{name} must be a mapping by word or a pair (words, values); got {kind_of(given)}.")
