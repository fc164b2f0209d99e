"""ROC curves of attacks on logarithmic axes: what counts is who is found at few false alarms."""

import numpy as np

from skdplda.plots._displays import GREY, _pyplot

__all__ = ["AttackRocDisplay"]

STYLES = (  # Okabe and Ito's palette and dashes: told apart with any colour vision, and in print
    ("#0072B2", "-"),
    ("#D55E00", "--"),
    ("#009E73", "-."),
    ("#CC79A7", ":"),
    ("#E69F00", (0, (5, 1, 1, 1, 1, 1))),
    ("#56B4E9", (0, (1, 1))),
    ("#000000", (0, (8, 3))),
)


class AttackRocDisplay:
    """Curves of true over false positives of attacks, both axes logarithmic.

    Parameters
    ----------
    results : AttackResult or sequence of AttackResult
        Attacks; their names label the curves.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure that holds it.

    See Also
    --------
    skdplda.attacks.AttackResult : Scores and rates of an attack.

    Examples
    --------
    >>> from skdplda.attacks import AttackResult
    >>> from skdplda.plots import AttackRocDisplay
    >>> result = AttackResult([3.0, 2.0, 1.0, 0.0], [True, True, False, False], "perfect")
    >>> AttackRocDisplay(results=[result]).plot().ax_.get_xscale()
    'log'
    """

    def __init__(self, *, results):
        self.results = results

    def plot(self, ax=None, *, least=None, fpr=0.001, title=None):
        """Draw the curves and the line of guessing.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.
        least : float, default=None
            Start of both axes. None takes the rate of one false alarm, rounded down to a power of ten.
        fpr : float, default=0.001
            The rate at which the true-positive rate is written beside each name; None leaves it out.
        title : str, default=None
            Title of the axes.

        Returns
        -------
        display : AttackRocDisplay
            This display.

        Raises
        ------
        ValueError
            If there is no result.
        """
        plt = _pyplot()
        results = list(self.results) if isinstance(self.results, (list, tuple)) else [self.results]
        if not results:
            raise ValueError("results must hold at least one attack.")
        if ax is None:
            _, ax = plt.subplots(figsize=(4.6, 5.2), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        if least is None:
            negatives = max(int((~result.labels).sum()) for result in results)
            least = 10.0 ** np.floor(np.log10(1 / max(negatives, 10)))
        ax.plot([least, 1], [least, 1], color=GREY, linewidth=0.8, label="guessing")
        for number, result in enumerate(results):
            color, dashes = STYLES[number % len(STYLES)]
            false, true, _ = result.roc()
            label = result.name or f"attack {number + 1}"
            if fpr is not None:
                label += f" ({result.tpr_at(fpr).rate:.1%})"
            # at fewer false alarms than the axis begins with, the curve is at what they give
            ax.step(np.maximum(false, least), true, where="post", color=color, linestyle=dashes, label=label)
        ax.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.02))
        ax.set_xlabel("False-positive rate")
        ax.set_ylabel("True-positive rate")
        ax.set_title(title or "", fontsize="medium", loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        heading = None if fpr is None else f"TPR at FPR {fpr:g} in parentheses"
        place = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.17)}  # below: curves may be anywhere
        ax.legend(frameon=False, fontsize="small", title=heading, title_fontsize="small", alignment="left", **place)
        return self
