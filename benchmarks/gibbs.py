"""Speed and held-out perplexity of the delayed-count Gibbs sampler and of other libraries, in one run on one machine.

    python benchmarks/gibbs.py --corpus kos --topics 50 200 --threads 1 2 --output benchmarks/results/gibbs

writes gibbs.csv and gibbs.md. The corpora are the UCI bag-of-words files `docword.<name>.txt.gz`, in --data. A tenth
of the documents is held out; perplexity is by document completion, with the same alpha for every library. Times are
of training only, wall clock: nothing else should run; --cpu-time counts processor seconds, of one thread,
where other programs do. The goal of "seconds to the goal" is the perplexity that WarpLDA has in the end; without
WarpLDA, the lower one of tomotopy's two schemes. "Times sooner" counts from the end of that library, the faster scheme
of tomotopy's. `--warplda` names WarpLDA's program (thu-ml/warplda); its alpha and beta are those of the others, its
seconds are the differences between runs with and without sweeps. topica is on PyPI. `--serve` measures
`transform` in place of training: documents a second, and milliseconds for one document.
"""

import argparse
import csv
import gzip
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from skdplda import PrivateCGSLDA
from skdplda._kernels._gibbs import TokenBlocks
from skdplda.metrics import perplexity
from skdplda.rounds._tables import annealed

ALPHA, BETA = 0.1, 0.01
CLOCK = [time.perf_counter]
WARPLDA = [None]
ROUNDS = [10, 15, 20, 30, 45, 60, 100, 150, 200]  # of the fits
EVALUATE = (1, 2, 5, 10, 15, 20, 25, 28, 30, 35, 40, 45, 50, 60, 80, 100, 150, 200, 300, 400)  # after these sweeps


def load(path):
    """Return (training, held-out) counts."""
    with gzip.open(path, "rt") as file:
        shape = int(file.readline()), int(file.readline())
        file.readline()
        d, w, n = np.loadtxt(file, dtype=np.int32).T
    X = sp.csr_matrix((n, (d - 1, w - 1)), shape=shape)
    order = np.random.default_rng(0).permutation(shape[0])
    held_out = shape[0] // 10
    return X[np.sort(order[held_out:])], X[np.sort(order[:held_out])]


def normalized(weight):
    return weight / weight.sum(axis=1, keepdims=True)


def skdplda(X, n_topics, n_threads, n_sweeps, anneal=False):
    """Yield (sweeps, seconds so far, topics)."""
    X = sp.csr_matrix(X, dtype=np.int32)
    X.sort_indices()
    V = X.shape[1]
    begin = CLOCK[0]()
    rng = np.random.default_rng(0)
    blocks = TokenBlocks(X.indptr.astype(np.int64), X.indices, X.data, V, n_topics, n_threads)
    table = rng.gamma(0.1, 10 * blocks.n_tokens / V / n_topics, (V, n_topics)).astype(np.float32)
    counts = np.zeros((V, n_topics), np.int32)
    alpha, beta = np.full(n_topics, ALPHA), BETA
    spent = CLOCK[0]() - begin
    for i in range(n_sweeps):
        begin = CLOCK[0]()
        if anneal:
            alpha, beta = annealed(np.full(n_topics, ALPHA), BETA, n_topics, i, n_sweeps)
        source = counts if i else table
        blocks.sweep(source, alpha.astype(np.float32), beta, float(i > 0), 1, 0, i, None, n_threads)
        blocks.move(counts, n_threads)
        spent += CLOCK[0]() - begin
        if i + 1 in EVALUATE or i + 1 == n_sweeps:
            yield i + 1, spent, normalized(counts.T + BETA)


def fits(X, n_topics, n_threads, n_sweeps):
    """Whole fits of PrivateCGSLDA, each of as many rounds as one may ask for."""
    for rounds in ROUNDS:
        model = PrivateCGSLDA(
            n_topics, epsilon=np.inf, max_iter=rounds, doc_topic_prior=ALPHA, topic_word_prior=BETA, n_jobs=n_threads,
            random_state=0,
        )  # fmt: skip
        begin = CLOCK[0]()
        model.fit(X)
        yield rounds, CLOCK[0]() - begin, model.topic_word_


def tomotopy(X, n_topics, n_threads, n_sweeps, scheme="DEFAULT"):
    import tomotopy as tp

    model = tp.LDAModel(k=n_topics, alpha=ALPHA, eta=BETA, seed=1)
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
    for stop in [n for n in EVALUATE if n < n_sweeps] + [n_sweeps]:
        begin = CLOCK[0]()
        model.train(stop - done, workers=n_threads, parallel=getattr(tp.ParallelScheme, scheme))
        spent, done = spent + CLOCK[0]() - begin, stop
        topics = np.full((n_topics, X.shape[1]), 1e-12)
        topics[:, used] = [model.get_topic_word_dist(k) for k in range(n_topics)]
        yield done, spent, normalized(topics)


