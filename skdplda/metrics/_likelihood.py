"""Held-out likelihood and perplexity: per document, so no batch split changes them."""

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_matrix, issparse

from skdplda._arithmetic import exp, log, matmul, total
from skdplda._checks import MOST_THREADS, check_prior, exact_counts
from skdplda._kernels._foldin import fold_in
from skdplda._kernels._foldin_rows import LEAST_TOLERANCE, fold_in_rows, probabilities, word_rows
from skdplda._rows import chunks, rows_of
from skdplda._types import ArrayLike, Matrix
from skdplda._validation import FittedTopics, check_sample_weight

_CHUNK = 1 << 20  # products theta_dk phi_kw held at a time
_NUMBERS = 8  # of an entry or a document, in memory at a time, or as many as topics
_METHODS = ("document-completion", "fold-in")
_KINDS = {Integral: "an integer", Real: "a number"}


def log_likelihood(X: Matrix, topic_word: ArrayLike, doc_topic: ArrayLike) -> np.ndarray:
    """Log-likelihood of each document under given topics and topic proportions.

    For document d, sum_w c_dw log(sum_k theta_dk phi_kw).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Counts of each word in each document.
    topic_word : array-like of shape (n_components, n_words)
        Topics phi; rows sum to 1.
    doc_topic : array-like of shape (n_documents, n_components)
        Topic proportions theta; rows sum to 1.

    Returns
    -------
    log_likelihood : ndarray of shape (n_documents,)
        In nats per document; 0 for an empty one.

    Raises
    ------
    ValueError
        If the shapes do not fit, a count is negative or no integer, rows do not sum to 1, or a document has a
        word of probability zero.

    Examples
    --------
    >>> import numpy as np
    >>> from skdplda.metrics import log_likelihood
    >>> np.exp(log_likelihood([[2, 1]], [[0.5, 0.5], [0.25, 0.75]], [[1.0, 0.0]])).round(3).tolist()
    [0.125]
    """
    X = exact_counts(X)
    topic_word = _check_distributions(topic_word, "topic_word")
    doc_topic = _check_distributions(doc_topic, "doc_topic")
    _check_vocabulary(X, topic_word)
    shape = (X.shape[0], len(topic_word))
    if doc_topic.shape != shape:
        raise ValueError(f"doc_topic must have shape {shape} (documents, topics), got {doc_topic.shape}.")
    return _log_likelihood(X, np.ascontiguousarray(topic_word.T), doc_topic)


def held_out_log_likelihood(
    X: Matrix,
    topic_word: ArrayLike,
    *,
    doc_topic_prior: ArrayLike | None = None,
    method: Literal["document-completion", "fold-in"] = "document-completion",
    max_iter: int = 100,
    tol: float = 1e-4,
    n_threads: int = 1,
    sample_weight: ArrayLike | None = None,
) -> tuple[float, float]:
    """Sum of the log-likelihood of held-out tokens, and their number.

    The sums of several batches add up to those of the whole, whatever the split.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Counts of each word in each test document.
    topic_word : array-like of shape (n_components, n_words)
        Topics phi; rows sum to 1. Words that occur need a positive probability.
    doc_topic_prior : float, array-like of shape (n_components,) or None, default=None
        Dirichlet prior of the topic proportions (alpha). None means 1 / n_components.
    method : {"document-completion", "fold-in"}, default="document-completion"
        What is held out. Document completion [1]_ splits the tokens of each document in two halves: in the
        order of the columns, every other token is observed, the rest held out (so presence bits alternate
        words; a word that stands twice has one token in each half). Topic proportions come from the observed
        half, the likelihood from the other. `"fold-in"` uses the whole document for both, as many papers do:
        optimistic, since the proportions have seen the tokens that they are judged by.
    max_iter : int, default=100
        Most updates of a document's topic proportions.
    tol : float, default=1e-4
        Relative change of topic counts below which a document stops. Below 1e-5 all is done in double precision,
        slowly.
    n_threads : int, default=1
        Number of threads; the result does not depend on it.
    sample_weight : array-like of shape (n_documents,) or None, default=None
        Weight of each document, in both sums.

    Returns
    -------
    log_likelihood : float
        In nats.
    n_tokens : float
        Number of held-out tokens; 0 if there are none.

    Raises
    ------
    ValueError
        If an argument is not as described.

    References
    ----------
    .. [1] H. M. Wallach, I. Murray, R. Salakhutdinov, D. Mimno (2009). Evaluation methods for topic models.
       ICML, section 5 (document completion).

    Examples
    --------
    >>> from skdplda.metrics import held_out_log_likelihood
    >>> total, n_tokens = held_out_log_likelihood([[4, 0], [0, 1]], [[0.5, 0.5]])
    >>> round(total, 3), n_tokens
    (-1.386, 2.0)
    """
    options = {"method": method, "max_iter": max_iter, "tol": tol, "n_threads": n_threads}
    return _weighted_sums(*_held_out(X, topic_word, doc_topic_prior, **options), sample_weight)  # type: ignore[call-arg]


