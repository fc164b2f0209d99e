"""The topic-based attack: what it computes, and that it finds the words of a trace."""

from types import SimpleNamespace

import numpy as np
import pytest

from skdplda import HDPLDA, PrivateCGSLDA
from skdplda.attacks import TopicTraceAttack
from skdplda.datasets import make_lda_corpus
from skdplda.published import CDPLDAPlus, InherentPrivacyLDA, PriTopLDA, PublishedHDPLDA


def small_trace():
    rng = np.random.default_rng(0)
    return SimpleNamespace(topics=rng.integers(3, size=(4, 5)), tables=rng.poisson(3, size=(5, 3, 6)) - 1.0)


def test_the_papers_rule_is_equation_24():
    trace = small_trace()
    attack = TopicTraceAttack.of_trace(trace, smoothing=0.5)
    assert attack.n_sweeps_ == 4
    for i in range(5):
        product = np.ones(6)
        for t in range(4):
            row = np.maximum(trace.tables[t, trace.topics[t, i]], 0) + 0.5
            product *= row / row.sum()
        np.testing.assert_allclose(attack.posterior()[i], product / product.sum())


def test_the_other_rule_is_naive_bayes():
    trace = small_trace()
    tables = np.maximum(trace.tables[:4], 0) + 0.01
    prior = tables.sum(axis=(0, 1))
    attack = TopicTraceAttack.of_trace(trace, tokens=[3], rule="bayes")
    product = prior * np.prod([t[k] / t.sum(axis=0) for t, k in zip(tables, trace.topics[:, 3], strict=True)], axis=0)
    np.testing.assert_allclose(attack.posterior()[0], product / product.sum())


def test_before_the_first_sweep_all_words_are_alike():
    for rule in ("paper", "bayes"):
        attack = TopicTraceAttack(2, 4, rule)
        np.testing.assert_allclose(attack.posterior(), 0.25)
        assert attack.success([0, 1]) == {"probability": 0.25, "first": 0.0, "rank": 2.5}


@pytest.mark.parametrize(
    "estimator",
    [
        InherentPrivacyLDA(20),
        CDPLDAPlus(20, epsilon=10.0),
        PublishedHDPLDA(20, noise_epsilon=10.0, inherent_epsilon=20.0),
        HDPLDA(20, epsilon=np.inf),
        HDPLDA(20, epsilon=5.0),
    ],
)
@pytest.mark.filterwarnings("error")
def test_it_reads_words_off_topics_unless_their_draws_are_bounded(estimator):
    """The bounded reads 0.29 of the words (of one corpus, over 11 seeds, with deviation 0.043), others 0.83 or more.

    Their deviations are 0.044 at most; by the rule of Bayes their probability is larger by 0.19 or more (0.052).
    """
    found, most_frequent = {"paper": [], "bayes": []}, []
    for seed in range(3):
        X = make_lda_corpus(150, 40, 5, random_state=seed).data
        estimator.set_params(random_state=seed, doc_topic_prior=1.0, max_iter=60)
        trace, words = estimator.audit_trace(X)
        assert not hasattr(estimator, "components_")
        np.testing.assert_array_equal(np.bincount(words, minlength=40), X.sum(axis=0).A1)
        for rule, successes in found.items():
            success = TopicTraceAttack.of_trace(trace, rule=rule).success(words)
            successes.append([success["first"], success["probability"]])
        most_frequent.append(np.bincount(words).max() / len(words))
    paper, bayes = (np.mean(successes, axis=0) for successes in found.values())
    if isinstance(estimator, HDPLDA) and estimator.epsilon == 5.0:
        assert bayes[0] < 0.45
        return
    assert paper[0] > 1.2 * np.mean(most_frequent)
    assert bayes[0] > 0.6
    assert bayes[1] > paper[1]


@pytest.mark.parametrize("estimator", [PrivateCGSLDA(), PriTopLDA()])
def test_forms_that_release_no_topics_have_no_trace(estimator):
    assert not hasattr(estimator, "audit_trace")


def test_parameters_of_the_estimator_are_checked():
    with pytest.raises(ValueError, match="'epsilon' parameter of HDPLDA"):
        HDPLDA(epsilon=-4).audit_trace(np.ones((3, 4), int))


@pytest.mark.parametrize(
    ("table", "topics", "message"),
    [
        (np.ones((2, 3)), [0, 0], "4 columns"),
        (np.ones((2, 4)), [0], "2 integers"),
        (np.ones((2, 4)), [0.0, 1.0], "2 integers"),
        (np.ones((2, 4)), [0, 2], "from 0 to 1"),
        (np.full((2, 4), np.nan), [0, 1], "table must be finite"),
    ],
)
def test_sweeps_that_do_not_fit_are_refused(table, topics, message):
    with pytest.raises(ValueError, match=message):
        TopicTraceAttack(2, 4).observe(table, np.array(topics))


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="rule must be one of"):
        TopicTraceAttack(1, 2, rule="magic")
    with pytest.raises(ValueError, match="smoothing must be > 0"):
        TopicTraceAttack(1, 2, smoothing=0)
    for wrong in (0, 2.5, "2"):
        with pytest.raises(ValueError, match="n_tokens must be an integer of at least 1"):
            TopicTraceAttack(wrong, 2)
    for wrong in ([-1, 0], [0, 4], [0.0, 1.0]):
        with pytest.raises(ValueError, match="words must be integers from 0 to 3"):
            TopicTraceAttack(2, 4).success(wrong)
    for wrong in ([], [0.5], [True], [5], [-1]):
        with pytest.raises(ValueError, match="tokens must be"):
            TopicTraceAttack.of_trace(small_trace(), tokens=wrong)
    with pytest.raises(ValueError, match="words must have shape"):
        TopicTraceAttack(2, 4).success([1])
