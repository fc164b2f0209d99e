"""Hybrid private LDA: every topic draw is released, and priced."""

import math
from contextlib import closing, nullcontext
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self
from uuid import uuid4

import numpy as np

from skdplda._arithmetic import log1p
from skdplda._checks import effective_n_jobs
from skdplda._types import ArrayLike, Matrix, Seed
from skdplda._validation import Interval, check_counts, check_memory, fit_context
from skdplda._warnings import warn
from skdplda.distributed import ShardedDocuments
from skdplda.models._base import BaseTopicModel, warn_of_spare_topics
from skdplda.models._hdp_accounting import MOVED, HybridPlan, shortfall
from skdplda.models._hdp_sampler import DelayedCountSweeps, ShardedSweeps, TopicTrace
from skdplda.models._topics import warn_of_noise
from skdplda.privacy import (
    LARGEST_SCALE,
    BudgetCharge,
    PrivacyGuarantee,
    Randomness,
    mechanism_of,
    pure_mechanisms,
    sampler_assumption,
    seeded_guarantee,
    stated_guarantee,
)
from skdplda.rounds._bounds import some_tokens

# Total, tables' part and sweeps: the table of KOS in doc/theory/hdp.rst. From a total of 10 on it has parts of 0.25 and
# 0.5 alike, and below 10 it has 0.5 ahead: a default for totals of 10 and more. Without noise: 100 sweeps, not tuned.
EPSILON, SHARE, SWEEPS, EXACT_SWEEPS = 10.0, 0.25, 25, 100
COMMON = {  # of the guarantees
    "unit": "token",
    "adjacency": "replace",
    "not_covered": (
        "the vocabulary (columns of X), unless it is public or was selected privately",
        "the number of documents and of the tokens in each",
        "more than one token at a time, unless document_cost is asked",
        "hyper-parameters tuned on the same data",
    ),
}


