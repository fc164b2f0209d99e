"""Private clusters of embeddings: how much of non-private k-means is left, keywords, poisoning, speed.

Posts of 20 Newsgroups (headers stripped), senders by their "From:" line, embedded by means of GloVe vectors with
smoothed inverse frequencies (Zipf's law, no frequencies of the posts). NMI is with the 20 groups, and its share that of
scikit-learn's k-means (best of five starts) on the same vectors, centred by their exact mean. Rows:

* clusters: `EmbeddingTopics`, K=20, GloVe as public start, all of the budget for clusters (no counts), delta 1e-5; and
  DPLloyd as published (Su et al. 2016: Laplace noise, five rounds, vectors as they are, spread starts), and with
  Gaussian noise, our public start and noisy centre: no shrinkage.
* sentences: the same with embeddings of a model of sentences, as `sentences.py` makes them; the public start is words.
  They are in sentences.npz, in the folder of the corpora. "public axes": with a projection to so many principal axes of
  the words. "public posts": the public start is 1,000 other posts, as of a public forum on the same subjects. Epsilon
  0: k-means of the public rows alone, which no private post has touched.
* lsh: the same posts by the clustering of Google's differential-privacy library (a tree of locality-sensitive hashes,
  commit b5b0286), where a package `clustering` can be imported: rows as they are, or without the public rows' mean.
* keywords: with half of the budget for words: NMI, the share of the ten keywords of each cluster that class-based
  tf-idf without noise has for the clusters that the private model predicts, c_npmi of ten words in the held-out posts,
  and perplexity of a held-out tenth by document completion, of the clusters' words, and of `VIPSLDA`, with GloVe as a
  prior and without, at the same total.
* poisoning: success of `poisoning_attack` on posts, against a threshold of 30 users and against noise.
* members: LiRA and RMIA, online with 32 shadow models, on 1,000 tweets of which each is a member by a coin; statistics
  are the log-likelihood of a tweet's vector under the released centres, or of its words under the clusters' words, of
  2,000 public ones. A seed is a target; "right" of the tenth of the guesses that is surest, and what epsilon that shows
  at 95 %.
* speed: 1,000,000 x 128 from disk, K=100: seconds of processor time, and peak memory, of one process.

* constants: means over Enron, all and 2,000 messages (NMI with mailboxes, as a share of that of k-means), KOS, news and
  tweets (NMI with k-means), for what the estimator's constants were chosen from, and not on the posts above.

Seeds make rows repeatable.

    python benchmarks/embedding.py
    python benchmarks/embedding.py --only part=clusters part=speed
"""

import math
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from corpora import json_rows, path_of, tweet_texts
from results import Table, run
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import normalized_mutual_info_score

from skdplda import VIPSLDA, EmbeddingTopics, PublicPrior
from skdplda.attacks import (
    ShadowModels,
    likelihood_ratio_attack,
    max_log_likelihood,
    poisoning_attack,
    relative_attack,
    threshold_keywords,
)
from skdplda.audit import one_run_lower_bound
from skdplda.datasets import frequent_words, load_20newsgroups, load_uci_bow
from skdplda.metrics import coherence
from skdplda.models import _cluster_rounds
from skdplda.semantics import WordVectorEmbedder

K, DELTA, EPSILONS, FEW, N_WORDS = 20, 1e-5, (0.1, 0.5, 1.0), 2000, 2000
LEAST = 1e-12  # of a word's relevance, which coherence takes for a probability
CHANGES = {
    "as they are": {},
    "hard assignment": {"SOFT_SHARE": 0.0},
    "SHARPNESS=20, 60": {"SHARPNESS": (20.0, 60.0)},
    "ROUNDS=6, RATIO=2": {"ROUNDS": 6, "RATIO": 2.0},
    "ROUNDS=16": {"ROUNDS": 16},
    "ROUNDS=32": {"ROUNDS": 32},
    "MOVED=0, FURTHER=0": {"MOVED": 0.0, "FURTHER": 0.0},
    "FURTHER=0": {"FURTHER": 0.0},
    "BELIEVED=1": {"BELIEVED": 1.0},
    "BELIEVED=0": {"BELIEVED": 1e-6},
    "CENTRE_SHARE=0.05": {"CENTRE_SHARE": 0.05},
}
SIZES = {"all posts": None, "2,000 posts": FEW, "senders": None, "senders of 2,000 posts": FEW}
METHODS = ("EmbeddingTopics", "DPLloyd, Gaussian, public start", "LSH clustering", "DPLloyd")
SMALL_METHODS = ("EmbeddingTopics, 64 public axes", "EmbeddingTopics, 128 public axes", "EmbeddingTopics, public posts")
N_POSTS, N_PUBLIC = 18_846, 1000
MODEL = "all-MiniLM-L6-v2"
LLOYD_ROUNDS, LLOYD_RHO = 5, 0.225  # Su et al., section 3


