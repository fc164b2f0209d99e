"""The formats of checkpoints and released models, as the tests that read, edit and forge such files know them."""

import hashlib
import json
import zipfile
from io import BytesIO

import numpy as np

__all__ = ["checksum", "members_of", "read_checkpoint", "write_checkpoint", "write_members"]


def read_checkpoint(path):
    """Return the header of a checkpoint and its arrays by name."""
    with np.load(path) as file:
        arrays = dict(file)
    return json.loads(str(arrays.pop("header"))), arrays


def write_checkpoint(file, header, arrays):
    """Write a checkpoint of any content, into a file of this name or one that is open."""
    known = {"format": "skdplda.checkpoint", "version": 11, "arrays": sorted(arrays)}
    np.savez(file, header=np.array(json.dumps(known | header)), **arrays)


def members_of(model):
    """Return the members of the file of a released model, by name."""
    with zipfile.ZipFile(BytesIO(model._content())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def checksum(members):
    """Return the checksum that belongs to members, in their order."""
    digest = hashlib.sha256()
    for name, data in members.items():
        if name != "sha256.txt":
            digest.update(f"{name} {len(data)}\n".encode() + data)
    return digest.hexdigest().encode()


def write_members(path, members, compression=zipfile.ZIP_STORED):
    """Write members into a file, with the checksum that belongs to them."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in (members | {"sha256.txt": checksum(members)}).items():
            archive.writestr(name, data)