class BaseHybridLDA(BaseTopicModel):
    """Base of `HDPLDA` and of its published form: the budget, and a fit that is charged once.

    A subclass has the parameters of a budget, `delta` and `mechanism` among them or as attributes of the class, and
    the methods `_guarantee(plan)`, `_run(X, plan, randomness, trace)` and `_traced(X, plan, randomness)`, which returns
    the trace and the word of each token.
    """

    _in_one_piece = False  # whether documents on workers are refused

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Matrix, y: Any = None) -> Self:
        """Fit the topics.

        The budget of an open `PrivacyAccountant` is checked before X is read and charged before the first release.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts over a public, or privately selected, vocabulary. At most 2**20 tokens of a document take part.
        y : ignored

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        BudgetExceededError
            If an open accountant cannot afford the fit. No data were read.
        ValueError
            For parameters or counts that are not as described, or a budget that does not pay for the draws.
        """
        plan = self._plan()
        guarantee = stated_guarantee(self, self._guarantee(plan))
        charge = BudgetCharge(guarantee, f"{type(self).__name__} fit", self)
        charge.check()
        sharded = None if self._in_one_piece or self.return_trace else self._load_on_workers(X)
        X = sharded or check_counts(self, X, reset=True)
        check_memory(self.n_components, X.shape[1])
        warn_of_spare_topics(self.n_components, X.shape[1])
        randomness = self._new_randomness()
        X = X if sharded else some_tokens(X, randomness.draw_key())
        hopeless = self._warn(plan, randomness)
        charge.charge(uuid4().hex)
        with closing(sharded.pool) if sharded else nullcontext():
            counts, trace, ratios = self._run(X, plan, randomness, self.return_trace)
        components = np.ascontiguousarray(counts.T) + self._topic_word_prior()
        kept = {"trace_": trace} if self.return_trace else {}
        kept |= {} if ratios is None else {"signal_to_noise_": ratios[0], "topic_signal_to_noise_": ratios[1]}
        self._set_fitted(guarantee, components_=components, n_iter_=plan.n_sweeps, **kept)
        if not hopeless:  # else a warning has said why
            warn_of_noise(self)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def privacy_cost(self, *, groups: bool = False) -> PrivacyGuarantee:
        """State the guarantee that `fit` would give, without data.

        Parameters
        ----------
        groups : bool, default=False
            Whether `fit` will be given groups. It takes none: a token is protected, whoever wrote it.

        Returns
        -------
        guarantee : PrivacyGuarantee
            Equal to `privacy_guarantee_` after the fit.
        """
        return stated_guarantee(self, self._guarantee(self._plan()))

    @fit_context(prefer_skip_nested_validation=True)
    def audit_trace(self, X: Matrix) -> tuple[TopicTrace, np.ndarray]:
        """Sample the trace that a fit would release, and return it with the words that an attack is to find.

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
            For counts that are none.

        Examples
        --------
        >>> from skdplda import HDPLDA
        >>> from skdplda.attacks import TopicTraceAttack
        >>> from skdplda.datasets import make_lda_corpus
        >>> X = make_lda_corpus(100, 40, 3, random_state=0).data
        >>> trace, words = HDPLDA(3, epsilon=5.0).audit_trace(X)
        >>> TopicTraceAttack.of_trace(trace).success(words)["first"] < 0.5
        True
        """
        X = check_counts(type(self)(), X, reset=True)
        plan, randomness = self._plan(), self._new_randomness()
        return self._traced(some_tokens(X, randomness.draw_key()), plan, randomness)

    def _warn(self, plan, randomness):
        """Warn the caller of `fit`; return whether it was said that the budget is hopeless."""
        return False

    def _released(self):
        """Return what any fit releases, for its guarantee."""
        released = "topics of all tokens in every sweep", "noisy topic-word counts of every sweep"
        return (*released, "components_", "topic_word_", "n_iter_", *(("trace_",) if self.return_trace else ()))

    def _by_total(self):
        return self.noise_epsilon is None and self.inherent_epsilon is None

    def _default_epsilon(self):
        return EPSILON if self._by_total() else None

    def _total(self):
        return EPSILON if self.epsilon is None else float(self.epsilon)

    def _given_range(self):
        """Return 2 ln(1 + C / beta), or None where C or beta is left to the budget."""
        beta = self._topic_word_prior()
        if self.count_clip is None or self.topic_word_prior is None:
            return None
        return 2 * log1p(float(self.count_clip / beta))

    def _plan(self):
        """Return the noise and the range of the draws, from the parameters alone."""
        self._doc_topic_prior()
        plan = self._plan_of_total() if self._by_total() else self._plan_of_sweeps()
        if plan.scale > LARGEST_SCALE:
            name = "epsilon" if self._by_total() else "noise_epsilon"
            raise ValueError(
                f"{name}={getattr(self, name)!r} is too small: it needs noise of scale {plan.scale:.3g}, above 2**50."
            )
        return plan

    def _plan_of_total(self):
        """Divide a total budget between the tables and the draws."""
        given = self._given_range()
        if given is not None and self.noise_share is not None:
            raise ValueError(
                f"noise_share must be None where count_clip={self.count_clip!r} and topic_word_prior="
                f"{self.topic_word_prior!r} fix what the draws cost; got {self.noise_share!r}."
            )
        sweeps = self.max_iter or (EXACT_SWEEPS if math.isinf(self._total()) else SWEEPS)
        share = SHARE if self.noise_share is None else self.noise_share
        return HybridPlan.calibrate(self._total(), self.delta, sweeps, share, given, self.mechanism)

    def _plan_of_sweeps(self):
        """Return the plan of a budget that is given by sweep, as in the paper."""
        given = self._given_range()
        for name in ("epsilon", "noise_share"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} must be None where the budget is given by sweep (noise_epsilon, inherent_epsilon); got"
                    f" {getattr(self, name)!r}. Give either a total epsilon or the two of a sweep."
                )
        if self.noise_epsilon is None:
            raise ValueError("noise_epsilon must be given with inherent_epsilon; inf means no noise.")
        if given is not None and self.inherent_epsilon is not None:
            raise ValueError(
                f"inherent_epsilon must be None where count_clip={self.count_clip!r} and topic_word_prior="
                f"{self.topic_word_prior!r} are given: they make it {given:.4g}; got {self.inherent_epsilon!r}."
            )
        if given is None and self.inherent_epsilon is None:
            raise ValueError("inherent_epsilon must be given with noise_epsilon, or count_clip and topic_word_prior.")
        eta = float(self.inherent_epsilon) if given is None else given
        sweeps = self.max_iter or (EXACT_SWEEPS if math.isinf(self.noise_epsilon) else SWEEPS)
        law = mechanism_of(self.mechanism or "laplace")
        if law.has_delta:
            raise ValueError(
                f"mechanism={law.name!r} has no pure epsilon, which noise_epsilon is; use {pure_mechanisms()}, or give"
                " a total epsilon."
            )
        return HybridPlan(law.name, math.sqrt(MOVED[law.norm]) / float(self.noise_epsilon), eta, sweeps)


