"""Word counts on disk, read a block at a time: corpora larger than memory."""

import hashlib
import json
import os
from contextlib import ExitStack
from itertools import islice
from typing import Any

import numpy as np
from tqdm import tqdm

from skdplda._checks import check_structure, is_integer
from skdplda._files import PRIVATE, whole_file
from skdplda._rows import csr_of
from skdplda._texts import check_texts
from skdplda._types import ArrayLike, Iterator, PathLike
from skdplda._validation import check_block

FORMAT = "skdplda.counts"
VERSION = 2
ARRAYS = {"indptr": np.int64, "indices": np.int32, "data": np.int32}
BLOCK = 8192  # documents read at a time
DENSE = 16  # one read of a whole block, and not one a document, where more than one in so many is wanted; not tuned


def write_counts(path: PathLike, chunks: Any, *, vectorizer: Any = None, verbose: int = 0) -> "DiskCounts":
    """Write a stream of documents to a folder, to be fitted without holding them in memory.

    Parameters
    ----------
    path : str or path-like
        A new folder, readable by its owner only, as are its files. It is complete when the function returns; before,
        it cannot be opened.
    chunks : iterable of sparse matrix or array-like, each of shape (n_documents, n_words), or iterable of str
        Word counts, over one vocabulary. One chunk is held at a time. With `vectorizer`, texts: some thousand are held
        at a time.
    vectorizer : vectorizer or None, default=None
        Fitted, or with a vocabulary, such as `DPCountVectorizer` or ``CountVectorizer(vocabulary=words)``: it counts
        the texts.
    verbose : int, default=0
        Progress bar of documents if positive.

    Returns
    -------
    counts : DiskCounts
        As `open_counts` returns it.

    Raises
    ------
    FileExistsError
        If the folder is there; `open_counts` opens it.
    ValueError
        If a chunk holds anything but counts, its vocabulary has another size than the first one's, or there are no
        documents. The folder then stays incomplete. Larger counts become 2**31 - 1.

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
    if vectorizer is not None:
        chunks = _counted(check_texts(chunks, "chunks", own=True), vectorizer)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        raise FileExistsError(
            f"{path!r} is there already: open_counts opens it if it is complete; else remove it, or give another name."
        ) from None
    n_documents, n_entries, n_words = 0, 0, None
    digests = {name: hashlib.sha256() for name in ARRAYS}
    with ExitStack() as stack:
        files = {name: stack.enter_context(open(os.path.join(path, name), "xb", opener=owned)) for name in ARRAYS}

        def write(name, array):
            content = array.astype(ARRAYS[name]).tobytes()
            digests[name].update(content)
            files[name].write(content)

        write("indptr", np.zeros(1))
        bar = stack.enter_context(tqdm(unit=" documents", disable=not verbose))
        for number, chunk in enumerate(chunks):
            X = check_block(chunk, f"chunk {number}")
            bar.update(X.shape[0])
            if n_words not in (None, X.shape[1]):
                raise ValueError(
                    f"chunk {number} has {X.shape[1]} words and the first {n_words}: the vocabulary changed."
                )
            n_words = X.shape[1]
            write("indptr", X.indptr[1:].astype(np.int64) + n_entries)
            write("indices", X.indices)
            write("data", X.data)
            n_documents, n_entries = n_documents + X.shape[0], n_entries + X.nnz
    if not n_documents:
        raise ValueError("chunks must hold at least one document; got none.")
    shape = n_documents, n_words
    header = {"format": FORMAT, "version": VERSION, "shape": shape, "digest": digest_of(shape, digests)}
    with whole_file(os.path.join(path, "header.json"), PRIVATE) as file:
        file.write(json.dumps(header).encode())
    return DiskCounts(path, shape, header["digest"])


def _counted(texts, vectorizer):
    """Yield the counts of some thousand texts at a time."""
    texts = iter(texts)
    while chunk := list(islice(texts, BLOCK)):
        yield vectorizer.transform(chunk)


def open_counts(path: PathLike) -> "DiskCounts":
    """Open a folder of `write_counts`.

    All of it is read once, and its digest compared with that in the header: next to the many passes of a fit this
    costs little, and a folder that was damaged on the way is found out before anything is spent. What is read later is
    looked at again, block by block, but only as to whether it is a matrix of counts.

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
        If the folder is none of ours, incomplete, cut short, or not what was written.
    """
    path = os.fspath(path)
    try:
        with open(os.path.join(path, "header.json")) as file:
            header = json.load(file)
        if (header["format"], header["version"]) != (FORMAT, VERSION):
            raise ValueError("another format or version")
        shape = n_documents, n_words = tuple(header["shape"])
        if not all(is_integer(size) and 0 < size < 2**63 for size in shape) or n_words > 2**31 - 1:
            raise ValueError(f"its shape cannot be {shape}")
        counts = DiskCounts(path, shape, header["digest"])
        if os.path.getsize(os.path.join(path, "indptr")) != 8 * (n_documents + 1):
            raise ValueError("indptr is cut short")
        for name, kind in ARRAYS.items():
            expected = (counts.shape[0] + 1 if name == "indptr" else counts.nnz) * np.dtype(kind).itemsize
            if os.path.getsize(os.path.join(path, name)) != expected:
                raise ValueError(f"{name} is not of {expected} bytes")
        if digest_of(shape, {name: file_digest(os.path.join(path, name)) for name in ARRAYS}) != counts.digest:
            raise ValueError("its content is not what was written: the digest differs")
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path!r} is no complete folder of counts ({error}); write it with write_counts.") from None
    return counts


def owned(path, flags):
    """Open a file that its owner alone may read."""
    return os.open(path, flags, PRIVATE)


def stamp_of(path):
    """Return the size of a file, when it and what is known of it were changed, and which it is.

    Programs that copy set the former time back, and cannot set the latter.
    """
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev


def file_digest(path):
    """Return the SHA-256 of a file, unfinished."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256")


