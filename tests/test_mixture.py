"""The kernel of mixtures of semantic units, against numpy."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from internals import responsibilities, scaled_sums
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


def cells(rng):
    """Return a cell-segment matrix, the cells of units, and words of cells."""
    values = sp.csr_array(rng.poisson(0.3, size=(30, 50)) * rng.uniform(0, 100, size=(30, 50)))
    units = np.array([0, 1, 1, 9, 21, 30])
    words = np.concatenate([rng.permutation(20)[:n] for n in np.diff(units)]).astype(np.int32)
    return values, units, words


def sums_of(values, units, words, r, norm, n_threads=1):
    out = np.full((20, r.shape[1]), 77, np.int64)
    indices = values.indptr.astype(np.int64), values.indices.astype(np.int32)
    scaled_sums(units, *indices, values.data, words, r, norm, out, n_threads)
    return out


@pytest.mark.parametrize("norm", [1, 1000, 2**20, 2**24])
def test_sums_of_units_are_scaled_to_the_norm(norm):
    rng = np.random.default_rng(0)
    (values, units, words), r = cells(rng), rng.dirichlet(np.ones(4), 50)
    expected = np.zeros((20, 4))
    for first, last in pairwise(units):
        x = (values @ r)[first:last]
        expected[words[first:last]] += np.trunc(norm * (1 - 1e-9) / max(np.linalg.norm(x), 1e-300) * x)
    for n_threads in (1, 2, 7):
        np.testing.assert_allclose(sums_of(values, units, words, r, norm, n_threads), expected, atol=1e-6)
    assert expected.any() == (norm > 1)


@pytest.mark.parametrize("worst", [0.0, 1e-320, 1e-160, 1.0, 1e160, 1e300, np.inf, np.nan])
def test_no_unit_exceeds_the_norm_or_moves_others(worst):
    rng = np.random.default_rng(1)
    (values, units, words), r = cells(rng), rng.dirichlet(np.full(4, 0.1), 50)
    values.data[values.indptr[9] : values.indptr[21]] *= worst  # of the fourth unit
    without = sums_of(values, np.array([0, 1, 1, 9, 9, 30])[[0, 1, 3]], words, r, 2**20)
    rest = sums_of(values, np.array([21, 30]), words, r, 2**20)
    own = sums_of(values, units, words, r, 2**20) - without - rest
    square = sum(int(n) ** 2 for n in own.ravel())
    assert square <= 2**40 and own.min() >= 0
    assert square > 0.999 * 2**40 or worst != 1.0
    with pytest.raises(ValueError, match="norm must be"):
        sums_of(values, units, words, r, 2**25)
