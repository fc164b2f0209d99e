"""How often chance is called a topic, and how often a topic that is there is called noise.

Five corpora as in `frontier.py`, and the same tokens shuffled over documents of the same lengths, where no topics are.
`presence` has each word of a document once, `counts` as often as it stands there; with both the tokens of the counts
are shuffled. `EmbeddingTopics` gets the sum of the GloVe vectors of a document's words, the words, and their vectors.

A topic is called real where `topic_info` does not mark it as noise. A row has how many are, of how many; whether
documents voted for topics at all; and, where nothing is shuffled, how many topics match one of a fit without noise on
the same documents (cosine above `cosine`), and how many of these are called real. Words of clusters are
largely those of all, so that clusters are also matched by their texts: "same texts" are those that share with one of
the fit without noise more than half of the texts which either has.

    python benchmarks/chance.py --only model=VIPSLDA corpus=KOS
"""

import math
from dataclasses import dataclass
from functools import cache
from itertools import product

import frontier
import numpy as np
import scipy.sparse as sp
from corpora import glove
from results import Table, run
from sklearn.metrics.pairwise import cosine_similarity

from skdplda import EmbeddingTopics
from skdplda.models import VIPSLDA, PrivateCGSLDA

MODELS = {"VIPSLDA": VIPSLDA, "PrivateCGSLDA": PrivateCGSLDA, "EmbeddingTopics": EmbeddingTopics}
CORPORA = (frontier.KOS, frontier.TWEETS, frontier.NEWS, frontier.NIPS, frontier.ENRON)
EPSILONS, SHUFFLED = (0.5, 1.0, 2.0, 5.0), ", shuffled"
SEEDS = {"": (0, 1, 2), SHUFFLED: range(10)}  # by the order of the tokens


@dataclass(frozen=True)
class Chance:
    """Of a row."""

    corpus: str
    data: str
    model: str
    epsilon: float
    seed: int
    topics: int = 10
    delta: float = 1e-5
    n_words: int = 1000
    cosine: float = 0.8


def cells():
    """Return what there is to measure."""
    kinds = product(range(10), CORPORA, ("presence", "counts"), SEEDS, MODELS, EPSILONS)
    return [
        Chance(corpus, data + order, model, epsilon, seed)
        for seed, corpus, data, order, model, epsilon in kinds
        if seed in SEEDS[order]
    ]


def shuffled(X, seed):
    """Return counts where the tokens of all documents are in a random order, and documents as long as before."""
    tokens = np.random.default_rng(seed).permutation(np.repeat(X.indices, X.data))
    document = np.repeat(np.arange(X.shape[0]), np.asarray(X.sum(axis=1)).ravel())
    counts = sp.coo_array((np.ones(len(tokens), np.int64), (document, tokens)), shape=X.shape).tocsr()
    counts.sum_duplicates()
    return counts


@cache
def vectors_of(name, n_words):
    """Return GloVe vectors of a corpus's words, zeros where there is none."""
    words = frontier.load(name, n_words).words
    names, vectors = glove()
    place = {word: i for i, word in enumerate(names)}
    table = np.vstack([vectors.astype(np.float64), np.zeros(vectors.shape[1])])
    return table[[place.get(word, -1) for word in words]]


def fitted(s, X, epsilon):
    """Return the model, fitted to these documents."""
    corpus = frontier.load(s.corpus, s.n_words)
    options, more = {} if corpus.groups is None else {"groups": corpus.groups}, {}
    if s.model == "EmbeddingTopics":
        vectors = vectors_of(s.corpus, s.n_words)
        more = {"public_rows": vectors[vectors.any(axis=1)]}
        X, options = (X > 0).astype(float) @ vectors, options | {"counts": X, "word_vectors": vectors}
    model = MODELS[s.model](
        s.topics, epsilon=epsilon, delta=s.delta, random_state=s.seed.to_bytes(32), n_jobs=1, **more
    )
    return model.fit(X, **options)


@cache
def exact(corpus, data, model, topics, n_words):
    """Return the model without noise."""
    s = Chance(corpus, data, model, math.inf, 0, topics, n_words=n_words)
    return fitted(s, documents(s), math.inf)


def documents(s):
    """Return the documents of a cell."""
    counts = frontier.load(s.corpus, s.n_words).counts.astype(np.int64)
    counts = shuffled(counts, s.seed) if s.data.endswith(SHUFFLED) else counts
    return counts if s.data.startswith("counts") else (counts > 0).astype(np.int64)


def measure(s):
    """Fit, and return the values of a row."""
    model = fitted(s, documents(s), s.epsilon)
    real = ~model.topic_info()["noise"].to_numpy(dtype=bool)
    found = {"voted": bool(model.topic_signal_to_noise_.any()), "real": real.sum(), "of": len(real)}
    if s.data.endswith(SHUFFLED):
        return found
    known = exact(s.corpus, s.data, s.model, s.topics, s.n_words)
    match = cosine_similarity(model.topic_word_, known.topic_word_).max(axis=1) > s.cosine
    found |= {"matching": match.sum(), "matching and real": (real & match).sum()}
    if s.model == "EmbeddingTopics":
        X = (documents(s) > 0).astype(float) @ vectors_of(s.corpus, s.n_words)
        texts, others = (one.predict(X)[:, None] == range(s.topics) for one in (model, known))
        both = texts.T.astype(float) @ others
        same = (both > 0.5 * (texts.sum(axis=0)[:, None] + others.sum(axis=0) - both)).any(axis=1)
        found |= {"same texts": same.sum(), "same texts and real": (real & same).sum()}
    return found


def files(s):
    """Return the files of a cell."""
    return (frontier.FILES[s.corpus], *(["glove"] if s.model == "EmbeddingTopics" else []))


TABLES = [
    Table("chance", Chance, cells, measure, files),
]

if __name__ == "__main__":
    run(TABLES, __doc__)
