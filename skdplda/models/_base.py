"""The base of all topic models, and that of the models fitted by private rounds, whose `fit` is a template."""

from contextlib import closing, nullcontext
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone

from skdplda._arithmetic import total
from skdplda._checks import check_prior, effective_n_jobs
from skdplda._files import fingerprint
from skdplda._hints import HintsMixin
from skdplda._kernels._foldin_rows import fold_in_rows, word_rows
from skdplda._types import ArrayLike, Matrix
from skdplda._validation import (
    COLUMNS,
    PRIOR,
    SEED,
    THREADS,
    FittedTopics,
    Interval,
    check_counts,
    check_groups,
    check_is_fitted,
    check_memory,
    check_same_rows,
    fit_context,
    note_groups,
    note_parameters,
    note_words,
    warn_of_missing_groups,
)
from skdplda._warnings import warn
from skdplda.datasets import DiskCounts
from skdplda.distributed import ShardedDocuments, load_documents
from skdplda.esteps._methods import UnitEStep, check_contribution
from skdplda.esteps._sharded import ShardedEStep
from skdplda.exact._inferred import FIRST_PRIOR, InferredPriors
from skdplda.exact._loop import answer_exactly
from skdplda.exact._votes import voted_factor
from skdplda.metrics import make_gensim_model, perplexity, score, score_samples
from skdplda.models._periods import PeriodsMixin
from skdplda.models._topics import TopicsMixin, warn_of_noise
from skdplda.models._transcripts import TranscriptMixin, check_transcript, keep_transcript, transcript_of
from skdplda.priors._public import PublicPrior, seeded_names
from skdplda.priors._seeding import order_of_topics
from skdplda.privacy import (
    KNOWN,
    BudgetCharge,
    LedgerAwareMixin,
    PrivacyGuarantee,
    Randomness,
    Spending,
    check_released,
    seeded_guarantee,
    stated_guarantee,
)
from skdplda.rounds._adaptive import Knowledge, audited_query, in_proportion
from skdplda.rounds._bounds import Bounded, shortened
from skdplda.rounds._checkpoint import interrupted
from skdplda.rounds._guarantee import rounds_guarantee, with_asked
from skdplda.rounds._loop import Tables, converse, rounds_of
from skdplda.rounds._plans import BudgetPlan, NoisePlan
from skdplda.rounds._queries import TopicWordCounts
from skdplda.rounds._tables import SmoothedTables
from skdplda.rounds._transcript import Transcript

# Of `transform` and `score`, without cost in privacy: more iterations take longer. Not tuned.
FOLD_IN_ITERATIONS = 100
FOLD_IN_TOLERANCE = 1e-3
OF_COLUMNS = ("n_features_in_", "feature_names_in_")  # fitted attributes that checking X sets
OF_TOPICS = ("components_", "signal_to_noise_", "topic_signal_to_noise_", "doc_topic_prior_")  # one row a topic
MAY_CHANGE = ("checkpoint", "callback", "n_jobs", "verbose")  # parameters that may differ when a fit is resumed

# Sums over topics of the default prior of topic proportions, at most, without noise and with it: doc/frontier.rst, "The
# prior of topic proportions".
PRIOR_MASS, NOISY_PRIOR_MASS = 1.0, 0.5


