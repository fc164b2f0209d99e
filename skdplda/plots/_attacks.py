"""What attacks find: ROC curves on logarithmic axes, and what audits show beside what is claimed."""

from dataclasses import replace
from textwrap import fill

import numpy as np

from skdplda.plots._style import (
    BLUE,
    GREY,
    STYLES,
    VERMILION,
    legend_below,
    listed,
    literal,
    new_axes,
    set_title,
)

ROW_HEIGHT, NAME = 0.5, 40  # inches; characters of a line
MOST_SHOWN = 1e3  # an epsilon beyond is drawn at the edge


class AttackRocDisplay:
    """Curves of true over false positives of attacks, both axes logarithmic.

    Parameters
    ----------
    results : AttackResult, sequence of AttackResult or dict of str to AttackResult
        Attacks; their names label the curves. Of a dictionary, as `membership_experiment` returns it, its keys name
        results without a name.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

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
            Title of the axes. None: "What attacks find".

        Returns
        -------
        display : AttackRocDisplay
            This display.

        Raises
        ------
        ValueError
            If there is no result.
        """
        results = self.results
        if isinstance(results, dict):
            results = [found if found.name else replace(found, name=name) for name, found in results.items()]
        results = listed(results, "results", "attack")
        ax = new_axes(ax, (4.6, 5.2), self)
        if least is None:
            negatives = max(int((~result.labels).sum()) for result in results)
            least = 10.0 ** np.floor(np.log10(1 / max(negatives, 10)))
        ax.plot([least, 1], [least, 1], color=GREY, linewidth=0.8, label="guessing")
        for number, result in enumerate(results):
            color, _, dashes = STYLES[number % len(STYLES)]
            false, true, _ = result.roc()
            label = result.name or f"attack {number + 1}"
            if fpr is not None:
                label += f" ({result.tpr_at(fpr).rate:.1%})"
            # at fewer false alarms than the axis begins with, the curve is at what they give
            ax.step(np.maximum(false, least), true, where="post", color=color, linestyle=dashes, label=literal(label))
        ax.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.02))
        ax.set_xlabel("False-positive rate")
        ax.set_ylabel("True-positive rate")
        set_title(ax, "What attacks find" if title is None else title)
        legend_below(ax, None if fpr is None else f"TPR at FPR {fpr:g} in parentheses")
        return self


class AuditDisplay:
    """What audits showed, beside what was claimed.

    Each row has a bar up to the lower bound, which an attacker showed, and a mark at the claim: filled if it is proven,
    open if it is not. A bar beyond its mark refutes the claim. Epsilons of different units may be in one picture, but
    do not compare; each row names its unit.

    Parameters
    ----------
    reports : AuditReport or sequence of AuditReport
        One a row.
    names : sequence of str, default=None
        Of the rows. None takes the first words of what each guarantee says of its mechanism.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> from skdplda import PrivacyGuarantee
    >>> from skdplda.audit import AuditReport
    >>> from skdplda.plots import AuditDisplay
    >>> report = AuditReport(PrivacyGuarantee(epsilon=3.0), 1.2, 0.95, "one-run", "", False)
    >>> AuditDisplay(reports=[report]).plot().ax_.get_xlabel()
    'Privacy loss epsilon'
    """

    def __init__(self, *, reports, names=None):
        self.reports = reports
        self.names = names

    def plot(self, ax=None):
        """Draw one row a report, the first on top.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.

        Returns
        -------
        display : AuditDisplay
            This display.

        Raises
        ------
        ValueError
            If there is no report, or another number of names.
        """
        reports = listed(self.reports, "reports", "audit")
        names = [report.claim.mechanism.partition(":")[0].partition(",")[0] for report in reports]
        names = names if self.names is None else list(self.names)
        if len(names) != len(reports):
            raise ValueError(f"names must name the {len(reports)} reports; got {len(names)}.")
        ax = new_axes(ax, (7.0, 1.6 + ROW_HEIGHT * len(reports)), self)
        finite = [x for report in reports for x in (report.claim.epsilon, report.lower_bound) if x < MOST_SHOWN]
        edge = 1.15 * max(finite, default=1.0) or 1.0
        for row, report in enumerate(reports):
            color = VERMILION if report.violated else BLUE
            ax.barh(row, min(report.lower_bound, edge), height=0.5, color=color, alpha=0.75)
            proven = report.claim.status == "proven"
            face = "black" if proven else "white"
            ax.plot(min(report.claim.epsilon, edge), row, "D", color="black", markerfacecolor=face, clip_on=False)
            if report.claim.epsilon > edge:
                ax.annotate(f"{report.claim.epsilon:g} ", (edge, row), ha="right", va="bottom", fontsize="small")
        rows = zip(names, reports, strict=True)
        labels = [f"{fill(name, NAME)}\nper {report.claim.unit}, delta {report.claim.delta:g}" for name, report in rows]
        ax.set_yticks(range(len(reports)), [*map(literal, labels)], fontsize="small")
        ax.invert_yaxis()
        ax.set_xlim(0, edge)
        ax.set_xlabel("Privacy loss epsilon")
        self._legend(ax, reports)
        return self

    def _legend(self, ax, reports):
        """Explain what is drawn, and nothing else."""
        if any(report.claim.status == "proven" for report in reports):
            ax.plot([], [], "D", color="black", label="claim, proven")
        if any(report.claim.status != "proven" for report in reports):
            ax.plot([], [], "D", color="black", markerfacecolor="white", label="claim, not proven")
        bounds = sorted({f"{report.confidence:.6g}" for report in reports})
        ax.barh(0, 0, color=BLUE, alpha=0.75, label=f"shown, with confidence {' or '.join(bounds)}")
        if any(report.violated for report in reports):
            ax.barh(0, 0, color=VERMILION, alpha=0.75, label="shown, and refutes the claim")
        title = "What audits show, beside the claims"
        if len(reports) == 1:
            title = f"What an audit shows; {reports[0].claim.caption}"
        place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}  # above: the bars may be anywhere
        text = {"fontsize": "small", "title": fill(title, 48), "title_fontsize": "medium"}
        ax.legend(frameon=False, ncols=2, alignment="left", **text, **place)
