"""Testers of a claim, which know it, two inputs and what is released, as those of DP-Auditorium (arXiv 2307.05608).

Outputs of both inputs are made one number, by what a part of them shows; on that part testers learn how to tell the
inputs apart, and on the others they bound a divergence from below. What a claim allows is computed by its event. A
tester returns by which factor all losses of the claim may be multiplied and still be refuted: 1 refutes the claim.

hockey-stick    one threshold; both rates by Clopper and Pearson
histogram       the bins in which the first input is the likelier; the same bounds
Renyi           the variational form, with a log-ratio that is cut to a range; empirical Bernstein bounds
MMD             the difference of a witness, from a Gaussian kernel, over its range: at most the total variation
"""

import math
from dataclasses import dataclass
from itertools import product

import attrs
import numpy as np
from dp_accounting import dp_event as events
from scipy.special import ndtr, ndtri
from scipy.stats import beta

from skdplda.privacy import delta_of, epsilon_of

ALARM, MOST_ROWS = 1e-6, 400  # of right code that is called violated, and among how many rows this is shared
ERROR = ALARM / MOST_ROWS / 2  # of each of the two rates or means of a row
TRAINING = 0.2  # part of the outputs
LARGEST = 4.0  # times the claimed losses: no more is looked for
BINS, CENTRES, CHUNK = 40, 150, 10_000
SLOPES = 0.0, 0.5, 0.9, 0.99  # at which part of an event's log-ratio the divergence is looked at


def rate_bounds(found, trials, error=ERROR):
    """Return a lower and an upper bound of a probability, each wrong with probability `error` (Clopper-Pearson)."""
    low = beta.ppf(error, found, trials - found + 1) if found else 0.0
    return float(low), float(beta.isf(error, found + 1, trials - found) if found < trials else 1.0)


def mean_bounds(values, low, high, error=ERROR):
    """Return bounds of the mean of values in a range, each wrong with probability `error` (Maurer and Pontil)."""
    n, part = len(values), (np.clip(values, low, high) - low) / (high - low)
    log = math.log(2 / error)
    width = math.sqrt(2 * part.var(ddof=1) * log / n) + 7 * log / (3 * (n - 1))
    return tuple(low + (high - low) * min(max(part.mean() + sign * width, 0.0), 1.0) for sign in (-1, 1))


def scaled(event, factor):
    """Return the event whose losses are so many times as large; with factors above 1, of so many units."""
    kind = type(event).__name__
    if kind == "GaussianDpEvent":
        return events.GaussianDpEvent(event.noise_multiplier / factor)
    if kind == "DiscreteLaplaceDpEvent":
        return events.DiscreteLaplaceDpEvent(event.noise_parameter * factor, 1)
    if kind == "LaplaceDpEvent":
        return events.LaplaceDpEvent(event.noise_multiplier / factor)
    if kind == "ZCDpEvent":
        return events.ZCDpEvent(event.rho * factor**2)
    if kind == "ComposedDpEvent":
        return events.ComposedDpEvent([scaled(part, factor) for part in event.events])
    return attrs.evolve(event, event=scaled(event.event, factor))  # repeated, sampled or selected


def of_noise(event):
    """Return an event in which pure losses are those of Laplace noise, which grow with the group as the noise says."""
    kind = type(event).__name__
    if kind == "DiscreteLaplaceDpEvent":
        return events.LaplaceDpEvent(1 / event.noise_parameter)
    return events.SelfComposedDpEvent(of_noise(event.event), event.count) if kind == "SelfComposedDpEvent" else event


