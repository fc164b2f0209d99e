"""Time and memory against corpus size: synthetic corpora of up to 100 million tokens.

    python benchmarks/scaling.py

Each size runs in a process of its own, so that its peak of resident memory is its own.
"""

import time
from dataclasses import dataclass

import numpy as np
from apart import apart, peak
from results import Table, run

from skdplda import PrivateCGSLDA
from skdplda._kernels._gibbs import TokenBlocks
from skdplda.datasets import make_lda_corpus


@dataclass(frozen=True)
class Settings:
    """Of a row."""

    documents: int
    mean_length: int = 100
    topics: int = 50
    words: int = 10_000
    rounds: int = 10
    jobs: int = 2


def cells():
    """Return what there is to measure: 100,000 to 100 million tokens, and from 10 million on more topics."""
    lengths = (1_000, 10_000, 100_000, 300_000, 1_000_000)
    return [Settings(n, topics=k) for k in (50, 200, 1000) for n in lengths if k == 50 or n >= 100_000]


def measure(settings):
    """Fit one corpus and return what it took."""
    return apart(fit, settings)


def fit(settings):
    """Do so in this process."""
    n_topics, n_words, jobs = settings.topics, settings.words, settings.jobs
    made = {"mean_length": settings.mean_length, "random_state": 0}
    X = make_lda_corpus(settings.documents, n_words, n_topics, **made).data
    tokens, before = int(X.data.sum()), peak(anew=True)
    begin = time.perf_counter()
    model = PrivateCGSLDA(n_topics, epsilon=np.inf, max_iter=settings.rounds, n_jobs=jobs).fit(X)
    elapsed, most = time.perf_counter() - begin, peak()
    pointers, counts = X.indptr.astype(np.int64), X.data.astype(np.int32)
    indices = X.indices.astype(np.int32)
    state = TokenBlocks(pointers, indices, counts, n_words, n_topics, jobs).nbytes
    assert model.n_iter_ == settings.rounds
    return {
        "tokens": tokens,
        "seconds_per_round": elapsed / settings.rounds,
        "million_tokens_per_second": tokens * settings.rounds / elapsed / 1e6,
        "state_bytes_per_token": state / tokens,
        "fit_bytes_per_token": (most - before) / tokens,
        "corpus_gigabytes": (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e9,
        "before_fit_gigabytes": before / 1e9,
        "peak_gigabytes": most / 1e9,
    }


TABLES = [
    Table("scaling", Settings, cells, measure, timed=True),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
