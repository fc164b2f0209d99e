"""From events to numbers: the cost of a mechanism.

Every number returned is an upper bound on the true cost: floating-point results are rounded outwards, the
numerical accountant's discretisation is pessimistic, and its rounding error is added to delta.
dp-accounting is imported inside the functions (see `_events`). Its last bits depend on the machine, so that what it
computes is rounded up to few bits; all else has the same bits everywhere (doc/theory/noise.rst).
"""

import math
from collections import Counter
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from skdplda._arithmetic import bracket, exp, expm1, log, log1p, mills, ndtr
from skdplda.privacy._events import (
    add_up,
    check_nonnegative,
    check_real,
    leaves_of,
    zcdp_event,
)

ULP = 2.0**-52  # of doubles near 1
OUTWARDS = 1 + 2.0**-40  # covers the rounding error of the formulas that have no finer bound
DRAWN = 2.0**-40  # more than 2**50 noise values add to epsilon, and to delta in relation to it
# Above the error of a delta by FFT convolutions, at least and for each step: a coefficient's, of some 1e-16, grows with
# the power that is taken of it. Measured at 20,000 steps: against exact binomial sums 2e-13 and, by SciPy 1.18 with
# NumPy 2.5, 3e-12; of sampled noise, against convolutions in long doubles, 7e-12; at 1,000 steps 3e-13.
PLD_SLACK, PLD_STEP_SLACK = 1e-12, 2e-15
PLD_ERROR = 2.0**-32  # above that of a large delta, relative: machines differed by up to 2**-35
PLD_LEAST_DELTA = 10  # slacks; below so many they dominate, and Renyi bounds may be better
# Beyond these, a privacy loss distribution is not made, and the bounds in closed form and of Renyi divergences are all
# that there is. They bound the work on events that come out of files, and are far above what a fit or a search does.
PLD_STEPS = 20_000
PLD_POINTS = 2**25  # of all convolutions, some 5 s
LARGEST_SIGMA, SMALLEST_RATE = 1e50, 1e-50  # of sampled noise
MOST_CHECKED, FINER = 12, 8  # kinds of parts in the lines by which a reader checks a number, and their grid
NO_PRIVACY = 1e100  # precision or Renyi divergence that is as good as infinite
MOST_KINDS = 64  # of sampled parts, of which each takes a Renyi accountant 20 ms; more are rounded up to so many
WHOLE_ORDERS = *range(2, 65), *(2**k for k in range(7, 12))  # of Renyi divergences of sampled steps
PLD_BITS, RENYI_BITS = 21, 24  # significant bits that are kept of what dp-accounting computes
RENYI_ERROR = 8 * ULP  # above that of one sampled step's divergence, measured against exact sums: 1.5 * ULP
PLD_STEP = 2.0**-40  # of a delta, at least: machines differed by up to 1e-15


class _Parts(NamedTuple):
    """What a composition amounts to, sorted by kind: hashable, and all that the accounting needs."""

    precision: float = 0.0  # sum of 1 / noise_multiplier^2 over the plain Gaussian releases: mu^2
    pure: tuple = ()  # ((epsilon, count), ...)
    sampled: tuple = ()  # (((rate, noise_multiplier), count), ...)
    rho: float = 0.0  # zCDP
    xi: float = 0.0
    private: bool = True
    selected: tuple = ()  # (((parts of one run, mean number of runs, shape of its law), count), ...)

    @property
    def pure_sum(self):
        """Basic composition of the pure part."""
        return add_up(epsilon * count for epsilon, count in self.pure)

    @property
    def only_pure(self):
        """Whether basic composition covers everything."""
        return not (self.precision or self.sampled or self.rho or self.xi or self.selected)

    @property
    def concentrated(self):
        """The zCDP parameter of all that is neither sampled nor selected (pure epsilon is epsilon^2/2-zCDP)."""
        return self.rho + self.precision / 2 + add_up(e * e / 2 * n for e, n in self.pure)

    @property
    def needs_orders(self):
        """Whether a part has neither a closed form nor one number for all Renyi orders."""
        return bool(self.sampled or self.selected)

    @property
    def has_sampled(self):
        """Whether a part is sampled, or a run that is selected has one: there are formulas at whole orders only."""
        return bool(self.sampled or any(run.sampled for (run, _, _), _ in self.selected))

    @property
    def n_convolved(self):
        """Steps of a privacy loss distribution that are convolved one with another."""
        return sum(count for _, count in (*self.pure, *self.sampled))

    @property
    def slack(self):
        """What the rounding of a privacy loss distribution may take from a delta."""
        return max(PLD_SLACK, PLD_STEP_SLACK * self.n_convolved)

    @property
    def unsampled(self):
        """The same where every record joins every step, which costs more."""
        precision = self.precision + add_up(count / sigma / sigma for (_, sigma), count in self.sampled)
        return self._replace(precision=precision, sampled=(), private=self.private and precision < NO_PRIVACY)

    @property
    def searches(self):
        """How many divergences a Renyi accountant computes for what is selected."""
        return sum(1 + len(run.sampled) + run.searches for (run, _, _), _ in self.selected)


