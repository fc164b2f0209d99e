"""How many topics are suggested: the numbers are those of doc/frontier.rst, and bad input is refused."""

import math

import numpy as np
import pytest

from skdplda import PrivacyAccountant, make_fdptm_pipeline, privacy_guarantee
from skdplda.model_selection import suggest_n_components

# Documents, words a document, words, epsilon, and the best of 2, 3, 5, 8, 12, 20, 35 and 60 topics; more than one,
# where the perplexities are within 1 % of the best.
MEASURED = [
    (2929, 60.7, 1000, 1.0, (3, 5, 8, 12, 20)),
    (2929, 60.7, 1000, 5.0, (5, 8, 12, 20)),
    (11058, 41.7, 1000, 1.0, (8, 12)),
    (11058, 41.7, 1000, 2.0, (8, 12, 20)),
    (11058, 41.7, 1000, 5.0, (12, 20, 35)),
    (3252, 88.4, 1000, 2.0, (8,)),
    (3252, 88.4, 1000, 5.0, (8, 12)),
    (7076, 3.9, 1000, 1.0, (5, 8)),
    (7076, 3.9, 1000, 2.0, (5, 8, 12)),
    (7076, 3.9, 1000, 5.0, (8, 12)),
]


@pytest.mark.parametrize(("nominal_size", "length", "n_words", "epsilon", "best"), MEASURED)
def test_the_suggestion_is_near_the_best_that_was_measured(nominal_size, length, n_words, epsilon, best):
    suggested = suggest_n_components(epsilon, 1e-5, nominal_size, length, n_words).n_components
    assert min(best) / 1.5 <= suggested <= max(best) * 1.5


def test_more_budget_and_more_documents_never_suggest_fewer_topics():
    by_epsilon = [suggest_n_components(e, 1e-5, 5000, 20, 2000) for e in (0.1, 0.5, 1, 2, 5, 10)]
    by_size = [suggest_n_components(1.0, 1e-5, n, 20, 2000) for n in (10, 100, 1000, 10**4, 10**6)]
    for suggestions in (by_epsilon, by_size):
        assert sorted(s.n_components for s in suggestions) == [s.n_components for s in suggestions]
        assert all(0 < s.expected_share < 1 and s.n_components >= 2 for s in suggestions)
        assert suggestions[-1].signal > suggestions[0].signal
    assert suggest_n_components(5.0, 1e-5, 10**9, 3, 3).n_components == 3  # never more than words


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epsilon": math.inf}, "epsilon must be finite"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"nominal_size": 0}, r"nominal_size must be an integer from 1 to 2\*\*53; got 0"),
        ({"nominal_size": 10**400}, "nominal_size must be an integer from 1 to"),
        ({"nominal_size": 2.5}, "nominal_size must be an integer"),
        ({"words_per_document": 0.5}, "words_per_document must be from 1 to n_words=1000; got 0.5"),
        ({"words_per_document": 2000}, "words_per_document must be"),
        ({"n_words": 0}, "n_words must be an integer"),
    ],
)
def test_bad_numbers_are_refused(change, said):
    numbers = {"epsilon": 1.0, "delta": 1e-5, "nominal_size": 1000, "words_per_document": 20, "n_words": 1000}
    with pytest.raises(ValueError, match=said):
        suggest_n_components(**numbers | change)


def test_numbers_of_numpy_give_numbers_of_python():
    for suggestion in (
        suggest_n_components(1.0, 1e-5, np.int64(10**4), np.float64(20), np.int64(1000)),
        suggest_n_components(50.0, 1e-5, np.int64(10**9), np.int64(3), np.int64(3)),
    ):
        assert [type(number) for number in suggestion] == [int, float, float]


def test_a_pipeline_takes_the_suggestion_for_what_its_topics_may_spend():
    for max_words in (None, 500, "auto"):
        options = {"n_components": "suggest", "nominal_size": 40_000, "max_words": max_words}
        pipeline = make_fdptm_pipeline(2.0, 1e-6, **options)
        topics, n_words = pipeline["topics"], pipeline["words"].max_words or 2000
        suggested = suggest_n_components(topics.epsilon, topics.delta, 40_000, 40, n_words).n_components
        assert topics.n_components == suggested > 10
        assert privacy_guarantee(pipeline).epsilon <= 2.0
    assert make_fdptm_pipeline(2.0, 1e-6, **options | {"nominal_size": 400})["topics"].n_components < 5
    short = make_fdptm_pipeline(2.0, 1e-6, **options, words_per_document=4)["topics"].n_components
    assert short < topics.n_components
    with PrivacyAccountant(2.0, 1e-6):
        remaining = make_fdptm_pipeline("remaining", 1e-6, **options)
    assert remaining["topics"].n_components == topics.n_components


@pytest.mark.parametrize(
    ("epsilon", "options", "said"),
    [
        (2.0, {}, "needs nominal_size, a public estimate"),
        (2.0, {"nominal_size": 0.5}, "nominal_size must be an integer"),
        (2.0, {"nominal_size": 100, "words_per_document": "many"}, "words_per_document must be"),
        (2.0, {"n_components": "guess", "nominal_size": 100}, "got n_components='guess'"),
        (float("inf"), {"nominal_size": 100}, "epsilon must be finite"),
    ],
)
def test_a_pipeline_refuses_what_nothing_can_be_suggested_from(epsilon, options, said):
    with pytest.raises(ValueError, match=said):
        make_fdptm_pipeline(epsilon, 1e-6, **{"n_components": "suggest"} | options)
