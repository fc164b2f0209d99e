"""A fit in progress on disk: one file of arrays and a JSON header, written atomically, without pickle."""

import hashlib
import json
import os
import zipfile

import numpy as np

from skdplda._files import DAMAGE, PRIVATE, read_array, read_stored, whole_file

__all__ = ["fingerprint", "interrupted", "load", "save"]

FORMAT = "skdplda.checkpoint"
VERSION = 3


def fingerprint(*arrays):
    """Return a digest of arrays, to tell whether a checkpoint belongs to these data.

    Parameters
    ----------
    *arrays : ndarray
        Any number of arrays.

    Returns
    -------
    digest : str
        Hexadecimal.
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def save(path, header, arrays):
    """Write a checkpoint; the former one stays whole until the new one is.

    Parameters
    ----------
    path : str or path-like
        The file. It holds hidden state and the key of the noise, and is as private as the data: whoever reads it
        subtracts the noise of every round. It is readable by its owner only.
    header : dict
        Of values that JSON can hold.
    arrays : dict of str to ndarray
        The state.
    """
    header = json.dumps({"format": FORMAT, "version": VERSION, **header})
    with whole_file(path, PRIVATE) as file:
        np.savez(file, header=np.array(header), **arrays)


def load(path):
    """Read a checkpoint.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    header : dict
        As saved.
    arrays : dict of str to ndarray
        As saved.

    Raises
    ------
    ValueError
        If the file is no checkpoint, damaged, or of another version.
    """
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
    """Return what names the interrupted run that a checkpoint goes on with.

    Parameters
    ----------
    path : str, path-like or None
        The file, which may not exist.

    Returns
    -------
    run : str or None
        Its name, by which a ledger knows whether it was charged; None without a file.
    key : bytes or None
        The 256 bits from which all of its randomness is derived.

    Raises
    ------
    ValueError
        If the file cannot be read.
    """
    if path is None or not os.path.exists(path):
        return None, None
    header, _ = load(path)
    return header["run"], bytes.fromhex(header["key"])
