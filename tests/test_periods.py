from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from internals import periods as _periods

from skdplda import VIPSLDA, PrivacyAccountant, PrivacyGuarantee
from skdplda.datasets import make_lda_corpus
from skdplda.exceptions import BudgetExceededError, NoisyTopicsWarning
from skdplda.privacy import pure_event
from skdplda.releases import ReleasedTopicModel
from skdplda.rounds import NORM_BOUND

WORDS = ["pear", "plum", "zinc", "iron"]
TOPICS = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
MONTHS = ["2030-01-01", "2030-02-01", "2030-03-01"]
FRUIT, METAL = "pear plum " * 200, "zinc iron " * 200


@pytest.fixture
def model():
    promise = PrivacyGuarantee(epsilon=1.0, status="proven", event=pure_event(1.0))
    return ReleasedTopicModel(TOPICS, WORDS, privacy_guarantee=promise, text={})


class Told(ReleasedTopicModel):
    """A model that is given the topic proportions of its documents."""

    def transform(self, X):
        return X


def contribution(doc_topic, period, groups, without=None):
    """Return the counts in steps of the bound, which are whole."""
    topics = np.full((doc_topic.shape[1], 4), 0.25)
    told = Told(topics, WORDS, privacy_guarantee=PrivacyGuarantee(epsilon=1.0), text={})
    kept = np.ones(len(period), bool) if without is None else groups != without
    exact = told.topics_over_time(doc_topic[kept], period[kept], bins=range(6), epsilon=np.inf, groups=groups[kept])
    return exact.counts.to_numpy() * NORM_BOUND


@pytest.mark.parametrize("hostile", [False, True])
def test_a_unit_moves_the_sum_by_at_most_the_bound(hostile):
    """Theorem 1 of doc/theory/periods.rst, replayed in integers: one unit less, and the L1 norm of what is missing."""
    rng = np.random.default_rng(0)
    for trial in range(20):
        doc_topic = rng.dirichlet(np.full(1 + trial % 7, 0.3), 60)
        if hostile:  # what no transform returns
            doc_topic *= rng.choice([0.0, 1.0, 3.0, -1.0, np.inf, np.nan], doc_topic.shape)
        period, groups = rng.integers(-1, 5, 60), rng.choice([f"user {i}" for i in range(25)], 60)
        total = contribution(doc_topic, period, groups)
        assert (total == np.rint(total)).all()
        for user in np.unique(groups):
            moved = np.abs(total - contribution(doc_topic, period, groups, user)).sum()
            assert moved <= NORM_BOUND
            if not hostile and (period[groups == user] >= 0).any():
                assert (
                    moved > NORM_BOUND * (1 - 1e-8) - 60 * doc_topic.shape[1]
                )  # the bound is met, but for rounding down


def test_proportions_of_a_document_do_not_depend_on_others():
    corpus = make_lda_corpus(60, 80, 4, random_state=0)
    topics = VIPSLDA(4, epsilon=np.inf, max_iter=3, random_state=0).fit(corpus.data)
    together = topics.transform(corpus.data)
    for d in range(60):
        assert np.array_equal(together[d], topics.transform(corpus.data[[d]])[0])


def test_counts_without_noise(model):
    texts = [FRUIT, METAL, METAL, FRUIT, FRUIT]
    days = ["2030-01-01", "2030-02-03 10:00+05:00", pd.Timestamp("2030-02-28"), "2030-03-01", "2029-12-31"]
    counts = model.topics_over_time(texts, days, bins=MONTHS, epsilon=np.inf).counts
    assert counts.index.tolist() == [pd.Timestamp(day) for day in MONTHS[:2]] and counts.index.name == "period"
    assert np.allclose(counts, [[1, 0], [0, 2]], atol=0.01)
    classes = model.topics_per_class(texts, [1, 2, 2, 1, 7], classes=[2, 1], epsilon=np.inf)
    assert np.allclose(classes.counts, [[0, 2], [2, 0]], atol=0.01) and classes.counts.index.tolist() == [2, 1]
    assert np.allclose(classes.shares.sum(axis=1), 1) and classes.clear_periods.all() and classes.deviation == 0
    # A user counts once: of the three documents of "a", one has no period.
    users = model.topics_over_time(
        texts, [2000, 2001, 2001, 1999, 1990.5], bins=[1990, 2001, 2002], epsilon=np.inf, groups=list("aaabb")
    )
    assert np.allclose(users.counts, [[4 / 3, 0], [0, 2 / 3]], atol=0.01)
    assert users.privacy_guarantee_.unit == "user"


def test_no_value_makes_a_release_fail(model):
    texts = [FRUIT] * 9
    odd = ["2030-01-05", None, np.nan, pd.NaT, "no day", 10**40, [], object(), "0000-99-99"]
    values = np.empty(9, dtype=object)
    values[:] = odd
    for given in (values, list(reversed(values[:6])) + [""] * 3):
        counts = model.topics_over_time(texts, given, bins=MONTHS, epsilon=np.inf).counts
        assert np.isclose(counts.to_numpy().sum(), 1, atol=1e-4)
    assert model.topics_per_class(texts, values, classes=["2030-01-05"], epsilon=np.inf).counts.to_numpy().sum() < 1.1
    times = pd.Series(pd.to_datetime(["2030-01-05", None, "2030-02-01"]))
    naive, zoned = (
        model.topics_over_time(texts[:3], given, bins=MONTHS, epsilon=np.inf).counts
        for given in (times, times.dt.tz_localize("UTC"))
    )
    assert np.allclose(naive.sum(axis=1), 1, atol=1e-4) and naive.equals(zoned)


