"""What privacy costs in time: the same rounds with and without noise, interleaved in one run.

Rounds without noise draw, with ten sweeps and, in columns of their own, with one, the default; those with noise infer
topics.

And what fewer updates of a document, which fits of many topics have, cost in perplexity; and what fits take of which
nothing is set but the number of topics and epsilon: votes, priors and all. And what it takes to keep the transcript of
such a fit, or a checkpoint, which holds the hidden state beside it until the fit ends.

    python benchmarks/private_cost.py private_cost       # times
    python benchmarks/private_cost.py default_fits       # times
    python benchmarks/private_cost.py transcripts        # times and bytes
    python benchmarks/private_cost.py private_updates    # perplexity
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import frontier
import numpy as np
import pandas as pd
from apart import timed
from corpora import newsgroup_posts, path_of
from results import Table, run
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import VIPSLDA, PrivateCGSLDA
from skdplda.datasets import frequent_words, load_uci_bow
from skdplda.esteps import _variational
from skdplda.metrics import unigram_perplexity

NEWS, KOS = "20 Newsgroups, 1,000 words", "KOS, 6,906 words"  # a vocabulary as private fits have it, and a whole one
DATA = {NEWS: "20news", KOS: "kos"}
MODELS = {"PrivateCGSLDA": PrivateCGSLDA, "VIPSLDA": VIPSLDA}
ALWAYS = 2**31  # FEW_TOPICS, so that no number of topics is many
JUDGED = {"20 Newsgroups": "20news", "Enron's mails, 7 words": "enron"}
FORMS = {"exact_s": (False, True), "one_sweep_s": (False, False), "private_s": (True, False)}  # noise, many sweeps
UPDATES = {"eight, over-relaxed": _variational.FEW_TOPICS, "sixteen": ALWAYS}


@dataclass(frozen=True)
class Times:
    """Of a row of times."""

    corpus: str
    topics: int
    rounds: int = 20
    sweeps: int = 10
    threads: int = 1
    repeats: int = 3
    epsilon: float = 5.0
    doc_topic_prior: float = 0.1


@dataclass(frozen=True)
class Defaults:
    """Of a row of a default fit."""

    corpus: str
    model: str
    topics: int
    epsilon: float
    delta: float = 1e-5
    threads: int = 1
    repeats: int = 3


@dataclass(frozen=True)
class Updates:
    """Of a row of perplexity."""

    corpus: str
    topics: int
    epsilon: float
    seed: int
    updates: str


def times_cells():
    """Return what there is to measure."""
    return [Times(*one) for one in product(DATA, (10, 50, 200, 1000))]


def defaults_cells():
    """Return what there is to measure."""
    found = [Defaults(*one) for one in product(DATA, MODELS, (10, 50, 200, 1000), (np.inf, 5.0, 1.0))]
    return [cell for cell in found if cell.topics < 1000 or cell.model == "PrivateCGSLDA"]


def kept_cells():
    """Return what there is to measure."""
    return [Defaults(*one) for one in product(DATA, MODELS, (10, 50), (5.0,))]


def updates_cells():
    """Return what there is to measure: the updates that many topics have, and those of few topics."""
    return [Updates(*one) for one in product(JUDGED, (50, 200), (1.0, 2.0, 5.0), range(3), UPDATES)]


@cache
def counts_of(corpus):
    """Return the counts of a corpus."""
    if corpus == KOS:
        return load_uci_bow(path_of("kos")).data
    posts = newsgroup_posts().data
    return CountVectorizer(vocabulary=frequent_words(posts, 1000, binary=True), binary=True).transform(posts)


def seconds(X, s, noise, many):
    """Return the time of one fit."""
    settings = {"max_iter": s.rounds, "doc_topic_prior": s.doc_topic_prior, "n_jobs": s.threads}
    settings |= {"epsilon": s.epsilon if noise else np.inf, "local_sweeps": s.sweeps if many else None}
    model = PrivateCGSLDA(s.topics, **settings)
    return timed(model.fit, X)[1]


def measure_times(s):
    """Return medians."""
    X = counts_of(s.corpus)
    times = pd.DataFrame([{form: seconds(X, s, *of) for form, of in FORMS.items()} for _ in range(s.repeats)])
    ratios = {"ratio": times["private_s"] / times["exact_s"]}
    ratios["default_ratio"] = times["private_s"] / times["one_sweep_s"]
    return times.assign(**ratios).median().round(3).to_dict()


def default_seconds(s, given, **options):
    """Return the time of one fit of which nothing else is set; `given` goes to `fit`."""
    model = MODELS[s.model](s.topics, epsilon=s.epsilon, delta=s.delta, n_jobs=s.threads, **options)
    return timed(model.fit, counts_of(s.corpus), **given)[1]


def measure_defaults(s):
    """Return the least time of some fits, of the processor."""
    return {"seconds": min(default_seconds(s, {}) for _ in range(s.repeats))}


def one_kept(s, kept, path):
    """Return the time of a fit that keeps nothing, a transcript or a checkpoint, and the largest file."""
    sizes, options = [0], {}
    if kept == "checkpoint":
        options = {"checkpoint": path, "callback": lambda _: sizes.append(path.stat().st_size)}
    spent = default_seconds(s, {"transcript": path} if kept == "transcript" else {}, **options)
    sizes += [path.stat().st_size] if path.exists() else []
    path.unlink(missing_ok=True)
    return spent, max(sizes) / 1e6


def measure_kept(s):
    """Return the least time of some fits of each kind, and the megabytes that they keep."""
    found = {}
    with TemporaryDirectory() as folder:
        for kept in ("nothing", "transcript", "checkpoint"):
            seen = [one_kept(s, kept, Path(folder) / "kept") for _ in range(s.repeats)]
            found |= {f"s, {kept}": min(spent for spent, _ in seen), f"MB, {kept}": max(size for _, size in seen)}
    return found


def measure_updates(s):
    """Return the held-out perplexity of one fit, and of word frequencies."""
    corpus = frontier.load(s.corpus)
    with patch.object(_variational, "FEW_TOPICS", UPDATES[s.updates]):
        model = PrivateCGSLDA(s.topics, epsilon=s.epsilon, random_state=s.seed).fit(corpus.train)
    return {"perplexity": model.perplexity(corpus.test), "unigram": unigram_perplexity(corpus.train, corpus.test)}


def report(tables, folder):
    """Print means."""
    if "private_updates" in tables:
        means = tables["private_updates"].groupby(["corpus", "topics", "epsilon", "updates"])["perplexity"]
        print(means.agg(["mean", "std", "count"]).round(1).to_string())


TABLES = [
    Table("private_cost", Times, times_cells, measure_times, lambda s: [DATA[s.corpus]], timed=True),
    Table("default_fits", Defaults, defaults_cells, measure_defaults, lambda s: [DATA[s.corpus]], timed=True),
    Table("transcripts", Defaults, kept_cells, measure_kept, lambda s: [DATA[s.corpus]], timed=True),
    Table("private_updates", Updates, updates_cells, measure_updates, lambda s: [JUDGED[s.corpus]]),
]
if __name__ == "__main__":
    run(TABLES, __doc__, report)
