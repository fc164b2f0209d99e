"""Mechanisms of noise as objects: their laws, their calibration, and that rounds need nothing but their row."""

import math
from dataclasses import replace
from itertools import product

import mpmath
import numpy as np
import pytest
from internals import HybridPlan
from internals import is_below as _is_below
from scipy.stats import chi2

from skdplda import HDPLDA, DPVocabularySelector, PrivateCGSLDA
from skdplda.cli import main
from skdplda.datasets import make_lda_corpus
from skdplda.model_selection import PrivateSearchCV
from skdplda.privacy import (
    MECHANISMS,
    PartitionPlan,
    bounded_range_event,
    discrete_gaussian,
    epsilon_of,
    laplace_event,
    mechanism_of,
    mechanisms_of,
    plan_partition,
    selection_event,
    zcdp_event,
)
from skdplda.rounds import NORM_BOUND, NoisePlan, Spending

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


@every_mechanism
def test_plans_and_samplers_agree_on_the_largest_noise(name):
    """2**50 itself was planned, paid for, and then refused by the discrete Gaussian's sampler."""
    law = MECHANISMS[name]
    multiplier = 2.0**50 / NORM_BOUND
    largest = NoisePlan(name, 1.0, (multiplier,), law.event(multiplier))
    assert largest._checked_scale(1e-9) is largest
    draws = largest.draw(multiplier, (20_000,), b"0123456789abcdef" * 2, 1) / 2.0**50
    assert abs((draws**2).mean() / law.deviation**2 - 1) < 5 * math.sqrt(5 / len(draws))
    above = math.nextafter(2.0**50, math.inf)
    with pytest.raises(ValueError, match="2\\*\\*50"):
        replace(largest, multipliers=(above / NORM_BOUND,))._checked_scale(1e-9)
    with pytest.raises(ValueError, match="2\\*\\*50"):
        law.sampler(above, (1,), None, 1)


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
def test_it_is_known_to_estimators_statements_and_the_command_line(name, capsys, stated_noise):
    law, X = mechanism_of(name), make_lda_corpus(60, 12, 2, random_state=0).data
    model = PrivateCGSLDA(2, mechanism=name, max_iter=2).fit(X)
    said = model.privacy_guarantee_.mechanism
    assert law.label in said and f"L{law.norm} norm" in said
    assert model.privacy_guarantee_.delta == (1e-5 if law.has_delta else 0.0)
    deviation = model.noise_deviation()["first_round"]
    if name == "gaussian":  # whose budget releases divide
        assert deviation == pytest.approx(stated_noise(5.0, 1e-5, 2)["first_round"], rel=1e-4)
    else:
        assert deviation == pytest.approx(5.0 * NoisePlan.calibrate(name, 5.0, 1e-5, 2).deviation(0))
    delta = ["--delta", "1e-6"] if law.has_delta else []
    assert main(["cost", "--epsilon", "1", "--mechanism", name, *delta]) == 0
    assert law.label in " ".join(capsys.readouterr().out.split())


def test_a_new_mechanism_is_a_row_and_nothing_else(monkeypatch):
    """The recipe of doc/architecture.rst: here the two-sided geometric under another name."""
    row = replace(mechanism_of("laplace"), name="two-sided-geometric", label="two-sided geometric")
    monkeypatch.setitem(MECHANISMS, row.name, row)
    plan = NoisePlan.calibrate(row.name, 2.0, 0.0, 4)
    assert plan.law is row and plan.deviation(0) == plan.multipliers[0] * 2**0.5
    noise = plan.draw(Spending(plan).take(), (50, 20), None, 1)
    assert noise.dtype == np.int64 and noise.any()
    with pytest.raises(ValueError, match=r"sampling_rate must be 1\.0"):
        NoisePlan.calibrate(row.name, 2.0, 0.0, 4, 0.5)


