"""Topics of successive periods: how large each is, which are born and which die."""

import numpy as np

from skdplda._checks import kind_of
from skdplda.metrics import follow_topics
from skdplda.plots._style import BLUE, FAINT, VERMILION, literal, new_axes, of_all_scripts, set_title
from skdplda.plots._topics import wide

ROW, COLUMN, LETTER = 0.34, 0.5, 0.085  # inches: of a topic, of a period, of a letter of a name
LARGEST = 300.0  # area of the largest disc, in square points
COLUMNS = ("period", "topic", "name", "share", "event")  # that are drawn
EVENTS = {"birth": ("^", BLUE), "death": ("v", VERMILION)}


class TopicPathsDisplay:
    """Discs for the share of each topic in each period, with triangles where topics are born or die.

    Parameters
    ----------
    topics : DataFrame
        As from `follow_topics`.
    title : str, default=None
        Of the picture.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where the topics are drawn.
    figure_ : matplotlib Figure
        The figure that holds it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from skdplda.plots import TopicPathsDisplay
    >>> may, june = (
    ...     SimpleNamespace(cluster_centers_=[[1.0, 0.0], [0.0, 1.0]], cluster_sizes_=sizes, size_deviation_=9.0)
    ...     for sizes in ([900.0, 5.0], [700.0, 400.0])
    ... )
    >>> display = TopicPathsDisplay.from_estimators([may, june], ["May", "June"])
    >>> [label.get_text() for label in display.ax_.get_xticklabels()]
    ['May', 'June']
    """

    def __init__(self, *, topics, title=None):
        self.topics = topics
        self.title = title

    @classmethod
    def from_estimators(cls, estimators, periods=None, *, alpha=0.05, guarantee=None, ax=None):
        """Follow the topics of models of successive periods, and draw them.

        Parameters
        ----------
        estimators : sequence of estimators
            Fitted or released models, one a period. Only released values are read.
        periods : array-like of shape (n_periods,), default=None
            Names of the periods; None for numbers.
        alpha : float, default=0.05
            As in `follow_topics`.
        guarantee : PrivacyGuarantee, default=None
            Of all models together, for the title: `total` of a `PrivacyAccountant` that knows of parts. None: what they
            compose to, if each has one, where one unit may be in all periods.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.

        Returns
        -------
        display : TopicPathsDisplay
            The drawn display.

        Raises
        ------
        IncompatibleGuaranteeError
            If models have guarantees that do not compose.
        ValueError
            As `follow_topics`.
        """
        estimators = list(estimators)
        topics = follow_topics(estimators, periods, alpha=alpha)
        found = [getattr(estimator, "privacy_guarantee_", None) for estimator in estimators]
        if guarantee is None and None not in found:
            guarantee = found[0].compose(*found[1:])
        title = "Topics by period" + ("" if guarantee is None else f"; {guarantee.caption}")
        return cls(topics=topics, title=title).plot(ax)

    def plot(self, ax=None):
        """Draw the topics.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.

        Returns
        -------
        display : TopicPathsDisplay
            This display.

        Raises
        ------
        ValueError
            If the table is none of `follow_topics`, or a topic has no share.
        """
        table = self.topics
        missing = [name for name in COLUMNS if name not in getattr(table, "columns", ())]
        if missing:
            raise ValueError(
                f"topics must be the table that follow_topics returns; got {kind_of(table)} without"
                f" {', '.join(missing)}. TopicPathsDisplay.from_estimators takes models."
            )
        if table["share"].isna().any():
            raise ValueError("topics must have shares; these models have no released sizes.")
        periods, n_topics = table["period"].drop_duplicates().tolist(), int(table["topic"].max()) + 1
        names = table[table["period"] == periods[-1]].sort_values("topic")["name"].map(str).tolist()
        width = COLUMN * len(periods) + LETTER * max(map(wide, names)) + 0.6
        self.ax_ = new_axes(ax, (width, ROW * n_topics + 1.2), self)
        column = table["period"].map({period: place for place, period in enumerate(periods)})
        shares = table["share"].to_numpy(dtype=float)
        areas = LARGEST * shares / max(shares.max(), 1e-300)
        self.ax_.scatter(column, table["topic"], s=areas, color=FAINT, zorder=2)
        for event, (marker, color) in EVENTS.items():
            rows = (table["event"] == event).to_numpy()
            if rows.any():
                place = column[rows], table["topic"][rows]
                self.ax_.scatter(*place, s=55, marker=marker, color=color, label=event, zorder=3)
        if (table["event"] != "").any():
            self.ax_.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
        self.ax_.set_yticks(range(n_topics), [*map(literal, names)])
        self.ax_.set_xticks(range(len(periods)), [literal(period) for period in periods], rotation=45, ha="right")
        self.ax_.set(xlim=(-0.6, len(periods) - 0.4), ylim=(n_topics - 0.4, -0.6))
        self.ax_.tick_params(length=0)
        self.ax_.spines[:].set_visible(False)
        self.ax_.hlines(np.arange(n_topics), 0, len(periods) - 1, color=FAINT, linewidth=0.5, zorder=1)
        set_title(self.ax_, self.title)
        of_all_scripts(self.figure_)
        return self
