"""What the package makes of small corpora that are made up, as letters: where they differ, it learns otherwise.

    python benchmarks/trials.py     # the letters of each trial, and its seconds

The fingerprints of `results.py` have these letters in place of the source of estimators, measures and accounting. A
faster kernel, another error or a base class that was divided leave the letters as they are, and with them the stored
results. A trial says nothing of an option that it does not set. Another processor or numpy, whose logarithms differ in
their last bit, is not another estimator. So numbers are compared to five digits; and since one such bit would give a
fit other noise, and other draws, a trial has noise of the round's number alone, and coarse tables of draws.
"""

import argparse
import hashlib
import math
import time
import warnings
from functools import cache
from unittest.mock import patch

import numpy as np

from skdplda import (
    HDPLDA,
    PCTD,
    VIPSLDA,
    DPCountVectorizer,
    DPVocabularySelector,
    EmbeddingTopics,
    LocalPrivateLDA,
    PrivateCGSLDA,
    PublicPrior,
    metrics,
    privacy,
)
from skdplda._kernels._released import released_sweep
from skdplda.datasets import make_lda_corpus
from skdplda.local import LocalRandomizer
from skdplda.models import _hdp_sampler
from skdplda.semantics import word_similarity

DIGITS = 5
UNEVEN = math.pi / 3  # makes numbers such as 1/256, which have no sixth digit to round, rare
NOTHING = 1e-9  # of the largest number: what is left where equal numbers were subtracted
COARSE = 2**12  # of 2**30: what is left of the tables that topics are drawn from
SEEN = 20  # documents that a fitted model is shown
N_WORDS = 80
INFER = {"doc_topic_prior": "infer", "topic_word_prior": "infer"}
NO_NOISE = {"epsilon": math.inf}


@cache
def corpus(n_documents=400, n_words=N_WORDS, length=6):
    """Return counts: of short texts, unless told otherwise."""
    return make_lda_corpus(n_documents, n_words, 4, mean_length=length, random_state=0).data


def long_texts():
    """Return counts of few, long documents over more words."""
    return corpus(120, 300, 150)


MANY = {"n_components": 20, "epsilon": 2.0}  # more topics than the signal allows to be kept apart


def users():
    """Return who wrote each short text: three each."""
    return np.arange(corpus().shape[0]) // 3


def vectors():
    """Return vectors of the words of short texts."""
    return np.random.default_rng(0).standard_normal((N_WORDS, 8))


def prior():
    """Return public knowledge of the words of short texts."""
    words = [f"w{i}" for i in range(N_WORDS)]
    counts = np.arange(1, N_WORDS + 1)
    public = PublicPrior.from_vectors(dict(zip(words, vectors(), strict=True)))
    public += PublicPrior.from_frequencies(dict(zip(words, counts.tolist(), strict=True)))
    return public.for_words(words)


def learned(model, X, **more):
    """Yield what a model has learned, and what it says of documents."""
    model.fit(X, **more)
    yield model.topic_word_
    yield model.transform(X[:SEEN])


def fits(make, *others):
    """Yield what an estimator learns with much, little and no noise, and with other (options, X, arguments of fit)."""
    for epsilon in (0.5, 2.0, math.inf):
        for X, n_topics in ((corpus(), 3), (long_texts(), 12)):
            yield from learned(make(n_topics, epsilon=epsilon, random_state=0), X)
    yield from learned(make(10, epsilon=1.0, random_state=0), corpus(2000, 1000, 25))
    for options, X, more in others:
        yield from learned(make(**{"n_components": 3, "epsilon": 1.0, "random_state": 0} | options), X, **more)


def gibbs():
    """Collapsed Gibbs sampling: users, a public prior, a sample of documents, inferred priors."""
    X = corpus()
    return fits(
        PrivateCGSLDA,
        (MANY, corpus(2000, 1000, 25), {}),
        ({}, X, {"groups": users()}),
        ({"prior": prior()}, X, {}),
        ({"sampling_rate": 0.3}, X, {}),
        ({"mechanism": "laplace"}, X, {}),
        (NO_NOISE | INFER, X, {}),
    )


def many_topics():
    """Collapsed Gibbs sampling of more than 100 topics without noise: a number for each, and lists."""
    for n_topics in (120, 1600):
        options = {"max_iter": 12, "doc_topic_prior": 0.1, "random_state": 0}
        yield from learned(PrivateCGSLDA(n_topics, **NO_NOISE, **options), long_texts())


def variational():
    """Variational inference: users, a public prior, other accountings, inferred priors, mini-batches."""
    X = corpus()
    online = {"learning_method": "online", "batch_size": 50, "nominal_size": X.shape[0]}
    return fits(
        VIPSLDA,
        (MANY, corpus(2000, 1000, 25), {}),
        ({}, X, {"groups": users()}),
        ({"prior": prior()}, X, {}),
        *(({"accounting": accounting}, X, {}) for accounting in ("zcdp", "advanced")),
        (NO_NOISE | INFER, X, {}),
        (online, X, {}),
        (online | NO_NOISE, X, {}),
        ({"sampling_rate": 0.3}, X, {}),
    )


def base():
    """The base class of the estimators of rounds, by two of them."""
    return ([int(letter, 16) for letter in letters(name)] for name in ("PrivateCGSLDA", "VIPSLDA"))


def hybrid():
    """Hybrid private sampling: both forms of the table."""
    return fits(HDPLDA, *(({"table": table, "max_iter": 10}, corpus(), {}) for table in ("delayed", "sequential")))


