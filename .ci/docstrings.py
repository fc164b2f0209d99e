"""Validate the docstrings of every public name, and of its public methods, by the checks that pyproject.toml names.

Beyond numpydoc's: arrays have a shape, what raises ValueError says so, and a parameter's name means one thing.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
import tomllib
from enum import Enum

from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

import skdplda

ARRAYS = re.compile(r"\b(ndarray|array-like|sparse matrix)\b")
AS_THERE = r"as (in|of) |Of the class"  # the text of another place, where it is checked
# What a parameter of a name is, wherever it stands: what its text must begin with, or say.
MEANINGS = {
    "feature_names": r"vocabulary|[Ww]ords of the (model's )?columns|The words\.",
    "groups": r"The user of each document|Whether `fit` (will|must) be given groups|Makes no difference"
    r"|Whether the fits are given groups|Numbers, or names, of topics|Ignored",
    "max_words": r"Of the selected words keep so many",
    "max_words_per_document": r"A longer document reports a random part",
    "max_words_per_unit": r"Words that a document \(user\) takes part with",
    "mechanism": r"[Ll]aw|One of `skdplda.privacy.MECHANISMS`|What draws the noise|randomized response"
    r"|The estimator and",
    "noise_on": r"What gets noise",
    "public_rows": r"Public embeddings",
    "n_documents": r"Number of documents|Size of the synthetic corpus",
    "n_words": r"[Ss]ize of the (public )?vocabulary|[Ww]ords (per topic|a topic|a cluster|shown|that the function)"
    r"|[Ww]ords (of the unit|that each)|Number of words|Top words|How many",
    "nominal_size": r"public (estimate|guess)",
    "prior": r"Public knowledge of words and topics|That of the fit",
    "public_vocabulary": r"Words to count|Columns to select|Public words",
    "vocabulary": r"[Ww]ords|vocabulary|`vocab",
}
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
                    public = not member.startswith("_") and (
                        callable(value) or isinstance(value, (property, classmethod))
                    )
                    if public and not inherits_text(thing, member):
                        yield f"{package}.{name}.{member}", value


def inherits_text(kind, member):
    """Whether a method has no docstring of its own, and a base of this package has one, which is shown for it."""
    bases = (
        vars(base)[member]
        for base in kind.__mro__[1:]
        if base.__module__.startswith("skdplda") and member in vars(base)
    )
    return vars(kind)[member].__doc__ is None and any(base.__doc__ for base in bases)


def own_violations(thing):
    """Yield what the docstring of a public name lacks beyond numpydoc's checks, as code and text."""
    doc = NumpyDocString(inspect.getdoc(thing) or "")
    for section in ("Parameters", "Attributes", "Returns"):
        for name, kind, _ in doc[section]:
            if ARRAYS.search(kind or name) and "shape" not in (kind or name):
                yield "OWN01", f"{section} {name!r} is an array without a shape"
    for names, _, text in doc["Parameters"]:
        said = " ".join(text)
        for name in names.split(", "):
            if name in MEANINGS and not re.search(f"{MEANINGS[name]}|(?i:{AS_THERE})", said):
                yield "OWN02", f"parameter {name!r} means another thing than elsewhere: {said:.80}"
    raises = any("ValueError" in f"{name} {kind}" for name, kind, _ in doc["Raises"])
    if not raises and raises_value_errors(thing):
        yield "OWN03", "it raises ValueError and has no such entry in Raises"


def raises_value_errors(thing):
    """Whether a function, or the constructor of a class, raises ValueError in its own lines."""
    if inspect.isclass(thing):
        thing = next((vars(thing)[name] for name in ("__post_init__", "__init__") if name in vars(thing)), None)
    thing = getattr(thing, "fget", None) or getattr(thing, "__func__", thing)
    try:
        lines = textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))
    except (TypeError, OSError):
        return False
    raised = (node.exc for node in ast.walk(ast.parse(lines)) if isinstance(node, ast.Raise) and node.exc)
    return any("'ValueError'" in ast.dump(error) for error in raised)


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
        found += [f"{name}: {code} {text}" for code, text in own_violations(thing)]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return len(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) > 0)
