"""HDP-LDA as published: counts that change within a sweep, with noise that adds up."""

import math
from typing import Literal

import numpy as np

from skdplda._arithmetic import expm1
from skdplda._types import ArrayLike, Seed
from skdplda._validation import StrOptions, tokens_of
from skdplda._warnings import warn
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.models._hdp import COMMON, HDPLDA, BaseHybridLDA
from skdplda.models._hdp_sampler import trace_of
from skdplda.privacy import PrivacyGuarantee
from skdplda.published._gibbs_sampler import fit_published

FIXED = ("delta", "mechanism", "verbose")  # parameters of the safe class that the form has no choice of
NOT_PRIVATE = (
    "the table changes within a sweep, so that a replaced token changes the draws of all tokens of both words, not only"
    " its own (with 10 related tokens the exact loss of one sweep's draws is 6.93 where 3.58 is claimed); noise on"
    " running counts does not hide the moves of the same sweep, and the model less the last noisy table is exact."
)
EXACT_MODEL = (
    "each noisy copy hides its counts, but the table changes within a sweep, so that a replaced token changes the draws"
    " of all tokens of both words, not only its own; and the model is made of the hidden counts, without noise."
)
REFERENCE = "Zhao et al. (2021), Latent Dirichlet Allocation Model Training With Differential Privacy, Algorithm 1"


