"""The guarantee of a pipeline as a whole: steps composed, and everything that voids the guarantee refused."""

import math
import pickle
from functools import partial

import numpy as np
import pytest
from internals import release_guarantee as releases
from scipy.stats import norm
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, SelectorMixin
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, StandardScaler

from skdplda import (
    HDPLDA,
    PCTD,
    VIPSLDA,
    DPCountVectorizer,
    DPVocabularySelector,
    IncompatibleGuaranteeError,
    LocalPrivateLDA,
    PrivacyGuarantee,
    PrivateCGSLDA,
    load_released,
    make_fdptm_pipeline,
    release,
)
from skdplda.local import LocalRandomizer
from skdplda.privacy import gaussian_event
from skdplda.published import PriTopLDA
from skdplda.semantics import SemanticUnitVectorizer

PUBLIC = ["pear", "plum", "zinc", "iron"]
TEXTS = ["pear plum pear", "zinc iron"] * 100
COLUMNS = DPVocabularySelector().privacy_cost().not_covered[0]


class Selector(SelectorMixin, BaseEstimator):
    """Keeps every word: what a private selector looks like from outside."""

    def __init__(self, unit="document", event=True):
        self.unit = unit
        self.event = event

    def fit(self, X, y=None, groups=None):
        self.n_words_ = X.shape[1]
        self.privacy_guarantee_ = self.privacy_cost()
        return self

    def _get_support_mask(self):
        return np.ones(self.n_words_, dtype=bool)

    def privacy_cost(self, *, groups=False):
        return PrivacyGuarantee(
            epsilon=1.0,
            delta=5e-6,
            unit="user" if groups else self.unit,
            status="proven",
            reference="a theorem",
            released=("the selected words",),
            not_covered=(COLUMNS,),
            event=gaussian_event(4.1) if self.event else None,
            event_delta=2.5e-6 if self.event else 0.0,
        )


class Stemmer(CountVectorizer):
    """Nobody knows what it does."""


privacy_guarantee = partial(releases.privacy_guarantee, trusted=(Selector,))  # of this file only


def lda(**parameters):
    return PrivateCGSLDA(2, **{"epsilon": 2.0, "delta": 5e-6, "max_iter": 3, **parameters})


def test_the_steps_are_accounted_jointly():
    selector, model = Selector(), lda()
    total = privacy_guarantee(make_pipeline(CountVectorizer(), selector, model))
    assert total.delta == 1e-5
    assert total.epsilon == selector.privacy_cost().compose(model.privacy_cost()).epsilon
    assert total.epsilon < 2.3  # Theorem 4.1 alone says 3
    basic = privacy_guarantee(make_pipeline(CountVectorizer(), Selector(event=False), lda()))
    assert basic.epsilon == pytest.approx(3.0, rel=1e-6)
    assert basic.epsilon <= 3.0


def test_before_and_after_the_fit():
    pipeline = make_pipeline(CountVectorizer(), Selector(), lda())
    before = privacy_guarantee(pipeline)
    after = privacy_guarantee(pipeline.fit(TEXTS))
    assert after == before
    pipeline.set_params(privatecgslda__epsilon=0.1)  # what was fitted was fitted
    assert privacy_guarantee(pipeline) == after
    with pytest.raises(ValueError, match=r"\['selector'\] are fitted and \['privatecgslda'\] are not"):
        privacy_guarantee(Pipeline([*pipeline.steps[:2], ("privatecgslda", lda())]))


def test_the_pipeline_answers_what_its_steps_leave_open():
    model = lda().privacy_cost()
    assert any(item.startswith("the vocabulary") for item in model.not_covered)
    selected = privacy_guarantee(make_pipeline(CountVectorizer(), Selector(), lda()))
    public = privacy_guarantee(make_pipeline(CountVectorizer(vocabulary=PUBLIC), lda()))
    for total in (selected, public):
        assert not any(item.startswith(("the vocabulary", "number, names")) for item in total.not_covered)
        assert set(model.not_covered[1:]) < set(total.not_covered) | {None}
    assert "the selected words" in selected.released
    assert any("every word of the documents" in item for item in selected.not_covered)
    assert "vocabulary of 'countvectorizer' was chosen without looking at the documents" in public.assumptions


