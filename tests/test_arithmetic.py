"""Arithmetic with the same bits on every machine: it is right, and its order is the one that is written."""

import math
from functools import reduce
from operator import add

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from internals import arithmetic
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest

mpmath.mp.dps = 40


def errors(function, exact, numbers):
    """Return the largest error in units in the last place."""
    found = function(numbers)
    true = [exact(mpmath.mpf(float(x))) for x in numbers]
    steps = [np.spacing(abs(float(t))) for t in true]
    return max(
        float(abs(mpmath.mpf(float(y)) - t)) / step for y, t, step in zip(found, true, steps, strict=True) if t != 0
    )


# Elementary functions. Numbers of all sizes, and near the points where ways of computing meet.

RNG = np.random.default_rng(0)
SMALL = np.concatenate([RNG.uniform(-1, 1, 500), 1e-5 * RNG.uniform(-1, 1, 200), [0.5, -0.5, 0.3466, -0.3466]])
ALL = np.concatenate([RNG.uniform(-700, 700, 500), SMALL])
POSITIVE = np.concatenate(
    [np.array([2.0]) ** RNG.uniform(-1000, 1000, 300), RNG.uniform(0.5, 2, 700), [5e-324, 1e-310]]
)


@pytest.mark.parametrize(
    ("name", "numbers", "most"),
    [
        ("exp", ALL, 1.0),
        ("log", POSITIVE, 1.0),
        ("log1p", np.concatenate([np.maximum(SMALL, -0.999), POSITIVE[POSITIVE < 1e300]]), 2.0),
        ("expm1", np.concatenate([SMALL, RNG.uniform(-40, 700, 300)]), 3.0),
    ],
)
def test_elementary_functions_are_within_their_errors(name, numbers, most):
    assert errors(getattr(arithmetic, name), getattr(mpmath, name), numbers) < most


def test_digamma():
    x = np.concatenate([POSITIVE[(POSITIVE > 1e-5) & (POSITIVE < 1e9)], RNG.uniform(0.001, 20, 500)])
    true = np.array([float(mpmath.digamma(float(v))) for v in x])
    assert (np.abs(arithmetic.digamma(x) - true) <= 2.0**-49 * (1 + np.abs(true))).all()
    assert np.isnan(arithmetic.digamma([0.0, -1.0, math.nan])).all()


def test_elementary_functions_at_their_ends():
    ends = np.array([math.inf, -math.inf, math.nan, 0.0, -0.0, -1.0, 709.9, 710.1, -745.2, -800.0])
    with np.errstate(all="ignore"):
        for name in ("exp", "log", "expm1", "log1p"):
            assert_allclose(getattr(arithmetic, name)(ends), getattr(np, name)(ends), rtol=1e-15, err_msg=name)


def test_functions_take_numbers_and_arrays_of_any_shape():
    assert isinstance(arithmetic.exp(1), float)
    assert arithmetic.log(np.ones((2, 0, 3))).shape == (2, 0, 3)
    a = np.arange(1.0, 25).reshape(2, 3, 4)[:, ::2, ::-1]
    assert_array_equal(arithmetic.log(a), [[[arithmetic.log(x) for x in row] for row in part] for part in a.tolist()])


@pytest.mark.parametrize("exponent", [0.5, 0.25, -0.25, -0.5, 0.7, -2.5])
def test_powers(exponent):
    x = POSITIVE[(POSITIVE > 1e-60) & (POSITIVE < 1e60)]
    assert_allclose(arithmetic.power(x, exponent), x**exponent, rtol=1e-13)
    assert arithmetic.power(0.0, exponent) == (0 if exponent > 0 else math.inf)
    assert arithmetic.power(4.0, 0.5) == 2


def test_geomspace():
    assert_allclose(arithmetic.geomspace(0.02, 1, 25), np.geomspace(0.02, 1, 25), rtol=1e-14)
    assert_array_equal(arithmetic.geomspace(1, 37.5, 9)[[0, -1]], [1, 37.5])


# Sums and products: equal to numpy's but for rounding, and to the same sums in the order that is written


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
def test_totals(axis, dtype):
    a = RNG.integers(-99, 99, (5, 7, 9)).astype(dtype)  # whole numbers: exact
    for keepdims in (False, True):
        assert_array_equal(arithmetic.total(a, axis, keepdims), a.sum(axis, dtype=np.float64, keepdims=keepdims))
        assert_allclose(arithmetic.mean(a, axis, keepdims), a.mean(axis, dtype=np.float64, keepdims=keepdims))
    assert_array_equal(arithmetic.total(a[:, 0], axis=0), a[:, 0].sum(axis=0))
    assert arithmetic.total(a[0, 0]) == a[0, 0].sum()
    assert arithmetic.total([]) == 0


