"""The private loop: its privacy by exact enumeration, its contribution bound, its randomness."""

import math
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from dp_accounting import ComposedDpEvent
from scipy import stats
from scipy.optimize import brentq
from scipy.special import digamma

from skdplda._validation import check_groups
from skdplda.models._contributions import unit_weights
from skdplda.models._gibbs_step import GibbsStep
from skdplda.models._rounds import GRID, NoisePlan, run_rounds
from skdplda.models._rules import word_weights
from skdplda.privacy import Randomness, delta_of, epsilon_of, gaussian_event

ALPHA, BETA = np.array([0.4, 0.9]), 0.3
FIRST_TABLE = np.array([[3.0, 0.5], [0.2, 2.0]], dtype=np.float32)


# --- privacy by enumeration ----------------------------------------------------------------------------


def sweep_law(words, topics, table, n_sweeps=1):
    """Return the exact law {topics: probability} of one document's sequential draws from a frozen table."""
    weight = (table + BETA) / (table.sum(axis=0) + len(table) * BETA)
    law = {topics: 1.0}
    for _, i in product(range(n_sweeps), range(len(words))):
        after = defaultdict(float)
        for state, probability in law.items():
            others = [k for j, k in enumerate(state) if j != i and k is not None]
            p = weight[words[i]] * (np.bincount(np.array(others, dtype=int), minlength=2) + ALPHA)
            for k in range(2):
                after[(*state[:i], k, *state[i + 1 :])] += probability * p[k] / p.sum()
        law = after
    return law


def round_law(documents, hidden, table, rate):
    """Return the law of the next hidden states; each document takes part with probability `rate`.

    A hidden state is, for each document, its topics and whether it contributes.
    """
    laws = []
    for words, (topics, _) in zip(documents, hidden, strict=True):
        moved = {(new, True): rate * p for new, p in sweep_law(words, topics, table).items()}
        laws.append(moved if rate == 1 else {**moved, (topics, False): 1 - rate})
    for choice in product(*(law.items() for law in laws)):
        yield tuple(state for state, _ in choice), float(np.prod([p for _, p in choice]))


def contribution_law(words, topics, table, rate):
    """Return the law of what one document contributes in a round: tokens of word 0 in each topic."""
    law = defaultdict(float, {(0, 0): 1 - rate})
    for after, p in sweep_law(words, topics, table).items():
        law[after.count(0), after.count(1)] += rate * p
    return law


def total(hidden):
    """Return the sum that the documents contribute: tokens of word 0 in each topic."""
    return tuple(sum(state.count(k) for state, active in hidden if active) for k in range(2))


class Enumeration:
    """Probabilities of both releases of a two-round fit, on documents made of word 0 alone.

    The cells of word 1 then hold noise only, the same on both data sets: they are public, and fixed here.
    """

    def __init__(self, pmfs, reaches, rate=1.0, public=(1.0, 0.0)):
        self.values = [np.arange(-reach, reach + 5) for reach in reaches]
        self.pmfs, self.rate, self.public = pmfs, rate, np.array(public)

    def cells(self, round_, sums):
        """Return the probability of each noisy pair of cells."""
        return np.outer(*(self.pmfs[round_](self.values[round_] - total) for total in sums))

    def releases(self, documents):
        """Return p(Y1, Y2) as an array of four axes."""
        n = len(self.values[0])
        start = tuple(((None,) * len(words), False) for words in documents)
        weights = defaultdict(lambda: np.zeros((n, n)))  # of the first release, with each state of the topics
        for hidden, p in round_law(documents, start, FIRST_TABLE, self.rate):
            weights[tuple(state for state, _ in hidden)] += p * self.cells(0, total(hidden))
        size = sum(map(len, documents))
        sums = [pair for pair in product(range(size + 1), repeat=2) if sum(pair) <= size]
        cells = np.array([self.cells(1, pair).ravel() for pair in sums])
        positive, of_value = np.unique(
            np.maximum(self.values[0], 0), return_inverse=True
        )  # a table has no negative cells
        law = np.zeros((len(positive), len(positive), len(weights), len(sums)))
        for i, j in product(range(len(positive)), repeat=2):
            table = np.maximum([[positive[i], positive[j]], self.public], 0) / self.rate
            of_document = {
                pair: contribution_law(*pair, table, self.rate)
                for pair in {(words, topics[d]) for topics in weights for d, words in enumerate(documents)}
            }
            for state, topics in enumerate(weights):
                parts = [of_document[pair].items() for pair in zip(documents, topics, strict=True)]
                for added in product(*parts):
                    pair = tuple(map(sum, zip(*(contribution for contribution, _ in added), strict=True)))
                    law[i, j, state, sums.index(pair)] += math.prod(p for _, p in added)
        second = law[np.ix_(of_value, of_value)]
        joint = np.einsum("sij,ijst->ijt", np.array(list(weights.values())), second) @ cells
        return joint.reshape(n, n, *2 * self.values[1].shape)


