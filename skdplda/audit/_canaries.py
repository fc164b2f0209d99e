"""Canaries: documents of a word of their own, planted in a corpus and looked for in what a fit releases."""

import warnings

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import clone
from tqdm import tqdm

from skdplda._checks import at_most
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.local import LocalRandomizer
from skdplda.models import LocalPrivateLDA
from skdplda.privacy import is_seed


def rows_of_words(words, tokens, n_words):
    """Return one document a word, of so many tokens of it."""
    words = np.asarray(words)
    counts = np.full(len(words), tokens, np.int32)
    return sp.csr_array((counts, (np.arange(len(words)), words)), shape=(len(words), n_words))


def below(X, documents):
    """Return the documents of the corpus, whose words come first, and others below them."""
    if X is None:
        return documents
    wider = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], documents.shape[1]))
    return sp.csr_array(sp.vstack([wider, documents], format="csr"))


class Canaries:
    """`n_canaries` documents whose presence is a coin, of `tokens` tokens, with words that no other document has.

    The words of the corpus X come first. A neighbour by add-remove lacks the document. A neighbour by replacement has a
    document of another word in its place: then each canary has two words.
    """

    def __init__(self, X, n_canaries, tokens, replace):
        self._X, self._n, self._tokens, self._replace = X, n_canaries, tokens, replace

    @property
    def n_words(self):
        """Words of the corpus and of the canaries."""
        return self._X.shape[1] + self._n * (1 + self._replace)

    def corpus(self, present):
        """Return the counts with the canaries that are present."""
        present = np.asarray(present, dtype=bool)
        words = np.arange(self._n) if self._replace else np.flatnonzero(present)
        words = words + self._n * ~present if self._replace else words
        return below(self._X, rows_of_words(self._X.shape[1] + words, self._tokens, self.n_words))

    def scores(self, model):
        """Return one number a canary, larger where its presence is more likely, given the released table."""
        released = np.asarray(topics_of(model).components_).sum(axis=0)[self._X.shape[1] :]
        return released[: self._n] - released[self._n :] if self._replace else released


def prepared(estimator):
    """Return a copy whose noise is fresh in every fit: equal seeds would make all fits one."""
    copy = clone(estimator)
    seeded = filter(is_seed, copy.get_params())
    return copy.set_params(**dict.fromkeys(seeded))


def claim_of(estimator, n_words):
    """Return what an estimator claims; some claims need the size of the vocabulary."""
    sized = isinstance(estimator, (LocalRandomizer, LocalPrivateLDA))
    return estimator.privacy_cost(n_words=n_words) if sized else estimator.privacy_cost()


def topics_of(model):
    """Return the fitted topic model: that of a search is its best."""
    return getattr(model, "best_estimator_", model)


def quiet_fit(estimator, X):
    """Fit a copy; the finding says more than the warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return topics_of(clone(estimator).fit(X))


def one_fit(estimator, canaries, present):
    """Fit on the corpus with the canaries that are present, and return their scores."""
    return canaries.scores(quiet_fit(estimator, canaries.corpus(present)))


def fits(estimator, canaries, patterns, *, n_jobs=None, verbose=0):
    """Return the scores of one fit for each pattern of presence."""
    jobs = (delayed(one_fit)(estimator, canaries, present) for present in patterns)
    found = Parallel(n_jobs=at_most(n_jobs), return_as="generator")(jobs)
    return np.stack(list(tqdm(found, total=len(patterns), disable=not verbose, desc="fits")))


def claim_to_dict(claim):
    """Return what a report says of a claim, as plain values."""
    words = {name: str(getattr(claim, name)) for name in ("unit", "adjacency", "status")}
    return {"claimed_epsilon": claim.epsilon, "delta": claim.delta, **words}
