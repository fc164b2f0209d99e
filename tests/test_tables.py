"""M-steps: the tables and the model made of released sums, against their formulas written out."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from internals import ExactTables, OnlineTables, SmoothedTables, annealed, initial_table, model_noise, word_weights

NORM_BOUND = 2**20  # the norm bound of a contribution, in the integers of a sum
SHAPE = (7, 3)


def plan(multipliers, rate=1.0):
    """Return what the M-steps read of a plan: the noise of each round over the norm bound."""
    return SimpleNamespace(
        n_rounds=len(multipliers), sampling_rate=rate, noiseless=not multipliers[0], deviation=multipliers.__getitem__
    )


def releases(n_rounds, seed=0):
    """Noisy integer tables, some of whose cells are negative."""
    return np.random.default_rng(seed).integers(-5 * NORM_BOUND, 50 * NORM_BOUND, size=(n_rounds, *SHAPE))


@pytest.mark.parametrize("rate", [1.0, 0.25])
def test_the_model_weighs_releases_by_their_precision_and_forgets_a_fifth_a_round(rate):
    multipliers, sums = (4.0, 3.0, 2.0, 0.5), releases(4)
    tables = SmoothedTables(SHAPE, plan(multipliers, rate), 0, bound_in_tokens=6.0)
    for round_, noisy in enumerate(sums):
        tables.update(noisy, round_)
    weight = [0.8**3 / 16, 0.8**2 / 9, 0.8 / 4, 1 / 0.25]
    mean = sum(w * noisy for w, noisy in zip(weight, sums, strict=True)) / sum(weight)
    np.testing.assert_allclose(tables.pseudo_counts(), np.maximum(mean, 0) * 6 / NORM_BOUND / rate, rtol=1e-12)
    deviation = np.sqrt(sum((w * m) ** 2 for w, m in zip(weight, multipliers, strict=True))) / sum(weight)
    assert model_noise(plan(multipliers, rate), 6.0) == pytest.approx(deviation * 6 / rate, rel=1e-12)


def test_the_next_table_is_the_last_release_smoothed_by_a_fifth_of_its_noise():
    multipliers, sums = (4.0, 2.0, 1.0), releases(3)
    tables, totals = SmoothedTables(SHAPE, plan(multipliers), 0), np.zeros(SHAPE[0])
    for round_, noisy in enumerate(sums):
        tables.update(noisy, round_)
        counts = noisy * (5 / NORM_BOUND)  # a document of 25 different words counts each once
        totals += counts.sum(axis=1) / multipliers[round_] ** 2
        frequency = np.maximum(totals, 1e-9)
        smoothing = 0.2 * 5 * multipliers[round_] * frequency / frequency.mean()
        np.testing.assert_allclose(tables.table, np.maximum(counts, 0) + smoothing[:, None], rtol=1e-6)
    assert tables.table.dtype == np.float32


def test_smoothing_is_measured_in_deviations_of_the_noise():
    for weighted, smoothing in ((False, 0.2), (True, 1.0)):
        tables = SmoothedTables(SHAPE, plan((3.0, 3.0)), 0, weighted=weighted)
        tables.update(np.zeros(SHAPE, int), 0)
        np.testing.assert_allclose(tables.table, smoothing * 5 * 3)  # all words alike


def test_without_noise_the_rounds_of_the_model_differ_by_forgetting_only():
    sums, tables = releases(2), SmoothedTables(SHAPE, plan((0.0, 0.0)), 0)
    for round_, exact in enumerate(sums):
        tables.update(exact, round_)
    expected = np.maximum(0.8 * sums[0] + sums[1], 0) / 1.8 * 5 / NORM_BOUND
    np.testing.assert_allclose(tables.pseudo_counts(), expected, rtol=1e-12)
    np.testing.assert_allclose(tables.table, np.maximum(sums[1] * (5 / NORM_BOUND), 0), rtol=1e-6)


def test_weighted_releases_are_divided_by_the_weights_of_the_table_that_they_were_drawn_from():
    tables, sums = SmoothedTables(SHAPE, plan((2.0, 2.0)), 3, weighted=True), releases(2)
    total, n = 0.0, 0.0
    for round_, noisy in enumerate(sums):
        weight = word_weights(tables.table)
        tables.update(noisy, round_)
        total, n = 0.8 * total + noisy * (5 / NORM_BOUND) / weight[:, None], 0.8 * n + 1
    np.testing.assert_allclose(tables.pseudo_counts(), np.maximum(total, 0) / n, rtol=1e-6)


def test_rare_words_weigh_more_by_the_fourth_root_of_their_frequency():
    table = np.array([[160.0, 0.0], [5.0, 5.0], [10.0, 0.0], [0.0, 0.0]], np.float32)  # of mean 45
    expected = [(160 / 45) ** -0.25, (10 / 45) ** -0.25, (10 / 45) ** -0.25, 5.0]
    np.testing.assert_allclose(word_weights(table), expected, rtol=1e-6)
    frequent = np.ones((10_000, 1), np.float32)
    frequent[0] = 1e9
    assert word_weights(frequent)[0] == np.float32(0.2)  # the root would be 0.1


@pytest.mark.parametrize("gamma_shape", [1.0, 100.0])
def test_the_first_table_has_mean_one_and_the_stated_variance(gamma_shape):
    """Fixed seed; 200,000 draws of a Gamma law."""
    table = initial_table((20_000, 10), 5, gamma_shape)
    assert table.min() > 0
    assert table.mean() == pytest.approx(1, abs=0.02 / np.sqrt(gamma_shape))
    assert table.var() == pytest.approx(1 / gamma_shape, rel=0.03)
    assert (initial_table((20, 10), 6, gamma_shape) != initial_table((20, 10), 5, gamma_shape)).all()


@pytest.mark.parametrize(("n_rounds", "kept"), [(1, [0]), (6, [3, 4, 5]), (100, range(54, 100, 5))])
def test_the_exact_model_is_the_mean_of_tables_of_the_last_half(n_rounds, kept):
    tables, counts = ExactTables(SHAPE, plan((0.0,) * n_rounds)), releases(n_rounds)
    for round_, table in enumerate(counts):
        tables.update(table, round_)
        np.testing.assert_array_equal(tables.table, table)
    np.testing.assert_allclose(tables.pseudo_counts(), counts[list(kept)].mean(axis=0), rtol=1e-12)


def test_online_tables_move_by_a_falling_share():
    tables = OnlineTables(SHAPE, 0.1, 0, 4.0, 10.0, 0.7)
    expected, sums = tables.table.astype(float), releases(3)
    for round_, noisy in enumerate(sums):
        tables.update(noisy, round_)
        rho = (10 + round_ + 1) ** -0.7
        expected = (1 - rho) * expected + rho * np.maximum(noisy, 0) * (4 / NORM_BOUND) / 0.1
        np.testing.assert_allclose(tables.pseudo_counts(), expected, rtol=1e-5)


def test_online_tables_know_the_noise_of_their_weighted_sum():
    """Against the sum itself: with releases of noise far above 0, the positive part takes nothing away."""
    steps, rng, tables, (n_words, n_topics) = 12, np.random.default_rng(0), [], (400, 3)
    for _ in range(2):
        tables.append(OnlineTables((n_words, n_topics), 0.5, 0, 4.0, 1.0, 0.7, deviation=2.0))
        for round_ in range(steps):
            tables[-1].update(NORM_BOUND * (100 + rng.normal(0, 2.0, (n_words, n_topics))), round_)
            tables[-1].n_done += 1
    deviation = (tables[0].pseudo_counts() - tables[1].pseudo_counts()).std() / 2**0.5
    cells, topics = tables[0].signal_to_noise()
    assert cells.std() == pytest.approx((2 / 3) ** 0.5, rel=0.1)  # the word's mean takes a third away
    rest = tables[0].pseudo_counts() - tables[0].pseudo_counts().mean(axis=1, keepdims=True)
    assert rest.std() / deviation == pytest.approx(cells.std(), rel=0.1)
    assert topics.max() < 0.5 and cells.shape == (n_topics, n_words)
    again = OnlineTables((n_words, n_topics), 0.5, 1, 4.0, 1.0, 0.7, deviation=2.0)
    assert again.signal_to_noise() is None  # before the first release
    again.restore(tables[0].arrays())
    again.n_done = steps
    np.testing.assert_array_equal(again.signal_to_noise()[0], cells)
    assert OnlineTables(SHAPE, 0.1, 0, 4.0, 10.0, 0.7).signal_to_noise() is None


def test_priors_without_noise_fall_linearly_to_their_values():
    alpha, beta = np.array([0.1, 0.2]), 0.01
    for round_, left in [(0, 1.0), (15, 0.5), (30, 0.0), (70, 0.0)]:
        a, b = annealed(alpha, beta, 50, round_, 100)
        np.testing.assert_allclose(a, np.maximum(alpha, 0.3 * left))
        assert b == pytest.approx(max(beta, 0.5 * left))
    assert annealed(alpha, beta, 200, 15, 100)[1] == pytest.approx(25 / 200 * (1 - 15 / 45))
    assert annealed(alpha, beta, 50, 2, 10)[1] == pytest.approx(0.5 * (1 - 2 / 5))  # over half of the rounds
    assert annealed(alpha, beta, 50, 0, 1) == (pytest.approx(alpha), beta)


def test_many_topics_have_a_large_alpha_until_expected_counts():
    """0.4 times the root of a document's tokens a topic, 0.6 at most; it falls to the least alpha times tokens / 25."""
    alpha, plain = np.array([0.02, 0.5]), partial(annealed, beta=0.01, n_rounds=40)
    cases = [(1000, 1000.0, 0.4, 0.4), (200, 5000.0, 0.6, 0.6), (200, 50.0, 0.2, 0.04)]
    for n_topics, mean_length, first, last in cases:
        warm = partial(plain, alpha, n_topics=n_topics, first_expected=32, mean_length=mean_length)
        for round_, expected in ((0, first), (16, max(first / 2, last)), (31, last)):
            found, beta = warm(round_=round_)
            np.testing.assert_allclose(found, [expected, 0.5 if expected < 0.5 else expected])
            assert beta == plain(alpha, n_topics=n_topics, round_=round_)[1]
        np.testing.assert_array_equal(warm(round_=32)[0], alpha)
    few = plain(alpha, n_topics=100, round_=5, first_expected=32, mean_length=1000.0)
    np.testing.assert_array_equal(few[0], plain(alpha, n_topics=100, round_=5)[0])
