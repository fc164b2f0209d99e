"""What a public prior does at the start of a fit, where topics begin, and at its end, where they get their numbers."""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from skdplda._arithmetic import exp, gamma_rows, matmul, mean, total
from skdplda._checks import is_integer
from skdplda._types import ArrayLike
from skdplda.priors._public import WordPrior, checked_numbers, unit_rows

# Of affinity = exp(TEMPERATURE * cosine): a word in the middle of a topic is about 400 times as likely there as one at
# a right angle. Centres are means, so that the words of a topic have a cosine of about 0.5 with them.
TEMPERATURE = 6.0
# Part of the mass of a seeded topic that lies on its public words at the start.
SEEDED_SHARE = 0.5
# Least start of a word in the marginal, over the uniform distribution: a word at 0 could never come back.
LEAST_MARGINAL = 1e-3
# Runs of k-means from different starts; the best is taken.
N_INIT = 10
# Steps of a run at most, and squared movement of the centres, over the mean square of a coordinate, at which it ends.
MOST_STEPS, MOVED = 300, 1e-4


def starting_topics(
    word_prior: WordPrior, n_components: int, marginal: ArrayLike | None = None, seed: int = 0
) -> np.ndarray | None:
    """Return topics to start from, seeded ones first, then clusters of the word vectors, (n_words, n_components).

    A topic is proportional to the `marginal`, public or released word frequencies, times the affinity of word and
    topic, exp(6 * cosine) with the topic's centre; a word without a vector has the topic's mean affinity. The centre of
    a seeded topic is the mean vector of its words, and half of its mass lies on its public distribution. The others'
    centres come from k-means into as many clusters as there are topics, of which those next to seeded topics are left
    out. Where there are no vectors, or fewer different ones than topics, what is left has random affinities, of `seed`,
    so that no two topics are alike. A marginal of None is that of the prior, or uniform.

    Columns are positive and sum to 1; None if the prior has neither vectors nor topics. The result does not depend on
    the number of threads; with vectors for all topics, permuted words give permuted rows. ValueError if there are fewer
    topics than seeded ones, or the marginal does not fit.
    """
    vectors, topics = word_prior.vectors, word_prior.topics
    if vectors is None and topics is None:
        return None
    n_words = topics.shape[1] if vectors is None else len(vectors)
    topics = np.zeros((0, n_words)) if topics is None else topics
    if not is_integer(n_components) or n_components < max(1, len(topics)):
        raise ValueError(
            f"n_components must be an integer of at least {max(1, len(topics))}, the number of seeded topics; got"
            f" {n_components!r}."
        )
    marginal = _marginal(word_prior.frequencies if marginal is None else marginal, n_words)
    informed = np.isin(np.arange(n_components), word_prior.informed)
    seeded = topics[word_prior.informed]
    affinity = np.empty((n_words, n_components))
    affinity[:, informed], affinity[:, ~informed] = _affinities(
        vectors, seeded, marginal, n_components - len(seeded), seed
    )
    start = affinity * marginal[:, None]
    start /= total(start, axis=0)
    start[:, informed] = SEEDED_SHARE * seeded.T + (1 - SEEDED_SHARE) * start[:, informed]
    return start


def _marginal(frequencies, n_words):
    """Return positive word frequencies with sum 1."""
    if frequencies is None:
        return np.full(n_words, 1 / n_words)
    marginal = checked_numbers("marginal", frequencies, (n_words,), np.float64)
    if (marginal < 0).any() or not total(marginal) > 0:
        raise ValueError("marginal must not be negative, and not all zero.")
    marginal = np.maximum(marginal / total(marginal), LEAST_MARGINAL / n_words)
    return marginal / total(marginal)


