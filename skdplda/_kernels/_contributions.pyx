"""Integral contribution bounds: which tokens of a privacy unit enter the sum."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc

from skdplda._kernels._random_stream cimport random_stream, stream_of, stream_u64

__all__ = ["bound_contributions"]


def bound_contributions(
    const int64_t[::1] unit_start,      # IN (n_units + 1,) into unit_documents
    const int64_t[::1] unit_documents,  # IN (n_documents,) the documents of each unit
    const int64_t[::1] indptr,          # IN (n_documents + 1,)
    const int32_t[::1] indices,         # IN (nnz,)
    const int32_t[::1] counts,          # IN (nnz,)
    int32_t[::1] word_count,            # SCRATCH (n_words,) zeros; zeros again on return
    bint squared,                       # bound sum_w c_w^2 instead of sum_w c_w
    double bound,
    uint64_t seed,
    int32_t[::1] kept,                  # OUT (nnz,) tokens of each nonzero that contribute
):
    """Keep random tokens of each unit, as many as the bound allows.

    Tokens are taken in a random order that is a function of (seed, unit) only; one that would break the bound
    is dropped and the next is tried.

    Equivalent to::

        for unit in units:
            c = Counter()
            for w in permutation(tokens of unit):
                cost = 2 * c[w] + 1 if squared else 1
                if used + cost <= bound:
                    c[w] += 1; used += cost
    """
    cdef Py_ssize_t unit, d, i, j, n, largest = 0
    cdef int32_t _repeat, w
    cdef double used, cost
    cdef int64_t swap
    cdef int64_t *entry
    cdef random_stream stream
    for unit in range(unit_start.shape[0] - 1):
        n = 0
        for i in range(unit_start[unit], unit_start[unit + 1]):
            for j in range(indptr[unit_documents[i]], indptr[unit_documents[i] + 1]):
                n += counts[j]
        largest = max(largest, n)
    entry = <int64_t *> malloc((largest + 1) * sizeof(int64_t))
    if entry == NULL:
        raise MemoryError(f"no memory for the {largest} tokens of the largest privacy unit")
    with nogil:
        for unit in range(unit_start.shape[0] - 1):
            n = 0
            for i in range(unit_start[unit], unit_start[unit + 1]):
                d = unit_documents[i]
                for j in range(indptr[d], indptr[d + 1]):
                    kept[j] = 0
                    for _repeat in range(counts[j]):
                        entry[n] = j
                        n += 1
            stream = stream_of(seed, 0, unit)
            used = 0
            for i in range(n):
                # a modulo of 64 bits: the bias is below 2**-32, and no proof leans on this order
                j = i + <Py_ssize_t> (stream_u64(&stream) % <uint64_t> (n - i))
                swap = entry[j]
                entry[j] = entry[i]
                entry[i] = swap
                w = indices[swap]
                cost = 2.0 * word_count[w] + 1.0 if squared else 1.0
                if used + cost <= bound:
                    used += cost
                    word_count[w] += 1
                    kept[swap] += 1
            for i in range(n):
                word_count[indices[entry[i]]] = 0
    free(entry)
