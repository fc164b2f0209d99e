"""Exact integer noise: the discrete Laplace and the rounded Gaussian, a whole matrix at a time.

The draws are integers by construction, so no release carries the low-order bits of a floating-point noise.
Their laws are tables of 173 to 191 bits and, beyond them, exact tails without an end; the words come from ChaCha20.
``doc/theory/noise.rst`` has the proofs.
"""

import hashlib
import math
from functools import lru_cache
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from skdplda._arithmetic import exp
from skdplda._checks import MOST_THREADS, is_integer
from skdplda._kernels import _noise

LAW_ERROR = 2.0**-100  # of the probability of any integer, relative; theorem 4 of doc/theory/noise.rst
SLACK = 2.0**-96  # above the total variation of one draw from its law, if ChaCha20 under a secret key is uniform
LARGEST_SCALE = 2.0**50  # that the samplers take
# Norm bound of what a privacy unit adds to a sum, in fixed point: sums are integers, and 1 / NORM_BOUND is the
# resolution. So large that rounding is far below the noise; so small that the sum of 2**40 units fits into 64 bits.
NORM_BOUND = 2**20

PRECISION = 384  # bits of the fixed-point numbers that tables are made from
SERIES_BITS = 256  # of the coefficients of the density inside a bucket
CUT = 2.0**-64  # probability, at least, of what is drawn from the tail and not from the table
NEGLIGIBLE = 14  # standard deviations beyond which a Gaussian has less than 2**-140
BUCKETS_PER_SCALE = 32  # at least; less than twice as many. More take memory, fewer draw wedges more often
GAUSSIAN_REACH, LAPLACE_REACH = 12.5, 80.0  # scales covered by a table, beyond the cut by far
GUIDE_BITS = 13  # leading bits that index a table; time only
FOLDED_BITS = 18  # offsets of at most this many bits come from the word that chose the bucket
LAPLACE_DOMAIN, GAUSSIAN_DOMAIN, TAIL_DOMAIN = 1, 2, 4  # a tail has both numbers of its own and its law's


class Table(NamedTuple):
    """A law as the kernel reads it; the fields are described in ``_kernels/_noise.pyx``."""

    high: np.ndarray
    low: np.ndarray
    least: np.ndarray
    guide: np.ndarray
    guide_shift: int
    shift: int
    folded: int
    wedge: np.ndarray
    cut: int


def discrete_laplace(scale: float, shape: int | tuple[int, ...], random_state: Any = None, n_threads: int = 1) -> Any:
    """Draw from the discrete Laplace law, P(x) proportional to exp(-abs(x) / scale) on the integers, int64.

    Added to an integer statistic of L1 sensitivity s, it is (s / scale)-differentially private (Ghosh, Roughgarden and
    Sundararajan 2009), up to the samplers' error: the probability of every integer, however far out, is within a factor
    of 1 +- 2**-100 of its exact value. The scale, in [0, 2**50], is used exactly as given; zero gives zeros.

    `random_state` None takes a fresh 256-bit key from the operating system, and a generator supplies one. An integer,
    or bytes, make the draws reproducible, and private only while secret, random and never used again. The number of
    threads does not change the result.
    """
    scale = _check_scale(scale, "scale")
    return _draw(_laplace_table, LAPLACE_DOMAIN, scale, shape, random_state, n_threads)


def rounded_gaussian(sigma: float, shape: int | tuple[int, ...], random_state: Any = None, n_threads: int = 1) -> Any:
    """Draw from the Gaussian law of standard deviation sigma, rounded to the nearest integer.

    Its law is P(x) = Phi((x + 1/2) / sigma) - Phi((x - 1/2) / sigma). On integer statistics, adding it is rounding the
    output of the Gaussian mechanism, whose privacy analysis holds unchanged, up to the samplers' error. All else is as
    of `discrete_laplace`.
    """
    sigma = _check_scale(sigma, "sigma")
    return _draw(_gaussian_table, GAUSSIAN_DOMAIN, sigma, shape, random_state, n_threads)


