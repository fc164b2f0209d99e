"""What happens from round to round: the monitor's loss, and how topics settle."""

from itertools import pairwise

import numpy as np

from skdplda._validation import counts_of
from skdplda.metrics import perplexity
from skdplda.plots._style import BLUE, DASHES, GREY, STYLES, legend_below, literal, new_axes, set_title, titled

CURVES = {  # of the monitor, by the attribute of its history
    "word_level": "monitor, one token removed",
    "document_level": "monitor, longest document removed",
    "worst_draw": "worst single draw, exact",
    "sum_of_draws": "sum over all draws, exact",
}
MARKERS = 8  # a curve: they distinguish curves, not points


def prior_in_rounds(estimator):
    """Return the prior of topic proportions by which a fitted model reads documents, in the order of its rounds.

    There topics have the order of a prior that was given; where documents voted for it, those kept apart come first.
    """
    prior = getattr(estimator, "doc_topic_prior_", None)
    if prior is None or np.ndim(getattr(estimator, "doc_topic_prior", None)):
        return estimator._doc_topic_prior()
    return np.sort(prior)[::-1] if np.isfinite(estimator.privacy_guarantee_.epsilon) else prior


class MonitorDisplay:
    """Loss over the iterations of sequential Gibbs sampling, as the monitor measured it: a diagnostic, no guarantee.

    All curves are dotted: none is the epsilon of a guarantee, for the reasons that
    :class:`~skdplda.privacy.InherentPrivacyHistory` gives.

    Parameters
    ----------
    history : InherentPrivacyHistory
        From `inherent_privacy_`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> from skdplda.plots import MonitorDisplay
    >>> from skdplda.privacy import InherentPrivacyHistory
    >>> history = InherentPrivacyHistory([0.1, 0.2], [0.5, 1.0], [4.6, 4.6], [310.0, 600.0])
    >>> len(MonitorDisplay(history=history).plot().ax_.lines)
    4
    """

    def __init__(self, *, history):
        self.history = history

    @classmethod
    def from_estimator(cls, estimator, *, ax=None):
        """Draw what the monitor of a fitted model measured.

        Parameters
        ----------
        estimator : InherentPrivacyLDA
            Fitted.
        ax : matplotlib Axes, default=None
            As in `plot`.

        Returns
        -------
        display : MonitorDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If the model ran without the monitor.
        """
        history = getattr(estimator, "inherent_privacy_", None)
        if history is None:
            raise ValueError(
                "estimator must be a fitted skdplda.published.InherentPrivacyLDA, which has the monitor; got"
                f" {type(estimator).__name__} without inherent_privacy_."
            )
        return cls(history=history).plot(ax=ax)

    def plot(self, ax=None):
        """Draw one curve for each measurement, on a logarithmic axis.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.

        Returns
        -------
        display : MonitorDisplay
            This display.
        """
        ax = new_axes(ax, (5.6, 4.6), self)
        iterations = np.arange(1, len(self.history.word_level) + 1)
        for (name, label), (color, marker, _) in zip(CURVES.items(), STYLES, strict=False):
            style = {"color": color, "marker": marker, "linestyle": DASHES["diagnostic"]}
            ax.plot(iterations, getattr(self.history, name), label=label, markevery=1 / MARKERS, **style)
        ax.set_yscale("log")
        ax.set_xlabel("Iteration")
        ax.set_ylabel("Loss in nats")
        heading = "A diagnostic: none of these is a guarantee"
        set_title(ax, "Loss that the monitor measured")
        legend_below(ax, heading)
        return self


