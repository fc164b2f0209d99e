"""Every public name imports, is documented, and has one path."""

import importlib
import inspect
import pkgutil
import re
from collections import defaultdict
from enum import Enum

import pytest
from conftest import public_estimators
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions

import skdplda

PACKAGES = ["skdplda"] + [
    f"skdplda.{module.name}" for module in pkgutil.iter_modules(skdplda.__path__) if not module.name.startswith("_")
]
NAMES = [(package, name) for package in PACKAGES for name in getattr(importlib.import_module(package), "__all__", ())]

SHOWN = [getattr(skdplda, name) for name in skdplda.__all__]
ESTIMATORS = [
    thing
    for thing in SHOWN
    if inspect.isclass(thing) and issubclass(thing, BaseEstimator) and hasattr(thing, "privacy_cost")
]


def public(package, name):
    return getattr(importlib.import_module(package), name)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_says_what_it_is_and_lists_its_names(package):
    module = importlib.import_module(package)
    assert module.__doc__
    if not hasattr(module, "__path__"):  # a module of one file, such as the command line
        return
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_every_public_name_is_documented(package, name):
    thing = public(package, name)
    if isinstance(thing, (dict, tuple)):  # a constant has no docstring of its own
        return
    assert inspect.getdoc(thing).splitlines()[0].endswith(".")
    if inspect.isfunction(thing):
        check_function(thing)
    elif inspect.isclass(thing) and not issubclass(thing, (Exception, Enum)) and not is_protocol(thing):
        check_class(thing)


UNTYPED = {"skdplda.plots"}  # the types of these packages are still to come


@pytest.mark.parametrize(("package", "name"), [pair for pair in NAMES if pair[0] not in UNTYPED])
def test_public_signatures_have_types(package, name):
    """Complete ones, so that a type checker looks at what users pass; dunder and private methods may go without."""
    thing = public(package, name)
    if inspect.isclass(thing) and not issubclass(thing, (Exception, Enum, tuple)):
        members = {f"{name}.{key}": member for key, member in vars(thing).items() if public_method(key, member)}
    else:
        members = {name: thing} if inspect.isfunction(thing) else {}
    for path, member in members.items():
        member = getattr(member, "__func__", getattr(member, "fget", getattr(member, "fn", member)))
        signature = inspect.signature(member)
        missing = [p.name for p in signature.parameters.values() if p.annotation is p.empty]
        assert missing in ([], ["self"], ["cls"]), f"{path}: {missing}"
        assert signature.return_annotation is not signature.empty, path


def public_method(name, member):
    kinds = (property, classmethod)
    written = inspect.isfunction(member) or isinstance(member, kinds) or hasattr(member, "fn")
    return written and not name.startswith("_") and getattr(member, "__name__", name) == name


def parameters_of(thing):
    """Return {parameter: its description} of a numpydoc docstring."""
    documented, found, names = inspect.getdoc(thing), {}, []
    _, _, section = documented.partition("Parameters\n----------\n")
    for line in section.splitlines():
        if set(line) == {"-"}:  # the next section
            for name in names:
                del found[name]
            break
        if line and not line.startswith(" "):
            names = [name.strip().lstrip("*") for name in line.partition(" : ")[0].split(",")]
            found.update(dict.fromkeys(names, ""))
        else:
            found.update({name: f"{found[name]} {line.strip()}" for name in names})
    return found


def check_function(function):
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    assert list(parameters_of(function)) == parameters


def is_protocol(kind):
    return getattr(kind, "_is_protocol", False)  # it has no parameters, though its signature shows some


def check_class(kind):
    if not getattr(kind, "_is_protocol", False):  # nobody makes an instance of a protocol
        assert list(parameters_of(kind)) == list(inspect.signature(kind).parameters)
    for name, member in vars(kind).items():
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, (property, classmethod))):
            continue
        assert inspect.getdoc(getattr(kind, name)), f"{kind.__name__}.{name} has no docstring"
        if inspect.isfunction(member):
            check_function(member)


def test_a_name_means_one_thing():
    """A package and the top may both show a name; it is the same object, from one package."""
    objects, packages = defaultdict(set), defaultdict(set)
    for package, name in NAMES:
        objects[name].add(id(public(package, name)))
        if package != "skdplda":
            packages[name].add(package)
    assert [name for name, found in objects.items() if len(found) > 1] == []
    assert [name for name, found in packages.items() if len(found) > 1] == []


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_of_an_estimator_says_whether_it_affects_privacy(estimator):
    described = parameters_of(estimator)
    assert list(described) == list(inspect.signature(estimator).parameters)
    for name, text in described.items():
        assert re.search("Affects privacy: (yes|no)[.,]", text), name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters_after_the_first_are_keyword_only(estimator):
    first, *others = (p.kind for p in inspect.signature(estimator).parameters.values())
    assert first == inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(others) == {inspect.Parameter.KEYWORD_ONLY}


def kinds_of(constraint):
    """Return what a parameter may be, without None, words and bounds: the kinds of numbers, arrays and objects."""
    kinds = {getattr(one, "type", one if isinstance(one, (str, type)) else type(one)) for one in constraint}
    return {kind for kind in kinds if kind not in (None, type(None), str, StrOptions)}


def test_a_parameter_of_several_estimators_is_of_one_kind():
    kinds = defaultdict(dict)
    for estimator in public_estimators():
        for name, constraint in getattr(estimator, "_parameter_constraints", {}).items():
            if not isinstance(constraint, str) and (found := kinds_of(constraint)):
                kinds[name][estimator.__name__] = found
    differing = {name: found for name, found in kinds.items() if len({frozenset(kind) for kind in found.values()}) > 1}
    assert differing == {}


@pytest.mark.parametrize("estimator", public_estimators(), ids=lambda kind: kind.__name__)
def test_every_price_is_asked_for_in_one_way(estimator):
    groups = inspect.signature(estimator.privacy_cost).parameters["groups"]
    assert groups.kind == inspect.Parameter.KEYWORD_ONLY and groups.default is False
    others = list(inspect.signature(estimator.privacy_cost).parameters.values())[1:]
    assert all(other.kind == inspect.Parameter.KEYWORD_ONLY and other.default is not other.empty for other in others)
