"""Integer noise by inversion of an exact cumulative table; the mathematics is in doc/theory/noise.rst."""

from cython.parallel cimport prange
from libc.stdint cimport INT64_MIN, int64_t, uint16_t, uint32_t, uint64_t

import numpy as np

from skdplda._kernels._chacha20 cimport (
    CHACHA20_LANES,
    chacha20_start,
    chacha20_stream,
    chacha20_u64,
    chacha20_wipe,
)
from skdplda._kernels._simd cimport choose_simd


cdef extern from *:
    """
    #include <unistd.h>
    #if defined(__has_include)
    #if __has_include(<sys/random.h>)  /* where macOS and older C libraries declare getentropy */
    #include <sys/random.h>
    #endif
    #endif
    """
    int getentropy(void *buffer, size_t size) nogil


cdef extern from "wedge.h" nogil:
    ctypedef struct fixed128:
        pass
    fixed128 fixed_of(uint64_t high, uint64_t low)
    uint64_t fixed_high(fixed128 a)
    uint64_t fixed_low(fixed128 a)
    fixed128 fixed_expm1(fixed128 a)
    double rough_expm1(double a)
    uint64_t wedge_draw(
        chacha20_stream *stream, uint64_t bucket, int shift, fixed128 alpha, fixed128 beta
    )


choose_simd()

cdef enum:
    BLOCK = 4096  # cells that share one stream: part of what a seed means, whatever the number of threads


ctypedef struct law:
    const uint64_t *high
    const uint64_t *low
    const uint64_t *least
    const uint16_t *guide
    uint64_t n_buckets
    uint64_t cut
    int guide_shift
    int shift
    int folded
    fixed128 alpha
    fixed128 beta


cdef inline int64_t draw(const law *table, chacha20_stream *stream) noexcept nogil:
    """One integer; INT64_MIN for one beyond the cut. The word is [position in the table | offset, when folded | sign]."""
    cdef uint64_t word = chacha20_u64(stream)
    cdef uint64_t position = word >> (1 + table.folded)
    cdef uint64_t entry = table.guide[position >> table.guide_shift]
    cdef uint64_t magnitude, more, more_still
    cdef int64_t sign = -<int64_t>(word & 1)
    while position > table.high[entry]:
        entry += 1
    if position == table.high[entry]:  # the boundary is inside this cell: 64 more bits decide
        more = chacha20_u64(stream)
        while position == table.high[entry] and more > table.low[entry]:
            entry += 1
        if position == table.high[entry] and more == table.low[entry]:  # and still is: 64 more
            more_still = chacha20_u64(stream)
            while position == table.high[entry] and more == table.low[entry] and more_still >= table.least[entry]:
                entry += 1
    if entry > table.cut and (entry <= table.n_buckets or entry > table.n_buckets + table.cut):
        return INT64_MIN
    magnitude = entry
    if table.shift and entry:
        if entry <= table.n_buckets:
            more = word >> 1 if table.folded else chacha20_u64(stream)
            magnitude = more & ((<uint64_t>1 << table.shift) - 1)
        else:
            entry -= table.n_buckets
            magnitude = wedge_draw(stream, entry - 1, table.shift, table.alpha, table.beta)
        magnitude += 1 + ((entry - 1) << table.shift)
    return (<int64_t>magnitude ^ sign) - sign


cdef int64_t fill_block(
    const law *table, const uint32_t *key, uint32_t domain, uint64_t block, int64_t *out, int64_t size
) noexcept nogil:
    """The cells of one block, from the stream that belongs to it; return how many are beyond the cut."""
    cdef chacha20_stream stream
    cdef int64_t i, n_beyond = 0
    chacha20_start(&stream, key, domain, <uint32_t>block, <uint32_t>(block >> 32))
    for i in range(size):
        out[i] = draw(table, &stream)
        n_beyond += out[i] == INT64_MIN
    chacha20_wipe(&stream)
    return n_beyond


