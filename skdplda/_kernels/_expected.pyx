"""Expected topic counts of words, given how many tokens of each document have each topic."""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

from skdplda._kernels._simd cimport aligned_zeros, choose_simd

__all__ = ["ExpectedCounts", "next_table"]


cdef extern from "expected_counts.h" nogil:
    ctypedef struct expected_block:
        const int64_t *word
        const uint16_t *document
        const uint16_t *count
        const int64_t *list
        const uint16_t *topic
        int64_t first, last
        float *tokens
        float *next
    ctypedef struct expected_rows:
        const float *table
        const float *scale
        const float *alpha
        float beta
        int even
        int32_t n_words, n_topics
    enum: EIGHT, NEVER
    void expected_columns(const float *table, int32_t n_words, int32_t n_topics, int32_t first, int32_t last, double *total)
    int expect_block(const expected_block *b, const expected_rows *r, double *sums, uint8_t *flag)
    void finish_word(const double *sum, const expected_rows *r, int32_t w, float *out)

choose_simd()


cdef enum:
    MOST = 65535  # documents of a block, and tokens of an entry
    ALIGNED = 16  # numbers of a thread's scratch are a multiple of so many


cdef class Rows:
    """What all rows of a table have in common."""

    cdef expected_rows c
    cdef const float[:, ::1] table
    cdef float[::1] scale, alpha

    def __init__(self, const float[:, ::1] table, const float[::1] alpha, float beta, int n_threads):
        cdef int32_t V = table.shape[0], K = table.shape[1], i
        cdef double[::1] total = np.zeros(K)
        for i in prange(n_threads, nogil=True, num_threads=n_threads, schedule="static"):
            expected_columns(&table[0, 0], V, K, i * K // n_threads, (i + 1) * K // n_threads, &total[0])
        self.table, self.scale = table, (1 / (np.asarray(total) + V * <double> beta)).astype(np.float32)
        self.alpha = np.append(alpha, np.zeros(2 * EIGHT, np.float32))
        self.c.table, self.c.scale, self.c.alpha, self.c.beta = &self.table[0, 0], &self.scale[0], &self.alpha[0], beta
        self.c.even, self.c.n_words, self.c.n_topics = np.min(alpha) == np.max(alpha), V, K


cdef blocks_of(X, const int64_t[::1] start, int size):
    """Return the entries of each block of documents, word by word: indptr (int64), documents and counts (uint16).

    Beside these, (n, 2), int64, is where the list of each document of the block begins and ends, and where those of all
    of them do; lists of all documents begin at `start`. Documents of a word ascend in the length of their lists, so
    that loops over lists end where the processor expects. A count that is too large has several entries.
    """
    cdef const int64_t[::1] indptr = X.indptr.astype(np.int64, copy=False)
    cdef const int32_t[::1] indices = X.indices.astype(np.int32, copy=False), counts = X.data
    cdef int64_t e, first, last, D = X.shape[0], V = X.shape[1]
    cdef int32_t i, left, most = min(size, MOST)
    cdef int64_t[::1] order, ends, place
    cdef uint16_t[::1] document, count
    blocks, lengths = [], np.diff(start)
    for first in range(0, D, most):
        last = min(D, first + most)
        order, ends = np.argsort(lengths[first:last], kind="stable"), np.zeros(V + 1, np.int64)
        for e in range(indptr[first], indptr[last]):
            ends[indices[e] + 1] += max(1, (counts[e] + <int64_t> MOST - 1) // MOST)
        if indptr[first] == indptr[last]:
            continue
        ends = np.cumsum(ends)
        document, count, place = np.empty(ends[V], np.uint16), np.empty(ends[V], np.uint16), np.array(ends)
        for i in range(last - first):
            for e in range(indptr[first + order[i]], indptr[first + order[i] + 1]):
                left = counts[e]
                while True:
                    document[place[indices[e]]], count[place[indices[e]]] = i, min(left, MOST)
                    place[indices[e]] += 1
                    left -= MOST
                    if left <= 0:
                        break
        lists = np.stack([np.add(order, first), np.add(order, first + 1)], axis=1)
        blocks.append((ends, document, count, np.asarray(start)[lists], (start[first], start[last])))
    return blocks


cdef int expect_in(
    float *scratch, expected_block *b, const expected_rows *r, double *sums, uint8_t *flag
) noexcept nogil:
    """Let a block add to the sums, and move its documents' numbers; the next ones are added up in a thread's scratch."""
    cdef size_t size = (b.last - b.first) * sizeof(float)
    memset(scratch, 0, size)
    b.next = scratch - b.first
    if expect_block(b, r, sums, flag):
        return 1
    memcpy(b.tokens + b.first, scratch, size)
    return 0


cdef class ExpectedCounts:
    """The documents of a corpus, and how many tokens of each are expected to have each topic.

    A topic that no token of a document was drawn for keeps the prior alone.

    `X` is a csr_array (D, V) of int32 counts, `topics`, uint16, has the topic of each token, document by document. A
    block of documents is one thread's share of the work. `tokens`, float32, has the expected numbers, by document and
    topic drawn, lists filled up to multiples of eight; `resumed` is what it was, to go on from.
    """

    cdef readonly object tokens
    cdef list _blocks
    cdef object _sums
    cdef int32_t _n_topics
    cdef int64_t[::1] _start
    cdef uint16_t[::1] _topic

    def __init__(self, X, const uint16_t[::1] topics, int n_topics, int block, resumed=None):
        cdef int64_t d, i, length, n = 0, first = 0, D = X.shape[0]
        cdef int32_t k
        cdef int64_t[::1] start = np.zeros(D + 1, np.int64), seen = np.zeros(n_topics, np.int64)
        cdef uint16_t[::1] topic = np.zeros(topics.shape[0] + EIGHT * D + 1, np.uint16)
        cdef float[::1] tokens = np.zeros(topic.shape[0] + 1, np.float32)
        cdef const int64_t[::1] indptr = X.indptr.astype(np.int64, copy=False)
        cdef const int32_t[::1] counts = X.data
        if X.data.sum(dtype=np.int64) != topics.shape[0] or n_topics > 65520 or (D and np.max(topics, initial=0) >= n_topics):
            raise ValueError("topics must have one entry a token, below n_topics, which may be 65520 at most")
        for d in range(D):
            length = 0
            for i in range(indptr[d], indptr[d + 1]):
                length += counts[i]
            for i in range(first, first + length):
                k = topics[i]
                if seen[k] == 0:
                    seen[k] = n + 1  # its place in the list, from 1
                    topic[n] = k
                    n += 1
                tokens[seen[k] - 1] += 1
            for i in range(start[d], n):
                seen[topic[i]] = 0
            while n % EIGHT:
                topic[n] = n_topics + 1 + n % EIGHT
                n += 1
            start[d + 1] = n
            first += length
        self._n_topics, self._start, self._topic = n_topics, start, topic[:n + 1].copy()
        self.tokens = aligned_zeros(n + 1, np.float32)
        self.tokens[:] = np.asarray(tokens)[:n + 1]
        topic = tokens = None
        self._blocks = blocks_of(X, start, block)
        if resumed is not None and (resumed.shape != (n + 1,) or resumed.dtype != np.float32):
            raise ValueError("resumed must be the `tokens` of the same documents and topics")
        if resumed is not None:
            self.tokens[:] = resumed

    def topics(self, X):
        """Return topics of tokens, uint16, that would give the lists of these documents, in the same order.

        Equivalent to: the topics of a document's list, one token each, and all further tokens the last of them.
        """
        cdef int64_t d, e, _i, n = 0, last, D = X.shape[0]
        cdef const int64_t[::1] indptr = X.indptr.astype(np.int64, copy=False)
        cdef const int32_t[::1] counts = X.data
        cdef uint16_t[::1] topic = np.empty(X.data.sum(dtype=np.int64) + 1, np.uint16)
        for d in range(D):
            last = self._start[d]
            for e in range(indptr[d], indptr[d + 1]):
                for _i in range(counts[e]):
                    topic[n] = self._topic[last]
                    n += 1
                    if last + 1 < self._start[d + 1] and self._topic[last + 1] < self._n_topics:
                        last += 1
        return np.asarray(topic)[:n]

    def collect(self, const float[:, ::1] table, const float[::1] alpha, float beta, int n_threads=1):
        """Expect the topics of all tokens, from the table and from the documents' numbers, which change in turn.

        Equivalent to, for each document with n[k] tokens expected in topic k, and each of its words w of count c::

            row = (table[w] + beta) / (table.sum(0) + n_words * beta)
            p = row * (n + alpha);  share = c * row @ alpha / p.sum();  sums[w] += [*(share * n), share]
            new_n[n > 0] += c * (p / p.sum())[n > 0]

        Addends are rounded to whole multiples of 2**-24 (shares) and 2**-16, so that sums are the same, to the last bit,
        for any number of threads, any blocks and any cut of a corpus into parts.

        The table, float32 (V, K), has no beta; alpha, float32 (K,), is positive. `next_table` makes the next table of
        the sums, float64 (V, K + 1), which the next call changes, as it does `tokens`.
        """
        cdef int64_t i, most = 0, n_blocks = len(self._blocks), error = 0
        cdef int32_t w, V = table.shape[0], K = self._n_topics
        cdef Rows rows = Rows(table, alpha, beta, n_threads)
        cdef float[::1] tokens = self.tokens, scratch
        if self._sums is None:
            self._sums = np.empty((V, K + 1))
        cdef double[:, ::1] sums = self._sums
        cdef uint8_t[::1] flag = np.full(V, NEVER, np.uint8)
        cdef const int64_t[::1] word
        cdef const uint16_t[::1] document, count
        cdef const int64_t[:, ::1] lists
        cdef expected_block *blocks = <expected_block *> malloc((n_blocks + 1) * sizeof(expected_block))
        if blocks == NULL:
            raise MemoryError("not enough memory for the blocks of documents")
        for i in range(n_blocks):
            word, document, count, lists, (blocks[i].first, blocks[i].last) = self._blocks[i]
            blocks[i].word, blocks[i].document, blocks[i].count = &word[0], &document[0], &count[0]
            blocks[i].list, blocks[i].topic = &lists[0, 0], &self._topic[0]
            blocks[i].tokens = &tokens[0]
            most = max(most, blocks[i].last - blocks[i].first)
        most = (most + ALIGNED - 1) // ALIGNED * ALIGNED
        scratch = aligned_zeros(n_threads * most + 1, np.float32)
        for i in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=1):
            error += expect_in(&scratch[threadid() * most], &blocks[i], &rows.c, &sums[0, 0], &flag[0])
        free(blocks)
        if error:
            raise MemoryError("not enough memory for a row of topics")
        for w in range(V):
            if flag[w] == NEVER:
                sums[w] = 0
        return self._sums


def next_table(const double[:, ::1] sums, float[:, ::1] table, const float[::1] alpha, float beta, int n_threads=1):
    """Make the next table of the sums of `ExpectedCounts.collect`, in the place of the one they were collected from.

    Equivalent to ``table[w] = row / (row @ alpha) * (sums[w, :-1] + alpha * sums[w, -1])`` for each word, with `row` as there.

    They sum to the number of tokens, but for rounding.
    """
    cdef int32_t w, V = table.shape[0]
    cdef Rows rows = Rows(table, alpha, beta, n_threads)
    for w in prange(V, nogil=True, num_threads=n_threads, schedule="static"):
        finish_word(&sums[w, 0], &rows.c, w, &table[w, 0])
    return np.asarray(table)
