"""How much of a corpus a vocabulary covers: by tokens, and by pairs of unit and word."""

import numpy as np
from scipy.sparse import csr_array

from skdplda._checks import exact_counts
from skdplda._types import ArrayLike, Matrix
from skdplda._validation import check_groups


def token_mass(X: Matrix, selected: ArrayLike) -> float:
    """Share of all tokens whose word is in a vocabulary.

    It reads the counts as they are: it is no private value.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Counts of all words, also of those that are not selected.
    selected : array-like of shape (n_words,) or (n_selected,)
        Which words are selected: a mask, or their columns.

    Returns
    -------
    mass : float
        From 0 to 1.

    Raises
    ------
    ValueError
        If `X` has no tokens or is no matrix of counts, or `selected` names no columns of it.

    Examples
    --------
    >>> from skdplda.metrics import token_mass
    >>> token_mass([[6, 1, 0], [0, 2, 1]], [True, False, False])
    0.6
    """
    X = exact_counts(X)
    return _share(np.asarray(X.sum(axis=0, dtype=np.int64)).ravel(), selected)


def missing_mass(X: Matrix, selected: ArrayLike, groups: ArrayLike | None = None) -> float:
    """Share of all pairs of a unit and a word that it uses whose word is missing in a vocabulary [1]_.

    It reads the counts as they are: it is no private value.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Counts of all words, also of those that are not selected.
    selected : array-like of shape (n_words,) or (n_selected,)
        Which words are selected: a mask, or their columns.
    groups : array-like of shape (n_documents,), default=None
        The user of each document. None: each document is a unit.

    Returns
    -------
    mass : float
        From 0 to 1.

    Raises
    ------
    ValueError
        If `X` has no tokens or is no matrix of counts, `selected` names no columns of it, or `groups` has another
        length.

    References
    ----------
    .. [1] T. Dick, M. Joseph, V. Raman (2026). Missing mass for differentially private domain discovery. ICLR.

    Examples
    --------
    >>> from skdplda.metrics import missing_mass
    >>> missing_mass([[6, 1, 0], [0, 2, 1]], [True, False, False])
    0.75
    >>> missing_mass([[6, 1, 0], [0, 2, 1]], [True, False, False], groups=["Ada", "Ada"])
    0.6666666666666667
    """
    X = exact_counts(X)
    start, documents = check_groups(groups, X.shape[0])
    used = csr_array(X) > 0
    if groups is not None:
        whose = csr_array((np.ones(len(documents), np.int64), documents, start), shape=(len(start) - 1, X.shape[0]))
        used = whose @ used > 0
    return 1.0 - _share(np.bincount(used.tocoo().col, minlength=X.shape[1]), selected)


def _share(weights, selected):
    """Return the share of the weight of all words that the selected ones have."""
    selected = np.asarray(selected)
    if selected.dtype == bool:
        known = selected.shape == weights.shape
    else:
        whole = selected.ndim == 1 and (selected.dtype.kind in "iu" or not selected.size)
        known = whole and bool(np.all((selected >= 0) & (selected < weights.size)))
        selected = np.unique(selected).astype(np.int64) if known else selected
    if not known:
        raise ValueError(
            f"selected must be a mask of the {weights.size} words of X, or columns of it from 0 on; got an array of"
            f" shape {selected.shape} and type {selected.dtype}."
        )
    total = int(weights.sum())
    if not total:
        raise ValueError("X must hold at least one token; got none.")
    return float(weights[selected].sum() / total)
