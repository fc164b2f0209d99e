"""Files that are either whole or not there."""

import os
from contextlib import contextmanager

__all__ = ["whole_file"]


@contextmanager
def whole_file(path, mode=0o666):
    """Open a file for writing that takes its place, and its name, only when it is complete.

    Parameters
    ----------
    path : str or path-like
        The file. A former one stays whole until the new one is.
    mode : int, default=0o666
        Permissions, before the process's mask.

    Yields
    ------
    file : binary file
        Removed if the block raises.
    """
    partial = f"{os.fspath(path)}.partial"
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
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