def test_columns_of_unknown_origin_stay_open():
    total = privacy_guarantee(make_pipeline(Selector(), lda()))
    assert COLUMNS in total.not_covered
    assert any(item.startswith("the vocabulary") for item in total.not_covered)
    assert privacy_guarantee(lda()) == lda().privacy_cost()


@pytest.mark.parametrize(
    "first",
    [
        [CountVectorizer(vocabulary=PUBLIC, min_df=5, max_features=3)],  # limits do nothing beside a vocabulary
        [HashingVectorizer(n_features=8, norm=None, alternate_sign=False)],
        [CountVectorizer(min_df=0.0, max_df=1.0), Selector()],
        [CountVectorizer(ngram_range=(1, 2)), Binarizer(), Selector()],
        ["passthrough", Pipeline([("a", CountVectorizer()), ("b", Selector())]), None],
    ],
)
def test_what_is_accepted(first):
    pipeline = make_pipeline(*first, lda())
    before = privacy_guarantee(pipeline)
    assert before.status == "proven"
    assert privacy_guarantee(pipeline.fit(TEXTS)) == before
    learned = any(type(s) is CountVectorizer and s.vocabulary is None for _, s in releases.flat_steps(pipeline))
    assert any("learns its words in the same fit" in item for item in before.assumptions) == learned


@pytest.mark.parametrize("fitted", [False, True])
def test_what_a_vectorizer_was_fitted_with_is_an_assumption(fitted):
    """It keeps no record: the statement says which settings it is about, and others void it."""
    pipeline = make_pipeline(CountVectorizer(), DPVocabularySelector(4.0, delta=5e-6), lda())
    pipeline = pipeline.fit(TEXTS) if fitted else pipeline
    told = privacy_guarantee(pipeline)
    assert told.status == "proven" and told.reason == ""
    (said,) = (item for item in told.assumptions if item.startswith("'countvectorizer' (CountVectorizer) learns its"))
    assert "in the same fit as the selector after it" in said
    assert "min_df=1, max_df=1.0, max_features=None" in said
    for limit in ({"min_df": 5}, {"max_df": 0.9}, {"max_features": 3}):
        pipeline.set_params(**{f"countvectorizer__{name}": value for name, value in limit.items()})
        with pytest.raises(ValueError, match=r"voids the guarantee: .* keeps or drops a word for all documents"):
            privacy_guarantee(pipeline)
        pipeline.set_params(countvectorizer__min_df=1, countvectorizer__max_df=1.0, countvectorizer__max_features=None)
    assert not any(
        "same fit" in item for item in privacy_guarantee(make_pipeline(DPCountVectorizer(), lda())).assumptions
    )


HIDDEN = ["aardvark", "mycanary", "zzz"]  # words of one document each: before, between and after those of all


def with_hidden(texts):
    return [*(f"{text} {word}" for text, word in zip(texts, HIDDEN, strict=False)), *texts[len(HIDDEN) :]]


def test_a_plain_pipeline_is_released_with_its_covered_words_only(tmp_path):
    model = VIPSLDA(2, epsilon=4.0, delta=5e-6)
    pipeline = make_pipeline(CountVectorizer(), DPVocabularySelector(4.0, delta=5e-6), model)
    planned = privacy_guarantee(pipeline)
    pipeline.fit(with_hidden(TEXTS * 5))
    assert set(HIDDEN) < set(pipeline[0].vocabulary_)
    released = release(pipeline)
    assert released.privacy_guarantee_ == privacy_guarantee(pipeline) == planned
    assert released.vocabulary_.tolist() == sorted(PUBLIC)  # in the order of the alphabet, whatever came first
    np.testing.assert_array_equal(pipeline[:-1].get_feature_names_out(), released.vocabulary_)
    released.save(tmp_path / "topics.zip")
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir()) + pickle.dumps(released)
    for word in HIDDEN:
        assert word.encode() not in content
    np.testing.assert_array_equal(
        load_released(tmp_path / "topics.zip").transform(["pear zzz"]), pipeline.transform(["pear zzz"])
    )
    pipeline[0].fit(TEXTS)  # columns are others now, and the selector's places mean nothing
    with pytest.raises(ValueError, match="length"):
        release(pipeline)


