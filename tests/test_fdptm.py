"""Fully private topics end to end: one budget, raw texts to a file, and nothing of a single document in it."""

import json
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline

from skdplda import (
    BudgetExceededError,
    PrivacyAccountant,
    PrivateCGSLDA,
    load_released,
    make_fdptm_pipeline,
    privacy_guarantee,
    release,
)
from skdplda.exceptions import EmptySelectionError, PrivacyLeakWarning
from skdplda.model_selection import search_cost
from skdplda.published import InherentPrivacyLDA
from skdplda.vocabulary import DPCountVectorizer, DPVocabularySelector

CANARY = "zzqxcanaryvv"
FRUIT, METAL = ("apple", "pear", "plum", "quince"), ("iron", "zinc", "lead", "copper")
N_DOCUMENTS = 1999


@pytest.fixture(scope="module")
def texts():
    """Two topics; one document has a word, and a pair of words, of its own."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice((FRUIT, METAL)[i % 2], 6)) for i in range(N_DOCUMENTS)]
    texts[77] += f" {CANARY} {CANARY} iron"
    return texts


def plain_pipeline():
    """Three steps of which scikit-learn's CountVectorizer is the first: FDPTM as the paper draws it."""
    return Pipeline(
        [
            ("counts", CountVectorizer(ngram_range=(1, 2))),
            ("words", DPVocabularySelector(epsilon=3.0, delta=5e-7)),
            ("topics", PrivateCGSLDA(2, epsilon=3.0, delta=5e-7, max_iter=5)),
        ]
    )


@pytest.fixture(scope="module")
def plain(texts):
    return plain_pipeline().fit(texts)


@pytest.fixture(scope="module")
def recipe(texts):
    return make_fdptm_pipeline(5.0, 1e-6, n_components=2, vectorizer=DPCountVectorizer(ngram_range=(1, 2))).fit(texts)


def written(model, folder):
    """Save a model and return the bytes of all files."""
    model.save(folder / "model.zip")
    return b"\n".join(path.read_bytes() for path in sorted(folder.iterdir()))


