"""What semantic units and word similarity buy at the document level: PCTD beside PrivateCGSLDA, 20 Newsgroups.

A random tenth of the posts, which lose their headers, is the test set. The vocabulary is the 1,000 words that most
training posts have, English stop words apart, and a document has at least ten of them. PCTD gets sentences, or three
words in a row; PrivateCGSLDA gets the same documents' counts, and their presence bits, with which it is better. Both
have the same guarantee: one document added or removed, delta = 1e-5. Similarity is that of GloVe vectors, which are
public: normalised, and for sentences also as published.

Perplexity is by document completion on the test documents' counts. Coherence is c_npmi of ten words a topic, with the
test documents as reference corpus. Seeds make the numbers reproducible, so the private fits would warn.

That similarity is normalised was chosen on two other corpora, Enron mail and news articles (with four times the
epsilon, for a quarter of the documents):

    python benchmarks/pctd_utility.py
    python benchmarks/pctd_utility.py --set corpus=enron --only epsilon=5 model="PCTD, sentences"
    python benchmarks/pctd_utility.py --set corpus=news epsilon=20 --only epsilon=5 model="PCTD, sentences"
"""

import math
import time
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from corpora import glove, json_rows, newsgroup_posts, split
from results import Table, run
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import PCTD, PrivateCGSLDA
from skdplda.datasets import frequent_words
from skdplda.metrics import coherence, unigram_perplexity
from skdplda.semantics import SemanticUnitVectorizer, word_similarity

LEAST_WORDS, TEST_SHARE, SPLIT_SEED, TAU = 10, 0.1, 0, 0.3
UNITS = {"PCTD, sentences": "sentence", "PCTD, 3 words": 3}
MODELS = [
    "PrivateCGSLDA, counts",
    "PrivateCGSLDA, presence",
    "PCTD, sentences",
    "PCTD, sentences, similarity",
    "PCTD, sentences, published similarity",
    "PCTD, 3 words",
    "PCTD, 3 words, similarity",
]


@dataclass(frozen=True)
class Settings:
    """Of a row; `tau` is of models with similarity."""

    topics: int
    epsilon: float
    model: str
    seed: int
    tau: float = TAU
    corpus: str = "20news"
    least_words: int = LEAST_WORDS
    test_share: float = TEST_SHARE
    split_seed: int = SPLIT_SEED


def cells():
    """Return what there is to measure."""
    found = product((10, 20), (5.0, 10.0, math.inf), range(3), MODELS)
    return [Settings(topics, epsilon, model, seed) for topics, epsilon, seed, model in found]


def documents(name):
    """Return the texts of a corpus."""
    if name == "20news":
        return newsgroup_posts().data
    title, body = {"enron": ("subject", "body"), "news": ("title", "text")}[name]
    return [f"{record[title]}.\n\n{record[body]}" for record in json_rows(name)]


@cache
def corpus(name, least_words, test_share, split_seed):
    """Return training and test posts, and the words."""
    posts = documents(name)
    parts = [[posts[i] for i in part] for part in split(len(posts), test_share, split_seed)]
    words = frequent_words(parts[0], 1000, stop_words="english", binary=True)
    vectorizer = CountVectorizer(vocabulary=words, binary=True)
    for i, part in enumerate(parts):
        long = np.asarray(vectorizer.transform(part).sum(axis=1)).ravel() >= least_words
        parts[i] = [post for post, kept in zip(part, long, strict=True) if kept]
    return *parts, np.array(words, dtype=object)


@cache
def similarity(words, normalize):
    """Return the similarity of the words by GloVe vectors, normalised or as published."""
    return word_similarity(np.array(words, dtype=object), dict(zip(*glove(), strict=True)), normalize=normalize)


@cache
def units(unit, *of_corpus):
    """Return the training posts in units."""
    train, _, words = corpus(*of_corpus)
    return SemanticUnitVectorizer(unit, vocabulary=words, stop_words="english").transform(train)


def measure(s):
    """Fit a model; return what it took and how well it predicts."""
    of_corpus = s.corpus, s.least_words, s.test_share, s.split_seed
    train, test, words = corpus(*of_corpus)
    counter, options = CountVectorizer(vocabulary=words), {}
    X, X_test = counter.transform(train), counter.transform(test)
    unigram = unigram_perplexity(X, X_test)
    if s.model.startswith("PCTD"):
        kind, X = PCTD, units(UNITS[", ".join(s.model.split(", ")[:2])], *of_corpus)
        if "similarity" in s.model:
            options = {"similarity": similarity(tuple(words), "published" not in s.model), "tau": s.tau}
    else:
        kind, X = PrivateCGSLDA, (X > 0).astype(int) if s.model.endswith("presence") else X
    model = kind(s.topics, epsilon=s.epsilon, n_jobs=1, random_state=s.seed, **options)
    begin = time.process_time()
    model.fit(X)
    found = {"cpu s": time.process_time() - begin, "perplexity": model.perplexity(X_test), "unigram": unigram}
    reference = [counter.build_analyzer()(post) for post in test]
    return found | {"c_npmi": coherence(model, reference, words, measure="c_npmi", n_words=10)}


def report(tables, folder):
    """Print means."""
    table = tables["pctd_utility"].groupby(["topics", "epsilon", "model"], sort=False)[["perplexity", "c_npmi"]]
    print(table.agg(["mean", "std"]).to_string(float_format="{:.4g}".format))


TABLES = [
    Table("pctd_utility", Settings, cells, measure, lambda s: [s.corpus, "glove"]),
]
if __name__ == "__main__":
    run(TABLES, __doc__, report)
