"""What doc/migration.rst writes in the place of BERTopic's calls runs, each of them."""

import re
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.cluster.hierarchy import dendrogram

from skdplda import VIPSLDA, DPCountVectorizer, PublicPrior, load_released, make_fdptm_pipeline, release
from skdplda.plots import TopicDistanceDisplay, TopWordsDisplay

PAGE = Path(__file__).parents[1] / "doc" / "migration.rst"
DOCS = ["car engine wheel road", "tea milk cocoa sugar", "iron zinc copper steel"] * 300
WORDS = sorted(set(" ".join(DOCS).split()))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What the calls need: a pipeline, its texts, what was released, and a folder."""
    words = DPCountVectorizer(public_vocabulary=WORDS)
    pipeline = make_fdptm_pipeline(9.0, 1e-6, n_components=4, vectorizer=words).fit(DOCS)
    path = tmp_path_factory.mktemp("migration") / "topics.zip"
    return SimpleNamespace(pipeline=pipeline, model=release(pipeline), path=path)


def over_time(m):
    return m.model.topics_over_time(DOCS, np.arange(900) // 300, bins=[0, 1, 2, 3], epsilon=1.0)


def near(m):
    vectors = {word: [1.0, 0.0] for word in DOCS[0].split()} | {word: [0.0, 1.0] for word in DOCS[1].split()}
    prior = PublicPrior.from_vectors(vectors | {"automobile": [1.0, 0.01]})
    return m.model.find_topics("automobile", word_vectors=prior)["word"].iloc[0] in DOCS[0]


def seeded(m):
    prior = PublicPrior.from_seed_words({"cars": ["car", "engine"]})
    words = DPCountVectorizer(public_vocabulary=WORDS)
    pipeline = make_fdptm_pipeline(9.0, 1e-6, n_components=4, vectorizer=words, prior=prior).fit(DOCS)
    return release(pipeline).get_feature_names_out()[0] == "cars"


def saved(m):
    m.model.save(m.path)
    return np.array_equal(load_released(m.path).topic_word_, m.model.topic_word_)


def streamed(m):
    model = VIPSLDA(2, learning_method="online", batch_size=900, nominal_size=900, max_iter=1, epsilon=9.0)
    return model.partial_fit(m.pipeline[0].transform(DOCS)).topic_word_.shape == (2, 12)


# The first call of each row of the page, and a function that is true if what stands beside it does what it says.
CALLS = {
    "fit": lambda m: m.model.topic_word_.shape == (4, 12),
    "fit_transform": lambda m: m.pipeline.fit_transform(DOCS).shape == (900, 4),
    "transform": lambda m: np.allclose(m.model.transform(DOCS).sum(axis=1), 1),
    "get_topic_info": lambda m: {"name", "size", "words"} <= set(m.model.topic_info()),
    "get_topic": lambda m: len(m.model.top_words(10).loc["topic_3"]) == 10,
    "get_topics": lambda m: m.model.top_words(10).shape == (4, 10),
    "get_topic_freq": lambda m: np.isclose(m.model.topic_info()["size"].sum(), 1),
    "get_document_info": lambda m: len(m.model.document_info(DOCS)) == 900,
    "get_representative_docs": lambda m: m.model.document_info(DOCS).sort_values("probability").shape == (900, 4),
    "find_topics": lambda m: len(m.model.find_topics("car")) == 4 and near(m),
    "merge_topics": lambda m: len(m.model.merge_topics([[1, 2]]).topic_word_) == 3,
    "reduce_topics": lambda m: len(m.model.reduce_topics(2).topic_word_) == 2 and len(m.model.topic_word_) == 4,
    "hierarchical_topics": lambda m: m.model.topic_hierarchy().shape == (3, 4),
    "visualize_hierarchy": lambda m: len(dendrogram(m.model.topic_hierarchy())["ivl"]) == 4,
    "set_topic_labels": lambda m: m.model.rename_topics({0: "cars"}).top_words(1).index[0] == "cars",
    "generate_topic_labels": lambda m: m.model.name_topics().get_feature_names_out()[0].count(", ") == 2,
    "representation_model": lambda m: m.model.name_topics(min).get_feature_names_out()[0].split(" (")[0] in WORDS,
    "seed_topic_list": seeded,
    "topics_over_time": lambda m: over_time(m).shares.shape == (3, 4),
    "topics_per_class": lambda m: (
        m.model.topics_per_class(DOCS, ["a"] * 900, classes=["a", "b"], epsilon=1.0).counts.shape == (2, 4)
    ),
    "visualize_topics_over_time": lambda m: over_time(m).shares.plot() is not None,
    "visualize_barchart": lambda m: TopWordsDisplay.from_estimator(m.model).figure_ is not None,
    "visualize_topics": lambda m: TopicDistanceDisplay.from_estimator(m.model).figure_ is not None,
    "partial_fit": streamed,
    "save": saved,
}


def test_the_page_has_these_calls_and_no_others():
    page = PAGE.read_text("utf-8").partition("From BERTopic")[2]
    rows = re.findall(r"^``(\w+)", page.partition("====\nBERTopic ")[2].partition("Three habits")[0], re.MULTILINE)
    assert [row for row in rows if row != "approximate_distribution"] == list(CALLS) and len(CALLS) >= 20


@pytest.mark.parametrize("name", CALLS)
def test_what_stands_beside_a_call_runs(name, made):
    assert CALLS[name](made)
    plt.close("all")
