"""The privacy-utility frontier: how good topics are at each epsilon, by every estimator and mechanism, on four corpora.

One row a fit goes into `frontier.csv` as soon as it is measured. Run the same command again to go on; rows that are
there are kept. The other tables are kept alike: frontier_vocabulary (words private too, by `make_fdptm_pipeline`),
frontier_ablation (one option changed at a time), frontier_attack (the likelihood ratio attack, online, on random
halves). `frontier_page.py` makes the tables and pictures of the documentation from them.

Corpora, each with 1,000 words taken as public, those of most training documents, English stop words apart:

* 20 Newsgroups: posts without headers. Presence of words, at least ten a post, a random tenth is the test set.
* TweetRumors: the cleaned tweets of the paper on fully private topics. Presence, at least two words a tweet. Also with
  all words of the training tweets, five times as many.
* NIPS: the UCI bag of words. Counts: 1,000 words are in nearly all of these long documents.
* Enron: raw mail of six mailboxes, a stand-in for the whole. The unit is the *sender* with all mails; a tenth of the
  senders is the test set. Presence, at least ten words a mail.
* KOS: the UCI bag of words, for ablations only.

Perplexity is by document completion. c_npmi is of ten words a topic, in the test texts (NIPS and KOS have no word
order: none). Accuracy is of logistic regression from the topic proportions of training posts to 20 newsgroups; that
classifier is not private, it judges the topics. Seconds are CPU of `fit` alone. "true epsilon" is what is proven of a
claimed form: empty for nothing at all, inf where exact counts are released. Seeds make numbers reproducible.

The fifth table, frontier_little, is about small epsilon: the two main estimators without a prior, with GloVe vectors as
a `PublicPrior`, and `VIPSLDA` with "exact rounds", a bound and not private: it finds topics without noise, and releases
them once for the whole budget. It has Enron's mails cut to seven random words beside.

The sixth, frontier_floor, has corpora cut to 2,000 documents: is a model with topics ever worse than the best mixture
of uniform and private word frequencies, of the same budget? With vectors, and with vectors of the wrong words. Beside
is the perplexity of ten topics without noise, for points of the share.

The seventh, frontier_short, cuts documents to 3 to 12 words, and asks what the vote for a prior does, with noise and
without.

The eighth, frontier_much, is about large epsilon, beside twenty rounds without noise: what the form itself costs.

The first four take about an hour of CPU time on one core, the others another.

    python benchmarks/frontier.py
    python benchmarks/frontier.py frontier_little --only corpus=NIPS seed=0
    python benchmarks/frontier_page.py
"""

import math
import warnings
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property, partial, reduce, wraps
from inspect import signature
from itertools import pairwise, product
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from apart import timed
from corpora import glove, json_rows, newsgroup_posts, path_of, split, tweet_texts
from results import Table, run
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
from skdplda.datasets import frequent_words, load_uci_bow, make_lda_corpus
from skdplda.esteps import _variational
from skdplda.local import LocalRandomizer
from skdplda.metrics import coherence, perplexity, unigram_perplexity
from skdplda.priors._public import WordPrior
from skdplda.privacy import epsilon_of
from skdplda.published import CDPLDA, CDPLDAPlus, PriTopLDA, PublishedHDPLDA, PublishedPCTD, PublishedVIPSLDA
from skdplda.rounds import Spending, TopicWordCounts, _adaptive, _prices
from skdplda.rounds._loop import converse
from skdplda.rounds._queries import WordTotals
from skdplda.semantics import SemanticUnitVectorizer

EPSILONS, DELTA, N_WORDS, SPLIT_SEED = (0.5, 1.0, 2.0, 5.0, 10.0, math.inf), 1e-5, 1000, 0
MUCH = (10.0, 20.0, 50.0, 200.0, 1000.0, math.inf)
KINDS = {"PrivateCGSLDA": PrivateCGSLDA, "VIPSLDA": VIPSLDA}
BOTH = tuple(KINDS)
NEWS, TWEETS, NIPS, ENRON, KOS = "20 Newsgroups", "TweetRumors", "NIPS", "Enron, by sender", "KOS"
ALL_TWEETS = "TweetRumors, all words"
ALL_WORDS = 10**6  # more than any corpus has
SHORT_MAILS, SHORT = "Enron's mails, 7 words", 7
VECTORS, PERMUTED, EXACT_ROUNDS = "vectors", "permuted vectors", "exact rounds"
MIXTURES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)  # weights of uniform frequencies


