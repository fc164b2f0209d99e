"""The variational kernel: the function it rests on, its steps against numpy, its bound, its independence."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from internals import MIN_EXP_DIGAMMA, e_step, exp_digamma, expected_topics
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma


def arrays_of(X):
    X = sp.csr_array(np.asarray(X))
    return X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.int32)


def reference(X, expected, alpha, grid, max_iter, tol):
    """Return (sum on the grid, iterations) as the kernel's docstring has it, in double precision."""
    K = len(alpha)
    total, iterations = np.zeros((X.shape[1], K), np.int64), 0
    for d, row in enumerate(X):
        (w,) = np.nonzero(row)
        if not len(w):
            continue
        c, E = row[w], expected[w, :K].astype(float)
        state = alpha + c.sum() / K
        for _ in range(max_iter):
            theta = np.maximum(np.exp(digamma(state)), MIN_EXP_DIGAMMA)
            share = E * theta / (E @ theta)[:, None] * c[:, None]
            before, state = state, alpha + share.sum(0)
            iterations += 1
            if abs(state - before).mean() <= tol:
                break
        total[w] += np.floor(np.broadcast_to(grid, len(X))[d] * share).astype(np.int64)
    return total, iterations


def step(X, expected, alpha, *, weight=None, token_weight=1 << 12, norm=0, max_iter=50, tol=1e-4, cut=0.0,
         documents=None, n_threads=1, **options):  # fmt: skip
    """Call the kernel on a dense corpus; return the sum and the number of iterations."""
    out = np.zeros((X.shape[1], len(alpha)), np.int64)
    documents = np.arange(len(X)) if documents is None else np.asarray(documents, np.int64)
    weight = None if weight is None else np.asarray(weight, np.int32)
    n = e_step(*arrays_of(X), documents, expected, np.asarray(alpha, np.float32), weight, token_weight,
               norm, max_iter, tol, cut, out, n_threads, **options)  # fmt: skip
    return out, n


def corpus(D=40, V=30, rate=0.6, seed=0):
    X = np.random.default_rng(seed).poisson(rate, (D, V))
    X[3] = 0
    return X


def topics(V, K, seed=1):
    table = np.random.default_rng(seed).gamma(0.3, 20.0, (V, K)).astype(np.float32)
    scale = 1 / np.exp(digamma(table.sum(0) + 0.1 * V).astype(float)) * table.sum(0).mean()
    return expected_topics(table, scale, 0.1), table, scale


def test_exp_digamma():
    x = np.concatenate([np.logspace(-6, 11, 20001), np.linspace(0.01, 20, 4001)]).astype(np.float32)
    exact = np.maximum(np.exp(digamma(x.astype(float))), MIN_EXP_DIGAMMA)
    found = exp_digamma(x)
    assert (found > 0).all()
    far = exact > 2 * MIN_EXP_DIGAMMA  # near it, the bound is on part of the sum
    assert_allclose(found[far], exact[far], rtol=1e-5)
    assert found[~far].max() < 3 * MIN_EXP_DIGAMMA
    assert found.min() > MIN_EXP_DIGAMMA / 3


@pytest.mark.parametrize("K", [1, 16, 37])
def test_expected_topics(K):
    found, table, scale = topics(50, K)
    exact = np.maximum(np.exp(digamma(table.astype(float) + 0.1)), MIN_EXP_DIGAMMA) * scale
    assert_allclose(found[:, :K], exact, rtol=1e-5)
    assert not found[:, K:].any()
    assert found.ctypes.data % 64 == 0
    assert_array_equal(expected_topics(table, scale, 0.1, n_threads=3), found)


@pytest.mark.parametrize("K", [1, 5, 16, 40, 130, 200])
@pytest.mark.parametrize("max_iter", [1, 4])
def test_steps_are_those_of_numpy(K, max_iter):
    X, (expected, _, _), alpha = corpus(), topics(30, K), np.linspace(0.1, 0.5, K)
    weight = np.arange(len(X)) * 1000 + 7
    total, iterations = reference(X, expected, alpha, weight, max_iter, 2e-5)
    out, n = step(X, expected, alpha, weight=weight, max_iter=max_iter, tol=2e-5, cut=-1.0)
    assert n == iterations
    assert abs(out - total).max() <= 1 + 2e-4 * total.max()


