"""From text to semantic units, one document at a time."""

import re
from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer

from skdplda._checks import kind_of
from skdplda._texts import WordColumnsMixin
from skdplda._types import Function
from skdplda._validation import Interval, StrOptions, check_is_fitted, fit_context, note_parameters
from skdplda._warnings import warn
from skdplda.semantics._units import UnitMatrix

PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
# The end of a sentence: a full stop, exclamation or question mark (one of a run, closing quotes and brackets after it)
# and white space; or an empty line.
SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+|" + PARAGRAPH.pattern)


class SemanticUnitVectorizer(  # type: ignore[call-arg]
    WordColumnsMixin, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Cut documents into semantic units and count their words.

    A semantic unit [1]_ is a stretch of text that has one topic: some words, a sentence, a paragraph. Each document is
    cut on its own.

    Parameters
    ----------
    unit : int, "sentence", "paragraph" or callable, default=3
        What a unit is.

        * An integer n: n words in a row of one sentence; the last unit of a sentence may be shorter. 1 makes
          every word a unit.
        * "sentence": a sentence ends with a full stop, exclamation or question mark before white space, or with an
          empty line. Abbreviations end it too.
        * "paragraph": paragraphs are divided by empty lines.
        * A callable gets a document and returns its units, each a str or a list of words.

        Affects privacy: no, if chosen without the data.
    vocabulary : iterable of str, mapping of str to int, or None, default=None
        The words that count, in the order of the columns. None learns every word of the documents in `fit`: a word
        in the vocabulary then tells that a document has it. Affects privacy: yes.
    lowercase : bool, default=True
        Whether letters become small. Affects privacy: no.
    token_pattern : str, default=r"(?u)\\b\\w\\w+\\b"
        What a word is, as in :class:`~sklearn.feature_extraction.text.CountVectorizer`. Affects privacy: no.
    stop_words : {"english"}, list of str or None, default=None
        Words that are left out. Affects privacy: no.
    skip_unknown : bool, default=True
        Whether words outside of the vocabulary, stop words among them, take no place in an n-gram: then n
        counts words of the vocabulary, as in [1]_. False cuts before it looks words up, so that another word in the
        place of one changes no unit but its own, which `PCTD(noise_on="units")` needs for a guarantee about raw
        text. Affects privacy: yes, for `noise_on="units"`.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        Column of each word.

    See Also
    --------
    skdplda.PCTD : Topics of semantic units.

    References
    ----------
    .. [1] Shi, Su, Jiang, Zhou, Zhang and Tong (2019). Semantic Consistent Topic Discovery with Differential Privacy.
       Section 3.1 and, on trigrams within sentences, 4.1.

    Examples
    --------
    >>> from skdplda.semantics import SemanticUnitVectorizer
    >>> vectorizer = SemanticUnitVectorizer(unit="sentence", vocabulary=["cat", "sat", "dog"])
    >>> X = vectorizer.fit_transform(["The cat sat. The dog sat.", "A dog."])
    >>> X
    <UnitMatrix of 2 documents, 3 units and 3 words>
    >>> X.counts.toarray()
    array([[1, 1, 0],
           [0, 1, 1],
           [0, 0, 1]], dtype=int32)
    """

    _parameter_constraints = {  # noqa: RUF012
        "unit": [Interval(Integral, 1, None, closed="left"), StrOptions({"sentence", "paragraph"}), callable],
        "vocabulary": ["array-like", dict, set, None],
        "lowercase": ["boolean"],
        "token_pattern": [str],
        "stop_words": [StrOptions({"english"}), list, None],
        "skip_unknown": ["boolean"],
    }

    def __init__(
        self,
        unit: int | str | Function = 3,
        *,
        vocabulary: Any = None,
        lowercase: bool = True,
        token_pattern: str = r"(?u)\b\w\w+\b",
        stop_words: Any = None,
        skip_unknown: bool = True,
    ) -> None:
        self.unit = unit
        self.vocabulary = vocabulary
        self.lowercase = lowercase
        self.token_pattern = token_pattern
        self.stop_words = stop_words
        self.skip_unknown = skip_unknown

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = self.vocabulary is None
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Take the given vocabulary, or learn one.

        Parameters
        ----------
        X : iterable of str, of list of str, or of list of list of str
            Documents: text, words, or sentences of words. Words are taken as they are.
        y : None
            Ignored.

        Returns
        -------
        self : SemanticUnitVectorizer
            The fitted vectorizer.

        Raises
        ------
        ValueError
            If the vocabulary is empty or has a word twice, or X is one str.
        """
        if self.vocabulary is None:
            cut = self._cut(lambda word: True)
            words = sorted({word for document in _documents(X) for unit in cut(document) for word in unit})
            if not words:
                raise ValueError(
                    "X has no words to learn a vocabulary from; give documents with words, or a vocabulary."
                )
        else:
            words = self._given()
        self.vocabulary_ = {word: column for column, word in enumerate(words)}
        note_parameters(self)
        return self

    def fit_transform(self, X: Any, y: object = None) -> Any:
        """Take the given vocabulary, or learn one, and cut documents.

        Parameters
        ----------
        X : iterable of str, of list of str, or of list of list of str
            Documents, as in `fit`. An iterator is read once, into memory.
        y : None
            Ignored.

        Returns
        -------
        units : UnitMatrix of shape (n_documents, n_words)
            As from `transform`.
        """
        X = _documents(X)
        return super().fit_transform(list(X) if isinstance(X, Iterator) else X)

    def transform(self, X: Any) -> Any:
        """Cut documents and count the words of each unit.

        Parameters
        ----------
        X : iterable of str, of list of str, or of list of list of str
            Documents, as in `fit`.

        Returns
        -------
        units : UnitMatrix of shape (n_documents, n_words)
            A unit without words of the vocabulary stays, as an empty row, except where `skip_unknown` leaves no
            words to cut. A document without text has no units.

        Raises
        ------
        NotFittedError
            If there is no vocabulary.
        ValueError
            If X is one str, or `unit` does not suit documents that are lists of words.
        """
        self._validate_params()
        columns = self._columns()
        cut = self._cut(columns.__contains__)
        start, rows, indices = [0], [0], []
        for document in _documents(X):
            for unit in cut(document):
                indices += [columns[word] for word in unit if word in columns]
                rows.append(len(indices))
            start.append(len(rows) - 1)
        counts = sp.csr_array(
            (np.ones(len(indices), np.int32), np.array(indices, np.int32), rows), shape=(len(rows) - 1, len(columns))
        )
        return UnitMatrix(start, counts, list(columns))

    def build_analyzer(self) -> Function:
        """How words are found in text, without units.

        Returns
        -------
        analyzer : callable
            Takes a document of any kind that `transform` takes and returns its list of words.
        """
        every_word, stopped = self._words()

        def analyze(document):
            if isinstance(document, str):
                words = every_word(document)
            else:
                words = [word for part in document for word in ([part] if isinstance(part, str) else part)]
            return [word for word in words if word not in stopped]

        return analyze

    def _columns(self):
        """Return the column of each word; a given vocabulary needs no fit."""
        if self.vocabulary is None or hasattr(self, "vocabulary_"):
            check_is_fitted(self)
            return self.vocabulary_
        return {word: column for column, word in enumerate(self._given())}

    def _given(self):
        words = CountVectorizer(vocabulary=self.vocabulary).get_feature_names_out().tolist()
        capital = next((word for word in words if word != word.lower()), None) if self.lowercase else None
        if capital is not None:
            warn(
                f"vocabulary has {capital!r}, which text in small letters has not. Set lowercase=False.",
                UserWarning,
            )
        return words

    def _words(self):
        """Return the function that finds the words of a text, and the set of stop words."""
        options = {"lowercase": self.lowercase, "token_pattern": self.token_pattern}
        stopped = CountVectorizer(stop_words=self.stop_words).get_stop_words()
        return CountVectorizer(**options).build_analyzer(), frozenset(stopped or ())

    def _cut(self, known):
        """Return the function that cuts a document into lists of words; `known` tells words of the vocabulary."""
        every_word, stopped = self._words()
        unit, skip = self.unit, self.skip_unknown

        def words_of(part):
            return every_word(part) if isinstance(part, str) else _words_of_sentence(part)

        def pieces(document):
            if callable(unit):
                parts = unit(document)
                if isinstance(parts, str) or not isinstance(parts, Iterable):
                    raise ValueError(
                        f"unit must return a list of units, each a str or a list of words; got {type(parts).__name__}."
                    )
                return [words_of(part) for part in parts]
            if isinstance(document, str):
                parts = (PARAGRAPH if unit == "paragraph" else SENTENCE).split(document)
                return [words for words in map(words_of, parts) if words]
            document = _listed(document)
            flat = bool(document) and isinstance(document[0], str)
            if unit == "paragraph" or (unit == "sentence" and flat):
                lists = ", or lists of sentences" if flat else ""
                raise ValueError(f"unit={unit!r} needs documents that are text{lists}; got a list.")
            return [document] if flat else document

        def cut(document):
            found = pieces(document)
            if isinstance(unit, Integral):
                if skip:
                    found = [[word for word in words if word not in stopped and known(word)] for words in found]
                found = [words[i : i + unit] for words in found for i in range(0, len(words), unit)]
            return [[word for word in words if word not in stopped] for words in found]

        return cut


def _documents(X):
    if isinstance(X, str) or not isinstance(X, Iterable):
        found = "one str. Wrap a single document in a list" if isinstance(X, str) else f"a {type(X).__name__}"
        raise ValueError(f"X must be an iterable of documents; got {found}.")
    return X


def _listed(document):
    """Return a document without text as a list of words, or of lists of words."""
    if isinstance(document, bytes) or not isinstance(document, Iterable):
        raise ValueError(
            f"a document must be a str, a list of words or a list of sentences; got {type(document).__name__}."
        )
    parts = [part if isinstance(part, str) else _words_of_sentence(part) for part in document]
    if len({type(part) is list for part in parts}) > 1:
        raise ValueError("a document must be a list of words or a list of sentences; got one that has both.")
    return parts


def _words_of_sentence(sentence):
    words = list(sentence) if isinstance(sentence, Iterable) and not isinstance(sentence, bytes) else [sentence]
    for word in words:
        if not isinstance(word, str):
            raise ValueError(f"words of a document must be str; got {kind_of(word)}. Give texts, or lists of words.")
    return words
