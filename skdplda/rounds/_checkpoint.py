"""A fit in progress on disk: one file of arrays and a JSON header, written atomically, without pickle."""

import math
import os
import re

import numpy as np

from skdplda._checks import is_integer, is_real
from skdplda._files import DAMAGE, PRIVATE, check_writable, read_arrays, remove_partial, write_arrays

FORMAT = "skdplda.checkpoint"
VERSION = 11
LARGEST = 2.0**100  # of a number in a state: sums are below 2**63, and their squares must be finite


def save(path, header, arrays):
    """Write a checkpoint, of values that JSON can hold and arrays; the former one stays whole until the new one is.

    It holds hidden state and the key of the noise, and is as private as the data: whoever reads it subtracts the noise
    of every round. It is readable by its owner only.
    """
    header = {"format": FORMAT, "version": VERSION, "arrays": sorted(arrays), **header}
    write_arrays(path, header, arrays, PRIVATE)


def load(path):
    """Return (header, arrays) as saved; ValueError for a file that is no checkpoint, damaged, or of another version."""
    try:
        header, found = read_arrays(path)
    except (OSError, MemoryError, *DAMAGE) as error:
        raise ValueError(
            f"checkpoint must name a file that a fit has written, or none; {os.fspath(path)!r} is no checkpoint, or a"
            f" damaged one ({type(error).__name__}). It was left as it is: give another name to start anew."
        ) from None
    if not isinstance(header, dict) or (header.get("format"), header.get("version")) != (FORMAT, VERSION):
        raise ValueError(
            f"checkpoint {os.fspath(path)!r} is not of format {FORMAT} version {VERSION}. It was left as it is: give"
            " another name to start anew."
        )
    if not _is_sound(header) or header.get("arrays") != sorted(found):
        raise ValueError(
            f"checkpoint {os.fspath(path)!r} is damaged: its header is not what a fit has written. It was left as it"
            " is: give another name to start anew."
        )
    return header, found


def interrupted(path):
    """Return (run, key) of the interrupted run that a checkpoint goes on with, (None, None) if there is no such file.

    `run` is its name, by which a ledger knows whether it was charged; `key` has the 256 bits from which all of its
    randomness is derived. ValueError if the file cannot be read, or none could be written. What a killed run left of it
    is removed, because it holds the key, too.
    """
    if path is None:
        return None, None
    try:
        check_writable(path)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"checkpoint must name a file in a folder that this process may write to; got {os.fspath(path)!r}"
            f" ({type(error).__name__}: {getattr(error, 'strerror', None) or error}). No data were read."
        ) from None
    remove_partial(path)
    if not os.path.exists(path):
        return None, None
    header, _ = load(path)
    return header["run"], bytes.fromhex(header["key"])


def discard(path):
    """Remove a checkpoint at the end of its fit, and what a killed run left of it: both hold the key of the noise."""
    if os.path.exists(path):
        os.remove(path)
    remove_partial(path)


def restore(path, *parts):
    """Let each (object, arrays) take the arrays of its state, or raise a ValueError that says what to do."""
    try:
        for owner, arrays in parts:
            owner.restore(arrays)
    except (ArithmeticError, LookupError, *DAMAGE) as error:
        raise ValueError(
            f"checkpoint {os.fspath(path)!r} holds another state than this fit has: it is damaged, or of another"
            f" version ({type(error).__name__}: {error}). It was left as it is: give another name to start anew."
        ) from None


def checked_array(arrays, name, shape, *dtypes, least=-LARGEST, most=LARGEST):
    """Return an array of a saved state; ValueError if it is missing or is not as it can have been saved.

    A length of None in `shape` may be any. Numbers are from `least` to `most`, and none is NaN.
    """
    array = arrays.get(name)
    if array is None:
        raise ValueError(f"it has no array {name!r}")
    fits = len(array.shape) == len(shape) and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
    if not fits or array.dtype not in [np.dtype(dtype) for dtype in dtypes]:
        raise ValueError(f"its array {name!r} is of {array.dtype} and shape {array.shape}")
    if array.size and array.dtype.kind in "iuf" and not (array.min() >= least and array.max() <= most):
        raise ValueError(f"its array {name!r} has other numbers than a fit has")
    return array


def _is_sound(header):
    """Whether the fields of a header are what a fit has written."""
    multipliers = header.get("multipliers")
    return (
        all(isinstance(header.get(name), str) for name in ("identity", "run", "key"))
        and re.fullmatch("[0-9a-f]{64}", header["key"]) is not None
        and is_integer(header.get("n_done"))
        and isinstance(multipliers, list)
        and all(is_real(multiplier) and math.isfinite(multiplier) for multiplier in multipliers)
    )
