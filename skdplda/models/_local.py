"""Topics from randomized reports: LP-LDA, its online form OLP-LDA, and the likelihood of the noisy bits."""

import math
import warnings
from contextlib import closing, nullcontext
from numbers import Integral, Real
from typing import Any, Literal, Self
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from skdplda._kernels._reports import positions
from skdplda._types import ArrayLike, Matrix, Seed
from skdplda._validation import (
    SEED,
    Interval,
    StrOptions,
    check_counts,
    check_groups,
    check_prior,
    effective_n_jobs,
    fit_context,
    note_parameters,
)
from skdplda.distributed import load_documents, shards_of
from skdplda.local import BitChannel, LocalRandomizer, randomize_bits
from skdplda.models._base import BaseTopicModel
from skdplda.models._local_estimators import (
    bayes_estimate,
    document_lengths,
    moment_estimate,
    moment_variance,
    reconstruct,
)
from skdplda.models._local_sampler import Bits, ShardedBits, like_length, presence, refuse_raw
from skdplda.privacy import BudgetCharge, PrivacyGuarantee, Randomness, active_accountant, seeded_guarantee
from skdplda.rounds._tables import annealed, initial_table

__all__ = ["LocalPrivateLDA"]

SWEEPS = 100
KEPT_TABLES = 10  # about as many are averaged
GROUPS, GROUP_SIZE = 8, 32  # of documents of like length: at most as many, and of at least this size
STEADY = 2.0**24  # tokens and prior of the noise topic: so many that its weight stays what it is


