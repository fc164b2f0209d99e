"""Calls that users make wrong: each error says which argument, what it was, and what to write instead.

Each pattern asks for the three, where the values are not private: a text is not shown.
"""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from skdplda import (
    HDPLDA,
    PCTD,
    VIPSLDA,
    DPCountVectorizer,
    DPVocabularySelector,
    EmbeddingTopics,
    LocalPrivateLDA,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateCGSLDA,
    PublicPrior,
    ReleasedTopicModel,
    count_labels,
    load_released,
    make_fdptm_pipeline,
    make_insights_pipeline,
    privacy_guarantee,
    release,
    warm_started,
)
from skdplda.datasets import load_uci_bow, open_counts, stop_words
from skdplda.local import BitChannel, LocalRandomizer, make_report
from skdplda.metrics import follow_topics, perplexity
from skdplda.model_selection import PrivateSearchCV, suggest_n_components
from skdplda.plots import TopicPathsDisplay
from skdplda.privacy import calibrate_gaussian, calibrate_laplace, divide_epsilon, epsilon_of, gaussian_event
from skdplda.reports import report
from skdplda.semantics import SemanticUnitVectorizer, WordVectorEmbedder

TEXTS = ["the cat sat on the mat", "dogs and cats are friends"] * 10
X = np.ones((20, 4), dtype=np.int64)
P = {"epsilon": 1.0, "delta": 1e-6}
MODEL = ReleasedTopicModel(
    np.full((2, 4), 0.25), ["cat", "dog", "mat", "hat"], privacy_guarantee=PrivacyGuarantee(epsilon=1.0)
)
UNNAMED = ReleasedTopicModel(np.full((2, 4), 0.25), privacy_guarantee=PrivacyGuarantee(epsilon=1.0))
LEAKY = make_pipeline(CountVectorizer(max_features=5), VIPSLDA(2, **P))
LEDGER = PrivacyAccountant(1.0, 1e-6)
CLUSTERS = EmbeddingTopics(2, **P)

