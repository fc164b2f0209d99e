"""Documents in memory or on disk, as the E-steps read them: cut, and with the weights of their privacy units."""

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import total
from skdplda._rows import chunks, csr_of, rows_of
from skdplda._validation import check_groups, unit_of_documents
from skdplda.rounds._bounds import cut_to_tokens, shortened, unit_weights

# Entries in memory at a time where documents of one user are read together, and those of a single user of more.
ENTRIES = 2**22


def cut_documents(X, max_length, key, numbers):
    """Return the documents with at most `max_length` tokens each, drawn without replacement; None returns X.

    X is a csr_array as from `check_counts`. The draws depend on `key`, an integer, on the number of the document, one
    of `numbers`, and on no other document.
    """
    if max_length is None:
        return X

    def tokens(document, n_tokens):
        draws = np.random.default_rng([key, int(numbers[document])])
        return draws.choice(n_tokens, max_length, replace=False, shuffle=False)

    return cut_to_tokens(X, max_length, tokens)


def only(X, words):
    """Return the counts of some words, given as flags of all."""
    some = X[:, np.flatnonzero(words)]
    return csr_of(some.data, some.indices.astype(np.int32), some.indptr.astype(np.int64), some.shape)


class CutDocuments:
    """Documents in memory or on disk, and the privacy units that they belong to.

    X are counts as from `check_counts`, or what is read a block at a time by its method `blocks`; `units` as from
    `check_groups`, None if each document is its own; `max_length` and `key` as in `cut_documents`. `first_document` is
    the number of the first one in the corpus. `words`, flags of (n_words,), are those that are left in after documents
    are cut.
    """

    def __init__(self, X, units, *, max_length, key, first_document=0, words=None):
        self.in_memory, self._source, self._units = sp.issparse(X), X, units
        self._cut = {"max_length": max_length, "key": key}
        self._first, self._words = first_document, words
        self.shape = X.shape[0], X.shape[1] if words is None else int(np.count_nonzero(words))
        self.unit = None if units is None else unit_of_documents(units)
        self.n_units = X.shape[0] if units is None else len(units[0]) - 1
        self._all = self._read(X, np.arange(X.shape[0])) if self.in_memory else None
        self._weights, self._shares = {}, None  # of all documents; weights for each order and least norm

    def only(self, words):
        """Return the same documents with some words alone, given as flags of all."""
        if self.in_memory:
            return self._all if words.all() else only(self._all, words)
        return CutDocuments(self._source, None, **self._cut, first_document=self._first, words=words)

    def blocks(self, active=None):
        """Yield (numbers, documents): all at once in memory, and on disk in blocks, of those flagged as active."""
        if self.in_memory:
            yield np.arange(self.shape[0]), self._all
            return
        for numbers, block in self._source.blocks(active):
            yield numbers, self._read(shortened(block), numbers)

    def by_unit(self, active=None):
        """Yield (documents, rows, units): documents with those of whole units among them, of units flagged as active.

        `rows` are numbers of documents, ordered by unit, and `units` where each unit begins there, and where all end;
        None if each document is its own. On disk users are read some at a time, and each with all of its documents.
        """
        if self._units is None:
            for numbers, X in self.blocks(active):
                yield X, np.arange(len(numbers)) if active is None else np.flatnonzero(active[numbers]), None
            return
        start, documents = self._units
        if active is not None:
            active = np.asarray(active, bool)
            documents = documents[np.repeat(active, np.diff(start))]
            start = np.concatenate([[0], np.cumsum(np.diff(start)[active])])
        if self.in_memory:
            yield self._all, documents, start
        else:
            for _, *whole in self._users_on_disk(start, documents):
                yield tuple(whole)

    def _users_on_disk(self, start, documents):
        """Yield (numbers, documents, rows, units) as `by_unit` does, of units as from `check_groups`."""
        before = np.concatenate([[0], np.cumsum(self.lengths()[documents])])[start]  # entries, up to each unit
        first = 0
        while first < len(start) - 1:
            last = max(first + 1, int(np.searchsorted(before, before[first] + ENTRIES, side="right")) - 1)
            members = documents[start[first] : start[last]]
            wanted = np.zeros(self.shape[0], bool)
            wanted[members] = True
            numbers, blocks = zip(*self.blocks(wanted), strict=True)
            numbers, X = np.concatenate(numbers), sp.csr_array(sp.vstack(blocks))
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int64)
            yield numbers, X, np.searchsorted(numbers, members), start[first : last + 1] - start[first]
            first = last

    def lengths(self):
        """Return the number of entries of each document before it is cut."""
        return np.diff(self._source.indptr) if self.in_memory else self._source.lengths()

    def sizes(self, numbers):
        """Return the number of documents of the unit of each of these documents."""
        return np.ones(len(numbers)) if self._units is None else np.diff(self._units[0])[self.unit[numbers]]

    def shares(self, numbers):
        """Return the norm of each of these documents over that of its unit, if no two documents of a unit had a word.

        It is at least what a document has of the norm of what its unit contributes, where all are spread alike.
        """
        if self._units is None:
            return np.ones(len(numbers))
        if self._shares is None:
            some = (rows_of(X, rows) for _, X in self.blocks() for rows in chunks(X.shape[0], 4, X.indptr))
            squares = np.concatenate([np.empty(0), *(total(X.astype(np.float64) ** 2, axis=1) for X in some)])
            of_unit = np.bincount(self.unit, squares, self.n_units)
            self._shares = np.sqrt(squares / np.maximum(of_unit, 1.0)[self.unit])
        return self._shares[numbers]

    def weights(self, X, numbers, order, least=1.0):
        """Return what a token of each of these documents adds, as `unit_weights` does; X is what `blocks` yielded.

        The weights of users are computed once, because a user's documents may lie in several blocks.
        """
        if self._units is None and not self.in_memory:
            return unit_weights(X, check_groups(None, X.shape[0]), order, least)
        if (order, least) not in self._weights:
            if self.in_memory:
                units = self._units or check_groups(None, self.shape[0])
                self._weights[order, least] = unit_weights(self._all, units, order, least)
            else:
                self._weights[order, least] = self._unit_weights_on_disk(order, least)
        return self._weights[order, least][numbers]

    def _read(self, X, numbers):
        X = cut_documents(X, **self._cut, numbers=self._first + numbers)
        return X if self._words is None else only(X, self._words)

    def _unit_weights_on_disk(self, order, least):
        """Return the weights of all documents; users are read some at a time, and each with all of its documents."""
        weights = np.empty(self.shape[0], np.int32)
        for numbers, X, rows, units in self._users_on_disk(*self._units):
            weights[numbers] = unit_weights(X, (units, rows), order, least)
        return weights
