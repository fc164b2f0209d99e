"""Selector and vectorizer: what they select, guarantee, keep, refuse and cost."""

import pickle
import pickletools
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from internals import Tokens, read_texts
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdplda import (
    VIPSLDA,
    BudgetExceededError,
    DPCountVectorizer,
    DPVocabularySelector,
    EmbeddingTopics,
    PrivacyAccountant,
    PrivacyLeakWarning,
    PrivateCGSLDA,
    privacy_guarantee,
)
from skdplda.metrics import gensim_dictionary
from skdplda.privacy import PartitionPlan, level_parts, plan_partition
from skdplda.published import PublishedItemFrequencySelector
from skdplda.vocabulary import TextEmbedder

COMMON = ["apple", "pear", "plum", "iron", "zinc", "tin"]
CANARY = "wolframite"
N_TEXTS = 1201


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    found = [" ".join(rng.choice(COMMON, 4)) for _ in range(N_TEXTS)]
    found[600] += f" {CANARY} {CANARY} scheelite"
    return found


@pytest.fixture(scope="module")
def counts(texts):
    return CountVectorizer().fit_transform(texts)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")  # the checks need seeds
@parametrize_with_checks(
    [
        DPVocabularySelector(epsilon=1000.0),
        DPVocabularySelector(epsilon=1000.0, method="policy_laplace", cutoff=50.0),
        DPVocabularySelector(epsilon=1000.0, method="item_frequency", cutoff=50.0),
        PublishedItemFrequencySelector(epsilon=1000.0, cutoff=50.0),
        DPVocabularySelector(epsilon=float("inf")),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_get_params_invariance",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_valid_tag_types",
    ],
)
def test_scikit_learn_where_the_input_is_text(check):
    """parametrize_with_checks has data of numbers only; these are the checks that fit nothing."""
    getattr(estimator_checks, check)("DPCountVectorizer", DPCountVectorizer())


def test_a_fit_to_text_keeps_the_contract_of_scikit_learn(texts):
    """What the checks that fit would find: parameters stay, fitted attributes end in an underscore, and are needed."""
    vectorizer = DPCountVectorizer(epsilon=5.0, max_words_per_unit=6)
    with pytest.raises(NotFittedError):
        vectorizer.transform(texts)
    before = vectorizer.get_params()
    assert vectorizer.fit(texts) is vectorizer
    assert vectorizer.get_params() == before
    assert all(name.startswith("_") or name.endswith("_") for name in vars(vectorizer).keys() - before.keys())
    assert not any(name.endswith("_") for name in vars(clone(vectorizer)))
    once = vectorizer.transform(texts)
    assert once.shape == (N_TEXTS, 6) and (once != vectorizer.transform(texts)).nnz == 0


# --- what is selected -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", PartitionPlan.METHODS)
def test_common_words_are_selected_and_rare_ones_are_not(texts, mechanism):
    options = {"delta": 1e-6, "method": mechanism, "max_words_per_unit": 6}
    vectorizer = DPCountVectorizer(epsilon=5.0, cutoff=30.0, **options).fit(texts)  # or policies would miss some
    assert set(vectorizer.vocabulary_) == set(COMMON)
    assert vectorizer.get_feature_names_out().tolist() == sorted(COMMON)
    assert vectorizer.noisy_weights_.shape == (6,)
    X = vectorizer.transform(texts)
    expected = CountVectorizer(vocabulary=sorted(COMMON)).transform(texts)
    assert (expected != X).nnz == 0 and X.dtype == expected.dtype


def test_selector_and_vectorizer_agree(texts, counts):
    names = CountVectorizer().fit(texts).get_feature_names_out()
    selector = DPVocabularySelector(epsilon=2.0).fit(counts)
    assert names[selector.get_support()].tolist() == sorted(COMMON)
    assert selector.transform(counts).shape == (N_TEXTS, 6)
    assert selector.get_feature_names_out(names).tolist() == sorted(COMMON)
    assert selector.noisy_weights_.shape == (6,)
    dense = DPVocabularySelector(epsilon=2.0).fit(counts.toarray())
    np.testing.assert_array_equal(dense.support_, selector.support_)


def test_presence_is_what_counts(counts):
    """Weights of per-document vectorizers, of any size and sign, and stored zeros."""
    scaled = sp.csr_array(counts.astype(float)) * -0.01
    scaled.data[:] = np.where(scaled.indices == 1, 0.0, scaled.data)
    before = scaled.copy()
    support = DPVocabularySelector(epsilon=2.0).fit(scaled).support_
    column = np.zeros(counts.shape[1], dtype=bool)
    column[1] = True
    frequent = np.asarray((counts > 0).sum(axis=0)).ravel() > 100
    np.testing.assert_array_equal(support, frequent & ~column)
    assert (scaled.data == before.data).all() and (scaled.indices == before.indices).all()


