"""PCTD as published: fresh noise on the counts of semantic units in each iteration."""

from functools import partial
from numbers import Integral, Real
from typing import Literal

import numpy as np

from skdplda._types import ArrayLike, Function, Matrix, Seed
from skdplda._validation import Interval, StrOptions
from skdplda._warnings import warn
from skdplda.distributed import shards_of
from skdplda.esteps._segments import SegmentEStep
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.models._base import BaseRoundsModel
from skdplda.models._pctd import EXACT_ROUNDS, EXACT_UPDATES, PCTD
from skdplda.models._pctd_guarantee import COMMON, CUT, SIMILARITY
from skdplda.privacy import PrivacyGuarantee, calibrate_gaussian, epsilon_of, gaussian_event, seeded_guarantee
from skdplda.published._pctd_noise import NoisySegmentEStep
from skdplda.rounds._plans import NoisePlan

REFERENCE = "Shi et al. (2019), Semantic Consistent Topic Discovery with Differential Privacy, Algorithm 1"
CLAIMED = {
    "all": "the noise is drawn anew in each iteration and every draw is counted, for one word present in or absent from"
    " a unit; the published Theorem 1 states an order of magnitude. Documents are not protected, and the noise"
    " is floating point, whose low-order bits the analysis leaves out.",
    "observed": "only counts that are not 0 get noise, so the words that occur in a unit are told apart from those that"
    " do not: a word present in one data set and absent from the other is seen with certainty.",
}


