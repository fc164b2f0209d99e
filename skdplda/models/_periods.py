"""Topics over time, and of classes: noisy counts of a fitted model's topics, a release with a guarantee of its own.

contribution   a unit's topic proportions, divided among its periods: they sum to one
release        their sum, with discrete Laplace noise: doc/theory/periods.rst
"""

import math
import warnings
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd

from skdplda._checks import is_integer
from skdplda._types import ArrayLike
from skdplda._validation import check_groups, check_is_fitted, unit_of_documents
from skdplda._warnings import warn
from skdplda.exceptions import NoisyTopicsWarning
from skdplda.models._counting import counted, counting_plan, counts_guarantee
from skdplda.privacy import BudgetCharge, PrivacyGuarantee, stated_guarantee
from skdplda.rounds._bounds import MARGIN, NORM_BOUND, Contributions
from skdplda.rounds._queries import Query

# A period's shares are told where its noisy total is above so many standard deviations of its noise. Not tuned.
CLEAR_TOTAL = 3.0
NOT_COVERED = (
    "the topics themselves: where they were learned from the same documents, their guarantee and this one add up (see"
    " PrivacyGuarantee.compose)",
    "the periods or classes, which must not be chosen from the documents",
    "topic proportions of single documents",
)


@dataclass(frozen=True, eq=False)
class TopicCounts:
    """Noisy counts of topics in periods or classes, with their guarantee. Made by `topics_over_time` of a model.

    Parameters
    ----------
    counts : DataFrame of shape (n_periods, n_components)
        How many documents (users) each topic has in each period, with noise: fractions, and negative ones, are usual. A
        document of several topics is divided among them; a user counts once, divided among all documents. Rows are
        named by the first edge of the period, or by the class.
    deviation : float
        Standard deviation of the noise in a cell, in documents (users). A public number.
    privacy_guarantee_ : PrivacyGuarantee
        What is guaranteed for these counts. The model has its own guarantee.

    Examples
    --------
    >>> from skdplda import PrivacyGuarantee
    >>> from skdplda.releases import ReleasedTopicModel
    >>> topics, words = [[0.6, 0.4, 0.0], [0.0, 0.1, 0.9]], ["pear", "plum", "zinc"]
    >>> model = ReleasedTopicModel(topics, words, privacy_guarantee=PrivacyGuarantee(epsilon=1.0), text={})
    >>> texts, days = ["a pear, a plum"] * 900 + ["zinc!"] * 900, ["2030-01-10"] * 900 + ["2030-02-03"] * 900
    >>> months = model.topics_over_time(texts, days, bins=["2030-01-01", "2030-02-01", "2030-03-01"], epsilon=1.0)
    >>> months.shares.idxmax(axis=1).tolist()
    ['topic_0', 'topic_1']
    >>> months.privacy_guarantee_
    PrivacyGuarantee(epsilon=1, delta=0, document, add-remove, central, proven)
    """

    counts: pd.DataFrame
    deviation: float
    privacy_guarantee_: PrivacyGuarantee

    def __repr__(self) -> str:
        n_rows, n_topics = self.counts.shape
        what = self.counts.index.name or "row"
        return f"TopicCounts({n_topics} topics, {n_rows} rows by {what}, {self.privacy_guarantee_!r})"

    @property
    def shares(self) -> pd.DataFrame:
        """Share of each topic in each period, from 0 to 1; nan where a period does not stand out of the noise."""
        positive = self.counts.clip(lower=0)
        return positive.div(positive.sum(axis=1).where(self.clear_periods), axis=0)

    @property
    def clear_periods(self) -> pd.Series:
        """Whether the total of each period stands out of its noise, by three standard deviations."""
        totals, least = self.counts.sum(axis=1), CLEAR_TOTAL * self.deviation * math.sqrt(self.counts.shape[1])
        return totals > least

    @property
    def signal_to_noise(self) -> pd.DataFrame:
        """Each count over the standard deviation of its noise; inf without noise."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.counts / self.deviation


class PeriodEStep:
    """What each privacy unit adds to the counts of topics by period: at most NORM_BOUND in all, in integers.

    Each row of `doc_topic`, (n_documents, n_components), depends on its own document alone. `period` has the period of
    each document, -1 for none; `units` are as from `check_groups`.
    """

    def __init__(self, doc_topic, period, n_periods, units):
        unit, self.n_units = unit_of_documents(units), len(units[0]) - 1
        inside = np.flatnonzero(period >= 0)
        self._unit, self._period = unit[inside], period[inside]
        self._shape = n_periods, doc_topic.shape[1]
        documents = np.bincount(self._unit, minlength=self.n_units)[self._unit]
        proportions = np.nan_to_num(doc_topic[inside].astype(np.float64), nan=0, posinf=0, neginf=0).clip(0, 1)
        self._rows = np.floor(proportions * (NORM_BOUND * (1 - MARGIN) / documents)[:, None]).astype(np.int64)

    def collect(self, query, round_, active):
        """Return the sum of all units' contributions."""
        sums = Contributions(self._shape, norm=1)
        sums.add_whole(self._rows, self._period, self._unit, self.n_units)
        return sums.bounded()


