"""The loop: a strategy asks, the documents answer, and the answers get noise before the strategy sees them.

    table <- public
    for each query of the strategy:                                                          (strategy)
        scale  <- its share of the budget                                                    (Spending)
        active <- Poisson sample of the privacy units
        sums   <- what the active units contribute, each of norm NORM_BOUND      hidden      (EStep, Contributions)
        noisy  <- sums + integer noise                                           released    (converse)
        next query, or the model <- noisy                                        processing  (strategy)

A strategy is a generator. It yields an `Ask` and is sent a noisy answer; it never sees a document. Given the released
sums, a unit's hidden state depends on that unit alone. So an answer is a sum query, chosen adaptively, to which each
unit makes one bounded contribution, and the answers compose as Gaussian (or Laplace) mechanisms. The proof is in
doc/theory/rounds.rst. Nothing else may pass between units: the training data decide neither when to stop nor how to
scale, and an empty batch gets noise too.

Contributions are added up, and noise drawn, in these files besides: skdplda/models/_hdp_sampler.py (HDPLDA),
skdplda/models/_pctd_noise.py (PCTD with noise on units), skdplda/privacy/_partition.py (words),
skdplda/model_selection/_trials.py (the score of a search), skdplda/local/_channel.py (reports of devices), and
skdplda/published/_gibbs_sampler.py and skdplda/published/_pctd_noise.py (published forms, claimed). The samplers are
those of skdplda/privacy/_noise.py.
"""

import logging
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.sparse import issparse
from tqdm import tqdm

from skdplda.privacy import observe
from skdplda.rounds._bounds import Bounded, total_of
from skdplda.rounds._queries import TopicWordCounts
from skdplda.rounds._transcript import Transcript

LOGGER = logging.getLogger("skdplda")


class Ask(NamedTuple):
    """What a strategy yields.

    Parameters
    ----------
    query : Query
        What is to be summed.
    share : float or None
        Of the budget; None for the next release of a plan whose releases are fixed before.
    table : ndarray or csr_array of shape (n_words, n_components)
        The public table as of now, for reports.
    n_planned : int
        Releases planned as of now, this one and those before it included.
    """

    query: Any
    share: float | None
    table: Any
    n_planned: int


class Side(Protocol):
    """What a checkpoint keeps of a side of the conversation."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the state, for a checkpoint: of an E-step hidden, of tables made of released and public values only.

        Returns
        -------
        arrays : dict of str to ndarray
            Empty if nothing is kept between rounds.
        """

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the state of a checkpoint.

        Parameters
        ----------
        arrays : dict of str to ndarray
            As from `arrays`.
        """


@runtime_checkable
class EStep(Side, Protocol):
    """What each privacy unit contributes: the hidden half of a round.

    Given the query, the contribution of a unit depends on that unit, its own hidden state and its own random draws, and
    on no other unit. `Contributions` bounds it. An E-step may hold the documents here or on workers, and may have a
    method `close`, which lets them go.

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

    def collect(self, query: Any, round_: int, active: np.ndarray | None) -> Bounded:
        """Return the sum of the active units' contributions.

        Parameters
        ----------
        query : Query
            What is summed: of most fits, `TopicWordCounts` given the public table of this round.
        round_ : int
            Its number.
        active : ndarray of shape (n_units,), uint8, or None
            1 for the units that take part; None for all.

        Returns
        -------
        sums : Bounded
            Of the query's shape, as `skdplda.rounds.Contributions` makes it. Only for `epsilon=inf` any array.
        """


@runtime_checkable
class Tables(Side, Protocol):
    """The M-step: it turns released sums into topic-word tables, and sees released and public values only.

    Attributes
    ----------
    table : ndarray of shape (n_words, n_components)
        What the next round starts from.
    n_done : int
        Rounds done.
    """

    table: np.ndarray
    n_done: int = 0

    def query(self) -> TopicWordCounts:
        """Return what the next round asks."""
        return TopicWordCounts(self.table)

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


