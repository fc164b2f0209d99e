"""Private selection: kernels, sensitivities, the price of new words, and audits over 100,000 runs."""

import math
from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from internals import (
    FILLS,
    MOST_ADAPTIVE,
    MOST_UNITS_REROUTED,
    REROUTED,
    ROUNDS,
    MeanOfRounds,
    discount,
    equal_share,
    passing,
    reroute,
)
from internals import binomial as _binomial
from internals import mean_weights as _mean_weights
from internals import partition_kernel as _partition
from internals import survivors as _survivors
from scipy import stats

from skdplda.privacy import (
    MECHANISMS,
    NORM_BOUND,
    PartitionPlan,
    PrivacyGuarantee,
    Randomness,
    UnitWords,
    delta_of,
    epsilon_needed,
    gaussian_event,
    plan_partition,
    select_partitions,
    select_words,
)
from skdplda.published import PublishedItemFrequencySelector

FALSE_ALARM = 1e-8  # of each statistical bound; there are 122 of them


def lists_of(units):
    """Return (start, words, counts) of a list of word lists."""
    start = np.concatenate([[0], np.cumsum([len(unit) for unit in units])]).astype(np.int64)
    words = np.array([word for unit in units for word in unit], dtype=np.int32)
    return start, words, np.ones(len(words))


def random_units(rng, n_units=30, n_words=12, longest=6):
    return [rng.permutation(n_words)[: rng.integers(0, longest + 1)].tolist() for _ in range(n_units)]


# --- kernels --------------------------------------------------------------------------------------------


def reference_gaussian(total, words, cap, budget):
    gap = np.maximum(cap - total[words], 0).astype(float)
    if gap.any():
        part = min(1.0, budget * (1 - 2.0**-40) / np.sqrt(sum(g * g for g in gap)))
        total[words] += np.floor(gap * part).astype(np.int64)


def reference_first(total, words, cap, budget):
    gap = np.maximum(cap - total[words], 0)
    total[words] += np.diff(np.minimum(np.cumsum(gap), budget), prepend=0)


def reference_level(total, words, cap, budget):
    before = total[words]
    for _ in range(budget):
        is_open = total[words] < cap
        if is_open.any():
            given = np.where(is_open, total[words] - before, budget + 1)
            total[words[given.argmin()]] += 1


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (_partition.fill_gaussian, reference_gaussian),
        (_partition.fill_first, reference_first),
        (_partition.fill_level, reference_level),
    ],
)
def test_policies_equal_their_references(kernel, reference):
    rng = np.random.default_rng(0)
    for trial in range(60):
        start, words, _ = lists_of(random_units(rng))
        order = rng.permutation(len(start) - 1)
        cap, budget = int(rng.integers(1, 60)), int(rng.integers(1, 25))
        if trial % 3 == 0 and reference is not reference_level:
            cap, budget = cap << 40, budget << 38
        found, expected = np.zeros(12, np.int64), np.zeros(12, np.int64)
        kernel(start, words, order, cap, budget, found)
        for u in order:
            reference(expected, words[start[u] : start[u + 1]], cap, budget)
        np.testing.assert_array_equal(found, expected)
        assert found.max() <= cap


def test_equal_shares_equal_the_reference():
    rng = np.random.default_rng(1)
    start, words, _ = lists_of(random_units(rng))
    active = (rng.random(12) < 0.6).astype(np.uint8)
    share = np.array([0] + [equal_share(NORM_BOUND, n) for n in range(1, 7)])
    found, expected = np.zeros(12, np.int64), np.zeros(12, np.int64)
    _partition.share_equally(start, words, active, share, found)
    for u in range(len(start) - 1):
        chosen = words[start[u] : start[u + 1]]
        chosen = chosen[active[chosen] > 0]
        expected[chosen] += share[len(chosen)]
    np.testing.assert_array_equal(found, expected)
    for n in (1, 2, 3, 20, 10**6):
        assert n * equal_share(NORM_BOUND, n) ** 2 <= NORM_BOUND**2 < n * (equal_share(NORM_BOUND, n) + 1) ** 2


def test_what_comes_back_equals_the_reference():
    rng = np.random.default_rng(6)
    start, words, _ = lists_of(random_units(rng))
    active = (rng.random(12) < 0.7).astype(np.uint8)
    share, back = rng.integers(0, 2**39, 7), rng.random(12)
    back_share = rng.random(7) * 2**38
    found, expected = np.zeros(12, np.int64), np.zeros(12, np.int64)
    _partition.reroute(start, words, active, share, back, back_share, found)
    for u in range(len(start) - 1):
        chosen = words[start[u] : start[u + 1]]
        chosen = chosen[active[chosen] > 0]
        if len(chosen):
            expected[chosen] += share[len(chosen)] + int(back_share[len(chosen)] * np.cumsum(back[chosen])[-1])
    np.testing.assert_array_equal(found, expected)


def test_truncation_keeps_a_random_part_of_each_unit_and_moves_counts_along():
    n_units, n_words, most = 4000, 6, 2
    start = np.arange(0, n_units * n_words + 1, n_words)
    words = np.tile(np.arange(n_words, dtype=np.int32), n_units)
    counts = np.arange(len(words), dtype=float)
    kept = _partition.truncate(start, words, counts, most, 5)
    assert kept.reshape(n_units, n_words).sum(axis=1).tolist() == [most] * n_units
    np.testing.assert_array_equal(words, counts % n_words)
    assert (np.sort(words.reshape(n_units, n_words), axis=1) == np.arange(n_words)).all()
    times = np.bincount(words[kept], minlength=n_words)
    assert stats.chisquare(times).pvalue > FALSE_ALARM
    first = words.reshape(n_units, n_words)[7].copy()
    words = np.tile(np.arange(n_words, dtype=np.int32), n_units)
    _partition.truncate(start, words, counts, most, 5)
    np.testing.assert_array_equal(words.reshape(n_units, n_words)[7], first)  # one stream a unit


def test_kernels_take_empty_input():
    start, words, counts = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    for mechanism in PartitionPlan.METHODS:
        plan = plan_partition(mechanism, 1.0, 1e-3, 5, 3.0)
        released, weights, _ = select_partitions(plan, start, words, counts, 4, Randomness(None))
        assert len(released) == len(weights) == 0


