"""What a stream costs against one fit: topics of the same documents, in one fit or in batches that each come once.

Posts of 20 Newsgroups lose their headers; a random tenth of them is held out, the others come in random order. A
document is the counts of its words among the 1,000 that most training texts have, English stop words apart. (A
vocabulary chosen from the data is not private; it is the same for all rows.) "batches" is 0 for one `fit`; else each
`partial_fit` takes one of so many batches, with `max_visits=1`. `noise_topics` are those that `topic_info` marks,
`signal` is the mean of their signal-to-noise, `gain` the held-out log-likelihood a token above that of the unigram
model.

    python benchmarks/batches.py
"""

import math
from dataclasses import dataclass

from corpora import newsgroup_posts, split
from results import Table, run
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import VIPSLDA
from skdplda.datasets import frequent_words
from skdplda.metrics import unigram_perplexity


@dataclass(frozen=True)
class Settings:
    """Of a row."""

    batches: int
    epsilon: float
    seed: int
    topics: int = 10
    delta: float = 1e-6
    words: int = 1000
    test_share: float = 0.1
    split_seed: int = 0


def cells():
    """Return what there is to measure: at twice to eight times epsilon, how much less noise would help a stream."""
    plan = [(batches, 2.0) for batches in (0, 1, 2, 4, 11, 40)] + [(11, 4.0), (11, 8.0), (11, 16.0)]
    return [Settings(*one, seed) for one in plan for seed in range(3)]


def measure(s):
    """Return what the topics of one row are."""
    texts = newsgroup_posts().data
    train, test = ([texts[i] for i in part] for part in split(len(texts), s.test_share, s.split_seed))
    options = {"token_pattern": r"(?u)\b[^\W\d_]{2,}\b", "stop_words": "english"}
    vectorizer = CountVectorizer(vocabulary=frequent_words(train, s.words, **options), **options)
    X, X_test = vectorizer.transform(train), vectorizer.transform(test)
    common = {"epsilon": s.epsilon, "delta": s.delta, "random_state": s.seed}
    if s.batches:
        size = math.ceil(X.shape[0] / s.batches)
        common |= {"learning_method": "online", "batch_size": size, "nominal_size": X.shape[0]}
        model = VIPSLDA(s.topics, max_iter=s.batches, max_visits=1, **common)
        for start in range(0, X.shape[0], size):
            model.partial_fit(X[start : start + size])
    else:
        model = VIPSLDA(s.topics, **common).fit(X)
    info = model.topic_info(1)
    return {
        "noise_topics": int(info["noise"].sum()),
        "signal": float(info["signal_to_noise"].mean()),
        "gain": model.score(X_test) + math.log(unigram_perplexity(X, X_test)),
    }


TABLES = [
    Table("batches", Settings, cells, measure, data=lambda s: ["20news"]),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
