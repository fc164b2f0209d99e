"""Synthetic corpora, readers, and the errors of files that are not what they claim."""

import gzip
import json
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from internals import alias_table as _alias_table
from internals import synthetic
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2

from skdplda import PrivateCGSLDA
from skdplda.datasets import (
    load_20newsgroups,
    load_gensim_corpus,
    load_lee,
    load_uci_bow,
    make_lda_corpus,
    make_news_corpus,
    topic_recovery,
)

GOOD = "3\n4\n5\n1 1 2\n1 3 1\n2 4 7\n3 1 1\n3 2 5\n"


@pytest.fixture
def corpora():
    if "SKDPLDA_DATA" not in os.environ:
        pytest.skip("SKDPLDA_DATA does not name the folder of corpora")
    return Path(os.environ["SKDPLDA_DATA"])


@pytest.fixture
def write(tmp_path):
    def write(text, name="docword.toy.txt"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


# Synthetic corpora


def test_lda_corpus_shapes_and_form():
    corpus = make_lda_corpus(200, 300, 5, mean_length=20, random_state=0)
    X = corpus.data
    assert X.shape == (200, 300) and X.format == "csr"
    assert X.dtype == X.indices.dtype == X.indptr.dtype == np.int32
    assert X.data.min() >= 1
    X.has_canonical_format = False  # scipy then looks again instead of trusting the flag
    del X._has_canonical_format
    assert X.has_canonical_format
    assert_allclose(corpus.topic_word.sum(axis=1), 1)
    assert_allclose(corpus.doc_topic.sum(axis=1), 1, rtol=1e-5)
    assert len(set(corpus.feature_names)) == 300


def test_lda_corpus_is_reproducible():
    first, again, other = (make_lda_corpus(50, 40, 3, random_state=seed) for seed in (1, 1, 2))
    assert_array_equal(first.data.toarray(), again.data.toarray())
    assert (first.data != other.data).nnz > 0
    state = make_lda_corpus(50, 40, 3, random_state=np.random.RandomState(4)).data
    assert_array_equal(
        state.toarray(), make_lda_corpus(50, 40, 3, random_state=np.random.RandomState(4)).data.toarray()
    )


def test_lda_corpus_has_the_planted_distribution():
    """Chi-square of all cells that expect at least 5 tokens, at a false-alarm rate of 1e-6."""
    corpus = make_lda_corpus(30, 40, 4, mean_length=3000, topic_word_prior=0.5, random_state=3)
    X = corpus.data.toarray()
    expected = X.sum(axis=1, keepdims=True) * (corpus.doc_topic.astype(float) @ corpus.topic_word)
    cells = expected >= 5
    statistic = ((X - expected)[cells] ** 2 / expected[cells]).sum()
    assert cells.sum() > 900 and statistic < chi2.isf(1e-6, cells.sum())


def test_lda_corpus_lengths():
    lengths = make_lda_corpus(2000, 50, 3, mean_length=30, random_state=0).data.sum(axis=1)
    assert abs(lengths.mean() - 30) < 5 * np.sqrt(30 / 2000)
    assert make_lda_corpus(500, 50, 3, mean_length=30, max_length=25, random_state=0).data.sum(axis=1).max() == 25
    empty = make_lda_corpus(50, 50, 3, mean_length=0.01, random_state=0).data
    assert empty.shape == (50, 50) and empty.sum() < 10


def test_lda_corpus_spans_chunks(monkeypatch):
    monkeypatch.setattr(synthetic, "_CHUNK_TOKENS", 300)
    corpus = make_lda_corpus(1000, 50, 3, mean_length=40, random_state=0)
    X = corpus.data
    assert X.sum() == pytest.approx(40_000, rel=0.05)
    assert (np.diff(X.indptr) > 0).all() and X.indptr[-1] == X.nnz
    # Each document's most frequent words come from its own topics: over 60 seeds 2.3-fold (the logarithm's deviation is
    # 0.12), and at another's place not more than by chance.
    own = X.multiply(corpus.doc_topic @ corpus.topic_word).sum()
    shuffled = X.multiply((corpus.doc_topic @ corpus.topic_word)[::-1]).sum()
    assert own > 1.25 * shuffled


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"n_documents": 0}, "n_documents"),
        ({"n_words": 2.5}, "n_words"),
        ({"n_components": -1}, "n_components"),
        ({"mean_length": 0}, "mean_length"),
        ({"max_length": 0}, "max_length"),
        ({"doc_topic_prior": np.nan}, "doc_topic_prior"),
        ({"topic_word_prior": np.inf}, "topic_word_prior"),
    ],
)
def test_lda_corpus_refuses(arguments, name):
    with pytest.raises(ValueError, match=name):
        make_lda_corpus(**arguments)


