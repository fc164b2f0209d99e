"""How to share one budget between words and topics: what a fully private pipeline gains, over the share of the words.

For a total epsilon and each share of it that selects the words, the topics get what joint accounting leaves. Words that
were not selected are not modelled, so that perplexities over different vocabularies do not compare. What does is the
gain over the word frequencies, in nats a token of the test documents, those of unselected words included with a gain
of 0: (ln unigram perplexity - ln perplexity) x share of tokens whose word was selected. The unigram model has the exact
frequencies of the selected words, and is only a yardstick. English stop words are left out, a document is the set
of its words, a random tenth of the documents is the test set.

    python benchmarks/vocabulary_share.py --data FOLDER
"""

import argparse
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from results import save

from skdplda import DPCountVectorizer, PrivacyLeakWarning, make_fdptm_pipeline, privacy_guarantee
from skdplda.datasets import load_20newsgroups
from skdplda.metrics import unigram_perplexity


def corpora(data, names):
    """Yield (name, texts, topics)."""
    if "tweets" in names:
        yield "TweetRumors", json.loads((data / "pheme_clean.json").read_text())["text"], 5
    if "20news" in names:
        yield "20 Newsgroups", load_20newsgroups("all", path=data / "20news_bydate_raw.jsonl.xz").data, 10


def measure(train, test, n_topics, epsilon, delta, share, seed):
    """Fit one pipeline and return a row of the table."""
    vectorizer = DPCountVectorizer(stop_words="english", token_pattern=None, binary=True)
    pipeline = make_fdptm_pipeline(
        epsilon, delta, n_components=n_topics, vocabulary_share=share, vectorizer=vectorizer
    ).set_params(words__random_state=1000 + seed, topics__random_state=seed)
    pipeline.fit(train)
    X_train, X_test = (pipeline[:-1].transform(texts) for texts in (train, test))
    analyze = vectorizer.build_analyzer()
    kept = X_test.sum() / sum(len(set(analyze(text))) for text in test)
    gain = np.log(unigram_perplexity(X_train, X_test)) - np.log(pipeline[-1].perplexity(X_test))
    total = privacy_guarantee(pipeline)
    return {
        "words": X_train.shape[1],
        "tokens kept": kept,
        "epsilon of topics": pipeline[-1].epsilon,
        "gain": gain * kept,
        "total epsilon": total.epsilon,
        "total delta": total.delta,
    }


def main():
    """Print and save the table."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0, 5.0, 10.0])
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--corpora", choices=("tweets", "20news"), nargs="+", default=["tweets", "20news"])
    parser.add_argument("--quick", action="store_true", help="the tweets, two shares, one seed")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    if args.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    if args.quick:
        args.corpora, args.shares, args.seeds = ["tweets"], [0.1, 0.3], args.seeds[:1]
    warnings.simplefilter("ignore", PrivacyLeakWarning)

    rows = []
    for name, texts, n_topics in corpora(Path(args.data), args.corpora):
        order = np.random.default_rng(0).permutation(len(texts))
        test, train = ([texts[i] for i in part] for part in np.split(order, [len(order) // 10]))
        for epsilon in args.epsilon:
            for share in args.shares:
                for seed in args.seeds:
                    row = measure(train, test, n_topics, epsilon, args.delta, share, seed)
                    rows.append({"corpus": name, "epsilon": epsilon, "share": share, "seed": seed, **row})
    table = pd.DataFrame(rows)
    keys = ["corpus", "epsilon", "share"]
    print(table.groupby(keys, sort=False).mean().drop(columns="seed").to_string(float_format="{:.4g}".format))
    save(table, args.output / "vocabulary_share.csv", [corpora, measure], args.corpora)


if __name__ == "__main__":
    main()
