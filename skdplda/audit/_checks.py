"""Audits of one mechanism each: an estimator in, whether the privacy it claims was refuted and what was seen out."""

import warnings
from itertools import product

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from skdplda.attacks import binomial_interval
from skdplda.audit._audit import audit
from skdplda.audit._canaries import quiet_fit
from skdplda.exceptions import EmptySelectionError
from skdplda.priors import PublicPrior
from skdplda.privacy import epsilon_of

CERTAIN = 1 - 1e-6  # confidence of a finding: the rate of false alarms that CONTRIBUTING.md allows
N_DOCUMENTS, N_WORDS = 40, 6  # few, so that a fit takes milliseconds
PRIOR = 0.01  # of topics: small, so that counts without noise show
SHOWN = 0.5  # epsilon that a form without a guarantee must be shown to exceed; chosen by hand
LATE = 20  # rounds of topics before a late one: the most that a fit plans
SINGLE_WORDS, SINGLE_FITS = 1000, 10  # words that one unit alone has, and fits in which they may be named


def corpus():
    """Return small counts, the same each time."""
    return sp.csr_array(np.random.default_rng(20).poisson(1.0, (N_DOCUMENTS, N_WORDS)).astype(np.int32))


def exact_totals(estimator):
    """Read the number of times each word occurs off the released table: no epsilon allows that."""
    X = corpus()
    model = quiet_fit(estimator, X)
    read = model.components_.sum(axis=0) - len(model.components_) * PRIOR
    totals = np.asarray(X.sum(axis=0), dtype=float)
    found = int((np.abs(read - totals) < 1e-6).sum())
    return found == N_WORDS, f"{found} of {N_WORDS} word totals read off exactly"


def absent_words(estimator):
    """Look for noise on words that no document has: where there is none, each word is known to be present or absent."""
    X = corpus()
    wider = sp.csr_array((X.data, X.indices, X.indptr), shape=(N_DOCUMENTS, N_WORDS + SINGLE_WORDS))
    bare = (np.abs(quiet_fit(estimator, wider).components_ - PRIOR) < 1e-12).all(axis=0)
    found = int(bare[N_WORDS:].sum())
    return found == SINGLE_WORDS and not bare[:N_WORDS].all(), f"{found} of {SINGLE_WORDS} absent words have no noise"


def many_canaries(estimator):
    """Guess which of many canaries are in one fit."""
    report = audit(estimator, corpus(), n_canaries=500, confidence=CERTAIN, verbose=0)
    broken = report.violated or (np.isinf(report.claim.epsilon) and report.lower_bound > SHOWN)
    return bool(broken), f"{report.evidence}: epsilon >= {report.lower_bound:.3g}"


def contribution(estimator):
    """Compare sums with and without a document under equal hidden draws: they may differ by the bound at most.

    The sums are those of the first round of topics, and where releases divide the budget of a late one and of the other
    releases, in integers, before noise. Where there is no prior, some vectors of words stand for one. The documents of
    a user together are looked at in a round of topics.
    """
    X, largest, rng = corpus(), 0.0, np.random.default_rng(3)
    divided = getattr(estimator, "_adaptive", None)  # whether releases divide the budget
    sums = [{"released": "topics"}, {"released": "topics", "groups": np.arange(N_DOCUMENTS) // 2}]
    if divided is not None and divided():
        sums += [{"released": kind} for kind in ("frequent", "words", "votes", "priors", "vector_votes", "vectors")]
        sums.append({"released": "topics", "rounds_before": LATE})
        if estimator.prior is None:
            words, vectors = [f"word{i}" for i in range(N_WORDS)], np.cos(np.arange(4.0 * N_WORDS)).reshape(N_WORDS, 4)
            prior = PublicPrior.from_vectors((words, vectors)).for_words(words)
            estimator = clone(estimator).set_params(prior=prior)
    for n_topics, options in product((1, 2), sums):  # one topic comes nearest to the bound, two have hidden draws
        model = clone(estimator).set_params(n_components=n_topics, random_state=1)
        users = options.get("groups")
        without = model.audit_contributions(X, **options)
        norm, bound = without.norm, without.bound
        for scale in (0, 1, 1, 3, 30, 1000, 20_000):
            document = rng.poisson(scale, (1, N_WORDS)).astype(np.int32)
            document[0, rng.integers(N_WORDS)] += scale
            unit = document if users is None else np.vstack([document, document[:, ::-1]])
            wider = sp.vstack([X, sp.csr_array(unit)], format="csr")
            more = {} if users is None else {"groups": np.append(users, [N_DOCUMENTS, N_DOCUMENTS])}
            total = model.audit_contributions(wider, **options | more).total
            moved = (total - without.total).astype(object)  # exact: squares do not fit in 64 bits
            size = np.abs(moved).sum() if norm == 1 else (moved**2).sum() ** 0.5
            largest = max(largest, float(size))
    return largest > bound, f"a document moves the sum by {largest / bound:.6g} of the bound"


def accounted(estimator):
    """Price the noise by privacy loss distributions: a claim without a valid proof may still understate epsilon.

    It takes for granted what `contribution` looks at: that the noise is the stated multiple of a contribution.
    """
    claim = estimator.privacy_cost()
    if claim.event is None:
        return True, "no proven account of the noise supports the claim"
    worth = epsilon_of(claim.event, claim.delta)
    return bool(worth > claim.epsilon), f"noise worth epsilon {worth:.4g} where {claim.epsilon:.4g} is claimed"


def single_unit_delta(estimator):
    """Select the words of one unit of many words: without it there are none to name, so delta bounds the chance."""
    if hasattr(estimator, "get_support"):
        X = sp.csr_array(np.ones((1, SINGLE_WORDS), dtype=np.int32))
    else:
        X = [" ".join(f"word{number}" for number in range(SINGLE_WORDS))]
    named = sum(names_words(estimator, X) for _ in range(SINGLE_FITS))
    low, _ = binomial_interval(named, SINGLE_FITS, 2 * CERTAIN - 1)
    delta = estimator.privacy_cost().delta
    return low > delta, f"words named in {named} of {SINGLE_FITS} fits: probability >= {low:.3g}, delta is {delta:.3g}"


def names_words(selector, X):
    """Whether a fit names any word: a vectorizer raises where it names none, a selector warns and has no columns."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fitted = clone(selector).fit(X)
    except EmptySelectionError:
        return False
    return not hasattr(fitted, "get_support") or bool(fitted.get_support().any())
