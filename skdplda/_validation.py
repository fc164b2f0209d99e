"""Checks of what users pass. The only file that names scikit-learn's semi-private helpers."""

# ruff: noqa: F401

import hashlib
import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Set
from copy import copy
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._param_validation import Interval as AnyInterval
from sklearn.utils._param_validation import Options, StrOptions
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from skdplda._checks import LARGEST_COUNT, check_structure, is_integer, is_real, kind_of
from skdplda._texts import words_of
from skdplda._types import Function
from skdplda._warnings import warn
from skdplda.exceptions import PrivacyLeakWarning

# Control characters, separators of lines, and marks that turn the direction of writing.
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
COLUMNS = "give the columns of fit, in its order; CountVectorizer(vocabulary=words) counts given words."
MISSING = "groups has missing entries; give each document of unknown origin a group of its own."
VOID = {"nan", "none", "null", "nat", "na", "n/a", "<na>"}  # texts that missing values become
WIDE = 1000  # columns of integers, from which on a sparse matrix is of counts: no embedding is like that
MOST_DIMENSIONS = 2**16  # of an embedding: sums of squares are exact
# By fitted estimator, for as long as this process keeps it: its guarantee, and a digest of who wrote which document.
FITTED_GROUPS: WeakKeyDictionary[Any, tuple[Any, bytes]] = WeakKeyDictionary()
Method = TypeVar("Method", bound=Function)


class Interval(AnyInterval):
    """Numbers of an interval, as scikit-learn's, that arithmetic can take: no bools, and no number that no float holds.

    Without a right bound, integers go up to 2**31 - 1, which kernels hold. NaN, and what a float rounds out of the
    interval, such as a tiny fraction to 0, is outside.
    """

    def __init__(self, kind, left, right, *, closed):
        if kind is Integral and right is None:
            right, closed = LARGEST_COUNT, {"left": "both", "neither": "right"}[closed]
        super().__init__(kind, left, right, closed=closed)

    def is_satisfied_by(self, val):
        """Whether a value is one of them."""
        if not isinstance(val, self.type) or isinstance(val, bool):
            return False
        try:
            return (val if self.type is Integral else float(val)) in self
        except OverflowError:
            return False


class PriorNumber(AnyInterval):
    """A number that is no bool; `check_prior` refuses those beyond what priors can be."""

    def is_satisfied_by(self, val):
        """Whether a value is one."""
        return is_real(val)


class IntegerSeed(AnyInterval):
    """An integer that is no bool: True would be the seed 1."""

    def is_satisfied_by(self, val):
        """Whether a value is one."""
        return is_integer(val) and super().is_satisfied_by(val)


class NamedKinds(Options):
    """Instances of some classes, which errors name as users import them, with a hint at what else was meant."""

    def __init__(self, kinds, hint):
        self.kinds, self.hint, self.hidden = kinds, hint, False

    def is_satisfied_by(self, val):
        """Whether a value is one of them."""
        return isinstance(val, self.kinds)

    def __str__(self):
        return f"an instance of {' or '.join(kind.__name__ for kind in self.kinds)} ({self.hint})"


THREADS = [Interval(Integral, -LARGEST_COUNT, None, closed="left"), None]  # for n_jobs
PRIOR = [PriorNumber(Real, 1e-30, 1e30, closed="both"), None]  # for a prior that is a number
SEED = [IntegerSeed(Integral, 0, None, closed="left"), bytes, np.random.RandomState, None]  # for random_state


class FittedTopics(NamedTuple):
    """The topics of a fitted model, which are distributions: looking would take longer than scoring a document."""

    topic_word: np.ndarray


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Method], Method]:
    """Return scikit-learn's decorator, which checks parameters; type checkers see the method as it is."""
    return _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)


