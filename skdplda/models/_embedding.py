"""Embedding topics: private clusters of texts' embeddings, and the words of each cluster."""

from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from skdplda._arithmetic import matmul, total
from skdplda._checks import check_prior
from skdplda._types import ArrayLike, Function, Matrix, Seed
from skdplda._validation import (
    MOST_DIMENSIONS,
    Interval,
    StrOptions,
    are_texts,
    check_counts,
    check_groups,
    check_memory,
    check_same_rows,
    fit_context,
)
from skdplda._warnings import warn
from skdplda.distributed import paired_shards, shards_of
from skdplda.esteps._clusters import FINE, ClusterEStep, Embeddings
from skdplda.models._base import BaseRoundsModel, TrainingData
from skdplda.models._cluster_names import TOTALS_SHARE
from skdplda.models._cluster_rounds import (
    EXACT_ROUNDS,
    ROUNDS,
    WORDS_SHARE,
    ClusterKnowledge,
    ClusterPlan,
    PublicStart,
    cluster_shares,
)
from skdplda.models._clusters import BaseClusterModel, projected_rows
from skdplda.privacy import COLUMNS, seeded_guarantee
from skdplda.rounds._bounds import Bounded, shortened
from skdplda.rounds._guarantee import rounds_guarantee
from skdplda.rounds._queries import normalized_rows
from skdplda.semantics import EmbeddedTexts

OF_MODEL = (
    "the embedding model, all it was trained on, and what else is given of words, vectors or frequencies, do not depend"
    " on the private texts"
)
ALONE = "each text is embedded on its own"
PUBLIC = ("public_rows", "public_weights", "centre", "init", "projection")


