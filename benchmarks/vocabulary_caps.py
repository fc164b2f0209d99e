"""What a cap on private words does for the topics: the recipe with all words, with max_words="auto", and fixed words.

The share is the gain over the word frequencies, in nats a token, as a part of the gain of the same model without noise
on the same words. The gain in nats counts all test words, those outside of the vocabulary with 0. The fixed words are
the 1,000 most frequent ones, taken as public. 20 Newsgroups: the rule of "auto" was chosen on these rows.

    python benchmarks/vocabulary_caps.py --data FOLDER
"""

import argparse
import math
import os
import warnings
from pathlib import Path

import pandas as pd
from frontier import DELTA, judge_pipeline, newsgroups, private_pipeline, tweets
from sklearn.base import clone

from skdplda import VIPSLDA, PrivacyLeakWarning, PrivateCGSLDA, make_fdptm_pipeline
from skdplda.metrics import unigram_perplexity

KINDS = {"VIPSLDA": VIPSLDA, "PrivateCGSLDA": PrivateCGSLDA}


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


def main():
    """Print and save the table."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[5.0])
    parser.add_argument("--topics", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--models", choices=tuple(KINDS), nargs="+", default=["VIPSLDA"])
    parser.add_argument("--caps", choices=("fixed", "auto", "all"), nargs="+", default=["fixed", "auto", "all"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--corpus", choices=("20news", "tweets"), default="20news")
    parser.add_argument("--output", type=Path, help="folder for vocabulary_caps.csv")
    args = parser.parse_args()
    if args.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    warnings.simplefilter("ignore", PrivacyLeakWarning)
    corpus = {"20news": newsgroups, "tweets": tweets}[args.corpus](Path(args.data))
    rows = []
    cells = [(name, k, e, s) for name in args.models for s in args.seeds for k in args.topics for e in args.epsilon]
    for name, n_topics, epsilon, seed in cells:
        for cap in args.caps:
            arguments = corpus, name, n_topics, epsilon, seed
            row = fixed(*arguments) if cap == "fixed" else private(*arguments, cap)
            rows.append(
                {"corpus": corpus.name, "model": name, "topics": n_topics, "total epsilon": epsilon, "cap": cap}
            )
            rows[-1] |= {"seed": seed, **row}
            print(rows[-1], flush=True)
            if args.output:
                options = {"index": False, "float_format": "%.4g", "lineterminator": "\n"}
                pd.DataFrame(rows).to_csv(args.output / "vocabulary_caps.csv", **options)


if __name__ == "__main__":
    main()