def check_public_words(vectorizer, words, name, places=None):
    """Raise ValueError for an entry of a public vocabulary that the vectorizer finds in no text.

    A vocabulary is released together with the topics. An entry that cannot come out of a text, such as a whole line of
    a file, has no place there: it may be a document. So the vectorizer's own analyzer reads each entry, and must give
    it back as it is: alone, or as one of the n-grams.

    The vectorizer, a CountVectorizer or any with `build_analyzer`, need not be fitted. Its functions, if a user gave
    some, may want documents that are lists of words: an entry then may come back from a list of it alone, and one that
    makes them fail is left to the assumptions. The message has the vocabulary's name and the entries' places, numbers
    from 0 if None, and does not show the entries.
    """
    reader = copy(vectorizer)
    if getattr(reader, "input", "content") != "content":
        reader.input = "content"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transform warns of stop words that do not fit
        analyze = reader.build_analyzer()
    own = any(callable(getattr(vectorizer, part, None)) for part in ("analyzer", "tokenizer", "preprocessor"))

    def makes(word):
        try:
            return word in list(analyze(word)) or (own and word in list(analyze([word])))
        except Exception:
            if own:
                return True
            raise

    foreign = [place for place, word in enumerate(words) if not makes(word)]
    if foreign:
        shown = [place if places is None else places[place] for place in foreign[:5]]
        raise ValueError(
            f"{name} has {len(foreign)} of {len(words)} entries that {type(vectorizer).__name__} finds in no text (the"
            f" first: {', '.join(map(str, shown))}): it would cut them, change them or leave them out. Entries are"
            " released, so they must be words, not documents. Leave these out, or change how texts are cut"
            " (token_pattern, ngram_range, lowercase, stop_words)"
        )


def check_memory(n_topics, n_words):
    """Raise MemoryError where a model of so many topics and words cannot be held, before a budget is charged for it.

    Memory that is reserved and not written to takes no time. What a fit needs beside the model is not known here.
    """
    try:
        np.empty((2, n_topics, n_words))  # `components_` and `topic_word_`
    except MemoryError:
        raise MemoryError(
            f"a model of {n_topics} topics and {n_words} words takes {2 * 8 * n_topics * n_words / 2**30:.3g} GiB, more"
            " than there is. Use fewer topics (n_components) or fewer words. Nothing was spent."
        ) from None


def check_matrix(estimator, X, *, reset=True, finite=True):
    """Return X as scikit-learn's `validate_data` does, CSR where it is sparse; errors do not show what X holds.

    Without `finite`, numbers may be NaN or infinite.
    """
    check_structure(X)
    if not reset and finite and is_plain(X, estimator):
        return X  # as validate_data would, in a tenth of its time, which a single document takes many times
    refuse_bags(X)
    if are_texts(X):
        raise ValueError(
            "X must be a matrix of word counts, one row a document; got texts. Count public words first, by"
            " CountVectorizer(vocabulary=...) in a pipeline, or let make_fdptm_pipeline(epsilon=..., delta=...) choose"
            " words privately: it takes texts."
        )
    if not hasattr(X, "columns") and getattr(X, "dtype", None) == np.float16:  # SciPy has no sparse matrices of these
        X = X.astype(np.float32)
    if sp.issparse(X) and X.format == "coo" and X.dtype.kind in "iu":  # sums of duplicates must not wrap around
        X = type(X)((_bounded(X.data).astype(np.int64), X.coords), shape=X.shape)
    options = {"accept_sparse": "csr", "dtype": "numeric", "ensure_all_finite": finite}
    try:
        checked = validate_data(estimator, X, reset=reset, **options)
    except OverflowError:
        kind = None
    except (ValueError, TypeError) as error:
        kind, said = type(error), re.sub(r"(?s)(to float: ).*", r"\1a text", str(error))
        said = re.sub(r"(?s)array=.*\n(?=Reshape)", "", said)
        said = re.sub(r"(?s)(contains NaN\.).*", r"\1 Put 0 where a word does not occur.", said)
        said = re.sub(
            r"( sample\(s\).* while a minimum of .* is required.*)\.$", r"\1: give at least one document.", said
        )
        said = re.sub(r"(is expecting \d+ features as input)\.$", rf"\1: {COLUMNS}", said)
        said = re.sub(r"(?s)(Complex data not supported)\n.*", r"\1: X must hold real numbers.", said)
        if re.search(r"to float: |float\(\) argument|with a sequence", said):
            said = f"X must be a matrix of numbers, and an entry is none: {said.rstrip('.')}."
        if said == str(error):
            raise
    else:
        if checked.dtype != object:
            return checked
        kind = None
    if kind is not None:
        raise kind(said)
    return check_matrix(estimator, _of_floats(X), reset=reset, finite=finite)


def _of_floats(X):
    """Return a matrix of Python objects as one of floats; of a data frame, a data frame.

    Python's numbers have any size, and how large a count is must not show: one that no float holds becomes 2**1000.
    """
    if sp.issparse(X):
        X = X.tocsr()
        return sp.csr_array((_of_floats(X.data[None])[0], X.indices.copy(), X.indptr.copy()), shape=X.shape)
    values = np.frompyfunc(_within_floats, 1, 1)(np.asarray(X, dtype=object))
    if any(value is None for value in values.flat):
        raise TypeError("X must be a matrix of numbers, and an entry is none.")
    values = values.astype(np.float64)
    return type(X)(values, index=X.index, columns=X.columns) if isinstance(X, pd.DataFrame) else values


