"""How much of each claimed epsilon testers from outside show, by public calls alone.

Two inputs differ by `group` documents, all alike: then all losses are `group` times as large, exactly so for Gaussian
and Laplace noise. So many `others` of the same content are in both. A fit has many such pairs, each with a word and a
coin of its own; what it releases of them is taken to be independent, as their noise is meant to be. Testers see the
noisy sums of a transcript, a released model, or what a device sends; `testers.py` has what they do.

No right claim is called violated, in all rows together, but with a probability of one in a million.

    python benchmarks/verify.py                                         # all
    python benchmarks/verify.py verify --only claim=VIPSLDA             # one claim
    python benchmarks/verify.py verify --set fits=20 --output /tmp/v    # a look
"""

import json
import math
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from results import Table, run
from testers import MOST_ROWS, TESTERS, Claim, rate_bounds, test

from skdplda import (
    HDPLDA,
    PCTD,
    VIPSLDA,
    DPCountVectorizer,
    DPVocabularySelector,
    EmbeddingTopics,
    LocalPrivateLDA,
    PrivateCGSLDA,
    count_labels,
    make_fdptm_pipeline,
    privacy_guarantee,
    release,
)
from skdplda.local import LocalRandomizer
from skdplda.model_selection import PrivateSearchCV
from skdplda.rounds import NORM_BOUND
from skdplda.semantics import EmbeddedTexts, UnitMatrix

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from broken_variants import forgotten_delta, noise_times_08, one_round_uncounted, thresholds_times_08, unit_twice

TOKENS = 20  # of a document, which then has the largest norm
DELTA = 0.01  # where a delta is looked at: far smaller chances are not seen
REPORTED = 3  # words of a report
PILOT = {}  # what a document adds to clusters


# What is released. Each draws one fit by public calls, and returns one number or row for each pair of inputs


def words_of(copies, tokens=TOKENS):
    """Return documents of one word each: `copies[j]` of the word j."""
    words = np.repeat(np.arange(len(copies)), copies)
    where = np.arange(len(words)), words
    return sp.csr_array((np.full(len(words), tokens, np.int32), where), shape=(len(words), len(copies)))


def texts_of(copies, tokens=1):
    """Return the words as letters, and the same documents as texts."""
    words = ["q" + "".join("abcdefghij"[int(digit)] for digit in f"{number:06}") for number in range(len(copies))]
    return words, [" ".join([word] * tokens) for word in np.repeat(words, copies)]


def answers(fit):
    """Return the noisy sums of a fit, in units of the most that a document adds, and their precisions."""
    with tempfile.TemporaryDirectory() as folder:
        fit(Path(folder) / "transcript")
        with np.load(Path(folder) / "transcript") as file:
            multipliers = json.loads(str(file["header"]))["multipliers"]
            return [(file[f"a_{i}"] / NORM_BOUND, multiplier**-2.0) for i, multiplier in enumerate(multipliers)]


def of_rows(sums, others):
    """Return the lengths of the words' rows beyond that of the others, by precision: about the log-ratio."""
    n_words = max(len(rows) for rows, _ in sums)  # votes have fewer rows
    rows = [(rows, p) for rows, p in sums if len(rows) == n_words]
    lengths = [(np.linalg.norm(rows, axis=1) if rows.shape[1] > 1 else rows[:, 0], p) for rows, p in rows]
    return np.sum([p * (length - others) for length, p in lengths], axis=0)


def rounds(estimator, present, others, group):
    """Private rounds: all noisy sums, of a transcript."""
    X = words_of(others + group * present)
    X = UnitMatrix(np.arange(X.shape[0] + 1), X) if isinstance(estimator, PCTD) else X
    sums = answers(lambda path: estimator.fit(X, transcript=path))
    if getattr(estimator, "mechanism", None) == "laplace":  # of one topic
        return np.sum([np.clip(rows[:, 0] - others, 0, group) for rows, _ in sums], axis=0)
    return of_rows(sums, others)


def clusters(estimator, present, others, group):
    """Clusters: each word has a direction and a cluster for itself, in which its length, its size and it are seen."""
    n = len(present)
    estimator.set_params(n_components=n, init=np.eye(n))

    def own_cells(copies):
        X = words_of(copies, 1)
        for rows, p in answers(lambda path: estimator.fit(EmbeddedTexts(X.toarray() * 1.0, X), transcript=path)):
            if len(rows) == n or rows.shape[1] > n:  # all but votes; the first sum is of all documents
                yield (rows if len(rows) == n else rows[:, 1:].T), p

    if n not in PILOT:  # what a document adds, of a fit of very many
        most = 100 * others
        PILOT[n] = [cells / most for cells, _ in own_cells(np.full(n, most))]
    seen = zip(own_cells(others + group * present), PILOT[n], strict=False)
    return np.sum([p * ((cells - others * added) * added).sum(axis=1) for (cells, p), added in seen], axis=0)


