"""Transcripts: the noisy answers of a fit in a file, of which other models are made for nothing."""

import json
import os
from dataclasses import replace
from io import BytesIO
from os import PathLike
from typing import Any, Self

import numpy as np

from skdplda._checks import is_integer, is_real
from skdplda._files import DAMAGE, check_writable, fingerprint, read_arrays, write_arrays
from skdplda._validation import check_memory
from skdplda.privacy import PrivacyGuarantee, Spending, Status, is_of_package, stated_guarantee
from skdplda.rounds._adaptive import Knowledge
from skdplda.rounds._guarantee import with_asked
from skdplda.rounds._loop import talk
from skdplda.rounds._transcript import Transcript

FORMAT, VERSION = "skdplda.transcript", 1
# Parameters that are no part of a transcript: a secret, what is of the run alone, and what is given again.
LEFT_OUT = ("callback", "checkpoint", "n_jobs", "prior", "random_state", "verbose")


def check_transcript(path, estimator, plan):
    """Refuse what could not be written, or would take the place of another file, before anything is paid."""
    if getattr(estimator, "similarity", None) is not None:
        raise ValueError("transcript must be None with a similarity, which no transcript holds.")
    if plan is None or plan.noiseless or not estimator._in_rounds():
        raise ValueError(
            "transcript must be None where a fit has no noisy sums to keep: without noise, and in published forms."
        )
    if os.path.lexists(path):
        raise FileExistsError(
            f"transcript must name a new file, one for each fit; {os.fspath(path)!r} is there already."
        )
    checkpoint = estimator.checkpoint
    if checkpoint is not None and os.path.realpath(checkpoint) == os.path.realpath(path):
        raise ValueError(
            f"transcript must be another file than checkpoint, which is as private as the data; got"
            f" {os.fspath(path)!r} for both."
        )
    _settings(estimator)
    try:
        check_writable(path)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"transcript must name a new file in a folder that this process may write to; got {os.fspath(path)!r}"
            f" ({type(error).__name__})."
        ) from None


def _settings(estimator):
    """Return the parameters that a transcript holds, as (values of JSON, arrays), or refuse what is neither."""
    plain, arrays = {}, {}
    for name, value in estimator.get_params(deep=False).items():
        if name in LEFT_OUT:
            continue
        try:
            if np.ndim(value):
                arrays[name] = np.asarray(value)
                np.lib.format.write_array(BytesIO(), arrays[name], (1, 0), allow_pickle=False)
            else:
                plain[name] = value.item() if isinstance(value, np.generic) else value
                json.dumps(plain)
        except (TypeError, ValueError):
            raise ValueError(
                f"transcript must be None with this {name}, which no transcript holds: give a number, a text or an"
                f" array of numbers; got {type(value).__name__}."
            ) from None
    return plain, arrays


def transcript_of(estimator, guarantee, transcript, spending, data, table_key):
    """Return what was asked of a fit and answered, as header and arrays: what the guarantee covers, and no more."""
    plain, arrays = _settings(estimator)
    prior, documents = getattr(estimator, "prior", None), data.documents
    counts = getattr(documents, "counts", None)
    n_counted = documents.pool.n_counted if data.on_workers else None if counts is None else counts.shape[1]
    header = {
        "format": FORMAT,
        "version": VERSION,
        "model": _class_of(type(estimator)),
        "parameters": plain,
        "columns": [int(estimator.n_features_in_), n_counted],
        "words": None if data.words is None else [str(word) for word in data.words],
        "named": hasattr(estimator, "feature_names_in_"),
        "grouped": bool(data.grouped),
        "prior": None if prior is None else fingerprint(data.prior),
        "guarantee": json.loads(guarantee.to_json()),
        "table_key": f"{table_key:x}",
        "kinds": transcript.kinds,
        "multipliers": spending.multipliers,
    }
    arrays = {f"p_{name}": array for name, array in arrays.items()}
    public = {"word_vectors": data.word_vectors, "word_frequencies": data.word_frequencies}
    arrays |= {name: array for name, array in public.items() if array is not None}
    return header, arrays | {f"a_{number}": answer for number, answer in enumerate(transcript.answers)}


def keep_transcript(path, header, arrays):
    """Write a transcript of a model that is fitted already: where that fails, what was paid for is not lost."""
    try:
        write_arrays(path, header, arrays)
    except OSError as error:
        raise OSError(
            error.errno,
            f"the transcript could not be written to {os.fspath(path)!r} ({error}). The model is fitted, and can be"
            " used as without a transcript.",
        ) from error


def _class_of(cls):
    """Return the name of a class, by which an outsider's is not taken for one of the package."""
    return cls.__name__ if is_of_package(cls) else f"{cls.__module__}.{cls.__qualname__}"


