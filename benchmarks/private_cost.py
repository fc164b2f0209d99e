"""What privacy costs in time: the same rounds with and without noise, interleaved in one run.

python benchmarks/private_cost.py --data FOLDER
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from results import save
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import PrivateCGSLDA
from skdplda.datasets import load_20newsgroups, load_uci_bow


def corpora(data):
    """Yield (name, counts): a vocabulary as private fits have it, and a whole one."""
    posts = load_20newsgroups("all", path=data / "20news_bydate_raw.jsonl.xz").data
    yield "20 Newsgroups, 1,000 words", CountVectorizer(max_features=1000, binary=True).fit_transform(posts)
    yield "KOS, 6,906 words", load_uci_bow(data / "docword.kos.txt.gz").data


def seconds(X, n_topics, epsilon, rounds, jobs):
    """Return the time of one fit."""
    model = PrivateCGSLDA(n_topics, epsilon=epsilon, max_iter=rounds, local_sweeps=10, doc_topic_prior=0.1, n_jobs=jobs)
    begin = time.process_time()
    model.fit(X)
    return time.process_time() - begin


def main():
    """Print and save the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--topics", type=int, nargs="+", default=[10, 50, 200])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/private_cost.csv"))
    options = parser.parse_args()
    if options.data is None:
        parser.error("--data or SKDPLDA_DATA must name the folder of the corpora")
    rows = []
    for name, X in corpora(Path(options.data)):
        for n_topics in options.topics:
            times = np.array(
                [
                    [seconds(X, n_topics, epsilon, options.rounds, options.jobs) for epsilon in (np.inf, 5.0)]
                    for _ in range(options.repeats)
                ]
            )
            exact, private = np.median(times, axis=0)
            rows.append((name, n_topics, options.rounds, exact, private, np.median(times[:, 1] / times[:, 0])))
            print(*rows[-1], sep="  ", flush=True)
    table = pd.DataFrame(rows, columns=["corpus", "topics", "rounds", "exact_s", "private_s", "ratio"])
    save(table.round(3), options.output, [corpora, seconds], ["20news", "kos"])


if __name__ == "__main__":
    main()
