"""The ledger: budgets are never exceeded, and spends are never lost."""

import copy
import json
import math
import pickle
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event
from internals import Rule, choose_filter
from internals import noise_kernel as _noise
from internals import reports_kernel as _reports
from sklearn.base import BaseEstimator, clone
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import PrivateCGSLDA
from skdplda.exceptions import BudgetExceededError, IncompatibleGuaranteeError
from skdplda.privacy import (
    BudgetCharge,
    LedgerEntry,
    PrivacyAccountant,
    PrivacyGuarantee,
    active_accountant,
    epsilon_of,
    gaussian_event,
    pure_event,
    selection_event,
    zcdp_event,
)
from skdplda.releases import make_fdptm_pipeline

INF = math.inf


def pure(epsilon, **fields):
    return PrivacyGuarantee(**{"epsilon": epsilon, "status": "proven", "event": pure_event(epsilon), **fields})


def bare(epsilon, delta=0.0):
    return PrivacyGuarantee(epsilon=epsilon, delta=delta, status="proven", reference="a theorem")


def gaussian(sigma, delta, steps=1):
    event = gaussian_event(sigma, steps)
    return PrivacyGuarantee(epsilon=epsilon_of(event, delta), delta=delta, status="proven", event=event)


def spent(*guarantees):
    return [LedgerEntry(None, guarantee) for guarantee in guarantees]


def test_spending_adds_up():
    accountant = PrivacyAccountant(1.0)
    assert accountant.total is None
    assert accountant.remaining_epsilon == 1.0
    for _ in range(10):
        accountant.spend(pure(0.1), label="fit")
    assert accountant.total.epsilon == 1.0
    assert accountant.remaining_epsilon == 0.0
    assert [entry[:2] for entry in accountant.ledger] == [("fit", pure(0.1))] * 10
    with pytest.raises(BudgetExceededError):
        accountant.spend(pure(1e-9))


def test_a_refused_spend_changes_nothing():
    accountant = PrivacyAccountant(1.0)
    accountant.spend(pure(0.75), label="first")
    before = accountant.ledger
    message = (
        "the budget is epsilon=1.0, delta=0.0; spent so far: epsilon=0.75, delta=0; with this guarantee "
        "(epsilon=0.5, delta=0) it would be epsilon=1.25 at delta=0.0. Nothing was spent"
    )
    for call in (accountant.spend, accountant.check):
        with pytest.raises(BudgetExceededError, match=re.escape(message)):
            call(pure(0.5))
        assert accountant.ledger is before
    assert accountant.remaining_epsilon == 0.25
    accountant.spend(pure(0.25))
    assert accountant.remaining_epsilon == 0.0


def test_check_spends_nothing():
    accountant = PrivacyAccountant(1.0)
    for _ in range(3):
        accountant.check(pure(1.0))
    assert accountant.ledger == ()


def test_joint_accounting_affords_more_than_the_sum():
    one = gaussian(20.0, 1e-7)
    accountant = PrivacyAccountant(3 * one.epsilon, delta=1e-6)
    for _ in range(5):
        accountant.spend(one)
    assert 5 * one.epsilon > accountant.epsilon > accountant.total.epsilon
    assert 0 < accountant.remaining_epsilon < accountant.epsilon - epsilon_of(gaussian_event(20.0, 5), 1e-6)
    assert any("did not depend on earlier ones" in line for line in accountant.total.assumptions)


def test_delta_is_a_budget_too():
    small = bare(0.1, 1e-6)
    with pytest.raises(BudgetExceededError, match="it would be epsilon=inf at delta=0"):
        PrivacyAccountant(10.0).spend(small)
    accountant = PrivacyAccountant(10.0, delta=2e-6)
    accountant.spend(small)
    accountant.spend(small)
    with pytest.raises(BudgetExceededError, match="delta=2e-6"):
        accountant.spend(small)
    accountant.spend(pure(9.0))


def after(event, epsilon):
    """Delta of a Gaussian or pure event at an epsilon that may be negative, given by an array."""
    from scipy.special import ndtr

    if hasattr(event, "noise_multiplier"):
        mu = 1 / event.noise_multiplier
        return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    worst = event.noise_parameter
    likely = 1 / (1 + math.exp(-worst))
    losses, chances = np.array([[worst], [-worst]]), np.array([[likely], [1 - likely]])
    return (chances * np.maximum(-np.expm1(epsilon - losses), 0)).sum(axis=0)


