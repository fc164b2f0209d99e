"""PrivateCGSLDA as its user meets it: bad input, reproducibility, budget, groups, quality."""

import math
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from conversing import kind_of
from internals import GAMMA_SHAPE, AdaptiveEStep, initial_table, word_weights
from internals import adaptive as _adaptive
from internals import prices as _prices
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from skdplda import BudgetExceededError, PrivacyAccountant, PrivacyLeakWarning, PrivateCGSLDA, PublicPrior
from skdplda.datasets import make_lda_corpus, topic_recovery
from skdplda.exceptions import NoisyTopicsWarning
from skdplda.metrics import perplexity
from skdplda.privacy import Randomness, calibrate_gaussian, observing
from skdplda.published import PriTopLDA
from skdplda.rounds import NORM_BOUND, NoisePlan

INF = math.inf
X = sp.csr_array(np.random.default_rng(0).poisson(1.0, size=(30, 8)))


def model(n_components=2, **parameters):
    return PrivateCGSLDA(n_components, **{"max_iter": 2, **parameters})


def seeded_fit(data, groups=None, seed=0, **parameters):
    with pytest.warns(PrivacyLeakWarning, match="random_state"):
        return model(random_state=seed, **parameters).fit(data, groups=groups)


# --- what is refused -----------------------------------------------------------------------------------


def dense(value):
    data = X.toarray().astype(float)
    data[3, 4] = value
    return data


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (dense(np.nan), "Input X contains NaN"),
        (dense(np.inf), "Input X contains infinity"),
        (dense(-1), "Negative values in data passed to PrivateCGSLDA"),
        (np.zeros((0, 4)), r"0 sample\(s\) \(shape=\(0, 4\)\) while a minimum of 1 is required"),
        (np.zeros((4, 0)), r"0 feature\(s\) \(shape=\(4, 0\)\) while a minimum of 1 is required"),
        (np.zeros(4), "Expected 2D array, got 1D array"),
        ([["two", "words"]], "got texts"),
    ],
)
def test_bad_counts_are_refused(data, said):
    with pytest.raises(ValueError, match=said):
        model().fit(data)
    if np.ndim(data) == 2 and not isinstance(data, list):
        with pytest.raises(ValueError, match=said):
            model().fit(sp.csr_array(data))


def test_fractions_are_rounded_with_a_warning():
    with pytest.warns(UserWarning, match="fractional values in X were rounded. Pass counts"):
        rough = model(epsilon=INF, random_state=0).fit(X.toarray() + 0.2)
    exact = model(epsilon=INF, random_state=0).fit(X)
    np.testing.assert_array_equal(rough.components_, exact.components_)


def test_empty_documents_are_documents():
    with_gaps = sp.vstack([X, sp.csr_array((3, 8), dtype=int)]).tocsr()
    fitted = model().fit(with_gaps)
    np.testing.assert_allclose(fitted.transform(with_gaps)[-1], 1 / 2)
    empty = model(mechanism="discrete-gaussian").fit(np.zeros((5, 8), dtype=int))
    assert empty.components_.std() > 0  # noise, though there is nothing to hide


def test_all_that_is_released_of_empty_documents_is_noise():
    released = []

    def note(kind, query, noisy, multiplier):
        released.append(noisy.copy())

    with observing(note):
        empty = model().fit(np.zeros((5, 8), dtype=int))
    assert len(released) == empty.n_iter_ > 1
    assert all(len(np.unique(noisy)) == noisy.size for noisy in released)
    assert np.isfinite(empty.components_).all() and empty.components_.min() > 0


