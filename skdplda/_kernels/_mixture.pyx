"""EM for mixtures of segments of documents: responsibilities by document, sums by word."""

from cython.parallel cimport prange

import numpy as np

from skdplda._kernels._simd cimport choose_simd

__all__ = ["responsibilities", "word_sums"]

ctypedef fused total_type:
    long long
    double


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


def word_sums(
    const long long[::1] start,  # IN    the word-segment matrix in CSR form
    const int[::1] segments,     # IN
    const double[::1] values,    # IN
    const double[:, ::1] r,      # IN    (n_segments, K)
    total_type[:, ::1] out,      # OUT   (n_words, K)
    int n_threads,
):
    """M-step: for each word, what its occurrences add to the topics.

    Integer sums round every term towards zero. A word's terms have a fixed order: the result is the same for any
    number of threads. Indices are not checked.

    Equivalent to, for the (n_words, n_segments) matrix of `values`::

        out[w] = sum(np.trunc(values[w, u] * r[u]) for u)   # int64
        out = values @ r                                    # float64
    """
    cdef Py_ssize_t n_words = start.shape[0] - 1, n_topics = r.shape[1], w, k
    cdef long long i
    cdef double value
    for w in prange(n_words, nogil=True, schedule="dynamic", chunksize=16, num_threads=n_threads):
        for k in range(n_topics):
            out[w, k] = 0
        for i in range(start[w], start[w + 1]):
            value = values[i]
            for k in range(n_topics):
                out[w, k] += <total_type>(value * r[segments[i], k])