@pytest.mark.parametrize("rule", ["auto", "basic", "gaussian", "renyi"])
@pytest.mark.parametrize("sigma", [3.0, 4.0, 6.0])
def test_an_outcome_cannot_choose_between_two_kinds_of_noise(sigma, rule):
    """Budget (2, 1e-5): a Gaussian release, then what is dearer given its loss, of all that would be accepted."""
    options = {"auto": {}, "gaussian": {"rule": rule, "reserve": 0.0}}.get(rule, {"rule": rule})
    ledger = PrivacyAccountant(2.0, 1e-5, **options)
    ledger.spend(gaussian(sigma, 1e-6))

    def most(make, low, high):
        for _ in range(40):
            middle = (low + high) / 2
            try:
                ledger.check(make(middle))
            except BudgetExceededError:
                high = middle
            else:
                low = middle
        return make(low).event

    second = [most(pure, 1e-9, 2.0), most(lambda precision: gaussian(precision**-0.5, 1e-7), 1e-6, 1.0)]
    mu = 1 / sigma
    step = mu / 400
    losses = mu**2 / 2 + np.arange(-10 * mu, 12 * mu, step)
    density = np.exp(-((losses - mu**2 / 2) ** 2) / (2 * mu**2)) / math.sqrt(2 * math.pi * mu**2) * step
    each = [after(event, 2.0 - losses) for event in second]
    assert (density * np.maximum(*each)).sum() <= 1e-5 * (1 + 1e-6)
    if rule == "gaussian":  # and nothing is lost where noise is of one kind
        assert (density * each[1]).sum() == pytest.approx(1e-5, rel=1e-3)


def test_a_ledger_keeps_the_rule_of_its_first_guarantee():
    ledger = PrivacyAccountant(3.0, 1e-5)
    ledger.spend(pure(1.0))
    ledger.spend(gaussian(6.0, 1e-6))  # by its epsilon and delta
    assert ledger.remaining_epsilon == pytest.approx(2.0 - gaussian(6.0, 1e-6).epsilon)
    ledger = PrivacyAccountant(3.0, 1e-5)
    ledger.spend(PrivacyGuarantee(epsilon=0.0, status="proven", event=pure_event(0.0)))  # free, and no kind of noise
    ledger.spend(gaussian(6.0, 1e-6))
    for _ in range(8):
        ledger.spend(gaussian(6.0, 1e-6))
    with pytest.raises(BudgetExceededError, match=r"adds up the precision of Gaussian noise.*rule='renyi', or 'basic'"):
        ledger.spend(gaussian(1.5, 1e-6))


def test_topics_today_words_tomorrow_topics_over_time():
    """What carries a delta, and what is pure, goes into a ledger that Gaussian noise began."""
    topics = gaussian(3.4, 1e-5)
    words = PrivacyGuarantee(epsilon=0.5, delta=2e-6, status="proven", event=gaussian_event(9.5), event_delta=1e-6)
    ledger = PrivacyAccountant(2.0, 1e-5)
    for guarantee in (topics, words, pure(0.3), bare(0.1, 1e-6)):
        ledger.spend(guarantee)
    assert ledger.total.delta == 1e-5
    assert ledger.total.epsilon < 2.0


def test_a_pure_epsilon_beside_gaussian_noise_costs_less_than_twice_its_share():
    """Half of epsilon is spent on Gaussian noise: three quarters of the other half are left for pure noise, or more."""
    for epsilon, delta in [(1.0, 1e-5), (2.0, 1e-6), (4.0, 1e-5), (8.0, 1e-8)]:
        ledger = PrivacyAccountant(epsilon, delta)
        mu = Rule("gaussian", epsilon, delta, 0.0).capacity ** 0.5
        ledger.spend(gaussian(2 / mu, delta))
        assert ledger.remaining_epsilon > 0.7 * epsilon / 2
        ledger.spend(pure(ledger.remaining_epsilon))
        gaussian_only = PrivacyAccountant(epsilon, delta, rule="gaussian")
        gaussian_only.spend(gaussian(2 / mu, delta))
        assert gaussian_only.remaining_epsilon < 0.4 * epsilon / 2


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (2.0, 1e-6), (8.0, 1e-8)])
def test_parts_of_delta_for_other_noise_cost_gaussian_noise_little(epsilon, delta):
    """The table of doc/theory/ledger.rst: at most 3 percent of epsilon."""
    first = gaussian(30.0, delta)
    kept, none = (
        choose_filter(name, epsilon, delta, part, first) for name, part in (("auto", None), ("gaussian", 0.0))
    )
    capacity = [found.rules[0].capacity for found in (kept, none)]
    affordable = [epsilon_of(gaussian_event(mu2**-0.5), delta) for mu2 in capacity]
    assert 0.97 < affordable[0] / affordable[1] < 1
    assert [rule.name for rule in kept.rules] == ["gaussian", "renyi"]
    parts = [rule.delta - rule.reserve for rule in kept.rules]
    assert [*parts, kept.rules[0].reserve] == pytest.approx([delta * 5 / 8, delta / 8, delta / 4])


