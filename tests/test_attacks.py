"""Attacks find what leaks, are right on ties and odd sizes, and refuse what makes no sense."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import shifted
from joblib import parallel_config
from scipy.stats import multivariate_normal, norm
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from skdplda import PrivacyLeakWarning, PrivateCGSLDA
from skdplda.attacks import (
    AttackResult,
    ShadowModels,
    bayesian_ratio_attack,
    document_statistics,
    likelihood_ratio_attack,
    max_log_likelihood,
    membership_experiment,
    quantile_attack,
    reconstruct_counts,
    relative_attack,
    released_topics,
    shadow_classifier_attack,
    threshold_attack,
    train_shadow_models,
    vocabulary_attack,
)
from skdplda.datasets import make_lda_corpus
from skdplda.published import PriTopLDA


class Counter(BaseEstimator):
    """A model that releases its counts: fast, and easy to attack."""

    def __init__(self, random_state=0):
        self.random_state = random_state

    def fit(self, X, y=None):
        self.components_ = np.asarray(X.sum(axis=0), dtype=float).reshape(1, -1) + 0.01
        self.seed_ = self.random_state
        return self


@pytest.fixture(scope="module")
def rare():
    """101 documents: common words, and one rare word each of 40."""
    rng = np.random.default_rng(0)
    common = rng.poisson(1.0, (101, 8))
    return sp.csr_array(np.hstack([common, np.eye(101, dtype=int)[:, :40] * 3]).astype(np.int32))


@pytest.fixture(scope="module")
def attacked(rare):
    members = np.random.default_rng(1).permutation(101) < 50
    shadows = train_shadow_models(Counter(), rare, 32, statistics=("zeta", "max"), random_state=2)
    return members, Counter().fit(rare[members]).components_, shadows


def test_ties_and_infinities_are_judged_right():
    rng = np.random.default_rng(0)
    scores, labels = rng.integers(0, 4, 200).astype(float), rng.random(200) < 0.4
    result = AttackResult(scores, labels)
    assert result.auc == pytest.approx(roc_auc_score(labels, scores))
    assert AttackResult(-scores, labels).auc == pytest.approx(1 - result.auc)
    assert AttackResult(np.zeros(200), labels).auc == 0.5
    fpr, tpr, thresholds = result.roc()
    assert len(fpr) == 5 and (np.diff(thresholds) < 0).all()
    for false, true, threshold in zip(fpr, tpr, thresholds, strict=True):
        assert false == np.mean(scores[~labels] >= threshold)
        assert true == np.mean(scores[labels] >= threshold)
    at = AttackResult(np.zeros(200), labels).tpr_at(0.5)
    assert (at.rate, at.fpr) == (0.0, 0.0)  # one step of ties: no threshold keeps the rate
    certain = AttackResult([np.inf, np.inf, 0.0, -np.inf], [True, True, False, False])
    assert certain.tpr_at(0.0).rate == 1.0 and certain.auc == 1.0


def test_interval_is_clopper_pearson():
    labels = np.arange(200) < 100
    at = AttackResult(np.where(np.arange(200) < 20, 1.0, 0.0), labels).tpr_at(0.001)
    assert at.rate == 0.2
    assert (at.low, at.high) == pytest.approx((0.126656, 0.291843), abs=1e-5)
    nothing = AttackResult(np.where(np.arange(200) < 100, 0.0, 1.0), labels).tpr_at(0.001)
    assert nothing.low == 0 and nothing.high == pytest.approx(1 - 0.025 ** (1 / 100))


def test_pooled_repetitions_keep_every_score():
    one = AttackResult([1.0, 0.0], [True, False], "a")
    assert AttackResult.pool([one, one, one]).scores.tolist() == [1, 0] * 3
    assert repr(one).startswith("<a: AUC 1.000")


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([1.0, np.nan], [True, False], "1 of 2 are NaN"),
        ([1.0, 2.0], [True, True], "members and non-members"),
        ([1.0, 2.0], [False, False], "got 0 members of 2"),
        ([1.0], [True, False], "one entry a document"),
    ],
)
def test_results_refuse_what_has_no_rates(scores, labels, message):
    with pytest.raises(ValueError, match=message):
        AttackResult(scores, labels)


def test_statistics_are_what_they_are_called():
    topic_word = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    X = np.array([[4, 1, 0], [2, 0, 3], [0, 0, 0]])
    values = document_statistics(topic_word, X, ["zeta", "negative_entropy", "logit_max", "std", "max"])
    zeta, _, theta = max_log_likelihood(topic_word, X)
    np.testing.assert_allclose(values[:, 0], zeta)
    assert values[2, 0] == 0 and values[2, 1] == pytest.approx(-np.log(2))
    maximum = document_statistics(topic_word, X, ["negative_entropy", "max"], proportions="maximum")
    np.testing.assert_allclose(maximum[:, 1], theta.max(axis=1))
    np.testing.assert_allclose(np.exp(values[:, 2]), values[:, 4] / (1 - values[:, 4]))
    own = document_statistics(topic_word, X, [lambda table, X: np.asarray(X.sum(axis=1)).ravel()])
    assert own[:, 0].tolist() == [5, 5, 0]
    several = max_log_likelihood(np.stack([topic_word, topic_word[::-1]]), X)[0]
    np.testing.assert_allclose(several, [zeta, zeta])


def test_members_of_a_leaky_model_are_found():
    """Over 18 seeds the areas are 0.999 with deviation 0.001; 0.95 (0.07) are found without a false alarm."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.multinomial(20, rng.dirichlet(np.ones(1000)), 100).astype(np.int32))
    members = rng.permutation(100) < 50
    table = Counter().fit(X[members]).components_
    shadows = train_shadow_models(Counter(), X, 32, statistics=("zeta", "max"), random_state=2)
    for mode in ("online", "offline"):
        result = likelihood_ratio_attack(table, X, members, shadows, mode=mode, statistics=["zeta"])
        assert result.auc > 0.95
        assert result.tpr_at(0.0).rate > 0.5
        assert np.median(result.scores[members]) > np.median(result.scores[~members])  # not inverted
    both = likelihood_ratio_attack(table, X, members, shadows)
    assert both.name == "LiRA online (zeta, max)" and both.auc > 0.95


