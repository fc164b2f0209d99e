"""Whatever public takes a matrix of counts looks at its structure first: the list is read from the package."""

import importlib
import inspect
import math
import os
import pkgutil
import re
import subprocess
import sys
import warnings
from copy import deepcopy
from tempfile import TemporaryDirectory

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skdplda
from skdplda import VIPSLDA, DPVocabularySelector, PrivateCGSLDA, ReleasedTopicModel, release
from skdplda.attacks import train_shadow_models
from skdplda.local import BitChannel, LocalRandomizer
from skdplda.model_selection import PrivateSearchCV
from skdplda.models import EmbeddingTopics
from skdplda.releases import ReleasedClusterModel

N, V, K = 40, 20, 3
WORDS = [f"w{word}" for word in range(V)]
# Parameters that take a matrix of counts. `corpus` and `X` of a few take texts or arrays instead: EXCUSED.
NAMES = ("X", "X_test", "X_public", "counts", "corpus", "chunks", "vectors")
EXCUSED = {
    "BaseClusterModel": "has no fit of its own",
    "BaseRoundsModel": "has no fit of its own",
    "BaseTopicModel": "has no fit of its own",
    "EStep": "a protocol",
    "ReconstructedCounts": "a result, with an array",
    "ReleasedClusterModel.fit": "looks at nothing",
    "PrivatePipeline": "its steps look",
    "ReleasedTopicModel.fit": "looks at nothing",
    "SemanticUnitVectorizer": "takes texts",
    "TextEmbedder": "takes texts",
    "PublicPrior": "takes word vectors",
    "PublishedItemFrequencySelector.inverse_transform": "that of DPVocabularySelector; not all words are selected here",
    "PublishedVIPSLDA.partial_fit": "is not there",
    "LabelCounts": "a result, with a series",
    "TopicCounts": "a result, with a data frame",
    "WordPrior": "is made by PublicPrior, of arrays",
    "WordVectorEmbedder": "takes texts",
    "load_gensim_corpus": "takes lists of pairs",
    "poisoning_attack": "takes arrays, and counts one of them",
    "word_similarity": "takes word vectors, an array",
}


COUNTS = sp.csr_array(np.random.default_rng(0).poisson(0.5, size=(N, V)).astype(np.int32))


def matrix():
    return COUNTS.copy()


def unsorted():
    """Return the same matrix with its entries backwards, and in halves."""
    X = matrix().tocoo()
    rows, columns = (np.tile(axis, 2)[::-1] for axis in X.coords)
    order = np.argsort(rows, kind="stable")
    pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=N))])
    data = np.concatenate([X.data - 1, X.data**0])[::-1]
    return sp.csr_array((data[order], columns[order], pointers), shape=X.shape)


DAMAGE = {  # by format, then by what is done to it
    "csr": {
        "index beyond the columns": lambda X: X.indices.__setitem__(3, V + 5),
        "index far beyond the columns": lambda X: X.indices.__setitem__(3, 200_000_000),
        "negative index": lambda X: X.indices.__setitem__(3, -5),
        "swapped pointers": lambda X: X.indptr.__setitem__([4, 5], X.indptr[[5, 4]]),
        "pointer beyond the entries": lambda X: X.indptr.__setitem__(5, 2**31 - 1),
        "last pointer beyond the entries": lambda X: X.indptr.__setitem__(-1, 2**20),
        "first pointer not 0": lambda X: X.indptr.__setitem__(0, 1),
        "negative pointer": lambda X: X.indptr.__setitem__(5, -7),
        "no last entries": lambda X: X.indptr.__setitem__(-1, 0),
        "shorter data": lambda X: setattr(X, "data", X.data[:-5].copy()),
        "shorter indices": lambda X: setattr(X, "indices", X.indices[:-5].copy()),
        "shorter pointers": lambda X: setattr(X, "indptr", X.indptr[:-1].copy()),
        "wide index": lambda X: setattr(X, "indices", X.indices + (np.arange(X.nnz) == 3) * 2**40),
        "indices that are floats": lambda X: setattr(X, "indices", X.indices.astype(float)),
    },
    "csc": {
        "row beyond the rows": lambda X: X.indices.__setitem__(3, 200_000_000),
        "negative row": lambda X: X.indices.__setitem__(3, -5),
        "pointer beyond the entries": lambda X: X.indptr.__setitem__(5, 2**31 - 1),
    },
    "bsr": {
        "block beyond the columns": lambda X: X.indices.__setitem__(3, 200_000_000),
        "pointer beyond the blocks": lambda X: X.indptr.__setitem__(5, 2**31 - 1),
    },
    "coo": {
        "column beyond the columns": lambda X: X.coords[1].__setitem__(3, 200_000_000),
        "negative row": lambda X: X.coords[0].__setitem__(3, -5),
        "shorter data": lambda X: setattr(X, "data", X.data[:-5].copy()),
    },
    "dok": {"key beyond the rows": lambda X: X._dict.update({(200_000_000, 3): 1})},
    "lil": {
        "column beyond the columns": lambda X: X.rows.__setitem__(3, [200_000_000]) or X.data.__setitem__(3, [1]),
        "more columns than counts": lambda X: X.rows.__setitem__(3, [1, 2, 3, 4, 5, 6, 7]),
    },
}


