"""The caller's ledger of privacy spending."""

import json
import math
import os
from dataclasses import replace
from threading import RLock
from typing import Any, Literal, NamedTuple, Self

from skdplda._types import PathLike
from skdplda.exceptions import BudgetExceededError, UnreachableLedgerError
from skdplda.privacy._events import check_delta, check_epsilon, number_from_json, number_to_json
from skdplda.privacy._filter import RULES, choose_rule
from skdplda.privacy._guarantee import PrivacyGuarantee, check_compatible, read_json
from skdplda.privacy._ledger_file import FileLock, pack, replace_file, unpack
from skdplda.privacy._open_ledgers import close_block, find_open_ledger, open_block
from skdplda.privacy._statement import round_up
from skdplda.privacy._units import Adjacency, PrivacyUnit, Status, TrustModel

__all__ = ["LedgerEntry", "PrivacyAccountant", "active_accountant"]

FORMAT = "skdplda.PrivacyAccountant"
VERSION = 1
ADVICE = {
    "basic": "",
    "gaussian": ". The ledger adds up the precision of Gaussian noise, since its first guarantee; what is planned in"
    " advance costs less as one composed guarantee, or choose rule='basic' or a reserve of delta for a new ledger",
    "renyi": ". The ledger adds up Renyi divergences, since its first guarantee; what is planned in advance costs less"
    " as one composed guarantee, or choose rule='basic' or a reserve of delta for a new ledger",
}


class LedgerEntry(NamedTuple):
    """One line of a ledger.

    Parameters
    ----------
    label : str or None
        The name given to the spend.
    guarantee : PrivacyGuarantee
        What was spent.
    """

    label: str | None
    guarantee: PrivacyGuarantee


