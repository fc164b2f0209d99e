"""Insights at user level: texts in, private clusters and their keywords out, for one budget."""

import math
from typing import Any, Literal

from sklearn.base import clone

from skdplda._checks import is_real
from skdplda._types import Sequence
from skdplda.models import EmbeddingTopics
from skdplda.privacy import check_delta, check_epsilon
from skdplda.releases._pipeline import PrivatePipeline
from skdplda.releases._recipe import calibrate
from skdplda.semantics import WordVectorEmbedder
from skdplda.vocabulary import DPCountVectorizer, TextEmbedder


def make_insights_pipeline(
    epsilon: float = 1.0,
    delta: float = 1e-5,
    *,
    embedder: Any,
    n_components: int | None = None,
    public_vocabulary: Sequence[str] | Literal["embedder"] | None = "embedder",
    vocabulary_share: float = 0.2,
    vectorizer: DPCountVectorizer | None = None,
    model: EmbeddingTopics | None = None,
    groups: bool = False,
) -> PrivatePipeline:
    """Make a pipeline from raw texts to private clusters with keywords, for one total budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Total privacy loss of words and clusters; inf for none.
    delta : float, default=1e-5
        Total delta. Where words are chosen privately, one half goes to each step.
    embedder : object with `transform` or `encode`, or callable
        Makes an array of a list of texts, and is public: a :class:`~skdplda.semantics.WordVectorEmbedder`, or a
        sentence embedding model, such as a `SentenceTransformer`, which is called with one text at a time.
    n_components : int or None, default=None
        Number of clusters. None leaves that of `model`.
    public_vocabulary : sequence of str, "embedder" or None, default="embedder"
        Public words, and phrases of several words: none of the budget goes to their choice. "embedder": the words of an
        embedder that has `public_words`, without stop words and those of two letters; where it has none, and with a
        `vectorizer`, as None: words are chosen from the texts.
    vocabulary_share : float, default=0.2
        Share of epsilon that chooses words from the texts, in (0, 1).
    vectorizer : DPCountVectorizer or None, default=None
        Its text settings and mechanism are kept, its budget is replaced. None: English stop words are left out, a word
        counts once a text, and there are phrases as long as those of `public_vocabulary`.
    model : EmbeddingTopics or None, default=None
        Its budget is replaced, and, where the embedder has `public_rows`, its `public_rows`, unless it has some.
    groups : bool, default=False
        Whether `fit` will be given groups, the users of documents. A fit without them is then refused.

    Returns
    -------
    pipeline : PrivatePipeline
        Unfitted, with steps "texts" and "topics". `privacy_guarantee(pipeline)` is its total. Groups are given
        once: `pipeline.fit(texts, groups=users)`.

    Raises
    ------
    ValueError
        If the budget or a share is out of range, or a step refuses its part.

    Examples
    --------
    >>> from skdplda import make_insights_pipeline, privacy_guarantee
    >>> from skdplda.semantics import WordVectorEmbedder
    >>> embedder = WordVectorEmbedder({"tea": [1.0, 0.0], "milk": [0.0, 1.0]})
    >>> pipeline = make_insights_pipeline(1.0, 1e-6, embedder=embedder, n_components=2)
    >>> privacy_guarantee(pipeline)
    PrivacyGuarantee(epsilon=1, delta=1e-6, document, add-remove, central, proven)
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if not is_real(vocabulary_share) or not 0 < vocabulary_share < 1:
        raise ValueError(f"vocabulary_share must be a number above 0 and below 1; got {vocabulary_share!r}.")
    n_jobs = embedder.n_jobs if isinstance(embedder, WordVectorEmbedder) else None
    words = DPCountVectorizer(stop_words="english", binary=True, n_jobs=n_jobs)
    words = clone(words if vectorizer is None else vectorizer)
    if isinstance(public_vocabulary, str):
        if public_vocabulary != "embedder":
            raise ValueError(f"public_vocabulary must be words, 'embedder' or None; got {public_vocabulary!r}.")
        public_vocabulary = words_of(embedder, words.build_analyzer()) if vectorizer is None else None
    topics = clone(EmbeddingTopics() if model is None else model)
    if n_components is not None:
        topics.set_params(n_components=n_components)
    if hasattr(embedder, "public_rows") and topics.public_rows is None:
        rows, weights = embedder.public_rows()
        topics.set_params(public_rows=rows, public_weights=weights)
    if public_vocabulary is not None:
        public_vocabulary = list(public_vocabulary)
        words.set_params(public_vocabulary=public_vocabulary)
        if vectorizer is None:
            words.set_params(ngram_range=(1, max((len(str(word).split()) for word in public_vocabulary), default=1)))
        topics.set_params(epsilon=epsilon, delta=delta)
    else:
        words.set_params(epsilon=vocabulary_share * epsilon, delta=delta / 2)
        topics.set_params(epsilon=epsilon, delta=delta / 2)
        if math.isfinite(epsilon):
            calibrate(topics, epsilon, words.privacy_cost(groups=groups), groups)
    texts = TextEmbedder(embedder, words, topics._n_features_of_public())
    return PrivatePipeline([("texts", texts), ("topics", topics)], groups=groups)


def words_of(embedder, analyze):
    """Return the public words of an embedder that an analyzer makes of themselves, or None if there are none."""
    given = embedder.public_words() if hasattr(embedder, "public_words") else []
    return [word for word in given if (len(word) > 2 or not word.isascii()) and analyze(word) == [word]] or None