@dataclass(frozen=True)
class Settings:
    """Of the rows of one cell; trials and secrets are of the attack."""

    part: str
    what: str
    epsilon: float
    n_seeds: int = 3
    trials: int = 100
    secrets: int = 20


def vectors_of():
    """Return (words, vectors) of the GloVe file."""
    with np.load(path_of("glove")) as file:
        return str(file["words"]).split("\n"), file["vectors"].astype(np.float32)


def posts():
    """Return texts, groups and senders."""
    bunch = load_20newsgroups("all", path=path_of("20news"))
    found = [re.search(r"^From: (.*)$", post["text"], re.MULTILINE) for post in json_rows("20news")]
    return bunch.data, np.asarray(bunch.target), np.array([m[1] if m else f"post {i}" for i, m in enumerate(found)])


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def exact_labels(X):
    """Return the clusters of k-means without noise, centre exact."""
    rows = unit(X)
    return KMeans(K, n_init=5, random_state=0).fit_predict(unit(rows - rows.mean(axis=0)))


def public_labels(X, public):
    """Return the clusters of k-means of public rows alone."""
    public = unit(public)
    centre = public.mean(axis=0)
    found = KMeans(K, n_init=5, random_state=0).fit(unit(public - centre))
    return found.predict(unit(unit(X).astype(np.float64) - centre))


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
    """Return the clusters of `gaussian_centres`."""
    centre, centres = gaussian_centres(X, epsilon, seed, start)
    return nearest(unit(unit(X) - centre), centres)


def gaussian_centres(X, epsilon, seed, start, share=1.0):
    """Return a noisy centre and, for a share of the budget, centres of k-means with Gaussian noise, a public start."""
    rng, rows, (init, weights) = np.random.default_rng(seed), unit(X), start
    # one part for the centre, five for the rounds; a row of length 1 and its count have norm sqrt(2)
    noise = math.sqrt(2) * deviation(epsilon, share / (LLOYD_ROUNDS + 1))
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
    return centre, unit(centres)


def deviation(epsilon, share):
    """Return that of Gaussian noise on a sum of norm 1, for a share of the budget."""
    return EmbeddingTopics(K, epsilon=epsilon, delta=DELTA)._plan().multipliers[0] / math.sqrt(share)


def nearest(rows, centres):
    return (rows @ centres.T - (centres**2).sum(axis=1) / 2).argmax(axis=1)


@cache
def embedded_posts():
    """Return embeddings of all posts, groups, senders, and public rows with weights."""
    texts, groups, senders = posts()
    embedder = WordVectorEmbedder(vectors_of())
    return embedder.transform(texts), groups, senders, embedder.public_rows()


def clusters(s):
    """Return rows of NMI as a share of that without noise; that itself, for epsilon inf."""
    method, name = s.what.split("; ")
    everything, groups, senders, start = embedded_posts()
    chosen = np.random.default_rng(0).permutation(len(everything))[: SIZES[name]]
    X, y, users = everything[chosen], groups[chosen], senders[chosen] if name.startswith("senders") else None
    known = X.any(axis=1)
    exact = normalized_mutual_info_score(y[known], exact_labels(X[known]))
    if math.isinf(s.epsilon):
        return [row("NMI", [exact])]
    run = {"DPLloyd": lloyd, "DPLloyd, Gaussian, public start": gaussian_lloyd}.get(method)
    found = []
    for seed in range(s.n_seeds):
        labels = fitted(X, s.epsilon, seed, start, users).predict(X) if run is None else run(X, s.epsilon, seed, start)
        found.append(normalized_mutual_info_score(y[known], labels[known]) / exact)
    return [row("share of NMI", found)]


