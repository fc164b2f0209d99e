"""What one fit shows of the claimed epsilon, and how often one fit tells broken code from right code.

"bounds": each estimator as it comes, but for what the row says, at epsilon 1 and 5, delta 1e-5: the lower bounds of
`audit_one_fit`, 95 %, by attack and by what is taken for granted. Processor time is of one thread.
"variants": the broken forms of tests/broken_variants.py, 20 fits each, and as many right fits as are asked for, shared
out among the estimators and of fewer canaries; a fit is found, or is a false alarm, if the report is `violated`.
A row that is there, and of this code, is not measured again.

    python benchmarks/audits.py bounds
    python benchmarks/audits.py variants
"""

import argparse
import sys
import warnings
from functools import partial
from pathlib import Path

from results import Rows
from sklearn.base import clone

from skdplda import HDPLDA, VIPSLDA, DPVocabularySelector, EmbeddingTopics, PrivateCGSLDA
from skdplda.audit import audit_one_fit
from skdplda.models import PCTD

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
EPSILONS, BOUND_CANARIES, VARIANT_CANARIES, RIGHT_CANARIES = (1.0, 5.0), 50_000, 12_000, 4_000
RESULTS = Path(__file__).parent / "results"


def bounds(name, epsilon, n_canaries, seed):
    """Return one row an attack and bound, of one fit."""
    estimator = clone(ESTIMATORS[name]).set_params(epsilon=epsilon)
    report = audit_one_fit(estimator, n_canaries=n_canaries, random_state=seed, verbose=0)
    return [
        {
            "attack": line.attack,
            "bound": line.bound,
            "attainable": line.attainable,
            "measured": line.measured,
            "per cent": 100 * line.measured / epsilon,
            "guesses": line.n_guesses,
            "right": line.n_right,
            "violated": line.violated,
        }
        for line in report.lines
    ]


def variants(name, n_canaries, n_fits):
    """Return the number of a variant's fits that were called violated."""
    breaking, estimator = {**SOUND, **BROKEN}[name]
    found, shown = 0, []
    for _ in range(n_fits):
        with breaking():
            report = audit_one_fit(estimator, n_canaries=n_canaries, verbose=0)
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


def cells(n_canaries=None, n_broken=20, n_right=100):
    """Return what there is to measure: {name of the table: list of cells}."""
    each = -(-n_right // len(SOUND))
    of_code = [(name, RIGHT_CANARIES, each) for name in SOUND]
    of_code += [(name, VARIANT_CANARIES, n_broken) for name in BROKEN]
    return {
        "audit": [
            {"estimator": name, "epsilon": epsilon, "canaries": n_canaries or BOUND_CANARIES}
            for epsilon in EPSILONS
            for name in ESTIMATORS
        ],
        "audit_variants": [
            {"variant": name, "canaries": n_canaries or number, "fits": fits} for name, number, fits in of_code
        ],
    }


def main():
    """Measure what is missing."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("table", choices=("bounds", "variants"), nargs="?", default="bounds")
    parser.add_argument("--canaries", type=int, help="default: 50000 for bounds, 12000 and 4000 for variants")
    parser.add_argument("--fits", type=int, default=20, help="of each broken variant")
    parser.add_argument("--right", type=int, default=100, help="right fits in all")
    parser.add_argument("--seed", type=int, default=0, help="of the coins of bounds; noise is always fresh")
    parser.add_argument("--quick", action="store_true", help="2000 canaries, one fit each")
    parser.add_argument("--output", type=Path, default=RESULTS)
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if args.quick:
        args.canaries, args.fits, args.right = 2000, 1, 1
    name = "audit" if args.table == "bounds" else "audit_variants"
    planned = cells(args.canaries, args.fits, args.right)[name]
    rows = Rows(args.output / f"{name}.csv", list(planned[0]))
    for cell in planned:
        if name == "audit":
            work, estimator = partial(bounds, *cell.values(), args.seed), ESTIMATORS[cell["estimator"]]
        else:
            work, estimator = partial(variants, *cell.values()), {**SOUND, **BROKEN}[cell["variant"]][1]
        rows.measure(cell, work, [bounds if name == "audit" else variants, type(estimator)])


if __name__ == "__main__":
    main()