class PrivacyAccountant:
    """A privacy budget and what has been spent of it, over all releases from one data set.

    The ledger belongs to the caller, beside the data. It is never a parameter of an estimator:
    `sklearn.base.clone` deep-copies parameters, so that every cross-validation fold would spend from a copy
    and the ledger would stay at zero. For the same reason it refuses to be copied or pickled.

    A spend stands from the first release on: an interrupted fit has spent its whole guarantee.

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
        as much as its epsilon could tell); or Renyi divergences of one order. "auto" takes the rule that affords the
        first guarantee most often, and keeps it.
    reserve : float, default=None
        Part of delta, for "gaussian" and "renyi", kept for what an event leaves out (`event_delta`), and for
        the delta of guarantees that the rule knows by epsilon and delta only. None: as much as the first guarantee
        needs, or a quarter of delta if that is more; none if it needs none.

    Notes
    -----
    The budget is a filter for one pair (epsilon, delta): everything spent satisfies it together, however each spend
    was chosen after seeing the releases before it (doc/theory/ledger.rst). For that, the rule and its parts are fixed
    by the first spend that costs anything. Releases that are planned in advance may cost less together: spend what
    `PrivacyGuarantee.compose` makes of them, in one line.

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
        self._entries = ()
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
    ) -> "PrivacyAccountant":
        """Open a ledger in a file, or begin one; any number of processes may have it open.

        In a `with` block, fits in worker processes that are started there charge it too. The file is locked while it is
        read or written, and is on the disk before a fit forms its first release. Keep it where locks work: on a local
        disk, or a network file system that has them. Whoever can write the file can forge it, and who puts back an
        older copy forgets what was spent since.

        Parameters
        ----------
        path : str or path-like
            The file. An empty `path + ".lock"` stays beside it.
        epsilon : float, default=None
            Total budget. Needed to begin a ledger; None takes that of the file.
        delta, unit, adjacency, trust, accept_claimed, rule, reserve : default=None
            As in the constructor; None for what the file says, and for the constructor's defaults in a new file.

        Returns
        -------
        accountant : PrivacyAccountant

        Raises
        ------
        ValueError
            If the file is damaged or of another kind, is missing and no `epsilon` was given, or says something else
            than the arguments.

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
    def ledger(self) -> tuple[LedgerEntry, ...]:
        """What was spent, in order, as (label, guarantee) entries."""
        return self._entries

    @property
    def total(self) -> PrivacyGuarantee | None:
        """Joint guarantee of everything spent, or None if nothing was.

        It is that of `PrivacyGuarantee.compose`, and holds for costs that were fixed in advance. Where they were
        not, the budget holds.
        """
        guarantees = [entry.guarantee for entry in self._entries]
        if len(guarantees) < 2:
            return guarantees[0] if guarantees else None
        joint = guarantees[0].compose(*guarantees[1:])
        fixed = f"what each release costs did not depend on earlier ones (else: {self._budget()}, by the ledger's rule)"
        return replace(joint, assumptions=(*joint.assumptions, fixed))

    @property
    def remaining_epsilon(self) -> float:
        """What the budget leaves at the ledger's delta.

        A guarantee of this epsilon and delta 0 always fits. Where noise is of the kind that the ledger's rule
        adds up, a larger one may fit too: ask `check`.
        """
        if not self._entries or math.isinf(self._epsilon):
            return self._epsilon
        guarantees = [entry.guarantee for entry in self._entries]
        rule = self._rule(guarantees)
        if rule is None:
            return self._epsilon
        if rule.cost(guarantees) > self._epsilon:
            return 0.0
        rest, step = rule.rest(guarantees), math.ulp(self._epsilon)
        while rest > 0 and rule.cost([*guarantees, PrivacyGuarantee(epsilon=rest)]) > self._epsilon:  # by rounding
            rest, step = rest - step, 2 * step
        return max(0.0, rest)

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
            self._check(guarantee, *others)

    def spend(self, guarantee: PrivacyGuarantee, label: str | None = None) -> None:
        """Record a release, or refuse it and leave the ledger as it was.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            The guarantee of the release.
        label : str, default=None
            A name for the ledger.

        Raises
        ------
        BudgetExceededError
            If the budget does not cover it.
        IncompatibleGuaranteeError
            If its unit, adjacency or trust model is not the ledger's.
        ValueError
            If it is not proven and the ledger does not accept that.
        """
        if label is not None and not isinstance(label, str):
            raise TypeError(f"label must be a string or None; got {label!r}")
        self._refuse_other_process()
        with self._lock:
            self._check(guarantee)
            self._entries = (*self._entries, LedgerEntry(label, guarantee))

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
            "ledger": [[label, json.loads(guarantee.to_json())] for label, guarantee in self._entries],
        }
        return json.dumps(data, indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "PrivacyAccountant":
        """Read what `to_json` has written; go on with one of the two ledgers only.

        What was spent is taken as it stands, without asking again whether the budget covers it.

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
            entries = [(label, json.dumps(guarantee)) for label, guarantee in data.pop("ledger")]
            accountant = cls(number_from_json(data.pop("epsilon")), **data)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the fields of {FORMAT} are damaged: {error}") from None
        accountant._entries = tuple(LedgerEntry(label, PrivacyGuarantee.from_json(g)) for label, g in entries)
        check_compatible(accountant, *(entry.guarantee for entry in accountant._entries))
        return accountant

    def _rule(self, guarantees):
        """Return the filter, which the first guarantee that costs anything fixes; None before there is one."""
        first = next((g for g in guarantees if g.epsilon > 0 or g.delta > 0), None)
        if first is None:
            return None
        return choose_rule(self._kind_of_rule, self._epsilon, self._delta, self._reserve, first)

    def _cost(self, guarantees):
        rule = self._rule(guarantees)
        return 0.0 if rule is None else rule.cost(guarantees)

    def _budget(self):
        return f"epsilon={self._epsilon}, delta={self._delta}"

    def _check(self, *wanted):
        """Refuse what the budget does not cover once all of these are spent; costs only add up."""
        for guarantee in wanted:
            self._check_kind(guarantee)
        if math.isinf(self._epsilon):
            return
        guarantees = [*(entry.guarantee for entry in self._entries), *wanted]
        cost = self._cost(guarantees)
        if cost > self._epsilon:
            total, rule = self.total, self._rule(guarantees)
            raise BudgetExceededError(
                f"the budget is {self._budget()}; spent so far: "
                f"{'nothing' if total is None else _numbers(total)}; with this guarantee "
                f"({'; '.join(map(_numbers, wanted))}) it would be epsilon={round_up(cost, 6)} at"
                f" delta={self._delta}. Nothing was spent{ADVICE[rule.name] if self._entries else ''}"
            )

    def _check_kind(self, guarantee):
        """Refuse what does not belong into this ledger."""
        if not isinstance(guarantee, PrivacyGuarantee):
            raise TypeError(f"guarantee must be a PrivacyGuarantee; got {guarantee!r}")
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
            f"adjacency={str(self._adjacency)!r}, trust={str(self._trust)!r}, spends={len(self._entries)})"
        )


def _numbers(guarantee):
    return f"epsilon={round_up(guarantee.epsilon, 6)}, delta={round_up(guarantee.delta, 6)}"


class FileAccountant(PrivacyAccountant):
    """A `PrivacyAccountant` whose ledger is a file: see `PrivacyAccountant.open`, which has the same parameters.

    The file is read anew under a lock whenever the ledger is read or written, and replaced as a whole, on the disk
    before `spend` returns. Beside it, `path + ".lock"` is what processes lock.
    """

    def __init__(self, path: PathLike, **terms: Any) -> None:
        self._address = os.path.realpath(path)
        self._content: bytes | None = None
        self._lock: Any = FileLock(self._address, self._read)
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

    @_entries.setter
    def _entries(self, entries):
        with self._lock:
            self._write(entries)

    def _take(self, accountant):
        """Take the terms and the entries of another accountant."""
        fields = dict(vars(accountant))
        del fields["_lock"]
        self._kept = fields.pop("_entries")
        vars(self).update(fields)

    def _read(self):
        """Take the ledger from the file, if that has changed. Called under the lock."""
        try:
            with open(self._address, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            if self._content is not None:
                raise ValueError(f"the ledger {self._address!r} is gone; put it back. Nothing was spent.") from None
            if not self._may_begin:
                raise ValueError(f"there is no ledger {self._address!r}; give epsilon to begin one.") from None
            self._write(())
            return
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

    def _write(self, entries):
        """Replace the file. Called under the lock."""
        former, self._kept = self._kept, entries
        try:
            content = pack(self.to_json())
            replace_file(self._address, content)
        except BaseException:
            self._kept = former
            raise
        self._content = content


def active_accountant() -> Any:
    """Return the ledger that a fit charges, or refuse a fit that could not reach it.

    It is the innermost of those that this thread (or asynchronous task) has entered. A thread that has entered none
    charges the one that is open elsewhere in the process. A process that was started by one with an open ledger
    charges it if it is a file (`PrivacyAccountant.open`); a ledger in the memory of another process cannot be reached.

    A fit calls its `check` before it reads data, and its `spend` before it forms the first value that is released.

    Returns
    -------
    accountant : PrivacyAccountant or None
        None if no ledger is open.

    Raises
    ------
    UnreachableLedgerError
        If several ledgers are open and this thread entered none of them, or if the ledger is in the memory of the
        process that started this one.
    ValueError
        If the environment variable by which processes tell of their ledgers is damaged.
    """
    found = find_open_ledger()
    return FileAccountant(found) if isinstance(found, str) else found
