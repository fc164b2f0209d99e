"""The kernel of mixtures of semantic units, against numpy."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import responsibilities, word_sums
from scipy.special import logsumexp


def reference(start, counts, log_phi, extra, prior, active, theta, n_updates):
    """The docstring's equivalent."""
    theta, r, likelihood = theta.copy(), np.zeros((counts.shape[0], log_phi.shape[1])), np.zeros(len(theta))
    for d in range(len(theta)):
        u = slice(start[d], start[d + 1])
        if not active[d] or start[d] == start[d + 1]:
            continue
        L = counts[u] @ log_phi + extra[u]
        for step in range(n_updates):
            joint = np.log(theta[d]) + L
            if step == 0:
                likelihood[d] = logsumexp(joint, axis=1).sum()
            r[u] = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
            theta[d] = prior + r[u].sum(axis=0)
            theta[d] /= theta[d].sum()
    return theta, r, likelihood


@pytest.mark.parametrize("n_topics", [1, 3, 8])
@pytest.mark.parametrize("n_updates", [1, 4])
@pytest.mark.parametrize("everyone", [True, False])
def test_the_kernel_is_its_reference(n_topics, n_updates, everyone):
    rng = np.random.default_rng(n_topics)
    n_documents, n_words = 30, 12
    start = np.concatenate([[0], np.cumsum(rng.integers(0, 5, n_documents))])
    counts = sp.csr_array(rng.poisson(0.4, size=(start[-1], n_words)).astype(float))
    log_phi = np.ascontiguousarray(np.log(rng.dirichlet(np.full(n_words, 0.3), n_topics).T + 1e-200))
    extra = rng.normal(size=(start[-1], n_topics))
    prior = rng.uniform(0.1, 1, n_topics)
    theta = rng.dirichlet(np.ones(n_topics), n_documents)
    active = np.ones(n_documents, np.uint8) if everyone else rng.integers(0, 2, n_documents, dtype=np.uint8)
    expected = reference(start, counts.toarray(), log_phi, extra, prior, active, theta, n_updates)
    first = None
    for n_threads in (1, 2, 3):
        found = theta.copy(), np.full((start[-1], n_topics), np.nan), np.full(n_documents, np.nan)
        responsibilities(
            start,
            counts.indptr.astype(np.int64),
            counts.indices.astype(np.int32),
            counts.data,
            log_phi,
            extra,
            prior,
            np.empty(0, np.uint8) if everyone else active,
            *found,
            n_updates,
            n_threads,
        )
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
        first = first or found
        for ours, theirs in zip(found, first, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n_updates", [1, 3])
def test_topics_that_are_no_numbers_contribute_nothing(bad, n_updates):
    """A contribution is bounded whatever the table is: integers made of NaN would be as large as integers get."""
    log_phi = np.log(np.full((4, 2), 0.25))
    log_phi[1, 0] = bad
    log_phi[2] = bad
    counts = sp.csr_array(np.eye(4))
    theta, r = np.full((1, 2), 0.5), np.full((4, 2), 7.0)
    start, words = counts.indptr.astype(np.int64), counts.indices.astype(np.int32)
    nothing = np.empty((0, 0)), np.full(2, 0.1), np.empty(0, np.uint8)
    responsibilities(
        np.array([0, 4]), start, words, counts.data, log_phi, *nothing, theta, r, np.empty(1), n_updates, 1
    )
    assert (r >= 0).all() and (r.sum(axis=1) <= 1 + 1e-12).all()
    assert not r[2].any()
    np.testing.assert_allclose(r[[0, 3]].sum(axis=1), 1)
    np.testing.assert_allclose(theta.sum(), 1)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_sums_by_word(dtype):
    rng = np.random.default_rng(0)
    values = sp.csr_array(rng.poisson(0.3, size=(20, 50)) * rng.uniform(0, 100, size=(20, 50)))
    r = rng.dirichlet(np.ones(4), 50)
    dense = values.toarray()[:, :, None] * r
    expected = np.trunc(dense).sum(axis=1) if dtype == np.int64 else dense.sum(axis=1)
    for n_threads in (1, 2):
        out = np.full((20, 4), 77, dtype)
        word_sums(values.indptr.astype(np.int64), values.indices.astype(np.int32), values.data, r, out, n_threads)
        np.testing.assert_allclose(out, expected, rtol=1e-13)
