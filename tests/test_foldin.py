"""The fold-in kernel against its numpy reference."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import LEAST_TOLERANCE, fold_in, fold_in_rows, probabilities, word_rows
from numpy.testing import assert_allclose, assert_array_equal


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


def compare_batches_and_threads(run, X, phi, alpha):
    whole = run(X, phi, alpha)
    for n_threads in (2, 3, 4):
        assert_array_equal(run(X, phi, alpha, n_threads=n_threads), whole)
    assert_array_equal(np.vstack([run(X[i : i + 1], phi, alpha) for i in range(len(X))]), whole)
    assert_array_equal(run(X[::-1], phi, alpha)[::-1], whole)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batches_and_threads_do_not_matter(dtype):
    compare_batches_and_threads(run, *problem(n_documents=300, dtype=dtype))


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


# Single precision, with jumps and resting topics


def run_rows(X, phi, alpha, max_iter=1000, tol=1e-4, n_threads=1):
    X = sp.csr_matrix(X)
    rows, _, place = word_rows(np.ascontiguousarray(phi.T), X.indices, n_threads)
    return fold_in_rows(X.indptr, place, X.data, rows, alpha, max_iter, tol, n_threads)


def test_word_rows_are_scaled_columns():
    _, phi, _ = problem(n_topics=13)
    phi[4] = 0  # a word that no topic produces
    indices = np.array([4, 59, 0, 4, 17], np.int32)
    rows, peak, place = word_rows(phi.T, indices)
    assert rows.shape == (4, 16)
    assert rows.dtype == np.float32
    assert_array_equal(place, [1, 3, 0, 1, 2])
    assert_array_equal(peak, phi[[0, 4, 17, 59]].max(axis=1))
    assert_allclose(rows[:, :13] * peak[:, None], phi[[0, 4, 17, 59]], rtol=1e-6)
    assert not rows[:, 13:].any()
    assert_array_equal(word_rows(phi.T, indices, 3)[0], rows)
    phi.flags.writeable = False  # as the topics of a released model are
    assert_array_equal(word_rows(phi.T, indices)[0], rows)


@pytest.mark.parametrize("n_topics", [1, 3, 16, 40, 100, 150])  # less than a vector, one, more than stay in registers
@pytest.mark.parametrize("concentration", [1 / 500, 0.1, 3.0])
def test_jumps_and_rest_keep_the_fixed_point(n_topics, concentration):
    X, phi, alpha = problem(n_topics=n_topics)
    alpha *= concentration
    X[1] *= 1000  # a long document
    exact = fold_in(*csr(X), phi, alpha, 200_000, 1e-10, 1)
    found = run_rows(X, phi, alpha, tol=LEAST_TOLERANCE, max_iter=20_000)
    assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert_allclose(found, exact, atol=1e-3)  # over 30 seeds 0.00003, on the scale of logarithms with deviation 0.7


def csr(X):
    X = sp.csr_matrix(X)
    return X.indptr, X.indices, X.data


def test_jumps_save_iterations():
    X, phi, alpha = problem(n_topics=100)
    exact = fold_in(*csr(X), phi, alpha / 10, 200_000, 1e-10, 1)
    plain = abs(run(X, phi, alpha / 10, 40, 0.0) - exact).sum()
    assert abs(run_rows(X, phi, alpha / 10, 40, LEAST_TOLERANCE) - exact).sum() < plain / 2


@pytest.mark.parametrize("max_iter", [0, 1, 2, 3, 4, 5, 6])
def test_few_iterations_give_proportions(max_iter):
    X, phi, alpha = problem(n_topics=70)
    found = run_rows(X, phi, alpha, max_iter)
    assert (found > 0).all()
    assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    if max_iter < 2:
        assert_allclose(found, reference(X, phi, alpha, max_iter, 0), rtol=1e-5)


def test_rows_do_not_depend_on_batches_and_threads():
    compare_batches_and_threads(run_rows, *problem(n_documents=300, n_topics=40))


def test_rows_of_empty_documents_and_of_words_that_no_topic_produces():
    X, phi, alpha = problem()
    assert_allclose(run_rows(X, phi, alpha)[0], alpha / alpha.sum(), rtol=1e-6)
    assert run_rows(X[:0], phi, alpha).shape == (0, 7)
    assert_allclose(run_rows(X[:1], phi, alpha), [alpha / alpha.sum()], rtol=1e-6)
    phi[3] = 0
    X[:, 3] = 5
    found = run_rows(X, phi, alpha, tol=LEAST_TOLERANCE)
    X[:, 3] = 0
    assert np.isfinite(found).all()
    assert_allclose(found, run_rows(X, phi, alpha, tol=LEAST_TOLERANCE), atol=1e-4)


def test_rare_words_keep_their_odds():
    """Probabilities far below the range of single precision: only their ratios matter."""
    X, phi, alpha = problem()
    assert_allclose(run_rows(X, phi * 1e-200, alpha), run_rows(X, phi, alpha), atol=1e-6)


def test_probabilities_of_words():
    X, phi, alpha = problem(n_topics=40)
    S = sp.csr_matrix(X)
    rows, peak, place = word_rows(phi.T, S.indices)
    theta = np.random.default_rng(0).dirichlet(alpha, len(X))
    expected = (theta @ phi.T)[np.repeat(np.arange(len(X)), np.diff(S.indptr)), S.indices]
    assert_allclose(probabilities(S.indptr, place, rows, peak, theta), expected, rtol=1e-5)
    assert_array_equal(
        probabilities(S.indptr, place, rows, peak, theta, 3), probabilities(S.indptr, place, rows, peak, theta)
    )


def test_rows_of_another_number_of_topics_are_refused():
    X, phi, alpha = problem(n_topics=40)
    S = sp.csr_matrix(X)
    rows, _, place = word_rows(phi.T, S.indices)
    with pytest.raises(ValueError, match="word_rows"):
        fold_in_rows(S.indptr, place, S.data, rows, alpha[:7], 10, 1e-3)
