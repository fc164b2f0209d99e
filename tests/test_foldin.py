"""The fold-in kernel against its numpy reference."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from skdplda._kernels._foldin import fold_in


def reference(X, phi, alpha, max_iter, tol):
    """One document at a time, as the kernel's docstring writes it."""
    theta = np.empty((X.shape[0], phi.shape[1]))
    for d in range(X.shape[0]):
        w, c = np.flatnonzero(X[d]), X[d][X[d] > 0]
        weight = alpha + c.sum() / phi.shape[1]
        for _ in range(max_iter if len(w) else 0):
            new = alpha + weight * ((c / (phi[w] @ weight)) @ phi[w])
            if (abs(new - weight) <= tol * weight).all():
                break
            weight = new
        theta[d] = weight / weight.sum()
    return theta


def problem(n_documents=40, n_words=60, n_topics=7, seed=0, dtype=np.float64):
    """Return counts (some documents empty), a word-major table and an asymmetric prior."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.4, (n_documents, n_words)).astype(np.int32)
    X[::9] = 0
    phi = rng.dirichlet(np.full(n_words, 0.1), n_topics).T + 1e-6
    return X, np.ascontiguousarray(phi / phi.sum(axis=0), dtype=dtype), rng.uniform(0.05, 1.5, n_topics)


def run(X, phi, alpha, max_iter=100, tol=1e-4, n_threads=1, counts=np.int32):
    X = sp.csr_matrix(X)
    return fold_in(X.indptr, X.indices, X.data.astype(counts), phi, alpha, max_iter, tol, n_threads)


@pytest.mark.parametrize("n_topics", [1, 2, 4, 7, 13])
@pytest.mark.parametrize("max_iter, tol", [(0, 0.0), (1, 0.0), (20, 0.0), (100, 1e-2)])
def test_equals_reference(n_topics, max_iter, tol):
    X, phi, alpha = problem(n_topics=n_topics)
    theta = run(X, phi, alpha, max_iter, tol)
    assert theta.dtype == np.float64
    assert_allclose(theta, reference(X, phi, alpha, max_iter, tol), rtol=1e-10)


def test_single_precision():
    X, phi, alpha = problem(dtype=np.float32)
    theta = run(X, phi, alpha)
    assert theta.dtype == np.float32
    assert_allclose(theta.sum(axis=1), 1, rtol=1e-6)
    assert_allclose(theta, run(X, phi.astype(float), alpha), atol=1e-3)


@pytest.mark.parametrize("counts", [np.float32, np.float64])
def test_type_of_counts_does_not_matter(counts):
    X, phi, alpha = problem()
    assert_array_equal(run(X, phi, alpha, counts=counts), run(X, phi, alpha))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batches_and_threads_do_not_matter(dtype):
    X, phi, alpha = problem(n_documents=300, dtype=dtype)
    whole = run(X, phi, alpha)
    for n_threads in (2, 3, 4):
        assert_array_equal(run(X, phi, alpha, n_threads=n_threads), whole)
    assert_array_equal(np.vstack([run(X[i : i + 1], phi, alpha) for i in range(300)]), whole)
    assert_array_equal(run(X[::-1], phi, alpha)[::-1], whole)


def test_a_slice_of_a_larger_matrix():
    X, phi, alpha = problem()
    S = sp.csr_matrix(X)
    part = fold_in(S.indptr[10:21], S.indices, S.data, phi, alpha, 100, 1e-4, 1)
    assert_array_equal(part, run(X, phi, alpha)[10:20])


def test_empty_document_gets_the_prior_mean():
    X, phi, alpha = problem()
    assert_allclose(run(X, phi, alpha)[0], alpha / alpha.sum(), rtol=1e-12)
    assert run(X[:0], phi, alpha).shape == (0, 7)
    assert_allclose(run(X[:1], phi, alpha), [alpha / alpha.sum()], rtol=1e-12)


def test_result_is_a_fixed_point():
    X, phi, alpha = problem()
    theta = run(X, phi, alpha, max_iter=20_000, tol=1e-9)
    for d in np.flatnonzero(X.sum(axis=1)):
        r = phi * theta[d]
        n = X[d] @ (r / r.sum(axis=1, keepdims=True))
        assert_allclose((n + alpha) / (n + alpha).sum(), theta[d], rtol=1e-6)


def test_word_that_no_topic_produces_is_ignored():
    X, phi, alpha = problem()
    phi[3] = 0
    X[:, 3] = 5
    theta = run(X, phi, alpha, tol=1e-10, max_iter=5000)
    assert np.isfinite(theta).all()
    X[:, 3] = 0
    assert_allclose(theta, run(X, phi, alpha, tol=1e-10, max_iter=5000), rtol=1e-6)


def test_arguments_are_left_alone_and_may_be_read_only():
    X, phi, alpha = problem()
    X = sp.csr_matrix(X)
    arrays = [X.indptr, X.indices, X.data, phi, alpha]
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    fold_in(*arrays, 100, 1e-4, 1)
    for array, copy in zip(arrays, copies, strict=True):
        assert_array_equal(array, copy)
