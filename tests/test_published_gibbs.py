"""The sequential sampler against exact enumeration, its monitor against the reference, and its baselines."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import shifted
from draw_losses import exact_draw_loss, monitor_draw
from internals import PUBLISHED, fit_published, laplace
from internals import sequential_kernel as _sequential
from scipy import special, stats

from skdplda.exceptions import PrivacyLeakWarning
from skdplda.privacy import InherentPrivacyHistory
from skdplda.published import PriTopLDA

PRIORS = {"doc_topic_prior": 0.1, "topic_word_prior": 0.01}


class Corpus:
    """A flat corpus with the counts of its topics, in the order of the kernels' arguments."""

    def __init__(self, words, docs, topics, n_topics, n_words, alpha, beta):
        self.words, self.docs = np.asarray(words, dtype=np.int32), np.asarray(docs)
        self.doc_ptr = np.searchsorted(self.docs, np.arange(self.docs[-1] + 2)).astype(np.int64)
        self.topics = np.array(topics, dtype=np.uint16)
        self.doc_topic = np.zeros((self.docs[-1] + 1, n_topics))
        self.word_topic = np.zeros((n_words, n_topics))
        np.add.at(self.doc_topic, (self.docs, self.topics), 1)
        np.add.at(self.word_topic, (self.words, self.topics), 1)
        self.topic_total = self.word_topic.sum(axis=0)
        self.alpha, self.beta = np.full(n_topics, alpha, dtype=float), beta

    def sweep(self, kernel, seed, number, *rest):
        state = (self.topics, self.doc_topic, self.word_topic, self.topic_total, self.alpha, self.beta)
        return kernel(self.doc_ptr, self.words, *state, shifted(seed), number, *rest)

    def take(self, i, by):
        """Add `by` to the counts of token i."""
        self.doc_topic[self.docs[i], self.topics[i]] += by
        self.word_topic[self.words[i], self.topics[i]] += by
        self.topic_total[self.topics[i]] += by

    def weights(self, i):
        """Return the weights of token i, which is out of the counts."""
        word = np.maximum(self.word_topic[self.words[i]], 0) + self.beta
        total = np.maximum(self.topic_total, 0) + len(self.word_topic) * self.beta
        return word / total * (np.maximum(self.doc_topic[self.docs[i]], 0) + self.alpha)


TINY = {"words": [0, 0, 1, 1, 2], "docs": [0, 0, 0, 1, 1], "n_topics": 2, "n_words": 3}
STATES = np.array(list(product(range(2), repeat=5)))


def tiny(topics):
    return Corpus(**TINY, topics=topics, alpha=[0.4, 0.9], beta=0.3)


def exact_transition(start):
    """Return the probability that one sweep from `start` ends in each of STATES."""
    probabilities = np.ones(len(STATES))
    for n, end in enumerate(STATES):
        corpus = tiny(start)
        for i in range(len(end)):
            corpus.take(i, -1)
            weights = corpus.weights(i)
            corpus.topics[i] = end[i]
            probabilities[n] *= weights[end[i]] / weights.sum()
            corpus.take(i, 1)
    return probabilities


def exact_posterior():
    """Return p(topics | words) of each of STATES, from the Dirichlet integrals."""
    log_p = []
    for state in STATES:
        corpus = tiny(state)
        word = special.gammaln(corpus.word_topic + corpus.beta).sum() - special.gammaln(corpus.topic_total + 0.9).sum()
        log_p.append(word + special.gammaln(corpus.doc_topic + corpus.alpha).sum())
    p = np.exp(np.array(log_p) - np.max(log_p))
    return p / p.sum()


def frequencies(states):
    return np.bincount(states @ (1 << np.arange(5)[::-1]), minlength=len(STATES))


def random_corpus(seed, n_topics=4, n_words=6, n_docs=5, n_tokens=60):
    rng = np.random.default_rng(seed)
    docs, words = np.sort(rng.integers(n_docs, size=n_tokens)), rng.integers(n_words, size=n_tokens)
    docs[-1] = n_docs - 1
    words = words[np.lexsort([words, docs])]
    return Corpus(words, docs, rng.integers(n_topics, size=n_tokens), n_topics, n_words, 0.1, 0.05)


def random_counts(seed, shape=(20, 12), mean=1.5):
    return sp.csr_array(np.random.default_rng(seed).poisson(mean, size=shape))


def test_one_sweep_has_the_exact_distribution():
    start, n = np.array([0, 1, 1, 0, 0]), 20_000
    ends = np.empty((n, 5), dtype=int)
    for number in range(n):
        corpus = tiny(start)
        corpus.sweep(_sequential.sequential_sweep, 0, number)
        ends[number] = corpus.topics
    expected = exact_transition(start) * n
    assert expected.min() > 5
    assert stats.chisquare(frequencies(ends), expected).pvalue > 1e-6


