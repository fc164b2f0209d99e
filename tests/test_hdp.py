"""HDPLDA: its budget, its trace, its warnings and refusals."""

import math
import pickle
import re
import warnings

import numpy as np
import pytest
from internals import RESERVE, DelayedCountSweeps, HybridPlan, PartOfTokens, check_counts, some_tokens, tokens_of
from internals import bounds as _bounds
from scipy import stats
from scipy.optimize import brentq
from scipy.stats import chisquare, multivariate_hypergeom

from skdplda import HDPLDA, BudgetExceededError, PrivacyAccountant, PrivacyLeakWarning
from skdplda.attacks import TopicTraceAttack
from skdplda.datasets import make_lda_corpus
from skdplda.exceptions import NoisyTopicsWarning
from skdplda.metrics import unigram_perplexity
from skdplda.privacy import Randomness, bounded_range_event, epsilon_of, zcdp_event
from skdplda.published import PublishedHDPLDA


@pytest.fixture(scope="module")
def X():
    return make_lda_corpus(400, 60, 4, mean_length=50, random_state=0).data


def renyi(eta, order):
    """Return the largest Renyi divergence of two laws whose log-ratios lie in an interval of length eta."""
    c = math.expm1(order * eta) / math.expm1(eta)
    a = c * (order - 1) / (order * (c - 1))
    return math.log(a) + math.log(c / order) / (order - 1)


# --- the price ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [0.005, 0.02, 0.3, 1.0, 3.0, 10.0, 100.0])
def test_the_rate_of_a_bounded_range_bounds_every_renyi_divergence(eta):
    rho = bounded_range_event(eta).rho
    assert rho <= eta**2 / 8
    for order in 1 + np.geomspace(1e-3, 600 / eta, 200):
        assert renyi(eta, order) <= rho * order * (1 + 1e-9)
    if eta > 0.02:
        assert renyi(eta, 1 + 1e-5) > rho * (1 - 1e-4)  # and is met


def test_extreme_ranges():
    assert epsilon_of(bounded_range_event(0.0), 1e-5) == 0
    assert epsilon_of(bounded_range_event(math.inf), 1e-5) == math.inf
    assert bounded_range_event(1e6).rho == pytest.approx(1e6 - math.log(1e6) - 1)
    assert bounded_range_event(0.3, steps=7).rho == pytest.approx(7 * bounded_range_event(0.3).rho)


@pytest.mark.parametrize("epsilon", [0.1, 3.0, 20.0, 200.0])
@pytest.mark.parametrize("delta", [0.0, 1e-8, 1e-5])
@pytest.mark.parametrize("sweeps", [1, 25, 300])
def test_a_plan_spends_its_budget_and_no_more(epsilon, delta, sweeps):
    plan = HybridPlan.calibrate(epsilon, delta, sweeps, 0.3)
    if delta == 0:
        assert epsilon * 0.999 < sweeps * (2 / plan.scale + plan.eta) <= epsilon
        assert 2 / plan.scale == pytest.approx(0.3 * epsilon / sweeps, rel=1e-6)
    else:
        rho = sweeps * (1 / plan.scale**2 + bounded_range_event(plan.eta).rho)
        assert epsilon_of(zcdp_event(rho), delta * (1 - RESERVE)) <= epsilon
        assert epsilon_of(zcdp_event(rho * 1.001), delta * (1 - RESERVE)) > epsilon
    assert plan.epsilon(delta) <= epsilon