class PublishedHDPLDA(BaseHybridLDA):
    """HDP-LDA, hybrid private LDA as published: sequential sweeps, and Laplace noise on their running counts.

    Algorithm 1 of [1]_, to reproduce its figures. It warns on every fit: its claim, for one token replaced, is the sum
    over sweeps of the noise's epsilon and of 2 ln(1 + C / beta) for the draws (eq. 7), and does not hold, because a
    draw changes the counts that the next ones read. `HDPLDA` has the form whose guarantee is proven, and the same
    fitted attributes; `components_` here are the running counts at the end, exact ones with `noise_on="copy"`.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Affects privacy: no.
    epsilon : float or None, default=None
        What is claimed of the whole fit. None: 10, unless the budget is given by sweep. `inf`: no noise. Affects
        privacy: yes, but it bounds nothing.
    max_iter : int or None, default=None
        Sweeps. None: 25 (100 with `epsilon=inf`); [1]_ has 300. Affects privacy: no.
    noise_share : as of `skdplda.HDPLDA`
        None: 0.25. Affects privacy: no.
    noise_epsilon : float or None, default=None
        Called epsilon_L in [1]_: of one sweep's noise, of scale 2 / epsilon_L on the topic-word counts. `inf`: no
        noise. Affects privacy: yes, but it bounds nothing.
    noise_on : {"counts", "copy"}, default="counts"
        What gets noise. "counts": the running counts in each sweep, where it adds up, as Algorithm 1 of [1]_ says.
        "copy": a copy of them, new in each sweep, as its Algorithm 3, an attack, records; draws and the model are of
        exact counts then. Affects privacy: yes, but neither bounds anything.
    inherent_epsilon : float or None, default=None
        Called epsilon_I in [1]_: of the draws of one sweep, 2 ln(1 + C / beta). Affects privacy: yes, but it bounds
        nothing.
    count_clip : float or None, default=None
        Called C in [1]_: a noisy count weighs as 0 at least and as this at most. None: from the prior and the range of
        the draws. Affects privacy: no, alone; it does with `topic_word_prior`.
    doc_topic_prior : as of `skdplda.HDPLDA`
        None: 0.1. Affects privacy: no.
    topic_word_prior : float or None, default=None
        Called beta in [1]_: pseudo-count of the model and of the draws. None: 0.01; with `count_clip`, in the draws
        what their range leaves. Affects privacy: no, alone; it does with `count_clip`.
    return_trace, n_jobs : as of `skdplda.HDPLDA`
        The sampler has one thread. Affects privacy: no.
    random_state : as of `CDPLDA`
        Affects privacy: yes.

    See Also
    --------
    skdplda.HDPLDA : A guarantee that holds.
    skdplda.attacks.TopicTraceAttack : What an adversary makes of a trace.

    References
    ----------
    .. [1] Zhao, Ren, Yang, Han, Zhao and Yang (2021). Latent Dirichlet Allocation Model Training With Differential
       Privacy. IEEE TIFS 16. Section IV, Algorithm 1, Theorem 3, eq. 7.

    Examples
    --------
    >>> from skdplda.published import PublishedHDPLDA
    >>> paper = PublishedHDPLDA(n_components=4, noise_epsilon=1, inherent_epsilon=10, max_iter=300)
    >>> paper.privacy_cost()
    PrivacyGuarantee(epsilon=3300, delta=0, token, replace, central, claimed)
    """

    delta, mechanism = 0.0, None  # the paper sums epsilons, and its noise is Laplace
    _in_one_piece = True
    _seeded_as = "HDPLDA"

    _parameter_constraints = {
        name: value for name, value in HDPLDA._parameter_constraints.items() if name not in FIXED
    } | {"noise_on": [StrOptions({"counts", "copy"})]}

    def __init__(
        self,
        n_components: int = 10,
        *,
        epsilon: float | None = None,
        max_iter: int | None = None,
        noise_share: float | None = None,
        noise_epsilon: float | None = None,
        noise_on: Literal["counts", "copy"] = "counts",
        inherent_epsilon: float | None = None,
        count_clip: float | None = None,
        doc_topic_prior: ArrayLike | None = None,
        topic_word_prior: float | None = None,
        return_trace: bool = False,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.noise_share = noise_share
        self.noise_epsilon = noise_epsilon
        self.noise_on = noise_on
        self.inherent_epsilon = inherent_epsilon
        self.count_clip = count_clip
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.return_trace = return_trace
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _traced(self, X, plan, randomness):
        return self._run(X, plan, randomness, True)[1], tokens_of(X)[1]

    def _reason(self):
        return EXACT_MODEL if self.noise_on == "copy" else NOT_PRIVATE

    def _warn(self, plan, randomness):
        warn(
            f"{type(self).__name__} is the published form and not private: {self._reason()} Use HDPLDA for a guarantee"
            " that holds.",
            PrivacyLeakWarning,
        )
        return False

    def _guarantee(self, plan):
        table = 2 / plan.scale if plan.scale else math.inf
        return PrivacyGuarantee(
            epsilon=self._total() if self._by_total() else plan.n_sweeps * (table + plan.eta),
            status="claimed",
            reason=self._reason(),
            released=self._released(),
            mechanism=f"collapsed Gibbs sampling with Laplace noise on"
            f" {'a copy of the counts' if self.noise_on == 'copy' else 'running counts'}, {plan.n_sweeps} sweeps",
            reference=REFERENCE,
            **COMMON,
        )

    def _run(self, X, plan, randomness, trace):
        """Return the counts of the model, the trace if asked, and None: the noise adds up, and tells nothing."""
        clip, beta, odds = self.count_clip, self._topic_word_prior(), expm1(min(plan.eta / 2, 700.0))
        if clip is None:
            clip = beta * odds
        elif self.topic_word_prior is None:
            beta = max(clip / odds, 1e-30)
        sweeps = []
        found = fit_published(
            X,
            self.n_components,
            form="hybrid-fresh" if self.noise_on == "copy" else "hybrid",
            epsilon=2 / plan.scale if plan.scale else math.inf,
            doc_topic_prior=self._doc_topic_prior(),
            topic_word_prior=beta,
            max_iter=plan.n_sweeps,
            seed=randomness.generator_seed(),
            count_clip=clip,
            observer=(lambda *seen: sweeps.append(seen)) if trace else None,
        )
        counts = found.word_topic.T
        if not trace:
            return np.maximum(counts, 0), None, None
        tables, topics = zip(*sweeps, strict=True)
        return np.maximum(counts, 0), trace_of(topics, [*tables, counts], tokens_of(X)[0]), None
