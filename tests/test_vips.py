"""VIPSLDA as its user meets it: guarantees, bounds, streams, disk, bad input, quality."""

import math
import pickle
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from internals import TOKEN_WEIGHT, VariationalEStep, check_groups, cut_documents, disk, total_of

from skdplda import VIPSLDA, BudgetExceededError, PrivacyAccountant, PrivacyLeakWarning, PrivateCGSLDA
from skdplda.datasets import make_lda_corpus, topic_recovery, write_counts
from skdplda.exceptions import NoisyTopicsWarning
from skdplda.privacy import delta_of, epsilon_of, gaussian_event
from skdplda.published import PublishedVIPSLDA, vips_noise_multiplier
from skdplda.rounds import NORM_BOUND, NoisePlan, TopicWordCounts

INF = math.inf
X = sp.csr_array(np.random.default_rng(0).poisson(1.0, size=(30, 8)))
STREAM = {"learning_method": "online", "batch_size": 10, "nominal_size": 30}
FORMS = [
    {},
    {"sampling_rate": 0.3},
    {"max_norm": 2.0},
    {"max_doc_length": 3},
    {"learning_method": "online", "sampling_rate": 0.5},
    {"epsilon": INF},
    {"epsilon": INF, "learning_method": "online", "sampling_rate": 0.5},
]


def model(n_components=2, **parameters):
    return VIPSLDA(n_components, **{"max_iter": 3, **parameters})


def step(X, groups=None, K=3, **options):
    X = sp.csr_array(X)
    X.indptr, X.indices, X.data = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.int32)
    units = None if groups is None else check_groups(groups, X.shape[0])
    settings = {"exact": False, "max_norm": None, "max_length": None, "max_iter": 20, "tol": 1e-3}
    priors = np.full(K, 0.1), 0.5
    settings |= {"n_topics": K, "priors": lambda _: priors, "randomness": SimpleNamespace(key=1), "n_threads": 1}
    return VariationalEStep(X, units, **settings | options)


def query(V, K=3, seed=0):
    return TopicWordCounts(np.random.default_rng(seed).gamma(0.3, 5.0, (V, K)).astype(np.float32))


# --- the contribution bound ----------------------------------------------------------------------------

ADVERSARIAL = np.array([[10**6, 0, 0, 0, 0], [2**31 - 1] * 5, [0] * 5, [1, 0, 0, 0, 0], [3, 1, 4, 1, 5], [1] * 5])


@pytest.mark.parametrize("groups", [None, [0, 1, 0, 2, 2, 2], [0] * 6])
@pytest.mark.parametrize("options", [{}, {"max_norm": 1.0}, {"max_norm": 7.5}, {"max_norm": 1e4}, {"max_length": 4}])
def test_one_unit_changes_the_sum_by_the_grid_at_most(options, groups):
    """Neighbours differ in one document or user; exact integers, whatever the table."""
    tables = np.zeros((5, 3), np.float32), np.eye(5, 3, dtype=np.float32) * 1e6
    queries = [query(5), query(5, seed=1), *map(TopicWordCounts, tables)]
    names = np.arange(6) if groups is None else np.array(groups)
    for public in queries:
        whole = step(ADVERSARIAL, groups, **options).collect(public, 0, None).total
        for unit in np.unique(names):
            kept = ADVERSARIAL * (names != unit)[:, None]  # emptied in place: cuts of documents keep their draws
            change = whole - step(kept, groups, **options).collect(public, 0, None).total
            assert sum(int(n) ** 2 for n in change.ravel()) <= NORM_BOUND**2
            assert change.min() >= 0


def test_a_document_below_max_norm_keeps_its_counts():
    short = np.array([[1, 2, 0, 0, 0]])
    found = step(short, max_norm=10.0).collect(query(5), 0, None).total.sum(axis=1)
    np.testing.assert_allclose(found, short[0] * NORM_BOUND / 10, rtol=1e-4)
    equal = step(short).collect(query(5), 0, None).total
    assert np.linalg.norm(equal) == pytest.approx(NORM_BOUND, rel=1e-3)


