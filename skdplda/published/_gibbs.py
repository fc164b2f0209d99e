"""Sequential collapsed Gibbs sampling as three papers have it, noise and claims included, and the monitor of it."""

from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self
from uuid import uuid4

import numpy as np

from skdplda._types import ArrayLike, Matrix, Seed
from skdplda._validation import Interval, StrOptions, check_counts, check_memory, fit_context, tokens_of
from skdplda._warnings import warn
from skdplda.distributed import shards_of
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.models._base import BaseTopicModel, warn_of_spare_topics
from skdplda.models._hdp_sampler import TopicTrace, trace_of
from skdplda.privacy import BudgetCharge, InherentPrivacyHistory, PrivacyGuarantee, stated_guarantee
from skdplda.published._gibbs_sampler import fit_published
from skdplda.rounds._bounds import shortened
from skdplda.rounds._guarantee import NOT_COVERED


class BaseSequentialLDA(BaseTopicModel):
    """Base of the published forms; a subclass says which one it is.

    `_form` is a row of `PUBLISHED`, `_why` the reason why its number is no guarantee, and `_reference` its paper.
    """

    _form: ClassVar[str]
    _why: ClassVar[str]
    _reference: ClassVar[str]
    _status: ClassVar[str] = "claimed"
    _monitored: ClassVar[tuple[str, ...]] = ()  # attributes of the monitor
    _seeded_as = "PrivateCGSLDA"

    _parameter_constraints: dict = {  # noqa: RUF012
        **BaseTopicModel._parameter_constraints,
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        epsilon: float = 5.0,
        max_iter: int = 300,
        doc_topic_prior: ArrayLike | None = None,
        topic_word_prior: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Matrix, y: Any = None) -> Self:
        """Fit the topics, and warn that this is not private.

        The budget of an open `PrivacyAccountant` is checked before X is read and charged before the first release.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts, on this machine. Of a document of more than 2**20 tokens so many take part, in its proportions.
        y : None
            Ignored.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        BudgetExceededError
            If an open accountant cannot afford what is claimed. No data were read.
        ValueError
            For parameters or counts that are not as described.
        """
        guarantee = self.privacy_cost()
        charge = BudgetCharge(guarantee, f"{type(self).__name__} fit", self)
        charge.check()
        alpha, beta = self._doc_topic_prior(), self._topic_word_prior()
        if shards_of(X) is not None:
            raise ValueError(
                f"X must be on this machine for {type(self).__name__}: the published forms run in one piece. Use"
                " PrivateCGSLDA on a cluster."
            )
        X = shortened(check_counts(self, X, reset=True))
        check_memory(self.n_components, X.shape[1])
        warn_of_spare_topics(self.n_components, X.shape[1])
        warn(
            f"{type(self).__name__} is the published form and not private: {self._why} Use PrivateCGSLDA for a"
            " guarantee that holds.",
            PrivacyLeakWarning,
        )
        randomness = self._new_randomness()
        charge.charge(uuid4().hex)
        found = self._sample(X, randomness, self._form, alpha, beta)
        monitor = {} if found.monitor is None else {"inherent_privacy_": InherentPrivacyHistory(**found.monitor)}
        components = np.maximum(found.word_topic, 0.0) + beta
        self._set_fitted(guarantee, components_=components, n_iter_=found.n_iter, **monitor)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def privacy_cost(self, *, groups: bool = False) -> PrivacyGuarantee:
        """State what the paper claims of a fit, and why that does not hold, without data.

        Parameters
        ----------
        groups : bool, default=False
            Whether `fit` will be given groups. It takes none: what is claimed is claimed of documents.

        Returns
        -------
        guarantee : PrivacyGuarantee
            Equal to `privacy_guarantee_` after the fit; its status is never "proven".
        """
        self._doc_topic_prior()
        self._topic_word_prior()
        guarantee = PrivacyGuarantee(
            epsilon=self._claimed_epsilon(),
            unit="document",
            status=self._status,
            reason=self._why,
            mechanism=f"collapsed Gibbs sampling, {self._form}",
            released=("components_", "topic_word_", "n_iter_", *self._monitored),
            not_covered=NOT_COVERED,
            reference=self._reference,
        )
        return stated_guarantee(self, guarantee)

    def _claimed_epsilon(self):
        return self.epsilon

    def _sample(self, X, randomness, form, alpha, beta, observer=None):
        return fit_published(
            X,
            self.n_components,
            form=form,
            epsilon=self._claimed_epsilon(),
            doc_topic_prior=alpha,
            topic_word_prior=beta,
            max_iter=self.max_iter,
            seed=randomness.generator_seed(),
            observer=observer,
        )