DOCUMENTS = [(0, 0), (0, 0)]
NORM = 2  # of a document where one topic takes both tokens: the grid of a fit in which each token counts 1


def gaussian_pmf(sigma):
    return lambda x: stats.norm.cdf((x + 0.5) / sigma) - stats.norm.cdf((x - 0.5) / sigma)


@pytest.mark.parametrize("public", [(1.0, 0.0), (0.0, 9.0)])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_two_gaussian_rounds_keep_their_promise_exactly(rate, public):
    plan = NoisePlan.calibrate("gaussian", 3.0, 0.05, 2, rate)
    sigmas = [NORM * multiplier for multiplier in plan.multipliers]
    reaches = [int(6 * sigma) + 1 for sigma in sigmas]
    enumeration = Enumeration([gaussian_pmf(sigma) for sigma in sigmas], reaches, rate, public)
    with_it, without = enumeration.releases(DOCUMENTS), enumeration.releases(DOCUMENTS[:1])
    assert min(with_it.sum(), without.sum()) > 1 - 1e-7  # what the grid leaves out
    for epsilon in (0.25, 1.0, 3.0, 5.0):
        claimed = delta_of(plan.event, epsilon)
        found = [np.maximum(p - np.exp(epsilon) * q, 0).sum() for p, q in ((with_it, without), (without, with_it))]
        assert max(found) <= claimed + 1e-7
        if epsilon == 1.0:
            assert max(found) > claimed / 50  # the enumeration sees the document
    assert delta_of(plan.event, 3.0) <= 0.05


def test_two_laplace_rounds_keep_pure_epsilon_exactly():
    plan = NoisePlan.calibrate("laplace", 2.0, 0.0, 2, 1.0)
    ratio = np.exp(-1 / (NORM * plan.multipliers[0]))
    enumeration = Enumeration([lambda x: (1 - ratio) / (1 + ratio) * ratio ** np.abs(x)] * 2, (8, 8))
    worst = np.abs(np.log(enumeration.releases(DOCUMENTS) / enumeration.releases(DOCUMENTS[:1]))).max()
    assert worst <= 2.0 * (1 + 1e-9)
    assert worst > 1.9  # all tokens in one topic, twice


@pytest.mark.parametrize("n_sweeps", [1, 3])
def test_the_e_step_has_the_enumerated_law(n_sweeps):
    """Copies of one document, each with its own stream: counts of words in topics against the exact law."""
    n, words = 4000, (0, 1, 0)  # second tokens come last
    X = sp.csr_array(np.tile([2, 1], (n, 1)).astype(np.int32))
    step = gibbs_step(X, None, n_sweeps=n_sweeps)
    step.collect(FIRST_TABLE, 0, None)
    topics = step.arrays()["topics"].reshape(n, 3)
    law = sweep_law(words, (None,) * 3, FIRST_TABLE, n_sweeps)
    expected = np.array([law[state] for state in product(range(2), repeat=3)])
    found = np.bincount(topics @ [4, 2, 1], minlength=8)
    assert stats.chisquare(found, expected / expected.sum() * n).pvalue > 1e-6


