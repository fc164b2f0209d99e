"""The estimator as a citizen of scikit-learn and gensim: checks, pipelines, searches, routing."""

import importlib
import inspect
import pickle
import pkgutil
from contextlib import suppress
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import skdplda
from skdplda import HDPLDA, PCTD, VIPSLDA, LocalPrivateLDA, PrivateCGSLDA
from skdplda.local import LocalRandomizer
from skdplda.metrics import coherence, gensim_dictionary, make_coherence_scorer
from skdplda.published import PublishedHDPLDA, PublishedPCTD, PublishedVIPSLDA


def public_classes():
    """Return the public classes that are estimators, wherever they stand in the package."""
    names = [module.name for module in pkgutil.iter_modules(skdplda.__path__) if not module.name.startswith("_")]
    packages = [importlib.import_module(f"skdplda.{name}") for name in names]
    things = [getattr(package, name) for package in packages for name in getattr(package, "__all__", ())]
    found = {thing for thing in things if inspect.isclass(thing) and issubclass(thing, BaseEstimator)}
    return sorted(found, key=lambda kind: kind.__name__)


CHECKED_ELSEWHERE = {
    "BaseClusterModel": "is a base class",
    "BaseRoundsModel": "is a base class; test_new_estimator.py",
    "BaseTopicModel": "is a base class",
    "DPCountVectorizer": "takes texts; test_vocabulary.py",
    "PrivatePipeline": "needs steps; test_pipeline.py",
    "PrivateSearchCV": "needs an estimator and a grid; test_model_selection.py",
    "ReleasedClusterModel": "is loaded, not fitted; test_released_clusters.py",
    "ReleasedTopicModel": "is loaded, not fitted; test_releases.py",
    "SemanticUnitVectorizer": "takes texts; test_semantics.py",
    "TextEmbedder": "takes texts; test_insights.py",
    "WordVectorEmbedder": "takes texts; test_insights.py",
}
SMALL = {"n_components": 2, "max_iter": 2}


def small(kind):
    """Return an estimator with the default parameters, but few topics and rounds where it has such."""
    return kind(**{name: value for name, value in SMALL.items() if name in inspect.signature(kind).parameters})


CHECKED = [small(kind) for kind in public_classes() if kind.__name__ not in CHECKED_ELSEWHERE]
# Configurations that take other ways through the code: only what reads data, or changes with the way, is checked.
VARIANTS = [
    PrivateCGSLDA(**SMALL, epsilon=float("inf")),
    PrivateCGSLDA(**SMALL, mechanism="laplace"),
    HDPLDA(**SMALL, epsilon=float("inf")),
    HDPLDA(**SMALL, delta=0.0, count_clip=3.0, return_trace=True),
    HDPLDA(**SMALL, noise_epsilon=5.0, inherent_epsilon=5.0),
    PublishedHDPLDA(**SMALL, noise_epsilon=5.0, inherent_epsilon=5.0, return_trace=True),
    *[LocalPrivateLDA(**SMALL, reconstruction=reconstruction) for reconstruction in ("bayes", "moment")],
    LocalPrivateLDA(**SMALL, randomizer=LocalRandomizer(bit_epsilon=float("inf"))),
    LocalRandomizer(bit_epsilon=float("inf"), mechanism="asymmetric", max_words_per_document=3),
    VIPSLDA(**SMALL, epsilon=float("inf")),
    VIPSLDA(**SMALL, learning_method="online", max_norm=9.0),
    PCTD(**SMALL, epsilon=float("inf")),
    PCTD(**SMALL, noise_on="units"),
    PublishedPCTD(**SMALL, noise_support="observed"),
    PublishedVIPSLDA(**SMALL, accounting="linear", sampling_rate=0.5),
]
CHECKS_OF_VARIANTS = {
    "check_dict_unchanged",
    "check_estimator_sparse_matrix",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_subset_invariance",
    "check_n_features_in_after_fitting",
    "check_transformer_general",
}

ignored_in_checks = [
    pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning"),  # the checks need seeds
    pytest.mark.filterwarnings("ignore:n_components=2 exceeds:UserWarning"),  # the checks have data of one column
    pytest.mark.filterwarnings("ignore:X is a plain document-term matrix:UserWarning"),  # nor units
    pytest.mark.filterwarnings("ignore:no word stands out:UserWarning"),  # they are small
    pytest.mark.filterwarnings("ignore:.*counts words:UserWarning"),  # the checks have fractions
    pytest.mark.filterwarnings("ignore:No word was used by enough:UserWarning"),  # of so few documents
    pytest.mark.filterwarnings("ignore:No features were selected:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*clusters do not stand out:UserWarning"),  # they are small
]


def with_marks(test):
    for mark in ignored_in_checks:
        test = mark(test)
    return test


@with_marks
@parametrize_with_checks(CHECKED)
def test_scikit_learn(estimator, check):
    check(estimator)


@with_marks
@pytest.mark.parametrize("estimator", VARIANTS, ids=repr)
def test_scikit_learn_in_other_configurations(estimator):
    done = set()
    for fresh, check in estimator_checks_generator(estimator):
        if check.func.__name__ in CHECKS_OF_VARIANTS:
            with suppress(SkipTest):  # those that a random transformer cannot pass
                check(fresh)
            done.add(check.func.__name__)
    random = estimator.__sklearn_tags__().non_deterministic
    assert done == CHECKS_OF_VARIANTS - ({"check_methods_subset_invariance"} if random else set())


def test_every_public_estimator_is_checked_or_excused():
    assert {type(estimator) for estimator in CHECKED} >= {type(estimator) for estimator in VARIANTS}
    assert set(CHECKED_ELSEWHERE) <= {kind.__name__ for kind in public_classes()}


