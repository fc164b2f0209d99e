"""What users expect of every model, and that the page which lists it names tests and pages that are there."""

import ast
import inspect
import json
import math
import re
from importlib.metadata import requires
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone

from skdplda import HDPLDA, PCTD, VIPSLDA, LocalPrivateLDA, PrivacyGuarantee, PrivateCGSLDA
from skdplda.datasets import make_lda_corpus
from skdplda.local import LocalRandomizer
from skdplda.metrics import gensim_dictionary
from skdplda.published import PublishedPCTD, PublishedVIPSLDA

TESTS = Path(__file__).parent
DOC = TESTS.parent / "doc"
MODELS = [
    PrivateCGSLDA(3, max_iter=2),
    VIPSLDA(3, max_iter=2),
    HDPLDA(3, max_iter=2),
    PCTD(3, max_iter=2),
    LocalPrivateLDA(3, randomizer=LocalRandomizer(), max_iter=2),
]
METHODS = [
    *("fit", "transform", "fit_transform", "score", "perplexity", "get_topics", "top_words"),
    *("get_feature_names_out", "set_output", "privacy_cost"),
]
FITTED = {"components_", "topic_word_", "privacy_guarantee_", "n_iter_", "n_features_in_", "feature_names_in_"}

every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
pytestmark = [
    pytest.mark.filterwarnings("ignore:X is a plain document-term matrix:UserWarning"),
    pytest.mark.filterwarnings("ignore:epsilon=.* is too small:UserWarning"),
]


@pytest.fixture(scope="module")
def frame():
    corpus = make_lda_corpus(150, 25, 3, mean_length=20, random_state=0)
    return pd.DataFrame(corpus.data.toarray(), columns=corpus.feature_names)


# --- the page -----------------------------------------------------------------------------------------------


def named_tests():
    """Return the tests that the page names, as (file, function)."""
    text = (DOC / "expectations.rst").read_text(encoding="utf-8")
    return sorted(set(re.findall(r"``(test_\w+)::(test_\w+)``", text)))


def test_every_test_that_the_page_names_is_there():
    named = named_tests()
    assert len(named) > 60
    files = {file for file, _ in named}
    trees = {file: ast.parse((TESTS / f"{file}.py").read_text(encoding="utf-8")) for file in files}
    found = {file: {node.name for node in tree.body if hasattr(node, "name")} for file, tree in trees.items()}
    assert [f"{file}::{function}" for file, function in named if function not in found[file]] == []


def test_every_row_of_the_page_has_an_anchor_and_a_test():
    rows = re.split(r"\n   \* - ", (DOC / "expectations.rst").read_text(encoding="utf-8"))[1:]
    rows = [row for row in rows if not row.startswith("Expectation\n")]
    assert len(rows) > 50
    for row in rows:
        expectation, anchor, test, *others = re.split(r"\n     - ", row.split("\n\n")[0])
        assert others == [] and expectation and anchor
        assert re.search(r"``test_\w+::test_\w+``", test), expectation


@pytest.mark.parametrize("page", ["threat_model", "guide", "api", "expectations", "command_line"])
def test_the_guide_has_a_page_for(page):
    assert (DOC / f"{page}.rst").stat().st_size > 1000


# --- names and signatures ----------------------------------------------------------------------------------


@every_model
def test_parameters_have_the_common_names_and_defaults(model):
    parameters = inspect.signature(type(model)).parameters
    assert next(iter(parameters)) == "n_components" and parameters["n_components"].default == 10
    for name in ("doc_topic_prior", "topic_word_prior", "n_jobs", "random_state"):
        assert parameters[name].default is None
    assert parameters["verbose"].default == 0 and "max_iter" in parameters
    private = parameters if not isinstance(model, LocalPrivateLDA) else inspect.signature(LocalRandomizer).parameters
    assert {"epsilon", "delta"} <= set(private) or "bit_epsilon" in private
    bases = ("ClassNamePrefixFeaturesOutMixin", "TransformerMixin", "BaseEstimator")
    assert [kind.__name__ for kind in type(model).__mro__ if kind.__name__ in bases] == list(bases)
    assert isinstance(model, (ClassNamePrefixFeaturesOutMixin, TransformerMixin))


