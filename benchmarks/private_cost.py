"""What privacy costs in time: the same rounds with and without noise, interleaved in one run.

Rounds without noise have ten sweeps, as those with noise that draw; in columns of their own, one, which is the default.

And what fewer updates of a document, which fits of many topics have, cost in perplexity.

    python benchmarks/private_cost.py              # times: private_cost.csv
    python benchmarks/private_cost.py --updates    # perplexity, resumable: private_updates.csv
"""

import argparse
import os
import time
from functools import partial
from itertools import product
from pathlib import Path
from unittest.mock import patch

import frontier
import numpy as np
import pandas as pd
from results import BENCHMARKS, Rows, save
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import PrivateCGSLDA
from skdplda.datasets import frequent_words, load_20newsgroups, load_uci_bow
from skdplda.esteps import _gibbs
from skdplda.esteps._listed import ListedEStep
from skdplda.metrics import unigram_perplexity

ALWAYS = 2**31  # FEW_TOPICS, so that no number of topics is many
JUDGED = {"20 Newsgroups": "20news", "Enron's mails, 7 words": "enron"}


def corpora(data):
    """Yield (name, counts): a vocabulary as private fits have it, and a whole one."""
    posts = load_20newsgroups("all", path=data / "20news_bydate_raw.jsonl.xz").data
    words = frequent_words(posts, 1000, binary=True)
    yield "20 Newsgroups, 1,000 words", CountVectorizer(vocabulary=words, binary=True).transform(posts)
    yield "KOS, 6,906 words", load_uci_bow(data / "docword.kos.txt.gz").data


FORMS = {"exact_s": (np.inf, 10), "one_sweep_s": (np.inf, None), "private_s": (5.0, 10)}  # epsilon, sweeps


def seconds(X, n_topics, epsilon, sweeps, rounds, jobs):
    """Return the time of one fit."""
    settings = {"max_iter": rounds, "local_sweeps": sweeps, "doc_topic_prior": 0.1, "n_jobs": jobs}
    model = PrivateCGSLDA(n_topics, epsilon=epsilon, **settings)
    begin = time.process_time()
    model.fit(X)
    return time.process_time() - begin


def measure_times(options):
    """Print and save the table of times."""
    rows = []
    for (name, X), n_topics in product(corpora(options.data), options.topics or (10, 50, 200, 1000)):
        sizes = {"topics": n_topics, "rounds": options.rounds, "threads": options.jobs}
        fits = [
            {form: seconds(X, n_topics, *of, options.rounds, options.jobs) for form, of in FORMS.items()}
            for _ in range(options.repeats)
        ]
        times = pd.DataFrame(fits)
        ratios = {
            "ratio": times["private_s"] / times["exact_s"],
            "default_ratio": times["private_s"] / times["one_sweep_s"],
        }
        rows.append({"corpus": name, **sizes, "repeats": options.repeats, **times.assign(**ratios).median()})
        print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    save(table.round(3), options.output / "private_cost.csv", [corpora, seconds, ListedEStep], ["20news", "kos"])


def perplexity(name, data, n_topics, epsilon, seed, few_topics):
    """Return the held-out perplexity of one fit, and of word frequencies."""
    corpus = frontier.load(name, data)
    with patch.object(_gibbs, "FEW_TOPICS", few_topics):
        model = PrivateCGSLDA(n_topics, epsilon=epsilon, random_state=seed).fit(corpus.train)
    return {"perplexity": model.perplexity(corpus.test), "unigram": unigram_perplexity(corpus.train, corpus.test)}


def measure_updates(options):
    """Keep a row for each fit: with the updates that many topics have, and with those of few topics."""
    forms = {"eight, over-relaxed": _gibbs.FEW_TOPICS, "sixteen": ALWAYS}
    rows = Rows(options.output / "private_updates.csv", ["corpus", "topics", "epsilon", "seed", "updates"])
    for name, n_topics in product(JUDGED, options.topics or (50, 200)):
        for epsilon, seed, form in product((1.0, 2.0, 5.0), range(3), forms):
            cell = {"corpus": name, "topics": n_topics, "epsilon": epsilon, "seed": seed, "updates": form}
            work = partial(perplexity, name, options.data, n_topics, epsilon, seed, forms[form])
            rows.measure(cell, work, [perplexity, PrivateCGSLDA], [JUDGED[name]])
    means = rows.table.groupby(["corpus", "topics", "epsilon", "updates"])["perplexity"]
    print(means.agg(["mean", "std", "count"]).round(1).to_string())


def main():
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--updates", action="store_true", help="perplexity, in place of times")
    parser.add_argument("--topics", type=int, nargs="+", help="default: 10, 50, 200 and 1000; for --updates 50 and 200")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, default=BENCHMARKS / "results", help="folder")
    options = parser.parse_args()
    if options.data is None:
        parser.error("--data or SKDPLDA_DATA must name the folder of the corpora")
    options.data = Path(options.data)
    (measure_updates if options.updates else measure_times)(options)


if __name__ == "__main__":
    main()
