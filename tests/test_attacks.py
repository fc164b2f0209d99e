"""The topic-based attack: what it computes, and that it finds the words of traces."""

from types import SimpleNamespace

import numpy as np
import pytest

from skdplda.attacks import TopicTraceAttack
from skdplda.datasets import make_lda_corpus
from skdplda.models._live import fit_live


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


@pytest.mark.parametrize("mechanism", ["hybrid", "laplace-every"])
def test_it_reads_words_off_the_topics_of_samplers_without_protection(mechanism):
    X = make_lda_corpus(150, 40, 5, random_state=0).data
    words = np.repeat(X.indices, X.data)
    attacks = {rule: TopicTraceAttack(len(words), 40, rule) for rule in ("paper", "bayes")}

    def observe(table, topics):
        for attack in attacks.values():
            attack.observe(table.T, topics)

    options = {"doc_topic_prior": 1.0, "topic_word_prior": 0.01, "max_iter": 100, "seed": 0, "observer": observe}
    fit_live(X, 20, mechanism=mechanism, epsilon=np.inf if mechanism == "hybrid" else 10.0, **options)
    most_frequent = np.bincount(words).max() / len(words)
    assert attacks["paper"].success(words)["first"] > 2 * most_frequent
    assert attacks["bayes"].success(words)["first"] > 0.5
    assert attacks["bayes"].success(words)["probability"] > attacks["paper"].success(words)["probability"]


@pytest.mark.parametrize(
    ("table", "topics", "message"),
    [
        (np.ones((2, 3)), [0, 0], "4 columns"),
        (np.ones((2, 4)), [0], "2 integers"),
        (np.ones((2, 4)), [0.0, 1.0], "2 integers"),
        (np.ones((2, 4)), [0, 2], "from 0 to 1"),
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
    with pytest.raises(ValueError, match="n_tokens must be at least 1"):
        TopicTraceAttack(0, 2)
    with pytest.raises(ValueError, match="words must have shape"):
        TopicTraceAttack(2, 4).success([1])