def lsh(s):
    """Return rows of NMI as in `clusters`."""
    _, name, centred = s.what.split("; ")
    X, groups, _, (init, weights) = embedded_posts()
    chosen = np.random.default_rng(0).permutation(len(X))[: SIZES[name]]
    X, y = X[chosen], groups[chosen]
    known = X.any(axis=1)
    exact = normalized_mutual_info_score(y[known], exact_labels(X[known]))
    centre = weights @ unit(init) / weights.sum() if centred == "public centre" else 0
    rows = unit(unit(X) - centre)
    found = [
        normalized_mutual_info_score(y[known], lsh_labels(rows, s.epsilon, seed)[known]) for seed in range(s.n_seeds)
    ]
    return [row("share of NMI", np.array(found) / exact)]


def lsh_labels(rows, epsilon, seed):
    """Return the clusters of that library's method."""
    return lsh_clusters(rows, (epsilon, DELTA), seed).labels


def lsh_clusters(rows, budget, seed):
    """Return the result of that library's method, of which the centres are private."""
    from clustering import clustering_algorithm, clustering_params

    np.random.seed(seed)  # noqa: NPY002  it draws from there
    data = clustering_params.Data(rows.astype(np.float64), 1.0)
    return clustering_algorithm.private_lsh_clustering(K, data, clustering_params.DifferentialPrivacyParam(*budget))


@cache
def sentence_vectors(path):
    """Return embeddings of posts, their groups, and public rows with weights."""
    with np.load(path) as file:
        words = file["words"].astype(np.float64)
        return file["posts"].astype(np.float32), file["groups"], (words, np.ones(len(words)))


def sentences(s):
    """Return rows of NMI as in `clusters`."""
    method, name = s.what.split("; ")[:2]
    everything, y, start = sentence_vectors(path_of("sentences.npz"))
    n = SIZES[name] or N_POSTS
    if len(everything) < n + N_PUBLIC * ("public posts" in method):
        raise FileNotFoundError("sentences.npz has fewer posts")
    X, y = everything[:n], y[:n]
    exact = normalized_mutual_info_score(y, exact_labels(X))
    if math.isinf(s.epsilon):
        return [row("NMI", [exact])]
    projection, public = None, everything[n : n + N_PUBLIC].astype(np.float64)
    if s.epsilon == 0:
        found = normalized_mutual_info_score(y, public_labels(X, public if "posts" in method else start[0])) / exact
        return [row("share of NMI", [found])]
    centred = unit(unit(X) - unit(start[0]).mean(axis=0))
    runs = {
        "DPLloyd": partial(lloyd, X, s.epsilon),
        "DPLloyd, Gaussian, public start": partial(gaussian_lloyd, X, s.epsilon, start=start),
        "LSH clustering": partial(lsh_labels, centred, s.epsilon),
        "EmbeddingTopics": lambda seed: fitted(X, s.epsilon, seed, start, projection=projection).predict(X),
    }
    if method == "EmbeddingTopics, public posts":
        start = public, np.ones(N_PUBLIC)
    elif method in SMALL_METHODS:
        projection = public_axes(start[0], int(method.split()[1]))
    run = runs[method.partition(", ")[0] if method in SMALL_METHODS else method]
    found = [normalized_mutual_info_score(y, run(seed=seed)) for seed in range(s.n_seeds)]
    return [row("share of NMI", np.array(found) / exact), row("NMI", found)]


def public_axes(rows, n_axes):
    """Return the first principal axes of public rows as a projection."""
    rows = unit(rows)
    return np.linalg.svd(unit(rows - rows.mean(axis=0)), full_matrices=False)[2][:n_axes].T


def fitted(X, epsilon, seed, start, users=None, counts=None, max_iter=None, projection=None):
    """Return a fitted model, with a seed so that rows are repeatable."""
    model = EmbeddingTopics(
        K, epsilon=epsilon, delta=DELTA, public_rows=start[0], public_weights=start[1], random_state=seed
    )
    model.set_params(max_iter=max_iter, projection=projection)
    return model.fit(X, groups=users, counts=counts)