@pytest.mark.parametrize("n_words", [1, 2, 17])
def test_alias_table_is_exact(n_words):
    p = np.random.default_rng(n_words).dirichlet(np.full(n_words, 0.2))
    threshold, alias = _alias_table(p)
    mass = np.minimum(threshold, 1)
    np.add.at(mass, alias, 1 - np.minimum(threshold, 1))
    assert_allclose(mass / n_words, p, atol=1e-12)


# Recovery


@pytest.mark.parametrize("measure", ["total-variation", "cosine"])
def test_recovery_of_a_permutation_is_perfect(measure):
    topics = np.random.default_rng(0).dirichlet(np.full(30, 0.1), 6)
    order = np.random.default_rng(1).permutation(6)
    recovery = topic_recovery(topics, 7 * topics[order], measure=measure)  # scale does not matter
    assert recovery.mean == pytest.approx(1)
    assert_array_equal(order[recovery.permutation], np.arange(6))


def test_recovery_equals_the_definition():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(8), 2)
    assert topic_recovery([p], [q]).similarity[0] == pytest.approx(1 - abs(p - q).sum() / 2)
    cosine = p @ q / np.sqrt((p @ p) * (q @ q))
    assert topic_recovery([p], [q], measure="cosine").mean == pytest.approx(cosine)


def test_recovery_with_too_few_or_too_many_topics():
    topics = np.eye(3)
    few = topic_recovery(topics, topics[[2, 0]])
    assert few.permutation.tolist() == [1, -1, 0] and few.similarity.tolist() == [1, 0, 1]
    many = topic_recovery(topics[[1]], topics)
    assert many.permutation.tolist() == [1] and many.mean == 1


def test_recovery_refuses():
    with pytest.raises(ValueError, match="3 and 2 columns"):
        topic_recovery(np.eye(3), np.eye(2))
    with pytest.raises(ValueError, match="topic_word_found"):
        topic_recovery(np.eye(2), [[0, 0], [1, 0]])
    with pytest.raises(ValueError, match="measure"):
        topic_recovery(np.eye(2), np.eye(2), measure="euclid")


# UCI bag of words


@pytest.mark.parametrize("compressed", [False, True])
def test_uci_bow(write, tmp_path, compressed):
    path = write(GOOD)
    if compressed:
        plain, path = path, tmp_path / "docword.toy.txt.gz"
        path.write_bytes(gzip.compress(plain.read_bytes()))
    bow = load_uci_bow(path, write("a\nb\nc\nd\n", "vocab.toy.txt"))
    assert bow.data.toarray().tolist() == [[2, 0, 1, 0], [0, 0, 0, 7], [1, 5, 0, 0]]
    assert bow.data.dtype == bow.data.indices.dtype == np.int32
    assert bow.feature_names.tolist() == ["a", "b", "c", "d"]
    assert load_uci_bow(str(path)).feature_names.tolist() == ["word1", "word2", "word3", "word4"]


