"""The privacy loss of released topic draws: what the noise and the draws of a sweep cost, and what a budget allows.

A sweep releases the topic of each token, drawn from a public table that stays as it is for the sweep, and a noisy
table. For one token replaced, the draws cost what one draw of range eta costs, and the table has sensitivity 2 (L1) and
sqrt 2 (L2). The proof is in doc/theory/hdp.rst.
"""

import math
from dataclasses import dataclass
from decimal import Decimal

from skdplda._arithmetic import bracket, exp, expm1
from skdplda.privacy import (
    bounded_range_event,
    epsilon_of,
    epsilon_with_sampler_error,
    mechanism_of,
    pure_event,
    pure_mechanisms,
    zcdp_event,
)

MOVED = {1: 4, 2: 2}  # by one token: the square of the table's sensitivity, in the norm of order 1 or 2
# Of the warning that a plan cannot learn; no guarantee depends on it. It was chosen by hand, below the smallest range
# that is measured in the last paragraph of doc/theory/hdp.rst (0.2).
LEAST_RANGE = 0.05  # of a draw: below it, hardly anything is learnt, even from tables almost without noise
MOST_BUDGET = 1e6  # no larger total is recommended: it would be no protection
# Part of delta that is kept for the samplers' error, far more than it needs; it costs epsilon about as much as a delta
# smaller by this part.
RESERVE = 2.0**-6


@dataclass(frozen=True)
class HybridPlan:
    """Noise and draws of every sweep, known before any data are.

    `mechanism` is one of `skdplda.privacy.MECHANISMS`; `scale` that of the noise in a cell, in tokens, 0 for none;
    `eta` the range of a draw's log-ratio between any two words, inf for no bound.
    """

    mechanism: str
    scale: float
    eta: float
    n_sweeps: int

    def __post_init__(self):
        mechanism_of(self.mechanism)

    @property
    def law(self):
        """The mechanism, as an object."""
        return mechanism_of(self.mechanism)

    @classmethod
    def calibrate(cls, epsilon, delta, n_sweeps, share, eta=None, mechanism=None):
        """Return the plan that spends a total budget; an `epsilon` of inf has neither noise nor bound.

        With delta=0 composition is basic, else zCDP; a `mechanism` of None is "laplace" then, else "gaussian". `share`
        is the tables' part of the budget: of epsilon with delta=0, of rho otherwise. With a given range `eta` the
        tables get what it leaves, and `share` is not used. ValueError if the draws of the given range cost more than
        the budget, or the noise more than the theorem assumes.
        """
        mechanism = mechanism or ("gaussian" if delta else "laplace")
        law = mechanism_of(mechanism)
        if law.has_delta and not delta:
            raise ValueError(
                f"mechanism={mechanism!r} has no pure epsilon, which delta=0 asks for; use {pure_mechanisms()}, or a"
                " delta above 0."
            )
        if math.isinf(epsilon):
            return cls(mechanism, 0.0, math.inf if eta is None else eta, n_sweeps)
        total = _largest_rho(epsilon, delta * (1 - RESERVE)) if delta else epsilon
        each = total / n_sweeps * (1 - 1e-9)  # below what rounding may add
        if eta is None:
            eta = _range_of(0.0, (1 - share) * each) if delta else (1 - share) * each
        spent = _rho(eta) if delta else eta
        if spent >= each:
            least = cls(mechanism, math.inf, eta, n_sweeps).epsilon(delta)
            raise ValueError(
                f"epsilon={epsilon:g} does not pay for {n_sweeps} sweeps whose draws have the range {eta:.4g}: they"
                f" cost {least:.4g} even without a table. Raise epsilon, or lower count_clip, or max_iter."
            )
        # a table of noise multiplier m is to be (1 / m)-private, or (1 / (2 m^2))-concentrated
        left, moved = each - spent, MOVED[law.norm]
        plan = cls(mechanism, 1 / math.sqrt(left / (moved / 2)) if delta else math.sqrt(moved) / left, eta, n_sweeps)
        if epsilon_of(plan.event(draws_pure=not delta), delta) > epsilon:
            raise ValueError(
                f"mechanism={mechanism!r} costs more than the theorem on hybrid sweeps assumes of a noise multiplier;"
                " use mechanism=None."
            )
        return plan

    @property
    def multipliers(self):
        """Scales of the noise of the sweeps' tables, as `Spending` takes them."""
        return (self.scale,) * self.n_sweeps

    @property
    def noiseless(self):
        """Whether the tables are exact."""
        return self.scale == 0

    @property
    def private(self):
        """Whether the sweeps have a finite price."""
        return self.scale > 0 and self.eta < math.inf

    @property
    def deviation(self):
        """Standard deviation of the noise in a cell, in tokens."""
        if self.mechanism != "laplace" or self.noiseless:
            return self.law.deviation * self.scale
        return math.sqrt(2 * exp(-1 / self.scale)) / -expm1(-1 / self.scale)  # at small scales, too

    @property
    def can_learn(self):
        """Whether the draws may follow the tables, so that topics may come out better than word frequencies."""
        return self.eta >= LEAST_RANGE

    @classmethod
    def enough(cls, epsilon, delta, n_sweeps, share, mechanism=None):
        """Return a total, near the least above `epsilon`, whose plan `can_learn`; None if there is none."""

        def lacks(total):
            try:
                return not cls.calibrate(total, delta, n_sweeps, share, mechanism=mechanism).can_learn
            except ValueError:
                return True

        _, found = bracket(lacks, epsilon, 2 * epsilon, rtol=0.01, most=MOST_BUDGET)
        return found if found < MOST_BUDGET else None

    def event(self, n_tokens=1, draws_pure=False):
        """Return what all sweeps cost when `n_tokens` tokens are replaced together.

        Their draws compose, one after the other, and so cost `n_tokens` times as much; the table's sensitivity grows
        `n_tokens`-fold. With `draws_pure`, draws count by their pure epsilon and not by their concentrated divergence.
        """
        from dp_accounting import ComposedDpEvent

        table = self.law.event(self.scale / math.sqrt(MOVED[self.law.norm]) / n_tokens, self.n_sweeps)
        draws = n_tokens * self.n_sweeps
        draws = pure_event(self.eta, draws) if draws_pure else bounded_range_event(self.eta, draws)
        return ComposedDpEvent([table, draws])

    def price(self, delta, n_tokens=1):
        """Return (epsilon, event): the smaller of the two accounts of the draws."""
        if not self.private and not math.isinf(self.scale):
            return math.inf, None
        event = self.event(n_tokens)
        epsilon = epsilon_with_sampler_error(event, delta)
        if n_tokens * self.n_sweeps * self.eta < epsilon:  # then the plain sum over draws may be less
            other = self.event(n_tokens, draws_pure=True)
            if epsilon_with_sampler_error(other, delta) < epsilon:
                return epsilon_with_sampler_error(other, delta), other
        return epsilon, event

    def epsilon(self, delta, n_tokens=1):
        """Return the total price at a delta."""
        return self.price(delta, n_tokens)[0]

    def draw(self, scale, shape, random_state, n_threads):
        """Return a table's noise, integers."""
        return self.law.sampler(scale, shape, random_state, n_threads)