@pytest.mark.parametrize("K", [3, 40])
def test_a_document_goes_on_from_its_state(K):
    """One iteration twice is two iterations; rows that are not asked for keep their state."""
    X, (expected, _, _), alpha = corpus(), topics(30, K), np.linspace(0.5, 0.9, K)
    some, state = np.arange(0, len(X), 2), np.full((len(X), K), -1.0, np.float32)
    options = {"documents": some, "cut": -1.0, "tol": 0.0}
    for _ in range(2):
        out, _ = step(X, expected, alpha, max_iter=1, state=state, **options)
    at_once, _ = step(X, expected, alpha, max_iter=2, **options)
    assert abs(out - at_once).max() <= 1 + 1e-5 * out.max()
    assert (state[1::2] == -1).all()
    assert_allclose(state[some].sum(1), X[some].sum(1), rtol=1e-5)
    dropped, _ = step(X, expected, alpha, max_iter=40, state=state.copy(), documents=some, cut=1e-3)
    kept, _ = step(X, expected, alpha, max_iter=40, state=state, documents=some, cut=-1.0)
    assert abs(dropped - kept).max() <= 1 + 0.02 * kept.max()


def test_words_are_weighted_before_the_norm():
    X, (expected, _, _), alpha = corpus()[:1], topics(30, 4), np.full(4, 0.1)
    weight, norm = np.linspace(0.2, 5, 30, dtype=np.float32), 1 << 20
    plain, _ = step(X, expected, alpha, norm=norm)
    out, _ = step(X, expected, alpha, norm=norm, word_weight=weight)
    assert (1 - 1e-4) * norm <= np.linalg.norm(out.astype(float)) <= norm
    weighted = plain * weight[:, None]
    assert_allclose(out, weighted * norm / np.linalg.norm(weighted), atol=3, rtol=1e-4)
    with pytest.raises(ValueError, match="word_weight must have one number a word, state shape"):
        step(X, expected, alpha, norm=norm, word_weight=weight[1:])


@pytest.mark.parametrize("K", [3, 90])
@pytest.mark.parametrize("cut", [0.0, 1e-2])
def test_a_document_depends_on_itself_alone(K, cut):
    X, (expected, _, _), alpha = corpus(60, 40), topics(40, K), np.full(K, 0.1)
    whole, _ = step(X, expected, alpha, cut=cut)
    single = sum(step(X, expected, alpha, cut=cut, documents=[d])[0] for d in range(60))
    assert_array_equal(single, whole)
    order = np.random.default_rng(0).permutation(60)
    for n_threads in (1, 2, 5):
        assert_array_equal(step(X, expected, alpha, cut=cut, documents=order, n_threads=n_threads)[0], whole)
    assert_array_equal(step(X[order], expected, alpha, cut=cut)[0], whole)


@pytest.mark.parametrize("K", [2, 16, 100])
def test_dropped_topics_change_little(K):
    X, (expected, _, _), alpha = corpus(100, 40), topics(40, K), np.full(K, 0.1)
    kept, _ = step(X, expected, alpha, tol=1e-3)
    dropped, _ = step(X, expected, alpha, cut=1e-2, tol=1e-3)
    assert abs(kept - dropped).sum() < 0.03 * kept.sum()


def adversarial(K):
    """Return tables, some with values that are no numbers, infinite or zero, and documents."""
    rng = np.random.default_rng(0)
    tables = [
        topics(8, K)[0],
        expected_topics(np.zeros((8, K), np.float32), np.ones(K), 1e-3),
        expected_topics(np.full((8, K), 1e30, np.float32), np.full(K, 1e8), 1e-3),
        expected_topics(rng.gamma(0.01, 1e6, (8, K)).astype(np.float32), np.ones(K), 1e-30),
    ]
    for value in (np.nan, np.inf, 0.0):
        tables.append(topics(8, K)[0])
        tables[-1][2:4] = value
    documents = np.array([[9999, 0, 0, 0, 0, 0, 0, 0], [1] * 8, [10**6] * 8, [0] * 8, [0, 0, 1, 2, 3, 4, 0, 0]])
    return tables, documents


