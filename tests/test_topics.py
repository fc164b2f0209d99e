"""What models tell of their topics: words, noise, sizes, names, trees and merged topics, from released values."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import jensenshannon
from sklearn.exceptions import NotFittedError

from skdplda import (
    HDPLDA,
    PCTD,
    VIPSLDA,
    NoisyTopicsWarning,
    PrivacyGuarantee,
    PrivateCGSLDA,
    PublicPrior,
    ReleasedTopicModel,
    release,
)
from skdplda.datasets import make_lda_corpus
from skdplda.metrics import topic_distances, topic_map, topic_relevance
from skdplda.priors import WordPrior

TOPICS = np.array([[0.5, 0.3, 0.2, 0.0], [0.4, 0.35, 0.25, 0.0], [0.3, 0.0, 0.0, 0.7]])
WORDS = ["the", "pear", "plum", "zinc"]
SIGNAL = [[0.0, 3.0, 2.0, -5.0], [0.0, 0.3, -0.2, 0.1], [1.0, -4.0, -3.0, 9.0]]


@pytest.fixture
def model():
    return ReleasedTopicModel(
        TOPICS,
        WORDS,
        privacy_guarantee=PrivacyGuarantee(epsilon=1.0),
        doc_topic_prior=[0.1, 0.2, 0.3],
        topic_sizes=[0.5, 0.25, 0.25],
        signal_to_noise=SIGNAL,
    )


@pytest.fixture(scope="module")
def corpus():
    return make_lda_corpus(1500, 40, 3, mean_length=30, random_state=0)


# --- measures -----------------------------------------------------------------------------------------------


def test_distances_are_those_of_scipy_in_bits():
    distances = topic_distances(TOPICS)
    for a, b in np.ndindex(3, 3):
        np.testing.assert_allclose(distances[a, b], jensenshannon(TOPICS[a], TOPICS[b], base=2), atol=1e-9)
    assert topic_distances(np.eye(3)).max() == 1.0 and not topic_distances(np.ones((2, 4)) / 4).any()


def test_a_map_keeps_distances_that_fit_into_a_plane():
    places = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    distances = np.linalg.norm(places[:, None] - places, axis=2)
    found = topic_map(distances)
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found, axis=2), distances, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-12)
    assert not topic_map([[0.0]]).any()


def test_relevance_is_equation_1_of_its_paper():
    sizes, weight = np.array([2.0, 1.0, 1.0]), 0.3
    overall = sizes / sizes.sum() @ TOPICS
    with np.errstate(divide="ignore"):
        expected = weight * np.log(TOPICS) + (1 - weight) * np.log(TOPICS / overall)
    found = topic_relevance(TOPICS, weight, sizes)
    np.testing.assert_allclose(found[TOPICS > 0], expected[TOPICS > 0])
    assert np.isfinite(found).all() and found[0, 3] < found[0, :3].min()
    with pytest.raises(ValueError, match="relevance must be from 0"):
        topic_relevance(TOPICS, 1.5)


# --- words --------------------------------------------------------------------------------------------------


def test_words_are_ordered_by_relevance_or_by_probability():
    given = {"privacy_guarantee": PrivacyGuarantee(epsilon=1.0), "topic_sizes": [0.5, 0.25, 0.25]}
    model = ReleasedTopicModel(TOPICS, WORDS, **given)
    by_probability = model.top_words(4, relevance=1).to_numpy()
    np.testing.assert_array_equal(by_probability, np.array(WORDS)[np.argsort(-TOPICS, axis=1, kind="stable")])
    scores = topic_relevance(TOPICS, 0.8, [0.5, 0.25, 0.25])
    np.testing.assert_array_equal(model.top_words(4), np.array(WORDS)[np.argsort(-scores, axis=1, kind="stable")])
    assert model.top_words(1, relevance=0)[0].tolist() == ["pear", "plum", "zinc"]


def test_noise_is_put_into_parentheses_and_comes_last(model):
    """The threshold for four words is the root of 2 log 4, 1.67."""
    shown = model.top_words(4, relevance=1, mark_noise=True).to_numpy().tolist()
    assert shown[0] == ["pear", "plum", "(the)", "(zinc)"]
    assert shown[1] == ["(the)", "(pear)", "(plum)", "(zinc)"]
    assert shown[2] == ["zinc", "(the)", "(pear)", "(plum)"]
    info = model.topic_info()
    np.testing.assert_allclose(info["signal_to_noise"], np.sqrt([38 / 4 - 1, 0, 107 / 4 - 1]))
    assert info["noise"].tolist() == [False, True, False] and info["size"].tolist() == [0.5, 0.25, 0.25]
    model = ReleasedTopicModel(TOPICS, WORDS, privacy_guarantee=PrivacyGuarantee(epsilon=1.0))
    assert model.topic_info()[["size", "signal_to_noise", "noise"]].isna().all(axis=None)
    assert model.top_words(4, mark_noise=True).equals(model.top_words(4))


def test_a_topic_of_few_clear_words_among_many_is_no_noise():
    topics = np.full((2, 5000), 1 / 5000)
    topics[0, :10] = 0.05
    signal = np.zeros((2, 5000))
    signal[0, :10] = 9.0  # root mean square 0.4
    model = ReleasedTopicModel(
        topics / topics.sum(axis=1, keepdims=True),
        privacy_guarantee=PrivacyGuarantee(epsilon=1.0),
        signal_to_noise=signal,
    )
    assert model.topic_info()["noise"].tolist() == [False, True]


def test_topics_of_a_word(model):
    found = model.find_topics("the")
    assert found.index.tolist() == [0, 1, 2]
    np.testing.assert_allclose(found["share"], np.array([0.25, 0.1, 0.075]) / 0.425)
    assert found["probability"].tolist() == [0.5, 0.4, 0.3]
    assert model.find_topics("zinc")["rank"][2] == 1 and model.find_topics("zinc")["noise"].tolist() == [
        False,
        True,
        True,
    ]
    with pytest.raises(ValueError, match=r"word must be one of the 4 words.*Near: 'plum'"):
        model.find_topics("plu")


def test_topics_of_a_word_that_public_vectors_know(model, corpus):
    prior = PublicPrior.from_vectors((["the", "pear", "zinc", "iron"], np.array([[1, 0], [0, 1], [-1, 0], [-2, 0.1]])))
    found = model.find_topics("Iron", word_vectors=prior)
    assert set(found["word"]) == {"zinc"}
    pd.testing.assert_frame_equal(found, model.find_topics("zinc"))
    assert set(model.find_topics("zinc", word_vectors=prior)["word"]) == {"zinc"}  # its own
    for word in ("gold", 3):
        with pytest.raises(ValueError, match=r"word must be one of the 4 words.*word_vectors=PublicPrior"):
            model.find_topics(word, word_vectors=prior)
    vectors = {word: [0.0, 1.0] for word in corpus.feature_names}
    vectors |= {corpus.feature_names[7]: [1.0, 0.0], "new": [2.0, 0.1]}
    data = pd.DataFrame(corpus.data.toarray(), columns=corpus.feature_names)
    fitted = VIPSLDA(2, epsilon=5.0, prior=PublicPrior.from_vectors(vectors)).fit(data)
    assert set(fitted.find_topics("new")["word"]) == {corpus.feature_names[7]}


# --- topics -------------------------------------------------------------------------------------------------


def test_the_tree_joins_the_nearest_first(model):
    tree = model.topic_hierarchy()
    assert tree.shape == (2, 4) and set(tree[0, :2]) == {0, 1}
    np.testing.assert_allclose(tree[0, 2], topic_distances(TOPICS)[0, 1])
    one = ReleasedTopicModel(TOPICS[:1], WORDS, privacy_guarantee=PrivacyGuarantee(epsilon=1.0))
    assert one.topic_hierarchy().shape == (0, 4)


def test_topics_have_the_names_that_they_are_given(model):
    assert model.get_feature_names_out().tolist() == ["topic_0", "topic_1", "topic_2"]
    first, model = model, model.rename_topics({0: "fruit", "topic_2": "metal"})
    assert first.get_feature_names_out().tolist() == ["topic_0", "topic_1", "topic_2"]
    assert model.top_words(1).index.tolist() == ["fruit", "topic_1", "metal"]
    model.set_output(transform="pandas")
    assert model.transform([[1, 0, 0, 0]]).columns.tolist() == ["fruit", "topic_1", "metal"]
    for names, match in (({9: "x"}, "got 9"), ({0: "metal"}, "must differ"), (["a"], "3 str"), ({0: ""}, "3 str")):
        with pytest.raises(ValueError, match=match):
            model.rename_topics(names)
    assert model.get_feature_names_out()[0] == "fruit"


def test_merged_topics_are_means_by_size(model):
    merged = model.rename_topics({0: "fruit"}).merge_topics([["fruit", 1]])
    np.testing.assert_allclose(merged.topic_word_, [(2 * TOPICS[0] + TOPICS[1]) / 3, TOPICS[2]])
    np.testing.assert_allclose(merged.doc_topic_prior_, [0.3, 0.3])
    assert merged.topic_info()["size"].tolist() == pytest.approx([0.75, 0.25])
    assert merged.get_feature_names_out().tolist() == ["fruit", "topic_2"]
    np.testing.assert_allclose(merged.signal_to_noise_[0], (np.array(SIGNAL[0]) + SIGNAL[1]) / np.sqrt(2), rtol=1e-6)
    assert len(model.topic_word_) == 3 and merged.privacy_guarantee_ == model.privacy_guarantee_
    wrong = ([[0, 1], [1, 2]], "once at most"), ([[0, 0]], "once at most"), ([[0, 7]], "got 7"), ([0, 1], "such as")
    for groups, match in wrong:
        with pytest.raises(ValueError, match=match):
            model.merge_topics(groups)


def test_topics_are_reduced_to_so_many_by_their_distances(model):
    reduced = model.reduce_topics(2)
    np.testing.assert_array_equal(reduced.topic_word_, model.merge_topics([[0, 1]]).topic_word_)
    assert reduced.get_feature_names_out().tolist() == ["topic_0", "topic_2"] and len(model.topic_word_) == 3
    np.testing.assert_allclose(model.reduce_topics(1).topic_word_, [np.average(TOPICS, axis=0, weights=[2, 1, 1])])
    np.testing.assert_array_equal(model.reduce_topics(3).topic_word_, TOPICS)
    for n_topics in (0, 4, 1.5, True, None):
        with pytest.raises(ValueError, match="n_topics must be an integer from 1 to 3"):
            model.reduce_topics(n_topics)


def test_a_table_of_documents_is_for_who_may_see_them(model):
    X = pd.DataFrame([[0, 0, 0, 9], [9, 9, 0, 0]], columns=WORDS, index=["a", "b"])
    found, shares = model.document_info(X), model.transform(X)
    assert found.index.tolist() == ["a", "b"] and found.columns.tolist() == ["topic", "name", "probability", "noise"]
    np.testing.assert_array_equal(found["topic"], shares.argmax(axis=1))
    np.testing.assert_array_equal(found["probability"], shares.max(axis=1))
    assert found["name"].tolist() == [f"topic_{k}" for k in found["topic"]]
    assert found["noise"].tolist() == model.topic_info()["noise"][found["topic"]].tolist()
    assert model.document_info(X.to_numpy()).index.tolist() == [0, 1] and not hasattr(model, "document_topic_")


def test_merged_topics_of_a_fitted_model_work_like_others(corpus):
    model = PrivateCGSLDA(3, epsilon=5.0, doc_topic_prior=[0.1, 0.2, 0.3]).fit(corpus.data)
    merged = model.merge_topics([[2, 0]])
    assert merged.components_.shape == (2, 40) and model.components_.shape == (3, 40)
    np.testing.assert_allclose(merged.components_[0], model.components_[0] + model.components_[2])
    parts, whole = model.transform(corpus.data), merged.transform(corpus.data)
    assert whole.shape == (1500, 2) and np.abs(parts[:, 1] - whole[:, 1]).mean() < 0.1
    assert np.isfinite(merged.perplexity(corpus.data))
    np.testing.assert_allclose(merged.to_gensim().alpha, [0.4, 0.2], rtol=1e-6)
    released = release(merged, feature_names=corpus.feature_names)
    np.testing.assert_array_equal(released.transform(corpus.data), whole)
    pd.testing.assert_frame_equal(released.topic_info(5), merged.topic_info(5, corpus.feature_names))
    assert merged.fit(corpus.data).topic_word_.shape == (3, 40) and merged.transform(corpus.data).shape == (1500, 3)
    with pytest.raises(NotFittedError):
        PrivateCGSLDA(3).topic_info()


# --- the warning --------------------------------------------------------------------------------------------


def test_a_fit_whose_topics_are_noise_warns_and_says_what_helps(corpus):
    with pytest.warns(NoisyTopicsWarning, match=r"3 of 3 topics hold more noise than topic") as caught:
        model = VIPSLDA(3, epsilon=0.01, delta=1e-6).fit(corpus.data[:100])
    assert [warning.filename for warning in caught] == [__file__]
    message = str(caught[0].message)
    for help_ in ("documents", "fewer topics than 3", "fewer words than 40", "public prior", "epsilon than 0.01,"):
        assert help_ in message
    assert model.topic_info()["noise"].all()
    frequencies = WordPrior(frequencies=np.full(40, 1 / 40))
    with pytest.warns(NoisyTopicsWarning, match=r"fewer words than 40 or a larger"):  # a prior is there already
        VIPSLDA(3, epsilon=0.01, delta=1e-6, prior=frequencies).fit(corpus.data[:100])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not PrivateCGSLDA(3, epsilon=5.0).fit(corpus.data).topic_info()["noise"].any()
        PrivateCGSLDA(3, epsilon=np.inf).fit(corpus.data)


@pytest.mark.parametrize("model", [PrivateCGSLDA, VIPSLDA, PCTD, HDPLDA])
def test_a_single_topic_is_not_marked_as_noise(model, corpus):
    """It has the word frequencies of all, and nothing to stand out from."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=NoisyTopicsWarning)
        warnings.filterwarnings("ignore", message="X is a plain document-term matrix")
        fitted = model(1, epsilon=20.0).fit(corpus.data)
    for one in (fitted, release(fitted, feature_names=[f"word{i}" for i in range(40)])):
        assert one.topic_info()["signal_to_noise"].isna().all() and one.topic_info()["noise"].isna().all()
        assert not one.top_words(3, mark_noise=True).map(lambda word: "(" in word).to_numpy().any()


def test_topics_where_a_word_is_noise_are_no_first_answer():
    """Shares of what does not stand out are noise: such topics come after the others, by rank."""
    topics = ReleasedTopicModel(
        [[0.1, 0.9, 0.0], [0.5, 0.3, 0.2], [0.2, 0.4, 0.4], [0.7, 0.1, 0.2]],
        ["car", "road", "disk"],
        privacy_guarantee=PrivacyGuarantee(epsilon=1.0),
        topic_sizes=[0.3, 0.1, 0.1, 0.5],
        signal_to_noise=[[9.0] * 3, [0.1] * 3, [9.0] * 3, [0.1] * 3],
    )
    found = topics.find_topics("car")  # masses 0.03, 0.05, 0.02, 0.35: the largest share is not clear
    assert found.index.tolist() == [0, 2, 3, 1] and found["noise"].tolist() == [False, False, True, True]
    assert found["rank"].loc[[3, 1]].is_monotonic_increasing
