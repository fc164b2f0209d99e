"""The best of a random number of private trials."""

import math
from dataclasses import replace
from functools import cache
from numbers import Real
from typing import Any, Self
from uuid import uuid4

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import ParameterGrid
from sklearn.utils.metaestimators import available_if
from tqdm import tqdm

from skdplda._arithmetic import exp, log, root
from skdplda._checks import check_structure
from skdplda._texts import check_texts
from skdplda._types import ArrayLike, Estimator, Function, Matrix, Seed
from skdplda._validation import (
    SEED,
    Interval,
    check_groups,
    check_is_fitted,
    check_same_rows,
    fit_context,
    names_of,
    note_groups,
    take_rows,
)
from skdplda.model_selection._trials import (
    Outcome,
    draw_trials,
    is_witness,
    private_score,
    private_steps,
    seed_all,
)
from skdplda.privacy import (
    CURATOR,
    MOST_DRAWS,
    BudgetCharge,
    LedgerAwareMixin,
    PrivacyGuarantee,
    PrivacyUnit,
    Randomness,
    Status,
    TrustModel,
    calibrate_gaussian,
    check_compatible,
    check_released,
    compose_events,
    dearest_event,
    delta_slack,
    epsilon_of,
    gaussian_event,
    gaussian_part,
    is_seed,
    seeded_guarantee,
    selection_event,
    stated_guarantee,
)
from skdplda.releases import flat_steps, privacy_guarantee
from skdplda.vocabulary import DPCountVectorizer

TUNED = "hyper-parameters tuned"  # what the search covers
LEFT_OUT = 0.25  # of the search's delta, for what the events of all trials leave out; not tuned
LEAST_SHARE = 20.0  # natural logarithm of how much smaller a trial's epsilon may be than the search's
PUBLIC = "scored on public data"
PRIVATE = "scored on held-out units, Gaussian noise on the sum of their scores"


def _final_has(name):
    def check(self):
        getattr(self.best_estimator_ if hasattr(self, "best_estimator_") else self.estimator, name)
        return True

    return check


