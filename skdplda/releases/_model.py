"""A topic model that holds nothing but what may be published."""

import codecs
import json
import re
from collections import Counter
from dataclasses import fields
from datetime import date
from typing import Any, Literal, Self

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from skdplda._arithmetic import total
from skdplda._checks import check_prior, is_integer, kind_of
from skdplda._files import refuse_existing, whole_file
from skdplda._texts import check_texts, holds_texts
from skdplda._types import ArrayLike, Function, PathLike, Sequence
from skdplda._validation import HIDDEN
from skdplda.models import BaseTopicModel
from skdplda.privacy import PrivacyAccountant, PrivacyGuarantee, check_compatible, round_up
from skdplda.releases import _card, _file

SPACES = "\t\n\r\u2028\u2029"  # stand in n-grams of characters; cards and commands show a space
LONGEST_NGRAM = 20  # that a file may have: longer ones would only take memory
CODE = r"\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}"  # of a character
LETTER = rf"(?:[^\W_]|[_\-'’@#&/:;,=]|\\[wWdDsS.\-+*]|{CODE}|\[\^?(?:\\[wWdDsS\-.\]\[^\\+*]|{CODE}|[^\[\]\\])+\])"
REPEAT = r"(?:[+*]|\{\d{1,3}(?:,\d{0,3})?\})"
WORD = rf"(?:\\b(?:{LETTER})*{LETTER}{REPEAT}?\\b|(?:\\b)?(?:{LETTER})*{LETTER}{REPEAT}?)"
QUICK_PATTERN = re.compile(rf"(?:\(\?[ui]+\))?{WORD}(?:\|{WORD})?")


