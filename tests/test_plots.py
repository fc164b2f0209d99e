"""Displays draw what they are given, label it, and leave pyplot as they found it."""

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from skdplda import (
    PCTD,
    DPCountVectorizer,
    DPVocabularySelector,
    EmbeddingTopics,
    PrivateCGSLDA,
    ReleasedTopicModel,
)
from skdplda.attacks import AttackResult
from skdplda.audit import AuditReport
from skdplda.datasets import make_lda_corpus
from skdplda.exceptions import PrivacyLeakWarning
from skdplda.metrics import perplexity, unigram_perplexity
from skdplda.plots import (
    AttackRocDisplay,
    AuditDisplay,
    ConvergenceDisplay,
    MonitorDisplay,
    PrivacyUtilityDisplay,
    TopicDistanceDisplay,
    TopWordsDisplay,
    VocabularyDisplay,
)
from skdplda.privacy import InherentPrivacyHistory, PrivacyGuarantee
from skdplda.published import InherentPrivacyLDA, PriTopLDA, PublishedItemFrequencySelector
from skdplda.semantics import SemanticUnitVectorizer

WORDS = np.array(["apple", "pear", "plum", "iron", "zinc"])


@pytest.fixture(autouse=True)
def agg():
    with matplotlib.rc_context({"backend": "agg"}):
        yield
        plt.close("all")


@pytest.fixture(scope="module")
def model():
    X = np.array([[8, 5, 2, 0, 0], [0, 0, 0, 7, 3]] * 30)
    return PrivateCGSLDA(3, epsilon=np.inf, max_iter=5, random_state=0).fit(X)


def labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_top_words_are_those_of_the_estimator(model):
    display = TopWordsDisplay.from_estimator(model, feature_names=WORDS, n_words=4)
    expected = model.top_words(4, WORDS).to_numpy()
    assert len(display.axes_) == 3
    for topic, axes in enumerate(display.axes_):
        assert axes.get_title(loc="left") == f"topic_{topic}"
        assert sorted(labels(axes)) == sorted(expected[topic].tolist())
        widths = [bar.get_width() for bar in axes.patches]
        assert widths == [model.topic_word_[topic, list(WORDS).index(word)] for word in labels(axes)]
        assert widths == sorted(widths, reverse=True)
    assert len({axes.get_xlim() for axes in display.axes_}) == 1
    display.figure_.canvas.draw()


def test_top_words_of_some_topics_keep_their_numbers(model):
    display = TopWordsDisplay.from_estimator(model, feature_names=WORDS, n_words=2, topics=[2, 0])
    assert [axes.get_title(loc="left") for axes in display.axes_] == ["topic_2", "topic_0"]
    assert labels(display.axes_[0]) == model.top_words(2, WORDS).to_numpy()[2].tolist()


def test_top_words_honour_names_of_topics(model):
    options = {"feature_names": WORDS, "n_words": 2, "topic_names": ["fruit", "metal", "rest"]}
    display = TopWordsDisplay.from_estimator(model, topics=[1, 0], **options)
    assert [axes.get_title(loc="left") for axes in display.axes_] == ["metal", "fruit"]
    with pytest.raises(ValueError, match="topic_names must name the 3 topics; got 1"):
        TopWordsDisplay.from_estimator(model, n_words=2, topic_names=["fruit"])


def test_distances_of_topics(model):
    display = TopicDistanceDisplay.from_estimator(model, feature_names=WORDS, n_words=2)
    p, q = model.topic_word_[:2]
    middle = (p + q) / 2
    divergence = (p * np.log2(p / middle) + q * np.log2(q / middle)).sum() / 2
    np.testing.assert_allclose(display.distances[0, 1] ** 2, divergence)
    drawn = display.ax_.images[0].get_array()
    order = [int(label.get_text()) for label in display.ax_.get_xticklabels()]
    far = display.distances + np.eye(3)
    closest = np.unravel_index(np.argmin(far), far.shape)
    assert sorted(order) == [0, 1, 2] and order[1] in closest  # the two that are most alike stand side by side
    np.testing.assert_array_equal(drawn.compressed(), display.distances[np.ix_(order, order)][~np.eye(3, dtype=bool)])
    assert display.ax_.images[0].get_clim() == (drawn.min(), drawn.max())  # colours use the range that there is
    expected = model.top_words(2, WORDS).to_numpy()
    assert labels(display.ax_) == [f"{topic}: {', '.join(expected[topic])}" for topic in order]
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == [f"{value:.2f}" for value in drawn.compressed()]
    display.figure_.canvas.draw()


