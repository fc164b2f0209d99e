"""A privacy guarantee as a value: what is protected, how well, and on what assumptions."""

import json
import math
from dataclasses import dataclass, field, fields, replace

from skdplda._arithmetic import expm1
from skdplda.exceptions import IncompatibleGuaranteeError
from skdplda.privacy._accounting import delta_of, epsilon_of, epsilon_with_sampler_error, parts_of
from skdplda.privacy._events import (
    MOST_STEPS,
    add_up,
    check_nonnegative,
    check_real,
    compose_events,
    event_from_json,
    event_to_json,
    freeze_event,
    group_event,
    leaves_of,
    number_from_json,
    number_to_json,
)
from skdplda.privacy._statement import mechanisms_of, round_up, statement, statement_html
from skdplda.privacy._units import Adjacency, PrivacyUnit, Status, TrustModel

FORMAT = "skdplda.PrivacyGuarantee"
VERSION = 1
COMPARED = ("unit", "adjacency", "trust")  # guarantees that differ here never compose
STRENGTH = list(Status)  # strongest first
MOST_DIGITS = 300  # of an integer in JSON: a float holds it
ROUNDING = 1e-9  # in relation to epsilon, that two ways of computing it may differ by
LOADED_ROUNDING = 2.0**-11  # the same, of versions that rounded what dp-accounting computes less far
BASIC = "basic composition: Dwork and Roth (2014), Theorem 3.16"
GROUPS = "group privacy: Vadhan (2017), Lemma 2.2"