class EmbeddingTopics(BaseClusterModel, BaseRoundsModel):
    """Differentially private clusters of texts by their embeddings, with keywords.

    Spherical k-means [1]_ on the private loop: each round releases how many documents a cluster has and the sum of
    their directions, with Gaussian noise, as [2]_ does it for points in a cube. All that a document (user) adds, sizes
    and directions of all clusters together, is bounded jointly. The mean of all directions, which is taken away first,
    is released with noise too. Between noisy sums and public knowledge (`public_rows`) empirical Bayes decides. Given
    word counts, one more release has the words of each cluster. Given public vectors of the words, too, it is above all
    of those near the cluster's centre, and `top_words` orders words by count and nearness; without, by class-based
    tf-idf [3]_. One guarantee covers all of it.

    Parameters
    ----------
    n_components : int, default=10
        Number of clusters. Affects privacy: no.
    epsilon : float, default=1.0
        Total privacy loss of the fit; inf for no noise. Affects privacy: yes.
    delta : float, default=1e-5
        Probability of a larger loss. Affects privacy: yes.
    max_iter : int or None, default=None
        Rounds of k-means. None: 20, or 30 without noise. Affects privacy: no, they divide the budget.
    public_rows : array-like of shape (n_public, n_features) or None, default=None
        Public embeddings, of texts or words, whose k-means clusters are where clusters start, and to which noisy ones
        are drawn; None: random directions. At small epsilon much depends on it. Affects privacy: no, if it does not
        depend on the private texts.
    public_weights : array-like of shape (n_public,) or None, default=None
        Weights of the rows of `public_rows`, positive. Affects privacy: no, if they do not depend on the private texts.
    centre : array-like of shape (n_features,) or None, default=None
        What is taken away from rows of length 1. None: their mean, with noise. Affects privacy: no, if it does not
        depend on the private texts.
    init : array-like of shape (n_components, n_dimensions) or None, default=None
        Directions where clusters start, after `projection` and without the centre, and to which noisy ones are drawn:
        `cluster_centers_` of an earlier model, whose clusters then keep their numbers; see `warm_started`. None: of
        `public_rows`, which still tell along which axes clusters differ. Affects privacy: no, if it is public, or was
        released at a cost that is counted.
    projection : int, array-like of shape (n_features, n_dimensions) or None, default=None
        Public map to fewer dimensions: a matrix, or the dimensions of a random one, always the same. Affects privacy:
        no, if it does not depend on the private texts.
    assignment : {"soft", "hard"}, default="soft"
        "hard": each round adds a document to its nearest cluster. "soft": in the first 0.7 of the rounds its direction
        is divided among clusters by weights whose squares sum to 1, ever more sharply, which depends less on
        `public_rows`; sizes are of nearest clusters in all rounds. For more than 16,384 clusters take "hard". Affects
        privacy: no.
    keyword_share : float, default=0.5
        Share of the budget for words, if `fit` gets counts; above 0 and below 1. Affects privacy: no.
    doc_topic_prior : None, default=None
        Not used. Affects privacy: no.
    topic_word_prior : float or None, default=None
        Added to each word's count in each cluster. None: 0.01. Affects privacy: no.
    checkpoint : path-like or None, default=None
        File to resume an interrupted fit from, without spending again; as private as the data, and removed at the end.
        Affects privacy: no.
    callback : callable or None, default=None
        Called with a released `RoundReport` (`n_done`, `n_rounds`, `table`) after each round. Affects privacy: no.
    n_jobs : int or None, default=None
        Threads that draw noise. Affects privacy: no.
    random_state : int, bytes, RandomState or None, default=None
        Makes a fit repeatable, and the guarantee claimed. Affects privacy: yes, leave it None for what you release.
    verbose : int, default=0
        A progress bar if positive. Affects privacy: no.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_components, n_dimensions)
        Directions of length 1, after `projection` and without the centre.
    centre_ : ndarray of shape (n_dimensions,)
        What is taken away from rows of length 1.
    cluster_sizes_ : ndarray of shape (n_components,)
        Number of documents, or weight of users, as released, so that one may be negative.
    size_deviation_ : float
        Standard deviation of each size, at most: of the noise, and of how far sizes still moved in the last round, as
        the releases tell, since `predict` divides texts by what the last one taught.
    concentration_ : float
        How sharply `transform` divides a text, from the released sums.
    components_ : ndarray of shape (n_components, n_words) or (n_components, n_dimensions)
        Word counts by cluster, on an arbitrary scale; without counts, the released sums of directions.
    topic_word_ : ndarray of shape (n_components, n_words)
        Rows of `components_` that sum to 1; only with counts.
    words_ : ndarray of str of shape (n_words,) or None
        Names of the columns of the counts.
    keyword_scores_ : ndarray of shape (n_components, n_words)
        How `top_words` orders words: by released counts and the cosine of word and cluster. Negative for words that are
        not near the cluster and do not stand out of the noise there. Only with vectors of the words.
    signal_to_noise_, topic_signal_to_noise_ : ndarray of shape (n_components, n_words) or (n_components,)
        As of the other models; only with counts and noise. Zeros where documents vote that the words of clusters do
        not explain theirs, as they do of words that meet by chance in 19 fits of 20 at least.
    privacy_guarantee_ : PrivacyGuarantee
        Print it for a statement to publish.
    n_iter_, n_features_in_ : int
        Releases, and dimensions of an embedding.

    See Also
    --------
    make_insights_pipeline : Texts in, clusters and keywords out.
    VIPSLDA : Topics of words, which model a text as a mixture.

    Notes
    -----
    The theorem is in the theory guide, "Embeddings". A row with NaN, infinity, or zeros only has no direction: it takes
    part in no cluster, without a warning, which would tell of it. Rows are scaled to length 1.

    References
    ----------
    .. [1] I. Dhillon, D. Modha (2001). Concept decompositions for large sparse text data using clustering.
    .. [2] D. Su, J. Cao, N. Li, E. Bertino, H. Jin (2016). Differentially private k-means clustering. Section 3.
    .. [3] M. Grootendorst (2022). BERTopic: neural topic modeling with a class-based TF-IDF procedure. Equation 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skdplda import EmbeddingTopics
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(3), 2000, axis=0) + rng.normal(scale=0.2, size=(6000, 3))
    >>> model = EmbeddingTopics(3, epsilon=2.0, public_rows=np.eye(3)).fit(X)
    >>> model.predict(np.eye(3)).tolist()
    [0, 1, 2]
    """

    _beside_released = {"words_": COLUMNS}  # noqa: RUF012

    _parameter_constraints: dict = {  # noqa: RUF012
        **BaseRoundsModel._parameter_constraints,
        "max_iter": [Interval(Integral, 1, 1000, closed="both"), None],
        "public_rows": ["array-like", None],
        "public_weights": ["array-like", None],
        "centre": ["array-like", None],
        "init": "no_validation",  # `_public` says what to write in place of texts or a model
        "projection": [Interval(Integral, 1, MOST_DIMENSIONS, closed="both"), "array-like", None],
        "assignment": [StrOptions({"soft", "hard"})],
        "keyword_share": [Interval(Real, 0, 1, closed="neither")],
        "doc_topic_prior": [None],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        max_iter: int | None = None,
        public_rows: ArrayLike | None = None,
        public_weights: ArrayLike | None = None,
        centre: ArrayLike | None = None,
        init: ArrayLike | None = None,
        projection: Any = None,
        assignment: Literal["soft", "hard"] = "soft",
        keyword_share: float = 0.5,
        doc_topic_prior: None = None,
        topic_word_prior: float | None = None,
        checkpoint: PathLike | None = None,
        callback: Function | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.max_iter = max_iter
        self.public_rows = public_rows
        self.public_weights = public_weights
        self.centre = centre
        self.init = init
        self.projection = projection
        self.assignment = assignment
        self.keyword_share = keyword_share
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.checkpoint = checkpoint
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        groups: ArrayLike | None = None,
        counts: Matrix | None = None,
        *,
        word_vectors: Matrix | None = None,
        transcript: PathLike | None = None,
    ) -> Self:
        """Fit the clusters, and their words if there are counts.

        The budget of an open `PrivacyAccountant` is checked before X is read and charged before the first release.
        Clusters are called by their top words, as by `name_topics`, where the columns of the counts have names.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), EmbeddedTexts, Dask collection or \
ShardedCounts
            Embeddings, one row a document, by a public model that sees one text at a time. A `numpy.memmap` is read
            block by block. Blocks of embeddings or of `EmbeddedTexts` are fitted on the workers of a Dask cluster.
        y : ignored
        groups : array-like of shape (n_documents,), default=None
            The user of each document: the guarantee then is for all documents of one user together.
        counts : array-like or sparse matrix of shape (n_documents, n_words), default=None
            Word counts of the same documents, over a public, or privately selected, vocabulary. `EmbeddedTexts` bring
            their own. Where X is on workers, blocks of the same documents.
        word_vectors : array-like of shape (n_words, n_features), default=None
            Public vectors of the words of `counts`, made by the embedding model of each word alone, or zeros for a word
            without. Clusters are then called by words near their centres. `EmbeddedTexts` bring their own, but blocks
            on workers do not.
        transcript : path-like, default=None
            A new file for all that the fit asks and the noisy answers, once it is done: what the guarantee covers, and
            nothing else. `from_transcript` makes other models of it, for nothing. Only with noise, in rounds.

        Returns
        -------
        self : EmbeddingTopics
            The fitted estimator.

        Raises
        ------
        BudgetExceededError
            If an open accountant cannot afford the fit. No data were read.
        ValueError
            For parameters or data that are not as described.

        Warns
        -----
        UserWarning
            If the released sizes of clusters do not stand out of the noise.
        """
        return self._fit((X, counts, word_vectors), groups, transcript)

    def _warn_fitted(self):
        clear = int(self._clear_clusters().sum())
        if clear == self.n_components:
            super()._warn_fitted()
        else:
            most = f"{clear} clusters" if clear > 1 else "1 cluster"
            deviations = f"{self._clear_deviations():g} standard deviations, {self.size_deviation_:.4g} each"
            warn(
                f"{self.n_components - clear} of n_components={self.n_components} clusters do not stand out of the"
                f" noise: their released sizes are below {deviations}. Use at most {most}, a larger epsilon,"
                " or more texts.",
                UserWarning,
            )

    def audit_contributions(  # type: ignore[override]
        self,
        X: Any,
        groups: ArrayLike | None = None,
        *,
        counts: Matrix | None = None,
        word_vectors: Matrix | None = None,
        released: Literal["topics", "centre", "words", "cluster_words"] = "topics",
    ) -> Bounded:
        """Compute what one release of the fit would have, before noise, for audits by the curator: it is the data.

        Parameters
        ----------
        X, groups, counts, word_vectors : as in `fit`
            The documents; as in `fit`.
        released : {"topics", "centre", "words", "cluster_words"}, default="topics"
            Sizes and sums of directions by cluster, of all documents, word totals, or word counts by cluster. Clusters
            are those of the start.

        Returns
        -------
        sums : skdplda.rounds.Bounded
            `total`, the sum of contributions in fixed point; `bound` of each, in the norm of order `norm`.

        Raises
        ------
        ValueError
            For parameters or data that are not as described, and for fits without noise, which have no bound.
        """
        self._refuse_workers(X)
        e_step, known, _, data = self._audited_parts((X, counts, word_vectors), groups)
        query = known.query("clusters" if released == "topics" else released)
        if released in ("words", "cluster_words") and data.documents.counts is None:
            raise ValueError(f"released={released!r} needs counts.")
        return e_step.collect(query, 0, None)

    def _doc_topic_prior(self):
        """Return the prior of clusters when word counts are judged."""
        return np.full(self.n_components, 0.1)

    def _topic_word_prior(self):
        return check_prior("topic_word_prior", self.topic_word_prior, 0.01)

    def _rounds(self):
        exact = np.isinf(self.epsilon)
        return self.max_iter or (EXACT_ROUNDS if exact else ROUNDS)

    def _plan(self):
        """Return the noise of the whole, from the parameters alone; public arrays are checked."""
        self._topic_word_prior()
        for name in PUBLIC:
            self._public(name)
        least = min(
            share
            for keywords in (0.0, self.keyword_share)
            for words in (WORDS_SHARE, TOTALS_SHARE)
            for _, share in cluster_shares(self._rounds(), keywords, self.centre is not None, words)
        )
        return ClusterPlan.of(self.epsilon, self.delta, least)

    def _public(self, name):
        """Return a public array as float64, or None where the parameter is none."""
        value = getattr(self, name)
        if value is None or (name == "projection" and isinstance(value, Integral)):
            return None
        n_axes = 1 if name in ("public_weights", "centre") else 2
        try:
            found = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            got = "texts" if are_texts(value) else f"a {type(value).__name__}"
            raise ValueError(
                f"{name} must be an array of {n_axes} axes and finite numbers; got {got}. Embed public texts by a"
                " public model first; warm_started(estimator, model) starts from an earlier model."
            ) from None
        if found.ndim != n_axes or 0 in found.shape or not np.isfinite(found).all():
            raise ValueError(f"{name} must be an array of {n_axes} axes and finite numbers; got shape {found.shape}.")
        if name in ("public_rows", "init", "projection") and not found.any():
            raise ValueError(f"{name} must have numbers other than 0; got zeros alone, which point nowhere.")
        if name == "public_weights" and not (found > 0).all():
            raise ValueError("public_weights must be positive; got other numbers.")
        return found

    def _guarantee(self, unit, plan):
        public = [name for name in PUBLIC if self._public(name) is not None]
        assumptions = [OF_MODEL, ALONE]
        started = [name for name in public if name in ("centre", "init") and "init" in public]
        if rest := [name for name in public if name not in started]:
            assumptions.append(f"{', '.join(rest)}: independent of the private texts")
        if started:
            assumptions.append(
                f"{', '.join(started)}: independent of the private texts, or released from them at a cost that is"
                " counted"
            )
        fields = ("cluster_centers_", "centre_", "cluster_sizes_", "size_deviation_", "concentration_", "components_")
        words = ("topic_word_ with counts", "keyword_scores_ with vectors of words")
        signal = () if plan.noiseless else ("signal_to_noise_ with counts", "topic_signal_to_noise_ with counts")
        guarantee = rounds_guarantee(
            plan,
            unit,
            self.epsilon,
            self.delta,
            hidden="",
            assumptions=tuple(assumptions),
            released=(*plan.released, *fields, *words, *signal, "n_iter_"),
        )
        return seeded_guarantee(guarantee, self.random_state)

    def _read(self, X, groups, plan, randomness):
        X, counts, word_vectors = X
        words = frequencies = None
        if isinstance(X, EmbeddedTexts):
            if counts is not None:
                raise ValueError("counts must be None for EmbeddedTexts, which bring their own.")
            word_vectors = X.word_vectors if word_vectors is None else word_vectors
            X, counts, words, frequencies = X.vectors, X.counts, X.words, X.word_frequencies
        shards = shards_of(X)
        if shards is not None:
            shards = shards if counts is None else paired_shards(shards, counts)
            return self._read_on_workers(shards, groups, words, word_vectors, frequencies)
        vectors = self._embeddings(X, reset=True)
        if counts is not None:
            check_same_rows(X, counts)
            reader = clone(self)
            counts = shortened(check_counts(reader, counts, reset=True))
            words = getattr(reader, "feature_names_in_", words)
            if counts.shape[0] != vectors.shape[0]:
                raise ValueError(
                    f"counts must have one row a document: X has {vectors.shape[0]} rows, counts {counts.shape[0]}."
                )
        self._check_public(self.n_features_in_)
        public = self._public_of_words(word_vectors, frequencies, None if counts is None else counts.shape[1])
        projected = projected_rows(vectors, self.projection)
        units = None if groups is None else check_groups(groups, vectors.shape[0])
        contents = [np.array([sp.issparse(vectors), counts is not None, groups is not None])]
        for matrix in (vectors, counts):
            if sp.issparse(matrix):
                contents += [np.array(matrix.shape), matrix.indptr, matrix.indices, matrix.data]
            elif matrix is not None:
                contents.append(matrix)
        contents += [array for array in public.values() if array is not None]
        return TrainingData(
            Embeddings(projected, counts), units, groups is not None, (*contents, *(units or ())), words, **public
        )

    def _read_on_workers(self, shards, groups, words, word_vectors, frequencies):
        documents = self._load_on_workers(shards, groups, embedded=True)
        try:
            self._check_public(self.n_features_in_)
            public = self._public_of_words(word_vectors, frequencies, documents.pool.n_counted)
        except BaseException:
            documents.pool.close()
            raise
        words = documents.pool.words if words is None else words
        contents = (*documents.data, *(array for array in public.values() if array is not None))
        return TrainingData(documents, None, groups is not None, contents, words, **public)

    def _public_of_words(self, vectors, frequencies, n_words):
        """Return what is public of the words that are counted, checked: fields of `TrainingData`."""
        return {
            "word_vectors": self._word_vectors(vectors, n_words),
            "word_frequencies": _frequencies(frequencies, n_words),
        }

    def _word_vectors(self, given, n_words):
        """Return vectors of the words, (n_words, n_features), or None; refuse what is none."""
        if given is None:
            return None
        if n_words is None:
            raise ValueError("word_vectors must be None without counts: they are of the words that are counted.")
        found = np.asarray(given.toarray() if sp.issparse(given) else given, np.float64)
        if found.shape != (n_words, self.n_features_in_):
            raise ValueError(
                f"word_vectors must have a row for each of the {n_words} words and the {self.n_features_in_} columns of"
                f" X; got shape {found.shape}."
            )
        return found

    def _n_dimensions(self, n_features):
        """Return the number of dimensions after the projection."""
        return projected_rows(np.empty((0, n_features)), self.projection).shape[1]

    def _n_features_of_public(self):
        """Return the columns that public arrays ask of X, checked against each other, or None if they ask none."""
        rows, projection, centre = self._public("public_rows"), self._public("projection"), self._public("centre")
        if rows is not None:
            n_features = rows.shape[1]
        elif projection is not None:
            n_features = projection.shape[0]
        else:
            known = centre if self._public("init") is None else self._public("init")[0]
            n_features = None if known is None or self.projection is not None else len(known)
        if n_features is not None:
            self._check_public(n_features)
        return n_features

    def _check_public(self, n_features):
        """Refuse public arrays that do not fit the data's shape, which is public."""
        rows, weight, centre = self._public("public_rows"), self._public("public_weights"), self._public("centre")
        n_dimensions = self._n_dimensions(n_features)
        if rows is not None and rows.shape[1] != n_features:
            raise ValueError(f"public_rows must have {n_features} columns, as X has; got {rows.shape[1]}.")
        if weight is not None and (rows is None or len(weight) != len(rows)):
            raise ValueError("public_weights must have one number a row of public_rows.")
        if centre is not None and len(centre) != n_dimensions:
            raise ValueError(f"centre must have {n_dimensions} numbers; got {len(centre)}.")
        init = self._public("init")
        if init is not None and init.shape != (self.n_components, n_dimensions):
            raise ValueError(
                f"init must have a row for each of the {self.n_components} clusters and {n_dimensions} columns; got"
                f" shape {init.shape}."
            )
        if centre is not None and matmul(centre, centre) > 1:
            raise ValueError("centre must be of length 1 at most: it is a mean of rows of length 1.")

    def _warn(self, plan, guarantee, n_words):
        """Nothing to warn of before the fit: how many clusters stand out, only the releases tell."""

    def _remembers(self, plan, data):
        return False

    def _make_e_step(self, plan, randomness, data):
        if not data.on_workers:
            return ClusterEStep
        return partial(projected_e_step, projection=self.projection, n_words=data.documents.pool.n_counted)

    def _make_tables(self, plan, randomness, data):
        counts = None if data.on_workers else data.documents.counts
        n_words = data.documents.pool.n_counted if data.on_workers else None if counts is None else counts.shape[1]
        n_dimensions = self._n_dimensions(self.n_features_in_)
        check_memory(self.n_components, n_words or n_dimensions)
        rows, key, vectors = self._public("public_rows"), randomness.table_key, data.word_vectors
        init = self._public("init")
        if rows is None and init is not None:
            start = PublicStart(normalized_rows(init), np.zeros(n_dimensions))
        elif rows is None:
            start = PublicStart.spread(self.n_components, n_dimensions, key)
        else:
            weight = self._public("public_weights")
            weight = np.ones(len(rows)) if weight is None else weight
            start = PublicStart.of_rows(
                projected_rows(rows, self.projection), weight, self.n_components, n_dimensions, key, init
            )
        return ClusterKnowledge(
            (n_dimensions, n_words, self.n_components),
            plan,
            start,
            n_rounds=self._rounds(),
            soft=self.assignment == "soft",
            keyword_share=self.keyword_share if n_words else 0.0,
            centre=self._public("centre"),
            frequencies=data.word_frequencies,
            word_vectors=None if vectors is None else projected_rows(vectors, self.projection),
        )

    def _training_data(self, X, groups, plan, randomness):
        return self._read(X, groups, plan, randomness)  # public knowledge comes by `public_rows`

    def _fitted_of(self, known, n_iter, data, priors=None):
        words = None if data.words is None else np.asarray(data.words, dtype=object)
        return super()._fitted_of(known, n_iter, data) | {"words_": words}

    def _unread(self, n_columns, n_counted, grouped, words, word_vectors=None, word_frequencies=None):
        self._check_public(n_columns)
        counts = None if n_counted is None else sp.csr_array((0, n_counted), dtype=np.int32)
        public = self._public_of_words(word_vectors, word_frequencies, n_counted)
        return TrainingData(Embeddings(np.empty((0, n_columns)), counts), None, grouped, (), words, **public)

    def _model_of(self, tables, n_iter):
        sizes, deviation = tables.sizes
        sums = tables.direction_sums
        attributes = {
            "cluster_centers_": tables.directions.copy(),
            "centre_": np.trunc(tables.centre * FINE) / FINE,
            "cluster_sizes_": sizes.copy(),
            "size_deviation_": float(deviation),
            "concentration_": concentration(sizes, sums, tables.directions),
            "components_": sums.copy(),
            "n_iter_": n_iter,
        }
        counts = tables.pseudo_counts()
        if counts is None:
            attributes["topic_word_"] = None  # directions have no probabilities
        else:
            # On the scale of tokens of a document of norm 5, as in the other models.
            attributes["components_"] = 5.0 * np.ascontiguousarray(counts.T) + self._topic_word_prior()
            scores, ratios = tables.keyword_scores(), tables.signal_to_noise()
            attributes |= {} if scores is None else {"keyword_scores_": scores}
            if ratios is not None:
                attributes |= {"signal_to_noise_": ratios[0], "topic_signal_to_noise_": ratios[1]}
        return attributes

    def _set_fitted(self, guarantee, components_, **attributes):
        """As the base does; without counts there are no words' probabilities."""
        with np.errstate(invalid="ignore", divide="ignore"):
            super()._set_fitted(guarantee, components_, **attributes)
        if hasattr(self, "topic_word_") and self.words_ is not None:
            self.topic_names_ = self.name_topics().topic_names_


