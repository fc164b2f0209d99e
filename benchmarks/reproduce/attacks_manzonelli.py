"""Reproduce the attacks of Manzonelli, Zhang and Vadhan (2024), section 3 and appendix D.

"Membership Inference Attacks and Privacy in Topic Modeling": Tables 1, 2 and 4, Figures 1, 2, 3, 7 and 8. The
corpora are read from the folder that the environment variable SKDPLDA_DATA names; words of 3 to 15 letters, lemmatized.

* TweetRumors: the paper's own file.
* NIPS: the UCI bag of words, its words lemmatized; the paper's are from another source.
* 20 Newsgroups: without headers, footers, quotes and scikit-learn's English stop words.

How large they are, beside the paper's Table 3: `attacks_corpora`.

The paper lemmatizes with NLTK, whose data is not in its package; here it is simplemma, which must be installed.

Models are scikit-learn's LatentDirichletAllocation with its default parameters, whose E-step `CompiledLDA` takes from
the package's kernel. Each repetition draws a half for the target, whose vocabulary all models share, and trains the
shadow models; results are pooled over repetitions. Shadow models give four statistics at once, so that one run serves
all tables and figures of a corpus; one of 256 models goes on from the 128 of another. Topic proportions in them are
those that maximize the likelihood, as in appendix D; thresholds of Huang et al. are there by fold-in as well.

The three corpora of Table 1 have the paper's ten repetitions of 128 models each. Five have NIPS with other numbers of
topics, and 256 models of NIPS and 20 Newsgroups. What agrees and what does not: doc/reproductions.rst.

A repetition of 128 models takes 20 s of processor time on TweetRumors, 3 minutes on NIPS, 8 on 20 Newsgroups.

Every shadow model is kept in SKDPLDA_SCRATCH as soon as it is there: run the same command again to go on. Pictures are
of the attacks of the run.

    SKDPLDA_SCRATCH=shadows python benchmarks/reproduce/attacks_manzonelli.py
    SKDPLDA_SCRATCH=shadows python benchmarks/reproduce/attacks_manzonelli.py attacks_lira --only corpus=tweets
"""

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure
from scipy.stats import false_discovery_control, shapiro
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from apart import scratch
from corpora import path_of, tweet_texts
from results import Table, run

from skdplda._kernels._variational import e_step, expected_topics
from skdplda._optional import import_optional
from skdplda.attacks import AttackResult, membership_experiment, threshold_attack
from skdplda.datasets import load_20newsgroups, load_uci_bow

TOPICS = {"tweets": [5], "nips": [10], "newsgroups": [20]}
REPETITIONS = 10
GRID = 2**20  # to sum what documents expect in integers
NAMES = {"tweets": "TweetRumors", "nips": "NIPS (UCI)", "newsgroups": "20 Newsgroups"}
DATA = {"tweets": "tweets", "nips": "nips", "newsgroups": "20news"}
STATISTICS = ("zeta", "negative_entropy", "logit_max", "std")
LABELS = ("zeta", "negative entropy", "logit of max", "std")
HUANG = ("max", "std", "negative_entropy")
PAPER = {  # corpus, topics -> attack -> per cent found at 0.1 % false alarms
    ("tweets", 5): {"online": 12.8, "max": 0.19, "std": 0.19, "negative_entropy": 0.18},
    ("nips", 5): {"online": 31.8, "offline": 31.8},
    ("nips", 10): {"online": 44.9, "offline": 43.6, "max": 1.69, "std": 1.69, "negative_entropy": 1.31},
    ("nips", 15): {"online": 60.5, "offline": 56.0},
    ("nips", 20): {"online": 67.9, "offline": 63.2},
    ("nips", 25): {"online": 72.5, "offline": 70.2},
    ("newsgroups", 20): {"online": 21.1, "max": 0.57, "std": 0.57, "negative_entropy": 0.53},
}
PROFILES = {"tweets": (5698, 9, 5942), "nips": (1494, 893, 10346), "newsgroups": (18037, 84, 74781)}  # Table 3
REJECTED = {"zeta": 22.25, "negative_entropy": 59.73, "logit_max": 86.52, "std": 77.02}  # Table 4, three corpora


