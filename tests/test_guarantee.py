"""Guarantees as values: validation, composition, groups, round trips and the published statement."""

import json
import math
import pickle
import re
import textwrap
from dataclasses import FrozenInstanceError, replace
from decimal import Decimal
from fractions import Fraction
from html import escape
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from dp_accounting import dp_event
from internals import accounting as _accounting
from internals import joint_epsilon

from skdplda import HDPLDA, PCTD, VIPSLDA, DPVocabularySelector, EmbeddingTopics, PrivateCGSLDA
from skdplda.exceptions import IncompatibleGuaranteeError
from skdplda.privacy import (
    Adjacency,
    PrivacyGuarantee,
    PrivacyUnit,
    Status,
    TrustModel,
    calibrate_gaussian,
    check_code,
    compose_events,
    delta_of,
    epsilon_of,
    epsilon_with_sampler_error,
    gaussian_event,
    pure_event,
    right_of_100,
    selection_event,
    zcdp_event,
)

INF = math.inf


def gaussian(sigma=4.0, steps=10, delta=1e-6, rate=1.0, **fields):
    event = gaussian_event(sigma, steps, rate)
    return PrivacyGuarantee(epsilon=epsilon_of(event, delta), delta=delta, event=event, **fields)


def pure(epsilon, steps=1, **fields):
    return PrivacyGuarantee(epsilon=steps * epsilon, event=pure_event(epsilon, steps), **fields)


def full():
    from dp_accounting import ComposedDpEvent

    event = ComposedDpEvent([gaussian_event(4.0, 10, 0.1), pure_event(0.1), zcdp_event(0.01)])
    return PrivacyGuarantee(
        epsilon=np.float64(3.5),
        delta=1e-6,
        unit="user",
        adjacency="add-remove",
        trust="central",
        status="claimed",
        reason="totals leak",
        mechanism="gaussian",
        released=["noisy tables", "topics"],
        not_covered=["vocabulary"],
        assumptions=["the seed is secret"],
        reference="Theorem 1",
        reviewed="a reader",
        event=event,
    )


# --- the value ----------------------------------------------------------------------------------------


def test_strings_and_lists_are_coerced():
    guarantee = full()
    assert guarantee.unit is PrivacyUnit.USER
    assert guarantee.adjacency is Adjacency.ADD_REMOVE
    assert guarantee.trust is TrustModel.CENTRAL
    assert guarantee.status is Status.CLAIMED
    assert guarantee.released == ("noisy tables", "topics")
    assert type(guarantee.epsilon) is float


def test_defaults_are_the_plainest_guarantee():
    guarantee = PrivacyGuarantee(epsilon=1)
    assert (guarantee.delta, guarantee.unit, guarantee.adjacency) == (0.0, "document", "add-remove")
    assert (guarantee.trust, guarantee.status, guarantee.event) == ("central", "claimed", None)


@pytest.mark.parametrize(
    ("event", "true"), [(gaussian_event(3.0), "1.44"), (pure_event(0.5), "0.49"), (gaussian_event(3.0, 9, 0.5), "2.56")]
)
def test_numbers_given_by_hand_are_checked_against_the_event(event, true):
    with pytest.raises(ValueError, match=rf"epsilon must be at least what the event costs at delta=1e-06: {true}"):
        PrivacyGuarantee(epsilon=0.1, delta=1e-6, status="proven", event=event)
    cost = epsilon_of(event, 1e-6)
    assert PrivacyGuarantee(epsilon=cost, delta=1e-6, status="proven", event=event).status == "proven"
    with pytest.raises(ValueError, match="costs at delta"):  # half of delta is spoken for
        PrivacyGuarantee(epsilon=0.99 * cost, delta=1e-6, event=event, event_delta=5e-7)


def test_proven_is_never_a_default_and_needs_a_proof():
    assert PrivacyGuarantee(epsilon=3.0, event=pure_event(3.0)).status == "claimed"
    with pytest.raises(ValueError, match=r"'proven' must have the event .* or the reference"):
        PrivacyGuarantee(epsilon=0.1, status="proven")
    assert PrivacyGuarantee(epsilon=0.1, status="proven", reference="Theorem 1").status == "proven"
    assert PrivacyGuarantee(epsilon=INF, status="proven").status == "proven"


