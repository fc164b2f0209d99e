"""The inherent-privacy monitor of collapsed Gibbs sampling: a diagnostic, not a guarantee."""

from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from skdplda._types import ArrayLike

__all__ = ["InherentPrivacyHistory", "exact_draw_loss", "monitor_draw"]


@dataclass(frozen=True, eq=False)
class InherentPrivacyHistory:
    """What the monitor measured up to each iteration of a sequential collapsed Gibbs sampler.

    All numbers are in nats and belong to one run on one corpus, as seen by someone who is shown every
    topic assignment. They describe that run; they guarantee nothing about what was released:

    * They are read off the data, so they may differ on a neighbouring corpus and reveal something themselves.
    * `word_level` and `document_level` take the largest sum over the draws of **one** token. That is
      parallel composition, which asks that the other draws do not read the token; here every draw reads
      the table that the token is counted in. A dozen tokens are enough to exceed the sum many times over.
    * `monitor_draw` changes the total of a topic only, while a removed token of the same type or document
      changes the count above the fraction too; see `exact_draw_loss`.
    * `sum_of_draws` adds up every draw and counts every change, so the second and third gap are closed; the
      first stays, and it looks at corpora that lack a token, not at those that have one more.

    Parameters
    ----------
    word_level : array-like of shape (n_iterations,)
        Largest sum, over the draws of one token, of the monitor's epsilon for one removed token
        (Theorem 3 of [1]_, whose "word" is a token: each iteration draws its topic once).
    document_level : array-like of shape (n_iterations,)
        The same for a removed document of the longest length.
    worst_draw : array-like of shape (n_iterations,)
        Largest `exact_draw_loss` of a single draw, one token removed.
    sum_of_draws : array-like of shape (n_iterations,)
        Sum of `exact_draw_loss` over all draws of all tokens, one token removed.

    References
    ----------
    .. [1] Zhao, Ren, Yang and Yang (2019). On Privacy Protection of Latent Dirichlet Allocation Model
       Training. IJCAI. Algorithms 1 and 2, Theorem 3.

    Examples
    --------
    >>> history = InherentPrivacyHistory([0.1, 0.2], [0.5, 1.0], [4.6, 4.6], [310.0, 600.0])
    >>> history.to_frame()["word_level"].tolist()
    [0.1, 0.2]
    """

    word_level: np.ndarray
    document_level: np.ndarray
    worst_draw: np.ndarray
    sum_of_draws: np.ndarray

    def __post_init__(self):
        for field in fields(self):
            values = np.array(getattr(self, field.name), dtype=np.float64)
            if values.shape != np.shape(self.word_level) or values.ndim != 1:
                raise ValueError(f"{field.name} has shape {values.shape}; each array must be of shape (n_iterations,).")
            values.setflags(write=False)
            object.__setattr__(self, field.name, values)

    def to_frame(self) -> pd.DataFrame:
        """Return the history as a table with one row an iteration.

        The table is a diagnostic: no column is the epsilon of a differential privacy guarantee, for the reasons
        that the class gives.

        Returns
        -------
        frame : pandas.DataFrame of shape (n_iterations, 4)
            The columns are the attributes; the index, named "iteration", counts from 1.
        """
        import pandas as pd

        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return pd.DataFrame(columns, index=pd.RangeIndex(1, len(self.word_level) + 1, name="iteration"))


