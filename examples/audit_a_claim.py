"""
Audit a claim
=============

An audit plants canaries, documents with a word of their own, and bounds epsilon from below by how well the released
topics tell which canaries were there. It cannot prove a claim. It can refute one, and does.
"""

import argparse
import warnings

import matplotlib.pyplot as plt

from skdplda import PrivacyLeakWarning, PrivateCGSLDA
from skdplda.audit import audit
from skdplda.datasets import make_lda_corpus
from skdplda.plots import AuditDisplay
from skdplda.published import CDPLDAPlus, PriTopLDA

parser = argparse.ArgumentParser(description="Proven and published mechanisms under audit.")
parser.add_argument("--canaries", type=int, default=2000, help="planted documents (default: 2000)")
args, _ = parser.parse_known_args()  # a notebook has arguments of its own

# The claim holds for every corpus, so that a small one will do; it makes the attack easier.
X = make_lda_corpus(100, 30, 2, random_state=0).data
common = {"n_components": 2, "max_iter": 3, "delta": 1e-8}

# %%
# Two proven mechanisms and two published ones. The published ones warn on every fit, and their guarantees say why their
# claims fail; here is how.

models = {
    "Gaussian noise": PrivateCGSLDA(epsilon=1.0, **common),
    "Gaussian noise, larger epsilon": PrivateCGSLDA(epsilon=4.0, **common),
    "Laplace noise": PrivateCGSLDA(epsilon=4.0, mechanism="laplace", **common),
    "noise on the last draws only (2016)": PriTopLDA(2, epsilon=1.0, max_iter=3),
    "noise on running counts (2021)": CDPLDAPlus(2, epsilon=1.0, max_iter=3),
}
reports = {}
for name, model in models.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        reports[name] = audit(model, X, n_canaries=args.canaries, verbose=0)
    print(f"{name}\n{reports[name]}\n")

# %%
# One run with many canaries costs one fit, and shows less than the true epsilon: no bar reaches its proven mark. The
# bars of the published forms end where a single run can show no more.

AuditDisplay(reports=list(reports.values()), names=list(reports)).plot()
plt.show()
