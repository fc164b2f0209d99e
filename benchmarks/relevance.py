"""Which relevance makes top words that go together: NPMI of private topics on held-out texts.

For the default of `top_words(relevance=)`, of 20 Newsgroups and of news articles. Posts lose their headers;
a random tenth of the texts is the reference of gensim's c_npmi. A document is the counts of its words among the 1,000
that most training texts have, English stop words apart. (A vocabulary chosen from the data is not private; it is the
same for all rows.) Top words are the ten of largest relevance; relevance 1 is the order of probabilities.

    python benchmarks/relevance.py --data FOLDER

It measures what `results/relevance.csv` has not, or of older code, and may be stopped.
"""

import argparse
import json
import lzma
import os
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from results import Rows
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import VIPSLDA
from skdplda.datasets import frequent_words, load_20newsgroups
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.metrics import coherence, topic_relevance

TEST_SHARE, SPLIT_SEED, N_WORDS = 0.1, 0, 1000
DATA = {"20 Newsgroups": "20news", "news": "news"}  # by the name in the table
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


def cells():
    """Return the cells of the stored table, for `check.py`."""
    keys, found = ("corpus", "epsilon", "topics", "seed"), product(DATA, [2.0], [10, 20], range(3))
    return {"relevance": [dict(zip(keys, cell, strict=True)) for cell in found]}


def measure(name, data, epsilon, n_topics, seed):
    """Return the NPMI of the topics of one fit, for each relevance."""
    texts = texts_of(name, data)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(texts))
    n_test = int(TEST_SHARE * len(texts))
    train, options = [texts[i] for i in order[n_test:]], {"token_pattern": r"(?u)\b[^\W\d_]{2,}\b"}
    options["stop_words"] = "english"
    words = frequent_words(train, N_WORDS, **options)
    vectorizer = CountVectorizer(vocabulary=words, **options)
    X = vectorizer.transform(train)
    cut = vectorizer.build_analyzer()
    reference = [cut(texts[i]) for i in order[:n_test]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        model = VIPSLDA(n_topics, epsilon=epsilon, delta=1e-6, random_state=seed).fit(X)
    sizes = model.topic_info(1)["size"]
    scores = [np.exp(topic_relevance(model.topic_word_, weight, sizes)) for weight in WEIGHTS]
    found = [coherence(score, reference, words, measure="c_npmi") for score in scores]
    return [{"relevance": weight, "npmi": npmi} for weight, npmi in zip(WEIGHTS, found, strict=True)]


def main():
    """Measure what is missing of the table, and print its means."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--corpora", choices=tuple(DATA), nargs="+", default=list(DATA))
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results", help="of relevance.csv")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    wanted = cells()["relevance"]
    rows = Rows(arguments.output / "relevance.csv", list(wanted[0]))
    for cell in wanted:
        if (name := cell["corpus"]) in arguments.corpora:
            work = partial(measure, name, Path(arguments.data), cell["epsilon"], cell["topics"], cell["seed"])
            rows.measure(cell, work, [measure], [DATA[name]])
    columns = ["corpus", "epsilon", "topics"]
    print(rows.table.pivot_table(index="relevance", columns=columns, values="npmi").round(3))


if __name__ == "__main__":
    main()
