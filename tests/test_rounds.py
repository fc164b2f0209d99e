"""The private loop: its privacy by exact enumeration, its contribution bound, its randomness."""

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from skdplda._kernels._contributions import bound_contributions
from skdplda._validation import check_groups
from skdplda.models._cgs import GibbsStep
from skdplda.models._randomness import Randomness
from skdplda.models._rounds import NoisePlan, run_rounds
from skdplda.privacy import delta_of, gaussian_event

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


def total(hidden):
    """Return the sum that the documents contribute: tokens of word 0 in each topic."""
    return tuple(sum(state.count(k) for state, active in hidden if active) for k in range(2))


class Enumeration:
    """Probabilities of both releases of a two-round fit, on documents made of word 0 alone.

    The cells of word 1 then hold noise only, the same on both data sets: they are public, and fixed here.
    """

    def __init__(self, pmf, reach, rate=1.0, public=(1.0, 0.0)):
        self.values = np.arange(-reach, reach + 5)
        self.pmf, self.rate, self.public = pmf, rate, np.array(public)

    def cells(self, sums):
        """Return the probability of each noisy pair of cells."""
        return np.outer(self.pmf(self.values - sums[0]), self.pmf(self.values - sums[1]))

    def releases(self, documents):
        """Return p(Y1, Y2) as an array of four axes."""
        n = len(self.values)
        start = tuple(((None,) * len(words), False) for words in documents)
        first = list(round_law(documents, start, FIRST_TABLE, self.rate))
        joint = np.zeros((n, n, n, n))
        weights = np.array([p * self.cells(total(hidden)) for hidden, p in first])
        for i, j in product(range(n), range(n)):
            table = np.maximum([[self.values[i], self.values[j]], self.public], 0) / self.rate
            sums, moves = defaultdict(float), {}
            for (hidden, _), weight in zip(first, weights[:, i, j], strict=True):
                topics = tuple(state for state, _ in hidden)
                if topics not in moves:
                    moves[topics] = [(total(after), p) for after, p in round_law(documents, hidden, table, self.rate)]
                for second, p in moves[topics]:
                    sums[second] += weight * p
            joint[i, j] = sum(p * self.cells(second) for second, p in sums.items())
        return joint


DOCUMENTS = [(0, 0), (0, 0)]  # each of L2 and L1 norm 2 where one topic takes both tokens


def gaussian_pmf(sigma):
    return lambda x: stats.norm.cdf((x + 0.5) / sigma) - stats.norm.cdf((x - 0.5) / sigma)


@pytest.mark.parametrize("public", [(1.0, 0.0), (0.0, 9.0)])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_two_gaussian_rounds_keep_their_promise_exactly(rate, public):
    plan = NoisePlan.calibrate("gaussian", 3.0, 0.05, 2, rate)
    sigma = 2.0 * plan.multiplier
    enumeration = Enumeration(gaussian_pmf(sigma), int(6 * sigma) + 1, rate, public)
    with_it, without = enumeration.releases(DOCUMENTS), enumeration.releases(DOCUMENTS[:1])
    assert min(with_it.sum(), without.sum()) > 1 - 1e-7  # what the grid leaves out
    for epsilon in (0.25, 1.0, 3.0, 5.0):
        claimed = delta_of(gaussian_event(plan.multiplier, 2, rate), epsilon)
        found = [np.maximum(p - np.exp(epsilon) * q, 0).sum() for p, q in ((with_it, without), (without, with_it))]
        assert max(found) <= claimed + 1e-7
        if epsilon == 1.0:
            assert max(found) > claimed / 50  # the enumeration sees the document
    assert delta_of(plan.event(), 3.0) <= 0.05


def test_two_laplace_rounds_keep_pure_epsilon_exactly():
    plan = NoisePlan.calibrate("laplace", 2.0, 0.0, 2, 1.0)
    ratio = np.exp(-1 / (2.0 * plan.multiplier))
    enumeration = Enumeration(lambda x: (1 - ratio) / (1 + ratio) * ratio ** np.abs(x), 8)
    worst = np.abs(np.log(enumeration.releases(DOCUMENTS) / enumeration.releases(DOCUMENTS[:1]))).max()
    assert worst <= 2.0 * (1 + 1e-9)
    assert worst > 1.9  # all tokens in one topic, twice