def places(model, times, bins):
    """Return the number of each document's period, -1 for none: each in turn is the only one about fruit."""
    found = []
    for i in range(len(times)):
        texts = [FRUIT if i == j else METAL for j in range(len(times))]
        fruit = model.topics_over_time(texts, times, bins=bins, epsilon=np.inf).counts.to_numpy()[:, 0] > 0.9
        found.append(int(fruit.argmax()) if fruit.any() else -1)
    return found


def test_one_time_does_not_change_how_another_is_read(model):
    """Formats and resolutions that are inferred from all times would."""
    alone = model.topics_over_time([FRUIT], ["02.03.2030"], bins=MONTHS, epsilon=np.inf).counts
    for other in ("2030-12-31T00:00:00.123456789Z", "31/12/2031", "9999-12-31"):
        both = model.topics_over_time([METAL, FRUIT], [other, "02.03.2030"], bins=MONTHS, epsilon=np.inf).counts
        assert both.equals(alone)
    later = datetime(2030, 11, 3, 1, tzinfo=ZoneInfo("America/New_York"), fold=1)
    hours = ["2030-11-03T05:00Z", "2030-11-03T06:00Z", "2030-11-03T07:00Z"]
    assert places(model, [later.replace(fold=0), later], hours) == [0, 1]  # equal, by a clock put back
    edges = ["1960-01-01", "1980-01-01"]  # 1 is a date of 1970, True is none, though equal
    assert [places(model, given, edges) for given in ([True], [1, True])] == [[-1], [0, -1]]


def test_no_time_of_a_column_of_dates_makes_a_release_fail(model):
    """Of another unit than the edges, finer than they are, or out of their range."""
    fine = pd.Series(np.array(["2030-01-09T00:00:00.123456789", "2030-02-03"], "M8[ns]"))
    far = pd.Series(np.array(["9999-01-01", "2030-02-03", "NaT", "2030-03-01"], "M8[s]"))
    for bins in (MONTHS, np.array(MONTHS, "M8[ns]"), np.array(MONTHS, "M8[s]")):
        assert places(model, fine, bins) == [0, 1]
        assert places(model, far, bins) == [-1, 1, -1, -1]


@pytest.mark.parametrize("bins", [None, 12, "month", ["2030-01-01"], MONTHS[::-1], [1, 1, 2], [1.0, np.nan]])
def test_periods_must_be_public_edges(model, bins):
    with pytest.raises(ValueError, match="bins must"):
        model.topics_over_time([FRUIT], ["2030-01-05"], bins=bins, epsilon=1.0)


@pytest.mark.parametrize("classes", [None, [], ["a", "a"], ["a", None], "ab"])
def test_classes_must_be_public_names(model, classes):
    with pytest.raises(ValueError, match="classes must"):
        model.topics_per_class([FRUIT], ["a"], classes=classes, epsilon=1.0)


def test_lengths_are_checked(model):
    with pytest.raises(ValueError, match="X has 1 documents, and 2 of them"):
        model.topics_per_class([FRUIT], ["a", "b"], classes=["a"], epsilon=1.0)
    with pytest.raises(ValueError, match="one for each document"):
        model.topics_per_class([FRUIT], np.array([["a"]]), classes=["a"], epsilon=1.0)


def test_noise_has_the_stated_deviation(model):
    """Of 6,000 cells without a document; the relative error of their deviation is above 0.2 once in 10**12 runs."""
    found = model.topics_per_class([FRUIT], ["-"], classes=range(3000), epsilon=0.5)
    assert found.deviation == pytest.approx(2**0.5 / 0.5, rel=1e-6)
    assert found.counts.to_numpy().std() == pytest.approx(found.deviation, rel=0.2)
    assert found.shares.isna().to_numpy().mean() > 0.9


def test_rows_that_are_noise_warn(model, monkeypatch):
    monkeypatch.setattr(_periods, "CLEAR_TOTAL", 100.0)  # with 3, noise stands out by chance once in 200 rows
    with pytest.warns(NoisyTopicsWarning, match="none of the 2 rows stands out"):
        found = model.topics_over_time([FRUIT], ["2031-01-01"], bins=MONTHS, epsilon=0.5)
    assert found.shares.isna().all(axis=None)


def test_guarantee_composes_with_the_model_and_is_charged(model, monkeypatch):
    monkeypatch.setattr(_periods, "CLEAR_TOTAL", 30.0)  # with 3, noise stands out by chance once in 200 rows
    texts, days = [FRUIT, METAL] * 200, ["2030-01-05"] * 400
    with PrivacyAccountant(epsilon=1.0) as ledger:
        counts = model.topics_over_time(texts, days, bins=MONTHS, epsilon=0.75)
        assert ledger.remaining_epsilon == pytest.approx(0.25)
        with pytest.raises(BudgetExceededError):  # before X is read
            model.topics_over_time(object(), days, bins=MONTHS, epsilon=0.75)
    assert repr(counts.privacy_guarantee_) == (
        "PrivacyGuarantee(epsilon=0.75, delta=0, document, add-remove, central, proven)"
    )
    assert model.privacy_guarantee_.compose(counts.privacy_guarantee_).epsilon == pytest.approx(1.75)
    assert "compose" in counts.privacy_guarantee_.not_covered[0]
    assert counts.clear_periods.tolist() == [True, False] and counts.shares.iloc[1].isna().all()
    assert counts.signal_to_noise.equals(counts.counts / counts.deviation)
