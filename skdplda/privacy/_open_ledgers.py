"""Find the ledger that a fit charges: open in its own thread, in another thread, or in another process.

The thread (or asynchronous task) that entered a `with` block sees it in its context. Worker threads start with an empty
context, so the process also keeps a list of all open blocks. Other processes have neither, so they learn of it in four
ways: new processes inherit an environment variable that says what is open; a forked process keeps what its parent had
open; pickled estimators tell workers that were started before; on Linux a process looks at those it descends from.

A pickle may also be a file of long ago. What it says of a process that did not start this one holds while that process
has the block open. Where nobody knows, as on another machine, it holds for a day.
"""

import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from inspect import Parameter, signature
from multiprocessing import parent_process
from threading import RLock
from typing import Any, NamedTuple

from skdplda.exceptions import UnreachableLedgerError
from skdplda.privacy._hidden_seeds import HiddenSeedsMixin

VARIABLE = "SKDPLDA_LEDGER"  # what `Process.announcement` returns, as JSON, for processes that are started meanwhile
CARRIED = "_open_ledgers"  # the same in the state of a pickled estimator
POSTED = "skdplda-ledger"  # name of a file in memory that holds the same, for descendants
DAY = 86_400.0  # seconds for which a pickle holds of whose process nothing is known; chosen by hand
OPEN, CLOSED, UNKNOWN = "open", "closed", "unknown"
PREPAID = object()  # stands for a block whose fits an enclosing release has charged already
WHAT_TO_DO = (
    "Use n_jobs=1 or threads (joblib.parallel_config(backend='threading')), or a ledger that processes share:"
    " PrivacyAccountant.open(path, ...). No data were read."
)


class Block:
    """One `with` block; a ledger may be entered several times."""

    def __init__(self, accountant: Any, label: str | None, part: str | None = None) -> None:
        self.accountant, self.label, self.part = accountant, label, part
        self.closed = False  # by the process that opened it; a forked child, which keeps a copy, cannot close it

    @property
    def announced(self) -> tuple[str, str | None]:
        """What is announced to other processes: where the ledger is ("" if in memory), and the label."""
        return self.accountant._address, self.label


BLOCKS: ContextVar[tuple[Any, ...]] = ContextVar("skdplda_ledger_blocks", default=())  # the innermost last


class Announcement(NamedTuple):
    """What a process has announced of its open blocks."""

    pid: int
    name: str  # random, so that a later process of the same number is another one
    machine: str  # on which, and within which numbering, `pid` is a number
    when: float
    version: int  # how often it had opened or closed a block: a later announcement replaces an earlier one
    blocks: tuple[tuple[str, str | None], ...]

    @classmethod
    def read(cls, item: Any) -> "Announcement":
        """Make it of plain lists; TypeError or ValueError for anything else."""
        pid, name, machine, when, version, blocks = item
        named = tuple((str(address), None if label is None else str(label)) for address, label in blocks)
        return cls(int(pid), str(name), str(machine), float(when), int(version), named)

    def state(self) -> str:
        """Whether the block is open still, by what can be seen of the process."""
        if self.machine != PROCESS.machine or not self.machine:
            return UNKNOWN
        try:
            posted = posted_by(self.pid)
        except OSError as error:
            return CLOSED if isinstance(error, FileNotFoundError) else UNKNOWN
        return OPEN if any(one.name == self.name and one.blocks for one in posted) else CLOSED


