"""Displays: the topics' words, and what privacy costs in utility."""

from skdplda.plots._displays import PrivacyUtilityDisplay, TopWordsDisplay

__all__ = ["PrivacyUtilityDisplay", "TopWordsDisplay"]
