"""Known questions: how many users, or texts, have each of some public labels, with noise and a guarantee.

contribution   1 / most for each of a unit's labels, of which there are at most `most`: they sum to one
release        their sum, with discrete Laplace noise: doc/theory/labels.rst
"""

import json
import math
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd

from skdplda._checks import is_integer, is_real, kind_of
from skdplda._files import whole_file
from skdplda._types import ArrayLike, Function, PathLike
from skdplda._validation import check_groups, unit_of_documents
from skdplda.esteps._clusters import LENGTH, grid_directions
from skdplda.models._counting import counted, counting_plan, counts_guarantee
from skdplda.privacy import BudgetCharge, PrivacyGuarantee
from skdplda.rounds._bounds import MARGIN, NORM_BOUND, Contributions
from skdplda.rounds._queries import Query
from skdplda.semantics import WordVectorEmbedder, embedded

OTHER = "other"  # what has none of the labels
FORMAT, VERSION = "skdplda.LabelCounts", 1
CLEAR = 3.0  # standard deviations of its noise that a count must have to be clear. Not tuned.
BLOCK = 4096  # texts whose cosines with all labels are in memory at a time
NOT_COVERED = (
    "the labels, and what decides which text has which, which must not be chosen from the texts",
    "labels of single texts",
)


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Noisy counts of public labels, with their guarantee. Made by `count_labels`.

    Parameters
    ----------
    counts : Series of shape (n_labels + 1,)
        How many units (users or texts) have each label, with noise, so that one may be negative; the last is "other".
    deviation : float
        Standard deviation of the noise in each count. A public number.
    most : int
        Labels that a unit counts for at most.
    privacy_guarantee_ : PrivacyGuarantee
        What is guaranteed for these counts.
    """

    counts: pd.Series
    deviation: float
    most: int
    privacy_guarantee_: PrivacyGuarantee

    def __repr__(self) -> str:
        return f"LabelCounts({len(self.counts) - 1} labels, {self.privacy_guarantee_!r})"

    def table(self) -> pd.DataFrame:
        """Make a table of counts with their errors, the largest first.

        Returns
        -------
        table : DataFrame of shape (n_labels + 1, 4)
            By label: "count"; "deviation" of its noise; "share" of the sum of positive counts; "clear", whether the
            count is above three deviations.
        """
        positive = self.counts.clip(lower=0)
        columns = {
            "count": self.counts,
            "deviation": self.deviation,
            "share": positive / max(positive.sum(), 1e-300),
            "clear": self.counts > CLEAR * self.deviation,
        }
        return pd.DataFrame(columns).sort_values("count", ascending=False, kind="stable")

    def save(self, path: PathLike, *, overwrite: bool = False) -> None:
        """Write counts and guarantee to a JSON file, which may be published.

        Parameters
        ----------
        path : path-like
            The file.
        overwrite : bool, default=False
            Whether a file that is there is replaced.

        Raises
        ------
        FileExistsError
            If there is one.
        """
        values = {
            "format": FORMAT,
            "version": VERSION,
            "labels": list(self.counts.index),
            "counts": [float(count) for count in self.counts],
            "deviation": self.deviation,
            "most": self.most,
            "privacy_guarantee": json.loads(self.privacy_guarantee_.to_json()),
        }
        text = json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)
        if not overwrite and os.path.lexists(path):
            raise FileExistsError(f"{os.fspath(path)!r} is there already; give overwrite=True to replace it.")
        with whole_file(path) as file:
            file.write(text.encode(errors="surrogatepass"))


@dataclass(frozen=True, eq=False)
class CountsOfLabels(Query):
    """Labels of units, each unit's of sum one at most."""

    shape: tuple
    kind = "labels"
    lemma = "labels, Theorem 1"