PARAMETERS = [  # parameters, what the message must say: the name, the value, what is allowed
    ({"n_components": 0}, "'n_components' .* range [1, 65534]. Got 0"),
    ({"n_components": 70000}, "'n_components' .* range [1, 65534]. Got 70000"),
    ({"n_components": 2.0}, "'n_components' .* must be an int .* Got 2.0"),
    ({"epsilon": 0}, "'epsilon' .* range (0.0, inf]. Got 0"),
    ({"epsilon": -1}, "'epsilon' .* range (0.0, inf]. Got -1"),
    ({"epsilon": math.nan}, "'epsilon' .* range (0.0, inf]. Got nan"),
    ({"epsilon": "a"}, "'epsilon' .* range (0.0, inf]. Got 'a'"),
    ({"epsilon": None}, "'epsilon' .* range (0.0, inf]. Got None"),
    ({"delta": 1}, "'delta' .* range [0.0, 1.0). Got 1"),
    ({"delta": -0.1}, "'delta' .* range [0.0, 1.0). Got -0.1"),
    ({"delta": math.nan}, "'delta' .* range [0.0, 1.0). Got nan"),
    ({"delta": 0}, "delta=0.0 is too small .* above 1e-100, or mechanism='laplace'"),
    ({"mechanism": "exponential"}, "'mechanism' .* must be a str among {.*'gaussian'.*}. Got 'exponential'"),
    ({"max_iter": 0}, "'max_iter' .* range [1, 2147483647] or None. Got 0"),
    ({"local_sweeps": 0}, "'local_sweeps' .* range [1, 2147483647] or None. Got 0"),
    ({"sampling_rate": 0}, "'sampling_rate' .* range (0.0, 1.0]. Got 0"),
    ({"sampling_rate": 1.5}, "'sampling_rate' .* range (0.0, 1.0]. Got 1.5"),
    ({"mechanism": "laplace", "sampling_rate": 0.5}, "sampling_rate must be 1.0 .* got 0.5. Use mechanism='gaussian'"),
    (
        {"doc_topic_prior": -1.0},
        "doc_topic_prior must be a number from 1e-30 to 1e30 or 2 of them, one a topic; got -1.0",
    ),
    ({"doc_topic_prior": [0.1, 0.0]}, "doc_topic_prior must be a number from 1e-30 to 1e30 .* got [0.1, 0.0]"),
    ({"doc_topic_prior": [0.1, 0.1, 0.1]}, "doc_topic_prior must be .* 2 of them.* got an array of shape (3,)"),
    ({"doc_topic_prior": math.nan}, "doc_topic_prior must be a number from 1e-30 to 1e30 .* got nan"),
    ({"doc_topic_prior": 1e-50}, "doc_topic_prior must be a number from 1e-30 to 1e30 .* got 1e-50"),
    ({"topic_word_prior": 1e50}, "topic_word_prior must be a number from 1e-30 to 1e30; got 1e+50"),
    ({"topic_word_prior": 0.0}, "topic_word_prior must be a number from 1e-30 to 1e30; got 0.0"),
    ({"topic_word_prior": [0.1, 0.1]}, "'topic_word_prior' .* Got [0.1, 0.1]"),
    ({"callback": "call"}, "'callback' .* must be a callable or None. Got 'call'"),
    ({"mechanism": "inherent"}, "'mechanism' parameter of PrivateCGSLDA must be a str among {.*}. Got 'inherent'"),
    ({"n_jobs": 1.5}, "'n_jobs' .* Got 1.5"),
    ({"random_state": "seed"}, "'random_state' .* Got 'seed'"),
]


@pytest.mark.parametrize(("parameters", "said"), PARAMETERS, ids=[str(row[0]) for row in PARAMETERS])
def test_bad_parameters_are_refused_before_data_are_read(parameters, said, check_refused):
    check_refused(model(**parameters), said)


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (np.arange(29), r"one entry a document, shape \(30,\); got \(29,\)"),
        (np.zeros((30, 1)), r"shape \(30,\); got \(30, 1\)"),
        ([None] + ["u"] * 29, "missing entries; give each document of unknown origin a group of its own"),
        ([math.nan] + [1.0] * 29, "missing entries"),
        (pd.Series([pd.NA] + [1] * 29, dtype="Int64"), "missing entries"),
    ],
)
def test_bad_groups_are_refused(groups, said):
    with pytest.raises(ValueError, match=f"groups .*{said}"):
        model().fit(X, groups=groups)


def test_more_topics_than_words_warns_of_both_numbers():
    with pytest.warns(UserWarning, match="n_components=9 exceeds the 8 words of X") as caught:
        model(9).fit(X)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoisyTopicsWarning)
        model(8).fit(X)


