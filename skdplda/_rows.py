"""Rows of a matrix of counts, some at a time."""

import numpy as np
import scipy.sparse as sp

CHUNK = 2**24  # numbers in memory at a time


def csr_of(data, indices, indptr, shape):
    """Return rows that have these arrays: a constructor may narrow them, and would follow wrong pointers."""
    X = sp.csr_array(shape, dtype=data.dtype)
    X.data, X.indices, X.indptr = data, indices, indptr
    return X


def entries_of(bounds, runs):
    """Return (bounds, entries) of some runs, of which run i has the entries from `bounds[i]` to `bounds[i + 1]`.

    `runs` are a slice of neighbours without a step, which may end behind the last run, or an array of numbers from 0;
    entries are a slice, or numbers.
    """
    if isinstance(runs, slice):
        first, last, _ = runs.indices(len(bounds) - 1)
        some = bounds[first : last + 1]
        return some - some[0], slice(some[0], some[-1])
    start, length = bounds[runs], np.diff(bounds)[runs]
    some = np.cumsum(np.append(0, length), dtype=bounds.dtype)
    return some, np.repeat(start - some[:-1], length) + np.arange(some[-1])


def rows_of(X, rows):
    """Return some rows of a csr_array, named as in `entries_of`; those of a slice share its memory.

    SciPy copies all indices for this where `indptr` is of another type, as it is in counts as from `check_counts`.
    """
    indptr, entries = entries_of(X.indptr, rows)
    return csr_of(X.data[entries], X.indices[entries], indptr, (len(indptr) - 1, X.shape[1]))


def run_sums(counts, bounds):
    """Return the sums of runs of counts, int64: run i is `counts[bounds[i]:bounds[i + 1]]`."""
    sums = np.zeros(len(bounds) - 1, np.int64)
    for runs in chunks(len(sums), 8, bounds):  # which are added as copies of 64 bits
        starts, ends = bounds[:-1][runs], bounds[1:][runs]
        some = starts < ends
        if some.any():
            part, begin = counts[starts[0] : ends[-1]], starts[some] - starts[0]
            sums[runs][some] = np.add.reduceat(part, begin, dtype=np.int64)
    return sums


def chunks(n_rows, width, indptr=None):
    """Yield slices of rows that fit into memory: `width` numbers each, and for each of their entries if given."""
    ends = np.arange(n_rows + 1) if indptr is None else np.arange(n_rows + 1) + (indptr - indptr[0])
    first = 0
    while first < n_rows:
        last = max(first + 1, np.searchsorted(ends, ends[first] + CHUNK // width, side="right") - 1)
        yield slice(first, int(last))
        first = int(last)
