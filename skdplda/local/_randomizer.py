"""The client half as a scikit-learn transformer."""

from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from skdplda._checks import effective_n_jobs, is_integer
from skdplda._kernels._reports import positions
from skdplda._types import Matrix, Seed
from skdplda._validation import SEED, THREADS, Interval, StrOptions, check_counts, check_is_fitted, fit_context
from skdplda._warnings import warn
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.local._channel import MECHANISMS, BitChannel, randomize_bits
from skdplda.privacy import (
    HiddenSeedsMixin,
    PrivacyGuarantee,
    Randomness,
    is_guessable_seed,
    seeded_guarantee,
    stated_guarantee,
)


class LocalRandomizer(OneToOneFeatureMixin, TransformerMixin, HiddenSeedsMixin, BaseEstimator):
    """Randomize the presence bits of documents, so that reports can leave the device.

    Each bit tells whether a word of a public vocabulary is in the document, and is randomized by itself. Whoever sees
    a report learns little of any one word; of the whole document the more, the more words it may have.

    Parameters
    ----------
    bit_epsilon : float, default=2.0
        Privacy loss of one bit of one report, from 1e-6 to 30, or inf for no noise. A document of at most L reported
        words has min(2 L, V) times this much ("symmetric"). `bit_epsilon_of_coin` converts the f of [1]_.
        Affects privacy: yes.
    mechanism : {"symmetric", "asymmetric"}, default="symmetric"
        "symmetric": randomized response [1]_. "asymmetric": a present word's bit is a fair coin and an absent one's is
        rarely 1 [2]_; documents lose about half as much, at the same `bit_epsilon`. Affects privacy: yes.
    max_words_per_document : int or None, default=None
        A longer document reports a random part of this many of its words. None: all. With a bound, the epsilon for the
        document does not grow with the vocabulary; that for a single word becomes nearly twice as much.
        Affects privacy: yes.
    reports_per_user : int, default=1
        Reports that one user sends at most, ever; the guarantees compose them. Affects privacy: yes.
    n_jobs : int or None, default=None
        Threads, as in joblib. Same result for any number. Affects privacy: no.
    random_state : int, bytes, RandomState or None, default=None
        None takes fresh entropy from the operating system in each call. Anything else is for tests, and warns: whoever
        knows the seed undoes the noise. Calls after a `fit`, and calls on other documents, have noise of their own; a
        new fit, or another object of the same seed, repeats it. Proven only for a secret of 16 random bytes or more.
        Affects privacy: yes.

    Attributes
    ----------
    n_features_in_ : int
        Number of words.
    feature_names_in_ : ndarray of shape (n_words,)
        Words, if X was a data frame.

    See Also
    --------
    make_report : The report of one document, as bytes.

    References
    ----------
    .. [1] Zhao, Ren, Yang, Han, Zhao and Yang (2021). Latent Dirichlet Allocation Model Training With Differential
       Privacy. IEEE TIFS 16. Section V.A.
    .. [2] T. Wang, J. Blocki, N. Li, S. Jha (2017). Locally differentially private protocols for frequency
       estimation. USENIX Security. Section 4.3.

    Examples
    --------
    >>> from skdplda.local import LocalRandomizer
    >>> randomizer = LocalRandomizer(bit_epsilon=1.0, max_words_per_document=10)
    >>> randomizer.fit_transform([[3, 0, 1, 0], [0, 0, 2, 0]]).shape
    (2, 4)
    >>> randomizer.privacy_cost(n_words=1000).epsilon
    20.0
    """

    _parameter_constraints = {  # noqa: RUF012
        "bit_epsilon": [Interval(Real, 0, None, closed="right")],
        "mechanism": [StrOptions(set(MECHANISMS))],
        "max_words_per_document": [Interval(Integral, 1, None, closed="left"), None],
        "reports_per_user": [Interval(Integral, 1, 2**16 - 1, closed="both")],
        "n_jobs": THREADS,
        "random_state": SEED,
    }

    def __init__(
        self,
        bit_epsilon: float = 2.0,
        *,
        mechanism: Literal["symmetric", "asymmetric"] = "symmetric",
        max_words_per_document: int | None = None,
        reports_per_user: int = 1,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.bit_epsilon = bit_epsilon
        self.mechanism = mechanism
        self.max_words_per_document = max_words_per_document
        self.reports_per_user = reports_per_user
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        tags.non_deterministic = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Matrix, y: Any = None) -> Self:
        """Learn the number of words; nothing else of X is kept.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts over a public vocabulary.
        y : None
            Ignored.

        Returns
        -------
        self : LocalRandomizer
            The fitted transformer.
        """
        check_counts(self, X, reset=True)
        self.channel(self.n_features_in_)
        vars(self).pop("_calls", None)
        if self.random_state is not None:
            self._calls = [0]  # so many calls, of which each has noise of its own
        return self

    def transform(self, X: Matrix) -> Any:
        """Draw a fresh report for each document.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts; what is positive is present.

        Returns
        -------
        reports : csr_matrix of shape (n_documents, n_words), int32
            Randomized presence bits.

        Raises
        ------
        NotFittedError
            If the transformer is not fitted.
        ValueError
            If X is no matrix of counts, has no documents or another number of words.
        """
        check_is_fitted(self)
        X = check_counts(self, X, reset=False)
        bits = randomize_bits(X, self.channel(X.shape[1]), self._next_seed(X), effective_n_jobs(self.n_jobs))
        indptr, indices = positions(bits)
        return sp.csr_matrix((np.ones(len(indices), np.int32), indices, indptr), shape=X.shape)

    def channel(self, n_words: int) -> BitChannel:
        """Return the law of a report over a vocabulary.

        Parameters
        ----------
        n_words : int
            Size of the vocabulary.

        Returns
        -------
        channel : BitChannel
            With the probabilities and the guarantees.
        """
        return BitChannel(self.bit_epsilon, self.mechanism, n_words, self.max_words_per_document, self.reports_per_user)

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
            Makes no difference: the guarantee is for all reports of a user.
        n_words : int or None, default=None
            Size of the vocabulary; needed for a "document" or "user" unless `max_words_per_document` is at most half of
            it.
        unit : {"document", "user", "bit"}, default="document"
            What is protected.

        Returns
        -------
        guarantee : PrivacyGuarantee
            As `BitChannel.guarantee`.

        Raises
        ------
        ValueError
            If the size of the vocabulary is needed and not given.
        """
        channel = self.channel(self._known_size(n_words, unit != "bit"))
        return stated_guarantee(self, seeded_guarantee(channel.guarantee(unit), self.random_state))

    def _known_size(self, n_words, of_document):
        """Return a size of the vocabulary to state the guarantee for, which no size above it changes."""
        if n_words is not None:
            return n_words
        if self.max_words_per_document is None and of_document:
            raise ValueError(
                "n_words must be given: without max_words_per_document in the randomizer a document's loss grows with"
                " the vocabulary."
            )
        return 2 * (self.max_words_per_document or 1)

    def _next_seed(self, X):
        """Return the seed of the next call, on these documents, as `randomize_bits` takes it."""
        if self.random_state is None:
            return None
        calls = vars(self).setdefault("_calls", [0])  # a list, as scikit-learn wants nothing set by `transform`
        calls[0] += 1
        return self._seed(calls[0] - 1, X)

    def _seed(self, number, X, randomness=None):
        """Return the seed of a numbered call on documents, or batch: None for the system's entropy, else 256 bits.

        Two calls never share flips, which would cancel in the difference of their reports. So the number alone is not
        enough: copies count from the same one. Nor are the documents: equal reports would tell that they are the same.
        `randomness` is a server's own, if it has a seed.
        """
        if randomness is None and self.random_state is None:
            return None
        if randomness is None:
            known = is_integer(self.random_state) and is_guessable_seed(self.random_state)
            said = f"random_state={self.random_state!r}" if known else "a random_state"
            warn(
                f"LocalRandomizer was given {said}: whoever knows it undoes the noise. Use"
                " random_state=None for reports that leave the device.",
                PrivacyLeakWarning,
            )
            randomness = Randomness(self.random_state, "LocalRandomizer")
        return randomness.noise(number, X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data > 0)