def test_words_and_topics_that_are_planned_for_the_whole_budget_fit():
    words, topics = (step for _, step in make_fdptm_pipeline(5.0, 1e-6).steps)
    ledger = PrivacyAccountant(5.0, 1e-6)
    for step in (words, topics):
        ledger.spend(step.privacy_cost())
    assert ledger.total.epsilon == pytest.approx(5.0, rel=1e-4)


def test_a_first_guarantee_that_needs_nearly_all_leaves_a_smaller_reserve():
    ledger = PrivacyAccountant(gaussian(1.2, 1e-5).epsilon * 1.002, 1e-5)
    ledger.spend(gaussian(1.2, 1e-5))
    assert 0 < ledger._filter.rules[0].reserve < 0.25e-5


def test_the_refusal_of_a_delta_names_the_reserve():
    ledger = PrivacyAccountant(4.0, 1e-5)
    ledger.spend(gaussian(6.0, 1e-6))
    ledger.spend(bare(0.1, 2e-6))
    with pytest.raises(
        BudgetExceededError, match=r"add up to 3e-6; .*a reserve of 2.5e-06 of its delta .*larger reserve"
    ):
        ledger.spend(bare(0.1, 1e-6))
    assert len(ledger.ledger) == 2


def test_sampled_noise_goes_by_its_divergence_beside_gaussian_noise():
    """The rule of precisions would take its whole delta from the reserve; it is out, and the other one goes on."""
    ledger = PrivacyAccountant(8.0, 1e-5)
    ledger.spend(gaussian(3.0, 1e-5))
    for _ in range(2):
        ledger.spend(sampled(1e-5))
    rules = ledger._filter.rules
    assert ledger._filter.cost(ledger.ledger) == rules[1].cost(ledger.ledger)
    with pytest.raises(BudgetExceededError):
        for _ in range(100):
            ledger.spend(gaussian(3.0, 1e-5))


def test_a_filter_of_several_rules_holds_for_whoever_chooses_between_them():
    """Random adaptive strategies of two steps: the larger part of delta goes to the worst, and delta is never exceeded.

    After a Gaussian release, each loss may choose its own second release of all that the ledger accepts.
    """
    budget, delta = 2.0, 1e-5
    for sigma in (2.5, 3.0, 5.0, 12.0):
        ledger = PrivacyAccountant(budget, delta)
        ledger.spend(gaussian(sigma, 1e-6))
        accepted = []
        for make, top in ((pure, 2.0), (lambda precision: gaussian(precision**-0.5, 1e-7), 1.0)):
            low, high = 1e-9, top
            for _ in range(40):
                middle = (low + high) / 2
                try:
                    ledger.check(make(middle))
                    low = middle
                except BudgetExceededError:
                    high = middle
            accepted.append(make(low).event)
        mu = 1 / sigma
        losses = mu**2 / 2 + np.arange(-10 * mu, 12 * mu, mu / 400)
        density = np.exp(-((losses - mu**2 / 2) ** 2) / (2 * mu**2)) / math.sqrt(2 * math.pi * mu**2) * mu / 400
        worst = np.maximum(*(after(event, budget - losses) for event in accepted))
        assert (density * worst).sum() <= delta * (1 + 1e-6)
        rules = ledger._filter.rules
        assert sum(rule.delta - rule.reserve for rule in rules) + rules[0].reserve <= delta * (1 + 1e-12)


@pytest.mark.parametrize("order", [2, 6, 18, 64])
def test_the_divergence_of_a_pure_epsilon_is_that_of_randomized_response(order):
    for epsilon in (1e-12, 1e-6, 0.01, 0.2, 1.0, 5.0, 60.0, 800.0):
        with mpmath.workdps(60):
            e, a = mpmath.mpf(epsilon), order
            exact = mpmath.log((mpmath.exp(a * e) + mpmath.exp((1 - a) * e)) / (1 + mpmath.exp(e))) / (a - 1)
            exact = float(exact)
        charged = Rule("renyi", 1.0, 1e-5, 0.0, order).charge(pure(epsilon))[0]
        assert exact <= charged <= min(exact + 2e-14, order * epsilon**2 / 2) * (1 + 1e-11) or charged <= exact * (
            1 + 1e-9
        )


def test_composed_gaussian_and_pure_events_are_charged_part_by_part():
    both = gaussian(6.0, 1e-6).compose(pure(0.2), pure(0.3))
    rule = Rule("gaussian", 4.0, 1e-5, 0.0)
    parts = [rule.charge(one)[0] for one in (gaussian(6.0, 1e-6), pure(0.2), pure(0.3))]
    assert rule.charge(both) == (pytest.approx(sum(parts)), 0.0)


