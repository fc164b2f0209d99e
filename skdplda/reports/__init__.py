"""A page of topics that people can read: one file, no network."""

from skdplda.reports._report import report

__all__ = ["report"]
