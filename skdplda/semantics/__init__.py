"""What is known of meaning before topics are: semantic units of a document, similarity of words."""

from skdplda.semantics._embedded import EmbeddedTexts
from skdplda.semantics._similarity import word_similarity
from skdplda.semantics._units import UnitMatrix
from skdplda.semantics._vectorizer import SemanticUnitVectorizer

__all__ = ["EmbeddedTexts", "SemanticUnitVectorizer", "UnitMatrix", "word_similarity"]
