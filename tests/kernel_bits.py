"""Print a digest of what each kernel computes, to compare processors' paths, compilers and machines.

Inputs are whole numbers and their quotients, and nothing here needs a mathematical library, so that equal digests mean
that the kernels agree to the last bit. `python tests/kernel_bits.py` prints one line a kernel. Left out are the
system's entropy, and draws from tables that `privacy` makes.
"""

import hashlib
from itertools import product

import numpy as np
import scipy.sparse as sp

from skdplda._kernels import _arithmetic, _held_out, _linear_algebra
from skdplda._kernels._arithmetic import log_ndtr, mills, ndtr, ndtri
from skdplda._kernels._expected import ExpectedCounts, next_table
from skdplda._kernels._foldin import fold_in
from skdplda._kernels._foldin_rows import fold_in_rows, probabilities, word_rows
from skdplda._kernels._gibbs import TokenBlocks
from skdplda._kernels._listed import ListedTokens
from skdplda._kernels._mixture import responsibilities, scaled_sums
from skdplda._kernels._noise import expm1, keystream, rough
from skdplda._kernels._partition import fill_first, fill_gaussian, fill_level, reroute, share_equally, truncate
from skdplda._kernels._released import count_topics, order_tokens, released_sweep
from skdplda._kernels._reports import positions, randomize
from skdplda._kernels._sequential import sequential_sweep, sequential_sweep_monitored
from skdplda._kernels._variational import e_step, exp_digamma, expected_topics
from skdplda._kernels._words import TextReader, Words, tally
from skdplda._kernels._zeta import zeta

KEY = np.arange(8, dtype=np.uint32)


