"""The set union by item frequency with its printed threshold, whose delta does not hold."""

import math
from dataclasses import replace

from skdplda._arithmetic import log
from skdplda._types import Seed
from skdplda._warnings import warn
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.vocabulary import DPVocabularySelector

WHY = (
    "its threshold counts on one new word a unit, but noise is on every word: of 100 words that one unit alone uses,"
    " some pass with up to a hundred times the claimed delta."
)
FIXED = ("method", "mechanism", "public_vocabulary")  # parameters of the base that the form has no choice of


class PublishedItemFrequencySelector(DPVocabularySelector):
    """Choose the words that many documents use, by item frequency and with the threshold that the paper prints.

    A document (user) fills its most frequent words first, up to a cap; Laplace noise is added to each word's weight,
    and words above 1 + ln(1 / (2 delta)) / epsilon are selected [1]_. It warns on every fit: delta does not hold,
    because the threshold counts on one word that a document alone uses, and noise is on every word. The same with a
    threshold that keeps delta is `DPVocabularySelector(method="item_frequency")`, which has the same fitted attributes.

    Parameters
    ----------
    epsilon : float, default=1.0
        What is claimed, for adding or removing one document (one user with `groups`). `inf` selects every word that is
        used. Affects privacy: yes.
    delta : float, default=1e-5
        What is claimed for words that one document (user) alone uses, in (0, 1). Affects privacy: yes.
    max_words_per_unit : int, default=200
        Words that a document (user) takes part with; more are left out at random. Affects privacy: yes, delta fails by
        a factor up to their number.
    max_words : int or None, default=None
        Of the selected words keep so many, those of the largest noisy weights. None keeps all. Affects privacy: no.
    cutoff : as of `skdplda.DPVocabularySelector`
        Called alpha in [1]_. Affects privacy: no.
    random_state : as of `CDPLDA`
        Affects privacy: yes.

    See Also
    --------
    skdplda.DPVocabularySelector : A guarantee that holds.

    References
    ----------
    .. [1] Carvalho, Wang, Gondara and Miao (2022). Incorporating Item Frequency for Differentially Private Set Union.
       AAAI.

    Examples
    --------
    >>> from skdplda.published import PublishedItemFrequencySelector
    >>> PublishedItemFrequencySelector(epsilon=2.0).privacy_cost()
    PrivacyGuarantee(epsilon=2, delta=1e-5, document, add-remove, central, claimed)
    """

    method, mechanism, public_vocabulary = "item_frequency", None, None
    _seeded_as = "DPVocabularySelector"

    _parameter_constraints = {  # noqa: RUF012
        name: value for name, value in DPVocabularySelector._parameter_constraints.items() if name not in FIXED
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-5,
        max_words_per_unit: int = 200,
        max_words: int | None = None,
        cutoff: float = 3.0,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.max_words_per_unit = max_words_per_unit
        self.max_words = max_words
        self.cutoff = cutoff
        self.random_state = random_state

    def _plan(self, part=1.0, epsilon=None):
        plan = super()._plan(part, epsilon)
        if plan.mechanism is None:
            return plan
        return plan.judged(math.ceil(plan.grid + plan.scales[0] * log(1 / (2 * self.delta))), self.cutoff)

    def _guarantee(self, unit):
        sound = super()._guarantee(unit)
        if math.isinf(sound.epsilon):
            return sound
        return replace(
            sound,
            status="claimed",
            reason="; ".join(filter(None, (WHY, sound.reason))),
            mechanism=sound.mechanism.replace(self.method, "item_frequency_published"),
            event=None,
            event_delta=0.0,
        )

    def _start(self):
        randomness = super()._start()
        warn(
            f"{type(self).__name__} is the published form and not private: {WHY} Use"
            " DPVocabularySelector(method='item_frequency') for a guarantee that holds.",
            PrivacyLeakWarning,
        )
        return randomness
