"""Fold-in: the topic proportions of each document under a given topic-word table."""

from cython cimport floating
from cython.parallel cimport prange, threadid

import numpy as np

__all__ = ["fold_in"]

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

    Documents are in CSR form, counts not negative; `topic_word`, C-contiguous, has a word a row, and its dtype is that
    of the result, (n_documents, n_components), whose rows sum to 1.
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
