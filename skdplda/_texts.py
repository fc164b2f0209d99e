"""Checks of raw texts, before anything is spent on them; the words that transformers of texts count."""

import os
import re
from itertools import islice
from typing import Any
from unicodedata import east_asian_width

import numpy as np
import pandas as pd
import scipy.sparse as sp

from skdplda._checks import kind_of
from skdplda._warnings import warn

DEFAULT_STOP_WORDS = "english"
# Words of two characters or more that begin with a letter: no numbers. `\w` lacks accents that are characters of their
# own, and the vowel signs of Arabic, of the scripts of India and of Thai, Lao, Burmese and Khmer.
SIGNS = (
    (0x300, 0x36F),
    (0x64B, 0x65F),
    (0x900, 0x963),
    (0x966, 0xE3A),
    (0xE40, 0xECE),
    (0x1000, 0x1049),
    (0x1780, 0x17D3),
)
LETTERS = r"(?u)\b[^\W\d_][\w" + "".join(rf"\u{first:04x}-\u{last:04x}" for first, last in SIGNS) + "]+"
# What a clause is in scripts without spaces between words, where it is cut as one word: Han and kana; Thai, Lao, Khmer
# and Burmese, whose letters are more. Words are shorter.
CLAUSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{6,}|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]{16,}")
LOOKED_AT = 1000  # different words
KINDS = {"filename": "the name of a file", "file": "an open file"}  # by `input`; else "content"


class WordColumnsMixin:
    """Transformers from texts to counts of words: `_columns` returns the words in the order of columns."""

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The words, in the order of the columns.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        words : ndarray of shape (n_words,), object
            The vocabulary.
        """
        return np.array(list(self._columns()), dtype=object)  # type: ignore[attr-defined]


class NamedCounts(sp.csr_matrix):
    """Counts that have the `words` of their columns, (n_words,), for the next step of a pipeline; so have slices."""

    words = None

    def __getitem__(self, key):
        found, columns = super().__getitem__(key), slice(None)
        if isinstance(key, tuple):
            columns = key[1] if len(key) == 2 else None
        elif np.ndim(key) > 1:  # single entries
            columns = None
        if self.words is not None and columns is not None and isinstance(found, NamedCounts):
            words = np.atleast_1d(np.asarray(self.words)[columns])
            found.words = words if words.shape == found.shape[1:] else None
        return found


def words_of(X):
    """Return the words that a matrix of counts, or a `UnitMatrix`, has for its columns; None of anything else."""
    return getattr(X, "words", None) if sp.issparse(X) or hasattr(type(X), "to_counts") else None


def check_texts(documents, name="raw_documents", *, input="content", own=False):
    """Return an iterable of documents, checked as they are read; read twice if `documents` can be.

    A data frame, or an array, of one column is that column. Other tables are refused, with the names of their columns:
    to iterate over a frame gives its column names, which would be paid for as if they were texts. A missing text (None,
    NaN, NA, NaT) is refused with its row, counted from 0, and so is what is no text. Whoever holds the documents sees
    the ValueError before anything is spent; it shows nothing of a text. `input` is as in `CountVectorizer`; with `own`,
    a function of the user's cuts documents, which then may be of any kind, but not missing.
    """
    documents = documents() if callable(documents) else documents
    documents = _one_column(documents, name)
    if isinstance(documents, (str, bytes)):
        raise ValueError(f"{name} must be an iterable of documents; got one string. Put it into a list.")
    if not hasattr(documents, "__iter__"):
        raise ValueError(f"{name} must be an iterable of documents; got {kind_of(documents)}.")
    return _Checked(documents, name, input, own)


def holds_texts(X):
    """Whether an array or a data frame of two dimensions has a text in it: it then is no matrix of counts."""
    values = X.to_numpy() if hasattr(X, "columns") else X
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    return kind in "SU" if kind != "O" else any(isinstance(value, (str, bytes)) for value in values.flat)


def _one_column(documents, name):
    """Return the only column of a table, and anything else as it is."""
    shape = getattr(documents, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2:
        return documents
    columns = getattr(documents, "columns", None)
    if shape[1] != 1:
        if columns is None:
            raise ValueError(f"{name} must be texts; got an array of shape {shape}. Give one column of texts.")
        first = next(iter(columns), "text")
        raise ValueError(
            f"{name} must be texts; got a data frame with columns {', '.join(map(repr, columns))}. Give the one that"
            f" holds the texts, such as df[{first!r}]."
        )
    if columns is None:
        if hasattr(documents, "nnz"):
            raise ValueError(f"{name} must be texts; got a sparse matrix of shape {shape}. Counts need no vectorizer.")
        return np.asarray(documents)[:, 0]
    return documents.iloc[:, 0] if hasattr(documents, "iloc") else documents[columns[0]]


class _Checked:
    """Documents, each looked at when it is read."""

    def __init__(self, documents, name, input, own):
        self._documents, self._name, self._own = documents, name, own
        self._kind = KINDS.get(input, "a text")
        self._types = {"filename": (str, bytes, os.PathLike), "file": ()}.get(input, (str, bytes))
        self._is_file = input == "file"

    def __iter__(self):
        for row, document in enumerate(self._documents):
            if isinstance(document, self._types) or (self._is_file and hasattr(document, "read")):
                yield document
            elif pd.api.types.is_scalar(document) and pd.isna(document):
                raise ValueError(
                    f"{self._name} must hold {self._kind} in each row; row {row}, counted from 0, has none (it is"
                    " missing). Leave such rows out, dropna() in pandas, or make them empty texts, fillna('')."
                )
            elif self._own:
                yield document
            else:
                raise ValueError(
                    f"{self._name} must hold {self._kind} in each row; row {row}, counted from 0, is of type"
                    f" {type(document).__name__}. Lists of words need analyzer=list."
                )

    def __len__(self):
        return len(self._documents)


def hint_at_clauses(words):
    """Warn where more than a third of words are clauses, of a script without spaces; it shows none of them."""
    words = list(islice(words, LOOKED_AT))
    if 3 * sum(CLAUSE.search(word) is not None for word in words) > len(words):
        warn(
            "the texts have no spaces between words, as in Chinese, Japanese or Thai, and whole clauses count as words:"
            " hardly one of them will be selected. Give tokenizer, a function that cuts a text into words, such as"
            " jieba.lcut; doc/vocabulary.rst has it for several languages.",
            UserWarning,
        )


def most_frequent(X, n):
    """Return the columns of the largest sums, at most n, ascending; of equal ones those that come first."""
    counts = np.asarray(X.sum(axis=0)).ravel()
    return np.sort(np.argsort(-counts, kind="stable")[:n])


def wide(text):
    """Return how many letters a text is wide; those of Chinese, Japanese and Korean are twice as wide."""
    return len(text) + [east_asian_width(letter) in "WF" for letter in text].count(True)