def test_a_new_mechanism_reaches_sweeps_selections_and_audits(monkeypatch):
    """And is refused where one of its properties does not do."""
    row = replace(mechanism_of("laplace"), name="two-sided-geometric", label="two-sided geometric")
    monkeypatch.setitem(MECHANISMS, row.name, row)
    assert HDPLDA(mechanism=row.name).privacy_cost().epsilon == 10.0
    assert mechanisms_of("item_frequency") == ["laplace", row.name]
    plan = plan_partition("item_frequency", 1.0, 1e-5, 20, 3.0, row.name)
    assert plan == replace(plan_partition("item_frequency", 1.0, 1e-5, 20, 3.0), mechanism=row.name)
    with pytest.raises(ValueError, match=r"mechanism must be 'gaussian' or .* which bounds the L2 norm"):
        plan_partition("sieve", 1.0, 1e-5, 20, 3.0, row.name)
    monkeypatch.setitem(MECHANISMS, row.name, replace(row, log_cdf=None))
    plan_partition.cache_clear()  # plans of the row before
    with pytest.raises(ValueError, match=r"mechanism must be 'laplace' or None for method='item_frequency'"):
        plan_partition("item_frequency", 1.0, 1e-5, 20, 3.0, row.name)
    dearer = replace(row, event=lambda multiplier, steps=1: laplace_event(multiplier / 2, steps))
    monkeypatch.setitem(MECHANISMS, row.name, dearer)
    for delta in (0.0, 1e-5):
        with pytest.raises(ValueError, match="costs more than the theorem on hybrid sweeps assumes"):
            HDPLDA(mechanism=row.name, delta=delta).privacy_cost()


def test_unknown_noise_is_refused_everywhere():
    """Plans once reported the deviation and the event of Laplace noise for any other name."""
    with pytest.raises(ValueError, match="got 'cauchy'"):
        HybridPlan("cauchy", 5.0, 1.0, 4)
    with pytest.raises(ValueError, match="got 'cauchy'"):
        replace(plan_partition("weighted_gaussian", 1.0, 1e-6, 10, 3.0), mechanism="cauchy")


@every_mechanism
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_hybrid_sweeps_take_it_and_cost_what_they_say(name, delta):
    """The rates of Theorems 1 and 2 in doc/theory/hdp.rst, from the scale alone."""
    law, model = mechanism_of(name), HDPLDA(2, epsilon=4.0, delta=delta, mechanism=name, max_iter=5)
    if law.has_delta and not delta:
        with pytest.raises(ValueError, match=r"no pure epsilon, which delta=0 asks for; use mechanism='laplace'"):
            model.privacy_cost()
        return
    plan, said = model._plan(), model.privacy_cost()
    assert f"{law.label} noise" in said.mechanism and said.status == "proven"
    multiplier = plan.scale / {1: 2.0, 2: 2**0.5}[law.norm]
    if delta:
        rate = 5 * (0.5 / multiplier**2 + bounded_range_event(plan.eta).rho)
        cost = epsilon_of(zcdp_event(rate), delta)
    else:
        cost = 5 * (1 / multiplier + plan.eta)
    assert 0.98 * 4.0 < cost <= 4.0 * (1 + 1e-9)
    assert model.document_cost(3).epsilon > 4.0
    assert model.fit(make_lda_corpus(60, 12, 2, random_state=0).data).privacy_guarantee_ == said


def test_a_budget_by_sweep_takes_pure_noise_only():
    given = {"noise_epsilon": 1.0, "inherent_epsilon": 1.0}
    assert HDPLDA(mechanism="laplace", **given).privacy_cost() == HDPLDA(**given).privacy_cost()
    with pytest.raises(ValueError, match="no pure epsilon, which noise_epsilon is"):
        HDPLDA(mechanism="gaussian", **given).privacy_cost()


