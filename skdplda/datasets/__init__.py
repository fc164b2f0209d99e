"""Corpora: synthetic ones with planted topics, and readers of public ones."""

from skdplda.datasets._readers import load_20newsgroups, load_lee, load_uci_bow
from skdplda.datasets._synthetic import make_lda_corpus, topic_recovery

__all__ = ["load_20newsgroups", "load_lee", "load_uci_bow", "make_lda_corpus", "topic_recovery"]
