"""One fit: laws of the loss against closed forms, bounds against enumeration, broken code found, right code not."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from broken_variants import BROKEN, SOUND
from internals import DEPENDENT, INDEPENDENT, Composition, design_of, largest_refuted, refutes, right_guesses
from scipy.optimize import linprog
from scipy.stats import binom, norm

from skdplda import (
    HDPLDA,
    VIPSLDA,
    DPVocabularySelector,
    EmbeddingTopics,
    LocalPrivateLDA,
    PrivacyAccountant,
    PrivateCGSLDA,
)
from skdplda.audit import audit_one_fit
from skdplda.models import PCTD
from skdplda.privacy import observe, observing

ALARM = 1e-6  # of a test that right code passes


@pytest.mark.parametrize("mu", [0.05, 0.26, 1.1, 4.0])
def test_the_gaussian_pair_is_that_of_the_closed_form(mu):
    pair = Composition(gaussian=mu).pair()
    assert pair.right(1.0) == pytest.approx(norm.cdf(mu / 2), abs=1e-3)
    hits = np.interp([0.01, 0.1, 0.5], pair.fpr, pair.tpr)
    assert hits == pytest.approx(norm.cdf(norm.ppf([0.01, 0.1, 0.5]) + mu), abs=2e-3)
    hits, alarms = pair.least_alarms
    assert np.interp([0.1, 0.5, 0.9], hits, alarms) == pytest.approx(norm.cdf(norm.ppf([0.1, 0.5, 0.9]) - mu), abs=2e-3)


def test_other_pairs_have_their_total_variation():
    sampled = (0.3 * (2 * norm.cdf(0.5) - 1) + 1) / 2
    assert Composition(sampled=(1.0, 0.3, 1)).pair().right(1.0) == pytest.approx(sampled, abs=1e-3)
    assert Composition(laplacian=(1.0, 1)).pair().right(1.0) == pytest.approx(1 - math.exp(-0.5) / 2, abs=1e-3)
    draw = 0.5 + (math.exp(0.5) - 1) ** 2 / math.expm1(1.0) / 2
    assert Composition(ranges=(1.0, 1)).pair().right(1.0) == pytest.approx(draw, abs=1e-3)


def test_equal_rounds_compose_to_one():
    rounds = Composition(sampled=(0.2, 1.0, 25)).pair()
    assert rounds.right(1.0) == pytest.approx(norm.cdf(0.5), abs=3e-3) and rounds.right(1.0) >= norm.cdf(0.5)


def test_composed_draws_tell_at_least_what_any_draws_of_the_range_tell():
    """Twelve draws with two outcomes of odds e^t and e^(t - eta), for several t, by their binomial law."""
    eta, n = 0.7, 12
    pair = Composition(ranges=(eta, n)).pair()
    for t in (0.1, 0.35, 0.6):
        p = (math.exp(eta) - math.exp(t)) / math.expm1(eta)
        k = np.arange(n + 1)
        present, absent = binom.pmf(k, n, p), binom.pmf(k, n, p * math.exp(-t))
        assert np.maximum(present, absent).sum() / 2 <= pair.right(1.0)


def chance_of_a_draw(t, eta):
    """Return the probabilities, under P and Q, of the outcome with odds e^t; the other has e^(t - eta)."""
    p = np.expm1(eta - t) / (math.exp(eta) - 1) * np.exp(t)
    return p, p * np.exp(-t)


def test_the_worst_adaptive_draws_are_those_of_a_full_search():
    """Three draws, each the worst of 40 after what the former ones gave: a lower bound of the recursion's."""
    eta, tried = 0.9, np.linspace(0.9 / 41, 0.9 * 40 / 41, 40)
    p, q = chance_of_a_draw(tried, eta)

    def best(odds, left):
        """Return the chances to be right, by the odds of presence."""
        present = 1 / (1 + np.exp(-odds))
        if not left:
            return np.maximum(present, 1 - present)
        present = present[..., None]
        up = present * p + (1 - present) * q
        odds = odds[..., None]
        return (up * best(odds + tried, left - 1) + (1 - up) * best(odds + tried - eta, left - 1)).max(axis=-1)

    found = float(best(np.zeros(()), 3))
    shown = Composition(ranges=(eta, 3)).right()
    assert found <= shown <= found + 0.003 and shown < Composition(ranges=(eta, 3)).pair().right(1.0)


