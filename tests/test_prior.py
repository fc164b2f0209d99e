"""Public priors: what they hold, how they meet a vocabulary, and the topics that start from them."""

import pickle
import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from conversing import Conversation
from gensim.models import KeyedVectors, Word2Vec
from internals import Knowledge, least_share, order_of_topics, starting_topics
from sklearn.base import BaseEstimator, clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import threadpool_limits

import skdplda
from skdplda import (
    HDPLDA,
    PCTD,
    VIPSLDA,
    DPCountVectorizer,
    DPVocabularySelector,
    LocalPrivateLDA,
    PrivacyAccountant,
    PrivateCGSLDA,
    PublicPrior,
    make_fdptm_pipeline,
)
from skdplda.models import BaseRoundsModel
from skdplda.priors import WordPrior
from skdplda.rounds import NORM_BOUND, BudgetPlan
from skdplda.semantics import SemanticUnitVectorizer, UnitMatrix

SPORT = ["hockey", "team", "goal", "season", "league"]
SPACE = ["orbit", "moon", "rocket", "shuttle", "lunar"]
FOOD = ["bread", "cheese", "soup", "salad", "butter"]
WORDS = [*SPORT, *SPACE, *FOOD]
SEEDS = {"space": ["orbit", "moon"], "food": ["bread", "soup"]}


def planted_vectors(words=WORDS, seed=0):
    """Three tight groups of vectors around orthogonal directions, all moved by the same large offset."""
    rng = np.random.default_rng(seed)
    groups = [SPORT, SPACE, FOOD]
    centre = 5 * np.eye(3, 8)
    rows = [centre[next(g for g, group in enumerate(groups) if word in group)] for word in words]
    return np.array(rows) + 0.3 * rng.standard_normal((len(words), 8)) + 20.0


def planted_texts(n=300, seed=0):
    rng = np.random.default_rng(seed)
    groups = [SPORT, SPACE, FOOD]
    return [" ".join([*rng.choice(groups[i % 3], 4), "the", rng.choice(WORDS)]) for i in range(n)]


@pytest.fixture
def vectors():
    return PublicPrior.from_vectors((WORDS, planted_vectors()))


@pytest.fixture
def everything(vectors):
    counts = {word: 2.0 + i for i, word in enumerate(WORDS)}
    return vectors + PublicPrior.from_frequencies(counts) + PublicPrior.from_seed_words(SEEDS)


# What goes in


def test_gensim_mappings_and_pairs_give_the_same_prior(vectors):
    table = planted_vectors().astype(np.float32)
    keyed = KeyedVectors(8)
    keyed.add_vectors(WORDS, table)
    assert PublicPrior.from_vectors(keyed) == vectors
    assert PublicPrior.from_vectors(dict(zip(WORDS, table, strict=True))) == vectors
    assert PublicPrior.from_vectors((np.array(WORDS), table.astype(np.float64))) == vectors
    assert PublicPrior.from_vectors((WORDS, table + 1)) != vectors
    assert PublicPrior.from_vectors((WORDS[::-1], table)) != vectors


def test_frequencies_come_from_mappings_and_pairs():
    prior = PublicPrior.from_frequencies({"tea": 1, "milk": 3})
    assert prior == PublicPrior.from_frequencies((["tea", "milk"], np.array([1, 3])))
    np.testing.assert_allclose(prior.for_words(["milk", "tea"]).frequencies, [0.75, 0.25])


def test_texts_give_counts():
    texts = ["The tea", "the milk the tea"]
    found = PublicPrior.from_texts(texts).for_words(["the", "tea", "milk"])
    np.testing.assert_allclose(found.frequencies, np.array([3, 2, 1]) / 6)
    assert found.vectors is None and found.topics is None and found.names == ()


def test_texts_give_vectors_that_know_which_words_go_together():
    """The cosines differ by 0.28 (over 20 seeds with deviation 0.05)."""
    found = PublicPrior.from_texts(planted_texts(900), n_dimensions=6).for_words(WORDS)
    assert found.vectors.shape[1] <= 6
    cosine = found.vectors @ found.vectors.T
    same = np.kron(np.eye(3), np.ones((5, 5))).astype(bool)
    np.fill_diagonal(cosine, np.nan)
    assert np.nanmin(cosine[same]) > np.nanmax(cosine[~same])


def test_few_texts_or_rare_words_have_no_vectors():
    texts = planted_texts()
    assert PublicPrior.from_texts(texts[:49]).for_words(WORDS).vectors is None
    rare = [*texts, *["quark hockey"] * 4]
    assert not PublicPrior.from_texts(rare).for_words([*WORDS, "quark"]).vectors[-1].any()
    enough = [*rare, "quark hockey"]
    assert PublicPrior.from_texts(enough).for_words([*WORDS, "quark"]).vectors[-1].any()
    alike = PublicPrior.from_texts(["one two three"] * 50)  # all words in all texts: no information
    assert alike.for_words(["one", "two"]).vectors is None


def test_the_same_texts_give_the_same_prior_for_any_number_of_threads():
    texts = planted_texts()
    first = PublicPrior.from_texts(iter(texts))
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            assert PublicPrior.from_texts(texts).digest == first.digest