SETTINGS = {  # with which alone an estimator has a method
    "VIPSLDA.partial_fit": {"learning_method": "online"},
}


def public():
    """Yield (name, callable, class of its object or None) of all that is public and has parameters for matrices."""
    modules = [module.name for module in pkgutil.iter_modules(skdplda.__path__) if not module.name.startswith("_")]
    seen = set()
    for module in modules:
        package = importlib.import_module(f"skdplda.{module}")
        for name in getattr(package, "__all__", ()):
            thing = getattr(package, name)
            if id(thing) in seen or not callable(thing):
                continue
            seen.add(id(thing))
            yield name, thing, None
            if inspect.isclass(thing):
                for method in dir(thing):
                    if not method.startswith(("_", "set_", "get_")) and callable(getattr(thing, method)):
                        bound = inspect.ismethod(getattr(thing, method))  # a class method
                        yield f"{name}.{method}", getattr(thing, method), None if bound else thing


def parameters(function):
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def cases():
    """Yield (name, parameter, function of a matrix that calls it)."""
    made = {}
    for name, function, kind in public():
        if name in EXCUSED or name.partition(".")[0] in EXCUSED:
            continue
        for parameter in parameters(function):
            if parameter in NAMES and f"{name} {parameter}" not in EXCUSED:
                if kind is not None and kind not in made:
                    made[kind] = instance(kind)
                owner = kind and made[kind]
                if name in SETTINGS:
                    owner = clone(owner).set_params(**SETTINGS[name])
                yield name, parameter, call(name, function, owner, parameter)


def instance(kind):
    """Return a fitted object of a public class."""
    if kind is ReleasedTopicModel:
        return release(VIPSLDA(K, max_iter=2).fit(matrix()), feature_names=WORDS)
    if kind is ReleasedClusterModel:
        return release(EmbeddingTopics(K, max_iter=2).fit(matrix().toarray(), counts=matrix()), feature_names=WORDS)
    if kind is PrivateSearchCV:
        search = PrivateSearchCV(VIPSLDA(K, max_iter=2), {"n_components": [2, 3]}, epsilon=math.inf, mean_trials=1.5)
        return search.fit(matrix())
    if issubclass(kind, BaseEstimator):
        small = {"n_components": K, "max_iter": 2, "epsilon": 100.0}
        names = inspect.signature(kind).parameters
        made = kind(**{name: value for name, value in small.items() if name in names})
        counts = {"counts": matrix()} if kind is EmbeddingTopics else {}
        return made.fit(matrix(), **counts)
    return None


