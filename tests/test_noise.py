"""Integer noise: tables against mpmath, draws against the exact laws, streams against RFC 8439."""

import math
from functools import partial

import mpmath
import numpy as np
import pytest
from conftest import in_a_child
from internals import noise as _noise
from internals import noise_kernel as kernel
from scipy import stats

from skdplda.privacy import delta_slack, discrete_laplace, rounded_gaussian

LAWS = {"gaussian": rounded_gaussian, "laplace": discrete_laplace}
DOMAINS = {"gaussian": _noise.GAUSSIAN_DOMAIN, "laplace": _noise.LAPLACE_DOMAIN}
TABLES = {"gaussian": _noise._gaussian_table, "laplace": _noise._laplace_table}
# Both sides of single integers | buckets (64), of offsets in the first word | outside (2**22), and extremes.
SCALES = [0.05, 0.3, 1.0, 7.3, 63.9, 64.0, 300.0, 2.0**22 - 1, 2.0**22, 1e9, 2.0**50]
FOUND_BY_CHANCE = 1e-6


def tail(law, scale, x):
    """Exact P(abs(X) >= x) for an integer x >= 1, at mpmath's working precision."""
    scale = mpmath.mpf(scale)
    if law == "gaussian":
        return mpmath.erfc((x - mpmath.mpf(1) / 2) / scale / mpmath.sqrt(2))
    q = mpmath.exp(-1 / scale)
    return 2 * mpmath.exp(-x / scale) / (1 + q)


def log_survival(law, scale, x):
    """scipy's log P(X >= x), x >= 1; x may be an array of floats."""
    if law == "gaussian":
        return stats.norm.logsf((x - 0.5) / scale)
    return -x / scale - np.log1p(np.exp(-1 / scale))


def ends_of(table):
    """Cumulative ends of a table's entries, as mpmath numbers in [0, 1]."""
    bits = 191 - table.folded
    with mpmath.workprec(256):
        words = zip(table.high, table.low, table.least, strict=True)
        ends = [(int(high) << 128) + (int(low) << 64) + int(least) for high, low, least in words]
        return [mpmath.ldexp(mpmath.mpf(end), -bits) for end in ends]


def p_value(draws, law, scale):
    """Chi-square p-value of the draws, over up to 60 bins about equally probable, at integer edges."""
    quantiles = np.linspace(0, 1, 61)[1:-1]
    inverse = stats.norm.ppf(quantiles) if law == "gaussian" else stats.laplace.ppf(quantiles)
    edges = np.unique(np.rint(scale * inverse)).astype(np.int64)  # a bin is edges[i] <= x < edges[i + 1]
    above = np.where(
        edges > 0,
        np.exp(log_survival(law, scale, np.maximum(edges, 1.0))),
        1 - np.exp(log_survival(law, scale, np.maximum(1.0 - edges, 1.0))),
    )
    expected = -np.diff(np.concatenate([[1.0], above, [0.0]])) * draws.size
    observed = np.bincount(np.searchsorted(edges, draws.ravel(), side="right"), minlength=edges.size + 1)
    keep = expected > 5
    assert keep.sum() > 1
    return stats.chisquare(observed[keep], expected[keep] * observed[keep].sum() / expected[keep].sum()).pvalue


def test_chacha20_is_that_of_rfc_8439():
    """Section 2.3.2: key 00 01 .. 1f, nonce 000000090000004a00000000, counter 1."""
    key = np.frombuffer(bytes(range(32)), dtype="<u4").astype(np.uint32)
    block = kernel.keystream(key, 0x09000000, 0x4A000000, 0)[1]
    expected = """e4e7f110 15593bd1 1fdd0f50 c47120a3 c7f4d1c7 0368c033 9aaa2204 4e6cd4c3
                  466482d2 09aa9f07 05d7c214 a2028bd9 d19c12b5 b94e16de e883d0cb 4e3c50a2"""
    assert [f"{word:08x}" for word in block] == expected.split()