def test_right_guesses_of_adaptive_draws_are_enumerated():
    """Three canaries of two draws each, one after another; each law is the worst for the event, after all before."""
    eta, m, draws = 0.9, 3, 2
    laws = [(t, *chance_of_a_draw(t, eta)) for t in (0.225, 0.45, 0.675)]
    bound = Composition(ranges=(eta, draws)).right()

    def most(least_right):
        """Return the largest probability of so many right guesses."""

        @cache
        def best(odds, done):
            if done == m * draws:
                sure = 1 / (1 + np.exp(-np.abs(odds)))
                law = np.ones(1)
                for p in sure:
                    law = np.convolve(law, [1 - p, p])
                return law[least_right:].sum()
            i, found = done % m, best(odds, done + 1)
            present = 1 / (1 + math.exp(-odds[i]))
            for up, p, q in laws:
                chance = present * p + (1 - present) * q
                one, other = (tuple(np.round(np.add(odds, s * np.eye(m)[i]), 9)) for s in (up, up - eta))
                found = max(found, chance * best(one, done + 1) + (1 - chance) * best(other, done + 1))
            return found

        return best((0.0,) * m, 0)

    for least_right in range(1, m + 1):
        allowed = binom.sf(least_right - 1, m, bound)
        assert allowed - 0.002 < most(least_right) <= allowed


def test_draws_of_hardly_any_range_leave_other_noise_as_it_is():
    for mu, draws in ((0.3, (1e-3, 25)), (1.1, (1e-3, 5)), (3.0, (0.01, 2))):
        assert norm.cdf(mu / 2) <= Composition(gaussian=mu, ranges=draws).right() < norm.cdf(mu / 2) + 1e-3
    both = Composition(gaussian=0.9, ranges=(0.47, 5)).right()  # nearly normal: the range's square over 4, each
    assert norm.cdf(math.hypot(0.9, 0.235 * math.sqrt(5)) / 2) < both < Composition(gaussian=1.08).right()


