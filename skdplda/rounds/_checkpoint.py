"""A fit in progress on disk: one file of arrays and a JSON header, written atomically, without pickle."""

import json
import os
import zipfile

import numpy as np

from skdplda._files import DAMAGE, PRIVATE, read_array, read_stored, whole_file

__all__ = ["interrupted", "load", "save"]

FORMAT = "skdplda.checkpoint"
VERSION = 9


def save(path, header, arrays):
    """Write a checkpoint, of values that JSON can hold and arrays; the former one stays whole until the new one is.

    It holds hidden state and the key of the noise, and is as private as the data: whoever reads it subtracts the noise
    of every round. It is readable by its owner only.
    """
    header = json.dumps({"format": FORMAT, "version": VERSION, **header})
    with whole_file(path, PRIVATE) as file:
        np.savez(file, header=np.array(header), **arrays)


def load(path):
    """Return (header, arrays) as saved; ValueError for a file that is no checkpoint, damaged, or of another version."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = {name.removesuffix(".npy"): read_array(part) for name, part in read_stored(archive).items()}
        header = json.loads(str(found.pop("header")))
    except (OSError, *DAMAGE) as error:
        raise ValueError(
            f"checkpoint must name a file that a fit has written, or none; {os.fspath(path)!r} is no checkpoint, or a"
            f" damaged one ({type(error).__name__}). It was left as it is: give another name to start anew."
        ) from None
    if not isinstance(header, dict) or (header.get("format"), header.get("version")) != (FORMAT, VERSION):
        raise ValueError(
            f"checkpoint {os.fspath(path)!r} is not of format {FORMAT} version {VERSION}. It was left as it is: give"
            " another name to start anew."
        )
    return header, found


def interrupted(path):
    """Return (run, key) of the interrupted run that a checkpoint goes on with, (None, None) if there is no such file.

    `run` is its name, by which a ledger knows whether it was charged; `key` has the 256 bits from which all of its
    randomness is derived. ValueError if the file cannot be read.
    """
    if path is None or not os.path.exists(path):
        return None, None
    header, _ = load(path)
    return header["run"], bytes.fromhex(header["key"])
