"""Compiled reading of texts against scikit-learn's CountVectorizer and `re`: every character, any number of threads."""

import re
import sys
from collections import Counter

import numpy as np
import pytest
from internals import LETTERS, PATTERNS, TextReader, Words, count_words, read_texts, reading, tally
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import DPCountVectorizer
from skdplda.semantics import WordVectorEmbedder
from skdplda.vocabulary import TextEmbedder

CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1)]
# Latin, digits, accents of their own, sigma at the end of words and elsewhere, a capital I of two small characters,
# scripts of India and Thailand, small letters of other widths than the capital, letters beyond 2**16, half a pair.
ALPHABET = "aBzÉßñ_07٣ \t\n.-'\u0301ΣσοΑİIıǅȺKहिन्दाবাংไทย我𐐀𝟘😀\ud800\u200d·ª²"


def texts_of(rng, n, length=60):
    return ["".join(rng.choice(list(ALPHABET), rng.integers(0, length))) for _ in range(n)]


def read_words(texts, counter, **options):
    """Return the words of each text."""
    read = read_texts(texts, counter, **options)
    numbers, sizes = map(np.concatenate, zip(*read.parts, strict=True))
    return [[read.names[j] for j in part] for part in np.split(numbers, np.cumsum(sizes)[:-1])], read.names


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("lowercase", [True, False])
def test_every_character_is_cut_as_by_the_pattern(pattern, lowercase):
    """First, in the middle and alone; behind a digit; beside a sigma, with which Python makes the small letters."""
    counter = CountVectorizer(token_pattern=pattern, lowercase=lowercase)
    for first in range(0, len(CHARACTERS), 2**16):
        some = CHARACTERS[first : first + 2**16]
        texts = [" ".join(f"{c} {c}b a{c}b {c}{c} 1{c}b" for c in some)]
        texts += [" ".join(f"{c}bΣ aΣ{c}" for c in some)] if lowercase else []
        expected = [re.findall(pattern, text.lower() if lowercase else text) for text in texts]
        assert read_words(texts, counter)[0] == expected


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ngram_range": (1, 3), "stop_words": ["ab", "éb", "σσ"]},
        {"ngram_range": (2, 2), "lowercase": False},
        {"strip_accents": "unicode"},
        {"preprocessor": str.swapcase},
    ],
    ids=["words", "ngrams", "pairs", "accents", "preprocessor"],
)
@pytest.mark.parametrize("n_jobs", [None, 2, 3])
def test_words_and_counts_are_those_of_count_vectorizer(pattern, options, n_jobs, monkeypatch):
    monkeypatch.setattr(reading, "BATCH", 300)
    texts = texts_of(np.random.default_rng(3), 400)
    texts[7] = texts[7].encode("utf-8", "ignore")
    counter = CountVectorizer(token_pattern=pattern, **options)
    analyze = counter.build_analyzer()
    words, names = read_words(texts, counter, n_jobs=n_jobs)
    assert words == list(map(analyze, texts))
    assert names == list(dict.fromkeys(word for text in texts for word in analyze(text)))
    known = [*names[::3], "never", "é"]
    X = count_words(iter(texts), counter, known, n_jobs=n_jobs)
    expected = CountVectorizer(token_pattern=pattern, vocabulary=known, **options).transform(texts)
    assert X.shape == expected.shape and (expected != X).nnz == 0 and X.nnz == expected.nnz > 100
    np.testing.assert_array_equal(X.indices, expected.indices)
    short, _ = read_words(texts, counter, n_jobs=n_jobs, longest=4)
    assert short == [[word for word in text if len(word) <= 4] for text in words]


def test_counts_of_read_texts_are_those_of_their_words(monkeypatch):
    monkeypatch.setattr(reading, "BATCH", 200)
    texts = [*texts_of(np.random.default_rng(5), 200), "", ""]
    read = read_texts(texts, CountVectorizer(token_pattern=LETTERS))
    assert len(read) == len(texts)
    expected = CountVectorizer(token_pattern=LETTERS, vocabulary=read.names).transform(texts)
    for n_jobs in (1, 2):
        assert (read.counts(n_jobs) != expected).nnz == 0
    without = read.without(read.names[:5], 4)
    kept = [j for j, name in enumerate(read.names) if j >= 5 and len(name) <= 4]
    assert without.names == [read.names[j] for j in kept] and (without.counts() != expected[:, kept]).nnz == 0
    chosen = ["unknown", *without.names[::-2]]
    both = without.among(chosen)
    again = CountVectorizer(token_pattern=LETTERS, vocabulary=chosen).transform(texts)
    assert both.names == chosen and (both.counts() != again).nnz == 0


def test_no_texts_have_no_words():
    for n_jobs in (1, 2):
        read = read_texts([], CountVectorizer(), n_jobs=n_jobs)
        assert read.names == [] and read.counts().shape == (0, 0) and len(read) == 0
        assert count_words([], CountVectorizer(), ["tea"], n_jobs=n_jobs).shape == (0, 1)