@dataclass(frozen=True)
class Fit:
    """Of a row of any table; `published_sweeps` are of the published samplers."""

    corpus: str
    topics: int
    model: str
    epsilon: float
    seed: int
    delta: float = DELTA
    n_words: int = N_WORDS
    published_sweeps: int = 100


@dataclass(frozen=True)
class Guaranteed(Fit):
    """Of a row of the frontier; for a document of so many tokens a guarantee for tokens is translated."""

    document_tokens: int = 50


@dataclass(frozen=True)
class Ablation(Fit):
    """Of a row with one option changed."""

    option: str = "as it is"


@dataclass(frozen=True)
class Little(Fit):
    """Of a row with help."""

    help: str = "none"


@dataclass(frozen=True)
class Floor(Little):
    """Of a row of few documents; shares are of a model without noise of `yardstick` topics."""

    few: int = 2000
    yardstick: int = 10


@dataclass(frozen=True)
class Short(Little):
    """Of a row of documents cut to so many words."""

    words: int = 0


@dataclass(frozen=True)
class Much(Fit):
    """Of a row of much budget; without noise, `VIPSLDA` has so many rounds."""

    exact_rounds: int = 20


@dataclass(frozen=True)
class Attack(Fit):
    """Of a row of an attack with so many shadow models, at a rate of false alarms."""

    models: int = 32
    fpr: float = 0.001


@dataclass(eq=False)
class Corpus:
    """Training and test documents over words that are taken as public.

    `counts` has each word of the training documents as often as it stands there; `texts` and `labels` are pairs, of
    training and test documents; `groups` has the user of each training document.
    """

    name: str
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


def corpus_of_texts(name, texts, parts, least, labels=None, users=None, n_words=N_WORDS, **options):
    """Return the corpus of the words that most training documents have."""
    words = frequent_words([texts[i] for i in parts[0]], n_words, stop_words="english", binary=True, **options)
    vectorizer = CountVectorizer(vocabulary=words, **options)
    found = [vectorizer.transform([texts[i] for i in part]) for part in parts]
    kept = [np.diff(X.indptr) >= least for X in found]
    counts, test = (X[long] for X, long in zip(found, kept, strict=True))
    parts = [part[long] for part, long in zip(parts, kept, strict=True)]
    return Corpus(
        name,
        (counts > 0).astype(np.int64),
        (test > 0).astype(np.int64),
        vectorizer.get_feature_names_out(),
        counts,
        texts=[[texts[i] for i in part] for part in parts],
        labels=None if labels is None else [labels[part] for part in parts],
        groups=None if users is None else users[parts[0]],
        vectorizer=vectorizer,
    )


def newsgroups(n_words=N_WORDS):
    """Bodies of posts."""
    posts = newsgroup_posts()
    return corpus_of_texts(NEWS, posts.data, split(len(posts.data)), 10, posts.target, n_words=n_words)


def tweets(n_words, name=TWEETS):
    """Cleaned tweets."""
    texts = tweet_texts()
    return corpus_of_texts(name, texts, split(len(texts)), 2, n_words=n_words, token_pattern=r"\S+")


def short_mails(n_words):
    """Mails, each its own unit, cut to random words."""
    texts = [f"{mail['subject']}\n{mail['body']}" for mail in json_rows("enron")]
    corpus = corpus_of_texts(SHORT_MAILS, texts, split(len(texts)), 10, n_words=n_words)
    rng = np.random.default_rng(SPLIT_SEED)
    corpus.train, corpus.test = (some_words(X, rng) for X in (corpus.train, corpus.test))
    return corpus