@dataclass(frozen=True, eq=False)
class PeriodCounts(Query):
    """Topic proportions of units by period, each unit's of sum one at most."""

    shape: tuple
    kind = "periods"
    lemma = "periods, Theorem 1"


class PeriodsMixin:
    """Private counts of the topics of documents, for any fitted model that has `transform`."""

    def topics_over_time(
        self, X: Any, timestamps: ArrayLike, *, bins: ArrayLike, epsilon: float, groups: ArrayLike | None = None
    ) -> TopicCounts:
        """Count the topics of private documents in periods of time: a small private release of its own.

        It spends `epsilon` on these documents, beside what the model has spent. A document outside of all periods, or
        without a readable time, counts nowhere, and no message tells of it. Proof: theory guide, "Topics over time".

        Parameters
        ----------
        X : as in `transform`
        timestamps : array-like of shape (n_documents,)
            When each document was written: dates (in UTC without a zone), or numbers, as in `bins`.
        bins : array-like of shape (n_periods + 1,)
            Edges of the periods, increasing; a period holds its first edge. Published: choose them without looking.
        epsilon : float
            Privacy loss of the counts, for one document or user; a pure epsilon, without a delta. `inf`: exact counts.
        groups : as in `fit`

        Returns
        -------
        counts : TopicCounts
            Tables of periods and topics, and `privacy_guarantee_`, that of the counts.

        Raises
        ------
        BudgetExceededError
            If an open accountant cannot afford the release. No data were read.
        """
        edges = _checked_edges(bins)
        labels = edges[:-1].rename("period")
        if isinstance(labels, pd.DatetimeIndex):
            labels = labels.tz_localize(None)
        return self._count_topics(X, lambda: _periods_of(timestamps, edges), labels, epsilon, groups)

    def topics_per_class(
        self, X: Any, y: ArrayLike, *, classes: ArrayLike, epsilon: float, groups: ArrayLike | None = None
    ) -> TopicCounts:
        """Count the topics of private documents in public classes, as `topics_over_time` does in periods.

        Parameters
        ----------
        X : as in `transform`
        y : array-like of shape (n_documents,)
            The class of each document; it counts nowhere if not among `classes`.
        classes : array-like of shape (n_classes,)
            The classes to count, all different. Published: not to be taken from the documents.
        epsilon, groups : as in `topics_over_time`

        Returns
        -------
        counts : TopicCounts
            As from `topics_over_time`, with a row for each class.

        Raises
        ------
        BudgetExceededError
            If an open accountant cannot afford the release. No data were read.
        ValueError
            If classes are not different names, or arguments differ in length.
        """
        if classes is None or np.ndim(classes) != 1 or not len(classes):
            raise ValueError(
                "classes must list the public names of the classes to count; got"
                f" {classes!r}. Names taken from the documents would tell that such documents exist."
            )
        labels = pd.Index(classes, name="class")
        if labels.hasnans or not labels.is_unique:
            raise ValueError(f"classes must be different names without missing ones; got {classes!r}.")
        return self._count_topics(X, lambda: _classes_of(y, labels), labels, epsilon, groups)

    def _count_topics(self, X, place, labels, epsilon, groups):
        """Plan, check the budget, read, charge and release; `place()` returns the row of each document, -1 for none."""
        check_is_fitted(self)
        plan = counting_plan(epsilon)
        unit = "document" if groups is None else "user"
        guarantee = stated_guarantee(self, _guarantee(plan, unit, epsilon, len(labels)))
        charge = BudgetCharge(guarantee, "counts of topics", self)
        charge.check()
        doc_topic, period = np.asarray(self.transform(X)), place()
        if len(period) != len(doc_topic):
            raise ValueError(f"X has {len(doc_topic)} documents, and {len(period)} of them have a time or class.")
        e_step = PeriodEStep(doc_topic, period, len(labels), check_groups(groups, len(doc_topic)))
        charge.charge(uuid4().hex)
        query = PeriodCounts((len(labels), doc_topic.shape[1]))
        released = counted(query, e_step, plan, "counts of topics")
        counts = pd.DataFrame(released / NORM_BOUND, index=labels, columns=self.get_feature_names_out())
        found = TopicCounts(counts, plan.deviation(0), guarantee)
        if found.deviation and not found.clear_periods.any():
            said = NoisyTopicsWarning(
                f"none of the {len(labels)} rows stands out of the noise, whose standard deviation is"
                f" {found.deviation:.3g} in a cell. More documents, fewer and longer periods, fewer topics or a larger"
                " epsilon would help; or the times and classes of the documents are not those that were asked for."
            )
            said.counts = found  # they are paid for: where warnings are errors, this is how to get at them
            warn(said)
        return found


