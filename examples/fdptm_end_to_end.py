"""
From private texts to a file that is safe to publish
====================================================

Words and topics are learned privately, for one budget; what is published is one file that labels new documents
anywhere. Every document here has a name in it that no other has: a pickled plain pipeline gives all of them away,
the released file none.

The texts are synthetic, or 20 Newsgroups where the environment variable SKDPLDA_DATA names a folder with it.
"""

import argparse
import os
import pickle
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from skdplda import PrivacyAccountant, PrivateCGSLDA, load_released, make_fdptm_pipeline, privacy_guarantee, release
from skdplda.datasets import load_20newsgroups, make_news_corpus
from skdplda.plots import TopWordsDisplay
from skdplda.vocabulary import DPCountVectorizer, DPVocabularySelector

parser = argparse.ArgumentParser(description="Texts, private words and topics, release, new documents.")
parser.add_argument("--corpus", choices=("synthetic", "20news"), help="default: 20news if SKDPLDA_DATA is set")
parser.add_argument("--documents", type=int, default=8000, help="of the synthetic corpus (default: 8000)")
parser.add_argument("--epsilon", type=float, default=5.0, help="total budget (default: 5)")
args, _ = parser.parse_known_args()  # a notebook has arguments of its own

data = os.environ.get("SKDPLDA_DATA")
if args.corpus == "20news" or (args.corpus is None and data):
    texts = load_20newsgroups("all", path=Path(data) / "20news_bydate_raw.jsonl.xz").data
    n_topics = 10
else:
    corpus = make_news_corpus(args.documents, 300, 5, random_state=0)
    texts = [" ".join(corpus.feature_names.repeat(row)) for row in corpus.data.toarray()]
    n_topics = 5
texts = [f"{text} patient{number:06d}" for number, text in enumerate(texts)]
private, new = texts[:-3], texts[-3:]

# %%
# One budget for the words and the topics; the price is known before any text is read.
vectorizer = DPCountVectorizer(stop_words="english")
pipeline = make_fdptm_pipeline(args.epsilon, 1e-6, n_components=n_topics, vectorizer=vectorizer)
words, topics = (step.privacy_cost() for _, step in pipeline.steps)
total = privacy_guarantee(pipeline)
print(f"words {words.epsilon:.2f} and topics {topics.epsilon:.2f} make epsilon {total.epsilon:.4f}, accounted jointly")

with PrivacyAccountant(args.epsilon, 1e-6):  # refuses a second fit
    pipeline.fit(private)

# %%
# What may leave: topics, words, guarantee. No pickle.
folder = Path(tempfile.mkdtemp())
release(pipeline).save(folder / "topics.zip")
print(f"saved {', '.join(sorted(path.name for path in folder.iterdir()))}\n")

# %%
# Anywhere else: no data, no pipeline, no training.
model = load_released(folder / "topics.zip")
TopWordsDisplay.from_estimator(model, n_words=7)
print(f"new documents:\n{model.transform(new).round(2)}\n\n{model.privacy_guarantee_}\n")

# %%
# Why not simply pickle a pipeline? Each step of this one keeps its guarantee as well.
selector = DPVocabularySelector(epsilon=args.epsilon / 2, delta=5e-7)
plain = make_pipeline(
    CountVectorizer(stop_words="english"), selector, PrivateCGSLDA(n_topics, epsilon=args.epsilon / 2, delta=5e-7)
)
plain.fit(private)
published = (folder / "topics.zip").read_bytes()
for what, content in (("pickled pipeline", pickle.dumps(plain)), ("released file", published)):
    print(f"names in the {what}: {content.count(b'patient0'):,} of {len(private):,} documents")
plt.show()