def noise_of_tables(model, n_words=400, per_document=3):
    """Fit documents of one word each, whose exact counts the released topics tell; return tables less counts."""
    X = np.repeat(per_document * np.eye(n_words, dtype=int), 5, axis=0)
    trace = model.set_params(return_trace=True).fit(X).trace_
    words = np.repeat(np.arange(len(X)) // 5, per_document)
    for topics, table in zip(trace.topics, trace.tables[1:], strict=True):
        counts = np.zeros(table.shape)
        np.add.at(counts, (topics, words), 1)
        yield table - counts


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore:epsilon=:UserWarning")
def test_each_table_has_the_discrete_laplace_noise_of_its_share():
    """A third of epsilon 30 for the tables of 4 sweeps, of sensitivity 2: scale 0.8; fixed seed."""
    model = HDPLDA(5, epsilon=30.0, delta=0.0, noise_share=1 / 3, max_iter=4, random_state=0)
    ratio = math.exp(-1 / 0.8)
    noises = list(noise_of_tables(model))
    assert len({noise.tobytes() for noise in noises}) == 4
    for noise in noises:
        found = np.bincount(np.minimum(np.abs(noise).astype(int), 5).ravel(), minlength=6)
        law = (1 - ratio) / (1 + ratio) * np.append(1, 2 * ratio ** np.arange(1, 5))
        assert stats.chisquare(found, np.append(law, 1 - law.sum()) * noise.size).pvalue > 1e-6
        assert np.array_equal(noise, np.rint(noise))


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore:epsilon=:UserWarning")
def test_each_table_has_the_rounded_gaussian_noise_of_its_share():
    """rho = 1 / sigma^2 a sweep for the table, of L2 sensitivity sqrt 2, and the rest of rho for the draws."""
    epsilon, delta, sweeps, share = 8.0, 1e-6, 5, 0.4
    model = HDPLDA(5, epsilon=epsilon, delta=delta, noise_share=share, max_iter=sweeps, random_state=0)
    # Canonne, Kamath and Steinke (2020), Proposition 12
    order = 1 + np.geomspace(1e-3, 1e3, 20_000)

    def epsilon_of_rho(rho):
        return (rho * order + np.log1p(-1 / order) - (math.log(delta) + np.log(order)) / (order - 1)).min()

    rho = brentq(lambda rho: epsilon_of_rho(rho) - epsilon, 1e-3, 10)
    sigma = (share * rho / sweeps) ** -0.5
    assert model._plan().scale == pytest.approx(sigma, rel=0.01)  # some of delta is kept for the samplers
    noises = list(noise_of_tables(model))
    assert len({noise.tobytes() for noise in noises}) == sweeps
    for noise in noises:
        squares = (noise**2).sum() / (sigma**2 + 1 / 12)
        assert abs(squares / noise.size - 1) < 5 * math.sqrt(2 / noise.size) + 0.02


def test_each_sweep_draws_from_a_stream_of_its_own():
    """Documents of one token, and a range so small that all topics weigh the same: the stream alone decides."""
    n = 600
    plan = HybridPlan("laplace", 1e6, 1e-9, 3)
    tokens = np.arange(n + 1, dtype=np.int64), np.zeros(n, np.int32)
    sampler = DelayedCountSweeps(*tokens, 5, plan, np.full(4, 0.5), None, Randomness(0), 1)
    drawn = []
    for _ in range(3):
        sampler.sweep()
        drawn.append(sampler.topics.copy())
        assert stats.chisquare(np.bincount(drawn[-1], minlength=4)).pvalue > 1e-6
    with pytest.raises(RuntimeError, match="release 3 is not one of the plan"):
        sampler.sweep()
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert stats.binomtest(int((drawn[one] == drawn[other]).sum()), n, 0.25).pvalue > 1e-6


def test_the_deviation_of_a_plan_is_that_of_its_noise():
    for scale in (0.3, 2.0, 50.0):
        ratio = math.exp(-1 / scale)
        found = HybridPlan("laplace", scale, 1.0, 16).deviation
        assert found == pytest.approx(math.sqrt(2 * ratio) / (1 - ratio))
        assert HybridPlan("gaussian", scale, 1.0, 4).deviation == scale


@pytest.mark.parametrize("sweeps", [30, 100, 300])
@pytest.mark.parametrize(("noise", "draws"), [(0.1, 0.1), (1.0, 1.0), (1.0, 10.0)])
def test_joint_accounting_is_below_the_papers_sum(sweeps, noise, draws):
    model = HDPLDA(noise_epsilon=noise, inherent_epsilon=draws, max_iter=sweeps)
    total, paper = model.privacy_cost().epsilon, sweeps * (noise + draws)
    assert total < paper * (0.96 if draws == 10 else 0.8)
    assert model.set_params(delta=0.0).privacy_cost().epsilon == pytest.approx(paper)


def test_few_sweeps_of_a_large_range_cost_the_sum():
    """Concentrated bounds are no help there, and the sum is reported."""
    found = HDPLDA(noise_epsilon=1, inherent_epsilon=10, max_iter=5).privacy_cost().epsilon
    assert 54.9 < found <= 55


def test_documents():
    model = HDPLDA(epsilon=5.0)
    token, one, many = model.privacy_cost(), model.document_cost(1), model.document_cost(20)
    assert (one.unit, one.adjacency, many.status) == ("document", "replace", "proven")
    assert one.epsilon <= token.epsilon
    assert 20 * token.epsilon < many.epsilon < token.for_group(20).epsilon
    pure = HDPLDA(epsilon=5.0, delta=0.0)
    assert pure.document_cost(20).epsilon == pytest.approx(100)
    assert HDPLDA(epsilon=math.inf).document_cost(3).epsilon == math.inf
    for wrong in (0, 2.5, True):
        with pytest.raises(ValueError, match="n_tokens must be an integer >= 1"):
            model.document_cost(wrong)


def test_the_cost_is_known_before_the_fit(X):
    for parameters in ({}, {"delta": 0.0}, {"noise_epsilon": 1, "inherent_epsilon": 2}, {"count_clip": 20.0}):
        model = HDPLDA(4, max_iter=3, **parameters)
        cost = model.privacy_cost()
        assert model.fit(X).privacy_guarantee_ == cost
        assert (cost.unit, cost.adjacency, cost.status) == ("token", "replace", "proven")
        assert type(cost).from_json(cost.to_json()) == cost
        assert cost.compose(cost).epsilon < 2 * cost.epsilon * (1 + 1e-9)


def test_the_ledger(X):
    with PrivacyAccountant(epsilon=30.0, delta=1e-4, unit="token", adjacency="replace") as accountant:
        HDPLDA(4, epsilon=20.0, max_iter=3).fit(X)
        assert len(accountant.ledger) == 1
        with pytest.raises(BudgetExceededError):
            HDPLDA(4, epsilon=29.0, max_iter=3).fit("no data are read")
        with pytest.raises(ValueError, match="must have status 'proven'"):
            PublishedHDPLDA(4, epsilon=1.0).fit("no data are read")
        assert len(accountant.ledger) == 1


# --- the fit ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{}, {"count_clip": 10.0}, {"epsilon": math.inf}, {"epsilon": 20, "delta": 0.0}])
@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_threads_do_not_change_anything(X, parameters):
    one, two = (HDPLDA(4, max_iter=3, random_state=3, n_jobs=n, return_trace=True, **parameters).fit(X) for n in (1, 2))
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.trace_.topics, two.trace_.topics)
    np.testing.assert_array_equal(one.trace_.tables, two.trace_.tables)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_topics_are_learnt(X):
    """Of 20 corpora the first quotient is 0.46 (deviation 0.05).

    Of the gain, noise leaves 0.73 (0.05) and 0.62 (0.10).
    """
    train, test = X[:350], X[350:]
    unigram = unigram_perplexity(train, test)
    exact = HDPLDA(4, epsilon=math.inf, random_state=0).fit(train).perplexity(test)
    private = HDPLDA(4, epsilon=50, random_state=0).fit(train).perplexity(test)
    by_sweep = {"noise_epsilon": math.inf, "inherent_epsilon": 6, "count_clip": 100, "max_iter": 50}
    clipped = HDPLDA(4, **by_sweep, random_state=0).fit(train)
    assert exact < 0.85 * unigram
    assert private < unigram - 0.25 * (unigram - exact)
    assert clipped.perplexity(test) < unigram - 0.1 * (unigram - exact)
    assert clipped.privacy_guarantee_.epsilon == math.inf


