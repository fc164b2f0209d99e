"""Topics from randomized reports: LP-LDA, its online form OLP-LDA, and the likelihood of the noisy bits."""

import math
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, Literal, Self
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from tqdm import tqdm

from skdplda._arithmetic import total
from skdplda._checks import effective_n_jobs
from skdplda._kernels._reports import positions
from skdplda._types import ArrayLike, Matrix, Seed
from skdplda._validation import (
    Interval,
    StrOptions,
    check_counts,
    check_groups,
    check_memory,
    fit_context,
)
from skdplda.distributed import ShardedDocuments, shards_of
from skdplda.exact._tables import MeanTable, annealed
from skdplda.local import BitChannel, LocalRandomizer, randomize_bits
from skdplda.models._base import BaseTopicModel, warn_of_spare_topics
from skdplda.models._local_estimators import (
    bayes_estimate,
    moment_estimate,
    moment_variance,
    reconstruct,
    split_variance,
)
from skdplda.models._local_sampler import Bits, NoiseTopic, ShardedBits, presence, refuse_raw
from skdplda.models._topics import warn_of_noise
from skdplda.privacy import (
    KNOWN,
    BudgetCharge,
    PrivacyGuarantee,
    Randomness,
    active_accountant,
    seeded_guarantee,
    stated_guarantee,
)
from skdplda.rounds._tables import initial_table, signal_to_noise

FROM_REPORTS = (
    *("components_", "topic_word_", "n_iter_", "stream_prior_", "stream_variance_", "word_rates_"),
    *("signal_to_noise_ with several topics and noise", "topic_signal_to_noise_ with several topics and noise"),
)

SWEEPS = 100  # as PrivateCGSLDA without noise; not tuned


