"""Private selection of words: which of the words that documents use may be released.

In every mechanism each privacy unit gives bounded weights to its words. Noise is added to the sum of each word that
somebody uses, and the words strictly above a threshold are released. doc/theory/vocabulary.rst has one theorem for each
mechanism. They need two numbers: how far one unit moves the sums of words that others use, which noise hides, and how
likely a word that no other unit uses passes the threshold, which delta bounds.

"sieve" is our own mechanism (Theorem 2 there): rounds of the weighted Gaussian mechanism. Words that a round released,
and words that it found too rare to be released later, take no weight in the next rounds. Each word is judged by the
weighted mean of all its rounds, so that the noise of all counts.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skdplda._arithmetic import exp, expm1, log, log1p, total
from skdplda.privacy._calibration import calibrate_laplace
from skdplda.privacy._events import gaussian_event, pure_event
from skdplda.privacy._mechanisms import MECHANISMS, Mechanism, mechanism_of, with_error
from skdplda.privacy._noise import LARGEST_SCALE, NORM_BOUND, delta_slack
from skdplda.privacy._observation import observe
from skdplda.privacy._spending import Spending
from skdplda.privacy._survivors import MeanOfRounds, passing
from skdplda.privacy._unit_words import FILLS, UnitWords

FINE_GRID = 44  # log2 of the weight that one unit gives, for "policy_gaussian", whose steps are rounded
HIGHEST_CAP = 2**62  # int64 holds it, and one unit's weight and noise beside
REROUTED = ("mad", "mad2r")  # units take back part of what they gave
REROUTED_GRID = 39  # log2 of the same for "mad" and "mad2r", whose sums have no cap
MOST_ADAPTIVE = 50  # words of a unit that takes part in the rerouting of "mad" and "mad2r"; not tuned
MOST_UNITS_REROUTED = 2**22  # that these take, as their roundings add up
MOST_UNITS = 2**24  # that "policy_gaussian" takes: its roundings add up
MOST_DRAWS = 2**40  # more words times rounds than any fit has: the slack of the samplers, without looking at data
OUTWARDS = 1 + 2.0**-36  # more than the rounding error of the probabilities below
LAW = {"geometric": "laplace"}  # "geometric" is discrete Laplace noise, drawn again until it is within the threshold


class Rounds(NamedTuple):
    """Rounds of one selection: constants."""

    shares: tuple  # of the precision
    floors: tuple = ()  # deviations of noise that a word must exceed to stay for the next round; None keeps all
    tilt: float | None = None  # a round counts in the mean by its precision, times this for each round before it
    deltas: tuple | None = None  # shares of the delta for new words; None: those of the precision


# Those of "sieve" were chosen on the corpora of benchmarks/vocabulary.py, with other seeds; those of "sips" are from
# Theorem 3; those of "mad2r" were not tuned, and are not checked against the paper's experiments.
ROUNDS = {
    "sieve": Rounds((0.2, 0.2, 0.25, 0.15, 0.2), (0.0, 1.5, 3.0, 3.0), 1.2, (0.02, 0.02, 0.02, 0.02, 0.92)),
    "weighted_gaussian": Rounds((1.0,)),
    "sips": Rounds((0.09 / 1.39, 0.3 / 1.39, 1 / 1.39), (None, None)),
    "mad": Rounds((1.0,)),
    "mad2r": Rounds((0.1, 0.9), (0.0,)),
}
LEVEL_RATIO = 0.5  # of the precision that n-grams get, to that of the n-grams of one word less; not tuned
# The order of the norm in which a unit's weights are bounded, where the theorem is for any noise of that norm.
NORM = {**dict.fromkeys(ROUNDS, 2), "policy_gaussian": 2, "policy_laplace": 1, "item_frequency": 1}


@dataclass(frozen=True)
class PartitionPlan:
    """A selection and its price, known before any data are."""

    METHODS: ClassVar = (*ROUNDS, *FILLS, "truncated_geometric")
    IN_TURN: ClassVar = tuple(FILLS)  # units give one after the other, and see what the former ones gave

    method: str  # one of METHODS
    max_items: int  # words that a unit takes part with, at most
    grid: int  # weight that one unit gives, as an integer; 1 where units are counted
    mechanism: str | None  # of privacy.MECHANISMS, or "geometric": discrete Laplace noise within the threshold
    scales: tuple  # of each round's noise, in units of 1 / grid
    thresholds: tuple  # of each round, in units of 1 / grid: a word strictly above is released
    floors: tuple  # of each round but the last: a word at or below is dropped
    cap: int  # no word gets more weight from a policy
    event: object  # of dp-accounting: what the noise costs
    event_delta: float  # what new words and the samplers' numerical error cost beside
    coefficients: tuple = ()  # of each round in the mean by which words are judged; empty: each round judges alone

    def __post_init__(self):
        if self.mechanism is not None and self.law.log_cdf is None:
            raise ValueError(
                f"noise {self.mechanism!r} has no log_cdf, by which new words are kept from being released."
            )

    @property
    def mean(self) -> MeanOfRounds | None:
        """By what words are judged, where it is not each round alone."""
        return MeanOfRounds(self.coefficients, self.scales) if self.coefficients else None

    @property
    def multipliers(self) -> tuple:
        """Scales of the noise of the rounds, as `Spending` takes them."""
        return self.scales

    @property
    def by_frequency(self) -> bool:
        """Whether it depends on how often a unit uses a word."""
        return self.method == "item_frequency"

    @property
    def law(self) -> Mechanism:
        """The mechanism of the noise, as an object."""
        return mechanism_of(LAW.get(self.mechanism, self.mechanism))

    def judged(self, threshold: int, cutoff: float) -> "PartitionPlan":
        """Return the plan of one round with a threshold, and a cap so many scales of noise above it.

        The cap is not below what one unit gives: the favourite word of "item_frequency" takes all of a unit where
        nobody else uses it. The price, `event_delta` included, is not computed again.
        """
        cap = max(self.grid, math.ceil(min(threshold + cutoff * self.scales[0], HIGHEST_CAP)))
        return replace(self, thresholds=(threshold,), cap=cap)

    def new_word_delta(self, n_words: int, round_: int | None = None) -> float:
        """Return an upper bound on the probability that not all of a unit's `n_words` new words stay hidden.

        No other unit uses these words. It is of one round, or the sum over all; exact for a unit that is alone, in the
        first round, where weights are not rounded and rounds judge alone.
        """
        if round_ is not None:
            return float(_escapes(self, round_, self.max_items)(self.thresholds[round_])[n_words - 1])
        return math.fsum(self.new_word_delta(n_words, i) for i in range(len(self.scales)))

    def units_needed(self, n_words: int) -> int:
        """Return how many units of `n_words` words each make a word as likely as not to be released, without data.

        It is for units whose words are all as frequent, so that no word is filled or dropped before another.
        """
        if self.method == "truncated_geometric":
            return self.thresholds[-1] + 1
        one = self.mechanism is not None and self.law.norm == 1
        share = self.grid / n_words if one else equal_share(self.grid, n_words)
        if self.by_frequency:
            share = self.grid  # if it is everyone's favourite
        return math.floor(self.thresholds[-1] / share) + 1


def equal_share(grid, n_words):
    """Return the largest integer s with n_words * s**2 <= grid**2: a unit of n_words words has norm `grid` at most."""
    return math.isqrt(grid * grid // n_words)


@lru_cache
def discount():
    """Return the part of what comes back that "mad" gives again: the most that Theorem 7 allows, rounded down."""
    n = np.arange(2, MOST_ADAPTIVE + 1)
    most = (np.sqrt(n + (n - 1) * (2 * np.sqrt(n) - 1)) - np.sqrt(n)) / (n - 1)
    return math.floor(1000 * float(most.min())) / 1000


def mechanisms_of(method):
    """Return the names of the noise that a selection has a theorem for, its default first; none for its own only."""
    return [law.name for law in MECHANISMS.values() if law.norm == NORM.get(method) and law.log_cdf is not None]


@lru_cache(maxsize=64)
def plan_partition(
    method: str,
    epsilon: float,
    delta: float,
    max_items: int,
    cutoff: float,
    mechanism: str | None = None,
    part: float = 1.0,
) -> PartitionPlan:
    """Find noise and thresholds for a privacy budget.

    An epsilon of inf selects every word that is used. Where the noise needs a delta, half of it is for words that one
    unit alone uses. A policy stops to fill a word `cutoff` scales of noise above the threshold. `mechanism` is one of
    `mechanisms_of(method)`, None its default. With `part`, which `has_levels` allows, the plan has so much of the
    precision of noise, and of the delta for new words; events of all parts add up to that of the whole. ValueError if a
    parameter is out of range, or the budget needs more noise than can be drawn.
    """
    known = mechanisms_of(method)
    if mechanism is not None and mechanism not in known:
        why = f"bounds the L{NORM[method]} norm of what a unit gives" if known else "has a theorem for its own alone"
        raise ValueError(
            f"mechanism must be {' or '.join(map(repr, [*known, None]))} for method={method!r}, which {why}; got"
            f" {mechanism!r}."
        )
    law = mechanism_of(mechanism or known[0]) if known else None
    if math.isinf(epsilon):
        return PartitionPlan(
            "weighted_gaussian", max_items, NORM_BOUND, None, (0.0,), (0,), (), 0, gaussian_event(0.0), 0.0
        )
    if delta * part / 4 <= delta_slack(MOST_DRAWS, 0.0):
        raise ValueError(
            f"delta must be above {1e-15 / part:.1g}; got {delta!r}. Without delta no word can be learned"
            " from the data, because a word tells by its presence that somebody used it. Use public_vocabulary to spend"
            " nothing."
        )
    target, slack = with_error(epsilon, delta * part, MOST_DRAWS)
    try:
        if method == "truncated_geometric":
            plan = _plan_counts(target, delta, slack, max_items)
        elif method in ROUNDS:
            plan = _plan_rounds(method, law, target, delta, slack, max_items, cutoff, part)
        else:
            plan = _plan_policy(method, law, target, delta, slack, max_items, cutoff)
    except (OverflowError, ZeroDivisionError):  # a threshold beyond int64, a scale beyond a float
        plan = None
    if plan is None or not _can_be_drawn(plan):
        raise ValueError(
            f"epsilon must be larger for method {method!r}, delta={delta:g} and {max_items} words a unit; got"
            f" {epsilon!r}, which asks for more noise than can be drawn."
        )
    return plan


def has_levels(method: str, mechanism: str | None) -> bool:
    """Say whether n-grams can be selected by levels: the parts of a budget must add up to one event."""
    return method in ROUNDS and mechanism_of(mechanism or mechanisms_of(method)[0]).adds_precisions


def level_parts(n_levels: int) -> list[float]:
    """Return the part of a budget of n-grams of 1, ..., `n_levels` words, each for `plan_partition`."""
    parts = np.cumprod([1.0] + [LEVEL_RATIO] * (n_levels - 1))
    return (parts / total(parts)).tolist()


def _can_be_drawn(plan):
    """Say whether the samplers give this noise; truncated noise is drawn until it is within the threshold."""
    most = 100 * plan.thresholds[0] if plan.mechanism == "geometric" else math.inf
    return max(plan.scales) <= min(most, LARGEST_SCALE)


def most_units(method: str) -> int | None:
    """Return how many units a method takes, whose roundings add up; None: any number."""
    return MOST_UNITS_REROUTED if method in REROUTED else MOST_UNITS if method == "policy_gaussian" else None


def epsilon_needed(n_units: int, n_words: int, plan_of: Callable[[float], PartitionPlan]) -> float:
    """Find an epsilon at which `PartitionPlan.units_needed` for `n_words` is at most `n_units`, without data.

    It is within a tenth of the least, and inf if that is above 1000. `plan_of(epsilon)` returns the plan.
    """
    epsilons = exp(np.arange(-48, 73) * log(1.1)).tolist()

    def enough(epsilon):
        try:
            return plan_of(epsilon).units_needed(n_words) <= n_units
        except ValueError:  # so small that no noise can be drawn
            return False

    first = bisect_left(epsilons, True, key=enough)
    return epsilons[first] if first < len(epsilons) else math.inf


def _plan_rounds(method, law, epsilon, delta, slack, max_items, cutoff, part):
    rounds = ROUNDS[method]
    shares, deltas = np.array(rounds.shares), np.array(rounds.deltas or rounds.shares)
    spent = part * (delta / 2 if law.has_delta else delta)
    multipliers, event = law.calibrate(epsilon, delta / 2, shares, part)
    grid, sensitivity = NORM_BOUND, 1.0
    if method in REROUTED:
        grid = 2 ** min(REROUTED_GRID, 49 - math.frexp(max(multipliers))[1])  # the sampler's largest scale is 2**50
        # what a unit sends on is rounded, by less than 2 a word, on both data sets
        sensitivity = 1 + 4 * (MOST_UNITS_REROUTED + 1) * math.sqrt(MOST_ADAPTIVE) / grid
    scales = tuple(multiplier * sensitivity * grid for multiplier in multipliers)
    coefficients = ()
    if rounds.tilt is not None:
        tilts = np.cumprod([1.0] + [rounds.tilt] * (len(scales) - 1)).tolist()
        coefficients = tuple(grid / scale * (grid / scale) * tilt for scale, tilt in zip(scales, tilts, strict=True))
    plan = PartitionPlan(method, max_items, grid, law.name, scales, (), (), 0, event, spent, coefficients)
    deviations = plan.mean.deviations if coefficients else scales
    floors = tuple(
        -np.inf if f is None else f * law.deviation * float(scale)
        for f, scale in zip(rounds.floors, deviations[:-1], strict=True)
    )
    plan = replace(plan, floors=floors)
    left = (spent - slack) / OUTWARDS
    thresholds = tuple(_threshold(plan, i, left * share) for i, share in enumerate(deltas / total(deltas)))
    # no weight is sent on from a word that is not far above the last threshold; above what one unit gives
    cap = max(grid, math.ceil(min(thresholds[-1] + cutoff * scales[-1], HIGHEST_CAP))) if method in REROUTED else 0
    return replace(plan, thresholds=thresholds, cap=cap)


def _plan_policy(method, law, epsilon, delta, slack, max_items, cutoff):
    spent = delta / 2 if law.has_delta else delta
    multiplier = law.multiplier(epsilon, delta / 2, 1)
    event, grid, scale = law.event(multiplier), NORM_BOUND, multiplier * NORM_BOUND
    if method == "policy_gaussian":
        grid = 2 ** min(FINE_GRID, 49 - math.frexp(multiplier)[1])  # the sampler's largest scale is 2**50
        # each rounded step is off by at most 2 sqrt(max_items), on both data sets, and no later step widens the gap
        sensitivity = 1 + 4 * MOST_UNITS * math.sqrt(max_items) / grid
        scale = multiplier * sensitivity * grid
    plan = PartitionPlan(method, max_items, grid, law.name, (scale,), (), (), 0, event, spent)
    return plan.judged(_threshold(plan, 0, (spent - slack) / OUTWARDS), cutoff)


def _plan_counts(epsilon, delta, slack, max_items):
    """One (epsilon / max_items, delta / max_items) selection a word."""
    epsilon = epsilon / max_items
    left = -expm1(log1p(-(delta - slack) / OUTWARDS) / max_items)
    scale = calibrate_laplace(epsilon)
    event = pure_event(1 / scale, max_items)
    plan = PartitionPlan("truncated_geometric", max_items, 1, "geometric", (scale,), (), (), 0, event, delta)
    return replace(plan, thresholds=(_least(lambda k: _escape(plan, 0, k, 1, 1, 1) <= left),))


def _threshold(plan, round_, delta):
    """Return the least threshold at which new words of one unit, however many, pass with at most this probability."""
    bounds = _escapes(plan, round_, plan.max_items)
    return _least(lambda threshold: np.max(bounds(threshold)) <= delta)


@lru_cache(maxsize=16)
def _new_weights(method, grid, most):
    """Return the most that 1, ..., `most` new words of one unit can get: the first of them, and each other one."""
    n = np.arange(1, most + 1)
    if method == "truncated_geometric":
        return np.ones(most), np.ones(most)
    if method == "item_frequency":
        return np.full(most, grid), np.zeros(most)  # the cap is above: the first word takes all that is left
    if method == "policy_laplace":
        share = np.minimum(grid, grid // n + 1)
    elif method in REROUTED:
        share = _rerouted_weights(grid, most)
    else:
        share = np.array([equal_share(grid, k) for k in n.tolist()])
    return share, share


def _rerouted_weights(grid, most):
    """Return the most that each of 1, ..., `most` new words gets from a unit that has others beside (Theorem 7)."""
    share = np.array([equal_share(grid, k) for k in range(1, most + 1)])
    for n in range(2, min(MOST_ADAPTIVE, most) + 1):  # all words of the unit; its old words send on all they get
        new = np.arange(1, n + 1)
        gained = np.ceil(discount() * (n - new) / n * (grid // n)).astype(np.int64) + 2 * (n > new)
        share[:n] = np.maximum(share[:n], share[n - 1] + gained)
    return share


def _escapes(plan, round_, most):
    """Return a function of a round's threshold: the probability that one of 1, ..., `most` new words of a unit passes.

    After floors, where each round judges alone, it is the less of two bounds: so many words are left as is worst, or
    each word has been above all floors before, with the most weight in each round.
    """
    if plan.coefficients:
        return passing(plan.mean, plan.floors, plan.grid, most, round_)
    n = np.arange(1, most + 1)
    weights, floors = _new_weights(plan.method, plan.grid, most), plan.floors[:round_]

    def bounds(threshold):
        bound = _escape(plan, round_, threshold, n, *weights)
        if max(floors, default=-math.inf) == -math.inf:
            return bound
        one = _escape(plan, round_, threshold, 1, plan.grid, 0)
        for i, floor in enumerate(floors):
            one = one * (_escape(plan, i, math.floor(floor), 1, plan.grid, 0) if floor > -math.inf else 1)
        return np.minimum(np.maximum.accumulate(bound), n * one)

    return bounds


def _escape(plan, round_, threshold, n_words, first, other):
    """Return the probability that one of `n_words` words passes: one has weight `first`, the others `other`."""
    scale = plan.scales[round_]
    if plan.mechanism != "geometric":

        def log_hidden(weight):  # ln P(noise <= threshold - weight), or less
            return plan.law.log_cdf(threshold - weight, scale)

    else:

        def log_hidden(weight):  # noise in [-threshold, threshold]: only its largest value lifts a count of 1 above
            if not threshold:
                return -1000.0  # no noise: a word that is used passes
            below, within = -expm1(-1 / scale), -expm1(-threshold / scale)  # also where the scale is huge
            return log1p(-exp(-threshold / scale) * below / (below + 2 * exp(-1 / scale) * within))

    return -expm1(log_hidden(first) + (n_words - 1) * np.maximum(log_hidden(other), -1000.0))  # e**-1000 is 0


def _least(safe):
    """Return the least integer >= 0 that is safe, for a monotone condition."""
    most = 1
    while not safe(most):
        most *= 2
    return bisect_left(range(most), True, key=safe)


def select_partitions(
    plan: PartitionPlan,
    start: np.ndarray,
    words: np.ndarray,
    counts: np.ndarray | None,
    n_words: int,
    randomness: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run a selection on the words of units, none twice in a unit.

    `start`, int64, of shape (n_units + 1,), points into `words`, int32, which are shuffled within units; `counts`,
    float64, how often the unit uses the word, are moved along, and only a plan `by_frequency` needs them. It returns
    the numbers of the selected words, ascending; their noisy weights, in units of what one unit may give, in the round
    that released the word or on the mean of its rounds; and that round, from 0.
    """
    if plan.method == "policy_gaussian" and len(start) - 1 > MOST_UNITS:
        raise ValueError(f"'policy_gaussian' takes at most {MOST_UNITS} units; use the default method.")
    return select_words(plan, UnitWords(start, words, counts, n_words, plan.max_items, randomness.key), randomness)