def test_without_noise_a_token_counts_one():
    found = step(ADVERSARIAL[4:], exact=True).collect(query(5), 0, None).sum(axis=1)
    np.testing.assert_allclose(found / TOKEN_WEIGHT, ADVERSARIAL[4:].sum(axis=0), atol=2e-3)


def test_inference_of_a_document_never_depends_on_the_others():
    public, active = query(5), np.array([1, 0, 1, 0, 1, 1], np.uint8)
    for options in ({}, {"max_norm": 3.0}, {"max_length": 4}, {"exact": True}):
        whole = step(ADVERSARIAL, **options)
        norm = None if options.get("exact") else 2

        def total(flags, whole=whole, norm=norm):
            return total_of(whole.collect(public, 0, flags), norm)

        one_by_one = sum(total((np.arange(6) == d).astype(np.uint8)) for d in np.flatnonzero(active))
        np.testing.assert_array_equal(total(active), one_by_one)


def test_long_documents_are_cut_to_random_tokens():
    documents = sp.csr_array(np.array([[5, 5, 0], [1, 2, 0], [0, 0, 0], [3, 3, 3]], dtype=np.int32))
    cut = cut_documents(documents, 4, 0, np.arange(4)).toarray()
    assert cut.sum(axis=1).tolist() == [4, 3, 0, 4]
    assert (cut <= documents.toarray()).all()
    alone = cut_documents(documents[3:], 4, 0, np.array([3])).toarray()
    np.testing.assert_array_equal(alone[0], cut[3])
    assert len({cut_documents(documents, 4, key, np.arange(4)).toarray().tobytes() for key in range(20)}) > 3
    assert documents.toarray()[0].tolist() == [5, 5, 0]
    for most in range(1, 12):  # also where one token is too many
        lengths = cut_documents(documents, most, 0, np.arange(4)).toarray().sum(axis=1)
        assert lengths.tolist() == [min(length, most) for length in (10, 3, 0, 9)]


# --- accounting ----------------------------------------------------------------------------------------


def test_noise_multipliers_of_the_paper():
    """400,000 documents, 160,000 seen, 400 a batch, epsilon 0.5, delta 1e-4: each path's noise, and its worth."""
    pld, zcdp, worth, steps, rate = 0.618, 1.45, 0.036, 400, 0.001
    claimed = [vips_noise_multiplier(name, 0.5, 1e-4, steps, rate) for name in ("zcdp", "advanced", "linear")]
    assert claimed == sorted(claimed)
    assert claimed[0] == pytest.approx(zcdp, abs=0.006)
    costs = [epsilon_of(gaussian_event(sigma, steps, rate), 1e-4) for sigma in (pld - 0.006, pld + 0.006, claimed[0])]
    assert costs[0] > 0.5 >= costs[1]
    assert costs[2] < worth


@pytest.mark.parametrize("delta", [1e-4, 1e-10])
def test_the_published_paths_solve_the_equations(delta):
    epsilon, steps, rate = 0.5, 400, 0.001
    for name in ("linear", "advanced", "zcdp"):
        sigma = vips_noise_multiplier(name, epsilon, delta, steps, rate)
        step_delta = 1e-6 if name == "zcdp" else min(1e-6, delta / 2 / steps / rate)
        before = math.sqrt(2 * math.log(1.25 / step_delta)) / sigma
        step_epsilon = math.log1p(rate * math.expm1(before))
        if name == "linear":
            total = steps * step_epsilon
        elif name == "advanced":
            left = delta - steps * rate * step_delta
            total = math.sqrt(2 * steps * math.log(1 / left)) * step_epsilon
            total += steps * step_epsilon * math.expm1(step_epsilon)
        else:
            rho = steps * step_epsilon**2 / (4 * math.log(1.25 / (1e-6 * rate)))
            total = rho + 2 * math.sqrt(rho * math.log(1 / delta))
        assert total == pytest.approx(epsilon, rel=1e-9)


