"""Metrics against slow references, gensim and planted topics."""

import math
import pickle
import sys
from importlib.machinery import PathFinder
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from internals import likelihood, rows
from numpy.testing import assert_allclose
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skdplda import PrivateCGSLDA, release
from skdplda.datasets import load_lee, make_lda_corpus
from skdplda.metrics import (
    coherence,
    gensim_dictionary,
    held_out_log_likelihood,
    log_likelihood,
    make_coherence_scorer,
    make_gensim_model,
    missing_mass,
    perplexity,
    score,
    token_mass,
    topic_diversity,
    u_mass_coherence,
    unigram_perplexity,
)

METHODS = ["document-completion", "fold-in"]


@pytest.fixture(scope="module")
def corpus():
    return make_lda_corpus(120, 80, 4, mean_length=40, random_state=0)


@pytest.fixture(scope="module")
def topics(corpus):
    smooth = corpus.topic_word + 1e-4
    return smooth / smooth.sum(axis=1, keepdims=True)


def slow_halves(row):
    """Expand a document's tokens in column order and deal them out in turn."""
    tokens = [w for w, c in enumerate(row) for _ in range(int(c))]
    return tokens[::2], tokens[1::2]


def slow_theta(tokens, phi, alpha, max_iter, tol):
    weight = alpha + len(tokens) / len(alpha)
    for _ in range(max_iter if tokens else 0):
        r = np.array([phi[:, w] * weight / (phi[:, w] * weight).sum() for w in tokens])
        new = alpha + r.sum(axis=0)
        if (abs(new - weight) <= tol * weight).all():
            break
        weight = new
    return weight / weight.sum()


def slow_held_out(X, phi, alpha, method):
    total = n_tokens = 0
    for row in X:
        observed, held_out = slow_halves(row)
        if method == "fold-in":
            observed = held_out = observed + held_out
        theta = slow_theta(observed, phi, alpha, 100, 1e-4)
        total += sum(math.log(theta @ phi[:, w]) for w in held_out)
        n_tokens += len(held_out)
    return total, n_tokens


# Likelihood


