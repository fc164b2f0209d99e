"""Private clusters of embeddings: how much of non-private k-means is left, keywords, poisoning, speed.

Posts of 20 Newsgroups (headers stripped), senders by their "From:" line, embedded by means of GloVe vectors with
smoothed inverse frequencies (Zipf's law, no frequencies of the posts). NMI is with the 20 groups, and its share that of
scikit-learn's k-means (best of five starts) on the same vectors, centred by their exact mean. Rows:

* clusters: `EmbeddingTopics`, K=20, GloVe as public start, all of the budget for clusters (no counts), delta 1e-5; and
  DPLloyd as published (Su et al. 2016: Laplace noise, five rounds, vectors as they are, spread starts), and with
  Gaussian noise, our public start and noisy centre: no shrinkage.
* keywords: with half of the budget for words: NMI, the share of the ten keywords of each cluster that class-based
  tf-idf without noise has for the clusters that the private model predicts, c_npmi of ten words in the held-out posts,
  and perplexity of a held-out tenth by document completion, of the clusters' words, and of `VIPSLDA` with GloVe as a
  prior at the same total.
* poisoning: success of `poisoning_attack` on posts, against a threshold of 30 users and against noise.
* speed: 1,000,000 x 128 from disk, K=100: seconds of processor time, and peak memory, of one process.

* constants: means over Enron, all and 2,000 messages (NMI with mailboxes, as a share of that of k-means), KOS and news
  (NMI with k-means), for what the estimator's constants were chosen from. It was not chosen on the posts above.

Seeds make rows repeatable.

    python benchmarks/embedding.py --data FOLDER [--part clusters keywords poisoning speed constants] [--seeds 3]
"""

import argparse
import json
import lzma
import math
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import normalized_mutual_info_score

from skdplda import VIPSLDA, EmbeddingTopics, PublicPrior
from skdplda.attacks import poisoning_attack, threshold_keywords
from skdplda.datasets import load_20newsgroups, load_uci_bow
from skdplda.metrics import coherence
from skdplda.rounds import _clusters
from skdplda.semantics import WordVectorEmbedder

K, DELTA, EPSILONS, FEW, N_WORDS = 20, 1e-5, (0.1, 0.5, 1.0), 2000, 2000
RESULTS = Path(__file__).parent / "results" / "embedding.csv"
CHANGES = ({}, {"ROUNDS": 6, "RATIO": 2.0}, {"BELIEVED": 1.0}, {"BELIEVED": 1e-6}, {"CENTRE_SHARE": 0.05})
LLOYD_ROUNDS, LLOYD_RHO = 5, 0.225  # Su et al., section 3
FILE = "20news_bydate_raw.jsonl.xz"


def vectors_of(data):
    """Return (words, vectors) of the GloVe file."""
    with np.load(Path(data) / "glove6B_100d_top60k_f16.npz") as file:
        return str(file["words"]).split("\n"), file["vectors"].astype(np.float32)


def posts(data):
    """Return texts, groups and senders."""
    bunch = load_20newsgroups("all", path=Path(data) / FILE)
    with lzma.open(Path(data) / FILE, "rt") as file:
        found = [re.search(r"^From: (.*)$", json.loads(line)["text"], re.MULTILINE) for line in file]
    return bunch.data, np.asarray(bunch.target), np.array([m[1] if m else f"post {i}" for i, m in enumerate(found)])


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def exact_labels(X):
    """Return the clusters of k-means without noise, centre exact."""
    rows = unit(X)
    return KMeans(K, n_init=5, random_state=0).fit_predict(unit(rows - rows.mean(axis=0)))


