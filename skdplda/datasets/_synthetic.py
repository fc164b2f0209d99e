"""Synthetic corpora with planted topics, and how well a model finds them."""

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from sklearn.utils import Bunch, check_array

from skdplda._types import ArrayLike
from skdplda.datasets._readers import load_lee
from skdplda.datasets._words import frequent_words

_CHUNK_TOKENS = 1_000_000  # tokens drawn at a time: bounds the scratch memory
_NEWS_WORDS = 5000
_MEASURES = ("total-variation", "cosine")


def make_lda_corpus(
    n_documents: int = 1000,
    n_words: int = 500,
    n_components: int = 10,
    *,
    mean_length: float = 100,
    doc_topic_prior: float = 0.1,
    topic_word_prior: float = 0.05,
    max_length: int | None = None,
    random_state: Any = None,
) -> Any:
    """Draw a corpus from latent Dirichlet allocation with known topics.

    Topics and topic proportions are symmetric Dirichlet, document lengths Poisson: the generative model of
    [1]_, section 3. Documents are drawn in chunks, so the scratch memory does not grow with the corpus.

    Parameters
    ----------
    n_documents : int, default=1000
        Number of documents (M in [1]_).
    n_words : int, default=500
        Size of the vocabulary (V).
    n_components : int, default=10
        Number of topics (k).
    mean_length : float, default=100
        Mean number of tokens of a document (xi). Short documents may be empty.
    doc_topic_prior : float, default=0.1
        Dirichlet parameter of the topic proportions (alpha).
    topic_word_prior : float, default=0.05
        Dirichlet parameter of the topics (eta).
    max_length : int or None, default=None
        Most tokens of a document; longer ones are cut.
    random_state : int, RandomState, Generator or None, default=None
        An int makes the corpus reproducible.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With the entries

        data : csr_matrix of shape (n_documents, n_words), int32
            Counts of each word in each document, in canonical form.
        topic_word : ndarray of shape (n_components, n_words)
            The planted topics; rows sum to 1.
        doc_topic : ndarray of shape (n_documents, n_components), float32
            The topic proportions of each document; rows sum to 1.
        feature_names : ndarray of shape (n_words,)
            Made-up words.

    Raises
    ------
    ValueError
        If a size or a prior is not positive, or `n_words` does not fit an int32.

    References
    ----------
    .. [1] D. M. Blei, A. Y. Ng, M. I. Jordan (2003). Latent Dirichlet allocation. JMLR 3.

    Examples
    --------
    >>> from skdplda.datasets import make_lda_corpus
    >>> corpus = make_lda_corpus(n_documents=20, n_words=50, n_components=3, random_state=0)
    >>> corpus.data.shape, corpus.topic_word.shape, corpus.doc_topic.shape
    ((20, 50), (3, 50), (20, 3))
    >>> str(corpus.feature_names[7])
    'word07'
    """
    _check_sizes(n_documents, n_words, n_components, max_length, mean_length, doc_topic_prior, topic_word_prior)
    rng = _generator(random_state)
    topic_word = rng.dirichlet(np.full(n_words, topic_word_prior), n_components)
    width = len(str(n_words - 1))
    feature_names = np.array([f"word{i:0{width}d}" for i in range(n_words)], dtype=object)
    return _draw_corpus(rng, topic_word, feature_names, n_documents, mean_length, doc_topic_prior, max_length)


