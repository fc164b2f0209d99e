"""A year of months: topics keep their numbers, births and deaths are said, and there is no thirteenth month."""

from itertools import pairwise
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.cluster import KMeans

from skdplda import VIPSLDA, EmbeddingTopics, PublicPrior, load_released, release, warm_started
from skdplda.datasets import make_lda_corpus
from skdplda.exceptions import BudgetExceededError
from skdplda.metrics import follow_topics, join_topics, match_topics
from skdplda.plots import TopicPathsDisplay
from skdplda.privacy import PrivacyAccountant, divide_epsilon

MONTHS, DELTA = 12, 1e-6
N_TOPICS, N_DIMENSIONS = 6, 20
PUBLIC = np.eye(N_TOPICS, N_DIMENSIONS)


def month_of(rng, weights, n=20_000):
    """Return embeddings of documents of some topics, each about one public direction."""
    topics = rng.choice(N_TOPICS, n, p=np.array(weights) / np.sum(weights))
    return PUBLIC[topics] + 0.2 * rng.standard_normal((n, N_DIMENSIONS)), topics


def sized(sizes, deviation=10.0, centers=None):
    centers = np.eye(len(sizes)) if centers is None else centers
    return SimpleNamespace(cluster_centers_=centers, cluster_sizes_=np.asarray(sizes), size_deviation_=deviation)


def fitted_year(weights_of, seed, ledger):
    rng, models = np.random.default_rng(seed), []
    for t, epsilon in enumerate(divide_epsilon(2.0, DELTA, [3, *[1] * (MONTHS - 1)])):
        model = EmbeddingTopics(N_TOPICS, epsilon=epsilon, delta=DELTA, public_rows=PUBLIC)
        model = warm_started(model, models[-1]) if models else model
        X, topics = month_of(rng, weights_of(t))
        with ledger:
            models.append(model.fit(X))
        assert (models[-1].predict(X) == topics).mean() > 0.9
    return models


def test_a_year_of_months(recwarn):
    """Topic 5 comes in July, topic 0 goes in October. No document is dropped, and there is no thirteenth month."""
    ledger = PrivacyAccountant(2.0, DELTA, rule="gaussian", reserve=0.0)
    models = fitted_year(lambda t: [t < 9, 1, 1, 1, 1, t >= 6], 7, ledger)
    for before, now in pairwise(models):
        match, similarity = match_topics(before, now)
        assert match.tolist() == list(range(N_TOPICS)) and similarity.min() > 0.8
    found = follow_topics(models, pd.period_range("2030-01", periods=MONTHS, freq="M"))
    assert (found["number"] == found["topic"]).all() and len(found) == MONTHS * N_TOPICS
    said = found[found["event"] != ""].astype({"period": str})[["period", "topic", "event"]].to_numpy().tolist()
    # Other events are said in up to one of twenty years. These two had a z of 11 to 60 in 25 years, where 3.4 is
    # enough.
    assert [said.count(event) for event in (["2030-07", 5, "birth"], ["2030-10", 0, "death"])] == [1, 1]
    assert 1.99 < ledger.to_frame()["total_epsilon"].iloc[-1] <= 2.0
    with pytest.raises(BudgetExceededError), ledger:
        warm_started(models[1], models[-1]).fit(month_of(np.random.default_rng(0), np.ones(N_TOPICS))[0])
    assert len(ledger.ledger) == MONTHS


@pytest.mark.parametrize(("n_topics", "n_empty", "n", "deviation"), [(20, 5, 1500, 30.0), (10, 0, 1000, 60.0)])
def test_nothing_is_said_of_a_year_without_change(n_topics, n_empty, n, deviation):
    """At most 5 in 100 years, as stated; a bound of false alarm below 1e-6 for 120 years."""
    rng, said, n_years = np.random.default_rng(11), 0, 120
    shares = np.r_[np.zeros(n_empty), rng.dirichlet(np.full(n_topics - n_empty, 2.0))]
    for _ in range(n_years):
        counts = [rng.poisson(n * rng.uniform(0.5, 1.5) * shares) for _ in range(MONTHS)]
        models = [sized(one + deviation * rng.standard_normal(n_topics), deviation) for one in counts]
        said += (follow_topics(models)["event"] != "").any()
    assert said <= binom.isf(1e-6, n_years, 0.05)