def test_totals_of_sparse_matrices():
    X = sp.random_array((30, 20), density=0.2, format="csr", rng=RNG)
    for axis in (None, 0, 1):
        assert_allclose(arithmetic.total(X, axis), X.sum(axis))


def eight_parts(numbers):
    parts = [reduce(add, numbers[i::8], 0.0) for i in range(8)]  # sum() compensates from Python 3.12 on
    pairs = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return (pairs[0] + pairs[1]) + (pairs[2] + pairs[3])


def test_sums_are_in_the_order_that_is_written():
    a, b = RNG.standard_normal((6, 53)), RNG.standard_normal((53, 11))
    assert arithmetic.total(a[0]) == eight_parts(a[0].tolist())
    assert arithmetic.matmul(a[0], b[:, 0]) == eight_parts((a[0] * b[:, 0]).tolist())
    assert_array_equal(arithmetic.total(a, axis=1), [eight_parts(row.tolist()) for row in a])
    assert_array_equal(arithmetic.total(a, axis=0), np.cumsum(a, axis=0)[-1])
    product = np.cumsum(a[:, :, None] * b, axis=1)[:, -1]
    assert_array_equal(arithmetic.matmul(a, b), product)
    assert_array_equal(arithmetic.matmul(sp.csr_array(a), b), product)
    weights = RNG.random(53)
    assert_array_equal(
        np.triu(arithmetic.gram(a.T, weights)),
        np.triu(np.cumsum((weights[:, None] * a.T)[:, :, None] * a.T[:, None], axis=0)[-1]),
    )


@pytest.mark.parametrize("n", [1, 7, 8, 31, 32, 33, 100])
def test_products(n):
    a, b = RNG.standard_normal((9, 40)), RNG.standard_normal((40, n))
    for n_threads in (1, 2, 5):
        assert_array_equal(arithmetic.matmul(a, b, n_threads), arithmetic.matmul(a, b))
    assert_allclose(arithmetic.matmul(a, b), a @ b, atol=1e-12)
    assert_allclose(arithmetic.matmul(a[0], b), a[0] @ b, atol=1e-12)
    assert_allclose(arithmetic.matmul(a, b[:, 0]), a @ b[:, 0], atol=1e-12)
    X = sp.random_array((9, 40), density=0.2, format="csc", rng=RNG)
    assert_allclose(arithmetic.matmul(X, b), X @ b, atol=1e-12)
    assert_allclose(arithmetic.matmul(X, b[:, 0]), X @ b[:, 0], atol=1e-12)
    weights = RNG.random(40)
    gram = arithmetic.gram(b, weights)
    assert_allclose(gram, (b * weights[:, None]).T @ b, atol=1e-12)
    assert_array_equal(gram, gram.T)
    assert arithmetic.matmul(a[:0], b).shape == (0, n)
    with pytest.raises(ValueError, match="must have"):
        arithmetic.matmul(a, b[1:])
    with pytest.raises(ValueError, match="must have"):
        arithmetic.matmul(X, b[1:])


# Small matrices


