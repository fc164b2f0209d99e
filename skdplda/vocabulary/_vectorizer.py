"""From texts to counts of privately chosen words."""

from typing import Any, Literal, Self

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.metadata_routing import UNUSED

from skdplda._checks import is_integer
from skdplda._hints import hinting
from skdplda._reading import SKLEARN_PATTERN, ReadTexts, count_words, read_texts
from skdplda._texts import DEFAULT_STOP_WORDS, LETTERS, NamedCounts, WordColumnsMixin, check_texts, hint_at_clauses
from skdplda._types import ArrayLike, Function, Iterator, Seed
from skdplda._validation import THREADS, check_is_fitted, check_public_words, fit_context, warn_of_missing_groups
from skdplda.exceptions import EmptySelectionError
from skdplda.privacy import has_levels
from skdplda.vocabulary._levels import LONGEST_WORD, Tokens
from skdplda.vocabulary._selection import PrivateSelection, refuse_repetitions

TEXT_PARAMETERS = (
    "input",
    "encoding",
    "decode_error",
    "strip_accents",
    "lowercase",
    "preprocessor",
    "tokenizer",
    "stop_words",
    "token_pattern",
    "ngram_range",
    "analyzer",
    "binary",
    "dtype",
)


COUNTING = "it counts documents without noise; leave it out, or name stop_words"
HINTS = {  # for parameters of CountVectorizer
    "max_features": "write max_words",
    "min_df": COUNTING,
    "max_df": COUNTING,
    "vocabulary": "write public_vocabulary",
}


