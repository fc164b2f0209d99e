"""Corpora: synthetic ones with planted topics, and readers of public ones."""

from skdplda.datasets._disk import DiskCounts, open_counts, write_counts
from skdplda.datasets._readers import load_20newsgroups, load_gensim_corpus, load_lee, load_uci_bow
from skdplda.datasets._synthetic import make_lda_corpus, make_news_corpus, topic_recovery

__all__ = [
    "DiskCounts",
    "load_20newsgroups",
    "load_gensim_corpus",
    "load_lee",
    "load_uci_bow",
    "make_lda_corpus",
    "make_news_corpus",
    "open_counts",
    "topic_recovery",
    "write_counts",
]
