"""PCTD: EM over semantic units, smoothing, and the private rounds."""

import warnings
from functools import partial
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from internals import (
    ConsistentTables,
    LastTable,
    SegmentEStep,
    SmoothedTables,
    check_groups,
    consistent,
    pctd,
    shortened,
)
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdplda import PCTD, BudgetExceededError, PrivacyAccountant, PrivacyLeakWarning, PublicPrior
from skdplda.datasets import make_lda_corpus, topic_recovery
from skdplda.plots import ConvergenceDisplay
from skdplda.priors import WordPrior
from skdplda.published import PublishedPCTD
from skdplda.rounds import NORM_BOUND, TopicWordCounts
from skdplda.semantics import SemanticUnitVectorizer, UnitMatrix, word_similarity

NOTHING = 1e-30  # a prior that is none


def random_units(n_documents=40, n_words=25, most=6, seed=0):
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(rng.integers(0, most, n_documents))])
    topics = rng.dirichlet(np.full(n_words, 0.2), 3)
    counts = np.array([rng.multinomial(rng.integers(0, 6), topics[rng.integers(3)]) for _ in range(start[-1])])
    return UnitMatrix(start, sp.csr_array(counts))


@pytest.fixture(scope="module")
def units():
    return random_units()


def planted_units(seed):
    """Return units of three words of one topic each, and the topics."""
    corpus = make_lda_corpus(3000, 60, 4, mean_length=60, random_state=seed)
    rng = np.random.default_rng(seed + 1)
    start, rows = [0], []
    for proportions in rng.dirichlet(np.full(4, 0.3), 3000):
        topics = rng.choice(4, size=10, p=proportions)
        rows += [rng.multinomial(3, corpus.topic_word[k]) for k in topics]
        start.append(len(rows))
    return UnitMatrix(start, sp.csr_array(np.array(rows))), corpus.topic_word


@pytest.fixture(scope="module")
def planted():
    return planted_units(0)


