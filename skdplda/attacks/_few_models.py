"""Attacks with few shadow models or none: what one document's models do not show is learnt from all documents."""

from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, polygamma
from scipy.stats import t as student
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from skdplda._types import ArrayLike, Function, Matrix, Sequence
from skdplda.attacks._lira import LEAST_MODELS, RIDGE, observed_and_shadows
from skdplda.attacks._result import AttackResult
from skdplda.attacks._statistics import check_documents, check_topic_word, document_statistics

MOST_FREEDOM = 1e6  # degrees of freedom above which Student's law is the normal one


def bayesian_ratio_attack(
    topic_word: ArrayLike | None,
    X: Matrix,
    members: ArrayLike,
    shadows: Any,
    *,
    statistics: Sequence[str] | None = None,
    n_jobs: int | None = None,
) -> AttackResult:
    """Score every document by a likelihood ratio attack whose normal laws have a prior, after BaVarIA [1]_.

    `likelihood_ratio_attack` estimates two means and two variances for each document, which few shadow models determine
    badly. Here a document has one variance for both kinds of models, with an inverse-gamma prior that all documents
    make together, and its means with and without it are drawn together by how far they are apart for all. What is not
    known remains in the score: it is the ratio of two Student densities. With many shadow models, and equal variances,
    it is LiRA's.

    Parameters
    ----------
    topic_word, X, members, shadows : as in `likelihood_ratio_attack`
        At least two shadow models with, and two without, each document.
    statistics : sequence of str, default=None
        Those of the shadow models to use; None takes all, as if they were independent.
    n_jobs : int, default=None
        Threads, as in joblib.

    Returns
    -------
    result : AttackResult
        A score for each document, larger for members.

    Raises
    ------
    ValueError
        As `likelihood_ratio_attack`, whose example serves this attack too.

    References
    ----------
    .. [1] BaVarIA (2026). arXiv:2603.11799. Our own derivation, in doc/theory/attacks.rst.
    """
    names, observed, values = observed_and_shadows(topic_word, X, shadows, statistics, n_jobs)
    scores = sum(student_ratios(observed[:, i], values[:, :, i], shadows.members) for i in range(len(names)))
    return AttackResult(scores, members, f"Bayesian ratio ({', '.join(names)})")


def student_ratios(observed, values, members):
    """Return the scores from (n_documents,) and (n_models, n_documents)."""
    counts = np.stack([members.sum(axis=0), (~members).sum(axis=0)]).astype(np.float64)
    if counts.min() < LEAST_MODELS:
        raise ValueError(
            f"some document is in, or out of, only {int(counts.min())} shadow models; at least {LEAST_MODELS} of each"
            " are needed. Train more shadow models (4 or more)."
        )
    means = np.stack([(values * kind).sum(axis=0) for kind in (members, ~members)]) / counts
    centres = np.where(members, means[0], means[1])
    squares = ((values - centres) ** 2).sum(axis=0)
    freedom = counts.sum(axis=0) - 2
    variance = squares / freedom + RIDGE * np.maximum((values**2).mean(axis=0), 1.0)
    prior_freedom, prior_variance = variance_prior(variance, freedom)
    whole = prior_freedom + freedom
    variance = (prior_freedom * prior_variance + freedom * variance) / whole
    deviation = np.sqrt(variance)
    apart, spread = shift_prior((means[0] - means[1]) / deviation, (1 / counts).sum(axis=0))
    densities = []
    for own, other, sign in ((0, 1, 1), (1, 0, -1)):
        weight = 1 / (spread + 1 / counts[other])  # of the mean that the other kind and the shift foretell
        predicted = means[other] + sign * apart * deviation
        mean = (counts[own] * means[own] + weight * predicted) / (counts[own] + weight)
        scale = deviation * np.sqrt(1 + 1 / (counts[own] + weight))
        densities.append(student.logpdf((observed - mean) / scale, np.minimum(whole, MOST_FREEDOM)) - np.log(scale))
    return densities[0] - densities[1]


def variance_prior(variance, freedom):
    """Return degrees of freedom and scale of the scaled inverse chi-squared law that documents' variances come from.

    Log-variances have the variance trigamma(freedom / 2) of chance, and what is left is the prior's trigamma.
    """
    logs = np.log(variance)
    low, high = 1e-3, MOST_FREEDOM / 2
    left = np.clip(logs.var() - polygamma(1, freedom / 2).mean(), polygamma(1, high), polygamma(1, low))
    half = brentq(lambda half: polygamma(1, half) - left, low, high)
    prior = 2 * half
    shift = (polygamma(0, freedom / 2) - np.log(freedom / 2)).mean() - (polygamma(0, half) - np.log(half))
    return prior, np.exp(logs.mean() - shift)


def shift_prior(shifts, chance):
    """Return mean and variance of the law that documents' shifts come from, in deviations; `chance` is of estimates."""
    return shifts.mean(), max(float(shifts.var() - chance.mean()), 1e-6)


