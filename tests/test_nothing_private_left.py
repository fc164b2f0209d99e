"""A fitted model holds released values only: no counts, topics, document numbers, noise or generators."""

import io
import pickle
import pickletools

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure

from skdplda import HDPLDA, PCTD, VIPSLDA, LocalPrivateLDA, PrivacyLeakWarning, PrivateCGSLDA
from skdplda.local import LocalRandomizer
from skdplda.plots import TopWordsDisplay
from skdplda.published import CDPLDA, CDPLDAPlus, InherentPrivacyLDA, PriTopLDA, PublishedPCTD
from skdplda.semantics import UnitMatrix

CANARY = 7919  # tokens of one word in one document; prime, and nowhere else
N_DOCUMENTS, N_WORDS = 977, 12
PARAMETERS = set(PrivateCGSLDA().get_params())
ALLOWED = {"components_", "topic_word_", "privacy_guarantee_", "n_iter_", "n_features_in_", "feature_names_in_"}
ALLOWED |= {"signal_to_noise_", "topic_signal_to_noise_", "doc_topic_prior_"}
ALLOWED |= {"_fitted_parameters"}  # the constructor's, as the caller gave them


@pytest.fixture(scope="module")
def corpus():
    counts = np.random.default_rng(0).poisson(0.5, size=(N_DOCUMENTS, N_WORDS))
    counts[400, 5] = CANARY
    counts[401] = 0
    return sp.csr_array(counts.astype(np.int32))


def values(thing, seen=None):
    """Yield every array, number and string within an object, whatever holds it."""
    seen = {} if seen is None else seen
    if id(thing) in seen:
        return
    seen[id(thing)] = thing  # kept alive: a number that is free again may be given to another object
    yield thing
    if isinstance(thing, dict):
        for item in thing.items():
            yield from values(item, seen)
    elif isinstance(thing, (list, tuple, set, frozenset)):
        for item in thing:
            yield from values(item, seen)
    elif not isinstance(thing, (str, bytes, type, np.ndarray)):
        yield from values(getattr(thing, "__dict__", {}), seen)
        for name in getattr(type(thing), "__slots__", ()):
            yield from values(getattr(thing, name, None), seen)


def secrets(X):
    """Return what must not be found: numbers of the corpus, and arrays of its counts."""
    dense = X.toarray()
    numbers = {CANARY, N_DOCUMENTS, int(X.sum()), int(X.nnz), int(dense[:, 5].sum())}
    arrays = [X.data, X.indptr, X.indices, dense.sum(axis=0), dense.sum(axis=1), dense[400]]
    return numbers, arrays


def found_in(model, X):
    numbers, arrays = secrets(X)
    for value in values(vars(model)):
        if isinstance(value, (np.random.Generator, np.random.RandomState, np.random.BitGenerator)):
            yield "a generator"
        if isinstance(value, (np.ndarray, sp.sparray)):
            entries = np.asarray(value.data if sp.issparse(value) else value)
            if N_DOCUMENTS in entries.shape or X.sum() in entries.shape:
                yield f"an array of shape {entries.shape}"
            whole = entries.dtype.kind == "f" and entries.any() and (entries == np.rint(entries)).all()
            if entries.dtype.kind in "iu" or whole:
                yield f"integers, {entries}"
            for sums in (entries, *(entries.sum(axis=axis) for axis in range(entries.ndim))):
                if any(np.shape(sums) == array.shape and np.allclose(sums, array) for array in arrays):
                    yield "exact counts"
                if entries.dtype.kind == "f" and np.isclose(sums, CANARY, rtol=0, atol=1e-3).any():
                    yield "the canary"
        elif isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and value in numbers:
            yield f"the number {value}"


def numbers_in_pickle(model):
    stream = io.BytesIO(pickle.dumps(model))
    return {argument for _, argument, _ in pickletools.genops(stream) if isinstance(argument, int)}


@pytest.mark.filterwarnings("ignore:X is a plain document-term matrix:UserWarning")
@pytest.mark.filterwarnings("ignore:.*clusters do not stand out:UserWarning")
@pytest.mark.filterwarnings("ignore:.*(published form|path of 2016):skdplda.PrivacyLeakWarning")
def test_a_fit_of_any_public_estimator_keeps_only_what_it_released(private_estimator, corpus):
    documents = corpus
    if private_estimator.__sklearn_tags__().input_tags.string:
        documents = [" ".join(f"word{w}" for w in np.repeat(np.arange(N_WORDS), row)) for row in corpus.toarray()]
    names = set(private_estimator.get_params(deep=False))
    model = private_estimator.fit(documents)
    hidden = {name for name in set(vars(model)) - names if name.startswith("_") or not name.endswith("_")}
    assert hidden <= ALLOWED  # tests/test_released.py is about the others
    assert list(found_in(model, corpus)) == []
    assert not numbers_in_pickle(model) & secrets(corpus)[0]