@cache
def counted_posts():
    """Return rows of training posts, their counts, those of test posts, words, and test posts as words."""
    texts, *_ = posts()
    order = np.random.default_rng(0).permutation(len(texts))
    train, test = np.sort(order[len(texts) // 10 :]), np.sort(order[: len(texts) // 10])
    in_words, options = {"token_pattern": r"[a-zA-Z]{3,}", "binary": True}, {"stop_words": "english"}
    words = frequent_words([texts[i] for i in train], N_WORDS, **in_words, **options)
    counter = CountVectorizer(vocabulary=words, **in_words, **options)
    counts = counter.transform([texts[i] for i in train])
    held_out = counter.transform([texts[i] for i in test])
    analyze = counter.build_analyzer()
    return (
        train,
        counts,
        held_out[np.diff(held_out.indptr) >= 10],
        counter.get_feature_names_out(),
        [analyze(texts[i]) for i in test],
    )


def keywords(s):
    """Return rows about words."""
    X, groups, _, start = embedded_posts()
    train, counts, held_out, words, reference = counted_posts()
    found = {}
    if s.what != "EmbeddingTopics":
        prior = PublicPrior.from_vectors(vectors_of()).for_words(words) if "GloVe" in s.what else None
        found["perplexity"] = [
            VIPSLDA(K, epsilon=s.epsilon, delta=DELTA, prior=prior, random_state=seed).fit(counts).perplexity(held_out)
            for seed in range(s.n_seeds)
        ]
        return [row(measure, values) for measure, values in found.items()]
    exact = normalized_mutual_info_score(groups[train], exact_labels(X[train]))
    for seed in range(s.n_seeds):
        model = fitted(X[train], s.epsilon, seed, start, counts=counts)
        labels = model.predict(X[train])
        scores, own = threshold_scores(counts, labels), model._relevance()
        top, best = (np.argsort(-scored, axis=1, kind="stable")[:, :10] for scored in (own, scores))
        npmi = partial(coherence, reference=reference, dictionary=words, measure="c_npmi", n_words=10)
        for measure, value in (
            ("share of NMI", normalized_mutual_info_score(groups[train], labels) / exact),
            ("agreement", np.mean([len(set(a) & set(b)) / 10 for a, b in zip(top, best, strict=True)])),
            ("c_npmi", npmi(own + LEAST)),
            ("c_npmi without noise", npmi(scores + LEAST)),
            ("perplexity", model.perplexity(held_out)),
        ):
            found.setdefault(measure, []).append(value)
    return [row(measure, values) for measure, values in found.items()]


def threshold_scores(counts, labels):
    """Return class-based tf-idf of given clusters, without noise."""
    known = labels >= 0
    members = sp.csr_array((known.astype(float), (np.maximum(labels, 0), np.arange(len(labels)))), (K, len(labels)))
    found = (members @ counts).toarray()
    tf = found / np.maximum(found.sum(axis=1, keepdims=True), 1)
    return tf * np.log1p(found.sum() / K / np.maximum(found.sum(axis=0), 1))


def poisoning(s):
    """Return rows of the attack; the seeds are those of its trials."""
    texts, _, _ = posts()
    texts = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:FEW]]
    embedder = WordVectorEmbedder(vectors_of())
    X, start, trial = embedder.transform(texts), embedder.public_rows(), iter(range(10**9))
    words = frequent_words(texts, 500, stop_words="english", binary=True)
    counts = CountVectorizer(vocabulary=words, binary=True).transform(texts)

    def summarize(vectors, counted, users):
        if math.isinf(s.epsilon):
            return threshold_keywords(vectors, counted, users, n_clusters=K, least_users=30)
        return fitted(vectors, s.epsilon, next(trial), start, users, counted).components_

    result = poisoning_attack(summarize, X, counts, n_secrets=s.secrets, n_trials=s.trials)
    found = [row(measure, [getattr(result, measure)]) for measure in ("success", "lower", "upper")]
    return [*found, row("bound", [min(1.0, math.exp(s.epsilon) / s.secrets + DELTA)])]


N_MEMBERS, N_SHADOWS = 1000, 32


def members(s):
    """Return rows of membership inference; the target and the models that are compared with it have one epsilon."""
    attack, part = s.what.split("; ")
    found = [of_target(s.epsilon, seed)[attack, part] for seed in range(s.n_seeds)]
    return [
        row(measure, values) for measure, values in zip(("AUC", "right", "epsilon"), np.transpose(found), strict=True)
    ]


@cache
def tweets_and_words():
    """Return embeddings of tweets, their counts of public words, these words' vectors and a public start."""
    embedder, tweets = WordVectorEmbedder(vectors_of()), tweet_texts("tweets_raw")
    chosen = [tweets[i] for i in np.random.default_rng(0).permutation(len(tweets))[:N_MEMBERS]]
    counter = CountVectorizer(stop_words="english", binary=True)
    analyze = counter.build_analyzer()
    words = [word for word in embedder.public_words() if len(word) > 2 and analyze(word) == [word]][:N_WORDS]
    counts = counter.set_params(vocabulary=words).transform(chosen)
    return embedder.transform(chosen), counts, embedder.transform(words), embedder.public_rows()


