"""How to share one budget between words and topics: what a fully private pipeline gains, over the share of the words.

For a total epsilon and each share of it that selects the words, the topics get what joint accounting leaves. Words that
were not selected are not modelled, so that perplexities over different vocabularies do not compare. What does is the
gain over the word frequencies, in nats a token of the test documents, those of unselected words included with a gain
of 0: (ln unigram perplexity - ln perplexity) x share of tokens whose word was selected. The unigram model has the exact
frequencies of the selected words, and is only a yardstick. English stop words are left out, a document is the set
of its words, a random tenth of the documents is the test set.

    python benchmarks/vocabulary_share.py
"""

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from corpora import newsgroup_posts, split, tweet_texts
from results import Table, run

from skdplda import DPCountVectorizer, make_fdptm_pipeline, privacy_guarantee
from skdplda.metrics import unigram_perplexity

TWEETS, NEWS = "TweetRumors", "20 Newsgroups"
DATA, TOPICS = {TWEETS: "tweets", NEWS: "20news"}, {TWEETS: 5, NEWS: 10}


@dataclass(frozen=True)
class Settings:
    """Of a row."""

    corpus: str
    epsilon: float
    share: float
    seed: int
    topics: int
    delta: float = 1e-5


def cells():
    """Return what there is to measure."""
    shares = 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7
    return [Settings(*one, TOPICS[one[0]]) for one in product(DATA, (1.0, 3.0, 5.0, 10.0), shares, range(3))]


@cache
def texts_of(corpus):
    """Return texts to train and to test."""
    texts = newsgroup_posts().data if corpus == NEWS else tweet_texts()
    return [[texts[i] for i in part] for part in split(len(texts))]


def measure(s):
    """Fit one pipeline and return a row of the table."""
    train, test = texts_of(s.corpus)
    vectorizer = DPCountVectorizer(stop_words="english", token_pattern=None, binary=True)
    options = {"n_components": s.topics, "vocabulary_share": s.share, "vectorizer": vectorizer}
    pipeline = make_fdptm_pipeline(s.epsilon, s.delta, **options)
    pipeline.set_params(words__random_state=1000 + s.seed, topics__random_state=s.seed).fit(train)
    X_train, X_test = (pipeline[:-1].transform(texts) for texts in (train, test))
    analyze = vectorizer.build_analyzer()
    kept = X_test.sum() / sum(len(set(analyze(text))) for text in test)
    gain = np.log(unigram_perplexity(X_train, X_test)) - np.log(pipeline[-1].perplexity(X_test))
    total = privacy_guarantee(pipeline)
    return {
        "words": X_train.shape[1],
        "tokens kept": kept,
        "epsilon of topics": pipeline[-1].epsilon,
        "gain": gain * kept,
        "total epsilon": total.epsilon,
        "total delta": total.delta,
    }


def report(tables, folder):
    """Print means over the seeds."""
    means = tables["vocabulary_share"].groupby(["corpus", "epsilon", "share"], sort=False).mean(numeric_only=True)
    print(means.to_string(float_format="{:.4g}".format))


TABLES = [
    Table("vocabulary_share", Settings, cells, measure, data=lambda s: [DATA[s.corpus]]),
]
if __name__ == "__main__":
    run(TABLES, __doc__, report)
