"""The law of a report: each presence bit is randomized by itself. The theorems are in doc/theory/local.rst."""

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from typing import Any, Literal

import numpy as np

from skdplda._arithmetic import bracket, expm1, log, log1p
from skdplda._checks import MOST_THREADS, check_structure, is_integer
from skdplda._kernels import _reports
from skdplda._kernels._noise import system_key
from skdplda.privacy import PrivacyGuarantee, Randomness, check_epsilon, pure_event

MECHANISMS = ("symmetric", "asymmetric")
UNITS = ("document", "user", "bit")
SMALLEST_EPSILON = 1e-6  # below, the bits are fair coins
LARGEST_EPSILON = 30.0  # above, 2**64 is too coarse a grid for the flips
LONGEST_GAP = 4096  # entries of the table of gaps, 32 KB; longer gaps are drawn in parts
LEFT_BITS = 6  # gaps are tabulated until 2**-6 of the mass is left
GUIDE_BITS = 12  # leading bits that index the table; time only
PRECISION = 400  # bits of the exact survival probabilities, of which 64 are used
OUTWARDS = 1 + 2.0**-40  # more than the rounding error of the formulas below


def bit_epsilon_of_coin(f: float) -> float:
    """Privacy loss of a bit that is replaced by a fair coin with probability f.

    Parameters
    ----------
    f : float
        In [0, 1); called f in [1]_ and [2]_.

    Returns
    -------
    bit_epsilon : float
        ln((1 - f/2) / (f/2)); inf for 0.

    Raises
    ------
    ValueError
        If f is outside [0, 1). At 1 a report says nothing.

    References
    ----------
    .. [1] Zhao, Ren, Yang and Yang (2019). On Privacy Protection of Latent Dirichlet Allocation Model Training.
       IJCAI. Section 3.2.
    .. [2] Zhao, Ren, Yang, Han, Zhao and Yang (2021). Latent Dirichlet Allocation Model Training With Differential
       Privacy. IEEE TIFS 16. Theorem 4.

    Examples
    --------
    >>> from skdplda.local import bit_epsilon_of_coin
    >>> [round(bit_epsilon_of_coin(f), 4) for f in (0.5, 0.001)]
    [1.0986, 7.6004]
    """
    if isinstance(f, (bool, np.bool_)) or not 0 <= f < 1:
        raise ValueError(f"f must be in [0, 1): 0 for no noise, below 1 or a report says nothing; got {f!r}.")
    return log((2 - f) / f) if f else math.inf


