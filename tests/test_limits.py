"""Numbers that are none, or beyond what arithmetic holds, are refused by name, whatever parameter they are given to."""

import inspect
import re
import warnings
from numbers import Real

import numpy as np
import pytest
from sklearn.utils._param_validation import Interval
from test_common import public_classes, small

from skdplda import PrivacyAccountant, PrivacyGuarantee, PrivacyLeakWarning, PrivateCGSLDA
from skdplda.datasets import make_lda_corpus
from skdplda.model_selection import PrivateSearchCV
from skdplda.releases import ReleasedTopicModel

pytestmark = pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
HUGE = 10**400
VALUES = [HUGE, -HUGE, float("inf"), float("-inf"), float("nan"), True, np.True_, "1"]
NEVER_FITTED = {"BaseClusterModel", "BaseRoundsModel", "BaseTopicModel", "ReleasedClusterModel", "ReleasedTopicModel"}
# What these are is not changed by size: a seed of any size is one, and a bar is shown or not.
ANY_SIZE = {"random_state": ("1" + 400 * "0",), "verbose": ("1" + 400 * "0", "True", repr(np.True_))}
TEXTS = ["iron and zinc", "plum and pear"] * 20


def numeric(kind):
    """Return the names of the parameters that may be numbers."""
    constraints = {name: of for name, of in getattr(kind, "_parameter_constraints", {}).items() if isinstance(of, list)}
    return [
        name
        for name in inspect.signature(kind).parameters
        if any(rule == "verbose" or isinstance(rule, Interval) or rule is Real for rule in constraints.get(name, ()))
    ]


def made(kind):
    if kind is PrivateSearchCV:
        return kind(PrivateCGSLDA(2, max_iter=2), {"n_components": [2]}, mean_trials=2)
    return small(kind)


KINDS = [kind for kind in public_classes() if kind.__name__ not in NEVER_FITTED and numeric(kind)]


def test_most_public_estimators_have_numbers():
    found = {kind.__name__: numeric(kind) for kind in KINDS}
    assert {"max_iter", "epsilon", "mean_change_tol", "doc_topic_prior", "n_jobs"} <= set(found["VIPSLDA"])
    assert "count_clip" in found["HDPLDA"] and "local_updates" in found["PCTD"] and "shape" in found["PrivateSearchCV"]
    assert len(found) >= 9


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{value!r:.6}".rstrip("."))
def test_numbers_at_their_limits_are_refused_by_name(kind, value):
    X = make_lda_corpus(40, 12, 2, random_state=0).data
    texts = "analyzer" in inspect.signature(kind).parameters or not hasattr(kind, "privacy_cost")
    for name in numeric(kind):
        if repr(value) in ANY_SIZE.get(name, ()):
            continue
        estimator = made(kind).set_params(**{name: value})
        if value == float("inf") and allows_infinity(kind, name):
            continue  # without noise, for instance
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            with pytest.raises(ValueError, match=rf"{name}\b") as caught:
                estimator.fit(TEXTS if texts else X)
        assert re.search(re.escape(f"{value!r}"[:40]), str(caught.value)), name


def allows_infinity(kind, name):
    rules = [rule for rule in kind._parameter_constraints[name] if isinstance(rule, Interval) and rule.type is Real]
    return any(np.inf in rule for rule in rules)


@pytest.mark.parametrize("bins", [[0, HUGE], ["2030-01-01", "no date"], [0, object()]], ids=["huge", "text", "object"])
def test_edges_that_are_no_numbers_or_dates_are_refused_by_name(bins):
    model = ReleasedTopicModel([[0.6, 0.4]], ["pear", "plum"], privacy_guarantee=PrivacyGuarantee(epsilon=1.0), text={})
    with PrivacyAccountant(9.0) as ledger, pytest.raises(ValueError, match="bins must be numbers or dates; got"):
        model.topics_over_time(["a pear"], [1], bins=bins, epsilon=1.0)
    assert not ledger.ledger


def test_more_trials_than_anyone_waits_for_are_refused():
    search = PrivateSearchCV(PrivateCGSLDA(2), {"n_components": [2]}, mean_trials=1e300)
    with pytest.raises(ValueError, match=r"'mean_trials' .* Got 1e\+300"):
        search.privacy_cost()
