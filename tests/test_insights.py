"""From texts to clusters and keywords: embedders, pipelines, the command and its page."""

import json
import warnings
from threading import current_thread, main_thread

import numpy as np
import pytest
import scipy.sparse as sp
from internals import refuse_foreign
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdplda import (
    EmbeddingTopics,
    PrivacyAccountant,
    PrivacyGuarantee,
    load_released,
    make_insights_pipeline,
    privacy_guarantee,
    release,
)
from skdplda.cli import main
from skdplda.exceptions import BudgetExceededError
from skdplda.reports import report
from skdplda.semantics import EmbeddedTexts, WordVectorEmbedder
from skdplda.vocabulary import DPCountVectorizer, TextEmbedder

DRINKS, METALS = ["tea", "milk", "coffee", "cocoa"], ["zinc", "iron", "steel", "copper"]
VECTORS = {word: [1.0, 0.1 * i, 0.5] for i, word in enumerate(DRINKS)}
VECTORS |= {word: [0.1 * i, 1.0, 0.5] for i, word in enumerate(METALS)}
USERS = np.arange(4000) // 2


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(METALS if i // 2 % 2 else DRINKS, 6)) for i in range(4000)]


def test_word_vectors_weigh_frequent_words_less():
    embedder = WordVectorEmbedder(VECTORS, frequencies={"tea": 90, "zinc": 10}, smoothing=0.1)
    found = embedder.transform(["Tea zinc, unknown", "", "MILK"])
    p = np.array([90, 5, 5, 5, 10, 5, 5, 5]) / 130  # a word that is not in the table: half of the smallest
    weight = 0.1 / (0.1 + p)
    np.testing.assert_allclose(found[0], weight[0] * np.array(VECTORS["tea"]) + weight[4] * np.array(VECTORS["zinc"]))
    assert not found[1].any()
    np.testing.assert_allclose(found[2], weight[1] * np.array(VECTORS["milk"]), rtol=1e-6)
    rows, weights = embedder.public_rows()
    assert rows.shape == (8, 3) and weights.max() == pytest.approx((p * weight).max())


def test_word_vectors_come_in_three_forms():
    gensim = pytest.importorskip("gensim.models")
    keyed = gensim.KeyedVectors(3)
    keyed.add_vectors(list(VECTORS), np.array(list(VECTORS.values()), np.float32))
    pair = (list(VECTORS), np.array(list(VECTORS.values())))
    found = [WordVectorEmbedder(form).transform(["tea iron"]) for form in (VECTORS, pair, keyed)]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("vectors", "options", "said"),
    [
        ({}, {}, "one vector of finite numbers a word"),
        ({"a": [np.nan]}, {}, "one vector of finite numbers a word"),
        ((["a", "a"], [[1.0], [2.0]]), {}, "distinct words"),
        (7, {}, "mapping by word or a pair"),
        *[(VECTORS, {"smoothing": value}, "smoothing must be above 0") for value in (0.0, 10**400, np.inf, "1", True)],
        (VECTORS, {"frequencies": {"tea": -1.0}}, "frequencies must be numbers from 0"),
    ],
)
def test_word_vectors_of_other_kinds_are_refused(vectors, options, said):
    with pytest.raises(ValueError, match=said):
        WordVectorEmbedder(vectors, **options).transform(["tea"])


def test_one_string_is_no_list_of_texts():
    with pytest.raises(ValueError, match="list of texts"):
        WordVectorEmbedder(VECTORS).transform("tea")


