"""Print a digest of what each kernel computes, to compare processors' paths, compilers and machines.

Inputs are whole numbers and their quotients, and nothing here needs a mathematical library, so that equal digests mean
that the kernels agree to the last bit. `python tests/kernel_bits.py` prints one line a kernel.
"""

import hashlib
from itertools import product

import numpy as np

from skdplda._kernels._foldin import fold_in
from skdplda._kernels._gibbs import TokenBlocks
from skdplda._kernels._mixture import word_sums
from skdplda._kernels._noise import keystream
from skdplda._kernels._variational import e_step, expected_topics
from skdplda._kernels._zeta import zeta


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
        for dtype, own, seed in ((np.int32, 1.0, 1), (np.int32, 0.0, 2), (np.float32, 1.0, 3)):
            rng = np.random.default_rng(seed)
            indptr, indices, counts, (n_documents, n_words) = corpus(60, 40)
            blocks = TokenBlocks(indptr.astype(np.int64), indices, counts, n_words, n_topics)
            alpha = quotients(rng, n_topics, np.float32)
            alpha /= 50 if seed < 3 else 50_000  # far below one unit, proposals fail
            table, counts_now = (
                rng.integers(0, 90, (n_words, n_topics)).astype(dtype),
                np.zeros((n_words, n_topics), np.int32),
            )
            active = None
            for round_ in range(3):
                blocks.sweep(table, alpha, 0.01, own, 2, seed, round_, active)
                yield blocks.topics
                blocks.move(counts_now)
                table = counts_now.astype(dtype)
                active = (np.arange(n_documents) % 3 > 0).astype(np.uint8) if round_ else None


def variational():
    for n_topics in (1, 16, 40, 130, 200):
        rng = np.random.default_rng(n_topics)
        indptr, indices, counts, (n_documents, n_words) = corpus(60, 40)
        table = quotients(rng, (n_words, n_topics), np.float32)
        expected = expected_topics(table, quotients(rng, n_topics), 0.1)
        yield expected
        ways = [(0, -1.0, False), (0, 0.05, False), (1 << 20, 0.05, True)]
        for (norm, cut, weighted), collapsed in product(ways, (False, True)):
            out = np.zeros((n_words, n_topics), np.int64)
            state = np.full((n_documents, n_topics), -1, np.float32)
            word_weight = quotients(rng, n_words, np.float32) if weighted else None
            n = e_step(indptr.astype(np.int64), indices, counts, np.arange(n_documents), expected,
                       np.full(n_topics, 0.1, np.float32), None, 1 << 12, norm, 20, 1e-4, cut, out,
                       word_weight=word_weight, state=state, collapsed=collapsed)  # fmt: skip
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


def mixture():
    rng = np.random.default_rng(0)
    indptr, indices, counts, (n_units, _) = corpus(40, 60)
    r = quotients(rng, (60, 9))
    for dtype in (np.int64, np.float64):
        out = np.empty((n_units, 9), dtype)
        word_sums(indptr.astype(np.int64), indices, counts.astype(float), r, out, 1)
        yield out


def noise():
    yield keystream(np.arange(8, dtype=np.uint32), 1, 2, 3)


if __name__ == "__main__":
    for kernel in (gibbs, variational, mixture_weights, fold_ins, mixture, noise):
        digest = hashlib.sha256()
        for part in kernel():
            digest.update(np.ascontiguousarray(part).tobytes())
        print(f"{kernel.__name__} {digest.hexdigest()[:16]}")  # noqa: T201