@pytest.mark.parametrize(
    "rules",
    [
        [],
        [{}],
        [{"name": "joint", "delta": 1e-5, "reserve": 0.0, "order": 0.0}],
        [{"name": "gaussian", "delta": 2e-5, "reserve": 0.0, "order": 0.0}],
        [{"name": "renyi", "delta": 1e-5, "reserve": 0.0, "order": 1.0}],
        [{"name": "gaussian", "delta": 1e-5, "reserve": 0.0, "order": 0.0, "edition": 2}],
        [{"name": "gaussian", "delta": 1e-5, "reserve": 0.0, "order": 0.0}] * 2,
        [{"name": "gaussian", "delta": 1e-5, "reserve": 10**400, "order": 0.0}],
    ],
)
def test_a_forged_filter_is_refused(rules):
    data = json.loads(PrivacyAccountant(1.0, 1e-5).to_json()) | {"filter": rules}
    with pytest.raises(ValueError, match=r"damaged|cannot be read"):
        PrivacyAccountant.from_json(json.dumps(data))


# --- what a ledger tells ----------------------------------------------------------------------------------


def test_the_total_is_at_the_delta_of_the_budget():
    """Twelve fits of delta 1e-6 are not of delta 1.2e-5 in a ledger of 1e-5."""
    ledger = PrivacyAccountant(8.0, 1e-5)
    for _ in range(12):
        ledger.spend(gaussian(12.0, 1e-6))
    assert (ledger.total.delta, ledger.total.status) == (1e-5, "proven")
    assert ledger.total.epsilon == pytest.approx(epsilon_of(gaussian_event(12.0, 12), 1e-5))
    one = PrivacyAccountant(8.0, 1e-5)
    one.spend(gaussian(12.0, 1e-6))
    assert (one.total.delta, one.total.epsilon) == (1e-5, pytest.approx(epsilon_of(gaussian_event(12.0), 1e-5)))
    two = PrivacyAccountant(8.0, 1e-5)
    for _ in range(2):
        two.spend(gaussian(12.0, 1.4e-5))
    assert two.total.delta == 1e-5
    books = PrivacyAccountant(INF)
    books.spend(gaussian(12.0, 1e-6))
    assert books.total == gaussian(12.0, 1e-6)


@pytest.mark.filterwarnings("ignore:PrivateCGSLDA was given a random_state:skdplda.PrivacyLeakWarning")
def test_entries_have_a_date_a_label_and_what_was_fitted():
    model = PrivateCGSLDA(3, epsilon=1.0, max_iter=2, random_state=b"a secret of many bytes", checkpoint=None)
    with PrivacyAccountant(9.0, 1e-3) as ledger:
        with ledger.labelled("topics of May"):
            model.fit(np.eye(6, dtype=int))
            ledger.spend(pure(0.1))
        model.fit(np.eye(6, dtype=int))
        ledger.spend(pure(0.1), "by hand")
    before = datetime.now(UTC)
    labels = [entry.label for entry in ledger.ledger]
    assert labels[:2] == ["topics of May"] * 2 and labels[2].startswith("PrivateCGSLDA fit ") and labels[3] == "by hand"
    assert ledger.ledger[0].fitted == "PrivateCGSLDA(delta=1e-05, epsilon=1.0, max_iter=2, n_components=3)"
    assert [entry.fitted is None for entry in ledger.ledger] == [False, True, False, True]
    assert "many bytes" not in ledger.to_json()
    for entry in ledger.ledger:
        assert timedelta(0) <= before - datetime.fromisoformat(entry.date) < timedelta(minutes=5)
    assert ledger.ledger[3][:2] == ("by hand", pure(0.1))
    again = PrivacyAccountant.from_json(ledger.to_json())
    assert list(map(repr, again.ledger)) == list(map(repr, ledger.ledger))


def test_threads_have_the_label_of_the_block():
    with PrivacyAccountant(9.0, 1e-3).labelled("topics of May") as ledger, ThreadPoolExecutor(1) as pool:
        pool.submit(PrivateCGSLDA(2, epsilon=1.0, max_iter=2).fit, np.eye(6, dtype=int)).result()
    assert [entry.label for entry in ledger.ledger] == ["topics of May"]
    assert active_accountant() is None
    with pytest.raises(TypeError, match="label must be a string; got 3"), ledger.labelled(3):
        pass


def test_a_ledger_is_a_table():
    ledger = PrivacyAccountant(2.0, 1e-5)
    assert ledger.to_frame().empty
    for guarantee, label in [(gaussian(8.0, 1e-6), "topics"), (gaussian(8.0, 1e-6), "more"), (pure(0.1), None)]:
        ledger.spend(guarantee, label)
    frame = ledger.to_frame()
    assert list(frame) == ["date", "label", "fitted", "epsilon", "delta", "status", "total_epsilon"]
    assert frame["label"].tolist() == ["topics", "more", None]
    assert str(frame["date"].dt.tz) == "UTC"
    totals = frame["total_epsilon"]
    assert totals.is_monotonic_increasing
    assert totals.iloc[1] == pytest.approx(epsilon_of(gaussian_event(8.0, 2), 1e-5 * 5 / 8))
    books = PrivacyAccountant(INF, 1e-5)
    books.spend(gaussian(8.0, 1e-6))
    assert books.to_frame()["total_epsilon"].tolist() == [epsilon_of(gaussian_event(8.0), 1e-5)]


