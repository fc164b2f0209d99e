"""The noise of every round and what it costs, known before any data are."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from skdplda._arithmetic import exp, log
from skdplda.privacy import (
    CLAIMED_ACCOUNTINGS,
    LARGEST_SCALE,
    MECHANISMS,
    Mechanism,
    gaussian_event,
    mechanism_of,
    noise_multiplier,
    without_slack,
)
from skdplda.rounds._sensitivity import GRID

__all__ = ["PRECISION_RATIO", "BudgetPlan", "NoisePlan", "growing"]

# Precision (inverse variance) of the last round over that of the first: early rounds only have to break the symmetry of
# the topics. frontier_ablation.csv, row "equal noise in all rounds": perplexity of PrivateCGSLDA is 1 to 4 % higher on
# KOS and on tweets, and the same on 20 Newsgroups.
PRECISION_RATIO = 10.0
# What rounding may add to shares that add up to one. Noise is larger by as much.
ROUNDING = 1e-12


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
            epsilon that asks for more noise than the samplers draw.
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
        exact = without_slack(epsilon, delta) if law.has_delta else (epsilon, delta)
        return cls(mechanism, sampling_rate, *law.calibrate(*exact, precisions))._that_can_be_drawn(epsilon)

    @classmethod
    def equal(
        cls,
        epsilon: float,
        delta: float,
        n_rounds: int,
        sampling_rate: float = 1.0,
        accounting: Literal["pld", "rdp", "zcdp", "advanced", "linear"] = "pld",
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
        accounting : str, default="pld"
            One of `privacy.ACCOUNTINGS`. The claimed ones leave no room for the samplers' error.
        visits : int, default=None
            The most rounds in which one unit takes part; None for all.

        Returns
        -------
        plan : NoisePlan
            All rounds have the same multiplier.

        Raises
        ------
        ValueError
            For a delta that is too small, or an epsilon that asks for more noise than the samplers draw.
        """
        exact = (epsilon, delta) if accounting in CLAIMED_ACCOUNTINGS else without_slack(epsilon, delta)
        steps = n_rounds if visits is None else min(visits, n_rounds)
        sigma = noise_multiplier(accounting, *exact, steps, sampling_rate)
        plan = cls("gaussian", sampling_rate, (sigma,) * n_rounds, gaussian_event(sigma, steps, sampling_rate))
        return plan._that_can_be_drawn(epsilon)

    def _that_can_be_drawn(self, epsilon):
        """Return the plan, or refuse it, before data are read and the budget is charged."""
        scale = max(self.multipliers) * GRID
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

    @property
    def released(self) -> tuple[str, ...]:
        """What the rounds release."""
        return ("noisy topic-word counts of every round",)

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
        return (
            f"{self.law.label} noise on the topic-word counts of {self.n_rounds} rounds, of scale"
            f" {self.multipliers[0]:.4g} in the first and {self.multipliers[-1]:.4g} in the last times the"
            f" L{self.law.norm} norm of a {unit}'s contribution, sampling rate {self.sampling_rate:g}"
        )

    def planned(self, tables: Any) -> int:
        """Return the number of releases that are planned as of now.

        Parameters
        ----------
        tables : Tables
            Of the fit.

        Returns
        -------
        n_releases : int
            Those that are done included.
        """
        return self.n_rounds

    def holds(self, round_: int, tables: Any) -> bool:
        """Whether a fit by this plan can have come so far.

        Parameters
        ----------
        round_ : int
            Number of releases that are done.
        tables : Tables
            Of the fit, after these.

        Returns
        -------
        holds : bool
            False for what no fit by this plan leaves behind.
        """
        return 0 <= round_ <= self.n_rounds

    def multiplier(self, round_: int, tables: Any) -> float:
        """Return the scale of a round's noise, over the norm of a contribution.

        Parameters
        ----------
        round_ : int
            Number of the round.
        tables : Tables
            Of the fit.

        Returns
        -------
        multiplier : float
            0 for no noise.
        """
        return self.multipliers[round_]

    def spent(self, round_: int, tables: Any) -> list[float]:
        """Return the scales of the noise of all releases that are done, as `multiplier` gave them.

        Parameters
        ----------
        round_ : int
            Number of releases that are done.
        tables : Tables
            Of the fit, after these.

        Returns
        -------
        multipliers : list of float
            One a release.
        """
        return list(self.multipliers[:round_])

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
        noise : ndarray of int64
            Of the given shape, on the fixed-point grid.
        """
        return self.law.sampler(multiplier * GRID, shape, random_state, n_threads)


class BudgetPlan(NoisePlan):
    """One budget of Gaussian noise, which is divided while the fit runs; the only multiplier is that of the whole.

    The releases decide how it is divided, so that the number of rounds is not known before. The shares of the precision
    add up to one at most, and all releases together are worth one Gaussian release: doc/theory/adaptive.rst.
    """

    theorem: ClassVar[str] = "a budget that releases divide"

    @classmethod
    def of(cls, epsilon: float, delta: float, least_share: float) -> "BudgetPlan":
        """Return the plan that spends epsilon and delta.

        Parameters
        ----------
        epsilon, delta : float
            Target, finite.
        least_share : float
            The smallest share of a release.

        Returns
        -------
        plan : BudgetPlan
            Its event costs at most the target, the samplers' numerical error included.

        Raises
        ------
        ValueError
            For a delta that is too small, or an epsilon that asks for more noise than the samplers draw.
        """
        plan = NoisePlan.calibrate("gaussian", epsilon, delta, 1)
        replace(plan, multipliers=(plan.multipliers[0] / math.sqrt(least_share),))._that_can_be_drawn(epsilon)
        return cls(plan.mechanism, plan.sampling_rate, plan.multipliers, plan.event)

    @property
    def released(self) -> tuple[str, ...]:
        """What the rounds release."""
        return (
            "noisy word counts, votes, topic-word counts of every round, of frequent words or of all, with public"
            " vectors sums of documents' directions and clusters, and gains with each prior where it is inferred",
        )

    def describe(self, unit: str) -> str:
        """Return the noise in words, for a privacy unit."""
        return (
            f"{self.law.label} noise on word counts, votes, gains where a prior is inferred, and topic-word counts,"
            f" which divide the precision of noise of scale {self.multipliers[0]:.4g} times the L{self.law.norm} norm"
            f" of a {unit}'s contribution"
        )

    def planned(self, tables: Any) -> int:
        """Return the number of releases that are planned as of now."""
        return tables.n_planned

    def holds(self, round_: int, tables: Any) -> bool:
        """Whether there are as many shares as releases, all positive and, with the next one, one at most."""
        shares = tables.spent if tables.next_share is None else [*tables.spent, tables.next_share]
        return len(tables.spent) == round_ and all(share > 0 for share in shares) and math.fsum(shares) <= 1 + ROUNDING

    def multiplier(self, round_: int, tables: Any) -> float:
        """Return the scale of a release's noise: the whole budget's over the root of its share.

        Raises
        ------
        RuntimeError
            If the shares exceed the budget, or are not those of so many releases. Nothing was released.
        """
        share = tables.next_share
        if share is None or not self.holds(round_, tables):
            raise RuntimeError(f"a share of {share!r} exceeds what is left after {tables.spent}; please report this.")
        return self._multiplier_of(share)

    def spent(self, round_: int, tables: Any) -> list[float]:
        """Return the scales of the noise of all releases that are done, by their shares."""
        return [self._multiplier_of(share) for share in tables.spent]

    def _multiplier_of(self, share):
        return self.multipliers[0] * math.sqrt((1 + 2 * ROUNDING) / share)
