"""The privacy-utility frontier: how good topics are at each epsilon, by every estimator and mechanism, on four corpora.

One row a fit goes into `frontier.csv` as soon as it is measured. Run the same command again to go on; rows that are
there are kept, unless they are of older code (`results.py`), or the estimator has changed since (each row has a
fingerprint: what the same estimator makes of a synthetic corpus), so that new defaults are measured by running again.
The other parts are kept alike: --vocabulary (words private too, by `make_fdptm_pipeline`), --ablation (one option
changed at a time), --attack (the likelihood ratio attack, online, on random halves). `frontier_page.py` makes the
tables and pictures of the documentation from them.

Corpora, each with 1,000 words taken as public, those of most training documents, English stop words apart:

* 20 Newsgroups: as in utility.py. Presence of words, at least ten a post, a random tenth is the test set.
* TweetRumors: the cleaned tweets of the paper on fully private topics. Presence, at least two words a tweet. Also with
  all words of the training tweets, five times as many.
* NIPS: the UCI bag of words. Counts: 1,000 words are in nearly all of these long documents.
* Enron: raw mail of six mailboxes, a stand-in for the whole. The unit is the *sender* with all mails; a tenth of the
  senders is the test set. Presence, at least ten words a mail.
* KOS: the UCI bag of words, for --ablation only.

Perplexity is by document completion. c_npmi is of ten words a topic, in the test texts (NIPS and KOS have no word
order: none). Accuracy is of logistic regression from the topic proportions of training posts to 20 newsgroups; that
classifier is not private, it judges the topics. Seconds are CPU of `fit` alone. "true epsilon" is what is proven of a
claimed form: empty for nothing at all, inf where exact counts are released. Seeds make numbers reproducible.

The fifth part, --little, is about small epsilon: the two main estimators without a prior, with GloVe vectors as a
`PublicPrior`, and `VIPSLDA` with "exact rounds", a bound and not private: it finds topics without noise, and releases
them once for the whole budget. It has Enron's mails cut to seven random words beside.

The sixth part, --floor, has corpora cut to 2,000 documents: is a model with topics ever worse than the best mixture of
uniform and private word frequencies, of the same budget? With vectors, and with vectors of the wrong words. Beside is
the perplexity of ten topics without noise, for points of the share.

The seventh part, --short, cuts documents to 3 to 12 words, and asks what an inferred prior of topic proportions does.

The first four parts take about an hour of CPU time on one core, the others another.

    python benchmarks/frontier.py --data FOLDER --frontier --vocabulary --ablation --attack --little --floor --short
    python benchmarks/frontier_page.py
"""

import argparse
import hashlib
import json
import lzma
import math
import os
import time
import warnings
from collections import namedtuple
from dataclasses import dataclass
from functools import cache, cached_property, partial, reduce
from itertools import pairwise, product
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import scipy.sparse as sp
from results import FRESH, STAMP, code_of, data_of, state
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdplda import (
    HDPLDA,
    PCTD,
    VIPSLDA,
    DPCountVectorizer,
    LocalPrivateLDA,
    PrivateCGSLDA,
    PublicPrior,
    make_fdptm_pipeline,
    privacy_guarantee,
)
from skdplda.attacks import membership_experiment
from skdplda.datasets import load_20newsgroups, load_uci_bow, make_lda_corpus
from skdplda.local import LocalRandomizer
from skdplda.metrics import coherence, perplexity, unigram_perplexity
from skdplda.privacy import epsilon_of
from skdplda.rounds import _adaptive, _estep_gibbs, _estep_variational
from skdplda.rounds._loop import run_round
from skdplda.rounds._prior import WordPrior
from skdplda.semantics import SemanticUnitVectorizer

EPSILONS, DELTA, N_WORDS, SPLIT_SEED = (0.5, 1.0, 2.0, 5.0, 10.0, math.inf), 1e-5, 1000, 0
DOCUMENT_TOKENS = 50  # of the document for which a guarantee for tokens is translated
FPR = 0.001  # at which attacks are compared
BOTH = ("PrivateCGSLDA", "VIPSLDA")
NEWS, TWEETS, NIPS, ENRON, KOS = "20 Newsgroups", "TweetRumors", "NIPS", "Enron, by sender", "KOS"
ALL_TWEETS = "TweetRumors, all words"
SHORT_MAILS, SHORT = "Enron's mails, 7 words", 7
VECTORS, PERMUTED, EXACT_ROUNDS = "vectors", "permuted vectors", "exact rounds"
FEW, MIXTURES = 2000, (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)  # training documents, and weights of uniform frequencies
YARDSTICK = 10  # topics of the model without noise that the shares of --floor are of


@dataclass(eq=False)
class Corpus:
    """Training and test documents over words that are taken as public.

    `counts` has each word of the training documents as often as it stands there; `texts` and `labels` are pairs, of
    training and test documents; `groups` has the user of each training document.
    """

    name: str
    topics: tuple
    train: object
    test: object
    words: object
    counts: object
    texts: list = None
    labels: list = None
    groups: object = None
    vectorizer: object = None

    @cached_property
    def reference(self):
        """The words of the test texts, in order."""
        analyze = self.vectorizer.build_analyzer()
        return [analyze(text) for text in self.texts[1]]

    @cached_property
    def all_words(self):
        """Number of different words of all test texts, those outside the vocabulary included."""
        return sum(len(set(words)) for words in self.reference)

    def training(self, contender):
        """Return what a contender is fitted to."""
        if not contender.startswith("PCTD"):
            return self.train
        unit = "sentence" if "sentences" in contender else 3
        if unit not in self._units:
            pattern = self.vectorizer.token_pattern
            cut = SemanticUnitVectorizer(unit, vocabulary=self.words, stop_words="english", token_pattern=pattern)
            self._units[unit] = cut.transform(self.texts[0])
        return self._units[unit]

    @cached_property
    def _units(self):
        return {}