# --- sensitivity ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "norm", "slack"),
    [(_partition.fill_gaussian, 2, 1), (_partition.fill_first, 1, 0), (_partition.fill_level, 1, 0)],
)
def test_policies_never_widen_the_gap_between_neighbours(kernel, norm, slack):
    """Fuzz: remove one unit, keep the order of the others; the sums of their words move by at most one budget."""
    rng = np.random.default_rng(2)
    closest = 0.0
    for trial in range(400):
        n_words, longest = 9, 5
        units = random_units(rng, int(rng.integers(2, 25)), n_words, longest)
        budget = int(rng.integers(5, 50)) << (30 if slack else 0)
        cap = int(budget * rng.choice([1.0, 1.7, 4.0]))
        order = rng.permutation(len(units))
        gone = int(rng.integers(len(units)))
        sums = []
        for removed in (False, True):
            total = np.zeros(n_words, np.int64)
            kernel(*lists_of(units)[:2], order[order != gone] if removed else order, cap, budget, total)
            sums.append(total)
        others = sorted({word for u, unit in enumerate(units) if u != gone for word in unit})
        new = sorted(set(units[gone]) - set(others))
        moved = np.linalg.norm((sums[0] - sums[1])[others].astype(float), norm)
        allowed = budget + slack * 2 * len(units) * math.sqrt(longest)
        assert moved <= allowed * (1 + 1e-12), trial
        closest = max(closest, moved / budget)
        if new:
            weights = sums[0][new]
            if kernel is _partition.fill_first:
                assert np.count_nonzero(weights) <= 1 and weights.sum() <= budget
            elif kernel is _partition.fill_level:
                assert weights.max() <= min(budget, budget // len(new) + 1)
            else:
                assert weights.max() <= equal_share(budget, len(new))
    assert closest > 0.99  # the bound is met


def test_what_comes_back_never_moves_the_sums_by_more_than_a_unit():
    """Fuzz "mad" at small caps, where nearly all comes back, with many small units beside: and the bound is met."""
    rng = np.random.default_rng(8)
    share = np.array([0] + [equal_share(2**39, n + 1) for n in range(60)])
    closest, plan = 0.0, plan_partition("mad", 1.0, 1e-3, 60, 3.0)
    for trial in range(300):
        cap = int(2**39 * rng.choice([1.0, 1.5, 3.0]))
        plan = replace(plan, grid=2**39, cap=cap)
        n, sink = int(rng.choice([1, 2, 3, 9, 40, MOST_ADAPTIVE, MOST_ADAPTIVE + 1])), int(rng.integers(2))
        longest = 1 + int(rng.integers(3))
        others = [rng.permutation(60)[: rng.integers(1, longest + 1)].tolist() for _ in range(rng.integers(0, 300))]
        if trial % 2:  # all of the others' words are beyond the cap but one, to which all that comes back may go
            others += [[word, 0 if sink else 60] for word in range(1, n)] * 5
        gone = rng.permutation(60)[:n].tolist() if trial % 3 else [*range(n)]
        active = np.ones(61, np.uint8)
        sums = [
            reroute(UnitWords(*lists_of(units), 61, 60, 1), active, share, plan) for units in ([*others, gone], others)
        ]
        old = sorted({word for unit in others for word in unit})
        moved = np.linalg.norm((sums[0] - sums[1])[old].astype(float)) / 2**39
        assert moved <= 1 + 4 * (len(others) + 1) * MOST_ADAPTIVE**0.5 / 2**39, trial
        closest = max(closest, moved)
        new = sorted(set(gone) - set(old))
        if new:
            assert sums[0][new].max() <= equal_share(2**39, len(new))
    assert closest > 0.99


def test_the_discount_is_the_most_that_the_bound_allows():
    """Every way to cut a unit's words in those whose weight comes back and the others; the worst place to go."""
    for n in range(1, MOST_ADAPTIVE + 1):
        first, last = 1 / n, 1 / n**0.5
        for k in range(n + 1):  # of k words all comes back, and goes to one other word, or one of the k, or elsewhere
            to = discount() * k * first
            rest = k * (last - first) ** 2 + (n - k) * last**2
            places = [rest + to**2]
            places += [rest - last**2 + (last + to) ** 2] if k < n else []
            places += [rest - (last - first) ** 2 + (last - first + to) ** 2] if k else []
            assert max(places) <= 1 + 1e-12
    assert 0.39 <= discount() < 0.4


@pytest.mark.parametrize("mechanism", REROUTED)
def test_rerouting_refuses_more_units_than_its_proof_has(mechanism):
    class Many:
        def size(self):
            return MOST_UNITS_REROUTED + 1

    with pytest.raises(ValueError, match="takes at most 4194304 units"):
        select_words(plan_partition(mechanism, 1.0, 1e-3, 5, 3.0), Many(), Randomness(0))


def test_a_rounded_step_is_off_by_less_than_one():
    """What the slack of "policy_gaussian" pays for: each step against exact arithmetic."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        n, budget = int(rng.integers(1, 200)), 2**44
        total = rng.integers(0, 40 * 2**44, n)
        cap = 20 * 2**44
        words, before = np.arange(n, dtype=np.int32), total.copy()
        _partition.fill_gaussian(np.array([0, n]), words, np.array([0]), cap, budget, total)
        gap = [max(cap - int(t), 0) for t in before]
        norm = math.isqrt(sum(g * g for g in gap) << 80)  # in units of 2**-40
        for g, step in zip(gap, (total - before).tolist(), strict=True):
            exact = min(g << 20, ((g * budget) << 60) // norm) if norm else 0  # in units of 2**-20
            assert (exact >> 20) - 17 <= step <= (exact >> 20) + 1  # 2**44 * 2**-40 is left out on purpose
        assert sum(int(step) ** 2 for step in total - before) <= budget**2


# --- the price of new words -----------------------------------------------------------------------------


def hidden(plan, round_, weight):
    """P(weight + noise <= threshold) from scipy's laws."""
    threshold, scale = plan.thresholds[round_], plan.scales[round_]
    if plan.mechanism == "gaussian":
        return stats.norm.cdf((threshold - weight + 0.5) / scale)
    if plan.mechanism == "laplace":
        return stats.dlaplace.cdf(threshold - weight, 1 / scale)
    law = stats.dlaplace.pmf(np.arange(-threshold, threshold + 1), 1 / scale)
    return law[: 2 * threshold + 1 - weight].sum() / law.sum()


def alone(plan, n_words):
    """Weights of the words of one unit against nothing, by the kernels."""
    start, words, _ = lists_of([range(n_words)])
    total = np.zeros(n_words, np.int64)
    if plan.method in FILLS:
        FILLS[plan.method](start, words, np.array([0]), plan.cap, plan.grid, total)
    else:
        share = np.array([0] + [1 if plan.grid == 1 else equal_share(plan.grid, n + 1) for n in range(n_words)])
        _partition.share_equally(start, words, np.ones(n_words, np.uint8), share, total)
    return total


@pytest.mark.parametrize("mechanism", PartitionPlan.METHODS)
@pytest.mark.parametrize("n_words", [1, 20, 100])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (1.0, 0.01), (8.0, 1e-6)])
def test_one_unit_against_nothing_has_the_stated_probability(mechanism, n_words, epsilon, delta):
    plan = plan_partition(mechanism, epsilon, delta, 100, 3.0)
    weights = alone(plan, n_words)
    for round_ in range(len(plan.scales)):
        stay = np.array([hidden(plan, round_, int(weight)) for weight in weights])
        exact = -np.expm1(np.sum(np.log1p(-(1 - stay))))
        stated = plan.new_word_delta(n_words, round_)
        if mechanism == "sieve":  # of the mean of rounds: a bound, close for one word
            one = stats.norm.sf((plan.thresholds[round_] - NORM_BOUND) / plan.mean.deviations[round_])
            np.testing.assert_allclose(plan.new_word_delta(1, round_), one, rtol=1e-3)
            assert stated <= n_words * one * (1 + 1e-3)
            assert round_ or stated >= exact
            continue
        if mechanism == "mad2r" and round_:  # the floors before have dropped most
            stays = np.array([hidden(plan, round_, equal_share(plan.grid, n)) for n in range(1, n_words + 1)])
            worst = -np.expm1(np.arange(1, n_words + 1) * np.log1p(-(1 - stays)))
            assert 0 < stated <= worst.max() * (1 + 2e-4)
            continue
        np.testing.assert_allclose(stated, exact, rtol=2e-4, atol=1e-13)
    assert plan.new_word_delta(n_words) <= plan.event_delta <= delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-5), (1.0, 0.05), (8.0, 1e-6)])