def digest_of(shape, digests):
    """Return the digest of a folder, from those of its files."""
    parts = "".join(digests[name].hexdigest() for name in ARRAYS)
    return hashlib.sha256(f"{tuple(shape)}{parts}".encode()).hexdigest()


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
        self._stamps: dict[str, tuple[int, ...]] = {}  # of files, as they were when they were first read

    def __reduce__(self):
        return type(self), (self.path, self.shape, self.digest)

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return int(self._read("indptr", self.shape[0], self.shape[0] + 1)[0])

    def lengths(self) -> Any:
        """Return the number of different words of each document.

        Returns
        -------
        lengths : ndarray of shape (n_documents,), int64
            Its entries.
        """
        return np.diff(self._read("indptr", 0, self.shape[0] + 1))

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

        Raises
        ------
        ValueError
            If a file was changed after it was first read, or what is read is no block of counts.
        """
        for first in range(0, self.shape[0], BLOCK):
            last = min(first + BLOCK, self.shape[0])
            numbers = np.arange(first, last)
            if active is not None:
                numbers = numbers[np.asarray(active[first:last], dtype=bool)]
            if not len(numbers):
                continue
            pointers = self._read("indptr", first, last + 1)
            if pointers[0] < 0 or (np.diff(pointers) < 0).any() or (first == 0 and pointers[0] != 0):
                raise self._changed()
            whole, wanted = np.diff(pointers), numbers - first
            if len(numbers) * DENSE >= last - first:
                spans = [(pointers[0], pointers[-1])]
            else:
                spans = list(zip(pointers[wanted], pointers[wanted + 1], strict=True))
            indices, data = (
                np.concatenate([self._read(name, *span) for span in spans]) for name in ("indices", "data")
            )
            lengths = whole[wanted]
            if len(indices) > lengths.sum():  # entries of other documents were read as well
                entries = np.repeat(np.isin(np.arange(last - first), wanted), whole)
                indices, data = indices[entries], data[entries]
            pointers = np.concatenate([[0], np.cumsum(lengths)])
            block = csr_of(data, indices, pointers, (len(numbers), self.shape[1]))
            check_structure(block, f"{self.path!r}, from document {first} on,")
            if data.min(initial=0) < 0 or not block.has_canonical_format:
                raise self._changed()
            yield numbers, block

    def _read(self, name, first, last):
        """Return entries [first, last) of an array; a plain read, so that nothing stays mapped.

        What was computed in one pass bounds what another adds, so the file must be the one that was read first.
        """
        kind, path = np.dtype(ARRAYS[name]), os.path.join(self.path, name)
        known = self._stamps.setdefault(name, stamp_of(path))
        if last * kind.itemsize > known[0]:
            raise self._changed()
        entries = np.fromfile(path, kind, last - first, offset=first * kind.itemsize)
        if stamp_of(path) != known:
            raise self._changed()
        return entries

    def _changed(self):
        return ValueError(
            f"{self.path!r} does not hold what it held when it was opened: its files were changed. Write it again, and"
            " open it again."
        )