def discrete_gaussian(sigma: float, shape: int | tuple[int, ...], random_state: Any = None, n_threads: int = 1) -> Any:
    """Draw from the discrete Gaussian law, P(x) proportional to exp(-x**2 / (2 * sigma**2)) on the integers.

    Added to an integer statistic of L2 sensitivity s, it is (s**2 / (2 * sigma**2))-zero-concentrated differentially
    private (Canonne, Kamath and Steinke 2020, Theorem 4, Algorithm 3). No real-valued noise and no rounding is behind
    it, as is with `rounded_gaussian`; the price is an accounting that needs a little more noise. All else is as of
    `discrete_laplace`.
    """
    sigma, n_threads = _check_scale(sigma, "sigma"), _check_threads(n_threads)
    key, out = _key_of(random_state).tobytes(), np.zeros(shape, dtype=np.int64)
    cells, scale = out.reshape(-1), min(math.floor(sigma) + 1, LARGEST_SCALE)  # any scale of proposals is right
    left, attempt = np.arange(cells.size if sigma else 0), 0
    while left.size:  # rejection from discrete Laplace proposals
        for_proposals, for_coins = (hashlib.sha256(key + b" %d %d" % (attempt, use)).digest() for use in (0, 1))
        proposals = cells[left] = discrete_laplace(scale, left.size, for_proposals, n_threads)
        bits = hashlib.shake_256(for_coins).digest(8 * left.size)
        uniform = np.frombuffer(bits, dtype="<u8") * 2.0**-64
        chance = exp(-0.5 * ((np.abs(proposals) - sigma * (sigma / scale)) / sigma) ** 2)
        kept = uniform < chance
        for i in np.flatnonzero(np.abs(uniform - chance) < 2.0**-36):  # where rounding could decide
            kept[i] = _is_below(bits[8 * i : 8 * i + 8], for_coins + b" %d" % i, int(proposals[i]), sigma, scale)
        left, attempt = left[~kept], attempt + 1
    return out


def _is_below(bits, source, proposal, sigma, scale):
    """Whether a uniform number that begins with some bits is below the chance of a proposal: exactly.

    As many bits follow as the decision needs.
    """
    import mpmath

    while True:
        n_bits = 8 * len(bits)
        with mpmath.workprec(2 * n_bits + 256):
            exact = mpmath.mpf(sigma)
            chance = mpmath.exp(-((abs(proposal) - exact**2 / scale) ** 2) / (2 * exact**2))
            low = mpmath.mpf(int.from_bytes(bits[::-1], "big")) / 2**n_bits
            if low + mpmath.mpf(2) ** -n_bits <= chance:
                return True
            if low >= chance:
                return False
        more = hashlib.shake_256(source).digest(len(bits))
        bits, source = more + bits, source + b"+"  # less significant bits come first


def sampler_assumption(in_delta: bool) -> str:
    """Return Theorems 4 and 5 of doc/theory/noise.rst as an assumption of a guarantee.

    `in_delta` says whether the guarantee's delta has room for the samplers' error. Else epsilon is said to grow by it.
    """
    price = "included in delta" if in_delta else "which adds less than 2**-40 to epsilon"
    return f"the probability of every noise value, at any size, is within a factor of 1 +- 2**-100 of its law ({price})"


def delta_slack(n_draws: int, epsilon: float) -> float:
    """Return what the samplers' numerical error adds to delta, rounded up, in [0, 1].

    A mechanism that is (epsilon, delta)-differentially private with exact noise, and uses at most `n_draws` draws
    (cells times rounds), is (epsilon, delta + delta_slack)-differentially private with these samplers: the slack is (1
    + exp(epsilon)) * n_draws * SLACK.
    """
    if not n_draws >= 0:
        raise ValueError(f"n_draws must be a non-negative integer, got {n_draws!r}")
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be a non-negative number, got {epsilon!r}")
    if n_draws == 0:
        return 0.0
    if epsilon > 80 or n_draws > 2**96:  # exp(80) > 2**96
        return 1.0
    return min(1.0, (1.0 + exp(float(epsilon))) * n_draws * SLACK * (1.0 + 1e-12))


