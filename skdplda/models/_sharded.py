"""The E-step of documents on workers: each holds an E-step of its own documents, and sums travel."""

from functools import partial

import numpy as np

from skdplda._validation import check_groups
from skdplda.distributed import Crew, shards_of
from skdplda.models._contributions import unit_of_documents

__all__ = ["ShardedDocuments", "ShardedStep", "sharded_documents"]


def sharded_documents(estimator, X, groups=None):
    """Return what `fit` was given as `ShardedDocuments`, loaded by their workers, or None for data on this machine.

    Parameters
    ----------
    estimator : BaseTopicModel
        Whose `n_features_in_` is set, for data on workers.
    X : object
        As `fit` was given it.
    groups : array-like or None
        As `fit` was given them.
    """
    shards = shards_of(X)
    if shards is None:
        return None
    crew = Crew(shards, n_threads=threads_of_members(estimator.n_jobs), digest=estimator.checkpoint is not None)
    try:
        documents = ShardedDocuments(crew, groups)
    except BaseException:
        crew.close()
        raise
    vars(estimator).pop("feature_names_in_", None)  # of an earlier fit
    estimator.n_features_in_ = crew.n_words
    return documents


def threads_of_members(n_jobs):
    """Return how many threads a worker is told to use: as many as it has where `n_jobs` does not say."""
    return n_jobs if n_jobs is not None and n_jobs > 0 else None


class ShardedDocuments:
    """Documents on workers, and the privacy units that they belong to.

    Parameters
    ----------
    crew : Crew
        Of the documents.
    groups : array-like of shape (n_documents,) or None
        The user of each document.

    Raises
    ------
    ValueError
        If a user's documents lie in several blocks.
    """

    def __init__(self, crew, groups):
        self.crew = crew
        lengths = [part.n_documents for part in crew.parts]
        self.first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.longest = max(part.longest for part in crew.parts)
        self.n_units, self._unit = crew.n_documents, None
        if groups is not None:
            groups = groups.compute() if hasattr(type(groups), "__dask_graph__") else groups
            units = check_groups(groups, crew.n_documents)
            self.n_units, self._unit = len(units[0]) - 1, unit_of_documents(units)
            self._refuse_scattered(np.asarray(groups))

    @property
    def shape(self):
        """(n_documents, n_words)."""
        return self.crew.n_documents, self.crew.n_words

    @property
    def data(self):
        """What a checkpoint must belong to: arrays for `fingerprint`."""
        digests = "".join(part.digest for part in self.crew.parts)
        return np.frombuffer(digests.encode(), np.uint8), *(() if self._unit is None else (self._unit,))

    def _refuse_scattered(self, groups):
        sizes = np.concatenate([part.sizes for part in self.crew.parts])
        block = np.repeat(np.arange(len(sizes)), sizes)
        lowest, highest = np.full(self.n_units, len(sizes)), np.zeros(self.n_units, np.int64)
        np.minimum.at(lowest, self._unit, block)
        np.maximum.at(highest, self._unit, block)
        if (lowest < highest).any():
            user = np.argmax(lowest < highest)
            name = groups[self._unit == user].tolist()[0]
            raise ValueError(
                f"groups has documents of user {name!r} in several blocks, from block"
                f" {lowest[user]} to block {highest[user]}: a worker bounds what a user adds, and must see all of it."
                " Sort the documents by user and cut between users."
            )

    def members_of(self, part):
        """Return the numbers of the units of a part, ascending: a slice or an array."""
        here = slice(self.first[part], self.first[part + 1])
        return here if self._unit is None else np.unique(self._unit[here])

    def arguments(self):
        """Return what `make` of a part is told: its units, its place, and the longest document of all."""
        return [
            {
                "units": None if self._unit is None else self._unit[self.first[part] : self.first[part + 1]],
                "first_document": int(self.first[part]),
                "longest": self.longest,
            }
            for part in range(len(self.crew.parts))
        ]

    def step(self, make, randomness, *, stateless=False):
        """Return the E-step.

        Parameters
        ----------
        make : callable
            `make(X, units, first_document=, longest=, randomness=, n_threads=)` returns the E-step of a part.
        randomness : Randomness
            Of this fit. Its key travels to the workers, and nothing else of it.
        stateless : bool, default=False
            Whether E-steps remember nothing between rounds.
        """
        self.crew.build(partial(PartOfStep, make), self.arguments(), replays=not stateless)
        return ShardedStep(self, randomness, stateless)


class Key:
    """The `Randomness` of a worker: the key of the hidden draws, and no way to make noise."""

    key = 0


class PartOfStep:
    """On a worker: the E-step of one part."""

    def __init__(self, make, X, *, units, first_document, longest, n_threads):
        self._key = Key()
        units = None if units is None else check_groups(units, X.shape[0])
        self._step = make(
            X, units, first_document=first_document, longest=longest, randomness=self._key, n_threads=n_threads
        )

    def collect(self, table, round_, key, n_units=0, active=None):
        """Return the sum of the part's active units; flags come eight in a byte."""
        self._key.key = key
        if active is not None:
            active = np.unpackbits(np.asarray(active), count=n_units)
        return self._step.collect(np.ascontiguousarray(table), round_, active)


class ShardedStep:
    """E-step of the private loop over documents on workers; see `run_rounds`.

    Its checkpoints hold the public tables and the key of the hidden draws instead of hidden state, which follows.

    Parameters
    ----------
    documents : ShardedDocuments
        With their states built.
    randomness : Randomness
        Of this fit.
    stateless : bool
        Whether there is nothing to restore.
    """

    def __init__(self, documents, randomness, stateless):
        self.n_units = documents.n_units
        self._documents, self._randomness, self._stateless = documents, randomness, stateless
        self._history = []  # (table, packed flags of the active units or None) of each round

    def collect(self, table, round_, active):
        """Return the sum of the active units' contributions."""
        flags = None if active is None else np.packbits(active)
        total = self._documents.crew.total(*self._call(table, round_, flags))
        if not self._stateless:
            self._history.append((table, flags))
        return total

    def _call(self, table, round_, flags):
        own = None
        if flags is not None:
            active = np.unpackbits(flags, count=self.n_units)
            parts = [active[self._documents.members_of(p)] for p in range(len(self._documents.crew.parts))]
            own = [(len(part), np.packbits(part)) for part in parts]
        return "collect", (table, round_, self._randomness.key), own

    def arrays(self):
        """Return what hidden state follows from."""
        if self._stateless:
            return {}
        tables, flags = zip(*self._history, strict=True)
        return {"tables": np.stack(tables)} | ({} if flags[0] is None else {"flags": np.stack(flags)})

    def restore(self, arrays):
        """Bring the workers to where the checkpoint was."""
        if self._stateless:
            return
        tables = arrays["tables"]
        self._history = list(zip(tables, arrays.get("flags", [None] * len(tables)), strict=True))
        n_parts = len(self._documents.crew.parts)
        calls = [self._call(table, round_, flags) for round_, (table, flags) in enumerate(self._history)]
        self._documents.crew.replay([(name, shared, own or [()] * n_parts) for name, shared, own in calls])

    def close(self):
        """Let the workers forget the documents."""
        self._documents.crew.close()
