"""Speed and held-out perplexity of the Gibbs samplers of this and of other libraries, on one machine.

    WARPLDA=PROGRAM python benchmarks/gibbs.py gibbs    # time to the perplexity that WarpLDA ends with
    python benchmarks/gibbs.py gibbs_speed              # whole fits against tomotopy's, medians of five
    python benchmarks/gibbs.py gibbs_serve              # transform and score
    python benchmarks/gibbs.py gibbs_paths              # a processor's copies of the kernels
    python benchmarks/gibbs.py --set threads=2          # where nothing else runs

The corpora are the UCI bag-of-words files. A tenth of the documents is held out; perplexity is by document completion,
with the same alpha and beta for every library. With one thread, `seconds` are of the processor (`clock` is cpu), as
other programs may run; with more they are of the wall clock (`clock` is wall), and nothing else should run. Times are
of training only.

WarpLDA is thu-ml/warplda, where the environment variable WARPLDA names its program; its seconds are the differences
between runs with and without sweeps. topica and pyrmallet are on PyPI. "Sooner" is the time of a peer's training, of
each length of WarpLDA and of 200 sweeps of tomotopy, over that of the shortest of our fits (ROUNDS) that is no worse.
"""

import os
import resource
import string
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import scipy.sparse as sp
from apart import apart, timed
from corpora import path_of, split
from results import BENCHMARKS, Table, run

from skdplda import VIPSLDA, PrivateCGSLDA
from skdplda.datasets import load_uci_bow
from skdplda.metrics import perplexity

sys.path.insert(0, str(BENCHMARKS.parent / "doc"))
from rows import sooner

ALPHA, BETA = 0.1, 0.01
CLOCK = [time.perf_counter]
ROUNDS = [2, 3, 4, 5, 6, 8, 10, 12, 14, 17, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 95, 110, 130, 150, 200]  # of fits
LENGTHS = (25, 50, 100, 200, 400)  # of WarpLDA's
EVALUATE = (10, 20, 30, 50, 100, 150, 200, 300, 400)  # after these sweeps
TOPICS = (50, 200, 1000, 5000, 10000)
KERNELS = ("avx512", "avx2", "plain")
WORK = [("fit", k) for k in (50, 200, 1000, 5000)] + [("VIPSLDA", 50), ("transform", 100), ("score", 100)]


@dataclass(frozen=True)
class Settings:
    """Of the rows of a training of so many sweeps, or rounds, at most."""

    corpus: str
    topics: int
    library: str
    threads: int
    run: int
    alpha: float = ALPHA
    beta: float = BETA


@dataclass(frozen=True)
class Speed:
    """Of a row of whole trainings."""

    corpus: str
    topics: int
    library: str
    threads: int = 1
    run: int = 30
    repeats: int = 5
    alpha: float = ALPHA
    beta: float = BETA


@dataclass(frozen=True)
class Serve:
    """Of a row of a fitted model."""

    corpus: str
    library: str
    method: str
    topics: int = 100
    threads: int = 1
    repeats: int = 5


@dataclass(frozen=True)
class Path:
    """Of a row of one thread of one copy of the kernels."""

    corpus: str
    what: str
    topics: int
    path: str
    repeats: int = 3
    alpha: float = ALPHA


def cells():
    """Return what there is to measure: WarpLDA, our fits, and the others, which are given fewer topics."""
    found = []
    for corpus, n_topics in product(("kos", "nips"), TOPICS):
        found += [Settings(corpus, n_topics, "warplda", 1, length) for length in LENGTHS]
        found += [Settings(corpus, n_topics, "skdplda", 1, rounds) for rounds in ROUNDS]
        found += [Settings(corpus, n_topics, name, 1, 200) for name, (_, most) in PEERS.items() if n_topics <= most]
    return found


def speed_cells():
    """Return what there is to measure."""
    return [Speed(*one) for one in product(("kos", "nips"), TOPICS[:3], ("skdplda", "tomotopy"))]


def serve_cells():
    """Return what there is to measure."""
    return [Serve(*one) for one in product(("kos", "nips"), SERVED, ("transform", "score"))]


def path_cells():
    """Return what there is to measure."""
    return [Path(corpus, *work, path) for corpus, work, path in product(("kos", "nips"), WORK, KERNELS)]


@cache
def load(corpus):
    """Return (training, held-out) counts."""
    X = sp.csr_matrix(load_uci_bow(path_of(corpus)).data, dtype=np.int32)
    return [X[np.sort(part)] for part in split(X.shape[0])]


def normalized(weight):
    return weight / weight.sum(axis=1, keepdims=True)


def of_all_words(topics, used, n_words):
    """Return topics of all words: one that is in no training document has what a word without a token has."""
    whole = np.repeat(np.min(topics, axis=1, keepdims=True), n_words, axis=1)
    whole[:, used] = topics
    return normalized(whole)


@cache
def imported():
    """Fit a few documents, so that a fit that is timed imports nothing."""
    PrivateCGSLDA(2, epsilon=np.inf, max_iter=8, random_state=0).fit(np.eye(9, dtype=int))


