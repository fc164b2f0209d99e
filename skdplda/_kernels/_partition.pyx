"""Passes over privacy units that share out weight among their words, for private selection of words.

A unit here is a privacy unit: a run of `words`, none twice. Weights are integers, multiples of 1 / grid of what one
unit may give.
"""

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, qsort

import numpy as np

from skdplda._kernels._random_stream cimport random_stream, stream_double, stream_of

__all__ = ["fill_first", "fill_gaussian", "fill_level", "reroute", "share_equally", "truncate"]


def truncate(
    const int64_t[::1] start,   # IN    (n_units + 1,)
    int32_t[::1] words,         # INOUT (n_entries,) shuffled within each unit
    double[::1] counts,         # INOUT (n_entries,) moved along; may be None
    int64_t most,               # words that a unit keeps
    uint64_t seed,
    const int64_t[::1] numbers=None,  # IN (n_units,) where these units are a part of all
):
    """Shuffle the words of each unit and say which entries are among its first `most`.

    The draws of a unit come from a stream of its own, named by its number.

    Equivalent to, for each unit, with `order` a random permutation::

        words[:], counts[:], kept[:] = words[order], counts[order], np.arange(len(words)) < most
    """
    cdef Py_ssize_t u, n_units = start.shape[0] - 1
    cdef int64_t i, j
    cdef bint numbered = numbers is not None, counted = counts is not None
    cdef random_stream stream
    kept = np.empty(words.shape[0], dtype=np.uint8)
    cdef uint8_t[::1] keep = kept
    with nogil:
        for u in range(n_units):
            stream = stream_of(seed, 0, numbers[u] if numbered else u)
            for i in range(start[u], start[u + 1]):
                j = i + <int64_t>(stream_double(&stream) * (start[u + 1] - i))
                words[i], words[j] = words[j], words[i]
                if counted:
                    counts[i], counts[j] = counts[j], counts[i]
                keep[i] = i - start[u] < most
    return kept.view(bool)


def share_equally(
    const int64_t[::1] start,    # IN    (n_units + 1,)
    const int32_t[::1] words,    # IN    (n_entries,)
    const uint8_t[::1] active,   # IN    (n_words,)
    const int64_t[::1] share,    # IN    share[n] goes to each word of a unit with n active ones
    int64_t[::1] total,          # INOUT (n_words,)
):
    """Add to each active word of each unit the unit's equal share.

    Equivalent to, for each unit::

        chosen = words[active[words] > 0]
        total[chosen] += share[len(chosen)]
    """
    cdef Py_ssize_t u, n_units = start.shape[0] - 1
    cdef int64_t i, n
    with nogil:
        for u in range(n_units):
            n = 0
            for i in range(start[u], start[u + 1]):
                n += active[words[i]]
            for i in range(start[u], start[u + 1]):
                if active[words[i]]:
                    total[words[i]] += share[n]


def reroute(
    const int64_t[::1] start,      # IN    (n_units + 1,)
    const int32_t[::1] words,      # IN    (n_entries,)
    const uint8_t[::1] active,     # IN    (n_words,)
    const int64_t[::1] share,      # IN    share[n] goes to each word of a unit with n active ones
    const double[::1] back,        # IN    (n_words,) part of a word's weight that comes back to its units
    const double[::1] back_share,  # IN    what comes back, times this, goes to each word of a unit with n active ones
    int64_t[::1] total,            # INOUT (n_words,)
):
    """Add to each active word of each unit the unit's equal share, and an equal share of what comes back to the unit.

    Equivalent to, for each unit::

        chosen = words[active[words] > 0]
        came_back = np.cumsum(back[chosen])[-1]
        total[chosen] += share[len(chosen)] + int(back_share[len(chosen)] * came_back)
    """
    cdef Py_ssize_t u, n_units = start.shape[0] - 1
    cdef int64_t i, n, given
    cdef double came_back
    with nogil:
        for u in range(n_units):
            n, came_back = 0, 0
            for i in range(start[u], start[u + 1]):
                if active[words[i]]:
                    n += 1
                    came_back += back[words[i]]
            given = share[n] + <int64_t>(back_share[n] * came_back)
            for i in range(start[u], start[u + 1]):
                if active[words[i]]:
                    total[words[i]] += given


