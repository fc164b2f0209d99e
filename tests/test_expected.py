"""The rounds of expected counts against numpy, bit for bit over threads, blocks and parts; and what they are for."""

import numpy as np
import pytest
from internals import LEAST_ALPHA, ExpectedTopics, expected_table, first_expected
from internals import cgs as _cgs
from internals import expected as _expected
from numpy.testing import assert_allclose, assert_array_equal
from random_units import counts_of
from test_gibbs import corpus
from test_listed import rounds

from skdplda import PrivateCGSLDA
from skdplda.datasets import make_lda_corpus


def drawn(X, K, seed=0):
    """Topics of all tokens, document by document."""
    return np.random.default_rng(seed).choice(K, X.sum(), p=np.arange(K, 0, -1) / (K * (K + 1) / 2)).astype(np.uint16)


def tables(K, V=80, seed=1):
    return (np.random.default_rng(seed).gamma(0.3, 9, (V, K))).astype(np.float32)


def started(documents, n_topics, topics, n_threads=1):
    step = ExpectedTopics(documents, n_topics, n_threads)
    step.start(topics)
    return step


@pytest.mark.parametrize("K", [1, 2, 7, 8, 40, 300])
def test_equivalent_to_numpy(K):
    X = corpus(60)
    documents, V = counts_of(X), X.shape[1]
    topics, table = drawn(X, K), tables(K)
    step = started(documents, K, topics)
    alpha, beta, n = np.random.default_rng(2).uniform(0.05, 1.5, K), 0.05, np.zeros((len(X), K))
    np.add.at(n, (np.repeat(np.arange(len(X)), X.sum(axis=1)), topics), 1)
    drawn_for = n > 0
    for _ in range(3):
        row = (table + beta) / (table.sum(axis=0) + V * beta)
        p = row[None] * (n + alpha)[:, None]
        p *= X[..., None] / p.sum(axis=2, keepdims=True)
        table = expected_table(step.collect(table, alpha, beta), table, alpha, beta)
        assert_allclose(table, p.sum(axis=0), rtol=6e-5, atol=3e-4)
        assert table.sum(dtype=float) == pytest.approx(X.sum(), rel=1e-5)
        n = p.sum(axis=1) * drawn_for


def test_counts_too_large_for_one_entry():
    X, table, alpha = np.array([[200_000, 0, 65_536], [900, 7_000, 65_535]]), tables(2, 3), np.full(2, 0.1)
    topics = np.concatenate([np.arange(n) % 2 for n in X.sum(axis=1)]).astype(np.uint16)
    sums = started(counts_of(X), 2, topics).collect(table, alpha, 0.01)
    row = (table + 0.01) / (table.sum(axis=0) + 0.03)
    n = np.array([np.bincount(t, minlength=2) for t in np.split(topics, [X[0].sum()])])
    of_prior = X.T * (row @ alpha)[:, None] / (row @ (n + alpha).T)  # (words, documents)
    assert_allclose(sums, np.hstack([of_prior @ n, of_prior.sum(axis=1, keepdims=True)]), rtol=1e-3)


@pytest.mark.parametrize("n_topics", [3, 40])
def test_no_alpha_loses_tokens(n_topics):
    """The grid of the sums has no digits for a smaller alpha than LEAST_ALPHA: then there are no such rounds."""
    X = corpus(400)
    for alpha in (1e-12, 1e-6, np.nextafter(LEAST_ALPHA, 0), LEAST_ALPHA):
        assert (first_expected(40, n_topics, np.array([1.0, alpha])) is None) == (alpha < LEAST_ALPHA)
        model = PrivateCGSLDA(n_topics, epsilon=np.inf, doc_topic_prior=alpha, topic_word_prior=1e-9, random_state=0)
        assert model.fit(X).components_.sum() == pytest.approx(X.sum(), rel=1e-3)