@pytest.mark.parametrize("K", [1, 2, 33])
def test_no_word_gets_more_than_its_weight(K):
    """Adversarial tables and documents: integers of a word sum to weight times count at most; that bounds the norm."""
    tables, documents = adversarial(K)
    for expected in tables:
        for row in documents:
            weight = int(2**20 / max(1, np.linalg.norm(row)))
            for max_iter in (1, 50):
                out, _ = step(row[None], expected, np.full(K, 1e-3), weight=[weight], max_iter=max_iter)
                assert out.min() >= 0
                assert (out.sum(axis=1) <= weight * row).all()
                assert sum(int(n) ** 2 for n in out.ravel()) <= 2**40


@pytest.mark.parametrize("K", [1, 2, 33])
@pytest.mark.parametrize("norm", [1, 1000, 2**20])
def test_scaled_documents_have_the_norm_and_no_more(K, norm):
    tables, documents = adversarial(K)
    documents[2] = 2**31 - 1
    for i, expected in enumerate(tables):
        for row in documents:
            for max_iter in (1, 50):
                out, _ = step(row[None], expected, np.full(K, 1e-3), norm=norm, max_iter=max_iter)
                assert out.min() >= 0
                assert sum(int(n) ** 2 for n in out.ravel()) <= norm**2
                if i in (0, 1, 3) and norm == 2**20:
                    assert np.linalg.norm(out) == pytest.approx(norm if row.any() else 0, rel=1e-3)


UNITS, ORDER = np.array([0, 1, 4, 4, 30, 40]), np.random.default_rng(5).permutation(40)  # of the corpus


@pytest.mark.parametrize("K", [1, 16, 37])
@pytest.mark.parametrize("options", [{}, {"collapsed": True}, {"cut": 0.05, "max_iter": 20}], ids=str)
def test_documents_of_a_unit_are_scaled_together(K, options):
    """A unit of one document is that document, to the last bit; others are the sum of what theirs would be unscaled."""
    X, (expected, _, _), alpha, norm = corpus(), topics(30, K), np.full(K, 0.2), 1 << 20
    options = {"word_weight": np.linspace(0.2, 5, 30, dtype=np.float32)} | options
    alone, _ = step(X, expected, alpha, norm=norm, **options)
    units = np.arange(len(X) + 1)
    assert_array_equal(step(X, expected, alpha, norm=norm, units=units, **options)[0], alone)
    for first, last in pairwise(UNITS):
        members = ORDER[first:last]
        got, _ = step(X, expected, alpha, norm=norm, documents=members, units=np.array([0, len(members)]), **options)
        soft = sum((step(X, expected, alpha, token_weight=1 << 20, documents=[d], **options)[0] for d in members), 0.0)
        soft = soft * options["word_weight"].astype(float)[:, None]
        assert_allclose(got, np.broadcast_to(norm * soft / max(np.linalg.norm(soft), 1e-300), got.shape), atol=30)
        assert sum(int(n) ** 2 for n in got.ravel()) <= norm**2
        assert np.linalg.norm(got) >= 0.9999 * norm or not X[members].any()


