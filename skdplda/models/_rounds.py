"""The one private loop. Every private topic model is an E-step per document, a noisy sum and an update rule.

    table <- public
    for each round:
        active <- Poisson sample of the privacy units
        total  <- sum over the active units of what each contributes, with a norm of at most GRID  hidden
        noisy  <- total + integer noise                                                             released
        table  <- rule(noisy)                                                                       post-processing

Given the released sums, a unit's hidden state depends on that unit alone, so a round is a sum query with one bounded
contribution a unit, chosen adaptively: the rounds compose as Gaussian (or Laplace) mechanisms. The proof stands in
doc/theory/rounds.rst. Nothing else may pass between units: no stopping rule on training data, no data-dependent
scale, noise even on an empty batch.
"""

import os
from dataclasses import dataclass
from typing import NamedTuple
from uuid import uuid4

import numpy as np
from tqdm import tqdm

from skdplda.models import _checkpoint
from skdplda.privacy import (
    CLAIMED_ACCOUNTINGS,
    calibrate_gaussian,
    calibrate_laplace,
    delta_slack,
    discrete_laplace,
    gaussian_event,
    laplace_event,
    noise_multiplier,
    rounded_gaussian,
)

__all__ = ["GRID", "NoisePlan", "RoundReport", "run_round", "run_rounds"]

GRID = 2**20  # norm of a unit's contribution: sums are integers, in units of 1 / GRID of a unit
PRECISION_RATIO = 10.0  # of the last round to the first: early rounds only have to break the symmetry
MOST_DRAWS = 2**50  # more cells times rounds than any fit has: the slack of the samplers, without looking at data


@dataclass(frozen=True)
class NoisePlan:
    """The noise of every round and what it costs, known before any data are.

    Parameters
    ----------
    mechanism : {"gaussian", "laplace"}
        Rounded Gaussian noise for an L2 bound, discrete Laplace noise for an L1 bound.
    sampling_rate : float
        Probability that a unit takes part in a round.
    multipliers : tuple of float
        Scale of each round's noise over the norm of a contribution; zeros for no noise.
    event : dp_accounting.DpEvent
        What all rounds cost together.
    """

    mechanism: str
    sampling_rate: float
    multipliers: tuple
    event: object

    @classmethod
    def calibrate(cls, mechanism, epsilon, delta, n_rounds, sampling_rate):
        """Return the plan with the least noise that keeps the target.

        Gaussian rounds without sampling may differ: rounds of multipliers m_t are exactly one Gaussian mechanism of
        multiplier z with 1 / z^2 = sum_t 1 / m_t^2. The other plans have equal rounds.

        The samplers' numerical error costs (1 + e^epsilon) times 1e-14 of delta. Where that is more than half of it,
        the noise is that of the largest epsilon at which it is not, which is on the safe side.
        """
        if mechanism == "laplace":
            scale = calibrate_laplace(epsilon, n_rounds)
            return cls(mechanism, sampling_rate, (scale,) * n_rounds, laplace_event(scale, n_rounds))
        if sampling_rate < 1:
            return cls.equal(epsilon, delta, n_rounds, sampling_rate)
        sigma = calibrate_gaussian(*_without_slack(epsilon, delta))
        share = PRECISION_RATIO ** (np.arange(n_rounds) / max(n_rounds - 1, 1))
        multipliers = sigma / np.sqrt(share / share.sum()) * (1 + 1e-12)  # above what rounding may have taken
        return cls(mechanism, sampling_rate, tuple(multipliers.tolist()), gaussian_event(sigma))

    @classmethod
    def equal(cls, epsilon, delta, n_rounds, sampling_rate=1.0, accounting="pld", visits=None):
        """Return a plan of equal Gaussian rounds.

        Parameters
        ----------
        epsilon, delta : float
            Target.
        n_rounds : int
            Number of releases.
        sampling_rate : float, default=1.0
            Of the Poisson sample of each round.
        accounting : str, default="pld"
            One of `privacy.ACCOUNTINGS`. The claimed ones leave no room for the samplers' error.
        visits : int, default=None
            The most rounds in which one unit takes part; None for all.
        """
        if accounting not in CLAIMED_ACCOUNTINGS:
            epsilon, delta = _without_slack(epsilon, delta)
        steps = n_rounds if visits is None else min(visits, n_rounds)
        sigma = noise_multiplier(accounting, epsilon, delta, steps, sampling_rate)
        return cls("gaussian", sampling_rate, (sigma,) * n_rounds, gaussian_event(sigma, steps, sampling_rate))

    @property
    def n_rounds(self):
        """Number of releases."""
        return len(self.multipliers)

    @property
    def noiseless(self):
        """Whether there is no noise at all."""
        return self.multipliers[0] == 0

    def deviation(self, round_):
        """Return the standard deviation of a cell's noise in a round, over the norm of a contribution."""
        return self.multipliers[round_] * (2**0.5 if self.mechanism == "laplace" else 1.0)

    def draw(self, round_, shape, random_state, n_threads):
        """Return a round's noise, integers of the given shape."""
        sampler = rounded_gaussian if self.mechanism == "gaussian" else discrete_laplace
        return sampler(self.multipliers[round_] * GRID, shape, random_state, n_threads)


