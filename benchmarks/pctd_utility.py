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
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import PCTD, PrivateCGSLDA
from skdplda.datasets import load_20newsgroups
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.metrics import coherence, unigram_perplexity
from skdplda.semantics import SemanticUnitVectorizer, word_similarity

LEAST_WORDS, TEST_SHARE, SPLIT_SEED = 10, 0.1, 0


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
    vectorizer = CountVectorizer(stop_words="english", max_features=1000, binary=True)
    vectorizer.fit([posts[i] for i in order[n_test:]])
    parts = [[posts[i] for i in chosen] for chosen in (order[n_test:], order[:n_test])]
    for i, part in enumerate(parts):
        long = np.asarray(vectorizer.transform(part).sum(axis=1)).ravel() >= LEAST_WORDS
        parts[i] = [post for post, kept in zip(part, long, strict=True) if kept]
    return *parts, vectorizer.get_feature_names_out()


def similarities_of(data, words):
    """Return the similarity of the words by GloVe vectors, normalised and as published."""
    glove = np.load(data / "glove6B_100d_top60k_f16.npz")
    vectors = dict(zip(str(glove["words"]).split("\n"), glove["vectors"], strict=True))
    return word_similarity(words, vectors), word_similarity(words, vectors, normalize=False)


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
    if arguments.quick:
        arguments.seeds, arguments.topics, arguments.epsilon = [0], [10], arguments.epsilon[:1]

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
    rows = []
    for n_topics in arguments.topics:
        for epsilon in arguments.epsilon:
            for name, kind, X, options in contenders:
                for seed in arguments.seeds:
                    model = kind(n_topics, epsilon=epsilon, n_jobs=arguments.jobs, random_state=seed, **options)
                    begin = time.process_time()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", PrivacyLeakWarning)
                        model.fit(X.astype(int) if kind is PrivateCGSLDA else X)
                    seconds = time.process_time() - begin
                    rows.append(
                        {
                            "topics": n_topics,
                            "epsilon": epsilon,
                            "model": name,
                            "seed": seed,
                            "perplexity": model.perplexity(X_test),
                            "c_npmi": coherence(model, reference, words, measure="c_npmi", n_top=10),
                            "cpu s": seconds,
                        }
                    )
                if not arguments.quick:
                    pd.DataFrame(rows).to_csv(arguments.output, index=False, float_format="%.4f", lineterminator="\n")
                mean = pd.DataFrame(rows[-len(arguments.seeds) :]).mean(numeric_only=True)
                print(
                    f"{n_topics} topics, epsilon {epsilon:g}, {name}: {mean['perplexity']:.1f}, {mean['c_npmi']:.4f}",
                    flush=True,
                )
    table = pd.DataFrame(rows)
    mean = table.groupby(["topics", "epsilon", "model"], sort=False).agg(["mean", "std"]).drop(columns="seed", level=0)
    print(mean.to_string(float_format="{:.4g}".format))


if __name__ == "__main__":
    main()
