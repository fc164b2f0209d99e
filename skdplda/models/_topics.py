"""What fitted and released models tell of their topics: words, sizes, noise, names. All of it is post-processing."""

import math
from itertools import combinations
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import squareform

from skdplda._arithmetic import log, matmul, mean, total
from skdplda._checks import is_integer
from skdplda._types import ArrayLike, Function
from skdplda._validation import check_is_fitted, copy_of_fitted, fitted_parameter
from skdplda._warnings import warn
from skdplda.exceptions import NoisyTopicsWarning
from skdplda.metrics import topic_distances, topic_relevance
from skdplda.priors import PublicPrior, nearest_words

# Default of `relevance`. The less lift, the better the NPMI of top words at epsilon 2, on 20 Newsgroups, where this was
# chosen, as on news articles: relevance.csv. At 0.8 it is 0.007 to 0.017 below that of probabilities, at 0.6 (Sievert
# and Shirley's choice, without noise) 0.027 to 0.048. Some lift keeps words that all topics share from leading them.
RELEVANCE = 0.8
# A topic below this signal-to-noise ratio holds more noise than topic. The ratio is a mean over all words, which a few
# clear words among many cannot lift, so that a topic also counts where all of so many top words are clear.
NOISE_FLOOR, CLEAR_WORDS = 1.0, 10
NAMING = 10  # words of a topic that its name is made of


