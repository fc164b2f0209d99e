"""Collapsed Gibbs LDA: the sound private form, and the published ones."""

import warnings
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, NoReturn, Self
from uuid import uuid4

import numpy as np
from joblib import effective_n_jobs

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
from skdplda.distributed import ShardedDocuments, shards_of
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.models._base import BaseTopicModel
from skdplda.models._checkpoint import interrupted_run
from skdplda.models._fit import fit_rounds, warn_of_spare_topics
from skdplda.models._gibbs_step import GibbsStep
from skdplda.models._live import MECHANISMS as LIVE_MECHANISMS
from skdplda.models._live import fit_live
from skdplda.models._promise import NOT_COVERED, rounds_guarantee
from skdplda.models._rounds import NoisePlan
from skdplda.models._rules import UNIT, ExactTables, SmoothedTables, annealed, constant, model_noise
from skdplda.models._sharded import ShardedStep, sharded_documents
from skdplda.privacy import InherentPrivacyHistory, Payment, PrivacyGuarantee, Randomness

__all__ = ["PrivateCGSLDA"]

PRIVATE_ROUNDS, EXACT_ROUNDS, LIVE_SWEEPS = 20, 100, 300
PRIVATE_SWEEPS, EXACT_SWEEPS = 10, 1
EVENNESS = 3.0  # of the first table, where shares are released
CLAIMED = {
    "inherent": "no noise is added. The monitor measures the sampler's randomness on these data; it bounds nothing,"
    " because every draw reads the whole table, and the released counts are exact.",
    "laplace-first": "noise on both count matrices once does not cover the exact counts that the later draws and"
    " the released table follow.",
    "laplace-every": "each sweep adds noise calibrated to one count to running counts that a document changes by all"
    " of its tokens, sweep after sweep; the published sum of epsilons leaves this out.",
    "laplace-last": "the released table is made of exact counts: its columns sum to the exact number of times each"
    " word occurs, at any epsilon.",
}
REFERENCES = {
    "inherent": "Zhao et al. (2019), On Privacy Protection of Latent Dirichlet Allocation Model Training, Algorithm 2",
    "laplace-first": "Zhao et al. (2021), Latent Dirichlet Allocation Model Training With Differential Privacy",
    "laplace-every": "Zhao et al. (2021), Latent Dirichlet Allocation Model Training With Differential Privacy",
    "laplace-last": "Zhu et al. (2016), Privacy-preserving topic model for tagging recommender systems",
}
PARTIAL_FIT = (
    "PrivateCGSLDA has no partial_fit: its guarantee counts the rounds of one fit, where a document has one bounded"
    " contribution a round, and a stream does not say which documents come back. Fit once on all documents, or give"
    " `checkpoint` to interrupt and resume a fit."
)


