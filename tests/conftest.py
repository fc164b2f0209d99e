"""What several test files share: programs that find the package, its public estimators, corpora."""

import hashlib
import importlib
import inspect
import itertools
import os
import pkgutil
import re
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read once: threads of tests that run beside others must not spin

import numpy as np
import pytest
from internals import local_channel, noise
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.base import BaseEstimator, clone

import skdplda
from skdplda.datasets import make_lda_corpus
from skdplda.privacy import Randomness
from skdplda.semantics import WordVectorEmbedder

# Programs that tests start must use the package under test. `python -c` looks into the current folder first, and at the
# root of a clone that folder holds the source, whose kernels are not compiled.
os.environ["PYTHONSAFEPATH"] = "1"
# The source that is tested: beside the tests in a clone, wherever the package is installed; else the installed package.
PACKAGE = Path(__file__).resolve().parents[1] / "skdplda"
PACKAGE = PACKAGE if PACKAGE.is_dir() else Path(skdplda.__file__).resolve().parent
home = Path(skdplda.__file__).resolve().parents[1]
if home == Path(__file__).resolve().parents[1]:  # kernels compiled in place, perhaps without an installation
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home), os.environ.get("PYTHONPATH"))))

# Where this is set, as in `.ci/run` and the workflows, a test that is skipped for another reason than these has failed.
ALL_TESTS = "SKDPLDA_ALL_TESTS" in os.environ
MAY_BE_SKIPPED = [
    r"fit releases nothing",  # combinations that have nothing to test
    r"the selector takes weights of either sign",
    r"SCIPY_ARRAY_API is not set|LocalRandomizer is non deterministic",  # of scikit-learn's checks
    r"could not import 'opendp",  # 265 MB, by hand
    r"could not import '(jieba|janome)",  # 20 MB each, by hand
    *([] if "SKDPLDA_DATA" in os.environ else [r"SKDPLDA_DATA (does not name|names no|is not)"]),
    *([r"could not import 'gensim"] if sys.version_info >= (3, 14) else []),  # it has no wheels there
]


def strict(report):
    """Make a report of a skipped test one of a failure, unless it may be skipped."""
    if ALL_TESTS and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(re.search(pattern, reason) for pattern in MAY_BE_SKIPPED):
            report.outcome = "failed"
            report.longrepr = f"skipped, where all tests must run (MAY_BE_SKIPPED of tests/conftest.py): {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return strict((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return strict((yield))


OWN = Randomness.__init__, np.random.default_rng, np.random.SeedSequence
OWN_KEYS = {module: module._key_of for module in (noise, local_channel)}
SHIFT = 0  # of all seeds


def pytest_addoption(parser):
    """Tests that hold for one seed by luck fail for another: `pytest --shift-seeds 1`, 2, 3, ..."""
    parser.addoption("--shift-seeds", type=int, default=0, metavar="N", help="change every whole number that is a seed")


def shifted(seed):
    """Return another seed under `--shift-seeds`, as tests give it to kernels themselves; what is none stays."""
    whole = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0
    return int(seed) + SHIFT if SHIFT and whole else seed


class Entropy:
    """What tests get where a fit takes the system's entropy: of each test its own, and the same in every run.

    No test fails by chance then, on any machine. Programs that a test starts have the system's.
    """

    place, numbers = "", itertools.count()

    def draw(self):
        """Return 32 bytes."""
        forked = os.getpid() != TESTS
        return hashlib.sha256(f"{self.place} {next(self.numbers)} {SHIFT} {forked}".encode()).digest()

    @contextmanager
    def of(self, place):
        """Draw what belongs to a test or a fixture."""
        before, (self.place, self.numbers) = (self.place, self.numbers), (place, itertools.count())
        try:
            yield
        finally:
            self.place, self.numbers = before


ENTROPY, TESTS = Entropy(), os.getpid()


def _begin(self, random_state, user=""):
    OWN[0](self, shifted(random_state), user)
    if random_state is None:
        self.root = ENTROPY.draw()


def _generator(seed=None):
    return OWN[1](list(ENTROPY.draw()) if seed is None else shifted(seed))


def _key_of(module, seed):
    return np.frombuffer(ENTROPY.draw(), "<u4").astype(np.uint32) if seed is None else OWN_KEYS[module](shifted(seed))


def pytest_configure(config):
    """Replace the system's entropy, and shift the seeds of estimators, samplers and generators."""
    global SHIFT
    SHIFT = 1_000_003 * config.getoption("--shift-seeds")
    Randomness.__init__, np.random.default_rng = _begin, _generator
    for module in OWN_KEYS:
        module._key_of = partial(_key_of, module)
    if SHIFT:
        np.random.SeedSequence = lambda entropy=None, **options: OWN[2](shifted(entropy), **options)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with ENTROPY.of(item.nodeid):
        np.random.seed(list(ENTROPY.draw()))  # noqa: NPY002, of scikit-learn's `random_state=None`
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    with ENTROPY.of(f"{fixturedef.baseid} {fixturedef.argname} {getattr(request, 'param_index', 0)}"):
        return (yield)


@pytest.fixture
def own_seeds(monkeypatch):
    """Do not shift seeds: for numbers that are printed somewhere, and for what other processes find."""
    monkeypatch.setitem(globals(), "SHIFT", 0)