def quiet(model, X, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return model.fit(X, **arguments)


def e_step(X, n_topics=3, **options):
    settings = {"bounded": True, "alpha": np.full(3, 0.1), "beta": 0.01, "n_updates": 10, "n_threads": 1}
    return SegmentEStep(X, n_topics=n_topics, **settings | options)


def em(X, n_topics, n_rounds, similarity=None, tau=0.0):
    """Run EM without priors; return the likelihood before each round, the last table, and the proportions."""
    step = e_step(X, n_topics, bounded=False, alpha=np.full(n_topics, NOTHING), beta=NOTHING, n_updates=1)
    tables = LastTable((X.shape[1], n_topics), 7, similarity, tau)
    likelihood = []
    for round_ in range(n_rounds):
        tables.update(step.collect(tables.query(), round_, None), round_)
        likelihood.append(step.log_likelihood.sum())
    return np.array(likelihood), tables.table, step.arrays()["theta"]


# --- EM -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_likelihood_never_decreases(seed):
    likelihood, *_ = em(random_units(seed=seed), 4, 60)
    assert (np.diff(likelihood) > -1e-9 * np.abs(likelihood[1:])).all()
    assert likelihood[-1] > likelihood[0] + 10


def test_units_of_one_word_are_plsa():
    counts = make_lda_corpus(12, 9, 3, mean_length=20, random_state=0).data.toarray()
    _, table, theta = em(UnitMatrix.from_counts(sp.csr_array(counts)), 3, 20)
    phi = LastTable((9, 3), 7, None, 0.0).table.astype(np.float64)  # the same start
    phi, p = phi / phi.sum(axis=0), np.full((12, 3), 1 / 3)
    for _ in range(20):
        new_phi, new_p = np.zeros_like(phi), np.zeros_like(p)
        for d in range(12):
            for w in np.flatnonzero(counts[d]):
                joint = p[d] * phi[w]
                responsibility = counts[d, w] * joint / joint.sum()
                new_phi[w] += responsibility
                new_p[d] += responsibility
        phi, p = new_phi / new_phi.sum(axis=0), new_p / new_p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(table / table.sum(axis=0), phi, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(theta, p, rtol=1e-7, atol=1e-12)


def test_similarity_follows_equation_11():
    rng = np.random.default_rng(0)
    table = rng.gamma(0.3, size=(15, 4))
    table[:, 3] = 0  # an empty topic stays
    R = word_similarity([f"w{i}" for i in range(15)], rng.normal(size=(15, 2)), threshold=0.3)
    found = consistent(table, R, 0.3)
    dense = R.toarray()
    for k in range(3):
        p = table[:, k] / table[:, k].sum()
        expected = np.array([p[w] + 0.3 * p[w] * (dense[:, w] @ p) / (p @ dense @ p) for w in range(15)])
        np.testing.assert_allclose(found[:, k] / found[:, k].sum(), expected / expected.sum(), rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=0), table.sum(axis=0))
    assert consistent(table, R, 0.0) is table and consistent(table, None, 0.3) is table


def test_similarity_has_no_scale(units):
    R = np.eye(25) + np.eye(25, k=1) + np.eye(25, k=-1)
    one, large = (quiet(PCTD(3, max_iter=3, similarity=s * R, random_state=0), units) for s in (1.0, 2.0**1000))
    np.testing.assert_array_equal(one.components_, large.components_)


def test_similar_words_come_together():
    """More than if each word were similar to itself alone, by 0.32 nats (over 40 corpora with deviation 0.2)."""
    alone, neighbours, found = sp.csr_array(np.eye(25)), sp.csr_array(np.eye(25, k=1) + np.eye(25, k=-1)), []
    for seed in range(12):
        units = random_units(seed=seed)
        for R in (alone, alone + neighbours):
            phi = PCTD(3, epsilon=np.inf, similarity=R, random_state=seed).fit(units).topic_word_
            found.append(np.log(np.sum(phi * (phi @ neighbours)) / np.sum(phi**2)))
    assert np.mean(found[1::2]) > np.mean(found[::2])


def test_planted_topics_are_found(planted):
    """One exact fit in ten mixes topics; all of six do with probability 1e-6. Over 10 corpora the others find 0.993.

    Four private ones find 0.79 in the mean, with deviation 0.067.
    """
    X, topics = planted
    fits = [PCTD(4, epsilon=np.inf, random_state=seed).fit(X) for seed in range(6)]
    assert topic_recovery(topics, min(fits, key=lambda fit: fit.perplexity(X)).topic_word_).mean > 0.95
    private = [quiet(PCTD(4, epsilon=5.0, random_state=seed), X) for seed in range(4)]
    assert np.mean([topic_recovery(topics, fit.topic_word_).mean for fit in private]) > 0.5


# --- the private rounds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [None, np.arange(40) // 3])
@pytest.mark.parametrize("concentration", [0.01, 1.0])
def test_no_contribution_exceeds_the_grid(units, groups, concentration):
    """Nor is it much below it, for whoever has words; and the sum is that of the contributions."""
    members = check_groups(groups, len(units))
    query = TopicWordCounts(np.random.default_rng(0).gamma(concentration, size=(25, 3)).astype(np.float32) + 1e-6)
    parts = []
    for documents in np.split(members[1], members[0][1:-1]):
        alone = check_groups(np.zeros(len(documents), int), len(documents))
        parts.append(e_step(units[documents], units=alone).collect(query, 0, None).total)
        has_words = units[documents].counts.nnz > 0
        assert (0.99999 * NORM_BOUND if has_words else 0) <= np.linalg.norm(parts[-1]) <= NORM_BOUND
    whole = e_step(units, units=None if groups is None else members, n_threads=2).collect(query, 0, None).total
    np.testing.assert_array_equal(whole, sum(parts))


def test_a_repeated_word_counts_its_square_root():
    X, query = UnitMatrix([0, 2], [[3, 0, 1], [1, 1, 0]]), TopicWordCounts(np.ones((3, 3), np.float32))
    words = e_step(X).collect(query, 0, None).total.sum(axis=1) / NORM_BOUND  # all topics are alike
    np.testing.assert_allclose(words, np.array([2, 1, 1]) / 6**0.5 * 3**0.5, rtol=1e-5)


def test_sums_are_integers_and_a_document_moves_them_by_the_grid_at_most(units):
    def collect(X):
        step = e_step(X)
        table = np.random.default_rng(0).gamma(1.0, size=(25, 3)).astype(np.float32)
        return step.collect(TopicWordCounts(table), 0, None).total

    whole = collect(units)
    assert whole.dtype == np.int64
    for d in range(5):
        rest = np.delete(np.arange(len(units)), d)
        assert np.linalg.norm(whole - collect(units[rest])) <= NORM_BOUND


def test_who_is_left_out_adds_nothing(units):
    step = e_step(units)
    query = TopicWordCounts(np.random.default_rng(0).gamma(1.0, size=(25, 3)).astype(np.float32))
    active = np.zeros(len(units), np.uint8)
    assert not step.collect(query, 0, active).total.any()
    np.testing.assert_allclose(step.arrays()["theta"], 1 / 3)  # nor does it change
    active[::2] = 1
    half = step.collect(query, 1, active).total.copy()
    part = e_step(units[::2])
    np.testing.assert_array_equal(half, part.collect(query, 1, None).total)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_topics_are_shrunk_without_public_knowledge_too(units, planted):
    """In the mean of four fits by 0.036 nats (over 12 corpora with deviation 0.0067)."""
    plain, empty = (PCTD(3, epsilon=1.0, random_state=0, prior=prior).fit(units) for prior in (None, WordPrior()))
    np.testing.assert_array_equal(plain.components_, empty.components_)
    X, found = planted[0], []
    for pseudo_counts in (ConsistentTables.pseudo_counts, SmoothedTables.pseudo_counts):
        with patch.object(ConsistentTables, "pseudo_counts", pseudo_counts):
            fits = [PCTD(4, epsilon=0.3, random_state=seed).fit(X) for seed in range(4)]
        found.append(np.log([fit.perplexity(X) for fit in fits]).mean())
    assert found[0] < found[1]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"sampling_rate": 0.5},
        {"epsilon": np.inf},
        {"epsilon": np.inf, "sampling_rate": 0.5},
        {"noise_on": "units", "epsilon": 15.0},
        {"kind": PublishedPCTD},
        {"kind": PublishedPCTD, "noise_support": "observed"},
    ],
)
def test_any_number_of_threads_gives_the_same_model(units, parameters):
    make = partial(parameters.pop("kind", PCTD), 3, max_iter=4, random_state=3, **parameters)
    models = [quiet(make(n_jobs=n), units) for n in (1, 2)]
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
    assert models[0].privacy_guarantee_ == make().privacy_cost()


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@pytest.mark.parametrize("parameters", [{}, {"epsilon": np.inf}, {"sampling_rate": 0.7}])
def test_an_interrupted_fit_goes_on(units, tmp_path, parameters):
    R = sp.csr_array(np.eye(25) + np.eye(25, k=1) + np.eye(25, k=-1))
    common = {"max_iter": 6, "random_state": b"secret of 16 byt", "similarity": R, **parameters}

    def interrupt(report):
        if report.n_done == 3:
            raise KeyboardInterrupt

    path = tmp_path / "fit.npz"
    whole = PCTD(3, **common).fit(units)
    with PrivacyAccountant(epsilon=np.inf, delta=1e-4) as accountant:
        with pytest.raises(KeyboardInterrupt):
            PCTD(3, checkpoint=path, callback=interrupt, **common).fit(units)
        resumed = PCTD(3, checkpoint=path, **common).fit(units)
    assert len(accountant.ledger) == 1
    np.testing.assert_array_equal(whole.components_, resumed.components_)
    with pytest.raises(KeyboardInterrupt):
        PCTD(3, checkpoint=path, callback=interrupt, **common).fit(units)
    other = {**common, "similarity": R + sp.csr_array(np.eye(25, k=3))}
    with pytest.raises(ValueError, match="other parameters or other data"):
        PCTD(3, checkpoint=path, **other).fit(units)