def test_after_a_hashing_vectorizer(texts):
    pipe = make_pipeline(HashingVectorizer(n_features=2**12), DPVocabularySelector(epsilon=3.0))
    assert pipe.fit_transform(texts).shape == (N_TEXTS, 6)


def test_repeated_entries_of_a_sparse_matrix_are_one_word():
    start, columns = np.arange(0, 801, 2), np.tile([0, 0], 400)
    X = sp.csr_matrix((np.ones(800), columns, start), shape=(400, 2))
    Y = sp.csr_matrix((np.ones(400), np.zeros(400, int), np.arange(401)), shape=(400, 2))
    with pytest.warns(PrivacyLeakWarning):
        found = [DPVocabularySelector(random_state=0).fit(Z).noisy_weights_ for Z in (X, Y)]
    np.testing.assert_array_equal(*found)
    assert X.nnz == 800


@pytest.mark.parametrize("mechanism", ["sieve", "policy_gaussian", "policy_laplace"])
def test_a_word_of_many_documents_of_one_user_stays_hidden(mechanism):
    texts = ["apple"] * 2000 + ["wolframite"] * 2000
    users = [*range(2000), *["Ann"] * 2000]
    vectorizer = DPCountVectorizer(epsilon=3.0, method=mechanism, cutoff=30.0)
    assert set(vectorizer.fit(texts).vocabulary_) == {"apple", "wolframite"}
    assert vectorizer.privacy_guarantee_.unit == "document"
    vectorizer.fit(texts, groups=[str(user) for user in users])
    assert set(vectorizer.vocabulary_) == {"apple"}
    assert vectorizer.privacy_guarantee_.unit == "user"
    assert vectorizer.privacy_guarantee_ == vectorizer.privacy_cost(groups=True)
    X = CountVectorizer().fit_transform(texts)
    assert DPVocabularySelector(epsilon=3.0).fit(X, groups=[str(u) for u in users]).support_.tolist() == [True, False]


def test_long_documents_take_part_with_some_words_only():
    X = np.ones((300, 50), dtype=int)
    few = DPVocabularySelector(epsilon=5.0, max_words_per_unit=2, method="truncated_geometric")
    with pytest.warns(PrivacyLeakWarning):
        few.set_params(random_state=0).fit(X)
    assert few.noisy_weights_.max() < 60  # each word in about 300 * 2 / 50 of the lists, not in 300


def test_without_noise_every_word_is_kept(texts):
    vectorizer = DPCountVectorizer(epsilon=float("inf")).fit(texts)
    assert set(vectorizer.vocabulary_) == {*COMMON, CANARY, "scheelite"}
    assert vectorizer.privacy_guarantee_.epsilon == float("inf")
    assert not hasattr(vectorizer, "noisy_weights_")  # they would be exact


def test_the_parameters_of_the_text_are_those_of_count_vectorizer(texts):
    options = {"ngram_range": (1, 2), "stop_words": ["plum"], "binary": True, "lowercase": False, "dtype": np.int32}
    X = DPCountVectorizer(epsilon=float("inf"), **options).fit_transform(texts)
    expected = CountVectorizer(**options).fit_transform(texts)
    assert (expected != X).nnz == 0 and X.dtype == np.int32
    chars = DPCountVectorizer(epsilon=float("inf"), analyzer="char").fit(texts)
    assert (
        chars.get_feature_names_out().tolist()
        == CountVectorizer(analyzer="char").fit(texts).get_feature_names_out().tolist()
    )
    assert DPCountVectorizer().build_analyzer()("Iron, zinc") == ["iron", "zinc"]
    own = DPCountVectorizer(epsilon=5.0, analyzer=str.split).fit(texts)
    assert set(own.vocabulary_) == set(COMMON)


def test_documents_are_read_one_at_a_time(texts):
    alive = []

    class Text(str):
        def __del__(self):
            alive.pop()

    def stream():
        for text in texts:
            alive.append(None)
            assert len(alive) <= 2  # the one that is read, and the one before
            yield Text(text)

    vectorizer = DPCountVectorizer(epsilon=5.0)
    X = vectorizer.fit_transform(stream)
    assert X.shape == (N_TEXTS, 6)
    assert vectorizer.fit(stream()).transform(stream()).shape == (N_TEXTS, 6)
    with pytest.raises(ValueError, match="raw_documents must be readable twice"):
        vectorizer.fit_transform(iter(texts))


def test_files_are_read(tmp_path, texts):
    paths = []
    for number, text in enumerate(texts[:400]):
        paths.append(tmp_path / f"{number}.txt")
        paths[-1].write_text(text)
    X = DPCountVectorizer(epsilon=5.0, input="filename").fit_transform(paths)
    assert X.shape == (400, 6)


