"""The audit: what an estimator claims, and what an attacker of its releases can show."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from skdplda._checks import check_structure, is_integer
from skdplda._types import ArrayLike, Estimator, Matrix
from skdplda.attacks import check_confidence, check_documents, quantile_attack, released_topics
from skdplda.audit._bounds import (
    epsilon_lower_bound,
    epsilon_of_mu,
    mu_lower_bound,
    one_run_lower_bound,
    one_run_p_value,
)
from skdplda.audit._canaries import Canaries, claim_of, claim_to_dict, fits, prepared, quiet_fit
from skdplda.privacy import PrivacyGuarantee
from skdplda.vocabulary import DPCountVectorizer, DPVocabularySelector

METHODS = ("one-run", "repeated")
LEAST_DOCUMENTS = 20  # as canaries: fewer coins show nothing
CANARY_TOKENS = 100  # far above the norm bound, which the audit is to test; chosen by hand


@dataclass(frozen=True)
class AuditReport:
    """What was claimed, and what could be shown.

    Parameters
    ----------
    claim : PrivacyGuarantee
        Of the audited estimator.
    lower_bound : float
        On epsilon, at the claim's delta.
    confidence : float
        Probability that the bound holds.
    method : str
        How it was found.
    evidence : str
        The numbers behind it.
    violated : bool
        Whether the claim was refuted.
    """

    claim: PrivacyGuarantee
    lower_bound: float
    confidence: float
    method: str
    evidence: str
    violated: bool

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.violated:
            return "VIOLATED: the claimed epsilon is below what an attacker showed."
        if self.claim.status != "proven":
            return f"not refuted, and not proven either ({self.claim.status}): {self.claim.reason}"
        return "consistent: no attack of this audit exceeds the claim. An audit cannot prove it."

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values.

        Returns
        -------
        report : dict
            Of numbers and strings.
        """
        return {
            **claim_to_dict(self.claim),
            "lower_bound": self.lower_bound,
            "confidence": self.confidence,
            "method": self.method,
            "evidence": self.evidence,
            "violated": self.violated,
            "verdict": self.verdict,
        }

    def __str__(self):
        claim = self.claim
        return "\n".join(
            [
                f"claim        epsilon {claim.epsilon:.6g}, delta {claim.delta:.6g}, {claim.unit},"
                f" {claim.adjacency}, {claim.status}",
                f"lower bound  epsilon {self.lower_bound:.4g}",
                f"confidence   {self.confidence:.10g} ({self.method}: {self.evidence})",
                f"verdict      {self.verdict}",
            ]
        )


