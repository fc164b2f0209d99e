"""Names of clusters, judged three times, on posts, mails and tweets that are held out; all of it private.

Texts in, 20 clusters and ten keywords of each out, by `make_insights_pipeline` with means of GloVe vectors, delta 1e-5:

* 20 Newsgroups: raw posts, a tenth held out (1,884), groups are newsgroups.
* Enron by sender: mails, a sender with all of its mails hidden; a tenth of the mails held out, groups are mailboxes.
* TweetRumors: raw tweets, a fifth held out; groups are the five events of PHEME. The authors' file does not name
  them: they are taken to stand one after the other, in PHEME's sizes, and the borders were looked at by keywords only.

Rows: NPMI of the pairs of a cluster's keywords in held-out texts, -1 for pairs that never meet; diversity, the share of
different words among all keywords; and the NMI with the groups, if a held-out text goes to the cluster of whose
keywords it has most. "private words": the words are chosen from the texts, for a fifth of epsilon. Constants were
chosen on KOS, news and passages of news, by NMI with clusters of k-means, but 20 Newsgroups, Enron and tweets were in
view when one of them was: by how much a word that is near to another cluster, too, counts less.

"planted": an attacker adds texts to 2,000 tweets, of a public word, which moves, and of a string that nobody else has;
each attack has another word, string and seed. It succeeds if the string is a keyword of a cluster. One text is one
unit; a hundred texts of one user are one unit if users are, and else a hundred. Each tweet is of another user.

    python benchmarks/names.py [--help]
"""

import math
from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

import numpy as np
from corpora import json_rows, tweet_texts
from embedding import OF_ROWS, posts, vectors_of
from results import Table, run
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import normalized_mutual_info_score

from skdplda import EmbeddingTopics, make_insights_pipeline
from skdplda.models import _cluster_rounds
from skdplda.semantics import WordVectorEmbedder

K, DELTA, EPSILONS, N_KEYWORDS = 20, 1e-5, (0.5, 1.0, 2.0), 10
EVENTS = (890, 469, 2079, 1221, 1143)  # tweets of Ottawa, Germanwings, Charlie Hebdo, Sydney and Ferguson
FILES = {"20 Newsgroups": "20news", "Enron by sender": "enron", "TweetRumors": "tweets_raw"}


@dataclass(frozen=True)
class Settings:
    """Of the row of one cell."""

    corpus: str
    words: str
    epsilon: float
    n_seeds: int = 3


@cache
def texts_of(corpus):
    """Return texts, groups and users, or None where each text is its own."""
    if corpus == "20 Newsgroups":
        return *posts()[:2], None
    if corpus == "TweetRumors":
        return tweet_texts(FILES[corpus]), np.repeat(np.arange(len(EVENTS)), EVENTS), None
    mails = json_rows(FILES[corpus])
    texts = [f"{mail['subject'] or ''} {mail['body'] or ''}" for mail in mails]
    boxes, senders = (np.unique([mail[name] for mail in mails], return_inverse=True)[1] for name in ("user", "frm"))
    return texts, boxes, senders


@cache
def embedder():
    return WordVectorEmbedder(vectors_of())


def split(corpus):
    """Return the numbers of texts that are held out, and of the others."""
    n_texts = len(texts_of(corpus)[0])
    order = np.random.default_rng(0).permutation(n_texts)
    n_held_out = n_texts // (5 if corpus == "TweetRumors" else 10)
    return np.sort(order[:n_held_out]), np.sort(order[n_held_out:])


def fitted(corpus, words, epsilon, seed):
    """Return the held-out texts and their groups, and a pipeline that is fitted on the others."""
    (texts, groups, users), (test, train) = texts_of(corpus), split(corpus)
    options = {"public_vocabulary": None} if words == "private words" else {}
    model = EmbeddingTopics(K, random_state=seed)
    pipeline = make_insights_pipeline(
        epsilon, DELTA, embedder=embedder(), model=model, groups=users is not None, **options
    )
    pipeline.fit([texts[i] for i in train], groups=None if users is None else users[train])
    return [texts[i] for i in test], groups[test], pipeline


