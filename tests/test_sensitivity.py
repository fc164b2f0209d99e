"""Contribution bounding: the weights of units, and what is left of long documents."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from internals import MOST_TOKENS, bounded_by_kernel, check_groups, shortened, unit_weights
from random_units import counts_of, norm, random_corpus

from skdplda.rounds import NORM_BOUND, Contributions


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
            assert (
                norm(words * weight[rows[0]], order) <= NORM_BOUND**order
            )  # all tokens of a word in one topic: the worst
            topics = rng.multinomial(words, [0.2, 0.3, 0.5]) * weight[rows[0]]
            assert norm(topics, order) <= NORM_BOUND**order
            more = words * (weight[rows[0]] + 1)  # not less than it may be, but for the rounding
            assert norm(more, order) > (NORM_BOUND * (1 - 1e-6)) ** order or not words.any()


def test_a_unit_that_is_too_large_contributes_nothing():
    X = counts_of(np.array([[2**30, 5], [1, 0]]))
    assert unit_weights(X, check_groups(None, 2), 1).tolist() == [0, NORM_BOUND - 1]


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


HOSTILE = np.array([0, 1, -1, 0.3, 1e-300, 1e300, -1e300, 2.0**63, -(2.0**63), 2.0**20, 2.0**20 + 1, np.nan, np.inf])


def parts_of(rng, n_units=4):
    """Return random values of units, places that come twice, and the unit of each."""
    n, m = int(rng.integers(0, 12)), int(rng.integers(1, 4))
    values = (
        rng.choice(HOSTILE, (n, m)) if rng.random() < 0.5 else rng.normal(size=(n, m)) * 10.0 ** rng.integers(-3, 9)
    )
    if rng.random() < 0.3:
        values = np.clip(np.nan_to_num(values), -(2.0**62), 2.0**62).astype(np.int64)
    return values, rng.integers(0, 5, n), rng.integers(0, n_units, n)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of values that are no numbers
@pytest.mark.parametrize(("add", "order"), [("add_scaled", 2), ("add_whole", 2), ("add_whole", 1), ("add_rows", 2)])
def test_contributions_are_bounded_whatever_units_give(add, order):
    """Each unit adds at most the bound, the same beside any others, in whole numbers; and the bound is met."""
    rng, largest = np.random.default_rng(0), 0.0

    def total(*parts):
        sums = Contributions((5, parts[0].shape[1]), order)
        if add == "add_rows":
            rows = np.zeros((4, 5, parts[0].shape[1]))
            with np.errstate(all="ignore"):
                np.add.at(rows, (parts[2], parts[1]), parts[0])
            sums.add_rows(rows, np.array([1, 2, 3, 1]))
        else:
            getattr(sums, add)(*parts, 4)
        return sums.bounded().total.astype(object)

    for _ in range(500):
        values, place, unit = parts_of(rng)
        alone = [total(values[unit == u], place[unit == u], unit[unit == u]) for u in range(4)]
        assert (total(values, place, unit) == sum(alone)).all()
        for u, added in enumerate(alone):
            size = (np.abs(added) ** order).sum() * ((1, 2, 3, 1)[u] ** order if add == "add_rows" else 1)
            assert size <= NORM_BOUND**order
            largest = max(largest, size / NORM_BOUND**order)
    assert largest > 0.99


def test_contributions_refuse_places_and_units_that_there_are_not():
    sums, one = Contributions((5, 2)), np.ones((1, 2))
    for place, unit, said in [(5, 0, "place"), (-1, 0, "place"), (0, 3, "unit"), (0, -1, "unit")]:
        with pytest.raises(ValueError, match=f"{said} must have a number below"):
            sums.add_scaled(one, np.array([place]), np.array([unit]), 3)
    with pytest.raises(ValueError, match="must have a number below 5 for each of the 1 values"):
        sums.add_whole(one, np.array([0, 1]), np.array([0]), 3)
    with pytest.raises(ValueError, match="scaled in the L2 norm"):
        Contributions((5, 2), norm=1).add_scaled(one, np.array([0]), np.array([0]), 1)
    with pytest.raises(ValueError, match="norm must be 1 or 2; got None"):
        Contributions((5,), None)
    assert not sums.bounded().total.any()


def test_numbers_of_units_and_places_do_not_wrap_around():
    """Two units whose keys are equal in 32 bits are two, and each gets to its own bound."""
    unit = np.array([0, 2**12], np.int32)
    sums = Contributions((2**20, 1))
    sums.add_scaled(np.array([[3.0], [4.0]]), np.array([7, 7], np.int32), unit, 2**12 + 1)
    assert sums.bounded().total[7, 0] == 2 * (NORM_BOUND - 1)


@pytest.mark.parametrize("n_parts", [0, -3, 0.5, np.nan, np.array([0.0])])
def test_no_number_of_documents_makes_a_row_larger(n_parts):
    sums = Contributions((1, 1))
    sums.add_rows(np.array([[2.0 * NORM_BOUND]]), n_parts)
    assert not sums.bounded().total.any()


def test_a_unit_in_two_calls_is_refused():
    sums, one, zero = Contributions((1, 1)), np.ones((1, 1)), np.zeros(1, int)
    sums.add_scaled(one, zero, np.array([1]), 3)
    sums.add_scaled(np.ones((0, 1)), np.zeros(0, int), np.zeros(0, int), 3)
    for again in (np.array([1]), np.array([2, 1])):
        with pytest.raises(ValueError, match="unit must be above 1, the largest of the calls before; got 1"):
            sums.add_scaled(np.ones((len(again), 1)), 0 * again, again, 3)
    for add in (lambda: sums.add_whole(one, zero, zero, 3), lambda: sums.add_rows(one)):
        with pytest.raises(ValueError, match=r"must not follow add_scaled: what a unit gives to both"):
            add()
    sums.add_scaled(one, zero, np.array([2]), 3)
    assert sums.bounded().total[0, 0] == 2 * (NORM_BOUND - 1)


def test_no_array_behind_a_sum_of_kernels_can_be_written_to():
    owner = np.zeros((4, 3), np.int64)
    foreign = np.frombuffer(bytearray(96), np.int64)
    for total in (owner, owner.T, foreign, np.asarray(memoryview(bytearray(96)).cast("q"))):
        made = bounded_by_kernel(total, 2, 1)
        found = made.total
        with pytest.raises(ValueError, match="WRITEABLE"):
            found.flags.writeable = True
        with pytest.raises(ValueError, match="WRITEABLE"):
            found.base.flags.writeable = True
        with warnings.catch_warnings():  # of NumPy 2.5, which is to forbid it
            warnings.simplefilter("ignore", DeprecationWarning)
            found.dtype = float  # of this view alone
        assert made.total.dtype == np.int64
    owner[:] = 7
    assert not bounded_by_kernel(np.zeros((4, 3), np.int64), 2, 1).total.any() and not made.total.any()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_sums_in_the_making_are_not_copied(duplicate):
    """A copy shares the sum, and does not know of the units that the other has added."""
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        duplicate(Contributions((2, 1)))


def test_what_is_bounded_is_not_added_to():
    sums, one = Contributions((1, 1)), np.ones((1, 1))
    found = sums.bounded()
    nothing = np.zeros(1, int)
    for add in (
        lambda: sums.add_rows(one),
        lambda: sums.add_whole(one, nothing, nothing, 1),
        lambda: sums.add_scaled(one, nothing, nothing, 1),
        sums.bounded,
    ):
        with pytest.raises(RuntimeError, match="summed already"):
            add()
    assert not found.total.any()


def test_a_sum_of_kernels_is_refused_if_so_many_units_cannot_make_it():
    """The root mean square of three units' norms, at most three bounds together."""
    total = np.array([3 * NORM_BOUND, 0])
    assert bounded_by_kernel(total, 2, 3).norm == 2 and bounded_by_kernel(total, 1, 3).norm == 1
    for wrong, order in ((total, 2), (total, 1), (np.array([2 * NORM_BOUND] * 2), 1)):
        with pytest.raises(RuntimeError, match="beyond what its units may add"):
            bounded_by_kernel(wrong, order, 2 if wrong is total else 3)
    assert bounded_by_kernel(np.array([2 * NORM_BOUND] * 2), 2, 3).bound == NORM_BOUND
    with pytest.raises(TypeError, match="must be of int64; got float64"):
        bounded_by_kernel(total / 1.0, 2, 3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_rows_of_any_precision_add_up_exactly(dtype):
    """2**24 + 1 is no float32, and twice 40,000 no float16: where sums were so rounded, a unit moved them by others."""
    n, value = (2, 40_000) if dtype is np.float16 else (2**10 + 1, 2**14 + 1)
    sums = Contributions((1,))
    sums.add_rows(np.full((n, 1), value).astype(dtype))
    assert sums.bounded().total[0] == n * int(np.array(value).astype(dtype))


@pytest.mark.filterwarnings("error")
def test_bounded_sums_do_not_warn_of_what_units_hold():
    values, place, unit = np.array([np.nan, 1e308, 1e308, np.inf, -np.inf]), np.array([0, 1, 1, 2, 2]), np.zeros(5, int)
    for add in (Contributions((3,)).add_scaled, Contributions((3,)).add_whole):
        add(values, place, unit, 1)
    Contributions((3,)).add_rows(np.array([[1e300, np.nan, np.inf]]))