def test_uci_bow_may_be_unsorted_or_empty(write):
    assert load_uci_bow(write("2\n2\n2\n2 2 1\n1 1 3\n")).data.toarray().tolist() == [[3, 0], [0, 1]]
    assert load_uci_bow(write("2\n3\n0\n")).data.shape == (2, 3)


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("3\n4\n5", "three\n4\n5", "line 1: must hold the number of documents"),
        ("3\n4\n5", "3\n-4\n5", "line 2: must hold the number of words"),
        ("3\n4\n5", "3\n4\n5.0", "line 3: must hold the number of entries"),
        ("3\n4\n5", "3\n4\n6", "promises 6 entries, but 5 follow: the file is truncated"),
        ("3\n4\n5", "3\n4\n4", "promises 4 entries, but 5 follow"),
        ("2 4 7", "4 4 7", "line 6: document must be an integer from 1 to 3"),
        ("2 4 7", "0 4 7", "line 6: document"),
        ("2 4 7", "2 5 7", "line 6: word must be an integer from 1 to 4"),
        ("2 4 7", "2 4 -7", "line 6: count"),
        ("2 4 7", "2 4 0", "line 6: count"),
        ("2 4 7", "2 4 7.5", "line 6: count"),
        ("2 4 7", "2 4 x", "line 6: count"),
        ("2 4 7", "2 4 99999999999999999999", "line 6: count"),
        ("2 4 7", "2 4 3000000000", "line 6: count"),
        ("2 4 7", "2 4", "line 6: must hold document, word and count"),
        ("2 4 7", "2 4 7 1", "line 6: must hold document"),
        ("3 2 5", "3 2", "line 8: must hold document"),
        ("3 2 5", "3 1 5", "line 8: this document and word were given on line 7"),
        ("1 1 2\n", "1 1\n", "line 4: must hold document"),
    ],
)
def test_corrupted_uci_file(write, old, new, message):
    assert GOOD.count(old) == 1
    with pytest.raises(ValueError, match=rf"docword\.toy\.txt.*{message}"):
        load_uci_bow(write(GOOD.replace(old, new)))


@pytest.mark.parametrize("line", range(6))
def test_no_error_shows_a_line_of_a_private_file(write, line):
    lines = GOOD.splitlines()
    lines[line] = "ann owes bob"
    with pytest.raises(ValueError, match=f"line {line + 1}") as error:
        load_uci_bow(write("\n".join(lines)))
    assert "ann" not in str(error.value)


def test_a_gensim_corpus_on_disk_has_floats(tmp_path):
    from gensim.corpora import MmCorpus

    bags = [[(0, 2), (1, 1)], [], [(1, 3)]]
    MmCorpus.serialize(str(tmp_path / "corpus.mm"), bags)
    corpus = MmCorpus(str(tmp_path / "corpus.mm"))
    assert isinstance(next(iter(corpus))[0][1], float)
    words = {0: "iron", 1: "zinc"}
    assert load_gensim_corpus(corpus, words).data.toarray().tolist() == [[2, 1], [0, 0], [0, 3]]
    for count in (1.5, float("nan"), float("inf"), -2.0):
        with pytest.raises(ValueError, match="document 0: must hold pairs"):
            load_gensim_corpus([[(0, count)]], words)
    with pytest.raises(ValueError, match=r"got a gensim corpus. skdplda.datasets.load_gensim_corpus"):
        PrivateCGSLDA(2).fit(bags)
    with pytest.raises(ValueError, match="got a gensim corpus"):
        PrivateCGSLDA(2).fit(corpus)


def test_no_error_shows_a_document_of_a_gensim_corpus():
    with pytest.raises(ValueError, match="document 1") as error:
        load_gensim_corpus([[(0, 1)], ["ann owes bob"]], {0: "zinc"})
    assert "ann" not in str(error.value)


def test_uci_bow_cut_gzip_and_wrong_vocabulary(write, tmp_path):
    path = tmp_path / "docword.cut.gz"
    path.write_bytes(gzip.compress(GOOD.encode())[:-12])
    with pytest.raises(ValueError, match=r"docword\.cut\.gz: the compressed file is truncated"):
        load_uci_bow(path)
    with pytest.raises(ValueError, match=r"vocabulary must have the 4 words .* got 3"):
        load_uci_bow(write(GOOD), ["a", "b", "c"])
    with pytest.raises(FileNotFoundError):
        load_uci_bow(tmp_path / "nowhere.txt")


@pytest.mark.parametrize("name, shape, n_tokens", [("kos", (3430, 6906), 467_714), ("nips", (1500, 12_419), 1_932_365)])
def test_uci_corpora(corpora, name, shape, n_tokens):
    bow = load_uci_bow(corpora / f"docword.{name}.txt.gz", corpora / f"vocab.{name}.txt")
    assert bow.data.shape == shape and bow.data.sum() == n_tokens
    assert len(bow.feature_names) == shape[1]