@pytest.mark.parametrize("groups", [None, np.arange(N_DOCUMENTS) // 7])
@pytest.mark.parametrize("parameters", [{}, {"mechanism": "laplace"}, {"sampling_rate": 0.5}, {"epsilon": 1e4}])
def test_a_private_fit_keeps_only_what_it_released(corpus, parameters, groups):
    model = PrivateCGSLDA(3, max_iter=3, **parameters).fit(corpus, groups=groups)
    for _ in range(2):
        assert set(vars(model)) - PARAMETERS <= ALLOWED
        assert list(found_in(model, corpus)) == []
        assert not numbers_in_pickle(model) & secrets(corpus)[0]
        model.transform(corpus)  # nor does using it leave traces
        model.score(corpus)
        model = pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("parameters", [{}, {"delta": 0.0}, {"count_clip": 9.0}, {"epsilon": 100.0}])
def test_released_draws_are_not_kept_unless_asked_for(corpus, parameters):
    model = HDPLDA(3, max_iter=3, **parameters).fit(corpus)
    assert set(vars(model)) - set(model.get_params()) <= ALLOWED
    assert list(found_in(model, corpus)) == []
    assert not numbers_in_pickle(model) & secrets(corpus)[0]


def test_a_trace_holds_what_is_released_and_public_lengths(corpus):
    """Neither words nor exact counts: what differs between words is noisy, and the order of tokens is secret."""
    model = HDPLDA(3, max_iter=3, return_trace=True).fit(corpus)
    assert set(vars(model.trace_)) == {"topics", "tables", "document_starts"}
    assert {"topics of all tokens in every sweep", "trace_"} <= set(model.privacy_guarantee_.released)
    lengths = corpus.toarray().sum(axis=1)
    np.testing.assert_array_equal(np.diff(model.trace_.document_starts), lengths)
    assert "the number of documents and of the tokens in each" in model.privacy_guarantee_.not_covered
    totals = model.trace_.tables[1:].sum(axis=1)  # of each word
    assert (totals != corpus.toarray().sum(axis=0)).mean() > 0.5


@pytest.mark.parametrize("groups", [None, np.arange(N_DOCUMENTS) // 7])
@pytest.mark.parametrize("parameters", [{}, {"learning_method": "online"}, {"max_norm": 9.0, "max_doc_length": 20}])
def test_a_variational_fit_keeps_only_what_it_released(corpus, parameters, groups):
    models = [VIPSLDA(3, max_iter=3, **parameters).fit(corpus, groups=groups)]
    if "learning_method" in parameters:
        models.append(VIPSLDA(3, max_iter=3, **parameters).partial_fit(corpus, groups=groups))
    for model in models:
        assert set(vars(model)) - set(model.get_params()) <= ALLOWED | {"_stream"}
        assert list(found_in(model, corpus)) == []
        assert not numbers_in_pickle(model) & secrets(corpus)[0]


def test_the_guarantee_says_nothing_of_the_data(corpus):
    fitted = PrivateCGSLDA(3, max_iter=3).fit(corpus)
    assert fitted.privacy_guarantee_ == PrivateCGSLDA(3, max_iter=3).privacy_cost()
    assert str(CANARY) not in str(fitted.privacy_guarantee_)


LOCAL = ALLOWED | {"bit_guarantee_", "stream_prior_", "stream_variance_", "word_rates_", "n_batches_"}


@pytest.mark.parametrize("reconstruction", ["likelihood", "bayes", "moment"])
def test_reports_are_all_that_a_local_fit_has_seen(corpus, reconstruction):
    model = LocalPrivateLDA(3, max_iter=3, reconstruction=reconstruction)
    for fit in (model.fit, model.partial_fit):
        fit(corpus)
        assert set(vars(model)) - set(model.get_params()) <= LOCAL
        assert list(found_in(model, corpus)) == []
        assert not numbers_in_pickle(model) & secrets(corpus)[0]


def test_a_randomizer_keeps_the_number_of_words(corpus):
    randomizer = LocalRandomizer().fit(corpus)
    reports = randomizer.transform(corpus)
    assert set(vars(randomizer)) - set(randomizer.get_params()) == {"n_features_in_"}
    assert reports.shape == corpus.shape and set(reports.data) == {1}  # what is sent says nothing of counts


@pytest.mark.parametrize("model", [PrivateCGSLDA(3, max_iter=3), VIPSLDA(3, max_iter=3)])
def test_a_plot_holds_what_the_model_released(corpus, model):
    """Neither the display nor what it draws: words and weights of topics."""
    display = TopWordsDisplay.from_estimator(
        model.fit(corpus), n_words=4, ax=Figure().subplots(1, 3), feature_names=[f"w{i}" for i in range(N_WORDS)]
    )
    drawn = [float(bar.get_width()) for axes in np.ravel(display.axes_) for bar in axes.patches]
    numbers = secrets(corpus)[0]
    assert len(drawn) == 12 and not {round(width) for width in drawn} & numbers
    for name, value in vars(display).items():
        if not name.endswith("_"):  # what is kept beside the artists
            holder = PrivateCGSLDA()
            holder.trace_ = value
            assert list(found_in(holder, corpus)) == [], name


def test_an_interrupted_fit_leaves_no_state(corpus):
    def interrupt(report):
        raise KeyboardInterrupt

    model = PrivateCGSLDA(3, max_iter=3, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(corpus)
    assert set(vars(model)) - PARAMETERS - {"_fitted_parameters"} == {"n_features_in_"}


def test_the_search_finds_what_it_looks_for(corpus):
    """Without noise there is no privacy, and every kind of trace is noticed."""
    exact = PrivateCGSLDA(3, max_iter=3, epsilon=float("inf"), random_state=0).fit(corpus)
    exact.components_ = exact.components_ - 0.01
    assert "exact counts" in set(found_in(exact, corpus))
    for trace in (
        corpus,
        {"deep": [corpus.indptr]},
        np.random.default_rng(0),
        CANARY,
        np.zeros((N_DOCUMENTS, 3)),
        np.array([0.5, CANARY]),
    ):
        exact.trace_ = trace
        hidden = PrivateCGSLDA()
        hidden.trace_ = trace
        assert list(found_in(hidden, corpus))


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_published_laplace_last_tells_every_word_total(corpus, epsilon):
    """Its claimed epsilon notwithstanding: columns of `components_` sum to exact counts."""
    with pytest.warns(PrivacyLeakWarning, match="exact number of times each word occurs"):
        model = PriTopLDA(3, max_iter=2, epsilon=epsilon).fit(corpus)
    totals = np.rint((model.components_ - 0.01).sum(axis=0)).astype(int)
    np.testing.assert_array_equal(totals, corpus.toarray().sum(axis=0))
    assert "exact counts" in set(found_in_released(model, corpus))


def found_in_released(model, X):
    """Look behind the prior, as everyone can."""
    model.components_ = np.rint(model.components_ - 0.01)
    return found_in(model, X)


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@pytest.mark.parametrize("kind", [CDPLDA, CDPLDAPlus, InherentPrivacyLDA, PriTopLDA])
def test_the_published_forms_leave_no_tokens_either(corpus, kind):
    model = kind(3, max_iter=2).fit(corpus)
    assert set(vars(model)) - set(model.get_params()) <= ALLOWED | {"inherent_privacy_"}
    assert not any(N_DOCUMENTS in np.shape(value) for value in values(vars(model)) if isinstance(value, np.ndarray))


@pytest.mark.filterwarnings("ignore:no word stands out:UserWarning")
@pytest.mark.parametrize("noise", ["statistics", "units"])
def test_a_private_fit_on_units_keeps_only_what_it_released(corpus, noise):
    counts = corpus.toarray()
    units = UnitMatrix(
        np.arange(0, 2 * N_DOCUMENTS + 1, 2), np.repeat(counts // 2, 2, axis=0) + (counts % 2).repeat(2, 0)
    )
    model = PCTD(3, max_iter=3, noise_on=noise).fit(units)
    names = set(model.get_params())
    for _ in range(2):
        assert set(vars(model)) - names <= ALLOWED
        for X in (corpus, units.to_counts()):
            assert list(found_in(model, X)) == []
            assert not numbers_in_pickle(model) & (secrets(X)[0] | {units.n_units})
        model.fit_transform(units)
        model.score(units)
        model = pickle.loads(pickle.dumps(model))


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")
@pytest.mark.parametrize("support", ["all", "observed"])
def test_the_published_units_leave_no_tokens_either(corpus, support):
    units = UnitMatrix(np.arange(N_DOCUMENTS + 1), corpus)
    model = PublishedPCTD(3, max_iter=2, noise_support=support).fit(units)
    assert set(vars(model)) - set(model.get_params()) <= ALLOWED
    assert not any(N_DOCUMENTS in np.shape(value) for value in values(vars(model)) if isinstance(value, np.ndarray))
