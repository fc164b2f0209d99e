"""The estimator as a citizen of scikit-learn and gensim: checks, pipelines, searches, routing."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdplda import HDPLDA, PCTD, VIPSLDA, LocalPrivateLDA, PrivateCGSLDA
from skdplda.datasets import make_lda_corpus
from skdplda.local import LocalRandomizer
from skdplda.metrics import coherence, gensim_dictionary, make_coherence_scorer

CHECKED = [
    PrivateCGSLDA(n_components=2, max_iter=2),
    PrivateCGSLDA(n_components=2, max_iter=2, epsilon=float("inf")),
    PrivateCGSLDA(n_components=2, max_iter=2, mechanism="laplace"),
    *[
        PrivateCGSLDA(n_components=2, max_iter=2, mechanism=mechanism)
        for mechanism in ("inherent", "laplace-first", "laplace-every", "laplace-last")
    ],
    HDPLDA(n_components=2, max_iter=2),
    HDPLDA(n_components=2, max_iter=2, epsilon=float("inf")),
    HDPLDA(n_components=2, max_iter=2, delta=0.0, count_clip=3.0, return_trace=True),
    HDPLDA(n_components=2, max_iter=2, noise_epsilon=5.0, inherent_epsilon=5.0),
    HDPLDA(n_components=2, max_iter=2, table="live"),
    *[
        LocalPrivateLDA(n_components=2, max_iter=2, reconstruction=reconstruction)
        for reconstruction in ("likelihood", "bayes", "moment")
    ],
    LocalPrivateLDA(n_components=2, max_iter=2, randomizer=LocalRandomizer(bit_epsilon=float("inf"))),
    LocalRandomizer(),
    LocalRandomizer(bit_epsilon=float("inf"), mechanism="asymmetric", max_words=3),
    VIPSLDA(n_components=2, max_iter=2),
    VIPSLDA(n_components=2, max_iter=2, epsilon=float("inf")),
    VIPSLDA(n_components=2, max_iter=2, learning_method="online", max_norm=9.0),
    PCTD(n_components=2, max_iter=2),
    PCTD(n_components=2, max_iter=2, epsilon=float("inf")),
    PCTD(n_components=2, max_iter=2, noise="units"),
    PCTD(n_components=2, max_iter=2, noise="units-each-iteration"),
    PCTD(n_components=2, max_iter=2, noise="units-each-iteration", noise_support="observed"),
]


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")  # the checks need seeds
@pytest.mark.filterwarnings("ignore:n_components=2 exceeds:UserWarning")  # the checks have data of one column
@pytest.mark.filterwarnings("ignore:X is a plain document-term matrix:UserWarning")  # nor units
@pytest.mark.filterwarnings("ignore:no word stands out:UserWarning")  # they are small
@pytest.mark.filterwarnings("ignore:[A-Za-z]+ counts words:UserWarning")  # the checks have fractions
@pytest.mark.filterwarnings("ignore:.*counts words; the fractional:UserWarning")  # the checks have fractions
@pytest.mark.filterwarnings("ignore:(PrivateCGSLDA|VIPSLDA) counts words:UserWarning")  # the checks have fractions
@parametrize_with_checks(CHECKED)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def corpus():
    return make_lda_corpus(90, 40, 3, mean_length=30, random_state=0)


@pytest.fixture(scope="module")
def texts(corpus):
    """The documents as strings of words."""
    return [" ".join(np.repeat(corpus.feature_names, row)) for row in corpus.data.toarray()]


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


@pytest.mark.parametrize("scoring", [None, make_coherence_scorer(n_top=5)])
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
    assert list(out.columns) == ["privatecgslda0", "privatecgslda1", "privatecgslda2"]
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
        assert np.isfinite(coherence(model, documents, corpus.feature_names, measure=measure, n_top=5))
    scorer = make_coherence_scorer(measure, texts=reference, feature_names=corpus.feature_names, n_top=5)
    assert np.isfinite(scorer(model, corpus.data))
