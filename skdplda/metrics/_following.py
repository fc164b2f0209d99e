"""Topics of several models beside each other: which is which, how they grow, which are born and which die."""

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from skdplda._arithmetic import ndtri
from skdplda._checks import is_real, kind_of
from skdplda._types import ArrayLike, Sequence

BORN = 4.0  # times what the size of the period before makes expect, at least; for deaths, at most one part in as many
CLEAR = 3.0  # the same of the sum of all sizes, for shares to mean something
MEDIAN = 0.455  # of the square of a standard normal variable
OF_MEDIAN = math.pi / 2  # variance of a median over that of a mean


def match_topics(first: ArrayLike | Any, second: ArrayLike | Any) -> tuple[np.ndarray, np.ndarray]:
    """Match the topics of two models one to one, so that similarities add up to most: the Hungarian method [1]_.

    Parameters
    ----------
    first, second : array-like of shape (n_topics, n_words), or fitted model
        Topic-word distributions over the same words; rows sum to 1. Of models their own, or the directions of clusters.

    Returns
    -------
    match : ndarray of int of shape (n_topics of `second`,)
        For each topic of `second` its number in `first`; -1 for those that are too many.
    similarity : ndarray of shape (n_topics of `second`,)
        Of these pairs: 1 less the Jensen-Shannon distance of topics, in bits, or the cosine of clusters. nan without a
        match.

    Raises
    ------
    ValueError
        If one has clusters and the other topics, or they are of different words or dimensions.

    References
    ----------
    .. [1] H. Kuhn (1955). The Hungarian method for the assignment problem. Naval Research Logistics Quarterly 2.

    Examples
    --------
    >>> from skdplda.metrics import match_topics
    >>> match, similarity = match_topics([[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])
    >>> match.tolist(), similarity.tolist()
    ([1, 0], [1.0, 1.0])
    """
    (a, kind), (b, other) = _rows(first), _rows(second)
    _check_alike((a, kind), (b, other))
    return _matched(a, b, kind)


def _check_alike(first, second):
    (a, kind), (b, other) = first, second
    if kind != other or a.shape[1] != b.shape[1]:
        raise ValueError(
            f"models to be matched must both have clusters or topics, of the same columns; got {kind} of {a.shape[1]}"
            f" and {other} of {b.shape[1]}."
        )


def _matched(a, b, kind):
    """Return what `match_topics` does, of rows of a kind."""
    if kind == "clusters":
        near = 1 - np.nan_to_num(cdist(a, b, "cosine"), nan=1.0)  # no direction: as if orthogonal
    else:
        near = 1 - np.nan_to_num(cdist(a, b, "jensenshannon")) / math.sqrt(math.log(2))
    rows, columns = linear_sum_assignment(near, maximize=True)
    match, similarity = np.full(len(b), -1), np.full(len(b), np.nan)
    match[columns], similarity[columns] = rows, near[rows, columns]
    return match, similarity


def join_topics(models: Sequence[Any], *, least: float = 0.5) -> pd.DataFrame:
    """Make one table of the topics of several models, of regions or branches: sizes add up, and so do their errors.

    It reads released values only, and costs nothing. Each model's topics are matched to those that are in the table
    already, by `match_topics`; one that is like none of them is a row of its own.

    Parameters
    ----------
    models : sequence of fitted or released models
        All with clusters or all with topics, of the same columns. Their documents should be disjoint: one that is in
        two models is counted twice.
    least : float, default=0.5
        Similarity of two topics that are one, at least, as `match_topics` has it.

    Returns
    -------
    topics : DataFrame of shape (n_topics, 4 + n_models)
        "name", by the first model that has the topic; "size", the sum of the released sizes, and "size_deviation", of
        its noise, both nan of models without sizes, as all but clusters are; "similarity", the least to the topic as
        the first model has it, nan where one model has it alone; and "model_0", "model_1", ..., its number in each, or
        NA.

    Raises
    ------
    ValueError
        If there are no models, or they are of different kinds, words or dimensions.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> north, south = (
    ...     SimpleNamespace(cluster_centers_=rows, cluster_sizes_=[900.0, 60.0], size_deviation_=deviation)
    ...     for rows, deviation in (([[1, 0, 0], [0, 1, 0]], 3.0), ([[0, 0, 1], [1, 0, 0]], 4.0))
    ... )
    >>> from skdplda.metrics import join_topics
    >>> join_topics([north, south])[["size", "size_deviation", "model_0", "model_1"]].to_numpy().tolist()
    [[960.0, 5.0, 0, 1], [60.0, 3.0, 1, <NA>], [900.0, 4.0, <NA>, 0]]
    """
    models = _several(models, "two models or more")
    if not models:
        raise ValueError("models must be one at least; got none.")
    if not is_real(least):
        raise ValueError(f"least must be a number; got {least!r}.")
    (known, kind), found = _rows(models[0]), []
    known = known[:0]
    for t, model in enumerate(models):
        rows = _rows(model)
        _check_alike((known, kind), rows)
        match, similarity = _matched(known, rows[0], kind)
        new = ~(similarity >= least)  # nan too
        match[new], similarity[new] = len(known) + np.arange(new.sum()), np.nan
        known, number = np.concatenate([known, rows[0][new]]), np.arange(len(match))
        sizes, deviation = _sizes(model, number) or (np.nan, np.nan)
        columns = {"topic": match, "name": _names(model, len(match)), "size": sizes, "variance": deviation**2}
        found.append(pd.DataFrame(columns | {"similarity": similarity, "model": f"model_{t}", "number": number}))
    topics = pd.concat(found, ignore_index=True)
    numbers = topics.pivot(index="topic", columns="model", values="number").astype("Int64")
    table = topics.groupby("topic").agg(
        name=("name", "first"),
        size=("size", lambda sizes: sizes.sum(skipna=False)),
        size_deviation=("variance", lambda variances: math.sqrt(variances.sum(skipna=False))),
        similarity=("similarity", "min"),
    )
    return table.join(numbers[[f"model_{t}" for t in range(len(models))]])


