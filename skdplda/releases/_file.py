"""A released model as bytes: a zip archive of a JSON header, an array and a checksum; no pickle."""

import hashlib
import json
import zipfile
from io import BytesIO
from typing import Any

import numpy as np

from skdplda._files import read_array, read_stored

__all__ = ["checksum", "pack", "unpack"]

FORMAT = "skdplda.ReleasedTopicModel"
VERSION = 2
READ = (1, 2)  # a file of version 1 has neither sizes, names nor signal of topics
HEADER, TOPICS, SIGNAL, CHECKSUM = "header.json", "topic_word.npy", "signal_to_noise.npy", "sha256.txt"


def pack(values: dict[str, Any], topic_word: np.ndarray, signal: np.ndarray | None = None) -> bytes:
    """Return the content of a model's file: `values`, as JSON can hold them, the topics and their signal to noise.

    The arrays are of shape (n_components, n_words). It is a function of these values alone: no time, no path, no user.
    """
    members = _members(values, topic_word, signal)
    members[CHECKSUM] = _digest(members).encode()
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)  # of 1 January 1980
    return content.getvalue()


def checksum(values: dict[str, Any], topic_word: np.ndarray, signal: np.ndarray | None = None) -> str:
    """Return the SHA-256 that the file of these values holds, hexadecimal. The parameters are those of `pack`."""
    return _digest(_members(values, topic_word, signal))


def _members(values, topic_word, signal=None):
    """Return the files of the archive, but for the checksum."""
    header = {"format": FORMAT, "version": VERSION, **values}
    text = json.dumps(header, indent=1, ensure_ascii=False, allow_nan=False)
    members = {HEADER: text.encode(errors="surrogatepass")}
    for name, array in ((TOPICS, topic_word), (SIGNAL, signal)):
        if array is not None:
            written = BytesIO()
            np.lib.format.write_array(written, array, allow_pickle=False)
            members[name] = written.getvalue()
    return members


def _digest(members):
    digest = hashlib.sha256()
    for name in (HEADER, TOPICS, SIGNAL):
        if name in members:
            digest.update(f"{name} {len(members[name])}\n".encode())
            digest.update(members[name])
    return digest.hexdigest()


def unpack(content: bytes) -> tuple[dict[str, Any], np.ndarray, np.ndarray | None]:
    """Undo `pack`. It raises one of `skdplda._files.DAMAGE` if the content is none of ours, damaged, or too new."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        if sorted({*archive.namelist(), SIGNAL}) != sorted([HEADER, TOPICS, SIGNAL, CHECKSUM]):
            raise ValueError("it is not a released model")
        members = read_stored(archive)
    if members[CHECKSUM].decode(errors="replace") != _digest(members):
        raise ValueError("its checksum is wrong; the file was damaged or edited. Fetch it again")
    header = json.loads(members[HEADER].decode(errors="surrogatepass"))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("it is not a released model")
    if header.get("version") not in READ:
        raise ValueError(f"it is of version {header.get('version')!r}, this skdplda reads {READ}; update skdplda")
    return header, read_array(members[TOPICS]), read_array(members[SIGNAL]) if SIGNAL in members else None