def parts_of(event):
    """Sort a composition by kind; raise ValueError for an event that has no accounting here."""
    found = _Found()
    try:
        for leaf, count in leaves_of(event):
            rate = 1.0
            if type(leaf).__name__ == "PoissonSampledDpEvent":
                rate, leaf = leaf.sampling_probability, leaf.event
            if rate > 0:
                handler = (HANDLERS if rate == 1 else SAMPLED_HANDLERS).get(type(leaf).__name__)
                if handler is None:
                    raise ValueError(
                        f"no accounting is known for the event {event!r}; skdplda.privacy.gaussian_event, and others"
                        " there, make those that are known"
                    )
                handler(found, leaf, count, rate)
    except RecursionError:
        raise ValueError("the event must be a composition of few levels; got one too deep to be read") from None
    return found.parts()


class _Found:
    """The parts of a composition while they are added up."""

    def __init__(self):
        self.precision, self.rho, self.xi, self.private = 0.0, 0.0, 0.0, True
        self.pure, self.sampled, self.selected = Counter(), Counter(), Counter()

    def parts(self):
        private = self.private and max(self.precision, self.rho, self.xi) < NO_PRIVACY
        self.pure.pop(0.0, None)  # noise without bound: nothing is released
        pure, sampled, selected = (tuple(sorted(kind.items())) for kind in (self.pure, self.sampled, self.selected))
        parts = _Parts(self.precision, pure, _few(sampled), self.rho, self.xi, private, selected)
        if parts.searches > MOST_KINDS:
            raise ValueError(
                f"an event must have at most {MOST_KINDS} different mechanisms in searches (RepeatAndSelectDpEvent);"
                f" got {parts.searches}. Compose guarantees without their events, by the sums of epsilons and deltas"
            )
        return parts


def _few(sampled):
    """Return at most MOST_KINDS of sorted sampled parts: neighbours are taken for what costs more than each of them.

    A larger rate does, because the smaller one's documents are a sample of the larger one's; and so does less noise.
    """
    if len(sampled) <= MOST_KINDS:
        return sampled
    parts = math.isqrt(MOST_KINDS)
    found = Counter()
    for alike in _cut(sampled, parts):
        for group in _cut(sorted(alike, key=lambda kind: kind[0][1]), parts):
            dearest = max(rate for (rate, _), _ in group), min(sigma for (_, sigma), _ in group)
            found[dearest] += sum(count for _, count in group)
    return tuple(sorted(found.items()))


