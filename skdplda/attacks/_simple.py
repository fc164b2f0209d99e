"""Attacks that train nothing: thresholds, the vocabulary, and the counts behind a table."""

from typing import Literal, NamedTuple

import numpy as np

from skdplda._types import ArrayLike, Function, Matrix
from skdplda.attacks._result import AttackResult
from skdplda.attacks._statistics import check_documents, check_topic_word, document_statistics


def threshold_attack(
    topic_word: ArrayLike,
    X: Matrix,
    members: ArrayLike,
    statistic: str | Function = "max",
    *,
    proportions: Literal["fold-in", "maximum"] = "fold-in",
    n_jobs: int | None = None,
) -> AttackResult:
    """Call documents members whose statistic is large, with one threshold for all, as in [1]_.

    Parameters
    ----------
    topic_word : array-like of shape (n_components, n_words)
        What the target released.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Documents in the target's vocabulary.
    members : array-like of shape (n_documents,)
        Which of them the target was trained on: the truth, to judge the attack by.
    statistic : str or callable, default="max"
        As in `document_statistics`; [1]_ has "max", "std" and "negative_entropy".
    proportions : {"fold-in", "maximum"}, default="fold-in"
        As in `document_statistics`.
    n_jobs : int, default=None
        Threads, as in joblib.

    Returns
    -------
    result : AttackResult
        A score for each document, larger for members.

    References
    ----------
    .. [1] Huang, Zhao and Chen (2022). The attacks are described in section 3.3 of Manzonelli, Zhang and Vadhan
       (2024), Membership Inference Attacks and Privacy in Topic Modeling.

    Examples
    --------
    >>> from skdplda.attacks import threshold_attack
    >>> threshold_attack([[0.9, 0.1], [0.1, 0.9]], [[5, 0], [2, 2]], [True, False]).auc
    1.0
    """
    scores = document_statistics(topic_word, X, [statistic], proportions=proportions, n_jobs=n_jobs)[:, 0]
    name = statistic if isinstance(statistic, str) else getattr(statistic, "__name__", "statistic")
    return AttackResult(scores, members, f"threshold ({name})")


def vocabulary_attack(released: ArrayLike, X: Matrix, members: ArrayLike) -> AttackResult:
    """Find members by the released vocabulary alone, without a look at any topic.

    A member's words are all in a vocabulary learned from the members. For a document whose words all are, the score
    is the sum over its words of -log of the probability that other members brought the word in, if half of the
    documents are members: infinite where the attacker knows of no other document with the word. A document with a word
    outside scores minus infinity.

    Parameters
    ----------
    released : array-like of bool of shape (n_words,)
        Which words of X were released.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        The documents that the attacker knows.
    members : array-like of shape (n_documents,)
        Which of them the vocabulary was learned from.

    Returns
    -------
    result : AttackResult
        A score for each document, larger for members.

    Raises
    ------
    ValueError
        If the sizes do not fit.

    Examples
    --------
    >>> from skdplda.attacks import vocabulary_attack
    >>> X = [[1, 1, 0], [1, 0, 1], [1, 0, 0]]
    >>> vocabulary_attack([True, True, False], X, [True, False, False]).scores.tolist()
    [inf, -inf, 0.2876820724517809]
    """
    released = np.asarray(released, dtype=bool)
    if released.ndim != 1:
        raise ValueError(f"released must be of shape (n_words,); got {released.shape}.")
    X = check_documents(X, len(released)).copy()
    X.eliminate_zeros()
    X.data[:] = 1
    others = np.asarray(X.sum(axis=0)) - 1
    with np.errstate(divide="ignore"):
        evidence = np.where(released, -np.log1p(-(0.5 ** np.maximum(others, 0))), -np.inf)
    documents = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    outside = np.bincount(documents, weights=~released[X.indices], minlength=X.shape[0]) > 0
    inside = np.where(released, evidence, 0.0)
    scores = np.bincount(documents, weights=inside[X.indices], minlength=X.shape[0])
    return AttackResult(np.where(outside, -np.inf, scores), members, "vocabulary")


class ReconstructedCounts(NamedTuple):
    """Counts read off a table.

    Parameters
    ----------
    counts : ndarray of shape (n_components, n_words)
        The nearest whole numbers.
    error : float
        Largest distance of a count from them; 0.5 is no better than chance.
    """

    counts: np.ndarray
    error: float

    @property
    def exact(self) -> bool:
        """Whether the table holds whole counts, within rounding, of more than one value."""
        return bool(self.error < 1e-3 and np.ptp(self.counts) > 0)


def reconstruct_counts(topic_word: ArrayLike, topic_word_prior: float) -> ReconstructedCounts:
    """Read the topic-word counts off a table of (count + prior) / (total + n_words * prior).

    Needs a word without tokens in each topic, which sets the scale: the usual case. Tables of pseudo-counts,
    `components_`, need no such word.

    Parameters
    ----------
    topic_word : array-like of shape (n_components, n_words)
        Released: `topic_word_`, whose rows sum to 1, or `components_`.
    topic_word_prior : float
        The prior beta, which is public.

    Returns
    -------
    found : ReconstructedCounts
        `exact` says whether the table gave the training counts away.

    Raises
    ------
    ValueError
        If the table or the prior is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from skdplda.attacks import reconstruct_counts
    >>> counts = np.array([[5, 0, 3], [0, 2, 2]])
    >>> released = (counts + 0.01) / (counts + 0.01).sum(axis=1, keepdims=True)
    >>> found = reconstruct_counts(released, 0.01)
    >>> found.counts.astype(int).tolist(), found.exact
    ([[5, 0, 3], [0, 2, 2]], True)
    """
    if not topic_word_prior > 0:
        raise ValueError(f"topic_word_prior must be positive; got {topic_word_prior!r}.")
    table = np.asarray(topic_word, dtype=np.float64)
    shares = check_topic_word(table)
    if not (table > 0).all():
        raise ValueError("topic_word must be positive: a table with the prior in every cell.")
    if np.allclose(table.sum(axis=1), 1):
        table = shares * (topic_word_prior / shares.min(axis=1, keepdims=True))
    counts = table - topic_word_prior
    whole = np.rint(counts)
    return ReconstructedCounts(whole, float(np.abs(counts - whole).max()))
