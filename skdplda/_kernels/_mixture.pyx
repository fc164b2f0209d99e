"""EM for mixtures of segments of documents: responsibilities by document, sums of bounded contributions."""

from cython.parallel cimport parallel, prange, threadid
from libc.math cimport sqrt

import numpy as np

from skdplda._kernels._simd cimport choose_simd

__all__ = ["responsibilities", "scaled_sums"]

cdef extern from "segment_dispatch.h" nogil:
    void segment_likelihoods(
        const long long *start,     # IN    (n_segments + 1,) into words and counts
        const int *words,           # IN
        const double *counts,       # IN
        Py_ssize_t n_segments,
        const double *log_phi,      # IN    (V, K)
        const double *extra,        # IN    (n_segments, K), or NULL
        Py_ssize_t n_topics,
        double *r,                  # OUT   (n_segments, K): likelihoods, the largest of a segment is 1
        double *largest,            # OUT   (n_segments,) its logarithm
    )
    double update_document(
        double *r,                  # INOUT (n_segments, K) likelihoods; after the last update, responsibilities
        const double *largest,      # IN    (n_segments,)
        Py_ssize_t n_segments,
        const double *prior,        # IN    (K,)
        Py_ssize_t n_topics,
        int n_updates,
        double *theta,              # INOUT (K,)
        double *total,              # SCRATCH (K,)
    )

choose_simd()


def responsibilities(
    const long long[::1] document_start,  # IN    (n_documents + 1,)
    const long long[::1] start,           # IN    (n_segments + 1,)
    const int[::1] words,                 # IN
    const double[::1] counts,             # IN
    const double[:, ::1] log_phi,         # IN    (V, K)
    const double[:, ::1] extra,           # IN    (n_segments, K) or (0, 0)
    const double[::1] prior,              # IN    (K,)
    const unsigned char[::1] active,      # IN    (n_documents,) or (0,)
    double[:, ::1] theta,                 # INOUT (n_documents, K)
    double[:, ::1] r,                     # OUT   (n_segments, K)
    double[::1] log_likelihood,           # OUT   (n_documents,)
    int n_updates,                        # at least 1
    int n_threads,
):
    """E-step of each document: responsibilities of the topics for its segments, and its topic proportions.

    Documents do not see each other: the result is the same for any number of threads. Indices are not checked.

    Equivalent to, for each active document with segments `u`::

        L = counts[u] @ log_phi + extra[u]
        for _ in range(n_updates):
            joint = np.log(theta) + L
            r[u] = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
            theta = prior + r[u].sum(axis=0)
            theta /= theta.sum()

    and `r[u] = 0` for the others.

    Segments are the rows of counts, which may be noisy, in CSR form; `document_start` has those at which documents
    begin. `extra` is added to the log-likelihoods of segments, if it is not empty. `active`, uint8, has who takes part
    (empty: all); the others keep `theta`, which is positive, and changed like `r`. `log_likelihood` is of a document's
    segments under `log_phi` and the `theta` that came in, 0 for documents that take no part.
    """
    cdef Py_ssize_t n_documents = document_start.shape[0] - 1, n_topics = log_phi.shape[1], d
    cdef long long begin, n
    cdef bint everyone = active.shape[0] == 0, add = extra.shape[0] > 0
    cdef double[::1] largest = np.empty(r.shape[0])
    cdef double[:, ::1] total = np.empty((n_documents, n_topics))
    if n_documents == 0:
        return
    cdef const int *word = &words[0] if words.shape[0] else NULL
    cdef const double *count = &counts[0] if counts.shape[0] else NULL
    for d in prange(n_documents, nogil=True, schedule="dynamic", chunksize=4, num_threads=n_threads):
        begin = document_start[d]
        n = document_start[d + 1] - begin
        log_likelihood[d] = 0
        if n > 0 and not (everyone or active[d]):
            r[begin:begin + n, :] = 0
        elif n > 0:
            segment_likelihoods(
                &start[begin], word, count, n, &log_phi[0, 0], &extra[begin, 0] if add else NULL, n_topics,
                &r[begin, 0], &largest[begin],
            )
            log_likelihood[d] = update_document(
                &r[begin, 0], &largest[begin], n, &prior[0], n_topics, n_updates, &theta[d, 0], &total[d, 0]
            )


