"""The likelihood ratio attack: is the target's statistic more like that of models with the document, or without?"""

from typing import Any, Literal

import numpy as np

from skdplda._types import ArrayLike, Matrix, Sequence
from skdplda.attacks._result import AttackResult
from skdplda.attacks._statistics import document_statistics

LEAST_MODELS = 2  # of a kind: a variance needs two
# Of the mean square, added to a variance, so that statistics that never change decide nothing. Chosen by hand.
RIDGE = 1e-12


def likelihood_ratio_attack(
    topic_word: ArrayLike | None,
    X: Matrix,
    members: ArrayLike,
    shadows: Any,
    *,
    mode: Literal["online", "offline"] = "online",
    statistics: Sequence[str] | None = None,
    n_jobs: int | None = None,
) -> AttackResult:
    """Score every document by the likelihood ratio attack (LiRA) [1]_ on topic models [2]_.

    Online, a document's score is the logarithm of the ratio of two normal densities, fitted to its statistic under
    shadow models trained with and without it. Offline, it is the standardized distance from the models without it:
    the normal distribution function of algorithm 3 in [2]_ before rounding makes ties.

    Parameters
    ----------
    topic_word, X, members : as in `threshold_attack`
        Documents in the order of the shadow models'. Where `topic_word` is None, X are the statistics of the documents
        under the target, (n_documents, n_statistics), as `shadows` names them: of any model.
    shadows : ShadowModels
        From `train_shadow_models` on the same documents, or made of statistics of other models.
    mode : {"online", "offline"}, default="online"
        Offline uses only the models that were trained without the document.
    statistics : sequence of str, default=None
        Those of the shadow models to use; None takes all. Several are modelled as jointly normal online, and their
        standardized distances are averaged offline.
    n_jobs : int, default=None
        Threads, as in joblib.

    Returns
    -------
    result : AttackResult
        A document without known words has the score 0: it says nothing.

    Raises
    ------
    ValueError
        If there are fewer than two shadow models with (online) or without a document, or the vocabulary, the
        documents or the statistics are others than the shadow models'.

    References
    ----------
    .. [1] Carlini, Chien, Nasr, Song, Terzis and Tramer (2022). Membership Inference Attacks From First Principles.
       IEEE S&P.
    .. [2] Manzonelli, Zhang and Vadhan (2024). Membership Inference Attacks and Privacy in Topic Modeling.
       Algorithms 2 and 3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> from skdplda.attacks import likelihood_ratio_attack, train_shadow_models
    >>> from skdplda.datasets import make_lda_corpus
    >>> X = make_lda_corpus(41, 200, 2, mean_length=20, random_state=0).data
    >>> model = LatentDirichletAllocation(2, max_iter=5, random_state=0)
    >>> members = np.arange(41) < 20
    >>> shadows = train_shadow_models(model, X, 8, random_state=1)
    >>> target = model.fit(X[members]).components_
    >>> likelihood_ratio_attack(target, X, members, shadows).auc > 0.5
    True
    """
    if mode not in ("online", "offline"):
        raise ValueError(f"mode must be 'online' or 'offline'; got {mode!r}.")
    names, observed, values = observed_and_shadows(topic_word, X, shadows, statistics, n_jobs)
    scores = likelihood_ratios(observed, values, shadows.members, online=mode == "online")
    return AttackResult(scores, members, f"LiRA {mode} ({', '.join(names)})")


def observed_and_shadows(topic_word, X, shadows, statistics, n_jobs):
    """Return the statistics' names, their values under the target and those under the shadow models."""
    names = shadows.names if statistics is None else statistics
    names = (names,) if isinstance(names, str) or callable(names) else tuple(names)
    missing = [name for name in names if name not in shadows.names]
    if missing:
        raise ValueError(f"statistics must be among the shadow models' {shadows.names}; got {missing}.")
    columns = [shadows.names.index(name) for name in names]
    if topic_word is None:
        observed = given_statistics(X, len(shadows.names))[:, columns]
    else:
        observed = document_statistics(topic_word, X, names, proportions=shadows.proportions, n_jobs=n_jobs)
    if len(observed) != shadows.members.shape[1]:
        raise ValueError(
            f"X has {len(observed)} documents and the shadow models were asked about {shadows.members.shape[1]}."
        )
    return tuple(map(_name, names)), observed, shadows.values[:, :, columns]


def given_statistics(X, n_statistics):
    """Return statistics that are given in place of documents, (n_documents, n_statistics); refuse what are none."""
    found = np.asarray(X, np.float64)
    if found.ndim != 2 or found.shape[1] != n_statistics or not np.isfinite(found).all():
        raise ValueError(
            f"without topic_word, X must be finite statistics of the documents, with {n_statistics} columns as the"
            f" shadow models have; got shape {found.shape}."
        )
    return found


def likelihood_ratios(observed, values, members, *, online):
    """Return the scores from (n_documents, n_statistics) and (n_models, n_documents, n_statistics)."""
    kinds = (members, ~members) if online else (~members,)
    fewest = min(int(kind.sum(axis=0).min()) for kind in kinds)
    if fewest < LEAST_MODELS:
        raise ValueError(
            f"some document is in, or out of, only {fewest} shadow models; at least {LEAST_MODELS} of each are needed"
            " for a variance. Train more shadow models (4 or more), or use mode='offline'."
        )
    if not online:
        mean, covariance = moments(values, ~members)
        deviation = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        return ((observed - mean) / deviation).mean(axis=1)
    inside, outside = (log_density(observed, *moments(values, kind)) for kind in kinds)
    return inside - outside


def moments(values, kind):
    """Return each document's mean and covariance of the statistics over the models of a kind."""
    weight = kind / kind.sum(axis=0)
    mean = np.einsum("md,mds->ds", weight, values)
    centred = (values - mean) * np.sqrt(kind / (kind.sum(axis=0) - 1))[:, :, None]
    covariance = np.einsum("mds,mdt->dst", centred, centred)
    floor = RIDGE * np.maximum((values**2).mean(axis=0), 1.0)
    return mean, covariance + floor[:, :, None] * np.eye(values.shape[2])


def log_density(observed, mean, covariance):
    """Return the normal log-density of each document's statistics, without the constant."""
    distance = observed - mean
    solved = np.linalg.solve(covariance, distance[:, :, None])[:, :, 0]
    return -0.5 * ((distance * solved).sum(axis=1) + np.linalg.slogdet(covariance)[1])


def _name(statistic):
    return statistic if isinstance(statistic, str) else getattr(statistic, "__name__", "statistic")
