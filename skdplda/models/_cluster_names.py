"""Names near centres: for which words a cluster's texts are asked most, and in which order it shows them.

A cluster's candidates are the words that are likely near its released centre, by their public vectors and by the word
frequencies that released totals and public ones prove. Their counts weigh `NEAR` times as much as those of other words
in what a unit contributes, so that the noise in them is as many times smaller. All of this follows from releases and
public values.
"""

import math

import numpy as np

from skdplda._arithmetic import log, matmul, total
from skdplda.esteps._clusters import LENGTH, grid_directions

# The number of candidates and the order of words were chosen on KOS, news and passages of news, at epsilon 0.5 to 2, by
# the three judges of benchmarks/names.py; no rows are kept, and 20 Newsgroups, Enron and tweets were in view when the
# power of the largest cosine was. 50, 75 and 120 candidates were alike; NEAR lies between values that were measured (8
# and 64), and shares of 0.05 to 0.6 for word totals were tried, with another order. The rest of what was tried is in
# doc/notes/clusters.rst.
N_CANDIDATES = 75
NEAR = 16
TOTALS_SHARE = 0.3  # of the budget of words that goes to word totals
LEAST_SPREAD = 1e-3  # of true counts around what the cosine lets expect, squared, over that, squared
LEAST_GAIN = 1e-6  # nats by which a word tells of a cluster


def closeness(vectors, centre, centres):
    """Return the cosines of words and clusters, (n_words, n_clusters); 0 of words without a direction.

    `vectors` are (n_words, n_dimensions), after the projection; `centre` and `centres` are those of a query.
    """
    return matmul(grid_directions(vectors, centre), centres.T.astype(np.float64)) / LENGTH**2


def candidates_of(near, frequencies):
    """Return flags of the words that are candidates of the clusters, (n_words, n_clusters).

    They have the largest products of the squared cosine, `near`, and the root of the frequency, (n_words,).
    """
    cosines = np.maximum(near, 0)
    likely = cosines * cosines * np.sqrt(frequencies)[:, None]
    order = np.argsort(-likely, axis=0, kind="stable")[:N_CANDIDATES]
    found = np.zeros(near.shape, bool)
    np.put_along_axis(found, order, True, axis=0)
    return found & (likely > 0)


def expected_counts(cells, deviation, frequencies, sizes, near):
    """Return the counts that clusters would have if all had the word frequencies, (n_words, n_clusters); positive.

    Their number is in proportion to the sizes. Its scale is that of words that are no candidates, `near`, by least
    squares: of candidates a cluster has more.
    """
    shares = np.maximum(sizes, 1e-300)
    expected = frequencies[:, None] * (shares / total(shares))
    weights = np.where(near, 0.0, expected / np.maximum(deviation * deviation + expected, 1e-300))
    scale = total(cells * weights) / max(total(expected * weights), 1e-300)
    return np.maximum(expected * max(scale, 1.0), 1e-300)


def proven_counts(cells, deviation, expected, near):
    """Return the posterior means of counts of candidates, all arguments of one shape, (n,); not negative.

    By empirical Bayes: the true counts are, on the mean, `expected` times a line in the cosine, and vary around it in
    proportion to it. The line and the variation are those of all candidates of all clusters together, so that a few
    counts of much noise are worth what others of their cosine are.
    """
    variance = deviation * deviation
    weights = expected / np.maximum(variance + expected * expected, 1e-300)  # of a ratio to `expected`, over that
    sizes = weights * expected
    middle = total(sizes * near) / max(total(sizes), 1e-300)
    level = total(weights * cells) / max(total(sizes), 1e-300)
    slope = total(weights * cells * (near - middle)) / max(total(sizes * (near - middle) * (near - middle)), 1e-300)
    means = expected * np.maximum(level + slope * (near - middle), 1.0)
    squares, apart = means * means, cells - means
    weights = squares / np.maximum((variance + squares) * (variance + squares), 1e-300)
    spread = total(weights * (apart * apart - variance)) / max(total(weights * squares), 1e-300)
    own = max(spread, LEAST_SPREAD) * squares
    return np.maximum(means + apart * (own / np.maximum(own + variance, 1e-300)), 0.0)


def keyword_scores(cells, deviation, expected, near, candidates):
    """Return by how much words tell of clusters, (n_clusters, n_words); negative for those that are not asked for.

    It is the proven count, times the logarithm of its rate in the cluster over that in all clusters, times the cosine
    and the square of what that is of the word's largest cosine with any cluster. A word that is no candidate, far from
    the centre or without a vector, is one if its count in the cluster stands out of all that noise and chance do to as
    many cells; it counts as the last candidate does.
    """
    threshold = math.sqrt(2 * log(max(cells.size, 2)))
    deviation = np.broadcast_to(deviation, cells.shape)
    far = ~candidates & (cells - expected > threshold * np.sqrt(deviation * deviation + expected))
    least = np.where(candidates, near, np.inf).min(axis=0)
    least = np.where(np.isfinite(least), least, 1.0)
    cosines = np.maximum(np.where(far, np.maximum(near, least), near), 0.0)
    counts = np.where(far, cells, expected)
    counts[candidates] = proven_counts(*(part[candidates] for part in (cells, deviation, expected, near)))
    sizes = total(expected, axis=0)
    rates = counts / sizes / (total(counts, axis=1) / total(sizes))[:, None]
    nearer = cosines / np.maximum(cosines.max(axis=1, keepdims=True), 1e-300)
    scores = counts * np.maximum(log(np.maximum(rates, 1e-300)), LEAST_GAIN) * (cosines * nearer * nearer)
    rest = np.maximum(cells, 0)
    rest = rest / max(np.max(rest), 1e-300) - 2  # behind all others, from -2 to -1
    return np.ascontiguousarray(np.where(candidates | far, scores, rest).T)


def rms_of(cells, asked):
    """Return the signal-to-noise ratios of clusters, from those of the words that they are asked for, (n_clusters,)."""
    squares = total(np.where(asked, np.asarray(cells, float) ** 2, 0.0), axis=1)
    return np.sqrt(np.maximum(squares / np.maximum(np.count_nonzero(asked, axis=1), 1) - 1, 0))
