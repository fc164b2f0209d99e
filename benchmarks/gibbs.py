"""Speed and held-out perplexity of the delayed-count Gibbs sampler and of other libraries, in one run on one machine.

    python benchmarks/gibbs.py --corpus kos --topics 50 200 --threads 1 2 --output benchmarks/results/gibbs

writes gibbs.csv and gibbs.md. The corpora are the UCI bag-of-words files `docword.<name>.txt.gz`, in --data. A tenth
of the documents is held out; perplexity is by document completion, with the same alpha for every library. Times are
of training only, wall clock: nothing else should run; --cpu-time counts processor seconds, of one thread,
where other programs do. The goal of "seconds to tomotopy's" is the lower perplexity of
its two schemes, "times sooner" counts from the faster one.
"""

import argparse
import csv
import gzip
import os
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from skdplda._kernels._gibbs import TokenBlocks
from skdplda.metrics import perplexity
from skdplda.rounds._tables import annealed

ALPHA, BETA = 0.1, 0.01
CLOCK = [time.perf_counter]
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


LIBRARIES = {  # name -> function, options, threads it can use (None: those asked for)
    "skdplda": (skdplda, {}, None),
    "skdplda, annealed": (skdplda, {"anneal": True}, None),
    "tomotopy": (tomotopy, {}, None),
    "tomotopy, copy-merge": (tomotopy, {"scheme": "COPY_MERGE"}, None),
    "lda": (lda, {}, 1),
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
    parser.add_argument("--libraries", nargs="+", default=list(LIBRARIES), choices=list(LIBRARIES))
    parser.add_argument("--cpu-time", action="store_true", help="of one thread: others count while they wait")
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA", "."))
    parser.add_argument("--output", type=Path, help="write <output>.csv and <output>.md")
    parser.add_argument("--append", action="store_true", help="to the rows of <output>.csv: a run in parts")
    arguments = parser.parse_args()
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
        for n_topics in arguments.topics:
            traces = {}
            for name in arguments.libraries:
                only = LIBRARIES[name][2]
                for n_threads in [only] if only else arguments.threads:
                    if "copy-merge" in name and n_threads == 1:
                        continue
                    traces[name, n_threads] = measure(name, X, held_out, n_topics, n_threads, arguments.sweeps)
            peers = [(t[-1][1], t[-1][2]) for (name, _), t in traces.items() if name.startswith("tomotopy") and t]
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
                        "perplexity": round(value, 1), "seconds to tomotopy's": round(reached, 3),
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
