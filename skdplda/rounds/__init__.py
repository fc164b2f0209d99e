"""The private loop: E-steps, noisy sums, M-steps and the guarantee that they keep."""

from skdplda.rounds._loop import RoundReport

__all__ = ["RoundReport"]
