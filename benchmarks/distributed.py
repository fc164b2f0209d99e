"""Rounds on Dask workers: what the network costs, what a second worker gains, and what a thousand would do.

    python benchmarks/distributed.py --what overhead scaling corpus tree
    python benchmarks/distributed.py --quick

Every worker is a process of this machine with one thread. Where other programs compete for its cores, wall times say
little; the tables therefore give processor time as well, of the busiest worker: what an idle machine would wait for.
"""

import argparse
import inspect
import os
import resource
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from results import save

from skdplda import PrivateCGSLDA
from skdplda.datasets import make_lda_corpus, write_counts
from skdplda.distributed import ActorPool, ShardedCounts, tree
from skdplda.privacy import rounded_gaussian

TABLES = ((50, 1000), (200, 10_000))  # topics, words
NETWORK = 5.8e8  # bytes a second from process to process: the fastest round measured; ten gigabits carry 1.25e9
LATENCY = 5e-4  # seconds from a process to another one's thread, over Dask's event loops
ADDING = 4e9  # bytes of sums that a worker adds in a second


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


def overhead(options):
    """Time and bytes of rounds without work, for two workers."""
    import dask
    import scipy.sparse as sp

    rows = []
    for direct in (True, False):
        with cluster(2, direct) as client:
            shards = ShardedCounts([dask.delayed(sp.csr_matrix((1, 1), dtype=np.int32))] * 2, client=client)
            for n_topics, n_words in TABLES:
                shape, rounds = (n_words, n_topics), 10 if options.quick else 200 if n_words < 10_000 else 40
                pool = ActorPool(shards)
                pool.build(Echo, [{"shape": shape}] * 2, replays=False)
                table = np.ones(shape, np.float32)
                pool.total("collect", (table,))
                times, sent = [], []
                for _ in range(rounds):
                    before, begin = wire_bytes(), time.perf_counter()
                    pool.total("collect", (table,))
                    times.append(time.perf_counter() - begin)
                    sent.append(wire_bytes() - before)
                pool.close()
                begin = time.thread_time()
                rounded_gaussian(1e6, shape, None, 1)
                noise = time.thread_time() - begin
                least = 2 * (4 + 8) * n_words * n_topics
                rows.append(
                    {
                        "topics": n_topics,
                        "words": n_words,
                        "connection": "direct" if direct else "through the scheduler",
                        "milliseconds": 1e3 * np.median(times),
                        "fastest_milliseconds": 1e3 * min(times),
                        "megabytes": np.median(sent) / 1e6,
                        "least_megabytes": least / 1e6,
                        "noise_milliseconds": 1e3 * noise,
                    }
                )
    return pd.DataFrame(rows)


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


def fit_shards(paths, n_workers, options, **limits):
    """Fit shard files and return what it took; the model for a comparison."""
    with cluster(n_workers, **limits) as client:
        shards = ShardedCounts(paths, client=client)
        marks = []

        def mark(report):
            marks.append((time.perf_counter(), worker_time(client)))

        model = PrivateCGSLDA(
            options.topics, max_iter=options.rounds, local_sweeps=options.sweeps, callback=mark, random_state=0
        ).fit(shards)
        peak = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    rounds = len(marks) - 1
    return model, {
        "workers": n_workers,
        "wall_seconds_a_round": (marks[-1][0] - marks[0][0]) / rounds,
        "busiest_worker_seconds_a_round": (marks[-1][1] - marks[0][1]).max() / rounds,
        "peak_gigabytes_of_a_worker": max(peak.values()) / 1e9,
        "epsilon": model.privacy_guarantee_.epsilon,
    }