def weights(selector, present, others, group):
    """Selected words: their noisy weights, and 0 where a word is not released."""
    found = np.zeros(len(present))
    selector.fit(words_of(others + group * present, 1))
    found[selector.support_] = selector.noisy_weights_
    return found


def named(vectorizer, present, others, group):
    """Return the same of texts."""
    words, texts = texts_of(others + group * present)
    vectorizer.fit(texts)
    found = dict(zip(vectorizer.get_feature_names_out(), vectorizer.noisy_weights_, strict=True))
    return np.array([found.get(word, 0.0) for word in words])


def pipelines(pipeline, present, others, group):
    """Texts to topics: the words' noisy weights and all noisy sums."""
    words, texts = texts_of(others + group * present, TOKENS)
    sums = answers(lambda path: pipeline.fit(texts, topics__transcript=path))
    chosen = list(pipeline[0].get_feature_names_out())
    rows = dict(zip(chosen, np.column_stack([pipeline[0].noisy_weights_, of_rows(sums, others)]), strict=True))
    return np.array([rows.get(word, np.zeros(2)) for word in words])


def released(pipeline, present, others, group):
    """Return the same of the file for readers: which words have which weights."""
    words, texts = texts_of(others + group * present, TOKENS)
    model = release(pipeline.fit(texts))
    rows = dict(zip(model.vocabulary_, np.log(model.topic_word_.mean(axis=0)), strict=True))
    return np.array([rows.get(word, min(rows.values())) for word in words])


def best(search, present, others, group):
    """Return the weights of words in the best model of a search, whose score is public: the largest weight wins."""
    model = search.fit(words_of(others + group * present), X_public=words_of(np.ones(len(present), int)))
    return model.best_estimator_.components_.sum(axis=0)


def labels(estimator, present, others, group):
    """Counts of labels."""
    words, texts = texts_of(others + group * present)
    found = count_labels(texts, words, epsilon=estimator.epsilon, classify=str)
    return found.counts[words].to_numpy()


def sweeps(estimator, present, others, group):
    """How much likelier one of two words makes the released topics, and how much its counts are above the other's."""
    n, own = len(present), np.arange(len(present))
    trace, _ = estimator.audit_trace(sp.csr_array((np.ones(n, np.int32), (own, own + n * ~present)), shape=(n, 2 * n)))
    drawn, counted = np.zeros(n), np.zeros(n)
    for table, after, z in zip(trace.tables, trace.tables[1:], trace.topics.astype(int), strict=False):
        counted += after[z, own] - after[z, n + own]
        share = np.maximum(table, 0) + np.std(table)
        share = np.log(share / share.sum(axis=0))
        drawn += share[z, own] - share[z, n + own]
    return np.column_stack([drawn, counted])


def unit_counts(estimator, present, others, group):
    """One semantic unit, in which some tokens are of the one or the other of two words: its noisy counts."""
    moved = np.where(present, group, 0)
    tokens = np.concatenate([others + moved, others + group - moved])
    table = estimator.fit(UnitMatrix(np.array([0, 1]), sp.csr_array(tokens[None].astype(np.int32)))).components_[0]
    return np.subtract(*np.split(table, 2))


def reports(randomizer, present, others, group):
    """Reports of documents that have all words or none; or, where one is reported, the one or the other of two."""
    X = np.zeros((len(present), REPORTED), np.int32)
    one = randomizer.max_words_per_document == 1
    X[present, : 1 if one else REPORTED] = 1
    X[~present, 1:2] = one
    bits = randomizer.fit_transform(X).toarray() > 0
    return bits[:, 0] * 1.0 - bits[:, 1] if one else bits.sum(axis=1)


def devices(estimator, *asked):
    """Return the same of the devices of a model."""
    return reports(estimator.device_randomizer(REPORTED), *asked)


# Claims


@dataclass(frozen=True)
class Pairs:
    """Of a claim: its release, the estimator at an epsilon, words, fits; group and others at epsilon 1 and 5."""

    draw: Callable
    estimator: Callable
    words: int = 200
    fits: int | tuple = 180  # at epsilon 1 and 5, where they differ
    group: tuple = (11, 3)
    others: tuple = (100, 40)
    cost: Callable = lambda estimator: estimator.privacy_cost()