def halves(n_models, n_documents, rng):
    """Return members such that each document is in half of the models."""
    return np.argsort(rng.random((n_models, n_documents)), axis=0) < n_models // 2


def scores_of(attack, observed, values, members, **options):
    """Return what an attack makes of these statistics, (n_documents, n) of the target and of its shadow models."""
    names = tuple(lambda table, X, s=s: observed[:, s] for s in range(observed.shape[1]))
    X, truth = np.ones((len(observed), 2), int), np.arange(len(observed)) % 2 == 0
    return attack(np.full((1, 2), 0.5), X, truth, ShadowModels(members, values, names), **options).scores


def test_online_scores_are_log_ratios_of_normal_densities():
    rng = np.random.default_rng(0)
    values, members = rng.normal(size=(20, 3, 2)), halves(20, 3, rng)
    observed = rng.normal(size=(3, 2))
    one = scores_of(likelihood_ratio_attack, observed[:, :1], values[:, :, :1], members)
    off = scores_of(likelihood_ratio_attack, observed[:, :1], values[:, :, :1], members, mode="offline")
    two = scores_of(likelihood_ratio_attack, observed, values, members)
    for d in range(3):
        inside, outside = values[members[:, d], d], values[~members[:, d], d]
        laws = [norm(part[:, 0].mean(), part[:, 0].std(ddof=1)) for part in (inside, outside)]
        x = observed[d, 0]
        assert one[d] == pytest.approx(laws[0].logpdf(x) - laws[1].logpdf(x), abs=1e-6)
        assert norm.sf(off[d]) == pytest.approx(laws[1].sf(x))
        joint = [multivariate_normal(part.mean(axis=0), np.cov(part.T)) for part in (inside, outside)]
        assert two[d] == pytest.approx(joint[0].logpdf(observed[d]) - joint[1].logpdf(observed[d]), abs=1e-6)


def test_far_documents_are_ranked_not_tied():
    """The ratio overflows and the offline probability rounds to 1; their logarithms and distances do not."""
    values = np.random.default_rng(0).normal(size=(20, 3, 1))
    members = halves(20, 3, np.random.default_rng(1))
    values[members] += 1000
    observed = np.array([[1000.0], [1001.0], [999.0]])
    for mode in ("online", "offline"):
        scores = scores_of(likelihood_ratio_attack, observed, values, members, mode=mode)
        assert np.isfinite(scores).all() and len(np.unique(scores)) == 3 and (scores > 30).all()