class ConvergenceDisplay:
    """How topics settle over the rounds of one private fit, from what the rounds released.

    It costs no privacy beyond the fit: the tables of all rounds are covered by its guarantee. Whoever would stop early
    by looking at it may do so on public documents only.

    Parameters
    ----------
    values : array-like of shape (n_values,)
        The measure after each round.
    rounds : array-like of shape (n_values,), default=None
        Numbers of the rounds; None counts from 1.
    final : float, default=None
        The measure of the model as fitted: a line. It may be an average of several rounds.
    value_name : str, default="Held-out perplexity"
        What is measured.
    title : str, default="How topics settle"
        Title of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> from skdplda import PrivateCGSLDA
    >>> from skdplda.datasets import make_lda_corpus
    >>> from skdplda.plots import ConvergenceDisplay
    >>> X = make_lda_corpus(2000, 40, 3, random_state=0).data
    >>> reports = []
    >>> model = PrivateCGSLDA(3, max_iter=5, callback=reports.append).fit(X)
    >>> len(ConvergenceDisplay.from_reports(reports).values) == model.n_iter_ - 1
    True
    """

    def __init__(self, *, values, rounds=None, final=None, value_name="Held-out perplexity", title="How topics settle"):
        self.title = title
        self.values = values
        self.rounds = rounds
        self.final = final
        self.value_name = value_name

    @classmethod
    def from_reports(cls, reports, *, public=None, estimator=None, ax=None, name=None):
        """Draw the rounds of a fit from the reports that its callback was given.

        Collect them with `callback=reports.append`.

        Parameters
        ----------
        reports : sequence of RoundReport
            In the order of rounds.
        public : array-like or sparse matrix of shape (n_documents, n_words), default=None
            Word counts, or semantic units, of public documents, which give the perplexity after each round. None draws
            how far the topics moved since the round before: the mean total variation distance.
        estimator : estimator, default=None
            The fitted model; its prior is used, and its perplexity is drawn as a line.
        ax, name : as in `plot`
            Where and how to draw.

        Returns
        -------
        display : ConvergenceDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If there are no reports; without public documents, if there is one only.
        """
        reports = list(reports)
        if len(reports) < (2 if public is None else 1):
            raise ValueError(
                f"reports must hold at least {2 if public is None else 1} rounds; got {len(reports)}. Collect them with"
                " callback=reports.append."
            )
        tables = [np.asarray(report.table, dtype=np.float64).T for report in reports]
        topics = [table / table.sum(axis=1, keepdims=True) for table in tables]
        rounds = [report.n_done for report in reports]
        final = None
        if public is None:
            values = [np.abs(now - before).sum(axis=1).mean() / 2 for before, now in pairwise(topics)]
            rounds, value_name = rounds[1:], "Distance to the round before"
        else:
            prior = {} if estimator is None else {"doc_topic_prior": prior_in_rounds(estimator)}
            values = [perplexity(counts_of(public), table, **prior) for table in topics]
            value_name = "Perplexity of public documents"
            final = None if estimator is None else estimator.perplexity(public)
        title = titled("How topics settle", estimator)
        return cls(values=values, rounds=rounds, final=final, value_name=value_name, title=title).plot(ax=ax, name=name)

    def plot(self, ax=None, *, name=None, color=BLUE):
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        name : str, default=None
            Label of the curve; None: "after each round".
        color : color, default="#0072B2"
            Of the curve.

        Returns
        -------
        display : ConvergenceDisplay
            This display.

        Raises
        ------
        ValueError
            If there are no values, or another number of rounds.
        """
        values = np.asarray(self.values, dtype=float)
        if values.ndim != 1 or not len(values):
            raise ValueError(f"values must have one entry for each round; got shape {values.shape}.")
        rounds = np.arange(1, len(values) + 1) if self.rounds is None else np.asarray(self.rounds)
        if rounds.shape != values.shape:
            raise ValueError(f"rounds must have one number for each of the {len(values)} values; got {rounds.shape}.")
        ax = new_axes(ax, (5.2, 3.6), self)
        ax.plot(rounds, values, color=color, marker="o", markersize=4, label=literal(name or "after each round"))
        if self.final is not None:
            ax.axhline(self.final, color=GREY, linestyle="-.", label="the fitted model")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("Round")
        ax.set_ylabel(self.value_name)
        set_title(ax, self.title)
        legend_below(ax)
        return self