def make_news_corpus(
    n_documents: int = 10_000,
    n_words: int = 300,
    n_components: int = 6,
    *,
    mean_length: float = 30,
    doc_topic_prior: float = 0.1,
    max_length: int | None = None,
    random_state: Any = None,
) -> Any:
    """Draw a corpus of any size from the topics of 300 real news articles: made-up documents, real words.

    The topics are those that scikit-learn's latent Dirichlet allocation finds in the Lee corpus [1]_, which comes with
    gensim. They are the same for every `random_state`. So nobody's text is in the documents, and whether a model found
    the topics can be read from its words.

    Parameters
    ----------
    n_documents : int, default=10_000
        Number of documents.
    n_words : int, default=300
        Size of the vocabulary: the most frequent words of the articles, without stop words; at most 5,000.
    n_components : int, default=6
        Number of topics.
    mean_length : float, default=30
        Mean number of tokens of a document. Short documents may be empty.
    doc_topic_prior : float, default=0.1
        Dirichlet parameter of the topic proportions.
    max_length : int or None, default=None
        Most tokens of a document; longer ones are cut.
    random_state : int, RandomState, Generator or None, default=None
        Of the documents. An int makes the corpus reproducible.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        As from :func:`make_lda_corpus`; `feature_names` are English words.

    Raises
    ------
    ValueError
        If a size or a prior is not positive, or `n_words` is above 5,000.

    References
    ----------
    .. [1] M. D. Lee, B. Pincombe, M. Welsh (2005). An empirical evaluation of models of text document similarity.
       Proceedings of the Annual Meeting of the Cognitive Science Society 27.

    Examples
    --------
    >>> from skdplda.datasets import make_news_corpus
    >>> corpus = make_news_corpus(20, n_words=50, n_components=3, random_state=0)
    >>> corpus.data.shape, corpus.topic_word.shape
    ((20, 50), (3, 50))
    >>> "government" in corpus.feature_names
    True
    """
    from sklearn.decomposition import LatentDirichletAllocation
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

    _check_sizes(n_documents, n_words, n_components, max_length, mean_length, doc_topic_prior)
    if n_words > _NEWS_WORDS:
        raise ValueError(f"n_words must be at most {_NEWS_WORDS}, got {n_words!r}.")
    pattern, stop_words = r"\b[^\W\d_]{3,}\b", sorted({*ENGLISH_STOP_WORDS, "said", "says"})
    texts, options = load_lee().data, {"stop_words": stop_words, "token_pattern": pattern}
    vectorizer = CountVectorizer(vocabulary=frequent_words(texts, n_words, **options), token_pattern=pattern)
    counts = vectorizer.transform(texts)
    model = LatentDirichletAllocation(n_components, doc_topic_prior=0.1, topic_word_prior=0.01, random_state=0)
    topics = model.fit(counts).components_
    topics = topics / topics.sum(axis=1, keepdims=True)
    rng, feature_names = _generator(random_state), vectorizer.get_feature_names_out()
    return _draw_corpus(rng, topics, feature_names, n_documents, mean_length, doc_topic_prior, max_length)


def topic_recovery(
    topic_word_true: ArrayLike,
    topic_word_found: ArrayLike,
    *,
    measure: Literal["total-variation", "cosine"] = "total-variation",
) -> Any:
    """Match found topics to planted ones, and measure how alike they are.

    The matching is the one-to-one assignment of largest total similarity.

    Parameters
    ----------
    topic_word_true : array-like of shape (n_components, n_words)
        Planted topics; rows are normalised to sum 1.
    topic_word_found : array-like of shape (n_found, n_words)
        Topics of a model (`topic_word_` or `components_`); rows are normalised to sum 1.
    measure : {"total-variation", "cosine"}, default="total-variation"
        Similarity of two topics: 1 minus their total variation distance, or the cosine of their angle.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With the entries

        similarity : ndarray of shape (n_components,)
            Similarity of each planted topic to its match, from 0 to 1; 0 without a match.
        mean : float
            Their mean.
        permutation : ndarray of shape (n_components,), int
            Row of `topic_word_found` that matches each planted topic; -1 where there are too few.

    Raises
    ------
    ValueError
        If the vocabularies differ in size, a topic is negative or all zero, or `measure` is unknown.

    Examples
    --------
    >>> from skdplda.datasets import topic_recovery
    >>> recovery = topic_recovery([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0], [0.7, 0.3, 0.0]])
    >>> recovery.permutation.tolist(), round(recovery.mean, 3)
    ([1, 0], 0.9)
    """
    if measure not in _MEASURES:
        raise ValueError(f"measure must be one of {_MEASURES}, got {measure!r}.")
    true = _distributions(topic_word_true, "topic_word_true")
    found = _distributions(topic_word_found, "topic_word_found")
    if true.shape[1] != found.shape[1]:
        raise ValueError(
            "topic_word_true and topic_word_found must have the same words, "
            f"got {true.shape[1]} and {found.shape[1]} columns."
        )
    if measure == "cosine":
        unit = [table / np.linalg.norm(table, axis=1, keepdims=True) for table in (true, found)]
        similarity = unit[0] @ unit[1].T
    else:
        similarity = np.array([np.minimum(topic, found).sum(axis=1) for topic in true])
    rows, columns = linear_sum_assignment(similarity, maximize=True)
    matched = np.zeros(len(true))
    matched[rows] = similarity[rows, columns]
    permutation = np.full(len(true), -1)
    permutation[rows] = columns
    return Bunch(similarity=matched, mean=float(matched.mean()), permutation=permutation)


