"""Live collapsed Gibbs sampling: the inherent-privacy monitor and the published Laplace baselines.

Nothing here is proven: `fit_live` runs the algorithms as their papers print them.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from skdplda._kernels._sequential import laplace_last_sweep, sequential_sweep, sequential_sweep_monitored

__all__ = ["MECHANISMS", "LiveFit", "fit_live"]

MECHANISMS = ("inherent", "laplace-first", "laplace-every", "laplace-last")


@dataclass(frozen=True, eq=False)
class LiveFit:
    """Result of `fit_live`.

    Parameters
    ----------
    word_topic : ndarray of shape (n_components, n_words)
        Topic-word counts after the last sweep. Noisy, and possibly negative, for "laplace-first",
        "laplace-every" and "hybrid"; exact for the other mechanisms, so that they must not be released.
    monitor : dict of str to ndarray of shape (max_iter,), or None
        For "inherent", the fields of `InherentPrivacyHistory`.
    n_iter : int
        Number of sweeps.
    """

    word_topic: np.ndarray
    monitor: dict | None
    n_iter: int


class _LiveState:
    """The hidden state of the sampler, in the order of the kernels' arguments."""

    def __init__(self, X, n_components, doc_topic_prior, topic_word_prior, rng):
        n_docs, n_words = X.shape
        starts = np.concatenate([[0], np.cumsum(X.data, dtype=np.int64)])
        self.doc_ptr = starts[X.indptr]
        self.words = np.repeat(X.indices, X.data).astype(np.int32)
        self.topics = rng.integers(n_components, size=len(self.words), dtype=np.uint16)
        self.doc_topic = np.zeros((n_docs, n_components))
        docs = np.repeat(np.arange(n_docs), np.diff(self.doc_ptr))
        np.add.at(self.doc_topic, (docs, self.topics), 1.0)
        self.word_topic = np.zeros((n_words, n_components))
        np.add.at(self.word_topic, (self.words, self.topics), 1.0)
        self.topic_total = self.word_topic.sum(axis=0)
        self.alpha = np.full(n_components, doc_topic_prior, dtype=np.float64)
        self.beta = float(topic_word_prior)

    def add_noise(self, scale, rng, documents=True):
        """Add Laplace noise to the count matrices, for good."""
        if documents:
            self.doc_topic += rng.laplace(scale=scale, size=self.doc_topic.shape)
        self.word_topic += rng.laplace(scale=scale, size=self.word_topic.shape)
        self.topic_total[:] = self.word_topic.sum(axis=0)

    def sweep(self, kernel, seed, number, *rest):
        """Run one sweep of a kernel."""
        return kernel(
            self.doc_ptr,
            self.words,
            self.topics,
            self.doc_topic,
            self.word_topic,
            self.topic_total,
            self.alpha,
            self.beta,
            seed,
            number,
            *rest,
        )