def test_names_of_counts_are_learned_as_words_are():
    """DictVectorizer, the other one that learns without counting documents."""
    rows = [{"pear": 2, "plum": 1}, {"zinc": 1, "iron": 3}] * 300
    rows[0] = {"mycanary": 1, **rows[0]}
    pipeline = make_pipeline(DictVectorizer(), DPVocabularySelector(4.0, delta=5e-6), lda(epsilon=4.0))
    told = privacy_guarantee(pipeline.fit(rows))
    assert told.status == "proven"
    assert any("(DictVectorizer) learns its words" in item and "sort=True" in item for item in told.assumptions)
    assert any("every word of the documents" in item for item in told.not_covered)
    assert release(pipeline).vocabulary_.tolist() == sorted(PUBLIC)
    with pytest.raises(ValueError, match="sort=False puts words into the order in which documents use them"):
        privacy_guarantee(pipeline.set_params(dictvectorizer__sort=False))
    with pytest.raises(ValueError, match="every word of the documents"):
        privacy_guarantee(make_pipeline(DictVectorizer(), lda()))


@pytest.mark.parametrize("vectorizer", [TfidfVectorizer(use_idf=False, norm=None), SemanticUnitVectorizer()])
def test_other_vectorizers_that_learn_words_stay_refused(vectorizer):
    with pytest.raises(ValueError, match=r"document frequencies|every word of the documents"):
        privacy_guarantee(make_pipeline(vectorizer, DPVocabularySelector(), lda()))


def test_a_learned_vocabulary_does_not_become_public_by_a_parameter():
    pipeline = make_pipeline(CountVectorizer(), lda()).fit([*TEXTS, "canary"])
    pipeline.set_params(countvectorizer__vocabulary=dict(pipeline[0].vocabulary_))
    for ask in (privacy_guarantee, release):
        with pytest.raises(ValueError, match="not fitted with the words that it now has"):
            ask(pipeline)
    public = make_pipeline(CountVectorizer(vocabulary=PUBLIC), lda()).fit(TEXTS)
    public.set_params(countvectorizer__vocabulary=["other", *PUBLIC[1:]])
    with pytest.raises(ValueError, match="not fitted with the words that it now has"):
        privacy_guarantee(public)
    units = make_pipeline(SemanticUnitVectorizer(), PCTD(2, max_iter=2)).fit(TEXTS)
    units.set_params(semanticunitvectorizer__vocabulary=list(PUBLIC))
    with pytest.raises(ValueError, match="every word of the documents"):
        privacy_guarantee(units)


class Boaster(Selector):
    """Says that it costs nothing."""

    def privacy_cost(self, *, groups=False):
        return PrivacyGuarantee(epsilon=0.0, status="proven", event=gaussian_event(math.inf))


class Heir(PrivateCGSLDA):
    """Could do anything in its fit."""


def test_a_class_of_nobody_is_not_believed():
    for steps in ([Boaster(), lda()], [Heir(2, max_iter=2)], [Selector(), lda()]):
        guarantee = releases.privacy_guarantee(make_pipeline(CountVectorizer(vocabulary=PUBLIC), *steps))
        assert guarantee.status == "claimed"
        assert "is not of this package" in guarantee.reason
    told = make_pipeline(CountVectorizer(vocabulary=PUBLIC), Heir(2, max_iter=2))
    assert releases.privacy_guarantee(told, trusted=(Heir,)).status == "proven"


def test_the_card_tells_the_parameters_of_the_fit():
    pipeline = make_pipeline(CountVectorizer(vocabulary=PUBLIC), lda()).fit(TEXTS)
    before = release(pipeline)
    pipeline.set_params(privatecgslda__epsilon=0.01, privatecgslda__max_iter=99)
    after = release(pipeline)
    assert after.details_ == before.details_
    assert after.details_["parameters"]["epsilon"] == 2.0
    assert after.privacy_guarantee_ == before.privacy_guarantee_


@pytest.mark.parametrize(
    "union",
    [
        FeatureUnion([("a", lda()), ("b", make_pipeline(lda()))]),
        ColumnTransformer([("a", lda(), [0]), ("b", FeatureUnion([("c", lda())]), [1])]),
    ],
)
def test_private_steps_side_by_side_are_refused_for_the_true_reason(union):
    with pytest.raises(ValueError, match=r"private steps side by side \('a', .*compose what privacy_guarantee says"):
        privacy_guarantee(make_pipeline(CountVectorizer(vocabulary=PUBLIC), union, lda()))
    with pytest.raises(ValueError, match="private steps side by side"):
        privacy_guarantee(union)


