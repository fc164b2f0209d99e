"""Corpora: synthetic ones with planted topics, and readers of public ones."""

from skdplda.datasets._disk import DiskCounts, open_counts, write_counts
from skdplda.datasets._readers import load_20newsgroups, load_gensim_corpus, load_lee, load_uci_bow
from skdplda.datasets._synthetic import make_lda_corpus, make_news_corpus, topic_recovery
from skdplda.datasets._words import frequent_words, stop_words

__all__ = [
    "DiskCounts",
    "frequent_words",
    "load_20newsgroups",
    "load_gensim_corpus",
    "load_lee",
    "load_uci_bow",
    "make_lda_corpus",
    "make_news_corpus",
    "open_counts",
    "stop_words",
    "topic_recovery",
    "write_counts",
]
