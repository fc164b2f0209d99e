"""The file of a ledger that several processes share: locked, checked for damage, replaced as a whole."""

import fcntl
import hashlib
import json
import os
from threading import RLock

from skdplda._files import whole_file
from skdplda._types import Function
from skdplda.privacy._guarantee import read_json

__all__ = ["FileLock", "pack", "replace_file", "unpack"]

FORMAT = "skdplda.LedgerFile"
VERSION = 1


def pack(text: str) -> bytes:
    """Return the content of a file that holds the JSON of an accountant, and its checksum."""
    data = json.loads(text)
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    content = {"format": FORMAT, "version": VERSION, "sha256": digest, "accountant": data}
    return json.dumps(content, indent=2, allow_nan=False).encode()


def unpack(content: bytes) -> str:
    """Undo `pack`; raise ValueError, KeyError or TypeError for anything else."""
    data = read_json(content.decode(), FORMAT, VERSION)
    text = json.dumps(data["accountant"], sort_keys=True)
    if hashlib.sha256(text.encode()).hexdigest() != data["sha256"]:
        raise ValueError("its checksum is wrong")
    return text


def replace_file(path: str, content: bytes) -> None:
    """Replace a file as a whole. It is on the disk before this returns."""
    with whole_file(path, mode=0o600) as file:
        file.write(content)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name, too, must outlive a loss of power
    finally:
        os.close(folder)


class FileLock:
    """A lock for threads and processes. A thread that holds it may take it again.

    What is locked is `path + ".lock"`, which stays, empty. The system frees the lock of a process that has died. `then`
    is called whenever a thread has taken the lock that did not hold it.
    """

    def __init__(self, path: str, then: Function) -> None:
        self._path, self._then = path + ".lock", then
        self._threads, self._depth, self._file = RLock(), 0, -1

    def __enter__(self) -> None:
        self._threads.acquire()
        self._depth += 1
        try:
            if self._depth == 1:
                self._lock()
                self._then()
        except BaseException:
            self.__exit__()
            raise

    def _lock(self):
        while True:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            if self._is_in_place():
                return
            file, self._file = self._file, -1  # closed once, even if it cannot be opened again
            os.close(file)

    def _is_in_place(self):
        """Return whether the locked file has still its name; who opens that name later locks another file."""
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(self._path))
        except FileNotFoundError:
            return False

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        try:
            if self._depth == 0 and self._file >= 0:
                file, self._file = self._file, -1
                fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may hold a copy of the descriptor
                os.close(file)
        finally:
            self._threads.release()
