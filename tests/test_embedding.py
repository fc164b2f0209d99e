"""Clusters of embeddings: what a unit contributes, in integers; what a fit releases; what it is good for."""

import itertools
import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.stats
from conversing import Conversation
from internals import (
    APART,
    FINE,
    FINEST,
    LENGTH,
    SIZE,
    SOFT_LENGTH,
    SOFT_STEP,
    STEP,
    WEIGHTS,
    ClusterEStep,
    ClusterKnowledge,
    ClusterPlan,
    ClusterVotes,
    ClusterWords,
    DirectionSums,
    EmbeddedWords,
    Embeddings,
    PublicStart,
    check_groups,
    cluster_rounds,
    cluster_shares,
    eigen,
    grid_directions,
    shortened,
    soft_weights,
    weight_table,
)
from internals import clusters as _clusters
from random_units import scaled
from sklearn.base import clone

from skdplda import EmbeddingTopics, PrivacyAccountant, release
from skdplda.rounds import NORM_BOUND, EStep, Query

SHOUT = pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
SMALL = pytest.mark.filterwarnings("ignore:.*clusters do not stand out:UserWarning")
HOSTILE = np.array(
    [
        [0.0, 0.0, 0.0, 0.0],
        [np.nan, 1.0, 2.0, 3.0],
        [np.inf, 1.0, 0.0, 0.0],
        [-np.inf, np.nan, 0.0, 0.0],
        [1e308, -1e308, 1e308, 1e308],
        [5e-324, 0.0, 0.0, 0.0],
        [1e-300, 1e300, 0.0, -1e-300],
        [-0.0, -0.0, -0.0, 1e-30],
        [1.0, 1.0, 1.0, 1.0],
        [3.0, -4.0, 0.0, 0.0],
    ]
)


def centres_of(rng, n_clusters, n_dimensions):
    rows = rng.normal(size=(n_clusters, n_dimensions))
    return np.trunc(LENGTH * rows / np.linalg.norm(rows, axis=1, keepdims=True) * (1 - 1e-9)).astype(np.float32)


def queries(rng, n_clusters=3, n_dimensions=4, n_words=5):
    centre = np.trunc(FINE * 0.4 * rng.normal(size=n_dimensions) / n_dimensions)
    centres = centres_of(rng, n_clusters, n_dimensions)
    weights = rng.integers(4, 65, n_words)
    return [
        DirectionSums(n_dimensions),
        DirectionSums(n_dimensions, centre, centres),
        DirectionSums(n_dimensions, centre, centres, sharpness=rng.choice([0.0, 3.0, 1000.0])),
        EmbeddedWords(n_words),
        ClusterWords(centre, centres, weights),
        ClusterWords(centre, centres, weights * rng.choice([1, 16, 1000], (n_clusters, n_words))),  # near centres
    ]


def votes_on(rng, n_clusters=3, n_dimensions=4, n_words=5):
    """Return queries whether the words of clusters tell of documents: of clear words, and of any."""
    clusters = queries(rng, n_clusters, n_dimensions, n_words)[1]
    weights = rng.integers(4, 65, (n_clusters, n_words)) / 16
    tables = rng.gamma(0.3, 1000.0, (2, n_words, n_clusters)) + 1e-3
    return [
        ClusterVotes(clusters.centre, clusters.centres, weights[: 1 + 2 * i], tables[i], np.full(tables[i].shape, i))
        for i in (0, 1)
    ]


def collected(vectors, counts, groups, query):
    counts = shortened(sp.csr_array(np.asarray(counts, np.int32)))
    counts.indptr = counts.indptr.astype(np.int64)
    units = None if groups is None else check_groups(groups, len(vectors))
    return ClusterEStep(Embeddings(np.asarray(vectors), counts), units).collect(query, 0, None).total


def exact_norm(moved):
    return sum(int(v) ** 2 for v in moved.ravel())


def test_the_parts_are_of_the_protocols():
    step = ClusterEStep(Embeddings(np.eye(3)))
    assert isinstance(step, EStep)
    for query in queries(np.random.default_rng(0)) + votes_on(np.random.default_rng(0)):
        assert isinstance(query, Query) and query.lemma.startswith("embedding, Lemma")


def test_a_document_of_its_own_stays_within_the_bound_by_construction():
    assert SIZE**2 + STEP**2 * LENGTH**2 <= NORM_BOUND**2
    assert SIZE**2 + STEP**2 * LENGTH**2 > 0.99 * NORM_BOUND**2  # and uses it
    assert 0.97 * NORM_BOUND**2 < SIZE**2 + (SOFT_STEP * WEIGHTS * SOFT_LENGTH) ** 2 <= NORM_BOUND**2


