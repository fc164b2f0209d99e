"""Private choice among the columns of a document-term matrix."""

from contextlib import closing, nullcontext
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_selection import SelectorMixin

from skdplda._checks import check_structure, is_integer
from skdplda._texts import NamedCounts
from skdplda._types import ArrayLike, Matrix, Seed
from skdplda._validation import check_is_fitted, check_matrix, fit_context
from skdplda._warnings import warn
from skdplda.exceptions import EmptySelectionError
from skdplda.privacy import CURATOR
from skdplda.vocabulary._selection import PrivateSelection, refuse_repetitions


class DPVocabularySelector(SelectorMixin, PrivateSelection):
    """Choose the words that many documents use, differentially private for documents or users.

    A word that few people use may identify them. Each document (user) divides one unit of weight among its words, noise
    is added to the sum of each word that is used, and the words strictly above a threshold are selected. `delta` bounds
    the probability that a word which only one document (user) uses is selected.

    For the columns of any document-term matrix: a document uses the words whose entries are not zero.

    Which words are selected is covered, and *only* that: a fitted selector also knows how many columns X had and where
    among them the selected ones stand, and so does whatever made the columns. If the columns were learned from the
    same documents, these numbers, and the vectorizer before it, are as private as the documents. `DPCountVectorizer`
    leaves nothing of the kind.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of the fit, for adding or removing one document (one user with `groups`). `inf` selects every
        word that is used. Affects privacy: yes.
    delta : float, default=1e-5
        Probability of a larger loss, in (0, 1); well below 1 / (public estimate of the number of units), chosen without
        looking at the data. Affects privacy: yes.
    method : str, default="sieve"
        "sieve": our own, five rounds of "weighted_gaussian" (theory guide, Theorem 2), in which words far above the
        threshold are released early, words far below are dropped, and their weight goes to the others; it selects most
        words on all corpora but some of short texts. Of the literature, proven in the theory guide:
        "weighted_gaussian", "policy_gaussian", "policy_laplace" [1]_, "sips" [2]_, "item_frequency" [3]_,
        "truncated_geometric" [4]_; and after [5]_, with a discount and thresholds of our own proof, "mad" and "mad2r".
        Affects privacy: no.
    mechanism : str or None, default=None
        Law of the noise: one of `skdplda.privacy.MECHANISMS` that is for the norm in which the method bounds what a
        unit gives. None: "gaussian", or "laplace" for "policy_laplace" and "item_frequency". Affects privacy: yes.
    max_words_per_unit : int, default=200
        Words that a document (user) takes part with; more are left out at random. Affects privacy: no, the noise is
        calibrated to it.
    max_words : int or None, default=None
        Of the selected words keep so many: those of earlier rounds, then larger noisy weights, then smaller column
        numbers, all of which was released. None keeps all. Affects privacy: no.
    cutoff : float, default=3.0
        Scales of noise above the threshold at which a word gets no more weight (of "mad" and "mad2r": at which weight
        comes back), called alpha in [1]_. Noise still hides such a word with a probability of 0.1 % (Gaussian) or 2.5 %
        (Laplace) at 3. Affects privacy: no.
    public_vocabulary : array-like of int or of str of shape (n_selected,) or None, default=None
        Columns to select, by number, or by name if X is a data frame, in any order. It must not depend on the
        documents. It costs no privacy. Affects privacy: yes.
    random_state : int, bytes, RandomState or None, default=None
        Makes a fit repeatable and warns: the guarantee is then proven only for a secret seed of 16 random bytes or more
        (or such an integer), and else claimed. None: fresh entropy. Affects privacy: yes.

    Attributes
    ----------
    support_ : ndarray of shape (n_words,), bool
        The selected columns. Its length and positions are not covered unless the columns of X are public.
    noisy_weights_ : ndarray of shape (n_selected,)
        Noisy weights of the selected words, in units of what one document (user) may give: in the round that released
        the word, for "sieve" the mean of its rounds. Only with noise.
    privacy_guarantee_ : PrivacyGuarantee
        Print it for a statement to publish.
    n_features_in_ : int
        Number of columns of X. Not covered.
    feature_names_in_ : ndarray of shape (n_words,)
        Names of the columns, if X was a data frame. Not covered.

    See Also
    --------
    DPCountVectorizer : From texts to counts, without a trace of the other words.
    skdplda.published.PublishedItemFrequencySelector : [3]_ with its printed threshold, whose delta does not hold.

    References
    ----------
    .. [1] Gopi, Gulhane, Kulkarni, Shen, Shokouhi and Yekhanin (2020). Differentially Private Set Union. ICML.
       Weighted Gaussian, Policy Gaussian and Policy Laplace.
    .. [2] Swanberg, Desfontaines and Haney (2023). DP-SIPS: A simpler, more scalable mechanism for differentially
       private partition selection. PoPETs.
    .. [3] Carvalho, Wang, Gondara and Miao (2022). Incorporating Item Frequency for Differentially Private Set Union.
       AAAI.
    .. [4] Desfontaines, Voss, Gipson and Mandayam (2022). Differentially private partition selection. PoPETs.
    .. [5] Chen, Cohen-Addad, Epasto and Zadimoghaddam (2025). Scalable Private Partition Selection via Adaptive
       Weighting. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from skdplda import DPVocabularySelector
    >>> X = np.array([[2, 1, 0]] * 500 + [[0, 1, 1]])  # the last word is one document's
    >>> selector = DPVocabularySelector(epsilon=1.0).fit(X)
    >>> selector.transform(X).shape
    (501, 2)
    """

    _released = ("which words are selected",)
    _beside_released = dict.fromkeys(("support_", "n_features_in_", "feature_names_in_"), CURATOR)
    _not_covered = (
        "number, names and positions of the input's columns (n_features_in_, feature_names_in_, the places in support_)"
        " and the step that made them, unless the columns are public",
        "the rows that transform returns",
        "hyper-parameters tuned on the same data",
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-5,
        method: str = "sieve",
        mechanism: str | None = None,
        max_words_per_unit: int = 200,
        max_words: int | None = None,
        cutoff: float = 3.0,
        public_vocabulary: Any = None,
        random_state: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.mechanism = mechanism
        self.max_words_per_unit = max_words_per_unit
        self.max_words = max_words
        self.cutoff = cutoff
        self.public_vocabulary = public_vocabulary
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Matrix, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Select columns.

        The budget of an open `PrivacyAccountant` is checked before X is read and charged before the release.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words), ShardedCounts or Dask collection
            Counts, presence bits, or weights of any per-document vectorizer. Those of a
            `skdplda.distributed.ShardedCounts`, or of what it takes, are counts, and stay on their workers; only for
            methods in which all units give at once ("sieve", "weighted_gaussian", "sips", "mad",
            "mad2r", "truncated_geometric").
        y : None
            Ignored.
        groups : array-like of shape (n_documents,), default=None
            The user of each document: the guarantee then is for all documents of one user together.

        Returns
        -------
        self : DPVocabularySelector
            The fitted estimator.

        Raises
        ------
        BudgetExceededError
            If an open accountant cannot afford the fit. No data were read.
        ValueError
            For parameters or entries that are not as described.

        Warns
        -----
        UserWarning
            If nothing was selected; the message says which epsilon would release what. `transform` then returns no
            columns, as that of scikit-learn's selectors.
        """
        charge = self._budget_charge("document" if groups is None else "user")
        sharded = self._sharded(X, groups)
        if sharded is None:
            X = check_matrix(self, X)
        else:
            self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
            X, self.n_features_in_ = sharded, sharded.shape[1]
        with nullcontext() if sharded is None else closing(sharded.pool):
            nothing = None  # or why no word was selected
            if self.public_vocabulary is not None:
                chosen, weights = self._public_columns(X.shape[1]), None
            else:
                chosen, weights, nothing = self._select_or_none(X, groups, charge)
        self.support_ = np.zeros(X.shape[1], dtype=bool)
        self.support_[chosen] = True
        self._set_selected(weights, groups, charge)
        if nothing is not None:
            warn(f"{nothing} transform returns no columns.", UserWarning)
        return self

    def transform(self, X: Matrix) -> Any:
        """Keep the selected columns, and their names where X has some, for the `prior` of a model that follows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            As in `fit`.

        Returns
        -------
        X : data frame, ndarray or sparse matrix of shape (n_documents, n_selected)
            A pandas data frame where X is a data frame; of a sparse matrix with the attribute `words`, one with those
            of its columns.

        Raises
        ------
        NotFittedError
            If the selector is not fitted.
        ValueError
            If X has other columns than that of `fit`.
        """
        check_structure(X)
        found = super().transform(X)
        if hasattr(X, "columns") and isinstance(found, np.ndarray):
            return pd.DataFrame(found, index=getattr(X, "index", None), columns=self.get_feature_names_out())
        if hasattr(X, "columns") and sp.issparse(found):
            found = NamedCounts(found)
            found.words = self.get_feature_names_out()
        return found

    def inverse_transform(self, X: Matrix) -> Any:
        """Undo `transform`, with columns of zeros in the place of those that were not selected.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_selected)
            As from `transform`.

        Returns
        -------
        X : ndarray or sparse matrix of shape (n_documents, n_words)
            With the columns of `fit`.

        Raises
        ------
        NotFittedError
            If the selector is not fitted.
        ValueError
            If X has other columns than those selected.
        """
        check_structure(X)
        return super().inverse_transform(X)

    def _select_or_none(self, X, groups, charge):
        """Return the selected columns, their weights and None; where nothing is selected, no columns and why."""
        try:
            chosen, weights, rounds = self._select(X, groups, charge, self._start())
        except EmptySelectionError as error:
            return np.zeros(0, int), np.zeros(0), str(error)
        kept = self._heaviest(chosen, weights, rounds)
        return chosen[kept], weights[kept], None

    def _get_support_mask(self):
        check_is_fitted(self)
        return self.support_

    def _public_columns(self, n_columns):
        chosen = np.asarray(self.public_vocabulary, dtype=object)
        if chosen.ndim != 1 or not len(chosen):
            raise ValueError(f"public_vocabulary must be a list of columns; got an array of shape {chosen.shape}.")
        refuse_repetitions(chosen.tolist())
        if all(isinstance(name, str) for name in chosen) and hasattr(self, "feature_names_in_"):
            number = {name: i for i, name in enumerate(self.feature_names_in_)}
            missing = [name for name in chosen if name not in number]
            if missing:
                raise ValueError(f"public_vocabulary names {missing[:5]!r}, which are no columns of X.")
            return [number[name] for name in chosen]
        if not all(is_integer(column) and 0 <= column < n_columns for column in chosen):
            raise ValueError(
                f"public_vocabulary must hold column numbers from 0 to {n_columns - 1}, or the names of columns where X"
                f" is a data frame; got {chosen[:5].tolist()!r}. For a list of words use DPCountVectorizer."
            )
        return chosen.astype(int)