def said(members, epsilon, seed):
    """Return what a model of some of the tweets says of all: log-likelihoods by centres, and by words."""
    X, counts, vectors, (rows, weights) = tweets_and_words()
    model = EmbeddingTopics(
        K, epsilon=epsilon, delta=DELTA, public_rows=rows, public_weights=weights, random_state=seed
    ).fit(X[members], counts=counts[members], word_vectors=vectors)
    return np.column_stack(
        [model.concentration_ * np.nan_to_num(model.score_samples(X)), max_log_likelihood(model.topic_word_, counts)[0]]
    )


@cache
def shadows_of(epsilon):
    """Return halves of the tweets, in pairs, and what models of them say, (n_models, n_tweets, 2)."""
    rng = np.random.default_rng(1)
    halves = [rng.permutation(N_MEMBERS) < N_MEMBERS // 2 for _ in range(N_SHADOWS // 2)]
    halves = np.array([half for one in halves for half in (one, ~one)])
    return halves, np.stack([said(half, epsilon, 1000 + seed) for seed, half in enumerate(halves)])


@cache
def of_target(epsilon, seed):
    """Return (AUC, share of right guesses, epsilon that it shows) by attack and statistic."""
    truth = np.random.default_rng([2, seed]).integers(0, 2, N_MEMBERS).astype(bool)
    (halves, values), observed, found = shadows_of(epsilon), said(truth, epsilon, seed), {}
    for column, part in enumerate(("centres", "keywords")):
        shadows = ShadowModels(halves, values[:, :, [column]], ("zeta",))
        for name, attack in (("LiRA", likelihood_ratio_attack), ("RMIA", relative_attack)):
            result, few = attack(None, observed[:, [column]], truth, shadows), N_MEMBERS // 20
            order = np.argsort(result.scores, kind="stable")
            right = int(truth[order[-few:]].sum() + (~truth[order[:few]]).sum())
            found[name, part] = result.auc, right / (2 * few), one_run_lower_bound(N_MEMBERS, 2 * few, right)
    return found


SPEED = """
import resource, sys, time
import numpy as np
from skdplda import EmbeddingTopics
X = np.load(sys.argv[1], mmap_mode="r")
begun, clock = time.process_time(), time.time()
EmbeddingTopics(100, epsilon=1.0, delta=1e-7, assignment=sys.argv[2]).fit(X)
print(time.process_time() - begun, time.time() - clock, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def speed(s):
    """Return the cost of a million rows."""
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
            [sys.executable, "-W", "ignore", "-c", SPEED, str(path), s.what.split("; ")[1]],
            check=True,
            capture_output=True,
        )
    measures = ("processor seconds", "seconds by the clock, beside other work", "peak GB")
    return [row(measure, [float(value)]) for measure, value in zip(measures, found.stdout.split(), strict=True)]


def chosen_from():
    """Yield (embeddings, labels or None) of the corpora that constants were chosen on."""
    embedder = WordVectorEmbedder(vectors_of())
    mails = json_rows("enron")
    X = embedder.transform([f"{mail['subject'] or ''} {mail['body'] or ''}" for mail in mails])
    boxes = np.unique([mail["user"] for mail in mails], return_inverse=True)[1]
    few = np.random.default_rng(0).permutation(len(X))[:FEW]
    yield X, boxes
    yield X[few], boxes[few]
    articles = [f"{article['title'] or ''} {article['text'] or ''}" for article in json_rows("news")]
    yield embedder.transform(articles), None
    kos = load_uci_bow(path_of("kos"), path_of("kos-words"))
    yield kos.data @ embedder.transform(list(kos.feature_names)), None
    yield embedder.transform(tweet_texts()), None


@cache
def judged():
    """Return (rows, labels, NMI of k-means with these) of each of those corpora."""
    found = []
    for X, labels in chosen_from():
        known = X.any(axis=1)
        exact = exact_labels(X[known])
        truth = exact if labels is None else labels[known]
        found.append((X[known], truth, normalized_mutual_info_score(truth, exact)))
    return found


def constants(s):
    """Return the mean over these corpora, one constant changed."""
    start = WordVectorEmbedder(vectors_of()).public_rows()
    former = {name: getattr(_cluster_rounds, name) for name in CHANGES[s.what]}
    vars(_cluster_rounds).update(CHANGES[s.what])
    found = []
    for seed in range(s.n_seeds):
        shares = []
        for X, truth, exact in judged():
            labels = fitted(X, s.epsilon, seed, start, max_iter=_cluster_rounds.ROUNDS).predict(X)
            shares.append(normalized_mutual_info_score(truth, labels) / exact)
        found.append(np.mean(shares))
    vars(_cluster_rounds).update(former)
    return [row("share of NMI", found)]


def row(measure, values):
    return {
        "measure": measure,
        "mean": round(float(np.mean(values)), 4),
        "deviation": round(float(np.std(values)), 4),
        "seeds": len(values),
    }


PARTS = {
    "clusters": clusters,
    "sentences": sentences,
    "lsh": lsh,
    "keywords": keywords,
    "poisoning": poisoning,
    "members": members,
    "speed": speed,
    "constants": constants,
}
DATA = {
    "speed": [],
    "members": ["tweets_raw", "glove"],
    "sentences": ["sentences.npz", "20news"],
    "constants": ["enron", "news", "kos", "kos-words", "tweets", "glove"],
}


def cells():
    """Return what there is to measure."""
    found = []

    def add(part, whats, epsilons):
        n_seeds = 10 if part == "clusters" else 3
        found.extend(Settings(part, what, epsilon, n_seeds) for what in whats for epsilon in epsilons)

    for name in SIZES:
        if not name.startswith("senders"):
            add("clusters", [f"k-means; {name}"], [math.inf])
        add("clusters", [f"EmbeddingTopics; {name}"], EPSILONS)
    add("clusters", ["DPLloyd; all posts", "DPLloyd, Gaussian, public start; all posts"], EPSILONS)
    add("clusters", ["DPLloyd; 2,000 posts", "DPLloyd, Gaussian, public start; 2,000 posts"], EPSILONS)
    for name in ("all posts", "2,000 posts"):
        add("lsh", [f"LSH clustering; {name}; {rows}" for rows in ("as they are", "public centre")], EPSILONS)
        add("sentences", [f"k-means; {name}; {MODEL}"], [math.inf])
        methods = METHODS
        if SIZES[name] is not None:
            methods += SMALL_METHODS
            add("sentences", [f"{rows} alone; {name}; {MODEL}" for rows in ("words", "public posts")], [0.0])
        add("sentences", [f"{method}; {name}; {MODEL}" for method in methods], EPSILONS)
    add("poisoning", ["threshold of 30 users; 2,000 posts"], [math.inf])
    add("poisoning", ["EmbeddingTopics; 2,000 posts"], [1.0])
    add(
        "members", [f"{name}; {part}" for name in ("LiRA", "RMIA") for part in ("centres", "keywords")], [math.inf, 1.0]
    )
    add("speed", ["1,000,000 x 128, K=100, from disk; soft", "1,000,000 x 128, K=100, from disk; hard"], [1.0])
    add("keywords", ["EmbeddingTopics", "VIPSLDA, GloVe as a prior", "VIPSLDA"], [1.0, 0.5, 2.0])
    add("constants", CHANGES, EPSILONS)
    return found


def remembered(function):
    """Return `PublicStart.of_rows` that keeps its answers, by what is in the arrays; rows are more than clusters."""
    known = {}

    def answer(rows, weights, n_clusters, n_dimensions, key, init=None):
        given = rows, weights, n_clusters, n_dimensions, 0, init  # the key is of random rows alone
        key = tuple(part.tobytes() if isinstance(part, np.ndarray) else part for part in given)
        if key not in known:
            known[key] = function(*given)
        return known[key]

    return answer


def measure(s):
    """Return the rows of a cell; the public start is the same in all fits."""
    with patch.object(_cluster_rounds.PublicStart, "of_rows", staticmethod(OF_ROWS)):
        return PARTS[s.part](s)


OF_ROWS = remembered(_cluster_rounds.PublicStart.of_rows)


TABLES = [
    Table("embedding", Settings, cells, measure, lambda s: DATA.get(s.part, ["20news", "glove"])),
]
if __name__ == "__main__":
    run(TABLES, __doc__)