def this_machine() -> str:
    """Return a name of this boot of this machine and of the numbering of its processes; "" where there is none."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    return ""


def read_all(text: str) -> list[Announcement]:
    """Read an announcement; ValueError, TypeError or RecursionError for text that nobody here has written."""
    return [Announcement.read(item) for item in json.loads(text)]


def posted_by(pid: int) -> list[Announcement]:
    """Return what a process of this machine has posted; OSError if it cannot be looked at."""
    found, folder = [], f"/proc/{pid}/fd"
    for number in os.listdir(folder):
        with suppress(OSError, ValueError, TypeError, RecursionError):
            if os.readlink(f"{folder}/{number}").startswith(f"/memfd:{POSTED}"):
                with open(f"{folder}/{number}") as file:
                    found += read_all(file.read())
    return found


def ancestors() -> Iterator[int]:
    """Yield the processes that this one descends from, as far as that can be seen."""
    pid = os.getppid()
    while pid > 1:
        yield pid
        try:
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return


class Process:
    """What is open in this process, and what others have announced."""

    def __init__(self) -> None:
        self.machine = this_machine()
        self.unreadable = ""  # text of the environment variable that nobody here has written
        self.announced: dict[str, Announcement] = {}  # by name of the process
        self.trusted: set[str] = set()  # the names of those that this process descends from
        self.begin()

    def begin(self) -> None:
        """Begin a life with nothing open."""
        self.lock, self.name = RLock(), secrets.token_hex(16)
        self.open: list[Block] = []
        self.version, self.posted, self.changed = 0, -1, 0.0

    def own(self) -> Announcement:
        """Return what this process announces of itself."""
        blocks = tuple(block.announced for block in self.open)
        when = time.time() if blocks else self.changed  # what is closed has no age, and pickles stay equal
        return Announcement(os.getpid(), self.name, self.machine, when, self.version, blocks)

    def announcement(self) -> list[Announcement]:
        """Return all announcements that others should have: of this process, and those that it has received."""
        with self.lock:
            return ([self.own()] if self.version else []) + list(self.announced.values())

    def receive(self, announcement: list[Announcement], trusted: bool = False) -> None:
        """Take what an announcement says of each process, unless something newer is known."""
        with self.lock:
            for one in announcement:
                known = self.announced.get(one.name)
                if one.name != self.name and (known is None or (one.version, one.when) >= (known.version, known.when)):
                    self.announced[one.name] = one
                if trusted:
                    self.trusted.add(one.name)

    def inherit(self) -> None:
        """Take the announcement of the environment variable, and note text that `publish` has not written."""
        text = os.environ.get(VARIABLE, "[]")
        try:
            self.receive(read_all(text), trusted=True)
        except (ValueError, TypeError, RecursionError):
            self.unreadable = text

    def publish(self) -> None:
        """Write the environment variable that new processes inherit, and what descendants look at."""
        self.version, self.changed = self.version + 1, time.time()
        known = [self.own(), *(one for one in self.announced.values() if one.name in self.trusted)]
        text = json.dumps(known) if any(one.blocks for one in known) else self.unreadable
        if text:
            os.environ[VARIABLE] = text
        else:
            os.environ.pop(VARIABLE, None)
        former, self.posted = self.posted, -1
        if self.open and hasattr(os, "memfd_create"):
            with suppress(OSError):
                self.posted = os.memfd_create(POSTED)
                os.write(self.posted, json.dumps([self.own()]).encode())
        if former >= 0:
            os.close(former)

    def forked(self) -> None:
        """Begin a forked child: what was open here is open in the parent, whose memory this process cannot change."""
        parent = self.own()._replace(pid=os.getppid())
        if self.posted >= 0:
            os.close(self.posted)
        self.begin()
        self.receive([parent] if parent.version else [], trusted=True)

    def holding(self) -> list[Announcement]:
        """Return what holds of other processes now. What an ancestor posts is looked at each time, and not kept."""
        parents = {os.getppid(), getattr(parent_process(), "pid", None)}
        with self.lock:
            kept = [one for one in self.announced.values() if one.blocks]
            found = {one.name: one for one in kept if one.name in self.trusted or one.pid in parents or _is_held(one)}
        for pid in ancestors():
            with suppress(OSError):
                found |= {one.name: one for one in posted_by(pid)}
        return list(found.values())


def _is_held(one):
    """Whether an announcement holds of a process that did not start this one, and need not be alive."""
    state = one.state()
    return state == OPEN or (state == UNKNOWN and abs(time.time() - one.when) < DAY)


PROCESS = Process()
PROCESS.inherit()
os.register_at_fork(after_in_child=PROCESS.forked)


def open_block(accountant: Any, label: str | None = None, part: str | None = None) -> Block:
    """Open a block of a ledger for this thread and, where a thread has none of its own, for the process.

    A block within one of a part, in the same thread, is of that part.
    """
    block = Block(accountant, label, part_of(accountant) if part is None else part)
    with PROCESS.lock:
        PROCESS.open.append(block)
        PROCESS.publish()
    BLOCKS.set((*BLOCKS.get(), block))
    return block


def close_block(accountant: Any, opened: Block | None = None) -> None:
    """Close a block, or the last one of this very ledger, which need not be the last that was opened."""
    entered = BLOCKS.get()
    with PROCESS.lock:
        own = [block for block in entered if block in PROCESS.open]
        for block in reversed([*PROCESS.open, *own]):  # this thread's blocks first
            if block is opened or (opened is None and block.accountant is accountant):
                PROCESS.open.remove(block)
                block.closed = True
                PROCESS.publish()
                break
    BLOCKS.set(tuple(block for block in entered if block is PREPAID or block in PROCESS.open))


@contextmanager
def prepaid() -> Iterator[None]:
    """Charge no ledger for fits inside the block: an enclosing release has been charged for all of them."""
    token = BLOCKS.set((*BLOCKS.get(), PREPAID))
    try:
        yield
    finally:
        BLOCKS.reset(token)


def label_of(accountant: Any) -> str | None:
    """Return the label of the innermost block of a ledger, of this thread if it has one."""
    entered = [block for block in BLOCKS.get() if block is not PREPAID and block in PROCESS.open]
    with PROCESS.lock:
        blocks = [*PROCESS.open, *entered]
    return next((block.label for block in reversed(blocks) if block.accountant is accountant), None)


def part_of(accountant: Any) -> str | None:
    """Return the part of the data that the innermost block of a ledger in this thread is for; None for all of it.

    What a thread reads that entered no block, nobody knows: it is None, too, which costs most.
    """
    here = [block for block in BLOCKS.get() if block is not PREPAID and block in PROCESS.open]
    own = [block.part for block in here if block.accountant is accountant]
    return own[-1] if own else None


def find_open_ledger() -> tuple[Any, str | None]:
    """Return the ledger that a fit charges, or the path of its file if it is open in another process, and a label.

    Both are None if there is none. It raises what `active_accountant` raises.
    """
    for block in reversed(BLOCKS.get()):
        if block is PREPAID:
            return None, None
        if block in PROCESS.open:
            return block.accountant, block.label
        if block.closed:
            raise UnreachableLedgerError(
                "this task was begun inside a block of a ledger that has ended since: the fit would not be charged."
                " Wait for the task inside the block, or enter the ledger in the task, `with accountant: model.fit(X)`."
                " No data were read."
            )
    with PROCESS.lock:
        found = {id(block.accountant): (block.accountant, block.label) for block in PROCESS.open}
    if len(found) == 1:
        return next(iter(found.values()))
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
    holding = PROCESS.holding()
    ledgers = {_identity(address): (address, label) for one in holding for address, label in one.blocks}
    if not ledgers:
        return None, None
    where = ", ".join(str(pid) for pid in sorted({one.pid for one in holding}))
    if len(ledgers) > 1:
        raise UnreachableLedgerError(
            f"{len(ledgers)} ledgers are open in process {where}, from which this one has its work: which is to be"
            " charged? Open a single one there. No data were read."
        )
    ((address, label),) = ledgers.values()
    if not address:
        raise UnreachableLedgerError(
            f"a ledger is open in process {where}, from which this one has its work, and this process cannot write into"
            f" it: the fit would not be charged. {WHAT_TO_DO}"
        )
    if not os.path.exists(address):
        raise UnreachableLedgerError(
            f"a ledger is open in process {where}, from which this one has its work, and its file {address!r} is not"
            " here: the fit would not be charged. Put the ledger where all machines have it under one path, or enter"
            " the ledger that this fit belongs to, `with accountant: model.fit(X)`. No data were read."
        )
    return address, label


def _identity(address):
    """Return what hard links of one file have in common."""
    try:
        status = os.stat(address)
    except OSError:
        return address
    return status.st_dev, status.st_ino


class LedgerAwareMixin(HiddenSeedsMixin):
    """Base of the estimators that charge ledgers: their pickles announce to worker processes which ledgers are open.

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
        from sklearn import get_config

        if not hidden or not get_config()["print_changed_only"]:
            return text
        name, _, rest = text.partition("(")
        return f"{name}({', '.join(hidden)}{'' if rest == ')' else ', '}{rest}"

    def _default_epsilon(self) -> float | None:
        """Return what an `epsilon` of None stands for; None if other parameters, which are shown, say it."""
        return None

    def __getstate__(self) -> dict[str, Any]:
        announced = [tuple(one) for one in PROCESS.announcement()]
        state = super().__getstate__()
        return {**state, CARRIED: announced} if announced else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        with suppress(ValueError, TypeError):  # of a version that announced other things
            PROCESS.receive([Announcement.read(item) for item in state.get(CARRIED, ())])
        state = {name: value for name, value in state.items() if name != CARRIED}
        super().__setstate__(state)  # type: ignore[misc]
