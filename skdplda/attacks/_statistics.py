"""What a released topic table says about a document: one number each, larger where it was trained on."""

from typing import Literal

import numpy as np

from skdplda._checks import effective_n_jobs, exact_counts
from skdplda._kernels._foldin import fold_in
from skdplda._kernels._zeta import zeta
from skdplda._types import ArrayLike, Function, Matrix, Sequence

FOLD_IN_ITERATIONS, FOLD_IN_TOLERANCE = 200, 1e-4  # closer than `transform`, because attacks compare; not tuned
CLIPPED = 1e-9  # least distance of a proportion from 0 and 1 in a logarithm; chosen by hand
STATISTICS = {  # name -> of topic proportions, rows summing to 1; zeta is computed apart
    "zeta": None,
    "negative_entropy": lambda theta: (theta * np.log(np.maximum(theta, CLIPPED))).sum(axis=1),
    "logit_max": lambda theta: np.log(theta.max(axis=1)) - np.log(np.maximum(1 - theta.max(axis=1), CLIPPED)),
    "std": lambda theta: theta.std(axis=1),
    "max": lambda theta: theta.max(axis=1),
}


def max_log_likelihood(
    topic_word: ArrayLike, X: Matrix, *, tol: float = 1e-6, max_iter: int = 200, n_jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Largest log-likelihood of each document over all mixtures of the topics: the statistic zeta of [1]_.

    Parameters
    ----------
    topic_word : array-like of shape (n_components, n_words) or (n_models, n_components, n_words)
        Topics: non-negative, rows are scaled to sum to 1. Several models of one vocabulary may be given at once.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Word counts.
    tol : float, default=1e-6
        Largest `gap` a token.
    max_iter : int, default=200
        Most steps a document; where they do not suffice, `gap` is larger.
    n_jobs : int, default=None
        Threads, as in joblib. Same result for any number.

    Returns
    -------
    value : ndarray of shape (n_documents,) or (n_models, n_documents)
        The log-likelihoods in nats; words that no topic can produce are left out.
    gap : ndarray of the same shape
        By how much the maximum may exceed them, at most: a certificate, proven in the theory guide.
    doc_topic : ndarray of shape (n_documents, n_components) or (n_models, n_documents, n_components)
        The best mixtures.

    Raises
    ------
    ValueError
        If the topics or counts are not as described, or of another vocabulary.

    References
    ----------
    .. [1] Manzonelli, Zhang and Vadhan (2024). Membership Inference Attacks and Privacy in Topic Modeling. Eq. 3.

    Examples
    --------
    >>> from skdplda.attacks import max_log_likelihood
    >>> value, gap, theta = max_log_likelihood([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], [[2, 1, 0], [1, 1, 1]])
    >>> value.round(3).tolist(), theta.round(3).tolist()
    ([-2.079, -3.466], [[1.0, 0.0], [0.5, 0.5]])
    """
    tables = check_topic_word(topic_word, dimensions=(2, 3))
    single = tables.ndim == 2
    tables = tables[None] if single else tables
    X = check_documents(X, tables.shape[2])
    word_major = np.ascontiguousarray(tables.transpose(0, 2, 1))
    found = zeta(X.indptr, X.indices, X.data, word_major, tol, max_iter, effective_n_jobs(n_jobs))
    return tuple(part[0] for part in found) if single else found


def document_statistics(
    topic_word: ArrayLike,
    X: Matrix,
    names: Sequence[str | Function] = ("zeta",),
    *,
    proportions: Literal["fold-in", "maximum"] = "fold-in",
    n_jobs: int | None = None,
) -> np.ndarray:
    """Compute statistics of documents under one released table, for the likelihood ratio attack and thresholds.

    Parameters
    ----------
    topic_word, X : as in `max_log_likelihood`
        One table of topics, and word counts.
    names : sequence of str or callable, default=("zeta",)
        "zeta", "negative_entropy", "logit_max", "std" and "max" (of the topic proportions); a callable gets
        (topic_word, X) and returns one number a document, larger for members.
    proportions : {"fold-in", "maximum"}, default="fold-in"
        Topic proportions by fold-in with the prior 1 / n_components, or those that zeta's maximum is reached at, as
        in appendix D of [1]_.
    n_jobs : int, default=None
        Threads, as in joblib.

    Returns
    -------
    values : ndarray of shape (n_documents, n_statistics)
        Finite numbers.

    Raises
    ------
    ValueError
        For an unknown name, or topics and counts that are not as described.

    References
    ----------
    .. [1] Manzonelli, Zhang and Vadhan (2024). Membership Inference Attacks and Privacy in Topic Modeling. Section
       3.3 and appendix D.

    Examples
    --------
    >>> from skdplda.attacks import document_statistics
    >>> document_statistics([[0.9, 0.1], [0.2, 0.8]], [[5, 0], [2, 2]], ["zeta", "max"]).shape
    (2, 2)
    """
    names = check_names(names)
    if proportions not in ("fold-in", "maximum"):
        raise ValueError(f"proportions must be 'fold-in' or 'maximum'; got {proportions!r}.")
    topic_word = check_topic_word(topic_word)
    X = check_documents(X, topic_word.shape[1])
    value = theta = None
    if "zeta" in names or proportions == "maximum":
        value, _, theta = max_log_likelihood(topic_word, X, n_jobs=n_jobs)
    if proportions == "fold-in" and set(names) & (STATISTICS.keys() - {"zeta"}):
        theta = fold_in(
            X.indptr,
            X.indices,
            X.data,
            np.ascontiguousarray(topic_word.T),
            np.full(len(topic_word), 1 / len(topic_word)),
            FOLD_IN_ITERATIONS,
            FOLD_IN_TOLERANCE,
            effective_n_jobs(n_jobs),
        )
    columns = []
    for name in names:
        if callable(name):
            column = np.asarray(name(topic_word, X), dtype=np.float64)
            if column.shape != (X.shape[0],) or not np.isfinite(column).all():
                raise ValueError(f"the statistic {name!r} must return one finite number a document.")
        else:
            column = value if name == "zeta" else STATISTICS[name](theta)  # type: ignore[misc]
        columns.append(column)
    return np.column_stack(columns)


def check_names(names):
    """Return the statistics as a tuple."""
    names = (names,) if isinstance(names, str) or callable(names) else tuple(names)
    unknown = [name for name in names if not callable(name) and name not in STATISTICS]
    if unknown or not names:
        raise ValueError(f"statistics must be callable or among {', '.join(STATISTICS)}; got {unknown or names!r}.")
    return names


def check_topic_word(topic_word, dimensions=(2,)):
    """Return topics as float64 with rows that sum to 1."""
    tables = np.asarray(topic_word, dtype=np.float64)
    if tables.ndim not in dimensions or 0 in tables.shape[-2:]:
        raise ValueError(f"topic_word must be of shape (n_components, n_words); got {tables.shape}.")
    total = tables.sum(axis=-1, keepdims=True)
    if not np.isfinite(tables).all() or (tables < 0).any() or (total == 0).any():
        raise ValueError("topic_word must be finite and non-negative, with a positive entry in each topic.")
    return tables / total


def check_documents(X, n_words):
    """Return counts as CSR of int32, of so many words."""
    X = exact_counts(X)
    if X.shape[1] != n_words:
        raise ValueError(
            f"X has {X.shape[1]} words and the topics have {n_words}: documents, target and shadow models must share"
            " one vocabulary."
        )
    return X