@dataclass(frozen=True)
class Settings:
    """Of the rows of one experiment; a sample of 0 takes all documents. "pooled" takes the three of Table 4."""

    corpus: str
    topics: int
    models: int
    repetitions: int
    fpr: float = 0.001
    noted: int = 1000  # documents of Table 4 and Figure 7
    sample: int = 0


@dataclass(frozen=True)
class Profile:
    """Of the row of one corpus."""

    corpus: str


def repetitions(name, topics, models):
    """Return how often an experiment is done: half as often beside Table 1, but for tweets, which are quick."""
    return REPETITIONS if name == "tweets" or (models == 128 and topics in TOPICS[name]) else REPETITIONS // 2


def cells():
    """Return what there is to measure: Tables 1 and 2 with 128 models, appendix D with 256."""
    found = []
    for name in TOPICS:
        for count in (5, 10, 15, 20, 25) if name == "nips" else TOPICS[name]:
            for n in (128, 256) if count in TOPICS[name] else (128,):
                found.append(Settings(name, count, n, repetitions(name, count, n)))
    return found


def normality_cells():
    """Return the same, and Table 4, which pools three corpora."""
    return cells() + [Settings("pooled", 0, n, 1) for n in (128, 256)]


class CompiledLDA(LatentDirichletAllocation):
    """scikit-learn's model with the E-step of `VIPSLDA`: 6 to 20 times sooner.

    Start, order, stopping rule and update are scikit-learn's. Documents are inferred in single precision, and what they
    add to the topics is that of the last iteration but one; perplexity of the training documents is not computed.
    """

    def _e_step(self, X, cal_sstats, random_init, parallel=None):
        """Return what documents' proportions are drawn from, and the sums for the topics."""
        shape = X.shape[0], self.n_components
        start = self.random_state_.gamma(100.0, 0.01, shape) if random_init else np.ones(shape)
        state = (start - self.doc_topic_prior_).astype(np.float32)
        expected = expected_topics(np.zeros(X.shape[::-1][:1] + shape[1:], np.float32), np.ones(shape[1]), 1.0)
        expected[:, : shape[1]] = self.exp_dirichlet_component_.T / self.exp_dirichlet_component_.max()
        sums = np.zeros((X.shape[1], shape[1]), np.int64)
        prior = np.full(shape[1], self.doc_topic_prior_, np.float32)
        arrays = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.int32)
        options = self.max_doc_update_iter, self.mean_change_tol, 0.0
        e_step(*arrays, np.arange(shape[0]), expected, prior, None, GRID, 0, *options, sums, state=state)
        return state + self.doc_topic_prior_, sums.T / GRID

    def _perplexity_precomp_distr(self, *_, **__):
        return np.nan


def lemmas(words):
    """Return the lemma of each word, in lower case."""
    simplemma = import_optional("simplemma", purpose="Lemmatization", install="simplemma>=2.0")
    return [simplemma.lemmatize(word, lang="en").lower() for word in words]


