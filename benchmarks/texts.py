"""How many texts a second are embedded, and become counts of private words: posts of 20 Newsgroups, GloVe.

"python" is the way of every token pattern that the kernel does not know: the same pattern, written in another way, so
that texts are cut by `re` and words are numbered by a dictionary. Vectors, words and counts of all rows of a task are
compared; a difference is an error. Seconds are the least of some runs: of the clock, which asks for an idle machine,
and of the processors, all threads together.

    python benchmarks/texts.py
"""

import time
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from corpora import glove, newsgroup_posts
from results import Table, run

from skdplda import DPCountVectorizer
from skdplda.semantics import WordVectorEmbedder
from skdplda.vocabulary import TextEmbedder

READERS = {"python": DPCountVectorizer().token_pattern.replace(r"\b", r"(?:\b)"), "compiled": None}
TASKS = ("embed", "fit", "transform", "fit_transform", "both")
found = {}


@dataclass(frozen=True)
class Settings:
    """Of a row; "both" is `TextEmbedder.fit_transform`."""

    task: str
    reader: str
    n_jobs: int
    epsilon: float = 1.0
    seed: int = 0
    repeats: int = 3


def cells():
    """Return what there is to measure."""
    return [Settings(task, *way) for task, way in product(TASKS, (("python", 1), ("compiled", 1), ("compiled", 2)))]


@cache
def load():
    """Return texts and word vectors."""
    return newsgroup_posts().data, glove()


def measure(s):
    """Return the values of a row."""
    texts, vectors = load()
    options = {"n_jobs": s.n_jobs} | ({"token_pattern": READERS[s.reader]} if READERS[s.reader] else {})
    embedder = WordVectorEmbedder(vectors, **options)
    words = DPCountVectorizer(s.epsilon, random_state=s.seed, **options)
    if s.task == "transform":
        words.fit(texts)
    task = {
        "embed": lambda: embedder.transform(texts),
        "fit": lambda: words.fit(texts).get_feature_names_out(),
        "transform": lambda: words.transform(texts),
        "fit_transform": lambda: words.fit_transform(texts),
        "both": lambda: TextEmbedder(embedder, words).fit_transform(texts).vectors,
    }[s.task]
    seconds, cpu = [], []
    for _ in range(s.repeats):
        begun, begun_cpu = time.perf_counter(), time.process_time()
        made = task()
        seconds.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - begun_cpu)
    made = made.toarray() if hasattr(made, "toarray") else made
    if not np.array_equal(made, found.setdefault(s.task, made)):
        raise AssertionError(f"{s.task} differs between readers or numbers of threads")
    n = len(texts)
    return {
        "texts": n,
        "texts / s": n / min(seconds),
        "texts / CPU s": n / min(cpu),
        "CPU us / text": 1e6 * min(cpu) / n,
    }


def report(tables, folder):
    """Print the speeds side by side."""
    table = tables["texts"]
    print(table.pivot_table(["texts / s", "texts / CPU s"], "task", ["reader", "n_jobs"]).round(-2).to_string())


TABLES = [
    Table("texts", Settings, cells, measure, lambda s: ["20news", "glove"], timed=True),
]
if __name__ == "__main__":
    run(TABLES, __doc__, report)
