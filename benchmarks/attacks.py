"""Zeta, the largest log-likelihood of a document over mixtures of topics: our kernel beside SciPy's SLSQP.

The paper calls SciPy's optimizer "out of the box" once a document; here it is SLSQP with the constraint that the
weights sum to one, with numerical gradients as out of the box, and also with exact gradients. CPU time in one
process, one thread each. Between batches of SLSQP our kernel takes a batch, and all documents at once, as an attack
asks; so what else the machine does hits all alike. The table has medians; "times" compares SLSQP with all at once.
SLSQP ends a little outside the simplex: its weights are scaled back to it before values are compared. "short by" is
the largest relative amount by which our value is below SLSQP's; "gap a token" the largest certificate.

    python benchmarks/attacks.py
"""

import json
import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from corpora import path_of
from results import Table, run
from scipy.optimize import minimize
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

from skdplda.attacks import max_log_likelihood
from skdplda.datasets import load_uci_bow

DATA = {"TweetRumors": "tweets", "NIPS": "nips"}


@dataclass(frozen=True)
class Settings:
    """Of a row."""

    corpus: str
    topics: int
    batches: int = 10
    size: int = 100  # documents of a batch


def cells():
    """Return what there is to measure."""
    return [Settings("TweetRumors", 5), Settings("NIPS", 10)]


def counts_of(corpus):
    """Return the counts of a corpus."""
    if corpus == "NIPS":
        return sp.csr_array(load_uci_bow(path_of("nips"), path_of("nips-words")).data)
    texts = json.loads(path_of("tweets").read_text(encoding="utf-8"))["text"]
    return sp.csr_array(CountVectorizer(token_pattern=r"\S+").fit_transform(texts))


def slsqp(words, counts, topic_word, exact):
    """Return the weights that SciPy finds, scaled to sum to 1."""
    table = topic_word[:, words]
    found = minimize(
        lambda theta: -(counts @ np.log(theta @ table)),
        np.full(len(table), 1 / len(table)),
        jac=(lambda theta: -(table @ (counts / (theta @ table)))) if exact else None,
        method="SLSQP",
        bounds=[(0, 1)] * len(table),
        constraints={"type": "eq", "fun": lambda theta: theta.sum() - 1},
    ).x
    found = np.maximum(found, 0)
    return found / found.sum()


def measure(s):
    """Return the row of one corpus."""
    X, n_batches, size = counts_of(s.corpus), s.batches, s.size
    model = LatentDirichletAllocation(s.topics, random_state=0).fit(X[::2])
    topic_word = model.components_ / model.components_.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    documents = rng.permutation(np.flatnonzero(np.diff(X.indptr)))[: n_batches * size].reshape(n_batches, -1)
    max_log_likelihood(topic_word, X[:64])  # what happens once
    whole, ours, theirs, theirs_exact, short, gaps = [], [], [], [], [], []
    for batch in documents:
        part = X[batch]
        begin = time.process_time()
        max_log_likelihood(topic_word, X)
        whole.append((time.process_time() - begin) / X.shape[0])
        begin = time.process_time()
        value, gap, _ = max_log_likelihood(topic_word, part)
        ours.append((time.process_time() - begin) / size)
        for exact, times in ((False, theirs), (True, theirs_exact)):
            begin = time.process_time()
            rows = [(part.indices[a:b], part.data[a:b]) for a, b in zip(part.indptr, part.indptr[1:], strict=False)]
            weights = [slsqp(words, counts, topic_word, exact) for words, counts in rows]
            times.append((time.process_time() - begin) / size)
            reached = [c @ np.log(theta @ topic_word[:, w]) for theta, (w, c) in zip(weights, rows, strict=True)]
            short.append(((np.array(reached) - value) / np.abs(reached)).max())
        gaps.append((gap / np.asarray(part.sum(axis=1)).ravel()).max())
    return {
        "documents": documents.size,
        "ours us": 1e6 * np.median(whole),
        "ours in batches us": 1e6 * np.median(ours),
        "SLSQP us": 1e6 * np.median(theirs),
        "SLSQP, exact gradient us": 1e6 * np.median(theirs_exact),
        "times": np.median(theirs) / np.median(whole),
        "times, exact gradient": np.median(theirs_exact) / np.median(whole),
        "short by": max(max(short), 0.0),
        "gap a token": max(gaps),
    }


def report(tables, folder):
    """Print the table."""
    print(tables["attacks_zeta"].T.to_string(header=False))


TABLES = [
    Table("attacks_zeta", Settings, cells, measure, lambda s: [DATA[s.corpus]], timed=True),
]
if __name__ == "__main__":
    run(TABLES, __doc__, report)
