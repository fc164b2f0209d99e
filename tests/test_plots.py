"""Displays draw what they are given, label it, and leave pyplot as they found it."""

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from skdplda import PrivateCGSLDA
from skdplda.attacks import AttackResult
from skdplda.plots import AttackRocDisplay, PrivacyUtilityDisplay, TopWordsDisplay, VocabularySizeDisplay

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
        assert axes.get_title(loc="left") == f"Topic {topic}"
        assert labels(axes) == expected[topic].tolist()
        widths = [bar.get_width() for bar in axes.patches]
        assert widths == sorted(model.topic_word_[topic], reverse=True)[:4]
    assert len({axes.get_xlim() for axes in display.axes_}) == 1
    display.figure_.canvas.draw()


def test_top_words_of_some_topics_keep_their_numbers(model):
    display = TopWordsDisplay.from_estimator(model, feature_names=WORDS, n_words=2, topics=[2, 0])
    assert [axes.get_title(loc="left") for axes in display.axes_] == ["Topic 2", "Topic 0"]
    assert labels(display.axes_[0]) == model.top_words(2, WORDS).to_numpy()[2].tolist()


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
    with pytest.raises(ValueError, match="n must be between 1 and"):
        TopWordsDisplay.from_estimator(model, n_words=6)
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
    display = VocabularySizeDisplay(epsilons=[1, 2, 5], sizes=sizes).plot(ax)
    assert display.ax_ is ax and display.figure_ is ax.figure
    lines = {line.get_label(): line for line in ax.lines}
    assert list(lines) == ["sieve", "sips"]
    assert lines["sieve"].get_xydata().tolist() == [[1, 200], [2, 370], [5, 790]]
    assert np.isnan(lines["sips"].get_ydata()[0])  # nothing selected: no point
    assert len({(line.get_color(), line.get_marker()) for line in ax.lines}) == 2
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "5"]
    display.figure_.canvas.draw()


@pytest.mark.parametrize(
    ("epsilons", "size", "message"),
    [
        ([2, 1], [1, 2], "epsilons must be positive finite numbers, ascending"),
        ([0, 1], [1, 2], "epsilons must be positive"),
        ([], [], "epsilons must be positive"),
        ([1, 2], [1, 2, 3], r"sizes\['sieve'\] must have one entry"),
    ],
)
def test_vocabulary_size_errors_name_the_parameter(epsilons, size, message):
    with pytest.raises(ValueError, match=message):
        VocabularySizeDisplay(epsilons=epsilons, sizes={"sieve": size}).plot()


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
