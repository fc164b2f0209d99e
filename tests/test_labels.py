"""Known questions: counts of public labels, what one unit may add, what they are worth, and what they cost."""

import json
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from broken_variants import longer, noise_times_08
from internals import LabelEStep

from skdplda import LabelCounts, PrivacyAccountant, count_labels
from skdplda.audit import epsilon_lower_bound
from skdplda.cli import main
from skdplda.exceptions import BudgetExceededError
from skdplda.reports import report
from skdplda.rounds import NORM_BOUND
from skdplda.semantics import WordVectorEmbedder

LABELS = ["refund", "shipping", "billing"]


def word(text):
    return text.split()[0]


def exact(texts, **options):
    return count_labels(texts, LABELS, epsilon=np.inf, classify=word, **options).counts.round(4).tolist()


def test_units_count_for_the_labels_that_most_of_their_texts_have():
    texts = ["refund a", "refund", "shipping", "billing", "hello", "billing"]
    assert exact(texts) == [2, 1, 2, 1]
    users = [1, 1, 1, 2, 2, 3]
    assert exact(texts, groups=users) == [1, 0, 2, 0]  # of user 2's labels, which are alike, the first
    assert exact(texts, groups=users, most=2) == [1, 1, 2, 1]
    several = count_labels(["refund billing", "shipping"], LABELS, epsilon=np.inf, classify=str.split, most=2)
    assert several.counts.round(4).tolist() == [1, 1, 1, 0]
    assert count_labels(["refund billing"], LABELS, epsilon=np.inf, classify=str.split).counts.sum() == pytest.approx(1)


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_replayed_contributions_keep_the_bound_in_integers(seed, most):
    """With and without one unit: whatever labels its texts have, all of a user together move the sum by the bound."""
    rng = np.random.default_rng(seed)
    found = ["".join(rng.choice(list("abcd"), rng.integers(1, 5))) for _ in range(40)]  # "d" is no label
    users = rng.integers(0, 6, 40) if seed % 2 else np.arange(40)
    gone = users == users[0]

    def total(kept):
        texts = [text for text, k in zip(found, kept, strict=True) if k]
        exact = count_labels(
            texts, ["a", "b", "c"], epsilon=np.inf, classify=lambda text: [*text], most=most, groups=users[kept]
        )
        return exact.counts.to_numpy() * NORM_BOUND  # in steps of the bound, which are whole

    whole, rest, alone = total(np.ones(40, bool)), total(~gone), total(gone)
    assert (whole == np.rint(whole)).all()
    np.testing.assert_array_equal(whole - rest, alone)
    assert 0 < np.abs(alone).sum() <= most * NORM_BOUND


def test_a_hundred_labels_of_ten_thousand_users_are_within_a_hundredth():
    """Total variation to the exact histogram; its mean is 0.005, of a hundred absolute values of Laplace noise."""
    rng = np.random.default_rng(0)
    labels = [f"label {k}" for k in range(100)]
    mine = rng.choice(100, 10_000, p=rng.dirichlet(np.ones(100)))
    texts = [labels[k] for k in np.repeat(mine, 3)]
    found = count_labels(texts, labels, epsilon=1.0, classify=str, groups=np.repeat(np.arange(10_000), 3))
    truth = np.append(np.bincount(mine, minlength=100), 0)
    # 101 values of mean 1: a sum above 200 has a probability below 1e-12
    assert np.abs(found.counts.to_numpy() - truth).sum() / 2 / 10_000 < 0.01
    assert found.deviation == pytest.approx(2**0.5, rel=0.05)


@pytest.mark.parametrize("most", [1, 3])
def test_noise_has_the_deviation_that_is_told(most):
    labels = [f"label {k}" for k in range(4000)]
    found = count_labels([], labels, epsilon=0.5, classify=str, most=most)
    assert found.counts.std() == pytest.approx(found.deviation, rel=0.15)  # 6 deviations of this estimate
    assert found.deviation == pytest.approx(2**0.5 * most / 0.5, rel=0.01)
    guarantee = found.privacy_guarantee_
    assert (guarantee.epsilon, guarantee.delta, guarantee.status) == (0.5, 0, "proven")


N_CANARIES, CALLS = 250, 160  # in each of so many calls


