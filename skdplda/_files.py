"""Files that are either whole or not there, archives that hold what they say, and digests of data."""

import copyreg
import fcntl
import functools
import hashlib
import json
import math
import os
import re
import secrets
import stat
import struct
import tokenize
import warnings
import zipfile
from contextlib import contextmanager, suppress
from io import BytesIO
from types import CodeType, FunctionType

import numpy as np
import scipy.sparse as sp

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


LONGEST = 150  # bytes of a file's name in that of its partial file: all names have an end, at about 255 bytes


@contextmanager
def whole_file(path, mode=0o666):
    """Open a binary file for writing that takes its place, and its name, only when it is complete.

    A former file stays whole until the new one is; nothing is left behind if the block raises. It is written as
    `.NAME.RANDOM.partial`, beside its place, and is made by this call or not at all: a file or a symbolic link that
    waits there is not opened, and lends neither its mode nor its target. A symbolic link at `path` is replaced, not
    followed. What a killed process left of the same file is removed first.
    """
    path = os.fspath(path)
    remove_partial(path)
    partial, descriptor = partial_file(path, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(partial, path)  # still locked: nobody takes it for what a killed process left
    except BaseException:
        if os.path.exists(partial):
            os.remove(partial)
        raise


def check_writable(path):
    """Raise OSError or ValueError if no file can be written at a path; nothing is left there.

    A directory, or anything else that is no file, is refused.
    """
    path = os.fspath(path)
    if not os.path.basename(path):
        raise ValueError("it has no name of a file")
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise IsADirectoryError("it is no file")
    partial, descriptor = partial_file(path, PRIVATE)
    os.close(descriptor)
    os.remove(partial)


def remove_partial(path):
    """Remove what killed processes left of a file, and leave what another one is writing now."""
    folder, name = os.path.split(os.fspath(path))
    pattern = re.compile(rf"\.{re.escape(_shown(name))}\.[0-9a-f]{{32}}\.partial", re.DOTALL)
    with suppress(OSError), os.scandir(folder or ".") as entries:
        for entry in [entry for entry in entries if pattern.fullmatch(entry.name)]:
            with suppress(OSError):  # it is somebody else's, gone meanwhile, or being written
                descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if os.fstat(descriptor).st_uid == os.geteuid():
                        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the system unlocks what a kill left
                        os.remove(entry.path)
                finally:
                    os.close(descriptor)


def partial_file(path, mode):
    """Return name and descriptor of a new file beside a path, locked as long as it is open."""
    folder, name = os.path.split(path)
    while True:
        partial = os.path.join(folder, f".{_shown(name)}.{secrets.token_hex(16)}.partial")
        try:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except FileNotFoundError as error:
            raise FileNotFoundError(error.errno, "There is no folder", folder) from None
        with suppress(OSError):  # where no locks work, nobody knows what is being written, and nothing is removed
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(FileNotFoundError):  # another process took it for what a killed one left, before it was locked
            if os.path.samestat(os.fstat(descriptor), os.stat(partial)):
                return partial, descriptor
        os.close(descriptor)


def _shown(name):
    """Return a file's name as it is in that of its partial file."""
    return os.fsdecode(os.fsencode(name)[:LONGEST])


def refuse_existing(*paths):
    """Raise FileExistsError if there is anything at one of the paths, a broken symbolic link included."""
    for path in paths:
        if os.path.lexists(path):
            raise FileExistsError(f"{os.fspath(path)!r} is there already; give another name, or overwrite=True.")


def write_arrays(path, header, arrays, mode=0o666):
    """Write arrays, and a header that JSON can hold, as a `whole_file`."""
    with whole_file(path, mode) as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)


def read_arrays(path):
    """Return (header, arrays) as `write_arrays` wrote them; OSError, MemoryError or one of DAMAGE for other files."""
    with zipfile.ZipFile(path) as archive:
        arrays = {name.removesuffix(".npy"): read_array(part) for name, part in read_stored(archive).items()}
    return json.loads(str(arrays.pop("header"))), arrays


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

    numpy allocates what the header says before it reads, so the header is compared with the length first.
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