def test_an_edited_epsilon_does_not_load():
    data = json.loads(gaussian(status="proven").to_json()) | {"epsilon": 0.001}
    with pytest.raises(ValueError, match="epsilon must be at least what the event costs"):
        PrivacyGuarantee.from_json(json.dumps(data))


def test_frozen_and_keyword_only():
    with pytest.raises(FrozenInstanceError):
        full().epsilon = 0.1
    with pytest.raises(TypeError):
        PrivacyGuarantee(1.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"epsilon": -1}, "epsilon must be >= 0 or inf; got -1"),
        ({"epsilon": float("nan")}, "epsilon must be >= 0 or inf; got nan"),
        ({"delta": 1.5}, "delta must be >= 0 and <= 1; got 1.5"),
        ({"delta": float("nan")}, "delta must be >= 0 and <= 1; got nan"),
        ({"unit": "word"}, "unit must be one of 'document', 'token', 'user', 'bit'; got 'word'"),
        ({"adjacency": "swap"}, "adjacency must be one of 'add-remove', 'replace'; got 'swap'"),
        ({"trust": "shuffle"}, "trust must be one of 'central', 'local'; got 'shuffle'"),
        ({"status": "true"}, "status must be one of 'proven', 'claimed', 'diagnostic'; got 'true'"),
    ],
)
def test_wrong_values_are_refused(fields, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        PrivacyGuarantee(**{"epsilon": 1.0, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"epsilon": "1"},
        {"released": "topics"},
        {"assumptions": [1]},
        {"mechanism": None},
        {"event": "gaussian"},
    ],
)
def test_wrong_types_are_refused(fields):
    with pytest.raises(TypeError, match=next(iter(fields))):
        PrivacyGuarantee(**{"epsilon": 1.0, **fields})


def test_sampling_needs_add_remove():
    with pytest.raises(ValueError, match="Poisson-sampled event has adjacency 'add-remove' only"):
        gaussian(rate=0.1, adjacency="replace")
    assert gaussian(adjacency="replace").adjacency == "replace"


def test_equal_guarantees_hash_alike():
    assert full() == full()
    assert hash(full()) == hash(full())
    assert len({full(), full(), replace(full(), delta=1e-7)}) == 2


# --- round trips --------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1e-300, 0.0, 3.5, INF])
def test_pickle_and_json_round_trips(epsilon):
    guarantee = replace(full(), epsilon=epsilon, event=full().event if epsilon > 3 else None)
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee
    back = PrivacyGuarantee.from_json(guarantee.to_json())
    assert back == guarantee
    assert hash(back) == hash(guarantee)
    assert back.event == guarantee.event


@pytest.mark.parametrize("event", [None, gaussian_event(0), gaussian_event(2.0), pure_event(0.0)])
def test_every_event_survives_json(event):
    guarantee = PrivacyGuarantee(epsilon=INF, event=event)
    text = guarantee.to_json()
    assert json.loads(text)["epsilon"] == "inf"
    assert PrivacyGuarantee.from_json(text) == guarantee


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "must have the format 'skdplda.PrivacyGuarantee'; got 'other'"),
        ({"version": 2}, "version of skdplda.PrivacyGuarantee must be 1; got 2"),
        ({"surplus": 1}, "must have the fields"),
        ({"event": {"type": "Popen"}}, "name of a dp-accounting event; got 'Popen'"),
        ({"event": {"type": "List"}}, "name of a dp-accounting event; got 'List'"),
        (
            {"event": {"type": "GaussianDpEvent", "sigma": 1}},
            "fields of the event GaussianDpEvent do not fit",
        ),
    ],
)
def test_foreign_json_is_refused(change, message):
    data = json.loads(full().to_json()) | change
    with pytest.raises(ValueError, match=re.escape(message)):
        PrivacyGuarantee.from_json(json.dumps(data))


@pytest.mark.parametrize("change", [{"released": 3}, {"unit": []}, {"epsilon": "1"}, {"event": 3}, {"reason": None}])
def test_fields_of_another_type_are_refused(change):
    with pytest.raises(ValueError, match=r"must|fit|not a valid"):
        PrivacyGuarantee.from_json(json.dumps(json.loads(full().to_json()) | change))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "[" * 100_000])
def test_not_a_guarantee(text):
    with pytest.raises(ValueError, match="JSON"):
        PrivacyGuarantee.from_json(text)


# --- the profile --------------------------------------------------------------------------------------