def one_fit(X, s):
    """One whole fit of PrivateCGSLDA."""
    imported()
    model = PrivateCGSLDA(
        s.topics, epsilon=np.inf, max_iter=s.run, doc_topic_prior=s.alpha, topic_word_prior=s.beta, n_jobs=s.threads,
        random_state=0,
    )  # fmt: skip
    begin = CLOCK[0]()
    model.fit(X)
    yield s.run, CLOCK[0]() - begin, model.topic_word_


def tomotopy(X, s, scheme="DEFAULT"):
    import tomotopy as tp

    model = tp.LDAModel(k=s.topics, alpha=s.alpha, eta=s.beta, seed=1)
    model.burn_in, model.optim_interval = 0, 0
    names = np.arange(X.shape[1]).astype(str)
    for d in range(X.shape[0]):
        row = X[d]
        if row.nnz:
            model.add_doc(np.repeat(names[row.indices], row.data).tolist())
    begin = CLOCK[0]()
    model.train(0)
    spent, done = CLOCK[0]() - begin, 0
    used = np.array([int(word) for word in model.used_vocabs])
    for stop in [n for n in EVALUATE if n < s.run] + [s.run]:
        begin = CLOCK[0]()
        model.train(stop - done, workers=s.threads, parallel=getattr(tp.ParallelScheme, scheme))
        spent, done = spent + CLOCK[0]() - begin, stop
        yield done, spent, of_all_words([model.get_topic_word_dist(k) for k in range(s.topics)], used, X.shape[1])


def lda(X, s):
    from lda import LDA

    begin = CLOCK[0]()
    model = LDA(s.topics, n_iter=s.run, alpha=s.alpha, eta=s.beta, random_state=1, refresh=10**6)
    model.fit(X.toarray())
    yield s.run, CLOCK[0]() - begin, model.topic_word_


def warplda(X, s):
    """Run the program on the lists of edges by document (u) and by word (v) that it reads."""

    def run(folder, n):
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.perf_counter()
        subprocess.run(
            [os.environ["WARPLDA"], "--prefix", f"{folder}/x", "--k", str(s.topics),
             "--alpha", str(s.alpha * s.topics), "--beta", str(s.beta),
             "--niter", str(n), "--dumpz=false", "--writeinfo=false"],
            check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": str(s.threads)},
        )  # fmt: skip
        if CLOCK[0] is time.process_time:
            return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        return time.perf_counter() - begin

    if "WARPLDA" not in os.environ:
        raise ImportError("WARPLDA names no program")
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("u", sp.csr_matrix(X)), ("v", sp.csr_matrix(X.T))):
            rows.sort_indices()
            links = np.repeat(rows.indices, rows.data).astype(np.uint32)
            ends = np.append(0, np.cumsum(rows.data))[rows.indptr].astype(np.uint64)
            ends.tofile(f"{folder}/x.bin.{name}.idx")
            links.tofile(f"{folder}/x.bin.{name}.lnk")
        nothing = run(folder, 0)
        seconds = run(folder, s.run) - nothing
        counts = np.zeros((X.shape[1], s.topics))
        with open(f"{folder}/x.model") as file:
            next(file)
            for row, line in zip(counts, file, strict=True):
                for cell in line.split()[1:]:
                    k, count = cell.split(":")
                    row[int(k)] = int(count)
        yield s.run, seconds, normalized(counts.T + s.beta)


def topica(X, s):
    from topica import LDA

    names = np.arange(X.shape[1]).astype(str)
    documents = [np.repeat(names[row.indices], row.data).tolist() for row in X]
    begin = CLOCK[0]()
    model = LDA(
        s.topics, alpha_sum=s.alpha * s.topics, use_symmetric_alpha=True, beta=s.beta, seed=1, optimize_interval=0
    )
    model.fit(documents, iters=s.run, num_samples=1, keep_theta_draws=False)
    spent = CLOCK[0]() - begin
    yield s.run, spent, of_all_words(model.topic_word, np.array(model.vocabulary, int), X.shape[1])


