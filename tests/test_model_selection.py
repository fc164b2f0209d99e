"""The private search: its total holds, nothing of the losing trials is left, and folds are not free."""

import itertools
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from internals import draw_trials, private_score
from internals import search as _search
from internals import trials as _trials
from scipy import stats
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    HalvingGridSearchCV,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePGroupsOut,
    ParameterSampler,
    PredefinedSplit,
    RandomizedSearchCV,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    check_cv,
)
from sklearn.pipeline import Pipeline

from skdplda import (
    HDPLDA,
    BudgetExceededError,
    EmptySelectionError,
    IncompatibleGuaranteeError,
    LocalPrivateLDA,
    PrivacyAccountant,
    PrivacyLeakWarning,
    PrivateCGSLDA,
    load_released,
    make_fdptm_pipeline,
    privacy_guarantee,
    release,
)
from skdplda.datasets import make_lda_corpus
from skdplda.local import LocalRandomizer
from skdplda.model_selection import PrivateSearchCV, search_cost
from skdplda.privacy import NORM_BOUND, PrivacyGuarantee, epsilon_of, gaussian_event, mechanism_of
from skdplda.published import PriTopLDA

GRID_OF_TWO = {"n_components": [2, 3]}


@pytest.fixture(scope="module")
def corpus():
    return make_lda_corpus(400, 30, 3, mean_length=20, random_state=0)


def search(estimator=None, grid=None, **parameters):
    estimator = PrivateCGSLDA(max_iter=2) if estimator is None else estimator
    return PrivateSearchCV(estimator, GRID_OF_TWO if grid is None else grid, **{"mean_trials": 2, **parameters})


@pytest.mark.parametrize(("epsilon", "public"), [(0.3, False), (5.0, True)])
@pytest.mark.parametrize("shape", [0, 1, 2.5, math.inf])
def test_the_total_is_what_was_asked_for(epsilon, shape, public):
    found = search(epsilon=epsilon, shape=shape, mean_trials=8)
    guarantee = found.privacy_cost(public=public)
    assert (guarantee.epsilon, guarantee.delta, guarantee.status) == (epsilon, 1e-5, "proven")
    spent = epsilon_of(guarantee.event, guarantee.delta)
    assert 0.99 * epsilon < spent <= epsilon
    assert found.trial_epsilon(public=public) < epsilon


ORDERS = 1 + np.exp(np.linspace(-4, 14, 361))


def bound_of_trials(curve, delta, mean, beside=0.0):
    """Epsilon of the best of a geometric number of trials with these Renyi divergences: Theorem 2, written out.

    `beside` is the zero-concentrated parameter of a further release.
    """
    other = np.min(2 * (1 - 1 / ORDERS) * curve + 2 * math.log(mean) / ORDERS)
    joint = curve + other + math.log(mean) / (ORDERS - 1) + beside * ORDERS
    return np.min(joint + np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1))


def curve_of(mechanism, trial_epsilon):
    """Renyi divergences of one round: of randomized response for Laplace noise, of the Gaussian mechanism else."""
    event = PrivateCGSLDA(mechanism=mechanism, epsilon=trial_epsilon, delta=1e-3, max_iter=1).privacy_cost().event
    if mechanism != "laplace":
        rho = event.rho if mechanism == "discrete-gaussian" else 0.5 / event.noise_multiplier**2
        return rho * ORDERS
    pure = event.noise_parameter
    return np.minimum(pure**2 / 2 * ORDERS, pure)


@pytest.mark.parametrize("laws", [("gaussian", "laplace"), ("laplace", "discrete-gaussian"), ("laplace", "gaussian")])
def test_a_grid_of_several_laws_costs_the_largest_divergence_at_each_order(laws):
    """Their curves cross: 3.0 was stated at a delta at which the theorem gives 3.66, and also at a delta of 3e-12."""
    model = PrivateCGSLDA(max_iter=1)
    mixed = search(model, {"mechanism": list(laws)}, epsilon=3.0, delta=1e-3, mean_trials=10)
    cost, trial = mixed.privacy_cost(public=True), mixed.trial_epsilon(public=True)
    assert cost.status == "proven" and cost.epsilon == 3.0
    assert epsilon_of(cost.event, 0.0) == math.inf  # the Gaussian candidate is not pure
    largest = np.max([curve_of(law, trial) for law in laws], axis=0)
    assert bound_of_trials(largest, cost.delta - cost.event_delta, 10.0) <= 3.0
    release = PrivacyGuarantee(epsilon=3.0, delta=1e-3, status="proven", event=gaussian_event(2.0))
    both = cost.compose(release)
    for delta in (1e-10, 1e-9, 1e-6, 1e-4, 1e-3, 0.01):
        assert cost.epsilon_at(delta) >= min(3.0 if delta >= 1e-3 else math.inf, bound_of_trials(largest, delta, 10.0))
        assert cost.delta_at(cost.epsilon_at(delta)) <= delta * (1 + 1e-6) + cost.event_delta
        if delta < 1e-3:
            assert both.epsilon_at(delta) >= bound_of_trials(largest, delta, 10.0, beside=0.125)
    for law in laws:
        one = search(model, {"mechanism": [law]}, epsilon=3.0, delta=1e-3, mean_trials=10)
        assert one.trial_epsilon(public=True) > trial
        assert mechanism_of(law).label in cost.mechanism


def test_what_a_pure_search_costs_is_still_pure():
    found = search(PrivateCGSLDA(mechanism="laplace"), {"max_iter": [1, 5]}, epsilon=3.0)
    cost = found.privacy_cost(public=True)
    assert epsilon_of(cost.event, 0.0) <= 3.0
    assert found.trial_epsilon(public=True) == pytest.approx(1.0, rel=1e-3)  # (2 + shape) times as much


