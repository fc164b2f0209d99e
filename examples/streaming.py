"""
A stream in constant memory
===========================

Documents arrive in batches and are forgotten. Each batch takes one step of private variational inference; the first
step pays for all of them, and no step is taken beyond what was paid for. Between steps the model can be pickled, since
it holds released values only, and a stream that was killed goes on from there.

A stream is for documents that cannot be kept. Where they can, collect them and call ``fit`` once: at the same epsilon
of 2, of these 40,000 documents, one fit recovered 96 % of the topics in each of three runs (perplexity 23.9), 40
batches 60 to 79 % (28 to 33), and 8 batches 59 to 82 % (26 to 32). The last lines of this program show it for your own
numbers.
"""

import argparse
import pickle

import matplotlib.pyplot as plt
import numpy as np

from skdplda import VIPSLDA, BudgetExceededError, PrivacyAccountant
from skdplda.datasets import make_lda_corpus, topic_recovery
from skdplda.metrics import unigram_perplexity
from skdplda.plots import ConvergenceDisplay

parser = argparse.ArgumentParser(description="Batches of a stream, each a step of private variational inference.")
parser.add_argument("--batches", type=int, default=40, help="batches of the stream (default: 40)")
parser.add_argument("--batch", type=int, default=1000, help="documents of a batch (default: 1000)")
args, _ = parser.parse_known_args()  # a notebook has arguments of its own

N_TEST, N_TOPICS, N_WORDS = 500, 5, 200
n_documents = args.batches * args.batch
corpus = make_lda_corpus(n_documents + N_TEST, N_WORDS, N_TOPICS, mean_length=30, random_state=0)
test, documents = corpus.data[:N_TEST], corpus.data[N_TEST:]  # the test documents are public

# %%
# Each document comes in one batch only, which the curator states by ``max_visits=1``. The steps then cost as much as
# one: a document is in one of them. Its batch must depend on neither other documents nor the model.
#
# Each step adds noise anew, which is why one ``fit`` keeps more; the guide has more numbers.

model = VIPSLDA(
    N_TOPICS,
    learning_method="online",
    batch_size=args.batch,
    nominal_size=n_documents,  # public, or an estimate
    max_iter=args.batches,
    max_visits=1,
    epsilon=2.0,
    delta=1e-6,
)
print(repr(model.privacy_cost(stream=True)))

# %%
# The ledger is charged with the first batch. In the middle the process "dies": what is left is a pickle, which goes on.

perplexities, saved = [], None
with PrivacyAccountant(epsilon=2.0, delta=1e-6) as accountant:
    for number in range(args.batches):
        batch = documents[number * args.batch : (number + 1) * args.batch]
        if number == args.batches // 2:
            model = pickle.loads(saved)
            print(f"resumed after {model.n_iter_} batches, from {len(saved):,} bytes")
        model.partial_fit(batch)
        saved = pickle.dumps(model)
        perplexities.append(model.perplexity(test))
    try:
        model.partial_fit(batch)
    except BudgetExceededError as error:
        print(f"one more batch is refused: {error}")
    print(f"spent: epsilon {accountant.total.epsilon:g} in {len(accountant.ledger)} entry")

# %%
# Held-out perplexity after each batch. The unigram model, without topics, is what topics must beat.

display = ConvergenceDisplay(values=perplexities, rounds=np.arange(1, args.batches + 1) * args.batch)
axes = display.plot(name="after each batch").ax_
axes.axhline(unigram_perplexity(documents, test), color="#555555", linestyle=":", label="unigram (no topics)")
axes.set_xlabel("Documents read")
axes.legend(frameon=False)
plt.show()

# %%
# The same budget in one fit, for comparison. On private documents it is one or the other: both would cost twice.

at_once = VIPSLDA(N_TOPICS, epsilon=2.0, delta=1e-6).fit(documents)
for name, fitted in (f"{args.batches} batches", model), ("one fit", at_once):
    recovered = topic_recovery(corpus.topic_word, fitted.topic_word_).mean
    print(f"{name}: {recovered:.0%} of the topics recovered, perplexity {fitted.perplexity(test):.1f}")