def pyrmallet(X, s):
    from pyrmallet import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        s.topics, doc_topic_prior=s.alpha * s.topics, topic_word_prior=s.beta, max_iter=s.run, random_state=1,
        optimize_interval=0, num_samples=1,
    )  # fmt: skip
    letters = np.array(list(string.ascii_lowercase))  # of which words consist: it takes texts
    names = ["".join(letters[w // 26 ** np.arange(4) % 26]) for w in range(X.shape[1])]
    texts = [" ".join(np.repeat(np.array(names)[row.indices], row.data)) for row in X]
    begin = CLOCK[0]()
    model.fit(texts)
    spent, number = CLOCK[0]() - begin, {name: w for w, name in enumerate(names)}
    used = [number[name] for name in model.feature_names_in_]
    yield s.run, spent, of_all_words(normalized(np.asarray(model.components_)), used, X.shape[1])


PEERS = {"tomotopy": (tomotopy, 1000), "lda": (lda, 50), "topica": (topica, 200), "pyrmallet": (pyrmallet, 200)}
LIBRARIES = {"skdplda": one_fit, "warplda": warplda} | {name: function for name, (function, _) in PEERS.items()}


def trained(s):
    """Yield (sweeps, seconds, topics) of a training; a scheme of tomotopy follows its name."""
    CLOCK[0] = time.process_time if s.threads == 1 else time.perf_counter
    library, _, scheme = s.library.partition(", ")
    options = {"scheme": "COPY_MERGE"} if scheme == "copy-merge" else {}
    return LIBRARIES[library](load(s.corpus)[0], s, **options)


def clock(s):
    """Return the name of the clock."""
    return "cpu" if s.threads == 1 else "wall"


def measure(s):
    """Return a row for each number of sweeps that was looked at."""
    (X, held_out), rows = load(s.corpus), []
    for sweeps, seconds, topics in trained(s):
        value = perplexity(held_out, topics, doc_topic_prior=s.alpha, n_threads=s.threads)
        speed = int(X.sum()) * sweeps / seconds / 1e6
        rows.append({"clock": clock(s), "sweeps": sweeps, "seconds": seconds, "M tokens/s": speed, "perplexity": value})
    return rows


def report(tables, folder):
    """Print a row for each corpus, number of topics and peer's length: time to the same perplexity."""
    if "gibbs" in tables:
        print(sooner(tables["gibbs"]).to_string(index=False))


def measure_speed(s):
    """Return the median of whole trainings, in tokens a second."""
    seconds = [list(trained(s))[-1][1] for _ in range(s.repeats)]
    tokens = int(load(s.corpus)[0].sum()) * s.run / 1e6
    rates = {"M tokens/s": tokens / np.median(seconds), "least": tokens / max(seconds), "most": tokens / min(seconds)}
    return {"clock": clock(s)} | rates


def scikit_learn(n_topics, n_jobs, **more):
    """Return scikit-learn's model."""
    from sklearn.decomposition import LatentDirichletAllocation

    return LatentDirichletAllocation(n_topics, doc_topic_prior=ALPHA, max_iter=1, n_jobs=n_jobs, random_state=1)


def ours(kind, max_iter):
    """Return a maker of ours."""
    return lambda k, jobs: kind(k, max_iter=max_iter, epsilon=np.inf, n_jobs=jobs, random_state=0)


SERVED = {"PrivateCGSLDA": ours(PrivateCGSLDA, 30), "VIPSLDA": ours(VIPSLDA, 5), "scikit-learn": scikit_learn}


@cache
def served(library, corpus, n_topics, threads):
    """Return a fitted model."""
    return SERVED[library](n_topics, threads).fit(load(corpus)[0])


def measure_serve(s):
    """Return medians of all documents at once, and of one after the other."""
    CLOCK[0] = time.process_time if s.threads == 1 else time.perf_counter
    X, model, whole, single = load(s.corpus)[0], served(s.library, s.corpus, s.topics, s.threads), [], []
    call, documents = getattr(model, s.method), [X[d] for d in range(100)]
    for _ in range(s.repeats):
        begin = CLOCK[0]()
        call(X)
        whole.append(CLOCK[0]() - begin)
        begin = CLOCK[0]()
        for document in documents:
            call(document)
        single.append((CLOCK[0]() - begin) * 1000 / len(documents))
    found = {"documents/s": round(X.shape[0] / np.median(whole)), "ms for one": round(np.median(single), 3)}
    return {"clock": clock(s)} | found


def measure_path(s):
    """Measure in another process, which has one copy of the kernels."""
    os.environ |= {"SKDPLDA_SIMD": s.path, "OMP_NUM_THREADS": "1"}
    try:
        return apart(least_time, s)
    finally:
        del os.environ["SKDPLDA_SIMD"], os.environ["OMP_NUM_THREADS"]


def least_time(s):
    """Return the least of some times, in milliseconds of the processor."""
    X, _ = load(s.corpus)
    kind, rounds = (VIPSLDA, 4) if s.what == "VIPSLDA" else (PrivateCGSLDA, 6)
    options = {"epsilon": np.inf, "max_iter": rounds, "doc_topic_prior": s.alpha}
    model = kind(s.topics, n_jobs=1, random_state=0, **options)
    if s.what in ("transform", "score"):
        model.fit(X)
    call = getattr(model, s.what if s.what in ("transform", "score") else "fit")
    return {"ms": round(1000 * min(timed(call, X)[1] for _ in range(s.repeats)), 1)}


TABLES = [
    Table("gibbs", Settings, cells, measure, lambda s: [s.corpus], timed=("seconds", "M tokens/s")),
    Table("gibbs_speed", Speed, speed_cells, measure_speed, lambda s: [s.corpus], timed=True),
    Table("gibbs_serve", Serve, serve_cells, measure_serve, lambda s: [s.corpus], timed=True),
    Table("gibbs_paths", Path, path_cells, measure_path, lambda s: [s.corpus], timed=True),
]
if __name__ == "__main__":
    run(TABLES, __doc__, report)
