"""What one fit shows of the claimed epsilon, and how often one fit tells broken code from right code.

"bounds": each estimator as it comes, but for two topics where the row says so, at epsilon 1 and 5, delta 1e-5: the
lower bounds of `audit_one_fit`, 95 %, by attack and by what is taken for granted. Processor time is of one thread.
"variants": the broken forms of tests/broken_variants.py, 20 fits each, and as many right fits as are asked for, shared
out among the estimators; a fit is found, or is a false alarm, if the report is `violated`.

    python benchmarks/audits.py bounds --output audit.csv
    python benchmarks/audits.py variants --output audit_variants.csv
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import pandas as pd

from skdplda import HDPLDA, VIPSLDA, DPVocabularySelector, PrivateCGSLDA
from skdplda.audit import audit_one_fit
from skdplda.models import PCTD

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from broken_variants import BROKEN, SOUND


def estimators(epsilon):
    """Yield name and estimator."""
    yield "PrivateCGSLDA", PrivateCGSLDA(epsilon=epsilon)
    yield "VIPSLDA", VIPSLDA(epsilon=epsilon)
    yield "PCTD", PCTD(epsilon=epsilon)
    yield "PCTD, 2 topics", PCTD(2, epsilon=epsilon)
    yield "HDPLDA", HDPLDA(epsilon=epsilon)
    yield "HDPLDA, 2 topics", HDPLDA(2, epsilon=epsilon)
    yield "DPVocabularySelector", DPVocabularySelector(epsilon=epsilon)


def bounds(n_canaries, seed):
    """Yield one row an estimator, epsilon, attack and bound."""
    for epsilon in (1.0, 5.0):
        for name, estimator in estimators(epsilon):
            begin = time.process_time()
            report = audit_one_fit(estimator, n_canaries=n_canaries, random_state=seed, verbose=0)
            seconds = time.process_time() - begin
            for line in report.lines:
                yield {
                    "estimator": name,
                    "epsilon": epsilon,
                    "attack": line.attack,
                    "bound": line.bound,
                    "measured": line.measured,
                    "per cent": 100 * line.measured / epsilon,
                    "guesses": line.n_guesses,
                    "right": line.n_right,
                    "violated": line.violated,
                    "canaries": n_canaries,
                    "seconds": seconds,
                }


def variants(n_canaries, n_broken, n_right):
    """Yield one row a variant, with the number of its fits that were called violated."""
    each = -(-n_right // len(SOUND))
    for name, (breaking, estimator) in {**SOUND, **BROKEN}.items():
        n_fits = n_broken if name in BROKEN else each
        found, shown = 0, []
        for _ in range(n_fits):
            with breaking():
                report = audit_one_fit(estimator, n_canaries=n_canaries, verbose=0)
            found += report.violated
            shown.append(report.lower_bound)
        yield {
            "variant": name,
            "estimator": repr(estimator),
            "fits": n_fits,
            "violated": found,
            "above the claim at 95 %": sum(bound > report.claim.epsilon for bound in shown),
            "claimed": report.claim.epsilon,
            "least measured": min(shown),
            "most measured": max(shown),
            "canaries": n_canaries,
        }


def main():
    """Print and save the table."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("table", choices=("bounds", "variants"), nargs="?", default="bounds")
    parser.add_argument("--canaries", type=int, help="default: 20000 for bounds, 12000 for variants")
    parser.add_argument("--fits", type=int, default=20, help="of each broken variant")
    parser.add_argument("--right", type=int, default=100, help="right fits in all")
    parser.add_argument("--seed", type=int, default=0, help="of the coins of bounds; noise is always fresh")
    parser.add_argument("--quick", action="store_true", help="2000 canaries, one fit each")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if args.quick:
        args.canaries, args.fits, args.right = 2000, 1, 1
    if args.table == "bounds":
        rows = bounds(args.canaries or 20_000, args.seed)
    else:
        rows = variants(args.canaries or 12_000, args.fits, args.right)
    table = []
    for row in rows:
        table.append(row)
        if args.output:
            pd.DataFrame(table).to_csv(args.output, index=False, float_format="%.4g")
    print(pd.DataFrame(table).to_string(float_format="{:.4g}".format))


if __name__ == "__main__":
    main()
