"""Privacy events: what a mechanism did, apart from what it costs.

The events are dp-accounting's, imported inside the functions, because the import takes longer than that of
the rest of the package. They are read in the sense of one record added or removed, with the sensitivity
folded into the noise: a noise multiplier is (standard deviation or scale) / (sensitivity under the
guarantee's own adjacency).
"""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from skdplda._arithmetic import exp, expm1, log
from skdplda._types import Iterable

MOST_STEPS = 2**53  # of one composition: floats hold every number up to it


# --- checks -------------------------------------------------------------------------------------------


def check_real(name, value, allowed):
    """Return `value` as a float; refuse what is not a real number, NaN, and integers that no float holds."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number {allowed}; got {value!r}")
    if not is_within_floats(value):
        raise ValueError(f"{name} must be {allowed}, within the range of floats; got a number beyond it")
    if math.isnan(value):
        raise ValueError(f"{name} must be {allowed}; got nan")
    return float(value)


def add_up(values):
    """Return the exact sum of numbers >= 0; inf where it overflows."""
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def is_within_floats(value):
    """Whether a real number is none of Python's integers and fractions that are larger than any float."""
    try:
        float(value)
    except OverflowError:
        return False
    return True


def check_nonnegative(name, value):
    value = check_real(name, value, ">= 0 or inf")
    if value < 0:
        raise ValueError(f"{name} must be >= 0 or inf; got {value:g}")
    return value


def check_steps(steps):
    if isinstance(steps, bool) or not isinstance(steps, Integral) or steps < 1:
        raise ValueError(f"steps must be an integer >= 1; got {steps!r}")
    check_few(steps)
    return int(steps)


def check_few(steps):
    """Raise ValueError for more steps than floats can count."""
    if steps > MOST_STEPS:
        raise ValueError("a composition must have at most 2**53 steps; got more: floats cannot count them")


def check_epsilon(epsilon: float, name: str = "epsilon") -> float:
    """Return an epsilon as a float; raise TypeError or ValueError unless it is positive. inf asks for no privacy."""
    checked = check_real(name, epsilon, "> 0 or inf")
    if not checked > 0:
        raise ValueError(f"{name} must be > 0 or inf; got {epsilon}")
    return checked


def check_delta(delta: float) -> float:
    """Return delta as a float; raise TypeError or ValueError unless it is in [0, 1)."""
    checked = check_real("delta", delta, ">= 0 and < 1")
    if not 0 <= checked < 1:
        raise ValueError(f"delta must be >= 0 and < 1; got {delta}")
    return checked


# --- events -------------------------------------------------------------------------------------------


def _repeat(event, steps):
    from dp_accounting import SelfComposedDpEvent

    return event if steps == 1 else SelfComposedDpEvent(event, steps)


def gaussian_event(noise_multiplier: float, steps: int = 1, sampling_rate: float = 1.0) -> Any:
    """Describe `steps` adaptive releases through the (Poisson-subsampled) Gaussian mechanism.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the L2 sensitivity; 0 means no noise.
    steps : int, default=1
        Number of releases.
    sampling_rate : float, default=1.0
        Probability with which each record joins each release, independently (Poisson sampling). Values
        below 1 are for add-remove adjacency only: replacing a sampled record is a different pair of laws.

    Returns
    -------
    event : dp_accounting.DpEvent
        A release without noise is a non-private event.

    Raises
    ------
    ValueError
        If `steps`, `sampling_rate` or the multiplier is outside its range.
    """
    from dp_accounting import GaussianDpEvent, NonPrivateDpEvent, NoOpDpEvent, PoissonSampledDpEvent

    sigma, steps = check_nonnegative("noise_multiplier", noise_multiplier), check_steps(steps)
    rate = check_real("sampling_rate", sampling_rate, "> 0 and <= 1")
    if not 0 < rate <= 1:
        raise ValueError(f"sampling_rate must be > 0 and <= 1; got {sampling_rate}")
    if sigma == 0:
        return NonPrivateDpEvent()
    if math.isinf(sigma):
        return NoOpDpEvent()
    event = GaussianDpEvent(sigma)
    return _repeat(event if rate == 1 else PoissonSampledDpEvent(rate, event), steps)


def laplace_event(scale: float, steps: int = 1) -> Any:
    """Describe `steps` adaptive releases through the (discrete) Laplace mechanism.

    Parameters
    ----------
    scale : float
        Scale of the noise over the L1 sensitivity; 0 means no noise.
    steps : int, default=1
        Number of releases.

    Returns
    -------
    event : dp_accounting.DpEvent
        A pure event of epsilon 1 / `scale` per step.
    """
    scale = check_nonnegative("scale", scale)
    return pure_event(1 / scale if scale else math.inf, steps)