def test_the_exact_sweep_leaves_the_posterior_unchanged():
    posterior = exact_posterior()
    after = posterior @ np.array([exact_transition(start) for start in STATES])
    np.testing.assert_allclose(after, posterior, rtol=1e-10)


def test_a_long_run_visits_states_as_often_as_the_posterior_says():
    corpus, n = tiny([0, 0, 0, 0, 0]), 40_000
    visits = np.empty((n, 5), dtype=int)
    for number in range(n):
        corpus.sweep(_sequential.sequential_sweep, 1, number)
        visits[number] = corpus.topics
    distance = np.abs(frequencies(visits) / n - exact_posterior()).sum() / 2
    assert distance < 0.02  # independent draws would give about 0.01


@pytest.mark.parametrize("seed", range(3))
def test_the_kernel_measures_what_the_reference_measures(seed):
    kernel, reference = random_corpus(seed), random_corpus(seed)
    n_tokens, n_words, n_max = len(kernel.words), len(kernel.word_topic), 17
    sums, expected_sums = np.zeros((2, n_tokens)), np.zeros((2, n_tokens))
    for number in range(3):
        result = kernel.sweep(_sequential.sequential_sweep_monitored, seed, number, n_max, *sums)
        losses = []
        for i in range(n_tokens):  # replay the kernel's draws, one at a time
            reference.take(i, -1)
            word, doc = reference.word_topic[reference.words[i]], reference.doc_topic[reference.docs[i]]
            args = (reference.alpha, reference.beta, n_words)
            for level, n_removed in enumerate((1, n_max)):
                expected_sums[level, i] += monitor_draw(word, reference.topic_total, doc, n_removed, *args)
            twin = (reference.words == reference.words[i]) & (reference.docs == reference.docs[i])
            twin[i] = False
            twins = np.bincount(reference.topics[twin], minlength=4)
            losses.append(exact_draw_loss(word, reference.topic_total, doc, *args, twin_counts=twins))
            reference.topics[i] = kernel.topics[i]
            reference.take(i, 1)
        np.testing.assert_allclose(sums, expected_sums, rtol=1e-10)
        np.testing.assert_allclose(result, [*expected_sums.max(axis=1), np.max(losses), np.sum(losses)], rtol=1e-10)
    np.testing.assert_array_equal(kernel.word_topic, reference.word_topic)


def test_measuring_does_not_change_the_sampler():
    plain, monitored = random_corpus(0), random_corpus(0)
    for number in range(3):
        plain.sweep(_sequential.sequential_sweep, 5, number)
        monitored.sweep(_sequential.sequential_sweep_monitored, 5, number, 10, np.zeros(60), np.zeros(60))
    np.testing.assert_array_equal(plain.topics, monitored.topics)


def test_counts_are_those_of_the_topics_after_every_kernel():
    noise = np.random.default_rng(0).laplace(scale=20, size=(2, 60))
    for kernel, rest in (
        (_sequential.sequential_sweep, ()),
        (_sequential.sequential_sweep_monitored, (10, np.zeros(60), np.zeros(60))),
        (_sequential.sequential_sweep, (np.inf, *noise)),
    ):
        corpus = random_corpus(1)
        before = corpus.topics.copy()
        corpus.sweep(kernel, 3, 0, *rest)
        assert (corpus.topics != before).any()
        again = Corpus(corpus.words, corpus.docs, corpus.topics, 4, 6, 0.1, 0.05)
        np.testing.assert_array_equal(corpus.doc_topic, again.doc_topic)
        np.testing.assert_array_equal(corpus.word_topic, again.word_topic)
        np.testing.assert_array_equal(corpus.topic_total, again.topic_total)


def test_a_negative_count_weighs_nothing():
    """All counts of topic 1 are negative: its weight is that of the priors alone."""
    n, hits, expected = 4000, 0, None
    for number in range(n):
        corpus = Corpus([0, 1, 2], [0, 0, 0], [0, 0, 0], 2, 3, 0.5, 0.5)
        corpus.word_topic[:, 1] = corpus.doc_topic[:, 1] = corpus.topic_total[1] = -7.5
        if expected is None:
            corpus.take(0, -1)
            expected = corpus.weights(0) / corpus.weights(0).sum()
            corpus.take(0, 1)
        corpus.sweep(_sequential.sequential_sweep, 9, number)
        hits += corpus.topics[0]
    assert expected.min() > 0
    assert stats.binomtest(hits, n, expected[1]).pvalue > 1e-6