@pytest.mark.parametrize(
    ("law", "public", "trial"),
    [
        ("gaussian", False, 1.027946489023756),
        ("gaussian", True, 1.027946489023756),
        ("laplace", False, 0.3614866534151603),
        ("laplace", True, 1.0001500519768147),
        ("discrete-gaussian", False, 0.7298324073695981),
        ("discrete-gaussian", True, 1.18130099412751),
    ],
)
def test_the_numbers_of_a_grid_of_one_law(law, public, trial):
    """As they were before grids of several laws had a bound of their own, within what the search leaves."""
    found = search(PrivateCGSLDA(mechanism=law), {"max_iter": [1, 5, 20]}, epsilon=3.0, delta=1e-3, mean_trials=10)
    assert found.trial_epsilon(public=public) == pytest.approx(trial, rel=3e-4)


@pytest.mark.parametrize(
    ("change", "grid"),
    [
        ({}, {"sampling_rate": [0.1, 1.0]}),
        ({"sampling_rate": 0.1}, {"max_iter": [2, 5]}),
        ({"sampling_rate": 0.1}, [{"mechanism": ["gaussian"]}, {"mechanism": ["laplace"], "sampling_rate": [1.0]}]),
    ],
)
def test_sampled_candidates_whose_curves_cross_are_refused_before_data_are_read(change, grid):
    mixed = search(PrivateCGSLDA(**{"max_iter": 2, **change}), grid)
    for cost in (mixed.privacy_cost, mixed.trial_epsilon, lambda: mixed.fit("not looked at")):
        with pytest.raises(
            ValueError, match=r"different laws.*search each law on its own, with candidates of one sampling rate"
        ):
            cost()
    assert search(PrivateCGSLDA(sampling_rate=0.1, max_iter=2)).privacy_cost().status == "proven"


def test_candidates_of_several_units_are_refused():
    """The guarantee of the first was stated for whichever candidate is chosen."""
    mixed = search(Pipeline([("lda", PrivateCGSLDA(max_iter=2))]), {"lda": [PrivateCGSLDA(), HDPLDA()]})
    mixed.set_params(epsilon_parameter="lda__epsilon")
    with pytest.raises(IncompatibleGuaranteeError, match="unit 'document' and 'token'"):
        mixed.privacy_cost(public=True)


@pytest.mark.parametrize("source", ["counts", "reports"])
def test_a_local_model_is_refused_because_every_trial_is_a_report_that_the_server_sees(source):
    """It said epsilon=5 where users had sent reports of 25 in all."""
    model = LocalPrivateLDA(randomizer=LocalRandomizer(max_words_per_document=5), input=source)
    found = search(model.set_params(epsilon_unit="document", epsilon=1.0))
    with pytest.raises(ValueError, match=r"central trust model.*Randomize once, by LocalRandomizer on the device"):
        found.privacy_cost(public=True)
    with pytest.raises(ValueError, match="central trust model"):
        found.fit("not looked at", X_public="not looked at")


def test_a_search_keeps_the_best_trial_under_its_own_guarantee(corpus):
    found = search().fit(corpus.data)
    assert found.best_params_["n_components"] in (2, 3)
    assert found.best_estimator_.n_components == found.best_params_["n_components"]
    assert found.privacy_guarantee_ == found.privacy_cost() == found.best_estimator_.privacy_guarantee_
    assert found.transform(corpus.data[:4]).shape == (4, found.best_params_["n_components"])
    assert np.isfinite(found.score(corpus.data[:40]))


def test_the_best_pipeline_as_an_object_is_not_listed_as_released(corpus):
    guarantee = search().privacy_cost()
    assert "best_estimator_" not in guarantee.released
    assert any(item.startswith("best_estimator_ as an object") for item in guarantee.not_covered)


def test_nothing_of_the_search_is_left(corpus):
    found = search(verbose=0).fit(corpus.data)
    fitted = set(vars(found)) - set(found.get_params(deep=False))
    assert fitted == {"best_estimator_", "best_params_", "best_score_", "privacy_guarantee_"}
    assert isinstance(found.best_score_, float)
    assert pickle.loads(pickle.dumps(found)).best_params_ == found.best_params_


def test_public_documents_judge_with_any_scorer(corpus):
    seen = []

    def scoring(fitted, X):
        seen.append(fitted.n_components)
        return float(fitted.n_components)

    found = search(scoring=scoring, mean_trials=12).fit(corpus.data, X_public=corpus.data[:50])
    assert found.best_score_ == max(seen) == found.best_params_["n_components"]


def test_the_better_candidate_wins_without_noise(corpus):
    grid = {"n_components": [1, 3]}
    wins = [
        search(grid=grid, epsilon=math.inf, mean_trials=20, shape=math.inf)
        .fit(corpus.data)
        .best_params_["n_components"]
        for _ in range(3)
    ]
    assert wins == [3, 3, 3]


def test_the_ledger_pays_once_and_refuses_before_reading(corpus):
    with PrivacyAccountant(5.0, 1e-5) as accountant:
        found = search().fit(corpus.data)
        assert [entry.guarantee for entry in accountant.ledger] == [found.privacy_guarantee_]
        with pytest.raises(BudgetExceededError):
            search().fit("not looked at")


def test_fits_of_a_scoring_function_are_charged_as_anywhere(corpus):
    """The search has paid for its own fits alone; a ledger did not see those that its caller made between them."""
    between = []

    def scoring(fitted, X_public):
        with pytest.raises(BudgetExceededError):
            PrivateCGSLDA(2, epsilon=math.inf, max_iter=2).fit(corpus.data)
        between.append(PrivateCGSLDA(2, epsilon=0.01, max_iter=2).fit(corpus.data).privacy_guarantee_)
        return 0.0

    with PrivacyAccountant(10.0, 1e-3) as accountant:
        found = search(scoring=scoring).fit(corpus.data, X_public=corpus.data[:50])
    assert between
    assert [entry.guarantee for entry in accountant.ledger] == [found.privacy_guarantee_, *between]


