"""
Quickstart
==========

Topics of private texts: what they will cost, how to fit them, what to look at, and what may be published. The texts are
made up from five lists of words.
"""

import argparse
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from skdplda import VIPSLDA, load_released, release
from skdplda.plots import TopWordsDisplay

parser = argparse.ArgumentParser(description="Fit, look, publish.")
parser.add_argument("--documents", type=int, default=10_000, help="made-up texts (default: 10000)")
args, _ = parser.parse_known_args()  # a notebook has arguments of its own

LISTS = [
    "oven flour butter sugar salt onion garlic pepper rice soup",
    "sail harbour wave tide anchor island storm captain deck fish",
    "violin concert piano choir drum melody opera stage song band",
    "seed garden soil rose tree leaf spade apple autumn bee",
    "train ticket station luggage hotel border map road bridge bus",
]
rng = np.random.default_rng(0)


def text():
    """Make up a text about one or two subjects."""
    subjects = rng.choice(len(LISTS), size=rng.integers(1, 3), replace=False)
    words = " ".join(LISTS[subject] for subject in subjects).split()
    return " ".join(rng.choice(words, size=20))


texts = [text() for _ in range(args.documents)]
print(texts[0])

# %%
# The vocabulary must not come from the texts: which words occur in them is private too. Here it is a list that
# everybody may know. For a private selection of words see :ref:`sphx_glr_auto_examples_fdptm_end_to_end.py`.

vocabulary = sorted(" ".join(LISTS).split())
pipeline = make_pipeline(
    CountVectorizer(vocabulary=vocabulary),
    VIPSLDA(n_components=5, epsilon=1.0, delta=1e-6),
)

# %%
# The price is known before any text is read: the privacy loss of the whole fit, and the noise that each count gets.

print(repr(pipeline[-1].privacy_cost()))
print(f"noise in a cell of the model: {pipeline[-1].noise_deviation()['in_model']:.1f} words, of texts of 20 words")

# %%
# Fit and look. Of the same texts another fit would find the same topics in another order: the noise is fresh.

pipeline.fit(texts)
print(pipeline[-1].top_words(6, vocabulary).to_string())
TopWordsDisplay.from_estimator(pipeline[-1], feature_names=vocabulary, n_words=8, n_columns=3)

# %%
# New texts get proportions of topics. Those of a private text are that text's data, and not for publication.

print(pipeline.transform(["an apple tree in the autumn garden", "garlic soup on a train to the harbour"]).round(2))

# %%
# What may be published is one file: topics, words, and the statement of what is guaranteed. A pickle of the pipeline
# may hold more than that.

path = Path(tempfile.mkdtemp()) / "topics.zip"
release(pipeline).save(path)
print(load_released(path).privacy_guarantee_)
plt.show()
