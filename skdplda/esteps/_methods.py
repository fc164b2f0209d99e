"""The E-step of estimators of other authors: a function of one document, bounded here, whatever it returns."""

import warnings
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

from skdplda._validation import check_groups
from skdplda.rounds._bounds import MOST_TOKENS, NORM_BOUND, Contributions
from skdplda.rounds._queries import TopicWordCounts
from skdplda.rounds._tables import initial_table

CHUNK = 2**22  # numbers of contributions in memory at a time, but for a unit of more
MOST_WORDS = 500  # of a made-up document


class UnitEStep:
    """E-step of the private loop that is made of a function of one document.

    Each unit's contribution, of all its documents together, is scaled to the L2 norm bound in whole numbers. Nothing
    but the document, its own state and draws, and public values reach the function, `contribution` of
    `skdplda.models.BaseRoundsModel`; what it keeps between rounds is kept here, document by document. A document for
    which it fails, or returns what is no contribution, contributes nothing, and nothing says so: that would say
    something of the document. So failures show on made-up documents, before the fit, with `strict`: see
    `check_contribution`.

    The other parameters are as in `skdplda.rounds.EStep`; X as from `check_counts`.
    """

    def __init__(
        self, X, units=None, *, contribution, n_topics, randomness, n_threads=1, first_document=0, strict=False
    ):
        self._X = X
        self._start_of, self._documents = check_groups(None, X.shape[0]) if units is None else units
        self.n_units = len(self._start_of) - 1
        self._contribution, self._n_topics, self._strict = contribution, n_topics, strict
        self._randomness, self._first, self._states = randomness, first_document, {}

    def collect(self, query, round_, active):
        """Return the sum of the active units' contributions."""
        sums, table = Contributions((self._X.shape[1], self._n_topics)), query.table.view()
        table.flags.writeable = False
        part, size = [], 0
        with nullcontext() if self._strict else warnings.catch_warnings(), np.errstate(all="ignore"):
            if not self._strict:
                warnings.simplefilter("ignore")  # of private documents
            for unit in range(self.n_units) if active is None else np.flatnonzero(active):
                for document in self._documents[self._start_of[unit] : self._start_of[unit + 1]]:
                    words, values = self._values_of(int(document), table, round_)
                    part.append((unit, words, values))
                    size += values.size
                if size > CHUNK:
                    self._add(sums, part)
                    part, size = [], 0
            self._add(sums, part)
        return sums.bounded()

    def _values_of(self, document, table, round_):
        """Return the words of a document and the values of its contribution, (n_words_of_document, n_topics)."""
        entries = slice(self._X.indptr[document], self._X.indptr[document + 1])
        words, counts = self._X.indices[entries].astype(np.int64), self._X.data[entries].astype(np.int64)
        if not len(words):
            return words, np.zeros((0, self._n_topics))
        rng = np.random.default_rng([self._randomness.key, self._first + document, round_])
        state = self._states.get(document)
        try:
            values, state = self._checked(self._contribution(words.copy(), counts, table, state, rng), len(words))
        except Exception:
            if self._strict:
                raise
            values, state = np.zeros((len(words), self._n_topics)), None
        self._states[document] = state
        return words, values

    def _checked(self, found, n_words):
        """Return copies of values and state, or refuse what is neither."""
        if not (isinstance(found, tuple) and len(found) == 2):
            raise ValueError(f"contribution must return (values, state); got {type(found).__name__}.")
        values = np.array(found[0], np.float64)
        state = None if found[1] is None else np.array(found[1], np.float64)
        if values.shape != (n_words, self._n_topics):
            raise ValueError(
                "contribution must return values of shape (number of words of the document, n_components) ="
                f" {(n_words, self._n_topics)}; got {values.shape}."
            )
        if state is not None and state.ndim != 1:
            raise ValueError(f"contribution must return a state of one axis, or None; got shape {state.shape}.")
        return values, state

    def _add(self, sums, part):
        """Add the contributions of some units, each with all of its documents."""
        if not part:
            return
        unit = np.repeat([unit for unit, _, _ in part], [len(words) for _, words, _ in part])
        words, values = (np.concatenate(parts) for parts in list(zip(*part, strict=True))[1:])
        sums.add_scaled(values, words, unit, self.n_units)

    def arrays(self):
        """Return the hidden state."""
        states = {document: state for document, state in self._states.items() if state is not None}
        if not states:
            return {}
        return {
            "documents": np.array(list(states), np.int64),
            "sizes": np.array([len(state) for state in states.values()], np.int64),
            "states": np.concatenate(list(states.values())),
        }

    def restore(self, arrays):
        """Restore the hidden state."""
        if arrays:
            states = np.split(arrays["states"], np.cumsum(arrays["sizes"])[:-1])
            self._states = dict(zip(arrays["documents"].tolist(), states, strict=True))


def check_contribution(contribution, n_words, n_topics, name):
    """Refuse a function that fails on made-up documents, or that is not one of a single document.

    Two rounds are run, of all these documents together, and of each of them alone, the last one first. The sums must be
    the same in whole numbers, and each document within the norm bound. Documents have one word once or 2**20 times,
    some words, and many words. ValueError, which says `name`, if a document's contribution depends on what else was
    summed, or has another shape than it must have.
    """
    X = _made_up(n_words)
    used = np.unique(X.indices)  # of a large table
    table = initial_table((n_words, n_topics), 0)
    options = {"contribution": contribution, "n_topics": n_topics, "strict": True}

    def rounds(first, last):
        step = UnitEStep(X[first:last], None, randomness=SimpleNamespace(key=0), first_document=first, **options)
        return [step.collect(TopicWordCounts(table), round_, None).total[used] for round_ in range(2)]

    together, alone = rounds(0, X.shape[0]), [rounds(d, d + 1) for d in reversed(range(X.shape[0]))]
    for round_, total in enumerate(together):
        parts = [part[round_] for part in alone]
        if not np.array_equal(total, sum(parts)):
            raise ValueError(
                f"{name} gives a document another contribution when it was asked for others before (made-up documents,"
                f" round {round_}). It must be a function of its arguments alone: draw from rng, and keep what"
                " a document needs in the next round in its state."
            )
        if max(int((part * part).sum()) for part in parts) > NORM_BOUND**2:
            raise RuntimeError(f"{name} is beyond the norm bound; please report this.")


def _made_up(n_words):
    """Return documents of public counts."""
    rng, some, many = np.random.default_rng(0), min(n_words, 20), min(n_words, MOST_WORDS)
    rows = [([0], [1]), ([n_words - 1], [MOST_TOKENS]), (np.arange(many), np.ones(many)), (np.arange(some), [3] * some)]
    rows += [(np.sort(rng.choice(n_words, some, replace=False)), rng.integers(1, 9, some)) for _ in range(3)]
    words, counts = (np.concatenate(part) for part in zip(*rows, strict=True))
    bounds = np.cumsum([0, *(len(words) for words, _ in rows)])
    return sp.csr_array((counts.astype(np.int32), words.astype(np.int32), bounds), shape=(len(rows), n_words))