def rounds_of(tables, n_rounds):
    """Yield the query of each round of the `Tables` until `n_rounds` are done; return the tables."""
    while tables.n_done < n_rounds:
        noisy = yield Ask(tables.query(), None, tables.table, n_rounds)
        tables.update(noisy, tables.n_done)
        tables.n_done += 1
    return tables


def converse(strategy, e_step, spending, randomness, *, n_threads=1, before_noise=None, **options):
    """Run a private fit: each answer is a sum with noise, of the scale that its share of the budget buys.

    The strategy yields an `Ask`, is sent the noisy sum, and returns the model. `before_noise` is called with a digest
    of each sum, keyed by the secret of the fit, and may raise. `options` are those of `talk`. The number of threads
    does not change the result. Raises for a sum that is no `Bounded`, or bounded in another norm than the noise needs,
    for a transcript of another fit, and for more than the budget.
    """

    def answer(ask, number):
        multiplier, plan = spending.take(ask.share), spending.plan
        active = active_units(plan, randomness, number, e_step.n_units)
        total = total_of(e_step.collect(ask.query, number, active), plan.law.norm)
        if total.shape != ask.query.shape:
            raise ValueError(f"collect must return a sum of the query's shape {ask.query.shape}; got {total.shape}.")
        if before_noise is not None:
            before_noise(randomness.digest(number, plan.mechanism, multiplier, total))
        key = randomness.noise(number, plan.mechanism, multiplier, total)
        noisy = plan.draw(multiplier, total.shape, key, n_threads)
        noisy += total  # in place: these are the largest arrays of a fit, and the sum belongs to the E-step
        observe("round", query=ask.query, noisy=noisy, multiplier=multiplier)
        return noisy

    return talk(strategy, answer, e_step, spending, randomness, **options)


def active_units(plan, randomness, number, n_units):
    """Return flags of the units that take part in an answer, a Poisson sample; None for all."""
    return randomness.sample(number, n_units, plan.sampling_rate) if plan.sampling_rate < 1 else None


def talk(
    strategy, answer, e_step, spending, randomness, *, transcript=None, before_release=None, callback=None, verbose=0
):
    """Run a strategy to its end, and return what it returns.

    Each `Ask` is answered by `answer(ask, number)`, and the answer written into the `transcript`; what this has already
    is sent in place of an answer. `before_release` is called once, after all of the transcript is read and before a
    noisy sum is formed, with the name of this run, which a resumed fit keeps; `callback` with a `RoundReport` after
    each answer. A positive `verbose` shows a progress bar; the logger "skdplda" has the same.
    """
    transcript = Transcript() if transcript is None else transcript
    first = transcript.resume(e_step, spending, randomness)
    ask, model = _next(strategy, None)
    for number in range(first, transcript.n_done):
        ask, model = _next(strategy, transcript.answer(number, ask, spending))
    if before_release is not None:
        before_release(transcript.run)
    progress = tqdm(initial=transcript.n_done, total=ask and ask.n_planned, disable=not verbose)
    while ask is not None:
        query, found = ask.query, answer(ask, transcript.n_done)
        ask, model = _next(strategy, found)
        transcript.add(query, found, e_step, spending, randomness)
        del query, found
        progress.total = transcript.n_done if ask is None else ask.n_planned
        progress.update()
        LOGGER.info("%d of %d releases", transcript.n_done, progress.total)
        if callback is not None:
            table = model.table if ask is None else ask.table
            callback(RoundReport(transcript.n_done, progress.total, table.toarray() if issparse(table) else table))
    progress.close()
    transcript.close()
    return model


def _next(strategy, answer):
    """Return (what a strategy asks next, None), or (None, what it returns)."""
    try:
        return strategy.send(answer), None
    except StopIteration as end:
        return None, end.value