def lda(X, n_topics, n_threads, n_sweeps):
    from lda import LDA

    begin = CLOCK[0]()
    model = LDA(n_topics, n_iter=n_sweeps, alpha=ALPHA, eta=BETA, random_state=1, refresh=10**6)
    model.fit(X.toarray())
    yield n_sweeps, CLOCK[0]() - begin, model.topic_word_


def gensim(X, n_topics, n_threads, n_sweeps):
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    passes = max(1, n_sweeps // 10)
    begin = CLOCK[0]()
    model = LdaModel(
        Sparse2Corpus(X, documents_columns=False), n_topics, {i: str(i) for i in range(X.shape[1])},
        alpha=[ALPHA] * n_topics, eta=BETA, passes=passes, eval_every=None, random_state=1,
    )  # fmt: skip
    yield passes, CLOCK[0]() - begin, normalized(model.get_topics() + 1e-12)


def scikit_learn(X, n_topics, n_threads, n_sweeps):
    from sklearn.decomposition import LatentDirichletAllocation

    passes = max(1, n_sweeps // 10)
    begin = CLOCK[0]()
    model = LatentDirichletAllocation(
        n_topics, doc_topic_prior=ALPHA, topic_word_prior=BETA, max_iter=passes, n_jobs=n_threads, random_state=1
    ).fit(X)
    yield passes, CLOCK[0]() - begin, normalized(model.components_)


def warplda(X, n_topics, n_threads, n_sweeps):
    """Run the program on the lists of edges by document (u) and by word (v) that it reads."""

    def run(folder, n):
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.perf_counter()
        subprocess.run(
            [WARPLDA[0], "--prefix", f"{folder}/x", "--k", str(n_topics),
             "--alpha", str(ALPHA * n_topics), "--beta", str(BETA),
             "--niter", str(n), "--dumpz=false", "--writeinfo=false"],
            check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": str(n_threads)},
        )  # fmt: skip
        if CLOCK[0] is time.process_time:
            return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        return time.perf_counter() - begin

    if WARPLDA[0] is None:
        raise ImportError("--warplda names no program")
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("u", sp.csr_matrix(X)), ("v", sp.csr_matrix(X.T))):
            rows.sort_indices()
            links = np.repeat(rows.indices, rows.data).astype(np.uint32)
            ends = np.append(0, np.cumsum(rows.data))[rows.indptr].astype(np.uint64)
            ends.tofile(f"{folder}/x.bin.{name}.idx")
            links.tofile(f"{folder}/x.bin.{name}.lnk")
        nothing = run(folder, 0)
        for n in sorted({max(1, n_sweeps // 4), n_sweeps // 2, n_sweeps}):
            seconds = run(folder, n) - nothing
            counts = np.zeros((X.shape[1], n_topics))
            with open(f"{folder}/x.model") as file:
                next(file)
                for row, line in zip(counts, file, strict=True):
                    for cell in line.split()[1:]:
                        k, count = cell.split(":")
                        row[int(k)] = int(count)
            yield n, seconds, normalized(counts.T + BETA)


def topica(X, n_topics, n_threads, n_sweeps):
    from topica import LDA

    names = np.arange(X.shape[1]).astype(str)
    documents = [np.repeat(names[row.indices], row.data).tolist() for row in X]
    begin = CLOCK[0]()
    model = LDA(n_topics, alpha_sum=ALPHA * n_topics, use_symmetric_alpha=True, beta=BETA, seed=1, optimize_interval=0)
    model.fit(documents, iters=n_sweeps, num_samples=1, keep_theta_draws=False)
    spent = CLOCK[0]() - begin
    topics = np.full((n_topics, X.shape[1]), 1e-12)
    topics[:, np.array(model.vocabulary, int)] = model.topic_word
    yield n_sweeps, spent, normalized(topics)


LIBRARIES = {  # name -> function, options, threads it can use (None: those asked for)
    "skdplda": (skdplda, {}, None),
    "skdplda, annealed": (skdplda, {"anneal": True}, None),
    "skdplda, fits": (fits, {}, None),
    "tomotopy": (tomotopy, {}, None),
    "tomotopy, copy-merge": (tomotopy, {"scheme": "COPY_MERGE"}, None),
    "lda": (lda, {}, 1),
    "warplda": (warplda, {}, None),
    "topica": (topica, {}, 1),
    "gensim": (gensim, {}, 1),
    "scikit-learn": (scikit_learn, {}, None),
}


def measure(name, X, held_out, n_topics, n_threads, n_sweeps):
    """Return [(sweeps, seconds, perplexity), ...]; empty if the library is missing."""
    function, options, _ = LIBRARIES[name]
    trace = []
    try:
        for sweeps, seconds, topics in function(X, n_topics, n_threads, n_sweeps, **options):
            trace.append((sweeps, seconds, perplexity(held_out, topics, doc_topic_prior=ALPHA, n_threads=2)))
    except ImportError as error:
        print(f"{name}: skipped ({error})")
    return trace


def serve(corpus, X, n_topics, threads):
    """Return rows of `transform`: medians of five, of all documents and of one after the other."""
    from sklearn.decomposition import LatentDirichletAllocation

    rows = []
    for n_threads in threads:
        ours = PrivateCGSLDA(n_topics, epsilon=np.inf, max_iter=30, n_jobs=n_threads, random_state=0).fit(X)
        peer = LatentDirichletAllocation(n_topics, doc_topic_prior=ALPHA, max_iter=1, n_jobs=n_threads, random_state=1)
        for name, model, methods in (
            ("skdplda", ours, ("transform", "score")),
            ("scikit-learn", peer.fit(X), ("transform",)),
        ):
            for method in methods:
                whole, single = [], []
                for _ in range(5):
                    begin = CLOCK[0]()
                    getattr(model, method)(X)
                    whole.append(CLOCK[0]() - begin)
                    begin = CLOCK[0]()
                    for d in range(100):
                        getattr(model, method)(X[d])
                    single.append((CLOCK[0]() - begin) * 10)
                rows.append(
                    {
                        "corpus": corpus, "topics": n_topics, "library": name, "method": method, "threads": n_threads,
                        "documents/s": round(X.shape[0] / np.median(whole)), "ms for one": round(np.median(single), 2),
                    }
                )  # fmt: skip
                print(*rows[-1].values(), sep="\t", flush=True)
    return rows


def table(rows):
    """Return rows (dicts) as Markdown."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + " --- |" * len(rows[0])]
    return "\n".join(lines + ["| " + " | ".join(map(str, row.values())) + " |" for row in rows]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="+", default=["kos"])
    parser.add_argument("--topics", nargs="+", type=int, default=[50, 200, 1000])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--sweeps", type=int, default=200, help="variational peers make a tenth as many passes")
    parser.add_argument("--rounds", type=int, nargs="+", default=ROUNDS, help="of the whole fits")
    parser.add_argument("--libraries", nargs="+", default=list(LIBRARIES), choices=list(LIBRARIES))
    parser.add_argument("--cpu-time", action="store_true", help="of one thread: others count while they wait")
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA", "."))
    parser.add_argument("--output", type=Path, help="write <output>.csv and <output>.md")
    parser.add_argument("--append", action="store_true", help="to the rows of <output>.csv: a run in parts")
    parser.add_argument("--warplda", help="WarpLDA's program")
    parser.add_argument("--serve", action="store_true", help="measure transform")
    arguments = parser.parse_args()
    WARPLDA[0], ROUNDS[:] = arguments.warplda, arguments.rounds
    if arguments.cpu_time:
        CLOCK[0] = time.process_time
        if arguments.threads != [1]:
            parser.error("--cpu-time needs --threads 1")
    rows = []
    if arguments.append:
        with open(arguments.output.with_suffix(".csv"), newline="") as file:
            rows = list(csv.DictReader(file))
    for corpus in arguments.corpus:
        X, held_out = load(Path(arguments.data) / f"docword.{corpus}.txt.gz")
        if arguments.serve:
            rows += [row for n_topics in arguments.topics for row in serve(corpus, X, n_topics, arguments.threads)]
            continue
        for n_topics in arguments.topics:
            traces = {}
            for name in arguments.libraries:
                only = LIBRARIES[name][2]
                for n_threads in [only] if only else arguments.threads:
                    if "copy-merge" in name and n_threads == 1:
                        continue
                    traces[name, n_threads] = measure(name, X, held_out, n_topics, n_threads, arguments.sweeps)
            goals = "warplda" if any(name == "warplda" and t for (name, _), t in traces.items()) else "tomotopy"
            peers = [(t[-1][1], t[-1][2]) for (name, _), t in traces.items() if name.startswith(goals) and t]
            fastest, goal = (min(s for s, _ in peers), min(p for _, p in peers)) if peers else (np.nan, 0)
            for (name, n_threads), trace in traces.items():
                if not trace:
                    continue
                sweeps, seconds, value = trace[-1]
                reached = next((s for _, s, p in trace if p <= goal), np.nan)
                rows.append(
                    {
                        "corpus": corpus, "topics": n_topics, "library": name, "threads": n_threads, "sweeps": sweeps,
                        "seconds": round(seconds, 3), "M tokens/s": round(X.sum() * sweeps / seconds / 1e6, 2),
                        "perplexity": round(value, 1), "goal": goals, "seconds to the goal": round(reached, 3),
                        "times sooner": round(fastest / reached, 1),
                    }
                )  # fmt: skip
                print(*rows[-1].values(), sep="\t", flush=True)
    if arguments.output:
        with open(arguments.output.with_suffix(".csv"), "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        arguments.output.with_suffix(".md").write_text(table(rows))


if __name__ == "__main__":
    main()