@dataclass(frozen=True, kw_only=True, repr=False)
class PrivacyGuarantee:
    """A differential privacy guarantee and everything needed to state it, compare it and compose it.

    Immutable, hashable, picklable. `str` gives a statement to publish, `to_json` a file to keep. Notebooks show the
    statement as a table.

    Parameters
    ----------
    epsilon : float
        Privacy loss bound, at least 0; inf is no protection.
    delta : float, default=0.0
        In [0, 1].
    unit : {"document", "token", "user", "bit"}, default="document"
        What is protected.
    adjacency : {"add-remove", "replace"}, default="add-remove"
        How neighbouring data sets differ.
    trust : {"central", "local"}, default="central"
        Who sees raw text.
    status : {"proven", "claimed", "diagnostic"}, default="claimed"
        How much the numbers can be leaned on. Whoever says "proven" gives the event or the reference that proves it.
    reason : str, default=""
        Why a claimed guarantee fails, or what a diagnostic one measured.
    mechanism : str, default=""
        What draws the noise, in words. Guarantees that differ in it alone are equal.
    released : tuple of str, default=()
        The values that the guarantee covers.
    not_covered : tuple of str, default=()
        Values a reader might think covered, that are not.
    assumptions : tuple of str, default=()
        What must hold outside the mechanism.
    reference : str, default=""
        Where the theorem, or the claim, is printed.
    reviewed : str, default=""
        Who has checked theorem and code, other than their authors; "" for nobody. Guarantees that differ in it alone
        are equal.
    event : dp_accounting.DpEvent, default=None
        The mechanism in the sense of `gaussian_event`. With `event_delta` it must account for the whole of
        `epsilon` and `delta`, which is checked; leave it out when a part of them has no event.
    event_delta : float, default=0.0
        Delta of what the event leaves out, such as words that only one unit uses: with at most this probability
        more is seen than the event accounts for.

    Raises
    ------
    ValueError
        If a number is out of range, a word is not in its vocabulary, no accounting is known for the event, the event
        costs more than `epsilon` at `delta`, a Poisson-sampled event meets replace adjacency, for which its
        accounting does not hold, or a finite epsilon is "proven" by neither event nor reference.

    References
    ----------
    .. [1] National Institute of Standards and Technology, "Guidelines for evaluating differential privacy
       guarantees", SP 800-226, 2025.

    Examples
    --------
    >>> from skdplda.privacy import PrivacyGuarantee, gaussian_event
    >>> g = PrivacyGuarantee(epsilon=1.0, delta=1e-5, status="proven", event=gaussian_event(3.8))
    >>> g
    PrivacyGuarantee(epsilon=1, delta=1e-5, document, add-remove, central, proven)
    >>> g.compose(g).epsilon < 2.0
    True
    """

    epsilon: float
    delta: float = 0.0
    unit: PrivacyUnit = PrivacyUnit.DOCUMENT
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    trust: TrustModel = TrustModel.CENTRAL
    status: Status = Status.CLAIMED
    reason: str = ""
    mechanism: str = field(default="", compare=False)
    released: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    reference: str = ""
    reviewed: str = field(default="", compare=False)
    event: object = None
    event_delta: float = 0.0

    def __post_init__(self):
        delta = check_real("delta", self.delta, ">= 0 and <= 1")
        if not 0 <= delta <= 1:
            raise ValueError(f"delta must be >= 0 and <= 1; got {self.delta}")
        coerced = {
            "epsilon": check_nonnegative("epsilon", self.epsilon),
            "delta": delta,
            "unit": PrivacyUnit(self.unit),
            "adjacency": Adjacency(self.adjacency),
            "trust": TrustModel(self.trust),
            "status": Status(self.status),
            "event": freeze_event(self.event),
            "event_delta": check_real("event_delta", self.event_delta, ">= 0 and <= delta"),
        }
        for name in ("reason", "mechanism", "reference", "reviewed"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a string; got {getattr(self, name)!r}")
        for name in ("released", "not_covered", "assumptions"):
            coerced[name] = _strings(name, getattr(self, name))
        for name, value in coerced.items():
            object.__setattr__(self, name, value)
        if not 0 <= self.event_delta <= self.delta:
            raise ValueError(f"event_delta must be >= 0 and <= delta={self.delta}; got {self.event_delta}")
        if self.event is not None:
            _check_event(self.event, self.adjacency)
            self._check_numbers()
        elif self.status == Status.PROVEN and not self.reference and math.isfinite(self.epsilon):
            raise ValueError(
                "a guarantee with status 'proven' must have the event that it is computed from, or the reference of"
                f" its theorem; got neither for epsilon={self.epsilon:g}"
            )

    @classmethod
    def from_event(cls, event: object, delta: float, **fields: object) -> "PrivacyGuarantee":
        """Make a guarantee of what an event of dp-accounting costs.

        Parameters
        ----------
        event : dp_accounting.DpEvent
            Of the whole release, for add-remove adjacency.
        delta : float
            In [0, 1].
        **fields
            The other parameters of the class, such as `unit`, `status` and `released`.

        Returns
        -------
        guarantee : PrivacyGuarantee
            Its `epsilon` is the least that is known to hold at `delta`.

        Raises
        ------
        ValueError
            If no accounting is known for the event, or a number or word is not allowed.

        Examples
        --------
        >>> from skdplda.privacy import PrivacyGuarantee, gaussian_event
        >>> guarantee = PrivacyGuarantee.from_event(gaussian_event(5.0), 1e-6, status="proven", unit="user")
        >>> guarantee
        PrivacyGuarantee(epsilon=0.8342, delta=1e-6, user, add-remove, central, proven)
        """
        left = check_real("delta", delta, ">= 0 and <= 1") - fields.get("event_delta", 0.0)
        if not 0 <= left <= 1:
            raise ValueError(f"delta must be >= event_delta and <= 1; got {delta}")
        return cls(epsilon=epsilon_of(event, left), delta=delta, event=event, **fields)

    def _check_numbers(self):
        """Refuse an epsilon that the event exceeds: what is stated is computed from what was done."""
        if math.isfinite(self.epsilon) and self.delta < 1:
            true = epsilon_of(self.event, self.delta - self.event_delta)
            if true > self.epsilon * (1 + ROUNDING):
                raise ValueError(
                    f"epsilon must be at least what the event costs at delta={self.delta}: {round_up(true, 6)}; got"
                    f" {self.epsilon}"
                )

    @property
    def caption(self) -> str:
        """The numbers in a few words, for captions; epsilon and delta are rounded up."""
        if math.isinf(self.epsilon) or self.delta >= 1:
            return "no privacy protection"
        status = "" if self.status == Status.PROVEN else f", {self.status}"
        return f"epsilon = {round_up(self.epsilon)}, delta = {round_up(self.delta)} per {self.unit}{status}"

    def epsilon_at(self, delta: float) -> float:
        """Compute the epsilon that the mechanism gives at another delta.

        Parameters
        ----------
        delta : float
            In [0, 1].

        Returns
        -------
        epsilon : float
            An upper bound; inf if the mechanism guarantees nothing at this `delta`.

        Raises
        ------
        ValueError
            If the guarantee carries no event, or `delta` is out of range.
        """
        left = delta if self.event_delta == 0 else delta - self.event_delta
        epsilon = epsilon_of(self._known_event(), left) if left >= 0 else math.inf
        return min(self.epsilon, epsilon) if delta >= self.delta else epsilon

    def delta_at(self, epsilon: float) -> float:
        """Compute the delta that the mechanism gives at another epsilon.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Returns
        -------
        delta : float
            An upper bound.

        Raises
        ------
        ValueError
            If the guarantee carries no event, or `epsilon` is out of range.
        """
        delta = min(1.0, delta_of(self._known_event(), epsilon) + self.event_delta)
        return min(self.delta, delta) if epsilon >= self.epsilon else delta

    def compose(self, *others: "PrivacyGuarantee") -> "PrivacyGuarantee":
        """Compose with guarantees for further releases from the same data.

        Parameters
        ----------
        *others : PrivacyGuarantee
            May have been chosen after seeing the earlier releases.

        Returns
        -------
        guarantee : PrivacyGuarantee
            Its delta is the sum of the deltas. Its epsilon is that of all events accounted jointly, plus
            the epsilons of the guarantees without one; it is never larger than the sum of the epsilons.
            Its status is the weakest.

        Raises
        ------
        IncompatibleGuaranteeError
            If unit, adjacency or trust model differ.
        """
        if not others:
            return self
        guarantees = (self, *others)
        return compose_at(guarantees, min(1.0, add_up(g.delta for g in guarantees)))

    def for_group(self, size: int) -> "PrivacyGuarantee":
        """Compute the guarantee of several units together, for instance all documents of one author.

        Parameters
        ----------
        size : int
            Number of units that may change together.

        Returns
        -------
        guarantee : PrivacyGuarantee
            For Gaussian, Laplace and zCDP events without `event_delta`, the exact scaling of the event at the same
            delta. The noise has no end, so that it hides a group as its law says (doc/theory/noise.rst, Theorem 5).
            Otherwise epsilon * size and delta * (e^(size epsilon) - 1) / (e^epsilon - 1) [1]_, without an
            event. The unit stays; the size is among the assumptions.

        Raises
        ------
        ValueError
            If `size` is not an integer of at least 1.

        References
        ----------
        .. [1] S. Vadhan, "The complexity of differential privacy", 2017, Lemma 2.2.
        """
        if isinstance(size, bool) or not hasattr(size, "__index__") or not 1 <= size <= MOST_STEPS:
            raise ValueError(f"size must be an integer >= 1, and at most 2**53; got {size!r}")
        size = int(size)
        if size == 1:
            return self
        event = group_event(self.event, size) if self.event is not None and not self.event_delta else None
        simple_delta = _group_delta(self.epsilon, self.delta, size)
        if event is None:
            epsilon, delta = self.epsilon * size, simple_delta
        else:
            epsilon, delta = epsilon_with_sampler_error(event, self.delta), self.delta
            if simple_delta <= self.delta and self.epsilon * size < epsilon:
                epsilon, event = self.epsilon * size, None
        reference = self.reference or ("" if event else GROUPS)
        note = f"the numbers are for a group of {size} units ({self.unit}) that change together"
        return replace(
            self,
            epsilon=epsilon,
            delta=delta,
            event=event,
            event_delta=0.0,
            reference=reference,
            assumptions=(*self.assumptions, note),
        )

    def to_json(self) -> str:
        """Write the guarantee, with its event, as JSON.

        Returns
        -------
        text : str
            Of a stated format and version; infinity is written as "inf".
        """
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        data["epsilon"] = number_to_json(self.epsilon)
        data["event"] = event_to_json(self.event)
        return json.dumps({"format": FORMAT, "version": VERSION, **data}, indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "PrivacyGuarantee":
        """Read what `to_json` has written.

        Parameters
        ----------
        text : str
            JSON of a guarantee.

        Returns
        -------
        guarantee : PrivacyGuarantee

        Raises
        ------
        ValueError
            If the text is not JSON, not a guarantee, or of a newer version, or the event costs more than epsilon. What
            another version rounded less far is rounded up as here.
        """
        data = read_json(text, FORMAT, VERSION)
        names = {field.name for field in fields(cls)}
        if set(data) != names:
            raise ValueError(f"a guarantee must have the fields {sorted(names)}; got {sorted(data)}")
        try:
            event = event_from_json(data.pop("event"))
            epsilon = number_from_json(data.pop("epsilon"))
            rest = cls(epsilon=math.inf, event=event, **data)  # checks all but epsilon
            if event is not None and rest.delta < 1:
                true = epsilon_of(event, rest.delta - rest.event_delta)
                stated = check_nonnegative("epsilon", epsilon)
                epsilon = true if stated < true <= stated * (1 + LOADED_ROUNDING) else epsilon
            return cls(epsilon=epsilon, event=event, **data)
        except (TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"the fields of this guarantee do not fit: {error}") from None

    def _known_event(self):
        if self.event is None:
            raise ValueError(
                "this guarantee holds at its own epsilon and delta only: it carries no event, so the rest of "
                "its privacy profile is not known"
            )
        return self.event

    def __str__(self):
        return statement(self)

    def _repr_html_(self):
        return statement_html(self)

    def __repr__(self):
        words = ", ".join([self.unit, self.adjacency, self.trust, self.status])
        return f"PrivacyGuarantee(epsilon={round_up(self.epsilon)}, delta={round_up(self.delta)}, {words})"


def doubted(guarantee: PrivacyGuarantee, *reasons: str) -> PrivacyGuarantee:
    """Return a guarantee that is claimed at most, for its own reason and for these."""
    status = Status.CLAIMED if guarantee.status == Status.PROVEN else guarantee.status
    return replace(guarantee, status=status, reason="; ".join(filter(None, (guarantee.reason, *reasons))))


ONE_EACH = "Keep a ledger for each"
ADVICE = {
    "unit": f"Give the user of each document (groups, --users) to all fits or to none. {ONE_EACH} unit.",
    "adjacency": f"{ONE_EACH} of the two.",
    "trust": f"{ONE_EACH} model of trust.",
}


def check_compatible(first, *others):
    """Raise IncompatibleGuaranteeError unless unit, adjacency and trust model agree."""
    for other in others:
        for name in COMPARED:
            mine, theirs = getattr(first, name), getattr(other, name)
            if mine != theirs:
                raise IncompatibleGuaranteeError(
                    f"guarantees with {name} {str(mine)!r} and {str(theirs)!r} cannot be composed: neither implies"
                    f" the other. {ADVICE[name]}"
                )


def compose_at(guarantees, delta):
    """Return the joint guarantee of several at a delta that need not be the sum of theirs."""
    check_compatible(*guarantees)
    epsilon, event = joint_epsilon(guarantees, delta), _joint_event(guarantees)
    event_delta = 0.0 if event is None else add_up(g.event_delta for g in guarantees)
    if event is not None and not (event_delta <= delta and epsilon_of(event, delta - event_delta) <= epsilon):
        event, event_delta = None, 0.0  # the sum of the parts is less
    references = _union([g.reference] for g in guarantees) or (() if event else (BASIC,))
    return PrivacyGuarantee(
        epsilon=epsilon,
        delta=delta,
        unit=guarantees[0].unit,
        adjacency=guarantees[0].adjacency,
        trust=guarantees[0].trust,
        status=max((g.status for g in guarantees), key=STRENGTH.index),
        reason="; ".join(_union([g.reason] for g in guarantees)),
        mechanism=mechanisms_of([g.mechanism for g in guarantees]),
        released=_union(g.released for g in guarantees),
        not_covered=_union(g.not_covered for g in guarantees),
        assumptions=_union(g.assumptions for g in guarantees),
        reference="; ".join(references),
        reviewed=guarantees[0].reviewed if len({g.reviewed for g in guarantees}) == 1 else "",
        event=event,
        event_delta=event_delta,
    )


def joint_epsilon(guarantees, delta):
    """Smallest known epsilon of a composition at `delta`; inf if its parts already exceed that delta.

    Parts without an event add their epsilon and take their delta, and so does what an event leaves out; the events
    share what is left of it.
    """
    parts = [g for g in guarantees if g.event is not None]
    rest = [g for g in guarantees if g.event is None]
    bounds = [math.inf]
    if add_up(g.delta for g in guarantees) <= delta or delta >= 1:
        bounds.append(add_up(g.epsilon for g in guarantees))
    left = math.fsum([delta, *(-g.delta for g in rest), *(-g.event_delta for g in parts)])  # rounded once
    event = _joint_event(parts)
    if event is not None and left >= 0 and math.isfinite(epsilon := add_up(g.epsilon for g in rest)):
        bounds.append(epsilon + epsilon_of(event, left))
    return min(bounds)


def _joint_event(guarantees):
    """Return the event of several guarantees; None if one has none, or together they are more than is accounted for."""
    if not guarantees or any(g.event is None for g in guarantees):
        return None
    try:
        event = compose_events([g.event for g in guarantees])
        parts_of(event)
    except ValueError:  # too many different searches, or steps; each guarantee has been checked
        return None
    return event


def read_json(text, form, version):
    """Parse JSON that states its format and version; return the rest of it."""
    try:
        data = json.loads(text, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not JSON: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this JSON cannot be read: {error}") from None
    if not isinstance(data, dict) or data.get("format") != form:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise ValueError(f"the JSON must have the format {form!r}; got {found!r}")
    if data.get("version") != version:
        raise ValueError(f"the version of {form} must be {version}; got {data.get('version')!r}")
    return {key: value for key, value in data.items() if key not in ("format", "version")}


def _integer(digits):
    """Read an integer of JSON; ValueError for one that no float can hold."""
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"an integer has {len(digits)} digits; at most {MOST_DIGITS} are allowed")
    return int(digits)


def _group_delta(epsilon, delta, size):
    """Delta of a group: a geometric sum, rounded outwards."""
    if delta == 0 or math.isinf(epsilon):
        return delta
    total = size if epsilon == 0 else _growth(epsilon, size)
    return min(1.0, delta * total * (1 + 2.0**-40))


def _growth(epsilon, size):
    """Sum of e^(i epsilon) for i < size; inf where it overflows."""
    if size * epsilon > 700:
        return math.inf
    return expm1(float(size * epsilon)) / expm1(float(epsilon))


def _strings(name, values):
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{name} must be a sequence of strings; got {values!r}")
    return tuple(values)


def _union(groups):
    """Distinct non-empty strings, in order of appearance."""
    return tuple(dict.fromkeys(item for group in groups for item in group if item))


def _check_event(event, adjacency):
    from dp_accounting import DpEvent

    if not isinstance(event, DpEvent):
        raise TypeError(f"event must be a dp-accounting event or None; got {event!r}")
    parts_of(event)  # raises where no accounting is known
    if adjacency == Adjacency.REPLACE and _is_sampled(event):
        raise ValueError("a Poisson-sampled event has adjacency 'add-remove' only; got adjacency 'replace'")


def _is_sampled(event):
    """Whether a part of an event, in a search too, is Poisson-sampled."""
    return any(
        getattr(leaf, "sampling_probability", 1) < 1 or (hasattr(leaf, "shape") and _is_sampled(leaf.event))
        for leaf, _ in leaves_of(event)
    )
