"""Files that are either whole or not there."""

import os
import secrets
from contextlib import contextmanager

__all__ = ["PRIVATE", "refuse_existing", "whole_file"]

PRIVATE = 0o600  # permissions of what is as private as the data


@contextmanager
def whole_file(path, mode=0o666):
    """Open a file for writing that takes its place, and its name, only when it is complete.

    It is written under a name that nobody can guess, beside its place, and is made by this call or not at all: a file
    or a symbolic link that waits there is not opened, and lends neither its mode nor its target.

    Parameters
    ----------
    path : str or path-like
        The file. A former one stays whole until the new one is; a symbolic link is replaced, not followed.
    mode : int, default=0o666
        Permissions, before the process's mask.

    Yields
    ------
    file : binary file
        Removed if the block raises.
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