def test_log_likelihood_equals_the_definition(corpus, topics, monkeypatch):
    theta = corpus.doc_topic.astype(float)
    theta /= theta.sum(axis=1, keepdims=True)
    X = corpus.data.toarray()
    expected = (X * np.log(theta @ topics)).sum(axis=1)
    assert_allclose(log_likelihood(corpus.data, topics, theta), expected, rtol=1e-12)
    monkeypatch.setattr(likelihood, "_CHUNK", 20)
    assert_allclose(log_likelihood(X, topics, theta), expected, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_held_out_equals_the_slow_reference(corpus, topics, method):
    alpha = np.array([0.1, 0.4, 0.2, 0.9])
    X = corpus.data[:25].toarray()
    X[3] = 0
    X[4] = np.eye(80)[7]  # one token
    found = held_out_log_likelihood(X, topics, doc_topic_prior=alpha, method=method)
    assert_allclose(found, slow_held_out(X, topics, alpha, method), rtol=3e-6)  # to its tolerance of 1e-4
    finer = held_out_log_likelihood(X, topics, doc_topic_prior=alpha, method=method, tol=1e-9, max_iter=5000)
    assert_allclose(found, finer, rtol=1e-6)
    assert score(X, topics, doc_topic_prior=alpha, method=method) == pytest.approx(found[0] / found[1])
    assert perplexity(X, topics, doc_topic_prior=alpha, method=method) == pytest.approx(math.exp(-found[0] / found[1]))


def test_presence_bits_alternate_words():
    phi = np.full((1, 6), 0.1)
    phi[0, [1, 4]] = 0.3  # the second and the fourth word present
    X = [[1, 1, 0, 1, 1, 1]]
    assert_allclose(held_out_log_likelihood(X, phi), (2 * math.log(0.3), 2))


@pytest.mark.parametrize("method", METHODS)
def test_batches_formats_and_threads_do_not_matter(corpus, topics, method, monkeypatch):
    X = corpus.data
    whole = held_out_log_likelihood(X, topics, method=method)
    parts = [held_out_log_likelihood(X[i : i + 7], topics, method=method) for i in range(0, 120, 7)]
    assert_allclose(np.sum(parts, axis=0), whole, rtol=1e-13)
    assert held_out_log_likelihood(X, topics, method=method, n_threads=3) == whole
    for same in (X.toarray(), X.astype(float), X.tocsc(), sp.coo_array(X), X.toarray().tolist()):
        assert held_out_log_likelihood(same, topics, method=method) == whole
    fine = held_out_log_likelihood(X, topics, method=method, tol=1e-9)
    monkeypatch.setattr(rows, "CHUNK", 400)  # a few documents at a time
    assert held_out_log_likelihood(X, topics, method=method) == whole
    assert held_out_log_likelihood(X, topics, method=method, tol=1e-9) == fine
    with pytest.raises(ValueError, match="method must be one of"):
        held_out_log_likelihood(np.zeros((0, 2), int), [[0.5, 0.5]], method="halves")
    with pytest.raises(ValueError, match="word 1 of document 99 has probability 0"):
        held_out_log_likelihood(np.tile([1, 0], (100, 1)) + np.arange(200).reshape(100, 2) // 199, [[1.0, 0.0]])


def test_unsorted_input_counts_the_same_and_is_left_alone(corpus, topics):
    X = corpus.data[:20].copy()
    order = np.concatenate([np.arange(X.indptr[i], X.indptr[i + 1])[::-1] for i in range(20)])
    shuffled = sp.csr_matrix((X.data[order], X.indices[order], X.indptr), shape=X.shape)
    before = shuffled.indices.copy()
    assert held_out_log_likelihood(shuffled, topics) == held_out_log_likelihood(X, topics)
    assert (shuffled.indices == before).all()


def test_sample_weight_repeats_documents(corpus, topics):
    X = corpus.data[:10]
    weight = np.array([0, 1, 2, 3, 0, 1, 1, 2, 0, 1])
    repeated = X[np.repeat(np.arange(10), weight)]
    assert_allclose(held_out_log_likelihood(X, topics, sample_weight=weight), held_out_log_likelihood(repeated, topics))
    assert unigram_perplexity(X, X, sample_weight=weight) == pytest.approx(unigram_perplexity(X, repeated))


def test_single_precision_topics(corpus, topics):
    assert perplexity(corpus.data, topics.astype(np.float32)) == pytest.approx(
        perplexity(corpus.data, topics), rel=1e-4
    )


def test_planted_topics_beat_the_unigram(corpus, topics):
    planted = perplexity(corpus.data, topics, doc_topic_prior=0.1)
    unigram = unigram_perplexity(corpus.data, corpus.data)
    uniform = perplexity(corpus.data, np.full((2, 80), 1 / 80))
    assert uniform == pytest.approx(80)
    assert planted < 0.7 * unigram < 0.7 * uniform


def test_fold_in_is_optimistic(corpus, topics):
    """On the same tokens: proportions that have seen them against proportions that have not."""
    alpha = np.full(4, 0.25)
    halves = [slow_halves(row) for row in corpus.data.toarray()]
    held_out = np.array([np.bincount(half, minlength=80) for _, half in halves])
    theta = np.array([slow_theta(first + second, topics, alpha, 100, 1e-4) for first, second in halves])
    seen = log_likelihood(held_out, topics, theta).sum() / held_out.sum()
    assert seen > score(corpus.data, topics) + 0.01


@pytest.mark.parametrize("method", METHODS)
def test_unigram_is_the_model_of_one_topic(corpus, method):
    train, test = corpus.data[:60], corpus.data[60:]
    counts = np.asarray(train.sum(axis=0)).ravel() + 1.0
    one_topic = perplexity(test, [counts / counts.sum()], method=method)
    assert unigram_perplexity(train, test, method=method) == pytest.approx(one_topic)
    assert unigram_perplexity(counts / counts.sum(), test, method=method) == pytest.approx(one_topic)


@pytest.mark.parametrize(
    "X",
    [np.zeros((0, 80), int), np.zeros((3, 80), int), np.eye(80, dtype=int)],
    ids=["empty", "zero", "single"],
)
def test_nothing_held_out_is_said(topics, X):
    assert held_out_log_likelihood(X, topics) == (0.0, 0.0)
    for judge in (score, perplexity):
        with pytest.raises(ValueError, match="at least one held-out token"):
            judge(X, topics)
    with pytest.raises(ValueError, match="at least one held-out token"):
        unigram_perplexity(np.full(80, 1 / 80), X)


@pytest.mark.parametrize(
    "X, message",
    [
        ([[1, -1]], "X must hold non-negative integer counts"),
        ([[1, 0.5]], "X must hold non-negative integer counts"),
        ([[1, np.nan]], "X must hold non-negative integer counts"),
        ([[1, np.inf]], "X must hold non-negative integer counts"),
        ([[1, 2**31]], "X must hold non-negative integer counts"),
        ([["a", "b"]], "X must"),
        ([1, 2], "X must have two dimensions"),
        ([[1, 2, 3]], "2 columns; got 3"),
    ],
)
def test_refuses_what_is_no_count(X, message):
    with pytest.raises(ValueError, match=message):
        perplexity(X, [[0.5, 0.5]])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"topic_word": [[0.5, 0.5], [3, 4]]}, "row 1 has minimum 3 and sum 7"),
        ({"topic_word": [[1.5, -0.5]]}, "row 0 has minimum -0.5"),
        ({"topic_word": [[np.nan, 0.5]]}, "row 0"),
        ({"topic_word": [0.5, 0.5]}, "two dimensions"),
        ({"topic_word": [[1.0, 0.0]]}, "word 1 of document 0 has probability 0"),
        ({"doc_topic_prior": 0}, "doc_topic_prior"),
        ({"doc_topic_prior": [0.1, 0.2]}, "doc_topic_prior"),
        ({"method": "left-to-right"}, "method"),
        ({"max_iter": -1}, "max_iter must be an integer of at least 0"),
        ({"tol": np.nan}, "tol must be a number"),
        ({"n_threads": 0}, "n_threads"),
        ({"sample_weight": [1, 2]}, "sample_weight"),
        ({"sample_weight": [-1]}, "sample_weight"),
    ],
)
def test_refuses_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        perplexity([[2, 2]], **{"topic_word": [[0.5, 0.5]], **options})


