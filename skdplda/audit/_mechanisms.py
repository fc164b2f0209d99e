"""Every mechanism that the package offers, and the audits it must pass or is known to fail."""

import warnings
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import beta
from sklearn.base import clone

from skdplda.audit._audit import audit
from skdplda.exceptions import PrivacyLeakWarning

__all__ = ["MECHANISMS", "Finding", "mechanism_audits"]

CERTAIN = 1 - 1e-6
N_DOCUMENTS, N_WORDS = 40, 6
PRIOR = 0.01
N_FITS = 160  # enough to show 0.8 at 1e-6
SHOWN = 0.5
LONE_WORDS, LONE_FITS = 100, 50
ROOMS = ("models", "vocabulary")  # where estimators live


class Finding(NamedTuple):
    """What one audit of one mechanism found.

    Parameters
    ----------
    mechanism : str
        The estimator and its parameters.
    status : str
        Of its guarantee.
    check : str
        The audit.
    broken : bool
        Whether the privacy that the numbers claim was refuted.
    evidence : str
        What was seen.
    """

    mechanism: str
    status: str
    check: str
    broken: bool
    evidence: str


def corpus():
    """Return small counts, the same each time."""
    return sp.csr_array(np.random.default_rng(20).poisson(1.0, (N_DOCUMENTS, N_WORDS)).astype(np.int32))


def exact_totals(estimator):
    """Read the number of times each word occurs off the released table: no epsilon allows that."""
    X = corpus()
    model = quiet_fit(estimator, X)
    read = model.components_.sum(axis=0) - len(model.components_) * PRIOR
    totals = np.asarray(X.sum(axis=0), dtype=float)
    found = int((np.abs(read - totals) < 1e-6).sum())
    return found == N_WORDS, f"{found} of {N_WORDS} word totals read off exactly"


def planted_canary(estimator):
    """Look for the word of a document in repeated fits with and without it."""
    report = audit(estimator, corpus(), method="repeated", n_fits=N_FITS, confidence=CERTAIN, verbose=0)
    broken = report.violated or (np.isinf(report.claim.epsilon) and report.lower_bound > SHOWN)
    return bool(broken), f"{report.evidence}: epsilon >= {report.lower_bound:.3g}"


def many_canaries(estimator):
    """Guess which of many canaries are in one fit."""
    report = audit(estimator, corpus(), n_canaries=500, confidence=CERTAIN, verbose=0)
    broken = report.violated or (np.isinf(report.claim.epsilon) and report.lower_bound > SHOWN)
    return bool(broken), f"{report.evidence}: epsilon >= {report.lower_bound:.3g}"


def contribution(estimator):
    """Compare releases with and without a document under equal noise: it may move them by the bound at most.

    One round, one topic and one seed: what differs is the document's contribution. The noise is small, so that no cell
    is clipped at zero.
    """
    single = clone(estimator).set_params(n_components=1, max_iter=1, random_state=1, epsilon=100.0)
    event = single.privacy_cost().event
    gaussian = hasattr(event, "noise_multiplier")
    deviation = single.noise_deviation()["first_round"]  # in units of the table
    multiplier = event.noise_multiplier if gaussian else 2**0.5 / event.noise_parameter
    bound = deviation / multiplier
    X = corpus()
    without = quiet_fit(single, X).components_
    largest, rng = 0.0, np.random.default_rng(3)
    for scale in (0, 1, 1, 3, 30, 1000, 100_000):
        document = rng.poisson(scale, (1, N_WORDS)).astype(np.int32)
        document[0, rng.integers(N_WORDS)] += scale
        moved = quiet_fit(single, sp.vstack([X, sp.csr_array(document)], format="csr")).components_ - without
        largest = max(largest, np.linalg.norm(moved) if gaussian else np.abs(moved).sum())
    return bool(largest > bound * (1 + 1e-6)), f"a document moves the table by {largest / bound:.4g} of the bound"