# --- the guarantee, and what is charged --------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", PartitionPlan.METHODS)
def test_the_guarantee_is_known_before_the_fit(texts, mechanism):
    vectorizer = DPCountVectorizer(epsilon=5.0, delta=1e-6, method=mechanism, max_words_per_unit=6)
    cost = vectorizer.privacy_cost()
    guarantee = vectorizer.fit(texts).privacy_guarantee_
    assert guarantee == cost
    assert (guarantee.epsilon, guarantee.delta) == (5.0, 1e-6)
    assert (guarantee.unit, guarantee.adjacency, guarantee.status) == ("document", "add-remove", "proven")
    assert guarantee.epsilon_at(1e-6) <= 5.0
    assert guarantee.compose(PrivateCGSLDA(epsilon=5.0, delta=1e-6).privacy_cost()).epsilon < 10.0
    assert mechanism in str(guarantee)
    assert f"{N_TEXTS}" not in str(guarantee).replace(",", "")


def test_the_printed_item_frequency_warns_on_every_fit_and_claims_only(texts, counts):
    for _ in range(2):
        with pytest.warns(PrivacyLeakWarning, match="is the published form and not private") as caught:
            selector = PublishedItemFrequencySelector().fit(counts)
    assert selector.privacy_guarantee_.status == "claimed"
    assert "a hundred times" in selector.privacy_guarantee_.reason
    assert selector.privacy_guarantee_.event is None
    assert caught[0].filename == __file__
    assert selector.privacy_guarantee_ == selector.privacy_cost()
    with pytest.raises(ValueError, match="'method' parameter of DPVocabularySelector must be"):
        DPVocabularySelector(method="item_frequency_published").privacy_cost()


def test_the_columns_of_a_matrix_are_not_covered():
    text = str(DPVocabularySelector().privacy_cost())
    assert "n_features_in_" in text and "unless the columns are public" in re.sub(r"\s+", " ", text)
    assert "n_features_in_" not in str(DPCountVectorizer().privacy_cost())


def test_a_short_budget_refuses_before_a_document_is_read():
    def stream():
        raise AssertionError("a document was read")
        yield

    with PrivacyAccountant(epsilon=1.0, delta=1e-4) as accountant:
        with pytest.raises(BudgetExceededError):
            DPCountVectorizer(epsilon=2.0).fit(stream())
        with pytest.raises(BudgetExceededError):
            DPVocabularySelector(epsilon=2.0).fit(None)
        assert accountant.ledger == ()


def test_fits_are_charged_and_public_words_are_free(texts, counts):
    with PrivacyAccountant(epsilon=6.0, delta=1e-4, rule="basic") as accountant:
        DPCountVectorizer(epsilon=2.0).fit(texts)
        DPVocabularySelector(epsilon=2.0).fit(counts)
        assert [entry.guarantee.epsilon for entry in accountant.ledger] == [2.0, 2.0]
        DPCountVectorizer(public_vocabulary=COMMON).fit(texts)
        DPVocabularySelector(public_vocabulary=[0, 1]).fit(counts)
        assert len(accountant.ledger) == 2
        with pytest.raises(ValueError, match="No word was used"):
            DPCountVectorizer(epsilon=0.5).fit(["nothing"])
        assert len(accountant.ledger) == 3  # that nothing was released is an answer too


def test_public_words_ask_no_ledger(counts):
    with PrivacyAccountant(epsilon=1.0, unit="user") as accountant:
        DPVocabularySelector(public_vocabulary=[0]).fit(counts)
    assert accountant.ledger == ()


def test_an_integer_seed_warns_on_every_fit_and_repeats(texts):
    found = []
    for _ in range(2):
        with pytest.warns(PrivacyLeakWarning, match="random_state=3") as caught:
            found.append(DPCountVectorizer(epsilon=3.0, random_state=3).fit(texts))
        assert caught[0].filename == __file__
    np.testing.assert_array_equal(found[0].noisy_weights_, found[1].noisy_weights_)
    assert any("seed" in assumption for assumption in found[0].privacy_guarantee_.assumptions)
    fresh = DPCountVectorizer(epsilon=3.0).fit(texts)
    assert not np.array_equal(fresh.noisy_weights_, found[0].noisy_weights_)


# --- what is left ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["sieve", "policy_gaussian", "item_frequency"])
def test_no_other_word_is_in_any_byte_of_the_vectorizer(texts, mechanism):
    vectorizer = DPCountVectorizer(epsilon=3.0, method=mechanism)
    X = vectorizer.fit_transform(texts)
    vectorizer.transform(texts)
    stored = pickle.dumps(vectorizer)
    for word in (CANARY, "scheelite"):
        assert word.encode() not in stored
    assert set(vars(vectorizer)) - set(vectorizer.get_params()) == {
        "vocabulary_",
        "noisy_weights_",
        "privacy_guarantee_",
        "_fitted_parameters",
    }
    assert not {N_TEXTS, int(X.sum()), int(X.nnz)} & set(values(vars(vectorizer)))
    numbers = {argument for _, argument, _ in pickletools.genops(stored) if isinstance(argument, int)}
    assert not {N_TEXTS, int(X.sum()), int(X.nnz)} & numbers
    plain = pickle.dumps(CountVectorizer().fit(texts))
    assert CANARY.encode() in plain
    copy = pickle.loads(stored)
    assert (copy.transform(texts) != X).nnz == 0


