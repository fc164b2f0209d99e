"""
What an epsilon allows, and what it costs
=========================================

Three questions have answers without private data: what an epsilon still allows an attacker, how much noise it means,
and what that noise does to topics of a corpus of this size. The last one is a curve on synthetic text: noise hides one
document, so its size does not depend on how many documents there are, and more text buys a smaller epsilon.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone

from skdplda import PrivateCGSLDA
from skdplda.datasets import make_lda_corpus, topic_recovery
from skdplda.metrics import unigram_perplexity
from skdplda.plots import PrivacyUtilityDisplay

parser = argparse.ArgumentParser(description="What epsilon allows, and held-out perplexity for two sizes of corpus.")
parser.add_argument("--documents", type=int, default=3000, help="of the smaller corpus (default: 3000)")
args, _ = parser.parse_known_args()  # a notebook has arguments of its own

N_TEST, N_TOPICS, N_REPEATS, DELTA = 1000, 5, 3, 1e-5
EPSILONS = [0.2, 0.5, 1.0, 2.0, 5.0]

# %%
# An attacker has all other documents, and wrongly accuses one in a hundred of the absent people. What share of those
# who are present can be found, however clever the attack? The pair of epsilon and delta bounds it. So does every other
# pair that the same noise keeps, and the best of them bounds it better: that is the whole guarantee. The last column is
# the noise in a cell of the topics, in words of a document of 25 different ones.

FALSE_ALARMS = 0.01


def found_at_most(epsilon, delta):
    """Bound the share of true positives of any test of (epsilon, delta)-indistinguishable releases."""
    return min(np.exp(epsilon) * FALSE_ALARMS + delta, 1 - np.exp(-epsilon) * (1 - FALSE_ALARMS - delta))


rows = {}
for epsilon in [*EPSILONS, 10.0]:
    model = PrivateCGSLDA(N_TOPICS, epsilon=epsilon, delta=DELTA)
    guarantee = model.privacy_cost()
    pairs = [(guarantee.epsilon_at(delta), delta) for delta in np.geomspace(DELTA, 0.5, 60)]
    rows[epsilon] = {
        "by epsilon and delta": f"{found_at_most(epsilon, DELTA):.1%}",
        "by the whole guarantee": f"{min(found_at_most(*pair) for pair in pairs):.1%}",
        "noise": round(model.noise_deviation()["in_model"], 1),
    }
print(pd.DataFrame(rows).T.rename_axis("epsilon").to_string())

# %%
# Draw the curve on text that is not private and resembles yours in its number of documents, their lengths, and the
# number of words. Here both corpora share their planted topics and their test documents.

corpus = make_lda_corpus(2 * args.documents + N_TEST, 300, N_TOPICS, mean_length=30, random_state=0)
test, train = corpus.data[:N_TEST], corpus.data[N_TEST:]

# Without noise, fits cost nothing: keep the best of a few starts. The seeds make it repeatable.
exact = [PrivateCGSLDA(N_TOPICS, epsilon=np.inf, max_iter=40, random_state=seed).fit(train) for seed in range(2)]
non_private = min(model.perplexity(test) for model in exact)
unigram = unigram_perplexity(train, test)

# %%
# With noise, no seed: the noise of a model to be released must be unpredictable. Bands go from the least to the largest
# of three fits. On private data each fit on this curve would spend its own epsilon.

axes = None
for n_documents, color in ((args.documents, "#009E73"), (2 * args.documents, "#0072B2")):
    scores = []
    for epsilon in EPSILONS:
        private = PrivateCGSLDA(N_TOPICS, epsilon=epsilon, delta=DELTA)
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
        unit="document",
    )
    axes = display.plot(ax=axes, name=f"{n_documents:,} documents", color=color).ax_
print(f"unigram {unigram:.1f}, without noise {non_private:.1f}")

# %%
# The guarantee of the last fit, as one would publish it:

print(models[0].privacy_guarantee_)
plt.show()
