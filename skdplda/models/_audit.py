"""What attacks and audits by the curator need and a fit does not release."""

from typing import Any

import numpy as np

from skdplda._types import Matrix
from skdplda._validation import check_counts, check_prior, effective_n_jobs
from skdplda.models import _cgs, _vips
from skdplda.models._cgs import LIVE_SWEEPS, PrivateCGSLDA
from skdplda.models._hdp import HDPLDA
from skdplda.models._hdp_sweeps import tokens_of, trace_of
from skdplda.models._live import fit_live
from skdplda.models._rules import initial_table, word_weights
from skdplda.models._vips import VIPSLDA
from skdplda.privacy import Randomness

__all__ = ["audit_trace", "audit_word_weights"]


def audit_trace(estimator: Any, X: Matrix) -> tuple[Any, np.ndarray]:
    """Sample the trace that a fit would release, and return it with the words that an attack is to find.

    For audits by the curator: the words are the data. No ledger is charged, since nothing is released.

    Parameters
    ----------
    estimator : HDPLDA or PrivateCGSLDA
        Of either form, or with `mechanism` one of "inherent" (plain collapsed Gibbs sampling), "laplace-first" and
        "laplace-every". The sound forms of `PrivateCGSLDA` release no topics. It is not changed.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Word counts.

    Returns
    -------
    trace : TopicTrace
        Topics and tables of all sweeps.
    words : ndarray of shape (n_tokens,), int32
        The word of each token, in the trace's order.

    Raises
    ------
    ValueError
        For counts that are none, or a mechanism without such a trace.

    Examples
    --------
    >>> from skdplda import HDPLDA
    >>> from skdplda.attacks import TopicTraceAttack
    >>> from skdplda.datasets import make_lda_corpus
    >>> from skdplda.models import audit_trace
    >>> X = make_lda_corpus(100, 40, 3, random_state=0).data
    >>> trace, words = audit_trace(HDPLDA(3, epsilon=5.0), X)
    >>> TopicTraceAttack.of_trace(trace).success(words)["first"] < 0.5
    True
    """
    mechanisms = ("inherent", "laplace-first", "laplace-every")
    live = isinstance(estimator, PrivateCGSLDA) and estimator.mechanism in mechanisms
    if not live and not isinstance(estimator, HDPLDA):
        raise ValueError(
            f"estimator must be HDPLDA, or PrivateCGSLDA with mechanism in {mechanisms}; got {estimator!r}."
        )
    estimator._validate_params()
    X = check_counts(type(estimator)(), X, reset=True)
    randomness = Randomness(estimator.random_state)
    if isinstance(estimator, HDPLDA):
        plan = estimator._plan()
        if estimator.table == "live":
            return estimator._run(X, plan, randomness, True)[1], tokens_of(X)[1]
        sampler = estimator._sampler(X, plan, randomness, effective_n_jobs(estimator.n_jobs))
        return sampler.run(True)[1], sampler.words
    tables, topics = [], []

    def observe(table, drawn):
        tables.append(table)
        topics.append(drawn)

    plain = estimator.mechanism == "inherent"
    fit = fit_live(
        X,
        estimator.n_components,
        mechanism="hybrid" if plain else estimator.mechanism,  # without noise and clip: the sampler, unmonitored
        epsilon=np.inf if plain else estimator.epsilon,
        doc_topic_prior=estimator._doc_topic_prior(),
        topic_word_prior=check_prior("topic_word_prior", estimator.topic_word_prior, 0.01),
        max_iter=estimator.max_iter or LIVE_SWEEPS,
        seed=randomness.seed,
        observer=observe,
    )
    starts, words = tokens_of(X)
    return trace_of(topics, [*tables, fit.word_topic.T], starts), words


def audit_word_weights(estimator: Any, n_words: int) -> np.ndarray:
    """Return what the first round of a fit of documents divides its release by, word by word.

    The weights are public and follow from the first table. An audit multiplies by them to see the release itself.

    Parameters
    ----------
    estimator : estimator
        With noise, and an integer for `random_state`. It is not changed.
    n_words : int
        Number of words.

    Returns
    -------
    weights : ndarray of shape (n_words,)
        Ones, but for `PrivateCGSLDA` with Gaussian noise, and `VIPSLDA` in batch form without `max_norm`.
    """
    if np.isinf(estimator.epsilon):
        return np.ones(n_words)
    if isinstance(estimator, PrivateCGSLDA) and estimator.mechanism == "gaussian":
        evenness = _cgs.EVENNESS
    elif isinstance(estimator, VIPSLDA) and estimator.learning_method == "batch" and estimator.max_norm is None:
        evenness = _vips.EVENNESS
    else:
        return np.ones(n_words)
    key = Randomness(estimator.random_state).key
    return word_weights(initial_table((n_words, estimator.n_components), key, evenness)).astype(np.float64)
