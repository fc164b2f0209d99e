"""What one fit shows of the claimed epsilon, and how often one fit tells broken code from right code.

"bounds": each estimator as it comes, but for what the row says, at epsilon 1 and 5, delta 1e-5: the lower bounds of
`audit_one_fit`, 95 %, by attack and by what is taken for granted. Processor time is of one thread.
"variants": the broken forms of tests/broken_variants.py, 20 fits each, and as many right fits as are asked for, shared
out among the estimators and of fewer canaries; a fit is found, or is a false alarm, if the report is `violated`.

    python benchmarks/audits.py audit             # bounds
    python benchmarks/audits.py audit_variants
"""

import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from results import Table, run
from sklearn.base import clone

from skdplda import HDPLDA, PCTD, VIPSLDA, DPVocabularySelector, EmbeddingTopics, PrivateCGSLDA
from skdplda.audit import audit_one_fit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from broken_variants import BROKEN, SOUND

ESTIMATORS = {
    "PrivateCGSLDA": PrivateCGSLDA(),
    "VIPSLDA": VIPSLDA(),
    "PCTD": PCTD(),
    "PCTD, 2 topics": PCTD(2),
    "HDPLDA": HDPLDA(),
    "HDPLDA, 2 topics": HDPLDA(2),
    "HDPLDA, 2 topics, 5 sweeps, tables 0.75": HDPLDA(2, max_iter=5, noise_share=0.75),
    "DPVocabularySelector": DPVocabularySelector(),
    "EmbeddingTopics": EmbeddingTopics(),
}
RIGHT = 100  # right fits in all


@dataclass(frozen=True)
class Bound:
    """Of the rows of one fit."""

    estimator: str
    epsilon: float
    canaries: int = 50_000
    seed: int = 0


@dataclass(frozen=True)
class Variant:
    """Of the fits of one variant; they have no seed."""

    variant: str
    canaries: int = 12_000
    fits: int = 20


def bound_cells():
    """Return what there is to measure."""
    return [Bound(name, epsilon) for epsilon, name in product((1.0, 5.0), ESTIMATORS)]


def variant_cells():
    """Return what there is to measure: right fits shared out among the sound ones, and of fewer canaries."""
    return [Variant(name, 4_000, -(-RIGHT // len(SOUND))) for name in SOUND] + [Variant(name) for name in BROKEN]


def bounds(s):
    """Return one row an attack and bound, of one fit."""
    estimator = clone(ESTIMATORS[s.estimator]).set_params(epsilon=s.epsilon)
    report = audit_one_fit(estimator, n_canaries=s.canaries, random_state=s.seed, verbose=0)
    return [
        {
            "attack": line.attack,
            "bound": line.bound,
            "attainable": line.attainable,
            "measured": line.measured,
            "per cent": 100 * line.measured / s.epsilon,
            "guesses": line.n_guesses,
            "right": line.n_right,
            "violated": line.violated,
        }
        for line in report.lines
    ]


def variants(s):
    """Return the number of a variant's fits that were called violated."""
    breaking, estimator = {**SOUND, **BROKEN}[s.variant]
    found, shown = 0, []
    for _ in range(s.fits):
        with breaking():
            report = audit_one_fit(estimator, n_canaries=s.canaries, verbose=0)
        found += report.violated
        shown.append(report.lower_bound)
    return {
        "estimator": repr(estimator),
        "violated": found,
        "above the claim at 95 %": sum(bound > report.claim.epsilon for bound in shown),
        "claimed": report.claim.epsilon,
        "least measured": min(shown),
        "most measured": max(shown),
    }


TABLES = [
    Table("audit", Bound, bound_cells, bounds),
    Table("audit_variants", Variant, variant_cells, variants, timed=True),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
