"""A bridge to pyLDAvis that shows released values unless it is given documents."""

import numpy as np

from skdplda._optional import import_optional
from skdplda._validation import counts_of
from skdplda._warnings import warn
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.metrics import topic_distances, topic_map
from skdplda.plots._topics import sizes_of_topics

__all__ = ["prepare_ldavis"]

NOMINAL_TOKENS = 1_000_000  # the page counts words in a corpus of this size, whatever the true size is
LEAST = 1e-12  # pyLDAvis takes logarithms


def prepare_ldavis(model, *, X=None, feature_names=None, n_words=30, relevance_step=0.1):
    """Prepare the interactive page of pyLDAvis for a fitted topic model.

    The topics keep their numbers: pyLDAvis would sort them by size and count from 1. The page has one place for "no
    topic", which it calls 0 as well; so click on the circle of topic 0, which its button "Next Topic" passes over.

    By default the page is made of released values only, and may be published like the model: topics, their words, and
    their shares in `components_` (equal shares where the model holds none). Frequencies are those of a corpus of a
    million tokens.

    Given documents, the page shows how often topics and words occur in them, as pyLDAvis usually does. It then embeds
    exact statistics of these documents: from the frequencies in its source anyone who has the topics computes how many
    tokens the documents have in each topic and in all. That is covered by no guarantee; it warns.

    Parameters
    ----------
    model : estimator
        A fitted model, or a `ReleasedTopicModel`.
    X : array-like or sparse matrix of shape (n_documents, n_words), or texts, default=None
        Public documents, as the model's `transform` takes them. None: released values only.
    feature_names : array-like of str of shape (n_words,), default=None
        The vocabulary. None takes the model's own, else column numbers.
    n_words : int, default=30
        Words shown for each topic.
    relevance_step : float, default=0.1
        Step of the slider, in (0, 1]. The page's size and the time to make it grow as it falls.

    Returns
    -------
    prepared : pyLDAvis.PreparedData
        For `pyLDAvis.save_html(prepared, "topics.html")` or `pyLDAvis.display(prepared)`. The page loads its programs
        from the web: offline it stays empty. :func:`skdplda.reports.report` writes a page that loads nothing.

    Raises
    ------
    ImportError
        If pyLDAvis is not installed.
    ValueError
        If the documents are empty or `relevance_step` is out of range; as `top_words` raises.

    Warns
    -----
    PrivacyLeakWarning
        If documents are given.

    Examples
    --------
    >>> from skdplda import PrivateCGSLDA
    >>> from skdplda.datasets import make_lda_corpus
    >>> from skdplda.plots import prepare_ldavis
    >>> corpus = make_lda_corpus(2000, 40, 3, random_state=0)
    >>> model = PrivateCGSLDA(3).fit(corpus.data)
    >>> page = prepare_ldavis(model, feature_names=corpus.feature_names)  # doctest: +SKIP
    >>> sorted(page.topic_coordinates["topics"])  # doctest: +SKIP
    [0, 1, 2]
    """
    if not 0 < relevance_step <= 1:
        raise ValueError(f"relevance_step must be above 0 and at most 1; got {relevance_step!r}.")
    by_rank = model.top_words(model.topic_word_.shape[1], feature_names, relevance=1).to_numpy()[0]  # checks the names
    vocabulary = np.empty(len(by_rank), dtype=object)
    vocabulary[np.argsort(-model.topic_word_[0], kind="stable")] = by_rank
    ldavis = import_optional("pyLDAvis", purpose="The page of topics", install="pyLDAvis")
    topics = np.maximum(model.topic_word_, LEAST)
    topics = topics / topics.sum(axis=1, keepdims=True)
    if X is None:
        doc_topic, lengths = np.eye(len(topics)), NOMINAL_TOKENS * sizes_of_topics(model)
    else:
        warn(
            "the page will embed exact statistics of the documents X: how often each topic and word occurs, and how"
            " many tokens there are. Publish it only if these documents are public; leave X out to show released"
            " values only.",
            PrivacyLeakWarning,
        )
        doc_topic, lengths = model.transform(X), _lengths(model, X)
    return ldavis.prepare(
        topics,
        np.asarray(doc_topic),
        lengths,
        vocabulary.astype(str),
        lengths.sum() * topics.mean(axis=0),  # pyLDAvis asks for it, and computes its own
        R=n_words,
        lambda_step=relevance_step,
        mds=lambda _: topic_map(topic_distances(topics)),
        n_jobs=1,
        sort_topics=False,
        start_index=0,
    )


def _lengths(model, X):
    """Return the number of tokens of each document."""
    lengths = np.asarray(counts_of(model._counts(X)).sum(axis=1), dtype=np.float64).ravel()
    if not lengths.sum() > 0:
        raise ValueError("X must hold a word of the vocabulary; all of its documents are empty.")
    return lengths
