"""Topics from reports: the estimators' formulas, the sampler of words and noise, streams, bad input."""

import copy
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from internals import (
    bayes_estimate,
    document_lengths,
    like_length,
    local_model,
    moment_estimate,
    moment_variance,
    positions,
    reconstruct,
    refuse_raw,
    split_variance,
)
from numpy.testing import assert_allclose, assert_array_equal

from skdplda import BudgetExceededError, LocalPrivateLDA, PrivacyAccountant, PrivacyLeakWarning
from skdplda.datasets import make_lda_corpus, topic_recovery
from skdplda.exceptions import NoisyTopicsWarning
from skdplda.local import BitChannel, LocalRandomizer, bit_epsilon_of_coin, make_reports, randomize_bits, read_reports
from skdplda.privacy import Randomness

SEEDED = pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
N_WORDS, N_TOPICS = 200, 3


@pytest.fixture(scope="module")
def corpus():
    return make_lda_corpus(1500, N_WORDS, N_TOPICS, mean_length=25, topic_word_prior=0.3, random_state=0)


def model(epsilon=3.0, **options):
    randomizer = LocalRandomizer(**({"bit_epsilon": epsilon} | options.pop("report", {})))
    return LocalPrivateLDA(**({"n_components": N_TOPICS, "randomizer": randomizer, "max_iter": 20} | options))


def test_reconstructed_counts_are_the_estimates():
    rng = np.random.default_rng(0)
    reports = sp.csr_array((rng.random((200, 5)) < 0.4).astype(np.int32))
    wanted = np.array([0.0, 200.0, 60.4, 99.6, float(reports[:, [4]].sum())])
    bits = reconstruct(reports, wanted, rng)
    assert_array_equal(bits.sum(axis=0), np.rint(wanted))
    assert set(bits.data) == {1}
    before, after = reports.toarray(), bits.toarray()
    for w in range(5):  # bits are inserted, or deleted, never both
        assert (after[:, w] >= before[:, w]).all() or (after[:, w] <= before[:, w]).all()


def test_the_bayes_estimate_is_equation_19():
    f, m, s2 = 0.2, 160, 30.0
    channel = BitChannel(bit_epsilon_of_coin(f), "symmetric", 4)
    mean, ones = np.array([5.0, 20.0, 80.0, 0.0]), np.array([30.0, 30.0, 70.0, 4.0])
    omega = m * f * (2 - f) / (m * f * (2 - f) + 4 * s2 * (1 - f) ** 2)
    moment = moment_estimate(ones, m, channel, clip=False)
    expected = np.clip(omega * mean + (1 - omega) * (2 * ones - f * m) / (2 * (1 - f)), 0, m)
    assert_allclose(bayes_estimate(moment, m, channel, mean, omega), expected)
    variance = (2 - f) * f * m / (4 * (1 - f) ** 2)
    far = mean + np.sqrt(s2 + variance) * np.array([1, -1, 1, -1])  # a spread of exactly s2
    assert_allclose(bayes_estimate(far, m, channel, mean), np.clip(omega * mean + (1 - omega) * far, 0, m))


@pytest.mark.parametrize("mechanism", ["symmetric", "asymmetric"])
def test_the_sampler_tells_words_from_noise_as_bayes_rule_does(mechanism):
    """One topic known exactly and documents of known length: a bit is a word with probability
    (p - q) length phi / (q + (p - q) length phi)."""
    n, phi = 4000, np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    channel = BitChannel(1.5, mechanism, 5)
    p, q = channel.one_if_present, channel.one_if_absent
    X = sp.csr_array(np.ones((n, 5), np.int32))
    length = document_lengths(np.diff(X.indptr), X.shape[1], channel)
    assert_array_equal(length, 5)  # all ones: as many as there are words
    estimator = LocalPrivateLDA(1, doc_topic_prior=1e6, topic_word_prior=1e-6, max_iter=10)
    found = estimator._sample(X, channel, 1e9 * phi[None], 1e-6, Randomness(0), 0)[0] / n
    expected = (p - q) * 5 * phi / (q + (p - q) * 5 * phi)
    assert_allclose(found, expected, atol=6 * 0.5 / math.sqrt(n))  # each sweep alone would be as close