def test_profile_passes_through_the_stated_point():
    guarantee = gaussian()
    assert guarantee.epsilon_at(1e-6) == guarantee.epsilon
    assert guarantee.delta_at(guarantee.epsilon) <= 1e-6
    assert guarantee.epsilon_at(1e-9) > guarantee.epsilon > guarantee.epsilon_at(1e-3)
    assert guarantee.epsilon_at(0.0) == INF
    assert guarantee.delta_at(0.0) > guarantee.delta_at(1.0) > 0


def test_profile_without_an_event_is_refused():
    guarantee = PrivacyGuarantee(epsilon=1.0, delta=1e-6)
    for call in (guarantee.epsilon_at, guarantee.delta_at):
        with pytest.raises(ValueError, match="carries no event"):
            call(0.1)


# --- composition --------------------------------------------------------------------------------------


def test_pure_composition_adds_up_exactly():
    total = pure(0.1).compose(*[pure(0.1)] * 9)
    assert total.epsilon == 1.0
    assert total.event == pure_event(0.1, 10)


def test_joint_accounting_beats_the_sum():
    total = gaussian(4.0, 10).compose(gaussian(4.0, 10), gaussian(8.0, 3))
    assert total.delta == pytest.approx(3e-6)
    assert total.epsilon < 0.7 * (2 * gaussian(4.0, 10).epsilon + gaussian(8.0, 3).epsilon)
    assert total.epsilon == epsilon_of(total.event, total.delta)


def test_composition_is_never_larger_than_the_sum():
    one = PrivacyGuarantee(epsilon=0.2, delta=1e-6)
    other = PrivacyGuarantee(epsilon=0.5, event=pure_event(0.5))
    total = one.compose(other, one)
    assert (total.epsilon, total.event) == (0.9, None)
    assert "basic composition" in total.reference


def test_parts_without_event_are_added_to_the_joint_rest():
    bare = PrivacyGuarantee(epsilon=0.5, delta=1e-7)
    joint = gaussian().compose(gaussian())
    total = gaussian().compose(bare, gaussian())
    assert total.epsilon == pytest.approx(joint.epsilon + 0.5, rel=1e-12)
    assert total.delta == pytest.approx(2.1e-6, rel=1e-12)
    assert total.event is None


def test_composition_unites_words_and_keeps_the_weakest_status():
    proven = gaussian(mechanism="gaussian", released=["a", "b"], assumptions=["x"], not_covered=["n"])
    claimed = gaussian(status="claimed", reason="why", mechanism="laplace", released=["b", "c"], reference="R")
    diagnostic = gaussian(status="diagnostic", reason="why", mechanism="gaussian")
    total = proven.compose(claimed, diagnostic)
    assert total.status == "diagnostic"
    assert proven.compose(claimed).status == claimed.compose(proven).status == "claimed"
    assert total.released == ("a", "b", "c")
    assert (total.assumptions, total.not_covered) == (("x",), ("n",))
    assert (total.mechanism, total.reason, total.reference) == (
        "2 releases, each for itself: gaussian; 1 release: laplace",
        "why",
        "R",
    )


def test_a_review_is_told_and_covers_no_more_than_was_reviewed():
    read, unread = (pure(0.1, status="proven", reviewed=name) for name in ("A. Reader (2026)", ""))
    said, unsaid, both = (" ".join(str(one).split()) for one in (read, unread, read.compose(unread)))
    assert "reviewed by A. Reader (2026)" in said and "no review by others is recorded" in unsaid and unread == read
    assert "no review by others is recorded" in both and "A. Reader" not in both
    assert read.compose(read).reviewed == "A. Reader (2026)"
    assert PrivacyGuarantee.from_json(read.to_json()).reviewed == "A. Reader (2026)"


def test_nothing_to_compose_with():
    guarantee = full()
    assert guarantee.compose() is guarantee


@pytest.mark.parametrize(
    ("field", "mine", "theirs"),
    [("unit", "document", "token"), ("adjacency", "add-remove", "replace"), ("trust", "central", "local")],
)
def test_unlike_guarantees_never_compose(field, mine, theirs):
    one, other = pure(1.0, **{field: mine}), pure(1.0, **{field: theirs})
    with pytest.raises(IncompatibleGuaranteeError, match=f"{field} '{mine}' and '{theirs}'"):
        one.compose(other)


