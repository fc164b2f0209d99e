"""A secret seed is shown nowhere, and a fitted estimator's pickle has forgotten it."""

import pickle
from io import BytesIO

import joblib
import numpy as np
import pytest
from conftest import public_estimators, small
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skdplda import (
    VIPSLDA,
    DPCountVectorizer,
    DPVocabularySelector,
    LocalPrivateLDA,
    privacy_guarantee,
    release,
)
from skdplda.datasets import make_lda_corpus
from skdplda.local import LocalRandomizer, randomize_bits
from skdplda.privacy import PrivacyAccountant, discrete_laplace, rounded_gaussian

pytestmark = pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning", "ignore::UserWarning")

X = make_lda_corpus(60, 20, 3, mean_length=20, random_state=0).data
BYTES = b"a secret of more than sixteen bytes"
SEEDS = {"bytes": BYTES, "integer": int.from_bytes(BYTES, "little")}
SEEDED = [kind for kind in public_estimators() if "random_state" in small(kind).get_params(deep=False)]


def needles(seed):
    """Return what of a seed must not be in a text, or in bytes."""
    return ["a secret of more", repr(seed)[5:25], BYTES.hex()[:16]]


def assert_hidden(text, seed):
    text = text if isinstance(text, bytes) else text.encode()
    for needle in [*needles(seed), "a secret of more"]:
        assert needle.encode() not in text


@pytest.fixture(params=SEEDS)
def seed(request):
    return SEEDS[request.param]


def nests(estimator):
    return {
        "itself": estimator,
        "clone": clone(clone(estimator)),
        "pipeline": make_pipeline(DPVocabularySelector(), estimator),
        "search": GridSearchCV(make_pipeline(estimator), {}),
    }


@pytest.mark.parametrize("kind", SEEDED, ids=lambda kind: kind.__name__)
def test_no_text_and_no_page_shows_a_secret_seed(kind, seed):
    for estimator in nests(small(kind, random_state=seed)).values():
        for text in (repr(estimator), str(estimator), estimator._repr_html_(), f"{estimator.get_params()}"):
            assert_hidden(text, seed)


def test_the_seed_of_a_nested_randomizer_is_hidden_too(seed):
    model = LocalPrivateLDA(2, randomizer=LocalRandomizer(random_state=seed), max_iter=2)
    for text in (repr(model), model._repr_html_(), str(model.get_params())):
        assert_hidden(text, seed)
    model.fit(X)
    assert_hidden(pickle.dumps(model), seed)
    assert model.randomizer.random_state == seed  # of this object, whose parameters a fit does not change


@pytest.mark.parametrize("seed", [3, np.int64(5), 2**64])
def test_seeds_that_can_be_guessed_are_shown(seed):
    model = VIPSLDA(random_state=seed)
    assert repr(seed) in repr(model) and model.get_params()["random_state"] is seed


@pytest.mark.usefixtures("own_seeds")
def test_a_clone_and_a_worker_have_the_seed(seed):
    model = VIPSLDA(3, random_state=seed)
    expected = clone(model).fit(X).components_
    for other in (clone(clone(model)), pickle.loads(pickle.dumps(model)), pickle.loads(pickle.dumps(clone(model)))):
        assert other.random_state == seed and hash(other.random_state) == hash(seed)
        np.testing.assert_array_equal(other.fit(X).components_, expected)
    with joblib.parallel_config("loky"):
        (found,) = joblib.Parallel(n_jobs=2)([joblib.delayed(VIPSLDA.fit)(model, X)])
    np.testing.assert_array_equal(found.components_, expected)
    assert found.random_state is None  # what comes back is fitted


@pytest.mark.parametrize("kind", SEEDED, ids=lambda kind: kind.__name__)
def test_pickles_of_fitted_estimators_have_forgotten_secret_seeds(kind, seed):
    """`not_protected.rst` says that they hold released values only."""
    model = small(kind, random_state=seed)
    data = X
    if hasattr(model, "build_analyzer"):
        data = ["pear plum", "pear fig"] * 50
        model.set_params(epsilon=50.0)
    elif kind.__name__ == "EmbeddingTopics" or kind.__name__ == "LocalRandomizer":
        data = X.toarray()
    model.fit(data)
    file = BytesIO()
    joblib.dump(model, file)
    for content in (pickle.dumps(model), file.getvalue()):
        assert_hidden(content, seed)
        raw = seed if isinstance(seed, bytes) else BYTES[:16]
        assert raw[:16] not in content
    assert model.random_state == seed
    assert pickle.loads(pickle.dumps(model)).random_state is None


def test_a_pickled_fit_is_still_known_as_seeded(seed):
    model = pickle.loads(pickle.dumps(VIPSLDA(3, random_state=seed).fit(X)))
    assert any("seed" in assumption for assumption in model.privacy_guarantee_.assumptions)
    with pytest.raises(ValueError, match="random_state"):
        release(model)


def test_pickled_steps_of_one_seed_are_still_refused(seed):
    """Their noise may cancel out."""
    words = DPCountVectorizer(epsilon=50.0, random_state=seed).fit(["pear plum", "pear fig"] * 50)
    topics = VIPSLDA(2, random_state=seed).fit(words.transform(["pear plum", "pear fig"] * 50))
    for pipeline in (make_pipeline(words, topics), pickle.loads(pickle.dumps(make_pipeline(words, topics)))):
        with pytest.raises(ValueError, match="have the same random_state") as error:
            privacy_guarantee(pipeline)
        assert_hidden(str(error.value), seed)


@pytest.mark.parametrize("seed", [True, False, np.True_])
@pytest.mark.parametrize("kind", SEEDED, ids=lambda kind: kind.__name__)
def test_a_bool_is_no_seed(kind, seed, untouchable):
    estimator = small(kind, random_state=seed)
    with PrivacyAccountant(np.inf, 0.5) as ledger, pytest.raises(ValueError, match="random_state"):
        estimator.fit(untouchable())
    assert not ledger.ledger


@pytest.mark.parametrize("seed", [True, False, np.True_])
def test_a_bool_is_no_seed_of_samplers_either(seed):
    channel = LocalRandomizer().channel(20)
    for draw in (
        lambda: discrete_laplace(2.0, 3, seed),
        lambda: rounded_gaussian(2.0, 3, seed),
        lambda: randomize_bits(X, channel, seed),
    ):
        with pytest.raises(TypeError, match="random_state must be"):
            draw()


@pytest.mark.parametrize("kind", SEEDED, ids=lambda kind: kind.__name__)
def test_a_secret_that_was_given_as_text_is_refused_and_not_shown(kind):
    estimator = clone(small(kind).set_params(random_state=BYTES.hex()))
    assert_hidden(repr(estimator), BYTES)
    with pytest.raises(ValueError, match=r"random_state.*<secret seed>") as caught:
        estimator.fit(X)
    assert_hidden(str(caught.value), BYTES)
