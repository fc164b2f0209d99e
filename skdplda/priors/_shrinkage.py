"""Empirical Bayes: what noisy sums prove about what they hide. This is post-processing, free of privacy cost.

The noise of a release is known, and cells are many. So the distribution of the true values can be estimated from the
release itself, as a mixture over a fixed grid (the nonparametric maximum-likelihood estimate of Kiefer and Wolfowitz,
fitted by EM [1]_), and each cell is replaced by its posterior mean. Where noise rules, cells of a kind become alike.

References
----------
.. [1] W. Jiang, C.-H. Zhang (2009). General maximum likelihood empirical Bayes estimation of normal means. Annals of
   Statistics 37(4).
"""

import math

import numpy as np

from skdplda._arithmetic import eigen, exp, geomspace, gram, inverse, log, matmul, mean, mixture_weights, total

# The constants below were chosen on Enron, KOS, news and NIPS; doc/frontier.rst, "Little budget".
# Of word frequencies: grid points below and above the mean, weight of the mean in the first mixture, and what that
# counts as, in words.
BELOW, ABOVE, LEAST_FREQUENCY, AT_MEAN, PSEUDO_WORDS = 25, 36, 0.02, 0.7, 5.0
# Of ratios (a topic's word counts over those of the word frequencies): the grid, what the first mixture, an even one,
# counts as, in words, and the width of a component over its centre.
RATIOS = np.array([0.02, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 2.7, 3.6, 5, 7, 10, 15, 25])
ONE = int(np.flatnonzero(RATIOS == 1)[0])
PSEUDO_RATIOS, WIDTH = 1.0, 0.25
# Nats of log-likelihood that a topic has to gain over the word frequencies to be half believed: about half of what as
# many free weights as the grid has gain by chance.
PENALTY = 5.0
FREQUENCY_STEPS, RATIO_STEPS = 200, 40  # of EM
FINAL_STEPS = 15  # of the log-linear model, of the model that is released
PART = 256  # words whose components are computed together
GRID_WIDTH = 0.1  # of a component of word frequencies, over its centre: about the distance of two points of the grid
LEAST_PUBLIC = 1e-6  # least public frequency of a word, over that of the uniform distribution
MOST_FACTOR = 1e6  # of a word's frequency over its public one
# Of the log-linear model: dimensions of the vectors that are used, relative error of its expectation, bounds of the
# exponent and of the prior variance, and the first variance.
DIMENSIONS, MISFIT, MOST_LOG, LEAST_VARIANCE, MOST_VARIANCE, FIRST_VARIANCE = 50, 0.7, 4.0, 1e-4, 10.0, 0.3


def floor_of(public):
    """Return public word frequencies in which no word has probability 0; None stays."""
    return None if public is None else np.maximum(public, LEAST_PUBLIC / len(public))


def shrink_frequencies(sums, deviation, public=None):
    """Return the posterior means of word frequencies, (n_words,), positive, from `sums` of these with noise.

    `deviation` is that of the noise, one number or one a word. Words are shrunk towards `public` frequencies or towards
    the mean, whichever explains the sums better.
    """
    noise = np.broadcast_to(deviation, sums.shape) ** 2
    middle = max(mean(sums), mean(np.sqrt(noise)) / math.sqrt(len(sums)) / 2)
    best = -np.inf
    for public_or_flat in [np.ones(len(sums))] + ([] if public is None else [public * len(public)]):
        centre = middle * public_or_flat
        most = np.clip(np.max(sums / centre), 2.0, MOST_FACTOR)
        below, above = geomspace(LEAST_FREQUENCY, 1, BELOW), geomspace(1, most, ABOVE)
        factors = np.concatenate([below[:-1], above])
        likelihood, top = np.empty((len(factors), len(sums))), np.empty(len(sums))
        for some, grid, _, variance in _parts(factors, centre, noise):
            log_likelihood = -((sums[some] - grid) ** 2) / (2 * variance) - log(variance / noise[some]) / 2
            top[some] = log_likelihood.max(axis=0)
            likelihood[:, some] = exp(log_likelihood - top[some])
        first = np.full(len(factors), (1 - AT_MEAN) / len(factors))
        first[BELOW - 1] += AT_MEAN
        weights = mixture_weights(likelihood, first, PSEUDO_WORDS, FREQUENCY_STEPS)
        density = np.maximum(matmul(weights, likelihood), 1e-300)
        evidence = total(log(density) + top)
        if evidence > best:
            for some, grid, width, variance in _parts(factors, centre, noise):
                likelihood[:, some] *= np.maximum((grid * noise[some] + sums[some] * width) / variance, grid[0])
            best, frequencies = evidence, matmul(weights, likelihood) / density
    return frequencies


def _parts(factors, centre, noise):
    """Yield slices of the words, so small that all of a part stays in the cache, and what components are there.

    Grid, squared width and variance with noise are each of shape (n_components, n).
    """
    for begin in range(0, len(centre), PART):
        some = slice(begin, begin + PART)
        grid = factors[:, None] * centre[some]
        width = (GRID_WIDTH * grid) ** 2
        width[BELOW - 1] = 0
        yield some, grid, width, noise[some] + width