class TracedSequentialLDA(BaseSequentialLDA):
    """Base of the forms whose sampler has a trace, for attacks on it."""

    _traced_form: ClassVar[str | None] = None  # None: the form itself

    @fit_context(prefer_skip_nested_validation=True)
    def audit_trace(self, X: Matrix) -> tuple[TopicTrace, np.ndarray]:
        """Sample the trace of a fit, and return it with the words that an attack is to find.

        For audits by the curator: the words are the data. No ledger is charged, since nothing is released, and the
        estimator is not changed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts.

        Returns
        -------
        trace : TopicTrace
            Topics and tables of all sweeps.
        words : ndarray of shape (n_tokens,), int32
            The word of each token, in the trace's order.

        Raises
        ------
        ValueError
            For parameters or counts that are not as described.
        """
        X, sweeps = shortened(check_counts(type(self)(), X, reset=True)), []
        priors = self._doc_topic_prior(), self._topic_word_prior()
        form = self._traced_form or self._form
        found = self._sample(X, self._new_randomness(), form, *priors, lambda *seen: sweeps.append(seen))
        tables, topics = zip(*sweeps, strict=True)
        starts, words = tokens_of(X)
        return trace_of(topics, [*tables, found.word_topic.T], starts), words


class CDPLDA(TracedSequentialLDA):
    """CDP-LDA: collapsed Gibbs sampling from counts that get Laplace noise once, before the first sweep.

    The baseline of [1]_, to reproduce its figures. It warns on every fit: its claim does not hold, because noise that
    is added once does not cover the exact counts that the later draws and the released table follow.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Affects privacy: no.
    epsilon : float, default=5.0
        What is claimed: Laplace noise of scale 1 / epsilon on the document-topic and on the topic-word counts. `inf`:
        no noise. Affects privacy: yes, but it bounds nothing.
    max_iter : int, default=300
        Number of sweeps. Affects privacy: no.
    doc_topic_prior : float, array-like of shape (n_components,) or None, default=None
        Dirichlet prior of topic proportions, called alpha in [1]_. None: 0.1. Affects privacy: no.
    topic_word_prior : float or None, default=None
        Dirichlet prior of topics, called beta in [1]_. None: 0.01. Affects privacy: no.
    n_jobs : int or None, default=None
        Threads of `transform`, as in joblib; the sampler has one. Affects privacy: no.
    random_state : int, bytes, RandomState or None, default=None
        None takes fresh entropy from the operating system. Anything else makes the fit reproducible.
        Affects privacy: yes.

    Attributes
    ----------
    components_, topic_word_ : ndarray of shape (n_components, n_words)
        Topic-word pseudo-counts, the prior included; and the same with rows scaled to sum to 1.
    privacy_guarantee_ : PrivacyGuarantee
        What is claimed, and why it does not hold.
    n_iter_, n_features_in_ : int
        Sweeps done, and number of words.
    feature_names_in_ : ndarray of shape (n_words,)
        Words, if X was a data frame.

    See Also
    --------
    CDPLDAPlus : The same with noise before every sweep.
    skdplda.PrivateCGSLDA : A guarantee that holds.

    References
    ----------
    .. [1] Zhao, Ren, Yang, Han, Zhao and Yang (2021). Latent Dirichlet Allocation Model Training With Differential
       Privacy. IEEE TIFS 16. Section on experiments.

    Examples
    --------
    >>> from skdplda.published import CDPLDA
    >>> CDPLDA(n_components=4, epsilon=2.0).privacy_cost()
    PrivacyGuarantee(epsilon=2, delta=0, document, add-remove, central, claimed)
    """

    _form = "laplace-first"
    _why = (
        "noise on both count matrices once does not cover the exact counts that the later draws and the released table"
        " follow."
    )
    _reference = "Zhao et al. (2021), Latent Dirichlet Allocation Model Training With Differential Privacy"