def monitor_draw(
    word_counts_k: ArrayLike,
    topic_totals_k: ArrayLike,
    doc_counts_k: ArrayLike,
    n_removed: float,
    alpha: ArrayLike,
    beta: float,
    n_words: int,
) -> float:
    r"""Return the epsilon that the monitor gives to one draw of collapsed Gibbs sampling.

    With :math:`r_k` the weight of topic k and :math:`q_k` the same with `n_removed` tokens taken from the
    total of the topic, :math:`\varepsilon = 2 \max(\xi_1, \dots, \xi_K, \xi)`.

    Parameters
    ----------
    word_counts_k : array-like of shape (n_topics,)
        Tokens of the drawn token's type in each topic, without the drawn token.
    topic_totals_k : array-like of shape (n_topics,)
        Tokens in each topic, without the drawn token.
    doc_counts_k : array-like of shape (n_topics,)
        Tokens of the drawn token's document in each topic, without the drawn token.
    n_removed : float
        Size of the difference of the two corpora, called N in [1]_: 1 for the word level, the longest
        document for the document level. A topic loses at most the tokens it has: the paper's denominator
        would be zero or negative where N passes the topic's total, and no neighbour lies there.
    alpha : float or array-like of shape (n_topics,)
        Prior of the document-topic distribution.
    beta : float
        Prior of the topic-word distribution.
    n_words : int
        Number of words of the vocabulary, called V in [1]_.

    Returns
    -------
    epsilon : float
        In nats, for this draw alone.

    References
    ----------
    .. [1] Zhao, Ren, Yang and Yang (2019). On Privacy Protection of Latent Dirichlet Allocation Model
       Training. IJCAI. Equation (7), Algorithm 1.

    Examples
    --------
    >>> round(monitor_draw([3, 0], [20, 9], [2, 1], n_removed=1, alpha=0.1, beta=0.01, n_words=1000), 4)
    0.1078
    """
    topic_totals_k = np.asarray(topic_totals_k, dtype=np.float64)
    total = topic_totals_k + n_words * beta
    r = (np.asarray(word_counts_k) + beta) / total * (np.asarray(doc_counts_k) + alpha)
    q = r * total / (total - np.minimum(n_removed, topic_totals_k))
    growth = (r.sum() - r + q) / r.sum()
    largest = np.argmax(np.abs(r - q))
    return float(2 * max(np.abs(np.log(growth * r / q)).max(), np.log(growth[largest])))


def exact_draw_loss(
    word_counts_k: ArrayLike,
    topic_totals_k: ArrayLike,
    doc_counts_k: ArrayLike,
    alpha: ArrayLike,
    beta: float,
    n_words: int,
    *,
    twin_counts_k: ArrayLike = 0,
) -> float:
    r"""Return the worst privacy loss of one draw over the corpora that lack one other token.

    The loss is :math:`\max_k |\ln p'_k / p_k|`, all other assignments being equal on both corpora. Removing
    a token changes the total of its topic, and also the word count if it shares the drawn token's type
    (a factor of up to ``1 + 1 / beta``), and the document count if it shares its document (up to
    ``1 + 1 / alpha``). The monitor knows only the first change.

    Parameters
    ----------
    word_counts_k, topic_totals_k, doc_counts_k : array-like of shape (n_topics,)
        As in `monitor_draw`.
    alpha : float or array-like of shape (n_topics,)
        As in `monitor_draw`.
    beta : float
        As in `monitor_draw`.
    n_words : int
        As in `monitor_draw`.
    twin_counts_k : array-like of shape (n_topics,), default=0
        Tokens of the same type **and** the same document in each topic, without the drawn token;
        all zero where a document holds a type at most once.

    Returns
    -------
    loss : float
        In nats, for this draw alone; 0 where there is no other token.

    Examples
    --------
    >>> round(exact_draw_loss([1, 0], [20, 9], [2, 1], alpha=0.1, beta=0.01, n_words=1000), 4)
    4.0019
    """
    arrays = (word_counts_k, topic_totals_k, doc_counts_k, twin_counts_k, alpha)
    word, topic, doc, twins, alpha = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in arrays))
    word_mass, topic_mass, doc_mass = word + beta, topic + n_words * beta, doc + alpha
    r = word_mass / topic_mass * doc_mass
    p = r / r.sum()
    neighbours = (  # how many tokens of a topic may go; whether they share the type; whether the document
        (topic - word - doc + twins, 0, 0),
        (word - twins, 1, 0),
        (doc - twins, 0, 1),
        (twins, 1, 1),
    )
    loss = 0.0
    for n_tokens, same_word, same_doc in neighbours:
        for k in np.flatnonzero(n_tokens > 0):
            factor = topic_mass[k] / (topic_mass[k] - 1)
            factor *= (1 - same_word / word_mass[k]) * (1 - same_doc / doc_mass[k])
            others = -np.log1p(p[k] * (factor - 1))
            loss = max(loss, abs(others), abs(others + np.log(factor)))
    return float(loss)