# Key, counter, nonce and block of appendix A.1 of RFC 8439, as bytes in hexadecimal.
VECTORS = [
    (
        "00" * 32, 0, "00" * 12,
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    (
        "00" * 32, 1, "00" * 12,
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
    (
        "00" * 31 + "01", 1, "00" * 12,
        "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
        "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
    ),
    (
        "00ff" + "00" * 30, 2, "00" * 12,
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
    (
        "00" * 32, 0, "00" * 11 + "02",
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
        "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("key", "counter", "nonce", "block"), VECTORS)
def test_known_answers_of_rfc_8439(key, counter, nonce, block):
    words = [np.frombuffer(bytes.fromhex(part), dtype="<u4").astype(np.uint32) for part in (key, nonce)]
    found = kernel.keystream(words[0], *words[1].tolist())[counter]
    assert found.astype("<u4").tobytes().hex() == block


def rfc_block(state):
    """Section 2.3 of RFC 8439: the block of a state of sixteen words."""
    x = list(state)
    columns = [(i, 4 + i, 8 + i, 12 + i) for i in range(4)]
    diagonals = [(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4) for i in range(4)]
    for _ in range(10):
        for a, b, c, d in columns + diagonals:
            for to, add, mix, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[to] = (x[to] + x[add]) % 2**32
                x[mix] ^= x[to]
                x[mix] = (x[mix] << turn | x[mix] >> (32 - turn)) % 2**32
    return [(a + b) % 2**32 for a, b in zip(x, state, strict=True)]


def test_later_blocks_are_those_of_the_rfc():
    """A stream goes on in sixteen blocks at a time, and each has the counter that follows."""
    key = np.random.default_rng(0).integers(0, 2**32, 8, dtype=np.uint32)
    constants = np.frombuffer(b"expand 32-byte k", dtype="<u4").tolist()
    blocks = kernel.keystream(key, 1, 2, 3, 44)
    for counter in (0, 3, 4, 7, 8, 11, 12, 19, 20, 35, 36, 43):
        assert blocks[counter].tolist() == rfc_block([*constants, *key.tolist(), counter, 1, 2, 3])


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
def test_table_has_the_claimed_accuracy(law, scale):
    """Mass up to some bucket edges; theorem 4 allows each entry's end one unit of the last bit."""
    table = TABLES[law](scale, cut=0.0)
    ends = ends_of(table)
    assert ends == sorted(ends)
    assert ends[-1] == 1
    n_buckets = (len(ends) - 1) // 2 if table.shift else len(ends) - 1
    width = 2**table.shift
    last_bit = mpmath.ldexp(1, table.folded - 191)
    with mpmath.workprec(256):
        for k in {0, 1, n_buckets // 7, n_buckets // 3, n_buckets - 1} - {n_buckets}:
            inside = ends[k]
            if table.shift:  # rectangles come first, the wedges of the same buckets after all of them
                inside += ends[n_buckets + k] - ends[n_buckets]
            assert abs(inside - (1 - tail(law, scale, 1 + k * width))) < 3 * last_bit
    assert len(ends) < 2**16


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
def test_what_the_table_leaves_to_the_tail_has_a_precise_probability(law, scale):
    """Theorem 4 is about factors: what is left must not be small against the last bit."""
    table = TABLES[law](scale)
    beyond = 1 + (table.cut << table.shift)
    n_buckets = (len(table.high) - 1) // 2 if table.shift else len(table.high) - 1
    with mpmath.workprec(256):
        ends = ends_of(table)
        left = 1 - ends[table.cut] - (ends[n_buckets + table.cut] - ends[n_buckets] if table.shift else 0)
        exact = max(tail(law, scale, beyond), mpmath.mpf(_noise.CUT))
        assert exact >= _noise.CUT
        assert abs(left / exact - 1) < _noise.LAW_ERROR
        assert tail(law, scale, beyond + 2**table.shift) < _noise.CUT  # as seldom as can be


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [5.0, 1e6])
def test_noise_does_not_end_where_its_table_ends(law, scale, monkeypatch):
    """Whatever is beyond the table's reach, here made short, must not be taken by its last entry."""
    for name in ("GAUSSIAN_REACH", "LAPLACE_REACH"):
        monkeypatch.setattr(_noise, name, 1.5)
    TABLES[law].cache_clear()
    draws = LAWS[law](scale, 20_000, random_state=6)
    TABLES[law].cache_clear()
    assert p_value(draws, law, scale) > FOUND_BY_CHANCE
    assert np.abs(draws).max() > 3 * scale


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.6, 7.3, 300.0, 1e9, 2.0**50])
def test_table_and_tail_together_follow_the_law(law, scale):
    """With a cut so early that tails are drawn often; the draws before it are what they were without it."""
    draws = _noise._draw(partial(TABLES[law], cut=0.2), DOMAINS[law], scale, 8000, 4, 1)
    plain = LAWS[law](scale, 8000, random_state=4)
    assert p_value(draws, law, scale) > FOUND_BY_CHANCE
    first = np.flatnonzero(draws != plain)[0]
    assert abs(plain[first]) > TABLES[law](scale, cut=0.2).cut << TABLES[law](scale).shift


@pytest.mark.parametrize(("law", "reach"), [("gaussian", 8.0), ("gaussian", 40.0), ("laplace", 44.0), ("laplace", 1e4)])
@pytest.mark.parametrize("scale", [0.3, 5.0, 2.0**40])
def test_no_integer_is_beyond_the_reach_of_the_noise(law, reach, scale):
    """Ten times the group, ten times the distance: 40 deviations and 10,000 scales out, the law goes on."""
    reach = math.ceil(reach * scale)
    key = np.arange(8, dtype=np.uint32)
    draws = [abs(_noise._tail_draw(DOMAINS[law], scale, reach, key, cell)) - reach for cell in range(2000)]
    assert min(draws) >= 1
    with mpmath.workprec(256):
        whole = tail(law, scale, reach + 1)
        edges = sorted({1, *(int(scale * part) + 1 for part in (0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 1, 2))})
        beyond = [float(tail(law, scale, reach + edge) / whole) for edge in edges]
    expected = -np.diff([*beyond, 0.0]) * len(draws)
    observed = np.bincount(np.searchsorted(edges, draws, side="right") - 1, minlength=len(edges))
    keep = expected > 5
    assert np.all(observed[~keep] < 30)
    if keep.sum() > 1:
        share = observed[keep].sum() / expected[keep].sum()
        assert stats.chisquare(observed[keep], expected[keep] * share).pvalue > FOUND_BY_CHANCE


@pytest.mark.parametrize("law", LAWS)
def test_tiny_scales_send_back_what_the_table_sends_too_much(law):
    low, high = 0.001, 0.5
    for _ in range(60):  # the scale at which a fifth of the least cut lies outside of 0
        middle = (low + high) / 2
        low, high = (middle, high) if tail(law, middle, 1) < _noise.CUT / 5 else (low, middle)
    assert TABLES[law](low).cut == 0
    draws = [_noise._tail_draw(DOMAINS[law], low, 0, np.zeros(8, np.uint32), cell) for cell in range(4000)]
    assert stats.binomtest(np.count_nonzero(draws), 4000, 0.2).pvalue > FOUND_BY_CHANCE
    assert set(draws) == {-1, 0, 1}
    assert _noise._tail_draw(DOMAINS[law], 5e-324, 0, np.zeros(8, np.uint32), 1) == 0


def test_sums_beyond_64_bits_wrap(monkeypatch):
    """A function of the exact sum, and so as private; a clipped one would not be its own noise."""
    monkeypatch.setattr(_noise, "_exponential", lambda context, words: context.mpf(2) ** 20)
    noise = _noise._tail_draw(_noise.LAPLACE_DOMAIN, 2.0**50, 0, np.zeros(8, np.uint32), 0)
    assert -(2**63) <= noise < 2**63
    assert abs(noise) == 1  # 2**70 + 1 modulo 2**64


@pytest.mark.parametrize("above", [0, 1])
def test_a_boundary_inside_a_cell_is_decided_by_a_third_word(above):
    """The kernel's rarest branch, met by a table whose first end is made of the words that it will draw."""
    key = np.arange(3, 11, dtype=np.uint32)
    words = kernel.keystream(key, 1, 0, 0).T.ravel().copy().view(np.uint64)
    ends = words[0] >> 1, words[1], words[2] + above
    high, low, least = (np.array([end, 2**63 - 1], dtype=np.uint64) for end in ends)
    out, guide = np.zeros(1, np.int64), np.zeros(2**13, np.uint16)
    assert kernel.fill(out, key, 1, high, low, least, guide, 50, 0, 0, np.zeros(4, np.uint64), 9, 1) == 0
    assert abs(out[0]) == 1 - above


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [64.0, 300.0, 1e9])
def test_rectangle_and_wedge_add_up_to_the_law(law, scale):
    """Exact probability of one integer from the table's masses and the wedge's stated density."""
    table = TABLES[law](scale)
    n_buckets, width = (len(table.high) - 1) // 2, 2**table.shift
    with mpmath.workprec(200):
        ends = ends_of(table)
        words = [int(word) for word in table.wedge]
        alpha, beta = (mpmath.ldexp(words[i] * 2**64 + words[i + 1], -128) for i in (0, 2))
        for bucket in (0, 1, n_buckets // 5):
            rectangle = ends[bucket + 1] - ends[bucket]
            wedge = ends[n_buckets + bucket + 1] - ends[n_buckets + bucket]

            def height(v, slope=alpha + bucket * beta):
                return mpmath.expm1(v * (slope - v * beta / 2))

            for offset in (0, 1, width - 1):
                v = 1 - mpmath.mpf(offset) / width
                share = mpmath.quad(height, [v - mpmath.mpf(1) / width, v]) / mpmath.quad(height, [0, 1])
                x = 1 + bucket * width + offset
                exact = tail(law, scale, x) - tail(law, scale, x + 1)
                assert abs(rectangle / width + wedge * share - exact) < mpmath.mpf(2) ** -100


def test_fixed_point_exponential():
    for a in [0, 1, 2**64, 2**100 + 12345, 2**121, 2**125 + 3**70, 2**127 - 1]:
        high, low = kernel.expm1(a >> 64, a & (2**64 - 1))
        with mpmath.workprec(400):
            error = mpmath.ldexp(mpmath.expm1(mpmath.ldexp(a, -128)), 128) - (high * 2**64 + low)
        assert -1e-9 < error < 2**7


def test_rough_exponential_is_far_better_than_the_margin_it_decides_by():
    values = np.linspace(0, 0.5, 10_001)
    found = np.array([kernel.rough(value) for value in values])
    assert np.abs(found - np.expm1(values)).max() < 2.0**-38


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES[1:])
def test_draws_follow_the_law(law, scale):
    draws = LAWS[law](scale, 400_000, random_state=20)
    assert p_value(draws, law, scale) > FOUND_BY_CHANCE


@pytest.mark.parametrize("law", LAWS)
def test_draws_from_system_entropy_follow_the_law(law):
    for scale in (3.0, 100.0):
        assert p_value(LAWS[law](scale, 400_000), law, scale) > FOUND_BY_CHANCE / 4


def reference_draw(table, words):
    """Return one integer from the words of a stream, as doc/theory/noise.rst has it; StopIteration where they end."""
    word = next(words)
    position, n_buckets = word >> (1 + table.folded), (len(table.high) - 1) // 2
    entry = int(np.searchsorted(table.high, np.uint64(position)))
    if position == int(table.high[entry]):
        more = next(words)
        while position == int(table.high[entry]) and more >= int(table.low[entry]):
            entry += 1
    magnitude = entry
    if table.shift and entry:
        if entry <= n_buckets:  # the rectangle of a bucket
            offset = (word >> 1 if table.folded else next(words)) % 2**table.shift
        else:
            entry -= n_buckets
            offset = reference_wedge(table, entry - 1, words)
        magnitude = 1 + (entry - 1) * 2**table.shift + offset
    return -magnitude if word & 1 else magnitude


def reference_wedge(table, bucket, words):
    """Return a place in a bucket by rejection, in floating point: A(v) = v (alpha + bucket beta - v beta / 2)."""
    parts = [int(word) for word in table.wedge]
    alpha, beta = (parts[0] + parts[1] / 2**64) / 2**64, (parts[2] + parts[3] / 2**64) / 2**64
    while True:
        place, _, level, _ = next(words), next(words), next(words), next(words)
        v = 1 - place / 2**64
        top = math.expm1(alpha + bucket * beta - beta / 2)
        if level / 2**64 * top < math.expm1(v * (alpha + bucket * beta - v * beta / 2)):
            return place >> (64 - table.shift)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [3.0, 70.0, 1000.0])
def test_the_kernel_draws_what_the_reference_draws(law, scale):
    """The first draws of 3,000 streams, as many as the first words of a stream make."""
    table, domain, wedges = TABLES[law](scale), DOMAINS[law], 0
    for seed in range(3_000):
        stream = kernel.keystream(_noise._key_of(seed), domain, 0, 0).T.ravel().astype(np.uint64)
        words, expected = iter((stream[1::2] << np.uint64(32) | stream[::2]).tolist()), []
        try:
            while True:
                expected.append(reference_draw(table, words))
        except StopIteration:
            pass
        wedges += len(expected) < 28  # at least one of them took four words more
        np.testing.assert_array_equal(LAWS[law](scale, len(expected), random_state=seed), expected)
    assert wedges > 100 or table.shift == 0


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [1000.0, 2.0**24])
def test_position_inside_a_bucket_follows_the_law(law, scale):
    """The wedge and the offset bits alone: all buckets laid on one another, 16 slices of each."""
    table = TABLES[law](scale)
    step = 2 ** (table.shift - 4)
    draws = np.abs(LAWS[law](scale, 4_000_000, random_state=3))
    inside = draws[draws > 0] - 1
    observed = np.bincount((inside // step) % 16, minlength=16)
    starts = 1.0 + step * np.arange(16 * ((len(table.high) - 1) // 2) + 1)
    masses = -np.diff(np.exp(log_survival(law, scale, starts)))
    expected = masses.reshape(-1, 16).sum(axis=0)
    assert expected[0] / expected[-1] > 1.01  # a flat bucket would be noticed
    assert stats.chisquare(observed, expected / expected.sum() * observed.sum()).pvalue > FOUND_BY_CHANCE


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [2.0, 300.0])
def test_tails_are_reachable(law, scale):
    """Entries stay distinct to 2**-90 and further, far beyond what a floating-point uniform reaches."""
    table = TABLES[law](scale)
    ends = ends_of(table)
    n_buckets = (len(ends) - 1) // 2 if table.shift else len(ends) - 1
    with mpmath.workprec(256):
        left = [1 - end for end in ends]
        for k in range(n_buckets - 1):
            beyond = left[k] if not table.shift else left[k] - left[n_buckets] + left[n_buckets + k]
            expected = math.log(2) + log_survival(law, scale, 1.0 + k * 2**table.shift)
            if expected > -60:
                assert math.isclose(mpmath.log(beyond), expected, abs_tol=1e-9 + math.exp(-expected - 73))
        last = [end for end in left if end > 0][-1]
    assert last < 2.0**-90


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [5.0, 500.0, 1e7])
def test_signs_are_fair(law, scale):
    draws = LAWS[law](scale, 400_000, random_state=8)
    positive, negative = int((draws > 0).sum()), int((draws < 0).sum())
    assert stats.binomtest(positive, positive + negative).pvalue > FOUND_BY_CHANCE


@pytest.mark.parametrize("sigma", [1e6, 1e9])
def test_moments_at_large_scales(sigma):
    n = 1_000_000
    z = rounded_gaussian(sigma, n, random_state=1) / sigma
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - mean) < 5 * math.sqrt(variance / n)
    y = np.abs(discrete_laplace(sigma, n, random_state=1)) / sigma
    for power, mean in ((1, 1), (2, 2), (3, 6)):
        assert abs((y**power).mean() - mean) < 5 * math.sqrt((math.factorial(2 * power) - mean**2) / n)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [3.0, 1e4, 1e8])