@cache
def read_corpus(name, sample):
    """Return the counts of a corpus; `sample` takes its first documents, 0 all."""
    if name == "tweets":  # lemmatized by the authors
        texts = tweet_texts()
        X = CountVectorizer(token_pattern=r"\S+").fit_transform(texts)
    else:
        if name == "nips":
            bag = load_uci_bow(path_of("nips"), path_of("nips-words"))
            X, words = bag.data, bag.feature_names
        else:
            remove = ("headers", "footers", "quotes")
            posts = load_20newsgroups("all", path=path_of("20news"), remove=remove).data
            counter = CountVectorizer(token_pattern=r"(?i)[a-z]+")
            X = counter.fit_transform(posts)
            words = counter.get_feature_names_out()
        known = [i for i, word in enumerate(words) if 3 <= len(word) <= 15 and word not in ENGLISH_STOP_WORDS]
        _, column = np.unique(lemmas([words[i] for i in known]), return_inverse=True)
        merge = sp.csr_array((np.ones(len(known), np.int32), (known, column)), shape=(len(words), column.max() + 1))
        X = sp.csr_array(X) @ merge
    X = sp.csr_array(X)[: sample or None].astype(np.int32)
    return X[np.flatnonzero(np.asarray(X.sum(axis=1)).ravel() > 0)]


def profile(s):
    """Return the size of a corpus, and that of the paper's."""
    X = read_corpus(s.corpus, 0)
    sizes = X.shape[0], X.sum() / X.shape[0], X.shape[1]
    named = "documents", "mean length", "words"
    paper = {f"paper's {name}": size for name, size in zip(named, PROFILES[s.corpus], strict=True)}
    return dict(zip(named, sizes, strict=True)) | paper


class Notes:
    """What a closer look at each repetition found: thresholds, normality, divergence, the documents of Figure 1."""

    def __init__(self, n_documents):
        self.huang, self.divergence, self.p_values, self.histograms = [], [], [], None
        self._n_documents = n_documents

    def __call__(self, members, documents, topic_word, shadows):
        asked = topic_word, documents, members
        self.huang.append({name: threshold_attack(*asked, name, proportions="maximum") for name in HUANG})
        fold_in = {f"{name}, fold-in": threshold_attack(*asked, name) for name in HUANG}
        self.huang[-1] |= fold_in
        rng = np.random.default_rng(0)
        known = np.flatnonzero(np.asarray(documents.sum(axis=1)).ravel() > 0)
        chosen = rng.choice(known, min(self._n_documents, len(known)), replace=False)
        divergence, p_values = np.empty((len(chosen), 4)), np.empty((2 * len(chosen), 4))
        for row, d in enumerate(chosen):
            inside, outside = shadows.values[shadows.members[:, d], d], shadows.values[~shadows.members[:, d], d]
            divergence[row] = normal_divergence(inside, outside)
            p_values[2 * row] = [normality(column) for column in inside.T]
            p_values[2 * row + 1] = [normality(column) for column in outside.T]
        self.divergence.append(divergence)
        self.p_values.append(p_values)
        if self.histograms is None:
            self.histograms = four_documents(documents, shadows)


@cache
def experiment(s):
    """Return the results of all attacks, and the notes."""
    X, notes = read_corpus(s.corpus, s.sample), Notes(s.noted)
    results = membership_experiment(
        CompiledLDA(s.topics, random_state=0),
        X,
        n_models=s.models,
        repetitions=s.repetitions,
        statistics=STATISTICS,
        thresholds=(),
        proportions="maximum",
        directory=scratch() / f"{s.corpus}_{s.topics}_{X.shape[0]}",
        random_state=0,
        callback=notes,
        verbose=sys.stderr.isatty(),
    )
    RAN[s] = results, notes
    return results, notes


RAN = {}  # of this run, for the pictures


def rejections(s):
    """Return the share of Shapiro-Wilk tests rejected at a false discovery rate of 5 %, for each statistic."""
    one = [s]
    if s.corpus == "pooled":
        one = [
            Settings(
                name, *TOPICS[name], s.models, repetitions(name, *TOPICS[name], s.models), s.fpr, s.noted, s.sample
            )
            for name in TOPICS
        ]
    found = [experiment(each)[1].p_values[: s.repetitions] for each in one]
    p_values = np.vstack([part for parts in found for part in parts])
    shares = [float((false_discovery_control(column) <= 0.05).mean()) for column in p_values.T]
    return [
        {"statistic": name, "tests": len(p_values), "rejected %": 100 * share, "paper %": REJECTED[name]}
        for name, share in zip(STATISTICS, shares, strict=True)
    ]