# --- one integer, one model ----------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{}, {"epsilon": INF}, {"mechanism": "laplace"}, {"sampling_rate": 0.5}])
@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_threads_and_repetition_do_not_change_the_model(parameters, check_threads):
    check_threads(model(4, **parameters), make_lda_corpus(400, 60, 4, mean_length=80, random_state=1).data)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_sparse_dense_and_unsorted_counts_are_the_same_data():
    doubled = sp.csr_array(
        (np.repeat(X.data, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )  # each entry twice
    backwards = sp.coo_array((doubled.data[::-1], (doubled.tocoo().row[::-1], doubled.tocoo().col[::-1])), X.shape)
    expected = seeded_fit(2 * X).components_
    for data in (2 * X.toarray(), 2.0 * X.toarray(), doubled, backwards, sp.csc_array(2 * X)):
        np.testing.assert_array_equal(seeded_fit(data).components_, expected)
    assert len(doubled.data) == 2 * X.nnz  # what the user passed is as it was


def test_without_a_seed_the_noise_is_new_each_time():
    nothing = np.zeros((4, 8), dtype=int)  # what is released is noise
    first, second = (model(max_iter=1).fit(nothing).components_ for _ in range(2))
    assert not np.array_equal(first, second)


def test_every_seeded_private_fit_warns_in_a_plain_interpreter():
    code = (
        "import numpy as np; from skdplda import PrivateCGSLDA\n"
        "model = PrivateCGSLDA(2, max_iter=1, random_state=0); X = np.ones((4, 3), dtype=int)\n"
        "for _ in range(2): model.fit(X)\n"
        "model.set_params(epsilon=float('inf')).fit(X)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.count("PrivacyLeakWarning: PrivateCGSLDA was given random_state=0") == 2


@pytest.mark.parametrize("seed", [0, np.int64(7), np.random.RandomState(0)])
def test_the_leak_warning_points_at_the_fit(seed):
    estimator = model(random_state=seed)
    for _ in range(2):
        with pytest.warns(PrivacyLeakWarning) as caught:
            estimator.fit(X)
        assert [found.filename for found in caught if found.category is PrivacyLeakWarning] == [__file__]
    for harmless in (model(epsilon=INF, random_state=seed), model()):
        harmless.fit(X)  # warnings are errors


# --- the price, and who pays it ------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [None, np.arange(30) // 3])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"mechanism": "laplace"}, {"epsilon": INF}, {"sampling_rate": 0.3}, {"epsilon": 0.5, "delta": 1e-7}],
)
def test_the_cost_is_known_before_the_fit(parameters, groups):
    estimator = model(**parameters)
    cost = estimator.privacy_cost(groups=groups is not None)
    assert estimator.fit(X, groups=groups).privacy_guarantee_ == cost
    assert cost.unit == ("document" if groups is None else "user")
    if cost.epsilon < INF:
        assert cost.epsilon == estimator.epsilon
        assert cost.status == "proven"
        assert cost.epsilon_at(cost.delta) <= estimator.epsilon


def test_a_fit_beyond_the_budget_is_refused_before_data_are_read(untouchable):
    with PrivacyAccountant(4.0, 1e-5) as accountant, pytest.raises(BudgetExceededError, match="Nothing was spent"):
        model(epsilon=5.0).fit(untouchable())
    assert accountant.ledger == ()
    with PrivacyAccountant(5.0, 1e-5) as accountant:
        model(epsilon=5.0).fit(X)
        with pytest.raises(BudgetExceededError):
            model(epsilon=5.0).fit(untouchable())
    assert accountant.total.epsilon == 5.0


def test_bad_data_cost_nothing():
    for data, groups, unit in ((dense(-1), None, "document"), (X, np.arange(3), "user")):
        accountant = PrivacyAccountant(5.0, 1e-5, unit=unit)
        with accountant, pytest.raises(ValueError, match=r"^Negative|^groups"):
            model().fit(data, groups=groups)
        assert accountant.ledger == ()


def test_an_interrupted_fit_has_spent_everything():
    def interrupt(report):
        raise KeyboardInterrupt

    with PrivacyAccountant(5.0, 1e-5) as accountant, pytest.raises(KeyboardInterrupt):
        model(callback=interrupt, max_iter=10).fit(X)
    assert accountant.total.epsilon == 5.0


def test_cross_validation_pays_for_each_fold():
    with PrivacyAccountant(100.0, 1e-3) as accountant:
        scores = cross_val_score(model(epsilon=3.0), X, cv=5, n_jobs=None)
    assert np.isfinite(scores).all()
    assert [entry.guarantee.epsilon for entry in accountant.ledger] == [3.0] * 5
    assert len({entry.label for entry in accountant.ledger}) == 5


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")  # else noise can be half of so small a mass
def test_users_are_protected_together(mechanism):
    counts = np.zeros((20, 6), dtype=int)
    counts[::2, :3] = 9  # the first user repeats three words in ten documents, the second three others
    counts[1::2, 3:] = 9
    quotients = []
    for seed in range(12):
        estimator = model(epsilon=1e4, max_iter=1, mechanism=mechanism, random_state=seed)
        masses = [estimator.fit(counts, groups=groups).components_.sum() for groups in (None, ["a", "b"] * 10)]
        quotients.append(masses[0] / masses[1])
    assert estimator.privacy_guarantee_.unit == "user"
    assert "most that one user can contribute" in estimator.privacy_guarantee_.mechanism
    # Twenty documents count as twenty units, two users as two, however much they wrote: tenfold, but for the words that
    # are drawn. Of 40 seeds the logarithm is 2.42 with deviation 0.24: here the ends are five deviations away or more.
    assert 6 < np.exp(np.mean(np.log(quotients))) < 20


# --- quality -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted():
    return make_lda_corpus(1200, 100, 4, mean_length=60, random_state=0)


def test_without_noise_the_planted_topics_come_back(planted):
    """One fit in 14 mixes topics, and all of six do with probability 1e-7; others find 0.986, with deviation 0.0014."""
    train, test = planted.data[:900], planted.data[900:]
    fits = [PrivateCGSLDA(4, epsilon=INF, random_state=seed).fit(train) for seed in range(6)]
    found = min(fits, key=lambda fit: fit.perplexity(train))
    assert topic_recovery(planted.topic_word, found.topic_word_).mean > 0.9
    with pytest.warns(PrivacyLeakWarning):  # exact sweeps, one after the other
        plain = [PriTopLDA(4, epsilon=INF, max_iter=100, random_state=seed).fit(train) for seed in range(6)]
    tables = [fit.topic_word_ for fit in plain]
    of_train, of_test = ([perplexity(some, table, doc_topic_prior=0.1) for table in tables] for some in (train, test))
    assert found.perplexity(test) == pytest.approx(of_test[int(np.argmin(of_train))], rel=0.02)


@pytest.mark.parametrize("parameters", [{}, {"sampling_rate": 0.3, "max_iter": 30}, {"mechanism": "laplace"}])
def test_with_a_weak_guarantee_the_topics_are_far_better_than_chance(planted, parameters):
    """Over 20 seeds the recovery is 0.96, 0.96 and 0.87, with deviations 0.003, 0.004 and 0.13; that of chance 0.11."""
    found = seeded_fit(planted.data, n_components=4, **{"max_iter": 20, "epsilon": 40.0, **parameters})
    untrained = np.random.default_rng(99).dirichlet(np.full(100, 0.05), 4)
    chance = topic_recovery(planted.topic_word, untrained).mean
    assert topic_recovery(planted.topic_word, found.topic_word_).mean > chance + 0.2


def test_noise_shrinks_with_epsilon_and_grows_as_delta_falls():
    def noise(epsilon, delta=1e-5):
        return NoisePlan.calibrate("gaussian", epsilon, delta, 20, 1.0).multipliers[0]

    assert all(np.diff([noise(epsilon) for epsilon in (1, 5, 10, 19, 20, 1e3, 1e6)]) < 0)
    assert all(np.diff([noise(5.0, delta) for delta in (1e-5, 1e-12, 1e-13, 1e-40)]) > 0)
    with pytest.raises(ValueError, match=r"delta=1e-101 is too small"):
        noise(5.0, 1e-101)


@pytest.mark.parametrize("parameters", [{}, {"mechanism": "laplace"}, {"sampling_rate": 0.5}])
def test_a_callback_sees_each_round(parameters):
    reports = []
    fitted = model(3, max_iter=4, callback=reports.append, **parameters).fit(X)
    assert [report.n_done for report in reports] == list(range(1, fitted.n_iter_ + 1))
    assert all(report.n_done <= report.n_rounds for report in reports[:-1])
    assert reports[-1].n_done == reports[-1].n_rounds
    assert all(report.table.shape == (8, 3) and report.table.min() >= 0 for report in reports)
    if parameters:
        assert {report.n_rounds for report in reports} == {4}
    else:  # word counts, six of frequent words, at most four of topics, votes, words again; what is planned may change
        assert 2 <= fitted.n_iter_ <= 13


def test_a_progress_bar_only_on_request(capfd):
    model().fit(X)
    assert capfd.readouterr() == ("", "")
    model(verbose=1, mechanism="laplace").fit(X)
    assert "2/2" in capfd.readouterr().err
    fitted = model(verbose=1).fit(X)
    assert f"{fitted.n_iter_}/{fitted.n_iter_}" in capfd.readouterr().err


# --- the noise that is told --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "delta", "rounds"),
    [(1.0, 1e-6, 1), (5.0, 1e-5, 20), (0.3, 1e-3, 7), (2.0, 1e-6, 6)],
)
def test_the_noise_is_told_without_data(epsilon, delta, rounds, stated_noise):
    told = PrivateCGSLDA(epsilon=epsilon, delta=delta, max_iter=rounds).noise_deviation()
    assert told == pytest.approx(stated_noise(epsilon, delta, rounds), rel=1e-5)


def test_the_noise_that_is_told_is_the_greatest_that_releases_may_ask_for(stated_noise):
    told = PrivateCGSLDA(epsilon=5.0).noise_deviation()
    # Frequent words come first below a signal of 60, with 4 + 60 / 6 rounds or fewer; else there are 20 or fewer.
    some = [stated_noise(5.0, 1e-5, n, True) for n in range(8, 15)] + [
        stated_noise(5.0, 1e-5, n, False) for n in range(8, 21)
    ]
    assert told == pytest.approx({name: max(noise[name] for noise in some) for name in told}, rel=1e-5)


@pytest.mark.parametrize("rounds", [None, 6])
def test_vectors_leave_less_for_topics(rounds):
    """The share that asks whether they fit is 1 %, and a prior of other kinds costs nothing."""
    vectors = PublicPrior.from_vectors({"tea": [3.0, 4.0], "coffee": [4.0, 3.0]})
    seeds = PublicPrior.from_seed_words({"drinks": ["tea"]})
    plain, with_seeds, with_vectors, by_words = (
        PrivateCGSLDA(max_iter=rounds, prior=prior).noise_deviation()
        for prior in (None, seeds, vectors, vectors.for_words(["tea", "coffee"]))
    )
    assert plain == with_seeds and with_vectors == by_words
    for name in ("first_round", "last_round", "in_model"):
        assert 1.004 < with_vectors[name] / plain[name] < 1.008


def test_the_noise_of_laplace_and_of_sampled_rounds_is_told():
    told = PrivateCGSLDA(epsilon=2.0, mechanism="laplace", max_iter=4).noise_deviation()
    scale, weight = 4 / 2.0, 0.8 ** np.arange(4)  # each round has a quarter of epsilon
    assert told["first_round"] == told["last_round"] == pytest.approx(5 * scale * 2**0.5)
    assert told["in_model"] == pytest.approx(told["last_round"] * np.sqrt((weight**2).sum()) / weight.sum())
    told = PrivateCGSLDA(epsilon=2.0, sampling_rate=0.25, max_iter=4).noise_deviation()
    multiplier = calibrate_gaussian(2.0, 1e-5, 4, 0.25)
    assert told["first_round"] == told["last_round"] == pytest.approx(5 * multiplier / 0.25, rel=1e-3)
    told = PrivateCGSLDA(epsilon=2.0, mechanism="discrete-gaussian", max_iter=4).noise_deviation()
    assert told["first_round"] == pytest.approx(told["last_round"] * 10**0.5)  # ten times the precision
    assert PrivateCGSLDA(epsilon=INF).noise_deviation() is None


@pytest.mark.parametrize("rounds", [1, 4])
@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_a_fit_has_the_noise_that_is_told(rounds):
    """Documents without words: the model is the positive part of noise: 100,000 cells, seven standard errors."""
    private = PrivateCGSLDA(10, epsilon=2.0, mechanism="laplace", max_iter=rounds, random_state=1)
    cells = private.fit(np.zeros((6, 10_000))).components_ - 0.01
    told = private.noise_deviation()["in_model"]
    assert (cells**2).mean() == pytest.approx(told**2 / 2, rel=0.08)
    assert (cells > 0).mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("users", [False, True])
@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_a_fit_gets_as_much_noise_before_its_words_are_weighted(users):
    private = PrivateCGSLDA(10, epsilon=2.0, max_iter=1, mechanism="discrete-gaussian", random_state=1)
    private.fit(np.zeros((6, 10_000)), groups=np.arange(6) if users else None)
    table = initial_table((10_000, 10), Randomness(1).key, GAMMA_SHAPE)
    cells = (private.components_ - 0.01) * word_weights(table)
    assert (cells**2).mean() == pytest.approx(private.noise_deviation()["in_model"] ** 2 / 2, rel=0.04)


@pytest.mark.parametrize("rounds", [1, 4, 8])
@pytest.mark.parametrize("users", [False, True])
@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_releases_of_topics_have_the_noise_that_is_told(rounds, users, monkeypatch):
    """What is released less what was summed, in each round and in their mean: 20,000 cells, six standard errors."""
    X, kinds, sums, noise = make_lda_corpus(400, 4000, 5, mean_length=60, random_state=0).data, [], [], []
    collect = AdaptiveEStep.collect

    def note_sum(self, query, *arguments):
        kinds.append(kind_of(query))
        sums.append(collect(self, query, *arguments))
        return sums[-1]

    def note_release(kind, query, noisy, multiplier):
        noise.append((noisy - sums[-1].total) * (5 / NORM_BOUND))  # a document of 25 different words counts each once

    monkeypatch.setattr(AdaptiveEStep, "collect", note_sum)
    for module in (_adaptive, _prices):  # these topics are clear: no part of theirs goes to words
        monkeypatch.setattr(module, "LATE_SHARE", 0.0)
    private = PrivateCGSLDA(5, epsilon=24.0, max_iter=rounds, local_sweeps=2, random_state=1)
    with observing(note_release):
        private.fit(X, groups=np.arange(X.shape[0]) if users else None)
    told = private.noise_deviation()
    topics = [cells for kind, cells in zip(kinds, noise, strict=True) if kind == "topics"]
    assert kinds[0] == "words" and kinds.count("votes") == (rounds > 1) and kinds.count("topics") == rounds
    assert "frequent" in kinds  # else there would be less noise than is told
    deviations = np.array([cells.std() for cells in topics])
    assert deviations[[0, -1]] == pytest.approx([told["first_round"], told["last_round"]], rel=0.03)
    weights = 0.8 ** np.arange(rounds)[::-1] / deviations**2
    mean = np.tensordot(weights / weights.sum(), topics, axes=1)
    assert mean.std() == pytest.approx(told["in_model"], rel=0.03)
    assert abs(mean.mean()) < 6 * told["in_model"] / np.sqrt(mean.size)


def test_small_alpha_of_short_documents_is_no_worse_with_many_topics():
    """Over 100 topics alpha is large while topics are drawn: perplexity is that of 100, within 8 %.

    Of one corpus the logarithms differ by -0.03 (over 8 with deviation 0.036).
    """
    worse = []
    for seed in range(4):
        X = make_lda_corpus(3000, 400, 40, mean_length=8, doc_topic_prior=0.02, random_state=seed).data
        model = PrivateCGSLDA(epsilon=np.inf, max_iter=40, doc_topic_prior=0.01, random_state=seed)
        few, many = (clone(model).set_params(n_components=k).fit(X[:2500]).perplexity(X[2500:]) for k in (100, 101))
        worse.append(np.log(many / few))
    assert np.mean(worse) < 0.08


def test_each_release_of_a_fit_is_logged(caplog):
    with caplog.at_level("INFO", logger="skdplda"):
        model = PrivateCGSLDA(2, epsilon=float("inf"), max_iter=3, random_state=0).fit(np.ones((9, 4), dtype=np.int64))
    assert [record.getMessage() for record in caplog.records] == [f"{n} of 3 releases" for n in (1, 2, 3)]
    assert model.n_iter_ == 3