def test_the_map_keeps_sizes_and_names(model):
    names = ["fruit", "metal", "rest"]
    ax = Figure().subplots()
    display = TopicDistanceDisplay.from_estimator(model, topic_names=names, kind="map", ax=ax)
    assert display.ax_ is ax
    shares = model.components_.sum(axis=1) / model.components_.sum()
    drawn = ax.collections[0].get_sizes()
    np.testing.assert_allclose(drawn / drawn.sum(), shares)
    assert [text.get_text() for text in ax.texts] == names and ax.get_legend() is None
    ax = TopicDistanceDisplay.from_estimator(model, feature_names=WORDS, kind="map").ax_
    assert [text.get_text() for text in ax.texts][::2] == ["0", "1", "2"]
    assert [text.get_text().replace("\n", " ") for text in ax.texts][1::2] == [
        ", ".join(words) for words in model.top_words(3, WORDS).to_numpy()
    ]
    ax.figure.canvas.draw()


def test_distances_on_the_map_are_in_order():
    distances = np.array([[0.0, 0.5, 0.9], [0.5, 0.0, 0.7], [0.9, 0.7, 0.0]])
    places = TopicDistanceDisplay(distances=distances).plot(kind="map").ax_.collections[0].get_offsets()
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    assert apart[0, 1] < apart[1, 2] < apart[0, 2]


@pytest.mark.parametrize("n_topics", [3, 30])
def test_nothing_of_a_map_or_matrix_is_cut_or_covered(n_topics):
    topics = np.random.default_rng(0).dirichlet(np.full(60, 0.1), n_topics)
    words = [f"word{number}" * (1 + number % 3) for number in range(60)]
    model = ReleasedTopicModel(topics, words, privacy_guarantee=PrivacyGuarantee(epsilon=1.0))
    for kind in ("map", "matrix"):
        display = TopicDistanceDisplay.from_estimator(model, kind=kind)
        display.figure_.canvas.draw()
        ax, figure = display.ax_, display.figure_.bbox
        texts = ax.texts[1::2] if kind == "map" else ax.get_yticklabels()
        boxes = [text.get_window_extent() for text in texts]
        assert all(box.x0 >= figure.x0 and box.x1 <= figure.x1 for box in boxes) and len(boxes) == n_topics
        assert not any(a.overlaps(b) for row, a in enumerate(boxes) for b in boxes[:row])


def test_one_topic_and_equal_topics_have_a_map():
    for distances in ([[0.0]], np.zeros((3, 3))):
        ax = TopicDistanceDisplay(distances=distances).plot(kind="map").ax_
        places = ax.collections[0].get_offsets()
        assert len({tuple(place) for place in places.tolist()}) == len(distances)
        ax.figure.canvas.draw()


@pytest.mark.parametrize("kind", ["matrix", "map"])
def test_clusters_lie_apart_by_their_directions_also_without_words(kind):
    X = np.repeat(np.eye(3), 200, axis=0)
    fitted = EmbeddingTopics(3, epsilon=np.inf, public_rows=np.eye(3), centre=np.zeros(3)).fit(X)
    display = TopicDistanceDisplay.from_estimator(fitted, kind=kind)
    np.testing.assert_allclose(display.distances, 1 - np.eye(3), atol=1e-9)
    np.testing.assert_allclose(display.sizes, np.full(3, 1 / 3))
    fitted.fit(X, counts=np.ones((600, 4), int))
    np.testing.assert_allclose(TopicDistanceDisplay.from_estimator(fitted).distances, display.distances)


def test_topic_distance_errors_name_the_parameter():
    with pytest.raises(ValueError, match="kind must be 'matrix' or 'map'; got 'tree'"):
        TopicDistanceDisplay(distances=[[0.0]]).plot(kind="tree")
    for distances in ([[0, 1], [2, 0]], [[1.0]], [0.0]):
        with pytest.raises(ValueError, match="distances must be a symmetric matrix"):
            TopicDistanceDisplay(distances=distances).plot()
    with pytest.raises(ValueError, match="sizes must have one number for each of the 1 topics"):
        TopicDistanceDisplay(distances=[[0.0]], sizes=[1, 2]).plot(kind="map")


