"""Contribution bounding: the weights of units, and what is left of long documents."""

import numpy as np
import pytest
from random_units import counts_of, norm, random_corpus

from skdplda._validation import check_groups
from skdplda.rounds._bounds import GRID, MOST_TOKENS, shortened, unit_weights


@pytest.mark.parametrize("order", [1, 2])
def test_no_unit_contributes_more_than_the_grid(order):
    rng = np.random.default_rng(order)
    for _ in range(300):
        X, groups = random_corpus(rng)
        start, documents = units = check_groups(groups, len(X))
        weight = unit_weights(counts_of(X), units, order).astype(int)
        for unit in range(len(start) - 1):
            rows = documents[start[unit] : start[unit + 1]]
            words = X[rows].sum(axis=0).astype(int)
            assert len(set(weight[rows])) == 1
            assert norm(words * weight[rows[0]], order) <= GRID**order  # all tokens of a word in one topic: the worst
            topics = rng.multinomial(words, [0.2, 0.3, 0.5]) * weight[rows[0]]
            assert norm(topics, order) <= GRID**order
            more = words * (weight[rows[0]] + 1)  # not less than it may be, but for the rounding
            assert norm(more, order) > (GRID * (1 - 1e-6)) ** order or not words.any()


def test_a_unit_that_is_too_large_contributes_nothing():
    X = counts_of(np.array([[2**30, 5], [1, 0]]))
    assert unit_weights(X, check_groups(None, 2), 1).tolist() == [0, GRID - 1]


@pytest.mark.parametrize("order", [1, 2])
def test_units_of_one_document_each_have_their_own_weights_in_any_order(order):
    X = counts_of(np.array([[1, 0], [100, 0], [10, 0]]))
    units = check_groups(["c", "a", "b"], 3)
    np.testing.assert_array_equal(unit_weights(X, units, order), unit_weights(X, check_groups(None, 3), order))


def test_what_is_left_of_a_long_document_is_its_own():
    """The same, whatever other documents there are; the public number of tokens; no count grows."""
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 2**31, 40), rng.integers(0, 3, 40), np.full(40, 2**31 - 1), rng.integers(0, 2**17, 40)]
    alone = [shortened(counts_of(row[None])).toarray()[0] for row in rows]
    together = shortened(counts_of(np.array(rows))).toarray()
    np.testing.assert_array_equal(together, alone)
    for row, left in zip(rows, together, strict=True):
        assert left.sum() == min(row.sum(), MOST_TOKENS)
        assert (left <= row).all() and (left >= 0).all()
        np.testing.assert_allclose(left, row * min(1, MOST_TOKENS / row.sum()), atol=1)
    short = counts_of(rows[1][None])
    assert shortened(short) is short
