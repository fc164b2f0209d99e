"""Rounds on Dask workers: what the network costs, what a second worker gains, and what a thousand would do.

    python benchmarks/workers.py

Every worker is a process of this machine with one thread. Where other programs compete for its cores, wall times say
little; the tables therefore give processor time as well, of the busiest worker: what an idle machine would wait for.
"""

import resource
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from results import Table, run

from skdplda import PrivateCGSLDA
from skdplda.datasets import make_lda_corpus, write_counts
from skdplda.distributed import ActorPool, ShardedCounts, tree
from skdplda.privacy import rounded_gaussian

TABLES_OF = ((50, 1000), (200, 10_000))  # topics, words
NETWORK = 5.8e8  # bytes a second from process to process: the fastest round measured; ten gigabits carry 1.25e9
LATENCY = 5e-4  # seconds from a process to another one's thread, over Dask's event loops
ADDING = 4e9  # bytes of sums that a worker adds in a second


@dataclass(frozen=True)
class Overhead:
    """Of a row of rounds without work."""

    topics: int
    words: int
    connection: str
    rounds: int


@dataclass(frozen=True)
class Fit:
    """Of a row of a fit from shard files; a limit of "" is none."""

    corpus_tokens: float
    workers: int
    shards: int
    memory_limit: str = "none"
    topics: int = 50
    words: int = 10_000
    rounds: int = 3
    sweeps: int = 2
    mean_length: int = 100


@dataclass(frozen=True)
class Tree:
    """Of a row of rounds of a billion documents, simulated."""

    workers: int
    fan_out: int
    topics: int = 200
    words: int = 10_000
    tokens: float = 1e11
    sweeps: int = 10
    speed: float = 1e7  # tokens a second a core
    cores: int = 8
    network: float = NETWORK


def overhead_cells():
    """Return what there is to measure."""
    found = product(("direct", "through the scheduler"), TABLES_OF)
    return [Overhead(*size, connection, 200 if size[1] < 10_000 else 40) for connection, size in found]


def scaling_cells():
    """Return what there is to measure: one worker and two, for the same shard files."""
    return [Fit(2e7, workers, 4) for workers in (1, 2)]


def corpus_cells():
    """Return what there is to measure: a large corpus, on workers that may not take more than 4 GiB."""
    return [Fit(1e8, 2, 10, "4GiB")]


def tree_cells():
    """Return what there is to simulate."""
    return [Tree(n, fan_out) for n in (10, 100, 1000) for fan_out in dict.fromkeys((2, 3, 4, 8, 16, n))]


@contextmanager
def cluster(n_workers, direct=True, **options):
    """Start workers of one thread each."""
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", **options) as started,
        Client(started, direct_to_workers=direct) as client,
    ):
        client.wait_for_workers(n_workers)
        yield client


class Echo:
    """A state that has its sum at once."""

    def __init__(self, X, shape, n_threads):
        self.sum = np.ones(shape, np.int64)

    def collect(self, table):
        """Return a table of integers for one of floats."""
        return self.sum


def wire_bytes():
    """Return the bytes that the loopback interface has sent: all programs of this machine."""
    import psutil

    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent


def overhead(s):
    """Time and bytes of rounds without work, for two workers."""
    import dask
    import scipy.sparse as sp

    shape = (s.words, s.topics)
    with cluster(2, s.connection == "direct") as client:
        shards = ShardedCounts([dask.delayed(sp.csr_matrix((1, 1), dtype=np.int32))] * 2, client=client)
        pool = ActorPool(shards)
        pool.build(Echo, [{"shape": shape}] * 2, replays=False)
        table = np.ones(shape, np.float32)
        pool.total("collect", (table,))
        times, sent = [], []
        for _ in range(s.rounds):
            before, begin = wire_bytes(), time.perf_counter()
            pool.total("collect", (table,))
            times.append(time.perf_counter() - begin)
            sent.append(wire_bytes() - before)
        pool.close()
    begin = time.thread_time()
    rounded_gaussian(1e6, shape, None, 1)
    noise = time.thread_time() - begin
    return {
        "milliseconds": 1e3 * np.median(times),
        "fastest_milliseconds": 1e3 * min(times),
        "megabytes": np.median(sent) / 1e6,
        "least_megabytes": 2 * (4 + 8) * s.words * s.topics / 1e6,
        "noise_milliseconds": 1e3 * noise,
    }


