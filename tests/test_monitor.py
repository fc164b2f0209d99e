"""The monitor's formulas and the paper's bounds against brute force, and why its number bounds nothing."""

import dataclasses
from itertools import product

import numpy as np
import pytest
from draw_losses import exact_draw_loss, monitor_draw

from skdplda.privacy import InherentPrivacyHistory


def conditional(words, docs, topics, i, n_topics, n_words, alpha, beta, removed=None):
    """Return p(z_i | the other assignments), counted from scratch."""
    others = [j for j in range(len(words)) if j not in (i, removed)]
    z, same_word, same_doc = topics[others], words[others] == words[i], docs[others] == docs[i]
    word = np.bincount(z[same_word], minlength=n_topics)
    doc = np.bincount(z[same_doc], minlength=n_topics)
    p = (word + beta) / (np.bincount(z, minlength=n_topics) + n_words * beta) * (doc + alpha)
    return p / p.sum()


@pytest.mark.parametrize("n_removed", [1, 5, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_monitor_draw_searches_every_partition_of_the_paper(n_removed, seed):
    rng = np.random.default_rng(seed)
    n_topics, n_words, alpha, beta = 6, 40, 0.1, 0.01
    word, doc = rng.integers(0, 4, size=(2, n_topics))
    topic = np.maximum(word, doc) + rng.integers(0, 20, size=n_topics)
    r = (word + beta) / (topic + n_words * beta) * (doc + alpha)
    worst = 0.0
    for k in range(n_topics):  # all tokens of the difference in topic k
        smaller = topic.copy()
        smaller[k] -= min(n_removed, topic[k])
        s = (word + beta) / (smaller + n_words * beta) * (doc + alpha)
        worst = max(worst, 2 * np.abs(np.log(s / s.sum() * r.sum() / r)).max())
    epsilon = monitor_draw(word, topic, doc, n_removed, alpha, beta, n_words)
    assert np.isfinite(epsilon)
    assert epsilon == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_exact_draw_loss_is_the_worst_over_all_tokens_that_may_go(seed):
    rng = np.random.default_rng(seed)
    n_topics, n_words, alpha, beta, n_tokens = 3, 4, np.array([0.1, 0.5, 2.0]), 0.05, 12
    words, docs = rng.integers(n_words, size=n_tokens), rng.integers(3, size=n_tokens)
    topics = rng.integers(n_topics, size=n_tokens)
    for i in range(n_tokens):
        other = np.arange(n_tokens) != i
        word, doc = other & (words == words[i]), other & (docs == docs[i])
        counts = [np.bincount(topics[mask], minlength=n_topics) for mask in (word, other, doc, word & doc)]
        p = conditional(words, docs, topics, i, n_topics, n_words, alpha, beta)
        worst = max(
            np.abs(np.log(conditional(words, docs, topics, i, n_topics, n_words, alpha, beta, j) / p)).max()
            for j in np.flatnonzero(other)
        )
        loss = exact_draw_loss(*counts[:3], alpha, beta, n_words, twin_counts=counts[3])
        assert loss == pytest.approx(worst, rel=1e-12)


def test_exact_draw_loss_approaches_its_limits():
    only_type = exact_draw_loss([1, 0], [10**9, 10**9], [0, 10**9], 0.1, 0.01, 1)
    assert only_type == pytest.approx(np.log(1 + 1 / 0.01), rel=1e-6)
    twin = exact_draw_loss([1, 10**9], [10**9, 10**9], [1, 10**9], 0.1, 0.01, 1, twin_counts=[1, 0])
    assert twin == pytest.approx(np.log(1 + 1 / 0.01) + np.log(1 + 1 / 0.1), rel=1e-6)


def test_a_single_token_loses_nothing():
    assert exact_draw_loss([0, 0], [0, 0], [0, 0], 0.1, 0.5, 2) == 0
    assert monitor_draw([0, 0], [0, 0], [0, 0], 1, 0.1, 0.5, 2) == 0


@pytest.mark.parametrize(
    ("docs", "expected_monitor", "expected_loss"),
    [(np.zeros(12, dtype=int), 0.0196, 7.716), (np.arange(12), 0.0179, 3.614)],
    ids=["one document", "one document a token"],
)
def test_the_monitor_is_not_a_bound(docs, expected_monitor, expected_loss):
    """One sweep over 12 tokens of one type, K=2, V=1000: all traces, with and without the first token."""
    n_tokens, n_words, alpha, beta = 12, 1000, 0.1, 0.1
    words, start = np.zeros(n_tokens, dtype=int), np.ones(n_tokens, dtype=int)
    # A trace is all assignments after the sweep. Walk the tree of its prefixes; all start at topic 1.
    log_p, log_q = np.zeros(1), np.zeros(1)
    epsilons = np.zeros(1)
    for i in range(n_tokens):
        next_p, next_q, next_epsilons = [], [], []
        for n, prefix in enumerate(product(range(2), repeat=i)):
            topics = np.concatenate([prefix, start[i:]]).astype(int)
            p = conditional(words, docs, topics, i, 2, n_words, alpha, beta)
            q = conditional(words, docs, topics, i, 2, n_words, alpha, beta, removed=0) if i else np.ones(2)
            rest = np.delete(topics, i)
            word = np.bincount(rest, minlength=2)
            doc = np.bincount(rest[np.delete(docs, i) == docs[i]], minlength=2)
            epsilon = max(epsilons[n], monitor_draw(word, word, doc, 1, alpha, beta, n_words))
            next_epsilons += [epsilon, epsilon]
            # The first token has no draw on the neighbour: its topic is given, not part of the loss.
            next_p += list(log_p[n] + np.log(p) * (i > 0))
            next_q += list(log_q[n] + np.log(q))
        log_p, log_q, epsilons = np.array(next_p), np.array(next_q), np.array(next_epsilons)
    loss = np.abs(log_p - log_q)
    assert np.logaddexp.reduce(log_p) == pytest.approx(np.log(2))  # for either topic of the first token
    assert loss.max() == pytest.approx(expected_loss, abs=1e-3)
    assert epsilons[loss.argmax()] == pytest.approx(expected_monitor, abs=1e-4)
    assert epsilons.max() < 0.03


def test_history_is_a_frozen_table():
    history = InherentPrivacyHistory([0.1, 0.2], [1, 2], [4.0, 4.5], [10.0, 20.0])
    frame = history.to_frame()
    assert list(frame.columns) == ["word_level", "document_level", "worst_draw", "sum_of_draws"]
    assert frame.index.name == "iteration"
    assert frame.index.tolist() == [1, 2]
    assert frame["document_level"].tolist() == [1.0, 2.0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        history.word_level = None
    with pytest.raises(ValueError, match="read-only"):
        history.word_level[0] = 0


def test_history_refuses_arrays_of_different_length():
    with pytest.raises(ValueError, match=r"worst_draw has shape \(1,\)"):
        InherentPrivacyHistory([0.1, 0.2], [1, 2], [4.0], [10.0, 20.0])


def replaced_draw_loss(word_counts, other_counts, beta):
    """Proposition 1, equation (4), of Zhao et al. (2021), for the token whose word is replaced; counts are by topic."""
    return 2 * np.abs(np.log((other_counts + beta) / (word_counts + beta))).max()


def related_draw_loss(beta):
    """Proposition 2, as printed, for other tokens of the two words."""
    return 2 * np.log1p(1 / beta)


def sweep_loss(totals, beta, largest=None):
    """Theorem 1, equation (5): all draws of a sweep, by replaced word; `largest` bounds counts in a topic."""
    totals = np.asarray(totals, dtype=float)
    largest = totals.max() if largest is None else largest
    others = np.array([np.delete(totals, word).max(initial=0.0) for word in range(len(totals))])
    bound = 2 * np.log1p(largest / beta) + related_draw_loss(beta) * (others + totals - 1)
    return np.where(totals > 0, bound, 0.0)


def composed_loss(losses):
    """Theorem 2, equation (6): all sweeps."""
    return np.sum(losses, axis=0).max()


def counts_of(words, topics, word, n_topics, i):
    """Return how many tokens of a word, without token i, are in each topic."""
    mask = (words == word) & (np.arange(len(words)) != i)
    return np.bincount(topics[mask], minlength=n_topics)


@pytest.mark.parametrize("seed", range(6))
def test_the_losses_of_single_draws_are_within_propositions_1_and_2(seed):
    """Every token of a random corpus, replaced by every other word; every draw."""
    rng = np.random.default_rng(seed)
    n_topics, n_words, n_tokens = 3, 4, 14
    alpha, beta = rng.uniform(0.05, 2.0, 2)
    words, docs = rng.integers(n_words, size=n_tokens), rng.integers(3, size=n_tokens)
    topics = rng.integers(n_topics, size=n_tokens)
    tightest = 0.0
    for replaced, other in product(range(n_tokens), range(n_words)):
        if other == words[replaced]:
            continue
        neighbour = words.copy()
        neighbour[replaced] = other
        for i in range(n_tokens):
            p, q = (conditional(w, docs, topics, i, n_topics, n_words, alpha, beta) for w in (words, neighbour))
            loss = np.abs(np.log(p / q)).max()
            if i == replaced:
                counts = [counts_of(words, topics, word, n_topics, i) for word in (words[i], other)]
                bound = replaced_draw_loss(*counts, beta)
                tightest = max(tightest, loss / bound if bound else 0.0)
            elif words[i] in (words[replaced], other):
                bound = related_draw_loss(beta) / 2  # half of what is printed
            else:
                bound = 0.0
            assert loss <= bound + 1e-12
    assert 0.3 < tightest <= 1


def trace_losses(words, neighbour, docs, n_topics, n_words, alpha, beta, n_sweeps=1):
    """Return |ln p/q| of every trace of some sweeps; all start at topic 0."""
    n_tokens, found = len(words), []
    for trace in product(range(n_topics), repeat=n_tokens * n_sweeps):
        topics, loss = np.zeros(n_tokens, dtype=int), 0.0
        for step, topic in enumerate(trace):
            i = step % n_tokens
            p, q = (conditional(w, docs, topics, i, n_topics, n_words, alpha, beta) for w in (words, neighbour))
            loss += np.log(p[topic] / q[topic])
            topics[i] = topic
        found.append(abs(loss))
    return np.array(found)


@pytest.mark.parametrize(("n_tokens", "n_sweeps"), [(5, 1), (3, 2)])
def test_the_loss_of_every_trace_is_within_theorems_1_and_2(n_tokens, n_sweeps):
    n_words, alpha, beta = 3, 0.5, 0.2
    rng = np.random.default_rng(n_tokens)
    words, docs = rng.integers(n_words, size=n_tokens), np.arange(n_tokens) % 2
    bounds = sweep_loss(np.bincount(words, minlength=n_words), beta)
    worst = 0.0
    for replaced, other in product(range(n_tokens), range(n_words)):
        if other != words[replaced]:
            neighbour = words.copy()
            neighbour[replaced] = other
            losses = trace_losses(words, neighbour, docs, 2, n_words, alpha, beta, n_sweeps)
            assert losses.max() <= n_sweeps * bounds[words[replaced]]
            worst = max(worst, losses.max())
    assert 0.1 * composed_loss([bounds] * n_sweeps) < worst <= composed_loss([bounds] * n_sweeps)


def test_equation_5_as_printed():
    totals, beta, clip = np.array([7.0, 4.0, 1.0, 0.0]), 0.5, 3.0
    found = sweep_loss(totals, beta, largest=clip)
    for word, total in enumerate(totals):
        other = np.delete(totals, word).max()
        printed = 2 * (np.log(clip / beta + 1) + (other + total - 1) * np.log(1 + 1 / beta))
        assert found[word] == pytest.approx(printed if total else 0.0, rel=1e-14)
    assert (sweep_loss(totals, beta) >= found).all()
    assert composed_loss([found, 2 * found]) == pytest.approx(3 * found.max())


def test_a_word_that_is_gone_loses_more_than_a_replaced_one():
    """Eight words of one document, each once: the theorem has at most two draws that change, removal changes all."""
    n_tokens, alpha, beta = 8, 0.01, 1.0
    words, docs = np.arange(n_tokens), np.zeros(n_tokens, dtype=int)
    bound = sweep_loss(np.ones(n_tokens), beta)[0]
    worst = 0.0
    for trace in product(range(2), repeat=n_tokens):
        topics, loss = np.arange(n_tokens) % 2, 0.0
        for i in range(n_tokens):
            p, q = (conditional(words, docs, topics, i, 2, n_tokens, alpha, beta, removed) for removed in (None, 0))
            loss += np.log(p[trace[i]] / q[trace[i]]) * (i > 0)  # the removed token has no draw on the neighbour
            topics[i] = trace[i]
        worst = max(worst, abs(loss))
    assert worst > 1.4 * bound