def test_threads_do_not_change_the_draws(law, scale):
    one = LAWS[law](scale, (37, 999), random_state=5, n_threads=1)
    for n_threads in (2, 4):
        np.testing.assert_array_equal(one, LAWS[law](scale, (37, 999), random_state=5, n_threads=n_threads))


def test_streams_do_not_repeat():
    """Draws of some 57 bits: two equal magnitudes among 100,000 have probability below 1e-6."""
    seeds = [discrete_laplace(2.0**50, 25_000, random_state=seed) for seed in (0, 1)]
    laws = [rounded_gaussian(2.0**50, 25_000, random_state=seed) for seed in (0, None)]
    magnitudes = np.abs(np.concatenate(seeds + laws))
    assert np.unique(magnitudes).size == magnitudes.size
    blocks = rounded_gaussian(1e9, (4, 4096), random_state=2)
    correlations = np.corrcoef(blocks)[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 5 / math.sqrt(4096)
    words = [kernel.keystream(np.zeros(8, np.uint32), *nonce) for nonce in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))]
    assert np.unique(np.concatenate(words)).size == 4 * words[0].size


@pytest.mark.usefixtures("system_entropy")
def test_system_entropy_is_fresh_every_time():
    assert not np.array_equal(rounded_gaussian(10.0, 200), rounded_gaussian(10.0, 200))
    assert not np.array_equal(kernel.system_key(), kernel.system_key())


