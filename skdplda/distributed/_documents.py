"""Documents on workers, and the privacy units that they belong to."""

from typing import Any

import numpy as np

from skdplda._types import ArrayLike
from skdplda._validation import check_groups, names_of, unit_of_documents
from skdplda.distributed._pool import ActorPool, Pool
from skdplda.distributed._shards import shards_of
from skdplda.distributed._spark import SparkPool


def load_documents(
    X: Any,
    groups: ArrayLike | None = None,
    *,
    n_threads: int | None = None,
    digest: bool = False,
    embedded: bool = False,
) -> "ShardedDocuments | None":
    """Let workers load what `fit` was given; None for data on this machine. `digest` says that `data` is needed."""
    shards = shards_of(X)
    if shards is None:
        return None
    if shards.users is not None and groups is not None and not np.array_equal(names_of(groups), shards.users):
        raise ValueError("groups must be those that by_user returned: documents have another order now.")
    engine = ActorPool if shards.rdd is None else SparkPool
    pool = engine(shards, n_threads=n_threads, digest=digest, embedded=embedded)
    try:
        return ShardedDocuments(pool, groups)
    except BaseException:
        pool.close()
        raise


class ShardedDocuments:
    """Documents on workers, and the users that they belong to, whose documents must not lie in several blocks."""

    def __init__(self, pool: Pool, groups: ArrayLike | None) -> None:
        self.pool = pool
        lengths = [part.n_documents for part in pool.parts]
        self.first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.n_units, self._unit = pool.n_documents, None
        if groups is not None:
            groups = groups.compute() if hasattr(type(groups), "__dask_graph__") else groups
            units = check_groups(groups, pool.n_documents)
            self.n_units, self._unit = len(units[0]) - 1, unit_of_documents(units)
            self._refuse_scattered()

    @property
    def shape(self) -> Any:
        """(n_documents, n_words)."""
        return self.pool.n_documents, self.pool.n_words

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return sum(part.n_tokens for part in self.pool.parts)

    @property
    def data(self) -> Any:
        """What a checkpoint must belong to: arrays for `fingerprint`."""
        digests = "".join(part.digest for part in self.pool.parts)
        return np.frombuffer(digests.encode(), np.uint8), *(() if self._unit is None else (self._unit,))

    def _refuse_scattered(self):
        sizes = np.array([size for part in self.pool.parts for size in part.sizes], np.int64)
        block = np.repeat(np.arange(len(sizes)), sizes)
        lowest, highest = np.full(self.n_units, len(sizes)), np.zeros(self.n_units, np.int64)
        np.minimum.at(lowest, self._unit, block)
        np.maximum.at(highest, self._unit, block)
        if (lowest < highest).any():
            user = np.argmax(lowest < highest)
            raise ValueError(
                f"groups has documents of one user in several blocks, from block {lowest[user]} to block"
                f" {highest[user]}: a worker bounds what a user adds, and must see all of it."
                " ShardedCounts(X).by_user(groups) brings them together."
            )

    def units_of(self, part: int) -> Any:
        """Return the numbers of the units of a part, ascending, as a slice or an array."""
        here = slice(self.first[part], self.first[part + 1])
        return here if self._unit is None else np.unique(self._unit[here])

    def arguments(self) -> Any:
        """Return what the states of the parts are made with, by `ActorPool.build`: the units and the place of each."""
        return [
            {
                "units": None if self._unit is None else self._unit[self.first[part] : self.first[part + 1]],
                "first_document": int(self.first[part]),
            }
            for part in range(len(self.pool.parts))
        ]