class PublishedPCTD(PCTD):
    """PC-TD, private and consistent topic discovery as published: fresh noise on all counts in each iteration.

    Algorithm 1 of [1]_, to reproduce its figures. In each iteration of expectation-maximisation the count of each word
    in each semantic unit gets normal noise, of which every draw is counted here, for one word present or absent: the
    Theorem 1 of [1]_ states an order of magnitude. It warns on every fit. `PCTD` has the forms that are proven, and the
    same fitted attributes.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Affects privacy: no.
    epsilon : float, default=5.0
        What all iterations may cost, for one word present in or absent from its unit. `inf` is EM without noise, unless
        there is a `noise_scale`. Affects privacy: yes.
    delta : float, default=1e-5
        Probability that the loss exceeds epsilon. Affects privacy: yes.
    noise_support : {"all", "observed"}, default="all"
        Whether all counts get noise, as the formulas of [1]_ say, or those that are not 0, which gives utility like the
        published one and is no privacy at all. Affects privacy: yes.
    noise_scale : float or None, default=None
        Standard deviation of the noise on a count, called sigma in [1]_, which has 0.25. The guarantee then says what
        it costs in `max_iter` iterations, and a fit is refused where that is more than `epsilon`. None: as little as
        `epsilon` pays for. Affects privacy: yes.
    similarity, tau : as of `skdplda.PCTD`
        Affects privacy: no, if public.
    max_iter : int or None, default=None
        Number of iterations. None: 35, as in [1]_. Affects privacy: no, the noise is calibrated to it; but yes, with a
        `noise_scale`.
    local_updates : int or None, default=None
        Updates of a document's topic proportions within an iteration. None: 1. Affects privacy: no.
    doc_topic_prior, topic_word_prior, callback, n_jobs : as of `skdplda.PCTD`
        Affects privacy: no.
    random_state : as of `CDPLDA`
        Affects privacy: yes.
    verbose : int, default=0
        Progress bar if positive. Affects privacy: no.

    See Also
    --------
    skdplda.PCTD : Guarantees that hold, for documents or for words.

    References
    ----------
    .. [1] Shi, Su, Jiang, Zhou, Zhang and Tong (2019). Semantic Consistent Topic Discovery with Differential Privacy.
       Eqs. 3-11, Algorithm 1, Theorem 1.

    Examples
    --------
    >>> from skdplda.published import PublishedPCTD
    >>> paper = PublishedPCTD(n_components=30, noise_scale=0.25, epsilon=400.0)
    >>> round(paper.privacy_cost().epsilon)
    380
    """

    # What the form has no choice of: the hooks of the base read it.
    noise_on, sampling_rate, prior, checkpoint = "units-each-iteration", 1.0, None, None
    _seeded_as = "PCTD"

    _parameter_constraints = {  # noqa: RUF012
        **{name: value for name, value in BaseRoundsModel._parameter_constraints.items() if name != "checkpoint"},
        "noise_support": [StrOptions({"all", "observed"})],
        "noise_scale": [Interval(Real, 0, 1e6, closed="right"), None],
        "similarity": ["sparse matrix", "array-like", None],
        "tau": [Interval(Real, 0, 1e6, closed="both")],
        "local_updates": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        epsilon: float = 5.0,
        delta: float = 1e-5,
        noise_support: Literal["all", "observed"] = "all",
        noise_scale: float | None = None,
        similarity: Matrix | None = None,
        tau: float = 0.3,
        max_iter: int | None = None,
        local_updates: int | None = None,
        doc_topic_prior: ArrayLike | None = None,
        topic_word_prior: float | None = None,
        callback: Function | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.noise_support = noise_support
        self.noise_scale = noise_scale
        self.similarity = similarity
        self.tau = tau
        self.max_iter = max_iter
        self.local_updates = local_updates
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _plan(self):
        """Return the noise of the fit, from the parameters alone."""
        self._doc_topic_prior()
        self._topic_word_prior()
        private, rounds = np.isfinite(self.epsilon), self.max_iter or EXACT_ROUNDS
        if (private or self.noise_scale is not None) and self.delta == 0:
            raise ValueError("delta must be > 0 for Gaussian noise; got 0.")
        if self.noise_scale is None:
            sigma = calibrate_gaussian(self.epsilon, self.delta, rounds) if private else 0.0
        else:
            sigma, cost = float(self.noise_scale), self._cost(self.noise_scale, rounds)
            if self.noise_support == "all" and cost > self.epsilon:
                raise ValueError(
                    f"noise_scale={self.noise_scale!r} costs epsilon={cost:.4g} in {rounds} iterations, at"
                    f" delta={self.delta!r}, which is more than epsilon={self.epsilon!r}: raise that, or let max_iter"
                    " be smaller or noise_scale larger."
                )
        return NoisePlan("gaussian", 1.0, (sigma,) * rounds, gaussian_event(sigma, rounds))

    def _cost(self, sigma, rounds):
        """Return what noise that is drawn anew in each iteration costs, for one word present or absent."""
        return epsilon_of(gaussian_event(sigma, rounds), self.delta)

    def _guarantee(self, unit, plan):
        """Return what is claimed; infinite where there is no noise on counts that are 0."""
        if unit == "user":
            raise ValueError(f"groups must be None for {type(self).__name__}, whose noise is for single words.")
        epsilon = self.epsilon if self.noise_scale is None else self._cost(self.noise_scale, plan.n_rounds)
        private = bool(np.isfinite(epsilon))
        counted = private and self.noise_support == "all"
        public = () if self.similarity is None else (SIMILARITY,)
        where = "every vocabulary word" if self.noise_support == "all" else "every word that occurs"
        guarantee = PrivacyGuarantee(
            epsilon=epsilon if counted else np.inf,
            delta=self.delta if counted else 0.0,
            status="claimed",
            reason=CLAIMED[self.noise_support] if private else "no noise is added.",
            mechanism=(
                f"normal noise of standard deviation {plan.multipliers[0]:.4g} on the count of {where} in each"
                f" semantic unit, drawn anew in each of {plan.n_rounds} iterations"
                if private
                else "none"
            ),
            released=("components_", "topic_word_", "n_iter_"),
            assumptions=(CUT.format("present or absent"), *public) if private else (),
            reference=REFERENCE,
            event=plan.event if counted else None,
            **COMMON,
        )
        return seeded_guarantee(guarantee, self.random_state)

    def _read(self, X, groups, plan, randomness):
        if shards_of(X) is not None:
            raise ValueError(
                f"X must be on this machine for {type(self).__name__}, which runs in one piece. Use PCTD on a cluster."
            )
        return super()._read(X, groups, plan, randomness)

    def _warn(self, plan, guarantee, n_words):
        super()._warn(plan, guarantee, n_words)
        warn(
            f"{type(self).__name__} is the published form: {CLAIMED[self.noise_support]} Use PCTD for a guarantee that"
            " holds for documents, or PCTD(noise_on='units') for words.",
            PrivacyLeakWarning,
        )

    def _noisy(self, plan, randomness, X):
        settings = self._settings(False, self.local_updates or EXACT_UPDATES)
        if plan.noiseless:
            return X, partial(SegmentEStep, **settings)
        return X, partial(NoisySegmentEStep, sigma=plan.multipliers[0], support=self.noise_support, **settings)