def score_samples(X: Matrix, topic_word: ArrayLike, **options: Any) -> np.ndarray:
    """Mean log-likelihood per held-out token of each document: the larger the better.

    Parameters
    ----------
    X, topic_word : as in `held_out_log_likelihood`
        Counts of test documents, and topics.
    **options : dict
        Keyword arguments of :func:`held_out_log_likelihood` but `sample_weight`.

    Returns
    -------
    score : ndarray of shape (n_documents,)
        In nats per token; nan for a document without held-out tokens.

    Raises
    ------
    ValueError
        As :func:`held_out_log_likelihood`.

    Examples
    --------
    >>> from skdplda.metrics import score_samples
    >>> score_samples([[4, 0], [1, 0]], [[0.5, 0.5]]).round(3).tolist()
    [-0.693, nan]
    """
    per_document, n_tokens = _held_out(X, topic_word, **options)
    return np.divide(per_document, n_tokens, out=np.full(len(per_document), np.nan), where=n_tokens > 0)


def score(X: Matrix, topic_word: ArrayLike, **options: Any) -> float:
    """Mean log-likelihood per held-out token: the larger the better.

    Parameters
    ----------
    X, topic_word : as in `held_out_log_likelihood`
        Counts of test documents, and topics.
    **options : dict
        Keyword arguments of :func:`held_out_log_likelihood`.

    Returns
    -------
    score : float
        In nats per token.

    Raises
    ------
    ValueError
        If nothing is held out, or as :func:`held_out_log_likelihood`.
    """
    return _mean(*held_out_log_likelihood(X, topic_word, **options))


def perplexity(X: Matrix, topic_word: ArrayLike, **options: Any) -> float:
    """Held-out perplexity, exp(-score): the smaller the better, the vocabulary size for blind guessing.

    Parameters
    ----------
    X, topic_word : as in `held_out_log_likelihood`
        Counts of test documents, and topics.
    **options : dict
        Keyword arguments of :func:`held_out_log_likelihood`, among them `method`.

    Returns
    -------
    perplexity : float
        Per token, at least 1.

    Raises
    ------
    ValueError
        If nothing is held out, or as :func:`held_out_log_likelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdplda.metrics import perplexity
    >>> X = np.random.default_rng(0).poisson(0.5, (20, 40))
    >>> round(perplexity(X, np.full((3, 40), 1 / 40)), 6)
    40.0
    """
    return exp(-score(X, topic_word, **options))