def test_top_words_on_given_axes_touch_no_pyplot_figure(model):
    before = plt.get_fignums()
    figure = Figure()
    panels = figure.subplots(1, 3)
    display = TopWordsDisplay.from_estimator(model, feature_names=WORDS, n_words=2, ax=panels)
    assert display.figure_ is figure and list(display.axes_) == list(panels)
    figure = Figure()
    single = figure.subplots()
    display = TopWordsDisplay.from_estimator(model, feature_names=WORDS, n_words=2, ax=single, n_columns=2)
    assert display.figure_ is figure and len(figure.axes) == 4 and not single.axison
    assert plt.get_fignums() == before


def test_top_words_errors_name_the_parameter(model):
    with pytest.raises(ValueError, match="topics must be numbers from 0 to 2"):
        TopWordsDisplay.from_estimator(model, n_words=2, topics=[3])
    with pytest.raises(ValueError, match="n_words must be an integer of at least 1"):
        TopWordsDisplay.from_estimator(model, n_words=0)
    with pytest.raises(ValueError, match="ax must hold an axes for each of the 3 topics"):
        TopWordsDisplay.from_estimator(model, n_words=2, ax=Figure().subplots(1, 2))


def test_curve_is_sorted_and_labelled():
    display = PrivacyUtilityDisplay(epsilons=[5, 1, 2], scores=[220, 310, 260], non_private=200, unigram=400)
    ax = display.plot().ax_
    lines = {line.get_label(): line for line in ax.lines}
    assert set(lines) == {"private", "non-private", "unigram (no topics)"}
    assert lines["private"].get_xydata().tolist() == [[1, 310], [2, 260], [5, 220]]
    assert lines["non-private"].get_linestyle() == "-." and lines["unigram (no topics)"].get_linestyle() == ":"
    assert set(lines["non-private"].get_ydata()) == {200} and set(lines["unigram (no topics)"].get_ydata()) == {400}
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "5"]
    assert ax.get_xlabel() == "Privacy loss epsilon" and ax.get_ylabel() == "Held-out perplexity"
    display.figure_.canvas.draw()


@pytest.fixture(scope="module")
def corpus():
    return make_lda_corpus(460, 30, 3, mean_length=20, random_state=0).data


def test_the_curve_of_an_estimator(corpus):
    X, test = corpus[:400], corpus[400:]
    estimator = PrivateCGSLDA(3, max_iter=5)
    display = PrivacyUtilityDisplay.from_estimator(estimator, X, test, epsilons=[5.0, 2.0], n_repeats=2)
    assert not hasattr(estimator, "components_")
    assert np.shape(display.scores) == (2, 2) and len(np.unique(display.scores)) == 4
    lines = {line.get_label(): line for line in display.ax_.lines}
    assert lines["PrivateCGSLDA"].get_xdata().tolist() == [2, 5]
    assert lines["PrivateCGSLDA"].get_linestyle() == "-"
    np.testing.assert_array_equal(lines["PrivateCGSLDA"].get_ydata(), np.mean(display.scores, axis=1)[::-1])
    assert lines["unigram (no topics)"].get_ydata()[0] == unigram_perplexity(X, test)
    assert display.ax_.get_xlabel() == "Privacy loss epsilon (per document)"
    users = np.arange(400) // 4
    display = PrivacyUtilityDisplay.from_estimator(estimator, X, test, epsilons=[5.0], groups=users)
    assert display.ax_.get_xlabel() == "Privacy loss epsilon (per user)"