@pytest.mark.parametrize("mechanism", ["symmetric", "asymmetric"])
def test_lengths_of_documents(mechanism):
    """Documents of 10 and of 60 words: unbiased before shrinking, which brings them closer to the truth."""
    true = np.repeat([10, 60], 2000)
    X = sp.csr_array((np.arange(300) < true[:, None]).astype(np.int32))
    channel = BitChannel(2.0, mechanism, 300)
    indptr, indices = positions(randomize_bits(X, channel, 5))
    reports = sp.csr_array((np.ones(len(indices), np.int32), indices, indptr), shape=X.shape)
    moment = moment_estimate(np.diff(indptr), 300, channel, clip=False)
    found = document_lengths(np.diff(reports.indptr), reports.shape[1], channel)
    spread = math.sqrt(moment_variance(60, 300, channel))
    for length in (10, 60):
        assert abs(moment[true == length].mean() - length) < 4.9 * spread / math.sqrt(2000)
    assert np.mean((found - true) ** 2) < np.mean((moment - true) ** 2)
    assert found.min() >= 0 and found.max() <= 300


def test_like_lengths_share_a_group():
    lengths = np.random.default_rng(0).gamma(2.0, 30.0, 500)
    group, means = like_length(lengths, 8, 32)
    assert len(means) == 8 and means == sorted(means)
    assert_allclose(means, [lengths[group == number].mean() for number in range(8)])
    assert (np.diff(group[np.argsort(lengths)].astype(int)) >= 0).all() and np.bincount(group).min() >= 62
    assert len(like_length(lengths[:31], 8, 32)[1]) == 1


@SEEDED
@pytest.mark.parametrize("epsilon", [2.5, 4.0])
def test_the_sampler_finds_as_many_words_as_there_are(corpus, epsilon):
    fitted = model(epsilon, random_state=0).fit(corpus.data)
    channel = fitted.randomizer.channel(N_WORDS)
    signal = (channel.one_if_present - channel.one_if_absent) * corpus.data.count_nonzero()
    assert fitted.stream_prior_.sum() / fitted.correlation == pytest.approx(signal, rel=0.1)


@SEEDED
@pytest.mark.parametrize("reconstruction", ["moment", "bayes", "likelihood"])
def test_without_noise_they_are_one_model(corpus, reconstruction):
    exact = model(math.inf, random_state=0, max_iter=40).fit(corpus.data)
    other = model(math.inf, random_state=0, max_iter=40, reconstruction=reconstruction).fit(corpus.data)
    assert_array_equal(exact.components_, other.components_)
    assert topic_recovery(corpus.topic_word, exact.topic_word_).mean > 0.5  # 0.65 is the least of 104 seeds


@SEEDED
@pytest.mark.parametrize(
    ("report", "n_corpora"), [({}, 8), ({"mechanism": "asymmetric"}, 2), ({"max_words_per_document": 12}, 7)]
)
def test_planted_topics_are_found_and_the_likelihood_finds_them_better(report, n_corpora):
    """By 0.08, 0.19 and 0.09 nats, over 14 corpora with deviations of 0.05 at most: here are several."""
    gains = []
    for seed in range(n_corpora):
        X = make_lda_corpus(1500, N_WORDS, N_TOPICS, mean_length=25, topic_word_prior=0.3, random_state=seed).data
        options, found = {"report": report, "max_iter": 40}, []
        for reconstruction in ("moment", "likelihood"):
            fits = [model(reconstruction=reconstruction, random_state=k, **options).fit(X) for k in range(2)]
            found.append(np.log([fit.perplexity(X) for fit in fits]).mean())
        gains.append(found[0] - found[1])
    assert np.mean(gains) > 0