def test_a_pipeline_is_searched(corpus):
    words = corpus.feature_names
    texts = [" ".join(words.repeat(row)) for row in corpus.data.toarray()]
    pipeline = Pipeline([("count", CountVectorizer(vocabulary=words)), ("lda", PrivateCGSLDA(max_iter=2))])
    found = search(pipeline, {"lda__n_components": [2, 4]}, epsilon_parameter="lda__epsilon").fit(texts)
    assert found.best_estimator_[-1].privacy_guarantee_ == found.privacy_guarantee_
    users = np.arange(len(texts)) // 2
    grouped = clone(found).fit(texts, groups=users)
    assert grouped.privacy_guarantee_.unit == "user"


def test_no_step_of_a_nested_pipeline_keeps_the_smaller_guarantee_of_a_trial(corpus):
    inner = Pipeline([("lda", PrivateCGSLDA(max_iter=2))])
    nested = Pipeline([("model", inner)])
    grid = {"model__lda__n_components": [2, 3]}
    for groups in (None, np.arange(400) // 4):
        found = search(nested, grid, epsilon_parameter="model__lda__epsilon").fit(corpus.data, groups=groups)
        assert found.best_estimator_[-1][-1].privacy_guarantee_ == found.privacy_guarantee_
        assert found.privacy_guarantee_.unit == ("document" if groups is None else "user")


# --- several private steps -----------------------------------------------------------------------------------------

TEXTS = ["apple pear plum apple pear", "iron zinc lead iron zinc"] * 1000


def whole(grid=None, **parameters):
    """A search over a pipeline whose words are private, too."""
    recipe = make_fdptm_pipeline(2.0, 1e-6, model=PrivateCGSLDA(2, max_iter=2))
    return search(recipe, grid or {"topics__n_components": [2, 3]}, **{"delta": 1e-6, **parameters})


@pytest.mark.parametrize(("epsilon", "shape"), [(1.0, 1), (8.0, 0)])
def test_what_trials_leave_out_of_delta_is_paid_for_every_trial(epsilon, shape):
    found = whole(epsilon=epsilon, mean_trials=7, shape=shape)
    guarantee, trial = found.privacy_cost(), found.estimator
    assert (guarantee.epsilon, guarantee.delta, guarantee.status) == (epsilon, 1e-6, "proven")
    budget = found._budgets(False)(found.trial_epsilon())
    trial = privacy_guarantee(clone(found.estimator).set_params(**budget))
    steps = [clone(step).set_params(**part_of(budget, name)) for name, step in found.estimator.steps]
    left_out = math.fsum(step.privacy_cost().event_delta for step in steps)
    assert trial.event_delta == left_out > 0
    assert 1e-6 / 4 * (1 + 1e-9) >= guarantee.event_delta >= 7 * left_out
    assert 0.99 * epsilon < epsilon_of(guarantee.event, 1e-6 - guarantee.event_delta) <= epsilon
    own = [step.epsilon for _, step in found.estimator.steps]
    assert steps[0].epsilon / steps[1].epsilon == pytest.approx(own[0] / own[1])  # the proportions stay


def part_of(budget, step):
    return {name.removeprefix(f"{step}__"): value for name, value in budget.items() if name.startswith(f"{step}__")}


@pytest.mark.parametrize(("shape", "law"), [(1, stats.geom(1 / 7)), (math.inf, stats.poisson(7))])
def test_what_is_left_out_shows_more_often_in_a_search_than_in_a_trial(shape, law):
    # A trial releases too much with probability delta, and then has the best score.
    delta, runs = 1e-4, np.arange(2000)
    shown = float((law.pmf(runs) * -np.expm1(runs * math.log1p(-delta))).sum())
    assert 6.9 * delta < shown <= 7 * delta  # once is not enough, the mean is
    rng = np.random.default_rng(0)
    assert np.mean([draw_trials(7, shape, rng) for _ in range(4000)]) == pytest.approx(7, rel=0.1)


def generating(shape, parameter, x):
    """Return the probability generating function of the number of trials."""
    if shape == 0:
        return np.log(1 - (1 - parameter) * x) / math.log(parameter)
    if math.isinf(shape):
        return np.exp(parameter * (x - 1))
    return ((1 - (1 - parameter) * x) ** -shape - 1) / (parameter**-shape - 1)


def best_of(trial, shape, parameter):
    """Return the law of the best of a random number of trials, whose outcomes are in the order of their scores."""
    return np.diff(generating(shape, parameter, np.append(0.0, np.minimum(np.cumsum(trial), 1.0))))


def hockey(first, second, alpha):
    return np.maximum(first - alpha * second, 0).sum()


@pytest.mark.parametrize("shape", [0, 0.5, 1, 3, math.inf])
def test_the_lemma_of_what_trials_leave_out_holds_where_all_outcomes_are_known(shape):
    """Trials of two candidates and two steps, which fail now and then; a failure is seen on D, and not on D'.

    Outcomes are (candidate, first step, second step, failed). At every epsilon, in both orders, the search is dominated
    by that over trials without failures but for what the lemma adds, and half of that is not enough.
    """
    rng, most = np.random.default_rng(0), 0.0
    for _ in range(60):
        parameter = rng.uniform(1, 10) if shape == math.inf else rng.uniform(0.05, 0.9)
        mean = float(np.diff(generating(shape, parameter, np.array([1 - 1e-6, 1 + 1e-6])))[0] / 2e-6)
        steps = rng.dirichlet(np.ones(3), (2, 4))  # of a candidate: the first step, and the second given the first
        moved = steps * np.exp(rng.uniform(0, 1, steps.shape))
        moved /= moved.sum(axis=2, keepdims=True)
        fails = rng.uniform(0, 0.02, (2, 4))
        failed = 1 - (1 - fails[:, :1, None]) * (1 - fails[:, 1:, None])
        laws = [(part[:, 0, :, None] * part[:, 1:] / 2)[..., None] * np.stack([1 - failed, failed], -1)
                for part in (steps, moved)]  # fmt: skip
        unseen = np.stack([laws[1].sum(axis=3), np.zeros((2, 3, 3))], axis=3)  # on D' there is nothing to be seen
        score = rng.permutation(36).reshape(2, 3, 3, 2) + np.array([0, rng.choice([-100, 100])])
        order, last = np.argsort(score.ravel()), np.argsort((score + np.array([0, 1000])).ravel())
        true = [best_of(law.ravel()[order], shape, parameter) for law in (laws[0], unseen)]
        covered = [best_of(law.ravel()[last], shape, parameter) for law in laws]
        left_out = mean * max(law[..., 1].sum() for law in laws)
        for alpha in np.exp(np.arange(0, 6, 0.5)):
            for a, b in ((0, 1), (1, 0)):
                excess = hockey(true[a], true[b], alpha) - hockey(covered[a], covered[b], alpha)
                assert excess <= left_out * (1 + 1e-5) + 1e-12
                most = max(most, excess / left_out)
    assert most > 0.5


@pytest.mark.parametrize("frame", [False, True])
def test_a_search_over_all_steps_has_one_guarantee_and_is_released_with_it(frame, tmp_path):
    texts = pd.DataFrame({"text": TEXTS}) if frame else TEXTS
    with PrivacyAccountant(8.0, 1e-6) as ledger:
        found = whole(epsilon=8.0).fit(texts)
    assert len(ledger.ledger) == 1
    assert found.privacy_guarantee_ == found.privacy_cost() == ledger.ledger[0].guarantee
    for estimator in (found, found.best_estimator_, pickle.loads(pickle.dumps(found.best_estimator_))):
        guarantee = privacy_guarantee(estimator)
        assert (guarantee.epsilon, guarantee.delta) == (8.0, 1e-6)
    model = release(found)
    assert model.privacy_guarantee_.epsilon == 8.0 and "best of a geometric number" in str(model.privacy_guarantee_)
    model.save(tmp_path / "topics.zip")
    np.testing.assert_array_equal(
        load_released(tmp_path / "topics.zip").transform(TEXTS[:3]), found.transform(TEXTS[:3])
    )


def test_a_step_that_is_fitted_again_is_paid_for_again():
    best = whole(epsilon=8.0).fit(TEXTS).best_estimator_
    best["topics"].fit(best["words"].transform(TEXTS))
    assert privacy_guarantee(best).epsilon > 8.0
    twice = Pipeline([("words", best["words"]), ("other", Pipeline([("topics", clone(best["topics"]))]))])
    twice["other"].fit(best["words"].transform(TEXTS))
    assert privacy_guarantee(twice).epsilon > 8.0


def test_a_pipeline_that_ends_in_a_search_is_released(corpus):
    words = corpus.feature_names.tolist()
    pipeline = Pipeline([("count", CountVectorizer(vocabulary=words)), ("lda", search(epsilon=3.0))])
    texts = [" ".join(np.repeat(words, row)) for row in corpus.data.toarray()]
    model = release(pipeline.fit(texts))
    assert model.privacy_guarantee_.epsilon == 3.0 and model.vocabulary_.tolist() == words
    np.testing.assert_array_equal(model.transform(texts[:2]), pipeline.transform(texts[:2]))


def test_users_are_searched_over_all_steps():
    users = np.arange(len(TEXTS)) // 2
    assert whole(epsilon=20.0, delta=1e-4).fit(TEXTS, groups=users).privacy_guarantee_.unit == "user"
    with sklearn.config_context(enable_metadata_routing=True):
        recipe = make_fdptm_pipeline(2.0, 1e-6, model=PrivateCGSLDA(2, max_iter=2), groups=True)
        found = search(recipe, {"topics__n_components": [2]}, epsilon=20.0, delta=1e-4).fit(TEXTS, groups=users)
    assert found.privacy_guarantee_.unit == "user"


def test_texts_are_checked_before_a_search_is_paid_for():
    with PrivacyAccountant(8.0, 1e-6) as ledger:
        for texts, message in (([*TEXTS, None], "row 2000"), ("one", "one string")):
            with pytest.raises(ValueError, match=message):
                whole(epsilon=8.0).fit(texts)
        with pytest.raises(ValueError, match="X_public must hold a text in each row; row 1"):
            whole(epsilon=8.0).fit(TEXTS, X_public=["apple", None])
    assert not ledger.ledger


def test_steps_that_cannot_be_set_are_refused():
    with pytest.raises(ValueError, match="param_grid must not hold 'words__epsilon'"):
        whole({"words__epsilon": [1.0]}).privacy_cost()
    with pytest.raises(ValueError, match="epsilon of each private step must be finite"):
        search(make_fdptm_pipeline(math.inf, 1e-6), {"topics__n_components": [2]}).privacy_cost()
    with pytest.raises(ValueError, match="cost more than it"):
        whole(epsilon=0.1, epsilon_parameter="topics__epsilon", delta=1e-3).privacy_cost()
    assert whole(epsilon=math.inf).fit(TEXTS).privacy_guarantee_.epsilon == math.inf


def test_users_are_held_out_as_a_whole(corpus):
    users = np.arange(400) // 4
    found = search().fit(corpus.data, groups=users)
    assert found.privacy_guarantee_ == found.privacy_cost(groups=True)
    assert found.privacy_guarantee_.unit == "user"


def test_few_units_may_leave_none_to_judge_by(corpus):
    """Whether a unit is held out is its own coin: a fit that failed for want of one would tell how they fell."""
    assert math.isfinite(search(validation_fraction=1e-9).fit(corpus.data[:5]).best_score_)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_a_seed_repeats_the_search(corpus):
    first, second = (search(random_state=3, mean_trials=4).fit(corpus.data) for _ in range(2))
    assert first.best_params_ == second.best_params_
    assert first.best_score_ == second.best_score_
    np.testing.assert_array_equal(first.best_estimator_.topic_word_, second.best_estimator_.topic_word_)
    assert any("seed" in assumption for assumption in first.privacy_guarantee_.assumptions)
    with pytest.warns(PrivacyLeakWarning, match="random_state"):
        search(random_state=3).fit(corpus.data)


def test_infinite_epsilon_searches_without_noise(corpus):
    found = search(epsilon=math.inf, grid={"n_components": [3]}).fit(corpus.data)
    assert found.privacy_guarantee_.epsilon == math.inf
    assert found.best_score_ > 0  # over 16 corpora 19.4, with deviation 3.4


def test_one_unit_changes_the_score_by_at_most_one():
    """Whatever its log-likelihood is: -inf, 0, or nan for a document without a held-out token."""

    class Trial:
        def get_topics(self):
            return np.full((2, 50), 0.02)

    rng = np.random.default_rng(0)
    for _ in range(200):
        values = rng.choice([-math.inf, -50.0, -3.0, -1e-3, 0.0, math.nan], size=7)
        unit = np.sort(rng.integers(3, size=7))
        start = np.searchsorted(unit, np.arange(unit.max() + 2))
        start = np.unique(start)
        units = (start, np.arange(7))
        less = (start[:-1], np.arange(start[-2]))
        whole = private_score(values, Trial(), units, 0.0, None)
        without = private_score(values[: start[-2]], Trial(), less, 0.0, None)
        assert 0 <= whole - without <= 1
        assert whole * NORM_BOUND == int(whole * NORM_BOUND)


class Uniform:
    """Topics of 50 words, all alike."""

    def get_topics(self):
        return np.full((2, 50), 0.02)


def test_a_score_is_the_sum_of_gains_over_blind_guessing():
    """Users of two, one and two documents; each gains the mean of 1 + ln p / ln V."""
    values = np.log(50) * np.array([-0.5, -0.25, 0.0, -1.0, -2.0])
    units = np.array([0, 2, 3, 5]), np.arange(5)
    assert private_score(values, Uniform(), units, 0.0, None) == pytest.approx(0.625 + 1 + 0, abs=1e-5)


def test_a_score_has_the_noise_that_is_paid_for():
    """Fixed seeds: rounded Gaussian noise, on a grid so fine that it looks continuous."""
    values, units = np.full(4, -0.5 * np.log(50)), (np.arange(5), np.arange(4))
    found = np.array([private_score(values, Uniform(), units, 3.0, seed) for seed in range(3000)]) - 2.0
    assert 1e-6 < stats.chi2.cdf((found**2).sum() / 9, 3000) < 1 - 1e-6
    assert stats.kstest(found / 3, "norm").pvalue > 1e-6


def test_a_search_draws_scores_with_the_noise_of_its_plan(corpus, monkeypatch):
    """A unit is held out or not: it meets the score's noise or the topics', which have one multiplier."""
    seen = []

    def watched(gains, trial, units, deviation, seed):
        seen.append((deviation, seed))
        return private_score(gains, trial, units, deviation, seed)

    monkeypatch.setattr(_search, "private_score", watched)
    searching = search(epsilon=2.0, mean_trials=3).fit(corpus.data)
    topics = PrivateCGSLDA(epsilon=searching.trial_epsilon(), max_iter=2).privacy_cost().event
    assert searching.privacy_guarantee_.event.event == topics
    assert {deviation for deviation, _ in seen} == {topics.noise_multiplier}
    assert {seed for _, seed in seen} == {None}


@pytest.mark.parametrize("mean", [1.5, 7.0, 40.0])
def test_the_number_of_trials_may_be_a_poisson_number(mean):
    """Chi-square; fixed seed."""
    rng, n = np.random.default_rng(2), 20000
    drawn = np.array([draw_trials(mean, math.inf, rng) for _ in range(n)])
    k = np.arange(int(stats.poisson.ppf(0.001, mean)), int(stats.poisson.ppf(0.999, mean)) + 1)
    expected = n * np.concatenate([[stats.poisson.cdf(k[0] - 1, mean)], stats.poisson.pmf(k, mean)])
    found = np.array([np.sum(drawn < k[0]), *(np.sum(drawn == one) for one in k)])
    expected, found = (np.append(part, n - part.sum()) for part in (expected, found))
    likely = expected > 5
    assert stats.chisquare(found[likely], expected[likely] * found[likely].sum() / expected[likely].sum()).pvalue > 1e-6


@pytest.mark.parametrize("shape", [0.3, 1, 50, math.inf])
def test_many_trials_can_be_drawn(shape):
    """The probability of one trial is below every float."""
    rng, mean = np.random.default_rng(3), 3000.0
    drawn = np.array([draw_trials(mean, shape, rng) for _ in range(400)])
    deviation = math.sqrt(mean + (mean * mean / shape if shape < math.inf else 0))
    assert abs(drawn.mean() - mean) < 6 * deviation / 20


@pytest.mark.parametrize("shape", [0, 0.5, 1, 3])
def test_the_number_of_trials_has_the_law_that_is_accounted(shape):
    """Chi-square against the printed law; fixed seed."""
    from dp_accounting.rdp.rdp_privacy_accountant import _gamma_truncated_negative_binomial

    rng, mean, n = np.random.default_rng(1), 4.0, 20000
    drawn = np.array([draw_trials(mean, shape, rng) for _ in range(n)])
    gamma = _gamma_truncated_negative_binomial(shape, mean)
    k = np.arange(1, 15)
    law = stats.logser.pmf(k, 1 - gamma) if shape == 0 else stats.nbinom.pmf(k, shape, gamma) / (1 - gamma**shape)
    expected = n * np.append(law, 1 - law.sum())
    found = np.append(np.bincount(drawn, minlength=15)[1:15], (drawn > 14).sum())
    assert drawn.min() == 1
    assert stats.chisquare(found, expected).pvalue > 1e-6


def test_poisson_may_draw_no_trial(corpus):
    found = search(shape=math.inf, mean_trials=1.0001)
    failures = 0
    for _ in range(60):  # all succeed with probability (1 - 1/e)^60 < 1e-11
        try:
            found.fit(corpus.data)
        except ValueError as error:
            assert "drew no trial" in str(error)
            failures += 1
            break
    assert failures == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon_parameter": "eps"}, "epsilon_parameter must name a parameter of the estimator; got 'eps'"),
        ({"grid": {"epsilon": [1.0]}}, "param_grid must not hold 'epsilon'"),
        ({"estimator": PrivateCGSLDA(random_state=0)}, "random_state of the estimator must be None"),
        ({"grid": {"random_state": [1, 2]}}, "random_state of the estimator must be None"),
        ({"estimator": PriTopLDA()}, "must have a proven guarantee; got 'claimed'"),
        ({"mean_trials": 1.0}, "'mean_trials'"),
        ({"epsilon": 0.0}, "'epsilon'"),
        ({"delta": 0.0}, "'delta'"),
        ({"delta": 1e-13}, "delta=1e-13 is too small"),
        ({"shape": -1.0}, "'shape'"),
        ({"validation_fraction": 1.0}, "'validation_fraction'"),
    ],
)
def test_bad_parameters_are_refused_before_data_are_read(change, message):
    with pytest.raises(ValueError, match=message):
        search(**change).fit("not looked at")