@pytest.mark.parametrize("kind", [HDPLDA, PublishedHDPLDA])
@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_the_trace_holds_what_was_drawn_and_seen(X, kind):
    model = kind(4, max_iter=5, return_trace=True, noise_epsilon=math.inf, inherent_epsilon=5.0).fit(X)
    trace = model.trace_
    assert trace.topics.shape == (5, X.sum())
    assert trace.tables.shape == (6, 4, 60)
    np.testing.assert_array_equal(np.diff(trace.document_starts), X.sum(axis=1).A1)
    for t in range(5):  # without noise a table holds the exact counts of the topics drawn before it
        np.testing.assert_array_equal(trace.tables[t + 1].sum(axis=1), np.bincount(trace.topics[t], minlength=4))
    np.testing.assert_array_equal(trace.tables[1:].sum(axis=1), np.tile(X.sum(axis=0).A1, (5, 1)))
    model.set_params(return_trace=False).fit(X)
    assert not hasattr(model, "trace_")


def test_tokens_are_in_no_order_that_tells_words(X):
    """In the order of words, the first token of a document would have the least word."""
    starts, words = tokens_of(X)
    plan = HybridPlan.calibrate(10.0, 1e-5, 2, 0.25)
    sampler = DelayedCountSweeps.of_counts(X, plan, np.full(4, 0.1), None, Randomness(0), 1)
    shuffled = sampler.words
    for d in range(0, X.shape[0], 50):
        document = slice(starts[d], starts[d + 1])
        np.testing.assert_array_equal(np.sort(shuffled[document]), words[document])
    first, last = shuffled[starts[:-1]], shuffled[starts[1:] - 1]
    assert abs(np.mean(first < last) - np.mean(first > last)) < 0.25  # 5 standard deviations


