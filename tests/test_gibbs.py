"""The Gibbs sweeps against the exact law of a small document, and the book-keeping against numpy."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import shifted
from internals import TokenBlocks
from numpy.testing import assert_array_equal
from scipy.stats import binomtest, chi2

UNASSIGNED = 65535


def blocks(X, n_topics, **options):
    X = sp.csr_matrix(X)
    X.sort_indices()
    counts = X.data.astype(np.int32)
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    return TokenBlocks(indptr, indices, counts, X.shape[1], n_topics, **options)


def conditional(w, others, was, table, alpha, beta, self_count):
    """The law of one draw, as the docstring of `sweep` writes it."""
    row = table[w] + beta
    if was is not None:
        row[was] = max(row[was] - self_count, beta)
    n = np.bincount([z for z in others if z != UNASSIGNED], minlength=len(alpha))
    p = row / (table.sum(0) + len(table) * beta) * (n + alpha)
    return p / p.sum()


def law(words, start, was, table, alpha, beta, self_count):
    """Probability of each outcome of one sweep over a document: an array of shape (K,) * n_tokens."""
    K, n = table.shape[1], len(words)
    p = np.empty((K,) * n)
    partial = {(): 1.0}
    for i in range(n):
        following = {}
        for done, mass in partial.items():
            draw = conditional(words[i], [*done, *start[i + 1 :]], was[i], table, alpha, beta, self_count)
            following.update({(*done, k): mass * draw[k] for k in range(K)})
        partial = following
    for outcome, mass in partial.items():
        p[outcome] = mass
    return p


def assert_follows(z, p, level=1e-6):
    """Chi-square of the rows of `z` (one document each) against the law `p`; rare outcomes are pooled."""
    K, n = p.shape[0], p.ndim
    code = np.ravel_multi_index(tuple(z.T), (K,) * n)
    seen, expected = np.bincount(code, minlength=K**n), p.ravel() * len(z)
    rare = expected < 10
    seen, expected = np.append(seen[~rare], seen[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    seen, expected = seen[expected > 5], expected[expected > 5]
    assert seen.sum() > 0.9 * len(z)
    if len(seen) > 1:
        assert chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1) > level


def tables(n_words, n_topics, dtype, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.gamma(0.3, 10, (n_words, n_topics))
    return np.ascontiguousarray(np.round(table) if dtype == np.int32 else table, dtype=dtype)


# Topics: below one vector, one vector exactly, across it, whole groups of vectors, beyond the dense sweep.
SIZES = [(1, 2), (3, 3), (2, 4), (16, 2), (17, 2), (32, 2), (40, 2), (65, 2), (150, 2), (257, 2), (520, 2), (2050, 1)]


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("K, n_tokens", SIZES)
def test_exact_law(K, n_tokens, dtype):
    """Many copies of one document are many draws from the law: first sweep, later sweep, and two sweeps."""
    D, beta, words = 60_000, 0.05, [1, 3, 1, 1][:n_tokens]  # a word's first token, then second ones
    rng = np.random.default_rng(K)
    alpha = rng.uniform(0.05, 1.5, K).astype(np.float32)
    table = tables(5, K, dtype, seed=K)
    X = np.tile(np.bincount(words, minlength=5), (D, 1))
    b = blocks(X, K)
    exact = table.astype(float)
    b.sweep(table, alpha, beta, 1.0, 1, shifted(7), 0)
    nothing = [None] * n_tokens
    assert_follows(b.topics.reshape(D, -1), law(words, [UNASSIGNED] * n_tokens, nothing, exact, alpha, beta, 0.0))

    start = [int(np.argmax(table[w])) for w in words]
    for self_count in (0.0, 1.0, 1e9):  # a self-count beyond the table's leaves beta
        b.set_topics(np.tile(np.array(start, np.uint16), D))
        b.sweep(table, alpha, beta, self_count, 1, shifted(8), 3)
        once = law(words, start, start, exact, alpha, beta, self_count)
        assert_follows(b.topics.reshape(D, -1), once)
        stayed = (b.topics.reshape(D, -1) == start).sum(axis=0)  # rare where a token leaves itself out, and then pooled
        for i, k in enumerate(start):
            probability = float(np.moveaxis(once, i, 0)[k].sum())
            assert binomtest(int(stayed[i]), D, min(probability, 1.0)).pvalue > 1e-6
    if K <= 17:
        b.set_topics(np.tile(np.array(start, np.uint16), D))
        b.sweep(table, alpha, beta, 1.0, 2, shifted(9), 3)
        once = law(words, start, start, exact, alpha, beta, 1.0)
        middle = itertools.product(range(K), repeat=n_tokens)
        twice = sum(once[z] * law(words, list(z), start, exact, alpha, beta, 1.0) for z in middle)
        assert_follows(b.topics.reshape(D, -1), twice)


@pytest.mark.parametrize("scale, self_count", [(1e-4, 1.0), (3e-3, 0.0), (1e5, 1.0)])
def test_exact_law_where_proposals_fail(scale, self_count):
    """Priors far from the whole units that proposals are made of: nearly all are rejected, or no unit fits."""
    D, K, beta, words = 60_000, 6, 1e-3, [1, 3]
    alpha = (scale * np.array([1, 2, 0.5, 7, 1, 1])).astype(np.float32)
    table = np.array([[0] * 6, [1, 0, 300, 2, 0, 1], [5] * 6, [0, 2, 1, 0, 0, 9000]], np.int32)
    b = blocks(np.tile(np.bincount(words, minlength=4), (D, 1)), K)
    start = [3, 1]
    b.set_topics(np.tile(np.array(start, np.uint16), D))
    b.sweep(table, alpha, beta, self_count, 1, shifted(7), 0)
    p = law(words, start, start, table.astype(float), alpha.astype(float), beta, self_count)
    assert_follows(b.topics.reshape(D, -1), p)


@pytest.mark.parametrize("K", [257, 300, 514, 560])
def test_neighbours_in_memory_do_not_matter(K):
    """The last group of vectors is not whole: the weights behind a row, another document's, would overflow the sum."""
    n, alpha = 24_000, np.full(K, 0.01, np.float32)
    last = K // 32 * 32 if K % 32 else K - 32
    pairs = np.array([[last, last + (K % 32 > 1)], [0, 1]])
    table = np.zeros((2, K), np.int32)
    for w in (0, 1):
        table[w, pairs[w]] = 10**6
        alpha[pairs[w]] = 8000 if pairs[w][0] != pairs[w][1] else 8700
    b = blocks(n * np.eye(2, dtype=int), K)
    b.set_topics(np.concatenate([np.resize(pair, n) for pair in pairs]))
    b.sweep(table, alpha, 0.01, 0.0, 1, shifted(7), 0)
    for w, topics in enumerate(b.topics.reshape(2, n)):
        assert np.isin(topics, pairs[w]).mean() > 0.99