# --- nothing of the trials that are not released is heard ----------------------------------------------------------


class Told(UserWarning):
    """What a trial says."""


def talking(monkeypatch, trials=8):
    """Run so many trials, whose fits warn of their candidates; return a scorer to which fewer topics are better."""
    fit = PrivateCGSLDA.fit

    def aloud(self, X, y=None, groups=None):
        for _ in range(2):
            warnings.warn(f"{self.n_components} topics", Told, stacklevel=2)
        return fit(self, X, y, groups)

    monkeypatch.setattr(PrivateCGSLDA, "fit", aloud)
    monkeypatch.setattr(_search, "draw_trials", lambda *_: trials)
    return lambda fitted, X: -fitted.n_components


def test_trials_that_are_not_released_warn_of_nothing(corpus, monkeypatch):
    """How many there were, and what they saw, would be told beside the best: it is not accounted."""
    scoring = talking(monkeypatch)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = search(scoring=scoring).fit(corpus.data, X_public=corpus.data[:50])
    (told,) = heard
    assert str(told.message) == f"{found.best_params_['n_components']} topics"
    assert told.filename == __file__  # of the caller


def test_what_was_paid_is_kept_where_warnings_are_errors(corpus, monkeypatch):
    scoring = talking(monkeypatch)
    found = search(scoring=scoring)
    with PrivacyAccountant(5.0, 1e-5) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Told):
            found.fit(corpus.data, X_public=corpus.data[:50])
    assert [entry.guarantee for entry in ledger.ledger] == [found.privacy_guarantee_]
    assert release(found, feature_names=list(corpus.feature_names)).privacy_guarantee_.epsilon == 5.0


