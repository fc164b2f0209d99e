"""A package imports from lower layers only, and packages of one layer do not know each other."""

import ast
import re
from pathlib import Path

import pytest
from conftest import PACKAGE as ROOT
from internals import PLACES

LAYERS = [  # packages and modules of each layer, lowest first; one that is in no list fails the test
    {
        "_kernels",
        "_arithmetic",
        "_checks",
        "_types",
        "_validation",
        "_reading",
        "_rows",
        "_texts",
        "_files",
        "_hints",
        "_optional",
        "_warnings",
        "exceptions",
    },
    {"privacy", "metrics", "datasets", "semantics"},
    {"local", "distributed", "priors"},
    {"rounds", "attacks"},
    {"exact"},
    {"esteps"},
    {"models", "vocabulary"},
    {"releases", "published"},
    {"model_selection"},
    {"audit"},
    {"plots", "reports"},
    {"cli"},
    {"__init__", "__main__"},
]
FIT = {"priors", "rounds", "exact", "esteps", "models", "published"}  # the rooms of one thing
LAYER_OF = {package: number for number, layer in enumerate(LAYERS) for package in layer}
SOURCES = sorted(ROOT.rglob("*.py"))


def package_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0]


def imported(path):
    """Yield (line, module) of every import of the package."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            if node.module == "skdplda":
                yield from ((node.lineno, f"skdplda.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_to_lower_layers(path):
    package = package_of(path)
    assert package in LAYER_OF, f"{package} is in no layer: add it to LAYERS"
    for line, module in imported(path):
        parts = module.split(".")
        if parts[0] != "skdplda":
            continue
        assert len(parts) > 1, f"{path}:{line}: a module imports the whole package"
        other = parts[1]
        if other == package or LAYER_OF[package] == len(LAYERS) - 1:
            continue
        assert other in LAYER_OF, f"{path}:{line}: import names from their packages, not {module} from the top"
        both_lowest = LAYER_OF[package] == LAYER_OF[other] == 0  # kernels, checks and exceptions may import each other
        assert both_lowest or LAYER_OF[other] < LAYER_OF[package], f"{path}:{line}: {package} may not import {module}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_other_packages_are_imported_by_their_init(path):
    """What another package keeps in an underscored module is its own business.

    Kernels have no other modules, and a fit is made of the parts of several rooms.
    """
    for line, module in imported(path):
        parts = module.split(".")
        if parts[0] != "skdplda" or len(parts) < 3 or parts[1] in (package_of(path), "_kernels"):
            continue
        if {package_of(path), parts[1]} <= FIT:
            continue
        assert not parts[2].startswith("_"), f"{path}:{line}: {module} is private to {parts[1]}"


def test_only_one_file_names_the_private_helpers_of_scikit_learn():
    for path in SOURCES:
        for line, module in imported(path):
            private = module.startswith("sklearn.") and any(part.startswith("_") for part in module.split("."))
            assert not private or path.name == "_validation.py", f"{path}:{line}: {module}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_holds_one_concept(path):
    assert len(path.read_text().splitlines()) <= 900  # a long one reads well; two in one do not
    assert len(path.relative_to(ROOT).parts) <= 2


@pytest.mark.parametrize("path", sorted((ROOT / "_kernels").glob("*.pyx")), ids=lambda path: path.name)
def test_kernels_are_small(path):
    assert len(path.read_text().splitlines()) <= 250


def test_no_modules_import_each_other_in_a_circle():
    """Not even through an import within a function: who needs the other has to stand above it."""
    modules = {name_of(path): path for path in SOURCES}
    imports = {module: depends_on(path, modules) for module, path in modules.items()}
    assert circle_in(imports) is None


def test_circles_are_found():
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle_in({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None


def name_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def depends_on(path, modules):
    """Return the modules of the package that a file imports.

    `from skdplda.x import _y` needs the module `_y`, and on the package's `__init__` only if `_y` is none.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names if names <= set(modules) else names | {node.module}
    return found & set(modules) - {name_of(path)}


def circle_in(imports):
    """Return the modules of a circle, the first again at its end, or None."""
    done, way = set(), []

    def walk(module):
        if module in way:
            return [*way[way.index(module) :], module]
        if module in done:
            return None
        way.append(module)
        found = next(filter(None, map(walk, sorted(imports[module]))), None)
        way.pop()
        done.add(module)
        return found

    return next(filter(None, map(walk, sorted(imports))), None)


# The list itself; what runs on other processors, without pytest; what kernels are made of; and what reads the source.
MAY_NAME_INTERNALS = {"internals.py", "kernel_bits.py", "test_kernels.py", "test_audit_map.py"}
INTERNAL = re.compile(r"(from |import )?skdplda(\.\w+)*\._[a-z]\w*( import.*|\.\w+)?", re.DOTALL)


def test_tests_name_internals_in_one_place():
    """In imports, and in texts that name a place to patch or are programs; and whatever is listed is used."""
    outside, used = [], set()
    for path in Path(__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found = [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
            if isinstance(node, ast.ImportFrom):
                found = [f"{node.module}.{alias.name}" for alias in node.names]
                used |= {alias.name for alias in node.names if node.module == "internals"}
            elif isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            if path.name not in MAY_NAME_INTERNALS and any(INTERNAL.fullmatch(one.strip()) for one in found):
                outside.append(f"{path.name}:{node.lineno}")
    assert not outside, "name it in tests/internals.py, with the reason, or test it by what users call"
    assert used - {"PLACES"} == set(PLACES)
