"""Time and memory against corpus size: synthetic corpora of up to 100 million tokens.

    python benchmarks/scaling.py --tokens 1e6 1e7 1e8

Each size runs in a process of its own, so that its peak of resident memory is its own.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from results import save


def measure(n_tokens, n_topics, n_words, rounds, jobs):
    """Fit one corpus and return what it took."""
    from skdplda import PrivateCGSLDA
    from skdplda._kernels._gibbs import TokenBlocks
    from skdplda.datasets import make_lda_corpus

    X = make_lda_corpus(int(n_tokens / 100), n_words, n_topics, mean_length=100, random_state=0).data
    tokens = int(X.data.sum())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    begin = time.perf_counter()
    model = PrivateCGSLDA(n_topics, epsilon=np.inf, max_iter=rounds, n_jobs=jobs).fit(X)
    elapsed = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    pointers, counts = X.indptr.astype(np.int64), X.data.astype(np.int32)
    indices = X.indices.astype(np.int32)
    state = TokenBlocks(pointers, indices, counts, n_words, n_topics, jobs).nbytes
    assert model.n_iter_ == rounds
    return {
        "tokens": tokens,
        "seconds_per_round": elapsed / rounds,
        "million_tokens_per_second": tokens * rounds / elapsed / 1e6,
        "state_bytes_per_token": state / tokens,
        "fit_bytes_per_token": (peak - before) / tokens,
        "corpus_gigabytes": (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 1e9,
        "peak_before_fit_gigabytes": before / 1e9,
        "peak_gigabytes": peak / 1e9,
    }


def plot(table, path):
    """Draw time a round against tokens, with the line of constant speed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 4), layout="constrained")
    ax = figure.subplots()
    ax.loglog(table["tokens"], table["seconds_per_round"], "o-", color="#0072b2", label="measured")
    last = table.iloc[-1]
    ideal = table["tokens"] * last["seconds_per_round"] / last["tokens"]
    ax.loglog(table["tokens"], ideal, "--", color="#999999", label="linear through the largest")
    ax.set(xlabel="tokens", ylabel="seconds a round", title="Time is linear in tokens")
    ax.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main():
    """Run the sizes one after the other; save the table and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=float, nargs="+", default=[1e5, 1e6, 1e7, 1e8])
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--one", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    settings = (options.topics, options.words, options.rounds, options.jobs)
    if options.one:
        print(json.dumps(measure(options.one, *settings)))
        return
    rows = []
    for n_tokens in options.tokens:
        command = [sys.executable, __file__, "--one", str(n_tokens)]
        for name, value in zip(("topics", "words", "rounds", "jobs"), settings, strict=True):
            command += [f"--{name}", str(value)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    save(table.round(4), options.output / "scaling.csv", [measure])
    plot(table, options.output / "scaling.png")


if __name__ == "__main__":
    main()