class PrivateSearchCV(MetaEstimatorMixin, LedgerAwareMixin, BaseEstimator):
    """Hyper-parameter search of a private model, for a stated total cost.

    A random number of trials is run, each with random candidate parameters; the best one is released, and nothing of
    the others, not even their number. Then the whole search costs little more than one trial [1]_, however many
    candidates there are: the trials' epsilon is set so that the total is `epsilon`.

    A trial is judged on public data, if `fit` is given some: any scorer will do. Otherwise a part of the privacy
    units is held out of all trials, and a trial's score is the noisy sum of what each of these units gains over
    guessing words blindly: held-out log-likelihood per token, from 0 to 1. There are no folds, and the best model is
    not fitted again.

    Parameters
    ----------
    estimator : estimator or Pipeline
        A private model with `privacy_cost`, or a pipeline of private steps, of the central trust model. Its
        `random_state` must be None: trials need noise of their own. Affects privacy: no.
    param_grid : dict or list of dict
        As for scikit-learn's `GridSearchCV`. Candidates of several laws of noise cost as much as one that bounds them
        all; sampling rates, and numbers of rounds of sampled documents, need a search each. Affects privacy: no, but it
        must not be chosen by looking at the data.
    epsilon : float, default=5.0
        Privacy loss of the whole search. `inf` searches without noise. Affects privacy: yes.
    delta : float, default=1e-5
        Of the whole search. Affects privacy: yes.
    epsilon_parameter : str, default="epsilon"
        Name of the estimator's parameter that the search sets, such as "lda__epsilon" in a pipeline. A `delta` beside
        it is set to the search's. The default sets those of all private steps of a pipeline, such as
        `make_fdptm_pipeline` makes, in the proportions that they have. Affects privacy: no.
    mean_trials : float, default=10.0
        Mean number of trials, above 1, and at most a million. Affects privacy: no, the trials' epsilon pays for it.
    shape : float, default=1.0
        Of the law of their number: 0 logarithmic, 1 geometric, other numbers truncated negative binomial, inf
        Poisson (which, rarely, draws no trial at all). Larger means fewer surprises and noisier trials. Affects
        privacy: no.
    scoring : callable or None, default=None
        `scoring(fitted, X_public)`, larger is better; for public data only: private fits in it are charged to an open
        ledger one by one. None: the estimator's `score`. Affects privacy: no.
    validation_fraction : float, default=0.1
        Probability with which a unit is held out for the private score. Affects privacy: no.
    random_state : int, bytes, RandomState or None, default=None
        Anything but None makes the search reproducible, and its guarantee assume that the seed stays secret; proven
        only for 16 random bytes or more. Affects privacy: yes.
    verbose : int, default=0
        A bar of the search as a whole if positive. How many trials there are is not shown, nor what they show of their
        own. Affects privacy: no.

    Attributes
    ----------
    best_estimator_ : estimator
        Fitted by the best trial. The guarantee of each of its private steps is that of the search.
    best_params_ : dict
        Candidate parameters of the best trial.
    best_score_ : float
        Score of the best trial, noisy if it is private.
    privacy_guarantee_ : PrivacyGuarantee
        Of the search as a whole.

    References
    ----------
    .. [1] N. Papernot, T. Steinke (2022). Hyperparameter tuning with Renyi differential privacy. ICLR. Theorems 2
       and 6, Corollary 3.

    Examples
    --------
    >>> from skdplda import PrivateCGSLDA
    >>> from skdplda.datasets import make_lda_corpus
    >>> from skdplda.model_selection import PrivateSearchCV
    >>> X = make_lda_corpus(2000, 60, 4, random_state=0).data
    >>> search = PrivateSearchCV(PrivateCGSLDA(max_iter=5), {"n_components": [2, 4]}, mean_trials=2)
    >>> search.fit(X).privacy_guarantee_.epsilon
    5.0
    """

    _beside_released = {"best_estimator_": CURATOR}  # noqa: RUF012

    _parameter_constraints = {  # noqa: RUF012
        "estimator": "no_validation",
        "param_grid": [dict, list],
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "epsilon_parameter": [str],
        "mean_trials": [Interval(Real, 1, 1e6, closed="right")],
        "shape": [Interval(Real, 0, None, closed="both")],
        "scoring": [callable, None],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "random_state": SEED,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Estimator,
        param_grid: dict[str, Any] | list[dict[str, Any]],
        *,
        epsilon: float = 5.0,
        delta: float = 1e-5,
        epsilon_parameter: str = "epsilon",
        mean_trials: float = 10.0,
        shape: float = 1.0,
        scoring: Function | None = None,
        validation_fraction: float = 0.1,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.epsilon_parameter = epsilon_parameter
        self.mean_trials = mean_trials
        self.shape = shape
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Matrix, y: Any = None, *, groups: ArrayLike | None = None, X_public: Matrix = None) -> Self:
        """Search, and keep the best model.

        The budget of an open `PrivacyAccountant` is checked before X is read and charged once for the whole search.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or list of str
            Private documents, as the estimator takes them.
        y : None
            Ignored.
        groups : array-like of shape (n_documents,), default=None
            The user of each document, for user-level privacy; passed to the steps whose `fit` takes it.
        X_public : array-like or sparse matrix of shape (n_public, n_words), or list of str, default=None
            Public documents to judge trials by. None: judged on a private part of X.

        Returns
        -------
        self : PrivateSearchCV
            The fitted search.

        Raises
        ------
        BudgetExceededError
            If an open accountant cannot afford the search. No data were read.
        ValueError
            For parameters that are not as described, a grid that mixes laws whose costs cannot be compared, or no trial
            drawn. What a trial raises is raised if all fail, and is one of theirs: a trial that fails is the worst.
        IncompatibleGuaranteeError
            If candidates differ in privacy unit, adjacency or trust model.
        """
        candidates, epsilon, deviation, guarantee = self._plan(groups is not None, X_public is not None)
        if groups is None and guarantee.unit == PrivacyUnit.USER:
            raise ValueError(
                "groups must be given, the user of each document: the estimator was made with groups=True. Write"
                " fit(X, groups=users). Nothing was read or spent."
            )
        budget = self._budgets(groups is not None)(epsilon)
        charge = BudgetCharge(guarantee, f"{type(self).__name__} fit", self)
        charge.check()
        check_same_rows(X, groups, "groups")
        rng = self._generator()
        X, X_public = self._checked(X, "X"), None if X_public is None else self._checked(X_public, "X_public")
        n_documents = X.shape[0] if hasattr(X, "shape") else len(X)
        start, documents = check_groups(groups, n_documents)
        users = None if groups is None else (start, documents)
        validation = None
        if X_public is None:
            held_out = rng.random(len(start) - 1) < self.validation_fraction
            unit = np.repeat(np.arange(len(start) - 1), np.diff(start))
            validation, training = documents[held_out[unit]], np.sort(documents[~held_out[unit]])
            units = check_groups(unit[held_out[unit]], len(validation))
            validation_X, X = take_rows(X, validation), take_rows(X, training)
            groups = None if groups is None else names_of(groups)[training]
        charge.charge(uuid4().hex)
        best = None
        with tqdm(total=1, desc=type(self).__name__, disable=not self.verbose) as bar:
            for _ in range(draw_trials(self.mean_trials, self.shape, rng)):
                parameters = candidates[rng.integers(len(candidates))]
                trial = self._trial(parameters, budget)
                if self.random_state is not None:
                    seed_all(trial, rng)
                seed = None if self.random_state is None or X_public is not None else rng.bytes(32)

                def judge(fitted, seed=seed):
                    if X_public is not None:
                        return float(fitted.score(X_public) if self.scoring is None else self.scoring(fitted, X_public))
                    gains = fitted.score_samples(validation_X) if len(validation) else np.zeros(0)  # of few units, none
                    return private_score(gains, fitted, units, deviation, seed)

                found = Outcome.of(parameters, trial, X, groups, judge)
                if best is None or found.rank > best.rank:
                    best = found
            bar.update()
        if best is None:
            chance = exp(-float(self.mean_trials))
            raise ValueError(
                f"shape={self.shape!r} drew no trial, which happens with probability {chance:.2g};"
                " the search is paid for. Search again, or use a finite shape, which draws at least one."
            )
        if best.error is not None:
            best.error.add_note("The search is paid for, and none of its trials was better than this one.")
            raise best.error
        self.best_score_, self.best_params_, self.best_estimator_ = best.score, best.parameters, best.trial
        for step in private_steps(self.best_estimator_):
            step.privacy_guarantee_ = step._shared_guarantee = guarantee  # never the smaller one of a single trial
        self.privacy_guarantee_ = guarantee
        if math.isfinite(self.epsilon):  # else the guarantee is that of a candidate
            check_released(self)
        note_groups(self, users)
        best.warn()
        return self

    @fit_context(prefer_skip_nested_validation=False)
    def privacy_cost(self, *, groups: bool = False, public: bool = False) -> PrivacyGuarantee:
        """What `fit` would guarantee, without data.

        Parameters
        ----------
        groups : bool, default=False
            Whether `fit` will be given groups.
        public : bool, default=False
            Whether `fit` will be given `X_public`.

        Returns
        -------
        guarantee : PrivacyGuarantee
            Equal to `privacy_guarantee_` after the fit.
        """
        return self._plan(groups, public)[-1]

    @fit_context(prefer_skip_nested_validation=False)
    def trial_epsilon(self, *, groups: bool = False, public: bool = False) -> float:
        """Epsilon that each trial gets, without data: what the search leaves of the total.

        Parameters
        ----------
        groups : bool, default=False
            Whether `fit` will be given groups.
        public : bool, default=False
            Whether `fit` will be given `X_public`.

        Returns
        -------
        epsilon : float
            Of one trial, at the search's delta. Of a pipeline whose steps are set together, about that of all of them.
        """
        return self._plan(groups, public)[1]

    @available_if(_final_has("transform"))
    def transform(self, X: Matrix) -> np.ndarray:
        """Transform by the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or list of str
            Documents.

        Returns
        -------
        doc_topic : ndarray of shape (n_documents, n_components)
            Topic proportions.
        """
        check_is_fitted(self)
        return self.best_estimator_.transform(X)

    @available_if(_final_has("score"))
    def score(self, X: Matrix, y: Any = None) -> float:
        """Score by the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), or list of str
            Documents that were not used to fit.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Larger is better.
        """
        check_is_fitted(self)
        return self.best_estimator_.score(X)

    def _checked(self, X, name):
        """Return X, as a list of checked texts where the estimator takes texts: trials read them after the charge."""
        check_structure(X, name)
        first = flat_steps(self.estimator)[0][1]
        if not hasattr(first, "build_analyzer"):
            return X
        own = not isinstance(first, (CountVectorizer, DPCountVectorizer))
        own = own or any(callable(getattr(first, part)) for part in ("analyzer", "tokenizer", "preprocessor"))
        return list(check_texts(X, name, input=getattr(first, "input", "content"), own=own))

    def _trial(self, parameters, budget):
        """Return the unfitted estimator of one trial with the parameters of a candidate and of a budget."""
        return clone(self.estimator).set_params(**parameters).set_params(**budget)

    def _budgets(self, groups):
        """Return a function from the epsilon of a trial to the parameters that the search sets.

        A step whose event leaves out a part of its delta does so in each trial. Such steps get so little of delta that
        all trials together leave out at most LEFT_OUT of the search's (doc/theory/search.rst).
        """
        known, name = self.estimator.get_params(), self.epsilon_parameter
        if name in known:
            delta = name.removesuffix("epsilon") + "delta"
            fixed = {delta: self.delta} if delta in known else {}
            return lambda epsilon: {name: epsilon, **fixed}
        steps = {f"{step}__": part for step, part in flat_steps(self.estimator) if f"{step}__epsilon" in known}
        if name != "epsilon" or not steps:
            raise ValueError(
                f"epsilon_parameter must name a parameter of the estimator; got {name!r}. Some are"
                f" {sorted(name for name in known if name.endswith('epsilon'))}."
            )
        total = privacy_guarantee(clone(self.estimator), groups=groups).epsilon
        if not math.isfinite(total):
            raise ValueError(
                "epsilon of each private step must be finite: the search keeps the proportions of the steps, and sets"
                f" them so that the total is epsilon={self.epsilon!r}."
            )
        deltas = {step: known[f"{step}delta"] for step in steps if f"{step}delta" in known}
        share = self.delta / (math.fsum(deltas.values()) or 1.0)
        fixed = {}
        for step, delta in deltas.items():
            left_out = privacy_guarantee(clone(steps[step]), groups=groups).event_delta > 0
            fixed[f"{step}delta"] = share * delta * (LEFT_OUT / self.mean_trials if left_out else 1.0)
        return lambda epsilon: fixed | {f"{step}epsilon": epsilon * known[f"{step}epsilon"] / total for step in steps}

    def _plan(self, groups, public):
        """Return candidates, the epsilon and the score's noise of a trial, and the guarantee; no data needed."""
        candidates, budget = list(ParameterGrid(self.param_grid)), self._budgets(groups)
        for parameters in candidates:
            if clash := sorted(set(budget(1.0)) & set(parameters)):
                raise ValueError(
                    f"param_grid must not hold {clash[-1]!r}: the search sets it so that the total is"
                    f" epsilon={self.epsilon!r}. To compare values of it, search on public data by GridSearchCV, or"
                    " make a search for each."
                )
            trial = self._trial(parameters, budget(1.0))
            known = trial.get_params()
            seeds = {name: seed for name, seed in known.items() if is_seed(name)}
            if any(seed is not None for seed in seeds.values()):
                raise ValueError(
                    f"random_state of the estimator must be None, got {seeds}: trials need noise of their own. Give"
                    " random_state to the search instead."
                )
            if seen := sorted(name for name, value in known.items() if is_witness(name) and value is not None):
                raise ValueError(
                    f"{seen[0]} of the estimator must be None: nothing of a trial may be seen or kept, because the best"
                    " one alone is released."
                )
        if math.isinf(self.epsilon):
            guarantee = self._cost_of(candidates[0], budget(math.inf), groups)
            return candidates, math.inf, 0.0, guarantee

        @cache
        def costs(log_epsilon):
            return [self._cost_of(parameters, budget(exp(log_epsilon)), groups) for parameters in candidates]

        @cache
        def excess(log_epsilon):
            return log(min(self._total(costs(log_epsilon), public)[0], 1e6) / self.epsilon)

        low, high = log(self.epsilon / (4 + min(self.shape, self.mean_trials))), log(float(self.epsilon))
        while excess(low) > 0:
            low -= 1.0
            if low < high - LEAST_SHARE:
                raise ValueError(
                    f"epsilon={self.epsilon!r} is too small: steps whose epsilon the search does not set cost more"
                    f" than it, however small that of {self.epsilon_parameter!r} is."
                )
        found = high if excess(high) <= 0 else root(excess, low, high, 1e-4)
        _, event, slack, deviation = self._total(costs(found), public)
        guarantee = stated_guarantee(self, self._guarantee(costs(found), event, slack, public))
        return candidates, exp(found), deviation, guarantee

    def _total(self, costs, public):
        """Return the epsilon of a search, the event and the rest of delta that make it up, and the score's noise.

        What a trial's event leaves out of delta (its own `event_delta`, and the samplers' numerical error) may happen
        in any trial (doc/theory/search.rst).
        """
        slack = delta_slack(math.ceil(MOST_DRAWS * self.mean_trials), self.epsilon)
        slack += self.mean_trials * max(cost.event_delta for cost in costs)
        if slack > self.delta / 2:
            raise ValueError(
                f"delta={self.delta!r} is too small for epsilon={self.epsilon!r} and mean_trials={self.mean_trials!r}:"
                f" what a trial's event leaves out of delta comes to {slack:.1e}. Use a larger delta, or a smaller one"
                " in the steps that the search does not set."
            )
        check_compatible(*costs)
        runs = [self._run(cost, public) for cost in costs]
        one = dearest_event([event for event, _ in runs], self.shape)
        if one is None:
            laws = dict(zip([event for event, _ in runs], [cost.mechanism for cost in costs], strict=True))
            raise ValueError(
                "param_grid mixes candidates of different laws, none of which is the dearest at every Renyi order:"
                f" {'; '.join(dict.fromkeys(laws.values()))}. The cost of choosing among them is not known here: search"
                " each law on its own, with candidates of one sampling rate and one number of sampled rounds."
            )
        event = selection_event(one, self.mean_trials, self.shape)
        return epsilon_of(event, self.delta - slack), event, slack, max(deviation for _, deviation in runs)

    def _cost_of(self, parameters, budget, groups):
        cost = privacy_guarantee(self._trial(parameters, budget), groups=groups)
        if cost.status != Status.PROVEN:
            raise ValueError(
                f"the estimator must have a proven guarantee; got {str(cost.status)!r} for {parameters}: a search over"
                " guarantees that do not hold guarantees nothing."
            )
        if cost.trust == TrustModel.LOCAL:
            raise ValueError(
                "the estimator must be of the central trust model: in the local one every trial is a new report of each"
                " user, and the server sees the reports of all trials, not of the best alone. Randomize once, by"
                " LocalRandomizer on the device, and compare models of these reports (input='reports'), as many as you"
                " like: that costs nothing more."
            )
        if math.isfinite(self.epsilon) and cost.event is None:
            raise ValueError(f"the guarantee for {parameters} has no event, so the search cannot be accounted.")
        return cost

    def _run(self, cost, public):
        """Return what one trial and its score cost together, and the noise of the score.

        A unit is either held out or not: it meets the score's noise or the model's. The score's is that of the
        Gaussian part of the model's cost, so a trial costs no more than its model. A model without such a part is
        composed with the score, which is on the safe side.
        """
        if public:
            return cost.event, 0.0
        if cost.unit not in ("document", "user") or cost.adjacency != "add-remove":
            raise ValueError(
                f"a guarantee for unit {str(cost.unit)!r} and adjacency {str(cost.adjacency)!r} needs public data to"
                " score on; give X_public."
            )
        deviation, rest = gaussian_part(cost.event)
        if math.isinf(deviation):
            deviation, rest = calibrate_gaussian(cost.epsilon, self.delta), cost.event
        return compose_events([gaussian_event(deviation), rest]), deviation

    def _guarantee(self, costs, event, slack, public):
        first, laws = costs[0], tuple(dict.fromkeys(cost.mechanism for cost in costs))
        released = tuple(dict.fromkeys(item for cost in costs for item in cost.released))
        references = tuple(dict.fromkeys(cost.reference for cost in costs))
        law = {0: "logarithmic", 1: "geometric", math.inf: "Poisson"}.get(self.shape, "truncated negative binomial")
        guarantee = replace(
            first,
            epsilon=self.epsilon,
            delta=self.delta,
            mechanism=(
                f"best of a {law} number of trials, {self.mean_trials:g} on average,"
                f" {PUBLIC if public else PRIVATE}; a trial: {' or '.join(laws)}"
            ),
            released=("best_params_", "best_score_", *(f"{item} of best_estimator_" for item in released)),
            not_covered=tuple(dict.fromkeys(item for cost in costs for item in cost.not_covered if TUNED not in item))
            + (
                "best_estimator_ as an object, whose steps may hold words and numbers of the documents: publish what"
                " skdplda.release makes of it",
                "the running time and the number of trials",
            ),
            assumptions=tuple(dict.fromkeys(item for cost in costs for item in cost.assumptions)),
            reference="Papernot and Steinke (2022), Theorems 2 and 6; " + "; ".join(references),
            event=event,
            event_delta=slack,
        )
        return seeded_guarantee(guarantee, self.random_state)

    def _generator(self):
        return np.random.default_rng(Randomness(self.random_state, type(self).__name__).generator_seed())
