"""The tokens of a corpus and their topics, in blocks of documents."""

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

import numpy as np

__all__ = ["TokenLayout"]


cdef extern from "block_layout.h" nogil:
    ctypedef struct corpus_rows:
        const int64_t *indptr
        const int32_t *indices
        const int32_t *counts
        int32_t n_words
    int64_t count_segments(const corpus_rows *x, const token_block *b, int32_t *last_seen, int32_t *most)
    int fill_block(const corpus_rows *x, token_block *b, int64_t *cursor)
    void move_words(const token_block *b, int32_t n_topics, int32_t first, int32_t last, int32_t *sum)
    void sum_words(const token_block *b, int32_t n_topics, int32_t first, int32_t last, const int32_t *weight, int64_t *sum)
    void count_documents(const token_block *b, int32_t n_topics, float *sum)
    int copy_topics(const token_block *b, int64_t *cursor, uint16_t *ordered, int into_block, int32_t n_topics)
    enum: UNASSIGNED, MOST_DOCUMENTS, DENSE_TOPICS, GROUP, KINDS
    uint8_t kind_of(int64_t n_tokens)
    int64_t documents_per_block(int32_t n_topics, int64_t tokens_per_document)

cdef enum:
    WIDE = 16  # the range of a block may have so many times as many documents as a block

cdef dict ERRORS = {
    -1: (MemoryError, "not enough memory for the blocks of tokens"),
    -2: (ValueError, "indices must lie in [0, n_words)"),
    -3: (ValueError, "a word appears twice in a row: sum the duplicates first"),
    -4: (ValueError, "counts must not be negative"),
    -5: (ValueError, "topics must lie in [0, n_topics), or be 65535 where unassigned"),
}


cdef int check(int error) except -1:
    if error:
        kind, message = ERRORS[error]
        raise kind(message)
    return 0


cdef int check_rows(
    const int64_t[::1] indptr, const int32_t[::1] indices, const int32_t[::1] counts, int n_words, int n_topics
) except -1:
    """Raise ValueError unless these are rows of a corpus, and numbers of words and topics, that a layout can hold."""
    cdef int64_t D = indptr.shape[0] - 1
    if not 1 <= n_topics <= 65534:
        raise ValueError("n_topics must lie in [1, 65534]")
    if D < 0 or D >= 2**31 - 1 or n_words < 1:
        raise ValueError("need 0 <= documents < 2**31 - 1 and n_words >= 1")
    if indptr[0] != 0 or indptr[D] != indices.shape[0] or np.any(np.diff(indptr) < 0):
        raise ValueError("indptr must ascend from 0 to the number of entries")
    if counts.shape[0] != indices.shape[0]:
        raise ValueError("indices and counts must have the same length")
    return 0