class CDPLDAPlus(TracedSequentialLDA):
    """CDP-LDA+: collapsed Gibbs sampling from counts that get more Laplace noise before every sweep.

    The stronger baseline of [1]_, with the attributes of `CDPLDA`. It warns on every fit: its claim does not hold,
    because a document changes the running counts by all of its tokens, in every sweep, and the noise is calibrated to
    one count.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Affects privacy: no.
    epsilon : float, default=5.0
        Each sweep adds Laplace noise of scale 1 / epsilon to the document-topic and to the topic-word counts. `inf`: no
        noise. Affects privacy: yes, but it bounds nothing.
    max_iter : int, default=300
        Number of sweeps. Affects privacy: no.
    doc_topic_prior, topic_word_prior, n_jobs : as of `CDPLDA`
        Affects privacy: no.
    random_state : as of `CDPLDA`
        Affects privacy: yes.

    See Also
    --------
    CDPLDA : The same with noise before the first sweep only.
    skdplda.PrivateCGSLDA : A guarantee that holds.

    References
    ----------
    .. [1] Zhao, Ren, Yang, Han, Zhao and Yang (2021). Latent Dirichlet Allocation Model Training With Differential
       Privacy. IEEE TIFS 16. Section on experiments.

    Examples
    --------
    >>> from skdplda.published import CDPLDAPlus
    >>> CDPLDAPlus(n_components=4, epsilon=2.0).privacy_cost()
    PrivacyGuarantee(epsilon=2, delta=0, document, add-remove, central, claimed)
    """

    _form = "laplace-every"
    _why = (
        "each sweep adds noise calibrated to one count to running counts that a document changes by all of its tokens,"
        " sweep after sweep; the published sum of epsilons leaves this out."
    )
    _reference = "Zhao et al. (2021), Latent Dirichlet Allocation Model Training With Differential Privacy"


