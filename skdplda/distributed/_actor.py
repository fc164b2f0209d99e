"""The worker's half: parts of a corpus, and what calls to workers have in common."""

from importlib import import_module
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from skdplda._checks import MOST_THREADS
from skdplda._files import fingerprint
from skdplda._validation import counts_of
from skdplda.distributed._shards import join_blocks, vocabulary_of
from skdplda.semantics import EmbeddedTexts, UnitMatrix

POLL = 1.0  # seconds after which a caller checks whether the worker is there: calls to one that left may never end


class Part(NamedTuple):
    """What the driver knows of a run of documents: the documents of each block, and what all blocks have in common.

    `n_words` is None where there is no block with documents. `digest`, if it was wanted, joins those of the blocks
    that have documents, whatever blocks are beside them. The last two are of counts beside embeddings.
    """

    sizes: tuple
    n_words: int
    n_tokens: int
    digest: str
    n_counted: int | None = None
    words: tuple | None = None

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return sum(self.sizes)


class Actor:
    """What runs on a worker: the parts that it holds."""

    def __init__(self, n_threads):
        self._n_threads = min(n_threads, MOST_THREADS)
        self._loaded, self._states, self._info, self._done = {}, {}, {}, {}
        self._number, self._sum, self._summed = None, None, set()

    def ping(self):
        """Answer."""
        return True

    def load(self, part, sources, first_block, digest, embedded):
        """Read the blocks of a part and describe it; a name is that of a list which Dask holds on this worker."""
        if part not in self._info:
            self._info[part] = self._load(part, sources, first_block, digest, embedded)
        return self._info[part]

    def _load(self, part, sources, first_block, digest, embedded):
        if isinstance(sources, str):
            sources = import_module("distributed").get_worker().data[sources]
        X, sizes = join_blocks(sources, first_block, embedded)
        self._loaded[part] = X
        if X is None:
            return Part(tuple(sizes), None, 0, "")
        n_tokens, vocabulary = 0, vocabulary_of(X) if embedded else ()
        if not embedded:
            n_tokens = int(counts_of(X).data.sum(dtype=np.int64))
        blocks = pairwise(np.cumsum([0, *sizes]).tolist()) if digest else ()
        digests = [fingerprint(*arrays_of(X[first:last])) for first, last in blocks if first < last]
        return Part(tuple(sizes), X.shape[1], n_tokens, "".join(digests), *vocabulary)

    def build(self, part, make, n_words, arguments):
        """Make the state of a part from its documents, which are not kept."""
        if part in self._states:
            return
        counts = self._loaded.pop(part)
        if counts is None:
            counts = sp.csr_array((0, n_words), dtype=np.int32)
            counts.indptr = counts.indptr.astype(np.int64)
        self._states[part], self._done[part] = make(counts, n_threads=self._n_threads, **arguments), 0

    def awaits(self, part, number):
        """Whether a call is the next one of a part."""
        return number == self._done[part]

    def replay(self, part, number, method, shared, own):
        """Do one call again, for one part, without a result; nothing if the part has done it."""
        if self.awaits(part, number):
            getattr(self._states[part], method)(*shared, *own)
            self._done[part] = number + 1

    def total(self, number, method, shared, own, below):
        """Return the sum over the parts here and below, and which they are."""
        calls = [(direct(a).total(number, method, shared, *rest), address) for a, address, *rest in below]
        if number != self._number:
            self._number, self._sum, self._summed = number, None, set()
        for part in sorted(own.keys() - self._summed):
            value = getattr(self._states[part], method)(*shared, *own[part])
            self._sum = value if self._sum is None else self._sum + value
            self._summed.add(part)
            self._done[part] = number + 1
        results = [(self._sum, sorted(self._summed))]
        return added(results + wait(calls, still_here))


def arrays_of(X):
    """Yield the arrays that documents consist of."""
    if isinstance(X, EmbeddedTexts):
        for matrix in (X.vectors, X.counts):
            yield from () if matrix is None else arrays_of(matrix)
    elif isinstance(X, np.ndarray):
        yield X
    else:
        matrix = counts_of(X)
        yield from (X.start, X.counts.indptr.astype(np.int64)) if isinstance(X, UnitMatrix) else ()
        yield from (
            np.array(matrix.shape),
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int64),
            matrix.data,
        )


def direct(actor):
    """Return an actor whose calls fail at once when its worker is gone.

    Dask would wait for the actor to be made anew, at times on the event loop that would have to make it.
    """
    actor._future = None  # the pool keeps the future that holds the actor
    return actor


def still_here(address):
    """Whether the scheduler knows a worker; on another worker."""
    distributed = import_module("distributed")
    worker = distributed.get_worker()
    return address in distributed.utils.sync(worker.loop, worker.scheduler.ncores, workers=[address])


def added(results):
    """Return the sum of (array, parts) pairs."""
    total = results[0][0]
    for value, _ in results[1:]:
        total = total + value
        if total.dtype == np.int32 and total.min(initial=0) < 0:
            raise OverflowError(
                "a word has more than 2**31 tokens in one topic: use a model with noise, or fewer documents."
            )
    return total, [part for _, parts in results for part in parts]


def wait(calls, here):
    """Return the results of (call, address) pairs; all are over when one's error is raised.

    So nobody is at work for an old attempt when the driver makes a new one. `here` says whether an address is known.
    """
    results, error = [], None
    for call, address in calls:
        try:
            results.append(outcome(call, address, here))
        except Exception as raised:
            error = raised
    if error is not None:
        raise error
    return results


def outcome(call, address, here):
    """Return the result of a call, or raise OSError if its worker has left."""
    while True:
        try:
            return call.result(timeout=POLL)
        except TimeoutError:
            if call.done():
                return call.result()
            if not here(address):
                raise OSError(f"worker {address} has left the cluster") from None