def test_one_new_word_through_all_rounds_of_the_sieve(epsilon, delta):
    """The sum over rounds of what a word exceeds by its noise, against the bound; and many words, by simulation."""
    plan = plan_partition("sieve", epsilon, delta, 100, 3.0)
    sums = np.sqrt(np.cumsum([(a * s) ** 2 for a, s in zip(plan.coefficients, plan.scales, strict=True)]))
    escapes = stats.norm.sf((np.array(plan.thresholds) - NORM_BOUND) * np.cumsum(plan.coefficients) / sums).sum()
    assert plan.new_word_delta(1) == pytest.approx(escapes, rel=1e-3)
    if delta == 0.05:
        for n_words in (1, 2, 7, 100):
            n_runs = 2_000_000 // n_words // 10
            hits = int(answers(plan, [[*range(n_words)]], n_words, n_runs, 9).any(axis=1).sum())
            assert clopper_pearson(hits, n_runs, False) <= plan.new_word_delta(n_words) <= delta / 2


@pytest.mark.parametrize("epsilon", [0.5, 5.0, 10.0, 30.0])
def test_new_words_stay_hidden_whenever_old_words_vanish(epsilon):
    """A unit's old words leave before any round and give it weight back; other new words leave as their own noise says.

    At the default delta: the tail of one word is exact, what the others leave it is simulated.
    """
    plan, rng = plan_partition("sieve", epsilon, 1e-5, 400, 3.0), np.random.default_rng(5)
    a, sums, deviations = plan.coefficients, np.cumsum(plan.coefficients), plan.mean.deviations
    for n_new, n_old, leave in [(1, 0, 0), (1, 399, 1), (3, 1, 1), (3, 397, 4), (30, 5, 2), (200, 200, 1), (400, 0, 0)]:
        n_runs = 60_000 // n_new
        left, judged = np.ones((n_runs, n_new - 1), bool), np.zeros((n_runs, n_new - 1))
        given, escapes = np.zeros(n_runs), np.zeros(n_runs)
        for i, scale in enumerate(plan.scales):
            share = NORM_BOUND / np.sqrt(1 + left.sum(axis=1) + n_old * (i < leave))
            given += a[i] * share
            escapes += stats.norm.sf((plan.thresholds[i] - given / sums[i]) / deviations[i])
            judged += a[i] * (share[:, None] + scale * rng.standard_normal(judged.shape))
            left &= judged <= plan.thresholds[i] * sums[i]
            if i < len(plan.floors):
                left &= judged > plan.floors[i] * sums[i]
        assert n_new * escapes.mean() <= plan.new_word_delta(n_new) * (1 + 1e-6) <= plan.event_delta * (1 + 1e-6)


