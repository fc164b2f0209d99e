"""Parts of a corpus on workers: sums over all of them, with the parts of a lost worker brought back.

Each worker has one `Actor` that holds some parts; a part is a run of documents and a state made of them. A call gets
an array of integers from every state; actors add up what their own states and those below them in a tree return.

What a state does follows from its documents, the calls so far and their arguments, which name their random streams.
So a lost part is built again and the calls are replayed: it is what it was, bit for bit, and no one can see from the
result that a worker was lost. Within a call, an actor that is called again returns the sum that it has.
"""

import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from skdplda._types import Function
from skdplda.distributed._actor import Actor, Part, added, direct, wait
from skdplda.distributed._shards import COLUMNS, check_client, one_vocabulary, other_width

FAN_OUT = 4  # sums that a node of the tree waits for; near the fastest in any network: doc/notes/distributed.rst
MOST_LOSSES = 3  # of one part, before its documents are taken for the cause; chosen by hand
PATIENCE = 60.0  # seconds to wait for a worker when none is left; chosen by hand


def tree(n: int, fan_out: int = FAN_OUT) -> tuple[Any, Any]:
    """Return the children of the driver, and those of each of n actors, which have larger numbers than it.

    So waits go from small numbers to large ones only, whatever calls are under way, and cannot form a circle.
    """
    nodes = [list(range(i * fan_out, min((i + 1) * fan_out, n))) for i in range(n + 1)]
    return nodes[0], nodes[1:]


@dataclass(eq=False)
class Placed:
    """A part and where it is."""

    sources: list
    first_block: int
    rank: int | None = None
    ready: bool = False
    losses: int = 0
    info: Part | None = None
    arguments: dict = field(default_factory=dict)


class Pool:
    """What all engines know of the parts of a corpus, in the order of the documents.

    An engine has two verbs: `build` makes a state of each part, and `total` adds up what a method of all states
    returns, each part once. `replay` brings states to where calls leave them, and `close` lets them go.
    """

    parts: list[Any]

    def _describe(self, parts, first_blocks, embedded):
        """Note what the workers say of the parts; ValueError for blocks of different widths, or without documents."""
        self.parts, self.n_words = parts, None
        for part, first_block in zip(parts, first_blocks, strict=True):
            if None not in (self.n_words, part.n_words) and part.n_words != self.n_words:
                raise ValueError(other_width(first_block, part.n_words, self.n_words, embedded))
            self.n_words = self.n_words or part.n_words
        self.n_documents = sum(part.n_documents for part in parts)
        self.n_counted, self.words = one_vocabulary([part[4:] for part in parts if part.n_words is not None])
        if not self.n_documents or not self.n_words:
            shape = self.n_documents, self.n_words
            raise ValueError(f"X must have documents and {COLUMNS[embedded]}; got shape {shape}.")