def some_words(X, rng, n_words=SHORT):
    """Return presence of so many random words of each document that has them."""
    bounds = [(first, last) for first, last in pairwise(X.indptr) if last - first >= n_words]
    words = [rng.permutation(X.indices[first:last])[:n_words] for first, last in bounds]
    rows = np.repeat(np.arange(len(words)), n_words)
    return sp.csr_array((np.ones(rows.size, np.int64), (rows, np.concatenate(words))), shape=X.shape)


def enron(n_words):
    """Mails, with their senders as users."""
    mails = json_rows("enron")
    senders, users = np.unique([mail["frm"] for mail in mails], return_inverse=True)
    parts = [np.flatnonzero(np.isin(users, part)) for part in split(len(senders))]
    texts = [f"{mail['subject']}\n{mail['body']}" for mail in mails]
    return corpus_of_texts(ENRON, texts, parts, 10, users=users, n_words=n_words)


def uci(n_words, name, binary):
    """Return a bag of words without texts."""
    bag = load_uci_bow(path_of(name.lower()), path_of(f"{name.lower()}-words"))
    train, test = split(bag.data.shape[0])
    chosen = np.argsort(-np.diff(bag.data[train].tocsc().indptr), kind="stable")[:n_words]
    counts = bag.data.tocsc()[:, chosen].tocsr()
    X = (counts > 0).astype(np.int64) if binary else counts
    return Corpus(name, X[train], X[test], bag.feature_names[chosen], counts[train])


CORPORA = {
    NEWS: newsgroups,
    TWEETS: tweets,
    ALL_TWEETS: lambda n_words: tweets(ALL_WORDS, ALL_TWEETS),
    NIPS: partial(uci, name=NIPS, binary=False),
    ENRON: enron,
    KOS: partial(uci, name=KOS, binary=True),
    SHORT_MAILS: short_mails,
}
TOPICS = dict.fromkeys(CORPORA, (10,)) | {NEWS: (10, 20), TWEETS: (5,), ALL_TWEETS: (5,)}
FILES = {  # of `corpora.py`
    NEWS: "20news",
    TWEETS: "tweets",
    ALL_TWEETS: "tweets",
    NIPS: "nips",
    ENRON: "enron",
    KOS: "kos",
    SHORT_MAILS: "enron",
}


def plain(kind, **options):
    """Return a maker of an estimator of some settings, with options beside."""

    def make(s):
        key = s.seed.to_bytes(32)  # as long as a secret would be, so that the status is that of a release
        delta = {"delta": s.delta} if "delta" in signature(kind).parameters else {}  # some papers sum epsilons
        sweeps = {"max_iter": s.published_sweeps} if kind in (CDPLDA, CDPLDAPlus, PriTopLDA) else {}
        return kind(s.topics, epsilon=s.epsilon, random_state=key, n_jobs=1, **delta, **sweeps, **options)

    return make


def local(s):
    """Return the local model, where epsilon is that of one word's bit; a document has any number of words."""
    randomizer = LocalRandomizer(s.epsilon)
    return LocalPrivateLDA(s.topics, randomizer=randomizer, random_state=s.seed.to_bytes(32), n_jobs=1)


claimed_path = partial(plain, PublishedVIPSLDA, sampling_rate=0.1)
CONTENDERS = {
    **{name: plain(kind) for name, kind in KINDS.items()},
    "PCTD, sentences": plain(PCTD),
    "PCTD, 3 words": plain(PCTD),
    "VIPSLDA, mini-batches": plain(VIPSLDA, learning_method="online", sampling_rate=0.1),
    "PrivateCGSLDA, Laplace": plain(PrivateCGSLDA, mechanism="laplace"),
    "HDPLDA": plain(HDPLDA),
    "PCTD, 3 words, units": plain(PCTD, noise_on="units"),
    "LocalPrivateLDA": local,
    "CDP-LDA": plain(CDPLDA),
    "CDP-LDA+": plain(CDPLDAPlus),
    "Zhu et al.": plain(PriTopLDA),
    "HDPLDA, published": plain(PublishedHDPLDA),
    "PCTD, 3 words, published": plain(PublishedPCTD),
    "VIPS, zcdp": claimed_path(accounting="zcdp"),
    "VIPS, advanced": claimed_path(accounting="advanced"),
    "VIPS, linear": claimed_path(accounting="linear"),
}
SEEDS = (0, 1, 2)
MAIN = (NEWS, TWEETS, ALL_TWEETS, NIPS, ENRON)
JUDGED = dict.fromkeys(CONTENDERS, (NEWS, TWEETS)) | {  # on which corpora
    "PrivateCGSLDA": MAIN,
    "VIPSLDA": MAIN,
    "PCTD, sentences": (NEWS, ENRON),
    "PCTD, 3 words": (NEWS, TWEETS, ENRON),
    "PCTD, 3 words, units": (TWEETS,),
    "PCTD, 3 words, published": (TWEETS,),
}