def _within_floats(number):
    """Return a number as float, held at 2**1000 or minus that where it is finite and beyond; None for no number."""
    try:
        return float(number)
    except OverflowError:
        return -(2.0**1000) if number < 0 else 2.0**1000
    except (TypeError, ValueError):
        return None


def is_plain(X, estimator):
    """Whether X is CSR of finite numbers, without names and of the estimator's width: nothing is to be converted."""
    return (
        sp.issparse(X)
        and X.format == "csr"
        and X.dtype.char in "bBhHiIlLqQfd"
        and X.shape[0] > 0
        and X.shape[1] == getattr(estimator, "n_features_in_", 0) > 0
        and not hasattr(estimator, "feature_names_in_")
        and (X.dtype.kind != "f" or bool(np.isfinite(X.data).all()))
    )


def refuse_bags(X):
    """Raise ValueError for a gensim corpus, whose documents are lists of (number of a word, count)."""
    if not (isinstance(X, (list, tuple)) or type(X).__module__.startswith("gensim.")):
        return
    first = next((bag for bag in X if not isinstance(bag, (list, tuple)) or bag), None)
    if isinstance(first, (list, tuple)) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in first):
        raise ValueError(
            "X must be counts of shape (n_documents, n_words); got a gensim corpus."
            " skdplda.datasets.load_gensim_corpus(corpus, dictionary) has its counts as data, its words as"
            " feature_names."
        )


def check_embeddings(estimator, X, *, reset=True, name="X"):
    """Return embeddings, one row a document, as a matrix of any real numbers, CSR where it is sparse."""
    if are_texts(X):
        raise ValueError(
            f"{name} must have embeddings, one row a document; got texts. Embed them by a public model first:"
            " make_insights_pipeline(epsilon, delta, embedder=...) takes texts."
        )
    X = check_matrix(estimator, X, reset=reset, finite=False)
    if sp.issparse(X) and X.dtype.kind in "iu" and X.shape[1] > WIDE:  # by its type alone: an error is seen by all
        raise ValueError(
            f"{name} must have embeddings, one row a document; got a sparse matrix of integers with {X.shape[1]}"
            " columns, as word counts are. VIPSLDA takes counts, of DPCountVectorizer or of public words; for clusters"
            " embed the texts by a public model. Embeddings that are such a matrix must be given as floats."
        )
    if X.shape[1] > MOST_DIMENSIONS:
        raise ValueError(f"{name} must have at most {MOST_DIMENSIONS} dimensions; got {X.shape[1]}.")
    if X.dtype.kind == "c":
        raise ValueError(f"{name} must have real numbers; got complex ones.")
    if not sp.issparse(X):
        return X
    X = sp.csr_array(X)
    if not X.has_canonical_format:  # a row's sums are the same, whatever numbers blocks beside it have
        X = X.astype(np.float64)
        X.sum_duplicates()
    return X


def are_texts(X):
    """Whether a text, a list, or the first row of a table, is of texts, whole or cut into words, and not of numbers."""
    if isinstance(X, str):
        return True
    if isinstance(X, pd.DataFrame) or (isinstance(X, np.ndarray) and X.ndim == 2):
        first = (X.iloc[:1].to_numpy() if isinstance(X, pd.DataFrame) else X[:1]).ravel()
        return first.dtype.kind in "US" or any(
            isinstance(entry, str) and _within_floats(entry) is None for entry in first
        )
    listed = isinstance(X, (list, tuple, np.ndarray, pd.Series)) and getattr(X, "shape", None) != ()
    first = next(iter(X), None) if listed else None
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    return isinstance(first, str) or getattr(first, "dtype", np.dtype(float)).kind in "US"


def check_sample_weight(sample_weight, n_documents):
    """Return weights of documents as floats, (n_documents,), or raise ValueError; all may be 0."""
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_documents,) or not (np.isfinite(weight) & (weight >= 0)).all():
        raise ValueError(
            f"sample_weight must hold {n_documents} non-negative finite numbers, "
            f"got shape {weight.shape} and minimum {weight.min(initial=np.inf)}."
        )
    return weight


