"""Sequential collapsed Gibbs sampling: the inherent-privacy monitor and the published Laplace baselines.

Nothing here is proven: `fit_published` runs the algorithms as their papers print them.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import log, total
from skdplda._kernels._sequential import sequential_sweep, sequential_sweep_monitored
from skdplda._validation import tokens_of


@dataclass(frozen=True, eq=False)
class PublishedFit:
    """Result of `fit_published`, after `n_iter` sweeps.

    `word_topic`, of shape (n_components, n_words), is noisy, and possibly negative, for "laplace-first",
    "laplace-every" and "hybrid"; exact for the other mechanisms, those of fresh noise too, so that it must not be
    released. `monitor` has, for "inherent", the fields of `InherentPrivacyHistory`, of shape (max_iter,); else it is
    None.
    """

    word_topic: np.ndarray
    monitor: dict | None
    n_iter: int


class _SequentialState:
    """The hidden state of the sampler, in the order of the kernels' arguments."""

    def __init__(self, X, n_components, doc_topic_prior, topic_word_prior, rng):
        n_docs, n_words = X.shape
        self.doc_ptr, self.words = tokens_of(X)
        self.topics = rng.integers(n_components, size=len(self.words), dtype=np.uint16)
        self.doc_topic = np.zeros((n_docs, n_components))
        self.docs = np.repeat(np.arange(n_docs), np.diff(self.doc_ptr))
        self.word_topic, self.topic_total = np.zeros((n_words, n_components)), np.zeros(n_components)
        self.count()
        self.alpha = np.full(n_components, doc_topic_prior, dtype=np.float64)
        self.beta = float(topic_word_prior)

    def count(self):
        """Count the topics of all tokens, without noise."""
        for table, rows in ((self.doc_topic, self.docs), (self.word_topic, self.words)):
            table[:] = 0
            np.add.at(table, (rows, self.topics), 1.0)
        self.topic_total[:] = total(self.word_topic, axis=0)

    def add_noise(self, scale, rng, on_documents, fresh):
        """Add Laplace noise to the count matrices: for good, or, if fresh, in place of what was added before."""
        if fresh:
            self.count()
        if on_documents:
            self.doc_topic += laplace(rng, scale, self.doc_topic.shape)
        self.word_topic += laplace(rng, scale, self.word_topic.shape)
        self.topic_total[:] = total(self.word_topic, axis=0)

    def sweep(self, kernel, seed, number, *rest):
        """Run one sweep of a kernel."""
        counts = self.doc_topic, self.word_topic, self.topic_total
        return kernel(self.doc_ptr, self.words, self.topics, *counts, self.alpha, self.beta, seed, number, *rest)


@dataclass(frozen=True)
class PublishedMechanism:
    """What a published mechanism adds to plain sequential sweeps; Laplace scales are divided by epsilon."""

    noise: float = 0.0  # scale of the noise added to the running counts before a sweep, on top of the old
    first_only: bool = False  # whether it is added before the first sweep only
    on_documents: bool = True  # whether the document-topic counts get it as well
    noise_of_last: float = 0.0  # scale of one pair of values a token, in the weights of one more sweep at the end
    rescaled: bool = False  # whether the least of these weights is taken from all
    monitored: bool = False  # whether the monitor runs beside the sampler
    clipped: bool = False  # whether a count weighs as `count_clip` at most
    fresh: bool = False  # whether the noise is of a copy, and the counts go on without it


PUBLISHED = {
    "inherent": PublishedMechanism(monitored=True),
    "laplace-first": PublishedMechanism(noise=1.0, first_only=True),
    "laplace-every": PublishedMechanism(noise=1.0),
    "laplace-last": PublishedMechanism(noise_of_last=2.0),
    "laplace-last-rescaled": PublishedMechanism(noise_of_last=2.0, rescaled=True),
}
HYBRID = PublishedMechanism(noise=2.0, on_documents=False, clipped=True)  # HDP-LDA
FRESH = {"hybrid-fresh": replace(HYBRID, fresh=True), "laplace-every-fresh": PublishedMechanism(noise=1.0, fresh=True)}
ALL = {**PUBLISHED, "hybrid": HYBRID, **FRESH}