def test_noise_has_laplaces_law():
    """Kolmogorov's test at level 1e-6, with a fixed seed."""
    drawn = laplace(np.random.default_rng(0), 3.0, (100, 500))
    assert drawn.shape == (100, 500) and np.isfinite(drawn).all()
    assert stats.kstest(drawn.ravel(), stats.laplace(scale=3.0).cdf).pvalue > 1e-6


def test_laplace_last_without_noise_is_the_plain_sweep():
    plain, last = random_corpus(2), random_corpus(2)
    plain.sweep(_sequential.sequential_sweep, 1, 0)
    last.sweep(_sequential.sequential_sweep, 1, 0, np.inf, np.zeros(60), np.zeros(60))
    np.testing.assert_array_equal(plain.topics, last.topics)


@pytest.mark.parametrize("noise", [(-1e6, 0.0), (1e6, 0.0), (0.0, -1e6), (0.0, 1e6)])
def test_laplace_last_draws_evenly_where_no_weight_is_positive(noise):
    n_tokens = 4000
    corpus = Corpus(np.zeros(n_tokens), np.zeros(n_tokens, dtype=int), np.zeros(n_tokens), 4, 2, 0.1, 0.1)
    corpus.sweep(_sequential.sequential_sweep, 0, 0, np.inf, *(np.full(n_tokens, value) for value in noise))
    assert stats.chisquare(corpus.topic_total).pvalue > 1e-6


def test_laplace_last_has_the_noisy_distribution():
    start, n, eta = np.array([0, 1, 1, 0, 0]), 4000, (1.7, -0.8)
    hits = 0
    for number in range(n):
        corpus = tiny(start)
        corpus.sweep(_sequential.sequential_sweep, 2, number, np.inf, *(np.full(5, value) for value in eta))
        hits += corpus.topics[0]
    corpus = tiny(start)
    corpus.take(0, -1)
    p = np.maximum(corpus.word_topic[0] + eta[0] + 0.3, 0) / (corpus.topic_total - eta[0] + 0.9)
    p *= np.maximum(corpus.doc_topic[0] + eta[1] + corpus.alpha, 0)
    assert stats.binomtest(hits, n, p[1] / p.sum()).pvalue > 1e-6


@pytest.mark.parametrize("eta", [(0.4, -0.3), (-1.2, 2.0), (0.4, 40.0), (9.0, -0.3)])
def test_rescaled_weights_have_the_distribution_of_the_authors_code(eta):
    """Chi-square at level 1e-6; documents that are shorter than their noise turn the order of topics around."""
    start, drawn = random_corpus(5), []
    for number in range(4000):
        corpus = random_corpus(5)
        noise = (np.full(60, value) for value in eta)
        corpus.sweep(_sequential.sequential_sweep, 2, number, np.inf, *noise, True)
        drawn.append(corpus.topics[0])
    start.take(0, -1)
    length = start.doc_ptr[1] - start.doc_ptr[0]
    p = (start.word_topic[start.words[0]] + eta[0] + 0.05) / (start.topic_total - eta[0] + 6 * 0.05)
    p *= (start.doc_topic[0] + eta[1] + 0.1) / (length - eta[1] + 4 * 0.1)
    p = (p - p.min()) / (p - p.min()).sum()
    hits = np.bincount(drawn, minlength=4)
    assert hits[p == 0] == 0
    assert stats.chisquare(hits[p > 0], 4000 * p[p > 0]).pvalue > 1e-6


def test_rescaled_weights_draw_evenly_where_all_are_equal():
    corpus, hits = Corpus([0], [0], [0], 4, 2, 0.1, 0.1), np.zeros(4)
    for number in range(2000):
        corpus.sweep(_sequential.sequential_sweep, 0, number, np.inf, np.ones(1), np.ones(1), True)
        hits[corpus.topics[0]] += 1
    assert stats.chisquare(hits).pvalue > 1e-6


def test_the_estimator_has_both_kinds_of_weights():
    X, made = random_counts(6), {"epsilon": 2.0, "max_iter": 3, "random_state": 0}
    with pytest.warns(PrivacyLeakWarning):
        clipped, rescaled = (PriTopLDA(4, weights=kind, **made).fit(X) for kind in ("clipped", "rescaled"))
    assert (clipped.components_ != rescaled.components_).any()
    with pytest.warns(PrivacyLeakWarning):
        again = PriTopLDA(4, weights="rescaled", **made).fit(X)
    np.testing.assert_array_equal(again.components_, rescaled.components_)
    assert rescaled.privacy_guarantee_.mechanism.endswith("laplace-last-rescaled")
    with pytest.raises(ValueError, match="The 'weights' parameter of PriTopLDA must be a str among"):
        PriTopLDA(4, weights="shifted").fit(X)