@pytest.mark.parametrize("seed", range(36))
def test_replayed_contributions_keep_the_bound_in_integers(seed):
    """With and without one unit, for each query: hostile rows, huge counts, a user with half of the texts."""
    rng = np.random.default_rng(seed)
    n = 24
    X = np.concatenate([HOSTILE, rng.standard_t(1, size=(n - len(HOSTILE), 4)) * 10.0 ** rng.integers(-9, 9)])
    X = X[rng.permutation(n)]
    counts = rng.poisson(0.5, (n, 5)) * rng.choice([1, 1, 1000, 2**31 - 1], (n, 5))
    groups = [None, np.where(np.arange(n) < n // 2, 0, np.arange(n)), rng.integers(0, 5, n)][seed % 3]
    gone = np.arange(n) == 3 if groups is None else groups == groups[3]
    left = None if groups is None else groups[~gone]
    for query in queries(rng) + votes_on(rng):
        whole = collected(X, counts, groups, query)
        assert whole.shape == query.shape
        rest = collected(X[~gone], counts[~gone], left, query)
        assert exact_norm(whole - rest) <= NORM_BOUND**2, query.kind
        alone = collected(X[gone], counts[gone], None if groups is None else groups[gone], query)
        np.testing.assert_array_equal(whole - rest, alone)  # it does not depend on others, to the last bit


def test_a_bound_is_used_by_users_of_many_documents():
    rng = np.random.default_rng(1)
    X, counts = rng.normal(size=(500, 4)) + 1, rng.poisson(3, (500, 5))
    for query in queries(rng):
        moved = collected(X, counts, np.zeros(500, int), query)
        assert 0.98 * NORM_BOUND < exact_norm(moved) ** 0.5 <= NORM_BOUND


@pytest.mark.parametrize("n_documents", [1, 2, 3, 4, 9])
def test_a_user_of_few_documents_that_agree_stays_within_the_bound(n_documents):
    """Equal documents add up: each alone would have the whole norm."""
    rng = np.random.default_rng(7)
    X, counts = np.tile(rng.normal(size=4), (n_documents, 1)), np.tile(rng.poisson(3, 5) + 1, (n_documents, 1))
    for query in queries(rng):
        moved = collected(X, counts, np.zeros(n_documents, int), query)
        assert 0.9 * NORM_BOUND < exact_norm(moved) ** 0.5 <= NORM_BOUND, query.kind


@pytest.mark.parametrize("order", [np.arange(40), np.arange(40)[::-1], np.random.default_rng(0).permutation(40)])
def test_users_of_one_document_each_are_documents_in_any_order(order):
    rng = np.random.default_rng(2)
    X, counts = rng.normal(size=(40, 4)), rng.poisson(1, (40, 5))
    names = np.array([f"user{number}" for number in order])
    for query in queries(rng):
        np.testing.assert_array_equal(collected(X, counts, names, query), collected(X, counts, None, query), query.kind)


def test_rows_and_users_in_any_order_give_the_same_sums():
    """Rows that are shuffled with their users and counts, and users who are called otherwise."""
    rng = np.random.default_rng(9)
    X, counts, users = rng.normal(size=(200, 4)), rng.poisson(1, (200, 5)), rng.integers(0, 70, 200)
    X[::9], names = 0, rng.permutation(70)
    for query in queries(rng):
        expected = collected(X, counts, users, query)
        for order in (np.arange(200)[::-1], rng.permutation(200)):
            found = collected(X[order], counts[order], names[users[order]], query)
            np.testing.assert_array_equal(found, expected, query.kind)


@pytest.mark.parametrize("n", [255, 257, 5000])
def test_documents_that_are_alike_add_up_exactly(n):
    """The largest sums that single precision meets."""
    rng = np.random.default_rng(10)
    row, counts = np.array([[1.0, 1e-9, 0.0, 0.0]]), np.ones((1, 5))
    asked = queries(rng)
    toward = np.trunc(np.eye(3, 4) * LENGTH * (1 - 1e-9)).astype(np.float32)
    asked += [DirectionSums(4, np.zeros(4), toward, sharpness=sharpness) for sharpness in (0.0, 1e9, None)]
    for query in asked:
        one = collected(row, counts, None, query)
        np.testing.assert_array_equal(
            collected(np.repeat(row, n, 0), np.repeat(counts, n, 0), None, query), n * one, query.kind
        )


def test_sums_equal_those_of_fractions():
    """A reference in exact arithmetic: each document's cluster, and its sums."""
    rng = np.random.default_rng(3)
    X, counts = rng.normal(size=(50, 4)), rng.poisson(1, (50, 5))
    query = queries(rng)[1]
    expected = np.zeros((3, 5), dtype=object)
    for row in X:
        direction = [int(v) for v in grid_directions(row[None], query.centre)[0]]
        products = [sum(int(c) * v for c, v in zip(centre, direction, strict=True)) for centre in query.centres]
        expected[products.index(max(products))] += np.array([SIZE] + [STEP * v for v in direction], dtype=object)
    np.testing.assert_array_equal(collected(X, counts, None, query), expected.astype(np.int64))


@pytest.mark.parametrize("sharpness", [0.0, 5.0, 1e9])
def test_weighted_sums_equal_those_of_fractions(sharpness):
    """The same, of soft assignment; very sharp, it is the hard one."""
    rng = np.random.default_rng(8)
    X, counts = rng.normal(size=(50, 4)), np.ones((50, 5))
    _, hard, *_ = queries(rng)
    table, expected = weight_table(sharpness), np.zeros((3, 5), dtype=object)
    for row in X:
        direction = [int(v) for v in grid_directions(row[None], hard.centre)[0]]
        products = [sum(int(c) * v for c, v in zip(centre, direction, strict=True)) for centre in hard.centres]
        own = [int(table[(max(products) - product) // APART]) for product in products]
        length = math.sqrt(sum(w * w for w in own))
        expected[products.index(max(products)), 0] += SIZE
        for k, w in enumerate(own):
            weight = int(np.float32(w) * np.float32(WEIGHTS * (1 - 1e-6) / length))
            expected[k, 1:] += [SOFT_STEP * weight * int(v * SOFT_LENGTH / LENGTH) for v in direction]
    found = collected(X, counts, None, replace(hard, sharpness=sharpness))
    np.testing.assert_array_equal(found, expected.astype(np.int64))
    if sharpness > 1e3:
        sums = collected(X, counts, None, hard)[:, 1:] / (STEP * LENGTH)
        np.testing.assert_allclose(found[:, 1:] / (SOFT_STEP * WEIGHTS * SOFT_LENGTH), sums, atol=0.4)


@pytest.mark.parametrize("n_clusters", [1, 2, 37, 1000])
def test_weights_of_a_document_have_their_length_and_no_more(n_clusters):
    rng = np.random.default_rng(n_clusters)
    products = rng.integers(-(LENGTH**2), LENGTH**2, (200, n_clusters), endpoint=True).astype(np.float32)
    products[0] = LENGTH**2
    products[1, 1:] = -(LENGTH**2)
    for sharpness in (0.0, 0.7, 30.0):
        found = soft_weights(products, weight_table(sharpness))
        squares = (found**2).sum(axis=1)
        assert (squares <= WEIGHTS**2).all() and (found == np.trunc(found)).all() and found.min() >= 0
        assert found.max(axis=0)[products[0].argmax()] > 0 or n_clusters > FINEST
        assert squares.min() > 0.5 * WEIGHTS**2 or n_clusters > 100  # rounding down takes more of many small ones


def test_directions_are_those_of_the_rows():
    rng = np.random.default_rng(4)
    X, centre = rng.normal(size=(100, 8)), rng.normal(size=8) / 10
    found = grid_directions(X, np.trunc(centre * FINE))
    exact = X / np.linalg.norm(X, axis=1, keepdims=True) - centre
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    np.testing.assert_allclose(found / LENGTH, exact, atol=3 / LENGTH)
    np.testing.assert_array_equal(grid_directions(1e-200 * X, np.trunc(centre * FINE)), found)  # length is no matter


def test_rows_without_a_direction_are_in_no_cluster_and_no_warning_tells_of_them():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not grid_directions(HOSTILE[:4]).any(axis=1).any()
        assert grid_directions(HOSTILE[4:]).any(axis=1).all()
        wide = np.array([[np.longdouble("1e4000"), 1]]) if np.finfo(np.longdouble).max > 1e308 else HOSTILE[2:3]
        assert not grid_directions(wide).any()
    counts = np.ones((4, 5))
    for query in queries(np.random.default_rng(5)) + votes_on(np.random.default_rng(5)):
        assert collected(HOSTILE[:4], counts, None, query).any() == (query.kind == "words")


def test_a_row_equal_to_the_centre_has_no_direction():
    row = np.array([[1.0, 0.0]])
    at_fine = np.trunc(np.trunc(np.array([2.0**16, 0])) * (FINE * (1 - 1e-9) / 2.0**16))
    assert not grid_directions(row, at_fine).any()


@pytest.mark.parametrize("scale", [1, 2**20, 2**40])
def test_scaled_is_exact_whatever_the_size(scale):
    values = np.array([[3, 4], [0, 0], [5, 12], [-1, 2]], np.int64) * scale
    found = scaled(values, np.array([0, 1, 2, 2]), 3)
    assert (found[1] == 0).all()
    for unit in ([0], [2, 3]):
        size = Fraction(exact_norm(found[unit]), NORM_BOUND**2)
        assert Fraction(9999, 10000) < size <= 1


@pytest.mark.parametrize("values", [[2**63 - 1, 2**63 - 1, 1], [2**63 - 1, 1, 0], [-(2**63), 5, 5], [2**62] * 3])
def test_scaled_keeps_the_bound_where_sums_wrap_around(values):
    found = scaled(np.array([values, [3, 4, 0]]), np.array([0, 1]), 2)
    assert exact_norm(found[0]) <= NORM_BOUND**2
    np.testing.assert_array_equal(found[1:], scaled(np.array([[3, 4, 0]]), np.array([0]), 1))


def test_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(6)
    X, counts, groups = rng.normal(size=(300, 4)), rng.poisson(1, (300, 5)), rng.integers(0, 40, 300)
    asked = list(itertools.product(queries(rng) + votes_on(rng), (None, groups)))
    whole = [collected(X, counts, users, query) for query, users in asked]
    monkeypatch.setattr(_clusters, "BLOCK", 64)
    for (query, users), expected in zip(asked, whole, strict=True):
        np.testing.assert_array_equal(collected(X, counts, users, query), expected)


@pytest.mark.parametrize(("n_rounds", "words", "public"), [*itertools.product((1, 6, 40), (0.0, 0.5), (True, False))])
def test_shares_add_up_to_the_budget(n_rounds, words, public):
    todo = cluster_shares(n_rounds, words, public)
    assert sum(share for _, share in todo) == pytest.approx(1, abs=1e-12)
    assert min(share for _, share in todo) > 0
    assert [kind for kind, _ in todo].count("clusters") == n_rounds


@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize(("words", "public"), [*itertools.product((0.0, 0.5), (True, False))])
def test_the_strategy_asks_for_these_shares_whatever_is_released(words, public, soft):
    """Of all sizes, where none of what is made of them is no number; the same answers make the same clusters."""
    rng, (d, v, k), ends = np.random.default_rng(0), (4, 5, 3), []
    plan = ClusterPlan.of(1.0, 1e-5, 0.001)
    todo, scale = cluster_shares(6, words, public), plan.multipliers[0] * NORM_BOUND
    fakes = [
        lambda shape: np.zeros(shape, np.int64),
        lambda shape: np.full(shape, 2**62),
        lambda shape: np.full(shape, -(2**62)),
        lambda shape: rng.integers(-(2**63), 2**63 - 1, shape, endpoint=True),
        lambda shape: np.rint(scale * rng.standard_normal(shape)).astype(np.int64),
        lambda shape: np.rint(100 * scale * rng.gamma(0.1, 10.0, shape)).astype(np.int64),
    ]
    for i in range(30):
        start = PublicStart.of_rows(rng.normal(size=(9, d)), np.ones(9), k, d, 0)
        talks = []
        for _ in range(2):
            options = {
                "n_rounds": 6,
                "soft": soft,
                "keyword_share": words,
                "centre": np.full(d, 0.1) if public else None,
            }
            known = ClusterKnowledge((d, v if words else 0, k), plan, start, **options)
            talks.append(Conversation(known, plan))
        while talks[0].ask is not None:
            fake = (fakes[i] if i < len(fakes) else fakes[rng.integers(len(fakes))])(talks[0].ask.query.shape)
            for talk in talks:
                talk.answer(fake.copy())
            known = talks[0].known
            assert np.isfinite(known.directions).all() and np.isfinite(known.centre).all()
            np.testing.assert_allclose(np.linalg.norm(known.directions, axis=1), 1)
        assert talks[0].shares == [share for _, share in todo]
        kinds = {"centre": "directions", "clusters": "directions"}
        assert talks[0].kinds == [kinds.get(kind, kind) for kind, _ in todo]
        if words:
            assert np.isfinite(known.pseudo_counts()).all() and known.pseudo_counts().min() >= 0
            np.testing.assert_array_equal(talks[1].known.pseudo_counts(), known.pseudo_counts())
        np.testing.assert_array_equal(talks[1].known.directions, known.directions)
        ends.append(known.directions.tobytes())
    assert len(set(ends)) > 20


# --- the start -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_clusters", "n_dimensions"), [(1, 1), (3, 8), (8, 8), (20, 8)])
def test_random_starts_are_orthogonal_as_far_as_they_can_be(n_clusters, n_dimensions):
    found = PublicStart.spread(n_clusters, n_dimensions, 5).directions
    assert found.shape == (n_clusters, n_dimensions)
    for first in range(0, n_clusters, n_dimensions):
        part = found[first : first + n_dimensions]
        np.testing.assert_allclose(part @ part.T, np.eye(len(part)), atol=1e-14)


def test_random_starts_point_everywhere():
    """Each number of a random direction in d dimensions has mean 0 and variance 1 / d: at six deviations."""
    found = np.array([PublicStart.spread(3, 4, key).directions for key in range(4000)])
    assert (np.abs(found.mean(axis=0)) < 6 * math.sqrt(1 / 4 / len(found))).all()
    assert (np.abs((found**2).mean(axis=0) - 1 / 4) < 6 * math.sqrt((3 / 24 - 1 / 16) / len(found))).all()


def test_public_axes_are_those_of_the_rows():
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(500, 6)) * [5, 3, 2, 1, 0.5, 0.1], rng.uniform(0.1, 9, 500)
    start = PublicStart.of_rows(rows, weights, 3, 6, 0)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    mean = weights @ unit / weights.sum()
    centred = unit - mean
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    variances, axes = np.linalg.eigh((centred * (weights / weights.sum())[:, None]).T @ centred)
    np.testing.assert_allclose(start.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(start.variances, variances / variances.mean(), rtol=1e-4)
    np.testing.assert_allclose(np.abs(start.along(axes.T)), np.eye(6), atol=1e-3)
    np.testing.assert_allclose(start.back(start.along(rows)), rows, atol=1e-12)


@pytest.mark.parametrize("weight", [1.0, 1e12])
def test_public_axes_come_of_exact_sums(weight, monkeypatch):
    """Whatever the weights are: products of the rows on their grid are whole numbers below 2**53."""
    seen = []
    monkeypatch.setattr(cluster_rounds, "eigen", lambda matrix: seen.append(matrix) or eigen(matrix))
    rows = np.random.default_rng(0).normal(size=(300, 5)) + 1
    PublicStart.of_rows(rows, np.where(np.arange(300) < 1, weight, 1.0), 300, 5, 0)
    (found,) = seen
    np.testing.assert_array_equal(found, np.rint(found))
    assert 0.99 * 2**52 < np.trace(found) < 2**53


# --- what releases prove ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "last"), [(10, 0.0), (1000, 1.0), (1e5, 1.0)])
def test_clusters_follow_releases_that_are_more_than_noise(size, last):
    """Also if they move by less in a round than noise would tell; before the last release they are turned further."""
    plan, start = ClusterPlan.of(1.0, 1e-5, 0.01), PublicStart(np.eye(8)[:2], np.zeros(8))
    known = ClusterKnowledge((8, 0, 2), plan, start, n_rounds=20, soft=False, keyword_share=0.0, centre=np.zeros(8))
    talk, turned = Conversation(known, plan), []
    for round_ in range(20):
        angle = 0.05 * (round_ + 1)
        noisy = np.zeros((2, 9))
        noisy[:, 0] = SIZE * size
        noisy[:, 1:4] = STEP * LENGTH * size * np.array([[math.cos(angle), 0, math.sin(angle)], [0, 1, 0]])
        talk.answer(np.rint(noisy).astype(np.int64))
        turned.append(math.atan2(known.directions[0, 2], known.directions[0, 0]) / angle)
    assert talk.ask is None and talk.known is known
    np.testing.assert_allclose(np.linalg.norm(known.directions, axis=1), 1)
    assert turned[-1] == pytest.approx(last, abs=0.01)
    assert turned[-1] < last + 1e-9
    assert (max(turned[10:-1]) > last + 0.02) == (last > 0)
    deviation = plan.deviation(0) / math.sqrt(talk.shares[-1]) * NORM_BOUND / SIZE
    assert known.sizes[1] < deviation  # several releases tell more than one


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_noise_of_sizes_is_not_larger_than_told(n_clusters):
    """Where nothing moves, so that all that a cluster's sizes differ by is noise."""
    shape, rng = (1, 0, n_clusters), np.random.default_rng(0)
    plan, start, errors = ClusterPlan.of(1.0, 1e-5, 0.01), PublicStart(np.ones((n_clusters, 1))), []
    for _ in range(250):
        known = ClusterKnowledge(shape, plan, start, n_rounds=20, soft=False, keyword_share=0.0, centre=np.zeros(1))
        talk = Conversation(known, plan)
        while talk.ask is not None:
            noise = rng.normal(scale=NORM_BOUND * plan.deviation(0) / math.sqrt(talk.ask.share), size=(n_clusters, 2))
            talk.answer(np.rint(noise).astype(np.int64))
        assert talk.kinds == ["directions"] * 20
        sizes, deviation = known.sizes
        errors.append(np.mean((sizes / deviation) ** 2))
    assert sum(errors) * n_clusters < scipy.stats.chi2.isf(1e-6, 250 * n_clusters)


@pytest.mark.parametrize("epsilon", [0.3, 5.0])
def test_errors_of_sizes_cover_clusters_that_move(epsilon):
    """Overlapping clusters, from a random start: sizes lag behind what `predict` finds by more than their noise."""
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        centres = rng.normal(size=(6, 30))
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        X = centres[rng.integers(6, size=6000)] + rng.normal(scale=0.25, size=(6000, 30))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of clusters below the noise
            model = EmbeddingTopics(6, epsilon=epsilon, random_state=seed).fit(X)
        sizes = np.bincount(model.predict(X), minlength=6)
        errors.append((model.cluster_sizes_ - sizes) / model.size_deviation_)
    errors = np.abs(errors)
    assert np.median(errors) < 1.0  # with ten other seeds 0.54 (deviation 0.10); 0.67 if errors were normal
    assert np.mean(errors < 2) > 0.85  # 0.92 to 0.98


# --- the estimator --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted():
    """Documents of three clusters around directions with a common mean, and the words of each."""
    rng = np.random.default_rng(7)
    labels = np.arange(6000) % 3
    X = np.eye(8)[labels] + 0.6 + rng.normal(scale=0.25, size=(6000, 8))
    words = np.full((3, 12), 0.1)
    words[np.repeat(range(3), 4), range(12)] = 1.0
    return X, rng.poisson(words[labels]), labels


def agreement(model, X, labels):
    table = np.zeros((3, 3))
    np.add.at(table, (labels, model.predict(X)), 1)
    return table.max(axis=0).sum() / len(labels)


@SHOUT
def test_a_fit_of_little_noise_ends_where_one_of_none_does(planted):
    """Over 20 seeds the logarithm to base 10 of what the cosine lacks is -5.2 with deviation 0.17."""
    X, _, _ = planted
    start = X[:3] + 0.1 * np.random.default_rng(0).normal(size=(3, 8))  # near enough for one end
    exact = EmbeddingTopics(3, epsilon=np.inf, public_rows=start, max_iter=60).fit(X)
    noisy = EmbeddingTopics(3, epsilon=1000.0, public_rows=start, random_state=0).fit(X)
    assert (exact.cluster_centers_ * noisy.cluster_centers_).sum(axis=1).min() > 0.9999


def test_it_finds_clusters_and_their_words(planted):
    """Over 21 seeds: agreement 0.995, score 0.781, perplexity 7.31, with deviations 0.001, 0.002 and 0.04."""
    X, counts, labels = planted
    model = EmbeddingTopics(3, epsilon=2.0, public_rows=np.eye(8)[:3]).fit(X, counts=counts)
    assert agreement(model, X, labels) > 0.95
    top = model.top_words(4, [f"w{w:02d}" for w in range(12)])
    assert [set(row) for row in top.to_numpy()] == [{f"w{w:02d}" for w in range(4 * k, 4 * k + 4)} for k in range(3)]
    info = model.topic_info(3)
    assert (info["documents"] / 2000).between(0.9, 1.1).all() and (info["documents_deviation"] > 0).all()
    assert model.score(X) > 0.5
    assert model.perplexity(counts) < 12
    assert model.topic_hierarchy().shape == (2, 4)
    assert model.privacy_guarantee_ == model.privacy_cost()
    assert model.privacy_guarantee_.status == "proven"


def test_a_user_with_half_of_the_texts_is_bounded(planted):
    """Over 20 seeds: agreement 0.995, sum of sizes 3005, with deviations 0.001 and 27."""
    X, counts, labels = planted
    users = np.where(np.arange(6000) < 3000, 0, np.arange(6000))
    model = EmbeddingTopics(3, epsilon=2.0, public_rows=np.eye(8)[:3]).fit(X, groups=users, counts=counts)
    assert model.privacy_guarantee_.unit == "user"
    assert agreement(model, X, labels) > 0.95
    assert model.cluster_sizes_.sum() == pytest.approx(3001, abs=40 * model.size_deviation_)
    assert model.cluster_sizes_.sum() < 4000


@pytest.mark.parametrize("public", [False, True])
def test_without_noise_it_is_spherical_k_means(planted, public):
    X, counts, labels = planted
    start = X[::50] if public else None
    model = EmbeddingTopics(3, epsilon=np.inf, public_rows=start).fit(X, counts=counts)
    assert agreement(model, X, labels) > 0.97
    directions = grid_directions(X, np.trunc(model.centre_ * FINE)) / LENGTH
    for k, found in enumerate(model.cluster_centers_):
        mean = directions[model.predict(X) == k].mean(axis=0)
        assert found @ mean / np.linalg.norm(mean) > 0.999


@SHOUT
@SMALL
def test_disk_threads_and_projection_give_the_same_bits(planted, tmp_path):
    X, counts, _ = planted
    np.save(tmp_path / "X.npy", X)
    model = EmbeddingTopics(3, projection=5, random_state=3)
    here = clone(model).fit(X, counts=counts)
    for other in (
        clone(model).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), counts=sp.csc_array(counts)),
        clone(model).set_params(n_jobs=3).fit(sp.csr_array(X), counts=counts),
    ):
        for name in ("cluster_centers_", "components_", "cluster_sizes_", "centre_"):
            np.testing.assert_array_equal(getattr(other, name), getattr(here, name))
    assert here.cluster_centers_.shape == (3, 5)
    np.testing.assert_allclose(here.transform(X[:7]).sum(axis=1), 1)


def test_rows_without_a_direction_get_the_shares_of_clusters(planted):
    X, _, _ = planted
    model = EmbeddingTopics(3, public_rows=np.eye(8)[:3]).fit(np.where(np.arange(6000)[:, None] % 7 == 0, np.nan, X))
    rows = np.array([np.full(8, np.nan), np.zeros(8), X[0]])
    assert model.predict(rows)[:2].tolist() == [-1, -1] and model.predict(rows)[2] >= 0
    np.testing.assert_allclose(model.transform(rows)[0], model._topic_sizes())
    assert np.isnan(model.score_samples(rows)[:2]).all() and np.isfinite(model.score(rows))
    assert model.score(rows[:2]) == 0.0


def test_a_row_is_transformed_as_if_alone(planted):
    """Bit by bit: sums of many rows' probabilities are released by `topics_over_time`."""
    X = np.random.default_rng(3).normal(size=(50, 8))
    model = EmbeddingTopics(3, public_rows=np.eye(8)[:3]).fit(planted[0])
    np.testing.assert_array_equal(model.transform(X), np.vstack([model.transform(row[None]) for row in X]))


def test_more_clusters_than_the_noise_allows_are_told_by_number(planted):
    X, _, _ = planted
    with pytest.warns(UserWarning, match=r"of n_components=60 clusters do not stand out .* Use at most \d+ clusters?,"):
        EmbeddingTopics(60, epsilon=0.05).fit(X[:500])


@SHOUT
def test_a_fit_goes_on_from_its_checkpoint_and_refuses_other_data(planted, tmp_path):
    class Stop(Exception):
        pass

    def stop(report):
        if report.n_done == 4:
            raise Stop

    X, counts, _ = planted
    model = EmbeddingTopics(3, public_rows=np.eye(8)[:3], random_state=1)
    whole = clone(model).fit(X, counts=counts)
    path = tmp_path / "fit"
    broken = clone(model).set_params(checkpoint=path, callback=stop)
    with PrivacyAccountant(1.0, 1e-5, accept_claimed=True) as ledger:
        with pytest.raises(Stop):
            broken.fit(X, counts=counts)
        again = clone(model).set_params(checkpoint=path)
        for data in ((X, None), (sp.csr_array(X), counts), (X[::-1], counts), (X.astype(np.float32), counts)):
            with pytest.raises(ValueError, match="other data"):
                clone(again).fit(data[0], counts=data[1])
        with pytest.raises(ValueError, match="other data"):
            clone(again).fit(X, counts=np.hstack([counts, np.zeros((6000, 1), int)]))
        again.fit(X, counts=counts)
    assert len(ledger.ledger) == 1
    np.testing.assert_array_equal(again.components_, whole.components_)
    np.testing.assert_array_equal(again.cluster_centers_, whole.cluster_centers_)


def test_wrong_input_is_refused_by_shape_and_type(planted):
    X, counts, _ = planted
    model = EmbeddingTopics(3)
    with pytest.raises(ValueError, match="one row a document"):
        model.fit(X, counts=counts[:-1])
    frame = pd.DataFrame(X[:6])
    with pytest.raises(ValueError, match="counts must have the rows of X in the same order"):
        model.fit(frame, counts=pd.DataFrame(counts[:6]).iloc[::-1])
    for texts in (["a text", "another"], pd.Series(["a text"]), np.array([["a text", "another"]])):
        with pytest.raises(ValueError, match=r"X must have embeddings.*got texts. Embed them by a public model first"):
            model.fit(texts)
    with pytest.raises(ValueError, match="got texts"):
        model.fit(np.array([["a text", "another"]], dtype=object))
    with pytest.raises(ValueError, match="public_rows must have 8 columns"):
        EmbeddingTopics(3, public_rows=np.eye(3)).fit(X)
    with pytest.raises(ValueError, match="centre must be of length 1"):
        EmbeddingTopics(3, centre=np.ones(8)).fit(X)
    fitted = EmbeddingTopics(3, public_rows=np.eye(8)[:3], centre=np.full(8, 0.3)).fit(X)
    with pytest.raises(ValueError, match="features"):
        fitted.predict(X[:, :4])
    with pytest.raises(ValueError, match="knows no words"):
        fitted.top_words()
    with pytest.raises(ValueError, match="knows no words"):
        fitted.topic_info()
    with pytest.raises(ValueError, match="fit it with counts"):
        release(fitted)
    with pytest.raises(ValueError, match="knows no words"):
        fitted.merge_topics([[0, 1]])


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"public_rows": [[np.nan, 1.0]]}, "public_rows must be an array of 2 axes and finite numbers"),
        ({"public_weights": [1.0, 0.0]}, "public_weights must be positive"),
        ({"topic_word_prior": -1.0}, "topic_word_prior must be"),
        ({"keyword_share": 1.0}, "keyword_share"),
        ({"epsilon": 1e-9, "delta": 1e-12}, "is too small"),
    ],
)
def test_parameters_are_refused_before_data_are_read(parameters, said, check_refused):
    check_refused(EmbeddingTopics(3, **parameters), said)