@pytest.mark.parametrize("chance", [0.0, 1e-9, 0.0668, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("n", [0, 1, 7, 200, 10_000])
def test_binomial_groups(n, chance):
    """What is likely is exact, and tails, which the product reaches in many steps, nearly so."""
    group = np.minimum(np.arange(n + 1) // 3, 50)
    exact = np.bincount(group, stats.binom.pmf(np.arange(n + 1), n, chance))
    np.testing.assert_allclose(_binomial(n, chance, group), exact, rtol=1e-10, atol=1e-290)


def test_the_number_of_words_that_noise_keeps_is_never_overrated():
    """The law of a new word's mean weight: exact binomial chains of two rounds, where all rungs are single numbers."""
    mean = MeanOfRounds((1.0, 2.0, 4.0), (3.0, 2.0, 1.5))
    floors = tuple(f * d for f, d in zip((0.3, 1.1), mean.deviations, strict=False))
    bound = passing(mean, floors, 4, 3, 2)(6.0)
    kept = [stats.norm.sf((floor + 1) / d) for floor, d in zip(floors, mean.deviations, strict=False)]
    exact = []
    for t in (1, 2, 3):
        total = 0.0
        for first in range(t):
            for second in range(first + 1):
                chance = stats.binom.pmf(first, t - 1, kept[0]) * stats.binom.pmf(second, first, kept[1])
                weight = 4 * (1 / t**0.5 + 2 / (1 + first) ** 0.5 + 4 / (1 + second) ** 0.5) / 7
                total += chance * stats.norm.sf((6.0 - 1 - weight) / mean.deviations[2])
        exact.append(t * total)
    assert (bound * (1 + 1e-12) >= exact).all()  # rounding errors are added where the bound is used
    np.testing.assert_allclose(bound, exact, rtol=0.05)


def exact_mean_weights(coefficients, chances, n_words):
    """Return, of each round, {mean weight: probability} of a word of a unit with so many, by all numbers that stay."""
    laws, now = [], {(coefficients[0] / n_words**0.5, n_words - 1): 1.0}
    for i, coefficient in enumerate(coefficients):
        if i:
            after = Counter()
            for (weight, others), p in now.items():
                for left, chance in enumerate(stats.binom.pmf(range(others + 1), others, chances[i - 1])):
                    after[weight + coefficient / (1 + left) ** 0.5, left] += p * chance
            now = after
        law = Counter()
        for (weight, _), p in now.items():
            law[weight / sum(coefficients[: i + 1])] += p
        laws.append(law)
    return laws


def test_mean_weights_are_rounded_up_in_each_step():
    """No tail of the law that thresholds are made of is below the exact one: rounding down anywhere would show.

    Over 38 seeds the largest mean is 0.017 above the exact one, with deviation 0.003.
    """
    rng, most = np.random.default_rng(0), 9
    for _ in range(25):
        n_rounds = int(rng.integers(2, 5))
        coefficients, kept = rng.dirichlet(np.full(n_rounds, 3.0)), rng.normal(0.5, 1.0, n_rounds - 1)
        lows, laws = _mean_weights(tuple(coefficients), tuple(kept), most)
        grid = np.arange(laws.shape[2]) / (laws.shape[2] - 1)
        for n_words in range(1, most + 1):
            exact = exact_mean_weights(coefficients, stats.norm.sf(kept), n_words)
            row = int(np.flatnonzero(lows <= n_words)[-1])
            assert lows[row] == n_words  # small numbers are all among the rungs
            for i in range(n_rounds):
                assert laws[i, row].sum() == pytest.approx(1.0)
                weights = np.array(sorted(exact[i]))
                tails = np.cumsum([exact[i][w] for w in weights[::-1]])[::-1]
                found = np.array([laws[i, row][grid >= w - 1e-12].sum() for w in weights])
                assert (found >= tails - 1e-12).all(), (coefficients, kept, n_words, i)
                assert laws[i, row] @ grid <= sum(w * p for w, p in exact[i].items()) + 0.05  # and by little


def test_others_that_stay_are_rounded_down_and_new_words_of_a_unit_too():
    """Between the rungs, a word of a unit with more words has no more weight: it has a smaller number's law."""
    coefficients, kept = (0.3, 0.7), (0.4,)
    lows, laws = _mean_weights(coefficients, kept, 60)
    grid = np.arange(laws.shape[2]) / (laws.shape[2] - 1)
    assert lows[0] == 1 and (np.diff(lows) > 1).any() and lows[-1] <= 60
    for n_words in (11, 17, 29, 43, 60):
        row = int(np.flatnonzero(lows <= n_words)[-1])
        exact = exact_mean_weights(coefficients, stats.norm.sf(kept), n_words)[1]
        weights = np.array(sorted(exact))
        tails = np.cumsum([exact[w] for w in weights[::-1]])[::-1]
        found = np.array([laws[1, row][grid >= w - 1e-12].sum() for w in weights])
        assert (found >= tails - 1e-12).all()
    mean = MeanOfRounds(coefficients, (3.0, 2.0))
    bound = passing(mean, (0.4 * mean.deviations[0],), 40, 60, 1)(30.0)
    assert all(bound[n - 1] / n == pytest.approx(bound[low - 1] / low) for low in lows for n in range(low, low + 1))
    for n_words in (11, 29, 60):  # the bound is that of the next smaller row
        low = int(lows[lows <= n_words][-1])
        assert bound[n_words - 1] / n_words == pytest.approx(bound[low - 1] / low)


def test_a_word_stays_that_is_above_a_floor_by_less_than_the_rounding():
    """Noise is rounded, and a chance is looked up in steps: what keeps other words is never overrated."""
    for deviation in (0.3, 3.0, 300.0, 1e7):
        mean, floor = MeanOfRounds((1.0, 1.0), (deviation, deviation)), 0.5 * deviation
        with patch.object(_survivors, "_mean_weights", wraps=_survivors._mean_weights) as asked:
            passing(mean, (floor,), 2**20, 3, 1)
        (kept,) = asked.call_args.args[1]
        assert kept >= (floor + 1) / mean.deviations[0]  # in deviations of the mean's noise: fewer stay
        assert kept <= (floor + 1) / mean.deviations[0] + 2**-9


def told_by_means(n_others, present, plan):
    """Return the exact law of all that two rounds tell, judged by their mean, for the words "o" and "n" as above."""
    noise, (a, b) = np.arange(-60, 61), (int(c) for c in plan.coefficients)
    law, pmf = Counter(), [np.diff(stats.norm.cdf((np.append(noise, 61) - 0.5) / s)) for s in plan.scales]
    words = ("o", "n") if present else ("o",)

    def first(word):  # kept first sums, what is told, probability of being dropped
        values = noise + present * equal_share(plan.grid, len(words)) + (n_others * plan.grid if word == "o" else 0)
        passed, kept = values > plan.thresholds[0], values > plan.floors[0]
        told = {((word, 0, int(v)),): p for v, p in zip(values[passed], pmf[0][passed], strict=True)}
        return values[kept & ~passed], pmf[0][kept & ~passed], told, pmf[0][~kept].sum()

    def second(word, values, chances, n_left):  # what is told of a word that was kept
        more = noise + present * equal_share(plan.grid, n_left) + (n_others * plan.grid if word == "o" else 0)
        told = Counter()
        joint, sums = np.outer(chances, pmf[1]), a * values[:, None] + b * more
        passed = sums > plan.thresholds[1] * (a + b)
        np.add.at(where := np.zeros(sums.max() - sums.min() + 1), sums[passed] - sums.min(), joint[passed])
        for k in np.flatnonzero(where):
            told[((word, 1, int(k + sums.min())),)] = where[k]
        told[()] += joint[~passed].sum()
        return told

    starts = {word: first(word) for word in words}
    for stay in ([()], [("o",), ()], [("o", "n"), ("o",), ("n",), ()])[len(words)]:
        parts = []
        for word in words:
            values, chances, told, dropped = starts[word]
            parts.append(
                second(word, values, chances, len(stay)) if word in stay else Counter(told) + Counter({(): dropped})
            )
        outcomes = parts[0] if len(parts) == 1 else None
        if outcomes is None:
            outcomes = {x + y: p * q for x, p in parts[0].items() for y, q in parts[1].items() if p * q > 1e-14}
        for told, p in outcomes.items():
            law[told] += p
    return law


@pytest.mark.parametrize("floor", [-np.inf, 0.0, 3.0])
@pytest.mark.parametrize("coefficients", [(1.0, 1.0), (1.0, 3.0)])
@pytest.mark.parametrize(("scales", "thresholds"), [((2.5, 2.0), (9, 7)), ((4.0, 2.5), (12, 8))])
def test_rounds_judged_by_their_mean_have_their_guarantee_by_enumeration(floor, coefficients, scales, thresholds):
    event = gaussian_event(sum((4 / scale) ** 2 for scale in scales) ** -0.5)
    plan = PartitionPlan("sieve", 2, 4, "gaussian", scales, thresholds, (floor,), 0, event, 0.0, coefficients)
    law, without = told_by_means(1, 1, plan), told_by_means(1, 0, plan)
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-6) == math.fsum(without.values())
    new = math.fsum(p for told, p in law.items() if any(word == "n" for word, *_ in told))
    assert 0 < new <= plan.new_word_delta(1)
    for epsilon in (0.0, 1.0, 3.0):
        stated = delta_of(event, epsilon) + plan.new_word_delta(1)
        for p, q in ((law, without), (without, law)):
            assert math.fsum(max(0.0, p[told] - math.exp(epsilon) * q[told]) for told in p) <= stated + 1e-9


def transcripts(plan, n_others, present):
    """Return the exact law of all that two rounds release: `n_others` units have word "o", one more has "o" and "n"."""
    noise = np.arange(-80, 81)
    law = Counter()

    def go(round_, words, chance, told):
        if round_ == 2 or not words:
            law[told] += chance
            return
        shared = present * equal_share(plan.grid, len(words))
        outcomes = [((), (), 1.0)]  # words that stay, what is told, probability
        for word in words:
            weights = noise + shared + (n_others * plan.grid if word == "o" else 0)
            pmf = np.diff(stats.norm.cdf((np.append(noise, 81) - 0.5) / plan.scales[round_]))
            passed = weights > plan.thresholds[round_]
            kept = ~passed & (weights > plan.floors[0]) if round_ == 0 else np.zeros_like(passed)
            ends = [((word,), (), pmf[kept].sum()), ((), (), pmf[~passed & ~kept].sum())]
            ends += [((), ((word, round_, int(w)),), p) for w, p in zip(weights[passed], pmf[passed], strict=True)]
            outcomes = [(a + c, b + d, p * q) for a, b, p in outcomes for c, d, q in ends]
        for stay, new, p in outcomes:
            if p > 1e-13:
                go(round_ + 1, stay, chance * p, told + new)

    go(0, ("o", "n") if present else ("o",), 1.0, ())
    return law


@pytest.mark.parametrize("floor", [-np.inf, 0.0, 3.0])
@pytest.mark.parametrize(("scales", "thresholds"), [((1.5, 1.0), (8, 6)), ((3.0, 2.0), (10, 7))])
def test_rounds_have_their_guarantee_by_enumeration(floor, scales, thresholds):
    """What a unit gives to old words in round 2 depends on whether its new word is left: the exact divergence."""
    event = gaussian_event(sum((4 / scale) ** 2 for scale in scales) ** -0.5)
    plan = PartitionPlan("sieve", 2, 4, "gaussian", scales, thresholds, (floor,), 0, event, 0.0)
    law, without = transcripts(plan, 1, 1), transcripts(plan, 1, 0)
    for epsilon in (0.0, 1.0, 3.0):
        stated = delta_of(event, epsilon) + plan.new_word_delta(1)
        for p, q in ((law, without), (without, law)):
            assert math.fsum(max(0.0, p[told] - math.exp(epsilon) * q[told]) for told in p) <= stated


@pytest.mark.parametrize("mechanism", PartitionPlan.METHODS)
def test_thresholds_are_the_least(mechanism):
    plan = plan_partition(mechanism, 1.0, 1e-4, 30, 3.0)
    lower = replace(plan, thresholds=tuple(t - max(1, t // 10**4) for t in plan.thresholds))
    worst = max(lower.new_word_delta(n) for n in range(1, 31))
    best = max(plan.new_word_delta(n) for n in range(1, 31))
    per_word = plan.event_delta / (30 if plan.mechanism == "geometric" else 1)
    assert best <= plan.event_delta
    if plan.mechanism == "geometric":
        assert lower.new_word_delta(1) > per_word
    else:
        assert worst > plan.event_delta


def test_the_printed_threshold_of_item_frequency_breaks_delta():
    """A user of 100 words against nothing: an answer in 31 % of runs where delta is 1 %."""
    plan = PublishedItemFrequencySelector(1.0, delta=0.01, max_words_per_unit=100)._plan()
    assert plan.new_word_delta(1) <= 0.01
    assert plan.new_word_delta(100) == pytest.approx(0.31, abs=0.005)
    n_runs = 20_000
    answered = answers(plan, [[*range(100)]], 100, n_runs, 0).any(axis=1).sum()
    assert stats.binomtest(int(answered), n_runs, 0.25, alternative="greater").pvalue < FALSE_ALARM
    sound = plan_partition("item_frequency", 1.0, 0.01, 100, 3.0)
    assert sound.new_word_delta(100) <= 0.01


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_counts_have_their_guarantee_by_enumeration(epsilon):
    """Truncated discrete Laplace noise on a count: the exact divergence between n and n + 1, for every n."""
    plan = plan_partition("truncated_geometric", epsilon, 0.01, 1, 3.0)
    threshold, scale = plan.thresholds[0], plan.scales[0]
    law = stats.dlaplace.pmf(np.arange(-threshold, threshold + 1), 1 / scale)
    law /= law.sum()

    def outcome(n):
        if n == 0:
            return {None: 1.0}
        values = np.arange(-threshold, threshold + 1) + n
        told = {int(v): p for v, p in zip(values, law, strict=True) if v > threshold}
        return told | {None: law[values <= threshold].sum()}

    def worst():
        return max(
            math.fsum(max(0.0, p[v] - math.exp(epsilon) * q.get(v, 0.0)) for v in p)
            for n in range(2 * threshold + 3)
            for p, q in ((outcome(n), outcome(n + 1)), (outcome(n + 1), outcome(n)))
        )

    assert worst() <= 0.01
    threshold -= 1
    law = law[1:-1] / law[1:-1].sum()
    assert worst() > 0.01  # the threshold is the least


def test_counts_without_noise_tell_every_word():
    """At a threshold of 0 truncated noise is none: that has probability 1 and a delta below 1 never pays for it."""
    plan = plan_partition("truncated_geometric", 20.0, 1e-5, 1, 3.0)
    assert plan.thresholds == (1,) and plan.new_word_delta(1) <= 1e-5
    assert replace(plan, thresholds=(0,)).new_word_delta(1) == 1.0


def test_the_favourite_word_takes_all_at_any_delta():
    """With a large delta the threshold is below what one unit gives; the cap must not be."""
    plan = plan_partition("item_frequency", 1.0, 0.9, 2, 0.0)
    assert plan.thresholds[0] < NORM_BOUND
    assert alone(plan, 2).tolist() == [NORM_BOUND, 0]


@pytest.mark.parametrize("mechanism", PartitionPlan.METHODS)
def test_noise_that_cannot_be_drawn_is_refused_beforehand(mechanism):
    for epsilon, delta in ((1e-12, 1e-5), (1e-14, 2e-15), (1e-300, 1e-12)):
        try:
            plan = plan_partition(mechanism, epsilon, delta, 100, 3.0)
        except ValueError as error:
            assert "epsilon must be larger for method" in str(error)
        else:
            assert max(plan.scales) <= 2**50
    with pytest.raises(ValueError, match=r"epsilon must be larger .*; got 1e-14"):
        plan_partition(mechanism, 1e-14, 2e-15, 100, 3.0)


@pytest.mark.parametrize("mechanism", [*FILLS])
def test_any_cutoff_fits_into_integers(mechanism):
    plan = plan_partition(mechanism, 1.0, 1e-3, 3, 1e300)
    released, weights, _ = select_partitions(plan, *lists_of([[0, 1, 2]] * 500), 3, Randomness(None))
    assert released.tolist() == [0, 1, 2] and (weights > 1).all()


# --- the mechanisms as a whole --------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", PartitionPlan.METHODS)
def test_a_threshold_is_strict(mechanism):
    """Without noise, a word whose weight equals the threshold stays hidden; the one above is released."""
    plan = plan_partition(mechanism, 1.0, 1e-3, 1, 3.0)
    start, words, counts = lists_of([[0]] * 3)
    total = np.zeros(1, np.int64)
    if mechanism in FILLS:
        FILLS[mechanism](start, words, np.arange(3), plan.cap, plan.grid, total)
    else:
        total += 3 * plan.grid
    for threshold, expected in ((total[0], []), (total[0] - 1, [0])):
        quiet = replace(plan, mechanism=None, scales=(0.0,), thresholds=(int(threshold),), floors=(), coefficients=())
        released, weights, _ = select_partitions(quiet, start, words, counts, 1, Randomness(None))
        assert released.tolist() == expected
        np.testing.assert_allclose(weights, [3] * len(expected), rtol=1e-11)


@pytest.mark.parametrize("floors", [(2.0, 3.0), (-np.inf, -np.inf)])
def test_rounds_equal_their_reference(floors):
    """Without noise: who is released leaves, who is at a floor is dropped, and the weight goes to the others."""
    rng = np.random.default_rng(4)
    units = [np.unique(rng.zipf(1.3, 9) % 30).tolist() for _ in range(80)]
    plan = plan_partition("sips", 1.0, 1e-3, 30, 3.0)
    thresholds = (30 * NORM_BOUND, 20 * NORM_BOUND, 8 * NORM_BOUND)
    quiet = replace(
        plan,
        mechanism=None,
        scales=(0.0,) * 3,
        thresholds=thresholds,
        floors=tuple(floor * NORM_BOUND for floor in floors),
    )
    released, weights, _ = select_partitions(quiet, *lists_of(units), 30, Randomness(None))
    candidates, expected = {word for unit in units for word in unit}, {}
    for threshold, floor in zip(thresholds, (*floors, -np.inf), strict=True):
        total = dict.fromkeys(candidates, 0)
        for unit in units:
            own = candidates & set(unit)
            for word in own:
                total[word] += equal_share(NORM_BOUND, len(own))
        expected |= {word: weight / NORM_BOUND for word, weight in total.items() if weight > threshold}
        candidates = {word for word, weight in total.items() if floor * NORM_BOUND < weight <= threshold}
    assert dict(zip(released.tolist(), weights.tolist(), strict=True)) == expected
    assert len(expected) > 3  # over 60 seeds 8.4 with deviation 1.1


def test_the_mean_of_rounds_equals_its_reference():
    """Without noise: words are judged by the mean of their rounds, in which later ones count more."""
    rng = np.random.default_rng(5)
    units = [np.unique(rng.zipf(1.3, 9) % 30).tolist() for _ in range(80)]
    plan = plan_partition("sieve", 1.0, 1e-3, 30, 3.0)
    thresholds, floors, parts = (
        (26 * NORM_BOUND, 20 * NORM_BOUND, 6 * NORM_BOUND),
        (1.5 * NORM_BOUND, 2.0 * NORM_BOUND),
        (1.0, 2.0, 5.0),
    )
    quiet = replace(plan, mechanism=None, scales=(0.0,) * 3, thresholds=thresholds, floors=floors, coefficients=parts)
    released, weights, rounds = select_partitions(quiet, *lists_of(units), 30, Randomness(None))
    left, sums, expected = {word for unit in units for word in unit}, Counter(), {}
    for i, (threshold, floor) in enumerate(zip(thresholds, (*floors, -np.inf), strict=True)):
        for unit in units:
            own = left & set(unit)
            for word in own:
                sums[word] += parts[i] * equal_share(NORM_BOUND, len(own))
        means = {word: sums[word] / sum(parts[: i + 1]) for word in left}
        expected |= {word: (mean / NORM_BOUND, i) for word, mean in means.items() if mean > threshold}
        left = {word for word, mean in means.items() if floor < mean <= threshold}
    assert dict(zip(released.tolist(), zip(weights.tolist(), rounds.tolist(), strict=True), strict=True)) == expected
    assert set(rounds.tolist()) == {0, 1, 2}


def answers(plan, units, n_words, n_runs, seed, drop=None):
    """Return whether each word is released in each of many runs, at once: disjoint copies do not meet."""
    units = [unit for u, unit in enumerate(units) if u != drop]
    start, words, counts = lists_of(units)
    sizes = np.tile(np.diff(start), n_runs)
    shift = np.repeat(np.arange(n_runs) * n_words, len(words)).astype(np.int32)
    released, _, _ = select_partitions(
        plan,
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.tile(words, n_runs) + shift,
        np.tile(counts, n_runs),
        n_runs * n_words,
        Randomness(seed),
    )
    out = np.zeros(n_runs * n_words, dtype=bool)
    out[released] = True
    return out.reshape(n_runs, n_words)


def clopper_pearson(hits, n, upper):
    if upper:
        return stats.beta.isf(FALSE_ALARM, hits + 1, n - hits) if hits < n else 1.0
    return stats.beta.ppf(FALSE_ALARM, hits, n - hits + 1) if hits else 0.0


def epsilon_is_refuted(plan, units, n_words, drop, epsilon, delta, n_runs=100_000):
    """Whether some event tells the neighbours apart better than (epsilon, delta) allows; wrong at most 4e-8 of times.

    The event is chosen on one half of the runs and judged on the other.
    """
    code = 1 << np.arange(n_words)
    laws = [answers(plan, units, n_words, n_runs, seed, d) @ code for seed, d in ((11, None), (12, drop))]
    half, outcomes = n_runs // 2, 1 << n_words
    refuted = False
    for p, q in (laws, laws[::-1]):
        trained = [np.bincount(law[:half], minlength=outcomes) for law in (p, q)]
        event = trained[0] > math.exp(epsilon) * trained[1]
        hits = [int(event[law[half:]].sum()) for law in (p, q)]
        low, high = clopper_pearson(hits[0], half, False), clopper_pearson(hits[1], half, True)
        refuted |= low > math.exp(epsilon) * high + delta
    return refuted


CASES = [  # units, the one that is removed
    ([[0, 1, 2, 3]], 0),
    ([[0, 1], [1, 2], [0, 1, 2], [1], [1], [2, 3]], 2),
    ([[0]] * 6, 0),
    ([[0, 1, 2]] * 4 + [[3]] * 3, 5),
]


@pytest.mark.parametrize("mechanism", PartitionPlan.METHODS)
def test_an_audit_of_100000_runs_does_not_refute_the_guarantee(mechanism):
    plan = plan_partition(mechanism, 1.0, 0.05, 4, 3.0)
    for units, drop in CASES:
        assert not epsilon_is_refuted(plan, units, 4, drop, 1.0, 0.05)


def test_the_audit_refutes_what_is_false():
    plan = plan_partition("weighted_gaussian", 1.0, 0.05, 4, 3.0)
    assert epsilon_is_refuted(plan, *CASES[0][:1], 4, 0, 1.0, 0.01)  # a delta that is too small
    assert epsilon_is_refuted(plan, [[0]] * 6, 4, 0, 0.2, 0.02)  # an epsilon that is too small
    lower = replace(plan, thresholds=(plan.thresholds[0] - NORM_BOUND,))
    assert epsilon_is_refuted(lower, *CASES[0][:1], 4, 0, 1.0, 0.05)  # a threshold that is too low
    published = PublishedItemFrequencySelector(1.0, delta=0.05, max_words_per_unit=4)._plan()
    assert epsilon_is_refuted(published, *CASES[0][:1], 4, 0, 1.0, 0.05)


@pytest.mark.parametrize("mechanism", PartitionPlan.METHODS)
def test_frequent_words_are_found_and_weights_are_noisy(mechanism):
    plan = plan_partition(mechanism, 5.0, 1e-5, 3, 30.0)  # at a cut-off of 3 policies miss some
    units = [[0, 1, 2]] * 2000 + [[3]]
    released, weights, _ = select_partitions(plan, *lists_of(units), 5, Randomness(None))
    assert released.tolist() == [0, 1, 2]
    assert (weights > 1).all() and np.isfinite(weights).all()


@pytest.mark.parametrize("mechanism", PartitionPlan.METHODS)
def test_an_integer_makes_a_selection_reproducible(mechanism):
    plan = plan_partition(mechanism, 2.0, 1e-3, 4, 3.0)
    rng = np.random.default_rng(0)
    units = [np.unique(rng.zipf(1.5, 8) % 40).tolist() for _ in range(500)]
    runs = [select_partitions(plan, *lists_of(units), 40, Randomness(seed)) for seed in (3, 3, None)]
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    np.testing.assert_array_equal(runs[0][1], runs[1][1])
    assert len(runs[0][0]) and not np.array_equal(runs[0][1], runs[2][1])


def test_without_noise_every_used_word_is_selected():
    plan = plan_partition("sieve", math.inf, 1e-5, 10, 3.0)
    released, weights, _ = select_partitions(plan, *lists_of([[0], [1, 4]]), 6, Randomness(None))
    assert released.tolist() == [0, 1, 4]
    np.testing.assert_allclose(weights, [1, 0.5**0.5, 0.5**0.5], atol=1e-5)


@pytest.mark.parametrize("mechanism", PartitionPlan.METHODS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.02, 1e-5), (1.0, 1e-9), (50.0, 1e-4)])
def test_what_the_parts_cost_is_within_the_budget(mechanism, epsilon, delta):
    plan = plan_partition(mechanism, epsilon, delta, 50, 3.0)
    whole = PrivacyGuarantee(epsilon=epsilon, delta=delta, event=plan.event, event_delta=plan.event_delta)
    bare = replace(whole, epsilon=math.inf)
    assert bare.epsilon_at(delta) <= epsilon
    assert max(plan.new_word_delta(n) for n in range(1, 51)) <= plan.event_delta
    assert all(scale <= 2**50 for scale in plan.scales)
    assert plan.cap + plan.grid < 2**62


def test_rounds_share_one_gaussian_budget():
    plan = plan_partition("sieve", 1.0, 1e-5, 50, 3.0)
    sigma = sum((NORM_BOUND / scale) ** 2 for scale in plan.scales) ** -0.5
    assert sigma >= plan.event.noise_multiplier
    assert sigma == pytest.approx(plan.event.noise_multiplier)
    for rounds in ROUNDS.values():
        assert sum(rounds.shares) == pytest.approx(1) and len(rounds.floors) == len(rounds.shares) - 1
        assert rounds.deltas is None or sum(rounds.deltas) == pytest.approx(1)


def test_joint_accounting_leaves_aside_what_an_event_does_not_tell():
    part = PrivacyGuarantee(epsilon=2.0, delta=1e-5, event=gaussian_event(2.5), event_delta=4e-6)
    model = PrivacyGuarantee(epsilon=2.0, delta=1e-5, event=gaussian_event(2.2))
    both = part.compose(model)
    assert both.event_delta == 4e-6 and both.delta == 2e-5
    joint = PrivacyGuarantee(epsilon=9, delta=1.6e-5, event=gaussian_event((2.5**-2 + 2.2**-2) ** -0.5))
    assert both.epsilon == pytest.approx(joint.epsilon_at(1.6e-5), rel=1e-9)
    assert both.epsilon < 4.0
    assert part.epsilon_at(3e-6) == math.inf
    assert part.delta_at(0.0) > 4e-6
    assert PrivacyGuarantee.from_json(both.to_json()) == both
    group = part.for_group(2)
    assert group.event is None and group.event_delta == 0 and group.epsilon == 4.0 and group.delta > 2e-5
    with pytest.raises(ValueError, match="event_delta must be >= 0 and <= delta"):
        PrivacyGuarantee(epsilon=1.0, delta=1e-6, event_delta=1e-5)


def test_what_is_needed_is_told_without_data():
    plan = plan_partition("sieve", 1.0, 1e-5, 200, 3.0)
    needed = plan.units_needed(10)

    def sieve(epsilon):
        return plan_partition("sieve", epsilon, 1e-5, 200, 3.0)

    assert 0.8 < epsilon_needed(needed, 10, sieve) <= 1.1
    assert epsilon_needed(10**9, 10, sieve) < 0.02
    with pytest.raises(ValueError, match="delta must be above 1e-15"):
        plan_partition("sieve", 1.0, 1e-16, 10, 3.0)
    runs = [
        select_partitions(plan, *lists_of([[*range(10)]] * n), 10, Randomness(7))[0] for n in (needed // 2, 2 * needed)
    ]
    assert len(runs[0]) <= 5 and len(runs[1]) == 10  # of half the units, one word in 28 comes


def test_truncated_noise_releases_each_count_with_its_exact_probability():
    """2,000 words of each count, one word a unit; fixed seed, and the whole law of noise cut to [-k, k]."""
    plan = plan_partition("truncated_geometric", 0.7, 0.1, 1, 3.0)
    (k,), (scale,), n = plan.thresholds, plan.scales, 2000
    counts = np.arange(1, 2 * k + 3)
    law = np.exp(-np.abs(np.arange(-k, k + 1)) / scale)
    released = [law[max(0, 2 * k + 1 - c) :].sum() / law.sum() for c in counts]  # noise above k - c
    assert k >= 2 and released[0] <= 0.1 and released[2 * k] == 1
    words = np.repeat(np.arange(n * len(counts)), np.repeat(counts, n)).astype(np.int32)
    start = np.arange(len(words) + 1, dtype=np.int64)
    found, _, _ = select_partitions(plan, start, words, np.ones(len(words)), n * len(counts), Randomness(4))
    seen = np.bincount(found // n, minlength=len(counts))
    for number, probability in zip(seen, released, strict=True):
        assert stats.binomtest(int(number), n, min(probability, 1.0)).pvalue > FALSE_ALARM


def test_rounds_of_a_seeded_selection_have_noise_of_their_own(monkeypatch):
    seeds = []

    def record(scale, size, random_state):
        seeds.append(random_state)
        return np.zeros(size, np.int64)

    monkeypatch.setitem(MECHANISMS, "gaussian", replace(MECHANISMS["gaussian"], sampler=record))
    plan = plan_partition("sips", 1.0, 1e-5, 4, 3.0)
    # No round releases a word, and all have one scale: nothing but their numbers tells the rounds apart.
    plan = replace(plan, scales=plan.scales[:1] * 3, thresholds=(math.inf,) * 3)
    select_partitions(plan, *lists_of([[0, 1, 2], [1, 2, 3]]), 4, Randomness(3))
    assert None not in seeds and len(set(seeds)) == len(seeds) == 3


@pytest.mark.parametrize("key", range(5))
def test_a_unit_alone_gives_all_to_the_word_that_it_uses_most(key):
    plan = plan_partition("item_frequency", 1.0, 1e-5, 5, 3.0)
    start, words, _ = lists_of([[0, 1, 2, 3]])
    units = UnitWords(start, words, np.array([2.0, 9.0, 1.0, 3.0]), 4, 5, key)
    assert units.filled(plan).tolist() == [0, plan.grid, 0, 0]
