"""
A crowd of clients
==================

Each client randomizes which words of a public vocabulary its document has, and writes one report file. The server
reads the files in mini-batches, refuses damaged and foreign ones, and goes on with its topics after each batch. It
never sees a document. The picture shows held-out perplexity over time, beside the same stream without noise.

The corpus is synthetic; the test documents are public.
"""

import argparse
import math
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skdplda import LocalPrivateLDA
from skdplda.datasets import make_lda_corpus
from skdplda.local import LocalRandomizer, make_report, read_reports, report_size
from skdplda.metrics import unigram_perplexity

parser = argparse.ArgumentParser(description="Clients write randomized report files, a server streams them.")
parser.add_argument("--clients", type=int, default=10_000, help="clients (default: 10000)")
parser.add_argument("--batch", type=int, default=500, help="reports of a mini-batch (default: 500)")
parser.add_argument(
    "--bit-epsilon",
    type=float,
    default=2.0,
    help="privacy loss of one bit; a word loses nearly twice that (default: 2)",
)
args, _ = parser.parse_known_args()  # a notebook has arguments of its own

N_TEST, N_TOPICS, N_WORDS = 500, 5, 300
corpus = make_lda_corpus(args.clients + N_TEST, N_WORDS, N_TOPICS, mean_length=30, topic_word_prior=0.1, random_state=0)
vocabulary = list(corpus.feature_names)
test, documents = (corpus.data[:N_TEST] > 0).astype(np.int32), corpus.data[N_TEST:]
randomizer = LocalRandomizer(args.bit_epsilon, max_words_per_document=20)  # what clients and server agreed on


def client(number, folder):
    """What runs on one device: a document in, one file out. Only the file leaves it."""
    words = [vocabulary[w] for w in documents[[number]].indices]
    path = folder / f"{number:06d}.report"
    path.write_bytes(make_report(words, vocabulary, randomizer))
    return path


# %%
# All clients report, some reports get lost or damaged, and the server reads what is left, batch after batch.

with tempfile.TemporaryDirectory() as folder:
    files = [client(number, Path(folder)) for number in range(args.clients)]
    print(f"{len(files)} report files of {report_size(N_WORDS)} bytes")

    # On the way, one file loses its end, one has a bit turned over, and one was made for another vocabulary.
    files[3].write_bytes(files[3].read_bytes()[:-9])
    files[4].write_bytes(files[4].read_bytes()[:-9] + b"?" + files[4].read_bytes()[-8:])
    files[5].write_bytes(make_report([], vocabulary[::-1], randomizer))

    model = LocalPrivateLDA(N_TOPICS, randomizer=randomizer, input="reports", max_iter=50)
    exact = LocalPrivateLDA(N_TOPICS, randomizer=LocalRandomizer(math.inf, max_words_per_document=20), max_iter=50)
    seen, private, non_private = [], [], []
    for start in range(0, len(files), args.batch):
        batch = read_reports(files[start : start + args.batch], vocabulary, randomizer)
        for number, reason in batch.rejected:
            print(f"  {files[start + number].name}: {reason}")
        if batch.rejected:
            print(f"  refused {len(batch.rejected)}, kept {batch.data.shape[0]}")
        model.partial_fit(batch.data)
        exact.partial_fit(documents[start : start + args.batch])
        seen.append(start + args.batch)
        private.append(model.perplexity(test))
        non_private.append(exact.perplexity(test))
        print(f"{seen[-1]:>6} reports: perplexity {private[-1]:.1f}, without noise {non_private[-1]:.1f}")

# %%
# The topics, and the two guarantees: for one word of a document, and for the document.

print(model.top_words(8, vocabulary).to_string())
print(model.bit_guarantee_)
print(model.privacy_guarantee_)

# %%
# Held-out perplexity over time. The guarantee for one word is weak (see "Attack" above), and that for a document, which
# tells up to 20 words, next to nothing: a smaller `bit_epsilon` takes many more clients.

unigram = unigram_perplexity((documents > 0).astype(np.int32), test)
fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
ax.axhline(unigram, color="0.4", linestyle="-.", linewidth=1, label="unigram model, without noise")
ax.plot(seen, private, color="#0072B2", linewidth=2, marker="o", markersize=4, label="from randomized reports")
ax.plot(seen, non_private, color="#009E73", linewidth=2, linestyle="--", label="without noise")
ax.set(xlabel="reports read", ylabel="held-out perplexity", title="Topics from reports that hide their documents")
ax.grid(alpha=0.3)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.92))
word, document = model.bit_guarantee_.epsilon, model.privacy_guarantee_.epsilon
fig.supxlabel(
    f"ε = {word:.3g} for one word of a document, {document:g} for the document (at most 20 words of it are reported)",
    fontsize=9,
    color="0.35",
)
plt.show()
