"""The E-step of documents on workers: each holds an E-step of its own documents, and sums travel."""

from functools import partial

import numpy as np

from skdplda._validation import check_groups
from skdplda.distributed import load_documents
from skdplda.rounds._sensitivity import shortened

__all__ = ["ShardedStep", "sharded_documents"]


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
    n_jobs = estimator.n_jobs
    n_threads = n_jobs if n_jobs is not None and n_jobs > 0 else None
    documents = load_documents(
        X, groups, n_threads=n_threads, digest=getattr(estimator, "checkpoint", None) is not None
    )
    if documents is not None:
        vars(estimator).pop("feature_names_in_", None)  # of an earlier fit
        estimator.n_features_in_ = documents.shape[1]
    return documents


class Key:
    """The `Randomness` of a worker: the key of the hidden draws, and no way to make noise."""

    key = 0


class PartOfStep:
    """On a worker: the E-step of one part."""

    def __init__(self, make, X, *, units, first_document, n_threads):
        self._key = Key()
        units = None if units is None else check_groups(units, X.shape[0])
        self._step = make(shortened(X), units, first_document=first_document, randomness=self._key, n_threads=n_threads)

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
        As from `sharded_documents`.
    make : callable
        `make(X, units, first_document=, randomness=, n_threads=)` returns the E-step of a part.
    randomness : Randomness
        Of this fit. Its key travels to the workers, and nothing else of it.
    stateless : bool, default=False
        Whether E-steps remember nothing between rounds.
    """

    def __init__(self, documents, make, randomness, *, stateless=False):
        documents.pool.build(partial(PartOfStep, make), documents.arguments(), replays=not stateless)
        self.n_units = documents.n_units
        self._documents, self._randomness, self._stateless = documents, randomness, stateless
        self._history = []  # (table, packed flags of the active units or None) of each round

    def collect(self, table, round_, active):
        """Return the sum of the active units' contributions."""
        flags = None if active is None else np.packbits(active)
        total = self._documents.pool.total(*self._call(table, round_, flags))
        if not self._stateless:
            self._history.append((table, flags))
        return total

    def _call(self, table, round_, flags):
        own = None
        if flags is not None:
            active = np.unpackbits(flags, count=self.n_units)
            parts = [active[self._documents.units_of(p)] for p in range(len(self._documents.pool.parts))]
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
        n_parts = len(self._documents.pool.parts)
        calls = [self._call(table, round_, flags) for round_, (table, flags) in enumerate(self._history)]
        self._documents.pool.replay([(name, shared, own or [()] * n_parts) for name, shared, own in calls])

    def close(self):
        """Let the workers forget the documents."""
        self._documents.pool.close()