def test_the_vectorizer_is_not_fitted_and_its_words_count():
    vectorizer = CountVectorizer(stop_words=["the"], ngram_range=(1, 2))
    prior = PublicPrior.from_texts(["the green tea", "green tea"], vectorizer=vectorizer)
    assert not hasattr(vectorizer, "vocabulary_")
    assert repr(prior).startswith("<PublicPrior: frequencies of 3 words; sha256 ")
    np.testing.assert_allclose(prior.for_words(["green tea", "tea", "the"]).frequencies, np.array([2, 2, 1]) / 5)


def test_large_topics_keep_their_proportions():
    prior = PublicPrior.from_topics([[1e308, 1e308], [1e-300, 3e-300]], ["a", "b"])
    np.testing.assert_allclose(prior.for_words(["a", "b"]).topics, [[0.5, 0.5], [0.25, 0.75]])
    assert prior.topic_names == ("topic 0", "topic 1")


def test_the_prior_does_not_follow_later_changes_of_what_it_was_given():
    table = planted_vectors().astype(np.float32)
    prior = PublicPrior.from_vectors((WORDS, table))
    before = prior.for_words(WORDS).vectors
    table[:] = 1
    np.testing.assert_array_equal(prior.for_words(WORDS).vectors, before)


NAN = [[1.0, np.nan], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PublicPrior(), "needs vectors, frequencies or topics"),
        (lambda: PublicPrior.from_texts("one text"), "texts must be a list of strings"),
        (lambda: PublicPrior.from_texts([]), "texts must hold at least one document"),
        (lambda: PublicPrior.from_texts(None), "texts must be an iterable of documents; got a NoneType"),
        (lambda: PublicPrior.from_texts([1, 2]), "texts must hold a text in each row; row 0.*int"),
        (lambda: PublicPrior.from_texts(["a b", None]), "texts must hold a text in each row; row 1.*missing"),
        (lambda: PublicPrior.from_texts(["tea milk"], n_dimensions=0), "n_dimensions must be an integer.*got 0"),
        (lambda: PublicPrior.from_texts(["tea milk"], n_dimensions=True), "n_dimensions must be an integer.*got True"),
        (lambda: PublicPrior.from_vectors({}), "words of vectors must be at least one"),
        (lambda: PublicPrior.from_vectors("glove"), "keyed_vectors must be gensim's KeyedVectors.*str 'glove'"),
        (lambda: PublicPrior.from_vectors(Word2Vec([["a"]], vector_size=2, min_count=1)), "Word2Vec.*Give its wv"),
        (lambda: PublicPrior.from_frequencies(pd.Series({"a": 1})), r"Series.*\s.*Give \(its index, its values\)"),
        (lambda: PublicPrior.from_vectors((["a", "b"], NAN)), "vectors must be finite.*1 entries"),
        (lambda: PublicPrior.from_vectors((["a"], [[np.inf]])), "vectors must be finite"),
        (lambda: PublicPrior.from_vectors((["a"], [[1e300]])), "vectors must be finite in float32"),
        (lambda: PublicPrior.from_vectors((["a"], [["x"]])), "vectors must be an array of numbers"),
        (lambda: PublicPrior.from_vectors((["a"], [[0.0]])), "vectors must not all be zero"),
        (lambda: PublicPrior.from_vectors((["a", "b"], [[1.0]])), r"vectors must have shape \(2, n\).*\(1, 1\)"),
        (lambda: PublicPrior.from_vectors((["a"], [1.0])), r"vectors must have shape \(1, n\)"),
        (lambda: PublicPrior.from_vectors((["a", "a"], np.eye(2))), "words of vectors must be distinct; got 'a' twice"),
        (lambda: PublicPrior.from_vectors(([1, "a"], np.eye(2))), "words of vectors must be strings; got int 1"),
        (lambda: PublicPrior.from_vectors({"a": [1, 2], "b": [1]}), "vectors must all have the same length"),
        (lambda: PublicPrior.from_frequencies({}), "words of frequencies must be at least one"),
        (lambda: PublicPrior.from_frequencies(["tea"]), "frequencies must be a mapping of words to counts"),
        (lambda: PublicPrior.from_frequencies({"a": -1, "b": 2}), "frequencies must not be negative"),
        (lambda: PublicPrior.from_frequencies({"a": 0}), "frequencies must not be negative, and not all zero"),
        (lambda: PublicPrior.from_topics([[1, -2]], ["a", "b"]), "topics must not be negative; got -2.0"),
        (lambda: PublicPrior.from_topics([[1, 1], [0, 0]], ["a", "b"]), "rows of zeros; got one for 'topic 1'"),
        (lambda: PublicPrior.from_topics([[1, 1]], ["a"]), r"topics must have shape \(1, 1\).*\(1, 2\)"),
        (lambda: PublicPrior.from_topics([[1]], ["a"], names=["x", "y"]), "topics must have shape"),
        (lambda: PublicPrior.from_topics([[1], [1]], ["a"], names=["x", "x"]), "names of topics must be distinct"),
        (lambda: PublicPrior.from_seed_words({"topic_1": ["a"]}), "names of topics must not be empty.*'topic_1'"),
        (lambda: PublicPrior.from_seed_words({"": ["a"]}), "names of topics must not be empty"),
        (lambda: PublicPrior.from_seed_words({"a\nb": ["a"]}), "hold control characters"),
        (lambda: PublicPrior.from_topics(np.zeros((0, 1)), ["a"]), "names of topics must be at least one"),
        (lambda: PublicPrior.from_topics([[1.0, 2.0]], "ab"), "words of topics must be a sequence of strings"),
        (lambda: PublicPrior.from_seed_words({}), "seed_words must map names"),
        (lambda: PublicPrior.from_seed_words(["hockey"]), "seed_words must map names.*list"),
        (
            lambda: PublicPrior.from_seed_words({"sport": "hockey"}),
            r"seed_words\['sport'\] must be a sequence.*'hockey'",
        ),
        (lambda: PublicPrior.from_seed_words({"sport": []}), r"seed_words\['sport'\] must be at least one"),
        (lambda: PublicPrior.from_seed_words({"sport": ["a", "a"]}), r"seed_words\['sport'\] must be distinct"),
        (lambda: PublicPrior.from_seed_words({"sport": {"a", "b"}}), "same in each run; got a set"),
        (lambda: PublicPrior.from_seed_words({"sport": [3]}), r"seed_words\['sport'\] must be strings; got int 3"),
        (lambda: PublicPrior.from_seed_words({1: ["a"]}), "names of topics must be strings; got int 1"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_data_frame_of_texts_is_refused():
    with pytest.raises(ValueError, match="got a DataFrame"):
        PublicPrior.from_texts(pd.DataFrame({"text": ["tea"]}))


@pytest.mark.parametrize("words", ["tea", [], ["tea", "tea"], [1], None])
def test_a_bad_vocabulary_is_refused(vectors, words):
    with pytest.raises(ValueError, match="words must be"):
        vectors.for_words(words)


# What it is: a value


def test_it_is_a_value(everything):
    same = pickle.loads(pickle.dumps(everything))
    assert same == everything and hash(same) == hash(everything) and repr(same) == repr(everything)
    assert deepcopy(everything) is everything
    found, again = everything.for_words(WORDS), same.for_words(WORDS)
    for one, other in ((found.vectors, again.vectors), (found.topics, again.topics)):
        np.testing.assert_array_equal(one, other)
        with pytest.raises(ValueError, match="read-only"):
            one[0] = 1
    with pytest.raises(AttributeError, match="never changes"):
        everything.digest = "0"
    with pytest.raises(AttributeError, match="never changes"):
        del everything._digest
    assert everything != "prior" and (everything == 3) is False


class Model(BaseEstimator):
    def __init__(self, public_prior=None):
        self.public_prior = public_prior


def test_clones_of_an_estimator_share_it(everything):
    copy = clone(Model(everything))
    assert copy.public_prior is everything
    assert everything.digest[:12] in repr(copy)


def test_the_representation_follows_the_content(everything, vectors):
    assert repr(everything) == (
        "<PublicPrior: vectors of 15 words, frequencies of 15 words, 2 topics; sha256 " + everything.digest[:12] + ">"
    )
    assert everything.digest[:12] in everything.description
    assert everything.description.startswith("public prior: vectors of 15 words, ")
    assert everything.description.endswith("assumed independent of the private texts")
    other = planted_vectors()
    other[3, 2] += 0.5
    assert repr(PublicPrior.from_vectors((WORDS, other))) != repr(vectors)
    one, two = PublicPrior.from_seed_words({"a": ["b, c"]}), PublicPrior.from_seed_words({"a": ["b", "c"]})
    assert len({one, two, PublicPrior.from_seed_words({"b": ["b, c"]})}) == 3


def test_it_has_one_public_path_and_loads_on_demand():
    assert skdplda.PublicPrior is skdplda.priors.PublicPrior
    assert "PublicPrior" in skdplda.__all__


# Sums


def test_sums_keep_all_vectors(vectors):
    other = PublicPrior.from_vectors({"tea": [1.0, 0.0], "hockey": [0.0, 1.0], "milk": [1.0, 0.5]})
    words = ["hockey", "moon", "tea", "unknown"]
    a, b, both = (prior.for_words(words).vectors for prior in (vectors, other, vectors + other))
    assert both.shape == (4, 8 + 2)
    np.testing.assert_allclose(np.linalg.norm(both, axis=1), [1, 1, 1, 0])
    np.testing.assert_allclose(both[0], np.append(a[0], b[0]) / np.sqrt(2))
    np.testing.assert_allclose(both[1], np.append(a[1], [0, 0]))
    np.testing.assert_allclose(both[2], np.append(np.zeros(8), b[2]))


def test_sums_weigh_tables_of_frequencies_equally():
    small, large = PublicPrior.from_frequencies({"tea": 1, "milk": 3}), PublicPrior.from_frequencies({"tea": 9000})
    words = ["tea", "milk"]
    expected = (np.array([1, 3]) / 4 + np.array([2, 1]) / 3) / 2  # milk is half of the smallest count of the other
    np.testing.assert_allclose((small + large).for_words(words).frequencies, expected)
    foreign = PublicPrior.from_frequencies({"xyz": 1})
    np.testing.assert_allclose((small + foreign).for_words(words).frequencies, [0.25, 0.75])


def test_sums_stack_topics_and_refuse_the_same_name():
    a, b = PublicPrior.from_seed_words({"x": ["tea"]}), PublicPrior.from_topics([[1, 3]], ["tea", "milk"], names=["y"])
    found = (a + b).for_words(["milk", "tea"])
    assert found.names == (a + b).topic_names == ("x", "y")
    np.testing.assert_allclose(found.topics, [[0, 1], [0.75, 0.25]])
    with pytest.raises(ValueError, match="names of topics must be distinct; got 'x' twice"):
        a + PublicPrior.from_seed_words({"x": ["milk"]})
    with pytest.raises(TypeError):
        a + 1
    c = PublicPrior.from_frequencies({"tea": 1})
    assert (a + b) + c == a + (b + c) == sum([a, b, c])
    with pytest.raises(TypeError):
        sum([a, b], start=1)


# The vocabulary


def test_vectors_are_centred_and_of_length_one(vectors):
    words = [*WORDS, "unknown"]
    found = vectors.for_words(words).vectors
    assert found.dtype == np.float64
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [1] * 15 + [0])
    table = planted_vectors().astype(np.float32).astype(np.float64)
    centred = table - table.mean(axis=0)
    np.testing.assert_allclose(found[:15], centred / np.linalg.norm(centred, axis=1, keepdims=True), atol=1e-12)