def of_device(guarantee):
    """Return a guarantee without the names of what the server makes of reports."""
    return replace(guarantee, released=guarantee.released[:1])


def test_reports_made_elsewhere(corpus):
    words = [f"w{i}" for i in range(N_WORDS)]
    randomizer = LocalRandomizer(4.0, max_words_per_document=20)
    batch = read_reports([make_reports(corpus.data, words, randomizer).tobytes()], words, randomizer)
    fitted = model(input="reports", randomizer=randomizer).fit(batch.data)
    assert fitted.privacy_guarantee_.epsilon == 4.0 * 40
    assert of_device(fitted.bit_guarantee_) == randomizer.privacy_cost(n_words=N_WORDS, unit="bit")
    assert topic_recovery(corpus.topic_word, fitted.topic_word_).mean > 0.5


@SEEDED
def test_any_number_of_threads_gives_the_same_model(corpus):
    fits = [model(2.0, n_jobs=n, random_state=1, max_iter=5).fit(corpus.data) for n in (1, 2, 4)]
    assert_array_equal(fits[0].components_, fits[1].components_)
    assert_array_equal(fits[0].components_, fits[2].components_)


@SEEDED
@pytest.mark.parametrize("reconstruction", ["bayes", "likelihood"])
def test_a_stream_follows_equations_10_to_13_and_21(corpus, reconstruction):
    fitted = model(2.0, reconstruction=reconstruction, correlation=0.3, prior_weight=0.4, random_state=0)
    fitted.fit_prior(corpus.data[:200])
    rates = (corpus.data[:200] > 0).sum(axis=0) / 200
    assert_allclose(fitted.word_rates_, np.ravel(rates))
    assert_allclose(fitted.stream_prior_, 0.3 * (fitted.components_ - 0.01))
    channel = fitted.randomizer.channel(N_WORDS)
    for start in (200, 300):
        prior, expected = fitted.stream_prior_, fitted.word_rates_
        fitted.partial_fit(corpus.data[start : start + 100])
        counts = fitted.components_ - prior - 0.01
        assert counts.min() > -1e-9
        assert_allclose(fitted.stream_prior_, prior + 0.3 * counts)
        found = 2 * fitted.word_rates_ - expected  # eta / M, for the mean of mu / M and eta / M is kept
        assert found.min() > -1e-9 and found.max() < 1 + 1e-9
        if reconstruction == "bayes":
            batch = sp.csr_array(corpus.data[start : start + 100])
            words = batch.indptr.astype(np.int64), batch.indices.astype(np.int64), batch.data > 0
            seed = Randomness(0, "LocalPrivateLDA").noise(fitted.n_batches_ - 1, *words)
            bits = randomize_bits(batch, channel, seed)
            ones = np.unpackbits(bits, axis=1, bitorder="little")[:, :N_WORDS].sum(axis=0)
            moment = moment_estimate(ones, 100, channel, clip=False)
            assert_allclose(found, np.clip(0.4 * 100 * expected + 0.6 * moment, 0, 100) / 100, atol=1e-12)


@SEEDED
def test_without_noise_a_stream_is_the_same_for_every_reconstruction(corpus):
    fits = [model(math.inf, reconstruction=r, random_state=0) for r in ("bayes", "likelihood")]
    for fitted in fits:
        fitted.fit_prior(corpus.data[:100]).partial_fit(corpus.data[100:200]).partial_fit(corpus.data[200:300])
    assert_array_equal(fits[0].components_, fits[1].components_)


def test_a_stream_gets_better_and_does_not_grow(corpus):
    fitted, sizes, scores = model(3.0), [], []
    for start in range(0, 1500, 150):
        fitted.partial_fit(corpus.data[start : start + 150])
        sizes.append(len(pickle.dumps(fitted)))
        scores.append(fitted.score(corpus.data))
    assert fitted.n_batches_ == 10
    assert max(sizes[1:]) - min(sizes[1:]) < 64
    assert np.mean(scores[-3:]) > scores[0]


