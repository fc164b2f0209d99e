"""Lower bounds hold where they must, claims that fail are refuted, and no mechanism goes without an audit."""

import inspect
import math
import pkgutil
import re
from copy import copy
from dataclasses import replace
from functools import cache
from importlib import import_module
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from broken_variants import longer
from conftest import ENTROPY
from internals import MECHANISM_AUDITS as MECHANISMS
from internals import (
    GibbsEStep,
    accounted,
    audited_estimators,
    best_threshold,
    contribution,
    drawn_reports,
    drawn_topics,
    is_of_package,
    mu_lower_bound,
    one_run_p_value,
    replaced_token,
    report_law,
)
from scipy.stats import binom, norm
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.utils._param_validation import StrOptions

import skdplda
from skdplda import (
    HDPLDA,
    VIPSLDA,
    DPCountVectorizer,
    DPVocabularySelector,
    LocalPrivateLDA,
    PrivacyAccountant,
    PrivacyGuarantee,
    PrivateCGSLDA,
    published,
)
from skdplda.audit import (
    audit,
    epsilon_lower_bound,
    mechanism_audits,
    one_run_lower_bound,
    quick_audit,
)
from skdplda.local import LocalRandomizer
from skdplda.model_selection import PrivateSearchCV

CERTAIN = 1 - 1e-6
X = sp.csr_array(np.random.default_rng(0).poisson(1.0, (30, 6)).astype(np.int32))
SHARE = re.compile(r"(\S+) of the bound")


class Noisy:
    """Releases word counts with Gaussian noise of a known size, whatever it claims."""

    def __init__(self, noise=1.0, claim=1.0, tokens=1, adjacency="add-remove"):
        self.noise, self.claim, self.tokens, self.adjacency = noise, claim, tokens, adjacency

    def get_params(self, deep=True):
        return {name: getattr(self, name) for name in ("noise", "claim", "tokens", "adjacency")}

    def set_params(self, **parameters):
        vars(self).update(parameters)
        return self

    def privacy_cost(self):
        return PrivacyGuarantee(
            epsilon=self.claim, delta=1e-10, adjacency=self.adjacency, status="proven", reference="so it says"
        )

    def fit(self, X, y=None):
        counts = np.asarray(np.minimum(X.toarray(), self.tokens).sum(axis=0), dtype=float)
        self.components_ = (counts + np.random.default_rng().normal(scale=self.noise, size=len(counts)))[None]
        return self


def test_rates_give_the_bound_by_hand():
    hit, alarm = 0.025 ** (1 / 100), 1 - 0.025 ** (1 / 100)
    assert epsilon_lower_bound(100, 100, 0, 100) == pytest.approx(math.log(hit / alarm))
    assert epsilon_lower_bound(100, 100, 0, 100, delta=0.1) == pytest.approx(math.log((hit - 0.1) / alarm))
    assert epsilon_lower_bound(100, 100, 0, 100, delta=1.0) == 0
    assert mu_lower_bound(100, 100, 0, 100) == pytest.approx(norm.ppf(hit) - norm.ppf(alarm))
    assert epsilon_lower_bound(0, 100, 100, 100) == mu_lower_bound(0, 100, 100, 100) == 0
    # absence may be what is sure: few false alarms are not needed
    assert epsilon_lower_bound(1000, 1000, 500, 1000) > math.log(0.4 / 0.005)


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
def test_bounds_exceed_the_truth_no_more_often_than_they_say(epsilon):
    """Randomized response: the law of hits is known, so the share of wrong bounds is summed, not sampled."""
    truth, trials = 1 / (1 + math.exp(-epsilon)), 40
    law = binom.pmf(np.arange(trials + 1), trials, truth)
    wrong = sum(
        law[hits] * law[trials - alarms]
        for hits in range(trials + 1)
        for alarms in range(trials + 1)
        if epsilon_lower_bound(hits, trials, alarms, trials, confidence=0.9) > epsilon
    )
    assert wrong <= 0.1
    wrong = sum(law[v] for v in range(trials + 1) if one_run_lower_bound(trials, trials, v, confidence=0.9) > epsilon)
    assert wrong <= 0.1


