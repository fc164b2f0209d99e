"""Names of clusters by other methods, on the same texts, vectors and public words, each private in full.

Texts, held-out parts and three of the judges are those of `names.py`. Every method has the same GloVe means, its 19,370
public words and their public frequencies, twenty clusters, ten keywords of each, and one total (epsilon, delta). At the
user level "ours" bounds all texts of a user together, and `make_fdptm_pipeline` does, too; the others have no such
bound, and are given one text of each user, drawn beforehand.

* ours: `make_insights_pipeline`.
* Urania's way, after arXiv 2506.04681, whose code is not public: clusters by the tree of locality-sensitive hashes of
  Google's library; each text names at most five public words to its cluster, a histogram of these has noise, and
  summaries would be written of its largest counts. Language models choose the words there, and write; here a text names
  those of its words that are near its vector and rare, and keywords are class-based tf-idf of the histogram, which
  was better than counts. The sizes of clusters, below which the paper leaves clusters out, are not asked: that saves
  their budget.
* LSH clustering: the same clusters; all words of a text count, with norm 1, and keywords are class-based tf-idf.
* noise on k-means: Gaussian noise, a noisy centre, a public start; words as for LSH clustering.
* fdptm: `make_fdptm_pipeline`, whose words are chosen from the texts, with GloVe as a prior.

Noise is Gaussian, but for that of Google's library, and the total is exact: that of the words is as small as the joint
accounting of dp-accounting allows. It is in floating point, as in these methods' papers. What share of the budget words
get (0.3, 0.5 or 0.7), how many of the public words are asked for (1,000 to all), the words that a text names (rarest,
nearest, or both) and the order of keywords were chosen for each of the others by the sum of the three judges on 20
Newsgroups themselves, at epsilon 1, seed 0, of 5 to 20 settings, without rows that are kept: in their favour. Measures
beside those of names.py:

* c_npmi of the keywords in the held-out texts; NMI of the clusters with the groups there.
* keywords kept: the share of keywords that class-based tf-idf without noise has for the clusters that were found.
* coverage: the share of the topics without noise (k-means, class-based tf-idf) of which one of the private topics
  tells, that is, to which it is the nearest by the mean vector of its keywords. It is a counterpart, for keywords, of
  the topic coverage that Urania's paper measures on summaries, and no number of it.

Needs the package `clustering` of Google's differential-privacy library (commit b5b0286) for two of the methods.

    python benchmarks/others.py [--help]
"""

from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from embedding import (
    LEAST,
    OF_ROWS,
    deviation,
    exact_labels,
    gaussian_centres,
    lsh_clusters,
    nearest,
    posts,
    threshold_scores,
    unit,
    vectors_of,
)
from names import DELTA, EPSILONS, FILES, N_KEYWORDS, K, embedder, judged, keywords_of, split, texts_of
from results import Table, run
from sklearn.metrics import normalized_mutual_info_score

from skdplda import DPCountVectorizer, EmbeddingTopics, PublicPrior, make_fdptm_pipeline, make_insights_pipeline
from skdplda.metrics import coherence
from skdplda.models import _cluster_rounds

NAMED = 5  # words that a text names to its cluster at most, in Urania
MEASURES = (
    "NPMI",
    "diversity",
    "NMI of keywords",
    "c_npmi",
    "NMI of clusters",
    "keywords kept",
    "coverage",
)


@dataclass(frozen=True)
class Settings:
    """Of the row of one cell."""

    corpus: str
    unit: str
    method: str
    epsilon: float
    n_seeds: int = 3


@dataclass(frozen=True)
class Words:
    """How a method that has clusters first gets keywords."""

    share: float  # of the budget, or of epsilon where clusters are of the library
    n_words: int  # that are asked for, the most frequent public ones
    few: bool = False  # whether a text names NAMED words; else all count


KINDS = {
    "Urania's way": Words(0.7, 1000, few=True),
    "LSH clustering": Words(0.5, 1000),
    "noise on k-means": Words(0.5, 1000),
}
METHODS = ("ours", *KINDS, "fdptm")


@cache
def corpus_of(corpus, grouped):
    """Return texts as embeddings and counts, their groups and users, and which are held out and which not."""
    texts, groups, users = texts_of(corpus)
    if grouped and users is None:
        users = posts()[2]
    pipeline = make_insights_pipeline(1.0, DELTA, embedder=embedder(), model=EmbeddingTopics(K))
    return texts, pipeline[0].fit_transform(texts), groups, users, *split(corpus), pipeline[0].build_analyzer()