cdef double add_cell(
    const long long *start, const int *segments, const double *values, const double[:, ::1] r, double scale, double *cell,
    long long *out, int sign,
) noexcept nogil:
    """Add a cell's row times the scale, rounded down, to `out`, if given; return the sum of its squares, rounded if so."""
    cdef Py_ssize_t n_topics = r.shape[1], k
    cdef long long i, whole
    cdef double square = 0
    for k in range(n_topics):
        cell[k] = 0
    for i in range(start[0], start[1]):
        for k in range(n_topics):
            cell[k] += values[i] * r[segments[i], k]
    if out == NULL:
        for k in range(n_topics):
            square += cell[k] * cell[k]
        return square
    for k in range(n_topics):
        whole = <long long>(cell[k] * scale)
        square += <double>whole * <double>whole
        out[k] += sign * whole
    return square


cdef void add_unit(
    const long long *units, const long long *start, const int *segments, const double *values, const int *words,
    const double[:, ::1] r, double norm, double *cell, long long *out,
) noexcept nogil:
    """Add what a unit contributes; take it back if its norm, which is exact, were above the bound."""
    cdef Py_ssize_t n_topics = r.shape[1]
    cdef long long i
    cdef double square = 0, scale
    for i in range(units[0], units[1]):
        square += add_cell(&start[i], segments, values, r, 0, cell, NULL, 0)
    if not 0 < square < 1e300:
        return
    scale, square = norm * (1 - 1e-9) / sqrt(square), 0
    for i in range(units[0], units[1]):
        square += add_cell(&start[i], segments, values, r, scale, cell, &out[words[i] * n_topics], 1)
    if not square <= norm * norm:
        for i in range(units[0], units[1]):
            add_cell(&start[i], segments, values, r, scale, cell, &out[words[i] * n_topics], -1)


def scaled_sums(
    const long long[::1] units,  # IN    (n_units + 1,) the cells of each privacy unit: a word of it each
    const long long[::1] start,  # IN    (n_cells + 1,) the cell-segment matrix in CSR form
    const int[::1] segments,     # IN
    const double[::1] values,    # IN    not negative
    const int[::1] words,        # IN    (n_cells,)
    const double[:, ::1] r,      # IN    (n_segments, K), in [0, 1]
    long long norm,              # of what a unit contributes, at most 2**24
    long long[:, ::1] out,       # OUT   (n_words, K)
    int n_threads,
):
    """M-step: what privacy units add to words and topics, each scaled to the norm in whole numbers.

    Units do not see each other: the result is the same for any number of threads. A unit whose numbers are not finite
    adds nothing. Indices are not checked, and no unit has a word twice.

    Equivalent to, for the (n_cells, n_segments) matrix of `values` and the cells `u` of each unit::

        x = values[u] @ r
        out[words[u]] += np.trunc(norm / np.linalg.norm(x) * x)
    """
    cdef Py_ssize_t n_units = units.shape[0] - 1, n_topics = r.shape[1], u
    cdef long long *target
    cdef double *scratch
    if not 0 < norm <= 2**24:
        raise ValueError("norm must be in [1, 2**24]")
    out[:] = 0
    if segments.shape[0] == 0:
        return
    n_threads = max(1, min(n_threads, n_units))
    cdef long long[:, :, ::1] others = np.zeros((n_threads - 1, out.shape[0], n_topics), np.int64)
    cdef double[:, ::1] cells = np.empty((n_threads, n_topics + 16))
    with nogil, parallel(num_threads=n_threads):
        target = &out[0, 0] if threadid() == 0 else &others[threadid() - 1, 0, 0]
        scratch = &cells[threadid(), 0]
        for u in prange(n_units, schedule="dynamic", chunksize=16):
            add_unit(&units[u], &start[0], &segments[0], &values[0], &words[0], r, norm, scratch, target)
    np.add(out, np.asarray(others).sum(axis=0), out=np.asarray(out))
