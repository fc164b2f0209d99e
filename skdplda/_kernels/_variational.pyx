"""The variational E-step of latent Dirichlet allocation over documents, from a table that does not move."""

from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport int32_t, int64_t

import numpy as np

from skdplda._kernels._simd cimport aligned_zeros, choose_simd

__all__ = ["MIN_EXP_DIGAMMA", "e_step", "exp_digamma", "expected_topics"]

MIN_EXP_DIGAMMA = 3e-13  # below it the approximation stays about there

cdef extern from "variational_step.h" nogil:
    ctypedef struct variational_problem:
        const int64_t *indptr
        const int32_t *indices, *counts, *weight
        const float *expected, *alpha, *word_weight
        float *state
        int64_t norm
        int32_t token_weight, n_topics, stride, max_iter, collapsed
        float tol, cut, beyond
    ctypedef struct document_scratch:
        pass
    document_scratch *scratch_new(int64_t words, int32_t stride)
    void scratch_free(document_scratch *a)
    int32_t padded(int32_t n_topics)
    ctypedef struct soft_sum:
        pass
    soft_sum *soft_sum_new(const variational_problem *p, int64_t n_words, int64_t *sum)
    void soft_sum_free(soft_sum *s)
    ctypedef struct unit_sum:
        pass
    unit_sum *unit_sum_new(const variational_problem *p, int64_t n_words, int64_t words)
    void unit_sum_free(unit_sum *u)
    int infer_document(const variational_problem *p, document_scratch *a, int64_t d, const soft_sum *s, unit_sum *u)
    void add_unit(const variational_problem *p, unit_sum *u, const soft_sum *s)
    void flush_sum(const variational_problem *p, const soft_sum *s, int64_t n_words)
    void exp_digamma_row(const float *x, float *out, int64_t n)


choose_simd()


def exp_digamma(x):
    """exp(digamma(x)) of positive numbers, to 1e-5 of the value for x <= 1e11; values below 3e-13 become about that.

    Equivalent to: ``np.maximum(np.exp(scipy.special.digamma(x)), 3e-13)``
    """
    x = np.asarray(x, np.float32)
    cdef float[::1] padded_x = aligned_zeros(max(padded(x.size), 16), np.float32)
    cdef float[::1] out = aligned_zeros(padded_x.shape[0], np.float32)
    np.asarray(padded_x)[:] = 1
    np.asarray(padded_x)[:x.size] = x.ravel()
    exp_digamma_row(&padded_x[0], &out[0], out.shape[0])
    return np.array(out)[:x.size].reshape(x.shape)


def expected_topics(const float[:, ::1] table, const double[::1] scale, double prior, int n_threads=1):
    """Rows of exp(E[log probability of a word in each topic]), as `e_step` reads them.

    Equivalent to: ``np.exp(digamma(table + prior)) * scale``, zero beyond K.

    The table, float32 (V, K), has nonnegative pseudo-counts without the prior; `scale`, (K,), is proportional to
    exp(-digamma(column sum)). The result, float32 (V, K rounded up to 16), lies on a 64-byte boundary.
    """
    cdef Py_ssize_t w, k, n_words = table.shape[0], n_topics = table.shape[1], stride = padded(n_topics)
    cdef float beta = prior
    if scale.shape[0] != n_topics or not prior > 0 or n_topics < 1:
        raise ValueError("scale must have one number a topic, and prior be positive")
    expected = aligned_zeros((n_words, stride), np.float32)
    cdef float[:, ::1] out = expected
    cdef float[::1] factor = aligned_zeros(stride, np.float32)
    np.asarray(factor)[:n_topics] = scale
    for w in prange(n_words, nogil=True, num_threads=n_threads, schedule="static"):
        for k in range(n_topics):
            out[w, k] = table[w, k] + beta
        exp_digamma_row(&out[w, 0], &out[w, 0], stride)
        for k in range(stride):
            out[w, k] *= factor[k]
    return expected


cdef int64_t infer_unit(
    const variational_problem *p, document_scratch *a, const int64_t *documents, int64_t n, const soft_sum *s, unit_sum *u,
) noexcept nogil:
    """Infer the documents of a unit, and add what it contributes to the sum; return the iterations."""
    cdef int64_t i, iterations = 0
    if n == 1:  # as without units
        return infer_document(p, a, documents[0], s, NULL)
    for i in range(n):
        iterations += infer_document(p, a, documents[i], s, u)
    add_unit(p, u, s)
    return iterations