def _check_sizes(n_documents, n_words, n_components, max_length, mean_length, doc_topic_prior, topic_word_prior=1.0):
    sizes = {"n_documents": n_documents, "n_words": n_words, "n_components": n_components}
    if max_length is not None:
        sizes["max_length"] = max_length
    for name, value in sizes.items():
        if not isinstance(value, Integral) or not 1 <= value < 2**31:
            raise ValueError(f"{name} must be an integer from 1 to 2**31 - 1, got {value!r}.")
    scales = {"mean_length": mean_length, "doc_topic_prior": doc_topic_prior, "topic_word_prior": topic_word_prior}
    for name, value in scales.items():
        if not isinstance(value, Real) or not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive finite number, got {value!r}.")


def _draw_corpus(rng, topic_word, feature_names, n_documents, mean_length, doc_topic_prior, max_length):
    """Draw documents from topics; return the Bunch of `make_lda_corpus`."""
    n_components, n_words = topic_word.shape
    tables = [_alias_table(topic) for topic in topic_word]
    lengths = rng.poisson(mean_length, n_documents)
    if max_length is not None:
        np.minimum(lengths, max_length, out=lengths)

    doc_topic = np.empty((n_documents, n_components), dtype=np.float32)
    indptr = np.zeros(n_documents + 1, dtype=np.int64)
    # Enough memory for the case that no word repeats. Untouched pages take no memory and are given back below.
    indices = np.empty(lengths.sum(), dtype=np.int32)
    counts = np.empty(lengths.sum(), dtype=np.int32)
    # A chunk's (document, word) keys fit an int32.
    step = max(1, min(int(_CHUNK_TOKENS / mean_length), (2**31 - 1) // n_words))
    nnz = 0
    for start in range(0, n_documents, step):
        chunk = slice(start, min(start + step, n_documents))
        theta = rng.dirichlet(np.full(n_components, doc_topic_prior), chunk.stop - start)
        doc_topic[chunk] = theta
        keys = _draw_keys(rng, rng.multinomial(lengths[chunk], theta), tables, n_words)
        first = np.flatnonzero(np.diff(keys, prepend=-1))  # where a new (document, word) pair starts
        pairs = keys[first]
        end = nnz + len(first)
        np.remainder(pairs, n_words, out=indices[nnz:end])
        counts[nnz:end] = np.diff(first, append=len(keys))
        indptr[start + 1 : chunk.stop + 1] = nnz + np.searchsorted(
            pairs, np.arange(1, chunk.stop - start + 1) * n_words
        )
        nnz = end
    indices.resize(nnz, refcheck=False)
    counts.resize(nnz, refcheck=False)
    if nnz < 2**31:
        indptr = indptr.astype(np.int32)
    data = csr_matrix((counts, indices, indptr), shape=(n_documents, n_words), copy=False)
    data.has_canonical_format = True
    return Bunch(data=data, topic_word=topic_word, doc_topic=doc_topic, feature_names=feature_names)


def _generator(random_state):
    """Return a Generator for any of scikit-learn's or numpy's ways to name one."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**32, dtype=np.uint32)
    return np.random.default_rng(random_state)


def _alias_table(probabilities):
    """Return Walker's alias table: word i keeps a draw with probability threshold[i], else alias[i]."""
    n_words = len(probabilities)
    threshold = probabilities * n_words
    alias = np.arange(n_words, dtype=np.int32)
    small = np.flatnonzero(threshold < 1).tolist()
    large = np.flatnonzero(threshold >= 1).tolist()
    while small and large:
        poor, rich = small.pop(), large[-1]
        alias[poor] = rich
        threshold[rich] -= 1 - threshold[poor]
        if threshold[rich] < 1:
            small.append(large.pop())
    return threshold, alias


def _draw_keys(rng, topic_counts, tables, n_words):
    """Return the sorted keys document * n_words + word of all tokens of a chunk."""
    documents = np.arange(len(topic_counts), dtype=np.int32) * np.int32(n_words)
    keys = np.empty(topic_counts.sum(), dtype=np.int32)
    end = 0
    for n, (threshold, alias) in zip(topic_counts.T, tables, strict=True):
        start, end = end, end + n.sum()
        # One uniform gives both the cell and, as its fraction, the coin of the alias table.
        scaled = rng.random(end - start)
        scaled *= n_words
        words = scaled.astype(np.int32)
        np.minimum(words, n_words - 1, out=words)  # where the product rounded up
        scaled -= words
        words = np.where(scaled < threshold[words], words, alias[words])
        np.add(np.repeat(documents, n), words, out=keys[start:end])
    keys.sort()
    return keys


def _distributions(topic_word, name):
    """Return `topic_word` as float rows that sum to 1."""
    topic_word = check_array(topic_word, dtype=np.float64, input_name=name)
    total = topic_word.sum(axis=1, keepdims=True)
    if topic_word.min() < 0 or total.min() <= 0:
        raise ValueError(f"{name} must have non-negative rows, each with a positive sum.")
    return topic_word / total