def test_a_change_is_measured_against_the_others():
    quiet = [400.0, 300.0, 200.0, 100.0, 0.0]
    more, born = follow_topics([sized(quiet), sized(np.multiply(quiet, 3))]), [800.0, 600.0, 400.0, 200.0, 900.0]
    assert more["z"].iloc[5:].abs().max() < 3 and (more["event"] == "").all()
    found = follow_topics([sized(quiet), sized(born), sized(quiet)])
    assert found["event"].tolist() == [""] * 9 + ["birth"] + [""] * 4 + ["death"]
    assert found["z"].iloc[5:9].abs().max() < 1 and found["z"].iloc[:5].isna().all()
    grown = follow_topics([sized(quiet), sized([400.0, 300.0, 200.0, 300.0, 0.0])])
    assert grown["z"].iloc[8] > 5 and (grown["event"] == "").all()  # it was there
    noise = follow_topics([sized(quiet, 500.0), sized(born, 500.0)])
    assert noise["z"].isna().all() and (noise["event"] == "").all()


def test_topics_that_change_places_are_followed():
    order = np.array([2, 0, 1])
    one, other = sized([500.0, 200.0, 100.0]), sized(np.array([500.0, 200.0, 100.0])[order], centers=np.eye(3)[order])
    match, similarity = match_topics(one, other)
    assert match.tolist() == order.tolist() and similarity.tolist() == [1.0, 1.0, 1.0]
    found = follow_topics([one, other, one])
    assert found["number"].tolist() == [0, 1, 2, 1, 2, 0, 0, 1, 2]
    np.testing.assert_allclose(found["share"], np.tile([0.625, 0.25, 0.125], 3))
    assert found["z"].iloc[3:].abs().max() == 0


