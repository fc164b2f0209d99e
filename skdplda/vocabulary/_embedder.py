"""From texts to embeddings and counts of privately chosen words, side by side."""

from dataclasses import replace
from typing import Any, Self

from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.metadata_routing import UNUSED

from skdplda._reading import is_compiled, read_texts
from skdplda._texts import WordColumnsMixin
from skdplda._types import ArrayLike, Estimator, Function, Iterable
from skdplda._validation import check_is_fitted, note_groups, note_parameters
from skdplda.privacy import (
    KNOWN,
    LedgerAwareMixin,
    PrivacyGuarantee,
    active_accountant,
    believed_guarantee,
    check_released,
    stated_guarantee,
)
from skdplda.semantics import EmbeddedTexts, WordVectorEmbedder, embedded
from skdplda.vocabulary._selection import users_of
from skdplda.vocabulary._vectorizer import DPCountVectorizer


class TextEmbedder(WordColumnsMixin, TransformerMixin, LedgerAwareMixin, BaseEstimator):
    """Embed texts by a public model, and count words that are public or chosen privately.

    Parameters
    ----------
    embedder : object with `transform` or `encode`, or callable
        Makes an array of shape (n_documents, n_dimensions) of a list of texts, such as a `SentenceTransformer`. It is
        public, and is not fitted. It is given one text at a time, so that no text is embedded by way of others; only a
        `WordVectorEmbedder`, whose rows are independent to the last bit, is given all of them. Affects privacy: no, if
        it does not depend on the private texts.
    vectorizer : DPCountVectorizer or None, default=None
        Chooses and counts the words; with `public_vocabulary`, at no cost. None: its defaults. Affects privacy: yes.
    n_dimensions : int or None, default=None
        Columns that the embedder must make, so that others are refused before words are paid for; None: any. Affects
        privacy: no.
    n_jobs : int or None, default=None
        Threads that call the embedder, each with one text at a time, as in joblib. Whether the vectors of some public
        texts are the same without threads is tried first. A `WordVectorEmbedder` has threads of its own. Affects
        privacy: no.

    Attributes
    ----------
    vectorizer_ : DPCountVectorizer
        Fitted.
    word_vectors_ : ndarray of shape (n_words, n_dimensions)
        Embeddings of the words, each given to the embedder alone.
    word_frequencies_ : ndarray of shape (n_words,) or None
        Public frequencies of the words, of an embedder that has `word_frequencies`, as `WordVectorEmbedder` does.
    privacy_guarantee_ : PrivacyGuarantee
        Of the choice of words.

    See Also
    --------
    make_insights_pipeline : Puts it before `EmbeddingTopics`, for one budget.

    Examples
    --------
    >>> import numpy as np
    >>> from skdplda.vocabulary import DPCountVectorizer, TextEmbedder
    >>> words = DPCountVectorizer(public_vocabulary=["tea", "milk"])
    >>> texts = TextEmbedder(lambda texts: np.ones((len(texts), 2)), words).fit_transform(["tea", "milk tea"])
    >>> texts.counts.toarray().tolist(), texts.vectors.shape
    ([[0, 1], [1, 1]], (2, 2))
    """

    __metadata_request__fit = {"raw_documents": UNUSED}  # noqa: RUF012
    __metadata_request__transform = {"raw_documents": UNUSED}  # noqa: RUF012

    _beside_released = {"vectorizer_": KNOWN, "word_vectors_": KNOWN, "word_frequencies_": KNOWN}  # noqa: RUF012

    def __init__(
        self,
        embedder: Any,
        vectorizer: DPCountVectorizer | None = None,
        n_dimensions: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.embedder = embedder
        self.vectorizer = vectorizer
        self.n_dimensions = n_dimensions
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def fit(self, raw_documents: Iterable[str], y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Choose the words.

        Parameters
        ----------
        raw_documents : iterable of str
            Texts.
        y : None
            Ignored.
        groups : array-like of shape (n_documents,), default=None
            The user of each document.

        Returns
        -------
        self : TextEmbedder
            Fitted.

        Raises
        ------
        ValueError
            As `DPCountVectorizer.fit`, or if the embedder is none, or is another in threads.
        """
        self._embed(["word"])  # an embedder that fails does so before words are paid for
        return self._fit(raw_documents, groups)

    def _fit(self, raw_documents, groups):
        self._frequencies(["word"])  # what fails does so before words are paid for
        self.vectorizer_ = clone(self._words()).fit(raw_documents, groups=groups)
        names = self.get_feature_names_out().tolist()
        self.word_vectors_ = self._embed(names)
        self.word_frequencies_ = self._frequencies(names)
        check_released(self)
        note_parameters(self)
        note_groups(self, users_of(self, groups))
        return self

    def fit_transform(self, raw_documents: Any, y: Any = None, groups: ArrayLike | None = None) -> EmbeddedTexts:
        """Embed the texts, choose the words and count them.

        Texts are embedded first, so that nothing is spent if that fails.

        Parameters
        ----------
        raw_documents : iterable of str
            Texts.
        y : None
            Ignored.
        groups : array-like of shape (n_documents,), default=None
            As in `fit`.

        Returns
        -------
        X : EmbeddedTexts
            One row a text.

        Raises
        ------
        BudgetExceededError
            If an open accountant cannot afford the choice of words. No text was read.
        ValueError
            As `fit` and `transform`; nothing was spent.
        """
        ledger = active_accountant()
        if ledger is not None and self.public_vocabulary is None:
            ledger.check(self.privacy_cost(groups=groups is not None))
        texts = self._texts(raw_documents)
        vectors = self._embed(texts)
        self._fit(texts, groups)
        return self._embedded(vectors, texts)

    def transform(self, raw_documents: Iterable[str]) -> EmbeddedTexts:
        """Embed and count texts.

        Parameters
        ----------
        raw_documents : iterable of str
            Texts.

        Returns
        -------
        X : EmbeddedTexts
            One row a text.

        Raises
        ------
        NotFittedError
            If it is not fitted.
        ValueError
            If the embedder does not make one row of numbers a text, of `n_dimensions` columns where these are given.
        """
        check_is_fitted(self)
        texts = self._texts(raw_documents)
        return self._embedded(self._embed(texts), texts)

    def _embedded(self, vectors, texts):
        counts = self.vectorizer_.transform(texts)
        return EmbeddedTexts(vectors, counts, self.get_feature_names_out(), self.word_vectors_, self.word_frequencies_)

    def _frequencies(self, words):
        """Return public frequencies of words, or None of an embedder that has no method for them."""
        known = getattr(self.embedder, "word_frequencies", None)
        return known(words) if callable(known) else None

    def _texts(self, raw_documents):
        """Return a list of the texts, which may be read once only; or their words, where both cut texts alike."""
        words, documents = self._words(), self._words()._texts(raw_documents)
        if type(self.embedder) is WordVectorEmbedder and tuple(words.ngram_range) == (1, 1):
            counter = self.embedder._counter()
            own = words._counter(None, stop_words=None, binary=counter.binary, dtype=counter.dtype)
            if is_compiled(counter) and own.get_params() == counter.get_params():
                n_jobs = self.embedder.n_jobs if words.n_jobs is None else words.n_jobs
                return read_texts(documents, counter, n_jobs=n_jobs)
        return list(documents)

    def _embed(self, texts):
        """Return one row a text, a matrix of float64."""
        vectors = embedded(self.embedder, texts, self.n_jobs)
        if len(vectors) and self.n_dimensions not in (None, vectors.shape[1]):
            raise ValueError(
                f"embedder must make rows of n_dimensions={self.n_dimensions} numbers; got {vectors.shape[1]}. In a"
                " pipeline of make_insights_pipeline they must be those of public_rows, projection or centre of the"
                " model."
            )
        return vectors

    def _columns(self):
        check_is_fitted(self)
        return self.vectorizer_.get_feature_names_out()

    def build_analyzer(self) -> Function:
        """Return the function that makes words of a text.

        Returns
        -------
        analyze : callable
            As `CountVectorizer.build_analyzer`.
        """
        return self._words().build_analyzer()

    def privacy_cost(self, *, groups: bool = False) -> PrivacyGuarantee:
        """State what the choice of words will guarantee, without data.

        Parameters
        ----------
        groups : bool, default=False
            Whether `fit` will be given groups.

        Returns
        -------
        guarantee : PrivacyGuarantee
            Equal to `privacy_guarantee_` after the fit.
        """
        return self._stated(self._words(), self._words().privacy_cost(groups=groups))

    def _stated(self, vectorizer, guarantee):
        """Return what a vectorizer states, by its class, as that of this object, which has it as an attribute."""
        guarantee = stated_guarantee(vectorizer, believed_guarantee(guarantee))
        released = tuple(f"{entry} of vectorizer_" for entry in guarantee.released)
        return stated_guarantee(self, replace(guarantee, released=released))

    @property
    def privacy_guarantee_(self) -> PrivacyGuarantee:
        """Guarantee of the choice of words."""
        if not hasattr(self, "vectorizer_"):
            raise AttributeError("it is not fitted")
        return self._stated(self.vectorizer_, self.vectorizer_.privacy_guarantee_)

    @property
    def public_vocabulary(self) -> Any:
        """That of the vectorizer."""
        return self._words().public_vocabulary

    @property
    def random_state(self) -> Any:
        """That of the vectorizer."""
        return self._words().random_state

    def _words(self) -> Estimator:
        return DPCountVectorizer() if self.vectorizer is None else self.vectorizer