def fill(
    int64_t[::1] out,               # OUT: the draws
    const uint32_t[::1] key,        # IN: 256 bits
    uint32_t domain,                # IN: laws of different domains share no stream
    const uint64_t[::1] high,       # IN: upper ends of the entries, leading 63 - folded bits
    const uint64_t[::1] low,        # IN: the 64 bits that follow
    const uint64_t[::1] least,      # IN: and 64 more
    const uint16_t[::1] guide,      # IN: first entry that can hold a position with these top bits
    int guide_shift,                # IN: position >> guide_shift indexes guide
    int shift,                      # IN: log2 of the integers in a bucket
    int folded,                     # IN: offset bits taken from the first word: shift, or 0
    const uint64_t[::1] wedge,      # IN: alpha and beta of wedge.h, high and low words
    uint64_t cut,                   # IN: first bucket that is left to the caller
    int n_threads,
):
    """Fill `out` with independent draws of the law in the table.

    Equivalent to: np.searchsorted(boundaries, uniform, side="right") * random_sign, with 64 bits more than the table.
    Returns the number of cells beyond the cut; they hold the least 64-bit integer.
    """
    cdef law table
    cdef int64_t size = out.shape[0]
    cdef int64_t n_blocks = (size + BLOCK - 1) // BLOCK
    cdef int64_t block, n_beyond = 0
    if size == 0:
        return 0
    table.high, table.low, table.least, table.guide = &high[0], &low[0], &least[0], &guide[0]
    table.guide_shift, table.shift, table.folded = guide_shift, shift, folded
    table.n_buckets = (high.shape[0] - 1) // 2 if shift else high.shape[0] - 1
    table.cut = cut
    table.alpha = fixed_of(wedge[0], wedge[1])
    table.beta = fixed_of(wedge[2], wedge[3])
    for block in prange(n_blocks, nogil=True, schedule="static", num_threads=n_threads):
        n_beyond += fill_block(&table, &key[0], domain, block, &out[block * BLOCK], min(BLOCK, size - block * BLOCK))
    return n_beyond


def system_key():
    """Return 256 bits of the operating system's entropy as eight 32-bit words.

    getentropy (POSIX.1-2024) waits until the system's generator is seeded, and keeps nothing in the process:
    a fork cannot repeat a key, and the caller who wipes the array wipes the only copy.

    Equivalent to: np.frombuffer(os.urandom(32), np.uint32), without the copy.
    """
    key = np.empty(8, dtype=np.uint32)
    cdef uint32_t[::1] view = key
    if getentropy(&view[0], 32) != 0:
        raise OSError("the operating system gave no entropy: getentropy failed")
    return key


def keystream(const uint32_t[::1] key, uint32_t n0, uint32_t n1, uint32_t n2, int n_blocks=CHACHA20_LANES):
    """Return the first blocks of a stream, one per row; `n_blocks` is a multiple of 4.

    Equivalent to: np.stack([block(key, counter, (n0, n1, n2)) for counter in range(n_blocks)]), with RFC 8439's block
    function.
    """
    cdef chacha20_stream stream
    cdef Py_ssize_t i
    cdef uint64_t[::1] words = np.empty(8 * n_blocks, np.uint64)
    chacha20_start(&stream, &key[0], n0, n1, n2)
    for i in range(words.shape[0]):
        words[i] = chacha20_u64(&stream)
    groups = np.asarray(words).astype("<u8").view("<u4").reshape(-1, 16, CHACHA20_LANES)
    return groups.transpose(0, 2, 1).reshape(-1, 16).astype(np.uint32)


def expm1(uint64_t high, uint64_t low):
    """Return the two words of exp(a) - 1 in multiples of 2**-128, for a of the two given words, a < 1/2.

    Equivalent to: divmod(floor(2**128 * expm1((high * 2**64 + low) / 2**128)), 2**64), less at most 2**7.
    """
    cdef fixed128 value = fixed_expm1(fixed_of(high, low))
    return fixed_high(value), fixed_low(value)


def rough(double a):
    """Return exp(a) - 1, for 0 <= a < 1/2.

    Equivalent to: np.expm1(a), to 2**-38.
    """
    return rough_expm1(a)
