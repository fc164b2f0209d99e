"""How good topics are: held-out likelihood, coherence, diversity. Arrays in, floats out."""

from skdplda.metrics._coherence import topic_diversity, u_mass_coherence
from skdplda.metrics._following import follow_topics, join_topics, match_topics
from skdplda.metrics._gensim import coherence, gensim_dictionary, make_coherence_scorer, make_gensim_model
from skdplda.metrics._likelihood import (
    held_out_log_likelihood,
    log_likelihood,
    perplexity,
    score,
    score_samples,
    unigram_perplexity,
)
from skdplda.metrics._topics import apart as apart  # for pictures, and no part of `__all__`
from skdplda.metrics._topics import topic_distances, topic_map, topic_relevance
from skdplda.metrics._vocabulary import missing_mass, token_mass

__all__ = [
    "coherence",
    "follow_topics",
    "gensim_dictionary",
    "held_out_log_likelihood",
    "join_topics",
    "log_likelihood",
    "make_coherence_scorer",
    "make_gensim_model",
    "match_topics",
    "missing_mass",
    "perplexity",
    "score",
    "score_samples",
    "token_mass",
    "topic_distances",
    "topic_diversity",
    "topic_map",
    "topic_relevance",
    "u_mass_coherence",
    "unigram_perplexity",
]
