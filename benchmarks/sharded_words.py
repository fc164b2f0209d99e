"""A table that is cut by words: what two workers and two owners of words send each other in a round.

    python benchmarks/sharded_words.py

This is the plan of doc/notes/distributed.rst for tables that no process can hold, on a problem that is some thousand
times smaller, and a simulation: nothing in the package runs like this. Each of two Dask workers holds half of the
documents, and an actor with half of the words: their table, their sum, their noise. In a round a worker asks both
owners for the rows of the words that it has, and for the column sums; redraws its topics; and sends each owner the
cells that its tokens changed, as differences. An owner adds them to its sum, draws the noise of its own cells and makes
its part of the next table. What a message carries is counted as bytes of its arrays, on the worker; `planned` is the
page's formula. The sum of the owners is compared with a count of all topics at the end.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from results import Table, run

from skdplda._kernels._gibbs import TokenBlocks
from skdplda.datasets import make_lda_corpus
from skdplda.privacy import rounded_gaussian

ALPHA, BETA, SIGMA = 0.1, 0.01, 1.0
N = 2  # workers, and owners


@dataclass(frozen=True)
class Settings:
    """Of the rows of one simulation."""

    topics: int
    words: int
    documents: int = 2_000
    rounds: int = 4


def cells():
    """Return what there is to measure."""
    return [Settings(100, 10_000), Settings(400, 20_000)]


class Owner:
    """Some words: their sum, without noise, and their table, with it."""

    def __init__(self, n_words, n_topics, seed):
        self.sum = np.zeros((n_words, n_topics), np.int64)
        self.table = np.random.default_rng(seed).gamma(0.1, 10.0, (n_words, n_topics)).astype(np.float32)
        self.seed, self.round = seed, 0

    def rows(self, words):
        """Return rows of the table, and its column sums."""
        return self.table[words], self.table.sum(0, dtype=np.float64)

    def add(self, cells, changes):
        """Add a worker's differences."""
        self.sum.reshape(-1)[cells] += changes

    def release(self):
        """Draw the noise of these words and make their next table."""
        key = np.random.default_rng([self.seed, self.round])
        noisy = self.sum + rounded_gaussian(SIGMA, self.sum.shape, key)
        self.table, self.round = np.maximum(noisy, 0).astype(np.float32), self.round + 1

    def total(self):
        """Return the column sums of the sum."""
        return self.sum.sum(0)


class Worker:
    """Some documents; a word's number is its place among the words that they have."""

    def __init__(self, X, owners, n_topics):
        words, places = np.unique(X.indices, return_inverse=True)
        self.part, self.words, self.owners, self.n_topics = words % N, words // N, owners, n_topics
        self.own = [np.flatnonzero(self.part == part) for part in range(N)]
        # The last row is of no token: the words that others have.
        self.blocks = TokenBlocks(
            X.indptr.astype(np.int64), places.astype(np.int32), X.data.astype(np.int32), len(words) + 1, n_topics
        )
        self.counts = np.zeros((len(words) + 1, n_topics), np.int32)
        self.n_tokens = int(X.data.sum())

    def work(self, round_):
        """Redraw all topics once; return bytes in, bytes out, and how many rows and cells these were."""
        table = np.zeros((len(self.words) + 1, self.n_topics), np.float32)
        received = sent = cells = 0
        for own, owner in zip(self.own, self.owners, strict=True):
            rows, total = owner.rows(self.words[own]).result()
            table[own] = rows
            table[-1] += total
            received += rows.nbytes + total.nbytes
            sent += self.words[own].astype(np.int32).nbytes
        table[-1] = np.maximum(table[-1] - table[:-1].sum(0), 0)
        before = self.counts.copy()
        alpha = np.full(self.n_topics, ALPHA, np.float32)
        self.blocks.sweep(table, alpha, BETA, 0.0, 1, 0, round_, None, 1)
        self.blocks.move(self.counts, 1)
        changes = self.counts - before
        for own, owner in zip(self.own, self.owners, strict=True):
            row, topic = np.nonzero(changes[own])
            where, by = self.words[own][row].astype(np.int64) * self.n_topics + topic, changes[own][row, topic]
            owner.add(where, by).result()
            sent += where.nbytes + by.nbytes
            cells += len(by)
        return {"received": received, "sent": sent, "rows": len(self.words), "cells": cells, "tokens": self.n_tokens}


def measure(s):
    """Return rows of means by round and worker: the first round, and those after."""
    from dask.distributed import Client, LocalCluster

    with LocalCluster(N, threads_per_worker=1, dashboard_address=":0") as started, Client(started) as client:
        client.wait_for_workers(N)
        return simulate(client, s.topics, s.words, s.documents, s.rounds)


def simulate(client, n_topics, n_words, n_documents, rounds):
    """Do so on a cluster."""
    X = make_lda_corpus(n_documents, n_words, 20, random_state=0).data.tocsr()
    names = list(client.scheduler_info()["workers"])
    owners = [
        client.submit(Owner, len(range(part, n_words, N)), n_topics, part, actor=True, workers=names[part]).result()
        for part in range(N)
    ]
    shards = [X[part::N] for part in range(N)]
    workers = [
        client.submit(Worker, shard, owners, n_topics, actor=True, workers=name).result()
        for shard, name in zip(shards, names, strict=True)
    ]
    found = []
    for round_ in range(rounds):
        # One after the other: an actor that waits for another one answers nobody.
        found += [{"round": round_, **worker.work(round_).result()} for worker in workers]
        for owner in owners:
            owner.release().result()
    counted = sum(int(owner.total().result().sum()) for owner in owners)
    if counted != X.sum():
        raise RuntimeError(f"owners count {counted} tokens of {X.sum()}")
    table = pd.DataFrame(found)
    rows = []
    for when, part in (("first", table[table["round"] == 0]), ("later", table[table["round"] > 0])):
        mean = part.mean()
        rows.append(
            {
                "tokens": int(X.sum()), "round": when,
                "rows of a worker": int(mean["rows"]), "cells changed": int(mean["cells"]),
                "MB received": mean["received"] / 1e6, "MB sent": mean["sent"] / 1e6,
                "MB received, planned": (4 * n_topics * mean["rows"] + N * 8 * n_topics) / 1e6,
                "MB sent, planned at most": (
                    12 * (1 if when == "first" else 2) * mean["tokens"] + 4 * mean["rows"]
                ) / 1e6,
                "MB received, whole tables": 4 * n_topics * n_words / 1e6,
                "MB sent, whole sums": 8 * n_topics * n_words / 1e6,
            }
        )  # fmt: skip
    return rows


TABLES = [
    Table("sharded_words", Settings, cells, measure),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