class HDPLDA(BaseHybridLDA):
    """Hybrid private LDA: latent Dirichlet allocation that releases the topic of every token in every sweep.

    *Not* the hierarchical Dirichlet process: "hybrid private" is the name in [1]_, for noise on counts together with
    the randomness of the topic draws themselves.

    All draws of a sweep read one public table, which changes after the sweep, as in [2]_. The published form [1]_
    changes it at once, and its claim does not hold.

    The guarantee is for one *token*: one word replaced by another of the vocabulary in its place. It covers all topics
    and tables of all sweeps. For documents, and where topics need not be published, `PrivateCGSLDA` is better.

    Give a total `epsilon`, or what each sweep may spend (`noise_epsilon` and `inherent_epsilon`, as in [1]_); then the
    total is reported: 300 sweeps with the 1 and 10 of [1]_ make an epsilon above 2,400.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Affects privacy: no.
    epsilon : float or None, default=None
        Privacy loss of the whole fit, for replacing one token; `inf` for no noise. None: 10, unless the budget is given
        by sweep. Affects privacy: yes.
    delta : float, default=1e-5
        Probability of a larger loss. 0 asks for a pure epsilon: sums of epsilons, else concentrated differential
        privacy. Affects privacy: yes.
    mechanism : str or None, default=None
        Law of the tables' noise, of `skdplda.privacy.MECHANISMS`. None: "gaussian", or "laplace" with a delta of 0 or a
        budget by sweep. Affects privacy: yes.
    max_iter : int or None, default=None
        Sweeps, each of which spends. None: 25 (100 with `epsilon=inf`). Affects privacy: no, the noise is calibrated to
        it; but yes, if the budget is given by sweep.
    noise_share : float or None, default=None
        Part of the total budget for the tables, the rest is for the draws. None: 0.25. Affects privacy: no.
    noise_epsilon : float or None, default=None
        Called epsilon_L in [1]_: of one table; discrete Laplace noise of scale 2 / epsilon_L. `inf`: no noise, and no
        guarantee. Affects privacy: yes.
    inherent_epsilon : float or None, default=None
        Called epsilon_I in [1]_: of the draws of one sweep, 2 ln(1 + C / beta). Affects privacy: yes.
    count_clip : float or None, default=None
        Called C in [1]_: a noisy count weighs as 0 at least and as this at most. None bounds the words' relative
        preferences for topics instead, which makes better topics at the same price. Affects privacy: no, alone; it does
        with `topic_word_prior`.
    doc_topic_prior : float, array-like of shape (n_components,) or None, default=None
        Dirichlet prior of topic proportions, called alpha in [1]_. None: 0.1. Affects privacy: no.
    topic_word_prior : float or None, default=None
        Called beta in [1]_: pseudo-count of the model and, with `count_clip`, of the draws, whose range then is
        2 ln(1 + C / beta). None: 0.01 in the model, and in the draws what their range leaves. Affects privacy: no,
        alone; it does with `count_clip`.
    return_trace : bool, default=False
        Whether to keep the released topics and tables of all sweeps in `trace_`. Affects privacy: no.
    n_jobs : int or None, default=None
        Threads, as in joblib; same result for any number. Affects privacy: no.
    random_state : int, bytes, RandomState or None, default=None
        Makes a fit repeatable and warns: the guarantee is then proven only for a secret seed of 16 random bytes or more
        (or such an integer), and else claimed. None: fresh entropy. Affects privacy: yes.
    verbose : int, default=0
        Progress bar if positive. Affects privacy: no.

    Attributes
    ----------
    components_, topic_word_ : ndarray of shape (n_components, n_words)
        Topic-word pseudo-counts, the prior included: a mean of the noisy tables, recent ones first; and the same with
        rows scaled to sum to 1.
    privacy_guarantee_ : PrivacyGuarantee
        What is guaranteed, in total; print it for a statement to publish.
    signal_to_noise_ : ndarray of shape (n_components, n_words)
        By how many standard deviations a released count exceeds that of a topic with the word frequencies of all, if
        draws and noise alone made the counts. Only with noise.
    topic_signal_to_noise_ : ndarray of shape (n_components,)
        The same for whole topics: below about 1 a topic says little. It knows the noise alone, and not chance.
    trace_ : TopicTrace
        Only with `return_trace`: topics and tables of all sweeps.
    n_iter_, n_features_in_ : int
        Sweeps done, and number of words.
    feature_names_in_ : ndarray of shape (n_words,)
        Words, if X was a data frame.

    See Also
    --------
    PrivateCGSLDA : Documents as the unit; topic assignments stay hidden.
    skdplda.published.PublishedHDPLDA : The published form, whose claim does not hold.
    skdplda.attacks.TopicTraceAttack : What an adversary makes of a trace.

    References
    ----------
    .. [1] Zhao, Ren, Yang, Han, Zhao and Yang (2021). Latent Dirichlet Allocation Model Training With Differential
       Privacy. IEEE TIFS 16. Section IV, Algorithm 1, Theorem 3, eq. 7.
    .. [2] Newman, Asuncion, Smyth and Welling (2009). Distributed Algorithms for Topic Models. JMLR 10.

    Examples
    --------
    >>> from skdplda import HDPLDA
    >>> from skdplda.datasets import make_lda_corpus
    >>> X = make_lda_corpus(500, 100, 4, random_state=0).data
    >>> model = HDPLDA(n_components=4, epsilon=20.0, return_trace=True).fit(X)
    >>> model.trace_.topics.shape == (25, X.sum())
    True
    >>> model.privacy_guarantee_
    PrivacyGuarantee(epsilon=20, delta=1e-5, token, replace, central, proven)
    >>> paper = HDPLDA(n_components=4, noise_epsilon=1, inherent_epsilon=10, max_iter=300)
    >>> paper.privacy_cost().epsilon > 2400
    True
    """

    _parameter_constraints = {  # noqa: RUF012
        **BaseTopicModel._parameter_constraints,
        "epsilon": [Interval(Real, 0, None, closed="right"), None],
        "delta": [Interval(Real, 0, 1, closed="left")],
        "mechanism": [str, None],
        "max_iter": [Interval(Integral, 1, 2**31 - 1, closed="both"), None],
        "noise_share": [Interval(Real, 0, 1, closed="neither"), None],
        "noise_epsilon": [Interval(Real, 0, None, closed="right"), None],
        "inherent_epsilon": [Interval(Real, 0, None, closed="right"), None],
        "count_clip": [Interval(Real, 0, None, closed="right"), None],
        "return_trace": ["boolean"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        epsilon: float | None = None,
        delta: float = 1e-5,
        mechanism: str | None = None,
        max_iter: int | None = None,
        noise_share: float | None = None,
        noise_epsilon: float | None = None,
        inherent_epsilon: float | None = None,
        count_clip: float | None = None,
        doc_topic_prior: ArrayLike | None = None,
        topic_word_prior: float | None = None,
        return_trace: bool = False,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.max_iter = max_iter
        self.noise_share = noise_share
        self.noise_epsilon = noise_epsilon
        self.inherent_epsilon = inherent_epsilon
        self.count_clip = count_clip
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.return_trace = return_trace
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def document_cost(self, n_tokens: int) -> PrivacyGuarantee:
        """State what the guarantee for tokens amounts to for a document: all of its words replaced at once.

        The draws of n tokens cost n times as much as those of one, their counts move the tables n times as far. That
        is less than `for_group` gives, which knows nothing of the two.

        Parameters
        ----------
        n_tokens : int
            Largest number of tokens of a document; longer ones have no guarantee. Choose it without looking at data.

        Returns
        -------
        guarantee : PrivacyGuarantee
            For replacing the content of one document by another of the same length, at the same delta.

        Raises
        ------
        ValueError
            If `n_tokens` is not an integer of at least 1.
        """
        if isinstance(n_tokens, bool) or not isinstance(n_tokens, Integral) or n_tokens < 1:
            raise ValueError(f"n_tokens must be an integer >= 1; got {n_tokens!r}")
        plan = self._plan()
        token = stated_guarantee(self, self._guarantee(plan))
        if not plan.private:
            return replace(token, unit="document")
        epsilon, event = plan.price(token.delta, int(n_tokens))
        return replace(
            token,
            epsilon=epsilon,
            event=event,
            unit="document",
            not_covered=tuple(line for line in token.not_covered if "more than one token" not in line),
            mechanism=f"{token.mechanism}; all tokens of a document of at most {n_tokens} replaced",
            assumptions=(
                *token.assumptions,
                f"the document has at most {n_tokens} tokens",
            ),
        )

    def _traced(self, X, plan, randomness):
        sampler = self._sampler(X, plan, randomness, effective_n_jobs(self.n_jobs))
        return sampler.run(True)[1], sampler.words

    def _warn(self, plan, randomness):
        if not plan.private:
            return False
        randomness.warn_if_seeded(self)
        total = self._total() if self._by_total() else None
        share = SHARE if self.noise_share is None else self.noise_share
        prior = None if self._given_range() is None else self._topic_word_prior()
        sentence = shortfall(plan, self.delta, total, share, prior)
        if sentence:
            warn(sentence, UserWarning)
        return bool(sentence)

    def _guarantee(self, plan):
        released = [*self._released(), *(("signal_to_noise_", "topic_signal_to_noise_") if plan.private else ())]
        if not plan.private:
            return PrivacyGuarantee(
                epsilon=math.inf, status="proven", mechanism="none", released=tuple(released), **COMMON
            )
        delta = self.delta
        if self._by_total():
            epsilon, event = self._total(), plan.event(draws_pure=not delta)
        else:
            epsilon, event = plan.price(delta)
        law = plan.law
        assumptions = [
            "the words and their order stay with the curator",
            "the word that takes the place of another is a word of the vocabulary (a column of X), as that one is",
            Randomness.assumption,
            sampler_assumption(in_delta=law.has_delta),
        ]
        guarantee = PrivacyGuarantee(
            epsilon=epsilon,
            delta=delta,
            status="proven",
            mechanism=(
                f"{plan.n_sweeps} sweeps of topic draws from a delayed table, each of range {plan.eta:.4g}, and"
                f" {law.label} noise of {'deviation' if law.deviation == 1 else 'scale'} {plan.scale:.4g} tokens on"
                " each table"
            ),
            released=tuple(released),
            assumptions=tuple(assumptions),
            reference="skdplda theory guide, hybrid private LDA",
            event=event,
            **COMMON,
        )
        return seeded_guarantee(guarantee, self.random_state)

    def _run(self, X, plan, randomness, trace):
        """Return (counts, trace, numbers of signal and noise)."""
        sampler = self._sampler(X, plan, randomness, effective_n_jobs(self.n_jobs))
        return sampler.run(trace, self.verbose)

    def _sampler(self, X, plan, randomness, n_threads):
        clip = math.inf if math.isinf(plan.eta) and self.count_clip is None else self.count_clip
        make = ShardedSweeps if isinstance(X, ShardedDocuments) else DelayedCountSweeps.of_counts
        return make(X, plan, self._doc_topic_prior(), clip, randomness, n_threads)