def shown(epsilon, most, cells=1):
    """Return the lower bounds on epsilon, at 95 % and at 1 - 1e-6, of canaries: users with labels of their own.

    Each is there by a coin, and has two texts of `most` labels each; the labels of the first text count. It is guessed
    to be there if they all do, which is so with probability 2**-most, or exp(epsilon) times less often. With `cells=2`
    those of the second text must, too.
    """
    rng, found = np.random.default_rng(0), np.zeros((2, 2), int)
    texts = [[f"{canary} {text} {label}" for label in range(most)] for canary in range(N_CANARIES) for text in range(2)]
    names = [label for text in texts for label in text]
    for _ in range(CALLS):
        there = rng.integers(0, 2, N_CANARIES).astype(bool)
        own = np.flatnonzero(np.repeat(there, 2))
        counts = count_labels(
            own, names, epsilon=epsilon, classify=texts.__getitem__, most=most, groups=own // 2
        ).counts
        moved = counts.to_numpy()[:-1].reshape(N_CANARIES, 2 * most)[:, : cells * most]
        np.add.at(found, (there.astype(int), (moved > 1 - 1e-6).all(axis=1).astype(int)), 1)
    rates = found[1, 1], found[1].sum(), found[0, 1], found[0].sum()
    return [epsilon_lower_bound(*rates, confidence=confidence) for confidence in (0.95, 1 - 1e-6)]


@contextmanager
def longer_labels():
    """Contributions of 1.2 times the bound, which say that they are bounded."""
    collect = LabelEStep.collect
    with patch.object(LabelEStep, "collect", lambda *given: longer(collect(*given))):
        yield


@contextmanager
def texts_for_users():
    """Each text of a user counts as much as a user."""
    make = LabelEStep.__init__

    def made(self, found, n_labels, units, most):
        make(self, found, n_labels, (np.arange(len(found) + 1), np.arange(len(found))), most)

    with patch.object(LabelEStep, "__init__", made):
        yield


@pytest.mark.parametrize(("epsilon", "most"), [(1.0, 1), (3.0, 2)])
def test_an_audit_shows_nearly_the_claim_and_no_more(epsilon, most):
    """By public calls. At 1 - 1e-6 a right bound is above the claim once in a million audits.

    The mean of the bound at 95 % is 0.95 of the claim at least, five of its deviations above what is asked.
    """
    likely, certain = shown(epsilon, most)
    assert certain <= epsilon and likely > 0.85 * epsilon


@pytest.mark.parametrize(
    ("broken", "most", "cells"), [(noise_times_08, 1, 1), (longer_labels, 1, 1), (texts_for_users, 2, 2)]
)
def test_an_audit_finds_broken_counts_of_labels(broken, most, cells):
    """Mean bounds are 1.63 and more, six of their deviations above the claim."""
    with broken():
        assert shown(1.5, most, cells)[1] > 1.5


EMBEDDER = WordVectorEmbedder({"tea": [1, 0, 0], "milk": [0.9, 0.1, 0], "iron": [0, 1, 0], "sky": [0, 0, 1]})


def test_texts_have_the_nearest_label_or_are_other():
    texts = ["tea milk", "milk", "iron", "sky", "unknown"]
    for labels in (["tea", "iron"], {"tea": "tea and milk", "iron": "iron"}):
        found = count_labels(texts, labels, epsilon=np.inf, embedder=EMBEDDER)
        assert found.counts.round(4).to_dict() == {"tea": 2, "iron": 1, "other": 2}
    vectors = [[1.0, 0.1], [0.1, 1.0], [-1.0, -1.0], [np.nan, 1.0], [0, 0]]
    found = count_labels(vectors, {"tea": [1, 0], "iron": [0, 2]}, epsilon=np.inf)
    assert found.counts.round(4).tolist() == [1, 1, 3]
    assert count_labels(vectors, {"tea": [1, 0], "iron": [0, 2]}, epsilon=np.inf, least_cosine=-1).counts.round(4)[
        "other"
    ] == pytest.approx(2)


def test_no_text_makes_the_release_fail():
    def fragile(text):
        if text == "bad":
            raise RuntimeError("told")
        return {"odd": 7, "none": None, "list": ["refund", 3], "nan": float("nan")}.get(text, text)

    found = count_labels(["bad", "odd", "none", "list", "nan", None], LABELS, epsilon=np.inf, classify=fragile)
    assert found.counts.round(4).tolist() == [1, 0, 0, 5]


@pytest.mark.parametrize("bad", ["boom", "wide", "many", "words", "nothing", None])
def test_no_text_makes_the_embedder_fail_the_release(bad):
    """The message of an embedder, which held the text, came out, and nothing was spent."""

    def fragile(texts):
        (text,) = texts
        if text == "boom":
            raise RuntimeError(f"the text is: {text}")
        odd = {"wide": [[1.0, 0, 0]], "many": np.ones((2, 2)), "words": [["a", "b"]], "nothing": None}
        return odd.get(text, [[float("tea" in text), float("iron" in text)]])

    texts = ["tea", bad, "iron", "tea"]
    found = count_labels(texts, ["tea", "iron"], epsilon=np.inf, embedder=fragile)
    assert found.counts.round(4).tolist() == [2, 1, 1]
    found = count_labels(texts, ["tea", "iron"], epsilon=np.inf, embedder=EMBEDDER)  # which is given all at once
    assert found.counts.round(4).tolist() == [2, 1, 1]
    with pytest.raises(RuntimeError, match="the text is: boom"):
        count_labels(texts, ["tea", "boom"], epsilon=np.inf, embedder=fragile)  # labels are public


