"""Which ledger a fit charges: one open in its own thread, in another thread, or in the process that started its own.

A `with` block is seen at once by the thread (or task) that entered it. Worker threads start with an empty context, so
the process keeps a list of all open blocks. Worker processes have neither: they are told. What is open stands in an
environment variable, which new processes inherit; a forked process keeps what its parent had open as news; and pickled
estimators carry the news to workers that were started before, such as those that joblib keeps.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing import parent_process
from threading import RLock
from typing import Any

__all__ = ["LedgerAwareMixin", "active_accountant", "close_block", "open_block", "prepaid"]

VARIABLE = "SKDPLDA_LEDGER"  # news as JSON, for processes that are started while a ledger is open
CARRIED = "_open_ledgers"  # news in the state of a pickled estimator
PREPAID = object()  # stands for a block in which an enclosing release has paid
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
        self.age = 0  # how often a block was opened or closed: later news replace earlier ones
        self.news: dict[int, tuple[int, list[str]]] = {}  # by process: its age, and where its open ledgers are

    def tell(self) -> list[Any]:
        """Return (process, age, addresses) of this process and of those it was told of; empty if there is nothing."""
        with self.lock:
            own = [(os.getpid(), self.age, [block.accountant._address for block in self.open])] if self.age else []
            return own + [(pid, age, addresses) for pid, (age, addresses) in self.news.items()]

    def hear(self, news: Any) -> None:
        """Take the news, unless newer ones are known."""
        with self.lock:
            for pid, age, addresses in news:
                if age >= self.news.get(pid, (0,))[0]:
                    self.news[pid] = age, list(addresses)

    def publish(self) -> None:
        """Write the environment variable that new processes inherit."""
        self.age += 1
        news = self.tell()
        if any(addresses for _, _, addresses in news):
            os.environ[VARIABLE] = json.dumps(news)
        else:
            os.environ.pop(VARIABLE, None)

    def forked(self) -> None:
        """Begin a forked child: what was open here is open in the parent, whose books this process cannot write."""
        parent = os.getppid(), self.age, [block.accountant._address for block in self.open]
        self.lock, self.open, self.age = RLock(), [], 0
        self.hear([parent] if parent[1] else [])


PROCESS = Process()
PROCESS.hear(json.loads(os.environ.get(VARIABLE, "[]")))
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
    """Let fits inside the block pass the open ledger by: an enclosing release has paid for them.

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
    RuntimeError
        If several ledgers are open and this thread entered none of them, or if the ledger is in the memory of the
        process that started this one.
    """
    for block in reversed(BLOCKS.get()):
        if block is PREPAID:
            return None
        if block in PROCESS.open:
            return block.accountant
    with PROCESS.lock:
        found = list({id(block.accountant): block.accountant for block in PROCESS.open}.values())
        heard = {(pid, address) for pid, (_, addresses) in PROCESS.news.items() for address in addresses}
    if len(found) == 1:
        return found[0]
    if found:
        raise RuntimeError(
            f"{len(found)} ledgers are open in this process, and this thread has entered none of them: which is to"
            " pay? Enter it in the thread, `with accountant: model.fit(X)`. No data were read."
        )
    addresses = {address for _, address in heard}
    if not addresses:
        return None
    pids = ", ".join(str(pid) for pid in sorted({pid for pid, _ in heard}))
    if len(addresses) > 1:
        raise RuntimeError(
            f"{len(addresses)} ledgers are open in process {pids}, which started this one: which is to pay? Open a"
            " single one there. No data were read."
        )
    if addresses == {""}:
        raise RuntimeError(
            f"a ledger is open in process {pids}, which started this one, and this process cannot write into it: the"
            f" fit would not be charged. {WHAT_TO_DO}"
        )
    from skdplda.privacy._ledger_file import LedgerFile

    return LedgerFile(addresses.pop())


class LedgerAwareMixin:
    """Base of the estimators that charge ledgers: their pickles tell worker processes which ledgers are open."""

    def __getstate__(self) -> dict[str, Any]:
        news = PROCESS.tell()
        state: dict[str, Any] = super().__getstate__()
        return {**state, CARRIED: news} if news else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        news = state.get(CARRIED, ())
        started_by = {os.getppid(), getattr(parent_process(), "pid", None)}
        if started_by & {pid for pid, _, _ in news}:  # a pickle from elsewhere, or of old, says nothing about this one
            PROCESS.hear(news)
        state = {name: value for name, value in state.items() if name != CARRIED}
        super().__setstate__(state)  # type: ignore[misc]
