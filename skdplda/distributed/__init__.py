"""Documents that lie on the workers of a Dask cluster, and how their sums reach this machine.

`__all__` is for users. The other names are for the other packages of skdplda only, and may change.
"""

# ruff: noqa: F401

from skdplda.distributed._actor import Part
from skdplda.distributed._documents import ShardedDocuments, load_documents
from skdplda.distributed._pool import ActorPool, Pool, tree
from skdplda.distributed._shards import ShardedCounts, paired_shards, shards_of

__all__ = ["ShardedCounts"]