class LocalPrivateLDA(BaseTopicModel):
    """Latent Dirichlet allocation from randomized reports: private from the user's device on.

    Each user randomizes which words of a public vocabulary the document has, and sends only that (`LocalRandomizer`).
    The server never sees a document; whatever it computes costs nothing more. `fit` is LP-LDA [1]_ [2]_, `partial_fit`
    its online form, OLP-LDA [2]_, which streams forever in the memory of one batch.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Affects privacy: no.
    randomizer : LocalRandomizer or None, default=None
        The law of the reports. None: `LocalRandomizer()`. `bit_epsilon=inf` is the non-private model on the same code.
        Affects privacy: yes.
    input : {"counts", "reports"}, default="counts"
        "reports": X was randomized on the users' devices, as `randomizer` says; a batch with fewer ones than noise
        alone makes is refused. "counts": a simulation; X holds raw
        counts, which are randomized first and then forgotten. Each such fit is one more report of each user.
        Affects privacy: yes.
    reconstruction : {"likelihood", "bayes", "moment"}, default="likelihood"
        Affects privacy: no.

        * "moment": estimate in how many documents each word is, insert or delete random bits until that many have
          it, and sample topics as if they were true [2]_.
        * "bayes": the same, the estimates shrunk towards earlier batches and the prior corpus, eq. 19 of [2]_. A first
          batch without a prior corpus has nothing to be shrunk to.
        * "likelihood": sample with each topic whether a bit is the document's word or noise, as the law of the
          reports makes it likely; the best of the three. In the spirit of [3]_.
    max_iter : int, default=100
        Gibbs sweeps a fit, or a batch. Affects privacy: no.
    doc_topic_prior : float, array-like of shape (n_components,) or None, default=None
        Dirichlet prior of topic proportions, called alpha in [2]_. None: 0.1. Affects privacy: no.
    topic_word_prior : float or None, default=None
        Dirichlet prior of topics, called beta in [2]_. None: 0.01. A first batch of "likelihood" multiplies it
        by the standard deviation of a topic's count of one word, noise included. Affects privacy: no.
    correlation : float, default=0.5
        How much the topic-word counts of a batch weigh in the prior of later ones, called lambda in eq. 10 of [2]_.
        Affects privacy: no.
    prior_weight : float or None, default=None
        Of the prior mean for "bayes", called omega in eq. 19 of [2]_. None: estimated. Affects privacy: no.
    n_jobs : int or None, default=None
        Threads, as in joblib. Same result for any number. Affects privacy: no.
    random_state : int, bytes, RandomState or None, default=None
        None takes fresh entropy from the operating system. For input="counts" anything else warns, and the guarantee is
        proven only for a secret of 16 random bytes or more. Affects privacy: yes.
    verbose : int, default=0
        Progress bar if positive. Affects privacy: no.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_words)
        Topic-word pseudo-counts, the priors included. For "likelihood" a word that is present counts p - q, the
        probability that its bit tells so.
    topic_word_ : ndarray of shape (n_components, n_words)
        `components_` with rows scaled to sum to 1.
    stream_prior_ : ndarray of shape (n_components, n_words)
        What the next `partial_fit` adds to `topic_word_prior`: `correlation` times the sum of past counts, eq. 11
        of [2]_.
    word_rates_ : ndarray of shape (n_words,)
        Share of the documents of the next batch in which each word is expected, eq. 21 of [2]_.
    privacy_guarantee_ : PrivacyGuarantee
        What was promised to each user for the document as a whole; print it for a statement to publish.
    bit_guarantee_ : PrivacyGuarantee
        The same promise for one word of the document.
    n_iter_ : int
        Gibbs sweeps of the last batch.
    n_batches_ : int
        Batches seen.
    n_features_in_ : int
        Number of words.
    feature_names_in_ : ndarray of shape (n_words,)
        Words, if X was a data frame.

    See Also
    --------
    skdplda.local.LocalRandomizer : The user's half.
    skdplda.local.read_reports : From files to X.

    References
    ----------
    .. [1] Zhao, Ren, Yang and Yang (2019). On Privacy Protection of Latent Dirichlet Allocation Model Training.
       IJCAI. Section 3.2.
    .. [2] Zhao, Ren, Yang, Han, Zhao and Yang (2021). Latent Dirichlet Allocation Model Training With Differential
       Privacy. IEEE TIFS 16. Sections V and VI, Algorithm 2.
    .. [3] Schein, Wu, Schofield, Zhou and Wallach (2019). Locally Private Bayesian Inference for Count Models. ICML.

    Examples
    --------
    >>> from skdplda import LocalPrivateLDA
    >>> from skdplda.datasets import make_lda_corpus
    >>> from skdplda.local import LocalRandomizer
    >>> X = make_lda_corpus(2000, 100, 4, random_state=0).data
    >>> randomizer = LocalRandomizer(bit_epsilon=2.0, max_words=20)
    >>> model = LocalPrivateLDA(n_components=4, randomizer=randomizer, max_iter=20).fit(X)
    >>> model.transform(X[:3]).shape
    (3, 4)
    >>> model.privacy_guarantee_
    PrivacyGuarantee(epsilon=80, delta=0, document, replace, local, proven)
    >>> model.bit_guarantee_
    PrivacyGuarantee(epsilon=3.953, delta=0, bit, replace, local, proven)
    """

    _parameter_constraints = {  # noqa: RUF012
        "n_components": [Interval(Integral, 1, 65533, closed="both")],
        "randomizer": [LocalRandomizer, None],
        "input": [StrOptions({"counts", "reports"})],
        "reconstruction": [StrOptions({"likelihood", "bayes", "moment"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "doc_topic_prior": [Real, "array-like", None],
        "topic_word_prior": [Real, None],
        "correlation": [Interval(Real, 0, 1, closed="both")],
        "prior_weight": [Interval(Real, 0, 1, closed="both"), None],
        "n_jobs": [Integral, None],
        "random_state": SEED,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        randomizer: LocalRandomizer | None = None,
        input: Literal["counts", "reports"] = "counts",
        reconstruction: Literal["likelihood", "bayes", "moment"] = "likelihood",
        max_iter: int = SWEEPS,
        doc_topic_prior: ArrayLike | None = None,
        topic_word_prior: float | None = None,
        correlation: float = 0.5,
        prior_weight: float | None = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.randomizer = randomizer
        self.input = input
        self.reconstruction = reconstruction
        self.max_iter = max_iter
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.correlation = correlation
        self.prior_weight = prior_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Matrix, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Fit the topics to one batch, and forget what was fitted before, a public prior corpus included.

        With `input="counts"`, the budget of an open `PrivacyAccountant` is checked before X is read and charged before
        the reports are made. Reports were paid for on the device: a fit to them costs nothing more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), ShardedCounts or Dask collection
            Reports (ones and zeros), or word counts; see `input`. Reports of a `skdplda.distributed.ShardedCounts`, or
            of what it takes, stay on their workers, for `reconstruction="likelihood"`.
        y : None
            Ignored.
        groups : array-like of shape (n_documents,), default=None
            The user of each document, to check that none sends more than `reports_per_user`.

        Returns
        -------
        self : LocalPrivateLDA
            The fitted estimator.

        Raises
        ------
        BudgetExceededError
            If an open accountant cannot afford the reports. No data were read.
        ValueError
            For parameters or data that are not as described.
        """
        return self._fit_batch(X, groups, first=True)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Matrix, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Go on with another batch: OLP-LDA; without noise O-LDA.

        Users of different batches are taken to be different ones, or to be within `reports_per_user` altogether: the
        server keeps no list. What is kept does not grow with the number of batches. A batch that fails leaves the
        model as it was. An open `PrivacyAccountant` is charged for each batch of raw counts: it knows no users, and
        adds up what would not add up for different ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            As in `fit`.
        y : None
            Ignored.
        groups : array-like of shape (n_documents,), default=None
            As in `fit`.

        Returns
        -------
        self : LocalPrivateLDA
            The estimator.

        Raises
        ------
        BudgetExceededError
            As in `fit`.
        ValueError
            As in `fit`, or if the randomizer is not the one of earlier batches.
        """
        return self._fit_batch(X, groups, first=not hasattr(self, "components_"))

    @fit_context(prefer_skip_nested_validation=True)
    def fit_prior(self, X: Matrix) -> Self:
        """Start a stream from a public corpus, which gets no guarantee; `partial_fit` goes on from it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts of public documents, called D_0 in Algorithm 2 of the paper. They are not randomized.

        Returns
        -------
        self : LocalPrivateLDA
            The estimator.

        Raises
        ------
        ValueError
            For parameters or data that are not as described.
        """
        X = presence(check_counts(self, X, reset=True))
        exact = BitChannel(math.inf, "symmetric", X.shape[1])
        promises = self._promises(X.shape[1])
        beta = self._topic_word_prior()
        counts = self._sample(X, exact, None, beta, Randomness(self.random_state, type(self).__name__), 0)
        rates = np.asarray(X.sum(axis=0)).ravel() / X.shape[0]
        self._keep(counts, np.zeros_like(counts), beta, rates, 0, promises)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def privacy_cost(
        self, n_words: int | None = None, *, unit: Literal["document", "user", "bit"] = "document"
    ) -> PrivacyGuarantee:
        """What is promised to a user, without data.

        Parameters
        ----------
        n_words : int or None, default=None
            Size of the vocabulary; needed for unit "document" and "user" unless `max_words` is at most half of it.
        unit : {"document", "user", "bit"}, default="document"
            What is protected.

        Returns
        -------
        guarantee : PrivacyGuarantee
            `privacy_guarantee_` after the fit; for "bit", `bit_guarantee_`.

        Raises
        ------
        ValueError
            If the size of the vocabulary is needed and not given.
        """
        randomizer = self._randomizer()
        if n_words is None:
            if randomizer.max_words is None and unit != "bit":
                raise ValueError(
                    "n_words must be given: without max_words in the randomizer a document's loss grows with the"
                    " vocabulary."
                )
            n_words = 2 * (randomizer.max_words or 1)
        return self._promise(n_words, unit)

    def _doc_topic_prior(self):
        return check_prior("doc_topic_prior", self.doc_topic_prior, 0.1, self.n_components)

    def _topic_word_prior(self, noise=0.0):
        """Return the prior, in proportion to the standard deviation of the count of a word that comes once."""
        return check_prior("topic_word_prior", self.topic_word_prior, 0.01) * math.sqrt(1 + noise)

    def _randomizer(self):
        return LocalRandomizer() if self.randomizer is None else self.randomizer

    def _promises(self, n_words):
        return self._promise(n_words, "document"), self._promise(n_words, "bit")

    def _promise(self, n_words, unit):
        randomizer = self._randomizer()
        guarantee = randomizer.channel(n_words).guarantee(unit)
        if self.input == "reports":
            return guarantee
        return seeded_guarantee(guarantee, self.random_state, randomizer.random_state)

    def _fit_batch(self, X, groups, first):
        """Randomize if need be, check, denoise, sample, and only then change the estimator."""
        randomizer = self._randomizer()
        self._doc_topic_prior()
        check_prior("topic_word_prior", self.topic_word_prior, 0.01)
        n_words = np.prod(getattr(X, "shape", ())[1:], dtype=int)  # public, unlike what X holds
        if self.input == "counts":
            active_accountant()  # refuses, where a ledger cannot be reached
            if n_words:
                self._budget_charge(n_words).check()
        sharded = self._sharded(X, first)
        X = sharded or check_counts(self, X, reset=first)
        n_documents, n_words = X.shape
        channel, promises = randomizer.channel(n_words), self._promises(n_words)
        self._check_users(groups, n_documents, channel.reports_per_user)
        if not first and self.n_batches_ and promises != (self.privacy_guarantee_, self.bit_guarantee_):
            raise ValueError(
                "partial_fit must go on with what it began with (randomizer, input, and whether there is a seed): one"
                f" guarantee has to hold for the users of all batches. It was {self.privacy_guarantee_!r}. Use fit to"
                " begin anew."
            )
        if self.n_components > n_words:
            warnings.warn(
                f"n_components={self.n_components} exceeds the {n_words} words of X: some topics will be alike or"
                " empty. Use at most as many topics as words.",
                UserWarning,
                stacklevel=4,
            )
        randomness, batch = Randomness(self.random_state, type(self).__name__), 0 if first else self.n_batches_
        n_threads = effective_n_jobs(self.n_jobs)
        if self.input == "counts":
            if channel.flips:
                randomness.warn_if_seeded(self)
            self._budget_charge(n_words).charge(uuid4().hex)
            source = randomness if randomness.seeded else Randomness(randomizer.seed(), "LocalPrivateLDA reports")
            indptr, indices = positions(randomize_bits(X, channel, source.noise(batch), n_threads))
            X = sp.csr_array((np.ones(len(indices), np.int32), indices, indptr), shape=X.shape)
        elif not sharded and X.nnz and X.data.max() > 1:
            raise ValueError(
                f"X must hold presence bits, ones and zeros, for input='reports'; got a count of {X.data.max()}. Use"
                " input='counts' to randomize raw counts."
            )
        elif not sharded:
            X = presence(X)
        prior = np.zeros((self.n_components, n_words)) if first else self.stream_prior_
        rates = None if first else self.word_rates_
        with closing(sharded.pool) if sharded else nullcontext():
            if sharded:
                X = ShardedBits(sharded, self.n_components + int(channel.one_if_absent > 0))
            ones = np.asarray(X.ones() if sharded else X.sum(axis=0), dtype=np.float64).ravel()
            if self.input == "reports":
                refuse_raw(ones.sum(), n_documents * n_words, channel)
            moment = moment_estimate(ones, n_documents, channel, clip=False)
            present = self._estimate(moment, n_documents, channel, rates)
            if self.reconstruction != "likelihood":  # from here on the bits pass for the truth
                X = reconstruct(X, present, np.random.default_rng([randomness.key, batch]))
                channel = BitChannel(math.inf, "symmetric", n_words)
            noise = 0.0 if prior.any() else float(moment_variance(0, n_documents / self.n_components, channel))
            beta = self._topic_word_prior(noise)
            counts = self._sample(X, channel, prior, beta, randomness, batch)
        found = present / n_documents
        self._keep(counts, prior, beta, found if rates is None else (rates + found) / 2, batch + 1, promises)
        return self

    def _sharded(self, X, first):
        """Return reports that lie on workers, else None."""
        if shards_of(X) is None:
            return None
        if self.input != "reports" or self.reconstruction != "likelihood":
            raise ValueError(
                "X must be on this machine, unless input='reports' and reconstruction='likelihood': raw counts are"
                " randomized where they are made, and the other reconstructions rewrite all reports at once."
            )
        sharded = load_documents(X, n_threads=self.n_jobs if self.n_jobs and self.n_jobs > 0 else None)
        if first:
            self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
            self.n_features_in_ = sharded.shape[1]
        elif sharded.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {sharded.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_}"
                " features as input."
            )
        return sharded

    def _budget_charge(self, n_words):
        return BudgetCharge(self._promises(n_words)[0], f"{type(self).__name__} reports")

    def _check_users(self, groups, n_documents, most):
        if groups is None:
            return
        start, _ = check_groups(groups, n_documents)
        if np.diff(start).max() > most:
            raise ValueError(
                f"groups has a user with more than reports_per_user={most} reports: the guarantee would not hold. Leave"
                " out the other reports, or declare them in the randomizer on every device."
            )

    def _estimate(self, moment, n_documents, channel, rates):
        """Return in how many documents each word is taken to be, eq. 8 or 19 of the paper."""
        if self.reconstruction != "bayes" or not channel.flips or rates is None:
            return np.clip(moment, 0, n_documents)
        return bayes_estimate(moment, n_documents, channel, rates * n_documents, self.prior_weight)

    def _sample(self, X, channel, prior, beta, randomness, batch):
        """Return the mean topic-word counts of the bits that are words, not noise: (n_components, n_words).

        The noise is a topic of its own. Given theta and phi, the bit of a word is 1 with probability
        q + (p - q) * length * theta . phi_w, so a 1 is noise with weight q, and is topic k's word with weight
        (p - q) length theta_k phi_kw. The length, with a gamma prior, is summed out with theta: a topic's weight is
        s (n_dk + alpha_k) phi_kw, s = (p - q) / (p - q + sum(alpha) / prior mean of the length). That mean is
        estimated for each document, and shared by a group of documents of like length.
        """
        n_words, n_topics, n_threads = X.shape[1], self.n_components, effective_n_jobs(self.n_jobs)
        warm = prior is not None and prior.any()
        alpha, p, q = self._doc_topic_prior(), channel.one_if_present, channel.one_if_absent
        noisy = int(q > 0)
        bits = X if isinstance(X, ShardedBits) else Bits(X, n_topics + noisy, n_threads)
        group, lengths, streams = np.zeros(X.shape[0], np.uint8), [math.nan], 1
        if noisy:
            expected, streams = document_lengths(bits.sizes(), n_words, channel), GROUPS
            group, lengths = like_length(expected, GROUPS, GROUP_SIZE)
        bits.divide(group)
        prior = None if prior is None else np.ascontiguousarray(prior.T, dtype=np.float32)
        table = np.ascontiguousarray(initial_table((n_words, n_topics + noisy), randomness.table_key))
        if warm:
            table[:, :n_topics] = prior
        kept, n_kept, stride = np.zeros((n_words, n_topics)), 0, max(1, self.max_iter // (2 * KEPT_TABLES))
        for sweep in tqdm(range(self.max_iter), disable=not self.verbose):
            a, b = (alpha, beta) if warm else annealed(alpha, beta, n_topics, sweep, self.max_iter)
            weight = np.full(n_topics + noisy, STEADY, np.float32)
            weight[:n_topics] = a
            if noisy:
                table[:, n_topics] = STEADY
            totals = table.sum(axis=0, dtype=np.float64)
            of_groups = np.tile(totals, (len(lengths), 1))
            if noisy:
                s = (p - q) / (p - q + a.sum() / np.array(lengths))
                of_groups[:, n_topics] = (STEADY + b) * STEADY * s / q - n_words * b
            number = streams * (batch * self.max_iter + sweep)
            counts = bits.draw(table, weight, b, randomness.key, number, of_groups)
            table = counts.astype(np.float32)
            if prior is not None:
                table[:, :n_topics] += prior
            if 2 * sweep >= self.max_iter - 1 and (self.max_iter - 1 - sweep) % stride == 0:
                kept += counts[:, :n_topics]
                n_kept += 1
        return np.ascontiguousarray(kept.T) / n_kept

    def _keep(self, counts, prior, beta, rates, n_batches, promises):
        """Take the result of a batch: eq. 10, 13 and 21 of the paper."""
        self.components_ = counts + prior + beta
        self.topic_word_ = self.components_ / self.components_.sum(axis=1, keepdims=True)
        self.stream_prior_ = prior + self.correlation * counts
        self.word_rates_ = rates
        self.n_iter_, self.n_batches_ = self.max_iter, n_batches
        self.privacy_guarantee_, self.bit_guarantee_ = promises
        note_parameters(self)
