"""Documents that lie on the workers of a Dask cluster, and how their sums reach this machine."""

from warnings import warn

from skdplda.distributed._actor import Part
from skdplda.distributed._documents import ShardedDocuments, load_documents
from skdplda.distributed._pool import ActorPool, tree
from skdplda.distributed._shards import ShardedCounts, paired_shards, shards_of

__all__ = [
    "ActorPool",
    "Part",
    "ShardedCounts",
    "ShardedDocuments",
    "load_documents",
    "paired_shards",
    "shards_of",
    "tree",
]


def __getattr__(name: str) -> object:
    if name == "Crew":
        warn("Crew is now called ActorPool; the old name goes with version 0.2.", FutureWarning, stacklevel=2)
        return ActorPool
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
