"""Noise on unit-word counts: the law of the shortcut, noise once, and what the published form costs and shows."""

import math
import re
import warnings
from functools import partial
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from internals import NoisySegmentEStep, likelihood_noise, noisy_segments, sum_noise
from internals import pctd_noise as _pctd_noise
from scipy import stats
from scipy.special import softmax
from sklearn.base import clone

from skdplda import PCTD, PrivacyAccountant, PrivacyGuarantee, PrivacyLeakWarning
from skdplda.privacy import Randomness, epsilon_of, gaussian_event
from skdplda.published import PublishedPCTD
from skdplda.rounds import NORM_BOUND, TopicWordCounts
from skdplda.semantics import UnitMatrix

published = pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")


def moments(samples):
    """Return means and second moments of the columns, and the variances of these estimates."""
    products = np.concatenate([samples, samples[:, :, None].repeat(samples.shape[1], 2).reshape(len(samples), -1)], 1)
    products[:, samples.shape[1] :] *= np.tile(samples, samples.shape[1])
    return products.mean(axis=0), products.var(axis=0) / len(samples)


@pytest.mark.parametrize("alike", [False, True])
def test_the_shortcut_has_the_law_of_dense_noise(alike):
    """Means and covariances of (log-likelihoods, sums), the sums depending on the likelihoods through softmax.

    2 * 272 comparisons at 6.5 standard errors: a false-alarm rate below 1e-7, by the normal approximation.
    """
    rng = np.random.default_rng(0)
    n_units, n_words, n_topics, sigma, n_samples = 3, 5, 2, 0.7, 30_000
    log_phi = np.log(rng.dirichlet(np.ones(n_words), n_topics).T)
    if alike:  # a singular Gram matrix
        log_phi[:, 1] = log_phi[:, 0]
    counts = rng.poisson(1.0, size=(n_units, n_words))
    exact = counts @ log_phi

    dense = rng.normal(scale=sigma, size=(n_samples, n_units, n_words))
    brute_noise = dense @ log_phi
    brute_r = softmax(exact + brute_noise + [[0.0, 0.5]], axis=2)
    brute = np.concatenate(
        [brute_noise.reshape(n_samples, -1), np.einsum("nuw,nuk->nwk", dense, brute_r).reshape(n_samples, -1)], axis=1
    )
    noise, along, basis = likelihood_noise(log_phi, n_samples * n_units, sigma, rng)
    noise, along = noise.reshape(n_samples, n_units, -1), along.reshape(n_samples, n_units, -1)
    r = softmax(exact + noise + [[0.0, 0.5]], axis=2)
    sums = np.array([sum_noise(r[i], along[i], basis, sigma, rng).ravel() for i in range(n_samples)])
    ours = np.concatenate([noise.reshape(n_samples, -1), sums], axis=1)

    (mean, variance), (brute_mean, brute_variance) = moments(ours), moments(brute)
    spread = np.sqrt(variance + brute_variance)
    assert (np.abs(mean - brute_mean) <= 6.5 * spread).all()
    assert not np.allclose(brute[:, :6].T @ brute[:, 6:] / n_samples, 0, atol=0.05)  # they do depend on each other


@published
def test_the_shortcut_in_the_fit_is_dense_noise_on_the_counts():
    """One iteration of the published form against dense noise, in mean and spread of the model's first sums.

    60 comparisons at 6.5 standard errors.
    """
    rng = np.random.default_rng(0)
    X = UnitMatrix([0, 3, 5], sp.csr_array(rng.poisson(0.7, size=(5, 6))))
    table = rng.gamma(1.0, size=(6, 2)).astype(np.float32)
    n_samples, sums = 4000, []
    for seed in range(n_samples):
        step = NoisySegmentEStep(
            X, n_topics=2, bounded=False, alpha=np.full(2, 0.1), beta=0.01, n_updates=1, n_threads=1,
            sigma=0.5, support="all", randomness=Randomness(seed),
        )  # fmt: skip
        sums.append(step.collect(TopicWordCounts(table), 0, None).ravel().copy())
    log_phi = step.log_topics(table)
    noisy = X.counts.toarray() + rng.normal(scale=0.5, size=(n_samples, 5, 6))
    r = softmax(noisy @ log_phi, axis=2)  # proportions start equal
    brute = np.einsum("nuw,nuk->nwk", noisy, r).reshape(n_samples, -1)
    (mean, variance), (brute_mean, brute_variance) = moments(np.array(sums)), moments(brute)
    assert (np.abs(mean - brute_mean) <= 6.5 * np.sqrt(variance + brute_variance)).all()


