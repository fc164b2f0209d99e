"""Attacks with few shadow models on TweetRumors: members found at 0.1 % false alarms, by number of shadow models.

Two statistics stand beside those of `document_statistics`. "mean_topic" is the log-likelihood of a document under the
mean of all topics: with few models, its best mixture of topics is the noisier number. "shared_words" is that of
its rare words, each by one over the number of documents that have it; words that one document alone has are left out,
since the vocabulary names these documents by itself. All were chosen on the first repetition.

The corpus, the model (scikit-learn's LatentDirichletAllocation, 5 topics) and the targets' halves are those of
benchmarks/reproduce/attacks_manzonelli.py, whose table has LiRA with 128 shadow models. Intervals are those over
repetitions. Shadow models are kept in --directory: the same command goes on, and one of more models takes those of
fewer.

    python benchmarks/few_shadows.py --directory shadows --output benchmarks/results/attacks_few_shadows.csv
"""

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from results import save
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

from skdplda.attacks import ExperimentResults, bayesian_ratio_attack, membership_experiment

FPR = 0.001
LEAST = 1e-12  # of a probability in a logarithm


def mean_topic(topic_word, X):
    """Return documents' log-likelihoods under the mean of all topics."""
    return X @ np.log(topic_word.mean(axis=0) + LEAST)


def shared_words(topic_word, X):
    """Return weighted log-likelihoods of documents' words that others have, too; rare words weigh more."""
    documents = np.bincount(X.indices, minlength=X.shape[1])
    weights = np.where(documents > 1, 1 / np.maximum(documents, 1), 0)
    return (X > 0) @ (weights * np.log(topic_word.mean(axis=0) + LEAST))


STATISTICS = ("zeta", "negative_entropy", mean_topic, shared_words)
TOGETHER = (("zeta", mean_topic), ("zeta", mean_topic, shared_words))  # as if they were independent


def judge(X, n_models, repetitions, directory):
    """Return the results of all attacks."""
    together = []

    def callback(members, documents, table, shadows):
        asked = (table, documents, members, shadows)
        found = [bayesian_ratio_attack(*asked, statistics=names) for names in TOGETHER]
        together.append({result.name: result for result in found})

    results = membership_experiment(
        LatentDirichletAllocation(5, random_state=0),
        X,
        n_models=n_models,
        repetitions=repetitions,
        statistics=STATISTICS,
        attacks=("online", "offline", "bayesian", "relative"),
        proportions="maximum",
        directory=directory,
        random_state=0,
        callback=callback,
        verbose=sys.stderr.isatty(),
    )
    return ExperimentResults([{**run, **more} for run, more in zip(results.runs, together, strict=True)])


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
        results = judge(X, n_models, args.repetitions, args.directory / f"tweets_5_{X.shape[0]}")
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
        save(table, args.output, [judge], ["tweets"])


if __name__ == "__main__":
    main()
