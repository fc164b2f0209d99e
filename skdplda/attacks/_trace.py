"""The topic-based attack: guess words from the topics that a sampler drew for them."""

from numbers import Integral
from typing import Any, Literal, Self

import numpy as np

from skdplda._types import ArrayLike

RULES = ("paper", "bayes")


class TopicTraceAttack:
    """Infer words from the topics that were drawn for them, sweep by sweep, and the topic-word tables.

    All attacked tokens are followed side by side. It works on a trace of any sampler of topics: what it needs is the
    table that was public before a sweep and the topics that the sweep drew.

    Parameters
    ----------
    n_tokens : int
        How many tokens are attacked.
    n_words : int
        Size of the vocabulary.
    rule : {"paper", "bayes"}, default="paper"
        "paper": the product over sweeps of n_kw / sum_v n_kv at the drawn topic k, eq. (24) of [1]_, scaled to sum to
        1. It counts how frequent a word is once a sweep, and so prefers frequent words more and more. "bayes": the
        product of n_kw / sum_j n_jw, times how frequent the word is, once: the posterior where draws are independent
        given the word.
    smoothing : float, default=0.01
        Added to each count, of which the negative ones are taken for 0; the samplers' beta is the natural choice.

    Attributes
    ----------
    n_sweeps_ : int
        Sweeps observed so far.

    Raises
    ------
    ValueError
        If `n_tokens`, `n_words`, `rule` or `smoothing` is not as described.

    References
    ----------
    .. [1] Zhao, Ren, Yang, Han, Zhao and Yang (2021). Latent Dirichlet Allocation Model Training With Differential
       Privacy. IEEE TIFS 16. Algorithm 3, eq. 24.

    Examples
    --------
    >>> import numpy as np
    >>> from skdplda.attacks import TopicTraceAttack
    >>> table = np.array([[9, 1], [1, 9]])  # topics x words
    >>> attack = TopicTraceAttack(n_tokens=2, n_words=2)
    >>> for drawn in ([0, 1], [0, 0], [0, 1]):
    ...     _ = attack.observe(table, np.array(drawn))
    >>> attack.posterior().round(2).tolist()
    [[1.0, 0.0], [0.1, 0.9]]
    """

    def __init__(
        self, n_tokens: int, n_words: int, rule: Literal["paper", "bayes"] = "paper", smoothing: float = 0.01
    ) -> None:
        if rule not in RULES:
            raise ValueError(f"rule must be one of {RULES}; got {rule!r}.")
        if not 0 < smoothing < np.inf:
            raise ValueError(f"smoothing must be > 0 and finite; got {smoothing!r}.")
        for name, value in (("n_tokens", n_tokens), ("n_words", n_words)):
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
        self.n_tokens = n_tokens
        self.n_words = n_words
        self.rule = rule
        self.smoothing = smoothing
        self.n_sweeps_ = 0
        self._log = np.zeros((n_tokens, n_words))
        self._frequency = np.zeros(n_words)

    @classmethod
    def of_trace(
        cls,
        trace: Any,
        tokens: ArrayLike | None = None,
        rule: Literal["paper", "bayes"] = "paper",
        smoothing: float = 0.01,
    ) -> "TopicTraceAttack":
        """Attack a whole trace.

        Parameters
        ----------
        trace : TopicTrace
            What a fit released: anything with `topics` of shape (n_sweeps, n_tokens) and `tables` of at least
            n_sweeps tables (n_components, n_words).
        tokens : array-like of int of shape (n_tokens,), default=None
            Which tokens are attacked. None attacks all: the scores take n_tokens x n_words numbers.
        rule : {"paper", "bayes"}, default="paper"
            As of the class.
        smoothing : float, default=0.01
            As of the class.

        Returns
        -------
        attack : TopicTraceAttack
            After the last sweep.

        Raises
        ------
        ValueError
            If `tokens` are no positions of tokens, or as of the class.
        """
        n_all = trace.topics.shape[1]
        tokens = np.arange(n_all) if tokens is None else np.asarray(tokens)
        if tokens.ndim != 1 or not len(tokens) or tokens.dtype.kind not in "iu":
            raise ValueError("tokens must be one or more positions of tokens, as integers.")
        if tokens.min() < 0 or tokens.max() >= n_all:
            raise ValueError(f"tokens must be from 0 to {n_all - 1}; got {tokens.min()} to {tokens.max()}.")
        attack = cls(len(tokens), trace.tables.shape[2], rule, smoothing)
        for table, topics in zip(trace.tables, trace.topics, strict=False):  # the last table has no draws
            attack.observe(table, topics[tokens])
        return attack

    def observe(self, table: ArrayLike, topics: ArrayLike) -> Self:
        """Take in one sweep.

        Parameters
        ----------
        table : array-like of shape (n_components, n_words)
            Topic-word counts, noisy or not, that were public before the sweep.
        topics : array-like of int of shape (n_tokens,)
            The topics that the sweep drew for the attacked tokens.

        Returns
        -------
        self : TopicTraceAttack
            The attack.

        Raises
        ------
        ValueError
            If the shapes do not fit, the table is not finite, or a topic is not in it.
        """
        table, topics = np.asarray(table, dtype=np.float64), np.asarray(topics)
        if table.ndim != 2 or table.shape[1] != self.n_words:
            raise ValueError(f"table must have {self.n_words} columns, one a word; got shape {table.shape}.")
        if not np.isfinite(table).all():
            raise ValueError("table must be finite; it has NaN or infinity.")
        if topics.shape != (self.n_tokens,) or topics.dtype.kind not in "iu":
            raise ValueError(f"topics must be {self.n_tokens} integers; got {topics.dtype} of shape {topics.shape}.")
        if not (topics.min() >= 0 and topics.max() < len(table)):
            raise ValueError(f"topics must be from 0 to {len(table) - 1}; got {topics.min()} to {topics.max()}.")
        smooth = np.maximum(table, 0) + self.smoothing
        total = smooth.sum(axis=1, keepdims=True) if self.rule == "paper" else smooth.sum(axis=0)
        self._log += (np.log(smooth) - np.log(total))[topics]
        self._frequency += smooth.sum(axis=0)
        self.n_sweeps_ += 1
        return self

    def posterior(self) -> np.ndarray:
        """Return the inferred probability of each word.

        Returns
        -------
        probability : ndarray of shape (n_tokens, n_words)
            Rows sum to 1.
        """
        score = self._log.copy()
        if self.rule == "bayes" and self.n_sweeps_:
            score += np.log(self._frequency)
        score -= score.max(axis=1, keepdims=True)
        np.exp(score, out=score)
        score /= score.sum(axis=1, keepdims=True)
        return score

    def success(self, words: ArrayLike) -> dict[str, float]:
        """Return how well the attack does, given the truth.

        Parameters
        ----------
        words : array-like of int of shape (n_tokens,)
            The true words.

        Returns
        -------
        success : dict of str to float
            "probability": mean inferred probability of the true word, which the paper calls accuracy; "first": how
            often the true word has the largest one; "rank": the median of its rank, from 1.

        Raises
        ------
        ValueError
            If `words` are not one word of the vocabulary for each token.
        """
        probability, words = self.posterior(), np.asarray(words)
        if words.shape != (self.n_tokens,):
            raise ValueError(f"words must have shape ({self.n_tokens},); got {words.shape}.")
        if words.dtype.kind not in "iu" or words.min() < 0 or words.max() >= self.n_words:
            raise ValueError(f"words must be integers from 0 to {self.n_words - 1}.")
        own = probability[np.arange(self.n_tokens), words]
        rank = 1 + (probability > own[:, None]).sum(axis=1) + ((probability == own[:, None]).sum(axis=1) - 1) / 2
        return {"probability": float(own.mean()), "first": float((rank == 1).mean()), "rank": float(np.median(rank))}
