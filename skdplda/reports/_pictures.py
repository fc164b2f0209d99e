"""The pictures of a page, as SVG: a map, a tree and bars. Numbers and labels in, markup out."""

import numpy as np

from skdplda.reports._page import clean, escape

__all__ = ["noise_picture", "topic_circles", "tree_picture"]

WIDTH = 720  # of a picture, in its own units; the page scales it
ROW = 24  # height of a line of text
LARGEST = 48.0  # radius of a circle
LETTER = 7.2  # about the width of a letter


def _picture(width, height, content, description):
    return (
        f'<div class="scroll"><svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(description)}"'
        f' style="max-width:{width:.0f}px;min-width:{min(width, 560):.0f}px" xmlns="http://www.w3.org/2000/svg">'
        f"{content}</svg></div>"
    )


def _text(x, y, value, anchor="start", kind=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(value)}</text>'


def _line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _shortened(text, length):
    text = clean(text)
    return text if len(text) <= length else f"{text[: length - 1]}\u2026"


def topic_circles(places, sizes, is_noise, tips, description):
    """Return a map: a circle with a number for each topic, its area the topic's size.

    Topics of noise have another colour and a dashed line. `tips` are shown where the pointer rests, `description` is
    for readers who do not see the picture.
    """
    radius = LARGEST * np.sqrt(sizes / sizes.max())
    span = np.maximum(np.ptp(places, axis=0), 1e-9)
    scale = (WIDTH - 2 * LARGEST - 40) / span[0]
    height = float(np.clip(span[1] * scale + 2 * LARGEST + 40, 260, 520))
    scale = min(scale, (height - 2 * LARGEST - 20) / span[1])
    centre = (places.max(axis=0) + places.min(axis=0)) / 2
    at = (places - centre) * scale * [1, -1] + [WIDTH / 2, height / 2]
    parts = [_line(20, height / 2, WIDTH - 20, height / 2, "axis")]
    parts.append(_line(WIDTH / 2, 10, WIDTH / 2, height - 10, "axis"))
    for topic in np.argsort(-radius, kind="stable"):  # small ones above large ones
        kind = "circle is-noise" if is_noise[topic] else "circle"
        x, y = at[topic]
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{max(radius[topic], 5):.1f}" class="{kind}">'
        parts.append(f"{circle}<title>{escape(tips[topic])}</title></circle>")
    parts += [_text(x, y + 4.5, str(topic), "middle") for topic, (x, y) in enumerate(at)]
    return _picture(WIDTH, height, "".join(parts), description)


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


def tree_picture(tree, labels, is_noise, description):
    """Return a tree, as from scipy's `linkage`, with its leaves at the left, a row each; those of noise are marked."""
    leaves, branches = layout(tree)
    shown = [_shortened(f"{labels[leaf]}{' (noise)' if is_noise[leaf] else ''}", 44) for leaf in leaves]
    left = min(max(len(text) for text in shown) * LETTER + 12, 330)
    most = max(float(tree[:, 2].max()), 1e-9)
    most = min(1.0, np.ceil(most * 10) / 10) if most <= 1 else most
    height = ROW * len(leaves) + 44

    def x(distance):
        return left + distance / most * (WIDTH - left - 24)

    def y(row):
        return 12 + ROW * (row + 0.5)

    parts = [
        _text(left - 8, y(row) + 4.5, text, "end", "quiet" if is_noise[leaf] else "")
        for row, (leaf, text) in enumerate(zip(leaves, shown, strict=True))
    ]
    for tick in np.linspace(0, most, 5):
        parts.append(_line(x(tick), 8, x(tick), height - 28, "axis"))
        parts.append(_text(x(tick), height - 10, f"{tick:.2f}", "middle", "quiet"))
    for rows, distances in branches:
        points = " ".join(f"{x(d):.1f},{y(r):.1f}" for r, d in zip(rows, distances, strict=True))
        parts.append(f'<polyline points="{points}" class="branch"/>')
    return _picture(WIDTH, height, "".join(parts), description)


def noise_picture(signal, floor, is_noise, labels, description):
    """Return bars of signal-to-noise ratios, one a topic, and the line of the noise."""
    shown = [_shortened(label, 28) for label in labels]
    left = max(len(text) for text in shown) * LETTER + 12
    most = max(float(np.nanmax(signal)), floor) * 1.05
    height = ROW * len(shown) + 44
    scale = (WIDTH - left - 70) / most
    parts = []
    for row, (label, value) in enumerate(zip(shown, signal, strict=True)):
        top = 14 + ROW * row
        kind = "mark is-noise" if is_noise[row] else "mark"
        parts.append(_text(left - 8, top + 14, label, "end"))
        place = f'x="{left:.1f}" y="{top:.1f}" width="{value * scale:.1f}" height="{ROW - 7}"'
        parts.append(f'<rect {place} class="{kind}"/>')
        parts.append(_text(left + value * scale + 6, top + 14, f"{value:.2f}", "start", "quiet"))
    parts.append(_line(left + floor * scale, 6, left + floor * scale, height - 28, "floor"))
    parts.append(_text(left + floor * scale, height - 10, f"noise floor {floor:g}", "middle", "quiet"))
    return _picture(WIDTH, height, "".join(parts), description)