def test_words_meet_exactly_then_in_lower_case_then_in_any_case():
    prior = PublicPrior.from_frequencies({"US": 1, "us": 10, "Paris": 100, "New_York": 1000})
    found = prior.for_words(["us", "US", "Us", "paris", "new york", "PARIS"]).frequencies
    np.testing.assert_allclose(found, np.array([10, 1, 10, 100, 1000, 100]) / 1221)


def test_ngrams_have_the_mean_of_their_parts():
    axes = np.eye(4)
    prior = PublicPrior.from_vectors({"ice": axes[0], "hockey": axes[1], "ice_cream": axes[2], "tea": axes[3]})
    words = ["ice", "tea", "Ice hockey", "ice_hockey", "ice cream", "iced_tea", "iced_coffee"]
    found = prior.for_words(words).vectors
    raw = np.array([axes[0], axes[3], axes[:2].mean(axis=0), axes[:2].mean(axis=0), axes[2], axes[3]])
    raw -= raw.mean(axis=0)
    np.testing.assert_allclose(found[:6], raw / np.linalg.norm(raw, axis=1, keepdims=True), atol=1e-12)
    assert not found[6].any()


def test_unknown_words_have_half_of_the_smallest_frequency():
    prior = PublicPrior.from_frequencies({"tea": 4, "milk": 1, "soup": 0})
    found = prior.for_words(["tea", "unknown", "soup"]).frequencies
    np.testing.assert_allclose(found, np.array([4, 0.5, 0.5]) / 5)
    scaled = PublicPrior.from_frequencies({"tea": 0.8, "milk": 0.2}).for_words(["tea", "unknown"]).frequencies
    np.testing.assert_allclose(scaled, np.array([8, 1]) / 9)


