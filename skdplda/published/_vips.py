"""VIPS with the three accountings of its paper, which are only claimed, and the noise that they ask for."""

import math
from os import PathLike
from typing import Literal

from skdplda._arithmetic import expm1, log, log1p
from skdplda._types import ArrayLike, Function, Seed
from skdplda._validation import PRIOR, StrOptions
from skdplda._warnings import warn
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.models._vips import VIPSLDA
from skdplda.privacy import check_delta, check_epsilon, epsilon_of, finite_noise, gaussian_event, least
from skdplda.rounds._plans import NoisePlan

CLAIMED_ACCOUNTINGS = ("zcdp", "advanced", "linear")
FIXED = ("learning_method", "max_visits", "prior")  # parameters of the base that the form has no choice of
STEP_DELTA = 1e-6  # of one step before subsampling, in the code of the authors
BELOW = 1 - 2.0**-50  # times what a bisection found from above


def vips_noise_multiplier(
    accounting: Literal["zcdp", "advanced", "linear"],
    epsilon: float,
    delta: float,
    steps: int,
    sampling_rate: float,
) -> float:
    """Find the Gaussian noise that an accounting of the VIPS paper asks for.

    A total budget is mapped to one for each step, by zCDP, by advanced or by linear composition; that to the budget of
    the step before subsampling by eps = ln(1 + q (e^eps' - 1)), delta = q delta'; and that to noise by sigma =
    sqrt(2 ln(1.25 / delta')) / eps', also where eps' > 1, for which the formula has no proof [1]_.

    Parameters
    ----------
    accounting : {"zcdp", "advanced", "linear"}
        The path.
    epsilon, delta : float
        Budget of all steps.
    steps : int
        Number of releases.
    sampling_rate : float
        Called nu in [1]_.

    Returns
    -------
    noise_multiplier : float
        Standard deviation over L2 sensitivity; 0.0 for infinite epsilon.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    skdplda.privacy.calibrate_gaussian : The proven accounting, which needs less noise.

    Notes
    -----
    The text of [1]_ does not say how delta is divided; the code of its authors does [2]_: delta' is 1e-6 for each step.
    zCDP spends all of delta on its conversion, and does not count what the steps spend; advanced composition spends
    what these leave; linear composition nothing more. Where steps would spend more than half of delta by these two,
    which the code does not look at, they share half of it here.

    References
    ----------
    .. [1] M. Park, J. Foulds, K. Chaudhuri, M. Welling (2016). Private topic modeling. arXiv:1609.04120. Eqs. 5 and 6.
    .. [2] https://github.com/mijungi/vips_code, PPVI_LDA/cal_amp_eps.py.

    Examples
    --------
    >>> from skdplda.published import vips_noise_multiplier
    >>> round(vips_noise_multiplier("zcdp", 0.5, 1e-4, 40, 0.01), 2)
    2.08
    """
    epsilon, delta = float(check_epsilon(epsilon)), float(check_delta(delta))
    gaussian_event(1.0, steps, sampling_rate)  # checks both
    if accounting not in CLAIMED_ACCOUNTINGS:
        raise ValueError(f"accounting must be one of {CLAIMED_ACCOUNTINGS}; got {accounting!r}")
    if math.isinf(epsilon):
        return 0.0
    if delta == 0:
        raise ValueError("delta must be > 0 for Gaussian noise; got 0")
    return finite_noise(_noise, epsilon, delta, steps, sampling_rate, accounting)


def _noise(epsilon, delta, steps, sampling_rate, accounting):
    """Return the noise of `vips_noise_multiplier`."""
    step_epsilon, step_delta = SHARES[accounting](epsilon, delta, steps, sampling_rate)
    return math.sqrt(2 * log(1.25 / step_delta)) / log1p(expm1(step_epsilon) / sampling_rate)


def _zcdp_share(epsilon, delta, steps, sampling_rate):
    """Epsilon of a step as rho-zCDP, with total + 2 sqrt(total ln(1/delta)) = epsilon, and delta before subsampling."""
    bits = log(1 / delta)
    root = math.sqrt(bits + epsilon) - math.sqrt(bits)
    return math.sqrt(4 * root * root / steps * log(1.25 / (STEP_DELTA * sampling_rate))), STEP_DELTA


def _advanced_share(epsilon, delta, steps, sampling_rate):
    """The same by Theorem 3.20 of Dwork and Roth (2014)."""
    step_delta = _step_delta(delta, steps, sampling_rate)
    left = delta - steps * sampling_rate * step_delta

    def spends(step):
        return math.sqrt(2 * steps * log(1 / left)) * step + steps * step * expm1(step) >= epsilon

    return least(spends, min(epsilon, 700.0)) * BELOW, step_delta


def _linear_share(epsilon, delta, steps, sampling_rate):
    """The same by Theorem 3.16 of Dwork and Roth (2014)."""
    return epsilon / steps, _step_delta(delta, steps, sampling_rate)


def _step_delta(delta, steps, sampling_rate):
    """Return delta of a step before subsampling, of which all steps spend half of delta at most."""
    return min(STEP_DELTA, delta / (2 * steps * sampling_rate))


SHARES = {"zcdp": _zcdp_share, "advanced": _advanced_share, "linear": _linear_share}


