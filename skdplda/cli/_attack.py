"""The commands `skdplda attack` and `skdplda audit`: what leaks from a model of one's own corpus."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

from skdplda._files import DAMAGE, read_array
from skdplda.cli._corpus import add_corpus, add_vocabulary, read_corpus
from skdplda.cli._cost import add_price
from skdplda.cli._ledger import add_charge, charging
from skdplda.cli._models import add_jobs, make_model
from skdplda.cli._numbers import seed, whole
from skdplda.exceptions import PrivacyLeakWarning

RATE = 0.001  # false-positive rate of the printed table, as in Carlini et al. (2022)
REFUTED = 1  # exit code of an audit whose bound exceeds the claim


NUMBER = {"metavar": "N", "type": whole}


def add_attack(attack):
    """Add the arguments of `attack`."""
    _add_model(attack, required=False)
    attack.add_argument("--shadow-models", default=64, help="default: 64; at least 4", **NUMBER)
    attack.add_argument("--repetitions", default=1, help="targets, pooled (default: 1)", **NUMBER)
    attack.add_argument(
        "--non-private",
        action="store_true",
        help="attack scikit-learn's LatentDirichletAllocation instead; needs no epsilon",
    )
    attack.add_argument("--directory", metavar="DIR", help="resume from, and save to, DIR; as private as the data")
    attack.add_argument("--seed", type=seed, default=0, metavar="N", help="of the halves (default: 0)")
    add_charge(attack)
    attack.add_argument("--figure", metavar="FILE", help="draw the ROC curves into a .png or .pdf")
    attack.set_defaults(run=_attack)


def add_audit(audit):
    """Add the arguments of `audit`."""
    _add_model(audit, required=False)
    audit.add_argument(
        "--method",
        choices=("one-fit", "one-run", "repeated"),
        default="one-fit",
        help="one-fit, which knows the noise of each release (default), or attacks on the model alone",
    )
    audit.add_argument("--quick", action="store_true", help="one fit and no canaries: look for half of the documents")
    audit.add_argument(
        "--claim", type=float, nargs=2, metavar=("E", "D"), help="epsilon and delta claimed of --topic-matrix"
    )
    audit.add_argument("--topic-matrix", metavar="FILE", help="a fitted model: topics x words, as .npy or .csv")
    audit.add_argument(
        "--members", metavar="FILE", help="one line a document: 1 if it was in the training data, else 0"
    )
    audit.add_argument("--canaries", help="of one-fit (default: 50000) and one-run (default: 1000)", **NUMBER)
    audit.add_argument("--fits", default=200, help="of repeated (default: 200)", **NUMBER)
    add_charge(audit)
    audit.add_argument("--confidence", type=float, default=0.95, metavar="C", help="of the bound (default: 0.95)")
    audit.set_defaults(run=_audit)


def _add_model(command, required=True):
    """Add the options of the corpus and of the model."""
    add_corpus(command)
    add_vocabulary(command)
    command.add_argument("--topics", type=whole, default=10, metavar="K", help="number of topics (default: 10)")
    add_price(command, required)
    add_jobs(command)
    command.add_argument("--json", action="store_true", help="print JSON")


def _attack(args):
    from sklearn.decomposition import LatentDirichletAllocation

    from skdplda.attacks import membership_experiment

    if args.figure:
        _check_figure(Path(args.figure))
    if args.non_private:
        estimator, guarantee = LatentDirichletAllocation(args.topics, random_state=0), None
    elif args.epsilon is None:
        raise ValueError("--epsilon is needed; or attack a model without privacy by --non-private.")
    else:
        estimator, guarantee = make_model(args, n_components=args.topics)
    fits = 0 if guarantee is None or args.directory is not None else 1 + args.shadow_models
    with charging(args, guarantee, times=fits * args.repetitions):
        X, *_ = read_corpus(args)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)  # one for each shadow model
            results = membership_experiment(
                estimator,
                X,
                n_models=args.shadow_models,
                repetitions=args.repetitions,
                vocabulary="given",
                directory=args.directory,
                n_jobs=args.jobs,
                random_state=args.seed,
                verbose=sys.stderr.isatty(),
            )
    rows = {name: result.tpr_at(RATE) for name, result in results.items()}
    if args.json:
        report = {
            name: {"auc": results[name].auc, "tpr": at.rate, "low": at.low, "high": at.high, "fpr": at.fpr}
            for name, at in rows.items()
        }
        claim = None if guarantee is None else json.loads(guarantee.to_json())
        print(json.dumps({"at_fpr": RATE, "attacks": report, "privacy": claim}, indent=2))
    else:
        _print_rates(results, rows, guarantee)
    if args.figure:
        from skdplda.plots import AttackRocDisplay

        display = AttackRocDisplay(results=results).plot(fpr=RATE)
        display.figure_.savefig(args.figure, dpi=150)


def _check_figure(path):
    """Refuse a file that could not be written, before hours of attack."""
    if path.suffix not in (".png", ".pdf"):
        raise ValueError(f"--figure: must end in .png or .pdf; got {str(path)!r}.")
    if not path.parent.is_dir():
        raise ValueError(f"--figure: there is no folder {str(path.parent)!r}.")


def _print_rates(results, rows, guarantee):
    width = max(map(len, rows))
    print(f"{'attack':{width}}    AUC   members found at {RATE:.1%} false alarms (95 % interval)")
    for name, at in rows.items():
        print(f"{name:{width}}  {results[name].auc:.3f}   {at.rate:7.2%}   ({at.low:.2%} to {at.high:.2%})")
    others = int((~results[name].labels).sum())
    if others < 1 / RATE:
        print(f"\nWith {others} documents outside the training data, {RATE:.1%} means that there was no false alarm.")
    if guarantee is not None:
        print(f"\nThe target claims {guarantee!r}." + (f"\n{guarantee.reason}" if guarantee.reason else ""))


def _audit(args):
    given = [args.claim is not None, args.topic_matrix is not None, args.members is not None]
    if any(given):
        if not all(given):
            raise ValueError("--claim, --topic-matrix and --members are for a fitted model, and go together.")
        if args.ledger is not None:
            raise ValueError("--ledger is charged for fits; the audit of --topic-matrix makes none.")
        from skdplda.audit import audit

        X, *_ = read_corpus(args)
        members = _read_numbers("--members", args.members) > 0
        table = _read_numbers("--topic-matrix", args.topic_matrix)
        report = audit(
            table, X, claim=tuple(args.claim), members=members.ravel(), confidence=args.confidence, verbose=0
        )
        print(json.dumps(report.to_dict(), indent=2) if args.json else report)
        return REFUTED if report.violated else 0
    if args.epsilon is None:
        raise ValueError("--epsilon is needed; or audit a fitted model by --claim, --topic-matrix and --members.")
    estimator, guarantee = make_model(args, n_components=args.topics)
    repeated = args.method == "repeated" and not args.quick
    with charging(args, guarantee, times=args.fits if repeated else 1):
        return _audit_fits(args, estimator)


def _audit_fits(args, estimator):
    """Fit, print the report and return the exit code."""
    from skdplda.audit import audit, audit_one_fit, quick_audit

    X, *_ = read_corpus(args)
    progress = sys.stderr.isatty() and not args.json
    if args.quick:
        report = quick_audit(estimator, X, confidence=args.confidence, verbose=progress)
    elif args.method == "one-fit":
        number = {} if args.canaries is None else {"n_canaries": args.canaries}
        report = audit_one_fit(estimator, X, confidence=args.confidence, verbose=progress, **number)
    else:
        report = audit(
            estimator,
            X,
            method=args.method,
            n_canaries=1000 if args.canaries is None else args.canaries,
            n_fits=args.fits,
            confidence=args.confidence,
            n_jobs=args.jobs,
            verbose=2 * progress,
        )
    if not progress:  # which prints the report, too
        print(json.dumps(report.to_dict(), indent=2) if args.json else report)
    return REFUTED if report.violated else 0


def _read_numbers(option, path):
    """Return the numbers of a .npy file, or of a text of rows."""
    try:
        if Path(path).suffix == ".npy":
            return read_array(Path(path).read_bytes())
        return np.loadtxt(path, delimiter=",", ndmin=2)
    except DAMAGE as error:
        raise ValueError(f"{option}: {path!r} cannot be read: {error}.") from None