def lloyd(X, epsilon, seed, start=None):
    """Return the clusters of DPLloyd as published: Laplace noise on counts and on sums of coordinates in [-1, 1]."""
    rng, rows = np.random.default_rng(seed), unit(X)
    n_dimensions = rows.shape[1]
    ratio = (4 * n_dimensions * LLOYD_RHO**2) ** (1 / 3)  # of the count's epsilon over that of a coordinate's sum
    each = epsilon / LLOYD_ROUNDS / (n_dimensions + ratio)
    centres = 0.5 * unit(rng.standard_normal((K, n_dimensions)))
    for _ in range(LLOYD_ROUNDS):
        labels = nearest(rows, centres)
        counts = np.bincount(labels, minlength=K) + rng.laplace(scale=1 / (each * ratio), size=K)
        sums = np.zeros((K, n_dimensions))
        np.add.at(sums, labels, rows)
        sums += rng.laplace(scale=1 / each, size=sums.shape)
        centres = np.clip(sums / np.maximum(counts, 1)[:, None], -1, 1)
    return nearest(rows, centres)


def gaussian_lloyd(X, epsilon, seed, start):
    """Return the clusters of k-means with Gaussian noise, a noisy centre and a public start, without shrinkage."""
    rng, rows, (init, weights) = np.random.default_rng(seed), unit(X), start
    sigma = EmbeddingTopics(K, epsilon=epsilon, delta=DELTA)._plan().multipliers[0]
    # one part for the centre, five for the rounds; a row of length 1 and its count have norm sqrt(2)
    noise = math.sqrt(2) * sigma * math.sqrt(LLOYD_ROUNDS + 1)
    number = max(len(rows) + rng.normal(scale=noise), 1)
    centre = (rows.sum(axis=0) + rng.normal(scale=noise, size=rows.shape[1])) / number
    rows = unit(rows - centre)
    public = unit(init)
    public = unit(public - weights @ public / weights.sum())
    centres = KMeans(K, n_init=1, random_state=0).fit(public, sample_weight=weights).cluster_centers_
    for _ in range(LLOYD_ROUNDS):
        labels = nearest(rows, unit(centres))
        sums = np.zeros(centres.shape)
        np.add.at(sums, labels, rows)
        centres = sums + rng.normal(scale=noise, size=sums.shape)
    return nearest(rows, unit(centres))


def nearest(rows, centres):
    return (rows @ centres.T - (centres**2).sum(axis=1) / 2).argmax(axis=1)


def clusters(data, seeds):
    """Yield rows of NMI as a share of that without noise."""
    texts, groups, senders = posts(data)
    embedder = WordVectorEmbedder(vectors_of(data))
    everything, start = embedder.transform(texts), embedder.public_rows()
    for name, size, users in (("all posts", None, None), ("2,000 posts", FEW, None), ("senders", None, senders)):
        chosen = np.random.default_rng(0).permutation(len(texts))[:size]
        X, y, own = everything[chosen], groups[chosen], None if users is None else users[chosen]
        known = X.any(axis=1)
        exact = normalized_mutual_info_score(y[known], exact_labels(X[known]))
        yield row("clusters", f"k-means; {name}", math.inf, "NMI", [exact])
        for epsilon in EPSILONS:
            labels = [fitted(X, epsilon, seed, start, own).predict(X) for seed in range(seeds)]
            found = [normalized_mutual_info_score(y[known], one[known]) / exact for one in labels]
            yield row("clusters", f"EmbeddingTopics; {name}", epsilon, "share of NMI", found)
            if users is None and size is None:
                for method, run in (("DPLloyd", lloyd), ("DPLloyd, Gaussian, public start", gaussian_lloyd)):
                    labels = [run(X, epsilon, seed, start) for seed in range(seeds)]
                    found = [normalized_mutual_info_score(y[known], one[known]) / exact for one in labels]
                    yield row("clusters", f"{method}; {name}", epsilon, "share of NMI", found)


def fitted(X, epsilon, seed, start, users=None, counts=None, max_iter=None):
    """Return a fitted model, with a seed so that rows are repeatable."""
    model = EmbeddingTopics(K, epsilon=epsilon, delta=DELTA, init=start[0], init_weight=start[1], random_state=seed)
    model.set_params(max_iter=max_iter)
    return model.fit(X, groups=users, counts=counts)