def _several(models, what):
    """Return a list of models, or refuse one."""
    if hasattr(models, "fit") or hasattr(models, "topic_word_"):
        raise ValueError(f"models must be a sequence, with {what}; got one model.")
    return list(models)


def follow_topics(models: Sequence[Any], periods: ArrayLike | None = None, *, alpha: float = 0.05) -> pd.DataFrame:
    """Follow the topics of models of successive periods, and say which were born and which died.

    It reads released values only, and costs nothing. A topic is matched to one of the period before, by
    `match_topics`; with `warm_started` fits that is its own number, nearly always.

    Parameters
    ----------
    models : sequence of fitted or released models
        One a period, with equally many topics.
    periods : array-like of shape (n_periods,), default=None
        Names of the periods; None for numbers from 0.
    alpha : float, default=0.05
        Probability, at most, that any birth or death is said where all shares stay the same, of clusters that keep
        their places, as `warm_started` ones do. Those of fits that start anew are others, and so are their shares.

    Returns
    -------
    topics : DataFrame of shape (n_periods * n_topics, 8)
        One row for each period and topic: "period"; "topic", the number that it keeps, that of the first period;
        "number", in the model of the period; "name"; "share", of the released sizes; "similarity" to the period before;
        "z", by how many deviations its size differs from what that of the period before makes expect; and "event":
        "birth", "death", or "". A birth is of a topic that is four times as large as expected, or more, with a "z"
        beyond the normal quantile of `alpha` over all births and deaths that could be said; a death is of one that has
        a quarter or less. "z" is nan of the first period, next to one whose sizes together are below three deviations
        of their noise, and of models without `size_deviation_`, as all but clusters are: the noise of their sizes is
        not known.

    Raises
    ------
    ValueError
        If there are no models, they differ in their numbers or kinds of topics, or there is not one period a model.

    Notes
    -----
    A size is expected to grow as the median of all does. Its variance is that of its noise and, as documents come by
    chance, at most the size itself. Centres move, too, and with them the borders of clusters; so the median of what all
    sizes changed by, beyond that variance, is added. A topic whose place another takes is seen by a low similarity, and
    is no event.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> may, june = (
    ...     SimpleNamespace(cluster_centers_=[[1, 0, 0], [0, 1, 0], [0, 0, 1]], cluster_sizes_=sizes, size_deviation_=9)
    ...     for sizes in ([900.0, 600.0, 5.0], [880.0, 610.0, 400.0])
    ... )
    >>> from skdplda.metrics import follow_topics
    >>> found = follow_topics([may, june], ["May", "June"])
    >>> found[found["event"] != ""][["period", "topic", "event"]].to_numpy().tolist()
    [['June', 2, 'birth']]
    """
    models = _several(models, "one model a period")
    periods = np.arange(len(models)) if periods is None else np.asarray(periods)
    tables = [_rows(model)[0] for model in models]
    if not models or periods.shape != (len(models),) or len({len(table) for table in tables}) > 1:
        raise ValueError(
            "models must be one at least, with one period each and equally many topics; got"
            f" {len(models)} models of {[len(table) for table in tables]} topics, and periods of shape {periods.shape}."
        )
    if len(set(periods.tolist())) < len(models):
        raise ValueError("periods must be all different.")
    if not is_real(alpha) or not 0 < alpha < 1:
        raise ValueError(f"alpha must be above 0 and below 1; got {alpha!r}.")
    n_topics, found = len(tables[0]), []
    beyond = -ndtri(alpha / (2 * n_topics * max(len(models) - 1, 1)))
    number, similarity = np.arange(n_topics), np.full(n_topics, np.nan)
    for t, (period, model) in enumerate(zip(periods.tolist(), models, strict=True)):
        z, event = np.full(n_topics, np.nan), np.full(n_topics, "", dtype=object)
        if t:
            match, near = match_topics(models[t - 1], model)
            follower = np.argsort(match, kind="stable")  # the number now, by the number in the period before
            before, number = number, follower[number]
            similarity = near[number]
            both = _sizes(models[t - 1], before), _sizes(model, number)
            if None not in both:
                z, expected = _changes(*both)
                event[(z > beyond) & (both[1][0] >= BORN * expected)] = "birth"
                event[(z < -beyond) & (BORN * both[1][0] <= expected)] = "death"
        names, shares = _names(model, n_topics), _shares(model, n_topics)
        columns = {"period": period, "topic": np.arange(n_topics), "number": number, "name": names[number]}
        columns |= {"share": shares[number], "similarity": similarity, "z": z, "event": event}
        found.append(pd.DataFrame(columns))
    return pd.concat(found, ignore_index=True)