def test_one_run_bound_keeps_the_delta_term():
    assert one_run_p_value(100, 20, 20, 0.0) == pytest.approx(2.0**-20)
    assert one_run_p_value(100, 20, 0, 1.0) == 1
    v, m, r, epsilon, delta = 18, 100, 20, 0.5, 1e-3
    law = binom(r, 1 / (1 + math.exp(-epsilon)))
    steepest = max((law.sf(v - i - 1) - law.sf(v - 1)) / i for i in range(1, m + 1))
    expected = law.sf(v - 1) + 2 * m * delta * steepest
    assert one_run_p_value(m, r, v, epsilon, delta) == pytest.approx(expected)
    bounds = [one_run_lower_bound(1000, 100, 95, delta=delta) for delta in (0.0, 1e-5, 1e-3, 0.1)]
    assert bounds == sorted(bounds, reverse=True) and bounds[0] > bounds[2] and bounds[-1] == 0
    assert one_run_lower_bound(100, 100, 50) == 0


def test_one_run_p_value_bounds_a_mechanism_that_fails_with_delta():
    """Each coin is told with probability delta and else guessed, or all are with that probability together."""
    m, delta = 10, 0.01
    law = binom(m, delta + (1 - delta) / 2)
    for v in range(m + 1):
        p = one_run_p_value(m, m, v, 0.0, delta)
        assert p >= min(1.0, law.sf(v - 1)) - 1e-12
        assert p >= delta + (1 - delta) * binom.sf(v - 1, m, 0.5) - 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: epsilon_lower_bound(5, 4, 0, 4), "hits must be from 0"),
        (lambda: epsilon_lower_bound(0, 0, 0, 4), "hits must be from 0"),
        (lambda: epsilon_lower_bound(1, 4, 0, 4, delta=2.0), "delta must be"),
        (lambda: mu_lower_bound(1, 4, 0, 4, confidence=1.0), "confidence must be"),
        (lambda: one_run_lower_bound(10, 11, 3), "n_correct <= n_guesses <= n_canaries"),
        (lambda: one_run_p_value(10, 10, 3, -1.0), "epsilon must be"),
        (lambda: audit(PrivateCGSLDA(), X, method="two-run"), "method must be"),
        (lambda: audit(object(), X), "claims nothing"),
        (lambda: audit(PrivateCGSLDA(), X, n_guesses=2000), "n_guesses must be from 2"),
        (
            lambda: audit(np.ones((2, 6)), X, claim=(1.0, 0.0), members=np.arange(30) < 15, n_guesses=1),
            "n_guesses must be from 2 to n_canaries=30",
        ),
        (lambda: audit(PrivateCGSLDA(), X, method="repeated", n_fits=4), "n_fits must be at least 8"),
        (lambda: audit(PrivateCGSLDA(), X, gdp=True), "gdp is for"),
        (lambda: audit(PrivateCGSLDA(mechanism="laplace"), X, method="repeated", gdp=True), "gdp needs"),
        (lambda: audit(PrivateCGSLDA(), X, canary_tokens=0), "canary_tokens must be"),
        (lambda: audit(PrivateCGSLDA(), X, canary_tokens=2**31), "canary_tokens must be"),
        (lambda: audit(PrivateCGSLDA(), X, n_canaries=20.5), "n_canaries must be an integer; got 20.5"),
        (lambda: audit(PrivateCGSLDA(), X, method="repeated", n_fits=9.5), "n_fits must be an integer"),
        (lambda: audit(make_pipeline(DPVocabularySelector(), PrivateCGSLDA()), X), "audit its private steps"),
        (lambda: audit(DPVocabularySelector(), X), "releases words and no topics"),
        (lambda: audit(DPCountVectorizer(), X), "releases words and no topics"),
        (lambda: mechanism_audits(["Nothing"]), "no audits of Nothing"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_a_false_claim_is_refuted_and_a_true_one_is_not(adjacency):
    for options in ({"n_canaries": 1000}, {"method": "repeated", "n_fits": 400}):
        false = audit(Noisy(0.1, 0.5, 1, adjacency), X, confidence=CERTAIN, verbose=0, **options)
        assert false.violated and false.lower_bound > 0.5 and "VIOLATED" in str(false)
        true = audit(Noisy(20.0, 0.5, 1, adjacency), X, confidence=CERTAIN, verbose=0, **options)
        assert not true.violated and true.lower_bound <= 0.5 and "consistent" in str(true)
    assert true.to_dict()["adjacency"] == adjacency


def test_gaussian_form_is_sharper(capsys):
    honest = PrivateCGSLDA(1, epsilon=8.0, max_iter=1)
    options = {"method": "repeated", "n_fits": 200, "confidence": CERTAIN, "canary_tokens": 1}
    report = audit(honest, X, gdp=True, **options)
    assert not report.violated and report.lower_bound <= 8.0
    assert capsys.readouterr().out.splitlines()[-1].startswith("verdict      consistent")


def test_a_bad_confidence_is_refused_before_anything_is_spent():
    message = "confidence must be between 0 and 1"
    with PrivacyAccountant(epsilon=100.0, delta=0.1) as ledger, pytest.raises(ValueError, match=message):
        audit(PrivateCGSLDA(1, max_iter=1), X, confidence=1.5)
    assert not ledger.ledger


def test_what_an_estimator_without_own_topics_claims_is_audited_too():
    """A claim that grows with the vocabulary counts the canaries' words; a search is judged by its best model."""
    local = audit(LocalPrivateLDA(1, max_iter=1), X, n_canaries=20, verbose=0)
    assert local.claim.epsilon == LocalPrivateLDA().privacy_cost(n_words=6 + 2 * 20).epsilon
    search = PrivateSearchCV(PrivateCGSLDA(max_iter=1), {"n_components": [1, 2]}, mean_trials=1.5)
    report = audit(search, X, n_canaries=200, confidence=CERTAIN, verbose=0)
    assert report.claim == search.privacy_cost() and not report.violated


def test_a_threshold_is_chosen_where_fits_are_too_few_to_show_anything():
    scores, present = np.array([0.0, 3.0, 1.0, 2.0]), np.array([False, True, False, True])
    assert best_threshold(scores, present, epsilon_lower_bound) == 1.5


def test_fits_are_charged_to_an_open_ledger_and_seeds_are_removed():
    seeds = []

    class Noted(PrivateCGSLDA):
        def fit(self, X, y=None, groups=None):
            seeds.append(self.random_state)
            return super().fit(X, groups=groups)

    model = Noted(1, epsilon=1.0, max_iter=1, random_state=0)
    with PrivacyAccountant(epsilon=100.0, delta=0.1, accept_claimed=True) as ledger:
        audit(model, X, method="repeated", n_fits=8, verbose=0)
    assert len(ledger.ledger) == 8 and model.random_state == 0
    assert seeds == [None] * 8


AUDITED = [name for name, kind in audited_estimators().items() if is_of_package(kind)]


@cache
def audits_of(name):
    with ENTROPY.of(f"audits of {name}"):
        return mechanism_audits([name])


@pytest.mark.parametrize("name", AUDITED)
def test_proven_mechanisms_survive_every_audit(name):
    found = audits_of(name)
    assert found and not [one for one in found if one.status == "proven" and one.broken]


@pytest.fixture(scope="module")
def findings():
    found = [one for name in AUDITED for one in audits_of(name)]
    assert any(one.status == "proven" for one in found)
    return found


def claimed_but_conservative(findings):
    """Mechanisms whose proof fails and whose number holds: a proven account of the same noise gives no more."""
    return {f.mechanism for f in findings if f.status != "proven" and f.check == "accounted" and not f.broken}


def test_every_claim_that_fails_is_broken_by_an_audit(findings):
    names = {found.mechanism for found in findings if found.status != "proven"} - claimed_but_conservative(findings)
    broken = {found.mechanism for found in findings if found.broken}
    assert {name.partition("(")[0] for name in names} == set(published.__all__) & set(MAKERS) - {"PublishedVIPSLDA"}
    assert names <= broken


def test_which_claims_are_conservative_and_that_nothing_breaks_them(findings):
    """The paths of 2016; and PCTD as published with noise on all counts, whose number is not the paper's but ours."""
    names = claimed_but_conservative(findings)
    claimed = {f.mechanism for f in findings if f.mechanism.startswith("PublishedVIPSLDA(")}
    assert {name.split("'")[1] for name in claimed} == set(published.CLAIMED_ACCOUNTINGS)
    assert names == claimed | {"PublishedPCTD(noise_support='all')"}
    assert not [found for found in findings if found.broken and found.mechanism in names]


@pytest.mark.parametrize("accounting", published.CLAIMED_ACCOUNTINGS)
def test_noise_of_a_conservative_path_by_the_closed_form(accounting):
    """Three rounds of Gaussian noise without sampling are one Gaussian mechanism, whose delta is known exactly."""
    estimator = published.PublishedVIPSLDA(2, epsilon=0.5, delta=1e-10, max_iter=3, accounting=accounting)
    mu = math.sqrt(3) / estimator.privacy_cost().event.event.noise_multiplier
    delta = norm.cdf(mu / 2 - 0.5 / mu) - math.exp(0.5) * norm.cdf(-mu / 2 - 0.5 / mu)
    assert 0 <= delta < 1e-10
    assert accounted(estimator)[0] is False


def test_noise_that_is_worth_less_than_claimed_is_noticed():
    class Boastful(VIPSLDA):
        def privacy_cost(self):
            cost = copy(super().privacy_cost())
            object.__setattr__(cost, "epsilon", self.epsilon / 2)  # the constructor would refuse it
            return cost

    assert accounted(Boastful(2, epsilon=0.5, max_iter=3))[0] is True


@pytest.mark.parametrize("mechanism", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("max_words_per_document", [None, 1, 2])
def test_reports_that_lose_more_than_claimed_are_noticed(mechanism, max_words_per_document):
    class Boastful(LocalPrivateLDA):
        def privacy_cost(self, n_words=None, *, unit="document"):
            honest = super().privacy_cost(n_words=n_words, unit=unit)
            return replace(honest, epsilon=0.8 * honest.epsilon, event=None)

    estimator = Boastful(
        2, randomizer=LocalRandomizer(1.0, mechanism=mechanism, max_words_per_document=max_words_per_document)
    )
    assert report_law(estimator)[0] and drawn_reports(estimator)[0]


def test_tables_that_lose_more_than_claimed_are_noticed():
    class Boastful(HDPLDA):
        def privacy_cost(self):
            return replace(super().privacy_cost(), epsilon=0.5, event=None)

    assert replaced_token(Boastful(2, noise_epsilon=3.0, inherent_epsilon=0.1, max_iter=10, delta=1e-10))[0]


@pytest.mark.parametrize("count_clip", [None, 3.0])
def test_draws_that_lose_more_than_claimed_are_noticed(count_clip):
    class Boastful(HDPLDA):
        def _plan(self):
            plan = super()._plan()
            return replace(plan, eta=4 * plan.eta)

    assert drawn_topics(Boastful(2, noise_epsilon=1.0, inherent_epsilon=0.5, count_clip=count_clip))[0]


def test_bounds_on_contributions_are_tight(findings):
    """An audit of the bound that never comes near it would notice nothing."""
    for check, least in (
        ("contribution", 0.9),
        ("report_law", 1 - 1e-9),
        ("drawn_reports", 0.6),
        ("drawn_topics", 0.2),
    ):
        shares = [float(share) for f in findings if f.check == check for share in SHARE.findall(f.evidence)]
        assert shares and min(shares) > least


def test_the_bound_is_audited_in_rounds_that_draw_too():
    collect = GibbsEStep.collect
    estimator = PrivateCGSLDA(2, epsilon=1.0, mechanism="laplace")
    assert not contribution(estimator)[0]
    with patch.object(GibbsEStep, "collect", lambda self, *asked: longer(collect(self, *asked))):
        assert contribution(estimator)[0]


def public_packages():
    """Yield every public package, skdplda itself first."""
    yield skdplda
    for found in pkgutil.iter_modules(skdplda.__path__, "skdplda."):
        if not found.name.rpartition(".")[2].startswith("_"):
            yield import_module(found.name)


def makers_of_guarantees():
    """Return the classes of the package that fit and tell a price, by name."""
    public = [getattr(package, name) for package in public_packages() for name in getattr(package, "__all__", ())]
    classes = {kind.__name__: kind for kind in public if inspect.isclass(kind)}
    fitted = {name: kind for name, kind in classes.items() if hasattr(kind, "privacy_cost") and hasattr(kind, "fit")}
    return {name: kind for name, kind in fitted.items() if not name.startswith("Base")}


MAKERS = makers_of_guarantees()
del MAKERS["LocalRandomizer"]  # audited inside of LocalPrivateLDA: each of its laws has rows there, see below
del MAKERS["TextEmbedder"]  # its guarantee is that of its DPCountVectorizer


def offered():
    """Yield (estimator, parameter, option) of each choice that affects privacy."""
    for name, kind in MAKERS.items():
        yield name, None, None
        for parameter, constraints in kind._parameter_constraints.items():
            entry = rf"^ *(?:\w+, )*{parameter}(?:, \w+)* : .*?Affects\s+privacy: (\w+)"
            described = re.search(entry, inspect.getdoc(kind), re.M | re.S)
            if described[1] == "yes":
                for options in constraints:
                    if isinstance(options, StrOptions):
                        yield from ((name, parameter, option) for option in sorted(options.options))


@pytest.mark.parametrize(("name", "parameter", "option"), list(offered()))
def test_no_mechanism_goes_without_an_audit(name, parameter, option):
    assert name in MECHANISMS, f"{name} has no audits: add rows to skdplda/audit/_mechanisms.py"
    if parameter is None:
        return
    default = inspect.signature(MAKERS[name]).parameters[parameter].default
    audited = [parameters.get(parameter, default) for parameters, checks in MECHANISMS[name] if checks]
    assert option in audited, f"{name}({parameter}={option!r}) has no audit: add a row to skdplda/audit/_mechanisms.py"


def test_every_law_of_reports_and_both_methods_of_the_variational_estimator_have_a_row():
    """These choices stand in another object, or are said not to affect privacy: audits look at them all the same."""
    laws = {
        (p["input"], p["randomizer"].mechanism, p["randomizer"].max_words_per_document is None)
        for p, _ in MECHANISMS["LocalPrivateLDA"]
        if "input" in p
    }
    assert laws >= {
        ("counts", "symmetric", True),
        ("counts", "asymmetric", True),
        ("counts", "symmetric", False),
        ("counts", "asymmetric", False),
    }
    assert {law[1:] for law in laws if law[0] == "reports"} == {law[1:] for law in laws if law[0] == "counts"}
    assert {p["learning_method"] for p, _ in MECHANISMS["VIPSLDA"]} == {"batch", "online"}


def test_the_choices_are_seen():
    assert set(MECHANISMS) <= set(MAKERS)
    chosen = {option for name, parameter, option in offered() if name == "PrivateCGSLDA" and option}
    assert chosen == set(skdplda.privacy.MECHANISMS)


def test_what_is_published_is_claimed_and_what_is_safe_is_proven(findings):
    """No option of a class changes that, and the two rooms have no status in common."""
    statuses = {True: set(), False: set()}
    for found in findings:
        statuses[found.mechanism.partition("(")[0] in published.__all__].add(str(found.status))
    assert statuses == {True: {"claimed", "diagnostic"}, False: {"proven"}}


class Exact(BaseEstimator):
    """A model without privacy and without a claim: its counts."""

    def fit(self, X, y=None):
        self.components_ = np.asarray(X.sum(axis=0), dtype=float).reshape(1, -1) + 0.01
        return self


def test_a_claim_about_a_model_that_makes_none_is_refuted():
    assert audit(Exact(), X, claim=(1.0, 1e-9), confidence=CERTAIN, verbose=0).violated
    assert not audit(Exact(), X, claim=(math.inf, 0.0), confidence=CERTAIN, verbose=0).violated


def test_a_bare_topic_matrix_and_a_model_that_is_fitted():
    rng = np.random.default_rng(3)
    documents = sp.csr_array(sp.hstack([rng.poisson(1.0, (400, 6)), 5 * sp.eye_array(400)]).astype(np.int32))
    members = rng.random(400) < 0.5
    model = Exact().fit(documents[members])
    # The bound is 1.27 (over 20 seeds with deviation 0.27).
    options = {"claim": (0.1, 1e-9), "members": members, "confidence": CERTAIN, "verbose": 0, "random_state": 0}
    told = audit(model.components_, documents, **options)
    assert told.violated and told.claim.status == "claimed"
    assert audit(model, documents, **options).lower_bound == told.lower_bound
    assert not audit(np.ones((2, 406)), documents, **options).violated
    for bad in ({"claim": None}, {"claim": 1.0}, {"members": members[:5]}, {"members": members | True}):
        with pytest.raises(ValueError, match=r"claim|members"):
            audit(model, documents, **{**options, **bad})
    with pytest.raises(ValueError, match="members"):
        audit(model.components_, documents, claim=(1.0, 1e-5))


def test_a_quick_audit_fits_once_and_refutes_what_is_false():
    rng = np.random.default_rng(3)
    documents = sp.csr_array(sp.hstack([rng.poisson(1.0, (300, 6)), 5 * sp.eye_array(300)]).astype(np.int32))
    # The bound is 1.0 (over 16 seeds with deviation 0.22).
    assert quick_audit(Exact(), documents, claim=(0.1, 1e-9), confidence=CERTAIN, random_state=0, verbose=0).violated
    report = quick_audit(VIPSLDA(2, epsilon=1.0), documents, confidence=CERTAIN, verbose=0)
    assert not report.violated and "quantile" in report.method
    with pytest.raises(ValueError, match="token"):
        quick_audit(HDPLDA(2), documents, verbose=0)
