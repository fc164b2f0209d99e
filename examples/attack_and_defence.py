"""
Attack and defence
==================

Who was in the training data of a published topic model? The likelihood ratio attack compares the published topics with
those of shadow models, which are trained on random halves of similar documents. It is tried on the ordinary model, with
and without a vocabulary from the data, and on a private one.
"""

import argparse
from dataclasses import replace

import matplotlib.pyplot as plt
from sklearn.decomposition import LatentDirichletAllocation

from skdplda import PrivateCGSLDA
from skdplda.attacks import membership_experiment
from skdplda.datasets import make_lda_corpus
from skdplda.plots import AttackRocDisplay

parser = argparse.ArgumentParser(description="The likelihood ratio attack on ordinary and on private topics.")
parser.add_argument("--documents", type=int, default=800, help="half of them are members (default: 800)")
parser.add_argument("--shadows", type=int, default=16, help="shadow models of an attack (default: 16)")
args, _ = parser.parse_known_args()  # a notebook has arguments of its own

# Short documents with rare words, as posts and tweets are: those are the ones to be found.
X = make_lda_corpus(args.documents, 1500, 5, mean_length=15, random_state=0).data
options = {"n_models": args.shadows, "thresholds": (), "random_state": 0}
ATTACK = "LiRA online (zeta)"

# %%
# The ordinary model as it is mostly published: with the words that its documents have. A word of one document alone
# tells that this document was there; no model is needed for that.

ordinary = LatentDirichletAllocation(5, max_iter=5, random_state=0)
results = membership_experiment(ordinary, X, **options)
found = [
    replace(results["vocabulary"], name="the vocabulary alone"),
    replace(results[ATTACK], name="ordinary topics, vocabulary of the data"),
]

# %%
# A public vocabulary stops that attack, but not those on topics. The private fit stops both: whatever the attack, at
# epsilon 2 and delta 1e-5 it finds at most 3.4 % of the members at 1 % false alarms. How many it really finds is within
# the interval beside it.

public = membership_experiment(ordinary, X, vocabulary="given", **options)
found.append(replace(public[ATTACK], name="ordinary topics, public vocabulary"))
private = PrivateCGSLDA(5, epsilon=2.0, delta=1e-5)
defended = membership_experiment(private, X, vocabulary="given", **options)
found.append(replace(defended[ATTACK], name="private topics, public vocabulary"))
for result in found:
    at = result.tpr_at(0.01)
    print(f"{result.name:<42} {at.rate:6.1%} of the members found at 1 % false alarms ({at.low:.1%} to {at.high:.1%})")

# %%
# Read such curves at their left end: an attack that is sure about one person in a hundred is a breach for that one. An
# attack that fails proves nothing; the theorem does.

AttackRocDisplay(results=found).plot(fpr=0.01)
plt.show()
