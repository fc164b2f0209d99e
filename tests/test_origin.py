"""What classes of other authors state: claimed, unless the loop itself bounds what their documents add."""

import copy
import warnings
from abc import ABC

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import public_estimators, small
from internals import PartialEStep, UnitEStep
from random_units import scaled
from sklearn.base import BaseEstimator

from skdplda import (
    VIPSLDA,
    DPVocabularySelector,
    LocalPrivateLDA,
    PrivacyAccountant,
    PrivateCGSLDA,
    privacy_guarantee,
    published,
    release,
)
from skdplda.exceptions import BudgetExceededError
from skdplda.local import LocalRandomizer
from skdplda.model_selection import PrivateSearchCV
from skdplda.models import HDPLDA, BaseRoundsModel
from skdplda.privacy import MECHANISMS
from skdplda.rounds import NORM_BOUND, Contributions, EStep, TopicWordCounts

pytestmark = pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")  # the tests need seeds


class Plain(BaseRoundsModel):
    """The parameters of a model of another author."""

    def __init__(
        self, n_components=2, *, epsilon=2.0, delta=1e-6, max_iter=3, doc_topic_prior=None, topic_word_prior=None,
        checkpoint=None, callback=None, n_jobs=None, random_state=None, verbose=0,
    ):  # fmt: skip
        self.n_components, self.epsilon, self.delta, self.max_iter = n_components, epsilon, delta, max_iter
        self.doc_topic_prior, self.topic_word_prior = doc_topic_prior, topic_word_prior
        self.checkpoint, self.callback, self.n_jobs = checkpoint, callback, n_jobs
        self.random_state, self.verbose = random_state, verbose


class Counted(Plain):
    """Adds a document's counts, of which half go to each topic, and remembers how often it was asked."""

    def contribution(self, words, counts, table, state, rng):
        n_times = 1 if state is None else state[0] + 1
        return np.outer(counts * n_times, [1.0, 1.0 + words[0]]), [n_times]


class RawCounts:
    """An E-step without a bound."""

    def __init__(self, X, units, *, randomness, n_threads, first_document=0):
        self.n_units, self._X = X.shape[0], X

    def collect(self, query, round_, active):
        return np.asarray(self._X.sum(axis=0)).ravel()[:, None].astype(np.int64) * np.array([[2**20, 0]])

    def arrays(self):
        return {}

    def restore(self, arrays):
        pass


class BoundedCounts(RawCounts):
    """One that another author may write: each document's counts are bounded, and in the first topic."""

    def collect(self, query, round_, active):
        X, sums = self._X, Contributions(query.shape)
        document = np.repeat(np.arange(self.n_units), np.diff(X.indptr))
        sums.add_scaled(np.outer(X.data, [1.0, 0.0]), X.indices, document, self.n_units)
        return sums.bounded()


class Unbounded(Plain):
    """Adds raw counts times 2**20."""

    def _make_e_step(self, plan, randomness, data):
        return RawCounts


class Unproven(Plain):
    """Has an E-step of its own: that a document's values follow from that document alone, nobody has checked."""

    def _make_e_step(self, plan, randomness, data):
        return BoundedCounts


@pytest.fixture(scope="module")
def X():
    return sp.csr_array(np.random.default_rng(0).poisson(0.4, (60, 12)).astype(np.int32))


def test_an_e_step_without_a_bound_gets_no_noise(X):
    reports = []
    with pytest.raises(TypeError, match=r"collect must return a Bounded.*got ndarray\. Nothing was released"):
        Unbounded(callback=reports.append).fit(X)
    assert not reports


def test_workers_refuse_it_too(X):
    """Before anything travels; what is exact, and promises nothing, is an array."""
    for norm in (1, 2):
        part = PartialEStep(RawCounts, 0, norm, X, units=None, first_document=0, n_threads=1)
        with pytest.raises(TypeError, match="collect must return a Bounded"):
            part.collect(TopicWordCounts(np.ones((12, 2))), 0, 0)
    part = PartialEStep(BoundedCounts, 0, 2, X, units=None, first_document=0, n_threads=1)
    assert part.collect(TopicWordCounts(np.ones((12, 2))), 0, 0).dtype == np.int64
    exact = PartialEStep(RawCounts, 0, None, X, units=None, first_document=0, n_threads=1)
    assert exact.collect(TopicWordCounts(np.ones((12, 2))), 0, 0).any()


