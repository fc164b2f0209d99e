"""Find the ledger that a fit charges: open in its own thread, in another thread, or in the process that started it.

The thread (or asynchronous task) that entered a `with` block sees it in its context. Worker threads start with an empty
context, so the process also keeps a list of all open blocks. Worker processes have neither, so they are told in three
ways: new processes inherit an environment variable that says what is open; a forked process keeps what its parent had
open; and pickled estimators tell workers that were started before, such as those that joblib keeps.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import Parameter, signature
from multiprocessing import parent_process
from threading import RLock
from typing import Any

from sklearn import get_config

from skdplda.exceptions import UnreachableLedgerError
from skdplda.privacy._hidden_seeds import HiddenSeedsMixin

__all__ = ["LedgerAwareMixin", "close_block", "find_open_ledger", "open_block", "prepaid"]

VARIABLE = "SKDPLDA_LEDGER"  # what `Process.announcement` returns, as JSON, for processes that are started meanwhile
CARRIED = "_open_ledgers"  # the same in the state of a pickled estimator
PREPAID = object()  # stands for a block whose fits an enclosing release has charged already
WHAT_TO_DO = (
    "Use n_jobs=1 or threads (joblib.parallel_config(backend='threading')), or a ledger that processes share:"
    " PrivacyAccountant.open(path, ...). No data were read."
)


class Block:
    """One `with` block; a ledger may be entered several times."""

    def __init__(self, accountant: Any) -> None:
        self.accountant = accountant


BLOCKS: ContextVar[tuple[Any, ...]] = ContextVar("skdplda_ledger_blocks", default=())  # the innermost last


class Process:
    """What is open in this process, and what it was told of those it descends from."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.open: list[Block] = []
        self.version = 0  # how often a block was opened or closed: a later announcement replaces an earlier one
        self.unreadable = ""  # text of the environment variable that nobody here has written
        self.announced: dict[int, tuple[int, list[str]]] = {}  # by process: its version, and where its open ledgers are

    def announcement(self) -> list[Any]:
        """Return (process, version, addresses of ledgers) for this process and those that announced theirs to it."""
        with self.lock:
            addresses = [block.accountant._address for block in self.open]
            own = [(os.getpid(), self.version, addresses)] if self.version else []
            return own + [(pid, version, addresses) for pid, (version, addresses) in self.announced.items()]

    def receive(self, announcement: Any) -> None:
        """Take what an announcement says of each process, unless something newer is known."""
        with self.lock:
            for pid, version, addresses in announcement:
                if version >= self.announced.get(pid, (0,))[0]:
                    self.announced[pid] = version, list(addresses)

    def inherit(self) -> None:
        """Take the announcement of the environment variable, and note text that `publish` has not written."""
        text = os.environ.get(VARIABLE, "[]")
        try:
            self.receive([(int(pid), int(n), list(map(str, addresses))) for pid, n, addresses in json.loads(text)])
        except (ValueError, TypeError, RecursionError):
            self.unreadable = text

    def publish(self) -> None:
        """Write the environment variable that new processes inherit."""
        self.version += 1
        known = self.announcement()
        text = json.dumps(known) if any(addresses for _, _, addresses in known) else self.unreadable
        if text:
            os.environ[VARIABLE] = text
        else:
            os.environ.pop(VARIABLE, None)

    def forked(self) -> None:
        """Begin a forked child: what was open here is open in the parent, whose memory this process cannot change."""
        parent = os.getppid(), self.version, [block.accountant._address for block in self.open]
        self.lock, self.open, self.version = RLock(), [], 0
        self.receive([parent] if parent[1] else [])


PROCESS = Process()
PROCESS.inherit()
os.register_at_fork(after_in_child=PROCESS.forked)


def open_block(accountant: Any) -> None:
    """Open a block of a ledger for this thread and, where a thread has none of its own, for the process."""
    block = Block(accountant)
    with PROCESS.lock:
        PROCESS.open.append(block)
        PROCESS.publish()
    BLOCKS.set((*BLOCKS.get(), block))


