"""The file of a ledger that several processes, and people, share: locked, checked for damage, written in place.

The file stays the one that it is, with its owner, its mode and its other names (hard links). What is written goes
behind the former content first, after a mark, then over it; then the file is cut. A kill at any point leaves one of the
two whole, and the last whole one has all that `write` has returned from.
"""

import fcntl
import hashlib
import json
import os
from contextlib import suppress
from threading import RLock

from skdplda._files import PRIVATE, partial_file, remove_partial
from skdplda._types import Function
from skdplda.privacy._guarantee import read_json

FORMAT = "skdplda.LedgerFile"
VERSION = 1
MARK = b"\n\x1e\n"  # before content that is not in its place yet; JSON has no such character
JUNK = MARK + b" \0"  # what may follow content: a mark not wholly written, the way to one, what a loss of power leaves


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


class LedgerFile:
    """A file that is locked, read and written as a whole. A thread that holds the lock may take it again.

    What is locked is the file itself, under whatever name it was opened; the system frees the lock of a process that
    has died. `read` is called with the content whenever a thread has taken the lock that did not hold it. Where there
    is no file, `begin` is called for the content of a new one, which only its owner may read; it may refuse.
    """

    def __init__(self, path: str, begin: Function, read: Function) -> None:
        self._path, self._begin, self._read = path, begin, read
        self._forget()
        remove_partial(path)

    def _forget(self, file=-1):
        if file >= 0:
            os.close(file)
        self._process, self._threads, self._depth, self._file = os.getpid(), RLock(), 0, -1

    def __enter__(self) -> None:
        if self._process != os.getpid():  # a forked child: the thread that held the lock, if any, is in its parent
            self._forget(self._file)
        self._threads.acquire()
        self._depth += 1
        try:
            if self._depth == 1:
                self._lock()
                self._read(self._content())
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        try:
            if self._depth == 0 and self._file >= 0:
                self._unlock()
        finally:
            self._threads.release()

    def write(self, content: bytes) -> None:
        """Replace the content, under the lock. It is on the disk before this returns."""
        if not self._writable:
            raise PermissionError(f"the ledger {self._path!r} cannot be written by this user. Nothing was spent.")
        end = os.fstat(self._file).st_size
        try:
            self._put(b" " * (len(content) - end) + MARK + content, end)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._file, end)
            raise
        with suppress(OSError):  # it is there, and whoever reads it next puts it in its place
            self._settle(content)

    def _settle(self, content):
        """Put content that stands behind, beyond its own length, in its place."""
        self._put(content, 0)
        os.ftruncate(self._file, len(content))

    def _put(self, content, place):
        while content:
            written = os.pwrite(self._file, content, place)
            content, place = content[written:], place + written
        os.fsync(self._file)

    def _content(self):
        """Return the last content that is whole, and put it in its place; all there is if none is whole."""
        content = b""
        while block := os.pread(self._file, 1 << 20, len(content)):
            content += block
        parts = [part.rstrip(JUNK) for part in content.split(MARK)]
        if parts == [content]:
            return content
        last = next((number for number in reversed(range(len(parts))) if _is_whole(parts[number])), None)
        if last is None:
            return content
        if self._writable:
            with suppress(OSError):
                if last == 0:
                    os.ftruncate(self._file, len(parts[0]))
                elif last == len(parts) - 1:
                    self._settle(parts[last])
        return parts[last]

    def _lock(self):
        while True:
            try:
                self._file, self._writable = os.open(self._path, os.O_RDWR), True
            except FileNotFoundError:
                self._make(self._begin())
                continue
            except OSError:  # a reader, or a disk that is for readers only
                self._file, self._writable = os.open(self._path, os.O_RDONLY), False
            fcntl.flock(self._file, fcntl.LOCK_EX)
            if self._is_in_place():
                return
            self._unlock()

    def _unlock(self):
        file, self._file = self._file, -1  # closed once, even if it cannot be opened again
        try:
            fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may hold a copy of the descriptor
        finally:
            os.close(file)

    def _is_in_place(self):
        """Return whether the locked file has still its name; who opens that name later locks another file."""
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(self._path))
        except FileNotFoundError:
            return False

    def _make(self, content):
        """Make the file, whole or not at all, unless another process has made it meanwhile."""
        partial, self._file = partial_file(self._path, PRIVATE)
        try:
            self._put(content, 0)
            with suppress(FileExistsError, FileNotFoundError):  # made, or taken for litter, meanwhile: try again
                os.link(partial, self._path)
        finally:
            with suppress(FileNotFoundError):
                os.remove(partial)
            self._unlock()
        folder = os.open(os.path.dirname(self._path), os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name, too, must outlive a loss of power
        finally:
            os.close(folder)


def _is_whole(content):
    """Return whether this is the content of a ledger."""
    try:
        unpack(content)
    except (ValueError, KeyError, TypeError):
        return False
    return True
