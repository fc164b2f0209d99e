"""Documents on disk and the users that they belong to: weights, sums and fits are those of memory, to the last bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import check_groups, disk, documents, shortened, unit_weights
from random_units import norm
from test_adaptive import KINDS, random_query
from test_vips import FORMS

from skdplda import VIPSLDA
from skdplda.datasets import write_counts
from skdplda.priors import WordPrior
from skdplda.rounds import NORM_BOUND

INF = float("inf")
N_DOCUMENTS, N_WORDS = 30, 9


def corpus(seed=0):
    """Return counts, some of them large, and users whose documents lie anywhere, the last user's included."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.choice([0.2, 1.0, 4.0], (N_DOCUMENTS, 1)), (N_DOCUMENTS, N_WORDS))
    X[rng.integers(N_DOCUMENTS), rng.integers(N_WORDS)] = 2**31 - 1
    users = np.unique(rng.choice(5, N_DOCUMENTS, p=[0.4, 0.3, 0.1, 0.1, 0.1]), return_inverse=True)[1]
    return X, users


@pytest.fixture(params=[(7, 1), (4, 40), (16, 2**22)], ids=str)
def sizes(request, monkeypatch):
    """Documents of a block, and entries that are read together: one user alone, several, all of them."""
    monkeypatch.setattr(disk, "BLOCK", request.param[0])
    monkeypatch.setattr(documents, "ENTRIES", request.param[1])


@pytest.mark.parametrize("least", [1.0, 5.5])
@pytest.mark.parametrize("max_length", [None, 4])
def test_weights_of_users_are_those_of_memory(tmp_path, sizes, least, max_length):
    words = np.arange(N_WORDS) % 3 > 0
    for seed in range(2):
        X, users = corpus(seed)
        X, units = sp.csr_array(X), check_groups(users, N_DOCUMENTS)
        options = {"max_length": max_length, "key": 3}
        counts = write_counts(tmp_path / str(seed), [X[:11], X[11:]])
        for left in (None, words):
            stored = documents.CutDocuments(counts, units, **options, words=left)
            whole = shortened(sp.csr_array(sp.vstack([block for _, block in counts.blocks()])))
            read = documents.CutDocuments(whole, units, **options, words=left)
            [(numbers, all_documents)] = read.blocks()
            expected = unit_weights(all_documents, units, 2, least)
            np.testing.assert_array_equal(read.weights(all_documents, numbers, 2, least), expected)
            for numbers, block in stored.blocks(np.arange(N_DOCUMENTS) % 4 > 0):
                np.testing.assert_array_equal(block.toarray(), all_documents[numbers].toarray())
                np.testing.assert_array_equal(stored.weights(block, numbers, 2, least), expected[numbers])
                np.testing.assert_array_equal(stored.sizes(numbers), np.bincount(users)[users[numbers]])


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@pytest.mark.parametrize("sizes", [(7, 40)], indirect=True)
@pytest.mark.parametrize("parameters", [*FORMS, {"epsilon": 50.0, "prior": True, "max_iter": None}], ids=str)
def test_users_on_disk_are_fitted_as_in_memory(tmp_path, sizes, parameters, monkeypatch):
    """To the last bit, where documents start anew in each round, as those on disk do."""
    monkeypatch.setattr(VIPSLDA, "_remembers", lambda *of: False)
    X, users = corpus()
    X = sp.csr_array(X)
    if "prior" in parameters:
        parameters = parameters | {"prior": WordPrior(np.random.default_rng(1).standard_normal((N_WORDS, 3)))}
    fits = [
        VIPSLDA(2, **{"max_iter": 3, "random_state": 0} | parameters).fit(data, groups=users)
        for data in (X, write_counts(tmp_path / "corpus", [X]))
    ]
    np.testing.assert_array_equal(fits[1].components_, fits[0].components_)
    assert fits[1].privacy_guarantee_ == fits[0].privacy_guarantee_
    assert fits[1].privacy_guarantee_.unit == "user"


@pytest.mark.parametrize("sizes", [(7, 40)], indirect=True)
@pytest.mark.parametrize("kind", KINDS)
def test_a_user_on_disk_contributes_no_more_than_the_grid(tmp_path, sizes, kind):
    """Exactly, in Python's integers; the others' contributions stay. `test_adaptive` shows that the bound is met."""
    rng, largest = np.random.default_rng(10 + KINDS.index(kind)), 0

    def total(data, users):
        data = model._read(data, users, plan, randomness)
        return model._e_step(plan, randomness, data).collect(query, 0, None).total

    for seed in range(20):
        query = random_query(kind, N_WORDS, rng)
        n_topics = query.table.shape[1] if kind in ("frequent", "topics") else 2
        model = VIPSLDA(n_topics, random_state=0, max_doc_update_iter=16)
        plan, randomness = model._plan(), model._randomness()
        X, users = corpus(seed)
        if kind == "fit":
            X[users == 0] = np.arange(N_WORDS) < 2  # words of opposite vectors
        X = sp.csr_array(X)
        whole = total(write_counts(tmp_path / f"{seed}", [X]), users)
        np.testing.assert_array_equal(whole, total(X, users))
        for user in np.unique(users):
            parts = [
                total(write_counts(tmp_path / f"{seed}-{user}-{own}", [X[(users == user) == own]]), users[kept])
                for own in (True, False)
                for kept in [(users == user) == own]
            ]
            np.testing.assert_array_equal(whole - parts[1], parts[0])
            largest = max(largest, norm(parts[0], 2))
            assert largest <= NORM_BOUND**2
        if seed and largest > 0.1 * NORM_BOUND**2:  # of the rarest kind 2 of 3 corpora do: 20 suffice but for 1e-9
            break
    assert largest > 0.1 * NORM_BOUND**2