def test_shares_are_the_probabilities_of_topics_given_the_document():
    rng = np.random.default_rng(3)
    X, table = rng.poisson(1.0, (30, 12)), rng.gamma(0.5, 20, (12, 3)).astype(np.float32)
    X[4] = 0
    alpha, active = np.resize(ALPHA, 3), (np.arange(30) % 5 < 3).astype(np.uint8)
    step = gibbs_step(X, None, n_topics=3, shares=True)
    for flags in (None, active):
        found = step.collect(table, 0, flags)
        n, document = np.zeros((30, 3)), np.repeat(np.arange(30), X.sum(axis=1))
        np.add.at(n, (document, step.arrays()["topics"]), 1)
        np.testing.assert_array_equal(step._tokens.document_topics(2), n)
        p = np.exp(digamma(table + BETA + 0.5)) / (table.sum(axis=0) + 12 * BETA)
        p = p * np.exp(digamma(alpha + n + 0.5))[:, None]
        share = X[..., None] * p / p.sum(axis=2, keepdims=True) * word_weights(table)[:, None]
        size = np.sqrt((share**2).sum(axis=(1, 2), keepdims=True))
        share *= GRID / np.maximum(size, 1e-9) * (1 if flags is None else flags[:, None, None])
        np.testing.assert_allclose(found, share.sum(axis=0), rtol=1e-3, atol=30)


@pytest.mark.parametrize("n_topics", [2, 5, 17])
def test_the_e_step_reads_the_table_only(n_topics):
    """What lies behind the table in memory must not matter, not even if it is no number."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(1.0, size=(30, 8)).astype(np.int32))
    values = rng.gamma(0.5, 4.0, size=(8, n_topics)).astype(np.float32)
    sums = []
    for behind in (0.0, np.nan, np.inf):
        memory = np.full(values.size + 64, behind, np.float32)
        memory[: values.size] = values.ravel()
        step = gibbs_step(X, None, n_topics=n_topics)
        sums.append(step.collect(memory[: values.size].reshape(values.shape), 0, None).copy())
    np.testing.assert_array_equal(sums[1], sums[0])
    np.testing.assert_array_equal(sums[2], sums[0])


# --- the contribution bound ----------------------------------------------------------------------------


def counts_of(X):
    """Return a corpus as `check_counts` does."""
    X = sp.csr_array(X)
    X.indptr, X.indices, X.data = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.int32)
    return X


def gibbs_step(X, groups, order=2, n_sweeps=2, n_topics=2, shares=False):
    X, randomness = counts_of(X), Randomness(0)
    alpha = np.resize(ALPHA, n_topics)
    return GibbsStep(
        X, check_groups(groups, X.shape[0]), n_topics, order, lambda _: (alpha, BETA), n_sweeps, shares, randomness, 1
    )


def random_corpus(rng):
    shape = rng.integers(1, [12, 15])
    X = rng.poisson(rng.choice([0.3, 2.0, 8.0, 1e5]), size=shape)
    groups = None if rng.random() < 0.5 else np.sort(rng.integers(4, size=shape[0]))  # the last user comes last
    return X.astype(np.int32), groups


def norm(values, order):
    """Return the exact norm, to the power of the order, in Python's integers."""
    return sum(abs(int(value)) ** order for value in np.ravel(values))


@pytest.mark.parametrize("order", [1, 2])
def test_no_unit_contributes_more_than_the_grid(order):
    rng = np.random.default_rng(order)
    for _ in range(300):
        X, groups = random_corpus(rng)
        start, documents = units = check_groups(groups, len(X))
        weight = unit_weights(counts_of(X), units, order).astype(int)
        for unit in range(len(start) - 1):
            rows = documents[start[unit] : start[unit + 1]]
            words = X[rows].sum(axis=0).astype(int)
            assert len(set(weight[rows])) == 1
            assert norm(words * weight[rows[0]], order) <= GRID**order  # all tokens of a word in one topic: the worst
            topics = rng.multinomial(words, [0.2, 0.3, 0.5]) * weight[rows[0]]
            assert norm(topics, order) <= GRID**order
            more = words * (weight[rows[0]] + 1)  # not less than it may be, but for the rounding
            assert norm(more, order) > (GRID * (1 - 1e-6)) ** order or not words.any()


