"""
Choose hyper-parameters on public text, spend the budget once
=============================================================

A grid search reads the data once for each candidate and fold, and every one of these fits spends its epsilon. So
search where it is free, on public text that resembles the private one, then fit the private text once, under a ledger
that refuses what the budget cannot pay.

Here both texts are halves of one synthetic corpus.
"""

import argparse

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from skdplda import BudgetExceededError, PrivacyAccountant, PrivateCGSLDA
from skdplda.datasets import make_news_corpus
from skdplda.metrics import make_coherence_scorer
from skdplda.plots import TopWordsDisplay

parser = argparse.ArgumentParser(description="Grid search on public text, one fit on private text.")
parser.add_argument("--documents", type=int, default=4000, help="of each text (default: 4000)")
args, _ = parser.parse_known_args()  # a notebook has arguments of its own

corpus = make_news_corpus(2 * args.documents, 150, 5, random_state=0)
words = corpus.feature_names
texts = [" ".join(words.repeat(row)) for row in corpus.data.toarray()]
public, private = texts[: args.documents], texts[args.documents :]

# %%
# The vocabulary is given, not learned: a word list learned from private text would leak.
pipeline = Pipeline(
    [
        ("count", CountVectorizer(vocabulary=words)),
        ("lda", PrivateCGSLDA(epsilon=3.0, delta=1e-5)),
    ]
)
grid = {"lda__n_components": [3, 5], "lda__max_iter": [10, 20]}

# %%
# Public text: search at the epsilon that the private fit will have, by held-out likelihood and by coherence.
scoring = {
    "likelihood": lambda estimator, X, y=None: estimator.score(X),
    "coherence": make_coherence_scorer("u_mass"),
}
search = GridSearchCV(pipeline, grid, scoring=scoring, refit="likelihood", cv=2).fit(public)
print("On public text:")
for i, candidate in enumerate(search.cv_results_["params"]):
    likelihood, coherence = (search.cv_results_[f"mean_test_{name}"][i] for name in scoring)
    print(f"  {candidate}: log-likelihood {likelihood:.3f} a token, u_mass {coherence:.1f}")
print(f"  best: {search.best_params_}")

# %%
# Private text: one fit, and nothing left.
best = pipeline.set_params(**search.best_params_)
with PrivacyAccountant(epsilon=3.0, delta=1e-5) as accountant:
    best.fit(private)
    print("On private text:")
    print(f"  spent: epsilon {accountant.total.epsilon:.2f}, delta {accountant.total.delta:g}")
    try:
        best.fit(private)
    except BudgetExceededError as error:
        print(f"  a second fit is refused, before it reads a document: {error}")
TopWordsDisplay.from_estimator(best[-1], feature_names=words, n_words=6)

# %%
# What the search would have cost on the private text: every fit of it, composed.
fits = len(search.cv_results_["params"]) * search.n_splits_ + 1
cost = best[-1].privacy_cost()
total = cost.compose(*[cost] * (fits - 1))
print(f"The search itself, on private text: {fits} fits, epsilon {total.epsilon:.1f}, delta {total.delta:g}")
plt.show()