@pytest.fixture
def system_entropy(monkeypatch):
    """Take the system's entropy: for what must be fresh in each process, and for what becomes of a key."""
    monkeypatch.setattr(Randomness, "__init__", OWN[0])
    for module, key_of in OWN_KEYS.items():
        monkeypatch.setattr(module, "_key_of", key_of)


def public_estimators():
    """Return the public estimator classes that state a price, wherever they stand in the package."""
    names = [module.name for module in pkgutil.iter_modules(skdplda.__path__) if not module.name.startswith("_")]
    packages = [skdplda, *(importlib.import_module(f"skdplda.{name}") for name in names)]
    things = [getattr(package, name) for package in packages for name in getattr(package, "__all__", ())]
    kinds = {thing for thing in things if inspect.isclass(thing) and issubclass(thing, BaseEstimator)}
    found = [kind for kind in kinds if hasattr(kind, "privacy_cost") and not kind.__name__.startswith("Base")]
    return sorted(found, key=lambda kind: kind.__name__)


def small(kind, **parameters):
    """Return an estimator of a class, with few topics and rounds where it has such parameters."""
    known = inspect.signature(kind).parameters
    settings = {"n_components": 3, "max_iter": 3, **parameters}
    needed = {"estimator": skdplda.PrivateCGSLDA(max_iter=2), "param_grid": {"n_components": [2, 3]}}
    needed["embedder"] = WordVectorEmbedder({"word": [1.0]})
    needed = {name: value for name, value in needed.items() if name in known}
    return kind(**needed, **{name: value for name, value in settings.items() if name in known})


@pytest.fixture(params=public_estimators(), ids=lambda kind: kind.__name__)
def private_estimator(request):
    """A small unfitted estimator of each public class that states a price."""
    return clone(small(request.param))


def in_a_child(work):
    """Return what `work` does in a forked process: what it says, or the exception's text."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            said = str(work())
        except Exception as error:
            said = str(error)
        finally:
            os.write(write, said.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


class Untouchable:
    """Data whose every attribute and length raises."""

    def __getattribute__(self, name):
        raise AssertionError(f"the data were asked for {name}")

    def __len__(self):
        raise AssertionError("the data were asked for their length")


@pytest.fixture(scope="session")
def untouchable():
    """Data that a refusal must not read."""
    return Untouchable


@pytest.fixture(scope="session")
def check_refused():
    """Check that an estimator refuses its parameters, with words that have ".*" for what may stand between them."""

    def check(estimator, said):
        pattern = ".*".join(re.escape(part) for part in said.split(".*"))
        for call in (estimator.privacy_cost, lambda: estimator.fit(Untouchable())):
            with pytest.raises(ValueError, match=pattern):
                call()

    return check


@pytest.fixture(scope="session")
def check_threads():
    """Check that a seed makes the same model, and proportions, for any number of threads, and another seed another."""

    def check(estimator, data):
        models = [clone(estimator).set_params(random_state=3, n_jobs=n_jobs).fit(data) for n_jobs in (1, 2, 4, 1)]
        for other in models[1:]:
            np.testing.assert_array_equal(other.components_, models[0].components_)
            np.testing.assert_array_equal(other.transform(data), models[0].transform(data))
        changed = clone(estimator).set_params(random_state=4).fit(data)
        assert not np.array_equal(changed.components_, models[0].components_)

    return check


@pytest.fixture(scope="module")
def corpus():
    """A corpus of three planted topics. Files that need another one define their own."""
    return make_lda_corpus(120, 40, 3, mean_length=30, random_state=0)


@pytest.fixture(scope="module")
def texts(corpus):
    """The documents as strings of words."""
    return [" ".join(np.repeat(corpus.feature_names, row)) for row in corpus.data.toarray()]


@pytest.fixture(scope="session")
def stated_noise():
    """What `noise_deviation` must say of the adaptive form, from the theory pages alone.

    One Gaussian mechanism of multiplier z costs the whole (Balle and Wang 2018, Theorem 8). Word counts take 6 % of its
    precision 1 / z^2, frequent words, where they come first, 10 %, votes for a prior 1.5 %, and votes for topics 2 % if
    there are two rounds of these or more. Topics divide the rest with shares that grow tenfold, or fourfold for six
    rounds or fewer. Where frequent words come first, words may take a quarter of what is left after the first round. A
    document of 25 different words, of norm 5, counts each once; the model weighs a release by its precision and forgets
    a fifth a round.
    """

    def stated(epsilon, delta, n_rounds, frequent=True):
        def excess(z):
            return norm.cdf(0.5 / z - epsilon * z) - np.exp(epsilon) * norm.cdf(-0.5 / z - epsilon * z) - delta

        share = (10.0 if n_rounds > 6 else 4.0) ** (np.arange(n_rounds) / max(n_rounds - 1, 1))
        share *= (1 - 0.06 - 0.015 - 0.1 * frequent - 0.02 * (n_rounds > 1)) / share.sum()
        share[1:] *= 0.75 if frequent else 1
        deviation = 5 * brentq(excess, 0.05, 1000, xtol=1e-13) / np.sqrt(share)
        weight = 0.8 ** np.arange(n_rounds)[::-1] * share
        in_model = np.sqrt(((weight * deviation) ** 2).sum()) / weight.sum()
        return {"first_round": deviation[0], "last_round": deviation[-1], "in_model": in_model, "rounds": n_rounds}

    return stated
