"""HDPLDA: what sweeps cost together, what noise costs in time, and what a total budget buys.

Three tables: the total epsilon of T sweeps at the paper's two epsilons, by its sum and by joint accounting (delta=1e-5,
with the published rate of bounded range and with ours); the processor time of a sweep with noise over one without,
interleaved; held-out perplexity on KOS against the total epsilon, over numbers of sweeps and shares, by relative
preferences (the default) and by clipped counts.

    python benchmarks/hdp.py
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from apart import timed
from corpora import path_of
from results import Table, run

from skdplda import HDPLDA
from skdplda.datasets import load_uci_bow
from skdplda.metrics import unigram_perplexity
from skdplda.models._hdp_accounting import HybridPlan
from skdplda.models._hdp_sampler import DelayedCountSweeps
from skdplda.privacy import Randomness, epsilon_of, zcdp_event

DRAWS = {"preferences": None, "clipped counts": 20.0}  # and `count_clip`


@dataclass(frozen=True)
class Price:
    """Of a row of totals."""

    noise_epsilon: float
    inherent_epsilon: float
    sweeps: int
    delta: float = 1e-5


@dataclass(frozen=True)
class Speed:
    """Of a row of times."""

    noise: str
    scale: float
    topics: int = 50
    repeats: int = 60
    inherent_epsilon: float = 2.0
    jobs: int = 1


@dataclass(frozen=True)
class Utility:
    """Of a row of perplexity, the mean of so many seeds."""

    epsilon: float
    sweeps: int
    noise_share: float
    draws: str
    seeds: int = 3
    topics: int = 20


def price_cells():
    """Return what there is to compute."""
    pairs = ((0.1, 0.1), (1.0, 1.0), (1.0, 10.0))
    return [Price(*pair, sweeps) for pair, sweeps in product(pairs, (10, 30, 100, 200, 300))]


def speed_cells():
    """Return what there is to measure."""
    return [Speed("gaussian", 0.0), Speed("gaussian", 5.0), Speed("laplace", 5.0)]


def utility_cells():
    """Return what there is to measure."""
    grid = product((1.0, 3.0, 5.0, 10.0, 20.0, 50.0), (6, 12, 25, 50), (0.1, 0.25, 0.5), DRAWS)
    return [Utility(*one) for one in grid]


@cache
def kos():
    """Return the presence bits of the 1,000 words of most KOS posts, 3,000 to train and 430 to test."""
    X = load_uci_bow(path_of("kos")).data.tocsc()
    X = X[:, np.argsort(-np.diff(X.indptr), kind="stable")[:1000]].tocsr()
    X.data[:] = 1
    return X[:3000], X[3000:]


def price(s):
    """Return the totals of so many sweeps."""
    plan = HybridPlan("laplace", 2 / s.noise_epsilon, s.inherent_epsilon, s.sweeps)
    published = s.sweeps * (s.noise_epsilon**2 / 2 + s.inherent_epsilon**2 / 8)
    return {
        "sum": s.sweeps * (s.noise_epsilon + s.inherent_epsilon),
        "zCDP, eta^2/8": epsilon_of(zcdp_event(published), s.delta),
        "zCDP": epsilon_of(plan.event(), s.delta),
        "reported": plan.epsilon(s.delta),
        "draws alone": replace(plan, scale=math.inf).epsilon(s.delta),
    }


def speed(s):
    """Return the median processor milliseconds of a sweep, and how often longer it is than one without noise."""
    X, samplers = kos()[0].astype(np.int32), {}
    X.indptr = X.indptr.astype(np.int64)
    for scale in dict.fromkeys((0.0, s.scale)):
        plan = HybridPlan(s.noise if scale else "gaussian", scale, s.inherent_epsilon, s.repeats)
        prior = np.full(s.topics, 0.1)
        samplers[scale] = DelayedCountSweeps.of_counts(X, plan, prior, None, Randomness(0), s.jobs)
    times = {scale: [] for scale in samplers}
    for _ in range(s.repeats):
        for scale, sampler in samplers.items():
            times[scale].append(timed(sampler.sweep)[1])
    median = {scale: 1e3 * float(np.median(values[1:])) for scale, values in times.items()}
    return {"ms": median[s.scale], "times that without": median[s.scale] / median[0.0]}


@cache
def fit(topics, seed, **parameters):
    """Return the held-out perplexity of one fit."""
    return HDPLDA(topics, random_state=seed, **parameters).fit(kos()[0]).perplexity(kos()[1])


def utility(s):
    """Return perplexities by total epsilon, sweeps and share."""
    exact = np.mean([fit(s.topics, seed, epsilon=math.inf) for seed in range(s.seeds)])
    unigram, clip = unigram_perplexity(*kos()), DRAWS[s.draws]
    options = {"epsilon": s.epsilon, "max_iter": s.sweeps, "noise_share": s.noise_share, "count_clip": clip}
    plan = HDPLDA(s.topics, **options)._plan()
    found = np.mean([fit(s.topics, seed, **options) for seed in range(s.seeds)])
    return {
        "range": plan.eta,
        "noise": plan.deviation,
        "perplexity": found,
        "share of the gain": (unigram - found) / (unigram - exact),
        "unigram": unigram,
        "non-private": exact,
    }


TABLES = [
    Table("hdp_prices", Price, price_cells, price),
    Table("hdp_speed", Speed, speed_cells, speed, lambda s: ["kos"], timed=True),
    Table("hdp_utility", Utility, utility_cells, utility, lambda s: ["kos"]),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
