"""
From a data frame to a page
===========================

A hospital has 40,000 notes of 20,000 patients in a data frame. It wants to publish what they are about, at epsilon 2: a
page that its ethics board can read, and a file that a colleague uses to sort new notes. The words are chosen privately,
too. One budget pays for everything, and it protects all notes of a patient together.

The notes here are made up: words drawn from the topics of 300 real news articles, which come with gensim. The topics of
real notes overlap more than these; the tutorial has real posts.
"""

import argparse

import numpy as np
import pandas as pd

from skdplda import load_released, make_fdptm_pipeline, release
from skdplda.datasets import make_news_corpus
from skdplda.reports import report

parser = argparse.ArgumentParser(description="From a data frame of notes to a page and a file of topics.")
parser.add_argument("--notes", type=int, default=40_000, help="number of notes (default: 40000)")
args, _ = parser.parse_known_args()

corpus = make_news_corpus(args.notes, n_words=2000, n_components=8, mean_length=40, random_state=0)
vocabulary, rng = np.array(corpus.feature_names), np.random.default_rng(0)
notes = [" ".join(np.repeat(vocabulary[note.indices], note.data)) for note in corpus.data]
df = pd.DataFrame({"text": notes, "patient": rng.integers(args.notes // 2, size=args.notes)})
print(df.head(3))

# %%
# All the work: private words and topics, their release, the page, and the file with its card.

pipeline = make_fdptm_pipeline(2.0, 1e-6, n_components=8, max_words="auto", groups=True)
pipeline.fit(df["text"], groups=df["patient"])
topics = release(pipeline)
report(topics, "topics.html", title="What the notes are about")
topics.save("topics.zip", overwrite=True)

# %%
# A colleague has the file, and neither notes nor budget.

model = load_released("topics.zip")
new = ["Taliban forces left Kabul, Afghanistan.", "The airline's workers stopped all maintenance at Qantas."]
print(pd.DataFrame(model.transform(new), columns=model.get_feature_names_out()).round(2).to_string())

# %%
# What it tells of its topics, and what it promises.

print(model.topic_info(6)[["name", "size", "words", "noise"]].to_string())
print(model.privacy_guarantee_)
