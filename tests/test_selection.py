"""The best of a random number of runs: what it costs, against exact laws and the printed theorem."""

import math

import numpy as np
import pytest
from scipy import stats

from skdplda.privacy import (
    PrivacyGuarantee,
    compose_events,
    delta_of,
    epsilon_of,
    gaussian_event,
    gaussian_part,
    laplace_event,
    pure_event,
    selection_event,
)


def law_of_runs(mean, shape, most=4000):
    """Return P(K = k), k = 0, ..., most."""
    k = np.arange(most + 1)
    if shape == 0:
        from scipy.optimize import brentq

        p = brentq(lambda p: stats.logser.mean(p) - mean, 1e-9, 1 - 1e-9)
        return np.where(k > 0, stats.logser.pmf(np.maximum(k, 1), p), 0)
    if shape == 1:
        return np.where(k > 0, stats.geom.pmf(k, 1 / mean), 0)
    return stats.poisson.pmf(k, mean)


def law_of_the_best(run, runs):
    """Return the law of the greatest of K draws, and of none."""
    below = np.concatenate([[0.0], np.cumsum(run)])
    k = np.arange(len(runs))
    at_most = np.array([(runs * b**k).sum() for b in below])
    return np.concatenate([[runs[0]], np.diff(at_most)])


def exact_delta(p, q, epsilon):
    return max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p)))


@pytest.mark.parametrize("shape", [0.0, 1.0, math.inf])
@pytest.mark.parametrize("mean", [1.5, 10.0])
def test_the_cost_bounds_the_exact_law_of_randomized_response(shape, mean):
    e = math.exp(0.4)
    good, bad = np.array([1, e]) / (1 + e), np.array([e, 1]) / (1 + e)
    runs = law_of_runs(mean, shape)
    p, q = law_of_the_best(good, runs), law_of_the_best(bad, runs)
    event = selection_event(pure_event(0.4), mean, shape)
    for delta in (1e-6, 1e-3):
        epsilon = epsilon_of(event, delta)
        assert exact_delta(p, q, epsilon) <= delta
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        assert exact_delta(p, q, epsilon) <= delta_of(event, epsilon) + 1e-12


@pytest.mark.parametrize("shape", [0.0, 1.0, math.inf])
def test_the_cost_bounds_the_exact_law_of_a_gaussian(shape):
    """The best of Gaussian scores, on a fine grid of values."""
    sigma, mean = 2.0, 5.0
    edges = np.linspace(-12 * sigma, 12 * sigma + 1, 4001)
    runs = law_of_runs(mean, shape)
    p, q = (law_of_the_best(np.diff(stats.norm.cdf(edges, mu, sigma)), runs) for mu in (0.0, 1.0))
    event = selection_event(gaussian_event(sigma), mean, shape)
    for delta in (1e-5, 1e-3):
        assert exact_delta(p, q, epsilon_of(event, delta)) <= delta


def test_a_pure_run_of_a_geometric_number_costs_three_times_its_epsilon():
    assert epsilon_of(selection_event(laplace_event(2.0), 20), 0) == pytest.approx(1.5)
    assert epsilon_of(selection_event(pure_event(0.5), 20, 0.0), 0) == pytest.approx(1.0)
    assert epsilon_of(selection_event(pure_event(0.5), 20, math.inf), 0) == math.inf


def test_the_theorem_as_printed():
    """Theorem 2 by its formula over a grid of orders: never above ours by more than the grid, never below."""
    sigma, mean, delta = 5.0, 10.0, 1e-6
    order = 1 + np.exp(np.linspace(-3, 8, 4001))
    inner = order / (2 * sigma**2)
    constant = 2 * np.min((1 - 1 / order) * inner + math.log(mean) / order)
    total = inner + constant + math.log(mean) / (order - 1)
    epsilon = np.min(total + np.log1p(-1 / order) - (math.log(delta) + np.log(order)) / (order - 1))
    assert epsilon_of(selection_event(gaussian_event(sigma), mean), delta) == pytest.approx(epsilon, rel=5e-3)


def test_more_runs_and_broader_laws_cost_more():
    def cost(mean, shape):
        return epsilon_of(selection_event(gaussian_event(5.0), mean, shape), 1e-6)

    assert epsilon_of(gaussian_event(5.0), 1e-6) < cost(2, 1) < cost(10, 1) < cost(100, 1)
    assert cost(10, 0) < cost(10, 1) < cost(10, 4)


def test_selection_composes_with_other_releases_and_survives_json():
    event = selection_event(gaussian_event(3.0, 4, 0.1), 5)
    first = PrivacyGuarantee(epsilon=epsilon_of(event, 1e-6), delta=1e-6, event=event)
    both = first.compose(PrivacyGuarantee(epsilon=0.5, event=pure_event(0.5)))
    assert first.epsilon < both.epsilon <= first.epsilon + 0.5
    assert PrivacyGuarantee.from_json(both.to_json()) == both
    assert first.for_group(3).epsilon == 3 * first.epsilon


def test_no_noise_stays_no_noise():
    assert epsilon_of(selection_event(gaussian_event(0.0), 5), 1e-6) == math.inf


@pytest.mark.parametrize("mean", [1, 0.5, math.inf, math.nan])
def test_the_mean_is_above_one(mean):
    with pytest.raises(ValueError, match="mean_runs must be > 1 and finite; got"):
        selection_event(gaussian_event(1.0), mean)


def test_the_shape_is_not_negative():
    with pytest.raises(ValueError, match="shape must be >= 0 or inf; got -1"):
        selection_event(gaussian_event(1.0), 5, -1)


def test_gaussian_releases_are_one():
    sigma, rest = gaussian_part(compose_events([gaussian_event(4.0, 4), pure_event(0.5)]))
    assert sigma == pytest.approx(2.0)
    assert epsilon_of(rest, 0) == 0.5
    assert gaussian_part(gaussian_event(4.0, 4, 0.5))[0] == math.inf