def values(thing):
    """Yield every number within an object."""
    if isinstance(thing, dict):
        for key, value in thing.items():
            yield from values(key)
            yield from values(value)
    elif isinstance(thing, (list, tuple)):
        for item in thing:
            yield from values(item)
    elif isinstance(thing, np.ndarray):
        yield from thing.ravel().tolist()
    elif isinstance(thing, (int, float, np.number)):
        yield thing


# --- a cap on words, and n-grams by levels -------------------------------------------------------------


def test_a_cap_breaks_ties_by_the_word_and_not_by_the_order_of_documents():
    """Without noise all weights tie: one document in front must not decide which of them stays."""
    words = [f"word{chr(97 + i)}" for i in range(8)]
    texts = [" ".join(words)] * 60
    for order in (words, words[::-1], words[3:] + words[:3]):
        vectorizer = DPCountVectorizer(epsilon=np.inf, max_words=3).fit([" ".join(order), *texts])
        assert list(vectorizer.vocabulary_) == words[:3]
    counted = DPCountVectorizer(method="truncated_geometric", epsilon=900.0, max_words_per_unit=8, max_words=3)
    assert counted.fit_transform(texts).shape[1] == 3 == len(counted.noisy_weights_)
    selector = DPVocabularySelector(epsilon=np.inf, max_words=3).fit(np.ones((60, 8)))
    assert np.flatnonzero(selector.support_).tolist() == [0, 1, 2]


def test_a_cap_keeps_early_rounds_then_large_weights_then_first_words():
    vectorizer = DPCountVectorizer(max_words=3)
    names, weights, rounds = ["e", "d", "c", "b", "a"], np.array([5.0, 9.0, 5.0, 2.0, 5.0]), [1, 1, 1, 0, 2]
    assert [names[i] for i in vectorizer._heaviest(names, weights, rounds)] == ["d", "c", "b"]
    assert vectorizer.set_params(max_words=None)._heaviest(names, weights, rounds).tolist() == [0, 1, 2, 3, 4]


def test_a_cap_keeps_the_most_frequent_words():
    rng = np.random.default_rng(1)
    texts = [" ".join(f"w{j:02d}" for j in np.flatnonzero(rng.random(30) < 0.9 ** np.arange(30))) for _ in range(3000)]
    vectorizer = DPCountVectorizer(epsilon=5.0, max_words=10).fit(texts)
    assert sum(int(word[1:]) < 12 for word in vectorizer.vocabulary_) >= 9
    assert vectorizer.privacy_guarantee_ == DPCountVectorizer(epsilon=5.0).fit(texts).privacy_guarantee_


def all_ngrams(texts, longest, released=None):
    """Return the units' n-grams of released n-grams, level by level, the slow way."""
    found = {}
    for n in range(2, longest + 1):
        for text in texts:
            tokens = text.split()
            for i in range(len(tokens) - n + 1):
                gram = tokens[i : i + n]
                if " ".join(gram[1:]) in released and " ".join(gram[:-1]) in released:
                    found[" ".join(gram)] = found.get(" ".join(gram), 0) + 1
    return found


def test_levels_have_the_ngrams_of_released_ones_only():
    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(["aa", "bb", "cc", "dd"], rng.integers(0, 9))) for _ in range(40)]
    tokens = Tokens(read_texts(texts, CountVectorizer(tokenizer=str.split, token_pattern=None)))
    assert tokens.counts().sum() == sum(len(text.split()) for text in texts)
    released = {"aa", "cc", "dd"}
    tokens.ascend(np.flatnonzero([name in released for name in tokens.names]))
    for longest in (2, 3, 4):
        expected = {gram: n for gram, n in all_ngrams(texts, longest, released).items() if len(gram.split()) == longest}
        totals = np.asarray(tokens.counts().sum(axis=0)).ravel()
        assert dict(zip(tokens.names, totals.tolist(), strict=True)) == expected
        assert tokens.counts().shape == (40, len(expected))
        for row, text in zip(tokens.counts().toarray(), texts, strict=True):
            assert all(
                (f" {text} ".find(f" {name} ") >= 0) == (n > 0) for name, n in zip(tokens.names, row, strict=True)
            )
        released |= (kept := {name for name in tokens.names if rng.random() < 0.7})
        tokens.ascend(np.flatnonzero([name in kept for name in tokens.names]))
    tokens.ascend(np.array([], dtype=int))
    assert tokens.names == [] and tokens.counts().shape == (40, 0)


