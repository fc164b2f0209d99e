"""Randomized presence bits, packed eight a byte; the mathematics is in doc/theory/local.rst."""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

import numpy as np

from skdplda._kernels._chacha20 cimport chacha20_start, chacha20_stream, chacha20_u64, chacha20_wipe
from skdplda._kernels._simd cimport choose_simd

choose_simd()

cdef enum:
    BLOCK = 64  # documents that share one stream: part of what a seed means, whatever the number of threads
    DOMAIN = 3  # the noise samplers have 1 and 2
    GUIDE_SHIFT = 52  # the leading 12 bits index the guide

cdef extern from "report_gaps.h" nogil:
    int64_t gap_of(const uint64_t *survival, int64_t reach, uint64_t word, int64_t first)

ctypedef struct gap_law:
    const uint64_t *survival
    const uint16_t *guide
    int64_t reach
    int asymmetric


cdef inline int64_t gap(const gap_law *law, chacha20_stream *stream) noexcept nogil:
    """Unmarked positions before the next mark; `reach` means that many and perhaps more."""
    cdef uint64_t word = chacha20_u64(stream)
    return gap_of(law.survival, law.reach, word, law.guide[word >> GUIDE_SHIFT])


cdef void report_of(
    const gap_law *law, chacha20_stream *stream, const int32_t *words, int64_t n, int64_t n_words, int64_t max_words,
    int32_t *chosen, uint8_t *bits
) noexcept nogil:
    """The report of one document; `bits` are zeros before."""
    cdef int64_t i, j, position = 0
    cdef int32_t w
    cdef uint64_t coins = 0
    if max_words and n > max_words:  # keep a random part: the first steps of a shuffle
        for i in range(n):
            chosen[i] = words[i]
        for i in range(max_words):
            j = i + <int64_t>(chacha20_u64(stream) % <uint64_t>(n - i))
            w = chosen[j]
            chosen[j] = chosen[i]
            chosen[i] = w
        words, n = chosen, max_words
    for i in range(n):
        bits[words[i] >> 3] |= <uint8_t>(1 << (words[i] & 7))
    if law.reach == 0:
        return
    while True:
        i = gap(law, stream)
        position += i
        if position >= n_words:
            break
        if i == law.reach:  # no mark yet: the law has no memory
            continue
        if law.asymmetric:
            bits[position >> 3] |= <uint8_t>(1 << (position & 7))
        else:
            bits[position >> 3] ^= <uint8_t>(1 << (position & 7))
        position += 1
    if law.asymmetric:
        for i in range(n):
            if i & 63 == 0:
                coins = chacha20_u64(stream)
            if not (coins >> (i & 63)) & 1:
                bits[words[i] >> 3] &= <uint8_t>~(1 << (words[i] & 7))


def randomize(
    const int64_t[::1] indptr,      # IN: rows, documents
    const int32_t[::1] indices,     # IN: the words that are present, each once a row
    int64_t n_words,
    const uint32_t[::1] key,        # IN: 256 bits
    const uint64_t[::1] survival,   # IN: 2**64 P(the next g + 1 positions have no mark), g = 0, 1, ...; descending
    const uint16_t[::1] guide,      # IN: least gap of a word with these 12 leading bits
    bint asymmetric,
    int64_t max_words,              # most words of a document that are reported; 0 for all
    int n_threads,
):
    """Return the randomized reports of the documents: uint8 array of shape (n_documents, ceil(n_words / 8)).

    Equivalent to, with marks[d, w] true with probability q, independently:
    ``np.packbits(present ^ marks, axis=1, bitorder="little")``, or if asymmetric
    ``np.packbits(np.where(present, coins, marks), axis=1, bitorder="little")`` with fair coins.
    Marks are found by the gaps between them; an empty `survival` makes no mark.
    """
    cdef int64_t n_documents = indptr.shape[0] - 1, n_blocks = (n_documents + BLOCK - 1) // BLOCK
    cdef int64_t b, longest = max(1, np.diff(indptr).max(initial=0)), size = (n_words + 7) // 8
    cdef const int32_t *words = &indices[0] if indices.shape[0] else NULL
    cdef int32_t[:, ::1] chosen = np.empty((n_threads, longest if max_words else 1), np.int32)
    out = np.zeros((n_documents, size), np.uint8)
    cdef uint8_t[:, ::1] bits = out
    cdef gap_law law
    if n_documents == 0 or n_words == 0:
        return out
    law.reach, law.asymmetric = survival.shape[0], asymmetric
    law.survival = &survival[0] if law.reach else NULL
    law.guide = &guide[0] if law.reach else NULL
    for b in prange(n_blocks, nogil=True, schedule="static", num_threads=n_threads):
        randomize_block(
            &law, &key[0], b, &indptr[0], words, min(n_documents, (b + 1) * BLOCK), n_words, max_words,
            &chosen[threadid(), 0], &bits[0, 0], size,
        )
    return out


cdef void randomize_block(
    const gap_law *law, const uint32_t *key, int64_t block, const int64_t *indptr, const int32_t *words, int64_t last,
    int64_t n_words, int64_t max_words, int32_t *chosen, uint8_t *bits, int64_t size
) noexcept nogil:
    """The reports of one block, from the stream that belongs to it."""
    cdef chacha20_stream stream
    cdef int64_t d
    chacha20_start(&stream, key, DOMAIN, <uint32_t>block, <uint32_t>(block >> 32))
    for d in range(block * BLOCK, last):
        report_of(law, &stream, words + indptr[d], indptr[d + 1] - indptr[d], n_words, max_words, chosen,
                  bits + d * size)
    chacha20_wipe(&stream)


def positions(const uint8_t[:, ::1] bits):
    """Return (indptr, indices) of the bits that are set, int64 and int32.

    Equivalent to: np.unpackbits(bits, axis=1, bitorder="little"), as the rows of a CSR matrix.
    """
    cdef int64_t n = bits.shape[0], size = bits.shape[1], d, i, end = 0
    cdef uint8_t byte, bit
    cdef int64_t[::1] indptr = np.zeros(n + 1, np.int64)
    with nogil:
        for d in range(n):
            for i in range(size):
                byte = bits[d, i]
                while byte:
                    byte &= byte - 1
                    end += 1
            indptr[d + 1] = end
    indices = np.empty(end, np.int32)
    cdef int32_t[::1] words = indices
    end = 0
    with nogil:
        for d in range(n):
            for i in range(size):
                byte = bits[d, i]
                for bit in range(8):
                    if byte >> bit & 1:
                        words[end] = <int32_t>(8 * i + bit)
                        end += 1
    return np.asarray(indptr), indices
