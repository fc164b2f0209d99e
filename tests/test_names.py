"""Names of clusters near their centres: which words are asked for, how they are ordered, and what a file keeps."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import (
    FINE,
    LENGTH,
    N_CANDIDATES,
    NEAR,
    candidates_of,
    closeness,
    distinct_triples,
    expected_counts,
    keyword_scores,
    log,
    proven_counts,
    rms_of,
)

from skdplda import EmbeddingTopics, load_released, make_insights_pipeline, privacy_guarantee, release
from skdplda.reports import report
from skdplda.semantics import EmbeddedTexts, WordVectorEmbedder

N_WORDS, K = 400, 4
NAMES = np.array([f"w{w}" for w in range(N_WORDS)], dtype=object)


def corpus(n=6000, seed=0, unknown=False):
    """Return embeddings, counts, labels and vectors of words: each cluster has 50 words near it, all share 200 others.

    With `unknown`, texts of cluster 2 also have the last word, which has no vector.
    """
    rng = np.random.default_rng(seed)
    labels, axes = np.arange(n) % K, np.eye(8)[:K]
    X = axes[labels] + rng.normal(scale=0.15, size=(n, 8))
    word_vectors = rng.normal(size=(N_WORDS, 8))
    own = np.arange(N_WORDS) // 50
    near = own < K
    word_vectors[near] = axes[own[near]] + rng.normal(scale=0.1, size=(near.sum(), 8))
    rates = np.where(near, np.where(own == labels[:, None], 0.03, 0.005), 0.05)
    counts = rng.poisson(rates)
    word_vectors[-1] = 0
    counts[:, -1] = unknown & (labels == 2) & (rng.random(n) < 0.9)
    return X, counts, labels, word_vectors


def fit(epsilon=2.0, word_vectors=True, **options):
    X, counts, _, vectors = corpus(unknown=options.pop("unknown", False))
    model = EmbeddingTopics(K, epsilon=epsilon, public_rows=np.eye(8)[:K], **options)
    texts = EmbeddedTexts(X, sp.csr_array(counts), NAMES, vectors if word_vectors else None)
    return model.fit(texts), X, vectors


def own_words(model, n=10):
    """Return the share of a cluster's top words that are near it."""
    order = model.predict(np.eye(8)[:K])
    top = model.top_words(n).to_numpy()[order]
    return np.mean([[int(word[1:]) // 50 == k for word in row] for k, row in enumerate(top)])


def test_clusters_are_called_by_words_near_them_where_counts_alone_would_not():
    # 0.92 and 0.02 in eight fits, deviations 0.012 each.
    assert own_words(fit(0.5)[0]) > 0.8 > 0.1 > own_words(fit(0.5, word_vectors=False)[0])
    near, far = fit()[0], fit(word_vectors=False)[0]
    assert not hasattr(far, "keyword_scores_")
    assert near.keyword_scores_.shape == near.topic_word_.shape
    assert near.privacy_guarantee_ == far.privacy_guarantee_  # the price is the same
    assert not fit(50.0)[0].topic_info()["noise"].any()  # documents have some two words that tell: few votes at 2
    assert len({word for row in near.top_words(10).to_numpy() for word in row}) >= 38


def test_the_words_of_other_directions_are_known_by_their_totals():
    """Counts of words that are no candidates are asked for with less weight, and shrunk to what all clusters have.

    The distance is 0.288, with deviation 0.008 over 84 clusters.
    """
    model, *_ = fit(epsilon=8.0)
    _, counts, labels, _ = corpus()
    order = model.predict(np.eye(8)[:K])
    for k in range(K):
        share = counts[labels == k].sum(axis=0) / counts[labels == k].sum()
        assert np.abs(model.topic_word_[order[k]] - share).sum() < 0.35
    np.testing.assert_allclose(model.topic_word_.sum(axis=1), 1)


def test_a_word_without_a_vector_that_a_cluster_has_is_not_lost():
    model, *_ = fit(epsilon=8.0, unknown=True)
    names = model.top_words(10).to_numpy()
    found = [k for k in range(K) if NAMES[-1] in names[k]]
    assert found == [int(model.predict(np.eye(8)[2:3])[0])]
    assert model.find_topics(NAMES[-1]).iloc[0]["rank"] <= 10


def test_the_fit_without_noise_has_names_near_centres_too():
    """The share of own words is 0.987, with deviation 0.017 over 21 seeds."""
    model, *_ = fit(epsilon=np.inf)
    assert own_words(model) > 0.9 and not model.topic_info()["noise"].any()


def test_candidates_are_near_and_frequent():
    rng = np.random.default_rng(3)
    near, frequencies = rng.uniform(-1, 1, (500, 3)), rng.dirichlet(np.ones(500))
    found = candidates_of(near, frequencies)
    for k in range(3):
        eligible = np.flatnonzero(near[:, k] > 0)
        best = eligible[np.argsort(-(near[eligible, k] ** 4) * frequencies[eligible])[:N_CANDIDATES]]
        assert set(np.flatnonzero(found[:, k])) == set(best)
    assert not candidates_of(-np.abs(near), frequencies).any()
    assert candidates_of(near[:5], frequencies[:5]).sum() == (near[:5] > 0).sum()


def test_proven_counts_are_nearer_to_the_truth_than_counts_or_cosines_alone():
    """Mean squared errors are 1, 0.27 and 0.17 of that of the counts, in 20 seeds; the greatest is 0.21."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        near, expected = rng.uniform(0.3, 0.8, 1500), rng.uniform(5, 15, 1500)
        means = expected * (1 + 4 * (near - 0.3))
        truth = means * rng.gamma(4, 1 / 4, 1500)
        deviation = rng.uniform(20, 40, 1500)
        found = proven_counts(truth + deviation * rng.normal(size=1500), deviation, expected, near)
        error = np.mean((found - truth) ** 2)
        assert error < 0.25 * np.mean(deviation**2) and error < 0.9 * np.mean((means - truth) ** 2)
        assert (found >= 0).all()
        np.testing.assert_allclose(proven_counts(truth, np.zeros(1500), expected, near), truth)
    rare = np.array([1e-300, 1e-12, 1.0])
    assert np.isfinite(proven_counts(np.array([3.0, -5.0, 0.0]), np.full(3, 7.0), rare, np.full(3, 0.5))).all()
    assert np.isfinite(proven_counts(np.array([3.0, 0.0, 1.0]), np.zeros(3), rare, np.full(3, 0.5))).all()


def test_closeness_is_the_cosine_with_the_centre_taken_away():
    rng = np.random.default_rng(4)
    vectors, centre = rng.normal(size=(30, 8)), 0.3 * rng.normal(size=8) / 3
    centres = rng.normal(size=(3, 8))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    vectors[3], vectors[4] = 0, np.nan
    found = closeness(vectors, np.trunc(centre * FINE), np.trunc(centres * LENGTH * (1 - 1e-9)).astype(np.float32))
    rest = np.delete(np.arange(30), [3, 4])
    apart = vectors[rest] / np.linalg.norm(vectors[rest], axis=1, keepdims=True) - centre
    apart /= np.linalg.norm(apart, axis=1, keepdims=True)
    np.testing.assert_allclose(found[rest], apart @ centres.T, atol=2e-3)
    assert not found[[3, 4]].any()


def test_expected_counts_have_the_frequencies_and_the_sizes():
    rng = np.random.default_rng(5)
    frequencies, sizes = rng.dirichlet(np.ones(300)), np.array([100.0, 300.0])
    near = np.zeros((300, 2), bool)
    near[:20, 0] = True
    cells = 4000 * frequencies[:, None] * (sizes / 400)
    cells[near] *= 9  # these do not count
    deviation = np.where(near, 1.0, NEAR)
    found = expected_counts(cells + deviation * rng.normal(size=cells.shape), deviation, frequencies, sizes, near)
    np.testing.assert_allclose(found / found.sum(axis=0), np.tile(frequencies[:, None], 2))
    np.testing.assert_allclose(found.sum(axis=0), 4000 * sizes / 400, rtol=0.35)


def test_scores_go_by_count_nearness_and_distinction():
    cells, deviation = np.full((4, 2), 100.0), np.full((4, 2), 1e-3)
    near = np.array([[0.9, 0.1], [0.5, 0.1], [0.9, 0.9], [-0.2, 0.3]])
    candidates = np.array([[1, 0], [1, 0], [1, 1], [0, 1]], bool)
    scores = keyword_scores(cells, deviation, cells, near, candidates)
    assert scores[0, 0] > scores[0, 1] and scores[0, 2] == pytest.approx(scores[0, 0])
    assert (scores >= 0).tolist() == candidates.T.tolist()
    more = cells + np.array([[50, 0], [0, 0], [0, 0], [0, 0]])  # of a word that tells of cluster 0
    found = keyword_scores(more, deviation, cells, near, candidates)
    assert found[0, 0] > 1000 * scores[0, 0] and found[0, 2] == pytest.approx(scores[0, 2])
    # a word that is no candidate is one if its count stands out of noise and chance, and only then
    threshold = np.sqrt(2 * log(8))
    for excess, is_far in ((0.99, False), (1.01, True)):
        above = cells.copy()
        above[3, 0] += excess * threshold * np.sqrt(100.0 + 1e-6)
        assert (keyword_scores(above, deviation, cells, near, candidates)[0, 3] >= 0) == is_far


def test_noise_alone_marks_hardly_a_word():
    """Cells of noise: of 200 tables of 1,500 candidates, the threshold leaves fewer than one word marked in two.

    It is 22 words, with deviation 3.9 over 21 seeds.
    """
    rng, n_marked = np.random.default_rng(6), 0
    model = EmbeddingTopics(20)
    model.keyword_scores_ = np.zeros((20, 75))
    for _ in range(200):
        model.signal_to_noise_ = rng.normal(size=(20, 75))
        n_marked += model._clear_words().sum()
    assert n_marked < 100
    assert (rms_of(model.signal_to_noise_, model.keyword_scores_ >= 0) < 1).all()


@pytest.mark.parametrize("n_asked", [3, 75, 1000])
def test_clusters_of_noise_are_marked_nineteen_times_in_twenty(n_asked):
    """Of 20,000 clusters of noise; five deviations of their share, and 0.004 for the quantile's error at 3 words."""
    rng, model, n = np.random.default_rng(11), EmbeddingTopics(20_000), 20_000
    model.keyword_scores_ = np.where(np.arange(n_asked + 5) < n_asked, 0.0, -1.0) * np.ones((n, 1))
    model.signal_to_noise_ = rng.normal(size=(n, n_asked + 5)).astype(np.float32)
    model.topic_signal_to_noise_ = model._topic_signal()
    found = np.mean(model._topic_signal() >= model._noise_floor())
    assert abs(found - 0.05) < 5 * np.sqrt(0.05 * 0.95 / n) + 0.004
    assert model._clear_deviations() < 1.65  # of a size, too: both say that it is there, or it is noise


def test_clusters_are_voted_on_by_the_words_that_are_asked_for():
    """Texts have some two words that tell: votes were 311 for them, and -145 where these are shuffled.

    Noise has a deviation of 3.8, and votes are to exceed 1.65 of them.
    """
    assert not fit(8.0)[0].topic_info()["noise"].any()
    _, counts, _, vectors = corpus()
    tokens = np.random.default_rng(0).permutation(np.repeat(np.nonzero(counts)[1], counts[np.nonzero(counts)]))
    shuffled = np.zeros(counts.shape, int)
    np.add.at(shuffled, (np.repeat(np.arange(len(counts)), counts.sum(axis=1)), tokens), 1)
    model = EmbeddingTopics(K, epsilon=8.0, public_rows=np.eye(8)[:K])
    model.fit(EmbeddedTexts(shuffled @ vectors, sp.csr_array(shuffled), NAMES, vectors))
    assert model.topic_info()["noise"].all()


def test_a_file_keeps_the_order_of_words_and_the_marks(tmp_path):
    model, *_ = fit(epsilon=1.0)
    release(model, feature_names=NAMES.tolist()).save(tmp_path / "clusters.zip")
    again = load_released(tmp_path / "clusters.zip")
    assert again.top_words(20, mark_noise=True).equals(model.top_words(20, mark_noise=True))
    np.testing.assert_array_equal(again.keyword_scores_, model.keyword_scores_)
    ours, theirs = model.topic_info(), again.topic_info()
    np.testing.assert_allclose(theirs.pop("signal_to_noise"), ours.pop("signal_to_noise"), rtol=1e-5)
    assert theirs.equals(ours)


def test_vectors_of_words_that_do_not_fit_are_refused_before_anything_is_paid():
    X, counts, _, vectors = corpus(60)
    model = EmbeddingTopics(K)
    with pytest.raises(ValueError, match="word_vectors must be None without counts"):
        model.fit(X, word_vectors=vectors)
    for wrong in (vectors[:-1], vectors[:, :3], vectors[0]):
        with pytest.raises(ValueError, match=r"word_vectors must have a row for each of the 400 words"):
            model.fit(X, counts=counts, word_vectors=wrong)
    with pytest.raises(ValueError, match="a row for each of the 400 words"):
        EmbeddedTexts(X, counts, NAMES, vectors[:7])
    assert not hasattr(model, "privacy_guarantee_")


def test_hostile_vectors_of_words_do_no_harm():
    X, counts, _, vectors = corpus(4000)
    vectors[:6] = [[np.nan] * 8, [np.inf] * 8, [1e308] * 8, [0] * 8, [5e-324] * 8, [-1e300, 1e300, *[0] * 6]]
    model = EmbeddingTopics(K, epsilon=4.0, public_rows=np.eye(8)[:K], projection=6).fit(
        X, counts=counts, word_vectors=vectors
    )
    assert np.isfinite(model.keyword_scores_).all() and np.isfinite(model.topic_word_).all()


WORDS = ["tea", "milk", "coffee", "zinc", "iron", "steel", "the", "ok"]
EMBEDDER = WordVectorEmbedder((WORDS, np.eye(8)[[0, 0, 0, 1, 1, 1, 2, 3]] + 0.1 * np.arange(8)[:, None]))


def test_words_of_the_embedder_are_public_and_cost_nothing():
    pipeline = make_insights_pipeline(2.0, 1e-5, embedder=EMBEDDER, n_components=2)
    texts = ["tea milk and coffee", "zinc the iron steel"] * 1500
    pipeline.fit(texts)
    assert pipeline[-1].words_.tolist() == sorted(WORDS[:6])  # without stop words, and words of two letters
    assert pipeline[0].privacy_guarantee_.epsilon == 0
    assert 1.99 < privacy_guarantee(pipeline).epsilon <= pipeline[-1].privacy_guarantee_.epsilon == 2
    chosen = make_insights_pipeline(2.0, 1e-5, embedder=EMBEDDER, n_components=2, public_vocabulary=None)
    assert chosen[0].privacy_cost().epsilon == pytest.approx(0.4)
    with pytest.raises(ValueError, match="public_vocabulary must be words, 'embedder' or None"):
        make_insights_pipeline(2.0, 1e-5, embedder=EMBEDDER, public_vocabulary="tea")


def test_phrases_of_a_public_list_are_counted_and_name_clusters():
    texts = ["iron ore here", "milk tea there"] * 2000
    public = ["iron", "zinc", "tea", "iron ore", "milk tea"]
    pipeline = make_insights_pipeline(4.0, 1e-5, embedder=EMBEDDER, n_components=2, public_vocabulary=public).fit(texts)
    top = pipeline[-1].top_words(2).to_numpy()[pipeline.predict(["iron", "tea"])]
    assert set(top[0]) == {"iron", "iron ore"} and set(top[1]) == {"tea", "milk tea"}


def test_a_word_of_an_attacker_is_on_no_page_unless_it_is_on_the_public_list():
    texts = ["tea milk", "iron zinc"] * 1000 + ["secretword tea"] * 500
    pipeline = make_insights_pipeline(8.0, 1e-5, embedder=EMBEDDER, n_components=2).fit(texts)
    assert "secretword" not in pipeline[-1].words_


def test_no_two_names_have_the_same_three_words_unless_nothing_else_is_left():
    rows = [["a", "b", "c", "d"], ["b", "a", "c", "d"], ["c", "b", "a", "d"], ["a", "b", "c", "d"], ["e"], ["e"]]
    found = distinct_triples(rows)
    assert found[0] == ["a", "b", "c"] and found[1] == ["b", "a", "d"]
    assert len({frozenset(row) for row in found[:4]}) == 4
    assert found[4:] == [["e"], ["e"]]


def test_levels_join_what_is_alike_and_a_text_goes_through_them():
    rng = np.random.default_rng(7)
    centres = np.repeat(np.eye(8)[:3], 4, axis=0) + 0.25 * rng.normal(size=(12, 8))
    labels = np.arange(6000) % 12
    X = centres[labels] + rng.normal(scale=0.05, size=(6000, 8))
    counts = rng.poisson(np.where(np.arange(24) // 2 == labels[:, None], 1.0, 0.02))
    words = np.array([f"g{w // 8}_{w}" for w in range(24)])
    vectors = np.repeat(centres, 2, axis=0)
    model = EmbeddingTopics(12, epsilon=8.0, public_rows=centres).fit(
        EmbeddedTexts(X, sp.csr_array(counts), words, vectors)
    )
    levels = model.topic_levels()
    assert levels.columns.tolist() == ["level_1", "level_2", "level_3"] and levels.index.name == "topic"
    assert levels.nunique().tolist() == [3, 6, 12]
    assert (levels["level_3"] == model.get_feature_names_out()).all()
    for parent, child in (("level_1", "level_2"), ("level_2", "level_3")):
        assert (levels.groupby(child)[parent].nunique() == 1).all()  # a tree
    for name in levels["level_1"].unique():  # words of one of the three groups
        assert len({word.split("_")[0] for word in name.split(", ")}) == 1
    assert model.topic_levels([1, 2]).nunique().tolist() == [1, 2, 12]
    found = model.predict_levels(np.vstack([centres[:4], np.zeros((1, 8))]))
    assert found["level_1"].nunique() == 1 and found.iloc[-1].isna().all() and len(found) == 5
    assert (found["level_3"][:4] == model.get_feature_names_out()[model.predict(centres[:4])]).all()
    released = release(model, feature_names=words.tolist())
    assert released.topic_levels().equals(levels)
    for wrong in ([2, 1], [0], [13], [1.5], [2, 2]):
        with pytest.raises(ValueError, match="numbers must be integers from 1 to 12 that increase"):
            model.topic_levels(wrong)


def test_the_page_shows_levels(tmp_path):
    model, *_ = fit(epsilon=4.0)
    page = report(model, tmp_path / "page.html", feature_names=NAMES.tolist()).read_text()
    assert "Levels of the clusters; epsilon = 4" in page and "costs no" in page
    one = EmbeddingTopics(1, epsilon=4.0).fit(EmbeddedTexts(np.ones((900, 2)), np.ones((900, 2), int), ["tea", "milk"]))
    assert one.topic_levels().shape == (1, 1)