def lone_unit(estimator):
    """Select the words of one unit of many words: without it there are none to name, so delta bounds the chance."""
    if hasattr(estimator, "get_support"):
        X = sp.csr_array(np.ones((1, LONE_WORDS), dtype=np.int32))
    else:
        X = [" ".join(f"word{number}" for number in range(LONE_WORDS))]
    named = sum(names_words(estimator, X) for _ in range(LONE_FITS))
    low = 0.0 if named == 0 else float(beta.ppf(1 - CERTAIN, named, LONE_FITS - named + 1))
    delta = estimator.privacy_cost().delta
    return low > delta, f"words named in {named} of {LONE_FITS} fits: probability >= {low:.3g}, delta is {delta:.3g}"


def names_words(selector, X):
    """Whether a fit names any word: selectors raise where they name none."""
    try:
        quiet_fit(selector, X)
    except ValueError as error:
        if "No word" not in str(error):
            raise
        return False
    return True


def quiet_fit(estimator, X):
    """Fit a copy; the finding says more than the warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return clone(estimator).fit(X)


# a delta at which one run can refute with certainty: the bound spends 2 n_canaries delta on it
SMALL = {"n_components": 2, "epsilon": 0.5, "delta": 1e-10, "max_iter": 3, "topic_word_prior": PRIOR}
SELECTION = {"epsilon": 1.0, "delta": 0.01, "max_words_per_unit": LONE_WORDS}
SELECTIONS = (
    "weighted_gaussian",
    "policy_gaussian",
    "policy_laplace",
    "sieve",
    "sips",
    "item_frequency",
    "item_frequency_published",
    "truncated_geometric",
)
EXACT = (exact_totals, planted_canary, many_canaries)
# estimator -> rows of (parameters, audits). Each option that affects privacy must stand in a row.
MECHANISMS = {
    "PrivateCGSLDA": [
        ({"mechanism": "gaussian", **SMALL}, (*EXACT, contribution)),
        ({"mechanism": "gaussian", "sampling_rate": 0.5, **SMALL}, EXACT),
        ({"mechanism": "laplace", **SMALL}, (*EXACT, contribution)),
        ({"mechanism": "inherent", **SMALL}, EXACT),
        ({"mechanism": "laplace-first", **SMALL}, EXACT),
        ({"mechanism": "laplace-every", **SMALL}, EXACT),
        ({"mechanism": "laplace-last", **SMALL}, EXACT),
    ],
    "DPCountVectorizer": [
        ({"mechanism": mechanism, **SELECTION}, (lone_unit,))
        for mechanism in ("weighted_gaussian", "item_frequency_published")  # the selector's own code
    ],
    "DPVocabularySelector": [({"mechanism": mechanism, **SELECTION}, (lone_unit,)) for mechanism in SELECTIONS],
}


def estimator_class(name):
    """Return an estimator by name, from the rooms that there are; None if there is none of that name."""
    house = Path(__file__).parents[1]
    for room in ROOMS:
        there = (house / room).is_dir() or (house / f"{room}.py").exists()
        if there and hasattr(found := import_module(f"skdplda.{room}"), name):
            return getattr(found, name)
    return None


def mechanism_audits(names=None):
    """Run the audits of every mechanism that the package offers.

    Parameters
    ----------
    names : sequence of str, default=None
        Estimators; None takes all.

    Returns
    -------
    findings : list of Finding
        A proven mechanism is broken by none, one with a failing claim by at least one. Statistical audits are wrong
        with probability 1e-6 each.

    Raises
    ------
    ValueError
        For an estimator without audits.

    Examples
    --------
    >>> from skdplda.audit import mechanism_audits
    >>> any(found.broken for found in mechanism_audits(["PrivateCGSLDA"]) if found.status == "proven")
    False
    """
    known = [name for name in MECHANISMS if estimator_class(name)]
    names = known if names is None else list(names)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"there are no audits of {', '.join(unknown)}; known are {', '.join(known)}.")
    findings = []
    for name in names:
        for parameters, checks in MECHANISMS[name]:
            estimator = estimator_class(name)(**parameters)
            status = str(estimator.privacy_cost().status)
            shown = ", ".join(
                f"{key}={value!r}" for key, value in parameters.items() if key not in {**SMALL, **SELECTION}
            )
            for check in checks:
                broken, evidence = check(estimator)
                findings.append(Finding(f"{name}({shown})", status, check.__name__, broken, evidence))
    return findings