def test_topics_that_are_too_many_have_no_match():
    match, similarity = match_topics([[0.5, 0.5, 0.0]], [[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
    assert match.tolist() == [-1, 0] and np.isnan(similarity[0]) and similarity[1] == 1.0
    assert match_topics([[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0]])[0].tolist() == [1]


def test_topics_of_several_models_are_one_table():
    north = sized([500.0, 200.0, 100.0], 3.0)
    south = sized([40.0, 30.0], [4.0, 12.0], [[0, 0, 1.0], [-1.0, 0, 0]])
    third = sized([7.0, 5.0], 1.0, [[0, 0, 1.0], [-0.8, -0.6, 0]])
    found = join_topics([north, south, third])
    assert found["name"].tolist() == ["topic_0", "topic_1", "topic_2", "topic_1"]
    assert found["size"].tolist() == [500.0, 200.0, 147.0, 35.0]
    np.testing.assert_allclose(found["size_deviation"] ** 2, [9, 9, 9 + 16 + 1, 144 + 1])
    np.testing.assert_allclose(found["similarity"], [np.nan, np.nan, 1.0, 0.8])
    numbers = found[["model_0", "model_1", "model_2"]].fillna(-1).to_numpy().tolist()
    assert numbers == [[0, -1, -1], [1, -1, -1], [2, 0, 0], [-1, 1, 1]]
    assert len(join_topics([north, south, third], least=0.9)) == 5 and len(join_topics([north])) == 3
    topics = join_topics([np.eye(3), [[0.0, 0.0, 1.0]]])
    assert topics["size"].isna().all() and topics["size_deviation"].isna().all()
    assert topics["model_1"].fillna(-1).tolist() == [-1, -1, 0]


def test_many_models_keep_ten_in_order_and_each_topic_once():
    rng = np.random.default_rng(3)
    orders = [rng.permutation(4) for _ in range(12)]
    sizes = 100.0 * (1 + np.arange(4))
    found = join_topics([sized(sizes[order], 2.0, np.eye(4)[order]) for order in orders])
    assert found.columns[4:].tolist() == [f"model_{t}" for t in range(12)] and len(found) == 4
    np.testing.assert_allclose(found["size"], 12 * sizes[orders[0]])
    np.testing.assert_allclose(found["size_deviation"], 2 * np.sqrt(12))
    for t, order in enumerate(orders):
        assert order[found[f"model_{t}"].astype(int)].tolist() == orders[0].tolist()


def test_joined_sizes_are_near_the_truth_and_cost_nothing():
    """Regions of 20,000 documents; noise of some 30, and as many on the wrong side of a border: 400 is far away."""
    rng, ledger = np.random.default_rng(0), PrivacyAccountant(8.0, 1e-5)
    models, counts = [], np.zeros(N_TOPICS)
    for weights in ([2, 2, 1, 1, 1, 1], [3, 1, 1, 1, 1, 2]):
        X, topics = month_of(rng, weights)
        with ledger:
            models.append(EmbeddingTopics(N_TOPICS, epsilon=2.0, delta=DELTA, public_rows=PUBLIC).fit(X))
        counts += np.bincount(topics, minlength=N_TOPICS)
    spent = ledger.total
    found = join_topics(models)
    assert ledger.total == spent and len(found) == N_TOPICS
    assert np.abs(found["size"] - counts[models[0].cluster_centers_.argmax(axis=1)]).max() < 400


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="both have clusters or topics"):
        join_topics([sized([1.0, 2.0]), np.eye(2)])
    with pytest.raises(ValueError, match="one at least; got none"):
        join_topics([])
    with pytest.raises(ValueError, match="least must be a number"):
        join_topics([np.eye(2)], least="most")
    with pytest.raises(ValueError, match="two models or more; got one"):
        join_topics(EmbeddingTopics())
    with pytest.raises(ValueError, match="both have clusters or topics"):
        match_topics(sized([1.0, 2.0]), np.eye(2))
    with pytest.raises(ValueError, match="of the same columns; got topics of 2 and topics of 3"):
        match_topics(np.eye(2), np.eye(3))
    with pytest.raises(ValueError, match="a table of finite numbers with one row each"):
        match_topics([0.5, 0.5], np.eye(2))
    with pytest.raises(ValueError, match="equally many topics"):
        follow_topics([sized([1.0, 2.0]), sized([1.0, 2.0, 3.0])])
    with pytest.raises(ValueError, match="one period each"):
        follow_topics([sized([1.0, 2.0])], ["May", "June"])
    with pytest.raises(ValueError, match="one at least"):
        follow_topics([])
    with pytest.raises(ValueError, match="alpha must be above 0"):
        follow_topics([sized([1.0, 2.0])], alpha=1.0)


def test_what_is_no_model_or_no_year_is_refused():
    model, one = EmbeddingTopics(3), sized([1.0, 2.0])
    for wrong, said in (
        ((EmbeddingTopics, one), "estimator must be one, such as"),
        ((model, "model.zip"), "earlier must be a fitted model"),
    ):
        with pytest.raises(TypeError, match=said):
            warm_started(*wrong)
    with pytest.raises(ValueError, match="must be fitted ones"):
        match_topics(model, model)
    with pytest.raises(ValueError, match="finite numbers"):
        match_topics([[np.nan, 1.0]], [[0.5, 0.5]])
    for models, options, said in (
        (model, {}, "one model a period"),
        ([one, one], {"periods": ["May", "May"]}, "all different"),
        ([one], {"alpha": "5"}, "alpha must be above 0"),
    ):
        with pytest.raises(ValueError, match=said):
            follow_topics(models, **options)


def test_clusters_start_where_they_are_told():
    """The least cosine is 0.999, with deviation 0.0001 over 20 seeds."""
    rng = np.random.default_rng(3)
    X = month_of(rng, np.ones(N_TOPICS), 6000)[0]
    start = PUBLIC[::-1] + 0.05 * rng.standard_normal(PUBLIC.shape)
    for public in ({}, {"public_rows": rng.standard_normal((50, N_DIMENSIONS))}):
        model = EmbeddingTopics(N_TOPICS, init=start, centre=np.zeros(N_DIMENSIONS), max_iter=2, **public).fit(X)
        assert (model.cluster_centers_ * PUBLIC[::-1]).sum(axis=1).min() > 0.9
        assumed = "; ".join(model.privacy_guarantee_.assumptions)
        assert "or released from them at a cost that is counted" in assumed
    wide = EmbeddingTopics(2, init=[[3.0, 0.0], [0.0, 4.0]], projection=np.eye(N_DIMENSIONS, 2)).fit(X)
    assert wide.cluster_centers_.shape == (2, 2)


def test_clusters_that_start_elsewhere_make_no_other_release(tmp_path):
    X = month_of(np.random.default_rng(3), np.ones(N_TOPICS), 3000)[0]
    model = EmbeddingTopics(N_TOPICS, init=PUBLIC, max_iter=2).fit(X, transcript=tmp_path / "heard")
    again = EmbeddingTopics(N_TOPICS, init=PUBLIC, max_iter=2).from_transcript(tmp_path / "heard")
    np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)


@pytest.mark.parametrize(
    ("init", "said"),
    [
        (np.eye(2), "a row for each of the 3 clusters and 4 columns"),
        (np.zeros((3, 4)), "init must have numbers other than 0"),
        (np.full((3, 4), np.nan), "init must be an array of 2 axes and finite numbers"),
    ],
)
def test_a_start_that_does_not_fit_is_refused(init, said):
    with pytest.raises(ValueError, match=said):
        EmbeddingTopics(3, init=init, centre=np.zeros(4)).fit(np.eye(4))


def test_a_released_model_is_a_start(tmp_path):
    X, topics = month_of(np.random.default_rng(5), np.ones(N_TOPICS), 6000)
    words = [f"word{chr(97 + w)}" for w in range(N_TOPICS)]
    model = EmbeddingTopics(N_TOPICS, epsilon=4.0, public_rows=PUBLIC)
    model.fit(X, counts=np.eye(N_TOPICS, dtype=int)[topics])
    release(model, feature_names=words).save(tmp_path / "may")
    estimator = EmbeddingTopics(N_TOPICS, max_iter=3)
    june = warm_started(estimator, load_released(tmp_path / "may"))
    assert estimator.init is None and june.max_iter == 3 and not hasattr(june, "cluster_centers_")
    np.testing.assert_allclose(june.init, model.cluster_centers_)
    assert match_topics(model, june.fit(X))[0].tolist() == list(range(N_TOPICS))


def test_topics_of_words_start_from_those_of_the_month_before():
    corpus = make_lda_corpus(6000, 60, 4, random_state=1)
    words = [f"word{chr(97 + w // 26)}{chr(97 + w % 26)}" for w in range(60)]
    may, june = (pd.DataFrame(corpus.data[rows].toarray(), columns=words) for rows in (slice(3000), slice(3000, 6000)))
    vectors = PublicPrior.from_vectors((words, corpus.topic_word.T))
    first = VIPSLDA(4, epsilon=8.0, prior=vectors).fit(may)
    second = warm_started(VIPSLDA(4, epsilon=8.0, prior=vectors), first)
    np.testing.assert_allclose(second.prior.topics, first.topic_word_)
    assert second.prior.vectors.shape == (60, 4) and second.prior.names == ("topic 0", "topic 1", "topic 2", "topic 3")
    for _ in range(5):  # 9 of 400 pairs of fits settled elsewhere; five in a row do so less than once in a million runs
        match, similarity = match_topics(first, second.fit(june))
        if match.tolist() == [0, 1, 2, 3] and similarity.min() > 0.8:
            break
        first = VIPSLDA(4, epsilon=8.0, prior=vectors).fit(may)
        second = warm_started(VIPSLDA(4, epsilon=8.0, prior=vectors), first)
    else:
        pytest.fail(f"topics {match} of June are those of May in no fit: {similarity}")
    found = follow_topics([first, second])
    assert (
        found["z"].isna().all() and (found["event"] == "").all() and found["share"].iloc[4:].sum() == pytest.approx(1)
    )
    assert warm_started(VIPSLDA(4), second).prior.vectors is None
    plain = VIPSLDA(4, epsilon=4.0).fit(may.to_numpy())
    with pytest.raises(ValueError, match="feature_names must have the words"):
        warm_started(VIPSLDA(4, prior=vectors), plain)
    assert warm_started(VIPSLDA(4, prior=vectors), plain, feature_names=words).prior.vectors.shape == (60, 4)


def test_a_start_of_another_kind_is_refused():
    corpus = make_lda_corpus(300, 20, 3, random_state=1)
    model = VIPSLDA(3, epsilon=4.0).fit(corpus.data)
    with pytest.raises(TypeError, match="clusters start from clusters"):
        warm_started(EmbeddingTopics(3), model)
    with pytest.raises(ValueError, match="n_components must be 3, as in the earlier model; got 4"):
        warm_started(VIPSLDA(4), model)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")  # one has a seed
def test_a_start_of_which_nothing_is_proven_is_refused(tmp_path):
    """At epsilon=0.001 a fit told what one without noise had found, as proven."""
    X, counts = np.random.default_rng(0).normal(size=(400, 6)), make_lda_corpus(300, 20, 3, random_state=1).data
    for kind, data in ((EmbeddingTopics, X), (VIPSLDA, counts)):
        exact, guessable = kind(3, epsilon=np.inf).fit(data), kind(3, epsilon=2.0, random_state=0)
        for earlier, said in ((exact, "epsilon=inf"), (guessable.fit(data), "epsilon=2, status 'claimed'")):
            with pytest.raises(ValueError, match=rf"finite epsilon; got {said}.*whose guarantee does not cover it"):
                warm_started(kind(3, epsilon=1e-3), earlier)
        june = warm_started(kind(3, epsilon=1.0, random_state=1), guessable)  # an experiment
        assert june.privacy_cost().status == "claimed"
        with pytest.raises(ValueError, match="epsilon=inf"):
            warm_started(kind(3, epsilon=1.0, random_state=1), exact)
    with pytest.raises(ValueError, match=r"finite epsilon; got none.*If its texts are public, say so: give init="):
        warm_started(EmbeddingTopics(2), KMeans(2).fit(X))
    release(exact, allow_unproven=True, feature_names=[f"word{w}" for w in range(20)]).save(tmp_path / "exact")
    with pytest.raises(ValueError, match="finite epsilon; got epsilon=inf"):
        warm_started(VIPSLDA(3), load_released(tmp_path / "exact"))


def test_a_start_of_words_is_not_called_independent_of_the_texts():
    model = VIPSLDA(3, epsilon=4.0).fit(make_lda_corpus(300, 20, 3, random_state=1).data)
    assumed = "; ".join(warm_started(VIPSLDA(3), model).privacy_cost().assumptions)
    assert "independent of the private texts, or released at a cost that is counted" in assumed


def test_the_picture_of_a_year():
    models = [sized([400.0, 300.0, 200.0, 5.0]), sized([410.0, 290.0, 210.0, 500.0])]
    display = TopicPathsDisplay.from_estimators(models, ["May", "$June"])
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["May", r"\$June"]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == [f"topic_{k}" for k in range(4)]
    discs, births = display.ax_.collections[:2]
    np.testing.assert_allclose(discs.get_sizes()[[0, 7]], 300 * np.array([400 / 905, 500 / 1410]) / (400 / 905))
    assert births.get_offsets().tolist() == [[1.0, 3.0]] and births.get_label() == "birth"
    assert display.ax_.get_title(loc="left") == "Topics by period"
    with pytest.raises(ValueError, match="no released sizes"):
        TopicPathsDisplay.from_estimators([SimpleNamespace(topic_word_=np.eye(2))] * 2)
    plt.close("all")


def test_the_picture_says_what_all_months_cost():
    X = month_of(np.random.default_rng(5), np.ones(N_TOPICS))[0]
    ledger = PrivacyAccountant(1.5, 1e-5, max_parts=1)
    models = []
    for month in ("May", "June"):
        with ledger.part(month):
            models.append(EmbeddingTopics(N_TOPICS, delta=DELTA, public_rows=PUBLIC).fit(X))
    whole = models[0].privacy_guarantee_.compose(models[1].privacy_guarantee_)
    for guarantee, said in ((None, whole), (ledger.total, ledger.total)):
        display = TopicPathsDisplay.from_estimators(models, guarantee=guarantee)
        assert display.ax_.get_title(loc="left").replace("\n", " ") == f"Topics by period; {said.caption}"
    assert ledger.total.epsilon < whole.epsilon
    plt.close("all")
