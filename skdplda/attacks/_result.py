"""What an attack found out: scores beside the truth, and the rates that matter."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta, rankdata


class RateAt(NamedTuple):
    """True-positive rate at a false-positive rate, with an exact binomial interval.

    Parameters
    ----------
    rate : float
        Share of the members found.
    low, high : float
        Clopper-Pearson interval for it.
    fpr : float
        False-positive rate reached: at most the given one.
    threshold : float
        Documents with at least this score are called members.
    """

    rate: float
    low: float
    high: float
    fpr: float
    threshold: float


@dataclass(frozen=True, eq=False)
class AttackResult:
    """Scores of an attack and who was a member.

    Parameters
    ----------
    scores : array-like of shape (n_documents,)
        Larger means: more likely a member. Infinities are allowed, NaN is not.
    labels : array-like of shape (n_documents,)
        Whether each was a member; at least one of each kind.
    name : str, default=""
        Of the attack.

    Raises
    ------
    ValueError
        If the lengths differ, a score is NaN, or members or non-members are missing.

    Examples
    --------
    >>> from skdplda.attacks import AttackResult
    >>> result = AttackResult([3.0, 2.0, 2.0, 1.0], [True, True, False, False])
    >>> result.auc
    0.875
    >>> result.tpr_at(0.0).rate
    0.5
    """

    scores: np.ndarray
    labels: np.ndarray
    name: str = ""

    def __post_init__(self):
        scores, labels = np.array(self.scores, dtype=np.float64), np.array(self.labels, dtype=bool)
        if scores.ndim != 1 or scores.shape != labels.shape:
            raise ValueError(
                f"scores and labels must have one entry a document; got shapes {scores.shape} and {labels.shape}."
            )
        if np.isnan(scores).any():
            raise ValueError(f"scores must be numbers; {np.isnan(scores).sum()} of {len(scores)} are NaN.")
        if labels.all() or not labels.any():
            raise ValueError(
                f"labels must hold members and non-members, else no rate can be told; got {labels.sum()} members of"
                f" {len(labels)} documents."
            )
        for name, values in (("scores", scores), ("labels", labels)):
            values.setflags(write=False)
            object.__setattr__(self, name, values)

    @classmethod
    def pool(cls, results: Any) -> "AttackResult":
        """Put repetitions of one attack together; scores of all must mean the same.

        Parameters
        ----------
        results : sequence of AttackResult
            At least one.

        Returns
        -------
        result : AttackResult
            With the documents of all, and the name of the first.
        """
        results = list(results)
        scores = np.concatenate([result.scores for result in results])
        return cls(scores, np.concatenate([result.labels for result in results]), results[0].name)

    @property
    def auc(self) -> float:
        """Probability that a member's score exceeds a non-member's, ties counted half."""
        ranks = rankdata(self.scores)[self.labels]
        members, others = len(ranks), len(self.labels) - len(ranks)
        return float((ranks.sum() - members * (members + 1) / 2) / (members * others))

    def roc(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compute the rates at every threshold that separates documents.

        Returns
        -------
        fpr, tpr : ndarray of shape (n_thresholds + 1,)
            From (0, 0) to (1, 1); documents of equal score enter together.
        thresholds : ndarray of shape (n_thresholds + 1,)
            Falling; the first is above every score.
        """
        order = np.argsort(-self.scores, kind="stable")
        scores, labels = self.scores[order], self.labels[order]
        last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))
        found = np.cumsum(labels)[last]
        false = last + 1 - found
        tpr = np.append(0.0, found / labels.sum())
        fpr = np.append(0.0, false / (~labels).sum())
        return fpr, tpr, np.append(np.inf, scores[last])

    def tpr_at(self, fpr: float, confidence: float = 0.95) -> RateAt:
        """Share of members found at no more than a false-positive rate.

        Parameters
        ----------
        fpr : float
            From 0 to 1, such as 0.001.
        confidence : float, default=0.95
            Of the interval, which takes the threshold as given and the documents as independent.

        Returns
        -------
        at : RateAt
            The rate, its interval, the false-positive rate reached and the threshold.

        Raises
        ------
        ValueError
            If `fpr` is outside [0, 1], or `confidence` outside (0, 1).
        """
        if not 0 <= fpr <= 1:
            raise ValueError(f"fpr must be from 0 to 1; got {fpr!r}.")
        rates, found, thresholds = self.roc()
        place = np.flatnonzero(rates <= fpr)[-1]
        members = int(self.labels.sum())
        low, high = binomial_interval(round(found[place] * members), members, confidence)
        return RateAt(float(found[place]), low, high, float(rates[place]), float(thresholds[place]))

    def __repr__(self):
        name = f"{self.name}: " if self.name else ""
        return f"<{name}AUC {self.auc:.3f}, TPR {self.tpr_at(0.001).rate:.2%} at FPR 0.1 %>"


def check_confidence(confidence):
    """Refuse what is no confidence."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1; got {confidence!r}.")


def binomial_interval(successes, trials, confidence):
    """Return the Clopper-Pearson interval of a probability."""
    check_confidence(confidence)
    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(beta.ppf(tail, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.isf(tail, successes + 1, trials - successes))
    return low, high