def keywords(data, seeds):
    """Yield rows about words."""
    texts, groups, _ = posts(data)
    glove = vectors_of(data)
    embedder = WordVectorEmbedder(glove)
    X, start = embedder.transform(texts), embedder.public_rows()
    order = np.random.default_rng(0).permutation(len(texts))
    train, test = np.sort(order[len(texts) // 10 :]), np.sort(order[: len(texts) // 10])
    counter = CountVectorizer(stop_words="english", max_features=N_WORDS, binary=True, token_pattern=r"[a-zA-Z]{3,}")
    counts = counter.fit_transform([texts[i] for i in train])
    held_out = counter.transform([texts[i] for i in test])
    held_out = held_out[np.diff(held_out.indptr) >= 10]
    words, analyze = counter.get_feature_names_out(), counter.build_analyzer()
    reference = [analyze(texts[i]) for i in test]
    exact = normalized_mutual_info_score(groups[train], exact_labels(X[train]))
    for epsilon in (1.0, 5.0):
        found = {"share of NMI": [], "agreement": [], "c_npmi": [], "perplexity": [], "perplexity of VIPSLDA": []}
        for seed in range(seeds):
            model = fitted(X[train], epsilon, seed, start, counts=counts)
            labels = model.predict(X[train])
            scores = threshold_scores(counts, labels)
            top = np.argsort(-model._relevance(), axis=1)[:, :10]
            best = np.argsort(-scores, axis=1)[:, :10]
            found["share of NMI"].append(normalized_mutual_info_score(groups[train], labels) / exact)
            found["agreement"].append(np.mean([len(set(a) & set(b)) / 10 for a, b in zip(top, best, strict=True)]))
            found["c_npmi"].append(coherence(model, reference, words, measure="c_npmi", n_top=10))
            found["perplexity"].append(model.perplexity(held_out))
            prior = PublicPrior.from_vectors(glove).for_words(words)
            lda = VIPSLDA(K, epsilon=epsilon, delta=DELTA, prior=prior, random_state=seed).fit(counts)
            found["perplexity of VIPSLDA"].append(lda.perplexity(held_out))
        for measure, values in found.items():
            yield row("keywords", "EmbeddingTopics; all posts but a tenth", epsilon, measure, values)


def threshold_scores(counts, labels):
    """Return class-based tf-idf of given clusters, without noise."""
    known = labels >= 0
    members = sp.csr_array((known.astype(float), (np.maximum(labels, 0), np.arange(len(labels)))), (K, len(labels)))
    found = (members @ counts).toarray()
    tf = found / np.maximum(found.sum(axis=1, keepdims=True), 1)
    return tf * np.log1p(found.sum() / K / np.maximum(found.sum(axis=0), 1))


def poisoning(data, seeds):
    """Yield rows of the attack."""
    texts, _, _ = posts(data)
    texts = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:FEW]]
    embedder = WordVectorEmbedder(vectors_of(data))
    X, start = embedder.transform(texts), embedder.public_rows()
    counts = CountVectorizer(stop_words="english", max_features=500, binary=True).fit_transform(texts)

    def threshold(vectors, counted, users):
        return threshold_keywords(vectors, counted, users, n_clusters=K, least_users=30)

    trial = iter(range(10**9))

    def private(vectors, counted, users):
        return fitted(vectors, 1.0, next(trial), start, users, counted).components_

    for name, epsilon, summarize in (("threshold of 30 users", math.inf, threshold), ("EmbeddingTopics", 1.0, private)):
        result = poisoning_attack(summarize, X, counts, n_secrets=20, n_trials=10 * seeds)
        for measure in ("success", "lower", "upper"):
            yield row("poisoning", f"{name}; 2,000 posts", epsilon, measure, [getattr(result, measure)])
    yield row("poisoning", "bound", 1.0, "success", [math.exp(1.0) / 20 + DELTA])


