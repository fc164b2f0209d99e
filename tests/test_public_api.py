"""Every public name imports, is documented, and has one path."""

import importlib
import inspect
import pkgutil
from collections import defaultdict
from enum import Enum

import pytest
from numpydoc.docscrape import FunctionDoc, NumpyDocString

import skdplda
from skdplda import PrivateCGSLDA

ROOMS = ["skdplda"] + [
    f"skdplda.{module.name}" for module in pkgutil.iter_modules(skdplda.__path__) if not module.name.startswith("_")
]
NAMES = [(room, name) for room in ROOMS for name in getattr(importlib.import_module(room), "__all__", ())]


def public(room, name):
    return getattr(importlib.import_module(room), name)


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_says_what_it_is_and_lists_its_names(room):
    module = importlib.import_module(room)
    assert module.__doc__
    if not hasattr(module, "__path__"):  # a module of one file, such as the command line
        return
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize(("room", "name"), NAMES)
def test_every_public_name_is_documented(room, name):
    thing = public(room, name)
    assert inspect.getdoc(thing).splitlines()[0].endswith(".")
    if inspect.isfunction(thing):
        check_function(thing)
    elif inspect.isclass(thing) and not issubclass(thing, (Exception, Enum)):
        check_class(thing)


def check_function(function):
    doc = FunctionDoc(function)
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    described = [name.strip().lstrip("*") for entry in doc["Parameters"] for name in entry.name.split(",")]
    assert [name for name in parameters if name not in described] == []
    assert [name for name in described if name not in parameters] == []


def check_class(kind):
    doc = NumpyDocString(inspect.getdoc(kind))
    described = [name.strip().lstrip("*") for entry in doc["Parameters"] for name in entry.name.split(",")]
    parameters = [name for name in inspect.signature(kind).parameters]
    assert [name for name in parameters if name not in described] == []
    for name, member in vars(kind).items():
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, (property, classmethod))):
            continue
        assert inspect.getdoc(getattr(kind, name)), f"{kind.__name__}.{name} has no docstring"
        if inspect.isfunction(member):
            check_function(member)


def test_a_name_means_one_thing():
    """Rooms and the door may both show a name; it is the same object, from one room."""
    objects, rooms = defaultdict(set), defaultdict(set)
    for room, name in NAMES:
        objects[name].add(id(public(room, name)))
        if room != "skdplda":
            rooms[name].add(room)
    assert [name for name, found in objects.items() if len(found) > 1] == []
    assert [name for name, found in rooms.items() if len(found) > 1] == []


def test_every_parameter_of_the_estimator_says_whether_it_affects_privacy():
    doc = NumpyDocString(inspect.getdoc(PrivateCGSLDA))
    assert [entry.name for entry in doc["Parameters"]] == list(inspect.signature(PrivateCGSLDA).parameters)
    for entry in doc["Parameters"]:
        text = " ".join(entry.desc)
        assert "Affects privacy: yes" in text or "Affects privacy: no" in text, entry.name


def test_parameters_after_the_first_are_keyword_only():
    kinds = {name: p.kind for name, p in inspect.signature(PrivateCGSLDA).parameters.items()}
    assert kinds.pop("n_components") == inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds.values()) == {inspect.Parameter.KEYWORD_ONLY}
