"""Documents that lie on the workers of a Dask cluster, and how their sums reach this machine."""

from skdplda.distributed._actor import Part
from skdplda.distributed._documents import ShardedDocuments, load_documents
from skdplda.distributed._pool import Crew, tree
from skdplda.distributed._shards import ShardedCounts, shards_of

__all__ = ["Crew", "Part", "ShardedCounts", "ShardedDocuments", "load_documents", "shards_of", "tree"]
