"""A released model as bytes: a zip archive of a JSON header, an array and a checksum; no pickle."""

import hashlib
import json
import zipfile
from io import BytesIO
from typing import Any

import numpy as np

from skdplda._files import read_array, read_stored

FORMAT = "skdplda.ReleasedTopicModel"
VERSIONS = WORDS, WITH_CLUSTERS = 2, 3  # of words alone, and with clusters of embeddings
HEADER, CHECKSUM = "header.json", "sha256.txt"
TOPICS, CLUSTERS = "topic_word", "cluster_centers"
# Arrays, in this order.
OPTIONAL = ("signal_to_noise", CLUSTERS, "centre", "cluster_sizes", "scale", "projection", "keyword_scores")


def pack(values: dict[str, Any], arrays: dict[str, np.ndarray | None]) -> bytes:
    """Return the content of a model's file: `values`, as JSON can hold them, and arrays by name, without those of None.

    It is a function of these values alone: no time, no path, no user.
    """
    members = _members(values, arrays)
    members[CHECKSUM] = _digest(members).encode()
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)  # of 1 January 1980
    return content.getvalue()


def checksum(values: dict[str, Any], arrays: dict[str, np.ndarray | None]) -> str:
    """Return the SHA-256 that the file of these values holds, hexadecimal. The parameters are those of `pack`."""
    return _digest(_members(values, arrays))


def _members(values, arrays):
    """Return the files of the archive, but for the checksum."""
    header = {"format": FORMAT, "version": WITH_CLUSTERS if CLUSTERS in arrays else WORDS, **values}
    text = json.dumps(header, indent=1, ensure_ascii=False, allow_nan=False)
    members = {HEADER: text.encode(errors="surrogatepass")}
    for name in (TOPICS, *OPTIONAL):
        if arrays.get(name) is not None:
            written = BytesIO()
            np.lib.format.write_array(written, arrays[name], allow_pickle=False)
            members[f"{name}.npy"] = written.getvalue()
    return members


def _digest(members):
    digest = hashlib.sha256()
    for name in (HEADER, *(f"{name}.npy" for name in (TOPICS, *OPTIONAL))):
        if name in members:
            digest.update(f"{name} {len(members[name])}\n".encode())
            digest.update(members[name])
    return digest.hexdigest()


def unpack(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Undo `pack`. It raises one of `skdplda._files.DAMAGE` if the content is none of ours, damaged, or too new."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        names, optional = archive.namelist(), {f"{name}.npy" for name in OPTIONAL}
        if len(set(names)) < len(names) or {*names} - optional != {HEADER, f"{TOPICS}.npy", CHECKSUM}:
            raise ValueError("it is not a released model")
        members = read_stored(archive)
    if members[CHECKSUM].decode(errors="replace") != _digest(members):
        raise ValueError("its checksum is wrong; the file was damaged or edited. Fetch it again")
    header = json.loads(members[HEADER].decode(errors="surrogatepass"))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("it is not a released model")
    if header.get("version") not in VERSIONS:
        raise ValueError(f"it is of version {header.get('version')!r}, this skdplda reads {VERSIONS}; update skdplda")
    return header, {
        name: read_array(members[f"{name}.npy"]) for name in (TOPICS, *OPTIONAL) if f"{name}.npy" in members
    }
