"""The private loop: its privacy by exact enumeration, its noise, its samples and when the budget is charged."""

import math
import pickle
from collections import defaultdict
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from internals import GibbsEStep, answer_exactly, converse, drawn_seeds, rounds_of
from scipy import stats

from skdplda.privacy import Randomness, delta_of
from skdplda.rounds import Ask, Bounded, Contributions, NoisePlan, Query, Spending, Tables, TopicWordCounts

ALPHA, BETA = np.array([0.4, 0.9]), 0.3
FIRST_TABLE = np.array([[3.0, 0.5], [0.2, 2.0]], dtype=np.float32)


# --- privacy by enumeration ----------------------------------------------------------------------------


def sweep_law(words, topics, table, n_sweeps=1):
    """Return the exact law {topics: probability} of one document's sequential draws from a fixed table."""
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
def test_two_gaussian_rounds_keep_their_guarantee_exactly(rate, public):
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
    X.indptr = X.indptr.astype(np.int64)
    step = GibbsEStep(
        X, n_topics=2, order=2, priors=lambda _: (ALPHA, BETA), n_sweeps=n_sweeps,
        randomness=Randomness(0), n_threads=1,
    )  # fmt: skip
    step.collect(TopicWordCounts(FIRST_TABLE), 0, None)
    topics = step.arrays()["topics"].reshape(n, 3)
    law = sweep_law(words, (None,) * 3, FIRST_TABLE, n_sweeps)
    expected = np.array([law[state] for state in product(range(2), repeat=3)])
    found = np.bincount(topics @ [4, 2, 1], minlength=8)
    assert stats.chisquare(found, expected / expected.sum() * n).pvalue > 1e-6


# --- noise, samples and budget -------------------------------------------------------------------------


class Silence:
    """An E-step to which nobody contributes."""

    n_units = 0

    def collect(self, query, round_, active):
        return Contributions(query.shape, norm=1).bounded()

    def arrays(self):
        return {}


class Recorder(Tables):
    """Tables that keep what was released."""

    grow = True

    def __init__(self, shape=(500, 40)):
        self.table, self.released = np.ones(shape, np.float32), []

    def update(self, noisy, round_):
        self.released.append(noisy.copy())

    def begin(self, exact):
        self.released.append(exact.copy())
        return self.query()

    def arrays(self):
        return {}


def run(e_step, tables, plan, randomness, **options):
    """Run as many rounds as a plan has, with its noise, and return the tables."""
    return converse(rounds_of(tables, plan.n_rounds), e_step, Spending(plan), randomness, **options)


def run_exactly(e_step, asking, plan, randomness, **options):
    """Run as many rounds as a plan has, without noise."""
    return answer_exactly(rounds_of(asking, plan.n_rounds), e_step, Spending(plan), randomness, **options)


@pytest.mark.parametrize(("mechanism", "rate"), [("gaussian", 1.0), ("gaussian", 0.1), ("laplace", 1.0)])
@pytest.mark.parametrize("seed", [None, 3])
def test_an_empty_batch_gets_the_noise_of_the_plan_and_each_round_its_own(mechanism, rate, seed):
    """Sums of squares are chi-square, sums of magnitudes gamma; false alarms without a seed: 12 times 2e-8."""
    multipliers = (2.0, 3.0, 2.0, 1.0)
    tables = run(Silence(), Recorder(), NoisePlan(mechanism, rate, multipliers, None), Randomness(seed))
    assert len(tables.released) == 4 == tables.n_done
    for multiplier, noise in zip(multipliers, tables.released, strict=True):
        assert noise.dtype.kind == "i"
        x = noise.ravel() / (multiplier * 2**20)  # so fine that integers look continuous
        if mechanism == "gaussian":
            tail = stats.chi2.cdf((x**2).sum(), x.size)
        else:
            tail = stats.gamma.cdf(np.abs(x).sum(), x.size)
        assert 1e-8 < tail < 1 - 1e-8
        assert 1e-8 < stats.norm.cdf(x.sum() / np.sqrt(x.size * (1 if mechanism == "gaussian" else 2))) < 1 - 1e-8
    assert len({noise.tobytes() for noise in tables.released}) == 4


class Witness(Silence):
    """An E-step that writes down when it is asked."""

    def __init__(self, note):
        self.steps, self._note = [], note

    def collect(self, query, round_, active):
        self.steps.append(self._note(query, round_, active))
        return super().collect(query, round_, active)


def witness(note=lambda query, round_, active: "sum", **attributes):
    """Return a `Witness` with attributes."""
    found = Witness(note)
    vars(found).update(attributes)
    return found