@pytest.mark.parametrize("collapsed", [False, True])
def test_a_unit_depends_on_itself_alone(collapsed):
    X, (expected, _, _), norm = corpus(), topics(30, 5), 1 << 20
    states = np.random.default_rng(2).poisson(0.4, (40, 5)).astype(np.float32)
    options = {"norm": norm, "collapsed": collapsed, "max_iter": 9, "alpha": np.full(5, 0.2)}

    def found(n_threads, *chosen):
        members = [ORDER[UNITS[u] : UNITS[u + 1]] for u in chosen]
        ends = np.cumsum([0, *map(len, members)])
        state, members = states.copy(), np.concatenate([[], *members]).astype(int)
        return step(X, expected, documents=members, units=ends, state=state, n_threads=n_threads, **options)[0]

    parts = [found(1, u) for u in range(5)]
    assert parts[1].any() and parts[3].any() and not parts[2].any()
    for n_threads in (1, 3):
        assert_array_equal(found(n_threads, 4, 3, 2, 1, 0), sum(parts))
        assert_array_equal(found(n_threads, 1, 3), parts[1] + parts[3])


@pytest.mark.parametrize("K", [1, 2, 33])
@pytest.mark.parametrize("norm", [1, 1000, 2**20, 2**24])
def test_scaled_units_have_the_norm_and_no_more(K, norm):
    tables, documents = adversarial(K)
    documents[2] = 2**31 - 1
    for expected in tables:
        for members in (documents, documents[::-1], np.repeat(documents[1:3], 40, axis=0)):
            for collapsed in (False, True):
                out, _ = step(
                    members,
                    expected,
                    np.full(K, 1e-3),
                    norm=norm,
                    units=np.array([0, len(members)]),
                    collapsed=collapsed,
                )
                assert out.min() >= 0
                assert sum(int(n) ** 2 for n in out.ravel()) <= norm**2


@pytest.mark.parametrize("units", [[0, 1], [0, 3, 2], [1, 2], [0, 3, 1, 2], []], ids=str)
def test_units_divide_the_documents(units):
    expected, X = topics(5, 3)[0], np.ones((2, 5), int)
    with pytest.raises(ValueError, match="units must divide the documents"):
        step(X, expected, np.full(3, 0.1), norm=1, units=np.array(units, np.int64))
    with pytest.raises(ValueError, match="need a norm"):
        step(X, expected, np.full(3, 0.1), units=np.array([0, 2]))


def test_scaling_keeps_the_responsibilities():
    X, (expected, _, _), alpha = corpus(4, 30)[:1], topics(30, 7), np.full(7, 0.2)
    plain, _ = step(X, expected, alpha, token_weight=1 << 20)
    scaled, _ = step(X, expected, alpha, norm=1 << 20)
    assert_allclose(scaled / (1 << 20), plain / np.linalg.norm(plain), atol=3e-5)


def test_large_counts_fit_the_grid():
    expected, row = topics(4, 3)[0], np.array([[2**30, 0, 5, 0]])
    out, _ = step(row, expected, np.full(3, 0.1), token_weight=1 << 12)
    assert_allclose(out.sum(axis=1), 4096.0 * row[0], rtol=1e-4, atol=3)


def test_misuse_is_refused():
    expected, X = topics(5, 3)[0], np.ones((2, 5), int)
    for bad in ({"alpha": np.full(17, 0.1)}, {"alpha": np.zeros(3)}, {"weight": [1]}, {"max_iter": 0}):
        with pytest.raises(ValueError):
            step(X, expected, **{"alpha": np.full(3, 0.1), **bad})
    with pytest.raises(ValueError, match="one number a topic"):
        expected_topics(np.ones((3, 2), np.float32), np.ones(3), 0.1)


@pytest.mark.parametrize("norm", [2**20, 2**24])
def test_sums_of_many_documents_do_not_overflow(norm):
    """Rows are added in 32 bits, and go to the sum before as many documents have a word as could overflow them."""
    X = np.zeros((5000, 2), int)
    X[:, 0], X[::7, 1] = 3, 1
    expected, _, _ = topics(2, 1)
    alone, _ = step(X[:8], expected, [0.5], norm=norm)
    with_both, _ = step(X[:1], expected, [0.5], norm=norm)
    one = (alone - with_both - step(X[7:8], expected, [0.5], norm=norm)[0]) // 6
    both = (X[:, 1] > 0).sum()
    total, _ = step(X, expected, [0.5], norm=norm)
    assert_array_equal(total, both * with_both + (5000 - both) * one)
    assert total.max() > 2**31