def test_log_likelihood_refuses():
    with pytest.raises(ValueError, match="doc_topic must have shape"):
        log_likelihood([[1, 1]], [[0.5, 0.5]], [[0.5, 0.5]])
    with pytest.raises(ValueError, match="smoothing"):
        unigram_perplexity([[1, 1]], [[1, 1]], smoothing=-1)
    with pytest.raises(ValueError, match="has probability 0"):
        unigram_perplexity([[1, 0]], [[1, 1]], smoothing=0)
    with pytest.raises(ValueError, match="at least one training token"):
        unigram_perplexity([[0, 0]], [[1, 1]], smoothing=0)


# Diversity and UMass


def test_topic_diversity():
    weights = np.array([[5, 4, 3, 0, 0, 0], [0, 0, 0, 3, 4, 5], [5, 4, 3, 0, 0, 0]])
    assert topic_diversity(weights[:2], n_words=3) == 1
    assert topic_diversity(weights, n_words=3) == pytest.approx(6 / 9)
    assert topic_diversity(weights[[0, 2]], n_words=3) == 0.5
    assert topic_diversity(weights, n_words=25) == pytest.approx(1 / 3)  # the whole vocabulary
    with pytest.raises(ValueError, match="n_words"):
        topic_diversity(weights, n_words=0)
    with pytest.raises(ValueError, match="topic_word"):
        topic_diversity([1, 2])