def test_a_trial_that_fails_is_the_worst(corpus, monkeypatch):
    monkeypatch.setattr(_search, "draw_trials", lambda *_: 12)

    def scoring(fitted, X):
        if fitted.n_components == 3:
            raise RuntimeError("three topics of a trial that nobody is to hear of")
        return -math.inf if fitted.n_components == 2 else math.nan

    grid = {"n_components": [2, 3, 4]}
    found = search(grid=grid, scoring=scoring)
    for _ in range(5):
        try:
            found.fit(corpus.data, X_public=corpus.data[:50])
        except RuntimeError:  # all twelve had three topics
            continue
        break
    assert found.best_params_["n_components"] != 3  # false alarm: 3^-60
    only = search(grid={"n_components": [3]}, scoring=scoring)
    with PrivacyAccountant(5.0, 1e-5) as ledger, pytest.raises(RuntimeError, match="three topics") as error:
        only.fit(corpus.data, X_public=corpus.data[:50])
    assert len(ledger.ledger) == 1 and "paid for" in error.value.__notes__[0]
    assert not hasattr(only, "best_estimator_")


def test_a_selection_that_finds_nothing_is_an_outcome(monkeypatch):
    """Words of a trial come out empty now and then, and what a trial shows is released of the best alone."""
    monkeypatch.setattr(_search, "draw_trials", lambda *_: 10)
    texts, recipe = (
        ["apple pear", "iron zinc"] * 400,
        make_fdptm_pipeline(2.0, 1e-6, model=PrivateCGSLDA(2, max_iter=2)),
    )
    grid = {"words__token_pattern": [r"(?u)\b\w\w+\b", "beryl"]}
    found = search(recipe, grid, epsilon=8.0, delta=1e-5)
    for _ in range(3):
        try:
            found.fit(texts)
        except EmptySelectionError:  # once in a thousand all ten look for beryl
            continue
        break
    assert found.best_params_["words__token_pattern"] != "beryl"  # false alarm: 1e-9
    assert release(found).vocabulary_.tolist() == ["apple", "iron", "pear", "zinc"]