@pytest.mark.parametrize("K", [1, 40, 600])
def test_same_bits_for_threads_blocks_and_parts(K, monkeypatch):
    X = corpus()
    X[:14] = 0  # two blocks of 7 without a token
    topics, first, alpha, sums = drawn(X, K), tables(K), np.full(K, 0.1), []
    for size, n_threads, cuts in ((8192, 1, [300]), (7, 1, [300]), (50, 3, [300]), (8192, 2, [100, 101, 300])):
        monkeypatch.setattr(_expected, "BLOCK", size)
        starts = [0, *cuts[:-1]]
        ends = np.append(0, np.cumsum(X.sum(axis=1)))
        pairs = list(zip(starts, cuts, strict=True))
        parts = [started(counts_of(X[a:b]), K, topics[ends[a] : ends[b]], n_threads) for a, b in pairs]
        table = first.copy()
        for _ in range(3):
            total = sum(part.collect(table, alpha, 0.01) for part in parts)
            table = expected_table(total, table, alpha, 0.01)
        sums.append((total.copy(), table))
    for total, table in sums[1:]:
        assert_array_equal(total, sums[0][0])
        assert_array_equal(table, sums[0][1])


def test_the_next_table_takes_the_place_of_the_last_one():
    X, table, alpha = corpus(60), tables(30), np.full(30, 0.1)
    sums = started(counts_of(X), 30, drawn(X, 30)).collect(table, alpha, 0.01)
    expected_table(sums, table, alpha, 0.01)
    assert table.sum(dtype=float) == pytest.approx(X.sum(), rel=1e-5)


def test_a_word_without_a_token_has_none_expected():
    X, table, alpha = corpus(60), tables(30), np.full(30, 0.1)
    X[:, 5] = 0
    step = started(counts_of(X), 30, drawn(X, 30))
    for _ in range(2):
        sums = step.collect(table, alpha, 0.01)
        assert not sums[5].any()
        sums[5] = np.nan  # what is left of the last round must not come back


def test_a_resumed_run_goes_on():
    X, K, alpha = counts_of(corpus()), 30, np.full(30, 0.1)
    topics, table = drawn(corpus(), 30), tables(K)
    step, resumed = ExpectedTopics(X, K, 1), ExpectedTopics(X, K, 2)
    assert step.arrays() == {}
    step.start(topics)
    step.collect(table, alpha, 0.01)
    resumed.restore({"topics": topics, **step.arrays()})
    assert_array_equal(resumed.collect(table, alpha, 0.01), step.collect(table, alpha, 0.01))
    with pytest.raises(ValueError, match="same documents"):
        resumed.restore({"topics": topics, "expected": np.zeros(3, np.float32)})
    with pytest.raises(ValueError, match="one entry a token"):
        started(X, K, topics[1:])


@pytest.mark.parametrize(("n_rounds", "first"), [(1, None), (2, 1), (3, 2), (4, 3), (30, 22), (100, 92)])
def test_how_many_rounds(n_rounds, first):
    assert first_expected(n_rounds, 10, 0.1) == first
    assert first_expected(n_rounds, 5000, 0.1) == (first if n_rounds < 30 else n_rounds - 4)
    assert first_expected(n_rounds, 65520, 0.1) == (first and n_rounds - 1)
    assert first_expected(n_rounds, 65521, 0.1) is None


@pytest.mark.parametrize("most", [1500, 3])
def test_the_first_round_finds_topics_in_long_documents(most, monkeypatch):
    """From a table that is empty, or random, draws know a document's other tokens and nothing of its words.

    Lists that began from an empty one ended 3 % higher than dense states, which began from a random one. From documents
    as topics, a first round leaves 70 % of the cells here that one from an empty table does.
    """
    X = make_lda_corpus(1000, 2000, 60, mean_length=400, random_state=0).data
    monkeypatch.setattr(_cgs, "LISTED_TOPICS", most)
    model, seen = PrivateCGSLDA(200, epsilon=np.inf, max_iter=2, random_state=0), []
    model.set_params(callback=lambda report: seen.append((report.table > 0).sum())).fit(X)
    empty = rounds(X.toarray(), 200, n_rounds=1)[1][0][-1]
    assert seen[0] < 0.75 * empty