@pytest.mark.parametrize("n_sweeps", [1, 3])
def test_the_e_step_has_the_enumerated_law(n_sweeps):
    """Copies of one document, each with its own stream: counts of words in topics against the exact law."""
    n, words = 4000, (0, 0, 1)
    X = sp.csr_array(np.tile([2, 1], (n, 1)).astype(np.int32))
    step = gibbs_step(X, None, np.inf, n_sweeps=n_sweeps)
    step.collect(FIRST_TABLE, 0, None)
    topics = step.arrays()["topics"].reshape(n, 3)
    law = sweep_law(words, (None,) * 3, FIRST_TABLE, n_sweeps)
    expected = np.array([law[state] for state in product(range(2), repeat=3)])
    found = np.bincount(topics @ [4, 2, 1], minlength=8)
    assert stats.chisquare(found, expected / expected.sum() * n).pvalue > 1e-6


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
        step = gibbs_step(X, None, np.inf, n_topics=n_topics)
        sums.append(step.collect(memory[: values.size].reshape(values.shape), 0, None).copy())
    np.testing.assert_array_equal(sums[1], sums[0])
    np.testing.assert_array_equal(sums[2], sums[0])


# --- the contribution bound ----------------------------------------------------------------------------


def gibbs_step(X, groups, bound, squared=True, n_sweeps=2, key=5, n_topics=2, exact=False):
    randomness = Randomness(0)
    randomness.key = key
    X = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    X.indptr, X.indices, X.data = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.int32)
    alpha = np.resize(ALPHA, n_topics)
    return GibbsStep(
        X, check_groups(groups, X.shape[0]), n_topics, (squared, bound), alpha, BETA, n_sweeps, exact, randomness, 1
    )


def random_corpus(rng):
    shape = rng.integers(1, [12, 15])
    X = sp.csr_array(rng.poisson(rng.choice([0.3, 2.0, 8.0]), size=shape).astype(np.int32))
    groups = None if rng.random() < 0.5 else np.sort(rng.integers(4, size=shape[0]))  # the last user comes last
    return X, groups


def kept_of(X, groups, squared, bound, seed):
    start, documents = check_groups(groups, X.shape[0])
    kept, scratch = np.empty(X.nnz, np.int32), np.zeros(X.shape[1], np.int32)
    arrays = (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.int32))
    bound_contributions(start, documents, *arrays, scratch, squared, bound, seed, kept)
    assert not scratch.any()
    return sp.csr_array((kept, X.indices, X.indptr), shape=X.shape), start, documents


@pytest.mark.parametrize("squared", [True, False])
def test_no_unit_contributes_more_than_the_bound(squared):
    rng = np.random.default_rng(int(squared))
    for seed in range(300):
        X, groups = random_corpus(rng)
        bound = float(rng.choice([1, 2, 9, 25, 30.5]))
        kept, start, documents = kept_of(X, groups, squared, bound, seed)
        assert (kept.toarray() <= X.toarray()).all()
        assert (kept.toarray() >= 0).all()
        for unit in range(len(start) - 1):
            rows = documents[start[unit] : start[unit + 1]]
            words, available = (m.toarray()[rows].sum(axis=0) for m in (kept, X))
            used = (words**2).sum() if squared else words.sum()
            topics = rng.multinomial(words, [0.2, 0.3, 0.5])  # any assignment of the tokens to topics
            assert ((topics**2).sum() if squared else topics.sum()) <= used <= bound
            left_out = words < available  # maximal: no token that was left out would fit
            cost = 2 * words[left_out] + 1 if squared else np.ones(left_out.sum())
            assert (used + cost > bound).all()