def e_step(
    const int64_t[::1] indptr, const int32_t[::1] indices, const int32_t[::1] counts, const int64_t[::1] documents,
    const float[:, ::1] expected, const float[::1] alpha, const int32_t[::1] weight, int token_weight,
    int64_t norm, int max_iter, double tol, double cut, int64_t[:, ::1] out, int n_threads=1,
    const float[::1] word_weight=None, float[:, ::1] state=None, bint collapsed=False,
    double relaxation=1.0, const int64_t[::1] units=None,
):
    """Infer the topics of some documents and sum their expected topic-word counts, on an integer grid.

    Equivalent to, for each of the documents, with words `w`, counts `c`, E = expected[w] and `grid` its weight::

        gamma = alpha + (c.sum() / K if state is None or state[d, 0] < 0 else state[d])
        for i in range(max_iter):
            theta = gamma if collapsed else exp_digamma(gamma)
            soft = E * theta / (E @ theta)[:, None]
            if collapsed:
                soft = E * np.maximum(theta - soft, alpha)
                soft /= soft.sum(1)[:, None]
            soft *= c[:, None]
            previous, gamma = gamma, alpha + soft.sum(0)
            if i + 1 < max_iter:
                gamma = np.maximum(gamma + (relaxation - 1) * (gamma - previous), alpha)
            if abs(gamma - previous).mean() <= tol:
                break
        if state is not None: state[d] = gamma - alpha
        if word_weight is not None: soft *= word_weight[w][:, None]
        if norm: grid = norm / np.linalg.norm(soft)
        out[w] += np.floor(grid * soft)

    With `units`, the soft counts of all documents[units[i]:units[i + 1]] are added up before they are scaled. A document
    sees the table and itself only: results do not depend on the batch or the threads. After 2, 4, 8, ... iterations
    topics of at most `cut` counts are dropped, if that halves the work. In integers, whatever rounding did, a unit's soft
    counts have at most the norm, or those of a word add up to at most grid * c. Indices are not checked.

    `expected` is as from `expected_topics`. `weight` has what a token of each document weighs on the grid, or is None
    for `token_weight` for all; a positive `norm`, which `units` need, takes their place. A document stops after
    `max_iter` iterations, or at a mean change of `tol`. `state`, float32 (D, K), is negative where there is none yet.
    `collapsed`: a token does not see itself, as in CVB0. `relaxation`, in [1, 2), is the factor of each change of gamma:
    over-relaxation, which comes to the same place in fewer iterations (Salakhutdinov and Roweis 2003, ICML).
    Returns the number of iterations of all documents; `out`, int64 (V, K), has the sum added.
    """
    cdef variational_problem p
    cdef Py_ssize_t i, n = documents.shape[0], longest = 0, most = 0, n_words = out.shape[0]
    cdef int error = 0, here
    cdef soft_sum *sums
    cdef unit_sum *unit
    cdef int64_t iterations = 0, *target
    cdef document_scratch *scratch
    cdef int64_t[:, :, ::1] others
    n_topics, stride = alpha.shape[0], padded(alpha.shape[0])
    if expected.shape[1] != stride or <size_t>&expected[0, 0] % 64:
        raise ValueError("expected must come from expected_topics, for as many topics as alpha")
    if out.shape[0] != expected.shape[0] or out.shape[1] != n_topics:
        raise ValueError("out must have shape (n_words, n_topics)")
    if weight is not None and weight.shape[0] != indptr.shape[0] - 1:
        raise ValueError("weight must have one number a document")
    if word_weight is not None and len(word_weight) != len(out) or (
            state is not None and np.shape(state) != (indptr.shape[0] - 1, n_topics)):
        raise ValueError("word_weight must have one number a word, state shape (n_documents, n_topics)")
    if not np.min(alpha) > 0 or max_iter < 1 or not 0 <= norm <= 2**24:
        raise ValueError("alpha and max_iter must be positive, norm in [0, 2**24]")
    if not 1 <= relaxation < 2:
        raise ValueError("relaxation must be in [1, 2)")
    if units is not None and not (norm and len(units) and np.array_equal(np.asarray(units)[[0, -1]], [0, n])
                                  and (np.diff(units) >= 0).all()):
        raise ValueError("units must divide the documents, and need a norm")
    if n == 0 or indices.shape[0] == 0:
        return 0
    lengths = np.diff(indptr)
    if units is not None:
        n = len(units) - 1
        ends = np.concatenate([[0], np.cumsum(lengths[np.asarray(documents)])])[np.asarray(units)]  # entries up to each
        most = min(max(np.diff(ends).max(), 1), n_words)
    cdef float[::1] prior = aligned_zeros(stride, np.float32)
    np.asarray(prior)[:n_topics] = alpha
    longest = lengths.max()
    p.indptr, p.indices, p.counts, p.expected, p.alpha = (
        &indptr[0], &indices[0], &counts[0], &expected[0, 0], &prior[0])
    p.weight, p.word_weight = NULL, NULL
    if weight is not None:
        p.weight = &weight[0]
    if word_weight is not None:
        p.word_weight = &word_weight[0]
    p.state = NULL if state is None else &state[0, 0]
    p.norm, p.token_weight, p.max_iter, p.tol, p.cut, p.beyond = norm, token_weight, max_iter, tol, cut, relaxation - 1
    p.n_topics, p.stride, p.collapsed = n_topics, stride, collapsed
    n_threads = max(1, min(n_threads, n))
    others = np.zeros((n_threads - 1, out.shape[0], out.shape[1]), np.int64)
    with nogil, parallel(num_threads=n_threads):
        here = threadid()
        target = &out[0, 0] if here == 0 else &others[here - 1, 0, 0]
        scratch = scratch_new(longest, p.stride)
        sums = soft_sum_new(&p, n_words, target)
        unit = unit_sum_new(&p, n_words, most) if most else NULL
        for i in prange(n, schedule="dynamic", chunksize=16):
            if scratch == NULL or sums == NULL or (most and unit == NULL):
                error += 1
            elif most:
                iterations += infer_unit(&p, scratch, &documents[units[i]], units[i + 1] - units[i], sums, unit)
            else:
                iterations += infer_document(&p, scratch, documents[i], sums, NULL)
        if sums != NULL:
            flush_sum(&p, sums, n_words)
        unit_sum_free(unit)
        soft_sum_free(sums)
        scratch_free(scratch)
    if error:
        raise MemoryError("not enough memory for the words of a document")
    if n_threads > 1:
        np.add(out, np.asarray(others).sum(axis=0), out=np.asarray(out))
    return iterations
