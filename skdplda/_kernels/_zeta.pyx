"""The largest log-likelihood that a mixture of topics gives a document, with a certificate."""

from cython.parallel cimport prange, threadid

import numpy as np

from skdplda._kernels._simd cimport choose_simd

__all__ = ["zeta"]

cdef extern from "mixture_weights.h" nogil:
    int LANES
    void mix(const double *, const double *, int, Py_ssize_t, double *)
    void gradient_of(const double *, const double *, const double *, int, Py_ssize_t, double *, double *, double *)
    void curvature_of(
        const double *, const double *, const double *, const int *, int, Py_ssize_t, double *, double *, double *
    )
    double gather(const int *, const int *, Py_ssize_t, Py_ssize_t, const double *, int, double *, double *)
    double line_search(const double *, const double *, const double *, Py_ssize_t, double)
    double log_sum(const double *, const double *, Py_ssize_t, double *)
    void descend(const double *, const double *, const double *, int, double *, double *, double *)

choose_simd()

cdef enum:
    WORD_ROWS = 6
    TOPIC_ROWS = 7
    EM_STEPS = 4        # they are cheap, and show most topics that will not be used
    INNER_STEPS = 2     # Newton steps that keep a tenth of each weight: a word may need a topic that looks useless


cdef struct Scratch:
    double *table       # (K, n) the words of this document, topic by topic
    double *counts      # (n,)
    double *mixed       # (n,) probability of each word
    double *change      # (n,) of `mixed` along the step
    double *inverse     # (n,) 1 / mixed
    double *ratio       # (n,) counts / mixed
    double *scaled      # (n,)
    double *gradient    # (K,)
    double *weight      # (K,) of the active topics: by how much they may fall
    double *slope       # (K,) of the active topics
    double *step        # (K,) of the active topics
    double *residual    # (K,)
    double *diagonal    # (K,)
    double *full        # (K,) the step, zero for the other topics
    double *curvature   # (K, K)
    int *active         # (K,)


cdef Scratch lay_out(double *numbers, int *active, Py_ssize_t n, int n_topics) noexcept nogil:
    """Point into one thread's memory."""
    cdef Scratch s
    s.table, s.counts, s.active = numbers, numbers + n * n_topics, active
    s.mixed, s.change, s.ratio, s.scaled = s.counts + n, s.counts + 2 * n, s.counts + 3 * n, s.counts + 4 * n
    s.inverse = s.counts + 5 * n
    s.gradient = s.counts + WORD_ROWS * n
    s.weight, s.slope = s.gradient + n_topics, s.gradient + 2 * n_topics
    s.step, s.residual = s.gradient + 3 * n_topics, s.gradient + 4 * n_topics
    s.full, s.diagonal = s.gradient + 5 * n_topics, s.gradient + 6 * n_topics
    s.curvature = s.gradient + TOPIC_ROWS * n_topics
    return s


