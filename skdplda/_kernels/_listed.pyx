"""Delayed-count Gibbs sweeps from lists of the topics that each word has."""

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

import numpy as np
import scipy.sparse as sp

from skdplda._kernels._blocks cimport MOST_TOKENS, check, check_rows
from skdplda._kernels._simd cimport aligned_zeros, choose_simd

__all__ = ["ListedTokens"]


cdef extern from "listed_topics.h" nogil:
    ctypedef struct delayed_table:
        const float *scale
        const float *alpha
        float beta
        float self_count
        int32_t n_words, n_topics
        uint64_t seed, round
        int64_t first_document
        const uint8_t *active
    ctypedef struct listed_tokens:
        const int64_t *indptr
        const int32_t *word
        const int32_t *count
        const int64_t *first
        const int64_t *of_word
        const int64_t *begin
        const int32_t *many
        uint16_t *topic
        uint16_t *counted
        uint16_t *place
    ctypedef struct listed_table:
        const int64_t *start
        uint16_t *topic
        float *weight
    ctypedef struct topic_cells:
        pass
    ctypedef struct listed_scratch:
        pass
    enum: LANES, UNASSIGNED
    listed_scratch *listed_new(const delayed_table *f, int32_t longest)
    void listed_free(listed_scratch *s)
    topic_cells *new_cells(const delayed_table *f)
    void free_cells(topic_cells *c)
    void enter_words(const delayed_table *f, const listed_tokens *x, const int64_t *start, const int32_t *topics,
                     const int32_t *counts, int32_t first, int32_t last, listed_table *t, uint16_t *rank)
    int sweep_listed(const listed_tokens *x, const delayed_table *f, const listed_table *t, const topic_cells *c,
                     int n_sweeps, int64_t first, int64_t last, listed_scratch *s)
    void list_words(const listed_tokens *x, int32_t n_topics, int32_t first, int32_t last, const int64_t *room,
                    int32_t *topic, int32_t *count, int64_t *length, uint32_t *seen, uint64_t *used)

cdef enum:
    SHARES = 16  # of the work, for each thread
    SHARED = 10_000  # tokens of a share, at least

choose_simd()


