"""Delayed-count sweeps whose draws are released: integer weights, exact draws, words of ChaCha20.

With weights a * b of integers, a draw's odds are exactly a ratio of integers: no rounding enters its privacy.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t

import numpy as np

from skdplda._kernels._chacha20 cimport chacha20_start, chacha20_stream, chacha20_wipe
from skdplda._kernels._simd cimport choose_simd


cdef extern from *:
    """
    #include "chacha20.h"
    /* Uniform on {0, ..., n - 1}, exactly; n > 0. Lemire (2019), ACM TOMACS 29(1), algorithm 5. */
    static inline uint64_t uniform_below(chacha20_stream *stream, uint64_t n) {
        unsigned __int128 product = (unsigned __int128)chacha20_u64(stream) * n;
        if ((uint64_t)product < n) {
            const uint64_t least = -n % n;
            while ((uint64_t)product < least) product = (unsigned __int128)chacha20_u64(stream) * n;
        }
        return (uint64_t)(product >> 64);
    }
    """
    uint64_t uniform_below(chacha20_stream *stream, uint64_t n) noexcept nogil


choose_simd()

cdef enum:
    ORDER = 0  # number of the streams that order the tokens; sweeps count from 1
    HEADROOM_BITS = 62  # of the sum of a token's weights: rejections stay rare


cdef inline uint32_t _factor(double count, double rate) noexcept nogil:
    """One topic's part of the weight that is the document's: at least 1, so that every topic can be drawn."""
    cdef double value = count * rate
    return <uint32_t>value if value > 1 else 1


cdef void _sweep_document(
    const int32_t *words, uint16_t *topics, Py_ssize_t n_tokens,
    const uint32_t *table, const double *alpha, const double *rate, double largest, Py_ssize_t n_topics,
    bint first,
    uint64_t *weights, double *scaled, double *counts, uint32_t *factors, chacha20_stream *stream,
) noexcept nogil:
    """Draw the topic of each token of one document, in order."""
    cdef Py_ssize_t i, k, z
    cdef double peak = 0.0
    cdef uint64_t total, point
    cdef const uint32_t *row
    for k in range(n_topics):
        counts[k] = alpha[k]
        peak = max(peak, rate[k] * (alpha[k] + n_tokens))
    if not first:
        for i in range(n_tokens):
            counts[topics[i]] += 1
    for k in range(n_topics):
        scaled[k] = rate[k] * (largest / peak)
        factors[k] = _factor(counts[k], scaled[k])
    for i in range(n_tokens):
        row = table + <Py_ssize_t>words[i] * n_topics
        z = topics[i]
        if not first:
            counts[z] -= 1
            factors[z] = _factor(counts[z], scaled[z])
        total = 0
        for k in range(n_topics):
            weights[k] = <uint64_t>row[k] * factors[k]
            total += weights[k]
        point = uniform_below(stream, total)
        z = 0
        while point >= weights[z]:
            point -= weights[z]
            z += 1
        topics[i] = <uint16_t>z
        counts[z] += 1
        factors[z] = _factor(counts[z], scaled[z])


def released_sweep(
    const int64_t[::1] doc_ptr, const int32_t[::1] words,  # IN
    uint16_t[::1] topics,  # INOUT
    const uint32_t[:, ::1] table,  # IN, (n_words, n_topics), from 1 to most
    const double[::1] alpha, const double[::1] rate,  # IN, (n_topics,)
    uint32_t most, const uint32_t[::1] key, uint32_t sweep, int n_threads,  # IN; 256 bits of key, sweeps from 1
    int64_t first_document=0,  # IN, number of the first one, where these are a part of a corpus
):
    """Draw the topic of each token from a table that stays as it is; in sweep 1, `topics` is not read.

    Equivalent to, for each token i of word w and topic z in document d, with the counts n_d of the other tokens
    that have a topic: s = (2**bits - 1) / max(rate * (alpha + len(d))), where bits leaves n_topics * most * 2**bits
    below 2**62; a = table[w] * np.maximum(1, np.floor((n_d + alpha) * rate * s));
    topics[i] = np.searchsorted(np.cumsum(a), uniform integer below sum(a), side="right").
    """
    cdef Py_ssize_t n_topics = table.shape[1], d, here
    cdef int64_t start
    cdef uint64_t number
    cdef int bits = min(32, HEADROOM_BITS - int(most).bit_length() - int(n_topics - 1).bit_length())
    cdef double largest = 2.0**bits - 1
    cdef uint64_t[:, ::1] weights = np.empty((n_threads, n_topics), np.uint64)
    cdef double[:, :, ::1] counts = np.empty((n_threads, 2, n_topics))
    cdef uint32_t[:, ::1] factors = np.empty((n_threads, n_topics), np.uint32)
    cdef bytearray buffer = bytearray(n_threads * sizeof(chacha20_stream))
    cdef chacha20_stream *streams = <chacha20_stream *><char *>buffer
    if words.shape[0] == 0:
        return
    for d in prange(doc_ptr.shape[0] - 1, nogil=True, schedule="dynamic", chunksize=16, num_threads=n_threads):
        here = threadid()
        start = doc_ptr[d]
        number = first_document + d
        if doc_ptr[d + 1] > start:
            chacha20_start(&streams[here], &key[0], sweep, <uint32_t>number, <uint32_t>(number >> 32))
            _sweep_document(
                &words[start], &topics[start], doc_ptr[d + 1] - start, &table[0, 0], &alpha[0], &rate[0], largest,
                n_topics, sweep == 1, &weights[here, 0], &counts[here, 0, 0], &counts[here, 1, 0], &factors[here, 0],
                &streams[here])
            chacha20_wipe(&streams[here])


def order_tokens(
    const int64_t[::1] doc_ptr, int32_t[::1] words,  # IN, INOUT
    const uint32_t[::1] key,  # IN, 256 bits
    int64_t first_document=0,  # IN, as in `released_sweep`
):
    """Put the tokens of each document in a random order, all orders alike.

    Equivalent to: words[start:stop] = rng.permutation(words[start:stop]) for each document.
    """
    cdef Py_ssize_t d
    cdef int64_t i, j, start
    cdef uint64_t number
    cdef int32_t word
    cdef chacha20_stream stream
    with nogil:
        for d in range(doc_ptr.shape[0] - 1):
            start = doc_ptr[d]
            if doc_ptr[d + 1] - start < 2:
                continue
            number = first_document + d
            chacha20_start(&stream, &key[0], ORDER, <uint32_t>number, <uint32_t>(number >> 32))
            for i in range(doc_ptr[d + 1] - 1, start, -1):
                j = start + <int64_t>uniform_below(&stream, <uint64_t>(i - start + 1))
                word = words[i]
                words[i] = words[j]
                words[j] = word
            chacha20_wipe(&stream)


def count_topics(
    const int32_t[::1] words, const uint16_t[::1] topics,  # IN
    int64_t[:, ::1] counts,  # OUT, (n_words, n_topics)
):
    """Count the tokens of each word in each topic.

    Equivalent to: counts[:] = 0; np.add.at(counts, (words, topics), 1).
    """
    cdef Py_ssize_t i
    counts[:] = 0
    with nogil:
        for i in range(words.shape[0]):
            counts[words[i], topics[i]] += 1
