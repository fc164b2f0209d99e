"""The E-step of documents on workers: each worker holds an E-step of its own documents, and only sums travel."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

from skdplda._validation import check_groups
from skdplda.exact._seeds import SeedCounts
from skdplda.rounds._bounds import bounded_by_kernel, shortened, total_of
from skdplda.rounds._checkpoint import checked_array
from skdplda.rounds._queries import TopicWordCounts


class PartialEStep:
    """On a worker: the E-step of one part of the documents.

    A worker gets the key of the hidden draws, and nothing of the `Randomness` from which noise could be made.
    """

    def __init__(self, make, key, norm, X, *, units, first_document, n_threads):
        self._randomness, self._norm = SimpleNamespace(key=key), norm
        units = None if units is None else check_groups(units, X.shape[0])
        self._e_step = make(
            shortened(X), units, first_document=first_document, randomness=self._randomness, n_threads=n_threads
        )

    def collect(self, query, round_, key, n_units=0, active=None, topics=None):
        """Return the sum of the part's active units; flags come eight in a byte, and topics of `SeedCounts` beside."""
        self._randomness.key = key
        if active is not None:
            active = np.unpackbits(np.asarray(active), count=n_units)
        if isinstance(query, TopicWordCounts):
            query = replace(query, table=np.ascontiguousarray(query.table))
        if topics is not None:
            query = replace(query, topics=topics)
        return dense(total_of(self._e_step.collect(query, round_, active), self._norm))


def dense(table):
    """Return a table, or the lists of one, as an array: lists are not added up on workers."""
    return table.toarray() if sp.issparse(table) else table


class ShardedEStep:
    """E-step of the private loop over documents on workers; see `converse`.

    `make(X, units, first_document=, randomness=, n_threads=)` returns the E-step of a part, whose contributions are
    bounded in the norm of order `norm`, None for none; `stateless` says that it keeps nothing between rounds. The key
    of the randomness travels to the workers, and nothing else of it. Checkpoints hold the public tables and the key of
    the hidden draws. Hidden state follows from both, and stays on the workers.
    """

    def __init__(self, documents, make, randomness, norm, *, stateless=False):
        make = partial(PartialEStep, make, randomness.key, norm)
        documents.pool.build(make, documents.arguments(), replays=not stateless)
        self.n_units, self._norm = documents.n_units, norm
        self._documents, self._randomness, self._stateless = documents, randomness, stateless
        self._history = []  # (query, round, packed flags of the active units or None), where hidden state moved

    def collect(self, query, round_, active):
        """Return the sum of the active units' contributions."""
        flags = None if active is None else np.packbits(active)
        moves = not self._stateless and isinstance(query, TopicWordCounts)
        if isinstance(query, TopicWordCounts):
            table = dense(query.table)
            query = replace(query, table=table.copy() if moves else table)  # the next may be made in its place
        total = self._documents.pool.total(*self._call(query, round_, flags))
        if moves:
            self._history.append((query, round_, flags))
        return total if self._norm is None else bounded_by_kernel(total, self._norm, self.n_units)

    def _call(self, query, round_, flags):
        own = None
        if isinstance(query, SeedCounts):
            units = [self._documents.units_of(p) for p in range(len(self._documents.pool.parts))]
            own, query = [(0, None, query.topics[of_part]) for of_part in units], replace(query, topics=None)
        if flags is not None:
            active = np.unpackbits(flags, count=self.n_units)
            parts = [active[self._documents.units_of(p)] for p in range(len(self._documents.pool.parts))]
            own = [(len(part), np.packbits(part)) for part in parts]
        return "collect", (query, round_, self._randomness.key), own

    def arrays(self):
        """Return the tables and samples that the hidden state follows from."""
        if not self._history:
            return {}
        queries, rounds, _ = zip(*self._history, strict=True)
        state = {"rounds": np.array(rounds), "some": np.array([query.some for query in queries])}
        for i, (query, _, flags) in enumerate(self._history):  # neither types nor samples are those of all rounds
            state |= {f"table_{i}": query.table} | ({} if flags is None else {f"flags_{i}": flags})
        return state

    def restore(self, arrays):
        """Let the workers repeat the rounds up to the checkpoint."""
        if not arrays:
            return
        rounds = checked_array(arrays, "rounds", (None,), int, least=0).tolist()
        dtypes, n_words = (np.int32, np.int64, np.float32, np.float64), self._documents.shape[1]
        some = checked_array(arrays, "some", (len(rounds),), bool).tolist()
        tables = [checked_array(arrays, f"table_{i}", (n_words, None), *dtypes, least=0) for i in range(len(rounds))]
        flags = [f"flags_{i}" for i in range(len(rounds))]
        flags = [checked_array(arrays, n, (-(-self.n_units // 8),), np.uint8) if n in arrays else None for n in flags]
        queries = [TopicWordCounts(table, some=of_some) for table, of_some in zip(tables, some, strict=True)]
        self._history = list(zip(queries, rounds, flags, strict=True))
        n_parts = len(self._documents.pool.parts)
        calls = [self._call(*asked) for asked in self._history]
        self._documents.pool.replay([(name, shared, own or [()] * n_parts) for name, shared, own in calls])

    def close(self):
        """Let the workers forget the documents."""
        self._documents.pool.close()