@pytest.mark.parametrize("event", [gaussian_event(1.0, 200, 0.02), zcdp_event(0.02)])
def test_other_noise_is_added_up_by_its_divergence(event):
    one = PrivacyGuarantee(epsilon=epsilon_of(event, 1e-7), delta=1e-7, status="proven", event=event)
    ledger = PrivacyAccountant(4 * one.epsilon, 1e-6)
    for _ in range(6):
        ledger.spend(one)
    assert ledger.total.epsilon < ledger.epsilon
    ledger.spend(bare(ledger.remaining_epsilon))
    with pytest.raises(BudgetExceededError, match="adds up Renyi divergences"):
        ledger.spend(one)


@pytest.mark.parametrize(
    ("rule", "event"),
    [("gaussian", gaussian_event(200.0)), ("renyi", zcdp_event(1e-5)), ("renyi", gaussian_event(9e2))],
)
def test_what_events_leave_out_is_taken_from_the_reserve(rule, event):
    """Three releases each show all of a document with probability 1e-6: a reserve of 2.5e-6 pays for two of them."""
    one = PrivacyGuarantee(epsilon=1.0, delta=3e-6, status="proven", event=event, event_delta=1e-6)
    ledger = PrivacyAccountant(10.0, 1e-5, rule=rule, reserve=2.5e-6)
    ledger.spend(one)
    ledger.spend(one)
    for refuse in (ledger.check, ledger.spend):
        with pytest.raises(BudgetExceededError):
            refuse(one)
    ledger.spend(replace(one, event_delta=0.0))  # what leaves nothing out takes nothing
    exact = Rule(rule, 10.0, 1e-5, 2.5e-6, 32)
    assert exact.charge(one)[1] == 1e-6 and exact.charge(bare(0.1, 4e-7))[1] == 4e-7
    assert exact.cost(spent(one, one)) < 1.0 and exact.cost(spent(one, one, one)) == INF
    assert exact.cost(spent(bare(0.1, 2e-6))) < 1.0 and exact.cost(spent(bare(0.1, 2e-6), one)) == INF


def test_the_part_of_delta_that_is_reserved_pays_for_no_noise():
    """What is kept for one thing is not spent twice: the cost of noise is that at the rest of delta."""
    event = gaussian_event(3.0)
    one = PrivacyGuarantee(epsilon=2.0, delta=1e-6, status="proven", event=event)
    assert Rule("gaussian", 5.0, 1e-5, 9e-6).cost(spent(one)) == pytest.approx(epsilon_of(event, 1e-6), rel=1e-6)
    for name, order in (("gaussian", 0), ("renyi", 16)):
        small, large = (Rule(name, 5.0, 1e-5, kept, order) for kept in (9e-6, 0.0))
        assert small.cost(spent(one)) > large.cost(spent(one)) * 1.02 and small.capacity < large.capacity * 0.98


@pytest.mark.parametrize("order", [2, 16, 512])
def test_the_rule_of_divergences_is_the_formula_of_its_order(order):
    """Canonne, Kamath and Steinke (2020), Proposition 12; pure epsilon is randomized response at worst."""
    rule, delta = Rule("renyi", 50.0, 1e-5, 2e-6, order), 8e-6
    beyond = math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
    event = dp_event.ZCDpEvent(0.03, 0.2)
    noise = PrivacyGuarantee.from_event(event, 1e-5, status="proven")
    assert rule.cost(spent(noise)) == pytest.approx(0.2 + 0.03 * order + beyond, rel=1e-9)
    apart = (math.sinh(order * 0.05) - math.sinh((order - 1) * 0.05)) / math.sinh(0.05)
    pure = math.log(apart) / (order - 1)
    assert pure < min(0.05, order * 0.05**2 / 2)
    assert rule.cost(spent(noise, bare(0.05))) == pytest.approx(0.2 + 0.03 * order + pure + beyond, rel=1e-9)
    assert rule.capacity == pytest.approx(50.0 - beyond, rel=1e-9)


def test_one_fit_may_spend_the_whole_budget():
    for one in (gaussian(1.2, 1e-5), pure(5.0), bare(5.0, 1e-5), sampled(1e-5)):
        ledger = PrivacyAccountant(one.epsilon, one.delta)
        ledger.spend(one)
        with pytest.raises(BudgetExceededError):
            ledger.spend(pure(0.01))


def sampled(delta):
    event = gaussian_event(1.0, 100, 0.02)
    return PrivacyGuarantee(epsilon=epsilon_of(event, delta), delta=delta, status="proven", event=event)


