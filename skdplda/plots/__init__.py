"""Displays: the topics' words, what privacy costs in utility, and what attacks find."""

from skdplda.plots._displays import PrivacyUtilityDisplay, TopWordsDisplay
from skdplda.plots._roc import AttackRocDisplay

__all__ = ["AttackRocDisplay", "PrivacyUtilityDisplay", "TopWordsDisplay"]
