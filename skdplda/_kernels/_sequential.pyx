"""Sequential collapsed Gibbs sweeps: every draw reads, and at once changes, the running counts."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t

from skdplda._kernels._random_stream cimport random_stream, stream_double, stream_of

cdef extern from "arithmetic.h" nogil:
    double log_one(double x)


cdef inline double _positive(double x) noexcept nogil:
    return x if x > 0 else 0.0


cdef inline void _count(double* n_d, double* n_w, double* n, uint16_t k, double by) noexcept nogil:
    n_d[k] += by
    n_w[k] += by
    n[k] += by


cdef inline double _weigh(
    const double* n_d, const double* n_w, const double* n, const double* alpha, double beta, double beta_sum,
    double clip, Py_ssize_t n_topics, double* weights,
) noexcept nogil:
    """Fill the weight of each topic and return their sum."""
    cdef Py_ssize_t k
    cdef double total = 0.0
    for k in range(n_topics):  # apart from the sum: this loop vectorises
        weights[k] = (min(_positive(n_w[k]), clip) + beta) / (_positive(n[k]) + beta_sum)
        weights[k] *= _positive(n_d[k]) + alpha[k]
    for k in range(n_topics):
        total += weights[k]
    return total


cdef inline uint16_t _draw(const double* weights, Py_ssize_t n_topics, double u) noexcept nogil:
    """Return the first topic whose cumulative weight passes u, a point below the sum of the weights."""
    cdef Py_ssize_t k = 0
    cdef double cumulative = weights[0]
    while cumulative <= u and k < n_topics - 1:
        k += 1
        cumulative += weights[k]
    return <uint16_t> k


cdef inline double _grow(double p, double n_k, double beta_sum, double n_removed) noexcept nogil:
    """Return exp(max(xi_k, xi)) of a topic of probability p when tokens leave its total alone."""
    cdef double removed = min(n_removed, n_k), left = n_k - removed + beta_sum
    return max((n_k + beta_sum) / (left + p * removed), 1 + p * removed / left)


cdef inline double _shift(double p, double factor) noexcept nogil:
    """Return exp(max |ln p'/p|) over the topics when the weight of a topic of probability p is scaled."""
    cdef double total = 1 + p * (factor - 1), own = factor / total
    return max(max(own, 1 / own), max(total, 1 / total))


cdef inline double _remove_one(
    double p, double n_k, double n_kw, double n_dk, double twins, double alpha, double beta, double beta_sum,
) noexcept nogil:
    """Return the largest _shift over the tokens of one topic that may be removed.

    Such a token may share the type of the drawn token, its document, both (a twin) or neither.
    """
    cdef double total, word, doc, worst = 1.0
    if n_k < 1:
        return worst
    total = (n_k + beta_sum) / (n_k - 1 + beta_sum)
    word = (n_kw - 1 + beta) / (n_kw + beta)
    doc = (n_dk - 1 + alpha) / (n_dk + alpha)
    if n_k - n_kw - n_dk + twins > 0:
        worst = _shift(p, total)
    if n_kw > twins:
        worst = max(worst, _shift(p, total * word))
    if n_dk > twins:
        worst = max(worst, _shift(p, total * doc))
    if twins > 0:
        worst = max(worst, _shift(p, total * word * doc))
    return worst


cdef double _weigh_noisy(
    const double* n_d, const double* n_w, const double* n, const double* alpha, double beta, double beta_sum,
    double word_noise, double doc_noise, double doc_total, Py_ssize_t n_topics, double* weights,
) noexcept nogil:
    """Fill the weight of each topic by the formula of noisy draws in `sequential_sweep` and return their sum, above 0."""
    cdef Py_ssize_t k
    cdef double word_total, total = 0.0
    for k in range(n_topics):
        weights[k] = 0.0
        word_total = n[k] - word_noise + beta_sum
        if word_total > 0 and doc_total > 0:
            weights[k] = _positive(n_w[k] + word_noise + beta) / word_total
            weights[k] *= _positive(n_d[k] + doc_noise + alpha[k]) / doc_total
        total += weights[k]
    return total if total > 0 else _weigh_evenly(n_topics, weights)


cdef double _weigh_rescaled(
    const double* n_d, const double* n_w, const double* n, const double* alpha, double beta, double beta_sum,
    double word_noise, double doc_noise, double doc_total, Py_ssize_t n_topics, double* weights,
) noexcept nogil:
    """Do the same for draws by rescaled weights."""
    cdef Py_ssize_t k
    cdef double least = INFINITY, total = 0.0
    for k in range(n_topics):
        weights[k] = (n_w[k] + word_noise + beta) / (n[k] - word_noise + beta_sum)
        weights[k] *= (n_d[k] + doc_noise + alpha[k]) / doc_total
        least = min(least, weights[k])
    for k in range(n_topics):
        weights[k] -= least
        total += weights[k]
    return total if 0 < total < INFINITY else _weigh_evenly(n_topics, weights)


cdef double _weigh_evenly(Py_ssize_t n_topics, double* weights) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(n_topics):
        weights[k] = 1
    return n_topics


def sequential_sweep(
    const int64_t[::1] doc_ptr, const int32_t[::1] words,  # IN
    uint16_t[::1] topics, double[:, ::1] doc_topic,  # INOUT
    double[:, ::1] word_topic, double[::1] topic_total,  # INOUT
    const double[::1] alpha, double beta, uint64_t seed, uint64_t sweep, double clip=INFINITY,  # IN
    const double[::1] word_noise=None, const double[::1] doc_noise=None,  # IN, one a token
    bint rescaled=False,
):
    """Draw the topic of each token once, in the order of the corpus. A negative count weighs as 0, unless rescaled.

    Equivalent to, for each token of word w and topic z in document d: take it out of the three counts;
    p = (min(word_topic[w], clip) + beta) / (topic_total + len(word_topic) * beta) * (doc_topic[d] + alpha);
    z = rng.choice(len(p), p=p / p.sum()); put it back. With noise, e and f of the token, and V words,
    p = (word_topic[w] + e + beta) / (topic_total - e + V * beta)
    * (doc_topic[d] + f + alpha) / (doc_topic[d].sum() - f + alpha.sum());
    a topic weighs 0 where one of the four terms is not positive; all topics are equal where all weigh 0. Rescaled,
    p - p.min() takes its place, where the denominator of documents is larger by one.
    """
    cdef bint noisy = word_noise is not None
    cdef Py_ssize_t d, i, n_topics = topic_total.shape[0]
    cdef double beta_sum = beta * word_topic.shape[0], alpha_sum = 0, total
    cdef double[::1] weights = np.empty(n_topics)
    cdef double* n_d
    cdef double* n_w
    cdef random_stream stream
    for i in range(n_topics):
        alpha_sum += alpha[i]
    with nogil:
        for d in range(doc_ptr.shape[0] - 1):
            stream, n_d = stream_of(seed, sweep, d), &doc_topic[d, 0]
            for i in range(doc_ptr[d], doc_ptr[d + 1]):
                n_w = &word_topic[words[i], 0]
                _count(n_d, n_w, &topic_total[0], topics[i], -1)
                if noisy and rescaled:
                    total = _weigh_rescaled(
                        n_d, n_w, &topic_total[0], &alpha[0], beta, beta_sum, word_noise[i], doc_noise[i],
                        doc_ptr[d + 1] - doc_ptr[d] - doc_noise[i] + alpha_sum, n_topics, &weights[0])
                elif noisy:
                    total = _weigh_noisy(
                        n_d, n_w, &topic_total[0], &alpha[0], beta, beta_sum, word_noise[i], doc_noise[i],
                        doc_ptr[d + 1] - doc_ptr[d] - 1 - doc_noise[i] + alpha_sum, n_topics, &weights[0])
                else:
                    total = _weigh(n_d, n_w, &topic_total[0], &alpha[0], beta, beta_sum, clip, n_topics, &weights[0])
                topics[i] = _draw(&weights[0], n_topics, stream_double(&stream) * total)
                _count(n_d, n_w, &topic_total[0], topics[i], 1)


def sequential_sweep_monitored(
    const int64_t[::1] doc_ptr, const int32_t[::1] words,  # IN, equal words of a document side by side
    uint16_t[::1] topics, double[:, ::1] doc_topic,  # INOUT
    double[:, ::1] word_topic, double[::1] topic_total,  # INOUT
    const double[::1] alpha, double beta, uint64_t seed, uint64_t sweep, double n_max,  # IN
    double[::1] word_sums, double[::1] document_sums,  # INOUT, one a token
):
    """Do `sequential_sweep` on exact counts and measure each draw.

    Equivalent to `sequential_sweep` with, before each draw: word_sums[i] += monitor_draw(n_removed=1),
    document_sums[i] += monitor_draw(n_removed=n_max), loss = exact_draw_loss(...), of tests/draw_losses.py.
    Returns max(word_sums), max(document_sums), the largest loss and the sum of the losses of this sweep.
    """
    cdef Py_ssize_t d, i, j, k, n_topics = topic_total.shape[0]
    cdef double beta_sum = beta * word_topic.shape[0], total, p, by_word, by_document, by_removal
    cdef double largest = 0.0, losses = 0.0
    cdef double[::1] weights = np.empty(n_topics), twins = np.empty(n_topics)
    cdef double* n_d
    cdef double* n_w
    cdef random_stream stream
    with nogil:
        for d in range(doc_ptr.shape[0] - 1):
            stream = stream_of(seed, sweep, d)
            n_d = &doc_topic[d, 0]
            for i in range(doc_ptr[d], doc_ptr[d + 1]):
                n_w = &word_topic[words[i], 0]
                if i == doc_ptr[d] or words[i] != words[i - 1]:  # a new type: count its tokens by topic
                    twins[:] = 0
                    j = i
                    while j < doc_ptr[d + 1] and words[j] == words[i]:
                        twins[topics[j]] += 1
                        j += 1
                _count(n_d, n_w, &topic_total[0], topics[i], -1)
                twins[topics[i]] -= 1
                total = _weigh(n_d, n_w, &topic_total[0], &alpha[0], beta, beta_sum, INFINITY, n_topics, &weights[0])
                by_word = by_document = by_removal = 1.0
                for k in range(n_topics):
                    p = weights[k] / total
                    by_word = max(by_word, _grow(p, topic_total[k], beta_sum, 1))
                    by_document = max(by_document, _grow(p, topic_total[k], beta_sum, n_max))
                    by_removal = max(by_removal, _remove_one(
                        p, topic_total[k], n_w[k], n_d[k], twins[k], alpha[k], beta, beta_sum))
                word_sums[i] += 2 * log_one(by_word)
                document_sums[i] += 2 * log_one(by_document)
                largest = max(largest, log_one(by_removal))
                losses += log_one(by_removal)
                topics[i] = _draw(&weights[0], n_topics, stream_double(&stream) * total)
                _count(n_d, n_w, &topic_total[0], topics[i], 1)
                twins[topics[i]] += 1
    return float(np.max(word_sums, initial=0.0)), float(np.max(document_sums, initial=0.0)), largest, losses
