"""Elementary functions, sums and products of matrices whose bits are the same on every processor.

NumPy's `exp`, `log` and sums, SciPy's special functions and every BLAS may differ in the last bit from one processor,
version or number of threads to another. These do not: see arithmetic.h.
"""

from cython.parallel cimport prange
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from skdplda._kernels._random_stream cimport random_stream, stream_double, stream_of
from skdplda._kernels._simd cimport choose_simd

__all__ = [
    "digamma", "dot", "eigen", "exp", "expm1", "gamma_rows", "inverse", "log", "log1p", "log_ndtr", "mills", "ndtr",
    "ndtri", "product", "sparse_product",
]

cdef extern from "arithmetic_dispatch.h" nogil:
    void exp_many(const double *x, double *out, int64_t n)
    void log_many(const double *x, double *out, int64_t n)
    void log1p_many(const double *x, double *out, int64_t n)
    void expm1_many(const double *x, double *out, int64_t n)
    void digamma_many(const double *x, double *out, int64_t n)
    void mills_many(const double *x, double *out, int64_t n)
    void ndtr_many(const double *x, double *out, int64_t n)
    void log_ndtr_many(const double *x, double *out, int64_t n)
    void ndtri_many(const double *x, double *out, int64_t n)
    double sum_many(const double *a, const double *b, int64_t n)
    void combine(const double *a, const double *b, double *out, int64_t length, int64_t n, int64_t stride)
    void combine_sparse(const double *a, const int32_t *rows, const double *b, double *out, int64_t length, int64_t n)

    double exp_one(double x)
    double log_one(double x)
    double log1p_one(double x)
    double expm1_one(double x)
    double mills_one(double x)
    double ndtr_one(double x)
    double log_ndtr_one(double x)
    double ndtri_one(double p)

cdef extern from "linear_algebra.h" nogil:
    void tridiagonalize(double *a, double *q, double *d, double *e, double *v, double *w, int64_t n)
    int diagonalize(double *q, double *d, double *e, int64_t n)
    int invert(double *a, double *b, int64_t n)

ctypedef void (*loop)(const double *x, double *out, int64_t n) noexcept nogil

choose_simd()

cdef enum:
    FEW = 8  # columns of a product below which sums run along rows


cdef over(loop function, x):
    """Apply a function to a number or to all numbers of an array; the result has the shape, as float64."""
    values = np.asarray(x, np.float64)
    flat = np.ascontiguousarray(values).reshape(-1)
    found = np.empty(flat.shape)
    cdef const double[::1] given = flat
    cdef double[::1] out = found
    cdef int64_t n = given.shape[0]
    if n:
        with nogil:
            function(&given[0], &out[0], n)
    return found.reshape(values.shape) if values.ndim else float(found[0])


def exp(x):
    """exp(x), within 1 ulp.

    Equivalent to: ``np.exp(x)``, to 1 ulp
    """
    return exp_one(x) if isinstance(x, float) else over(exp_many, x)


def log(x):
    """Natural logarithm of x, within 1 ulp; -inf of 0, NaN below.

    Equivalent to: ``np.log(x)``, to 1 ulp
    """
    return log_one(x) if isinstance(x, float) else over(log_many, x)


def log1p(x):
    """log(1 + x), within 2 ulp.

    Equivalent to: ``np.log1p(x)``, to 2 ulp
    """
    return log1p_one(x) if isinstance(x, float) else over(log1p_many, x)


def expm1(x):
    """exp(x) - 1, within 3 ulp.

    Equivalent to: ``np.expm1(x)``, to 3 ulp
    """
    return expm1_one(x) if isinstance(x, float) else over(expm1_many, x)


def digamma(x):
    """Logarithmic derivative of the gamma function, of positive numbers; NaN of others.

    Equivalent to: ``scipy.special.digamma(x)``, to 2**-50 of 1 + its absolute value
    """
    return over(digamma_many, x)