def test_a_table_numbers_words_as_a_dictionary():
    rng = np.random.default_rng(0)
    first, second = (rng.integers(0, 10**6, 50_000).tolist() for _ in range(2))
    first, second = [f"w{i}é" for i in first], [f"w{i}é" for i in second]
    number = {}
    for word in first:
        number.setdefault(word, len(number))
    words = Words(first)
    assert len(words) == len(number) and words.names() == list(number)
    merged = words.merge(Words(second))
    expected = [number.setdefault(word, len(number)) for word in dict.fromkeys(second)]
    assert merged.tolist() == expected and words.names() == list(number)


def test_a_tally_counts_columns():
    rng = np.random.default_rng(1)
    sizes = rng.integers(0, 9, 300)
    numbers = rng.integers(0, 20, sizes.sum()).astype(np.int32)
    columns = rng.integers(-2, 7, 20).astype(np.int32)
    for named, n_columns in ((None, 20), (columns, 7)):
        start, found, counts = tally(numbers, sizes, n_columns, named)
        for i, part in enumerate(np.split(numbers, np.cumsum(sizes)[:-1])):
            own = Counter((part if named is None else named[part]).tolist())
            expected = sorted((j, n) for j, n in own.items() if j >= 0)
            here = slice(start[i], start[i + 1])
            assert list(zip(found[here].tolist(), counts[here].tolist(), strict=True)) == expected
        assert start[-1] == len(found) == len(counts)


def test_what_is_no_text_is_refused_by_the_kernel():
    reader = TextReader(Words(), Words())
    for texts in ((b"bytes",), ("text", None)):
        with pytest.raises(TypeError, match="a text must be a str"):
            reader.read(texts)


def test_threads_hold_few_texts_at_a_time(monkeypatch):
    monkeypatch.setattr(reading, "BATCH", 1000)
    alive, most = set(), []

    class Text(str):
        def __del__(self):
            alive.discard(id(self))

    def stream():
        for i in range(2000):
            text = Text(f"iron and zinc {i}")
            alive.add(id(text))
            most.append(len(alive))
            yield text
            del text

    assert count_words(stream(), CountVectorizer(), ["iron"], n_jobs=2).sum() == 2000
    assert max(most) < 100  # 13 texts a batch


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_the_texts_raise_is_raised(n_jobs, monkeypatch):
    monkeypatch.setattr(reading, "BATCH", 100)

    def broken():
        yield from ["iron and zinc"] * 50
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        DPCountVectorizer(5.0, n_jobs=n_jobs).fit(broken())


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@pytest.mark.parametrize(
    "options",
    [{}, {"ngram_range": (1, 2)}, {"method": "policy_gaussian"}, {"tokenizer": str.split}, {"analyzer": "char"}],
    ids=["words", "levels", "policy", "tokenizer", "char"],
)
def test_private_words_do_not_depend_on_threads(options, monkeypatch):
    monkeypatch.setattr(reading, "BATCH", 500)
    rng = np.random.default_rng(4)
    texts = [" ".join(rng.choice(["iron", "Zinc", "ΟΔΟΣ", "große", "plum", f"own{i}"], 8)) for i in range(900)]
    found = []
    for n_jobs in (None, 2, 3):
        vectorizer = DPCountVectorizer(3.0, random_state=7, n_jobs=n_jobs, **options)
        X = vectorizer.fit_transform(texts)
        assert (vectorizer.transform(texts) != X).nnz == 0
        found.append((vectorizer.vocabulary_, vectorizer.noisy_weights_.tolist(), X.toarray().tolist()))
    assert found[0] == found[1] == found[2] and len(found[0][0]) >= 3


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@pytest.mark.parametrize(
    "settings", [{}, {"stop_words": None, "binary": True}, {"lowercase": False}, {"ngram_range": (1, 2)}],
    ids=["alike", "all words", "capitals", "ngrams"],
)  # fmt: skip
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_texts_read_once_for_both_are_those_read_by_each(settings, n_jobs):
    rng = np.random.default_rng(8)
    words = ["iron", "the", "zinc", "plum", "große", "pear"]
    texts = [" ".join(rng.choice([*words, "Iron", f"own{i}"], 8)) for i in range(800)]
    embedder = WordVectorEmbedder((words, rng.normal(size=(6, 5))), n_jobs=n_jobs)
    vectorizer = DPCountVectorizer(3.0, random_state=7, n_jobs=n_jobs, **settings)
    both = TextEmbedder(embedder, vectorizer)
    X = both.fit_transform(texts)
    counts = vectorizer.fit(texts).transform(texts)
    np.testing.assert_array_equal(X.vectors, WordVectorEmbedder(embedder.keyed_vectors).transform(texts))
    assert X.words.tolist() == vectorizer.get_feature_names_out().tolist() and (X.counts != counts).nnz == 0
    again = both.transform(iter(texts))
    np.testing.assert_array_equal(again.vectors, X.vectors)
    assert (again.counts != counts).nnz == 0