def _cut(kinds, parts):
    """Cut a sequence into so many parts, or fewer."""
    size = -(-len(kinds) // parts)
    return [kinds[start : start + size] for start in range(0, len(kinds), size)]


def _add_non_private(found, event, count, rate):
    found.private = False


def _add_gaussian(found, event, count, rate):
    sigma = float(event.noise_multiplier)
    if sigma < 1 / LARGEST_SIGMA:
        found.private = False
        return
    sigma = min(sigma, LARGEST_SIGMA)  # less noise and a larger rate cost more, and floats hold their squares
    if rate == 1:
        found.precision += count / sigma / sigma
    else:
        found.sampled[max(rate, SMALLEST_RATE), sigma] += count


def _add_laplace(found, event, count, rate):
    _add_pure(found, 1 / event.noise_multiplier if event.noise_multiplier else math.inf, count, rate)


def _add_discrete_laplace(found, event, count, rate):
    _add_pure(found, float(event.noise_parameter) * event.sensitivity or math.inf, count, rate)


def _add_pure(found, epsilon, count, rate):
    if rate < 1:  # amplification by sampling
        epsilon = log1p(rate * expm1(epsilon)) * OUTWARDS + math.ulp(0.0) if epsilon < 700 else epsilon
    found.private = found.private and epsilon < math.inf
    found.pure[epsilon] += count


def _add_zcdp(found, event, count, rate):
    found.rho += count * event.rho
    found.xi += count * event.xi


def _add_selected(found, event, count, rate):
    run = parts_of(event.event)
    found.private = found.private and run.private
    if run.only_pure and math.isfinite(event.shape):  # Papernot and Steinke 2022, Corollary 3
        found.pure[(2 + event.shape) * run.pure_sum * OUTWARDS] += count
    else:
        found.selected[run, event.mean, event.shape] += count


# Handlers of events, by the name of the class: functools.singledispatch needs the class itself, and the import of
# dp-accounting takes longer than that of the rest of the package.
SAMPLED_HANDLERS = {
    "NonPrivateDpEvent": _add_non_private,
    "GaussianDpEvent": _add_gaussian,
    "LaplaceDpEvent": _add_laplace,
    "DiscreteLaplaceDpEvent": _add_discrete_laplace,
}
HANDLERS = {**SAMPLED_HANDLERS, "ZCDpEvent": _add_zcdp, "RepeatAndSelectDpEvent": _add_selected}


def dearest_event(events, shape):
    """Return an event that costs no less than each of several, where the best of a random number of runs is released.

    One run has any of these events. Its Renyi divergence is at most the largest of theirs, at every order, and it is
    pure only if all of them are (doc/theory/search.rst). `shape` is that of `selection_event`. None where no
    event is known whose divergence is the largest at every order.
    """
    found = {event: parts_of(event) for event in events}
    for event, parts in found.items():
        if not parts.private:
            return event
    if math.isfinite(shape) and all(parts.only_pure for parts in found.values()):
        return max(found, key=lambda event: found[event].pure_sum)
    event = max(found, key=lambda event: found[event].concentrated)
    dearest = found[event]
    for parts in found.values():
        if parts.xi > dearest.xi or parts.sampled != dearest.sampled or parts.selected != dearest.selected:
            return None
    if dearest.only_pure and not all(parts.only_pure for parts in found.values()):
        return zcdp_event(dearest.concentrated)
    return event


# --- the cost of an event -----------------------------------------------------------------------------


def epsilon_of(event: Any, delta: float) -> float:
    """Compute the smallest known epsilon of an event at a given delta.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        Compositions of Gaussian, Poisson-subsampled Gaussian, Laplace, discrete Laplace and zCDP events, and
        the best of several runs of them.
    delta : float
        In [0, 1].

    Returns
    -------
    epsilon : float
        An upper bound on the true value: the least of the bounds that apply, among basic composition of
        pure events, the exact Gaussian formula [1]_, privacy loss distributions, and Renyi divergences. Of more than
        20,000 pure or sampled steps, or where they are of very many kinds, no loss distribution is made.

    Raises
    ------
    ValueError
        If `delta` is outside [0, 1], no accounting is known for the event, or it has more than 2**53 steps or too many
        different searches.

    References
    ----------
    .. [1] B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018,
       Theorem 8.

    Examples
    --------
    >>> from skdplda.privacy import epsilon_of, gaussian_event, pure_event
    >>> round(epsilon_of(gaussian_event(20, steps=300), 1e-6), 4)
    4.1518
    >>> epsilon_of(pure_event(0.05, steps=300), 0.0)
    15.0
    """
    delta = check_real("delta", delta, ">= 0 and <= 1")
    if not 0 <= delta <= 1:
        raise ValueError(f"delta must be >= 0 and <= 1; got {delta:g}")
    return _epsilon(parts_of(event), delta)


def epsilon_with_sampler_error(event: Any, delta: float) -> float:
    """Compute `epsilon_of` an event, the numerical error of up to 2**50 noise values included.

    The event may be that of several records that change together. At a delta of 0 the error, less than 2**-40 of
    epsilon, is left out. Source: doc/theory/noise.rst, Theorem 5.
    """
    return epsilon_of(event, delta) if delta == 0 else epsilon_of(event, delta * (1 - DRAWN)) + DRAWN


def delta_of(event: Any, epsilon: float) -> float:
    """Compute the smallest known delta of an event at a given epsilon.

    Parameters
    ----------
    event : dp_accounting.DpEvent
        See `epsilon_of`.
    epsilon : float
        At least 0.

    Returns
    -------
    delta : float
        An upper bound on the true value.

    Raises
    ------
    ValueError
        If `epsilon` is negative, or no accounting is known for the event.
    """
    return _delta(parts_of(event), check_nonnegative("epsilon", epsilon))


@lru_cache(maxsize=256)
def _epsilon(parts, delta):
    if delta >= 1 or parts == _Parts():
        return 0.0
    if not parts.private:
        return math.inf
    bounds = [parts.pure_sum if parts.only_pure else math.inf]
    if delta > 0:
        if parts.precision and not (parts.needs_orders or parts.rho or parts.xi):
            bounds.append(parts.pure_sum + _gaussian_epsilon(math.sqrt(parts.precision), delta))
            if not parts.pure:
                return bounds[-1]
        if not parts.needs_orders:
            bounds.append(_zcdp_epsilon(parts.concentrated, parts.xi, delta))
            bounds.append(parts.pure_sum + _zcdp_epsilon(parts.rho + parts.precision / 2, parts.xi, delta))
        left = delta * (1 - PLD_ERROR) - parts.slack
        losses = _loss_distribution(parts) if left > 0 else None
        if losses is not None:
            bits = max(12, min(PLD_BITS, 43 + math.frexp(delta)[1]))
            bounds.append(rounded_up(losses.get_epsilon_for_delta(left) * OUTWARDS, bits))
        enough = losses is not None and bounds[-1] < math.inf and delta >= PLD_LEAST_DELTA * parts.slack
        if parts.needs_orders and not enough:
            if parts.sampled:
                bounds.append(_epsilon(parts.unsampled, delta))
            with np.errstate(over="ignore"):
                bounds.append(renyi_epsilon(parts, delta))
    return max(0.0, float(min(bounds)))


@lru_cache(maxsize=256)
def _delta(parts, epsilon):
    if math.isinf(epsilon) or parts == _Parts():
        return 0.0
    if not parts.private:
        return 1.0
    rest = epsilon - parts.pure_sum
    if parts.only_pure and rest >= 0:
        return 0.0
    bounds = [1.0]
    if parts.precision and not (parts.needs_orders or parts.rho or parts.xi):
        if rest >= 0:
            bounds.append(gaussian_delta(math.sqrt(parts.precision), rest))
        if not parts.pure:
            return min(bounds)
    if not parts.needs_orders:
        bounds.append(_zcdp_delta(parts.concentrated, parts.xi, epsilon))
        if rest >= 0:
            bounds.append(_zcdp_delta(parts.rho + parts.precision / 2, parts.xi, rest))
    losses = _loss_distribution(parts)
    if losses is not None:
        found = float(losses.get_delta_for_epsilon(epsilon)) * (1 + PLD_ERROR) + parts.slack
        bounds.append(max(rounded_up(found, PLD_BITS), math.ceil(found / PLD_STEP) * PLD_STEP))
    if parts.needs_orders and (losses is None or min(bounds) < PLD_LEAST_DELTA * parts.slack):
        if parts.sampled:
            bounds.append(_delta(parts.unsampled, epsilon))
        with np.errstate(over="ignore"):
            bounds.append(rounded_up(float(renyi_accountant(parts).get_delta(epsilon)) * OUTWARDS, RENYI_BITS))
    return float(min(bounds))


def rounded_up(value, n_bits):
    """Return the least float of so many significant bits that is not below a number."""
    if not 0 < value < math.inf:
        return value
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.ceil(math.ldexp(mantissa, n_bits)), exponent - n_bits)


