"""Attacks with few shadow models on TweetRumors: members found at 0.1 % false alarms, by number of shadow models.

The corpus, the model (scikit-learn's LatentDirichletAllocation, 5 topics) and the targets' halves are those of
benchmarks/reproduce/attacks_manzonelli.py, whose table has LiRA with 128 shadow models. Intervals are those over
repetitions. Shadow models are kept in --directory: the same command goes on, and one of more models takes those of
fewer.

    python benchmarks/few_shadows.py --models 16 --repetitions 5 --directory shadows --output attacks_few_shadows.csv
"""

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

from skdplda.attacks import membership_experiment

FPR = 0.001
STATISTICS = ("zeta", "negative_entropy", "logit_max", "std")


def main():
    """Print and save the table."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--models", type=int, nargs="+", default=[16])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--quick", action="store_true", help="300 documents, 4 models, 2 repetitions")
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    if "SKDPLDA_DATA" not in os.environ:
        sys.exit("Set SKDPLDA_DATA to the folder of the corpora.")
    if args.quick:
        args.models, args.repetitions = [4], 2
    file = Path(os.environ["SKDPLDA_DATA"]) / "pheme_clean.json"
    texts = json.loads(file.read_text(encoding="utf-8"))["text"][: 300 if args.quick else None]
    X = sp.csr_array(CountVectorizer(token_pattern=r"\S+").fit_transform(texts).astype(np.int32))
    X = X[np.flatnonzero(np.asarray(X.sum(axis=1)).ravel() > 0)]
    rows = []
    for n_models in args.models:
        results = membership_experiment(
            LatentDirichletAllocation(5, random_state=0),
            X,
            n_models=n_models,
            repetitions=args.repetitions,
            statistics=STATISTICS,
            attacks=("online", "offline", "bayesian", "relative"),
            proportions="maximum",
            directory=args.directory / f"tweets_5_{X.shape[0]}",
            random_state=0,
            verbose=sys.stderr.isatty(),
        )
        for name in results:
            at = results.tpr_at(name, FPR)
            each = [run[name].tpr_at(FPR).rate for run in results.runs]
            rows.append(
                {
                    "attack": name,
                    "models": n_models,
                    "repetitions": args.repetitions,
                    "TPR %": 100 * at.rate,
                    "low %": 100 * at.low,
                    "high %": 100 * at.high,
                    "least %": 100 * min(each),
                    "most %": 100 * max(each),
                    "AUC": results[name].auc,
                }
            )
    table = pd.DataFrame(rows)
    print(table.to_string(index=False, float_format="{:.3f}".format))
    if args.output:
        table.to_csv(args.output, index=False, float_format="%.4f")


if __name__ == "__main__":
    main()
