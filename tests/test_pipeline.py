"""A pipeline is given users once: every private step gets them, and what is not one set of users is never paid for."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import Pipeline

from skdplda import (
    HDPLDA,
    VIPSLDA,
    DPCountVectorizer,
    DPVocabularySelector,
    EmbeddingTopics,
    IncompatibleGuaranteeError,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateCGSLDA,
    make_fdptm_pipeline,
    make_insights_pipeline,
    privacy_guarantee,
    release,
)
from skdplda.model_selection import PrivateSearchCV, search_cost
from skdplda.privacy import pure_event
from skdplda.releases import PrivatePipeline
from skdplda.semantics import WordVectorEmbedder

WORDS = [["apple", "pear", "plum"], ["iron", "zinc", "lead"]]
N = 1200
USERS = np.arange(N) // 3
TEXTS = [" ".join(WORDS[user // 2 % 2]) for user in USERS]
OTHERS = np.arange(N)
EMBEDDER = WordVectorEmbedder({word: [float(k == 0), float(k == 1)] for k in (0, 1) for word in WORDS[k]})
BOTH = pytest.mark.parametrize("recipe", ["words", "insights"])


def make(recipe, groups=True):
    """Return an unfitted pipeline of a recipe, and the names of its steps."""
    if recipe == "words":
        model = PrivateCGSLDA(2, max_iter=2)
        return make_fdptm_pipeline(20.0, 1e-4, model=model, groups=groups), ("words", "topics")
    model = EmbeddingTopics(2, max_iter=2)
    pipeline = make_insights_pipeline(20.0, 1e-4, embedder=EMBEDDER, public_vocabulary=None, model=model, groups=groups)
    return pipeline, ("texts", "topics")


def check_users(pipeline):
    """Check that each private step was fitted for users."""
    guarantee = privacy_guarantee(pipeline)
    assert (guarantee.unit, guarantee.status) == ("user", "proven")
    assert guarantee.epsilon <= 20 and guarantee.delta <= 1e-4
    assert all(step.privacy_guarantee_.unit == "user" for _, step in pipeline.steps)


@BOTH
@pytest.mark.parametrize("groups", [True, False])
@pytest.mark.parametrize("routing", [True, False])
def test_users_are_given_once(recipe, groups, routing):
    with sklearn.config_context(enable_metadata_routing=routing), PrivacyAccountant(20.0, 1e-4, unit="user") as ledger:
        pipeline = make(recipe, groups)[0]
        planned = privacy_guarantee(pipeline, groups=True)
        assert pipeline.fit(TEXTS, groups=USERS) is pipeline
    check_users(pipeline)
    assert privacy_guarantee(pipeline) == planned
    assert [entry.guarantee.unit for entry in ledger.ledger] == ["user", "user"]
    with sklearn.config_context(enable_metadata_routing=routing):
        again = clone(pipeline)
        assert again.fit_transform(TEXTS, groups=USERS).shape == (N, 2)
    check_users(again)


def test_each_step_gets_the_very_users(monkeypatch):
    seen = []
    for kind, method in ((DPCountVectorizer, "fit_transform"), (PrivateCGSLDA, "fit")):
        whole = getattr(kind, method)

        def fit(self, X, y=None, groups=None, whole=whole):
            seen.append(groups)
            return whole(self, X, y, groups)

        monkeypatch.setattr(kind, method, fit)
    for users in (USERS.tolist(), pd.Series(USERS, index=np.arange(N)[::-1]), (user for user in USERS)):
        seen.clear()
        make("words")[0].fit(TEXTS, groups=users)
        assert len(seen) == 2
        for groups in seen:
            np.testing.assert_array_equal(groups, USERS)


WRONG = {
    "missing": ({}, "groups must be given"),
    "none": ({"groups": None}, "groups must be given"),
    "different": ({"{0}__groups": OTHERS, "{1}__groups": USERS}, "must be the same for all private steps; got diff"),
    "different from one step's": ({"groups": USERS, "{1}__groups": OTHERS}, "must be the same for all private steps"),
    "for the first": ({"{0}__groups": USERS}, r"leaves out \['topics'\]"),
    "for the last": ({"{1}__groups": USERS}, "leaves out"),
    "none for the last": ({"{0}__groups": USERS, "{1}__groups": None}, r"leaves out \['topics'\]"),
    "short": ({"groups": USERS[:-1]}, "one entry a document"),
    "short for the last": ({"{0}__groups": USERS, "{1}__groups": USERS[:-1]}, "one entry a document"),
    "of two axes": ({"groups": USERS[:, None]}, "one entry a document"),
    "one name": ({"groups": "ann"}, "one entry a document"),
    "with a gap": ({"groups": [None, *USERS[1:].tolist()]}, "missing entries"),
}


@BOTH
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_what_is_not_one_set_of_users_is_refused_before_the_first_charge(recipe, wrong, method):
    pipeline, names = make(recipe)
    options, said = WRONG[wrong]
    options = {key.format(*names): value for key, value in options.items()}
    with PrivacyAccountant(100.0, 1e-2, unit="user") as ledger, pytest.raises(ValueError, match=said):
        getattr(pipeline, method)(TEXTS, **options)
    assert not ledger.ledger
    assert not hasattr(pipeline[-1], "privacy_guarantee_")
    if wrong in ("missing", "none"):
        with sklearn.config_context(enable_metadata_routing=True), pytest.raises(ValueError, match=said):
            pipeline.fit(TEXTS)


@BOTH
def test_equal_groups_by_step_are_taken(recipe):
    pipeline, names = make(recipe)
    options = {f"{names[0]}__groups": USERS, f"{names[1]}__groups": USERS.tolist()}
    check_users(pipeline.fit(TEXTS, **options))
    check_users(clone(pipeline).fit(TEXTS, groups=pd.Series(USERS), **options))


def test_a_text_that_only_its_reader_counts_is_checked_by_the_first_step():
    """An iterable without a length: the first private step knows it before it charges."""
    pipeline = make("words")[0]
    with PrivacyAccountant(100.0, 1e-2, unit="user") as ledger, pytest.raises(ValueError, match="one entry a document"):
        pipeline.fit(lambda: iter(TEXTS), groups=USERS[:-1])
    assert not ledger.ledger
    check_users(pipeline.fit(lambda: iter(TEXTS), groups=USERS))


def test_a_pipeline_for_users_stays_one():
    pipeline = make("words")[0]
    for same in (clone(pipeline), pickle.loads(pickle.dumps(pipeline)), pipeline.set_params(topics__n_components=3)):
        assert type(same) is PrivatePipeline and same.groups
        assert privacy_guarantee(same).unit == "user"  # without being asked for: no other fit is possible
    assert pipeline[:1].groups and pipeline[-1] is pipeline["topics"] is pipeline.named_steps["topics"]
    with pytest.raises(ValueError, match="groups must be given"):
        pipeline[:-1].fit(TEXTS)
    assert pipeline[:-1].fit(TEXTS, groups=USERS).transform(TEXTS).shape == (N, 6)
    fitted = clone(pipeline).set_output(transform="pandas").fit(TEXTS, groups=USERS)
    assert isinstance(fitted.transform(TEXTS[:3]), pd.DataFrame)
    check_users(pickle.loads(pickle.dumps(fitted)))
    assert fitted.set_params(topics=VIPSLDA(2, max_iter=2), groups=False).groups is False
    assert "groups=True" in repr(pipeline)
    with PrivacyAccountant(2.0, 1e-5, unit="user"):
        assert privacy_guarantee(make_fdptm_pipeline("remaining", 1e-5, groups=True)).unit == "user"


def test_methods_are_those_of_the_last_step():
    counts = PrivatePipeline([("counts", CountVectorizer())])
    assert hasattr(counts, "fit_transform") and not hasattr(counts, "fit_predict")

    class Judge(BaseEstimator):
        def fit(self, X, y=None):
            return self

        def fit_predict(self, X, y=None):
            return np.zeros(X.shape[0])

    judged = PrivatePipeline([("counts", CountVectorizer()), ("judge", Judge())])
    assert not hasattr(judged, "fit_transform")
    assert judged.fit_predict(TEXTS).shape == (N,)


@pytest.mark.parametrize("kind", [Pipeline, PrivatePipeline])
@pytest.mark.parametrize("routing", [True, False])
def test_nested_steps_get_the_same_users(kind, routing):
    words = kind([("counts", CountVectorizer()), ("choice", DPVocabularySelector(5.0, delta=1e-5))])
    pipeline = PrivatePipeline([("words", words), ("topics", PrivateCGSLDA(2, max_iter=2))])
    with sklearn.config_context(enable_metadata_routing=routing):
        with PrivacyAccountant(100.0, 1e-2, unit="user") as ledger:
            with pytest.raises(ValueError, match="leaves out"):
                pipeline.fit(TEXTS, words__choice__groups=USERS)
            if routing and kind is Pipeline:  # which would ask its steps, after others were paid for
                with pytest.raises(ValueError, match=r"steps \['words'\] must each be a PrivatePipeline"):
                    pipeline.fit(TEXTS, groups=USERS)
        assert not ledger.ledger
        if routing and kind is Pipeline:
            return
        pipeline.fit(TEXTS, groups=USERS)
        assert privacy_guarantee(pipeline).unit == "user"
        pipeline.fit(TEXTS, words__groups=USERS, topics__groups=USERS)


def test_cross_validation_and_searches_pass_users_on_or_spend_nothing():
    pipeline = make("words")[0]
    with PrivacyAccountant(200.0, 1e-2, unit="user") as ledger:
        with pytest.raises(ValueError, match=r"groups must be given[\s\S]*enable_metadata_routing"):
            cross_validate(pipeline, TEXTS, groups=USERS, cv=GroupKFold(2), error_score="raise")
        assert not ledger.ledger
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_validate(pipeline, TEXTS, params={"groups": USERS}, cv=GroupKFold(2), return_estimator=True)
        grid = {"topics": [PrivateCGSLDA(2, max_iter=2), VIPSLDA(2, max_iter=2)]}  # which request nothing
        grid_search = GridSearchCV(pipeline, grid, cv=GroupKFold(2)).fit(TEXTS, groups=USERS)
    for fitted in (*found["estimator"], grid_search.best_estimator_):
        assert all(step.privacy_guarantee_.unit == "user" for _, step in fitted.steps)
    assert search_cost(GridSearchCV(pipeline, {"topics__n_components": [2]}, cv=GroupKFold(2))).unit == "user"


class Dear(TransformerMixin, BaseEstimator):
    """A private step to which users cost twice as much as documents."""

    def fit(self, X, y=None, groups=None):
        self.privacy_guarantee_ = self.privacy_cost(groups=groups is not None)
        return self

    def transform(self, X):
        return X

    def privacy_cost(self, *, groups=False):
        epsilon, unit = (2.0, "user") if groups else (1.0, "document")
        return PrivacyGuarantee(epsilon=epsilon, unit=unit, status="proven", event=pure_event(epsilon))


def test_users_that_cost_more_than_was_planned_are_refused():
    counts, topics = CountVectorizer(vocabulary=[*WORDS[0], *WORDS[1]]), PrivateCGSLDA(2, max_iter=2)
    steps = [("counts", counts), ("dear", Dear()), ("topics", topics)]
    with (
        PrivacyAccountant(100.0, 1e-2, unit="user") as ledger,
        pytest.raises(ValueError, match=r"'dear' .Dear. costs users eps"),
    ):
        PrivatePipeline(steps).fit(TEXTS, groups=USERS)
    assert not ledger.ledger
    assert privacy_guarantee(PrivatePipeline(steps, groups=True).fit(TEXTS, groups=USERS)).unit == "user"


def test_a_step_that_knows_no_users_is_refused():
    steps = [("words", DPCountVectorizer(5.0)), ("topics", HDPLDA(2, max_iter=2))]
    with PrivacyAccountant(100.0, 1e-2, unit="user") as ledger:
        with pytest.raises(ValueError, match=r"'topics' .HDPLDA. takes none, and its .* the unit 'token'"):
            PrivatePipeline(steps).fit(TEXTS, groups=USERS)
        steps[1] = ("topics", sklearn.base.clone(Local()))
        with pytest.raises(IncompatibleGuaranteeError, match="'user' and 'document'"):
            PrivatePipeline(steps).fit(TEXTS, groups=USERS)
    assert not ledger.ledger


class Local(Dear):
    """A private step that takes groups and protects documents."""

    def privacy_cost(self, *, groups=False):
        return PrivacyGuarantee(epsilon=1.0, status="proven", event=pure_event(1.0))


# --- a plain pipeline of scikit-learn ------------------------------------------------------------------------------


def test_steps_of_a_plain_pipeline_with_different_users_have_no_statement():
    pipeline = Pipeline([("words", DPCountVectorizer(5.0)), ("topics", PrivateCGSLDA(2, max_iter=2))])
    pipeline.fit(TEXTS, words__groups=OTHERS, topics__groups=USERS)
    for ask in (privacy_guarantee, release):
        with pytest.raises(IncompatibleGuaranteeError, match="'words' and 'topics' were fitted with different groups"):
            ask(pipeline)
    pipeline["topics"].fit(pipeline["words"].transform(TEXTS), groups=OTHERS)  # paid for again, with one set of users
    told = privacy_guarantee(pipeline)
    assert told.unit == "user" and "the steps 'words' and 'topics' were given the same groups" in told.assumptions
    again = clone(pipeline).fit(TEXTS, words__groups=USERS, topics__groups=[f"u{user:04}" for user in USERS])
    assert privacy_guarantee(again).status == "proven"  # the same users, by other names in the same order


@pytest.mark.parametrize("first", [DPCountVectorizer(5.0), make("insights")[0][0]])
def test_which_users_a_step_was_given_is_not_in_it(first):
    """Equal pickles for other users, byte for byte but for noise: here the same fit is told of two sets of users."""
    fitted = clone(first).fit(TEXTS, groups=USERS)
    before = set(vars(fitted)), pickle.dumps(fitted)
    sklearn.base.clone(first).fit(TEXTS, groups=OTHERS)
    assert (set(vars(fitted)), pickle.dumps(fitted)) == before
    other = pickle.loads(before[1])
    model = PrivateCGSLDA(2, max_iter=2) if hasattr(first, "vocabulary_") else None
    if model is not None:
        model.fit(other.transform(TEXTS), groups=OTHERS)
        assert privacy_guarantee(Pipeline([("words", other), ("topics", model)])).unit == "user"  # an assumption


# --- a search over a pipeline --------------------------------------------------------------------------------------


def test_a_search_over_a_pipeline_for_users_needs_them_before_it_is_paid_for():
    search = PrivateSearchCV(make("words")[0], {"topics__n_components": [2]}, epsilon=20.0, delta=1e-4, mean_trials=2)
    with PrivacyAccountant(100.0, 1e-2, unit="user") as ledger:
        with pytest.raises(ValueError, match="groups must be given"):
            search.fit(TEXTS)
        assert not ledger.ledger
        assert search.fit(TEXTS, groups=USERS).privacy_guarantee_.unit == "user"
    assert len(ledger.ledger) == 1


def test_a_search_gives_users_to_steps_that_request_none():
    """With metadata routing, a step that asks for no groups was fitted for documents, and stated for users."""
    with sklearn.config_context(enable_metadata_routing=True):
        words = DPCountVectorizer(5.0).set_fit_request(groups=False)
        topics = PrivateCGSLDA(2, max_iter=2).set_fit_request(groups=True)
        steps, seen = Pipeline([("words", words), ("topics", topics)]), []
        search = PrivateSearchCV(steps, {"topics__n_components": [2]}, epsilon=20.0, delta=1e-4, mean_trials=2)
        whole = DPCountVectorizer.fit_transform

        def fit(self, X, y=None, groups=None):
            seen.append(groups)
            return whole(self, X, y, groups)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DPCountVectorizer, "fit_transform", fit)
            search.fit(TEXTS, groups=USERS)
    assert seen and all(groups is not None for groups in seen)
    assert search.privacy_guarantee_.unit == "user"


# --- from texts and users to a release, as the documentation says --------------------------------------------------


def test_from_texts_and_users_to_a_release(tmp_path):
    posts = pd.DataFrame({"text": [f"The {text}, 12 of them." for text in TEXTS], "author": [f"u{u}" for u in USERS]})
    posts.loc[7, "text"] += " my secret zzqxcanaryvv"
    with PrivacyAccountant(8.0, 1e-5, unit="user") as ledger:
        pipeline = make_fdptm_pipeline(8.0, 1e-5, n_components=2, groups=True)
        pipeline.fit(posts["text"], groups=posts["author"])
    told = privacy_guarantee(pipeline)
    assert ledger.total.epsilon == told.epsilon <= 8 and told.unit == "user" and told.status == "proven"
    model = release(pipeline)
    assert model.vocabulary_.tolist() == sorted([*WORDS[0], *WORDS[1]])
    model.save(tmp_path / "topics.zip")
    card = json.loads((tmp_path / "topics.card.json").read_text())
    assert "user" in json.dumps(card) and "canary" not in json.dumps(card)
    assert b"canary" not in (tmp_path / "topics.zip").read_bytes()
    np.testing.assert_array_equal(model.transform(["iron pear"]), pipeline.transform(["iron pear"]))


@pytest.mark.parametrize("groups", [None, USERS], ids=["documents", "users"])
@pytest.mark.parametrize(
    "name, value",
    [
        ("max_iter", -1),
        ("epsilon", 10**400),
        ("n_components", "3"),
        ("callback", 3),
        ("doc_topic_prior", [1.0, 2.0, 3.0]),
        ("checkpoint", "/nowhere/at/all"),
    ],
)
def test_what_a_later_step_refuses_is_refused_before_the_first_is_paid(name, value, groups):
    pipeline = make("words", groups is not None)[0].set_params(**{f"topics__{name}": value})
    unit = "document" if groups is None else "user"
    with PrivacyAccountant(50.0, 1e-3, unit=unit) as ledger, pytest.raises(ValueError, match=name):
        pipeline.fit(TEXTS, groups=groups)
    assert not ledger.ledger


def test_a_ledger_that_cannot_pay_all_steps_pays_none():
    def steps(**parameters):
        model = VIPSLDA(2, epsilon=5.0, max_iter=2, **parameters)
        return PrivatePipeline([("words", DPCountVectorizer(epsilon=2.0, delta=1e-6)), ("topics", model)])

    with PrivacyAccountant(3.0, 1e-4) as ledger, pytest.raises(ValueError, match="Nothing was spent"):
        steps().fit(TEXTS)
    assert not ledger.ledger
    with PrivacyAccountant(7.1, 1e-4, rule="basic") as ledger:
        steps().fit(TEXTS)
    assert len(ledger.ledger) == 2


def test_a_run_that_was_paid_is_not_asked_for_again(tmp_path):
    class Stop(Exception):
        pass

    def stop(report):
        raise Stop

    words = DPCountVectorizer(public_vocabulary=[*WORDS[0], *WORDS[1]])
    model = VIPSLDA(2, epsilon=5.0, max_iter=4, sampling_rate=0.5, checkpoint=tmp_path / "c", callback=stop)
    pipeline = PrivatePipeline([("words", words), ("topics", model)])
    with PrivacyAccountant(5.0, 1e-5, rule="basic") as ledger:
        with pytest.raises(Stop):
            pipeline.fit(TEXTS)
        assert len(ledger.ledger) >= 1
        spent = [entry.guarantee.epsilon for entry in ledger.ledger]
        pipeline.set_params(topics__callback=None).fit(TEXTS)
        assert [e.guarantee.epsilon for e in ledger.ledger if e.guarantee.epsilon] == [e for e in spent if e]
