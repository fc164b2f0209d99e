"""A sixth estimator on the private loop, in one file: what it gets without being named anywhere else.

The recipe of doc/architecture.rst. Everything below the class tests what follows from its base.
"""

import pickle

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from skdplda import PrivacyAccountant, privacy_guarantee, release
from skdplda.audit import mechanism_audits
from skdplda.datasets import make_lda_corpus
from skdplda.models import BaseRoundsModel
from skdplda.rounds import Bounded


# --- the estimator: 30 lines, of public names ------------------------------------------------------------
class PrivateNMF(BaseRoundsModel):
    """Non-negative matrix factorisation, differentially private."""

    def __init__(
        self, n_components=10, *, epsilon=5.0, delta=1e-5, max_iter=20, doc_topic_prior=None, topic_word_prior=None,
        checkpoint=None, callback=None, n_jobs=None, random_state=None, verbose=0,
    ):  # fmt: skip
        self.n_components, self.epsilon, self.delta, self.max_iter = n_components, epsilon, delta, max_iter
        self.doc_topic_prior, self.topic_word_prior = doc_topic_prior, topic_word_prior
        self.checkpoint, self.callback, self.n_jobs = checkpoint, callback, n_jobs
        self.random_state, self.verbose = random_state, verbose

    def contribution(self, words, counts, table, state, rng):
        """Return responsibilities of the factors and activations: updates of Lee and Seung (2001)."""
        factors = (table[words] + 0.01) / (table + 0.01).sum(axis=0)
        activations = np.full(self.n_components, 1.0) if state is None else state
        for _ in range(5):
            shares = activations * factors
            shares *= (counts / shares.sum(axis=1))[:, None]
            activations = shares.sum(axis=0) + 1e-3
        return shares, activations


# --- what it has got ------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def X():
    return make_lda_corpus(600, 40, 3, random_state=0).data


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")  # the checks need seeds
@pytest.mark.filterwarnings("ignore::UserWarning")  # and have fractions, and one column
def test_it_passes_the_checks_of_scikit_learn():
    check_estimator(PrivateNMF(2, max_iter=2))


def test_it_finds_topics_and_states_its_guarantee(X):
    model = PrivateNMF(3, epsilon=20.0).fit(X)
    assert model.privacy_guarantee_ == model.privacy_cost() and model.privacy_guarantee_.status == "proven"
    assert model.privacy_guarantee_.epsilon == 20.0
    everything = PrivateNMF(1, epsilon=np.inf, max_iter=1).fit(X)
    assert model.perplexity(X) < 0.95 * everything.perplexity(X)


def test_what_a_document_contributes_is_bounded_and_says_so(X):
    model = PrivateNMF(3, random_state=0)
    sums, others = model.audit_contributions(X), model.audit_contributions(X[:-1])
    assert isinstance(sums, Bounded) and sums.norm == 2
    own = np.linalg.norm((sums.total - others.total).astype(float))
    assert 0.99 * sums.bound < own <= sums.bound


def test_it_is_audited():
    findings = mechanism_audits(["PrivateNMF"])
    assert {f.check for f in findings} >= {"exact_totals", "many_canaries", "contribution"}
    assert not any(f.broken for f in findings)


def test_it_charges_a_ledger_and_goes_on_from_a_checkpoint(X, tmp_path):
    class Stop(Exception):
        pass

    def stop(report):
        if report.n_done == 3:
            raise Stop

    with PrivacyAccountant(5.0, 1e-5) as ledger:
        model = PrivateNMF(3, max_iter=6, checkpoint=tmp_path / "fit", callback=stop)
        with pytest.raises(Stop):
            model.fit(X)
        model.set_params(callback=None).fit(X)
    assert len(ledger.ledger) == 1 and not (tmp_path / "fit").exists()


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_it_fits_documents_on_workers():
    distributed = pytest.importorskip("distributed")
    from skdplda.distributed import ShardedCounts

    X = make_lda_corpus(100, 20, 2, random_state=1).data
    here = PrivateNMF(2, max_iter=3, random_state=5).fit(X)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        shards = ShardedCounts(client.scatter([X[:50], X[50:]]), client=client)
        there = PrivateNMF(2, max_iter=3, random_state=5).fit(shards)
    np.testing.assert_array_equal(here.components_, there.components_)


def test_it_stands_in_a_pipeline_and_is_released(X):
    words = [f"word{i:02d}" for i in range(40)]
    texts = [" ".join(np.repeat(words, row)) for row in X[:200].toarray()]
    pipeline = make_pipeline(CountVectorizer(vocabulary=words), PrivateNMF(3, max_iter=3)).fit(texts)
    assert privacy_guarantee(pipeline).status == "proven"
    released = release(pipeline)
    np.testing.assert_allclose(released.transform(texts[:5]), pipeline.transform(texts[:5]))
    assert pickle.loads(pickle.dumps(pipeline)).transform(texts[:5]).shape == (5, 3)
