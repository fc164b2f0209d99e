"""Variational LDA with private statistics: full rounds, or the stochastic form for streams."""

import math
import warnings
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, Literal, Self
from uuid import uuid4

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.metaestimators import available_if

from skdplda._types import ArrayLike, Function, Matrix, Seed
from skdplda._validation import (
    Interval,
    StrOptions,
    check_counts,
    check_groups,
    check_prior,
    fit_context,
    note_parameters,
)
from skdplda.datasets import DiskCounts
from skdplda.distributed import ShardedDocuments
from skdplda.exceptions import BudgetExceededError, PrivacyLeakWarning
from skdplda.models._base import BaseTopicModel
from skdplda.models._checkpoint import interrupted_run
from skdplda.models._fit import fit_rounds, settings_of, warn_of_large_delta, warn_of_spare_topics
from skdplda.models._rounds import GRID, NoisePlan, run_round
from skdplda.models._rules import UNIT, OnlineTables, SmoothedTables, annealed, constant
from skdplda.models._sharded import ShardedStep, sharded_documents
from skdplda.models._variational_step import EXACT_UNIT, VariationalStep, part_of_step
from skdplda.models._vips_promise import sampled_share, vips_guarantee
from skdplda.privacy import ACCOUNTINGS, CLAIMED_ACCOUNTINGS, Payment, PrivacyGuarantee, Randomness

__all__ = ["VIPSLDA"]

PRIVATE_ROUNDS, EXACT_ROUNDS = 20, 50
PRIVATE_PASSES, EXACT_PASSES = 2, 5  # of the stochastic form, over all documents on average
PRIVATE_TOPIC_WORD_PRIOR, EXACT_TOPIC_WORD_PRIOR = 1.0, 0.03
SMOOTHING = 1.0  # as in SmoothedTables, of stretched shares: they bear more of it than counts
OFFSET = 0.4  # of alpha in private rounds: exp(digamma(x + 1/2)) is about x, so a topic of few counts is not lost
REMEMBERED_UPDATES, FRESH_UPDATES = 8, 50  # iterations for a document that goes on, and for one that starts anew
EVENNESS = 10.0  # of the first table: topics that start far apart settle too early


