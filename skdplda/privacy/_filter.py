"""Privacy filters: rules by which a ledger decides, valid where each spend may depend on earlier releases.

A rule charges every guarantee two numbers, adds them up, and compares each sum with a capacity. Rules and their
capacities are fixed before the first release: whoever could change them after seeing a release, or move budget between
kinds of noise, would get up to twice the delta. doc/theory/ledger.rst has the proofs, Theorems 1 to 5.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from skdplda._arithmetic import bracket, exp, log, log1p, ndtri
from skdplda.privacy._accounting import (
    OUTWARDS,
    RENYI_BITS,
    epsilon_of,
    gaussian_delta,
    parts_of,
    renyi_accountant,
    rounded_up,
)
from skdplda.privacy._events import add_up, check_real, gaussian_event

RULES = ("basic", "gaussian", "renyi")
# Orders of the Renyi rule: integers, at which Poisson-sampled Gaussian noise has exact formulas.
ORDERS = (*range(2, 65), *(2**power for power in range(7, 12)))
# doc/theory/ledger.rst has a table of what these parts cost, and of what they are good for.
RESERVE = 1 / 4  # of delta, for what events leave out
MIXED = 1 / 6  # of what the reserve leaves, where the first noise is Gaussian: for other kinds of noise beside it
HALVES = 10  # times that both parts are halved for a first guarantee that needs more of delta, before they are nothing


class Spent(NamedTuple):
    """What a filter looks at in an entry of a ledger: a guarantee, and the part of the data that was read."""

    guarantee: Any
    part: str | None = None


@dataclass(frozen=True)
class Rule:
    """A rule for one budget.

    "basic" adds up epsilons, "gaussian" the precisions of Gaussian noise, "renyi" Renyi divergences of one `order`.
    `reserve` is the part of delta for what the first number of a charge leaves out; "basic" does not use it, as there
    it is all.
    """

    name: str
    epsilon: float
    delta: float
    reserve: float
    order: float = 0.0

    def charge(self, guarantee):
        """Return (what is added up, what is taken from the reserve)."""
        event = guarantee.event
        if self.name == "basic":
            return guarantee.epsilon, guarantee.delta
        if self.name == "gaussian":
            precision = None if event is None else _precision(event)
            if precision is not None:
                return precision, guarantee.event_delta
            return _equal_precision(guarantee.epsilon), guarantee.delta
        if event is None:
            return _pure_divergence(guarantee.epsilon, self.order), guarantee.delta
        return _divergence(event, self.order), guarantee.event_delta

    def cost(self, entries, max_parts=None):
        """Return the epsilon, at the budget's delta, that holds for everything that adds up to these charges."""
        total = self.most(0, entries, max_parts)
        if self.taken(entries, max_parts) > self.kept:
            return math.inf
        if self.name == "basic" or total in (0.0, math.inf):
            return total
        left = self.delta - self.reserve
        if self.name == "gaussian":
            return epsilon_of(gaussian_event(1 / math.sqrt(total) * (1 - 1e-12)), left)
        return max(0.0, (total - self._conversion(left)) * OUTWARDS) if left > 0 else math.inf

    def taken(self, entries, max_parts=None):
        """Return what guarantees take from the reserve in all."""
        return self.most(1, entries, max_parts)

    def most(self, which, entries, max_parts):
        """Return the most that one unit pays of charges (`which` 0) or failures (1): Theorem 5.

        It pays for all entries without a part, and for those of `max_parts` parts at most, of all if that is None.
        """
        if max_parts is None:
            return add_up(self.charge(entry.guarantee)[which] for entry in entries)
        parts = {None: []}
        for entry in entries:
            parts.setdefault(entry.part, []).append(self.charge(entry.guarantee)[which])
        paid = parts.pop(None)
        for charges in sorted(parts.values(), key=add_up, reverse=True)[:max_parts]:
            paid = [*paid, *charges]
        return add_up(paid)

    @property
    def kept(self):
        """What may be taken in all."""
        return self.delta if self.name == "basic" else self.reserve

    def rest(self, entries, max_parts=None):
        """Return a pure epsilon, about the largest, that still fits; not rounded to the safe side."""
        left = max(0.0, self.capacity - self.most(0, entries, max_parts))
        if self.name == "basic":
            return left
        if self.name == "gaussian":
            return _largest(lambda pure: _equal_precision(pure) <= left)
        return _largest(lambda pure: _pure_divergence(pure, self.order) <= left)

    @property
    def capacity(self):
        """What charges may add up to."""
        left = self.delta - self.reserve
        if self.name == "basic":
            return self.epsilon
        if not left > 0:
            return 0.0
        if self.name == "renyi":
            return max(0.0, self.epsilon + self._conversion(left))
        found = _largest(lambda mu: gaussian_delta(mu, self.epsilon) <= left)
        return found * found

    def _conversion(self, delta):
        """Return what the order's divergence may be beyond epsilon: Canonne, Kamath and Steinke 2020, Prop. 12."""
        return (log(delta) + log(self.order)) / (self.order - 1) - log1p(-1 / self.order)


