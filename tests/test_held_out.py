"""The kernel of held-out words: its functions against those of numpy in its docstrings, threads, and misuse."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import held_out_kernel
from numpy.testing import assert_allclose, assert_array_equal


def made(K, A, weighted, seed=0):
    """Return random arguments of `own_rows`, of 30 documents over 20 words; one document is empty."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.7, (30, 20))
    X[3] = 0
    X = sp.csr_array(X)
    entries = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.int32)
    counts, left = rng.gamma(0.5, 9.0, (20, K)) + 0.1, rng.random((20, A))
    theta = rng.dirichlet(np.ones(K), 30)
    return (
        *entries,
        theta,
        counts,
        counts.sum(axis=0),
        left,
        rng.random(30),
        rng.random(20) if weighted else None,
    )


def own_by_numpy(indptr, indices, data, theta, counts, masses, left, scale, word_weights):
    found, A = np.empty((len(indices), theta.shape[1])), left.shape[1]
    for d in range(len(theta)):
        e = slice(indptr[d], indptr[d + 1])
        w, c = indices[e], data[e]
        own = theta[d] * counts[w] / masses
        own *= (c / own.sum(1))[:, None]
        if len(w):
            own *= scale[d] / (1 if word_weights is None else np.linalg.norm(word_weights[w][:, None] * own))
        own[:, :A] *= left[w]
        own[:, A:] = np.minimum(own[:, :A].sum(1) / counts[w, :A].sum(1), 1)[:, None] * counts[w, A:]
        found[e] = own
    return found


@pytest.mark.parametrize(("K", "A"), [(1, 1), (3, 3), (7, 2), (24, 14)])
@pytest.mark.parametrize("weighted", [False, True])
def test_own_parts_are_those_of_numpy(K, A, weighted):
    arguments = made(K, A, weighted)
    found = held_out_kernel.own_rows(*arguments)
    assert_allclose(found, own_by_numpy(*arguments), rtol=1e-12)
    for n_threads in (2, 4):
        assert_array_equal(held_out_kernel.own_rows(*arguments, n_threads=n_threads), found)
    one_row, rows = arguments[6][:1], np.repeat(arguments[6][:1], 20, axis=0)
    found = [held_out_kernel.own_rows(*arguments[:6], left, *arguments[7:]) for left in (one_row, rows)]
    assert_array_equal(*found)


@pytest.mark.parametrize("K", [1, 5, 16, 37])
@pytest.mark.parametrize("blend", [0.5, 1.0])
def test_rows_without_the_own_part_are_those_of_numpy(K, blend):
    indptr, indices, _, _, counts, *_ = made(K, K, False)
    rng, masses, least = np.random.default_rng(1), counts.sum(axis=0), 0.01
    own = 1.2 * rng.random((len(indices), K)) * counts[indices]  # some exceed what is there
    rows, peak, words = held_out_kernel.rows_without(indptr, indices, counts, masses, own, blend, least)
    assert rows.shape == (len(indices), -(-K // 16) * 16) and rows.ctypes.data % 64 == 0 and not rows[:, K:].any()
    for d in range(30):
        e = slice(indptr[d], indptr[d + 1])
        rest = np.maximum(masses - own[e].sum(0), least * masses)
        cells = np.maximum(counts[indices[e]] - own[e], least * counts[indices[e]])
        assert_allclose(words[e], cells.sum(1) / rest.sum(), rtol=1e-12)
        cells = blend * cells / rest + (1 - blend) * words[e][:, None]
        assert_allclose(peak[e], cells.max(1), rtol=1e-12)
        assert_allclose(rows[e, :K], cells / cells.max(1)[:, None], rtol=1e-6)
    for again in (2, 3):
        others = held_out_kernel.rows_without(indptr, indices, counts, masses, own, blend, least, again)
        for one, other in zip((rows, peak, words), others, strict=True):
            assert_array_equal(one, other)


def test_misuse_is_refused():
    arguments = list(made(3, 2, True))
    for place in (3, 4, 5, 6, 7, 8):  # one row short
        wrong = [*arguments[:place], arguments[place][:-1], *arguments[place + 1 :]]
        with pytest.raises(ValueError, match="a row for each document or word"):
            held_out_kernel.own_rows(*wrong)
    own, counts = np.zeros((len(arguments[1]), 3)), arguments[4]
    with pytest.raises(ValueError, match="own must have a row for each entry"):
        held_out_kernel.rows_without(*arguments[:2], counts, counts.sum(axis=0), own[1:], 0.5, 0.01)