def test_the_budget_is_charged_before_the_first_noisy_sum():
    plan, step = NoisePlan("gaussian", 1.0, (1.0, 1.0), None), witness()
    run(step, Recorder((50, 4)), plan, Randomness(0), before_release=lambda run: step.steps.append("charge"))
    assert step.steps == ["charge", "sum", "sum"]


def test_nothing_is_summed_or_released_that_the_budget_does_not_hold():
    """One ask more than the plan has, whatever the strategy is: the loop ends before the documents are asked."""
    step, tables, plan = witness(), Recorder((50, 4)), NoisePlan("gaussian", 1.0, (1.0, 1.0), None)
    with pytest.raises(RuntimeError, match="release 2 is not one of the plan"):
        converse(rounds_of(tables, 3), step, Spending(plan), Randomness(0))
    assert step.steps == ["sum", "sum"] and len(tables.released) == 2


def test_a_strategy_of_another_author_is_a_generator_that_asks():
    """It gets noisy sums of the shapes that it asked for, and its last word is the model."""

    class Pairs(Query):
        shape, kind, lemma = (2, 3), "pairs", "none"

    def strategy():
        first = yield Ask(Pairs(), None, None, 2)
        second = yield Ask(Pairs(), None, first, 2)
        return SimpleNamespace(table=second, answers=(first, second))

    plan, reports = NoisePlan("gaussian", 1.0, (1.0, 2.0), None), []
    found = converse(strategy(), witness(), Spending(plan), Randomness(3), callback=reports.append).answers
    assert [noisy.shape for noisy in found] == [(2, 3), (2, 3)] and not np.array_equal(*found)
    assert [(report.n_done, report.n_rounds) for report in reports] == [(1, 2), (2, 2)]
    assert all(report.table is noisy for report, noisy in zip(reports, found, strict=True))
    again = converse(strategy(), witness(), Spending(plan), Randomness(3)).answers
    np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize("rate", [0.1, 0.7])
def test_each_round_takes_a_sample_of_its_own_at_the_rate_that_is_paid_for(rate):
    randomness, step = Randomness(5), witness(lambda query, round_, active: active, n_units=20_000)
    run(step, Recorder((50, 4)), NoisePlan("gaussian", rate, (1.0,) * 3, None), randomness)
    steps = step.steps
    assert len(steps) == 3
    for round_, active in enumerate(steps):
        np.testing.assert_array_equal(active, randomness.sample(round_, 20_000, rate))
        assert stats.binomtest(int(active.sum()), 20_000, rate).pvalue > 1e-6
    assert len({active.tobytes() for active in steps}) == 3


def test_the_first_round_without_noise_takes_parts_of_growing_size():
    """All but a small part then meet tables that hold topics; an empty table made topics of long documents worse."""

    def taken(loop, epsilon, n_rounds, grows, n_topics=4, mean_length=25):
        step, tables = witness(lambda _, *asked: asked, n_units=20_000), Recorder((1, n_topics))
        plan = NoisePlan.calibrate("gaussian", epsilon, 1e-5, n_rounds, 1.0)
        loop(step, tables, plan, Randomness(5), **({"tables": tables, "mean_length": mean_length} if grows else {}))
        assert len(tables.released) == len(step.steps)  # each part makes a table
        return step.steps

    assert taken(run_exactly, np.inf, 1, True) == [(0, None)]
    assert taken(run, 1.0, 3, False) == taken(run_exactly, np.inf, 3, False) == [(0, None), (1, None), (2, None)]
    for n_topics, length in ((32, 25), (6667, 25), (32, 24), (31, 25)):  # documents are topics, if many and long
        *parts, (one, _), (two, _) = taken(run_exactly, np.inf, 3, True, n_topics, length)
        assert (one, two) == (1, 2) and {round_ for round_, _ in parts} == {0}
        if n_topics == 32 and length == 25:
            assert parts.pop(0) == (0, None)
        np.testing.assert_array_equal(sum(active for _, active in parts), np.ones(20_000))
        sizes = np.array([active.sum() for _, active in parts])
        assert len(sizes) > 3 and sizes[0] < 200 and (sizes[1:] > 1.5 * sizes[:-1]).all()  # threefold, but for chance