@dataclass(frozen=True)
class BitChannel:
    """The law of a report, and its guarantee.

    An absent word's bit is 1 with probability q = `flips` / 2**64. A present word's bit is 1 with probability 1 - q
    ("symmetric", randomized response) or 1/2 ("asymmetric", the optimized unary encoding of [1]_, whose own parameter
    is ln(2 e^bit_epsilon - 1): the loss of one bit is what is stated here). `flips` is the least that keeps
    `bit_epsilon`, the sampler's numerical error included.

    Parameters
    ----------
    bit_epsilon : float
        Privacy loss of one bit of one report, from 1e-6 to 30, or inf for reports without noise.
    mechanism : {"symmetric", "asymmetric"}
        Which law.
    n_words : int
        Size of the public vocabulary, V.
    max_words_per_document : int or None, default=None
        A longer document reports a random part of this many of its words, called L. None: V.
    reports_per_user : int, default=1
        Reports that one user sends at most, ever.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    .. [1] T. Wang, J. Blocki, N. Li, S. Jha (2017). Locally differentially private protocols for frequency
       estimation. USENIX Security. Section 4.3.

    Examples
    --------
    >>> from skdplda.local import BitChannel
    >>> channel = BitChannel(1.0, "symmetric", n_words=1000, max_words_per_document=5)
    >>> channel.guarantee()
    PrivacyGuarantee(epsilon=10, delta=0, document, replace, local, proven)
    >>> BitChannel(1.0, "symmetric", n_words=1000).guarantee("bit")
    PrivacyGuarantee(epsilon=1, delta=0, bit, replace, local, proven)
    """

    bit_epsilon: float
    mechanism: str
    n_words: int
    max_words_per_document: int | None = None
    reports_per_user: int = 1

    def __post_init__(self):
        epsilon = check_epsilon(self.bit_epsilon, "bit_epsilon")
        if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON and epsilon < math.inf:
            raise ValueError(
                f"bit_epsilon must be from {SMALLEST_EPSILON:g} to {LARGEST_EPSILON:g}, or inf for no noise; got"
                f" {epsilon:g}."
            )
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"mechanism must be one of {MECHANISMS}; got {self.mechanism!r}.")
        for name, most in (
            ("n_words", 2**31 - 1),
            ("max_words_per_document", 2**31 - 1),
            ("reports_per_user", 2**16 - 1),
        ):
            value = getattr(self, name)
            if name == "max_words_per_document" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= value <= most:
                raise ValueError(f"{name} must be an integer from 1 to {most}; got {value!r}.")
            object.__setattr__(self, name, int(value))
        object.__setattr__(self, "bit_epsilon", epsilon)

    @classmethod
    def calibrate(
        cls,
        epsilon: float,
        unit: Literal["document", "user", "bit"],
        mechanism: str,
        n_words: int,
        max_words_per_document: int | None = None,
        reports_per_user: int = 1,
    ) -> "BitChannel":
        """Return the law with the largest `bit_epsilon` whose guarantee for a unit is within epsilon.

        Parameters
        ----------
        epsilon : float
            Positive, or inf for reports without noise.
        unit : {"document", "user", "bit"}
            What is protected, as in `guarantee`.
        mechanism : {"symmetric", "asymmetric"}
            Which law.
        n_words : int
            Size of the public vocabulary.
        max_words_per_document : int or None, default=None
            As of the class.
        reports_per_user : int, default=1
            As of the class.

        Returns
        -------
        channel : BitChannel
            Its `bit_epsilon` is at most 30, so that a larger epsilon is not used up.

        Raises
        ------
        ValueError
            If a parameter is out of range, or even the smallest `bit_epsilon` is above epsilon.

        Examples
        --------
        >>> from skdplda.local import BitChannel
        >>> channel = BitChannel.calibrate(20.0, "document", "symmetric", n_words=1000, max_words_per_document=5)
        >>> channel.bit_epsilon, channel.guarantee().epsilon
        (2.0, 20.0)
        """
        epsilon, rest = check_epsilon(epsilon), (mechanism, n_words, max_words_per_document, reports_per_user)
        if math.isinf(epsilon):
            return cls(math.inf, *rest)

        def within(bit_epsilon):
            channel = cls(bit_epsilon, *rest)
            # Not asked beyond that: for very many words there is no law with so little noise.
            return bit_epsilon <= epsilon and channel.guarantee(unit).epsilon <= epsilon

        low, high = SMALLEST_EPSILON, LARGEST_EPSILON
        if not within(low):
            raise ValueError(
                f"epsilon={epsilon:g} for a {unit} is too small: with {n_words} words, bit_epsilon would be below"
                f" {SMALLEST_EPSILON:g}, and reports fair coins. Use a larger one, or a smaller max_words_per_document."
            )
        return cls(high if within(high) else bracket(within, low, high, most=high)[0], *rest)

    @property
    def flips(self) -> int:
        """2**64 times the probability that an absent word's bit is 1."""
        return _flips(self.bit_epsilon, self.mechanism, self.n_words)

    @property
    def one_if_absent(self) -> float:
        """Probability q that an absent word's bit is 1."""
        return self.flips / 2**64

    @property
    def one_if_present(self) -> float:
        """Probability p that a present word's bit is 1."""
        if not self.flips:
            return 1.0
        return 0.5 if self.mechanism == "asymmetric" else 1 - self.one_if_absent

    def guarantee(self, unit: Literal["document", "user", "bit"] = "document") -> PrivacyGuarantee:
        """State the guarantee of a user who randomizes on the own device.

        Parameters
        ----------
        unit : {"document", "user", "bit"}, default="document"
            "document": the whole content of a document, with at most L distinct words reported, replaced by any other.
            "user": all documents of a user. "bit": whether one word is in the user's documents. Each counts all
            `reports_per_user` reports. With `max_words_per_document` below V the last is more than `bit_epsilon`: a
            word that comes may push another one out of the report.

        Returns
        -------
        guarantee : PrivacyGuarantee
            Of the local model, adjacency "replace", delta 0. A report has epsilon min(2 L, V) bit_epsilon for
            "symmetric", L (bit_epsilon + ln(2 - 2 q)) for "asymmetric" and 2 L <= V.

        Raises
        ------
        ValueError
            If the unit is unknown.
        """
        if unit not in UNITS:
            raise ValueError(f"unit must be one of {UNITS}; got {unit!r}.")
        one = self._word_epsilon() if unit == "bit" else self._document_epsilon()
        private = math.isfinite(one)
        noise = (
            f"each presence bit kept with probability 1 - f, else a fair coin, f = {2 * self.one_if_absent:.4g}"
            if self.mechanism == "symmetric"
            else f"a present word's bit is a fair coin, an absent one's is 1 with probability {self.one_if_absent:.4g}"
        )
        if self.max_words_per_document is not None:
            noise += f"; at most {self.max_words_per_document} words of a document"
        return PrivacyGuarantee(
            epsilon=_up(Fraction(one) * self.reports_per_user) if private else math.inf,
            unit=unit,
            adjacency="replace",
            trust="local",
            status="proven",
            mechanism=noise if private else "none",
            released=("the reports, and everything computed from them",),
            not_covered=(
                "the vocabulary, which is public",
                "who reports, when, and how many reports there are",
                "a public prior corpus, and whatever is computed from raw documents",
                *(("the document as a whole: see the guarantee of unit 'document'",) if unit == "bit" else ()),
            ),
            assumptions=(
                f"a user sends at most {self.reports_per_user} report{'s' if self.reports_per_user > 1 else ''} in all",
                "the randomizer runs on the user's own device, and raw text stays there",
                Randomness.assumption,
            )
            if private
            else (),
            reference="skdplda theory guide, local reports",
            event=pure_event(one, self.reports_per_user) if private else None,
        )

    def _document_epsilon(self):
        """Loss of a report when a document is replaced: words that go, and as many as fit that come."""
        if math.isinf(self.bit_epsilon):
            return math.inf
        go = min(self.max_words_per_document or self.n_words, self.n_words)
        come = min(go, self.n_words - go)
        if self.mechanism == "symmetric":
            return _up((go + come) * Fraction(self.bit_epsilon))
        return _up(go * Fraction(self.bit_epsilon) + come * Fraction(self._gain_epsilon()))

    def _gain_epsilon(self):
        """Loss of a bit that is 0 although its word has come, at most that of one that is 1 although it went."""
        if self.mechanism == "symmetric":
            return self.bit_epsilon
        return min((log(2.0) + log1p(-self.one_if_absent)) * OUTWARDS, self.bit_epsilon)

    def _word_epsilon(self):
        """Loss of a report when one word comes or goes; with a bound on words it may take another's place."""
        most = self.max_words_per_document or self.n_words
        if most >= self.n_words or math.isinf(self.bit_epsilon):
            return self.bit_epsilon
        both = self.bit_epsilon + self._gain_epsilon()
        # Remainders that are not quite uniform, and what of the sampler's slack the mixture takes out of `both`.
        slack = self.n_words * (self.n_words + 128) * 2.0**-62
        return max(self.bit_epsilon, (both + log1p(expm1(-both) / (most + 1))) * OUTWARDS + slack)


