"""Names of scikit-learn's and gensim's LDA: errors say what to write instead."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from skdplda import (
    PCTD,
    VIPSLDA,
    DPCountVectorizer,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    PrivateCGSLDA,
    ReleasedTopicModel,
)

HINTS = {
    "evaluate_every": "a stopping rule on training data would be a release",
    "perp_tol": "a stopping rule on training data would be a release",
    "total_samples": "VIPSLDA has nominal_size",
    "mean_change_tol": "VIPSLDA has it",
    "learning_method": "VIPSLDA has it",
    "num_topics": "write n_components",
    "alpha": "write doc_topic_prior",
    "eta": "write topic_word_prior",
    "passes": "write max_iter",
    "chunksize": "VIPSLDA has batch_size",
    "id2word": "give the words to top_words, to_gensim or release",
    "corpus": "load_gensim_corpus makes them",
    "workers": "write n_jobs",
}


@pytest.mark.parametrize("name", HINTS)
def test_a_parameter_of_another_package_is_explained(name):
    kinds = [kind for kind in (VIPSLDA, PrivateCGSLDA, PCTD) if name not in inspect.signature(kind).parameters]
    assert kinds
    for kind in kinds:
        with pytest.raises(TypeError, match=f"{kind.__name__} has no parameter '{name}': ") as caught:
            kind(**{name: 1})
        assert HINTS[name] in str(caught.value)


@pytest.mark.parametrize(("name", "said"), [("max_features", "write max_words"), ("min_df", "without noise")])
def test_a_parameter_of_the_vectorizer_of_scikit_learn_is_explained(name, said):
    with pytest.raises(TypeError, match=f"DPCountVectorizer has no parameter '{name}': .*{said}"):
        DPCountVectorizer(**{name: 2})
    assert clone(DPCountVectorizer(epsilon=2.0)).get_params()["epsilon"] == 2.0


def test_an_error_of_a_property_is_the_one_that_is_raised():
    model = ReleasedTopicModel([[0.5, 0.5]], privacy_guarantee=PrivacyGuarantee(epsilon=1.0))
    with pytest.raises(AttributeError, match="this model was released without words"):
        model.id2word  # noqa: B018


def test_a_warning_points_at_the_line_that_asked():
    """Through scikit-learn's pipeline, searches and wrappers, whatever lies between."""
    X = np.ones((30, 4), int)
    asked = [
        lambda: PrivateCGSLDA(2, max_iter=2, random_state=0).fit(X),
        lambda: make_pipeline(PrivateCGSLDA(2, max_iter=2, random_state=0)).fit_transform(X),
        lambda: cross_val_score(PrivateCGSLDA(2, max_iter=2, random_state=0), X, cv=2),
        lambda: VIPSLDA(2, learning_method="online", nominal_size=60, batch_size=30, random_state=0).partial_fit(X),
    ]
    for ask in asked:
        with pytest.warns(PrivacyLeakWarning, match="random_state") as caught:
            ask()
        assert {warning.filename for warning in caught if warning.category is PrivacyLeakWarning} == {__file__}


def test_other_names_fail_as_ever():
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_component'"):
        VIPSLDA(n_component=3)
    with pytest.raises(AttributeError, match=r"'VIPSLDA' object has no attribute 'topic_words_'$"):
        VIPSLDA().topic_words_  # noqa: B018
    assert VIPSLDA(learning_method="online").partial_fit


def test_estimators_stay_what_they_are():
    model = VIPSLDA(3, epsilon=2.0)
    for same in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert same.get_params() == model.get_params()
    signature = str(inspect.signature(VIPSLDA))
    assert signature.startswith("(n_components: int = 10, *, epsilon: float = 5.0") and "Union" not in signature
    assert "numpy._typing" not in signature
