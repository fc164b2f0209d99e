"""Sums, products, eigenvectors and inverses of matrices whose bits are the same on every processor.

Every BLAS, and LAPACK, may differ in the last bit from one processor, version or number of threads to another. These do
not: see arithmetic_loops.h and linear_algebra.h.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t

import numpy as np

from skdplda._kernels._simd cimport choose_simd

__all__ = ["column_sums", "dot", "eigen", "gram", "inverse", "mixture_weights", "product", "row_sums", "sparse_product"]

cdef extern from "arithmetic_dispatch.h" nogil:
    double sum_many(const double *a, const double *b, int64_t n)
    void combine(const double *a, const double *b, double *out, int64_t length, int64_t n, int64_t stride)
    void em_steps(
        const double *likelihood, const double *first, double strength, double *weights, double *room, int64_t m,
        int64_t n, int64_t steps)
    enum: SUM_LANES, EM_BLOCK
    void weighted_gram(const double *a, const double *weights, double *out, int64_t n, int64_t stride)
    void combine_sparse(const double *a, const int32_t *rows, const double *b, double *out, int64_t length, int64_t n)

cdef extern from "linear_algebra.h" nogil:
    void tridiagonalize(double *a, double *q, double *d, double *e, double *v, double *w, int64_t n)
    int diagonalize(double *q, double *d, double *e, int64_t n)
    int invert(double *a, double *b, int64_t n)

ctypedef fused number:
    float
    double

cdef enum:
    FEW = 8  # columns of a product below which sums run along rows

choose_simd()


def column_sums(const number[:, ::1] a):
    """Sums of the columns of a matrix, in double precision, each added up from the first row to the last.

    Equivalent to: ``a.sum(axis=0, dtype=np.float64)``, in this order
    """
    found = np.zeros(a.shape[1])
    cdef double[::1] out = found
    cdef int64_t i, j, n = a.shape[0], m = a.shape[1]
    with nogil:
        for i in range(n):
            for j in range(m):
                out[j] += a[i, j]
    return found


def row_sums(const number[:, ::1] a):
    """Sums of the rows of a matrix, in double precision, each in eight parts, as in `dot`.

    Equivalent to: ``a.sum(axis=1, dtype=np.float64)``, in this order
    """
    found = np.zeros(a.shape[0])
    cdef double[::1] out = found
    cdef double lane[8]
    cdef int64_t i, j, k, n = a.shape[0], m = a.shape[1], whole = m - m % 8
    with nogil:
        for i in range(n):
            for k in range(8):
                lane[k] = 0
            for j in range(0, whole, 8):
                for k in range(8):
                    lane[k] += a[i, j + k]
            for k in range(m - whole):
                lane[k] += a[i, whole + k]
            out[i] = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]))
    return found


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
        columns = np.asarray(b).reshape(1, length) if m == 1 else np.ascontiguousarray(np.asarray(b).T)
    if n_threads == 1:  # without the start of threads, which takes longer than a small product
        with nogil:
            for i in range(n):
                if m < FEW:
                    for j in range(m):
                        out[i, j] = sum_many(&a[i, 0], &columns[j, 0], length)
                else:
                    combine(&a[i, 0], &b[0, 0], &out[i, 0], length, m, m)
    elif m < FEW:
        for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
            for j in range(m):
                out[i, j] = sum_many(&a[i, 0], &columns[j, 0], length)
    else:
        for i in prange(n, nogil=True, num_threads=n_threads, schedule="static"):
            combine(&a[i, 0], &b[0, 0], &out[i, 0], length, m, m)
    return found


def gram(a, const double[::1] weights):
    """Sum of the outer products of rows with themselves, each times a weight, from the first row to the last.

    Equivalent to: ``(a * weights[:, None]).T @ a``, in this order
    """
    cdef int64_t i, j, n = a.shape[0], m = a.shape[1], stride = (m + 15) // 16 * 16
    if weights.shape[0] != n:
        raise ValueError("there must be one weight a row")
    padded = np.zeros((n, stride))
    padded[:, :m] = a
    found = np.zeros((stride, stride))
    cdef const double[:, ::1] rows = padded
    cdef double[:, ::1] out = found
    if n and m:
        with nogil:
            weighted_gram(&rows[0, 0], &weights[0], &out[0, 0], n, stride)
    for i in range(m):
        for j in range(i):
            out[i, j] = out[j, i]
    return np.ascontiguousarray(found[:m, :m])


def mixture_weights(const double[:, ::1] likelihood, const double[::1] first, double strength, int64_t n_steps):
    """Weights of mixture components by EM, where the first weights count as so many observations.

    Equivalent to, n_steps times from `first`: ``weights * (likelihood @ (1 / (weights @ likelihood))) + strength *
    first``, scaled to sum 1

    `likelihood`, (n_components, n), is of each observation under each component, up to a factor of its own.
    """
    if first.shape[0] != likelihood.shape[0]:
        raise ValueError("likelihood must have a row for each of the first weights")
    found = np.array(first)
    cdef int64_t m = likelihood.shape[0], n = likelihood.shape[1]
    cdef double[::1] weights = found, room = np.zeros(m * (SUM_LANES + (n + EM_BLOCK - 1) // EM_BLOCK * EM_BLOCK))
    if m and n:
        with nogil:
            em_steps(&likelihood[0, 0], &first[0], strength, &weights[0], &room[0], m, n, n_steps)
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
