"""A year in twelve months: clusters that keep their numbers, against one fit of all and against twelve that start anew.

Posts of 20 Newsgroups (headers stripped), embedded as in embedding.py, in twelve parts by lot; K=20, GloVe as public
start, delta 1e-5, all of the budget for clusters. `epsilon` is that of the year:

* accounting "every month": a document (sender) may be in all months, which divide the budget: three parts for the
  first, one for each other (`divide_epsilon`). "one month": it is in one, and each month has all (`max_parts=1`).
* method "months": `warm_started` from the month before; "independent": twelve fits that start anew, matched by
  `match_topics`; "one fit": of all posts, with the budget of the year.

Values: the share of topics that `match_topics` gives their own number, and the mean cosine with the month before; NMI
with the newsgroups, of all posts, each by the model of its own month ("NMI of the year") or by that of December ("NMI
by the last"), and the mean over months ("NMI of a month"); births and deaths said, of which there are none. How the
budget is divided, and one round a month, were chosen on Enron and news, without rows that are kept.

    python benchmarks/months.py
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from embedding import DELTA, OF_ROWS, K, embedded_posts
from results import Table, run
from sklearn.metrics import normalized_mutual_info_score

from skdplda import EmbeddingTopics, warm_started
from skdplda.metrics import follow_topics, match_topics
from skdplda.privacy import divide_epsilon

MONTHS, FIRST = 12, 3.0  # and the share of the first month, over that of another
EPSILONS, SEEDS = (2.0, 1.0, 0.5), 3


@dataclass(frozen=True)
class Settings:
    """Of the rows of one cell. For users "one month" is what it would be worth if it were true; here it is not."""

    method: str
    accounting: str
    unit: str
    epsilon: float
    n_seeds: int = SEEDS


@cache
def start():
    """Return the clusters of public rows that all fits would find anew, for longer than they take."""
    X, _, _, (rows, weights) = embedded_posts()
    return OF_ROWS(rows, weights, K, X.shape[1], 0).directions


def year(s, seed):
    """Return what one division into months gives."""
    X, y, senders, (rows, weights) = embedded_posts()
    known = X.any(axis=1)
    X, y, users = X[known], y[known], senders[known]
    month = np.random.default_rng(seed).integers(MONTHS, size=len(X))
    options = {"delta": DELTA, "public_rows": rows, "public_weights": weights, "init": start()}
    if s.method == "one fit":
        model = EmbeddingTopics(K, epsilon=s.epsilon, random_state=seed, **options)
        models = [model.fit(X, groups=users if s.unit == "user" else None)] * MONTHS
    else:
        shares = [FIRST if s.method == "months" else 1.0, *[1.0] * (MONTHS - 1)]
        budget = divide_epsilon(s.epsilon, DELTA, shares) if s.accounting == "every month" else [s.epsilon] * MONTHS
        models = []
        for t, epsilon in enumerate(budget):
            model = EmbeddingTopics(K, epsilon=epsilon, random_state=MONTHS * seed + t, **options)
            model = warm_started(model, models[-1]) if models and s.method == "months" else model
            models.append(model.fit(X[month == t], groups=users[month == t] if s.unit == "user" else None))
    topics = follow_topics(models)
    labels, own = np.empty(len(X), int), []
    for t, model in enumerate(models):
        here, number = model.predict(X[month == t]), topics[topics["period"] == t]["number"].to_numpy()
        labels[month == t] = np.argsort(number, kind="stable")[here]
        own.append(normalized_mutual_info_score(y[month == t], here))
    matched = [match_topics(a, b)[0] == np.arange(K) for a, b in pairwise(models)]
    return {
        "own number": np.mean(matched),
        "cosine": topics["similarity"].mean(),
        "NMI of the year": normalized_mutual_info_score(y, labels),
        "NMI by the last": normalized_mutual_info_score(y, models[-1].predict(X)),
        "NMI of a month": np.mean(own),
        "events": (topics["event"] != "").sum(),
    }


def measure(s):
    """Return the means over seeds, and the largest deviation of an NMI."""
    found = [year(s, seed) for seed in range(s.n_seeds)]
    means = {name: round(float(np.mean([one[name] for one in found])), 4) for name in found[0]}
    return means | {"deviation": round(max(float(np.std([o[n] for o in found])) for n in means if "NMI" in n), 4)}


def cells():
    for unit, epsilons in (("document", EPSILONS), ("user", EPSILONS[:1])):
        for epsilon in epsilons:
            for accounting in ("every month", "one month"):
                for method in ("months", "independent"):
                    yield Settings(method, accounting, unit, epsilon)
            yield Settings("one fit", "none", unit, epsilon)


TABLES = [
    Table("months", Settings, cells, measure, data=lambda s: ["20news", "glove"]),
]

if __name__ == "__main__":
    run(TABLES, __doc__)
