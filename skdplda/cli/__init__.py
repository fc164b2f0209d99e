"""The command line: `skdplda fit`, `cost`, `release` and the others."""

from skdplda.cli._main import main

__all__ = ["main"]
