"""The noise of every round and what it costs, known before any data are."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skdplda._arithmetic import exp, log
from skdplda._types import Sequence
from skdplda.privacy import (
    LARGEST_SCALE,
    MECHANISMS,
    NORM_BOUND,
    Mechanism,
    calibrate_gaussian,
    gaussian_event,
    mechanism_of,
    without_slack,
)

# Precision (inverse variance) of the last round over that of the first: early rounds only have to break the symmetry of
# the topics. frontier_ablation.csv, row "equal noise in all rounds": perplexity of PrivateCGSLDA is 1 to 4 % higher on
# KOS and on tweets, and the same on 20 Newsgroups.
PRECISION_RATIO = 10.0
SUMS = {  # in words, by the kind of the query
    "words": "word counts",
    "topics": "topic-word counts",
    "votes": "the documents' votes on topics",
    "priors": "the documents' gains with each prior",
    "vector_votes": "the documents' votes on public vectors of words",
    "vectors": "sums of the documents' directions",
    "clusters": "word counts by cluster of documents",
    "directions": "numbers of documents and sums of their directions, by cluster",
    "cluster_words": "word counts by cluster",
    "cluster_votes": "the documents' votes on these",
}


def growing(n_rounds, ratio):
    """Return the precisions of rounds, (n_rounds,), which grow geometrically from 1 to the ratio."""
    return exp(log(ratio) * (np.arange(n_rounds) / max(n_rounds - 1, 1)))


@dataclass(frozen=True)
class NoisePlan:
    """The noise of every round and what it costs, known before any data are.

    Parameters
    ----------
    mechanism : str
        One of `skdplda.privacy.MECHANISMS`.
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
    def calibrate(
        cls, mechanism: str, epsilon: float, delta: float, n_rounds: int, sampling_rate: float = 1.0
    ) -> "NoisePlan":
        """Return the plan that spends the target on rounds of noise.

        Where the mechanism allows it and units are not sampled, later rounds are more precise: their precision grows
        geometrically, by PRECISION_RATIO in all. Otherwise all rounds are equal.

        Parameters
        ----------
        mechanism : str
            One of `skdplda.privacy.MECHANISMS`.
        epsilon, delta : float
            Target for all rounds together; `inf` for no noise.
        n_rounds : int
            Number of releases.
        sampling_rate : float, default=1.0
            Probability that a unit takes part in a round (Poisson sampling).

        Returns
        -------
        plan : NoisePlan
            Its event costs at most the target, the samplers' numerical error included.

        Raises
        ------
        ValueError
            For an unknown mechanism, one whose cost under sampling is not known, a delta that is too small, or an
            epsilon that needs more noise than the samplers draw.
        """
        law = mechanism_of(mechanism)
        if sampling_rate < 1:
            if not law.is_sampled:
                sampled = " or ".join(f"mechanism={other.name!r}" for other in MECHANISMS.values() if other.is_sampled)
                raise ValueError(
                    f"sampling_rate must be 1.0 for mechanism={mechanism!r}, whose cost under sampling is not known;"
                    f" got {sampling_rate!r}. Use {sampled} to sample documents."
                )
            return replace(cls.equal(epsilon, delta, n_rounds, sampling_rate), mechanism=mechanism)
        precisions = growing(n_rounds, PRECISION_RATIO)
        exact = without_slack(epsilon, delta) if law.has_delta else (float(epsilon), delta)
        return cls(mechanism, sampling_rate, *law.calibrate(*exact, precisions))._checked_scale(epsilon)

    @classmethod
    def equal(
        cls,
        epsilon: float,
        delta: float,
        n_rounds: int,
        sampling_rate: float = 1.0,
        visits: int | None = None,
    ) -> "NoisePlan":
        """Return a plan of equal Gaussian rounds.

        Parameters
        ----------
        epsilon, delta : float
            Target.
        n_rounds : int
            Number of releases.
        sampling_rate : float, default=1.0
            Probability that a unit takes part in a round (Poisson sampling).
        visits : int, default=None
            The most rounds in which one unit takes part; None for all.

        Returns
        -------
        plan : NoisePlan
            All rounds have the same multiplier.

        Raises
        ------
        ValueError
            For a delta that is too small, or an epsilon that needs more noise than the samplers draw.
        """
        steps = n_rounds if visits is None else min(visits, n_rounds)
        sigma = calibrate_gaussian(*without_slack(epsilon, delta), steps, sampling_rate)
        return cls.repeated(sigma, epsilon, n_rounds, sampling_rate, steps)

    @classmethod
    def repeated(
        cls, multiplier: float, epsilon: float, n_rounds: int, sampling_rate: float = 1.0, steps: int | None = None
    ) -> "NoisePlan":
        """Return the plan of equal Gaussian rounds whose noise is given.

        Parameters
        ----------
        multiplier : float
            Scale of the noise over the norm of a contribution.
        epsilon : float
            For the message of a refusal.
        n_rounds : int
            Number of releases.
        sampling_rate : float, default=1.0
            Probability that a unit takes part in a round (Poisson sampling).
        steps : int, default=None
            The most rounds in which one unit takes part; None for all.

        Returns
        -------
        plan : NoisePlan
            Its event is what the noise costs.

        Raises
        ------
        ValueError
            If it is more noise than the samplers draw.
        """
        event = gaussian_event(multiplier, n_rounds if steps is None else steps, sampling_rate)
        return cls("gaussian", sampling_rate, (multiplier,) * n_rounds, event)._checked_scale(epsilon)

    def _checked_scale(self, epsilon):
        """Return the plan, or refuse it, before data are read and the budget is charged."""
        scale = max(self.multipliers) * NORM_BOUND
        if not scale <= LARGEST_SCALE:
            raise ValueError(
                f"epsilon={epsilon!r} is too small: a round needs noise of scale {scale:.3g}, above the 2**50 that can"
                " be drawn. Use a larger epsilon, or fewer rounds."
            )
        return self

    @property
    def n_rounds(self) -> int:
        """Number of releases."""
        return len(self.multipliers)

    theorem: ClassVar[str] = "private rounds"  # page of the theory guide
    divides: ClassVar[bool] = False  # whether releases divide one budget; see `Spending`

    @property
    def released(self) -> tuple[str, ...]:
        """What the rounds release."""
        return ("topic-word counts" if self.noiseless else "noisy topic-word counts of every round",)

    def describe(self, unit: str) -> str:
        """Return the noise in words, for a privacy unit.

        Parameters
        ----------
        unit : str
            "document" or "user".

        Returns
        -------
        description : str
            For `PrivacyGuarantee.mechanism`.
        """
        rate = self.sampling_rate
        sampled = f"; each {unit} takes part in a round with probability {rate:g}" if rate < 1 else ""
        return (
            f"{self.law.label} noise on the topic-word counts of {self.n_rounds} rounds, of scale"
            f" {self.multipliers[0]:.4g} in the first and {self.multipliers[-1]:.4g} in the last,{self._scaled(unit)}"
            f"{sampled}"
        )

    def _scaled(self, unit):
        return f" where 1 is the most that one {unit} can contribute (L{self.law.norm} norm)"

    @property
    def law(self) -> Mechanism:
        """The mechanism, as an object."""
        return mechanism_of(self.mechanism)

    @property
    def noiseless(self) -> bool:
        """Whether there is no noise at all."""
        return self.multipliers[0] == 0

    def deviation(self, round_: int) -> float:
        """Return the standard deviation of a cell's noise in a round, over the norm of a contribution.

        Parameters
        ----------
        round_ : int
            Number of the round.

        Returns
        -------
        deviation : float
            0 for no noise.
        """
        return self.multipliers[round_] * self.law.deviation

    def draw(self, multiplier: float, shape: tuple[int, ...], random_state: Any, n_threads: int) -> np.ndarray:
        """Return a round's noise.

        Parameters
        ----------
        multiplier : float
            As from `multiplier`.
        shape : tuple of int
            Of the sum.
        random_state : bytes or None
            As the samplers of `skdplda.privacy` take it.
        n_threads : int
            The result does not depend on it.

        Returns
        -------
        noise : ndarray of the given shape, int64
            On the fixed-point grid.
        """
        return self.law.sampler(multiplier * NORM_BOUND, shape, random_state, n_threads)


