"""Files that are either whole or not there, archives that hold what they say, and what tells data apart."""

import hashlib
import math
import os
import secrets
import struct
import tokenize
import warnings
import zipfile
from contextlib import contextmanager
from io import BytesIO

import numpy as np

__all__ = ["DAMAGE", "PRIVATE", "fingerprint", "read_array", "read_stored", "refuse_existing", "whole_file"]

# What reading a damaged or forged archive raises, nested JSON and lengths that nothing could hold included.
DAMAGE = (
    AttributeError,
    EOFError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
)

PRIVATE = 0o600  # permissions of what is as private as the data


@contextmanager
def whole_file(path, mode=0o666):
    """Open a binary file for writing that takes its place, and its name, only when it is complete.

    A former file stays whole until the new one is; nothing is left behind if the block raises. It is written under a
    name that nobody can guess, beside its place, and is made by this call or not at all: a file or a symbolic link that
    waits there is not opened, and lends neither its mode nor its target. A symbolic link at `path` is replaced, not
    followed.
    """
    path = os.fspath(path)
    partial = os.path.join(os.path.dirname(path), f".{secrets.token_hex(16)}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.remove(partial)
        raise


def refuse_existing(*paths):
    """Raise FileExistsError if there is anything at one of the paths, a broken symbolic link included."""
    for path in paths:
        if os.path.lexists(path):
            raise FileExistsError(f"{os.fspath(path)!r} is there already; give another name, or overwrite=True.")


def read_stored(archive):
    """Return the members of a zip archive by name; refuse compressed ones, which may be far larger than their file."""
    entries = archive.infolist()
    if any(entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 for entry in entries):
        raise ValueError("its parts are compressed or encrypted, as this package never writes them")
    if len({entry.filename for entry in entries}) < len(entries):
        raise ValueError("it has a part twice")
    return {entry.filename: archive.read(entry) for entry in entries}


def read_array(content):
    """Return the array of a .npy file; ValueError where it says anything that its length does not bear out.

    numpy allocates what the header asks for before it reads, so the header is compared with the length first.
    """
    file = BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an array is of another format")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of headers that Python 2, or nobody, has written
            shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    except Warning as error:
        raise ValueError(f"an array's header is of another format ({error})") from None
    left = len(content) - file.tell()
    if dtype.hasobject or any(size < 0 for size in shape) or math.prod(shape) * dtype.itemsize != left:
        raise ValueError(f"an array of shape {shape} does not have {left} bytes")
    return np.frombuffer(content, dtype, offset=file.tell()).reshape(shape, order="F" if by_columns else "C").copy()


def fingerprint(*arrays):
    """Return a hexadecimal digest of arrays, to tell whether a checkpoint belongs to these data."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