@pytest.mark.parametrize("least", [1, 2, 3])
def test_ngrams_are_selected_by_levels_for_one_guarantee(least):
    texts = ["big red apple tree", "big red plum tree", "old iron gate big red apple"] * 700 + ["my red secret name"]
    vectorizer = DPCountVectorizer(epsilon=4.0, ngram_range=(least, 3))
    X = vectorizer.fit_transform(texts)
    plain = CountVectorizer(ngram_range=(least, 3), vocabulary=list(vectorizer.vocabulary_)).transform(texts)
    assert (plain != X).nnz == 0
    lengths = {len(word.split()) for word in vectorizer.vocabulary_}
    assert lengths == set(range(least, 4)) and not any("secret" in word for word in vectorizer.vocabulary_)
    assert "big red apple" in vectorizer.vocabulary_ and len(vectorizer.noisy_weights_) == X.shape[1]
    guarantee = vectorizer.privacy_guarantee_
    assert guarantee == vectorizer.privacy_cost() and (guarantee.epsilon, guarantee.delta) == (4.0, 1e-5)
    assert "n-grams of up to 3 words by levels" in guarantee.mechanism
    words = DPCountVectorizer(epsilon=4.0).privacy_cost()
    assert guarantee.event == words.event and guarantee.event_delta == pytest.approx(words.event_delta)


def test_levels_cost_together_what_one_selection_costs():
    whole = plan_partition("sieve", 1.0, 1e-5, 50, 3.0)
    plans = [plan_partition("sieve", 1.0, 1e-5, 50, 3.0, None, part) for part in level_parts(3)]
    precision = sum(sum((plan.grid / scale) ** 2 for scale in plan.scales) for plan in plans)
    assert precision <= whole.event.noise_multiplier**-2 <= precision * (1 + 1e-9)
    assert sum(plan.event_delta for plan in plans) == pytest.approx(whole.event_delta)
    for plan in plans:
        assert max(plan.new_word_delta(n) for n in (1, 2, 7, 50)) <= plan.event_delta


def test_ngrams_of_other_mechanisms_are_words():
    texts = ["big red apple", "big red plum"] * 500
    for options in ({"method": "policy_gaussian"}, {"analyzer": "char"}):
        vectorizer = DPCountVectorizer(epsilon=9.0, ngram_range=(2, 2), cutoff=30.0, **options).fit(texts)
        assert vectorizer._n_levels == 1 and ("bi" if "analyzer" in options else "big red") in vectorizer.vocabulary_


@pytest.mark.parametrize("least", [1, 2])
def test_ngrams_that_read_alike_are_one_column(least):
    """ "kk ll" + "mm", "kk" + "ll mm" and, from other levels, "kk" + "ll": a tokenizer may give words with spaces."""
    texts = ["kk ll|mm|kk|ll mm|kk|ll"] * 3000
    vectorizer = DPCountVectorizer(5.0, ngram_range=(least, 3), tokenizer=lambda text: text.split("|"))
    X = vectorizer.fit_transform(texts)
    assert "kk ll mm" in vectorizer.vocabulary_
    assert list(vectorizer.vocabulary_.values()) == list(range(X.shape[1]))
    assert len(vectorizer.noisy_weights_) == X.shape[1]


@pytest.mark.parametrize("lengths", [(0, 0), (0, 1), (2, 1), (1,), (1.0, 2.0), (1, 2, 3)])
def test_lengths_of_ngrams_are_checked_before_anything_is_spent(lengths):
    vectorizer = DPCountVectorizer(ngram_range=lengths)
    with (
        PrivacyAccountant(9.0, 1e-4) as accountant,
        pytest.raises(ValueError, match="ngram_range must be two integers"),
    ):
        vectorizer.fit(["iron zinc"] * 900)
    assert not accountant.ledger
    with pytest.raises(ValueError, match="ngram_range must be two integers"):
        vectorizer.privacy_cost()


def test_what_words_need_counts_the_part_of_their_level():
    """The epsilon that the error names would release them, by the plan of the first level."""
    with pytest.raises(ValueError, match="No word was used") as caught:
        DPCountVectorizer(1.0, ngram_range=(1, 3)).fit(["iron"] * 3)
    named = re.findall(r"Words that (\d+) of these use need about epsilon=(\d+(?:\.\d+)?)", str(caught.value))
    assert named
    for n_units, epsilon in named:
        part = level_parts(3)[0]
        plan = plan_partition("sieve", 1.02 * float(epsilon), 1e-5, 200, 3.0, None, part)
        assert plan.units_needed(10) <= int(n_units)


@pytest.mark.parametrize(
    ("mechanism", "most"), [("mad", "4,194,304"), ("policy_gaussian", "16,777,216"), ("sieve", None)]
)
def test_a_guarantee_that_refuses_many_units_says_so(mechanism, most):
    told = [text for text in DPVocabularySelector(method=mechanism).privacy_cost().assumptions if "refused" in text]
    assert told == ([] if most is None else [f"that there are at most {most} documents may be known: more are refused"])