def _check_scale(value, name):
    """Return the scale as a float, or raise an error that names it."""
    if not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number in [0, 2**50], got {value!r}")
    if not 0 <= value <= LARGEST_SCALE:
        raise ValueError(f"{name} must be a finite number in [0, 2**50], got {value!r}")
    return float(value)


def _check_threads(n_threads):
    """Return the number of threads as an int, or raise an error that names it."""
    if not isinstance(n_threads, Integral) or n_threads < 1:
        raise ValueError(f"n_threads must be an integer of at least 1, got {n_threads!r}")
    return min(int(n_threads), MOST_THREADS)


def _key_of(random_state):
    """Return a fresh array of eight 32-bit words: the key of the streams."""
    if random_state is None:
        return _noise.system_key()
    if isinstance(random_state, bytes):
        if len(random_state) < 16:
            raise ValueError(f"random_state must have at least 16 bytes, got {len(random_state)}")
        material = hashlib.sha256(b"skdplda noise key " + random_state).digest()
    elif is_integer(random_state):
        if random_state < 0:
            raise ValueError(f"random_state must be a non-negative integer, got {random_state!r}")
        material = hashlib.sha256(b"skdplda noise %d" % int(random_state)).digest()
    elif isinstance(random_state, (np.random.Generator, np.random.RandomState)):
        material = random_state.bytes(32)
    else:
        raise TypeError(f"random_state must be None, bytes, an integer or a numpy Generator, got {random_state!r}")
    return np.frombuffer(material, dtype="<u4").astype(np.uint32)


def _draw(table_of, domain, scale, shape, random_state, n_threads):
    """Fill an array of the given shape from the law's table, and the cells beyond its cut from the law's tail."""
    n_threads = _check_threads(n_threads)
    key = _key_of(random_state)
    out = np.empty(shape, dtype=np.int64) if scale > 0 else np.zeros(shape, dtype=np.int64)
    if scale > 0:
        table, cells = table_of(scale), out.reshape(-1)
        if _noise.fill(cells, key, domain, *table, n_threads):
            for cell in np.flatnonzero(cells == np.iinfo(np.int64).min).tolist():
                cells[cell] = _tail_draw(domain, scale, table.cut << table.shift, key, cell)
    key[:] = 0
    return out


def _tail_draw(domain, scale, reach, key, cell):
    """Return one integer of the law, given that its magnitude is above `reach`, modulo 2**64.

    Rejection (Robert 1995, Simulation of truncated normal variables) for the Gaussian; the other law has no memory.
    Exponential variables have no end, and every decision 250 bits or more: the law is exact at any distance, up to
    the factor that theorem 4 of doc/theory/noise.rst allows. Where less than CUT lies outside of 0, the table sends
    CUT here, and the rest of it goes back.
    """
    context, words = _context(), _tail_words(key, domain, cell)
    log_tail = _log_tail(context, domain, scale) if reach == 0 else 0
    if log_tail < context.log(CUT) and _exponential(context, words) < context.log(CUT) - log_tail:
        return 0
    if domain == LAPLACE_DOMAIN:
        beyond = scale * _exponential(context, words)
    else:
        start = (reach + context.mpf(0.5)) / scale
        while True:
            step = _exponential(context, words) / start
            if step * step < 2 * _exponential(context, words):
                break
        beyond = scale * step
    magnitude = reach + 1 + int(context.floor(beyond))
    value = magnitude if next(words) & 1 else -magnitude
    return (value + 2**63) % 2**64 - 2**63  # as sums of 64-bit integers wrap: a function of the exact sum