def relative_attack(
    topic_word: ArrayLike | None,
    X: Matrix,
    members: ArrayLike,
    shadows: Any,
    *,
    mode: Literal["online", "offline"] = "online",
    gamma: float = 1.0,
    n_jobs: int | None = None,
) -> AttackResult:
    """Score every document by the relative attack RMIA [1]_: how many others the target prefers it to.

    A document's ratio is its likelihood under the target over its mean likelihood under shadow models; the score is
    the share of the other documents whose ratio is smaller by the factor `gamma` at least.

    Parameters
    ----------
    topic_word, X, members, shadows : as in `likelihood_ratio_attack`
        The shadow models must have the statistic "zeta", a log-likelihood.
    mode : {"online", "offline"}, default="online"
        Offline uses only the models that were trained without the document; online, both kinds count half.
    gamma : float, default=1.0
        At least 1.
    n_jobs : int, default=None
        Threads, as in joblib.

    Returns
    -------
    result : AttackResult
        A score for each document, from 0 to 1.

    Raises
    ------
    ValueError
        If the shadow models have no "zeta", or too few are with or without a document.

    References
    ----------
    .. [1] Zarifzadeh, Liu and Shokri (2024). Low-Cost High-Power Membership Inference Attacks. ICML. Equations 3-7.

    Examples
    --------
    >>> import numpy as np
    >>> from skdplda.attacks import ShadowModels, relative_attack
    >>> seen = np.array([[True, False], [False, True]])
    >>> shadows = ShadowModels(seen, np.full((2, 2, 1), -3.0), ("zeta",))
    >>> relative_attack([[0.9, 0.1], [0.1, 0.9]], [[5, 0], [2, 2]], [True, False], shadows).scores.tolist()
    [1.0, 0.0]
    """
    if mode not in ("online", "offline"):
        raise ValueError(f"mode must be 'online' or 'offline'; got {mode!r}.")
    if not (np.isfinite(gamma) and gamma >= 1):
        raise ValueError(f"gamma must be a number of at least 1; got {gamma!r}.")
    _, observed, values = observed_and_shadows(topic_word, X, shadows, ["zeta"], n_jobs)
    kinds = (shadows.members, ~shadows.members) if mode == "online" else (~shadows.members,)
    if min(kind.sum(axis=0).min() for kind in kinds) < 1:
        raise ValueError("some document is in, or out of, no shadow model; train more, or use mode='offline'.")
    means = [logsumexp(np.where(kind, values[:, :, 0], -np.inf), axis=0) - np.log(kind.sum(axis=0)) for kind in kinds]
    ratio = observed[:, 0] - (logsumexp(means, axis=0) - np.log(len(means)))
    smaller = np.searchsorted(np.sort(ratio), ratio - np.log(gamma), side="right") - (gamma == 1)
    return AttackResult(smaller / max(len(ratio) - 1, 1), members, f"relative {mode}")


def quantile_attack(
    topic_word: ArrayLike,
    X: Matrix,
    members: ArrayLike,
    reference: Matrix,
    *,
    statistic: str | Function = "zeta",
    random_state: int | None = 0,
    n_jobs: int | None = None,
) -> AttackResult:
    """Score every document by quantile regression [1]_, without any shadow model.

    On reference documents, which the target has not seen, two quantiles of the statistic are learnt from what a
    document looks like: its length, its distinct words, and how rare they are among the reference. The score is how far
    a document is above its median, in units of the distance to its 90 % quantile.

    Parameters
    ----------
    topic_word, X, members : as in `threshold_attack`
        The target's topics, the documents that it may have seen, and the truth.
    reference : array-like or sparse matrix of shape (n_reference, n_words)
        Documents that the target was not trained on; at least 20.
    statistic : str or callable, default="zeta"
        As in `document_statistics`.
    random_state : int, default=0
        Of the regression.
    n_jobs : int, default=None
        Threads, as in joblib.

    Returns
    -------
    result : AttackResult
        A score for each document, larger for members.

    Raises
    ------
    ValueError
        If there are too few reference documents, or sizes do not fit.

    References
    ----------
    .. [1] Bertran, Tang, Roth, Kearns, Morgenstern and Wu (2023). Scalable Membership Inference Attacks via Quantile
       Regression. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> from skdplda.attacks import quantile_attack
    >>> from skdplda.datasets import make_lda_corpus
    >>> X = make_lda_corpus(150, 200, 2, mean_length=20, random_state=0).data
    >>> table = LatentDirichletAllocation(2, max_iter=5, random_state=0).fit(X[:50]).components_
    >>> quantile_attack(table, X[:100], np.arange(100) < 50, X[100:]).auc > 0.5
    True
    """
    topic_word = check_topic_word(topic_word)
    X, reference = (check_documents(documents, topic_word.shape[1]) for documents in (X, reference))
    if reference.shape[0] < 20:
        raise ValueError(f"reference must hold at least 20 documents; got {reference.shape[0]}.")
    known, scored = (
        document_statistics(topic_word, documents, [statistic], n_jobs=n_jobs)[:, 0] for documents in (reference, X)
    )
    frequency = (np.asarray(reference.sum(axis=0)) + 1.0) / (reference.sum() + reference.shape[1])
    looks = [appearance(documents, np.log(frequency)) for documents in (reference, X)]
    trend = np.linalg.lstsq(looks[0], known, rcond=None)[0]  # what trees would need many leaves for
    left = known - looks[0] @ trend
    quantiles = []
    for quantile in (0.5, 0.9):
        model = HistGradientBoostingRegressor(
            loss="quantile", quantile=quantile, max_iter=50, random_state=random_state, min_samples_leaf=10
        )
        with threadpool_limits(1, "openmp"):  # trees this small only wait for threads: minutes, where cores are busy
            quantiles.append(model.fit(looks[0], left).predict(looks[1]))
    least = 1e-3 * max(float(left.std()), 1e-12)
    scores = (scored - looks[1] @ trend - quantiles[0]) / np.maximum(quantiles[1] - quantiles[0], least)
    return AttackResult(scores, members, "quantile regression")


def appearance(X, log_frequency):
    """Return what a document looks like without the target: numbers of tokens and words, and how rare these are."""
    length, words = np.asarray(X.sum(axis=1), float).ravel(), np.diff(X.indptr).astype(float)
    rare = X @ log_frequency
    return np.column_stack([np.ones(len(length)), length, words, rare, np.log1p(length), length * np.log1p(length)])
