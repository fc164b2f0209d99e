"""A guarantee names what the fitted estimator holds: all that is released, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from skdplda import VIPSLDA, LocalPrivateLDA, PublicPrior
from skdplda.privacy import CURATOR, check_released

WORDS = [f"word{w}" for w in range(12)]
pytestmark = [
    pytest.mark.filterwarnings("ignore:X is a plain document-term matrix:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*clusters do not stand out:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*(published form|path of 2016):skdplda.PrivacyLeakWarning"),
]


@pytest.fixture(scope="module")
def corpus():
    return sp.csr_array(np.random.default_rng(0).poisson(0.5, size=(600, len(WORDS))).astype(np.int32))


def names_of(released):
    """Return the names of attributes among what is released, and those that depend on what `fit` is given."""
    entries = [entry.split(" with ") for entry in released]
    names = {entry[0]: len(entry) > 1 for entry in entries if entry[0].endswith("_") and " " not in entry[0]}
    return set(names), {name for name, depends in names.items() if depends}


def declared(model):
    """Return why an attribute of a class is not in `released`, by name."""
    found = {"privacy_guarantee_": "", "n_features_in_": "", "feature_names_in_": ""}
    for kind in reversed(type(model).__mro__):
        found |= vars(kind).get("_beside_released", {})
    return found


def check_statement(model):
    """Compare the attributes with the statement, and see that any difference would be refused."""
    held = {name for name in vars(model) if name.endswith("_")}
    beside = declared(model)
    if not hasattr(model, "privacy_guarantee_"):  # its fit learns nothing
        assert held <= set(beside)
        return
    guarantee = model.privacy_guarantee_
    told, depends = names_of(guarantee.released)
    assert held - set(beside) == told - (depends - held)
    for name in held - set(beside):
        assert_refused(model, name, released=tuple(entry for entry in guarantee.released if not entry.startswith(name)))
    assert_refused(model, "word_counts_ is released", released=(*guarantee.released, "word_counts_"))
    if CURATOR in {beside[name] for name in held & set(beside)}:
        assert_refused(model, "not_covered", not_covered=())
    model.word_counts_ = 0
    with pytest.raises(RuntimeError, match="whether it is released; it does not of word_counts_"):
        check_released(model)
    del model.word_counts_
    check_released(model)


def assert_refused(model, said, **changes):
    """Check that a model with a changed guarantee is refused."""
    stored, guarantee = dict(vars(model)), model.privacy_guarantee_
    if "privacy_guarantee_" not in stored:  # that of a step
        return
    model.privacy_guarantee_ = replace(guarantee, **changes)
    with pytest.raises(RuntimeError, match=said):
        check_released(model)
    model.privacy_guarantee_ = guarantee


def test_a_statement_names_what_a_fit_of_any_public_estimator_holds(private_estimator, corpus):
    X = corpus
    if private_estimator.__sklearn_tags__().input_tags.string:
        X = [" ".join(np.repeat(WORDS, row)) for row in corpus.toarray()]
    if "random_state" in private_estimator.get_params(deep=False):
        private_estimator.random_state = None
    check_statement(private_estimator.fit(X))


@pytest.mark.parametrize("epsilon", [1.0, np.inf])
def test_it_names_what_a_public_estimator_holds_after_every_batch(private_estimator, corpus, epsilon):
    if "learning_method" in private_estimator.get_params(deep=False):
        private_estimator.set_params(learning_method="online", sampling_rate=0.5)
    if not hasattr(private_estimator, "partial_fit"):
        assert not hasattr(type(private_estimator), "partial_fit") or "learning_method" in dir(private_estimator)
        return
    private_estimator.set_params(epsilon=epsilon)
    for _ in range(2):
        check_statement(private_estimator.partial_fit(corpus))


@pytest.mark.parametrize("epsilon", [3.0, np.inf])
@pytest.mark.parametrize("priors", [{"doc_topic_prior": "infer"}, {"topic_word_prior": "infer"}, {}])
def test_it_names_priors_that_are_inferred(corpus, epsilon, priors):
    check_statement(VIPSLDA(3, epsilon=epsilon, max_iter=2, **priors).fit(corpus))
    check_statement(VIPSLDA(12, epsilon=epsilon, max_iter=2, **priors).fit(corpus))


@pytest.mark.filterwarnings("ignore:the public prior knows none:UserWarning")
@pytest.mark.parametrize("known", [WORDS[:2], ["nowhere"]])
def test_it_names_priors_in_the_order_of_seeds(corpus, known):
    prior = PublicPrior.from_seed_words({"first": known}).for_words(WORDS)
    model = VIPSLDA(3, epsilon=3.0, max_iter=2, doc_topic_prior=[0.1, 0.2, 0.3], prior=prior).fit(corpus)
    assert "doc_topic_prior_" in model.privacy_guarantee_.released
    check_statement(model)


def test_a_public_corpus_changes_no_statement(corpus):
    check_statement(LocalPrivateLDA(3, max_iter=2).fit_prior(corpus))


def test_a_model_with_one_topic_has_no_noise_to_tell_of(corpus):
    check_statement(LocalPrivateLDA(1, max_iter=2).fit(corpus))
