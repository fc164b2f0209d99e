"""Private rounds in which one thing is broken, and the estimators that show it: each claim is then false.

One fit must tell each of them; benchmarks/audits.py counts how often it does.
"""

import math
import os
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from internals import AdaptiveEStep, bounded_by_kernel

from skdplda import HDPLDA, VIPSLDA, DPVocabularySelector, PrivateCGSLDA
from skdplda.models import PCTD
from skdplda.privacy import Randomness
from skdplda.rounds import NORM_BOUND, NoisePlan

__all__ = ["BROKEN", "SOUND"]

SCALE = 2.0**40  # of noise that is drawn once


@contextmanager
def noise_times_08():
    """Noise of 0.8 times the scale that is accounted for."""

    def draw(self, multiplier, shape, random_state, n_threads):
        return self.law.sampler(0.8 * multiplier * NORM_BOUND, shape, random_state, n_threads)

    with patch.object(NoisePlan, "draw", draw):
        yield


def longer(sums):
    """Return a sum of 1.2 times what it is, which says that it is bounded: as a kernel that scales wrongly would."""
    return bounded_by_kernel(sums.total * 6 // 5, sums.norm, np.inf)


@contextmanager
def norm_times_12():
    """Contributions of 1.2 times the norm that is accounted for."""
    collect = AdaptiveEStep.collect

    def collect_longer(self, query, round_, active):
        return longer(collect(self, query, round_, active))

    with patch.object(AdaptiveEStep, "collect", collect_longer):
        yield


@contextmanager
def sampling_rate_times_2():
    """Units take part twice as often as is accounted for."""
    sample = Randomness.sample

    def more(self, round_, n_units, rate):
        return sample(self, round_, n_units, 2 * rate)

    with patch.object(Randomness, "sample", more):
        yield


@contextmanager
def one_round_uncounted():
    """One more release, of the noise of the last one, which nobody pays for."""
    plan = PCTD._plan

    def longer(self):
        paid = plan(self)
        return replace(paid, multipliers=(*paid.multipliers, paid.multipliers[-1]))

    with patch.object(PCTD, "_plan", longer):
        yield


@contextmanager
def noise_repeated():
    """The same noise in every round, up to its scale."""

    key = os.urandom(32)

    def draw(self, multiplier, shape, random_state, n_threads):
        first = self.law.sampler(SCALE, shape, key, n_threads)
        return np.rint(first * (multiplier * NORM_BOUND / SCALE)).astype(np.int64)

    with patch.object(NoisePlan, "draw", draw):
        yield


@contextmanager
def unit_twice():
    """Each unit is counted twice, and accounted for once."""
    collect = AdaptiveEStep.collect

    def twice(self, query, round_, active):
        sums = collect(self, query, round_, active)
        return bounded_by_kernel(2 * sums.total, sums.norm, np.inf)

    with patch.object(AdaptiveEStep, "collect", twice):
        yield


@contextmanager
def thresholds_times_08():
    """Words are released above 0.8 times the thresholds that keep new words hidden."""
    plan = DPVocabularySelector._plan

    def lower(self, *args):
        right = plan(self, *args)
        return replace(right, thresholds=tuple(math.floor(0.8 * threshold) for threshold in right.thresholds))

    with patch.object(DPVocabularySelector, "_plan", lower):
        yield


@contextmanager
def forgotten_delta():
    """The guarantee of a selection leaves out what new words cost."""
    cost = DPVocabularySelector.privacy_cost

    def less(self, *args, **options):
        right = cost(self, *args, **options)
        return replace(right, delta=right.delta - right.event_delta, event_delta=0.0)

    with patch.object(DPVocabularySelector, "privacy_cost", less):
        yield


@contextmanager
def nothing():
    """Right code."""
    yield


# What is broken: how, and an estimator whose one fit shows it.
BROKEN = {
    "noise times 0.8": (noise_times_08, PCTD(2, epsilon=5.0, max_iter=4)),
    "norm times 1.2": (norm_times_12, VIPSLDA(2, epsilon=5.0)),
    "sampling rate times 2": (sampling_rate_times_2, VIPSLDA(2, epsilon=5.0, sampling_rate=0.2, max_iter=5)),
    "one round uncounted": (one_round_uncounted, PCTD(2, epsilon=5.0, max_iter=4)),
    "noise repeated": (noise_repeated, PCTD(2, epsilon=5.0, max_iter=4)),
    "noise repeated, sampled": (noise_repeated, PrivateCGSLDA(2, epsilon=1.0, sampling_rate=0.5, max_iter=4)),
}
SOUND = {
    **{f"right: {name}": (nothing, estimator) for name, (_, estimator) in BROKEN.items() if name != "noise repeated"},
    "right: drawn topics": (nothing, PrivateCGSLDA(2, epsilon=5.0)),
    "right: words": (nothing, DPVocabularySelector(epsilon=5.0)),
    "right: sweeps": (nothing, HDPLDA(2, epsilon=5.0, max_iter=5, noise_share=0.75)),
}