def test_one_known_vector_says_nothing():
    """Its difference from the mean is zero."""
    prior = PublicPrior.from_vectors({"tea": [1.0, 2.0]}) + PublicPrior.from_frequencies({"tea": 1})
    assert prior.for_words(["tea", "milk"]).vectors is None


def test_nothing_in_common_warns_once(everything):
    with pytest.warns(UserWarning, match="knows none of the 2 words") as caught:
        found = everything.for_words(["xyzzy", "plugh"])
    assert len(caught) == 1
    assert found.vectors is None and found.frequencies is None and found.topics is None and found.names == ()
    assert starting_topics(found, 3) is None


def test_known_words_of_one_vector_warn_as_unknown_ones_do():
    prior = PublicPrior.from_vectors({"tea": [1.0, 2.0], "milk": [2.0, 1.0]})
    with pytest.warns(UserWarning, match="of the 2 words, or has one and the same vector for those that it knows"):
        assert prior.for_words(["tea", "soup"]).vectors is None


def test_a_topic_without_words_warns_by_name():
    prior = PublicPrior.from_seed_words({"sport": ["hockey"], "space": ["orbit"]})
    with pytest.warns(UserWarning, match="seeded topic 'space'"):
        found = prior.for_words(["hockey", "tea", "milk", "bread"])
    np.testing.assert_allclose(found.topics, [[1, 0, 0, 0], [0.25] * 4])
    assert found.names == ("sport", "space")


def test_a_full_match_is_silent(everything):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        everything.for_words(np.array(WORDS, dtype=object))


# The order of released topics


def test_released_topics_take_the_numbers_of_the_seeds_whose_words_they_have():
    words = PublicPrior.from_seed_words({"space": ["orbit", "moon"], "lost": ["xyzzy"], "food": ["bread", "soup"]})
    with pytest.warns(UserWarning, match="'lost'"):
        prior = words.for_words(WORDS)
    assert prior.informed.tolist() == [0, 2] and prior.n_words == 15
    released = np.kron([[9, 1, 1], [3, 3, 2], [1, 1, 5], [1, 5, 1]], np.ones(5)).astype(
        float
    )  # sport, all, food, space
    assert order_of_topics(prior, released).tolist() == [3, 0, 2, 1]
    alike = np.ones((4, 15)) * [[1.0], [2.0], [3.0], [4.0]]
    assert sorted(order_of_topics(prior, alike)) == [0, 1, 2, 3]


def test_two_seeds_of_one_topic_still_have_two_numbers():
    prior = PublicPrior.from_seed_words({"ball": ["goal"], "ice": ["hockey"]}).for_words(WORDS)
    released = np.ones((3, 15))
    released[1, :5], released[1, 0] = 9, 20  # hockey more than goal
    assert order_of_topics(prior, released).tolist()[1] == 1


# Starting topics


