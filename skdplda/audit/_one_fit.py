"""The audit of one fit: many canaries, all releases, and the exact curve of the noise that was claimed."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from skdplda._checks import check_structure, is_integer
from skdplda._types import Estimator, Matrix
from skdplda.attacks import check_confidence
from skdplda.audit._canaries import claim_of, claim_to_dict, prepared, quiet_fit
from skdplda.audit._designs import design_of
from skdplda.audit._one_fit_bounds import DEPENDENT, INDEPENDENT, chosen_share, largest_refuted, right_guesses
from skdplda.privacy import PrivacyGuarantee, observing
from skdplda.semantics import UnitMatrix

LEAST_CANARIES = 100
ATTACKS = ("white-box", "black-box")


@dataclass(frozen=True)
class AttackLine:
    """What one attack on one fit showed.

    Parameters
    ----------
    attack : {"white-box", "black-box"}
        On all releases of the fit, or on the fitted model alone.
    bound : {"independent noise", "any dependence"}
        What the lower bound takes for granted of the noise on different canaries.
    claimed : float
        Epsilon of the claim.
    attainable : float
        About the most that any attack on these canaries shows of right code, however many they are: less than claimed
        where their releases have only a part of the loss.
    measured : float
        The largest claim of this kind of noise that is refuted, at the claim's delta and by the claim's accounting.
    n_right, n_guesses : int
        Right guesses, and all of them.
    violated : bool
        Whether the claim was refuted beyond the rate of false alarms.
    """

    attack: str
    bound: str
    claimed: float
    attainable: float
    measured: float
    n_right: int
    n_guesses: int
    violated: bool

    def __str__(self):
        said = ", VIOLATED" if self.violated else ""
        return (
            f"claimed {self.claimed:.4g}  attainable {self.attainable:.4g}  measured {self.measured:.4g}"
            f"  {self.attack}, {self.bound} ({self.n_right} of {self.n_guesses} guesses right){said}"
        )


@dataclass(frozen=True)
class OneFitReport:
    """What was claimed, and what each attack on one fit showed.

    Parameters
    ----------
    claim : PrivacyGuarantee
        Of the audited estimator.
    lines : tuple of AttackLine
        One for each attack and bound.
    confidence : float
        Probability that the bound of a line holds.
    alarm : float
        Probability, at most, that right code is called violated by any line.
    n_canaries : int
        Planted, each by a coin.
    """

    claim: PrivacyGuarantee
    lines: tuple[AttackLine, ...]
    confidence: float
    alarm: float
    n_canaries: int

    @property
    def violated(self) -> bool:
        """Whether any attack refuted the claim."""
        return any(line.violated for line in self.lines)

    @property
    def lower_bound(self) -> float:
        """What the attack on all releases showed, where noise on different canaries is independent."""
        return self.lines[0].measured

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values.

        Returns
        -------
        report : dict
            Of numbers, strings and a list of such.
        """
        return {
            **claim_to_dict(self.claim),
            "confidence": self.confidence,
            "alarm": self.alarm,
            "n_canaries": self.n_canaries,
            "violated": self.violated,
            "attacks": [vars(line).copy() for line in self.lines],
        }

    def __str__(self):
        claim = self.claim
        head = (
            f"claim  epsilon {claim.epsilon:.6g}, delta {claim.delta:.6g}, {claim.unit}, {claim.adjacency},"
            f" {claim.status}; one fit, {self.n_canaries} canaries, bounds of confidence {self.confidence:.10g} each"
        )
        if self.violated:
            verdict = f"VIOLATED: right code shows as much with probability {self.alarm:g} at most."
        else:
            verdict = "consistent: no attack refutes the claim. An audit cannot prove it."
        return "\n".join([head, *map(str, self.lines), verdict])