@dataclass(frozen=True)
class Claim:
    """What is claimed of a pair whose `group` units are in one input only: an event, and a delta beside it."""

    epsilon: float
    delta: float
    event: object
    event_delta: float
    group: int = 1

    @classmethod
    def of(cls, guarantee, group):
        """Return that of a guarantee."""
        event = of_noise(guarantee.event) if group > 1 else guarantee.event
        return cls(guarantee.epsilon, guarantee.delta, event, guarantee.event_delta, group)

    @property
    def simple(self):
        """Whether `most` has a formula."""
        return type(self.event).__name__ in ("GaussianDpEvent", "LaplaceDpEvent", "DiscreteLaplaceDpEvent")

    def most(self, factor, epsilon):
        """Return the largest hockey-stick divergence at an epsilon where losses are so many times as large."""
        kind, event = type(self.event).__name__, scaled(self.event, factor * self.group)
        if kind == "GaussianDpEvent":
            mu = 1 / event.noise_multiplier
            found = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
        elif kind == "LaplaceDpEvent":
            found = max(-math.expm1((epsilon - 1 / event.noise_multiplier) / 2), 0.0)
        elif kind == "DiscreteLaplaceDpEvent":  # randomized response has most of all with this epsilon
            loss = event.noise_parameter
            found = max(-math.expm1(epsilon - loss), 0.0) / (1 + math.exp(-loss))
        else:
            found = delta_of(event, epsilon)
        return float(found) + self.event_delta * self.group * math.exp(epsilon * (self.group > 1))

    def renyi(self, factor, order, event=None):
        """Return the largest Renyi divergence; None if it is not known here, or has no end as a delta is beside."""
        if self.event_delta > 0:
            return None
        event = scaled(self.event, factor * self.group) if event is None else event
        kind = type(event).__name__
        if kind == "GaussianDpEvent":
            return order / (2 * event.noise_multiplier**2)
        if kind == "ZCDpEvent":
            return order * event.rho
        if kind == "SelfComposedDpEvent":
            each = self.renyi(factor, order, event.event)
            return None if each is None else event.count * each
        if kind == "ComposedDpEvent":
            parts = [self.renyi(factor, order, part) for part in event.events]
            return None if None in parts else sum(parts)
        if kind == "LaplaceDpEvent":
            e = 1 / event.noise_multiplier
            up, down = order / (2 * order - 1) * math.exp((order - 1) * e), (order - 1) / (2 * order - 1)
            return math.log(up + down * math.exp(-order * e)) / (order - 1)
        if kind == "DiscreteLaplaceDpEvent":  # randomized response, which has most of all with this epsilon
            p = 1 / (1 + math.exp(-event.noise_parameter))
            both = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
            return math.log(both) / (order - 1)
        return None

    @staticmethod
    def factor(refuted, precision=1e-3):
        """Return by which factor losses may be scaled and still be refuted, which `refuted` says of a factor."""
        low, high = 0.0, LARGEST
        while high - low > precision:
            middle = (low + high) / 2
            low, high = (middle, high) if refuted(middle) else (low, middle)
        return low

    def refuted(self, low, high, epsilon, precision=1e-3):
        """Return the same of an event of probability `low` at least with the unit, and `high` at most without it."""
        found = low - math.exp(epsilon) * high
        return self.factor(lambda factor: found > self.most(factor, epsilon), precision)

    def shown(self, factor):
        """Return the epsilon, at the claim's delta, where losses are so many times as large."""
        left = max(self.delta - self.event_delta, 0.0)
        one, most = (epsilon_of(scaled(self.event, max(times, 1e-3)), left) for times in (1.0, factor))
        return self.epsilon * most / one if factor else 0.0  # two accounts of one claim may differ in the last digits


def hockey_stick(claim, learn, test):
    """Show by one threshold."""
    every = np.concatenate(learn)
    edges = np.unique(np.quantile(every, np.linspace(0.01, 0.99, 50), method="higher"))
    return by_events(claim, [lambda part, edge=edge: part >= edge for edge in edges], learn, test)


def histogram(claim, learn, test):
    """Show by the bins in which the first input is the likelier, the likeliest first."""
    every = np.concatenate(learn)
    values = np.unique(every)
    edges = values[1:] if len(values) <= BINS else np.unique(np.quantile(every, np.linspace(0, 1, BINS + 1)[1:-1]))
    count = [np.bincount(np.searchsorted(edges, part, "right"), minlength=len(edges) + 1) + 0.5 for part in learn]
    rank = np.argsort(np.argsort(-count[0] / count[1], kind="stable"), kind="stable")
    chosen = [lambda part, n=n: rank[np.searchsorted(edges, part, "right")] < n for n in range(1, len(rank))]
    return by_events(claim, chosen, learn, test)


