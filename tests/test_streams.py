"""Streams and their copies: one release a step, paid once, and nothing forgotten where warnings are errors."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from conftest import in_a_child
from internals import budget_charge as _budget_charge
from sklearn.base import clone

from skdplda import VIPSLDA, BudgetExceededError, PrivacyAccountant
from skdplda.datasets import make_lda_corpus
from skdplda.exceptions import PrivacyLeakWarning

X = make_lda_corpus(120, 30, 3, mean_length=20, random_state=0).data
EPSILON = 5.0


def stream(**parameters):
    return VIPSLDA(3, learning_method="online", max_iter=3, epsilon=EPSILON, **parameters)


def batch(number):
    return X[20 * number : 20 * number + 20]


@pytest.fixture
def elsewhere(monkeypatch):
    """Forget the steps that were taken, as another process does not know of them."""
    return lambda: monkeypatch.setattr(_budget_charge, "STEPS", {})


COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("knows", [True, False])
def test_copies_with_the_same_batch_are_one_release(copied, knows, elsewhere):
    """Thirty copies were thirty releases, for the price of one."""
    with PrivacyAccountant(EPSILON, 1e-5) as ledger:
        first = stream().partial_fit(batch(0))
        copies = [COPIES[copied](first) for _ in range(5)]
        models = []
        for model in copies:
            if not knows:
                elsewhere()
            models.append(model.partial_fit(batch(1)).components_)
    for components in models[1:]:
        np.testing.assert_array_equal(components, models[0])
    assert len(ledger.ledger) == 1


def test_another_batch_at_a_step_that_was_taken_is_refused():
    first = stream().partial_fit(batch(0))
    one, other = (pickle.loads(pickle.dumps(first)) for _ in range(2))
    one.partial_fit(batch(1))
    before = other.components_
    with pytest.raises(BudgetExceededError, match=r"step 2 of this stream.*another batch.*Nothing was released"):
        other.partial_fit(batch(2))
    assert other.n_iter_ == 1 and other.components_ is before
    np.testing.assert_array_equal(other.partial_fit(batch(1)).components_, one.components_)
    np.testing.assert_array_equal(other.partial_fit(batch(2)).components_, one.partial_fit(batch(2)).components_)


@pytest.mark.parametrize("in_file", [True, False])
def test_a_ledger_knows_the_steps_that_other_processes_took(in_file, elsewhere, tmp_path):
    ledger = PrivacyAccountant(EPSILON, 1e-5)
    if in_file:
        ledger = PrivacyAccountant.open(tmp_path / "ledger.json", EPSILON, 1e-5)
    with ledger:
        first = stream().partial_fit(batch(0))
        one, other = (pickle.loads(pickle.dumps(first)) for _ in range(2))
        one.partial_fit(batch(1))
    elsewhere()
    again = PrivacyAccountant.open(tmp_path / "ledger.json") if in_file else ledger.from_json(ledger.to_json())
    with again:
        with pytest.raises(BudgetExceededError, match="another batch"):
            other.partial_fit(batch(2))
        other.partial_fit(batch(1))
    assert len(again.ledger) == 1
    assert again._steps.keys() == ledger._steps.keys() and len(again._steps) == 2
    key = first._stream.key
    assert key.hex() not in again.to_json() and repr(key) not in again.to_json()


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_step_is_refused_in_another_process_that_charges_the_same_ledger(tmp_path, elsewhere):
    path = tmp_path / "ledger.json"
    with PrivacyAccountant.open(path, EPSILON, 1e-5):
        first = stream().partial_fit(batch(0))
        pickled = pickle.dumps(first)
        first.partial_fit(batch(1))

    def other():
        elsewhere()
        with PrivacyAccountant.open(path):
            pickle.loads(pickled).partial_fit(batch(2))

    assert "another batch" in in_a_child(other)


def test_an_unknown_copy_with_another_batch_has_noise_of_its_own(elsewhere):
    """What nobody could refuse has at least not the noise that covers another sum."""
    first = stream().partial_fit(batch(0))
    one, other = (pickle.loads(pickle.dumps(first)) for _ in range(2))
    changed = batch(1).toarray()
    changed[0, 0] += 50
    one.partial_fit(batch(1))
    elsewhere()
    other.partial_fit(changed)
    assert (one.components_ != other.components_).mean() > 0.5


def test_what_processes_cannot_know_is_an_assumption():
    line = "no step is taken with two batches, by copies of the stream in processes that share no ledger"
    assert line in stream().partial_fit(batch(0)).privacy_guarantee_.assumptions
    assert line not in stream().privacy_cost().assumptions  # of one fit


def test_a_clone_is_a_stream_of_its_own():
    first = stream().partial_fit(batch(0))
    with PrivacyAccountant(2 * EPSILON, 1e-4) as ledger:
        other = clone(first).partial_fit(batch(1))
        third = clone(first).partial_fit(batch(1))
    assert len(ledger.ledger) == 2 and other._stream.run != first._stream.run
    assert not np.array_equal(other.components_, third.components_)


def test_the_key_is_in_no_text_and_gone_with_the_last_step():
    model = stream()
    for number in range(3):
        if number:
            key = model._stream.key
            assert key in pickle.dumps(model)  # the stream itself: doc/not_protected.rst
            for text in (repr(model), model._repr_html_(), repr(model._stream), repr(vars(model))):
                assert key.hex() not in text and repr(key)[2:-1] not in text
        model.partial_fit(batch(number))
    assert model._stream.key is None and key not in pickle.dumps(model)
    with pytest.raises(BudgetExceededError, match="no more"):
        pickle.loads(pickle.dumps(model)).partial_fit(batch(0))


def test_a_secret_seed_goes_with_the_stream_until_its_last_step():
    seed = b"a secret seed of 32 random bytes"
    model = stream(random_state=seed)
    whole = clone(model)
    with pytest.warns(match="random_state"):
        for number in range(3):
            assert model.partial_fit(batch(number)).privacy_guarantee_.status == "proven"
            assert (seed in pickle.dumps(model)) == (number < 2)
            model = pickle.loads(pickle.dumps(model))
            whole.partial_fit(batch(number))
    np.testing.assert_array_equal(model.components_, whole.components_)
    assert model.privacy_guarantee_ == whole.privacy_guarantee_
    assert any("seed" in assumption for assumption in model.privacy_guarantee_.assumptions)


def test_an_interrupted_step_is_not_paid_again(monkeypatch):
    """It is the same release when it is done again, the first one included."""

    def stop(*args):
        raise KeyboardInterrupt

    with PrivacyAccountant(EPSILON, 1e-5) as ledger:
        model = stream()
        with monkeypatch.context() as patch:
            patch.setattr(VIPSLDA, "_model_of", stop)  # after the release
            with pytest.raises(KeyboardInterrupt):
                model.partial_fit(batch(0))
        with pytest.raises(BudgetExceededError, match="another batch"):
            model.partial_fit(batch(1))
        for number in range(3):
            model.partial_fit(batch(number))
    assert len(ledger.ledger) == 1 and model.n_iter_ == 3


def test_a_stream_remembers_that_it_is_spent_where_warnings_are_errors():
    model, taken = stream(random_state=0).set_params(epsilon=0.1), 0
    with PrivacyAccountant(np.inf, 0.5, accept_claimed=True) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        for _ in range(9):
            try:
                model.partial_fit(batch(taken % 3))
            except UserWarning:  # the topics are noise, at the end
                assert taken == 2
            except BudgetExceededError:
                continue
            taken += 1
    assert taken == model.n_iter_ == 3 and len(ledger.ledger) == 1


def test_streams_without_noise_may_be_copied_and_go_apart():
    first = VIPSLDA(3, learning_method="online", max_iter=3, epsilon=np.inf).partial_fit(batch(0))
    one, other = (pickle.loads(pickle.dumps(first)) for _ in range(2))
    assert not np.array_equal(one.partial_fit(batch(1)).components_, other.partial_fit(batch(2)).components_)