def numbers_in(value):
    """Yield every number of a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers_in(item)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


def test_the_word_of_one_document_is_in_a_pickled_pipeline_and_not_in_a_release(plain, texts, tmp_path):
    assert CANARY.encode() in pickle.dumps(plain)  # why release exists
    model = release(plain)
    for content in (written(model, tmp_path), pickle.dumps(model), str(model.privacy_guarantee_).encode()):
        for encoding in ("utf-8", "utf-16-le", "utf-32-le"):
            assert CANARY.encode(encoding) not in content
    content = (tmp_path / "model.zip").read_bytes()
    for word in model.vocabulary_:
        assert word.encode() in content  # no compression: the search would have found it
    card = json.loads((tmp_path / "model.card.json").read_text())
    secrets = {N_DOCUMENTS, len(plain[0].vocabulary_), sum(len(text.split()) for text in texts)}
    assert not secrets & set(numbers_in(card))


def test_a_release_has_these_values_and_no_others(plain):
    values = {"topic_word_", "vocabulary_", "privacy_guarantee_", "doc_topic_prior_", "n_features_in_"}  # of the fit
    values |= {"topic_sizes_", "topic_names_", "signal_to_noise_"}
    assert set(vars(release(plain))) == values | {"text_", "details_", "n_jobs", "tokenizer"}  # parameters


def test_the_recipe_holds_no_other_words_even_pickled(recipe, tmp_path):
    assert CANARY.encode() not in pickle.dumps(recipe)
    assert CANARY.encode() not in written(release(recipe), tmp_path)


def test_a_release_does_what_either_pipeline_does(plain, recipe, tmp_path):
    new = ["plum apple pear", "zinc copper and zinc", CANARY, ""]
    for pipeline in (plain, recipe):
        release(pipeline).save(tmp_path / "model.zip", overwrite=True)
        model = load_released(tmp_path / "model.zip")
        np.testing.assert_array_equal(model.transform(new), pipeline.transform(new))
        assert model.vocabulary_.tolist() == pipeline[:-1].get_feature_names_out().tolist()
        assert set(model.vocabulary_) >= {*FRUIT, *METAL}
        assert model.privacy_guarantee_ == privacy_guarantee(pipeline)
        assert model.score(new[:2]) == pytest.approx(pipeline.score(new[:2]))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-8), (3.0, 1e-5), (12.0, 1e-6)])
@pytest.mark.parametrize("share", [0.05, 0.2, 0.7])
def test_the_total_is_met_and_hardly_undercut(epsilon, delta, share):
    pipeline = make_fdptm_pipeline(epsilon, delta, vocabulary_share=share)
    total = privacy_guarantee(pipeline)
    assert total.delta == pytest.approx(delta) and total.delta <= delta
    assert epsilon * (1 - 2e-5) <= total.epsilon <= epsilon
    assert total.status == "proven"
    assert pipeline["words"].epsilon == share * epsilon
    basic = (1 - share) * epsilon
    assert pipeline["topics"].epsilon > basic  # more than Theorem 4.1 leaves
    unspent = clone(pipeline).set_params(topics__epsilon=pipeline["topics"].epsilon * 1.001)
    assert privacy_guarantee(unspent).epsilon > epsilon


@pytest.mark.parametrize(
    ("mechanism", "noise"),
    [
        ("weighted_gaussian", "gaussian"),
        ("policy_laplace", "gaussian"),
        ("item_frequency", "laplace"),
        ("sips", "laplace"),
        ("truncated_geometric", "laplace"),
    ],
)
def test_every_mechanism_keeps_the_total(mechanism, noise):
    vectorizer = DPCountVectorizer(method=mechanism, max_words_per_unit=20)
    model = PrivateCGSLDA(7, mechanism=noise, max_iter=4)
    pipeline = make_fdptm_pipeline(2.0, 1e-6, vectorizer=vectorizer, model=model)
    total = privacy_guarantee(pipeline)
    assert 2.0 * (1 - 2e-3) <= total.epsilon <= 2.0  # sums that are accounted on a grid have small steps
    assert total.delta <= 1e-6
    assert pipeline["topics"].get_params() == {
        **model.get_params(),
        "epsilon": pipeline["topics"].epsilon,
        "delta": 5e-7,
    }
    assert vectorizer.mechanism == pipeline["words"].mechanism
    assert vectorizer.epsilon == DPCountVectorizer().epsilon  # what was passed is not changed


def test_the_budget_is_what_the_ledger_sees(texts):
    pipeline = make_fdptm_pipeline(5.0, 1e-6, n_components=2, model=PrivateCGSLDA(max_iter=3))
    with PrivacyAccountant(5.0, 1e-6) as accountant:
        pipeline.fit(texts)
    assert len(accountant.ledger) == 2
    assert accountant.total.epsilon == privacy_guarantee(pipeline).epsilon <= 5.0


def test_a_pipeline_for_users_that_gets_no_groups_warns():
    """A plain one, as in cross-validation without metadata routing, which splits by groups and passes none on."""
    with sklearn.config_context(enable_metadata_routing=True):
        steps = [(name, step.set_fit_request(groups=True)) for name, step in make_fdptm_pipeline(8.0, 1e-6).steps]
    pipeline = clone(Pipeline(steps)).set_params(topics__n_components=2)
    with pytest.warns(PrivacyLeakWarning, match="was to get groups, and fit got none") as record:
        pipeline.fit(["pear plum", "zinc iron"] * 300)
    assert {str(warning.message).split()[0] for warning in record} >= {"DPCountVectorizer", "VIPSLDA"}
    assert privacy_guarantee(pipeline).unit == "document"


def test_users(texts):
    users = np.arange(len(texts)) // 2
    pipeline = make_fdptm_pipeline(8.0, 1e-6, n_components=2, groups=True)
    before = privacy_guarantee(pipeline, groups=True)
    assert before.unit == "user"
    pipeline.fit(texts, groups=users)
    assert privacy_guarantee(pipeline) == before
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_fdptm_pipeline(8.0, 1e-6, n_components=2, groups=True).fit(texts, groups=users)
    assert privacy_guarantee(routed).unit == "user"


@pytest.mark.parametrize("epsilon", [20.0, 60.0])
def test_a_total_beyond_the_least_noise_is_not_spent(epsilon):
    """The model's noise has a floor: where words and topics cost less than the total, less is what they cost."""
    pipeline = make_fdptm_pipeline(epsilon)
    assert pipeline["words"].epsilon < privacy_guarantee(pipeline).epsilon <= epsilon