def test_no_ngram_is_an_error_that_says_so():
    texts = [f"apple pear{i}" for i in range(900)]
    with pytest.raises(ValueError, match="No n-gram of 2 words or more was used by enough"):
        DPCountVectorizer(epsilon=2.0, ngram_range=(2, 2)).fit(texts)


@pytest.mark.parametrize("ngrams", [(1, 1), (1, 2)])
def test_long_words_and_long_documents_are_bounded(ngrams):
    """A document of 200,000 words lists a few; a word of a megabyte is none."""
    long = " ".join(f"x{i}" for i in range(200_000)) + " " + "y" * 1_000_000
    texts = ["apple pear"] * 800 + [long]
    vectorizer = DPCountVectorizer(epsilon=4.0, max_words_per_unit=20, ngram_range=ngrams).fit(texts)
    assert set(vectorizer.vocabulary_) == {"apple", "pear"} | ({"apple pear"} if ngrams[1] > 1 else set())
    assert len(pickle.dumps(vectorizer)) < 10_000
    frequent = ["z" * 1001] * 800
    with pytest.raises(ValueError, match="No word was used by enough"):
        DPCountVectorizer(epsilon=9.0).fit(frequent)


def test_columns_do_not_tell_the_order_of_appearance():
    first = DPCountVectorizer(epsilon=5.0).fit(["zinc apple"] * 500 + ["apple zinc"] * 500)
    assert list(first.vocabulary_.items()) == [("apple", 0), ("zinc", 1)]


def test_the_selector_keeps_what_it_says_and_no_histogram(counts):
    selector = DPVocabularySelector(epsilon=3.0).fit(counts)
    fitted = set(vars(selector)) - set(selector.get_params())
    assert fitted == {"support_", "noisy_weights_", "privacy_guarantee_", "n_features_in_", "_fitted_parameters"}
    used = np.asarray((counts > 0).sum(axis=0)).ravel()
    assert not np.isin(selector.noisy_weights_, used).any()


def test_a_failed_or_public_refit_leaves_no_weights_of_other_data(texts):
    vectorizer = DPCountVectorizer(epsilon=3.0).fit(texts)
    vectorizer.set_params(public_vocabulary=["apple"]).fit(texts)
    assert not hasattr(vectorizer, "noisy_weights_")
    assert vectorizer.privacy_guarantee_.epsilon == 0


def test_an_interrupted_fit_leaves_nothing(texts):
    def stream():
        yield from texts[:50]
        raise KeyboardInterrupt

    vectorizer = DPCountVectorizer(epsilon=3.0)
    with pytest.raises(KeyboardInterrupt):
        vectorizer.fit(stream())
    assert set(vars(vectorizer)) == set(vectorizer.get_params())


# --- public words ---------------------------------------------------------------------------------------


def test_public_words_in_any_order(texts):
    vectorizer = DPCountVectorizer(public_vocabulary=["zinc", "apple", "absent"])
    assert vectorizer.fit(None).get_feature_names_out().tolist() == ["absent", "apple", "zinc"]
    assert vectorizer.transform(texts[:3]).shape == (3, 3)
    guarantee = vectorizer.privacy_guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (0, 0)
    model = PrivateCGSLDA(epsilon=2.0).privacy_cost()
    assert guarantee.compose(model).epsilon <= 2.0
    with pytest.raises(ValueError, match="name each word once; got 1 of them more than once"):
        DPCountVectorizer(public_vocabulary=["zinc", "apple", "zinc"]).fit(texts)
    for wrong in ([], [3, 4]):
        with pytest.raises(ValueError, match="public_vocabulary must be a list of words"):
            DPCountVectorizer(public_vocabulary=wrong).fit(texts)


@pytest.mark.parametrize(
    "step",
    [
        DPCountVectorizer(public_vocabulary=["zinc"]),
        DPVocabularySelector(public_vocabulary=[1]),
        TextEmbedder(lambda texts: np.ones((len(texts), 2)), DPCountVectorizer(public_vocabulary=["zinc"])),
    ],
)
def test_that_a_public_vocabulary_is_public_is_an_assumption(step):
    """Outside of a pipeline, too: a list that was made of the documents costs more than nothing."""
    line = "public_vocabulary was chosen without looking at the documents"
    assert step.privacy_cost().assumptions == (line,) and step.privacy_cost().epsilon == 0
    if not isinstance(step, DPVocabularySelector):
        steps = make_pipeline(step, VIPSLDA(2) if isinstance(step, DPCountVectorizer) else EmbeddingTopics(2))
        assert [text for text in privacy_guarantee(steps).assumptions if "public_vocabulary" in text] == [line]