def test_a_unit_that_is_too_large_contributes_nothing():
    X = counts_of(np.array([[2**30, 5], [1, 0]]))
    assert unit_weights(X, check_groups(None, 2), 1).tolist() == [0, GRID - 1]


@pytest.mark.parametrize("order, shares", [(1, False), (2, False), (2, True)])
def test_removing_the_last_unit_changes_each_sum_by_the_grid_at_most(order, shares):
    """Streams are keyed by position, so that the other units draw the same with and without the last one."""
    rng = np.random.default_rng(7)
    largest = 0.0
    for _ in range(60):
        X, groups = random_corpus(rng)
        X = np.minimum(X, 20)
        groups = None if shares else groups
        last = np.arange(len(X)) == len(X) - 1 if groups is None else groups == groups[-1]
        if last.all():
            continue
        rest = X[~last], None if groups is None else groups[~last]
        steps = [gibbs_step(data, users, order, n_topics=3, shares=shares) for data, users in ((X, groups), rest)]
        for step in steps:
            step._randomness.key = 5
        for round_ in range(3):
            table = rng.integers(0, 20, size=(X.shape[1], 3)).astype(np.float32)  # whatever was released
            active = np.ones(steps[0].n_units, np.uint8)
            if round_ == 2:
                active[:-1] = rng.integers(0, 2, size=len(active) - 1)
            flags = [active[: step.n_units] if round_ == 2 else None for step in steps]
            sums = [step.collect(table, round_, flag).copy() for step, flag in zip(steps, flags, strict=True)]
            change = sums[0] - sums[1]
            assert change.min() >= 0
            assert norm(change, order) <= GRID**order
            largest = max(largest, norm(change, order) / GRID**order)
    assert largest > 0.9


@pytest.mark.parametrize(
    "order, shares, grouped",
    [(1, False, False), (1, False, True), (2, False, False), (2, False, True), (2, True, False)],
)
def test_units_outside_the_sample_contribute_nothing(order, shares, grouped):
    """Every unit has taken part before; then what two samples contribute adds up to what both together do."""
    rng = np.random.default_rng(2)
    X, groups = rng.poisson(1.0, (40, 9)), np.arange(40) // 3 if grouped else None
    tables = rng.gamma(1.0, 5.0, (2, 9, 3)).astype(np.float32)
    sums = {}
    for name, divisor in (("none", 0), ("even", 2), ("all", 1)):
        step = gibbs_step(X, groups, order, n_topics=3, shares=shares)
        step._randomness.key = 5
        step.collect(tables[0], 0, None)
        active = np.zeros(step.n_units, np.uint8)
        active[:: divisor or 1] = divisor > 0
        sums[name] = step.collect(tables[1], 1, active).copy()
        if name == "even":
            other = gibbs_step(X, groups, order, n_topics=3, shares=shares)
            other._randomness.key = 5
            other.collect(tables[0], 0, None)
            sums["odd"] = other.collect(tables[1], 1, 1 - active).copy()
    assert not sums["none"].any()
    assert sums["even"].any() and sums["odd"].any()
    np.testing.assert_array_equal(sums["even"] + sums["odd"], sums["all"])


# --- noise and randomness ------------------------------------------------------------------------------


class Silence:
    """An E-step to which nobody contributes."""

    n_units = 0

    def __init__(self):
        self.sizes = []

    def collect(self, table, round_, active):
        self.sizes.append(None if active is None else len(active))
        return np.zeros((500, 40), np.int32)


class Recorder:
    """A rule that keeps what was released."""

    table = np.zeros((500, 40), np.float32)

    def __init__(self):
        self.released = []

    def update(self, noisy, round_):
        self.released.append(noisy.copy())