def gaussian_delta(mu, epsilon):
    """Delta of a Gaussian mechanism of sensitivity / noise = mu, rounded outwards.

    Phi(-a) - e^eps Phi(-b) with a = eps/mu - mu/2, b = eps/mu + mu/2. As e^eps phi(b) = phi(a), both terms share the
    density phi(a), and only Mills' ratios are subtracted: nothing cancels but their slopes. `mills` and `ndtr` are
    within 6 ulp, which is below 8 * ULP of them; a and b within 3 * ULP * b, which moves phi(a) by 3 * ULP * b**2 at
    most, and the ratios by less.
    """
    mu *= 1 + 4 * ULP
    ratio = epsilon / mu
    upper, lower = ratio - mu / 2, ratio + mu / 2
    if upper > 37.5:  # Phi(-37.5) is below, and floats soon have fewer bits
        return 2.0**-1016
    if upper < -5.5:  # delta is near 1 and Mills' ratio would grow without bound
        return min(1.0, ndtr(-upper) * (1 + 8 * ULP))
    difference = mills(upper) * (1 + 8 * ULP) - mills(lower) * (1 - 8 * ULP)
    density = exp(-0.5 * upper * upper) / math.sqrt(2 * math.pi)
    return min(1.0, density * difference * (1 + 8 * ULP * (2 + lower * lower)))


