"""The examples of docstrings run, and say what they print, in every module of the installed package."""

import doctest
import importlib
import pkgutil
import warnings
from pathlib import Path

import pytest

import skdplda

pytestmark = pytest.mark.usefixtures("own_seeds")  # examples print what follows from theirs

MODULES = ["skdplda"] + [
    module.name
    for module in pkgutil.walk_packages(skdplda.__path__, "skdplda.")
    if not module.name.endswith("__main__") and "._kernels" not in module.name
]


def examples_of(name):
    """Return the doctests of one module, without those of names that it imports."""
    module = importlib.import_module(name)
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_print_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in examples_of(name):
        runner.run(test, out=report.append)
    assert not runner.summarize(verbose=False).failed, "".join(report)


PAGES = sorted(path for path in (Path(__file__).parents[1] / "doc").rglob("*.rst") if ">>> " in path.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_pages_print_what_they_say(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.REPORT_ONLY_FIRST_FAILURE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pages show what is printed; seeds and small corpora warn
        failed, attempted = doctest.testfile(str(page), module_relative=False, optionflags=flags, encoding="utf-8")
    assert attempted and not failed


def test_the_examples_are_found():
    """As many as the public docstrings have: none is skipped because its module was not walked."""
    assert sum(len(test.examples) for name in MODULES for test in examples_of(name)) > 200