class ReleasedTopicModel(BaseTopicModel):
    """Topics, their words and their privacy guarantee; a model that is safe to publish.

    Made by `release` and `load_released`. It cannot be trained: `fit` changes nothing and `clone` returns the model
    itself, so that it may stand in a pipeline before a classifier. Where a method takes `X`, that is raw texts (if the
    model was released with its text settings) or word counts.

    Parameters
    ----------
    topic_word : array-like of shape (n_components, n_words)
        Topic-word distributions; rows sum to 1.
    vocabulary : sequence of str of shape (n_words,) or None, default=None
        The words, in the order of the columns.
    privacy_guarantee : PrivacyGuarantee
        What covers these values.
    doc_topic_prior : float or array-like of shape (n_components,), default=0.1
        Dirichlet prior of topic proportions.
    text : dict or None, default=None
        Parameters of :class:`~sklearn.feature_extraction.text.CountVectorizer` that cut a text into words. None: the
        model takes counts only. A `token_pattern` must be of a form that takes time proportional to the text. Its
        "tokenizer" is True where texts are cut by a function, which is `tokenizer`.
    details : dict or None, default=None
        Where the topics come from, for the model card: "estimator", "parameters". Like all text of a model, without
        control characters.
    n_jobs : int or None, default=None
        Threads, as in joblib. Not saved.
    topic_sizes : array-like of shape (n_components,) or None, default=None
        Share of each topic in the released counts.
    topic_names : sequence of str of shape (n_components,) or None, default=None
        None: "topic_0", "topic_1", ...
    signal_to_noise : array-like of shape (n_components, n_words) or None, default=None
        How far each word stands out in each topic, in standard deviations of the noise. None: not known.
    tokenizer : callable or None, default=None
        Cuts texts, where the model was fitted with such a function; the same one. Not saved. None: texts are refused.

    Attributes
    ----------
    topic_word_, topic_sizes_, signal_to_noise_, vocabulary_, details_
        As given, read-only.
    topic_names_ : ndarray of str of shape (n_components,)
        See `rename_topics`.
    privacy_guarantee_ : PrivacyGuarantee
        Print it for a statement to publish.
    n_features_in_ : int
        Number of words.

    Raises
    ------
    ValueError
        If arrays, words or texts' settings do not fit each other, or are not as described.

    See Also
    --------
    release : Makes one from a fitted pipeline.
    load_released : Reads one from a file.

    Examples
    --------
    >>> from skdplda import PrivacyGuarantee
    >>> from skdplda.releases import ReleasedTopicModel
    >>> topics, words = [[0.6, 0.4, 0.0], [0.0, 0.1, 0.9]], ["pear", "plum", "zinc"]
    >>> model = ReleasedTopicModel(topics, words, privacy_guarantee=PrivacyGuarantee(epsilon=1.0), text={})
    >>> model.transform(["Zinc, and more zinc!"]).argmax()
    np.int64(1)
    >>> model.top_words(2).to_numpy().tolist()
    [['pear', 'plum'], ['zinc', 'plum']]
    """

    def __init__(
        self,
        topic_word: ArrayLike,
        vocabulary: Sequence[str] | None = None,
        *,
        privacy_guarantee: PrivacyGuarantee,
        doc_topic_prior: ArrayLike = 0.1,
        text: dict[str, Any] | None = None,
        details: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        topic_sizes: ArrayLike | None = None,
        topic_names: Sequence[str] | None = None,
        signal_to_noise: ArrayLike | None = None,
        tokenizer: Function | None = None,
    ) -> None:
        topic_word = np.array(topic_word, dtype=np.float64, order="C")
        if topic_word.ndim != 2 or 0 in topic_word.shape:
            raise ValueError(f"topic_word must have shape (n_components, n_words); got {topic_word.shape}.")
        if not (topic_word >= 0).all() or not np.allclose(topic_word.sum(axis=1), 1):
            raise ValueError("topic_word must hold probabilities whose rows sum to 1; got others.")
        if not isinstance(privacy_guarantee, PrivacyGuarantee):
            raise TypeError(f"privacy_guarantee must be a PrivacyGuarantee; got {privacy_guarantee!r}.")
        n_components, self.n_features_in_ = topic_word.shape
        self.topic_word_ = _read_only(topic_word)
        self.vocabulary_ = _check_words(vocabulary, self.n_features_in_)
        self.privacy_guarantee_ = privacy_guarantee
        self.doc_topic_prior_ = _read_only(check_prior("doc_topic_prior", doc_topic_prior, 0.1, n_components))
        self.text_ = None if text is None else _check_text(text, self.vocabulary_)
        if not (details is None or isinstance(details, dict)):
            raise ValueError(f"details must be a dict or None; got {kind_of(details)}.")
        for name, kind in {"parameters": dict, "ledger": list}.items():
            if details and not isinstance(details.get(name, kind()), kind):
                raise ValueError(f"details must have a {kind.__name__} of {name}; got {details[name]!r}.")
        self.details_ = dict(details or {})
        _check_clean(self.details_, "details")
        _check_clean([getattr(privacy_guarantee, field.name) for field in fields(privacy_guarantee)], "guarantee")
        self.n_jobs = n_jobs
        self.tokenizer = self._check_tokenizer(tokenizer)
        self.topic_sizes_ = None if topic_sizes is None else _check_sizes(topic_sizes, n_components)
        self.signal_to_noise_ = None if signal_to_noise is None else _check_signal(signal_to_noise, topic_word.shape)
        if topic_names is not None:
            self.topic_names_ = self._new_names(list(topic_names))

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Do nothing: the topics are what was released.

        Parameters
        ----------
        X : object
            Ignored.
        y : None
            Ignored.

        Returns
        -------
        self : ReleasedTopicModel
            As it was.
        """
        return self

    def make_vectorizer(self) -> CountVectorizer:
        """Make the vectorizer that raw texts go through.

        Returns
        -------
        vectorizer : CountVectorizer
            With the released words as its vocabulary; it needs no `fit`.

        Raises
        ------
        ValueError
            If the model was released without text settings, or lacks its tokenizer.
        """
        if self.text_ is None:
            raise ValueError(
                f"this model was released without text settings: pass counts of its {self.n_features_in_} words, in"
                " the order of vocabulary_."
            )
        if "tokenizer" in self.text_ and self.tokenizer is None:
            raise ValueError(
                "this model cuts texts by a function, which is not in its file: give load_released(path, tokenizer=...)"
                " the one that its publisher names, or pass counts."
            )
        return CountVectorizer(**self.text_ | {"tokenizer": self.tokenizer}, vocabulary=self.vocabulary_.tolist())

    def _check_tokenizer(self, tokenizer):
        """Return the function; refuse one that is not wanted, or that makes no released word of any of them."""
        if tokenizer is None:
            return None
        if not callable(tokenizer) or not self.text_ or "tokenizer" not in self.text_:
            raise ValueError(
                f"tokenizer must be a function, of a model that was released with one; got {tokenizer!r:.60}."
            )
        words = {part for word in self.vocabulary_ for part in word.split(" ")}
        if not any(word in tokenizer(word) for word in words):
            raise ValueError(
                f"tokenizer must be the function with which the model was fitted; got {tokenizer!r:.60}, which makes a"
                " released word of none of them."
            )
        return tokenizer

    @property
    def id2word(self) -> Any:
        """The words as a gensim dictionary, by the name under which gensim's `CoherenceModel` looks for it."""
        from skdplda.metrics import gensim_dictionary

        if self.vocabulary_ is None:
            raise AttributeError("this model was released without words")
        return gensim_dictionary(self.vocabulary_.tolist())

    def save(self, path: PathLike, *, card: bool = True, overwrite: bool = False) -> None:
        """Write the model to one file, and its card beside it.

        The file is a zip archive of a JSON header, an array and a SHA-256 checksum. Equal models give equal bytes.

        Parameters
        ----------
        path : str or path-like
            The file.
        card : bool, default=True
            Whether to write the model card, as Markdown and as JSON: for "topics.zip", "topics.card.md" and
            "topics.card.json".
        overwrite : bool, default=False
            Whether to replace what is there.

        Raises
        ------
        FileExistsError
            If the file or a card is there already.
        """
        cards = {_card.path_of(path, suffix): text for suffix, text in self._cards().items()} if card else {}
        if not overwrite:
            refuse_existing(path, *cards)
        with whole_file(path) as file:
            file.write(self._content())
        for place, text in cards.items():
            with whole_file(place) as file:
                file.write(text.encode(errors="replace"))  # a word may be half a character

    def describe(self, *, ledger: PrivacyAccountant | None = None, **facts: str) -> Self:
        """Add what the card is to say beside the values: post-processing, and public like them.

        Parameters
        ----------
        ledger : PrivacyAccountant or None, default=None
            Of the data that the model was fitted on: the card lists what was released of them until now.
        **facts : str
            "label", "owner", "date" (as "2030-01-31"), "purpose" and "region".

        Returns
        -------
        self : ReleasedTopicModel
            The model itself.

        Raises
        ------
        ValueError
            If there is no such fact, one has control characters, or the ledger is of another privacy unit.
        """
        unknown = sorted(set(facts) - set(_card.FACTS))
        if unknown or not all(isinstance(fact, str) and fact.strip() for fact in facts.values()):
            raise ValueError(f"facts must be str, named {', '.join(_card.FACTS)}; got {unknown or facts}.")
        if "date" in facts:
            try:
                date.fromisoformat(facts["date"])
            except ValueError:
                raise ValueError(f"date must be a day, YYYY-MM-DD; got {facts['date']!r}.") from None
        told: dict[str, Any] = dict(facts)
        if ledger is not None:
            check_compatible(self.privacy_guarantee_, ledger)
            entries = [
                f"{(e.date or 'undated')[:10]}: {e.label or 'no label'}; {e.guarantee.caption}" for e in ledger.ledger
            ]
            budget = f"epsilon = {round_up(ledger.epsilon)}, delta = {round_up(ledger.delta)}"
            told["ledger"] = [*entries, f"the budget that all of these keep together: {budget} per {ledger.unit}"]
        _check_clean(told, "facts")
        self.details_ |= told
        return self

    def card(self, form: Literal["markdown", "json", "registry"] = "markdown") -> str:
        """Write the model card: the guarantee, the topics, how to load them, what is not protected.

        Parameters
        ----------
        form : {"markdown", "json", "registry"}, default="markdown"
            Of the text. "registry" is an entry for the Differential Privacy Deployments Registry [1]_, as JSON, which
            is YAML, too; it needs all facts of `describe`.

        Returns
        -------
        text : str
            It says nothing that the saved file does not.

        Raises
        ------
        ValueError
            If `form` is another, or there are no facts, or no proven guarantee, for a registry.

        References
        ----------
        .. [1] P. Nanayakkara, E. Ghazi, S. Vadhan, "Practitioners' perspectives on a differential privacy deployment
           registry", arXiv:2509.13509, 2025.
        """
        forms = {"markdown": ".card.md", "json": ".card.json", "registry": ""}
        if form not in forms:
            raise ValueError(f"form must be one of {tuple(forms)}; got {form!r}.")
        return _card.registry_entry(self) if form == "registry" else self._cards()[forms[form]]

    def _content(self):
        return _file.pack(self._values(), self._arrays())

    def _cards(self):
        return _card.cards(self, _file.checksum(self._values(), self._arrays()))

    def _arrays(self):
        """Return the arrays of the file by name; those of None are left out."""
        return {"topic_word": self.topic_word_, "signal_to_noise": self.signal_to_noise_}

    def _values(self):
        """Return all values but the topics, as JSON can hold them."""
        return {
            "vocabulary": None if self.vocabulary_ is None else self.vocabulary_.tolist(),
            "doc_topic_prior": self.doc_topic_prior_.tolist(),
            "topic_names": self.get_feature_names_out().tolist(),
            "topic_sizes": None if self.topic_sizes_ is None else self.topic_sizes_.tolist(),
            "text": self.text_,
            "details": self.details_,
            "privacy_guarantee": json.loads(self.privacy_guarantee_.to_json()),
        }

    def _takes(self):
        """Return what `transform` takes, for the card."""
        return ["counts"] if self.text_ is None else ["texts", "counts"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what can still be set.

        Parameters
        ----------
        deep : bool, default=True
            Ignored.

        Returns
        -------
        params : dict
            `n_jobs`.
        """
        return {"n_jobs": self.n_jobs}

    def _doc_topic_prior(self):
        return self.doc_topic_prior_

    def _vocabulary(self):
        return self.vocabulary_

    def _topic_sizes(self):
        return self.topic_sizes_

    def _new_names(self, names):
        _check_clean(list(names.values() if isinstance(names, dict) else names), "names")
        return super()._new_names(names)

    def _merged(self, tables):
        return ReleasedTopicModel(
            tables["components_"] / total(tables["components_"], axis=1, keepdims=True),
            self.vocabulary_,
            privacy_guarantee=self.privacy_guarantee_,
            doc_topic_prior=tables["merged_prior_"],
            text=self.text_,
            details=self.details_,
            n_jobs=self.n_jobs,
            topic_sizes=None if self.topic_sizes_ is None else total(tables["components_"], axis=1),
            topic_names=tables["topic_names_"],
            signal_to_noise=tables["signal_to_noise_"],
            tokenizer=self.tokenizer,
        )

    def _counts(self, X):
        if isinstance(X, (str, bytes)):
            raise ValueError("X must be a list of texts, or counts; got one text. Put it into a list.")
        if len(getattr(X, "shape", ())) == 2 and not holds_texts(X):
            X = self._check_columns(X)
        else:
            X = X if hasattr(X, "__len__") else list(X)
            if len(getattr(X, "shape", ())) == 2 or any(isinstance(text, (str, bytes)) for text in X):
                X = self.make_vectorizer().transform(check_texts(X, "X"))
        return super()._counts(X)

    def _check_columns(self, X):
        """Return the values of a data frame whose columns are the words, and anything else as it is."""
        if not hasattr(X, "columns"):
            return X
        names, words = list(X.columns), self.vocabulary_
        if words is not None and all(isinstance(name, str) for name in names) and names != words.tolist():
            raise ValueError(
                f"the columns of X must be the {len(words)} released words, in the order of vocabulary_; got others."
            )
        return X.to_numpy()

    def __sklearn_clone__(self):
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = self.text_ is not None
        return tags

    def __repr__(self, **options):
        n_components, n_words = self.topic_word_.shape
        return f"ReleasedTopicModel({n_components} topics, {n_words} words, {self.privacy_guarantee_!r})"


def _read_only(array):
    array.flags.writeable = False
    return array


def _check_sizes(sizes, n_components):
    sizes = np.array(sizes, dtype=np.float64)
    if sizes.shape != (n_components,) or not (sizes >= 0).all() or not np.isclose(sizes.sum(), 1):
        raise ValueError(f"topic_sizes must be {n_components} shares whose sum is 1; got others.")
    return _read_only(sizes)


def _check_signal(signal, shape):
    signal = np.array(signal, dtype=np.float32, order="C")
    if signal.shape != shape or not np.isfinite(signal).all():
        raise ValueError(f"signal_to_noise must be finite and of shape {shape}, that of topic_word; got another.")
    return _read_only(signal)


def _check_clean(value, name, allowed=""):
    """Refuse strings, at any depth, with characters that command a terminal or turn the order of what is read."""
    if isinstance(value, str):
        found = HIDDEN.search(value.translate(dict.fromkeys(map(ord, allowed))))
        if found:
            raise ValueError(
                f"{name} must hold no control characters; got U+{ord(found[0]):04X}. Text of a model is shown in"
                " terminals and on pages."
            )
    elif isinstance(value, dict):
        _check_clean(list(value.items()), name, allowed)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check_clean(item, name, allowed)


def _check_words(vocabulary, n_words):
    if vocabulary is None:
        return None
    words = [vocabulary] if isinstance(vocabulary, str) else list(vocabulary)
    if len(words) != n_words or not all(isinstance(word, str) for word in words):
        raise ValueError(f"vocabulary must be {n_words} str, one a column of topic_word; got {len(words)} entries.")
    _check_clean(words, "vocabulary", SPACES)
    if len(set(words)) < n_words:
        twice = sorted(word for word, count in Counter(words).items() if count > 1)
        raise ValueError(f"vocabulary must hold distinct words; got {twice[:3]} more than once.")
    return _read_only(np.array([str(word) for word in words], dtype=object))


def _check_text(text, words):
    if not isinstance(text, dict):
        raise ValueError(f"text must be a dict of settings, or None; got {kind_of(text)}.")
    if words is None:
        raise ValueError("text settings need a vocabulary: without one, no text can be counted.")
    unknown = set(text) - set(SETTINGS)
    if unknown:
        raise ValueError(f"text must have keys among {TEXT_SETTINGS}; got {sorted(unknown)}.")
    for name, value in text.items():
        is_allowed, allowed = SETTINGS[name]
        if not is_allowed(value):
            raise ValueError(f"text: {name} must be {allowed}; got {value!r:.60}.")
        _check_clean(value, f"text: {name}", SPACES)
    return {name: tuple(value) if name == "ngram_range" else value for name, value in text.items()}


def _is_encoding(value):
    try:
        return isinstance(value, str) and codecs.lookup(value) is not None
    except (LookupError, ValueError):
        return False


def _is_quick_pattern(value):
    """Whether a pattern is of a form that reads a text of n letters in a number of steps proportional to n.

    Python's `re` goes back and tries again, and takes time exponential in a word's length for patterns such as
    `(a+)+b`. The form here is single letters and classes of letters, of which the last alone may repeat. A repeat at
    the end never has to give back a letter; where a word boundary follows, one must stand before the pattern too, and
    then a run of letters is tried once only, for no boundary lies within the part that did not match.
    One other such pattern may follow, after "|": it is tried once more at each place.
    """
    found = isinstance(value, str) and len(value) <= 200 and QUICK_PATTERN.fullmatch(value)
    try:
        return bool(found) and re.compile(value) is not None
    except re.error:
        return False


def _is_one_of(*values):
    return lambda value: any(value is option or (isinstance(value, str) and value == option) for option in values)


def _is_range(value):
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and all(map(is_integer, value))
        and (1 <= value[0] <= value[1] <= LONGEST_NGRAM)
    )


def _are_stop_words(value):
    words = isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value)
    return words or _is_one_of(None, "english")(value)


_YES = _is_one_of(True, False), "True or False"
SETTINGS = {  # what is allowed, and how an error says so
    "encoding": (_is_encoding, "the name of an encoding"),
    "decode_error": (_is_one_of("strict", "ignore", "replace"), "'strict', 'ignore' or 'replace'"),
    "strip_accents": (_is_one_of(None, "ascii", "unicode"), "None, 'ascii' or 'unicode'"),
    "lowercase": _YES,
    "stop_words": (_are_stop_words, "None, 'english' or a list of words"),
    "token_pattern": (
        lambda value: value is None or _is_quick_pattern(value),
        r"like (?u)\b\w\w+\b: letters and classes of which the last alone may repeat, with \b at both ends or none at"
        " the end, or two of these with | between; others can take years on one word. Pass raw_text=False to release"
        " without text settings",
    ),
    "ngram_range": (_is_range, f"two integers from 1 to {LONGEST_NGRAM}, rising"),
    "analyzer": (_is_one_of("word", "char", "char_wb"), "'word', 'char' or 'char_wb'"),
    "binary": _YES,
    "tokenizer": (_is_one_of(True), "True, or left out"),
}
# What CountVectorizer needs, beside the words, to cut a text as before.
TEXT_SETTINGS = tuple(name for name in SETTINGS if name != "tokenizer")
