"""What the package makes of small corpora that are made up, as letters: where they differ, it learns otherwise.

    python benchmarks/trials.py     # the letters of each trial, and its seconds

The fingerprints of `results.py` have these letters in place of the source of estimators, measures and accounting. A
faster kernel, another error or a base class that was divided leave the letters as they are, and with them the stored
results. A trial says nothing of an option that it does not set: who measures with a new one adds it here. Another
processor or numpy, whose logarithms differ in their last bit, is not another estimator. So numbers are compared to five
digits; and since one such bit would give a fit other noise, and other draws, a trial has noise of the round's number
alone, and coarse tables of draws.
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
from skdplda.priors._public import WordPrior
from skdplda.published import (
    CDPLDA,
    CLAIMED_ACCOUNTINGS,
    CDPLDAPlus,
    InherentPrivacyLDA,
    PriTopLDA,
    PublishedHDPLDA,
    PublishedPCTD,
    PublishedVIPSLDA,
    vips_noise_multiplier,
)
from skdplda.semantics import SemanticUnitVectorizer, word_similarity

DIGITS = 5
UNEVEN = math.pi / 3  # makes numbers such as 1/256, which have no sixth digit to round, rare
NOTHING = 1e-9  # of the largest number: what is left where equal numbers were subtracted
COARSE = 2**12  # of 2**30: what is left of the tables that topics are drawn from
SEEN = 20  # documents that a fitted model is shown
N_WORDS = 80
PRIORS = {"doc_topic_prior": 0.5, "topic_word_prior": 0.3}
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
    yield model.perplexity(X[:SEEN])


def fits(make, *others):
    """Yield what an estimator learns with much, little and no noise, and with other (options, X, arguments of fit)."""
    for epsilon in (0.5, 2.0, math.inf):
        for X, n_topics in ((corpus(), 3), (long_texts(), 12)):
            yield from learned(make(n_topics, epsilon=epsilon, random_state=0), X)
    yield from learned(make(10, epsilon=1.0, random_state=0), corpus(2000, 1000, 25))
    for options, X, more in others:
        yield from learned(make(**{"n_components": 3, "epsilon": 1.0, "random_state": 0} | options), X, **more)


def helped(kind=VIPSLDA):
    """Yield what a private estimator learns with public vectors that fit, and with an inferred prior."""
    made = make_lda_corpus(2000, 1000, 4, mean_length=25, random_state=0)
    vectors = np.log(made.topic_word.T + 1e-4)
    prior, who = WordPrior(vectors - vectors.mean(axis=0)), np.arange(2000) // 2
    for options in ({"prior": prior}, {"doc_topic_prior": "infer"}):
        yield from learned(kind(4, epsilon=2.0, random_state=0, **options), made.data)
        yield from learned(kind(4, epsilon=4.0, random_state=0, **options), made.data, groups=who)


def gibbs():
    """Collapsed Gibbs sampling: users, a public prior, a sample of documents, inferred priors."""
    X = corpus()
    yield from fits(
        PrivateCGSLDA,
        (MANY, corpus(2000, 1000, 25), {}),
        ({}, X, {"groups": users()}),
        ({"prior": prior()}, X, {}),
        ({"sampling_rate": 0.3}, X, {}),
        ({"mechanism": "laplace"}, X, {}),
        (NO_NOISE | INFER, X, {}),
        (PRIORS | {"max_iter": 6, "local_sweeps": 2}, X, {}),
    )
    yield from helped(PrivateCGSLDA)
    yield from published()


def published():
    """Sequential collapsed Gibbs sampling: the published forms, and the monitor."""
    for kind in (CDPLDA, CDPLDAPlus, PriTopLDA):
        model = kind(3, epsilon=1.0, max_iter=5, random_state=0)
        yield from learned(model, corpus())
        yield model.privacy_guarantee_.epsilon
    model = InherentPrivacyLDA(3, max_iter=5, random_state=0)
    yield from learned(model, corpus())
    yield from vars(model.inherent_privacy_).values()


def many_topics():
    """Collapsed Gibbs sampling of more than 100 topics without noise: a number for each, and lists."""
    for n_topics in (120, 1600):
        options = {"max_iter": 12, "doc_topic_prior": 0.1, "random_state": 0}
        yield from learned(PrivateCGSLDA(n_topics, **NO_NOISE, **options), long_texts())


def variational():
    """Variational inference: users, a public prior, other accountings, inferred priors, mini-batches."""
    X = corpus()
    online = {"learning_method": "online", "batch_size": 50, "nominal_size": X.shape[0]}
    yield from fits(
        VIPSLDA,
        (MANY, corpus(2000, 1000, 25), {}),
        ({}, X, {"groups": users()}),
        ({"prior": prior()}, X, {}),
        (NO_NOISE | INFER, X, {}),
        (online, X, {}),
        (online | NO_NOISE, X, {}),
        ({"sampling_rate": 0.3}, X, {}),
    )
    yield from helped(VIPSLDA)
    yield from bounded()


def bounded():
    """Variational inference as its paper has it: bounded norms and lengths, mini-batches, each accounting, streams."""
    steps = {"learning_method": "online", "batch_size": 60, "nominal_size": 120, "max_iter": 8}
    paper = steps | {"max_norm": 5.0, "max_doc_length": 40, "epsilon": 4.0, "random_state": 0} | PRIORS
    for options in (
        *({"accounting": accounting} for accounting in (*privacy.ACCOUNTINGS, *CLAIMED_ACCOUNTINGS)),
        {"max_norm": None},
        {"max_doc_length": None},
        {"epsilon": math.inf},
        {"learning_offset": 1.0, "learning_decay": 0.5, "max_doc_update_iter": 5, "mean_change_tol": 1e-2},
        {"learning_method": "batch", "batch_size": None, "nominal_size": None, "max_iter": 3},
    ):
        claimed = options.get("accounting") in CLAIMED_ACCOUNTINGS
        settings = paper | options
        if claimed:
            del settings["learning_method"]
        yield from learned((PublishedVIPSLDA if claimed else VIPSLDA)(3, **settings), long_texts())
    model = VIPSLDA(3, **paper)
    for begin in (0, 60):
        model.partial_fit(long_texts()[begin : begin + 60])
    yield model.topic_word_


def hybrid():
    """Hybrid private sampling, and its published form."""
    options = [{"max_iter": 10}, {"noise_share": 0.75}, {"count_clip": 20.0}, PRIORS, {"mechanism": "laplace"}]
    by_sweep = {"epsilon": None, "noise_epsilon": 1.0, "inherent_epsilon": 10.0, "max_iter": 5}
    options += [by_sweep]
    yield from fits(HDPLDA, *((one, corpus(), {}) for one in options))
    yield from fits(PublishedHDPLDA, *((one, corpus(), {}) for one in ({"max_iter": 10}, by_sweep)))
    for one in options:
        model = HDPLDA(3, **{"epsilon": 1.0} | one)
        yield model.privacy_cost().epsilon
    yield HDPLDA(3, epsilon=1.0, max_iter=10).document_cost(20).epsilon


def local():
    """Randomized reports: each reconstruction, asymmetric coins, batches."""
    X = corpus()
    options = [{"reconstruction": name} for name in ("bayes", "moment")]
    randomizer = LocalRandomizer(2.0, mechanism="asymmetric", random_state=0)
    options += [{"epsilon": None, "randomizer": randomizer}]
    yield from fits(LocalPrivateLDA, *((one | {"max_iter": 20}, X, {}) for one in options))
    yield LocalPrivateLDA(3, epsilon=2.0, random_state=0).partial_fit(X[:200]).partial_fit(X[200:]).topic_word_
    yield from reports()


def reports():
    """Randomized reports in batches: what is known before, its weight, reports that are made elsewhere."""
    X = corpus()
    known = {"prior_weight": 0.5, "correlation": 0.8} | PRIORS
    for options in ({"reconstruction": "bayes"}, {"reconstruction": "bayes"} | known, known):
        model = LocalPrivateLDA(3, epsilon=2.0, max_iter=10, random_state=0, **options).fit_prior(X[:100])
        yield model.partial_fit(X[100:250]).partial_fit(X[250:]).topic_word_
    randomizer = LocalRandomizer(2.0, random_state=0)
    made = randomizer.fit_transform(X)
    model = LocalPrivateLDA(3, randomizer=randomizer, input="reports", max_iter=10, random_state=0)
    yield from (made.indices, model.fit(made).topic_word_)
    model = LocalPrivateLDA(3, epsilon=300.0, epsilon_unit="document", max_iter=10, random_state=0).fit(X)
    yield from (model.topic_word_, model.privacy_guarantee_.epsilon, model.bit_guarantee_.epsilon)


def semantic():
    """Semantic units: similar words, noise on units."""
    X = corpus()
    similar = {"similarity": round(word_similarity(vectors(), vectors()), 6)}
    units = [similar | {"noise": noise} for noise in ("statistics", "units")]
    units += [PRIORS | {"max_iter": 3, "local_updates": 2}, {"sampling_rate": 0.3}]
    observed = similar | {"noise_support": "observed", "tau": 0.5, "noise_scale": 0.25, "max_iter": 5}
    yield from fits(PublishedPCTD, (similar, X, {}), (observed, X, {}))
    yield from fits(PCTD, *((one, X, {}) for one in units), ({"prior": prior()}, X, {}), ({}, X, {"groups": users()}))
    cut = SemanticUnitVectorizer(3).fit_transform([[f"w{i}" for i in np.repeat(x.indices, x.data)] for x in X])
    for epsilon in (2.0, math.inf):
        yield from learned(PCTD(3, epsilon=epsilon, max_iter=5, random_state=0), cut)
    yield word_similarity(vectors(), vectors(), normalize=False).toarray()


def clusters():
    """Clusters of embedded texts: spread and public start, both assignments, users, words."""
    X = corpus()
    embedded = X @ vectors()
    embedded = embedded[np.linalg.norm(embedded, axis=1) > 0]
    start = {"public_rows": embedded[:100]}
    for options in (
        {},
        {"assignment": "hard"},
        start,
        start | {"public_weights": np.arange(1.0, 101.0), "max_iter": 3},
        {"projection": 4},
        {"centre": np.full(8, 0.1)},
        NO_NOISE,
    ):
        model = EmbeddingTopics(3, random_state=0).set_params(**options)
        yield model.fit(embedded).cluster_centers_
        yield model.transform(embedded[:SEEN])
    model = EmbeddingTopics(3, random_state=0).fit(X @ vectors() + 1e-3, groups=users(), counts=X)
    yield from (model.cluster_centers_, model.topic_word_)
    yield model.set_params(keyword_share=0.8).fit(X @ vectors() + 1e-3, counts=X).topic_word_


def selection():
    """Private vocabularies: each mechanism, documents and users, with public words."""
    X = long_texts()
    wide = {"mechanism": "mad2r", "max_words_per_unit": 20, "cutoff": 2.0}
    for options in (
        *({"mechanism": mechanism} for mechanism in privacy.PartitionPlan.MECHANISMS),
        wide,
        {"max_words_per_document": 9},
    ):
        for groups in (None, np.arange(X.shape[0]) // 3):
            selector = DPVocabularySelector(5.0, delta=1e-3, random_state=0).set_params(**options)
            yield selector.fit(X, groups=groups).get_support()
    texts = [" ".join(f"word{chr(97 + i % 26)}" for i in range(n, n + 9)) for n in range(200)]
    for options in ({}, {"ngram_range": (1, 2)}, {"max_words": 5}, {"stop_words": ["wordc"], "token_pattern": r"\w+"}):
        vectorizer = DPCountVectorizer(5.0, random_state=0).set_params(**options)
        counts = vectorizer.fit_transform(texts)
        yield np.frombuffer(" ".join(vectorizer.get_feature_names_out()).encode(), np.uint8)
        yield counts.sum(axis=0)


def measures():
    """Measures of topics: perplexities, words, distances."""
    X, topics = corpus(), np.random.default_rng(1).dirichlet(np.full(N_WORDS, 0.3), size=4)
    for method in ("document-completion", "fold-in"):
        yield metrics.held_out_log_likelihood(X, topics, method=method)
        yield metrics.unigram_perplexity(X[:300], X[300:], method=method)
        yield metrics.perplexity(X, topics, method=method, doc_topic_prior=0.5)
        yield metrics.score(X, topics, method=method)
        yield metrics.score_samples(X, topics, method=method)
    proportions = np.random.default_rng(2).dirichlet(np.ones(4), size=X.shape[0])
    yield metrics.log_likelihood(X, topics, proportions)
    for n_words in (10, 30):
        yield metrics.u_mass_coherence(topics, X, n_words=n_words)
    yield metrics.token_mass(X, np.arange(20))
    yield metrics.missing_mass(X, np.arange(20))
    yield metrics.missing_mass(X, np.arange(20), users())
    yield metrics.topic_distances(topics)
    yield metrics.topic_diversity(topics)
    yield metrics.topic_relevance(topics, 0.6)


def accounting():
    """Calibration, composition and exact noise."""
    for accounting, steps, rate in (("pld", 20, 1.0), ("pld", 50, 0.1), ("rdp", 20, 1.0)):
        sigma = privacy.noise_multiplier(accounting, 1.0, 1e-6, steps, rate)
        yield sigma
        yield privacy.epsilon_of(privacy.gaussian_event(sigma, steps, rate), 1e-5)
    for draw in (privacy.discrete_gaussian, privacy.discrete_laplace, privacy.rounded_gaussian):
        yield draw(12.5, 1000, random_state=0)
    yield from shares()
    yield from events()
    yield from monitor()


def shares():
    """What each accounting asks of noise."""
    for accounting in privacy.ACCOUNTINGS:
        for epsilon, steps, rate in ((0.5, 10, 0.3), (4.0, 40, 0.01)):
            yield privacy.noise_multiplier(accounting, epsilon, 1e-4, steps, rate)
    yield from (vips_noise_multiplier(accounting, 0.5, 1e-4, 10, 0.3) for accounting in CLAIMED_ACCOUNTINGS)
    for steps, delta in ((1, 0.0), (20, 0.0), (20, 1e-6)):
        yield privacy.calibrate_laplace(2.0, steps, delta)


def events():
    """What other noise than Gaussian costs, alone and together."""
    made = [privacy.laplace_event(3.0, 5), privacy.pure_event(0.5, 3), privacy.zcdp_event(0.05)]
    made += [privacy.bounded_range_event(0.5, 4), privacy.selection_event(privacy.gaussian_event(5.0), 4.0)]
    made += [privacy.compose_events([made[0], privacy.gaussian_event(4.0, 3)])]
    for event in made:
        yield privacy.epsilon_of(event, 1e-5)
        yield privacy.delta_of(event, 3.0)
    parts = [VIPSLDA(epsilon=epsilon).privacy_cost() for epsilon in (1.0, 2.0)]
    both = parts[0].compose(parts[1])
    yield from (both.epsilon, both.delta, both.epsilon_at(1e-6), both.delta_at(1.0), parts[0].for_group(2).epsilon)


def monitor():
    """What the monitor of collapsed Gibbs sampling says of draws."""
    counts, totals, documents = np.array([[3, 0, 5], [20, 9, 31], [2, 1, 0]])
    for n_removed in (1, 25):
        yield privacy.monitor_draw(counts, totals, documents, n_removed, 0.1, 0.01, 1000)
    for twins in (0, np.array([1, 0, 0])):
        yield privacy.exact_draw_loss(counts, totals, documents, 0.1, 0.01, 1000, twin_counts_k=twins)
    yield privacy.replaced_draw_loss(counts, documents, 0.01)
    yield privacy.related_draw_loss(0.01)
    losses = [privacy.sweep_loss(totals, 0.01, largest=largest) for largest in (None, 5.0)]
    yield from (*losses, privacy.composed_loss(losses))
    yield privacy.InherentPrivacyHistory(*np.arange(12.0).reshape(4, 3)).to_frame()


def as_of(*names):
    """Return the trial of what other trials run."""
    return lambda: ([int(letter, 16) for letter in letters(name)] for name in names)


TRIALS = {
    "PrivateCGSLDA": gibbs,
    "ListedEStep": many_topics,
    "VIPSLDA": variational,
    "HDPLDA": hybrid,
    "LocalPrivateLDA": local,
    "PCTD": semantic,
    "EmbeddingTopics": clusters,
    "DPVocabularySelector": selection,
    "DPCountVectorizer": as_of("DPVocabularySelector"),
    "BaseRoundsModel": as_of("PrivateCGSLDA", "VIPSLDA"),
    "rounds": as_of("PCTD"),  # the loop, by an estimator that adds least to it
    "metrics": measures,
    "privacy": accounting,
}
SOURCES = {  # modules that a trial stands for and does not run: they count by their source
    "metrics": ("metrics._gensim",),  # which needs another package
}


def noise_key(self, round_, *given):
    """Stand in for `Randomness.noise`: a key that does not change with the last bit of a scale or a statistic."""
    return self._derive("noise", round_, *(str(np.shape(value)) for value in given))


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
    """Return the letters of a trial; raise what it raises."""
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
