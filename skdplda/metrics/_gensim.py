"""Coherence measures of gensim for any topic model, guarded against words that the reference lacks."""

from itertools import chain
from numbers import Integral
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_matrix, issparse

from skdplda._optional import import_optional
from skdplda._types import ArrayLike, Function, Sequence
from skdplda._validation import counts_of
from skdplda.metrics._coherence import _top_words, u_mass_coherence

_ETA = 1e-6  # gensim's pseudo-count of a word, far below the counts that stand for the topics
_MASS = 2.0**20  # tokens that a topic stands for in gensim: it then takes the topics for certain
_EPSILON = 1e-12  # what gensim adds to each joint probability
# The least value of each measure: what a topic without two words of the reference scores.
_WORST = {"u_mass": np.log(_EPSILON), "c_v": 0.0, "c_uci": np.log(_EPSILON), "c_npmi": -1.0}


def gensim_dictionary(features: Any) -> Any:
    """Make a gensim dictionary whose ids are the columns of a document-word matrix.

    Parameters
    ----------
    features : vectorizer or sequence of str
        A fitted object with `get_feature_names_out`, such as a
        :class:`~sklearn.feature_extraction.text.CountVectorizer`, one that brings its own dictionary as
        `id2word`, or the words in the order of the columns.

    Returns
    -------
    dictionary : :class:`gensim.corpora.Dictionary`
        Maps words to columns and back. It holds no counts of any corpus.

    Raises
    ------
    ValueError
        If the words are no sequence of distinct str.

    Examples
    --------
    >>> from skdplda.metrics import gensim_dictionary
    >>> dictionary = gensim_dictionary(["apple", "pear"])
    >>> dictionary.token2id["pear"], dictionary[0]
    (1, 'apple')
    """
    Dictionary = _gensim("gensim.corpora").Dictionary

    if hasattr(features, "id2word"):
        return features.id2word
    names = features.get_feature_names_out() if hasattr(features, "get_feature_names_out") else features
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"features must be a fitted vectorizer or a sequence of str, got {features!r}.")
    dictionary = Dictionary()
    dictionary.id2token = {column: str(name) for column, name in enumerate(names)}
    dictionary.token2id = {name: column for column, name in dictionary.id2token.items()}
    if len(dictionary.token2id) < len(dictionary.id2token):
        raise ValueError("features must hold distinct words, got some of them twice.")
    return dictionary


def make_gensim_model(topic_word: ArrayLike, feature_names: Sequence[str], doc_topic_prior: ArrayLike) -> Any:
    """Make a gensim `LdaModel` of topics that were fitted elsewhere.

    Parameters
    ----------
    topic_word : array-like of shape (n_components, n_words)
        Topic-word distributions; rows sum to 1.
    feature_names : sequence of str of shape (n_words,)
        The words.
    doc_topic_prior : array-like of shape (n_components,)
        Dirichlet prior of topic proportions.

    Returns
    -------
    model : :class:`gensim.models.LdaModel`
        gensim can show, save and load it, and infer topics of documents. Its state holds the distributions times
        2**20, so that inference takes them as they are; no corpus was seen.

    Examples
    --------
    >>> from skdplda.metrics import make_gensim_model
    >>> model = make_gensim_model([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], ["pear", "plum", "zinc"], [0.1, 0.1])
    >>> [word for word, _ in model.show_topic(0, 2)]
    ['pear', 'plum']
    >>> model.id2word.doc2bow(["zinc", "zinc"])
    [(2, 2)]
    """
    LdaModel = _gensim("gensim.models").LdaModel

    topic_word = np.asarray(topic_word, dtype=np.float64)
    alpha = np.asarray(doc_topic_prior, dtype=np.float32)
    model = LdaModel(
        id2word=gensim_dictionary([str(name) for name in feature_names]),
        num_topics=len(topic_word),
        alpha=alpha,
        eta=_ETA,
        random_state=0,  # of its first topics, which are replaced
    )
    model.state.sstats = (topic_word * _MASS).astype(np.float32)
    model.sync_state()
    return model