@pytest.mark.parametrize("public", [True, False])
def test_texts_become_clusters_and_keywords_for_one_budget(texts, public, tmp_path):
    words = DRINKS + METALS if public else None
    pipeline = make_insights_pipeline(
        3.0, 1e-5, embedder=WordVectorEmbedder(VECTORS), n_components=2, public_vocabulary=words, groups=True
    )
    promised = privacy_guarantee(pipeline, groups=True)
    pipeline.fit(texts, groups=USERS)
    total = privacy_guarantee(pipeline)
    assert (total.epsilon, total.unit, total.status) == (promised.epsilon, "user", "proven")
    assert 2.99 < total.epsilon <= 3 and total.delta <= 1e-5
    top = pipeline[-1].top_words(4)
    assert top.index.tolist() == [", ".join(row) for row in pipeline[-1].top_words(3).to_numpy()]
    assert {frozenset(row) for row in top.to_numpy()} == {frozenset(DRINKS), frozenset(METALS)}
    labels = pipeline.predict(["tea and cocoa", "iron", "nothing known"])
    assert labels[0] != labels[1] and labels[2] == -1
    release(pipeline).save(tmp_path / "clusters.zip")
    model = load_released(tmp_path / "clusters.zip")
    vectors = WordVectorEmbedder(VECTORS).transform(["tea and cocoa", "iron", "nothing known"])
    np.testing.assert_array_equal(model.predict(vectors), labels)
    assert set(model.top_words(4).to_numpy().ravel()) == set(DRINKS + METALS)
    page = report(pipeline, tmp_path / "page.html").read_text()
    assert "copper" in page and "epsilon = 3" in page


def test_any_function_embeds_texts(texts):
    def embed(some):
        return np.array([["tea" in text or "milk" in text, "zinc" in text or "iron" in text, 0.2] for text in some])

    pipeline = make_insights_pipeline(
        5.0,
        1e-5,
        embedder=embed,
        model=EmbeddingTopics(2, public_rows=np.eye(3)[:2]),
        public_vocabulary=DRINKS + METALS,
    ).fit(texts)
    assert pipeline.predict(["milk", "iron"]).tolist() == [0, 1]
    assert privacy_guarantee(clone(pipeline)).epsilon <= 5


class SentenceModel:
    """As a `SentenceTransformer`: it can be called too, but with something that is no list of texts."""

    def __init__(self):
        self.given = []

    def __call__(self, tokens):
        raise AssertionError("encode is what takes texts")

    def encode(self, texts):
        self.given.append(list(texts))
        return np.array([["tea" in text, "zinc" in text, 0.2] for text in texts], np.float32)


def test_a_model_with_encode_is_given_one_text_at_a_time():
    words, model = DPCountVectorizer(public_vocabulary=["tea", "zinc"]), SentenceModel()
    made = TextEmbedder(model, words).fit_transform(["tea", "zinc", "tea zinc"])
    np.testing.assert_array_equal(made.vectors, np.float32([[1, 0, 0.2], [0, 1, 0.2], [1, 1, 0.2]]))
    assert model.given == [["tea"], ["zinc"], ["tea zinc"], ["tea"], ["zinc"]]  # the texts, and the words


class OtherWords:
    """A vectorizer of another author, which keeps all words and states what it likes."""

    public_vocabulary, random_state, ngram_range = None, None, (1, 1)
    privacy_guarantee_ = PrivacyGuarantee(epsilon=0.1, status="proven", reference="none", released=("vocabulary_",))

    def get_params(self, deep=True):
        return {}

    def privacy_cost(self, groups=False):
        return self.privacy_guarantee_

    def fit(self, texts, groups=None):
        self.words = sorted({word for text in texts for word in text.split()})
        return self

    def _texts(self, texts):
        return texts

    def transform(self, texts):
        return sp.csr_array([[int(word in text.split()) for word in self.words] for text in texts])

    def get_feature_names_out(self):
        return np.array(self.words, object)


class HeirWords(DPCountVectorizer):
    pass


@pytest.mark.parametrize("words", [OtherWords(), HeirWords(epsilon=50.0)])
def test_an_embedder_does_not_vouch_for_a_vectorizer_of_another_author(words):
    """What that one keeps, a name of one document among it, was released as proven."""
    embedder, texts = TextEmbedder(SentenceModel(), words), ["tea zinc"] * 300 + ["canary"]
    steps = make_pipeline(embedder, EmbeddingTopics(2, epsilon=1.0))
    assert privacy_guarantee(steps).status == embedder.privacy_cost().status == "claimed"
    assert embedder.privacy_cost().reason.count("no theorem here covers its class") == 1
    with pytest.raises(ValueError, match="no proven, finite guarantee"):
        release(steps.fit(texts))
    assert embedder.privacy_guarantee_.status == "claimed"


