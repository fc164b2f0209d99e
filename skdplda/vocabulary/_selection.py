"""What selector and vectorizer share: the guarantee, the budget charge, and the selection from the words of units."""

import math
from collections import Counter
from functools import partial
from numbers import Integral, Real
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from skdplda._validation import SEED, Interval, StrOptions, check_groups, fit_context, note_groups, note_parameters
from skdplda.distributed import ShardedDocuments, load_documents, shards_of
from skdplda.exceptions import EmptySelectionError
from skdplda.privacy import (
    BudgetCharge,
    LedgerAwareMixin,
    PartitionPlan,
    PrivacyGuarantee,
    Randomness,
    UnitWords,
    check_released,
    epsilon_needed,
    gaussian_event,
    level_parts,
    most_units,
    plan_partition,
    sampler_assumption,
    seeded_guarantee,
    select_partitions,
    select_words,
    stated_guarantee,
)

REFERENCES = {
    "policy_gaussian": "Gopi et al. (2020), Differentially private set union (Policy Gaussian)",
    "policy_laplace": "Gopi et al. (2020), Differentially private set union (Policy Laplace)",
    "item_frequency": "Carvalho et al. (2022), Incorporating item frequency for differentially private set union",
    "weighted_gaussian": "Gopi et al. (2020), Differentially private set union (weighted Gaussian)",
    "sips": "Swanberg et al. (2023), DP-SIPS: a simpler, more scalable mechanism for differentially private partition"
    " selection",
    "mad": "Chen et al. (2025), Scalable private partition selection via adaptive weighting (MAD), re-derived",
    "mad2r": "Chen et al. (2025), Scalable private partition selection via adaptive weighting (MAD2R), re-derived",
    "truncated_geometric": "Desfontaines et al. (2022), Differentially private partition selection",
}
EXAMPLE_WORDS = 10  # of a unit, in the error that nothing was selected


