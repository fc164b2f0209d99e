"""The recipes of doc/architecture.rst and doc/review.rst name files that are there, and lead where they say.

The toys: an estimator in test_new_estimator.py, a mechanism in test_mechanisms.py, an attack here.
"""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import skdplda.attacks
import skdplda.models
from skdplda import PrivateCGSLDA
from skdplda.attacks import AttackResult, released_topics
from skdplda.privacy import MECHANISMS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "doc/architecture.rst"
needs_pages = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not beside the tests")


def recipes():
    """Return {name: text} of the page's recipes."""
    parts = re.split(r"\nRecipe: (.*)\n-+\n", PAGE.read_text(encoding="utf-8"))[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@needs_pages
def test_each_recipe_lists_files_that_are_there():
    assert set(recipes()) == {"a mechanism", "an estimator", "a question", "an attack"}
    for name, text in recipes().items():
        paths = [path for path in re.findall(r"``((?:skdplda|tests|doc)/\S+)``", text) if "name" not in path]
        assert len(paths) >= 3, name
        assert [path for path in paths if not (ROOT / path).exists()] == [], name


@needs_pages
def test_the_page_for_reviewers_names_files_that_are_there():
    page = (ROOT / "doc/review.rst").read_text(encoding="utf-8")
    paths = set(re.findall(r"``((?:skdplda|tests|examples|doc|benchmarks)/\S+)``", page))
    assert len(paths) > 30 and [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    theorems = set(re.findall(r":doc:`theory/(\w+)`", page))
    assert [name for name in sorted(theorems) if not (ROOT / f"doc/theory/{name}.rst").exists()] == []


@needs_pages
@pytest.mark.parametrize("package", [skdplda.attacks, skdplda.models], ids=lambda package: package.__name__)
def test_the_reference_has_each_public_name(package):
    page = (ROOT / "doc/api.rst").read_text(encoding="utf-8")
    missing = [name for name in package.__all__ if not re.search(rf"\b{name}\b", page)]
    assert [name for name in missing if not name.startswith("Base")] == []  # those are for authors of estimators


@needs_pages
@pytest.mark.parametrize("name", list(MECHANISMS))
def test_the_theory_of_noise_has_each_mechanism(name):
    page = (ROOT / "doc/theory/noise.rst").read_text(encoding="utf-8").lower()
    assert MECHANISMS[name].label.lower() in page


def rare_word_attack(topic_word, X, members):
    """A toy attack: a document is called a member if its rarest word is probable under the released topics."""
    probability = np.asarray(topic_word).mean(axis=0)
    scores = [np.log(probability[X.indices[a:b]]).min(initial=0) for a, b in zip(X.indptr, X.indptr[1:], strict=False)]
    return AttackResult(scores, members, "rare word")


@pytest.mark.filterwarnings("ignore::skdplda.PrivacyLeakWarning")  # seeds: no false alarm
def test_a_new_attack_is_a_function_of_what_was_released():
    """It needs no counts of the fit and no base class, finds members without noise, and none with noise."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(np.hstack([rng.poisson(1.0, (80, 8)), np.eye(80, dtype=int) * 3]).astype(np.int32))
    members = rng.permutation(80) < 40
    exact = PrivateCGSLDA(2, epsilon=np.inf, max_iter=10, random_state=0).fit(X[members])
    assert rare_word_attack(released_topics(exact), X, members).auc > 0.95
    private = PrivateCGSLDA(2, epsilon=1.0, max_iter=10, random_state=0).fit(X[members])
    assert abs(rare_word_attack(released_topics(private), X, members).auc - 0.5) < 0.3