@pytest.mark.parametrize("seed", range(3))
def test_what_remains_can_be_spent(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        accountant = PrivacyAccountant(float(rng.uniform(1, 20)), delta=1e-5)
        accountant.spend(gaussian(float(rng.uniform(8, 20)), 1e-6))
        for epsilon in rng.uniform(0, 0.1, 3):
            accountant.spend(bare(epsilon))
        rest = accountant.remaining_epsilon
        accountant.spend(bare(rest))
        assert accountant.remaining_epsilon <= 1e-5


def test_infinite_budget_only_keeps_books():
    accountant = PrivacyAccountant(INF)
    accountant.spend(bare(INF))
    accountant.spend(gaussian(1.0, 1e-6))
    assert accountant.remaining_epsilon == INF
    assert len(accountant.ledger) == 2


def test_finite_budget_refuses_no_privacy():
    with pytest.raises(BudgetExceededError):
        PrivacyAccountant(1e9, delta=0.5).spend(bare(INF))


@pytest.mark.parametrize(
    ("field", "mine", "theirs"),
    [("unit", "document", "user"), ("adjacency", "add-remove", "replace"), ("trust", "central", "local")],
)
def test_other_units_are_refused(field, mine, theirs):
    accountant = PrivacyAccountant(10.0)
    with pytest.raises(IncompatibleGuaranteeError, match=f"{field} '{mine}' and '{theirs}'"):
        accountant.spend(pure(1.0, **{field: theirs}))
    assert accountant.ledger == ()
    other = PrivacyAccountant(10.0, **{field: theirs})
    other.spend(pure(1.0, **{field: theirs}))
    assert getattr(other, field) == theirs


@pytest.mark.parametrize("status", ["claimed", "diagnostic"])
def test_unproven_guarantees_need_consent(status):
    guarantee = pure(1.0, status=status, reason="it fails")
    with pytest.raises(ValueError, match=f"status 'proven'; got '{status}'.*accept_claimed=True"):
        PrivacyAccountant(10.0).spend(guarantee)
    accountant = PrivacyAccountant(10.0, accept_claimed=True)
    accountant.spend(guarantee)
    assert accountant.total.status == status


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": 0}, ValueError, "epsilon must be > 0 or inf; got 0"),
        ({"epsilon": 1, "delta": 1}, ValueError, "delta must be >= 0 and < 1; got 1"),
        ({"epsilon": 1, "unit": "word"}, ValueError, "unit must be one of"),
        ({"epsilon": 1, "rule": "joint"}, ValueError, "rule must be one of"),
        ({"epsilon": 1, "delta": 1e-6, "reserve": 1e-5}, ValueError, "reserve must be None or at most"),
        ({"epsilon": 1, "accept_claimed": "no"}, TypeError, "accept_claimed must be True or False; got 'no'"),
    ],
)
def test_wrong_budgets(arguments, error, message):
    with pytest.raises(error, match=message):
        PrivacyAccountant(**arguments)


def test_wrong_spends():
    accountant = PrivacyAccountant(1.0)
    with pytest.raises(TypeError, match=r"guarantee must be a PrivacyGuarantee, such as privacy_guarantee_ .*; got 0"):
        accountant.spend(0)
    with pytest.raises(TypeError, match="label must be a string or None; got 3"):
        accountant.spend(pure(0.5), label=3)
    assert accountant.ledger == ()


def test_active_accountant_is_the_innermost():
    outer, inner = PrivacyAccountant(1.0), PrivacyAccountant(2.0)
    assert active_accountant() is None
    with outer as entered:
        assert entered is outer
        assert active_accountant() is outer
        with inner, outer:
            assert active_accountant() is outer
        assert active_accountant() is outer
        with pytest.raises(RuntimeError, match="interrupted"), inner:
            active_accountant().spend(pure(0.5))
            raise RuntimeError("interrupted")
        assert active_accountant() is outer
    assert active_accountant() is None
    assert len(inner.ledger) == 1


def test_other_threads_see_the_block():
    seen = []
    with PrivacyAccountant(1.0) as accountant:
        thread = threading.Thread(target=lambda: seen.append(active_accountant()))
        thread.start()
        thread.join()
    assert seen == [accountant]


def test_threads_never_overspend():
    accountant = PrivacyAccountant(1.0)
    refused = []

    def spend():
        for _ in range(20):
            try:
                accountant.spend(pure(1 / 32))
            except BudgetExceededError:
                refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert accountant.total.epsilon == 1.0
    assert (len(accountant.ledger), len(refused)) == (32, 48)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_ledger_cannot_be_copied(duplicate):
    with pytest.raises(TypeError, match=r"cannot be copied or pickled.*to_json"):
        duplicate(PrivacyAccountant(1.0))


def test_clone_refuses_a_ledger_in_an_estimator():
    class Estimator(BaseEstimator):
        def __init__(self, accountant=None):
            self.accountant = accountant

    with pytest.raises(TypeError, match="Do not make it a parameter of an estimator"):
        clone(Estimator(PrivacyAccountant(1.0)))


