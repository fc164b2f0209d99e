"""Collapsed LDA with private rounds; the published forms are in `skdplda.published`."""

from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np

from skdplda._types import ArrayLike, Function, Seed
from skdplda._validation import PRIOR, Interval, StrOptions, fit_context
from skdplda.distributed import shards_of
from skdplda.esteps._adaptive import AdaptiveEStep
from skdplda.esteps._gibbs import GibbsEStep
from skdplda.esteps._listed import ListedEStep
from skdplda.esteps._variational import VariationalEStep, remembered_updates, round_priors
from skdplda.exact._expected import first_expected
from skdplda.exact._inferred import FIRST_PRIOR, InferredPriors, are_short
from skdplda.exact._tables import ExactTables, annealed, constant
from skdplda.models._base import NOISY_PRIOR_MASS, BaseRoundsModel
from skdplda.priors._public import PUBLIC_PRIOR, PublicPrior, WordPrior, has_vectors
from skdplda.privacy import MECHANISMS
from skdplda.rounds._adaptive import GAMMA_SHAPE
from skdplda.rounds._prices import GibbsPrice
from skdplda.rounds._tables import SmoothedTables

# Local sweeps in a round that draws.
PRIVATE_SWEEPS, EXACT_SWEEPS = 10, 1
MEAN_CHANGE = 1e-3  # at which a document stops, in a round that infers
# Without noise, words list their topics if there are more: doc/kernels.rst, "Lists of topics".
LISTED_TOPICS = 1500


