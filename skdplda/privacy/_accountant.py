"""The caller's ledger of privacy spending."""

import json
import math
import os
import unicodedata
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from skdplda._checks import is_integer
from skdplda._types import Iterator, PathLike
from skdplda.exceptions import BudgetExceededError, UnreachableLedgerError
from skdplda.privacy._events import MOST_STEPS, check_delta, check_epsilon, number_from_json, number_to_json
from skdplda.privacy._filter import RULES, Filter, choose_filter
from skdplda.privacy._guarantee import PrivacyGuarantee, check_compatible, compose_at, joint_epsilon, read_json
from skdplda.privacy._ledger_file import LedgerFile, pack, unpack
from skdplda.privacy._open_ledgers import close_block, find_open_ledger, label_of, open_block, part_of
from skdplda.privacy._statement import round_up
from skdplda.privacy._units import Adjacency, PrivacyUnit, Status, TrustModel

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "skdplda.PrivacyAccountant"
VERSION = 3
PLANNED = "What is planned in advance costs less as one composed guarantee"
ADVICE = {
    "basic": "",
    "gaussian": ". The ledger adds up the precision of Gaussian noise: a smaller epsilon may fit. For noise of several"
    f" kinds begin a ledger with rule='renyi', or 'basic'. {PLANNED}",
    "renyi": ". The ledger adds up Renyi divergences: a smaller epsilon may fit, or begin a ledger with rule='basic'."
    f" {PLANNED}",
}
TEXTS = ("label", "date", "fitted", "run", "part")  # of an entry
PARTS = "skdplda theory guide, the ledger, Theorem 5"


class LedgerEntry(NamedTuple):
    """One line of a ledger.

    Parameters
    ----------
    label : str or None
        The name given to the spend.
    guarantee : PrivacyGuarantee
        What was spent.
    date : str, default=None
        When, in UTC, as "2030-01-31T12:00:00+00:00".
    fitted : str, default=None
        What was fitted, with its public parameters.
    run : str, default=None
        Name of the run that was charged, by which a resumed one is known.
    part : str, default=None
        The part of the data that was read; None for all of it, or for data of which the ledger knows nothing.
    """

    label: str | None
    guarantee: PrivacyGuarantee
    date: str | None = None
    fitted: str | None = None
    run: str | None = None
    part: str | None = None


