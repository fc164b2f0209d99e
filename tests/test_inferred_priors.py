"""Priors that are inferred: Minka's fixed point, fits without noise, and what releases tell."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import check_counts, exact_votes, fixed_point
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skdplda import VIPSLDA, PrivateCGSLDA, make_fdptm_pipeline
from skdplda.datasets import make_lda_corpus, write_counts
from skdplda.metrics import perplexity, unigram_perplexity
from skdplda.published import PriTopLDA

both = pytest.mark.parametrize("kind", [PrivateCGSLDA, VIPSLDA])
BOTH = {"doc_topic_prior": "infer", "topic_word_prior": "infer"}
# Priors that documents vote for: what sampled topics of short texts have only where that of words is given.
VOTED = {PrivateCGSLDA: {"topic_word_prior": 0.01}, VIPSLDA: {}}


def test_the_fixed_point_finds_the_prior_of_multinomials():
    rng = np.random.default_rng(0)
    true = np.array([0.05, 0.3, 1.5])
    counts = np.array([rng.multinomial(30, p) for p in rng.dirichlet(true, 5_000)])
    found = np.full(3, 0.1)
    for _ in range(60):
        found = fixed_point(counts, found)
    assert_allclose(found, true, rtol=0.15)  # the standard errors are below 3 %: five of them
    shared = np.full(3, 0.1)
    counts = np.array([rng.multinomial(30, p) for p in rng.dirichlet([0.4] * 3, 5_000)])
    for _ in range(60):
        shared = fixed_point(counts, shared, shared=True)
    assert_allclose(shared, 0.4, rtol=0.08)
    assert len(set(shared)) == 1


@pytest.fixture(scope="module")
def short():
    """Short documents, of which most have one topic."""
    corpus = make_lda_corpus(3000, 200, 5, mean_length=7, doc_topic_prior=0.02, random_state=0).data
    return corpus[:2500], corpus[2500:]


@both
def test_inferred_priors_suit_short_texts(kind, short):
    """The best of three fits is better by 0.038 or 0.033 nats (over 8 corpora with deviations 0.005).

    About one fit in a hundred mixes topics, and then is worse.
    """
    train, test = short
    fits = [
        min(
            (kind(5, epsilon=np.inf, random_state=seed, **options).fit(train) for seed in range(3)),
            key=lambda fit: fit.perplexity(train),
        )
        for options in (VOTED[kind], BOTH)
    ]
    default, model = fits
    assert model.perplexity(test) < default.perplexity(test)
    assert model.doc_topic_prior_.shape == (5,) and model.doc_topic_prior_.mean() < 0.1
    assert 1e-3 <= np.mean(model.topic_word_prior_) <= 10
    assert_allclose(model.perplexity(test), perplexity(test, model.topic_word_, doc_topic_prior=model.doc_topic_prior_))
    fresh = clone(model).fit(train)
    assert_array_equal(model.fit(train).components_, fresh.components_)  # an earlier fit leaves nothing


def test_topics_that_the_documents_do_not_prove_end_in_the_word_frequencies():
    """With fixed priors they are worse by 0.157 nats (over 20 seeds with deviation 0.013)."""
    rng = np.random.default_rng(0)
    X = rng.multinomial(5, rng.dirichlet(np.ones(100)), 2500)  # of one topic
    model = VIPSLDA(5, epsilon=np.inf, random_state=0, **BOTH).fit(X[:500])
    assert model.topic_word_prior_.shape == (100,)
    shares = (X[:500].sum(axis=0) + 1) / 2600
    assert_allclose(model.topic_word_prior_ / model.topic_word_prior_.sum(), shares, rtol=0.01)
    assert model.perplexity(X[500:]) <= 1.01 * unigram_perplexity(X[:500], X[500:])
    fixed = VIPSLDA(5, epsilon=np.inf, random_state=0, doc_topic_prior=0.1).fit(X[:500])
    assert fixed.perplexity(X[500:]) > 1.05 * unigram_perplexity(X[:500], X[500:])


@both
def test_without_noise_documents_choose_how_large_the_default_prior_is(kind):
    """Topics that words meet in by chance are read with a larger one, and clear topics are not.

    Of 40 seeds the former have 5 or 25 times as much in all and the latter 1; perplexities are off by 0.03 and less.
    """
    rng = np.random.default_rng(0)
    chance = rng.multinomial(5, rng.dirichlet(np.ones(100)), 2500)
    clear = make_lda_corpus(2500, 100, 5, mean_length=5, random_state=0).data
    for X, factors in ((chance, (5, 25)), (clear, (1,))):
        options = {"epsilon": np.inf, "random_state": 0, **VOTED[kind]}
        model, fixed = (kind(5, doc_topic_prior=p, **options).fit(X[:500]) for p in (None, 0.1))
        assert_array_equal(model.components_, fixed.components_)
        assert np.isclose(model.doc_topic_prior_, 0.1 * np.array(factors)[:, None]).all(axis=1).any()
        assert model.perplexity(X[500:]) <= fixed.perplexity(X[500:])
        assert "doc_topic_prior_" in model.privacy_guarantee_.released and not hasattr(fixed, "doc_topic_prior_")


def test_sampled_topics_of_short_texts_have_inferred_priors_where_none_are_given(short):
    """Not of long texts, nor in few rounds, nor where a prior is given; privacy_cost() says that it depends."""
    options = {"epsilon": np.inf, "random_state": 0}
    default, asked = (PrivateCGSLDA(5, **options, **given).fit(short[0]) for given in ({}, BOTH))
    assert_array_equal(default.components_, asked.components_)
    assert_array_equal(default.doc_topic_prior_, asked.doc_topic_prior_)
    assert default.topic_word_prior_ == asked.topic_word_prior_ != 0.01
    assert default.privacy_guarantee_ == PrivateCGSLDA(5, **options).privacy_cost()
    assert "topic_word_prior_ with short texts" in default.privacy_guarantee_.released
    wide = sp.csr_array(np.ones((30, 21), int))
    for model, X in (
        (PrivateCGSLDA(5, **options), wide),
        (PrivateCGSLDA(5, **options, max_iter=39), short[0]),
        (PrivateCGSLDA(5, **options, topic_word_prior=0.01), short[0]),
        (PrivateCGSLDA(5, **options, doc_topic_prior=0.1), short[0]),
        (VIPSLDA(5, **options), short[0]),
    ):
        assert not hasattr(model.fit(X), "topic_word_prior_")


def test_documents_without_words_are_asked_nothing(monkeypatch):
    """Few of those that have words are asked, and between these lie others without."""
    monkeypatch.setattr(exact_votes, "WORDS_ASKED", 200)
    chance = np.random.default_rng(0).multinomial(5, np.ones(100) / 100, 500)
    found = []
    for rows in (chance, np.insert(chance, range(500), 0, axis=0)):
        model = PrivateCGSLDA(5, epsilon=np.inf, max_iter=9, random_state=0).fit(chance)
        counts = check_counts(model, rows, reset=False)
        found.append(exact_votes.voted_factor(counts, model.components_, 0.01, np.full(5, 0.1), 1))
    assert found[0] == found[1] > 1


def test_one_prior_may_be_inferred_alone(short):
    model = VIPSLDA(5, epsilon=np.inf, random_state=0, doc_topic_prior="infer").fit(short[0])
    assert model.topic_word_prior_ == 0.03 and len(set(model.doc_topic_prior_)) == 5
    model.set_params(doc_topic_prior=0.2, topic_word_prior="infer").fit(short[0])
    assert model.topic_word_prior_.shape == (200,) and (model.doc_topic_prior_ == 0.2).all()
    assert (model.components_ >= model.topic_word_prior_ * (1 - 1e-12)).all()


@both
def test_an_interrupted_fit_goes_on_with_its_priors(kind, short, tmp_path):
    def stop(report):
        if report.n_done == 27:
            raise KeyboardInterrupt

    options = {"epsilon": np.inf, "random_state": 0, "max_iter": 40, **BOTH}
    whole = kind(5, **options).fit(short[0])
    model = kind(5, checkpoint=tmp_path / "fit", callback=stop, **options)
    with pytest.raises(KeyboardInterrupt):
        model.fit(short[0])
    model.set_params(callback=None).fit(short[0])
    assert_array_equal(model.components_, whole.components_)
    assert_array_equal(model.doc_topic_prior_, whole.doc_topic_prior_)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@both
def test_with_noise_documents_vote_for_the_prior(kind, short):
    """Of None as of "infer", for a multiple of the default; samples are asked for no prior."""
    options = {"epsilon": 20.0, "random_state": 0}
    model, asked = (kind(5, **options, doc_topic_prior=prior).fit(short[0]) for prior in (None, "infer"))
    assert_array_equal(model.doc_topic_prior_, asked.doc_topic_prior_)
    assert (model.doc_topic_prior_ == model.doc_topic_prior_[0]).all()
    assert np.isclose(model.doc_topic_prior_[0], 0.1 * np.array([1.0, 5.0, 25.0])).any()
    assert_array_equal(model._prior_of_topics(), model.doc_topic_prior_)
    assert model.privacy_guarantee_ == kind(5, **options).privacy_cost() == asked.privacy_guarantee_
    assert "doc_topic_prior_" in model.privacy_guarantee_.released
    fixed = kind(5, **options, doc_topic_prior=0.1).privacy_cost()
    assert fixed.event == model.privacy_guarantee_.event and "doc_topic_prior_" not in fixed.released
    sampled = kind(5, **options, **BOTH, sampling_rate=0.9).fit(short[0])
    masses, prior = sampled.components_.sum(axis=1), sampled._doc_topic_prior()
    assert_allclose(prior, 0.5 * masses / masses.sum())
    empty = np.zeros((1, short[1].shape[1]), int)  # it has the mean of the prior by which documents are read
    assert_allclose(sampled.transform(empty), [masses / masses.sum()], atol=1e-6)
    assert_array_equal(sampled.set_params(doc_topic_prior=0.1)._prior_of_topics(), prior)
    assert not hasattr(sampled, "doc_topic_prior_")
    for fit in (model, sampled):
        assert_allclose(fit.transform(short[1]).sum(axis=1), 1)


def test_pipelines_without_noise_that_are_told_of_few_words_infer_the_priors():
    assert make_fdptm_pipeline(3.0, 1e-6, words_per_document=3)["topics"].doc_topic_prior is None
    assert make_fdptm_pipeline(np.inf, words_per_document=3, model=VIPSLDA())["topics"].doc_topic_prior is None
    for length, prior in ((7, "infer"), (8, None)):
        topics = make_fdptm_pipeline(np.inf, words_per_document=length)["topics"]
        assert (topics.doc_topic_prior, topics.topic_word_prior) == (prior, prior)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@both
def test_texts_of_three_words_are_read_with_a_large_prior(kind):
    """With alpha 0.1, topics of such texts explain other texts far worse than word frequencies do."""
    corpus = make_lda_corpus(8000, 200, 4, mean_length=40, doc_topic_prior=0.5, random_state=1).data.toarray()
    rng = np.random.default_rng(0)
    some = [rng.choice(np.flatnonzero(row), 3, replace=False) for row in corpus if np.count_nonzero(row) > 2]
    X = np.zeros((len(some), 200), np.int64)
    np.put_along_axis(X, np.array(some), 1, axis=1)
    train, test = X[:-1500], X[-1500:]
    found = {}
    for prior in (0.1, None):
        fits = [kind(4, epsilon=10.0, random_state=seed, doc_topic_prior=prior).fit(train) for seed in range(4)]
        found[prior] = np.log([fit.perplexity(test) for fit in fits]).mean()
    assert found[None] < found[0.1]
    assert found[None] < np.log(1.04 * unigram_perplexity(train, test))
    for fit in fits:
        assert fit.doc_topic_prior_.mean() > 0.15 or not fit.topic_signal_to_noise_.any()


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_forms_that_cannot_infer_refuse(short, tmp_path):
    with pytest.raises(ValueError, match="'doc_topic_prior' parameter of PriTopLDA"):
        PriTopLDA(2, doc_topic_prior="infer").fit(short[0])
    with pytest.raises(ValueError, match="cannot be 'infer' without noise in mini-batches or samples"):
        VIPSLDA(2, epsilon=np.inf, sampling_rate=0.5, doc_topic_prior="infer").privacy_cost()
    with pytest.raises(ValueError, match="cannot be 'infer' without noise for documents on disk"):
        VIPSLDA(2, epsilon=np.inf, topic_word_prior="infer").fit(write_counts(tmp_path / "counts", [short[0]]))
    with pytest.raises(ValueError, match=r"'doc_topic_prior' .*infer"):
        PrivateCGSLDA(2, doc_topic_prior="guess").fit(short[0])


def test_empty_documents_do_not_move_inferred_priors(short):
    X = sp.csr_array(short[0])
    padded = sp.vstack([X, sp.csr_array((40, X.shape[1]), dtype=X.dtype)], format="csr")
    model = VIPSLDA(3, epsilon=np.inf, max_iter=30, random_state=0, **BOTH)
    priors = [model.fit(data).doc_topic_prior_ for data in (X, padded)]
    assert_allclose(priors[1], priors[0], rtol=1e-9)
