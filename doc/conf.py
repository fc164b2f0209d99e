"""Configuration of the documentation."""

import os
import shutil
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

import skdplda

project = "skdplda"
author = "the skdplda developers"
copyright = "the skdplda developers"
version = release = version_of("skdplda")

# The sources beside this folder, or, where it was copied elsewhere, those that the package was imported from.
folders = (Path(__file__).parents[1], Path(skdplda.__file__).parents[1])
root = next((folder for folder in folders if (folder / "examples" / "README.txt").is_file()), None)
if root is None:
    raise FileNotFoundError(f"the examples are needed beside {Path(__file__).parent}, to build their gallery")
figures = Path(__file__).parent / "figures"  # drawn by the benchmarks, and committed there
shutil.copytree(root / "benchmarks" / "results", figures, ignore=shutil.ignore_patterns("*.csv"), dirs_exist_ok=True)
sys.path.insert(0, str(Path(__file__).parent))
import layers  # noqa: E402
import rows  # noqa: E402

layers.draw(Path(skdplda.__file__).parent, figures / "layers.png")
page = (Path(__file__).parent / "reproductions.rst").read_text(encoding="utf-8")
unnamed = [path.name for path in sorted((root / "benchmarks" / "reproduce").glob("*.py")) if path.name not in page]
if unnamed:
    raise ValueError(f"reproductions.rst must have the command of each reproduced figure; it lacks {unnamed}")
os.environ.setdefault("MPLBACKEND", "agg")


def say_which_rows(app, name, source):
    """Put numbers of rows into a page, and at its end at which commits they were measured."""
    if not name.startswith(("generated/", "auto_examples/")):
        source[0] = rows.with_rows(source[0], root / "benchmarks")


def setup(app):
    """Connect what this file adds."""
    app.connect("source-read", say_which_rows)


extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas without a network
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"
exclude_patterns = ["_build", "sg_execution_times.rst"]
autodoc_default_options = {"members": True, "undoc-members": False}

# What a newcomer reads first; new examples come last.
ORDER = ("quickstart", "choose_epsilon", "fdptm_end_to_end", "look_at_topics", "user_level_mail", "streaming")
ORDER += ("local_crowd", "attack_and_defence", "audit_a_claim", "pipeline_grid_search", "vips_top_words")
sphinx_gallery_conf = {
    "examples_dirs": [str(root / "examples")],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": ExplicitOrder([*(f"{name}.py" for name in ORDER), "*"]),
    "plot_gallery": os.environ.get("SKDPLDA_GALLERY", "1") != "0",  # 0: their text only, without running them
    "junit": "gallery.xml",  # their times, in the folder of the pages
    "download_all_examples": False,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"  # that of the ecosystem; light and dark
html_title = f"skdplda {version}"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}
html_static_path = ["static"]
html_css_files = ["wide.css"]
