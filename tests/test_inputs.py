"""What goes in and out of every estimator: matrices, data frames, gensim corpora, groups, scorers."""

import subprocess
import sys
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from internals import check_groups, rows_of
from internals import validation as _validation
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline

from skdplda import (
    HDPLDA,
    PCTD,
    VIPSLDA,
    DPCountVectorizer,
    DPVocabularySelector,
    EmbeddingTopics,
    LocalPrivateLDA,
    PrivacyAccountant,
    PrivacyLeakWarning,
    PrivateCGSLDA,
    make_fdptm_pipeline,
    privacy_guarantee,
)
from skdplda.attacks import max_log_likelihood
from skdplda.datasets import load_gensim_corpus, make_lda_corpus
from skdplda.local import LocalRandomizer
from skdplda.metrics import gensim_dictionary, make_coherence_scorer, score
from skdplda.model_selection import PrivateSearchCV, search_cost
from skdplda.published import InherentPrivacyLDA, PublishedHDPLDA
from skdplda.releases import PrivatePipeline
from skdplda.semantics import SemanticUnitVectorizer, UnitMatrix

MODELS = [
    PrivateCGSLDA(3, max_iter=2),
    VIPSLDA(3, max_iter=2),
    HDPLDA(3, max_iter=2),
    PCTD(3, max_iter=2),
    LocalPrivateLDA(3, randomizer=LocalRandomizer(max_words_per_document=10, reports_per_user=4), max_iter=2),
]
GROUPED = [model for model in MODELS if not isinstance(model, HDPLDA)]  # its unit is a token
SELECTOR = DPVocabularySelector(epsilon=50.0)

every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
every_grouped_model = pytest.mark.parametrize("model", GROUPED, ids=lambda model: type(model).__name__)
every_transformer = pytest.mark.parametrize("model", [*MODELS, SELECTOR], ids=lambda model: type(model).__name__)

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning"),  # equal fits need seeds
    pytest.mark.filterwarnings("ignore:X is a plain document-term matrix:UserWarning"),  # of PCTD, without units
    pytest.mark.filterwarnings("ignore:no word stands out:UserWarning"),
    pytest.mark.filterwarnings("ignore:epsilon=.* is too small:UserWarning"),  # these corpora are
]


@pytest.fixture(scope="module")
def corpus():
    corpus = make_lda_corpus(120, 30, 3, mean_length=25, random_state=0)
    corpus.data.data[corpus.data.indptr[7] : corpus.data.indptr[8]] = 0  # an empty document
    corpus.data.eliminate_zeros()
    return corpus


def seeded(model):
    return clone(model).set_params(random_state=0)


def result(model):
    """Return what a fit released."""
    return model.topic_word_ if hasattr(model, "topic_word_") else model.noisy_weights_


def frames(corpus):
    dense, names = corpus.data.toarray(), list(corpus.feature_names)
    yield pd.DataFrame(dense, columns=names)
    yield pd.DataFrame(dense, columns=names).astype("Int64")
    yield pd.DataFrame.sparse.from_spmatrix(corpus.data, columns=names)
    yield pl.DataFrame(dense, schema=names)


@every_transformer
def test_every_kind_of_matrix_gives_the_same_fit(model, corpus):
    dense = corpus.data.toarray()
    first = seeded(model).fit(corpus.data)
    kinds = [
        dense,
        dense.astype(np.float32),
        np.asfortranarray(dense),
        dense.tolist(),
        sp.csr_array(corpus.data).astype(np.int64),
        sp.csc_matrix(corpus.data),
        sp.coo_array(corpus.data),
        *frames(corpus),
    ]
    for X in kinds:
        fitted = seeded(model).fit(X)
        np.testing.assert_array_equal(result(fitted), result(first), err_msg=str(type(X)))
        np.testing.assert_array_equal(as_array(fitted.transform(X)), as_array(first.transform(corpus.data)))
        assert list(getattr(fitted, "feature_names_in_", [])) == list(getattr(X, "columns", []))
    X = corpus.data  # unsorted, with repeated entries
    halves = (np.concatenate([X.data - 1, X.data**0])[::-1], np.tile(X.indices, 2)[::-1])
    rows = np.tile(np.repeat(np.arange(120), np.diff(X.indptr)), 2)[::-1]
    order = np.argsort(rows, kind="stable")
    pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=120))])
    repeated = sp.csr_array((halves[0][order], halves[1][order], pointers), shape=X.shape)
    assert not repeated.has_canonical_format and repeated.nnz == 2 * X.nnz
    np.testing.assert_array_equal(result(seeded(model).fit(repeated)), result(first))


