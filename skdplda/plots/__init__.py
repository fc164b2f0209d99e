"""Displays: the topics' words, what privacy costs in utility, how many words may be named, what attacks find."""

from skdplda.plots._displays import PrivacyUtilityDisplay, TopWordsDisplay
from skdplda.plots._roc import AttackRocDisplay
from skdplda.plots._vocabulary import VocabularySizeDisplay

__all__ = ["AttackRocDisplay", "PrivacyUtilityDisplay", "TopWordsDisplay", "VocabularySizeDisplay"]