def slow_u_mass(words, X, eps=1.0):
    """Sum over pairs, the earlier word in the denominator."""
    present = np.asarray(X) > 0
    total = 0.0
    for earlier, later in combinations(words, 2):
        together = (present[:, earlier] & present[:, later]).sum()
        total += math.log((together + eps) / max(present[:, earlier].sum(), 1))
    return total


def test_u_mass_equals_the_definition(corpus, topics):
    X = corpus.data.toarray()
    top = np.argsort(-topics, axis=1, kind="stable")[:, :7]
    expected = [slow_u_mass(words, X) for words in top]
    assert_allclose(u_mass_coherence(topics, corpus.data, n_words=7), expected)
    assert_allclose(u_mass_coherence(top, X, n_words=7), expected)
    assert_allclose(u_mass_coherence([list(top[0]), list(top[1][:3])], X), [expected[0], slow_u_mass(top[1][:3], X)])


def test_u_mass_equals_gensim_at_its_own_smoothing(corpus, topics):
    """gensim: the mean over pairs, and 1e-12 of the number of documents in place of 1."""
    names = corpus.feature_names
    ours = u_mass_coherence(topics, corpus.data, n_words=8, eps=1e-12 * 120) / 28
    theirs = coherence(topics, corpus.data, names, measure="u_mass", n_words=8)
    assert ours.mean() == pytest.approx(theirs, rel=1e-9)


def test_u_mass_is_finite_for_words_of_no_document():
    X = [[1, 1, 0, 0], [1, 0, 0, 0]]
    assert u_mass_coherence([[2, 3], [2, 0]], X).tolist() == [0, 0]
    assert u_mass_coherence([[0, 2]], X).tolist() == [math.log(1 / 2)]
    assert np.isfinite(u_mass_coherence(np.ones((2, 4)), np.zeros((3, 4)))).all()


def test_u_mass_refuses():
    X = np.ones((2, 4))
    for topics in ([[0, 4]], [[-1, 0]], [[0.5, 1.0]], [[]]):
        with pytest.raises(ValueError, match="topics must hold"):
            u_mass_coherence(topics, X)
    with pytest.raises(ValueError, match="eps"):
        u_mass_coherence([[0, 1]], X, eps=0)
    with pytest.raises(ValueError, match="n_words"):
        u_mass_coherence([[0, 1]], X, n_words=0)


# gensim

TEXTS = [["cat", "dog", "pet"], ["dog", "cat"], ["tax", "law"], ["law", "tax", "vote"], [], ["pet", "vote"]]
NAMES = ["cat", "dog", "pet", "tax", "law", "vote", "absent", "missing"]
WORST = {"u_mass": math.log(1e-12), "c_v": 0, "c_uci": math.log(1e-12), "c_npmi": -1}


def weights_of(*topics):
    """Return weights whose top words are as given."""
    weights = np.zeros((len(topics), len(NAMES)))
    for row, words in zip(weights, topics, strict=True):
        row[[NAMES.index(word) for word in words]] = np.arange(len(words), 0, -1)
    return weights


def test_gensim_dictionary():
    vectorizer = CountVectorizer().fit(["some words", "more words"])
    dictionary = gensim_dictionary(vectorizer)
    assert dictionary.token2id == {"more": 0, "some": 1, "words": 2}
    assert [dictionary[i] for i in range(3)] == ["more", "some", "words"]
    assert dictionary.doc2bow(["words", "words", "other"]) == [(2, 2)]
    with pytest.raises(ValueError, match="distinct"):
        gensim_dictionary(["a", "a"])
    for wrong in ("word", [1, 2]):
        with pytest.raises(ValueError, match="features"):
            gensim_dictionary(wrong)


