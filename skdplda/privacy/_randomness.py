"""Where a fit's random bits come from: the operating system, or one integer for everything."""

import os
import warnings

import numpy as np
from sklearn.utils import check_random_state

from skdplda._types import Estimator, Seed
from skdplda._validation import is_integer
from skdplda.exceptions import PrivacyLeakWarning

__all__ = ["Randomness"]

NOISE, SAMPLE, DRAWS = 1, 2, 3  # purposes of a derived seed


class Randomness:
    """The random bits of one fit.

    Hidden draws (topic assignments, the words that a long document leaves out) and the first table come from streams
    under one 64-bit `key`; the guarantee lists what it assumes of them. Noise and the Poisson sample of privacy units
    are what the proofs lean on: they come from the operating system's entropy unless `random_state` asks for a
    reproducible fit.

    Parameters
    ----------
    random_state : None, int or RandomState
        As the user passed it.
    """

    def __init__(self, random_state: Seed) -> None:
        self.seed = None
        if random_state is not None:
            fresh = check_random_state(random_state)
            self.seed = int(random_state) if is_integer(random_state) else int(fresh.randint(2**31 - 1))
        self.key = int.from_bytes(os.urandom(8), "little") if self.seed is None else self._derive(0, 0)

    def _derive(self, purpose, number):
        return int(np.random.SeedSequence([self.seed, purpose, number]).generate_state(1, np.uint64)[0])

    def noise(self, round_: int) -> int | None:
        """Return the `random_state` of a round's noise.

        Parameters
        ----------
        round_ : int
            Number of the round.

        Returns
        -------
        random_state : int or None
            None for fresh entropy.
        """
        return None if self.seed is None else self._derive(NOISE, round_)

    def draw_key(self) -> np.ndarray:
        """Return a new key for draws that are released.

        Returns
        -------
        key : ndarray of shape (8,), uint32
            256 bits.
        """
        if self.seed is None:
            return np.frombuffer(os.urandom(32), dtype=np.uint32).copy()
        return np.random.SeedSequence([self.seed, DRAWS, 0]).generate_state(8, np.uint32)

    def sample(self, round_: int, n_units: int, rate: float) -> np.ndarray:
        """Return the Poisson sample of a round.

        Parameters
        ----------
        round_ : int
            Number of the round.
        n_units : int
            Number of privacy units.
        rate : float
            Probability of each to be taken.

        Returns
        -------
        active : ndarray of shape (n_units,), uint8
            1 for those taken.
        """
        if self.seed is None:
            bits = np.frombuffer(os.urandom(8 * n_units), dtype=np.uint64)
        else:
            rng = np.random.default_rng(self._derive(SAMPLE, round_))
            bits = rng.integers(2**64, size=n_units, dtype=np.uint64)
        # floor: a unit is never taken with more than the accounted probability
        return (bits < np.uint64(int(rate * 2.0**53) << 11)).astype(np.uint8)

    def warn_if_seeded(self, estimator: Estimator, stacklevel: int = 5) -> None:
        """Warn that an integer seed makes the guarantee conditional on its secrecy.

        Parameters
        ----------
        estimator : estimator
            Whose `random_state` it is.
        stacklevel : int, default=5
            As in `warnings.warn`: the warning points at the caller of `fit`.
        """
        if self.seed is not None:
            warnings.warn(
                f"{type(estimator).__name__} was given random_state={estimator.random_state!r}: its noise is a"
                " function of that number, so the guarantee holds only while the number is secret, random and"
                " never used again. Use random_state=None for anything you release.",
                PrivacyLeakWarning,
                stacklevel=stacklevel,
            )