def test_which_tokens_count_is_random():
    X = sp.csr_array(np.full((1, 30), 1))
    picks = {tuple(kept_of(X, None, True, 9.0, seed)[0].toarray()[0]) for seed in range(50)}
    assert len(picks) > 45
    assert all(sum(pick) == 9 for pick in picks)


@pytest.mark.parametrize("squared", [True, False])
def test_removing_the_last_unit_changes_each_sum_by_the_bound_at_most(squared):
    """Streams are keyed by position, so that the other units draw the same with and without the last one."""
    rng = np.random.default_rng(7)
    largest = 0.0
    for _ in range(60):
        X, groups = random_corpus(rng)
        last = np.arange(X.shape[0]) == X.shape[0] - 1 if groups is None else groups == groups[-1]
        rest = sp.csr_array(X.toarray()[~last]) if not last.all() else None
        if rest is None:
            continue
        both = [
            gibbs_step(X, groups, 9.0, squared, n_topics=3),
            gibbs_step(rest, None if groups is None else groups[~last], 9.0, squared, n_topics=3),
        ]
        for round_ in range(3):
            table = rng.integers(0, 20, size=(X.shape[1], 3)).astype(np.float32)  # whatever was released
            active = None
            if round_ == 2:
                active = rng.integers(0, 2, size=both[0].n_units).astype(np.uint8)
                active[-1] = 1
            sums = [
                step.collect(table, round_, active if active is None else active[: step.n_units]).astype(np.int64)
                for step in both
            ]
            change = sums[0] - sums[1]
            size = (change**2).sum() if squared else np.abs(change).sum()
            assert size <= 9.0
            assert change.min() >= 0
            largest = max(largest, size)
    assert largest >= 8.0


# --- noise and randomness ------------------------------------------------------------------------------


class Silence:
    """An E-step to which nobody contributes."""

    n_units = 0

    def __init__(self):
        self.sizes = []

    def collect(self, table, round_, active):
        self.sizes.append(None if active is None else len(active))
        return np.zeros((50, 4), np.int32)


class Recorder:
    """A rule that keeps what was released."""

    table = np.zeros((50, 4), np.float32)

    def __init__(self):
        self.released = []

    def update(self, noisy, round_):
        self.released.append(noisy.copy())


@pytest.mark.parametrize(("mechanism", "rate"), [("gaussian", 1.0), ("gaussian", 0.1), ("laplace", 1.0)])
@pytest.mark.parametrize("seed", [None, 3])
def test_an_empty_batch_gets_noise_too_and_each_round_its_own(mechanism, rate, seed):
    plan = NoisePlan(mechanism, 1.0, 1e-5, 4, rate, 2.0)
    rule = Recorder()
    run_rounds(Silence(), rule, plan, Randomness(seed), max_norm=5.0)
    assert len(rule.released) == 4
    for noise in rule.released:
        assert noise.dtype.kind == "i"
        scale = 10.0 * (1 if mechanism == "gaussian" else np.sqrt(2))
        # 200 draws: a factor of two in the deviation is more than nine standard errors
        assert 0.5 * scale < noise.std() < 2.0 * scale
    assert len({noise.tobytes() for noise in rule.released}) == 4


def test_without_noise_nothing_is_added():
    rule = Recorder()
    run_rounds(Silence(), rule, NoisePlan("gaussian", np.inf, 1e-5, 2, 1.0, 0.0), Randomness(None), max_norm=np.inf)
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


def test_every_purpose_and_round_has_a_seed_of_its_own():
    seeds = []
    for seed in (0, 1, 2**31 - 1):
        randomness = Randomness(seed)
        seeds += [randomness.key, *(randomness.noise(round_) for round_ in range(500))]
        seeds += [
            randomness.sample(round_, 8, 0.5).tobytes() * 0 or randomness._derive(2, round_) for round_ in range(500)
        ]
    assert len(set(seeds)) == len(seeds) == 3 * 1001
    assert Randomness(None).noise(0) is None
    assert Randomness(None).key != Randomness(None).key
