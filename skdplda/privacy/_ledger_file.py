"""A ledger in a file, which several processes share."""

import fcntl
import hashlib
import json
import os
from threading import RLock
from typing import Any

from skdplda._files import whole_file
from skdplda._types import Function, PathLike
from skdplda.privacy._accountant import PrivacyAccountant
from skdplda.privacy._guarantee import read_json

__all__ = ["LedgerFile"]

FORMAT = "skdplda.LedgerFile"
VERSION = 1


class LedgerFile(PrivacyAccountant):
    """A `PrivacyAccountant` whose books are a file: see `PrivacyAccountant.open`.

    The file is read anew under a lock whenever the books are asked or written, and replaced as a whole, on the disk
    before `spend` returns.

    Parameters
    ----------
    path : str or path-like
        The file. Beside it, `path + ".lock"` is what processes lock.
    **terms : dict
        Parameters of `PrivacyAccountant`; None for what the file says. A new file needs `epsilon`.
    """

    def __init__(self, path: PathLike, **terms: Any) -> None:
        self._address = os.path.realpath(path)
        self._content: bytes | None = None
        self._lock: Any = FileLock(self._address, self._read)
        terms = {name: value for name, value in terms.items() if value is not None}
        self._may_begin = "epsilon" in terms
        self._take(PrivacyAccountant(**terms) if self._may_begin else PrivacyAccountant(1.0))
        with self._lock:
            for name, value in terms.items():
                held = self._kind_of_rule if name == "rule" else getattr(self, f"_{name}")
                if held != value:
                    raise ValueError(f"{name} of the ledger {self._address!r} is {held!r}; got {value!r}.")

    @property
    def _entries(self):
        with self._lock:
            return self._kept

    @_entries.setter
    def _entries(self, entries):
        with self._lock:
            self._write(entries)

    def _take(self, accountant):
        """Take the terms and the entries of another accountant."""
        fields = dict(vars(accountant))
        del fields["_lock"]
        self._kept = fields.pop("_entries")
        vars(self).update(fields)

    def _read(self):
        """Take the books from the file, if they have changed. Called under the lock."""
        try:
            with open(self._address, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            if self._content is not None:
                raise ValueError(f"the ledger {self._address!r} is gone; put it back. Nothing was spent.") from None
            if not self._may_begin:
                raise ValueError(f"there is no ledger {self._address!r}; give epsilon to begin one.") from None
            self._write(())
            return
        if content == self._content:
            return
        try:
            data = read_json(content.decode(), FORMAT, VERSION)
            text = json.dumps(data["accountant"], sort_keys=True)
            if hashlib.sha256(text.encode()).hexdigest() != data["sha256"]:
                raise ValueError("its checksum is wrong")
            accountant = PrivacyAccountant.from_json(text)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"the ledger {self._address!r} is damaged ({error}); restore it from a backup, and spend by hand what"
                " was fitted since. Nothing was spent."
            ) from None
        self._take(accountant)
        self._content = content

    def _write(self, entries):
        """Replace the file. Called under the lock."""
        former, self._kept = self._kept, entries
        try:
            data = json.loads(self.to_json())
            digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
            text = {"format": FORMAT, "version": VERSION, "sha256": digest, "accountant": data}
            content = json.dumps(text, indent=2, allow_nan=False).encode()
            with whole_file(self._address, mode=0o600) as file:
                file.write(content)
            folder = os.open(os.path.dirname(self._address), os.O_RDONLY)
            try:
                os.fsync(folder)  # the new name, too, must outlive a loss of power
            finally:
                os.close(folder)
        except BaseException:
            self._kept = former
            raise
        self._content = content


class FileLock:
    """A lock for threads and processes. A thread that holds it may take it again.

    The system frees the lock of a process that has died.

    Parameters
    ----------
    path : str
        `path + ".lock"` is what is locked; it stays, empty.
    then : callable
        Called when the lock has been taken for the first time.
    """

    def __init__(self, path: str, then: Function) -> None:
        self._path, self._then = path + ".lock", then
        self._threads, self._depth, self._file = RLock(), 0, -1

    def __enter__(self) -> None:
        self._threads.acquire()
        self._depth += 1
        try:
            if self._depth == 1:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
                fcntl.flock(self._file, fcntl.LOCK_EX)
                self._then()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        try:
            if self._depth == 0 and self._file >= 0:
                file, self._file = self._file, -1
                fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may hold a copy of the descriptor
                os.close(file)
        finally:
            self._threads.release()
