"""Random corpora of privacy units, and their norms, for the tests of what a unit contributes."""

import numpy as np
import scipy.sparse as sp

from skdplda.rounds import Contributions


def counts_of(X):
    """Return a corpus as `check_counts` does."""
    X = sp.csr_array(X)
    X.indptr, X.indices, X.data = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.int32)
    return X


def random_corpus(rng):
    """Return counts and the user of each document, or None."""
    shape = rng.integers(1, [12, 15])
    X = rng.poisson(rng.choice([0.3, 2.0, 8.0, 1e5]), size=shape)
    # Users of several documents or of one each, in any order, but that the last user comes last.
    users = rng.integers(4, size=shape[0]) if rng.random() < 0.5 else rng.permutation(shape[0])
    users = np.concatenate([users[users < users.max()], users[users == users.max()]])
    groups = None if rng.random() < 0.5 else users
    return X.astype(np.int32), groups


def scaled(values, unit, n_units):
    """Return each row as `Contributions` scales it: every row has a place of its own."""
    sums = Contributions(values.shape)
    sums.add_scaled(values, np.arange(len(values)), unit, n_units)
    return sums.bounded().total


def norm(values, order):
    """Return the exact norm, to the power of the order, in Python's integers."""
    return sum(abs(int(value)) ** order for value in np.ravel(values))