@pytest.mark.parametrize("name", ["callback", "checkpoint"])
def test_nobody_looks_on_while_trials_are_fitted(name, corpus, tmp_path):
    watched = {"callback": print, "checkpoint": str(tmp_path / "trial")}[name]
    model = PrivateCGSLDA(max_iter=2, **{name: watched})
    with PrivacyAccountant(5.0, 1e-5) as ledger:
        for estimator, parameter in ((model, "epsilon"), (Pipeline([("lda", model)]), "lda__epsilon")):
            grid = {parameter.replace("epsilon", "n_components"): [2]}
            with pytest.raises(ValueError, match=f"{name} of the estimator must be None: nothing of a trial"):
                search(estimator, grid, epsilon_parameter=parameter).fit(corpus.data)
    assert not ledger.ledger and not list(tmp_path.iterdir())


def test_a_bar_does_not_count_trials(corpus, monkeypatch, capsys):
    shown = []
    for trials in (1, 7):
        monkeypatch.setattr(_search, "draw_trials", lambda *_, trials=trials: trials)
        model = PrivateCGSLDA(max_iter=3, verbose=1)
        found = search(Pipeline([("lda", model)], verbose=True), {"lda__n_components": [2]}, verbose=1)
        found.set_params(epsilon_parameter="lda__epsilon").fit(corpus.data)
        out, err = capsys.readouterr()
        shown.append((out, list(dict.fromkeys(line.partition("|")[0] for line in err.split("\r")))))  # drawn at times
        assert found.best_estimator_.verbose is True and found.best_estimator_[0].verbose == 1
    assert shown[0] == shown[1]
    assert shown[0][0] == "" and any("100%" in line for line in shown[0][1])