def test_a_ledger_is_charged_exactly_and_refuses_before_a_text_is_read():
    seen = []
    with PrivacyAccountant(1.0) as ledger:
        count_labels(["refund"] * 5, LABELS, epsilon=0.75, classify=word)
        assert ledger.remaining_epsilon == pytest.approx(0.25)
        with pytest.raises(BudgetExceededError):
            count_labels(["refund"] * 5, LABELS, epsilon=0.5, classify=seen.append)
    assert not seen and len(ledger.ledger) == 1


def test_what_is_no_question_is_refused():
    for wrong in ("refund", [], ["a", "a"], ["other"], [1], 7, [""]):
        with pytest.raises(ValueError, match="labels must be a list of public names"):
            count_labels(["a"], wrong, epsilon=1.0, classify=word)
    for options, said in (
        ({}, "give one of embedder, classify"),
        ({"classify": word, "embedder": EMBEDDER}, "give one of embedder, classify"),
        ({"classify": 7}, "classify must be a function"),
        ({"classify": word, "most": 4}, "most must be an integer from 1 to the 3 labels"),
        ({"classify": word, "least_cosine": 2}, "least_cosine must be a number"),
        ({"embedder": EMBEDDER}, "each label must have a vector"),
    ):
        with pytest.raises(ValueError, match=said):
            count_labels(["a"], LABELS, epsilon=1.0, **options)
    with pytest.raises(ValueError, match="got one text"):
        count_labels("refund", LABELS, epsilon=1.0, classify=word)
    with pytest.raises(ValueError, match="the 2 dimensions of labels"):
        count_labels(np.ones((3, 3)), {"tea": [1, 0]}, epsilon=1.0)


def test_a_table_and_a_file_tell_counts_errors_and_guarantee(tmp_path):
    found = count_labels(["refund"] * 900 + ["shipping"] * 300, LABELS, epsilon=2.0, classify=word)
    table = found.table()
    assert table.index.tolist()[:2] == ["refund", "shipping"] and table["clear"].tolist()[:2] == [True, True]
    assert table["share"].sum() == pytest.approx(1) and isinstance(found, LabelCounts) and "3 labels" in repr(found)
    found.save(tmp_path / "counts.json")
    with pytest.raises(FileExistsError):
        found.save(tmp_path / "counts.json")
    found.save(tmp_path / "counts.json", overwrite=True)
    kept = json.loads((tmp_path / "counts.json").read_text())
    assert kept["labels"] == [*LABELS, "other"] and kept["counts"] == found.counts.tolist()
    assert kept["privacy_guarantee"]["epsilon"] == 2.0


def test_a_page_tells_counts_errors_and_the_guarantee(tmp_path):
    found = count_labels(["refund"] * 900 + ["shipping"] * 300, LABELS, epsilon=2.0, classify=word)
    page = report(found, tmp_path / "page.html").read_text()
    for said in (
        "<h1>Labels</h1>",
        "3 labels that were chosen before",
        "Number of texts",
        "epsilon = 2",
        "may be noise",
    ):
        assert said in page
    count = found.counts["refund"]
    assert f"{count:,.0f} \u00b1 {2 * found.deviation:,.0f}" in page
    users = count_labels(["refund"] * 9, LABELS, epsilon=2.0, classify=word, groups=range(9))
    assert "Number of people" in report(users, tmp_path / "users.html").read_text()


def test_the_command_counts_labels(tmp_path, capsys):
    corpus, vectors, labels = (tmp_path / name for name in ("texts.jsonl", "vectors.txt", "labels.txt"))
    rows = [{"body": ["tea milk", "iron", "sky"][i % 3], "author": i // 2} for i in range(1200)]
    corpus.write_text("\n".join(map(json.dumps, rows)))
    vectors.write_text("tea 1 0 0\nmilk 0.9 0.1 0\niron 0 1 0\nsky 0 0 1\n")
    labels.write_text("tea\niron\n")
    given = ["insights", str(corpus), "--column", "body", "--vectors", str(vectors), "--labels", str(labels)]
    given += ["--epsilon", "2", "--report", str(tmp_path / "page.html")]
    assert main([*given, "--release", str(tmp_path / "counts.json"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["label"] for row in told["labels"]} == {"tea", "iron", "other"}
    assert all(abs(row["count"] - 400) < 30 for row in told["labels"])  # e**-60
    assert told["privacy"]["epsilon"] == 2 and told["privacy"]["delta"] == 0
    assert json.loads((tmp_path / "counts.json").read_text())["labels"] == ["tea", "iron", "other"]
    assert main([*given, "--users", "author", "--overwrite", "--labels-per-unit", "2"]) == 0
    assert "user, add-remove" in capsys.readouterr().out
    assert main([*given, "--delta", "1e-6", "--overwrite"]) == 2
    assert "--delta is needed, but for --labels" in capsys.readouterr().err
