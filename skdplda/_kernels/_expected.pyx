"""Expected topic counts of words, given how many tokens of each document have each topic."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.stdlib cimport free, malloc

import numpy as np

__all__ = ["ExpectedCounts", "next_table"]


cdef extern from "expected_counts.h" nogil:
    ctypedef struct expected_block:
        const int64_t *word
        const int32_t *document
        const int32_t *count
        const int64_t *start
        const uint16_t *topic
        const float *tokens
        float *next
    enum: EIGHT
    int expect_block(const expected_block *b, const float *table, const float *scale, const float *alpha, float beta,
                     int32_t n_words, int32_t n_topics, double *sums, uint8_t *busy)
    void finish_word(const double *sum, const float *table, const float *scale, const float *alpha, float beta,
                     int32_t n_topics, float *out)


cdef scale_of(table, double beta):
    return (1 / (table.sum(axis=0, dtype=np.float64) + table.shape[0] * beta)).astype(np.float32)


cdef class ExpectedCounts:
    """The documents of a corpus, and how many tokens of each are expected to have each topic.

    A topic that no token of a document was drawn for keeps the prior alone.

    Parameters
    ----------
    blocks : list of tuple of ndarray
        The parts indptr (int64), indices, data (int32) of csc_arrays of all documents, each with entries of a block of them.
    lengths : int64 array of shape (D,)
        Tokens of each document.
    topics : uint16 array of shape (n_tokens,)
        The topic of each token, document by document, below n_topics.
    n_topics : int
        K.
    resumed : float32 array, default=None
        What `tokens` was, to go on from.

    Attributes
    ----------
    tokens : float32 array
        The expected numbers, by document and topic drawn, lists filled up to multiples of eight.
    """

    cdef readonly object tokens
    cdef list _blocks
    cdef object _sums
    cdef int32_t _n_topics
    cdef int64_t[::1] _start
    cdef uint16_t[::1] _topic

    def __init__(self, blocks, const int64_t[::1] lengths, const uint16_t[::1] topics, int n_topics,
                 resumed=None):
        cdef int64_t d, i, n = 0, first = 0, D = lengths.shape[0]
        cdef int32_t k
        cdef int64_t[::1] start = np.zeros(D + 1, np.int64), seen = np.zeros(n_topics, np.int64)
        cdef uint16_t[::1] topic = np.zeros(topics.shape[0] + EIGHT * D, np.uint16)
        cdef float[::1] tokens = np.zeros(topic.shape[0] + 1, np.float32)
        if np.sum(lengths) != topics.shape[0] or (topics.shape[0] and np.max(topics) >= n_topics):
            raise ValueError("topics must have one entry a token, below n_topics")
        for d in range(D):
            for i in range(first, first + lengths[d]):
                k = topics[i]
                if seen[k] == 0:
                    seen[k] = n + 1  # its place in the list, from 1
                    topic[n] = k
                    n += 1
                tokens[seen[k] - 1] += 1
            for i in range(start[d], n):
                seen[topic[i]] = 0
            n = (n + EIGHT - 1) // EIGHT * EIGHT
            start[d + 1] = n
            first += lengths[d]
        self._blocks, self._n_topics, self._start, self._topic = blocks, n_topics, start, topic[:n + 1].copy()
        self.tokens = np.array(tokens[:n + 1]) if resumed is None else resumed
        if self.tokens.shape != (n + 1,) or self.tokens.dtype != np.float32:
            raise ValueError("resumed must be the `tokens` of the same documents and topics")

    def collect(self, const float[:, ::1] table, const float[::1] alpha, float beta, int n_threads=1):
        """Expect the topics of all tokens, from the table and from the documents' numbers, which change in turn.

        Equivalent to, for each document with n[k] tokens expected in topic k, and each of its words w of count c::

            row = (table[w] + beta) / (table.sum(0) + n_words * beta)
            p = row * (n + alpha);  share = c * row @ alpha / p.sum();  sums[w] += [*(share * n), share]
            new_n[n > 0] += c * (p / p.sum())[n > 0]

        Addends are rounded to whole multiples of 2**-24 (shares) and 2**-16, so that sums are the same, to the last bit,
        for any number of threads, any blocks and any cut of a corpus into parts.

        Parameters
        ----------
        table : float32 array of shape (n_words, n_topics)
            Topic-word counts, without beta.
        alpha : float32 array of shape (n_topics,)
            Positive.

        Returns
        -------
        sums : float64 array of shape (n_words, n_topics + 1)
            What `next_table` makes the next table of. The next call changes it.
        """
        cdef int64_t i, n_blocks = len(self._blocks), error = 0
        cdef int32_t V = table.shape[0], K = self._n_topics
        cdef const float[::1] scale = scale_of(np.asarray(table), beta), tokens = self.tokens
        cdef float[::1] after = np.zeros(tokens.shape[0], np.float32)
        if self._sums is None:
            self._sums = np.empty((V, K + 1))
        cdef double[:, ::1] sums = self._sums
        sums[:] = 0
        cdef uint8_t[::1] busy = np.zeros(V, np.uint8)
        cdef const int64_t[::1] word
        cdef const int32_t[::1] document, count
        cdef expected_block *blocks = <expected_block *> malloc((n_blocks + 1) * sizeof(expected_block))
        if blocks == NULL:
            raise MemoryError("not enough memory for the blocks of documents")
        for i in range(n_blocks):
            word, document, count = self._blocks[i]
            blocks[i].word, blocks[i].document, blocks[i].count = &word[0], &document[0], &count[0]
            blocks[i].start, blocks[i].topic = &self._start[0], &self._topic[0]
            blocks[i].tokens, blocks[i].next = &tokens[0], &after[0]
        for i in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=1):
            error += expect_block(&blocks[i], &table[0, 0], &scale[0], &alpha[0], beta, V, K, &sums[0, 0],
                                  &busy[0] if n_blocks > 1 else NULL)
        free(blocks)
        if error:
            raise MemoryError("not enough memory for a row of topics")
        self.tokens = np.asarray(after) * (np.asarray(tokens) > 0)  # lists are filled up with topic 0
        return self._sums


def next_table(const double[:, ::1] sums, const float[:, ::1] table, const float[::1] alpha, float beta, int n_threads=1):
    """Make the next table of the sums of `ExpectedCounts.collect`, which were collected from a table.

    Equivalent to ``row / (row @ alpha) * (sums[w, :-1] + alpha * sums[w, -1])`` for each word, with `row` as there.

    Returns
    -------
    table : float32 array of shape (n_words, n_topics)
        Expected counts; they sum to the number of tokens, but for rounding.
    """
    cdef int32_t w, V = table.shape[0], K = table.shape[1]
    cdef const float[::1] scale = scale_of(np.asarray(table), beta)
    cdef float[:, ::1] out = np.empty((V, K), np.float32)
    for w in prange(V, nogil=True, num_threads=n_threads, schedule="static"):
        finish_word(&sums[w, 0], &table[w, 0], &scale[0], &alpha[0], beta, K, &out[w, 0])
    return np.asarray(out)