def write_shards(folder, n_shards, n_tokens, n_words, n_topics, mean_length=100):
    """Write shard files of a synthetic corpus; return their paths and the number of tokens."""
    paths, total = [], 0
    for number in range(n_shards):
        n_documents = round(n_tokens / n_shards / mean_length)
        X = make_lda_corpus(n_documents, n_words, n_topics, mean_length=mean_length, random_state=number).data
        paths.append(write_counts(folder / str(number), [X]).path)
        total += int(X.sum())
    return paths, total


def worker_time(client):
    """Return the processor time of each worker so far."""
    return np.array(list(client.run(time.process_time).values()))


@cache
def fit(s):
    """Fit shard files; return the topics and what it took."""
    limits = {} if s.memory_limit == "none" else {"memory_limit": s.memory_limit}
    with tempfile.TemporaryDirectory() as folder, cluster(s.workers, **limits) as client:
        sizes = s.words, s.topics, s.mean_length
        paths, tokens = write_shards(Path(folder), s.shards, s.corpus_tokens, *sizes)
        shards, marks = ShardedCounts(paths, client=client), []

        def mark(report):
            marks.append((time.perf_counter(), worker_time(client)))

        options = {"max_iter": s.rounds, "local_sweeps": s.sweeps, "callback": mark, "random_state": 0}
        model = PrivateCGSLDA(s.topics, **options).fit(shards)
        peak = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    rounds = len(marks) - 1
    return model.components_, {
        "tokens": tokens,
        "wall_seconds_a_round": (marks[-1][0] - marks[0][0]) / rounds,
        "busiest_worker_seconds_a_round": (marks[-1][1] - marks[0][1]).max() / rounds,
        "peak_gigabytes_of_a_worker": max(peak.values()) / 1e9,
        "epsilon": model.privacy_guarantee_.epsilon,
    }


def measure(s):
    """Fit, and compare with one worker where memory is not limited."""
    topics, found = fit(s)
    if s.memory_limit != "none":
        return found
    alone, seconds = fit(replace(s, workers=1))
    assert np.array_equal(topics, alone), "one model for any number of workers"
    names = {f"{kind}_speedup": f"{kind}_seconds_a_round" for kind in ("wall", "busiest_worker")}
    return found | {name: seconds[column] / found[column] for name, column in names.items()}


def simulate(n_workers, sweep, table, total, fan_out, network=NETWORK, spread=0.1, random_state=0):
    """Return the seconds of a round: tables go down the tree, sums come up, each worker sweeps meanwhile.

    A node sends to its children one after the other and receives their sums one after the other; the times of sweeps
    are log-normal with the given spread.
    """
    top, below = tree(n_workers, fan_out)
    work = sweep * np.random.default_rng(random_state).lognormal(0, spread, n_workers)

    def ready(nodes, begin, own):
        """Return when a node that had the table at `begin` has the sum of its own and those below it."""
        arrivals = sorted(
            ready(below[child], start, start + work[child])
            for child, start in ((c, begin + LATENCY + (i + 1) * table / network) for i, c in enumerate(nodes))
        )
        free = begin
        for arrival in arrivals:
            free = max(free, arrival + LATENCY) + total / network
        return max(free, own) + len(nodes) * total / ADDING

    return ready(top, 0.0, 0.0)


def predict(s):
    """Return the seconds of a round."""
    cells = s.topics * s.words
    sweep = s.tokens * s.sweeps / s.workers / s.speed / s.cores
    idle, busy = (simulate(s.workers, w, 4 * cells, 8 * cells, s.fan_out, s.network) for w in (0.0, sweep))
    return {
        "network_seconds": idle,
        "sweep_seconds": sweep,
        "round_seconds": busy,
        "gigabytes_a_round": s.workers * 12 * cells / 1e9,
        "gigabytes_of_a_worker": s.tokens / s.workers * 6 / 1e9 + 18 * cells / 1e9,
    }


TABLES = [
    Table("distributed_overhead", Overhead, overhead_cells, overhead, timed=True),
    Table("distributed_scaling", Fit, scaling_cells, measure, timed=True),
    Table("distributed_corpus", Fit, corpus_cells, measure, timed=True),
    Table("distributed_tree", Tree, tree_cells, predict),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