def projected_e_step(X, units=None, *, projection, n_words, **options):
    """Return the E-step of documents on a worker: `EmbeddedTexts`, or an empty matrix where there are none."""
    vectors, counts = (X.vectors, X.counts) if isinstance(X, EmbeddedTexts) else (X, None)
    if counts is None and n_words is not None:  # of no document
        counts = sp.csr_array((0, n_words), dtype=np.int32)
    return ClusterEStep(Embeddings(projected_rows(vectors, projection), counts), units, **options)


def concentration(sizes, sums, directions):
    """Return the concentration of von Mises-Fisher distributions, by Banerjee's approximation, from released sums."""
    n_dimensions = sums.shape[1]
    resultant = total(sums * directions) / max(total(np.maximum(sizes, 0)), 1e-300)
    resultant = min(max(resultant, 0.05), 0.95)
    square = resultant * resultant
    return resultant * (n_dimensions - square) / (1 - square)


def _frequencies(given, n_words):
    """Return public word frequencies that sum to 1, (n_words,), or None; refuse what are none."""
    if given is None or n_words is None:
        return None
    found = np.asarray(given, np.float64)
    if found.shape != (n_words,) or not (np.isfinite(found) & (found > 0)).all():
        raise ValueError(f"word_frequencies must be {n_words} finite numbers above 0, one a word.")
    return found / total(found)