def test_noise_hides_words_from_the_attack(X):
    """A trace under a small epsilon tells less of the words than one whose draws are not bounded."""
    starts, words = tokens_of(X)
    found = {}
    for epsilon in (2.0, math.inf):
        plan = HybridPlan.calibrate(epsilon, 1e-5, 10, 0.25)
        clip = None if epsilon == 2 else math.inf
        sampler = DelayedCountSweeps(starts, words, 60, plan, np.full(20, 1.0), clip, Randomness(0), 1)
        attack = TopicTraceAttack(len(words), 60, "bayes")
        for _ in range(10):
            table = sampler.table
            attack.observe(table.T, sampler.sweep() or sampler.topics)
        found[epsilon] = attack.success(words)["first"]
    assert found[math.inf] > 2 * found[2.0]


def test_a_seed_warns_and_is_an_assumption(X):
    with pytest.warns(PrivacyLeakWarning, match="random_state=5"):
        model = HDPLDA(4, max_iter=2, random_state=5).fit(X)
    assert "the seed (random_state) is secret, random and never reused" in model.privacy_guarantee_.assumptions
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyTopicsWarning)  # of what was released
        one, two = (HDPLDA(4, max_iter=2).fit(X) for _ in range(2))
    assert (one.components_ != two.components_).any()


def test_documents_without_words(X):
    empty = HDPLDA(3, max_iter=2, return_trace=True).fit(np.zeros((4, 5)))
    assert empty.trace_.topics.shape == (2, 0)
    assert np.isfinite(empty.topic_word_).all()


def test_the_published_form(X):
    model = PublishedHDPLDA(4, noise_epsilon=1, inherent_epsilon=10, max_iter=300)
    cost = model.privacy_cost()
    assert (cost.epsilon, cost.status) == (3300, "claimed")
    assert "6.93 where 3.58 is claimed" in cost.reason
    assert "topics of all tokens in every sweep" in cost.released
    with pytest.warns(PrivacyLeakWarning, match="PublishedHDPLDA is the published form .* Use HDPLDA") as caught:
        model.set_params(max_iter=3).fit(X)
    assert caught[0].filename == __file__
    model = pickle.loads(pickle.dumps(model))
    assert model.privacy_guarantee_.epsilon == 33
    by_total = PublishedHDPLDA(4, epsilon=33, max_iter=3)
    assert by_total.privacy_cost().epsilon == 33
    assert not hasattr(model, "document_cost")


def test_the_published_form_with_fresh_noise_goes_on_from_exact_counts(X):
    options = {"noise_epsilon": 0.5, "inherent_epsilon": 10, "max_iter": 4, "return_trace": True, "random_state": 1}
    with pytest.warns(PrivacyLeakWarning, match="the model is made of the hidden counts, without noise"):
        fresh = PublishedHDPLDA(4, noise_on="copy", **options).fit(X)
    assert "a copy of the counts" in fresh.privacy_guarantee_.mechanism
    assert fresh.privacy_guarantee_.epsilon == fresh.privacy_cost().epsilon == 4 * 10.5
    words, trace = np.repeat(np.tile(np.arange(X.shape[1]), X.shape[0]), np.asarray(X.todense()).ravel()), fresh.trace_
    counts = np.zeros((5, 4, X.shape[1]))
    for sweep, topics in enumerate(trace.topics, start=1):
        np.add.at(counts[sweep], (topics, words), 1)
    np.testing.assert_array_equal(trace.tables[-1], counts[-1])  # the model is exact
    noise = trace.tables[1:-1] - counts[1:-1]
    # Laplace of scale 4, as much in each sweep: the mean of n absolute values has deviation 4 / sqrt(n).
    assert all(abs(np.abs(one).mean() - 4) < 6 * 4 / math.sqrt(one.size) for one in noise)