def test_a_public_vocabulary_of_documents_is_refused(texts):
    secret = "ann owes bob 500"
    for words in (["zinc", secret], ["Zinc"], ["a"], [" zinc"]):
        with pytest.raises(ValueError, match="finds in no text") as error:
            DPCountVectorizer(public_vocabulary=words).fit(texts)
        assert secret not in str(error.value)
    for options, words in (
        ({"ngram_range": (1, 4)}, ["ann owes", "zinc"]),
        ({"lowercase": False}, ["Zinc"]),
        ({"analyzer": "char_wb", "ngram_range": (3, 3)}, [" zi", "inc", "nc "]),
        ({"analyzer": list}, ["ann owes"]),  # of documents that are lists of phrases
    ):
        DPCountVectorizer(public_vocabulary=words, **options).fit(texts)


def test_public_columns_by_number_and_by_name(counts):
    selector = DPVocabularySelector(public_vocabulary=[4, 0]).fit(counts)
    assert np.flatnonzero(selector.support_).tolist() == [0, 4]
    frame = pd.DataFrame(counts.toarray()[:, :3], columns=["a", "b", "c"])
    assert DPVocabularySelector(public_vocabulary=["c", "a"]).fit(frame).support_.tolist() == [True, False, True]
    for wrong, message in (
        ([1, 1], "name each word once"),
        ([8], "column numbers from 0 to 7"),
        (["a"], "For a list of words use DPCountVectorizer"),
        ([[1]], "must be a list of columns"),
        ([], "must be a list of columns"),
    ):
        with pytest.raises(ValueError, match=message):
            DPVocabularySelector(public_vocabulary=wrong).fit(counts)
    with pytest.raises(ValueError, match=r"names \['d'\], which are no columns"):
        DPVocabularySelector(public_vocabulary=["d"]).fit(frame)


# --- errors ---------------------------------------------------------------------------------------------


def test_an_empty_selection_says_which_epsilon_would_release_something():
    texts = [f"word{i % 50} other{i % 70}" for i in range(60)]
    with pytest.raises(ValueError, match="No word was used by enough documents") as error:
        DPCountVectorizer(epsilon=0.2).fit(texts)
    needed = int(
        re.search(r"used by about ([\d,]+) documents \(users\) of 10 words", str(error.value))[1].replace(",", "")
    )
    units, epsilon = re.search(
        r"Words that ([\d,]+) of these use need about epsilon=([\d.]+)\.", str(error.value)
    ).groups()
    with pytest.raises(ValueError, match="No word was used by enough documents") as other:
        DPCountVectorizer(epsilon=0.2).fit(["a completely different text"])
    assert str(other.value) == str(error.value)  # a function of the parameters alone
    vocabulary = [" ".join(f"w{j:02d}" for j in range(10))]
    DPCountVectorizer(epsilon=0.2).fit(vocabulary * (2 * needed))
    found = DPCountVectorizer(epsilon=2 * float(epsilon)).fit(vocabulary * int(units.replace(",", "")))
    assert len(found.vocabulary_) == 10


@pytest.mark.parametrize("estimator", [DPVocabularySelector, DPCountVectorizer])
@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"delta": 0.0},
        {"delta": 1.0},
        {"method": "greedy"},
        {"max_words_per_unit": 0},
        {"cutoff": -1.0},
        {"random_state": "seed"},
    ],
)
def test_parameters_are_checked(estimator, wrong, counts, texts):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"'?{name}'? (parameter|must)"):
        estimator(**wrong).fit(counts if estimator is DPVocabularySelector else texts)
    with pytest.raises(ValueError, match=name):
        estimator(**wrong).privacy_cost()


def test_a_selector_that_selects_nothing_is_fitted_where_warnings_are_errors():
    selector = DPVocabularySelector()
    with PrivacyAccountant(1.0, 1e-5) as ledger, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="No word was used by enough"):
            selector.fit(np.ones((5, 3), int))
    assert [entry.guarantee for entry in ledger.ledger] == [selector.privacy_guarantee_]
    assert selector.get_support().tolist() == [False] * 3


def test_a_selector_that_selects_nothing_has_no_columns_and_says_so():
    with (
        PrivacyAccountant(1.0, 1e-5) as ledger,
        pytest.warns(UserWarning, match="No word was used by enough") as caught,
    ):
        selector = DPVocabularySelector().fit(np.ones((5, 3), int))
    assert caught[0].filename == __file__ and "transform returns no columns" in str(caught[0].message)
    assert len(ledger.ledger) == 1 and selector.privacy_guarantee_ == selector.privacy_cost()
    assert selector.get_support().tolist() == [False] * 3 and selector.noisy_weights_.shape == (0,)
    with pytest.warns(UserWarning, match="No features were selected"):
        assert selector.transform(np.ones((5, 3), int)).shape == (5, 0)
    pipeline = make_pipeline(DPVocabularySelector(), PrivateCGSLDA(2, max_iter=2))
    with (
        PrivacyAccountant(9.0, 1e-4) as ledger,
        pytest.warns(UserWarning),
        pytest.raises(ValueError, match="0 feature"),
    ):
        pipeline.fit(np.ones((5, 3), int))
    assert len(ledger.ledger) == 1  # the topics are not paid for


