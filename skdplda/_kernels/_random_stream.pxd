"""Keyed random streams for hidden draws; see random_stream.h."""

from libc.stdint cimport uint64_t


cdef extern from "random_stream.h" nogil:
    ctypedef struct random_stream:
        pass
    random_stream stream_of(uint64_t seed, uint64_t sweep, uint64_t number)
    double stream_double(random_stream *stream)
