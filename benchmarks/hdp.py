"""HDPLDA: what sweeps cost together, what noise costs in time, and what a total budget buys.

Three tables: the total epsilon of T sweeps at the paper's two epsilons, by its sum and by joint accounting (delta=1e-5,
with the published rate of bounded range and with ours); the processor time of a sweep with noise over one without,
interleaved; held-out perplexity on KOS against the total epsilon, over numbers of sweeps and shares, by relative
preferences (the default) and by clipped counts.

    python benchmarks/hdp.py --seeds 0 1 2
"""

import argparse
import math
import os
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from results import save

from skdplda import HDPLDA
from skdplda.datasets import load_uci_bow, make_lda_corpus
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.metrics import unigram_perplexity
from skdplda.models._hdp_accounting import HybridPlan
from skdplda.models._hdp_sampler import DelayedCountSweeps
from skdplda.privacy import Randomness, epsilon_of, zcdp_event


def kos(folder):
    """Return the presence bits of the 1,000 words of most KOS posts, 3,000 to train and 430 to test."""
    X = load_uci_bow(folder / "docword.kos.txt.gz").data.tocsc()
    X = X[:, np.argsort(-np.diff(X.indptr), kind="stable")[:1000]].tocsr()
    X.data[:] = 1
    return X[:3000], X[3000:]


def prices():
    """Return the totals of T sweeps."""
    rows = []
    for noise, draws in ((0.1, 0.1), (1.0, 1.0), (1.0, 10.0)):
        for sweeps in (10, 30, 100, 200, 300):
            plan = HybridPlan("laplace", 2 / noise, draws, sweeps)
            published = sweeps * (noise**2 / 2 + draws**2 / 8)
            rows.append(
                {
                    "noise epsilon": noise,
                    "inherent epsilon": draws,
                    "sweeps": sweeps,
                    "sum": sweeps * (noise + draws),
                    "zCDP, eta^2/8": epsilon_of(zcdp_event(published), 1e-5),
                    "zCDP": epsilon_of(plan.event(), 1e-5),
                    "reported": plan.epsilon(1e-5),
                    "draws alone": replace(plan, scale=math.inf).epsilon(1e-5),
                }
            )
    return pd.DataFrame(rows)


def seconds(X, repeats, jobs):
    """Return the median processor seconds of a sweep: without noise, with Gaussian and with Laplace noise."""
    scales = {"none": ("gaussian", 0.0), "gaussian": ("gaussian", 5.0), "laplace": ("laplace", 5.0)}
    samplers = {}
    for name, (noise, scale) in scales.items():
        plan = HybridPlan(noise, scale, 2.0, repeats)
        X.indptr = X.indptr.astype(np.int64)
        samplers[name] = DelayedCountSweeps.of_counts(X, plan, np.full(50, 0.1), None, Randomness(0), jobs)
    times = {name: [] for name in samplers}
    for _ in range(repeats):
        for name, sampler in samplers.items():
            begin = time.process_time()
            sampler.sweep()
            times[name].append(time.process_time() - begin)
    return {name: float(np.median(values[1:])) for name, values in times.items()}


def fit(train, test, seed, **parameters):
    """Return the held-out perplexity of one fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        warnings.simplefilter("ignore", UserWarning)  # of hopeless budgets: they are to be seen
        return HDPLDA(20, random_state=seed, **parameters).fit(train).perplexity(test)


def utility(train, test, epsilons, seeds):
    """Return perplexities by total epsilon, sweeps and share."""
    exact = np.mean([fit(train, test, seed, epsilon=math.inf) for seed in seeds])
    unigram = unigram_perplexity(train, test)
    rows = []
    for epsilon in epsilons:
        for sweeps in (6, 12, 25, 50):
            for share in (0.1, 0.25, 0.5):
                for clip in (None, 20.0):
                    options = {"epsilon": epsilon, "max_iter": sweeps, "noise_share": share, "count_clip": clip}
                    plan = HDPLDA(20, **options)._plan()
                    found = np.mean([fit(train, test, seed, **options) for seed in seeds])
                    rows.append(
                        {
                            "epsilon": epsilon,
                            "sweeps": sweeps,
                            "noise share": share,
                            "draws": "preferences" if clip is None else "clipped counts",
                            "range": plan.eta,
                            "noise": plan.deviation,
                            "perplexity": found,
                            "share of the gain": (unigram - found) / (unigram - exact),
                            "unigram": unigram,
                            "non-private": exact,
                        }
                    )
    return pd.DataFrame(rows)


def main():
    """Print and save the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0, 5.0, 10.0, 20.0, 50.0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a synthetic corpus and two epsilons")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    if arguments.quick or arguments.data is None:
        X = make_lda_corpus(1000, 300, 20, mean_length=60, random_state=0).data
        train, test, arguments.epsilon = X[:900], X[900:], [5.0, 20.0]
    else:
        train, test = kos(arguments.data)
    arguments.output.mkdir(parents=True, exist_ok=True)

    table = prices()
    print(table.to_string(index=False, float_format="{:.4g}".format), "\n")
    save(table, arguments.output / "hdp_prices.csv", [prices])
    times = seconds(train.astype(np.int32), 10 if arguments.quick else 60, arguments.jobs)
    for name, value in times.items():
        print(f"sweep, noise {name}: {1e3 * value:.2f} ms, {value / times['none']:.3f} times that without")
    print()
    table = utility(train, test, arguments.epsilon, arguments.seeds)
    print(table.to_string(index=False, float_format="{:.3f}".format))
    save(table, arguments.output / "hdp_utility.csv", [utility, kos], ["kos"])


if __name__ == "__main__":
    main()
