"""Delayed-count Gibbs sweeps over the tokens of a corpus: AD-LDA, Newman et al. (2009)."""

from cython.parallel cimport parallel, prange
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t

import numpy as np

from skdplda._kernels._blocks cimport TokenLayout, check, token_block
from skdplda._kernels._simd cimport aligned_zeros, choose_simd

__all__ = ["TokenBlocks"]


cdef extern from "block_sweep.h" nogil:
    ctypedef struct delayed_table:
        const int32_t *counts
        const float *table
        const float *scale
        const float *alpha
        float beta
        float self_count
        int32_t n_words, n_topics
        uint64_t seed, round
        int64_t first_document
        const uint8_t *active
        int16_t *quantized
        float *steps
        int reference
    ctypedef struct scratch:
        float *row
    void add_columns(const int32_t *counts, const float *table, int32_t n_topics, int64_t first, int64_t last,
                     double *total)
    int32_t choose_token_weight(delayed_table *f, int32_t kind, int16_t *prior)
    void quantize_rows(const delayed_table *f, int32_t first, int32_t last, float *row)
    scratch *scratch_new(int32_t n_topics, int64_t dense, int64_t sparse)
    void scratch_free(scratch *a)
    int sweep_block(const token_block *b, const delayed_table *f, int n_sweeps, scratch *a)
    int32_t padded_pairs(int32_t n_topics)
    enum: DENSE_TOPICS, KINDS

choose_simd()

cdef enum:
    PARTS = 32  # of the words, whatever the threads: sums of floats keep their order


cdef class TokenBlocks(TokenLayout):
    """The tokens of a corpus and their topics, laid out for delayed-count Gibbs sweeps.

    Documents are CSR rows, a word at most once a row; empty ones are fine. There are at least `n_threads` blocks of a
    corpus large enough; results do not depend on `block_documents`, for which 0 lets the cache decide. Six bytes a
    token, and eight for each word of each block. Topics are UNASSIGNED (65535) until the first sweep.
    """

    cdef int16_t[::1] quantized

    def __cinit__(self, *args, **options):
        self.quantized = None

    def sweep(self, table, const float[::1] alpha, float beta, float self_count, int n_sweeps, uint64_t seed, uint64_t round_,
              const uint8_t[::1] active=None, int n_threads=1, totals=None, int64_t first_document=0,
              bint reference=False):
        """Redraw the topics of the documents from a table that stays as it is during the sweep.

        Equivalent to, for each active document, sweep, and token, with n[k] the number of the document's other tokens
        of topic k, and `counted` the topic that the token had at the last `move`; tokens in the order (word // together,
        occurrence, word), where `together` is 32 up to 2048 topics, and 1 beyond or if the document has over 24,000 tokens::

            row = table[w] + beta
            if counted is not None: row[counted] = max(row[counted] - self_count, beta)
            p = row / (table.sum(0) + n_words * beta) * (n + alpha);  topic = rng.choice(K, p=p / p.sum())

        The uniform of a draw depends on (seed, round_, sweep, document, word, occurrence) only, and what is made of it
        on the table, the priors and the document: results are the same, to the last bit, for any number of threads, any
        blocks, any cut of a corpus into parts, and any other documents beside.

        The table has nonnegative pseudo-counts without beta, int32 or float32 (V, K), and `totals` its column sums, if
        they are known. `self_count` is what a token weighs in the table: 1.0 if that is the exact sum, 0.0 if not.
        `active`, uint8, has the documents that are redrawn; None for all. `first_document` is the number of the first,
        where these are a part of a corpus. With `reference` the scalar twin of the dense sweep draws
        (dense_reference.h): slowly, the same bits.
        """
        cdef int64_t i, error = 0, dense = 0, sparse = 0
        cdef int32_t k
        cdef scratch *a
        cdef delayed_table[KINDS] kinds
        cdef delayed_table f
        cdef double[:, ::1] partial
        cdef const int32_t[:, ::1] integers
        cdef const float[:, ::1] floats
        if np.shape(table) != (self.n_words, self.n_topics) or alpha.shape[0] != self.n_topics:
            raise ValueError("table must have shape (n_words, n_topics), and alpha (n_topics,)")
        if active is not None and active.shape[0] != self.n_documents:
            raise ValueError("active must have one flag a document")
        if not (np.min(alpha) > 0 and beta > 0 and 0 <= self_count < np.inf and np.max(alpha) < np.inf and beta < np.inf):
            raise ValueError("alpha and beta must be positive, self_count nonnegative")
        cdef int32_t stride = padded_pairs(self.n_topics), ranges = 16 * n_threads
        cdef float[::1] scale = aligned_zeros(stride, np.float32)
        cdef float[::1] weight = aligned_zeros(stride, np.float32)
        cdef int16_t[::1] prior = aligned_zeros(KINDS * stride, np.int16)
        cdef float[::1] steps = np.empty(self.n_words, np.float32)
        f.counts, f.table, f.scale, f.alpha, f.beta, f.self_count = NULL, NULL, &scale[0], &weight[0], beta, self_count
        f.quantized, f.steps = NULL, &steps[0]
        f.n_words, f.n_topics, f.seed, f.round, f.active = self.n_words, self.n_topics, seed, round_, NULL
        f.first_document, f.reference = first_document, reference
        if active is not None and self.n_documents:
            f.active = &active[0]
        if table.dtype == np.int32:
            integers = table
            f.counts = &integers[0, 0]
        else:
            floats = table
            f.table = &floats[0, 0]
        if totals is None:
            totals = np.zeros((PARTS, self.n_topics))
            partial = totals
            for i in prange(PARTS, nogil=True, num_threads=n_threads, schedule="static"):
                add_columns(f.counts, f.table, f.n_topics, i * self.n_words // PARTS, (i + 1) * self.n_words // PARTS,
                            &partial[i, 0])
            totals = totals.sum(0)
        np.asarray(scale)[:self.n_topics] = 1 / (np.asarray(totals) + self.n_words * <double> beta)
        np.asarray(weight)[:self.n_topics] = alpha
        if self.n_topics <= DENSE_TOPICS and self.quantized is None:
            self.quantized = aligned_zeros((<int64_t> self.n_words + 1) * stride + 256, np.int16)
        for k in range(KINDS):
            kinds[k] = f
            if self.n_topics <= DENSE_TOPICS and choose_token_weight(&kinds[k], k, &prior[k * stride]):
                kinds[k].quantized = &self.quantized[0]
        for i in range(self.n_blocks):
            if kinds[self.blocks[i].held_kind].quantized != NULL:
                f.quantized = &self.quantized[0]
                dense = max(dense, self.blocks[i].n_documents)
            else:
                sparse = max(sparse, self.blocks[i].n_documents)
        with nogil, parallel(num_threads=n_threads):
            a = scratch_new(f.n_topics, dense, sparse)
            if f.quantized != NULL:
                for i in prange(ranges, schedule="dynamic", chunksize=1):
                    if a != NULL:
                        quantize_rows(&f, i * f.n_words // ranges, (i + 1) * f.n_words // ranges, a.row)
            for i in prange(self.n_blocks, schedule="dynamic", chunksize=1):
                error += -1 if a == NULL else sweep_block(&self.blocks[i], &kinds[self.blocks[i].held_kind], n_sweeps, a)
            scratch_free(a)
        check(-1 if error else 0)
