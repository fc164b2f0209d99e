"""
Mail: protect people, not messages
==================================

A guarantee for one message is worth little to someone who wrote a hundred. With ``groups``, all messages of one sender
count as one unit: the guarantee holds for adding or removing a person, however much they wrote.

The mail is raw mail of six Enron mailboxes where the environment variable SKDPLDA_DATA names a folder with it, and made
up otherwise: a few senders write most of the messages, and each has two subjects.
"""

import argparse
import json
import lzma
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skdplda import DPCountVectorizer, PrivacyAccountant, PrivateCGSLDA, make_fdptm_pipeline, privacy_guarantee
from skdplda.datasets import make_news_corpus
from skdplda.plots import TopWordsDisplay, VocabularyDisplay

parser = argparse.ArgumentParser(description="Private topics of mail, for senders.")
parser.add_argument("--corpus", choices=("made-up", "enron"), help="default: enron if SKDPLDA_DATA is set")
parser.add_argument("--messages", type=int, default=20_000, help="of the made-up mail (default: 20000)")
args, _ = parser.parse_known_args()  # a notebook has arguments of its own
data = os.environ.get("SKDPLDA_DATA")

if args.corpus == "enron" or (args.corpus is None and data):
    with lzma.open(Path(data) / "enron_ham_raw.jsonl.xz", "rt") as file:
        mails = [json.loads(line) for line in file]
    texts = [f"{mail['subject']}\n{mail['body']}" for mail in mails]
    senders = [mail["frm"].strip() or f"unknown {i}" for i, mail in enumerate(mails)]  # each unknown one is a user
else:
    rng = np.random.default_rng(0)
    corpus = make_news_corpus(args.messages, 400, 6, random_state=0)
    texts = [" ".join(corpus.feature_names.repeat(row)) for row in corpus.data.toarray()]
    # senders by rank, and a message goes to one who likes its subject
    activity = 1 / np.arange(1, args.messages // 8 + 1) ** 0.7
    likes = rng.dirichlet(np.full(6, 0.3), len(activity)).T
    subject = np.argmax(corpus.doc_topic, axis=1)
    chances = activity * likes / (activity * likes).sum(axis=1, keepdims=True)
    senders = [int(rng.choice(len(activity), p=chances[k])) for k in subject]

numbers = np.unique(senders, return_counts=True)[1]
print(f"{len(texts):,} messages of {len(numbers):,} senders; the most active one wrote {numbers.max():,}")

# %%
# What a guarantee for one message is worth to a sender of many: the epsilon of all of them together. These numbers of
# messages are round ones; the true ones are private.

message = PrivateCGSLDA(epsilon=5.0, delta=1e-6).privacy_cost()
for number in (1, 10, 100):
    print(f"{number:>4} messages: epsilon {message.for_group(number).epsilon:,.0f}")

# %%
# So words and topics are learned for senders, for one budget of both. Each sender contributes like one document.

pipeline = make_fdptm_pipeline(
    epsilon=8.0,
    delta=1e-6,
    n_components=6,
    groups=True,
    vectorizer=DPCountVectorizer(stop_words="english", token_pattern=r"(?u)\b[^\W\d_]\w{2,}\b"),
)
with PrivacyAccountant(epsilon=8.0, delta=1e-6, unit="user") as accountant:
    pipeline.fit(texts, groups=senders)
words = pipeline["words"].get_feature_names_out()
print(repr(privacy_guarantee(pipeline)))
print(f"{len(words):,} words named; spent epsilon {accountant.total.epsilon:.2f}")

# %%
# The noise that hides a person is not more than the noise that hides a message. But there are fewer people than
# messages, and so fewer units to learn from: expect fewer words and coarser topics.

TopWordsDisplay.from_estimator(pipeline["topics"], feature_names=words, n_words=7, n_columns=3)

# %%
# How many words a selection names at which epsilon, for messages and for senders. Each point is a fit that spends its
# epsilon; on private mail one would pick one and pay for it.

epsilons, sizes = [0.5, 1, 2, 5], {}
for name, groups in (("messages", None), ("senders", senders)):
    vectorizer = DPCountVectorizer(delta=1e-6, stop_words="english")
    display = VocabularyDisplay.from_estimator(vectorizer, texts, epsilons=epsilons, groups=groups)
    plt.close(display.figure_)
    sizes[f"per {name[:-1]}"] = display.values["sieve"]
VocabularyDisplay(epsilons=epsilons, values=sizes).plot()
plt.show()