def audit(
    estimator: Estimator,
    corpus: Matrix,
    *,
    claim: tuple[float, float] | None = None,
    members: ArrayLike | None = None,
    method: Literal["one-run", "repeated"] = "one-run",
    n_canaries: int = 1000,
    n_guesses: int | None = None,
    n_fits: int = 500,
    gdp: bool = False,
    confidence: float = 0.95,
    canary_tokens: int | None = None,
    n_jobs: int | None = None,
    random_state: int | None = None,
    verbose: int = 1,
) -> AuditReport:
    """Attack an estimator on a corpus with planted canaries, and compare with what it claims.

    "one-run" plants many canaries, each by a coin, fits once, and guesses which are in [1]_. "repeated" fits many times
    with and without one canary; half of the fits choose the threshold, the others are counted. The releases used are
    the topic table's columns of the canaries' words, which are added to the vocabulary.

    What an audit could show at most, with every guess right, is in the evidence: with few fits, a high confidence
    or, in one run, a delta that is not far below (1 - confidence) / n_canaries, it is little.

    Parameters
    ----------
    estimator : estimator
        With `privacy_cost()` and, fitted, `components_`, or a `PrivateSearchCV` of one. It is not changed; seeds are
        removed, so that each fit has noise of its own. The fits are charged to an open `PrivacyAccountant`. With a
        `claim` anything with `fit` and `components_`; with `members` a fitted model, gensim's too, or a topic matrix.
    corpus : array-like or sparse matrix of shape (n_documents, n_words)
        Word counts. The claim holds for every corpus; a small one makes the attack easier and cheaper.
    claim : tuple of float, default=None
        (epsilon, delta) for adding or removing a document, of an estimator or model that has no `privacy_cost`, such as
        scikit-learn's; None takes the estimator's.
    members : array-like of bool of shape (n_documents,), default=None
        For a model that is fitted already, or a bare topic matrix in its place: which documents of the corpus it was
        trained on, each by a fair coin of its own. Nothing is fitted; the documents are the canaries, and the attack is
        quantile regression without shadow models.
    method : {"one-run", "repeated"}, default="one-run"
        One fit, or `n_fits`. Repeated fits show larger epsilons.
    n_canaries : int, default=1000
        For "one-run".
    n_guesses : int, default=None
        For "one-run": the canaries guessed about, half of them as present; None takes a fifth. Fixed in advance, as
        the theorem requires.
    n_fits : int, default=500
        For "repeated": half with the canary, half without.
    gdp : bool, default=False
        For "repeated", and claims of Gaussian noise without sampling: bound mu of Gaussian differential privacy and
        report the epsilon it has at delta. A sharper test of that claim.
    confidence : float, default=0.95
        Of the bound.
    canary_tokens : int, default=None
        Length of a canary; None takes 100, or 1 where the unit is a token or bit.
    n_jobs : int, default=None
        Fits at a time, as in joblib.
    random_state : int, default=None
        Of the coins; the noise stays fresh.
    verbose : int, default=1
        Prints the report if positive, and a progress bar if above 1.

    Returns
    -------
    report : AuditReport
        Claim, lower bound, confidence and verdict.

    Raises
    ------
    ValueError
        If the estimator claims nothing or releases no topics, or a number is out of range; or if `members` come without
        a claim, or without documents of both kinds.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski (2023). Privacy Auditing with One (1) Training Run. NeurIPS.

    Examples
    --------
    >>> from skdplda import PrivateCGSLDA
    >>> from skdplda.audit import audit
    >>> from skdplda.datasets import make_lda_corpus
    >>> X = make_lda_corpus(50, 20, 2, random_state=0).data
    >>> report = audit(PrivateCGSLDA(1, epsilon=3.0, max_iter=3), X, n_canaries=400, confidence=1 - 1e-6, verbose=0)
    >>> report.lower_bound <= 3.0, report.violated
    (True, False)

    A model without any privacy, and a claim that is made of it:

    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> lda = LatentDirichletAllocation(2, max_iter=2)
    >>> audit(lda, X, claim=(1.0, 1e-9), verbose=0, random_state=0).violated
    True
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}; got {method!r}.")
    given = None if claim is None else given_claim(claim)
    check_confidence(confidence)
    if members is not None:
        if given is None:
            raise ValueError("members are for a fitted model, which needs a claim=(epsilon, delta) beside.")
        report = one_run_of_model(estimator, corpus, members, n_guesses, given, confidence, random_state)
        if verbose:
            print(report)  # noqa: T201
        return report
    if given is None:
        check_auditable(estimator)
    elif not hasattr(estimator, "fit"):
        raise ValueError("a topic matrix, or a model without fit, needs members: the documents it was trained on.")
    for name, value in (("n_canaries", n_canaries), ("n_guesses", n_guesses), ("n_fits", n_fits)):
        if value is not None and not is_integer(value):
            raise ValueError(f"{name} must be an integer; got {value!r}.")
    check_structure(corpus, "corpus")
    estimator, X = prepared(estimator), sp.csr_array(corpus)
    kind = given or claim_of(estimator, X.shape[1])
    if kind.unit == "user":
        raise ValueError("audits plant documents; for the unit 'user' give each document a user of its own.")
    if canary_tokens is None:
        canary_tokens = 1 if kind.unit in ("token", "bit") else CANARY_TOKENS
    if not (is_integer(canary_tokens) and 1 <= canary_tokens < 2**31):
        raise ValueError(f"canary_tokens must be an integer from 1 to 2**31 - 1; got {canary_tokens!r}.")
    rng = np.random.default_rng(random_state)
    options = {"n_jobs": n_jobs, "verbose": max(verbose - 1, 0)}
    canaries = Canaries(X, n_canaries if method == "one-run" else 1, canary_tokens, kind.adjacency == "replace")
    stated = given or claim_of(estimator, canaries.n_words)
    if method == "one-run":
        if gdp:
            raise ValueError("gdp is for method='repeated'.")
        found = one_run(estimator, canaries, n_canaries, n_guesses, stated, confidence, rng, options)
    else:
        found = repeated(estimator, canaries, n_fits, stated, gdp, confidence, options)
    report = AuditReport(stated, found[0], confidence, method, found[1], found[2])
    if verbose:
        print(report)  # noqa: T201
    return report


def given_claim(claim):
    """Return a claim (epsilon, delta) of the caller as a guarantee."""
    try:
        epsilon, delta = claim
    except (TypeError, ValueError):
        raise ValueError(f"claim must be a pair (epsilon, delta); got {claim!r}.") from None
    reason = "it was given to the audit, which knows no proof of it."
    return PrivacyGuarantee(epsilon=float(epsilon), delta=float(delta), status="claimed", reason=reason)


def one_run_of_model(model, corpus, members, n_guesses, claim, confidence, random_state):
    """Return the report on a fitted model: its documents are the canaries.

    The scores of all documents are computed without a look at who is a member, as the theorem requires.
    """
    table, members = released_topics(model), np.asarray(members, dtype=bool)
    X = check_documents(corpus, table.shape[1])
    n = X.shape[0]
    if n < LEAST_DOCUMENTS or members.shape != (n,) or members.all() or not members.any():
        raise ValueError(
            f"members must say of each of at least {LEAST_DOCUMENTS} documents whether the model was trained on it, of"
            f" some yes and of some no; got shape {members.shape} for {n} documents."
        )
    scores = quantile_attack(table, X, members, X).scores
    found = guessed(scores, members, n_guesses, claim, confidence, np.random.default_rng(random_state))
    return AuditReport(claim, found[0], confidence, "one-run, quantile regression", found[1], found[2])


def quick_audit(
    estimator: Estimator,
    corpus: Matrix,
    *,
    claim: tuple[float, float] | None = None,
    confidence: float = 0.95,
    random_state: int | None = None,
    verbose: int = 1,
) -> AuditReport:
    """Fit once, on documents of a corpus chosen by coins, and look for them without any shadow model.

    It says what the simplest attack finds of documents as they are, in the time of one fit; `audit_one_fit` and `audit`
    plant worse ones, and show more.

    Parameters
    ----------
    estimator : estimator
        With `fit` and, fitted, topics; not changed, seeds are removed. The fit is charged to an open
        `PrivacyAccountant`.
    corpus : array-like or sparse matrix of shape (n_documents, n_words)
        Word counts of at least 20 documents.
    claim : tuple of float, default=None
        As in `audit`.
    confidence : float, default=0.95
        Of the bound.
    random_state : int, default=None
        Of the coins; the noise stays fresh.
    verbose : int, default=1
        Prints the report if positive.

    Returns
    -------
    report : AuditReport
        Claim, lower bound, confidence and verdict.

    Raises
    ------
    ValueError
        As `audit`.

    Examples
    --------
    >>> from skdplda import VIPSLDA
    >>> from skdplda.audit import quick_audit
    >>> from skdplda.datasets import make_lda_corpus
    >>> X = make_lda_corpus(100, 20, 2, random_state=0).data
    >>> quick_audit(VIPSLDA(2, epsilon=3.0), X, confidence=1 - 1e-6, verbose=0).violated
    False
    """
    if claim is None:
        check_auditable(estimator)
    check_confidence(confidence)
    check_structure(corpus, "corpus")
    estimator, X = prepared(estimator), sp.csr_array(corpus)
    stated = claim_of(estimator, X.shape[1]) if claim is None else given_claim(claim)
    if (str(stated.unit), str(stated.adjacency)) != ("document", "add-remove"):
        raise ValueError(
            f"a quick audit adds or removes documents; the claim is for {stated.unit}, {stated.adjacency}. Use audit."
        )
    members = np.random.default_rng(random_state).random(X.shape[0]) < 0.5
    model = quiet_fit(estimator, X[np.flatnonzero(members)])
    report = one_run_of_model(model, X, members, None, stated, confidence, random_state)
    if verbose:
        print(report)  # noqa: T201
    return report


def check_auditable(estimator):
    """Refuse what makes no claim of its own, or releases no topics in which canaries could be looked for."""
    if hasattr(estimator, "steps"):
        raise ValueError("a pipeline has several claims; audit its private steps one by one.")
    if not hasattr(estimator, "privacy_cost"):
        raise ValueError(f"{type(estimator).__name__} has no privacy_cost: it claims nothing that could be audited.")
    if isinstance(estimator, (DPCountVectorizer, DPVocabularySelector)):
        raise ValueError(
            f"{type(estimator).__name__} releases words and no topics, in which canaries are looked for;"
            " mechanism_audits has an audit of selections."
        )


def one_run(estimator, canaries, n_canaries, n_guesses, claim, confidence, rng, options):
    """Return the bound, the evidence and whether the claim is refuted, of one fit."""
    half_of(n_guesses, n_canaries)  # refused before the fit
    present = rng.random(n_canaries) < 0.5
    scores = fits(estimator, canaries, [present], **options)[0]
    return guessed(scores, present, n_guesses, claim, confidence, rng)


def half_of(n_guesses, n_canaries):
    """Return how many canaries are guessed to be present, and how many absent; by default a tenth."""
    half = n_canaries // 10 if n_guesses is None else n_guesses // 2
    if not 1 <= half <= n_canaries // 2:
        raise ValueError(
            f"n_guesses must be from 2 to n_canaries={n_canaries}; got {n_guesses!r}. The default needs 10 canaries."
        )
    return half


def guessed(scores, present, n_guesses, claim, confidence, rng):
    """Return the bound, the evidence and whether the claim is refuted, of scores of canaries put in by coins."""
    n_canaries = len(scores)
    half = half_of(n_guesses, n_canaries)
    order = np.lexsort((rng.random(n_canaries), scores))  # ties by coin
    correct = int(present[order[-half:]].sum() + (~present[order[:half]]).sum())
    numbers = (n_canaries, 2 * half, correct)
    bound = one_run_lower_bound(*numbers, delta=claim.delta, confidence=confidence)
    refuted = np.isfinite(claim.epsilon) and one_run_p_value(*numbers, claim.epsilon, claim.delta) < 1 - confidence
    most = one_run_lower_bound(n_canaries, 2 * half, 2 * half, delta=claim.delta, confidence=confidence)
    evidence = f"{correct} of {2 * half} guesses right, {n_canaries} canaries; all right would show {most:.3g}"
    return bound, evidence, bool(refuted)


def repeated(estimator, canaries, n_fits, claim, gdp, confidence, options):
    """Return the bound, the evidence and whether the claim is refuted, of many fits."""
    if not n_fits >= 8:
        raise ValueError(f"n_fits must be at least 8, to choose a threshold and to count; got {n_fits!r}.")
    if gdp and type(claim.event).__name__ != "GaussianDpEvent":
        raise ValueError("gdp needs a claim of Gaussian noise without sampling; use gdp=False.")
    present = np.arange(n_fits) % 2 == 0
    scores = fits(estimator, canaries, [[here] for here in present], **options)[:, 0]
    return judged(scores, present, claim, gdp, confidence)


def judged(scores, present, claim, gdp, confidence):
    """Return the bound, the evidence and whether the claim is refuted, of one score of each of many fits."""
    n_fits = len(scores)
    chosen = np.arange(n_fits) < n_fits // 4 * 2  # for the threshold; as many with the canary as without
    shown = mu_lower_bound if gdp else partial(epsilon_lower_bound, delta=claim.delta)
    threshold = best_threshold(scores[chosen], present[chosen], shown)
    counted, present = scores[~chosen] >= threshold, present[~chosen]
    numbers = [int(counted[present].sum()), int(present.sum()), int(counted[~present].sum()), int((~present).sum())]
    evidence = f"found in {numbers[0]} of {numbers[1]} fits with the canary, {numbers[2]} of {numbers[3]} without"
    if gdp:
        mu = mu_lower_bound(*numbers, confidence=confidence)
        claimed = 1 / claim.event.noise_multiplier
        return epsilon_of_mu(mu, claim.delta), f"{evidence}; mu {mu:.4g} of {claimed:.4g}", bool(mu > claimed)
    bound = epsilon_lower_bound(*numbers, delta=claim.delta, confidence=confidence)
    all_right = (numbers[1], numbers[1], 0, numbers[3])
    most = epsilon_lower_bound(*all_right, delta=claim.delta, confidence=confidence)
    evidence += f"; all right would show {most:.3g}"
    return bound, evidence, bool(bound > claim.epsilon)


def best_threshold(scores, present, shown):
    """Return the threshold whose hits and false alarms show most on these fits, amid the gap below it.

    Where the fits are too few for any threshold to show something, it is the one with most hits beyond false alarms.
    """
    best, chosen = (-1.0, 0.0), np.inf
    for threshold in np.unique(scores):
        called = scores >= threshold
        numbers = (called[present].sum(), present.sum(), called[~present].sum(), (~present).sum())
        bound = shown(*map(int, numbers), confidence=0.8), called[present].mean() - called[~present].mean()
        if bound > best:
            below = scores[scores < threshold]
            best, chosen = bound, threshold if not len(below) else (threshold + below.max()) / 2
    return chosen
