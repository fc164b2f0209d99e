"""Frozen-table Gibbs sweeps."""

cimport cython
from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

import numpy as np


cdef extern from "block_sweep.h" nogil:
    ctypedef struct frozen_table:
        const int32_t *counts
        const float *table
        const float *scale
        const float *alpha
        float beta
        float own
        int32_t n_topics
    ctypedef struct token_block:
        int64_t n_segments
        int64_t n_documents
        const int32_t *word
        const int64_t *start
        const uint16_t *document
        const uint16_t *reference
        uint16_t *topic
        const uint64_t *key
    ctypedef struct slot_list:
        pass
    ctypedef struct slot_arena:
        slot_list *list
        float *count
        uint16_t *topic
        int64_t used
        int64_t size
    int sweep_block(const token_block *b, const frozen_table *f, int n_sweeps, slot_arena *a)
    uint64_t mix64(uint64_t x)


def sweep(const int64_t[::1] block_document, const int64_t[::1] block_segment, const int32_t[::1] word, const int64_t[::1] start,
          const uint16_t[::1] document, const uint16_t[::1] reference, uint16_t[::1] topic, const uint64_t[::1] key,
          const int32_t[:, ::1] counts, const float[:, ::1] table,
          const float[::1] scale, const float[::1] alpha, float beta, float own,
          int n_sweeps, int n_threads):
    cdef Py_ssize_t i, n_blocks = block_document.shape[0] - 1
    cdef frozen_table f
    cdef token_block *b
    cdef slot_arena *a
    f.counts = NULL if counts is None else &counts[0, 0]
    f.table = NULL if table is None else &table[0, 0]
    f.n_topics = <int32_t> (table.shape[1] if counts is None else counts.shape[1])
    f.scale = &scale[0]
    f.alpha = &alpha[0]
    f.beta = beta
    f.own = own
    with nogil, parallel(num_threads=n_threads):
        a = <slot_arena *> calloc(1, sizeof(slot_arena))
        b = <token_block *> malloc(sizeof(token_block))
        for i in prange(n_blocks, schedule="dynamic", chunksize=1):
            a.list = <slot_list *> malloc((block_document[i + 1] - block_document[i]) * sizeof(slot_list))
            b.n_segments = block_segment[i + 1] - block_segment[i]
            b.n_documents = block_document[i + 1] - block_document[i]
            b.word = &word[block_segment[i]]
            b.start = &start[block_segment[i]]
            b.document = &document[0]
            b.reference = &reference[0]
            b.topic = &topic[0]
            b.key = &key[block_document[i]]
            sweep_block(b, &f, n_sweeps, a)
            free(a.list)
        free(a.count)
        free(a.topic)
        free(a)
        free(b)


def move_counts(const int64_t[::1] block_segment, const int32_t[::1] word, const int64_t[::1] start,
                uint16_t[::1] reference, const uint16_t[::1] topic, int32_t[:, ::1] counts, const int32_t[::1] bounds, int n_threads):
    cdef Py_ssize_t i, g, t, p, n_blocks = block_segment.shape[0] - 1, lo, hi, mid
    for p in prange(bounds.shape[0] - 1, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=1):
        for i in range(n_blocks):
            lo = block_segment[i]
            hi = block_segment[i + 1]
            while lo < hi:
                mid = (lo + hi) // 2
                if word[mid] < bounds[p]:
                    lo = mid + 1
                else:
                    hi = mid
            g = lo
            while g < block_segment[i + 1] and word[g] < bounds[p + 1]:
                for t in range(start[g], start[g + 1]):
                    if reference[t] != topic[t]:
                        if reference[t] != 65535:
                            counts[word[g], reference[t]] -= 1
                        counts[word[g], topic[t]] += 1
                        reference[t] = topic[t]
                g = g + 1