def pipeline(**parameters):
    # a public vocabulary: one learned from the texts would be outside the guarantee
    vectorizer = CountVectorizer(vocabulary=[f"word{i:02d}" for i in range(40)])
    return Pipeline([("counts", vectorizer), ("lda", PrivateCGSLDA(n_components=3, max_iter=3, **parameters))])


def test_a_pipeline_from_texts_to_proportions(texts):
    pipe = pipeline().fit(texts)
    proportions = pipe.transform(texts[:5])
    assert proportions.shape == (5, 3)
    np.testing.assert_allclose(proportions.sum(axis=1), 1)
    assert np.isfinite(pipe.score(texts))
    assert pipe[-1].topic_word_.shape == (3, 40)


@pytest.mark.parametrize("scoring", [None, make_coherence_scorer(n_words=5)])
def test_a_grid_search_over_epsilon(texts, scoring):
    search = GridSearchCV(pipeline(), {"lda__epsilon": [1, 10, float("inf")]}, cv=3, scoring=scoring)
    search.fit(texts)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    found = search.best_estimator_[-1].privacy_guarantee_
    assert found.epsilon == search.best_params_["lda__epsilon"]


def test_clone_keeps_parameters_and_drops_what_was_fitted(corpus):
    model = PrivateCGSLDA(n_components=3, epsilon=2.0, max_iter=2).fit(corpus.data)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not [name for name in vars(copy) if name.endswith("_")]


def test_pickle_brings_back_the_model(corpus):
    model = PrivateCGSLDA(n_components=3, max_iter=2).fit(corpus.data)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.topic_word_, model.topic_word_)
    np.testing.assert_array_equal(copy.transform(corpus.data), model.transform(corpus.data))
    assert copy.privacy_guarantee_ == model.privacy_guarantee_


def test_pandas_in_and_out(corpus):
    frame = pd.DataFrame(corpus.data.toarray(), columns=corpus.feature_names)
    model = PrivateCGSLDA(n_components=3, max_iter=2).set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert list(out.columns) == ["topic_0", "topic_1", "topic_2"]
    assert list(model.top_words(4).index) == list(out.columns)
    assert model.top_words(4).isin(corpus.feature_names).all(axis=None)


def test_reports_in_a_pipeline_and_a_search_over_their_epsilon(texts):
    vectorizer = CountVectorizer(vocabulary=[f"word{i:02d}" for i in range(40)])
    pipe = Pipeline([("counts", vectorizer), ("lda", LocalPrivateLDA(3, randomizer=LocalRandomizer(), max_iter=3))])
    search = GridSearchCV(pipe, {"lda__randomizer__bit_epsilon": [1, 10, float("inf")]}, cv=3).fit(texts)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_params_["lda__randomizer__bit_epsilon"]
    assert search.best_estimator_[-1].bit_guarantee_.epsilon == best


def test_groups_are_routed(texts):
    users = np.arange(len(texts)) // 3
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = pipeline()
        pipe[-1].set_fit_request(groups=True)
        fitted = clone(pipe).fit(texts, groups=users)
        result = cross_validate(pipe, texts, params={"groups": users}, cv=3, return_estimator=True)
    for model in (fitted, *result["estimator"]):
        assert model[-1].privacy_guarantee_.unit == "user"
    assert np.isfinite(result["test_score"]).all()


def test_groups_reach_the_last_step_without_routing(texts):
    pipe = pipeline().fit(texts, lda__groups=np.arange(len(texts)) // 3)
    assert pipe[-1].privacy_guarantee_.unit == "user"


def test_gensim_judges_the_topics(texts):
    from gensim.models import CoherenceModel

    pipe = pipeline(epsilon=float("inf")).fit(texts)
    judged = CoherenceModel(
        model=pipe[-1],
        dictionary=gensim_dictionary(pipe[0]),
        texts=[text.split() for text in texts],
        coherence="c_v",
        topn=5,
        processes=1,
    )
    assert 0 < judged.get_coherence() <= 1


JUDGED = [
    PrivateCGSLDA(3, epsilon=0.05, max_iter=3),
    PrivateCGSLDA(3, epsilon=0.05, max_iter=3, mechanism="laplace"),
    VIPSLDA(3, epsilon=0.05, max_iter=3),
    HDPLDA(3, epsilon=0.1, max_iter=3),
    LocalPrivateLDA(3, randomizer=LocalRandomizer(bit_epsilon=0.05), max_iter=3),
    PCTD(3, epsilon=0.05, max_iter=3),
]


@pytest.mark.filterwarnings("ignore:X is a plain document-term matrix:UserWarning")
@pytest.mark.filterwarnings("ignore:no word stands out:UserWarning")
@pytest.mark.filterwarnings("ignore:epsilon=0.1 is too small:UserWarning")
@pytest.mark.parametrize("measure", ["u_mass", "c_v", "c_npmi"])
@pytest.mark.parametrize("estimator", JUDGED, ids=repr)
def test_coherence_is_finite_for_every_estimator_under_heavy_noise(estimator, measure, corpus, texts):
    """Noise brings words to the top that the reference lacks: there gensim alone would say nan or infinity."""
    model = clone(estimator).fit(corpus.data)
    assert model.get_topics().shape == (3, 40)
    lacking = corpus.feature_names[model.topic_word_.argmax(axis=1)]  # the top word of each topic
    reference = [[word for word in text.split() if word not in lacking] for text in texts]
    for documents in (reference, [text.split() for text in texts]):
        assert np.isfinite(coherence(model, documents, corpus.feature_names, measure=measure, n_words=5))
    scorer = make_coherence_scorer(measure, texts=reference, feature_names=corpus.feature_names, n_words=5)
    assert np.isfinite(scorer(model, corpus.data))