def fingerprint(*values):
    """Return a hexadecimal digest of values of any kind, by which a checkpoint belongs to them.

    Arrays, data frames and sparse matrices count by shape, dtype and every entry, functions by their code, other
    objects by their class and what they hold; nothing by its text, which may be shortened or name an address. A
    generator counts by its type: its state is another one in each run. TypeError for what has no
    digest.
    """
    digest = hashlib.sha256()
    for value in values:
        digest.update(_digest_of(value, ()))
    return digest.hexdigest()


def _digest_of(value, within):
    """Return the digest of one value; `within` has the objects that it is a part of."""
    if any(value is whole for whole in within):
        return _hashed("part of itself")
    kind, within = type(value), (*within, value)
    named = f"{kind.__module__}.{kind.__qualname__}"
    if value is None or kind in (bool, int, float, complex, str, bytes):
        return _hashed(named, repr(value))
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return _hashed(named)
    if isinstance(value, (int, float, str, bytes)):  # a class that shows them in another way
        base = next(base for base in (int, float, str, bytes) if isinstance(value, base))
        return _digest_of(base(value), within)
    if isinstance(value, dict):
        pairs = sorted(_digest_of(list(pair), within) for pair in value.items())
        return _hashed("mapping", *pairs)
    if isinstance(value, (set, frozenset)):
        return _hashed("set", *sorted(_digest_of(part, within) for part in value))
    if not sp.issparse(value) and hasattr(value, "__array__") and not isinstance(value, type):
        return _digest_of_array(np.asarray(value), within)
    if isinstance(value, (list, tuple)):
        named, parts = "sequence", value
    elif sp.issparse(value):
        value = value.tocoo()
        parts = str(value.dtype), value.shape, *value.coords, value.data
    elif isinstance(value, FunctionType):
        code, cells = value.__code__, [cell.cell_contents for cell in value.__closure__ or ()]
        parts = value.__module__, value.__qualname__, code, value.__defaults__, value.__kwdefaults__, cells
    elif isinstance(value, CodeType):
        parts = value.co_code, value.co_names, value.co_consts
    elif hasattr(value, "get_params") and not isinstance(value, type):
        learned = {name: held for name, held in vars(value).items() if name.endswith("_")}
        parts = value.get_params(deep=False), learned
    elif isinstance(value, type):
        parts = value.__module__, value.__qualname__
    else:
        parts = _parts_of(value)
    return _hashed(named, *(_digest_of(part, within) for part in parts))


def _digest_of_array(array, within):
    """Return the digest of an array: of its numbers, or of the objects in it."""
    shape = f"{array.dtype}{array.shape}"
    if array.dtype.hasobject:
        return _hashed("objects", shape, *(_digest_of(entry, within) for entry in array.ravel().tolist()))
    return _hashed("array", shape, np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.nbytes else b"")


def _parts_of(value):
    """Return what a pickle of an object would hold, less what it can make anew."""
    registered = copyreg.dispatch_table.get(type(value))
    reduced = value.__reduce_ex__(2) if registered is None else registered(value)
    if isinstance(reduced, str):  # it is known by its name
        return getattr(value, "__module__", None), reduced
    kinds = type(value).__mro__
    made = {name for kind in kinds for name, of in vars(kind).items() if isinstance(of, functools.cached_property)}
    parts = [list(part) if hasattr(part, "__next__") else part for part in reduced]
    return [{n: p for n, p in part.items() if n not in made} if isinstance(part, dict) else part for part in parts]


def _hashed(*parts):
    """Return the digest of texts, bytes and buffers, none of which can run over into the next."""
    digest = hashlib.sha256()
    for part in parts:
        part = memoryview(part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part)
        digest.update(b"%d:" % part.nbytes)
        digest.update(part)
    return digest.digest()
