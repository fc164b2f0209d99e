"""Empirical Bayes: what noisy sums prove about what they hide. This is post-processing, free of privacy cost.

The noise of a release is known, and cells are many. So the distribution of the true values can be estimated from the
release itself, as a mixture over a fixed grid (the nonparametric maximum-likelihood estimate of Kiefer and Wolfowitz,
fitted by EM [1]_), and each cell is replaced by its posterior mean. Where noise rules, all cells of a kind become alike.

References
----------
.. [1] W. Jiang, C.-H. Zhang (2009). General maximum likelihood empirical Bayes estimation of normal means. Annals of
   Statistics 37(4).
"""

import numpy as np

__all__ = ["shrink_frequencies", "shrink_ratios"]

# The constants below were chosen on Enron, KOS, news and NIPS; doc/frontier.rst, "What was tried".
# Of word frequencies: grid points below and above the mean, weight of the mean in the first mixture, and what that counts
# as, in words.
BELOW, ABOVE, LEAST_FREQUENCY, AT_MEAN, PSEUDO_WORDS = 25, 36, 0.02, 0.7, 5.0
# Of ratios (a topic's word counts over those of the word frequencies): the grid, the first weight of the ratio 1, what the
# first mixture counts as, in words, and the width of a component over its centre.
RATIOS = np.array([0.02, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2, 2.7, 3.6, 5, 7, 10, 15, 25])
ONE = int(np.flatnonzero(RATIOS == 1)[0])
AT_ONE, PSEUDO_RATIOS, WIDTH = 0.95, 40.0, 0.25
# Nats of log-likelihood that a topic has to gain over the word frequencies to be half believed: about half of what as
# many free weights as the grid has gain by chance.
PENALTY = 5.0
FREQUENCY_STEPS, RATIO_STEPS = 200, 40  # of EM


def fitted_weights(likelihood, first, strength, n_steps):
    """Return the weights of mixture components by EM, where `first` counts as `strength` observations.

    Parameters
    ----------
    likelihood : ndarray of shape (n, n_components)
        Of each observation under each component, up to a factor of its own.
    first : ndarray of shape (n_components,)
        The weights to start from.
    strength : float
        See above.
    n_steps : int
        Of EM.
    """
    weights = first
    for _ in range(n_steps):
        density = np.maximum(likelihood @ weights, 1e-300)
        weights = weights * ((1 / density) @ likelihood) + strength * first
        weights /= weights.sum()
    return weights


def shrink_frequencies(sums, deviation):
    """Return the posterior means of word frequencies, given sums with noise.

    Parameters
    ----------
    sums : ndarray of shape (n_words,)
        Released.
    deviation : float or ndarray of shape (n_words,)
        Standard deviation of the noise in each.

    Returns
    -------
    frequencies : ndarray of shape (n_words,)
        Positive, in the unit of the sums.
    """
    deviation = np.broadcast_to(deviation, sums.shape)[:, None]
    mean = max(sums.mean(), deviation.mean() / np.sqrt(len(sums)) / 2)
    above = np.geomspace(mean, max(sums.max(), 2 * mean), ABOVE)
    grid = np.concatenate([mean * np.geomspace(LEAST_FREQUENCY, 1, BELOW)[:-1], above])
    log_likelihood = -((sums[:, None] - grid) ** 2) / (2 * deviation**2)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    first = np.full(len(grid), (1 - AT_MEAN) / len(grid))
    first[BELOW - 1] += AT_MEAN
    posterior = likelihood * fitted_weights(likelihood, first, PSEUDO_WORDS, FREQUENCY_STEPS)
    return posterior @ grid / posterior.sum(axis=1)


def shrink_ratios(counts, base, deviation):
    """Return the posterior means of the cells of topics, over those of the word frequencies.

    A topic that does not prove that it differs from the word frequencies fades into them.

    Parameters
    ----------
    counts : ndarray of shape (n_words, n_topics)
        Released sums.
    base : ndarray of shape (n_words, n_topics)
        What they would be if topics had the word frequencies; positive.
    deviation : ndarray of shape (n_words,)
        Standard deviation of the noise in the cells of each word.

    Returns
    -------
    ratios : ndarray of shape (n_words, n_topics)
        Positive.
    """
    ratios, variance = np.empty(counts.shape), (deviation**2)[:, None]
    first = np.full(len(RATIOS), (1 - AT_ONE) / len(RATIOS))
    first[ONE] += AT_ONE
    for k in range(counts.shape[1]):
        centre = base[:, k, None] * RATIOS
        width = (WIDTH * centre) ** 2
        width[:, ONE] = 0
        total, y = variance + width, counts[:, k, None]
        log_likelihood = -((y - centre) ** 2) / (2 * total) - np.log(total) / 2
        log_likelihood -= log_likelihood.max(axis=1, keepdims=True)
        likelihood = np.exp(log_likelihood)
        weights = fitted_weights(likelihood, first, PSEUDO_RATIOS, RATIO_STEPS)
        density = np.maximum(likelihood @ weights, 1e-300)
        means = (centre * variance + y * width) / total
        ratio = np.maximum(np.einsum("wj,j,wj->w", likelihood, weights, means) / density / base[:, k], RATIOS[0])
        gain = np.sum(np.log(density) - np.maximum(log_likelihood[:, ONE], -600.0)) - PENALTY
        ratios[:, k] = 1 + (ratio - 1) / (1 + np.exp(-np.clip(gain, -50, 50)))
    return ratios