class PublishedVIPSLDA(VIPSLDA):
    """VIPS, variational inference with private statistics, with the accountings of its paper.

    The stochastic form of [1]_, Algorithm 1, with the noise that the paper's paths from epsilon to noise ask for, to
    reproduce its figures. They are no proofs, and conservative: the guarantee says what the noise is worth. It warns on
    every fit. `VIPSLDA(learning_method="online")` is the same with a proven epsilon and less noise, and has the same
    fitted attributes.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Affects privacy: no.
    epsilon : float, default=5.0
        What is claimed of the whole fit, for adding or removing one document (one user with `groups`). `inf` is the
        non-private model on the same code. Affects privacy: yes.
    delta : float, default=1e-5
        Probability that the loss exceeds epsilon. Affects privacy: yes.
    accounting : {"zcdp", "advanced", "linear"}, default="zcdp"
        How epsilon is divided among the steps: by zero-concentrated differential privacy, by advanced or by linear
        composition; see `vips_noise_multiplier`. Affects privacy: yes.
    max_iter : int or None, default=None
        Number of steps. None: two passes with noise, five without. Affects privacy: no, the noise is calibrated to it.
    sampling_rate : as of `skdplda.VIPSLDA`
        Called nu in [1]_. Affects privacy: no, the noise is calibrated to it.
    batch_size, nominal_size, max_norm, max_doc_length, learning_offset, learning_decay : as of `skdplda.VIPSLDA`
        As of that class. Affects privacy: no, noise follows.
    max_doc_update_iter : int or None, default=None
        Most iterations for a document in a step. None: 50. Affects privacy: no.
    mean_change_tol : float, default=1e-3
        Mean change of its parameters at which a document stops. Affects privacy: no.
    doc_topic_prior : float, array-like of shape (n_components,) or None, default=None
        Dirichlet prior of topic proportions, called alpha in [1]_. None: 0.1. Affects privacy: no.
    topic_word_prior : float or None, default=None
        Dirichlet prior of topics, called eta in [1]_. None: 1.0 with noise, 0.03 without. Affects privacy: no.
    checkpoint, callback, n_jobs : as of `skdplda.VIPSLDA`
        Affects privacy: no.
    random_state : as of `CDPLDA`
        Affects privacy: yes.
    verbose : int, default=0
        Progress bar if positive. Affects privacy: no.

    See Also
    --------
    skdplda.VIPSLDA : A guarantee that holds, and streams of batches.

    References
    ----------
    .. [1] M. Park, J. Foulds, K. Chaudhuri, M. Welling (2016). Private topic modeling. arXiv:1609.04120. Algorithm 1,
       eqs. 5 and 6.

    Examples
    --------
    >>> from skdplda.published import PublishedVIPSLDA
    >>> paper = PublishedVIPSLDA(4, accounting="linear", batch_size=200, nominal_size=2000)
    >>> paper.privacy_cost()
    PrivacyGuarantee(epsilon=5, delta=1e-5, document, add-remove, central, claimed)
    """

    # The hooks of the base read them.
    learning_method, max_visits, prior = "online", None, None
    _seeded_as = "VIPSLDA"

    def _prior_mass(self):
        return math.inf

    _parameter_constraints = {  # noqa: RUF012
        **{name: value for name, value in VIPSLDA._parameter_constraints.items() if name not in FIXED},
        "accounting": [StrOptions(set(CLAIMED_ACCOUNTINGS))],
        "doc_topic_prior": [*PRIOR, "array-like"],
        "topic_word_prior": PRIOR,
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        epsilon: float = 5.0,
        delta: float = 1e-5,
        accounting: Literal["zcdp", "advanced", "linear"] = "zcdp",
        max_iter: int | None = None,
        sampling_rate: float | None = None,
        batch_size: int | None = None,
        nominal_size: int | None = None,
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
        self.max_iter = max_iter
        self.sampling_rate = sampling_rate
        self.batch_size = batch_size
        self.nominal_size = nominal_size
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

    def _takes_batches(self):
        return False

    def _plan(self, stream=False):
        if stream:
            raise ValueError(
                f"stream must be False for {type(self).__name__}: the paper counts on Poisson samples, and partial_fit"
                " cannot know how batches were drawn. Use VIPSLDA, or fit."
            )
        return super()._plan()

    def _equal_plan(self, n_rounds, rate, visits=None):
        sigma = vips_noise_multiplier(self.accounting, self.epsilon, self.delta, n_rounds, rate)
        return NoisePlan.repeated(sigma, self.epsilon, n_rounds, rate)

    def _claim(self, plan):
        """Return the fields of the guarantee that are not those of proven rounds; none without noise."""
        if plan.noiseless:
            return {}
        true = epsilon_of(plan.event, self.delta)
        return {
            "status": "claimed",
            "reference": "Park et al. (2016), Private topic modeling, equations 5 and 6",
            "event": plan.event if true <= self.epsilon else None,
            "reason": (
                f"the {self.accounting} path of 2016 is no proof: it goes through (epsilon, delta) of single steps, and"
                " uses the Gaussian mechanism's formula where it is not valid. Privacy loss distributions give"
                f" epsilon = {true:.4g} at the same delta for this noise."
            ),
        }

    def _warn(self, plan, guarantee, n_words):
        super()._warn(plan, guarantee, n_words)
        if not plan.noiseless:
            warn(
                f"accounting={self.accounting!r} claims epsilon={self.epsilon:g}: {guarantee.reason} Use"
                " VIPSLDA(learning_method='online') for a proven epsilon.",
                PrivacyLeakWarning,
            )