def _is_of_plan(guarantee, own, prior):
    """Whether a guarantee says what its parameters do, `own`, or less; `prior` is what these assume of the prior."""
    said = {"status": guarantee.status, "reason": guarantee.reason, "assumptions": guarantee.assumptions}
    return (
        replace(own, **said) == guarantee
        and list(Status).index(guarantee.status) >= list(Status).index(own.status)
        and own.reason in guarantee.reason
        and set(own.assumptions) - set(prior) <= set(guarantee.assumptions)
    )


def _read(path):
    """Return the header and the arrays of a transcript."""
    try:
        header, arrays = read_arrays(path)
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

        Without options it is the fitted model, bit for bit. Options may be chosen by looking: they are post-processing.

        Parameters
        ----------
        path : path-like
            Written by ``fit(..., transcript=path)``.
        prior : PublicPrior or WordPrior, default=None
            That of the fit, which a transcript does not hold.
        topic_word_prior : float, default=None
            Another pseudo-count of every word in every topic.
        forget : float, default=None
            Weight that a round takes from all earlier ones, from 0 (they count by precision) to 1 (the last one alone).
            Only where releases divide the budget; so is `n_apart`.
        n_apart : int, default=None
            How many topics are kept apart, those that stand out most; the others get the word frequencies.

        Returns
        -------
        model : estimator
            Fitted; `privacy_guarantee_` is that of the fit. A file of another class, prior or version is refused.

        Raises
        ------
        ValueError
            If the file is no transcript, or one of another class, prior or version; or an option does not fit.
        """
        header, arrays, answers = _read(path)
        if header.get("model") != _class_of(cls):
            raise ValueError(f"path must name a transcript of {_class_of(cls)}; this one is of {header.get('model')}.")
        try:
            parameters = header["parameters"] | {n[2:]: a for n, a in arrays.items() if n.startswith("p_")}
            if not parameters.keys().isdisjoint(LEFT_OUT):
                raise ValueError(f"it has a parameter that no transcript holds, one of {', '.join(LEFT_OUT)}")
            changed = {"prior": prior} if "prior" in getattr(cls, "_parameter_constraints", ()) else {}
            changed |= {} if topic_word_prior is None else {"topic_word_prior": topic_word_prior}
            model: Any = cls(**parameters | changed)
            guarantee = PrivacyGuarantee.from_json(json.dumps(header["guarantee"]))
            (n_columns, n_counted), words = header["columns"], header["words"]
            if not all(is_integer(n) and n > 0 for n in (n_columns, *([] if n_counted is None else [n_counted]))):
                raise ValueError(f"it has columns {header['columns']!r}")
            table_key, grouped, held = int(header["table_key"], 16), header["grouped"], header["prior"]
            kinds = header["kinds"]
        except (*DAMAGE, ArithmeticError) as error:
            raise ValueError(f"path names a damaged transcript, or one of another version: {error}") from None
        model._validate_params()
        model._set_columns(n_columns)
        check_memory(model.n_components, n_counted or n_columns)
        if header.get("named") and words is not None and len(words) == n_columns:
            model.feature_names_in_ = np.array(words, dtype=object)
        plan = model._plan()
        words = None if words is None else np.array(words, dtype=object)
        public = {name: arrays.get(name) for name in ("word_vectors", "word_frequencies")}
        data = model._unread(n_columns, n_counted, grouped, words, **public)
        if prior is not None and held is not None:
            data = data._replace(prior=model._word_prior(data))
        if (prior is None) != (held is None) or (held is not None and fingerprint(data.prior) != held):
            raise ValueError("prior must be that of the fit, whose releases depend on it; give the same one, or none.")
        own = stated_guarantee(model, model._guarantee("user" if grouped else "document", plan))
        if not _is_of_plan(guarantee, own, () if prior is None else model._prior_assumption()):
            raise ValueError("path names a transcript whose guarantee is not that of its settings: it is damaged.")
        known = model._make_tables(plan, _Known(table_key), data)
        if (forget, n_apart) != (None, None) and not isinstance(known, Knowledge):
            raise ValueError("forget and n_apart are for fits whose releases divide the budget; give neither.")
        if forget is not None:
            known.forget = check_number("forget", forget, 0, 1)
        strategy = model._strategy(plan, known)[0]
        transcript = Transcript.of(answers, header["multipliers"])
        talk(strategy, _refuse, None, Spending(plan), None, transcript=transcript)
        if transcript.kinds != kinds or len(kinds) != len(answers):
            raise ValueError("path names a transcript of other releases than its settings ask for: it is damaged.")
        if n_apart is not None:
            known.keep_apart(int(check_number("n_apart", n_apart, 1, model.n_components)))
        model._set_fitted(with_asked(guarantee, plan, kinds), **model._fitted_of(known, len(answers), data))
        return model


def _refuse(ask, number):
    """Nothing is asked that was not answered."""
    raise ValueError("the transcript has fewer answers than its settings ask for: it is damaged.")