@pytest.mark.parametrize("epsilon", [2.0, INF])
def test_json_round_trip(epsilon):
    accountant = PrivacyAccountant(epsilon, 1e-5, accept_claimed=True)
    accountant.spend(gaussian(20.0, 1e-6), label="topics")
    accountant.spend(pure(0.1, status="claimed", reason="it fails"))
    back = PrivacyAccountant.from_json(accountant.to_json())
    assert back.ledger == accountant.ledger
    assert back.remaining_epsilon == accountant.remaining_epsilon
    assert back.to_json() == accountant.to_json()
    assert repr(back) == repr(accountant)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "skdplda.PrivacyGuarantee"}, "must have the format 'skdplda.PrivacyAccountant'"),
        ({"version": 0}, "version of skdplda.PrivacyAccountant must be 3; got 0"),
        ({"ledger": [1]}, "damaged"),
        ({"surplus": 1}, "damaged"),
        ({"epsilon": -1}, "damaged: epsilon must be > 0 or inf; got -1"),
    ],
)
def test_foreign_json_is_refused(change, message):
    data = json.loads(PrivacyAccountant(1.0).to_json()) | change
    with pytest.raises(ValueError, match=re.escape(message)):
        PrivacyAccountant.from_json(json.dumps(data))


def test_an_edited_entry_of_a_saved_ledger_does_not_load():
    accountant = PrivacyAccountant(1.0)
    accountant.spend(pure(1.0))
    data = json.loads(accountant.to_json())
    data["ledger"][0]["guarantee"]["epsilon"] = 0.001
    with pytest.raises(ValueError, match="epsilon must be at least what the event costs"):
        PrivacyAccountant.from_json(json.dumps(data))


def test_a_saved_ledger_loads_even_when_overspent():
    accountant = PrivacyAccountant(1.0)
    accountant.spend(pure(1.0))
    data = json.loads(accountant.to_json()) | {"epsilon": 0.5}
    back = PrivacyAccountant.from_json(json.dumps(data))
    assert back.total.epsilon == 1.0
    with pytest.raises(BudgetExceededError):
        back.check(pure(1e-6))


def test_a_budget_charge_is_asked_first_and_charged_once_a_run():
    with PrivacyAccountant(epsilon=1.0) as accountant:
        charge = BudgetCharge(bare(0.6), "fit")
        charge.check()
        assert accountant.ledger == ()
        charge.charge("a")
        charge.charge("a")
        assert [entry.label for entry in accountant.ledger] == ["fit a"]
        charge.check("a")
        with pytest.raises(BudgetExceededError):
            charge.check()
        with pytest.raises(BudgetExceededError):
            charge.charge("b")


@pytest.mark.parametrize("other", [{"epsilon": 100.0}, {"epsilon": 0.5}, {"sampling_rate": 0.5}, {"delta": 1e-6}])
def test_the_name_of_a_run_pays_for_no_other_guarantee(other, tmp_path):
    """One of epsilon=100 was spent for nothing under the name of one of epsilon=1."""
    settings = {"epsilon": 1.0, "delta": 1e-5, "max_iter": 4}
    ledgers = PrivacyAccountant(200.0, 1e-4), PrivacyAccountant.open(tmp_path / "ledger.json", 200.0, 1e-4)
    for ledger in ledgers:
        for _ in range(2):
            ledger.spend(PrivateCGSLDA(**settings).privacy_cost(), run="may")
        with pytest.raises(ValueError, match=r"run 'may' was charged.*Give another release a name of its own"):
            ledger.spend(PrivateCGSLDA(**settings | other).privacy_cost(), run="may")
        assert [entry.guarantee.epsilon for entry in ledger.ledger] == [1.0]


def test_a_budget_charge_without_a_ledger_costs_nothing(monkeypatch):
    asked = []
    for name in ("check", "spend"):
        monkeypatch.setattr(PrivacyAccountant, name, lambda *arguments, **options: asked.append(arguments))
    with PrivacyAccountant(epsilon=1.0) as closed:
        pass
    charge = BudgetCharge(PrivacyGuarantee(epsilon=float("inf")), "fit")
    assert charge.check() is None and charge.charge("a") is None
    assert not asked and closed.ledger == ()
    with PrivacyAccountant(epsilon=1.0):  # opened too late for that charge
        charge.charge("b")
        assert not asked
        BudgetCharge(PrivacyGuarantee(epsilon=0.5), "fit").charge("c")
    assert len(asked) == 1


# --- every estimator ------------------------------------------------------------------------------------


class Refused(Exception):
    """The ledger cannot be charged."""


def private_data(estimator, texts):
    """Return documents as the estimator takes them."""
    if estimator.__sklearn_tags__().input_tags.string:
        return texts
    return CountVectorizer().fit_transform(texts)