def collapsed_reference(X, expected, alpha, *, weight=None, norm=0, max_iter, tol, state=None, word_weight=None,
                        relaxation=1.0):  # fmt: skip
    """Return (sum on the grid, iterations, state) of CVB0 as the kernel's docstring has it, in double precision."""
    K = len(alpha)
    total, iterations = np.zeros((X.shape[1], K)), 0
    after = np.full((len(X), K), -1.0) if state is None else state.astype(float)
    for d, row in enumerate(X):
        (w,) = np.nonzero(row)
        if not len(w):
            continue
        c, E = row[w], expected[w, :K].astype(float)
        gamma = alpha + (c.sum() / K if after[d, 0] < 0 else after[d])
        for i in range(max_iter):
            soft = E * gamma / (E @ gamma)[:, None]
            soft = E * np.maximum(gamma - soft, alpha)
            soft = soft / soft.sum(1)[:, None] * c[:, None]
            previous, gamma = gamma, alpha + soft.sum(0)
            if i + 1 < max_iter:
                gamma = np.maximum(previous + relaxation * (gamma - previous), alpha)
            iterations += 1
            if abs(gamma - previous).mean() <= tol:
                break
        after[d] = gamma - alpha
        if word_weight is not None:
            soft = soft * word_weight[w][:, None]
        total[w] += np.floor((norm / np.linalg.norm(soft) if norm else weight[d]) * soft)
    return total, iterations, after


@pytest.mark.parametrize("K", [1, 5, 16, 40, 130, 200])
@pytest.mark.parametrize("max_iter", [1, 4])
def test_collapsed_steps_are_those_of_numpy(K, max_iter):
    X, (expected, _, _), alpha = corpus(), topics(30, K), np.linspace(0.1, 0.5, K)
    weight = np.arange(len(X)) * 1000 + 7
    total, iterations, _ = collapsed_reference(X, expected, alpha, weight=weight, max_iter=max_iter, tol=2e-5)
    out, n = step(X, expected, alpha, weight=weight, max_iter=max_iter, tol=2e-5, cut=-1.0, collapsed=True)
    assert n == iterations
    assert abs(out - total).max() <= 1 + 2e-4 * total.max()
    plain, _ = step(X, expected, alpha, weight=weight, max_iter=max_iter, tol=2e-5, cut=-1.0)
    assert K == 1 or abs(out - plain).max() > 0.01 * total.max()  # it is another step


