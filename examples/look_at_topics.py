"""
Look at topics
==============

What the displays show of one private fit, and what each of them may be used for. All of them read released values, so
that the pictures may be published like the model; where a display needs documents, they must be public.
"""

import argparse
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt

from skdplda import PrivacyLeakWarning, PrivateCGSLDA
from skdplda.datasets import make_news_corpus
from skdplda.plots import ConvergenceDisplay, MonitorDisplay, TopicDistanceDisplay, TopWordsDisplay
from skdplda.published import InherentPrivacyLDA
from skdplda.reports import report

parser = argparse.ArgumentParser(description="A tour of the displays.")
parser.add_argument("--documents", type=int, default=6000, help="synthetic documents, of real words (default: 6000)")
args, _ = parser.parse_known_args()  # a notebook has arguments of its own

corpus = make_news_corpus(args.documents + 500, 150, 6, random_state=0)
public, X = corpus.data[:500], corpus.data[500:]
words = corpus.feature_names

reports = []  # what each round releases
model = PrivateCGSLDA(6, epsilon=3.0, delta=1e-6, callback=reports.append).fit(X)

# %%
# Top words of all topics, on one scale. Topics keep their numbers everywhere, and may have names.

TopWordsDisplay.from_estimator(model, feature_names=words, n_words=6, n_columns=3)

# %%
# Which topics are alike? A pair of dark cells beside the diagonal would be one topic found twice.

TopicDistanceDisplay.from_estimator(model, feature_names=words)

# %%
# The same as a map; the area of a circle is the topic's share of the released counts.

TopicDistanceDisplay.from_estimator(model, feature_names=words, kind="map")

# %%
# Have the topics settled? Judged by public documents after each round, from the tables that the rounds released. The
# fitted model averages the last rounds, and so has less noise than any of them.

ConvergenceDisplay.from_reports(reports, public=public, estimator=model)

# %%
# The monitor of the published sampler without noise. It measures one run and bounds nothing: the curve that its paper
# calls epsilon lies far below the exact loss of single draws.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", PrivacyLeakWarning)  # it is not private, and the documents are synthetic
    monitored = InherentPrivacyLDA(6, max_iter=40).fit(X[:1000])
MonitorDisplay.from_estimator(monitored)

# %%
# All of a model as one page, of released values only.

path = report(model, Path(tempfile.mkdtemp()) / "topics.html", feature_names=words)
print(f"{path.name}: {path.stat().st_size:,} bytes")
plt.show()
