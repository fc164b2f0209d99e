"""Fully differentially private topic modelling: one budget for the words and the topics."""

import math
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from skdplda._arithmetic import bracket, root
from skdplda._checks import is_integer, is_real
from skdplda._types import Estimator
from skdplda.exceptions import BudgetExceededError
from skdplda.models import VIPSLDA, suggest_n_components
from skdplda.priors import PublicPrior, WordPrior, seeded_names
from skdplda.privacy import active_accountant, check_delta, check_epsilon
from skdplda.releases._pipeline import PrivatePipeline
from skdplda.vocabulary import DPCountVectorizer

# Words that topics can carry, per unit of their epsilon: private words are then nearly as near to topics without noise
# as 1,000 fixed words (20 Newsgroups in benchmarks/results/vocabulary_caps.csv; chosen there, with seed 0).
WORDS_PER_EPSILON = 250
# Words a document up to which both priors are inferred without noise: frontier page, "Short texts".
SHORT_WITHOUT_NOISE = 7
# Size of the vocabulary where a number of topics is suggested and nothing says how many words there will be. Not tuned:
# the suggestion changes with its fourth root.
NOMINAL_WORDS = 2000
TOLERANCE = 1e-5  # of the total epsilon, that may stay unspent
LEAST = 0.02  # of a ledger's epsilon, that must remain for a pipeline to be made
MOST_HALVES = 10  # how often delta is halved where a ledger has less left


def make_fdptm_pipeline(
    epsilon: float | Literal["remaining"] = 5.0,
    delta: float = 1e-5,
    *,
    n_components: int | Literal["suggest"] | None = None,
    vocabulary_share: float = 0.4,
    max_words: int | Literal["auto"] | None = None,
    vectorizer: DPCountVectorizer | None = None,
    model: Estimator | None = None,
    prior: PublicPrior | None = None,
    groups: bool = False,
    nominal_size: int | None = None,
    words_per_document: float = 40.0,
) -> PrivatePipeline:
    """Make a pipeline from raw texts to topics, its words private too, for one total budget.

    Fully differentially private topic modelling [1]_ selects the words and fits the topics privately. Here both
    steps are accounted jointly: the model gets the largest epsilon for which the total still holds, which is more
    than the total less the words' share.

    The recipe is the same as `Pipeline([CountVectorizer, DPVocabularySelector, model])`, the first two in one step, so
    that no fitted step holds the words of single documents, and the model has the words, which `prior` needs.

    Parameters
    ----------
    epsilon : float or "remaining", default=5.0
        Total privacy loss of words and topics; inf for none. "remaining" takes all that the open `PrivacyAccountant`
        can still pay, by the ledger's own rule, and at most its epsilon: fit the pipeline next.
    delta : float, default=1e-5
        Total delta; one half goes to each step. What the first does not need for its noise is accounted to both. With
        "remaining" at most that of the ledger, and halved, up to ten times, while the ledger cannot pay it.
    n_components : int, "suggest" or None, default=None
        Number of topics. "suggest" takes what `model_selection.suggest_n_components` suggests from public numbers, for
        what the topics may spend and `max_words` words (2,000 where nothing limits them). None leaves that of `model`.
        `model_selection.PrivateSearchCV` searches for a number: it takes this pipeline. Affects privacy: no.
    vocabulary_share : float, default=0.4
        Share of epsilon that selects the words, in (0, 1). The topics get much more than the rest.
    max_words : int, "auto" or None, default=None
        Of the selected words keep so many, those of the largest released weight: fewer words have better topics, more
        words cover more of the texts. "auto" takes 250 for each unit of the epsilon of the topics, a public number.
        None leaves that of `vectorizer`. It costs nothing. Affects privacy: no.
    vectorizer : DPCountVectorizer or None, default=None
        Its text settings and mechanism are kept, its budget is replaced: `DPCountVectorizer(stop_words=...)`.
    model : private topic model or None, default=None
        With parameters `epsilon` and `delta`, which are replaced. None: `VIPSLDA()`, the best topics at small epsilon.
    prior : PublicPrior or None, default=None
        Public knowledge of words and topics, for the model. It meets the words once they are selected, and there must
        be as many topics as it names; "suggest" takes at least as many.
    groups : bool, default=False
        Whether `fit` will be given groups, the users of documents. A fit without them is then refused.
    nominal_size : int or None, default=None
        For "suggest": a public estimate of the number of documents, of users with `groups`. Affects privacy: no, if it
        was not counted in the private texts.
    words_per_document : float, default=40.0
        For "suggest": a public estimate of the number of different words of a document (user) that are in the
        vocabulary. The suggestion changes with its fourth root. Up to 7, with epsilon=inf and without a
        `model`, both priors are "infer", suggested or not. Affects privacy: no, if public.

    Returns
    -------
    pipeline : PrivatePipeline
        Unfitted, with steps "words" and "topics". `privacy_guarantee(pipeline)` is its total. Groups are given
        once: `pipeline.fit(texts, groups=users)`.

    Raises
    ------
    ValueError
        If the budget, the share or the number of words is out of range, a step refuses its part, `n_components` is
        "suggest" without `nominal_size` or with an infinite epsilon, or epsilon is "remaining" and no ledger is open or
        the open one has no limit.
    BudgetExceededError
        If epsilon is "remaining" and nothing useful remains.

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

    The number of topics from a public estimate of the corpus, for what the topics may spend:

    >>> pipeline = make_fdptm_pipeline(3.0, 1e-6, n_components="suggest", nominal_size=40_000)
    >>> pipeline["topics"].n_components
    21

    What a ledger has left:

    >>> from skdplda import PrivacyAccountant
    >>> with PrivacyAccountant(2.0, 1e-6):
    ...     privacy_guarantee(make_fdptm_pipeline("remaining", 1e-6))
    PrivacyGuarantee(epsilon=2, delta=1e-6, document, add-remove, central, proven)
    """
    if isinstance(epsilon, str):
        options: dict[str, Any] = {"n_components": n_components, "vocabulary_share": vocabulary_share, "groups": groups}
        options |= {"max_words": max_words, "vectorizer": vectorizer, "model": model, "prior": prior}
        options |= {"nominal_size": nominal_size, "words_per_document": words_per_document}
        return _for_the_rest(epsilon, check_delta(delta), options)
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if not is_real(vocabulary_share) or not 0 < vocabulary_share < 1:
        raise ValueError(f"vocabulary_share must be a number above 0 and below 1; got {vocabulary_share!r}.")
    if not is_real(words_per_document) or not words_per_document >= 1:
        raise ValueError(f"words_per_document must be a number of at least 1; got {words_per_document!r}.")
    suggest = isinstance(n_components, str)
    if suggest and (n_components != "suggest" or nominal_size is None):
        raise ValueError(
            f'n_components must be an integer, None or "suggest", which needs nominal_size, a public estimate; got'
            f" n_components={n_components!r} and nominal_size={nominal_size!r}."
        )
    words = clone(DPCountVectorizer() if vectorizer is None else vectorizer)
    words.set_params(epsilon=vocabulary_share * epsilon, delta=delta / 2)
    topics = clone(VIPSLDA() if model is None else model).set_params(epsilon=epsilon, delta=delta / 2)
    if prior is not None:
        topics.set_params(prior=prior)
    prior = getattr(topics, "prior", None)
    if isinstance(prior, WordPrior) and words.public_vocabulary is None:
        raise ValueError(
            "prior must be a PublicPrior, which meets the words once they are selected; got a WordPrior, which is for"
            f" {prior.n_words} words that are known before."
        )
    n_seeded = len(seeded_names(prior))
    if n_components is not None:
        topics.set_params(n_components=max(topics.n_components, n_seeded) if suggest else n_components)
    if model is None and epsilon == math.inf and words_per_document <= SHORT_WITHOUT_NOISE:
        topics.set_params(doc_topic_prior="infer", topic_word_prior="infer")
    if math.isfinite(epsilon):
        calibrate(topics, epsilon, words.privacy_cost(groups=groups), groups)
    if isinstance(max_words, str) and max_words == "auto":
        if math.isfinite(topics.epsilon):
            words.set_params(max_words=math.ceil(WORDS_PER_EPSILON * topics.epsilon))
    elif max_words is not None:
        words.set_params(max_words=check_max_words(max_words))
    if suggest:
        n_words = words.max_words or NOMINAL_WORDS
        length = min(words_per_document, n_words)
        suggestion = suggest_n_components(topics.epsilon, topics.delta, nominal_size, length, n_words)
        topics.set_params(n_components=max(suggestion.n_components, n_seeded))
    topics.privacy_cost(groups=groups)  # the model refuses what it cannot fit before the words are paid for
    return PrivatePipeline([("words", words), ("topics", topics)], groups=groups)


