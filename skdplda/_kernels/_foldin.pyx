"""Fold-in: the topic proportions of each document under a given topic-word table."""

from cython cimport floating
from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport int32_t, int64_t

import numpy as np

from skdplda._kernels._simd cimport aligned_zeros, choose_simd

__all__ = ["LEAST_TOLERANCE", "fold_in", "fold_in_rows", "probabilities", "word_rows"]

LEAST_TOLERANCE = 1e-5  # of single precision: what rounding moves a weight by is some 1e-6 of it

cdef extern from "fold_in.h" nogil:
    ctypedef struct fold_in_problem:
        const int64_t *indptr
        const int32_t *indices, *counts
        const float *rows, *alpha
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
    # Sums run in this many interleaved lanes: a fixed order of addition, so the compiler may use vectors of any
    # width and the result stays the same on every processor.
    LANES = 4

ctypedef fused number:
    int
    float
    double


cdef inline floating dot(const floating *x, const floating *y, Py_ssize_t size) noexcept nogil:
    """Inner product; `size` is a multiple of LANES."""
    cdef Py_ssize_t step, lane
    cdef floating partial[LANES]
    for lane in range(LANES):
        partial[lane] = 0
    for step in range(size // LANES):
        for lane in range(LANES):
            partial[lane] += x[step * LANES + lane] * y[step * LANES + lane]
    return (partial[0] + partial[2]) + (partial[1] + partial[3])


cdef inline bint converged(
    const floating *weight, const floating *total, Py_ssize_t size, floating tol
) noexcept nogil:
    """Whether no coordinate of `total` differs from `weight` by more than `tol` times `weight`."""
    cdef Py_ssize_t k
    cdef int moved = 0
    cdef floating change
    for k in range(size):
        change = total[k] - weight[k]
        change = change if change > 0 else -change
        moved += change > tol * weight[k]
    return moved == 0


cdef void fold_in_document(
    const int *words,           # IN    (n_words,) rows of the table
    const number *counts,       # IN    (n_words,)
    Py_ssize_t n_words,
    const floating *table,      # IN    (V, K)
    const floating *prior,      # IN    (size,) zero beyond K
    Py_ssize_t n_topics,
    Py_ssize_t size,            # K rounded up to a multiple of LANES
    int max_iter,
    floating tol,
    floating *block,            # SCRATCH (n_words, size): the rows of this document, zero beyond K
    floating *weight,           # SCRATCH (size,): n_k + alpha_k
    floating *total,            # SCRATCH (size,)
    floating *theta,            # OUT   (K,)
) noexcept nogil:
    cdef Py_ssize_t i, k
    cdef floating length = 0, ratio, mass = 0
    cdef floating *row
    cdef const floating *source
    for i in range(n_words):
        length += <floating>counts[i]
        row = block + i * size
        source = table + <Py_ssize_t>words[i] * n_topics
        for k in range(n_topics):
            row[k] = source[k]
    for k in range(n_topics):
        weight[k] = prior[k] + length / n_topics
    for _ in range(max_iter if length > 0 else 0):
        for k in range(size):
            total[k] = 0
        for i in range(n_words):
            row = block + i * size
            ratio = dot(row, weight, size)
            ratio = <floating>counts[i] / ratio if ratio > 0 else 0
            for k in range(size):
                total[k] += ratio * row[k]
        for k in range(size):
            total[k] = total[k] * weight[k] + prior[k]
        if converged(weight, total, size, tol):
            break
        for k in range(size):
            weight[k] = total[k]
    for k in range(n_topics):
        mass += weight[k]
    for k in range(n_topics):
        theta[k] = weight[k] / mass


def fold_in(
    const int[::1] indptr,
    const int[::1] indices,
    const number[::1] counts,
    const floating[:, ::1] topic_word,
    const double[::1] doc_topic_prior,
    int max_iter,
    double tol,
    int n_threads,
):
    """Topic proportions of each document: the fixed point of its expected topic counts.

    Each document starts from equal topic counts and iterates n_k = sum_w c_w r_wk with
    r_wk proportional to Phi[w, k] (n_k + alpha_k), until no n_k + alpha_k changes by more than `tol` times
    itself or `max_iter` updates have been made. Documents do not see each other: the result is the same for
    any split into batches and any number of threads. A word that no topic can produce is ignored; an empty
    document gets the mean of the prior. Indices are not checked.

    Equivalent to, for each document with words `w` and counts `c`::

        weight = alpha + c.sum() / n_topics
        for _ in range(max_iter):
            new = alpha + weight * ((c / (phi[w] @ weight)) @ phi[w])
            if (abs(new - weight) <= tol * weight).all():
                break
            weight = new
        theta = weight / weight.sum()

    Parameters
    ----------
    indptr, indices : ndarray of int32
        Rows and columns of the document-word matrix in CSR form.
    counts : ndarray of int32, float32 or float64
        Its values, non-negative.
    topic_word : ndarray of shape (n_words, n_components), float32 or float64, C-contiguous
        Probability of each word (row) in each topic (column).
    doc_topic_prior : ndarray of shape (n_components,), float64
        Dirichlet prior alpha of the topic proportions, positive.
    max_iter : int
        Most updates per document.
    tol : float
        Relative change below which a document stops.
    n_threads : int
        Number of threads.

    Returns
    -------
    doc_topic : ndarray of shape (n_documents, n_components), of the dtype of `topic_word`
        Topic proportions; rows sum to 1.
    """
    cdef Py_ssize_t n_documents = indptr.shape[0] - 1, n_topics = topic_word.shape[1], d, here
    cdef Py_ssize_t size = (n_topics + LANES - 1) // LANES * LANES
    cdef Py_ssize_t longest = np.diff(indptr).max(initial=0)
    cdef Py_ssize_t scratch_size = (longest + 2) * size
    dtype = np.float32 if floating is float else np.float64
    doc_topic = np.empty((n_documents, n_topics), dtype=dtype)
    if n_documents == 0:
        return doc_topic
    cdef floating[:, ::1] theta = doc_topic
    # Zero beyond K, so that padding adds nothing to any sum. One row a thread.
    cdef floating[:, ::1] scratch = np.zeros((n_threads, scratch_size), dtype=dtype)
    cdef floating[::1] prior = np.zeros(size, dtype=dtype)
    for d in range(n_topics):
        prior[d] = <floating>doc_topic_prior[d]
    cdef const int *words = &indices[0] if indices.shape[0] else NULL
    cdef const number *values = &counts[0] if counts.shape[0] else NULL
    for d in prange(n_documents, nogil=True, schedule="dynamic", chunksize=16, num_threads=n_threads):
        here = threadid()
        fold_in_document(
            words + indptr[d], values + indptr[d], indptr[d + 1] - indptr[d], &topic_word[0, 0], &prior[0],
            n_topics, size, max_iter, <floating>tol, &scratch[here, 2 * size], &scratch[here, 0],
            &scratch[here, size], &theta[d, 0],
        )
    return doc_topic


def word_rows(floating[:, :] topic_word, const int32_t[::1] indices, int n_threads=1):
    """The rows that some documents read: a table's columns of the words that occur, in single precision.

    A column is divided by its maximum, so that single precision has room; the fixed point does not change by that.

    Equivalent to: ``words, place = np.unique(indices, return_inverse=True)``, ``peak = topic_word[:, words].max(0)``
    and ``(topic_word[:, words] / peak).T``, zero where a peak is, and beyond K.

    Parameters
    ----------
    topic_word : float64 or float32 array of shape (K, V)
        Not negative.
    indices : int32 array of shape (nnz,)
        Words of the documents, in [0, V).
    n_threads : int, default=1

    Returns
    -------
    rows : float32 array of shape (n, K rounded up to 16), on a 64-byte boundary
    peak : float64 array of shape (n,)
    place : int32 array of shape (nnz,)
        Row of each entry of `indices`.
    """
    cdef Py_ssize_t i, n_topics = topic_word.shape[0], w, k, b, at, n
    cdef floating most
    seen = np.zeros(topic_word.shape[1], bool)
    seen[np.asarray(indices)] = True
    words_array = np.flatnonzero(seen)
    cdef const Py_ssize_t[::1] words = words_array
    place_of = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    n = words.shape[0]
    rows, peak = aligned_zeros((max(n, 1), padded(n_topics)), np.float32), np.zeros(max(n, 1))
    cdef float[:, ::1] out = rows
    cdef double[::1] top = peak
    for b in prange((n + LANES - 1) // LANES, nogil=True, num_threads=n_threads, schedule="static"):
        for k in range(n_topics):  # a few neighbours together, as they share cache lines
            for i in range(b * LANES, min(n, (b + 1) * LANES)):
                top[i] = max(top[i], <double>topic_word[k, words[i]])
        for k in range(n_topics):
            for i in range(b * LANES, min(n, (b + 1) * LANES)):
                out[i, k] = <float>(topic_word[k, words[i]] / top[i]) if top[i] > 0 else 0
    return rows, peak[:n], place_of[np.asarray(indices)]


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


def fold_in_rows(indptr, place, counts, rows, alpha, int max_iter, double tol, int n_threads=1):
    """Topic proportions of each document, as `fold_in` defines them, in single precision and with jumps.

    Equivalent to: `fold_in`, to about `tol`: it iterates towards the same fixed point, from where it jumps to and with
    resting topics, as fold_in_document.h says. Bits do not depend on batch, threads or processor.

    Parameters
    ----------
    indptr : int64 array of shape (D + 1,)
        Rows of the document-term matrix.
    place, rows
        As from `word_rows`.
    counts : int32 array of shape (nnz,)
        Not negative.
    alpha : array of shape (K,)
        Positive.
    max_iter : int
        Most times that a document's words are gone through.
    tol : float
        Relative change below which a document stops; at least LEAST_TOLERANCE, since rounding hides smaller ones.
    n_threads : int, default=1

    Returns
    -------
    doc_topic : float64 array of shape (D, K)
        Rows sum to 1.
    """
    cdef _Documents x = _Documents(indptr, place, counts, rows, alpha)
    cdef double[:, ::1] theta = np.empty((x.n, x.p.n_topics))
    cdef int64_t d
    cdef int error = 0
    cdef document_scratch *scratch
    x.p.max_iter, x.p.tol = max_iter, tol
    with nogil, parallel(num_threads=n_threads):
        scratch = scratch_new(x.longest, x.p.stride)
        for d in prange(x.n, schedule="dynamic", chunksize=16):
            if scratch == NULL:
                error += 1
            else:
                fold_in_single(&x.p, scratch, d, &theta[d, 0])
        scratch_free(scratch)
    if error:
        raise MemoryError("not enough memory for the words of a document")
    return np.asarray(theta)


def probabilities(indptr, place, rows, peak, doc_topic, int n_threads=1):
    """Probability of each entry's word in its document.

    Equivalent to: ``(doc_topic[document] * rows[place]).sum(1) * peak[place]``, to single precision.

    Parameters
    ----------
    indptr, place, rows, peak
        As of `fold_in_rows` and `word_rows`.
    doc_topic : float64 array of shape (D, K)
    n_threads : int, default=1

    Returns
    -------
    probability : float64 array of shape (nnz,)
    """
    cdef const double[:, ::1] theta = np.ascontiguousarray(doc_topic, np.float64)
    cdef _Documents x = _Documents(indptr, place, place, rows, np.ones(theta.shape[1]))
    cdef double[::1] out = np.empty(max(len(place), 1))
    cdef int64_t d
    cdef int error = 0
    cdef document_scratch *scratch
    with nogil, parallel(num_threads=n_threads):
        scratch = scratch_new(x.longest, x.p.stride)
        for d in prange(x.n, schedule="dynamic", chunksize=16):
            if scratch == NULL:
                error += 1
            else:
                explain_document(&x.p, scratch, d, &theta[d, 0], &out[0])
        scratch_free(scratch)
    if error:
        raise MemoryError("not enough memory for the words of a document")
    return np.asarray(out)[:len(place)] * peak[place]