def normality(sample):
    """Return the p-value of the Shapiro-Wilk test; 0 where the sample is constant."""
    return 0.0 if np.ptp(sample) < 1e-12 * max(1.0, np.abs(sample).max()) else shapiro(sample).pvalue


def normal_divergence(inside, outside):
    """Return the Kullback-Leibler divergence of two fitted normal laws, for each statistic."""
    mean = inside.mean(axis=0) - outside.mean(axis=0)
    variances = [np.maximum(part.var(axis=0, ddof=1), 1e-12) for part in (inside, outside)]
    ratio = variances[0] / variances[1]
    return 0.5 * (ratio - 1 - np.log(ratio) + mean**2 / variances[1])


def four_documents(documents, shadows):
    """Return zeta with and without a long, a short, an outlying and an inlying document, as Figure 1 chooses them."""
    length = np.asarray(documents.sum(axis=1)).ravel().astype(float)
    frequency = np.asarray((documents > 0).sum(axis=0)).ravel()
    binary = sp.csr_array((np.ones(documents.nnz), documents.indices, documents.indptr), shape=documents.shape)
    rarity = np.full(len(length), np.nan)
    some = length > 0
    rarity[some] = (binary @ np.log(np.maximum(frequency, 1)))[some] / np.diff(binary.indptr)[some]
    middle = np.abs(length - length[some].mean()) <= length[some].std()
    picks = {
        "outlier": int(np.nanargmin(np.where(middle & some, rarity, np.nan))),
        "inlier": int(np.nanargmax(np.where(middle & some, rarity, np.nan))),
        "long": int(np.argmax(length)),
        "short": int(np.nanargmin(np.where(some, length, np.nan))),
    }
    zeta = shadows.values[:, :, 0]
    return {name: (zeta[shadows.members[:, d], d], zeta[~shadows.members[:, d], d]) for name, d in picks.items()}


def attack(s):
    """Return the lines of the table: attack, rate, interval, the paper's number."""
    results, notes = experiment(s)
    names = {"online": "LiRA online (zeta)", "offline": "LiRA offline (zeta)", "vocabulary": "vocabulary"}
    names |= {f"online, {name}": f"LiRA online ({name})" for name in STATISTICS[1:]}
    found = {name: [run[inner] for run in results.runs] for name, inner in names.items()}
    found |= {name: [run[name] for run in notes.huang] for name in notes.huang[0]}
    rows = []
    for name, runs in found.items():
        result, many = AttackResult.pool(runs), len(runs) > 1 and name in ("online", "offline")
        at, each = result.tpr_at(s.fpr), [run.tpr_at(s.fpr).rate for run in runs]
        inside = results.tpr_at(names[name], s.fpr) if many else at
        rows.append(
            {
                "attack": name,
                "TPR %": 100 * at.rate,
                "low %": 100 * inside.low,
                "high %": 100 * inside.high,
                "interval over": "repetitions" if many else "documents",
                "least %": 100 * min(each),
                "most %": 100 * max(each),
                "paper %": PAPER.get((s.corpus, s.topics), {}).get(name, np.nan),
                "AUC": result.auc,
            }
        )
    return rows


