"""Delayed-count Gibbs sweeps from lists of the topics that each word has."""

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

import numpy as np

from skdplda._kernels._blocks cimport TokenLayout, check, token_block
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
    ctypedef struct listed_table:
        const int64_t *start
        const int32_t *topic
        const int32_t *count
    ctypedef struct listed_scratch:
        pass
    int64_t slots_of(const token_block *b, const int64_t *first_token, int32_t n_topics)
    listed_scratch *listed_new(const delayed_table *f, int64_t documents, int64_t tokens, int64_t slots)
    void listed_free(listed_scratch *s)
    int sweep_listed(const token_block *b, const delayed_table *f, const listed_table *t, int n_sweeps, listed_scratch *s)
    int list_words(token_block *blocks, int64_t n_blocks, int32_t n_topics, int32_t first, int32_t last,
                   const int64_t *room, int32_t *topic, int32_t *count, int64_t *length, uint32_t *seen, uint64_t *used,
                   int64_t *next)
    int32_t padded_pairs(int32_t n_topics)

choose_simd()


cdef class ListedTokens(TokenLayout):
    """The tokens of a corpus and their topics, laid out for sweeps from tables that list the topics of each word.

    The parameters are those of `TokenBlocks`, and so is the law of a sweep; the draws are others. For many topics and
    tables without noise: no step of a round visits all words times all topics.

    Raises
    ------
    ValueError
        If the arrays do not describe a document-term matrix.
    MemoryError
        If the blocks do not fit.
    """

    lists = True
    cdef int64_t[::1] room  # word -> first entry of its list, where lists are as long as they may become

    def __cinit__(self, *args, **options):
        cdef int64_t i, g
        tokens = np.zeros(self.n_words, np.int64)
        cdef int64_t[::1] count = tokens
        for i in range(self.n_blocks):
            for g in range(self.blocks[i].n_segments):
                count[self.blocks[i].word[g]] += self.blocks[i].start[g + 1] - self.blocks[i].start[g]
        self.room = np.append(0, np.cumsum(np.minimum(tokens, self.n_topics)))

    def sweep(self, const int64_t[::1] start, const int32_t[::1] topics, const int32_t[::1] counts, const float[::1] alpha,
              float beta, float self_count, int n_sweeps, uint64_t seed, uint64_t round_,
              const uint8_t[::1] active=None, int n_threads=1, int64_t first_document=0):
        """Redraw the topics of all documents from a table that stays as it is during the sweep.

        Equivalent to `TokenBlocks.sweep` in law, with tokens in the order (word, occurrence). Results are the same, to
        the last bit, for any number of threads, any blocks, any cut of a corpus into parts, and any other documents beside.

        Parameters
        ----------
        start : int64 array of shape (n_words + 1,)
            First entry of each word in `topics` and `counts`.
        topics, counts : int32 arrays of shape (nnz,)
            The topics of each word, ascending, and their counts, positive: the table, where it is not zero.
        alpha : float32 array of shape (n_topics,)
            Positive.
        self_count : float
            The self-count correction, as there.
        active : uint8 array of shape (D,), default=None
            Which documents are redrawn; None for all.
        first_document : int, default=0
            Number of the first document, where these are a part of a corpus.
        """
        cdef int64_t i, error = 0, documents = 0, tokens = 0, slots = 0, n = topics.shape[0]
        cdef delayed_table f
        cdef listed_table t
        cdef listed_scratch *s
        if start.shape[0] != self.n_words + 1 or start[0] != 0 or start[self.n_words] != n or counts.shape[0] != n:
            raise ValueError("start must ascend from 0 to the number of entries, and topics and counts have one an entry")
        if alpha.shape[0] != self.n_topics or not (np.min(alpha) > 0 and beta > 0 and 0 <= self_count < np.inf
                                                   and np.max(alpha) < np.inf and beta < np.inf):
            raise ValueError("alpha (n_topics,) and beta must be positive, self_count nonnegative")
        if n and (np.min(np.diff(start)) < 0 or np.min(counts) <= 0 or np.min(topics) < 0 or np.max(topics) >= self.n_topics):
            raise ValueError("topics must lie in [0, n_topics), and counts be positive")
        if active is not None and active.shape[0] != self.n_documents:
            raise ValueError("active must have one flag a document")
        topics = topics if n else np.zeros(1, np.int32)
        counts = counts if n else np.zeros(1, np.int32)
        totals = np.bincount(topics, counts, self.n_topics)
        cdef float[::1] scale = aligned_zeros(padded_pairs(self.n_topics), np.float32)
        cdef float[::1] weight = aligned_zeros(padded_pairs(self.n_topics), np.float32)
        np.asarray(scale)[:self.n_topics] = 1 / (totals + self.n_words * <double> beta)
        np.asarray(weight)[:self.n_topics] = alpha
        f.scale, f.alpha, f.beta, f.self_count = &scale[0], &weight[0], beta, self_count
        f.n_words, f.n_topics, f.seed, f.round, f.first_document = self.n_words, self.n_topics, seed, round_, first_document
        f.active = NULL
        if active is not None and self.n_documents:
            f.active = &active[0]
        t.start, t.topic, t.count = &start[0], &topics[0], &counts[0]
        for i in range(self.n_blocks):
            documents = max(documents, self.blocks[i].n_documents)
            tokens = max(tokens, self.blocks[i].n_tokens)
            slots = max(slots, slots_of(&self.blocks[i], &self.first_token[0], self.n_topics))
        with nogil, parallel(num_threads=n_threads):
            s = listed_new(&f, documents, tokens, slots)
            for i in prange(self.n_blocks, schedule="dynamic", chunksize=1):
                error += -1 if s == NULL else sweep_listed(&self.blocks[i], &f, &t, n_sweeps, s)
            listed_free(s)
        check(-1 if error else 0)

    def sums(self, int n_threads=1):
        """Count how many tokens of each word have each topic; these are then the topics that the table counts.

        Equivalent to ``csr_array``'s parts ``indptr, indices, data`` of ``np.add.at(zeros, (word, topic), 1)``.

        Returns
        -------
        start : int64 array of shape (n_words + 1,)
            As `sweep` takes it.
        topics, counts : int32 arrays of shape (nnz,)
            As there.
        """
        cdef int64_t p, i, w, error = 0, n = self.room[self.n_words], V = self.n_words
        cdef int32_t[::1] bounds = np.linspace(0, V, 16 * n_threads + 1 if n_threads > 1 else 2).astype(np.int32)
        cdef int32_t[::1] topic = np.empty(n + 1, np.int32), count = np.empty(n + 1, np.int32)
        cdef int64_t[::1] length = np.zeros(V + 1, np.int64), start
        cdef uint32_t *seen
        cdef uint64_t *used
        cdef int64_t *next_
        with nogil, parallel(num_threads=n_threads):
            seen = <uint32_t *> calloc(self.n_topics, sizeof(uint32_t))
            used = <uint64_t *> calloc(self.n_topics // 64 + 1, sizeof(uint64_t))
            next_ = <int64_t *> malloc((self.n_blocks + 1) * sizeof(int64_t))
            for p in prange(bounds.shape[0] - 1, schedule="dynamic", chunksize=1):
                error += -1 if seen == NULL or used == NULL or next_ == NULL else list_words(
                    self.blocks, self.n_blocks, self.n_topics, bounds[p], bounds[p + 1], &self.room[0], &topic[0],
                    &count[0], &length[1], seen, used, next_)
            free(seen)
            free(used)
            free(next_)
        check(-1 if error else 0)
        start = np.cumsum(length)
        cdef int32_t[::1] topics = np.empty(start[V], np.int32), counts = np.empty(start[V], np.int32)
        for w in prange(V, nogil=True, num_threads=n_threads, schedule="static"):
            for i in range(start[w + 1] - start[w]):
                topics[start[w] + i] = topic[self.room[w] + i]
                counts[start[w] + i] = count[self.room[w] + i]
        return np.asarray(start), np.asarray(topics), np.asarray(counts)
