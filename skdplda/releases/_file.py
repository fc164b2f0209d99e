"""A released model as bytes: a zip archive of a JSON header, an array and a checksum; no pickle."""

import hashlib
import json
import os
import zipfile
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from skdplda._files import DAMAGE, read_array, read_stored
from skdplda._types import PathLike
from skdplda.privacy import PrivacyGuarantee

if TYPE_CHECKING:
    from skdplda.releases._model import ReleasedTopicModel

__all__ = ["checksum", "load_released", "to_bytes"]

FORMAT = "skdplda.ReleasedTopicModel"
VERSION = 1
HEADER, TOPICS, CHECKSUM = "header.json", "topic_word.npy", "sha256.txt"


def to_bytes(model):
    """Return the content of a model's file.

    Parameters
    ----------
    model : ReleasedTopicModel
        The model.

    Returns
    -------
    content : bytes
        A function of the released values alone: no time, no path, no user.
    """
    members = _members(model)
    members[CHECKSUM] = _digest(members).encode()
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)  # of 1 January 1980
    return content.getvalue()


def checksum(model):
    """Return the checksum that the model's file holds.

    Parameters
    ----------
    model : ReleasedTopicModel
        The model.

    Returns
    -------
    digest : str
        SHA-256 of header and topics, hexadecimal.
    """
    return _digest(_members(model))


def load_released(path: PathLike) -> "ReleasedTopicModel":
    """Read a model that `ReleasedTopicModel.save` has written.

    Nothing in the file is executed. The checksum tells damage; it is no signature: whoever edits a file on purpose can
    write a new one. Compare it with that of a model card you trust.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    model : ReleasedTopicModel
        Equal to the one that was saved.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is none of ours, truncated, edited, or of a newer version.
    """
    from skdplda.releases._model import ReleasedTopicModel

    with open(path, "rb") as file:
        content = file.read()
    try:
        header, topic_word = _read(content)
        return ReleasedTopicModel(
            topic_word,
            header["vocabulary"],
            privacy_guarantee=PrivacyGuarantee.from_json(json.dumps(header["privacy_guarantee"])),
            doc_topic_prior=header["doc_topic_prior"],
            text=header["text"],
            details=header["details"],
        )
    except DAMAGE as error:
        raise ValueError(f"released model {os.fspath(path)!r} cannot be read: {error}") from None


def _members(model):
    """Return the files of the archive, but for the checksum."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "vocabulary": None if model.vocabulary_ is None else model.vocabulary_.tolist(),
        "doc_topic_prior": model.doc_topic_prior_.tolist(),
        "text": model.text_,
        "details": model.details_,
        "privacy_guarantee": json.loads(model.privacy_guarantee_.to_json()),
    }
    array = BytesIO()
    np.lib.format.write_array(array, model.topic_word_, allow_pickle=False)
    text = json.dumps(header, indent=1, ensure_ascii=False, allow_nan=False)
    return {HEADER: text.encode(errors="surrogatepass"), TOPICS: array.getvalue()}


def _digest(members):
    digest = hashlib.sha256()
    for name in (HEADER, TOPICS):
        digest.update(f"{name} {len(members[name])}\n".encode())
        digest.update(members[name])
    return digest.hexdigest()


def _read(content):
    """Return header and topics, whose checksum is right."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        if sorted(archive.namelist()) != sorted([HEADER, TOPICS, CHECKSUM]):
            raise ValueError("it is not a released model")
        members = read_stored(archive)
    if members[CHECKSUM].decode(errors="replace") != _digest(members):
        raise ValueError("its checksum is wrong; the file was damaged or edited. Fetch it again")
    header = json.loads(members[HEADER].decode(errors="surrogatepass"))
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("it is not a released model")
    if header.get("version") != VERSION:
        raise ValueError(f"it is of version {header.get('version')!r}, this skdplda reads {VERSION}; update skdplda")
    return header, read_array(members[TOPICS])