TYPES = {"fingerprint": str, "epsilon": float} | dict.fromkeys(STAMP, str)


def split(n):
    """Return the numbers of training and test documents: a random tenth is the test set."""
    order = np.random.default_rng(SPLIT_SEED).permutation(n)
    return order[n // 10 :], order[: n // 10]


def corpus_of_texts(name, topics, texts, parts, least, labels=None, users=None, n_words=N_WORDS, **options):
    """Return the corpus of the words that most training documents have."""
    vectorizer = CountVectorizer(stop_words="english", max_features=n_words, binary=True, **options)
    vectorizer.fit([texts[i] for i in parts[0]])
    vectorizer.set_params(binary=False)
    found = [vectorizer.transform([texts[i] for i in part]) for part in parts]
    kept = [np.diff(X.indptr) >= least for X in found]
    counts, test = (X[long] for X, long in zip(found, kept, strict=True))
    parts = [part[long] for part, long in zip(parts, kept, strict=True)]
    return Corpus(
        name,
        topics,
        (counts > 0).astype(np.int64),
        (test > 0).astype(np.int64),
        vectorizer.get_feature_names_out(),
        counts,
        texts=[[texts[i] for i in part] for part in parts],
        labels=None if labels is None else [labels[part] for part in parts],
        groups=None if users is None else users[parts[0]],
        vectorizer=vectorizer,
    )


def newsgroups(data):
    """Bodies of posts."""
    posts = load_20newsgroups("all", path=data / "20news_bydate_raw.jsonl.xz")
    return corpus_of_texts(NEWS, (10, 20), posts.data, split(len(posts.data)), 10, posts.target)


def tweets(data, name=TWEETS, n_words=N_WORDS):
    """Cleaned tweets."""
    texts = json.loads((data / "pheme_clean.json").read_text(encoding="utf-8"))["text"]
    return corpus_of_texts(name, (5,), texts, split(len(texts)), 2, n_words=n_words, token_pattern=r"\S+")


def mails_of(data):
    """Return the mails."""
    with lzma.open(data / "enron_ham_raw.jsonl.xz", "rt") as file:
        return [json.loads(line) for line in file]


def short_mails(data):
    """Mails, each its own unit, cut to random words."""
    texts = [f"{mail['subject']}\n{mail['body']}" for mail in mails_of(data)]
    corpus = corpus_of_texts(SHORT_MAILS, (10,), texts, split(len(texts)), 10)
    rng = np.random.default_rng(SPLIT_SEED)
    corpus.train, corpus.test = (some_words(X, rng) for X in (corpus.train, corpus.test))
    return corpus


def some_words(X, rng, n_words=SHORT):
    """Return presence of so many random words of each document that has them."""
    bounds = [(first, last) for first, last in pairwise(X.indptr) if last - first >= n_words]
    words = [rng.permutation(X.indices[first:last])[:n_words] for first, last in bounds]
    rows = np.repeat(np.arange(len(words)), n_words)
    return sp.csr_array((np.ones(rows.size, np.int64), (rows, np.concatenate(words))), shape=X.shape)


def enron(data):
    """Mails, with their senders as users."""
    mails = mails_of(data)
    senders, users = np.unique([mail["frm"] for mail in mails], return_inverse=True)
    parts = [np.flatnonzero(np.isin(users, part)) for part in split(len(senders))]
    texts = [f"{mail['subject']}\n{mail['body']}" for mail in mails]
    return corpus_of_texts(ENRON, (10,), texts, parts, 10, users=users)


def uci(data, name, binary):
    """Return a bag of words without texts."""
    bag = load_uci_bow(data / f"docword.{name.lower()}.txt.gz", data / f"vocab.{name.lower()}.txt")
    train, test = split(bag.data.shape[0])
    chosen = np.argsort(-np.diff(bag.data[train].tocsc().indptr), kind="stable")[:N_WORDS]
    counts = bag.data.tocsc()[:, chosen].tocsr()
    X = (counts > 0).astype(np.int64) if binary else counts
    return Corpus(name, (10,), X[train], X[test], bag.feature_names[chosen], counts[train])


CORPORA = {
    NEWS: newsgroups,
    TWEETS: tweets,
    ALL_TWEETS: partial(tweets, name=ALL_TWEETS, n_words=None),
    NIPS: partial(uci, name=NIPS, binary=False),
    ENRON: enron,
    KOS: partial(uci, name=KOS, binary=True),
    SHORT_MAILS: short_mails,
}


FILES = {  # of `corpora.py`
    NEWS: "20news",
    TWEETS: "tweets",
    ALL_TWEETS: "tweets",
    NIPS: "nips",
    ENRON: "enron",
    KOS: "kos",
    SHORT_MAILS: "enron",
}
ESTIMATORS = {  # beginnings of the names of models
    "PrivateCGSLDA": PrivateCGSLDA,
    "VIPS": VIPSLDA,
    "PCTD": PCTD,
    "HDPLDA": HDPLDA,
    "LocalPrivateLDA": LocalPrivateLDA,
    "CDP-LDA": PrivateCGSLDA,
    "Zhu": PrivateCGSLDA,
}


def plain(kind, **options):
    """Return a maker of an estimator with options beside topics, budget and seed."""

    def make(n_topics, epsilon, seed):
        key = seed.to_bytes(32)  # as long as a secret would be, so that the status is that of a release
        return kind(n_topics, epsilon=epsilon, delta=DELTA, random_state=key, n_jobs=1, **options)

    return make


def local(n_topics, epsilon, seed):
    """Return the local model, where epsilon is that of one word's bit; a document has any number of words."""
    return LocalPrivateLDA(n_topics, randomizer=LocalRandomizer(epsilon), random_state=seed.to_bytes(32), n_jobs=1)


Contender = namedtuple("Contender", "name make corpora all_topics", defaults=((NEWS, TWEETS), False))
online = partial(plain, VIPSLDA, learning_method="online", sampling_rate=0.1)
sequential = partial(plain, PrivateCGSLDA, max_iter=100)
MAIN = (NEWS, TWEETS, ALL_TWEETS, NIPS, ENRON)
CONTENDERS = [
    Contender("PrivateCGSLDA", plain(PrivateCGSLDA), MAIN, True),
    Contender("VIPSLDA", plain(VIPSLDA), MAIN, True),
    Contender("PCTD, sentences", plain(PCTD), (NEWS, ENRON)),
    Contender("PCTD, 3 words", plain(PCTD), (NEWS, TWEETS, ENRON)),
    Contender("VIPSLDA, mini-batches", online()),
    Contender("PrivateCGSLDA, Laplace", plain(PrivateCGSLDA, mechanism="laplace")),
    Contender("HDPLDA", plain(HDPLDA)),
    Contender("PCTD, 3 words, units", plain(PCTD, noise="units"), (TWEETS,)),
    Contender("LocalPrivateLDA", local),
    Contender("CDP-LDA", sequential(mechanism="laplace-first")),
    Contender("CDP-LDA+", sequential(mechanism="laplace-every")),
    Contender("Zhu et al.", sequential(mechanism="laplace-last")),
    Contender("HDPLDA, published", plain(HDPLDA, table="sequential")),
    Contender("PCTD, 3 words, published", plain(PCTD, noise="units-each-iteration"), (TWEETS,)),
    Contender("VIPS, zcdp", online(accounting="zcdp")),
    Contender("VIPS, advanced", online(accounting="advanced")),
    Contender("VIPS, linear", online(accounting="linear")),
]


def true_epsilon(model, guarantee):
    """Return what is proven of the released values: inf where exact counts are among them, nan where nothing is."""
    if guarantee.status == "proven" or isinstance(model, PCTD):
        return guarantee.epsilon
    if isinstance(model, VIPSLDA):
        return epsilon_of(model._plan().event, guarantee.delta)
    return math.inf if getattr(model, "mechanism", "") == "laplace-last" else math.nan


def document_epsilon(model, guarantee):
    """Return the epsilon of the same fit for a document, nan where nothing is proven for it."""
    if guarantee.status != "proven" or guarantee.unit == "user":
        return math.nan
    if isinstance(model, HDPLDA):
        return model.document_cost(DOCUMENT_TOKENS).epsilon
    if isinstance(model, LocalPrivateLDA):
        return model.privacy_guarantee_.epsilon
    return guarantee.epsilon if guarantee.unit == "document" else math.nan


@cache
def synthetic():
    """Return the corpus of the fingerprints."""
    return make_lda_corpus(300, 60, 3, mean_length=20, random_state=0).data


def fingerprint(model, *more):
    """Return letters that change when an estimator learns otherwise, and not when only its text changes."""
    model = clone(model).set_params(n_components=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = np.round(model.fit(synthetic()).topic_word_, 6).tobytes()
        except ValueError as error:
            found = str(error).encode()
    return hashlib.sha256(found + repr(more).encode()).hexdigest()[:8]


class Rows:
    """Rows in a file, one a fit.

    Parameters
    ----------
    path : Path
        Of the CSV file.
    keys : tuple of str
        Columns that name a row. A later row of the same name replaces the earlier.
    values : tuple of str
        The other columns.
    """

    def __init__(self, path, keys, values):
        self.path, self.keys, self.columns = path, list(keys), [*keys, "fingerprint", *values, *STAMP]
        self.table = pd.DataFrame(columns=self.columns)
        if path.exists():
            self.table = pd.read_csv(path, dtype=TYPES).reindex(columns=self.columns)
            if list(pd.read_csv(path, nrows=0)) != self.columns:  # of an earlier form of this program
                self.table.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")
        rows = [row for row in self.table.to_dict("records") if state(row) == FRESH]
        self._known = {self._name(row): row["fingerprint"] for row in rows}

    def _name(self, row):
        return tuple(str(row[key]) for key in self.keys)

    def missing(self, row):
        """Whether there is no such row, or one of older code, or of an estimator that has changed since."""
        return self._known.get(self._name(row)) != row["fingerprint"]

    def add(self, row):
        """Write a row at once."""
        table = pd.DataFrame([row], columns=self.columns)
        table.to_csv(self.path, mode="a", header=not self.path.exists(), index=False, float_format="%.6g")
        self._known[self._name(row)] = row["fingerprint"]

    def tidy(self):
        """Leave the last row of each name, in order."""
        if self.path.exists():
            table = pd.read_csv(self.path, dtype=TYPES)
            table = table.drop_duplicates(self.keys, keep="last").sort_values(self.keys, kind="stable")
            table.to_csv(self.path, index=False, float_format="%.6g", lineterminator="\n")


def work_off(rows, tasks, fresh=False):
    """Measure what is missing; a fit that is refused leaves a row that says why."""
    begin, there = time.process_time(), 0
    for row, measure in tasks:
        if not fresh and not rows.missing(row):
            there += 1
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                row = row | measure()
            except ValueError as error:
                row = row | {"note": str(error)[:200]}
        rows.add(row | stamp(row, measure.func))
        print(*(row[key] for key in rows.keys), end=": ", sep=", ")
        minutes = (time.process_time() - begin) / 60
        print(f"{row.get('perplexity', row.get('TPR', math.nan)):.4g}, after {minutes:.1f} CPU minutes", flush=True)
    print(f"{rows.path.name}: {there} rows were there", flush=True)
    rows.tidy()


def stamp(row, judged):
    """Return the code and the corpora of a row, as in `results.py`."""
    estimators = [kind for name, kind in ESTIMATORS.items() if row["model"].startswith(name)]
    vectors = ["glove"] if row.get("help") in (VECTORS, PERMUTED) else []
    return dict(zip(STAMP, (code_of(judged, *estimators), data_of(FILES[row["corpus"]], *vectors)), strict=True))


@cache
def load(name, data):
    """Return a corpus."""
    return CORPORA[name](data)


@cache
def vectors_of(corpus, data):
    """Return what public vectors say of the words of a corpus."""
    glove = np.load(data / "glove6B_100d_top60k_f16.npz")
    names, vectors = str(glove["words"]).split("\n"), glove["vectors"]
    known = np.flatnonzero(np.isin(names, corpus.words))
    prior = PublicPrior.from_vectors(([names[i] for i in known], vectors[known].astype(np.float32)))
    return prior.for_words(corpus.words)


def chosen(options, all_topics=True):
    """Yield (corpus, number of topics), corpus by corpus."""
    for name in options.corpora:
        corpus = load(name, options.data)
        for n_topics in corpus.topics if all_topics else corpus.topics[:1]:
            if not options.topics or n_topics in options.topics:
                yield corpus, n_topics


def frontier(options):
    """Yield what there is to measure: every estimator and mechanism."""
    for corpus, n_topics in chosen(options):
        for contender, epsilon in product(CONTENDERS, options.epsilon):
            if corpus.name not in contender.corpora or (n_topics != corpus.topics[0] and not contender.all_topics):
                continue
            if options.only and contender.name not in options.only:
                continue
            mark = fingerprint(contender.make(n_topics, epsilon, 0))
            for seed in options.seeds:
                model = contender.make(n_topics, epsilon, seed)
                row = {"corpus": corpus.name, "topics": n_topics, "model": contender.name, "epsilon": epsilon}
                yield row | {"seed": seed, "fingerprint": mark}, partial(judge, corpus, contender.name, model)


def fitted(model, corpus, X):
    """Return CPU seconds of a fit."""
    begin = time.process_time()
    model.fit(X) if corpus.groups is None else model.fit(X, groups=corpus.groups)
    return time.process_time() - begin


def judge(corpus, contender, model):
    """Fit, and return the values of a row."""
    seconds = fitted(model, corpus, corpus.training(contender))
    guarantee = getattr(model, "bit_guarantee_", model.privacy_guarantee_)
    found = {
        "unit": guarantee.unit,
        "adjacency": guarantee.adjacency,
        "trust": guarantee.trust,
        "status": guarantee.status,
        "true epsilon": true_epsilon(model, guarantee),
        "document epsilon": document_epsilon(model, guarantee),
        "delta": guarantee.delta,
        "unigram": unigram_perplexity(corpus.train, corpus.test),
        "perplexity": model.perplexity(corpus.test),
        "cpu s": seconds,
    }
    if corpus.texts is not None:
        found["c_npmi"] = coherence(model, corpus.reference, corpus.words, measure="c_npmi", n_top=10)
    if corpus.labels is not None:
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        classifier.fit(model.transform(corpus.train), corpus.labels[0])
        found["accuracy"] = classifier.score(model.transform(corpus.test), corpus.labels[1])
    return found


def vocabulary(options):
    """Yield what there is to measure: words and topics private, for one budget."""
    for corpus, n_topics in chosen(options):
        for name, epsilon in product(BOTH, options.epsilon):
            if options.only and name not in options.only:
                continue
            pipeline = private_pipeline(corpus, name, n_topics, epsilon, 0)
            mark = fingerprint(pipeline["topics"], pipeline["words"])
            for seed in options.seeds:
                row = {"corpus": corpus.name, "topics": n_topics, "model": name, "epsilon": epsilon, "seed": seed}
                pipeline = private_pipeline(corpus, name, n_topics, epsilon, seed)
                yield row | {"fingerprint": mark}, partial(judge_pipeline, corpus, pipeline)


def private_pipeline(corpus, name, n_topics, epsilon, seed):
    """Return the recipe with nothing set but what a text is, and the model where that is not the recipe's own."""
    words = DPCountVectorizer(stop_words="english", binary=True, token_pattern=corpus.vectorizer.token_pattern)
    recipe = partial(make_fdptm_pipeline, epsilon, DELTA, n_components=n_topics, vectorizer=words)
    pipeline = recipe()
    if type(pipeline["topics"]).__name__ != name:
        pipeline = recipe(model={"PrivateCGSLDA": PrivateCGSLDA, "VIPSLDA": VIPSLDA}[name]())
    return pipeline.set_params(words__random_state=1000 + seed, topics__random_state=seed)


def judge_pipeline(corpus, pipeline):
    """Fit, and return the values of a row; the model without noise has the same words."""
    begin = time.process_time()
    pipeline.fit(corpus.texts[0])
    seconds = time.process_time() - begin
    X, X_test = (pipeline[:-1].transform(texts) for texts in corpus.texts)
    exact = clone(pipeline["topics"]).set_params(epsilon=math.inf).fit(X)
    guarantee = privacy_guarantee(pipeline)
    return {
        "words": X.shape[1],
        "tokens kept": X_test.sum() / corpus.all_words,
        "tokens kept of fixed": corpus.test.sum() / corpus.all_words,
        "true epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "epsilon of topics": pipeline["topics"].epsilon,
        "unigram": unigram_perplexity(X, X_test),
        "perplexity": pipeline["topics"].perplexity(X_test),
        "non-private": exact.perplexity(X_test),
        "cpu s": seconds,
    }


def even(table):
    """Return equal weights of words."""
    return np.ones(len(table), np.float32)


# An ablation is a function that takes the class of an estimator and returns a subclass, which overrides hooks of
# `BaseRoundsModel`. A name that is gone raises an error, and so does an ablation that changes nothing.


def with_tables(change):
    """Return the ablation that does something to the M-step: `change(tables, model, randomness)`."""

    def ablate(kind):
        class Ablated(kind):
            def _make_tables(self, plan, randomness, data):
                tables = super()._make_tables(plan, randomness, data)
                change(tables, self, randomness)
                return tables

        return Ablated

    return ablate


def with_e_step(settings):
    """Return the ablation that makes the E-step with other settings: those of `settings(model)`."""

    def ablate(kind):
        class Ablated(kind):
            def _make_e_step(self, plan, randomness, data):
                make = super()._make_e_step(plan, randomness, data)
                found = settings(self)
                topics = make.keywords.get("make", make)  # of an `AdaptiveEStep`, or the E-step itself
                if unknown := found.keys() - topics.keywords.keys():
                    raise AttributeError(f"the E-step of {kind.__name__} has no settings {sorted(unknown)}")
                topics = partial(topics, **found)
                return partial(make, make=topics) if "make" in make.keywords else topics

        return Ablated

    return ablate


def with_constant(module, name, value):
    """Return the ablation that has another value for a name of a module while it fits."""

    def ablate(kind):
        class Ablated(kind):
            def fit(self, *data, **more):
                with patch.object(module, name, value):
                    return super().fit(*data, **more)

        return Ablated

    return ablate


def both(*ablations):
    """Return several ablations as one."""
    return lambda kind: reduce(lambda done, ablate: ablate(done), ablations, kind)


def known(thing, name):
    """Return the name of an attribute that must exist."""
    getattr(thing, name)
    return name


def weigh_alike(tables, model, randomness):
    """Take contributions whose words were not weighted."""
    setattr(tables, known(tables, "_weighted"), False)


COUNTS = "counts"  # a change of the data, not of the estimator
OPTIONS = (  # a name, of which models, and what is changed: parameters, or an ablation of the class
    ("as it is", BOTH, {}),
    ("model: last table only", BOTH, with_constant(_adaptive, "FORGET", 1.0)),
    ("model: no forgetting", BOTH, with_constant(_adaptive, "FORGET", 0.0)),
    ("no smoothing between rounds", BOTH, with_constant(_adaptive, "SMOOTHING", 0.0)),
    ("smoothing 0.2 between rounds", BOTH, with_constant(_adaptive, "SMOOTHING", 0.2)),
    ("topics drawn in all rounds", BOTH[:1], with_constant(_estep_gibbs, "INFERRED_ROUNDS", 0)),
    ("topics inferred in all rounds", BOTH[:1], with_constant(_estep_gibbs, "INFERRED_ROUNDS", 1000)),
    ("documents start anew in each round", BOTH[1:], with_e_step(lambda model: {"remember": False, "max_iter": 50})),
    (
        "words weigh alike",
        BOTH[:1],
        both(
            *(with_constant(module, "word_weights", even) for module in (_estep_gibbs, _estep_variational)),
            with_tables(weigh_alike),
        ),
    ),
    ("words weigh alike", BOTH[1:], both(with_e_step(lambda model: {"weighted": False}), with_tables(weigh_alike))),
    ("alpha not halved in rounds", BOTH, with_constant(_estep_variational, "ROUND_ALPHA", 1.0)),
    ("Gamma initialisation of shape 1", BOTH, with_constant(_adaptive, "GAMMA_SHAPE", 1.0)),
    ("equal noise in all rounds", BOTH, with_constant(_adaptive, "PRECISION_RATIO", 1.0)),
    ("10 rounds", BOTH, {"max_iter": 10}),
    ("40 rounds", BOTH, {"max_iter": 40}),
    ("half of the documents a round", BOTH, {"sampling_rate": 0.5}),
    ("counts, not presence", BOTH, COUNTS),
    ("prior of topics 0.01", BOTH, {"topic_word_prior": 0.01}),
    ("prior of topics 1", BOTH, {"topic_word_prior": 1.0}),
    ("1 sweep a round", BOTH[:1], {"local_sweeps": 1}),
    ("20 sweeps a round", BOTH[:1], {"local_sweeps": 20}),
    ("Laplace noise", BOTH[:1], {"mechanism": "laplace"}),
    ("contributions clipped, not equal", BOTH[1:], {"max_norm": 5.0}),
    ("mini-batches of a tenth", BOTH[1:], {"learning_method": "online", "sampling_rate": 0.1}),
    ("5 updates a document", BOTH[1:], {"max_doc_update_iter": 5}),
    ("50 updates a document", BOTH[1:], {"max_doc_update_iter": 50}),
)


def ablation(options):
    """Yield what there is to measure: one option changed at a time."""
    makers = {contender.name: contender.make for contender in CONTENDERS}
    for corpus, n_topics in chosen(options, all_topics=False):
        for (option, models, changes), epsilon in product(OPTIONS, options.epsilon):
            for name in models:
                if options.only and name not in options.only:
                    continue
                make = partial(changed, makers[name], n_topics, epsilon, changes)
                mark = mark_of_option(makers[name], n_topics, epsilon, option, changes)
                for seed in options.seeds:
                    row = {"corpus": corpus.name, "topics": n_topics, "model": name, "option": option}
                    row |= {"epsilon": epsilon, "seed": seed, "fingerprint": mark}
                    X = corpus.counts if changes == COUNTS else corpus.train
                    yield row, partial(judge_option, corpus, X, partial(make, seed), makers[name], n_topics, seed)


def changed(make, n_topics, epsilon, changes, seed):
    """Return the estimator, as changed."""
    model = make(n_topics, epsilon, seed)
    if not callable(changes):
        return model.set_params(**{} if changes == COUNTS else changes)
    return changes(type(model))(**model.get_params(deep=False))


def mark_of_option(make, n_topics, epsilon, option, changes):
    """Return the fingerprint of a changed estimator; raise RuntimeError if an ablation changes nothing."""
    mark = fingerprint(changed(make, n_topics, epsilon, changes, 0))
    if callable(changes) and math.isfinite(epsilon) and mark == fingerprint(make(n_topics, epsilon, 0)):
        raise RuntimeError(f"{option!r} leaves {make(n_topics, epsilon, 0)} as it is: mend this ablation")
    return mark


@cache
def exact_perplexity(corpus, make, n_topics, seed):
    """Return what the estimator as it is reaches without noise."""
    model = make(n_topics, math.inf, seed)
    fitted(model, corpus, corpus.train)
    return model.perplexity(corpus.test)


def judge_option(corpus, X, change, make, n_topics, seed):
    """Fit, and return the values of a row."""
    model = change()
    found = {"cpu s": fitted(model, corpus, X), "perplexity": model.perplexity(corpus.test)}
    exact = exact_perplexity(corpus, make, n_topics, seed)
    return found | {"unigram": unigram_perplexity(corpus.train, corpus.test), "non-private": exact}


class ExactRounds(VIPSLDA):
    """Topics are found without noise, and then released once for the whole budget. It is not private."""

    def _run(self, plan, randomness, data, charge, callback):
        exact = VIPSLDA(self.n_components, epsilon=math.inf, random_state=self.random_state, n_jobs=1)
        table = exact.fit(data.documents, groups=self._users).components_.T
        e_step, tables = self._e_step(plan, randomness, data), self._make_tables(plan, randomness, data)
        run_round(e_step, tables, plan, randomness, 0)  # word frequencies
        tables.table, tables._todo = tables._scaled(table), [("topics", 1 - math.fsum(tables.spent))]
        run_round(e_step, tables, plan, randomness, 1)
        return self._model_of(tables, 2)

    def fit(self, X, y=None, groups=None):
        """Fit; the budget of no ledger is charged."""
        self._users = groups
        return super().fit(X, groups=groups)


LITTLE = (  # models, and what helps them
    ("VIPSLDA", "none"),
    ("VIPSLDA", VECTORS),
    ("VIPSLDA", EXACT_ROUNDS),
    ("PrivateCGSLDA", VECTORS),
    ("PrivateCGSLDA", "none"),
)


def little(options):
    """Yield what there is to measure: small epsilon, with and without public vectors; all of one seed first."""
    makers = {contender.name: contender.make for contender in CONTENDERS}
    for seed in options.seeds:
        tasks = ((*setting, *rest) for setting in chosen(options) for rest in product(LITTLE, options.epsilon))
        for corpus, n_topics, (name, help_), epsilon in tasks:
            if (options.only and name not in options.only) or (options.aids and help_ not in options.aids):
                continue
            model = makers[name](n_topics, epsilon, 0)
            if help_ == VECTORS:
                words = synthetic().shape[1]
                model.set_params(prior=WordPrior(np.random.default_rng(SPLIT_SEED).standard_normal((words, 5))))
            row = {"corpus": corpus.name, "topics": n_topics, "model": name, "help": help_, "epsilon": epsilon}
            row |= {"seed": seed, "fingerprint": fingerprint(model, help_)}
            yield row, partial(judge_little, corpus, options.data, makers[name], row, seed)


def judge_little(corpus, data, make, row, seed):
    """Fit, and return the values of a row."""
    model = make(row["topics"], row["epsilon"], seed)
    if row["help"] == EXACT_ROUNDS:
        model = ExactRounds(**model.get_params(deep=False))
    elif row["help"] == VECTORS:
        model.set_params(prior=vectors_of(corpus, data))
    found = {"cpu s": fitted(model, corpus, corpus.train), "perplexity": model.perplexity(corpus.test)}
    exact = exact_perplexity(corpus, make, row["topics"], seed)
    unigram = unigram_perplexity(corpus.train, corpus.test)
    return found | {"unigram": unigram, "non-private": exact, "releases": model.n_iter_}


@cache
def few_documents(corpus):
    """Return the corpus with FEW random training documents; users stay whole, so that theirs are all."""
    n = corpus.train.shape[0]
    if corpus.groups is not None or n <= FEW:
        return corpus
    train = corpus.train[np.sort(np.random.default_rng(SPLIT_SEED).permutation(n)[:FEW])]
    return Corpus(corpus.name, corpus.topics, train, corpus.test, corpus.words, train)


@cache
def least_perplexity(corpus, make, epsilon, seed):
    """Return the floor: the best mixture of uniform and private word frequencies, of a model of one topic."""
    model = make(1, epsilon, seed)
    fitted(model, corpus, corpus.train)
    words, uniform = model.topic_word_, np.full(model.topic_word_.shape, 1 / len(corpus.words))
    return min(perplexity(corpus.test, w * uniform + (1 - w) * words) for w in MIXTURES)


def floor(options):
    """Yield what there is to measure: few documents, against the best mixture of word frequencies."""
    makers = {contender.name: contender.make for contender in CONTENDERS}
    for seed in options.seeds:
        for corpus_name, epsilon, help_ in product(options.corpora, options.epsilon, ("none", VECTORS, PERMUTED)):
            corpus = load(corpus_name, options.data)
            for name, n_topics in product(BOTH, options.topics or (10,)):
                if options.only and name not in options.only:
                    continue
                model = makers[name](n_topics, epsilon, 0)
                row = {"corpus": corpus.name, "topics": n_topics, "model": name, "help": help_, "epsilon": epsilon}
                row |= {"seed": seed, "fingerprint": fingerprint(model, help_)}
                yield row, partial(judge_floor, few_documents(corpus), options.data, makers[name], row)


def judge_floor(corpus, data, make, row):
    """Fit, and return the values of a row."""
    model = make(row["topics"], row["epsilon"], row["seed"])
    if row["help"] != "none":
        prior = vectors_of(corpus, data)
        if row["help"] == PERMUTED:
            order = np.random.default_rng(SPLIT_SEED).permutation(len(corpus.words))
            prior = WordPrior(prior.vectors[order])
        model.set_params(prior=prior)
    found = {"cpu s": fitted(model, corpus, corpus.train), "perplexity": model.perplexity(corpus.test)}
    least = least_perplexity(corpus, make, row["epsilon"], row["seed"])
    exact = exact_perplexity(corpus, make, YARDSTICK, row["seed"])
    return found | {"unigram": unigram_perplexity(corpus.train, corpus.test), "floor": least, "non-private": exact}


LENGTHS, INFERRED = (3, 5, 7, 12), "infer"  # words a document, and what helps: doc_topic_prior="infer"


@cache
def cut(corpus, n_words):
    """Return the documents cut to so many random words; shorter ones are left out."""
    rng = np.random.default_rng(SPLIT_SEED)
    train, test = (some_words((X > 0).astype(np.int64), rng, n_words) for X in (corpus.train, corpus.test))
    return Corpus(corpus.name, corpus.topics, train, test, corpus.words, train)


def short(options):
    """Yield what there is to measure: texts cut to few words, with and without an inferred prior."""
    makers = {contender.name: contender.make for contender in CONTENDERS}
    for seed, name, n_words, epsilon in product(options.seeds, options.corpora, LENGTHS, options.epsilon):
        corpus = cut(load(name, options.data), n_words)
        for (model, n_topics), help_ in product(product(BOTH, options.topics or (1, 3, 10)), ("none", INFERRED)):
            if (options.only and model not in options.only) or (n_topics == 1 and help_ == INFERRED):
                continue
            row = {"corpus": name, "topics": n_topics, "model": model, "words": n_words, "help": help_}
            row |= {"epsilon": epsilon, "seed": seed}
            row["fingerprint"] = fingerprint(short_model(makers[model], row | {"seed": 0}))
            yield row, partial(judge_short, corpus, makers[model], row)


def short_model(make, row):
    """Return the estimator of a row."""
    model = make(row["topics"], row["epsilon"], row["seed"])
    return model.set_params(doc_topic_prior=INFERRED) if row["help"] == INFERRED else model


def judge_short(corpus, make, row):
    """Fit, and return the values of a row."""
    model = short_model(make, row)
    found = {"cpu s": fitted(model, corpus, corpus.train), "perplexity": model.perplexity(corpus.test)}
    return found | {"unigram": unigram_perplexity(corpus.train, corpus.test)}


ATTACKED = ("PrivateCGSLDA", "VIPSLDA", "Zhu et al.")


def attack(options):
    """Yield what there is to measure: members found at 0.1 % false alarms."""
    for corpus, n_topics in chosen(options, all_topics=False):
        for contender, epsilon in product(CONTENDERS, options.epsilon):
            if contender.name in ATTACKED:
                model = contender.make(n_topics, epsilon, 0)
                row = {"corpus": corpus.name, "topics": n_topics, "model": contender.name, "epsilon": epsilon}
                row["fingerprint"] = fingerprint(model, options.shadows)
                yield row, partial(attack_once, corpus, model, options.shadows)


def attack_once(corpus, model, shadows):
    """Attack, and return the values of a row."""
    begin = time.process_time()
    results = membership_experiment(
        model, corpus.train, n_models=shadows, thresholds=(), vocabulary="given", random_state=0
    )
    result = results["LiRA online (zeta)"]
    at = result.tpr_at(FPR)
    found = {"documents": corpus.train.shape[0], "models": shadows, "TPR": at.rate, "low": at.low, "high": at.high}
    return found | {"AUC": result.auc, "cpu s": time.process_time() - begin}


@dataclass(frozen=True)
class Part:
    """A table: what is measured, which columns name a row, which hold values, and the defaults of the command line."""

    tasks: object
    keys: tuple
    values: tuple
    corpora: tuple
    epsilon: tuple = EPSILONS
    seeds: tuple = (0, 1, 2)


MODEL, GAIN = ("corpus", "topics", "model"), ("unigram", "perplexity")
PARTS = {
    "frontier": Part(
        frontier,
        (*MODEL, "epsilon", "seed"),
        ("unit", "adjacency", "trust", "status", "true epsilon", "document epsilon", "delta")
        + (*GAIN, "c_npmi", "accuracy", "cpu s", "note"),
        MAIN,
    ),
    "vocabulary": Part(
        vocabulary,
        (*MODEL, "epsilon", "seed"),
        ("words", "tokens kept", "tokens kept of fixed", "true epsilon", "delta", "epsilon of topics")
        + (*GAIN, "non-private", "cpu s", "note"),
        (NEWS, TWEETS),
        (1.0, 2.0, 5.0, 10.0),
    ),
    "ablation": Part(
        ablation,
        (*MODEL, "option", "epsilon", "seed"),
        (*GAIN, "non-private", "cpu s", "note"),
        (NEWS, KOS, TWEETS),
        (1.0, 5.0),
        (0, 1),
    ),
    "little": Part(
        little,
        (*MODEL, "help", "epsilon", "seed"),
        (*GAIN, "non-private", "releases", "cpu s", "note"),
        (TWEETS, SHORT_MAILS, NIPS, NEWS, ENRON, ALL_TWEETS),
        (0.5, 1.0, 2.0, 5.0),
        (0, 1),
    ),
    "floor": Part(
        floor,
        (*MODEL, "help", "epsilon", "seed"),
        (*GAIN, "floor", "non-private", "cpu s", "note"),
        (KOS, NIPS, NEWS, TWEETS),
        (0.5, 1.0, 2.0),
        (0,),
    ),
    "short": Part(
        short,
        (*MODEL, "words", "help", "epsilon", "seed"),
        (*GAIN, "cpu s", "note"),
        (KOS, NEWS),
        (2.0, 10.0),
        (0, 1),
    ),
    "attack": Part(
        attack,
        (*MODEL, "epsilon"),
        ("documents", "models", "TPR", "low", "high", "AUC", "cpu s", "note"),
        (TWEETS,),
    ),
}


def main():
    """Measure what is missing, part by part."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    for name in PARTS:
        parser.add_argument(f"--{name}", dest="parts", action="append_const", const=name)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, help="default: those of the documentation")
    parser.add_argument("--only", nargs="+", help="only models of these names")
    parser.add_argument("--aids", nargs="+", choices=sorted({aid for _, aid in LITTLE}), help="of --little, only these")
    parser.add_argument("--topics", type=int, nargs="+")
    parser.add_argument("--epsilon", type=float, nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--shadows", type=int, default=32, help="models of the attack (default: 32)")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    parser.add_argument("--quick", action="store_true", help="tweets, two epsilons, one seed; into frontier_quick*.csv")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    if options.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    options.data = Path(options.data)
    options.output.mkdir(parents=True, exist_ok=True)
    if options.quick:
        options.corpora, options.epsilon, options.seeds, options.shadows = (TWEETS,), (5.0, math.inf), (0,), 4
    for name in options.parts or ["frontier"]:
        part = PARTS[name]
        defaults = {key: getattr(part, key) for key in ("corpora", "epsilon", "seeds") if not getattr(options, key)}
        stem = "_".join(["frontier"] + ["quick"] * options.quick + [name] * (name != "frontier"))
        rows = Rows(options.output / f"{stem}.csv", part.keys, part.values)
        work_off(rows, part.tasks(argparse.Namespace(**vars(options) | defaults)), options.fresh)


if __name__ == "__main__":
    main()