class PrivateCGSLDA(BaseTopicModel):
    """Latent Dirichlet allocation by collapsed Gibbs sampling, differentially private for documents or users.

    Topics are sampled for all documents at once from a public table of topic-word counts; each round releases the
    next table as the sum of the documents' contributions plus integer noise. Privacy holds against everyone who sees
    every round's table.

    With noise, all documents (users) contribute equally: the topic-word counts of one are scaled to a fixed norm. There
    is no bound to choose. With Gaussian noise a document contributes its words' probabilities in topics, in place of
    drawn topics, and rare words weigh more; both make better topics. Without noise each token counts 1.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Affects privacy: no.
    epsilon : float, default=5.0
        Privacy loss of the whole fit, for adding or removing one document (one user with `groups`). `inf` is the
        non-private model on the same code. Affects privacy: yes.
    delta : float, default=1e-5
        Probability that the loss exceeds epsilon; choose it well below 1 / (public estimate of the number of
        units), without looking at the data. Not used by "laplace". Affects privacy: yes.
    mechanism : str, default="gaussian"
        Affects privacy: yes.

        * "gaussian", "laplace": the sound form, proven in the theory guide. "laplace" gives pure epsilon.
        * "inherent" [1]_, "laplace-first", "laplace-every" [2]_, "laplace-last" [3]_: the published forms, to
          reproduce the papers. They warn on every fit: their privacy claims do not hold, or claim nothing.
    max_iter : int or None, default=None
        Number of rounds, each of which spends budget; sweeps for the published forms. None: 20 with noise, 100
        with `epsilon=inf`, 300 for the published forms. Affects privacy: no, the noise is calibrated to it.
    local_sweeps : int or None, default=None
        Gibbs sweeps over a document's tokens within a round. None: 10 with noise, else 1. Affects privacy: no.
    sampling_rate : float, default=1.0
        Probability that a unit takes part in a round (Poisson sampling). "gaussian" only. Affects privacy: no,
        the noise is calibrated to it.
    doc_topic_prior : float, array-like of shape (n_components,) or None, default=None
        Dirichlet prior of topic proportions, called alpha in [1]_. None: 0.1. Affects privacy: no.
    topic_word_prior : float or None, default=None
        Dirichlet prior of topics, called beta in [1]_. None: 0.01. Affects privacy: no.
    checkpoint : str, path-like or None, default=None
        File written after each round and removed at the end. A later `fit` with the same parameters and data goes
        on from it, without spending again. It is as private as the data. Affects privacy: no.
    callback : callable or None, default=None
        Called after each round with a report (`n_done`, `n_rounds`, `table`) that holds released values only.
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
        Topic-word pseudo-counts, the prior included.
    topic_word_ : ndarray of shape (n_components, n_words)
        `components_` with rows scaled to sum to 1.
    privacy_guarantee_ : PrivacyGuarantee
        What was promised; print it for a statement to publish.
    inherent_privacy_ : InherentPrivacyHistory
        Only for "inherent": the monitor's measurements.
    n_iter_ : int
        Rounds (sweeps) done.
    n_features_in_ : int
        Number of words.
    feature_names_in_ : ndarray of shape (n_words,)
        Words, if X was a data frame.

    See Also
    --------
    skdplda.PrivacyAccountant : A budget over several fits.

    References
    ----------
    .. [1] Zhao, Ren, Yang and Yang (2019). On Privacy Protection of Latent Dirichlet Allocation Model Training.
       IJCAI. Eq. 1, Algorithms 1 and 2.
    .. [2] Zhao, Ren, Yang, Han, Zhao and Yang (2021). Latent Dirichlet Allocation Model Training With Differential
       Privacy. IEEE TIFS 16. CDP-LDA and CDP-LDA+.
    .. [3] Zhu, Li, Zhou, Xiong and Yuan (2016). Privacy-preserving topic model for tagging recommender systems.
       Knowledge and Information Systems 46(1).

    Examples
    --------
    >>> from skdplda import PrivateCGSLDA
    >>> from skdplda.datasets import make_lda_corpus
    >>> X = make_lda_corpus(2000, 100, 4, random_state=0).data
    >>> model = PrivateCGSLDA(n_components=4, epsilon=2.0).fit(X)
    >>> model.transform(X[:3]).shape
    (3, 4)
    >>> model.privacy_guarantee_.epsilon <= 2.0
    True
    """

    _parameter_constraints = {  # noqa: RUF012
        "n_components": [Interval(Integral, 1, 65534, closed="both")],
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="left")],
        "mechanism": [StrOptions({"gaussian", "laplace", *LIVE_MECHANISMS})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "local_sweeps": [Interval(Integral, 1, None, closed="left"), None],
        "sampling_rate": [Interval(Real, 0, 1, closed="right")],
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
        mechanism: str = "gaussian",
        max_iter: int | None = None,
        local_sweeps: int | None = None,
        sampling_rate: float = 1.0,
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
        self.mechanism = mechanism
        self.max_iter = max_iter
        self.local_sweeps = local_sweeps
        self.sampling_rate = sampling_rate
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
        X : array-like or sparse matrix of shape (n_documents, n_words), ShardedCounts or Dask collection
            Word counts over a public, or privately selected, vocabulary. Those of a
            `skdplda.distributed.ShardedCounts`, or of what it takes, stay on their workers.
        y : None
            Ignored.
        groups : array-like of shape (n_documents,), default=None
            The user of each document: the guarantee then is for all documents of one user together.

        Returns
        -------
        self : PrivateCGSLDA
            The fitted estimator.

        Raises
        ------
        BudgetExceededError
            If an open accountant cannot afford the fit. No data were read.
        ValueError
            For parameters or counts that are not as described.
        """
        unit = "document" if groups is None else "user"
        guarantee = self._guarantee(unit, self._plan())
        payment = Payment(guarantee, f"{type(self).__name__} fit")
        payment.check(interrupted_run(self.checkpoint))
        X = self._sharded(X, groups) or check_counts(self, X, reset=True)
        warn_of_spare_topics(self.n_components, X.shape[1])
        if self.mechanism in LIVE_MECHANISMS:
            self._fit_live(X, groups, payment)
        else:
            self._fit_rounds(X, groups, payment)
        if self.mechanism != "inherent":
            self.__dict__.pop("inherent_privacy_", None)  # of an earlier fit: the new guarantee does not cover it
        self.topic_word_ = self.components_ / self.components_.sum(axis=1, keepdims=True)
        self.privacy_guarantee_ = guarantee
        note_parameters(self)
        return self

    @property
    def partial_fit(self) -> NoReturn:
        """Not available: raises AttributeError with the reason."""
        raise AttributeError(PARTIAL_FIT)

    @fit_context(prefer_skip_nested_validation=True)
    def privacy_cost(self, *, groups: bool = False) -> PrivacyGuarantee:
        """What `fit` would promise, without data.

        Parameters
        ----------
        groups : bool, default=False
            Whether `fit` will be given groups.

        Returns
        -------
        guarantee : PrivacyGuarantee
            Equal to `privacy_guarantee_` after the fit.
        """
        return self._guarantee("user" if groups else "document", self._plan())

    @fit_context(prefer_skip_nested_validation=True)
    def noise_deviation(self) -> dict[str, Any] | None:
        """Standard deviation of the noise in a cell of the topic-word tables, without data.

        The unit is that of `components_`: a document of 25 different words counts each of them once, and every
        document (user) weighs the same. A cell far above the noise in the model is certainly not noise. With Gaussian
        noise, and without `groups`, the numbers are those of a word of mean frequency: a word r times as frequent has
        r ** (1 / 4) times the noise, where that is in [1 / 5, 5].

        Returns
        -------
        noise : dict or None
            "first_round" and "last_round", of the released tables; "in_model", of `components_`; "rounds". None where
            the mechanism adds no such noise.
        """
        plan = self._plan()
        if plan is None or plan.noiseless:
            return None
        scale = UNIT / plan.sampling_rate
        return {
            "first_round": scale * plan.deviation(0),
            "last_round": scale * plan.deviation(-1),
            "in_model": model_noise(plan),
            "rounds": plan.n_rounds,
        }

    def _doc_topic_prior(self):
        return check_prior("doc_topic_prior", self.doc_topic_prior, 0.1, self.n_components)

    def _plan(self):
        """Return the noise of the fit, from the parameters alone; None for the published forms."""
        self._doc_topic_prior()
        check_prior("topic_word_prior", self.topic_word_prior, 0.01)
        if self.mechanism in LIVE_MECHANISMS:
            for name in ("checkpoint", "callback"):
                if getattr(self, name) is not None:
                    raise ValueError(
                        f"{name} must be None for mechanism={self.mechanism!r}: the published forms run in one piece."
                    )
            return None
        if self.sampling_rate < 1 and self.mechanism == "laplace":
            raise ValueError(
                f"sampling_rate must be 1.0 for mechanism='laplace'; got {self.sampling_rate!r}. Use"
                " mechanism='gaussian' to sample documents."
            )
        rounds = self.max_iter
        if rounds is None:
            rounds = EXACT_ROUNDS if np.isinf(self.epsilon) else PRIVATE_ROUNDS
        return NoisePlan.calibrate(self.mechanism, self.epsilon, self.delta, rounds, self.sampling_rate)

    def _guarantee(self, unit, plan):
        if plan is None:
            diagnostic = self.mechanism == "inherent"
            return PrivacyGuarantee(
                epsilon=np.inf if diagnostic else self.epsilon,
                unit=unit,
                status="diagnostic" if diagnostic else "claimed",
                reason=CLAIMED[self.mechanism],
                mechanism=f"collapsed Gibbs sampling, {self.mechanism}",
                not_covered=NOT_COVERED,
                reference=REFERENCES[self.mechanism],
            )
        hidden = "the hidden topic draws of different documents act as independent ones"
        seeded = self.random_state is not None
        return rounds_guarantee(plan, unit, self.epsilon, self.delta, seeded=seeded, hidden=hidden)

    def _sharded(self, X, groups):
        """Return documents that lie on workers, else None."""
        if self.mechanism not in LIVE_MECHANISMS:
            return sharded_documents(self, X, groups)
        if shards_of(X) is not None:
            raise ValueError(
                f"X must be on this machine for mechanism={self.mechanism!r}: the published forms run in one piece. Use"
                " mechanism='gaussian' on a cluster."
            )
        return None

    def _fit_rounds(self, X, groups, payment):
        plan = self._plan()
        randomness = Randomness(self.random_state)
        if not plan.noiseless:
            randomness.warn_if_seeded(self)
        n_threads = effective_n_jobs(self.n_jobs)
        beta = check_prior("topic_word_prior", self.topic_word_prior, 0.01)
        exact = plan.noiseless and plan.sampling_rate == 1
        order = None if exact else 2 if self.mechanism == "gaussian" else 1
        sweeps = self.local_sweeps or (EXACT_SWEEPS if exact else PRIVATE_SWEEPS)
        alpha = self._doc_topic_prior()

        priors = partial(constant, alpha, beta)
        if exact:
            priors = partial(annealed, alpha, beta, self.n_components, n_rounds=plan.n_rounds)
        shares = order == 2 and groups is None
        settings = {"n_topics": self.n_components, "order": order, "n_sweeps": sweeps, "shares": shares}
        make = partial(GibbsStep, priors=priors, **settings)
        if isinstance(X, ShardedDocuments):
            e_step, data = ShardedStep(X, make, randomness), X.data
        else:
            units = check_groups(groups, X.shape[0])
            data = X.indptr, X.indices, X.data, *units
            e_step = make(X, units, randomness=randomness, n_threads=n_threads)
        shape, key = (X.shape[1], self.n_components), randomness.key
        options = {"evenness": EVENNESS, "weighted": True} if shares else {}
        rule = ExactTables(shape, plan, key) if exact else SmoothedTables(shape, plan, key, **options)
        fit_rounds(self, e_step, rule, plan, randomness, prior=beta, payment=payment, data=data, n_threads=n_threads)

    def _fit_live(self, X, groups, payment):
        if groups is not None:
            raise ValueError(
                f"groups must be None for mechanism={self.mechanism!r}: the published forms know documents and words"
                " only. Use mechanism='gaussian' for user-level privacy."
            )
        randomness = Randomness(self.random_state)
        warnings.warn(
            f"mechanism={self.mechanism!r} is the published form and not private: {CLAIMED[self.mechanism]} Use"
            " mechanism='gaussian' for a guarantee that holds.",
            PrivacyLeakWarning,
            stacklevel=4,
        )
        payment.charge(uuid4().hex)
        beta = check_prior("topic_word_prior", self.topic_word_prior, 0.01)
        fit = fit_live(
            X,
            self.n_components,
            mechanism=self.mechanism,
            epsilon=self.epsilon,
            doc_topic_prior=self._doc_topic_prior(),
            topic_word_prior=beta,
            max_iter=self.max_iter or LIVE_SWEEPS,
            seed=randomness.seed,
        )
        self.components_ = np.maximum(fit.word_topic, 0.0) + beta
        self.n_iter_ = fit.n_iter
        if fit.monitor is not None:
            self.inherent_privacy_ = InherentPrivacyHistory(**fit.monitor)