cdef class ListedTokens:
    """The tokens of a corpus and their topics, laid out for sweeps from tables that list the topics of each word.

    Parameters, and the law of a sweep, are those of `TokenBlocks`, but that the words of a row must ascend, the arrays are
    kept and must stay as they are, and `block_documents` cuts the work of threads. For many topics and tables without noise:
    no step of a round visits all words times all topics.
    """

    cdef readonly int64_t n_tokens, n_documents
    cdef readonly int32_t n_words, n_topics
    cdef const int64_t[::1] indptr
    cdef const int32_t[::1] indices, counts
    cdef int64_t[::1] first_token, of_word, begin, room, cuts
    cdef int32_t[::1] many
    cdef uint16_t[::1] topic, counted, place
    cdef listed_tokens c

    def __cinit__(self, const int64_t[::1] indptr, const int32_t[::1] indices, const int32_t[::1] counts,
                  int n_words, int n_topics, int n_threads=1, int64_t block_documents=0):
        cdef int64_t n = indices.shape[0], D = indptr.shape[0] - 1
        check_rows(indptr, indices, counts, n_words, n_topics)
        check(-2 if n and (np.min(indices) < 0 or np.max(indices) >= n_words) else 0)
        check(-4 if n and np.min(counts) < 0 else 0)
        ascends = np.diff(indices) > 0
        ascends[np.setdiff1d(np.asarray(indptr)[1:D], (0, n)) - 1] = True  # where a document begins
        if not ascends.all():
            raise ValueError("the words of each row must ascend: sum duplicates and sort them first")
        before = np.append(0, np.cumsum(counts, dtype=np.int64))  # tokens before each entry
        self.first_token = before[np.asarray(indptr)]
        if D and np.max(np.diff(self.first_token)) >= MOST_TOKENS:
            raise ValueError(f"documents must have at most {MOST_TOKENS - 1} tokens: cut longer ones first")
        self.n_documents, self.n_words, self.n_topics, self.n_tokens = D, n_words, n_topics, self.first_token[D]
        self.indptr = indptr
        self.indices, self.counts = (indices, counts) if n else (np.zeros(1, np.int32), np.zeros(1, np.int32))
        tokens = np.bincount(indices, counts, n_words).astype(np.int64)
        self.room = np.append(0, np.cumsum(np.minimum(tokens, n_topics)))  # as long as lists may become
        order = sp.csr_array((np.arange(n), np.asarray(indices), np.asarray(indptr)), (D, n_words)).tocsc()
        self.of_word, entries = order.indptr.astype(np.int64), np.append(order.data, n)
        self.begin, self.many = before[entries], np.append(counts, np.int32(0))[entries]
        size = min(n_threads * SHARES, self.n_tokens // SHARED + 1) if n_threads > 1 else 1
        cuts = np.searchsorted(self.first_token, np.linspace(0, self.n_tokens, size, endpoint=False)[1:])
        cuts = np.arange(block_documents, D, block_documents) if block_documents else cuts
        self.cuts = np.unique(np.r_[0, cuts, D]).astype(np.int64)
        self.topic, self.counted, self.place = (np.full(self.n_tokens + 1, UNASSIGNED, np.uint16) for _ in range(3))
        self.c.indptr, self.c.word, self.c.count = &self.indptr[0], &self.indices[0], &self.counts[0]
        self.c.first, self.c.of_word, self.c.begin = &self.first_token[0], &self.of_word[0], &self.begin[0]
        self.c.many, self.c.topic, self.c.counted = &self.many[0], &self.topic[0], &self.counted[0]
        self.c.place = &self.place[0]

    def sweep(self, const int64_t[::1] start, const int32_t[::1] topics, const int32_t[::1] counts, const float[::1] alpha,
              float beta, float self_count, int n_sweeps, uint64_t seed, uint64_t round_,
              const uint8_t[::1] active=None, int n_threads=1, int64_t first_document=0):
        """Redraw the topics of all documents from a table that stays as it is during the sweep.

        Equivalent to `TokenBlocks.sweep` in law, with tokens in the order (word, occurrence). Results are the same, to
        the last bit, for any number of threads, any shares of the work, any cut of a corpus into parts, and any other
        documents beside.

        Entries `start[w]` to `start[w + 1]` of `topics` and `counts` are the topics of a word, ascending, and their
        positive counts: the table, where it is not zero. The other arguments are as there.
        """
        cdef int64_t i, p, error = 0, missing = 0, n = topics.shape[0]
        cdef delayed_table f
        cdef listed_table t
        cdef listed_scratch *s
        cdef uint16_t *rank
        if start.shape[0] != self.n_words + 1 or start[0] != 0 or start[self.n_words] != n or counts.shape[0] != n:
            raise ValueError("start must ascend from 0 to the number of entries, and topics and counts have one an entry")
        if alpha.shape[0] != self.n_topics or not (np.min(alpha) > 0 and beta > 0 and 0 <= self_count < np.inf
                                                   and np.max(alpha) < np.inf and beta < np.inf):
            raise ValueError("alpha (n_topics,) and beta must be positive, self_count nonnegative")
        if np.min(np.diff(start)) < 0 or (n and (np.min(counts) <= 0 or np.min(topics) < 0
                                                 or np.max(topics) >= self.n_topics)):
            raise ValueError("topics must lie in [0, n_topics), and counts be positive")
        if active is not None and active.shape[0] != self.n_documents:
            raise ValueError("active must have one flag a document")
        topics = topics if n else np.zeros(1, np.int32)
        counts = counts if n else np.zeros(1, np.int32)
        cdef float[::1] scale = (
            1 / (np.bincount(topics, counts, self.n_topics) + self.n_words * <double> beta)
        ).astype(np.float32)
        f.scale, f.alpha, f.beta, f.self_count = &scale[0], &alpha[0], beta, self_count
        f.n_words, f.n_topics, f.seed, f.round, f.first_document = self.n_words, self.n_topics, seed, round_, first_document
        f.active = NULL
        if active is not None and self.n_documents:
            f.active = &active[0]
        cdef int64_t[::1] first = np.append(0, np.cumsum(-(-np.diff(start) // LANES) * LANES))
        cdef int32_t longest = np.max(np.diff(first))
        cdef uint16_t[::1] listed = aligned_zeros(first[self.n_words] + LANES, np.uint16)
        cdef float[::1] weight = aligned_zeros(first[self.n_words] + LANES, np.float32)
        cdef int32_t[::1] bounds = self._shares_of_words(n_threads)
        t.start, t.topic, t.weight = &first[0], &listed[0], &weight[0]
        cdef topic_cells *cells = new_cells(&f)
        with nogil, parallel(num_threads=n_threads):
            rank = <uint16_t *> calloc(self.n_topics, sizeof(uint16_t))
            for p in prange(bounds.shape[0] - 1, schedule="dynamic", chunksize=1):
                if rank == NULL:
                    missing += -1
                else:
                    enter_words(&f, &self.c, &start[0], &topics[0], &counts[0], bounds[p], bounds[p + 1], &t, rank)
            free(rank)
        with nogil, parallel(num_threads=n_threads):
            s = listed_new(&f, longest)
            for i in prange(self.cuts.shape[0] - 1, schedule="dynamic", chunksize=1):
                error += -1 if s == NULL or cells == NULL or missing else sweep_listed(
                    &self.c, &f, &t, cells, n_sweeps, self.cuts[i], self.cuts[i + 1], s)
            listed_free(s)
        free_cells(cells)
        check(-1 if error or missing else 0)

    def _shares_of_words(self, int n_threads):
        return np.linspace(0, self.n_words, SHARES * n_threads + 1 if n_threads > 1 else 2).astype(np.int32)

    def sums(self, int n_threads=1):
        """Count how many tokens of each word have each topic; these are then the topics that the table counts.

        Equivalent to ``csr_array``'s parts ``indptr, indices, data`` of ``np.add.at(zeros, (word, topic), 1)``.
        """
        cdef int64_t p, error = 0, n = self.room[self.n_words], V = self.n_words
        cdef int32_t[::1] bounds = self._shares_of_words(n_threads)
        cdef int32_t[::1] topic = np.empty(n + 1, np.int32), count = np.empty(n + 1, np.int32)
        cdef int64_t[::1] length = np.zeros(V + 1, np.int64), start
        cdef uint32_t *seen
        cdef uint64_t *used
        with nogil, parallel(num_threads=n_threads):
            seen = <uint32_t *> calloc(self.n_topics, sizeof(uint32_t))
            used = <uint64_t *> calloc(self.n_topics // 64 + 1, sizeof(uint64_t))
            for p in prange(bounds.shape[0] - 1, schedule="dynamic", chunksize=1):
                if seen == NULL or used == NULL:
                    error += -1
                else:
                    list_words(&self.c, self.n_topics, bounds[p], bounds[p + 1], &self.room[0], &topic[0], &count[0],
                               &length[1], seen, used)
            free(seen)
            free(used)
        check(-1 if error else 0)
        start = np.cumsum(length)
        entries = np.arange(start[V]) + np.repeat(np.subtract(self.room, start)[:V], np.diff(start))
        return np.asarray(start), np.asarray(topic)[entries], np.asarray(count)[entries]

    @property
    def topics(self):
        """Topic of each token, by documents, in the order of a sweep: uint16 array of shape (n_tokens,)."""
        return np.array(self.topic[:self.n_tokens])

    def set_topics(self, topics):
        """Restore what `topics` returned; the caller's table must hold the sum of these tokens.

        Equivalent to: ``self.topics[:] = topics``.
        """
        ordered = np.array(topics, np.uint16)
        if ordered.shape != (self.n_tokens,):
            raise ValueError("topics must have one entry a token")
        check(-5 if np.any((ordered >= self.n_topics) & (ordered != UNASSIGNED)) else 0)
        np.asarray(self.topic)[:self.n_tokens] = ordered
        np.asarray(self.counted)[:self.n_tokens] = ordered