@every_model
@pytest.mark.parametrize("epsilon", [0.7, 4.0])
def test_epsilon_is_the_total_of_a_fit(model, epsilon, frame):
    if isinstance(model, LocalPrivateLDA):
        fitted = clone(model).set_params(randomizer__bit_epsilon=epsilon).fit(frame)
        assert epsilon <= fitted.privacy_guarantee_.epsilon <= len(frame.columns) * epsilon * (1 + 1e-9)
        return
    fitted = clone(model).set_params(epsilon=epsilon).fit(frame)
    assert epsilon * 0.99 < fitted.privacy_guarantee_.epsilon <= epsilon


@every_model
@pytest.mark.parametrize("epsilon", [4.0, np.inf])
def test_a_default_prior_is_a_constant_or_a_multiple_that_documents_vote_for(model, epsilon, frame):
    """The two models that infer priors, if asked (test_inferred_priors.py), have the vote where None is given."""
    local = isinstance(model, LocalPrivateLDA)
    model = clone(model).set_params(**{"randomizer__bit_epsilon" if local else "epsilon": epsilon})
    prior, fitted = model._doc_topic_prior(), clone(model).fit(frame)
    assert prior.shape == (3,) and (prior == prior[0]).all() and prior[0] > 0
    if isinstance(model, PrivateCGSLDA | VIPSLDA):
        assert np.isclose(fitted.doc_topic_prior_, prior * np.array([[1.0], [5.0], [25.0]])).all(axis=1).any()
        assert not hasattr(clone(model).set_params(doc_topic_prior=0.1).fit(frame), "doc_topic_prior_")
        return
    assert not hasattr(fitted, "doc_topic_prior_")
    with pytest.raises((ValueError, TypeError)):
        clone(model).set_params(doc_topic_prior="infer").fit(np.ones((4, 3), dtype=int))


INF = np.inf


@pytest.mark.parametrize(
    ("model", "sums"),  # at most, with noise and without; of published forms 0.1 a topic
    [
        (VIPSLDA, (0.5, 1)),
        (PrivateCGSLDA, (0.5, INF)),
        (PCTD, (1, INF)),
        (HDPLDA, (INF, INF)),
        (PublishedPCTD, (INF, INF)),
    ]
    + [(PublishedVIPSLDA, (INF, INF)), (LocalPrivateLDA, (INF, INF))],
)
@pytest.mark.parametrize("n_topics", [1, 4, 10, 60])
def test_default_priors_of_topic_proportions_are_as_stated(model, sums, n_topics):
    for epsilon, most in zip((2.0, INF), sums, strict=True):
        if epsilon < INF or most < INF:
            prior = model(n_topics, epsilon=epsilon)._doc_topic_prior()
            np.testing.assert_array_equal(prior, np.full(n_topics, min(0.1, most / n_topics)))


@pytest.mark.parametrize("model", [VIPSLDA(epsilon=50.0), PCTD(epsilon=50.0)])
@pytest.mark.parametrize("n_topics", [3, 15])
def test_a_fitted_model_does_not_follow_its_parameters(frame, model, n_topics):
    fitted = clone(model).set_params(n_components=n_topics).fit(frame)
    before, prior = fitted.transform(frame), fitted._prior_of_topics()
    fitted.set_params(epsilon=np.inf, doc_topic_prior=3.0)
    np.testing.assert_array_equal(fitted.transform(frame), before)
    np.testing.assert_array_equal(fitted._prior_of_topics(), prior)


