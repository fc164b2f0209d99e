"""Attacks on clusters: planted records and strings, and members, are found without noise, and not with it."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from skdplda import EmbeddingTopics, make_insights_pipeline
from skdplda.attacks import (
    ShadowModels,
    likelihood_ratio_attack,
    max_log_likelihood,
    poisoning_attack,
    relative_attack,
    threshold_keywords,
)
from skdplda.audit import one_run_lower_bound
from skdplda.semantics import WordVectorEmbedder

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


STRING, WORDS = "plantedstring", ["tea", "milk", "iron", "steel"]
EMBEDDER = WordVectorEmbedder(dict(zip(WORDS, np.eye(4) + 0.3, strict=True)))


def named(words, epsilon, n_planted, seed, grouped):
    """Return whether a string that an attacker plants is a keyword of a cluster."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, 3)) for _ in range(300)] + [f"tea {STRING}"] * n_planted
    pipeline = make_insights_pipeline(
        epsilon,
        1e-8,
        embedder=EMBEDDER,
        public_vocabulary=words,
        model=EmbeddingTopics(2, max_iter=2, random_state=seed),
        groups=grouped,
    )
    pipeline.fit(texts, groups=[*range(300), *[-1] * n_planted] if grouped else None)
    return STRING in pipeline[-1].top_words(10 if words is None else 4).to_numpy()


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")  # a seed makes the test repeatable
@pytest.mark.filterwarnings("ignore:.*clusters do not stand out:UserWarning")
def test_no_unit_plants_a_string_and_none_at_all_is_outside_of_public_words():
    """One unit has its string named with a probability of delta, 1e-8, at most; many units do so without noise."""
    assert named(None, math.inf, 100, 0, False)
    assert not any(named(WORDS, math.inf, 100, 0, grouped) for grouped in (False, True))
    assert not any(named(None, 4.0, 1, seed, False) for seed in range(5))
    assert not any(named(None, 4.0, 100, seed, True) for seed in range(5))


@pytest.fixture(scope="module")
def sparse_texts():
    """Embeddings and words that few texts share, and which of the texts the target has, by fair coins."""
    rng = np.random.default_rng(0)
    X, counts = rng.normal(size=(120, 20)), rng.poisson(0.2, (120, 60))
    return X, counts, rng.integers(0, 2, 120).astype(bool)


def statistics_of(X, counts, members, epsilon, seed):
    """Return what released centres, and keywords, say of all texts: log-likelihoods, (n_documents, 2)."""
    model = EmbeddingTopics(15, epsilon=epsilon, delta=1e-10, max_iter=8, random_state=seed)
    model.fit(X[members], counts=counts[members])
    cosines = model.score_samples(X)
    words = max_log_likelihood(model.topic_word_, counts)[0]
    return np.column_stack([model.concentration_ * cosines, words])


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")  # a seed makes the test repeatable
@pytest.mark.filterwarnings("ignore:.*clusters do not stand out:UserWarning")
@pytest.mark.parametrize("epsilon", [0.5, math.inf])
def test_members_are_found_from_centres_and_keywords_without_noise_only(sparse_texts, epsilon):
    """The right guesses of any attack on fair coins are bounded by epsilon and delta: one in a million exceeds."""
    X, counts, members = sparse_texts
    halves = np.random.default_rng(1).permuted(np.tile(np.arange(120) < 60, (12, 1)), axis=1)
    halves = np.concatenate([halves, ~halves])
    values = np.stack([statistics_of(X, counts, half, epsilon, seed) for seed, half in enumerate(halves)])
    observed = statistics_of(X, counts, members, epsilon, 100)
    for column in (0, 1):
        shadows = ShadowModels(halves, values[:, :, [column]], ("zeta",))
        for attack in (likelihood_ratio_attack, relative_attack):
            result = attack(None, observed[:, [column]], members, shadows)
            guesses = np.argsort(result.scores, kind="stable")[[*range(30), *range(-30, 0)]]
            n_right = (members[guesses] == (np.arange(60) >= 30)).sum()
            bound = one_run_lower_bound(120, 60, n_right, delta=1e-10, confidence=1 - 1e-6)
            if math.isinf(epsilon):
                assert result.auc > 0.75 and bound > 0.1
            else:
                assert bound <= epsilon and result.auc < 0.75  # 4.7 deviations of guesses
