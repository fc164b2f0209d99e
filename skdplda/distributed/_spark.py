"""Parts of a corpus in the partitions of a Spark RDD: the sums of `ActorPool`, to the last bit.

A task of Spark has no memory, and may run twice, or anywhere. So the actor of a part is kept by the Python process that
ran the part's last task, as long as Spark keeps that. Another process makes it anew: it reads the documents, and
replays the calls so far, as where a worker of Dask is lost. What a call returns does not depend on where it ran, nor on
how often.
"""

from collections import deque
from functools import partial
from importlib.metadata import version
from operator import add
from uuid import uuid4

import numpy as np

from skdplda.distributed._actor import Actor, added
from skdplda.distributed._pool import Pool, other_documents

ACTORS = {}  # of this process: {(pool, part): actor}, of one pool at a time
PART = 0  # an actor has one part here


class SparkPool(Pool):
    """The parts of a corpus in the partitions of an RDD; see `ActorPool`, whose parameters and methods it has.

    An error of a task that is not Spark's is raised here as it was raised there.
    """

    def __init__(self, shards, *, n_threads=None, digest=False, embedded=False):
        self._rdd, self._n_threads, self._reads = shards.rdd, n_threads or 1, (digest, embedded)
        self._key, self._make, self._arguments, self._replays = uuid4().hex, None, None, True
        self._calls, self._number = [], 0  # those that an actor which is made anew has to replay
        self.parts, n_parts = None, shards.rdd.getNumPartitions()
        found = dict(self._reduced(read, (), add))
        self._describe([found[part] for part in range(n_parts)], range(n_parts), embedded)

    def build(self, make, arguments, *, replays=True):
        """Note how the state of each part is made: where it is needed."""
        self._make, self._arguments, self._replays = make, list(arguments), replays

    def total(self, method, shared, own=None):
        """Return the sum over all parts of what a method of their states returns, as a new array."""
        call = self._rdd.context.broadcast((method, shared, own))
        given = self._make, self.n_words, self._arguments, [*self._calls, call], self._number
        total, parts = self._reduced(answer_of, given, lambda *answers: added(answers))
        if sorted(parts) != list(range(len(self.parts))):
            raise RuntimeError("a part is missing from a sum, or is in it twice; nothing was released.")
        self._number += 1
        if self._replays:
            self._calls.append(call)
        else:
            call.destroy()
        return np.array(total)

    def replay(self, calls):
        """Let the next call begin where these leave the parts."""
        if self._replays:
            self._calls, self._number = [self._rdd.context.broadcast(call) for call in calls], len(calls)

    def close(self):
        """Forget the calls. Actors are let go by the next pool, or with their processes."""
        for call in self._calls:
            call.destroy()
        self._calls = []

    def _reduced(self, function, arguments, joined):
        """Return what a function answers of each part, reduced, or raise the error that an answer is."""
        answers = self._rdd.mapPartitionsWithIndex(self._task(function, arguments))
        answer = answers.treeReduce(partial(either, joined=joined))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _task(self, function, arguments):
        reads, known = (self._key, self._n_threads, *self._reads), self.parts
        mine = version("skdplda")

        def task(part, blocks):
            try:
                if (found := version("skdplda")) != mine:
                    raise RuntimeError(f"a worker has skdplda {found}, this process {mine}; install the same.")
                actor, info = actor_of(part, blocks, *reads)
                if known is not None and info != known[part]:
                    raise RuntimeError(other_documents(part))
                answer = function(part, actor, info, *arguments)
            except Exception as error:
                answer = error
            deque(blocks, maxlen=0)  # Spark ends a process that leaves a part unread
            yield answer

        return task


def actor_of(part, blocks, pool, n_threads, digest, embedded):
    """Return the actor of a part in this process, and what it says of its documents."""
    if (pool, part) not in ACTORS:
        for key in [key for key in ACTORS if key[0] != pool]:
            del ACTORS[key]
        actor = Actor(n_threads)
        actor.load(PART, list(blocks), part, digest, embedded)
        ACTORS[pool, part] = actor
    actor = ACTORS[pool, part]
    return actor, actor.load(PART, None, part, digest, embedded)


def read(part, actor, info):
    """Return what there is to know of a part."""
    return [(part, info)]


def answer_of(part, actor, info, make, n_words, arguments, calls, number):
    """Bring a part to a call, make it, and return what it says."""
    actor.build(PART, make, n_words, arguments[part])
    for earlier, call in enumerate(calls[:-1]):
        if actor.awaits(PART, earlier):
            method, shared, own = call.value
            actor.replay(PART, earlier, method, shared, () if own is None else own[part])
    method, shared, own = calls[-1].value
    return actor.total(number, method, shared, {PART: () if own is None else own[part]}, [])[0], [part]


def either(first, second, joined):
    """Return two answers as one, or the error that one of them is."""
    for answer in (first, second):
        if isinstance(answer, Exception):
            return answer
    return joined(first, second)
