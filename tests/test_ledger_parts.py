"""Parts of the data in a ledger: a unit pays for the dearest parts that it may be in, never for less."""

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import combinations

import joblib
import numpy as np
import pytest
from internals import choose_filter
from scipy.stats import norm

from skdplda import PCTD, VIPSLDA, EmbeddingTopics, PrivateCGSLDA
from skdplda.cli import main
from skdplda.exceptions import BudgetExceededError
from skdplda.privacy import (
    LedgerEntry,
    PrivacyAccountant,
    PrivacyGuarantee,
    calibrate_gaussian,
    divide_epsilon,
    epsilon_of,
    gaussian_event,
    pure_event,
)

DELTA = 1e-6
COUNTS = np.random.default_rng(5).integers(0, 3, size=(40, 12))


def pure(epsilon):
    return PrivacyGuarantee(epsilon=epsilon, status="proven", event=pure_event(epsilon))


def gaussian(sigma, delta=DELTA, event_delta=0.0):
    event = gaussian_event(sigma)
    fields = {"delta": delta, "event_delta": event_delta, "status": "proven", "event": event}
    return PrivacyGuarantee(epsilon=epsilon_of(event, delta - event_delta), **fields)


def spend(ledger, part, guarantee, **fields):
    if part is None:
        ledger.spend(guarantee, **fields)
    else:
        with ledger.part(part):
            ledger.spend(guarantee, **fields)


@pytest.mark.parametrize("rule", ["auto", "basic", "gaussian", "renyi"])
@pytest.mark.parametrize("max_parts", [1, 2, 3, 7])
def test_it_costs_what_the_worst_unit_pays(rule, max_parts):
    """By enumeration of all units: each is in some of the parts, and the filter without parts says what it pays."""
    rng = np.random.default_rng(max_parts)
    entries = [
        LedgerEntry(None, pure(rng.uniform(0.01, 0.1)) if rng.random() < 0.3 else gaussian(rng.uniform(20, 60)))
        for _ in range(9)
    ]
    names = [None, "May", "June", "July", "August"]
    entries = [entry._replace(part=names[rng.integers(len(names))]) for entry in entries]
    found = choose_filter(rule, 5.0, 1e-5, None, gaussian(30.0))
    units = [set(some) | {None} for n in range(max_parts + 1) for some in combinations(names[1:], n)]
    own = [found.cost([entry for entry in entries if entry.part in unit]) for unit in units]
    assert found.cost(entries, max_parts) == pytest.approx(max(own), rel=1e-12)
    if rule != "auto":  # of one rule; the better of two for the worst unit may be worse than the best for each
        assert found.cost(entries, max_parts) == max(own)


def test_failures_of_parts_are_those_of_the_worst_unit():
    ledger = PrivacyAccountant(4.0, 1e-5, max_parts=2, rule="gaussian", reserve=4e-6)
    for month in range(6):
        spend(ledger, f"month {month}", gaussian(200.0, 1e-5, event_delta=2e-6))
    with pytest.raises(BudgetExceededError, match=r"add up to 6e-6"):  # a third in one part
        spend(ledger, "month 0", gaussian(200.0, 1e-5, event_delta=2e-6))
    with pytest.raises(BudgetExceededError):
        spend(ledger, None, gaussian(200.0, 1e-5, event_delta=2e-6))


def test_the_law_of_the_worst_unit_keeps_the_budget():
    """The delta of a unit in two parts of many, by the formula of Gaussian noise, when the ledger accepts no more."""
    ledger = PrivacyAccountant(2.0, 1e-5, max_parts=2, rule="gaussian", reserve=0.0)
    sigmas = {}
    for month, sigma in enumerate([4.0, 3.0, 6.0, 2.9, 5.0, 3.0]):
        try:
            spend(ledger, str(month), gaussian(sigma))
            sigmas[month] = sigma
        except BudgetExceededError:
            pass
    assert len(sigmas) > 2
    mu = math.sqrt(sum(sorted((1 / s**2 for s in sigmas.values()), reverse=True)[:2]))
    assert norm.cdf(mu / 2 - 2 / mu) - math.exp(2) * norm.cdf(-mu / 2 - 2 / mu) <= 1e-5
    assert ledger.total.epsilon <= 2.0 and ledger.to_frame()["total_epsilon"].iloc[-1] == ledger.total.epsilon


@pytest.mark.parametrize("make", [EmbeddingTopics, PrivateCGSLDA, VIPSLDA, PCTD])
def test_a_divided_budget_is_that_of_as_many_fits(make):
    costs = [make(epsilon=part, delta=DELTA).privacy_cost() for part in divide_epsilon(2.0, DELTA, [3, *[1] * 11])]
    ledger = PrivacyAccountant(2.0, DELTA, rule="gaussian", reserve=0.0)
    for cost in costs:
        ledger.spend(cost)
    assert 1.999 < ledger.to_frame()["total_epsilon"].iloc[-1] <= 2.0 and ledger.remaining_epsilon < 0.02
    with pytest.raises(BudgetExceededError):
        ledger.spend(costs[-1])