@pytest.mark.parametrize(
    ("steps", "match"),
    [
        (
            [CountVectorizer()],
            "'countvectorizer' .CountVectorizer. voids .* every word of the documents. Give it public",
        ),
        ([CountVectorizer(min_df=2), Selector()], "min_df=2 keeps or drops a word"),
        ([CountVectorizer(min_df=0.5), Selector()], "min_df=0.5 keeps"),
        ([CountVectorizer(min_df=1.0), Selector()], "min_df=1.0 keeps"),
        ([CountVectorizer(max_df=0.9), Selector()], "max_df=0.9 keeps"),
        ([CountVectorizer(max_df=1), Selector()], "max_df=1 keeps"),  # words of a single document
        ([CountVectorizer(max_features=100), Selector()], "max_features=100 keeps .*DPVocabularySelector"),
        (
            [CountVectorizer(), DPVocabularySelector(public_vocabulary=[0, 1])],
            "'dpvocabularyselector' .* which words these are depends on the documents",
        ),
        ([CountVectorizer(), Binarizer()], "every word of the documents"),
        ([CountVectorizer(), SelectKBest()], "every word of the documents"),
        ([CountVectorizer(), Selector(), TfidfTransformer()], "'tfidftransformer' .* document frequencies"),
        ([TfidfVectorizer(vocabulary=PUBLIC)], "document frequencies of all documents.* Use CountVectorizer"),
        ([TfidfVectorizer()], "document frequencies"),
        ([FunctionTransformer(np.log1p)], "nothing says that its function treats each document on its own"),
        ([StandardScaler(with_mean=False)], "it is not private, and nothing says that it treats each"),
        ([Stemmer(vocabulary=PUBLIC)], "'stemmer' .* nothing says"),
        ([make_pipeline(CountVectorizer(), SelectKBest())], "'pipeline__countvectorizer'"),
    ],
)
def test_what_voids_the_guarantee(steps, match):
    with pytest.raises(ValueError, match=match):
        privacy_guarantee(make_pipeline(*steps, lda()))


def test_what_comes_after_the_model_counts_too():
    with pytest.raises(ValueError, match=r"'standardscaler' .* voids"):
        privacy_guarantee(make_pipeline(CountVectorizer(vocabulary=PUBLIC), lda(), StandardScaler()))
    with pytest.raises(ValueError, match=r"'latentdirichletallocation' .* voids"):
        privacy_guarantee(make_pipeline(CountVectorizer(), Selector(), LatentDirichletAllocation()))
    with pytest.raises(ValueError, match="every word of the documents"):
        privacy_guarantee(make_pipeline(Selector(), CountVectorizer()))


def test_nothing_private_has_no_guarantee():
    for thing in (make_pipeline(CountVectorizer(), LatentDirichletAllocation()), LatentDirichletAllocation(), None):
        with pytest.raises(ValueError, match="none of its steps is private"):
            privacy_guarantee(thing)


def test_a_search_that_is_not_private_says_what_it_costs():
    for inner in (lda(), make_pipeline(CountVectorizer(vocabulary=PUBLIC), lda())):
        with pytest.raises(ValueError, match=r"GridSearchCV has no guarantee: it fits clones .* Use PrivateSearchCV"):
            privacy_guarantee(GridSearchCV(inner, {}))
    with pytest.raises(ValueError, match="none of its steps is private"):
        privacy_guarantee(GridSearchCV(LatentDirichletAllocation(), {}))