def scaling(options):
    """One worker and two, for the same shard files, in turn."""
    rows, models = [], []
    with tempfile.TemporaryDirectory() as folder:
        paths, tokens = write_shards(Path(folder), 4, options.tokens, options.words, options.topics)
        for n_workers in (1, 2):
            model, row = fit_shards(paths, n_workers, options)
            models.append(model)
            rows.append({"tokens": tokens, **row})
    assert np.array_equal(models[0].components_, models[1].components_), "one model for any number of workers"
    table = pd.DataFrame(rows)
    for kind in ("wall", "busiest_worker"):
        name = f"{kind}_seconds_a_round"
        table[f"{kind}_speedup"] = table[name].iloc[0] / table[name]
    return table


def corpus(options):
    """A large corpus from shard files, on workers that may not take more than 4 GiB."""
    with tempfile.TemporaryDirectory() as folder:
        paths, tokens = write_shards(Path(folder), 10, options.large, options.words, options.topics)
        _, row = fit_shards(paths, 2, options, memory_limit="4GiB")
    return pd.DataFrame([{"tokens": tokens, "memory_limit": "4 GiB", **row}])


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


def predict(options):
    """Rounds of a billion documents on a thousand workers, for several trees."""
    rows, n_topics, n_words = [], 200, 10_000
    cells, tokens = n_topics * n_words, 1e9 * 100
    for n_workers in (10, 100, 1000):
        sweep = tokens * 10 / n_workers / options.speed / options.cores  # ten sweeps a round
        for fan_out in (2, 3, 4, 8, 16, n_workers):
            idle = simulate(n_workers, 0.0, 4 * cells, 8 * cells, fan_out)
            busy = simulate(n_workers, sweep, 4 * cells, 8 * cells, fan_out)
            rows.append(
                {
                    "workers": n_workers,
                    "fan_out": fan_out,
                    "network_seconds": idle,
                    "sweep_seconds": sweep,
                    "round_seconds": busy,
                    "gigabytes_a_round": n_workers * 12 * cells / 1e9,
                    "gigabytes_of_a_worker": tokens / n_workers * 6 / 1e9 + 18 * cells / 1e9,
                }
            )
    return pd.DataFrame(rows)


def plot(table, path):
    """Draw the network's share of a round against the fan-out."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    ax = figure.subplots()
    colours = ("#0072b2", "#d55e00", "#009e73")
    for (n_workers, part), colour, mark in zip(table.groupby("workers"), colours, "os^", strict=True):
        part = part[part["fan_out"] <= n_workers]
        ax.loglog(part["fan_out"], part["network_seconds"], mark + "-", color=colour, label=f"{n_workers} workers")
    default = inspect.signature(tree).parameters["fan_out"].default
    ax.axvline(default, color="#999999", linestyle="--", label=f"default, {default}")
    ax.set(xlabel="children of a node (last point: all workers send to the driver)", ylabel="seconds a round")
    ax.set_title("Table down and sum up, 200 topics × 10,000 words,\n580 MB/s (simulated)", fontsize=11)
    ax.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main():
    """Run what is asked for; print and save the tables."""
    parts = {"overhead": overhead, "scaling": scaling, "corpus": corpus, "tree": predict}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--tokens", type=float, default=2e7, help="of the scaling corpus")
    parser.add_argument("--large", type=float, default=1e8, help="tokens of the large corpus")
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sweeps", type=int, default=2)
    parser.add_argument("--speed", type=float, default=1e7, help="tokens a second a core, for the prediction")
    parser.add_argument("--cores", type=int, default=8, help="of a worker; for the prediction")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    if options.quick:
        options.tokens, options.large, options.words = 1e5, 2e5, 1000
    os.makedirs(options.output, exist_ok=True)
    pd.set_option("display.width", 160, "display.max_columns", 20)
    for name in options.what:
        table = parts[name](options)
        print(table.to_string(index=False, float_format="{:.4g}".format), "\n", flush=True)
        save(table, options.output / f"distributed_{name}.csv", [parts[name]])
        if name == "tree":
            plot(table, options.output / "distributed_tree.png")


if __name__ == "__main__":
    main()