@pytest.mark.parametrize("measure", WORST)
def test_coherence_equals_gensim_where_all_words_are_present(measure):
    from gensim.models.coherencemodel import CoherenceModel

    class Model:
        def get_topics(self):
            return weights_of(["cat", "dog", "pet"], ["tax", "dog", "law"])

    dictionary = gensim_dictionary(NAMES)
    corpus = [dictionary.doc2bow(text) for text in TEXTS]
    theirs = CoherenceModel(
        model=Model(),
        texts=[text for text in TEXTS if text],
        corpus=corpus,
        dictionary=dictionary,
        coherence=measure,
        topn=3,
        processes=1,
    ).get_coherence()
    assert coherence(Model(), TEXTS, dictionary, measure=measure, n_words=3) == pytest.approx(theirs)
    assert coherence(Model(), TEXTS, NAMES, measure=measure, n_words=3) == pytest.approx(theirs)


@pytest.mark.parametrize("measure", WORST)
def test_coherence_is_finite_for_absent_words(measure):
    """gensim alone gives nan or infinity here."""

    def value(*topics, n_words=3):
        return coherence(weights_of(*topics), TEXTS, NAMES, measure=measure, n_words=n_words)

    assert value(["cat", "absent", "dog"]) == pytest.approx(value(["cat", "dog"], n_words=2))
    assert value(["cat", "absent", "missing"]) == pytest.approx(WORST[measure])
    assert value(["absent", "missing"], n_words=2) == pytest.approx(WORST[measure])
    good = value(["cat", "dog"], n_words=2)
    both = value(["cat", "dog"], ["absent", "missing"], n_words=2)
    assert both == pytest.approx((good + WORST[measure]) / 2)
    assert good > value(["cat", "tax"], n_words=2) >= WORST[measure] - 1e-9


@pytest.mark.parametrize("measure", WORST)
def test_coherence_of_degenerate_references_is_finite(measure):
    weights = weights_of(["cat", "dog"], ["cat", "pet"])
    for texts in ([], [[]], [["cat"]], [["cat", "dog", "pet"]] * 3, [["unknown"]]):
        assert np.isfinite(coherence(weights, texts, NAMES, measure=measure, n_words=2))


def test_coherence_refuses():
    weights = weights_of(["cat", "dog"])
    for arguments, message in (
        ({"measure": "c_w2v"}, "measure must be one of"),
        ({"n_words": 1}, "n_words"),
        ({"reference": np.ones((2, 8))}, "needs tokenised documents"),
        ({"reference": np.ones((2, 7)), "measure": "u_mass"}, "must have 8 columns"),
        ({"reference": ["cat dog"]}, "lists of words"),
        ({"dictionary": NAMES[:5]}, "must name the 8 columns"),
    ):
        arguments = {"reference": TEXTS, "dictionary": NAMES, **arguments}
        with pytest.raises(ValueError, match=message):
            coherence(weights, **arguments)


# Scorers


@pytest.fixture(scope="module")
def lee():
    lee = load_lee()
    return lee.data[:80], lee.tokens[:80]


def lda(**parameters):
    return LatentDirichletAllocation(3, max_iter=2, random_state=0, **parameters)


def vectorizer():
    return CountVectorizer(stop_words="english", max_features=150)


@pytest.mark.parametrize("measure", WORST)
def test_scorer_of_a_pipeline_of_raw_texts(lee, measure):
    data, tokens = lee
    pipeline = make_pipeline(vectorizer(), VarianceThreshold(0.1), lda()).fit(data)  # a selector between
    names = pipeline[:-1].get_feature_names_out()
    components = pipeline[-1].components_
    assert 5 < len(names) < 150
    analyze = pipeline[0].build_analyzer()
    if measure == "u_mass":
        expected = u_mass_coherence(components, pipeline[:-1].transform(data), n_words=5).mean()
    else:
        expected = coherence(components, [analyze(text) for text in data], names, measure=measure, n_words=5)
    assert make_coherence_scorer(measure, n_words=5)(pipeline, data) == pytest.approx(expected)
    fixed = make_coherence_scorer(measure, texts=tokens, n_words=5)
    assert np.isfinite(fixed(pipeline, data)) and fixed(pipeline, data[:3]) == fixed(pipeline, data)