def test_trials_draw_words_of_their_own(tmp_path, monkeypatch):
    """With a pipeline's memory the second trial had the words of the first: one draw, accounted as several."""
    monkeypatch.setattr(_search, "draw_trials", lambda *_: 3)
    recipe = make_fdptm_pipeline(8.0, 1e-6, model=PrivateCGSLDA(2, max_iter=2)).set_params(memory=str(tmp_path))
    found = search(recipe, {"topics__n_components": [2]}, epsilon=8.0, delta=1e-6).fit(TEXTS)
    assert not list(tmp_path.iterdir())
    assert found.best_estimator_.transform(TEXTS[:2]).shape == (2, 2)


def test_a_grid_search_costs_all_its_fits():
    model = PrivateCGSLDA(epsilon=1.0)
    grid = GridSearchCV(model, {"n_components": [5, 10, 20]}, cv=3)
    one, cost = model.privacy_cost(), search_cost(grid)
    assert cost == search_cost(grid)
    assert cost.epsilon == one.compose(*[one] * 6).epsilon  # two of three folds for each candidate, and the refit
    assert any("without noise" in item for item in cost.not_covered)
    assert any("splits" in item for item in cost.assumptions)
    grid.refit = False
    assert search_cost(grid).epsilon == one.compose(*[one] * 5).epsilon
    assert search_cost(grid, groups=True).unit == "user"


def test_a_splitter_that_moves_units_has_no_guarantee():
    model = PrivateCGSLDA(epsilon=1.0)
    for cv in (None, 3, KFold(3), ShuffleSplit(5, train_size=2), TimeSeriesSplit(5), Twice(2)):
        cost = search_cost(GridSearchCV(model, {"n_components": [5]}, cv=cv))
        assert cost.status == "claimed"
        assert "move all other units" in cost.reason
    for cv in (SPLITS, PredefinedSplit([0, 1, 1])):
        cost = search_cost(GridSearchCV(model, {"n_components": [5]}, cv=cv))
        assert cost.status == "proven"
        assert any("splits" in item for item in cost.assumptions)


def fits_of(search, estimator):
    """How many fits of the estimator the cost of a search amounts to."""
    one, cost = estimator.privacy_cost(), search_cost(search)
    for number in range(1, 60):
        if one.compose(*[one] * (number - 1)).epsilon == cost.epsilon:
            return number
    raise AssertionError(f"no number of fits costs {cost.epsilon}")


class Twice(KFold):
    """Gives a split twice."""

    def split(self, X, y=None, groups=None):
        splits = list(super().split(X, y, groups))
        return iter([splits[0], splits[0]])


SPLITS = [([0, 1], [2]), ([0, 1], [3]), ([0], [1])]


@pytest.mark.parametrize(
    ("cv", "fits"),
    [
        (None, 4),
        (3, 2),
        (KFold(3, shuffle=True), 2),
        (StratifiedKFold(4), 3),
        (GroupKFold(3), 2),
        (StratifiedGroupKFold(3), 2),
        (RepeatedKFold(n_splits=3, n_repeats=4), 8),
        (RepeatedStratifiedKFold(n_splits=5, n_repeats=2), 8),
        (ShuffleSplit(2), 2),
        (ShuffleSplit(5), 5),
        (TimeSeriesSplit(5), 5),
        (PredefinedSplit([-1, 0, 0, 1, 1]), 2),
        (Twice(2), 2),
        (SPLITS, 3),
    ],
)
def test_only_partitions_keep_a_document_out_of_a_fit(cv, fits):
    model = PrivateCGSLDA(epsilon=1.0)
    assert fits_of(GridSearchCV(model, {"n_components": [5]}, cv=cv, refit=False), model) == fits


@pytest.mark.parametrize(
    ("cv", "fits"),
    [
        (None, 5),
        (2, 2),
        (KFold(3), 3),
        (KFold(5, shuffle=True, random_state=0), 5),
        (StratifiedKFold(4), 4),
        (GroupKFold(3), 2),
        (GroupKFold(4), 3),
        (StratifiedGroupKFold(3), 2),
        (RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), 6),
        (RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=0), 6),
        (GroupShuffleSplit(4, random_state=0), 4),
        (ShuffleSplit(3, random_state=0), 3),
        (PredefinedSplit(np.arange(60) // 20), 3),
        (PredefinedSplit(np.arange(60) % 15 % 3), 3),  # keeps users together; nobody asks, and more is counted
    ],
)
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by:UserWarning")
def test_a_user_is_in_all_training_sets_but_of_splitters_that_keep_users_together(cv, fits):
    """Against the splits themselves: no user may meet more training sets of a candidate than are counted."""
    model, users, y = PrivateCGSLDA(epsilon=1.0), np.arange(60) % 15, np.arange(60) // 2 % 2
    grid = GridSearchCV(model, {"n_components": [5]}, cv=cv, refit=False)
    one, cost = model.privacy_cost(groups=True), search_cost(grid, groups=True)
    assert cost.unit == "user"
    assert cost.epsilon == one.compose(*[one] * (fits - 1)).epsilon
    met = np.zeros(15, int)
    for training, _ in check_cv(cv, y).split(np.zeros((60, 1)), y, users):
        met[np.unique(users[training])] += 1
    assert met.max() <= fits
    if not isinstance(cv, (GroupShuffleSplit, PredefinedSplit)):
        assert met.max() == fits
    told = any("is given the same groups as the fits" in item for item in cost.assumptions)
    assert told == isinstance(cv, (GroupKFold, StratifiedGroupKFold))


