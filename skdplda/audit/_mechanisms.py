"""Every mechanism that the package offers, and the audits it must pass or is known to fail."""

import warnings
from importlib import import_module
from typing import NamedTuple

from skdplda._types import Sequence
from skdplda.audit._canaries import claim_of
from skdplda.audit._checks import (
    PRIOR,
    SINGLE_WORDS,
    absent_words,
    accounted,
    contribution,
    exact_totals,
    many_canaries,
    single_unit_delta,
)
from skdplda.audit._released_checks import (
    REPORT_WORDS,
    drawn_reports,
    drawn_topics,
    exact_moves,
    replaced_token,
    report_law,
)
from skdplda.local import LocalRandomizer
from skdplda.models import BaseRoundsModel, PrivateCGSLDA
from skdplda.privacy import MECHANISMS as NOISES
from skdplda.privacy import PartitionPlan, is_of_package, mechanisms_of
from skdplda.published import CLAIMED_ACCOUNTINGS

PACKAGES = ("models", "vocabulary", "model_selection", "published")  # where estimators live


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


# a delta at which one run can refute with certainty: the bound spends 2 n_canaries delta on it
SMALL = {"n_components": 2, "epsilon": 0.5, "delta": 1e-10, "max_iter": 3, "topic_word_prior": PRIOR}
SELECTION = {"epsilon": 1.0, "delta": 0.01, "max_words_per_unit": SINGLE_WORDS}
SELECTIONS = [  # every rule, and its every noise
    {"method": rule, **({"mechanism": noise} if noise else {}), **SELECTION}
    for rule in PartitionPlan.METHODS
    for noise in (None, *mechanisms_of(rule)[1:])
]
ROUNDS = {**SMALL, "max_norm": 5.0}
SAMPLED = {"sampling_rate": 0.5, **ROUNDS}
FEW = {"n_components": 2, "max_iter": 3}
TOKENS = {**FEW, "delta": 1e-10}
SEARCH = {
    "estimator": PrivateCGSLDA(max_iter=3, topic_word_prior=PRIOR),
    "param_grid": {"n_components": [1, 2]},
    "mean_trials": 2.0,
    "epsilon": 0.5,
    "delta": 1e-10,
}
SWEEP = {"noise_epsilon": 1.0, "inherent_epsilon": 1.0, "max_iter": 10}
COMMON = [pair for sizes in (SELECTION, ROUNDS, TOKENS, SEARCH) for pair in sizes.items()]  # findings do not name them
EXACT = (exact_totals, many_canaries)
DELAYED = (exact_moves, many_canaries, replaced_token, drawn_topics)
REPORTS = (report_law, drawn_reports)
DEFAULT = [({key: SMALL[key] for key in ("n_components", "epsilon", "delta", "max_iter")}, (*EXACT, contribution))]
# estimator -> rows of (parameters, audits). Each option that affects privacy must be in a row.
MECHANISMS: dict = {
    "PrivateCGSLDA": [
        *(({"mechanism": name, **SMALL}, (*EXACT, contribution)) for name in NOISES),
        *(
            ({"mechanism": name, "sampling_rate": 0.5, **SMALL}, (*EXACT, contribution))
            for name in NOISES
            if NOISES[name].is_sampled
        ),
    ],
    "HDPLDA": [
        ({"epsilon": 3.0, **TOKENS}, (exact_moves, many_canaries)),
        *(({"mechanism": name, "epsilon": 3.0, **TOKENS}, (exact_moves, many_canaries)) for name in NOISES),
        ({"epsilon": 3.0, "count_clip": 3.0, **TOKENS, "delta": 0.0}, (exact_moves, many_canaries)),
        ({**TOKENS, **SWEEP}, DELAYED),
        ({"count_clip": 3.0, **TOKENS, **SWEEP}, DELAYED),
    ],
    "LocalPrivateLDA": [
        *(
            ({**FEW, "input": kind, "randomizer": LocalRandomizer(1.0, **law)}, REPORTS)
            for kind in ("counts", "reports")
            for law in (
                {"mechanism": "symmetric"},
                {"mechanism": "symmetric", "max_words_per_document": 2},
                {"mechanism": "asymmetric", "reports_per_user": 2},
                {"mechanism": "asymmetric", "max_words_per_document": 1},
            )
        ),
        *(
            ({**FEW, "reconstruction": how, "randomizer": randomizer}, (*REPORTS, many_canaries))
            for how, law in (("likelihood", "symmetric"), ("bayes", "asymmetric"), ("moment", "symmetric"))
            for randomizer in [LocalRandomizer(0.25, mechanism=law, max_words_per_document=1)]
        ),
        *(
            ({**FEW, "epsilon": 2.0, "epsilon_unit": unit, "randomizer": randomizer}, REPORTS)
            for unit, law in (("bit", "symmetric"), ("document", "asymmetric"))
            for randomizer in [LocalRandomizer(mechanism=law, max_words_per_document=2, reports_per_user=2)]
        ),
    ],
    "PCTD": [
        ({"noise_on": "statistics", **SMALL}, (*EXACT, absent_words, contribution, accounted)),
        ({"noise_on": "statistics", "sampling_rate": 0.5, **SMALL}, (*EXACT, accounted)),
        ({"noise_on": "units", **SMALL}, (*EXACT, accounted)),
    ],
    "VIPSLDA": [
        *(({"learning_method": method, **ROUNDS}, (*EXACT, contribution, accounted)) for method in ("batch", "online")),
        *(({"learning_method": method, **SAMPLED}, (many_canaries, accounted)) for method in ("batch", "online")),
    ],
    **{
        name: [({key: value for key, value in SMALL.items() if key not in missing}, EXACT)]
        for name, missing in {
            "InherentPrivacyLDA": ("delta", "epsilon"),
            "CDPLDA": ("delta",),
            "CDPLDAPlus": ("delta",),
            "PriTopLDA": ("delta",),
        }.items()
    },
    "PublishedHDPLDA": [
        ({"epsilon": 3.0, **FEW}, (exact_moves, many_canaries)),
        ({**FEW, **SWEEP}, (exact_moves, many_canaries)),
        ({"noise_on": "copy", **FEW, **SWEEP}, EXACT),
    ],
    "PublishedPCTD": [
        ({"noise_support": "all", **SMALL}, (*EXACT, absent_words, accounted)),
        ({"noise_support": "observed", **SMALL}, (*EXACT, absent_words)),
    ],
    "PublishedVIPSLDA": [
        *(({"accounting": name, **ROUNDS}, (*EXACT, contribution, accounted)) for name in CLAIMED_ACCOUNTINGS),
        *(({"accounting": name, **SAMPLED}, (many_canaries, accounted)) for name in CLAIMED_ACCOUNTINGS),
    ],
    "PublishedItemFrequencySelector": [(SELECTION, (single_unit_delta,))],
    "EmbeddingTopics": DEFAULT,
    "PrivateSearchCV": [({"shape": 1.0, **SEARCH}, EXACT), ({"shape": 0.0, **SEARCH}, (exact_totals, many_canaries))],
    "DPCountVectorizer": [({"method": "weighted_gaussian", **SELECTION}, (single_unit_delta,))],
    "DPVocabularySelector": [(parameters, (single_unit_delta,)) for parameters in SELECTIONS],
}