def _up(number):
    """Return the least float that is not below an exact fraction."""
    value = float(number)
    return value if Fraction(value) >= number else math.nextafter(value, math.inf)


@lru_cache(maxsize=64)
def _flips(bit_epsilon, mechanism, n_words):
    """Return the least k whose bits of q = k / 2**64 keep `bit_epsilon`, with 128 V / (k - 64) for the sampler."""
    if math.isinf(bit_epsilon):
        return 0
    import mpmath

    with mpmath.workprec(PRECISION):
        target, whole = mpmath.mpf(bit_epsilon), mpmath.mpf(2**64)
        symmetric = mechanism == "symmetric"
        inverse = lambda loss: 1 / (1 + mpmath.exp(loss)) if symmetric else mpmath.exp(-loss) / 2  # noqa: E731
        k = int(mpmath.ceil(whole * inverse(target)))
        while True:
            slack = mpmath.mpf(2 * n_words * 2**LEFT_BITS) / (k - 2**LEFT_BITS)
            least = int(mpmath.ceil(whole * inverse(target - slack))) + 1
            if least <= k:
                break
            k = least
        if k > 2**63:
            raise ValueError(
                f"bit_epsilon={bit_epsilon!r} is too large for {n_words} words; use a smaller one, or inf."
            )
    return k