def _affinities(vectors, seeded, marginal, n_free, seed):
    """Return the affinities of words with seeded topics (n_words, n_seeded) and with others (n_words, n_free)."""
    n_words = len(marginal)
    guided = np.ones((n_words, len(seeded)))
    free = gamma_rows(seed, 1.0, n_words, n_free) + 1e-6  # what vectors do not replace
    if vectors is None:
        return guided, free
    known = np.flatnonzero(vectors.any(axis=1))
    points, weights = vectors[known], marginal[known]
    means = matmul(seeded[:, known], points)
    centred = np.flatnonzero(total(means * means, axis=1) > 1e-18)
    guided[:, centred] = _nearness(points, means[centred], known, weights, n_words)
    if n_free:
        centres = cluster_centres(points, weights, len(centred) + n_free, seed)
        taken, _ = linear_sum_assignment(-matmul(unit_rows(centres), unit_rows(means[centred]).T))
        centres = np.delete(centres, taken, axis=0)[:n_free]
        free[:, : len(centres)] = _nearness(points, centres, known, weights, n_words)
    return guided, free


def _nearness(points, centres, known, weights, n_words):
    """Return exp(TEMPERATURE * cosine) of words and centres; the weighted mean of it for words without a vector."""
    near = exp(TEMPERATURE * matmul(points, unit_rows(centres).T))
    result = np.tile(matmul(weights, near) / total(weights), (n_words, 1))
    result[known] = near
    return result


def cluster_centres(points, weights, n_clusters, seed):
    """Return the centres of weighted k-means, at most one a different point, whatever the order of the points."""
    distinct, place = np.unique(points, axis=0, return_inverse=True)
    weights = np.bincount(place.ravel(), weights)
    n_clusters = min(n_clusters, len(distinct))
    squares = total(distinct * distinct, axis=1)
    rng = np.random.default_rng(seed)
    starts = [_far_apart(distinct, squares, weights, n_clusters, rng) for _ in range(N_INIT)]
    return min((_lloyd(distinct, squares, weights, start) for start in starts), key=lambda run: run[0])[1]


def _squared_distances(points, squares, centres):
    """Return the squared distances of points, whose squares are known, and centres: (n_points, n_centres)."""
    return np.maximum(squares[:, None] + total(centres * centres, axis=1) - 2 * matmul(points, centres.T), 0)


def _far_apart(points, squares, weights, n_clusters, rng):
    """Return points to start from, by greedy k-means++: each is the best of some that are drawn by their distance."""
    n_tried = 2 + n_clusters.bit_length()
    chosen, nearest = [], np.ones(len(points))
    for _ in range(n_clusters):
        drawn = np.cumsum(weights * nearest)
        tried = np.searchsorted(drawn, rng.random(n_tried) * drawn[-1], side="right")
        tried = np.minimum(tried, len(points) - 1) if chosen else tried[:1]
        distances = _squared_distances(points, squares, points[tried])
        distances = np.minimum(distances, nearest[:, None]) if chosen else distances
        best = int(np.argmin(matmul(weights, distances)))
        chosen.append(int(tried[best]))
        nearest = distances[:, best]
        nearest[chosen] = 0
    return points[chosen]


def _lloyd(points, squares, weights, centres):
    """Return the weighted sum of squared distances, and the centres, once these hardly move."""
    resting = MOVED * mean(squares) / points.shape[1]
    for _ in range(MOST_STEPS):
        distances = _squared_distances(points, squares, centres)
        cluster = distances.argmin(axis=1)
        members = sp.csr_array((weights, (cluster, np.arange(len(points)))), (len(centres), len(points)))
        mass = np.bincount(cluster, weights, len(centres))[:, None]
        # A cluster without points stays where it is.
        moved = np.where(mass > 0, matmul(members, points) / np.maximum(mass, 1e-300), centres) - centres
        centres = centres + moved
        if total(moved * moved) <= resting:
            break
    return total(weights * distances.min(axis=1)), centres


def order_of_topics(word_prior, components):
    """Return the order of released topics in which those that have most of the seeds' words have the seeds' numbers.

    Seeds, of a `WordPrior`, and topics, (n_topics, n_words), positive, are matched one to one, so that the words'
    shares add up to most. Other topics keep their order.
    """
    topic_word = components / total(components, axis=1, keepdims=True)
    seeds = word_prior.informed
    share = matmul(word_prior.topics[seeds], (topic_word / total(topic_word, axis=0)).T)
    _, found = linear_sum_assignment(share, maximize=True)
    order = np.full(len(components), -1)
    order[seeds] = found
    order[order < 0] = np.setdiff1d(np.arange(len(components)), found)
    return order