def audited_estimators():
    """Return {name: class} of what is audited: the classes of the table, and every model of private rounds."""
    found = {name: kind for name in MECHANISMS for kind in [_public_class(name)] if kind is not None}
    pending = [BaseRoundsModel]
    while pending:
        for kind in pending.pop().__subclasses__():
            pending.append(kind)
            found.setdefault(kind.__name__, kind)
    return found


def _public_class(name):
    for package in PACKAGES:
        kind = getattr(import_module(f"skdplda.{package}"), name, None)
        if kind is not None:
            return kind
    return None


def rows_of(kind):
    """Return the rows of an estimator class: those of the table, or the ones that every model of rounds must pass."""
    return MECHANISMS.get(kind.__name__, DEFAULT)


def mechanism_audits(names: Sequence[str] | None = None) -> list[Finding]:
    """Run the audits of every mechanism that the package offers.

    An estimator on `skdplda.models.BaseRoundsModel` that is defined elsewhere is audited by its name, once it was
    imported.

    Parameters
    ----------
    names : sequence of str, default=None
        Class names of estimators; None takes those of the package.

    Returns
    -------
    findings : list of Finding
        A proven mechanism is broken by none, one with a failing claim by at least one. A claim whose proof fails may
        be true all the same: then "accounted" finds what the noise is worth, and nothing breaks it. Statistical audits
        are wrong with probability 1e-6 each.

    Raises
    ------
    ValueError
        For an estimator without audits.

    Examples
    --------
    >>> from skdplda.audit import mechanism_audits
    >>> any(found.broken for found in mechanism_audits(["DPCountVectorizer"]) if found.status == "proven")
    False
    """
    known = audited_estimators()
    names = [name for name, kind in known.items() if is_of_package(kind)] if names is None else list(names)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"there are no audits of {', '.join(unknown)}; known are {', '.join(known)}.")
    findings = []
    for name in names:
        for parameters, checks in rows_of(known[name]):
            estimator = known[name](**parameters)
            status = str(claim_of(estimator, REPORT_WORDS).status)
            shown = ", ".join(f"{key}={value!r}" for key, value in parameters.items() if (key, value) not in COMMON)
            for check in checks:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # advice on utility, which is not the question here
                    broken, evidence = check(estimator)
                findings.append(Finding(f"{name}({shown})", status, check.__name__, broken, evidence))
    return findings