@every_mechanism
@pytest.mark.parametrize("scale", [0.2, 1.0, 30.0])
def test_its_distribution_function_is_never_overstated(name, scale):
    """New words of a selection would pass more often than delta says."""
    law, reach = mechanism_of(name), math.ceil(12 * scale) + 1
    points = np.arange(-reach, reach + 1)
    with mpmath.workdps(80):
        s = mpmath.mpf(scale)
        mass = {
            "gaussian": lambda x: mpmath.ncdf((x + 0.5) / s) - mpmath.ncdf((x - 0.5) / s),
            "laplace": lambda x: mpmath.exp(-abs(x) / s),
            "discrete-gaussian": lambda x: mpmath.exp(-(x**2) / (2 * s**2)),
        }[name]
        masses = [mass(x) for x in range(-5 * reach, 5 * reach + 1)]
        total = mpmath.fsum(masses)
        below = [mpmath.fsum(masses[: k + 5 * reach + 1]) / total for k in points.tolist()]
        exact, escape = np.array([float(p) for p in below]), np.array([float(1 - p) for p in below])
    found = law.log_cdf(points, scale)
    assert (np.exp(found) <= exact * (1 + 1e-12)).all()
    assert (-np.expm1(found) >= escape * (1 - 1e-12)).all()
    assert (np.abs(np.exp(found) - exact) < 0.5 / scale).all()


RULES = [(rule, noise) for rule in PartitionPlan.METHODS for noise in mechanisms_of(rule)]


@pytest.mark.parametrize(("rule", "noise"), RULES)
def test_selections_take_any_noise_of_their_norm(rule, noise):
    """The noise alone costs less than the budget, and a unit that is alone passes with what delta leaves."""
    law, (epsilon, delta) = mechanism_of(noise), (1.0, 1e-3)
    plan = plan_partition(rule, epsilon, delta, 8, 3.0, noise)
    assert plan.mechanism == noise and law.norm == {"policy_laplace": 1, "item_frequency": 1}.get(rule, 2)
    spent = plan.event_delta if law.has_delta else 0.0
    assert epsilon_of(plan.event, delta - spent) <= epsilon
    assert all(plan.new_word_delta(n) <= plan.event_delta for n in range(1, 9))
    cost = sum((scale / plan.grid) ** -law.norm for scale in plan.scales)  # of the noise as drawn
    assert epsilon_of(law.event(cost ** (-1 / law.norm)), delta - spent) <= epsilon
    selector = DPVocabularySelector(5.0, delta=delta, method=rule, mechanism=noise, max_words_per_unit=8)
    X = make_lda_corpus(600, 12, 2, random_state=0).data
    guarantee = selector.fit(X).privacy_guarantee_
    assert selector.support_.any() and f"{law.label} noise" in guarantee.mechanism and guarantee.status == "proven"


@pytest.mark.parametrize(
    ("rule", "noise", "why"),
    [
        ("sieve", "laplace", "bounds the L2 norm"),
        ("policy_laplace", "discrete-gaussian", "bounds the L1 norm"),
        ("truncated_geometric", "laplace", "its own alone"),
        ("sieve", "cauchy", "'gaussian' or 'discrete-gaussian' or None"),
    ],
)
def test_selections_refuse_other_noise_and_say_why(rule, noise, why):
    with pytest.raises(ValueError, match=why):
        DPVocabularySelector(method=rule, mechanism=noise).privacy_cost()


@every_mechanism
def test_a_search_takes_a_model_of_it(name):
    """Its score has Gaussian noise; a model of another law is composed with that."""
    model = PrivateCGSLDA(2, mechanism=name, max_iter=2)
    search = PrivateSearchCV(model, {"n_components": [2, 3]}, mean_trials=2, epsilon=3.0)
    cost, trial = search.privacy_cost(), search.trial_epsilon()
    assert cost.status == "proven" and cost.epsilon == 3.0 and 0 < trial < 3.0
    assert epsilon_of(cost.event, cost.delta - cost.event_delta) <= 3.0
    run = model.set_params(epsilon=trial).privacy_cost()
    assert epsilon_of(selection_event(run.event, 2), cost.delta - cost.event_delta) <= 3.0