# --- advice and refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_a_hopeless_budget_warns_with_the_number_that_works(X, delta):
    model = HDPLDA(4, epsilon=0.1, max_iter=20, delta=delta)
    with pytest.warns(UserWarning, match=r"epsilon=0\.1 is too small for 20 sweeps to learn anything") as record:
        model.fit(X)
    number = float(re.search(r"Use at least epsilon=([\d.]+),", str(record[0].message))[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyTopicsWarning)  # that tells of these texts
        model.set_params(epsilon=number).fit(X)
    with pytest.warns(UserWarning, match="too small"):
        model.set_params(epsilon=number / 1.2).fit(X)


def test_advice_does_not_depend_on_the_data(X):
    """A warning is seen by others than its parameters' author: few and many tokens get the same, or none."""
    few, many = X.multiply(np.arange(X.shape[0])[:, None] == 0).tocsr(), 100 * X
    model = HDPLDA(4, epsilon=0.1, max_iter=20)
    messages = set()
    for counts in (few, X, many):
        with pytest.warns(UserWarning, match="too small") as record:
            model.fit(counts[:40])
        messages.add(str(record[0].message))
    assert len(messages) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyTopicsWarning)  # of what was released
        HDPLDA(4, noise_epsilon=1e-9, inherent_epsilon=1.0, max_iter=2).fit(few)  # noise far above any count


@pytest.mark.parametrize(
    ("parameters", "advice"),
    [
        ({"noise_epsilon": 1.0, "inherent_epsilon": 0.01}, r"at most 1\.005\. Use at least inherent_epsilon=0\.05\.$"),
        ({"count_clip": 0.02, "topic_word_prior": 1.0}, r"Use at least count_clip=0\.026\.$"),
    ],
)
def test_advice_names_the_parameters_that_were_given(X, parameters, advice):
    with pytest.warns(UserWarning, match=advice) as record:
        HDPLDA(4, max_iter=2, **parameters).fit(X)
    found = re.findall(r"(\w+)=([\d.]+\d)", str(record[0].message).partition("Use at least")[2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyTopicsWarning)  # of what was released
        HDPLDA(4, max_iter=2, **parameters | {name: float(value) for name, value in found}).fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"count_clip": 0.0}, "'count_clip' parameter of HDPLDA must be"),
        ({"count_clip": -3.0}, "'count_clip' parameter of HDPLDA must be"),
        ({"noise_share": 1.0}, "'noise_share' parameter"),
        ({"epsilon": 0.0}, "'epsilon' parameter"),
        ({"epsilon": math.nan}, "'epsilon' parameter"),
        ({"topic_word_prior": 0.0}, "topic_word_prior must be"),
        ({"doc_topic_prior": [0.1, 0.2, 0.3]}, "doc_topic_prior must be"),
        ({"epsilon": 1.0, "noise_epsilon": 1.0, "inherent_epsilon": 1.0}, "either a total epsilon or the two of a"),
        ({"noise_share": 0.5, "noise_epsilon": 1.0, "inherent_epsilon": 1.0}, "noise_share must be None"),
        ({"inherent_epsilon": 1.0}, "noise_epsilon must be given with"),
        ({"noise_epsilon": 1.0}, "inherent_epsilon must be given with"),
        (
            {"noise_epsilon": 1.0, "inherent_epsilon": 1.0, "count_clip": 5.0, "topic_word_prior": 1.0},
            "inherent_epsilon must be None where count_clip=5.0",
        ),
        ({"epsilon": 10.0, "count_clip": 5.0, "topic_word_prior": 1.0, "noise_share": 0.5}, "fix what the draws cost"),
        ({"epsilon": 10.0, "count_clip": 500.0, "topic_word_prior": 1.0}, "does not pay for 25 sweeps"),
        ({"noise_epsilon": 1e-300, "inherent_epsilon": 1.0}, "noise_epsilon=1e-300 is too small"),
        ({"epsilon": 1e-17, "delta": 0.0}, "epsilon=1e-17 is too small"),
    ],
)
def test_what_is_refused(X, parameters, message):
    for ask in (lambda model: model.fit(X), lambda model: model.privacy_cost()):
        with pytest.raises(ValueError, match=message):
            ask(HDPLDA(4, **parameters))


def test_a_clip_and_a_prior_fix_the_range_and_the_rest_is_noise():
    plan = HDPLDA(epsilon=100.0, count_clip=5.0, topic_word_prior=1.0)._plan()
    assert plan.eta == pytest.approx(2 * math.log(6))
    assert plan.epsilon(1e-5) == pytest.approx(100.0, rel=1e-2)


