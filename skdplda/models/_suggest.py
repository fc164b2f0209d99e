"""How many topics survive the noise, from public numbers alone."""

import math
from typing import NamedTuple

from skdplda._checks import is_integer, is_real
from skdplda.privacy import calibrate_gaussian, check_delta, check_epsilon

# The best number of topics grew with the root of the signal on 20 pairs of a corpus and an epsilon, at 2 to 60 topics
# (doc/frontier.rst, "How many topics"): times this, it was within a factor of 1.5 of the best, or as good, on most.
TOPICS_PER_ROOT = 0.36
# The signal at which about half of the gap between word frequencies and topics without noise is kept; same runs.
HALF_SIGNAL = 400.0


class TopicSuggestion(NamedTuple):
    """What `suggest_n_components` returns.

    Parameters
    ----------
    n_components : int
        Number of topics.
    expected_share : float
        Estimate of the share that such topics keep, of the gap in held-out log-perplexity between word frequencies and
        topics without noise. It was within 0.2 on most corpora that were tried, and too large for texts of up to 12
        words, for some thousand long documents and for users (doc/frontier.rst). Below 0.2, expect word frequencies.
    signal : float
        Mass of all documents over the noise that the whole budget leaves in a column of words.
    """

    n_components: int
    expected_share: float
    signal: float


def suggest_n_components(
    epsilon: float, delta: float, nominal_size: int, words_per_document: float, n_words: int
) -> TopicSuggestion:
    """Suggest a number of topics, from public numbers alone: fewer topics survive more noise.

    A document contributes one unit of L2 norm, the root of its number of words in mass. What is above the noise is
    divided among the topics.

    Parameters
    ----------
    epsilon, delta : float
        What the topics may spend; in a pipeline that selects words privately, what is left for the topics.
    nominal_size : int
        A public estimate of the number of documents.
    words_per_document : float
        A public estimate of the number of different words of a document that are in the vocabulary.
    n_words : int
        Size of the vocabulary.

    Returns
    -------
    suggestion : TopicSuggestion
        At least 2 topics, at most the number of words.

    Raises
    ------
    ValueError
        If a number is out of range, or epsilon is infinite: without noise, only the data say how many topics there are.

    Examples
    --------
    >>> from skdplda.model_selection import suggest_n_components
    >>> suggest_n_components(1.0, 1e-5, nominal_size=15_000, words_per_document=40, n_words=1000).n_components
    10
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if math.isinf(epsilon):
        raise ValueError("epsilon must be finite: without noise, only the data say how many topics there are.")
    for name, value in (("nominal_size", nominal_size), ("n_words", n_words)):
        if not is_integer(value) or not 1 <= value <= 2**53:  # larger ones are no exact floats
            raise ValueError(f"{name} must be an integer from 1 to 2**53; got {value!r}.")
    if not is_real(words_per_document) or not 1 <= words_per_document <= n_words:
        raise ValueError(f"words_per_document must be from 1 to n_words={n_words}; got {words_per_document!r}.")
    noise = calibrate_gaussian(epsilon, delta)
    signal = int(nominal_size) * math.sqrt(words_per_document / n_words) / noise
    n_components = max(2, min(int(n_words), round(TOPICS_PER_ROOT * math.sqrt(signal))))
    return TopicSuggestion(n_components, signal / (signal + HALF_SIGNAL), signal)
