"""The page of topics: one file, nothing loaded, every word escaped, and all that a reader has to know."""

import math
from html.parser import HTMLParser

import numpy as np
import pytest
from internals import layout, neighbours
from scipy.cluster.hierarchy import dendrogram, linkage
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from skdplda import (
    HDPLDA,
    PCTD,
    VIPSLDA,
    EmbeddingTopics,
    LocalPrivateLDA,
    PrivacyGuarantee,
    PrivateCGSLDA,
    ReleasedTopicModel,
    privacy_guarantee,
    release,
)
from skdplda.datasets import make_lda_corpus
from skdplda.local import LocalRandomizer
from skdplda.metrics import apart, topic_distances
from skdplda.reports import report

MODELS = [
    PrivateCGSLDA(3, max_iter=3),
    VIPSLDA(3, max_iter=3),
    HDPLDA(3, max_iter=2),
    PCTD(3, max_iter=2),
    LocalPrivateLDA(3, randomizer=LocalRandomizer(), max_iter=2),
]
EVIL = [
    "</title><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a\u202eb\x00c\ud800",
    "'&amp;",
    "]]>-->",
]
VOID = {"meta"}  # without an end tag

pytestmark = pytest.mark.filterwarnings("ignore:X is a plain document-term matrix:UserWarning")


class Reader(HTMLParser):
    """Collects elements, attributes and text, and fails where elements are not nested."""

    def __init__(self, content):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.text = [], [], [], []
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)


def read(path):
    content = path.read_bytes().decode()  # whatever the words are, it is UTF-8
    return content, Reader(content)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_model_has_a_page(model, tmp_path):
    corpus = make_lda_corpus(200, 25, 3, mean_length=20, random_state=0)
    with pytest.raises(NotFittedError):
        report(model, tmp_path / "topics.html")
    model.fit(corpus.data)
    path = report(model, tmp_path / "topics.html", feature_names=corpus.feature_names)
    content, page = read(path)
    text = " ".join(page.text)
    told = model.top_words(10, corpus.feature_names, mark_noise=True).to_numpy()
    assert all(word in text for row in told for word in row if not word.startswith("("))
    assert all(model.top_words(3, corpus.feature_names).iloc[topic, 0] in text for topic in range(3))
    for line in str(model.privacy_guarantee_).splitlines()[1:]:
        told = line.strip().split(": ", 1)[-1].strip()
        assert told in text.replace("\n", " ") or "pip install dp-accounting" in told
    kept = 3 - int(model.topic_info()["noise"].fillna(False).sum())
    assert page.tags.count("h1") == 1 and page.tags.count("h2") == 3 + 2 * (kept > 1) + 1
    assert page.tags.count("article") == 3 and page.tags.count("svg") == 4 * (kept > 1)
    assert ("details" in page.tags) == (kept < 3)
    captions = [part.split(">", 1)[1].split("<", 1)[0] for part in content.split("caption")[1:] if part[0] in "'\">"]
    assert captions and any("epsilon" in caption for caption in captions)


def test_a_page_loads_and_runs_nothing_and_describes_its_pictures(tmp_path):
    model = PrivateCGSLDA(3, epsilon=50.0).fit(make_lda_corpus(2000, 100, 3, random_state=0).data)
    content, page = read(report(model, tmp_path / "topics.html"))
    assert not {"script", "link", "img", "iframe", "object", "embed", "form", "base"} & set(page.tags)
    names = [name for name, _ in page.attributes]
    assert "src" not in names and not any(name.startswith("on") for name in names)
    assert all(value.startswith("#") for name, value in page.attributes if name == "href")
    assert "url(" not in content and "@import" not in content
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'") in (
        page.attributes
    )
    pictures = [value for name, value in page.attributes if name == "aria-label" and "topics" in value]
    assert len(pictures) == page.tags.count("svg") == 4  # a map and a tree, for wide and for narrow screens
    assert ("lang", "en") in page.attributes and ("href", "#main") in page.attributes
    assert "prefers-color-scheme: dark" in content and "width=device-width" in content


def test_words_names_and_titles_are_text_never_markup(tmp_path):
    topics = np.array([[0.5, 0.2, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.2, 0.5]])
    guarantee = PrivacyGuarantee(epsilon=1.0, reason="<b>no & reason</b>")

    class Foreign(PrivateCGSLDA):
        """A model whose words nobody has checked."""

    model = Foreign(2)
    model.n_features_in_, model.components_, model.topic_word_ = 5, topics, topics
    model.privacy_guarantee_ = guarantee
    model = model.rename_topics(["<i>one</i>", "two"])
    content, page = read(report(model, tmp_path / "a.html", feature_names=EVIL, title="</title><script>x</script>"))
    assert not {"script", "img", "b", "i"} & set(page.tags)
    assert "onerror" not in [name for name, _ in page.attributes]
    text = "".join(page.text)
    assert EVIL[0] in text and EVIL[1] in text and EVIL[3] in text and "<i>one</i>" in text and "<b>no & reason" in text
    assert "a\ufffdb\ufffdc\ufffd" in text and "\u202e" not in content and "\x00" not in content