@pytest.mark.usefixtures("system_entropy")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_does_not_repeat_its_parent():
    rounded_gaussian(1e6, 10)
    of_children = [in_a_child(lambda: rounded_gaussian(1e6, 10).tolist()) for _ in range(2)]
    own = str(rounded_gaussian(1e6, 10).tolist())
    assert all(len(draws.split(",")) == 10 for draws in of_children) and len({own, *of_children}) == 3


def test_generators_supply_the_key():
    first = rounded_gaussian(10.0, 50, random_state=np.random.default_rng(4))
    generator = np.random.default_rng(4)
    np.testing.assert_array_equal(first, rounded_gaussian(10.0, 50, random_state=generator))
    assert not np.array_equal(first, rounded_gaussian(10.0, 50, random_state=generator))
    legacy = [rounded_gaussian(10.0, 50, random_state=np.random.RandomState(4)) for _ in range(2)]
    np.testing.assert_array_equal(*legacy)
    np.testing.assert_array_equal(
        discrete_laplace(10.0, 50, random_state=7), discrete_laplace(10.0, 50, random_state=np.int32(7))
    )


@pytest.mark.usefixtures("own_seeds")
def test_seeded_draws_never_change():
    """What an integer seed means is part of the public behaviour."""
    assert rounded_gaussian(10.0, 6, random_state=0).tolist() == [1, 6, -16, -7, 0, -5]
    assert discrete_laplace(1e9, 3, random_state=0).tolist() == [-1791626844, 406595927, 2166866243]


