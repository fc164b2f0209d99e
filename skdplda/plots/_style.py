"""What all displays share: colours and dashes that any eye can distinguish, axes, names of topics."""

from textwrap import fill

import numpy as np

# Okabe and Ito's palette: distinct for any colour vision. Curves differ by markers too, or by dashes.
BLUE, VERMILION, GREY, FAINT = "#0072B2", "#D55E00", "#555555", "#A8A8A8"
STYLES = (  # color, marker, dashes for curves without markers
    (BLUE, "o", "-"),
    (VERMILION, "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#E69F00", "v", (0, (5, 1, 1, 1, 1, 1))),
    ("#56B4E9", "P", (0, (1, 1))),
    (GREY, "X", (0, (8, 3))),
    ("#000000", "*", (0, (3, 1, 1, 1))),
)
WIDE_FONTS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "IPAGothic",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Apple SD Gothic Neo",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Noto Sans Arabic",
    "Noto Sans Devanagari",
)
DASHES = {"proven": "-", "claimed": "--", "diagnostic": ":"}  # of curves that stand for a guarantee


def listed(things, name, one):
    """Return a list of things, or of one thing alone; ValueError if there is none."""
    found = list(things) if isinstance(things, (list, tuple)) else [things]
    if not found:
        raise ValueError(f"{name} must hold at least one {one}.")
    return found


def new_axes(ax, size, display=None):
    """Return the given axes, or one of a new figure of the given size in inches; a display keeps both."""
    from matplotlib import pyplot as plt  # here: it takes a while, and whoever draws nothing does not need it

    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    if display is not None:
        display.ax_, display.figure_ = ax, ax.figure
    return ax


def titled(what, estimator):
    """Return what a picture shows and the epsilon of the model that it is of, for its title."""
    guarantee = getattr(estimator, "privacy_guarantee_", None)
    if guarantee is None and hasattr(estimator, "privacy_cost"):
        try:
            guarantee = estimator.privacy_cost()
        except ValueError:  # it needs to know the number of words, or will not fit at all
            guarantee = None
    return what if guarantee is None else f"{what}; {guarantee.caption}"


def literal(text):
    """Return a text in which matplotlib takes no dollar for the beginning of a formula: words may have some."""
    return str(text).replace("$", r"\$")


def of_all_scripts(figure):
    """Let what the font of a figure's texts has no glyphs for be drawn by others that are installed."""
    from matplotlib import font_manager, text

    installed = {font.name for font in font_manager.fontManager.ttflist}
    others = [name for name in WIDE_FONTS if name in installed]
    for label in figure.findobj(text.Text) if others else ():
        if not label.get_text().isascii():
            label.set_fontfamily([*label.get_fontfamily(), *others])


def set_title(ax, title):
    """Write a title above the axes, in more lines if it is longer than they are wide."""
    if title:
        letters = max(24, int(ax.get_position().width * ax.figure.bbox.width / ax.figure.dpi * 12))  # or a subfigure
        ax.set_title(literal(fill(title, letters)), fontsize="medium", loc="left")


def legend_below(ax, heading=None):
    """Draw the legend below the axes, where it covers no curve."""
    place = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.17)}
    ax.legend(frameon=False, fontsize="small", title=heading, title_fontsize="small", alignment="left", **place)


def epsilon_axis(ax, epsilons, unit=None):
    """Draw the horizontal axis as epsilon, logarithmic, with a tick at each of the given values."""
    ax.set_xscale("log")
    ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    ax.xaxis.minorticks_off()
    ax.set_xlabel("Privacy loss epsilon" + (f" (per {unit})" if unit else ""))


def names_of_topics(names, n_topics):
    """Return a name for each topic; topics are never renumbered."""
    names = [f"topic_{topic}" for topic in range(n_topics)] if names is None else [str(name) for name in names]
    if len(names) != n_topics:
        raise ValueError(f"topic_names must name the {n_topics} topics; got {len(names)} names.")
    return np.array(names, dtype=object)