# --- once -----------------------------------------------------------------------------------------------


def random_units(n_units=60, n_words=30, seed=0):
    rng = np.random.default_rng(seed)
    return UnitMatrix(np.arange(0, n_units + 1, 3), sp.csr_array(rng.poisson(0.1, size=(n_units, n_words))))


def test_every_word_of_every_unit_gets_noise(monkeypatch):
    """Of sqrt(2) times the deviation of one Gaussian mechanism, whatever the counts are."""
    drawn = []

    def record(sigma, shape, random_state, n_threads):
        drawn.append((sigma, shape, random_state))
        return np.zeros(shape, np.int64)

    monkeypatch.setattr(_pctd_noise, "mechanism_of", lambda name: SimpleNamespace(sampler=record))
    monkeypatch.setattr(_pctd_noise, "_probable", lambda noisy, rate, sigma: noisy)
    monkeypatch.setattr(_pctd_noise, "BLOCK_CELLS", 300)
    X = random_units()
    model = PCTD(2, noise_on="units", max_iter=1).fit(X)
    assert np.ptp(model.components_) > 0.5  # the counts are still there
    assert [shape for _, shape, _ in drawn] == [(10, 30)] * 6
    assert len({state for *_, state in drawn}) == 6 and {len(state) for *_, state in drawn} == {32}
    multiplier = model.privacy_guarantee_.event.noise_multiplier
    assert all(sigma >= multiplier * 2**0.5 * NORM_BOUND for sigma, *_ in drawn)
    assert f"{drawn[0][0] / NORM_BOUND:.4g}" in model.privacy_guarantee_.mechanism
    assert epsilon_of(gaussian_event(multiplier), 1e-5) <= 5.0


def test_blocks_of_a_seeded_fit_have_noise_of_their_own(monkeypatch):
    """Even where their counts are equal: the difference of two blocks would have no noise."""
    seeds = []

    def record(sigma, shape, random_state, n_threads):
        seeds.append(random_state)
        return np.zeros(shape, np.int64)

    monkeypatch.setattr(_pctd_noise, "mechanism_of", lambda name: SimpleNamespace(sampler=record))
    monkeypatch.setattr(_pctd_noise, "BLOCK_CELLS", 300)
    equal = UnitMatrix(np.arange(0, 61, 3), sp.csr_array(np.ones((60, 30), dtype=int)))
    noisy_segments(equal, 0.05, Randomness(3), 1)
    assert None not in seeds and len(set(seeds)) == len(seeds) == 6


@pytest.mark.parametrize("cells", [2**22, 100])
def test_little_noise_leaves_the_counts(monkeypatch, cells):
    monkeypatch.setattr(_pctd_noise, "BLOCK_CELLS", cells)
    X = random_units()
    found = noisy_segments(X, 0.05, Randomness(0), 1)
    np.testing.assert_array_equal(found.counts.toarray(), X.counts.toarray())
    np.testing.assert_array_equal(found.start, X.start)
    assert noisy_segments(X, 0.0, Randomness(0), 1) is X


@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.3, 10.0])
@pytest.mark.parametrize("rate", [0.001, 0.2, 3.0])
def test_probable_counts_are_the_most_probable(sigma, rate):
    noisy = np.linspace(-3.01, 40.01, 400).reshape(20, 20)
    n = np.arange(60)
    log_factorial = np.cumsum(np.log(np.maximum(n, 1)))
    posterior = -((noisy[..., None] - n) ** 2) / (2 * sigma**2) + n * np.log(rate) - log_factorial
    np.testing.assert_array_equal(_pctd_noise._probable(noisy, rate, sigma), posterior.argmax(axis=-1))


