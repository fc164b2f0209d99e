"""Variational LDA with private statistics: full rounds, or the stochastic form for streams."""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, Literal, Self
from uuid import uuid4

import numpy as np
from sklearn.utils.metaestimators import available_if

from skdplda._checks import effective_n_jobs
from skdplda._types import ArrayLike, Function, Matrix, Seed
from skdplda._validation import (
    PRIOR,
    Interval,
    StrOptions,
    check_counts,
    check_groups,
    check_memory,
    check_same_rows,
    fit_context,
)
from skdplda._warnings import warn
from skdplda.datasets import DiskCounts
from skdplda.distributed import shards_of
from skdplda.esteps._adaptive import AdaptiveEStep
from skdplda.esteps._variational import TOKEN_WEIGHT, VariationalEStep, remembered_updates, round_priors
from skdplda.exact._inferred import FIRST_PRIOR, ExpectedPriors
from skdplda.exact._loop import answer_exactly
from skdplda.exact._tables import annealed, constant
from skdplda.exceptions import BudgetExceededError
from skdplda.models._base import NOISY_PRIOR_MASS, PRIOR_MASS, BaseRoundsModel, TrainingData, settings_of
from skdplda.models._topics import warn_of_noise
from skdplda.models._vips_tables import OnlineTables
from skdplda.priors._public import PUBLIC_PRIOR, PublicPrior, WordPrior, has_vectors
from skdplda.privacy import (
    BudgetCharge,
    PrivacyGuarantee,
    Randomness,
    Spending,
    stated_guarantee,
)
from skdplda.rounds._adaptive import GAMMA_SHAPE
from skdplda.rounds._bounds import NORM_BOUND, shortened
from skdplda.rounds._loop import converse, rounds_of
from skdplda.rounds._plans import NoisePlan
from skdplda.rounds._prices import BOUND_IN_TOKENS, VariationalPrice
from skdplda.rounds._tables import SmoothedTables
from skdplda.rounds._transcript import Transcript

# Not tuned: a pass more costs noise or time. Row "mini-batches of a tenth" shows what the stochastic form loses.
PRIVATE_PASSES, EXACT_PASSES = 2, 5  # of the stochastic form, over all documents on average
# Row "prior of topics 0.01": the private one matters little. Without noise, chosen by hand.
PRIVATE_TOPIC_WORD_PRIOR, EXACT_TOPIC_WORD_PRIOR = 1.0, 0.03
# Of the adaptive form, whose cells are posterior means already.
ADAPTIVE_TOPIC_WORD_PRIOR = 0.01
FRESH_UPDATES = 50  # most iterations for a document that starts anew
# The same in full batches without noise. More of them are slower and, as documents get too sure of topics, no better:
# doc/kernels.rst, "Variational inference".
EXACT_UPDATES = 16
CUT = "the tokens kept of different documents are drawn independently"


@dataclass(frozen=True)
class Stream:
    """A stream of `partial_fit` between two steps.

    All copies have its name, `run`. `settings` is a digest of what must not change. All of its noise is derived from
    `key`, so that a step that is repeated is the same release; None at the end. `table`, (n_words, n_components), is as
    released so far.
    """

    run: str
    settings: str
    key: bytes | None = field(repr=False)
    n_done: int = 0
    table: np.ndarray | None = field(default=None, repr=False)

    def after(self, table, n_steps):
        """Return the stream after one more step; the last one of `n_steps` lets the key go."""
        n_done = self.n_done + 1
        return replace(self, n_done=n_done, table=table, key=self.key if n_done < n_steps else None)