def _gaussian_epsilon(mu, delta):
    """Smallest epsilon, up to rounding, with gaussian_delta(mu, epsilon) <= delta."""
    return least(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, mu * mu / 2 + mu)


def least(safe, guess):
    """Bisect for the least x >= 0 with safe(x), for a monotone condition; the result is safe."""
    if safe(0.0):
        return 0.0
    return bracket(lambda x: not safe(x), 0.0, guess, rtol=2 * ULP)[1]


def _minimize_over_orders(bound):
    """Least value of a bound over Renyi orders above 1: every order is valid, so a grid is enough.

    `bound` takes the orders, their logarithms, and those of 1 - 1 / order.
    """
    (t, *logs), values = _first_orders(), None
    for _ in range(3):
        with np.errstate(over="ignore"):  # an infinite bound holds, too
            values = bound(*(logs if values is None else _logs(t)))
        best = int(np.nanargmin(values))
        t = np.linspace(t[max(best - 1, 0)], t[min(best + 1, t.size - 1)], 101)
    return float(np.nanmin(values))


@lru_cache
def _first_orders():
    t = np.linspace(-6.0, 30.0, 721)
    return t, *_logs(t)


def _logs(t):
    order = 1 + exp(t)
    return order, log(order), log1p(-1 / order)


def _zcdp_epsilon(rho, xi, delta):
    """Epsilon of (xi, rho)-zCDP: Canonne, Kamath and Steinke 2020, Proposition 12."""

    log_delta = log(delta)

    def bound(order, log_order, log_rest):
        return xi + rho * order + log_rest - (log_delta + log_order) / (order - 1)

    return max(0.0, _minimize_over_orders(bound) * OUTWARDS + 2.0**-44)


def _zcdp_delta(rho, xi, epsilon):
    """Delta of (xi, rho)-zCDP, from the same proposition."""

    def bound(order, log_order, log_rest):
        rounding = 8 * ULP * (1 + xi + rho * order + epsilon)
        return (order - 1) * (xi + rho * order - epsilon + log_rest + rounding) - log_order

    return min(1.0, exp(min(0.0, _minimize_over_orders(bound) + 2.0**-40)))


