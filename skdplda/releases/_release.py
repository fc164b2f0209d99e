"""What of a fitted pipeline may be published."""

import math
from numbers import Integral, Real

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline

from skdplda._types import Estimator, Sequence
from skdplda._validation import check_is_fitted, fitted_parameter
from skdplda.models import BaseClusterModel
from skdplda.privacy import Randomness
from skdplda.releases._clusters import ReleasedClusterModel
from skdplda.releases._guarantee import flat_steps, is_private, privacy_guarantee, selects
from skdplda.releases._model import TEXT_SETTINGS, ReleasedTopicModel
from skdplda.vocabulary import DPCountVectorizer

# Not of the model: who ran it, where, how fast, and the seed that its noise can be computed from.
UNSAVED = {"callback", "checkpoint", "n_jobs", "random_state", "verbose"}


def release(
    estimator: Estimator,
    *,
    feature_names: Sequence[str] | None = None,
    raw_text: bool = True,
    allow_seeded: bool = False,
    allow_unproven: bool = False,
) -> ReleasedTopicModel:
    """Take out of a fitted pipeline what its guarantee covers, and nothing else.

    A pickled pipeline holds all of its steps, and a vectorizer's vocabulary is every word of the documents. The
    released model has the topics, their words, the joint guarantee, the prior and the settings that cut a text.

    Parameters
    ----------
    estimator : Pipeline or topic model
        Fitted. A pipeline goes from texts or counts to a private topic model, through a vectorizer and a selector. A
        `PrivateSearchCV`, or a pipeline that ends in one, is released as its best estimator, with the guarantee of the
        search.
    feature_names : sequence of str or None, default=None
        Words of the columns that the first step takes, where no step names them.
    raw_text : bool, default=True
        Whether the released model is to take raw texts, where the pipeline does. It takes the texts themselves, also
        where the pipeline is given the names of files.
    allow_seeded : bool, default=False
        Whether to release a fit with `random_state`: whoever finds the seed subtracts the noise. The guarantee
        says whether a proof covers it: not if the seed can be guessed.
    allow_unproven : bool, default=False
        Whether to release topics although no proven and finite guarantee covers them.

    Returns
    -------
    model : ReleasedTopicModel or ReleasedClusterModel
        It has its own copy of everything. Clusters of embeddings take embeddings, whatever `raw_text` is: the
        embedding model is public, and none of it is released.

    Raises
    ------
    NotFittedError
        If a step is not fitted.
    ValueError
        If the pipeline voids the guarantee (see `privacy_guarantee`), has no proven, finite guarantee, was
        seeded, has no words for its columns, or cuts texts by functions, which no file can hold. A `tokenizer` may be
        one: say beside the model which it is, since `load_released` must be given the same.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdplda import PrivateCGSLDA, release
    >>> texts = ["pear plum pear", "zinc iron"] * 500
    >>> words = ["pear", "plum", "zinc", "iron"]
    >>> pipeline = make_pipeline(CountVectorizer(vocabulary=words), PrivateCGSLDA(2, epsilon=3.0)).fit(texts)
    >>> model = release(pipeline)
    >>> bool((model.transform(["plum and pear"]) == pipeline.transform(["plum and pear"])).all())
    True
    """
    estimator = _opened(estimator)
    steps = flat_steps(estimator)
    name, model = steps[-1] if steps else (None, None)
    if not (is_private(model) and hasattr(model, "_doc_topic_prior")):
        raise ValueError(
            f"the last step must be a private topic model, such as PrivateCGSLDA; got {type(model).__name__}. Fit one,"
            " or a pipeline that ends in one, and give that."
            " For a search that is none of this package, pass its best_estimator_."
        )
    check_is_fitted(model)
    guarantee = privacy_guarantee(estimator)
    proven = guarantee.status == "proven" or guarantee.reason == Randomness.guessable  # seeds are checked below
    if not allow_unproven and not (proven and math.isfinite(guarantee.epsilon)):
        reason = f": {guarantee.reason}" if guarantee.reason else ""
        advice = "epsilon=inf). Fit with a finite epsilon"
        if not proven:
            advice = f"status {str(guarantee.status)!r}{reason}). Fit a proven mechanism"
        raise ValueError(
            f"this fit has no proven, finite guarantee ({advice}, or pass allow_unproven=True; the model card will"
            " say it."
        )
    seeded = any(fitted_parameter(step, "random_state") is not None for _, step in steps)
    seeded = seeded or any("random_state" in assumption for assumption in guarantee.assumptions)
    if seeded and not allow_seeded and math.isfinite(guarantee.epsilon):
        raise ValueError(
            "the noise of this fit is a function of random_state: whoever finds the seed subtracts the noise. Fit"
            " with random_state=None, or pass allow_seeded=True if the seed is secret, random and never used again."
        )
    if not hasattr(model, "topic_word_"):
        raise ValueError(
            f"{name!r} knows no words, and a released model is one of words: fit it with counts. Its cluster_centers_,"
            " centre_ and cluster_sizes_ are covered by its guarantee, and may be published as they are."
        )
    words = _words(steps, feature_names)
    if len(words) != model.topic_word_.shape[1]:
        raise ValueError(
            f"the columns of {name!r} must have {model.topic_word_.shape[1]} names; got {len(words)}. Were the steps"
            " before it fitted again?"
        )
    common = {
        "privacy_guarantee": guarantee,
        "details": {"estimator": type(model).__name__, "parameters": _parameters(model)},
        "topic_names": model.get_feature_names_out(),
        "signal_to_noise": model._word_signal(),
    }
    if isinstance(model, BaseClusterModel):
        return ReleasedClusterModel(
            model.topic_word_,
            words,
            cluster_centers=model.cluster_centers_,
            centre=model.centre_,
            cluster_sizes=model.cluster_sizes_,
            size_deviation=model.size_deviation_,
            concentration=model.concentration_,
            projection=model._fitted_projection(),
            keyword_scores=model._scores(),
            **common,
        )
    text = _text_settings(steps) if raw_text else None
    return ReleasedTopicModel(
        model.topic_word_,
        words,
        doc_topic_prior=model._prior_of_topics(),
        text=text,
        tokenizer=steps[0][1].tokenizer if text and "tokenizer" in text else None,
        n_jobs=model.n_jobs,
        topic_sizes=model._topic_sizes(),
        **common,
    )