def fit_published(
    X,
    n_components,
    *,
    form,
    epsilon=np.inf,
    doc_topic_prior,
    topic_word_prior,
    max_iter,
    seed=None,
    count_clip=np.inf,
    observer=None,
):
    """Fit LDA by sequential collapsed Gibbs sampling with a published form of privacy.

    X has whole counts, `n_components` is below 65,536, and `form` is a row of `ALL`: "inherent" is Algorithm 2 of
    [1]_, whose monitor removes as many tokens as the longest document has at its document level; it does not use
    `epsilon`. "laplace-first" and "laplace-every" are called CDP-LDA and CDP-LDA+ in [2]_, "hybrid" is its Algorithm 1,
    where `count_clip` is called C; "laplace-last" is that of [3]_, with one more sweep, and
    "laplace-last-rescaled" takes the least weight of a draw from all, as the code of [4]_ does. Those that are fresh
    have noise on a copy of the counts in each sweep, as Algorithm 3 of [2]_ records it.

    `epsilon` is the paper's, which no proof supports: per count matrix and per noise addition for "laplace-first" and
    "laplace-every", per draw for "laplace-last", per sweep's noise for "hybrid". The noise is the papers' continuous
    Laplace noise of floating point numbers, whose low-order bits leak; the published form is what is asked for.
    Negative noisy counts stay in the running counts; each counts as 0 when a weight is computed.

    `observer` is called after each sweep with what its adversary sees, as copies: the topic-word table (n_words,
    n_components) at the sweep's start, after noise, and the topics of the tokens, in the order of documents and words.

    References
    ----------
    .. [1] Zhao, Ren, Yang and Yang (2019). On Privacy Protection of Latent Dirichlet Allocation Model
       Training. IJCAI. Algorithms 1 and 2.
    .. [2] Zhao, Ren, Yang, Han, Zhao and Yang (2021). Latent Dirichlet Allocation Model Training With
       Differential Privacy. IEEE TIFS 16. Section on experiments.
    .. [3] Zhu, Li, Zhou, Xiong and Yuan (2016). Privacy-preserving topic model for tagging recommender
       systems. Knowledge and Information Systems 46(1).
    .. [4] Manzonelli, Zhang and Vadhan (2024). Membership Inference Attacks and Privacy in Topic Modeling.
    """
    X = sp.csr_array(X, copy=True)
    X.sum_duplicates()

    rng = np.random.default_rng(seed)
    key = int(rng.integers(2**64, dtype=np.uint64))
    state = _SequentialState(X, n_components, doc_topic_prior, topic_word_prior, rng)
    published, kernel, arguments, rows = ALL[form], sequential_sweep, (), []
    if published.monitored:
        kernel, losses = sequential_sweep_monitored, np.zeros((2, len(state.words)))
        arguments = np.diff(state.doc_ptr).max(initial=0), *losses
    elif published.clipped:
        arguments = (count_clip,)
    for i in range(max_iter):
        if published.noise and (i == 0 or not published.first_only):
            state.add_noise(published.noise / epsilon, rng, published.on_documents, published.fresh)
        seen = None if observer is None else state.word_topic.copy()
        rows.append(state.sweep(kernel, key, i, *arguments))
        if observer is not None:
            observer(seen, state.topics.copy())
    if published.fresh:
        state.count()
    if published.noise_of_last:
        noise = laplace(rng, published.noise_of_last / epsilon, (2, len(state.words)))
        state.sweep(sequential_sweep, key, max_iter, np.inf, *noise, published.rescaled)
    return PublishedFit(
        word_topic=np.ascontiguousarray(state.word_topic.T),
        monitor=_history(rows) if published.monitored else None,
        n_iter=max_iter + bool(published.noise_of_last),
    )


def laplace(rng, scale, shape):
    """Draw numbers of the Laplace distribution: the logarithm of a quotient of uniform ones, which are positive."""
    return scale * log((1 - rng.random(shape)) / (1 - rng.random(shape)))


def _history(rows):
    """Turn the rows of a monitored run, one a sweep, into the arrays of `InherentPrivacyHistory`."""
    word_level, document_level, largest, losses = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    return {
        "word_level": word_level.copy(),
        "document_level": document_level.copy(),
        "worst_draw": np.maximum.accumulate(largest),
        "sum_of_draws": np.cumsum(losses),
    }
