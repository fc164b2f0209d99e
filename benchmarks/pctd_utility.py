"""What semantic units and word similarity buy at the document level: PCTD beside PrivateCGSLDA, 20 Newsgroups.

The same documents, words and split as in utility.py: a random tenth of the posts is the test set, the vocabulary is
the 1,000 words that most training posts have, English stop words apart, and a document has at least ten of them.
PCTD gets sentences, or three words in a row; PrivateCGSLDA gets the same documents' counts, and their presence bits,
with which it is better. Both have the same guarantee: one document added or removed, delta = 1e-5. Similarity is that
of GloVe vectors, which are public: normalised, and for sentences also as published.

Perplexity is by document completion on the test documents' counts. Coherence is c_npmi of ten words a topic, with the
test documents as reference corpus. Seeds make the numbers reproducible, so the private fits would warn.

That similarity is normalised was chosen on two other corpora, Enron mail and news articles (with four times the
epsilon, for a quarter of the documents):

    python benchmarks/pctd_utility.py --epsilon 5 10
    python benchmarks/pctd_utility.py --corpus enron --epsilon 5 --models "PCTD, sentences"
    python benchmarks/pctd_utility.py --corpus news --epsilon 20 --models "PCTD, sentences"
"""

import argparse
import json
import lzma
import math
import os
import time
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from results import Rows
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import PCTD, PrivateCGSLDA
from skdplda.datasets import frequent_words, load_20newsgroups
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.metrics import coherence, unigram_perplexity
from skdplda.semantics import SemanticUnitVectorizer, word_similarity

LEAST_WORDS, TEST_SHARE, SPLIT_SEED = 10, 0.1, 0
KEYS = ["topics", "epsilon", "model", "seed"]


def documents(data, name):
    """Return the texts of a corpus."""
    if name == "20news":
        return load_20newsgroups("all", path=data / "20news_bydate_raw.jsonl.xz").data
    file, title, body = {
        "enron": ("enron_ham_raw.jsonl.xz", "subject", "body"),
        "news": ("news_articles.jsonl.xz", "title", "text"),
    }[name]
    with lzma.open(data / file, "rt") as lines:
        return [f"{record[title]}.\n\n{record[body]}" for record in map(json.loads, lines)]


def corpus(posts):
    """Return training and test posts, and the words."""
    order = np.random.default_rng(SPLIT_SEED).permutation(len(posts))
    n_test = int(TEST_SHARE * len(posts))
    words = frequent_words([posts[i] for i in order[n_test:]], 1000, stop_words="english", binary=True)
    vectorizer = CountVectorizer(vocabulary=words, binary=True)
    parts = [[posts[i] for i in chosen] for chosen in (order[n_test:], order[:n_test])]
    for i, part in enumerate(parts):
        long = np.asarray(vectorizer.transform(part).sum(axis=1)).ravel() >= LEAST_WORDS
        parts[i] = [post for post, kept in zip(part, long, strict=True) if kept]
    return *parts, np.array(words, dtype=object)


def similarities_of(data, words):
    """Return the similarity of the words by GloVe vectors, normalised and as published."""
    glove = np.load(data / "glove6B_100d_top60k_f16.npz")
    vectors = dict(zip(str(glove["words"]).split("\n"), glove["vectors"], strict=True))
    return word_similarity(words, vectors), word_similarity(words, vectors, normalize=False)


def fitted(model, X, X_test):
    """Fit a model; return what it took and how well it predicts."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        model.fit(X)
    seconds = time.process_time() - begin
    return {"perplexity": model.perplexity(X_test), "cpu s": seconds}


def main():
    """Print and save the table."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--corpus", choices=["20news", "enron", "news"], default="20news")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[5.0, 10.0, math.inf])
    parser.add_argument("--topics", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--tau", type=float, nargs="+", default=[0.3])
    parser.add_argument("--models", default="", help="how the names of models begin that are fitted (default: all)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one seed, ten topics, the first epsilon")
    parser.add_argument("--output", type=Path, help="default: results/pctd_utility.csv, with the name of --corpus")
    arguments = parser.parse_args()
    suffix = "" if arguments.corpus == "20news" else f"_{arguments.corpus}"
    arguments.output = arguments.output or Path(__file__).parent / "results" / f"pctd_utility{suffix}.csv"
    if arguments.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    train, test, words = corpus(documents(arguments.data, arguments.corpus))
    R, published = similarities_of(arguments.data, words)
    counter = CountVectorizer(vocabulary=words)
    X_train, X_test = counter.transform(train), counter.transform(test)
    reference = [counter.build_analyzer()(post) for post in test]
    cut = {
        unit: SemanticUnitVectorizer(unit, vocabulary=words, stop_words="english").transform(train)
        for unit in ("sentence", 3)
    }
    print(
        f"{len(train):,} training and {len(test):,} test documents, unigram {unigram_perplexity(X_train, X_test):.1f}"
    )
    contenders = [
        ("PrivateCGSLDA, counts", PrivateCGSLDA, X_train, {}),
        ("PrivateCGSLDA, presence", PrivateCGSLDA, X_train > 0, {}),
    ]
    for unit, X in cut.items():
        name = "PCTD, sentences" if unit == "sentence" else f"PCTD, {unit} words"
        contenders.append((name, PCTD, X, {}))
        contenders += [(f"{name}, similarity {tau:g}", PCTD, X, {"similarity": R, "tau": tau}) for tau in arguments.tau]
        if unit == "sentence":
            contenders.append((f"{name}, published similarity 0.3", PCTD, X, {"similarity": published}))
    contenders = [contender for contender in contenders if contender[0].startswith(arguments.models)]

    def judge(kind, X, options, n_topics, epsilon, seed):
        model = kind(n_topics, epsilon=epsilon, n_jobs=arguments.jobs, random_state=seed, **options)
        found = fitted(model, X.astype(int) if kind is PrivateCGSLDA else X, X_test)
        return found | {"c_npmi": coherence(model, reference, words, measure="c_npmi", n_words=10)}

    if arguments.quick:
        for name, kind, X, options in contenders:
            print(name, judge(kind, X, options, 10, arguments.epsilon[0], 0), flush=True)
        return
    rows = Rows(arguments.output, KEYS)
    for n_topics, epsilon, seed in product(arguments.topics, arguments.epsilon, arguments.seeds):
        for name, kind, X, options in contenders:
            cell = dict(zip(KEYS, (n_topics, epsilon, name, seed), strict=True))
            roots = [documents, corpus, similarities_of, fitted, f"skdplda.{kind.__name__}", "skdplda.semantics"]
            work = partial(judge, kind, X, options, n_topics, epsilon, seed)
            rows.measure(cell, work, roots, [arguments.corpus, "glove"])
    table = rows.table.groupby(KEYS[:3], sort=False)[["perplexity", "c_npmi", "cpu s"]].agg(["mean", "std"])
    print(table.to_string(float_format="{:.4g}".format))


if __name__ == "__main__":
    main()