def test_scorer_of_a_bare_model(lee):
    data, tokens = lee
    words = vectorizer().fit(data)
    X = words.transform(data)
    model = lda().fit(X)
    u_mass = make_coherence_scorer("u_mass")
    assert u_mass(model, X) == pytest.approx(u_mass_coherence(model.components_, X, n_words=20).mean())
    names = words.get_feature_names_out()
    c_v = make_coherence_scorer("c_v", texts=tokens, feature_names=names)
    assert c_v(model, X) == pytest.approx(coherence(model, tokens, words))
    same = make_coherence_scorer("u_mass", texts=tokens, feature_names=names)
    presence = np.array([[name in set(text) for name in names] for text in tokens])
    assert same(model, X) == pytest.approx(u_mass_coherence(model.components_, presence, n_words=20).mean())


def test_scorer_reads_the_column_names_of_a_data_frame(lee):
    import pandas as pd

    data, tokens = lee
    words = vectorizer().fit(data)
    frame = pd.DataFrame(words.transform(data).toarray(), columns=words.get_feature_names_out())
    model = lda().fit(frame)
    scorer = make_coherence_scorer("c_npmi", texts=tokens)
    assert scorer(model, frame) == pytest.approx(coherence(model, tokens, words, measure="c_npmi"))
    assert np.isfinite(make_coherence_scorer()(model, frame))


def test_scorer_says_what_it_lacks(lee):
    data, tokens = lee
    X = vectorizer().fit_transform(data)
    model = lda().fit(X)
    with pytest.raises(ValueError, match="feature_names must be given"):
        make_coherence_scorer("c_v", texts=tokens)(model, X)
    with pytest.raises(ValueError, match="texts must be given for measure 'c_v'"):
        make_coherence_scorer("c_v", feature_names=list(map(str, range(150))))(model, X)
    with pytest.raises(ValueError, match="measure must be one of"):
        make_coherence_scorer("npmi")
    with pytest.raises(ValueError, match="n_words"):
        make_coherence_scorer(n_words=1)


def test_scorer_in_searches(lee):
    data, tokens = lee
    pipeline = make_pipeline(vectorizer(), lda())
    grid = {"latentdirichletallocation__n_components": [2, 4]}
    for scorer in (make_coherence_scorer(), make_coherence_scorer("c_npmi", texts=tokens)):
        search = GridSearchCV(pipeline, grid, scoring=scorer, cv=2, error_score="raise").fit(data)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    X = vectorizer().fit_transform(data)
    assert np.isfinite(cross_val_score(lda(), X, scoring=make_coherence_scorer(), cv=3)).all()


def test_scorer_can_be_pickled(lee):
    data, _ = lee
    pipeline = make_pipeline(vectorizer(), lda()).fit(data)
    scorer = make_coherence_scorer("c_npmi", n_words=4)
    copy = pickle.loads(pickle.dumps(scorer))
    assert copy(pipeline, data) == scorer(pipeline, data)
    assert "c_npmi" in repr(copy)


def test_coherence_prefers_planted_topics():
    """By 49 with deviation 15; four corpora are 6.5 deviations from none."""
    rng, more = np.random.default_rng(0), []
    for seed in range(4):
        corpus, noise = make_lda_corpus(300, 80, 4, random_state=seed), rng.dirichlet(np.ones(80), 4)
        planted, random = (u_mass_coherence(topics, corpus.data).mean() for topics in (corpus.topic_word, noise))
        more.append(planted - random)
    assert np.mean(more) > 0


# --- gensim's own model --------------------------------------------------------------------------------------------


def test_a_gensim_model_of_the_topics_is_saved_loaded_and_used(tmp_path):
    gensim = pytest.importorskip("gensim")
    weights = np.array([[0.5, 0.3, 0.2, 0.0], [0.0, 0.1, 0.1, 0.8]])
    make_gensim_model(weights, ["pear", "plum", "fig", "zinc"], [0.1, 0.2]).save(str(tmp_path / "lda"))
    loaded = gensim.models.LdaModel.load(str(tmp_path / "lda"))
    np.testing.assert_allclose(loaded.get_topics(), weights, atol=1e-6)
    shown = dict(loaded.show_topics(num_words=2, formatted=False))
    assert [word for word, _ in shown[0]] == ["pear", "plum"] and shown[1][0][0] == "zinc"
    assert loaded.alpha.tolist() == pytest.approx([0.1, 0.2])
    proportions = dict(loaded.get_document_topics(loaded.id2word.doc2bow(["zinc"] * 9), minimum_probability=0))
    assert proportions[1] > 0.9


