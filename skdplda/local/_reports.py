"""Reports as bytes: a header, the packed bits, a checksum. doc/theory/local.rst has the layout, for other clients."""

import hashlib
import os
import struct
import zlib
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from skdplda._checks import effective_n_jobs
from skdplda._kernels._reports import positions
from skdplda._types import Iterable, Matrix, Sequence
from skdplda.local._channel import MECHANISMS, randomize_bits

MAGIC, VERSION = b"SKLR", 1
# magic, version, mechanism, reports of a user, words, most words of a document (0: all), epsilon of a bit, vocabulary
MOST_REASONS = 1000  # kept of a call: more are counted
MOST_REREAD = 8  # times the length of a file that its damaged reports may be summed up
HEADER = struct.Struct("<4sBBHIId16s")
CHECKSUM = struct.Struct("<I")


class ReportBatch(NamedTuple):
    """What was read: the good reports, and why the others were refused.

    Parameters
    ----------
    data : csr_matrix of shape (n_reports, n_words), int32
        Randomized presence bits, in the order read.
    sources : ndarray of shape (n_reports,), int
        The number, from 0, of the file that each report came from.
    rejected : list of tuple (int, str)
        Number of the file, and a sentence. After 1000 sentences, one more tells how many others there were.
    """

    data: sp.csr_matrix
    sources: np.ndarray
    rejected: list


def report_size(n_words: int) -> int:
    """Count the bytes of a report.

    Parameters
    ----------
    n_words : int
        Size of the vocabulary.

    Returns
    -------
    size : int
        Header, bits and checksum.

    Examples
    --------
    >>> from skdplda.local import report_size
    >>> report_size(1000)
    169
    """
    return HEADER.size + (n_words + 7) // 8 + CHECKSUM.size


def make_report(words: Iterable[str], vocabulary: Sequence[str], randomizer: Any) -> bytes:
    """Randomize one document on the device, and pack its report.

    Parameters
    ----------
    words : iterable of str
        The words of the document, in any order; those outside the vocabulary are left out.
    vocabulary : sequence of str
        The public vocabulary, in the agreed order.
    randomizer : LocalRandomizer
        The agreed law. It need not be fitted.

    Returns
    -------
    report : bytes
        Of `report_size(len(vocabulary))`.

    Raises
    ------
    ValueError
        If the vocabulary is empty or has a word twice, or a parameter of the randomizer is out of range.
    TypeError
        If `words` is one string and not several.

    Examples
    --------
    >>> from skdplda.local import LocalRandomizer, make_report
    >>> len(make_report(["pear", "kiwi"], ["apple", "pear", "plum"], LocalRandomizer(max_words_per_document=1)))
    45
    """
    if isinstance(words, (str, bytes)):
        raise TypeError("words must be a list of the words of a document; got one string. Split it first.")
    header, column = _header(randomizer, vocabulary), {word: i for i, word in enumerate(vocabulary)}
    present = np.array(sorted({column[word] for word in words if word in column}), dtype=np.int32)
    shape = (1, len(column))
    X = sp.csr_array((np.ones(len(present), np.int32), present, np.array([0, len(present)])), shape=shape)
    return _packed(header, randomize_bits(X, randomizer.channel(len(column)), randomizer._next_seed(X)))[0].tobytes()


def make_reports(X: Matrix, vocabulary: Sequence[str], randomizer: Any) -> np.ndarray:
    """Randomize many documents, and pack a report of each; a simulation of as many devices.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Word counts; what is positive is present.
    vocabulary : sequence of str of length n_words
        The public vocabulary.
    randomizer : LocalRandomizer
        The agreed law. It need not be fitted.

    Returns
    -------
    reports : ndarray of shape (n_documents, report_size(n_words)), uint8
        One report a row; `reports[i].tobytes()` is what device i sends.

    Raises
    ------
    ValueError
        If X is no matrix of counts over the vocabulary.
    """
    header = _header(randomizer, vocabulary)
    from skdplda._validation import check_counts  # loads scikit-learn, which a device does not need

    X = check_counts(type(randomizer)(), X, reset=True)
    bits = randomize_bits(
        X, randomizer.channel(len(vocabulary)), randomizer._next_seed(X), effective_n_jobs(randomizer.n_jobs)
    )
    return _packed(header, bits)


