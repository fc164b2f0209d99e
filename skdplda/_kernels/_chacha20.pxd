"""ChaCha20 streams for noise and for released draws; see chacha20.h."""

from libc.stdint cimport uint32_t, uint64_t


cdef extern from "chacha20.h" nogil:
    const int CHACHA20_LANES
    ctypedef struct chacha20_stream:
        pass
    void chacha20_start(chacha20_stream *stream, const uint32_t *key, uint32_t n0, uint32_t n1, uint32_t n2)
    uint64_t chacha20_u64(chacha20_stream *stream)
    void chacha20_wipe(chacha20_stream *stream)
