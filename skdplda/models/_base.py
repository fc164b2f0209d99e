"""What every fitted topic model can do, from its topic-word distributions alone."""

from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from skdplda._kernels._foldin import fold_in
from skdplda._types import ArrayLike, Matrix
from skdplda._validation import check_counts, check_is_fitted, effective_n_jobs
from skdplda.metrics import perplexity, score, score_samples

__all__ = ["BaseTopicModel"]

FOLD_IN_ITERATIONS = 100
FOLD_IN_TOLERANCE = 1e-3


class BaseTopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the topic models; a subclass has `topic_word_` when it is fitted.

    It has `n_components`, `n_jobs` and `doc_topic_prior` among its parameters and a method
    `_doc_topic_prior()` that returns the prior as an array of shape (n_components,).
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self):
        return self.topic_word_.shape[0]

    def transform(self, X: Matrix) -> np.ndarray:
        """Topic proportions of documents under the fitted topics.

        Each row depends on its own document and on the released topics only, never on other rows: nothing of
        the training documents is used. The proportions of a *training* document, or of any other private one,
        are that document's data, and the guarantee does not cover publishing them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts.

        Returns
        -------
        doc_topic : ndarray of shape (n_documents, n_components)
            Rows sum to 1. An empty document gets the prior's mean.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If X is no matrix of counts or has another number of words.
        """
        check_is_fitted(self)
        X = self._counts(X)
        return fold_in(
            X.indptr.astype(np.int32) if X.indptr[-1] < 2**31 else X.indptr,
            X.indices,
            X.data,
            np.ascontiguousarray(self.topic_word_.T),
            self._doc_topic_prior(),
            FOLD_IN_ITERATIONS,
            FOLD_IN_TOLERANCE,
            effective_n_jobs(self.n_jobs),
        )

    def score(
        self,
        X: Matrix,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        method: Literal["document-completion", "fold-in"] = "document-completion",
    ) -> float:
        """Mean held-out log-likelihood per token; larger is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts of documents that were not used to fit.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_documents,), default=None
            Weight of each document.
        method : {"document-completion", "fold-in"}, default="document-completion"
            Fold in one half of each document's tokens and judge the other, or judge the same tokens that were
            folded in (the papers' way, optimistic).

        Returns
        -------
        score : float
            In nats per held-out token, the same however X is split into batches.
        """
        return score(*self._held_out(X), **self._held_out_options(sample_weight, method))

    def score_samples(
        self, X: Matrix, method: Literal["document-completion", "fold-in"] = "document-completion"
    ) -> np.ndarray:
        """Mean held-out log-likelihood per token of each document; larger is better.

        The numbers of private documents are these documents' data, as with `transform`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts of documents that were not used to fit.
        method : {"document-completion", "fold-in"}, default="document-completion"
            As in `score`.

        Returns
        -------
        score : ndarray of shape (n_documents,)
            In nats per token; nan for a document without a held-out token.
        """
        options = self._held_out_options(None, method)
        del options["sample_weight"]
        return score_samples(*self._held_out(X), **options)

    def perplexity(
        self,
        X: Matrix,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        method: Literal["document-completion", "fold-in"] = "document-completion",
    ) -> float:
        """Held-out perplexity, exp(-score); smaller is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Word counts of documents that were not used to fit.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_documents,), default=None
            Weight of each document.
        method : {"document-completion", "fold-in"}, default="document-completion"
            As in `score`.

        Returns
        -------
        perplexity : float
            The same scale for one document and for ten thousand.
        """
        return perplexity(*self._held_out(X), **self._held_out_options(sample_weight, method))

    def get_topics(self) -> np.ndarray:
        """Topic-word distributions, the name by which gensim's `CoherenceModel` asks for them.

        Returns
        -------
        topic_word : ndarray of shape (n_components, n_words)
            Rows sum to 1.
        """
        check_is_fitted(self)
        return self.topic_word_

    def top_words(self, n: int = 10, feature_names: ArrayLike | None = None) -> pd.DataFrame:
        """The most probable words of each topic.

        Parameters
        ----------
        n : int, default=10
            Words a topic; at most the size of the vocabulary.
        feature_names : array-like of str of shape (n_words,), default=None
            The vocabulary. None takes `feature_names_in_`, else column numbers as "x0", "x1", ...

        Returns
        -------
        words : DataFrame of shape (n_components, n)
            One row a topic, most probable first; the index holds the names of `get_feature_names_out`.

        Raises
        ------
        ValueError
            If `n` is outside 1..n_words or the names do not fit the vocabulary.
        """
        check_is_fitted(self)
        n_words = self.topic_word_.shape[1]
        if not 1 <= n <= n_words:
            raise ValueError(f"n must be between 1 and the {n_words} words of the vocabulary; got {n}.")
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", [f"x{w}" for w in range(n_words)])
        feature_names = np.asarray(feature_names, dtype=object)
        if feature_names.shape != (n_words,):
            raise ValueError(f"feature_names must name {n_words} words; got shape {feature_names.shape}.")
        order = np.argsort(-self.topic_word_, axis=1, kind="stable")[:, :n]
        return pd.DataFrame(feature_names[order], index=self.get_feature_names_out())

    def _held_out(self, X):
        check_is_fitted(self)
        return self._counts(X), self.topic_word_

    def _counts(self, X):
        return check_counts(self, X, reset=False)

    def _held_out_options(self, sample_weight, method):
        return {
            "doc_topic_prior": self._doc_topic_prior(),
            "n_threads": effective_n_jobs(self.n_jobs),
            "sample_weight": sample_weight,
            "method": method,
        }