def test_without_noise():
    pipeline = make_fdptm_pipeline(np.inf, 1e-6, n_components=2).fit(["pear plum", "zinc iron"] * 20)
    assert release(pipeline, allow_unproven=True).vocabulary_.tolist() == ["iron", "pear", "plum", "zinc"]


def test_nothing_selected_is_an_error_that_says_what_would_be(texts):
    with pytest.raises(EmptySelectionError, match="epsilon"):
        make_fdptm_pipeline(1.0, 1e-6).fit(["apple", "plum", "pear"])
    with warnings.catch_warnings(), pytest.raises(ValueError, match="0 feature"):
        warnings.simplefilter("ignore", UserWarning)  # that nothing is selected
        plain_pipeline().fit(["apple", "plum", "pear"])


def test_a_cap_on_words_costs_nothing_and_follows_from_public_numbers(texts):
    plain = make_fdptm_pipeline(5.0, 1e-6, n_components=2)
    auto = make_fdptm_pipeline(5.0, 1e-6, n_components=2, max_words="auto")
    assert plain["words"].max_words is None
    assert auto["words"].max_words == math.ceil(250 * auto["topics"].epsilon) == 1140
    assert privacy_guarantee(auto) == privacy_guarantee(plain)
    assert make_fdptm_pipeline(math.inf, max_words="auto")["words"].max_words is None
    capped = make_fdptm_pipeline(5.0, 1e-6, n_components=2, max_words=5).fit(texts)
    assert len(capped["words"].vocabulary_) == 5 and capped["topics"].components_.shape == (2, 5)
    kept = DPCountVectorizer(max_words=7)
    assert make_fdptm_pipeline(5.0, 1e-6, vectorizer=kept)["words"].max_words == 7


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"epsilon": 0}, "epsilon must be > 0"),
        ({"delta": 1.5}, "delta must be"),
        ({"delta": 0}, "'delta' parameter of DPCountVectorizer must be"),
        ({"vocabulary_share": 0}, "vocabulary_share must be a number above 0 and below 1; got 0"),
        ({"vocabulary_share": 1.0}, "vocabulary_share must be"),
        ({"vocabulary_share": "half"}, "vocabulary_share must be"),
        ({"max_words": 0}, 'max_words must be an integer from 1, "auto" or None; got 0'),
        ({"max_words": "many"}, "max_words must be"),
        ({"model": InherentPrivacyLDA()}, "epsilon"),
    ],
)
def test_bad_parameters(options, match):
    with pytest.raises(ValueError, match=match):
        make_fdptm_pipeline(**options)


# --- what remains of a budget --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["auto", "basic"])
def test_the_remainder_of_a_ledger_is_spent_to_the_last(rule, texts):
    ledger = PrivacyAccountant(6.0, 1e-5, rule=rule, reserve=2e-6)
    ledger.spend(PrivateCGSLDA(epsilon=3.0, delta=1e-6).privacy_cost(), label="before")
    with ledger:
        pipeline = make_fdptm_pipeline("remaining", 1e-6, n_components=2).fit(texts)
    assert len(ledger.ledger) == 3  # words and topics were charged and not refused
    total = privacy_guarantee(pipeline)
    assert 2.0 < total.epsilon < 6.0
    larger = make_fdptm_pipeline(total.epsilon * 1.001, 1e-6)
    again = PrivacyAccountant(6.0, 1e-5, rule=rule, reserve=2e-6)
    again.spend(ledger.ledger[0].guarantee)
    with pytest.raises(BudgetExceededError):
        again.check(*(step.privacy_cost() for _, step in larger.steps))
    assert len(again.ledger) == 1