def shortfall(plan, delta, total=None, share=None, prior=None):
    """Return a sentence that says why a plan learns nothing, and what would do; None where topics may be learnt.

    It is made of parameters alone. `delta`, `total` and `share` are those of the budget; a `total` of None is one given
    by sweep. `prior` is that of words, where it makes the range together with a given `count_clip`.
    """
    if plan.can_learn:
        return None
    use, other = None, ""
    if prior is not None:
        use = f"count_clip={_up(expm1(LEAST_RANGE / 2) * prior):g}"
    elif total is None:
        use = f"inherent_epsilon={LEAST_RANGE}"
    else:
        enough = HybridPlan.enough(total, delta, plan.n_sweeps, share, plan.mechanism)
        use = None if enough is None else f"epsilon={_up(enough):g}"
        other = "fewer sweeps (max_iter)"
    advice = [part for part in (f"at least {use}" if use else "", other) if part]
    return (
        f"epsilon={plan.epsilon(delta) if total is None else total:.4g} is too small for {plan.n_sweeps} sweeps to"
        f" learn anything: a topic's weights for any two words differ by a factor of at most"
        f" {exp(plan.eta / 2):.3f}. Use {', or '.join(advice)}."
    )


def _up(value):
    """Return a positive number rounded up to two digits."""
    unit = float(f"1e{Decimal(value).adjusted() - 1}")
    return math.ceil(value / unit) * unit


def _rho(eta):
    """Return the zCDP rate of a draw."""
    return getattr(bounded_range_event(eta), "rho", 0.0 if eta == 0 else math.inf)


def _range_of(low, rho):
    """Return the largest range whose zCDP rate is at most rho."""
    return bracket(lambda eta: _rho(eta) <= rho, low, max(1.0, math.sqrt(8 * rho)), rtol=1e-12)[0]


def _largest_rho(epsilon, delta):
    """Return the largest zCDP rate whose epsilon at delta is at most the given one."""
    return bracket(lambda rho: epsilon_of(zcdp_event(rho), delta) <= epsilon, 0.0, epsilon, rtol=1e-12)[0]
