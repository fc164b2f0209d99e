"""Where a fit's random bits come from: one secret key of 256 bits, from which a key for each purpose is derived."""

import hashlib
import hmac
import math
import os
from dataclasses import replace
from typing import Any

import numpy as np

from skdplda._checks import is_integer, is_real
from skdplda._types import Estimator, Seed
from skdplda._warnings import warn
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.privacy._guarantee import PrivacyGuarantee, doubted

LEAST_BYTES = 16  # 128 bits: nobody tries that many seeds
SECRET_SEED = "the seed (random_state) is secret, random and never reused"


def is_guessable_seed(random_state: Seed) -> bool:
    """Whether a seed may be found by trying, so that no proof can assume that it is secret.

    It cannot if it is None, 16 bytes or more, or an integer of 2**128 or more. A RandomState counts as guessable: it
    was most likely made from a small integer. Fewer than 16 bytes raise ValueError.
    """
    if isinstance(random_state, bytes):
        if len(random_state) < LEAST_BYTES:
            raise ValueError(f"random_state must have at least {LEAST_BYTES} bytes; got {len(random_state)}.")
        return False
    return random_state is not None and not (is_integer(random_state) and int(random_state) >= 2 ** (8 * LEAST_BYTES))


def seeded_guarantee(guarantee: PrivacyGuarantee, *random_states: Seed) -> PrivacyGuarantee:
    """Return what is left of a guarantee when noise follows from these seeds, as the user passed them.

    The secrecy of the seeds becomes an assumption, and the guarantee is only claimed if one can be guessed. It stays
    the same if all are None, or if there is no noise.
    """
    guessable = [is_guessable_seed(random_state) for random_state in random_states if random_state is not None]
    if not guessable or not 0 < guarantee.epsilon < np.inf:
        return guarantee
    guarantee = replace(guarantee, assumptions=(*guarantee.assumptions, SECRET_SEED))
    return doubted(guarantee, Randomness.guessable) if any(guessable) else guarantee


def _canonical(value):
    """Return bytes that identify a number, a string or bytes; equal numbers of all types have the same."""
    if isinstance(value, str):
        return b"text " + value.encode()
    if isinstance(value, bytes):
        return b"bytes " + value
    if is_integer(value):
        return b"number %d/1" % int(value)
    if is_real(value) and math.isfinite(value):
        return b"number %d/%d" % value.as_integer_ratio()
    raise TypeError(f"noise may depend on finite numbers, strings, bytes and arrays; got {value!r}.")


class Randomness:
    """The random bits of one fit.

    All follow from one key of 256 bits, from the operating system unless `random_state` makes the fit reproducible. The
    key of each purpose is derived from it by HMAC-SHA-256: whoever sees the public first table, or a stream of hidden
    draws, learns nothing of the noise. A checkpoint keeps the key: copies that go on all release the same. A
    RandomState gives 32 bytes, and so moves on; two users of one seed, by name, draw different bits. Fewer than 16
    bytes raise ValueError.
    """

    assumption = "the system's entropy is unpredictable, and ChaCha20, HMAC-SHA-256 and SHAKE-256 are secure generators"
    guessable = (
        "the noise follows from a seed that can be guessed (random_state is an integer below 2**128, or a RandomState),"
        " and the release tells which guess is right. With random_state=None, or a secret of 16 random bytes or more,"
        " the guarantee is the same and holds."
    )

    def __init__(self, random_state: Seed, user: str = "") -> None:
        self.seeded = random_state is not None
        self.step: int | None = None  # of a stream, each of whose batches numbers its documents from 0
        if random_state is None:
            self.root = os.urandom(32)
            return
        is_guessable_seed(random_state)  # refuses too few bytes
        if isinstance(random_state, bytes):
            material = b"bytes " + random_state
        elif is_integer(random_state):
            material = b"integer %d" % int(random_state)
        else:
            material = b"state " + random_state.bytes(32)
        self.root = hashlib.sha256(b"skdplda seed " + user.encode() + b"\0" + material).digest()

    def _derive(self, purpose: str, *given: Any) -> bytes:
        message = hashlib.sha256(purpose.encode())
        for value in given:
            if isinstance(value, np.ndarray):
                message.update(f"\0{value.dtype.str}{value.shape}".encode())
                message.update(np.ascontiguousarray(value).data)
            else:
                message.update(b"\0" + _canonical(value))
        return hmac.digest(self.root, message.digest(), "sha256")

    @property
    def key(self) -> int:
        """Key of the hidden draws (topics, words that a long document leaves out), 64 bits; of a stream, one a step."""
        step = () if self.step is None else (self.step,)
        return int.from_bytes(self._derive("hidden draws", *step)[:8], "little")

    @property
    def table_key(self) -> int:
        """Key of the first table, which may be public, 256 bits."""
        return int.from_bytes(self._derive("first table"), "little")

    def noise(self, round_: int, *given: Any) -> bytes:
        """Return the `random_state` of a round's noise, 256 bits.

        It depends on what is given, its scale, and the exact statistic that it hides. Noise that covers one statistic
        must never cover another, since the difference of the two releases would have none. So a round that is done
        again is the same release if its statistic is the same, bit for bit, and else a release with noise of its own.
        Numbers, strings, bytes and arrays may be given: of numbers the value decides, not the type.
        """
        return self._derive("noise", int(round_), *given)

    def digest(self, round_: int, *given: Any) -> str:
        """Return what identifies a sum of a round, 128 bits in hexadecimal: nothing to those without the key."""
        return self._derive("digest of a sum", int(round_), *given).hex()[:32]

    def generator_seed(self, round_: int = 0) -> int:
        """Return a seed for a generator of numpy, which is not secure: for published forms only."""
        return int.from_bytes(self._derive("published form", round_), "little")

    def draw_key(self) -> np.ndarray:
        """Return the key of draws that are released: 256 bits as uint32."""
        return np.frombuffer(self._derive("released draws"), dtype="<u4").astype(np.uint32)

    @property
    def samples(self) -> str | None:
        """What identifies the samples of all rounds, 128 bits in hexadecimal; None if nobody can have them again."""
        return self._derive("name of the samples").hex()[:32] if self.seeded else None

    def sample(self, round_: int, n_units: int, rate: float) -> np.ndarray:
        """Return the Poisson sample of a round, uint8: 1 for the units taken, each with probability `rate`."""
        stream = hashlib.shake_256(self._derive("sample", round_)).digest(8 * n_units)
        bits = np.frombuffer(stream, dtype="<u8")
        # floor: a unit is never taken with more than the accounted probability
        return (bits < np.uint64(int(rate * 2.0**53) << 11)).astype(np.uint8)

    def warn_if_seeded(self, estimator: Estimator) -> None:
        """Warn that the seed of an estimator makes its guarantee conditional on the secrecy of the seed."""
        if self.seeded:
            seed = estimator.random_state
            said = f"random_state={seed!r}" if is_integer(seed) and is_guessable_seed(seed) else "a random_state"
            warn(
                f"{type(estimator).__name__} was given {said}: its noise is a"
                " function of that seed, so the guarantee holds only while the seed is secret, random and"
                " never used again. Use random_state=None for anything you release.",
                PrivacyLeakWarning,
            )