def fill_gaussian(
    const int64_t[::1] start,    # IN    (n_units + 1,)
    const int32_t[::1] words,    # IN    (n_entries,)
    const int64_t[::1] order,    # IN    (n_units,) whose turn it is
    int64_t cap,                 # no word gets more
    int64_t budget,              # Euclidean norm of what a unit gives
    int64_t[::1] total,          # INOUT (n_words,)
):
    """Each unit in turn moves its words towards the cap, in a straight line, by at most its budget.

    Equivalent to, for each unit in order::

        gap = np.maximum(cap - total[words], 0).astype(float)
        part = min(1.0, budget * (1 - 2.0**-40) / np.linalg.norm(gap))
        total[words] += np.floor(gap * part).astype(np.int64)
    """
    cdef Py_ssize_t k, u, n_units = order.shape[0]
    cdef int64_t i, gap
    cdef double square, part
    with nogil:
        for k in range(n_units):
            u = order[k]
            square = 0
            for i in range(start[u], start[u + 1]):
                gap = cap - total[words[i]]
                if gap > 0:
                    square += <double>gap * <double>gap
            if square == 0:
                continue
            part = budget * (1 - 2.0**-40) / sqrt(square)
            part = part if part < 1 else 1
            for i in range(start[u], start[u + 1]):
                gap = cap - total[words[i]]
                if gap > 0:
                    total[words[i]] += <int64_t>(gap * part)


def fill_first(
    const int64_t[::1] start,    # IN    (n_units + 1,)
    const int32_t[::1] words,    # IN    (n_entries,) the unit's favourite first
    const int64_t[::1] order,    # IN    (n_units,) whose turn it is
    int64_t cap,                 # no word gets more
    int64_t budget,              # sum of what a unit gives
    int64_t[::1] total,          # INOUT (n_words,)
):
    """Each unit in turn fills its words up to the cap, one after the other, until its budget is spent.

    Equivalent to, for each unit in order::

        gap = np.maximum(cap - total[words], 0)
        spent = np.minimum(np.cumsum(gap), budget)
        total[words] += np.diff(spent, prepend=0)
    """
    cdef Py_ssize_t k, u, n_units = order.shape[0]
    cdef int64_t i, gap, left
    with nogil:
        for k in range(n_units):
            u, left = order[k], budget
            for i in range(start[u], start[u + 1]):
                gap = min(max(cap - total[words[i]], 0), left)
                total[words[i]] += gap
                left -= gap


cdef int ascending(const void *a, const void *b) noexcept nogil:
    cdef int64_t x = (<const int64_t *>a)[0], y = (<const int64_t *>b)[0]
    return (x > y) - (x < y)


def fill_level(
    const int64_t[::1] start,    # IN    (n_units + 1,)
    const int32_t[::1] words,    # IN    (n_entries,)
    const int64_t[::1] order,    # IN    (n_units,) whose turn it is
    int64_t cap,                 # no word gets more
    int64_t budget,              # sum of what a unit gives
    int64_t[::1] total,          # INOUT (n_words,)
):
    """Each unit in turn gives each of its words a weight of 1, round after round, until its budget is spent.

    A word at the cap is left out. The last round may end early; it goes through the words in the unit's order.

    Equivalent to, for each unit in order::

        for _ in range(budget):
            open_ = total[words] < cap
            if open_.any():
                given = np.where(open_, total[words] - before, budget + 1)
                total[words[given.argmin()]] += 1
    """
    cdef Py_ssize_t k, u, n_units = order.shape[0]
    cdef int64_t i, j, n, gap, left, level, most = 0
    cdef int64_t *gaps
    for k in range(n_units):
        most = max(most, start[order[k] + 1] - start[order[k]])
    gaps = <int64_t *>malloc((most + 1) * sizeof(int64_t))
    if not gaps:
        raise MemoryError("not enough memory for the words of one unit")
    with nogil:
        for k in range(n_units):
            u, left, level, n = order[k], budget, 0, start[order[k] + 1] - start[order[k]]
            for i in range(n):
                gaps[i] = max(cap - total[words[start[u] + i]], 0)
            qsort(gaps, n, sizeof(int64_t), ascending)
            for j in range(n):  # raise the level of the words that are open, to the next one's cap at most
                gap = min(gaps[j] - level, left // (n - j))
                level += gap
                left -= gap * (n - j)
                if level < gaps[j]:
                    break
            for i in range(start[u], start[u + 1]):
                gap = max(cap - total[words[i]], 0)
                if gap > level and left > 0 and level < gaps[n - 1]:
                    left -= 1
                    total[words[i]] += level + 1
                else:
                    total[words[i]] += min(gap, level)
    free(gaps)
