"""Displays: topics and how alike they are, what privacy costs, how fits go, what attacks and audits find."""

from skdplda.plots._attacks import AttackRocDisplay, AuditDisplay
from skdplda.plots._curves import PrivacyUtilityDisplay
from skdplda.plots._paths import TopicPathsDisplay
from skdplda.plots._rounds import ConvergenceDisplay, MonitorDisplay
from skdplda.plots._topics import TopicDistanceDisplay, TopWordsDisplay
from skdplda.plots._vocabulary import VocabularyDisplay

__all__ = [
    "AttackRocDisplay",
    "AuditDisplay",
    "ConvergenceDisplay",
    "MonitorDisplay",
    "PrivacyUtilityDisplay",
    "TopWordsDisplay",
    "TopicDistanceDisplay",
    "TopicPathsDisplay",
    "VocabularyDisplay",
]
