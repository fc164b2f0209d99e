"""The tokens of a corpus in blocks of documents; see block_layout.h."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t


cdef extern from "block_layout.h" nogil:
    ctypedef struct token_block:
        int64_t n_segments, n_documents, first_document, n_tokens
        int32_t together
        const uint8_t *kind
        uint8_t held_kind
        int32_t *word
        uint32_t *start
        uint16_t *document
        uint16_t *counted
        uint16_t *topic


cdef enum:
    MOST_TOKENS = 1 << 22  # of a document: its counts are exact in a float


cdef class TokenLayout:
    cdef token_block *blocks
    cdef readonly int64_t n_blocks, n_tokens, n_documents
    cdef readonly int32_t n_words, n_topics, together
    cdef int32_t[::1] word
    cdef uint32_t[::1] start
    cdef uint16_t[::1] document, counted, topic
    cdef int64_t[::1] first_token
    cdef uint8_t[::1] kind
    cdef _copy(self, uint16_t[::1] ordered, int into_block)


cdef int check(int error) except -1
cdef int check_rows(
    const int64_t[::1] indptr, const int32_t[::1] indices, const int32_t[::1] counts, int n_words, int n_topics
) except -1