def check_same_rows(X, other_rows, name="counts"):
    """Refuse two data frames of other rows: a document would get the words, or the user, of another one."""
    one, other = getattr(X, "index", None), getattr(other_rows, "index", None)
    if hasattr(one, "equals") and hasattr(other, "equals") and len(one) == len(other) and not one.equals(other):
        raise ValueError(
            f"{name} must have the rows of X in the same order: the indices of the two data frames differ. Write"
            f" {name}.loc[X.index], or pass arrays whose rows belong together."
        )


def note_parameters(estimator):
    """Keep what a fit was given: parameters can be set at any time, and statements are about the fit."""
    parameters = estimator.get_params(deep=False).items()
    estimator._fitted_parameters = {name: value for name, value in parameters if not hasattr(value, "get_params")}


def fitted_parameter(estimator, name, default=None):
    """Return a parameter as it was when the estimator was fitted; as it is, where that is not known."""
    return getattr(estimator, "_fitted_parameters", {}).get(name, getattr(estimator, name, default))


def note_groups(estimator, units):
    """Remember, outside of the estimator, which documents belonged together in its fit; None makes it forget.

    Two steps of a pipeline can so be compared. Who wrote what is data: nothing of it is in the estimator or its pickle.
    """
    FITTED_GROUPS.pop(estimator, None)
    if units is not None:
        digest = hashlib.blake2b(unit_of_documents(units).tobytes(), digest_size=16).digest()
        FITTED_GROUPS[estimator] = estimator.privacy_guarantee_, digest


def noted_groups(estimator):
    """Return what identifies the users of an estimator's fit; None where this process does not know them."""
    guarantee, digest = FITTED_GROUPS.get(estimator, (None, None))
    return digest if guarantee is getattr(estimator, "privacy_guarantee_", None) else None  # else it was fitted again


def copy_of_fitted(estimator):
    """Return a copy that shares the arrays of a fitted estimator; `noted_groups` are its own, too."""
    check_is_fitted(estimator)
    model = copy(estimator)
    if estimator in FITTED_GROUPS:
        FITTED_GROUPS[model] = FITTED_GROUPS[estimator]
    return model


def check_counts(estimator, X, *, reset, copy=True):
    """Return X as CSR of int32 counts with int64 pointers and int32 indices, duplicates summed, X untouched.

    Fractions are rounded, with a warning. Larger counts become 2**31 - 1, without one: how large a count is must not
    show. With `reset`, as in `fit`, the estimator's `n_features_in_` and `feature_names_in_` are set, and words that X
    has for its columns are noted; else checked.
    Without `copy` arrays may be those of X: not where noise is for what they hold now, for X may change meanwhile.
    TypeError for what lies on workers; ValueError for NaN, infinity, negative counts, no documents, no words, or a
    sparse matrix whose arrays do not describe one.
    """
    words = words_of(X) if reset else None
    if hasattr(type(X), "__dask_graph__") or hasattr(type(X), "_on_workers"):
        raise TypeError(
            f"{type(estimator).__name__} takes these data as a matrix in memory; got {kind_of(X)}, which is on"
            " workers. Call compute() on it, or map the method over its blocks."
        )
    if hasattr(type(X), "blocks"):  # `DiskCounts`
        raise TypeError(
            f"{type(estimator).__name__} takes these data as a matrix in memory; got {kind_of(X)}, which is on"
            " disk. VIPSLDA fits documents on disk, and transform of any model takes them."
        )
    X = check_matrix(estimator, X, reset=reset)
    whom = f"{type(estimator).__name__}. Topic models need word counts"
    if not sp.issparse(X) or X.data.min(initial=0) < 0:
        check_non_negative(X, whom)
    X = sp.csr_array(X)
    X = X if X.has_canonical_format else _summed(X.copy())
    if X.dtype.kind == "f":
        rounded = np.rint(X.data)
        if not np.array_equal(rounded, X.data):
            warn(
                f"{type(estimator).__name__} counts words; the fractional values in X were rounded. Pass counts,"
                " for instance from CountVectorizer, not weights such as tf-idf.",
                UserWarning,
            )
    else:
        rounded = X.data
    data, indices = (part.astype(np.int32, copy=copy) for part in (_bounded(rounded), X.indices))
    counts = sp.csr_array((data, indices, X.indptr), shape=X.shape)
    counts.indptr, counts.indices = X.indptr.astype(np.int64), indices  # the constructor may narrow or widen them
    if reset:
        note_words(estimator, words)
    return counts


