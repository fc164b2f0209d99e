"""Topics that keep their identity: a fit that starts from what an earlier one released."""

import math
from typing import Any

import numpy as np
from sklearn.base import clone

from skdplda._arithmetic import matmul, total
from skdplda._checks import kind_of
from skdplda._types import Sequence
from skdplda._validation import check_is_fitted
from skdplda.priors._public import RESERVED, PublicPrior, WordPrior
from skdplda.privacy import Randomness, Status, is_guessable_seed


def warm_started(estimator: Any, earlier: Any, *, feature_names: Sequence[str] | None = None) -> Any:
    """Make an estimator start from the topics of an earlier model, which then keep their numbers.

    For months, regions or versions of a corpus. What was released is public, so that it costs nothing here; that the
    earlier release was paid for is up to you, or a `PrivacyAccountant`. Topics are followed by `metrics.follow_topics`.

    Parameters
    ----------
    estimator : EmbeddingTopics, or estimator with `prior`
        What is to be fitted next; it does not change. `EmbeddingTopics` start from the earlier directions and centre;
        in one round, if `max_iter` is None, as the best starts need no more. Others get a `WordPrior` of the earlier
        topics and word frequencies, with the vectors of their own `prior`.
    earlier : fitted or released model
        Of as many topics, and of the same columns, with a proven guarantee of finite epsilon: a model reveals what it
        started from. In an experiment both may have a seed that can be guessed: nothing is proven then.
    feature_names : sequence of str of shape (n_words,), default=None
        Words of the columns, for estimators whose `prior` is a `PublicPrior`. None: those of the earlier model.

    Returns
    -------
    estimator : estimator
        An unfitted copy.

    Raises
    ------
    NotFittedError
        If the earlier model is not fitted.
    TypeError
        If the estimator can start from no other model, or the earlier one is of another kind.
    ValueError
        If the numbers of topics differ, words are needed and not known, or nothing is proven of the earlier model.

    Examples
    --------
    >>> import numpy as np
    >>> from skdplda import EmbeddingTopics, warm_started
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(3), 2000, axis=0) + rng.normal(scale=0.2, size=(6000, 3))
    >>> may = EmbeddingTopics(3, epsilon=1.0, public_rows=np.eye(3)).fit(X)
    >>> june = warm_started(EmbeddingTopics(3, epsilon=1.0), may).fit(X)
    >>> june.predict(np.eye(3)).tolist()
    [0, 1, 2]
    """
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(f"estimator must be one, such as EmbeddingTopics(20); got {estimator!r:.80}.")
    if not any(hasattr(earlier, name) for name in ("fit", "cluster_centers_", "topic_word_")):
        raise TypeError(f"earlier must be a fitted model, or one of load_released(path); got {kind_of(earlier)}.")
    check_is_fitted(earlier)
    parameters, of_clusters = estimator.get_params(deep=False), hasattr(earlier, "cluster_centers_")
    known = {"init", "prior"} & set(parameters) and "n_components" in parameters
    if not known or of_clusters != ("init" in parameters) or not (of_clusters or hasattr(earlier, "topic_word_")):
        raise TypeError(
            f"a {type(estimator).__name__} as estimator cannot start from a {type(earlier).__name__}: clusters start"
            " from clusters, and models with the parameter prior from topics. Of a pipeline give the last step, and the"
            " result as `model` of the next one."
        )
    n_topics = len(earlier.cluster_centers_ if of_clusters else earlier.topic_word_)
    if n_topics != estimator.n_components:
        raise ValueError(f"n_components must be {n_topics}, as in the earlier model; got {estimator.n_components}.")
    _check_paid(earlier, getattr(estimator, "random_state", None))
    if of_clusters:
        rounds = 1 if estimator.max_iter is None else estimator.max_iter
        found = {"init": np.array(earlier.cluster_centers_), "centre": np.array(earlier.centre_), "max_iter": rounds}
        return clone(estimator).set_params(**found)
    return clone(estimator).set_params(prior=_prior(estimator.prior, earlier, feature_names))


def _check_paid(earlier, seed):
    """Refuse a model of which nothing is proven: its texts would show in a fit whose guarantee does not cover them.

    With a `seed` that can be guessed nothing will be proven of that fit, and an earlier one may have such a seed, too.
    """
    guarantee = getattr(earlier, "privacy_guarantee_", None)
    if guarantee is not None and math.isfinite(guarantee.epsilon):
        seeded = guarantee.reason == Randomness.guessable
        if guarantee.status == Status.PROVEN or (seeded and is_guessable_seed(seed)):
            return
        if seeded:
            raise ValueError(
                f"earlier must have a proven guarantee of finite epsilon; got epsilon={guarantee.epsilon:g}, status"
                f" {str(guarantee.status)!r}, as its random_state can be guessed: what it holds of its texts would show"
                " in the next model, whose guarantee does not cover it. Fit it with random_state=None, or a secret of"
                " 16 random bytes; for an experiment that releases nothing give this estimator a number, too."
            )
    found = "none" if guarantee is None else f"epsilon={guarantee.epsilon:g}, status {str(guarantee.status)!r}"
    raise ValueError(
        f"earlier must have a proven guarantee of finite epsilon; got {found}: what it holds of its texts would show in"
        " the next model, whose guarantee does not cover it. Fit it with noise. If its texts are public, say so: give"
        " init=earlier.cluster_centers_ and centre=earlier.centre_, or prior=PublicPrior.from_topics(...)."
    )


def _prior(own, earlier, feature_names):
    """Return the topics and frequencies of an earlier model, with the vectors of a prior, as a `WordPrior`."""
    topics = np.asarray(earlier.topic_word_, np.float64)
    if isinstance(own, PublicPrior):
        if feature_names is None and earlier._vocabulary() is None:
            raise ValueError("feature_names must have the words of the columns: the prior is a PublicPrior.")
        own = own.for_words([str(word) for word in earlier._names_of_words(feature_names)])
    sizes = earlier._topic_sizes()
    sizes = np.full(len(topics), 1 / len(topics)) if sizes is None else sizes
    frequencies = matmul(sizes / total(sizes), topics)
    names = [str(name) for name in earlier.get_feature_names_out()]
    names = [f"topic {k}" if RESERVED.fullmatch(name) or not name else name for k, name in enumerate(names)]
    vectors = None if own is None else own.vectors
    return WordPrior(vectors=vectors, frequencies=frequencies, topics=topics, names=tuple(names))