def corpus(n_documents, n_words, seed=0):
    """Return (indptr, indices, counts) of documents of mixed lengths, one empty; some words come often."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n_documents, n_words)) * (rng.integers(0, 4, (n_documents, n_words)) == 0)
    X[:, 0] += 7
    X[3] = 0
    indptr = np.append(0, np.cumsum((X > 0).sum(1)))
    return indptr, np.nonzero(X)[1].astype(np.int32), X[X > 0].astype(np.int32), X.shape


def quotients(rng, shape, dtype=np.float64):
    return (rng.integers(1, 1000, shape) / rng.integers(1, 50, shape)).astype(dtype)


def gibbs():
    # One topic; less than a vector; groups of vectors of each size, whole and cut short; the sparse sweep.
    for n_topics in (1, 5, 32, 33, 70, 100, 130, 170, 200, 230, 257, 300, 520, 2100):
        for dtype, self_count, seed in ((np.int32, 1.0, 1), (np.int32, 0.0, 2), (np.float32, 1.0, 3)):
            rng = np.random.default_rng(seed)
            indptr, indices, counts, (n_documents, n_words) = corpus(60, 40)
            blocks = TokenBlocks(indptr.astype(np.int64), indices, counts, n_words, n_topics)
            alpha = quotients(rng, n_topics, np.float32)
            alpha /= 50 if seed < 3 else 50_000  # far below one unit, proposals fail
            table, counts_now = (
                rng.integers(0, 90, (n_words, n_topics)).astype(dtype),
                np.zeros((n_words, n_topics), np.int32),
            )
            active, weighted = None, np.empty((n_words, n_topics), np.int64)
            for round_ in range(3):
                blocks.sweep(table, alpha, 0.01, self_count, 2, seed, round_, active)
                yield from (blocks.topics, blocks.document_topics())
                blocks.set_topics(blocks.topics)
                blocks.sum_weighted(weighted, np.arange(n_documents, dtype=np.int32))
                yield weighted
                blocks.move(counts_now)
                table = counts_now.astype(dtype)
                active = (np.arange(n_documents) % 3 > 0).astype(np.uint8) if round_ else None


def listed():
    for n_topics in (1, 5, 33, 300, 2100):
        for self_count, seed in ((1.0, 1), (0.0, 2)):
            rng = np.random.default_rng(seed)
            indptr, indices, counts, (_, n_words) = corpus(60, 40)
            tokens = ListedTokens(indptr.astype(np.int64), indices, counts, n_words, n_topics)
            alpha = quotients(rng, n_topics, np.float32) / 50
            for round_ in range(3):
                table = tokens.sums()
                yield from table
                tokens.sweep(*table, alpha.astype(np.float32), 0.01, self_count, 2, seed, round_)
                yield tokens.topics


def expected():
    for n_topics in (1, 5, 33, 300):
        indptr, indices, counts, shape = corpus(60, 40)
        X = sp.csr_array((counts, indices, indptr), shape)
        alpha, topics = quotients(np.random.default_rng(0), n_topics), np.arange(X.sum()) ** 2 % 7 % n_topics
        step = ExpectedCounts(X, topics.astype(np.uint16), n_topics, 25)
        table = quotients(np.random.default_rng(1), (shape[1], n_topics), np.float32)
        for _ in range(3):
            sums = step.collect(table, alpha.astype(np.float32), 0.01)
            table = next_table(sums, table, alpha.astype(np.float32), 0.01)
            yield from (sums, table, step.tokens)


STEPS = (False, 1.0), (True, 1.0), (True, 1.4)  # whether they are collapsed, and their relaxation


def variational():
    for n_topics in (1, 7, 16, 40, 130, 200):  # with columns up to sixteen
        rng = np.random.default_rng(n_topics)
        indptr, indices, counts, (n_documents, n_words) = corpus(60, 40)
        table = quotients(rng, (n_words, n_topics), np.float32)
        expected = expected_topics(table, quotients(rng, n_topics), 0.1)
        yield from (expected, exp_digamma(table))
        units = np.array([0, 1, 1, 9, n_documents])
        ways = [(0, -1.0, None, None), (0, 0.05, None, None)]
        ways += [(1 << 20, 0.05, quotients(rng, n_words, np.float32), some) for some in (None, units)]
        for (norm, cut, word_weight, some), (collapsed, relaxation) in product(ways, STEPS):
            out = np.zeros((n_words, n_topics), np.int64)
            state = np.full((n_documents, n_topics), -1, np.float32)
            n = e_step(indptr.astype(np.int64), indices, counts, np.arange(n_documents), expected,
                       np.full(n_topics, 0.1, np.float32), None, 1 << 12, norm, 20, 1e-4, cut, out,
                       word_weight=word_weight, state=state, collapsed=collapsed, relaxation=relaxation,
                       units=some)  # fmt: skip
            yield from (out, state, n)


def matrix(seed, n_topics, dtype):
    """Return the corpus with int32 rows, and a table whose topics sum to one."""
    indptr, indices, counts, (_, n_words) = corpus(60, 40, seed)
    table = quotients(np.random.default_rng(seed), (n_words, n_topics))
    return indptr.astype(np.int32), indices, counts, np.ascontiguousarray((table / table.sum(0)).astype(dtype))


def mixture_weights():
    for n_topics in (1, 3, 6, 25):
        indptr, indices, counts, table = matrix(n_topics, n_topics, np.float64)
        yield from zeta(indptr, indices, counts, table[None], 1e-9, 50, 1)


def fold_ins():
    for n_topics, dtype in ((1, np.float32), (7, np.float64), (40, np.float32)):
        indptr, indices, counts, table = matrix(n_topics, n_topics, dtype)
        yield fold_in(indptr, indices, counts, table, np.full(n_topics, 0.1), 100, 1e-6, 1)
    for n_topics in (1, 16, 40, 130, 200):
        indptr, indices, counts, table = matrix(n_topics, n_topics, np.float64)
        for alpha in (0.01, 0.5):
            rows, peak, place = word_rows(table.T, indices)
            theta = fold_in_rows(indptr, place, counts, rows, np.full(n_topics, alpha), 60, 1e-4)
            yield from (rows, theta, probabilities(indptr, place, rows, peak, theta))


def held_out():
    for n_topics in (1, 3, 40):
        rng = np.random.default_rng(n_topics)
        indptr, indices, data, (n_documents, n_words) = corpus(60, 40)
        begins, counts = indptr.astype(np.int64), quotients(rng, (n_words, n_topics))
        theta, scale, weights = (quotients(rng, size) for size in ((n_documents, n_topics), n_documents, n_words))
        masses = counts.sum(axis=0)
        for left in (quotients(rng, (n_words, n_topics)) / 1000, quotients(rng, (n_words, 1)) / 1000):
            for word_weights in (weights, None):
                own = _held_out.own_rows(begins, indices, data, theta, counts, masses, left, scale, word_weights)
                yield from (own, *_held_out.rows_without(begins, indices, counts, masses, own, 0.5, 0.01))


def mixture():
    rng = np.random.default_rng(0)
    indptr, indices, counts, (n_units, _) = corpus(40, 60)
    r = quotients(rng, (60, 9))
    out, words = np.empty((n_units, 9), np.int64), np.random.default_rng(1).permutation(n_units).astype(np.int32)
    units = np.array([0, 1, 1, 20, n_units])
    scaled_sums(units, indptr.astype(np.int64), indices, counts.astype(float), words, r, 1 << 20, out, 1)
    yield out


def segments():
    indptr, indices, counts, (n_units, n_words) = corpus(60, 40)
    for n_topics in (1, 3, 8, 20, 70):
        rng = np.random.default_rng(n_topics)
        log_phi = -quotients(rng, (n_words, n_topics))
        for extra in (np.empty((0, 0)), quotients(rng, (n_units, n_topics))):
            theta, r = np.full((20, n_topics), 1 / n_topics), np.empty((n_units, n_topics))
            likelihood = np.empty(20)
            responsibilities(
                np.arange(0, n_units + 1, 3), indptr.astype(np.int64), indices, counts.astype(float), log_phi, extra,
                quotients(rng, n_topics), np.empty(0, np.uint8), theta, r, likelihood, 3, 1,
            )  # fmt: skip
            yield from (theta, r, likelihood)


def arithmetic():
    rng = np.random.default_rng(0)
    x = quotients(rng, 1000)
    for function in (
        _arithmetic.exp, _arithmetic.log, _arithmetic.log1p, _arithmetic.expm1, _arithmetic.digamma,
    ):  # fmt: skip
        yield from (function(x), function(1 / x), function(-x / 2000))
    for shape in (1.0, 1.5, 30.0):
        yield _arithmetic.gamma_rows(7, shape, 20, 9)


def linear_algebra():
    for n in (1, 2, 7, 40, 65):
        rng = np.random.default_rng(n)
        a, b = quotients(rng, (33, n)), quotients(rng, (n, 2 * n - 1))
        yield from (_linear_algebra.column_sums(a), _linear_algebra.row_sums(a), _linear_algebra.dot(a[0], a[1]))
        yield from (_linear_algebra.column_sums(a.astype(np.float32)), _linear_algebra.row_sums(a.astype(np.float32)))
        square = _linear_algebra.product(np.ascontiguousarray(a.T), a)
        yield from (square, _linear_algebra.product(a, b), *_linear_algebra.eigen(square))
        yield _linear_algebra.inverse(square + 1000 * np.eye(n))
        yield _linear_algebra.gram(a, quotients(rng, 33))
        yield _linear_algebra.mixture_weights(np.ascontiguousarray(b / 50), np.full(n, 1 / n), 0.5, 9)
        indptr, indices, counts, (_, n_words) = corpus(60, 40)
        yield _linear_algebra.sparse_product(
            indptr.astype(np.int64), indices, counts.astype(float), quotients(rng, (n_words, n))
        )


def noise():
    yield keystream(KEY, 1, 2, 3, 40)
    for i in range(1, 50):
        yield from (expm1(i * 2**57, i), rough(i / 100))


def tokens():
    """Return (document_starts, words) of the corpus, one entry a token."""
    indptr, indices, counts, _ = corpus(60, 40)
    return np.append(0, np.cumsum(counts))[indptr], np.repeat(indices, counts)


def sequential():
    starts, words = tokens()
    token_noise = np.random.default_rng(0).integers(-2, 3, (2, len(words))).astype(float)
    for noise in ((), (np.inf, *token_noise)):
        topics, n_topics = (np.arange(len(words)) % 7).astype(np.uint16), 7
        documents, table = np.zeros((60, n_topics)), np.zeros((40, n_topics))
        np.add.at(documents, (np.repeat(np.arange(60), np.diff(starts)), topics), 1)
        np.add.at(table, (words, topics), 1)
        totals, alpha = table.sum(axis=0), np.full(n_topics, 0.1)
        sequential_sweep(starts, words, topics, documents, table, totals, alpha, 0.01, 1, 2, *noise)
        yield from (topics, documents, table)
    sums = np.zeros((2, len(words)))
    for turn in range(3):
        yield sequential_sweep_monitored(
            starts, words, topics, documents, table, totals, alpha, 0.01, 1, turn, 9.0, *sums
        )
    yield from (topics, sums)


def released():
    starts, words = tokens()
    order_tokens(starts, words, KEY)
    for n_topics in (1, 5, 70):
        rng, topics, counts = np.random.default_rng(0), np.zeros(len(words), np.uint16), np.zeros((40, n_topics), int)
        table = rng.integers(1, 1000, counts.shape, np.uint32)
        released_sweep(starts, words, topics, table, np.full(n_topics, 0.1), quotients(rng, n_topics), 1000, KEY, 1, 1)
        count_topics(words, topics, counts)
        yield from (words, topics, counts)


def partition():
    indptr, indices, counts, (n_units, n_words) = corpus(60, 40)
    kept = truncate(indptr, indices, counts.astype(float), 5, 1)
    share = (2**20 // np.arange(1, n_words + 2)).astype(np.int64)
    total = np.zeros(n_words, np.int64)
    share_equally(indptr, indices, (np.arange(n_words) % 3 > 0).astype(np.uint8), share, total)
    yield from (kept, indices, total)
    back = np.arange(n_words) / n_words
    reroute(indptr, indices, np.ones(n_words, np.uint8), share, back, share * 0.4, total := np.zeros(n_words, np.int64))
    yield total
    for give in (fill_gaussian, fill_first, fill_level):
        give(indptr, indices, np.arange(n_units)[::-1].copy(), 9 << 20, 1 << 20, total := np.zeros(n_words, np.int64))
        yield total


def reports():
    indptr, indices, _, (_, n_words) = corpus(60, 40)
    survival = np.uint64(2**63) >> np.arange(40, dtype=np.uint64)  # each position has a mark with probability 1/2
    slots = (np.arange(4096, dtype=np.uint64) << np.uint64(52)) + np.uint64(2**52 - 1)
    guide = (survival[:, None] > slots).sum(axis=0).astype(np.uint16)
    for asymmetric, most in ((False, 0), (True, 0), (True, 3)):
        bits = randomize(indptr, indices, n_words, KEY, survival, guide, asymmetric, most, 1)
        yield from (bits, *positions(bits))


def normal_law():
    x = quotients(np.random.default_rng(0), 1000)
    for function in (mills, ndtr, log_ndtr):
        yield from (function(x), function(-x), function(x / 999))
    yield from (ndtri(x / 1000), ndtri(1 / (1 + x)))


def words():
    rng, known = np.random.default_rng(0), Words(["iron", "große"])
    texts = [" ".join(rng.choice(["iron", "Zinc", "große", "ΣΟΦΟΣ", "2nd", "_", "𐐀𐐁"], 20)) for _ in range(30)]
    reader = TextReader(known, Words(["zinc"]), least=1, most=2)
    reader.read(tuple(texts))
    reader.read((texts[0],))
    numbers, sizes = reader.take()
    yield from (numbers, sizes, *tally(numbers, sizes, len(known)), Words(["a", "iron"]).merge(known))
    yield np.frombuffer("\n".join(known.names()).encode(), np.uint8)


KERNELS = (
    arithmetic, normal_law, linear_algebra, gibbs, listed, expected, variational, mixture_weights, fold_ins,
    held_out, mixture, segments, noise, sequential, released, partition, reports, words,
)  # fmt: skip

if __name__ == "__main__":
    for kernel in KERNELS:
        digest = hashlib.sha256()
        for part in kernel():
            digest.update(np.ascontiguousarray(part).tobytes())
        print(f"{kernel.__name__} {digest.hexdigest()[:16]}")  # noqa: T201
