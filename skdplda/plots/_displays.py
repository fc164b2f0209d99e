"""Displays in scikit-learn's style: made from values, or from an estimator; drawn by `plot`."""

import numpy as np

from skdplda._optional import import_optional

__all__ = ["PrivacyUtilityDisplay", "TopWordsDisplay"]

# Okabe and Ito's palette: told apart with any colour vision; the curves also differ by their dashes.
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#555555"
PANEL_WIDTH, WORD_HEIGHT, TITLE_HEIGHT = 2.6, 0.22, 0.75  # inches


def _pyplot():
    return import_optional("matplotlib.pyplot", purpose="A display", install="matplotlib")


class TopWordsDisplay:
    """Bars of the most probable words of each topic.

    Parameters
    ----------
    words : array-like of shape (n_topics, n_words)
        Top words of each topic, most probable first.
    weights : array-like of shape (n_topics, n_words)
        Their probabilities.
    topic_names : sequence of str of shape (n_topics,)
        Titles. Topics are never renumbered.

    Attributes
    ----------
    axes_ : ndarray of shape (n_topics,)
        One axes a topic.
    figure_ : matplotlib Figure
        The figure that holds them.

    See Also
    --------
    PrivacyUtilityDisplay : What privacy costs in utility.

    Examples
    --------
    >>> from skdplda import PrivateCGSLDA
    >>> from skdplda.datasets import make_lda_corpus
    >>> from skdplda.plots import TopWordsDisplay
    >>> corpus = make_lda_corpus(500, 40, 3, random_state=0)
    >>> model = PrivateCGSLDA(3).fit(corpus.data)
    >>> display = TopWordsDisplay.from_estimator(model, feature_names=corpus.feature_names, n_words=5)
    >>> len(display.axes_)
    3
    """

    def __init__(self, *, words, weights, topic_names):
        self.words = words
        self.weights = weights
        self.topic_names = topic_names

    @classmethod
    def from_estimator(cls, estimator, *, feature_names=None, n_words=10, topics=None, ax=None, n_columns=None):
        """Draw the top words of a fitted topic model.

        Parameters
        ----------
        estimator : estimator
            A fitted model with `topic_word_` and `top_words`.
        feature_names : array-like of str, default=None
            The vocabulary. None takes the estimator's `feature_names_in_`, else column numbers.
        n_words : int, default=10
            Words a topic.
        topics : sequence of int, default=None
            Which topics, in which order. None draws all.
        ax : matplotlib Axes or array of Axes, default=None
            As in `plot`.
        n_columns : int, default=None
            As in `plot`.

        Returns
        -------
        display : TopWordsDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If `n_words`, `topics` or `feature_names` do not fit the estimator.
        """
        table = estimator.top_words(n_words, feature_names)
        weights = -np.sort(-estimator.topic_word_, axis=1)[:, :n_words]
        chosen = np.arange(len(table)) if topics is None else np.asarray(topics)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not np.isin(chosen, np.arange(len(table))).all():
            raise ValueError(f"topics must be numbers from 0 to {len(table) - 1}; got {topics!r}.")
        names = [f"Topic {topic}" for topic in chosen]
        display = cls(words=table.to_numpy()[chosen], weights=weights[chosen], topic_names=names)
        return display.plot(ax=ax, n_columns=n_columns)

    def plot(self, ax=None, *, n_columns=None, color=BLUE):
        """Draw one panel of horizontal bars a topic.

        Parameters
        ----------
        ax : matplotlib Axes or array of Axes, default=None
            One axes is divided among the topics; an array has one axes a topic. None makes a new figure.
        n_columns : int, default=None
            Panels side by side. None takes at most five.
        color : color, default="#0072B2"
            Of the bars.

        Returns
        -------
        display : TopWordsDisplay
            This display.

        Raises
        ------
        ValueError
            If an array of axes has fewer entries than there are topics.
        """
        plt = _pyplot()
        words, weights = np.asarray(self.words, dtype=object), np.asarray(self.weights, dtype=float)
        n_topics, n_words = words.shape
        n_columns = min(n_columns or 5, n_topics)
        n_rows = -(-n_topics // n_columns)
        if ax is None:
            size = (PANEL_WIDTH * n_columns, (WORD_HEIGHT * n_words + TITLE_HEIGHT) * n_rows)
            self.figure_ = plt.figure(figsize=size, layout="constrained")
            grid = self.figure_.add_gridspec(n_rows, n_columns)
        elif isinstance(ax, plt.Axes):
            self.figure_ = ax.figure
            ax.set_axis_off()
            grid = ax.get_subplotspec().subgridspec(n_rows, n_columns)
        else:
            panels = np.ravel(ax)
            if len(panels) < n_topics:
                raise ValueError(f"ax must hold an axes for each of the {n_topics} topics; got {len(panels)}.")
            self.figure_, grid = panels[0].figure, None
        if grid is not None:
            panels = [self.figure_.add_subplot(grid[divmod(topic, n_columns)]) for topic in range(n_topics)]
        self.axes_ = np.array(panels[:n_topics], dtype=object)
        for topic, panel in enumerate(self.axes_):
            panel.barh(np.arange(n_words), weights[topic], color=color, height=0.75)
            panel.set_yticks(np.arange(n_words), words[topic])
            panel.invert_yaxis()
            panel.set_xlim(0, 1.05 * weights.max())  # the same scale for all topics
            panel.set_title(self.topic_names[topic], fontsize="medium", loc="left")
            panel.tick_params(axis="y", length=0)
            panel.locator_params(axis="x", nbins=2)
            panel.xaxis.set_major_formatter("{x:g}")
            panel.spines[["top", "right"]].set_visible(False)
            if topic + n_columns >= n_topics:
                panel.set_xlabel("Probability")
        return self


class PrivacyUtilityDisplay:
    """Utility over epsilon, between a model without privacy and one without topics.

    Each point is a fit that spends its epsilon: draw the curve on public or synthetic data, or pay for all of it.

    Parameters
    ----------
    epsilons : array-like of shape (n_epsilons,)
        Finite privacy losses, in any order.
    scores : array-like of shape (n_epsilons,) or (n_epsilons, n_repeats)
        The measure at each epsilon. Repeats are drawn as their mean and a band from least to largest.
    non_private : float, default=None
        The measure at epsilon = inf: a dashed line.
    unigram : float, default=None
        The measure of a model without topics: a dotted line.
    score_name : str, default="Held-out perplexity"
        What is measured.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure that holds it.

    See Also
    --------
    TopWordsDisplay : The words of the topics.

    Examples
    --------
    >>> from skdplda.plots import PrivacyUtilityDisplay
    >>> display = PrivacyUtilityDisplay(epsilons=[1, 2, 5], scores=[310, 260, 220], non_private=200, unigram=400)
    >>> display.plot().ax_.get_xlabel()
    'Privacy loss epsilon'
    """

    def __init__(self, *, epsilons, scores, non_private=None, unigram=None, score_name="Held-out perplexity"):
        self.epsilons = epsilons
        self.scores = scores
        self.non_private = non_private
        self.unigram = unigram
        self.score_name = score_name

    def plot(self, ax=None, *, name="private", color=BLUE):
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        name : str, default="private"
            Label of the curve.
        color : color, default="#0072B2"
            Of the curve.

        Returns
        -------
        display : PrivacyUtilityDisplay
            This display.

        Raises
        ------
        ValueError
            If `epsilons` are not positive and finite, or `scores` have another length.
        """
        plt = _pyplot()
        epsilons, scores = np.asarray(self.epsilons, dtype=float), np.asarray(self.scores, dtype=float)
        if epsilons.ndim != 1 or not len(epsilons) or not np.all((epsilons > 0) & (epsilons < np.inf)):
            raise ValueError(f"epsilons must be positive finite numbers; got {self.epsilons!r}.")
        if scores.ndim not in (1, 2) or len(scores) != len(epsilons):
            raise ValueError(f"scores must have one entry, or one row, for each epsilon; got shape {scores.shape}.")
        order = np.argsort(epsilons)
        epsilons, scores = epsilons[order], scores[order].reshape(len(epsilons), -1)
        if ax is None:
            _, ax = plt.subplots(figsize=(5.2, 3.8), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        if self.unigram is not None:
            ax.axhline(self.unigram, color=GREY, linestyle=":", label="unigram (no topics)")
        ax.plot(epsilons, scores.mean(axis=1), color=color, marker="o", label=name)
        if scores.shape[1] > 1:
            ax.fill_between(epsilons, scores.min(axis=1), scores.max(axis=1), color=color, alpha=0.2, linewidth=0)
        if self.non_private is not None:
            ax.axhline(self.non_private, color=VERMILION, linestyle="--", label="non-private")
        ax.set_xscale("log")
        ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        ax.minorticks_off()
        ax.set_xlabel("Privacy loss epsilon")
        ax.set_ylabel(self.score_name)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        return self