def mills(x):
    """Mills' ratio of the normal distribution, P(Z > x) over the density at x, within 3 ulp; 6 below 0.

    Equivalent to: ``np.sqrt(np.pi / 2) * scipy.special.erfcx(x / np.sqrt(2))``, to 6 ulp
    """
    return mills_one(x) if isinstance(x, float) else over(mills_many, x)


def ndtr(x):
    """P(Z <= x) of the normal distribution, within 5 ulp.

    Equivalent to: ``scipy.special.ndtr(x)``, to 5 ulp
    """
    return ndtr_one(x) if isinstance(x, float) else over(ndtr_many, x)


def log_ndtr(x):
    """log P(Z <= x) of the normal distribution, within 6 ulp.

    Equivalent to: ``scipy.special.log_ndtr(x)``, to 6 ulp
    """
    return log_ndtr_one(x) if isinstance(x, float) else over(log_ndtr_many, x)


def ndtri(p):
    """The x with P(Z <= x) = p, within 2**-50 of 1 + its absolute value; NaN outside [0, 1].

    Equivalent to: ``scipy.special.ndtri(p)``, to 2**-50 of 1 + its absolute value
    """
    return ndtri_one(p) if isinstance(p, float) else over(ndtri_many, p)


def dot(const double[::1] a, const double[::1] b=None):
    """Sum of a vector, or of the products of two.

    Equivalent to: ``a.sum() if b is None else a @ b``, in the order of `sum_row` in arithmetic_loops.h
    """
    cdef int64_t n = a.shape[0]
    if b is not None and b.shape[0] != n:
        raise ValueError("a and b must have the same length")
    if not n:
        return 0.0
    return sum_many(&a[0], NULL if b is None else &b[0], n)


def product(const double[:, ::1] a, const double[:, ::1] b, int n_threads=1):
    """Product of two matrices. Each of its numbers is added up in the order of the columns of `a`.

    With fewer than eight columns of `b` they are added up in eight parts, as in `dot`.

    Equivalent to: ``a @ b``, in this order
    """
    cdef int64_t i, j, n = a.shape[0], length = a.shape[1], m = b.shape[1]
    if b.shape[0] != length:
        raise ValueError("a must have as many columns as b has rows")
    found = np.zeros((n, m))
    if not n or not m or not length:
        return found
    cdef double[:, ::1] out = found
    cdef const double[:, ::1] columns
    if m < FEW:
        columns = np.ascontiguousarray(np.asarray(b).T)
        for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
            for j in range(m):
                out[i, j] = sum_many(&a[i, 0], &columns[j, 0], length)
    else:
        for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
            combine(&a[i, 0], &b[0, 0], &out[i, 0], length, m, m)
    return found


def sparse_product(
    const int64_t[::1] indptr, const int32_t[::1] indices, const double[::1] data, const double[:, ::1] b,
    int n_threads=1,
):
    """Product of a sparse matrix of rows with a matrix, added up in the order of the entries of each row.

    Equivalent to: ``csr_matrix((data, indices, indptr)) @ b``, in this order. Indices are not checked.
    """
    cdef int64_t i, n = indptr.shape[0] - 1, m = b.shape[1]
    found = np.zeros((n, m))
    if not n or not m or not b.shape[0]:
        return found
    cdef double[:, ::1] out = found
    for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
        if indptr[i] < indptr[i + 1]:
            combine_sparse(&data[indptr[i]], &indices[indptr[i]], &b[0, 0], &out[i, 0], indptr[i + 1] - indptr[i], m)
    return found