def test_noise_that_drowns_every_word_is_said():
    with pytest.warns(UserWarning, match="no word stands out"):
        model = PCTD(2, noise_on="units", epsilon=1.0, max_iter=1).fit(random_units(6000))
    np.testing.assert_allclose(model.topic_word_, 1 / 30)
    again = clone(model)
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="no word stands out"):
        warnings.simplefilter("error")
        again.fit(random_units(6000))
    assert again.privacy_guarantee_ == model.privacy_guarantee_  # it was paid for, and is not lost


def test_one_word_in_the_place_of_another_is_what_is_protected():
    g = PCTD(noise_on="units", epsilon=3.0).privacy_cost()
    assert (g.unit, g.adjacency, g.status) == ("token", "replace", "proven")
    assert any("without regard to the word" in text for text in g.assumptions)
    assert g.epsilon == 3.0 and g.epsilon_at(1e-5) <= 3.0
    exact = PCTD(noise_on="units", epsilon=np.inf).privacy_cost()
    assert exact.epsilon == np.inf and exact.mechanism == "none"


def test_a_word_replaced_in_a_plain_matrix_leaves_all_other_units_in_their_places():
    """In law: every arrangement of a document is as likely with the word as with the one in its place.

    In the order of words, the first word of "0 1 2" would leave its unit, and the 3 in its place come last.
    """
    n, arrangements = 3000, list(permutations(("replaced", 1, 2)))
    for word in (0, 3):
        counts = np.zeros((n, 4), int)
        counts[:, [word, 1, 2]] = 1
        model, randomness = PCTD(2, noise_on="units"), Randomness(0)
        with pytest.warns(UserWarning, match="each word is a semantic unit"):
            X = model._read(counts, None, model._plan(), randomness).documents
        np.testing.assert_array_equal(X.start, 3 * np.arange(n + 1))
        places = X.counts.indices.reshape(n, 3)
        found = [tuple("replaced" if w == word else w for w in row) for row in places.tolist()]
        assert stats.chisquare([found.count(each) for each in arrangements]).pvalue > 1e-6


# --- in each iteration: published -----------------------------------------------------------------------


def test_what_the_published_noise_costs():
    """sigma = 0.25 in 35 iterations is epsilon 380."""
    epsilon = epsilon_of(gaussian_event(0.25, steps=35), 1e-5)
    assert 379 < epsilon < 381
    cost = PublishedPCTD(epsilon=epsilon, max_iter=35).privacy_cost()
    assert (cost.unit, cost.adjacency, cost.status) == ("token", "add-remove", "claimed")
    sigma = float(re.search(r"deviation ([\d.]+)", cost.mechanism)[1])
    assert sigma == pytest.approx(0.25, rel=1e-3)
    assert cost.epsilon == epsilon and cost.epsilon_at(1e-5) <= epsilon


def test_noise_on_what_occurs_has_no_epsilon():
    cost = PublishedPCTD(noise_support="observed", epsilon=3.0).privacy_cost()
    assert cost.epsilon == np.inf and cost.status == "claimed"
    assert "told apart" in cost.reason


@pytest.mark.parametrize(("scale", "epsilon"), [(0.15, 946), (0.2, 563), (0.25, 381), (0.3, 278)])
def test_the_published_deviation_has_its_price(scale, epsilon):
    """The table of doc/theory/pctd.rst, rounded up; 35 iterations are the default."""
    options = {"noise_scale": scale}
    cost = PublishedPCTD(epsilon=np.inf, **options).privacy_cost()
    assert math.ceil(cost.epsilon) == epsilon and cost.status == "claimed" and cost.unit == "token"
    assert cost.epsilon == epsilon_of(gaussian_event(scale, 35), 1e-5)
    assert cost == PublishedPCTD(epsilon=float(epsilon), **options).privacy_cost()
    assert PublishedPCTD(epsilon=np.inf, max_iter=10, **options).privacy_cost().epsilon < cost.epsilon
    with pytest.raises(ValueError, match=rf"noise_scale={scale} costs epsilon=.* more than epsilon={epsilon - 1}.0"):
        PublishedPCTD(epsilon=epsilon - 1.0, **options).privacy_cost()
    unbounded = PublishedPCTD(epsilon=np.inf, noise_support="observed", **options).privacy_cost()
    assert unbounded.epsilon == np.inf and unbounded.status == "claimed"