def test_infinite_epsilon_stays_infinite():
    for nothing in (PrivacyGuarantee(epsilon=INF), PrivacyGuarantee(epsilon=INF, event=gaussian_event(0))):
        assert gaussian().compose(nothing).epsilon == INF
        assert nothing.compose(gaussian()).epsilon == INF


def test_deltas_cap_at_one():
    half = PrivacyGuarantee(epsilon=1.0, delta=0.75)
    assert half.compose(half).delta == 1.0


# --- groups -------------------------------------------------------------------------------------------


def test_group_formula_without_an_event():
    group = PrivacyGuarantee(epsilon=0.5, delta=1e-6).for_group(4)
    assert group.epsilon == 2.0
    assert group.delta >= 1e-6 * (1 + math.exp(0.5) + math.exp(1.0) + math.exp(1.5)) * (1 - 1e-15)
    assert group.delta == pytest.approx(1e-6 * math.expm1(2.0) / math.expm1(0.5), rel=1e-9)
    assert group.unit == "document"
    assert "group of 4 units" in group.assumptions[-1]
    assert "group of 4 units" in " ".join(str(group).split())


def test_group_delta_is_capped():
    assert PrivacyGuarantee(epsilon=5.0, delta=1e-2).for_group(10).delta == 1.0
    assert PrivacyGuarantee(epsilon=500.0, delta=1e-9).for_group(10).delta == 1.0
    assert PrivacyGuarantee(epsilon=0.0, delta=1e-3).for_group(5).delta == pytest.approx(5e-3)
    assert PrivacyGuarantee(epsilon=INF).for_group(2).epsilon == INF


def test_group_of_exact_events():
    group = gaussian(6.0, 10).for_group(3)
    assert (group.epsilon, group.delta) == (pytest.approx(epsilon_of(gaussian_event(2.0, 10), 1e-6), rel=1e-9), 1e-6)
    assert pure(0.25, 4).for_group(3).epsilon == 3.0
    zcdp = PrivacyGuarantee(epsilon=9.0, delta=1e-6, event=zcdp_event(0.01)).for_group(2)
    assert zcdp.epsilon == pytest.approx(epsilon_of(zcdp_event(0.04), 1e-6), rel=1e-9)
    for cost, exact in ((group, gaussian_event(2.0, 10)), (zcdp, zcdp_event(0.04))):  # room for the samplers' error
        assert cost.epsilon >= epsilon_of(exact, 1e-6 * (1 - 2.0**-45)) + 2.0**-45


def test_groups_keep_sensitivities_counts_and_what_zcdp_adds():
    """Of events as others write them: loaded ones, and those of dp-accounting itself."""
    once = dp_event.DiscreteLaplaceDpEvent(0.1, 3)
    event = dp_event.SelfComposedDpEvent(dp_event.SelfComposedDpEvent(dp_event.ComposedDpEvent([once]), 2), 5)
    one = PrivacyGuarantee.from_event(event, 0.0, status="proven")
    assert one.epsilon == pytest.approx(3.0) and one.for_group(2).epsilon == pytest.approx(6.0)
    offset = PrivacyGuarantee.from_event(dp_event.ZCDpEvent(0.01, 0.1), 1e-6, status="proven")
    group = offset.for_group(2)
    assert group.event is None and group.epsilon == 2 * offset.epsilon and group.delta > 2e-6


def test_a_group_pays_for_the_error_of_the_samplers():
    for event in (gaussian_event(5.0), zcdp_event(0.02)):
        exact = epsilon_of(event, 1e-3 * (1 - 2.0**-40)) + 2.0**-40
        assert epsilon_with_sampler_error(event, 1e-3) == exact > epsilon_of(event, 1e-3)
        assert epsilon_of(event, 1e-3 * (1 - 2.0**-20)) > epsilon_of(event, 1e-3)
    with patch.object(_accounting, "epsilon_of", side_effect=lambda event, delta: delta):
        assert epsilon_with_sampler_error(None, 0.5) == 0.5 * (1 - 2.0**-40) + 2.0**-40


def test_what_zcdp_adds_is_part_of_epsilon():
    """Canonne, Kamath and Steinke (2020), Proposition 12, at the best of many orders."""
    rho, xi, delta = 0.02, 0.3, 1e-6
    order = 1 + np.exp(np.linspace(-6, 12, 20_001))
    best = (xi + rho * order + np.log1p(-1 / order) - (math.log(delta) + np.log(order)) / (order - 1)).min()
    assert epsilon_of(dp_event.ZCDpEvent(rho, xi), delta) == pytest.approx(best, rel=1e-6)
    assert epsilon_of(zcdp_event(rho), delta) == pytest.approx(best - xi, rel=1e-6)
    assert delta_of(dp_event.ZCDpEvent(rho, xi), best) == pytest.approx(delta, rel=1e-4)