def note_words(estimator, words):
    """Note the words that the columns of data have, in place of those of an earlier fit; None: they have none."""
    vars(estimator).pop("_words_of_columns", None)
    if words is not None:
        estimator._words_of_columns = words


def _bounded(values):
    """Return finite values, at most LARGEST_COUNT."""
    if not values.size or int(values.max()) <= LARGEST_COUNT:
        return values
    return np.minimum(values.astype(np.float64) if values.dtype.kind == "f" else values, LARGEST_COUNT)


def _summed(X):
    """Return X with duplicates summed, which may change it; integers do not wrap around, and floats stay finite."""
    if not X.has_canonical_format:
        if X.dtype.kind in "iu":
            X.data = _bounded(X.data).astype(np.int64)
        elif X.dtype.kind == "f":
            X.data = np.where(np.isfinite(X.data), np.minimum(X.data, float(LARGEST_COUNT)), X.data).astype(np.float64)
        X.sum_duplicates()
    return X


def check_block(block, name):
    """Return a block of documents as canonical CSR, or raise a ValueError that says what it is not, with its name.

    Counts are integers from 0; larger ones become 2**31 - 1, as in `check_counts`. The block is not changed.
    """
    check_structure(block, name)
    X = sp.csr_array(block)
    X = X if X.has_canonical_format else _summed(X.copy())
    values = X.data
    if values.dtype.kind not in "biuf" or (
        values.size and not (values.min() >= 0 and np.isfinite(values).all() and (values == np.rint(values)).all())
    ):
        raise ValueError(f"{name} must hold non-negative integer counts.")
    bounded = _bounded(values)
    return X if bounded is values else sp.csr_array((bounded, X.indices, X.indptr), shape=X.shape)


def counts_of(X):
    """Return word counts, those of documents whose counts are of semantic units too."""
    return X.to_counts() if hasattr(X, "to_counts") else X


def check_groups(groups, n_documents):
    """Return (start, documents): the documents of each privacy unit, units in the order of their sorted names.

    `start`, of shape (n_units + 1,), points into `documents`, which has the numbers of documents, unit by unit.
    `groups` has the user of each document; None makes each document its own unit. ValueError if the length differs, a
    group is missing (None, NaN, NaT or pandas' NA, or what is not equal to itself) or blank, or numbers are of a type
    that cannot tell such large ones apart. PrivacyLeakWarning for names that look like missing ones made texts, and for
    names that differ in white space, in the form of their accents or in their type (1 and "1") only: two people may be
    one there, or one two.
    """
    if groups is None:
        return np.arange(n_documents + 1, dtype=np.int64), np.arange(n_documents, dtype=np.int64)
    groups = names_of(groups)
    if groups.shape != (n_documents,):
        raise ValueError(f"groups must have one entry a document, shape ({n_documents},); got {groups.shape}.")
    if groups.dtype.kind == "O":
        if any(is_missing(name) for name in groups):
            raise ValueError(MISSING)
        for kind in {type(name) for name in groups if isinstance(name, (float, np.floating))}:
            floats = [name for name in groups if type(name) is kind]
            _check_floats(np.array(floats, dtype=kind if issubclass(kind, np.floating) else float))
        names = _sorted(groups)
        number = {name: place for place, name in enumerate(names)}
        unit = np.fromiter((number[name] for name in groups), np.int64, n_documents)
        _check_kinds(names)
    else:
        if pd.isna(groups).any():
            raise ValueError(MISSING)
        _check_floats(groups)
        names, unit = np.unique(groups, return_inverse=True)
    _check_names([str(name) for name in names if isinstance(name, str)])
    documents = np.argsort(unit, kind="stable").astype(np.int64)
    start = np.concatenate([[0], np.cumsum(np.bincount(unit))]).astype(np.int64)
    return start, documents


def is_missing(name):
    """Whether a user's name is none: None, NaN, NaT, NA, whatever else is not equal to itself, or a tuple with one."""
    if isinstance(name, tuple):
        return any(map(is_missing, name))
    if name is None or name is pd.NA:
        return True
    try:
        return bool(name != name)
    except (TypeError, ValueError, ArithmeticError):  # of a signalling NaN of decimals
        return not isinstance(name, np.ndarray)


def _check_floats(groups):
    """Refuse numbers of users that are so large that floats do not tell different ones apart."""
    if groups.dtype.kind == "f" and np.abs(groups).max(initial=0) >= 2.0 ** (np.finfo(groups.dtype).nmant + 1):
        raise ValueError(
            f"groups must be integers or texts; got {groups.dtype} numbers so large that different ones are the same"
            " there, and two users one. Read them as texts, or as integers (Int64 in pandas)."
        )