def _tail_words(key, domain, cell):
    """Yield 64-bit words that belong to one cell and are used for nothing else."""
    for block in range(2**24):
        nonce = TAIL_DOMAIN + domain + (block << 8), cell & 0xFFFFFFFF, cell >> 32
        yield from np.ascontiguousarray(_noise.keystream(key, *nonce)).view(np.uint64).ravel().tolist()
    raise OverflowError("a tail draw asked for more random words than there are")  # for each of 2**29 words


def _exponential(context, words):
    """Return minus the log of a uniform number: its leading zeros without an end, then 320 bits."""
    halvings = 1
    while not (word := next(words)):
        halvings += 64
    halvings += 64 - word.bit_length()
    fraction = 1
    for _ in range(5):
        fraction = fraction << 64 | next(words)
    return halvings * context.ln2 - context.log(context.ldexp(2 * fraction + 1, -321))


def _log_tail(context, domain, scale):
    """Return the log of the probability of any integer but 0."""
    scale = context.mpf(scale)
    if domain == LAPLACE_DOMAIN:
        return context.log(2 / (1 + context.exp(-1 / scale))) - 1 / scale
    if scale < 2.0**-40:  # below exp(-2**77): nobody will ever see it
        return -context.inf
    return context.log(context.erfc(1 / (2 * context.sqrt(2) * scale)))


@lru_cache(maxsize=1)
def _context():
    """Return arithmetic of PRECISION bits. Nobody else sets it: mpmath's own precision is shared by all threads."""
    import mpmath

    context = mpmath.mp.clone()
    context.prec = PRECISION
    return context


def _fixed(value):
    """Return a non-negative mpmath number as an integer count of 2**-PRECISION, rounded down."""
    context = value.context
    return int(context.floor(context.ldexp(value, PRECISION)))


def _bucket_shift(scale):
    """Return log2 of the number of integers in a bucket: 32 to 64 buckets a scale, or single integers."""
    return max(0, math.frexp(scale)[1] - BUCKETS_PER_SCALE.bit_length())


@lru_cache(maxsize=64)
def _gaussian_table(sigma, cut=CUT):
    """Return the table of abs(round(N(0, sigma**2)))."""
    shift, context = _bucket_shift(sigma), _context()
    first = 1 / (2 * context.mpf(sigma))  # inner edge of the first bucket, in standard deviations
    width = context.mpf(2**shift) / context.mpf(sigma)
    z, step = _fixed(first), _fixed(width)
    density = _fixed(context.exp(-(first**2) / 2) / context.sqrt(2 * context.pi))
    ratio, bend = _fixed(context.exp(-first * width - width**2 / 2)), _fixed(context.exp(-(width**2)))
    tails, floors, mass, narrow = [], [], 0, BUCKETS_PER_SCALE * step <= 1 << PRECISION
    for _ in range(math.ceil(GAUSSIAN_REACH * (sigma / 2**shift)) + 1):
        tails.append(tails[-1] - mass if tails and narrow else _gaussian_tail(z, density))
        floors.append(2 * step * density >> PRECISION)
        mass = _bucket_mass(z, step, density) if narrow else 0
        z, density, ratio = z + step, density * ratio >> PRECISION, ratio * bend >> PRECISION
    return _pack(tails, floors[1:], shift, first * width + width**2, width**2, cut)


@lru_cache(maxsize=64)
def _laplace_table(scale, cut=CUT):
    """Return the table of abs(X), X discrete Laplace."""
    shift, context = _bucket_shift(scale), _context()
    width = context.mpf(2**shift) / context.mpf(scale)
    decay = _fixed(context.exp(-width))
    ratio = context.exp(-1 / context.mpf(scale))
    tails = [_fixed(2 * ratio / (1 + ratio))]
    for _ in range(math.ceil(LAPLACE_REACH * (scale / 2**shift))):
        tails.append(tails[-1] * decay >> PRECISION)
    step = _fixed(width)
    floors = [step * tail >> PRECISION for tail in tails[1:]]
    return _pack(tails, floors, shift, width, context.mpf(0), cut)