class OtherInThreads(SentenceModel):
    """Like a model that one thread alone may use: what it makes in others is wrong, or it fails there."""

    def __init__(self, fails):
        super().__init__()
        self.fails = fails

    def encode(self, texts):
        elsewhere = current_thread() is not main_thread()
        if self.fails and elsewhere:
            raise RuntimeError("Already borrowed")
        return super().encode(texts) + elsewhere


def test_threads_call_the_embedder_with_one_text_each():
    texts = [f"tea {i}" for i in range(40)]
    words = DPCountVectorizer(public_vocabulary=["tea"])
    alone = TextEmbedder(SentenceModel(), words).fit_transform(texts).vectors
    model = SentenceModel()
    np.testing.assert_array_equal(TextEmbedder(model, words, n_jobs=3).fit_transform(texts).vectors, alone)
    assert {len(given) for given in model.given} == {1}
    assert len(model.given) == 2 * 20 + 40 + 1  # public texts, without threads and with them; the texts; the word


@pytest.mark.parametrize("fails", [False, True])
def test_an_embedder_that_is_another_in_threads_is_refused(fails):
    both = TextEmbedder(OtherInThreads(fails), DPCountVectorizer(public_vocabulary=["tea"]), n_jobs=3)
    with pytest.raises(ValueError, match="n_jobs must be 1: the embedder makes other rows"):
        both.fit_transform(["tea"] * 21)
    both.fit_transform(["tea"] * 20)  # so few are embedded by one


def test_a_text_embedder_says_what_is_wrong():
    words = DPCountVectorizer(public_vocabulary=["tea", "milk"])
    for wrong in (7, "a model's name"):
        with pytest.raises(ValueError, match="embedder must have transform or encode"):
            TextEmbedder(wrong, words).fit(["tea"])
    for wrong in (np.ones((2, 2)), np.ones(2), np.ones((0, 2))):
        with pytest.raises(ValueError, match="for a list of one text it made another"):
            TextEmbedder(lambda texts, made=wrong: made, words).fit_transform(["tea", "milk"])
    made = TextEmbedder(lambda texts: np.ones((len(texts), 2)), words).fit_transform(["tea", "milk tea"])
    assert isinstance(made[1:], EmbeddedTexts) and made[1:].counts.sum() == 2
    with pytest.raises(ValueError, match="one row a text"):
        EmbeddedTexts(np.ones((2, 2)), np.ones((3, 2)))
    with pytest.raises(ValueError, match="words must name the 2 columns"):
        EmbeddedTexts(np.ones((2, 2)), np.ones((2, 2)), ["tea"])
    with pytest.raises(ValueError, match="word_frequencies must have a row for each of the 2 words; got 3"):
        EmbeddedTexts(np.ones((2, 2)), np.ones((2, 2)), word_frequencies=np.ones(3))
    with pytest.raises(ValueError, match="vocabulary_share"):
        make_insights_pipeline(1.0, embedder=len, vocabulary_share=1.5)


def test_public_frequencies_of_words_come_with_the_texts():
    embedder = WordVectorEmbedder((["tea", "milk", "rye"], np.eye(3)), frequencies={"tea": 6, "milk": 3})
    np.testing.assert_allclose(embedder.word_frequencies(["milk", "tea", "oat"]), np.array([3, 6, 1.5]) / 10.5)
    words = DPCountVectorizer(public_vocabulary=["milk", "oat", "tea"])
    texts = TextEmbedder(embedder, words).fit_transform(["tea", "milk tea", "tea rye"])
    for part in (texts, texts[1:]):
        np.testing.assert_allclose(part.word_frequencies, np.array([3, 1.5, 6]) / 10.5)
    assert TextEmbedder(lambda texts: np.ones((len(texts), 2)), words).fit(["tea"]).word_frequencies_ is None
    broken = WordVectorEmbedder((["tea"], np.eye(1)))
    broken.word_frequencies = lambda words: 1 / 0
    with PrivacyAccountant(9.0, 1e-3) as ledger, pytest.raises(ZeroDivisionError):
        TextEmbedder(broken, DPCountVectorizer(epsilon=1.0, delta=1e-6)).fit_transform(["tea"] * 50)
    assert not ledger.ledger
    for wrong in ([1.0, 0.0, 1.0], [1.0, np.nan, 1.0], [[1.0], [1.0], [1.0]]):
        X = EmbeddedTexts(texts.vectors, texts.counts, word_frequencies=np.array(wrong))
        with pytest.raises(ValueError, match="word_frequencies must be 3 finite numbers above 0, one a word"):
            EmbeddingTopics(2, epsilon=9.0).fit(X)


