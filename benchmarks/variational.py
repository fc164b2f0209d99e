"""Variational LDA beside scikit-learn's and gensim's: seconds a pass, held-out perplexity, and the cost of privacy.

One process, one thread, all fits in turn, so that what else the machine does falls on all alike; the seconds are CPU
time, the median of the repeats. Same corpus (UCI; a tenth is the test set), same mini-batches of expected size, same
number of passes and learning rate, both with the same priors and with each library's own. Perplexity is by document
completion, with one prior of topic proportions for all.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/variational.py --data FOLDER

The second table has the cost of privacy: the same rounds with and without noise, of all documents and in mini-batches.
"""

import argparse
import math
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from results import save

from skdplda import VIPSLDA
from skdplda.datasets import load_uci_bow
from skdplda.metrics import perplexity

OFFSET, DECAY, ALPHA, TOL = 10.0, 0.7, 0.1, 1e-3
ONLINE = {
    "learning_method": "online",
    "learning_offset": OFFSET,
    "learning_decay": DECAY,
    "mean_change_tol": TOL,
    "n_jobs": 1,
}
OWN = {"alpha": None, "eta": None}
SAME = {"alpha": ALPHA, "eta": 0.1}


def fit_skdplda(X, n_topics, passes, batch, alpha, eta, seed, epsilon=math.inf):
    """Return topics after so many passes on average."""
    rate = min(1.0, batch / X.shape[0])
    model = VIPSLDA(
        n_topics,
        epsilon=epsilon,
        sampling_rate=rate,
        max_iter=math.ceil(passes / rate),
        doc_topic_prior=alpha,
        topic_word_prior=eta,
        random_state=seed,
        **ONLINE,
    )
    return model.fit(X).topic_word_


def fit_scikit_learn(X, n_topics, passes, batch, alpha, eta, seed):
    """Return topics of LatentDirichletAllocation, online."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        n_topics,
        batch_size=batch,
        max_iter=passes,
        doc_topic_prior=alpha,
        topic_word_prior=eta,
        random_state=seed,
        **ONLINE,
    )
    components = model.fit(X).components_
    return components / components.sum(axis=1, keepdims=True)


def fit_gensim(corpus, n_topics, passes, batch, alpha, eta, seed, n_words):
    """Return topics of LdaModel, from a corpus in gensim's own form."""
    from gensim.models import LdaModel

    model = LdaModel(
        corpus,
        num_topics=n_topics,
        id2word={word: str(word) for word in range(n_words)},
        passes=passes,
        chunksize=batch,
        offset=OFFSET,
        decay=DECAY,
        gamma_threshold=TOL,
        alpha=alpha or "symmetric",
        eta=eta or "symmetric",
        eval_every=None,
        random_state=seed,
        dtype=np.float32,
    )
    return model.get_topics()


def timed(function, *arguments, **options):
    """Return the result and the CPU seconds."""
    begin = time.process_time()
    result = function(*arguments, **options)
    return result, time.process_time() - begin


def compare(name, X_train, X_test, n_topics, options):
    """Return one row for each library and priors."""
    corpus = [list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in X_train]
    n_words = X_train.shape[1]
    rows = []
    for priors, values in (("same", SAME), ("own", OWN)):
        for repeat in range(options.repeats):
            rest = n_topics, options.passes, options.batch, values["alpha"], values["eta"], repeat
            fits = [
                ("skdplda", fit_skdplda, (X_train, *rest)),
                ("scikit-learn", fit_scikit_learn, (X_train, *rest)),
                ("gensim", fit_gensim, (corpus, *rest, n_words)),
            ]
            for library, function, arguments in fits[repeat % 3 :] + fits[: repeat % 3]:
                topics, seconds = timed(function, *arguments)
                topics = topics.astype(float) + 1e-12  # gensim's single precision may give zeros
                topics /= topics.sum(axis=1, keepdims=True)
                rows.append(
                    {
                        "corpus": name,
                        "topics": n_topics,
                        "priors": priors,
                        "library": library,
                        "cpu_s_a_pass": seconds / options.passes,
                        "perplexity": perplexity(X_test, topics, doc_topic_prior=ALPHA),
                    }
                )
    return rows


def privacy_cost(name, X, n_topics, repeats):
    """Return the CPU seconds of rounds without and with noise: all documents, and mini-batches."""
    rows = []
    for method, rate, rounds in (("batch", 1.0, 20), ("online", 0.25, 20), ("online", 0.05, 20)):
        times = []
        for _ in range(repeats):
            pair = []
            for epsilon in (math.inf, 5.0):
                model = VIPSLDA(
                    n_topics,
                    epsilon=epsilon,
                    learning_method=method,
                    sampling_rate=rate,
                    max_iter=rounds,
                    n_jobs=1,
                )
                model.privacy_cost()  # calibration is cached, and does not grow with the corpus
                pair.append(timed(model.fit, X)[1])
            times.append(pair)
        exact, private = np.median(times, axis=0)
        ratio = np.median([pair[1] / pair[0] for pair in times])
        row = {"corpus": name, "topics": n_topics, "method": method, "sampling_rate": rate}
        rows.append(row | {"exact_cpu_s": exact, "private_cpu_s": private, "ratio": ratio})
    return rows


def main():
    """Print and save both tables."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SKDPLDA_DATA"))
    parser.add_argument("--topics", type=int, nargs="+", default=[50, 100])
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--corpora", nargs="+", default=["kos", "nips"])
    parser.add_argument("--quick", action="store_true", help="KOS, 50 topics, one repeat, two passes")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    if options.data is None:
        parser.error("give --data, or set SKDPLDA_DATA to the folder of the corpora")
    if options.quick:
        options.topics, options.passes, options.repeats, options.corpora = [50], 2, 1, ["kos"]
    warnings.simplefilter("ignore")
    rows, costs = [], []
    for name in options.corpora:
        X = load_uci_bow(Path(options.data) / f"docword.{name}.txt.gz").data
        order = np.random.default_rng(0).permutation(X.shape[0])
        n_test = X.shape[0] // 10
        for n_topics in options.topics:
            rows += compare(name, X[order[n_test:]], X[order[:n_test]], n_topics, options)
            costs += privacy_cost(name, X, n_topics, options.repeats)
            keys = ["corpus", "topics", "priors", "library"]
            table = pd.DataFrame(rows).groupby(keys, sort=False).median().reset_index()
            ours = table[table.library == "skdplda"].set_index(keys[:3]).cpu_s_a_pass
            table["times_ours"] = [
                row.cpu_s_a_pass / ours[row.corpus, row.topics, row.priors] for row in table.itertuples()
            ]
            print(table.to_string(index=False, float_format="{:.3f}".format), flush=True)
    cost = pd.DataFrame(costs)
    print(cost.to_string(index=False, float_format="{:.3f}".format))
    save(table.round(4), options.output / "variational.csv", [compare], options.corpora)
    save(cost.round(4), options.output / "variational_private_cost.csv", [privacy_cost], options.corpora)


if __name__ == "__main__":
    main()
