"""Shadow models: the same learner on many random halves, each applied to every document."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from joblib import Parallel, delayed
from joblib import hash as digest_of
from sklearn.base import clone
from tqdm import tqdm

from skdplda._checks import at_most, exact_counts, is_integer
from skdplda._files import PRIVATE, whole_file
from skdplda._types import Estimator, Function, Matrix, PathLike, Sequence
from skdplda.attacks._statistics import check_names, check_topic_word, document_statistics
from skdplda.privacy import is_seed


@dataclass(frozen=True, eq=False)
class ShadowModels:
    """What the shadow models said.

    Parameters
    ----------
    members : ndarray of bool of shape (n_models, n_documents)
        Which documents each was trained on.
    values : ndarray of shape (n_models, n_documents, n_statistics)
        The statistics of all documents under each.
    names : tuple
        The statistics.
    proportions : str, default="fold-in"
        As in `document_statistics`.
    """

    members: np.ndarray
    values: np.ndarray
    names: tuple
    proportions: str = "fold-in"


def train_shadow_models(
    estimator: Estimator,
    X: Matrix,
    n_models: int = 128,
    *,
    statistics: Sequence[str | Function] = ("zeta",),
    proportions: Literal["fold-in", "maximum"] = "fold-in",
    sampling: float = 0.5,
    topic_word: Function | None = None,
    directory: PathLike | None = None,
    n_jobs: int | None = None,
    random_state: int | None = None,
    verbose: int = 0,
) -> ShadowModels:
    """Train a learner on random parts of the documents and keep the statistics of every document.

    Models come in pairs that share the documents out between them, so that each document is in exactly half of them;
    with another share than 0.5 each part is drawn by itself. The tables are not kept.

    Parameters
    ----------
    estimator : estimator
        Anything with `fit(X)` and, fitted, `topic_word_` or `components_`, such as scikit-learn's
        LatentDirichletAllocation. If its `random_state` is an integer, each model gets another one, derived from
        `random_state` below; None stays None.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        The population: word counts in the vocabulary of the target.
    n_models : int, default=128
        At least 2; the online attack needs 4.
    statistics, proportions : as in `document_statistics`
        What is kept of each document.
    sampling : float, default=0.5
        Share of the documents in each part.
    topic_word : callable, default=None
        Returns the topics, of shape (n_components, n_words), of a fitted estimator: for pipelines that choose words.
        Words left out have a column of zeros.
    directory : path-like, default=None
        Keeps the result of each model in a file, and takes those that are there, so that an interrupted run goes on.
        Files of other data or settings are refused. They hold values of private documents.
    n_jobs : int, default=None
        Models trained at a time, as in joblib.
    random_state : int, default=None
        Of the parts. An integer is needed to go on from a directory.
    verbose : int, default=0
        A progress bar if positive.

    Returns
    -------
    shadows : ShadowModels
        For `likelihood_ratio_attack`.

    Raises
    ------
    ValueError
        If there are fewer than 2 models or documents, or the directory belongs to another run.

    Examples
    --------
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> from skdplda.attacks import train_shadow_models
    >>> from skdplda.datasets import make_lda_corpus
    >>> X = make_lda_corpus(21, 30, 2, random_state=0).data
    >>> shadows = train_shadow_models(LatentDirichletAllocation(2, max_iter=2), X, 4, random_state=0)
    >>> shadows.members.sum(axis=0).tolist() == [2] * 21, shadows.values.shape
    (True, (4, 21, 1))
    """
    names = check_names(statistics)
    X = exact_counts(X)
    if not (is_integer(n_models) and n_models >= 2):
        raise ValueError(f"n_models must be an integer of at least 2, else nothing can be compared; got {n_models!r}.")
    if X.shape[0] < 2:
        raise ValueError(f"X must hold at least 2 documents, members and others; got {X.shape[0]}.")
    if not 0 < sampling < 1:
        raise ValueError(f"sampling must be between 0 and 1; got {sampling!r}.")
    check_seed(random_state, directory)
    members = random_parts(n_models, X.shape[0], sampling, np.random.default_rng(random_state))
    seeds = np.random.SeedSequence(random_state).generate_state(n_models + 1)[1:]
    store = None
    if directory is not None:
        settings = (parameters_of(estimator), names, proportions, sampling, random_state)
        store = Store(directory, (settings, X.data, X.indices, X.indptr, X.shape))
    jobs = (
        delayed(one_model)(estimator, X, members[i], int(seeds[i] >> 1), names, proportions, topic_word, store, i)
        for i in range(n_models)
    )
    found = Parallel(n_jobs=at_most(n_jobs), return_as="generator")(jobs)
    values = np.stack(list(tqdm(found, total=n_models, disable=not verbose, desc="shadow models")))
    return ShadowModels(members, values, names, proportions)


def check_seed(random_state, directory=None):
    """Refuse what is no seed; a directory needs one, so that the run can go on."""
    if random_state is not None and not (is_integer(random_state) and random_state >= 0):
        raise ValueError(f"random_state must be None or an integer of at least 0; got {random_state!r}.")
    if directory is not None and random_state is None:
        raise ValueError("random_state must be an integer where a directory is given, so that the run can go on.")


def parameters_of(estimator):
    """Return all that distinguishes one estimator from another, of parts too: their representation may be cut short."""
    found = [repr(estimator)]
    for name, value in sorted(estimator.get_params().items()):
        by_name = callable(value) or hasattr(value, "get_params") or name == "steps"
        found.append((name, repr(value) if by_name else digest_of(value)))
    return found


def random_parts(n_models, n_documents, sampling, rng):
    """Return the membership of documents in models: for halves, pairs of models share the documents out."""
    members = np.zeros((n_models, n_documents), dtype=bool)
    for model in range(n_models):
        if sampling == 0.5 and model % 2:
            members[model] = ~members[model - 1]
            continue
        size = min(max(int(sampling * n_documents), 1), n_documents - 1)
        members[model, rng.permutation(n_documents)[:size]] = True
    return members


def one_model(estimator, X, members, seed, names, proportions, topic_word, store, number):
    """Train one model and return the statistics of all documents."""
    if store is not None and (values := store.load(number)) is not None:
        return values
    table = target_topics(estimator, X[members], seed, topic_word)
    values = document_statistics(table, X, names, proportions=proportions, n_jobs=1)
    if store is not None:
        store.save(number, values)
    return values


def target_topics(estimator, documents, seed, topic_word):
    """Fit a copy of the estimator and return the topics that it releases."""
    target = clone(estimator)
    reseed(target, seed)
    target.fit(documents)
    return released_topics(target) if topic_word is None else topic_word(target)


def reseed(model, seed):
    """Give each integer `random_state` of an estimator and its parts a value of its own."""
    seeded = [name for name, value in model.get_params().items() if is_seed(name) and value is not None]
    states = np.random.SeedSequence(seed).generate_state(len(seeded))
    model.set_params(**{name: int(state >> 1) for name, state in zip(seeded, states, strict=True)})


def released_topics(model: Estimator) -> np.ndarray:
    """Return the topic table, rows summing to 1, of a fitted model; or of the table itself.

    A model has `topic_word_`, `components_` or, as gensim's, `get_topics()`, else it is a TypeError.
    """
    model = model[-1] if hasattr(model, "steps") else model
    if isinstance(model, np.ndarray):
        return check_topic_word(model)
    for name in ("topic_word_", "components_", "get_topics"):
        if hasattr(model, name):
            table = getattr(model, name)
            table = np.asarray(table() if callable(table) else table, dtype=np.float64)
            return table / table.sum(axis=1, keepdims=True)
    raise TypeError(f"{type(model).__name__} has no topic_word_ or components_ after fit: it is no topic model.")


class Store:
    """Results of a run in a directory, one file a model, with the identity of the run."""

    def __init__(self, directory, identity):
        self.folder, self.identity = Path(directory), digest_of(identity)
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, number):
        """Return the file of a model."""
        return self.folder / f"shadow_{number:05d}.npz"

    def load(self, number):
        """Return the values of a model; None if they are not there."""
        if not self.path(number).exists():
            return None
        with np.load(self.path(number), allow_pickle=False) as saved:
            if str(saved["identity"]) != self.identity:
                raise ValueError(
                    f"directory: {os.fspath(self.path(number))!r} belongs to a run with other data or settings; give"
                    " another directory."
                )
            return saved["values"]

    def save(self, number, values):
        """Write the values of a model, all or nothing; they are as private as the documents."""
        with whole_file(self.path(number), PRIVATE) as file:
            np.savez(file, values=values, identity=np.array(self.identity))
