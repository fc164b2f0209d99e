"""The guarantee of a whole pipeline: its private steps are composed, and every other step is checked.

Each kind of step has one handler, which either notes what the step adds or refuses the pipeline with the reason.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer

from skdplda._checks import is_integer
from skdplda._types import Estimator
from skdplda._validation import check_public_words, fitted_parameter, noted_groups
from skdplda.exceptions import IncompatibleGuaranteeError
from skdplda.privacy import PrivacyGuarantee, believed_guarantee, doubted, is_covered, is_guessable_seed
from skdplda.semantics import SemanticUnitVectorizer

VECTORIZERS = (CountVectorizer, HashingVectorizer)
# What a step leaves open about its columns begins with one of these. A pipeline that names the columns answers it.
ABOUT_COLUMNS = ("the vocabulary", "number, names and positions of the input's columns")
HOLDS_WORDS = (
    "the fitted pipeline as an object: its vectorizer holds every word of the documents, its selector their number and"
    " places; publish what skdplda.release makes of it"
)
UNKNOWN_WORDS = (
    "a word in the place of one that is not in the vocabulary (stop words, for instance), or the other way round: the"
    " number of tokens tells. What is protected is a word of the vocabulary in the place of another"
)
LEARNS_WORDS = (
    "its vocabulary is every word of the documents. Give it public words as vocabulary, or have it followed at once by"
    " a private selector such as DPVocabularySelector"
)
REASONS = {
    SemanticUnitVectorizer: "its vocabulary is every word of the documents. Give it public words as vocabulary",
    TfidfTransformer: "its weights are made of the document frequencies of all documents, and a topic model counts"
    " words. Leave it out",
    TfidfVectorizer: "its weights are made of the document frequencies of all documents, and a topic model counts"
    " words. Use CountVectorizer",
    FunctionTransformer: "nothing says that its function treats each document on its own. Apply it to the documents"
    " before the pipeline, or give it to the vectorizer as preprocessor",
}
UNKNOWN = (
    "it is not private, and nothing says that it treats each document on its own and learns nothing. Leave it out, do"
    " what it does to each document before the pipeline, or take a step that has privacy_cost(groups=...)"
)
SIDE_BY_SIDE = (
    "it fits private steps side by side ({}), and their joint guarantee is not computed here. Put them one after"
    " the other in a pipeline, or compose what privacy_guarantee says of each by PrivacyGuarantee.compose"
)
LEARNED = (
    "{!r} ({}) learns its words in the same fit as the selector after it, and has there the settings that it has now,"
    " which {}"
)
UNSORTED = (
    "sort=False puts words into the order in which documents use them first, and that order would be released. Set"
    " sort=True"
)
NUMBERS_COLUMNS = (
    "public_vocabulary names columns by number, and which words these are depends on the documents. Give the words to"
    " the vectorizer, as its vocabulary"
)
FOREIGN = "{!r} ({}) is not of this package, and nothing here proves what it says of itself (see trusted)"


def privacy_guarantee(
    estimator: Estimator, *, groups: bool = False, trusted: tuple[type, ...] = ()
) -> PrivacyGuarantee:
    """Compute the guarantee of a pipeline as a whole.

    The private steps (those with `privacy_cost`) are composed: accounted jointly where their events allow it, by
    Theorem 4.1 of [1]_ otherwise. Everything else must act on each document alone and learn nothing, so that a
    document more in the texts is a document more for each private step. A vectorizer that learns its words is
    accepted right before a private selector: each document's row then is its own, and only selected words leave.

    Parameters
    ----------
    estimator : Pipeline or private estimator
        Fitted or not; pipelines may be nested.
    groups : bool, default=False
        Whether `fit` will be given groups. Only needed before the fit, and not where a `PrivatePipeline` was made for
        them.
    trusted : tuple of type, default=()
        Classes outside of this package whose guarantees you take for proven. Those of other classes, subclasses
        included, are claimed, unless the loop itself bounds what their documents add: see
        `skdplda.models.BaseRoundsModel`.

    Returns
    -------
    guarantee : PrivacyGuarantee
        Before the fit the one that a fit would give, by the parameters. After it the one of that fit, whatever the
        parameters are now; claimed, where it is not known what the steps were fitted with. What the steps leave
        open and the pipeline answers, such as whether the vocabulary is public, is among the assumptions or the
        released values.

    Raises
    ------
    ValueError
        If a step learns from the documents without a guarantee, a public vocabulary has entries that its vectorizer
        finds in no text, no step is private, some of the private steps are fitted and some not, or two share a
        `random_state`.
    IncompatibleGuaranteeError
        If the private steps differ in unit, adjacency or trust model, or were fitted in this process with different
        groups.

    References
    ----------
    .. [1] N. Manzonelli, W. Zhang, S. Vadhan (2024). Membership inference attacks and privacy in topic modeling.
       Algorithm 1, Theorem 4.1.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdplda import PrivateCGSLDA, privacy_guarantee
    >>> privacy_guarantee(make_pipeline(CountVectorizer(vocabulary=["pear", "plum"]), PrivateCGSLDA(2)))
    PrivacyGuarantee(epsilon=5, delta=1e-5, document, add-remove, central, proven)
    >>> privacy_guarantee(make_pipeline(CountVectorizer(max_features=2), PrivateCGSLDA(2)))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: step 'countvectorizer' (CountVectorizer) voids the guarantee: max_features=2 ...
    """
    if isinstance(estimator, type):
        raise TypeError(
            f"estimator must be an instance; got the class {estimator.__name__}: write {estimator.__name__}()."
        )
    steps = flat_steps(estimator)
    known = Known(_is_fitted(estimator, steps), groups or _wants_groups(estimator), trusted)
    for name, step in steps:
        if known.learner is not None and not (selects(step) or type(step) is Binarizer):
            raise _void(*known.learner, LEARNS_WORDS)
        _check_vocabulary(name, step)
        known.assumptions += _text_assumptions(name, step)
        handler = _read_private if is_private(step) else HANDLERS.get(type(step), _refuse)
        handler(known, name, step)
    if known.learner is not None:
        raise _void(*known.learner, LEARNS_WORDS)
    return _total(known, steps)


@dataclass
class Known:
    """What is known of a pipeline after the steps that have been read."""

    fitted: bool
    groups: bool
    trusted: tuple[type, ...]
    names_columns: bool = False  # whether public or selected words are the columns; else their origin is unknown
    learner: tuple[str, Estimator] | None = None  # a vectorizer that learned all words and awaits a private selector
    parts: dict[str, PrivacyGuarantee] = field(default_factory=dict)
    shared: list[PrivacyGuarantee | None] = field(default_factory=list)  # that several steps have together
    assumptions: list[str] = field(default_factory=list)
    not_covered: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)  # reasons for which the total is only claimed


def _read_private(known, name, step):
    """Take the guarantee of a private step, and what the pipeline knows of its columns."""
    guarantee = step.privacy_guarantee_ if known.fitted else cost_of(step, known.groups)
    if not is_covered(step):
        guarantee = believed_guarantee(guarantee)  # what the step says of its class is said here, unless it is trusted
    if not (is_covered(step) or type(step) in known.trusted):
        known.doubts.append(FOREIGN.format(name, type(step).__name__))
    shared = getattr(step, "_shared_guarantee", None)  # of a search, which covers all steps of its best pipeline
    if shared is None or shared is not guarantee or not any(shared is other for other in known.shared):
        known.parts[name] = _answered(guarantee) if known.names_columns else guarantee
        known.shared.append(shared)
    if known.learner is not None:
        if fitted_parameter(step, "public_vocabulary") is not None:
            raise _void(name, step, NUMBERS_COLUMNS)
        known.not_covered.append(HOLDS_WORDS)
        known.learner = None
    known.names_columns = known.names_columns or hasattr(step, "build_analyzer")


def _read_count_vectorizer(known, name, step):
    """Accept public words, or all words of the documents where a private selector follows."""
    known.names_columns = True
    if step.vocabulary is None:
        limits = ", ".join(f"{limit}={getattr(step, limit)!r}" for limit in _unlimited(name, step))
        _read_learner(known, name, step, f"leave no word out: {limits}")
    elif known.fitted:
        _check_given(name, step)


def _read_dict_vectorizer(known, name, step):
    """Accept all names that the documents have, in the order of the alphabet, where a private selector follows."""
    if not step.sort:
        raise _void(name, step, UNSORTED)
    known.names_columns = True
    _read_learner(known, name, step, "sort its words: sort=True")


def _read_learner(known, name, step, settings):
    """Note a vectorizer that learns all words, and what is assumed of its fit: it keeps no record of its settings."""
    known.learner = name, step
    known.assumptions.append(LEARNED.format(name, type(step).__name__, settings))


def _read_public_columns(known, name, step):
    """Accept public words, or columns that are numbers of hashes."""
    if type(step) is SemanticUnitVectorizer and fitted_parameter(step, "vocabulary") is None:
        _refuse(known, name, step)
    known.names_columns = True


def _read_binarizer(known, name, step):
    """Accept it: each row is made of its own row, and columns stay."""


def _refuse(known, name, step):
    raise _void(name, step, next((reason for kind, reason in REASONS.items() if isinstance(step, kind)), UNKNOWN))


HANDLERS = {  # by exact class: a subclass may do anything
    CountVectorizer: _read_count_vectorizer,
    DictVectorizer: _read_dict_vectorizer,
    HashingVectorizer: _read_public_columns,
    SemanticUnitVectorizer: _read_public_columns,
    Binarizer: _read_binarizer,
}


def _is_fitted(estimator, steps):
    """Whether the private steps are fitted; refuse steps that cannot be composed, whatever is between them."""
    private = {name: step for name, step in steps if is_private(step)}
    _check_groups_of(private)
    for name, step in steps:
        if inner := _private_inside(step):
            raise _void(name, step, SIDE_BY_SIDE.format(", ".join(map(repr, inner))))
    inner = getattr(estimator, "estimator", None)  # of a search, or of what else fits clones
    if not private and any(is_private(step) for _, step in flat_steps(inner, "estimator")):
        raise ValueError(
            f"{type(estimator).__name__} has no guarantee: it fits clones of a private estimator to the same documents,"
            " and each of these fits costs its epsilon. Use PrivateSearchCV, or ask for the guarantee of the one"
            " estimator that you fit and release."
        )
    if not private:
        raise ValueError(
            f"{type(estimator).__name__} has no guarantee: none of its steps is private. Take a model such as"
            " PrivateCGSLDA."
        )
    fitted = [name for name, step in private.items() if hasattr(step, "privacy_guarantee_")]
    if fitted and len(fitted) < len(private):
        missing = [name for name in private if name not in fitted]
        raise ValueError(f"of the private steps {fitted} are fitted and {missing} are not: fit the whole pipeline.")
    _check_seeds(private)
    return bool(fitted)


def _check_groups_of(private):
    """Refuse steps that were fitted with different users, where this process knows it."""
    noted = {name: noted_groups(step) for name, step in private.items()}
    (first, users), *others = [(name, users) for name, users in noted.items() if users is not None] or [(None, None)]
    for name, other in others:
        if other != users:
            raise IncompatibleGuaranteeError(
                f"the private steps do not protect the same thing: {first!r} and {name!r} were fitted with different"
                " groups, so that neither protects the users of the other. Fit the whole pipeline again with one array"
                " for all steps; skdplda.releases.PrivatePipeline takes fit(texts, groups=users)."
            )


def _total(known, steps):
    """Compose the private steps and add what the other steps assume, leave open or put in doubt."""
    total = _compose(known.parts)
    assumptions, not_covered = list(known.assumptions), list(known.not_covered)
    if (total.unit, total.adjacency) == ("token", "replace"):
        _check_cuts(steps)
        not_covered += [UNKNOWN_WORDS] if any(type(step) in VECTORIZERS for _, step in steps) else []
    if total.unit == "user" and len(known.parts) > 1:
        assumptions.append(f"the steps {' and '.join(map(repr, known.parts))} were given the same groups")
    if known.doubts:
        total = doubted(total, *known.doubts)
    return replace(
        total,
        assumptions=tuple(dict.fromkeys((*total.assumptions, *assumptions))),
        not_covered=(*total.not_covered, *not_covered),
    )


def flat_steps(estimator: Estimator, name: str | None = None) -> list[tuple[str, Estimator]]:
    """List (name, step) of an estimator, nested pipelines opened, empty steps left out.

    Names are joined by two underscores, as in `get_params`. An estimator that is no pipeline is its own only step, by
    the given name or else its class in small letters.
    """
    if isinstance(estimator, Pipeline):
        prefix = "" if name is None else f"{name}__"
        return [pair for inner, step in estimator.steps for pair in flat_steps(step, prefix + inner)]
    if estimator is None or (isinstance(estimator, str) and estimator == "passthrough"):
        return []
    return [(name or type(estimator).__name__.lower(), estimator)]


def _wants_groups(estimator):
    """Whether a pipeline, or one within it, was made to be given groups."""
    if not isinstance(estimator, Pipeline):
        return False
    return bool(getattr(estimator, "groups", False)) or any(_wants_groups(step) for _, step in estimator.steps)


def is_private(step):
    """Whether a step states a guarantee."""
    return hasattr(step, "privacy_cost")


def cost_of(step, groups):
    """Return the guarantee that a step will give. Some know no groups: their unit is the same with and without."""
    return step.privacy_cost(groups=groups)


def selects(step):
    """Whether a step selects words privately."""
    return is_private(step) and hasattr(step, "get_support")


def _void(name, step, reason):
    return ValueError(f"step {name!r} ({type(step).__name__}) voids the guarantee: {reason}.")


def _check_seeds(private):
    """Refuse two steps whose noise may be the same function of one seed: accounting takes it as independent."""
    seeds = {}
    for name, step in private.items():
        seed = _seed_of(step)
        if seed is not None and seeds.setdefault(seed, name) != name:
            shown = f"={seed}" if is_integer(seed) and is_guessable_seed(seed) else ""
            raise ValueError(
                f"steps {seeds[seed]!r} and {name!r} have the same random_state{shown}, and so the same noise, which"
                " cancels out. Use random_state=None, or another secret for each."
            )


def _seed_of(step):
    """Return what identifies a step's seed; a generator's draws depend on its state and the kind of step."""
    seed = fitted_parameter(step, "random_state")
    if isinstance(seed, np.random.RandomState):
        state = seed.get_state(legacy=False)["state"]
        return type(step), state["key"].tobytes(), state["pos"]
    return int(seed) if is_integer(seed) else seed


def _check_cuts(steps):
    """Refuse steps where one word in the place of another is not one token in the place of another."""
    for name, step in steps:
        if type(step) is Binarizer or fitted_parameter(step, "binary", False):
            raise _void(
                name,
                step,
                "a word that takes the place of another may be there already, and then the number of tokens changes,"
                " which is released. Count words (binary=False, no Binarizer)",
            )
        ngram_range, analyzer = (fitted_parameter(step, setting) for setting in ("ngram_range", "analyzer"))
        if type(step) in VECTORIZERS and (tuple(ngram_range) != (1, 1) or analyzer in ("char", "char_wb")):
            raise _void(
                name,
                step,
                "a word is in several tokens, and the guarantee is for one. Set ngram_range=(1, 1) and analyzer='word'",
            )
        unit, skip_unknown = (fitted_parameter(step, setting) for setting in ("unit", "skip_unknown"))
        if type(step) is SemanticUnitVectorizer and isinstance(unit, Integral) and skip_unknown:
            raise _void(
                name,
                step,
                f"unit={unit!r} counts words of the vocabulary only, so that a word in the place of one that is"
                " not in it moves all words behind it to other units. Set skip_unknown=False",
            )


def _private_inside(step):
    """Return the names of the private steps of a FeatureUnion or ColumnTransformer."""
    branches = getattr(step, "transformer_list", None) or getattr(step, "transformers", None) or ()
    steps = [pair for name, branch, *_ in branches for pair in flat_steps(branch, name)]
    return [name for name, inner in steps if is_private(inner) or _private_inside(inner)]


def _check_given(name, step):
    """Refuse a fitted vectorizer whose words are not those that it was given."""
    words = step.vocabulary
    if not isinstance(words, Mapping):
        words = {word: column for column, word in enumerate(sorted(words) if isinstance(words, set) else words)}
    if not getattr(step, "fixed_vocabulary_", False) or step.vocabulary_ != words:
        raise _void(
            name,
            step,
            "it was not fitted with the words that it now has as its vocabulary. Give it public words before the"
            " fit, and fit the whole pipeline",
        )


def _unlimited(name, step):
    """Return the limits of a vectorizer, none of which leaves out words by counting the documents that use them."""
    least = step.min_df <= 1 if isinstance(step.min_df, Integral) else step.min_df == 0
    most = isinstance(step.max_df, float) and step.max_df >= 1.0  # the integer 1 is one document
    limits = {"min_df": least, "max_df": most, "max_features": step.max_features is None}
    for limit, harmless in limits.items():
        if not harmless:
            raise _void(
                name,
                step,
                f"{limit}={getattr(step, limit)!r} keeps or drops a word for all documents by counting them, so that"
                f" one document changes the rows of others. Leave {limit} at its default and select words privately"
                " (DPVocabularySelector, DPCountVectorizer), or give public words as vocabulary",
            )
    return limits


def _check_vocabulary(name, step):
    """Refuse a public vocabulary with entries that come out of no text: they would be released, and be documents."""
    for setting in ("vocabulary", "public_vocabulary"):
        words = getattr(step, setting, None)
        if words is None or isinstance(words, Iterator) or not hasattr(step, "build_analyzer"):
            continue
        try:
            check_public_words(step, list(words), setting)
        except ValueError as error:
            raise _void(name, step, str(error)) from None


def _text_assumptions(name, step):
    """Return what must hold of the settings of a vectorizer that its user brought along."""
    notes = []
    for setting in ("vocabulary", "public_vocabulary", "stop_words"):
        value = fitted_parameter(step, setting)
        stated = setting == "public_vocabulary" and is_private(step)  # by the step itself
        if value is not None and not isinstance(value, str) and not stated:
            notes.append(f"{setting} of {name!r} was chosen without looking at the documents")
    for setting in ("unit", "preprocessor", "tokenizer", "analyzer", "strip_accents"):
        if callable(fitted_parameter(step, setting)):
            notes.append(f"{setting} of {name!r} treats each document on its own")
    return notes


def _answered(guarantee):
    """Drop what a step leaves open about its columns and the pipeline knows."""
    left = tuple(item for item in guarantee.not_covered if not item.startswith(ABOUT_COLUMNS))
    return replace(guarantee, not_covered=left)


def _compose(parts):
    first, *others = parts.values()
    try:
        return first.compose(*others)
    except IncompatibleGuaranteeError as error:
        found = ", ".join(f"{name!r}: {g.unit}, {g.adjacency}, {g.trust}" for name, g in parts.items())
        raise IncompatibleGuaranteeError(
            f"the private steps do not protect the same thing ({found}): {error}. Give groups to all of them"
            " or to none (skdplda.releases.PrivatePipeline takes them once: fit(texts, groups=users)), and use one"
            " adjacency and one trust model."
        ) from None