def test_the_bound_of_draws_holds_as_often_as_it_says():
    """As below, for canaries of five draws, halves of the range, with noise: 2,000 simulated fits."""
    rng, eta, mu, m = np.random.default_rng(1), 0.5, 0.4, 300
    composition, wrong = Composition(gaussian=mu, ranges=(eta, 5)), 0
    needed = next(v for v in range(m // 2, m + 1) if refutes(composition, INDEPENDENT, m, m, v, 0.05))
    p, q = chance_of_a_draw(eta / 2, eta)
    for _ in range(2000):
        present = rng.random(m) < 0.5
        ups = rng.binomial(5, np.where(present, p, q))
        scores = eta * (ups - 2.5) + mu * (rng.normal(size=m) + mu * (present - 0.5))
        wrong += right_guesses(scores, present, m, rng) >= needed
    assert 20 <= wrong <= 140


def test_the_bound_under_any_dependence_is_the_linear_programme():
    """The most that a law of right guesses may have at n_right or more, where the theorem's inequalities hold."""
    n_canaries, n_guesses, n_right = 12, 8, 7
    composition = Composition(gaussian=0.8)
    hits, alarms = composition.pair().least_alarms
    slopes = np.diff(alarms) / np.diff(hits)
    right = np.arange(n_guesses + 1)
    rows, limits = [], []
    for least, i in product(range(n_guesses), range(0, len(slopes), 25)):
        row = slopes[i] * right * (right > least) / n_canaries - (n_guesses - right) * (right >= least) / n_canaries
        rows.append(row)
        limits.append(slopes[i] * hits[i] - alarms[i])
    sure = -(right >= n_right).astype(float)
    found = -linprog(sure, rows, limits, np.ones((1, n_guesses + 1)), [1.0], bounds=(0, 1)).fun
    assert refutes(composition, DEPENDENT, n_canaries, n_guesses, n_right, found + 0.002)
    assert not refutes(composition, DEPENDENT, n_canaries, n_guesses, n_right, found - 0.002)


def test_with_no_privacy_loss_guesses_are_coins():
    nothing = Composition(gaussian=1e-6)
    p_value = binom.sf(64, 100, 0.5)
    assert refutes(nothing, INDEPENDENT, 100, 100, 65, 1.01 * p_value)
    assert not refutes(nothing, INDEPENDENT, 100, 100, 65, 0.99 * p_value)


@pytest.mark.parametrize("bound", [INDEPENDENT, DEPENDENT])
def test_bounds_hold_as_often_as_they_say_on_the_worst_canaries(bound):
    """Of 2,000 simulated fits; 140 is exceeded with probability 4e-5 at a rate of 0.05. Seeds are fixed."""
    rng, composition, m, r = np.random.default_rng(0), Composition(gaussian=0.7), 400, 200
    wrong = 0
    needed = next(v for v in range(r // 2, r + 1) if refutes(composition, bound, m, r, v, 0.05))
    for _ in range(2000):
        present = rng.random(m) < 0.5
        scores = 0.7 * (rng.normal(size=m) + 0.7 * present) - 0.245
        wrong += right_guesses(scores, present, r, rng) >= needed
    assert wrong <= 140


def test_more_right_guesses_show_more_and_half_show_nothing():
    one = Composition(gaussian=1.0)
    shown = [largest_refuted(one, INDEPENDENT, 1000, 500, right, 0.05) for right in (250, 300, 350, 400)]
    assert shown[0] == 0 and np.all(np.diff(shown) > 0)


# Canaries of a fit of broken code, so that it is found with a probability above 1 - 1e-6: the mean of the bounds at the
# rate of false alarms is five of their standard deviations above the claim, by audit_variants.csv (12,000 each).
CANARIES = {
    "noise times 0.8": 12_000,
    "norm times 1.2": 12_000,
    "sampling rate times 2": 4_000,
    "one round uncounted": 20_000,
    "noise repeated": 4_000,
    "noise repeated, sampled": 4_000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_one_fit_finds_what_is_broken(name):
    breaking, estimator = BROKEN[name]
    with breaking():
        report = audit_one_fit(estimator, n_canaries=CANARIES[name], verbose=0)
    assert report.violated and report.lower_bound > report.claim.epsilon


@pytest.mark.parametrize("name", [name for name in SOUND if name != "right: one round uncounted"])  # as noise, 0.8
def test_one_fit_does_not_call_right_code_broken(name):
    _, estimator = SOUND[name]
    report = audit_one_fit(estimator, n_canaries=3000, alarm=ALARM, verbose=0)
    assert not report.violated and report.lower_bound > 0.3 * report.claim.epsilon
    assert report.to_dict()["attacks"][0]["attack"] == "white-box" and "consistent" in str(report)


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateCGSLDA(2, epsilon=3.0, delta=0.0, mechanism="laplace", max_iter=3),
        HDPLDA(2, epsilon=3.0, delta=0.0, max_iter=5, noise_share=0.5),
        DPVocabularySelector(epsilon=3.0, method="sips"),
    ],
    ids=["laplace", "laplace sweeps", "sips"],
)
def test_other_noise_beside_a_corpus(estimator):
    """Over 21 seeds the bound is 2.3, 1.6 and 2.5, with deviations 0.12, 0.17 and 0.25."""
    X = sp.csr_array(np.random.default_rng(0).poisson(1.0, (40, 6)).astype(np.int32))
    report = audit_one_fit(estimator, X, n_canaries=2000, alarm=ALARM, verbose=0)
    assert not report.violated and report.lower_bound > 0.2


@pytest.mark.parametrize(
    "start",
    [{"public_rows": np.eye(3), "max_iter": 4}, {"init": np.eye(2, 3), "centre": np.full(3, 0.1), "max_iter": 1}],
    ids=["public", "init"],
)
def test_embeddings_show_what_their_words_get(start):
    """Canaries in one cluster: `keyword_share` of the precision, seen through all releases of words.

    The bound is 3.9, with deviation 0.16 over 21 seeds. "init" is as of a month that starts from an earlier one.
    """
    model = EmbeddingTopics(2, epsilon=5.0, keyword_share=0.9, **start)
    report = audit_one_fit(model, n_canaries=3000, alarm=ALARM, verbose=0)
    assert not report.violated and report.lower_bound > 2.5
    white = report.lines[0]
    assert white.attainable == pytest.approx(4.7, abs=0.1) and white.claimed == 5.0
    with pytest.raises(ValueError, match="corpus must be None"):
        audit_one_fit(model, np.ones((3, 3)), n_canaries=100, verbose=0)


def test_settled_topics_let_the_model_show_what_releases_show():
    """Without documents that settle them, such canaries showed a quarter of the claim, 1.3."""
    report = audit_one_fit(PCTD(epsilon=5.0, max_iter=4), n_canaries=5000, alarm=ALARM, verbose=0)
    black = report.lines[2]
    assert not report.violated and black.attack == "black-box" and black.measured > 2.5


def test_hidden_draws_are_gone_around_by_word_frequencies():
    """Topics would show 60 per cent of the claim; 3.5 is 8 standard errors below what word frequencies show."""
    report = audit_one_fit(PrivateCGSLDA(epsilon=5.0), n_canaries=5000, alarm=ALARM, verbose=0)
    assert not report.violated and report.lower_bound > 3.5


def test_what_canaries_share_costs_error():
    """Topics may be refused by two votes; by one where no vote is on the prior."""
    votes = (VIPSLDA(2), 3), (PrivateCGSLDA(2), 3), (VIPSLDA(2, doc_topic_prior=0.1), 2)
    for estimator, n_decisions in (*votes, (PCTD(2), 1), (HDPLDA(2), 1), (DPVocabularySelector(), 1)):
        assert design_of(estimator, None, 100).n_decisions == n_decisions


def test_words_pass_the_rounds_as_often_as_simulated():
    """2,000 words that 12 units use, judged by the mean of all rounds; two samples, 6 standard errors."""
    selector = DPVocabularySelector(epsilon=2.0)
    design = design_of(selector, None, 100)
    assert design._plan.coefficients
    expected = sum(passed for _, passed in design._rounds(12))
    words = sp.csr_array(np.tile(np.eye(2000, dtype=np.int32), (12, 1)))
    found = selector.fit(words).support_.sum() / 2000
    assert 0.05 < expected < 0.95
    assert abs(found - expected) < 6 * math.sqrt(expected * (1 - expected) * (1 / 2000 + 1 / 4096))


def test_a_fit_is_charged_and_the_estimator_left_alone():
    model = VIPSLDA(2, epsilon=1.0)
    with PrivacyAccountant(1.5, 1e-4) as accountant:
        audit_one_fit(model, n_canaries=200, verbose=0)
    assert len(accountant.ledger) == 1 and not hasattr(model, "components_")


@pytest.mark.parametrize(
    ("estimator", "options", "said"),
    [
        (VIPSLDA(2, epsilon=math.inf), {}, "finite epsilon"),
        (LocalPrivateLDA(2), {}, "LocalPrivateLDA"),
        (EmbeddingTopics(2, epsilon=math.inf), {}, "finite epsilon"),
        (DPVocabularySelector(method="policy_laplace"), {}, "policy_laplace"),
        (PrivateCGSLDA(2, mechanism="discrete-gaussian"), {}, "ZCDpEvent"),
        (VIPSLDA(2), {"n_canaries": 10}, "n_canaries"),
        (VIPSLDA(2), {"alarm": 0.0}, "alarm"),
    ],
)
def test_what_has_no_attack_of_one_fit_is_refused(estimator, options, said):
    with pytest.raises(ValueError, match=said):
        audit_one_fit(estimator, **{"n_canaries": 100, "verbose": 0, **options})


def test_releases_are_seen_by_the_audit_that_runs_and_by_no_other():
    seen = []
    with observing(lambda kind, **values: seen.append((kind, values))):
        observe("round", noisy=1)
    observe("round", noisy=2)
    assert seen == [("round", {"noisy": 1})]
