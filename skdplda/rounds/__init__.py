"""The private loop: E-steps, noisy sums, M-steps and the guarantee that they keep."""

from skdplda.rounds._loop import EStep, RoundReport, Tables
from skdplda.rounds._plan import NoisePlan
from skdplda.rounds._prior import PublicPrior

__all__ = ["EStep", "NoisePlan", "PublicPrior", "RoundReport", "Tables"]
