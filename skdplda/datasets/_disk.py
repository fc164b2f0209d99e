"""Word counts on disk, read a block at a time: corpora larger than memory."""

import hashlib
import json
import os
from contextlib import ExitStack
from typing import Any

import numpy as np
import scipy.sparse as sp

from skdplda._types import ArrayLike, Iterator, PathLike
from skdplda._validation import check_block

__all__ = ["DiskCounts", "open_counts", "write_counts"]

FORMAT = "skdplda.counts"
VERSION = 1
ARRAYS = {"indptr": np.int64, "indices": np.int32, "data": np.int32}
BLOCK = 8192  # documents read at a time


def write_counts(path: PathLike, chunks: Any) -> "DiskCounts":
    """Write a stream of documents to a folder, to be fitted without holding them in memory.

    Parameters
    ----------
    path : str or path-like
        A new folder. It is complete when the function returns; before, it cannot be opened.
    chunks : iterable of sparse matrix or array-like, each of shape (n_documents, n_words)
        Word counts, over one vocabulary. One chunk is held at a time.

    Returns
    -------
    counts : DiskCounts
        As `open_counts` returns it.

    Raises
    ------
    FileExistsError
        If the folder is there.
    ValueError
        If a chunk holds anything but counts below 2**31, its vocabulary has another size than the first one's, or
        there are no documents. The folder then stays incomplete.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from skdplda.datasets import make_lda_corpus, write_counts
    >>> X = make_lda_corpus(100, 20, 3, random_state=0).data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_counts(pathlib.Path(folder, "corpus"), [X[:60], X[60:]]).shape
    (100, 20)
    """
    path = os.fspath(path)
    os.mkdir(path, 0o700)
    n_documents, n_entries, n_words, digest = 0, 0, None, hashlib.sha256()
    with ExitStack() as stack:
        files = {name: stack.enter_context(open(os.path.join(path, name), "wb")) for name in ARRAYS}
        files["indptr"].write(np.zeros(1, np.int64).tobytes())
        for number, chunk in enumerate(chunks):
            X = check_block(chunk, f"chunk {number}")
            if n_words not in (None, X.shape[1]):
                raise ValueError(
                    f"chunk {number} has {X.shape[1]} words and the first {n_words}: the vocabulary changed."
                )
            n_words = X.shape[1]
            parts = {"indptr": X.indptr[1:].astype(np.int64) + n_entries, "indices": X.indices, "data": X.data}
            for name, kind in ARRAYS.items():
                content = parts[name].astype(kind).tobytes()
                digest.update(content)
                files[name].write(content)
            n_documents, n_entries = n_documents + X.shape[0], n_entries + X.nnz
    if not n_documents:
        raise ValueError("chunks must hold at least one document; got none.")
    header = {"format": FORMAT, "version": VERSION, "shape": [n_documents, n_words], "digest": digest.hexdigest()}
    with open(os.path.join(path, "header.partial"), "w") as file:
        json.dump(header, file)
    os.replace(file.name, os.path.join(path, "header.json"))
    return open_counts(path)


def open_counts(path: PathLike) -> "DiskCounts":
    """Open a folder of `write_counts`.

    Parameters
    ----------
    path : str or path-like
        The folder.

    Returns
    -------
    counts : DiskCounts
        For `fit`.

    Raises
    ------
    ValueError
        If the folder is none of ours, incomplete, or cut short.
    """
    path = os.fspath(path)
    try:
        with open(os.path.join(path, "header.json")) as file:
            header = json.load(file)
        if (header["format"], header["version"]) != (FORMAT, VERSION):
            raise ValueError("another format or version")
        counts = DiskCounts(path, tuple(header["shape"]), header["digest"])
        for name, kind in ARRAYS.items():
            expected = (counts.shape[0] + 1 if name == "indptr" else counts.nnz) * np.dtype(kind).itemsize
            if os.path.getsize(os.path.join(path, name)) != expected:
                raise ValueError(f"{name} is not of {expected} bytes")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path!r} is no complete folder of counts ({error}); write it with write_counts.") from None
    return counts


class DiskCounts:
    """Word counts in a folder; see `open_counts`.

    Parameters
    ----------
    path : str
        The folder.
    shape : tuple of int
        (n_documents, n_words).
    digest : str
        Of the content.
    """

    def __init__(self, path: str, shape: tuple[int, ...], digest: str) -> None:
        self.path, self.shape, self.digest = path, shape, digest

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return int(self._read("indptr", self.shape[0], self.shape[0] + 1)[0])

    def blocks(self, active: ArrayLike | None = None) -> Iterator[Any]:
        """Read documents in order, some thousand at a time.

        Parameters
        ----------
        active : array-like of shape (n_documents,), default=None
            Which documents are wanted, by nonzero entries; None for all.

        Yields
        ------
        numbers : ndarray of shape (n,)
            Of the documents.
        counts : csr_array of shape (n, n_words)
            Of int32, with int64 pointers.
        """
        for first in range(0, self.shape[0], BLOCK):
            last = min(first + BLOCK, self.shape[0])
            numbers = np.arange(first, last)
            if active is not None:
                numbers = numbers[np.asarray(active[first:last], dtype=bool)]
            if not len(numbers):
                continue
            pointers = self._read("indptr", first, last + 1)
            if len(numbers) == last - first:
                spans = [(pointers[0], pointers[-1])]
            else:
                spans = list(zip(pointers[numbers - first], pointers[numbers - first + 1], strict=True))
            parts = [np.concatenate([self._read(name, *span) for span in spans]) for name in ("indices", "data")]
            lengths = pointers[numbers - first + 1] - pointers[numbers - first]
            pointers = np.concatenate([[0], np.cumsum(lengths)])
            block = sp.csr_array((parts[1], parts[0], pointers), shape=(len(numbers), self.shape[1]))
            block.indptr, block.indices = pointers, parts[0]  # the constructor may narrow them
            yield numbers, block

    def _read(self, name, first, last):
        """Return entries [first, last) of an array; a plain read, so that nothing stays mapped."""
        kind = np.dtype(ARRAYS[name])
        return np.fromfile(os.path.join(self.path, name), kind, last - first, offset=first * kind.itemsize)
