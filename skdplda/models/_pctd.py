"""PCTD: topics of semantic units, consistent with word similarity, with noise on sums or on the units."""

from functools import partial
from itertools import pairwise
from numbers import Integral, Real
from os import PathLike
from typing import Any, Literal
from uuid import uuid4

import numpy as np
import scipy.sparse as sp

from skdplda._arithmetic import exp, log, matmul
from skdplda._checks import check_structure, effective_n_jobs
from skdplda._kernels._foldin import fold_in
from skdplda._kernels._released import order_tokens
from skdplda._texts import words_of
from skdplda._types import ArrayLike, Function, Matrix, Seed
from skdplda._validation import (
    Interval,
    StrOptions,
    check_counts,
    check_groups,
    check_is_fitted,
    tokens_of,
)
from skdplda._warnings import warn
from skdplda.distributed import shards_of
from skdplda.esteps._segments import SegmentEStep
from skdplda.exact._loop import answer_exactly
from skdplda.models._base import FOLD_IN_ITERATIONS, FOLD_IN_TOLERANCE, PRIOR_MASS, BaseRoundsModel, TrainingData
from skdplda.models._pctd_guarantee import GUIDE, SIMILARITY, TOKEN_L2, once_guarantee
from skdplda.models._pctd_noise import noisy_segments
from skdplda.models._pctd_tables import ConsistentTables, LastTable
from skdplda.priors._public import PUBLIC_PRIOR, PublicPrior, WordPrior
from skdplda.privacy import Spending, seeded_guarantee
from skdplda.rounds._bounds import shortened, some_tokens
from skdplda.rounds._guarantee import rounds_guarantee
from skdplda.rounds._loop import rounds_of
from skdplda.rounds._plans import NoisePlan
from skdplda.semantics import UnitMatrix

PRIVATE_ROUNDS, EXACT_ROUNDS = 20, 35  # with noise as PrivateCGSLDA; without, the 35 iterations of Shi et al. (2019)
PRIVATE_UPDATES, EXACT_UPDATES = 10, 1  # with noise as local sweeps of PrivateCGSLDA; without, plain EM
TRANSFORM_CELLS = 2**22  # likelihoods of segments held at a time


