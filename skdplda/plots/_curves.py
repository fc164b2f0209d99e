"""Curves over epsilon: what privacy costs in utility, and how many words a selection names."""

import warnings

import numpy as np
from sklearn.base import clone

from skdplda._validation import counts_of
from skdplda.exceptions import EmptySelectionError
from skdplda.metrics import unigram_perplexity
from skdplda.plots._style import BLUE, DASHES, GREY, STYLES, VERMILION, epsilon_axis, legend_below, new_axes, set_title

__all__ = ["PrivacyUtilityDisplay", "VocabularySizeDisplay"]


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
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure that holds it.

    See Also
    --------
    VocabularySizeDisplay : How many words a private selection names.

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
    def from_estimator(
        cls, estimator, X, X_test, *, epsilons, n_repeats=1, parameter="epsilon", groups=None, ax=None, name=None
    ):
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
            Values of the parameter. The axis has the epsilon of each fit's guarantee.
        n_repeats : int, default=1
            Fits at each epsilon.
        parameter : str, default="epsilon"
            The parameter to set.
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
            return clone(estimator).set_params(**{parameter: value}).fit(X, **options)

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
        ax.plot(epsilons, scores.mean(axis=1), color=color, marker="o", linestyle=DASHES[self.status], label=label)
        if scores.shape[1] > 1:
            ax.fill_between(epsilons, scores.min(axis=1), scores.max(axis=1), color=color, alpha=0.2, linewidth=0)
        if self.non_private is not None:
            ax.axhline(self.non_private, color=VERMILION, linestyle="-.", label="non-private")
        epsilon_axis(ax, epsilons, self.unit)
        ax.set_ylabel(self.score_name)
        set_title(ax, "What privacy costs")
        legend_below(ax)
        return self


class VocabularySizeDisplay:
    """Size of privately selected vocabularies over epsilon.

    Each point is a fit that spends its epsilon: draw the curves on public or synthetic data, or pay for all of them.

    Parameters
    ----------
    epsilons : array-like of shape (n_epsilons,)
        Finite privacy losses, ascending.
    sizes : dict of str to array-like of shape (n_epsilons,)
        Number of selected words at each epsilon, for each mechanism.
    claimed : collection of str, default=()
        Those of the mechanisms whose epsilon is claimed and not proven: their curves are dashed, all others solid.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure that holds it.

    See Also
    --------
    PrivacyUtilityDisplay : What privacy costs in utility.

    Examples
    --------
    >>> from skdplda.plots import VocabularySizeDisplay
    >>> display = VocabularySizeDisplay(epsilons=[1, 2, 5], sizes={"sieve": [200, 370, 790]})
    >>> display.plot().ax_.get_ylabel()
    'Words selected'
    """

    def __init__(self, *, epsilons, sizes, claimed=()):
        self.epsilons = epsilons
        self.sizes = sizes
        self.claimed = claimed

    @classmethod
    def from_estimator(cls, estimator, X, *, epsilons, mechanisms=None, n_repeats=1, groups=None, ax=None):
        """Fit clones of a selector at each epsilon and draw how many words they name.

        Every fit spends its epsilon, and is charged to an open `PrivacyAccountant`: draw the curves on public or
        synthetic documents.

        Parameters
        ----------
        estimator : DPCountVectorizer or DPVocabularySelector
            It is not changed.
        X : object
            Texts or counts, as the estimator takes them.
        epsilons : array-like of shape (n_epsilons,)
            Ascending.
        mechanisms : sequence of str, default=None
            One curve each. None draws that of the estimator.
        n_repeats : int, default=1
            Fits at each epsilon; the curve is their mean.
        groups : array-like of shape (n_documents,), default=None
            The user of each document.
        ax : matplotlib Axes, default=None
            As in `plot`.

        Returns
        -------
        display : VocabularySizeDisplay
            The drawn display.

        Raises
        ------
        ValueError
            As the estimator's `fit` raises, unless it is for want of words: then the size is 0.
        """
        options = {} if groups is None else {"groups": groups}
        sizes, claimed = {}, []
        for mechanism in [estimator.mechanism] if mechanisms is None else mechanisms:
            selectors = [clone(estimator).set_params(mechanism=mechanism, epsilon=epsilon) for epsilon in epsilons]
            counts = [[_size(clone(selector), X, options) for _ in range(n_repeats)] for selector in selectors]
            sizes[mechanism] = np.mean(counts, axis=1)
            if any(selector.privacy_cost().status != "proven" for selector in selectors):
                claimed.append(mechanism)
        return cls(epsilons=epsilons, sizes=sizes, claimed=claimed).plot(ax=ax)

    def plot(self, ax=None):
        """Draw one curve a mechanism, on logarithmic axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.

        Returns
        -------
        display : VocabularySizeDisplay
            This display.

        Raises
        ------
        ValueError
            If `epsilons` are not positive, finite and ascending, a curve has another length, or `claimed` names none.
        """
        epsilons = np.asarray(self.epsilons, dtype=float)
        ascending = epsilons.ndim == 1 and len(epsilons) and np.all(np.diff(epsilons) > 0)
        if not (ascending and epsilons[0] > 0 and epsilons[-1] < np.inf):
            raise ValueError(f"epsilons must be positive finite numbers, ascending; got {self.epsilons!r}.")
        unknown = set(self.claimed) - set(self.sizes)
        if unknown:
            raise ValueError(f"claimed must hold names of sizes; got {sorted(unknown)}.")
        ax = new_axes(ax, (5.6, 4.0), self)
        for i, (name, size) in enumerate(self.sizes.items()):
            size = np.asarray(size, dtype=float)
            if size.shape != epsilons.shape:
                raise ValueError(f"sizes[{name!r}] must have one entry for each epsilon; got shape {size.shape}.")
            color, marker, _ = STYLES[i % len(STYLES)]
            dashes = DASHES["claimed" if name in self.claimed else "proven"]
            drawn = np.where(size > 0, size, np.nan)  # nothing selected: no point on a logarithmic axis
            ax.plot(epsilons, drawn, color=color, marker=marker, linestyle=dashes, label=name, markersize=5)
        ax.set_yscale("log")
        epsilon_axis(ax, epsilons)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.yaxis.set_minor_formatter("{x:,.0f}" if len(ax.get_yticks()) < 4 else "")
        ax.set_ylabel("Words selected")
        set_title(ax, "Words that a private selection names")
        legend_below(ax, "dashed: claimed, not proven" if self.claimed else None)
        return self


def _size(selector, X, options):
    """Return how many words a selector names; none is a size too, of which it warns or which it raises."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "No word was used by enough", UserWarning)
            return len(selector.fit(X, **options).get_feature_names_out())
    except EmptySelectionError:
        return 0