def test_an_event_must_fit_into_the_delta_that_it_does_not_leave_out():
    event = gaussian_event(4.0)
    least = epsilon_of(event, 1e-6)
    for more in (-1e-9, 1.1e-6):
        with pytest.raises(ValueError, match="event_delta must be >= 0 and <= delta=1e-06"):
            PrivacyGuarantee(epsilon=1.0, delta=1e-6, event_delta=more)
    fields = {"delta": 1e-5, "status": "proven", "event": event, "event_delta": 9e-6}
    assert PrivacyGuarantee(epsilon=least * (1 + 1e-9), **fields).event_delta == 9e-6
    for epsilon in (epsilon_of(event, 1e-5), least * (1 - 1e-6)):
        with pytest.raises(ValueError, match="epsilon must be at least what the event costs"):
            PrivacyGuarantee(epsilon=epsilon, **fields)


def test_a_group_of_an_event_that_leaves_something_out_uses_the_formula():
    """The event knows nothing of the words of one unit; two units have two units' words."""
    for event in (gaussian_event(20.0), pure_event(0.05), zcdp_event(1e-3)):
        one = PrivacyGuarantee(epsilon=0.3, delta=1e-5, status="proven", event=event, event_delta=9e-6)
        group = one.for_group(3)
        assert group.event is None and group.event_delta == 0.0 and group.epsilon == pytest.approx(0.9, rel=1e-15)
        assert group.delta == pytest.approx(1e-5 * (1 + math.exp(0.3) + math.exp(0.6)), rel=1e-9)
        assert group.delta >= 3 * one.event_delta


def test_group_of_a_sampled_event_uses_the_formula():
    one = gaussian(3.0, 10, rate=0.1)
    group = one.for_group(2)
    assert group.event is None
    assert group.epsilon == 2 * one.epsilon
    assert group.delta > 2e-6


def test_group_of_one_is_the_guarantee():
    guarantee = full()
    assert guarantee.for_group(1) is guarantee
    for size in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="size must be an integer >= 1"):
            guarantee.for_group(size)


# --- the statement ------------------------------------------------------------------------------------

NUMBERS = re.compile(r"epsilon ?= ?([^\s,)]+), delta ?= ?([^\s,)]+)")