class PrivateCGSLDA(BaseRoundsModel):
    """Latent Dirichlet allocation with collapsed topics, differentially private for documents or users.

    Topics of all documents follow from a public table of topic-word counts; each round releases the next table as the
    sum of the documents' contributions plus integer noise. Privacy holds against everyone who sees every round's table.

    Without noise topics are drawn, by Gibbs sampling, and so they are with "laplace". With Gaussian noise, under which
    drawn topics settle too early, each token's probabilities of topics take the place of draws: collapsed variational
    inference, CVB0 [2]_. With noise, all documents (users) contribute equally: the topic-word counts of one are scaled
    to a fixed norm, and with Gaussian noise rare words weigh more. There is no bound to choose.

    With Gaussian noise and `sampling_rate=1` the releases decide how the budget is divided: word frequencies come
    first, then rounds of topics, and a vote of the documents tells whether topics explain them better than word
    frequencies do. If not, the rest of the budget goes to the frequencies, and all topics are alike. The model is what
    the releases prove (empirical Bayes), so that cells full of noise fade into the word frequencies; `prior` adds what
    is publicly known.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Where releases divide the budget and the signal is weak, fewer are kept apart, and the others
        are the word frequencies. Affects privacy: no.
    epsilon : float, default=5.0
        Privacy loss of the whole fit, for adding or removing one document (one user with `groups`); `inf` for no noise.
        Affects privacy: yes.
    delta : float, default=1e-5
        Probability of a larger loss; well below 1 / (public estimate of the number of units), chosen without looking at
        the data. Not used by "laplace". Affects privacy: yes.
    mechanism : str, default="gaussian"
        Law of the noise: "gaussian", "laplace" (pure epsilon), or another of `skdplda.privacy.MECHANISMS`. Affects
        privacy: yes.
    max_iter : int or None, default=None
        Rounds of topics, which divide the budget. None: with Gaussian noise 2 to 20, as the first releases tell; 20
        with other noise and with samples, 100 without, of which the last eight (fewer above 2500 topics), at most a
        quarter, add up expected counts in place of draws. Affects privacy: no, the noise is calibrated to it.
    local_sweeps : int or None, default=None
        Sweeps over a document's tokens within a round, of Gibbs sampling or, at most, of collapsed variational
        inference. None: 16 with Gaussian noise (eight over-relaxed ones with more than 32 topics), of which few make
        worse topics; 10 with "laplace", 1 without. Affects privacy: no.
    sampling_rate : float, default=1.0
        Probability that a unit takes part in a round (Poisson sampling). "gaussian" only. Affects privacy: no, the
        noise is calibrated to it.
    doc_topic_prior : float, array-like of shape (n_components,), "infer" or None, default=None
        Dirichlet prior of topic proportions, called alpha in [1]_. None: 0.1, and 0.5 / n_components at most where
        releases divide the budget: there documents (users), and without noise those in memory, vote for 1, 5 or 25
        times as much in the end, short ones for more. "infer": without noise, the most likely one, which texts of 20
        different words at most on average have by default, where neither prior is given; with noise as None,
        and with samples and other mechanisms 0.1, in proportion to the topics' released masses. Without noise it is
        larger while topics are found, by the length of documents if there are more than 100. Affects privacy: no.
    topic_word_prior : float, "infer" or None, default=None
        Dirichlet prior of topics, called beta in [1]_. None: 0.01, or inferred without noise as `doc_topic_prior` is.
        "infer": without noise, the most likely one. Affects privacy: no.
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
        Topic-word pseudo-counts, the prior included; and the same with rows scaled to sum to 1.
    privacy_guarantee_ : PrivacyGuarantee
        What is guaranteed; print it for a statement to publish.
    signal_to_noise_ : ndarray of shape (n_components, n_words)
        By how many standard deviations of the noise a released count exceeds that of a topic with the word frequencies
        of all; beyond about 4, a word is no noise. Zeros where topics did not pay. Only with noise, where tables are
        averaged.
    topic_signal_to_noise_ : ndarray of shape (n_components,)
        The same for whole topics: one below about 1 says little. All are 0 where documents voted that topics do not
        pay, as they do of words that meet by chance in 19 fits of 20 at least (not with `max_iter` of 1, nor where
        noise is divided otherwise: nobody votes so there).
    doc_topic_prior_, topic_word_prior_ : ndarray of shape (n_components,), float
        The priors that were inferred; that of topic proportions alone, if documents voted for it. With noise, topics
        that are not kept apart, if more than ten, have as much as ten together. Of an array, with seeds in `prior`:
        in the order of the topics.
    n_iter_, n_features_in_ : int
        Rounds (sweeps), with noise all releases: word counts and votes too, more than `max_iter`. And number of words.
    feature_names_in_ : ndarray of shape (n_words,)
        Words, if X was a data frame.

    See Also
    --------
    skdplda.PrivacyAccountant : A budget over several fits.
    skdplda.published : The forms of the papers, whose claims do not hold.

    References
    ----------
    .. [1] Zhao, Ren, Yang and Yang (2019). On Privacy Protection of Latent Dirichlet Allocation Model Training.
       IJCAI. Eq. 1, Algorithm 1.
    .. [2] A. Asuncion, M. Welling, P. Smyth, Y. W. Teh (2009). On smoothing and inference for topic models. UAI.

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
        **BaseRoundsModel._parameter_constraints,
        "prior": PUBLIC_PRIOR,
        "mechanism": [StrOptions({*MECHANISMS})],
        "doc_topic_prior": [*PRIOR, "array-like", StrOptions({"infer"})],
        "topic_word_prior": [*PRIOR, StrOptions({"infer"})],
        "local_sweeps": [Interval(Integral, 1, None, closed="left"), None],
        "sampling_rate": [Interval(Real, 0, 1, closed="right")],
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
        self.mechanism = mechanism
        self.max_iter = max_iter
        self.local_sweeps = local_sweeps
        self.sampling_rate = sampling_rate
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.prior = prior
        self.checkpoint = checkpoint
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def noise_deviation(self) -> dict[str, Any] | None:
        """Standard deviation of the noise in a cell of the topic-word tables, without data.

        The unit is that of `components_`: a document of 25 different words counts each of them once, and every document
        (user) weighs the same. A cell far above the noise in the model is certainly not noise. With Gaussian noise the
        numbers are those of a word of mean frequency: a word r times as frequent has r ** (1 / 4) times the noise,
        where that is in [1 / 5, 5]; and they are those before `components_` are shrunk, the greatest that there may be.
        What is asked before topics may have more noise, and is no part of `components_`.

        Returns
        -------
        noise : dict or None
            "first_round" and "last_round", of the released tables; "in_model", of `components_`; "rounds". None without
            noise.
        """
        options = {"vectors": has_vectors(self.prior), "infers": self._votes_on_prior()}
        return self._price().noise(self._plan(), self.n_components, **options)

    def _price(self):
        return GibbsPrice(self.epsilon, self.delta, self.max_iter, self.mechanism, self.sampling_rate)

    def _plan(self):
        """Return the noise of the fit, from the parameters alone."""
        self._doc_topic_prior()
        self._topic_word_prior()
        self._check_prior(self._adaptive())
        return self._price().plan()

    def _guarantee(self, unit, plan):
        options = {"priors": self._released_priors(), "assumptions": self._prior_assumption()}
        return self._price().guarantee(plan, unit, self.random_state, **options)

    def _read(self, X, groups, plan, randomness):
        if any(self._which_inferred()) and np.isinf(self.epsilon) and shards_of(X) is not None:
            raise ValueError(
                "doc_topic_prior and topic_word_prior cannot be 'infer' without noise on a cluster. Give numbers."
            )
        return super()._read(X, groups, plan, randomness)

    def _adaptive(self):
        """Whether the releases decide how the budget is divided: Gaussian noise, and all units in every round."""
        return self._price().divided

    def _full_batches(self):
        return self.sampling_rate == 1

    def _prior_mass(self):
        return NOISY_PRIOR_MASS if self._adaptive() else np.inf

    def _order(self, plan):
        """Return the order of the norm that is bounded; None without noise, where each token counts 1."""
        if plan.noiseless and plan.sampling_rate == 1:
            return None
        return plan.law.norm

    def _starts_from_documents(self, plan):
        return self._order(plan) is None

    def _inferred(self, plan, data):
        """Whether the priors of topic proportions, and of words, are inferred in rounds without noise."""
        if self._votes_without_noise() and self.topic_word_prior is None:
            return (are_short(data.documents, self.n_components, plan.n_rounds),) * 2
        return self._which_inferred()

    def _released_priors(self):
        depends = self._votes_without_noise() and self.topic_word_prior is None
        return GibbsPrice.exact_priors if depends else super()._released_priors()

    def _lists_topics(self, plan, data):
        """Whether words list their topics, in place of a number for each topic."""
        return self._order(plan) is None and self.n_components > LISTED_TOPICS and not any(self._inferred(plan, data))

    def _exact_priors(self, plan, data):
        """Return the priors of rounds without noise."""
        priors, first = (self._doc_topic_prior(), self._topic_word_prior()), self._first_expected(plan, data)
        options = {"n_rounds": plan.n_rounds, "first_expected": first, "mean_length": data.mean_length}
        return partial(annealed, *priors, self.n_components, **options)

    def _first_expected(self, plan, data):
        """Return the number of the first round of expected counts; None without such rounds."""
        if self._order(plan) is not None or any(self._inferred(plan, data)):
            return None
        return first_expected(plan.n_rounds, self.n_components, self._doc_topic_prior())

    def _make_e_step(self, plan, randomness, data):
        alpha, beta, order = self._first_alpha(), self._topic_word_prior(), self._order(plan)
        infers = self._inferred(plan, data)
        priors = partial(constant, alpha, beta)
        if order is None and any(infers):
            priors = InferredPriors(alpha, FIRST_PRIOR if infers[1] else beta, infers, plan.n_rounds)
        elif order is None:
            priors = self._exact_priors(plan, data)
        if order == 2:
            options = {"n_topics": self.n_components, "priors": partial(round_priors, priors)}
            make = partial(inference, sweeps=self.local_sweeps, **options)
            return partial(AdaptiveEStep, make=make) if self._adaptive() else make
        n_sweeps = self.local_sweeps or (EXACT_SWEEPS if order is None else PRIVATE_SWEEPS)
        options = {"n_topics": self.n_components, "priors": priors, "n_sweeps": n_sweeps}
        if self._lists_topics(plan, data):
            return partial(ListedEStep, first_expected=self._first_expected(plan, data), **options)
        return partial(GibbsEStep, order=order, first_expected=self._first_expected(plan, data), **options)

    def _make_tables(self, plan, randomness, data):
        shape, key = (data.n_words, self.n_components), randomness.table_key
        if self._order(plan) is None:
            lists = self._lists_topics(plan, data)
            priors = partial(constant, self._doc_topic_prior(), self._topic_word_prior())  # of the last rounds
            return ExactTables(shape, plan, priors, self._first_expected(plan, data), lists)
        if self._adaptive():
            return self._knowledge(plan, key, data)
        soft = self._order(plan) == 2  # soft counts, of topics that are inferred
        return SmoothedTables(shape, plan, key, gamma_shape=GAMMA_SHAPE if soft else 1.0, weighted=soft)


def inference(X, units=None, *, n_topics, sweeps, **options):
    """Return the E-step of rounds that infer topics; `sweeps` is `local_sweeps`."""
    return VariationalEStep(
        X, units, n_topics=n_topics, exact=False, max_norm=None, max_length=None, tol=MEAN_CHANGE, weighted=True,
        remember=True, collapsed=True, **remembered_updates(n_topics, sweeps), **options,
    )  # fmt: skip