def test_long_document():
    """A document of more tokens than a small integer counts."""
    X = np.array([[40_000, 3], [2, 1]])
    b, counts = rounds(X, 3)
    assert counts.sum() == X.sum()
    resumed = blocks(X, 3)
    resumed.set_topics(b.topics)
    assert_array_equal(resumed.topics, b.topics)


def corpus(D=300, V=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(0.3, 2, V), (D, V))
    X[::11] = 0
    return X


def places(X, K):
    """(document, word) of each token in the order of `topics`, and its occurrence."""
    d, w = np.nonzero(X)
    c = X[d, w]
    d, w, occurrence = np.repeat(d, c), np.repeat(w, c), np.concatenate([np.arange(n) for n in c])
    together = 32 if K <= 2048 else 1
    order = np.lexsort((w, occurrence, w // together, d))
    return d[order], w[order], occurrence[order]


def rounds(X, K, n_rounds=4, n_threads=1, dtype=np.int32, sweeps=1, **options):
    b = blocks(X, K, n_threads=n_threads, **options)
    counts = np.zeros((X.shape[1], K), np.int32)
    table, alpha = tables(X.shape[1], K, np.float32), np.linspace(0.05, 0.4, K).astype(np.float32)
    for r in range(n_rounds):
        table = counts.astype(dtype) if r else table
        b.sweep(table, alpha, 0.02, float(r > 0), sweeps, 5, r, None, n_threads)
        b.move(counts, n_threads)
    return b, counts


@pytest.mark.parametrize("K", [1, 3, 40, 150, 600, 2100])
@pytest.mark.parametrize("sweeps", [1, 3])
def test_same_bits_for_threads_and_blocks(K, sweeps):
    X = corpus()
    b, counts = rounds(X, K, sweeps=sweeps)
    for n_threads, size in [(2, 0), (4, 0), (1, 7), (3, 50), (2, 1)]:
        other, other_counts = rounds(X, K, n_threads=n_threads, sweeps=sweeps, block_documents=size)
        assert_array_equal(other.topics, b.topics)
        assert_array_equal(other_counts, counts)


@pytest.mark.parametrize("K", [1, 3, 40, 150, 257, 300, 520, 2048])
@pytest.mark.parametrize("dtype, prior", [(np.int32, 0.1), (np.float32, 0.23), (np.int32, 1e-3)])
def test_the_vector_sweep_is_the_scalar_reference(K, dtype, prior):
    """Bit for bit, sweep after sweep; priors that are whole in proposals, that are not, and that make them fail."""
    rng = np.random.default_rng(K)
    X = corpus(60 if K < 500 else 26)
    X[7] = rng.poisson(9, 80)  # documents of another kind, by their lengths
    X[23] = rng.poisson(60, 80)
    vectors, scalar = blocks(X, K), blocks(X, K, n_threads=2)
    table, counts = tables(80, K, dtype), np.zeros((80, K), np.int32)
    alpha = (prior * rng.integers(1, 4, K)).astype(np.float32)
    active = None
    for round_, self_count in enumerate((0.0, 1.0, 1.0, 3.5, 0.0)):
        for b, reference in ((vectors, False), (scalar, True)):
            b.sweep(table, alpha, 0.02, self_count, 2, 5, round_, active, reference=reference)
        assert_array_equal(vectors.topics, scalar.topics)
        if round_ != 1:  # once, tokens have other topics than in the table
            scalar.move(counts.copy())
            vectors.move(counts)
            table = counts.astype(dtype)
        active = rng.integers(0, 2, len(X)).astype(np.uint8) if round_ == 2 else None


@pytest.mark.parametrize("K", [3, 40, 600, 2100])
def test_counts_are_the_sum(K):
    X = corpus()
    d, w, _ = places(X, K)
    b, counts = rounds(X, K, n_threads=2, block_documents=64)
    expected = np.zeros_like(counts)
    np.add.at(expected, (w, b.topics), 1)
    assert_array_equal(counts, expected)
    expected = np.zeros((len(X), K), np.float32)
    np.add.at(expected, (d, b.topics), 1)
    assert_array_equal(b.document_topics(), expected)
    weight = (np.arange(len(X)) % 3 * 2**20).astype(np.int32)
    expected = np.zeros(counts.shape, np.int64)
    np.add.at(expected, (w, b.topics), weight[d])
    for n_threads in (1, 2):
        out = np.full(counts.shape, -5)
        b.sum_weighted(out, weight, n_threads)
        assert_array_equal(out, expected)


@pytest.mark.parametrize("K", [3, 40, 600, 2100])
def test_only_active_documents_move(K):
    X = corpus()
    b, counts = rounds(X, K)
    before, d = b.topics, places(X, K)[0]
    active = (np.arange(len(X)) % 4 == 1).astype(np.uint8)
    alpha = np.full(K, 0.1, np.float32)
    everyone = blocks(X, K)
    everyone.set_topics(before)
    b.sweep(counts, alpha, 0.01, 1.0, 1, 3, 9, active)
    everyone.sweep(counts, alpha, 0.01, 1.0, 1, 3, 9)
    assert_array_equal(b.topics, np.where(active[d] > 0, everyone.topics, before))
    assert (b.topics != before).any()


@pytest.mark.parametrize("K", [3, 40, 600, 2100])
def test_topics_round_trip(K):
    """A run that stops and resumes has the bits of one that does not."""
    X = corpus()
    b, counts = rounds(X, K)
    resumed, again = blocks(X, K, block_documents=13), counts.copy()
    resumed.set_topics(b.topics)
    for x, table in ((b, counts), (resumed, again)):
        x.sweep(table.copy(), np.full(K, 0.1, np.float32), 0.01, 1.0, 2, 1, 4)
        x.move(table)
    assert_array_equal(resumed.topics, b.topics)
    assert_array_equal(again, counts)


def test_int_and_float_tables_and_totals_agree():
    X = corpus()
    b, _ = rounds(X, 20)
    other, _ = rounds(X, 20, dtype=np.float32)
    assert_array_equal(other.topics, b.topics)
    table, alpha = tables(80, 20, np.int32), np.full(20, 0.1, np.float32)
    b.sweep(table, alpha, 0.01, 0.0, 1, 0, 0)
    other.sweep(table, alpha, 0.01, 0.0, 1, 0, 0, totals=table.sum(0))
    assert_array_equal(other.topics, b.topics)


def test_seed_and_round_matter():
    X = corpus()
    table, alpha = tables(80, 20, np.int32), np.full(20, 0.1, np.float32)
    seen = set()
    for seed, round_ in [(0, 0), (1, 0), (0, 1)]:
        b = blocks(X, 20)
        b.sweep(table, alpha, 0.01, 0.0, 1, seed, round_)
        seen.add(b.topics.tobytes())
    assert len(seen) == 3


@pytest.mark.parametrize("K", [1, 20, 600])
@pytest.mark.parametrize("X", [np.zeros((0, 3)), np.zeros((4, 3)), np.eye(3)[:1], 5 * np.eye(4)])
def test_almost_nothing(X, K):
    b, counts = rounds(X.astype(int), K)
    assert counts.sum() == b.n_tokens == X.sum() == len(b.topics)
    assert b.nbytes >= 6 * b.n_tokens


def test_memory():
    X = np.random.default_rng(0).poisson(2, (2000, 200))
    b = blocks(X, 50)
    assert b.nbytes < 8 * b.n_tokens


def test_errors():
    one = np.ones(2, np.int32)
    start, words = np.array([0, 2], np.int64), np.array([0, 1], np.int32)
    for bad, match in [
        ((start, np.array([0, 3], np.int32), one, 3, 2), "n_words"),
        ((start, np.array([0, -1], np.int32), one, 3, 2), "n_words"),
        ((start, np.array([1, 1], np.int32), one, 3, 2), "twice"),
        ((start, words, -one, 3, 2), "negative"),
        ((start, words, one[:1], 3, 2), "length"),
        ((start + 1, words, one, 3, 2), "indptr"),
        ((start, words, one, 3, 0), "n_topics"),
        ((start, words, one, 3, 65535), "n_topics"),
        ((start, words, one, 0, 2), "n_words"),
    ]:
        with pytest.raises(ValueError, match=match):
            TokenBlocks(*bad)
    b = TokenBlocks(start, words, one, 3, 2)
    table, alpha = np.ones((3, 2), np.int32), np.ones(2, np.float32)
    good = {"table": table, "alpha": alpha, "beta": 0.1, "self_count": 0.0, "n_sweeps": 1, "seed": 0, "round_": 0}
    for change in [
        {"table": table[:2]},
        {"alpha": alpha[:1]},
        {"alpha": 0 * alpha},
        {"beta": 0.0},
        {"self_count": -1.0},
        {"active": np.ones(2, np.uint8)},
        {"table": table.astype(float)},
        {"totals": np.ones(3)},
    ]:
        with pytest.raises(ValueError):
            b.sweep(**{**good, **change})
    with pytest.raises(ValueError, match="shape"):
        b.move(np.zeros((3, 3), np.int32))
    with pytest.raises(ValueError, match="one number a document"):
        b.sum_weighted(table.astype(np.int64), np.ones(3, np.int32))
    with pytest.raises(ValueError, match="one entry"):
        b.set_topics([0])
    with pytest.raises(ValueError, match=r"\[0, n_topics\)"):
        b.set_topics([0, 2])
    with pytest.raises(ValueError, match="tokens"):
        TokenBlocks(start, words, np.full(2, 2**22, np.int32), 3, 2)


@pytest.mark.parametrize("K", [3, 40, 600, 2100])
@pytest.mark.parametrize("prior", [0.01, 0.1])
def test_a_long_document_does_not_change_the_draws_of_others(K, prior):
    """Bit for bit, wherever documents of other lengths stand: Lemma 2 of the theory of rounds."""
    rng = np.random.default_rng(1)
    X = rng.poisson(0.4, (60, 100))
    X[7] = rng.poisson(9, 100)  # of some 900 tokens
    table, alpha = tables(100, K, np.int32), np.full(K, prior, np.float32)

    def drawn(rows, **options):
        b = blocks(np.array(rows), K, **options)
        sums = np.zeros((2, 100, K), np.int64)
        for r in range(2):
            b.sweep(table, alpha, 0.02, float(r), 2, 5, r)
            b.sum_weighted(sums[r], np.array([1] * len(X) + [0] * (len(rows) - len(X)), np.int32))
        return b.topics[: X.sum()], sums, b.document_topics()[: len(X)]

    alone = drawn(X)
    for n in (600, 4000, 40_000):
        more = np.bincount(rng.integers(100, size=n), minlength=100)
        for rows in ([*X, more], [*X, *X[:3], more, X[0]]):
            for options in ({}, {"n_threads": 2, "block_documents": 8}):
                for before, after in zip(alone, drawn(rows, **options), strict=True):
                    assert_array_equal(after, before)


def test_exact_law_in_long_documents():
    """One draw for the only token of a word, given all others: in each kind of document the law of its own counts."""
    K, beta, D = 5, 0.05, 4000
    table, alpha = tables(2, K, np.int32, seed=4), np.array([0.1, 0.02, 0.5, 0.1, 1.3], np.float32)
    # All others stay in this topic, which the word has hardly ever: of a document, 0.00001 tokens at most do not.
    table[0], table[1] = [10**9, 0, 0, 0, 0], 10**4 * (table[1] + 1)
    row = (table[1] + beta) / (table.sum(0) + 2 * beta)
    for n, copies in ((600, D), (4000, 1000), (12_000, 400), (30_000, 400)):
        b = blocks(np.tile([n, 1], (copies, 1)), K)
        b.set_topics(np.zeros(b.n_tokens, np.uint16))
        b.sweep(table, alpha, beta, 0.0, 1, shifted(7), 0)
        topics = b.topics.reshape(copies, n + 1)
        assert (topics == 0).mean() > 0.99
        p = row * (np.array([n, 0, 0, 0, 0]) + alpha)
        assert_follows(topics[:, [1 if n <= 24_000 else n]], p / p.sum())  # second of its group, or the last word


def test_a_long_document_is_drawn_among_short_ones():
    """Counts, weighted sums, documents' topics and the way back, where documents of all kinds alternate."""
    rng = np.random.default_rng(3)
    X = np.array([rng.multinomial(n, [0.05] * 20) for n in (30, 30_000, 700, 0, 26_000, 5, 4000, 11_000, 300)])
    b, counts = rounds(X, 12, n_threads=2)
    other, other_counts = rounds(X, 12, block_documents=1)
    assert_array_equal(counts.sum(1), X.sum(0))
    assert_array_equal(counts, other_counts)
    assert_array_equal(b.topics, other.topics)
    assert_array_equal(b.document_topics().sum(1), X.sum(1))
    resumed = blocks(X, 12)
    resumed.set_topics(b.topics)
    assert_array_equal(resumed.document_topics(), b.document_topics())
    active = np.array([1, 0, 1, 0, 1, 0, 1, 0, 1], np.uint8)
    for x in (b, resumed):
        x.sweep(counts, np.full(12, 0.1, np.float32), 0.01, 0.0, 1, 5, 9, active)
    assert_array_equal(resumed.topics, b.topics)
    still = np.repeat(active == 0, X.sum(1))
    assert_array_equal(b.topics[still], other.topics[still])
    assert (b.topics != other.topics)[~still].any()
