"""The loop of private rounds: an E-step for each document, a noisy sum, an M-step.

    table <- public
    for each round:
        active <- Poisson sample of the privacy units
        total  <- sum of the active units' contributions, each of norm GRID at most      hidden     (EStep)
        noisy  <- total + integer noise                                                  released   (NoisePlan)
        table  <- update(noisy)                                                          processing (Tables)

Given the released sums, a unit's hidden state depends on that unit alone. So a round is a sum query, chosen adaptively,
to which each unit makes one bounded contribution, and the rounds compose as Gaussian (or Laplace) mechanisms. The proof
is in doc/theory/rounds.rst. Nothing else may pass between units: the training data decide neither when to stop nor how
to scale, and an empty batch gets noise too.

Contributions are added up, and noise drawn, in these files besides: skdplda/models/_hdp_sampler.py (HDPLDA),
skdplda/models/_pctd_noise.py (PCTD with noise on units), skdplda/privacy/_partition.py (words),
skdplda/model_selection/_trials.py (the score of a search), skdplda/local/_channel.py (reports of devices) and
skdplda/models/_published_gibbs.py (published forms, claimed). The samplers are those of skdplda/privacy/_noise.py.
"""

import os
from typing import Any, NamedTuple, Protocol, runtime_checkable
from uuid import uuid4

import numpy as np
from tqdm import tqdm

from skdplda.privacy import observe
from skdplda.rounds import _checkpoint

__all__ = ["EStep", "RoundReport", "Tables", "run_round", "run_rounds"]

# Parts of the units that the first round without noise has seen after each of its steps but the last, which sees the
# others: doc/kernels.rst, "How soon".
GROWTH = 1 / 256, 1 / 64, 1 / 16, 1 / 4


@runtime_checkable
class EStep(Protocol):
    """What each privacy unit contributes: the hidden half of a round.

    Given the table, the contribution of a unit depends on that unit, its own hidden state and its own random draws, and
    on no other unit. Its norm is at most GRID, in integers. An E-step may hold the documents here or on workers, and
    may have a method `close`, which lets them go.

    The E-steps of this package are made with `X`, the documents of a corpus or of a part of it; `units`, their privacy
    units as from `check_groups`, or None if each document is its own; `randomness`, whose key names the streams of
    hidden draws; `n_threads`, on which the result does not depend; and `first_document`, the number of the first one in
    the corpus, because streams have the numbers of documents.

    Attributes
    ----------
    n_units : int
        Number of privacy units.
    """

    n_units: int

    def collect(self, table: Any, round_: int, active: np.ndarray | None) -> np.ndarray:
        """Return the sum of the active units' contributions.

        Parameters
        ----------
        table : ndarray of shape (n_words, n_components)
            The public table of this round; or what else `Tables.question` asks.
        round_ : int
            Its number.
        active : ndarray of shape (n_units,), uint8, or None
            1 for the units that take part; None for all.

        Returns
        -------
        total : ndarray of shape (n_words, n_components), int64
            Exact, before noise.
        """

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the hidden state, for a checkpoint.

        Returns
        -------
        arrays : dict of str to ndarray
            Empty if nothing is kept between rounds.
        """

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the hidden state of a checkpoint.

        Parameters
        ----------
        arrays : dict of str to ndarray
            As from `arrays`.
        """


@runtime_checkable
class Tables(Protocol):
    """The M-step: it turns released sums into topic-word tables, and sees released and public values only.

    Attributes
    ----------
    table : ndarray of shape (n_words, n_components)
        What the next round starts from.
    question : object
        What the E-step is asked: the table, unless the tables say otherwise.
    """

    table: np.ndarray

    @property
    def question(self) -> Any:
        """What the E-step is asked."""
        return self.table

    def update(self, noisy: np.ndarray, round_: int) -> None:
        """Make the next table from the release of a round.

        Parameters
        ----------
        noisy : ndarray of shape (n_words, n_components)
            The released sum, on the fixed-point grid.
        round_ : int
            Its number.
        """

    def pseudo_counts(self) -> np.ndarray:
        """Return the model without the prior.

        Returns
        -------
        counts : ndarray of shape (n_words, n_components)
            Not negative; a new array.
        """

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the state, for a checkpoint.

        Returns
        -------
        arrays : dict of str to ndarray
            Released and public values only.
        """

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the state of a checkpoint.

        Parameters
        ----------
        arrays : dict of str to ndarray
            As from `arrays`.
        """


