"""How many words a private selection names."""

import numpy as np

from skdplda.plots._displays import _pyplot

__all__ = ["VocabularySizeDisplay"]

# Okabe and Ito's palette, with a marker and dashes for each colour.
STYLES = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#E69F00", "v", "-"),
    ("#56B4E9", "P", "--"),
    ("#555555", "X", ":"),
)


class VocabularySizeDisplay:
    """Size of privately selected vocabularies over epsilon.

    Each point is a fit that spends its epsilon: draw the curves on public or synthetic data, or pay for all of them.

    Parameters
    ----------
    epsilons : array-like of shape (n_epsilons,)
        Finite privacy losses, ascending.
    sizes : dict of str to array-like of shape (n_epsilons,)
        Number of selected words at each epsilon, for each mechanism.

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

    def __init__(self, *, epsilons, sizes):
        self.epsilons = epsilons
        self.sizes = sizes

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
            If `epsilons` are not positive, finite and ascending, or a curve has another length.
        """
        plt = _pyplot()
        epsilons = np.asarray(self.epsilons, dtype=float)
        ascending = epsilons.ndim == 1 and len(epsilons) and np.all(np.diff(epsilons) > 0)
        if not (ascending and epsilons[0] > 0 and epsilons[-1] < np.inf):
            raise ValueError(f"epsilons must be positive finite numbers, ascending; got {self.epsilons!r}.")
        if ax is None:
            _, ax = plt.subplots(figsize=(5.6, 4.0), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        for i, (name, size) in enumerate(self.sizes.items()):
            size = np.asarray(size, dtype=float)
            if size.shape != epsilons.shape:
                raise ValueError(f"sizes[{name!r}] must have one entry for each epsilon; got shape {size.shape}.")
            color, marker, dashes = STYLES[i % len(STYLES)]
            drawn = np.where(size > 0, size, np.nan)  # nothing selected: no point on a logarithmic axis
            ax.plot(epsilons, drawn, color=color, marker=marker, linestyle=dashes, label=name, markersize=5)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        ax.xaxis.minorticks_off()
        ax.yaxis.set_major_formatter("{x:,.0f}")
        ax.yaxis.set_minor_formatter("{x:,.0f}" if len(ax.get_yticks()) < 4 else "")
        ax.set_xlabel("Privacy loss epsilon")
        ax.set_ylabel("Words selected")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize="small")
        return self
