"""The kernel of released draws against its reference, word by word of the key stream."""

import numpy as np
import pytest
from internals import count_topics, keystream, order_tokens, released_sweep
from scipy import stats

KEY = np.arange(8, dtype=np.uint32) * 0x9E3779B9


def below(words, n):
    """Return a uniform integer below n and the number of words taken, by exact multiplication and rejection."""
    for taken, word in enumerate(words, start=1):
        product = int(word) * n
        if product % 2**64 >= 2**64 % n:
            return product >> 64, taken
    raise AssertionError("the stream is too short")


def factors(counts, rate, alpha, n_tokens, most, n_topics):
    """Return the document's part of the weights, given the counts of its other tokens."""
    bits = min(32, 62 - int(most).bit_length() - int(n_topics - 1).bit_length())
    scale = rate * ((2.0**bits - 1) / np.max(rate * (alpha + n_tokens)))
    return np.maximum(1, np.floor((counts + alpha) * scale)).astype(np.uint64)


def reference(starts, words, topics, table, alpha, rate, most, key, sweep):
    topics = topics.copy()
    for d in range(len(starts) - 1):
        stream = keystream(key, sweep, d, 0).T.ravel().astype(np.uint64)
        stream = stream[1::2] << np.uint64(32) | stream[::2]
        document = slice(starts[d], starts[d + 1])
        counts = np.zeros(len(alpha))
        if sweep > 1:
            counts += np.bincount(topics[document], minlength=len(alpha))
        for i in range(starts[d], starts[d + 1]):
            if sweep > 1:
                counts[topics[i]] -= 1
            n_tokens = starts[d + 1] - starts[d]
            weights = table[words[i]] * factors(counts, rate, alpha, n_tokens, most, len(alpha))
            point, taken = below(stream, int(weights.sum()))
            stream = stream[taken:]
            topics[i] = np.searchsorted(np.cumsum(weights), point, side="right")
            counts[topics[i]] += 1
    return topics


def random_problem(seed, n_topics=5, n_words=7):
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 25, size=12))]).astype(np.int64)
    words = rng.integers(n_words, size=starts[-1]).astype(np.int32)
    topics = rng.integers(n_topics, size=starts[-1]).astype(np.uint16)
    most = 2 ** int(rng.integers(3, 30)) - 1
    table = rng.integers(1, most + 1, size=(n_words, n_topics)).astype(np.uint32)
    return starts, words, topics, table, rng.uniform(0.05, 2, n_topics), 1 / table.sum(axis=0, dtype=float), most


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sweep", [1, 2, 70_000])
def test_the_kernel_draws_what_the_reference_draws(seed, sweep):
    starts, words, topics, table, alpha, rate, most = random_problem(seed)
    expected = reference(starts, words, topics, table, alpha, rate, most, KEY, sweep)
    for n_threads in (1, 3):
        drawn = topics.copy()
        released_sweep(starts, words, drawn, table, alpha, rate, most, KEY, sweep, n_threads)
        np.testing.assert_array_equal(drawn, expected)


def test_the_first_sweep_does_not_read_topics():
    starts, words, topics, *rest = random_problem(1)
    one, other = topics.copy(), np.zeros_like(topics)
    for drawn in (one, other):
        released_sweep(starts, words, drawn, *rest, KEY, 1, 1)
    np.testing.assert_array_equal(one, other)


def test_many_topics_and_extreme_tables_do_not_overflow():
    starts, words = np.array([0, 3], np.int64), np.array([0, 1, 0], np.int32)
    most, n_topics = 2**30 - 1, 65_000
    table = np.ones((2, n_topics), np.uint32)
    table[0, 17] = table[1, 64_999] = most
    for rate in (np.ones(n_topics), np.geomspace(1e-30, 1e30, n_topics)):
        topics = np.zeros(3, np.uint16)
        released_sweep(starts, words, topics, table, np.full(n_topics, 0.1), rate, most, KEY, 1, 1)
        assert topics.max() < n_topics


def test_documents_without_tokens_change_no_draw():
    """They take a number, and so a stream, and nothing else; a corpus of them alone has no draws."""
    starts, words, topics, *rest = random_problem(1)
    drawn, more = topics.copy(), topics.copy()
    released_sweep(starts, words, drawn, *rest, KEY, 1, 1)
    released_sweep(np.append(starts, [starts[-1]] * 3), words, more, *rest, KEY, 1, 2)
    assert (drawn != topics).any()
    np.testing.assert_array_equal(more, drawn)
    empty, counts = np.zeros(0, np.uint16), np.ones((7, 5), np.int64)
    released_sweep(np.zeros(4, np.int64), np.zeros(0, np.int32), empty, *rest, KEY, 1, 2)
    count_topics(np.zeros(0, np.int32), empty, counts)
    assert not counts.any()


def test_orders_are_all_alike_and_stay_within_documents():
    n = 6000
    starts = np.arange(n + 1, dtype=np.int64) * 3
    words = np.tile(np.array([0, 1, 2], np.int32), n)
    order_tokens(starts, words, KEY)
    rows = words.reshape(n, 3)
    np.testing.assert_array_equal(np.sort(rows, axis=1), np.tile([0, 1, 2], (n, 1)))
    assert stats.chisquare(np.unique(rows @ [9, 3, 1], return_counts=True)[1]).pvalue > 1e-6


def test_counts():
    rng = np.random.default_rng(0)
    words, topics = rng.integers(7, size=500).astype(np.int32), rng.integers(3, size=500).astype(np.uint16)
    expected = np.zeros((7, 3), np.int64)
    np.add.at(expected, (words, topics), 1)
    counts = np.full((7, 3), 99)
    count_topics(words, topics, counts)
    np.testing.assert_array_equal(counts, expected)