def test_groups_make_the_user_the_unit(units):
    users = np.arange(len(units)) // 2
    model = PCTD(3, max_iter=2).fit(units, groups=users)
    assert model.privacy_guarantee_.unit == "user"
    assert model.privacy_guarantee_ == PCTD(3, max_iter=2).privacy_cost(groups=True)
    with pytest.raises(ValueError, match="groups must be None"):
        PCTD(3, noise_on="units").fit(units, groups=users)
    with pytest.raises(ValueError, match="groups must be None"):
        PublishedPCTD(3).privacy_cost(groups=True)


@pytest.mark.parametrize("noise", ["statistics", "units"])
def test_the_cost_is_the_guarantee(units, noise):
    cost = PCTD(3, epsilon=2.0, noise_on=noise).privacy_cost()
    assert cost.status == "proven"
    assert cost.epsilon_at(1e-5) <= 2.0
    accountant = PrivacyAccountant(epsilon=1.0, delta=1e-4, unit=cost.unit, adjacency=cost.adjacency)
    with accountant, pytest.raises(BudgetExceededError):
        PCTD(3, epsilon=2.0, noise_on=noise).fit(None)  # nothing was read
    assert accountant.ledger == ()


@pytest.mark.parametrize("kind", [PCTD, partial(PCTD, noise_on="units"), PublishedPCTD])
def test_a_similarity_is_assumed_to_be_public(kind):
    """One that was counted in the private texts shows in the topics."""
    plain, similar = kind(3), kind(3, similarity=np.eye(25))
    line = "similarity: independent of the private texts"
    assert similar.privacy_cost().assumptions == (*plain.privacy_cost().assumptions, line)
    assert similar.set_params(epsilon=np.inf).privacy_cost().assumptions == ()


