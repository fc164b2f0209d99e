"""Speed of the local model: randomizing, writing, reading and fitting reports.

Times are CPU time of one thread. The dense implementation is NumPy's, and not cryptographic: one uniform for each bit
to choose it, and one for its coin. "One draw" is its best form, a single uniform for each bit, compared with f/2.
Documents have 60 words of the vocabulary, drawn at random.

    python benchmarks/local.py
"""

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from results import Table, run

from skdplda import LocalPrivateLDA
from skdplda.local import (
    BitChannel,
    LocalRandomizer,
    bit_epsilon_of_coin,
    make_reports,
    randomize_bits,
    read_reports,
    report_size,
)

CHUNK = 50_000


@dataclass(frozen=True)
class Settings:
    """Of a row: reports that are randomized, written, read or fitted to; of documents of `length` words."""

    what: str
    words: int
    f: float
    documents: int
    length: int = 60
    topics: int = 20
    sweeps: int = 10


def cells():
    """Return what there is to measure: randomizing for several f, and the rest for twice as many reports each time."""
    sizes = ((1000, 0.5), (1000, 0.1), (1000, 0.01), (1000, 0.001), (10_000, 0.1), (10_000, 0.001))
    found = [("randomize", n, f, 1_000_000 if (n, f) == (1000, 0.1) else 100_000) for n, f in sizes]
    found += [
        (what, 1000, 0.1, n) for n in (10_000, 20_000, 40_000) for what in ("write reports", "read reports", "fit")
    ]
    return [Settings(*one) for one in found]


def documents(n, n_words, length):
    """Return n documents of so many words."""
    rng = np.random.default_rng(0)
    chosen = rng.random((n, n_words), dtype=np.float32).argpartition(length, axis=1)[:, :length]
    indices = np.sort(chosen, axis=1).astype(np.int32).ravel()
    return sp.csr_array((np.ones(n * length, np.int32), indices, np.arange(n + 1) * length), shape=(n, n_words))


def dense(present, f, rng):
    """Randomized response as it is usually written."""
    coins = rng.random(present.shape) < 0.5
    return np.packbits(np.where(rng.random(present.shape) < f, coins, present), axis=1, bitorder="little")


def one_draw(present, f, rng):
    """The same law with half the uniforms."""
    return np.packbits(present ^ (rng.random(present.shape) < f / 2), axis=1, bitorder="little")


def cpu(work):
    """Return the CPU seconds of a call, and its result."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def randomizing(s):
    """Compare the kernel with the dense implementation, interleaved."""
    X, rng = documents(min(s.documents, CHUNK), s.words, s.length), np.random.default_rng(1)
    channel = BitChannel(bit_epsilon_of_coin(s.f), "symmetric", s.words)
    few = X[: max(1, 2_000_000 // s.words)].toarray() > 0
    ours, theirs, best, done = 0.0, [], [], 0
    randomize_bits(X[:100], channel)  # the tables are made once
    while done < s.documents:
        ours += cpu(lambda: randomize_bits(X, channel))[0]
        theirs.append(cpu(lambda: dense(few, s.f, rng))[0] / len(few))
        best.append(cpu(lambda: one_draw(few, s.f, rng))[0] / len(few))
        done += X.shape[0]
    return {
        "us a document": 1e6 * ours / done,
        "documents a second": done / ours,
        "dense us a document": 1e6 * np.median(theirs),
        "times faster": np.median(theirs) * done / ours,
        "one draw us a document": 1e6 * np.median(best),
        "times faster than one draw": np.median(best) * done / ours,
        "bytes a report": report_size(s.words),
    }


def measure(s):
    """Return what one of them takes."""
    if s.what == "randomize":
        return randomizing(s)
    randomizer, words = LocalRandomizer(bit_epsilon_of_coin(s.f)), [f"word{i}" for i in range(s.words)]
    X = documents(s.documents, s.words, s.length)
    seconds, reports = cpu(lambda: make_reports(X, words, randomizer))
    if s.what != "write reports":
        contents = [report.tobytes() for report in reports]
        seconds, batch = cpu(lambda: read_reports(contents, words, randomizer))
    if s.what == "fit":
        model = LocalPrivateLDA(s.topics, randomizer=randomizer, input="reports", max_iter=s.sweeps)
        seconds, _ = cpu(lambda: model.fit(batch.data))
    found = {"us a document": 1e6 * seconds / s.documents, "documents a second": s.documents / seconds}
    return found | {"bytes a report": report_size(s.words)}


TABLES = [
    Table("local", Settings, cells, measure, timed=True),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
