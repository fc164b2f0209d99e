"""Which relevance makes top words that go together: NPMI of private topics on held-out texts.

For the default of `top_words(relevance=)`, of 20 Newsgroups and of news articles. Posts lose their headers;
a random tenth of the texts is the reference of gensim's c_npmi. A document is the counts of its words among the 1,000
that most training texts have, English stop words apart. (A vocabulary chosen from the data is not private; it is the
same for all rows.) Top words are the ten of largest relevance; relevance 1 is the order of probabilities.

    python benchmarks/relevance.py
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from corpora import json_rows, newsgroup_posts, split
from results import Table, run
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import VIPSLDA
from skdplda.datasets import frequent_words
from skdplda.metrics import coherence, topic_relevance

DATA = {"20 Newsgroups": "20news", "news": "news"}  # by the name in the table
WEIGHTS = [0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0]


@dataclass(frozen=True)
class Settings:
    """Of the rows of one fit."""

    corpus: str
    epsilon: float
    topics: int
    seed: int
    delta: float = 1e-6
    words: int = 1000
    test_share: float = 0.1
    split_seed: int = 0


def cells():
    """Return what there is to measure."""
    return [Settings(*one) for one in product(DATA, [2.0], [10, 20], range(3))]


def texts_of(corpus):
    """Return the texts of a corpus."""
    return newsgroup_posts().data if corpus == "20 Newsgroups" else [article["text"] for article in json_rows("news")]


def measure(s):
    """Return the NPMI of the topics of one fit, for each relevance."""
    texts = texts_of(s.corpus)
    train, test = ([texts[i] for i in part] for part in split(len(texts), s.test_share, s.split_seed))
    options = {"token_pattern": r"(?u)\b[^\W\d_]{2,}\b", "stop_words": "english"}
    words = frequent_words(train, s.words, **options)
    vectorizer = CountVectorizer(vocabulary=words, **options)
    X = vectorizer.transform(train)
    cut = vectorizer.build_analyzer()
    reference = [cut(text) for text in test]
    model = VIPSLDA(s.topics, epsilon=s.epsilon, delta=s.delta, random_state=s.seed).fit(X)
    sizes = model.topic_info(1)["size"]
    scores = [np.exp(topic_relevance(model.topic_word_, weight, sizes)) for weight in WEIGHTS]
    found = [coherence(score, reference, words, measure="c_npmi") for score in scores]
    return [{"relevance": weight, "npmi": npmi} for weight, npmi in zip(WEIGHTS, found, strict=True)]


def report(tables, folder):
    """Print means."""
    columns = ["corpus", "epsilon", "topics"]
    print(tables["relevance"].pivot_table(index="relevance", columns=columns, values="npmi").round(3))


TABLES = [
    Table("relevance", Settings, cells, measure, data=lambda s: [DATA[s.corpus]]),
]
if __name__ == "__main__":
    run(TABLES, __doc__, report)
