"""Semantic units and word similarity."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from gensim.models import KeyedVectors
from internals import points as _points
from internals import similarity as _similarity
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skdplda import PCTD, PrivateCGSLDA, privacy_guarantee
from skdplda.datasets import make_lda_corpus
from skdplda.metrics import make_coherence_scorer
from skdplda.semantics import SemanticUnitVectorizer, UnitMatrix, word_similarity

TEXT = 'The cat sat. "A dog ran!" It saw a cat, a dog and a fox\n\nA fox sat'
WORDS = ["cat", "dog", "fox", "sat", "ran", "saw"]


def units_of(X, words=WORDS):
    """Return the units as sorted lists of words."""
    rows = X.counts.toarray()
    return [sorted(np.repeat(words, row).tolist()) for row in rows]


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("sentence", [["cat", "sat"], ["dog", "ran"], ["cat", "dog", "fox", "saw"], ["fox", "sat"]]),
        ("paragraph", [["cat", "cat", "dog", "dog", "fox", "ran", "sat", "saw"], ["fox", "sat"]]),
        (3, [["cat", "sat"], ["dog", "ran"], ["cat", "dog", "saw"], ["fox"], ["fox", "sat"]]),
        (1, [[w] for w in ["cat", "sat", "dog", "ran", "saw", "cat", "dog", "fox", "fox", "sat"]]),
        (lambda text: [text[:11], ["dog", "fox", "unknown"]], [["cat", "sat"], ["dog", "fox"]]),
    ],
)
def test_units(unit, expected):
    X = SemanticUnitVectorizer(unit, vocabulary=WORDS).transform([TEXT])
    assert units_of(X) == expected
    assert X.start.tolist() == [0, len(expected)]


def test_a_sentence_ends_before_white_space_only():
    vectorizer = SemanticUnitVectorizer("sentence", vocabulary=["3.5", "ok", "no"], token_pattern=r"[\w.]*\w")
    X = vectorizer.transform(["ok 3.5 ok?! no (ok.) no"])
    assert units_of(X, ["3.5", "ok", "no"]) == [["3.5", "ok", "ok"], ["no", "ok"], ["no"]]


def test_pre_tokenised_documents():
    flat = [["cat", "sat", "dog", "the", "ran"], []]
    X = SemanticUnitVectorizer(2, vocabulary=WORDS, stop_words=["the"]).transform(flat)
    assert units_of(X) == [["cat", "sat"], ["dog", "ran"]]
    assert X.start.tolist() == [0, 2, 2]
    nested = [[["cat", "sat"], ["dog"]]]
    assert units_of(SemanticUnitVectorizer("sentence", vocabulary=WORDS).transform(nested)) == [["cat", "sat"], ["dog"]]
    with pytest.raises(ValueError, match="lists of sentences; got a list"):
        SemanticUnitVectorizer("sentence", vocabulary=WORDS).transform(flat)
    with pytest.raises(ValueError, match="documents that are text; got a list"):
        SemanticUnitVectorizer("paragraph", vocabulary=WORDS).transform(nested)


def test_without_skipping_a_word_changes_its_own_unit_only():
    """What token-level privacy of a text needs; with skipping, the words behind move up."""
    before, after = "cat sat dog ran fox saw cat", "cat unknown dog ran fox saw cat"
    keep = SemanticUnitVectorizer(2, vocabulary=WORDS, skip_unknown=False, stop_words=["ran"])
    assert units_of(keep.transform([before])) == [["cat", "sat"], ["dog"], ["fox", "saw"], ["cat"]]
    X, Y = keep.transform([before]), keep.transform([after])
    assert (X.counts - Y.counts).nnz == 1
    stop = keep.transform(["ran ran dog"])
    assert units_of(stop) == [[], ["dog"]]  # an empty unit stays
    skip = keep.set_params(skip_unknown=True)
    assert abs(skip.transform([before]).counts[:3] - skip.transform([after]).counts[:3]).sum() > 2


def test_documents_do_not_see_each_other():
    texts = [TEXT, "A fox.", "", "dog dog. cat"]
    vectorizer = SemanticUnitVectorizer(2, vocabulary=WORDS)
    X = vectorizer.transform(texts)
    for i, text in enumerate(texts):
        np.testing.assert_array_equal(vectorizer.transform([text]).counts.toarray(), X[[i]].counts.toarray())


def test_the_vocabulary_is_learned_or_given():
    vectorizer = SemanticUnitVectorizer(stop_words="english").fit([TEXT])
    assert list(vectorizer.get_feature_names_out()) == ["cat", "dog", "fox", "ran", "sat", "saw"]
    given = SemanticUnitVectorizer(vocabulary={"fox": 1, "cat": 0}).fit([TEXT])
    assert list(given.get_feature_names_out()) == ["cat", "fox"]
    assert list(SemanticUnitVectorizer(vocabulary=["fox", "cat"]).get_feature_names_out()) == ["fox", "cat"]
    with pytest.raises(NotFittedError):
        SemanticUnitVectorizer().get_feature_names_out()
    assert given.transform([TEXT]).shape == (1, 2)
    assert vectorizer.build_analyzer()("The cat sat") == ["cat", "sat"]
    assert vectorizer.build_analyzer()([["cat"], ["the", "sat"]]) == ["cat", "sat"]


def test_bad_text():
    with pytest.raises(ValueError, match="one str"):
        SemanticUnitVectorizer(vocabulary=WORDS).transform(TEXT)
    with pytest.raises(ValueError, match="no words to learn"):
        SemanticUnitVectorizer().fit(["", "."])
    with pytest.raises(ValueError, match="empty vocabulary"):
        SemanticUnitVectorizer(vocabulary=[]).fit([TEXT])
    with pytest.raises(NotFittedError):
        SemanticUnitVectorizer().transform([TEXT])
    for unit in (str.upper, len):
        with pytest.raises(ValueError, match="unit must return a list of units"):
            SemanticUnitVectorizer(unit, vocabulary=WORDS).transform([TEXT])
    for unit in (0, 2.5, "word"):
        for method in ("fit", "transform"):
            with pytest.raises(ValueError, match="'unit' parameter"):
                getattr(SemanticUnitVectorizer(unit, vocabulary=WORDS), method)([TEXT])
    with pytest.warns(UserWarning, match="vocabulary has 'Cat', which text in small letters has not"):
        SemanticUnitVectorizer(vocabulary=["Cat"]).transform(["Cat"])


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (None, "iterable of documents; got a NoneType"),
        ([None], "got NoneType"),
        ([3.5], "got float"),
        ([b"cat"], "got bytes"),
        ([["cat", 1]], "must be str; got an int"),
        ([[["cat"], "dog"]], "one that has both"),
        ([[[["cat"]]]], "must be str; got"),
    ],
)
def test_bad_documents(documents, message):
    with pytest.raises(ValueError, match=message):
        SemanticUnitVectorizer(2, vocabulary=WORDS).transform(documents)


def test_an_iterator_is_read_once():
    X = SemanticUnitVectorizer().fit_transform(text for text in [TEXT, "A fox"])
    assert X.shape == (2, 9) and X[-1].n_units == 1
    assert SemanticUnitVectorizer(vocabulary=WORDS).fit_transform(iter([TEXT])).shape == (1, 6)


def random_units(seed=0, n_documents=7, n_words=5):
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(rng.integers(0, 4, n_documents))])
    return UnitMatrix(start, sp.csr_array(rng.poisson(0.6, size=(start[-1], n_words))))


@pytest.mark.parametrize(
    "key", [slice(1, 5), [4, 0, 4], np.array([True, False, True, True, False, False, True]), -1, (slice(2), ...), []]
)
def test_units_are_sliced_by_documents(key):
    X = random_units()
    part = X[key]
    rows = np.atleast_1d(np.arange(7)[key[0] if isinstance(key, tuple) else key]).astype(int)
    assert part.shape == (len(rows), 5)
    for i, row in enumerate(rows):
        expected = X.counts.toarray()[X.start[row] : X.start[row + 1]]
        np.testing.assert_array_equal(part.counts.toarray()[part.start[i] : part.start[i + 1]], expected)
    np.testing.assert_array_equal(part.to_counts().toarray(), X.to_counts().toarray()[rows])


def test_units_of_counts():
    X = sp.csr_array([[2, 0, 1], [0, 0, 0], [0, 3, 0]])
    units = UnitMatrix.from_counts(X)
    assert units.n_units == 6
    assert (units.counts.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(units.to_counts().toarray(), X.toarray())


@pytest.mark.parametrize(
    ("start", "counts", "message"),
    [
        ([0, 1], [[1], [1]], "start must rise from 0 to the 2 rows"),
        ([0, 2, 1, 2], [[1], [1]], "start must rise"),
        ([0, 1.5, 2], [[1], [1]], "start must rise"),
        ([0, 1], [[-1]], "non-negative integers"),
        ([0, 1], [[0.5]], "non-negative integers"),
        ([0, 1], [[np.nan]], "non-negative integers"),
        ([0, 1], [[2.0**31]], "non-negative integers"),
    ],
)
def test_bad_units(start, counts, message):
    with pytest.raises(ValueError, match=message):
        UnitMatrix(start, counts)


def test_units_have_no_slices_of_words():
    with pytest.raises(IndexError, match="documents only"):
        random_units()[:, :2]


def test_units_are_no_array_to_models_of_words():
    with pytest.raises(TypeError, match=r"take to_counts\(\)"):
        PrivateCGSLDA(2).fit(random_units())


@pytest.fixture(scope="module")
def texts():
    corpus = make_lda_corpus(60, 30, 3, mean_length=30, random_state=0)
    return [". ".join(np.repeat(corpus.feature_names, row)) for row in corpus.data.toarray()], corpus.feature_names


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_pipelines_searches_and_cross_validation(texts):
    documents, words = texts
    pipe = make_pipeline(SemanticUnitVectorizer(3, vocabulary=words), PCTD(2, max_iter=2, random_state=0))
    search = GridSearchCV(
        pipe, {"pctd__epsilon": [1.0, 5.0], "semanticunitvectorizer__unit": [1, "sentence"]}, cv=3
    ).fit(documents)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert pipe.fit_transform(documents).shape == (60, 2)
    X = pipe[0].transform(documents)
    scores = cross_val_score(PCTD(2, max_iter=2), X, cv=3)
    assert scores.shape == (3,) and np.isfinite(scores).all()
    for measure in ("c_npmi", "u_mass"):
        assert np.isfinite(make_coherence_scorer(measure, n_words=3)(pipe, documents))


def test_a_pipeline_has_the_guarantee_of_its_model():
    pipe = make_pipeline(SemanticUnitVectorizer(3, vocabulary=WORDS), PCTD(2))
    assert privacy_guarantee(pipe).epsilon == 5.0
    cut = make_pipeline(SemanticUnitVectorizer(str.splitlines, vocabulary=WORDS), PCTD(2))
    assert any("treats each document on its own" in text for text in privacy_guarantee(cut).assumptions)
    with pytest.raises(ValueError, match="public words as vocabulary"):
        privacy_guarantee(make_pipeline(SemanticUnitVectorizer(3), PCTD(2)))


@pytest.mark.parametrize("unit", [1, 3])
def test_a_guarantee_for_words_needs_units_that_stay(unit):
    """One word in the place of another moves the words behind it where unknown words take no place."""
    text, other = "cat dog fox sat ran saw cat dog fox", "the dog fox sat ran saw cat dog fox"
    vectorizer = SemanticUnitVectorizer(unit, vocabulary=WORDS)
    pipe = make_pipeline(vectorizer, PCTD(2, noise_on="units"))
    X, Y = vectorizer.transform([text]), vectorizer.transform([other])
    assert X.shape != Y.shape or X.n_units != Y.n_units or (X.counts != Y.counts).nnz > 2
    with pytest.raises(ValueError, match="skip_unknown=False"):
        privacy_guarantee(pipe)
    pipe.set_params(semanticunitvectorizer__skip_unknown=False)
    X, Y = vectorizer.transform([text]), vectorizer.transform([other])
    assert X.n_units == Y.n_units and (X.counts != Y.counts).nnz == 1
    assert privacy_guarantee(pipe).unit == "token"
    sentences = make_pipeline(SemanticUnitVectorizer("sentence", vocabulary=WORDS), PCTD(2, noise_on="units"))
    assert privacy_guarantee(sentences).status == "proven"


# --- similarity -----------------------------------------------------------------------------------------


def dense_similarity(vectors, threshold, top_n):
    """Eq. (10), word by word."""
    n = len(vectors)
    R = np.eye(n)
    for a in range(n):
        cosine = [
            vectors[a] @ vectors[b] / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b]) if b != a else -2.0
            for b in range(n)
        ]
        for b in np.argsort(-np.array(cosine), kind="stable")[: top_n or n]:
            if cosine[b] >= threshold:
                R[a, b] = R[b, a] = cosine[b]
    return R


@pytest.mark.parametrize("top_n", [None, 1, 4])
@pytest.mark.parametrize("cells", [2**25, 100])
def test_similarity_is_the_dense_one(top_n, cells, monkeypatch):
    monkeypatch.setattr(_similarity, "BLOCK_CELLS", cells)
    vectors = np.random.default_rng(0).normal(size=(40, 3))
    words = [f"w{i}" for i in range(40)]
    R = word_similarity(words, vectors, threshold=0.7, top_n=top_n, normalize=False)
    dense = dense_similarity(vectors, 0.7, top_n)
    np.testing.assert_allclose(R.toarray(), dense, atol=1e-6)
    even = word_similarity(words, vectors, threshold=0.7, top_n=top_n)
    scale = np.diag(dense.sum(axis=1) ** -0.5)
    np.testing.assert_allclose(even.toarray(), scale @ dense @ scale, atol=1e-6)
    for found in (R, even):
        assert found.dtype == np.float64
        assert abs(found - found.T).max() == 0


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_cosines_are_exact_in_whole_numbers(size):
    """So that no processor adds them up otherwise; the bound holds for vectors of which rounding makes most, too."""
    rng = np.random.default_rng(1)
    vectors = np.concatenate([rng.normal(size=(20, 300)), np.ones((2, 300)), np.eye(2, 300)]) * size
    _, points = _points([f"w{i}" for i in range(24)], vectors)
    whole = points.astype(np.int64)
    np.testing.assert_array_equal(whole, points)
    products = [[sum(int(x) * int(y) for x, y in zip(a, b, strict=True)) for b in whole] for a in whole]
    assert max(sum(abs(int(x)) * abs(int(y)) for x, y in zip(a, b, strict=True)) for a in whole for b in whole) < 2**53
    np.testing.assert_array_equal(points @ points.T, np.array(products, dtype=object).astype(np.float64))
    cosines = np.array([float(Fraction(int(p), 2**52)) for row in products for p in row])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(cosines, (unit @ unit.T).ravel(), atol=1e-6)


def test_vectors_by_name_and_words_without_one():
    words = ["tea", "nothing", "coffee", "zero", "nan"]
    vectors = {"tea": [3.0, 4.0], "coffee": [4.0, 3.0], "zero": [0.0, 0.0], "nan": [np.nan, 1.0], "other": [1.0, 0.0]}
    keyed = KeyedVectors(2)
    keyed.add_vectors(list(vectors), np.array(list(vectors.values()), dtype=np.float32))
    expected = np.eye(5)
    expected[0, 2] = expected[2, 0] = 0.96
    for source in (vectors, keyed):
        np.testing.assert_allclose(word_similarity(words, source, normalize=False).toarray(), expected, atol=1e-6)
    np.testing.assert_array_equal(word_similarity(["a", "b"], {}).toarray(), np.eye(2))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((["a", "b"], {"a": [1, 2], "b": [1, 2, 3]}), {}, "same length"),
        ((["a", "b"], np.ones((3, 2))), {}, "one row of numbers for each of the 2 words"),
        ((["a", "a"], np.ones((2, 2))), {}, "distinct"),
        (("ab", np.ones((2, 2))), {}, "sequence of distinct words"),
        ((["a"], np.ones((1, 2))), {"threshold": 0.0}, "threshold"),
        ((["a"], np.ones((1, 2))), {"threshold": "half"}, "threshold"),
        ((["a"], np.ones((1, 2))), {"top_n": 0}, "top_n"),
    ],
)
def test_bad_vectors(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        word_similarity(*arguments, **options)


def test_counts_of_a_document_do_not_wrap_around():
    """Three units of one word whose sum in 32 bits is 1, or 0: a bound on the document rests on that sum."""
    most = 2**31 - 1
    for last in (3, 2):
        X = UnitMatrix([0, 3], [[most], [most], [last]])
        assert X.to_counts().toarray().tolist() == [[2 * most + last]]