@lru_cache(maxsize=8)
def _loss_distribution(parts):
    """Privacy loss distribution of the Gaussian, sampled and pure parts, on a grid that suits them.

    None where it would be wrong, or the work would have no reasonable end.
    """
    if parts.rho or parts.xi or parts.selected:
        return None
    interval = _grid_interval(parts)
    if parts.n_convolved > PLD_STEPS or _points(parts, interval) > PLD_POINTS:
        return None
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.dp_event import DiscreteLaplaceDpEvent
    from dp_accounting.pld import PLDAccountant

    pure = parts.pure
    if parts.precision or parts.sampled or len(pure) > 1:  # a larger epsilon dominates: move up to the grid
        pure = [(math.ceil(epsilon / interval) * interval, count) for epsilon, count in pure]
    accountant = PLDAccountant(value_discretization_interval=interval)
    try:
        if parts.precision:
            accountant.compose(GaussianDpEvent(1 / math.sqrt(parts.precision)))
        for epsilon, count in pure:
            accountant.compose(SelfComposedDpEvent(DiscreteLaplaceDpEvent(epsilon, 1), count))
        for (rate, sigma), count in parts.sampled:
            accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), count))
    except (ArithmeticError, ValueError):  # of rates near 0 and 1, which its search for an interval does not bear
        return None
    return accountant._pld


def check_of(event):
    """Return lines of Python that make dp-accounting's accountant of an event; none without one, or if they are many.

    Privacy loss distributions, on the grid that is taken here; Renyi divergences where there is no distribution.
    """
    parts, counts = parts_of(event), {}
    for leaf, count in leaves_of(event):
        counts[leaf] = counts.get(leaf, 0) + count
    orders_only = bool(parts.rho or parts.xi or parts.selected)
    if not parts.private or len(counts) > MOST_CHECKED or not all(_is_known(leaf, orders_only) for leaf in counts):
        return []
    if orders_only:
        kind, orders = "rdp", "[1 + 2 ** (i / 50) for i in range(-400, 600)]"
        if parts.has_sampled:
            orders = "[*range(2, 65), 128, 256, 512, 1024, 2048]"
        accountant = f"RdpAccountant(orders={orders})"
    else:
        interval = _grid_interval(parts) if parts != _Parts() else 1e-4
        interval /= 1 if parts.sampled or not parts.precision else FINER  # it takes each Gaussian part on its own
        kind, accountant = "pld", f"PLDAccountant(value_discretization_interval={interval!r})"
    return [
        "from dp_accounting import dp_event",
        f"from dp_accounting.{kind} import {accountant.partition('(')[0]}",
        "",
        f"accountant = {accountant}",
        *(f"accountant.compose({_code_of(leaf)}, {count})" for leaf, count in counts.items()),
    ]


def _is_known(event, orders_only, sampled=False):
    """Whether dp-accounting's accountants, or that of Renyi orders only, take an event."""
    if isinstance(event, (tuple, list)):
        return all(_is_known(inner, orders_only, sampled) for inner in event)
    if not hasattr(event, "__attrs_attrs__"):
        return event is not None and math.isfinite(event)
    name, values = type(event).__name__, [getattr(event, field.name) for field in event.__attrs_attrs__]
    if name == "DiscreteLaplaceDpEvent" and (orders_only or sampled or values[1] != int(values[1])):
        return False
    if name == "RepeatAndSelectDpEvent" and not orders_only:
        return False
    return all(_is_known(value, orders_only, sampled or name == "PoissonSampledDpEvent") for value in values)


def _code_of(event):
    """Write an event as Python."""
    if isinstance(event, tuple):
        return f"[{', '.join(map(_code_of, event))}]"
    if not hasattr(event, "__attrs_attrs__"):
        value = float(event) if isinstance(event, float) else int(event)
        return "float('inf')" if value == math.inf else repr(value)
    values = ", ".join(_code_of(getattr(event, field.name)) for field in event.__attrs_attrs__)
    return f"dp_event.{type(event).__name__}({values})"


def _grid_interval(parts):
    """Choose a grid fine against the loss of one step, coarse enough for about a million points.

    The default grid of 1e-4 can be wider than the loss of a step, and then overstates epsilon by up to 70 %.
    """
    if len(parts.pure) == 1 and not (parts.precision or parts.sampled):
        return parts.pure[0][0]  # the loss lives on {-epsilon, epsilon}: this grid is exact
    finest, variance, largest = 0.01, 0.0, 0.0
    for epsilon, count in parts.pure:
        finest, variance = min(finest, epsilon / 512), variance + count * epsilon * epsilon
    if parts.precision:
        finest, variance = min(finest, math.sqrt(parts.precision) / 40), variance + parts.precision
    for (rate, sigma), count in parts.sampled:
        deviation = _deviation(rate, sigma)
        finest, variance = min(finest, deviation / 40), variance + count * deviation * deviation
        largest = max(largest, _largest_loss(rate, sigma))
    interval = max(finest, (variance + 16 * math.sqrt(variance)) / 1e6, largest / 2e5)
    return math.ldexp(1.0, math.frexp(interval)[1] - 1) if 0 < interval < math.inf else interval  # multiples are exact