def test_the_curve_and_rounds_of_a_model_of_semantic_units():
    vectorizer = SemanticUnitVectorizer("sentence", vocabulary=["cat", "dog", "law", "tax"])
    X = vectorizer.transform(["A cat. A dog and a cat.", "A tax. The tax law."] * 50)
    display = PrivacyUtilityDisplay.from_estimator(PCTD(2, max_iter=3), X, X, epsilons=[50.0])
    assert display.unigram == unigram_perplexity(X.to_counts(), X.to_counts())
    reports = []
    model = PCTD(2, max_iter=3, callback=reports.append).fit(X)
    display = ConvergenceDisplay.from_reports(reports, public=X, estimator=model)
    assert len(display.values) == 3 and display.final == model.perplexity(X)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_the_curve_of_a_claim_is_dashed_and_says_so(corpus):
    estimator = PriTopLDA(3, max_iter=2)
    display = PrivacyUtilityDisplay.from_estimator(estimator, corpus, corpus, epsilons=[1.0], name="published")
    assert display.ax_.lines[1].get_label() == "published (claimed, not proven)"
    assert display.ax_.lines[1].get_linestyle() == "--"
    with pytest.raises(ValueError, match="status must be one of"):
        PrivacyUtilityDisplay(epsilons=[1], scores=[1], status="true").plot()
    estimator = InherentPrivacyLDA(3, max_iter=2)  # no epsilon at all
    with pytest.raises(ValueError, match="Invalid parameter 'epsilon' for estimator InherentPrivacyLDA"):
        PrivacyUtilityDisplay.from_estimator(estimator, corpus, corpus, epsilons=[1.0])


def test_repeats_draw_a_mean_and_a_band():
    ax = Figure().subplots()
    display = PrivacyUtilityDisplay(epsilons=[1, 2], scores=[[300, 320], [250, 270]], score_name="Perplexity").plot(ax)
    assert display.ax_ is ax and len(ax.lines) == 1
    assert ax.lines[0].get_ydata().tolist() == [310, 260]
    band = ax.collections[0].get_paths()[0].get_extents()
    assert (band.ymin, band.ymax) == (250, 320)


@pytest.mark.parametrize(
    ("epsilons", "scores", "message"),
    [
        ([1, np.inf], [1, 2], "epsilons must be positive finite numbers"),
        ([0], [1], "epsilons must be positive"),
        ([], [], "epsilons must be positive"),
        ([1, 2], [1, 2, 3], "scores must have one entry"),
    ],
)
def test_curve_errors_name_the_parameter(epsilons, scores, message):
    with pytest.raises(ValueError, match=message):
        PrivacyUtilityDisplay(epsilons=epsilons, scores=scores).plot()


def test_vocabulary_sizes_are_labelled_curves():
    ax = Figure().subplots()
    sizes = {"sieve": [200, 370, 790], "sips": [0, 320, 700]}
    display = VocabularyDisplay(epsilons=[1, 2, 5], values=sizes).plot(ax)
    assert display.ax_ is ax and display.figure_ is ax.figure
    lines = {line.get_label(): line for line in ax.lines}
    assert list(lines) == ["sieve", "sips"]
    assert lines["sieve"].get_xydata().tolist() == [[1, 200], [2, 370], [5, 790]]
    assert np.isnan(lines["sips"].get_ydata()[0])  # nothing selected: no point
    assert len({(line.get_color(), line.get_marker()) for line in ax.lines}) == 2
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "5"]
    display.figure_.canvas.draw()


def test_vocabulary_sizes_are_solid_if_proven_and_dashed_if_claimed():
    sizes = {f"mechanism {i}": [i + 1, i + 2] for i in range(8)}
    claimed = ["mechanism 2", "mechanism 5"]
    ax = VocabularyDisplay(epsilons=[1, 2], values=sizes, claimed=claimed).plot().ax_
    assert {line.get_label(): line.get_linestyle() for line in ax.lines} == {
        name: "--" if name in claimed else "-" for name in sizes
    }
    assert len({line.get_color() for line in ax.lines}) == len({line.get_marker() for line in ax.lines}) == 8
    assert ax.get_legend().get_title().get_text() == "dashed: claimed, not proven"
    with pytest.raises(ValueError, match=r"claimed must hold names of values; got \['else'\]"):
        VocabularyDisplay(epsilons=[1], values={"sieve": [1]}, claimed=["else"]).plot()


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
def test_vocabulary_sizes_of_a_selector(corpus):
    selector = DPVocabularySelector(max_words_per_unit=10, random_state=b"sixteen bytes, or more")
    mechanisms = ["sieve", "item_frequency"]
    display = VocabularyDisplay.from_estimator(selector, corpus, epsilons=[0.001, 100.0], methods=mechanisms)
    assert list(display.values) == mechanisms and display.claimed == []
    published = PublishedItemFrequencySelector(max_words_per_unit=10)
    claimed = VocabularyDisplay.from_estimator(published, corpus, epsilons=[100.0])
    assert list(claimed.values) == claimed.claimed == ["item_frequency"]
    assert display.values["sieve"][0] == 0  # nothing selected is no error here
    assert 5 < display.values["sieve"][1] <= 30
    texts = ["iron zinc"] * 300
    vectorizer = DPCountVectorizer(epsilon=1.0, delta=1e-6, random_state=0)
    display = VocabularyDisplay.from_estimator(vectorizer, texts, epsilons=[50.0], groups=np.arange(300))
    assert display.values["sieve"].tolist() == [2]
    with pytest.raises(ValueError, match="method"):
        VocabularyDisplay.from_estimator(selector, corpus, epsilons=[1.0], methods=["none"])


