"""Search over hyper-parameters whose own cost is part of the guarantee."""

from skdplda.model_selection._cost import search_cost
from skdplda.model_selection._search import PrivateSearchCV

__all__ = ["PrivateSearchCV", "search_cost"]