def audit_one_fit(
    estimator: Estimator,
    corpus: Matrix | None = None,
    *,
    n_canaries: int = 50_000,
    confidence: float = 0.95,
    alarm: float = 1e-4,
    random_state: int | None = None,
    verbose: int = 1,
) -> OneFitReport:
    """Plant many canaries, fit once, and compare what attacks show with what is claimed.

    A canary is a unit whose whole contribution goes into cells of its own: a word that no other document has. Each is
    put in by a fair coin; attacks guess the coins of those they are surest of, and the number of right guesses is
    compared with the most that the claimed noise allows, by the law of its privacy loss and not by epsilon and delta
    alone. That needs one fit where `audit` needs hundreds, and shows most of the true epsilon; the idea is that of [1]_
    and [2]_, the bounds are proven in the theory guide.

    Each attack is judged by two bounds. "independent noise" takes for granted that the noise in the cells of different
    canaries is independent, as the code is meant to draw it. "any dependence" holds for every mechanism with the
    claimed curve.

    Parameters
    ----------
    estimator : estimator
        A model of private rounds (`PrivateCGSLDA`, `VIPSLDA`, `PCTD`), `HDPLDA`, `DPVocabularySelector`, or
        `EmbeddingTopics`, of which the budget for words is looked at, in a proven form with a finite epsilon. It is not
        changed; seeds are removed. The fit is charged to an open `PrivacyAccountant`.
    corpus : array-like or sparse matrix of shape (n_documents, n_words), default=None
        Word counts of documents beside the canaries. The claim holds for every corpus; None is none. For
        `EmbeddingTopics`, None.
    n_canaries : int, default=50000
        For each attack; at least 100. The bound comes as near to the truth as about 2 / sqrt(n_canaries) allows in
        comparison with the root of the loss's variance.
    confidence : float, default=0.95
        Of the bound of each line.
    alarm : float, default=1e-4
        Probability, at most, that right code is called violated. It is smaller than 1 - confidence, because a bound of
        confidence 0.95 exceeds the truth once in twenty fits where it is tight.
    random_state : int, default=None
        Of the coins; the noise stays fresh.
    verbose : int, default=1
        Prints the report if positive.

    Returns
    -------
    report : OneFitReport
        One line for each attack and bound.

    Raises
    ------
    ValueError
        If no attack of one fit is known for the estimator, or a number is out of range.

    References
    ----------
    .. [1] Mahloujifar, Melis and Chaudhuri (2025). Auditing f-Differential Privacy in One Run. ICML.
    .. [2] Xiang et al. (2025). Tight Privacy Audit in One Run. arXiv:2509.08704.

    Examples
    --------
    >>> from skdplda import VIPSLDA
    >>> from skdplda.audit import audit_one_fit
    >>> report = audit_one_fit(VIPSLDA(2, epsilon=5.0), n_canaries=5000, verbose=0)
    >>> report.violated, report.lower_bound > 3.0
    (False, True)
    """
    check_confidence(confidence)
    if not 0 < alarm < 1:
        raise ValueError(f"alarm must be between 0 and 1; got {alarm!r}.")
    if not (is_integer(n_canaries) and n_canaries >= LEAST_CANARIES):
        raise ValueError(f"n_canaries must be an integer of at least {LEAST_CANARIES}; got {n_canaries!r}.")
    estimator, n_canaries = prepared(estimator), int(n_canaries)
    check_structure(corpus, "corpus")
    corpus = corpus if corpus is None or isinstance(corpus, UnitMatrix) else sp.csr_array(corpus)
    design = design_of(estimator, corpus, n_canaries)
    claim, composition = claim_of(estimator, 0), design.composition()
    if not math.isfinite(claim.epsilon):
        raise ValueError("the estimator claims no finite epsilon: there is nothing to refute. Use audit(...).")
    rng = np.random.default_rng(random_state)
    present = rng.random(design.n_coins) < 0.5
    with observing(design.observe), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # advice on utility, which is not the question here
        model = quiet_fit(estimator, design.corpus(present))
    lines = []
    scores_of = design.white_box(), design.black_box(model)
    for attack, coins, part, scores in zip(ATTACKS, design.coins, design.shown, scores_of, strict=True):
        attainable = claim.epsilon if part == 1 else min(claim.epsilon, design.epsilon(part, claim.delta))
        for bound in (INDEPENDENT, DEPENDENT):
            n_guesses = chosen_share(composition, bound, n_canaries, 1 - confidence)
            n_right = right_guesses(scores, present[coins], n_guesses, rng)
            numbers = composition, bound, n_canaries, n_guesses, n_right
            decisions = design.n_decisions if bound == INDEPENDENT else 1
            measured, surely = (
                design.epsilon(factor, claim.delta) if factor else 0.0
                for factor in (largest_refuted(*numbers, error / decisions) for error in (1 - confidence, alarm / 4))
            )
            violated = surely > claim.epsilon
            numbers = claim.epsilon, attainable, measured, n_right, n_guesses
            lines.append(AttackLine(attack, bound, *numbers, bool(violated)))
    report = OneFitReport(claim, tuple(lines), confidence, alarm, n_canaries)
    if verbose:
        print(report)  # noqa: T201
    return report