def _rows(model):
    """Return what topics are compared by, one row a topic, and its kind."""
    if hasattr(model, "cluster_centers_"):
        return np.asarray(model.cluster_centers_, dtype=float), "clusters"
    if hasattr(model, "fit") and not hasattr(model, "topic_word_"):
        raise ValueError(
            f"models must be fitted ones with topics or clusters; got {kind_of(model)}. Of a pipeline give the"
            " last step."
        )
    rows = np.asarray(getattr(model, "topic_word_", model), dtype=float)
    if rows.ndim != 2 or not len(rows) or not np.isfinite(rows).all():
        raise ValueError(f"topics must be a table of finite numbers with one row each; got shape {rows.shape}.")
    return rows, "topics"


def _sizes(model, number):
    """Return released sizes and their deviations, of topics in this order; None where they have no deviation."""
    if not hasattr(model, "size_deviation_"):
        return None
    sizes = np.asarray(model.cluster_sizes_, dtype=float)
    return sizes[number], np.broadcast_to(np.asarray(model.size_deviation_, dtype=float), sizes.shape)[number]


def _changes(before, now):
    """Return by how many deviations sizes differ from what those of the period before make expect, and the latter.

    They are scaled by the median of the ratios of all sizes: a birth takes from the shares of all others.
    """
    (old, old_deviation), (new, deviation) = before, now
    if any(sizes.sum() <= CLEAR * math.sqrt(float((noise**2).sum())) for sizes, noise in (before, now)):
        return np.full(len(new), np.nan), new
    weights = np.where(old > CLEAR * old_deviation, np.maximum(old, 0), 0)
    ratio = _median(new / np.where(weights > 0, old, np.inf), weights) if weights.any() else new.sum() / old.sum()
    ratio = max(ratio, 0.0)
    change = new - ratio * old
    variance = np.maximum(new, 0) + deviation**2 + ratio**2 * (np.maximum(old, 0) + old_deviation**2)
    moved = max(float(np.median(change**2)) / MEDIAN - float(np.median(variance)), 0.0)
    of_ratio = OF_MEDIAN * variance.sum() / max(weights.sum(), old.sum()) ** 2
    return change / np.sqrt(np.maximum(variance + moved + of_ratio * old**2, 1e-300)), ratio * old


def _median(values, weights):
    """Return the weighted median."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, below[-1] / 2)])


def _names(model, n_topics):
    names = model.get_feature_names_out() if hasattr(model, "get_feature_names_out") else None
    return np.array([f"topic_{k}" for k in range(n_topics)] if names is None else names, dtype=object)


def _shares(model, n_topics):
    """Return the share of each topic of the released sizes; nan where none are known."""
    if hasattr(model, "size_deviation_"):
        sizes = np.maximum(np.asarray(model.cluster_sizes_, dtype=float), 0)
    else:
        sizes = model._topic_sizes() if hasattr(model, "_topic_sizes") else None
    return np.full(n_topics, np.nan) if sizes is None else sizes / max(sizes.sum(), 1e-300)