def sound():
    """Return what sound calls take, by the names of parameters."""
    return {
        "X": matrix(),
        "X_test": matrix(),
        "corpus": matrix(),
        "bins": [0, 20, 40],
        "classes": [0, 1],
        "channel": BitChannel(1.0, "symmetric", n_words=V),
        "doc_topic": np.full((N, K), 1 / K),
        "epsilon": 50.0,
        "epsilons": [5.0],
        "classifier": make_pipeline(VIPSLDA(K, max_iter=1), LogisticRegression()),
        "members": np.arange(N) % 2 == 0,
        "randomizer": LocalRandomizer(),
        "reference": matrix(),
        "released": np.arange(V) < 9,
        "selected": np.arange(V) < 9,
        "shadows": train_shadow_models(PrivateCGSLDA(K, max_iter=1), matrix(), n_models=4, random_state=0),
        "start": np.arange(N + 1),
        "timestamps": np.arange(N),
        "topic_word": np.full((K, V), 1 / V),
        "topics": [[0, 1, 2], [3, 4, 5]],
        "vocabulary": np.arange(V) < 9,
        "words": matrix(),
        "y": np.arange(N) % 2,
        "model": VIPSLDA(K, max_iter=1).fit(matrix()),
        "estimator": PrivateCGSLDA(K, max_iter=1),
        "vectors": np.ones((N, 4)),
    }


def call(name, function, owner, parameter):
    """Return a function that calls a public one with sound arguments and one matrix in the place of `parameter`."""
    values = dict(SOUND)
    if name == "make_reports":
        values["vocabulary"] = WORDS
    if name.startswith("VocabularyDisplay"):
        values["estimator"] = DPVocabularySelector()
    few = {"n_models": 4, "n_shadows": 2, "n_canaries": 100, "n_fits": 8, "n_repeats": 1, "verbose": 0}
    if name == "audit":
        few["method"] = "repeated"
    asked = inspect.signature(function).parameters
    needed = {key for key, spec in asked.items() if spec.default is spec.empty and spec.kind < 4 and spec.kind != 2}
    needed -= {parameter, "self", "attacks", "options", "path"}
    given = {key: values[key] for key in needed} | {key: value for key, value in few.items() if key in asked}
    receiver = [] if owner is None else [deepcopy(owner)]

    def use(X, folder):
        path = {"path": f"{folder}/{len(os.listdir(folder))}"} if "path" in asked else {}
        result = function(*receiver, **given, **path, **{parameter: [X] if parameter == "chunks" else X})
        if inspect.isgenerator(result):
            list(result)

    return use


def damaged():
    """Yield (what was done to it, matrix)."""
    for form, changes in DAMAGE.items():
        for what, change in changes.items():
            X = matrix().asformat(form)
            change(X)
            yield f"{form}: {what}", X


def test_whatever_takes_a_matrix_looks_at_its_structure():
    """3,000 calls in a process of their own; where it ends, the last line of its output is the call that ended it."""
    command = [sys.executable, __file__]
    found = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "MPLBACKEND": "Agg"}, timeout=600
    )
    lines = found.stdout.splitlines()
    assert found.returncode == 0, (lines[-1:], found.stderr[-2000:])
    calls = [line.split("; ", 3) for line in lines]
    wrong = []
    for name, parameter, what, result in calls:
        sound = what in ("sound", "unsorted")
        if (result != "accepted") if sound else not re.match("ValueError: .*damaged sparse matrix", result):
            wrong.append((name, parameter, what, result))
    assert not wrong
    assert len(calls) == len({(name, parameter) for name, parameter, *_ in calls}) * (
        2 + sum(map(len, DAMAGE.values()))
    )


def test_what_is_excused_is_there():
    names = {name for name, _, _ in public()}
    assert {excuse.partition(" ")[0] for excuse in EXCUSED} <= names
    assert any(name == "DPVocabularySelector.transform" for name in names)  # the walk goes into classes


if __name__ == "__main__":  # in a process of its own, which may end: see the test
    warnings.simplefilter("ignore")
    SOUND = sound()
    done = int(sys.argv[1]) if len(sys.argv) > 1 else 0  # calls of an earlier run
    matrices = [*damaged(), ("sound", matrix()), ("unsorted", unsorted())]  # fits that change an estimator come last
    with TemporaryDirectory() as folder:
        for name, parameter, use in cases():
            for what, X in matrices:
                done -= 1
                if done >= 0:
                    continue
                sys.stdout.write(f"{name}; {parameter}; {what}; ")
                sys.stdout.flush()
                try:
                    use(X, folder)
                    result = "accepted"
                except Exception as error:
                    result = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
                sys.stdout.write(f"{result}\n")
