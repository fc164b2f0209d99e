"""Rounds on Dask workers: what the network costs, what a second worker gains, and what a thousand would do.

    python benchmarks/workers.py

Every worker is a process of this machine with one thread. Where other programs compete for its cores, wall times say
little; the tables therefore give processor time as well, of the busiest worker: what an idle machine would wait for.

"distributed_texts" is the whole way: a folder of Parquet files with short texts (pieces of the shared corpora) whose
users are scattered over all files; counts of public words, users brought together, words selected, topics, a release.
"predicted" is the line through two runs of SMALL texts a worker, which know nothing of the large one.
"""

import math
import re
import resource
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from corpora import glove, json_rows, newsgroup_posts
from results import Table, run
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.pipeline import make_pipeline

from skdplda import VIPSLDA, DPCountVectorizer, DPVocabularySelector, PrivateCGSLDA, release
from skdplda.datasets import make_lda_corpus, open_counts, write_counts
from skdplda.distributed import ActorPool, ShardedCounts, tree
from skdplda.privacy import rounded_gaussian

TABLES_OF = ((50, 1000), (200, 10_000))  # topics, words
NETWORK = 5.8e8  # bytes a second from process to process: the fastest round measured; ten gigabits carry 1.25e9
LATENCY = 5e-4  # seconds from a process to another one's thread, over Dask's event loops
SMALL = 1e5, 3e5  # texts a worker, of the runs that predict
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
class Texts:
    """Of a row from texts to topics."""

    texts: float
    workers: int = 2
    blocks_a_worker: int = 10
    public_words: int = 20_000
    topics: int = 50
    words: int = 5_000
    epsilon_words: float = 0.5
    epsilon_topics: float = 1.0
    texts_a_user: int = 5


@dataclass(frozen=True)
class Tree:
    """Of a row of rounds of a billion documents, simulated."""

    workers: int
    fan_out: int
    topics: int = 200
    words: int = 10_000
    tokens: float = 1e11
    mean_length: int = 100
    sweeps: int = 8  # updates of a document
    speed: float = 1.2e6  # tokens a second and core in one of these
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


def texts_cells():
    """Return what there is to measure, and at the end what is only predicted."""
    return [Texts(1e6), Texts(1e7), Texts(1e8, 16)]


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


@cache
def documents():
    """Return the words of each document of two corpora, in its order."""
    news = [f"{row['title']} {row['text']}" for row in json_rows("news")]
    return [np.array(text.split(), dtype=object) for text in (*newsgroup_posts().data, *news) if len(text.split()) > 30]


def write_texts(path, n, n_users, seed):
    """Write a Parquet file of pieces of 5 to 25 words, each of a random document and user."""
    rng, texts = np.random.default_rng(seed), []
    chosen, lengths, places = rng.integers(len(documents()), size=n), rng.integers(5, 26, n), rng.random(n)
    for number, length, place in zip(chosen.tolist(), lengths.tolist(), places.tolist(), strict=True):
        words = documents()[number]
        first = int(place * (len(words) - length))
        texts.append(" ".join(words[first : first + length]))
    pd.DataFrame({"text": texts, "user": rng.integers(n_users, size=n)}).to_parquet(path)


def counted(path, folder, words):
    """Count the public words of a file, on a worker; return the folder of the counts, and the users."""
    frame = pd.read_parquet(path)
    counts = DPCountVectorizer(public_vocabulary=words).fit([]).transform(frame["text"].tolist())
    return write_counts(Path(folder) / f"{Path(path).stem}.counts", [counts]).path, frame["user"].to_numpy()


def kept(folder, support):
    """Return the selected words of a folder of counts, on a worker."""
    return [counts[:, support] for _, counts in open_counts(folder).blocks()]


@cache
def from_texts(s):
    """Return the seconds of each step, and what travelled."""
    from dask import delayed

    found, last = {}, None

    def step(name):
        nonlocal last
        now = time.perf_counter(), worker_time(client).max(), wire_bytes()
        if last is not None:
            found[f"{name} s"], found[f"{name}, worker's s"] = now[0] - last[0], now[1] - last[1]
            found["gigabytes sent"] = found.get("gigabytes sent", 0) + (now[2] - last[2]) / 1e9
        last = now

    with tempfile.TemporaryDirectory() as folder, cluster(s.workers) as client:
        place, n_blocks = Path(folder), s.workers * s.blocks_a_worker
        files = [place / f"{number}.parquet" for number in range(n_blocks)]
        for number, path in enumerate(files):
            write_texts(path, round(s.texts / n_blocks), round(s.texts / s.texts_a_user), number)
        words = [word for word in glove()[0] if re.fullmatch(r"\w\w+", word) and word not in ENGLISH_STOP_WORDS]
        words = words[: s.public_words]
        step("start")
        parts = client.gather(client.map(partial(counted, folder=folder, words=words), files))
        folders, users = [path for path, _ in parts], np.concatenate([found for _, found in parts])
        step("counts")
        shards, users = ShardedCounts(folders, client=client).by_user(users)
        saved = [delayed(write_counts)(f"{folder}/{i}.user", part) for i, part in enumerate(shards.sources)]
        folders = [counts.path for counts in client.gather(client.compute(saved))]
        step("users")
        shards = ShardedCounts(folders, client=client)
        selector = DPVocabularySelector(s.epsilon_words, max_words=s.words, random_state=0).fit(shards, groups=users)
        step("words")
        shards = ShardedCounts([delayed(kept)(path, selector.get_support()) for path in folders], client=client)
        model = VIPSLDA(s.topics, epsilon=s.epsilon_topics, random_state=1).fit(shards, groups=users)
        pipeline = make_pipeline(selector, model)
        release(pipeline, feature_names=words, raw_text=False, allow_seeded=True).save(place / "topics.zip")
        step("topics")
        peak = max(client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024).values())
    return found | {
        "seconds": sum(v for name, v in found.items() if re.fullmatch(r"\w+ s", name)),
        "gigabytes": peak / 1e9,
    }


def whole_way(s):
    """Measure the whole way, if this machine has so many workers, beside the line through two short ones."""
    few = [from_texts(replace(s, texts=2 * n, workers=2)) for n in SMALL]
    slope = (few[1]["seconds"] - few[0]["seconds"]) / (SMALL[1] - SMALL[0])
    line = {"seconds, predicted": few[0]["seconds"] + slope * (s.texts / s.workers - SMALL[0])}
    return (from_texts(s) if s.workers <= 2 else dict.fromkeys(few[0], math.nan)) | line


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
        "gigabytes_of_a_worker": (s.tokens / s.workers * (8 + 4 * s.topics / s.mean_length) + 20 * cells) / 1e9,
    }


TABLES = [
    Table("distributed_overhead", Overhead, overhead_cells, overhead, timed=True),
    Table("distributed_scaling", Fit, scaling_cells, measure, timed=True),
    Table("distributed_corpus", Fit, corpus_cells, measure, timed=True),
    Table("distributed_texts", Texts, texts_cells, whole_way, lambda s: ["20news", "news", "glove"], timed=True),
    Table("distributed_tree", Tree, tree_cells, predict),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
