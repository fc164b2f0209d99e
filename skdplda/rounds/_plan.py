"""The noise of every round and what it costs, known before any data are."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

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

__all__ = ["NoisePlan"]

# Precision (inverse variance) of the last round over that of the first: early rounds only have to break the symmetry of
# the topics. frontier_ablation.csv, row "equal noise in all rounds": perplexity of PrivateCGSLDA is 1 to 4 % higher on
# KOS and on tweets, and the same on 20 Newsgroups.
PRECISION_RATIO = 10.0


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
        precisions = PRECISION_RATIO ** (np.arange(n_rounds) / max(n_rounds - 1, 1))
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
                f"epsilon={epsilon!r} is too small for {self.n_rounds} rounds: it needs noise of scale {scale:.3g},"
                " above the 2**50 that can be drawn. Use a larger epsilon, or fewer rounds."
            )
        return self

    @property
    def n_rounds(self) -> int:
        """Number of releases."""
        return len(self.multipliers)

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

    def draw(self, round_: int, shape: tuple[int, ...], random_state: Any, n_threads: int) -> np.ndarray:
        """Return a round's noise.

        Parameters
        ----------
        round_ : int
            Number of the round.
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
        return self.law.sampler(self.multipliers[round_] * GRID, shape, random_state, n_threads)