class BudgetPlan(NoisePlan):
    """One budget of Gaussian noise, which is divided while the fit runs; the only multiplier is that of the whole.

    The releases decide how it is divided, so that the number of rounds is not known before. The shares of the precision
    add up to one at most, and all releases together are worth one Gaussian release: doc/theory/adaptive.rst.
    """

    theorem: ClassVar[str] = "a budget that releases divide"
    divides: ClassVar[bool] = True

    @classmethod
    def of(cls, epsilon: float, delta: float, least_share: float) -> "BudgetPlan":
        """Return the plan that spends epsilon and delta, both finite, on releases of `least_share` or more.

        Its event costs at most the target, the samplers' numerical error included. Raises ValueError for a delta that
        is too small, or an epsilon that needs more noise than the samplers draw.
        """
        plan = NoisePlan.calibrate("gaussian", epsilon, delta, 1)
        replace(plan, multipliers=(plan.multipliers[0] / math.sqrt(least_share),))._checked_scale(epsilon)
        return cls(plan.mechanism, plan.sampling_rate, plan.multipliers, plan.event)

    sums: ClassVar[str] = "word counts, topic-word counts and votes, as many as the releases themselves decide"

    @property
    def released(self) -> tuple[str, ...]:
        """What the rounds release."""
        return ("all the noisy sums that the mechanism names",)

    def describe(self, unit: str, asked: Sequence[str] = ()) -> str:
        """Return the noise in words, for a privacy unit; `asked` has the kinds of the sums that a fit released."""
        if len(asked) == 1:
            scale = f"{self.multipliers[0]:.4g},{self._scaled(unit)}"
            return f"{self.law.label} noise on one sum ({SUMS.get(asked[0], asked[0])}), of scale {scale}"
        times = {kind: list(asked).count(kind) for kind in asked}
        listed = "; ".join(f"{SUMS.get(kind, kind)}, {n} time{'s' * (n > 1)}" for kind, n in times.items())
        return (
            f"{self.law.label} noise on {f'{len(asked)} sums ({listed})' if asked else self.sums}. Together they tell"
            f" no more than one sum with noise of scale {self.multipliers[0]:.4g},{self._scaled(unit)}"
        )