def fit_live(
    X,
    n_components,
    *,
    mechanism,
    epsilon=np.inf,
    doc_topic_prior,
    topic_word_prior,
    max_iter,
    seed=None,
    n_max=None,
    callback=None,
    count_clip=np.inf,
    observer=None,
):
    """Fit LDA by sequential collapsed Gibbs sampling with a published form of privacy.

    Parameters
    ----------
    X : sparse array or matrix of shape (n_documents, n_words)
        Non-negative integer counts.
    n_components : int
        Number of topics, below 65,536.
    mechanism : {"inherent", "laplace-first", "laplace-every", "laplace-last", "hybrid"}
        * "inherent": no noise, the monitor runs beside the sampler [1]_. `epsilon` is not used.
        * "laplace-first": Laplace(1 / epsilon) noise is added to both count matrices before the first
          sweep, and stays in the running counts. Called CDP-LDA in [2]_.
        * "laplace-every": the same before each sweep, fresh noise on top of the old. CDP-LDA+ in [2]_.
        * "laplace-last": after `max_iter` plain sweeps, one more whose weights have Laplace(2 / epsilon)
          noise, one pair of values a token [3]_. The counts stay exact.
        * "hybrid": Laplace(2 / epsilon) noise is added to the topic-word counts before each sweep, on top of the
          old; a count weighs as `count_clip` at most. HDP-LDA in [2]_, Algorithm 1.
    epsilon : float, default=inf
        The paper's parameter, which no proof supports: per count matrix and per noise addition for
        "laplace-first" and "laplace-every", per draw for "laplace-last", per sweep's noise for "hybrid". `inf` means
        no noise.
    doc_topic_prior : float or array-like of shape (n_components,)
        Called alpha in [1]_.
    topic_word_prior : float
        Called beta in [1]_.
    max_iter : int
        Number of sweeps, without the extra one of "laplace-last".
    seed : int or None, default=None
        `None` seeds the sampler and the noise from the operating system's entropy; an integer makes the
        fit reproducible. The noise is the papers' continuous Laplace noise from NumPy's generator, whose
        low-order bits leak; it is kept because the published form is what is asked for.
    n_max : int or None, default=None
        Number of tokens removed at the monitor's document level. `None` takes the longest document.
    callback : callable, default=None
        Called with the number of sweeps done, after each sweep.
    count_clip : float, default=inf
        For "hybrid": called C in [2]_.
    observer : callable, default=None
        Called after each sweep with what its adversary sees: the topic-word table (n_words, n_components) at the
        sweep's start, after noise, and the topics of the tokens, in the order of documents and words. Copies.

    Returns
    -------
    fit : LiveFit
        The topic-word counts and, for "inherent", the monitor's history.

    Raises
    ------
    ValueError
        If `mechanism`, `epsilon`, `n_components`, `n_max` or `seed` is outside what is stated above.
    TypeError
        If the counts are not integers.

    Notes
    -----
    Negative noisy counts stay in the running counts; each counts as 0 when a weight is computed.

    References
    ----------
    .. [1] Zhao, Ren, Yang and Yang (2019). On Privacy Protection of Latent Dirichlet Allocation Model
       Training. IJCAI. Algorithms 1 and 2.
    .. [2] Zhao, Ren, Yang, Han, Zhao and Yang (2021). Latent Dirichlet Allocation Model Training With
       Differential Privacy. IEEE TIFS 16. Section on experiments.
    .. [3] Zhu, Li, Zhou, Xiong and Yuan (2016). Privacy-preserving topic model for tagging recommender
       systems. Knowledge and Information Systems 46(1).

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> X = sp.csr_array([[2, 1, 0], [0, 1, 3]])
    >>> priors = {"doc_topic_prior": 0.1, "topic_word_prior": 0.01}
    >>> fit = fit_live(X, 2, mechanism="inherent", max_iter=5, seed=0, **priors)
    >>> fit.word_topic.sum(axis=0)
    array([2., 2., 3.])
    """
    if mechanism not in (*MECHANISMS, "hybrid"):
        raise ValueError(f"mechanism={mechanism!r} is unknown; it must be one of {', '.join(MECHANISMS)}, hybrid.")
    if not epsilon > 0:
        raise ValueError(f"epsilon={epsilon!r} must be a number above 0, or inf for no noise.")
    if not 0 < n_components < 2**16:
        raise ValueError(f"n_components={n_components!r} must be between 1 and 65,535.")
    if n_max is not None and not n_max >= 1:
        raise ValueError(f"n_max={n_max!r} must be at least 1, or None for the longest document.")
    if seed is not None and seed < 0:
        raise ValueError(f"seed={seed!r} must be a non-negative integer, or None.")
    X = sp.csr_array(X, copy=True)
    if not np.issubdtype(X.dtype, np.integer):
        raise TypeError(f"X has dtype {X.dtype}; the counts must be integers.")
    X.sum_duplicates()

    rng = np.random.default_rng(seed)
    key = int(rng.integers(2**64, dtype=np.uint64))
    state = _LiveState(X, n_components, doc_topic_prior, topic_word_prior, rng)
    kernel, monitored, rows = sequential_sweep, (), []
    if mechanism == "inherent":
        n_tokens = len(state.words)
        longest = max((stop - start for start, stop in pairwise(state.doc_ptr)), default=0)
        n_max = longest if n_max is None else n_max
        kernel, monitored = sequential_sweep_monitored, (n_max, np.zeros(n_tokens), np.zeros(n_tokens))
    elif mechanism == "hybrid":
        monitored = (count_clip,)

    for i in range(max_iter):
        if mechanism == "laplace-every" or (mechanism == "laplace-first" and i == 0):
            state.add_noise(1 / epsilon, rng)
        elif mechanism == "hybrid":
            state.add_noise(2 / epsilon, rng, documents=False)
        seen = None if observer is None else state.word_topic.copy()
        rows.append(state.sweep(kernel, key, i, *monitored))
        if observer is not None:
            observer(seen, state.topics.copy())
        if callback is not None:
            callback(i + 1)
    if mechanism == "laplace-last":
        noise = rng.laplace(scale=2 / epsilon, size=(2, len(state.words)))
        state.sweep(laplace_last_sweep, key, max_iter, *noise)
    return LiveFit(
        word_topic=np.ascontiguousarray(state.word_topic.T),
        monitor=_history(rows) if mechanism == "inherent" else None,
        n_iter=max_iter + (mechanism == "laplace-last"),
    )


def _history(rows):
    """Turn the rows of a monitored run, one a sweep, into the arrays of `InherentPrivacyHistory`."""
    word_level, document_level, largest, losses = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    return {
        "word_level": word_level.copy(),
        "document_level": document_level.copy(),
        "worst_draw": np.maximum.accumulate(largest),
        "sum_of_draws": np.cumsum(losses),
    }
