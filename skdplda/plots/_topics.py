"""What the topics are: their most probable words, and how far they are from each other."""

import numpy as np
from scipy.spatial.distance import pdist, squareform

from skdplda.plots._style import BLUE, GREY, names_of_topics, new_axes, pyplot

__all__ = ["TopWordsDisplay", "TopicDistanceDisplay", "distances_of_topics", "map_of_topics", "sizes_of_topics"]

PANEL_WIDTH, WORD_HEIGHT, TITLE_HEIGHT = 2.6, 0.22, 0.75  # inches
MOST_NUMBERS = 12  # topics; with more of them the cells are too small for their numbers


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
    TopicDistanceDisplay : Which topics are alike.

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
    def from_estimator(
        cls, estimator, *, feature_names=None, n_words=10, topics=None, topic_names=None, ax=None, n_columns=None
    ):
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
        topic_names : sequence of str of shape (n_components,), default=None
            Names of all topics of the estimator. None: "Topic 0", "Topic 1", ...
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
            If `n_words`, `topics`, `topic_names` or `feature_names` do not fit the estimator.
        """
        table = estimator.top_words(n_words, feature_names)
        weights = -np.sort(-estimator.topic_word_, axis=1)[:, :n_words]
        chosen = np.arange(len(table)) if topics is None else np.asarray(topics)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not np.isin(chosen, np.arange(len(table))).all():
            raise ValueError(f"topics must be numbers from 0 to {len(table) - 1}; got {topics!r}.")
        names = names_of_topics(topic_names, len(table))
        display = cls(words=table.to_numpy()[chosen], weights=weights[chosen], topic_names=names[chosen])
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
        plt = pyplot()
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


class TopicDistanceDisplay:
    """Which topics are alike: a matrix of the distances between topics, or a map.

    Two topics that noise made alike, or that share their words, show as a dark cell beside the diagonal.

    Parameters
    ----------
    distances : array-like of shape (n_topics, n_topics)
        Symmetric, with a diagonal of zeros.
    topic_names : sequence of str of shape (n_topics,), default=None
        None: "Topic 0", "Topic 1", ...
    sizes : array-like of shape (n_topics,), default=None
        Share of each topic, the area of its circle on the map. None draws circles of one size.

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
    >>> from skdplda import PrivateCGSLDA
    >>> from skdplda.datasets import make_lda_corpus
    >>> from skdplda.plots import TopicDistanceDisplay
    >>> corpus = make_lda_corpus(2000, 40, 3, random_state=0)
    >>> model = PrivateCGSLDA(3).fit(corpus.data)
    >>> display = TopicDistanceDisplay.from_estimator(model, feature_names=corpus.feature_names, kind="map")
    >>> display.distances.shape
    (3, 3)
    """

    def __init__(self, *, distances, topic_names=None, sizes=None):
        self.distances = distances
        self.topic_names = topic_names
        self.sizes = sizes

    @classmethod
    def from_estimator(
        cls, estimator, *, feature_names=None, n_words=3, topic_names=None, kind="matrix", ax=None, cmap="cividis"
    ):
        """Draw the Jensen-Shannon distances between the topics of a fitted model.

        They lie between 0 (equal topics) and 1 (no word in common). Only released values are read. On the map, the
        areas are each topic's share of `components_`; a model that holds none has circles of one size.

        Parameters
        ----------
        estimator : estimator
            A fitted model with `topic_word_` and `top_words`.
        feature_names : array-like of str, default=None
            The vocabulary. None takes the estimator's `feature_names_in_`, else column numbers.
        n_words : int, default=3
            Top words behind the number of each topic; 0 for none.
        topic_names : sequence of str of shape (n_components,), default=None
            Names in the place of numbers and words.
        kind : {"matrix", "map"}, default="matrix"
            As in `plot`.
        ax : matplotlib Axes, default=None
            As in `plot`.
        cmap : str or Colormap, default="cividis"
            As in `plot`.

        Returns
        -------
        display : TopicDistanceDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If `n_words`, `feature_names` or `topic_names` do not fit the estimator.
        """
        topics = estimator.topic_word_
        if topic_names is None and n_words:
            words = estimator.top_words(n_words, feature_names).to_numpy()
            topic_names = [f"{number}: {', '.join(map(str, row))}" for number, row in enumerate(words)]
        names = names_of_topics(topic_names, len(topics))
        sizes = sizes_of_topics(estimator) if hasattr(estimator, "components_") else None
        display = cls(distances=distances_of_topics(topics), topic_names=names, sizes=sizes)
        return display.plot(ax=ax, kind=kind, cmap=cmap)

    def plot(self, ax=None, *, kind="matrix", cmap="cividis"):
        """Draw the distances.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        kind : {"matrix", "map"}, default="matrix"
            One cell for each pair, or one circle for each topic in the plane in which distances are kept best
            (classical multidimensional scaling).
        cmap : str or Colormap, default="cividis"
            Colours of the matrix; dark is near.

        Returns
        -------
        display : TopicDistanceDisplay
            This display.

        Raises
        ------
        ValueError
            If `kind` is another, or `distances` are no symmetric matrix with zeros on its diagonal.
        """
        if kind not in ("matrix", "map"):
            raise ValueError(f"kind must be 'matrix' or 'map'; got {kind!r}.")
        distances = np.asarray(self.distances, dtype=float)
        square = distances.ndim == 2 and distances.shape[0] == distances.shape[1] > 0
        if not square or not np.allclose(distances, distances.T) or np.diag(distances).any():
            raise ValueError("distances must be a symmetric matrix with zeros on its diagonal; got another.")
        names = names_of_topics(self.topic_names, len(distances))
        draw, width = (self._matrix, 0.42) if kind == "matrix" else (self._map, 0.25)
        self.ax_ = new_axes(ax, (3.2 + width * len(names), 1.8 + width * len(names)))
        self.figure_ = self.ax_.figure
        draw(self.ax_, distances, names, cmap)
        return self

    def _matrix(self, ax, distances, names, cmap):
        """Draw one cell for each pair of topics."""
        image = ax.imshow(distances, cmap=cmap, vmin=0, vmax=max(1.0, distances.max()))
        ax.set_yticks(range(len(names)), names)
        ax.set_xticks(range(len(names)), [_short(name) for name in names])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        if len(names) <= MOST_NUMBERS:
            for row, column in np.ndindex(distances.shape):
                value = distances[row, column]
                color = "white" if value < 0.5 else "black"
                ax.text(column, row, f"{value:.2f}", ha="center", va="center", color=color, fontsize="x-small")
        ax.figure.colorbar(image, ax=ax, label="Distance", shrink=0.8)

    def _map(self, ax, distances, names, cmap):
        """Draw one circle for each topic."""
        places = map_of_topics(distances)
        sizes = np.full(len(names), 1 / len(names)) if self.sizes is None else np.asarray(self.sizes, dtype=float)
        if sizes.shape != (len(names),) or not (sizes >= 0).all() or not 0 < sizes.sum() < np.inf:
            raise ValueError(f"sizes must have one number for each of the {len(names)} topics; got {self.sizes!r}.")
        ax.scatter(*places.T, s=4000 * sizes / sizes.sum(), color=BLUE, alpha=0.35, edgecolors=BLUE)
        for name, place in zip(names, places, strict=True):
            ax.annotate(_short(name), place, ha="center", va="center", fontsize="small")
        if any(_short(name) != name for name in names):  # the words would cover each other
            place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "handlelength": 0, "handletextpad": 0}
            ax.legend([ax.scatter([], [], s=0) for _ in names], names, frameon=False, fontsize="small", **place)
        ax.axhline(0, color=GREY, linewidth=0.5, zorder=0)
        ax.axvline(0, color=GREY, linewidth=0.5, zorder=0)
        ax.margins(0.3)
        ax.set_aspect("equal", adjustable="datalim")
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_visible(False)


def _short(name):
    """Return what stands before the colon of "3: pear, plum", and the number of "Topic 3"."""
    return name.partition(":")[0].removeprefix("Topic ")


def distances_of_topics(topic_word):
    """Return the Jensen-Shannon distances between topics, from 0 to 1."""
    in_nats = np.nan_to_num(pdist(topic_word, "jensenshannon"))  # rounding below 0 gives nan
    return squareform(in_nats / np.sqrt(np.log(2)))


def map_of_topics(distances):
    """Return points of the plane whose distances are near the given ones, by classical multidimensional scaling."""
    squares = np.asarray(distances) ** 2
    rows = squares.mean(axis=0)
    values, vectors = np.linalg.eigh((rows[:, None] + rows - squares - rows.mean()) / 2)
    places = np.zeros((len(rows), 2))
    for axis in range(min(2, len(rows))):
        vector = vectors[:, -1 - axis]
        vector = vector * np.sign(vector[np.argmax(np.abs(vector))])  # the same picture on every machine
        places[:, axis] = vector * np.sqrt(max(values[-1 - axis], 0.0))
    return places


def sizes_of_topics(estimator):
    """Return each topic's share of the released pseudo-counts; equal shares where a model holds none."""
    components = getattr(estimator, "components_", estimator.topic_word_)
    sizes = np.asarray(components, dtype=float).sum(axis=1)
    return sizes / sizes.sum()