def pure_event(epsilon: float, steps: int = 1) -> Any:
    """Describe `steps` adaptive mechanisms, each of them `epsilon`-differentially private.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of one step; inf means no privacy.
    steps : int, default=1
        Number of mechanisms.

    Returns
    -------
    event : dp_accounting.DpEvent
        Discrete Laplace noise of parameter `epsilon` on an integer of sensitivity 1. Its two worst outcomes
        form randomized response, which dominates every `epsilon`-private mechanism [1]_.

    References
    ----------
    .. [1] P. Kairouz, S. Oh, P. Viswanath, "The composition theorem for differential privacy", IEEE Trans.
       Inf. Theory 63(6), 2017, Theorem 3.3.
    """
    from dp_accounting import NonPrivateDpEvent, NoOpDpEvent
    from dp_accounting.dp_event import DiscreteLaplaceDpEvent

    epsilon, steps = check_nonnegative("epsilon", epsilon), check_steps(steps)
    if math.isinf(epsilon):
        return NonPrivateDpEvent()
    return _repeat(DiscreteLaplaceDpEvent(epsilon, 1), steps) if epsilon else NoOpDpEvent()


def zcdp_event(rho: float) -> Any:
    """Describe a mechanism that is `rho`-zero-concentrated differentially private.

    Parameters
    ----------
    rho : float
        For draws of bounded range eta, eta ** 2 / 8; inf means no privacy.

    Returns
    -------
    event : dp_accounting.DpEvent
        Infinite `rho` is a non-private event.
    """
    from dp_accounting import NonPrivateDpEvent, NoOpDpEvent
    from dp_accounting.dp_event import ZCDpEvent

    rho = check_nonnegative("rho", rho)
    if math.isinf(rho):
        return NonPrivateDpEvent()
    return ZCDpEvent(rho) if rho else NoOpDpEvent()


def bounded_range_event(eta: float, steps: int = 1) -> Any:
    """Describe `steps` adaptive draws of bounded range: log-ratios on neighbours differ by at most `eta`.

    Such a draw is `eta`-private, and rho-zero-concentrated private with rho = ln((e^eta - 1) / eta) - 1 + eta / (e^eta
    - 1), the largest Kullback-Leibler divergence of such a pair (doc/theory/hdp.rst, Lemma 3). That is below eta^2 / 8
    (Dong, Durfee and Rogers, ICML 2020; Durfee and Rogers, NeurIPS 2019), and far below it for large `eta`: 6.698 and
    12.5 at eta = 10.
    """
    eta, steps = check_nonnegative("eta", eta), check_steps(steps)
    rho = eta * eta / 8
    if 0.01 < eta < math.inf:  # below it the formula would cancel
        odds = -expm1(-eta)  # 1 - e^-eta
        rho = min(rho, (eta + log(odds / eta) - 1 + eta * exp(-eta) / odds) * (1 + 2.0**-30))
    return zcdp_event(steps * rho)


def selection_event(event: Any, mean_runs: float, shape: float = 1.0) -> Any:
    """Describe a random number of runs of a mechanism, of mean above 1, of which only the best is released.

    One run's event includes the score by which runs are compared. `shape` is of the law of their number: 0 logarithmic,
    1 geometric, any other finite number a truncated negative binomial, inf Poisson. The cost of the law itself grows
    with it, its spread falls. Source: Papernot and Steinke, ICLR 2022, Theorems 2 and 6.
    """
    from dp_accounting import NonPrivateDpEvent
    from dp_accounting.dp_event import RepeatAndSelectDpEvent

    mean, shape = check_real("mean_runs", mean_runs, "> 1 and finite"), check_nonnegative("shape", shape)
    if not 1 < mean < math.inf:
        raise ValueError(f"mean_runs must be > 1 and finite; got {mean_runs}")
    if any(isinstance(leaf, NonPrivateDpEvent) for leaf, _ in leaves_of(event)):
        return NonPrivateDpEvent()
    return RepeatAndSelectDpEvent(event, mean, shape)


NONNEGATIVE = ">= 0", lambda value: value >= 0
RANGES = {  # of the numbers of dp-accounting's events, which check none
    "GaussianDpEvent": [("noise_multiplier", *NONNEGATIVE)],
    "LaplaceDpEvent": [("noise_multiplier", *NONNEGATIVE)],
    "DiscreteLaplaceDpEvent": [("noise_parameter", *NONNEGATIVE), ("sensitivity", *NONNEGATIVE)],
    "ZCDpEvent": [("rho", *NONNEGATIVE), ("xi", *NONNEGATIVE)],
    "PoissonSampledDpEvent": [("sampling_probability", ">= 0 and <= 1", lambda value: 0 <= value <= 1)],
    "RepeatAndSelectDpEvent": [("mean", "> 1", lambda value: value > 1), ("shape", *NONNEGATIVE)],
    "SelfComposedDpEvent": [("count", "an integer >= 0", lambda value: isinstance(value, Integral) and value >= 0)],
}