class PrivacyAccountant:
    """A privacy budget and what has been spent of it, over all releases from one data set.

    The ledger belongs to the caller, beside the data. It is never a parameter of an estimator:
    `sklearn.base.clone` deep-copies parameters, so that every cross-validation fold would spend from a copy
    and the ledger would stay at zero. For the same reason it refuses to be copied or pickled.

    A spend counts from the first release on: an interrupted fit has spent its whole guarantee.

    In a `with` block, each fit of this process charges the ledger, in whatever thread it runs. A fit in a worker
    process cannot reach a ledger in memory, and refuses before it reads data; `PrivacyAccountant.open` gives one in a
    file, which processes share. A thread that enters a ledger of its own charges that one.

    Parameters
    ----------
    epsilon : float
        Total budget; inf only keeps the books.
    delta : float, default=0.0
        Total delta, in [0, 1).
    unit : {"document", "token", "user", "bit"}, default="document"
        The unit of every guarantee in the ledger.
    adjacency : {"add-remove", "replace"}, default="add-remove"
        The adjacency of every guarantee in the ledger.
    trust : {"central", "local"}, default="central"
        The trust model of every guarantee in the ledger.
    accept_claimed : bool, default=False
        Whether guarantees that are not proven may be spent.
    rule : {"auto", "basic", "gaussian", "renyi"}, default="auto"
        What is added up: epsilons and deltas; the precisions of Gaussian noise (a guarantee without such noise counts
        as much as its epsilon allows); or Renyi divergences of one order. "auto" takes the rule that affords the
        first guarantee most often, and keeps it. Beside "gaussian" it keeps "renyi", with an eighth of delta, at whose
        prices a pure epsilon, or sampled noise, costs a third to a half as much; not where words come first.
    reserve : float, default=None
        Part of delta, for "gaussian" and "renyi", kept for what an event leaves out (`event_delta`), and for
        the delta of guarantees that the rule knows by epsilon and delta only. None: a quarter of delta, or as much as
        the first guarantee needs if that is more; less if the first guarantee could not be afforded with it.
    max_parts : int, default=None
        For data in parts, such as months, each spent on within `part`: the most parts in which one unit occurs, which
        you assert. A unit then pays for the dearest so many parts, and for what is spent outside of them. None: for
        all. Only for a finite budget of "add-remove" adjacency.

    Raises
    ------
    ValueError
        If `epsilon`, `delta`, `rule`, `reserve` or `max_parts` is not as described.

    Notes
    -----
    The budget is a filter for one pair (epsilon, delta): everything spent satisfies it together, however each spend
    was chosen after seeing the releases before it (doc/theory/ledger.rst). For that, the rule and its parts are fixed
    by the first spend that costs anything. Releases that are planned in advance may cost less together: spend what
    `PrivacyGuarantee.compose` makes of them, in one line. Parts of delta that are kept for other kinds of noise cost a
    ledger of Gaussian noise alone 1 to 3 percent of epsilon; `rule="gaussian", reserve=0.0` costs nothing.

    Examples
    --------
    >>> from skdplda.privacy import PrivacyAccountant, PrivacyGuarantee, pure_event
    >>> accountant = PrivacyAccountant(epsilon=1.0)
    >>> words = PrivacyGuarantee(epsilon=0.75, status="proven", event=pure_event(0.75))
    >>> topics = PrivacyGuarantee(epsilon=0.5, status="proven", event=pure_event(0.5))
    >>> accountant.spend(words, label="vocabulary")
    >>> accountant.remaining_epsilon
    0.25
    >>> accountant.spend(topics, label="topics")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    skdplda.exceptions.BudgetExceededError: the budget is epsilon=1.0, delta=0.0; ...
    """

    _address = ""  # of a ledger in a file

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        unit: Literal["document", "token", "user", "bit"] = "document",
        adjacency: Literal["add-remove", "replace"] = "add-remove",
        trust: Literal["central", "local"] = "central",
        accept_claimed: bool = False,
        rule: Literal["auto", "basic", "gaussian", "renyi"] = "auto",
        reserve: float | None = None,
        max_parts: int | None = None,
    ) -> None:
        self._epsilon = check_epsilon(epsilon)
        self._delta = check_delta(delta)
        self._unit = PrivacyUnit(unit)
        self._adjacency = Adjacency(adjacency)
        self._trust = TrustModel(trust)
        if not isinstance(accept_claimed, bool):
            raise TypeError(f"accept_claimed must be True or False; got {accept_claimed!r}")
        self._accept_claimed = accept_claimed
        if rule not in ("auto", *RULES):
            raise ValueError(f"rule must be one of {('auto', *RULES)}; got {rule!r}")
        self._kind_of_rule = rule
        self._reserve = None if reserve is None else check_delta(reserve)
        if reserve is not None and not self._reserve <= self._delta:
            raise ValueError(f"reserve must be None or at most delta={delta}; got {reserve}")
        if max_parts is not None and not (is_integer(max_parts) and 1 <= max_parts <= MOST_STEPS):
            raise ValueError(
                f"max_parts must be None or an integer of at least 1, the most parts of one unit; got {max_parts!r}"
            )
        if max_parts is not None and (self._adjacency != Adjacency.ADD_REMOVE or math.isinf(self._epsilon)):
            raise ValueError(
                "max_parts needs adjacency 'add-remove' and a finite epsilon: a unit that is replaced may leave some"
                f" parts and enter others; got adjacency={str(self._adjacency)!r}, epsilon={epsilon}"
            )
        self._max_parts = None if max_parts is None else int(max_parts)
        self._filter = None  # until the first spend that costs anything
        self._kept: tuple[LedgerEntry, ...] = ()
        self._steps: dict[str, str] = {}  # of streams: a digest of the sum that each had; of samples: their run
        self._lock = RLock()
        self._process = os.getpid()

    @classmethod
    def open(
        cls,
        path: PathLike,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        unit: Literal["document", "token", "user", "bit"] | None = None,
        adjacency: Literal["add-remove", "replace"] | None = None,
        trust: Literal["central", "local"] | None = None,
        accept_claimed: bool | None = None,
        rule: Literal["auto", "basic", "gaussian", "renyi"] | None = None,
        reserve: float | None = None,
        max_parts: int | None = None,
    ) -> "PrivacyAccountant":
        """Open a ledger in a file, or begin one; any number of processes may have it open.

        In a `with` block, fits in worker processes that are started there charge it too. The file is locked while it is
        read or written, and is on the disk before a fit forms its first release. Keep it where locks work: on a local
        disk, or a network file system that has them. It is written in place, and so keeps its owner, its mode and its
        hard links: a group that may write it can share it. Whoever can write the file can forge it, and who puts back
        an older copy forgets what was spent since.

        Parameters
        ----------
        path : str or path-like
            The file. A new one may be read and written by its owner only.
        epsilon : float, default=None
            Total budget. Needed to begin a ledger; None takes that of the file.
        delta, unit, adjacency, trust, accept_claimed, rule, reserve, max_parts : default=None
            As in the constructor; None for what the file says, and for the constructor's defaults in a new file.

        Returns
        -------
        accountant : PrivacyAccountant

        Raises
        ------
        ValueError
            If the file is damaged or of another kind, is missing and no `epsilon` was given, or says something else
            than the arguments; or if the path names a folder, or a file in a folder that is not there.

        Examples
        --------
        >>> import os, tempfile
        >>> from skdplda.privacy import PrivacyAccountant, PrivacyGuarantee, pure_event
        >>> path = os.path.join(tempfile.mkdtemp(), "ledger.json")
        >>> words = PrivacyGuarantee(epsilon=0.75, status="proven", event=pure_event(0.75))
        >>> PrivacyAccountant.open(path, epsilon=1.0).spend(words)
        >>> PrivacyAccountant.open(path).remaining_epsilon
        0.25
        """
        terms = {"unit": unit, "adjacency": adjacency, "trust": trust, "accept_claimed": accept_claimed}
        terms["max_parts"] = max_parts
        return FileAccountant(path, epsilon=epsilon, delta=delta, rule=rule, reserve=reserve, **terms)

    @property
    def epsilon(self) -> float:
        """Total budget."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """Total delta."""
        return self._delta

    @property
    def unit(self) -> PrivacyUnit:
        """Privacy unit of the ledger."""
        return self._unit

    @property
    def adjacency(self) -> Adjacency:
        """Adjacency of the ledger."""
        return self._adjacency

    @property
    def trust(self) -> TrustModel:
        """Trust model of the ledger."""
        return self._trust

    @property
    def max_parts(self) -> int | None:
        """The most parts of the data in which one unit occurs, as was asserted; None for all."""
        return self._max_parts

    @property
    def assertion(self) -> str | None:
        """What a ledger of parts assumes of the data, for readers; None of others."""
        if self._max_parts is None:
            return None
        return (
            f"one {self._unit} is in at most {self._max_parts} part{'s' * (self._max_parts > 1)} of the data; which"
            f" depends on no other {self._unit} but through what was released; what was spent on a part read nothing of"
            " another; and which parts there are, and what was spent on each, follows from releases and public values"
        )

    @property
    def ledger(self) -> tuple[LedgerEntry, ...]:
        """What was spent, in order."""
        return self._entries

    @property
    def total(self) -> PrivacyGuarantee | None:
        """Joint guarantee of everything spent, at the budget's delta, or None if nothing was.

        It accounts for all events jointly, as `PrivacyGuarantee.compose` does, and holds for costs that were fixed in
        advance. Where they were not, the budget holds. If no finite epsilon holds at the budget's delta, as in a ledger
        of epsilon inf, it is at the sum of the deltas. Where there are more parts than `max_parts`, it is what the
        ledger's rule says, if that is less.
        """
        entries = self._entries
        guarantees = [entry.guarantee for entry in entries]
        if not guarantees or (len(guarantees) == 1 and guarantees[0].delta == self._delta):
            return guarantees[0] if guarantees else None
        joint = compose_at(guarantees, self._delta)
        cost = math.inf if self._max_parts is None else self._cost(entries)
        if cost < joint.epsilon:
            asserted = (*joint.assumptions, self.assertion)
            references = "; ".join(filter(None, (joint.reference, PARTS)))
            joint = replace(
                joint, epsilon=cost, event=None, event_delta=0.0, reference=references, assumptions=asserted
            )
        if math.isinf(joint.epsilon):
            joint = guarantees[0].compose(*guarantees[1:])
        if len(guarantees) == 1:
            return joint
        fixed = f"what each release costs did not depend on earlier ones (else: {self._budget()}, by the ledger's rule)"
        return replace(joint, assumptions=(*joint.assumptions, fixed))

    @property
    def remaining_epsilon(self) -> float:
        """What the budget leaves at the ledger's delta.

        A guarantee of this epsilon and delta 0 always fits. Where noise is of the kind that the ledger's rule
        adds up, a larger one may fit too: ask `check`. So may one of a part that others are dearer than.
        """
        if math.isinf(self._epsilon):
            return self._epsilon
        entries, pure = self._entries, LedgerEntry(None, PrivacyGuarantee(epsilon=self._epsilon))
        found = self._filter_of([*entries, pure])
        if found.rules[0].name == "basic" and not entries:
            return self._epsilon
        if found.cost(entries, self._max_parts) > self._epsilon:
            return 0.0
        rest, step = found.rest(entries, self._max_parts), math.ulp(self._epsilon)
        while rest > 0 and self._cost([*entries, LedgerEntry(None, PrivacyGuarantee(epsilon=rest))]) > self._epsilon:
            rest, step = rest - step, 2 * step  # by rounding
        return max(0.0, rest)

    def to_frame(self) -> "pd.DataFrame":
        """Return the ledger as a table.

        Returns
        -------
        frame : pandas.DataFrame
            One row a spend, with its date, label and what was fitted, its own epsilon, delta and status, and
            `total_epsilon`: what it and those before it take of the budget's epsilon, at the budget's delta. With
            `max_parts` also its part.
        """
        import pandas as pd

        entries = self._entries
        guarantees = [entry.guarantee for entry in entries]
        if math.isinf(self._epsilon):
            totals = [joint_epsilon(guarantees[: n + 1], self._delta) for n in range(len(entries))]
        else:
            totals = [self._cost(entries[: n + 1]) for n in range(len(entries))]
        columns = {
            "date": pd.to_datetime(pd.Series([entry.date for entry in entries], dtype=object), utc=True),
            "label": pd.Series([entry.label for entry in entries], dtype=object),
            "fitted": pd.Series([entry.fitted for entry in entries], dtype=object),
            "epsilon": pd.Series([guarantee.epsilon for guarantee in guarantees], dtype=float),
            "delta": pd.Series([guarantee.delta for guarantee in guarantees], dtype=float),
            "status": pd.Series([str(guarantee.status) for guarantee in guarantees], dtype=object),
            "total_epsilon": pd.Series(totals, dtype=float),
        }
        if self._max_parts is not None:
            columns["part"] = pd.Series([entry.part for entry in entries], dtype=object)
        return pd.DataFrame(columns)

    @contextmanager
    def labelled(self, label: str) -> "Iterator[Self]":
        """Enter the ledger, as `with accountant:` does, and name what is spent in the block.

        Parameters
        ----------
        label : str
            The `label` of each entry that is given no other.

        Yields
        ------
        accountant : PrivacyAccountant
            The ledger.

        Raises
        ------
        TypeError
            If the label is not a string.
        UnreachableLedgerError
            If the ledger is in the memory of another process.

        Examples
        --------
        >>> from skdplda.privacy import PrivacyAccountant, PrivacyGuarantee, pure_event
        >>> with PrivacyAccountant(epsilon=1.0).labelled("topics of May") as accountant:
        ...     accountant.spend(PrivacyGuarantee(epsilon=0.75, status="proven", event=pure_event(0.75)))
        >>> accountant.to_frame()["label"].tolist()
        ['topics of May']
        """
        if not isinstance(label, str):
            raise TypeError(f"label must be a string; got {label!r}")
        with self._block(label, None):
            yield self

    @contextmanager
    def part(self, name: str, label: str | None = None) -> "Iterator[Self]":
        """Enter the ledger for fits that read one part of the data only, such as a month.

        Nothing can check it: that these fits read units of this part alone, that one unit is in at most `max_parts`
        parts, and that in which ones depends on no other unit but through what was released. So cut by each document's
        own date, not after every thousandth document, and take all months of the year, not those that have documents:
        which parts there are is public. What another thread or process charges without a block of its own counts as
        read from all; and a generator that opens a block is in the part of its last one.

        Parameters
        ----------
        name : str
            The part. One name is one part, in however many blocks; accents may be written either way (NFC).
        label : str, default=None
            As in `labelled`; None takes the name.

        Yields
        ------
        accountant : PrivacyAccountant
            The ledger.

        Raises
        ------
        TypeError
            If the name is not a string.
        UnreachableLedgerError
            If the ledger is in the memory of another process.
        ValueError
            If the ledger has no `max_parts`, the block is within one of another part, or the name is empty, has space
            around it or characters that cannot be printed.

        Examples
        --------
        >>> from skdplda.privacy import PrivacyAccountant, PrivacyGuarantee, pure_event
        >>> accountant = PrivacyAccountant(epsilon=1.0, max_parts=1)
        >>> for month in ["May", "June"]:
        ...     with accountant.part(month):
        ...         accountant.spend(PrivacyGuarantee(epsilon=0.75, status="proven", event=pure_event(0.75)))
        >>> accountant.remaining_epsilon
        0.25
        """
        if not isinstance(name, str):
            raise TypeError(f"name must be a string, such as str(month); got {name!r}")
        if self._max_parts is None:
            raise ValueError(
                "this ledger has no parts: how many of them a unit may be in must be asserted when it begins, by"
                " PrivacyAccountant(..., max_parts=...). Without, all releases add up"
            )
        name = _part_name(name)
        outer = part_of(self)
        if outer not in (None, name):
            raise ValueError(f"a block of part {name!r} must not be within one of part {outer!r}: leave that first")
        with self._block(name if label is None else label, name):
            yield self

    @contextmanager
    def _block(self, label, part):
        self._refuse_other_process()
        block = open_block(self, label, part)
        try:
            yield
        finally:
            close_block(self, block)

    def check(self, guarantee: PrivacyGuarantee, *others: PrivacyGuarantee) -> None:
        """Raise what `spend` would raise, and spend nothing.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            The cost of a release that has not happened yet.
        *others : PrivacyGuarantee
            The costs of releases that follow it.

        Raises
        ------
        BudgetExceededError
            If the budget does not cover it.
        IncompatibleGuaranteeError
            If its unit, adjacency or trust model is not the ledger's.
        ValueError
            If it is not proven and the ledger does not accept that.
        """
        with self._lock:
            self._check(part_of(self), guarantee, *others)

    def spend(
        self,
        guarantee: PrivacyGuarantee,
        label: str | None = None,
        *,
        fitted: str | None = None,
        run: str | None = None,
    ) -> None:
        """Record a release, or refuse it and leave the ledger as it was.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            The guarantee of the release.
        label : str, default=None
            A name for the ledger; None takes that of the block (`labelled`), else `run`.
        fitted : str, default=None
            What was fitted, for readers. Public values only.
        run : str, default=None
            Name of a run, which is charged once: nothing is spent if the ledger has it, with the same guarantee.

        Raises
        ------
        BudgetExceededError
            If the budget does not cover it.
        IncompatibleGuaranteeError
            If its unit, adjacency or trust model is not the ledger's.
        ValueError
            If it is not proven and the ledger does not accept that; or if the run was charged to another part, or
            another guarantee.
        """
        for name, text in (("label", label), ("fitted", fitted), ("run", run)):
            if text is not None and not isinstance(text, str):
                raise TypeError(f"{name} must be a string or None; got {text!r}")
        self._refuse_other_process()
        if label is None:
            label = label_of(self) or run
        with self._lock:
            part = part_of(self)
            if self._has_run(run, part, guarantee):
                return
            self._check(part, guarantee)
            date = datetime.now(UTC).isoformat(timespec="seconds")
            self._add(LedgerEntry(label, guarantee, date, fitted, run, part))

    def to_json(self) -> str:
        """Write budget and ledger as JSON, the only way to save them.

        Returns
        -------
        text : str
            Of a stated format and version.
        """
        data = {
            "format": FORMAT,
            "version": VERSION,
            "epsilon": number_to_json(self._epsilon),
            "delta": self._delta,
            "unit": self._unit,
            "adjacency": self._adjacency,
            "trust": self._trust,
            "accept_claimed": self._accept_claimed,
            "rule": self._kind_of_rule,
            "reserve": self._reserve,
            "filter": None if self._filter is None else self._filter.to_json(),
            "ledger": [
                {name: getattr(entry, name) for name in TEXTS if name != "part" or entry.part is not None}
                | {"guarantee": json.loads(entry.guarantee.to_json())}
                for entry in self._entries
            ],
        } | ({"steps": self._steps} if self._steps else {})
        if self._max_parts is not None:
            data["max_parts"] = self._max_parts
        return json.dumps(data, indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "PrivacyAccountant":
        """Read what `to_json` has written; go on with one of the two ledgers only.

        What was spent is taken as it is, without a new check against the budget.

        Parameters
        ----------
        text : str
            JSON of a ledger.

        Returns
        -------
        accountant : PrivacyAccountant

        Raises
        ------
        ValueError
            If the text is not JSON, not a ledger, or of another version.
        """
        data = read_json(text, FORMAT, VERSION)
        try:
            rules = data.pop("filter")
            entries = [_entry_from_json(item) for item in data.pop("ledger")]
            steps = {str(step): str(digest) for step, digest in dict(data.pop("steps", {})).items()}
            accountant = cls(number_from_json(data.pop("epsilon")), **data)
            if rules is not None:
                accountant._filter = Filter.from_json(rules, accountant._epsilon, accountant._delta)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the fields of {FORMAT} are damaged: {error}") from None
        accountant._steps = steps
        accountant._kept = tuple(entries)
        check_compatible(accountant, *(entry.guarantee for entry in entries))
        return accountant

    def _note_step(self, step, digest):
        """Return the digest that a step of a stream, or samples, had; which is this one if there was none."""
        self._refuse_other_process()
        with self._lock:
            if step not in self._steps:
                self._change(_steps=self._steps | {step: digest})
            return self._steps[step]

    def _filter_of(self, entries):
        """Return the filter, which the first guarantee that costs anything fixes; None before there is one."""
        guarantees = (entry.guarantee for entry in entries)
        first = next((g for g in guarantees if g.epsilon > 0 or g.delta > 0), None)
        if self._filter is not None or first is None or math.isinf(self._epsilon):
            return self._filter
        return choose_filter(self._kind_of_rule, self._epsilon, self._delta, self._reserve, first)

    def _cost(self, entries):
        found = self._filter_of(entries)
        return 0.0 if found is None else found.cost(entries, self._max_parts)

    @property
    def _entries(self):
        return self._kept

    def _has_run(self, run, part, guarantee):
        charged = None if run is None else next((entry for entry in self._entries if entry.run == run), None)
        if charged is not None and charged.part not in (None, part):
            raise ValueError(
                f"this run was charged to part {charged.part!r} of the data, and goes on in"
                f" {'no part' if part is None else f'part {part!r}'}. What reads several parts must be begun outside of"
                " all of them. Nothing was released"
            )
        if charged is not None and _price(charged.guarantee) != _price(guarantee):
            raise ValueError(
                f"run {run!r} was charged {charged.guarantee!r}, and would go on as {guarantee!r}: a name is that of"
                " one charge. Give another release a name of its own. Nothing was spent or released"
            )
        return charged is not None

    def _add(self, entry):
        """Append an entry and fix the filter. Called under the lock."""
        entries = (*self._kept, entry)
        self._change(_kept=entries, _filter=self._filter_of(entries))

    def _change(self, **fields):
        """Change what is written of the ledger. Called under the lock."""
        vars(self).update(fields)

    def _budget(self):
        return f"epsilon={self._epsilon}, delta={self._delta}"

    def _check(self, part, *wanted):
        """Refuse what the budget does not cover once all of these are spent; costs only add up."""
        for guarantee in wanted:
            self._check_kind(guarantee)
        if math.isinf(self._epsilon):
            return
        entries = [*self._entries, *(LedgerEntry(None, guarantee, part=part) for guarantee in wanted)]
        cost = self._cost(entries)
        if cost > self._epsilon:
            total, found = self.total, self._filter_of(entries)
            short = found.over_reserve(entries, self._max_parts)
            advice = ADVICE[found.rules[0].name] if self._entries else ""
            where = "" if self._max_parts is None else f" in {'no part' if part is None else f'part {part!r}'}"
            costly = [one for one in wanted if one.epsilon > 0 or one.delta > 0]
            if short is not None:
                advice = (
                    ". What the events of its guarantees leave out, and deltas without an event, add up to"
                    f" {round_up(short[0], 6)}; the ledger keeps a reserve of {short[1]:.6g} of its delta for them,"
                    " since its first guarantee. Take a smaller delta for this release, or choose a larger reserve for"
                    " a new ledger"
                )
            raise BudgetExceededError(
                f"the budget is {self._budget()}; spent so far: "
                f"{'nothing' if total is None else _numbers(total)}; with this guarantee "
                f"({'; '.join(map(_numbers, costly))}){where} it would be epsilon={round_up(cost, 6)} at"
                f" delta={self._delta}. Nothing was spent{advice}"
            )

    def _check_kind(self, guarantee):
        """Refuse what does not belong into this ledger."""
        if not isinstance(guarantee, PrivacyGuarantee):
            raise TypeError(
                "guarantee must be a PrivacyGuarantee, such as privacy_guarantee_ of a fitted model or what"
                f" privacy_cost returns; got {guarantee!r:.200}"
            )
        check_compatible(self, guarantee)
        if guarantee.status != Status.PROVEN and not self._accept_claimed:
            raise ValueError(
                f"guarantee must have status 'proven'; got {str(guarantee.status)!r}"
                f"{f' ({guarantee.reason})' if guarantee.reason else ''}: a ledger of guarantees "
                "that do not hold protects no one. Pass accept_claimed=True to keep such books anyway"
            )

    def __enter__(self) -> Self:
        self._refuse_other_process()
        open_block(self)
        return self

    def __exit__(self, *exception: object) -> None:
        close_block(self)

    def __copy__(self):
        self._refuse_copy()

    def __deepcopy__(self, memo):
        self._refuse_copy()

    def __reduce_ex__(self, protocol):
        self._refuse_copy()

    def _refuse_other_process(self):
        if not self._address and self._process != os.getpid():
            raise UnreachableLedgerError(
                f"this ledger is in the memory of process {self._process}; what is spent from a copy in a forked"
                " process would be missing from it. Use PrivacyAccountant.open(path, ...)"
            )

    def _refuse_copy(self):
        raise TypeError(
            "a PrivacyAccountant cannot be copied or pickled: what is spent from a copy would be missing "
            "from the ledger. Do not make it a parameter of an estimator; save it with to_json"
        )

    def __repr__(self):
        return (
            f"PrivacyAccountant(epsilon={self._epsilon}, delta={self._delta}, unit={str(self._unit)!r}, "
            f"adjacency={str(self._adjacency)!r}, trust={str(self._trust)!r}, "
            f"{'' if self._max_parts is None else f'max_parts={self._max_parts}, '}spends={len(self._entries)})"
        )


def _part_name(name):
    """Return the name of a part as it is compared and kept; ValueError for names that may be read as others."""
    name = unicodedata.normalize("NFC", str.__str__(name))
    if not name or name != name.strip() or not name.isprintable():
        raise ValueError(f"name must be of characters that can be printed, without space around it; got {name!r}")
    return name


def _entry_from_json(item):
    texts = {"part": None} | item
    guarantee = PrivacyGuarantee.from_json(json.dumps(texts.pop("guarantee")))
    if set(texts) != set(TEXTS):
        raise ValueError(f"an entry must have {TEXTS} and a guarantee; got {item!r:.200}")
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise ValueError(f"{name} must be a string or None; got {text!r:.200}")
    if texts["part"] is not None:
        texts["part"] = _part_name(texts["part"])
    return LedgerEntry(guarantee=guarantee, **texts)


def _price(guarantee):
    """Return what a guarantee costs, without its words."""
    kinds = guarantee.unit, guarantee.adjacency, guarantee.trust
    return guarantee.epsilon, guarantee.delta, *kinds, guarantee.event, guarantee.event_delta


def _numbers(guarantee):
    return f"epsilon={round_up(guarantee.epsilon, 6)}, delta={round_up(guarantee.delta, 6)}"


class FileAccountant(PrivacyAccountant):
    """A `PrivacyAccountant` whose ledger is a file: see `PrivacyAccountant.open`, which has the same parameters.

    The file is read anew under a lock whenever the ledger is read or written. It is on the disk before `spend` returns.
    """

    def __init__(self, path: PathLike, **terms: Any) -> None:
        self._address = os.path.realpath(os.fsdecode(path))
        if os.path.isdir(self._address) or not os.path.isdir(os.path.dirname(self._address)):
            raise ValueError(f"path must name the file of a ledger, in a folder that is there; got {path!r}")
        self._content: bytes | None = None
        self._lock: Any = LedgerFile(self._address, self._begin, self._read)
        terms = {name: value for name, value in terms.items() if value is not None}
        self._may_begin = "epsilon" in terms
        self._take(PrivacyAccountant(**terms) if self._may_begin else PrivacyAccountant(1.0))
        with self._lock:
            for name, value in terms.items():
                held = self._kind_of_rule if name == "rule" else getattr(self, f"_{name}")
                if held != value:
                    raise ValueError(f"{name} of the ledger {self._address!r} is {held!r}; got {value!r}.")

    @property
    def _entries(self):
        with self._lock:
            return self._kept

    def _take(self, accountant):
        """Take the terms and the entries of another accountant."""
        vars(self).update({name: value for name, value in vars(accountant).items() if name != "_lock"})

    def _begin(self):
        """Return the content of a new file, if it is time for one."""
        if self._content is not None:
            raise ValueError(f"the ledger {self._address!r} is gone; put it back. Nothing was spent.") from None
        if not self._may_begin:
            raise ValueError(f"there is no ledger {self._address!r}; give epsilon to begin one.") from None
        return pack(self.to_json())

    def _read(self, content):
        """Take the ledger from the file, if that has changed. Called under the lock."""
        if content == self._content:
            return
        try:
            accountant = PrivacyAccountant.from_json(unpack(content))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"the ledger {self._address!r} is damaged ({error}); restore it from a backup, and spend by hand what"
                " was fitted since. Nothing was spent."
            ) from None
        self._take(accountant)
        self._content = content

    def _change(self, **fields):
        """Change what is written of the ledger, in the file too. Called under the lock."""
        former = {name: vars(self)[name] for name in fields}
        super()._change(**fields)
        try:
            content = pack(self.to_json())
            self._lock.write(content)
        except BaseException:
            super()._change(**former)
            raise
        self._content = content


def active_accountant() -> Any:
    """Return the ledger that a fit charges, or None; refuse a fit that could not reach it.

    It is the innermost of those that this thread (or asynchronous task) has entered. A thread that has entered none
    charges the one that is open elsewhere in the process. A process that was started by one with an open ledger charges
    it if it is a file (`PrivacyAccountant.open`). UnreachableLedgerError if several ledgers are open and this thread
    entered none of them, if the block in which this task was begun has ended, or if the ledger is in the memory of the
    process that started this one; ValueError if the environment variable by which processes announce their ledgers is
    damaged.

    A fit calls its `check` before it reads data, and its `spend` before it forms the first value that is released.
    """
    return open_ledger()[0]


def open_ledger() -> tuple[Any, str | None]:
    """Return `active_accountant()` and the label of its block."""
    found, label = find_open_ledger()
    return FileAccountant(found) if isinstance(found, str) else found, label