class TopicsMixin:
    """Methods of a model that has `topic_word_` when it is fitted; they read released values only."""

    topic_word_: np.ndarray

    def top_words(
        self,
        n_words: int = 10,
        feature_names: ArrayLike | None = None,
        *,
        relevance: float = RELEVANCE,
        mark_noise: bool = False,
    ) -> pd.DataFrame:
        """The most relevant words of each topic; where the noise is known, those that stand out of it come first.

        Parameters
        ----------
        n_words : int, default=10
            Words a topic; all, where the vocabulary has fewer.
        feature_names : array-like of str of shape (n_words,), default=None
            The vocabulary. None: the words that the model knows, else "x0", "x1", ...
        relevance : float from 0 to 1, default=0.8
            Order, from 1, by probability, to 0, by how much more probable than elsewhere (`metrics.topic_relevance`).
        mark_noise : bool, default=False
            Whether words that do not stand out of the noise are put into parentheses.

        Returns
        -------
        words : DataFrame of shape (n_components, n_shown)
            One row a topic, by name; most relevant first, and what may be noise last.

        Raises
        ------
        ValueError
            If `n_words` is below 1, the names do not fit the vocabulary or `relevance` is outside 0..1.
        """
        names, order = self._names_of_words(feature_names), self._top_columns(n_words, relevance)
        words, clear = names[order], self._clear_words()
        if mark_noise and clear is not None:
            rows = np.arange(len(order))[:, None]
            words = np.where(clear[rows, order], words, np.array([f"({name})" for name in names], dtype=object)[order])
        return pd.DataFrame(words, index=pd.Index(self.get_feature_names_out(), dtype=object), dtype=object)

    def topic_info(self, n_words: int = 10, feature_names: ArrayLike | None = None) -> pd.DataFrame:
        """A table of the topics: names, sizes, words, and how far each stands out of the noise.

        Parameters
        ----------
        n_words, feature_names : as in `top_words`

        Returns
        -------
        info : DataFrame of shape (n_components, 5)
            One row a topic, by number: "name"; "size", its share of the released counts; "words", most relevant first;
            "signal_to_noise", by which they stand out of those of all topics, in standard deviations of the noise of
            privacy (not of chance); "noise", whether that is below 1 and its ten top words are not all clear. Missing
            where it is not known.

        Raises
        ------
        ValueError
            If `n_words` is below 1 or the names do not fit the vocabulary.
        """
        check_is_fitted(self)
        top = self.top_words(min(n_words, self.topic_word_.shape[1]), feature_names)
        sizes, signal = self._topic_sizes(), self._topic_signal()
        unknown = np.full(len(top), np.nan)
        noise = self._noise_topics()
        return pd.DataFrame(
            {
                "name": top.index.to_numpy(),
                "size": unknown if sizes is None else sizes,
                "words": top.to_numpy().tolist(),
                "signal_to_noise": unknown if signal is None else signal,
                "noise": pd.array([pd.NA] * len(top) if noise is None else noise, dtype="boolean"),
            },
            index=pd.RangeIndex(len(top), name="topic"),
        )

    def find_topics(
        self, word: str, feature_names: ArrayLike | None = None, *, word_vectors: PublicPrior | None = None
    ) -> pd.DataFrame:
        """The topics of a word: where it stands out of the noise, largest share first, then the others, by its rank.

        Parameters
        ----------
        word : str
            A word of the vocabulary, or one that public vectors know: the nearest of the vocabulary is taken.
        feature_names : as in `top_words`
        word_vectors : PublicPrior or None, default=None
            As by `PublicPrior.from_vectors`. None: those of the model's `prior`; a released model has none.

        Returns
        -------
        topics : DataFrame of shape (n_components, 6)
            One row a topic, by number: "name"; "share" of the word's occurrences; "probability" of the word in the
            topic; "rank" there by relevance, from 1; "noise", whether it does not stand out there; "word", as found.

        Raises
        ------
        ValueError
            If the word is not in the vocabulary, and no vectors say what is near to it.
        """
        names = self._names_of_words(feature_names)
        found = np.flatnonzero(names == word)
        if len(found) != 1:
            found = nearest_words(
                fitted_parameter(self, "prior") if word_vectors is None else word_vectors, word, names
            )
        if len(found) != 1 and feature_names is None and self._vocabulary() is None:
            raise ValueError(
                f"word must be one of the model's words, and it knows none; got {word!r}. Give its {len(names)} words"
                " as feature_names."
            )
        if len(found) != 1:
            near = [name for name in names if isinstance(name, str) and str(word).lower() in name.lower()][:5]
            raise ValueError(
                f"word must be one of the {len(names)} words of the model; got {word!r}."
                + (f" Near: {', '.join(map(repr, near))}." if near else " top_words() has the words of each topic.")
                + " For another word give word_vectors=PublicPrior.from_vectors(...), vectors that know it."
            )
        column, sizes, clear = found[0], self._topic_sizes(), self._clear_words()
        probability = self.topic_word_[:, column]
        mass = probability * (1 if sizes is None else sizes)
        scores = self._relevance(RELEVANCE)
        table = pd.DataFrame(
            {
                "name": self.get_feature_names_out(),
                "share": mass / total(mass) if mass.any() else np.zeros(len(mass)),
                "probability": probability,
                "rank": 1 + (scores > scores[:, [column]]).sum(axis=1),
                "noise": pd.array([pd.NA] * len(mass) if clear is None else ~clear[:, column], dtype="boolean"),
                "word": names[column],
            },
            index=pd.RangeIndex(len(mass), name="topic"),
        )
        table = table.sort_values("share", ascending=False, kind="stable")
        if clear is None:
            return table
        hidden = table[table["noise"]].sort_values("rank", kind="stable")  # of these, shares are noise
        return pd.concat([table[~table["noise"]], hidden])

    def topic_hierarchy(self) -> np.ndarray:
        """Which topics are nearest: a tree, by average linkage of `topic_distances`.

        Returns
        -------
        tree : ndarray of shape (n_components - 1, 4)
            As from :func:`scipy.cluster.hierarchy.linkage`; :func:`scipy.cluster.hierarchy.dendrogram` draws it.
        """
        check_is_fitted(self)
        if self._n_features_out < 2:
            return np.empty((0, 4))
        return linkage(squareform(topic_distances(self), checks=False), "average")

    def rename_topics(self, names: Any) -> Self:
        """Call topics by names, in every table, picture, card and release.

        Parameters
        ----------
        names : dict or sequence of str
            Names by number, or former name, of the topics that get one; or one name for each topic. All must differ.

        Returns
        -------
        model : estimator
            A copy with these names. This model does not change.

        Raises
        ------
        ValueError
            If there is no such topic, two would have one name, or one of a released model has control characters.
        """
        model = copy_of_fitted(self)
        model.topic_names_ = self._new_names(names)
        return model

    def name_topics(self, function: Function | None = None, n_words: int = 10) -> Self:
        """Name each topic by its words, which are released: a name tells nothing that they do not.

        Parameters
        ----------
        function : callable or None, default=None
            Makes a name, a str, of a topic's words, most relevant first. None: the first three, with commas between;
            where another topic has the same, one of the next of its first ten.
        n_words : int, default=10
            Words that the function is given, or all of a smaller vocabulary.

        Returns
        -------
        model : estimator
            A copy with these names; equal ones are followed by the topic's number.

        Raises
        ------
        ValueError
            If `n_words` is below 1, or a name is no str or empty.
        """
        check_is_fitted(self)
        n_words = NAMING if function is None else n_words
        words = self.top_words(min(n_words, self.topic_word_.shape[1])).to_numpy().tolist()
        if function is None:
            words, function = (
                distinct_triples(words),
                lambda row: " ".join(", ".join(map(str, row)).split()),
            )  # no breaks
        names = [function(row) for row in words]
        for alone in (names, ()):  # names that have numbers already may be those of others
            if len(set(names)) < len(names) and all(isinstance(name, str) and name for name in names):
                names = [name if alone.count(name) == 1 else f"{name} ({k})" for k, name in enumerate(names)]
        return self.rename_topics(names)

    def merge_topics(self, groups: Any) -> Self:
        """Make one topic of each group: their mean, weighted by released sizes, with the sum of their priors.

        Parameters
        ----------
        groups : sequence of sequences
            Numbers, or names, of topics that are to be one, with the place and name of the first; each topic once.

        Returns
        -------
        model : estimator
            A copy with fewer topics. This model does not change.

        Raises
        ------
        ValueError
            If there is no such topic, or one is in two groups.
        """
        check_is_fitted(self)
        n_topics = self._n_features_out
        place = np.arange(n_topics)
        seen = set()
        for group in groups:
            if isinstance(group, str) or np.ndim(group) != 1:
                raise ValueError(f"groups must be a sequence of groups of topics, such as [[0, 1]]; got {groups!r}.")
            numbers = [self._number_of(topic, "groups") for topic in group]
            if seen & set(numbers) or len(set(numbers)) < len(numbers):
                raise ValueError(f"groups must name each topic once at most; got {groups!r}.")
            seen |= set(numbers)
            place[numbers] = min(numbers, default=0)
        kept = np.unique(place)
        members, cells, sizes = (place == kept[:, None]).astype(float), self._word_signal(), self._topic_sizes()
        counts = getattr(self, "components_", self.topic_word_ * (1 / n_topics if sizes is None else sizes[:, None]))
        if cells is not None:  # noise of different topics is independent
            cells = (matmul(members, cells) / np.sqrt(members.sum(axis=1, keepdims=True))).astype(np.float32)
        return self._merged(
            {
                "components_": matmul(members, counts),
                "topic_names_": self.get_feature_names_out()[kept],
                "merged_prior_": matmul(members, self._prior_of_topics()),
                "signal_to_noise_": cells,
                "topic_signal_to_noise_": None if cells is None else root_mean_square(cells),
                **self._merged_places(members),
            }
        )

    def reduce_topics(self, n_topics: int) -> Self:
        """Merge the nearest topics, by `topic_hierarchy`, until so many are left.

        Parameters
        ----------
        n_topics : int
            How many topics there are to be, from 1 to those of the model.

        Returns
        -------
        model : estimator
            A copy with as many topics, or fewer where topics are equally near. This model does not change.

        Raises
        ------
        ValueError
            If `n_topics` is another number.
        """
        check_is_fitted(self)
        n = self._n_features_out
        if not is_integer(n_topics) or not 1 <= n_topics <= n:
            raise ValueError(f"n_topics must be an integer from 1 to {n}, the topics of the model; got {n_topics!r}.")
        group = cut_tree(self.topic_hierarchy(), n_topics)[:, 0] if n > 1 else np.zeros(n, int)
        return self.merge_topics([np.flatnonzero(group == g).tolist() for g in range(group.max() + 1)])

    def document_info(self, X: Any) -> pd.DataFrame:
        """A table of documents, for who may see them: the guarantee does not cover it. Do not publish it.

        Parameters
        ----------
        X : as in `transform`

        Returns
        -------
        info : DataFrame of shape (n_documents, 4)
            One row a document, with the index of X: "topic", the number of its largest; "name" and "probability" of
            it; "noise", as in `topic_info`.
        """
        shares = np.asarray(self.transform(X))  # type: ignore[attr-defined]
        topic, noise = shares.argmax(axis=1), self._noise_topics()
        index = getattr(X, "index", None)
        return pd.DataFrame(
            {
                "topic": topic,
                "name": self.get_feature_names_out()[topic],
                "probability": shares[np.arange(len(topic)), topic],
                "noise": pd.array([pd.NA] * len(topic) if noise is None else noise[topic], dtype="boolean"),
            },
            index=index if isinstance(index, pd.Index) else pd.RangeIndex(len(topic), name="document"),
        )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the topics: as they were called, or seeded by a prior, else "topic_0", "topic_1", ...

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of shape (n_components,) of str
        """
        check_is_fitted(self)
        named = getattr(self, "topic_names_", None)
        if named is None:
            named = [f"topic_{topic}" for topic in range(self._n_features_out)]
        return np.array(named, dtype=object)

    @property
    def _n_features_out(self):
        return self.topic_word_.shape[0]

    def _new_names(self, names):
        """Return names of all topics: those that are given, by number or former name, or as they are called."""
        check_is_fitted(self)
        changed = self.get_feature_names_out().tolist()
        n_topics = len(changed)
        if isinstance(names, dict):
            for number, name in [(self._number_of(topic, "names"), name) for topic, name in names.items()]:
                changed[number] = name
        else:
            changed = list(names)
        return checked_names(changed, n_topics)

    def _merged(self, tables):
        """Return a copy with these fitted attributes."""
        model = copy_of_fitted(self)
        for name, value in tables.items():
            vars(model).pop(name, None)
            if value is not None:
                setattr(model, name, value)
        model.topic_word_ = model.components_ / total(model.components_, axis=1, keepdims=True)
        return model

    def _merged_places(self, members):
        """Return what else a model has of topics that are merged; `members` are flags, (n_merged, n_components)."""
        return {}

    def _prior_of_topics(self):
        """Return the prior of topic proportions, of shape (n_components,), that of merged topics included."""
        for name in ("merged_prior_", "doc_topic_prior_"):
            if hasattr(self, name):
                return getattr(self, name)
        given = getattr(self, "_fitted_parameters", None)
        if given is None:
            return self._doc_topic_prior()
        fitted = type(self)(**given)  # parameters can be set at any time
        vars(fitted).update({name: array for name, array in vars(self).items() if name == "components_"})
        return fitted._doc_topic_prior()  # which may be in proportion to released masses

    def _number_of(self, topic, name):
        """Return the number of a topic that is given by number or name."""
        names = self.get_feature_names_out().tolist()
        if isinstance(topic, Integral) and not isinstance(topic, bool) and 0 <= topic < len(names):
            return int(topic)
        if isinstance(topic, str) and topic in names:
            return names.index(topic)
        raise ValueError(
            f"{name} must hold topics, by number, 0 to {len(names) - 1}, or by name; got {topic!r}."
            " topic_info() lists them."
        )

    def _vocabulary(self):
        """Return the words of the columns, or None."""
        return getattr(self, "feature_names_in_", getattr(self, "_words_of_columns", None))

    def _check_words(self):
        """Raise an error unless the model is fitted, and knows words."""
        check_is_fitted(self)

    def _names_of_words(self, feature_names):
        """Return a name for each column, of shape (n_words,)."""
        self._check_words()
        n_words = self.topic_word_.shape[1]
        if feature_names is None:
            feature_names = self._vocabulary()
        if feature_names is None:
            feature_names = [f"x{w}" for w in range(n_words)]
        feature_names = np.asarray(feature_names, dtype=object)
        if feature_names.shape != (n_words,):
            raise ValueError(f"feature_names must name {n_words} words; got shape {feature_names.shape}.")
        return feature_names

    def _relevance(self, weight):
        return topic_relevance(self.topic_word_, weight, self._topic_sizes())

    def _top_columns(self, n, relevance):
        """Return the columns of the most relevant words, what stands out first, (n_components, n); all if fewer."""
        if not is_integer(n) or n < 1:
            raise ValueError(f"n_words must be an integer of at least 1; got {n!r}.")
        order, clear = np.argsort(-self._relevance(relevance), axis=1, kind="stable"), self._clear_words()
        if clear is not None:
            last = ~np.take_along_axis(clear, order, axis=1)
            order = np.take_along_axis(order, np.argsort(last, axis=1, kind="stable"), axis=1)
        return order[:, :n]

    def _topic_sizes(self):
        """Return each topic's share of the released counts, or None."""
        components = getattr(self, "components_", None)
        if components is None:
            return None
        sizes = total(components, axis=1)
        return sizes / total(sizes)

    def _word_signal(self):
        """Return the signal-to-noise ratio of each word in each topic, (n_components, n_words), or None.

        None of a single topic, too: it has the word frequencies of all, and no others to stand out from.
        """
        cells = getattr(self, "signal_to_noise_", None)
        return None if cells is None or len(cells) == 1 else cells

    def _topic_signal(self):
        """Return the signal-to-noise ratio of each topic, or None."""
        cells = self._word_signal()
        return None if cells is None else getattr(self, "topic_signal_to_noise_", root_mean_square(cells))

    def _clear_words(self):
        """Return whether each word stands out of the noise in each topic, (n_components, n_words), or None.

        The largest of n normal numbers is about sqrt(2 log n), the universal threshold of Donoho and Johnstone (1994).
        """
        cells = self._word_signal()
        return None if cells is None else cells > math.sqrt(2 * log(max(2, cells.shape[1])))

    def _noise_floor(self):
        """Return the signal-to-noise ratio below which a topic is noise, a number or (n_components,)."""
        return NOISE_FLOOR

    def _would_help(self):
        """Return what makes less noise, in words."""
        epsilon = self.epsilon or self._default_epsilon() or self.privacy_guarantee_.epsilon  # what a user can raise
        return f"a larger epsilon than {epsilon:.4g}, that of this fit alone"

    def _noise_topics(self):
        """Return whether each topic is noise, (n_components,), or None."""
        signal, clear = self._topic_signal(), self._clear_words()
        if signal is None:
            return None
        noise = np.asarray(signal) < self._noise_floor()
        n = 0 if clear is None else min(CLEAR_WORDS, clear.shape[1])
        if n and (noise & (clear.sum(axis=1) >= n)).any():  # else words need not be sorted
            top = np.argsort(-self._relevance(RELEVANCE), axis=1, kind="stable")[:, :n]
            noise &= ~np.take_along_axis(clear, top, axis=1).all(axis=1)
        return noise


