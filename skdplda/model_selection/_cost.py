"""What a search without noise in its scores costs, for the ledger."""

from dataclasses import replace

from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, check_cv

from skdplda._types import Estimator
from skdplda.privacy import PrivacyGuarantee
from skdplda.releases import privacy_guarantee

__all__ = ["search_cost"]


def search_cost(search: Estimator, *, groups: bool = False) -> PrivacyGuarantee:
    """What scikit-learn's grid search costs when it is run on private data, to spend it in a ledger.

    A grid search fits each candidate on all folds but one, once a fold, and the best again on everything. Each fit
    spends its own guarantee, and a unit is in all of them but one fold's of each candidate, provided that which fold
    it is in does not depend on the other units: scikit-learn's splitters go by position, which one unit more shifts;
    derive folds from the units themselves and give them as `PredefinedSplit`. The ledger of a `with`
    block sees only the fits of its own process: call this, spend it, and leave the search outside the block.

    Parameters
    ----------
    search : GridSearchCV
        Before or after its fit. `cv` must be a number of folds, None (five) or a splitter that tells their number
        without data.
    groups : bool, default=False
        Whether the fits are given groups.

    Returns
    -------
    guarantee : PrivacyGuarantee
        Of all fits together. It does not cover the scores, which come from private documents without noise.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skdplda import PrivateCGSLDA
    >>> from skdplda.model_selection import search_cost
    >>> search = GridSearchCV(PrivateCGSLDA(epsilon=1.0), {"n_components": [5, 10, 20]}, cv=3)
    >>> 1.0 < search_cost(search).epsilon < 10.0  # ten fits, of which a document meets seven
    True
    """
    folds = check_cv(search.cv).get_n_splits()
    costs = [
        privacy_guarantee(clone(search.estimator).set_params(**parameters), groups=groups)
        for parameters in ParameterGrid(search.param_grid)
    ]
    if search.refit:
        costs.append(max(costs, key=lambda cost: cost.epsilon))
    fits = [cost for cost in costs[: len(costs) - bool(search.refit)] for _ in range(max(folds - 1, 1))]
    fits += costs[-1:] if search.refit else []
    total = fits[0].compose(*fits[1:])
    folds = "the fold of a unit does not depend on other units (PredefinedSplit)"
    unpriced = "cross-validation scores, and the choice made by them: they come from private documents without noise"
    return replace(total, not_covered=(*total.not_covered, unpriced), assumptions=(*total.assumptions, folds))