@dataclass(frozen=True)
class Filter:
    """Rules, each with a part of delta, of which one at least has to afford everything; the reserve is common."""

    rules: tuple[Rule, ...]

    def cost(self, entries, max_parts=None):
        """Return the least epsilon of a rule for entries of a ledger; inf if none holds."""
        return min((rule.cost(entries, max_parts) for rule in self._holding(entries)), default=math.inf)

    def rest(self, entries, max_parts=None):
        """Return a pure epsilon, about the largest, that still fits; not rounded to the safe side."""
        return max((rule.rest(entries, max_parts) for rule in self._holding(entries)), default=0.0)

    def over_reserve(self, entries, max_parts=None):
        """Return (what guarantees take, what is kept) if no rule has enough in reserve, else None."""
        found = [(rule.taken(entries, max_parts), rule.kept) for rule in self._holding(entries)]
        return min(found) if found and all(taken > kept for taken, kept in found) else None

    def _holding(self, entries):
        """Return the rules that hold: where several share a reserve, one that takes more of it than others is out."""
        if len(self.rules) == 1:
            return self.rules
        left_out = [(entry.guarantee, _left_out(entry.guarantee)) for entry in entries]
        return [rule for rule in self.rules if all(rule.charge(one)[1] <= left for one, left in left_out)]

    def to_json(self):
        """Return plain lists and dicts, without the budget."""
        names = ("name", "delta", "reserve", "order")
        return [{name: getattr(rule, name) for name in names} for rule in self.rules]

    @classmethod
    def from_json(cls, data, epsilon, delta):
        """Undo `to_json`; TypeError or ValueError for what it cannot have written."""
        rules = tuple(Rule(epsilon=epsilon, **item) for item in data)
        for rule in rules:
            for name in ("delta", "reserve", "order"):
                check_real(name, getattr(rule, name), ">= 0")
            if (
                rule.name not in RULES
                or not 0 <= rule.reserve <= rule.delta
                or rule.reserve != rules[0].reserve
                or not (1 < rule.order < math.inf if rule.name == "renyi" else rule.order == 0)
            ):
                raise ValueError(f"a ledger has no such rule: {rule}")
        if not rules or math.fsum([rules[0].reserve, *(r.delta - r.reserve for r in rules)]) > delta * (1 + 1e-12):
            raise ValueError(f"the rules of a ledger share its delta={delta}; got {data!r:.200}")
        return cls(rules)


@lru_cache(maxsize=64)
def choose_filter(name, epsilon, delta, reserve, first):
    """Return the filter of a ledger whose first guarantee that costs anything is this; nothing was released before.

    "auto" is the rule that would afford the first guarantee most often. Where that is "gaussian", a second rule, for
    which other noise is cheaper, has a part of delta; not where the first guarantee is of words, whose event leaves
    something out, because the topics of a pipeline that is planned for the whole budget follow. A `reserve` of None is
    a quarter of delta, or what the first guarantee takes if that is more. A first guarantee that needs more of delta
    than is left by both parts makes them smaller.
    """

    def best(rules):
        return max(rules, key=lambda rule: _affords(rule, first))

    rules = _rules(name, epsilon, delta, first)
    kind = best([_with_reserve(rule, reserve, 0.0, first) for rule in rules]).name
    for part in (*(0.5**halves for halves in range(HALVES + 1)), 0.0):
        kept = [_with_reserve(rule, reserve, part * RESERVE * delta, first) for rule in rules]
        found = [best([rule for rule in kept if rule.name == kind])]
        if name == "auto" and kind == "gaussian" and part > 0 and not first.event_delta:
            mixed = part * MIXED * (delta - found[0].reserve)
            other = best([replace(rule, delta=rule.reserve + mixed) for rule in kept if rule.name == "renyi"])
            found = [replace(found[0], delta=delta - mixed), other]
        if Filter(tuple(found)).cost([Spent(first)]) <= epsilon:
            break
    return Filter(tuple(found))


