"""The page of pyLDAvis keeps our numbers and embeds released values only, unless it is given documents."""

import json
import warnings

import numpy as np
import pytest

from skdplda import PrivacyLeakWarning, PrivateCGSLDA, release
from skdplda.datasets import make_lda_corpus
from skdplda.plots import prepare_ldavis
from skdplda.releases import ReleasedTopicModel

pyLDAvis = pytest.importorskip("pyLDAvis")
# of pyLDAvis and its dependencies, on some versions of Python and pandas
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:(pyLDAvis|numexpr|past|pandas).*")


@pytest.fixture(scope="module")
def corpus():
    return make_lda_corpus(600, 50, 4, mean_length=20, random_state=0)


@pytest.fixture(scope="module")
def model(corpus):
    with pytest.warns(PrivacyLeakWarning, match="random_state"):
        return PrivateCGSLDA(4, max_iter=5, random_state=0).fit(corpus.data)


def shown(page, topic):
    """Return the words that the page shows for a topic, most probable first."""
    return page.sorted_terms(topic=topic)["Term"].drop_duplicates().tolist()


def test_topics_keep_their_numbers_and_words(model, corpus):
    page = prepare_ldavis(model, feature_names=corpus.feature_names, n_words=6)
    coordinates = page.topic_coordinates
    assert coordinates["topics"].tolist() == [0, 1, 2, 3] and list(page.topic_order) == [0, 1, 2, 3]
    shares = model.components_.sum(axis=1) / model.components_.sum()
    np.testing.assert_allclose(coordinates["Freq"], 100 * shares)
    for topic, words in enumerate(model.top_words(6, corpus.feature_names, relevance=1).to_numpy()):
        assert shown(page, topic)[:6] == words.tolist()


def test_the_page_is_made_of_released_values(model, corpus):
    """The released model alone, without data, makes the same page; its source is strict JSON."""
    words = corpus.feature_names
    page = prepare_ldavis(model, feature_names=words).to_json()
    copy = release(model, feature_names=words, allow_seeded=True)
    assert prepare_ldavis(copy).to_json() == page
    json.loads(page, parse_constant=lambda constant: pytest.fail(f"{constant} in the page"))
    assert page_totals(json.loads(page)).sum() < 1_000_001  # of the nominal corpus


def page_totals(data):
    """Return the unrounded frequency of each word of a page, in the order of words."""
    info = data["tinfo"]
    rows = zip(info["Term"], info["Total"], info["Category"], strict=True)
    totals = {word: total for word, total, category in rows if category != "Default"}
    return np.array([totals[word] for word in sorted(totals)])


def test_documents_warn_because_their_sizes_can_be_computed(model, corpus):
    with pytest.warns(PrivacyLeakWarning, match="will embed exact statistics of the documents"):
        page = prepare_ldavis(model, X=corpus.data, feature_names=corpus.feature_names, n_words=50)
    totals = page_totals(json.loads(page.to_json()))
    tokens = np.linalg.lstsq(model.topic_word_.T, totals)[0].sum()  # what a reader of the page does
    np.testing.assert_allclose(tokens, corpus.data.sum(), rtol=1e-9)


def test_released_models_and_degenerate_topics_have_a_page(model, corpus):
    released = release(model, feature_names=corpus.feature_names, allow_seeded=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        page = prepare_ldavis(released)
    shares = model.components_.sum(axis=1) / model.components_.sum()
    np.testing.assert_allclose(page.topic_coordinates["Freq"], 100 * shares)
    topics = [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]  # equal, and without most words
    equal = ReleasedTopicModel(topics, ["pear", "plum", "zinc"], privacy_guarantee=model.privacy_guarantee_, text={})
    page = prepare_ldavis(equal, n_words=3)
    json.loads(page.to_json(), parse_constant=lambda constant: pytest.fail(f"{constant} in the page"))
    with pytest.warns(PrivacyLeakWarning):
        assert prepare_ldavis(equal, X=["pear plum"]).topic_coordinates["topics"].tolist() == [0, 1]


def test_errors_name_the_parameter(model, corpus):
    with pytest.raises(ValueError, match="relevance_step must be above 0"):
        prepare_ldavis(model, relevance_step=0)
    with pytest.raises(ValueError, match="feature_names must name 50 words"):
        prepare_ldavis(model, feature_names=["a"])
    with pytest.warns(PrivacyLeakWarning), pytest.raises(ValueError, match="X must hold a word"):
        prepare_ldavis(model, X=0 * corpus.data)