def top(topic, n):
    return {WORDS[i] for i in np.argsort(-topic)[:n]}


def test_seed_words_come_first_in_their_topics(everything):
    start = starting_topics(everything.for_words(WORDS), 3)
    assert start.shape == (15, 3)
    np.testing.assert_allclose(start.sum(axis=0), 1)
    assert (start > 0).all()
    assert top(start[:, 0], 2) == {"orbit", "moon"} and top(start[:, 1], 2) == {"bread", "soup"}
    seeds = [[WORDS.index(word) for word in words] for words in SEEDS.values()]
    assert all(start[rows, k].sum() >= 0.5 for k, rows in enumerate(seeds))
    assert top(start[:, 0], 5) == set(SPACE) and top(start[:, 1], 5) == set(FOOD)  # by the vectors
    assert top(start[:, 2], 5) == set(SPORT)  # the cluster that has no seeds


def test_clusters_of_vectors_become_topics(vectors):
    start = starting_topics(vectors.for_words(WORDS), 3)
    assert {frozenset(top(topic, 5)) for topic in start.T} == {frozenset(g) for g in (SPORT, SPACE, FOOD)}


def test_a_permuted_vocabulary_permutes_the_topics(everything, vectors):
    ngrams = [" ".join(words) for words in zip(WORDS, WORDS[1:], WORDS[2:], strict=False)]  # means that are rounded
    words = [*WORDS, "unknown", *ngrams]
    order = np.random.default_rng(3).permutation(len(words))
    marginal = np.arange(1.0, 1.0 + len(words))
    for prior in (everything, vectors):
        plain = prior.for_words(words)
        permuted = prior.for_words([words[i] for i in order])
        np.testing.assert_array_equal(permuted.vectors, plain.vectors[order])
        for k in (2, 3, 5, 8):
            one = starting_topics(plain, k, marginal)
            np.testing.assert_allclose(starting_topics(permuted, k, marginal[order]), one[order], rtol=1e-9)


def test_the_marginal_is_kept(vectors):
    """Of words with the same affinities, one that is seen ten times as often has ten times the mass."""
    table = planted_vectors()
    prior = PublicPrior.from_vectors(([*WORDS, "twin"], np.vstack([table, table[:1]])))
    marginal = np.ones(16)
    marginal[15] = 10
    start = starting_topics(prior.for_words([*WORDS, "twin"]), 3, marginal)
    np.testing.assert_allclose(start[15], 10 * start[0])
    alone = vectors + PublicPrior.from_frequencies((WORDS, np.arange(1, 16)))
    words = alone.for_words(WORDS)
    np.testing.assert_array_equal(starting_topics(words, 3), starting_topics(words, 3, words.frequencies))
    np.testing.assert_allclose(starting_topics(words, 3, 7 * words.frequencies), starting_topics(words, 3), rtol=1e-9)


def test_frequent_words_decide_on_the_clusters():
    """Three words, each at the same distance from the one in the middle, and two clusters."""
    angle = np.pi / 3 * np.arange(3)
    words = WordPrior(vectors=np.column_stack([np.cos(angle), np.sin(angle)]))
    first = starting_topics(words, 2, [10, 10, 1]) / np.array([[10], [10], [1]])
    assert len(set(first[1:].argmax(axis=1))) == 1 and len(set(first[:2].argmax(axis=1))) == 2
    last = starting_topics(words, 2, [1, 10, 10]) / np.array([[1], [10], [10]])
    assert len(set(last[:2].argmax(axis=1))) == 1 and len(set(last[1:].argmax(axis=1))) == 2


def test_a_word_that_the_marginal_lacks_can_come_back(vectors):
    marginal = np.ones(15)
    marginal[4] = 0
    start = starting_topics(vectors.for_words(WORDS), 3, marginal)
    assert (start > 0).all()
    assert start[4].max() < 0.01 * start[3].max()


def test_words_without_a_vector_follow_the_marginal(vectors):
    """Their affinity is the mean one, so that their part of each topic is their part of the marginal."""
    marginal = np.arange(1.0, 18.0)
    start = starting_topics(vectors.for_words([*WORDS, "unknown", "foreign"]), 3, marginal)
    np.testing.assert_allclose(start[15], 16 / marginal.sum())
    np.testing.assert_allclose(start[16], 17 / marginal.sum())


def test_seeds_without_vectors_leave_the_other_topics_different():
    words = PublicPrior.from_seed_words(SEEDS).for_words(WORDS)
    start = starting_topics(words, 4)
    assert top(start[:, 0], 2) == {"orbit", "moon"} and top(start[:, 1], 2) == {"bread", "soup"}
    assert np.abs(start[:, 2] - start[:, 3]).max() > 0.01
    np.testing.assert_allclose(start.sum(axis=0), 1)
    assert (start > 0).all()
    np.testing.assert_array_equal(starting_topics(words, 4), start)
    assert not np.array_equal(starting_topics(words, 4, seed=1), start)
    assert starting_topics(words, 2).shape == (15, 2)


def test_there_may_be_more_topics_than_different_vectors():
    words = PublicPrior.from_vectors({"tea": [1, 0], "milk": [0, 1], "soup": [0, 1]}).for_words(["tea", "milk", "soup"])
    start = starting_topics(words, 5)
    assert start.shape == (3, 5) and (start > 0).all() and np.isfinite(start).all()
    assert len(np.unique(start.round(9), axis=1).T) == 5


