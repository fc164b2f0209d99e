"""The sweeps from lists of topics against the exact law of a small document, and the lists against numpy."""

import itertools
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import shifted
from internals import ExactTables, ListedEStep, ListedTokens, annealed
from internals import cgs as _cgs
from numpy.testing import assert_array_equal
from random_units import counts_of
from test_gibbs import UNASSIGNED, assert_follows, corpus, law, places, tables

from skdplda import PrivateCGSLDA
from skdplda.privacy import Randomness
from skdplda.rounds import NoisePlan, TopicWordCounts


def tokens(X, K, **options):
    X = counts_of(X)
    return ListedTokens(X.indptr, X.indices, X.data, X.shape[1], K, **options)


def lists(table):
    table = sp.csr_array(table)
    return table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data.astype(np.int32)


@pytest.mark.parametrize("K, n_tokens", [(1, 2), (3, 3), (2, 4), (17, 2), (40, 2), (600, 1)])
def test_exact_law(K, n_tokens):
    """Many copies of one document are many draws from the law: first sweep, later sweep, and two sweeps."""
    D, beta, words = 40_000, 0.05, [1, 1, 1, 3]  # word by word
    words = words[-n_tokens:]
    rng = np.random.default_rng(K)
    alpha = rng.uniform(0.05, 1.5, K).astype(np.float32)
    table = tables(5, K, np.int32, seed=K)
    table[3, -1] = 1  # a count that the token itself may be all of
    b, exact = tokens(np.tile(np.bincount(words, minlength=5), (D, 1)), K), table.astype(float)
    b.sweep(*lists(table), alpha, beta, 1.0, 1, shifted(7), 0)
    nothing = [None] * n_tokens
    assert_follows(b.topics.reshape(D, -1), law(words, [UNASSIGNED] * n_tokens, nothing, exact, alpha, beta, 0.0))

    for start in ([int(np.argmax(table[w])) for w in words], [K - 1] * n_tokens):
        for self_count in (0.0, 1.0, 1e9):  # a self-count beyond the table's leaves beta
            b.set_topics(np.tile(np.array(start, np.uint16), D))
            b.sweep(*lists(table), alpha, beta, self_count, 1, shifted(8), 3)
            assert_follows(b.topics.reshape(D, -1), law(words, start, start, exact, alpha, beta, self_count))
    if K <= 17:
        b.set_topics(np.tile(np.array(start, np.uint16), D))
        b.sweep(*lists(table), alpha, beta, 1.0, 2, shifted(9), 3)
        once = law(words, start, start, exact, alpha, beta, 1.0)
        middle = itertools.product(range(K), repeat=n_tokens)
        twice = sum(once[z] * law(words, list(z), start, exact, alpha, beta, 1.0) for z in middle)
        assert_follows(b.topics.reshape(D, -1), twice)


def rounds(X, K, n_rounds=4, n_threads=1, sweeps=1, **options):
    b, alpha = tokens(X, K, n_threads=n_threads, **options), np.linspace(0.05, 0.4, K).astype(np.float32)
    table = b.sums(n_threads)
    for round_ in range(n_rounds):
        b.sweep(*table, alpha, 0.02, 1.0, sweeps, 5, round_, None, n_threads)
        table = b.sums(n_threads)
    return b, table


@pytest.mark.parametrize("K", [1, 40, 600, 2100])
@pytest.mark.parametrize("sweeps", [1, 3])
def test_same_bits_for_threads_and_blocks(K, sweeps):
    X = corpus()
    b, table = rounds(X, K, sweeps=sweeps)
    for n_threads, size in [(2, 0), (4, 0), (1, 7), (3, 50), (2, 1)]:
        other, other_table = rounds(X, K, n_threads=n_threads, sweeps=sweeps, block_documents=size)
        assert_array_equal(other.topics, b.topics)
        for mine, its in zip(table, other_table, strict=True):
            assert_array_equal(its, mine)


@pytest.mark.parametrize("K", [1, 40, 600, 2100])
def test_lists_are_the_sum(K):
    X = corpus()
    _, w, _ = places(X, 60_000)  # word by word
    b, table = rounds(X, K, n_threads=2, block_documents=64)
    expected = np.zeros((X.shape[1], K), int)
    np.add.at(expected, (w, b.topics), 1)
    for mine, its in zip(table, lists(expected), strict=True):
        assert_array_equal(mine, its)


def test_a_document_of_many_tokens_in_few_topics():
    X = np.array([[40_000, 3], [2, 1], [0, 0]])
    b, table = rounds(X, 3)
    assert table[2].sum() == X.sum()
    resumed = tokens(X, 3)
    resumed.set_topics(b.topics)
    for mine, its in zip(table, resumed.sums(), strict=True):
        assert_array_equal(its, mine)


@pytest.mark.parametrize("K", [1, 40, 600])
def test_documents_that_are_not_active_keep_their_topics(K):
    X = corpus()
    b, table = rounds(X, K, n_rounds=1)
    before, alpha = b.topics, np.full(K, 0.1, np.float32)
    b.sweep(*table, alpha, 0.02, 1.0, 1, 5, 1)
    after = b.topics
    for n_threads, size in [(1, 0), (2, 7)]:
        active = (np.arange(len(X)) % 3 == 1).astype(np.uint8)
        part = tokens(X, K, block_documents=size)
        part.set_topics(before)
        part.sweep(*table, alpha, 0.02, 1.0, 1, 5, 1, active, n_threads)
        assert_array_equal(part.topics, np.where(np.repeat(active, X.sum(axis=1)), after, before))