@pytest.mark.parametrize("seed", range(5))
def test_statements_never_print_a_smaller_number(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        epsilon = float(10 ** rng.uniform(-12, 12))
        delta = float(10 ** rng.uniform(-300, 0))
        guarantee = PrivacyGuarantee(epsilon=epsilon, delta=delta)
        for text in (str(guarantee), repr(guarantee)):
            shown = [Decimal(number) for number in NUMBERS.search(text).groups()]
            for number, true in zip(shown, (epsilon, delta), strict=True):
                assert Decimal(repr(true)) <= number <= Decimal(repr(true)) * Decimal("1.0011")


@pytest.mark.parametrize(
    ("epsilon", "delta", "shown"),
    [
        (1.0, 1e-6, "epsilon = 1, delta = 1e-6"),
        (0.1, 0.0, "epsilon = 0.1, delta = 0 "),
        (9.99951, 1.00001e-6, "epsilon = 10, delta = 1.001e-6"),
        (3000.01, 5e-324, "epsilon = 3001, delta = 5e-324"),
        (1.2345e9, 0.01, "epsilon = 1.235e9, delta = 0.01"),
    ],
)
def test_numbers_are_plain(epsilon, delta, shown):
    assert shown in str(PrivacyGuarantee(epsilon=epsilon, delta=delta))


def test_statement_says_everything():
    text = " ".join(str(full()).split())
    for words in (
        "epsilon = 3.5, delta = 1e-6",
        "CLAIMED by the publication, does not hold or is not proven: totals leak",
        "all documents of any one user",
        "one user being present or absent",
        "central: a curator sees the raw text",
        "Mechanism: gaussian",
        "Released: noisy tables; topics",
        "Not covered: vocabulary",
        "Assumptions: the seed is secret",
        "Reference: Theorem 1",
    ):
        assert words in text
    assert max(map(len, str(full()).splitlines())) <= 92


@pytest.mark.parametrize("unit", list(PrivacyUnit))
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("status", list(Status))
def test_every_word_has_its_sentence(unit, adjacency, status):
    text = str(pure(1.0, unit=unit, adjacency=adjacency, status=status, trust="local"))
    assert f"(unit: {unit})" in text
    assert f"adjacency: {adjacency}" in " ".join(text.split())
    assert ("presence and content" in text) == (unit == "document" and adjacency == "add-remove")
    assert "only randomized reports leave the author" in " ".join(text.split())
    assert (f"{status}" in text) == (status == "proven")
    assert (str(status).upper() in text) == (status != "proven")


@pytest.mark.parametrize("fields", [{"epsilon": INF}, {"epsilon": 1.0, "delta": 1.0}])
def test_no_protection_is_said_aloud(fields):
    text = str(PrivacyGuarantee(**fields))
    assert "No privacy protection" in text
    assert "proven" not in text
    assert "No privacy protection" not in str(PrivacyGuarantee(epsilon=100.0))


def test_what_an_event_leaves_out_is_taken_from_delta_first():
    """New words of a selection: with probability event_delta more is seen than the event tells of."""
    event = gaussian_event(4.0)
    one = PrivacyGuarantee(epsilon=epsilon_of(event, 1e-5), delta=3e-5, event=event, event_delta=2e-5)
    assert one.epsilon_at(2.5e-5) == epsilon_of(event, 2.5e-5 - 2e-5)
    assert one.epsilon_at(1.9e-5) == math.inf
    assert one.delta_at(one.epsilon / 2) == pytest.approx(delta_of(event, one.epsilon / 2) + 2e-5, rel=1e-12)
    two = one.compose(one)
    assert (two.delta, two.event_delta) == (pytest.approx(6e-5), pytest.approx(4e-5))
    assert two.epsilon == pytest.approx(epsilon_of(gaussian_event(4.0, 2), 2e-5), rel=1e-9)
    assert two.epsilon < 2 * one.epsilon


def normal_cdf(x):
    return (1 + math.erf(x / math.sqrt(2))) / 2


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 5.0, 10.0])
def test_the_best_attacker_on_gaussian_noise_is_right_as_often_as_its_closed_form_says(epsilon):
    """Two normal laws at a distance of mu deviations are told apart with probability Phi(mu / 2)."""
    sigma = calibrate_gaussian(epsilon, 1e-6)
    guarantee = PrivacyGuarantee.from_event(gaussian_event(sigma), 1e-6, status="proven")
    whole, pair = right_of_100(guarantee)
    assert whole == math.ceil(100 * normal_cdf(0.5 / sigma)) <= pair
    assert pair == math.ceil(100 * (math.exp(guarantee.epsilon) + 1e-6) / (1 + math.exp(guarantee.epsilon)))
    assert f"right in at most {whole} of 100 cases" in " ".join(str(guarantee).split())


def test_one_answer_of_a_pure_mechanism_is_known_by_its_pair():
    assert right_of_100(pure(1.0, status="proven")) == (74, 74)
    assert right_of_100(pure(0.0, status="proven")) == (50, 50)
    p = 1 / (1 + math.exp(-1))  # the majority of three answers
    assert right_of_100(pure(1.0, 3, status="proven")) == (math.ceil(100 * (p**3 + 3 * p * p * (1 - p))), 96)


def test_where_nothing_is_proven_by_an_event_the_pair_is_all_that_is_known():
    event = gaussian_event(4.0)
    epsilon = epsilon_of(event, 1e-6)
    proven = PrivacyGuarantee(epsilon=epsilon, delta=1e-6, status="proven", event=event)
    whole, pair = right_of_100(proven)
    assert whole < pair
    for changes in ({"event": None, "reference": "x"}, {"status": "claimed"}, {"status": "diagnostic"}):
        assert right_of_100(replace(proven, **changes)) == (pair, pair)
    assert "Attack" not in str(replace(proven, status="claimed")) and "Attack" not in str(PrivacyGuarantee(epsilon=INF))
    assert right_of_100(replace(proven, delta=0.5, event_delta=0.4))[0] > whole + 15  # it is added
    assert right_of_100(PrivacyGuarantee(epsilon=INF)) == (100, 100)
    lone = PrivacyGuarantee(epsilon=0.1, delta=0.5, status="proven", reference="x")
    assert right_of_100(lone) == (math.ceil(100 * (math.exp(0.1) + 0.5) / (1 + math.exp(0.1))),) * 2