def test_the_budget_is_charged_once_before_the_first_release(units):
    for kind in (PCTD, partial(PCTD, noise_on="units"), PublishedPCTD):
        g = kind().privacy_cost()
        books = {"unit": g.unit, "adjacency": g.adjacency, "accept_claimed": g.status == "claimed"}
        with PrivacyAccountant(epsilon=50.0, delta=1e-4, **books) as accountant:

            def interrupt(report, accountant=accountant):
                assert len(accountant.ledger) == 1
                raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                quiet(kind(3, epsilon=15.0, callback=interrupt), units)
        assert len(accountant.ledger) == 1


# --- what comes after -------------------------------------------------------------------------------------


def test_proportions_are_a_fixed_point_of_em(units):
    model = PCTD(3, epsilon=np.inf, random_state=0, doc_topic_prior=0.2).fit(units)
    found = model.transform(units)
    for d in range(10):
        L = units[[d]].counts.toarray() @ np.log(model.topic_word_).T
        theta = np.full(3, 1 / 3)
        for _ in range(500):
            joint = theta * np.exp(L - L.max(axis=1, keepdims=True))
            theta = 0.2 + (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0)
            theta /= theta.sum()
        np.testing.assert_allclose(found[d], theta, atol=5e-3)
    np.testing.assert_array_equal(model.fit_transform(units), found)


def test_transform_works_by_blocks(units, monkeypatch):
    model = PCTD(3, max_iter=2).fit(units)
    whole = model.transform(units)
    monkeypatch.setattr(pctd, "TRANSFORM_CELLS", 30)
    np.testing.assert_array_equal(model.transform(units), whole)
    np.testing.assert_array_equal(np.concatenate([model.transform(units[[d]]) for d in range(40)]), whole)
    frame = model.set_output(transform="pandas").transform(units)
    assert list(frame.columns) == ["topic_0", "topic_1", "topic_2"]
    assert model.transform(units[:0]).shape == (0, 3)