def coherence(
    model: Any,
    reference: Any,
    dictionary: Any,
    *,
    measure: Literal["u_mass", "c_v", "c_uci", "c_npmi"] = "c_v",
    n_words: int = 20,
) -> float:
    """Mean coherence of the topics of a model as gensim computes it [1]_, always finite.

    gensim returns nan or infinity when a top word is missing from the reference, which topics under strong
    noise bring about. Here a topic is judged by those of its top words that occur in the reference. A topic
    that has fewer than two such words, or whose value is still not finite, scores the least value of the
    measure: ln(1e-12) for u_mass and c_uci, -1 for c_npmi, 0 for c_v.

    Parameters
    ----------
    model : estimator or array-like of shape (n_components, n_words)
        Something with `get_topics()` or `components_`, or the weights themselves.
    reference : iterable of list of str, or array or sparse matrix of shape (n_documents, n_words)
        Tokenised documents in reading order, or, for u_mass, document-word counts.
    dictionary : :class:`gensim.corpora.Dictionary`, vectorizer or sequence of str
        Names of the columns; what is no dictionary goes through :func:`gensim_dictionary`.
    measure : {"u_mass", "c_v", "c_uci", "c_npmi"}, default="c_v"
        Name of the measure. u_mass here is a mean over pairs of words; :func:`u_mass_coherence` is the sum of
        its authors.
    n_words : int, default=20
        Words per topic, at least 2; as many as gensim's `CoherenceModel` takes by default.

    Returns
    -------
    coherence : float
        Mean over topics; the larger the better.

    Raises
    ------
    ValueError
        If `measure` is unknown, needs texts but gets counts, or the sizes do not fit.

    References
    ----------
    .. [1] M. Röder, A. Both, A. Hinneburg (2015). Exploring the space of topic coherence measures. WSDM.

    Examples
    --------
    >>> from skdplda.metrics import coherence
    >>> texts = [["cat", "dog"], ["cat", "dog"], ["tax", "law"], ["tax", "law"]]
    >>> good, mixed = [[2, 1, 0, 0], [0, 0, 2, 1]], [[2, 0, 1, 0], [0, 2, 0, 1]]
    >>> names = ["cat", "dog", "tax", "law"]
    >>> scores = [coherence(topics, texts, names, measure="c_npmi", n_words=2) for topics in (good, mixed)]
    >>> [round(score, 2) for score in scores]
    [1.0, -0.95]
    """
    Dictionary = _gensim("gensim.corpora").Dictionary
    Sparse2Corpus = _gensim("gensim.matutils").Sparse2Corpus
    CoherenceModel = _gensim("gensim.models.coherencemodel").CoherenceModel

    _check_measure(measure, n_words)
    if not isinstance(dictionary, Dictionary):
        dictionary = gensim_dictionary(dictionary)
    weights = _topic_weights(model)
    names = {column: word for word, column in dictionary.token2id.items()}
    if weights.shape[1] != len(names):
        raise ValueError(f"dictionary must name the {weights.shape[1]} columns of the topics, got {len(names)} words.")

    if issparse(reference) or getattr(reference, "ndim", 1) == 2:
        if measure != "u_mass":
            raise ValueError(f"measure {measure!r} needs tokenised documents as reference, got counts.")
        X = csr_matrix(reference, copy=True)
        if X.shape[1] != len(names):
            raise ValueError(f"reference must have {len(names)} columns, got {X.shape[1]}.")
        X.eliminate_zeros()
        present = set(X.indices.tolist())
        source = {"corpus": Sparse2Corpus(X, documents_columns=False)}
    else:
        texts = [_check_text(text) for text in reference]
        present = {dictionary.token2id.get(word) for word in set(chain.from_iterable(texts))}
        if measure == "u_mass":
            source = {"corpus": [dictionary.doc2bow(text) for text in texts]}
        else:
            source = {"texts": [text for text in texts if text]}

    topics = [
        [names[column] for column in words if column in present] for words in _top_words(weights, n_words).tolist()
    ]
    judged = [words for words in topics if len(words) >= 2]
    values = np.full(len(topics), _WORST[measure])
    if judged:
        # processes=1: gensim would otherwise start workers.
        judge = CoherenceModel(
            topics=judged, dictionary=dictionary, coherence=measure, topn=n_words, processes=1, **source
        )
        with np.errstate(all="ignore"):
            values[[len(words) >= 2 for words in topics]] = judge.get_coherence_per_topic()
    return float(np.where(np.isfinite(values), values, _WORST[measure]).mean())