def test_mixed_units_are_refused():
    with pytest.raises(IncompatibleGuaranteeError, match=r"'selector': user, .* 'privatecgslda': document, .* groups"):
        privacy_guarantee(make_pipeline(CountVectorizer(), Selector(unit="user"), lda()))
    pipeline = make_pipeline(CountVectorizer(), Selector(), lda())
    assert privacy_guarantee(pipeline, groups=True).unit == "user"
    pipeline.fit(TEXTS, privatecgslda__groups=np.arange(200) // 2)
    with pytest.raises(IncompatibleGuaranteeError, match="do not protect the same thing"):
        privacy_guarantee(pipeline)


def test_that_groups_are_the_same_is_an_assumption():
    pipeline = make_pipeline(DPCountVectorizer(), lda())
    told = "the steps 'dpcountvectorizer' and 'privatecgslda' were given the same groups"
    assert told in privacy_guarantee(pipeline, groups=True).assumptions
    assert told not in privacy_guarantee(pipeline).assumptions


def test_the_weakest_status_is_that_of_the_pipeline():
    pipeline = make_pipeline(CountVectorizer(), Selector(), PriTopLDA())
    assert privacy_guarantee(pipeline).status == "claimed"
    assert np.isinf(privacy_guarantee(make_pipeline(CountVectorizer(), Selector(), lda(epsilon=np.inf))).epsilon)


def test_functions_of_the_user_are_assumptions():
    vectorizer = CountVectorizer(vocabulary=PUBLIC, tokenizer=str.split, stop_words=["and"])
    found = privacy_guarantee(make_pipeline(vectorizer, lda())).assumptions
    assert "tokenizer of 'countvectorizer' treats each document on its own" in found
    assert "stop_words of 'countvectorizer' was chosen without looking at the documents" in found
    builtin = CountVectorizer(vocabulary=["a", "b"], stop_words="english", analyzer="char", strip_accents="ascii")
    assert not any(
        "stop_words" in item or "own" in item for item in privacy_guarantee(make_pipeline(builtin, lda())).assumptions
    )


ROW = "17,ann,owes bob 500"  # of a file that was taken for a list of words


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(vocabulary=[*PUBLIC, ROW]),
        CountVectorizer(vocabulary={ROW: 0, PUBLIC[0]: 1}),
        CountVectorizer(vocabulary=[*PUBLIC, ROW], input="filename"),
        CountVectorizer(vocabulary=[*PUBLIC, "ann owes"]),
        CountVectorizer(vocabulary=["Ann"]),
        CountVectorizer(vocabulary=[*PUBLIC, "the"], stop_words="english"),
        DPCountVectorizer(public_vocabulary=[*PUBLIC, ROW]),
        SemanticUnitVectorizer(vocabulary=[*PUBLIC, ROW], skip_unknown=False),
    ],
)
def test_a_vocabulary_that_holds_documents_is_not_proven(vectorizer):
    model = PCTD(2) if isinstance(vectorizer, SemanticUnitVectorizer) else lda()
    with pytest.raises(ValueError, match=r"voids the guarantee: \w+ has .* entries .* finds in no text") as error:
        privacy_guarantee(make_pipeline(vectorizer, model))
    assert "bob" not in str(error.value) and "ann" not in str(error.value).lower().replace("cannot", "")


@pytest.mark.parametrize(
    "options",
    [
        {"vocabulary": ["new york", "york"], "ngram_range": (1, 2)},
        {"vocabulary": ["new york"], "ngram_range": (2, 2), "stop_words": "english"},
        {"vocabulary": ["abc", "b c"], "analyzer": "char", "ngram_range": (3, 3)},
        {"vocabulary": ["C++"], "lowercase": False, "token_pattern": r"\S+"},
        {"vocabulary": ["new york"], "analyzer": list},  # documents are lists of phrases
        {"vocabulary": ["new york"], "analyzer": lambda row: row["phrases"]},  # and here nobody can ask
    ],
)
def test_a_vocabulary_that_texts_can_give_is_accepted(options):
    assert privacy_guarantee(make_pipeline(CountVectorizer(**options), lda())).status == "proven"


def test_steps_must_not_share_their_noise():
    steps = [CountVectorizer(vocabulary=PUBLIC), lda(random_state=3), lda(random_state=np.int64(3))]
    with pytest.raises(ValueError, match="same random_state=3, and so the same noise"):
        privacy_guarantee(make_pipeline(*steps))
    steps[-1].set_params(random_state=4)
    assert privacy_guarantee(make_pipeline(*steps)).status == "claimed"


@pytest.mark.parametrize("seed", [lambda: b"0123456789abcdef", lambda: np.random.RandomState(3)])
def test_steps_must_not_share_bytes_or_the_state_of_a_generator(seed):
    steps = [CountVectorizer(vocabulary=PUBLIC), lda(random_state=seed()), lda(random_state=seed())]
    with pytest.raises(ValueError, match="have the same random_state, and so the same noise") as raised:
        privacy_guarantee(make_pipeline(*steps))
    assert "0123456789" not in str(raised.value)