# Texts


def test_lee():
    lee = load_lee()
    assert len(lee.data) == len(lee.tokens) == 300
    assert all(isinstance(text, str) and text for text in lee.data)
    assert lee.tokens[0][:6] == ["hundreds", "of", "people", "have", "been", "forced"]
    assert all(word == word.lower() and word.isalpha() for tokens in lee.tokens for word in tokens)


POST = "From: someone\nSubject: x\n\nAnn wrote:\n> old\nnew words\nmore\n-- \nAnn\n"
POSTS = [
    {"split": "train", "label": "sci.space", "id": "1", "text": POST},
    {"split": "test", "label": "rec.autos", "id": "2", "text": "From: b\n\nfast car\n"},
    {"split": "train", "label": "alt.atheism", "id": "3", "text": "From: c\n\nbelief\n"},
]


@pytest.mark.parametrize("suffix, compress", [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress)])
def test_20newsgroups_from_a_file(tmp_path, suffix, compress):
    path = tmp_path / f"news.jsonl{suffix}"
    path.write_bytes(compress("".join(json.dumps(post) + "\n" for post in POSTS).encode()))
    train = load_20newsgroups("train", path=path)
    assert train.data == [POST.partition("\n\n")[2], "belief\n"]
    assert train.target_names == ["alt.atheism", "rec.autos", "sci.space"]
    assert train.target.tolist() == [2, 0]
    assert load_20newsgroups("test", path=path).target.tolist() == [1]
    assert load_20newsgroups("all", path=path, remove=()).data[0] == POST
    bare = load_20newsgroups("train", path=path, remove=("headers", "footers", "quotes"))
    assert bare.data[0] == "new words\nmore"


def test_20newsgroups_refuses(tmp_path):
    path = tmp_path / "news.jsonl"
    path.write_text(json.dumps(POSTS[0]) + "\n{broken\n")
    with pytest.raises(ValueError, match=r"news\.jsonl, line 2: must be a JSON object"):
        load_20newsgroups(path=path)
    path.write_text("[1, 2]\n")
    with pytest.raises(ValueError, match="line 1"):
        load_20newsgroups(path=path)
    with pytest.raises(ValueError, match="subset"):
        load_20newsgroups("dev", path=path)
    with pytest.raises(ValueError, match="remove"):
        load_20newsgroups(path=path, remove=("bodies",))
    with pytest.raises(ValueError, match="remove"):
        load_20newsgroups(path=path, remove="headers")


def test_20newsgroups_without_a_file_asks_scikit_learn(monkeypatch):
    from sklearn.utils import Bunch

    def fetch(**arguments):
        assert arguments == {"subset": "test", "remove": ("quotes",), "shuffle": False}
        return Bunch(data=["text"], target=np.array([0]), target_names=["a"], filenames=["/home"])

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fetch)
    assert set(load_20newsgroups("test", remove=("quotes",))) == {"data", "target", "target_names"}


def test_20newsgroups_corpus(corpora):
    train = load_20newsgroups(path=corpora / "20news_bydate_raw.jsonl.xz")
    assert len(train.data) == 11_314 and len(train.target_names) == 20
    assert not any(text.startswith("From:") for text in train.data[:100])


def test_news_corpus_has_real_words_and_the_same_topics_for_every_seed():
    first, again, other = (make_news_corpus(300, 60, 3, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.data.toarray(), again.data.toarray())
    np.testing.assert_array_equal(first.topic_word, other.topic_word)
    assert (first.data != other.data).nnz
    assert all(word.isalpha() for word in first.feature_names)
    lengths = np.asarray(first.data.sum(axis=1)).ravel()
    expected = (lengths[:, None] * first.doc_topic).sum(axis=0) @ first.topic_word
    found = np.asarray(first.data.sum(axis=0)).ravel()
    assert (np.abs(found - expected) < 6 * np.sqrt(expected) + 6).all()  # six deviations: false alarm below 1e-6
    with pytest.raises(ValueError, match="n_words must be at most 5000, got 5001"):
        make_news_corpus(10, 5001)