def test_public_topics_are_half_of_their_start(vectors):
    topics = np.random.default_rng(0).dirichlet(np.ones(15), 2)
    word_prior = (vectors + PublicPrior.from_topics(topics, WORDS)).for_words(WORDS)
    start = starting_topics(word_prior, 3)
    assert (start[:, :2] >= 0.5 * topics.T).all()


def test_a_seeded_topic_without_words_starts_as_the_free_ones(vectors):
    prior = vectors + PublicPrior.from_seed_words({"lost": ["xyzzy"], "food": ["bread", "soup"]})
    with pytest.warns(UserWarning, match="'lost'"):
        words = prior.for_words(WORDS)
    start = starting_topics(words, 3)
    assert top(start[:, 1], 5) == set(FOOD)
    assert {frozenset(top(start[:, k], 5)) for k in (0, 2)} == {frozenset(SPORT), frozenset(SPACE)}


def test_starting_topics_do_not_depend_on_threads(everything):
    words = [f"w{i}" for i in range(600)]
    table = np.random.default_rng(0).standard_normal((600, 20))
    found = PublicPrior.from_vectors((words, table)).for_words(words)
    results = []
    for n_threads in (1, 2, 4):
        with threadpool_limits(n_threads):
            results.append(starting_topics(found, 7, seed=5))
    assert all(np.array_equal(result, results[0]) for result in results)


def test_bad_requests_for_starting_topics_are_refused(everything):
    words = everything.for_words(WORDS)
    for n_components in (1, 2.0, True):
        with pytest.raises(ValueError, match="n_components must be an integer of at least 2"):
            starting_topics(words, n_components)
    for marginal in (np.zeros(15), -np.ones(15)):
        with pytest.raises(ValueError, match="marginal must not be negative, and not all zero"):
            starting_topics(words, 3, marginal)
    with pytest.raises(ValueError, match=r"marginal must have shape \(15,\)"):
        starting_topics(words, 3, np.ones(4))
    assert starting_topics(WordPrior(frequencies=words.frequencies), 3) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"topics": np.array([[0.5, -0.1], [0.2, 0.8]])}, "topics of a WordPrior must not be negative; got -0.1"),
        ({"frequencies": np.array([1.5, -0.5])}, "frequencies of a WordPrior must not be negative"),
        ({"vectors": np.array([[np.nan, 1.0]])}, "vectors of a WordPrior must be finite"),
        ({"vectors": np.zeros((2, 3))}, "not all zero"),
        ({"vectors": np.full((2, 3), 1e7)}, "up to 1e\\+06"),
        ({"frequencies": np.ones((2, 2))}, "frequencies of a WordPrior must be an array of floats"),
        ({"topics": np.ones((1, 2), int)}, "topics of a WordPrior must be an array of floats"),
        ({"frequencies": np.array([3.0, 1.0])}, "frequencies of a WordPrior must sum to 1; got a sum that is 3 off"),
        ({"topics": np.array([[0.5, 0.5], [0.0, 0.0]]), "names": ("a", "b")}, "topics of a WordPrior must sum to 1"),
        ({"topics": np.full((2, 3), 1 / 3), "names": ("a", "a")}, "names of a WordPrior must be distinct"),
        (
            {"topics": np.full((1, 3), 1 / 3), "names": ("topic_1",)},
            "names of a WordPrior must not.*'topic_1'",
        ),
        ({"topics": np.full((2, 3), 1 / 3), "names": (1, 2)}, "names of a WordPrior must be strings"),
        ({"topics": np.full((2, 3), 1 / 3)}, r"names of a WordPrior must be one for each of its 2 topics; got \(\)"),
        ({"names": ("a",)}, "names of a WordPrior must be one for each of its 0 topics"),
        ({"vectors": np.eye(3), "n_dimensions": (1, 3)}, r"add up to the 3 columns of its vectors; got \(1, 3\)"),
        ({"vectors": np.eye(3), "n_dimensions": (3, 0)}, r"must be positive .* got \(3, 0\)"),
        (
            {"topics": np.full((1, 3), 1 / 3), "names": ("a",), "frequencies": np.full(2, 0.5)},
            r"for the same words; got some for \[2, 3\] words",
        ),
    ],
)
def test_a_word_prior_of_any_origin_holds_what_it_says(change, said):
    """Users' soft counts were not bounded where seeded topics were negative."""
    with pytest.raises(ValueError, match=said):
        WordPrior(**change)


def test_a_word_prior_keeps_what_it_was_given():
    given = np.array([0.25, 0.75])
    prior = WordPrior(frequencies=given)
    given[0] = 0.5
    assert prior.frequencies.tolist() == [0.25, 0.75]
    with pytest.raises(ValueError, match="read-only"):
        prior.frequencies[0] = 0.5


# In fits: what is public is refused before anything is spent, and every step hands the words on

TEXTS = [f"{text} tea" for text in planted_texts(1500)]
SOME = PublicPrior.from_seed_words(SEEDS)
MODELS = [VIPSLDA, PrivateCGSLDA, PCTD]


@pytest.fixture
def ledger():
    with PrivacyAccountant(50.0, 1e-3) as accountant:
        yield accountant


@pytest.fixture(scope="module")
def frame():
    vectorizer = CountVectorizer(vocabulary=WORDS)
    return pd.DataFrame(vectorizer.transform(TEXTS).toarray(), columns=WORDS)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("prior", [SOME, SOME.for_words(WORDS)])