@pytest.mark.parametrize(
    ("epsilons", "size", "message"),
    [
        ([2, 1], [1, 2], "epsilons must be positive finite numbers, ascending"),
        ([0, 1], [1, 2], "epsilons must be positive"),
        ([], [], "epsilons must be positive"),
        ([1, 2], [1, 2, 3], r"values\['sieve'\] must have one entry"),
    ],
)
def test_vocabulary_size_errors_name_the_parameter(epsilons, size, message):
    with pytest.raises(ValueError, match=message):
        VocabularyDisplay(epsilons=epsilons, values={"sieve": size}).plot()


def test_results_of_selections_are_drawn_as_means():
    rows = [("sieve", 1, 0.5), ("sieve", 1, 0.7), ("sieve", 2, 0.8), ("printed", 2, 0.4)]
    table = [{"method": name, "epsilon": e, "token_mass": mass, "delta": 1e-5} for name, e, mass in rows]
    table[3]["status"] = "claimed"
    for row in table[:3]:
        row["status"] = "proven"
    display = VocabularyDisplay.from_results(table, measure="token_mass", unit="mail")
    assert display.epsilons.tolist() == [1, 2] and display.claimed == ["printed"]
    np.testing.assert_allclose(display.values["sieve"], [0.6, 0.8])
    np.testing.assert_array_equal(display.values["printed"], [np.nan, 0.4])
    assert display.ax_.get_ylabel() == "Share of all tokens" and display.ax_.get_yscale() == "linear"
    display.figure_.canvas.draw()
    assert {tick.get_text()[-1] for tick in display.ax_.get_yticklabels()} == {"%"}
    with pytest.raises(ValueError, match=r"must have the columns \['words'\]"):
        VocabularyDisplay.from_results(table)
    with pytest.raises(ValueError, match="measure must be one of"):
        VocabularyDisplay(epsilons=[1], values={}, measure="size").plot()


def test_roc_curves_have_logarithmic_axes_and_rates():
    rng = np.random.default_rng(0)
    labels = rng.random(400) < 0.5
    results = [AttackResult(rng.normal(size=400) + shift * labels, labels, name) for shift, name in ((0, "a"), (3, ""))]
    display = AttackRocDisplay(results=results).plot(fpr=0.01, title="Two")
    ax = display.ax_
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[0] == "guessing" and names[1].startswith("a (") and names[2].startswith("attack 2 (")
    assert names[2].endswith(f"({results[1].tpr_at(0.01).rate:.1%})")
    false, true, _ = results[1].roc()
    drawn = ax.lines[2].get_xydata()
    np.testing.assert_array_equal(drawn[:, 1], true)
    np.testing.assert_array_equal(drawn[:, 0], np.maximum(false, ax.get_xlim()[0]))
    single = Figure().subplots()
    assert AttackRocDisplay(results=results[0]).plot(single, fpr=None, least=0.01).ax_ is single
    assert single.get_xlim() == (0.01, 1)
    display.figure_.canvas.draw()
    with pytest.raises(ValueError, match="at least one attack"):
        AttackRocDisplay(results=[]).plot()


