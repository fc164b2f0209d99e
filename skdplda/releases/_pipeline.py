"""A scikit-learn pipeline that is given once which documents belong to which user."""

from inspect import signature
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from skdplda._types import ArrayLike, Sequence
from skdplda._validation import check_groups, check_same_rows, names_of
from skdplda.local import LocalRandomizer
from skdplda.models import LocalPrivateLDA
from skdplda.privacy import LedgerAwareMixin, PrivacyGuarantee, PrivacyUnit, active_accountant, check_compatible
from skdplda.releases._guarantee import cost_of, flat_steps, is_private, privacy_guarantee

SUFFIX = "__groups"
TOLD_ONCE = "Write fit(texts, groups=users): every private step gets the same. Nothing was read or spent."


def _pipeline_has(name):
    def check(self):
        getattr(super(PrivatePipeline, self), name)  # raises AttributeError where the last step has no such method
        return True

    return check


class PrivatePipeline(Pipeline):
    """A pipeline whose `fit` takes `groups` once, and hands them to every private step.

    scikit-learn's pipeline takes them step by step. A step that is left out, or gets another array, then protects
    documents where the others protect users. Here that is an error before the first charge of a ledger. All else is as
    in :class:`sklearn.pipeline.Pipeline`, with and without metadata routing; with it, no step need request groups.

    Parameters
    ----------
    steps : list of tuple
        Names and estimators, as in scikit-learn's pipeline.
    groups : bool, default=False
        Whether `fit` must be given groups. False leaves it to the call: with groups the guarantee is for users, if it
        costs them what it costs documents. Affects privacy: no, but it refuses a fit for documents.
    transform_input : list of str or None, default=None
        As in scikit-learn's pipeline.
    memory : str, joblib.Memory or None, default=None
        As in scikit-learn's pipeline. What it keeps is as private as the texts.
    verbose : bool, default=False
        As in scikit-learn's pipeline.

    See Also
    --------
    make_fdptm_pipeline : Makes one, from texts to topics, for one budget.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from skdplda import DPVocabularySelector, VIPSLDA, privacy_guarantee
    >>> from skdplda.releases import PrivatePipeline
    >>> words = DPVocabularySelector(epsilon=2.0, delta=5e-6)
    >>> topics = VIPSLDA(2, epsilon=2.0, delta=5e-6)
    >>> pipeline = PrivatePipeline([("counts", CountVectorizer()), ("words", words), ("topics", topics)], groups=True)
    >>> texts, users = ["iron and zinc", "plum and pear"] * 2000, [i // 4 for i in range(4000)]
    >>> privacy_guarantee(pipeline.fit(texts, groups=users)).unit
    <PrivacyUnit.USER: 'user'>
    >>> pipeline.fit(texts)
    Traceback (most recent call last):
        ...
    ValueError: groups must be given, ...
    """

    _parameter_constraints = {**Pipeline._parameter_constraints, "groups": ["boolean"]}  # noqa: RUF012

    def __init__(
        self,
        steps: Sequence[tuple[str, Any]],
        *,
        groups: bool = False,
        transform_input: Sequence[str] | None = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.groups = groups

    def __getitem__(self, ind):
        found = super().__getitem__(ind)
        return found.set_params(groups=self.groups) if isinstance(ind, slice) else found

    def fit(self, X: Any, y: Any = None, groups: ArrayLike | None = None, **params: Any) -> Self:
        """Fit the steps one after the other.

        Parameters
        ----------
        X : iterable of str, or what the first step takes
            Documents.
        y : None
            Ignored by private steps.
        groups : array-like of shape (n_documents,), default=None
            The user of each document: the guarantee then is for all documents of one user together. Every private step
            gets them.
        **params : object
            As in scikit-learn's pipeline. Groups by step are taken if every private step gets the same.

        Returns
        -------
        self : PrivatePipeline
            Fitted.

        Raises
        ------
        ValueError
            Before anything is spent: if groups are missing and the pipeline was made for them, are not one name a
            document, differ between steps or are for some of the private steps only, if a private step takes none, if
            users would cost more than what the budget was made for, or if a private step has a parameter that it will
            refuse. Else as the steps.
        BudgetExceededError
            Before anything is spent: if an open accountant cannot afford all private steps together.
        IncompatibleGuaranteeError
            Before anything is spent: if the private steps protect different units.
        """
        return super().fit(X, y, **self._handed(X, groups, params))

    @available_if(_pipeline_has("fit_transform"))
    def fit_transform(self, X: Any, y: Any = None, groups: ArrayLike | None = None, **params: Any) -> Any:
        """Fit the steps, and transform the same documents by all of them.

        Parameters
        ----------
        X : iterable of str, or what the first step takes
            Documents.
        y : None
            Ignored by private steps.
        groups : array-like of shape (n_documents,), default=None
            As in `fit`.
        **params : object
            As in `fit`.

        Returns
        -------
        doc_topic : ndarray of shape (n_documents, n_components)
            Or what the last step returns; not covered by the guarantee.

        Raises
        ------
        ValueError, IncompatibleGuaranteeError
            As `fit`.
        """
        return _with_index(super().fit_transform(X, y, **self._handed(X, groups, params)), X)

    @available_if(_pipeline_has("transform"))
    def transform(self, X: Any, **params: Any) -> Any:
        """Transform documents by all steps; spends nothing.

        Parameters
        ----------
        X : iterable of str, or what the first step takes
            Documents.
        **params : object
            As in scikit-learn's pipeline.

        Returns
        -------
        doc_topic : ndarray of shape (n_documents, n_components)
            Or what the last step returns; each row is as private as its document. A data frame has the index of X.

        Raises
        ------
        NotFittedError
            If the pipeline is not fitted.
        """
        return _with_index(super().transform(X, **params), X)

    @available_if(_pipeline_has("fit_predict"))
    def fit_predict(self, X: Any, y: Any = None, groups: ArrayLike | None = None, **params: Any) -> Any:
        """Fit the steps, and predict the same documents by the last.

        Parameters
        ----------
        X : iterable of str, or what the first step takes
            Documents.
        y : None
            Ignored by private steps.
        groups : array-like of shape (n_documents,), default=None
            As in `fit`.
        **params : object
            As in `fit`.

        Returns
        -------
        labels : ndarray of shape (n_documents,)
            What the last step returns; not covered by the guarantee.

        Raises
        ------
        ValueError, IncompatibleGuaranteeError
            As `fit`.
        """
        return super().fit_predict(X, y, **self._handed(X, groups, params))

    @property
    def privacy_guarantee_(self) -> PrivacyGuarantee:
        """The guarantee of the fitted steps together: that of `skdplda.privacy_guarantee`."""
        if not any(hasattr(step, "privacy_guarantee_") for _, step in flat_steps(self)):
            raise AttributeError(f"this {type(self).__name__} is not fitted; see skdplda.privacy_guarantee.")
        return privacy_guarantee(self)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the container of what the last step returns; what steps hand to each other stays as it is.

        Counts of words are sparse, and no data frame.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            As in scikit-learn's pipeline. None changes nothing.

        Returns
        -------
        self : PrivatePipeline
            The pipeline.
        """
        Pipeline(self.steps[-1:]).set_output(transform=transform)
        return self

    def get_metadata_routing(self) -> Any:
        """Return scikit-learn's routing, in which every private step requests groups.

        Returns
        -------
        routing : MetadataRouter
            As of scikit-learn's pipeline.
        """
        router = super().get_metadata_routing()
        steps = dict(self.steps)
        for name, (_, request) in router:
            if is_private(steps.get(name)):
                request.fit.add_request(param="groups", alias=True)
        return router

    def _handed(self, X, groups, params):
        """Return the parameters of scikit-learn's `fit`, with the same groups for each private step."""
        private = {name: step for name, step in flat_steps(self) if is_private(step)}
        handed = self._with_groups(X, groups, params, private)
        self._check_ahead(private, handed)
        return handed

    def _with_groups(self, X, groups, params, private):
        by_step = {key: params.pop(key) for key in list(params) if _takers(key, private)}
        by_step = {key: given for key, given in by_step.items() if given is not None}
        if groups is None and not by_step:
            if self.groups:
                raise ValueError(
                    f"groups must be given, the user of each document: this pipeline has groups=True. {TOLD_ONCE}"
                    " Cross-validation and searches of scikit-learn pass groups on only after"
                    " sklearn.set_config(enable_metadata_routing=True)."
                )
            return params
        missing = [name for name in private if not any(name in _takers(key, private) for key in by_step)]
        if groups is None and missing:
            raise ValueError(
                f"groups must be the same for all private steps; {sorted(by_step)} leaves out {missing}. {TOLD_ONCE}"
            )
        for given in (groups, *by_step.values()):
            check_same_rows(X, given, "groups")
        groups = _same([*([] if groups is None else [groups]), *by_step.values()], _n_documents(X))
        self._check_costs(private)
        if get_config()["enable_metadata_routing"]:
            if strangers := _strangers(self):
                raise ValueError(
                    f"steps {strangers} must each be a PrivatePipeline, where metadata routing is on: a pipeline of"
                    " scikit-learn hands groups to the steps that request them, and to no others. Nothing was read or"
                    " spent."
                )
            return {**params, "groups": groups}
        return {**params, **dict.fromkeys([f"{name}{SUFFIX}" for name in private], groups)}

    def _check_ahead(self, private, handed):
        """Refuse what a later step would refuse by its parameters, or for the ledger, after earlier ones were paid.

        What was charged for an interrupted run is not charged again, and what `memory` keeps may not be.
        """
        grouped, owed = any(key == "groups" or key.endswith(SUFFIX) for key in handed), []
        for name, step in private.items():
            run = step._interrupted_run() if hasattr(step, "_interrupted_run") else None
            if isinstance(step, (LocalRandomizer, LocalPrivateLDA)):  # it costs what the number of columns says
                continue
            public = {"public": True} if f"{name}__X_public" in handed else {}  # of a search
            cost = step.privacy_cost(groups=grouped, **public)
            if run is None and isinstance(step, LedgerAwareMixin):
                owed.append(cost)
        ledger = active_accountant() if owed else None
        if ledger is not None and self.memory is None:
            ledger.check(*owed)

    def _check_costs(self, private):
        """Refuse steps that take no groups, or protect another unit, or more expensive users, than was planned."""
        for name, step in private.items():
            if "groups" not in signature(step.fit).parameters:
                raise ValueError(
                    f"groups must be None: step {name!r} ({type(step).__name__}) takes none, and its guarantee is for"
                    f" the unit {str(cost_of(step, True).unit)!r}. Nothing was read or spent."
                )
        costs = {name: cost_of(step, True) for name, step in private.items()}
        check_compatible(*costs.values())
        for name, cost in costs.items():
            planned = cost if self.groups else cost_of(private[name], False)
            numbers = [(c.epsilon, c.delta, c.event, c.event_delta) for c in (cost, planned)]
            if cost.unit == PrivacyUnit.USER and numbers[0] != numbers[1]:
                raise ValueError(
                    f"groups must be None: step {name!r} ({type(private[name]).__name__}) costs users"
                    f" epsilon={cost.epsilon:g} and documents, for which the budget was made, {planned.epsilon:g}. Make"
                    " the pipeline with groups=True. Nothing was read or spent."
                )


def _takers(key, private):
    """Return the private steps that a parameter of `fit` gives groups to: one, or all of a nested pipeline."""
    path = key.removesuffix(SUFFIX)
    return [name for name in private if path != key and (name == path or name.startswith(f"{path}__"))]


def _same(given, n_documents):
    """Return groups as an array, one name a document; refuse arrays by which other documents belong together."""
    given = [names_of(one.compute() if hasattr(type(one), "__dask_graph__") else one) for one in given]
    first, *others = given
    size = n_documents if n_documents is not None else len(first) if first.ndim else 1
    units = check_groups(first, size)
    for other in others:
        if not all(map(np.array_equal, units, check_groups(other, size))):
            raise ValueError(f"groups must be the same for all private steps; got different arrays. {TOLD_ONCE}")
    return first


def _n_documents(X):
    """Return the number of documents, or None where only who reads them knows."""
    if isinstance(X, (str, bytes)) or hasattr(type(X), "__dask_graph__"):
        return None
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and shape:
        return shape[0] if isinstance(shape[0], Integral) else None
    return len(X) if hasattr(X, "__len__") else None


def _strangers(pipeline, prefix=""):
    """Return the names of the nested pipelines of scikit-learn that hold private steps."""
    found = []
    for name, step in pipeline.steps:
        if isinstance(step, Pipeline):
            private = any(is_private(inner) for _, inner in flat_steps(step))
            found += [prefix + name] if private and not isinstance(step, PrivatePipeline) else []
            found += _strangers(step, f"{prefix}{name}__")
    return found


def _with_index(result, X):
    """Return what a pipeline returns; a data frame has the index of its documents, by which ColumnTransformer joins."""
    index = getattr(X, "index", None)
    if isinstance(result, pd.DataFrame) and isinstance(index, pd.Index) and len(index) == len(result):
        result.index = index
    return result
