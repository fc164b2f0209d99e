"""Planted records that pull a victim's words into the keywords of a cluster."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans

from skdplda._types import ArrayLike, Function, Matrix
from skdplda.attacks._result import binomial_interval

N_PLANTED = 30  # records of the attacker, each of another user
NEAR = 0.05  # how far planted directions are from the victim's, which the attacker knows roughly


class PoisoningResult(NamedTuple):
    """How often an attacker who plants records names a victim's secret word.

    Parameters
    ----------
    success : float
        Share of the trials in which the right word was named.
    n_trials, n_secrets : int
        Trials, and words that the secret may be, all equally likely.
    lower, upper : float
        Clopper and Pearson's interval of the probability, 95 %.
    """

    success: float
    n_trials: int
    n_secrets: int
    lower: float
    upper: float


def threshold_keywords(
    vectors: ArrayLike,
    counts: Matrix,
    users: ArrayLike,
    *,
    n_clusters: int = 10,
    least_users: int = 10,
    random_state: int = 0,
) -> np.ndarray:
    """Summarise clusters without noise, and show those of at least so many users, as Clio does [1]_.

    It is what `poisoning_attack` is tried on. Texts are clustered by embeddings; the scores, (n_clusters, n_words), are
    class-based tf-idf, zeros in clusters that are not shown. Language models, which write Clio's summaries, are left
    out.

    .. [1] A. Tamkin et al. (2024). Clio: privacy-preserving insights into real-world AI use. Section 2.
    """
    vectors, users, counts = np.asarray(vectors, np.float64), np.asarray(users), sp.csr_array(counts)
    labels = KMeans(n_clusters, n_init=1, random_state=random_state).fit_predict(vectors)
    members = sp.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))), (n_clusters, len(labels)))
    words = (members @ counts).toarray()
    tf = words / np.maximum(words.sum(axis=1, keepdims=True), 1)
    scores = tf * np.log1p(words.sum() / n_clusters / np.maximum(words.sum(axis=0), 1))
    shown = np.array([len(np.unique(users[labels == k])) >= least_users for k in range(n_clusters)])
    return scores * shown[:, None]


def poisoning_attack(
    summarize: Function,
    vectors: ArrayLike,
    counts: Matrix,
    *,
    n_secrets: int = 20,
    n_trials: int = 50,
    random_state: int = 0,
) -> PoisoningResult:
    """Plant records beside a victim, and read the victim's secret word off the keywords.

    The idea is that of Cliopatra [1]_: an attacker who knows roughly what a victim wrote about plants records of many
    users there, which form a cluster with the victim's, large enough for any threshold. What is in its summary and was
    not planted is the victim's. Here each trial draws a direction that is far from the texts, a secret among words that
    nobody else uses, and a victim's record with it. The attacker sees the scores of all words in all clusters, and
    names the secret with the highest one.

    Parameters
    ----------
    summarize : callable
        Takes vectors, counts and users, and returns scores of shape (n_clusters, n_words): what is released. The
        counts have `n_secrets` more columns than those given; these are the words that the secret may be.
    vectors : array-like of shape (n_documents, n_dimensions)
        Embeddings of other people's texts, one user each.
    counts : sparse matrix of shape (n_documents, n_words)
        Of their words.
    n_secrets : int, default=20
        Words that the secret may be.
    n_trials : int, default=50
        Independent repetitions.
    random_state : int, default=0
        Of the attack.

    Returns
    -------
    result : PoisoningResult
        Guessing succeeds in a share of 1 / n_secrets; where one record is protected by epsilon and delta, no attack
        exceeds exp(epsilon) / n_secrets + delta.

    References
    ----------
    .. [1] M. S. M. S. Annamalai, E. De Cristofaro, P. Kairouz (2026). Cliopatra: extracting private information from
       LLM insights.

    Examples
    --------
    >>> import numpy as np
    >>> from skdplda.attacks import poisoning_attack, threshold_keywords
    >>> rng = np.random.default_rng(0)
    >>> vectors, counts = rng.normal(size=(300, 10)) + np.eye(10)[rng.integers(3, size=300)], rng.poisson(1, (300, 8))
    >>> poisoning_attack(threshold_keywords, vectors, counts, n_trials=20).success > 0.5
    True
    """
    rng = np.random.default_rng(random_state)
    vectors, counts = np.asarray(vectors, np.float64), sp.csr_array(counts)
    n_words, n_tokens = counts.shape[1], max(1, round(counts.sum() / counts.shape[0]))
    length = np.sqrt((vectors**2).sum(axis=1).mean())
    right = 0
    for _ in range(n_trials):
        direction = rng.standard_normal(vectors.shape[1])
        direction -= vectors.mean(axis=0) * (direction @ vectors.mean(axis=0)) / max(length**2, 1e-300)
        direction *= length / np.sqrt(direction @ direction)
        planted = direction + NEAR * length * rng.standard_normal((N_PLANTED + 1, len(direction)))
        context = rng.multinomial(n_tokens, np.full(n_words, 1 / n_words), N_PLANTED + 1)
        secret = int(rng.integers(n_secrets))
        secrets = np.zeros((N_PLANTED + 1, n_secrets), int)
        secrets[0, secret] = n_tokens  # the victim
        others = sp.csr_array((counts.shape[0], n_secrets), dtype=int)
        wider = sp.vstack([sp.hstack([counts, others]), sp.csr_array(np.hstack([context, secrets]))], format="csr")
        order = rng.permutation(wider.shape[0])
        every = np.concatenate([vectors, planted])[order]
        scores = np.asarray(summarize(every, wider[order], np.arange(len(order))))[:, n_words:].max(axis=0)
        best = np.flatnonzero(scores == scores.max())
        right += int(rng.choice(best)) == secret
    return PoisoningResult(right / n_trials, n_trials, n_secrets, *binomial_interval(right, n_trials, 0.95))