def single(make, draw, words, fits, **options):
    """Return pairs of one unit, which has one of two values: no others are needed."""
    return Pairs(draw, make, words, fits, (1, 1), (0, 0), **options)


def of_reports(make, draw=reports):
    """Return pairs of reports."""
    return single(make, draw, 2_000_000, 1, cost=lambda estimator: estimator.privacy_cost(n_words=REPORTED))


def one_word(e):
    """Return a randomizer of reports of one word, at the epsilon of a document."""
    return LocalRandomizer(math.log((1 + math.exp(e)) / 2), mechanism="asymmetric", max_words_per_document=1)


def search(e):
    """Return a search that chooses by a public score, of which its guarantee knows nothing."""
    return PrivateSearchCV(PrivateCGSLDA(1), {"n_components": [1]}, epsilon=e)


def pipeline(e):
    """Return a pipeline of one topic, whose words stand out in a small corpus."""
    return make_fdptm_pipeline(e, n_components=1)


def label_guarantee(estimator):
    """Return the guarantee of counts of labels."""
    return count_labels([], ["a"], epsilon=estimator.epsilon, classify=str).privacy_guarantee_


SELECTIONS = {  # group and others
    "sieve": ((11, 3), (15, 4)),
    "weighted_gaussian": ((11, 3), (17, 4)),
    "sips": ((11, 3), (22, 6)),
    "mad": ((11, 3), (17, 4)),
    "mad2r": ((11, 3), (17, 5)),
    "policy_gaussian": ((11, 3), (17, 4)),
    "policy_laplace": ((3, 1), (10, 2)),
    "item_frequency": ((3, 1), (10, 2)),
    "truncated_geometric": ((1, 1), (20, 10)),
}
CLAIMS = {
    "PrivateCGSLDA": Pairs(rounds, lambda e: PrivateCGSLDA(2, epsilon=e)),
    "PrivateCGSLDA, discrete Gaussian": Pairs(
        rounds,
        lambda e: PrivateCGSLDA(1, epsilon=e, mechanism="discrete-gaussian", max_iter=1),
        2000,
        (300, 600),
        others=(40, 10),
    ),
    "PrivateCGSLDA, Laplace": Pairs(
        rounds, lambda e: PrivateCGSLDA(1, epsilon=e, mechanism="laplace", max_iter=1), 4000, 100, (3, 1), (20, 10)
    ),
    "VIPSLDA": Pairs(rounds, lambda e: VIPSLDA(2, epsilon=e)),
    "VIPSLDA, online": Pairs(rounds, lambda e: VIPSLDA(2, epsilon=e, learning_method="online"), fits=280),
    "VIPSLDA, sampled": single(lambda e: VIPSLDA(1, epsilon=e, sampling_rate=0.5, max_iter=5), rounds, 20_000, 150),
    "PCTD": Pairs(rounds, lambda e: PCTD(2, epsilon=e), fits=140),
    "PCTD, units": Pairs(unit_counts, lambda e: PCTD(1, epsilon=e, noise_on="units"), 20_000, 5, others=(100, 100)),
    "EmbeddingTopics": Pairs(clusters, lambda e: EmbeddingTopics(2, epsilon=e), 10, (2500, 3500), others=(250, 80)),
    "HDPLDA": single(lambda e: HDPLDA(2, epsilon=e), sweeps, 40_000, 10),
    **{
        f"DPVocabularySelector, {method}": Pairs(
            weights, partial(DPVocabularySelector, method=method, max_words_per_unit=1), 5000, 200, *numbers
        )
        for method, numbers in SELECTIONS.items()
    },
    "DPCountVectorizer": Pairs(named, partial(DPCountVectorizer, max_words_per_unit=1), 5000, 20, *SELECTIONS["sieve"]),
    "LocalRandomizer": of_reports(lambda e: LocalRandomizer(e / REPORTED)),
    "LocalRandomizer, asymmetric": of_reports(one_word),
    "LocalPrivateLDA": of_reports(lambda e: LocalPrivateLDA(2, randomizer=LocalRandomizer(e / REPORTED)), devices),
    "count_labels": Pairs(labels, lambda e: HDPLDA(epsilon=e), 2000, (100, 180), (3, 1), (12, 5), label_guarantee),
    "PrivateSearchCV": Pairs(best, search, 1000, 20, (3, 2), (60, 20), lambda search: search.privacy_cost(public=True)),
    "make_fdptm_pipeline": Pairs(pipelines, pipeline, others=(260, 60), cost=privacy_guarantee),
    "release": Pairs(released, pipeline, others=(260, 60), cost=privacy_guarantee),
}