def _rules(name, epsilon, delta, first):
    """Return the rules to choose from, all of delta in their reserve."""
    rules = [Rule("basic", epsilon, delta, delta)]
    if is_gaussian(first.event) or name == "gaussian":
        rules.append(Rule("gaussian", epsilon, delta, delta))
    if name == "renyi" or first.event is not None:
        rules += [Rule("renyi", epsilon, delta, delta, order) for order in ORDERS]
    return [rule for rule in rules if name in ("auto", rule.name)]


def _with_reserve(rule, reserve, least, first):
    if rule.name == "basic":
        return rule
    needed = max(least, rule.charge(first)[1])
    return replace(rule, reserve=min(rule.delta, needed) if reserve is None else reserve)


def _left_out(guarantee):
    """Delta of what the event leaves out; without an event, of what epsilon leaves out."""
    return guarantee.delta if guarantee.event is None else guarantee.event_delta


def is_gaussian(event):
    """Whether an event is plain Gaussian noise and nothing else."""
    if event is None:
        return False
    parts = parts_of(event)
    return parts.private and parts.precision > 0 and parts == type(parts)(precision=parts.precision)


def _affords(rule, first):
    """How many times a rule affords a guarantee, fractions counted."""
    charge, taken = rule.charge(first)
    if taken > rule.kept:
        return -1.0
    return rule.capacity / charge if charge else math.inf


@lru_cache(maxsize=1024)  # a ledger computes each of its entries again
def _precision(event):
    """Return the precision of Gaussian noise that dominates Gaussian and pure parts; None where there are others."""
    parts = parts_of(event)
    if not parts.private or parts != type(parts)(precision=parts.precision, pure=parts.pure):
        return None
    return add_up([parts.precision, *(count * _equal_precision(pure) for pure, count in parts.pure)])


@lru_cache(maxsize=1024)
def _equal_precision(epsilon):
    """Precision mu^2 of the Gaussian release that reveals as much as randomized response of this epsilon, or more."""
    if math.isinf(epsilon):
        return math.inf
    mu = 2 * (2.0**-48 - ndtri(1 / (1 + exp(min(epsilon, 700.0)))))  # the quotient's rounding error included
    return mu * mu * OUTWARDS if epsilon < 700 else math.inf


def _pure_divergence(epsilon, order):
    """Renyi divergence of randomized response, which dominates all that is `epsilon`-private, rounded outwards."""
    bound = min(epsilon, order * epsilon * epsilon / 2) if epsilon < 1e150 else epsilon
    if epsilon == math.inf:
        return bound
    excess = log1p(exp((1 - 2 * order) * epsilon)) - log1p(exp(-epsilon))
    return min(bound, epsilon + excess / (order - 1) + 2.0**-48)


@lru_cache(maxsize=256)
def _divergences(event):
    """Return orders, ascending, and the Renyi divergences of an event that needs them there."""
    accountant = renyi_accountant(parts_of(event))
    return np.asarray(accountant._orders), np.asarray(accountant._rdp)


@lru_cache(maxsize=1024)
def _divergence(event, order):
    """Return the divergence of an event at an order; if need be at the least known one that is not below."""
    parts = parts_of(event)
    if not parts.private:
        return math.inf
    if parts.needs_orders:
        orders, values = _divergences(event)
        enough = values[orders >= order]
        return rounded_up(float(enough[0]) * OUTWARDS, RENYI_BITS) if len(enough) else math.inf
    pure = [count * _pure_divergence(epsilon, order) for epsilon, count in parts.pure]
    return add_up([(parts.precision / 2 + parts.rho) * order * OUTWARDS, parts.xi * OUTWARDS, *pure])


def _largest(fits):
    """Return the largest x >= 0 that fits, up to rounding, for a condition that small ones meet."""
    return bracket(fits, 0.0, 1.0, rtol=1e-13, atol=1e-300, most=1e300)[0]
