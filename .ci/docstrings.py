"""Validate the docstrings of every public name, and of its public methods, by the checks that pyproject.toml names."""

import importlib
import inspect
import pkgutil
import sys
import tomllib
from enum import Enum

from numpydoc.validate import validate

import skdplda

UNLIKE_FUNCTIONS = {"RT01", "PR01"}  # what properties and the errors' constructors do not document


def public_names():
    """Yield the dotted name and the object of everything public."""
    packages = [
        f"skdplda.{package.name}"
        for package in pkgutil.iter_modules(skdplda.__path__)
        if not package.name.startswith("_")
    ]
    for package in ["skdplda", *packages]:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if not callable(thing) or getattr(thing, "_is_protocol", False):  # constants, protocols
                continue
            yield f"{package}.{name}", thing
            if inspect.isclass(thing) and not issubclass(thing, (Enum, Exception)):
                for member, value in vars(thing).items():
                    if not member.startswith("_") and (callable(value) or isinstance(value, (property, classmethod))):
                        yield f"{package}.{name}.{member}", value


def main(pyproject):
    """Print every violation and return how many there are."""
    with open(pyproject, "rb") as file:
        checks = set(tomllib.load(file)["tool"]["numpydoc_validation"]["checks"])
    found = []
    for name, thing in public_names():
        is_property = isinstance(thing, property)
        is_kind = inspect.isclass(thing) and issubclass(thing, (Enum, Exception))
        asked = checks - UNLIKE_FUNCTIONS if is_property or is_kind else checks
        found += [f"{name}: {code} {text}" for code, text in validate(name)["errors"] if code in asked]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return len(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) > 0)