class LocalPrivateLDA(BaseTopicModel):
    """Latent Dirichlet allocation from randomized reports: private from the user's device on.

    Each user randomizes which words of a public vocabulary the document has, and sends only that (`LocalRandomizer`).
    The server never sees a document; whatever it computes costs nothing more. `fit` is LP-LDA [1]_ [2]_, `partial_fit`
    its online form, OLP-LDA [2]_, which streams forever in the memory of one batch.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics. Affects privacy: no.
    epsilon : float or None, default=None
        Privacy loss of all reports of a user, for one `epsilon_unit`: the reports have the largest `bit_epsilon` within
        it, 30 at most, in place of the randomizer's. `inf`: no noise. None: what the randomizer says. Affects privacy:
        yes.
    epsilon_unit : {"bit", "document"}, default="bit"
        What `epsilon` is for: one word of a document (`bit_guarantee_`), or the document (`privacy_guarantee_`), which
        takes `max_words_per_document` of the randomizer to leave any signal. Affects privacy: yes.
    randomizer : LocalRandomizer or None, default=None
        The law of the reports. None: `LocalRandomizer()`. `bit_epsilon=inf` for no noise. Affects privacy: yes.
    input : {"counts", "reports"}, default="counts"
        "reports": X was randomized on the users' devices, as `device_randomizer` says; a batch with fewer ones than
        noise alone makes is refused. "counts": a simulation, which randomizes raw counts first and forgets them; each
        such fit is one more report of each user. Affects privacy: yes.
    reconstruction : {"likelihood", "bayes", "moment"}, default="likelihood"
        "moment": estimate in how many documents each word is, insert or delete random bits until that many have it, and
        sample topics as if they were true [2]_. "bayes": the same, the estimates shrunk towards earlier batches and the
        prior corpus, eq. 19 of [2]_. "likelihood": sample with each topic whether a bit is the document's word or
        noise, as the law of the reports makes it likely; the best of the three, in the spirit of [3]_. Affects privacy:
        no.
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
        Threads, as in joblib; same result for any number. Affects privacy: no.
    random_state : int, bytes, RandomState or None, default=None
        None: fresh entropy. For input="counts" anything else warns, and the guarantee is proven only for a secret of 16
        random bytes or more. Affects privacy: yes.
    verbose : int, default=0
        Progress bar if positive. Affects privacy: no.

    Attributes
    ----------
    components_, topic_word_ : ndarray of shape (n_components, n_words)
        Topic-word pseudo-counts, the priors included, and the same with rows scaled to sum to 1. For "likelihood" a
        word that is present counts p - q, the probability that its bit tells so.
    stream_prior_, stream_variance_ : ndarray of shape (n_components, n_words)
        What the next `partial_fit` adds to `topic_word_prior`, `correlation` times the sum of past counts, eq. 11 of
        [2]_; and the variance of the noise in it.
    signal_to_noise_ : ndarray of shape (n_components, n_words)
        By how many standard deviations a count exceeds that of a topic with the word frequencies of all, if the reports
        had been divided among topics at random. Only with noise.
    topic_signal_to_noise_ : ndarray of shape (n_components,)
        The same for whole topics: below about 1 a topic says little. It knows the noise alone, and not chance.
    word_rates_ : ndarray of shape (n_words,)
        Share of the documents of the next batch in which each word is expected, eq. 21 of [2]_.
    privacy_guarantee_, bit_guarantee_ : PrivacyGuarantee
        What is guaranteed to each user, for the document as a whole and for one word of it.
    n_iter_, n_batches_, n_features_in_ : int
        Gibbs sweeps of the last batch, batches seen, and number of words.
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
    >>> randomizer = LocalRandomizer(bit_epsilon=2.0, max_words_per_document=20)
    >>> model = LocalPrivateLDA(n_components=4, randomizer=randomizer, max_iter=20).fit(X)
    >>> model.transform(X[:3]).shape
    (3, 4)
    >>> model.privacy_guarantee_
    PrivacyGuarantee(epsilon=80, delta=0, document, replace, local, proven)
    >>> model.bit_guarantee_
    PrivacyGuarantee(epsilon=3.953, delta=0, bit, replace, local, proven)

    A whole document within 30, which leaves 0.75 for each bit:

    >>> model.set_params(epsilon=30.0, epsilon_unit="document").privacy_cost(n_words=100)
    PrivacyGuarantee(epsilon=30, delta=0, document, replace, local, proven)
    >>> model.device_randomizer(n_words=100).bit_epsilon
    0.75
    """

    _beside_released = {"bit_guarantee_": KNOWN, "n_batches_": KNOWN}  # noqa: RUF012

    _parameter_constraints = {  # noqa: RUF012
        **BaseTopicModel._parameter_constraints,
        "n_components": [Interval(Integral, 1, 65533, closed="both")],
        "epsilon": [Interval(Real, 0, None, closed="right"), None],
        "epsilon_unit": [StrOptions({"bit", "document"})],
        "randomizer": [LocalRandomizer, None],
        "input": [StrOptions({"counts", "reports"})],
        "reconstruction": [StrOptions({"likelihood", "bayes", "moment"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "correlation": [Interval(Real, 0, 1, closed="both")],
        "prior_weight": [Interval(Real, 0, 1, closed="both"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        epsilon: float | None = None,
        epsilon_unit: Literal["bit", "document"] = "bit",
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
        self.epsilon = epsilon
        self.epsilon_unit = epsilon_unit
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
        the reports are made. Reports were charged on the device: a fit to them costs nothing more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), ShardedCounts or Dask collection
            Reports (ones and zeros), or word counts; see `input`. Reports of a `skdplda.distributed.ShardedCounts`, or
            of what it takes, stay on their workers, for `reconstruction="likelihood"`.
        y : ignored
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
        X, y, groups : as in `fit`
            Another batch; as in `fit`.

        Returns
        -------
        self : LocalPrivateLDA
            The estimator.

        Raises
        ------
        BudgetExceededError, ValueError
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
        guarantees = self._guarantees(X.shape[1])
        beta = self._topic_word_prior()
        counts = self._sample(X, exact, None, beta, Randomness(self.random_state, type(self).__name__), 0)
        rates = np.asarray(X.sum(axis=0)).ravel() / X.shape[0]
        self._set_stream(guarantees, counts, np.zeros_like(counts), beta, rates, 0)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def privacy_cost(
        self,
        *,
        groups: bool = False,
        n_words: int | None = None,
        unit: Literal["document", "user", "bit"] = "document",
    ) -> PrivacyGuarantee:
        """State the guarantee of a user, without data.

        Parameters
        ----------
        groups : bool, default=False
            Whether `fit` will be given groups. It makes no difference: the guarantee is for all reports of a user.
        n_words : int or None, default=None
            Size of the vocabulary; needed for, or with `epsilon` of, a "document" or "user" unless
            `max_words_per_document` is at most half of it.
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
        of_document = unit != "bit" or (self.epsilon is not None and self.epsilon_unit != "bit")
        return stated_guarantee(self, self._guarantee(self._randomizer()._known_size(n_words, of_document), unit))

    def _default_epsilon(self):
        return LocalRandomizer().bit_epsilon if self.randomizer is None and self.epsilon_unit == "bit" else None

    def _would_help(self):
        if self.epsilon is not None:
            return f"more sweeps than {self.max_iter} or {super()._would_help()}"
        bit = (self.randomizer or LocalRandomizer()).bit_epsilon
        return f"more sweeps than {self.max_iter} or a larger bit_epsilon than {bit:.4g}, that of the reports"

    @fit_context(prefer_skip_nested_validation=True)
    def device_randomizer(self, n_words: int) -> LocalRandomizer:
        """Return the randomizer that users' devices need: the parameter, with the noise that `epsilon` asks for.

        Parameters
        ----------
        n_words : int
            Size of the public vocabulary.

        Returns
        -------
        randomizer : LocalRandomizer
            A new one, without a seed, which all devices would share.

        Raises
        ------
        ValueError
            If `epsilon` is too small for so many words.
        """
        randomizer = clone(self._randomizer()).set_params(random_state=None)
        if self.epsilon is None:
            return randomizer
        law = randomizer.mechanism, int(n_words), randomizer.max_words_per_document, randomizer.reports_per_user
        return randomizer.set_params(bit_epsilon=bit_epsilon_of(float(self.epsilon), self.epsilon_unit, *law))

    def _channel(self, n_words):
        return self.device_randomizer(n_words).channel(n_words)

    def _topic_word_prior(self, noise=0.0):
        """Return the prior, in proportion to the standard deviation of the count of a word that comes once."""
        return super()._topic_word_prior() * math.sqrt(1 + noise)

    def _randomizer(self):
        return LocalRandomizer() if self.randomizer is None else self.randomizer

    def _guarantees(self, n_words):
        """Return the guarantees for a document and for a bit."""
        document, bit = (stated_guarantee(self, self._guarantee(n_words, unit)) for unit in ("document", "bit"))
        return document, bit

    def _guarantee(self, n_words, unit):
        randomizer = self._randomizer()
        guarantee = stated_guarantee(randomizer, self._channel(n_words).guarantee(unit))
        guarantee = replace(guarantee, released=(*guarantee.released, *FROM_REPORTS))
        if self.input == "reports":
            return guarantee
        return seeded_guarantee(guarantee, self.random_state, randomizer.random_state)

    def _fit_batch(self, X, groups, first):
        """Check, randomize if need be, estimate and sample a batch; only then change the estimator."""
        self._check_budget(X)
        sharded = self._sharded(X, first)
        X = sharded or check_counts(self, X, reset=first)
        n_documents, n_words = X.shape
        guarantees, channel = self._guarantees(n_words), self._channel(n_words)
        self._check_users(groups, n_documents, channel.reports_per_user)
        if not first:
            self._check_stream(guarantees)
        check_memory(self.n_components, n_words)
        warn_of_spare_topics(self.n_components, n_words)
        randomness, batch = Randomness(self.random_state, type(self).__name__), 0 if first else self.n_batches_
        prior = np.zeros((self.n_components, n_words)) if first else self.stream_prior_
        rates = None if first else self.word_rates_
        with closing(sharded.pool) if sharded else nullcontext():
            reports = self._reports(X, channel, randomness, batch)
            present = self._present(reports, channel, rates)
            if self.reconstruction != "likelihood":  # the reconstructed bits are then taken as exact
                reports = reconstruct(reports, present, np.random.default_rng([randomness.key, batch]))
                channel = BitChannel(math.inf, "symmetric", n_words)
            noise = 0.0 if prior.any() else float(moment_variance(0, n_documents / self.n_components, channel))
            beta = self._topic_word_prior(noise)
            counts = self._sample(reports, channel, prior, beta, randomness, batch)
        found = present / n_documents
        rates = found if rates is None else (rates + found) / 2
        variance = self._noise_of_batch(counts, present, n_documents)
        self._set_stream(guarantees, counts, prior, beta, rates, batch + 1, variance, first)
        warn_of_noise(self)
        return self

    def _noise_of_batch(self, counts, present, n_documents):
        """Return the variance of the counts of a batch, (n_components, n_words), if topics said nothing."""
        channel, masses = self._channel(counts.shape[1]), total(counts, axis=1)
        variance = split_variance(present, n_documents, masses / max(total(masses), 1e-300), channel).T
        if self.reconstruction != "likelihood":  # a word counts 1 there, and not p - q
            told = channel.one_if_present - channel.one_if_absent
            variance = variance / (told * told)
        return variance if channel.flips else np.zeros_like(variance)

    def _check_budget(self, X):
        """Refuse bad priors, and raw counts that an open ledger cannot afford, before X is read."""
        self._doc_topic_prior()
        self._topic_word_prior()
        n_words = np.prod(getattr(X, "shape", ())[1:], dtype=int)  # public, unlike what X holds
        if self.input == "counts":
            active_accountant()  # refuses, where a ledger cannot be reached
            if n_words:
                self._budget_charge(n_words).check()

    def _sharded(self, X, first):
        """Return reports that lie on workers, else None."""
        if shards_of(X) is None:
            return None
        if self.input != "reports" or self.reconstruction != "likelihood":
            raise ValueError(
                "X must be on this machine, unless input='reports' and reconstruction='likelihood': raw counts are"
                " randomized where they are made, and the other reconstructions rewrite all reports at once."
            )
        return self._load_on_workers(X, reset=first)

    def _budget_charge(self, n_words):
        return BudgetCharge(self._guarantees(n_words)[0], f"{type(self).__name__} reports", self)

    def _check_users(self, groups, n_documents, most):
        """Refuse batches in which a user has more reports than the guarantee covers."""
        if groups is None:
            return
        start, _ = check_groups(groups, n_documents)
        if np.diff(start).max() > most:
            raise ValueError(
                f"groups has a user with more than reports_per_user={most} reports: the guarantee would not hold. Leave"
                " out the other reports, or declare them in the randomizer on every device."
            )

    def _check_stream(self, guarantees):
        """Refuse a batch with another guarantee than those before: one has to hold for the users of all batches."""
        began = (self.privacy_guarantee_, self.bit_guarantee_) if self.n_batches_ else guarantees
        if guarantees != began or any(a.mechanism != b.mechanism for a, b in zip(guarantees, began, strict=True)):
            raise ValueError(
                "partial_fit must go on with what it began with (randomizer, input, and whether there is a seed): one"
                f" guarantee has to hold for the users of all batches. It was {self.privacy_guarantee_!r}. Use fit to"
                " begin anew."
            )

    def _reports(self, X, channel, randomness, batch):
        """Return the reports of a batch: X itself, once it looks like reports, or X randomized and charged."""
        n_topics, n_threads = self.n_components + int(channel.one_if_absent > 0), effective_n_jobs(self.n_jobs)
        if self.input == "counts":
            if channel.flips:
                randomness.warn_if_seeded(self)
            self._budget_charge(X.shape[1]).charge(uuid4().hex)
            seed = self._randomizer()._seed(batch, X, randomness if randomness.seeded else None)
            indptr, indices = positions(randomize_bits(X, channel, seed, n_threads))
            return sp.csr_array((np.ones(len(indices), np.int32), indices, indptr), shape=X.shape)
        if isinstance(X, ShardedDocuments):
            X = ShardedBits(X, n_topics)
        elif X.nnz and X.data.max() > 1:
            raise ValueError(
                f"X must hold presence bits, ones and zeros, for input='reports'; got a count of {X.data.max()}. Use"
                " input='counts' to randomize raw counts."
            )
        else:
            X = presence(X)
        refuse_raw(column_sums(X).sum(), X.shape[0] * X.shape[1], channel)
        return X

    def _present(self, reports, channel, rates):
        """Return in how many documents each word is taken to be, eq. 8 or 19 of the paper."""
        n_documents = reports.shape[0]
        moment = moment_estimate(column_sums(reports), n_documents, channel, clip=False)
        if self.reconstruction != "bayes" or not channel.flips or rates is None:
            return np.clip(moment, 0, n_documents)
        return bayes_estimate(moment, n_documents, channel, rates * n_documents, self.prior_weight)

    def _sample(self, X, channel, prior, beta, randomness, batch):
        """Return the mean topic-word counts of the bits that are words, not noise: (n_components, n_words)."""
        (n_documents, n_words), n_topics = X.shape, self.n_components
        warm, alpha = prior is not None and prior.any(), self._doc_topic_prior()
        noise = NoiseTopic(channel, n_topics, n_words)
        bits = X if isinstance(X, ShardedBits) else Bits(X, noise.n_columns, effective_n_jobs(self.n_jobs))
        bits.divide(noise.group(bits, n_documents))
        prior = None if prior is None else np.ascontiguousarray(prior.T, dtype=np.float32)
        table = np.ascontiguousarray(initial_table((n_words, noise.n_columns), randomness.table_key))
        if warm:
            table[:, :n_topics] = prior
        mean = MeanTable((n_words, n_topics), self.max_iter)
        for sweep in tqdm(range(self.max_iter), disable=not self.verbose):
            a, b = (alpha, beta) if warm else annealed(alpha, beta, n_topics, sweep, self.max_iter)
            weight, totals = noise.complete(table, a, b)
            number = noise.n_streams * (batch * self.max_iter + sweep)
            counts = bits.draw(table, weight, b, randomness.key, number, totals)
            mean.add(counts[:, :n_topics], sweep)
            table = counts.astype(np.float32)
            if prior is not None:
                table[:, :n_topics] += prior
        return np.ascontiguousarray(mean.value.T)

    def _set_stream(self, guarantees, counts, prior, beta, rates, n_batches, variance=0.0, first=True):
        """Set the fitted attributes after a batch: eq. 10, 13 and 21 of the paper."""
        before = np.zeros_like(counts) if first else self.stream_variance_
        total, told = before + variance, {}
        if (total > 0).any():
            cells, topics = signal_to_noise((counts + prior).T, np.sqrt(np.maximum(total, 1e-300)).T)
            told = {"signal_to_noise_": cells, "topic_signal_to_noise_": topics}
        self._set_fitted(
            guarantees[0],
            bit_guarantee_=guarantees[1],
            components_=counts + prior + beta,
            stream_prior_=prior + self.correlation * counts,
            stream_variance_=before + self.correlation * self.correlation * variance,
            **told,
            word_rates_=rates,
            n_iter_=self.max_iter,
            n_batches_=n_batches,
        )


@lru_cache(maxsize=64)
def bit_epsilon_of(epsilon, unit, *law):
    """Return the largest privacy loss of a bit within epsilon, of a report's law."""
    return BitChannel.calibrate(epsilon, unit, *law).bit_epsilon


def column_sums(reports):
    """Return how many reports have each bit, (n_words,), of reports here or on workers."""
    ones = reports.ones() if isinstance(reports, ShardedBits) else reports.sum(axis=0)
    return np.asarray(ones, dtype=np.float64).ravel()