SPEED = """
import resource, sys, time
import numpy as np
from skdplda import EmbeddingTopics
X = np.load(sys.argv[1], mmap_mode="r")
begun = time.process_time()
EmbeddingTopics(100, epsilon=1.0, delta=1e-7).fit(X)
print(time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def speed(data, seeds):
    """Yield the cost of a million rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(1_000_000, 128))
        rng = np.random.default_rng(0)
        centres = rng.standard_normal((100, 128)).astype(np.float32)
        for first in range(0, len(X), 50_000):
            X[first : first + 50_000] = centres[rng.integers(100, size=50_000)] + rng.standard_normal(
                (50_000, 128), dtype=np.float32
            )
        X.flush()
        found = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SPEED, str(path)], check=True, capture_output=True
        )
    seconds, memory = map(float, found.stdout.split())
    yield row("speed", "1,000,000 x 128, K=100, from disk", 1.0, "processor seconds", [seconds])
    yield row("speed", "1,000,000 x 128, K=100, from disk", 1.0, "peak GB", [memory])


def chosen_from(data):
    """Yield (embeddings, labels or None) of the corpora that constants were chosen on."""
    embedder = WordVectorEmbedder(vectors_of(data))
    with lzma.open(Path(data) / "enron_ham_raw.jsonl.xz", "rt") as file:
        mails = [json.loads(line) for line in file]
    X = embedder.transform([f"{mail['subject'] or ''} {mail['body'] or ''}" for mail in mails])
    boxes = np.unique([mail["user"] for mail in mails], return_inverse=True)[1]
    few = np.random.default_rng(0).permutation(len(X))[:FEW]
    yield X, boxes
    yield X[few], boxes[few]
    with lzma.open(Path(data) / "news_articles.jsonl.xz", "rt") as file:
        articles = [json.loads(line) for line in file]
    yield embedder.transform([f"{article['title'] or ''} {article['text'] or ''}" for article in articles]), None
    kos = load_uci_bow(Path(data) / "docword.kos.txt.gz", Path(data) / "vocab.kos.txt")
    yield kos.data @ embedder.transform(list(kos.feature_names)), None


def constants(data, seeds):
    """Yield means over four corpora, one constant changed at a time."""
    start = WordVectorEmbedder(vectors_of(data)).public_rows()
    of_rows = _clusters.PublicStart.of_rows
    made = of_rows(*start, K, start[0].shape[1], 0)  # the same in all fits
    corpora = []
    for X, labels in chosen_from(data):
        known = X.any(axis=1)
        exact = exact_labels(X[known])
        truth = exact if labels is None else labels[known]
        corpora.append((X[known], truth, normalized_mutual_info_score(truth, exact)))
    _clusters.PublicStart.of_rows = lambda *given: made
    for change in CHANGES:
        former = {name: getattr(_clusters, name) for name in change}
        vars(_clusters).update(change)
        what = ", ".join(f"{name}={value:g}" for name, value in change.items()) or "as they are"
        for epsilon in EPSILONS:
            found = []
            for seed in range(seeds):
                shares = []
                for X, truth, exact in corpora:
                    labels = fitted(X, epsilon, seed, start, max_iter=_clusters.ROUNDS).predict(X)
                    shares.append(normalized_mutual_info_score(truth, labels) / exact)
                found.append(np.mean(shares))
            yield row("constants", what, epsilon, "share of NMI", found)
        vars(_clusters).update(former)
    _clusters.PublicStart.of_rows = of_rows


def row(part, what, epsilon, measure, values):
    return {
        "part": part,
        "what": what,
        "epsilon": epsilon,
        "measure": measure,
        "mean": round(float(np.mean(values)), 4),
        "deviation": round(float(np.std(values)), 4),
        "seeds": len(values),
    }


PARTS = {"clusters": clusters, "keywords": keywords, "poisoning": poisoning, "speed": speed, "constants": constants}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of the corpora")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", default=RESULTS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of seeds, and of clusters that noise hides
    for part in args.part:
        begun = time.process_time()
        for found in PARTS[part](args.data, args.seeds):
            print(found, flush=True)
            old = pd.read_csv(args.output).to_dict("records") if Path(args.output).exists() else []
            key = ("part", "what", "epsilon", "measure")
            kept = [former for former in old if any(former[name] != found[name] for name in key)]
            pd.DataFrame([*kept, found]).to_csv(args.output, index=False)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{part}: {time.process_time() - begun:.0f} s of processor time, {memory:.2f} GB", file=sys.stderr)


if __name__ == "__main__":
    main()
