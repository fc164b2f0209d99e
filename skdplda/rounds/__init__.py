"""The private loop: E-steps, noisy sums, M-steps and the guarantee that they keep."""

from skdplda.rounds._loop import EStep, RoundReport, Tables
from skdplda.rounds._plan import NoisePlan

__all__ = ["EStep", "NoisePlan", "RoundReport", "Tables"]
