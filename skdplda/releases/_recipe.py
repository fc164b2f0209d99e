"""Fully differentially private topic modelling: one budget for the words and the topics."""

import math

from scipy.optimize import brentq
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdplda._types import Estimator
from skdplda._validation import is_real
from skdplda.models import VIPSLDA
from skdplda.privacy import check_delta, check_epsilon
from skdplda.rounds import PublicPrior
from skdplda.vocabulary import DPCountVectorizer

__all__ = ["calibrate", "make_fdptm_pipeline"]

TOLERANCE = 1e-5  # of the total epsilon, that may stay unspent


def make_fdptm_pipeline(
    epsilon: float = 5.0,
    delta: float = 1e-5,
    *,
    n_components: int | None = None,
    vocabulary_share: float = 0.3,
    vectorizer: DPCountVectorizer | None = None,
    model: Estimator | None = None,
    prior: PublicPrior | None = None,
    groups: bool = False,
) -> Estimator:
    """Make a pipeline from raw texts to topics, its words private too, for one total budget.

    Fully differentially private topic modelling [1]_ selects the words and fits the topics privately. Here both
    steps are accounted jointly: the model gets the largest epsilon for which the total still holds, which is more
    than the total less the words' share.

    The recipe is the same as `Pipeline([CountVectorizer, DPVocabularySelector, model])`, the first two in one step, so
    that no fitted step holds the words of single documents.

    Parameters
    ----------
    epsilon : float, default=5.0
        Total privacy loss of words and topics; inf for none.
    delta : float, default=1e-5
        Total delta; one half goes to each step. What the first does not need for its noise is accounted to both.
    n_components : int or None, default=None
        Number of topics. None leaves that of `model`.
    vocabulary_share : float, default=0.3
        Share of epsilon that selects the words, in (0, 1). The topics get much more than the rest.
    vectorizer : DPCountVectorizer or None, default=None
        Its text settings and mechanism are kept, its budget is replaced.
    model : private topic model or None, default=None
        With parameters `epsilon` and `delta`, which are replaced. None: `VIPSLDA()`, the best topics at small epsilon.
    prior : PublicPrior or None, default=None
        Public knowledge of words and topics, for the model. It meets the words once they are selected.
    groups : bool, default=False
        Whether `fit` will be given groups. Where metadata routing is on, both steps request them.

    Returns
    -------
    pipeline : Pipeline
        Unfitted, with steps "words" and "topics". `privacy_guarantee(pipeline)` tells its total; give groups as
        `words__groups` and `topics__groups`.

    Raises
    ------
    ValueError
        If the budget or the share is out of range, or a step refuses its part.

    References
    ----------
    .. [1] N. Manzonelli, W. Zhang, S. Vadhan (2024). Membership inference attacks and privacy in topic modeling.
       Algorithm 1.

    Examples
    --------
    >>> from skdplda import make_fdptm_pipeline, privacy_guarantee
    >>> pipeline = make_fdptm_pipeline(3.0, 1e-6, n_components=20)
    >>> privacy_guarantee(pipeline)
    PrivacyGuarantee(epsilon=3, delta=1e-6, document, add-remove, central, proven)
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if not is_real(vocabulary_share) or not 0 < vocabulary_share < 1:
        raise ValueError(f"vocabulary_share must be a number above 0 and below 1; got {vocabulary_share!r}.")
    words = clone(DPCountVectorizer() if vectorizer is None else vectorizer)
    words.set_params(epsilon=vocabulary_share * epsilon, delta=delta / 2)
    topics = clone(VIPSLDA() if model is None else model).set_params(epsilon=epsilon, delta=delta / 2)
    if prior is not None:
        topics.set_params(prior=prior)
    if n_components is not None:
        topics.set_params(n_components=n_components)
    if math.isfinite(epsilon):
        calibrate(topics, epsilon, words.privacy_cost(groups=groups), groups)
    if groups and get_config()["enable_metadata_routing"]:
        words.set_fit_request(groups=True)
        topics.set_fit_request(groups=True)
    return Pipeline([("words", words), ("topics", topics)])


def calibrate(topics, epsilon, words_cost, groups):
    """Set the largest epsilon of the model for which, with which the guarantee of both steps stays within the total."""

    def excess(share):
        return words_cost.compose(topics.set_params(epsilon=share).privacy_cost(groups=groups)).epsilon - epsilon

    low = (epsilon - words_cost.epsilon) * (1 - 1e-12)  # always enough: Theorem 4.1 of the paper
    high = epsilon
    if excess(low) > 0:
        raise ValueError(
            f"{type(topics).__name__} has no guarantee that would fit into a total of epsilon={epsilon:g}:"
            f" {topics.privacy_cost(groups=groups)!r}."
        )
    while (least := excess(high)) <= 0:
        low, high = high, 2 * high
        if excess(high) == least:  # the model has the least noise that there is, and cannot spend more
            return
    share = brentq(excess, low, high, xtol=TOLERANCE * epsilon / 2)
    while excess(max(share, low)) > 0:  # leaves the model with this epsilon
        share -= TOLERANCE * epsilon / 2