@lru_cache(maxsize=64)
def _gap_tables(flips):
    """Return (survival, guide) of `_kernels/_reports.pyx`: gaps up to where 2**-LEFT_BITS of the mass is left."""
    stay = 2**64 - flips
    survival, left = [], stay << (PRECISION - 64)
    while len(survival) < LONGEST_GAP and left >> (PRECISION - LEFT_BITS):
        survival.append(min(left >> (PRECISION - 64), 2**64 - 1))
        left = left * stay >> 64
    survival = np.array(survival, dtype=np.uint64)
    # The greatest word of each slot of the guide; as uint64 wraps, the last is 2**64 - 1.
    ends = (np.arange(1, 2**GUIDE_BITS + 1, dtype=np.uint64) << np.uint64(64 - GUIDE_BITS)) - np.uint64(1)
    guide = len(survival) - np.searchsorted(survival[::-1], ends, side="right")  # entries above the word
    return survival, guide.astype(np.uint16)


def _key_of(random_state):
    """Return a fresh 256-bit key as eight words: from the system, or of a seed."""
    if random_state is None:
        return system_key()
    if not (isinstance(random_state, bytes) or is_integer(random_state)):
        raise TypeError(f"random_state must be None, bytes or an integer; got {random_state!r}.")
    seed = random_state if isinstance(random_state, bytes) else b"%d" % int(random_state)
    material = hashlib.sha256(b"skdplda reports " + seed).digest()
    return np.frombuffer(material, dtype="<u4").astype(np.uint32)


def randomize_bits(
    X: Any, channel: BitChannel, random_state: int | bytes | None = None, n_threads: int = 1
) -> np.ndarray:
    """Randomize the presence bits of documents, packed eight a byte.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_words)
        Positive where a word is present; int32 indices, each once a row.
    channel : BitChannel
        The law.
    random_state : int, bytes or None, default=None
        None takes a fresh key from the operating system. Anything else makes the bits a function of it, private only
        while it is secret, random and never used again.
    n_threads : int, default=1
        The result does not depend on it.

    Returns
    -------
    bits : ndarray of shape (n_documents, ceil(n_words / 8)), uint8
        Word w is bit w % 8 of byte w // 8; the rest are zeros.

    Raises
    ------
    ValueError
        If X has another number of words than the channel, or its arrays do not describe a matrix.
    """
    check_structure(X)
    if X.shape[1] != channel.n_words:
        raise ValueError(f"X must have the channel's {channel.n_words} words; got {X.shape[1]}.")
    if (X.data <= 0).any():
        X = X.copy()
        X.data = (X.data > 0).astype(X.data.dtype)
        X.eliminate_zeros()
    key = _key_of(random_state)
    bits = _reports.randomize(
        X.indptr.astype(np.int64),
        np.ascontiguousarray(X.indices, dtype=np.int32),
        channel.n_words,
        key,
        *(_gap_tables(channel.flips) if channel.flips else (np.empty(0, np.uint64), np.empty(0, np.uint16))),
        channel.mechanism == "asymmetric",
        channel.max_words_per_document or 0,
        min(n_threads, MOST_THREADS),
    )
    key[:] = 0
    return bits
