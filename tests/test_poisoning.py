"""Planted records: they read a secret off a summary with a threshold, and not off one with noise."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from skdplda import EmbeddingTopics
from skdplda.attacks import poisoning_attack, threshold_keywords

N_SECRETS = 20


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=400)
    return np.eye(12)[labels] + 0.3 * rng.normal(size=(400, 12)), rng.poisson(0.5, (400, 15))


@pytest.mark.parametrize("least_users", [10, 30])
def test_a_threshold_gives_the_secret_away(texts, least_users):
    """A cluster has as many users as the attacker plants."""

    def summarize(vectors, counts, users):
        return threshold_keywords(vectors, counts, users, n_clusters=8, least_users=least_users)

    result = poisoning_attack(summarize, *texts, n_secrets=N_SECRETS, n_trials=30)
    assert result.success > 0.5 and result.lower > 0.3


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")  # a seed makes the test repeatable
@pytest.mark.filterwarnings("ignore:.*clusters do not stand out:UserWarning")
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_noise_keeps_the_secret_below_the_bound(texts, epsilon):
    seeds = iter(range(1000))

    def summarize(vectors, counts, users):
        model = EmbeddingTopics(8, epsilon=epsilon, max_iter=3, random_state=next(seeds))
        return model.fit(vectors, groups=users, counts=counts).components_

    result = poisoning_attack(summarize, *texts, n_secrets=N_SECRETS, n_trials=60 if math.isfinite(epsilon) else 10)
    right = round(result.success * result.n_trials)
    bound = math.exp(epsilon) / N_SECRETS + 1e-5
    if math.isinf(epsilon):  # the attack itself works: without noise nothing is hidden
        assert result.success == 1
    else:
        assert binom.sf(right - 1, result.n_trials, bound) > 1e-6
        assert result.success < bound + 0.1