def warn_of_noise(model):
    """Warn the caller of `fit` where most topics are noise, from released values and parameters alone."""
    noise = model._noise_topics()
    if noise is None or 2 * noise.sum() <= len(noise):
        return
    most = float(np.max(model._topic_signal()))
    prior = ", a public prior" if model.get_params().get("prior", model) is None else ""
    warn(
        f"{noise.sum()} of {len(noise)} topics hold more noise than topic: their signal_to_noise in topic_info() is"
        f" below {np.max(model._noise_floor()):.2g}, and the largest of all is {most:.2g}. More documents, fewer topics"
        f" than {len(noise)}, fewer words than {model.topic_word_.shape[1]}{prior} or {model._would_help()}, would"
        " help.",
        NoisyTopicsWarning,
    )


def distinct_triples(rows):
    """Return three words of each row, the first ones of which no row before has the same three, in any order."""
    taken, found = set(), []
    for row in rows:
        triples = (
            [row[:3]] + [[*row[:2], word] for word in row[3:]] + [[row[0], *pair] for pair in combinations(row[2:], 2)]
        )
        chosen = next((triple for triple in triples if frozenset(triple) not in taken), row[:3])
        taken.add(frozenset(chosen))
        found.append(chosen)
    return found


def root_mean_square(cells):
    """Return the signal-to-noise ratios of topics from those of their words, less the 1 of the noise under the root."""
    return np.sqrt(np.maximum(mean(np.asarray(cells, dtype=float) ** 2, axis=1) - 1, 0))


def checked_names(names, n_topics):
    """Return names of topics as an array of str, or refuse them."""
    if len(names) != n_topics or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"names must be {n_topics} str, one a topic; got {names!r}.")
    if len(set(names)) < n_topics:
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"names must differ; got {twice!r} twice.")
    return np.array(names, dtype=object)