def keywords_of(model, words=None):
    """Return the keywords of topics, (n_topics, n_words)."""
    return model.top_words(min(N_KEYWORDS, model.topic_word_.shape[1]), words).to_numpy()  # private words may be few


def judged(texts, groups, keywords, analyze):
    """Return NPMI, diversity and NMI of the keywords."""
    words, columns = np.unique(keywords.astype(str), return_inverse=True)
    found = CountVectorizer(vocabulary=words, analyzer=analyze, binary=True).transform(texts).toarray().astype(float)
    together, columns = found.T @ found / len(texts), columns.reshape(keywords.shape)
    alone, npmi = np.diag(together), []
    for row_ in columns:
        for a, b in zip(*np.triu_indices(len(row_), 1), strict=True):
            i, j = row_[a], row_[b]
            joint = together[i, j]
            npmi.append(
                -1 if joint == 0 else math.log(joint / (alone[i] * alone[j])) / -math.log(min(joint, 1 - 1e-12))
            )
    labels = np.stack([found[:, row_].sum(axis=1) for row_ in columns]).argmax(axis=0)
    return np.mean(npmi), len(words) / keywords.size, normalized_mutual_info_score(groups, labels)


def names(s):
    """Return means and deviations of the three judges."""
    found = []
    for seed in range(s.n_seeds):
        texts, groups, pipeline = fitted(s.corpus, s.words, s.epsilon, seed)
        found.append(judged(texts, groups, keywords_of(pipeline[-1]), pipeline[0].build_analyzer()))
    values = {}
    for measure, column in zip(("NPMI", "diversity", "NMI of keywords"), np.transpose(found), strict=True):
        values |= {measure: column.mean(), f"{measure}, deviation": column.std()}
    return values


def cells():
    """Return what there is to measure."""
    words = ("words near centres", "private words")
    return [Settings(corpus, kind, epsilon) for corpus in FILES for kind in words for epsilon in EPSILONS]


@dataclass(frozen=True)
class Planted:
    """Of the row of some attacks."""

    words: str
    unit: str
    planted: int
    epsilon: float
    n_posts: int = 2000
    n_attacks: int = 100


def planted_cells():
    """Return what there is to measure; without private words, nothing of an outside string is counted."""
    kinds = [("record", 1), ("record", 100), ("user", 100)]
    cells = [("private words", *kind, epsilon) for epsilon in (1.0, math.inf) for kind in kinds]
    return [Planted(*cell) for cell in [*cells, ("public words", *kinds[1], math.inf)]]


def planted(s):
    """Return in how many attacks a planted string is a keyword, and the probability that the guarantee allows."""
    own, public, found = tweet_texts(FILES["TweetRumors"])[: s.n_posts], embedder().public_words(), 0
    options = {"public_vocabulary": None} if s.words == "private words" else {}
    users = np.append(np.arange(s.n_posts), np.full(s.planted, -1))
    for attack in range(s.n_attacks):
        string = f"planted{attack}string"
        word = public[np.random.default_rng(attack).integers(100, 5000)]
        model = EmbeddingTopics(K, random_state=attack)
        pipeline = make_insights_pipeline(
            s.epsilon, DELTA, embedder=embedder(), model=model, groups=s.unit == "user", **options
        )
        with patch.object(_cluster_rounds.PublicStart, "of_rows", staticmethod(OF_ROWS)):  # the same in all fits
            pipeline.fit(own + [f"{word} {string}"] * s.planted, groups=users if s.unit == "user" else None)
        found += string in keywords_of(pipeline[-1])
    one_unit = s.planted == 1 or s.unit == "user"
    bound = 0.0 if not options else DELTA if math.isfinite(s.epsilon) and one_unit else 1.0
    return {"successes": found, "bound": bound}


TABLES = [
    Table("planted", Planted, planted_cells, planted, lambda s: [FILES["TweetRumors"], "glove"]),
    Table("names", Settings, cells, names, lambda s: [FILES[s.corpus], "glove"]),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