class LabelEStep:
    """What each privacy unit adds to the counts of labels: NORM_BOUND at most in all, in integers.

    `found` has a list of the labels' numbers for each document, of that document alone; a unit has the `most` labels
    that most of its documents have, the first of those that are alike. `units` are as from `check_groups`.
    """

    def __init__(self, found, n_labels, units, most):
        self.n_units, self._n_labels, self._most = len(units[0]) - 1, n_labels, most
        lengths = np.array([len(labels) for labels in found], np.int64)
        unit = np.repeat(unit_of_documents(units), lengths)
        label = np.array([label for labels in found for label in labels], np.int64)
        keys, n_documents = np.unique(unit * n_labels + label, return_counts=True)
        unit, label = np.divmod(keys, n_labels)
        order = np.lexsort((label, -n_documents, unit))
        unit, label = unit[order], label[order]
        rank = np.arange(len(unit)) - np.searchsorted(unit, unit)
        self._unit, self._label = unit[rank < most], label[rank < most]

    def collect(self, query, round_, active):
        """Return the sum of all units' contributions."""
        sums = Contributions((1, self._n_labels), norm=1)
        each = np.full(len(self._unit), math.floor(NORM_BOUND * (1 - MARGIN) / self._most), np.int64)
        sums.add_whole(each, self._label, self._unit, self.n_units)
        return sums.bounded()


def count_labels(
    texts: Any,
    labels: Any,
    *,
    epsilon: float,
    embedder: Any = None,
    classify: Function | None = None,
    least_cosine: float = 0.3,
    most: int = 1,
    groups: ArrayLike | None = None,
) -> LabelCounts:
    """Count how many users, or texts, have each of some public labels: a private release of its own, a pure epsilon.

    With `groups` users are counted. Which label a text has decides a public function, or the nearest label by public
    embeddings: these do not move. The budget of an open `PrivacyAccountant` is checked before texts are read, and
    charged before the release. Texts that have no label, or for which the function or the embedder fails, count as
    "other", and no message tells of them.

    Parameters
    ----------
    texts : iterable of str, or array-like of shape (n_texts, n_features)
        The private texts; or their embeddings, each made by a public model from its own text alone, where labels have
        vectors.
    labels : sequence of str or mapping
        The public names, all different. With `embedder`, a mapping may have a longer text for each; a mapping to
        vectors is for embeddings.
    epsilon : float
        Privacy loss of the counts, for one text or user; without a delta. `inf`: exact counts.
    embedder : object with `transform` or `encode`, callable or None, default=None
        As of :class:`~skdplda.vocabulary.TextEmbedder`: a text has the label of the largest cosine.
    classify : callable or None, default=None
        In place of the embedder: makes a label, or several, of one text. It must be public, and remember no text.
    least_cosine : float, default=0.3
        A text whose largest cosine is below it is "other". Not for `classify`.
    most : int, default=1
        Labels that a unit counts for at most: those that most of its texts have. The noise grows in proportion.
    groups : array-like of shape (n_documents,), default=None
        The user of each document: the guarantee then is for all documents of one user together.

    Returns
    -------
    counts : LabelCounts
        With errors and guarantee.

    Raises
    ------
    BudgetExceededError
        If an open accountant cannot afford the release. No text was read.
    ValueError
        If arguments are not as described.

    References
    ----------
    .. [1] "Known questions" in the theory guide, Theorem 1.

    Examples
    --------
    >>> from skdplda import count_labels
    >>> texts = ["I want my money back", "where is my parcel"] * 500 + ["hello"] * 30
    >>> def topic(text):
    ...     return "refund" if "money" in text else "shipping" if "parcel" in text else None
    >>> found = count_labels(texts, ["refund", "shipping"], epsilon=1.0, classify=topic)
    >>> found.table().index.tolist()[-1], found.privacy_guarantee_
    ('other', PrivacyGuarantee(epsilon=1, delta=0, document, add-remove, central, proven))
    """
    names, given = _checked_labels(labels)
    if not is_integer(most) or not 1 <= most <= len(names):
        raise ValueError(f"most must be an integer from 1 to the {len(names)} labels; got {most!r}.")
    if not is_real(least_cosine) or not -1 <= least_cosine <= 1:
        raise ValueError(f"least_cosine must be a number from -1 to 1; got {least_cosine!r}.")
    if classify is not None and not callable(classify):
        raise ValueError(f"classify must be a function of a text; got {kind_of(classify)}.")
    of_vectors = given is not None and not all(isinstance(value, str) for value in given)
    if sum((embedder is not None, classify is not None, of_vectors)) != 1:
        raise ValueError("give one of embedder, classify, and labels that are a mapping to vectors.")
    public = None if classify is not None else _directions(names if given is None else given, embedder)
    if public is not None and not public.any(axis=1).all():
        raise ValueError("each label must have a vector other than 0, or words that the embedder knows.")
    plan = counting_plan(epsilon)
    unit = "document" if groups is None else "user"
    guarantee = _guarantee(plan, unit, epsilon, len(names), most)
    charge = BudgetCharge(guarantee, "counts of labels")
    charge.check()
    texts = texts if of_vectors else _listed(texts)
    if classify is not None:
        found = [_classified(classify, text, names) for text in texts]
    else:
        rows = texts if embedder is None else _rows(embedder, texts, public.shape[1])
        found = _nearest(_directions(rows, None), public, least_cosine)
    e_step = LabelEStep(found, len(names) + 1, check_groups(groups, len(found)), int(most))
    charge.charge(uuid4().hex)
    released = counted(CountsOfLabels((1, len(names) + 1)), e_step, plan, "counts of labels")
    scale = most / NORM_BOUND
    counts = pd.Series(released[0] * scale, index=pd.Index([*names, OTHER], name="label"), name="count")
    return LabelCounts(counts, plan.deviation(0) * most, int(most), guarantee)