def test_the_numbers_of_a_search_for_users():
    model = PrivateCGSLDA(epsilon=1.0)
    for folds, epsilon in ((2, 1.4), (3, 1.709), (5, 2.202)):
        grid = GridSearchCV(model, {"n_components": [5]}, cv=folds, refit=False)
        assert search_cost(grid, groups=True).epsilon == pytest.approx(epsilon, abs=1e-3)
        assert search_cost(grid).epsilon < search_cost(grid, groups=True).epsilon
    for cv in (LeaveOneGroupOut(), LeavePGroupsOut(2)):  # as many splits as users, or more
        with pytest.raises(ValueError, match="without data"):
            search_cost(GridSearchCV(model, {"n_components": [5]}, cv=cv), groups=True)


def test_folds_divide_no_token():
    """A model that protects tokens is told of no users: each token is in one document, which no fold divides."""
    grid = GridSearchCV(HDPLDA(epsilon=1e4), {"n_components": [5]}, cv=3, refit=False)
    assert search_cost(grid, groups=True) == search_cost(grid)


def test_a_randomized_search_costs_as_many_candidates_as_it_draws():
    model = PrivateCGSLDA(epsilon=1.0)
    randomized = RandomizedSearchCV(model, {"n_components": [5, 6, 7, 8]}, n_iter=3, cv=4)
    assert fits_of(randomized, model) == 3 * 3 + 1


def test_a_search_that_is_not_known_is_refused():
    model = PrivateCGSLDA(epsilon=1.0)
    grid = {"n_components": [5, 10]}

    class Grid(GridSearchCV):
        pass

    for search in (HalvingGridSearchCV(model, grid), Grid(model, grid), PrivateSearchCV(model, grid), model):
        with pytest.raises(ValueError, match="must be a GridSearchCV or a RandomizedSearchCV; got"):
            search_cost(search)
    with pytest.raises(ValueError, match="no iterator"):
        search_cost(GridSearchCV(model, grid, cv=iter(SPLITS)))
    with pytest.raises(ValueError, match="without data"):
        search_cost(GridSearchCV(model, grid, cv=LeaveOneOut()))


def test_candidates_of_a_randomized_search_are_known_or_all_counted():
    model = PrivateCGSLDA(epsilon=1.0)
    unknown = RandomizedSearchCV(model, {"epsilon": stats.uniform(1, 5)}, n_iter=3, cv=2, refit=False)
    with pytest.raises(ValueError, match="random_state of the search must be an integer where 'epsilon'"):
        search_cost(unknown)
    seeded = search_cost(unknown.set_params(random_state=3))
    drawn = [p["epsilon"] for p in ParameterSampler({"epsilon": stats.uniform(1, 5)}, 3, random_state=3)]
    costs = [PrivateCGSLDA(epsilon=epsilon).privacy_cost() for epsilon in drawn]
    assert seeded.epsilon == pytest.approx(costs[0].compose(*costs[1:]).epsilon)
    options = RandomizedSearchCV(model, {"epsilon": [1.0, 2.0, 3.0]}, n_iter=2, cv=2, refit=False)
    every = GridSearchCV(model, {"epsilon": [1.0, 2.0, 3.0]}, cv=2, refit=False)
    assert search_cost(options) == search_cost(every)


def test_which_candidate_is_fitted_again_is_for_the_data_to_choose():
    grid = GridSearchCV(PrivateCGSLDA(), {"epsilon": [1.0, 3.0]}, cv=2)
    costs = [PrivateCGSLDA(epsilon=epsilon).privacy_cost() for epsilon in (1.0, 3.0)]
    assert search_cost(grid).epsilon == pytest.approx(costs[0].compose(costs[1], *costs).epsilon)


RNG = np.random.default_rng(0)


@pytest.mark.parametrize("users", [RNG.permutation(40), RNG.integers(30, size=40)])
def test_users_in_any_order_are_held_out_and_scored_with_their_own_documents(users, monkeypatch):
    """Units stand in the order of their names, documents in theirs; also where each user has one document."""
    seen, fit_trial = {}, _trials.fit_trial

    def noted_fit(trial, X, groups):
        seen["training"], seen["groups"] = X.argmax(axis=1), groups
        fit_trial(trial, X, groups)

    def noted_score(gains, trial, units, deviation, seed):
        seen["gains"], seen["units"] = gains, units
        return 0.0

    monkeypatch.setattr(_trials, "fit_trial", noted_fit)
    monkeypatch.setattr(_search, "private_score", noted_score)
    monkeypatch.setattr(PrivateCGSLDA, "score_samples", lambda self, X: np.asarray(X).argmax(axis=1))
    search(validation_fraction=0.5).fit(3 * np.eye(40, dtype=int), groups=users)  # a document is known by its word
    np.testing.assert_array_equal(seen["groups"], users[seen["training"]])
    start, documents = seen["units"]
    scored = [set(seen["gains"][documents[a:b]].tolist()) for a, b in itertools.pairwise(start)]
    whole = {user: set(np.flatnonzero(users == user).tolist()) for user in set(users.tolist())}
    held_out = [whole[user] for user in sorted(whole) if not whole[user] & set(seen["training"].tolist())]
    assert scored == held_out and held_out  # of 22 users or so, each with probability one half
    assert set(seen["training"].tolist()) == set(range(40)) - set().union(*scored)