@pytest.mark.parametrize("shares", [[], [0.0], [-1.0, 2.0], [math.inf], [math.nan]])
def test_shares_that_are_none_are_refused(shares):
    with pytest.raises(ValueError, match="shares"):
        divide_epsilon(1.0, DELTA, shares)


def test_a_user_in_every_month_has_no_thirteenth():
    sigma = calibrate_gaussian(2.0, DELTA, steps=12) * (1 + 1e-9)
    ledger = PrivacyAccountant(2.0, DELTA, unit="user", rule="gaussian", reserve=0.0)
    parted = PrivacyAccountant(2.0, DELTA, unit="user", rule="gaussian", reserve=0.0, max_parts=12)
    one = gaussian(sigma)
    one = PrivacyGuarantee(epsilon=one.epsilon, delta=DELTA, unit="user", status="proven", event=one.event)
    for month in range(12):
        ledger.spend(one)
        spend(parted, str(month), one)
    with pytest.raises(BudgetExceededError):
        ledger.spend(one)
    assert parted.total.event == ledger.total.event and parted.total.epsilon == ledger.total.epsilon
    for month in range(12, 20):  # of other users: each is in twelve months at most
        spend(parted, str(month), one)
    with pytest.raises(BudgetExceededError):
        spend(parted, "3", one)
    with pytest.raises(BudgetExceededError):
        parted.check(one)
    assert ledger.max_parts is None and parted.max_parts == 12


def test_months_of_different_documents_cost_what_one_does():
    ledger = PrivacyAccountant(1.0, max_parts=1)
    for month in range(12):
        spend(ledger, str(month), pure(0.75))
    total = ledger.total
    assert (total.epsilon, total.event, total.status) == (0.75, None, "proven")
    assert "Theorem 5" in total.reference and ledger.assertion in total.assumptions
    assert "at most 1 part of" in ledger.assertion and "did not depend on earlier ones" in total.assumptions[-1]
    assert ledger.remaining_epsilon == 0.25
    with pytest.raises(BudgetExceededError):
        spend(ledger, "3", pure(0.26))
    spend(ledger, None, pure(0.25))
    assert ledger.remaining_epsilon == 0.0 and ledger.to_frame()["part"].tolist() == [*map(str, range(12)), None]


def test_fits_know_their_part():
    ledger = PrivacyAccountant(4.0, 1e-5, max_parts=1)
    model = PrivateCGSLDA(2, epsilon=1.5, delta=1e-6, max_iter=2)
    with ledger.part("May"):
        model.fit(COUNTS)
        with ledger.labelled("named"), ThreadPoolExecutor(1) as pool:
            pool.submit(model.fit, COUNTS).result()
            with ledger.part("May", label="again"):
                ledger.spend(pure(0.1))
        with pytest.raises(ValueError, match="within one of part 'May'"), ledger.part("June"):
            pass
    with ledger:
        model.fit(COUNTS)
    assert [(entry.label, entry.part) for entry in ledger.ledger[1:]] == [
        ("named", None),  # in a thread without a block of its own
        ("again", "May"),
        (ledger.ledger[3].run, None),
    ]


def test_a_thread_of_no_known_part_pays_for_all():
    """Another thread has another part open: whose fit this is, nobody knows."""
    ledger, opened, done = PrivacyAccountant(4.0, max_parts=1), threading.Event(), threading.Event()

    def june():
        with ledger.part("June"):
            opened.set()
            done.wait(60)
            ledger.spend(pure(0.1))

    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(june)
        opened.wait(60)
        with ledger.part("May"):
            pool.submit(ledger.spend, pure(0.2)).result()
            ledger.spend(pure(0.3))
        done.set()
        running.result()
    assert [entry.part for entry in ledger.ledger] == [None, "May", "June"]


def test_a_fit_in_another_process_counts_as_of_all_parts(tmp_path):
    ledger = PrivacyAccountant.open(tmp_path / "ledger", 4.0, 1e-5, max_parts=1)
    model = PrivateCGSLDA(2, epsilon=0.5, delta=1e-6, max_iter=2)
    with ledger.part("May"):
        joblib.Parallel(2, backend="loky")(joblib.delayed(model.fit)(COUNTS) for _ in range(2))
        model.fit(COUNTS)
    assert sorted(str(entry.part) for entry in ledger.ledger) == ["May", "None", "None"]