cdef inline Py_ssize_t padded(Py_ssize_t n_words) noexcept nogil:
    """Round up to an odd number of lanes, so that the topics' rows do not fall onto the same lines of the cache."""
    return ((n_words + LANES - 1) // LANES | 1) * LANES


cdef double newton_step(Scratch *s, Py_ssize_t n, double length, int n_topics, bint inner, double *theta) noexcept nogil:
    """Fill `full` with the step of the quadratic model of log-likelihood - length * sum(theta); return its length."""
    cdef int k, n_active = 0
    cdef double mass = 0, floor = 0.2 / n_topics if inner else 0
    for k in range(n_topics):
        s.full[k] = 0
        if theta[k] > floor or s.gradient[k] > length:
            s.active[n_active] = k
            s.weight[n_active] = 0.9 * theta[k] if inner else theta[k]
            s.slope[n_active] = length - s.gradient[k]
            n_active += 1
    curvature_of(s.table, s.ratio, s.inverse, s.active, n_active, n, s.scaled, s.change, s.curvature)
    descend(s.curvature, s.weight, s.slope, n_active, s.step, s.residual, s.diagonal)
    for k in range(n_active):
        s.full[s.active[k]] = s.step[k]
        mass += s.step[k]
    mix(s.table, s.full, n_topics, n, s.change)
    return line_search(s.counts, s.mixed, s.change, n, mass * length)


cdef void solve(
    Scratch *s, Py_ssize_t n, double length, int n_topics, double tol, int max_iter, double *theta, double *value,
    double *gap
) noexcept nogil:
    cdef int k, iteration
    cdef double top, total, step
    for k in range(n_topics):
        theta[k] = 1.0 / n_topics
    value[0] = gap[0] = 0
    if length == 0:
        return
    for iteration in range(max_iter + 1):
        mix(s.table, theta, n_topics, n, s.mixed)
        gradient_of(s.table, s.counts, s.mixed, n_topics, n, s.inverse, s.ratio, s.gradient)
        top = total = step = 0
        for k in range(n_topics):
            top = max(top, s.gradient[k])
        gap[0] = max(top - length, 0.0)
        if gap[0] <= tol * length or iteration == max_iter:
            break
        if iteration >= EM_STEPS:
            step = newton_step(s, n, length, n_topics, iteration < EM_STEPS + INNER_STEPS, theta)
        for k in range(n_topics):  # a step of expectation-maximization never descends
            theta[k] = max(theta[k] + step * s.full[k], 0.0) if step > 0 else theta[k] * s.gradient[k]
            total += theta[k]
        for k in range(n_topics):
            theta[k] /= total
    value[0] = log_sum(s.counts, s.mixed, n, s.scaled)


def zeta(
    const int[::1] indptr,
    const int[::1] indices,
    const int[::1] counts,
    const double[:, :, ::1] topic_word,
    double tol,
    int max_iter,
    int n_threads,
):
    """Largest log-likelihood of each document under each model, over all mixtures of its topics.

    Maximizes the concave f(theta) = sum_w c_w log(theta . Phi_w) on the simplex: a few steps of expectation-
    maximization, then Newton steps whose quadratic model keeps every weight non-negative, with a line search. With
    g = f'(theta) and N = sum_w c_w, max f <= f(theta) + gap, where gap = max_z g_z - N. Words that no topic can produce,
    or all together with less than 1e-130, are left out; a document without words gets 0 and equal weights. Documents do
    not see each other. Indices are not checked.

    Equivalent to, for each document with words `w` and counts `c` and each table `phi`::

        theta = np.full(n_topics, 1 / n_topics)
        gradient = (c / (phi[w] @ theta)) @ phi[w]
        while gradient.max() - c.sum() > tol * c.sum():
            theta *= gradient / c.sum()
            gradient = (c / (phi[w] @ theta)) @ phi[w]
        value = c @ np.log(phi[w] @ theta)

    Documents are in CSR form, int32; `topic_word` is float64 (n_models, n_words, n_components), C-contiguous. At most
    `max_iter` steps a document and model; the gap, at most by how much the maximum may exceed the value, says where
    they did not suffice.
    """
    cdef Py_ssize_t n_documents = indptr.shape[0] - 1, n_words = topic_word.shape[1], job, d
    cdef Py_ssize_t n_models = topic_word.shape[0] if n_documents and n_words else 0
    cdef int n_topics = topic_word.shape[2]
    cdef Py_ssize_t longest = padded(np.diff(indptr).max(initial=0))
    cdef Py_ssize_t size = longest * (n_topics + WORD_ROWS) + padded(n_topics * (n_topics + TOPIC_ROWS))
    values, gaps = np.zeros((2, topic_word.shape[0], n_documents))
    mixtures = np.full((topic_word.shape[0], n_documents, n_topics), 1.0 / n_topics)
    cdef double[:, ::1] value = values, gap = gaps
    cdef double[::1] scratch = np.empty(n_threads * size + LANES)
    cdef double *aligned = &scratch[0] + -(<size_t>&scratch[0] // sizeof(double)) % LANES  # lanes within lines of cache
    cdef double[:, :, ::1] theta = mixtures
    cdef int[:, ::1] active = np.empty((n_threads, n_topics), dtype=np.int32)
    if not indices.shape[0] or not n_models:
        return values, gaps, mixtures
    for job in prange(n_documents * n_models, nogil=True, schedule="dynamic", chunksize=16, num_threads=n_threads):
        d = job % n_documents
        one_document(
            lay_out(aligned + threadid() * size, &active[threadid(), 0], longest, n_topics), &indices[0] + indptr[d],
            &counts[0] + indptr[d], indptr[d + 1] - indptr[d], &topic_word[job // n_documents, 0, 0], n_topics, tol,
            max_iter, &theta[0, 0, 0] + job * n_topics, &value[0, 0] + job, &gap[0, 0] + job,
        )
    return values, gaps, mixtures


cdef void one_document(
    Scratch s, const int *words, const int *counts, Py_ssize_t n_words, const double *table, int n_topics, double tol,
    int max_iter, double *theta, double *value, double *gap
) noexcept nogil:
    cdef double length = gather(words, counts, n_words, padded(n_words), table, n_topics, s.table, s.counts)
    solve(&s, padded(n_words), length, n_topics, tol, max_iter, theta, value, gap)