def test_bad_counts(X):
    for bad in (-X.toarray(), np.full((3, 4), np.nan), np.zeros((0, 4))):
        with pytest.raises(ValueError):
            HDPLDA(2, max_iter=2).fit(bad)
    with pytest.warns(UserWarning, match="n_components=4 exceeds the 2 words"):
        HDPLDA(4, max_iter=2).fit(np.full((3, 2), 90))


# --- long documents -----------------------------------------------------------------------------------


def counts_of(rows):
    return check_counts(HDPLDA(), np.array(rows), reset=True)


def test_of_a_long_document_all_subsets_of_tokens_are_alike(monkeypatch):
    """Deterministic rules would do for whole documents, but one word more or less would move the others."""
    monkeypatch.setattr(_bounds, "MOST_TOKENS", 3)
    for row in ([2, 0, 1, 1], [9, 1, 0, 2]):
        X = counts_of(np.tile(row, (20_000, 1)))
        left = some_tokens(X, np.arange(8, dtype=np.uint32)).toarray()
        assert (left.sum(axis=1) == 3).all()
        outcomes, seen = np.unique(left, axis=0, return_counts=True)
        expected = 20_000 * multivariate_hypergeom.pmf(outcomes, row, 3)
        assert expected.sum() == pytest.approx(20_000)
        assert chisquare(seen, expected).pvalue > 1e-6


def test_a_part_keeps_the_tokens_that_the_whole_keeps(monkeypatch):
    monkeypatch.setattr(_bounds, "MOST_TOKENS", 30)
    key, X = np.arange(8, dtype=np.uint32), counts_of(np.random.default_rng(0).poisson(2, (9, 40)))
    whole = some_tokens(X, key)
    options = {"units": None, "n_threads": 1, "key": key, "n_topics": 2}
    parts = [PartOfTokens(X[a:b], first_document=a, **options) for a, b in ((0, 4), (4, 9))]
    words = np.concatenate([part._words for part in parts])
    assert (np.diff(tokens_of(whole)[0]) == 30).all()
    assert np.bincount(words, minlength=40).tolist() == whole.sum(axis=0).tolist()


def test_a_document_of_four_billion_tokens_is_cut_to_the_public_number():
    X = counts_of([[2**31 - 1, 2**31 - 1, 0], [1, 0, 2]])
    model = HDPLDA(2, max_iter=1, return_trace=True).fit(X)
    assert np.diff(model.trace_.document_starts).tolist() == [2**20, 3]


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_signal_and_noise_are_told_from_what_is_released(X):
    clear = HDPLDA(4, epsilon=20.0, return_trace=True, random_state=0).fit(X)
    assert clear.topic_signal_to_noise_.min() > 1 and not clear.topic_info(5)["noise"].any()
    assert {"signal_to_noise_", "topic_signal_to_noise_"} <= set(clear.privacy_guarantee_.released)
    # By hand, from the released tables alone.
    tables, weight = clear.trace_.tables[1:].astype(float), 0.8 ** np.arange(25)[::-1]
    mean = np.tensordot(weight, tables, 1) / weight.sum()
    share, words = mean.sum(axis=1) / mean.sum(), np.maximum(mean.sum(axis=0), 0)
    plan = HybridPlan.calibrate(20.0, 1e-5, 25, 0.25)
    variance = plan.deviation**2 + words * (share * (1 - share))[:, None]
    expected = (mean - np.outer(share, words)) / np.sqrt(variance * (weight**2).sum()) * weight.sum()
    np.testing.assert_allclose(clear.signal_to_noise_, expected, rtol=1e-3, atol=1e-3)
    for exact in (HDPLDA(4, epsilon=np.inf, max_iter=2), PublishedHDPLDA(4, max_iter=2)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            assert not hasattr(exact.fit(X), "signal_to_noise_")
        assert "signal_to_noise_" not in exact.privacy_guarantee_.released


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_topics_of_texts_without_topics_are_noise_and_warn():
    """The deviation is 0.90, with deviation 0.04 over 20 seeds."""
    X = np.random.default_rng(0).multinomial(40, np.full(60, 1 / 60), 300)
    with pytest.warns(NoisyTopicsWarning, match="4 of 4 topics hold more noise .* or a larger epsilon than 1, that of"):
        model = HDPLDA(4, epsilon=1.0, random_state=0).fit(X)
    assert model.signal_to_noise_.std() < 1.5
