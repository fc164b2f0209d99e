"""Time and memory of a fit from disk against the number of documents: each size in a process of its own.

Documents are synthetic (100 tokens on average) and written in chunks, then fitted with noise. Memory is the peak of the
process that fits, and should not grow with the corpus; seconds are CPU time of the fit, and should, in proportion.

    python benchmarks/streams.py --documents 1e4 1e5 1e6
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from results import save

CHUNK = 10_000


def write(folder, n_documents, n_words, n_topics):
    """Write a corpus in chunks; the topics of each chunk are its own, which does not matter here."""
    from skdplda.datasets import make_lda_corpus, write_counts

    def chunks():
        for number, first in enumerate(range(0, n_documents, CHUNK)):
            size = min(CHUNK, n_documents - first)
            yield make_lda_corpus(size, n_words, n_topics, mean_length=100, random_state=number).data

    write_counts(folder, chunks())


def peak():
    """Return the peak of this program's memory in bytes; Linux only. (ru_maxrss would count the parent's as well.)"""
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text()).group(1))


def measure(folder, n_topics, rounds, rate, jobs):
    """Fit from disk and return what it took."""
    from skdplda import VIPSLDA
    from skdplda.datasets import open_counts

    counts = open_counts(folder)
    model = VIPSLDA(n_topics, epsilon=5.0, max_iter=rounds, sampling_rate=rate, n_jobs=jobs)
    model.privacy_cost()
    before = peak()
    begin, wall = time.process_time(), time.perf_counter()
    model.fit(counts)
    return {
        "documents": counts.shape[0],
        "sampling_rate": rate,
        "corpus_megabytes": (8 * counts.nnz + 8 * counts.shape[0]) / 1e6,
        "cpu_seconds": time.process_time() - begin,
        "wall_seconds": time.perf_counter() - wall,
        "peak_before_fit_megabytes": before / 1e6,
        "peak_megabytes": peak() / 1e6,
    }


def main():
    """Run the sizes one after the other; print and save the table."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--documents", type=float, nargs="+", default=[1e4, 1e5, 1e6])
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--words", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--rates", type=float, nargs="+", default=[1.0, 0.01])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="two small sizes")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.topics, options.rounds, options.rates[0], options.jobs)))
        return
    sizes = [1e3, 1e4] if options.quick else options.documents
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            corpus = str(Path(folder, "corpus"))
            write(corpus, int(size), options.words, options.topics)
            for rate in options.rates:
                command = [
                    sys.executable,
                    __file__,
                    "--one",
                    corpus,
                    "--rates",
                    str(rate),
                    "--topics",
                    str(options.topics),
                ]
                command += ["--rounds", str(options.rounds), "--jobs", str(options.jobs)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                rows.append(json.loads(done.stdout))
                print(rows[-1], flush=True)
    table = pd.DataFrame(rows).sort_values(["sampling_rate", "documents"], ascending=[False, True])
    save(table.round(3), options.output / "streams.csv", [write, measure])


if __name__ == "__main__":
    main()
