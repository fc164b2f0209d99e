"""Transcripts: the noisy answers of a fit in a file, of which other models are made for nothing."""

import json
import os
import zipfile
from os import PathLike
from typing import Any, Self

import numpy as np

from skdplda._files import DAMAGE, check_writable, fingerprint, read_array, read_stored, refuse_existing, whole_file
from skdplda._validation import is_real
from skdplda.privacy import PrivacyGuarantee
from skdplda.rounds._adaptive import Knowledge
from skdplda.rounds._loop import talk
from skdplda.rounds._spending import Spending
from skdplda.rounds._transcript import Transcript

__all__ = ["TranscriptMixin", "check_transcript", "keep_transcript"]

FORMAT, VERSION = "skdplda.transcript", 1
# Parameters that are no part of a transcript: a secret, what is of the run alone, and what is given again.
LEFT_OUT = ("callback", "checkpoint", "n_jobs", "prior", "random_state", "verbose")


def check_transcript(path, estimator, plan):
    """Refuse a file that could not be written, or that would take the place of another one, before anything is paid."""
    if getattr(estimator, "similarity", None) is not None:
        raise ValueError("transcript must be None with a similarity, which no transcript holds.")
    if plan is None or plan.noiseless or not estimator._in_rounds():
        raise ValueError(
            "transcript must be None where a fit has no noisy sums to keep: without noise, and in published forms."
        )
    refuse_existing(path)
    try:
        check_writable(path)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"transcript must name a new file in a folder that this process may write to; got {os.fspath(path)!r}"
            f" ({type(error).__name__})."
        ) from None


def keep_transcript(path, estimator, guarantee, transcript, spending, data, table_key):
    """Write what was asked of a fit and answered. It holds what the guarantee covers, and nothing else."""
    parameters = {n: v for n, v in estimator.get_params(deep=False).items() if n not in LEFT_OUT}
    arrays = {f"p_{n}": np.asarray(v) for n, v in parameters.items() if np.ndim(v)}
    prior, documents = getattr(estimator, "prior", None), data.documents
    counts = getattr(documents, "counts", None)
    n_counted = documents.pool.n_counted if data.on_workers else None if counts is None else counts.shape[1]
    header = {
        "format": FORMAT,
        "version": VERSION,
        "model": type(estimator).__name__,
        "parameters": {n: _plain(v) for n, v in parameters.items() if not np.ndim(v)},
        "columns": [int(estimator.n_features_in_), int(data.n_words), n_counted],
        "words": None if data.words is None else [str(word) for word in data.words],
        "named": hasattr(estimator, "feature_names_in_"),
        "grouped": bool(data.grouped),
        "prior": None if prior is None else fingerprint(data.prior),
        "guarantee": json.loads(guarantee.to_json()),
        "table_key": f"{table_key:x}",
        "kinds": transcript.kinds,
        "multipliers": spending.multipliers,
    }
    arrays |= {f"a_{number}": answer for number, answer in enumerate(transcript.answers)}
    with whole_file(path) as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)


def _plain(value):
    """Return a number or a text as JSON has it."""
    return value.item() if isinstance(value, np.generic) else value


def _read(path):
    """Return the header and the arrays of a transcript."""
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {name.removesuffix(".npy"): read_array(part) for name, part in read_stored(archive).items()}
        header = json.loads(str(arrays.pop("header")))
        if (header["format"], header["version"]) != (FORMAT, VERSION):
            raise ValueError(f"it is not of format {FORMAT} version {VERSION}")
        answers = [arrays[f"a_{number}"] for number in range(len(header["multipliers"]))]
    except (OSError, MemoryError, *DAMAGE) as error:
        raise ValueError(
            f"path must name a transcript that fit has written; {os.fspath(path)!r} is none, or a damaged one"
            f" ({type(error).__name__}: {error})."
        ) from None
    return header, arrays, answers


def check_number(name, value, least, most):
    """Return a number within bounds, or refuse it."""
    if not is_real(value) or not least <= value <= most:
        raise ValueError(f"{name} must be a number from {least} to {most}; got {value!r}.")
    return value


class _Known:
    """What of a fit's randomness is public."""

    def __init__(self, table_key):
        self.table_key = table_key