def close_block(accountant: Any) -> None:
    """Close the last block of this very ledger, which need not be the last that was opened."""
    entered = BLOCKS.get()
    with PROCESS.lock:
        own = [block for block in entered if block in PROCESS.open]
        for block in reversed([*PROCESS.open, *own]):  # this thread's blocks first
            if block.accountant is accountant:
                PROCESS.open.remove(block)
                PROCESS.publish()
                break
    BLOCKS.set(tuple(block for block in entered if block is PREPAID or block in PROCESS.open))


@contextmanager
def prepaid() -> Iterator[None]:
    """Charge no ledger for fits inside the block: an enclosing release has been charged for all of them.

    Examples
    --------
    >>> from skdplda.privacy import BudgetCharge, PrivacyAccountant, PrivacyGuarantee, prepaid
    >>> with PrivacyAccountant(epsilon=1.0) as accountant:
    ...     with prepaid():
    ...         BudgetCharge(PrivacyGuarantee(epsilon=5.0), "a run of a search").charge("1")
    >>> accountant.remaining_epsilon
    1.0
    """
    token = BLOCKS.set((*BLOCKS.get(), PREPAID))
    try:
        yield
    finally:
        BLOCKS.reset(token)


def find_open_ledger() -> Any:
    """Return the ledger that a fit charges, the path of its file if it is open in another process, or None.

    It raises what `active_accountant` raises.
    """
    for block in reversed(BLOCKS.get()):
        if block is PREPAID:
            return None
        if block in PROCESS.open:
            return block.accountant
    with PROCESS.lock:
        found = list({id(block.accountant): block.accountant for block in PROCESS.open}.values())
        elsewhere = {(pid, address) for pid, (_, addresses) in PROCESS.announced.items() for address in addresses}
    if len(found) == 1:
        return found[0]
    if found:
        raise UnreachableLedgerError(
            f"{len(found)} ledgers are open in this process, and this thread has entered none of them: which is to"
            " be charged? Enter it in the thread, `with accountant: model.fit(X)`. No data were read."
        )
    if PROCESS.unreadable:
        raise ValueError(
            f"the environment variable {VARIABLE} must be what skdplda wrote: which ledgers are open in the process"
            f" that started this one; got {PROCESS.unreadable!r:.60}. If no ledger is open there, unset it; else start"
            " this process from there again. No data were read."
        )
    addresses = {address for _, address in elsewhere}
    if not addresses:
        return None
    pids = ", ".join(str(pid) for pid in sorted({pid for pid, _ in elsewhere}))
    if len(addresses) > 1:
        raise UnreachableLedgerError(
            f"{len(addresses)} ledgers are open in process {pids}, which started this one: which is to be charged?"
            " Open a single one there. No data were read."
        )
    if addresses == {""}:
        raise UnreachableLedgerError(
            f"a ledger is open in process {pids}, which started this one, and this process cannot write into it: the"
            f" fit would not be charged. {WHAT_TO_DO}"
        )
    return addresses.pop()


class LedgerAwareMixin(HiddenSeedsMixin):
    """Base of the estimators that charge ledgers: their pickles tell worker processes which ledgers are open.

    What a fit costs is in their text, also where it is the default.
    """

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)  # type: ignore[call-arg]
        defaults, hidden = signature(type(self)).parameters, []
        for name in ("epsilon", "delta"):
            value = getattr(self, name, None)
            if repr(value) == repr(getattr(defaults.get(name), "default", Parameter.empty)):
                value = self._default_epsilon() if value is None and name == "epsilon" else value
                hidden += [] if value is None else [f"{name}={value!r}"]
        if not hidden or not get_config()["print_changed_only"]:
            return text
        name, _, rest = text.partition("(")
        return f"{name}({', '.join(hidden)}{'' if rest == ')' else ', '}{rest}"

    def _default_epsilon(self) -> float | None:
        """Return what an `epsilon` of None stands for; None if other parameters, which are shown, say it."""
        return None

    def __getstate__(self) -> dict[str, Any]:
        announced = PROCESS.announcement()
        state = super().__getstate__()
        return {**state, CARRIED: announced} if announced else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        announced = state.get(CARRIED, ())
        started_by = {os.getppid(), getattr(parent_process(), "pid", None)}
        if started_by & {pid for pid, _, _ in announced}:  # a pickle from elsewhere says nothing about this process
            PROCESS.receive(announced)
        state = {name: value for name, value in state.items() if name != CARRIED}
        super().__setstate__(state)  # type: ignore[misc]