def eigen(matrix):
    """Eigenvalues of a symmetric matrix, ascending, and vectors as rows; the largest number of each is positive.

    Equivalent to: ``np.linalg.eigh(matrix)``, the second transposed, but for rounding and for signs
    """
    scratch = np.array(matrix, np.float64, order="C")
    if scratch.ndim != 2 or scratch.shape[0] != scratch.shape[1] or not scratch.size:
        raise ValueError(f"matrix must be square and not empty; got shape {scratch.shape}")
    size = float(np.abs(scratch).max())
    if not size <= 1e300:
        raise ValueError("matrix must hold finite numbers")
    scratch /= size or 1.0  # squares neither overflow nor vanish
    cdef int64_t n = scratch.shape[0]
    cdef double[:, ::1] a = scratch
    vectors = np.empty((n, n))
    values = np.empty(n)
    room = np.empty((3, n))
    cdef double[:, ::1] q = vectors, rooms = room
    cdef double[::1] d = values
    cdef int done
    with nogil:
        tridiagonalize(&a[0, 0], &q[0, 0], &d[0], &rooms[0, 0], &rooms[1, 0], &rooms[2, 0], n)
        done = diagonalize(&q[0, 0], &d[0], &rooms[0, 0], n)
    if not done:
        raise ArithmeticError("the eigenvalues did not converge")
    order = np.argsort(values, kind="stable")
    vectors = vectors[order]
    largest = np.abs(vectors).argmax(axis=1)
    vectors *= np.where(vectors[np.arange(n), largest] < 0, -1.0, 1.0)[:, None]
    return values[order] * (size or 1.0), vectors


def inverse(matrix):
    """Inverse of a positive definite matrix.

    Equivalent to: ``np.linalg.inv(matrix)``, but for rounding
    """
    found = np.array(matrix, np.float64, order="C")
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not found.size:
        raise ValueError(f"matrix must be square and not empty; got shape {found.shape}")
    room = np.empty_like(found)
    cdef double[:, ::1] a = found, b = room
    if not invert(&a[0, 0], &b[0, 0], a.shape[0]):
        raise ArithmeticError("the matrix is not positive definite")
    return found


cdef void fill_gamma(uint64_t seed, int64_t row, double shape, float *out, int64_t n) noexcept nogil:
    """Numbers of the Gamma distribution of mean 1. Source: Marsaglia and Tsang (2000), ACM TOMS 26(3)."""
    cdef random_stream stream = stream_of(seed, 0, row)
    cdef double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d), x = 0, y = 0, square, v, u, spare = 0
    cdef int64_t j = 0
    cdef bint spared = False
    while j < n:
        if shape == 1:
            out[j] = -log_one(1 - stream_double(&stream))
            j += 1
            continue
        if spared:  # the polar method makes two normal numbers at a time
            x = spare
        else:
            square = 0
            while not 0 < square < 1:
                x = 2 * stream_double(&stream) - 1
                y = 2 * stream_double(&stream) - 1
                square = x * x + y * y
            v = sqrt(-2 * log_one(square) / square)
            x, spare = x * v, y * v
        spared = not spared
        v = 1 + c * x
        if v <= 0:
            continue
        v = v * v * v
        u = 1 - stream_double(&stream)
        square = x * x
        if u < 1 - 0.0331 * square * square or log_one(u) < 0.5 * square + d * (1 - v + log_one(v)):
            out[j] = d * v / shape
            j += 1


def gamma_rows(uint64_t seed, double shape, int64_t n_rows, int64_t n_columns, int n_threads=1):
    """Independent numbers of the Gamma distribution of a shape of at least 1 and mean 1, row by row.

    Equivalent to: ``rng.gamma(shape, 1 / shape, (n_rows, n_columns)).astype(np.float32)``, in law
    """
    if not shape >= 1:
        raise ValueError(f"shape must be at least 1; got {shape!r}")
    found = np.empty((n_rows, n_columns), np.float32)
    cdef float[:, ::1] out = found
    cdef int64_t i
    if n_columns:
        for i in prange(n_rows, nogil=True, num_threads=n_threads, schedule="static"):
            fill_gamma(seed, i, shape, &out[i, 0], n_columns)
    return found