def _checked_labels(labels):
    """Return the names of labels, and what is given for each, or None."""
    given = list(labels.values()) if isinstance(labels, Mapping) else None
    names = [] if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable) else list(labels)
    if not names or not all(isinstance(name, str) and name for name in names) or len({*names, OTHER}) <= len(names):
        hint = (
            " Put one name into a list; of a file give the lines."
            if isinstance(labels, (str, bytes, os.PathLike))
            else ""
        )
        raise ValueError(
            f"labels must be a list of public names, all different and none of them {OTHER!r}; got"
            f" {labels!r:.200}.{hint}"
        )
    return names, given


def _listed(texts):
    if isinstance(texts, (str, bytes)):
        raise ValueError("texts must be a list of texts; got one text. Put it into a list.")
    return list(texts)


def _classified(classify, text, names):
    """Return the numbers of a text's labels: whatever the function does with it, there is a release."""
    try:
        found = classify(text)
        found = [found] if isinstance(found, str) or not isinstance(found, Iterable) else list(found)
        return sorted({names.index(name) for name in found if name in names}) or [len(names)]
    except Exception:  # one text must not decide whether there is a release
        return [len(names)]


def _rows(embedder, texts, n_dimensions):
    """Return the vectors of texts; zeros, so that it is "other", of one for which the embedder makes no such vector."""
    if type(embedder) is WordVectorEmbedder:
        with suppress(Exception):  # of one text: it is given alone below
            return embedded(embedder, texts)
    rows = np.zeros((len(texts), n_dimensions))
    for place, text in enumerate(texts):
        with suppress(Exception):  # as of a function; and what the embedder raises may hold the text
            row = embedded(embedder, [text])
            if row.shape == (1, n_dimensions):
                rows[place] = row[0]
    return rows


def _directions(given, embedder):
    """Return whole-numbered directions of texts, or of vectors where there is no embedder."""
    rows = np.asarray(given, np.float64) if embedder is None else embedded(embedder, list(given))
    if rows.ndim != 2:
        raise ValueError(f"texts and labels must have vectors of the same dimensions; got shape {rows.shape}.")
    return grid_directions(rows)


def _nearest(directions, public, least_cosine):
    """Return [number of the label of largest cosine] of each text, that of "other" below the least cosine."""
    if directions.shape[1] != public.shape[1]:
        raise ValueError(f"texts must have the {public.shape[1]} dimensions of labels; got {directions.shape[1]}.")
    found = []
    for first in range(0, len(directions), BLOCK):
        cosines = directions[first : first + BLOCK] @ public.T / LENGTH**2  # of whole numbers: exact
        known = directions[first : first + BLOCK].any(axis=1) & (cosines.max(axis=1) >= least_cosine)
        found += np.where(known, cosines.argmax(axis=1), len(public))[:, None].tolist()
    return found


def _guarantee(plan, unit, epsilon, n_labels, most):
    """Return the guarantee of the counts."""
    return counts_guarantee(
        plan,
        unit,
        epsilon,
        not_covered=NOT_COVERED,
        assumptions=(
            "the labels, and the function or the embedding model that decides which text has which, do not depend on"
            " the private texts, and look at one text at a time",
        ),
        mechanism=(
            f"{plan.law.label} noise of scale {plan.multipliers[0] * most:.4g} on counts of {n_labels} labels and"
            f" {OTHER!r}, of which a {unit} counts for {most} at most"
        ),
        reference="skdplda theory guide, known questions",
    )
