"""Public knowledge that a private topic model may start from and be shrunk towards."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

from skdplda._arithmetic import eigen, log, matmul, mean, normal, orthonormal, total
from skdplda._checks import is_integer, kind_of
from skdplda._texts import check_texts, most_frequent
from skdplda._types import ArrayLike, Estimator, Iterable, Sequence
from skdplda._validation import HIDDEN, NamedKinds
from skdplda._warnings import warn

# Of public texts: the most words that are counted, or have vectors, which take a matrix of pairs of words: 400 MB.
MOST_WORDS = 10_000
# Fewer texts say too little about which words go together: they give frequencies and no vectors.
LEAST_TEXTS = 50
# A word in fewer texts has no vector: chance decides which other words are in those texts.
LEAST_DOCUMENTS = 5
# Rows of the matrix of pairs of words that are made at a time.
BLOCK_ROWS = 500
ASSOCIATION_LEVELS, DIRECTION_LEVELS = 2**10, 2**20  # steps of 1 in which both are whole numbers
MORE_DIRECTIONS = 10  # of the subspace than are asked for: the authors' advice
# Power iterations of the randomised decomposition. On 20 Newsgroups (8,000 words), 90 of 100 directions are then those
# of the exact one, up to a cosine of 0.97.
POWER_STEPS = 4
RESERVED = re.compile(r"topic_\d+")  # names of topics without one
SUMS = 1e-5  # that a distribution in single precision may be off
MOST_VALUE = 1e6  # of a number in a `WordPrior`, whose vectors have length 1 and whose distributions sum to 1


@dataclass(frozen=True, eq=False)
class WordPrior:
    """What a `PublicPrior` says of one vocabulary. Arrays are read-only; None stands for what it does not say.

    Parameters
    ----------
    vectors : ndarray of shape (n_words, n_dimensions) or None
        Rows of length 1, or zero for words without a vector.
    frequencies : ndarray of shape (n_words,) or None
        Positive, with sum 1.
    topics : ndarray of shape (n_seeded, n_words) or None
        Distributions over the words. A row without differences is a topic none of whose words is in the vocabulary.
    names : tuple of str
        Of the seeded topics; empty if there are none.
    n_dimensions : tuple of int
        Columns of each set of vectors, where several are joined; empty for one set. Documents vote on each.

    Raises
    ------
    ValueError
        If arrays are not as described, are for different numbers of words, have not as many topics as names, or not as
        many columns as the sets of vectors.
    """

    vectors: np.ndarray | None = None
    frequencies: np.ndarray | None = None
    topics: np.ndarray | None = None
    names: tuple[str, ...] = ()
    n_dimensions: tuple[int, ...] = ()

    def __post_init__(self):
        for name in ("vectors", "frequencies", "topics"):
            value = getattr(self, name)
            if value is None:
                continue
            array = np.asarray(value)
            if array.ndim != (1 if name == "frequencies" else 2) or array.dtype.kind != "f":
                raise ValueError(f"{name} of a WordPrior must be an array of floats as described; got {array.dtype} of"
                                 f" shape {array.shape}.")  # fmt: skip
            if not (np.isfinite(array).all() and array.any() and np.abs(array).max() <= MOST_VALUE):
                raise ValueError(f"{name} of a WordPrior must be finite numbers up to {MOST_VALUE:g}, not all zero.")
            if name != "vectors" and array.min() < 0:
                raise ValueError(f"{name} of a WordPrior must not be negative; got {array.min()}.")
            if name != "vectors" and (wrong := np.abs(total(array, axis=-1) - 1)).max() > SUMS:
                raise ValueError(f"{name} of a WordPrior must sum to 1; got a sum that is {wrong.max():.3g} off.")
            object.__setattr__(self, name, _fixed(array.copy()) if array.flags.writeable else array)
        n_topics = 0 if self.topics is None else len(self.topics)
        if len(self.names) != n_topics:
            raise ValueError(f"names of a WordPrior must be one for each of its {n_topics} topics; got {self.names!r}.")
        if self.names:
            _topic_names("names of a WordPrior", self.names)
        columns = 0 if self.vectors is None else self.vectors.shape[1]
        if self.n_dimensions and not (min(self.n_dimensions) > 0 and math.fsum(self.n_dimensions) == columns):
            raise ValueError(f"n_dimensions of a WordPrior must be positive and add up to the {columns} columns of its"
                             f" vectors; got {self.n_dimensions!r}.")  # fmt: skip
        if len(sizes := self._sizes()) > 1:
            raise ValueError(f"arrays of a WordPrior must be for the same words; got some for {sorted(sizes)} words.")

    def _sizes(self):
        """Return the numbers of words of the arrays."""
        arrays = self.vectors, self.frequencies, None if self.topics is None else np.transpose(self.topics)
        return {len(array) for array in arrays if array is not None}

    @property
    def n_words(self) -> int | None:
        """Number of words, None if there is no array."""
        return min(self._sizes(), default=None)

    @property
    def vector_sets(self) -> list[np.ndarray]:
        """The sets of vectors, each of shape (n_words, n_dimensions) with rows of length 1 or zero."""
        if self.vectors is None or len(self.n_dimensions) < 2:
            return [] if self.vectors is None else [self.vectors]
        return [unit_rows(part) for part in np.split(self.vectors, np.cumsum(self.n_dimensions)[:-1], axis=1)]

    def with_sets(self, sets: Sequence[np.ndarray]) -> "WordPrior":
        """Return this prior with other sets of vectors.

        Parameters
        ----------
        sets : sequence of ndarray of shape (n_words, n_dimensions)
            As `vector_sets` has them; empty for no vectors. Affects privacy: no, they are public or what was released
            chose them.

        Returns
        -------
        word_prior : WordPrior
            Its `vectors` are the sets side by side, scaled to length 1.

        Raises
        ------
        ValueError
            If the sets are for another number of words.
        """
        return replace(self, vectors=_joined(sets), n_dimensions=_columns(sets))

    @property
    def informed(self) -> np.ndarray:
        """Numbers of the seeded topics that have words in the vocabulary, ascending."""
        return np.flatnonzero([] if self.topics is None else np.ptp(self.topics, axis=1))

    def __repr__(self):
        digest = hashlib.sha256(repr((self.names, self.n_dimensions) if self.n_dimensions else self.names).encode())
        for array in (self.vectors, self.frequencies, self.topics):
            digest.update(b"none" if array is None else repr(array.shape).encode() + np.ascontiguousarray(array).data)
        return f"<WordPrior: sha256 {digest.hexdigest()[:12]}>"


class PublicPrior:
    """Public knowledge about words and topics, for a private topic model to start from and be shrunk towards.

    It costs no privacy, because it must not depend on the private texts: not on one of them, not on statistics of them,
    and not on a choice between priors that was made by looking at them. Nothing can check this. It is an assumption of
    the guarantee, and `description` states it.

    Make one by `from_texts`, `from_vectors`, `from_frequencies`, `from_topics` or `from_seed_words`, and join several
    by ``+``. A prior never changes. It is equal to another one with the same content.

    Parameters
    ----------
    vectors : sequence of (words, array of shape (n_words, n_dimensions)), default=()
        Sets of word vectors. Affects privacy: no, if it does not depend on the private texts.
    frequencies : sequence of (words, array of shape (n_words,)), default=()
        Tables of word frequencies. Affects privacy: no, if it does not depend on the private texts.
    topics : sequence of (names, words, array of shape (n_topics, n_words)), default=()
        Sets of topics. Affects privacy: no, if it does not depend on the private texts.

    Raises
    ------
    ValueError
        If all three are empty; if words or names are not distinct strings; if numbers are not finite, are negative
        where they are frequencies or topics, do not fit the words, or are all zero.

    See Also
    --------
    skdplda.semantics.word_similarity : Similar words for PCTD, from vectors.

    Examples
    --------
    >>> from skdplda import PublicPrior
    >>> seeds = PublicPrior.from_seed_words({"sport": ["hockey", "team"], "space": ["orbit", "moon"]})
    >>> prior = seeds + PublicPrior.from_frequencies({"the": 60, "team": 3, "moon": 2})
    >>> prior.topic_names
    ('sport', 'space')
    >>> prior.for_words(["hockey", "moon", "team", "tea"]).topics
    array([[0.5, 0. , 0.5, 0. ],
           [0. , 1. , 0. , 0. ]])
    """

    __slots__ = ("_digest", "_frequencies", "_topics", "_vectors")
    _digest: str
    _frequencies: tuple[tuple[Any, Any], ...]
    _topics: tuple[tuple[Any, Any, Any], ...]
    _vectors: tuple[tuple[Any, Any], ...]

    def __init__(
        self,
        *,
        vectors: Sequence[tuple] = (),
        frequencies: Sequence[tuple] = (),
        topics: Sequence[tuple] = (),
    ) -> None:
        layers = {
            "_vectors": tuple(_vector_layer(*layer) for layer in vectors),
            "_frequencies": tuple(_frequency_layer(*layer) for layer in frequencies),
            "_topics": tuple(_topic_layer(*layer) for layer in topics),
        }
        if not any(layers.values()):
            raise ValueError("a PublicPrior needs vectors, frequencies or topics; got none of them.")
        names = [name for layer in layers["_topics"] for name in layer[0]]
        if twice := _first_double(names):
            raise ValueError(
                f"names of topics must be distinct; got {twice[0]!r} twice. Give other names, by the keys of"
                " from_seed_words or names= of from_topics."
            )
        for name, value in layers.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_digest", _digest_of(layers))

    @classmethod
    def from_texts(
        cls, texts: Iterable[str], *, vectorizer: Estimator | None = None, n_dimensions: int = 100
    ) -> "PublicPrior":
        """Learn word frequencies, and word vectors where there are enough texts, from public texts.

        Vectors come from the positive pointwise mutual information of words in one document, and a truncated singular
        value decomposition of that matrix [1]_. Words in fewer than 5 documents have none; with fewer than 50 texts, no
        word has one. The same texts give the same prior, for any number of threads. Rounding differs between
        processors, so keep a prior by pickle where a checkpoint has to be read on another machine.

        Parameters
        ----------
        texts : iterable of str
            Public documents, and none of the private corpus. Affects privacy: no, if they do not depend on the private
            texts.
        vectorizer : CountVectorizer or any with `fit_transform` and `get_feature_names_out`, default=None
            How texts are cut into words; a clone of it is fitted. Words should be cut as in the private pipeline. None:
            ``CountVectorizer()``, of whose words the 10,000 most frequent are taken. Affects privacy: no, if it does
            not depend on the private texts.
        n_dimensions : int, default=100
            The most dimensions of the vectors; the 10,000 words that are in most documents have one at most. Affects
            privacy: no.

        Returns
        -------
        prior : PublicPrior
            Frequencies, and perhaps vectors.

        Raises
        ------
        ValueError
            If `texts` is a string, a data frame or empty, or has what is no text, no words are left, or `n_dimensions`
            is not an integer of at least 1.
        TypeError
            If `vectorizer` cannot be cloned.

        References
        ----------
        .. [1] Levy, Goldberg and Dagan (2015). Improving Distributional Similarity with Lessons Learned from Word
           Embeddings. Transactions of the ACL 3.

        Examples
        --------
        >>> from skdplda import PublicPrior
        >>> PublicPrior.from_texts(["the cat sat", "the dog sat"])
        <PublicPrior: frequencies of 4 words; sha256 ...>
        """
        if isinstance(texts, (str, bytes)) or hasattr(texts, "columns"):
            raise ValueError(f"texts must be a list of strings, one a document; got {kind_of(texts)}.")
        own = any(callable(getattr(vectorizer, part, None)) for part in ("analyzer", "tokenizer", "preprocessor"))
        texts = check_texts(texts, "texts", input=getattr(vectorizer, "input", "content"), own=own)
        if not is_integer(n_dimensions) or n_dimensions < 1:
            raise ValueError(f"n_dimensions must be an integer of at least 1; got {n_dimensions!r}.")
        texts = list(texts)
        if not texts:
            raise ValueError("texts must hold at least one document; got none.")
        reader = CountVectorizer() if vectorizer is None else clone(vectorizer)
        X = sp.csc_array(reader.fit_transform(texts)).astype(np.float64)
        columns = most_frequent(X, MOST_WORDS) if vectorizer is None else np.arange(X.shape[1])
        X, words = X[:, columns].tocsr(), [str(word) for word in reader.get_feature_names_out()[columns]]
        found = _vectors_of(X, words, n_dimensions) if len(texts) >= LEAST_TEXTS else None
        return cls(vectors=[] if found is None else [found], frequencies=[(words, X.sum(axis=0))])

    @classmethod
    def from_vectors(cls, keyed_vectors: Any) -> "PublicPrior":
        """Take word vectors that others trained, on public texts.

        Parameters
        ----------
        keyed_vectors : gensim.models.KeyedVectors, mapping of str to array, or pair (words, array)
            Vectors by word, or words and an array of shape (n_words, n_dimensions). They are kept as float32. A vector
            of zeros is none. Affects privacy: no, if they do not depend on the private texts.

        Returns
        -------
        prior : PublicPrior
            Vectors alone.

        Raises
        ------
        ValueError
            If it is of another kind, a word is not a string or occurs twice, vectors differ in length, a number is not
            finite, or no vector is left.

        Examples
        --------
        >>> from skdplda import PublicPrior
        >>> PublicPrior.from_vectors({"tea": [3, 4], "coffee": [4, 3]})
        <PublicPrior: vectors of 2 words; sha256 ...>
        """
        if hasattr(keyed_vectors, "key_to_index"):  # gensim's KeyedVectors
            return cls(vectors=[(keyed_vectors.index_to_key, keyed_vectors.vectors)])
        words, table = _named("keyed_vectors", keyed_vectors, "gensim's KeyedVectors, ", "vector")
        if isinstance(keyed_vectors, Mapping) and len(shapes := {np.shape(row) for row in table}) > 1:
            raise ValueError(f"vectors must all have the same length; got shapes {sorted(shapes)[:4]}.")
        return cls(vectors=[(words, table)])

    @classmethod
    def from_frequencies(cls, frequencies: Any) -> "PublicPrior":
        """Take public word frequencies.

        Parameters
        ----------
        frequencies : mapping of str to float, or pair (words, counts)
            Counts, or frequencies on any scale. Affects privacy: no, if they do not depend on the private texts.

        Returns
        -------
        prior : PublicPrior
            Frequencies alone.

        Raises
        ------
        ValueError
            If it is of another kind, a word is not a string or occurs twice, or counts are negative, not finite, or all
            zero.

        Examples
        --------
        >>> from skdplda import PublicPrior
        >>> PublicPrior.from_frequencies({"the": 6, "tea": 2}).for_words(["tea", "the"]).frequencies
        array([0.25, 0.75])
        """
        return cls(frequencies=[_named("frequencies", frequencies, "", "count")])

    @classmethod
    def from_topics(
        cls, topics: ArrayLike, words: Sequence[str], *, names: Sequence[str] | None = None
    ) -> "PublicPrior":
        """Take topics of a public model, or of an earlier release.

        The private model's first topics start from them, and are matched to them at the end, in this order.

        Parameters
        ----------
        topics : array-like of shape (n_topics, n_words)
            Not negative; rows are scaled to sum 1. Affects privacy: no, if they do not depend on the private texts; a
            release of other texts of the same people has its own cost, which adds up.
        words : sequence of str
            The words of the columns. Affects privacy: no, if they do not depend on the private texts.
        names : sequence of str, default=None
            Names of the topics. None: "topic 0", "topic 1" and so on. Affects privacy: no.

        Returns
        -------
        prior : PublicPrior
            Topics alone.

        Raises
        ------
        ValueError
            If a number is negative or not finite, a row is all zero, words or names are not distinct strings, a name
            is none that a release takes (empty, of control characters, or like ``topic_1``), or shapes do not fit.

        Examples
        --------
        >>> from skdplda import PublicPrior
        >>> prior = PublicPrior.from_topics([[3, 1], [0, 2]], ["tea", "milk"])
        >>> prior.for_words(["milk", "tea"]).topics
        array([[0.25, 0.75],
               [1.  , 0.  ]])
        """
        if names is None:
            names = [f"topic {k}" for k in range(np.shape(topics)[0] if np.ndim(topics) else 0)]
        return cls(topics=[(names, words, topics)])

    @classmethod
    def from_seed_words(cls, seed_words: Mapping[str, Sequence[str]]) -> "PublicPrior":
        """Guide topics by a few words each.

        Parameters
        ----------
        seed_words : mapping of str to sequence of str
            Words by the name of their topic. The first topic of the private model belongs to the first name, and so on.
            A word may guide several topics. Affects privacy: no, if they do not depend on the private texts: not if
            they were found by reading them.

        Returns
        -------
        prior : PublicPrior
            Topics alone, uniform over their words.

        Raises
        ------
        ValueError
            If it is empty or no mapping, a name or a word is not a string, the words of a topic are one string, none,
            or the same one twice.

        Examples
        --------
        >>> from skdplda import PublicPrior
        >>> PublicPrior.from_seed_words({"sport": ["hockey", "team"]})
        <PublicPrior: 1 topic; sha256 ...>
        """
        if not isinstance(seed_words, Mapping) or not seed_words:
            raise ValueError(
                f"seed_words must map names of topics to lists of words, at least one; got {_shown(seed_words)}."
            )
        lists = [_distinct(f"seed_words[{name!r}]", words) for name, words in seed_words.items()]
        column = {word: i for i, word in enumerate(dict.fromkeys(word for words in lists for word in words))}
        topics = np.zeros((len(lists), len(column)))
        for k, words in enumerate(lists):
            topics[k, [column[word] for word in words]] = 1
        return cls(topics=[(list(seed_words), list(column), topics)])

    @property
    def digest(self) -> str:
        """The SHA-256 of the content, in hexadecimal digits."""
        return self._digest

    @property
    def topic_names(self) -> tuple[str, ...]:
        """Names of the seeded topics, which a private model with noise gives to its first topics."""
        return tuple(name for names, _, _ in self._topics for name in names)

    @property
    def description(self) -> str:
        """What the prior holds and what a guarantee assumes of it, for privacy statements."""
        return f"public prior: {self._content()} (sha256 {self._digest[:12]}), assumed independent of the private texts"

    def for_words(self, words: Sequence[str]) -> WordPrior:
        """Return what the prior says of the words of a model.

        A word is looked up as it is, then in lower case, then whatever the case of both, with underscores read as
        spaces. Where an n-gram, joined by spaces or underscores, has no vector, it gets the mean of the vectors of its
        parts.

        Parameters
        ----------
        words : sequence of str
            The vocabulary, in the order of the model's columns. Affects privacy: no, it must be public or released.

        Returns
        -------
        word_prior : WordPrior
            Its `vectors` (n_words, n_dimensions) are float64. Each set of vectors has the mean over the words that it
            knows taken away, and is scaled to length 1. Several sets are joined, and scaled again; a word without a
            vector has zeros. `n_dimensions` are the columns of each set.
            Its `frequencies` (n_words,) sum to 1. A word that a table lacks counts as half of that table's smallest
            positive number: as seen half a time, in a table of counts. Several tables are averaged.
            Its `topics` (n_seeded, n_words) sum to 1 by row, and `names` are theirs.

        Raises
        ------
        ValueError
            If `words` is a string or empty, or words are not distinct strings.

        Warns
        -----
        UserWarning
            If none of the words is known, or all known ones have one vector, and everything is None; or if a seeded
            topic has no word in the vocabulary, and its row is uniform.
        """
        words = _distinct("words", words)
        sets = [_vectors_for(*layer, words) for layer in self._vectors]
        sets = [vectors for vectors in sets if vectors is not None]
        vectors = _joined(sets)
        tables = [_frequencies_for(*layer, words) for layer in self._frequencies]
        tables = [table for table in tables if table is not None]
        frequencies = mean(tables, axis=0) if tables else None
        names = self.topic_names
        rows = [_topics_for(known, topics, words) for _, known, topics in self._topics]
        topics = np.concatenate([np.zeros((0, len(words))), *rows])
        empty = ~topics.any(axis=1)
        if vectors is None and frequencies is None and empty.all():
            warn(
                f"the public prior knows none of the {len(words)} words, or has one and the same vector for those that"
                " it knows, which tells nothing: it has no effect. Are words cut and spelled alike?",
                UserWarning,
            )
            return WordPrior()
        for k in np.flatnonzero(empty):
            warn(
                f"none of the words of the seeded topic {names[k]!r} is in the vocabulary: it starts as other topics.",
                UserWarning,
            )
        topics[empty] = 1
        topics /= total(topics, axis=1, keepdims=True)
        return WordPrior(_fixed(vectors), _fixed(frequencies), _fixed(topics) if names else None, names, _columns(sets))

    def _content(self):
        """Return what the prior holds, in words."""
        found = []
        for what, layers in (("vectors", self._vectors), ("frequencies", self._frequencies)):
            if layers:
                found.append(f"{what} of {' and '.join(f'{len(layer[0]):,}' for layer in layers)} words")
        if n_topics := len(self.topic_names):
            found.append(f"{n_topics} topic{'s' * (n_topics > 1)}")
        return ", ".join(found)

    def __repr__(self):
        return f"<PublicPrior: {self._content()}; sha256 {self._digest[:12]}>"

    def __add__(self, other):
        """Join two priors: vectors and frequencies are kept apart until `for_words`, topics follow each other."""
        if not isinstance(other, PublicPrior):
            return NotImplemented
        return PublicPrior(
            vectors=self._vectors + other._vectors,
            frequencies=self._frequencies + other._frequencies,
            topics=self._topics + other._topics,
        )

    def __radd__(self, other):
        """Let `sum` join priors: it starts from 0."""
        return self if is_integer(other) and other == 0 else NotImplemented

    def __eq__(self, other):
        return self._digest == other._digest if isinstance(other, PublicPrior) else NotImplemented

    def __hash__(self):
        return hash(self._digest)

    def __setattr__(self, name, value):
        raise AttributeError(f"a PublicPrior never changes: {name} cannot be set. Make a new one.")

    def __delattr__(self, name):
        raise AttributeError(f"a PublicPrior never changes: {name} cannot be deleted.")

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self  # so that clones of an estimator share the vectors

    def __reduce__(self):
        return _unpickled, (self._vectors, self._frequencies, self._topics)


# What a `prior` may be.
PUBLIC_PRIOR = [
    NamedKinds((PublicPrior, WordPrior), "Dirichlet concentrations are doc_topic_prior and topic_word_prior"),
    None,
]


def _unpickled(vectors, frequencies, topics):
    """Make a prior again, with all checks."""
    return PublicPrior(vectors=vectors, frequencies=frequencies, topics=topics)


def has_vectors(prior):
    """Whether a public prior, or None, may have vectors of words; whichever words of a corpus it knows."""
    return bool(prior._vectors) if isinstance(prior, PublicPrior) else getattr(prior, "vectors", None) is not None


def seeded_names(prior):
    """Return the names of the seeded topics of a public prior; none of None."""
    return () if prior is None else prior.topic_names if isinstance(prior, PublicPrior) else prior.names


def nearest_words(prior, word, words, n_words=1):
    """Return the numbers of the words with the largest cosines to a word, nearest first; none without vectors of it."""
    if not isinstance(prior, PublicPrior) or not all(isinstance(one, str) for one in [word, *words]):
        return np.empty(0, int)
    vectors = _joined([_vectors_for(*layer, [word, *words]) for layer in prior._vectors])
    if vectors is None:
        return np.empty(0, int)
    cosines = matmul(vectors[1:], vectors[0])
    order = np.argsort(-cosines, kind="stable")[:n_words]
    return order[cosines[order] > 0]


def unit_rows(rows):
    """Return rows at length 1; zero rows stay."""
    length = np.sqrt(total(rows * rows, axis=1, keepdims=True))
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 1e-9)


class _Lookup:
    """Finds words: as they are, in lower case, and whatever the case of both, with underscores read as spaces."""

    def __init__(self, words):
        self._exact = {word: i for i, word in enumerate(words)}
        self._plain = {}
        for i, word in enumerate(words):
            self._plain.setdefault(_plain(word), i)  # the first: frequent words come first in most lists

    def find(self, word):
        """Return the number of a word, or -1."""
        for form in (word, word.lower()):
            if form in self._exact:
                return self._exact[form]
        return self._plain.get(_plain(word), -1)

    def find_parts(self, word):
        """Return the numbers of the word, or of the known parts of an n-gram."""
        found = self.find(word)
        if found >= 0:
            return [found]
        return [i for part in re.split("[ _]+", word) if part and (i := self.find(part)) >= 0]


def _plain(word):
    return word.lower().replace("_", " ")


def _vectors_for(words, vectors, vocabulary):
    """Return centred vectors (n_words, n_dimensions) of length 1, zeros where there is none; None if all are."""
    lookup = _Lookup(words)
    found = [lookup.find_parts(word) for word in vocabulary]
    known = np.array([i for i, rows in enumerate(found) if rows], dtype=np.int64)
    if not len(known):
        return None
    table = np.array([mean(vectors[found[i]], axis=0) for i in known])
    in_order = sorted(range(len(known)), key=lambda row: vocabulary[known[row]])  # a sum depends on its order
    largest = np.abs(table).max()
    table = (table - mean(table[in_order], axis=0)) / (largest or 1.0)
    result = np.zeros((len(vocabulary), vectors.shape[1]))
    result[known] = unit_rows(table)
    return result if result.any() else None


def _joined(sets):
    """Return vectors of several sets side by side, at length 1, or None."""
    if len(sets) < 2:
        return sets[0] if sets else None
    return unit_rows(np.hstack(sets))


def _columns(sets):
    """Return `n_dimensions` of a `WordPrior` of these sets of vectors."""
    return tuple(vectors.shape[1] for vectors in sets) if len(sets) > 1 else ()


def _frequencies_for(words, counts, vocabulary):
    """Return frequencies (n_words,) with sum 1, or None if no word is known."""
    lookup = _Lookup(words)
    place = np.array([lookup.find(word) for word in vocabulary])
    found = np.where(place >= 0, counts[place], 0.0)
    if not found.any():
        return None
    found = np.maximum(found, counts[counts > 0].min() / 2)
    return found / total(found)


def _topics_for(words, topics, vocabulary):
    """Return topics (n_topics, n_words) in the order of the vocabulary, not scaled."""
    lookup = _Lookup(words)
    place = np.array([lookup.find(word) for word in vocabulary])
    return np.where(place >= 0, topics[:, place], 0.0)


def _vectors_of(X, words, n_dimensions):
    """Return (words, vectors) from counts of words in public documents, or None where they hold no information."""
    seen = np.bincount(X.indices[X.data > 0], minlength=X.shape[1])
    most = np.argsort(-seen, kind="stable")[:MOST_WORDS]
    chosen = np.sort(most[seen[most] >= LEAST_DOCUMENTS])
    if len(chosen) < 3:
        return None
    present = sp.csc_array(X[:, chosen] > 0).astype(np.float32)
    association = _association(present)
    if not association.any():
        return None
    n_dimensions = min(n_dimensions, len(chosen) - 1)
    direction, strength = _strongest(association, n_dimensions)
    strong = strength > 1e-5 * strength[0]
    vectors = direction[:, strong] * np.sqrt(strength[strong])
    vectors[~association.any(axis=1)] = 0  # such a word goes with no other: rounding alone would give it a vector
    return [words[i] for i in chosen], vectors


def _association(present):
    """Return the positive pointwise mutual information of words in documents, and 0 for a word with itself."""
    n_documents, n_words = present.shape
    rarity = log(n_documents / np.diff(present.indptr))
    result = np.zeros((n_words, n_words), np.float32)
    for begin in range(0, n_words, BLOCK_ROWS):
        block = slice(begin, min(begin + BLOCK_ROWS, n_words))
        together = (present[:, block].T @ present).toarray()
        with np.errstate(divide="ignore"):  # words that are never together have -inf, which becomes 0
            information = log(together / n_documents) + rarity[block, None] + rarity
        result[block] = np.rint(np.maximum(information, 0) * ASSOCIATION_LEVELS)
    np.fill_diagonal(result, 0)
    return result


def _strongest(association, n):
    """Return the directions (n_words, n) of the largest singular values of the association, and these, by subspaces.

    Source: Halko, Martinsson and Tropp (2011), Finding structure with randomness, Algorithm 4.4.
    """
    n_more = min(n + MORE_DIRECTIONS, len(association))
    rows = orthonormal(normal(np.random.default_rng(0), (n_more, len(association))))
    for _ in range(POWER_STEPS + 1):
        rows = orthonormal(_applied(association, rows))
    images = _applied(association, rows)  # the association is symmetric
    squares, turned = eigen(matmul(images, images.T))
    first = slice(len(squares) - 1, len(squares) - 1 - n if len(squares) > n else None, -1)
    return matmul(turned[first], rows).T, np.sqrt(np.maximum(squares[first], 0))


def _applied(association, rows):
    """Return rows times the association, both in whole numbers, of which a BLAS makes no error.

    Levels of the association are below 2**15, a million steps of a row below 2**21, and at most 10,000 are added up.
    """
    steps = np.rint(rows * DIRECTION_LEVELS)
    found = np.empty(rows.shape)
    for begin in range(0, len(association), BLOCK_ROWS):
        block = slice(begin, begin + BLOCK_ROWS)
        found[:, block] = steps @ association[block].T.astype(np.float64)
    return found / (ASSOCIATION_LEVELS * DIRECTION_LEVELS)


def _named(name, given, others, what):
    """Return (words, values) of a mapping, or of such a pair."""
    if isinstance(given, Mapping):
        return list(given), list(given.values())
    if isinstance(given, (tuple, list)) and len(given) == 2 and not isinstance(given[0], str):
        return given[0], given[1]
    hint = (
        " Give its wv."
        if hasattr(given, "wv")
        else " Give (its index, its values)."
        if hasattr(given, "to_dict")
        else ""
    )
    raise ValueError(
        f"{name} must be {others}a mapping of words to {what}s, or a pair (words, {what}s); got {_shown(given)}.{hint}"
    )


def _vector_layer(words, vectors):
    """Return checked words and vectors (float32), without those that are zero."""
    words = _distinct("words of vectors", words)
    vectors = checked_numbers("vectors", vectors, (len(words), None), np.float32)
    kept = vectors.any(axis=1)
    if not kept.any():
        raise ValueError(f"vectors must not all be zero; got {len(words)} words without a vector.")
    if not kept.all():
        words, vectors = tuple(word for word, keep in zip(words, kept, strict=True) if keep), vectors[kept]
    return words, _fixed(vectors)


def _frequency_layer(words, counts):
    """Return checked words and counts (float64)."""
    words = _distinct("words of frequencies", words)
    counts = checked_numbers("frequencies", counts, (len(words),), np.float64)
    if (counts < 0).any() or not counts.any():
        raise ValueError("frequencies must not be negative, and not all zero.")
    return words, _fixed(counts)


def _topic_layer(names, words, topics):
    """Return checked names, words and topics (float64), whose rows sum to 1."""
    names, words = _topic_names("names of topics", names), _distinct("words of topics", words)
    topics = checked_numbers("topics", topics, (len(names), len(words)), np.float64)
    if (topics < 0).any():
        raise ValueError(f"topics must not be negative; got {float(topics.min())!r}.")
    largest = topics.max(axis=1, keepdims=True)
    if not largest.all():
        raise ValueError(f"topics must not have rows of zeros; got one for {names[int(np.argmin(largest))]!r}.")
    topics = topics / largest  # first, as the sum of large numbers may be infinite
    return names, words, _fixed(topics / total(topics, axis=1, keepdims=True))


def _topic_names(name, names):
    """Return names of topics as a tuple of distinct strings that a release takes."""
    names = _distinct(name, names)
    for one in names:
        if not one or RESERVED.fullmatch(one) or HIDDEN.search(one):
            raise ValueError(
                f"{name} must not be empty, hold control characters, or be topic_ and a number, as other topics are"
                f" called; got {one!r}."
            )
    return names


def _distinct(name, words):
    """Return words as a tuple of distinct strings, at least one."""
    if isinstance(words, (str, bytes, Mapping)) or not isinstance(words, Iterable):
        raise ValueError(f"{name} must be a sequence of strings; got {_shown(words)}.")
    if isinstance(words, (set, frozenset)):
        raise ValueError(f"{name} must be in an order that is the same in each run; got a set. Give sorted(words).")
    words = tuple(words)
    if not words:
        raise ValueError(f"{name} must be at least one; got none.")
    for word in words:
        if not isinstance(word, str):
            raise ValueError(f"{name} must be strings; got {_shown(word)}.")
    if twice := _first_double(words):
        raise ValueError(f"{name} must be distinct; got {twice[0]!r} twice.")
    return tuple(map(str, words))


def _first_double(words):
    """Return a list of the first word that occurs twice, or an empty one."""
    known = set()
    return [word for word in words if word in known or known.add(word)][:1]


def checked_numbers(name, values, shape, dtype):
    """Return a copy of values as an array of finite numbers with that shape; None allows any length of at least 1."""
    allowed = f"({', '.join('n' if size is None else str(size) for size in shape)}{',' * (len(shape) == 1)})"
    try:
        with np.errstate(over="ignore"):  # what is too large for the type becomes infinite, and is refused
            array = np.array(values, dtype=dtype, order="C")
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers of shape {allowed}; got {_shown(values)}.") from None
    if array.ndim != len(shape) or any(
        size != wanted if wanted is not None else size < 1 for size, wanted in zip(array.shape, shape, strict=True)
    ):
        raise ValueError(f"{name} must have shape {allowed}, one entry for each name; got shape {array.shape}.")
    if not np.isfinite(array).all():
        n_bad = array.size - int(np.isfinite(array).sum())
        raise ValueError(f"{name} must be finite in {array.dtype}; got {n_bad} entries that are NaN or infinite.")
    return array


def _shown(value):
    """Return a value for a message: its kind, and itself where that is short."""
    text = repr(value)
    return f"{type(value).__name__} {text}" if len(text) <= 60 else f"a {type(value).__name__}"


def _fixed(array):
    """Return an array that cannot be written to; None stays."""
    if array is not None:
        array.setflags(write=False)
    return array


def _digest_of(layers):
    """Return the SHA-256 of words and arrays, each with its size before it."""
    digest = hashlib.sha256()
    for name, kind in layers.items():
        digest.update(f"{name} {len(kind)};".encode())
        for layer in kind:
            *lists, array = layer
            for words in lists:
                text = json.dumps(words).encode()
                digest.update(f"{len(text)};".encode() + text)
            digest.update(f"{array.dtype.name} {array.shape};".encode())
            digest.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()
