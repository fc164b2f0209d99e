"""
What privacy costs
==================

Held-out perplexity over epsilon on a corpus with planted topics, and on one twice as large: noise hides one document,
so its size does not depend on how many documents there are, and more text buys a smaller epsilon. Bands go from the
least to the largest of three fits.

The corpus is synthetic. On private data each fit on this curve would spend its own epsilon.
"""

import argparse

import numpy as np
from sklearn.base import clone

from skdplda import PrivateCGSLDA
from skdplda.datasets import make_lda_corpus, topic_recovery
from skdplda.metrics import unigram_perplexity
from skdplda.plots import PrivacyUtilityDisplay

parser = argparse.ArgumentParser(description="Held-out perplexity over epsilon, for two sizes of corpus.")
parser.add_argument("--documents", type=int, default=4000, help="of the smaller corpus (default: 4000)")
parser.add_argument("--output", default="privacy_utility.png", help="picture (default: privacy_utility.png)")
args = parser.parse_args()

N_TEST, N_TOPICS, N_REPEATS = 1000, 5, 3
EPSILONS = [0.2, 0.5, 1.0, 2.0, 5.0]

# Both corpora share their planted topics and their test documents.
corpus = make_lda_corpus(2 * args.documents + N_TEST, 300, N_TOPICS, mean_length=30, random_state=0)
test, train = corpus.data[:N_TEST], corpus.data[N_TEST:]

# Without noise, fits cost nothing: keep the best of a few starts. The seeds make it repeatable.
exact = [PrivateCGSLDA(N_TOPICS, epsilon=np.inf, max_iter=40, random_state=seed).fit(train) for seed in range(3)]
non_private = min(model.perplexity(test) for model in exact)
unigram = unigram_perplexity(train, test)

# With noise, no seed: the noise of a model to be released must be unpredictable.
axes = None
for n_documents, color in ((args.documents, "#009E73"), (2 * args.documents, "#0072B2")):
    scores = []
    for epsilon in EPSILONS:
        private = PrivateCGSLDA(N_TOPICS, epsilon=epsilon, delta=1e-5)
        models = [clone(private).fit(train[:n_documents]) for _ in range(N_REPEATS)]
        scores.append([model.perplexity(test) for model in models])
        recovered = np.mean([topic_recovery(corpus.topic_word, model.topic_word_).mean for model in models])
        print(
            f"{n_documents:>6} documents, epsilon {epsilon:<4g} perplexity {np.mean(scores[-1]):6.1f},"
            f" topics recovered {recovered:.0%}"
        )
    last = n_documents > args.documents
    display = PrivacyUtilityDisplay(
        epsilons=EPSILONS,
        scores=scores,
        non_private=non_private if last else None,
        unigram=unigram if last else None,
    )
    axes = display.plot(ax=axes, name=f"{n_documents:,} documents", color=color).ax_

print(f"unigram {unigram:.1f}, without noise {non_private:.1f}")
print(models[0].privacy_guarantee_)
display.figure_.savefig(args.output, dpi=150)
print(f"Picture saved to {args.output}")