def test_a_pipeline_shows_what_release_takes_out_of_it(tmp_path):
    words = ["apple", "pear", "iron", "zinc"]
    texts = ["apple pear apple", "iron zinc iron"] * 300
    pipeline = make_pipeline(CountVectorizer(vocabulary=words), PrivateCGSLDA(2, epsilon=3.0)).fit(texts)
    whole = report(pipeline, tmp_path / "a.html").read_text(encoding="utf-8")
    assert whole == report(release(pipeline, raw_text=False), tmp_path / "b.html").read_text(encoding="utf-8")
    assert repr(privacy_guarantee(pipeline).epsilon).removesuffix(".0") in whole and "apple" in whole
    counts = CountVectorizer(vocabulary=words).transform(texts)
    lone = make_pipeline(PrivateCGSLDA(2, epsilon=3.0)).fit(counts)
    assert "zinc" in report(lone, tmp_path / "c.html", feature_names=words).read_text(encoding="utf-8")
    leaky = make_pipeline(CountVectorizer(), PrivateCGSLDA(2, epsilon=3.0)).fit(texts)
    with pytest.raises(ValueError, match="voids the guarantee"):
        report(leaky, tmp_path / "d.html")
    assert not (tmp_path / "d.html").exists()
    with pytest.raises(TypeError, match="CountVectorizer without top_words"):
        report(CountVectorizer(), tmp_path / "d.html")


@pytest.mark.parametrize(
    ("guarantee", "said", "unsaid"),
    [
        ({"epsilon": math.inf}, "have no privacy protection", "of 100"),
        ({"epsilon": 1.0, "status": "claimed", "reason": "seeds"}, "is not proven", "of 100"),
        ({"epsilon": 0.0, "status": "proven", "reference": "x"}, "<strong>50 of 100</strong>", "not proven"),
        ({"epsilon": 1.0, "status": "proven", "reference": "x"}, "<strong>74 of 100</strong>", "not proven"),
        ({"epsilon": 1.0, "delta": 0.1, "status": "proven", "reference": "x"}, "<strong>76 of 100</strong>", "seeds"),
        ({"epsilon": 50.0, "status": "proven", "reference": "x"}, "in nearly every case", "of 100"),
        ({"epsilon": 1.0, "status": "proven", "reference": "x", "unit": "user"}, "any one person's", "Whoever wrote"),
    ],
)
def test_the_summary_never_says_more_than_the_guarantee(guarantee, said, unsaid, tmp_path):
    """The best of 100 guesses is rounded up: e / (1 + e) is 73.1 %, and with delta 0.1 it is 75.8 %."""
    model = ReleasedTopicModel([[0.5, 0.5]], ["a", "b"], privacy_guarantee=PrivacyGuarantee(**guarantee))
    content = report(model, tmp_path / "topics.html").read_text(encoding="utf-8")
    assert said in content and unsaid not in content


def random_tree(n_leaves, seed):
    return linkage(np.random.default_rng(seed).random((n_leaves, 3)), "average")


@pytest.mark.parametrize("n_leaves", [2, 3, 10, 60])
def test_the_tree_is_laid_out_as_scipy_does(n_leaves):
    tree = random_tree(n_leaves, n_leaves)
    expected = dendrogram(tree, no_plot=True)
    leaves, branches = layout(tree)
    assert leaves == expected["leaves"]
    found = sorted(([10 * row + 5 for row in rows], list(distances)) for rows, distances in branches)
    scipys = sorted(zip(expected["icoord"], expected["dcoord"], strict=True))
    np.testing.assert_allclose(np.array(found), np.array([[*map(list, pair)] for pair in scipys]))


def test_a_tree_may_be_a_chain():
    n_leaves = 5000
    joins = np.arange(n_leaves - 1)
    chain = np.column_stack([np.where(joins, n_leaves + joins - 1, 0), joins + 1, joins + 1.0, joins + 2.0])
    leaves, branches = layout(chain)
    assert leaves == list(range(n_leaves)) and len(branches) == n_leaves - 1