def _deviation(rate, sigma):
    """Return about the standard deviation of the loss of one sampled step."""
    return min(1 / sigma, rate * math.sqrt(expm1(min(1 / sigma / sigma, 700.0))))


def _largest_loss(rate, sigma):
    """Return about the largest loss of one step that a grid holds: that of noise ten deviations away."""
    tail = 10 / sigma + 0.5 / sigma / sigma
    return log1p(rate * exp(tail)) if tail < 700 else tail


def _points(parts, interval):
    """Estimate how many points the convolutions of a distribution take on a grid; inf where floats do not hold it.

    That of `count` equal steps of m points has up to m * count. dp-accounting cuts off 1e-15 of the mass by Chernoff
    bounds at the orders j / m, j from 1 to 20, which leave about m * (70 / j + j * count * (deviation / range)^2).
    All together have a million.
    """
    if not 0 < interval < math.inf or parts.precision > 700:
        return math.inf
    kinds = [(epsilon, epsilon, count) for epsilon, count in parts.pure]
    kinds += [(_largest_loss(*kind), _deviation(*kind), count) for kind, count in parts.sampled]
    points = together = 0.0
    for loss, deviation, count in kinds:
        half = deviation / loss / 2
        spread = half * half
        size = (2 * loss / interval + 1) * min(count, *(70 / j + j * count * spread for j in (1, 2, 5, 10, 20)))
        together = min(together + size, 1e6)
        points += size + together if loss < 700 else math.inf
    return points


def renyi_accountant(parts):
    """Renyi accountant for sampled and selected releases beside anything else.

    Sampled releases have exact formulas at integer orders; the others are accounted at any.
    """
    from dp_accounting import PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.rdp import RdpAccountant

    orders = WHOLE_ORDERS if parts.has_sampled else (1 + exp(np.linspace(-4, 14, 361)))
    accountant = RdpAccountant(orders=orders)
    for event, count in _renyi_events(parts):
        if isinstance(event, PoissonSampledDpEvent):
            accountant._rdp += count * _sampled_step(event.sampling_probability, event.event.noise_multiplier)
        else:
            accountant.compose(SelfComposedDpEvent(event, count))
    # It is below the truth, or below zero, for steps whose divergence is near its rounding error.
    found = np.nan_to_num(accountant._rdp, nan=math.inf, posinf=math.inf)
    accountant._rdp = np.maximum(found, 0.0) + _rounding(parts)
    return accountant


@lru_cache(maxsize=4 * MOST_KINDS)
def _sampled_step(rate, sigma):
    """Return the divergences of one sampled step at whole orders, which take 20 ms."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(orders=WHOLE_ORDERS)
    accountant.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)))
    return accountant._rdp


def _rounding(parts):
    """Return what rounding may hide of a divergence."""
    return RENYI_ERROR * add_up(count for _, count in (*parts.sampled, *parts.selected))


def renyi_epsilon(parts, delta):
    """Epsilon by Renyi divergences alone."""
    return rounded_up(renyi_accountant(parts).get_epsilon(delta) * OUTWARDS, RENYI_BITS)


def _renyi_events(parts, more=0.0):
    """Yield (event, count) pairs that a Renyi accountant understands, of at least so much more divergence."""
    from dp_accounting import ComposedDpEvent, GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.dp_event import RepeatAndSelectDpEvent, ZCDpEvent

    yield ZCDpEvent(parts.concentrated + more, parts.xi), 1
    for (rate, sigma), count in parts.sampled:
        yield PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), count
    for (run, mean, shape), count in parts.selected:
        event = ComposedDpEvent(
            [SelfComposedDpEvent(*pair) for pair in _renyi_events(run, RENYI_ERROR + _rounding(run))]
        )
        yield RepeatAndSelectDpEvent(event, mean, shape), count