def test_the_roc_of_a_dictionary_has_its_names():
    rng = np.random.default_rng(0)
    labels = rng.random(400) < 0.5
    found = {
        name: AttackResult(rng.normal(size=400) + shift * labels, labels, name) for shift, name in ((0, "a"), (3, "b"))
    }
    ax = Figure().subplots()
    both = AttackRocDisplay(results=found).plot(ax=ax, fpr=0.01, least=0.001, title="Two")
    assert both.ax_ is ax and both.figure_ is ax.figure
    assert ax.get_title(loc="left") == "Two" and ax.get_xlim() == (0.001, 1)
    assert ax.get_legend().get_texts()[2].get_text() == f"b ({found['b'].tpr_at(0.01).rate:.1%})"
    nameless = AttackResult(found["b"].scores, labels)
    drawn = AttackRocDisplay(results={"mine": nameless}).plot(Figure().subplots(), fpr=None)
    assert drawn.ax_.get_legend().get_texts()[1].get_text() == "mine"


def report(epsilon, bound, status="proven", violated=False):
    reason = "" if status == "proven" else "of a published sum"
    words = {"reason": reason, "mechanism": "noise, on counts", "reference": "a theorem"}
    claim = PrivacyGuarantee(epsilon=epsilon, delta=1e-6, status=status, **words)
    return AuditReport(claim, bound, 0.95, "one-run", "", violated)


def test_audits_are_bars_beside_their_claims():
    reports = [report(2.0, 0.5), report(1.0, 3.0, "claimed", True), report(np.inf, 1.0, "claimed")]
    display = AuditDisplay(reports=reports, names=["a", "b", "c"]).plot()
    ax = display.ax_
    assert [bar.get_width() for bar in ax.patches[:3]] == [0.5, 3.0, 1.0]
    assert len({bar.get_facecolor() for bar in ax.patches[:3]}) == 2
    assert labels(ax) == [f"{name}\nper document, delta 1e-06" for name in "abc"]
    assert [line.get_xdata()[0] for line in ax.lines[:2]] == [2.0, 1.0]
    assert [line.get_markerfacecolor() for line in ax.lines[:3]] == ["black", "white", "white"]
    assert [text.get_text() for text in ax.texts] == ["inf "]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == [
        "claim, proven",
        "claim, not proven",
        "shown, with confidence 0.95",
        "shown, and refutes the claim",
    ]
    display.figure_.canvas.draw()
    single = Figure().subplots()
    assert AuditDisplay(reports=reports[0]).plot(single).ax_ is single
    assert labels(single)[0].startswith("noise\n")
    with pytest.raises(ValueError, match="at least one audit"):
        AuditDisplay(reports=[]).plot()
    with pytest.raises(ValueError, match="names must name the 3 reports; got 1"):
        AuditDisplay(reports=reports, names=["a"]).plot()


def test_the_monitor_draws_its_history(corpus):
    with pytest.warns(PrivacyLeakWarning):
        model = InherentPrivacyLDA(3, max_iter=4).fit(corpus[:40])
    ax = MonitorDisplay.from_estimator(model).ax_
    history = model.inherent_privacy_
    curves = [history.word_level, history.document_level, history.worst_draw, history.sum_of_draws]
    for line, values in zip(ax.lines, curves, strict=True):
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([[1, 2, 3, 4], values]))
        assert line.get_linestyle() == ":"
    assert ax.get_yscale() == "log" and "none of these is a guarantee" in ax.get_legend().get_title().get_text()
    ax.figure.canvas.draw()
    single = Figure().subplots()
    assert MonitorDisplay(history=InherentPrivacyHistory([1], [2], [3], [4])).plot(single).ax_ is single
    with pytest.raises(ValueError, match=r"must be a fitted skdplda\.published\.InherentPrivacyLDA"):
        MonitorDisplay.from_estimator(PrivateCGSLDA())


def test_convergence_from_the_reports_of_a_fit(corpus):
    reports, public = [], corpus[400:]
    model = PrivateCGSLDA(3, max_iter=4, callback=reports.append).fit(corpus[:400])
    model.doc_topic_prior_ = np.full(3, 0.5)  # as if documents had voted for it
    display = ConvergenceDisplay.from_reports(reports, public=public, estimator=model)
    tables = [report.table.T / report.table.T.sum(axis=1, keepdims=True) for report in reports]
    expected = [perplexity(public, table, doc_topic_prior=0.5) for table in tables]
    curve, final = display.ax_.lines
    np.testing.assert_allclose(curve.get_ydata(), expected, rtol=1e-5)
    rounds = list(range(1, model.n_iter_ + 1))  # of word counts, topics and votes
    assert len(rounds) >= 2 and curve.get_xdata().tolist() == rounds
    np.testing.assert_allclose(final.get_ydata(), model.perplexity(public))
    moved = ConvergenceDisplay.from_reports(reports, name="moved").ax_.lines[0]
    assert moved.get_label() == "moved" and moved.get_xdata().tolist() == rounds[1:]
    np.testing.assert_allclose(moved.get_ydata()[0], np.abs(tables[1] - tables[0]).sum(axis=1).mean() / 2, rtol=1e-5)
    display.figure_.canvas.draw()
    with pytest.raises(ValueError, match="reports must hold at least 2 rounds; got 1"):
        ConvergenceDisplay.from_reports(reports[:1])