def select_words(plan: PartitionPlan, units: Any, randomness: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run a selection on words that units share; `units` has the methods of `UnitWords`. See `select_partitions`."""
    if plan.method in REROUTED and np.sum(units.size()) > MOST_UNITS_REROUTED:
        raise ValueError(f"{plan.method!r} takes at most {MOST_UNITS_REROUTED} units; use the default method.")
    active, sums = (units.used() > 0).astype(np.uint8), units.filled(plan) if plan.method in FILLS else None
    released, weights, draws = [], [], 0
    judged = np.zeros(len(active)) if plan.coefficients else None
    share = np.array([0] + [1 if plan.grid == 1 else equal_share(plan.grid, n + 1) for n in range(plan.max_items)])
    spending = Spending(plan)
    for round_, threshold in enumerate(plan.thresholds):
        if plan.method in REROUTED:
            sums = reroute(units, active, share, plan)
        elif plan.method not in FILLS:
            sums = units.shared(active.copy(), share)
        present = np.flatnonzero(active)
        exact = sums[present]
        scale = spending.take()
        noise, draws = _noise(plan, scale, threshold, exact, randomness, draws)
        noisy = exact + noise
        observe("selection", words=present, noisy=noisy, scale=scale)
        if judged is not None:
            judged[present] += plan.coefficients[round_] * noisy
            noisy = judged[present] / plan.mean.sums[round_]
        passed = noisy > threshold
        released.append(present[passed])
        weights.append(noisy[passed] / plan.grid)
        active[present[passed]] = 0
        if round_ < len(plan.floors):
            active[present[noisy <= plan.floors[round_]]] = 0
    rounds = np.repeat(np.arange(len(released)), [len(part) for part in released])
    released, weights = np.concatenate(released), np.concatenate(weights)
    order = np.argsort(released, kind="stable")
    return released[order], weights[order], rounds[order]


def reroute(units: Any, active: np.ndarray, share: np.ndarray, plan: PartitionPlan) -> np.ndarray:
    """Return the weights of words where units take back part of what they gave to words far above the threshold.

    A unit of n active words, n at most `MOST_ADAPTIVE`, first gives 1 / n to each. What is beyond the cap goes back to
    the units, in proportion, discounted, and they give it to all their words alike. Last, they raise what they gave to
    the equal share of the weighted Gaussian mechanism (theory guide, Theorem 7).
    """
    n = np.arange(1, len(share))
    first = np.concatenate([[0], np.where(n <= MOST_ADAPTIVE, plan.grid // n, 0)])
    given = units.shared(active.copy(), first)
    back = np.maximum(given - plan.cap, 0) / np.maximum(given, 1)
    back_share = discount() * np.concatenate([[0.0], first[1:] / n])
    return np.minimum(given, plan.cap) + units.rerouted(active.copy(), share - first, back, back_share)


def _noise(plan, scale, threshold, exact, randomness, draws):
    """Return noise for the exact weights, and how many times the samplers were called by now."""
    if plan.mechanism is None:
        return np.zeros(exact.size, dtype=np.int64), draws
    sampler = plan.law.sampler
    noise = sampler(scale, exact.size, randomness.noise(draws, plan.mechanism, scale, exact))
    draws += 1
    while plan.mechanism == "geometric" and (beyond := np.flatnonzero(np.abs(noise) > threshold)).size:
        noise[beyond] = sampler(scale, beyond.size, randomness.noise(draws, plan.mechanism, scale, exact))
        draws += 1
    return noise, draws
