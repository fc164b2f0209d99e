"""Speed of the local model: randomizing, writing, reading and fitting reports.

Times are CPU time of one thread. The dense implementation is NumPy's, and not cryptographic: one uniform for each bit
to choose it, and one for its coin. "One draw" is its best form, a single uniform for each bit, compared with f/2.
Documents have 60 words of the vocabulary, drawn at random.

    python benchmarks/local.py --output benchmarks/results/local.csv
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from results import save

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

CHUNK, LENGTH = 50_000, 60


def documents(n, n_words, rng):
    """Return n documents of `LENGTH` words."""
    chosen = rng.random((n, n_words), dtype=np.float32).argpartition(LENGTH, axis=1)[:, :LENGTH]
    indices = np.sort(chosen, axis=1).astype(np.int32).ravel()
    return sp.csr_array((np.ones(n * LENGTH, np.int32), indices, np.arange(n + 1) * LENGTH), shape=(n, n_words))


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


def randomizing(n_documents, rows, rng):
    """Compare the kernel with the dense implementation, interleaved, for several f and vocabularies."""
    for n_words, f in ((1000, 0.5), (1000, 0.1), (1000, 0.01), (1000, 0.001), (10_000, 0.1), (10_000, 0.001)):
        n = n_documents if (n_words, f) == (1000, 0.1) else max(1, n_documents // 10)
        X = documents(min(n, CHUNK), n_words, rng)
        channel = BitChannel(bit_epsilon_of_coin(f), "symmetric", n_words)
        few = X[: max(1, 2_000_000 // n_words)].toarray() > 0
        ours, theirs, best, done = 0.0, [], [], 0
        randomize_bits(X[:100], channel)  # the tables are made once
        while done < n:
            ours += cpu(lambda: randomize_bits(X, channel))[0]  # noqa: B023 - called at once
            theirs.append(cpu(lambda: dense(few, f, rng))[0] / len(few))  # noqa: B023
            best.append(cpu(lambda: one_draw(few, f, rng))[0] / len(few))  # noqa: B023
            done += X.shape[0]
        rows.append(
            {
                "what": "randomize",
                "words": n_words,
                "f": f,
                "documents": done,
                "us a document": 1e6 * ours / done,
                "documents a second": done / ours,
                "dense us a document": 1e6 * np.median(theirs),
                "times faster": np.median(theirs) * done / ours,
                "one draw us a document": 1e6 * np.median(best),
                "times faster than one draw": np.median(best) * done / ours,
            }
        )


def files(n_documents, rows, rng):
    """Write and read reports, and fit to them: twice as many should take twice as long."""
    randomizer, words = LocalRandomizer(bit_epsilon_of_coin(0.1)), [f"word{i}" for i in range(1000)]
    X = documents(n_documents, 1000, rng)
    for n in (n_documents // 4, n_documents // 2, n_documents):
        write, reports = cpu(lambda: make_reports(X[:n], words, randomizer))  # noqa: B023
        contents = [report.tobytes() for report in reports]
        read, batch = cpu(lambda: read_reports(contents, words, randomizer))  # noqa: B023
        model = LocalPrivateLDA(20, randomizer=randomizer, input="reports", max_iter=10)
        fit, _ = cpu(lambda: model.fit(batch.data))  # noqa: B023
        for what, seconds in (("write reports", write), ("read reports", read), ("fit, 10 sweeps, K=20", fit)):
            row = {"what": what, "words": 1000, "f": 0.1, "documents": n, "us a document": 1e6 * seconds / n}
            rows.append(row | {"documents a second": n / seconds})


def main():
    """Print and save the table."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--documents", type=int, default=1_000_000, help="to randomize at f=0.1 (default: 1000000)")
    parser.add_argument("--reports", type=int, default=40_000, help="to write, read and fit (default: 40000)")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the documents, a tenth of the reports")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "local.csv")
    args = parser.parse_args()
    if args.quick:
        args.documents, args.reports = args.documents // 100, args.reports // 10
    rng, rows = np.random.default_rng(0), []
    randomizing(args.documents, rows, rng)
    files(args.reports, rows, rng)
    table = pd.DataFrame(rows)
    print(table.to_string(index=False, float_format="{:,.2f}".format, na_rep=""))
    print(f"a report over 1,000 words has {report_size(1000)} bytes")
    table["bytes a report"] = [report_size(n) for n in table.words]
    save(table, args.output, [randomizing, files])


if __name__ == "__main__":
    main()
