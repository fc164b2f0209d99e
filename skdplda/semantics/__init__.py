"""What is known of meaning before topics are: semantic units of a document, similarity of words."""

from skdplda.semantics._embedded import EmbeddedTexts
from skdplda.semantics._embedding import embedded  # noqa: F401  for the package
from skdplda.semantics._similarity import word_similarity
from skdplda.semantics._units import UnitMatrix
from skdplda.semantics._vectorizer import SemanticUnitVectorizer
from skdplda.semantics._word_vectors import WordVectorEmbedder

__all__ = ["EmbeddedTexts", "SemanticUnitVectorizer", "UnitMatrix", "WordVectorEmbedder", "word_similarity"]
