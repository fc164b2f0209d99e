"""How fast PCTD is: noise by the exact shortcut against dense noise, and EM against the number of units.

The first table is about one iteration of the published form, whose noise covers every word of every unit: drawing
units x words normals (in single precision and blocks, the faster way) and multiplying them with the topics and the
responsibilities, against drawing units x topics and words x topics ones. Both have the same law; a test compares
them. The second is about EM without noise on news articles cut into units of three words, a stand-in for the
sample of the New York Times that the paper used; the folder that SKDPLDA_DATA names has them.

Seconds are processor time, of all threads, and wall time, on the machine at hand, medians of repeated runs. Noise is
measured with one thread of linear algebra, so that threads that wait do not count.

    python benchmarks/pctd.py
"""

import time
from dataclasses import dataclass
from functools import cache

import numpy as np
from corpora import json_rows
from results import Table, run
from sklearn.feature_extraction.text import CountVectorizer
from threadpoolctl import threadpool_limits

from skdplda import PCTD
from skdplda.published._pctd_noise import likelihood_noise, sum_noise
from skdplda.semantics import SemanticUnitVectorizer

BLOCK = 512  # units of dense noise held at a time


@dataclass(frozen=True)
class Noise:
    """Of a row of noise."""

    units: int
    words: int
    topics: int
    repeats: int = 15
    sigma: float = 0.25


@dataclass(frozen=True)
class Em:
    """Of a row of EM, on a share of the articles."""

    share: float
    topics: int = 50
    iterations: int = 10
    jobs: int = 2
    repeats: int = 3


def noise_cells():
    """Return what there is to measure."""
    return [Noise(*one) for one in ((3000, 18000, 30), (30000, 18000, 10), (30000, 18000, 30))]


def em_cells():
    """Return what there is to measure."""
    return [Em(share) for share in (0.25, 0.5, 1.0)]


@cache
def units():
    """Return the articles, title first, in units."""
    texts = [f"{article['title']}.\n\n{article['text']}" for article in json_rows("news")]
    words = CountVectorizer(stop_words="english").fit(texts).get_feature_names_out()
    return SemanticUnitVectorizer(3, vocabulary=words, stop_words="english").transform(texts)


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


def measure_noise(s):
    """Return a row of noise."""
    rng = np.random.default_rng(0)
    log_phi = np.ascontiguousarray(np.log(rng.dirichlet(np.ones(s.words), s.topics).T + 1e-12))
    r = rng.dirichlet(np.ones(s.topics), s.units)
    with threadpool_limits(1):
        dense = median_time(lambda: dense_noise(log_phi, r, s.sigma, rng), 1)
        short = median_time(lambda: shortcut_noise(log_phi, r, s.sigma, rng), s.repeats)
    return {
        "dense cpu s": dense[0],
        "shortcut cpu s": short[0],
        "dense wall s": dense[1],
        "shortcut wall s": short[1],
        "times faster (cpu)": dense[0] / short[0],
    }


def measure_em(s):
    """Return a row of EM."""
    X = units()
    part = X[: round(s.share * len(X))]
    model = PCTD(s.topics, epsilon=np.inf, max_iter=s.iterations, n_jobs=s.jobs, random_state=0)
    cpu, wall = median_time(lambda: model.fit(part), s.repeats)
    sizes = {"documents": len(part), "units": part.n_units, "words": part.shape[1]}
    return sizes | {"cpu s": cpu, "wall s": wall, "cpu microseconds a unit": 1e6 * cpu / part.n_units}


TABLES = [
    Table("pctd_noise", Noise, noise_cells, measure_noise, timed=True),
    Table("pctd_em", Em, em_cells, measure_em, lambda s: ["news"], timed=True),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