def _without_slack(epsilon, delta):
    """Return the target of exact Gaussian noise that leaves what the samplers' error may cost."""
    if np.isinf(epsilon):
        return epsilon, delta
    if delta / 2 <= delta_slack(MOST_DRAWS, 0.0):
        raise ValueError(
            f"delta={delta!r} is too small for Gaussian noise; use a delta above 1e-12, or"
            " mechanism='laplace' where there is one."
        )
    target = min(epsilon, np.log(delta / delta_slack(MOST_DRAWS, 0.0) - 1.0))
    return target, delta - delta_slack(MOST_DRAWS, target)


class RoundReport(NamedTuple):
    """What a callback sees after a round: released values only.

    Parameters
    ----------
    n_done, n_rounds : int
        Rounds done and planned.
    table : ndarray of shape (n_words, n_components)
        The public table that the next round starts from. Do not change it.
    """

    n_done: int
    n_rounds: int
    table: np.ndarray


def run_round(e_step, rule, plan, randomness, round_, active=None, n_threads=1):
    """Run one round: collect, add noise, update. The parameters are those of `run_rounds`."""
    total = e_step.collect(rule.table, round_, active)
    if not plan.noiseless:
        key = randomness.noise(round_, plan.mechanism, plan.multipliers[round_], total)
        total = total + plan.draw(round_, total.shape, key, n_threads)
    rule.update(total, round_)


def run_rounds(
    e_step,
    rule,
    plan,
    randomness,
    *,
    n_threads=1,
    before_release=None,
    checkpoint=None,
    identity="",
    callback=None,
    verbose=0,
):
    """Run the private loop.

    Parameters
    ----------
    e_step : object
        `n_units`; `collect(table, round_, active)` returns the (n_words, n_components) integer sum over active
        units (None: all), each contribution of norm GRID at most; `arrays()` and `restore(arrays)` for checkpoints. It
        may hold the documents here or on workers.
    rule : object
        `table`; `update(noisy, round_)`; `arrays()` and `restore(arrays)`.
    plan : NoisePlan
        How many rounds, how much noise.
    randomness : Randomness
        Of this fit.
    n_threads : int, default=1
        The result does not depend on it.
    before_release : callable, default=None
        Called once, before a noisy sum is formed, with the name of this run; a resumed fit keeps its name.
    checkpoint : path-like, default=None
        Written after each round, read if it is there, removed at the end.
    identity : str, default=""
        What a checkpoint must match to be resumed: settings and data.
    callback : callable, default=None
        Called with a `RoundReport` after each round.
    verbose : int, default=0
        A progress bar if positive.

    Raises
    ------
    ValueError
        If the checkpoint is unreadable or belongs to another fit.
    """
    first, run = 0, uuid4().hex
    if checkpoint is not None and os.path.exists(checkpoint):
        header, arrays = _checkpoint.load(checkpoint)
        if header["identity"] != identity:
            raise ValueError(
                f"checkpoint {os.fspath(checkpoint)!r} belongs to a fit with other parameters or other data;"
                " delete it or give another path."
            )
        first, run, randomness.root = header["n_done"], header["run"], bytes.fromhex(header["key"])
        e_step.restore({name[2:]: a for name, a in arrays.items() if name.startswith("e_")})
        rule.restore({name[2:]: a for name, a in arrays.items() if name.startswith("r_")})
    if before_release is not None:
        before_release(run)
    for round_ in tqdm(range(first, plan.n_rounds), initial=first, total=plan.n_rounds, disable=not verbose):
        active = None
        if plan.sampling_rate < 1:
            active = randomness.sample(round_, e_step.n_units, plan.sampling_rate)
        run_round(e_step, rule, plan, randomness, round_, active, n_threads)
        if checkpoint is not None:
            header = {"identity": identity, "n_done": round_ + 1, "run": run, "key": randomness.root.hex()}
            state = {f"e_{name}": a for name, a in e_step.arrays().items()}
            state |= {f"r_{name}": a for name, a in rule.arrays().items()}
            _checkpoint.save(checkpoint, header, state)
        if callback is not None:
            callback(RoundReport(round_ + 1, plan.n_rounds, rule.table))
    if checkpoint is not None and os.path.exists(checkpoint):
        os.remove(checkpoint)
