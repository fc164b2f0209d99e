"""What privacy costs in quality: held-out perplexity on 20 Newsgroups, and the share of the gain kept.

The posts lose their headers and a random tenth is the test set. A document is the set of its words among the
1,000 that most training posts have, English stop words apart, and has at least ten of them. (A vocabulary
chosen from the data is not private; it is the same for all models here.) Perplexity is by document
completion. The share is

    (unigram - private) / (unigram - non-private),

where the non-private model is the same estimator with epsilon=inf and the same seed. Seeds make the numbers
reproducible, so the private fits would warn; the split is the same for all seeds. Each private model is fitted without
public knowledge, with GloVe vectors as a `PublicPrior`, and with the same vectors given to the wrong words.

    python benchmarks/utility.py
"""

import math
import time
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
from corpora import path_of
from results import Table, run
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import VIPSLDA, PrivateCGSLDA, PublicPrior
from skdplda.datasets import frequent_words, load_20newsgroups
from skdplda.metrics import unigram_perplexity

LEAST_WORDS, TEST_SHARE, SPLIT_SEED = 10, 0.1, 0
PRIORS = ("none", "GloVe", "GloVe of other words")
MODELS = {"PrivateCGSLDA": PrivateCGSLDA, "VIPSLDA": VIPSLDA}


@dataclass(frozen=True)
class Settings:
    """Of a row."""

    model: str
    topics: int
    epsilon: float
    prior: str
    seed: int
    delta: float = 1e-5
    least_words: int = LEAST_WORDS
    test_share: float = TEST_SHARE
    split_seed: int = SPLIT_SEED


def cells():
    """Return what there is to measure."""
    found = product(range(3), MODELS, (10, 20), (0.5, 1.0, 2.0, 5.0, 10.0), PRIORS)
    return [Settings(name, n_topics, epsilon, kind, seed) for seed, name, n_topics, epsilon, kind in found]


@cache
def corpus(test_share, least_words, split_seed):
    """Return the presence bits of the training and test documents."""
    posts = load_20newsgroups("all", path=path_of("20news")).data
    order = np.random.default_rng(split_seed).permutation(len(posts))
    n_test = int(test_share * len(posts))
    train, test = ([posts[i] for i in part] for part in (order[n_test:], order[:n_test]))
    words = frequent_words(train, 1000, stop_words="english", binary=True)
    vectorizer = CountVectorizer(vocabulary=words, binary=True)
    X_train, X_test = vectorizer.transform(train), vectorizer.transform(test)
    X_train, X_test = (X[np.asarray(X.sum(axis=1)).ravel() >= least_words] for X in (X_train, X_test))
    return X_train, X_test, np.array(words, dtype=object)


@cache
def priors(split_seed, words):
    """Return the public knowledge of each row of the table, for the words of the corpus."""
    glove, words = np.load(path_of("glove")), np.array(words, dtype=object)
    names, vectors = str(glove["words"]).split("\n"), glove["vectors"].astype(np.float32)
    known = np.flatnonzero(np.isin(names, words))
    mixed = np.random.default_rng(split_seed).permutation(known)
    chosen = [names[i] for i in known]
    true, wrong = (PublicPrior.from_vectors((chosen, vectors[rows])).for_words(words) for rows in (known, mixed))
    return dict(zip(PRIORS, (None, true, wrong), strict=True))


@cache
def fit(s):
    """Return the held-out perplexity of one fit, and its seconds."""
    X_train, X_test, words = corpus(s.test_share, s.least_words, s.split_seed)
    prior = priors(s.split_seed, tuple(words))[s.prior]
    model = MODELS[s.model](s.topics, epsilon=s.epsilon, delta=s.delta, n_jobs=1, random_state=s.seed, prior=prior)
    begin = time.perf_counter()
    model.fit(X_train)
    return model.perplexity(X_test), time.perf_counter() - begin


def measure(s):
    """Return the values of a row."""
    exact, exact_seconds = fit(replace(s, epsilon=math.inf, prior="none"))
    private, seconds = fit(s)
    unigram = unigram_perplexity(*corpus(s.test_share, s.least_words, s.split_seed)[:2])
    return {
        "unigram": unigram,
        "non-private": exact,
        "private": private,
        "share": (unigram - private) / (unigram - exact),
        "non-private s": exact_seconds,
        "private s": seconds,
    }


def report(tables, folder):
    """Print the shares."""
    share = tables["utility"].groupby(["topics", "model", "epsilon", "prior"])["share"]
    print((100 * share.agg(["mean", "min", "max"])).assign(count=share.count()).round(1).to_string())


TABLES = [
    Table("utility", Settings, cells, measure, lambda s: ["20news", "glove"], timed=("non-private s", "private s")),
]
if __name__ == "__main__":
    run(TABLES, __doc__, report)