def test_an_e_step_of_another_author_is_claimed_and_not_released(X, untouchable):
    model = Unproven()
    assert model.privacy_cost().status == "claimed"
    with PrivacyAccountant(5.0, 1e-5) as ledger:
        with pytest.raises(ValueError, match=r"must have status 'proven'.*replaces _make_e_step"):
            model.fit(untouchable())
        assert not ledger.ledger
    model.fit(X)
    guarantee = model.privacy_guarantee_
    assert guarantee == model.privacy_cost() and guarantee.status == "claimed"
    assert "no theorem here covers its class" in guarantee.reason and "_make_e_step" in guarantee.reason
    assert privacy_guarantee(model).status == "claimed" and "is not of this package" in privacy_guarantee(model).reason
    with pytest.raises(ValueError, match="no proven, finite guarantee"):
        release(model, feature_names=[f"word{i}" for i in range(12)])
    assert privacy_guarantee(model, trusted=(Unproven,)).status == "proven"


@pytest.mark.parametrize("kind", public_estimators(), ids=lambda kind: kind.__name__)
def test_what_derives_from_an_estimator_is_claimed(kind):
    """Whatever it replaces, and if it replaces nothing."""
    arguments = {"n_words": 20} if kind in (LocalPrivateLDA, LocalRandomizer) else {}
    ours = small(kind).privacy_cost(**arguments)
    assert (ours.status == "proven") == (kind.__name__ not in published.__all__)
    for methods in ({}, {"fit": lambda self, X: self}, {"_guarantee": kind.__dict__.get("_guarantee", len)}):
        Heir = type(f"Heir{kind.__name__}", (kind,), {**methods, "__init__": kind.__init__, "__module__": __name__})
        if "_guarantee" in methods and methods["_guarantee"] is len:
            continue
        theirs = small(Heir).privacy_cost(**arguments)
        assert theirs.status == ("claimed" if ours.status == "proven" else ours.status)
        assert f"Heir{kind.__name__}" in theirs.reason or ours.epsilon == np.inf
        assert theirs.epsilon == ours.epsilon


def test_a_class_by_the_name_of_another_is_not_that_class():
    copied = type("VIPSLDA", (VIPSLDA,), {"__init__": VIPSLDA.__init__, "__module__": VIPSLDA.__module__})
    assert copied(2).privacy_cost().status == "claimed" and VIPSLDA(2).privacy_cost().status == "proven"
    neighbour = type("VIPSLDA", (VIPSLDA,), {"__init__": VIPSLDA.__init__, "__module__": "skdplda_more"})
    assert neighbour(2).privacy_cost().status == "claimed"


def test_a_method_that_an_object_replaces_is_not_the_method_that_was_proven(X):
    model = PrivateCGSLDA(2, max_iter=2)
    model._make_e_step = lambda plan, randomness, data: RawCounts
    assert model.privacy_cost().status == "claimed" and "_make_e_step" in model.privacy_cost().reason
    assert privacy_guarantee(model).status == "claimed"


def test_every_statement_of_an_heir_is_claimed(X):
    class Stream(VIPSLDA):
        pass

    class Sweeps(HDPLDA):
        pass

    class Coins(LocalRandomizer):
        pass

    class Words(DPVocabularySelector):
        pass

    stream = Stream(2, learning_method="online", max_iter=2, batch_size=20, nominal_size=60)
    assert stream.privacy_cost(stream=True).status == "claimed"
    assert stream.partial_fit(X).privacy_guarantee_.status == "claimed"
    assert Sweeps(2, max_iter=2).document_cost(3).status == "claimed"
    server = LocalPrivateLDA(2, max_iter=2, randomizer=Coins())
    assert (
        server.privacy_cost(n_words=12).status == "claimed"
        and LocalPrivateLDA(2).privacy_cost(n_words=12).status == "proven"
    )
    assert Words(epsilon=50.0, public_vocabulary=None).fit(X).privacy_guarantee_.status == "claimed"
    search = PrivateSearchCV(Stream(2), {"n_components": [2, 3]})
    with pytest.raises(ValueError, match="must have a proven guarantee; got 'claimed'"):
        search.privacy_cost()


