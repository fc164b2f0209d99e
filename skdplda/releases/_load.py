"""Released models out of their files."""

import json
import os

from skdplda._files import DAMAGE
from skdplda._types import Function, PathLike
from skdplda.privacy import PrivacyGuarantee
from skdplda.releases import _file
from skdplda.releases._clusters import ReleasedClusterModel
from skdplda.releases._model import ReleasedTopicModel


def load_released(path: PathLike, *, tokenizer: Function | None = None) -> ReleasedTopicModel:
    """Read a model that `save` of a released model has written.

    Nothing in the file is executed. The checksum shows damage; it is no signature: whoever edits a file on purpose can
    write a new one. Compare it with that of a model card you trust.

    Parameters
    ----------
    path : str or path-like
        The file.
    tokenizer : callable or None, default=None
        The function that the model was fitted with, where it was one that cuts texts; no file holds functions. None:
        such a model has its topics, and takes counts.

    Returns
    -------
    model : ReleasedTopicModel or ReleasedClusterModel
        Equal to the one that was saved.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is none of ours, truncated, edited, or of a newer version; or the tokenizer is not wanted, or makes
        none of the released words.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"path must name a file that save has written, such as release(model).save('topics.zip'); there is no file"
            f" {os.fspath(path)!r}."
        ) from None
    try:
        values, arrays = _file.unpack(content)
        given = {
            "privacy_guarantee": PrivacyGuarantee.from_json(json.dumps(values["privacy_guarantee"])),
            "details": values["details"],
            "topic_names": values["topic_names"],
            "signal_to_noise": arrays.pop("signal_to_noise", None),
        }
        if "cluster_centers" in arrays:
            if tokenizer is not None:
                raise ValueError("tokenizer must be None: clusters take embeddings.")
            *deviations, concentration = arrays.pop("scale")
            return ReleasedClusterModel(
                vocabulary=values["vocabulary"],
                size_deviation=deviations[0] if len(deviations) == 1 else deviations,
                concentration=concentration,
                **arrays,
                **given,
            )
        model = ReleasedTopicModel(
            vocabulary=values["vocabulary"],
            doc_topic_prior=values["doc_topic_prior"],
            text=values["text"],
            topic_sizes=values["topic_sizes"],
            **arrays,
            **given,
        )
    except DAMAGE as error:
        raise ValueError(f"released model {os.fspath(path)!r} cannot be read: {error}") from None
    if tokenizer is not None:
        model.tokenizer = model._check_tokenizer(tokenizer)
    return model