def test_the_key_is_wiped(system_entropy, monkeypatch):
    key = np.arange(1, 9, dtype=np.uint32)
    monkeypatch.setattr(kernel, "system_key", lambda: key)
    assert rounded_gaussian(10.0, 100).any()
    assert not key.any()


@pytest.mark.parametrize("law", LAWS)
def test_shapes_and_zero_scale(law):
    draw = LAWS[law]
    assert draw(5.0, (3, 4, 2)).shape == (3, 4, 2)
    assert draw(5.0, 7).dtype == np.int64
    assert draw(5.0, (0, 4)).shape == (0, 4)
    assert np.isscalar(draw(5.0, ()).item())
    assert not draw(0.0, (20, 20)).any()
    assert not draw(5e-324, 1000).any()


@pytest.mark.parametrize("draw, name", [(rounded_gaussian, "sigma"), (discrete_laplace, "scale")])
def test_bad_arguments_are_named(draw, name):
    for value in (math.nan, -1.0, math.inf, 2.0**51):
        with pytest.raises(ValueError, match=f"{name} must be a finite number"):
            draw(value, 3)
    with pytest.raises(TypeError, match=f"{name} must be a real number"):
        draw("1", 3)
    with pytest.raises(ValueError, match="n_threads must be an integer of at least 1, got 0"):
        draw(1.0, 3, n_threads=0)
    with pytest.raises(ValueError, match="random_state must be a non-negative integer, got -1"):
        draw(1.0, 3, random_state=-1)
    with pytest.raises(TypeError, match="random_state must be None"):
        draw(1.0, 3, random_state="entropy")


