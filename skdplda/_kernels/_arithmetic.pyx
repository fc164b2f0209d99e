"""Elementary functions, sums and products of matrices whose bits are the same on every processor.

NumPy's `exp`, `log` and sums, SciPy's special functions and every BLAS may differ in the last bit from one processor,
version or number of threads to another. These do not: see arithmetic.h.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t

import numpy as np

from skdplda._kernels._simd cimport choose_simd

__all__ = ["digamma", "dot", "exp", "expm1", "log", "log1p", "product", "sparse_product"]

cdef extern from "arithmetic_dispatch.h" nogil:
    void exp_many(const double *x, double *out, int64_t n)
    void log_many(const double *x, double *out, int64_t n)
    void log1p_many(const double *x, double *out, int64_t n)
    void expm1_many(const double *x, double *out, int64_t n)
    void digamma_many(const double *x, double *out, int64_t n)
    double sum_many(const double *a, const double *b, int64_t n)
    void combine(const double *a, const double *b, double *out, int64_t length, int64_t n, int64_t stride)
    void combine_sparse(const double *a, const int32_t *rows, const double *b, double *out, int64_t length, int64_t n)

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
    return over(exp_many, x)


def log(x):
    """Natural logarithm of x, within 1 ulp; -inf of 0, NaN below.

    Equivalent to: ``np.log(x)``, to 1 ulp
    """
    return over(log_many, x)


def log1p(x):
    """log(1 + x), within 2 ulp.

    Equivalent to: ``np.log1p(x)``, to 2 ulp
    """
    return over(log1p_many, x)


def expm1(x):
    """exp(x) - 1, within 3 ulp.

    Equivalent to: ``np.expm1(x)``, to 3 ulp
    """
    return over(expm1_many, x)


def digamma(x):
    """Logarithmic derivative of the gamma function, of positive numbers; NaN of others.

    Equivalent to: ``scipy.special.digamma(x)``, to 2**-50 of 1 + its absolute value
    """
    return over(digamma_many, x)


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