@pytest.mark.parametrize(("mechanism", "rate"), [("gaussian", 1.0), ("gaussian", 0.1), ("laplace", 1.0)])
@pytest.mark.parametrize("seed", [None, 3])
def test_an_empty_batch_gets_the_noise_of_the_plan_and_each_round_its_own(mechanism, rate, seed):
    """Sums of squares are chi-square, sums of magnitudes gamma; false alarms without a seed: 12 times 2e-8."""
    multipliers = (2.0, 3.0, 2.0, 1.0)
    rule = Recorder()
    run_rounds(Silence(), rule, NoisePlan(mechanism, rate, multipliers, None), Randomness(seed))
    assert len(rule.released) == 4
    for multiplier, noise in zip(multipliers, rule.released, strict=True):
        assert noise.dtype.kind == "i"
        x = noise.ravel() / (multiplier * 2**20)  # so fine that integers look continuous
        if mechanism == "gaussian":
            tail = stats.chi2.cdf((x**2).sum(), x.size)
        else:
            tail = stats.gamma.cdf(np.abs(x).sum(), x.size)
        assert 1e-8 < tail < 1 - 1e-8
        assert 1e-8 < stats.norm.cdf(x.sum() / np.sqrt(x.size * (1 if mechanism == "gaussian" else 2))) < 1 - 1e-8
    assert len({noise.tobytes() for noise in rule.released}) == 4


@pytest.mark.parametrize(("mechanism", "factor"), [("gaussian", 1.0), ("laplace", 2**0.5)])
def test_a_plan_tells_the_deviation_of_its_noise(mechanism, factor):
    plan = NoisePlan(mechanism, 1.0, (2.0, 3.5), None)
    assert [plan.deviation(0), plan.deviation(1), plan.deviation(-1)] == pytest.approx(
        [2.0 * factor, 3.5 * factor, 3.5 * factor]
    )


def test_the_precision_of_gaussian_rounds_grows_tenfold():
    """From the first round to the last, geometrically; together they are one mechanism of the exact multiplier."""
    precision = np.array(NoisePlan.calibrate("gaussian", 2.0, 1e-6, 5, 1.0).multipliers) ** -2
    np.testing.assert_allclose(precision / precision[0], 10 ** (np.arange(5) / 4), rtol=1e-9)

    def delta(sigma):  # Balle and Wang (2018), Theorem 8
        return stats.norm.cdf(0.5 / sigma - 2 * sigma) - np.exp(2) * stats.norm.cdf(-0.5 / sigma - 2 * sigma)

    sigma = brentq(lambda sigma: delta(sigma) - 1e-6, 0.1, 100, xtol=1e-12)
    assert precision.sum() ** -0.5 == pytest.approx(sigma, rel=1e-5)


def test_laplace_rounds_divide_epsilon_evenly():
    assert NoisePlan.calibrate("laplace", 2.0, 0.0, 5, 1.0).multipliers == pytest.approx((2.5,) * 5)


class Witness(Silence, Recorder):
    """An E-step and a rule at once, which write down when they are called."""

    def __init__(self, steps):
        self.steps, self.released = steps, []

    def collect(self, table, round_, active):
        self.steps.append("sum")
        return np.zeros((50, 4), np.int64)


def test_the_budget_is_charged_before_the_first_noisy_sum():
    steps = []
    witness = Witness(steps)
    plan = NoisePlan("gaussian", 1.0, (1.0, 1.0), None)
    run_rounds(witness, witness, plan, Randomness(0), before_release=lambda run: steps.append("charge"))
    assert steps == ["charge", "sum", "sum"]


