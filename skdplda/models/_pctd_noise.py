"""Noise on the word counts of segments, once for every word of the vocabulary."""

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import log, mean, total
from skdplda.privacy import mechanism_of
from skdplda.rounds._bounds import NORM_BOUND
from skdplda.semantics import UnitMatrix

NEWTON_STEPS = 12  # double the correct digits each; a test compares the result with the most probable count
BLOCK_CELLS = 2**22  # noisy counts held at a time


def noisy_segments(X, sigma, randomness, n_threads):
    """Release every segment's count of every word once, and return what the counts probably were, as a UnitMatrix.

    The noise is integer, on counts in fixed point of resolution 1 / NORM_BOUND, with standard deviation `sigma` in a
    count; 0 returns X. A released block is not kept: each cell becomes the most probable count under a Poisson law
    whose rate is the word's frequency in the releases, and is stored unless that is 0. All this post-processes the
    noisy counts and of their shape.
    """
    n_segments, n_words = X.counts.shape
    if sigma == 0 or n_segments == 0:
        return X
    n_rows = max(1, BLOCK_CELLS // n_words)
    totals, rows, columns, values = np.zeros(n_words), [], [], []
    for block, begin in enumerate(range(0, n_segments, n_rows)):
        exact = X.counts[begin : begin + n_rows]
        exact = exact.astype(np.int64).toarray()
        noise = mechanism_of("gaussian").sampler(
            sigma * NORM_BOUND, exact.shape, randomness.noise(block, sigma, exact), n_threads
        )
        noisy = (noise + NORM_BOUND * exact) / NORM_BOUND
        totals += total(noisy, axis=0)
        done = begin + len(noisy)
        rate = np.maximum(totals, 0.0) + 3 * sigma * np.sqrt(done)  # an upper bound: later blocks lower the rates
        row, column = np.nonzero(_probable(noisy, rate / done, sigma) > 0)
        rows.append(begin + row)
        columns.append(column)
        values.append(noisy[row, column])
    row, column, value = (np.concatenate(parts) for parts in (rows, columns, values))
    count = _probable(value, _rates(totals, n_segments, sigma)[column], sigma)
    kept = count > 0
    counts = sp.coo_array((count[kept], (row[kept], column[kept])), shape=X.counts.shape)
    return UnitMatrix(X.start, counts)


def _rates(totals, n_segments, sigma):
    """Return how often each word occurs in a segment: noisy totals, shrunk to their mean as far as they are noise."""
    centre, variance = mean(totals), n_segments * (sigma * sigma)
    signal = max(mean((totals - centre) ** 2) - variance, 0.0)
    return np.maximum(centre + signal / (signal + variance) * (totals - centre), 1.0) / n_segments


def _probable(noisy, rate, sigma):
    """Return the most probable counts under Poisson rates, from noisy ones.

    n + 1 is more probable than n where gap(n) = n + 1/2 + sigma^2 log((n + 1) / rate) - noisy is negative, and the gap
    grows with n: the count is the first n without. The gap is concave, so Newton's steps stay below its root.
    """
    variance = sigma * sigma
    bar = 0.5 - variance * log(rate)
    count, several = np.zeros(noisy.shape), noisy > bar
    noisy, bar = noisy[several], np.broadcast_to(bar, several.shape)[several]
    n = np.zeros(noisy.shape)
    for _ in range(NEWTON_STEPS):
        n -= (n + variance * log(1 + n) + bar - noisy) / (1 + variance / (1 + n))
    count[several] = np.clip(np.ceil(n - 1e-9), 1, 2.0**31 - 1)
    return count
