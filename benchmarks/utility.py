"""What privacy costs in quality: held-out perplexity on 20 Newsgroups, and the share of the gain kept.

The posts lose their headers and a random tenth is the test set. A document is the set of its words among the
1,000 that most training posts have, English stop words apart, and has at least ten of them. (A vocabulary
chosen from the data is not private; it is the same for all models here.) Perplexity is by document
completion. The share is

    (unigram - private) / (unigram - non-private),

where the non-private model is the same estimator with epsilon=inf and the same seed. Seeds make the numbers
reproducible, so the private fits would warn; the split is the same for all seeds. Each private model is fitted without
public knowledge, with GloVe vectors as a `PublicPrior`, and with the same vectors given to the wrong words.

Rows say which code they are of (`results.py`). With --output, rows that are there are kept if they are of this code, so
that the program goes on where it was stopped.

    python benchmarks/utility.py --data FOLDER --epsilon 0.5 1 2 5 10 --topics 10 20 --output utility.csv
"""

import argparse
import math
import os
import tempfile
import time
import warnings
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
from results import Rows, write
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import VIPSLDA, PrivateCGSLDA, PublicPrior
from skdplda.datasets import frequent_words, load_20newsgroups
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.metrics import unigram_perplexity

LEAST_WORDS, TEST_SHARE, SPLIT_SEED = 10, 0.1, 0
PRIORS = ("none", "GloVe", "GloVe of other words")
KEYS = ["model", "topics", "epsilon", "prior", "seed"]
MODELS = {"PrivateCGSLDA": PrivateCGSLDA, "VIPSLDA": VIPSLDA}


@cache
def corpus(data):
    """Return the presence bits of the training and test documents."""
    posts = load_20newsgroups("all", path=data / "20news_bydate_raw.jsonl.xz").data
    order = np.random.default_rng(SPLIT_SEED).permutation(len(posts))
    n_test = int(TEST_SHARE * len(posts))
    train, test = ([posts[i] for i in part] for part in (order[n_test:], order[:n_test]))
    words = frequent_words(train, 1000, stop_words="english", binary=True)
    vectorizer = CountVectorizer(vocabulary=words, binary=True)
    X_train, X_test = vectorizer.transform(train), vectorizer.transform(test)
    X_train, X_test = (X[np.asarray(X.sum(axis=1)).ravel() >= LEAST_WORDS] for X in (X_train, X_test))
    return X_train, X_test, np.array(words, dtype=object)


@cache
def priors(data):
    """Return the public knowledge of each row of the table, for the words of the corpus."""
    words = corpus(data)[-1]
    glove = np.load(data / "glove6B_100d_top60k_f16.npz")
    names, vectors = str(glove["words"]).split("\n"), glove["vectors"].astype(np.float32)
    known = np.flatnonzero(np.isin(names, words))
    mixed = np.random.default_rng(SPLIT_SEED).permutation(known)
    chosen = [names[i] for i in known]
    true, wrong = (PublicPrior.from_vectors((chosen, vectors[rows])).for_words(words) for rows in (known, mixed))
    return dict(zip(PRIORS, (None, true, wrong), strict=True))


@cache
def fit(estimator, data, n_topics, epsilon, seed, jobs, kind="none"):
    """Return the held-out perplexity of one fit, and its seconds."""
    (X_train, X_test, _), prior = corpus(data), priors(data)[kind]
    model = estimator(n_topics, epsilon=epsilon, delta=1e-5, n_jobs=jobs, random_state=seed, prior=prior)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        model.fit(X_train)
    return model.perplexity(X_test), time.perf_counter() - begin


def judge(estimator, data, cell, jobs):
    """Return the values of a row."""
    _, n_topics, epsilon, kind, seed = cell.values()
    exact, exact_seconds = fit(estimator, data, n_topics, math.inf, seed, jobs)
    private, seconds = fit(estimator, data, n_topics, epsilon, seed, jobs, kind)
    unigram = unigram_perplexity(*corpus(data)[:2])
    return {
        "unigram": unigram,
        "non-private": exact,
        "private": private,
        "share": (unigram - private) / (unigram - exact),
        "non-private s": exact_seconds,
        "private s": seconds,
    }


def cells(seeds=(0, 1, 2), models=tuple(MODELS), topics=(10, 20), epsilons=(0.5, 1.0, 2.0, 5.0, 10.0)):
    """Return what there is to measure: {name of the table: list of cells}."""
    found = [
        dict(zip(KEYS, (name, n_topics, epsilon, kind, seed), strict=True))
        for seed, name, n_topics in product(seeds, models, topics)
        for epsilon, kind in product(epsilons, PRIORS)
    ]
    return {"utility": found}


def main():
    """Print and save the table."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[5.0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--topics", type=int, nargs="+", default=[10])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")

    planned = cells(arguments.seeds, arguments.models, arguments.topics, arguments.epsilon)["utility"]
    rows = Rows(arguments.output or Path(tempfile.mkdtemp(), "utility.csv"), KEYS)
    for cell in planned:
        estimator = MODELS[cell["model"]]
        work = partial(judge, estimator, arguments.data, cell, arguments.jobs)
        rows.measure(cell, work, [judge, estimator], ["20news", "glove"])
    table = rows.table.sort_values(["topics", "model", "epsilon", "prior", "seed"], kind="stable")
    write(table, rows.path)
    share = table.groupby(KEYS[:-1])["share"].agg(["mean", "min", "max", "count"])
    print((100 * share).assign(count=share["count"]).to_string(float_format="{:.1f}".format))


if __name__ == "__main__":
    main()