@pytest.mark.parametrize("K", [3, 40, 130])
@pytest.mark.parametrize("relaxation", [1.0, 1.6])
def test_collapsed_documents_go_on_from_their_state(K, relaxation):
    """Twice, from a state and with the weights of words, to a norm; rows that are not asked for keep their state."""
    X, (expected, _, _), alpha = corpus(), topics(30, K), np.linspace(0.05, 0.4, K)
    X = X[X.sum(axis=1) > 0]
    some = np.arange(0, len(X), 2)
    options = {"norm": 1 << 20, "word_weight": np.linspace(0.2, 5, 30, dtype=np.float32), "max_iter": 3, "tol": 0.0,
               "relaxation": relaxation}  # fmt: skip
    state, known = np.full((len(X), K), -1.0, np.float32), None
    for _ in range(2):
        total, _, known = collapsed_reference(X[some], expected, alpha, state=known, **options)
        out, _ = step(X, expected, alpha, documents=some, state=state, cut=-1.0, collapsed=True, **options)
        assert_allclose(state[some], known, rtol=1e-3, atol=2e-4)
        assert abs(out - total).max() <= len(some) + 5e-4 * total.max()
    assert (state[1::2] == -1).all()
    assert_allclose(state[some].sum(axis=1), X[some].sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("collapsed", [False, True])
def test_relaxed_steps_come_to_the_same_place_sooner(collapsed):
    """In 0.68 of the steps (over 150 seeds with deviation 0.01). With a smaller alpha there may be several places."""
    X, (expected, _, _), alpha = corpus(), topics(30, 5), np.ones(5)
    options = {"collapsed": collapsed, "cut": -1.0}
    plain, slow = step(X, expected, alpha, max_iter=5000, tol=1e-5, **options)
    relaxed, fast = step(X, expected, alpha, max_iter=5000, tol=1e-5, relaxation=1.4, **options)
    assert fast < 0.85 * slow
    assert abs(plain - relaxed).max() < 1e-3 * plain.max()


def test_relaxation_must_converge():
    X, (expected, _, _) = corpus(), topics(30, 5)
    for relaxation in (0.9, 2.0, np.nan):
        with pytest.raises(ValueError, match="relaxation"):
            step(X, expected, np.ones(5), relaxation=relaxation)


@pytest.mark.parametrize("K", [3, 90])
@pytest.mark.parametrize("cut", [0.0, 1e-2])
def test_a_collapsed_document_depends_on_itself_alone(K, cut):
    X, (expected, _, _), alpha = corpus(60, 40), topics(40, K), np.full(K, 0.1)
    options = {"cut": cut, "collapsed": True, "norm": 1 << 20}
    whole, _ = step(X, expected, alpha, **options)
    single = sum(step(X, expected, alpha, documents=[d], **options)[0] for d in range(60))
    assert_array_equal(single, whole)
    order = np.random.default_rng(0).permutation(60)
    for n_threads in (2, 5):
        assert_array_equal(step(X, expected, alpha, documents=order, n_threads=n_threads, **options)[0], whole)


@pytest.mark.parametrize("K", [2, 16, 100])
def test_dropped_topics_change_little_in_collapsed_steps(K):
    X, (expected, _, _), alpha = corpus(100, 40), topics(40, K), np.full(K, 0.1)
    kept, _ = step(X, expected, alpha, tol=1e-3, cut=-1.0, collapsed=True)
    dropped, _ = step(X, expected, alpha, cut=1e-2, tol=1e-3, collapsed=True)
    assert abs(kept - dropped).sum() < 0.03 * kept.sum()


@pytest.mark.parametrize("K", [1, 2, 33])
def test_no_collapsed_document_exceeds_its_bounds(K):
    """Adversarial tables and documents, with weights and with a norm."""
    tables, documents = adversarial(K)
    for expected in tables:
        for row in documents:
            weight = int(2**20 / max(1, np.linalg.norm(row)))
            for options in ({"weight": [weight]}, {"norm": 2**20}):
                for max_iter, relaxation in ((1, 1.0), (50, 1.0), (50, 1.9)):
                    state = np.full((1, K), -1.0, np.float32)
                    out, _ = step(row[None], expected, np.full(K, 1e-3), max_iter=max_iter, collapsed=True,
                                  relaxation=relaxation, state=state, **options)  # fmt: skip
                    assert out.min() >= 0
                    assert "norm" in options or (out.sum(axis=1) <= weight * row).all()
                    assert sum(int(n) ** 2 for n in out.ravel()) <= 2**40
                    assert (state >= 0).all() or not row.any()


@pytest.mark.parametrize("collapsed", [False, True])
def test_no_table_makes_cells_of_both_signs(collapsed):
    """The bound of a user's soft counts is on their sum: cells of both signs would pass it at any size."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        K, V = 3, 4
        expected = expected_topics(np.ones((V, K), np.float32), np.ones(K), 0.5, 1)
        expected[:, :K] = rng.standard_normal((V, K)) * 10.0 ** rng.uniform(-3, 3, (V, K))
        out, weight = np.zeros((V, K), np.int64), 1000
        e_step(
            np.array([0, V]), np.arange(V, dtype=np.int32), np.ones(V, np.int32), np.array([0]), expected,
            np.full(K, 0.05, np.float32), None, weight, 0, 5, 0.0, 0.0, out, collapsed=collapsed,
        )  # fmt: skip
        assert out.min() >= 0 and out.sum(axis=1).max() <= weight