class VIPSLDA(BaseRoundsModel):
    """Latent Dirichlet allocation by variational inference, differentially private for documents or users.

    VIPS, variational inference with private statistics [1]_: each round infers the topics of documents from a public
    table, and releases the sum of their expected topic-word counts plus integer noise. In memory, with
    `learning_method="batch"`, a document goes on from its topics of the last round, which are never released. On disk,
    and in streams, it starts anew; that costs quality at small epsilon.

    In full batches the releases decide how the budget is divided: word frequencies come first, then rounds of topics,
    and a vote of the documents tells whether topics explain them better than word frequencies do. If not, the rest of
    the budget goes to the frequencies, and all topics are alike. The model is what the releases prove (empirical
    Bayes), so that cells full of noise fade into the word frequencies; `prior` adds what is publicly known. Documents'
    topics are inferred by collapsed variational inference (CVB0 [3]_), which suits short texts, with noise and without.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Where releases divide the budget and the signal is weak, fewer are kept apart, and the others
        are the word frequencies. Affects privacy: no.
    epsilon : float, default=5.0
        Privacy loss of the whole fit, for adding or removing one document (one user with `groups`); `inf` for no noise.
        Affects privacy: yes.
    delta : float, default=1e-5
        Probability of a larger loss; well below 1 / `nominal_size`, chosen without looking at the data. Affects
        privacy: yes.
    learning_method : {"batch", "online"}, default="batch"
        "batch": each round starts from its predecessor's release, with falling noise. "online": the stochastic form of
        [1]_, for mini-batches and streams; each step moves the table by (`learning_offset` + step) ** -`learning_decay`
        towards its release. Affects privacy: no, the noise is calibrated to it.
    max_iter : int or None, default=None
        Rounds of topics, or steps, which divide the budget; `partial_fit` refuses more. None: with noise 2 to 20, as
        the first releases decide (20 with samples or `max_norm`), 50 without; for "online" two passes with noise, five
        without. Affects privacy: no, the noise is calibrated to it.
    sampling_rate : float or None, default=None
        Probability that a document (user) takes part in a round of `fit` (Poisson sampling). None: `batch_size` /
        `nominal_size` if given, else 1. Affects privacy: no, the noise is calibrated to it.
    batch_size : int or None, default=None
        Documents expected in a step, called S in [1]_, in place of `sampling_rate`; needs `nominal_size`. Affects
        privacy: no.
    nominal_size : int or None, default=None
        A public estimate of the number of documents (users), called D in [1]_; not to be counted in the data. Affects
        privacy: no.
    max_visits : int or None, default=None
        For `partial_fit`: the most batches in which one document (user) comes, which you assert. None: all. Affects
        privacy: yes, the noise is calibrated to it.
    max_norm : float or None, default=None
        Bound on the L2 norm of a document's (user's) word counts, at least 1; larger ones are scaled down. In [1]_ it
        is N (eq. 4), and a tenth of that in the code of its authors. None: all contribute equally. Affects privacy: no,
        noise follows.
    max_doc_length : int or None, default=None
        Longer documents are cut to so many random tokens, called N in [1]_. Affects privacy: no.
    learning_offset : float, default=10.0
        Called tau_0 in [1]_; at least 0. With few passes and without noise, 1 made better topics. Affects privacy: no.
    learning_decay : float, default=0.7
        Called kappa in [1]_; in [0, 1]. Affects privacy: no.
    max_doc_update_iter : int or None, default=None
        Most iterations for a document in a round. None: 16 in full batches without noise, and with it where documents
        go on from the last round, or 8 larger ones with more than 32 topics; else 50. Affects privacy: no.
    mean_change_tol : float, default=1e-3
        Mean change of its parameters at which a document stops. Affects privacy: no.
    doc_topic_prior : float, array-like of shape (n_components,), "infer" or None, default=None
        Dirichlet prior of topic proportions, called alpha in [1]_. None: 0.5 / n_components with noise, 1 /
        n_components without; 0.1 at most. In full batches documents (users), without noise those in memory, vote for 1,
        5 or 25 times as much in the end, short ones for more. "infer": without noise, the most likely one; with noise
        as None, and in streams, samples and other forms 0.1, in proportion to the topics' released masses. Affects
        privacy: no.
    topic_word_prior : float, "infer" or None, default=None
        Dirichlet prior of topics, called eta in [1]_. None: 0.01 with noise (1.0 in streams and mini-batches), 0.03
        without. "infer": without noise, the most likely one in proportion to the word frequencies; with noise as None.
        Affects privacy: no.
    prior : PublicPrior, WordPrior or None, default=None
        Public knowledge of words and topics, for the default form with noise; other private forms refuse it. Affects
        privacy: no, if it does not depend on the private texts.
    checkpoint : str, path-like or None, default=None
        File to resume an interrupted fit from, without spending again; as private as the data, and removed at the end.
        Affects privacy: no.
    callback : callable or None, default=None
        Called with a released `RoundReport` (`n_done`, `n_rounds`, `table`) after each round. Affects privacy: no.
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
        Topic-word pseudo-counts, the prior included, called lambda in [1]_; and the same with rows scaled to sum to 1.
    privacy_guarantee_ : PrivacyGuarantee
        What is guaranteed; print it for a statement to publish.
    signal_to_noise_ : ndarray of shape (n_components, n_words)
        By how many standard deviations of the noise a released count exceeds that of a topic with the word frequencies
        of all; beyond about 4, a word is no noise. Zeros where topics did not pay; rather too small online. Only with
        noise.
    topic_signal_to_noise_ : ndarray of shape (n_components,)
        The same for whole topics: one below about 1 says little. All are 0 where documents voted that topics do not
        pay, as they do of words that meet by chance in 19 fits of 20 at least (not with `max_iter` of 1, nor where
        noise is divided otherwise: nobody votes so there).
    doc_topic_prior_, topic_word_prior_ : ndarray of shape (n_components,), float or ndarray of shape (n_words,)
        The priors that were inferred; that of topic proportions alone, if documents voted for it. With noise, topics
        that are not kept apart, if more than ten, have as much as ten together. Of an array, with seeds in `prior`:
        in the order of the topics.
    n_iter_, n_features_in_ : int
        Rounds (steps), with noise all releases: word counts and votes too, more than `max_iter`. And number of words.
    feature_names_in_ : ndarray of shape (n_words,)
        Words, if X was a data frame.

    See Also
    --------
    skdplda.PrivateCGSLDA : The same rounds with Gibbs sampling.
    skdplda.published.PublishedVIPSLDA : The accountings of the paper, which are only claimed.
    skdplda.datasets.write_counts : Documents on disk.

    References
    ----------
    .. [1] M. Park, J. Foulds, K. Chaudhuri, M. Welling (2016). Private topic modeling. arXiv:1609.04120. Algorithm 1.
    .. [2] M. Hoffman, D. Blei, F. Bach (2010). Online learning for latent Dirichlet allocation. NIPS. Algorithm 2.
    .. [3] A. Asuncion, M. Welling, P. Smyth, Y. W. Teh (2009). On smoothing and inference for topic models. UAI.
       Equation 9.

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
        **BaseRoundsModel._parameter_constraints,
        "prior": PUBLIC_PRIOR,
        "learning_method": [StrOptions({"batch", "online"})],
        "doc_topic_prior": [*PRIOR, "array-like", StrOptions({"infer"})],
        "topic_word_prior": [*PRIOR, StrOptions({"infer"})],
        "sampling_rate": [Interval(Real, 0, 1, closed="right"), None],
        "batch_size": [Interval(Integral, 1, 2**53, closed="both"), None],
        "nominal_size": [Interval(Integral, 1, 2**53, closed="both"), None],
        "max_visits": [Interval(Integral, 1, None, closed="left"), None],
        "max_norm": [Interval(Real, 1, NORM_BOUND, closed="both"), None],
        "max_doc_length": [Interval(Integral, 1, None, closed="left"), None],
        "learning_offset": [Interval(Real, 0, None, closed="left")],
        "learning_decay": [Interval(Real, 0, 1, closed="both")],
        "max_doc_update_iter": [Interval(Integral, 1, 2**30, closed="both"), None],
        "mean_change_tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        epsilon: float = 5.0,
        delta: float = 1e-5,
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
        doc_topic_prior: ArrayLike | str | None = None,
        topic_word_prior: float | str | None = None,
        prior: PublicPrior | WordPrior | None = None,
        checkpoint: PathLike | None = None,
        callback: Function | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
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
        self.prior = prior
        self.checkpoint = checkpoint
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @available_if(lambda self: self._takes_batches())
    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Matrix, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Take one step, with one mini-batch of a stream. Only for `learning_method="online"`.

        The first call charges the budget of all `max_iter` steps. Pickle the model between steps, to go on without
        spending again, and keep that pickle like the data. In which batch a document (user) comes must depend neither
        on others nor on the model: cut a stream by time. The guide has more on streams.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts, with the same words in each batch. A batch without documents is one of empty documents.
        y : ignored
        groups : array-like of shape (n_documents,), default=None
            The user of each document, in every batch or in none.

        Returns
        -------
        self : VIPSLDA
            The estimator after one more step.

        Raises
        ------
        BudgetExceededError
            If `max_iter` steps have been taken, or an open accountant cannot afford the stream; no data were read. Or
            if this step has been taken with another batch; nothing was released.
        ValueError
            For parameters or counts that are not as described, or changed between steps.
        """
        plan, unit = self._plan(stream=True), "document" if groups is None else "user"
        guarantee = stated_guarantee(self, self._guarantee(unit, plan, stream=True))
        settings, stream = f"{unit} {settings_of(self)}", getattr(self, "_stream", None)
        if stream is not None and stream.n_done >= plan.n_rounds:
            raise BudgetExceededError(
                f"max_iter={plan.n_rounds} steps have been taken, and the guarantee covers no more. Nothing was read."
            )
        if stream is not None and stream.settings != settings:
            raise ValueError(
                "parameters, or whether there are groups, must not change between steps of partial_fit: the noise is"
                " calibrated to all of them. Start a new stream with clone(estimator)."
            )
        randomness = self._new_randomness() if stream is None else Randomness(None)
        if stream is None:
            stream = Stream(uuid4().hex, settings, randomness.root)
        randomness.root, randomness.seeded = stream.key, self.random_state is not None
        randomness.step = stream.n_done  # documents of two steps have the same numbers, and draws of their own
        charge = BudgetCharge(guarantee, f"{type(self).__name__} stream", self)
        charge.check(stream.run)
        check_same_rows(X, groups, "groups")
        X = shortened(check_counts(self, X, reset=stream.n_done == 0))
        data = TrainingData(X, None if groups is None else check_groups(groups, X.shape[0]), groups is not None, ())
        check_memory(self.n_components, data.n_words)
        if stream.n_done == 0:
            self._warn(plan, guarantee, data.n_words)
        if not plan.noiseless:
            randomness.warn_if_seeded(self)
        e_step, tables = self._e_step(plan, randomness, data), self._make_tables(plan, randomness, data)
        if stream.n_done:
            tables.restore({"table": stream.table})
            tables.n_done = stream.n_done
        charge.charge(stream.run)
        self._stream = stream  # it is paid, whatever happens now
        step, parts = stream.n_done, (e_step, Spending(plan), randomness)
        options: dict[str, Any] = {"transcript": Transcript(state=tables)}
        if plan.noiseless:
            answer_exactly(rounds_of(tables, step + 1), *parts, **options)
        else:
            options |= {"n_threads": effective_n_jobs(self.n_jobs)}
            options |= {"before_noise": partial(charge.take_step, stream.run, step)}
            converse(rounds_of(tables, step + 1), *parts, **options)
        stream = stream.after(tables.table, plan.n_rounds)
        self._set_fitted(guarantee, **self._model_of(tables, stream.n_done))
        self._stream = stream
        if stream.n_done == plan.n_rounds:  # an unfinished stream is noise at first
            warn_of_noise(self)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def privacy_cost(self, *, groups: bool = False, stream: bool = False) -> PrivacyGuarantee:
        """State the guarantee that `fit` or a stream would give, without data.

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
        guarantee = self._guarantee("user" if groups else "document", self._plan(stream), stream)
        return stated_guarantee(self, guarantee)

    def noise_deviation(self) -> dict[str, Any] | None:
        """Standard deviation of the noise in a cell of the topic-word tables, without data, as of `PrivateCGSLDA`.

        Returns
        -------
        noise : dict or None
            "first_round" and "last_round", of the released tables; "in_model", of `components_`; "rounds". None without
            noise, and for online learning, samples and `max_norm`.
        """
        if not self._adaptive():
            return None
        options = {"vectors": has_vectors(self.prior), "infers": self._votes_on_prior()}
        return self._price().noise(self._plan(), self.n_components, **options)

    def _topic_word_prior(self):
        default = EXACT_TOPIC_WORD_PRIOR if np.isinf(self.epsilon) else PRIVATE_TOPIC_WORD_PRIOR
        if self._adaptive():
            default = ADAPTIVE_TOPIC_WORD_PRIOR
        return super()._topic_word_prior(default)

    def _infers_without_noise(self):
        """Whether a prior is the most likely one of exact counts: in full batches without noise."""
        return any(self._which_inferred()) and np.isinf(self.epsilon)

    def _adaptive(self):
        """Whether the releases decide how the budget is divided: in full batches, where all contribute equally."""
        return self._price().divided

    def _price(self):
        plain = self.learning_method == "batch" and self.max_norm is None
        options = {"sampling_rate": self._rate(), "plain": plain}
        return VariationalPrice(self.epsilon, self.delta, self.max_iter, **options)

    def _rate(self):
        return sampled_share(self.sampling_rate, self.batch_size, self.nominal_size)

    def _plan(self, stream=False):
        """Return the noise of the fit, from the parameters alone."""
        self._doc_topic_prior()
        self._topic_word_prior()
        self._check_prior(self._adaptive() and not stream)
        if self._infers_without_noise() and (self.learning_method == "online" or self._rate() < 1):
            raise ValueError(
                "doc_topic_prior and topic_word_prior cannot be 'infer' without noise in mini-batches or samples. Give"
                " numbers."
            )
        price, online = self._price(), self.learning_method == "online"
        if price.divided or not (stream or online):
            return price.plan()
        rate, rounds = self._rate(), self.max_iter
        if rounds is None and online:
            rounds = math.ceil((EXACT_PASSES if np.isinf(self.epsilon) else PRIVATE_PASSES) / rate)
        rounds = price.n_rounds if rounds is None else rounds
        return self._equal_plan(rounds, 1.0, self.max_visits) if stream else self._equal_plan(rounds, rate)

    def _equal_plan(self, n_rounds, rate, visits=None):
        """Return a plan of rounds of equal noise."""
        return NoisePlan.equal(self.epsilon, self.delta, n_rounds, rate, visits)

    def _takes_batches(self):
        """Whether there is a `partial_fit`; the error is the cause of the one that users see first."""
        if self.learning_method != "online":
            raise AttributeError(
                f"partial_fit needs learning_method='online'; got {self.learning_method!r}, which is for fit."
            )
        return True

    def _guarantee(self, unit, plan, stream=False):
        assumptions = self._prior_assumption()
        if stream:
            visits = "every batch" if self.max_visits is None else f"at most {self.max_visits} batches"
            assumptions += (
                f"a {unit} may come in {visits}, in which depends on no other {unit} nor on the model",
                "no step is taken with two batches, by copies of the stream in processes that share no ledger",
            )
        return self._price().guarantee(
            plan,
            unit,
            self.random_state,
            hidden=() if self.max_doc_length is None else (CUT,),
            assumptions=assumptions,
            priors=() if stream else self._released_priors(),
            **self._claim(plan),
        )

    def _claim(self, plan):
        """Return fields of the guarantee in place of those of proven rounds; see `PublishedVIPSLDA`."""
        return {}

    def _read(self, X, groups, plan, randomness):
        if self._infers_without_noise() and (isinstance(X, DiskCounts) or shards_of(X) is not None):
            raise ValueError(
                "doc_topic_prior and topic_word_prior cannot be 'infer' without noise for documents on disk or on a"
                " cluster. Give numbers."
            )
        if not isinstance(X, DiskCounts):
            return super()._read(X, groups, plan, randomness)
        units = None if groups is None else check_groups(groups, X.shape[0])
        self._set_columns(X.shape[1])
        contents = np.frombuffer(bytes.fromhex(X.digest), np.uint8), *(units or ())
        return TrainingData(X, units, groups is not None, contents)

    def _warn(self, plan, guarantee, n_words):
        super()._warn(plan, guarantee, n_words)
        if not plan.noiseless:
            warn_of_large_delta(self.delta, self.nominal_size)

    def _keeps_seeds(self):
        """Whether a pickle is to hold secret seeds: as long as the estimator, or its stream, is not at its end."""
        stream = getattr(self, "_stream", None)
        return super()._keeps_seeds() or (stream is not None and stream.key is not None)

    def _set_fitted(self, guarantee, **attributes):
        self.__dict__.pop("_stream", None)
        super()._set_fitted(guarantee, **attributes)

    def _norm_bound(self, plan):
        """Return what NORM_BOUND stands for in the tables, in tokens."""
        if plan.noiseless:
            return NORM_BOUND / TOKEN_WEIGHT
        return BOUND_IN_TOKENS if self.max_norm is None else float(self.max_norm)

    def _private_batch(self, plan):
        return self.learning_method == "batch" and not plan.noiseless

    def _remembers(self, plan, data):
        """Whether documents go on from their topics of the last round: not on disk, and not in streams."""
        return self._private_batch(plan) and not isinstance(data.documents, DiskCounts)

    def _weighted(self, plan):
        """Whether rare words weigh more: not where the bound is on word counts."""
        return self._private_batch(plan) and self.max_norm is None

    def _make_e_step(self, plan, randomness, data):
        alpha, beta, remember = self._first_alpha(), self._topic_word_prior(), self._remembers(plan, data)
        infers = self._which_inferred()
        if self._infers_without_noise():
            priors = ExpectedPriors(alpha, FIRST_PRIOR if infers[1] else beta, infers, plan.n_rounds)
        elif plan.noiseless and self.learning_method == "batch":
            priors = partial(annealed, alpha, beta, self.n_components, n_rounds=plan.n_rounds)
        elif self._weighted(plan):
            priors = partial(round_priors, partial(constant, alpha, beta))
        else:
            priors = partial(constant, alpha, beta)
        make = partial(
            VariationalEStep,
            n_topics=self.n_components,
            priors=priors,
            exact=plan.noiseless,
            max_norm=self.max_norm,
            max_length=self.max_doc_length,
            tol=self.mean_change_tol,
            remember=remember or self._infers_without_noise(),
            weighted=self._weighted(plan),
            collapsed=self.learning_method == "batch",
            **self._updates(plan, remember),
        )
        if not self._adaptive():
            return make
        return partial(AdaptiveEStep, make=make, max_length=self.max_doc_length)

    def _updates(self, plan, remember):
        """Return the most iterations for a document, and their relaxation."""
        if remember:
            return remembered_updates(self.n_components, self.max_doc_update_iter)
        exact = plan.noiseless and self.learning_method == "batch" and not self._infers_without_noise()
        return {"max_iter": self.max_doc_update_iter or (EXACT_UPDATES if exact else FRESH_UPDATES)}

    def _starts_from_documents(self, plan):
        return plan.noiseless and self._full_batches()

    def _full_batches(self):
        return self.learning_method == "batch" and self._rate() == 1

    def _prior_mass(self):
        return PRIOR_MASS if np.isinf(self.epsilon) else NOISY_PRIOR_MASS

    def _make_tables(self, plan, randomness, data):
        shape, key, bound = (data.n_words, self.n_components), randomness.table_key, self._norm_bound(plan)
        if self.learning_method == "online":
            steps = self.learning_offset, self.learning_decay
            return OnlineTables(shape, self._rate(), key, bound, *steps, GAMMA_SHAPE, plan.deviation(0))
        if self._adaptive():
            return self._knowledge(plan, key, data)
        return SmoothedTables(shape, plan, key, bound, GAMMA_SHAPE, self._weighted(plan))


def sampled_share(sampling_rate, batch_size, nominal_size):
    """Return the probability that a document (user) takes part in a step, as given, or from documents; else 1."""
    if batch_size is None:
        return 1.0 if sampling_rate is None else float(sampling_rate)
    if sampling_rate is not None:
        raise ValueError(
            f"give batch_size or sampling_rate, not both: one follows from the other and nominal_size; got"
            f" batch_size={batch_size!r} and sampling_rate={sampling_rate!r}."
        )
    if nominal_size is None:
        raise ValueError(f"batch_size={batch_size} needs nominal_size, a public estimate of all documents; got None.")
    if batch_size > nominal_size:
        raise ValueError(f"batch_size={batch_size} must be at most nominal_size={nominal_size}.")
    return batch_size / nominal_size


def warn_of_large_delta(delta, nominal_size):
    """Warn that a guarantee says little about single units, where a public estimate of their number is known."""
    if nominal_size is not None and delta >= 1 / nominal_size:
        warn(
            f"delta={delta:g} is not below 1 / nominal_size = {1 / nominal_size:g}: publishing some"
            " documents whole would satisfy it. Choose a much smaller delta.",
            UserWarning,
        )