def test_units_and_their_counts_score_alike(units):
    model = PCTD(3, max_iter=2).fit(units)
    assert model.score(units) == model.score(units.to_counts())
    assert model.perplexity(units, method="fold-in") > 1


def test_convergence_is_followed_on_public_documents(planted):
    """Of planted topics the logarithm falls by 0.31 (over 20 corpora with deviation 0.075)."""
    public, reports = planted[0][:300], []
    model = PCTD(4, epsilon=np.inf, random_state=0, callback=reports.append).fit(planted[0])
    values = ConvergenceDisplay.from_reports(reports, public=public, estimator=model).values
    assert len(values) == 35 and values[-1] < values[0]
    np.testing.assert_allclose(values[-1], model.perplexity(public), rtol=0.02)


def test_plain_counts_are_units_of_one_word(units):
    counts = units.to_counts()
    with pytest.warns(UserWarning, match="each word is a semantic unit of its own"):
        plain = PCTD(3, epsilon=np.inf, random_state=0).fit(counts)
    same = PCTD(3, epsilon=np.inf, random_state=0).fit(UnitMatrix.from_counts(counts))
    np.testing.assert_array_equal(plain.components_, same.components_)
    with pytest.warns(UserWarning, match="each word"):
        named = PCTD(3, max_iter=1).fit(pd.DataFrame(counts.toarray(), columns=[f"w{i}" for i in range(25)]))
    assert named.top_words(2).iloc[0, 0].startswith("w")
    assert not hasattr(named.fit(units), "feature_names_in_")


@pytest.mark.filterwarnings("ignore:no word stands out:UserWarning")
@pytest.mark.parametrize("estimator", [PCTD(), PCTD(epsilon=np.inf), PCTD(noise_on="units"), PublishedPCTD()], ids=repr)
@pytest.mark.parametrize("start", [[0, 0], [0, 2], [0, 0, 1, 1]])
def test_empty_units_and_documents(estimator, start):
    X = UnitMatrix(start, sp.csr_array((start[-1], 4), dtype=np.int64))
    model = quiet(clone(estimator).set_params(n_components=2, max_iter=2), X)
    assert np.isfinite(model.topic_word_).all()
    np.testing.assert_allclose(model.transform(X), 0.5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tau": -0.1}, "'tau' parameter"),
        ({"tau": 1e308}, "'tau' parameter"),
        ({"noise_on": "tokens"}, "'noise_on' parameter"),
        ({"noise_on": "units-each-iteration"}, "'noise_on' parameter of PCTD must be a str among"),
        ({"noise_on": "units", "sampling_rate": 0.5}, "sampling_rate must be 1.0"),
        ({"noise_on": "units", "checkpoint": "file"}, "checkpoint must be None"),
        ({"similarity": np.eye(24)}, "each of the 25 words; got shape"),
        ({"similarity": -np.eye(25)}, "not negative"),
        ({"similarity": np.full((25, 25), np.nan)}, "finite"),
        ({"doc_topic_prior": -1.0}, "doc_topic_prior"),
        ({"topic_word_prior": 0.0}, "topic_word_prior"),
    ],
)
def test_bad_parameters(units, parameters, message):
    with pytest.raises(ValueError, match=message):
        PCTD(3, **parameters).fit(units)


def test_bad_units(units):
    with pytest.raises(ValueError, match="must have documents and words"):
        PCTD().fit(units[:0])
    model = PCTD(3, max_iter=1).fit(units)
    with pytest.raises(ValueError, match="X has 7 features"):
        model.transform(random_units(n_words=7))
    with pytest.raises(ValueError, match="X has 7 features"):
        model.score(random_units(n_words=7))
    with pytest.warns(UserWarning, match="exceeds the 25 words"):
        PCTD(30, max_iter=1).fit(units)