class PriTopLDA(BaseSequentialLDA):
    """The topic model of Zhu et al. (2016): collapsed Gibbs sampling with Laplace noise in the draws of a last sweep.

    Exact sweeps come first. In one more, the weights that a token's topic is drawn from have Laplace noise on their
    counts, new for each token [1]_. The released table is then made of exact counts. It warns on every fit: the claim
    does not hold, because the table's columns sum to the exact number of times each word occurs, at any epsilon. Fitted
    attributes are those of `CDPLDA`.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Affects privacy: no.
    epsilon : float, default=5.0
        What is claimed: Laplace noise of scale 2 / epsilon in the weights of the last sweep. `inf`: no noise. Affects
        privacy: yes, but it bounds nothing.
    max_iter : int, default=300
        Number of sweeps, without the last one. Affects privacy: no.
    weights : {"clipped", "rescaled"}, default="clipped"
        Of the last sweep. "clipped": a weight that noise makes negative counts as 0. "rescaled": the least weight of a
        draw is subtracted from all, negative or not, so that the least likely topic is never drawn, without noise
        neither: as the code of [2]_ does, which has priors of 1 / `n_components`. Affects privacy: no.
    doc_topic_prior, topic_word_prior, n_jobs : as of `CDPLDA`
        Affects privacy: no.
    random_state : as of `CDPLDA`
        Affects privacy: yes.

    See Also
    --------
    skdplda.PrivateCGSLDA : A guarantee that holds.
    skdplda.attacks.reconstruct_counts : Reads the words' totals off the released table.

    References
    ----------
    .. [1] Zhu, Li, Zhou, Xiong and Yuan (2016). Privacy-preserving topic model for tagging recommender systems.
       Knowledge and Information Systems 46(1). The private topic model generation of PriTop.
    .. [2] Manzonelli, Zhang and Vadhan (2024). Membership Inference Attacks and Privacy in Topic Modeling.
       https://github.com/nicomanzonelli/topic_model_attacks

    Examples
    --------
    >>> from skdplda.published import PriTopLDA
    >>> PriTopLDA(n_components=4, epsilon=2.0).privacy_cost()
    PrivacyGuarantee(epsilon=2, delta=0, document, add-remove, central, claimed)
    """

    _why = (
        "the released table is made of exact counts: its columns sum to the exact number of times each word occurs, at"
        " any epsilon."
    )
    _reference = "Zhu et al. (2016), Privacy-preserving topic model for tagging recommender systems"
    _parameter_constraints: dict = {  # noqa: RUF012
        **BaseSequentialLDA._parameter_constraints,
        "weights": [StrOptions({"clipped", "rescaled"})],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        epsilon: float = 5.0,
        max_iter: int = 300,
        weights: Literal["clipped", "rescaled"] = "clipped",
        doc_topic_prior: ArrayLike | None = None,
        topic_word_prior: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        super().__init__(
            n_components,
            epsilon=epsilon,
            max_iter=max_iter,
            doc_topic_prior=doc_topic_prior,
            topic_word_prior=topic_word_prior,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.weights = weights

    @property
    def _form(self):
        return "laplace-last" if self.weights == "clipped" else "laplace-last-rescaled"


class InherentPrivacyLDA(TracedSequentialLDA):
    """Plain collapsed Gibbs sampling, without noise, and the monitor of its inherent privacy. A diagnostic.

    The monitor measures, draw by draw, by how much a missing token could have changed the draw's law, Algorithms 1
    and 2 of [1]_. It is an estimator, beside the papers' other forms and not a function, since what it measures is one
    run of a sampler: the model and the measurements belong together. It warns on every fit: the numbers are about these
    data and bound nothing, because every draw reads the whole table. Fitted attributes are those of `CDPLDA`, and
    `inherent_privacy_`, an `InherentPrivacyHistory`, what was measured in each sweep.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Affects privacy: no.
    max_iter : int, default=300
        Number of sweeps. Affects privacy: no.
    doc_topic_prior, topic_word_prior, n_jobs : as of `CDPLDA`
        Affects privacy: no.
    random_state : as of `CDPLDA`
        Affects privacy: no, there is no noise.

    See Also
    --------
    skdplda.plots.MonitorDisplay : Draws what the monitor measured.
    skdplda.privacy.InherentPrivacyHistory : The measurements.
    skdplda.PrivateCGSLDA : A guarantee that holds.

    References
    ----------
    .. [1] Zhao, Ren, Yang and Yang (2019). On Privacy Protection of Latent Dirichlet Allocation Model Training.
       IJCAI. Eq. 1, Algorithms 1 and 2, Theorem 3.

    Examples
    --------
    >>> import warnings
    >>> from skdplda.datasets import make_lda_corpus
    >>> from skdplda.published import InherentPrivacyLDA
    >>> X = make_lda_corpus(50, 30, 3, random_state=0).data
    >>> with warnings.catch_warnings(action="ignore"):  # that it is not private
    ...     model = InherentPrivacyLDA(n_components=3, max_iter=5).fit(X)
    >>> len(model.inherent_privacy_.word_level)
    5
    """

    _form = "inherent"
    _monitored = ("inherent_privacy_",)
    _traced_form = "hybrid"  # without noise and clip: the sampler, unmonitored
    _status = "diagnostic"
    _why = (
        "no noise is added. The monitor measures the sampler's randomness on these data; it bounds nothing, because"
        " every draw reads the whole table, and the released counts are exact."
    )
    _reference = "Zhao et al. (2019), On Privacy Protection of Latent Dirichlet Allocation Model Training, Algorithm 2"
    _parameter_constraints: dict = {  # noqa: RUF012
        name: constraint for name, constraint in BaseSequentialLDA._parameter_constraints.items() if name != "epsilon"
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        max_iter: int = 300,
        doc_topic_prior: ArrayLike | None = None,
        topic_word_prior: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _claimed_epsilon(self):
        return np.inf
