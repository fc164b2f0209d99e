"""Time and memory of a fit from disk against the number of documents: each size in a process of its own.

Documents are synthetic (100 tokens on average) and written in chunks, then fitted with noise. Memory is the peak of the
process that fits, and should not grow with the corpus; seconds are CPU time of the fit, and should, in proportion.

    python benchmarks/streams.py
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from apart import apart, peak
from results import Table, run

from skdplda import VIPSLDA
from skdplda.datasets import make_lda_corpus, open_counts, write_counts

CHUNK = 10_000


@dataclass(frozen=True)
class Settings:
    """Of a row."""

    documents: int
    sampling_rate: float
    mean_length: int = 100
    topics: int = 50
    words: int = 5000
    rounds: int = 2
    epsilon: float = 5.0
    jobs: int = 1


def cells():
    """Return what there is to measure."""
    return [Settings(documents, rate) for rate in (1.0, 0.01) for documents in (10_000, 100_000, 1_000_000)]


def write(folder, settings):
    """Write a corpus in chunks; the topics of each chunk are its own, which does not matter here."""
    made = {"mean_length": settings.mean_length}

    def chunks():
        for number, first in enumerate(range(0, settings.documents, CHUNK)):
            size = min(CHUNK, settings.documents - first)
            yield make_lda_corpus(size, settings.words, settings.topics, random_state=number, **made).data

    write_counts(folder, chunks())


def measure(settings):
    """Write a corpus, fit from disk in another process, and return what it took."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = str(Path(folder, "corpus"))
        write(corpus, settings)
        return apart(fit, corpus, settings)


def fit(folder, settings):
    """Fit from disk and return what it took."""
    counts = open_counts(folder)
    more = {"sampling_rate": settings.sampling_rate, "n_jobs": settings.jobs}
    model = VIPSLDA(settings.topics, epsilon=settings.epsilon, max_iter=settings.rounds, **more)
    model.privacy_cost()
    before = peak()
    begin, wall = time.process_time(), time.perf_counter()
    model.fit(counts)
    return {
        "corpus_megabytes": (8 * counts.nnz + 8 * counts.shape[0]) / 1e6,
        "cpu_seconds": time.process_time() - begin,
        "wall_seconds": time.perf_counter() - wall,
        "peak_before_fit_megabytes": before / 1e6,
        "peak_megabytes": peak() / 1e6,
    }


TABLES = [
    Table("streams", Settings, cells, measure, timed=True),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
