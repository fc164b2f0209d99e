"""Variational LDA beside scikit-learn's and gensim's: seconds a pass, held-out perplexity, and the cost of privacy.

One process, one thread, all fits in turn, so that what else the machine does falls on all alike; the seconds are CPU
time, the median of the repeats. Same corpus (UCI; a tenth is the test set), same mini-batches of expected size, same
number of passes and learning rate, both with the same priors and with each library's own. Perplexity is by document
completion, with one prior of topic proportions for all.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/variational.py

The second table has the cost of privacy: the same rounds with and without noise, of all documents and in mini-batches.
"""

import math
from dataclasses import dataclass
from functools import cache
from itertools import product

import corpora
import numpy as np
from apart import timed
from corpora import path_of
from results import Table, run

from skdplda import VIPSLDA
from skdplda.datasets import load_uci_bow
from skdplda.metrics import perplexity

OFFSET, DECAY, ALPHA, TOL = 10.0, 0.7, 0.1, 1e-3
ONLINE = {
    "learning_method": "online",
    "learning_offset": OFFSET,
    "learning_decay": DECAY,
    "mean_change_tol": TOL,
    "n_jobs": 1,
}
PRIORS = {"same": {"alpha": ALPHA, "eta": 0.1}, "own": {"alpha": None, "eta": None}}


@dataclass(frozen=True)
class Settings:
    """Of a row of one library."""

    corpus: str
    topics: int
    priors: str
    library: str
    passes: int = 5
    batch: int = 256
    repeats: int = 3


@dataclass(frozen=True)
class Cost:
    """Of a row of the cost of privacy."""

    corpus: str
    topics: int
    method: str
    sampling_rate: float
    rounds: int = 20
    epsilon: float = 5.0
    repeats: int = 3


def cells():
    """Return what there is to measure."""
    return [Settings(*one) for one in product(("kos", "nips"), (50, 100), PRIORS, FITS)]


def cost_cells():
    """Return what there is to measure."""
    methods = ("batch", 1.0), ("online", 0.25), ("online", 0.05)
    return [Cost(*one, *method) for *one, method in product(("kos", "nips"), (50, 100), methods)]


@cache
def split(corpus):
    """Return training and test documents."""
    X = load_uci_bow(path_of(corpus)).data
    return [X[part] for part in corpora.split(X.shape[0])]


def fit_skdplda(X, n_topics, passes, batch, alpha, eta, seed, epsilon=math.inf):
    """Return topics after so many passes on average."""
    rate = min(1.0, batch / X.shape[0])
    model = VIPSLDA(
        n_topics,
        epsilon=epsilon,
        sampling_rate=rate,
        max_iter=math.ceil(passes / rate),
        doc_topic_prior=alpha,
        topic_word_prior=eta,
        random_state=seed,
        **ONLINE,
    )
    return model.fit(X).topic_word_


def fit_scikit_learn(X, n_topics, passes, batch, alpha, eta, seed):
    """Return topics of LatentDirichletAllocation, online."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        n_topics,
        batch_size=batch,
        max_iter=passes,
        doc_topic_prior=alpha,
        topic_word_prior=eta,
        random_state=seed,
        **ONLINE,
    )
    components = model.fit(X).components_
    return components / components.sum(axis=1, keepdims=True)


def fit_gensim(X, n_topics, passes, batch, alpha, eta, seed):
    """Return topics of LdaModel, from a corpus in gensim's own form."""
    from gensim.models import LdaModel

    corpus, n_words = in_pairs(X), X.shape[1]

    model = LdaModel(
        corpus,
        num_topics=n_topics,
        id2word={word: str(word) for word in range(n_words)},
        passes=passes,
        chunksize=batch,
        offset=OFFSET,
        decay=DECAY,
        gamma_threshold=TOL,
        alpha=alpha or "symmetric",
        eta=eta or "symmetric",
        eval_every=None,
        random_state=seed,
        dtype=np.float32,
    )
    return model.get_topics()


def in_pairs(X):
    """Return a corpus in gensim's own form."""
    return [list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in X]


FITS = {"skdplda": fit_skdplda, "scikit-learn": fit_scikit_learn, "gensim": fit_gensim}


def compare(s):
    """Return the medians of the repeats, beside our own seconds in turn."""
    (X, X_test), found = split(s.corpus), {name: [] for name in dict.fromkeys(("skdplda", s.library))}
    rest = s.passes, s.batch, PRIORS[s.priors]["alpha"], PRIORS[s.priors]["eta"]
    for repeat in range(s.repeats):
        for library, fits in found.items():
            topics, seconds = timed(FITS[library], X, s.topics, *rest, repeat)
            topics = topics.astype(float) + 1e-12  # gensim's single precision may give zeros
            topics /= topics.sum(axis=1, keepdims=True)
            fits.append((seconds / s.passes, perplexity(X_test, topics, doc_topic_prior=ALPHA)))
    (ours, _), (seconds, found) = (np.median(found[name], axis=0) for name in ("skdplda", s.library))
    return {"cpu_s_a_pass": seconds, "perplexity": found, "times_ours": seconds / ours}


def privacy_cost(s):
    """Return the CPU seconds of rounds without and with noise."""
    X, times = split(s.corpus)[0], []
    for _ in range(s.repeats):
        pair = []
        for epsilon in (math.inf, s.epsilon):
            model = VIPSLDA(
                s.topics,
                epsilon=epsilon,
                learning_method=s.method,
                sampling_rate=s.sampling_rate,
                max_iter=s.rounds,
                n_jobs=1,
            )
            model.privacy_cost()  # calibration is cached, and does not grow with the corpus
            pair.append(timed(model.fit, X)[1])
        times.append(pair)
    exact, private = np.median(times, axis=0)
    return {"exact_cpu_s": exact, "private_cpu_s": private, "ratio": np.median([two / one for one, two in times])}


TABLES = [
    Table("variational", Settings, cells, compare, lambda s: [s.corpus], timed=("cpu_s_a_pass", "times_ours")),
    Table("variational_private_cost", Cost, cost_cells, privacy_cost, lambda s: [s.corpus], timed=True),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
