"""Configuration of the documentation."""

from importlib.metadata import version as version_of

project = "skdplda"
author = "the skdplda developers"
copyright = "the skdplda developers"
version = release = version_of("skdplda")

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "numpydoc"]
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": version, "fixed_sidebar": True}
autodoc_default_options = {"members": True, "undoc-members": False}