@every_model
def test_every_model_has_the_same_attributes_and_methods(model, frame):
    fitted = clone(model)
    before = {name: repr(value) for name, value in vars(fitted).items()}
    assert fitted.fit(frame) is fitted
    assert set(vars(fitted)) >= FITTED
    assert {name: repr(vars(fitted)[name]) for name in before} == before
    assert [name for name in METHODS if not callable(getattr(fitted, name))] == []
    assert fitted.components_.shape == fitted.topic_word_.shape == fitted.get_topics().shape == (3, 25)
    np.testing.assert_allclose(fitted.topic_word_.sum(axis=1), 1)
    top = fitted.top_words(4)
    assert isinstance(top, pd.DataFrame) and top.shape == (3, 4) and top.isin(frame.columns).all(axis=None)
    assert top.index.tolist() == fitted.get_feature_names_out().tolist()
    assert isinstance(fitted.privacy_guarantee_, PrivacyGuarantee)
    json.loads(fitted.privacy_guarantee_.to_json())


@every_model
@pytest.mark.parametrize("method", ["document-completion", "fold-in"])
def test_proportions_and_scores_have_one_scale(model, method, frame):
    """For one document, all of them, and each of them five times."""
    fitted = clone(model).fit(frame)
    np.testing.assert_allclose(fitted.transform(frame).sum(axis=1), 1)
    X = sp.csr_array(frame.to_numpy())
    fitted = clone(model).fit(X)
    score = fitted.score(X, method=method)
    assert fitted.perplexity(X, method=method) == pytest.approx(math.exp(-score))
    assert fitted.score(sp.vstack([X] * 5), method=method) == pytest.approx(score)
    each = [fitted.perplexity(X[[i]], method=method) for i in range(20)]
    assert all(1 <= one < 1000 for one in each)
    assert 1 < math.exp(-score) < 100
    assert fitted.score_samples(X[:20], method=method) == pytest.approx(-np.log(each))


@every_model
def test_results_do_not_depend_on_the_number_of_jobs(model, frame):
    models = [clone(model).set_params(n_jobs=n, random_state=1) for n in (1, 2, 4)]
    with pytest.warns(match="random_state"):
        models = [one.fit(frame) for one in models]
    for other in models[1:]:
        np.testing.assert_array_equal(other.topic_word_, models[0].topic_word_)
        np.testing.assert_array_equal(other.transform(frame), models[0].transform(frame))


@every_model
def test_equal_seeds_on_neighbouring_data_warn_and_are_an_assumption(model, frame):
    """Whoever knows the seed knows the noise; so the guarantee says what it needs."""
    with pytest.warns(match="random_state"):
        fitted = clone(model).set_params(random_state=1).fit(frame)
    guarantee = getattr(fitted, "bit_guarantee_", fitted.privacy_guarantee_)
    assert any("random_state" in assumption for assumption in guarantee.assumptions)
    free = [clone(model).fit(frame) for _ in range(2)]
    assert (free[0].topic_word_ != free[1].topic_word_).any()


@every_model
def test_gensim_asks_every_model_for_its_topics(model, frame):
    from gensim.models import CoherenceModel

    fitted = clone(model).fit(frame)
    dictionary = gensim_dictionary(list(frame.columns))
    bags = [dictionary.doc2bow(np.repeat(frame.columns, row).tolist()) for row in frame.to_numpy()]
    judge = CoherenceModel(fitted, corpus=bags, dictionary=dictionary, coherence="u_mass", topn=5, processes=1)
    assert len(judge.topics) == 3
    assert np.isfinite(judge.get_coherence())


@every_model
def test_a_fit_prints_nothing_and_shows_a_bar_on_request(model, frame, capsys):
    clone(model).fit(frame)
    assert capsys.readouterr() == ("", "")
    if "verbose" in model.get_params():
        clone(model).set_params(verbose=1).fit(frame)
        out, err = capsys.readouterr()
        assert out == "" and "%" in err


def test_dependencies_are_light_and_not_pinned():
    needed = [line for line in requires("skdplda") if "extra ==" not in line]
    assert len(needed) < 12
    assert [line for line in requires("skdplda") if "==" in line.partition(";")[0]] == []
    heavy = ("torch", "tensorflow", "opendp", "diffprivlib", "dask", "pyldavis", "jax")
    assert [line for line in needed if line.lower().startswith(heavy)] == []