class RoundReport(NamedTuple):
    """What a callback sees after a round: released values only.

    Parameters
    ----------
    n_done, n_rounds : int
        Rounds done and planned.
    table : ndarray of shape (n_words, n_components)
        The public table that the next round starts from. Do not change it; the next round may, so keep a copy.
    """

    n_done: int
    n_rounds: int
    table: np.ndarray


def run_round(e_step, tables, plan, randomness, round_, active=None, n_threads=1, before_noise=None):
    """Run one round: collect, add noise, update. The parameters are those of `run_rounds`.

    `before_noise` is called with a digest of the sum, keyed by the secret of the fit, and may raise.
    """
    multiplier, question = plan.multiplier(round_, tables), tables.question
    total = e_step.collect(question, round_, active)
    if not plan.noiseless:
        if before_noise is not None:
            before_noise(randomness.digest(round_, plan.mechanism, multiplier, total))
        key = randomness.noise(round_, plan.mechanism, multiplier, total)
        noisy = plan.draw(multiplier, total.shape, key, n_threads)
        noisy += total  # in place: these are the largest arrays of a fit, and the sum belongs to the E-step
        total = noisy
        observe("round", question=question, noisy=total, multiplier=multiplier)
    tables.update(total, round_)


def samples(plan, tables, randomness, round_, n_units):
    """Yield the active units of each step of a round: flags, or None for all of them.

    There is one step, but in the first of several rounds of tables that grow, which have no noise. There, parts of
    growing size follow one another, each unit in one of them, so that all but the first meet tables that hold topics.
    """
    if plan.sampling_rate < 1:
        yield randomness.sample(round_, n_units, plan.sampling_rate)
    elif plan.noiseless and round_ == 0 and plan.n_rounds > 1 and getattr(tables, "grows", False):
        before = np.zeros(n_units, np.uint8)
        for rate in GROWTH:  # samples of one round at growing rates contain each other
            upto = randomness.sample(round_, n_units, rate)
            yield upto - before
            before = upto
        yield 1 - before
    else:
        yield None


def same_noise(found, expected):
    """Whether releases had the noise that the plan accounts for, whatever processor took the powers."""
    return len(found) == len(expected) and np.allclose(found, expected, rtol=1e-9, atol=0)


def run_rounds(
    e_step,
    tables,
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
    e_step : EStep
        Of all documents.
    tables : Tables
        The M-step.
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
        If the checkpoint is unreadable, damaged or of another fit.
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
        states = [{name[2:]: a for name, a in arrays.items() if name.startswith(prefix)} for prefix in ("e_", "r_")]
        _checkpoint.restore(checkpoint, (e_step, states[0]), (tables, states[1]))
        if not plan.holds(first, tables) or not same_noise(header["multipliers"], plan.spent(first, tables)):
            raise ValueError(
                f"checkpoint {os.fspath(checkpoint)!r} has other releases, or noise, than this version makes in the"
                f" {first} rounds that it says are done: it is damaged, or of another version. It was left as it is:"
                " give another name to start anew."
            )
    if before_release is not None:
        before_release(run)
    progress = tqdm(initial=first, total=plan.planned(tables), disable=not verbose)
    round_ = first
    while round_ < plan.planned(tables):
        for active in samples(plan, tables, randomness, round_, e_step.n_units):
            run_round(e_step, tables, plan, randomness, round_, active, n_threads)
        if checkpoint is not None:
            header = {"identity": identity, "n_done": round_ + 1, "run": run, "key": randomness.root.hex()}
            header["multipliers"] = plan.spent(round_ + 1, tables)
            state = {f"e_{name}": a for name, a in e_step.arrays().items()}
            state |= {f"r_{name}": a for name, a in tables.arrays().items()}
            _checkpoint.save(checkpoint, header, state)
        round_ += 1
        progress.total = plan.planned(tables)
        progress.update()
        if callback is not None:
            callback(RoundReport(round_, progress.total, tables.table))
    progress.close()
    if checkpoint is not None:
        _checkpoint.discard(checkpoint)