cdef class TokenLayout:
    """The tokens of a corpus and their topics, and their sums; see `TokenBlocks`, which draws them."""

    def __cinit__(self, const int64_t[::1] indptr, const int32_t[::1] indices, const int32_t[::1] counts,
                  int n_words, int n_topics, int n_threads=1, int64_t block_documents=0):
        cdef int64_t d, e, i, n, longest = 0, D = indptr.shape[0] - 1
        cdef bint dense = n_topics <= DENSE_TOPICS
        check_rows(indptr, indices, counts, n_words, n_topics)
        self.n_documents, self.n_words, self.n_topics = D, n_words, n_topics
        self.first_token = np.zeros(D + 1, np.int64)
        self.kind = np.zeros(D + 1, np.uint8)
        with nogil:
            for d in range(D):
                n = self.first_token[d]
                for e in range(indptr[d], indptr[d + 1]):
                    n += counts[e] if counts[e] > 0 else 0
                longest = max(longest, n - self.first_token[d])
                self.first_token[d + 1] = n
                if dense:
                    self.kind[d] = kind_of(n - self.first_token[d])
        if longest >= MOST_TOKENS:
            raise ValueError(f"documents must have at most {MOST_TOKENS - 1} tokens: cut longer ones first")
        self.n_tokens = self.first_token[D]
        self.together = GROUP if dense else 1  # where documents list topics, a word's row is made anew
        ranges = [(*r, k) for k in range(KINDS - 1, -1, -1) for r in self._ranges(k, n_threads, block_documents)]
        self.n_blocks = len(ranges)
        self.blocks = <token_block *> calloc(self.n_blocks + 1, sizeof(token_block))
        if self.blocks == NULL:
            raise MemoryError(ERRORS[-1][1])
        for i in range(self.n_blocks):
            self.blocks[i].first_document, end, self.blocks[i].n_tokens, kind = ranges[i]
            self.blocks[i].n_documents = end - self.blocks[i].first_document
            self.blocks[i].together = 1 if kind == KINDS - 1 else self.together
            self.blocks[i].kind, self.blocks[i].held_kind = &self.kind[self.blocks[i].first_document], kind
            if self.blocks[i].n_tokens >= 2**32:
                raise ValueError("a block of documents has 2**32 tokens or more")
        self._fill(indptr, indices, counts, n_threads)

    def __dealloc__(self):
        free(self.blocks)

    def _ranges(self, kind, int n_threads, int64_t size):
        """(first, last + 1, tokens) of the blocks of one kind: near-equal tokens, a state that fits the cache."""
        documents = np.flatnonzero(np.asarray(self.kind)[:self.n_documents] == kind)
        cdef int64_t D = len(documents), n
        if not D:
            return []
        before = np.zeros(D + 1, np.int64)
        np.cumsum(np.diff(self.first_token)[documents], out=before[1:])
        n = before[D]
        size = min(size or documents_per_block(self.n_topics, n // D + 1), MOST_DOCUMENTS)
        pieces = max(-(-D // size), -(-n // 2**28), min(n_threads, n // 10_000))
        pieces = max(1, -(-pieces // n_threads) * n_threads if n >= 10_000 * n_threads else pieces)
        cuts = np.unique(np.r_[0, np.searchsorted(before, np.linspace(0, n, pieces + 1)[1:-1]), D])
        parts = [np.linspace(a, b, -(-(b - a) // size) + 1).astype(np.int64) for a, b in zip(cuts[:-1], cuts[1:])]
        cuts = np.unique(np.concatenate([*parts, [0, D]]))
        wide = documents // min(WIDE * size, MOST_DOCUMENTS)  # the state has room for all documents of the range
        cuts = np.union1d(cuts, np.flatnonzero(np.diff(wide)) + 1) if D < self.n_documents else cuts
        ends = zip(documents[cuts[:-1]], documents[cuts[1:] - 1] + 1, np.diff(before[cuts]))
        return [tuple(map(int, end)) for end in ends]

    def _fill(self, const int64_t[::1] indptr, const int32_t[::1] indices, const int32_t[::1] counts,
              int n_threads):
        """Count the segments, allocate, and sort the tokens into the blocks."""
        cdef int64_t i, error = 0, V = self.n_words, g = 0, t = 0
        cdef corpus_rows x
        cdef int32_t *last_seen
        cdef int64_t *cursor
        cdef token_block *b = self.blocks
        indices = indices if indices.shape[0] else np.zeros(1, np.int32)
        counts = counts if counts.shape[0] else np.zeros(1, np.int32)
        x.indptr, x.indices, x.counts, x.n_words = &indptr[0], &indices[0], &counts[0], self.n_words
        with nogil, parallel(num_threads=n_threads):
            last_seen = <int32_t *> calloc(2 * V, sizeof(int32_t))
            if last_seen != NULL:
                memset(last_seen, 255, V * sizeof(int32_t))
            for i in prange(self.n_blocks, schedule="static", chunksize=1):
                b[i].n_segments = -1
                if last_seen != NULL:
                    b[i].n_segments = count_segments(&x, &b[i], last_seen, last_seen + V)
            free(last_seen)
        for i in range(self.n_blocks):
            check(min(b[i].n_segments, 0))
        self.word = np.empty(sum([b[i].n_segments for i in range(self.n_blocks)]) + 1, np.int32)
        self.start = np.empty(self.word.shape[0] + self.n_blocks, np.uint32)
        self.document = np.empty(self.n_tokens + 1, np.uint16)
        self.counted = np.full(self.n_tokens + 1, UNASSIGNED, np.uint16)
        self.topic = np.full(self.n_tokens + 1, UNASSIGNED, np.uint16)
        for i in range(self.n_blocks):
            b[i].word = &self.word[g]
            b[i].start = &self.start[g + i]
            b[i].document = &self.document[t]
            b[i].counted = &self.counted[t]
            b[i].topic = &self.topic[t]
            g += b[i].n_segments
            t += b[i].n_tokens
        with nogil, parallel(num_threads=n_threads):
            cursor = <int64_t *> malloc((V + 1) * sizeof(int64_t))
            for i in prange(self.n_blocks, schedule="dynamic", chunksize=1):
                error += -1 if cursor == NULL else fill_block(&x, &b[i], cursor)
            free(cursor)
        check(-1 if error else 0)

    def move(self, int32_t[:, ::1] counts, int n_threads=1):
        """Add to `counts` (V, K) the change since the last move.

        Equivalent to: ``counts += np.bincount(...) of (word, topic)  -  the same at the last move``.
        """
        cdef int64_t p, i
        cdef const int32_t[::1] bounds = self._word_ranges(counts, n_threads)
        for p in prange(bounds.shape[0] - 1, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=1):
            for i in range(self.n_blocks):
                move_words(&self.blocks[i], self.n_topics, bounds[p], bounds[p + 1], &counts[0, 0])

    def sum_weighted(self, int64_t[:, ::1] out, const int32_t[::1] weight, int n_threads=1):
        """Set `out` (V, K) to the sum over all tokens of the weight (D,) of their document.

        Equivalent to: ``out[:] = 0; np.add.at(out, (word, topic), weight[document])``.
        """
        cdef int64_t p, i
        cdef const int32_t[::1] bounds = self._word_ranges(out, n_threads)
        if weight.shape[0] != self.n_documents:
            raise ValueError("weight must have one number a document")
        out[:] = 0
        for p in prange(bounds.shape[0] - 1, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=1):
            for i in range(self.n_blocks):
                sum_words(&self.blocks[i], self.n_topics, bounds[p], bounds[p + 1], &weight[0], &out[0, 0])

    def document_topics(self, int n_threads=1):
        """Tokens of each document in each topic: float32 array of shape (n_documents, n_topics).

        Equivalent to: ``np.add.at(out, (document, topic), 1)``, of zeros.
        """
        cdef int64_t i
        cdef float[:, ::1] out = np.empty((self.n_documents, self.n_topics), np.float32)
        for i in prange(self.n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
            count_documents(&self.blocks[i], self.n_topics, &out[0, 0])
        return np.asarray(out)

    def _word_ranges(self, counts, int n_threads):
        if np.shape(counts) != (self.n_words, self.n_topics):
            raise ValueError("counts must have shape (n_words, n_topics)")
        n_groups = (self.n_words + self.together - 1) // self.together
        groups = np.linspace(0, n_groups, 16 * n_threads + 1 if n_threads > 1 else 2)
        return np.minimum(groups.astype(np.int32) * self.together, self.n_words)

    cdef _copy(self, uint16_t[::1] ordered, int into_block):
        cdef int64_t i
        cdef int error = 0
        cdef int64_t[::1] cursor = np.array(self.first_token)
        for i in range(self.n_blocks):
            if self.blocks[i].n_tokens:
                error = copy_topics(&self.blocks[i], &cursor[0], &ordered[0], into_block, self.n_topics)
                check(error)

    @property
    def topics(self):
        """Topic of each token, by documents, in the order of a sweep: uint16 array of shape (n_tokens,)."""
        ordered = np.empty(self.n_tokens, np.uint16)
        self._copy(ordered, False)
        return ordered

    def set_topics(self, topics):
        """Restore what `topics` returned; the caller's `counts` must hold the sum of these tokens.

        Equivalent to: ``self.topics[:] = topics``, and a `move` whose change is dropped.
        """
        ordered = np.array(topics, np.uint16)
        if ordered.shape != (self.n_tokens,):
            raise ValueError("topics must have one entry a token")
        if np.any((ordered >= self.n_topics) & (ordered != UNASSIGNED)):
            raise ValueError(ERRORS[-5][1])
        self._copy(ordered, True)

    @property
    def nbytes(self):
        """Bytes held for the tokens; a sweep's bounds of the rows come on top: about 2 V K."""
        return 6 * self.n_tokens + 8 * self.word.shape[0] + 9 * self.n_documents + self.n_blocks * sizeof(token_block)
