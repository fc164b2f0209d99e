"""The Gibbs E-step of the private loop: what it computes, reads and contributes."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import GibbsEStep, check_groups
from random_units import counts_of, norm, random_corpus

from skdplda.privacy import Randomness
from skdplda.rounds import NORM_BOUND, TopicWordCounts

ALPHA, BETA = np.array([0.4, 0.9]), 0.3


def gibbs_step(X, groups, order=2, n_sweeps=2, n_topics=2):
    X, randomness = counts_of(X), Randomness(0)
    alpha = np.resize(ALPHA, n_topics)
    return GibbsEStep(
        X, check_groups(groups, X.shape[0]), n_topics=n_topics, order=order, priors=lambda _: (alpha, BETA),
        n_sweeps=n_sweeps, randomness=randomness, n_threads=1,
    )  # fmt: skip


@pytest.mark.parametrize("n_topics", [2, 5, 17])
def test_the_e_step_reads_the_table_only(n_topics):
    """What lies behind the table in memory must not matter, not even if it is no number."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(1.0, size=(30, 8)).astype(np.int32))
    values = rng.gamma(0.5, 4.0, size=(8, n_topics)).astype(np.float32)
    sums = []
    for behind in (0.0, np.nan, np.inf):
        memory = np.full(values.size + 64, behind, np.float32)
        memory[: values.size] = values.ravel()
        step = gibbs_step(X, None, n_topics=n_topics)
        sums.append(step.collect(TopicWordCounts(memory[: values.size].reshape(values.shape)), 0, None).total.copy())
    np.testing.assert_array_equal(sums[1], sums[0])
    np.testing.assert_array_equal(sums[2], sums[0])


@pytest.mark.parametrize("order", [1, 2])
def test_removing_the_last_unit_changes_each_sum_by_the_grid_at_most(order):
    """Streams are keyed by position, so that the other units draw the same with and without the last one."""
    rng = np.random.default_rng(7)
    largest = 0.0
    for _ in range(60):
        X, groups = random_corpus(rng)
        X = np.minimum(X, 20)
        last = np.arange(len(X)) == len(X) - 1 if groups is None else groups == groups[-1]
        if last.all():
            continue
        rest = X[~last], None if groups is None else groups[~last]
        steps = [gibbs_step(data, users, order, n_topics=3) for data, users in ((X, groups), rest)]
        for step in steps:
            step._randomness.root = bytes(32)
        for round_ in range(3):
            table = rng.integers(0, 20, size=(X.shape[1], 3)).astype(np.float32)  # whatever was released
            active = np.ones(steps[0].n_units, np.uint8)
            if round_ == 2:
                active[:-1] = rng.integers(0, 2, size=len(active) - 1)
            flags = [active[: step.n_units] if round_ == 2 else None for step in steps]
            sums = [
                step.collect(TopicWordCounts(table), round_, flag).total.copy()
                for step, flag in zip(steps, flags, strict=True)
            ]
            change = sums[0] - sums[1]
            assert change.min() >= 0
            assert norm(change, order) <= NORM_BOUND**order
            largest = max(largest, norm(change, order) / NORM_BOUND**order)
    assert largest > 0.9


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_units_outside_the_sample_contribute_nothing(order, grouped):
    """Every unit has taken part before; then what two samples contribute adds up to what both together do."""
    rng = np.random.default_rng(2)
    X, groups = rng.poisson(1.0, (40, 9)), np.arange(40) // 3 if grouped else None
    queries = [TopicWordCounts(table) for table in rng.gamma(1.0, 5.0, (2, 9, 3)).astype(np.float32)]
    sums = {}
    for name, divisor in (("none", 0), ("even", 2), ("all", 1)):
        step = gibbs_step(X, groups, order, n_topics=3)
        step._randomness.root = bytes(32)
        step.collect(queries[0], 0, None)
        active = np.zeros(step.n_units, np.uint8)
        active[:: divisor or 1] = divisor > 0
        sums[name] = step.collect(queries[1], 1, active).total.copy()
        if name == "even":
            other = gibbs_step(X, groups, order, n_topics=3)
            other._randomness.root = bytes(32)
            other.collect(queries[0], 0, None)
            sums["odd"] = other.collect(queries[1], 1, 1 - active).total.copy()
    assert not sums["none"].any()
    assert sums["even"].any() and sums["odd"].any()
    np.testing.assert_array_equal(sums["even"] + sums["odd"], sums["all"])