def test_topics_over_time_are_those_of_a_method_of_this_package(X):
    class Other(PrivateCGSLDA):
        def transform(self, X):
            return np.tile(super().transform(X).max(axis=0), (X.shape[0], 1))  # of all documents

    options = {"bins": [0, 1], "epsilon": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (kind(2, max_iter=2).fit(X) for kind in (Other, PrivateCGSLDA))
        found = [model.topics_over_time(X, np.zeros(60), **options).privacy_guarantee_ for model in (theirs, ours)]
    assert [guarantee.status for guarantee in found] == ["claimed", "proven"]


# --- a method of one document ---------------------------------------------------------------------------
def test_one_method_of_a_document_is_proven_with_an_assumption(X):
    model = Counted().fit(X)
    guarantee = model.privacy_guarantee_
    assert guarantee == model.privacy_cost() == privacy_guarantee(model) and guarantee.status == "proven"
    assert any("Counted.contribution" in line and "on its own" in line for line in guarantee.assumptions)
    assert release(model, feature_names=[f"word{i}" for i in range(12)]).privacy_guarantee_.status == "proven"


@pytest.mark.parametrize("name", ["_plan", "_guarantee", "_make_tables", "_read", "transform", "_set_fitted", "_run"])
def test_what_else_is_replaced_is_claimed(name):
    kind = type("More", (Counted,), {name: getattr(Counted, name)})
    assert kind().privacy_cost().status == "claimed" and name in kind().privacy_cost().reason
    assert type("New", (Counted,), {"headline": lambda self: ""})().privacy_cost().status == "proven"


class Watching:
    """Replaces what a fit does, without a name of the base."""

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


class Storing:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


class OfParameters(BaseEstimator):
    """Stands in front of scikit-learn's base, which a fit asks for the parameters of its copies."""

    def get_params(self, deep=True):
        return super().get_params(deep)


class Making(type):
    """Makes instances in a way of its own, and may say what the classes are."""


class Beside(ABC):  # noqa: B024 (with an abstract method, nothing could be made of it)
    """Adds something that neither a fit nor a statement asks for."""

    epsilon = 1.0

    def headline(self):
        return ""


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        (Watching, "__getattribute__"),
        (Storing, "__setattr__"),
        (OfParameters, "get_params"),
        (Making("Made", (), {}), "the metaclass"),
        (Beside, ""),
    ],
)
def test_a_class_behind_the_base_replaces_as_much_as_one_in_front(behind, said, X):
    """One that swapped the data and the model, and stood behind, released exact counts as proven."""
    kind = type(behind)("Both", (Plain, behind), {"contribution": Counted.contribution, "__module__": __name__})
    assert kind.__mro__.index(behind) > kind.__mro__.index(BaseRoundsModel)
    for guarantee in (kind().privacy_cost(), kind().fit(X).privacy_guarantee_):
        assert guarantee.status == ("claimed" if said else "proven") and said in guarantee.reason


@pytest.mark.parametrize("name", ["random_state", "epsilon", "checkpoint", "privacy_guarantee_"])
@pytest.mark.parametrize("behind", [False, True])
def test_a_property_in_the_place_of_a_parameter_is_claimed(name, behind):
    """It could be 0 to the noise, and None to the statement."""
    two_faced = property(lambda self: vars(self).get(name), lambda self, value: vars(self).update({name: value}))
    own, other = ({}, {name: two_faced}) if behind else ({name: two_faced}, {})
    kind = type("TwoFaced", (Counted, type("Other", (), other)), own)
    guarantee = kind(epsilon=2.0).privacy_cost()
    assert guarantee.status == "claimed" and name in guarantee.reason
    assert type("New", (Counted,), {"headline": property(lambda self: "")})().privacy_cost().status == "proven"


class Odd(Plain):
    """Contributes what nobody should, of documents that begin with a certain word."""

    def contribution(self, words, counts, table, state, rng):
        values = np.outer(counts, [1.0, 2.0])
        case = int(counts[0]) - 100 if words[0] == 0 else -1
        if case == 0:
            raise KeyError("a word of a private document")
        if case == 1:
            warnings.warn("a word of a private document", stacklevel=1)
        return {2: values * 2.0**60, 3: values * np.inf, 4: values * np.nan, 5: values[:0], 6: None, 7: values * 1e304,
                8: values * 1e-310, 9: "text", 10: values + 1j}.get(case, values), None  # fmt: skip


def total_of(model, X, groups=None):
    return model.audit_contributions(X, groups).total


