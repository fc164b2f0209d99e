"""What the topics are: their most relevant words, and how far they are from each other."""

from textwrap import fill

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from skdplda._texts import wide
from skdplda.metrics import apart, topic_distances, topic_map
from skdplda.plots._style import BLUE, FAINT, literal, names_of_topics, new_axes, of_all_scripts, set_title, titled

PANEL_WIDTH, WORD_HEIGHT, TITLE_HEIGHT = 2.6, 0.22, 0.75  # inches
MOST_NUMBERS = 12  # topics; with more of them the cells are too small for their numbers
MAP_WIDTH, LABEL, LETTER, LINE = 520, 16, 5.4, 11.0  # of a map in points: its own, letters of a line, and their size


class TopWordsDisplay:
    """Bars of the most relevant words of each topic, the longest first; what may be noise is grey, and last.

    Parameters
    ----------
    words : array-like of shape (n_topics, n_words)
        Top words of each topic, most relevant first.
    weights : array-like of shape (n_topics, n_words)
        Their probabilities.
    topic_names : sequence of str of shape (n_topics,)
        Titles. Topics are never renumbered.
    is_noise : array-like of bool of shape (n_topics, n_words), default=None
        Which words do not stand out of the noise. None: not known.
    title : str, default=None
        Of the figure that `plot` makes.

    Attributes
    ----------
    ax_ : ndarray of shape (n_topics,)
        The same as `axes_`, the name that all displays have.
    axes_ : ndarray of shape (n_topics,)
        One axes a topic.
    figure_ : matplotlib Figure
        The figure that holds them.

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

    def __init__(self, *, words, weights, topic_names, is_noise=None, title=None):
        self.is_noise = is_noise
        self.title = title
        self.words = words
        self.weights = weights
        self.topic_names = topic_names

    @classmethod
    def from_estimator(
        cls,
        estimator,
        *,
        feature_names=None,
        n_words=10,
        topics=None,
        topic_names=None,
        ax=None,
        n_columns=None,
        relevance=0.8,
    ):
        """Draw the top words of a fitted topic model, with their probabilities.

        Parameters
        ----------
        estimator : estimator
            A fitted model with `topic_word_` and `top_words`.
        feature_names : array-like of str of shape (n_words,), default=None
            The vocabulary. None takes the estimator's `feature_names_in_`, else column numbers.
        n_words : int, default=10
            Words a topic.
        topics : sequence of int, default=None
            Which topics, in which order. None draws all.
        topic_names : sequence of str of shape (n_components,), default=None
            Names of all topics of the estimator. None: those of the estimator.
        ax, n_columns : as in `plot`
            Where and how to draw.
        relevance : float, default=0.8
            As in the estimator's `top_words`; 1 orders by probability.

        Returns
        -------
        display : TopWordsDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If `n_words`, `topics`, `topic_names` or `feature_names` do not fit the estimator.
        """
        table = estimator.top_words(n_words, feature_names, relevance=relevance)
        columns = np.array([str(column) for column in range(estimator.topic_word_.shape[1])], dtype=object)
        order = estimator.top_words(n_words, columns, relevance=relevance).to_numpy().astype(int)
        weights = np.take_along_axis(np.asarray(estimator.topic_word_), order, axis=1)
        noise = estimator.top_words(n_words, feature_names, relevance=relevance, mark_noise=True) != table
        by_length = np.lexsort((-weights, noise.to_numpy()), axis=1)
        words, weights, noise = (
            np.take_along_axis(found, by_length, axis=1) for found in (table.to_numpy(), weights, noise.to_numpy())
        )
        chosen = np.arange(len(table)) if topics is None else np.asarray(topics)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not np.isin(chosen, np.arange(len(table))).all():
            raise ValueError(f"topics must be numbers from 0 to {len(table) - 1}; got {topics!r}.")
        names = names_of_topics(table.index if topic_names is None else topic_names, len(table))
        display = cls(
            words=words[chosen],
            weights=weights[chosen],
            topic_names=names[chosen],
            is_noise=noise[chosen],
            title=titled("Top words", estimator),
        )
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
        from matplotlib import pyplot as plt

        noise = np.asarray(False if self.is_noise is None else self.is_noise, dtype=bool)
        noise = np.broadcast_to(noise, np.shape(self.words))
        words, weights = np.asarray(self.words, dtype=object), np.asarray(self.weights, dtype=float)
        n_topics, n_words = words.shape
        n_columns = min(n_columns or 5, n_topics)
        n_rows = -(-n_topics // n_columns)
        if ax is None:
            size = (PANEL_WIDTH * n_columns, (WORD_HEIGHT * n_words + TITLE_HEIGHT) * n_rows + TITLE_HEIGHT)
            self.figure_ = plt.figure(figsize=size, layout="constrained")
            grid = self.figure_.add_gridspec(n_rows, n_columns)
            hint = "Words in parentheses, with grey bars, do not stand out of the noise." if noise.any() else ""
            lines = [fill(line, max(24, int(size[0] * 12))) for line in (self.title, hint) if line]
            if lines:
                self.figure_.suptitle(literal("\n".join(lines)), fontsize="medium", x=0.01, ha="left")
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
        self.ax_ = self.axes_ = np.array(panels[:n_topics], dtype=object)
        for topic, panel in enumerate(self.axes_):
            colors = [FAINT if hidden else color for hidden in noise[topic]]
            panel.barh(np.arange(n_words), weights[topic], color=colors, height=0.75)
            shown = [f"({word})" if hidden else word for word, hidden in zip(words[topic], noise[topic], strict=True)]
            panel.set_yticks(np.arange(n_words), [*map(literal, shown)])
            panel.invert_yaxis()
            panel.set_xlim(0, 1.05 * weights.max())  # the same scale for all topics
            panel.set_title(literal(self.topic_names[topic]), fontsize="medium", loc="left")
            panel.tick_params(axis="y", length=0)
            panel.locator_params(axis="x", nbins=2)
            panel.xaxis.set_major_formatter("{x:g}")
            panel.spines[["top", "right"]].set_visible(False)
            if topic + n_columns >= n_topics:
                panel.set_xlabel("Probability")
        of_all_scripts(self.figure_)
        return self


class TopicDistanceDisplay:
    """Which topics are alike: a matrix of the distances between topics, or a map.

    Topics that are alike stand side by side: two that noise made alike, or that share their words, show as a dark cell
    beside the diagonal. On a map, circles make room for each other.

    Parameters
    ----------
    distances : array-like of shape (n_topics, n_topics)
        Symmetric, with a diagonal of zeros.
    topic_names : sequence of str of shape (n_topics,), default=None
        None: "topic_0", "topic_1", ...
    sizes : array-like of shape (n_topics,), default=None
        Share of each topic, the area of its circle on the map. None draws circles of one size.
    title : str, default=None
        Title of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

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

    def __init__(self, *, distances, topic_names=None, sizes=None, title=None):
        self.title = title
        self.distances = distances
        self.topic_names = topic_names
        self.sizes = sizes

    @classmethod
    def from_estimator(
        cls, estimator, *, feature_names=None, n_words=3, topic_names=None, kind="matrix", ax=None, cmap="cividis"
    ):
        """Draw the Jensen-Shannon distances between the topics of a fitted model; of clusters, 1 less the cosines.

        The first lie between 0 (equal topics) and 1 (no word in common), the others between 0 and 2. Only released
        values are read. On the map, the areas are each topic's share of `components_`, or of the released sizes of
        clusters; a model that holds none has circles of one size.

        Parameters
        ----------
        estimator : estimator
            A fitted model with `topic_word_` and `top_words`, or clusters with or without words.
        feature_names : array-like of str of shape (n_words,), default=None
            The vocabulary. None takes the estimator's `feature_names_in_`, else column numbers.
        n_words : int, default=3
            Top words behind the number, or name, of each topic; 0 for none.
        topic_names : sequence of str of shape (n_components,), default=None
            Names in the place of numbers and words.
        kind, ax, cmap : as in `plot`
            Where and how to draw.

        Returns
        -------
        display : TopicDistanceDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If `n_words`, `feature_names` or `topic_names` do not fit the estimator.
        """
        distances = topic_distances(estimator)
        if topic_names is None and n_words and hasattr(estimator, "topic_word_"):
            table = estimator.top_words(n_words, feature_names)
            rows = zip(table.index, table.to_numpy(), strict=True)
            topic_names = [f"{_short(name)}: {', '.join(map(str, words))}" for name, words in rows]
        names = names_of_topics(topic_names, len(distances))
        title = titled("Distances of topics", estimator)
        display = cls(distances=distances, topic_names=names, sizes=sizes_of_topics(estimator), title=title)
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
        side, label = max(0.42 * len(names), 3.4), 0.1 * max(map(wide, names))  # in inches, so that labels are whole
        self.ax_ = new_axes(ax, (side + label + 0.6, side + 1.6))
        self.figure_ = self.ax_.figure
        if kind == "matrix":
            self._matrix(self.ax_, distances, names, cmap)
        else:
            width = MAP_WIDTH if ax is None else 72 * self.ax_.bbox.width / self.figure_.dpi
            height = self._map(self.ax_, distances, names, width)
            if ax is None:
                self.figure_.set_size_inches(width / 72 + 0.3, height / 72 + 0.8)
        if ax is None:
            self.figure_.set_layout_engine("compressed")  # cells and circles keep their form
        set_title(self.ax_, self.title)
        of_all_scripts(self.figure_)
        return self

    def _matrix(self, ax, distances, names, cmap):
        """Draw one cell for each pair of topics, the topics in the order of a tree."""
        if len(distances) > 2:
            tree = linkage(squareform(distances, checks=False), "average", optimal_ordering=True)
            order = leaves_list(tree)
            distances, names = distances[np.ix_(order, order)], names[order]
        between = distances[~np.eye(len(distances), dtype=bool)]
        least, most = (between.min(), between.max()) if len(between) else (0.0, 1.0)
        most = most if most > least else least + 1.0
        hidden = np.ma.masked_array(distances, np.eye(len(distances), dtype=bool))  # each topic is at 0 of itself
        image = ax.imshow(hidden, cmap=cmap, vmin=least, vmax=most)
        short = [_short(name) for name in names]
        if max(map(len, short)) > 5:  # they would lie on each other below the columns
            short = [str(row) for row in range(len(names))]
            names = [f"{number}: {name}" for number, name in zip(short, names, strict=True)]
        ax.set_yticks(range(len(names)), [*map(literal, names)])
        ax.set_xticks(range(len(names)), [*map(literal, short)])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        if len(names) <= MOST_NUMBERS:
            for row, column in np.ndindex(distances.shape):
                value = distances[row, column]
                if row == column:
                    continue
                color = "white" if value < (least + most) / 2 else "black"
                ax.text(column, row, f"{value:.2f}", ha="center", va="center", color=color, fontsize="x-small")
        ax.figure.colorbar(image, ax=ax, label="Distance", shrink=0.8, location="bottom")

    def _map(self, ax, distances, names, width):
        """Draw one circle for each topic, its words below it, on so many points of width; return the height."""
        places = topic_map(distances)
        sizes = np.full(len(names), 1 / len(names)) if self.sizes is None else np.asarray(self.sizes, dtype=float)
        if sizes.shape != (len(names),) or not (sizes >= 0).all() or not 0 < sizes.sum() < np.inf:
            raise ValueError(f"sizes must have one number for each of the {len(names)} topics; got {self.sizes!r}.")
        words = [name.partition(": ")[2] for name in names]
        labels = [fill(word or name, LABEL, break_long_words=False) for word, name in zip(words, names, strict=True)]
        lines = [label.split("\n") for label in labels]
        letters = [LETTER * max(map(wide, rows)) for rows in lines]
        radius = np.clip(120 / np.sqrt(len(sizes)), 14, 34) * np.sqrt(sizes / sizes.max())
        boxes = np.stack(
            [np.maximum(letters, 2 * radius), 2 * radius + LINE * np.array([*map(len, lines)]) + 4], axis=1
        )
        at, height = apart(places, boxes, width, 0.8)
        tops = at[:, 1] - boxes[:, 1] / 2 + radius
        ax.scatter(at[:, 0], tops, s=(2 * radius) ** 2, color=BLUE, alpha=0.35, edgecolors=BLUE)
        for topic, (x, y) in enumerate(zip(at[:, 0], tops, strict=True)):
            if words[topic]:
                ax.text(x, y, literal(_short(names[topic])), ha="center", va="center", fontsize="small")
            ax.text(x, y + radius[topic] + 2, literal(labels[topic]), ha="center", va="top", fontsize="small")
        ax.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_visible(False)
        return height


def _short(name):
    """Return what is before the colon of "3: pear, plum", and the number of "topic_3"."""
    return name.partition(":")[0].removeprefix("topic_")


def sizes_of_topics(estimator):
    """Return each topic's share of the released counts; equal shares where a model holds none."""
    if not hasattr(estimator, "topic_word_"):  # clusters without words
        return estimator._topic_sizes()
    sizes = estimator.topic_info(1)["size"].to_numpy(dtype=float)
    return np.full(len(sizes), 1 / len(sizes)) if np.isnan(sizes).any() else sizes
