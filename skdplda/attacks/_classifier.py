"""Shadow classifiers: membership read off how sure a text classifier is, for one built on topics."""

from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.preprocessing import StandardScaler

from skdplda._checks import at_most, exact_counts, is_integer
from skdplda._types import Estimator, Matrix
from skdplda.attacks._result import AttackResult
from skdplda.attacks._shadow import check_seed, reseed

LEAST_CERTAIN = 1e-9  # keeps the logarithm of a probability finite; chosen by hand


class ClassifierAttack(NamedTuple):
    """The attack, and the classifier that it attacked.

    Parameters
    ----------
    result : AttackResult
        As many members as others.
    membership_accuracy : float
        Share of right calls, member or not; one half is no better than a coin.
    prediction_accuracy : float
        Of the target classifier, on documents that it was not trained on.
    f1 : float
        Of the target classifier on the same, averaged over the classes.
    """

    result: AttackResult
    membership_accuracy: float
    prediction_accuracy: float
    f1: float


def shadow_classifier_attack(
    classifier: Estimator,
    X: Matrix,
    y: Any,
    *,
    n_shadows: int = 8,
    n_jobs: int | None = None,
    random_state: int | None = None,
) -> ClassifierAttack:
    """Attack a classifier through shadow classifiers, as in [1]_; on topics, the experiment of [2]_.

    Half of the documents belong to the curator: a half of them trains the target. The attacker has the other half, and
    trains each shadow classifier on a half of that. What a shadow classifier answers for documents of its own and for
    others teaches a logistic regression, one a class, to find members; it then judges the target.

    Parameters
    ----------
    classifier : estimator
        With `fit(X, y)` and `predict_proba`, such as a pipeline of a topic model and LogisticRegression. Integer
        `random_state` of its parts are replaced, one for each fit.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Word counts.
    y : array-like of shape (n_documents,)
        Classes.
    n_shadows : int, default=8
        Shadow classifiers, at least 2.
    n_jobs : int, default=None
        Classifiers trained at a time, as in joblib.
    random_state : int, default=None
        Of the parts.

    Returns
    -------
    attack : ClassifierAttack
        Scores, and how good attack and target are.

    Raises
    ------
    ValueError
        If there are fewer than 2 shadow classifiers or too few documents of a class.

    References
    ----------
    .. [1] Shokri, Stronati, Song and Shmatikov (2017). Membership Inference Attacks Against Machine Learning Models.
       IEEE S&P.
    .. [2] Zhao, Ren, Yang, Han, Zhao and Yang (2021). Latent Dirichlet Allocation Model Training With Differential
       Privacy. IEEE TIFS 16. Figure 7.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdplda.attacks import shadow_classifier_attack
    >>> from skdplda.datasets import make_lda_corpus
    >>> X = make_lda_corpus(200, 60, 2, random_state=0).data
    >>> y = np.ravel(X[:, :30].sum(axis=1) > X[:, 30:].sum(axis=1))
    >>> classifier = make_pipeline(LatentDirichletAllocation(2, max_iter=2), LogisticRegression())
    >>> attack = shadow_classifier_attack(classifier, X, y, n_shadows=2, random_state=0)
    >>> len(attack.result.scores) // 2, int(attack.result.labels.sum())
    (49, 49)
    """
    X, y = exact_counts(X), np.asarray(y)
    if y.shape != (X.shape[0],):
        raise ValueError(f"y must have one class a document, shape ({X.shape[0]},); got {y.shape}.")
    if not (is_integer(n_shadows) and n_shadows >= 2):
        raise ValueError(f"n_shadows must be an integer of at least 2; got {n_shadows!r}.")
    check_seed(random_state)
    classes, label = np.unique(y, return_inverse=True)
    least = np.bincount(label).min()
    if len(classes) < 2 or least < 8:
        raise ValueError(
            f"y must hold at least 2 classes of at least 8 documents, for members and others of target and shadow"
            f" classifiers; got {len(classes)} classes, the smallest of {least}."
        )
    rng = np.random.default_rng(random_state)
    curator, attacker = halves(label, np.arange(len(label)), rng)
    parts = [halves(label, curator, rng)] + [halves(label, attacker, rng) for _ in range(n_shadows)]
    seeds = rng.integers(2**31, size=len(parts))
    answers = Parallel(n_jobs=at_most(n_jobs))(
        delayed(train_and_answer)(classifier, X, label, part, len(classes), int(seed))
        for part, seed in zip(parts, seeds, strict=True)
    )
    target, shadows = answers[0], answers[1:]
    features, of_class, inside = (np.concatenate(column) for column in zip(*shadows, strict=True))
    scores = np.empty(len(target[0]))
    for c in range(len(classes)):
        here, there = of_class == c, target[1] == c
        scaler = StandardScaler().fit(features[here])
        model = LogisticRegression(max_iter=1000).fit(scaler.transform(features[here]), inside[here])
        scores[there] = model.predict_proba(scaler.transform(target[0][there]))[:, 1]
    result = AttackResult(scores, target[2], "shadow classifier")
    outside = ~target[2]
    predicted = target[0][outside, -1].astype(int)
    return ClassifierAttack(
        result,
        float(np.mean((scores > 0.5) == target[2])),
        float(accuracy_score(target[1][outside], predicted)),
        float(f1_score(target[1][outside], predicted, average="macro")),
    )


def halves(label, documents, rng):
    """Split documents into two halves, class by class; of an odd number, one is left out."""
    first, second = [], []
    for c in np.unique(label[documents]):
        own = rng.permutation(documents[label[documents] == c])
        size = len(own) // 2
        first.append(own[:size])
        second.append(own[size : 2 * size])
    return np.concatenate(first), np.concatenate(second)


def train_and_answer(classifier, X, label, part, n_classes, seed):
    """Train on the first half and return the answers for both: features, classes, membership.

    Features: probabilities in falling order, the loss, the probability of the true class, the predicted class.
    """
    inside, outside = part
    model = clone(classifier)
    reseed(model, seed)
    model.fit(X[inside], label[inside])
    documents = np.concatenate([inside, outside])
    probability = model.predict_proba(X[documents])
    true = probability[np.arange(len(documents)), label[documents]]
    loss = -np.log(np.maximum(true, LEAST_CERTAIN))
    ordered = -np.sort(-probability, axis=1)
    features = np.column_stack([ordered, loss, true, probability.argmax(axis=1)])
    return features, label[documents], np.arange(len(documents)) < len(inside)
