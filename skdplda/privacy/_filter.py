"""Privacy filters: rules by which a ledger decides, valid where each spend may depend on earlier releases.

A rule charges every guarantee two numbers, adds them up, and compares each sum with a capacity. The rule and its
capacities are fixed before the first release: whoever could change them after seeing a release, or move budget between
kinds of noise, would get up to twice the delta. doc/theory/ledger.rst has the proofs, Theorems 1 to 3.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from skdplda._arithmetic import exp, log, log1p, log_ndtr, ndtri
from skdplda.privacy._accounting import (
    OUTWARDS,
    RENYI_BITS,
    epsilon_of,
    gaussian_delta,
    parts_of,
    renyi_accountant,
    rounded_up,
)
from skdplda.privacy._events import gaussian_event

__all__ = ["RULES", "Rule", "choose_rule"]

RULES = ("basic", "gaussian", "renyi")
# Orders of the Renyi rule: integers, at which Poisson-sampled Gaussian noise has exact formulas.
ORDERS = (*range(2, 65), *(2**power for power in range(7, 12)))


@dataclass(frozen=True)
class Rule:
    """A filter for one budget.

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
        if self.name == "basic":
            return guarantee.epsilon, guarantee.delta
        if self.name == "gaussian":
            if is_gaussian(guarantee.event):
                return parts_of(guarantee.event).precision, guarantee.event_delta
            return _equal_precision(guarantee.epsilon), guarantee.delta
        if guarantee.event is None:
            return min(guarantee.epsilon, self.order * guarantee.epsilon * guarantee.epsilon / 2), guarantee.delta
        return _divergence(guarantee.event, self.order), guarantee.event_delta

    def cost(self, guarantees):
        """Return the epsilon, at the budget's delta, that holds for everything that adds up to these charges."""
        charges = [self.charge(guarantee) for guarantee in guarantees]
        total, taken = (math.fsum(part) for part in zip(*charges, strict=True)) if charges else (0.0, 0.0)
        if taken > (self.delta if self.name == "basic" else self.reserve):
            return math.inf
        if self.name == "basic" or total in (0.0, math.inf):
            return total
        left = self.delta - self.reserve
        if self.name == "gaussian":
            return epsilon_of(gaussian_event(1 / math.sqrt(total) * (1 - 1e-12)), left)
        return max(0.0, (total - self._conversion(left)) * OUTWARDS)

    def rest(self, guarantees):
        """Return a pure epsilon, about the largest, that still fits; not rounded to the safe side."""
        total = math.fsum(self.charge(guarantee)[0] for guarantee in guarantees)
        left = max(0.0, self.capacity - total)
        if self.name == "basic":
            return left
        if self.name == "gaussian":
            half = math.sqrt(left) / 2
            return log_ndtr(half) - log_ndtr(-half)
        return max(left, math.sqrt(2 * left / self.order))

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
        low, high = 0.0, 1.0
        while gaussian_delta(high, self.epsilon) <= left:
            low, high = high, 2 * high
        while high - low > 1e-13 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if gaussian_delta(middle, self.epsilon) <= left else (low, middle)
        return low * low

    def _conversion(self, delta):
        """Return what the order's divergence may be beyond epsilon: Canonne, Kamath and Steinke 2020, Prop. 12."""
        return (log(delta) + log(self.order)) / (self.order - 1) - log1p(-1 / self.order)


@lru_cache(maxsize=64)
def choose_rule(name, epsilon, delta, reserve, first):
    """Return the rule of a ledger whose first guarantee that costs anything is this; nothing was released before.

    "auto" is the rule that would afford the first guarantee most often. A `reserve` of None is what the first guarantee
    takes from it, or a quarter of delta if that is more; nothing if it takes nothing.
    """
    kept = reserve
    if kept is None:
        kept = min(delta, max(first.event_delta, delta / 4)) if first.event_delta else 0.0
    rules = [Rule("basic", epsilon, delta, delta)]
    if is_gaussian(first.event) or name == "gaussian":
        rules.append(Rule("gaussian", epsilon, delta, kept))
    if name == "renyi" or (first.event is not None and delta > kept):
        rules += [Rule("renyi", epsilon, delta, kept, order) for order in ORDERS]
    return max((rule for rule in rules if name in ("auto", rule.name)), key=lambda rule: _affords(rule, first))


def is_gaussian(event):
    """Whether an event is plain Gaussian noise and nothing else."""
    if event is None:
        return False
    parts = parts_of(event)
    return parts.private and parts.precision > 0 and parts == type(parts)(precision=parts.precision)


def _affords(rule, first):
    """How many times a rule affords a guarantee, fractions counted."""
    charge, taken = rule.charge(first)
    if taken > (rule.delta if rule.name == "basic" else rule.reserve):
        return -1.0
    return rule.capacity / charge if charge else math.inf


def _equal_precision(epsilon):
    """Precision mu^2 of the Gaussian release that tells as much as randomized response of this epsilon, or more."""
    if math.isinf(epsilon):
        return math.inf
    mu = 2 * (2.0**-48 - ndtri(1 / (1 + exp(min(epsilon, 700.0)))))  # the quotient's rounding error included
    return mu * mu * OUTWARDS if epsilon < 700 else math.inf


@lru_cache(maxsize=256)
def _divergences(event):
    """Return orders, ascending, and the Renyi divergences of an event there."""
    parts = parts_of(event)
    if not parts.private:
        return np.array(ORDERS), np.full(len(ORDERS), math.inf)
    if not parts.needs_orders:
        rates = parts.concentrated * np.array(ORDERS) + parts.xi
        return np.array(ORDERS), rates if not parts.only_pure else np.minimum(rates, parts.pure_sum)
    accountant = renyi_accountant(parts)
    return np.asarray(accountant._orders), np.asarray(accountant._rdp)


def _divergence(event, order):
    """Return the divergence at the least known order that is not below; it grows with the order."""
    orders, values = _divergences(event)
    enough = values[orders >= order]
    return rounded_up(float(enough[0]) * OUTWARDS, RENYI_BITS) if len(enough) else math.inf
