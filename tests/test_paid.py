"""What was paid for is stored before anything is warned of; what can be refused before the charge is."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from internals import periods as _periods
from sklearn.base import clone

from skdplda import (
    PCTD,
    VIPSLDA,
    DPVocabularySelector,
    EmbeddingTopics,
    PrivacyAccountant,
    PrivateCGSLDA,
)
from skdplda.datasets import make_lda_corpus
from skdplda.exceptions import NoisyTopicsWarning, PrivacyLeakWarning
from skdplda.semantics import UnitMatrix

X = make_lda_corpus(40, 30, 2, mean_length=5, random_state=0).data  # so few that all of it is noise
UNITS = UnitMatrix.from_counts(X)
LOUD = {  # fits that warn of what they released
    "VIPSLDA": VIPSLDA(3, epsilon=0.01, random_state=0),
    "VIPSLDA, bounded": VIPSLDA(3, epsilon=0.01, random_state=0, max_norm=3.0, max_iter=2),
    "VIPSLDA, online": VIPSLDA(3, epsilon=0.01, random_state=0, learning_method="online", max_iter=2),
    "PrivateCGSLDA": PrivateCGSLDA(3, epsilon=0.01, random_state=0),
    "PrivateCGSLDA, laplace": PrivateCGSLDA(3, epsilon=0.01, random_state=0, mechanism="laplace", max_iter=2),
    "PCTD, units": PCTD(3, epsilon=0.01, random_state=0, noise_on="units", max_iter=2),
    "EmbeddingTopics": EmbeddingTopics(3, epsilon=0.01, random_state=0),
    "DPVocabularySelector": DPVocabularySelector(epsilon=0.01),
}


def errors_but_of_seeds():
    """Make warnings errors, but those that a seed is no secret, which come before the charge."""
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", PrivacyLeakWarning)


def warned(fit, *data, **options):
    """Whether a fit ends with a warning that is an error."""
    try:
        fit(*data, **options)
    except UserWarning:
        return True
    return False


@pytest.mark.parametrize("name", LOUD)
def test_a_fit_that_was_paid_is_stored_where_warnings_are_errors(name):
    estimator = clone(LOUD[name])
    options = {"counts": X} if name == "EmbeddingTopics" else {}
    data = X
    if name == "PCTD, units":
        data = UNITS
    for seed in range(60):  # noise on units leaves no word, and warns of it, in 4 of 10 fits
        cost = estimator.set_params(random_state=None if name == "DPVocabularySelector" else seed).privacy_cost()
        terms = {"unit": cost.unit, "adjacency": cost.adjacency, "trust": cost.trust}
        with PrivacyAccountant(np.inf, 0.5, accept_claimed=True, **terms) as ledger, warnings.catch_warnings():
            errors_but_of_seeds()
            if warned(estimator.fit, data, **options):
                break
    else:
        pytest.fail("no fit warned")
    assert len(ledger.ledger) == 1
    assert estimator.privacy_guarantee_ == cost
    assert hasattr(estimator, "support_") or estimator.transform(data).shape == (40, estimator.n_components)
    if name == "EmbeddingTopics":
        assert estimator.topic_word_.shape == (3, 30)
    pickle.loads(pickle.dumps(estimator))


def test_clusters_have_their_names_where_warnings_are_errors():
    import pandas as pd

    words = pd.DataFrame(X.toarray(), columns=[f"word{number}" for number in range(30)])
    model = EmbeddingTopics(3, epsilon=0.01, random_state=0)
    with warnings.catch_warnings():
        errors_but_of_seeds()
        with pytest.raises(UserWarning):
            model.fit(X.toarray(), counts=words)
    assert all(name.startswith("word") for name in model.get_feature_names_out())


def test_counts_of_topics_are_with_the_warning_that_is_an_error(monkeypatch):
    monkeypatch.setattr(_periods, "CLEAR_TOTAL", 50.0)  # standard deviations: noise is never that large
    model = VIPSLDA(3, epsilon=np.inf, max_iter=2).fit(X)
    labels = np.arange(40) % 2
    with PrivacyAccountant(np.inf, 0.5) as ledger, warnings.catch_warnings():
        errors_but_of_seeds()
        with pytest.raises(NoisyTopicsWarning) as error:
            model.topics_per_class(X, labels, classes=[0, 1], epsilon=1e-3)
    assert len(ledger.ledger) == 1
    assert error.value.counts.counts.shape == (2, 3)


HUGE = """
import os, resource, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, scipy.sparse as sp
from skdplda import *
from skdplda.datasets import make_lda_corpus
from skdplda.published import CDPLDAPlus, PublishedPCTD
VIPSLDA(2).fit(make_lda_corpus(20, 10, 2, random_state=0).data)  # what a fit imports
SIZE = 12000

def fit(estimator, method):
    X = sp.csr_array(([1, 1], ([0, 1], [0, 5])), shape=(2, SIZE))
    taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + 3 * 2**29,) * 2)
    cost = estimator.privacy_cost(n_words=SIZE) if isinstance(estimator, LocalPrivateLDA) else estimator.privacy_cost()
    terms = {"unit": cost.unit, "adjacency": cost.adjacency, "trust": cost.trust}
    with PrivacyAccountant(np.inf, 0.5, accept_claimed=True, **terms) as ledger:
        try:
            getattr(estimator, method)(X.toarray() if isinstance(estimator, EmbeddingTopics) else X)
        except MemoryError:
            return f"refused {len(ledger.ledger)}"

for case in sys.argv[1:]:  # each in a process of its own, that has imported all already
    if (child := os.fork()) == 0:
        try:
            os.write(1, f"{case}: {fit(*eval(case))}\\n".encode())
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_model_that_does_not_fit_into_memory_is_not_paid():
    cases = [
        "VIPSLDA(SIZE), 'fit'",
        "VIPSLDA(SIZE, learning_method='online', max_iter=2), 'partial_fit'",
        "PrivateCGSLDA(SIZE, epsilon=np.inf), 'fit'",
        "CDPLDAPlus(SIZE), 'fit'",
        "HDPLDA(SIZE), 'fit'",
        "PCTD(SIZE, noise_on='units'), 'fit'",
        "PublishedPCTD(SIZE), 'fit'",
        "LocalPrivateLDA(SIZE), 'fit'",
        "EmbeddingTopics(SIZE), 'fit'",
    ]
    done = subprocess.run([sys.executable, "-c", HUGE, *cases], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{case}: refused 0" for case in cases], done.stderr


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (VIPSLDA(3, callback=3), "callback"),
        (PCTD(3, checkpoint=3), "checkpoint"),
        (EmbeddingTopics(3, callback=3), "callback"),
        (PrivateCGSLDA(3, mechanism="laplace", epsilon=1e-15), "epsilon"),
        (DPVocabularySelector(method="truncated_geometric", epsilon=1e-18), "epsilon"),
    ],
    ids=str,
)
def test_what_is_wrong_with_parameters_is_known_before_the_charge(estimator, name, untouchable):
    with PrivacyAccountant(np.inf, 0.5) as ledger, pytest.raises(ValueError, match=name):
        estimator.fit(untouchable())
    assert not ledger.ledger