CHECKED = {  # with how much less than delta the program may find
    "divided": (VIPSLDA(5, epsilon=2.0, delta=1e-6), 1e-3),
    "rounds": (PCTD(5), 1e-3),
    "online": (VIPSLDA(5, epsilon=2.0, learning_method="online", sampling_rate=0.01, max_iter=50), 1e-2),
    "pure": (PrivateCGSLDA(5, epsilon=3.0, mechanism="laplace", max_iter=3), None),
    "zcdp": (PrivateCGSLDA(5, epsilon=3.0, mechanism="discrete-gaussian", max_iter=3), 1e-2),
    "tokens": (HDPLDA(3), 0.05),
    "words": (DPVocabularySelector(epsilon=2.0), 1e-3),
    "clusters": (EmbeddingTopics(5, epsilon=1.0), 1e-3),
}


@pytest.mark.parametrize("name", CHECKED)
def test_the_program_in_a_statement_finds_the_number_of_the_statement(name, capsys):
    estimator, loose = CHECKED[name]
    guarantee = estimator.privacy_cost()
    text = str(guarantee)
    code = textwrap.dedent(text[text.index("    from dp_accounting") :])
    assert code == check_code(guarantee) and len(code.splitlines()) <= 12
    exec(compile(code, "statement", "exec"), found := {})
    assert f"and was stated as {guarantee.delta!r}" in capsys.readouterr().out
    assert found["delta"] <= guarantee.delta * (1 + 2e-4) + 1e-12
    assert loose is None or found["delta"] >= guarantee.delta * (1 - loose)


def test_the_program_of_words_and_topics_adds_what_the_event_leaves_out():
    """As of the recipe: two Gaussian events give 7.5e-7, and 2.5e-7 is for words that one document alone uses."""
    words = DPVocabularySelector(epsilon=1.0, delta=5e-7).privacy_cost()
    both = words.compose(VIPSLDA(5, epsilon=1.5, delta=5e-7).privacy_cost())
    assert both.event_delta == pytest.approx(2.5e-7) and f"{both.event_delta!r}" in check_code(both)
    exec(check_code(both), found := {})
    assert found["delta"] == pytest.approx(1e-6, rel=2e-4)
    assert "of this delta is for what noise does not hide" in " ".join(str(both).split())


def test_what_dp_accounting_does_not_compute_has_no_program():
    assert check_code(PrivacyGuarantee(epsilon=1.0)) == "" == check_code(PrivacyGuarantee(epsilon=INF))
    kinds = compose_events([gaussian_event(4.0 + i) for i in range(40)])
    assert check_code(PrivacyGuarantee.from_event(kinds, 1e-6)) == ""


def test_an_event_gives_its_own_epsilon():
    event = gaussian_event(4.0, 10)
    guarantee = PrivacyGuarantee.from_event(event, 1e-6, unit="user", status="proven", event_delta=4e-7)
    assert guarantee.epsilon == epsilon_of(event, 1e-6 - 4e-7)
    assert guarantee.unit == PrivacyUnit.USER and guarantee.event_delta == 4e-7
    with pytest.raises(ValueError, match="delta must be >= event_delta and <= 1; got 2"):
        PrivacyGuarantee.from_event(event, 2.0)
    with pytest.raises(ValueError, match="delta must be >= event_delta and <= 1; got 1e-06"):
        PrivacyGuarantee.from_event(event, 1e-6, event_delta=1e-5)


def test_the_published_schema_has_the_fields_and_words_of_a_guarantee():
    schema = json.loads((Path(__file__).parents[1] / "doc/guarantee.schema.json").read_text(encoding="utf-8"))
    written = json.loads(full().to_json())
    assert sorted(schema["required"]) == sorted(schema["properties"]) == sorted(written)
    words = {"unit": PrivacyUnit, "adjacency": Adjacency, "trust": TrustModel, "status": Status}
    for name, kind in words.items():
        assert schema["properties"][name]["enum"] == [word.value for word in kind]
    for name in ("format", "version"):
        assert schema["properties"][name]["const"] == written[name]