def leaves_of(event, count=1):
    """Yield (elementary event, count) pairs of a composition; raise ValueError for a number out of its range."""
    kind = type(event).__name__
    for name, allowed, fits in RANGES.get(kind, ()):
        value = getattr(event, name)
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or not fits(value):  # not of NaN
            raise ValueError(f"{name} of the event {kind} must be {allowed}; got {value!r}")
        if not is_within_floats(value):
            raise ValueError(f"{name} of the event {kind} must be {allowed}; got a number that no float holds")
    if kind == "SelfComposedDpEvent":
        check_few(count * event.count)
        yield from leaves_of(event.event, count * int(event.count))
    elif kind == "PoissonSampledDpEvent":
        for _ in leaves_of(event.event):
            pass
        yield event, count
    elif kind == "ComposedDpEvent":
        for part in event.events:
            yield from leaves_of(part, count)
    elif count and kind != "NoOpDpEvent":
        yield event, count


def gaussian_part(event: Any) -> tuple[float, Any]:
    """Split a composition into its plain Gaussian releases, which amount to one, and the rest.

    Returns the noise multiplier of that one release, inf if there is none, and an event of everything else.
    """
    multiplier, rest = math.inf, []
    for leaf, count in leaves_of(event):
        if type(leaf).__name__ != "GaussianDpEvent":
            rest.append(_repeat(leaf, count))
        elif count == 1 and math.isinf(multiplier):
            multiplier = leaf.noise_multiplier  # as it is
        else:
            here = leaf.noise_multiplier / math.sqrt(count)
            multiplier = 1 / math.sqrt(1 / multiplier / multiplier + 1 / here / here)
    return multiplier, compose_events(rest)


def compose_events(events: Iterable[Any]) -> Any:
    """Describe the adaptive composition of several events: canonical and hashable, equal ones are grouped."""
    from dp_accounting import ComposedDpEvent, NonPrivateDpEvent, NoOpDpEvent

    counts = {}
    for event in events:
        for leaf, count in leaves_of(event):
            counts[leaf] = counts.get(leaf, 0) + count
            check_few(counts[leaf])
    if NonPrivateDpEvent() in counts:
        return NonPrivateDpEvent()
    grouped = tuple(_repeat(leaf, count) for leaf, count in counts.items())
    return ComposedDpEvent(grouped) if len(grouped) > 1 else grouped[0] if grouped else NoOpDpEvent()


def freeze_event(event):
    """Return the same event with tuples for lists, so that it can be hashed."""
    if isinstance(event, (list, tuple)):
        return tuple(freeze_event(item) for item in event)
    if not hasattr(event, "__attrs_attrs__"):
        return event
    fields = {field.name: freeze_event(getattr(event, field.name)) for field in event.__attrs_attrs__}
    return type(event)(**fields)


def group_event(event, size):
    """Return the event as `size` records together see it, or None where no exact rule is used.

    The sensitivity of a Gaussian release grows `size`-fold, pure epsilon `size`-fold, rho `size` ** 2-fold.
    """
    from dp_accounting import NonPrivateDpEvent

    parts = []
    for leaf, count in leaves_of(event):
        kind = type(leaf).__name__
        if kind == "GaussianDpEvent":
            parts.append(gaussian_event(leaf.noise_multiplier / size, count))
        elif kind == "DiscreteLaplaceDpEvent":
            parts.append(pure_event(float(size) * leaf.noise_parameter * leaf.sensitivity, count))
        elif kind == "ZCDpEvent" and leaf.xi == 0:
            parts.append(_repeat(zcdp_event(size**2 * leaf.rho), count))
        elif kind == "NonPrivateDpEvent":
            parts.append(NonPrivateDpEvent())
        else:
            return None
    return compose_events(parts)


def number_to_json(value):
    """Write an infinite number as a string: JSON has no infinity."""
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def number_from_json(value):
    """Undo `number_to_json`."""
    return math.inf if value == "inf" else value


def event_to_json(event):
    """Describe an event by plain dicts, lists, numbers and strings."""
    if isinstance(event, (list, tuple)):
        return [event_to_json(item) for item in event]
    if not hasattr(event, "__attrs_attrs__"):
        return number_to_json(event)
    fields = {field.name: event_to_json(getattr(event, field.name)) for field in event.__attrs_attrs__}
    return {"type": type(event).__name__, **fields}


def event_from_json(data):
    """Undo `event_to_json`; only event classes of dp-accounting are ever built."""
    from dp_accounting import DpEvent, dp_event

    if isinstance(data, list):
        return tuple(event_from_json(item) for item in data)
    if not isinstance(data, dict):
        return number_from_json(data)
    name = data.get("type")
    kind = getattr(dp_event, name, None) if isinstance(name, str) else None
    if not (isinstance(kind, type) and issubclass(kind, DpEvent)):
        raise ValueError(f"the type of an event must be the name of a dp-accounting event; got {name!r}")
    try:
        return kind(**{key: event_from_json(value) for key, value in data.items() if key != "type"})
    except TypeError as error:
        raise ValueError(f"the fields of the event {name} do not fit: {error}") from None
