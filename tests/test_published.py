"""The papers' forms that are only claimed: they warn, claim and never say that they are proven."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from skdplda import PrivacyAccountant, PrivacyLeakWarning, published

X = sp.csr_array(np.random.default_rng(0).poisson(1.0, size=(30, 8)))
KINDS = [kind for kind in (getattr(published, name) for name in published.__all__) if inspect.isclass(kind)]
GIBBS = [published.CDPLDA, published.CDPLDAPlus, published.InherentPrivacyLDA, published.PriTopLDA]
of_each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def small(kind):
    return kind(2, max_iter=2) if "max_iter" in inspect.signature(kind).parameters else kind(5.0)


@of_each_kind
@pytest.mark.filterwarnings("ignore:X is a plain document-term matrix:UserWarning")
@pytest.mark.filterwarnings("ignore:no word was used|No word was used:UserWarning")
def test_the_published_forms_warn_on_every_fit(kind):
    estimator = small(kind)
    for _ in range(2):
        with pytest.warns(PrivacyLeakWarning, match="published form|claims epsilon=5") as caught:
            estimator.fit(X)
        assert [w.filename for w in caught if w.category is PrivacyLeakWarning] == [__file__]
    guarantee = estimator.privacy_guarantee_
    assert guarantee.status == ("diagnostic" if kind is published.InherentPrivacyLDA else "claimed")
    assert guarantee.reason
    assert guarantee == clone(estimator).privacy_cost()
    assert hasattr(estimator, "inherent_privacy_") == (kind is published.InherentPrivacyLDA)


@of_each_kind
def test_a_ledger_of_proven_guarantees_refuses_them(kind, untouchable):
    cost = small(kind).privacy_cost()
    accountant = PrivacyAccountant(100.0, 1e-3, unit=cost.unit, adjacency=cost.adjacency)
    with accountant, pytest.raises(ValueError, match="'proven'"):
        small(kind).fit(untouchable())
    assert accountant.ledger == ()


@of_each_kind
def test_a_seed_that_cannot_be_guessed_proves_nothing(kind):
    assert small(kind).set_params(random_state=2**200).privacy_cost().status != "proven"


@pytest.mark.parametrize("kind", GIBBS)
def test_the_forms_of_gibbs_sampling_know_no_users(kind):
    with pytest.raises(TypeError, match="groups"):
        small(kind).fit(X, groups=np.arange(30))


@pytest.mark.parametrize("kind", GIBBS)
@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"max_iter": 0}, "'max_iter' parameter of"),
        ({"doc_topic_prior": "infer"}, "'doc_topic_prior' parameter of"),
        ({"topic_word_prior": 0.0}, "topic_word_prior must be a number from 1e-30"),
    ],
)
def test_bad_parameters_are_refused_before_data_are_read(kind, parameters, said, check_refused):
    check_refused(small(kind).set_params(**parameters), said)


def test_the_trace_of_the_monitored_sampler_is_that_of_its_fit():
    model = published.InherentPrivacyLDA(3, max_iter=4, random_state=0)
    trace, words = model.audit_trace(X)
    with pytest.warns(PrivacyLeakWarning):
        model.fit(X)
    np.testing.assert_allclose(trace.tables[-1], model.components_ - 0.01, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(np.bincount(words, minlength=8), X.toarray().sum(axis=0))