class PrivateSelection(LedgerAwareMixin, BaseEstimator):
    """Base of the estimators that select words; a subclass has the parameters below and `fit`."""

    _parameter_constraints = {  # noqa: RUF012
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "method": [StrOptions(set(PartitionPlan.METHODS))],
        "mechanism": [str, None],
        "max_words_per_unit": [Interval(Integral, 1, 10_000, closed="both")],
        "max_words": [Interval(Integral, 1, None, closed="left"), None],
        "cutoff": [Interval(Real, 0, None, closed="left")],
        "public_vocabulary": ["array-like", None],
        "random_state": SEED,
    }

    @fit_context(prefer_skip_nested_validation=True)
    def privacy_cost(self, *, groups: bool = False) -> PrivacyGuarantee:
        """Return the guarantee that `fit` would give, without data.

        Parameters
        ----------
        groups : bool, default=False
            Whether `fit` will be given groups.

        Returns
        -------
        guarantee : PrivacyGuarantee
            Equal to `privacy_guarantee_` after the fit.
        """
        return stated_guarantee(self, self._guarantee("user" if groups else "document"))

    _n_levels = 1  # of n-grams
    _released: tuple[str, ...] = ()  # beside the noisy weights

    def _has_noise(self):
        return self.public_vocabulary is None and np.isfinite(self.epsilon)

    def _plan(self, part=1.0, epsilon=None):
        """Return the selection, from the parameters alone; or that of a level, which has a part of the budget.

        `epsilon` is in the place of that of the parameters.
        """
        epsilon, most = self.epsilon if epsilon is None else epsilon, self.max_words_per_unit
        return plan_partition(self.method, epsilon, self.delta, most, self.cutoff, self.mechanism, part)

    def _guarantee(self, unit):
        released = (*self._released, *(("noisy_weights_",) if self._has_noise() else ()))
        common = {"unit": unit, "not_covered": self._not_covered, "released": released}
        if self.public_vocabulary is not None:
            return PrivacyGuarantee(
                epsilon=0.0,
                status="proven",
                mechanism="a public vocabulary: no data are used",
                assumptions=("public_vocabulary was chosen without looking at the documents",),
                event=gaussian_event(math.inf),
                **common,
            )
        plan = self._plan()
        if plan.mechanism is None:
            return PrivacyGuarantee(epsilon=np.inf, status="proven", mechanism="none", **common)
        parts = level_parts(self._n_levels)
        levels = [self._plan(part) for part in parts] if len(parts) > 1 else [plan]
        assumptions = [
            "hidden state, checkpoints and raw text stay with the curator",
            "the hidden draws of different units act as independent ones",
            Randomness.assumption,
            sampler_assumption(in_delta=True),
        ]
        if (most := most_units(self.method)) is not None:
            assumptions.append(f"that there are at most {most:,} {unit}s may be known: more are refused")
        label = f"truncated {plan.law.label}" if plan.mechanism == "geometric" else plan.law.label
        scales = _range(scale / p.grid for p in levels for scale in p.scales)
        thresholds = _range(t / p.grid for p in levels for t in p.thresholds)
        thresholds = f"the round's threshold, {thresholds}," if " to " in thresholds else thresholds
        rounds = (
            f"in {n_rounds} rounds, " if (n_rounds := len([scale for p in levels for scale in p.scales])) > 1 else ""
        )
        judged = "a word whose mean weight until then is above" if plan.coefficients else "a word above"
        precisions = [p.grid / scale * (p.grid / scale) for p in levels for scale in p.scales]
        together = ""
        if len(precisions) > 1 and plan.law.norm == 2:
            whole = 1 / math.sqrt(math.fsum(precisions))
            together = f"; all rounds together tell no more than one with noise of scale {whole:.4g}"
        by_levels = f"; n-grams of up to {len(levels)} words by levels, each of its own rounds" if levels[1:] else ""
        guarantee = PrivacyGuarantee(
            epsilon=self.epsilon,
            delta=self.delta,
            status="proven",
            mechanism=(
                f"vocabulary selection {self.method}: {rounds}{label} noise of scale {scales} on the weight of"
                f" each word, of which a {unit} gives at most {plan.max_items} words one unit in all; {judged}"
                f" {thresholds} is released{by_levels}{together}"
            ),
            assumptions=tuple(assumptions),
            reference=REFERENCES.get(self.method, "skdplda theory guide, vocabulary"),
            event=plan.event,
            event_delta=min(math.fsum(level.event_delta for level in levels), self.delta),
            **common,
        )
        return seeded_guarantee(guarantee, self.random_state)

    def _budget_charge(self, unit, run=None):
        """Return the charge of the fit. The ledger has been asked, before any data are read."""
        charge = BudgetCharge(stated_guarantee(self, self._guarantee(unit)), f"{type(self).__name__} fit", self)
        if self.public_vocabulary is None:
            charge.check(run)
        return charge

    def _sharded(self, X, groups):
        """Return documents that lie on workers, else None."""
        if self.method in PartitionPlan.IN_TURN and shards_of(X) is not None:
            raise ValueError(
                f"X must be on this machine for method={self.method!r}, in which units give one after the other;"
                " use method='sieve' on a cluster."
            )
        return load_documents(X, groups)

    def _start(self):
        """Return the randomness of a fit; warn of what weakens the guarantee, on every fit. Called by `fit`."""
        randomness = self._randomness()
        if np.isfinite(self.epsilon):
            randomness.warn_if_seeded(self)
        return randomness

    def _select(self, X, groups, charge, randomness):
        """Return numbers, noisy weights and rounds of the words that may be named; charge before anything is released.

        A document uses the words with entries that are not zero. `groups` has the user of each document, or is None.
        """
        plan = self._plan(level_parts(self._n_levels)[0])
        if not X.shape[0]:
            raise ValueError("there is no document: give at least one. Nothing was spent.")
        if isinstance(X, ShardedDocuments):
            words = ShardedWords(X, plan.max_items, randomness.key)
            charge.charge(uuid4().hex)
            selected = select_words(plan, words, randomness)
        else:
            lists = unit_words(X, groups, plan.by_frequency)
            charge.charge(uuid4().hex)
            selected = select_partitions(plan, *lists, X.shape[1], randomness)
        if not len(selected[0]):
            raise EmptySelectionError(self._nothing(plan))
        return selected

    def _select_level(self, X, groups, level):
        """Return what `_select` does for a level after the first, of which X has the n-grams; it may be nothing."""
        plan = self._plan(level_parts(self._n_levels)[level])
        return select_partitions(plan, *unit_words(X, groups), X.shape[1], self._randomness(level))

    _seeded_as = None  # name that tells the randomness of a seed from that of other classes; None: its own

    def _randomness(self, level=0):
        name = self._seeded_as or type(self).__name__
        return Randomness(self.random_state, name + (f" level {level}" if level else ""))

    def _set_selected(self, weights, groups, charge):
        """Set what a fit tells beside the words, in place of what an earlier one told."""
        vars(self).pop("noisy_weights_", None)
        if self._has_noise():
            self.noisy_weights_ = weights
        self.privacy_guarantee_ = charge.guarantee
        check_released(self)
        note_parameters(self)
        note_groups(self, users_of(self, groups))

    def _heaviest(self, names, weights, rounds):
        """Return the places of the words to keep: by round and weight, and where both are equal by name.

        Nothing but what was released decides. The order in which words appeared in documents must not. Of n-grams that
        are cut in different ways and then read alike, the first is kept.
        """
        places = {}
        for i in sorted(range(len(names)), key=lambda i: (rounds[i], -weights[i], names[i])):
            places.setdefault(names[i], i)
        return np.sort([*places.values()][: self.max_words])

    def _nothing(self, plan):
        """Say what would be released at which epsilon, from the parameters alone."""
        n_words = min(EXAMPLE_WORDS, self.max_words_per_unit)
        needed = plan.units_needed(n_words)
        text = (
            "No word was used by enough documents (users) to be released; the budget is spent. With"
            f" epsilon={self.epsilon:g} a word must be used by about {needed:,} documents (users) of {n_words} words"
            " each. A word that one alone uses stays unnamed, but for a probability within delta."
        )
        for n_units in sorted({max(needed // 10, 2), max(needed // 3, 2)} if plan.mechanism else ()):
            epsilon = epsilon_needed(n_units, n_words, partial(self._plan, level_parts(self._n_levels)[0]))
            if math.isfinite(epsilon):
                text += f" Words that {n_units:,} of these use need about epsilon={epsilon:.2g}."
        return text + " A public_vocabulary costs nothing."


def users_of(estimator, groups):
    """Return the documents of each user for `note_groups`, or None: not known, or not asked for."""
    asked = estimator.public_vocabulary is None and hasattr(groups, "__len__")
    return check_groups(groups, len(groups)) if asked and not hasattr(type(groups), "__dask_graph__") else None


def unit_words(X, groups, counted=False):
    """Return (start, words, counts): the words of each unit, each once, and how often it uses them, or None."""
    start, documents = check_groups(groups, X.shape[0])
    X = sp.csr_array(X)
    used = np.abs(X.data).astype(np.float64, copy=False) if counted else X.data != 0
    X = sp.csr_array((used, X.indices, X.indptr), shape=X.shape)  # the caller's indices, which must not change
    if groups is not None:
        ones = np.ones(len(documents), dtype=used.dtype)
        X = sp.csr_array((ones, documents, start), shape=(len(start) - 1, X.shape[0])) @ X
    if not (X.has_canonical_format and X.data.all()):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    return X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data if counted else None


class PartOfWords(UnitWords):
    """On a worker: the words of one part's units."""

    def __init__(self, X, *, units, first_document, most, key, n_threads):
        numbers = first_document + np.arange(X.shape[0]) if units is None else np.unique(units)
        super().__init__(*unit_words(X, units), X.shape[1], most, key, numbers.astype(np.int64))


class ShardedWords:
    """`UnitWords` of documents on workers, from `ShardedDocuments`."""

    def __init__(self, documents, most, key):
        self._pool = documents.pool
        self._pool.build(partial(PartOfWords, most=most, key=key), documents.arguments(), replays=False)

    def used(self):
        """Return a positive number for each word that a unit uses, else 0."""
        return self._pool.total("used", ())

    def size(self):
        """Return the number of units."""
        return self._pool.total("size", ())

    def shared(self, active, share):
        """Return the weights of the words."""
        return self._pool.total("shared", (active, share))

    def rerouted(self, active, share, back, back_share):
        """Return the weights of the words, with what comes back to the units."""
        return self._pool.total("rerouted", (active, share, back, back_share))


def refuse_repetitions(words):
    """Raise ValueError if a public vocabulary names a word twice."""
    twice = sum(count > 1 for count in Counter(words).values())
    if twice:
        raise ValueError(f"public_vocabulary must name each word once; got {twice} of them more than once.")


def _range(numbers):
    """Return the least and the greatest of some numbers in words, or the one that all are."""
    numbers = sorted(numbers)
    return " to ".join(dict.fromkeys(f"{number:.4g}" for number in (numbers[0], numbers[-1])))
