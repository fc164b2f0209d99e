"""
Top words under four ways to count the same budget
==================================================

Table 1 of Park, Foulds, Chaudhuri and Welling (2016), *Private topic modeling*, side by side: one topic of each model,
without privacy, with privacy loss distributions, and with the paper's zCDP, advanced and linear composition, all for
the same epsilon. The less noise an accounting asks for, the more of the words belong together. Three of the five are
claims, and the program prints what they are worth.

The paper has 400,000 articles of Wikipedia and epsilon 0.5. Here 20 Newsgroups stand in for them, with a larger epsilon
to make up for being 20 times smaller (``SKDPLDA_DATA`` names the folder of the corpora); without that folder it is a
corpus with the topics of real news.

    python examples/vips_top_words.py --epsilon 5
"""

import argparse
import math
import os
import warnings
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer

from skdplda import VIPSLDA, PrivacyLeakWarning
from skdplda.datasets import frequent_words, load_20newsgroups, make_news_corpus, topic_recovery
from skdplda.plots import TopWordsDisplay
from skdplda.privacy import epsilon_of
from skdplda.published import PublishedVIPSLDA

ACCOUNTINGS = {"no privacy": None, "PLD": "pld", "zCDP": "zcdp", "advanced": "advanced", "linear": "linear"}


def corpus(n_words):
    """Return counts and words."""
    folder = os.environ.get("SKDPLDA_DATA")
    if folder:
        posts = load_20newsgroups("all", path=Path(folder) / "20news_bydate_raw.jsonl.xz").data
        words = frequent_words(posts, n_words, stop_words="english")  # not private: the same for all
        return CountVectorizer(vocabulary=words).transform(posts), np.array(words, dtype=object)
    planted = make_news_corpus(5000, n_words, 10, mean_length=100, random_state=0)
    return planted.data, planted.feature_names


def main():
    """Fit the five models and print the topic of each that is most like one of the model without privacy."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--epsilon", type=float, default=5.0)
    parser.add_argument("--topics", type=int, default=10)
    parser.add_argument("--words", type=int, default=500)
    parser.add_argument("--show", type=int, default=3, help="topics to show")
    options, _ = parser.parse_known_args()  # a notebook has arguments of its own
    X, words = corpus(options.words)
    nominal = round(X.shape[0], -3)  # stands for a public estimate
    models = {}
    for title, accounting in ACCOUNTINGS.items():
        proven = accounting in (None, "pld")
        kind = (
            partial(VIPSLDA, learning_method="online") if proven else partial(PublishedVIPSLDA, accounting=accounting)
        )
        model = kind(
            options.topics,
            epsilon=options.epsilon if accounting else math.inf,
            batch_size=nominal // 10,
            nominal_size=nominal,
            max_iter=40,
            max_norm=8.0,
            max_doc_length=200,
            random_state=bytes(32),  # not secret, so that each run prints the same; release with None
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)  # the claims, and the seed
            models[title] = model.fit(X)
        guarantee = model.privacy_guarantee_
        if accounting:
            worth = epsilon_of(guarantee.event, guarantee.delta)
            print(f"{title}: {guarantee.status}, epsilon {guarantee.epsilon:g}; its noise is worth {worth:.3g}")
    reference = models["no privacy"].topic_word_
    shown = np.argsort(-reference.max(axis=1), kind="stable")[: options.show]
    for number in shown:
        columns, weights = {}, []
        for title, model in models.items():
            like = topic_recovery(reference, model.topic_word_).permutation[number]
            columns[title] = model.top_words(10, words).iloc[like].to_list()
            weights.append(np.sort(model.topic_word_[like])[:-11:-1])
        print(f"\nTopic {number}")
        print(pd.DataFrame(columns).to_string(index=False))
        TopWordsDisplay(words=list(columns.values()), weights=weights, topic_names=list(columns)).plot()
    plt.show()


if __name__ == "__main__":
    main()
