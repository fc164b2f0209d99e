"""The inherent-privacy monitor of collapsed Gibbs sampling: a diagnostic, not a guarantee."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from skdplda._arithmetic import log, log1p, total
from skdplda._types import ArrayLike

if TYPE_CHECKING:
    import pandas as pd

from skdplda._checks import check_prior


@dataclass(frozen=True, eq=False)
class InherentPrivacyHistory:
    """What the monitor measured up to each iteration of a sequential collapsed Gibbs sampler.

    All numbers are in nats and belong to one run on one corpus, as seen by someone who is shown every topic assignment.
    They describe that run; they guarantee nothing about what was released (doc/theory/monitor.rst).

    Parameters
    ----------
    word_level : array-like of shape (n_iterations,)
        Largest sum, over the draws of one token, of the monitor's epsilon for one removed token
        (Theorem 3 of [1]_, whose "word" is a token: each iteration draws its topic once).
    document_level : array-like of shape (n_iterations,)
        The same for a removed document of the longest length.
    worst_draw : array-like of shape (n_iterations,)
        Largest exact loss of a single draw, one token removed.
    sum_of_draws : array-like of shape (n_iterations,)
        Sum of the exact losses of all draws of all tokens, one token removed.

    Raises
    ------
    ValueError
        If the arrays are of different lengths, or hold other numbers.

    References
    ----------
    .. [1] Zhao, Ren, Yang and Yang (2019). On Privacy Protection of Latent Dirichlet Allocation Model
       Training. IJCAI. Algorithms 1 and 2, Theorem 3.

    Examples
    --------
    >>> from skdplda.privacy import InherentPrivacyHistory
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

    def to_frame(self) -> "pd.DataFrame":
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
    r"""Return the epsilon, in nats, that the monitor gives to one draw of collapsed Gibbs sampling.

    With r_k the weight of topic k and q_k the same with `n_removed` tokens taken from the total of the topic, it is 2
    max(xi_1, ..., xi_K, xi): Zhao et al. (2019), equation (7) and Algorithm 1. Counts are of the drawn token's word, of
    all tokens and of its document, without the drawn token. `n_removed`, called N there, is 1 for the word level, the
    longest document for the document level. A topic loses at most the tokens it has: the paper's denominator would be
    zero or negative where N passes the topic's total, and no neighbour lies there.
    """
    topic_totals_k = np.asarray(topic_totals_k, dtype=np.float64)
    mass = topic_totals_k + n_words * beta
    r = (np.asarray(word_counts_k) + beta) / mass * (np.asarray(doc_counts_k) + alpha)
    q = r * mass / (mass - np.minimum(n_removed, topic_totals_k))
    growth = (total(r) - r + q) / total(r)
    largest = np.argmax(np.abs(r - q))
    return float(2 * max(np.abs(log(growth * r / q)).max(), log(growth[largest])))


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
    r"""Return the worst privacy loss of one draw, max_k |ln p'_k / p_k|, over the corpora that lack one other token.

    All other assignments are equal on both corpora. Removing a token changes the total of its topic, and also the word
    count if it shares the drawn token's word (a factor of up to 1 + 1 / beta), and the document count if it shares its
    document (up to 1 + 1 / alpha). `monitor_draw` knows only the first change; the arguments are as there.
    `twin_counts_k` has the tokens of the same word **and** document, without the drawn token.
    """
    arrays = (word_counts_k, topic_totals_k, doc_counts_k, twin_counts_k, alpha)
    word, topic, doc, twins, alpha = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in arrays))
    word_mass, topic_mass, doc_mass = word + beta, topic + n_words * beta, doc + alpha
    r = word_mass / topic_mass * doc_mass
    p = r / total(r)
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
            others = -log1p(p[k] * (factor - 1))
            loss = max(loss, abs(others), abs(others + log(factor)))
    return float(loss)


# --- one word in the place of another: Zhao et al. (2021), section IV-C ---------------------------------


def _checked(name, values, n_axes=1):
    """Return counts or losses as an array of floats, or raise ValueError."""
    array = np.asarray(values, dtype=np.float64)
    wrong = array[~(np.isfinite(array) & (array >= 0))]
    if array.ndim != n_axes or not array.size or wrong.size:
        got = wrong[0] if wrong.size else f"an array of shape {array.shape}"
        axes = (
            "a number" if n_axes == 0 else f"an array of {n_axes} {'axis' if n_axes == 1 else 'axes'} that is not empty"
        )
        raise ValueError(f"{name} must be {axes}, finite and not negative; got {got}.")
    return array


def replaced_draw_loss(word_counts_k: ArrayLike, other_counts_k: ArrayLike, beta: float) -> float:
    r"""Bound the loss, in nats, of the draw of a token whose word t is replaced by t'; both words' counts by topic.

    It is 2 max_k |ln (n_k^t' + beta) / (n_k^t + beta)|: the weights of the draw differ by that quotient in each topic,
    and their sum by no more. It holds for equal topics of all other tokens. Source: Zhao et al. (2021), IEEE TIFS 16,
    Proposition 1, equation (4).
    """
    beta = check_prior("beta", beta, None)
    word, other = _checked("word_counts_k", word_counts_k) + beta, _checked("other_counts_k", other_counts_k) + beta
    if len(word) != len(other):
        raise ValueError(f"other_counts_k must have one number a topic, {len(word)}; got {len(other)}.")
    return float(2 * np.abs(log(other / word)).max())


def related_draw_loss(beta: float) -> float:
    r"""Bound the loss of the draw of another token of the word that goes, or of the one that comes.

    It is 2 ln(1 + 1 / beta), as printed (Proposition 2 there); half of it suffices, since one topic's count alone
    changes by 1.
    """
    return float(2 * log1p(1 / check_prior("beta", beta, None)))


def sweep_loss(word_totals: ArrayLike, beta: float, *, largest: float | None = None) -> np.ndarray:
    r"""Bound the loss of all draws of a sweep, for each word that one token of it is replaced.

    It is 2 ln(n* / beta + 1) + 2 (max n_t' + n_t - 1) ln(1 + 1 / beta), with the largest count n* of a word in a topic
    (Theorem 1 there, equation (5)); 0 for a word without tokens. No count of any word in any topic is above `largest`
    at any draw: a clip, called C; the paper's maximum has to run over the replaced word too. None: the largest total,
    which holds at every draw.
    """
    totals, related = _checked("word_totals", word_totals), related_draw_loss(beta)
    largest = totals.max() if largest is None else float(_checked("largest", largest, 0))
    order = np.argsort(-totals, kind="stable")
    others = np.full(len(totals), totals[order[0]])
    others[order[0]] = totals[order[1]] if len(totals) > 1 else 0.0  # of another word than the replaced one
    related *= others + totals - 1
    return np.where(totals > 0, 2 * log1p(largest / beta) + related, 0.0)


def composed_loss(losses: ArrayLike) -> float:
    """Bound the loss of all sweeps, from `sweep_loss` of each: the largest sum over the words.

    What it bounds (Theorem 2 there, equation (6)) is the loss of the topics that were drawn, between two corpora that
    differ by one word in the place of another, if all that is seen are these topics. It is no guarantee:
    doc/theory/monitor.rst.
    """
    return float(total(_checked("losses", losses, 2), axis=0).max())