def test_seeds_are_the_words_of_documents_chosen_at_random():
    X = sp.csr_array(np.random.default_rng(0).poisson(0.5, (30, 12)).astype(np.int32))
    unit = np.repeat(np.arange(10), 3)
    query = drawn_seeds((12, 4), 10, key=5)
    assert sorted(query.topics) == [-1] * 6 + [0, 1, 2, 3]
    expected = [X.toarray()[query.topics[unit] == topic].sum(axis=0) for topic in range(4)]
    found = query.total(X, unit)
    np.testing.assert_array_equal(found.toarray(), np.transpose(expected))
    assert found.dtype == np.int32 and found.has_sorted_indices
    halves = (slice(5), slice(15)), (slice(5, 10), slice(15, 30))
    parts = [replace(query, topics=query.topics[of]).total(X[rows], unit[rows] % 5) for of, rows in halves]
    np.testing.assert_array_equal(sum(parts).toarray(), found.toarray())
    counts = np.zeros(10)
    for key in range(2000):  # each unit is chosen 800 times, with deviation 22
        counts += drawn_seeds((12, 4), 10, key).topics >= 0
    assert np.abs(counts - 800).max() < 6 * 22


class Derived(Bounded):
    """What claims to be bounded."""

    total, norm = np.zeros((50, 4), np.int64), 1

    def __new__(cls):
        return object.__new__(cls)


class Returns(Silence):
    """An E-step that returns what it is given."""

    def __init__(self, sums):
        self.sums = sums

    def collect(self, query, round_, active):
        return self.sums


@pytest.mark.parametrize(
    ("mechanism", "sums", "error", "said"),
    [
        (
            "gaussian",
            np.zeros((50, 4), np.int64),
            TypeError,
            "return a Bounded.*got ndarray.*Nothing was released",
        ),
        ("gaussian", None, TypeError, "got NoneType"),
        ("gaussian", Derived(), TypeError, "got Derived"),
        ("laplace", Contributions((50, 4)).bounded(), ValueError, "in the L1 norm, and these are in L2"),
        ("gaussian", Contributions((4, 50)).bounded(), ValueError, r"query's shape \(50, 4\); got \(4, 50\)"),
    ],
)
def test_noise_is_added_to_bounded_sums_alone(mechanism, sums, error, said):
    """Neither to arrays, nor to what is bounded in a norm that the noise does not hide, nor to another shape."""
    plan, tables = NoisePlan.calibrate(mechanism, 1.0, 1e-5 * (mechanism == "gaussian"), 1), Recorder((50, 4))
    with pytest.raises(error, match=said):
        run(Returns(sums), tables, plan, Randomness(0))
    assert not tables.released


def test_a_bounded_sum_is_made_of_contributions_alone_and_does_not_change():
    total = np.full(3, 2**40)
    for made in (Bounded, lambda: pickle.loads(pickle.dumps(Contributions((3,)).bounded()))):
        with pytest.raises(TypeError, match="a Bounded cannot be made of a sum"):
            made()
    with pytest.raises(TypeError):
        Bounded(total, 2)
    sums = Contributions((3,)).bounded()
    with pytest.raises(TypeError, match="it is the data, and is not pickled"):
        pickle.dumps(sums)
    with pytest.raises(ValueError, match="WRITEABLE"):
        sums.total.flags.writeable = True
    with pytest.raises(AttributeError):
        sums.total = total
    with pytest.raises(ValueError, match="read-only"):
        sums.total[0] = 1
    assert "L2" in repr(sums) and "total" not in repr(sums)  # the numbers are the data


def test_a_fit_that_cannot_be_charged_adds_no_noise_and_releases_nothing():
    step, tables = witness(), Recorder((50, 4))

    def refuse(run):
        raise RuntimeError("no budget")

    with pytest.raises(RuntimeError, match="no budget"):
        run(step, tables, NoisePlan("gaussian", 1.0, (1.0,), None), Randomness(0), before_release=refuse)
    assert not step.steps and not tables.released


def test_without_noise_nothing_is_added():
    plan = NoisePlan.calibrate("gaussian", np.inf, 1e-5, 2, 1.0)
    tables = run_exactly(Silence(), Recorder(), plan, Randomness(None))
    assert len(tables.released) == 2 and not np.any(tables.released)


def test_noise_that_covered_one_statistic_never_covers_another():
    """Whoever has two releases with equal noise has the difference of the two exact sums."""
    plan, noise = NoisePlan.calibrate("gaussian", 1.0, 1e-5, 1, 1.0), []
    for exact in (np.zeros((50, 4), np.int64), np.eye(50, 4, dtype=np.int64)):
        step, tables, sums = Silence(), Recorder((50, 4)), Contributions((50, 4))
        sums.add_rows(exact[None])
        step.collect = lambda query, round_, active, sums=sums: sums.bounded()
        run(step, tables, plan, Randomness(0))
        noise.append(tables.released[0] - exact)
    assert np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1] < 0.5
