"""Mechanisms of noise as objects: their laws, their calibration, and that rounds need nothing but their row."""

import math
from dataclasses import replace
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from skdplda import PrivateCGSLDA
from skdplda.cli import main
from skdplda.datasets import make_lda_corpus
from skdplda.models._hdp_accounting import HybridPlan
from skdplda.privacy import MECHANISMS, discrete_gaussian, epsilon_of, mechanism_of, plan_partition
from skdplda.privacy._noise import _is_below
from skdplda.rounds import NoisePlan

every_mechanism = pytest.mark.parametrize("name", list(MECHANISMS))


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.5, 9.7])
def test_discrete_gaussian_draws_follow_their_law(sigma):
    """Chi-square against the exact probabilities, at a false-alarm rate of 1e-6 with this seed."""
    draws = discrete_gaussian(sigma, 200_000, random_state=5)
    reach = math.ceil(12 * sigma) + 2
    points = np.arange(-reach, reach + 1)
    law = np.exp(-0.5 * (points / sigma) ** 2)
    expected = len(draws) * law / law.sum()
    common = expected >= 10
    seen = np.bincount(draws + reach, minlength=len(points))[: len(points)]
    statistic = ((seen - expected) ** 2 / expected)[common].sum()
    rest = expected[~common].sum()
    statistic += (seen[~common].sum() - rest) ** 2 / max(rest, 1.0)
    assert statistic < chi2.isf(1e-6, common.sum())


def test_large_discrete_gaussians_have_their_moments():
    draws = discrete_gaussian(2.0**22, 100_000, random_state=6) / 2.0**22
    assert abs(draws.mean()) < 5 / math.sqrt(len(draws))
    assert abs((draws**2).mean() - 1) < 5 * math.sqrt(2 / len(draws))
    assert abs((draws**4).mean() - 3) < 5 * math.sqrt(96 / len(draws))


@pytest.mark.parametrize("proposal", [0, 3, -3, 40, 200])
def test_a_close_decision_is_exact(proposal):
    """A uniform number that agrees with the chance in all of its first bits is decided by those that follow."""
    sigma, scale = 2.5, 3
    with mpmath.workprec(4000):
        chance = mpmath.exp(-((abs(proposal) - mpmath.mpf(sigma) ** 2 / scale) ** 2) / (2 * mpmath.mpf(sigma) ** 2))
        first = int(mpmath.floor(chance * 2**64))
    below, above = first - 1, first + 1
    if below >= 0:
        assert _is_below(below.to_bytes(8, "little"), b"x", proposal, sigma, scale)
    assert not _is_below(above.to_bytes(8, "little"), b"x", proposal, sigma, scale)
    found = [_is_below(first.to_bytes(8, "little"), b"x%d" % i, proposal, sigma, scale) for i in range(400)]
    with mpmath.workprec(4000):
        share = float(chance * 2**64 - first)
    assert abs(np.mean(found) - share) < 5 * math.sqrt(share * (1 - share) / 400) + 1e-9


def test_unknown_mechanisms_are_refused():
    """An unknown name once got Gaussian deviations, Laplace draws and the L1 norm."""
    with pytest.raises(ValueError, match=f"mechanism must be one of {', '.join(MECHANISMS)}; got 'cauchy'"):
        mechanism_of("cauchy")
    with pytest.raises(ValueError, match="got 'cauchy'"):
        NoisePlan.calibrate("cauchy", 1.0, 1e-6, 3)


@every_mechanism
def test_its_noise_has_the_deviation_that_it_states(name):
    law = mechanism_of(name)
    draws = law.sampler(1000.0, 100_000, random_state=3, n_threads=1)
    spread = draws.std() / (1000.0 * law.deviation)
    assert abs(spread - 1) < 5 * math.sqrt(5 / 4 / len(draws))  # the fourth moment is 6 at most


@pytest.mark.parametrize(("name", "epsilon"), list(product(MECHANISMS, [0.3, 1.0, 8.0])))
def test_a_plan_keeps_its_target_and_wastes_little(name, epsilon):
    law = mechanism_of(name)
    plan = NoisePlan.calibrate(name, epsilon, 1e-6, 20)
    delta = 1e-6 if law.has_delta else 0.0
    assert 0.99 * epsilon < epsilon_of(plan.event, delta) <= epsilon
    # the event is that of the multipliers: of one release of the sum of their precisions, or of their epsilons
    cost = sum(multiplier**-law.norm for multiplier in plan.multipliers)
    alone = NoisePlan.calibrate(name, epsilon, 1e-6, 1).multipliers[0] ** -law.norm
    assert cost == pytest.approx(alone, rel=1e-9)


@every_mechanism
def test_it_is_known_to_estimators_statements_and_the_command_line(name, capsys):
    law, X = mechanism_of(name), make_lda_corpus(60, 12, 2, random_state=0).data
    model = PrivateCGSLDA(2, mechanism=name, max_iter=2).fit(X)
    said = model.privacy_guarantee_.mechanism
    assert law.label in said and f"L{law.norm} norm" in said
    assert model.privacy_guarantee_.delta == (1e-5 if law.has_delta else 0.0)
    deviation = model.noise_deviation()["first_round"]
    assert deviation == pytest.approx(5.0 * law.deviation * model._plan().multipliers[0])
    delta = ["--delta", "1e-6"] if law.has_delta else []
    assert main(["cost", "--epsilon", "1", "--mechanism", name, *delta]) == 0
    assert law.label in " ".join(capsys.readouterr().out.split())


def test_a_new_mechanism_is_a_row_and_nothing_else(monkeypatch):
    """The recipe of doc/architecture.rst: here the two-sided geometric under another name."""
    row = replace(mechanism_of("laplace"), name="two-sided-geometric", label="two-sided geometric")
    monkeypatch.setitem(MECHANISMS, row.name, row)
    plan = NoisePlan.calibrate(row.name, 2.0, 0.0, 4)
    assert plan.law is row and plan.deviation(0) == plan.multipliers[0] * 2**0.5
    noise = plan.draw(0, (50, 20), None, 1)
    assert noise.dtype == np.int64 and noise.any()
    with pytest.raises(ValueError, match=r"sampling_rate must be 1\.0"):
        NoisePlan.calibrate(row.name, 2.0, 0.0, 4, 0.5)


@pytest.mark.parametrize("name", ["discrete-gaussian", "cauchy"])
def test_plans_without_a_theorem_for_a_mechanism_refuse_it(name):
    """They once reported the deviation and the event of Laplace noise for any other name."""
    with pytest.raises(ValueError, match="noise must be one of gaussian, laplace"):
        HybridPlan(name, 5.0, 1.0, 4)
    with pytest.raises(ValueError, match="noise must be one of"):
        replace(plan_partition("weighted_gaussian", 1.0, 1e-6, 10, 3.0), noise=name)