def test_a_notebook_shows_the_statement_and_no_markup_of_its_fields():
    guarantee = PrivateCGSLDA(epsilon=2.0, delta=1e-6).privacy_cost()
    page = replace(guarantee, not_covered=("<script>alert(1)</script> & more",))._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and "&amp; more" in page
    assert "epsilon = 2, delta = 1e-6" in page and escape(guarantee.mechanism) in page
    parts = re.findall(r"<(/?)(div|table|tr|td|th|details)\b", page)
    assert sum(1 if not end else -1 for end, _ in parts) == 0
    labels = re.findall(r"<th[^>]*>([^<]*)", page)
    assert labels == re.findall(r"^  (\w[\w ]*):", str(guarantee), re.M)


def test_a_search_over_sampled_fits_has_no_cost_under_replacement():
    """The accounting of Poisson samples is for add-remove, inside a search as outside."""
    event = selection_event(gaussian_event(2.0, 10, 0.1), 5.0)
    assert PrivacyGuarantee.from_event(event, 1e-6).epsilon < math.inf
    with pytest.raises(ValueError, match="'add-remove' only; got adjacency 'replace'"):
        PrivacyGuarantee.from_event(event, 1e-6, adjacency="replace")


def test_what_events_leave_of_delta_is_rounded_once():
    """Where nearly all of delta is left out, the rounding of a sum before the difference would double what is left."""
    parts = [0.1, 0.2, 0.3]
    guarantees = [
        PrivacyGuarantee(epsilon=math.inf, delta=part, event=gaussian_event(9.0), event_delta=part) for part in parts
    ]
    delta = math.nextafter(math.fsum(parts), 1.0)
    left = Fraction(delta) - sum(map(Fraction, parts))
    joint = joint_epsilon(guarantees, delta)
    assert joint >= epsilon_of(gaussian_event(9.0, 3), float(left) * (1 + 1e-9))


@pytest.mark.parametrize(
    ("event", "has_program"),
    [
        (compose_events([pure_event(0.5), zcdp_event(0.1)]), False),
        (selection_event(pure_event(0.5), 4.0), False),
        (selection_event(gaussian_event(5.0), 4.0), True),
        (compose_events([pure_event(0.5), gaussian_event(5.0)]), True),
    ],
)
def test_a_check_program_runs_or_is_not_printed(event, has_program):
    """What dp-accounting's accountants do not take together has no program."""
    guarantee = PrivacyGuarantee.from_event(event, 1e-3, status="proven", reference="x")
    code = check_code(guarantee)
    assert bool(code) == has_program
    if code:
        exec(code, found := {})
        assert 0.9 * guarantee.delta < found["delta"] < 1.001 * guarantee.delta


def test_a_year_of_releases_is_a_line_and_hides_no_number():
    """Kinds of releases stand once, with how many there were, and each number from its least to its greatest."""
    said = [
        f"noise of scale {4 + month} to {20 - month} on {month + 1} sums (votes, {month + 1} time)"
        for month in range(3)
    ]
    said = [text.replace("2 time", "2 times").replace("3 time", "3 times") for text in said]
    year = [PrivacyGuarantee(epsilon=0.1, mechanism=text) for text in [*said, "another"]]
    told = year[0].compose(*year[1:]).mechanism
    assert told == (
        "3 releases, each for itself: noise of scale 4 to 20 on 1 to 3 sums (votes, 1 to 3 times); 1 release: another"
    )
    assert year[0].compose(year[0]).mechanism == f"2 releases, each for itself: {said[0]}"


def test_releases_are_counted_whatever_was_joined_before():
    """A running total adds releases to a text that it has made itself; numbers of names and versions are none."""
    first, second = "noise of scale 2 on 5 sums", "noise of scale 4.5 on 5 sums"
    months = [PrivacyGuarantee(epsilon=0.1, mechanism=text) for text in (first, second, first)]
    total = months[0].compose(months[1]).compose(months[2])
    assert total.mechanism == "3 releases, each for itself: noise of scale 2 to 4.5 on 5 sums"
    other = PrivacyGuarantee(epsilon=0.1, mechanism="sieve 1.2.3")
    several = total.compose(other).compose(total).compose(other).mechanism
    assert several == f"6{total.mechanism[1:]}; 2 releases, each for itself: sieve 1.2.3"
    falling = [PrivacyGuarantee(epsilon=0.1, mechanism=f"noise of scale {scales}") for scales in ("8 to 2", "9 to 1")]
    assert falling[0].compose(falling[1]).mechanism == "2 releases, each for itself: noise of scale 1 to 9"