class ActorPool(Pool):
    """The parts of a corpus on all workers of a cluster, in the order of the documents.

    `digest` reads the digests of the parts; with `embedded`, blocks are of embeddings, with word counts or without.
    RuntimeError if no worker is left, or one lacks this package or has another version of it, or a part is lost again
    and again; ValueError if blocks are not as described, of different widths, or without documents.
    """

    def __init__(
        self,
        shards: Any,
        *,
        n_threads: int | None = None,
        digest: bool = False,
        embedded: bool = False,
        fan_out: int = FAN_OUT,
    ) -> None:
        self._client, self._n_threads, self._digest, self._fan_out = shards.client, n_threads, digest, fan_out
        self._embedded = embedded
        self._actors, self._next, self._checked, self._gone = {}, 0, set(), set()
        self._make, self._log, self._replays, self._number = None, [], True, 0
        n_parts = min(len(shards.sources), max(1, len(self._addresses())))
        bounds = np.linspace(0, len(shards.sources), n_parts + 1).astype(int).tolist()
        self._placed = [Placed(shards.sources[a:b], a) for a, b in pairwise(bounds)]
        try:
            self._attempt(lambda: None)
            infos = [placed.info for placed in self._placed]
            self._describe(infos, [placed.first_block for placed in self._placed], embedded)
        except BaseException:
            self.close()
            raise

    def build(self, make: Function, arguments: Any, *, replays: bool = True) -> None:
        """Make the state of each part, as `make(counts, n_threads=..., **arguments)`, with the arguments of each part.

        `make` is to be pickled. `replays` says that a state depends on former calls: a lost one needs them again.
        """
        self._make, self._replays = make, replays
        for placed, own in zip(self._placed, arguments, strict=True):
            placed.arguments = own

        def build_all():
            self._wait([self._build(part) for part in range(len(self._placed))])

        self._attempt(build_all)

    def total(self, method: str, shared: tuple[Any, ...], own: Any = None) -> np.ndarray:
        """Return the sum over all parts of what a method of their states returns, as a new array.

        `shared` are arguments for all parts, kept for lost ones: do not change them. `own` are more, of each part.
        """
        own = [()] * len(self._placed) if own is None else own

        def add_up():
            ranks = sorted(self._actors)
            held = {rank: {} for rank in ranks}
            for part, placed in enumerate(self._placed):
                held[placed.rank][part] = own[part]
            ranks = [rank for rank in ranks if held[rank]]
            top, below = tree(len(ranks), self._fan_out)

            def node(i):
                handle = self._actors[ranks[i]]
                return handle.actor, handle.address, held[ranks[i]], [node(child) for child in below[i]]

            nodes = [node(i) for i in top]
            calls = [(actor.total(self._number, method, shared, *rest), address) for actor, address, *rest in nodes]
            total, parts = added(self._wait(calls))
            if sorted(parts) != list(range(len(self._placed))):
                raise RuntimeError("a part is missing from a sum, or is in it twice; nothing was released.")
            return np.array(total)

        total = self._attempt(add_up)
        self._number += 1
        if self._replays:
            self._log.append((method, shared, own))
        return total

    def replay(self, calls: Any) -> None:
        """Bring all parts, as they were built, to where calls with these arguments of `total` leave them."""
        if not self._replays:
            return

        def replay_all():
            for number, call in enumerate(calls):
                self._wait([self._replay(part, number, call) for part in range(len(self._placed))])

        self._attempt(replay_all)
        self._log, self._number = list(calls), len(calls)

    def close(self) -> None:
        """Let the workers forget everything, now: references that Python has not yet collected do not count."""
        if self._client.status == "running":
            self._client.cancel([handle.future for handle in self._actors.values()])
        self._actors.clear()
        self._log = []

    def _addresses(self):
        """Return the addresses of the workers that may be used, with their numbers of threads."""
        check_client(self._client)
        return {a: n for a, n in sorted(self._client.nthreads().items()) if a not in self._gone}

    def _attempt(self, action):
        """Do something with all parts in place; again if a worker was lost meanwhile."""
        while True:
            try:
                check_client(self._client)
                self._settle()
                return action()
            except Exception:
                check_client(self._client)
                if not self._forget_lost():
                    raise

    def _settle(self):
        """Assign each part without an actor to the one with the fewest blocks, and bring it to where the others are.

        If a worker is lost meanwhile, the next attempt goes through all steps again; actors skip those they have done.
        """
        unassigned = [part for part, placed in enumerate(self._placed) if not placed.ready]
        if not unassigned:
            return
        self._place_actors()
        for part in unassigned:
            if self._placed[part].rank is not None:
                continue
            blocks = Counter({rank: 0 for rank in self._actors})
            for placed in self._placed:
                if placed.rank is not None:
                    blocks[placed.rank] += len(placed.sources)
            self._placed[part].rank = min(blocks, key=lambda rank: (blocks[rank], rank))
        brought = [self._bring(part) for part in unassigned]
        self._wait([pair for pair in brought if isinstance(pair, tuple)])
        loading = [self._load(*pair) for pair in zip(unassigned, brought, strict=True)]
        for part, info in zip(unassigned, self._wait(loading), strict=True):
            if self._placed[part].info not in (None, info):  # its users, and its hidden state, would be those of others
                raise RuntimeError(other_documents(self._placed[part].first_block))
            self._placed[part].info = info
        if self._make is not None:
            self._wait([self._build(part) for part in unassigned])
        for number, call in enumerate(self._log):
            self._wait([self._replay(part, number, call) for part in unassigned])
        for part in unassigned:
            self._placed[part].ready = True

    def _place_actors(self):
        """Place an actor on each worker that has none."""
        deadline = time.monotonic() + PATIENCE
        while not (addresses := self._equipped()):
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"the cluster has no worker, and none came in {PATIENCE:.0f} seconds. With `checkpoint` the next"
                    " fit goes on from the last round, without spending again."
                )
            time.sleep(0.1)
        for address in sorted(addresses.keys() - {handle.address for handle in self._actors.values()}):
            future = self._client.submit(
                Actor, self._n_threads or addresses[address], actor=True, workers=[address], pure=False
            )
            self._actors[self._next] = ActorHandle(address, future)
            self._next += 1
        new = [handle for handle in self._actors.values() if handle.actor is None]
        for handle, actor in zip(new, self._wait([(handle.future, handle.address) for handle in new]), strict=True):
            handle.actor = direct(actor)

    def _equipped(self):
        """Return `_addresses`; raise RuntimeError unless these workers have this package, in this version."""
        addresses = self._addresses().keys() - self._checked

        def version():
            return __import__("importlib").import_module("skdplda").__version__

        # Functions of __main__ are pickled by value: this one runs on workers that lack the package, too.
        version.__module__ = "__main__"
        mine = version()
        answers = self._client.run(version, workers=sorted(addresses), on_error="return") if addresses else {}
        for address, found in answers.items():
            if isinstance(found, OSError):  # it was lost meanwhile
                self._gone.add(address)
            elif isinstance(found, Exception):
                raise RuntimeError(
                    f"worker {address} cannot import skdplda ({found}); install skdplda=={mine} where workers run."
                )
            elif found != mine:
                raise RuntimeError(f"worker {address} has skdplda {found}, this process {mine}; install the same.")
        self._checked |= addresses
        return self._addresses()

    def _bring(self, part):
        """Start to bring a part's blocks to its worker; return the Future of their list and the address, or paths.

        Dask computes Delayed blocks, and again if they were lost. The worker keeps them while there is the Future.
        """
        placed = self._placed[part]
        if all(isinstance(source, str) for source in placed.sources):
            return placed.sources
        computed = iter(self._client.compute([s for s in placed.sources if hasattr(s, "__dask_graph__")]))
        blocks = [next(computed) if hasattr(s, "__dask_graph__") else s for s in placed.sources]
        address = self._actors[placed.rank].address
        return self._client.submit(list, blocks, workers=[address], pure=False), address

    def _load(self, part, blocks):
        blocks = blocks[0].key if isinstance(blocks, tuple) else blocks
        return self._call(part, "load", blocks, self._placed[part].first_block, self._digest, self._embedded)

    def _build(self, part):
        return self._call(part, "build", self._make, self.n_words, self._placed[part].arguments)

    def _replay(self, part, number, call):
        method, shared, own = call
        return self._call(part, "replay", number, method, shared, own[part])

    def _call(self, part, name, *arguments):
        """Call a method of the actor that has a part; return its Future and the address."""
        handle = self._actors[self._placed[part].rank]
        return getattr(handle.actor, name)(part, *arguments), handle.address

    def _here(self, address):
        """Whether the scheduler knows a worker."""
        check_client(self._client)
        return address in self._client.nthreads()

    def _wait(self, calls):
        return wait(calls, self._here)

    def _forget_lost(self):
        """Forget actors that do not answer; return whether there were any."""
        lost = [rank for rank, handle in self._actors.items() if not handle.answers(self._here)]
        for rank in lost:
            self._gone.add(self._actors.pop(rank).address)
        for placed in self._placed:
            if placed.rank in lost:
                placed.rank, placed.ready, placed.losses = None, False, placed.losses + 1
                if placed.losses > MOST_LOSSES:
                    raise RuntimeError(
                        f"the worker of blocks {placed.first_block} to {placed.first_block + len(placed.sources) - 1}"
                        f" was lost {placed.losses} times; perhaps they need more memory than a worker has: use more"
                        " workers or smaller blocks. With `checkpoint` the next fit goes on from the last round,"
                        " without spending again."
                    )
        return bool(lost)


def other_documents(first_block):
    """Return the sentence on a part that was read again and is not what it was."""
    return (
        f"block {first_block} or one of those after it has other documents than when it was read first: blocks must be"
        " the same whenever they are computed. Nothing more was released."
    )


@dataclass(eq=False)
class ActorHandle:
    """An actor as the driver sees it."""

    address: str
    future: object
    actor: object = None

    def answers(self, here):
        """Whether the actor is alive; waits for what it is doing."""
        try:
            return here(self.address) and (self.actor is None or wait([(self.actor.ping(), self.address)], here)[0])
        except Exception:
            return False
