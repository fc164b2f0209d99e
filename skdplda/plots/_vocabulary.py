"""What private selections of words find, over epsilon: words, and what they cover."""

import warnings

import numpy as np
import pandas as pd
from sklearn.base import clone

from skdplda.exceptions import EmptySelectionError
from skdplda.plots._style import DASHES, STYLES, epsilon_axis, legend_below, literal, new_axes, set_title

MEASURES = {  # label of the axis, title
    "words": ("Words selected", "Words that a private selection names"),
    "token_mass": ("Share of all tokens", "Tokens whose word is selected"),
    "missing_mass": ("Share of all (unit, word) pairs", "Uses of words that are missing"),
}


class VocabularyDisplay:
    """Words that private selections find over epsilon, or what these words are worth.

    Each point is a fit that spends its epsilon: draw the curves on public or synthetic data, or pay for all of them.

    Parameters
    ----------
    epsilons : array-like of shape (n_epsilons,)
        Finite privacy losses, ascending.
    values : dict of str to array-like of shape (n_epsilons,)
        The measure at each epsilon, for each mechanism. NaN, and 0 words, have no point.
    measure : {"words", "token_mass", "missing_mass"}, default="words"
        What is drawn: the number of words, on a logarithmic axis; or as a share :func:`~skdplda.metrics.token_mass` or
        :func:`~skdplda.metrics.missing_mass`.
    claimed : collection of str, default=()
        Those of the mechanisms whose epsilon is claimed and not proven: their curves are dashed, all others solid.
    unit : str, default=None
        The privacy unit of the epsilons, such as "document", for the axis.
    delta : float, default=None
        Of all selections, for the title.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> from skdplda.plots import VocabularyDisplay
    >>> display = VocabularyDisplay(epsilons=[1, 2, 5], values={"sieve": [200, 370, 790]})
    >>> display.plot().ax_.get_ylabel()
    'Words selected'
    """

    def __init__(self, *, epsilons, values, measure="words", claimed=(), unit=None, delta=None):
        self.epsilons = epsilons
        self.values = values
        self.measure = measure
        self.claimed = claimed
        self.unit = unit
        self.delta = delta

    @classmethod
    def from_estimator(cls, estimator, X, *, epsilons, methods=None, n_repeats=1, groups=None, ax=None):
        """Fit clones of a selector at each epsilon and draw how many words they find.

        Every fit spends its epsilon, and is charged to an open `PrivacyAccountant`.

        Parameters
        ----------
        estimator : DPCountVectorizer or DPVocabularySelector
            It is not changed.
        X : object
            Texts or counts, as the estimator takes them.
        epsilons : array-like of shape (n_epsilons,)
            Ascending.
        methods : sequence of str, default=None
            One curve each. None draws that of the estimator.
        n_repeats : int, default=1
            Fits at each epsilon; the curve is their mean.
        groups : array-like of shape (n_documents,), default=None
            The user of each document.
        ax : matplotlib Axes, default=None
            As in `plot`.

        Returns
        -------
        display : VocabularyDisplay
            The drawn display.

        Raises
        ------
        ValueError
            As the estimator's `fit` raises, unless it is for want of words.
        """
        options = {} if groups is None else {"groups": groups}

        def n_words(selector):
            try:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "No word was used by enough", UserWarning)
                    return len(clone(selector).fit(X, **options).get_feature_names_out())
            except EmptySelectionError:
                return 0

        values, claimed = {}, []
        for method in [estimator.method] if methods is None else methods:
            chosen = {} if methods is None else {"method": method}
            selectors = [clone(estimator).set_params(epsilon=epsilon, **chosen) for epsilon in epsilons]
            found = [[n_words(selector) for _ in range(n_repeats)] for selector in selectors]
            values[method] = np.mean(found, axis=1)
            if any(selector.privacy_cost().status != "proven" for selector in selectors):
                claimed.append(method)
        about = {"unit": "document" if groups is None else "user", "delta": estimator.delta}
        return cls(epsilons=epsilons, values=values, claimed=claimed, **about).plot(ax=ax)

    @classmethod
    def from_results(cls, results, *, measure="words", unit=None, ax=None):
        """Draw what was measured before.

        Parameters
        ----------
        results : DataFrame, or what makes one
            Columns "method", "epsilon" and the name of the measure; "status", where not all are "proven", and
            "delta" if it is one for all. Several rows of one method and epsilon are drawn as their mean.
        measure : {"words", "token_mass", "missing_mass"}, default="words"
            What to draw.
        unit : str, default=None
            As of the class.
        ax : matplotlib Axes, default=None
            As in `plot`.

        Returns
        -------
        display : VocabularyDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If a column is missing, or as `plot` raises.
        """
        table = pd.DataFrame(results)
        missing = [name for name in ("method", "epsilon", measure) if name not in table]
        if missing:
            raise ValueError(f"results must have the columns {missing}; there are {list(table)}.")
        means = table.pivot_table(measure, "epsilon", "method", "mean", dropna=False, sort=False).sort_index()
        values = {name: means[name].to_numpy() for name in table["method"].unique()}
        unproven = table["status"] != "proven" if "status" in table else np.zeros(len(table), bool)
        claimed = list(table["method"][unproven].unique())
        deltas = table["delta"].unique() if "delta" in table else []
        about = {"unit": unit, "delta": float(deltas[0]) if len(deltas) == 1 else None}
        display = cls(epsilons=means.index.to_numpy(), values=values, measure=measure, claimed=claimed, **about)
        return display.plot(ax=ax)

    def plot(self, ax=None):
        """Draw one curve a method, over epsilon on a logarithmic axis.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.

        Returns
        -------
        display : VocabularyDisplay
            This display.

        Raises
        ------
        ValueError
            If `epsilons` are not positive, finite and ascending, a curve has another length, `claimed` names none, or
            `measure` is unknown.
        """
        if self.measure not in MEASURES:
            raise ValueError(f"measure must be one of {tuple(MEASURES)}; got {self.measure!r}.")
        epsilons = np.asarray(self.epsilons, dtype=float)
        ascending = epsilons.ndim == 1 and len(epsilons) and np.all(np.diff(epsilons) > 0)
        if not (ascending and epsilons[0] > 0 and epsilons[-1] < np.inf):
            raise ValueError(f"epsilons must be positive finite numbers, ascending; got {self.epsilons!r}.")
        unknown = set(self.claimed) - set(self.values)
        if unknown:
            raise ValueError(f"claimed must hold names of values; got {sorted(unknown)}.")
        ax, words = new_axes(ax, (5.6, 4.0), self), self.measure == "words"
        for i, (name, value) in enumerate(self.values.items()):
            value = np.asarray(value, dtype=float)
            if value.shape != epsilons.shape:
                raise ValueError(f"values[{name!r}] must have one entry for each epsilon; got shape {value.shape}.")
            color, marker, _ = STYLES[i % len(STYLES)]
            dashes = DASHES["claimed" if name in self.claimed else "proven"]
            drawn = np.where(value > 0, value, np.nan) if words else value  # no point at 0 on a logarithmic axis
            ax.plot(epsilons, drawn, color=color, marker=marker, linestyle=dashes, label=literal(name), markersize=5)
        if words:
            ax.set_yscale("log")
            ax.yaxis.set_minor_formatter("{x:,.0f}" if len(ax.get_yticks()) < 4 else "")
        ax.yaxis.set_major_formatter("{x:,.0f}" if words else "{x:.0%}")
        epsilon_axis(ax, epsilons, self.unit)
        label, title = MEASURES[self.measure]
        ax.set_ylabel(label)
        set_title(ax, title if self.delta is None else f"{title}; delta = {self.delta:g}")
        legend_below(ax, "dashed: claimed, not proven" if self.claimed else None)
        return self
