"""How a budget is divided among releases: before any of them, or while a fit runs, and never more than the whole."""

import math
from typing import Any

import numpy as np

from skdplda._arithmetic import total
from skdplda._types import Sequence

# What rounding may add to shares that add up to one. Noise is larger by as much.
ROUNDING = 1e-12


def divided(multiplier: float, proportions: Sequence[float]) -> tuple[float, ...]:
    """Return the multipliers of releases that divide the precision of one, of this multiplier, in these proportions."""
    shares = np.asarray(proportions, dtype=np.float64)
    return tuple((multiplier / np.sqrt(shares / total(shares)) * (1 + ROUNDING)).tolist())


class Spending:
    """The budget of a fit, and what its releases take of it.

    Parameters
    ----------
    plan : NoisePlan, or a plan of another kind
        What there is to spend: its `multipliers`, each for one release, in this order. Where it `divides`, there is
        one, that of the whole budget, and each release takes a share of it.

    Attributes
    ----------
    multipliers : list of float
        Scales of the noise of the releases so far, over the norm of a contribution.
    """

    def __init__(self, plan: Any) -> None:
        self.plan, self.multipliers, self._shares = plan, [], []

    def take(self, share: float | None = None) -> float:
        """Return the scale of the next release's noise, over the norm of a contribution; 0 for no noise.

        Parameters
        ----------
        share : float or None, default=None
            Part of the precision of the whole budget, positive. None: the release that the plan has next.

        Returns
        -------
        multiplier : float
            The whole budget's over the root of the share, or that of the plan.

        Raises
        ------
        RuntimeError
            If the releases would exceed the budget. Nothing was released.
        """
        divides, n_taken = getattr(self.plan, "divides", False), len(self.multipliers)
        if divides != (share is not None) or not (divides or n_taken < len(self.plan.multipliers)):
            raise RuntimeError(f"release {n_taken} is not one of the plan; please report this.")
        if divides:
            share = float(share)  # not what a caller may change, nor of low precision
            if not (share > 0 and math.fsum([*self._shares, share]) <= 1 + ROUNDING):
                raise RuntimeError(
                    f"a share of {share!r} exceeds what is left after {self._shares}; please report this."
                )
            multiplier = self.plan.multipliers[0] * math.sqrt((1 + 2 * ROUNDING) / share)
            if not math.isfinite(multiplier):
                raise RuntimeError(f"a share of {share!r} is too small; please report this.")
            self._shares.append(share)
        else:
            multiplier = self.plan.multipliers[n_taken]
        self.multipliers.append(multiplier)
        return multiplier

    def skip(self, n_releases: int) -> None:
        """Take what the plan has for the first releases, which an earlier run has made.

        Parameters
        ----------
        n_releases : int
            How many.

        Raises
        ------
        RuntimeError
            If something was taken before, or the plan divides its budget.
        """
        divides = getattr(self.plan, "divides", False)
        if self.multipliers or n_releases < 0 or (divides and n_releases):
            raise RuntimeError(f"{n_releases} releases cannot be skipped here; please report this.")
        self.multipliers = list(self.plan.multipliers[:n_releases])