def test_a_stream_does_not_leave_its_part():
    stream = VIPSLDA(2, epsilon=1.0, learning_method="online", max_iter=3, nominal_size=100)
    ledger = PrivacyAccountant(4.0, 1e-4, max_parts=1)
    with ledger.part("May"):
        stream.partial_fit(COUNTS)
    table = stream.components_.copy()
    for block in (ledger.part("June"), ledger):
        with pytest.raises(ValueError, match=r"charged to part 'May' .* Nothing was released"), block:
            stream.partial_fit(COUNTS)
        np.testing.assert_array_equal(stream.components_, table)
    with ledger.part("May"):
        stream.partial_fit(COUNTS)
    other = VIPSLDA(2, epsilon=1.0, learning_method="online", max_iter=2, nominal_size=100)
    with ledger:
        other.partial_fit(COUNTS)
    with ledger.part("June"):  # it is charged for all parts
        other.partial_fit(COUNTS)
    assert [entry.part for entry in ledger.ledger] == ["May", None]


def test_a_ledger_keeps_its_parts(tmp_path):
    ledger = PrivacyAccountant.open(tmp_path / "ledger", 1.0, max_parts=1)
    spend(ledger, "May", pure(0.5))
    spend(ledger, "June", pure(0.75), label="topics")
    for again in (PrivacyAccountant.from_json(ledger.to_json()), PrivacyAccountant.open(tmp_path / "ledger")):
        assert again.max_parts == 1 and again.ledger == ledger.ledger and again.remaining_epsilon == 0.25
        assert [entry.label for entry in again.ledger] == ["May", "topics"]
    with pytest.raises(ValueError, match=r"max_parts of the ledger .* is 1; got 2"):
        PrivacyAccountant.open(tmp_path / "ledger", max_parts=2)


def test_a_ledger_without_parts_is_written_as_before():
    ledger = PrivacyAccountant(1.0)
    ledger.spend(pure(0.5))
    data = json.loads(ledger.to_json())
    assert "max_parts" not in data and "part" not in data["ledger"][0]
    assert "part" not in ledger.to_frame()


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "two", 2**60])
def test_what_is_no_number_of_parts_is_refused(wrong):
    with pytest.raises(ValueError, match="max_parts must be None or an integer"):
        PrivacyAccountant(1.0, max_parts=wrong)


def test_where_parts_do_not_hold_they_are_refused():
    with pytest.raises(ValueError, match="may leave some parts and enter others"):
        PrivacyAccountant(1.0, adjacency="replace", max_parts=1)
    with pytest.raises(ValueError, match="a finite epsilon"):
        PrivacyAccountant(math.inf, max_parts=1)
    with pytest.raises(ValueError, match="has no parts"), PrivacyAccountant(1.0).part("May"):
        pass
    with pytest.raises(TypeError, match="name must be a string"), PrivacyAccountant(1.0, max_parts=1).part(5):
        pass


def test_a_thread_of_its_own_block_is_in_no_part_of_others():
    """What it reads, it says itself: a block without a part counts for everyone."""
    ledger = PrivacyAccountant(1.0, max_parts=1)

    def all_data():
        with ledger:
            ledger.spend(pure(0.75))

    with ThreadPoolExecutor(1) as pool, ledger.part("May"):
        pool.submit(all_data).result()
    with pytest.raises(BudgetExceededError, match="in part 'June'"), ledger.part("June"):
        ledger.spend(pure(0.75))
    assert [entry.part for entry in ledger.ledger] == [None]


def test_a_task_that_outlives_its_block_is_charged_to_no_other():
    """Its context has the block of May, which is closed: the part of June's block is not its own."""
    ledger = PrivacyAccountant(1.0, max_parts=1)
    with ledger.part("May"):
        context = copy_context()
    with ledger.part("June"):
        context.run(ledger.spend, pure(0.1))
    assert [entry.part for entry in ledger.ledger] == [None]


def test_a_block_closes_itself_and_no_other():
    ledger = PrivacyAccountant(1.0, max_parts=2)
    may = ledger.part("May")
    may.__enter__()
    with ledger.part("May", label="inner"):
        may.__exit__(None, None, None)
        ledger.spend(pure(0.1))
    assert [(entry.label, entry.part) for entry in ledger.ledger] == [("inner", "May")]


def test_names_that_a_file_would_confuse_are_one_part_or_none():
    ledger = PrivacyAccountant(1.0, max_parts=1)
    for name in ("", " May", "May\n", "\ud83d\ude00"):
        with pytest.raises(ValueError, match="name must be of characters"), ledger.part(name):
            pass
    for name in ("Ma\u0308r", "M\u00e4r"):
        spend(ledger, name, pure(0.25))
    assert ledger.remaining_epsilon == 0.5 and {entry.part for entry in ledger.ledger} == {"M\u00e4r"}


def test_a_ledger_says_that_it_has_parts(tmp_path, capsys):
    path = str(tmp_path / "ledger")
    ledger = PrivacyAccountant.open(path, 1.0, 1e-6, max_parts=2)
    with ledger.part("May", label="topics"):
        ledger.spend(pure(0.25))
    assert "max_parts=2" in repr(ledger) and PrivacyAccountant(1.0).assertion is None
    assert main(["ledger", path]) == 0
    said = capsys.readouterr().out
    assert "part May: topics" in said and "Asserted: one document is in at most 2 parts of the data" in said
    assert main(["ledger", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["max_parts"] == 2