@pytest.mark.parametrize("n", [1, 2, 3, 17, 60])
def test_eigenvectors(n):
    for rank in {1, n // 2 + 1, n}:
        a = RNG.standard_normal((n, rank))
        a = 1e-3 * a @ a.T
        values, vectors = arithmetic.eigen(a)
        assert_allclose(values, np.linalg.eigvalsh(a), atol=1e-15 * n)
        assert_allclose(vectors @ vectors.T, np.eye(n), atol=1e-13)
        assert_allclose(vectors.T * values @ vectors, a, atol=1e-15 * n)
        assert (vectors[np.arange(n), np.abs(vectors).argmax(axis=1)] > 0).all()


@pytest.mark.parametrize("seed", [10, 46, 89, 240, 1519])
def test_eigenvectors_of_few_rows(seed):
    rng = np.random.default_rng(seed)  # a step of each met numbers that could get no smaller beside the largest
    n = rng.integers(5, 31)
    rows, weights = rng.standard_normal((n, 100)), rng.dirichlet(np.full(n, 0.3))
    rows -= weights @ rows
    a = arithmetic.gram(rows, weights)
    values, vectors = arithmetic.eigen(a)
    size = values[-1]
    assert_allclose(values, np.linalg.eigvalsh(a), atol=1e-14 * size)
    assert_allclose(vectors @ vectors.T, np.eye(100), atol=1e-13)
    assert_allclose(vectors.T * values @ vectors, a, atol=3e-14 * size)


@pytest.mark.parametrize("seed", [10, 151, 172])
def test_eigenvectors_of_what_rounding_leaves(seed):
    rng = np.random.default_rng(seed)  # squares of a reflection vanished, but for a number without a finite inverse
    n = rng.integers(2, 60)
    vector = rng.standard_normal(100)
    weights = np.sqrt(rng.pareto(1, n) + 1e-9)
    weights /= weights.sum()
    rows = np.tile(vector, (n, 1))
    a = arithmetic.gram(rows - weights @ rows, weights)
    values, vectors = arithmetic.eigen(a)
    assert_allclose(vectors @ vectors.T, np.eye(100), atol=1e-13)
    assert_allclose(vectors.T * values @ vectors, a, atol=1e-13 * np.abs(a).max())


def test_eigenvectors_of_extremes():
    for size in (1e-200, 1.0, 1e150):
        values, vectors = arithmetic.eigen(size * np.diag([3.0, 1.0, 1.0, 2.0]))
        assert_allclose(values, size * np.array([1.0, 1.0, 2.0, 3.0]))
        assert_allclose(np.abs(vectors[2:]), [[0, 0, 0, 1], [1, 0, 0, 0]])
    assert_array_equal(arithmetic.eigen(np.zeros((3, 3)))[0], 0)
    for bad in (np.ones((2, 3)), np.ones((0, 0)), [[math.nan]], [[math.inf]]):
        with pytest.raises(ValueError, match="matrix must"):
            arithmetic.eigen(bad)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_inverses(n):
    a = RNG.standard_normal((n, n))
    a = a @ a.T + np.eye(n)
    assert_allclose(arithmetic.inverse(a) @ a, np.eye(n), atol=1e-11)
    with pytest.raises(ArithmeticError, match="not positive definite"):
        arithmetic.inverse(a - 1e6 * np.eye(n))
    with pytest.raises(ValueError, match="square"):
        arithmetic.inverse(a[:, :0])


def test_orthonormal_rows():
    a = RNG.standard_normal((20, 31))
    rows = arithmetic.orthonormal(a)
    assert_allclose(rows @ rows.T, np.eye(20), atol=1e-14)
    assert (np.diag(a @ rows.T) > 0).all()
    assert_array_equal(arithmetic.orthonormal(np.zeros((2, 3))), 0)
    rows = arithmetic.orthonormal([a[0], a[1], a[0] - 3 * a[1], a[2]])
    assert_array_equal(rows[2], 0)
    assert_allclose(rows @ rows.T, np.diag([1, 1, 0, 1]), atol=1e-14)


def test_a_bracket_ends_where_a_condition_does():
    asked = []

    def condition(x):
        asked.append(x)
        return x * x <= 2

    low, high = arithmetic.bracket(condition, 0.0, 0.1)
    assert low * low <= 2 < high * high and high == math.nextafter(low, 2)
    assert arithmetic.bracket(condition, 0.0, 1.0, most=1.0) == (math.nextafter(1.0, 0), 1.0)  # the end is not asked
    del asked[:]
    low, high = arithmetic.bracket(condition, 1.0, 2.0, rtol=1e-3)
    assert low * low <= 2 < high * high and high - low <= 2e-3 and len(asked) < 15
    low, high = arithmetic.bracket(lambda x: False, 0.0, 1.0, rtol=1e-9, atol=1e-3)
    assert low == 0 and high <= 1e-3
    assert arithmetic.bracket(lambda x: True, 0.0, 1.0, most=100.0)[1] >= 100


# Laws. Fixed seeds; a right sampler would fail with probability 1e-6.


@pytest.mark.parametrize("shape", [1.0, 2.5, 10.0, 300.0])
def test_gamma(shape):
    found = arithmetic.gamma_rows(11, shape, 200, 300)
    assert found.dtype == np.float32
    assert kstest(found.ravel().astype(np.float64), "gamma", (shape, 0, 1 / shape)).pvalue > 1e-6
    assert_array_equal(arithmetic.gamma_rows(11, shape, 100, 300, 3), found[:100])
    with pytest.raises(ValueError, match="at least 1"):
        arithmetic.gamma_rows(0, 0.5, 1, 1)


def test_normal():
    found = arithmetic.normal(np.random.default_rng(3), (200, 300))
    assert found.shape == (200, 300)
    assert kstest(found.ravel(), "norm").pvalue > 1e-6
    assert np.abs(np.corrcoef(found[:, ::2].ravel(), found[:, 1::2].ravel())[0, 1]) < 5 / math.sqrt(found.size / 2)