@pytest.mark.parametrize("case", range(11))
@pytest.mark.parametrize("grouped", [False, True])
def test_a_unit_adds_no_more_than_the_bound_and_moves_no_other(case, grouped, X):
    """A fit succeeds whatever the document is, and says nothing of it."""
    odd = np.zeros((2 if grouped else 1, 12), np.int32)
    odd[:, 0], odd[:, 3] = 100 + case, 5
    both = sp.csr_array(sp.vstack([X, odd]).astype(np.int32))
    groups = np.r_[np.arange(60) // 2, [99, 99]] if grouped else None
    model = Odd(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        without = total_of(model, X, None if groups is None else groups[:60])
        added = total_of(model, both, groups) - without
        alone = total_of(model, sp.csr_array(odd), None if groups is None else groups[60:])
    np.testing.assert_array_equal(added, alone)
    assert int((added.astype(object) ** 2).sum()) <= NORM_BOUND**2
    lost = case in (0, 3, 4, 5, 6, 9)
    assert added.any() != lost


def test_a_bound_is_met_and_not_only_kept():
    """The integers of one unit are nearly of norm NORM_BOUND, of values of any size."""
    rng = np.random.default_rng(0)
    for size in (1e-300, 1.0, 1e300):
        values = rng.normal(size=(500, 3)) * size
        unit = np.repeat([0, 1, 1, 3], [100, 200, 100, 100])
        found = scaled(values, unit, 4)
        norms = [int((found[unit == u] ** 2).sum()) for u in range(4)]
        assert max(norms) <= NORM_BOUND**2 and norms[2] == 0
        assert min(norms[0], norms[1], norms[3]) > NORM_BOUND**2 * (1 - 1e-3)
        expected = values[unit == 1] / size
        expected /= np.linalg.norm(expected)
        np.testing.assert_allclose(found[unit == 1] / NORM_BOUND, expected, atol=1e-3)


class Mean(Plain):
    """Adds what a document has above the mean of those before."""

    def contribution(self, words, counts, table, state, rng):
        self.n_ = getattr(self, "n_", 0) + 1
        return np.outer(counts, [1.0, self.n_]), None


class Lottery(Plain):
    """Draws from a generator that all documents share."""

    shared = np.random.default_rng(0)

    def contribution(self, words, counts, table, state, rng):
        return np.outer(counts, self.shared.random(2)), None


class Later(Plain):
    """Is of one document in the first round, and then of what the others left."""

    seen: dict = {}  # noqa: RUF012

    def contribution(self, words, counts, table, state, rng):
        self.seen[len(self.seen)] = counts.sum()
        return np.outer(counts, [1.0, 1.0 if state is None else len(self.seen)]), [1.0]


class Broken(Plain):
    """Returns the values of all words."""

    def contribution(self, words, counts, table, state, rng):
        return np.zeros(table.shape), None


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Mean, "Mean.contribution gives a document another contribution when"),
        (Lottery, "draw from rng"),
        (Later, "keep what a document needs in the next round in its state"),
        (Broken, "must return values of shape"),
    ],
)
def test_a_method_that_is_not_of_one_document_is_refused_before_the_charge(kind, said, X):
    with PrivacyAccountant(5.0, 1e-5) as ledger:
        with pytest.raises(ValueError, match=said):
            kind().fit(X)
        assert not ledger.ledger


def test_draws_and_states_are_a_documents_own_whatever_is_beside_it(X):
    class Drawn(Plain):
        def contribution(self, words, counts, table, state, rng):
            buffer = np.full(2, 0.0 if state is None else state.sum())
            values = np.outer(counts, rng.random(2) + buffer)
            return values, rng.random(3)

    model = Drawn(random_state=0)
    total, first = (model.audit_contributions(part, rounds_before=2).total for part in (X, X[:40]))
    step, known, *_ = model._audited_parts(X)
    only = np.r_[np.zeros(40), np.ones(20)].astype(np.uint8)
    query = TopicWordCounts(known.table)
    for round_ in range(2):
        step.collect(query, round_, only)
    np.testing.assert_array_equal(first + step.collect(query, 2, only).total, total)


def test_a_checkpoint_keeps_the_states(X):
    step = UnitEStep(X, None, contribution=Counted().contribution, n_topics=2, randomness=KEY)
    query = TopicWordCounts(np.ones((12, 2), np.float32))
    assert isinstance(step, EStep)
    step.collect(query, 0, (np.arange(60) % 2).astype(np.uint8))
    other = UnitEStep(X, None, contribution=Counted().contribution, n_topics=2, randomness=KEY)
    other.restore(copy.deepcopy(step.arrays()))
    np.testing.assert_array_equal(step.collect(query, 1, None).total, other.collect(query, 1, None).total)
    assert len(step.arrays()["documents"]) == (np.diff(X.indptr) > 0).sum()


class KEY:
    key = 7


def test_workers_do_not_get_the_seed(X):
    model = Counted(random_state=b"0123456789abcdef" * 2)
    make = model._make_e_step(model._plan(), KEY, model._read(X, None, model._plan(), None))
    owner = make.keywords["contribution"].__self__
    assert owner is not model and owner.random_state is None and owner.get_params()["n_components"] == 2


def test_noise_that_needs_another_norm_is_refused(X):
    class Laplace(Counted):
        def _plan(self):
            from skdplda.rounds import NoisePlan

            return NoisePlan.calibrate("laplace", self.epsilon, 0.0, self.max_iter)

    assert MECHANISMS["laplace"].norm == 1
    with pytest.raises(ValueError, match="L2 norm"):
        Laplace().fit(X)


def test_a_base_without_the_method_says_so(X):
    with pytest.raises(NotImplementedError, match="must have a method contribution"):
        Plain().fit(X)
    assert Plain().privacy_cost().status == "claimed"


def test_the_budget_is_asked_before_anything_else(untouchable):
    with PrivacyAccountant(0.1, 1e-7), pytest.raises(BudgetExceededError):
        Counted().fit(untouchable())