def test_where_all_is_noise_clusters_are_called_by_words_that_are_frequent_elsewhere():
    """Each of 4,000 texts has one of the first 420 of 2,000 words, whose totals are noise.

    In twenty fits the share of such words had a mean of 0.99 (deviation 0.02), and without frequencies of 0.43 (0.10).
    """
    rng = np.random.default_rng(0)
    counts = sp.csr_array((np.ones(4000, int), (np.arange(4000), rng.integers(420, size=4000))), shape=(4000, 2000))
    vectors, word_vectors = rng.normal(size=(4000, 3)), rng.normal(size=(2000, 3))
    frequent = np.where(np.arange(2000) < 420, 100.0, 1.0)

    def named(frequencies):
        texts = EmbeddedTexts(vectors, counts, np.arange(2000).astype(str), word_vectors, frequencies)
        model = EmbeddingTopics(3, epsilon=0.5, delta=1e-6, random_state=0).fit(texts)
        return (model.top_words(10).to_numpy().astype(int) < 420).mean()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert named(frequent) > 0.85 > named(None)


def test_a_text_is_embedded_without_those_beside_it():
    """By an embedder that centres or pads its batch, one user's text would move the rows of all others."""
    table = np.random.default_rng(0).normal(size=(26, 8))

    def embed(some):
        rows = np.array([[text.count(chr(ord("a") + j)) for j in range(26)] for text in some], float) @ table
        return rows + len(some) + max(map(len, some)) * rows.mean(axis=0)

    words = DPCountVectorizer(public_vocabulary=["tea", "milk"])
    whole = TextEmbedder(embed, words).fit_transform(["tea", "milk tea", "a far longer text of another user"]).vectors
    rest = TextEmbedder(embed, words).fit_transform(["tea", "milk tea"]).vectors
    np.testing.assert_array_equal(whole[:2], rest)
    ours = WordVectorEmbedder(VECTORS)
    whole, rest = (TextEmbedder(ours, words).fit_transform(some).vectors for some in (["tea zinc", "milk"], ["milk"]))
    np.testing.assert_array_equal(whole[1:], rest)


@pytest.fixture
def files(texts, tmp_path):
    corpus, vectors = tmp_path / "texts.jsonl", tmp_path / "vectors.txt"
    rows = (json.dumps({"body": text, "author": f"u{user}"}) for text, user in zip(texts, USERS, strict=True))
    corpus.write_text("\n".join(rows))
    vectors.write_text("8 3\n" + "\n".join(f"{word} {' '.join(map(str, row))}" for word, row in VECTORS.items()))
    return corpus, vectors, tmp_path / "page.html"


def command(files, *more):
    corpus, vectors, page = map(str, files)
    options = ["--column", "body", "--users", "author", "--epsilon", "3", "--delta", "1e-6", "--clusters", "2"]
    return main(["insights", corpus, "--vectors", vectors, "--report", page, *options, *more])


def test_the_command_writes_a_page_and_prints_clusters(files, capsys):
    assert command(files) == 0
    printed = capsys.readouterr().out
    assert (
        "+-" in printed and "% of the weight of users: " in printed and "user, add-remove, central, proven" in printed
    )
    assert "no number of users" in printed
    page = files[2].read_text()
    assert "What the texts are about" in page
    assert any(f"{a}, {b}, {c}" in page for a in DRINKS for b in DRINKS for c in DRINKS)  # names are three keywords
    assert command(files) == 2  # the page is there
    assert "--overwrite" in capsys.readouterr().err
    assert command(files, "--overwrite", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["privacy"]["unit"] == "user" and len(found["clusters"]) == 2
    assert {"weight", "weight_deviation"} < found["clusters"][0].keys() and "documents" not in found["clusters"][0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "it is empty"),
        ("a 1 2\nb 1\n", "line 2 has 1 numbers"),
        ("a x y\n", "cannot be read"),
        ("2 2\na 1 2\nb nan 1\n", "line 3 has a number that is not finite"),
        (None, "No such file"),
    ],
)
def test_the_command_refuses_vectors_that_are_none(files, content, said, capsys):
    files[1].unlink() if content is None else files[1].write_text(content)
    assert command(files) == 2
    assert said in capsys.readouterr().err
    assert not files[2].exists()