def unigram_perplexity(
    words: Any,
    X: Matrix,
    *,
    method: Literal["document-completion", "fold-in"] = "document-completion",
    smoothing: float = 1.0,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Perplexity of a model without topics, on the same held-out tokens as :func:`perplexity`.

    Of the gain of topics, a private model keeps the share (unigram - private) / (unigram - non-private).

    Parameters
    ----------
    words : array-like of shape (n_words,), or array-like or sparse matrix of shape (n_documents, n_words)
        One dimension: the probability of each word, used as it is. Two: training counts, which are summed.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Counts of each word in each test document.
    method : {"document-completion", "fold-in"}, default="document-completion"
        Which tokens are judged: the held-out half, or all.
    smoothing : float, default=1.0
        Added to the training count of each word, so that a word which is new in `X` has a probability.
    sample_weight : array-like of shape (n_documents,) or None, default=None
        Weight of each document.

    Returns
    -------
    perplexity : float
        Per token, at least 1.

    Raises
    ------
    ValueError
        If nothing is held out, or an argument is not as described.

    Examples
    --------
    >>> from skdplda.metrics import unigram_perplexity
    >>> round(unigram_perplexity([0.5, 0.5], [[4, 2], [1, 3]]), 6)
    2.0
    """
    X = exact_counts(X)
    if not issparse(words) and np.ndim(words) == 1:
        probability = _check_distributions(np.reshape(words, (1, -1)), "words")
    else:
        if not isinstance(smoothing, Real) or not 0 <= smoothing < np.inf:
            raise ValueError(f"smoothing must be a non-negative finite number, got {smoothing!r}.")
        counts = np.asarray(exact_counts(words, "words").sum(axis=0), dtype=float).reshape(1, -1) + smoothing
        if not counts.any():
            raise ValueError("words must have at least one training token when smoothing is 0, got none.")
        probability = counts / total(counts)
    _check_vocabulary(X, probability)

    def judged(_, held_out, first):
        return _log_likelihood(held_out, probability.T, np.ones((held_out.shape[0], 1)), first)

    per_document, n_tokens = _of_halves(X, method, judged, 1)
    return exp(-_mean(*_weighted_sums(per_document, n_tokens, sample_weight)))


def _held_out(X, topic_word, doc_topic_prior=None, method="document-completion", max_iter=100, tol=1e-4, n_threads=1):
    """Return the log-likelihood of each document's held-out tokens, and the number of these."""
    checked = isinstance(topic_word, FittedTopics) and X.dtype == np.int32  # by a fitted model; sums of units are wider
    X = X if checked else exact_counts(X)
    phi = _check_distributions(topic_word, "topic_word")
    _check_vocabulary(X, phi)
    alpha = check_prior("doc_topic_prior", doc_topic_prior, 1 / len(phi), len(phi))
    for name, value, kind, least in (
        ("max_iter", max_iter, Integral, 0),
        ("tol", tol, Real, 0),
        ("n_threads", n_threads, Integral, 1),
    ):
        if not isinstance(value, kind) or not value >= least:
            raise ValueError(f"{name} must be {_KINDS[kind]} of at least {least}, got {value!r}.")
    n_threads = min(n_threads, MOST_THREADS)
    if tol < LEAST_TOLERANCE:  # finer than single precision
        word_topic = np.ascontiguousarray(phi.T)

        def in_double_precision(observed, held_out, first):
            given = word_topic, alpha, max_iter, tol, n_threads
            theta = fold_in(observed.indptr, observed.indices, observed.data, *given)
            return _log_likelihood(held_out, word_topic, theta, first)

        return _of_halves(X, method, in_double_precision, len(phi))
    rows, peak, place = word_rows(phi, X.indices, n_threads)
    row_of_word = np.zeros(X.shape[1], np.int32)
    row_of_word[X.indices] = place

    def judged(observed, held_out, first):
        place, held_out_place = row_of_word[observed.indices], row_of_word[held_out.indices]
        theta = fold_in_rows(observed.indptr, place, observed.data, rows, alpha, max_iter, tol, n_threads)
        probability = probabilities(held_out.indptr, held_out_place, rows, peak, theta, n_threads)
        return _sum_logarithms(held_out, probability, first)

    return _of_halves(X, method, judged, len(phi))


def _of_halves(X, method, judged, n_topics):
    """Return what `judged(observed, held_out, first)` says of the halves of documents, some at a time from `first` on.

    Beside it is the number of held-out tokens of each document; both are of shape (n_documents,).
    """
    if method not in _METHODS:
        raise ValueError(f"method must be one of {_METHODS}, got {method!r}.")
    found, n_tokens = np.zeros(X.shape[0]), np.zeros(X.shape[0])
    for some in chunks(X.shape[0], max(_NUMBERS, n_topics), X.indptr):
        observed, held_out = _split(rows_of(X, some), method)
        found[some] = judged(observed, held_out, some.start)
        n_tokens[some] = np.asarray(held_out.sum(axis=1, dtype=np.int64)).ravel()
    return found, n_tokens


def _check_distributions(table, name):
    """Return `table` as a two-dimensional float array; refuse rows that are no distribution."""
    if isinstance(table, FittedTopics):
        return table.topic_word
    table = np.asarray(table)
    if table.dtype not in (np.float32, np.float64):
        table = table.astype(np.float64)
    if table.ndim != 2 or 0 in table.shape[1:]:
        raise ValueError(f"{name} must have two dimensions, got shape {table.shape}.")
    sums = total(table, axis=1)
    if table.size and not (table.min() >= 0 and abs(sums - 1).max() < 1e-4):
        wrong = int(np.argmax(~((table.min(axis=1) >= 0) & (abs(sums - 1) < 1e-4))))
        raise ValueError(
            f"{name} must have non-negative rows that sum to 1; row {wrong} has minimum "
            f"{table[wrong].min():.6g} and sum {sums[wrong]:.6g}. Divide pseudo-counts by their row sums."
        )
    return table


def _check_vocabulary(X, topic_word):
    if X.shape[1] != topic_word.shape[1]:
        raise ValueError(
            f"X must have the words of the topics, in their order: {topic_word.shape[1]} columns; got {X.shape[1]}."
            " Count the topics' words."
        )


def _split(X, method):
    """Return the observed and the held-out counts of each document."""
    if method == "fold-in":
        return X, X
    # Token j of a document, counted from 0 in the order of the columns, is held out if j is odd: of the
    # first t tokens, t // 2 are.
    before = np.concatenate(([0], np.cumsum(X.data, dtype=np.int64)))
    start = before[:-1] - np.repeat(before[X.indptr[:-1]], np.diff(X.indptr))
    second = ((start + X.data) // 2 - start // 2).astype(np.int32)
    halves = []
    for counts in (X.data - second, second):
        kept = counts > 0
        indptr = np.concatenate(([0], np.cumsum(kept)))[X.indptr].astype(X.indptr.dtype)
        halves.append(csr_matrix((counts[kept], X.indices[kept], indptr), shape=X.shape))
    return halves


def _log_likelihood(X, word_topic, doc_topic, first=0):
    """Return sum_w c_dw log(theta_d . phi_w) of each document; the topics are given word-major.

    `first` is the number of the first document, for an error.
    """
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    probability = np.empty(X.nnz)
    step = max(1, _CHUNK // word_topic.shape[1])
    for start in range(0, X.nnz, step):
        chunk = slice(start, start + step)
        probability[chunk] = total(doc_topic[rows[chunk]] * word_topic[X.indices[chunk]], axis=1)
    return _sum_logarithms(X, probability, first)


def _sum_logarithms(X, probability, first):
    """Return sum_w c_dw log(p_dw) of each document, from the probability of each entry's word."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    impossible = (probability <= 0) & (X.data > 0)
    if impossible.any():
        i = int(np.argmax(impossible))
        raise ValueError(
            f"topic_word must be positive for each word that occurs: word {X.indices[i]} of document "
            f"{first + rows[i]} has probability 0. Smooth the topics with a positive topic_word_prior."
        )
    terms = np.where(X.data > 0, X.data * log(np.where(X.data > 0, probability, 1)), 0.0)
    return np.bincount(rows, weights=terms, minlength=X.shape[0])


def _weighted_sums(per_document, n_tokens, sample_weight):
    """Return the weighted sums of a log-likelihood per document and of its tokens."""
    if sample_weight is None:
        return total(per_document), float(n_tokens.sum())  # of whole numbers
    weight = check_sample_weight(sample_weight, len(per_document))
    return matmul(per_document, weight), matmul(n_tokens, weight)


def _mean(log_likelihood, n_tokens):
    """Return the log-likelihood per token."""
    if not n_tokens > 0:
        raise ValueError(
            "X must hold at least one held-out token of positive weight, got none. Document completion needs "
            'a document of two tokens; method="fold-in" needs one.'
        )
    return log_likelihood / n_tokens