def test_fit_forgets_the_stream(corpus):
    fitted = model().fit_prior(corpus.data[:300])
    fitted.fit(corpus.data[:50])
    assert fitted.n_batches_ == 1
    noise = moment_variance(0, 50 / N_TOPICS, fitted.randomizer.channel(N_WORDS))
    assert_allclose(fitted.components_ - 2 * fitted.stream_prior_, 0.01 * math.sqrt(1 + noise))


@SEEDED
def test_batches_have_noise_of_their_own(corpus):
    """With one seed, too: equal documents in two batches give different reports."""
    seeds = {Randomness(3).noise(batch) for batch in range(5)}
    assert len(seeds) == 5
    once = model(1.0, random_state=3).partial_fit(corpus.data[:100])
    first = once.word_rates_
    once.partial_fit(corpus.data[:100])
    assert not np.allclose(2 * once.word_rates_ - first, first)


def test_a_seed_warns_when_it_makes_noise(corpus):
    with pytest.warns(PrivacyLeakWarning, match="function of that seed"):
        seeded = model(1.0, random_state=0).fit(corpus.data[:50])
    with pytest.warns(PrivacyLeakWarning, match="undoes the noise"):
        model(1.0, report={"random_state": 0}).fit(corpus.data[:50])
    assert any("seed" in assumed for assumed in seeded.privacy_guarantee_.assumptions)
    assert not any("seed" in assumed for assumed in model(1.0).privacy_cost(n_words=9).assumptions)
    reports = LocalRandomizer(1.0).fit_transform(corpus.data[:50])
    model(1.0, random_state=0, input="reports").fit(reports)  # only the sampler is seeded


@SEEDED
def test_a_seed_of_the_randomizer_serves_one_batch(corpus):
    """Equal noise in two batches would cancel in the difference of two users' reports."""
    fitted = model(1.0, report={"random_state": 0}, max_iter=1)
    rates = [fitted.partial_fit(corpus.data[:50]).word_rates_]
    again = fitted.partial_fit(corpus.data[:50]).word_rates_
    assert (2 * again - rates[0] != rates[0]).any()


@SEEDED
@pytest.mark.parametrize("seeds", [{"random_state": 7}, {"report": {"random_state": 7}}])
def test_other_documents_have_flips_of_their_own(corpus, monkeypatch, seeds):
    """Of a fit to one document less, and of copies of a stream that are given different batches."""
    made = []

    def kept(X, channel, seed, n_threads):
        made.append(seed)
        return randomize_bits(X, channel, seed, n_threads)

    monkeypatch.setattr(local_model, "randomize_bits", kept)
    fitted, X = model(max_iter=1, **seeds), corpus.data[:50]
    for data in (X, X[:-1], X):
        fitted.fit(data)
    one, other = copy.deepcopy(fitted), copy.deepcopy(fitted)
    one.partial_fit(X)
    other.partial_fit(X[1:])
    assert made[0] == made[2] and len(set(made)) == 4


def test_devices_do_not_share_a_seed():
    server = model(epsilon=2.0, report={"random_state": bytes(32)})
    assert server.device_randomizer(N_WORDS).random_state is None
    assert server.set_params(epsilon=1.0).device_randomizer(N_WORDS).random_state is None


def test_raw_documents_do_not_pass_for_reports(corpus):
    """The bound on the ones of noise alone has a false-alarm rate below 1e-9."""
    raw = (corpus.data > 0).astype(int)
    with pytest.raises(ValueError, match="fewer ones than noise alone makes"):
        model(1.0, input="reports").fit(raw)
    model(1.0, input="reports", max_iter=1).fit(LocalRandomizer(1.0).fit_transform(np.zeros((500, N_WORDS))))