@pytest.mark.parametrize("rate", [0.1, 0.7])
def test_each_round_takes_a_sample_of_its_own_at_the_rate_that_is_paid_for(rate):
    class Sampled(Witness):
        n_units = 20_000

        def collect(self, table, round_, active):
            self.steps.append(active)
            return np.zeros((50, 4), np.int64)

    steps, randomness = [], Randomness(5)
    witness = Sampled(steps)
    run_rounds(witness, witness, NoisePlan("gaussian", rate, (1.0,) * 3, None), randomness)
    assert len(steps) == 3
    for round_, active in enumerate(steps):
        np.testing.assert_array_equal(active, randomness.sample(round_, 20_000, rate))
        assert stats.binomtest(int(active.sum()), 20_000, rate).pvalue > 1e-6
    assert len({active.tobytes() for active in steps}) == 3


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate"), [(5.0, 1e-11, 1.0), (22.0, 1e-4, 1.0), (22.0, 1e-4, 0.5), (60.0, 1e-6, 1.0)]
)
def test_the_error_of_the_samplers_is_paid_for_within_delta(epsilon, delta, rate):
    """Where it matters: with an epsilon so large, or a delta so small, that it is a good part of delta."""
    plan = NoisePlan.calibrate("gaussian", epsilon, delta, 3, rate)
    target = min(epsilon, np.log(delta / 2 / 2.0**-46))  # 2^50 draws, each 2^-96 from its law
    slack = (1 + np.exp(target)) * 2.0**-46
    assert slack > delta / 100
    assert delta_of(plan.event, target) + slack <= delta * (1 + 1e-6)


def test_a_fit_that_cannot_be_charged_adds_no_noise_and_releases_nothing():
    steps = []
    witness = Witness(steps)

    def refuse(run):
        raise RuntimeError("no budget")

    with pytest.raises(RuntimeError, match="no budget"):
        run_rounds(witness, witness, NoisePlan("gaussian", 1.0, (1.0,), None), Randomness(0), before_release=refuse)
    assert not steps and not witness.released


def test_without_noise_nothing_is_added():
    rule = Recorder()
    run_rounds(Silence(), rule, NoisePlan.calibrate("gaussian", np.inf, 1e-5, 2, 1.0), Randomness(None))
    assert not np.any(rule.released)


@pytest.mark.parametrize("seed", [None, 11])
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.999])
def test_units_join_independently_at_the_stated_rate(seed, rate):
    n = 100_000
    samples = [Randomness(seed).sample(round_, n, rate) for round_ in range(2)]
    for sample in samples:
        assert sample.dtype == np.uint8
        assert stats.binomtest(int(sample.sum()), n, rate).pvalue > 1e-7
    both = int((samples[0] & samples[1]).sum())
    assert stats.binomtest(both, n, rate**2).pvalue > 1e-7


@pytest.mark.parametrize("n_rounds", [1, 2, 20])
def test_unequal_rounds_cost_what_the_event_says(n_rounds):
    plan = NoisePlan.calibrate("gaussian", 2.0, 1e-6, n_rounds, 1.0)
    assert plan.n_rounds == n_rounds
    together = ComposedDpEvent([gaussian_event(multiplier) for multiplier in plan.multipliers])
    assert epsilon_of(together, 1e-6) <= 2.0
    assert epsilon_of(together, 1e-6) == pytest.approx(epsilon_of(plan.event, 1e-6), rel=1e-9)


def test_every_purpose_and_round_has_a_seed_of_its_own():
    seeds, samples = [], []
    for seed in (0, 1, 2**31 - 1):
        randomness = Randomness(seed)
        seeds += [randomness.key, *(randomness.noise(round_) for round_ in range(500))]
        samples += [randomness.sample(round_, 200, 0.5).tobytes() for round_ in range(500)]
        assert randomness.sample(7, 200, 0.5).tobytes() == samples[-493]  # of round 7 of this seed
    assert len(set(seeds)) == len(seeds) == 3 * 501
    assert len(set(samples)) == len(samples) == 3 * 500
    assert Randomness(None).noise(0) is None
    assert Randomness(None).key != Randomness(None).key
    fresh = Randomness(None)
    assert fresh.sample(0, 200, 0.5).tobytes() != fresh.sample(0, 200, 0.5).tobytes()