def shrink_ratios(counts, base, deviation):
    """Return the posterior means of topics' cells over those of the word frequencies, and what is left of a count.

    Both are (n_words, n_topics), and the ratios positive. What is left is by how much a posterior mean grows with the
    released count: its posterior variance over that of the noise (Robbins and Tweedie).

    `counts` are released sums, and `base` what they would be if topics had the word frequencies, positive; `deviation`,
    (n_words,), (n_words, 1) or of their shape, is that of the noise in the cells. A topic that does not prove that it
    differs from the word frequencies fades into them.
    """
    ratios, left = np.empty(counts.shape), np.empty(counts.shape)
    variances = np.broadcast_to((deviation**2).reshape(len(counts), -1), counts.shape)
    first = np.full(len(RATIOS), 1 / len(RATIOS))
    for k in range(counts.shape[1]):
        y, centre, variance = counts[:, k], RATIOS[:, None] * base[:, k], variances[:, k]
        width = (WIDTH * centre) ** 2
        width[ONE] = 0
        spread = variance + width
        log_likelihood = -((y - centre) ** 2) / (2 * spread) - log(spread) / 2
        log_likelihood -= log_likelihood.max(axis=0)
        likelihood = exp(log_likelihood)
        weights = mixture_weights(likelihood, first, PSEUDO_RATIOS, RATIO_STEPS)
        density = np.maximum(matmul(weights, likelihood), 1e-300)
        means = (centre * variance + y * width) / spread
        posterior = matmul(weights, likelihood * means) / density
        squares = matmul(weights, likelihood * (means * means + variance * width / spread)) / density
        ratio = np.maximum(posterior / base[:, k], RATIOS[0])
        gain = total(log(density) - np.maximum(log_likelihood[ONE], -600.0)) - PENALTY
        doubt = 1 + exp(-np.clip(gain, -50, 50))
        ratios[:, k] = 1 + (ratio - 1) / doubt
        left[:, k] = np.clip((squares - posterior * posterior) / variance, 0, 1) / doubt
    return ratios, left


def shrink_topics(counts, deviation, frequencies, vectors=None):
    """Return the counts that released topics prove, (n_words, n_topics), positive, and what is left of a count in them.

    `counts` and `deviation` are as in `shrink_ratios`, `frequencies` those of the words, with sum 1, and `vectors`,
    where these fit, as from `principal`.
    """
    masses = np.maximum(total(counts, axis=0), math.sqrt(total(deviation**2)))
    base = frequencies[:, None] * masses
    if vectors is not None:
        base = loglinear(counts, base, deviation, vectors, FINAL_STEPS)
    ratios, left = shrink_ratios(counts, base, deviation)
    return base * ratios, left


def unit_columns(a):
    """Return columns of length 1; zeros stay."""
    return a / np.maximum(np.sqrt(total(a**2, axis=0)), 1e-300)


def principal(vectors, frequencies):
    """Return the first principal directions of word vectors, (n_words, at most DIMENSIONS).

    Words are weighted by the roots of their `frequencies`; the directions have weighted mean 0 and total variance 1.
    Words without a vector, rows of zeros, keep zeros.
    """
    known = vectors.any(axis=1)
    weights = np.where(known, np.sqrt(frequencies), 0.0)
    weights /= total(weights)
    centred = np.where(known[:, None], vectors - matmul(weights, vectors), 0.0)
    _, directions = eigen(gram(centred, weights))
    features = matmul(centred, directions[::-1][:DIMENSIONS].T)
    return features / math.sqrt(max(total(weights[:, None] * features**2), 1e-300))


def loglinear(counts, base, deviation, vectors, n_steps):
    """Return the counts that the vectors expect: topics proportional to base exp(vectors . b_k), with its sums.

    `counts`, `base` and `deviation` are as in `shrink_ratios`, `vectors` as from `principal`. The coefficients have a
    normal prior, whose variance is that which explains the topic's counts best (MacKay's evidence): where the vectors
    explain nothing, it goes to zero, and what is returned to the base. There are `n_steps` of Newton's method, and
    after the second of the variance, too.
    """
    expected, n_dimensions = np.empty(base.shape), vectors.shape[1]
    for k in range(base.shape[1]):
        b, variance, mass = np.zeros(n_dimensions), FIRST_VARIANCE, total(base[:, k])

        def mean_of(b, base=base[:, k], mass=mass):
            mu = base * exp(np.clip(matmul(vectors, b), -MOST_LOG, MOST_LOG))
            return mu * (mass / total(mu))

        for step in range(n_steps):
            mu = mean_of(b)
            precision = 1 / (deviation**2 + (MISFIT * mu) ** 2)
            slopes = vectors - matmul(mu, vectors) / mass
            hessian = gram(slopes, mu**2 * precision)
            penalty = n_dimensions / variance
            target = matmul(mu * precision * (counts[:, k] - mu), slopes) + matmul(hessian, b)
            covariance = inverse(hessian + penalty * np.eye(n_dimensions))
            move = matmul(covariance, target) - b
            b = b + move * min(1.0, 1 / max(np.abs(matmul(vectors, move)).max(), 1e-9))  # no exponent moves by more
            if step >= 2:
                determined = n_dimensions - penalty * total(np.diag(covariance))
                variance = np.clip(n_dimensions * total(b * b) / max(determined, 1e-6), LEAST_VARIANCE, MOST_VARIANCE)
        expected[:, k] = mean_of(b)
    return expected