def test_more_seeds_than_topics_are_refused_before_anything_is_spent(model, prior, frame, ledger):
    for use in (lambda one: one.privacy_cost(), lambda one: one.fit(frame)):
        with pytest.raises(ValueError, match="prior has 2 topics, more than n_components=1; give at least as many"):
            use(model(1, prior=prior))
    for epsilon in (3.0, np.inf):
        with pytest.raises(ValueError, match="prior has 2 topics, more than n_components=1"):
            make_fdptm_pipeline(epsilon, 1e-5, n_components=1, model=model(), prior=SOME)
    assert not ledger.ledger


def test_a_suggestion_is_for_as_many_topics_as_seeds_at_least():
    options = {"n_components": "suggest", "nominal_size": 100, "words_per_document": 4.0}
    seeds = PublicPrior.from_seed_words({f"seed {i}": [word] for i, word in enumerate(WORDS)})
    assert make_fdptm_pipeline(3.0, 1e-5, **options)["topics"].n_components < 15
    assert make_fdptm_pipeline(3.0, 1e-5, prior=seeds, **options)["topics"].n_components == 15


def test_a_prior_of_given_words_is_refused_where_words_are_selected():
    prior = SOME.for_words(WORDS)
    for options in ({"prior": prior}, {"model": VIPSLDA(prior=prior)}):
        with pytest.raises(ValueError, match=r"prior must be a PublicPrior.*15 words"):
            make_fdptm_pipeline(3.0, 1e-5, **options)
    public = DPCountVectorizer(public_vocabulary=WORDS)
    pipeline = make_fdptm_pipeline(3.0, 1e-5, n_components=3, vectorizer=public, prior=SOME.for_words(sorted(WORDS)))
    assert pipeline.fit(TEXTS)["topics"].get_feature_names_out().tolist() == ["space", "food", "topic_2"]


def steps():
    """Yield a name, a transformer, what it makes counts of, and the models that take them."""
    units = SemanticUnitVectorizer(2, vocabulary=WORDS)
    yield "units", units, TEXTS, [PCTD]
    yield "slice of units", FunctionTransformer(lambda texts: units.transform(texts)[:1000]), TEXTS, [PCTD]
    yield "words", DPCountVectorizer(epsilon=5.0), TEXTS, MODELS
    words = DPCountVectorizer(epsilon=5.0).fit(TEXTS)
    yield "slice", FunctionTransformer(lambda texts: words.transform(texts)[:1000]), TEXTS, MODELS
    yield "columns", FunctionTransformer(lambda texts: words.transform(texts)[::2, 3:][:, ::-1]), TEXTS, MODELS
    counts = CountVectorizer().fit_transform(TEXTS)
    data = pd.DataFrame(counts.toarray(), columns=sorted({*WORDS, "tea", "the"}))
    yield "frame", FunctionTransformer(), data, MODELS
    yield "selected columns of a frame", DPVocabularySelector(epsilon=5.0), data, MODELS
    yield (
        "selected columns of a sparse frame",
        DPVocabularySelector(epsilon=5.0),
        data.astype(pd.SparseDtype(int, 0)),
        MODELS,
    )
    yield "selected words", make_pipeline(words, DPVocabularySelector(epsilon=5.0)), TEXTS, MODELS


@pytest.mark.parametrize(
    ("first", "X", "model"),
    [
        pytest.param(first, X, model, id=f"{name}-{model.__name__}")
        for name, first, X, some in steps()
        for model in some
    ],
)
@pytest.mark.filterwarnings("ignore:X is a plain document-term matrix", "ignore::skdplda.NoisyTopicsWarning")
def test_every_step_hands_the_words_on(first, X, model):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the public prior knows none|none of the words of the seeded")
        fitted = make_pipeline(first, model(3, epsilon=20.0, prior=SOME)).fit(X)[-1]
    assert fitted.get_feature_names_out()[:2].tolist() == ["space", "food"]


def test_slices_of_named_counts_have_the_names_of_their_columns():
    X = DPCountVectorizer(public_vocabulary=WORDS).fit_transform(TEXTS)
    words = sorted(WORDS)
    assert X.words.tolist() == words
    some = [3, 1, 1]
    for part in (
        X[5],
        X[2:9],
        X[[1, 2]],
        X[X.toarray()[:, 0] > 0],
        X[2:5, ...],
        X[[1, 2], :],
        pickle.loads(pickle.dumps(X)),
    ):
        assert part.words.tolist() == words
    for part in (X[:, some], X[..., some], X[2:, some], X[:7][:, some], X[2][:, some]):
        assert part.words.tolist() == [words[i] for i in some] and part.shape[1] == 3
    assert X[:, 2].words.tolist() == [words[2]] and X[:, np.arange(15) == 4].words.tolist() == [words[4]]
    assert X[3, 3] >= 0 and getattr(X[X > 0], "words", None) is None and getattr(X.T, "words", None) is None


def test_words_of_units_fit_their_columns():
    with pytest.raises(ValueError, match=r"words must name the 2 columns; got shape \(1,\)"):
        UnitMatrix([0, 1], np.ones((1, 2)), words=["a"])