class TranscriptMixin:
    """Models that are made of the transcript of a fit."""

    @classmethod
    def from_transcript(
        cls,
        path: PathLike | str,
        *,
        prior: Any = None,
        topic_word_prior: float | None = None,
        forget: float | None = None,
        n_apart: int | None = None,
    ) -> Self:
        """Make a model of the noisy answers that an earlier fit has kept; no data are read, and nothing is spent.

        Without options it is the fitted model itself, bit for bit. All options are post-processing: they may be chosen
        by looking at the models that they make.

        Parameters
        ----------
        path : path-like
            Written by ``fit(..., transcript=path)``.
        prior : PublicPrior or WordPrior, default=None
            That of the fit, which a transcript does not hold.
        topic_word_prior : float, default=None
            Another pseudo-count of every word in every topic.
        forget : float, default=None
            Weight that a round of topics takes from all earlier ones, from 0 (all rounds count by their precision) to 1
            (the last one alone). Only for fits whose releases divide the budget; so is `n_apart`.
        n_apart : int, default=None
            How many topics are kept apart, those that stand out most; the others get the word frequencies.

        Returns
        -------
        model : estimator
            Fitted; `privacy_guarantee_` is that of the fit.

        Raises
        ------
        ValueError
            If the file is no transcript, or one of another class, prior or version; or an option does not fit.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> from skdplda import VIPSLDA
        >>> from skdplda.datasets import make_lda_corpus
        >>> X, path = make_lda_corpus(2000, 100, 4, random_state=0).data, Path(mkdtemp()) / "topics.transcript"
        >>> model = VIPSLDA(4, epsilon=2.0).fit(X, transcript=path)
        >>> again = VIPSLDA.from_transcript(path)
        >>> bool((again.components_ == model.components_).all())
        True
        """
        header, arrays, answers = _read(path)
        if header["model"] != cls.__name__:
            raise ValueError(f"path must name a transcript of {cls.__name__}; this one is of {header['model']}.")
        try:
            parameters = header["parameters"] | {n[2:]: a for n, a in arrays.items() if n.startswith("p_")}
            changed = {"prior": prior} if "prior" in getattr(cls, "_parameter_constraints", ()) else {}
            changed |= {} if topic_word_prior is None else {"topic_word_prior": topic_word_prior}
            model: Any = cls(**parameters | changed)
            guarantee = PrivacyGuarantee.from_json(json.dumps(header["guarantee"]))
            n_columns, words = header["columns"], header["words"]
            table_key, grouped, held = int(header["table_key"], 16), header["grouped"], header["prior"]
        except (*DAMAGE, ArithmeticError) as error:
            raise ValueError(f"path names a damaged transcript, or one of another version: {error}") from None
        model._validate_params()
        model._set_columns(n_columns[0])
        if header.get("named") and words is not None and len(words) == n_columns[0]:
            model.feature_names_in_ = np.array(words, dtype=object)
        plan = model._plan()
        data = model._unread(*n_columns[1:], grouped, None if words is None else np.array(words, dtype=object))
        if prior is not None and held is not None:
            data = data._replace(prior=model._word_prior(data))
        if (prior is None) != (held is None) or (held is not None and fingerprint(data.prior) != held):
            raise ValueError("prior must be that of the fit, whose releases depend on it; give the same one, or none.")
        known = model._make_tables(plan, _Known(table_key), data)
        if (forget, n_apart) != (None, None) and not isinstance(known, Knowledge):
            raise ValueError("forget and n_apart are for fits whose releases divide the budget; give neither.")
        if forget is not None:
            known.forget = check_number("forget", forget, 0, 1)
        strategy = model._strategy(plan, known)[0]
        transcript = Transcript.of(answers, header["multipliers"])
        talk(strategy, _refuse, None, Spending(plan), None, transcript=transcript)
        if transcript.kinds != header["kinds"]:
            raise ValueError("path names a transcript of other releases than its settings ask for: it is damaged.")
        if n_apart is not None:
            known.keep_apart(int(check_number("n_apart", n_apart, 1, model.n_components)))
        model._set_fitted(guarantee, **model._fitted_of(known, len(answers), data))
        return model


def _refuse(ask, number):
    """Nothing is asked that was not answered."""
    raise ValueError("the transcript has fewer answers than its settings ask for: it is damaged.")