@pytest.mark.parametrize("released", ["topics", "centre", "words", "cluster_words"])
def test_audit_contributions_of_every_release_are_bounded(planted, released):
    X, counts, _ = planted
    model, some = EmbeddingTopics(3, public_rows=np.eye(8)[:3]), slice(0, 200)

    without = model.audit_contributions(X[some], counts=counts[some], released=released).total
    huge = np.vstack([counts[some], np.full((1, 12), 10**6)])
    sums = model.audit_contributions(np.vstack([X[some], 1e9 * X[:1]]), counts=huge, released=released)
    assert sums.norm == 2 and 0.8 * sums.bound < exact_norm(sums.total - without) ** 0.5 <= sums.bound


@pytest.mark.parametrize(
    "texts", [pd.DataFrame({"body": ["tea"], "user": [1]}), [["tea", "milk"], []], np.array([["tea", 1.0]], object)]
)
def test_texts_in_tables_and_lists_of_words_are_refused_by_name(texts):
    with pytest.raises(ValueError, match=r"X must have embeddings.*got texts. Embed them by a public model first"):
        EmbeddingTopics(2).fit(texts)


def test_what_a_fitted_model_is_given_is_checked_by_name():
    X = np.repeat(np.eye(3), 500, axis=0)
    model = EmbeddingTopics(3, epsilon=5.0, public_rows=np.eye(3)).fit(
        X, counts=np.eye(3, 4, dtype=int)[np.arange(1500) // 500]
    )
    with pytest.raises(ValueError, match="counts of the 4 words of EmbeddingTopics; got 3 columns"):
        model.perplexity(-X)
    with pytest.raises(ValueError, match="Negative values in data passed to EmbeddingTopics"):
        model.perplexity(-np.ones((2, 4)))
    for weight in (np.ones(2), -np.ones(1500)):
        with pytest.raises(ValueError, match="sample_weight must hold 1500 non-negative"):
            model.score(X, sample_weight=weight)


@pytest.mark.parametrize("name", ["public_rows", "projection"])
def test_public_arrays_of_zeros_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must have numbers other than 0"):
        EmbeddingTopics(2, **{name: np.zeros((3, 3))}).fit(np.eye(3))
