"""What users name: word counts, or embeddings, in blocks, which workers hold."""

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from skdplda._checks import kind_of
from skdplda._optional import import_optional
from skdplda._rows import csr_of
from skdplda._types import ArrayLike
from skdplda._validation import check_block, check_embeddings, check_groups, check_same_rows, names_of
from skdplda.datasets import DiskCounts, open_counts
from skdplda.semantics import EmbeddedTexts, UnitMatrix

PURPOSE = "Fitting on a cluster"
INSTALL = "dask[distributed]"
COLUMNS = {False: "words", True: "dimensions"}  # by whether blocks are of embeddings


class ShardedCounts:
    """Word counts or embeddings in blocks of documents, to be fitted on the workers of a Dask or Spark cluster.

    Nothing is read here: the blocks stay on the workers, or on the disks that they see.

    Parameters
    ----------
    source : Dask collection or sequence
        Blocks of documents over one vocabulary, in order. One of

        * a Dask Array of shape (n_documents, n_words), cut by rows only, whose blocks are sparse matrices or arrays;
        * a Dask Bag with one such block, or several, in each partition: `bag.map_partitions(vectorizer.transform)`;
        * a list of Delayed blocks, or of Futures;
        * a list of folders of `skdplda.datasets.write_counts`, under paths that every worker can read;
        * a Spark RDD of such blocks, or of such paths, of which each partition has some.

        For `EmbeddingTopics` blocks are of embeddings, or `skdplda.semantics.EmbeddedTexts`; there are no folders.
    client : distributed.Client, default=None
        Of a Dask cluster. None takes the one that was made last. An RDD knows its own.

    Raises
    ------
    ImportError
        If Dask is not installed.
    TypeError
        If the source is none of these.
    ValueError
        If there is no client, it is closed or asynchronous, the source is empty, or it is cut by columns.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from skdplda import PrivateCGSLDA
    >>> from skdplda.distributed import ShardedCounts
    >>> with Client(n_workers=2) as client:  # doctest: +SKIP
    ...     model = PrivateCGSLDA(20).fit(ShardedCounts(["part-0", "part-1"], client=client))
    """

    _on_workers = True  # for checks of estimators that want their data here

    def __init__(self, source: Any, *, client: Any = None) -> None:
        self.users: np.ndarray | None = None  # in the order that `by_user` made
        self.rdd = source if hasattr(type(source), "mapPartitionsWithIndex") else None
        if self.rdd is not None:
            self.client, self.sources = None, [None] * source.getNumPartitions()
            return
        distributed = import_optional("distributed", purpose=PURPOSE, install=INSTALL)
        if client is None:
            try:
                client = distributed.default_client()
            except ValueError:
                raise ValueError(
                    "client must be given where no Dask client is active: start one with dask.distributed.Client(), or"
                    " pass the data of one machine as a matrix."
                ) from None
        check_client(client)
        self.client, self.sources = client, _sources(source)
        if not self.sources:
            raise ValueError("source must have at least one block of documents; got none.")

    def __repr__(self):
        return f"ShardedCounts({len(self.sources)} blocks)"

    def by_user(self, groups: ArrayLike) -> "tuple[ShardedCounts, np.ndarray]":
        """Bring the documents of each user into one block, as `fit` with `groups` needs them.

        Dask moves the documents, when a fit asks for them: each block is cut into as many pieces as there are blocks,
        and the pieces are put together. Here the blocks are only counted. Documents have a new order, and the fit is
        that of the documents in this order.

        Parameters
        ----------
        groups : array-like of shape (n_documents,)
            The user of each document, in the order of the blocks.

        Returns
        -------
        shards : ShardedCounts
            As many blocks, of like numbers of documents, but for users who have more than that.
        groups : ndarray of shape (n_documents,)
            The user of each document in the new order.

        Raises
        ------
        TypeError
            For an RDD.
        ValueError
            If groups do not fit the documents, or a user is missing.

        Examples
        --------
        >>> shards, users = ShardedCounts(folders).by_user(users)  # doctest: +SKIP
        >>> model = PrivateCGSLDA(20).fit(shards, groups=users)  # doctest: +SKIP
        """
        if self.rdd is not None:
            raise TypeError("by_user is for Dask. Partition the RDD by user before you make blocks of it.")
        delayed, n = import_optional("dask", purpose=PURPOSE, install=INSTALL).delayed, len(self.sources)
        sizes = self.client.gather(self.client.compute([delayed(n_documents_of)(source) for source in self.sources]))
        users, n_documents = names_of(groups), sum(sizes)
        start, documents = check_groups(users, n_documents)
        block = np.empty(n_documents, np.int64)
        block[documents] = np.repeat(start[:-1] * n // max(n_documents, 1), np.diff(start))
        cut = [
            delayed(pieces_of, nout=n)(source, of_source, n)
            for source, of_source in zip(self.sources, np.split(block, np.cumsum(sizes)[:-1]), strict=True)
        ]
        blocks = [delayed(joined)(pieces) for pieces in zip(*cut, strict=True)]
        shards = ShardedCounts(blocks, client=self.client)
        shards.users = users[np.argsort(block, kind="stable")]
        return shards, shards.users


def matrices_of(source):
    """Return the matrices that a block has, on a worker: of a path, of a matrix, or of a partition of a Bag."""
    if isinstance(source, str):
        return [counts for _, counts in open_counts(source).blocks()]
    if isinstance(source, (UnitMatrix, EmbeddedTexts)) or sp.issparse(source) or hasattr(source, "__array__"):
        return [source]
    return list(source)


def n_documents_of(source):
    """Return the number of documents of a block, on a worker."""
    return open_counts(source).shape[0] if isinstance(source, str) else sum(X.shape[0] for X in matrices_of(source))


def pieces_of(source, block, n_blocks):
    """Return the documents of a block that go to each of the new blocks, on a worker, as lists of matrices."""
    pieces, first = [[] for _ in range(n_blocks)], 0
    for X in matrices_of(source):
        of_rows, X = block[first : first + X.shape[0]], X.tocsr() if sp.issparse(X) else X
        first += X.shape[0]
        for number, piece in enumerate(pieces):
            piece.append(X[np.flatnonzero(of_rows == number)])
    return pieces


def joined(pieces):
    """Return lists as one, on a worker."""
    return [X for piece in pieces for X in piece]


def check_client(client):
    """Raise ValueError if a client cannot be used."""
    if getattr(client, "asynchronous", False):
        raise ValueError("client must not be asynchronous: fit waits for its results. Use Client(asynchronous=False).")
    if client.status != "running":
        raise ValueError(f"client must be connected to its scheduler; it is {client.status}. Make a new Client.")


def shards_of(X: Any) -> ShardedCounts | None:
    """Return what `fit` was given as `ShardedCounts`, or None if it is not on workers."""
    if isinstance(X, ShardedCounts):
        if X.rdd is None:
            check_client(X.client)
        return X
    return ShardedCounts(X) if hasattr(type(X), "__dask_graph__") else None


def paired_shards(shards: ShardedCounts, counts: Any) -> ShardedCounts:
    """Return embeddings on workers together with counts on workers, block by block, as `EmbeddedTexts`."""
    counts = shards_of(counts)
    found = None if counts is None else len(counts.sources)
    if shards.rdd is not None or getattr(counts, "rdd", None) is not None:
        raise TypeError("X in an RDD must be of EmbeddedTexts, which have their counts: give no counts beside.")
    if found != len(shards.sources) or any(isinstance(s, str) for s in (*shards.sources, *counts.sources)):
        raise ValueError(
            f"counts must be on workers as X is, in blocks of the same documents that are no paths: X has"
            f" {len(shards.sources)} blocks, counts {'none' if counts is None else found}."
        )
    delayed = import_optional("dask", purpose=PURPOSE, install=INSTALL).delayed(paired_blocks)
    return ShardedCounts(
        [delayed(*pair) for pair in zip(shards.sources, counts.sources, strict=True)], client=shards.client
    )


def paired_blocks(vectors, counts):
    """Return a block of embeddings together with its counts, or a list of such pairs of a partition of a Bag."""
    if isinstance(vectors, list) and isinstance(counts, list) and len(vectors) == len(counts):
        return [paired_blocks(*pair) for pair in zip(vectors, counts, strict=True)]
    if not (hasattr(vectors, "shape") and hasattr(counts, "shape")):
        raise ValueError("blocks of X and of counts must be matrices, and partitions of Bags have as many of both.")
    return EmbeddedTexts(vectors, counts)


def _sources(source):
    """Return the blocks of a source as a list of paths, Delayed and Futures."""
    if hasattr(source, "to_delayed"):
        parts = source.to_delayed()
        if isinstance(parts, list):  # a Bag
            return parts
        if parts.ndim != 2 or parts.shape[1] != 1:
            raise ValueError(
                f"X must be a Dask Array cut by rows only; got blocks in a grid of shape {parts.shape}. Rechunk it with"
                " X.rechunk({1: -1}) before its blocks become sparse."
            )
        return parts[:, 0].tolist()
    if isinstance(source, (list, tuple)):
        kinds = ("__dask_graph__", "__await__")  # Delayed and Future
        source = [item.path if isinstance(item, DiskCounts) else item for item in source]
        for item in source:
            if not isinstance(item, (str, os.PathLike)) and not any(hasattr(type(item), kind) for kind in kinds):
                raise TypeError(f"source must hold paths, Delayed blocks or Futures; got {kind_of(item)}.")
        return [os.path.abspath(item) if isinstance(item, (str, os.PathLike)) else item for item in source]
    raise TypeError(
        "source must be a Dask Array, a Dask Bag, a Spark RDD or a list of paths, Delayed blocks or Futures; got"
        f" {kind_of(source)}."
    )


def join_blocks(sources, first_block, embedded=False):
    """Read blocks, on a worker, and return them as one matrix, with the number of documents of each.

    `sources` has paths, matrices, or lists of matrices; `first_block` is the number of the first one, for messages. The
    matrix is a canonical csr_array of int32 with int64 pointers and int32 indices, or a UnitMatrix where the blocks
    have semantic units. ValueError if a block holds anything but counts or has another number of words than the first.
    Of embeddings it is `EmbeddedTexts`, whose counts are as above.
    """
    rows, sizes, n_words = [], [], None
    for number, source in enumerate(sources, first_block):
        if isinstance(source, str) and embedded:
            raise ValueError(
                f"block {number} must hold embeddings, and is a path: give"
                " dask.delayed(numpy.load)(path, mmap_mode='r') in its place."
            )
        pieces = [_checked(X, f"block {number}", embedded) for X in matrices_of(source)]
        for X in pieces:
            if n_words not in (None, X.shape[1]):
                raise ValueError(other_width(number, X.shape[1], n_words, embedded))
            n_words = X.shape[1]
        rows += pieces
        sizes.append(sum(X.shape[0] for X in pieces))
    if n_words is None:
        return None, sizes
    if embedded:
        return _joined_embeddings(rows), sizes
    if any(isinstance(X, UnitMatrix) for X in rows):
        if not all(isinstance(X, UnitMatrix) for X in rows):
            raise ValueError("blocks must be all of word counts, or all of semantic units.")
        lengths = np.concatenate([np.diff(X.start) for X in rows])
        return UnitMatrix(np.concatenate([[0], np.cumsum(lengths)]), sp.vstack([X.counts for X in rows])), sizes
    return _joined_counts(rows), sizes


def _checked(X, name, embedded):
    """Return a block of counts, or of embeddings as `EmbeddedTexts`, or raise a ValueError with its name."""
    if not embedded:
        if isinstance(X, EmbeddedTexts):
            raise ValueError(f"{name} must hold counts; got EmbeddedTexts, which are for EmbeddingTopics.")
        return X.checked() if isinstance(X, UnitMatrix) else check_block(X, name)
    texts = X if isinstance(X, EmbeddedTexts) else EmbeddedTexts(X if hasattr(X, "shape") else np.asarray(X))
    if len(texts.shape) != 2:
        raise ValueError(f"{name} must be of shape (n_documents, n_dimensions); got {texts.shape}.")
    check_same_rows(texts.vectors, texts.counts)
    # scikit-learn refuses what has no rows
    vectors = check_embeddings(BaseEstimator(), texts.vectors, name=name) if len(texts) else np.empty(texts.shape)
    return EmbeddedTexts(vectors, None if texts.counts is None else check_block(texts.counts, name), texts.words)


def _joined_embeddings(rows):
    """Return blocks of `EmbeddedTexts` as one."""
    n_counted, words = one_vocabulary([vocabulary_of(X) for X in rows])
    sparse = all(sp.issparse(X.vectors) for X in rows)
    vectors = [X.vectors.toarray() if sp.issparse(X.vectors) and not sparse else X.vectors for X in rows]
    vectors = sp.vstack(vectors, format="csr") if sparse else np.concatenate(vectors)
    return EmbeddedTexts(vectors, None if n_counted is None else _joined_counts([X.counts for X in rows]), words)


def vocabulary_of(X):
    """Return the number of words that are counted beside embeddings, and these words; None for what there is not."""
    return None if X.counts is None else X.counts.shape[1], None if X.words is None else tuple(X.words)


def one_vocabulary(found):
    """Return what all blocks have as `vocabulary_of`, or raise a ValueError."""
    if len(set(found)) > 1:
        raise ValueError("blocks of embeddings must have counts of the same words, in the same order, or none of them.")
    return found[0] if found and found[0] else (None, None)


def _joined_counts(rows):
    """Return blocks of counts as one csr_array."""
    lengths = np.concatenate([np.diff(X.indptr) for X in rows])
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    indices = np.concatenate([X.indices for X in rows]).astype(np.int32, copy=False)
    data = np.concatenate([X.data for X in rows]).astype(np.int32, copy=False)
    return csr_of(data, indices, indptr, (len(lengths), rows[0].shape[1]))


def other_width(block, n_words, expected, embedded):
    """Return the sentence on a block of another vocabulary, or of other embeddings."""
    if embedded:
        return (
            f"block {block} has {n_words} dimensions and the first {expected}: blocks must be of one embedding model."
        )
    return (
        f"block {block} has {n_words} words and the first {expected}: blocks must share one vocabulary, with the same"
        " words in the same order."
    )