@pytest.mark.parametrize("measure", ["u_mass", "c_npmi"])
def test_defaults_give_the_number_that_gensim_gives(measure):
    from gensim.models import CoherenceModel

    rng = np.random.default_rng(0)
    names = [f"word{i:02d}" for i in range(40)]
    texts = [[names[i] for i in rng.integers(40, size=60)] for _ in range(50)]
    weights = rng.dirichlet(np.ones(40), 3)
    dictionary = gensim_dictionary(names)
    model = make_gensim_model(weights, names, np.full(3, 0.1))
    corpus = [dictionary.doc2bow(text) for text in texts]
    theirs = CoherenceModel(
        model=model, texts=texts, corpus=corpus, dictionary=dictionary, coherence=measure, processes=1
    ).get_coherence()
    assert coherence(weights, texts, names, measure=measure) == pytest.approx(theirs)
    assert coherence(weights, texts, names, measure=measure, n_words=10) != pytest.approx(theirs, rel=1e-3)


def test_models_and_releases_become_gensim_models():
    words = ["pear", "plum", "iron", "zinc"]
    X = np.array([[2, 1, 0, 0], [0, 0, 1, 2]] * 500)
    model = PrivateCGSLDA(2, epsilon=5.0, max_iter=3).fit(X)
    for estimator in (model, release(model, feature_names=words)):
        made = estimator.to_gensim(words)
        np.testing.assert_allclose(made.get_topics(), model.topic_word_, atol=1e-5)
        assert made.id2word[2] == "iron"
    assert release(model, feature_names=words).to_gensim().id2word[3] == "zinc"
    assert model.to_gensim().id2word[3] == "x3"
    with pytest.raises(ValueError, match="feature_names must name 4 words"):
        model.to_gensim(["pear"])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_masses_of_a_vocabulary_are_those_of_a_loop(kind):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, size=(40, 12)) * rng.integers(0, 2**29, size=12)
    users, mask = rng.integers(0, 9, size=40), rng.random(12) < 0.5
    assert token_mass(kind(X), mask) == pytest.approx(X[:, mask].sum() / X.sum())
    for groups in (None, users, users.astype(str)):
        names = np.arange(40) if groups is None else groups
        pairs = {(names[d], w) for d, w in zip(*np.nonzero(X), strict=True)}
        missing = sum(not mask[w] for _, w in pairs) / len(pairs)
        assert missing_mass(kind(X), mask, groups) == pytest.approx(missing)
        columns = np.flatnonzero(mask)
        assert missing_mass(kind(X), [*columns, columns[0]], groups) == pytest.approx(missing)
    assert token_mass(kind(X), []) == 0 and missing_mass(kind(X), range(12)) == 0


@pytest.mark.parametrize("selected", [[True], [3], [-1], [0.5], [[0]], ["a"]])
def test_a_vocabulary_of_other_words_is_refused(selected):
    for mass in (token_mass, missing_mass):
        with pytest.raises(ValueError, match="selected must be a mask of the 3 words"):
            mass([[1, 2, 0]], selected)
    with pytest.raises(ValueError, match="at least one token"):
        token_mass([[0, 0, 0]], [0])


@pytest.mark.parametrize(
    "call", [lambda: gensim_dictionary(["a"]), lambda: make_gensim_model([[1.0]], ["a"], [1.0]), load_lee]
)
def test_what_needs_gensim_says_so_where_it_has_no_wheel(call, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "gensim"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if finder is not PathFinder])
    with pytest.raises(ImportError, match=r'needs gensim, .*not installed. .* pip install "gensim"'):
        call()