class DPCountVectorizer(WordColumnsMixin, PrivateSelection):
    """Count words of texts, with a vocabulary learned from them under differential privacy.

    `CountVectorizer` and `DPVocabularySelector` in one: words that are not selected leave no trace in the fitted object
    or its pickle, and neither does their number. By default, English stop words and numbers are left out: they are the
    most frequent words, and would take most of the budget and of every topic. There is no `min_df`, `max_df` or
    `max_features`: the words that these choose depend on the documents without noise.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of the fit, for adding or removing one document (one user with `groups`). `inf` keeps every
        word. Affects privacy: yes.
    delta : float, default=1e-5
        As in `DPVocabularySelector`. Affects privacy: yes.
    method : str, default="sieve"
        As in `DPVocabularySelector`; "sieve" is our own (theory guide, Theorem 2). Affects privacy: no.
    mechanism : str or None, default=None
        As in `DPVocabularySelector`. Affects privacy: yes.
    max_words_per_unit : int, default=200
        As in `DPVocabularySelector`; of n-grams, of each level. Affects privacy: no, the noise is calibrated to it.
    max_words : int or None, default=None
        As in `DPVocabularySelector`, but the last tie is broken by the alphabet. Affects privacy: no.
    cutoff : float, default=3.0
        As in `DPVocabularySelector`. Affects privacy: no.
    public_vocabulary : array-like of str of shape (n_selected,) or None, default=None
        Words to count, in any order; the documents are then not read by `fit`, and nothing is spent. They must not
        depend on the documents. Affects privacy: yes.
    random_state : int, bytes, RandomState or None, default=None
        As in `DPVocabularySelector`. Affects privacy: yes.
    input : {"filename", "file", "content"}, default="content"
        As in `CountVectorizer`. Affects privacy: no.
    encoding : str, default="utf-8"
        As in `CountVectorizer`. Affects privacy: no.
    decode_error : {"strict", "ignore", "replace"}, default="strict"
        As in `CountVectorizer`. Affects privacy: no.
    strip_accents : {"ascii", "unicode"}, callable or None, default=None
        As in `CountVectorizer`. Affects privacy: no.
    lowercase : bool, default=True
        As in `CountVectorizer`. Affects privacy: no.
    preprocessor : callable or None, default=None
        As in `CountVectorizer`. Affects privacy: yes, if it remembers other documents; it must read one at a time.
    tokenizer : callable or None, default=None
        As in `CountVectorizer`; for languages without spaces between words. A released model is loaded with the same
        one. Affects privacy: yes, as `preprocessor`.
    stop_words : {"english"}, list or None, default="english"
        Words to leave out; they must not depend on the documents. `skdplda.datasets.stop_words` has public lists of
        other languages. None leaves no word out. Affects privacy: yes.
    token_pattern : str or None
        What a word is. The default is that of `CountVectorizer` without words that begin with a digit or an underscore,
        so without numbers; and the vowel signs of Hindi, Bengali, Thai and their like belong to words. None is that of
        `CountVectorizer`. Affects privacy: no.
    ngram_range : tuple of int (least, most), default=(1, 1)
        As in `CountVectorizer`. With analyzer="word", Gaussian noise and a method by rounds ("sieve",
        "weighted_gaussian", "sips", "mad", "mad2r") n-grams are selected by levels, which share the budget: an n-gram
        must start and end with released (n - 1)-grams (theory guide, Theorem 8). Else each n-gram counts as a word.
        Affects privacy: no.
    analyzer : {"word", "char", "char_wb"} or callable, default="word"
        As in `CountVectorizer`. Affects privacy: yes, if it is a callable, as `preprocessor`.
    binary : bool, default=False
        Whether `transform` gives presence in place of counts. Affects privacy: no.
    dtype : dtype, default=numpy.int64
        Of the matrix that `transform` returns. Affects privacy: no.
    n_jobs : int or None, default=None
        Threads that read texts, as in joblib; words and counts do not depend on it. With a `tokenizer`, another
        `analyzer` or another `token_pattern` there is one. Affects privacy: no.

    Attributes
    ----------
    vocabulary_ : dict
        Column of each selected word; columns are in alphabetical order.
    noisy_weights_ : ndarray of shape (n_words,)
        As in `DPVocabularySelector`, by column. Only with noise.
    privacy_guarantee_ : PrivacyGuarantee
        Print it for a statement to publish.

    See Also
    --------
    DPVocabularySelector : The same for the columns of a matrix; explains the methods.

    Examples
    --------
    >>> from skdplda import DPCountVectorizer
    >>> texts = ["iron and zinc", "zinc and copper", "copper and iron"] * 300 + ["my name is secret"]
    >>> vectorizer = DPCountVectorizer(epsilon=1.0).fit(texts)
    >>> vectorizer.get_feature_names_out().tolist()
    ['copper', 'iron', 'zinc']
    """

    _parameter_constraints = {**PrivateSelection._parameter_constraints, "n_jobs": THREADS}  # noqa: RUF012
    _released = ("vocabulary_",)
    _not_covered = (
        "the matrix that transform returns for private documents",
        "stop words and functions of the text that were made from the same documents",
        "hyper-parameters tuned on the same data",
    )

    __metadata_request__fit = {"raw_documents": UNUSED}  # noqa: RUF012
    __metadata_request__transform = {"raw_documents": UNUSED}  # noqa: RUF012

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-5,
        method: str = "sieve",
        mechanism: str | None = None,
        max_words_per_unit: int = 200,
        max_words: int | None = None,
        cutoff: float = 3.0,
        public_vocabulary: ArrayLike | None = None,
        random_state: Seed = None,
        input: Literal["filename", "file", "content"] = "content",
        encoding: str = "utf-8",
        decode_error: Literal["strict", "ignore", "replace"] = "strict",
        strip_accents: Any = None,
        lowercase: bool = True,
        preprocessor: Function | None = None,
        tokenizer: Function | None = None,
        stop_words: Any = DEFAULT_STOP_WORDS,
        token_pattern: str | None = LETTERS,
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: Any = "word",
        binary: bool = False,
        dtype: Any = np.int64,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.mechanism = mechanism
        self.max_words_per_unit = max_words_per_unit
        self.max_words = max_words
        self.cutoff = cutoff
        self.public_vocabulary = public_vocabulary
        self.random_state = random_state
        self.input = input
        self.encoding = encoding
        self.decode_error = decode_error
        self.strip_accents = strip_accents
        self.lowercase = lowercase
        self.preprocessor = preprocessor
        self.tokenizer = tokenizer
        self.stop_words = stop_words
        self.token_pattern = token_pattern
        self.ngram_range = ngram_range
        self.analyzer = analyzer
        self.binary = binary
        self.dtype = dtype
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, raw_documents: Any, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Learn the vocabulary in one pass; no document is kept.

        While the fit lasts, the numbers of each document's words are in memory, not its text. The budget of an open
        `PrivacyAccountant` is checked before a document is read and charged before the release.

        Parameters
        ----------
        raw_documents : iterable, data frame of one column, or callable that returns one
            Texts, or what `input` says.
        y : None
            Ignored.
        groups : array-like of shape (n_documents,), default=None
            The user of each document: the guarantee then is for all documents of one user together.

        Returns
        -------
        self : DPCountVectorizer
            The fitted estimator.

        Raises
        ------
        BudgetExceededError
            If an open accountant cannot afford the fit. No document was read.
        ValueError
            If nothing was selected; the message says which epsilon would release what. Or for parameters or documents
            that are not as described: a data frame of several columns, or a missing text, whose row it names. Then
            nothing was spent.
        """
        self._fit(raw_documents, groups)
        return self

    def _fit(self, raw_documents, groups):
        """Fit, and return the documents, to be counted."""
        charge = self._budget_charge("document" if groups is None else "user")
        warn_of_missing_groups(self, groups)
        self._counter({"": 0}).fit([])  # checks the parameters, warns of those without effect
        given = raw_documents is not None or self.public_vocabulary is None
        documents = self._texts(raw_documents) if given else None
        if self.public_vocabulary is not None:
            words, weights = self._public_words(), None
        else:
            words, weights, documents = self._private_words(documents, groups, charge, self._start())
        self.vocabulary_ = {word: column for column, word in enumerate(words)}
        self._set_selected(weights, groups, charge)
        return documents

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set nothing: counts are sparse, and no data frame, whatever the steps behind them are to return.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            Taken for the pipelines that hand it to all steps.

        Returns
        -------
        self : DPCountVectorizer
            The estimator.
        """
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, raw_documents: Any, y: Any = None, groups: ArrayLike | None = None) -> Any:
        """Learn the vocabulary and count; n-grams that are selected by levels are counted in a second pass.

        Parameters
        ----------
        raw_documents : iterable that can be read twice, or callable that returns one
            Texts, or what `input` says. Files cannot be read twice: give a callable that opens them.
        y : None
            Ignored.
        groups : array-like of shape (n_documents,), default=None
            As in `fit`.

        Returns
        -------
        X : sparse matrix of shape (n_documents, n_selected)
            Counts.

        Raises
        ------
        BudgetExceededError
            As `fit`.
        ValueError
            As `fit`, or if `raw_documents` can be read only once.
        """
        if isinstance(raw_documents, Iterator):
            raise ValueError(
                "raw_documents must be readable twice, once to learn the vocabulary and once to count; got an iterator."
                " Give a list, or a callable that returns a new iterator."
            )
        documents = self._fit(raw_documents, groups)
        return self._count(documents if isinstance(documents, ReadTexts) else self._texts(raw_documents))

    def transform(self, raw_documents: Any) -> Any:
        """Count the selected words, one document at a time.

        Parameters
        ----------
        raw_documents : iterable, data frame of one column, or callable that returns one
            Texts, or what `input` says.

        Returns
        -------
        X : sparse matrix of shape (n_documents, n_selected)
            Counts; other words are ignored. Its attribute `words`, and that of its slices, has the words of the
            columns, so that a model in the same pipeline can look them up in a `PublicPrior`.

        Raises
        ------
        NotFittedError
            If the vectorizer is not fitted.
        ValueError
            For documents that are not as described, as in `fit`.
        """
        check_is_fitted(self)
        return self._count(self._texts(raw_documents))

    def _count(self, documents):
        """Return the counts of documents, which may have been read."""
        if isinstance(documents, ReadTexts):
            counts = documents.among(list(self.vocabulary_)).counts(self.n_jobs)
        else:
            counts = count_words(documents, self._counter(None), self.vocabulary_, n_jobs=self.n_jobs)
        if self.binary:
            counts.data[:] = 1
        X = NamedCounts(counts.astype(self.dtype))
        X.words = self.get_feature_names_out()
        return X

    def _columns(self):
        check_is_fitted(self)
        return self.vocabulary_

    def build_analyzer(self) -> Function:
        """Return the function that makes words of a document.

        Returns
        -------
        analyze : callable
            As `CountVectorizer.build_analyzer`.
        """
        return self._counter(None).build_analyzer()

    def _texts(self, raw_documents):
        """Return the documents, each checked when it is read; those that have been read as they are."""
        if isinstance(raw_documents, ReadTexts):
            return raw_documents
        own = any(callable(part) for part in (self.analyzer, self.tokenizer, self.preprocessor))
        return check_texts(raw_documents, input=self.input, own=own)

    def _check_words(self, words):
        """Refuse what a function of the user's made that is no word, and warn of clauses; nothing is spent yet."""
        strange = next((type(word).__name__ for word in words if not isinstance(word, str)), None)
        if strange is not None:
            raise ValueError(
                f"tokenizer, or analyzer, must make str of a text; got a {strange}. Give the words of its tokens."
                " Nothing was spent."
            )
        if self.analyzer == "word" and self.tokenizer is None:
            hint_at_clauses(words)

    def _counter(self, vocabulary, **changed):
        return CountVectorizer(vocabulary=vocabulary, **(self._text_settings() | changed))

    def _text_settings(self):
        """Return the parameters of a `CountVectorizer` that cuts texts as this one does.

        Defaults that have no use beside another setting are left out, so that scikit-learn does not warn of them.
        """
        settings = {name: getattr(self, name) for name in TEXT_PARAMETERS}
        words, pattern = settings["stop_words"], settings["token_pattern"]
        if isinstance(words, str) and words != DEFAULT_STOP_WORDS:
            raise ValueError(
                f"stop_words must be {DEFAULT_STOP_WORDS!r}, a list of words or None; got {words!r}. For another"
                " language give skdplda.datasets.stop_words('de'), by its code of two letters."
            )
        if self.analyzer != "word":
            settings |= {"stop_words": None if isinstance(words, str) else words}
            settings |= {"token_pattern": SKLEARN_PATTERN} if pattern in (None, LETTERS) else {}
        elif self.tokenizer is not None:
            settings |= {"token_pattern": None} if pattern == LETTERS else {}
        elif pattern is None:
            settings["token_pattern"] = SKLEARN_PATTERN
        return settings

    @property
    def _n_levels(self):
        by_levels = self.analyzer == "word" and np.isfinite(self.epsilon) and has_levels(self.method, self.mechanism)
        if not by_levels:
            return 1
        lengths = tuple(self.ngram_range)
        if len(lengths) != 2 or not all(map(is_integer, lengths)) or not 1 <= lengths[0] <= lengths[1]:
            raise ValueError(f"ngram_range must be two integers, 1 <= least <= most; got {self.ngram_range!r}.")
        return lengths[1]

    def _private_words(self, documents, groups, charge, randomness):
        """Return the selected words, sorted, their noisy weights, and the documents: read, but for levels."""
        n_levels = self._n_levels
        counter = self._counter(None, ngram_range=self.ngram_range if n_levels == 1 else (1, 1))
        if isinstance(documents, ReadTexts):
            read = documents.without(counter.get_stop_words() or (), LONGEST_WORD)
        else:
            read = read_texts(documents, counter, longest=LONGEST_WORD, n_jobs=self.n_jobs)
        self._check_words(read.names)
        if n_levels == 1:
            documents = read
            chosen, weights, rounds = self._select(read.counts(self.n_jobs), groups, charge, randomness)
            words = [read.names[j] for j in chosen]
        else:
            tokens = Tokens(read)
            words, weights, rounds = [], [], []
            for level in range(n_levels):
                X = tokens.counts()
                found = self._select_level(X, groups, level) if level else self._select(X, groups, charge, randomness)
                if level + 1 >= self.ngram_range[0]:
                    words += [tokens.names[j] for j in found[0]]
                    weights, rounds = np.append(weights, found[1]), np.append(rounds, found[2])
                tokens.ascend(found[0])
            if not words:
                raise EmptySelectionError(
                    f"No n-gram of {self.ngram_range[0]} words or more was used by enough documents (users) to be"
                    " released; the budget is spent. Lower the least length in ngram_range, or take a larger epsilon."
                )
        kept = self._heaviest(words, weights, rounds)
        order = sorted(kept, key=words.__getitem__)  # the order of appearance is not covered
        return [words[i] for i in order], weights[order], documents

    def _public_words(self):
        words = list(self.public_vocabulary)
        if not words or not all(isinstance(word, str) for word in words):
            kinds = sorted({type(word).__name__ for word in words})
            raise ValueError(f"public_vocabulary must be a list of words; got {len(words)} entries of {kinds}.")
        refuse_repetitions(words)
        try:
            check_public_words(self, words, "public_vocabulary")
        except ValueError as error:
            raise ValueError(f"{error}.") from None
        return sorted(words)


DPCountVectorizer.__init__ = hinting(DPCountVectorizer.__init__, HINTS)