def test_a_delta_too_small_says_what_to_do(counts):
    with pytest.raises(ValueError, match="Use public_vocabulary to spend nothing"):
        DPVocabularySelector(delta=1e-17).fit(counts)


def test_bad_data_are_refused(counts, texts):
    for X, message in (
        (np.array([[np.nan, 1.0]]), "NaN"),
        (np.array([[np.inf, 1.0]]), "infinity"),
        (np.zeros((0, 3)), "0 sample"),
    ):
        with pytest.raises(ValueError, match=message):
            DPVocabularySelector(epsilon=float("inf")).fit(X)
    with pytest.raises(ValueError, match="groups must have one entry a document"):
        DPVocabularySelector().fit(counts, groups=[1, 2])
    with pytest.raises(ValueError, match="groups has missing entries"):
        DPCountVectorizer().fit(["a"], groups=[None])
    with pytest.raises(ValueError, match="got one string"):
        DPCountVectorizer().fit("one text")
    with PrivacyAccountant(9.0, 1e-3) as ledger, pytest.raises(ValueError, match="there is no document"):
        DPCountVectorizer().fit([])
    assert ledger.ledger == ()
    with pytest.raises(ValueError, match="analyzer"):
        DPCountVectorizer(analyzer="sentence").fit(texts)
    for name in ("min_df", "max_df", "max_features", "vocabulary"):
        with pytest.raises(TypeError, match=name):
            DPCountVectorizer(**{name: 2})
    with pytest.raises(sklearn.exceptions.NotFittedError):
        DPCountVectorizer().transform(texts)


# --- in company -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_selector", [False, True])
def test_from_texts_to_topics(texts, with_selector):
    first = [("counts", CountVectorizer()), ("words", DPVocabularySelector(epsilon=3.0))]
    steps = first if with_selector else [("words", DPCountVectorizer(epsilon=3.0))]
    pipe = Pipeline([*steps, ("lda", PrivateCGSLDA(2, max_iter=3))]).fit(texts)
    assert pipe.transform(texts[:2]).shape == (2, 2)
    assert pipe[-1].topic_word_.shape == (2, 6)
    assert pipe[:-1].get_feature_names_out().tolist() == sorted(COMMON)
    if not with_selector:  # else its counts have no words
        assert pipe[-1].top_words(3).isin(COMMON).all(axis=None)
    assert pipe[-1].fit(np.ones((3, 2), int)).top_words(2).isin(["x0", "x1"]).all(axis=None)


def test_users_are_routed(texts):
    users = np.arange(N_TEXTS) // 2
    with sklearn.config_context(enable_metadata_routing=True):
        words = DPCountVectorizer(epsilon=5.0)
        words.set_fit_request(groups=True)
        lda = PrivateCGSLDA(2, max_iter=2).set_fit_request(groups=True)
        pipe = make_pipeline(words, lda).fit(texts, groups=users)
    assert [step.privacy_guarantee_.unit for step in (pipe[0], pipe[-1])] == ["user", "user"]
    pipe = make_pipeline(DPCountVectorizer(epsilon=5.0), PrivateCGSLDA(2, max_iter=2))
    pipe.fit(texts, dpcountvectorizer__groups=users, privatecgslda__groups=users)
    assert pipe[0].privacy_guarantee_.unit == "user"


def test_clone_and_gensim(texts):
    vectorizer = DPCountVectorizer(epsilon=3.0, ngram_range=(1, 2)).fit(texts)
    copy = clone(vectorizer)
    assert copy.get_params() == vectorizer.get_params() and not hasattr(copy, "vocabulary_")
    plain = DPCountVectorizer(epsilon=3.0).fit(texts)
    assert set(gensim_dictionary(plain).token2id) == set(COMMON)


def test_pandas_columns(counts):
    names = [*sorted({*COMMON, CANARY, "scheelite"})]
    frame = pd.DataFrame(counts.toarray(), columns=names)
    selector = DPVocabularySelector(epsilon=3.0).set_output(transform="pandas").fit(frame)
    assert list(selector.transform(frame).columns) == sorted(COMMON)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_statement_says_what_all_rounds_of_a_selection_are_worth(epsilon):
    """It is the noise of the one event that the check composes."""
    said = " ".join(str(DPVocabularySelector(epsilon=epsilon, delta=1e-6).privacy_cost()).split())
    (composed,) = re.findall(r"GaussianDpEvent\(([\d.]+)\), 1\)", said)
    assert f"all rounds together tell no more than one with noise of scale {float(composed):.4g}" in said