def test_errors():
    b, alpha = tokens(np.eye(3), 2), np.ones(2, np.float32)
    start, topics, counts = lists(np.ones((3, 2)))
    good = {"start": start, "topics": topics, "counts": counts, "alpha": alpha, "beta": 0.1, "self_count": 0.0}
    for change in [
        {"start": start[:-1]},
        {"start": start[::-1].copy()},
        {"start": np.array([0, 9, 0, 0]), "topics": topics[:0], "counts": counts[:0]},
        {"topics": topics + 1},
        {"topics": topics - 1},
        {"counts": counts - 1},
        {"counts": counts[1:]},
        {"alpha": alpha[:1]},
        {"alpha": 0 * alpha},
        {"beta": 0.0},
        {"self_count": -1.0},
        {"active": np.ones(2, np.uint8)},
    ]:
        with pytest.raises(ValueError):
            b.sweep(**{**good, **change}, n_sweeps=1, seed=0, round_=0)


def test_parts_of_a_corpus_draw_as_the_whole_and_a_resumed_run_goes_on():
    X, K, randomness = counts_of(corpus()), 900, Randomness(0)
    plan = NoisePlan.calibrate("gaussian", np.inf, 0.0, 6, 1.0)

    def step(documents, first):
        return ListedEStep(
            documents, n_topics=K, priors=lambda round_: annealed(np.full(K, 0.1), 0.01, K, round_, 6), n_sweeps=1,
            randomness=randomness, n_threads=1, first_document=first,
        )  # fmt: skip

    whole, parts = step(X, 0), [step(counts_of(X[:100].toarray()), 0), step(counts_of(X[100:].toarray()), 100)]
    table = ExactTables((X.shape[1], K), plan, lists=True)
    for round_ in range(6):
        if round_ == 4:
            again, resumed = ExactTables((X.shape[1], K), plan, lists=True), step(X, 0)
            again.restore(table.arrays())
            resumed.restore(whole.arrays())
            resumed._total()
            table, whole = again, resumed
        total = whole.collect(table.query(), round_, None)
        apart = sum(part.collect(TopicWordCounts(table.table), round_, None).toarray() for part in parts)
        assert_array_equal(total.toarray(), apart)
        table.update(apart if round_ % 2 else total, round_)
        if round_ == 2:
            kept = 0
        if round_ > 2:
            kept = kept + apart
    np.testing.assert_allclose(table.pseudo_counts(), kept / 3)


def test_the_estimator_lists_topics_where_there_are_many(monkeypatch):
    """The same topics are found either way, and the fitted model has the same total."""
    monkeypatch.setattr(_cgs, "LISTED_TOPICS", 3)
    X = np.kron(np.eye(4), np.ones((40, 6))).astype(int)
    # One fit in twelve mixes two topics; all of seven do with probability 3e-8.
    fits = [PrivateCGSLDA(4, epsilon=np.inf, max_iter=30, random_state=seed).fit(X) for seed in range(7)]
    model = min(fits, key=lambda fit: fit.perplexity(X))
    # Expected counts are rounded: over 20 seeds the total deviates by 0.0015.
    assert model.components_.sum() == pytest.approx(X.sum() + 4 * 24 * 0.01, abs=0.02)
    assert np.sort(model.topic_word_.reshape(4, 4, 6).sum(axis=2).max(axis=1)).min() > 0.95
    seen = []
    PrivateCGSLDA(4, epsilon=np.inf, max_iter=3, random_state=0, callback=lambda r: seen.append(r.table.sum())).fit(X)
    assert seen[:2] == [X.sum()] * 2 and seen[2] == pytest.approx(X.sum(), abs=0.02)


def test_rounds_of_expected_counts_follow_those_of_lists(monkeypatch, tmp_path):
    """A fit that goes on at any of its last rounds, on more threads, is the same."""
    monkeypatch.setattr(_cgs, "LISTED_TOPICS", 3)
    X, path = np.random.default_rng(0).poisson(0.7, (60, 12)), tmp_path / "fit.npz"
    options = {"epsilon": np.inf, "max_iter": 16, "random_state": 0}
    model = PrivateCGSLDA(6, **options).fit(X)
    assert model.components_.sum() == pytest.approx(X.sum() + 6 * 12 * 0.01, abs=1e-2)
    assert (model.components_ % 1 != 0.01).any()  # expected counts are no whole numbers

    def interrupt(last, report):
        if report.n_done == last:
            raise KeyboardInterrupt

    for last in range(11, 16):
        with pytest.raises(KeyboardInterrupt):
            PrivateCGSLDA(6, **options, checkpoint=path, callback=partial(interrupt, last)).fit(X)
        resumed = PrivateCGSLDA(6, **options, checkpoint=path, n_jobs=2).fit(X)
        assert_array_equal(resumed.components_, model.components_)


def test_what_the_self_count_takes_away_drowns_nothing():
    """A token that is all of its word's count, in a document full of its topic, beside a topic of hardly any weight."""
    K, n, D, beta = 33, 20_000, 400, 1e-8
    table, alpha = np.zeros((2, K), np.int32), np.full(K, 1e-9, np.float32)
    table[0] = n
    table[1, :17], alpha[[0, 16]] = 1, 5e-4
    weight = np.where(np.arange(K) == 0, beta, table[1] + beta) * (np.where(np.arange(K) == 0, n, 0) + alpha)
    weight /= table.sum(axis=0) + 2 * beta
    b = tokens(np.tile([n, 1], (D, 1)), K)
    b.set_topics(np.zeros(D * (n + 1), np.uint16))
    b.sweep(*lists(table), alpha, beta, 1.0, 1, shifted(1), 0)
    found = (b.topics.reshape(D, -1)[:, n] == 16).mean()
    expected = weight[16] / weight.sum()
    assert 0.5 < expected < 0.9  # what takes the other way is as likely
    assert abs(found - expected) < 5 * (expected * (1 - expected) / D) ** 0.5