def test_vectors_come_in_an_archive_too(files, tmp_path):
    path = tmp_path / "vectors.npz"
    np.savez(path, words="\n".join(VECTORS), vectors=np.array(list(VECTORS.values()), np.float16))
    assert command((files[0], path, files[2])) == 0


@pytest.mark.parametrize(
    ("embed", "model", "said"),
    [
        (lambda some: np.array([["a", "b"]] * len(some)), None, "an array of numbers"),
        (lambda some: np.ones((len(some), 1 + len(some[0]))), None, "for a list of one text it made another"),
        (
            lambda some: np.ones((len(some), 2)),
            EmbeddingTopics(2, public_rows=np.eye(3)),
            "n_dimensions=3 numbers; got 2",
        ),
    ],
)
def test_an_embedder_that_fails_spends_nothing(texts, embed, model, said):
    pipeline = make_insights_pipeline(2.0, 1e-5, embedder=embed, model=model)
    with PrivacyAccountant(5.0, 1e-3) as ledger, pytest.raises(ValueError, match=said):
        pipeline.fit([*texts[:300], "tea"])
    assert not ledger.ledger


def test_a_text_embedder_tries_the_embedder_before_it_pays_for_words(texts):
    def fails(some):
        raise ValueError("no model here")

    with PrivacyAccountant(5.0, 1e-3) as ledger, pytest.raises(ValueError, match="no model here"):
        TextEmbedder(fails, DPCountVectorizer(1.0)).fit(texts)
    assert not ledger.ledger


def test_public_arrays_that_do_not_fit_are_refused_before_texts_are_seen():
    model = EmbeddingTopics(2, public_rows=np.eye(3), public_weights=np.ones(2))
    with pytest.raises(ValueError, match="public_weights must have one number a row"):
        make_insights_pipeline(2.0, 1e-5, embedder=len, model=model)


def test_a_ledger_that_cannot_pay_refuses_before_a_text_is_embedded(texts):
    seen = []
    pipeline = make_insights_pipeline(2.0, 1e-5, embedder=seen.append)
    with PrivacyAccountant(0.01, 1e-3), pytest.raises(BudgetExceededError):
        pipeline.fit(texts[:5])
    assert not seen


@pytest.mark.parametrize(("words", "said"), [("beryl\n", "is in the vocabulary: --vocabulary"), (None, "has a vector")])
def test_the_command_refuses_texts_of_another_language_before_it_pays(files, words, said, capsys):
    options = []
    if words is None:
        files[0].write_text("\n".join(json.dumps({"body": "\u0447\u0430\u0439", "author": i}) for i in range(3)))
    else:
        (files[0].parent / "words.txt").write_text(words)
        options = ["--vocabulary", str(files[0].parent / "words.txt")]
    with PrivacyAccountant(5.0, 1e-3) as ledger:
        assert command(files, *options) == 2
    printed = capsys.readouterr().err
    assert said in printed and "nothing was spent" in printed and not ledger.ledger


def test_one_known_text_among_others_is_enough():
    """What is asked is about all texts together: a share of them would tell more of each."""
    steps = TextEmbedder(WordVectorEmbedder(VECTORS), DPCountVectorizer(public_vocabulary=["tea"]))
    refuse_foreign(["?"] * 2500 + ["tea"], steps)
    with pytest.raises(ValueError, match="has a vector"):
        refuse_foreign(["?"] * 2500, steps)


def test_options_that_errors_name_are_taken(files, capsys):
    assert command(files, "--users", "nobody") == 2
    assert "--users" in capsys.readouterr().err
    assert command(files, "--users", "author", "--column", "body") == 0


