"""Speed and held-out perplexity of the Gibbs samplers of this and of other libraries, on one machine.

    python benchmarks/gibbs.py sooner --warplda PROGRAM      # time to the perplexity that WarpLDA ends with
    python benchmarks/gibbs.py speed                         # whole fits against tomotopy's, medians of five
    python benchmarks/gibbs.py serve                         # transform and score
    python benchmarks/gibbs.py paths                         # a processor's copies of the kernels
    python benchmarks/gibbs.py all --threads 2 --warplda PROGRAM   # the first three, where nothing else runs
    python benchmarks/gibbs.py report                        # the headline of gibbs.csv

They write gibbs.csv, gibbs_speed.csv, gibbs_serve.csv and gibbs_paths.csv to --output, and go on where they were
stopped. The corpora are the UCI bag-of-words files `docword.<name>.txt.gz`, in the folder SKDPLDA_DATA. A tenth of the
documents is held out; perplexity is by document completion, with the same alpha and beta for every library. With
one thread, `seconds` are of the processor (`clock` is cpu), as other programs may run; with more they are of the
wall clock (`clock` is wall), and nothing else should run. Times are of training only. A row of another library does
not carry the code of the metric that judged it.

WarpLDA is thu-ml/warplda; its seconds are the differences between runs with and without sweeps. topica and pyrmallet
are on PyPI. "Sooner" is WarpLDA's time of 400 iterations over that of the shortest of our fits (ROUNDS) that is no
worse; fits of more rounds are not made.
"""

import argparse
import gzip
import os
import resource
import string
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from results import BENCHMARKS, Rows

from skdplda import VIPSLDA, PrivateCGSLDA
from skdplda.esteps._listed import ListedEStep
from skdplda.metrics import perplexity

ALPHA, BETA = 0.1, 0.01
CLOCK = [time.perf_counter]
WARPLDA = [None]
ROUNDS = [10, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 95, 110, 130, 150, 200]  # of the fits
EVALUATE = (10, 20, 30, 50, 100, 150, 200, 300, 400)  # after these sweeps
TOPICS = (50, 200, 1000, 5000, 10000)
SWEEPS, REPEATS = 400, 5
SERVED = 100  # topics of the models that serve
FEW = 100  # topics; fits of more have a trial of their own
KEYS = ["corpus", "topics", "library", "threads"]


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


def of_all_words(topics, used, n_words):
    """Return topics of all words: one that is in no training document has what a word without a token has."""
    whole = np.repeat(np.min(topics, axis=1, keepdims=True), n_words, axis=1)
    whole[:, used] = topics
    return normalized(whole)


def one_fit(X, n_topics, n_threads, rounds):
    """One whole fit of PrivateCGSLDA."""
    model = PrivateCGSLDA(
        n_topics, epsilon=np.inf, max_iter=rounds, doc_topic_prior=ALPHA, topic_word_prior=BETA, n_jobs=n_threads,
        random_state=0,
    )  # fmt: skip
    begin = CLOCK[0]()
    model.fit(X)
    yield rounds, CLOCK[0]() - begin, model.topic_word_


def skdplda(X, n_topics, n_threads, n_sweeps):
    """Whole fits of PrivateCGSLDA, each of as many rounds as one may ask for."""
    for rounds in [n for n in ROUNDS if n <= n_sweeps]:
        yield from one_fit(X, n_topics, n_threads, rounds)


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
        yield done, spent, of_all_words([model.get_topic_word_dist(k) for k in range(n_topics)], used, X.shape[1])


def lda(X, n_topics, n_threads, n_sweeps):
    from lda import LDA

    begin = CLOCK[0]()
    model = LDA(n_topics, n_iter=n_sweeps, alpha=ALPHA, eta=BETA, random_state=1, refresh=10**6)
    model.fit(X.toarray())
    yield n_sweeps, CLOCK[0]() - begin, model.topic_word_


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
        seconds = run(folder, n_sweeps) - nothing
        counts = np.zeros((X.shape[1], n_topics))
        with open(f"{folder}/x.model") as file:
            next(file)
            for row, line in zip(counts, file, strict=True):
                for cell in line.split()[1:]:
                    k, count = cell.split(":")
                    row[int(k)] = int(count)
        yield n_sweeps, seconds, normalized(counts.T + BETA)


