"""A sixth estimator on the private loop, in one file: what it gets without being named anywhere else.

The recipe of doc/architecture.rst. Everything below the class tests what follows from its base.
"""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from skdplda import PrivacyAccountant, privacy_guarantee, release
from skdplda.audit import mechanism_audits
from skdplda.datasets import make_lda_corpus
from skdplda.models import BaseRoundsModel
from skdplda.privacy import Randomness
from skdplda.rounds import EStep, Tables

# --- the estimator: 50 lines ---------------------------------------------------------------------------
from skdplda._validation import check_groups, unit_of_documents  # isort: skip
from skdplda.rounds._sensitivity import unit_weights  # isort: skip


class FactorStep:
    """E-step of non-negative matrix factorisation: activations of documents, and responsibilities of the factors."""

    def __init__(self, X, units, *, n_topics, n_updates, randomness, n_threads, first_document=0):
        units = check_groups(None, X.shape[0]) if units is None else units
        self.n_units, self._unit = len(units[0]) - 1, unit_of_documents(units)
        self._counts, self._words = X.data.astype(float), X.indices
        self._documents = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        self._weight = unit_weights(X, units, 2)  # bounds a unit's norm, whatever its topics
        self._h, self._n_updates = np.full((X.shape[0], n_topics), 1 / n_topics), n_updates

    def collect(self, table, round_, active):
        """Return the sum of the active units' contributions, in integers."""
        factors = (table + 0.01) / (table + 0.01).sum(axis=0)
        for _ in range(self._n_updates):  # multiplicative updates of Lee and Seung (2001) for the divergence
            shares = self._h[self._documents] * factors[self._words]
            shares /= shares.sum(axis=1, keepdims=True)
            self._h[:] = 1e-3
            np.add.at(self._h, self._documents, self._counts[:, None] * shares)
        weight = self._weight if active is None else self._weight * active[self._unit]
        total = np.zeros(table.shape, np.int64)
        np.add.at(total, self._words, np.floor(shares * (weight[self._documents] * self._counts)[:, None]).astype(int))
        return total

    def arrays(self):
        """Return the hidden state."""
        return {"h": self._h}

    def restore(self, arrays):
        """Take the hidden state back."""
        self._h = arrays["h"]


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

    def _make_e_step(self, plan, randomness, data):
        return partial(FactorStep, n_topics=self.n_components, n_updates=5)


# --- what it has got ------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def X():
    return make_lda_corpus(600, 40, 3, random_state=0).data


def test_its_parts_are_of_the_protocols(X):
    step = FactorStep(X, None, n_topics=3, n_updates=2, randomness=None, n_threads=1)
    assert isinstance(step, EStep)
    model = PrivateNMF(3)
    assert isinstance(model._make_tables(model._plan(), Randomness(None), model._read(X, None, None, None)), Tables)


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
    assert privacy_guarantee(pipeline, trusted=(PrivateNMF,)).status == "proven"
    released = release(pipeline, allow_unproven=True)  # that of another package is only claimed
    np.testing.assert_allclose(released.transform(texts[:5]), pipeline.transform(texts[:5]))
    assert pickle.loads(pickle.dumps(pipeline)).transform(texts[:5]).shape == (5, 3)