def as_array(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def broken_matrices():
    """Yield sparse matrices with one array changed by hand, as a damaged file would have it."""
    for name, change in {
        "index beyond the columns": lambda X: X.indices.__setitem__(3, 25),
        "index far beyond the columns": lambda X: X.indices.__setitem__(3, 200_000_000),
        "negative index": lambda X: X.indices.__setitem__(3, -5),
        "swapped row pointers": lambda X: X.indptr.__setitem__([4, 5], X.indptr[[5, 4]]),
        "row pointer beyond the entries": lambda X: X.indptr.__setitem__(5, 2**31 - 1),
        "negative row pointer": lambda X: X.indptr.__setitem__(5, -7),
        "no last entries": lambda X: X.indptr.__setitem__(-1, 0),
        "negative count": lambda X: X.data.__setitem__(3, -1),
        "shorter data": lambda X: setattr(X, "data", X.data[:-5].copy()),
        "shorter pointers": lambda X: setattr(X, "indptr", X.indptr[:-1].copy()),
    }.items():
        X = sp.csr_array(np.random.default_rng(0).poisson(0.5, size=(40, 20)).astype(np.int32))
        change(X)
        yield pytest.param(X, id=name)
    X = sp.coo_array(np.random.default_rng(0).poisson(0.5, size=(40, 20)).astype(np.int32))
    X.coords[1][3] = 200_000_000
    yield pytest.param(X, id="coordinate beyond the columns")


@pytest.mark.parametrize("X", list(broken_matrices()))
@pytest.mark.parametrize("model", [*MODELS, LocalRandomizer(), SELECTOR], ids=lambda model: type(model).__name__)
def test_a_matrix_that_describes_no_counts_never_reaches_a_kernel(model, X):
    if model is SELECTOR and X.data.min() < 0:
        pytest.skip("the selector takes weights of either sign")
    with pytest.raises(ValueError, match=r"damaged sparse matrix|[Nn]egative"):
        clone(model).fit(X)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_noise_is_for_the_counts_that_fit_was_given(mechanism):
    """Whoever changes them meanwhile changes nothing: what was bounded is what is added."""
    X, settings = make_lda_corpus(60, 30, 2, random_state=0).data, {"epsilon": 20.0, "random_state": 0}

    def change(_):
        X.data[:] = 1000
        X.indices[:] = X.indices[::-1]

    expected = PrivateCGSLDA(2, mechanism=mechanism, **settings).fit(X.copy())
    found = PrivateCGSLDA(2, mechanism=mechanism, callback=change, **settings).fit(X)
    np.testing.assert_array_equal(found.components_, expected.components_)


def test_a_fit_without_noise_needs_no_second_copy_of_the_counts():
    X, model = make_lda_corpus(60, 30, 2, random_state=0).data.astype(np.int32), PrivateCGSLDA(2)
    shared = _validation.check_counts(model, X, reset=True, copy=False)
    assert np.shares_memory(shared.data, X.data) and np.shares_memory(shared.indices, X.indices)
    assert not np.shares_memory(_validation.check_counts(model, X, reset=True).data, X.data)


@pytest.mark.parametrize("rows", [slice(2, 7), slice(3, 3), slice(8, 99), np.array([4, 0, 4]), np.array([], int)])
def test_some_rows_are_taken_without_all(rows):
    X = _validation.check_counts(PrivateCGSLDA(2), make_lda_corpus(12, 9, 2, random_state=0).data, reset=True)
    some = rows_of(X, rows)
    assert (some.indptr.dtype, some.indices.dtype, some.dtype) == (np.int64, np.int32, np.int32)
    np.testing.assert_array_equal(some.toarray(), X.toarray()[rows])
    assert np.shares_memory(some.data, X.data) == (isinstance(rows, slice) and some.nnz > 0)


@pytest.mark.parametrize("X", list(broken_matrices()))
def test_transform_scores_units_and_attacks_refuse_the_same_matrices(X):
    good = sp.csr_array(np.random.default_rng(0).poisson(0.5, size=(40, 20)))
    model = PrivateCGSLDA(3, max_iter=2).fit(good)
    topics = model.topic_word_
    for use in (
        model.transform,
        model.score,
        LocalRandomizer().fit(good).transform,
        lambda X: UnitMatrix(np.arange(41), X),
        lambda X: score(X, topics),
        lambda X: max_log_likelihood(topics, X),
    ):
        with pytest.raises(ValueError, match=r"damaged sparse matrix|[Nn]egative|not negative"):
            use(X)


def test_units_that_were_changed_by_hand_do_not_crash_pctd():
    good = SemanticUnitVectorizer(vocabulary=["pear", "plum", "zinc"]).fit_transform(["pear plum zinc", "zinc"] * 20)
    model = PCTD(2, max_iter=2).fit(good)
    for change in (
        lambda X: X.counts.indices.__setitem__(2, 200_000_000),
        lambda X: X.counts.indptr.__setitem__(2, 2**30),
        lambda X: X.counts.data.__setitem__(2, -3),
        lambda X: X.start.__setitem__(1, 10**9),
    ):
        X = good[np.arange(len(good))]
        change(X)
        for use in (clone(model).fit, model.transform, model.score):
            with pytest.raises(ValueError, match=r"counts|start"):
                use(X)


THREADS = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
from skdplda import HDPLDA, PCTD, VIPSLDA, LocalPrivateLDA, PrivateCGSLDA
from skdplda.local import LocalRandomizer
from skdplda.privacy import discrete_laplace
from skdplda.metrics import score
X = np.random.default_rng(0).poisson(0.5, size=(400, 20))
for kind in (PrivateCGSLDA, VIPSLDA, HDPLDA, PCTD, LocalPrivateLDA):
    one, many = (kind(3, max_iter=2, random_state=0, n_jobs=n_jobs).fit(X) for n_jobs in (1, 100_000))
    assert (one.topic_word_ == many.topic_word_).all(), kind
    assert (one.transform(X) == many.transform(X)).all(), kind
one, many = (LocalRandomizer(random_state=0, n_jobs=n_jobs).fit_transform(X) for n_jobs in (1, 100_000))
assert (one != many).nnz == 0
assert (discrete_laplace(3.0, 10**6, 0) == discrete_laplace(3.0, 10**6, 0, n_threads=100_000)).all()
score(X, np.full((2, 20), 0.05), n_threads=100_000)
"""


@every_transformer
def test_no_error_shows_the_text_that_was_given_for_counts(model):
    for X in (["ann owes bob"], np.array([["ann owes bob", 1]], dtype=object), [["ann", "owes"]]):
        with pytest.raises(ValueError, match=r"text|2D array|strings") as error:
            clone(model).fit(X)
        assert "ann" not in str(error.value)


def test_a_hundred_thousand_threads_do_not_end_the_process():
    found = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stderr


@every_transformer
def test_a_fit_changes_nothing_that_it_is_given(model, corpus):
    X, frame = corpus.data.copy(), next(frames(corpus))
    indptr, indices, data, users = X.indptr.copy(), X.indices.copy(), X.data.copy(), np.arange(120) // 3
    parameters = {name: repr(value) for name, value in model.get_params().items()}
    options = {} if isinstance(model, HDPLDA) else {"groups": users}
    fitted = clone(model).fit(X, **options)
    fitted.transform(X)
    for before, after in zip((indptr, indices, data), (X.indptr, X.indices, X.data), strict=True):
        np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(users, np.arange(120) // 3)
    clone(model).fit(frame).transform(frame)
    np.testing.assert_array_equal(frame.to_numpy(), corpus.data.toarray())
    assert {name: repr(value) for name, value in fitted.get_params().items()} == parameters


@every_transformer
def test_other_columns_are_refused(model, corpus):
    frame, _, _, polars = frames(corpus)
    fitted = clone(model).fit(frame)
    for other in (frame.iloc[:, ::-1], polars.rename({"word00": "word99"})):
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.transform(other)


@every_transformer
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_output_of_both_libraries(model, corpus, library):
    frame, _, _, polars = frames(corpus)
    X = frame if library == "pandas" else polars
    fitted = clone(model).set_output(transform=library).fit(X)
    out = fitted.transform(X)
    assert isinstance(out, pd.DataFrame if library == "pandas" else pl.DataFrame)
    assert list(out.columns) == fitted.get_feature_names_out().tolist()
    np.testing.assert_array_equal(out.to_numpy(), as_array(clone_of(fitted).transform(X)))
    together = clone(make_pipeline(SELECTOR, clone(model)) if model is not SELECTOR else model)
    out = together.set_output(transform=library).fit_transform(X)
    assert out.shape[0] == 120 and isinstance(out, pd.DataFrame if library == "pandas" else pl.DataFrame)


def clone_of(fitted):
    """Return the same fitted model, with arrays as output."""
    return fitted.set_output(transform="default")


@every_model
def test_a_gensim_corpus(model, corpus):
    dictionary = gensim_dictionary(list(corpus.feature_names))
    bags = [[(int(word), int(row[word])) for word in np.flatnonzero(row)] for row in corpus.data.toarray()]
    loaded = load_gensim_corpus(iter(bags), dictionary)
    assert (loaded.data != corpus.data).nnz == 0 and loaded.data.dtype == np.int32
    assert loaded.feature_names.tolist() == list(corpus.feature_names)
    fitted = seeded(model).fit(loaded.data)
    np.testing.assert_array_equal(fitted.topic_word_, seeded(model).fit(corpus.data).topic_word_)
    assert list(fitted.top_words(2, loaded.feature_names).shape) == [3, 2]


def test_bags_of_words_are_checked():
    words = {0: "iron", 1: "zinc"}
    twice = load_gensim_corpus([[(1, 2), (0, 1), (1, 1)], []], words)
    assert twice.data.toarray().tolist() == [[1, 3], [0, 0]]
    assert load_gensim_corpus([], words).data.shape == (0, 2)
    for bad in ([(2, 1)], [(-1, 1)], [(0, 0)], [(0, 0.5)], [(0, 2**31)], ["iron"], [3]):
        with pytest.raises(ValueError, match="corpus, document 1: must hold pairs"):
            load_gensim_corpus([[(0, 1)], bad], words)
    for bad in ({}, {1: "zinc"}):
        with pytest.raises(ValueError, match="dictionary must number at least one word"):
            load_gensim_corpus([], bad)


@every_model
@pytest.mark.parametrize("library", [pd, pl])
def test_columns_of_text(model, texts, corpus, library):
    """From a column of a data frame to topics; a pandas index is not looked at."""
    frame = library.DataFrame({"text": texts, "length": [len(text) for text in texts]})
    if library is pd:
        frame.index = np.arange(120)[::-1] + 7
    words = list(corpus.feature_names)
    vectorizer = (
        SemanticUnitVectorizer(vocabulary=words) if isinstance(model, PCTD) else CountVectorizer(vocabulary=words)
    )
    pipe = make_pipeline(vectorizer, seeded(model))
    expected = clone(pipe).fit(texts)
    found = clone(pipe).fit(frame["text"])
    np.testing.assert_array_equal(found[-1].topic_word_, expected[-1].topic_word_)
    np.testing.assert_array_equal(found.transform(frame["text"]), expected.transform(texts))


@pytest.mark.parametrize("library", [pd, pl])
def test_words_of_a_column_are_selected(texts, library):
    frame = library.DataFrame({"text": texts, "user": [f"u{i // 2}" for i in range(120)]})
    expected = DPCountVectorizer(epsilon=50.0, random_state=0).fit(texts)
    found = DPCountVectorizer(epsilon=50.0, random_state=0).fit(frame["text"])
    assert found.vocabulary_ == expected.vocabulary_
    assert (found.transform(frame["text"]) != expected.transform(texts)).nnz == 0
    users = DPCountVectorizer(epsilon=50.0).fit(frame["text"], groups=frame["user"])
    assert users.privacy_guarantee_.unit == "user"
    columns = ColumnTransformer([("words", DPCountVectorizer(epsilon=50.0), "text")])
    assert columns.fit_transform(frame).shape[0] == 120
    pipe = make_fdptm_pipeline(50.0, n_components=2, groups=True)
    pipe.fit(frame["text"], groups=frame["user"])
    assert privacy_guarantee(pipe).unit == "user"


@pytest.mark.parametrize("other", [0.5, 2**65, -1.5, "z", (1, 2), True])
@pytest.mark.parametrize("first", [2**60, 2**63])
def test_a_name_of_another_kind_does_not_merge_users(other, first):
    """numpy would make all of them fractions, or texts."""
    names = [first + i // 2 for i in range(12)]
    start, documents = check_groups([*names, other], 13)
    units = {frozenset(unit.tolist()) for unit in np.split(documents, start[1:-1])}
    assert units == {frozenset({i, i + 1}) for i in range(0, 12, 2)} | {frozenset({12})}


def test_names_that_cannot_be_compared_are_refused():
    with pytest.raises(ValueError, match="hashable"):
        check_groups([1, [2]], 2)


@every_grouped_model
def test_groups_of_any_kind_are_the_same_users(model, corpus):
    users = np.arange(120) // 4
    names = np.array([f"user {user:02d}" for user in users])
    expected = seeded(model).fit(corpus.data, groups=users)
    for groups in (users.tolist(), names, pd.Series(names, index=np.arange(120)[::-1]), pl.Series(names)):
        fitted = seeded(model).fit(corpus.data, groups=groups)
        np.testing.assert_array_equal(fitted.topic_word_, expected.topic_word_)
        assert fitted.privacy_guarantee_ == expected.privacy_guarantee_


def unit_of(model):
    """In the local model groups are checked, and change no guarantee."""
    return "document" if isinstance(model, LocalPrivateLDA) else "user"


@every_grouped_model
def test_groups_are_routed_through_pipelines_and_cross_validation(model, texts, corpus):
    users = np.repeat(np.arange(40), 3)
    kind = SemanticUnitVectorizer if isinstance(model, PCTD) else CountVectorizer
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(kind(vocabulary=list(corpus.feature_names)), clone(model).set_fit_request(groups=True))
        fitted = clone(pipe).fit(texts, groups=users)
        found = cross_validate(
            pipe, texts, params={"groups": users}, cv=GroupKFold(3), return_estimator=True, error_score="raise"
        )
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="groups"):
            make_pipeline(kind(vocabulary=list(corpus.feature_names)), clone(model)).fit(texts, groups=users)
        for one in (fitted, *found["estimator"]):
            assert one[-1].privacy_guarantee_.unit == unit_of(model)
        assert np.isfinite(found["test_score"]).all()
        assert np.isfinite(clone(pipe).fit(texts, groups=users).score(texts, sample_weight=None))


def test_groups_are_routed_to_several_private_steps(texts):
    users = np.arange(120) // 3
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_fdptm_pipeline(60.0, n_components=2, groups=True)
        found = cross_validate(pipe, texts, params={"groups": users}, cv=GroupKFold(3), return_estimator=True)
        chain = Pipeline(
            [
                ("counts", CountVectorizer()),
                ("words", DPVocabularySelector(epsilon=50.0).set_fit_request(groups=True)),
                ("lda", VIPSLDA(2, max_iter=2).set_fit_request(groups=True)),
            ]
        ).fit(texts, groups=users)
    for fitted in (*found["estimator"], chain):
        assert privacy_guarantee(fitted).unit == "user"


@pytest.mark.parametrize("model", [VIPSLDA(2, learning_method="online", max_iter=4)], ids=["VIPSLDA"])
def test_groups_are_routed_to_partial_fit(model, corpus):
    with sklearn.config_context(enable_metadata_routing=True):
        asking = clone(model).set_partial_fit_request(groups=True)
        assert asking.get_metadata_routing().partial_fit.requests["groups"] is True
    fitted = clone(model).partial_fit(corpus.data, groups=np.arange(120) // 3)
    assert fitted.privacy_guarantee_.unit == "user"


def grid(model, step=None):
    """Return candidates of the parameter that sets the privacy loss."""
    return {"epsilon" if step is None else f"{step}__epsilon": [2.0, float("inf")]}


@every_model
@pytest.mark.parametrize("measure", [None, "u_mass", "c_npmi"])
def test_searches_over_epsilon_with_every_scorer(model, texts, corpus, measure):
    """Held-out likelihood, and coherence on a reference corpus: all of these documents."""
    words = list(corpus.feature_names)
    reference = [text.split() for text in texts]
    scoring = None if measure is None else make_coherence_scorer(measure, texts=reference, n_words=5)
    kind = SemanticUnitVectorizer if isinstance(model, PCTD) else CountVectorizer
    pipe = Pipeline([("counts", kind(vocabulary=words)), ("lda", clone(model))])
    search = GridSearchCV(pipe, grid(model, "lda"), cv=2, scoring=scoring, error_score="raise").fit(texts)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    scores = cross_val_score(pipe, texts, cv=2, scoring=scoring, error_score="raise")
    assert np.isfinite(scores).all()
    bare = None if measure is None else make_coherence_scorer(measure, reference, words, n_words=5)
    assert np.isfinite(cross_val_score(clone(model), corpus.data, cv=2, scoring=bare, error_score="raise")).all()


@every_model
def test_a_grid_search_has_its_price(model):
    """Of the candidates that have one; without noise there is none."""
    search = GridSearchCV(clone(model), {"epsilon": [1.0, 2.0]}, cv=3)
    one = clone(model).set_params(epsilon=2.0).privacy_cost()
    cost = search_cost(search)
    assert one.epsilon < cost.epsilon <= 3 * 2 * one.epsilon
    assert (cost.unit, cost.adjacency, cost.trust) == (one.unit, one.adjacency, one.trust)
    assert search_cost(GridSearchCV(clone(model), {"epsilon": [1.0, float("inf")]}, cv=3)).epsilon == float("inf")


@pytest.mark.parametrize("model", [PrivateCGSLDA(max_iter=2), VIPSLDA(max_iter=2), PCTD(max_iter=2)])
def test_a_private_search_over_users(model, corpus):
    search = PrivateSearchCV(clone(model), {"n_components": [2, 3]}, mean_trials=1.5)
    search.fit(corpus.data, groups=np.arange(120) // 3)
    assert search.privacy_guarantee_.unit == "user" and search.privacy_guarantee_.epsilon <= 5.0


HUGE = {
    "a long document": [[2**22, 0, 1]],
    "large counts": [[2.0**31, 1e300, 1]],  # beyond int32 and int64
    "two large cells": [[2**31 - 1, 2**31 - 1, 1]],
}
OF_ONE_ROUND = [
    PrivateCGSLDA(2, max_iter=1, local_sweeps=1),
    PrivateCGSLDA(2, max_iter=1, local_sweeps=1, mechanism="laplace"),
    PrivateCGSLDA(2, max_iter=1, epsilon=np.inf),
    InherentPrivacyLDA(2, max_iter=1),
    VIPSLDA(2, max_iter=1),
    VIPSLDA(2, max_iter=1, epsilon=np.inf),
    HDPLDA(2, max_iter=1),
    PublishedHDPLDA(2, max_iter=1),
    PCTD(2, max_iter=1),
    PCTD(2, max_iter=1, noise_on="units"),
    LocalPrivateLDA(2, max_iter=1),
    LocalRandomizer(),
    DPVocabularySelector(epsilon=50.0),
]


@pytest.mark.filterwarnings("ignore:delta=.* is not below:UserWarning")
@pytest.mark.parametrize("model", OF_ONE_ROUND, ids=lambda model: str(model)[:60])
@pytest.mark.parametrize("document", HUGE.values(), ids=HUGE)
def test_no_document_is_so_long_that_a_fit_fails(document, model):
    """Failing is an output: whether a fit succeeds, warns or takes all memory must not tell how long a document is."""
    short = np.tile(np.random.default_rng(0).poisson(2, (50, 3)), (4, 1))
    X = sp.csr_matrix(np.vstack([short, document]))
    if document is not HUGE["a long document"]:  # of as many tokens once it is cut, and tracing takes time
        clone(model).fit(X)
        return
    tracemalloc.start()
    try:
        clone(model).fit(X)
        assert tracemalloc.get_traced_memory()[1] < 2**29
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_repeated_cells_do_not_wrap_around(dtype):
    most = np.iinfo(dtype).max
    pair = sp.csr_matrix((np.full(3, most, dtype), [0, 0, 0], [0, 3, 3]), shape=(2, 2))
    X = _validation.check_counts(PrivateCGSLDA(2), pair, reset=True)
    assert X.toarray().tolist() == [[min(3 * int(most), 2**31 - 1), 0], [0, 0]]
    for other in (
        _validation.check_block(pair, "X"),
        _validation.check_counts(PrivateCGSLDA(2), pair.tocoo(), reset=True),
    ):
        assert other.toarray().tolist() == X.toarray().tolist()
    assert pair.nnz == 3


@pytest.mark.parametrize(
    ("estimator", "text"),
    [
        (PrivateCGSLDA(), "PrivateCGSLDA(epsilon=5.0, delta=1e-05)"),
        (VIPSLDA(3, delta=1e-7), "VIPSLDA(epsilon=5.0, delta=1e-07, n_components=3)"),
        (PrivateCGSLDA(3, epsilon=1.0), "PrivateCGSLDA(delta=1e-05, epsilon=1.0, n_components=3)"),
        (HDPLDA(), "HDPLDA(epsilon=10.0, delta=1e-05)"),
        (
            HDPLDA(noise_epsilon=1, inherent_epsilon=2),
            "HDPLDA(delta=1e-05, inherent_epsilon=2, noise_epsilon=1)",  # which make the epsilon
        ),
        (LocalPrivateLDA(), "LocalPrivateLDA(epsilon=2.0)"),
    ],
)
def test_the_text_of_an_estimator_tells_its_budget(estimator, text):
    of = {"n_words": 100} if isinstance(estimator, LocalPrivateLDA) else {}
    assert repr(estimator) == text
    same, default = eval(text).get_params(), estimator.get_params()
    assert {**same, "epsilon": None} == {**default, "epsilon": None}
    assert default["epsilon"] in (None, same["epsilon"])
    assert eval(text).privacy_cost(**of) == estimator.privacy_cost(**of)
    with sklearn.config_context(print_changed_only=False):
        assert repr(estimator).count("delta=") == ("delta" in default)


@pytest.mark.parametrize("estimator", [PrivateCGSLDA(2, max_iter=2), VIPSLDA(2, max_iter=2)], ids=repr)
def test_a_large_delta_warns(estimator, corpus):
    with pytest.warns(PrivacyLeakWarning, match=r"delta=0.002 is above 0.001") as caught:
        clone(estimator).set_params(delta=0.002).fit(corpus.data)
    assert caught[0].filename == __file__
    clone(estimator).set_params(delta=0.001).fit(corpus.data)  # warnings are errors
    clone(estimator).set_params(delta=0.002, epsilon=np.inf).fit(corpus.data)
    with pytest.warns(PrivacyLeakWarning, match=r"delta=0.002 is above 0.001") as caught:
        DPCountVectorizer(5.0, delta=0.002).fit(["apple pear"] * 200)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("entry", "kind", "said"),
    [
        (2j, TypeError, "an entry is none: .* not 'complex'"),
        ("secret", ValueError, "an entry is none: could not convert string to float: a text"),
        ({"secret": 1}, TypeError, "an entry is none: .* not 'dict'"),
        ([3], ValueError, "an entry is none: setting an array element with a sequence"),
    ],
)
@pytest.mark.parametrize(
    "estimator", [VIPSLDA(2), DPVocabularySelector()], ids=lambda estimator: type(estimator).__name__
)
def test_an_object_that_is_no_number_is_refused_by_a_sentence_that_does_not_show_it(estimator, entry, kind, said):
    X = np.ones((3, 2), dtype=object)
    X[1, 1] = entry
    with pytest.raises(kind, match=said) as refused:
        estimator.fit(X)
    assert "secret" not in str(refused.value)
    assert refused.value.__context__ is None


def test_complex_numbers_are_not_shown():
    for X in (np.array([[41, 17j], [0, 1]]), [[41, 17j], [0, 1]], sp.csr_array([[41, 17j], [0, 1]])):
        with pytest.raises(ValueError, match=r"^Complex data not supported: X must hold real numbers\.$"):
            VIPSLDA(2).fit(X)


@pytest.mark.filterwarnings("ignore::skdplda.exceptions.NoisyTopicsWarning")
@pytest.mark.parametrize(
    "make", [lambda rows: np.array(rows, object), list, pd.DataFrame], ids=["array", "list", "frame"]
)
def test_integers_of_any_size_are_counts(make):
    """How large a count is must not show: beyond 2**31 - 1 it is that number."""
    fits = [VIPSLDA(2, max_iter=2, random_state=b"0" * 16).fit(make([[1, most], [2, 1]])) for most in (10**400, 2**31)]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)
    with pytest.raises(ValueError, match="Negative values"):
        VIPSLDA(2).fit(make([[1, -(10**400)], [2, 1]]))


@pytest.mark.parametrize("most", [10**400, Fraction(10**400), 10**308, 5], ids=["integer", "fraction", "float", "5"])
def test_names_of_columns_do_not_depend_on_how_large_a_count_is(most):
    frame = pd.DataFrame(np.ones((3, 2), int).astype(object), columns=["cat", "dog"])
    frame.iloc[0, 0] = most
    model = VIPSLDA(2, max_iter=2, random_state=b"0" * 16).fit(frame)
    assert list(model.feature_names_in_) == ["cat", "dog"]
    assert model.transform(frame).shape == (3, 2)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[["dog", "cat"]])


def test_large_entries_of_sparse_objects_and_of_duplicates_are_counts():
    model = VIPSLDA(2, max_iter=2, random_state=b"0" * 16).fit(np.eye(2, dtype=int) + 1)
    most = model.transform(sp.csr_array([[2**31 - 1, 0], [0, 1]]))
    X = sp.csr_array([[1, 0], [0, 1]])
    X.data = np.array([10**400, 1], dtype=object)
    np.testing.assert_array_equal(model.transform(X), most)
    for dtype, half in ((float, 1.7e308), (np.float32, 3e38)):
        twice = sp.csr_array((np.array([half, half, 1], dtype), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
        np.testing.assert_array_equal(model.transform(twice), most)
        np.testing.assert_array_equal(_validation.check_block(twice, "chunk 0").toarray(), [[2**31 - 1, 0], [0, 1]])
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="must hold non-negative integer counts"):
            _validation.check_block(sp.csr_array(([bad, 1.0], [0, 0], [0, 2]), shape=(1, 2)), "chunk 0")
    X.data[1] = "secret"
    with pytest.raises(TypeError, match="an entry is none") as refused:
        model.transform(X)
    assert "secret" not in str(refused.value) and refused.value.__context__ is None


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, float])
def test_plain_csr_is_read_as_validate_data_reads_it(monkeypatch, dtype):
    model = VIPSLDA(2, epsilon=np.inf, max_iter=1, random_state=0).fit(np.eye(4, dtype=int) + 1)
    X = sp.csr_matrix(np.arange(12).reshape(3, 4).astype(dtype))
    broken = [X[:, :3], X[:0], X.astype(float) * -1]
    broken += [sp.csr_matrix(([value], [1], [0, 1, 1]), (2, 4)) for value in (np.nan, np.inf)]
    results = []
    for plain in (_validation.is_plain, lambda X, estimator: False):
        monkeypatch.setattr(_validation, "is_plain", plain)
        said = []
        for bad in broken:
            with pytest.raises(ValueError) as refusal:
                model.transform(bad)
            said.append(str(refusal.value))
        results.append((model.transform(X).tolist(), model.score(X), said))
    assert results[0] == results[1]
    assert results[0][1] == score(X, model.topic_word_, doc_topic_prior=model.doc_topic_prior_)


VOID = [
    None,
    float("nan"),
    np.float64("nan"),
    pd.NA,
    pd.NaT,
    np.datetime64("NaT", "D"),
    Decimal("NaN"),
    ("a", float("nan")),
]


@pytest.mark.parametrize("void", [*VOID, "", " \t"], ids=repr)
@pytest.mark.parametrize("model", [*GROUPED, SELECTOR], ids=lambda model: type(model).__name__)
def test_a_user_who_is_missing_is_refused_before_anything_is_charged(model, void, corpus):
    users = [f"user {document // 4}" for document in range(119)]
    kind = (
        {"unit": "document", "trust": "local", "adjacency": "replace"}
        if isinstance(model, LocalPrivateLDA)
        else {"unit": "user"}
    )
    with PrivacyAccountant(1000.0, 0.1, **kind) as ledger, pytest.raises(ValueError, match=r"missing|blank"):
        clone(model).fit(corpus.data, groups=[*users, void])
    assert ledger.ledger == ()


@pytest.mark.parametrize(
    "groups",
    [
        np.array([1.0, np.nan]),
        np.array(["a", ""]),
        pd.Series([1, None], dtype="Int64"),
        pd.Series(["a", None], dtype="string"),
        pd.Categorical(["a", None]),
        pl.Series([1.0, None]),
    ],
    ids=lambda groups: type(groups).__name__,
)
def test_missing_users_of_every_kind_of_array_are_refused(groups):
    with pytest.raises(ValueError, match=r"missing|blank"):
        check_groups(groups, 2)


@pytest.mark.parametrize("void", ["nan", "None", "NULL", "NaT", "<NA>", "n/a"])
def test_texts_that_missing_values_become_are_warned_of(void):
    with pytest.warns(PrivacyLeakWarning, match="look like missing values"):
        check_groups(["a", void], 2)


@pytest.mark.parametrize("other", ["Zoe\u0301", " Zo\u00e9", "Zo\u00e9\n"])
def test_one_person_under_two_spellings_is_warned_of(other):
    with pytest.warns(PrivacyLeakWarning, match="white space"):
        start, _ = check_groups(["Zo\u00e9", other, "Zoe"], 3)
    assert len(start) == 4  # nothing is merged


@pytest.mark.parametrize(
    "groups", [np.array([1.0, 2.0**53]), np.array([1, 2**24], np.float32), [1.0, 2.0**60], pd.Series([0.5, -(2.0**53)])]
)
def test_numbers_that_cannot_tell_users_apart_are_refused(groups):
    with pytest.raises(ValueError, match="two users one"):
        check_groups(groups, 2)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, float])
def test_numbers_in_a_list_are_looked_at_like_those_of_an_array(kind):
    """Two users were one, where the same numbers in an array are refused."""
    largest = kind(2.0 ** (np.finfo(kind).nmant + 1))
    for groups in ([largest, kind(1)], pd.Series([largest, "a"], dtype=object), [largest, 1]):
        with pytest.raises(ValueError, match="two users one"):
            check_groups(groups, 2)
    assert len(check_groups([largest / 2, kind(1), "a"], 3)[0]) == 4


@pytest.mark.parametrize(
    "groups", [[7, "7"], pd.Series(["7", np.int64(7)]), np.array([7.0, " 7"], object), [7.5, "7.5"], [True, "True"]]
)
def test_one_person_as_a_number_and_as_a_text_is_warned_of(groups):
    """A column read in parts may have both, and one user was two."""
    with pytest.warns(PrivacyLeakWarning, match=r"read alike.*\(1 of 2\).*Give all names as texts"):
        start, _ = check_groups(groups, 2)
    assert len(start) == 3  # nothing is merged


def test_users_that_are_whole_numbers_of_any_type_are_the_same():
    for groups in ([1.0, 1, 2], np.array([1.0, 1.0, 2.0]), [True + 0, 1, 2]):
        start, _ = check_groups(groups, 3)
        assert start.tolist() == [0, 2, 3]


@pytest.mark.parametrize("name", ["doc_topic_prior", "topic_word_prior"])
@every_model
def test_a_prior_that_no_float_holds_is_refused(model, name, corpus):
    with pytest.raises(ValueError, match=rf"{name} must be a number from 1e-30 to 1e30"):
        clone(model).set_params(**{name: 10**400}).fit(corpus.data)


@pytest.mark.parametrize(
    "groups",
    [dict(enumerate("aab")), "aab", b"aab", {1, 2, 3}, dict.fromkeys("abc").keys()],
    ids=["mapping", "text", "bytes", "set", "keys"],
)
def test_groups_without_an_order_of_documents_are_refused(groups):
    with pytest.raises(ValueError, match="in the order of the documents"):
        check_groups(groups, 3)  # a mapping would give its keys: each document would be a user


def test_missing_users_of_masked_and_arrow_arrays_are_seen():
    pyarrow = pytest.importorskip("pyarrow")
    for groups in (np.ma.array([1, 1, 2], mask=[0, 1, 0]), pyarrow.array(["a", None, None])):
        with pytest.raises(ValueError, match="groups has missing entries"):
            check_groups(groups, 3)
    np.testing.assert_array_equal(check_groups(pyarrow.array(["a", "a", "b"]), 3)[0], [0, 2, 3])
    np.testing.assert_array_equal(check_groups(np.ma.array([1, 1, 2]), 3)[0], [0, 2, 3])


@pytest.mark.parametrize("way", ["fit", "partial_fit", "pipeline", "search"])
def test_users_in_another_order_than_the_documents_are_refused(way, corpus):
    frame = pd.DataFrame(corpus.data.toarray()).sample(frac=1.0, random_state=0)
    users = pd.Series(np.arange(120) // 4)  # of the frame before it was shuffled
    model = VIPSLDA(2, max_iter=2, learning_method="online" if way == "partial_fit" else "batch")
    estimator = {
        "pipeline": PrivatePipeline([("topics", model)]),
        "search": PrivateSearchCV(model, {"n_components": [2]}),
    }.get(way, model)
    fit = getattr(estimator, way if way == "partial_fit" else "fit")
    with PrivacyAccountant(50.0, 1e-2, unit="user") as ledger:
        with pytest.raises(ValueError, match=r"groups must have the rows of X in the same order.*groups\.loc"):
            fit(frame, groups=users)
        assert not ledger.ledger
        fit(frame, groups=users.loc[frame.index])


TEXTS = ["the cat sat on the mat", "dogs and cats are friends"] * 10


@pytest.mark.parametrize("X", [TEXTS, pd.Series(TEXTS), pd.DataFrame({"text": TEXTS}), "texts.csv"])
@pytest.mark.parametrize("estimator", [VIPSLDA, HDPLDA, LocalPrivateLDA, DPVocabularySelector])
def test_texts_in_the_place_of_counts_say_who_counts_them(estimator, X):
    with pytest.raises(ValueError, match=r"got texts. Count public words first, .* make_fdptm_pipeline"):
        estimator(epsilon=1.0).fit(X)


def test_counts_in_the_place_of_embeddings_say_who_embeds():
    """By their type alone, whatever the numbers are: an error is seen by all."""
    with pytest.raises(ValueError, match=r"a sparse matrix of integers with 1001 columns, as word counts are. VIPSLDA"):
        EmbeddingTopics(2, epsilon=1.0, delta=1e-5).fit(sp.csr_array(np.eye(9, 1001, dtype=np.int64)))


def test_numbers_in_the_place_of_a_public_prior_say_where_they_belong():
    with pytest.raises(ValueError, match=r"PublicPrior or WordPrior \(Dirichlet concentrations are doc_topic_prior"):
        VIPSLDA(2, epsilon=1.0, delta=1e-5, prior=[0.1, 0.1]).fit(np.eye(9, dtype=np.int64))


def test_a_method_that_a_setting_takes_away_names_the_setting():
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as caught:
        VIPSLDA(2).partial_fit(np.eye(9))
    assert "partial_fit needs learning_method='online'; got 'batch'" in str(caught.value.__cause__)


@pytest.mark.parametrize("n_words", [0, "5", 2.5, True])
def test_numbers_of_words_are_integers_and_more_than_there_are_is_all(n_words):
    model = PrivateCGSLDA(2, epsilon=float("inf"), random_state=0, max_iter=1).fit(np.ones((9, 4), dtype=np.int64))
    assert model.top_words().shape == (2, 4)
    with pytest.raises(ValueError, match=f"n_words must be an integer of at least 1; got {n_words!r}"):
        model.top_words(n_words)


@pytest.mark.filterwarnings("ignore::skdplda.NoisyTopicsWarning")
def test_topics_of_texts_join_other_columns_by_the_index_of_the_frame():
    frame = pd.DataFrame({"text": TEXTS * 10, "age": np.arange(200.0)}, index=[f"person {i}" for i in range(200)])
    texts = make_fdptm_pipeline(epsilon=100.0, n_components=2)
    join = ColumnTransformer([("topics", texts, "text"), ("age", "passthrough", ["age"])])
    join.set_output(transform="pandas")
    for table in (join.fit_transform(frame), join.transform(frame)):
        assert table.index.equals(frame.index) and table.shape == (200, 3) and not table.isna().any(axis=None)
        np.testing.assert_array_equal(table["age__age"], frame["age"])


def test_a_pipeline_of_private_words_and_topics_returns_frames():
    steps = make_pipeline(DPCountVectorizer(epsilon=20.0), PrivateCGSLDA(2, epsilon=20.0))
    table = steps.set_output(transform="pandas").fit_transform(TEXTS * 10)
    assert isinstance(table, pd.DataFrame) and table.shape == (200, 2)


@pytest.mark.parametrize(("refit", "n_warnings"), [(True, 1), (False, 4)])
def test_candidates_of_a_search_leave_the_warning_to_the_model_at_its_end(refit, n_warnings):
    search = GridSearchCV(PrivateCGSLDA(2, max_iter=1, random_state=0), {"n_components": [2, 3]}, cv=2, refit=refit)
    with pytest.warns(PrivacyLeakWarning, match="was given random_state=0") as caught:
        search.fit(np.ones((8, 4), dtype=np.int64))
    assert len([w for w in caught if w.category is PrivacyLeakWarning]) == n_warnings