@dataclass(frozen=True)
class Settings:
    """Of the rows of a claim; the noise has no seed."""

    claim: str
    epsilon: float
    group: int
    others: int
    words: int
    fits: int


@dataclass(frozen=True)
class New:
    """Of a selection of new words: of one document each."""

    method: str
    epsilon: float
    delta: float = DELTA
    words: int = 20_000
    fits: int = 100


@dataclass(frozen=True)
class Variant:
    """Of the runs of a variant."""

    variant: str
    runs: int = 20


def cells():
    """Return what there is to measure."""
    found = []
    for i, (name, one) in product((0, 1), CLAIMS.items()):
        fits = one.fits[i] if isinstance(one.fits, tuple) else one.fits
        found.append(Settings(name, (1.0, 5.0)[i], one.group[i], one.others[i], one.words, fits))
    return found


def new_cells():
    """Return the same of new words."""
    return [New(method, epsilon) for epsilon in (1.0, 5.0) for method in SELECTIONS]


def variant_cells():
    """Return the same of what is broken, and of the same code that is not."""
    return [Variant(name) for name in (*VARIANTS, *(f"right: {name}" for name in VARIANTS))]


def pairs_of(s, pairs, testers=TESTERS):
    """Return the claim, and {tester: factor}."""
    rng, estimator = np.random.default_rng(), pairs.estimator(s.epsilon)
    present = rng.random((s.fits, s.words)) < 0.5
    features = [pairs.draw(estimator, coins, s.others, s.group) for coins in present]
    claim = Claim.of(pairs.cost(estimator), s.group)
    return claim, test(claim, np.concatenate(features), present.ravel(), testers)


def verify(s):
    """Return one row a tester."""
    claim, factors = pairs_of(s, CLAIMS[s.claim])
    return [
        {"tester": name, **said(claim.epsilon, claim.shown(factor)), "violated": factor >= 1}
        for name, factor in factors.items()
        if not math.isnan(factor)
    ]


def said(claimed, shown):
    """Return both numbers, and how much the one is of the other."""
    return {"claimed": claimed, "shown": shown, "per cent": 100 * shown / claimed if claimed else math.inf}


def verify_new(s):
    """Return how often a word is named that one document alone has; without it no word is there to be named."""
    selector = DPVocabularySelector(s.epsilon, delta=s.delta, method=s.method, max_words_per_unit=1)
    cost, present = selector.privacy_cost(), np.arange(s.words) % 2 == 0
    named = sum(weights(selector, present, 0, 1) > 0 for _ in range(s.fits))
    low = rate_bounds(int(named[present].sum()), s.fits * int(present.sum()))[0]
    return {**said(cost.event_delta, low), "violated": bool(low > cost.delta or named[~present].any())}


def variants(s):
    """Return how many of the runs were called violated."""
    right = s.variant.startswith("right: ")
    breaking, run_one = VARIANTS[s.variant.removeprefix("right: ")]
    found = 0
    for _ in range(s.runs):
        with nullcontext() if right else breaking():
            found += run_one()
    return {"violated": found}


def one_claim(pairs):
    """Return a function that says whether one run of these pairs, at epsilon 5, is called violated."""
    s = Settings("", 5.0, pairs.group[1], pairs.others[1], pairs.words, pairs.fits)
    return lambda: max(pairs_of(s, pairs)[1].values()) >= 1


def one_selection(method):
    """Return the same of new words."""
    return lambda: verify_new(New(method, 5.0, fits=5))["violated"]


FEW = Pairs(rounds, lambda e: PCTD(1, epsilon=e, max_iter=4), 1000, 35)
VARIANTS = {
    "noise times 0.8": (noise_times_08, one_claim(replace(FEW, fits=15))),
    "a unit counted twice": (unit_twice, one_claim(Pairs(rounds, lambda e: VIPSLDA(1, epsilon=e), 1000, 5))),
    "a share too many": (one_round_uncounted, one_claim(FEW)),
    "a threshold too low": (thresholds_times_08, one_selection("weighted_gaussian")),
    "a delta forgotten": (forgotten_delta, one_selection("policy_laplace")),
}
assert len(cells()) * len(TESTERS) + len(new_cells()) <= MOST_ROWS
TABLES = [
    Table("verify", Settings, cells, verify, timed=True),
    Table("verify_new", New, new_cells, verify_new, timed=True),
    Table("verify_variants", Variant, variant_cells, variants, timed=True),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