def test_convergence_errors_name_the_parameter():
    with pytest.raises(ValueError, match="values must have one entry"):
        ConvergenceDisplay(values=[]).plot()
    with pytest.raises(ValueError, match="rounds must have one number for each of the 1 values"):
        ConvergenceDisplay(values=[1.0], rounds=[1, 2]).plot()


def test_noise_is_marked_in_bars_and_pictures_of_models_name_epsilon():
    topics = np.array([[0.5, 0.3, 0.2, 0.0], [0.3, 0.0, 0.0, 0.7]])
    noisy = ReleasedTopicModel(
        topics,
        ["the", "pear", "plum", "zinc"],
        privacy_guarantee=PrivacyGuarantee(epsilon=0.5),
        signal_to_noise=[[0.0, 9.0, 9.0, -9.0], [0.0, -9.0, -9.0, 9.0]],
    ).rename_topics({0: "fruit"})
    display = TopWordsDisplay.from_estimator(noisy, n_words=2, relevance=1)
    assert labels(display.ax_[0]) == ["pear", "plum"] and labels(display.ax_[1]) == ["zinc", "(the)"]
    colors = [patch.get_facecolor() for patch in display.ax_[1].patches]
    assert colors[0] != colors[1] and display.ax_[0].get_title(loc="left") == "fruit"
    title = display.figure_.get_suptitle()
    assert "epsilon = 0.5" in title and "claimed" in title and "parentheses" in title
    distances = TopicDistanceDisplay.from_estimator(noisy, n_words=1)
    assert "epsilon = 0.5" in distances.ax_.get_title(loc="left") and labels(distances.ax_)[0].startswith("fruit: ")


def test_legends_cover_no_curve():
    display = PrivacyUtilityDisplay(epsilons=[1, 5], scores=[300, 200], non_private=190, unigram=310).plot()
    display.figure_.canvas.draw()
    assert display.ax_.get_legend().get_window_extent().y1 <= display.ax_.get_window_extent().y0


def shown_texts(figure):
    """Return what stands in a figure, as matplotlib reads it: (text, whether it is a formula)."""
    figure.canvas.draw()
    texts = [text for text in figure.findobj(matplotlib.text.Text) if text.get_text()]
    return [text._preprocess_math(text.get_text()) for text in texts]


@pytest.mark.parametrize("kind", ["words", "matrix", "map"])
def test_dollars_in_words_and_names_are_no_formulas(kind):
    words = ["$5", "10$", r"$\frac{1}{$", r"a\$b", "_$x$_"]
    topics = np.random.default_rng(0).dirichlet(np.ones(5), 2)
    names = ["$cheap$", "dear $$"]
    if kind == "words":
        display = TopWordsDisplay(words=[words, words], weights=topics, topic_names=names, title="$what$")
        expected = {*words, *names, "$what$"}
    else:
        distances = [[0.0, 0.5], [0.5, 0.0]]
        display, expected = TopicDistanceDisplay(distances=distances, topic_names=names), set()
    options = {} if kind == "words" else {"kind": kind}
    found = shown_texts(display.plot(**options).figure_)
    assert expected <= {text for text, _ in found}
    assert not any(formula for text, formula in found)
    if kind != "words":
        assert sum(text.endswith(name) for text, _ in found for name in names) >= 2


def test_dollars_in_names_of_curves_are_no_formulas():
    rng = np.random.default_rng(0)
    result = AttackResult(rng.random(40), np.arange(40) % 2 == 0, name="$a$")
    figure = AttackRocDisplay(results=[result]).plot(title="$t$").figure_
    found = shown_texts(figure)
    assert ("$t$", False) in found and any(text.startswith("$a$") and not formula for text, formula in found)
