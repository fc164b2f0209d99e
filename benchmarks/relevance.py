"""Which relevance makes top words that go together: NPMI of private topics on held-out texts.

For the default of `top_words(relevance=)`, of 20 Newsgroups and of news articles. Posts lose their headers;
a random tenth of the texts is the reference of gensim's c_npmi. A document is the counts of its words among the 1,000
that most training texts have, English stop words apart. (A vocabulary chosen from the data is not private; it is the
same for all rows.) Top words are the ten of largest relevance; relevance 1 is the order of probabilities.

    python benchmarks/relevance.py --data FOLDER --epsilon 2 --topics 10 20 --output relevance.csv
"""

import argparse
import json
import lzma
import os
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from results import save
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import VIPSLDA
from skdplda.datasets import load_20newsgroups
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.metrics import coherence, topic_relevance

TEST_SHARE, SPLIT_SEED, N_WORDS = 0.1, 0, 1000
WEIGHTS = [0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0]


def texts_of(name, data):
    """Return the texts of a corpus."""
    if name == "20 Newsgroups":
        return load_20newsgroups("all", path=data / "20news_bydate_raw.jsonl.xz").data
    with lzma.open(data / "news_articles.jsonl.xz", "rt", encoding="utf-8") as file:
        return [text_of(json.loads(line)) for line in file]


def text_of(article):
    """Return the text of an article of the news corpus."""
    return article["text"] if "text" in article else " ".join(article["sentences"])


def measure(texts, epsilon, n_topics, seed):
    """Yield the relevance and the NPMI of the topics of one fit."""
    order = np.random.default_rng(SPLIT_SEED).permutation(len(texts))
    n_test = int(TEST_SHARE * len(texts))
    vectorizer = CountVectorizer(stop_words="english", max_features=N_WORDS, token_pattern=r"(?u)\b[^\W\d_]{2,}\b")
    X = vectorizer.fit_transform([texts[i] for i in order[n_test:]])
    cut = vectorizer.build_analyzer()
    reference, words = [cut(texts[i]) for i in order[:n_test]], vectorizer.get_feature_names_out()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        model = VIPSLDA(n_topics, epsilon=epsilon, delta=1e-6, random_state=seed).fit(X)
    sizes = model.topic_info(1)["size"]
    for weight in WEIGHTS:
        scores = np.exp(topic_relevance(model.topic_word_, weight, sizes))
        yield weight, coherence(scores, reference, words, measure="c_npmi")


def main():
    """Print and save the table."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--corpora", nargs="+", default=["20 Newsgroups", "news"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[2.0])
    parser.add_argument("--topics", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    rows = []
    for name in arguments.corpora:
        texts = texts_of(name, Path(arguments.data))
        for epsilon, n_topics, seed in product(arguments.epsilon, arguments.topics, arguments.seeds):
            for weight, npmi in measure(texts, epsilon, n_topics, seed):
                rows.append(
                    {"corpus": name, "epsilon": epsilon, "topics": n_topics, "relevance": weight, "seed": seed}
                    | {"npmi": npmi}
                )
                print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    print(table.pivot_table(index="relevance", columns=["corpus", "epsilon", "topics"], values="npmi").round(3))
    if arguments.output:
        save(table, arguments.output, [texts_of, measure], ["20news", "news"])


if __name__ == "__main__":
    main()
