"""Search over hyper-parameters whose own cost is part of the guarantee, and how many topics a budget allows."""

from skdplda.model_selection._cost import search_cost
from skdplda.model_selection._search import PrivateSearchCV
from skdplda.models import TopicSuggestion, suggest_n_components

__all__ = ["PrivateSearchCV", "TopicSuggestion", "search_cost", "suggest_n_components"]
