"""How fast PCTD is: noise by the exact shortcut against dense noise, and EM against the number of units.

The first table is about one iteration of the published form, whose noise covers every word of every unit: drawing
units x words normals (in single precision and blocks, the faster way) and multiplying them with the topics and the
responsibilities, against drawing units x topics and words x topics ones. Both have the same law; a test compares
them. The second is about EM without noise on news articles cut into units of three words, a stand-in for the
sample of the New York Times that the paper used; the folder that SKDPLDA_DATA names has them.

Seconds are processor time, of all threads, and wall time, on the machine at hand, medians of repeated runs. Noise is
measured with one thread of linear algebra, so that threads that wait do not count.

    python benchmarks/pctd.py --jobs 2
"""

import argparse
import json
import lzma
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from results import save
from sklearn.feature_extraction.text import CountVectorizer
from threadpoolctl import threadpool_limits

from skdplda import PCTD
from skdplda.published._pctd_noise import likelihood_noise, sum_noise
from skdplda.semantics import SemanticUnitVectorizer

BLOCK = 512  # units of dense noise held at a time


def news(folder):
    """Return the articles, title first."""
    with lzma.open(folder / "news_articles.jsonl.xz", "rt") as file:
        return [f"{article['title']}.\n\n{article['text']}" for article in map(json.loads, file)]


def median_time(function, repeat):
    """Return the medians of processor and wall seconds."""
    seconds = []
    for _ in range(repeat):
        begin = time.process_time(), time.perf_counter()
        function()
        seconds.append((time.process_time() - begin[0], time.perf_counter() - begin[1]))
    return np.median(seconds, axis=0)


def dense_noise(log_phi, r, sigma, rng):
    """Draw the noise of every count, and return what it adds to likelihoods and sums (r is given here)."""
    log_phi, r = log_phi.astype(np.float32), r.astype(np.float32)
    likelihoods, sums = np.empty_like(r), np.zeros_like(log_phi)
    for begin in range(0, len(r), BLOCK):
        block = r[begin : begin + BLOCK]
        noise = rng.standard_normal((len(block), len(log_phi)), dtype=np.float32)
        noise *= np.float32(sigma)
        likelihoods[begin : begin + BLOCK] = noise @ log_phi
        sums += noise.T @ block
    return likelihoods, sums


def shortcut_noise(log_phi, r, sigma, rng):
    """Return the same without the noise of the counts."""
    likelihoods, along, basis = likelihood_noise(log_phi, len(r), sigma, rng)
    return likelihoods, sum_noise(r, along, basis, sigma, rng)


def compare_noise(sizes, repeat):
    """Return a row for each size (units, words, topics)."""
    rows = []
    for n_units, n_words, n_topics in sizes:
        rng = np.random.default_rng(0)
        log_phi = np.ascontiguousarray(np.log(rng.dirichlet(np.ones(n_words), n_topics).T + 1e-12))
        r = rng.dirichlet(np.ones(n_topics), n_units)
        dense = median_time(lambda: dense_noise(log_phi, r, 0.25, rng), 1)  # noqa: B023
        short = median_time(lambda: shortcut_noise(log_phi, r, 0.25, rng), 5 * repeat)  # noqa: B023
        rows.append(
            {
                "what": "noise of one iteration",
                "units": n_units,
                "words": n_words,
                "topics": n_topics,
                "dense cpu s": dense[0],
                "shortcut cpu s": short[0],
                "dense wall s": dense[1],
                "shortcut wall s": short[1],
                "times faster (cpu)": dense[0] / short[0],
            }
        )
    return pd.DataFrame(rows)


def measure_em(texts, shares, n_topics, iterations, jobs, repeat):
    """Return a row for each share of the articles."""
    words = CountVectorizer(stop_words="english").fit(texts).get_feature_names_out()
    vectorizer = SemanticUnitVectorizer(3, vocabulary=words, stop_words="english")
    X = vectorizer.transform(texts)
    rows = []
    for share in shares:
        part = X[: round(share * len(X))]
        model = PCTD(n_topics, epsilon=np.inf, max_iter=iterations, n_jobs=jobs, random_state=0)
        cpu, wall = median_time(lambda: model.fit(part), repeat)  # noqa: B023
        rows.append(
            {
                "what": f"{iterations} EM iterations",
                "documents": len(part),
                "units": part.n_units,
                "words": part.shape[1],
                "topics": n_topics,
                "cpu s": cpu,
                "wall s": wall,
                "cpu microseconds a unit": 1e6 * cpu / part.n_units,
            }
        )
    return pd.DataFrame(rows)


def main():
    """Print and save the tables."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "pctd.csv")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")

    sizes = [(3000, 1800, 30)] if arguments.quick else [(3000, 18000, 30), (30000, 18000, 10), (30000, 18000, 30)]
    with threadpool_limits(1):
        noise = compare_noise(sizes, arguments.repeat)
    print(noise.to_string(index=False, float_format="{:.4g}".format))
    texts = news(arguments.data)[: 300 if arguments.quick else None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        em = measure_em(texts, (0.25, 0.5, 1.0), 50, 10, arguments.jobs, arguments.repeat)
    print(em.to_string(index=False, float_format="{:.4g}".format))
    if not arguments.quick:
        save(pd.concat([noise, em], ignore_index=True), arguments.output, [compare_noise, measure_em], ["news"])


if __name__ == "__main__":
    main()
