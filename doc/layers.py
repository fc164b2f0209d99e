"""Draw the packages of skdplda as layers, from their imports: what stands higher is built from what stands below."""

import ast
import sys
from pathlib import Path

from matplotlib.figure import Figure

WORDS = {  # what each package is for; one without a line here is drawn without it
    "_kernels": "Cython loops over arrays",
    "_reading": "words of texts",
    "_texts": "checks of texts",
    "_validation": "checks of input",
    "privacy": "guarantees, noise, ledger",
    "metrics": "perplexity, coherence",
    "datasets": "readers, disk",
    "semantics": "phrases, similarity",
    "attacks": "membership inference",
    "local": "what runs on a device",
    "distributed": "documents on workers",
    "rounds": "the private loop",
    "models": "estimators",
    "vocabulary": "private words",
    "published": "what is only claimed",
    "releases": "what may be published",
    "model_selection": "private search",
    "audit": "lower bounds on epsilon",
    "plots": "displays",
    "cli": "the command line",
}
SMALL = ("__init__", "__main__", "_rows", "_types", "_files", "_optional", "exceptions", "_version")


def imports(folder):
    """Return {package: the packages that it imports} of the source in a folder."""
    found = {}
    for path in sorted(Path(folder).rglob("*.py")):
        name = path.relative_to(folder).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = (
                    [f"skdplda.{alias.name}" for alias in node.names] if node.module == "skdplda" else [node.module]
                )
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            others = {module.split(".")[1] for module in modules if module.startswith("skdplda.")}
            found.setdefault(name, set()).update(others - {name})
    packages = set(found) - set(SMALL)
    return {name: others & packages for name, others in found.items() if name in packages}


def layers(needs):
    """Return the packages of each layer, lowest first: each stands right above the highest that it needs."""
    height = {}
    while len(height) < len(needs):
        ready = [name for name in needs if name not in height and needs[name] <= set(height)]
        if not ready:
            raise ValueError(f"these packages import each other: {sorted(set(needs) - set(height))}")
        for name in ready:
            height[name] = 1 + max((height[other] for other in needs[name]), default=-1)
    return [sorted(n for n in needs if height[n] == level) for level in range(max(height.values()) + 1)]


def draw(source, output):
    """Write the picture."""
    rows = layers(imports(source))
    figure = Figure(figsize=(9, 0.8 * len(rows) + 0.2), layout="constrained")
    axes = figure.add_subplot(xlim=(0, 1), ylim=(0, len(rows)))
    axes.set_axis_off()
    for level, names in enumerate(rows):
        width = 1 / len(names)
        for column, name in enumerate(names):
            left, bottom = column * width + 0.005, level + 0.06
            axes.add_patch(_box(left, bottom, width - 0.01, 0.88, "#dce9f5" if level % 2 else "#eef4fa"))
            middle = left + width / 2 - 0.005
            axes.text(middle, bottom + 0.56, name, ha="center", va="center", weight="bold", size=9)
            axes.text(middle, bottom + 0.26, WORDS.get(name, ""), ha="center", va="center", size=6.5, color="#444444")
    figure.savefig(output)


def _box(left, bottom, width, height, color):
    from matplotlib.patches import Rectangle

    return Rectangle((left, bottom), width, height, facecolor=color, edgecolor="#7a98b5", linewidth=0.8)


if __name__ == "__main__":
    draw(sys.argv[1], sys.argv[2])
