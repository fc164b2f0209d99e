"""Curves over epsilon: what privacy costs in utility."""

import numpy as np
from sklearn.base import clone

from skdplda._validation import counts_of
from skdplda.metrics import unigram_perplexity
from skdplda.plots._style import BLUE, DASHES, GREY, VERMILION, epsilon_axis, legend_below, literal, new_axes, set_title


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
        The measure at epsilon = inf: a line of dots and dashes.
    unigram : float, default=None
        The measure of a model without topics: a dotted line.
    score_name : str, default="Held-out perplexity"
        What is measured.
    unit : str, default=None
        The privacy unit of the epsilons, such as "document", for the axis. Never draw two units in one curve.
    status : {"proven", "claimed", "diagnostic"}, default="proven"
        Of the epsilons. The curve of proven ones is solid, that of claimed ones dashed, and its label says so.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> from skdplda.plots import PrivacyUtilityDisplay
    >>> display = PrivacyUtilityDisplay(epsilons=[1, 2, 5], scores=[310, 260, 220], non_private=200, unigram=400)
    >>> display.plot().ax_.get_xlabel()
    'Privacy loss epsilon'
    """

    def __init__(
        self,
        *,
        epsilons,
        scores,
        non_private=None,
        unigram=None,
        score_name="Held-out perplexity",
        unit=None,
        status="proven",
    ):
        self.epsilons = epsilons
        self.scores = scores
        self.non_private = non_private
        self.unigram = unigram
        self.score_name = score_name
        self.unit = unit
        self.status = status

    @classmethod
    def from_estimator(cls, estimator, X, X_test, *, epsilons, n_repeats=1, groups=None, ax=None, name=None):
        """Fit clones of a topic model at each epsilon, and one without noise, and draw their held-out perplexity.

        Every fit spends its epsilon, and is charged to an open `PrivacyAccountant`; the non-private line and the
        unigram line are not private at all. Draw it on public or synthetic documents.

        Parameters
        ----------
        estimator : estimator
            A topic model with `perplexity` and, fitted, `privacy_guarantee_`. It is not changed.
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts, or semantic units, to fit.
        X_test : array-like or sparse matrix of shape (n_test, n_words)
            The same, to judge by.
        epsilons : array-like of shape (n_epsilons,)
            Values of `epsilon`. The axis has the epsilon of each fit's guarantee.
        n_repeats : int, default=1
            Fits at each epsilon.
        groups : array-like of shape (n_documents,), default=None
            The user of each document.
        ax : matplotlib Axes, default=None
            As in `plot`.
        name : str, default=None
            As in `plot`; None takes the estimator's class.

        Returns
        -------
        display : PrivacyUtilityDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If a guarantee has no finite epsilon, or as the estimator's `fit` raises.
        """
        options = {} if groups is None else {"groups": groups}

        def fitted(value):
            return clone(estimator).set_params(epsilon=value).fit(X, **options)

        models = [[fitted(value) for _ in range(n_repeats)] for value in epsilons]
        guarantees = [repeats[0].privacy_guarantee_ for repeats in models]
        statuses = {str(guarantee.status) for guarantee in guarantees}
        display = cls(
            epsilons=[guarantee.epsilon for guarantee in guarantees],
            scores=[[model.perplexity(X_test) for model in repeats] for repeats in models],
            non_private=fitted(np.inf).perplexity(X_test),
            unigram=unigram_perplexity(counts_of(X), counts_of(X_test)),
            unit=str(guarantees[0].unit) if guarantees else None,
            status=next((status for status in ("diagnostic", "claimed") if status in statuses), "proven"),
        )
        return display.plot(ax=ax, name=name or type(estimator).__name__)

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
            If `epsilons` are not positive and finite, `scores` have another length, or `status` is unknown.
        """
        epsilons, scores = np.asarray(self.epsilons, dtype=float), np.asarray(self.scores, dtype=float)
        if epsilons.ndim != 1 or not len(epsilons) or not np.all((epsilons > 0) & (epsilons < np.inf)):
            raise ValueError(f"epsilons must be positive finite numbers; got {self.epsilons!r}.")
        if scores.ndim not in (1, 2) or len(scores) != len(epsilons):
            raise ValueError(f"scores must have one entry, or one row, for each epsilon; got shape {scores.shape}.")
        if self.status not in DASHES:
            raise ValueError(f"status must be one of {tuple(DASHES)}; got {self.status!r}.")
        order = np.argsort(epsilons)
        epsilons, scores = epsilons[order], scores[order].reshape(len(epsilons), -1)
        ax = new_axes(ax, (5.2, 3.8), self)
        label = name if self.status == "proven" else f"{name} ({self.status}, not proven)"
        if self.unigram is not None:
            ax.axhline(self.unigram, color=GREY, linestyle=":", label="unigram (no topics)")
        ax.plot(
            epsilons, scores.mean(axis=1), color=color, marker="o", linestyle=DASHES[self.status], label=literal(label)
        )
        if scores.shape[1] > 1:
            ax.fill_between(epsilons, scores.min(axis=1), scores.max(axis=1), color=color, alpha=0.2, linewidth=0)
        if self.non_private is not None:
            ax.axhline(self.non_private, color=VERMILION, linestyle="-.", label="non-private")
        epsilon_axis(ax, epsilons, self.unit)
        ax.set_ylabel(self.score_name)
        set_title(ax, "What privacy costs")
        legend_below(ax)
        return self
