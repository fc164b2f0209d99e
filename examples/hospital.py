"""
From a data frame to a page
===========================

A hospital has notes in a data frame and wants to publish what they are about: a page that its ethics board can read,
and a file that a colleague uses to sort new notes. The words are chosen privately, too. One budget pays for everything.

The notes here are paragraphs of Wikipedia, which come with gensim. A real hospital gives `groups`, the patient of each
note, so that the guarantee is for all notes of a patient together.
"""

import argparse
import bz2
import re

import pandas as pd
from gensim.corpora.wikicorpus import extract_pages, filter_wiki
from gensim.test.utils import datapath

from skdplda import DPCountVectorizer, load_released, make_fdptm_pipeline, release
from skdplda.reports import report

parser = argparse.ArgumentParser(description="From a data frame of notes to a page and a file of topics.")
parser.add_argument("--notes", type=int, default=20_000, help="notes at most (default: all)")
parser.add_argument("--epsilon", type=float, default=4.0, help="privacy loss of words and topics (default: 4)")
args, _ = parser.parse_known_args()

WIKIPEDIA = datapath("enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2")
with bz2.open(WIKIPEDIA) as file:
    pages = [filter_wiki(text) for _, text, _ in extract_pages(file)]
paragraphs = [line for page in pages for line in re.split(r"\n+", page) if len(line.split()) > 15]
df = pd.DataFrame({"text": paragraphs[: args.notes]})

# %%
# All the work: private words and topics, their release, the page, and the file with its card.

words = DPCountVectorizer(stop_words="english", token_pattern=r"(?u)\b[^\W\d_]{3,}\b")
pipeline = make_fdptm_pipeline(args.epsilon, 1e-6, n_components=8, vectorizer=words).fit(df["text"])
topics = release(pipeline)
report(topics, "topics.html", title="What the notes are about")
topics.save("topics.zip", overwrite=True)

# %%
# A colleague has the file, and neither notes nor budget.

model = load_released("topics.zip")
new = ["The British army went to war in the north.", "The acid is used in this example."]
print(model.transform(new).round(2))
print(model.topic_info(6)[["name", "size", "words", "noise"]].to_string())
print(repr(model.privacy_guarantee_))