def topica(X, n_topics, n_threads, n_sweeps):
    from topica import LDA

    names = np.arange(X.shape[1]).astype(str)
    documents = [np.repeat(names[row.indices], row.data).tolist() for row in X]
    begin = CLOCK[0]()
    model = LDA(n_topics, alpha_sum=ALPHA * n_topics, use_symmetric_alpha=True, beta=BETA, seed=1, optimize_interval=0)
    model.fit(documents, iters=n_sweeps, num_samples=1, keep_theta_draws=False)
    spent = CLOCK[0]() - begin
    yield n_sweeps, spent, of_all_words(model.topic_word, np.array(model.vocabulary, int), X.shape[1])


def pyrmallet(X, n_topics, n_threads, n_sweeps):
    from pyrmallet import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        n_topics, doc_topic_prior=ALPHA * n_topics, topic_word_prior=BETA, max_iter=n_sweeps, random_state=1,
        optimize_interval=0, num_samples=1,
    )  # fmt: skip
    letters = np.array(list(string.ascii_lowercase))  # of which words consist: it takes texts
    names = ["".join(letters[w // 26 ** np.arange(4) % 26]) for w in range(X.shape[1])]
    texts = [" ".join(np.repeat(np.array(names)[row.indices], row.data)) for row in X]
    begin = CLOCK[0]()
    model.fit(texts)
    spent, number = CLOCK[0]() - begin, {name: w for w, name in enumerate(names)}
    used = [number[name] for name in model.feature_names_in_]
    yield n_sweeps, spent, of_all_words(normalized(np.asarray(model.components_)), used, X.shape[1])


PEERS = {  # name -> function, options, most sweeps, most topics, whether it uses more than one thread
    "skdplda, 200 rounds": (one_fit, {}, 200, 1000, True),
    "warplda": (warplda, {}, SWEEPS, 10**6, True),
    "tomotopy": (tomotopy, {}, 200, 1000, True),
    "tomotopy, copy-merge": (tomotopy, {"scheme": "COPY_MERGE"}, 200, 1000, True),
    "lda": (lda, {}, 200, 50, False),
    "topica": (topica, {}, 200, 200, False),
    "pyrmallet": (pyrmallet, {}, 200, 200, False),
}


def judged(function, options, X, held_out, n_topics, n_threads, n_sweeps, goal=0):
    """Return rows of (sweeps, seconds, perplexity), up to the first that reaches the goal."""
    rows = []
    for sweeps, seconds, topics in function(X, n_topics, n_threads, n_sweeps, **options):
        value = perplexity(held_out, topics, doc_topic_prior=ALPHA, n_threads=n_threads)
        rows.append(
            {
                "clock": "wall" if CLOCK[0] is time.perf_counter else "cpu", "sweeps": sweeps,
                "seconds": round(seconds, 3), "M tokens/s": round(int(X.sum()) * sweeps / seconds / 1e6, 2),
                "perplexity": round(value, 1),
            }
        )  # fmt: skip
        if value <= goal:
            break
    return rows


def sooner(options):
    """Measure WarpLDA, our fits up to its perplexity, and the others, which are given fewer topics."""
    rows = Rows(options.output / "gibbs.csv", KEYS)
    for corpus in options.corpus:
        X, held_out = load(options.data / f"docword.{corpus}.txt.gz")
        for n_topics in options.topics or TOPICS:
            for name in ["warplda", "skdplda", *(name for name in PEERS if name != "warplda")]:
                function, extra, sweeps, most, parallel = PEERS.get(name, (skdplda, {}, SWEEPS, 10**6, True))
                threads = options.threads if parallel else 1
                wanted = name in options.libraries and n_topics <= most and (parallel or options.threads == 1)
                if not wanted or ("merge" in name and threads == 1):
                    continue
                cell = dict(zip(KEYS, (corpus, n_topics, name, threads), strict=True))
                goal = 0 if name != "skdplda" else goal_of(rows.table, cell)
                work = partial(judged, function, extra, X, held_out, n_topics, threads, sweeps, goal)
                attempt(rows, cell, work, [function, load, *of_many(name, n_topics)], [corpus])


def of_many(name, n_topics):
    """Return what our fits of many topics depend on besides."""
    return [ListedEStep] if name.startswith("skdplda") and n_topics > FEW else []


def attempt(rows, cell, work, roots, data):
    """Measure a cell, unless its library is missing, or the processor has no such vectors."""
    try:
        rows.measure(cell, work, roots, data)
    except (ImportError, subprocess.CalledProcessError) as error:
        print(f"{', '.join(map(str, cell.values()))}: skipped ({error})")


def goal_of(table, cell):
    """Return WarpLDA's perplexity in the end; 0 where it was not run."""
    if not len(table):
        return 0
    same = (table.library == "warplda") & (table.corpus == cell["corpus"]) & (table.topics == cell["topics"])
    return table[same & (table.threads == cell["threads"])].perplexity.min() if same.any() else 0


def report(table):
    """Return a row for each corpus and number of topics: time to WarpLDA's perplexity."""
    found = []
    for (corpus, n_topics, threads), group in table.groupby(["corpus", "topics", "threads"], sort=False):
        peer = group[group.library == "warplda"]
        ours = group[group.library == "skdplda"]
        if not len(peer) or not len(ours):
            continue
        goal, seconds = peer.perplexity.min(), peer.seconds.max()
        reached = ours[ours.perplexity <= goal]
        found.append(
            {
                "corpus": corpus, "topics": n_topics, "threads": threads, "clock": peer.clock.iloc[0],
                "WarpLDA s": seconds, "its perplexity": goal,
                "our rounds": reached.sweeps.min() if len(reached) else ours.sweeps.max(),
                "our s": reached.seconds.min() if len(reached) else ours.seconds.max(),
                "our perplexity": (reached if len(reached) else ours).perplexity.iloc[-1],
                "sooner": round(seconds / reached.seconds.min(), 1) if len(reached) else "not reached",
            }
        )  # fmt: skip
    return pd.DataFrame(found)


def repeated(function, options, X, n_topics, n_threads, n_sweeps):
    """Return the median of whole trainings, in tokens a second."""
    seconds = [list(function(X, n_topics, n_threads, n_sweeps, **options))[-1][1] for _ in range(REPEATS)]
    return {
        "clock": "wall" if CLOCK[0] is time.perf_counter else "cpu", "sweeps": n_sweeps,
        "M tokens/s": round(int(X.sum()) * n_sweeps / np.median(seconds) / 1e6, 2),
        "least": round(X.sum() * n_sweeps / max(seconds) / 1e6, 2),
        "most": round(X.sum() * n_sweeps / min(seconds) / 1e6, 2),
    }  # fmt: skip


def speed(options):
    """Measure fits of 30 rounds against 30 sweeps of tomotopy's two schemes."""
    rows = Rows(options.output / "gibbs_speed.csv", KEYS)
    for corpus in options.corpus:
        X, _ = load(options.data / f"docword.{corpus}.txt.gz")
        for n_topics in options.topics or TOPICS[:3]:
            for name in ("skdplda", "tomotopy", "tomotopy, copy-merge"):
                if "merge" in name and options.threads == 1:
                    continue
                function, extra = PEERS[name][:2] if name in PEERS else (one_fit, {})
                cell = dict(zip(KEYS, (corpus, n_topics, name, options.threads), strict=True))
                work = partial(repeated, function, extra, X, n_topics, options.threads, 30)
                attempt(rows, cell, work, [function, load, *of_many(name, n_topics)], [corpus])


def served(model, method, X):
    """Return medians of all documents at once, and of one after the other."""
    call, whole, single = getattr(model, method), [], []
    documents = [X[d] for d in range(100)]
    for _ in range(REPEATS):
        begin = CLOCK[0]()
        call(X)
        whole.append(CLOCK[0]() - begin)
        begin = CLOCK[0]()
        for document in documents:
            call(document)
        single.append((CLOCK[0]() - begin) * 1000 / len(documents))
    return {
        "clock": "wall" if CLOCK[0] is time.perf_counter else "cpu",
        "documents/s": round(X.shape[0] / np.median(whole)), "ms for one": round(np.median(single), 3),
    }  # fmt: skip


def serve(options):
    """Measure transform and score of models of SERVED topics."""
    from sklearn.decomposition import LatentDirichletAllocation

    rows = Rows(options.output / "gibbs_serve.csv", [*KEYS, "method"])
    for corpus in options.corpus:
        X, _ = load(options.data / f"docword.{corpus}.txt.gz")
        ours = {"epsilon": np.inf, "n_jobs": options.threads, "random_state": 0}
        models = {
            "PrivateCGSLDA": PrivateCGSLDA(SERVED, max_iter=30, **ours),
            "VIPSLDA": VIPSLDA(SERVED, max_iter=5, **ours),
            "scikit-learn": LatentDirichletAllocation(
                SERVED, doc_topic_prior=ALPHA, max_iter=1, n_jobs=options.threads, random_state=1
            ),
        }
        for name, model in models.items():
            cells = [
                dict(zip([*KEYS, "method"], (corpus, SERVED, name, options.threads, method), strict=True))
                for method in ("transform", "score")
            ]
            model.fit(X)
            for cell in cells:
                root = type(model) if name != "scikit-learn" else served
                rows.measure(cell, partial(served, model, cell["method"], X), [root, served, load], [corpus])


def paths(options):
    """Measure one thread of each copy of the kernels, each in a process of its own."""
    rows = Rows(options.output / "gibbs_paths.csv", ["corpus", "what", "topics", "path"])
    for corpus in options.corpus:
        for what, n_topics in [("fit", 50), ("fit", 200), ("fit", 1000), ("fit", 5000), ("VIPSLDA", 50),
                               ("transform", SERVED), ("score", SERVED)]:  # fmt: skip
            for path in ("avx512", "avx2", "plain"):
                cell = {"corpus": corpus, "what": what, "topics": n_topics, "path": path}
                roots = [of_path, timed, load, PrivateCGSLDA, *of_many("skdplda", n_topics)]
                attempt(rows, cell, partial(of_path, options, cell), roots, [corpus])


def of_path(options, cell):
    """Run `timed` under one copy."""
    command = [sys.executable, __file__, "timed", "--corpus", cell["corpus"], "--topics", str(cell["topics"])]
    command += ["--data", str(options.data), "--libraries", cell["what"]]
    environment = {**os.environ, "SKDPLDA_SIMD": cell["path"], "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return {"ms": float(done.stdout.split()[-1])}


def timed(options):
    """Print the least of three times, in milliseconds of the processor."""
    X, _ = load(options.data / f"docword.{options.corpus[0]}.txt.gz")
    what, n_topics = options.libraries[0], options.topics[0]
    kind, rounds = (VIPSLDA, 4) if what == "VIPSLDA" else (PrivateCGSLDA, 6)
    model = kind(n_topics, epsilon=np.inf, max_iter=rounds, n_jobs=1, random_state=0)
    if what in ("transform", "score"):
        model.fit(X)
    call, seconds = getattr(model, what if what in ("transform", "score") else "fit"), []
    for _ in range(3):
        begin = time.process_time()
        call(X)
        seconds.append(time.process_time() - begin)
    print(round(1000 * min(seconds), 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"sooner": sooner, "speed": speed, "serve": serve, "paths": paths, "timed": timed}
    parser.add_argument("part", choices=[*parts, "all", "report"])
    parser.add_argument("--corpus", nargs="+", default=["kos"])
    parser.add_argument("--topics", nargs="+", type=int, help="default: those of the part")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--libraries", nargs="+", default=["skdplda", *PEERS], help="of `sooner`")
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA", "."))
    parser.add_argument("--output", type=Path, default=BENCHMARKS / "results", help="folder")
    parser.add_argument("--warplda", help="WarpLDA's program; without it, its rows must be there")
    options = parser.parse_args()
    options.data, WARPLDA[0] = Path(options.data), options.warplda
    CLOCK[0] = time.process_time if options.threads == 1 else time.perf_counter
    if options.part == "all":
        for part in (serve, speed, sooner):
            part(options)
    if options.part in parts:
        parts[options.part](options)
    if options.part in ("all", "sooner", "report"):
        print(report(pd.read_csv(options.output / "gibbs.csv")).to_string(index=False))


if __name__ == "__main__":
    main()