def made(s):
    """Return the estimator of some settings."""
    return CONTENDERS[s.model](s)


def true_epsilon(model, guarantee):
    """Return what is proven of the released values: inf where exact counts are among them, nan where nothing is."""
    if guarantee.status == "proven" or isinstance(model, PCTD):
        return guarantee.epsilon
    if isinstance(model, VIPSLDA):
        return epsilon_of(model._plan().event, guarantee.delta)
    return math.inf if isinstance(model, PriTopLDA) else math.nan


def document_epsilon(model, guarantee, tokens):
    """Return the epsilon of the same fit for a document, nan where nothing is proven for it."""
    if guarantee.status != "proven" or guarantee.unit == "user":
        return math.nan
    if isinstance(model, HDPLDA):
        return model.document_cost(tokens).epsilon
    if isinstance(model, LocalPrivateLDA):
        return model.privacy_guarantee_.epsilon
    return guarantee.epsilon if guarantee.unit == "document" else math.nan


@cache
def load(name, n_words=N_WORDS):
    """Return a corpus."""
    return CORPORA[name](n_words)


@cache
def vectors_of(corpus):
    """Return what public vectors say of the words of a corpus."""
    names, vectors = glove()
    known = np.flatnonzero(np.isin(names, corpus.words))
    prior = PublicPrior.from_vectors(([names[i] for i in known], vectors[known].astype(np.float32)))
    return prior.for_words(corpus.words)


def grid(corpora, epsilons, models=BOTH, sizes=None):
    """Return (corpus, topics, model, epsilon): each corpus with its numbers of topics, or with some."""
    found = [(name, k) for name in corpora for k in sizes or TOPICS[name]]
    return [(*size, *rest) for size, *rest in product(found, models, epsilons)]


def frontier_cells():
    """Return what there is to measure: every estimator and mechanism; more topics of the main two alone."""
    found = [one for one in grid(MAIN, EPSILONS, CONTENDERS) if one[0] in JUDGED[one[2]]]
    found = [one for one in found if one[1] == TOPICS[one[0]][0] or one[2] in BOTH]
    return [Guaranteed(*one, seed) for seed in SEEDS for one in found]


def fitted(model, corpus, X):
    """Return CPU seconds of a fit."""
    return timed(model.fit, X, **({} if corpus.groups is None else {"groups": corpus.groups}))[1]


def values_of(model, corpus, X=None):
    """Fit, to the training documents if nothing else is given, and return the values that all rows have."""
    seconds = fitted(model, corpus, corpus.train if X is None else X)
    unigram = unigram_perplexity(corpus.train, corpus.test)
    return {"cpu s": seconds, "perplexity": model.perplexity(corpus.test), "unigram": unigram}


def noted(judge):
    """Return a function that gives a row for a fit that is refused, too: it says why."""

    @wraps(judge)
    def measure(s):
        try:
            return judge(s)
        except ValueError as error:
            return {"note": str(error)[:200]}

    return measure


