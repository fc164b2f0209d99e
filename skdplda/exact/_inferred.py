"""Priors that are inferred from counts, in rounds without noise."""

import numpy as np

from skdplda._arithmetic import digamma, exp, expm1, log1p, mean, total
from skdplda.exact._tables import annealed
from skdplda.rounds._checkpoint import checked_array

FIRST_PRIOR = 0.1  # to start from
INFER_FROM, INFER_EVERY, INFER_STEPS = 20, 5, 5  # rounds between updates of inferred priors, steps of each; not tuned
# Steps of each update from expected counts, where a prior may have far to go: until the topics are alike.
EXPECTED_STEPS = 20
LEAST_PRIOR, MOST_PRIOR = 1e-3, 10.0
MOST_WORD_PRIOR = 100.0  # of a word, on average, where it follows the word frequencies


class InferredPriors:
    """Priors of rounds without noise that maximise the likelihood of the counts, by Minka's fixed point [1]_.

    They start from `alpha`, (n_topics,), of topic proportions, and `beta`, of words; `infers` says of both whether it
    is inferred. Until then, and while topics form, they are as `annealed`.

    References
    ----------
    .. [1] T. Minka (2000). Estimating a Dirichlet distribution. Equation 55.
    """

    def __init__(self, alpha, beta, infers, n_rounds):
        self.alpha, self.beta, self._which, self._n_rounds = alpha, beta, infers, n_rounds

    def __call__(self, round_):
        """Return alpha, of shape (n_topics,), and beta of a round."""
        return annealed(self.alpha, self.beta, len(self.alpha), round_, self._n_rounds)

    @property
    def word_prior(self):
        """The prior of words: one number for all."""
        return self.beta

    def update(self, round_, document_topics, word_topics):
        """Infer the priors from the counts of a round, if it is one of those after which this is done."""
        if round_ >= INFER_FROM and round_ % INFER_EVERY == 0:
            self._infer(document_topics, word_topics)

    def _infer(self, document_topics, word_topics):
        """Infer the priors; the counts of documents come from a function, those of words are (n_words, n_topics)."""
        if self._which[0]:
            self.alpha = fixed_point(document_topics(), self.alpha)
        if self._which[1]:
            shared = np.full(len(word_topics), self.beta)
            self.beta = float(fixed_point(word_topics.T, shared, shared=True)[0])

    def arrays(self):
        """Return the state."""
        return {"alpha": self.alpha, "beta": np.array(self.beta)}

    def restore(self, arrays):
        """Restore the state."""
        self.alpha = checked_array(arrays, "alpha", self.alpha.shape, np.float64, least=0)
        self.beta = float(checked_array(arrays, "beta", (), np.float64, least=0))


class ExpectedPriors(InferredPriors):
    """The same from expected counts, as variational inference has them.

    An expected count below 1 is no small count: it is 1 or more with some probability, and 0 else [2]_. A document's
    tokens are taken as drawn one by one, and the tokens of a word in all documents as rare events. Once topics have
    formed, an inferred prior of words is beta times the word frequencies over those of the uniform distribution: topics
    which the documents do not prove end in the word frequencies.

    References
    ----------
    .. [2] Y. W. Teh, D. Newman, M. Welling (2006). A collapsed variational Bayesian inference algorithm for latent
       Dirichlet allocation. NIPS. Section 4.
    """

    def __init__(self, alpha, beta, infers, n_rounds):
        super().__init__(alpha, beta, infers, n_rounds)
        self.shape = None  # of the prior of words: with mean 1, or None where all words have the same

    def fit_words(self, table, round_):
        """Take the word frequencies from the last table; while topics form, all words have the same prior."""
        if self._which[1] and round_ >= INFER_FROM:
            words = total(table, axis=1) + 1
            self.shape = words / mean(words)

    def arrays(self):
        """Return the state."""
        return super().arrays() | ({} if self.shape is None else {"shape": self.shape})

    def restore(self, arrays):
        """Restore the state."""
        super().restore(arrays)
        self.shape = checked_array(arrays, "shape", (None,), np.float64, least=0) if "shape" in arrays else None

    @property
    def word_prior(self):
        """The prior of words: one number for all, or (n_words,)."""
        return self.beta if self.shape is None else self.beta * self.shape

    def _infer(self, document_topics, word_topics):
        """Infer the priors from expected counts, (n_documents, n_topics) and (n_words, n_topics)."""
        if self._which[0]:
            counts = np.maximum(document_topics.astype(np.float64), 0)  # empty documents have no topics: -1
            lengths = np.maximum(np.rint(total(counts, axis=1)), 1.0)[:, None]
            some = 1 - exp(lengths * log1p(-np.minimum(counts / lengths, 1)))
            self.alpha = fixed_point(counts, self.alpha, some=some, n_steps=EXPECTED_STEPS)
        if self._which[1]:
            self.beta = proportional_fixed_point(word_topics.T, self.beta, self.shape)


def fixed_point(counts, prior, shared=False, some=1.0, n_steps=INFER_STEPS):
    """Return the Dirichlet prior after `n_steps` towards the most likely one of rows of counts, (n_rows, n).

    The rows are of multinomials whose proportions have the prior; `prior`, (n,), is where to start. All its entries are
    the same if they are `shared`. `some` is the probability that a count is not 0, where the counts are expected ones.
    """
    counts = counts.astype(np.float64)
    totals, counts = total(counts, axis=1), counts / np.maximum(some, 1e-12)
    for _ in range(n_steps):
        mass = total(prior)
        gain = total(some * (digamma(counts + prior) - digamma(prior)), axis=0)
        whole = total(digamma(totals + mass) - digamma(mass))
        gain = np.full(len(prior), mean(gain)) if shared else gain
        prior = np.clip(prior * gain / max(whole, 1e-300), LEAST_PRIOR, MOST_PRIOR)
    return prior


def proportional_fixed_point(counts, beta, shape):
    """Return the factor `beta` of a Dirichlet prior after steps towards the most likely one of expected counts.

    `counts`, (n_rows, n), are of multinomials whose proportions have the prior, which is `beta` times `shape`, of mean
    1.
    """
    totals, some = total(counts, axis=1), -expm1(-counts)
    counts = counts / np.maximum(some, 1e-12)
    for _ in range(EXPECTED_STEPS):
        prior = beta * shape
        mass = total(prior)
        gain = total(shape * (some * (digamma(counts + prior) - digamma(prior))))
        whole = len(shape) * total(digamma(totals + mass) - digamma(mass))
        beta = float(np.clip(beta * gain / max(whole, 1e-300), LEAST_PRIOR, MOST_WORD_PRIOR))
    return beta