def _opened(estimator):
    """Return an estimator with the best estimator in the place of each private search."""
    if isinstance(estimator, Pipeline):
        return Pipeline([(name, _opened(step)) for name, step in estimator.steps])
    return getattr(estimator, "best_estimator_", estimator) if is_private(estimator) else estimator


def _words(steps, words):
    """Return the words of the model's columns, from `words` of the first step's, if it takes counts."""
    for name, step in steps:
        if hasattr(step, "build_analyzer") or type(step) is DictVectorizer:
            if words is not None:
                raise ValueError(f"feature_names must be None: {name!r} names the columns.")
            words = step.get_feature_names_out() if hasattr(step, "get_feature_names_out") else None
        elif hasattr(step, "feature_names_in_"):
            if words is not None and list(words) != step.feature_names_in_.tolist():
                raise ValueError(f"feature_names must be those that {name!r} was fitted with, or None.")
            words = step.feature_names_in_
        if selects(step) and words is not None:
            words = step.get_feature_names_out(words)
    if words is None:
        raise ValueError(
            "the columns have no names: pass feature_names, the words of the columns that the first step takes. They"
            " must be public or privately selected."
        )
    return [str(word) for word in words]


def _text_settings(steps):
    """Return the settings of the vectorizer as JSON can hold them, or None for a pipeline that takes counts."""
    (name, vectorizer), *others = steps
    if not hasattr(vectorizer, "build_analyzer"):
        return None
    strange = [other for other, step in others[:-1] if not selects(step)]
    if not (isinstance(vectorizer, CountVectorizer) or is_private(vectorizer)):
        strange.append(name)
    if strange:
        raise ValueError(
            f"{', '.join(map(repr, strange))} cannot be saved for raw texts. Pass raw_text=False: the released model"
            " then takes counts. Or count words by CountVectorizer alone (binary=True for presence)."
        )
    own = vectorizer._text_settings() if isinstance(vectorizer, DPCountVectorizer) else vars(vectorizer)
    settings = {}
    for setting in TEXT_SETTINGS + ("preprocessor", "tokenizer"):
        value = own[setting]
        if setting == "tokenizer" and callable(value):
            settings |= {"tokenizer": True, "token_pattern": None}  # which one, a file does not tell a reader to run
        elif callable(value):
            raise ValueError(
                f"{setting} of {name!r} is a function, which cannot be saved without pickle. Say it by tokenizer,"
                " token_pattern, stop_words and the like, or pass raw_text=False: the released model then takes counts,"
                " and you publish how texts are cut."
            )
        elif setting in TEXT_SETTINGS:
            settings[setting] = _json_value(value)
    return settings


def _parameters(model):
    """Return the hyper-parameters that the model was fitted with and that are plain values."""
    plain = (str, Real, type(None), np.bool_)
    values = {name: fitted_parameter(model, name) for name in model.get_params(deep=False)}
    return {name: _json_value(v) for name, v in values.items() if name not in UNSAVED and isinstance(v, plain)}


def _json_value(value):
    """Return the same value of a type that JSON knows."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_json_value(item) for item in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else str(float(value))
    return value