def ours(s, seed):
    """Return a function from numbers of texts to clusters, and keywords."""
    _, X, _, users, _, train, _ = corpus_of(s.corpus, s.unit == "user")
    pipeline = make_insights_pipeline(
        s.epsilon, DELTA, embedder=embedder(), model=EmbeddingTopics(K, random_state=seed), groups=s.unit == "user"
    )
    model = pipeline[-1].fit(X[train], groups=users[train] if s.unit == "user" else None)
    return lambda chosen: model.predict(X[chosen]), keywords_of(model)


@cache
def prior():
    return PublicPrior.from_vectors(vectors_of())


def fdptm(s, seed):
    """Return the same of topics of words, which are chosen from the texts."""
    texts, _, _, users, _, train, _ = corpus_of(s.corpus, s.unit == "user")
    pipeline = make_fdptm_pipeline(
        s.epsilon,
        DELTA,
        n_components=K,
        vectorizer=DPCountVectorizer(stop_words="english", binary=True),
        prior=prior(),
        groups=s.unit == "user",
    )
    pipeline[-1].set_params(random_state=seed)
    pipeline.fit([texts[i] for i in train], groups=users[train] if s.unit == "user" else None)
    keywords = keywords_of(pipeline[-1], pipeline[0].get_feature_names_out())
    return lambda chosen: pipeline.transform([texts[i] for i in chosen]).argmax(axis=1), keywords


def in_parts(s, seed):
    """Return the same of a method that has clusters first, and then counts words of each."""
    return named(s, seed, KINDS[s.method], *centres_of(s, seed, KINDS[s.method].share))


def fitted_on(s):
    """Return the numbers of the texts that a method without user level is given: one of each user."""
    _, _, _, users, _, train, _ = corpus_of(s.corpus, s.unit == "user")
    if s.unit != "user":
        return train
    order = np.random.default_rng(1).permutation(train)
    return np.sort(order[np.unique(users[order], return_index=True)[1]])


@cache
def centres_of(s, seed, share):
    """Return the noise that is left for words, of a sum of norm 1, and a function from numbers of texts to clusters."""
    vectors, train, start = corpus_of(s.corpus, s.unit == "user")[1].vectors, fitted_on(s), embedder().public_rows()
    if s.method == "noise on k-means":
        centre, centres = gaussian_centres(vectors[train], s.epsilon, seed, start, 1 - share)
        return deviation(s.epsilon, share), lambda chosen: nearest(unit(unit(vectors[chosen]) - centre), centres)
    rows = unit(unit(vectors) - public_centre())
    budget = (1 - share) * s.epsilon, DELTA / 2
    centres = lsh_clusters(rows[train], budget, seed).centers
    return left_for_words(s.epsilon, budget), lambda chosen: nearest(rows[chosen], centres)


@cache
def left_for_words(epsilon, budget):
    """Return the least deviation of Gaussian noise beside clusters of that budget."""
    from clustering import clustering_params, privacy_calculator
    from dp_accounting import ComposedDpEvent, GaussianDpEvent, calibrate_dp_mechanism
    from dp_accounting.mechanism_calibration import LowerEndpointAndGuess
    from dp_accounting.pld import PLDAccountant

    depth = 20  # as the library takes it by default
    param = clustering_params.DifferentialPrivacyParam(*budget)
    known = privacy_calculator.PrivacyCalculator(param, 1.0, depth, clustering_params.PrivacyCalculatorMultiplier())
    clusters = privacy_calculator.make_clustering_event(
        known.average_privacy_param.gaussian_standard_deviation, known.count_privacy_param.dlaplace_param, 1.0, depth
    )

    def both(noise):
        return ComposedDpEvent([clusters, GaussianDpEvent(noise)])

    return calibrate_dp_mechanism(PLDAccountant, both, epsilon, DELTA, LowerEndpointAndGuess(0.1, 10.0))


def named(s, seed, words, noise, predict):
    """Return that function and keywords, by noisy counts."""
    _, X, *_ = corpus_of(s.corpus, s.unit == "user")
    train = fitted_on(s)
    part, labels = X[train], predict(train)
    asked = np.sort(np.argsort(-part.word_frequencies, kind="stable")[: words.n_words])
    counts = sp.csr_array(part.counts)[:, asked].astype(float)
    if words.few:
        chosen = by_text(counts, part.word_frequencies[asked], part.vectors, part.word_vectors[asked])
        counts = chosen / np.sqrt(NAMED)
    else:
        counts = sp.diags_array(1 / np.sqrt(np.maximum(counts.sum(axis=1), 1))) @ counts  # of norm 1: words count once
    sums = np.stack([counts[labels == k].sum(axis=0) for k in range(K)])
    sums = np.maximum(sums + np.random.default_rng([seed, 1]).normal(scale=noise, size=sums.shape), 0)
    tf = sums / np.maximum(sums.sum(axis=1, keepdims=True), LEAST)
    scores = tf * np.log1p(sums.sum() / K / np.maximum(sums.sum(axis=0), LEAST))
    return predict, top_of(scores, part.words[asked])