def test_one_stream_has_one_guarantee(corpus):
    fitted = model(2.0).partial_fit(corpus.data[:50])
    given, before = fitted.randomizer, pickle.dumps(fitted)
    for changed in (
        {"bit_epsilon": 1.0},
        {"max_words_per_document": 4},
        {"reports_per_user": 2},
        {"mechanism": "asymmetric"},
    ):
        fitted.set_params(randomizer=LocalRandomizer(**({"bit_epsilon": 2.0} | changed)))
        with pytest.raises(ValueError, match=r"go on with what it began with.*epsilon=400"):
            fitted.partial_fit(corpus.data[:50])
    fitted.set_params(randomizer=given)
    assert pickle.dumps(fitted) == before
    fitted.partial_fit(corpus.data[:50])
    model(2.0).fit_prior(corpus.data[:50]).set_params(randomizer=LocalRandomizer(1.0)).partial_fit(corpus.data[:50])


def test_users_are_counted_and_declared_ones_compose(corpus):
    users = np.array(["ann", "bob", "ann", "eve"])
    with pytest.raises(ValueError, match="more than reports_per_user=1 reports") as error:
        model().fit(corpus.data[:4], groups=users)
    assert "ann" not in str(error.value)  # nobody is named
    alone = model().fit(corpus.data[:4], groups=np.array(["eve", "bob", "zoe", "ann"]))  # in an order of their own
    assert alone.privacy_guarantee_ == model().fit(corpus.data[:4]).privacy_guarantee_
    twice = model(3.0, report={"max_words_per_document": 5, "reports_per_user": 2}).fit(corpus.data[:4], groups=users)
    assert twice.privacy_guarantee_.epsilon == 2 * 10 * 3.0
    assert twice.bit_guarantee_.epsilon == pytest.approx(2 * math.log((1 + 5 * math.exp(6)) / 6))


def test_the_cost_is_known_before():
    estimator = model(1.5, report={"max_words_per_document": 7})
    assert estimator.privacy_cost().epsilon == 21.0
    assert estimator.privacy_cost(unit="bit").epsilon == pytest.approx(math.log((1 + 7 * math.exp(3)) / 8))
    assert model(1.5).privacy_cost(unit="bit").epsilon == 1.5
    assert model(1.5).privacy_cost(n_words=100).epsilon == 150.0
    with pytest.raises(ValueError, match="n_words must be given"):
        model(1.5).privacy_cost()


LAWS = [
    {"mechanism": mechanism, "max_words_per_document": most, "reports_per_user": reports}
    for mechanism in ("symmetric", "asymmetric")
    for most in (None, 1, 5, N_WORDS)
    for reports in (1, 3)
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: "-".join(map(str, law.values())))
@pytest.mark.parametrize("unit", ["bit", "document"])
@pytest.mark.parametrize("epsilon", [0.37, 2.0, 11.0])
def test_epsilon_is_the_most_that_a_unit_loses_and_is_used_up(unit, epsilon, law):
    """By the guarantee of the law that the devices get; the smallest step more breaks it."""
    estimator = LocalPrivateLDA(epsilon=epsilon, epsilon_unit=unit, randomizer=LocalRandomizer(7.0, **law))
    bit = estimator.device_randomizer(N_WORDS).bit_epsilon
    assert estimator.privacy_cost(n_words=N_WORDS, unit=unit).epsilon <= epsilon
    assert estimator.device_randomizer(N_WORDS).channel(N_WORDS).guarantee(unit).epsilon > epsilon * (1 - 1e-9)
    more = LocalRandomizer(math.nextafter(bit, math.inf), **law)
    assert more.channel(N_WORDS).guarantee(unit).epsilon > epsilon
    other = "document" if unit == "bit" else "bit"
    stated = LocalRandomizer(bit, **law).privacy_cost(n_words=N_WORDS, unit=other)
    assert of_device(estimator.privacy_cost(n_words=N_WORDS, unit=other)) == stated


