"""Fold-in by jumps, in single precision: topic proportions of documents, and probabilities of their words."""

from cython cimport floating
from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t

import numpy as np

from skdplda._kernels._simd cimport aligned_zeros, choose_simd

__all__ = ["LEAST_TOLERANCE", "fold_in_rows", "probabilities", "word_rows"]

LEAST_TOLERANCE = 1e-5  # of single precision: what rounding moves a weight by is some 1e-6 of it

cdef extern from "fold_in.h" nogil:
    ctypedef struct fold_in_problem:
        const int64_t *indptr
        const int32_t *indices
        const int32_t *counts
        const float *rows
        const float *alpha
        int32_t n_topics, stride, max_iter
        float tol
    ctypedef struct document_scratch:
        pass
    document_scratch *scratch_new(int64_t words, int32_t stride)
    void scratch_free(document_scratch *a)
    int32_t padded(int32_t n_topics)
    int fold_in_single(const fold_in_problem *p, document_scratch *a, int64_t d, double *theta)
    void explain_document(const fold_in_problem *p, document_scratch *a, int64_t d, const double *theta, double *out)

choose_simd()

cdef enum:
    TOGETHER = 8  # words whose rows are made together: as many as share a cache line of the table


def word_rows(const floating[:, :] topic_word, const int32_t[::1] indices, int n_threads=1):
    """The rows that some documents read: a table's columns of the words that occur, in single precision.

    A column is divided by its maximum, so that single precision has room; the fixed point does not change by that.

    Equivalent to: ``words, place = np.unique(indices, return_inverse=True)``, ``peak = topic_word[:, words].max(0)``
    and ``(topic_word[:, words] / peak).T``, zero where a peak is, and beyond K.

    `topic_word` is (K, V), not negative; `indices` are the documents' words. `rows`, float32 (n, K rounded up to 16),
    lies on a 64-byte boundary; `peak` is float64 (n,), and `place`, int32 (nnz,), has the row of each entry of
    `indices`.
    """
    cdef Py_ssize_t i, n_topics = topic_word.shape[0], k, b, n
    if 16 * indices.shape[0] < topic_word.shape[1]:  # few documents: nothing as long as the vocabulary
        words_array, places = np.unique(indices, return_inverse=True)
        words_array, places = words_array.astype(np.intp), places.astype(np.int32)
    else:
        seen = np.zeros(topic_word.shape[1], bool)
        seen[np.asarray(indices)] = True
        words_array = np.flatnonzero(seen)
        places = (np.cumsum(seen, dtype=np.int32) - np.int32(1))[np.asarray(indices)]
    cdef const Py_ssize_t[::1] words = words_array
    n = words.shape[0]
    rows, peak = aligned_zeros((max(n, 1), padded(n_topics)), np.float32), np.zeros(max(n, 1))
    cdef float[:, ::1] out = rows
    cdef double[::1] top = peak
    for b in prange((n + TOGETHER - 1) // TOGETHER, nogil=True, num_threads=n_threads, schedule="static"):
        for k in range(n_topics):  # a few neighbours together, as they share cache lines
            for i in range(b * TOGETHER, min(n, (b + 1) * TOGETHER)):
                top[i] = max(top[i], <double>topic_word[k, words[i]])
        for k in range(n_topics):
            for i in range(b * TOGETHER, min(n, (b + 1) * TOGETHER)):
                out[i, k] = <float>(topic_word[k, words[i]] / top[i]) if top[i] > 0 else 0
    return rows, peak[:n], places


cdef class _Documents:
    """Checked arrays of some documents and their rows, as the C structure has them."""

    cdef fold_in_problem p
    cdef int64_t n, longest
    cdef object kept

    def __cinit__(self, indptr, place, counts, const float[:, ::1] rows, alpha):
        cdef const int64_t[::1] starts = np.ascontiguousarray(indptr, np.int64)
        cdef const int32_t[::1] words = np.ascontiguousarray(place, np.int32)
        cdef const int32_t[::1] values = np.ascontiguousarray(counts, np.int32)
        cdef float[::1] prior = aligned_zeros(rows.shape[1], np.float32)
        if rows.shape[1] != padded(len(alpha)) or <size_t>&rows[0, 0] % 64 or len(words) != len(values):
            raise ValueError("rows and place must come from word_rows, for as many topics as alpha")
        np.asarray(prior)[:len(alpha)] = alpha
        self.kept = starts, words, values, rows, prior
        self.n, self.longest = starts.shape[0] - 1, np.diff(indptr).max(initial=0)
        self.p.indptr, self.p.rows, self.p.alpha = &starts[0], &rows[0, 0], &prior[0]
        if words.shape[0]:
            self.p.indices, self.p.counts = &words[0], &values[0]
        self.p.n_topics, self.p.stride = len(alpha), rows.shape[1]

    cdef visit(self, double *theta, double *probability, int n_threads):
        """Fill topic proportions, (n, n_topics), or the probabilities of the documents' words under those given."""
        cdef int64_t d
        cdef int error = 0
        cdef document_scratch *scratch
        with nogil, parallel(num_threads=n_threads):
            scratch = scratch_new(self.longest, self.p.stride)
            for d in prange(self.n, schedule="dynamic", chunksize=4):
                if scratch == NULL:
                    error += 1
                elif probability == NULL:
                    fold_in_single(&self.p, scratch, d, theta + d * self.p.n_topics)
                else:
                    explain_document(&self.p, scratch, d, theta + d * self.p.n_topics, probability)
            scratch_free(scratch)
        if error:
            raise MemoryError("not enough memory for the words of a document")


def fold_in_rows(indptr, place, counts, rows, alpha, int max_iter, double tol, int n_threads=1):
    """Topic proportions of each document, as `_foldin.fold_in` defines them, in single precision and with jumps.

    Equivalent to: `_foldin.fold_in`, to about `tol`: it iterates towards the same fixed point, from where it jumps to and with
    resting topics, as fold_in_document.h says. Bits do not depend on batch, threads or processor.

    `place` and `rows` are as from `word_rows`. `tol` is at least LEAST_TOLERANCE, since rounding hides smaller
    changes. The result is float64 (D, K); rows sum to 1.
    """
    cdef _Documents x = _Documents(indptr, place, counts, rows, alpha)
    cdef double[:, ::1] theta = np.empty((x.n, x.p.n_topics))
    x.p.max_iter, x.p.tol = max_iter, tol
    x.visit(&theta[0, 0] if x.n else NULL, NULL, n_threads)
    return np.asarray(theta)


def probabilities(indptr, place, rows, peak, doc_topic, int n_threads=1):
    """Probability of each entry's word in its document.

    Equivalent to: ``(doc_topic[document] * rows[place]).sum(1) * peak[place]``, to single precision.
    """
    cdef const double[:, ::1] theta = np.ascontiguousarray(doc_topic, np.float64)
    cdef _Documents x = _Documents(indptr, place, place, rows, np.ones(theta.shape[1]))
    cdef double[::1] out = np.empty(max(len(place), 1))
    x.visit(<double *> &theta[0, 0] if x.n else NULL, &out[0], n_threads)
    return np.asarray(out)[:len(place)] * peak[place]
