"""Priors that are inferred: Minka's fixed point, fits without noise, and what releases tell."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdplda import PrivateCGSLDA
from skdplda.datasets import make_lda_corpus
from skdplda.metrics import perplexity
from skdplda.rounds._estep_gibbs import fixed_point

BOTH = {"doc_topic_prior": "infer", "topic_word_prior": "infer"}


def test_the_fixed_point_finds_the_prior_of_multinomials():
    rng = np.random.default_rng(0)
    true = np.array([0.05, 0.3, 1.5])
    counts = np.array([rng.multinomial(30, p) for p in rng.dirichlet(true, 20_000)])
    found = np.full(3, 0.1)
    for _ in range(60):
        found = fixed_point(counts, found)
    assert_allclose(found, true, rtol=0.05)  # the standard errors are below 2 %
    shared = np.full(3, 0.1)
    counts = np.array([rng.multinomial(30, p) for p in rng.dirichlet([0.4] * 3, 20_000)])
    for _ in range(60):
        shared = fixed_point(counts, shared, shared=True)
    assert_allclose(shared, 0.4, rtol=0.05)
    assert len(set(shared)) == 1


@pytest.fixture(scope="module")
def short():
    """Short documents, of which most have one topic."""
    corpus = make_lda_corpus(3000, 200, 5, mean_length=7, doc_topic_prior=0.02, random_state=0).data
    return corpus[:2500], corpus[2500:]


def test_inferred_priors_suit_short_texts(short):
    train, test = short
    default = PrivateCGSLDA(5, epsilon=np.inf, random_state=0).fit(train)
    model = PrivateCGSLDA(5, epsilon=np.inf, random_state=0, **BOTH).fit(train)
    assert model.perplexity(test) < default.perplexity(test)
    assert model.doc_topic_prior_.shape == (5,) and model.doc_topic_prior_.mean() < 0.1
    assert 1e-3 <= model.topic_word_prior_ <= 10
    assert_allclose(model.perplexity(test), perplexity(test, model.topic_word_, doc_topic_prior=model.doc_topic_prior_))
    again = model.fit(train)  # an earlier fit leaves nothing
    assert_array_equal(
        again.components_, PrivateCGSLDA(5, epsilon=np.inf, random_state=0, **BOTH).fit(train).components_
    )


def test_an_interrupted_fit_goes_on_with_its_priors(short, tmp_path):
    def stop(report):
        if report.n_done == 27:
            raise KeyboardInterrupt

    options = {"epsilon": np.inf, "random_state": 0, "max_iter": 40, **BOTH}
    whole = PrivateCGSLDA(5, **options).fit(short[0])
    model = PrivateCGSLDA(5, checkpoint=tmp_path / "fit", callback=stop, **options)
    with pytest.raises(KeyboardInterrupt):
        model.fit(short[0])
    model.set_params(callback=None).fit(short[0])
    assert_array_equal(model.components_, whole.components_)
    assert_array_equal(model.doc_topic_prior_, whole.doc_topic_prior_)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_with_noise_the_prior_follows_the_released_masses(short):
    model = PrivateCGSLDA(5, epsilon=20.0, random_state=0, **BOTH).fit(short[0])
    masses = model.components_.sum(axis=1)
    assert_allclose(model._doc_topic_prior(), 0.5 * masses / masses.sum())
    assert not hasattr(model, "doc_topic_prior_")
    assert_allclose(model.transform(short[1]).sum(axis=1), 1)
    assert model.privacy_guarantee_ == PrivateCGSLDA(5, epsilon=20.0, random_state=0).privacy_cost()


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_forms_that_cannot_infer_refuse(short):
    with pytest.raises(ValueError, match="cannot be 'infer' for the published forms"):
        PrivateCGSLDA(2, mechanism="laplace-last", doc_topic_prior="infer").fit(short[0])
    with pytest.raises(ValueError, match=r"'doc_topic_prior' .*infer"):
        PrivateCGSLDA(2, doc_topic_prior="guess").fit(short[0])
