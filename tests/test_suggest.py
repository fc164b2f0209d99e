"""How many topics are suggested: the numbers are those of doc/frontier.rst, and bad input is refused."""

import math

import pytest

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


@pytest.mark.parametrize(("n_documents", "length", "n_words", "epsilon", "best"), MEASURED)
def test_the_suggestion_is_near_the_best_that_was_measured(n_documents, length, n_words, epsilon, best):
    suggested = suggest_n_components(epsilon, 1e-5, n_documents, length, n_words).n_components
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
        ({"n_documents": 0}, "n_documents must be an integer of at least 1; got 0"),
        ({"n_documents": 2.5}, "n_documents must be an integer"),
        ({"words_per_document": 0.5}, "words_per_document must be from 1 to n_words=1000; got 0.5"),
        ({"words_per_document": 2000}, "words_per_document must be"),
        ({"n_words": 0}, "n_words must be an integer"),
    ],
)
def test_bad_numbers_are_refused(change, said):
    numbers = {"epsilon": 1.0, "delta": 1e-5, "n_documents": 1000, "words_per_document": 20, "n_words": 1000}
    with pytest.raises(ValueError, match=said):
        suggest_n_components(**numbers | change)