def test_epsilon_of_a_plain_bit_is_that_of_the_randomizer(corpus):
    by_bits = LocalPrivateLDA(epsilon=1.7)
    assert by_bits.device_randomizer(N_WORDS).bit_epsilon == 1.7
    assert by_bits.privacy_cost(n_words=N_WORDS) == LocalPrivateLDA(randomizer=LocalRandomizer(1.7)).privacy_cost(
        n_words=N_WORDS
    )
    assert by_bits.privacy_cost(unit="bit").epsilon == 1.7
    assert LocalPrivateLDA().device_randomizer(N_WORDS).bit_epsilon == LocalRandomizer().bit_epsilon
    assert LocalPrivateLDA(epsilon=math.inf).privacy_cost(n_words=N_WORDS).epsilon == math.inf
    assert LocalPrivateLDA(epsilon=1e6).device_randomizer(N_WORDS).bit_epsilon == 30.0
    with pytest.raises(ValueError, match="n_words must be given"):
        LocalPrivateLDA(epsilon=5.0, epsilon_unit="document").privacy_cost(unit="bit")
    with pytest.raises(ValueError, match=r"epsilon=0\.0001 for a document is too small: with 200 words"):
        LocalPrivateLDA(epsilon=1e-4, epsilon_unit="document").fit(corpus.data[:5])
    with pytest.raises(ValueError, match="epsilon_unit"):
        LocalPrivateLDA(epsilon=1.0, epsilon_unit="word").fit(corpus.data[:5])


@SEEDED
def test_a_fit_and_reports_made_by_the_devices_have_the_noise_that_epsilon_asks_for(corpus):
    law, X = LocalRandomizer(max_words_per_document=8), corpus.data[:300]
    asked = {"epsilon": 24.0, "epsilon_unit": "document", "randomizer": law, "max_iter": 20}
    estimator = LocalPrivateLDA(N_TOPICS, **asked, random_state=bytes(32))
    fitted = estimator.fit(X)
    same = model(randomizer=LocalRandomizer(1.5, max_words_per_document=8), random_state=bytes(32)).fit(X)
    np.testing.assert_array_equal(fitted.components_, same.components_)
    assert fitted.privacy_guarantee_ == same.privacy_guarantee_ and fitted.privacy_guarantee_.epsilon == 24.0
    reports = estimator.device_randomizer(N_WORDS).set_params(random_state=1).fit_transform(X)
    served = LocalPrivateLDA(N_TOPICS, **asked, input="reports", random_state=0).fit(reports)
    assert served.privacy_guarantee_.epsilon == 24.0 and served.bit_guarantee_.epsilon <= 3.0
    with pytest.raises(ValueError, match="partial_fit must go on with what it began with"):
        served.set_params(epsilon=25.0).partial_fit(reports)
    with PrivacyAccountant(epsilon=30.0, unit="document", adjacency="replace", trust="local") as accountant:
        LocalPrivateLDA(N_TOPICS, **asked).fit(X)
        with pytest.raises(BudgetExceededError):
            LocalPrivateLDA(N_TOPICS, **asked).fit(X)
    assert accountant.total.epsilon == 24.0


def test_randomizing_is_paid_for_before_data_are_read_and_reports_are_free(corpus):
    bad = np.full((3, N_WORDS), np.nan)
    with PrivacyAccountant(epsilon=10.0, unit="document", adjacency="replace", trust="local") as accountant:
        with pytest.raises(BudgetExceededError):
            model(1.0).fit(bad)
        model(1.0, report={"max_words_per_document": 2}).fit(corpus.data[:20])
        model(9.0, input="reports").fit((corpus.data[:20] > 0).astype(int))
    assert accountant.total.epsilon == 4.0