class BaseTopicModel(
    HintsMixin,
    TopicsMixin,
    PeriodsMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    LedgerAwareMixin,
    BaseEstimator,
):
    """Base of the topic models; a subclass has `topic_word_` when it is fitted.

    It has `n_components`, `n_jobs`, `doc_topic_prior` and `topic_word_prior` among its parameters.
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "n_components": [Interval(Integral, 1, 65534, closed="both")],
        "doc_topic_prior": [*PRIOR, "array-like"],
        "topic_word_prior": PRIOR,
        "n_jobs": THREADS,
        "random_state": SEED,
    }

    # Names are made of a public prior or of released words, or given by hand; merged priors are sums.
    _beside_released = {"topic_names_": KNOWN, "merged_prior_": KNOWN}  # noqa: RUF012

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def transform(self, X: Matrix) -> np.ndarray:
        """Topic proportions of documents under the fitted topics.

        A row depends on its document and the released topics only. The proportions of a private document are that
        document's data: the guarantee does not cover them.

        Parameters
        ----------
        X : array-like, sparse matrix or DiskCounts of shape (n_documents, n_words)
            Word counts, of the words of `fit`; for `PCTD` a `UnitMatrix`, too.

        Returns
        -------
        doc_topic : ndarray of shape (n_documents, n_components)
            Rows sum to 1. An empty document gets the prior's mean.

        Raises
        ------
        ValueError
            If X is no matrix of counts or has another number of words, or the model is not fitted (`NotFittedError`).
        """
        check_is_fitted(self)
        if isinstance(X, DiskCounts):
            return np.concatenate([self.transform(block) for _, block in X.blocks()])
        X = self._counts(X)
        n_threads = effective_n_jobs(self.n_jobs)
        rows, _, place = word_rows(self.topic_word_, X.indices, n_threads)
        return fold_in_rows(
            X.indptr,
            place,
            X.data,
            rows,
            self._prior_of_topics(),
            FOLD_IN_ITERATIONS,
            FOLD_IN_TOLERANCE,
            n_threads,
        )

    def score(
        self,
        X: Matrix,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        method: Literal["document-completion", "fold-in"] = "document-completion",
    ) -> float:
        """Mean held-out log-likelihood per token; larger is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts of documents that were not used to fit.
        y : ignored
        sample_weight : array-like of shape (n_documents,), default=None
            Weight of each document.
        method : {"document-completion", "fold-in"}, default="document-completion"
            Whether one half of a document's tokens is folded in and the other judged, or the same (optimistic).

        Returns
        -------
        score : float
            In nats per held-out token, the same however X is split into batches.
        """
        return score(*self._held_out(X), **self._held_out_options(sample_weight, method))

    def score_samples(
        self, X: Matrix, method: Literal["document-completion", "fold-in"] = "document-completion"
    ) -> np.ndarray:
        """Mean held-out log-likelihood per token of each document: of private ones, private, as `transform`.

        Parameters
        ----------
        X, method : as in `score`

        Returns
        -------
        score : ndarray of shape (n_documents,)
            In nats per token; nan for a document without a held-out token.
        """
        options = self._held_out_options(None, method)
        del options["sample_weight"]
        return score_samples(*self._held_out(X), **options)

    def perplexity(
        self,
        X: Matrix,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        method: Literal["document-completion", "fold-in"] = "document-completion",
    ) -> float:
        """Held-out perplexity, exp(-score); smaller is better.

        Parameters
        ----------
        X, y, sample_weight, method : as in `score`

        Returns
        -------
        perplexity : float
            The same scale for one document and for ten thousand.
        """
        return perplexity(*self._held_out(X), **self._held_out_options(sample_weight, method))

    def get_topics(self) -> np.ndarray:
        """Topic-word distributions, the name by which gensim's `CoherenceModel` asks for them.

        Returns
        -------
        topic_word : ndarray of shape (n_components, n_words)
            Rows sum to 1.
        """
        self._check_words()
        return self.topic_word_

    def to_gensim(self, feature_names: ArrayLike | None = None) -> Any:
        """Make a gensim `LdaModel` of the topics. It cannot be updated: that would be a fit without noise.

        Parameters
        ----------
        feature_names : array-like of str of shape (n_words,), default=None
            As in `top_words`.

        Returns
        -------
        model : gensim.models.LdaModel
            Its `get_topics()` are `topic_word_`, in single precision.
        """
        check_is_fitted(self)
        return make_gensim_model(self.topic_word_, self._names_of_words(feature_names), self._prior_of_topics())

    def _doc_topic_prior(self):
        """Return the prior of topic proportions, of shape (n_components,)."""
        default = min(0.1, self._prior_mass() / self.n_components)
        given = None if isinstance(self.doc_topic_prior, str) else self.doc_topic_prior  # "infer": to start from
        return check_prior("doc_topic_prior", given, default, self.n_components)

    def _prior_mass(self):
        """Return the sum over topics of the default prior, at most."""
        return np.inf

    def _topic_word_prior(self):
        """Return the pseudo-count of every word in every topic."""
        return check_prior("topic_word_prior", self.topic_word_prior, 0.01)

    _seeded_as = None  # name that tells the randomness of a seed from that of other classes; None: its own

    def _new_randomness(self):
        """Return the `Randomness` of a fit, as `random_state` asks for it."""
        return Randomness(self.random_state, self._seeded_as or type(self).__name__)

    def _set_fitted(self, guarantee, components_, **attributes):
        """Replace the fitted attributes, those of an earlier fit included, so that the guarantee covers all of them."""
        for name in [name for name in vars(self) if name.endswith("_") and name not in OF_COLUMNS]:
            delattr(self, name)
        self.components_ = components_
        self.topic_word_ = components_ / total(components_, axis=1, keepdims=True)
        for name, value in attributes.items():
            setattr(self, name, value)
        if self.topic_word_ is None:
            del self.topic_word_
        self.privacy_guarantee_ = guarantee
        check_released(self)
        note_parameters(self)

    def _load_on_workers(self, X, groups=None, reset=True, embedded=False):
        """Return what `fit` was given as `ShardedDocuments`, or None for data on this machine."""
        n_threads = self.n_jobs if self.n_jobs is not None and self.n_jobs > 0 else None
        digest = getattr(self, "checkpoint", None) is not None
        documents = load_documents(X, groups, n_threads=n_threads, digest=digest, embedded=embedded)
        if documents is not None and reset:
            self._set_columns(documents.shape[1])
        elif documents is not None:
            self._check_columns(documents.shape[1])
        return documents

    def _set_columns(self, n_words, words=None):
        """Note the columns of data that are no data frame, and their words, in place of those of an earlier fit."""
        vars(self).pop("feature_names_in_", None)
        note_words(self, words)
        self.n_features_in_ = n_words

    def _check_columns(self, n_words):
        """Refuse data that have other columns than those of `fit`."""
        if n_words != self.n_features_in_:
            raise ValueError(
                f"X has {n_words} features, but {type(self).__name__} is expecting {self.n_features_in_} features"
                f" as input: {COLUMNS}"
            )

    def _held_out(self, X):
        check_is_fitted(self)
        return self._counts(X), FittedTopics(self.topic_word_)

    def _counts(self, X):
        return check_counts(self, X, reset=False, copy=False)

    def _held_out_options(self, sample_weight, method):
        return {
            "doc_topic_prior": self._prior_of_topics(),
            "n_threads": effective_n_jobs(self.n_jobs),
            "sample_weight": sample_weight,
            "method": method,
        }


class TrainingData(NamedTuple):
    """What `fit` was given, checked: documents in memory, on disk or on workers.

    `units` are the documents of each user, as from `check_groups`; None makes each document its own privacy unit.
    `contents` are arrays that a checkpoint must belong to. `words` are the names of the columns, if these have some,
    and `prior` is what the public prior says of them, where the fit has a use for it. `transcript` is the file to keep
    the answers in, or None. `word_vectors`, (n_words, n_features), and `word_frequencies`, (n_words,), are public, too,
    of counts beside embeddings.
    """

    documents: Any
    units: tuple | None
    grouped: bool
    contents: tuple
    words: Any = None
    prior: Any = None
    transcript: Any = None
    word_vectors: Any = None
    word_frequencies: Any = None

    @property
    def on_workers(self):
        """Whether the documents lie on the workers of a cluster."""
        return isinstance(self.documents, ShardedDocuments)

    @property
    def n_words(self):
        """Size of the vocabulary."""
        return self.documents.shape[1]

    @property
    def mean_length(self):
        """Tokens of a document, on average."""
        documents = self.documents
        if self.on_workers:
            return documents.n_tokens / documents.shape[0]
        if not isinstance(documents, DiskCounts):
            return int(documents.data.sum(dtype=np.int64)) / documents.shape[0]
        return sum(int(shortened(X).data.sum(dtype=np.int64)) for _, X in documents.blocks()) / documents.shape[0]


class BaseRoundsModel(TranscriptMixin, BaseTopicModel):
    """Base of the models that are fitted by the private loop; `fit` is written here once.

    Beside those of `BaseTopicModel`, a subclass has the parameters `epsilon`, `delta`, `max_iter`, `checkpoint`,
    `callback`, `random_state` and `verbose`. `fit` calls the hooks `_plan`, `_guarantee`, `_read`, `_warn`,
    `_make_e_step` and `_make_tables`, in this order; each is described below. The models of this package replace some
    of them, or `_run`, for a form that is not made of rounds.

    A subclass of another author has these parameters and one method, and what it states is then proven: the loop bounds
    what each privacy unit contributes, whatever the method returns. What replaces anything else of the base is claimed.

    `contribution(words, counts, table, state, rng)` says what one document adds to the topic-word counts. It gets the
    document's words, ascending, and how often each stands in it, arrays of shape (n,); the public table of this round,
    (n_words, n_components), read-only; the state that it returned for this document in the last round, None at first;
    and a generator for its draws. It returns `(values, state)`: values of shape (n, n_components), which are scaled to
    the norm bound, those of all documents of a user together; and an array of one axis, or None, that it will see
    again. It must be a function of these and of the parameters alone. That is tried on made-up documents before the
    budget is charged, and `fit` raises ValueError if a document's contribution depends on others. On private documents
    an exception is no error, but a contribution of zeros.
    """

    _open_hooks = ("contribution",)

    _parameter_constraints: dict = {  # noqa: RUF012
        **BaseTopicModel._parameter_constraints,
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "checkpoint": [str, PathLike, None],
        "callback": [callable, None],
        "verbose": ["verbose"],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Matrix, y: Any = None, groups: ArrayLike | None = None, *, transcript: PathLike | None = None
    ) -> Self:
        """Fit the topics. An open `PrivacyAccountant` is checked before X is read and charged before the first release.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), ShardedCounts or Dask collection
            Word counts over a public, or privately selected, vocabulary; for `PCTD` a `UnitMatrix`, for `VIPSLDA` a
            `skdplda.datasets.DiskCounts`, too, which must not change meanwhile. Shards stay on their workers. Of a
            document of more than 2**20 tokens so many take part; a count above 2**31 - 1 is taken as that.
        y : ignored
        groups : array-like of shape (n_documents,), default=None
            The user of each document: the guarantee then is for all documents of one user together. Not for
            `PCTD(noise_on="units")`.
        transcript : path-like, default=None
            A new file for the noisy answers, of which `from_transcript` makes other models. Only with noise, in rounds.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        BudgetExceededError
            If an open accountant cannot afford the fit. No data were read.
        ValueError
            For parameters or counts that are not as described.
        """
        return self._fit(X, groups, transcript)

    @fit_context(prefer_skip_nested_validation=True)
    def privacy_cost(self, *, groups: bool = False) -> PrivacyGuarantee:
        """State the guarantee that `fit` would give, without data.

        Parameters
        ----------
        groups : bool, default=False
            Whether `fit` will be given groups.

        Returns
        -------
        guarantee : PrivacyGuarantee
            Equal to `privacy_guarantee_` after the fit, whose `mechanism` names what was asked.
        """
        return stated_guarantee(self, self._guarantee("user" if groups else "document", self._plan()))

    def audit_contributions(
        self,
        X: Matrix,
        groups: ArrayLike | None = None,
        *,
        released: Literal["topics", "frequent", "words", "votes", "priors", "vector_votes", "vectors"] = "topics",
        rounds_before: int = 0,
    ) -> Bounded:
        """Compute what a round of topics would release, before noise, or another release of the fit.

        For audits by the curator: the sum is the data. Fits of equal `random_state` have equal hidden draws, so the
        sums of two corpora that differ by one privacy unit differ by what it contributes.

        Parameters
        ----------
        X, groups : as in `fit`
            The documents; as in `fit`.
        released : {"topics", "frequent", "words", "votes", "priors", "vector_votes", "vectors"}, default="topics"
            Which release; others than topics where releases divide the budget. "frequent": topics of the first half of
            the words. "vector_votes" and "vectors" need a `prior` of vectors.
        rounds_before : int, default=0
            Rounds of topics before it, all from the first table. All units take part, also where rounds are sampled.

        Returns
        -------
        sums : skdplda.rounds.Bounded
            `total`, the sum of contributions in fixed point; `bound` of each, in the norm of order `norm`.

        Raises
        ------
        ValueError
            For parameters or counts that are not as described, and for fits without noise, which have no bound.
        """
        e_step, known, plan, data = self._audited_parts(X, groups)
        if released != "topics" and not isinstance(plan, BudgetPlan):
            raise ValueError(f"released={released!r} is for fits whose releases divide the budget; use 'topics'.")
        vectors = getattr(data.prior, "vectors", None)
        if released in ("vector_votes", "vectors") and vectors is None:
            raise ValueError(f"released={released!r} needs vectors of words; give a prior that has some.")
        active = None if plan.sampling_rate == 1 else np.ones(e_step.n_units, np.uint8)
        for round_ in range(rounds_before):
            e_step.collect(TopicWordCounts(known.table), round_, active)
        query = audited_query(released, known.table, vectors)
        return e_step.collect(query, rounds_before, active)

    def _audited_parts(self, X, groups=None):
        """Return E-step, first tables, plan and data of a fit, for audits by the curator; no ledger is charged."""
        plan = self._plan()
        if plan.noiseless:
            raise ValueError("only a private form has contributions of bounded norm; give a finite epsilon.")
        copy = clone(self)
        randomness = self._new_randomness()
        data = copy._training_data(X, groups, plan, randomness)
        known = copy._make_tables(plan, randomness, data)
        return copy._e_step(plan, randomness, data), known, plan, data

    def _fit(self, X, groups, transcript=None):
        """Plan, check the budget, read, warn, charge and run; then change all fitted attributes at once."""
        plan = self._plan()
        guarantee = stated_guarantee(self, self._guarantee("document" if groups is None else "user", plan))
        if transcript is not None:
            check_transcript(transcript, self, plan)
        charge = BudgetCharge(guarantee, f"{type(self).__name__} fit", self)
        charge.check(self._interrupted_run())
        warn_of_missing_groups(self, groups)
        check_same_rows(X, groups, "groups")
        randomness = self._randomness()
        data = self._training_data(X, groups, plan, randomness)._replace(transcript=transcript)
        check_memory(self.n_components, data.n_words)
        self._warn(plan, guarantee, data.n_words)
        if not plan.noiseless:
            randomness.warn_if_seeded(self)
        attributes = self._run(plan, guarantee, randomness, data, charge, self.callback)
        held, asked = attributes.pop("transcript", None), attributes.pop("asked", ())
        guarantee = with_asked(guarantee, plan, asked)
        self._set_fitted(guarantee, **attributes)
        note_groups(self, data.units)
        if held is not None:
            keep_transcript(transcript, *held)
        self._warn_fitted()
        return self

    def _run(self, plan, guarantee, randomness, data, charge, callback):
        """Run the private loop and return the fitted attributes; `charge.charge` must precede the first release."""
        e_step, known = self._e_step(plan, randomness, data), self._make_tables(plan, randomness, data)
        (strategy, state), spending = self._strategy(plan, known), Spending(plan)
        identity = ""
        if self.checkpoint is not None:
            # Of other columns, a prior says other things.
            held = settings_of(self), data.documents.shape, data.contents, data.prior, data.transcript is not None
            identity = f"{type(self).__name__} {fingerprint(*held)}"
        with closing(e_step) if hasattr(e_step, "close") else nullcontext():
            transcript = Transcript(self.checkpoint, identity, state, keeps=data.transcript is not None)
            samples = None if plan.noiseless or plan.sampling_rate == 1 else randomness.samples
            charged = partial(charge.charge, samples=samples)
            options = {"transcript": transcript, "before_release": charged, "callback": callback}
            options |= {"verbose": self.verbose}
            if plan.noiseless:
                if self._starts_from_documents(plan):
                    options |= {"tables": state, "mean_length": data.mean_length}
                answer_exactly(strategy, e_step, spending, randomness, **options)
            else:
                options["n_threads"] = effective_n_jobs(self.n_jobs)
                converse(strategy, e_step, spending, randomness, **options)
            priors = getattr(e_step, "priors", None)
        del e_step  # before the model is made, which is as large as its sums
        attributes = self._fitted_of(known, transcript.n_done, data, priors)
        if data.transcript is not None:
            held = transcript_of(self, guarantee, transcript, spending, data, randomness.table_key)
            attributes["transcript"] = held
        return attributes | {"asked": transcript.kinds}

    def _fitted_of(self, known, n_iter, data, priors=None):
        """Return the fitted attributes, of what is known in the end."""
        attributes = self._with_inferred(priors, self._model_of(known, n_iter))
        if self._votes_without_noise():
            prior, beta = self._doc_topic_prior(), self._topic_word_prior()
            given = data.documents, attributes["components_"], beta, prior, effective_n_jobs(self.n_jobs)
            attributes["doc_topic_prior_"] = (1.0 if data.on_workers else voted_factor(*given)) * prior
        return self._in_order_of_seeds(attributes, data.prior)

    def _starts_from_documents(self, plan):
        """Whether the first topics of a fit without noise are documents, which the E-step can count."""
        return False

    def _in_rounds(self):
        """Whether the fit is made of rounds, whose noisy sums a transcript may keep."""
        return True

    def _unread(self, n_words, n_counted, grouped, words, word_vectors=None, word_frequencies=None):
        """Return the `TrainingData` of a fit whose documents are not here."""
        return TrainingData(sp.csr_array((0, n_words), dtype=np.int32), None, grouped, (), words)

    def _in_order_of_seeds(self, fitted, prior):
        """Return the fitted attributes, topics named and in the order of the prior's seeds: post-processing."""
        if prior is not None and np.ndim(self.doc_topic_prior):  # each topic keeps the prior with which it was found
            fitted = fitted | {"doc_topic_prior_": self._doc_topic_prior()}
        if prior is None or not len(prior.informed):
            return fitted
        order = order_of_topics(prior, fitted["components_"])
        names = np.array([f"topic_{topic}" for topic in range(self.n_components)], dtype=object)
        names[prior.informed] = np.array(prior.names, dtype=object)[prior.informed]
        return fitted | {name: fitted[name][order] for name in OF_TOPICS if name in fitted} | {"topic_names_": names}

    def _which_inferred(self):
        """Whether the priors of topic proportions, and of words, are inferred."""
        return isinstance(self.doc_topic_prior, str), isinstance(self.topic_word_prior, str)

    def _released_priors(self):
        """Return the names of the fitted priors, which are no parameters, or not in their order."""
        if self._adaptive():
            return ("doc_topic_prior_",) if self._votes_on_prior() or self._reorders_prior() else ()
        inferred = np.isinf(self.epsilon) and any(self._which_inferred())
        names = ("doc_topic_prior_", "topic_word_prior_") if inferred else ()
        return ("doc_topic_prior_",) if self._votes_without_noise() else names

    def _votes_on_prior(self):
        """Whether documents vote for the prior of topic proportions, with noise."""
        return self._adaptive() and (self.doc_topic_prior is None or self._which_inferred()[0])

    def _votes_without_noise(self):
        """Whether documents say with which multiple of the default prior they are read best, without noise."""
        given = self.doc_topic_prior is not None or any(self._which_inferred())
        return np.isinf(self.epsilon) and not given and self._full_batches()

    def _full_batches(self):
        """Whether all documents are in each round, with default priors that are not a paper's."""
        return False

    def _first_prior(self):
        """Return the mean of the prior that documents vote for multiples of, or None if they do not."""
        return float(self._doc_topic_prior()[0]) if self._votes_on_prior() else None

    def _first_alpha(self):
        """Return the prior of topic proportions to start from; where it is inferred, not that of an earlier fit."""
        if self._which_inferred()[0] and not self._adaptive():
            return np.full(self.n_components, FIRST_PRIOR)
        return self._doc_topic_prior()

    def _knowledge(self, plan, key, data):
        """Return the `Knowledge` that a fit whose releases divide the budget starts from."""
        shape = data.n_words, self.n_components
        return Knowledge(shape, plan, key, n_rounds=self.max_iter, prior=data.prior, first_prior=self._first_prior())

    def _reorders_prior(self):
        """Whether a prior that is an array is released in the order of topics that were matched to seeds."""
        return np.ndim(self.doc_topic_prior) > 0 and self.prior is not None

    def _doc_topic_prior(self):
        if not self._which_inferred()[0] or self._adaptive():
            return super()._doc_topic_prior()
        if hasattr(self, "doc_topic_prior_"):
            return self.doc_topic_prior_
        return FIRST_PRIOR * in_proportion(total(getattr(self, "components_", np.ones((self.n_components, 1))), axis=1))

    def _topic_word_prior(self, default=0.01):
        """Return the pseudo-count of every word in every topic; where it is inferred, that to start from."""
        return check_prior("topic_word_prior", None if self._which_inferred()[1] else self.topic_word_prior, default)

    def _with_inferred(self, priors, attributes):
        """Return the fitted attributes with the priors of the E-step, if it inferred them."""
        if not isinstance(priors, InferredPriors):
            return attributes
        if self._which_inferred()[1]:
            attributes["components_"] += priors.word_prior - self._topic_word_prior()
        return attributes | {"doc_topic_prior_": priors.alpha, "topic_word_prior_": priors.word_prior}

    def _strategy(self, plan, known):
        """Return what asks, and the state that it goes on from, or None if that is made of its answers."""
        if not isinstance(known, Tables):
            return known.strategy(), None
        return rounds_of(known, plan.n_rounds), known

    def _e_step(self, plan, randomness, data):
        """Return the E-step of all documents, here or on workers."""
        make = self._make_e_step(plan, randomness, data)
        if data.on_workers:
            norm = None if plan.noiseless else plan.law.norm
            return ShardedEStep(data.documents, make, randomness, norm, stateless=not self._remembers(plan, data))
        return make(data.documents, data.units, randomness=randomness, n_threads=effective_n_jobs(self.n_jobs))

    def _model_of(self, tables, n_iter):
        """Return the fitted attributes that follow from the tables."""
        components = np.ascontiguousarray(tables.pseudo_counts().T)
        components += self._topic_word_prior()
        attributes = {"components_": components, "n_iter_": n_iter}
        ratios = tables.signal_to_noise() if hasattr(tables, "signal_to_noise") else None
        if ratios is not None:
            attributes |= {"signal_to_noise_": ratios[0], "topic_signal_to_noise_": ratios[1]}
        if isinstance(tables, Knowledge) and self._votes_on_prior():
            relative = in_proportion(tables.relative_priors())
            attributes["doc_topic_prior_"] = tables.prior_factor * relative * self._doc_topic_prior()
        return attributes

    def _training_data(self, X, groups, plan, randomness):
        """Return the `TrainingData` of a fit, the public prior included."""
        data = self._read(X, groups, plan, randomness)
        if self._uses_prior(plan) and self.prior is not None:
            data = data._replace(prior=self._word_prior(data))
        return data

    def _read(self, X, groups, plan, randomness):
        """Return the `TrainingData`, checked and grouped by privacy unit."""
        sharded = self._load_on_workers(X, groups)
        if sharded is not None:
            return TrainingData(sharded, None, groups is not None, sharded.data)
        X = shortened(check_counts(self, X, reset=True, copy=not plan.noiseless))
        units = None if groups is None else check_groups(groups, X.shape[0])
        contents = X.indptr, X.indices, X.data, *(units or ())
        return TrainingData(X, units, groups is not None, contents, self._vocabulary())

    def _warn(self, plan, guarantee, n_words):
        """Warn the caller of `fit`."""
        warn_of_spare_topics(self.n_components, n_words)

    def _warn_fitted(self):
        """Warn the caller of `fit` of what the releases tell: what was paid for is stored, even if this raises."""
        warn_of_noise(self)

    def _randomness(self):
        """Return the `Randomness` of a fit, which is that of the interrupted run if there is a checkpoint.

        A round that is repeated then draws the same hidden state, sample and noise, so that all copies of a checkpoint
        release the same.
        """
        randomness, (_, key) = self._new_randomness(), interrupted(self.checkpoint)
        if key is not None:
            randomness.root = key
        return randomness

    def _interrupted_run(self):
        """Return the name of the run that `fit` would go on with, which a ledger may have; None for a new one."""
        return interrupted(self.checkpoint)[0]

    def _remembers(self, plan, data):
        """Whether an E-step keeps hidden state from round to round."""
        return True

    def _plan(self):
        """Return the `NoisePlan` of the fit, from the parameters alone: no data are read. Bad priors are refused."""
        self._doc_topic_prior()
        self._topic_word_prior()
        return NoisePlan.calibrate("gaussian", self.epsilon, self.delta, self.max_iter, 1.0)

    def _guarantee(self, unit, plan):
        """Return the guarantee of a plan for the privacy unit "document" or "user"."""
        guarantee = rounds_guarantee(plan, unit, self.epsilon, self.delta, hidden="")
        return seeded_guarantee(guarantee, self.random_state)

    def _uses_prior(self, plan):
        """Whether the fit has a use for a public prior."""
        return isinstance(plan, BudgetPlan)

    def _check_prior(self, adaptive):
        """Refuse a prior that a private form has no use for, and one with more topics than the model."""
        if (n_seeded := len(seeded_names(self.prior))) > self.n_components:
            raise ValueError(
                f"prior has {n_seeded} topics, more than n_components={self.n_components}; give at least as many."
            )
        if self.prior is not None and not adaptive and np.isfinite(self.epsilon):
            raise ValueError(
                "prior must be None for this form: only Gaussian noise, on all units in every round, has a use for it."
                f" Use the defaults of {type(self).__name__} beside prior."
            )

    def _prior_assumption(self):
        """Return what the guarantee assumes of the public prior, in a tuple that is empty without one."""
        if self.prior is None:
            return ()
        described = (
            f"public prior {self.prior!r}: independent of the private texts, or released at a cost that is counted"
        )
        return (getattr(self.prior, "description", described),)  # a `WordPrior` may be the topics of an earlier fit

    def _word_prior(self, data):
        """Return what the public prior says of the words of X."""
        prior = self.prior
        if isinstance(prior, PublicPrior):
            if data.words is None:
                raise ValueError(
                    "prior needs the words of X, and this X has no names of columns. Give a data frame, use"
                    " DPCountVectorizer or SemanticUnitVectorizer in the pipeline (what scikit-learn's CountVectorizer"
                    " makes has no names), or give prior.for_words(words), with the words in the order of the columns."
                )
            prior = prior.for_words(data.words)
        if prior.n_words not in (None, data.n_words):
            raise ValueError(f"prior is for {prior.n_words} words, and X has {data.n_words}.")
        return prior

    def _make_e_step(self, plan, randomness, data):
        """Return `make(X, units, *, randomness, n_threads, first_document=0)`, which returns the `EStep` of documents.

        Workers call it with their part of the documents; `first_document` is the number of the first of them.
        """
        if not hasattr(self, "contribution"):
            raise NotImplementedError(f"{type(self).__name__} must have a method contribution; see BaseRoundsModel.")
        if plan.law.norm != 2:
            raise ValueError(f"contributions are bounded in the L2 norm, and {plan.mechanism!r} noise needs L1.")
        # A copy: it keeps nothing from fit to fit, and workers must not get the seed of the noise.
        contribution = clone(self).set_params(random_state=None, checkpoint=None, callback=None).contribution
        check_contribution(contribution, data.n_words, self.n_components, f"{type(self).__name__}.contribution")
        return partial(UnitEStep, contribution=contribution, n_topics=self.n_components)

    def _make_tables(self, plan, randomness, data):
        """Return the M-step, `Tables`."""
        return SmoothedTables((data.n_words, self.n_components), plan, randomness.table_key)


def settings_of(estimator):
    """Return, as text, the parameters that another run of the same fit must not change, by what they hold."""
    settings = {name: value for name, value in estimator.get_params(deep=False).items() if name not in MAY_CHANGE}
    return fingerprint(settings | {"prior mass": estimator._prior_mass()})  # a default that versions may change


def warn_of_spare_topics(n_components, n_words):
    """Warn the caller of `fit` that there are more topics than words."""
    if n_components > n_words:
        warn(
            f"n_components={n_components} exceeds the {n_words} words of X: some topics will be alike or"
            " empty. Use at most as many topics as words.",
            UserWarning,
        )