def _guarantee(plan, unit, epsilon, n_rows):
    """Return the guarantee of the counts."""
    return counts_guarantee(
        plan,
        unit,
        epsilon,
        not_covered=NOT_COVERED,
        assumptions=("the topics, and the periods or classes, are known to everyone",),
        mechanism=(
            f"{plan.law.label} noise of scale {plan.multipliers[0]:.4g} on counts of topics in {n_rows} periods or"
            f" classes, to which a {unit} adds one in all"
        ),
        reference="skdplda theory guide, topics over time",
    )


def _checked_edges(bins):
    """Return the edges of periods, as numbers or as times in UTC."""
    if bins is None or is_integer(bins) or isinstance(bins, str) or np.ndim(bins) != 1 or len(bins) < 2:
        raise ValueError(
            f"bins must be the edges of the periods, two at least; got {bins!r}. They are not taken from the"
            " timestamps, because the first and the last of these are single documents'."
        )
    try:
        edges = pd.Index(bins)
        edges = edges.astype(float) if pd.api.types.is_numeric_dtype(edges) else pd.to_datetime(edges, utc=True)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"bins must be numbers or dates; got {bins!r:.500} ({type(error).__name__}).") from None
    if edges.hasnans or not (edges.is_monotonic_increasing and edges.is_unique):
        raise ValueError(f"bins must increase, and none may be missing; got {bins!r}.")
    return edges


def _periods_of(timestamps, edges):
    """Return the number of each document's period, -1 for none.

    Each time is read on its own, and whatever it is, nothing fails: formats and ranges that are inferred from all of
    them would let one document change where others are counted.
    """
    dates = isinstance(edges, pd.DatetimeIndex)
    if dates and pd.api.types.is_datetime64_any_dtype(timestamps):  # all have been read
        with suppress(ValueError, OverflowError):  # of one document: all are then read one by one, to the same periods
            times = pd.DatetimeIndex(timestamps)
            times = times.tz_localize("UTC") if times.tz is None else times.tz_convert("UTC")
            inside = (times >= edges[0]) & (times < edges[-1])  # others may be out of the range of the edges' unit
            period = np.full(len(times), -1, np.int64)
            period[inside] = edges.searchsorted(times[inside].as_unit(edges.unit), side="right") - 1
            return period
    read, borders = partial(pd.to_datetime, utc=True) if dates else float, list(edges)
    return _each(timestamps, lambda time: _place(read(time), borders))


def _classes_of(y, labels):
    """Return the number of each document's class, -1 for none."""
    number = {label: row for row, label in enumerate(labels)}
    return _each(y, lambda label: number.get(label, -1))


def _each(values, row_of):
    """Return `row_of` each value, -1 where it fails; equal texts are read once."""
    if isinstance(values, (str, bytes)) or getattr(values, "ndim", 1) != 1 or not hasattr(values, "__iter__"):
        raise ValueError("times or classes must be one for each document, in one dimension.")
    values = list(values)  # numpy would look at all of them for a shape
    known, rows = {}, np.full(len(values), -1, np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas would warn of a single date's format
        for d, value in enumerate(values):
            try:
                if type(value) is not str:  # others can be equal and not the same time: the hours of a clock put back
                    rows[d] = row_of(value)
                elif value in known:
                    rows[d] = known[value]
                else:
                    rows[d] = known.setdefault(value, row_of(value))
            except Exception:  # whatever it is: one document's value must not decide whether there is a release
                rows[d] = -1
    return rows


def _place(value, borders):
    """Return the number of the period that holds a value, -1 for none."""
    if pd.isna(value):
        return -1
    period = bisect_right(borders, value) - 1
    return period if period < len(borders) - 1 else -1