def by_events(claim, chosen, learn, test):
    """Show by the event and the epsilon that show most of the learning outputs: P(S) - exp(epsilon) Q(S)."""
    best, event, epsilon = -math.inf, chosen[0], 0.0
    for one in chosen:
        inside = [one(part) for part in learn]
        low, high = rates(inside)
        if low <= high:
            continue
        mu = ndtri(low) - ndtri(high)
        ratio = math.log(low / high)
        for tried in [part * ratio for part in SLOPES] if claim.simple else (0.0,):
            promise = claim.refuted(low, high, tried, 0.02) if claim.simple else mu
            if promise > best:
                best, event, epsilon = promise, one, tried
    if not claim.simple and best > -math.inf:
        low, high = rates([event(part) for part in learn])
        tried = [part * math.log(low / high) for part in SLOPES]
        epsilon = max(tried, key=lambda epsilon: claim.refuted(low, high, epsilon, 0.05))
    return claim.refuted(*rates([event(part) for part in test]), epsilon)


def rates(inside):
    """Return a lower bound of how often outputs of the first input are inside, and an upper one of the other."""
    return rate_bounds(int(inside[0].sum()), len(inside[0]))[0], rate_bounds(int(inside[1].sum()), len(inside[1]))[1]


def renyi(claim, learn, test):
    """Show by a linear log-ratio, cut on both sides, at the order and the range that promise most."""
    if claim.renyi(1.0, 2.0) is None:
        return math.nan
    slope = (learn[0].mean() - learn[1].mean()) / max((learn[0].var() + learn[1].var()) / 2, 1e-300)
    middle = (learn[0].mean() + learn[1].mean()) / 2

    def bound(parts, order, most):
        ratio = [np.clip(slope * (part - middle), -most, most) for part in parts]
        low, _ = mean_bounds(np.exp((order - 1) * ratio[0]), *np.exp((order - 1) * np.array([-most, most])))
        _, high = mean_bounds(np.exp(order * ratio[1]), *np.exp(order * np.array([-most, most])))
        return order / (order - 1) * math.log(low) - math.log(high)

    many = [np.resize(part, len(t)) for part, t in zip(learn, test, strict=True)]
    orders, ranges = (1.05, 1.2, 1.5, 2.0, 4.0), (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
    best = max(product(orders, ranges), key=lambda pair: bound(many, *pair) / claim.renyi(1.0, pair[0]))
    found = bound(test, *best)
    return claim.factor(lambda factor: found > claim.renyi(factor, best[0]))


def mmd(claim, learn, test):
    """Show by the witness of the maximum mean discrepancy: means of a function over its range, at most the distance."""
    centres = [part[:CENTRES] for part in learn]
    unit = max(np.std(np.concatenate(learn)), 1e-300)

    def witness(part, width):
        def near(some, centre):
            return np.exp(-(((some[:, None] - centre) / (width * unit)) ** 2) / 2).mean(axis=1)

        pieces = np.array_split(part, -(-len(part) // CHUNK))
        return np.concatenate([near(some, centres[0]) - near(some, centres[1]) for some in pieces])

    def distance(parts, width, bounded):
        values = [witness(part, width) for part in parts]
        line = witness(np.linspace(*np.quantile(np.concatenate(learn), (0, 1)), 400), width)
        low, high = line.min(), line.max()
        if not bounded:
            return (values[0].mean() - values[1].mean()) / (high - low)
        (least, _), (_, most) = (mean_bounds(value, low, high) for value in values)
        return (least - most) / (high - low)

    width = max((0.1, 0.3, 1.0), key=lambda w: distance([part[CENTRES:] for part in learn], w, False))
    found = distance(test, width, True)
    return claim.factor(lambda factor: found > claim.most(factor, 0.0))


TESTERS = {"hockey-stick": hockey_stick, "histogram": histogram, "Renyi": renyi, "MMD": mmd}


def projected(features, present, learning):
    """Return, for learning and testing, the outputs of both inputs as one number: Fisher's discriminant."""
    learned, coin = features[learning], present[learning]
    one, other = learned[coin], learned[~coin]
    spread = np.atleast_2d(np.cov(one.T) + np.cov(other.T))
    spread += 1e-9 * np.trace(spread) / len(spread) * np.eye(len(spread)) + 1e-300 * np.eye(len(spread))
    number = features @ np.linalg.solve(spread, one.mean(axis=0) - other.mean(axis=0))
    return [[number[part & present], number[part & ~present]] for part in (learning, ~learning)]


def test(claim, features, present, testers=TESTERS):
    """Return {tester: factor of the claimed losses that it refutes}."""
    learning = np.arange(len(present)) < TRAINING * len(present)
    features = np.asarray(features, float).reshape(len(present), -1)
    learn, rest = projected(features, present, learning)
    return {name: testers[name](claim, learn, rest) for name in testers}