def read_reports(files: Any, vocabulary: Sequence[str], randomizer: Any) -> ReportBatch:
    """Read reports, keep the good ones and say why the others are not.

    A file may hold many reports, one after the other. What is damaged is skipped up to the next report; the rest of a
    file is refused if it takes many times its length to tell the good ones from the others. Refused are
    reports that are truncated or damaged, of another version, vocabulary, mechanism or epsilon (guarantees of
    different epsilon do not mix), or of another bound on words or on reports.

    Parameters
    ----------
    files : iterable of (str, path-like or bytes)
        Paths, or the contents themselves.
    vocabulary : sequence of str
        The public vocabulary.
    randomizer : LocalRandomizer
        The agreed law.

    Returns
    -------
    batch : ReportBatch
        `data` is what `LocalPrivateLDA(input="reports")` takes.

    Raises
    ------
    TypeError
        If `files` is one path and not several.
    OSError
        If a file cannot be opened.

    Examples
    --------
    >>> from skdplda.local import LocalRandomizer, make_report, read_reports
    >>> words, randomizer = ["apple", "pear", "plum"], LocalRandomizer(bit_epsilon=1.0)
    >>> good = make_report(["pear"], words, randomizer)
    >>> batch = read_reports([good, good[:20]], words, randomizer)
    >>> batch.data.shape, batch.rejected
    ((1, 3), [(1, 'truncated: 20 bytes of a report of 45')])
    """
    if isinstance(files, (str, bytes, os.PathLike)):
        raise TypeError("files must be several paths or contents; put a single one into a list.")
    expected = _header(randomizer, vocabulary)
    n_words = len(vocabulary)
    rows, sources, rejected, n_rejected = [], [], [], 0
    for number, file in enumerate(files):
        if isinstance(file, (bytes, bytearray, memoryview)):
            content = bytes(file)
        else:
            with open(file, "rb") as opened:
                content = opened.read()
        for body, reason in _reports_in(content, expected, n_words):
            if not reason:
                rows.append(body)
                sources.append(number)
                continue
            n_rejected += 1
            if n_rejected <= MOST_REASONS:
                rejected.append((number, reason))
    if n_rejected > MOST_REASONS:
        rejected.append((rejected[-1][0], f"and {n_rejected - MOST_REASONS:,} more, from this file on"))
    bits = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), (n_words + 7) // 8)
    indptr, indices = positions(bits)
    data = sp.csr_matrix((np.ones(len(indices), np.int32), indices, indptr), shape=(len(rows), n_words))
    return ReportBatch(data, np.array(sources, dtype=np.int64), rejected)


def _header(randomizer, vocabulary):
    """Return the header that all reports of a randomizer and a vocabulary share."""
    vocabulary = [str(word) for word in vocabulary]
    if not vocabulary:
        raise ValueError("vocabulary must have at least one word; got none.")
    if len(set(vocabulary)) < len(vocabulary):
        ((repeated, times),) = Counter(vocabulary).most_common(1)
        raise ValueError(f"vocabulary must name each word once; got {repeated!r} {times} times.")
    channel = randomizer.channel(len(vocabulary))
    digest = hashlib.sha256("\0".join(vocabulary).encode()).digest()[:16]
    return HEADER.pack(
        MAGIC,
        VERSION,
        1 + MECHANISMS.index(channel.mechanism),
        channel.reports_per_user,
        channel.n_words,
        channel.max_words_per_document or 0,
        channel.bit_epsilon,
        digest,
    )


def _packed(header, bits):
    """Return header, bits and checksum of each row."""
    n, size = len(bits), HEADER.size + bits.shape[1]
    out = np.empty((n, size + CHECKSUM.size), np.uint8)
    out[:, : HEADER.size] = np.frombuffer(header, np.uint8)
    out[:, HEADER.size : size] = bits
    sums = np.fromiter((zlib.crc32(row.data) for row in out[:, :size]), dtype="<u4", count=n)
    out[:, size:] = sums.view(np.uint8).reshape(n, CHECKSUM.size)
    return out


def _reports_in(content, expected, n_words):
    """Yield (bits, "") of each good report in a file, and (b"", reason) for what is none."""
    size, last = report_size(n_words), len(content)
    start = wasted = 0
    if not content:
        yield b"", "empty: no report in it"
    while start < last:
        reason, stop = "", start + size
        if not content.startswith(MAGIC, start):
            reason = f"no report at byte {start}: it does not begin with {MAGIC!r}"
        elif last - start < HEADER.size:
            reason = f"truncated: {last - start} bytes of a report of {size}"
        elif content[start : start + HEADER.size] != expected:
            reason = _difference(content[start : start + HEADER.size], expected)
        elif last < stop:
            reason = f"truncated: {last - start} bytes of a report of {size}"
        elif (
            zlib.crc32(content[start : stop - CHECKSUM.size]) != CHECKSUM.unpack_from(content, stop - CHECKSUM.size)[0]
        ):
            reason = f"damaged: the checksum of the report at byte {start} does not fit"
        elif n_words % 8 and content[stop - CHECKSUM.size - 1] >> n_words % 8:
            reason = f"damaged: the report at byte {start} has bits beyond the vocabulary"
        if not reason:
            yield content[start + HEADER.size : stop - CHECKSUM.size], ""
            start = stop
            continue
        yield b"", reason
        wasted += size if reason.startswith("damaged") else 0
        if wasted > MOST_REREAD * last:
            yield b"", f"given up at byte {start}: so much of the file is damaged that the rest was not read"
            return
        following = content.find(MAGIC, start + 1)
        start = last if following < 0 else following


def _difference(found, expected):
    """Return a sentence on the first field in which a foreign header differs."""
    names = (
        "magic",
        "version",
        "mechanism",
        "reports a user",
        "number of words",
        "most words of a document",
        "epsilon of a bit",
        "vocabulary",
    )
    for name, a, b in zip(names, HEADER.unpack(found), HEADER.unpack(expected), strict=True):
        if a != b:
            if name == "mechanism":
                a, b = (MECHANISMS[i - 1] if 0 < i <= len(MECHANISMS) else i for i in (a, b))
            if name == "vocabulary":
                return "foreign: made for another vocabulary (other words, or another order)"
            return f"foreign: its {name} is {a!r}, agreed was {b!r}"
    return "damaged: the header is not readable"
