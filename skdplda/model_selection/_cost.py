"""What a search without noise in its scores costs, for the ledger."""

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral

from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ParameterGrid,
    ParameterSampler,
    PredefinedSplit,
    RandomizedSearchCV,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)

from skdplda._checks import is_integer
from skdplda._types import Estimator
from skdplda.privacy import PrivacyGuarantee, PrivacyUnit, doubted
from skdplda.releases import privacy_guarantee

PARTITIONS = (KFold, StratifiedKFold, GroupKFold, StratifiedGroupKFold)  # each sample is held out exactly once
TOGETHER = (GroupKFold, StratifiedGroupKFold)  # with all others of its group; the other splitters divide users
REPEATED = (RepeatedKFold, RepeatedStratifiedKFold)  # and these once in each repetition
SEARCHES = (GridSearchCV, RandomizedSearchCV)  # each candidate is fitted once a split; nothing else is

MOVED = "with one unit more, the splitter may move all other units to other splits"


def search_cost(search: Estimator, *, groups: bool = False) -> PrivacyGuarantee:
    """What scikit-learn's grid or randomized search costs when it is run on private data, to spend it in a ledger.

    Such a search fits each candidate once a split, and the best again on everything. Each fit spends its own guarantee.
    Where the splits are a partition into folds (a number, None or scikit-learn's K-fold splitters) a document is in all
    training sets of a candidate but one, and so is a user with `GroupKFold` and `StratifiedGroupKFold`, which keep a
    user's documents together. Other splitters of documents divide users, who may then be in all training sets, as any
    unit with any other splitter. All of this holds only if which
    splits a unit is in does not depend on the other units. scikit-learn's splitters go by position or by a
    permutation, which one unit more shifts, so the result is claimed. Splits that are given (a list, a
    `PredefinedSplit`) keep the status of the fits, and whoever made them answers for the assumption. The ledger of a
    `with` block sees only the fits of its own process: call this, spend it, and leave the search outside the block.

    Parameters
    ----------
    search : GridSearchCV or RandomizedSearchCV
        `cv` must be a number of folds, None (five), a list of splits, or a splitter that tells their number without
        data. A randomized search needs lists of values, or an integer as its `random_state`, for its candidates to be
        known.
    groups : bool, default=False
        Whether the fits are given groups, the users of documents. The splitter must be given the same.

    Returns
    -------
    guarantee : PrivacyGuarantee
        Of all fits together. It does not cover the scores, which come from private documents without noise.

    Raises
    ------
    ValueError
        If the class of the search, the number of its splits or its candidates are not known.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skdplda import PrivateCGSLDA
    >>> from skdplda.model_selection import search_cost
    >>> search = GridSearchCV(PrivateCGSLDA(epsilon=1.0), {"n_components": [5, 10, 20]}, cv=3)
    >>> 1.0 < search_cost(search).epsilon < 10.0  # ten fits, of which a document meets seven
    True
    """
    if type(search) not in SEARCHES:
        raise ValueError(
            f"search must be a GridSearchCV or a RandomizedSearchCV; got {type(search).__name__}, and how often that"
            " fits on a document is not known here. Add up the guarantees of its fits by PrivacyAccountant.spend."
        )
    costs = [
        privacy_guarantee(clone(search.estimator).set_params(**parameters), groups=groups)
        for parameters in _candidates(search)
    ]
    passes = _passes(search.cv, costs[0].unit)
    fits = [cost for cost in _dearest(search, costs) for _ in range(passes)]
    if search.refit:  # of which candidate, the data decide
        fits += _distinct(costs)
    total = fits[0].compose(*fits[1:])
    unpriced = "cross-validation scores, and the choice made by them: they come from private documents without noise"
    assumptions = [*total.assumptions, "which splits a unit is in does not depend on other units"]
    if total.unit == PrivacyUnit.USER and type(search.cv) in TOGETHER:
        assumptions.append(f"{type(search.cv).__name__} is given the same groups as the fits")
    total = replace(total, not_covered=(*total.not_covered, unpriced), assumptions=tuple(assumptions))
    if isinstance(search.cv, (list, tuple)) or type(search.cv) is PredefinedSplit:
        return total
    return doubted(total, MOVED)


def _passes(cv, unit):
    """Return in how many training sets of a candidate a unit may be."""
    if cv is None or isinstance(cv, Integral):
        cv = check_cv(cv)
    whole = unit != PrivacyUnit.USER or type(cv) in TOGETHER  # else the fold of one document leaves a user in the rest
    if whole and type(cv) in PARTITIONS:
        return max(cv.get_n_splits() - 1, 1)
    if whole and type(cv) in REPEATED:
        folds = cv.get_n_splits() // cv.n_repeats
        return cv.n_repeats * max(folds - 1, 1)
    if isinstance(cv, Iterator):
        raise ValueError(f"cv must be a list of splits and no iterator, which can be read only once; got {cv!r}.")
    try:
        return check_cv(cv).get_n_splits()
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"cv must tell its number of splits without data, which are private; got {cv!r}: {error}"
        ) from None


def _candidates(search):
    """Return the parameters of all candidates, or of all that there may be."""
    if type(search) is GridSearchCV:
        return list(ParameterGrid(search.param_grid))
    if is_integer(search.random_state):
        return list(ParameterSampler(search.param_distributions, search.n_iter, random_state=search.random_state))
    given = search.param_distributions
    for grid in [given] if isinstance(given, dict) else given:
        for name, values in grid.items():
            if hasattr(values, "rvs"):
                raise ValueError(
                    f"random_state of the search must be an integer where {name!r} has a distribution: else the"
                    f" candidates, and what they cost, are not known before the search; got {search.random_state!r}."
                )
    return list(ParameterGrid(given))


def _dearest(search, costs):
    """Return the costs of the candidates that are fitted, or of as many or more that cost no less."""
    if type(search) is GridSearchCV or len(costs) <= search.n_iter:
        return costs
    return costs[: search.n_iter] if len(_distinct(costs)) == 1 else costs


def _distinct(costs):
    """Return one of each kind of cost."""
    return list({(cost.epsilon, cost.delta, cost.event, cost.event_delta): cost for cost in costs}.values())