@noted
def judge(s):
    """Fit, and return the values of a row."""
    corpus, model = load(s.corpus, s.n_words), made(s)
    common = values_of(model, corpus, corpus.training(s.model))
    guarantee = getattr(model, "bit_guarantee_", model.privacy_guarantee_)
    found = {
        "unit": guarantee.unit,
        "adjacency": guarantee.adjacency,
        "trust": guarantee.trust,
        "status": guarantee.status,
        "true epsilon": true_epsilon(model, guarantee),
        "document epsilon": document_epsilon(model, guarantee, s.document_tokens),
        "proven delta": guarantee.delta,
        **common,
    }
    if corpus.texts is not None:
        found["c_npmi"] = coherence(model, corpus.reference, corpus.words, measure="c_npmi", n_words=10)
    if corpus.labels is not None:
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        classifier.fit(model.transform(corpus.train), corpus.labels[0])
        found["accuracy"] = classifier.score(model.transform(corpus.test), corpus.labels[1])
    return found


def vocabulary_cells():
    """Return what there is to measure: words and topics private, for one budget."""
    return [Fit(*one, seed) for seed in SEEDS for one in grid((NEWS, TWEETS), (1.0, 2.0, 5.0, 10.0))]


@noted
def judge_words(s):
    """Fit the recipe, and return the values of a row."""
    corpus = load(s.corpus, s.n_words)
    return judge_pipeline(corpus, private_pipeline(corpus, s.model, s.topics, s.epsilon, s.seed, s.delta))


def private_pipeline(corpus, name, n_topics, epsilon, seed, delta):
    """Return the recipe with nothing set but what a text is, and the model where that is not the recipe's own."""
    words = DPCountVectorizer(stop_words="english", binary=True, token_pattern=corpus.vectorizer.token_pattern)
    recipe = partial(make_fdptm_pipeline, epsilon, delta, n_components=n_topics, vectorizer=words)
    pipeline = recipe()
    if type(pipeline["topics"]).__name__ != name:
        pipeline = recipe(model=KINDS[name]())
    return pipeline.set_params(words__random_state=1000 + seed, topics__random_state=seed)