def _for_the_rest(epsilon, delta, options):
    """Return the pipeline with the largest epsilon that the open ledger can still pay."""
    if epsilon != "remaining":
        raise ValueError(f"epsilon must be a number or 'remaining'; got {epsilon!r}.")
    ledger = active_accountant()
    if ledger is None or math.isinf(ledger.epsilon):
        found = "no ledger is open" if ledger is None else "the open ledger has no limit"
        raise ValueError(
            "epsilon='remaining' needs an open ledger with a budget, `with PrivacyAccountant(epsilon, delta):`;"
            f" {found}."
        )
    delta = min(delta, ledger.delta)

    def made(total, part):
        pipeline = make_fdptm_pipeline(total, part * delta, **options)
        ledger.check(*(step.privacy_cost(groups=options["groups"]) for _, step in pipeline.steps))
        return pipeline

    def affordable(total, part):
        try:
            made(total, part)
        except BudgetExceededError:
            return False
        return True

    least, whole = LEAST * ledger.epsilon, ledger.epsilon
    parts = np.ldexp(1.0, -np.arange(MOST_HALVES + 1)).tolist()
    part = next((part for part in parts if affordable(least, part)), 1.0)
    made(least, part)  # raises what the ledger says
    if affordable(whole, part):
        return made(whole, part)
    return made(bracket(lambda total: affordable(total, part), least, whole, TOLERANCE, most=whole)[0], part)


def check_max_words(max_words):
    """Return the number of words; refuse what is none."""
    if not is_integer(max_words) or max_words < 1:
        raise ValueError(f'max_words must be an integer from 1, "auto" or None; got {max_words!r}.')
    return int(max_words)


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
    share = root(excess, low, high, TOLERANCE * epsilon / 2)
    while excess(max(share, low)) > 0:  # leaves the model with this epsilon
        share -= TOLERANCE * epsilon / 2