def test_the_command_keeps_clusters_to_place_other_texts(files, capsys):
    kept = files[2].with_name("clusters.zip")
    for wrong, said in (("nowhere/clusters.zip", "--release: there is no folder"), (str(files[2]), "would both write")):
        assert command(files, "--release", wrong) == 2
        assert said in capsys.readouterr().err
    assert command(files, "--release", str(kept)) == 0
    assert str(kept) in capsys.readouterr().out
    found = load_released(kept).predict(WordVectorEmbedder(VECTORS).transform(["tea and cocoa", "iron"]))
    assert found[0] != found[1] and kept.with_name("clusters.card.md").exists()
    assert command(files, "--release", str(kept)) == 2


def test_the_console_marks_clusters_and_words_of_noise(files, capsys):
    words = files[2].with_name("words.txt")
    words.write_text("\n".join(VECTORS))
    assert command(files, "--vocabulary", str(words)) == 0
    assert "clusters do not stand out" not in capsys.readouterr().out
    assert command(files, "--vocabulary", str(words), "--overwrite", "--clusters", "12", "--epsilon", "0.05") == 0
    printed = capsys.readouterr().out
    assert "12 clusters do not stand out of the noise" in printed and "(" in printed.partition(":")[2]
    assert "Words in parentheses" in printed


def test_a_function_that_names_topics_is_given_released_words_only(texts):
    pipeline = make_insights_pipeline(
        5.0, 1e-5, embedder=WordVectorEmbedder(VECTORS), n_components=2, public_vocabulary=DRINKS + METALS
    ).fit(texts)
    for model in (pipeline[-1], release(pipeline)):
        given, words = [], model.top_words(5).to_numpy().tolist()
        named = model.name_topics(lambda *told, seen=given: seen.append(told) or "group", n_words=5)
        assert given == [(row,) for row in words]
        assert named.get_feature_names_out().tolist() == ["group (0)", "group (1)"]
        assert model.get_feature_names_out()[0] == ", ".join(words[0][:3])
        assert model.name_topics().get_feature_names_out()[0] == ", ".join(words[0][:3])
        with pytest.raises(ValueError, match="names must be 2 str"):
            model.name_topics(len)
        with pytest.raises(ValueError, match="n_words must be an integer of at least 1"):
            model.name_topics(str, n_words=0)


def test_names_differ_whatever_the_function_says():
    X = np.repeat(np.eye(3), 500, axis=0)
    model = EmbeddingTopics(3, epsilon=9.0, public_rows=np.eye(3)).fit(X, counts=X.astype(int))
    said = iter(["a", "a", "a (1)"])
    names = model.name_topics(lambda words: next(said)).get_feature_names_out().tolist()
    assert len(set(names)) == 3 and all(name.startswith("a") for name in names)


def test_clusters_of_ngrams_of_characters_are_named_and_released():
    X = np.repeat(np.eye(3), 500, axis=0)
    texts = EmbeddedTexts(X, X.astype(int), ["a\n", "b", " c"])
    model = EmbeddingTopics(3, epsilon=9.0, public_rows=np.eye(3)).fit(texts)
    assert not any("\n" in name for name in model.get_feature_names_out())
    words = ["a\n", "b", " c"]
    assert len(release(model, feature_names=words).get_feature_names_out()) == 3


def test_words_without_counts_name_nothing():
    X = np.repeat(np.eye(3), 500, axis=0)
    model = EmbeddingTopics(3, epsilon=9.0, public_rows=np.eye(3)).fit(EmbeddedTexts(X, None, ["tea"]))
    assert model.get_feature_names_out().tolist() == ["topic_0", "topic_1", "topic_2"]


def test_the_command_charges_a_ledger_for_words_and_clusters(files, tmp_path, capsys):
    ledger = PrivacyAccountant.open(tmp_path / "ledger.json", 2.0, 1e-4, unit="user")
    assert command(files, "--ledger", str(tmp_path / "ledger.json"), "--label", "May") == 2
    assert "Nothing was spent" in capsys.readouterr().err
    assert ledger.ledger == () and not files[2].exists()
    ledger = PrivacyAccountant.open(tmp_path / "books.json", float("inf"), 1e-4, unit="user")
    assert command(files, "--ledger", str(tmp_path / "books.json"), "--label", "May", "--private-words") == 0
    assert [entry.label for entry in ledger.ledger] == ["May"] * 2