def test_no_noise_and_bad_budgets_of_an_accounting():
    assert vips_noise_multiplier("zcdp", INF, 1e-5, 10, 0.1) == 0.0
    with pytest.raises(ValueError, match="delta must be > 0"):
        vips_noise_multiplier("zcdp", 1.0, 0.0, 10, 0.1)
    for unknown in ("moments", "pld"):
        with pytest.raises(ValueError, match=f"accounting must be one of .*; got '{unknown}'"):
            vips_noise_multiplier(unknown, 1.0, 1e-5, 10, 0.1)


@pytest.mark.parametrize("accounting", ["zcdp", "advanced", "linear"])
def test_claimed_paths_warn_and_say_what_they_are_worth(accounting):
    estimator = PublishedVIPSLDA(2, max_iter=3, accounting=accounting, batch_size=10, nominal_size=30)
    with pytest.warns(
        PrivacyLeakWarning, match=f"accounting='{accounting}' claims epsilon=5: .* Use VIPSLDA"
    ) as caught:
        guarantee = estimator.fit(X).privacy_guarantee_
    assert caught[0].filename == __file__
    assert guarantee == estimator.privacy_cost()
    assert guarantee.status == "claimed"
    stated = float(re.search(r"give epsilon = ([\d.e-]+) at the same delta", guarantee.reason).group(1))
    assert stated == pytest.approx(epsilon_of(estimator._plan().event, 1e-5), rel=1e-3)
    assert not hasattr(estimator, "partial_fit")
    with pytest.raises(ValueError, match="the paper counts on Poisson samples"):
        estimator.privacy_cost(stream=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'accounting'"):
        model(accounting=accounting)  # a safe class has no option that is only claimed


@pytest.mark.parametrize("groups", [None, np.arange(30) // 3])
@pytest.mark.parametrize("parameters", FORMS)
def test_the_cost_is_known_before_the_fit(parameters, groups):
    estimator = model(**parameters)
    cost = estimator.privacy_cost(groups=groups is not None)
    assert estimator.fit(X, groups=groups).privacy_guarantee_ == cost
    assert cost.unit == ("document" if groups is None else "user")
    if cost.epsilon < INF:
        assert cost.status == "proven"
        assert cost.epsilon == estimator.epsilon
        assert cost.epsilon_at(cost.delta) <= estimator.epsilon


def test_a_plan_of_few_visits_has_the_noise_of_so_many_rounds():
    every, once = (NoisePlan.equal(2.0, 1e-5, 100, visits=visits) for visits in (None, 1))
    assert every.multipliers[0] == pytest.approx(10 * once.multipliers[0], rel=1e-6)
    for plan, steps in ((every, 100), (once, 1), (NoisePlan.equal(2.0, 1e-5, 3, visits=7), 3)):
        assert plan.multipliers == (plan.multipliers[0],) * plan.n_rounds
        assert delta_of(gaussian_event(plan.multipliers[0], steps), 2.0) <= 1e-5


def test_a_fit_beyond_the_budget_is_refused_before_data_are_read(untouchable):
    with PrivacyAccountant(4.0, 1e-5) as accountant:
        for call in (model(epsilon=5.0).fit, model(epsilon=5.0, **STREAM).partial_fit):
            with pytest.raises(BudgetExceededError, match="Nothing was spent"):
                call(untouchable())
    assert accountant.ledger == ()


# --- streams -------------------------------------------------------------------------------------------


def test_a_stream_ends_after_its_steps_and_is_paid_once(untouchable):
    stream = model(max_visits=1, **STREAM)
    with PrivacyAccountant(5.0, 1e-5) as accountant:
        for number in range(3):
            stream.partial_fit(X[number::3])
            assert stream.n_iter_ == number + 1
            assert stream.privacy_guarantee_ == stream.privacy_cost(stream=True)
            stream = pickle.loads(pickle.dumps(stream))  # killed, and resumed from what was saved
        with pytest.raises(BudgetExceededError, match="max_iter=3 steps have been taken"):
            stream.partial_fit(untouchable())
    assert len(accountant.ledger) == 1
    assert any("at most 1 batches" in text for text in stream.privacy_guarantee_.assumptions)
    stream.fit(X)  # forgets the stream
    stream.partial_fit(X)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@pytest.mark.parametrize("epsilon", [5.0, INF])
def test_a_resumed_stream_ends_like_an_uninterrupted_one(epsilon):
    ends = []
    for kill in (False, True):
        stream = model(epsilon=epsilon, random_state=0, **STREAM)
        for number in range(3):
            stream.partial_fit(X[number::3])
            stream = pickle.loads(pickle.dumps(stream)) if kill else stream
        ends.append(stream.components_)
    np.testing.assert_array_equal(*ends)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_each_step_of_a_seeded_stream_has_noise_of_its_own():
    """Steps of documents without words release noise alone; which cells are positive tells one noise from another."""
    stream, table, positive = model(random_state=0, topic_word_prior=0.1, **STREAM), None, []
    for step in range(3):
        stream.partial_fit(np.zeros((5, 200)))
        last, table = table, stream.components_ - 0.1
        if step:
            rho = (stream.learning_offset + step + 1) ** -stream.learning_decay
            positive.append(table > (1 - rho / 2) * last)
    agree = (positive[0] == positive[1]).mean()
    assert 0.3 < agree < 0.7  # 200 cells a topic: five deviations and more


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_each_step_of_a_stream_cuts_documents_by_draws_of_its_own():
    """Else two releases would show how two batches lie to one another, of which one document moves all."""
    stream = model(1, epsilon=INF, random_state=0, max_doc_length=1, learning_decay=0, **STREAM)  # keeps no past table
    kept = []
    for _ in range(2):
        copy = pickle.loads(pickle.dumps(stream))
        taken = [taker.partial_fit(np.kron(np.eye(300), [[1, 1]])).components_ for taker in (stream, copy)]
        np.testing.assert_array_equal(*taken)
        kept.append(taken[0].reshape(300, 2).argmax(axis=1))
    assert 0.3 < (kept[0] == kept[1]).mean() < 0.7  # six deviations


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_a_stream_with_a_generator_can_be_resumed():
    stream = model(random_state=np.random.RandomState(0), **STREAM).partial_fit(X[:10])
    assert pickle.loads(pickle.dumps(stream)).partial_fit(X[10:20]).n_iter_ == 2


def test_what_must_not_change_in_a_stream():
    stream = model(**STREAM).partial_fit(X[:10])
    with pytest.raises(ValueError, match="X has 7 features, but VIPSLDA is expecting 8"):
        stream.partial_fit(X[:10, :7])
    with pytest.raises(ValueError, match="must not change between steps"):
        stream.partial_fit(X[:10], groups=np.arange(10))
    with pytest.raises(ValueError, match="must not change between steps"):
        stream.set_params(epsilon=50.0).partial_fit(X[:10])
    stream.set_params(epsilon=5.0, n_jobs=2).partial_fit(X[:10])
    assert stream.n_iter_ == 2
    assert not hasattr(model(), "partial_fit")


def test_the_steps_follow_the_papers_rule():
    """Without noise, (1 - rho) lambda + rho (eta + D / S * the batch's counts), in all cells."""
    parameters = {**STREAM, "learning_offset": 2.0, "learning_decay": 0.5, "max_iter": 1, "random_state": 0}
    first = model(1, epsilon=INF, topic_word_prior=0.3, **parameters)
    counts = np.asarray(X[:10].sum(axis=0)).ravel()
    start = model(1, epsilon=INF, topic_word_prior=0.3, **parameters).partial_fit(np.zeros((1, 8), int)).components_
    rho = 3.0**-0.5
    np.testing.assert_allclose(first.partial_fit(X[:10]).components_ - start, [rho * 3 * counts], rtol=2e-3)


# --- disk ----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@pytest.mark.parametrize("parameters", FORMS)
def test_documents_on_disk(tmp_path, parameters, monkeypatch):
    monkeypatch.setattr(disk, "BLOCK", 7)
    counts = write_counts(tmp_path / "corpus", [X[:4], X[4:25].toarray(), X[25:]])
    expected, found = (model(random_state=0, **parameters).fit(data) for data in (X, counts))
    if parameters.get("learning_method") == "online" or parameters.get("epsilon") == INF:
        np.testing.assert_array_equal(found.components_, expected.components_)
    else:  # in memory, documents go on from the last round
        forgetful = write_counts(tmp_path / "other", [X[:11], X[11:]])
        again = model(random_state=0, **parameters).fit(forgetful)
        np.testing.assert_array_equal(found.components_, again.components_)
    assert found.privacy_guarantee_ == expected.privacy_guarantee_
    assert found.n_features_in_ == 8


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_a_killed_fit_from_disk_resumes_with_the_same_spend(tmp_path):
    """With a signal of 75, where topics need 18 (over 60 seeds with deviation 3.5)."""
    counts, path = write_counts(tmp_path / "corpus", [X]), tmp_path / "fit.npz"

    def kill(report):
        if report.n_done == 2:
            raise KeyboardInterrupt

    expected = model(epsilon=20.0, random_state=0).fit(counts)
    with PrivacyAccountant(20.0, 1e-5, accept_claimed=True) as accountant:
        with pytest.raises(KeyboardInterrupt):
            model(epsilon=20.0, random_state=0, checkpoint=path, callback=kill).fit(counts)
        assert path.exists()
        resumed = model(epsilon=20.0, random_state=0, checkpoint=path).fit(counts)
    assert len(accountant.ledger) == 1
    assert resumed.n_iter_ == expected.n_iter_ > 3  # word counts, then rounds of topics
    np.testing.assert_array_equal(resumed.components_, expected.components_)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@pytest.mark.parametrize("parameters", [{"epsilon": 20.0}, {"max_norm": 3.0}, {"sampling_rate": 0.5}, {"epsilon": INF}])
@pytest.mark.parametrize("groups", [None, np.arange(30) // 3])
def test_a_killed_fit_in_memory_goes_on_from_its_documents(tmp_path, parameters, groups):
    path, reports = tmp_path / "fit.npz", []

    def kill(report):
        if report.n_done == 3:
            raise KeyboardInterrupt

    expected = model(random_state=0, max_iter=6, **parameters).fit(X, groups=groups)
    with pytest.raises(KeyboardInterrupt):
        model(random_state=0, max_iter=6, checkpoint=path, callback=kill, **parameters).fit(X, groups=groups)
    resumed = model(random_state=0, max_iter=6, checkpoint=path, callback=reports.append, n_jobs=2, **parameters)
    np.testing.assert_array_equal(resumed.fit(X, groups=groups).components_, expected.components_)
    assert [report.n_done for report in reports] == list(range(4, expected.n_iter_ + 1))
    assert resumed.n_iter_ == expected.n_iter_ >= 5


# --- what is refused -----------------------------------------------------------------------------------

PARAMETERS = [
    ({"sampling_rate": 1.5}, "'sampling_rate' .* range (0.0, 1.0] or None. Got 1.5"),
    ({"sampling_rate": 0}, "'sampling_rate' .* Got 0"),
    ({"nominal_size": 0}, "'nominal_size' .* range [1, 9007199254740992] or None. Got 0"),
    ({"batch_size": 0}, "'batch_size' .* Got 0"),
    ({"batch_size": 10}, "batch_size=10 needs nominal_size, a public estimate"),
    ({"batch_size": 10, "nominal_size": 9}, "batch_size=10 must be at most nominal_size=9"),
    ({"batch_size": 10, "nominal_size": 90, "sampling_rate": 0.1}, "give batch_size or sampling_rate, not both"),
    ({"max_norm": 0.5}, "'max_norm' .* range [1.0, 1048576.0] or None. Got 0.5"),
    ({"max_doc_length": 0}, "'max_doc_length' .* Got 0"),
    ({"max_visits": 0}, "'max_visits' .* Got 0"),
    ({"learning_method": "stochastic"}, "'learning_method' .* Got 'stochastic'"),
    ({"learning_decay": 1.5}, "'learning_decay' .* Got 1.5"),
    ({"learning_offset": -1}, "'learning_offset' .* Got -1"),
    ({"max_doc_update_iter": 0}, "'max_doc_update_iter' .* Got 0"),
    ({"epsilon": 0}, "'epsilon' .* Got 0"),
    ({"delta": 0}, "delta=0.0 is too small"),
    ({"doc_topic_prior": -1.0}, "doc_topic_prior must be a number"),
    ({"topic_word_prior": 0.0}, "topic_word_prior must be a number"),
]


@pytest.mark.parametrize(("parameters", "said"), PARAMETERS, ids=[str(row[0]) for row in PARAMETERS])
def test_bad_parameters_are_refused_before_data_are_read(parameters, said, check_refused):
    check_refused(model(**parameters), said)


def test_short_texts_without_noise():
    """CVB0 finds topics of documents of five words, and mean-field inference does not.

    It is better on every corpus, by a factor that varies: of twelve times four, the logarithm of the mean advantage in
    nats is -2.0 with deviation 0.32, and 0.01 is 8 deviations away. To Gibbs sampling the quotient deviates by 0.0036.
    """
    settings, advantage = {"epsilon": INF, "random_state": 0}, []
    for seed in range(4):
        corpus = make_lda_corpus(2500, 60, 4, mean_length=5, random_state=seed)
        train, test = corpus.data[:2000], corpus.data[2000:]
        found = VIPSLDA(4, **settings).fit(train).perplexity(test)
        online = VIPSLDA(4, learning_method="online", sampling_rate=0.5, **settings).fit(train)
        advantage.append(np.log(online.perplexity(test) / found))
        assert found < 1.03 * PrivateCGSLDA(4, **settings).fit(train).perplexity(test)
    assert np.mean(advantage) > 0.01


@pytest.mark.parametrize("value", [np.nan, np.inf, -1])
def test_bad_counts_are_refused(value):
    data = X.toarray().astype(float)
    data[3, 4] = value
    for call in (model().fit, model(**STREAM).partial_fit):
        with pytest.raises(ValueError, match=r"NaN|infinity|Negative"):
            call(data)


def test_a_large_delta_warns():
    with pytest.warns(UserWarning, match="delta=0.001 is not below 1 / nominal_size = 0.001") as caught:
        model(nominal_size=1000, delta=0.001).fit(X)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyTopicsWarning)
        model(nominal_size=1000, delta=1e-4).fit(X)


def test_more_topics_than_words_warns():
    with pytest.warns(UserWarning, match="n_components=9 exceeds the 8 words of X") as caught:
        model(9).fit(X)
    assert caught[0].filename == __file__


# --- one integer, one model; quality -------------------------------------------------------------------


@pytest.mark.parametrize("parameters", FORMS)
@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_threads_and_repetition_do_not_change_the_model(parameters, check_threads):
    check_threads(model(4, **parameters), make_lda_corpus(200, 60, 4, mean_length=60, random_state=1).data)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_planted_topics_come_back():
    """In three of four fits of all documents without noise, else in the best: some end with two topics in one."""
    planted = make_lda_corpus(1500, 100, 4, mean_length=60, random_state=0)
    for parameters, rank, least in (
        ({"epsilon": INF}, 1, 0.9),
        ({"epsilon": INF, "learning_method": "online", "sampling_rate": 0.1}, 3, 0.8),
        ({"epsilon": 100.0}, 3, 0.6),
    ):
        models = [VIPSLDA(4, random_state=seed, **parameters).fit(planted.data) for seed in range(4)]
        recovered = sorted(topic_recovery(planted.topic_word, found.topic_word_).mean for found in models)
        assert recovered[rank] > least


@pytest.mark.parametrize("rounds", [1, 7, None])
def test_the_noise_of_full_batches_is_told_without_data(rounds, stated_noise):
    told = VIPSLDA(epsilon=2.0, delta=1e-6, max_iter=rounds).noise_deviation()
    if rounds is not None:
        assert told == pytest.approx(stated_noise(2.0, 1e-6, rounds), rel=1e-5)
    assert told == PrivateCGSLDA(epsilon=2.0, delta=1e-6, max_iter=rounds).noise_deviation()
    for other in ({"learning_method": "online"}, {"max_norm": 3.0}, {"epsilon": np.inf}, {"sampling_rate": 0.5}):
        assert VIPSLDA(**other).noise_deviation() is None