def _check_kinds(names):
    """Warn of users that may be one person, once as a number and once as a text."""
    texts = {unicodedata.normalize("NFC", name).strip() for name in names if isinstance(name, str)}
    others = [name for name in names if not isinstance(name, str)] if texts else []
    alike = texts & {str(int(name)) if is_real(name) and name % 1 == 0 else str(name) for name in others}
    if alike:
        warn(
            f"groups has names that read alike and are of different types, as 1 and '1' ({len(alike)} of {len(names)}):"
            " if they are the same users, the guarantee is weaker for these. Give all names as texts, or all as"
            " numbers.",
            PrivacyLeakWarning,
        )


def _check_names(names):
    """Refuse blank names of users, and warn of those that may stand for none, or for one person twice."""
    if any(not name.strip() for name in names):
        raise ValueError(
            "groups has blank names; give each document of unknown origin a group of its own. All documents under one"
            " name are protected as those of one user."
        )
    void = sorted({name for name in names if name.strip().lower() in VOID})
    if void:
        warn(
            f"groups has users called {', '.join(map(repr, void))}: these look like missing values that were made"
            " texts, as by astype(str). All documents under one name are protected as those of one user, and other"
            " people's among them less than the guarantee says. Give each document of unknown origin a group of its"
            " own.",
            PrivacyLeakWarning,
        )
    spellings = len(names) - len({unicodedata.normalize("NFC", name).strip() for name in names})
    if spellings:
        warn(
            "groups has names that differ in white space around them, or in the form of their accents, only"
            f" ({spellings} of {len(names)}): if they are the same users, the guarantee is weaker for these. Write"
            " one name for each user, by str.strip() and unicodedata.normalize('NFC', name).",
            PrivacyLeakWarning,
        )


def names_of(groups):
    """Return the users of documents as an array, those of a list as the objects that they are.

    numpy would give all of a list one type: a single fraction among integers above 2**53 would merge other users.
    Whether two Python objects are equal is a matter of these two.
    """
    if isinstance(groups, (str, bytes, Mapping, Set)):
        raise ValueError(
            "groups must have one entry a document, in the order of the documents; got a"
            f" {type(groups).__name__}. Give a list or an array of users."
        )
    if np.ma.is_masked(groups):
        raise ValueError(MISSING)
    if hasattr(groups, "to_pylist"):  # of Arrow, whose missing entries are objects of its own
        groups = groups.to_pylist()
    if isinstance(groups, np.ndarray) or getattr(getattr(groups, "dtype", None), "kind", "O") != "O":
        return np.asarray(groups)
    entries = list(groups)
    names = np.empty(len(entries), object)
    for place, entry in enumerate(entries):
        names[place] = entry
    return names


def _sorted(groups):
    """Return the different names in order, by their types where these have none in common."""
    try:
        names = set(groups)
    except TypeError:
        raise ValueError("groups must have names of users that are hashable, such as numbers or texts.") from None
    try:
        return sorted(names)
    except (TypeError, ValueError):  # a tuple beside a number of numpy's gives the latter
        return sorted(names, key=lambda name: (str(type(name)), repr(name)))


def warn_of_missing_groups(estimator, groups):
    """Warn the caller of `fit` that groups were asked for by `set_fit_request`, and none came."""
    request = vars(estimator).get("_metadata_request")
    if groups is None and request is not None and request.fit.requests.get("groups") is True:
        warn(
            f"{type(estimator).__name__} was to get groups, and fit got none: the guarantee is for single documents,"
            " and weaker for users of several. skdplda.releases.PrivatePipeline takes fit(texts, groups=users);"
            " cross-validation and searches pass groups on only after"
            " sklearn.set_config(enable_metadata_routing=True).",
            PrivacyLeakWarning,
        )


def unit_of_documents(units):
    """Return the number of each document's unit, from `check_groups`' (start, documents)."""
    start, documents = units
    unit = np.empty(len(documents), np.int64)
    unit[documents] = np.repeat(np.arange(len(start) - 1), np.diff(start))
    return unit


def tokens_of(X):
    """Return (document_starts, words) of counts as from `check_counts`: one entry a token, in the order of words."""
    starts = np.concatenate([[0], np.cumsum(X.data, dtype=np.int64)])
    return starts[X.indptr], np.repeat(X.indices, X.data).astype(np.int32, copy=False)