@pytest.mark.parametrize("model", [*MODELS, HDPLDA, LocalPrivateLDA])
@pytest.mark.filterwarnings("ignore")
def test_a_word_may_be_called_as_an_attribute_of_arrays(model, frame):
    data = frame.iloc[:50].rename(columns={"tea": "words", "hockey": "dtype", "bread": "words", "soup": "columns"})
    fitted = model(2, epsilon=1.0).fit(data)
    assert fitted.transform(data[:2]).shape == (2, 2) and "dtype" in fitted.top_words(15).to_numpy()


def test_a_fit_warns_at_the_line_that_called_it(frame):
    prior = SOME + PublicPrior.from_seed_words({"lost": ["xyzzy"]})
    with pytest.warns(UserWarning, match="'lost'") as caught:
        VIPSLDA(3, prior=prior).fit(frame)
    assert {w.filename for w in caught} == {__file__}
    with pytest.warns(UserWarning, match="'lost'") as caught:
        prior.for_words(WORDS)
    assert {w.filename for w in caught} == {__file__}


# In released models: numbers and names


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.filterwarnings("ignore:X is a plain document-term matrix", "ignore::skdplda.PrivacyLeakWarning")
def test_topics_come_out_with_the_numbers_of_their_seeds_and_all_that_is_theirs(model, frame, monkeypatch, tmp_path):
    """Rounds that move topics to other numbers, as a weak signal does, give the same model; so do resumed fits."""
    alpha = np.array([0.1, 0.2, 0.3])
    settings = {"epsilon": 20.0, "random_state": 0, "doc_topic_prior": alpha, "prior": SOME}
    plain = model(3, **settings).fit(frame)
    assert plain.get_feature_names_out().tolist() == ["space", "food", "topic_2"]
    assert "doc_topic_prior_" in plain.privacy_guarantee_.released
    assert plain.components_[0, 5:10].sum() > plain.components_[1:, 5:10].sum()
    assert plain.components_[1, 10:].sum() > plain.components_[[0, 2], 10:].sum()

    turn, made = np.array([1, 2, 0]), BaseRoundsModel._model_of
    of_topics = ("components_", "signal_to_noise_", "topic_signal_to_noise_", "doc_topic_prior_")

    def turned(self, *given):
        fitted = made(self, *given)
        return fitted | {name: fitted[name][turn] for name in of_topics if name in fitted}

    def stop(report):
        if report.n_done == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(BaseRoundsModel, "_model_of", turned)
    moved = model(3, **settings, checkpoint=tmp_path / "fit", callback=stop)
    with pytest.raises(KeyboardInterrupt):
        moved.fit(frame)
    moved.set_params(callback=None).fit(frame)
    for name in ("components_", "topic_word_", "signal_to_noise_", "topic_signal_to_noise_", "topic_names_"):
        np.testing.assert_array_equal(getattr(moved, name), getattr(plain, name))
    assert moved.topic_info()["name"].tolist() == ["space", "food", "topic_2"]
    was = np.searchsorted(alpha, plain.doc_topic_prior_)  # noise alone may move topics, too
    np.testing.assert_array_equal(moved.doc_topic_prior_, alpha[np.argsort(turn)[was]])  # with which each was found
    np.testing.assert_allclose(moved.transform(frame.iloc[:1] * 0), [moved.doc_topic_prior_ / alpha.sum()])
    moved.set_params(prior=None, doc_topic_prior=0.1).fit(frame)
    assert not hasattr(moved, "doc_topic_prior_") and moved.get_feature_names_out()[0] == "topic_0"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.filterwarnings("ignore:X is a plain document-term matrix")
def test_only_topics_that_started_from_seeds_have_their_names(model, frame):
    exact = model(3, epsilon=np.inf, max_iter=5, prior=SOME).fit(frame)
    assert exact.get_feature_names_out().tolist() == ["topic_0", "topic_1", "topic_2"]
    with pytest.warns(UserWarning, match="'lost'"):
        fitted = model(3, epsilon=20.0, prior=PublicPrior.from_seed_words({"lost": ["xyzzy"], **SEEDS})).fit(frame)
    assert fitted.get_feature_names_out().tolist() == ["topic_0", "space", "food"]
    assert fitted.top_words(2).loc["space"].isin(SPACE).all() and fitted.top_words(2).loc["food"].isin(FOOD).all()


@pytest.mark.parametrize("frequent", [False, True])
def test_a_seed_without_words_starts_its_topic_as_no_seed_does(frequent):
    """Not at a table of another shape than the other topics'."""
    topics = np.stack([np.full(40, 1 / 40), np.eye(40)[39]])
    starts = []
    for prior in (None, WordPrior(topics=topics, names=("lost", "first"))):
        plan = BudgetPlan.of(20.0, 1e-5, least_share(None))
        talk = Conversation(Knowledge((40, 4), plan, 7, prior=prior), plan)
        talk.answer(np.full((40, 1), (5 if frequent else 300) * NORM_BOUND))  # little signal: frequent words come first
        assert talk.kinds == ["words", "frequent" if frequent else "topics"]
        if frequent:
            talk.answer(np.full(talk.ask.query.shape, NORM_BOUND))
        starts.append(talk.ask.table / talk.ask.table.sum(axis=1, keepdims=True))
    none, seeded = (start[:, [0, 2, 3]] / start[:, 2:3] for start in starts)
    np.testing.assert_allclose(seeded, none, rtol=1e-5)
    assert starts[1][39, 1] > 0.65  # over 60 seeds 0.87 (deviation 0.02); 0.25 (0.08) without seeds