def test_bad_batches_leave_the_model_as_it_was(corpus):
    fitted = model(input="reports").partial_fit((corpus.data[:100] > 0).astype(int))
    before = pickle.dumps(fitted)
    for batch, message in (
        (corpus.data[:10], "must hold presence bits"),
        (np.ones((5, N_WORDS + 1)), "features"),
        (np.ones((0, N_WORDS)), "0 sample"),
        (np.full((2, N_WORDS), np.nan), "NaN"),
        (-np.ones((2, N_WORDS)), "Negative"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted.partial_fit(batch)
    assert pickle.dumps(fitted) == before


def test_empty_documents_and_reports_are_fine():
    empty = np.zeros((8, 6), dtype=int)
    for epsilon in (0.5, math.inf):
        for reconstruction in ("moment", "bayes", "likelihood"):
            fitted = LocalPrivateLDA(2, randomizer=LocalRandomizer(epsilon), reconstruction=reconstruction, max_iter=3)
            assert np.isfinite(fitted.fit(empty).topic_word_).all()


def test_more_topics_than_words_warns():
    with pytest.warns(UserWarning, match="n_components=9 exceeds the 6 words"):
        LocalPrivateLDA(9, max_iter=2).fit(np.eye(6, dtype=int))


def test_parameters_are_validated(corpus):
    with pytest.raises(ValueError, match="doc_topic_prior must be"):
        model(doc_topic_prior=[1.0, 2.0]).fit(corpus.data[:5])
    with pytest.raises(ValueError, match="correlation"):
        model(correlation=1.5).fit(corpus.data[:5])
    with pytest.raises(ValueError, match="bit_epsilon must be from 1e-06 to 30"):
        model(40.0).fit(corpus.data[:5])


def test_bits_with_fewer_ones_than_noise_makes_are_refused_at_six_and_a_half_deviations():
    """Noise alone makes 1,000 x 400 q ones on average; so few are less than 1e-9 likely (Chernoff)."""
    channel = LocalRandomizer(bit_epsilon=2.0).channel(400)
    mean = 400_000 / (1 + math.exp(2))
    refuse_raw(mean - 6.3 * math.sqrt(mean), 400_000, channel)
    with pytest.raises(ValueError, match="fewer ones than noise alone makes"):
        refuse_raw(mean - 6.7 * math.sqrt(mean), 400_000, channel)


@pytest.mark.parametrize("law", [{}, {"mechanism": "asymmetric"}])
def test_the_variance_of_a_random_split_is_that_of_reports_divided_at_random(law):
    channel, rng, n, share = LocalRandomizer(bit_epsilon=2.0, **law).channel(2), np.random.default_rng(0), 1000, 0.3
    present = np.array([100, 600])
    p, q = channel.one_if_present, channel.one_if_absent
    ones = rng.binomial(present, p, (4000, 2)) + rng.binomial(n - present, q, (4000, 2))
    counts = rng.hypergeometric(ones, n - ones, int(share * n)) - share * ones
    assert_allclose(counts.var(axis=0), split_variance(present, n, [share], channel)[:, 0], rtol=0.1)


@SEEDED
def test_signal_tells_topics_from_noise(corpus):
    """Over 16 seeds the mean is 4.4 (deviation 0.9), and of its logarithm 1.5 (0.2); a second pass adds 3.7 (0.8)."""
    clear = model(8.0, random_state=0).fit(corpus.data)
    assert clear.topic_signal_to_noise_.mean() > 1 and not clear.topic_info(5)["noise"].any()
    first, told = clear.stream_variance_, clear.topic_signal_to_noise_
    clear.partial_fit(corpus.data)
    assert (clear.stream_variance_ >= first).all() and clear.topic_signal_to_noise_.mean() > told.mean()
    with pytest.warns(
        NoisyTopicsWarning,
        match="3 of 3 topics hold more noise.*epsilon than [0-9.]{1,4}, that of the reports, would help",
    ):
        blind = model(0.1, max_iter=5, reconstruction="moment", random_state=0).fit(corpus.data)
    assert blind.signal_to_noise_.std() < 1.5
    assert not hasattr(model(math.inf, max_iter=2).fit(corpus.data), "signal_to_noise_")