WRONG = {
    # Data.
    "texts to a model": (lambda: VIPSLDA(**P).fit(TEXTS), "X.*got texts. Count public words first"),
    "one text": (lambda: VIPSLDA(**P).fit("texts.csv"), "X must be a matrix.*got texts. Count"),
    "texts to Gibbs": (
        lambda: PrivateCGSLDA(**P).fit(pd.Series(TEXTS)),
        "X must be.*got texts.*let make_fdptm_pipeline.*it takes texts",
    ),
    "negative counts": (lambda: VIPSLDA(**P).fit(-X), "Negative values in data passed to VIPSLDA.*word counts"),
    "missing counts": (lambda: VIPSLDA(**P).fit(np.full((4, 4), np.nan)), "Input X contains NaN. Put 0 where"),
    "one axis": (lambda: VIPSLDA(**P).fit(X[0]), "Expected 2D array, got 1D array.*Reshape"),
    "no documents": (lambda: VIPSLDA(**P).fit(X[:0]), "0 sample.*minimum of 1 is required by VIPSLDA: give"),
    "another number of words": (
        lambda: MODEL.transform(X[:, :3]),
        "X has 3 features, .* expecting 4 .*give the columns of fit",
    ),
    "texts to embeddings": (lambda: CLUSTERS.fit(TEXTS), "got texts. Embed them.*make_insights_pipeline"),
    "counts to embeddings": (lambda: CLUSTERS.fit(sp.csr_array(np.eye(60, 1001, dtype=int))), "VIPSLDA takes counts"),
    "numbers to a vectorizer": (
        lambda: DPCountVectorizer(**P).fit(X),
        "raw_documents must be texts; got an array of.*Give one column",
    ),
    "one text to a vectorizer": (
        lambda: DPCountVectorizer(**P).fit("a text"),
        "raw_documents must.*got one string. Put it into a list",
    ),
    "a missing text": (
        lambda: DPCountVectorizer(**P).fit([*TEXTS, None]),
        "raw_documents must.*row 20.*missing.*fillna",
    ),
    "counts to units": (
        lambda: SemanticUnitVectorizer().fit(X),
        "words of a document must be str; got an int64. Give texts, or",
    ),
    # Groups.
    "a column's name as groups": (lambda: VIPSLDA(**P).fit(X, groups="patient"), "groups must.*got a str. Give a list"),
    "too few groups": (
        lambda: VIPSLDA(**P).fit(X, groups=[1, 2]),
        r"groups must have one entry a document, shape .20,.; got .2,.",
    ),
    "missing groups": (lambda: VIPSLDA(**P).fit(X, groups=[None] * 20), "groups has missing entries; give each"),
    "blank groups": (lambda: VIPSLDA(**P).fit(X, groups=[" "] * 20), "blank names; give each"),
    "a set of groups": (
        lambda: VIPSLDA(**P).fit(X, groups=set(range(20))),
        "groups must.*got a set. Give a list or an array of users",
    ),
    # Parameters of models.
    "epsilon 0": (lambda: VIPSLDA(epsilon=0.0).fit(X), "'epsilon' parameter of VIPSLDA must be.*Got 0.0"),
    "a negative epsilon": (
        lambda: PrivateCGSLDA(epsilon=-1.0).fit(X),
        "'epsilon' parameter.*must be a float in the range.*Got -1.0",
    ),
    "epsilon as text": (
        lambda: VIPSLDA(epsilon="1").fit(X),
        "'epsilon' parameter.*must be a float in the range.*Got '1'",
    ),
    "delta 0 with Gaussian noise": (
        lambda: VIPSLDA(epsilon=1.0, delta=0.0).fit(X),
        "delta=0.0 is too small.*'laplace'",
    ),
    "delta 1": (
        lambda: VIPSLDA(epsilon=1.0, delta=1.0).fit(X),
        "'delta' parameter.*must be a float in the range.*Got 1.0",
    ),
    "no topics": (lambda: VIPSLDA(0, **P).fit(X), "'n_components' parameter.*must be an int in the range.*Got 0"),
    "a fraction of topics": (
        lambda: VIPSLDA(2.5, **P).fit(X),
        "'n_components' parameter.*must be an int in the range.*Got 2.5",
    ),
    "an unknown mechanism": (lambda: PrivateCGSLDA(mechanism="gauss").fit(X), "'mechanism'.*'gaussian'.*Got 'gauss'"),
    "sampled Laplace": (
        lambda: PrivateCGSLDA(mechanism="laplace", sampling_rate=0.5).fit(X),
        "sampling_rate must be 1.*got 0.5. Use mechanism='gaussian'",
    ),
    "a list as prior": (
        lambda: VIPSLDA(prior=[0.1] * 10, **P).fit(X),
        "'prior'.*PublicPrior or WordPrior .Dirichlet.*Got .0.1",
    ),
    "a prior of another length": (
        lambda: VIPSLDA(3, doc_topic_prior=[0.1, 0.2], **P).fit(X),
        "doc_topic_prior must be a number.*or 3 of them.*got an array of shape .2,.",
    ),
    "a negative prior": (
        lambda: VIPSLDA(topic_word_prior=-1.0, **P).fit(X),
        "topic_word_prior must be a number from 1e-30.*got -1.0",
    ),
    "gensim's name": (lambda: VIPSLDA(num_topics=3), "no parameter 'num_topics': write n_components"),
    "alpha": (lambda: PrivateCGSLDA(alpha=0.1), "no parameter 'alpha': write doc_topic_prior"),
    "perplexity while fitting": (
        lambda: VIPSLDA(evaluate_every=1),
        "no parameter 'evaluate_every'.*would be a release; leave it out",
    ),
    "batches without a size": (
        lambda: VIPSLDA(batch_size=5, **P).fit(X),
        "batch_size=5 needs nominal_size, a public estimate",
    ),
    "both ways of sampling": (
        lambda: VIPSLDA(batch_size=5, sampling_rate=0.1, **P).fit(X),
        "give batch_size or sampling_rate, not both.*batch_size=5 and sampling_rate=0.1",
    ),
    "partial_fit in full batches": (
        lambda: VIPSLDA(**P).partial_fit(X),
        "partial_fit needs learning_method='online'; got 'batch'",
    ),
    "a seed that is negative": (
        lambda: VIPSLDA(random_state=-1, **P).fit(X),
        "'random_state' parameter.*must be an int in the range.*Got -1",
    ),
    "texts as init": (lambda: EmbeddingTopics(2, init=TEXTS, **P).fit(X), "init must.*got texts. Embed"),
    "a model as init": (
        lambda: EmbeddingTopics(2, init=MODEL, **P).fit(X),
        "init must.*got a ReleasedTopicModel.*warm_started",
    ),
    "a name as init": (
        lambda: EmbeddingTopics(2, init="k-means++", **P).fit(X),
        "init must be an array.*got texts. Embed",
    ),
    "init of other clusters": (
        lambda: EmbeddingTopics(2, init=np.eye(4), **P).fit(X),
        "init must have a row for each of the 2 clusters.*got shape",
    ),
    "texts as public rows": (
        lambda: EmbeddingTopics(2, public_rows=TEXTS, **P).fit(X),
        "public_rows must.*got texts. Embed",
    ),
    "units of counts for HDPLDA": (lambda: HDPLDA(epsilon=1.0, delta=1e-4).fit(TEXTS), "X must be.*got texts. Count"),
    "reports without a budget": (
        lambda: LocalPrivateLDA(2, epsilon=0.0).fit(X),
        "'epsilon' parameter.*must be a float.*Got 0.0",
    ),
    "units of users for PCTD": (
        lambda: PCTD(noise_on="units", **P).fit(X, groups=range(20)),
        "groups must be None.*got groups. noise_on=.statistics",
    ),
    # What a model gives.
    "not fitted": (lambda: VIPSLDA().transform(X), "VIPSLDA.*not fitted yet. Call 'fit'"),
    "no words": (lambda: MODEL.top_words(0), "n_words must be an integer of at least 1; got 0"),
    "words of a model without": (
        lambda: UNNAMED.find_topics("cat"),
        "word must.*got 'cat'. Give its 4 words as feature_names",
    ),
    "topics to merge": (
        lambda: MODEL.merge_topics([[0, 5]]),
        "groups must hold topics, by number, 0 to 1, or by name; got 5",
    ),
    "names of topics": (
        lambda: MODEL.rename_topics({5: "cats"}),
        "names must hold topics, by number, 0 to 1, or by name; got 5",
    ),
    "an unfitted model to release": (lambda: release(VIPSLDA()), "VIPSLDA.*not fitted yet. Call 'fit'"),
    "a guarantee of leaky words": (
        lambda: privacy_guarantee(LEAKY),
        "max_features=5 keeps or drops.*Leave max_features at its default.*or give public words",
    ),
    "something else to release": (lambda: release({"topics": 3}), "must be a private topic model.*got dict. Fit one"),
    "no such released model": (lambda: load_released("nowhere.zip"), "path must name a file.*'nowhere.zip'"),
    "warm start from a path": (
        lambda: warm_started(VIPSLDA(), "may.zip"),
        "earlier must be a fitted model, or.*load_released.*got a str",
    ),
    "warm start with other topics": (lambda: warm_started(VIPSLDA(5), MODEL), "n_components must be 2.*got 5"),
    "report of nothing": (lambda: report(3, "page.html"), "model must be a fitted topic model.*got an int"),
    "a table that is none": (
        lambda: TopicPathsDisplay(topics=[1, 2]).plot(),
        "topics must be the table that follow_topics returns; got a list",
    ),
    "one model of a year": (
        lambda: follow_topics(MODEL),
        "models must be a sequence, with one model a period; got one model",
    ),
    # Budgets.
    "a number to spend": (lambda: LEDGER.spend(0.5), "guarantee must be a PrivacyGuarantee, such as.*got 0.5"),
    "a model to spend": (
        lambda: LEDGER.spend(MODEL),
        "guarantee must.*privacy_guarantee_ of a fitted model.*got ReleasedTopicModel",
    ),
    "a label that is a number": (
        lambda: LEDGER.spend(PrivacyGuarantee(epsilon=0.1), 3),
        "label must be a string or None; got 3",
    ),
    "a claim to spend": (
        lambda: LEDGER.spend(PrivacyGuarantee(epsilon=0.1)),
        "guarantee must have status 'proven'; got 'claimed'.*Pass accept_claimed",
    ),
    "a ledger without epsilon": (lambda: PrivacyAccountant(0.0), "epsilon must be > 0.*got 0"),
    "a ledger of delta 2": (lambda: PrivacyAccountant(1.0, 2.0), "delta must be >= 0 and < 1; got 2"),
    "an unknown unit": (
        lambda: PrivacyAccountant(1.0, unit="patient"),
        "unit must be one of 'document'.*; got 'patient'",
    ),
    "noise of epsilon 0": (lambda: calibrate_gaussian(0.0, 1e-6), "epsilon must be > 0 or inf; got 0"),
    "Gaussian noise without delta": (
        lambda: calibrate_gaussian(1.0, 0.0),
        "delta must be > 0 for Gaussian noise; got 0.* use Laplace",
    ),
    "steps of a fraction": (lambda: calibrate_laplace(1.0, 2.5), "steps must be an integer >= 1; got 2.5"),
    "shares that are a number": (lambda: divide_epsilon(1.0, 1e-6, 12), r"such as \[1\] \* 12; got 12"),
    "epsilon of a number": (lambda: epsilon_of(1.0, 1e-6), "the event 1.0; skdplda.privacy.gaussian_event"),
    "noise that is negative": (lambda: gaussian_event(-1.0), "noise_multiplier must be >= 0 or inf; got -1"),
    "a guarantee of a negative epsilon": (
        lambda: PrivacyGuarantee(epsilon=-1.0),
        "epsilon must be >= 0 or inf; got -1",
    ),
    "words without epsilon": (
        lambda: DPCountVectorizer(epsilon=0.0).fit(TEXTS),
        "'epsilon' parameter.*must be a float.*Got 0.0",
    ),
    "an unknown selection": (
        lambda: DPVocabularySelector(mechanism="all", **P).fit(X),
        "mechanism must be 'gaussian' or.*got 'all'",
    ),
    "all of a budget for words": (
        lambda: make_fdptm_pipeline(1.0, 1e-6, vocabulary_share=1.0),
        "vocabulary_share must be a number above 0 and below 1; got 1.0",
    ),
    # Labels, priors, public things.
    "a file of labels": (
        lambda: count_labels(TEXTS, "labels.txt", epsilon=1.0, classify=len),
        "labels must be a list.*got .labels.txt.*of a file give the lines",
    ),
    "one text to count": (
        lambda: count_labels("text", ["a"], epsilon=1.0, classify=len),
        "texts must be a list.*got one text. Put it into a list",
    ),
    "labels twice": (
        lambda: count_labels(TEXTS, ["a", "a"], epsilon=1.0, classify=len),
        "labels must be.*all different.*got ..a., .a",
    ),
    "labels without a way": (lambda: count_labels(TEXTS, ["a"], epsilon=1.0), "give one of embedder, classify"),
    "more labels than there are": (
        lambda: count_labels(TEXTS, ["a"], epsilon=1.0, classify=len, most=2),
        "most must be an integer from 1 to the 1 labels; got 2",
    ),
    "a classifier that is none": (
        lambda: count_labels(TEXTS, ["a"], epsilon=1.0, classify="a"),
        "classify must be a function of a text; got a str",
    ),
    "seed words as a list": (
        lambda: PublicPrior.from_seed_words(["cat", "dog"]),
        "seed_words must map names.*got list",
    ),
    "no vectors": (lambda: WordVectorEmbedder({}).transform(TEXTS), "keyed_vectors must have one vector.*got shape"),
    "a string of all words": (
        lambda: WordVectorEmbedder((np.array("cat\ndog"), np.eye(2))).transform(TEXTS),
        "keyed_vectors must be a pair .words, values.*got one string. Split it",
    ),
    "an unknown language": (lambda: stop_words("klingon"), "languages must be among af, ar.*got .klingon"),
    "an embedder that is a name": (
        lambda: make_insights_pipeline(1.0, 1e-6, embedder="minilm").fit(TEXTS),
        "embedder must have transform.*got a str. Word",
    ),
    "no such counts": (
        lambda: open_counts("nowhere"),
        "'nowhere' is no complete folder of counts.*write it with write_counts",
    ),
    "no such corpus": (
        lambda: load_uci_bow("nowhere.txt", "vocab.txt"),
        "docword must name a file.*no file 'nowhere.txt'. Give its path",
    ),
    # Devices, scores, searches.
    "a device without epsilon": (
        lambda: LocalRandomizer(bit_epsilon=0.0).fit(X).transform(X),
        "'bit_epsilon' parameter.*must be a float.*Got 0.0",
    ),
    "a report of one text": (
        lambda: make_report("a text", ["a"], LocalRandomizer(1.0)),
        "words must be a list.*got one string. Split it",
    ),
    "a channel of nothing": (lambda: BitChannel(0.0, "symmetric", 4), "bit_epsilon must be > 0 or inf; got 0"),
    "perplexity of other words": (
        lambda: perplexity(X, np.full((2, 3), 1 / 3)),
        "X must have the words of the topics.*3 columns; got 4. Count",
    ),
    "a search over a wrong name": (
        lambda: PrivateSearchCV(VIPSLDA(2), {"topics": [2]}).fit(X),
        "Invalid parameter 'topics'.*Valid parameters are.*n_components",
    ),
    "a search over epsilon": (
        lambda: PrivateSearchCV(VIPSLDA(2), {"epsilon": [1, 2]}).fit(X),
        "param_grid must not hold 'epsilon'.*To compare values",
    ),
    "topics for no documents": (
        lambda: suggest_n_components(1.0, 1e-6, 0, 40, 1000),
        "nominal_size must be an integer from 1.*got 0",
    ),
}


@pytest.mark.parametrize("call", WRONG)
def test_a_wrong_call_says_what_to_write(call):
    """Nothing is read, fitted or spent before."""
    wrong, said = WRONG[call]
    with pytest.raises((ValueError, TypeError, AttributeError, FileNotFoundError)) as caught:
        wrong()
    message = " ".join(f"{caught.value} {caught.value.__cause__ or ''}".split())
    assert re.search(said, message), message
    assert not LEDGER.ledger


def test_there_are_at_least_eighty():
    assert len(WRONG) >= 80