@pytest.mark.parametrize("last", [2, 3])
def test_a_document_whose_counts_wrap_around_stays_within_the_norm(last):
    """In 32 bits the counts of its word add up to 0, or to 1, and it added four billion times the norm."""
    most = 2**31 - 1
    units = UnitMatrix([0, 1, 4, 5], [[1, 2], [most, 0], [most, 1], [last, 0], [3, 0]])
    for groups in (None, [0, 1, 1]):
        privacy_units = check_groups(groups, 3)
        query = TopicWordCounts(np.array([[1, 2, 3], [3, 2, 1]], np.float32))
        whole = e_step(units, units=privacy_units).collect(query, 0, None).total
        rest = (
            e_step(units[1:], units=check_groups(None if groups is None else [1, 1], 2)).collect(query, 0, None).total
        )
        assert sum(int(n) ** 2 for n in (whole - rest).ravel()) <= NORM_BOUND**2
        assert whole.min() >= 0 and np.linalg.norm(rest) <= (2 if groups is None else 1) * NORM_BOUND
    with_it = PCTD(2, epsilon=1.0, max_iter=3, random_state=0)
    with pytest.warns(PrivacyLeakWarning):
        table = with_it.fit(units).components_
    assert table.max() < 1e5


def test_long_documents_of_units_keep_the_public_number_of_tokens():
    cells = np.array([[2**21, 0, 5], [1, 1, 1], [0, 2**31 - 1, 0]])
    units = UnitMatrix([0, 1, 2, 3], cells)
    cut = shortened(units)
    assert cut.to_counts().sum(axis=1).tolist() == [2**20, 3, 2**20]
    assert (cut.counts.toarray() <= cells).all()
    assert shortened(units[1:2]).counts.toarray().tolist() == [[1, 1, 1]]


def test_a_public_prior_shrinks_what_is_released():
    """By 0.17 nats with deviation 0.071, over 24 fits: four corpora are 4.7 deviations from none."""
    names, gains = [f"w{i}" for i in range(60)], []
    for seed in range(4):
        X, topics = planted_units(seed)
        priors = (None, PublicPrior.from_topics(topics, names).for_words(names))
        none, helped = (quiet(PCTD(4, epsilon=0.5, random_state=0, prior=prior), X) for prior in priors)
        gains.append(np.log(none.perplexity(X) / helped.perplexity(X)))
    assert np.mean(gains) > 0
    assert (helped.components_ > 0).all()
    # topics keep the numbers of the prior
    clear = quiet(PCTD(4, epsilon=5.0, random_state=0, prior=priors[1]), X)
    assert (np.corrcoef(clear.topic_word_, topics)[:4, 4:].argmax(axis=1) == np.arange(4)).all()
    assert helped.privacy_guarantee_.epsilon == none.privacy_guarantee_.epsilon
    assert any("public prior" in line for line in helped.privacy_guarantee_.assumptions)
    assert not any("public prior" in line for line in none.privacy_guarantee_.assumptions)


def test_a_public_prior_needs_words_and_the_default_noise(units):
    prior = PublicPrior.from_frequencies({"tea": 1.0})
    with pytest.raises(ValueError, match="prior needs the words of X"):
        quiet(PCTD(3, prior=prior), units)
    for options in ({"noise_on": "units"}, {"sampling_rate": 0.5}):
        with pytest.raises(ValueError, match="prior must be None for this form"):
            PCTD(3, prior=prior, **options).privacy_cost()


def test_units_of_more_words_than_can_be_counted_are_not_scored(units):
    """Units hold counts below 2**31; what a document has of a word, over all of its units, may not."""
    many = UnitMatrix([0, 2], np.full((2, units.shape[1]), 2**31 - 1))
    with pytest.raises(ValueError, match=r"X must hold non-negative integer counts below 2\*\*31"):
        quiet(PCTD(3, max_iter=2, random_state=0), units).score(many)


def test_in_a_pipeline_it_knows_its_words():
    words = ["pear", "plum", "iron", "zinc"]
    pipeline = make_pipeline(SemanticUnitVectorizer("sentence", vocabulary=words), PCTD(2, max_iter=2))
    assert set(pipeline.fit(["pear plum. iron zinc."] * 9)[-1].top_words(4).loc["topic_0"]) == set(words)