def _gaussian_tail(z, density):
    """Return P(abs(N(0, 1)) >= z) from the density at z; all are integer counts of 2**-PRECISION.

    The tail is 1 - 2 density (z + z**3 / 3 + z**5 / (3 5) + ...). The terms are positive, none above 1.
    From a term below 2**-200 on, each is less than half of the one before: what is left out is below 2**-199.
    """
    if z > NEGLIGIBLE << PRECISION:
        return 0
    term, square, total, odd = 2 * density * z >> PRECISION, z * z >> PRECISION, 0, 1
    while term >> (PRECISION - 200):
        total += term
        odd += 2
        term = (term * square >> PRECISION) // odd
    return (1 << PRECISION) - total


def _bucket_mass(z, step, density):
    """Return P(z <= abs(N(0, 1)) < z + step) from the density at z, where 32 steps are at most 1, and z is below 13.

    The density at z + t step is that at z times sum(d[n] t**n), with d[0] = 1, d[1] = -z step and (n + 1) d[n + 1] =
    -(z step d[n] + step**2 d[n - 1]): the derivative of exp(-z step t - (step t)**2 / 2). Coefficients have SERIES_BITS
    bits. From two of them on that are below 2**-215 over the density, the later ones are together below twice that.
    """
    drop = PRECISION - SERIES_BITS
    slope, bend = (z * step >> PRECISION) >> drop, (step * step >> PRECISION) >> drop
    least = 1 << max(SERIES_BITS - 215 + PRECISION - density.bit_length(), 0)
    former, last, n = 0, 1 << SERIES_BITS, 1
    total = last
    while last >= least or -last >= least or former >= least or -former >= least:
        former, last = last, -((slope * last + bend * former) >> SERIES_BITS) // n
        n += 1
        total += last // n
    return 2 * (density * (step * total >> SERIES_BITS) >> PRECISION)


def _pack(tails, floors, shift, alpha, beta, cut):
    """Return the Table of a law on magnitudes: zero, the rectangle of each bucket, the wedge of each bucket.

    `tails` has P(magnitude > k 2**shift), k = 0, 1, ..., n_buckets; `floors` the mass of the largest rectangle under
    the density in each bucket, not used when a bucket is one integer; `alpha` and `beta` the log-density inside a
    bucket, see ``_kernels/wedge.h``; `cut` the least probability of what is left to the law's tail.
    """
    least_tail = int(math.ldexp(cut, 128)) << (PRECISION - 128)
    tails = [max(tails[0], least_tail), *tails[1:]]  # at tiny scales; `_tail_draw` sends back what is too much
    masses = [(1 << PRECISION) - tails[0]]
    steps = [outer - inner for outer, inner in pairwise(tails)]
    if shift:
        masses += floors + [step - floor for step, floor in zip(steps, floors, strict=True)]
    else:
        masses += steps
    folded = shift if shift <= FOLDED_BITS else 0
    bits = 63 - folded  # of a position; 128 more follow
    ends, end = [], 0
    for mass in masses[:-1]:
        end += mass
        ends.append(end >> (PRECISION - bits - 128))
    ends.append(1 << (bits + 128))
    high, low, least = (
        np.array([end >> 64 * place & (2**64 - 1) for end in ends], dtype=np.uint64) for place in (2, 1, 0)
    )
    starts = np.arange(2**GUIDE_BITS, dtype=np.uint64) << np.uint64(bits - GUIDE_BITS)
    guide = np.searchsorted(high, starts, side="left").astype(np.uint16)
    slopes = [_fixed(value) >> (PRECISION - 128) if shift else 0 for value in (alpha, beta)]
    wedge = np.array([part for s in slopes for part in (s >> 64, s & (2**64 - 1))], dtype=np.uint64)
    first_left = max(k for k, tail in enumerate(tails[:-1]) if tail >= least_tail)  # never the last: it has no end
    return Table(high, low, least, guide, bits - GUIDE_BITS, shift, folded, wedge, first_left)