@pytest.fixture
def steps(monkeypatch):
    """What happens, in turn: each call of a noise sampler, here or on devices."""
    steps = []
    for module, name in ((_noise, "fill"), (_reports, "randomize")):
        sampler = getattr(module, name)

        def noted(*arguments, sampler=sampler):
            steps.append("noise")
            return sampler(*arguments)

        monkeypatch.setattr(module, name, noted)
    return steps


@pytest.fixture
def paying(private_estimator, texts):
    """An estimator whose fit states a guarantee, its data, and that guarantee."""
    data = private_data(private_estimator, texts)
    private_estimator.fit(data)
    if not hasattr(private_estimator, "privacy_guarantee_"):
        assert type(private_estimator).__name__ == "LocalRandomizer"  # whose reports state one
        pytest.skip("fit releases nothing")
    guarantee = private_estimator.privacy_guarantee_
    return clone(private_estimator), data, guarantee


def ledger_for(guarantee):
    terms = {"unit": guarantee.unit, "adjacency": guarantee.adjacency, "trust": guarantee.trust}
    accept_claimed = guarantee.status != "proven"
    return PrivacyAccountant(guarantee.epsilon, guarantee.delta, accept_claimed=accept_claimed, **terms)


@pytest.mark.filterwarnings("ignore:X is a plain document-term matrix:UserWarning")
@pytest.mark.filterwarnings("ignore:epsilon=.*is too small for 3 sweeps:UserWarning")
@pytest.mark.filterwarnings("ignore:.*(published form|path of 2016):skdplda.PrivacyLeakWarning")
def test_every_estimator_is_charged_once_and_before_it_draws_noise(paying, steps, monkeypatch):
    estimator, data, guarantee = paying
    spend = PrivacyAccountant.spend

    def charge(accountant, guarantee, label=None, **options):
        steps.append("charge")
        spend(accountant, guarantee, label, **options)

    monkeypatch.setattr(PrivacyAccountant, "spend", charge)
    steps.clear()
    with ledger_for(guarantee) as book:
        assert "_open_ledgers" in estimator.__getstate__()  # workers that get it are told
        estimator.fit(data)
    assert steps[0] == "charge" and steps.count("charge") == 1
    assert "noise" in steps or guarantee.status != "proven"  # published forms draw noise of their own
    (charged,) = (entry.guarantee for entry in book.ledger)
    of_part = charged.released != guarantee.released  # of TextEmbedder its vectorizer is charged
    assert not of_part or guarantee.released == tuple(f"{item} of vectorizer_" for item in charged.released)
    assert replace(charged, released=()) == replace(guarantee, released=())


@pytest.mark.filterwarnings("ignore:X is a plain document-term matrix:UserWarning")
@pytest.mark.filterwarnings("ignore:epsilon=.*is too small for 3 sweeps:UserWarning")
@pytest.mark.filterwarnings("ignore:.*(published form|path of 2016):skdplda.PrivacyLeakWarning")
def test_no_estimator_draws_noise_that_it_cannot_pay_for(paying, steps, monkeypatch):
    estimator, data, guarantee = paying

    def refuse(accountant, guarantee, label=None, **options):
        raise Refused

    monkeypatch.setattr(PrivacyAccountant, "spend", refuse)
    steps.clear()
    with ledger_for(guarantee), pytest.raises(Refused):
        estimator.fit(data)
    assert not steps and not hasattr(estimator, "privacy_guarantee_")


def test_a_ledger_of_more_searches_than_are_accounted_together_can_be_read():
    """The sums hold; a refusal, and what was spent, are told."""
    accountant = PrivacyAccountant(1e3, 1e-3)
    events = [selection_event(gaussian_event(50.0 + number), 3.0) for number in range(65)]
    guarantees = [PrivacyGuarantee.from_event(event, 1e-6, status="proven") for event in events]
    for guarantee in guarantees:
        accountant.spend(guarantee)
    assert accountant.total.epsilon == pytest.approx(sum(guarantee.epsilon for guarantee in guarantees))
    assert accountant.total.delta == 1e-3 and accountant.total.event is None
    with pytest.raises(BudgetExceededError, match="Nothing was spent"):
        accountant.spend(PrivacyGuarantee(epsilon=1e4, status="proven", reference="a theorem"))


@pytest.mark.parametrize("rule", ["auto", "basic", "gaussian", "renyi"])
def test_what_remains_of_a_new_ledger_fits(rule):
    accountant = PrivacyAccountant(1.0, 1e-6, rule=rule)
    rest = accountant.remaining_epsilon
    assert 0 < rest <= 1.0 and (rest == 1.0) == (rule in ("auto", "basic"))
    accountant.spend(PrivacyGuarantee(epsilon=rest, status="proven", event=pure_event(rest)))
    assert accountant.remaining_epsilon < 0.01
