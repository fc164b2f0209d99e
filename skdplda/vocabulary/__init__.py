"""Private choice of the vocabulary: which words of private texts may be named."""

from skdplda.vocabulary._embedder import TextEmbedder
from skdplda.vocabulary._selector import DPVocabularySelector
from skdplda.vocabulary._vectorizer import DPCountVectorizer

__all__ = ["DPCountVectorizer", "DPVocabularySelector", "TextEmbedder"]