class _CoherenceScorer:
    """Topic coherence as a scorer; :func:`make_coherence_scorer` makes it."""

    def __init__(self, measure="u_mass", texts=None, feature_names=None, n_words=20):
        self.measure = measure
        self.texts = texts
        self.feature_names = feature_names
        self.n_words = n_words

    def __repr__(self):
        return f"make_coherence_scorer({self.measure!r}, n_words={self.n_words})"

    def __call__(self, estimator, X, y=None):
        """Score a fitted topic model, or a fitted pipeline that ends in one: mean over topics, the larger the better.

        X has counts for a model; for a pipeline, whatever it takes. y is ignored.
        """
        steps = getattr(estimator, "steps", None)
        model = steps[-1][1] if steps else estimator
        before = estimator[:-1] if steps and len(steps) > 1 else None
        if self.measure == "u_mass" and self.texts is None:
            counts = counts_of(X if before is None else before.transform(X))
            return float(u_mass_coherence(_topic_weights(model), counts, n_words=self.n_words).mean())

        names = self._names(before, model)
        texts = self.texts
        if texts is None:
            analyze = self._analyzer(steps)
            texts = [analyze(document) for document in X]
        if self.measure == "u_mass":
            corpus2csc = _gensim("gensim.matutils").corpus2csc

            dictionary = gensim_dictionary(names)
            bags = [dictionary.doc2bow(_check_text(text)) for text in texts]
            counts = corpus2csc(bags, num_terms=len(names)).T
            return float(u_mass_coherence(_topic_weights(model), counts, n_words=self.n_words).mean())
        return coherence(model, texts, names, measure=self.measure, n_words=self.n_words)

    def _names(self, before, model):
        """Return the words of the model's columns."""
        if self.feature_names is not None:
            return self.feature_names
        if before is not None:
            return before.get_feature_names_out()
        if hasattr(model, "feature_names_in_"):
            return model.feature_names_in_
        raise ValueError("feature_names must be given to score a model that was fitted without column names, got None.")

    def _analyzer(self, steps):
        """Return the function that the pipeline's vectorizer cuts a document into words with."""
        for _, step in steps or ():
            if hasattr(step, "build_analyzer"):
                return step.build_analyzer()
        raise ValueError(
            f"texts must be given for measure {self.measure!r}, unless the estimator is a pipeline whose "
            "vectorizer has build_analyzer."
        )


def make_coherence_scorer(
    measure: Literal["u_mass", "c_v", "c_uci", "c_npmi"] = "u_mass",
    texts: list[list[str]] | None = None,
    feature_names: Sequence[str] | None = None,
    n_words: int = 20,
) -> Function:
    """Make a scorer of topic coherence for `scoring=` in cross validation and grid search.

    It takes a bare model (`X` holds counts) or a pipeline from raw texts to a model (vectorizer, perhaps a
    vocabulary selector, model; `X` holds raw texts) and needs no `y`. It can be pickled.

    Parameters
    ----------
    measure : {"u_mass", "c_v", "c_uci", "c_npmi"}, default="u_mass"
        u_mass is :func:`u_mass_coherence` (sums over pairs) averaged over topics; the others are
        :func:`coherence`.
    texts : list of list of str or None, default=None
        Tokenised reference documents. None takes the documents that are scored: the counts for u_mass, and
        for the others the raw texts of a pipeline, cut by its vectorizer.
    feature_names : sequence of str or None, default=None
        Words of the model's columns. None: those of the steps before the model, or its `feature_names_in_`; u_mass
        without `texts` needs none.
    n_words : int, default=20
        Words per topic, at least 2; as many as gensim's `CoherenceModel` takes by default.

    Returns
    -------
    scorer : callable
        `scorer(estimator, X, y=None)` returns a float; the larger the better.

    Raises
    ------
    ValueError
        If `measure` or `n_words` is not as described. Scoring raises it where texts or words are missing.

    Examples
    --------
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skdplda.datasets import make_lda_corpus
    >>> from skdplda.metrics import make_coherence_scorer
    >>> X = make_lda_corpus(60, 40, 3, random_state=0).data
    >>> lda = LatentDirichletAllocation(random_state=0)
    >>> search = GridSearchCV(lda, {"n_components": [2, 3]}, scoring=make_coherence_scorer(n_words=5), cv=2)
    >>> bool(search.fit(X).best_score_ < 0)
    True
    """
    _check_measure(measure, n_words)
    return _CoherenceScorer(measure, texts, feature_names, n_words)


def _topic_weights(model):
    """Return the (n_components, n_words) weights of a model or an array."""
    if hasattr(model, "get_topics"):
        return np.asarray(model.get_topics())
    return np.asarray(getattr(model, "components_", model))


def _check_measure(measure, n_words):
    if measure not in _WORST:
        raise ValueError(f"measure must be one of {tuple(_WORST)}, got {measure!r}.")
    if not isinstance(n_words, Integral) or n_words < 2:
        raise ValueError(f"n_words must be an integer of at least 2, got {n_words!r}.")


def _check_text(text):
    if isinstance(text, str):
        raise ValueError(f"texts must be lists of words, got the str {text[:40]!r}.")
    return list(text)


def _gensim(module):
    """Return a module of gensim's, which has no wheels for the newest Python."""
    return import_optional(module, purpose="Coherence, and what is given to gensim,", install="gensim")