class PCTD(BaseRoundsModel):
    """Private and consistent topic discovery: topics of phrases or sentences, differentially private.

    Each semantic unit of a document (some words in a row, a sentence, a paragraph) has one topic, found by
    expectation-maximisation [1]_; public word similarities draw words of one meaning into one topic.

    By default documents, or users, are protected: each round releases the sum of the documents' expected
    topic-word counts plus integer noise. With noise all documents contribute equally: a word that stands c times in a
    document counts sqrt(c), and a document's counts have a fixed norm. Without noise each word counts 1.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Affects privacy: no.
    epsilon : float, default=5.0
        Privacy loss of the whole fit, for what `noise_on` protects. `inf` is EM without noise. Affects privacy: yes.
    delta : float, default=1e-5
        Probability that the loss exceeds epsilon. Affects privacy: yes.
    noise_on : {"statistics", "units"}, default="statistics"
        What gets noise. "statistics": the topic-word sums of each round, for a document, or a user with `groups`;
        proven. "units": the count of every vocabulary word in every unit, once, then EM on what the counts probably
        were, for one word replaced by another in its unit; proven. The curator could publish the noisy counts; it takes
        time in proportion to units times words. Affects privacy: yes.
    similarity : sparse matrix or array-like of shape (n_words, n_words), or None, default=None
        Called R in [1]_, eq. (10): from :func:`skdplda.semantics.word_similarity`, of public vectors. None: words
        do not know each other. Affects privacy: no, if public.
    tau : float, default=0.3
        Weight of the similarity in eq. (11) of [1]_, 1e6 at most. Affects privacy: no.
    max_iter : int or None, default=None
        Rounds. None: 20 for "statistics" with noise, else 35. Affects privacy: no, the noise is calibrated to it.
    local_updates : int or None, default=None
        Updates of a document's topic proportions in a round. None: 10 for "statistics" with noise, else 1. Affects
        privacy: no.
    sampling_rate : float, default=1.0
        Probability that a privacy unit takes part in a round (Poisson sampling). "statistics" only. Affects privacy:
        no, the noise is calibrated to it.
    doc_topic_prior : float, array-like of shape (n_components,) or None, default=None
        Pseudo-count of each topic in a document, which [1]_ has not. None: 0.1, with noise 1 / n_components at most.
        Affects privacy: no.
    topic_word_prior : float or None, default=None
        Pseudo-count of each word in a topic, which [1]_ has not. None: 0.01. Affects privacy: no.
    prior : PublicPrior, WordPrior or None, default=None
        Public knowledge of words and topics, from which topics start and to which released tables are shrunk.
        "statistics" with noise and without samples only. Affects privacy: no, if it does not depend on the private
        texts.
    checkpoint : str, path-like or None, default=None
        "statistics" only. File to resume an interrupted fit from, without spending again; as private as the data, and
        removed at the end. Affects privacy: no.
    callback : callable or None, default=None
        Called with a released `RoundReport` (`n_done`, `n_rounds`, `table`) after each round. Affects privacy: no.
    n_jobs : int or None, default=None
        Threads, as in joblib; same result for any number. Affects privacy: no.
    random_state : int, bytes, RandomState or None, default=None
        Makes a fit repeatable and warns: the guarantee is then proven only for a secret seed of 16 random bytes or more
        (or such an integer), and else claimed. None: fresh entropy. Affects privacy: yes.
    verbose : int, default=0
        Progress bar if positive. Affects privacy: no.

    Attributes
    ----------
    components_, topic_word_ : ndarray of shape (n_components, n_words)
        Topic-word pseudo-counts, the prior included; and the same with rows scaled to sum to 1.
    privacy_guarantee_ : PrivacyGuarantee
        What is guaranteed; print it for a statement to publish.
    doc_topic_prior_ : ndarray of shape (n_components,)
        Only of an array, with seeds in `prior`: in the order of the topics.
    signal_to_noise_ : ndarray of shape (n_components, n_words)
        By how many standard deviations of the noise a released count exceeds that of a topic with the word frequencies
        of all; beyond about 4, a word is no noise. Only with noise on "statistics".
    topic_signal_to_noise_ : ndarray of shape (n_components,)
        The same for whole topics: below about 1 a topic says little. It knows the noise alone, and not chance.
    n_iter_, n_features_in_ : int
        Rounds done, and number of words.
    feature_names_in_ : ndarray of shape (n_words,)
        Words, if X was a data frame.

    See Also
    --------
    skdplda.semantics.SemanticUnitVectorizer : Makes semantic units of text.
    skdplda.semantics.word_similarity : Makes the similarity of word vectors.
    skdplda.published.PublishedPCTD : The published form, with fresh noise in each iteration.

    References
    ----------
    .. [1] Shi, Su, Jiang, Zhou, Zhang and Tong (2019). Semantic Consistent Topic Discovery with Differential Privacy.
       Eqs. 3-11, Algorithm 1.

    Examples
    --------
    >>> from skdplda import PCTD
    >>> from skdplda.semantics import SemanticUnitVectorizer, word_similarity
    >>> vectors = {"cat": [1.0, 0.0], "dog": [0.9, 0.1], "tax": [0.0, 1.0], "law": [0.1, 0.9]}
    >>> vectorizer = SemanticUnitVectorizer(unit="sentence", vocabulary=list(vectors))
    >>> X = vectorizer.transform(["A cat. A dog and a cat.", "A tax. The tax law."] * 500)
    >>> model = PCTD(n_components=2, similarity=word_similarity(vectors, vectors)).fit(X)
    >>> model.transform(X[:3]).shape
    (3, 2)
    >>> model.privacy_guarantee_
    PrivacyGuarantee(epsilon=5, delta=1e-5, document, add-remove, central, proven)
    """

    _parameter_constraints = {  # noqa: RUF012
        **BaseRoundsModel._parameter_constraints,
        "prior": PUBLIC_PRIOR,
        "noise_on": [StrOptions({"statistics", "units"})],
        "similarity": ["sparse matrix", "array-like", None],
        "tau": [Interval(Real, 0, 1e6, closed="both")],
        "local_updates": [Interval(Integral, 1, None, closed="left"), None],
        "sampling_rate": [Interval(Real, 0, 1, closed="right")],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        epsilon: float = 5.0,
        delta: float = 1e-5,
        noise_on: Literal["statistics", "units"] = "statistics",
        similarity: Matrix | None = None,
        tau: float = 0.3,
        max_iter: int | None = None,
        local_updates: int | None = None,
        sampling_rate: float = 1.0,
        doc_topic_prior: ArrayLike | None = None,
        topic_word_prior: float | None = None,
        prior: PublicPrior | WordPrior | None = None,
        checkpoint: PathLike | None = None,
        callback: Function | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.noise_on = noise_on
        self.similarity = similarity
        self.tau = tau
        self.max_iter = max_iter
        self.local_updates = local_updates
        self.sampling_rate = sampling_rate
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.prior = prior
        self.checkpoint = checkpoint
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def transform(self, X: Any) -> np.ndarray:
        if not isinstance(X, UnitMatrix):
            return super().transform(X)
        check_is_fitted(self)
        X = self._check_width(X)
        log_phi = np.ascontiguousarray(log(self.topic_word_).T)
        n_units = max(1, TRANSFORM_CELLS // len(self.components_))
        cuts = np.flatnonzero(np.diff(X.start[:-1] // n_units)) + 1  # documents that begin a block
        bounds = pairwise([0, *cuts.tolist(), len(X)])
        return np.concatenate([self._proportions(X[begin:end], log_phi) for begin, end in bounds])

    def _proportions(self, X, log_phi):
        n_threads = effective_n_jobs(self.n_jobs)
        likelihood = matmul(X.counts, log_phi, n_threads)
        likelihood -= likelihood.max(axis=1, keepdims=True)
        return fold_in(
            X.start.astype(np.int32),
            np.arange(X.n_units, dtype=np.int32),
            np.ones(X.n_units, dtype=np.int32),
            exp(likelihood),  # each segment counts as a word, and this is its row of the table
            self._prior_of_topics(),
            FOLD_IN_ITERATIONS,
            FOLD_IN_TOLERANCE,
            n_threads,
        )

    def _counts(self, X):
        if not isinstance(X, UnitMatrix):
            return super()._counts(X)
        return self._check_width(X).to_counts()

    def _check_width(self, X):
        """Return the units, checked again; refuse those of another number of words."""
        self._check_columns(X.shape[1])
        return X.checked()

    def _read(self, X, groups, plan, randomness):
        if shards_of(X) is not None:
            if self.noise_on != "statistics" or self._exact(plan):
                raise ValueError(
                    "X must be on this machine, unless noise_on='statistics' and epsilon is finite: other fits add up"
                    " floating point numbers, and their last digits would depend on the number of workers."
                )
            data = super()._read(X, groups, plan, randomness)
        else:
            if not isinstance(X, UnitMatrix):
                X = check_counts(self, X, reset=True)
                warn(
                    "X is a plain document-term matrix: each word is a semantic unit of its own. Cut texts with"
                    " SemanticUnitVectorizer to keep words together.",
                    UserWarning,
                )
                statistics = self.noise_on == "statistics"
                X = UnitMatrix.from_counts(shortened(X)) if statistics else shuffled_segments(X, randomness)
            elif len(X.checked()) == 0 or X.shape[1] == 0:
                raise ValueError(f"X must have documents and words; got shape {X.shape}.")
            else:
                self._set_columns(X.shape[1], words_of(X))
                X = shortened(X) if self.noise_on == "statistics" else X
            units = None if groups is None else check_groups(groups, len(X))
            contents = X.start, X.counts.indptr, X.counts.indices, X.counts.data, *(units or ())
            data = TrainingData(X, units, groups is not None, contents, self._vocabulary())
        similarity = self._similarity(data.n_words)
        if similarity is not None:
            contents = similarity.indptr, similarity.indices, similarity.data
            data = data._replace(contents=(*data.contents, *contents))
        return data

    def _exact(self, plan):
        """Whether each token counts 1, because nothing is bounded and nothing is sampled."""
        return plan.noiseless and plan.sampling_rate == 1

    def _similarity(self, n_words):
        """Return the similarity as CSR of floats, or None."""
        if self.similarity is None:
            return None
        check_structure(self.similarity, "similarity")
        similarity = sp.csr_array(self.similarity, dtype=np.float64)
        if similarity.shape != (n_words, n_words):
            raise ValueError(
                f"similarity must have one row and one column for each of the {n_words} words; got shape"
                f" {similarity.shape}. Give word_similarity the vocabulary of X."
            )
        if not (np.isfinite(similarity.data).all() and (similarity.data >= 0).all()):
            raise ValueError("similarity must be finite and not negative; word_similarity leaves out what is below 0.")
        largest = similarity.data.max(initial=0.0) or 1.0  # eq. (11) does not depend on the scale
        return sp.csr_array((similarity.data / largest, similarity.indices, similarity.indptr), shape=similarity.shape)

    def _plan(self):
        """Return the noise of the fit, from the parameters alone."""
        self._doc_topic_prior()
        self._topic_word_prior()
        self._check_prior(self.noise_on == "statistics" and self.sampling_rate == 1)
        if self.noise_on == "statistics":
            rounds = self.max_iter or (PRIVATE_ROUNDS if np.isfinite(self.epsilon) else EXACT_ROUNDS)
            return NoisePlan.calibrate("gaussian", self.epsilon, self.delta, rounds, self.sampling_rate)
        if self.sampling_rate < 1:
            raise ValueError(f"sampling_rate must be 1.0 for noise_on={self.noise_on!r}; got {self.sampling_rate!r}.")
        if self.checkpoint is not None:
            raise ValueError(f"checkpoint must be None for noise_on={self.noise_on!r}: this form runs in one piece.")
        return NoisePlan.calibrate("gaussian", self.epsilon, self.delta, 1, 1.0)

    def _guarantee(self, unit, plan):
        if unit == "user" and self.noise_on != "statistics":
            raise ValueError(
                f"groups must be None for noise_on={self.noise_on!r}, which protects single words; got groups."
                " noise_on='statistics' protects all documents of a user."
            )
        public = () if self.similarity is None else (SIMILARITY,)
        if self.noise_on == "statistics":
            guarantee = rounds_guarantee(
                plan,
                unit,
                self.epsilon,
                self.delta,
                hidden="",
                reference=GUIDE,
                assumptions=(*self._prior_assumption(), *public),
                priors=("doc_topic_prior_",) if not plan.noiseless and self._reorders_prior() else (),
            )
        else:
            guarantee = once_guarantee(plan, self.epsilon, self.delta, public)
        return seeded_guarantee(guarantee, self.random_state)

    def _uses_prior(self, plan):
        return self.noise_on == "statistics" and not plan.noiseless

    def _prior_mass(self):
        return np.inf if np.isinf(self.epsilon) or self.noise_on != "statistics" else PRIOR_MASS

    def _settings(self, bounded, n_updates):
        """Return the parameters that all E-steps have."""
        priors = {"alpha": self._doc_topic_prior(), "beta": self._topic_word_prior()}
        return {"n_topics": self.n_components, "bounded": bounded, "n_updates": n_updates, **priors}

    def _make_e_step(self, plan, randomness, data):
        exact = self._exact(plan)
        updates = self.local_updates or (EXACT_UPDATES if exact else PRIVATE_UPDATES)
        return partial(SegmentEStep, **self._settings(not exact, updates))

    def _make_tables(self, plan, randomness, data):
        shape, similarity = (data.n_words, self.n_components), self._similarity(data.n_words)
        if self.noise_on == "statistics" and not self._exact(plan):
            return ConsistentTables(shape, plan, randomness.table_key, similarity, self.tau, data.prior)
        return LastTable(shape, randomness.table_key, similarity, self.tau)

    def _in_rounds(self):
        return self.noise_on == "statistics"

    def _run(self, plan, guarantee, randomness, data, charge, callback):
        if self.noise_on == "statistics":
            return super()._run(plan, guarantee, randomness, data, charge, callback)
        charge.charge(uuid4().hex)
        documents, e_step = self._noisy(plan, randomness, data.documents)
        rounds = self.max_iter or EXACT_ROUNDS
        e_step = e_step(documents, randomness=randomness, n_threads=effective_n_jobs(self.n_jobs))
        tables = self._make_tables(plan, randomness, data)
        no_noise = NoisePlan("gaussian", 1.0, (0.0,) * rounds, None)  # the documents, or the E-step, have the noise
        asks, options = rounds_of(tables, rounds), {"callback": callback, "verbose": self.verbose}
        answer_exactly(asks, e_step, Spending(no_noise), randomness, **options)
        return self._model_of(tables, rounds)

    def _noisy(self, plan, randomness, X):
        """Return the units and what makes their E-step, one of which has the noise."""
        sigma, n_threads = Spending(plan).take() * TOKEN_L2, effective_n_jobs(self.n_jobs)
        make = partial(SegmentEStep, **self._settings(False, self.local_updates or EXACT_UPDATES))
        return noisy_segments(X, sigma, randomness, n_threads), make

    def _set_fitted(self, guarantee, components_, **attributes):
        super()._set_fitted(guarantee, components_, **attributes)
        if self.noise_on == "units" and np.isfinite(self.epsilon) and np.ptp(components_) == 0:
            warn(
                f"no word stands out of noise of standard deviation {self._plan().multipliers[0] * TOKEN_L2:.3g} on"
                " each count: the topics are noise. Use noise_on='statistics', or a larger epsilon, a smaller"
                " vocabulary or longer units.",
                UserWarning,
            )


def shuffled_segments(X, randomness):
    """Return the tokens of word counts as semantic units of one word each, in a secret random order.

    The guarantee is for one word replaced in its unit. In the order of words, a replaced word would change its place in
    the document, and with it the units of all words between; in a random order, all arrangements of the other words
    stay as likely as they were.
    """
    key = randomness.draw_key()
    starts, words = tokens_of(some_tokens(X, key))
    order_tokens(starts, words, key)
    ones = np.ones(len(words), np.int32), words, np.arange(len(words) + 1)
    return UnitMatrix(starts, sp.csr_array(ones, shape=(len(words), X.shape[1])))