def judge_pipeline(corpus, pipeline):
    """Fit, and return the values of a row; the model without noise has the same words."""
    seconds = timed(pipeline.fit, corpus.texts[0])[1]
    X, X_test = (pipeline[:-1].transform(texts) for texts in corpus.texts)
    exact = clone(pipeline["topics"]).set_params(epsilon=math.inf).fit(X)
    guarantee = privacy_guarantee(pipeline)
    return {
        "words": X.shape[1],
        "tokens kept": X_test.sum() / corpus.all_words,
        "tokens kept of fixed": corpus.test.sum() / corpus.all_words,
        "true epsilon": guarantee.epsilon,
        "total delta": guarantee.delta,
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


COUNTS = "counts"  # a change of the data, not of the estimator
OPTIONS = (  # a name, of which models, and what is changed: parameters, or an ablation of the class
    ("as it is", BOTH, {}),
    ("model: last table only", BOTH, with_constant(_adaptive, "FORGET", 1.0)),
    ("model: no forgetting", BOTH, with_constant(_adaptive, "FORGET", 0.0)),
    (
        "no smoothing between rounds",
        BOTH,
        both(with_constant(_adaptive, "SMOOTHING", 0.0), with_constant(_adaptive, "FIRST_SMOOTHING", 0.0)),
    ),
    ("smoothing 0.2 between rounds", BOTH, with_constant(_adaptive, "SMOOTHING", 0.2)),
    ("documents start anew in each round", BOTH[1:], with_e_step(lambda model: {"remember": False, "max_iter": 50})),
    (
        "words weigh alike",
        BOTH,
        both(*(with_constant(module, "word_weights", even) for module in (_variational, _adaptive))),
    ),
    ("alpha not halved in rounds", BOTH, with_constant(_variational, "ROUND_ALPHA", 1.0)),
    ("Gamma initialisation of shape 1", BOTH, with_constant(_adaptive, "GAMMA_SHAPE", 1.0)),
    ("equal noise in all rounds", BOTH, with_constant(_prices, "PRECISION_RATIO", 1.0)),
    ("10 rounds", BOTH, {"max_iter": 10}),
    ("40 rounds", BOTH, {"max_iter": 40}),
    ("half of the documents a round", BOTH, {"sampling_rate": 0.5}),
    ("counts, not presence", BOTH, COUNTS),
    ("prior of topics 0.01", BOTH, {"topic_word_prior": 0.01}),
    ("prior of topics 1", BOTH, {"topic_word_prior": 1.0}),
    ("1 sweep a round", BOTH[:1], {"local_sweeps": 1}),
    ("20 sweeps a round", BOTH[:1], {"local_sweeps": 20}),
    ("Laplace noise", BOTH[:1], {"mechanism": "laplace"}),
    ("Laplace noise, 8 rounds", BOTH[:1], {"mechanism": "laplace", "max_iter": 8}),
    ("Laplace noise, 1 round", BOTH[:1], {"mechanism": "laplace", "max_iter": 1}),
    ("contributions clipped, not equal", BOTH[1:], {"max_norm": 5.0}),
    ("mini-batches of a tenth", BOTH[1:], {"learning_method": "online", "sampling_rate": 0.1}),
    ("5 updates a document", BOTH[1:], {"max_doc_update_iter": 5}),
    ("50 updates a document", BOTH[1:], {"max_doc_update_iter": 50}),
)


def ablation_cells():
    """Return what there is to measure: one option changed at a time."""
    found = [(*one, seed) for seed in SEEDS[:2] for one in grid((NEWS, KOS, TWEETS), (1.0, 5.0), sizes=(None,))]
    found = [(c, TOPICS[c][0], *rest) for c, _, *rest in found]
    return [Ablation(*one, option=name) for one in found for name, models, _ in OPTIONS if one[2] in models]


def changed(s, changes):
    """Return the estimator, as changed; raise RuntimeError if an ablation changes nothing."""
    model = made(s)
    if not callable(changes):
        return model.set_params(**{} if changes == COUNTS else changes)
    found = changes(type(model))(**model.get_params(deep=False))
    if math.isfinite(s.epsilon) and np.array_equal(trial(found), trial(model)):
        raise RuntimeError(f"an ablation leaves {model} as it is: mend it")
    return found


@cache
def synthetic():
    """Return the corpus on which an ablation must differ."""
    return make_lda_corpus(300, 60, 3, mean_length=20, random_state=0).data


def trial(model):
    """Return the topics that an estimator finds in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the seed
        return clone(model).set_params(n_components=3, random_state=0).fit(synthetic()).topic_word_


def fit_of(s, **changes):
    """Return the settings of the estimator alone, without help or other options, changed."""
    return replace(Fit(**{field.name: getattr(s, field.name) for field in fields(Fit)}), **changes)


@cache
def exact_perplexity(corpus, s):
    """Return what the estimator as it is reaches without noise."""
    model = made(s)
    fitted(model, corpus, corpus.train)
    return model.perplexity(corpus.test)


@noted
def judge_option(s):
    """Fit, and return the values of a row."""
    corpus = load(s.corpus, s.n_words)
    changes = next(changes for name, models, changes in OPTIONS if name == s.option and s.model in models)
    model = changed(s, changes)
    X = corpus.counts if changes == COUNTS else corpus.train
    return values_of(model, corpus, X) | {"non-private": exact_perplexity(corpus, fit_of(s, epsilon=math.inf))}


def released_once(known, table):
    """Ask for word frequencies, and then once for topics, given their table; return what is known then."""
    known.begin((yield from known.ask(WordTotals(len(table)), _adaptive.WORDS_SHARE, 2)))
    known.topics_pay = known.signal * known.n_apart >= _adaptive.least_total(table.shape[1])
    known.table, share = known.scaled(table), known.left
    known.note_topics((yield from known.ask(TopicWordCounts(known.apart()), share, 1)), share)
    return known


class ExactRounds(VIPSLDA):
    """Topics are found without noise, and then released once for the whole budget. It is not private."""

    def _run(self, plan, guarantee, randomness, data, charge, callback):
        exact = VIPSLDA(self.n_components, epsilon=math.inf, random_state=self.random_state, n_jobs=1)
        table = exact.fit(data.documents, groups=self._users).components_.T
        known = _adaptive.Knowledge(table.shape, plan, randomness.table_key)
        asks, e_step = released_once(known, table.copy()), self._e_step(plan, randomness, data)
        return self._model_of(converse(asks, e_step, Spending(plan), randomness), 2)

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


def little_cells():
    """Return what there is to measure: small epsilon, with and without public vectors."""
    found = grid((TWEETS, SHORT_MAILS, NIPS, NEWS, ENRON, ALL_TWEETS), (0.5, 1.0, 2.0, 5.0))
    return [Little(*one, seed, help=aid) for seed in SEEDS for one in found for name, aid in LITTLE if one[2] == name]


@noted
def judge_little(s):
    """Fit, and return the values of a row."""
    corpus, model = load(s.corpus, s.n_words), made(s)
    if s.help == EXACT_ROUNDS:
        model = ExactRounds(**model.get_params(deep=False))
    elif s.help == VECTORS:
        model.set_params(prior=vectors_of(corpus))
    found = values_of(model, corpus) | {"non-private": exact_perplexity(corpus, fit_of(s, epsilon=math.inf))}
    return found | {"releases": model.n_iter_}


def much_cells():
    """Return what there is to measure: large epsilon, and rounds without noise."""
    return [Much(*one, seed) for seed in SEEDS for one in grid((KOS, NIPS, TWEETS, NEWS), MUCH, sizes=(10,))]


@noted
def judge_much(s):
    """Fit, and return the values of a row."""
    model = made(s)
    if math.isinf(s.epsilon) and s.model == "VIPSLDA":
        model.set_params(max_iter=s.exact_rounds)
    return values_of(model, load(s.corpus, s.n_words))


@cache
def few_documents(corpus, few):
    """Return the corpus with so many random training documents; users stay whole, so that theirs are all."""
    n = corpus.train.shape[0]
    if corpus.groups is not None or n <= few:
        return corpus
    train = corpus.train[np.sort(np.random.default_rng(SPLIT_SEED).permutation(n)[:few])]
    return Corpus(corpus.name, train, corpus.test, corpus.words, train)


@cache
def least_perplexity(corpus, s):
    """Return the floor: the best mixture of uniform and private word frequencies, of a model of one topic."""
    model = made(s)
    fitted(model, corpus, corpus.train)
    words, uniform = model.topic_word_, np.full(model.topic_word_.shape, 1 / len(corpus.words))
    return min(perplexity(corpus.test, w * uniform + (1 - w) * words) for w in MIXTURES)


def floor_cells():
    """Return what there is to measure: few documents, against the best mixture of word frequencies."""
    found = grid((KOS, NIPS, NEWS, TWEETS), (0.5, 1.0, 2.0), sizes=(1, 3, 10, 20))
    return [Floor(*one, seed, help=aid) for seed in SEEDS for one in found for aid in ("none", VECTORS, PERMUTED)]


@noted
def judge_floor(s):
    """Fit, and return the values of a row."""
    corpus, model = few_documents(load(s.corpus, s.n_words), s.few), made(s)
    if s.help != "none":
        prior = vectors_of(corpus)
        if s.help == PERMUTED:
            order = np.random.default_rng(SPLIT_SEED).permutation(len(corpus.words))
            prior = WordPrior(prior.vectors[order])
        model.set_params(prior=prior)
    least = least_perplexity(corpus, fit_of(s, topics=1))
    exact = exact_perplexity(corpus, fit_of(s, epsilon=math.inf, topics=s.yardstick))
    return values_of(model, corpus) | {"floor": least, "non-private": exact}


LENGTHS = (3, 5, 7, 12)  # words a document
# A default prior that documents do not vote on; one that they do; the most likely ones of topic proportions and words,
# which sampled topics have by default; and another library with its own defaults, 200 sweeps.
FIXED, VOTED, INFERRED, TOMOTOPY = "fixed prior", "vote", "infer", "tomotopy"


@cache
def cut(corpus, n_words):
    """Return the documents cut to so many random words; shorter ones are left out."""
    rng = np.random.default_rng(SPLIT_SEED)
    train, test = (some_words((X > 0).astype(np.int64), rng, n_words) for X in (corpus.train, corpus.test))
    return Corpus(corpus.name, train, test, corpus.words, train)


def short_cells():
    """Return what there is to measure: texts cut to few words, with the vote for a prior and without."""
    found = [*product(SEEDS[:2], grid((KOS, NEWS), (2.0, 10.0), sizes=(1, 3, 10)), LENGTHS, ("none", FIXED))]
    for model, other in zip(BOTH, (VOTED, INFERRED), strict=True):
        exact = product(grid((KOS, NEWS, NIPS, ENRON), (math.inf,), (model,), sizes=(10, 50)), (7, 12))
        tweets = product(grid((TWEETS,), (math.inf,), (model,), sizes=(10, 50)), (7,))  # few have twelve words
        exact = [*exact, *tweets]
        found += [(seed, *one, aid) for seed, one, aid in product(SEEDS[:2], exact, ("none", FIXED, other))]
    found += [(0, *rest, TOMOTOPY) for _, *rest, aid in found if aid == VOTED]
    found = [Short(*one, seed, words=n, help=aid) for seed, one, n, aid in dict.fromkeys(found)]
    return [cell for cell in found if cell.topics > 1 or cell.help == "none"]


def of_tomotopy(corpus, n_topics):
    """Fit another library's model by its own defaults, and return the values of a row."""
    import tomotopy
    from gibbs import of_all_words

    model = tomotopy.LDAModel(k=n_topics, seed=1)
    for row in corpus.train.tocsr():
        model.add_doc([str(word) for word in np.repeat(row.indices, row.data)])
    seconds = timed(model.train, 200, workers=1)[1]
    used = np.array([int(word) for word in model.used_vocabs])
    topics = of_all_words([model.get_topic_word_dist(k) for k in range(n_topics)], used, len(corpus.words))
    values = {"perplexity": perplexity(corpus.test, topics, doc_topic_prior=np.array(model.alpha))}
    return {"cpu s": seconds} | values | {"unigram": unigram_perplexity(corpus.train, corpus.test)}


@noted
def judge_short(s):
    """Fit, and return the values of a row."""
    corpus, model = cut(load(s.corpus, s.n_words), s.words), made(s)
    if s.help == TOMOTOPY:
        return of_tomotopy(corpus, s.topics)
    if s.help == FIXED:
        model.set_params(doc_topic_prior=float(model._doc_topic_prior()[0]))
    elif s.help == VOTED:
        model.set_params(topic_word_prior=model._topic_word_prior())
    elif s.help == INFERRED:
        model.set_params(doc_topic_prior="infer", topic_word_prior="infer")
    return values_of(model, corpus)


def attack_cells():
    """Return what there is to measure: members found."""
    return [Attack(*one, 0) for one in grid((TWEETS,), EPSILONS, (*BOTH, "Zhu et al."))]


@noted
def judge_attack(s):
    """Attack, and return the values of a row."""
    X, options = load(s.corpus, s.n_words).train, {"thresholds": (), "vocabulary": "given", "random_state": s.seed}
    result = membership_experiment(made(s), X, n_models=s.models, **options)["LiRA online (zeta)"]
    at = result.tpr_at(s.fpr)
    return {"documents": X.shape[0], "TPR": at.rate, "low": at.low, "high": at.high, "AUC": result.auc}


def read(s):
    """Return the names of what a row is of."""
    return [FILES[s.corpus], *["glove"] * (getattr(s, "help", "none") in (VECTORS, PERMUTED))]


TABLES = [
    Table("frontier", Guaranteed, frontier_cells, judge, read),
    Table("frontier_vocabulary", Fit, vocabulary_cells, judge_words, read),
    Table("frontier_ablation", Ablation, ablation_cells, judge_option, read),
    Table("frontier_attack", Attack, attack_cells, judge_attack, read),
    Table("frontier_little", Little, little_cells, judge_little, read),
    Table("frontier_floor", Floor, floor_cells, judge_floor, read),
    Table("frontier_short", Short, short_cells, judge_short, read),
    Table("frontier_much", Much, much_cells, judge_much, read),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
