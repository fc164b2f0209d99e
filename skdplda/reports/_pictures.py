"""The pictures of a page, as SVG: a map and a tree. Numbers and labels in, markup out."""

import numpy as np

from skdplda._texts import wide
from skdplda.metrics import apart
from skdplda.reports._page import clean, escape

__all__ = ["topic_circles", "tree_picture"]

WIDTHS = {"wide": 1000, "narrow": 340}  # of a picture in its own units, which are about pixels; one is shown
ROW = 24  # height of a line of text
LINE = 15  # of a label below a circle
LETTER = 7.4  # about the width of a letter


def _picture(kind, height, content, description):
    return (
        f'<svg class="{kind}" viewBox="0 0 {WIDTHS[kind]} {height:.0f}" role="img" aria-label="{escape(description)}"'
        f' xmlns="http://www.w3.org/2000/svg">{content}</svg>'
    )


def _text(x, y, value, anchor="start", kind=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(value)}</text>'


def _line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _width(text):
    return LETTER * wide(text)


def _shortened(text, width):
    text = clean(text)
    if _width(text) <= width:
        return text
    while text and _width(f"{text}\u2026") > width:
        text = text[:-1]
    return f"{text.rstrip(', ')}\u2026"


def topic_circles(places, sizes, labels, numbers, tips, description):
    """Return a map, for wide and narrow screens: a circle with a number for each topic, its area the topic's size.

    `labels` are words, most telling first, that stand below the circles as far as there is room. `tips` are shown where
    the pointer rests, `description` is for readers who do not see the picture.
    """
    found = []
    for kind, width in WIDTHS.items():
        largest = np.clip((150 if kind == "wide" else 80) / np.sqrt(len(sizes)), 16, 44)
        radius = np.maximum(largest * np.sqrt(sizes / sizes.max()), 9)
        most = 190 if kind == "wide" else 96
        lines = [[_shortened(word, most) for word in words[: 3 if kind == "wide" else 2]] for words in labels]
        lines = [
            [", ".join(words)] if _width(", ".join(words)) <= most else words for words in lines
        ]  # one line if it fits
        widths = np.array([max(map(_width, words), default=0) for words in lines])
        boxes = np.stack([np.maximum(widths, 2 * radius), 2 * radius + LINE * np.array([*map(len, lines)])], axis=1)
        at, height = apart(places, boxes, width, 0.45 if kind == "wide" else 1.1)
        parts = []
        for topic, (x, y) in enumerate(at):
            top = y - boxes[topic, 1] / 2 + radius[topic]
            circle = f'<circle cx="{x:.1f}" cy="{top:.1f}" r="{radius[topic]:.1f}" class="circle">'
            parts.append(f"{circle}<title>{escape(tips[topic])}</title></circle>")
            parts.append(_text(x, top + 4.5, numbers[topic], "middle", "quiet"))
            for line, words in enumerate(lines[topic], start=1):
                parts.append(_text(x, top + radius[topic] + LINE * line - 2, words, "middle"))
        found.append(_picture(kind, height + 4, "".join(parts), description))
    return "".join(found)


def layout(tree):
    """Return the leaves of a tree from above to below, and (rows, distances) of the four corners of each branch.

    It does not recurse, as scipy's `dendrogram` does: a tree may be a chain of all its leaves.
    """
    n_leaves = len(tree) + 1
    leaves, waiting = [], [2 * n_leaves - 2]
    while waiting:
        node = waiting.pop()
        if node < n_leaves:
            leaves.append(node)
        else:
            first, second = tree[node - n_leaves, :2]
            waiting += [int(second), int(first)]
    row, distance, branches = np.empty(2 * n_leaves - 1), np.zeros(2 * n_leaves - 1), []
    row[leaves] = np.arange(n_leaves)
    for node, (first, second, joined, _) in enumerate(tree, start=n_leaves):
        ends = [int(first), int(second)]
        row[node], distance[node] = row[ends].mean(), joined
        branches.append((row[ends].repeat(2), [distance[ends[0]], joined, joined, distance[ends[1]]]))
    return leaves, branches


def tree_picture(tree, labels, description):
    """Return a tree, as from scipy's `linkage`, for wide and narrow screens: its leaves at the left, a row each."""
    leaves, branches = layout(tree)
    most = max(float(tree[:, 2].max()), 1e-9)
    most = min(1.0, np.ceil(most * 10) / 10) if most <= 1 else most
    found, height = [], ROW * len(leaves) + 44
    for kind, width in WIDTHS.items():
        shown = [_shortened(labels[leaf], 0.55 * width) for leaf in leaves]
        left = max(map(_width, shown)) + 12

        def x(distance, left=left, width=width):
            return left + distance / most * (width - left - 24)

        def y(row):
            return 12 + ROW * (row + 0.5)

        parts = [_text(left - 8, y(row) + 4.5, text, "end") for row, text in enumerate(shown)]
        for tick in np.linspace(0, most, 5 if kind == "wide" else 3):
            parts.append(_line(x(tick), 8, x(tick), height - 28, "axis"))
            parts.append(_text(x(tick), height - 10, f"{tick:.2f}", "middle", "quiet"))
        for rows, distances in branches:
            points = " ".join(f"{x(d):.1f},{y(r):.1f}" for r, d in zip(rows, distances, strict=True))
            parts.append(f'<polyline points="{points}" class="branch"/>')
        found.append(_picture(kind, height, "".join(parts), description))
    return "".join(found)