def local():
    """Randomized reports: each reconstruction, asymmetric coins, batches."""
    X = corpus()
    options = [{"reconstruction": name} for name in ("bayes", "moment")]
    randomizer = LocalRandomizer(2.0, mechanism="asymmetric", random_state=0)
    options += [{"epsilon": None, "randomizer": randomizer}]
    yield from fits(LocalPrivateLDA, *((one | {"max_iter": 20}, X, {}) for one in options))
    yield LocalPrivateLDA(3, epsilon=2.0, random_state=0).partial_fit(X[:200]).partial_fit(X[200:]).topic_word_


def semantic():
    """Semantic units: similar words, noise on units."""
    X = corpus()
    similar = {"similarity": round(word_similarity(vectors(), vectors()), 6)}
    units = [similar | {"noise": noise} for noise in ("statistics", "units")]
    return fits(PCTD, *((one, X, {}) for one in units), ({"prior": prior()}, X, {}), ({}, X, {"groups": users()}))


def clusters():
    """Clusters of embedded texts: spread and public start, both assignments, users, words."""
    X = corpus()
    embedded = X @ vectors()
    embedded = embedded[np.linalg.norm(embedded, axis=1) > 0]
    for options in ({}, {"assignment": "hard"}, {"init": embedded[:100]}, {"projection": 4}, NO_NOISE):
        model = EmbeddingTopics(3, random_state=0).set_params(**options)
        yield model.fit(embedded).cluster_centers_
        yield model.transform(embedded[:SEEN])
    model = EmbeddingTopics(3, random_state=0).fit(X @ vectors() + 1e-3, groups=users(), counts=X)
    yield from (model.cluster_centers_, model.topic_word_)


def selection():
    """Private vocabularies: each mechanism, documents and users, with public words."""
    X = long_texts()
    for mechanism in ("sieve", "weighted_gaussian", "policy_gaussian", "mad2r"):
        for groups in (None, np.arange(X.shape[0]) // 3):
            selector = DPVocabularySelector(5.0, delta=1e-3, mechanism=mechanism, random_state=0)
            yield selector.fit(X, groups=groups).get_support()
    texts = [" ".join(f"word{chr(97 + i % 26)}" for i in range(n, n + 9)) for n in range(200)]
    chosen = DPCountVectorizer(5.0, random_state=0).fit(texts).get_feature_names_out()
    yield np.frombuffer(" ".join(chosen).encode(), np.uint8)


def measures():
    """Measures of topics: perplexities, words, distances."""
    X, topics = corpus(), np.random.default_rng(1).dirichlet(np.full(N_WORDS, 0.3), size=4)
    for method in ("document-completion", "fold-in"):
        yield metrics.held_out_log_likelihood(X, topics, method=method)
        yield metrics.unigram_perplexity(X[:300], X[300:], method=method)
    yield metrics.u_mass_coherence(topics, X)
    yield metrics.topic_distances(topics)
    yield metrics.topic_diversity(topics)
    yield metrics.topic_relevance(topics, 0.6)


def accounting():
    """Calibration, composition and exact noise."""
    for accounting, steps, rate in (("pld", 20, 1.0), ("pld", 50, 0.1), ("rdp", 20, 1.0), ("zcdp", 20, 1.0)):
        sigma = privacy.noise_multiplier(accounting, 1.0, 1e-6, steps, rate)
        yield sigma
        yield privacy.epsilon_of(privacy.gaussian_event(sigma, steps, rate), 1e-5)
    for draw in (privacy.discrete_gaussian, privacy.discrete_laplace, privacy.rounded_gaussian):
        yield draw(12.5, 1000, random_state=0)


TRIALS = {
    "PrivateCGSLDA": gibbs,
    "ListedEStep": many_topics,
    "VIPSLDA": variational,
    "HDPLDA": hybrid,
    "LocalPrivateLDA": local,
    "PCTD": semantic,
    "EmbeddingTopics": clusters,
    "DPVocabularySelector": selection,
    "DPCountVectorizer": selection,
    "BaseRoundsModel": base,
    "rounds": semantic,  # the loop, by an estimator that adds least to it
    "metrics": measures,
    "privacy": accounting,
}


def noise_key(self, round_, *given):
    """Stand in for `Randomness.noise`: a key that does not change with the last bit of a scale or a statistic."""
    return self._derive("noise", round_, *map(np.shape, given))


def sweep(starts, words, topics, table, alpha, rate, most, *rest):
    """Stand in for the kernel of hybrid sweeps: another integer in the table would be another draw."""
    coarse = np.clip((table + np.uint32(COARSE // 2)) // COARSE * COARSE, 1, most).astype(np.uint32)
    released_sweep(starts, words, topics, coarse, alpha, rate, most, *rest)


def rounded(numbers):
    """Return numbers as text of so many digits."""
    numbers = UNEVEN * np.asarray(numbers, np.float64).ravel()
    numbers[np.abs(numbers) < NOTHING * np.abs(numbers).max(initial=0.0)] = 0.0
    return " ".join(f"{x:.{DIGITS}g}" for x in numbers)


@cache
def letters(name):
    """Return the letters of a trial; those of the error where it fails."""
    found = hashlib.sha256()
    noise, draws = (
        patch.object(privacy.Randomness, "noise", noise_key),
        patch.object(_hdp_sampler, "released_sweep", sweep),
    )
    with warnings.catch_warnings(), noise, draws:
        warnings.simplefilter("ignore")
        for numbers in TRIALS[name]():
            found.update(rounded(numbers).encode())
    return found.hexdigest()[:10]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    for name in TRIALS:
        begin = time.process_time()
        print(f"{name:22} {letters(name)} {time.process_time() - begin:6.1f} s", flush=True)