def test_a_new_ledger_is_spent_whole():
    with PrivacyAccountant(2.0, 1e-6):
        guarantee = privacy_guarantee(make_fdptm_pipeline("remaining"))  # delta is at most that of the ledger
    assert 2.0 * (1 - 3e-5) < guarantee.epsilon <= 2.0 and guarantee.delta == 1e-6


@pytest.mark.parametrize("rule", ["basic", "gaussian"])
def test_less_delta_is_taken_where_the_ledger_has_less(rule):
    with PrivacyAccountant(2.0, 1e-5, rule=rule, reserve=2e-6) as ledger:
        ledger.spend(PrivateCGSLDA(epsilon=0.5, delta=1e-6).privacy_cost())
        pipeline = make_fdptm_pipeline("remaining", 1e-5, n_components=2)
        guarantee = privacy_guarantee(pipeline)
        assert guarantee.delta in (1e-5, 5e-6, 2.5e-6) and guarantee.epsilon > 1
        for step in pipeline:
            ledger.spend(step.privacy_cost())  # and is not refused
    assert len(ledger.ledger) == 3


def test_a_remainder_needs_a_ledger():
    with pytest.raises(ValueError, match="no ledger is open"):
        make_fdptm_pipeline("remaining")
    with PrivacyAccountant(np.inf), pytest.raises(ValueError, match="has no limit"):
        make_fdptm_pipeline("remaining")
    with pytest.raises(ValueError, match="epsilon must be a number or 'remaining'; got 'rest'"):
        make_fdptm_pipeline("rest")


# --- from a data frame to a colleague ------------------------------------------------------------------------------


def test_a_data_frame_becomes_a_file_with_which_a_colleague_classifies(tmp_path, texts):
    notes = pd.DataFrame({"ward": np.arange(N_DOCUMENTS) % 2, "note": [f"The {text} and 12" for text in texts]})
    pipeline = make_fdptm_pipeline(8.0, 1e-6, n_components=2).fit(notes[["note"]])
    release(pipeline).save(tmp_path / "topics.zip")

    topics = load_released(tmp_path / "topics.zip")  # the colleague has the file, and notes of her own
    assert {word for word in topics.vocabulary_} == {*FRUIT, *METAL}
    own = notes.head(200)
    classifier = make_pipeline(topics, LogisticRegression())
    search = RandomizedSearchCV(classifier, {"logisticregression__C": [0.1, 1.0]}, n_iter=2, cv=2, random_state=0)
    assert search.fit(own["note"], own["ward"]).best_score_ > 0.9
    columns = ColumnTransformer([("topics", topics, "note"), ("ward", "passthrough", ["ward"])])
    assert columns.fit_transform(own).shape == (200, 3)
    union = FeatureUnion([("topics", topics), ("words", topics.make_vectorizer())])
    assert union.fit_transform(own["note"]).shape == (200, 2 + 8)


def test_a_randomized_search_over_the_whole_pipeline_and_its_price(texts):
    pipeline = make_fdptm_pipeline(8.0, 1e-6, model=PrivateCGSLDA(2, max_iter=2))
    search = RandomizedSearchCV(pipeline, {"topics__n_components": [2, 3]}, n_iter=2, cv=2, random_state=0)
    assert search_cost(search).epsilon > 8.0
    assert search.fit(pd.DataFrame({"note": texts})).best_estimator_.transform(texts[:3]).shape[0] == 3