def by_text(counts, frequencies, vectors, word_vectors):
    """Return which words each text names: of its words the NAMED that score best, as keywords near a centre do."""
    counts, centre = counts.tocsr(), public_centre()
    text = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    rows, of_words = unit(unit(vectors) - centre), unit(unit(word_vectors) - centre)
    value = np.empty(counts.nnz)
    for first in range(0, counts.nnz, 100_000):
        some = slice(first, first + 100_000)
        value[some] = np.einsum("ij,ij->i", rows[text[some]], of_words[counts.indices[some]])
    value = np.sign(value) * value**2 / frequencies[counts.indices] ** 0.25
    order = np.lexsort((-value, text))
    kept = order[np.arange(len(order)) - counts.indptr[text] < NAMED]
    return sp.csr_array((np.ones(len(kept)), (text[kept], counts.indices[kept])), counts.shape)


def public_centre():
    """Return the mean of public rows of length 1."""
    rows, weights = embedder().public_rows()
    return weights @ unit(rows) / weights.sum()


def judge(s, predict, keywords):
    """Return all measures of one fit."""
    texts, X, groups, _, test, train, analyze = corpus_of(s.corpus, s.unit == "user")
    held_out = [texts[i] for i in test]
    labels, names = predict(train), np.asarray(keywords).astype(str)
    best = top_of(threshold_scores(X.counts[train], labels), X.words)
    kept = np.mean([len({*a} & {*b}) / N_KEYWORDS for a, b in zip(names, best, strict=True)])
    dictionary = np.unique(names)
    topics = np.full((K, len(dictionary)), LEAST)
    np.put_along_axis(topics, np.searchsorted(dictionary, names), 1.0, axis=1)
    npmi = coherence(topics, [analyze(text) for text in held_out], dictionary, measure="c_npmi", n_words=names.shape[1])
    known = X.vectors[test].any(axis=1)
    clusters = normalized_mutual_info_score(groups[test][known], predict(test)[known])
    covered = np.unique(nearest(meaning(s, names), meaning(s, without_noise(s.corpus, s.unit)))).size / K
    return (*judged(held_out, groups[test], names, analyze), np.mean(npmi), clusters, kept, covered)


def top_of(scores, words):
    return np.asarray(words)[np.argsort(-scores, axis=1, kind="stable")[:, :N_KEYWORDS]].astype(str)


@cache
def without_noise(corpus, kind):
    """Return the keywords of k-means without noise."""
    _, X, _, _, _, train, _ = corpus_of(corpus, kind == "user")
    return top_of(threshold_scores(X.counts[train], exact_labels(X.vectors[train])), X.words)


def meaning(s, names):
    """Return directions of topics: means of their keywords' vectors, without the mean of all topics without noise."""
    reference = without_noise(s.corpus, s.unit)

    def means(rows):
        vectors = unit(embedder().transform(rows.ravel().tolist()))
        return vectors.reshape(*rows.shape, -1).mean(axis=1)

    return unit(means(names) - means(reference).mean(axis=0))


def compare(s):
    """Return means and deviations of the measures."""
    run_ = {"ours": ours, "fdptm": fdptm}.get(s.method, in_parts)
    with patch.object(_cluster_rounds.PublicStart, "of_rows", staticmethod(OF_ROWS)):  # the same in all fits
        found = np.array([judge(s, *run_(s, seed)) for seed in range(s.n_seeds)])
    values = {}
    for measure, column in zip(MEASURES, found.T, strict=True):
        values |= {measure: column.mean(), f"{measure}, deviation": column.std()}
    return values


def cells():
    """Return what there is to measure."""
    epsilons = sorted(EPSILONS, key=lambda epsilon: epsilon != 1)
    kinds = [("20 Newsgroups", kind, epsilon) for epsilon in epsilons for kind in ("record", "user")]
    kinds.insert(2, ("TweetRumors", "record", 1.0))
    return [Settings(*kind[:2], method, kind[2]) for kind in kinds for method in METHODS]


TABLES = [
    Table("others", Settings, cells, compare, lambda s: [FILES[s.corpus], "glove"]),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