def test_a_published_deviation_needs_a_delta():
    with pytest.raises(ValueError, match="delta must be > 0"):
        PublishedPCTD(noise_scale=0.25, epsilon=np.inf, delta=0.0).privacy_cost()
    tiny = PublishedPCTD(noise_scale=1e-9, epsilon=np.inf).privacy_cost()
    assert tiny.epsilon > 1e15


@published
def test_a_fit_draws_noise_of_the_published_deviation():
    """Equal seeds: as the fit whose epsilon asks for that deviation, and unlike the one without noise."""
    X = UnitMatrix.from_counts(sp.csr_array(np.random.default_rng(0).integers(0, 3, (20, 6))))
    options = {"max_iter": 3, "random_state": 0}
    model = PublishedPCTD(2, noise_scale=0.25, epsilon=np.inf, **options).fit(X)
    assert "normal noise of standard deviation 0.25 on the count of every" in model.privacy_guarantee_.mechanism
    asked = PublishedPCTD(2, epsilon=model.privacy_guarantee_.epsilon, **options).fit(X)
    np.testing.assert_allclose(model.topic_word_, asked.topic_word_, rtol=1e-6)
    exact = PublishedPCTD(2, epsilon=np.inf, **options).fit(X)
    assert np.abs(model.topic_word_ - exact.topic_word_).max() > 0.01


@published
def test_noise_on_what_occurs_shows_which_words_occur():
    """At any noise: a word that nobody used has the prior and nothing else."""
    counts = random_units().counts.toarray()
    counts[:, 7] = 0
    without = UnitMatrix(np.arange(0, 61, 3), counts)
    counts[11, 7] = 1
    with_ = UnitMatrix(np.arange(0, 61, 3), counts)
    for seed in range(20):
        fits = [
            PublishedPCTD(2, noise_support="observed", epsilon=0.1, max_iter=1, random_state=seed)
            .fit(X)
            .components_[:, 7]
            for X in (without, with_)
        ]
        assert (fits[0] == 0.01).all()
        # Noise may be negative, and then the sum is cut at 0; half of the time the word is seen.
        seen = (fits[1] > 0.01).any()
        if seen:
            break
    assert seen
    everywhere = PublishedPCTD(2, epsilon=0.1, max_iter=1, random_state=0).fit(without)
    assert (everywhere.components_ != 0.01).any()


def test_the_published_form_warns_on_every_fit_and_charges():
    X = random_units()
    model = PublishedPCTD(2, epsilon=2.0, max_iter=2)
    for _ in range(2):
        with pytest.warns(PrivacyLeakWarning, match="drawn anew in each iteration"):
            model.fit(X)
    with PrivacyAccountant(epsilon=10.0, delta=model.delta, unit="token", accept_claimed=True) as accountant:
        with pytest.warns(PrivacyLeakWarning):
            model.fit(X)
        assert accountant.total.epsilon == pytest.approx(2.0, rel=1e-3)
    assert isinstance(model.privacy_guarantee_, PrivacyGuarantee)


@published
def test_no_noise_is_em():
    X = random_units()
    exact = PCTD(2, epsilon=np.inf, random_state=0).fit(X)
    for kind in (partial(PCTD, noise_on="units"), PublishedPCTD):
        same = kind(2, epsilon=np.inf, random_state=0).fit(X)
        np.testing.assert_array_equal(same.components_, exact.components_)
