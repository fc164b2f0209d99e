"""What documents have added to topics, and topics without it, in double precision."""

from cython.parallel cimport parallel, prange
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

import numpy as np

from skdplda._kernels._simd cimport aligned_zeros

__all__ = ["own_rows", "rows_without"]

cdef double LEAST = 1e-300  # that something is divided by


cdef inline double larger(double a, double b) noexcept nogil:
    return a if a > b else b


cdef inline double sum_of(const double *x, Py_ssize_t n) noexcept nogil:
    """Add up in four parts, in the same order everywhere."""
    cdef double a = 0, b = 0, c = 0, d = 0
    cdef Py_ssize_t i
    for i in range(0, n - 3, 4):
        a += x[i]
        b += x[i + 1]
        c += x[i + 2]
        d += x[i + 3]
    for i in range(n // 4 * 4, n):
        a += x[i]
    return (a + c) + (b + d)


cdef inline double squares_of(const double *x, Py_ssize_t n) noexcept nogil:
    cdef double a = 0, b = 0, c = 0, d = 0
    cdef Py_ssize_t i
    for i in range(0, n - 3, 4):
        a += x[i] * x[i]
        b += x[i + 1] * x[i + 1]
        c += x[i + 2] * x[i + 2]
        d += x[i + 3] * x[i + 3]
    for i in range(n // 4 * 4, n):
        a += x[i] * x[i]
    return (a + c) + (b + d)


cdef void divide(
    const double *theta, const double *counts, const double *masses, double tokens, double *own, Py_ssize_t n
) noexcept nogil:
    """Divide the tokens of a word among topics."""
    cdef Py_ssize_t k
    for k in range(n):
        own[k] = theta[k] * (counts[k] / masses[k])
    cdef double part = tokens / larger(sum_of(own, n), LEAST)
    for k in range(n):
        own[k] *= part


cdef void scale_part(
    const double *counts, const double *left, double size, double *own, Py_ssize_t n_apart, Py_ssize_t n
) noexcept nogil:
    """Scale what a word adds, and leave the part of it that is in the topics."""
    cdef Py_ssize_t k
    for k in range(n_apart):
        own[k] *= size * left[k]
    if n_apart == n:
        return
    cdef double lost = sum_of(own, n_apart) / larger(sum_of(counts, n_apart), LEAST)
    for k in range(n_apart, n):
        own[k] = (lost if lost < 1 else 1) * counts[k]


def own_rows(
    const int64_t[::1] indptr, const int32_t[::1] indices, const int32_t[::1] data, const double[:, ::1] theta,
    const double[:, ::1] counts, const double[::1] masses, const double[:, ::1] left, const double[::1] scale,
    const double[::1] word_weights=None, int n_threads=1,
):
    """What each word of each document is expected to have added to topics, (nnz, K).

    Equivalent to, for a document `d` of words `w` and counts `c`, where `left` has A columns::

        own = theta[d] * (counts[w] / masses)
        own *= (c / own.sum(1))[:, None]
        own *= scale[d] / (1 if word_weights is None else np.linalg.norm(word_weights[w][:, None] * own))
        own[:, :A] *= left[w]
        own[:, A:] = np.minimum(own[:, :A].sum(1) / counts[w, :A].sum(1), 1)[:, None] * counts[w, A:]

    `theta` is (D, K), `counts` (V, K), `masses` (K,), `left` (V, A), or (1, A) for all words, `scale` (D,),
    `word_weights` (V,). Indices are not checked.
    """
    cdef Py_ssize_t n_topics = counts.shape[1], n_apart = left.shape[1], d, i
    cdef double squares, size
    cdef bint weighted = word_weights is not None, alike = left.shape[0] == 1
    if (theta.shape[1] != n_topics or len(masses) != n_topics or not 0 < n_apart <= n_topics
            or len(left) not in (1, len(counts)) or len(theta) != len(indptr) - 1
            or len(scale) != len(theta) or (weighted and len(word_weights) != len(counts))):
        raise ValueError("arrays must have a row for each document or word, and a column for each topic")
    found = np.empty((len(indices), n_topics))
    cdef double[:, ::1] own = found
    for d in prange(theta.shape[0], nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=4):
        squares = 0
        for i in range(indptr[d], indptr[d + 1]):
            divide(&theta[d, 0], &counts[indices[i], 0], &masses[0], data[i], &own[i, 0], n_topics)
            if weighted:
                squares = squares + word_weights[indices[i]] * word_weights[indices[i]] * squares_of(&own[i, 0], n_topics)
        size = scale[d] / sqrt(larger(squares, LEAST)) if weighted else scale[d]
        for i in range(indptr[d], indptr[d + 1]):
            scale_part(&counts[indices[i], 0], &left[0 if alike else indices[i], 0], size, &own[i, 0], n_apart, n_topics)
    return found


cdef void take_out(
    const double *counts, const double *own, const double *masses, double mass, double blend, double least, double *cell,
    float *row, double *peak, double *word, Py_ssize_t n,
) noexcept nogil:
    """Make the row of a word without what its document has added."""
    cdef Py_ssize_t k
    cdef double common
    for k in range(n):
        cell[k] = larger(counts[k] - own[k], least * counts[k])
    word[0] = sum_of(cell, n) / mass
    common = (1 - blend) * word[0]
    peak[0] = 0
    for k in range(n):
        cell[k] = cell[k] / masses[k] * blend + common
        peak[0] = larger(cell[k], peak[0])
    for k in range(n):
        row[k] = <float> (cell[k] / peak[0]) if peak[0] > 0 else 0


def rows_without(
    const int64_t[::1] indptr, const int32_t[::1] indices, const double[:, ::1] counts, const double[::1] masses,
    const double[:, ::1] own, double blend, double least, int n_threads=1,
):
    """Rows of the documents' words as from `_foldin_rows.word_rows`, of topics without what the document has added.

    Equivalent to, for a document of words `w` and entries `e`::

        rest = np.maximum(masses - own[e].sum(0), least * masses)
        cells = np.maximum(counts[w] - own[e], least * counts[w])
        words = cells.sum(1) / rest.sum()
        cells = blend * cells / rest + (1 - blend) * words[:, None]
        rows, peak = cells / cells.max(1)[:, None], cells.max(1)

    `counts` are topics, (V, K), and `masses` their sums, (K,); `own` is (nnz, K). Returns `rows`, `peak` and `words`, of
    each entry.
    """
    cdef Py_ssize_t n_topics = counts.shape[1], n_documents = len(indptr) - 1, d, i, k
    cdef int failed = 0
    cdef double mass
    cdef double *rest
    if own.shape[0] != indices.shape[0] or own.shape[1] != n_topics or len(masses) != n_topics:
        raise ValueError("own must have a row for each entry, and all a column for each topic")
    n_entries = len(indices)
    rows = aligned_zeros((max(n_entries, 1), (n_topics + 15) // 16 * 16), np.float32)
    peak, words = np.zeros(n_entries + 1), np.zeros(n_entries + 1)
    cdef float[:, ::1] out = rows
    cdef double[::1] top = peak, word = words
    with nogil, parallel(num_threads=n_threads):
        rest = <double *> malloc(2 * n_topics * sizeof(double))
        for d in prange(n_documents, schedule="dynamic", chunksize=4):
            if rest == NULL:
                failed += 1
                continue
            for k in range(n_topics):
                rest[k] = masses[k]
            for i in range(indptr[d], indptr[d + 1]):
                for k in range(n_topics):
                    rest[k] = rest[k] - own[i, k]
            for k in range(n_topics):
                rest[k] = larger(rest[k], least * masses[k])
            mass = sum_of(rest, n_topics)
            for i in range(indptr[d], indptr[d + 1]):
                take_out(&counts[indices[i], 0], &own[i, 0], rest, mass, blend, least, rest + n_topics, &out[i, 0], &top[i],
                         &word[i], n_topics)
        free(rest)
    if failed:
        raise MemoryError("not enough memory for the topics of a document")
    return rows, peak[:n_entries], words[:n_entries]