def test_fit_published_finds_planted_topics():
    rng = np.random.default_rng(0)
    X = np.zeros((60, 20), dtype=int)
    X[:30, :10], X[30:, 10:] = rng.poisson(3, size=(2, 30, 10))
    counts = fit_published(sp.csr_array(X), 2, form="inherent", max_iter=50, seed=0, **PRIORS).word_topic
    share = counts[:, :10].sum(axis=1) / counts.sum(axis=1)
    assert share.min() < 0.01
    assert share.max() > 0.99


def test_laplace_last_gives_away_every_word_total():
    X = random_counts(3)
    found = 0
    for seed in range(40):
        fit = fit_published(X, 4, form="laplace-last", epsilon=0.1, max_iter=3, seed=seed, **PRIORS)
        found += np.array_equal(fit.word_topic.sum(axis=0), X.sum(axis=0))
    assert found == 40
    assert fit.n_iter == 4


@pytest.mark.parametrize(("mechanism", "n_noises"), [("laplace-first", 1), ("laplace-every", 4)])
def test_noise_stays_in_the_running_counts(mechanism, n_noises):
    X, epsilon = random_counts(4, shape=(30, 400), mean=0.5), 0.5
    fit = fit_published(X, 10, form=mechanism, epsilon=epsilon, max_iter=4, seed=1, **PRIORS)
    residuals = fit.word_topic.sum(axis=0) - X.sum(axis=0)  # K noises a word, each drawn n_noises times
    variance = 10 * n_noises * 2 / epsilon**2
    assert fit.word_topic.min() < 0
    # Variance of 400 near-normal values: relative standard error 7 %; 5 of them are a false alarm of 6e-7.
    assert np.mean(residuals**2) == pytest.approx(variance, rel=0.35)


@pytest.mark.parametrize("mechanism", ["laplace-first", "laplace-every", "inherent"])
def test_without_noise_all_mechanisms_are_one(mechanism):
    X = random_counts(5)
    expected = fit_published(X, 3, form="laplace-first", epsilon=np.inf, max_iter=4, seed=2, **PRIORS)
    fit = fit_published(X, 3, form=mechanism, epsilon=np.inf, max_iter=4, seed=2, **PRIORS)
    np.testing.assert_array_equal(fit.word_topic, expected.word_topic)
    np.testing.assert_array_equal(fit.word_topic.sum(axis=0), X.sum(axis=0))


def test_only_inherent_has_a_history():
    X = random_counts(6)
    for mechanism in PUBLISHED:
        fit = fit_published(X, 3, form=mechanism, epsilon=1.0, max_iter=5, seed=0, **PRIORS)
        assert (fit.monitor is None) == (mechanism != "inherent")
    fit = fit_published(X, 3, form="inherent", max_iter=5, seed=0, **PRIORS)
    history = InherentPrivacyHistory(**fit.monitor)
    frame = history.to_frame()
    assert len(frame) == 5
    assert (frame.diff().dropna() >= 0).all(axis=None)
    assert (frame["word_level"] < frame["document_level"]).all()
    assert (frame["worst_draw"] < frame["sum_of_draws"]).all()


def test_a_seed_makes_the_fit_reproducible_and_none_does_not():
    X, settings = random_counts(8), {"form": "laplace-first", "epsilon": 1.0, "max_iter": 1, **PRIORS}
    first, second, third, fourth = (fit_published(X, 3, seed=seed, **settings) for seed in (7, 7, None, None))
    np.testing.assert_array_equal(first.word_topic, second.word_topic)
    assert not np.array_equal(third.word_topic, fourth.word_topic)


def test_the_corpus_is_left_alone_and_may_be_untidy():
    X = sp.csr_array((np.array([1, 2, 1, 0]), np.array([2, 0, 2, 1]), np.array([0, 3, 3, 4])), shape=(3, 3))
    data, indices = X.data.copy(), X.indices.copy()
    fit = fit_published(X, 2, form="inherent", max_iter=3, seed=0, **PRIORS)
    np.testing.assert_array_equal(X.data, data)
    np.testing.assert_array_equal(X.indices, indices)
    np.testing.assert_array_equal(fit.word_topic.sum(axis=0), [2, 0, 2])


@pytest.mark.parametrize("mechanism", PUBLISHED)
def test_an_empty_corpus_is_a_corpus(mechanism):
    X = sp.csr_array((3, 4), dtype=int)
    fit = fit_published(X, 2, form=mechanism, epsilon=np.inf, max_iter=2, seed=0, **PRIORS)
    assert fit.word_topic.shape == (2, 4)
    assert not fit.word_topic.any()