class Mixer(TransformerMixin, BaseEstimator):
    """Stateless by its tags, and yet each row is made of all rows."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X / X.sum(axis=0)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def test_a_stateless_step_is_not_trusted_for_being_stateless():
    with pytest.raises(ValueError, match=r"'mixer' .* voids"):
        privacy_guarantee(make_pipeline(CountVectorizer(vocabulary=PUBLIC), Mixer(), lda()))


@pytest.mark.parametrize("failure", [1e-6, 1e-3, 0.1])
def test_failures_beside_noise_by_summation(failure):
    """A known word under noise, a new word now and then, a release beside: the joint law summed, in both orders."""
    values = np.arange(-60, 61)

    def noisy(count, sigma):
        return np.diff(norm.cdf((np.append(values, 61) - 0.5 - count) / sigma))

    def law(present):
        both = np.outer(noisy(present, 3.0), noisy(present, 2.0))
        return np.stack([both * (1 - failure * present), both * failure * present])

    words = PrivacyGuarantee(epsilon=3.0, delta=0.2, event=gaussian_event(3.0), event_delta=failure)
    total = words.compose(PrivacyGuarantee(epsilon=3.0, delta=0.2, event=gaussian_event(2.0)))
    for epsilon in (0.0, 0.2, 1.0, 2.0):
        exact = [np.maximum(a - np.exp(epsilon) * b, 0).sum() for a, b in ((law(1), law(0)), (law(0), law(1)))]
        assert max(exact) <= total.delta_at(epsilon) * (1 + 1e-9)
        assert total.delta_at(epsilon) <= 1.25 * max(exact)  # what rounding hides, and the sum for the union


def test_steps_whose_unit_has_no_groups_have_a_price_too():
    local = LocalPrivateLDA(randomizer=LocalRandomizer(max_words_per_document=5))
    for model in (HDPLDA(), local):
        assert privacy_guarantee(model) == model.privacy_cost()
        assert privacy_guarantee(model, groups=True).unit == model.privacy_cost().unit


def test_a_word_in_the_place_of_an_unknown_one_is_not_covered_and_it_is_said():
    """The trace of HDPLDA has a topic for each token, so that its length tells whether a word is in the vocabulary."""
    pipeline = make_pipeline(CountVectorizer(vocabulary=PUBLIC), HDPLDA(2, max_iter=1, return_trace=True))
    before = privacy_guarantee(pipeline)
    assert any("a word of the vocabulary" in text for text in before.assumptions)
    assert any("not in the vocabulary" in text for text in before.not_covered)
    assert "not in the vocabulary" in str(before)
    assert any("a word of the vocabulary" in text for text in HDPLDA().privacy_cost().assumptions)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([CountVectorizer(vocabulary=PUBLIC, binary=True)], "number of tokens changes"),
        ([CountVectorizer(vocabulary=PUBLIC), Binarizer()], "number of tokens changes"),
        ([CountVectorizer(vocabulary=PUBLIC, ngram_range=(1, 2))], "in several tokens"),
        ([CountVectorizer(vocabulary=list("abcd"), analyzer="char")], "in several tokens"),
    ],
)
def test_one_word_that_is_not_one_token_voids_the_guarantee_of_tokens(steps, said):
    with pytest.raises(ValueError, match=said):
        privacy_guarantee(make_pipeline(*steps, HDPLDA(2)))
    assert privacy_guarantee(make_pipeline(*steps, PrivateCGSLDA(2))).status == "proven"


def test_a_private_pipeline_has_the_guarantee_of_its_fit():
    pipeline = make_fdptm_pipeline(100.0, n_components=2)
    with pytest.raises(AttributeError, match=r"is not fitted; see skdplda\.privacy_guarantee"):
        pipeline.privacy_guarantee_  # noqa: B018
    pipeline.fit(["pears and plums are fruit", "cats and dogs are pets"] * 100)
    assert pipeline.privacy_guarantee_ == releases.privacy_guarantee(pipeline)
    assert pipeline.privacy_guarantee_.epsilon <= 100.0