class VIPSLDA(BaseTopicModel):
    """Latent Dirichlet allocation by variational inference, differentially private for documents or users.

    VIPS, variational inference with private statistics [1]_: each round infers the topics of documents from a public
    table, and releases the sum of their expected topic-word counts plus integer noise. In memory, with
    `learning_method="batch"`, a document goes on from its topics of the last round, which are never released. On disk,
    and in streams, it starts anew; that costs quality at small epsilon.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Affects privacy: no.
    epsilon : float, default=5.0
        Privacy loss of the whole fit, for adding or removing one document (one user with `groups`). `inf` is the
        non-private model on the same code. Affects privacy: yes.
    delta : float, default=1e-5
        Probability that the loss exceeds epsilon; choose it well below 1 / `nominal_size`, without looking at the data.
        Affects privacy: yes.
    accounting : {"pld", "rdp", "zcdp", "advanced", "linear"}, default="pld"
        How noise is found for epsilon. "pld" (least noise) and "rdp" are proven. The others are the paths compared in
        [1]_; they warn on every fit, and the guarantee says what their noise is worth. Affects privacy: yes.
    learning_method : {"batch", "online"}, default="batch"
        Affects privacy: no, the noise is calibrated to it.

        * "batch": each round starts from its predecessor's release, with falling noise; the model is their mean.
        * "online": the stochastic form of [1]_, for mini-batches and streams. Each step moves the table by
          (`learning_offset` + step) ** -`learning_decay` towards its release; noise stays the same.
    max_iter : int or None, default=None
        Number of rounds or steps, each of which spends budget; `partial_fit` refuses more. None: 20 with noise, 50
        without; for "online" two passes with noise, five without. Affects privacy: no, the noise is calibrated to it.
    sampling_rate : float or None, default=None
        Probability that a document (user) takes part in a round of `fit` (Poisson sampling). None: `batch_size` /
        `nominal_size` if given, else 1. Affects privacy: no, the noise is calibrated to it.
    batch_size : int or None, default=None
        Documents expected in a step, in place of `sampling_rate`; needs `nominal_size`. Called S in [1]_. The true
        number of documents in a batch enters no scale. Affects privacy: no.
    nominal_size : int or None, default=None
        A public estimate of the number of documents (users), called D in [1]_; not to be counted in the data.
        Affects privacy: no.
    max_visits : int or None, default=None
        For `partial_fit`: the most batches in which one document (user) comes, as you promise. None: all of them.
        Affects privacy: yes, the noise is calibrated to it.
    max_norm : float or None, default=None
        Bound on the norm of a document's (user's) word counts, at least 1; larger ones are scaled down to it, as in
        [1]_. None: all documents (users) contribute equally. Unused without noise. Affects privacy: no, noise follows.
    max_doc_length : int or None, default=None
        Longer documents are cut to so many random tokens, called N in [1]_. Affects privacy: no.
    learning_offset : float, default=10.0
        Called tau_0 in [1]_; at least 0. Affects privacy: no.
    learning_decay : float, default=0.7
        Called kappa in [1]_; in [0, 1]. Affects privacy: no.
    max_doc_update_iter : int or None, default=None
        Most iterations for a document in a round. None: 8 where documents go on from the last round with noise, else
        50. Affects privacy: no.
    mean_change_tol : float, default=1e-3
        Mean change of its parameters at which a document stops. Affects privacy: no.
    doc_topic_prior : float, array-like of shape (n_components,) or None, default=None
        Dirichlet prior of topic proportions, called alpha in [1]_. None: 0.1. Affects privacy: no.
    topic_word_prior : float or None, default=None
        Dirichlet prior of topics, called eta in [1]_. None: 1.0 with noise, 0.03 without. Affects privacy: no.
    checkpoint : str, path-like or None, default=None
        File written after each round of `fit` and removed at the end. A later `fit` with the same parameters and data
        goes on from it, without spending again. It is as private as the data. Affects privacy: no.
    callback : callable or None, default=None
        Called after each round of `fit` with a report (`n_done`, `n_rounds`, `table`) that holds released values only.
        Affects privacy: no.
    n_jobs : int or None, default=None
        Threads, as in joblib. Same result for any number. Affects privacy: no.
    random_state : int, RandomState or None, default=None
        None takes fresh entropy from the operating system. Anything else makes the fit reproducible and warns:
        the guarantee then assumes that the number stays secret. Affects privacy: yes.
    verbose : int, default=0
        Progress bar if positive. Affects privacy: no.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_words)
        Topic-word pseudo-counts, the prior included; called lambda in [1]_.
    topic_word_ : ndarray of shape (n_components, n_words)
        `components_` with rows scaled to sum to 1.
    privacy_guarantee_ : PrivacyGuarantee
        What was promised; print it for a statement to publish.
    n_iter_ : int
        Rounds (steps) done.
    n_features_in_ : int
        Number of words.
    feature_names_in_ : ndarray of shape (n_words,)
        Words, if X was a data frame.

    See Also
    --------
    skdplda.PrivateCGSLDA : The same rounds with Gibbs sampling.
    skdplda.datasets.write_counts : Documents on disk.

    References
    ----------
    .. [1] M. Park, J. Foulds, K. Chaudhuri, M. Welling (2016). Private topic modeling. arXiv:1609.04120. Algorithm 1.
    .. [2] M. Hoffman, D. Blei, F. Bach (2010). Online learning for latent Dirichlet allocation. NIPS. Algorithm 2.

    Examples
    --------
    >>> from skdplda import VIPSLDA
    >>> from skdplda.datasets import make_lda_corpus
    >>> X = make_lda_corpus(2000, 100, 4, random_state=0).data
    >>> model = VIPSLDA(n_components=4, epsilon=2.0).fit(X)
    >>> model.transform(X[:3]).shape
    (3, 4)

    A stream of ten batches, where each document comes once:

    >>> stream = VIPSLDA(4, epsilon=2.0, learning_method="online", max_iter=10, max_visits=1, batch_size=200,
    ...                  nominal_size=2000)
    >>> for start in range(0, 2000, 200):
    ...     _ = stream.partial_fit(X[start : start + 200])
    >>> stream.n_iter_, stream.privacy_guarantee_.epsilon
    (10, 2.0)
    """

    _parameter_constraints = {  # noqa: RUF012
        "n_components": [Interval(Integral, 1, 65534, closed="both")],
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="left")],
        "accounting": [StrOptions(set(ACCOUNTINGS))],
        "learning_method": [StrOptions({"batch", "online"})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "sampling_rate": [Interval(Real, 0, 1, closed="right"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "nominal_size": [Interval(Integral, 1, None, closed="left"), None],
        "max_visits": [Interval(Integral, 1, None, closed="left"), None],
        "max_norm": [Interval(Real, 1, GRID, closed="both"), None],
        "max_doc_length": [Interval(Integral, 1, None, closed="left"), None],
        "learning_offset": [Interval(Real, 0, None, closed="left")],
        "learning_decay": [Interval(Real, 0, 1, closed="both")],
        "max_doc_update_iter": [Interval(Integral, 1, 2**30, closed="both"), None],
        "mean_change_tol": [Interval(Real, 0, None, closed="left")],
        "doc_topic_prior": [Real, "array-like", None],
        "topic_word_prior": [Real, None],
        "checkpoint": [str, PathLike, None],
        "callback": [callable, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        epsilon: float = 5.0,
        delta: float = 1e-5,
        accounting: Literal["pld", "rdp", "zcdp", "advanced", "linear"] = "pld",
        learning_method: Literal["batch", "online"] = "batch",
        max_iter: int | None = None,
        sampling_rate: float | None = None,
        batch_size: int | None = None,
        nominal_size: int | None = None,
        max_visits: int | None = None,
        max_norm: float | None = None,
        max_doc_length: int | None = None,
        learning_offset: float = 10.0,
        learning_decay: float = 0.7,
        max_doc_update_iter: int | None = None,
        mean_change_tol: float = 1e-3,
        doc_topic_prior: ArrayLike | None = None,
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
        self.accounting = accounting
        self.learning_method = learning_method
        self.max_iter = max_iter
        self.sampling_rate = sampling_rate
        self.batch_size = batch_size
        self.nominal_size = nominal_size
        self.max_visits = max_visits
        self.max_norm = max_norm
        self.max_doc_length = max_doc_length
        self.learning_offset = learning_offset
        self.learning_decay = learning_decay
        self.max_doc_update_iter = max_doc_update_iter
        self.mean_change_tol = mean_change_tol
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.checkpoint = checkpoint
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Matrix, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Fit the topics.

        The budget of an open `PrivacyAccountant` is checked before X is read and charged before the first release.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), DiskCounts, ShardedCounts or Dask collection
            Word counts over a public, or privately selected, vocabulary. A `skdplda.datasets.DiskCounts` is read from
            disk in each round, some thousand documents at a time. Those of a `skdplda.distributed.ShardedCounts`, or of
            what it takes, stay on their workers.
        y : None
            Ignored.
        groups : array-like of shape (n_documents,), default=None
            The user of each document: the guarantee then is for all documents of one user together.

        Returns
        -------
        self : VIPSLDA
            The fitted estimator.

        Raises
        ------
        BudgetExceededError
            If an open accountant cannot afford the fit. No data were read.
        ValueError
            For parameters or counts that are not as described.
        """
        plan = self._plan()
        guarantee = vips_guarantee(self, "document" if groups is None else "user", plan, stream=False)
        payment = Payment(guarantee, f"{type(self).__name__} fit")
        payment.check(interrupted_run(self.checkpoint))
        if isinstance(X, DiskCounts):
            if groups is not None:
                raise ValueError("groups must be None for documents on disk: a user's documents are not read together.")
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_, units, data = X.shape[1], None, (np.frombuffer(bytes.fromhex(X.digest), np.uint8),)
        elif (sharded := sharded_documents(self, X, groups)) is not None:
            X, data = sharded, sharded.data
        else:
            X = check_counts(self, X, reset=True)
            units = None if groups is None else check_groups(groups, X.shape[0])
            data = X.indptr, X.indices, X.data, *(units or ())
        self._warn(plan, guarantee)
        randomness = Randomness(self.random_state)
        if not plan.noiseless:
            randomness.warn_if_seeded(self)
        self.__dict__.pop("_stream", None)
        n_threads = effective_n_jobs(self.n_jobs)
        remember = self._private_batch(plan) and not isinstance(X, DiskCounts)
        settings = self._e_step(plan, randomness, remember, groups is not None)
        if isinstance(X, ShardedDocuments):
            e_step = ShardedStep(X, partial(part_of_step, **settings), randomness, stateless=not remember)
        else:
            e_step = VariationalStep(X, units, n_threads=n_threads, **settings)
        fit_rounds(
            self,
            e_step,
            self._rule(plan, groups is not None, randomness),
            plan,
            randomness,
            prior=self._topic_word_prior(),
            payment=payment,
            data=data,
            n_threads=n_threads,
        )
        return self._finish(guarantee)

    @available_if(lambda self: self.learning_method == "online")
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Matrix, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Take one step, with one mini-batch of a stream. Only for `learning_method="online"`.

        The first call pays for all `max_iter` steps. The model holds released values only: pickle it between steps, and
        a stream that was killed goes on from there, without spending again. Go on from one copy, the last: steps taken
        twice are two releases, and one is paid.

        There is no gain from sampling: a document (user) may come in every batch, or in at most `max_visits`. In which
        it comes must depend neither on other documents (users) nor on the model: cut a stream by time, or by a coin for
        each document, but not at every thousandth document.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts, with the same words in each batch. A batch without documents is one of empty documents.
        y : None
            Ignored.
        groups : array-like of shape (n_documents,), default=None
            The user of each document, in every batch or in none.

        Returns
        -------
        self : VIPSLDA
            The estimator after one more step.

        Raises
        ------
        BudgetExceededError
            If `max_iter` steps have been taken, or an open accountant cannot afford the stream. No data were read.
        ValueError
            For parameters or counts that are not as described, or changed between steps.
        """
        if self.accounting in CLAIMED_ACCOUNTINGS:
            raise ValueError(
                f"accounting={self.accounting!r} counts on Poisson samples, and partial_fit cannot know how batches"
                " were drawn. Use accounting='pld', or fit."
            )
        plan, unit = self._plan(stream=True), "document" if groups is None else "user"
        guarantee = vips_guarantee(self, unit, plan, stream=True)
        settings = f"{unit} {settings_of(self)}"
        stream = getattr(self, "_stream", None)
        if stream is None:
            stream = {"run": uuid4().hex, "settings": settings, "n_done": 0}
        elif stream["settings"] != settings:
            raise ValueError(
                "parameters, or whether there are groups, must not change between steps of partial_fit: the noise is"
                " calibrated to all of them. Start a new stream with clone(estimator)."
            )
        if stream["n_done"] >= plan.n_rounds:
            raise BudgetExceededError(
                f"max_iter={plan.n_rounds} steps have been taken, and the promise covers no more. Nothing was read."
            )
        payment = Payment(guarantee, f"{type(self).__name__} stream")
        payment.check(stream["run"])
        X = check_counts(self, X, reset=stream["n_done"] == 0)
        units = None if groups is None else check_groups(groups, X.shape[0])
        randomness = Randomness(self.random_state)
        if stream["n_done"] == 0:
            self._warn(plan, guarantee)
        if not plan.noiseless:
            randomness.warn_if_seeded(self)
        n_threads = effective_n_jobs(self.n_jobs)
        rule = self._rule(plan, groups is not None, randomness)
        if stream["n_done"]:
            rule.restore({"table": stream["table"]})
        payment.charge(stream["run"])
        settings = self._e_step(plan, randomness, False, groups is not None)
        e_step = VariationalStep(X, units, n_threads=n_threads, **settings)
        run_round(e_step, rule, plan, randomness, stream["n_done"], n_threads=n_threads)
        self.n_iter_ = stream["n_done"] + 1
        self._stream = stream | {"n_done": self.n_iter_, "table": rule.table}
        self.components_ = np.ascontiguousarray(rule.pseudo_counts().T) + self._topic_word_prior()
        return self._finish(guarantee)

    @fit_context(prefer_skip_nested_validation=True)
    def privacy_cost(self, *, groups: bool = False, stream: bool = False) -> PrivacyGuarantee:
        """What `fit` or a stream would promise, without data.

        Parameters
        ----------
        groups : bool, default=False
            Whether `fit` will be given groups.
        stream : bool, default=False
            Whether the batches will come through `partial_fit`.

        Returns
        -------
        guarantee : PrivacyGuarantee
            Equal to `privacy_guarantee_` after the fit.
        """
        return vips_guarantee(self, "user" if groups else "document", self._plan(stream), stream)

    def _finish(self, guarantee):
        self.topic_word_ = self.components_ / self.components_.sum(axis=1, keepdims=True)
        self.privacy_guarantee_ = guarantee
        note_parameters(self)
        return self

    def _doc_topic_prior(self):
        return check_prior("doc_topic_prior", self.doc_topic_prior, 0.1, self.n_components)

    def _topic_word_prior(self):
        default = EXACT_TOPIC_WORD_PRIOR if np.isinf(self.epsilon) else PRIVATE_TOPIC_WORD_PRIOR
        return check_prior("topic_word_prior", self.topic_word_prior, default)

    def _rate(self):
        return sampled_share(self.sampling_rate, self.batch_size, self.nominal_size)

    def _plan(self, stream=False):
        """Return the noise of the fit, from the parameters alone."""
        self._doc_topic_prior()
        self._topic_word_prior()
        rate, online, exact = self._rate(), self.learning_method == "online", np.isinf(self.epsilon)
        rounds = self.max_iter
        if rounds is None and online:
            rounds = math.ceil((EXACT_PASSES if exact else PRIVATE_PASSES) / rate)
        elif rounds is None:
            rounds = EXACT_ROUNDS if exact else PRIVATE_ROUNDS
        if stream:
            return NoisePlan.equal(self.epsilon, self.delta, rounds, 1.0, self.accounting, self.max_visits)
        if online or self.accounting != "pld":
            return NoisePlan.equal(self.epsilon, self.delta, rounds, rate, self.accounting)
        return NoisePlan.calibrate("gaussian", self.epsilon, self.delta, rounds, rate)

    def _warn(self, plan, guarantee):
        """Warn the caller of `fit` of what it should know; called two frames below it."""
        warn_of_spare_topics(self.n_components, self.n_features_in_, stacklevel=5)
        if plan.noiseless:
            return
        if guarantee.status == "claimed":
            warnings.warn(
                f"accounting={self.accounting!r} claims epsilon={self.epsilon:g}: {guarantee.reason} Use"
                " accounting='pld' for a proven epsilon.",
                PrivacyLeakWarning,
                stacklevel=4,
            )
        warn_of_large_delta(self.delta, self.nominal_size, stacklevel=5)

    def _unit(self, plan):
        """Return what GRID stands for, in tokens."""
        if plan.noiseless:
            return GRID / EXACT_UNIT
        return UNIT if self.max_norm is None else float(self.max_norm)

    def _e_step(self, plan, randomness, remember, grouped):
        """Return the E-step's settings, for `VariationalStep`."""
        alpha, beta = self._doc_topic_prior(), self._topic_word_prior()
        if plan.noiseless and self.learning_method == "batch":  # elsewhere constant priors were better
            priors = partial(annealed, alpha, beta, self.n_components, n_rounds=plan.n_rounds)
        else:
            priors = partial(constant, alpha + OFFSET * self._private_batch(plan), beta)
        return {
            "n_topics": self.n_components,
            "priors": priors,
            "exact": plan.noiseless,
            "max_norm": self.max_norm,
            "max_length": self.max_doc_length,
            "max_iter": self.max_doc_update_iter or (REMEMBERED_UPDATES if remember else FRESH_UPDATES),
            "tol": self.mean_change_tol,
            "key": randomness.key,
            "remember": remember,
            "weighted": self._weighted(plan, grouped),
        }

    def _private_batch(self, plan):
        return self.learning_method == "batch" and not plan.noiseless

    def _weighted(self, plan, grouped):  # the bounds of users and of `max_norm` are on word counts
        return self._private_batch(plan) and not grouped and self.max_norm is None

    def _rule(self, plan, grouped, randomness):
        shape, key, unit = (self.n_features_in_, self.n_components), randomness.key, self._unit(plan)
        if self.learning_method == "online":
            return OnlineTables(shape, self._rate(), key, unit, self.learning_offset, self.learning_decay, EVENNESS)
        weighted = self._weighted(plan, grouped)
        smoothing = SMOOTHING if weighted else None
        return SmoothedTables(shape, plan, key, unit, EVENNESS, smoothing=smoothing, weighted=weighted)
