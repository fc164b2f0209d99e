"""Displays: the topics' words, what privacy costs in utility, and how many words may be named."""

from skdplda.plots._displays import PrivacyUtilityDisplay, TopWordsDisplay
from skdplda.plots._vocabulary import VocabularySizeDisplay

__all__ = ["PrivacyUtilityDisplay", "TopWordsDisplay", "VocabularySizeDisplay"]