def test_documents_without_a_known_word_score_nothing(rare):
    X = sp.csr_array(rare.toarray() * (np.arange(101) != 7)[:, None])
    shadows = train_shadow_models(Counter(), X, 8, random_state=0)
    members = np.arange(101) % 2 == 0
    for mode in ("online", "offline"):
        scores = likelihood_ratio_attack(Counter().fit(X[members]).components_, X, members, shadows, mode=mode).scores
        assert scores[7] == 0


@pytest.mark.parametrize(("n_models", "n_documents"), [(4, 10), (5, 11), (8, 101)])
def test_pairs_of_models_share_the_documents_out(n_models, n_documents):
    X = np.random.default_rng(0).poisson(1.0, (n_documents, 5)) + 1
    members = train_shadow_models(Counter(), X, n_models, random_state=0).members
    pairs = members[: n_models // 2 * 2].reshape(-1, 2, n_documents)
    assert (pairs.sum(axis=1) == 1).all()
    assert (abs(members.sum(axis=1) - n_documents / 2) < 1).all()
    few = train_shadow_models(Counter(), X, 3, sampling=0.2, random_state=0).members
    assert (few.sum(axis=1) == n_documents // 5).all()


class Interrupted(Counter):
    """Fails after some fits."""

    def fit(self, X, y=None):
        folder = Path(os.environ["SHADOWS"])
        if len(list(folder.glob("*.npz"))) >= 3:
            raise KeyboardInterrupt
        return super().fit(X)


def test_an_interrupted_run_goes_on(rare, tmp_path, monkeypatch):
    monkeypatch.setenv("SHADOWS", str(tmp_path))
    options = {"directory": tmp_path, "random_state": 3}
    monkeypatch.setattr(Counter, "__repr__", lambda self: "Counter()")
    assert repr(Interrupted()) == "Counter()"  # one estimator, that fails and is repaired
    with pytest.raises(KeyboardInterrupt):
        train_shadow_models(Interrupted(), rare, 6, **options)
    assert len(list(tmp_path.glob("*.npz"))) == 3 and not list(tmp_path.glob("*.partial"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    resumed = train_shadow_models(Counter(), rare, 6, **options)
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    whole = train_shadow_models(Counter(), rare, 6, random_state=3)
    np.testing.assert_array_equal(resumed.values, whole.values)
    np.testing.assert_array_equal(resumed.members, whole.members)
    more = train_shadow_models(Counter(), rare, 8, **options)  # fewer models are the beginning of more
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    np.testing.assert_array_equal(more.values, train_shadow_models(Counter(), rare, 8, random_state=3).values)
    with pytest.raises(ValueError, match="belongs to a run with other data or settings"):
        train_shadow_models(Counter(), rare[:100], 6, **options)
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.glob("*.npz"))
    for attack in (train_shadow_models, membership_experiment):
        with pytest.raises(ValueError, match="random_state must be an integer where a directory"):
            attack(Counter(), rare, n_models=6, directory=tmp_path)


class Described(Counter):
    """Has a part with parameters."""

    def __init__(self, part=None, random_state=0):
        super().__init__(random_state)
        self.part = part


def test_long_parameters_tell_runs_apart(rare, tmp_path):
    """Both representations are cut to the same text."""
    first, second = (CountVectorizer(vocabulary=[f"word{i}" for i in range(1000)] + [last]) for last in ("a", "b"))
    assert repr(first) == repr(second)
    for estimator in (first, clone(first)):
        train_shadow_models(Described(estimator), rare, 2, directory=tmp_path, random_state=0)
    with pytest.raises(ValueError, match="belongs to a run with other data or settings"):
        train_shadow_models(Described(second), rare, 2, directory=tmp_path, random_state=0)


def test_models_have_seeds_of_their_own_and_workers_do_not_matter(rare):
    seeds = []

    def noted(model):
        seeds.append(model.seed_)
        return released_topics(model)

    one = train_shadow_models(Counter(), rare, 6, random_state=0, topic_word=noted)
    assert len(set(seeds)) == 6
    seeds.clear()
    train_shadow_models(Counter(random_state=None), rare, 4, random_state=0, topic_word=noted)
    assert seeds == [None] * 4
    two = train_shadow_models(LatentDirichletAllocation(2, max_iter=2, random_state=0), rare, 4, random_state=0)
    with parallel_config("threading", n_jobs=2):
        again = train_shadow_models(LatentDirichletAllocation(2, max_iter=2, random_state=0), rare, 4, random_state=0)
    np.testing.assert_array_equal(two.values, again.values)
    assert one.values.shape == (6, 101, 1)


def test_bad_input_is_refused_with_a_sentence(rare, attacked):
    members, table, shadows = attacked
    for n_models in (1, 4.5):
        with pytest.raises(ValueError, match="n_models must be an integer of at least 2"):
            train_shadow_models(Counter(), rare, n_models)
    for n_models in (3, 4.5):
        with pytest.raises(ValueError, match="n_models must be an integer of at least 4"):
            membership_experiment(Counter(), rare, n_models=n_models)
    with pytest.raises(ValueError, match="repetitions must be an integer of at least 1"):
        membership_experiment(Counter(), rare, repetitions=0)
    for seed in (-1, 0.5, "0"):
        with pytest.raises(ValueError, match="random_state must be None or an integer"):
            train_shadow_models(Counter(), rare, 4, random_state=seed)
    with pytest.raises(ValueError, match="sampling must be between 0 and 1"):
        train_shadow_models(Counter(), rare, 4, sampling=1.0)
    with pytest.raises(ValueError, match="at least 2 documents"):
        train_shadow_models(Counter(), rare[:1], 4)
    with pytest.raises(ValueError, match="share one vocabulary"):
        likelihood_ratio_attack(table[:, :-1], rare, members, shadows)
    with pytest.raises(ValueError, match="members and non-members"):
        likelihood_ratio_attack(table, rare, np.ones(101), shadows)
    with pytest.raises(ValueError, match="asked about 101"):
        likelihood_ratio_attack(table, rare[:50], members[:50], shadows)
    with pytest.raises(ValueError, match="mode must be"):
        likelihood_ratio_attack(table, rare, members, shadows, mode="both")
    with pytest.raises(ValueError, match="among the shadow models'"):
        likelihood_ratio_attack(table, rare, members, shadows, statistics=["std"])
    few = ShadowModels(shadows.members[:2], shadows.values[:2], shadows.names)
    with pytest.raises(ValueError, match="only 1 shadow models"):
        likelihood_ratio_attack(table, rare, members, few)
    with pytest.raises(ValueError, match="statistics must be callable or among"):
        document_statistics(table, rare, ["best"])
    with pytest.raises(ValueError, match="must return one finite number"):
        document_statistics(table, rare, [lambda table, X: [np.nan]])
    with pytest.raises(ValueError, match="proportions must be"):
        document_statistics(table, rare, proportions="mode")
    with pytest.raises(ValueError, match="non-negative"):
        max_log_likelihood(-table, rare)
    with pytest.raises(ValueError, match="must hold non-negative integer counts"):
        max_log_likelihood(table, rare * 0.5)
    with pytest.raises(ValueError, match="must hold non-negative integer counts"):
        max_log_likelihood(table, rare * -1)
    with pytest.raises(TypeError, match="is no topic model"):
        released_topics(LogisticRegression())


def test_thresholds_take_the_published_statistics(rare, attacked):
    members, _, _ = attacked
    model = LatentDirichletAllocation(3, max_iter=3, random_state=0).fit(rare[members])
    for name in ("max", "std", "negative_entropy"):
        result = threshold_attack(model.components_, rare, members, name)
        expected = document_statistics(model.components_, rare, [name])[:, 0]
        np.testing.assert_array_equal(result.scores, expected)


def test_the_vocabulary_alone_finds_members(rare):
    members = np.arange(101) % 2 == 0
    vocabulary = np.asarray(rare[members].sum(axis=0)) > 0
    result = vocabulary_attack(vocabulary, rare, members)
    above = result.scores[members] > result.scores[~members].max()  # those with a rare word, and perhaps others
    assert result.tpr_at(0.0).rate == pytest.approx(above.mean()) and above.sum() >= 20
    assert np.isposinf(result.scores[:40:2]).all() and np.isneginf(result.scores[1:40:2]).all()
    with pytest.raises(ValueError, match="released must be of shape"):
        vocabulary_attack([vocabulary], rare, members)


@pytest.mark.parametrize("released", ["components_", "topic_word_"])
def test_counts_are_read_off_exact_tables_only(rare, released):
    rare = sp.hstack([rare, sp.csr_array((rare.shape[0], 1), dtype=np.int32)], format="csr")  # a word without tokens
    with pytest.warns(PrivacyLeakWarning):
        model = PriTopLDA(2, epsilon=0.1, max_iter=3).fit(rare)
    found = reconstruct_counts(getattr(model, released), 0.01)
    assert found.exact
    np.testing.assert_array_equal(found.counts.sum(axis=0), np.asarray(rare.sum(axis=0)))
    private = PrivateCGSLDA(2, max_iter=3).fit(rare)
    assert not reconstruct_counts(getattr(private, released), 0.01).exact
    with pytest.raises(ValueError, match="topic_word_prior must be positive"):
        reconstruct_counts(model.topic_word_, 0.0)


def test_the_experiment_on_a_corpus(rare, tmp_path):
    options = {"n_models": 8, "repetitions": 2, "random_state": 0}
    results = membership_experiment(Counter(), rare, directory=tmp_path, **options)
    runs = results.runs
    with pytest.raises(KeyError):
        results["no such attack"]
    assert set(results) == {
        "vocabulary",
        "LiRA online (zeta)",
        "LiRA offline (zeta)",
        "threshold (max)",
        "threshold (std)",
        "threshold (negative_entropy)",
    }
    assert len(runs) == 2 and len(results["vocabulary"].scores) == 202
    members = results["vocabulary"].labels
    own = np.tile(np.arange(101) < 40, 2)  # of the documents that have a word of their own, all members are found
    assert results["vocabulary"].tpr_at(0.0).rate >= own[members].mean() > 0
    again = membership_experiment(Counter(), rare, directory=tmp_path, **options)
    np.testing.assert_array_equal(again["LiRA online (zeta)"].scores, results["LiRA online (zeta)"].scores)
    given = membership_experiment(Counter(), rare, vocabulary="given", n_models=4, random_state=0)
    assert "vocabulary" not in given


def test_shadow_classifiers_find_members_of_an_overfitted_classifier():
    """Over 40 seeds the accuracies are 0.92 (deviation 0.025) and 0.50 (0.064), the area 0.978 (0.016).

    Of topics, the accuracy is 0.51 (0.041).
    """
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(0.3, (240, 400)).astype(np.int32))
    y = rng.integers(0, 2, 240)  # nothing to learn but the documents themselves
    attack = shadow_classifier_attack(LogisticRegression(C=100.0, max_iter=2000), X, y, n_shadows=3, random_state=0)
    assert attack.membership_accuracy > 0.75 and attack.result.auc > 0.9
    assert 0.1 < attack.prediction_accuracy < 0.9
    corpus = make_lda_corpus(160, 60, 2, random_state=0)
    half = np.asarray(corpus.data[:, :30].sum(axis=1)).ravel()
    y = np.where(half > np.median(half), "first", "second")
    topics = LatentDirichletAllocation(3, max_iter=3, random_state=shifted(0))
    attack = shadow_classifier_attack(make_pipeline(topics, LogisticRegression()), corpus.data, y, random_state=0)
    assert attack.membership_accuracy < 0.75 and 0 <= attack.f1 <= 1
    with pytest.raises(ValueError, match="n_shadows must be an integer of at least 2"):
        shadow_classifier_attack(topics, corpus.data, y, n_shadows=1)
    with pytest.raises(ValueError, match="at least 2 classes"):
        shadow_classifier_attack(topics, corpus.data, np.zeros(160))
    with pytest.raises(ValueError, match="one class a document"):
        shadow_classifier_attack(topics, corpus.data, y[:5])


@pytest.mark.skipif("SKDPLDA_DATA" not in os.environ, reason="SKDPLDA_DATA names no folder of corpora")
def test_vocabulary_of_half_the_tweets():
    texts = json.loads((Path(os.environ["SKDPLDA_DATA"]) / "pheme_clean.json").read_text())["text"]
    X = sp.csr_array(CountVectorizer(token_pattern=r"\S+").fit_transform(texts).astype(np.int32))
    members = np.random.default_rng(0).permutation(X.shape[0]) < X.shape[0] // 2
    result = vocabulary_attack(np.asarray(X[members].sum(axis=0)) > 0, X, members)
    assert 0.30 < result.tpr_at(0.0).rate < 0.36


def test_bayesian_ratios_become_likelihood_ratios_with_many_models():
    """To 0.02, over 40 seeds with deviation 0.01, where ratios are up to 1.5; farther out chance is larger."""
    rng = np.random.default_rng(0)
    members = np.tile([[True], [False]], (20_000, 5))
    means = rng.normal(size=5) * 10
    values = rng.normal(size=members.shape) + means + 1.0 * members
    observed = means + np.linspace(-1.0, 2.0, 5)
    lira, bayes = (
        scores_of(attack, observed[:, None], values[:, :, None], members)
        for attack in (likelihood_ratio_attack, bayesian_ratio_attack)
    )
    assert bayes == pytest.approx(lira, abs=0.1)


def test_bayesian_ratios_find_more_than_lira_with_few_models():
    """4,000 documents, 8 models, a shift of 1.5 deviations for all."""
    rng = np.random.default_rng(1)
    n, truth = 4000, np.arange(4000) % 2 == 0
    members = halves(8, n, rng)
    deviation = np.exp(rng.normal(scale=0.3, size=n))
    values = deviation * (rng.normal(size=members.shape) + 1.5 * members)
    observed = deviation * (rng.normal(size=n) + 1.5 * truth)
    few, lira = (
        AttackResult(scores_of(attack, observed[:, None], values[:, :, None], members), truth).auc
        for attack in (bayesian_ratio_attack, likelihood_ratio_attack)
    )
    assert few > lira
    assert few > 0.8


def test_relative_ratios_by_hand():
    shadows = ShadowModels(
        np.array([[True, False], [False, True]]), np.log([[[0.4], [0.1]], [[0.2], [0.3]]]), ("zeta",)
    )
    topics, X = np.array([[0.9, 0.1]]), [[1, 0], [0, 1]]  # likelihoods 0.9 and 0.1 over 0.3 and 0.2
    assert relative_attack(topics, X, [True, False], shadows).scores.tolist() == [1.0, 0.0]
    assert relative_attack(topics, X, [True, False], shadows, gamma=7.0).scores.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="gamma"):
        relative_attack(topics, X, [True, False], shadows, gamma=0.5)


def test_quantile_regression_finds_members_of_an_exact_table():
    """Over 41 seeds the area is 0.967 with deviation 0.025, and 0.88 at least."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.multinomial(20, rng.dirichlet(np.ones(2000)), 400).astype(np.int32))
    asked, reference, members = X[:200], X[200:], np.arange(200) < 100
    table = Counter().fit(asked[members]).components_
    attack = quantile_attack(table, asked, members, reference)
    assert attack.auc > 0.8 and attack.name == "quantile regression"
    with pytest.raises(ValueError, match="at least 20"):
        quantile_attack(table, asked, members, reference[:5])


def test_an_experiment_has_every_attack_and_an_interval_over_repetitions(rare):
    options = {"n_models": 4, "repetitions": 3, "thresholds": (), "random_state": 0}
    results = membership_experiment(Counter(), rare, attacks=("online", "bayesian", "relative"), **options)
    assert {"LiRA online (zeta)", "Bayesian ratio (zeta)", "relative online"} <= set(results)
    at, inside = results.tpr_at("Bayesian ratio (zeta)", 0.1), results["Bayesian ratio (zeta)"].tpr_at(0.1)
    assert at.rate == inside.rate and at.low <= at.rate <= at.high
    assert at == results.tpr_at("Bayesian ratio (zeta)", 0.1)
    with pytest.raises(ValueError, match="repetitions"):
        membership_experiment(Counter(), rare, n_models=4, random_state=0).tpr_at("LiRA online (zeta)", 0.1)
    with pytest.raises(ValueError, match="attacks"):
        membership_experiment(Counter(), rare, attacks=("LiRA",), **options)


def test_shadow_models_may_take_the_words_of_the_target(rare):
    """The target keeps some words; shadow models then are the last step alone, on those words."""
    seen = []

    class Words(BaseEstimator):
        def fit(self, X, y=None):
            self.kept_ = np.flatnonzero(np.asarray(X.sum(axis=0)) > 3)
            return self

        def transform(self, X):
            return X[:, self.kept_]

    def topics(pipeline):
        table = np.zeros((1, rare.shape[1]))
        table[:, pipeline[0].kept_] = pipeline[-1].components_
        return table

    def callback(members, documents, table, shadows):
        seen.append((documents.shape[1], int((np.asarray(rare[members].sum(axis=0)) > 3).sum()), table.shape[1]))

    options = {"n_models": 4, "vocabulary": "given", "topic_word": topics, "thresholds": (), "random_state": 0}
    membership_experiment(make_pipeline(Words(), Counter()), rare, selection="target", callback=callback, **options)
    assert len(set(seen[0])) == 1 and seen[0][0] < rare.shape[1]
    with pytest.raises(ValueError, match="selection"):
        membership_experiment(Counter(), rare, selection="target", n_models=4)
