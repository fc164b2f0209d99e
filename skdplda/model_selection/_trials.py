"""One trial of a private search: how many there are, how one is fitted, and its noisy score."""

import hashlib
import math
import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from skdplda._arithmetic import exp, expm1, log, root
from skdplda._warnings import warn
from skdplda.privacy import NORM_BOUND, is_seed, mechanism_of, prepaid
from skdplda.releases import PrivatePipeline, flat_steps
from skdplda.rounds import Contributions


def draw_trials(mean, shape, rng):
    """Draw the number of trials, from the law that the accounting assumes."""
    mean = float(mean)
    if math.isinf(shape):
        return _draw(rng, 0, -mean, lambda k: mean / (k + 1))
    gamma = success_probability(shape, mean)
    if shape == 0:
        return _draw(rng, 1, log((1 - gamma) / -log(gamma)), lambda k: (1 - gamma) * k / (k + 1))
    first = log(shape * (1 - gamma)) + shape * log(gamma) - log(-expm1(shape * log(gamma)))
    return _draw(rng, 1, first, lambda k: (1 - gamma) * (k + shape) / (k + 1))


def _draw(rng, k, log_first, quotient):
    """Draw a number by inversion, from the log of the probability of the first k and P(k + 1) / P(k)."""
    uniform, log_chance = rng.random(), log_first
    while log_chance < -600:  # below every uniform number, and soon below every float
        log_chance += log(quotient(k))
        k += 1
    chance = reached = exp(log_chance)
    while reached <= uniform and not (reached > 0.5 and reached + chance == reached):
        chance *= quotient(k)
        reached += chance
        k += 1
    return k


@lru_cache(maxsize=64)
def success_probability(shape, mean):
    """Return gamma of the truncated negative binomial law with this mean."""
    if shape == 1:
        return 1 / mean

    def missing(log_gamma):
        gamma = exp(log_gamma)
        if shape == 0:
            return mean - (1 / gamma - 1) / -log_gamma
        return mean - shape * (1 - gamma) / (gamma * -expm1(shape * log_gamma))

    return exp(root(missing, -700.0, -1e-12, 1e-13))


def is_witness(name):
    """Whether a parameter, maybe of a nested estimator, shows or keeps what a fit does on its way."""
    return last_part(name) in ("callback", "checkpoint")


def last_part(name):
    """Return the name that a parameter of a nested estimator has there."""
    return name.rpartition("__")[2]


def seed_all(estimator, rng):
    """Give each random_state of an estimator a value of its own: 256 bits to one of ours, else an integer."""
    known = estimator.get_params()
    for name in sorted(filter(is_seed, known)):
        owner = known.get(name.rpartition("__")[0], estimator)
        ours = type(owner).__module__.startswith("skdplda.")
        estimator.set_params(**{name: rng.bytes(32) if ours else int(rng.integers(2**31))})


def private_steps(estimator):
    """Return the fitted steps that hold a guarantee."""
    return [step for _, step in flat_steps(estimator) if hasattr(step, "privacy_guarantee_")]


def fit_trial(trial, X, groups):
    """Fit the steps of a trial, each with the same groups.

    Not by the trial's own pipeline: what that remembers of other trials, or shows of its progress, is of no trial's.
    """
    steps = [(str(place), step) for place, (_, step) in enumerate(flat_steps(trial))]
    with prepaid():  # around this alone: fits of the caller's own, in a scoring function, are charged as anywhere
        PrivatePipeline(steps, groups=groups is not None).fit(X, groups=groups)


class Outcome(NamedTuple):
    """What came of a trial. One that failed is worse than all others, and one whose score is nan than the rest.

    Of the search's trials the best alone is released. So all that a trial says while it runs, warnings and errors
    included, is part of its outcome, and goes nowhere if another one is better.
    """

    score: float
    parameters: dict
    trial: Any
    error: Exception | None
    warnings: list

    @property
    def rank(self):
        """Larger is better."""
        return self.error is None, -math.inf if math.isnan(self.score) else self.score

    @classmethod
    def of(cls, parameters, trial, X, groups, judge):
        """Fit a trial in silence, and judge it by a function of the fitted trial."""
        loud = {name: value for name, value in trial.get_params().items() if last_part(name) == "verbose"}
        score, error = math.nan, None
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                fit_trial(trial.set_params(**dict.fromkeys(loud, False)), X, groups)
                score = judge(trial)
            except Exception as failure:
                error = failure
            trial.set_params(**loud)
        return cls(score, parameters, trial, error, [one.message for one in heard])

    def warn(self):
        """Warn the caller of what the trial warned of, each once."""
        different = {(type(message), str(message)): message for message in self.warnings}
        for message in different.values():
            warn(message)


def private_score(log_likelihoods, trial, units, deviation, seed):
    """Return the noisy sum over units of the gain over blind guessing, each from 0 to 1 and on the grid.

    A unit's score is the mean of those of its documents; one without a held-out token gains nothing.
    """
    start, documents = units
    n_words = flat_steps(trial)[-1][1].get_topics().shape[1]
    gain = np.nan_to_num(np.clip(1 + log_likelihoods / log(float(max(n_words, 2))), 0, 1))
    size = np.diff(start)
    unit = np.repeat(np.arange(len(size)), size)
    total = np.bincount(unit, gain[documents]) / size if len(documents) else np.zeros(0)
    sums = Contributions((1,))
    sums.add_rows(np.floor(total * NORM_BOUND)[:, None])
    exact = int(sums.bounded().total[0])
    if seed is not None:  # two sums never get the same noise: see Randomness.noise
        seed = hashlib.sha256(f"{seed!r}\0{exact}".encode()).digest()
    noise = mechanism_of("gaussian").sampler(deviation * NORM_BOUND, (1,), seed)[0] if deviation else 0
    return float(exact + int(noise)) / NORM_BOUND