def test_delta_slack_formula():
    exact = (1 + mpmath.exp(3)) * 10**9 * mpmath.mpf(2) ** -96
    assert exact <= delta_slack(10**9, 3.0) <= exact * (1 + 1e-9)
    assert delta_slack(0, math.inf) == 0.0
    assert delta_slack(1, math.inf) == 1.0
    assert delta_slack(10**60, 1.0) == 1.0
    assert delta_slack(1, 66.0) < 1.0
    with pytest.raises(ValueError, match="n_draws must be a non-negative integer, got -1"):
        delta_slack(-1, 1.0)
    with pytest.raises(ValueError, match="epsilon must be a non-negative number, got nan"):
        delta_slack(1, math.nan)


def test_slack_theorem_on_random_laws():
    """Theorem 3: laws within eta of an (epsilon, delta) pair have delta at most (1 + e**epsilon) eta more."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        p, q, p_near, q_near = rng.dirichlet(np.full(6, 0.5), size=4)
        p_near, q_near = 0.9 * p + 0.1 * p_near, 0.9 * q + 0.1 * q_near
        eta = max(0.5 * np.abs(p - p_near).sum(), 0.5 * np.abs(q - q_near).sum())
        bound = math.exp(rng.uniform(0, 2))
        delta = np.maximum(p - bound * q, 0).sum()
        assert np.maximum(p_near - bound * q_near, 0).sum() <= delta + (1 + bound) * eta + 1e-12


def test_agrees_with_opendp():
    """Two-sample chi-square with OpenDP's exact discrete Laplace; false alarms below 1e-6."""
    opendp = pytest.importorskip("opendp.prelude")
    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l1_distance(T="i64")
    theirs = np.array(opendp.m.make_laplace(*space, scale=2.5)([0] * 50_000))
    ours = discrete_laplace(2.5, 50_000)
    counts = [np.bincount(np.clip(sample, -10, 10) + 10, minlength=21) for sample in (theirs, ours)]
    assert stats.chi2_contingency(counts).pvalue > FOUND_BY_CHANCE