def many(n_topics, signal=None):
    topics = np.random.default_rng(0).dirichlet(np.full(30, 0.2), n_topics)
    words = [f"w{word}" for word in range(30)]
    return ReleasedTopicModel(topics, words, privacy_guarantee=PrivacyGuarantee(epsilon=1.0), signal_to_noise=signal)


@pytest.mark.parametrize("n_topics", [200, 201, 1500])
def test_a_page_of_many_topics_has_a_table_in_place_of_pictures(n_topics, tmp_path):
    model = many(n_topics, np.full((n_topics, 30), 2.0))
    content = report(model, tmp_path / "page.html").read_text(encoding="utf-8")
    pictures = n_topics <= 200
    assert content.count("<svg") == 4 * pictures
    assert ("Nearest topics" in content) is not pictures
    for name in ("map", "hierarchy"):
        assert (f'<section id="{name}"' in content) is pictures
    Reader(content)


def test_the_nearest_topic_is_the_one_of_the_least_distance():
    model = many(40)
    kept = np.arange(40) != 7
    nearest, distance = neighbours(model, np.flatnonzero(kept))
    roots = np.sqrt(model.topic_word_)
    apart = np.sqrt(((roots[:, None] - roots[None]) ** 2).sum(axis=2) / 2)
    np.fill_diagonal(apart, np.inf)
    apart[:, 7] = np.inf
    np.testing.assert_array_equal(nearest, apart[kept].argmin(axis=1))
    np.testing.assert_allclose(distance, apart[kept].min(axis=1), atol=1e-9)


def test_the_nearest_cluster_is_the_one_of_the_largest_cosine():
    rng = np.random.default_rng(0)
    fitted = EmbeddingTopics(5, epsilon=50.0, max_iter=2).fit(rng.normal(size=(300, 8)))
    nearest, distance = neighbours(fitted, np.arange(5))
    apart = topic_distances(fitted)
    np.fill_diagonal(apart, np.inf)
    np.testing.assert_array_equal(nearest, apart.argmin(axis=1))
    np.testing.assert_allclose(distance, apart.min(axis=1), atol=1e-9)


@pytest.mark.parametrize(("n_boxes", "width"), [(2, 340), (10, 1000), (60, 340), (200, 1000)])
def test_nothing_of_a_map_lies_on_anything_else(n_boxes, width):
    rng = np.random.default_rng(n_boxes)
    boxes = np.stack([rng.uniform(20, 150, n_boxes), rng.uniform(20, 100, n_boxes)], axis=1)
    for places in (rng.normal(width / 2, 60, (n_boxes, 2)), np.full((n_boxes, 2), 5.0)):
        found, height = apart(places, boxes, width, 0.8)
        between = np.abs(found[:, None] - found[None])
        over = (between < (boxes[:, None] + boxes[None]) / 2).all(axis=2) & ~np.eye(n_boxes, dtype=bool)
        assert not over.any()
        assert (found - boxes / 2 >= 0).all() and (found + boxes / 2 <= [width, height]).all()


def test_what_stands_out_comes_first_and_noise_is_folded_away(tmp_path):
    """Topics 0 and 2 are the same noise: they are in no picture, and near to nothing."""
    topics = np.array([[0.25] * 4, [0.7, 0.1, 0.1, 0.1], [0.25] * 4, [0.1, 0.1, 0.7, 0.1]])
    signal = np.array([[0.1] * 4, [50.0, -5, -5, -5], [0.1] * 4, [-5, -5, 30.0, 8.0]])
    words = ["pear", "http", "zinc", "iron"]
    model = ReleasedTopicModel(
        topics,
        words,
        privacy_guarantee=PrivacyGuarantee(epsilon=1.0),
        signal_to_noise=signal,
        topic_sizes=[0.4, 0.2, 0.3, 0.1],
    )
    assert model.top_words(4, mark_noise=True).to_numpy()[3].tolist() == ["zinc", "iron", "(http)", "(pear)"]
    assert model.topic_info()["words"][3][:2] == ["zinc", "iron"]
    content, _ = read(report(model, tmp_path / "page.html"))
    places = [content.index(f'id="topic-{topic}"') for topic in (1, 3, 0, 2)]
    assert places == sorted(places) and places[1] < content.index("<summary>2 topics that may be noise") < places[2]
    pictures = content[content.index('<section id="map"') : content.index('<section id="privacy"')]
    assert "Topic 1 (<bdi>pear" in pictures and "Topic 0" not in pictures and "Topic 2" not in pictures
    card = content[places[1] : content.index("<details>")]
    assert "http" not in card and "pear" not in card  # they are more of another topic
    assert "<bdi>zinc</bdi>" in card and "width:93.8%" in card and "left:87.5%;width:12.5%" in card