def draw(s, results, notes, path):
    """Draw Figures 2, 8 and 7 of one corpus, and Figure 1 of tweets."""
    from skdplda.plots import AttackRocDisplay

    n_models = f"{s.models} shadow models, {len(notes.huang)} repetition(s)"
    name = f"{NAMES[s.corpus]}, {s.topics} topics"
    fig = Figure(figsize=(15, 6), layout="constrained")
    axes = fig.subplots(1, 3)
    huang = [AttackResult.pool([run[key] for run in notes.huang]) for key in HUANG]
    curves = [results["LiRA online (zeta)"], results["LiRA offline (zeta)"], *huang, results["vocabulary"]]
    AttackRocDisplay(results=curves).plot(axes[0], title=f"Figure 2: {name}")
    curves = [results[f"LiRA online ({statistic})"] for statistic in STATISTICS]
    AttackRocDisplay(results=curves).plot(axes[1], title=f"Figure 8: online, {name}")
    divergence = np.maximum(np.vstack(notes.divergence), 1e-6)
    box = axes[2].boxplot(divergence, tick_labels=LABELS, flierprops={"markersize": 2, "alpha": 0.3})
    for median in box["medians"]:
        median.set(color="#D55E00", linewidth=2)
    axes[2].tick_params(axis="x", labelrotation=20)
    axes[2].set(yscale="log", ylim=(1e-4, 1e4), ylabel="KL divergence, with from without (nats)")
    axes[2].set_title(f"Figure 7: {len(divergence):,} documents", loc="left", fontsize="medium")
    axes[2].spines[["top", "right"]].set_visible(False)
    fig.suptitle(n_models, fontsize="small", color="0.35")
    fig.savefig(path / f"attacks_{s.corpus}_{s.models}.png", dpi=110)
    if s.corpus != "tweets":
        return
    fig = Figure(figsize=(8, 6), layout="constrained")
    axes = fig.subplots(2, 2)
    for ax, (kind, (inside, outside)) in zip(axes.flat, notes.histograms.items(), strict=True):
        bins = np.histogram_bin_edges(np.concatenate([inside, outside]), 24)
        ax.hist(inside, bins, color="#0072B2", alpha=0.65, label="in the training data")
        ax.hist(outside, bins, color="#E69F00", alpha=0.65, label="not in it")
        ax.set_title(f"{kind} document", loc="left", fontsize="medium")
        ax.set(xlabel="zeta (nats)", ylabel="shadow models")
        ax.spines[["top", "right"]].set_visible(False)
    fig.legend(*axes.flat[0].get_legend_handles_labels(), frameon=False, fontsize="small", loc="outside lower center")
    fig.suptitle(f"Figure 1: {name}, {s.models} shadow models", fontsize="small", color="0.35")
    fig.savefig(path / "attacks_tweets_histograms.png", dpi=110)


def draw_topics(path):
    """Draw Figure 3: offline curves for numbers of topics, of those that were measured."""
    from skdplda.plots import AttackRocDisplay

    ran = {s: results for s, (results, _) in RAN.items() if s.corpus == "nips" and s.models == 128}
    kept = [
        (s.topics, results["LiRA offline (zeta)"]) for s, results in sorted(ran.items(), key=lambda one: one[0].topics)
    ]
    if len(kept) > 1:
        few = f"{REPETITIONS // 2} repetitions, {REPETITIONS} with 10 topics"
        title = f"Figure 3: offline, {NAMES['nips']}\n128 shadow models, {few}"
        curves = [AttackResult(result.scores, result.labels, f"{topics} topics") for topics, result in kept]
        AttackRocDisplay(results=curves).plot(title=title).figure_.savefig(path, dpi=110)


def report(tables, folder):
    """Print the tables, and draw what was attacked in this run."""
    for table in tables.values():
        print(table.to_string(index=False, float_format="{:.2f}".format, na_rep=""))
    for s, found in RAN.items():
        if s.topics in TOPICS[s.corpus]:
            draw(s, *found, folder)
    draw_topics(folder / "attacks_nips_topics.png")


def read(s):
    """Return the names of what a row is of."""
    return list(DATA.values()) if s.corpus == "pooled" else [DATA[s.corpus]]


TABLES = [
    Table("attacks_lira", Settings, cells, attack, read),
    Table("attacks_normality", Settings, normality_cells, rejections, read),
    Table("attacks_corpora", Profile, lambda: [*map(Profile, TOPICS)], profile, read),
]
if __name__ == "__main__":
    run(TABLES, __doc__, report)
