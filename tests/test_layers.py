"""Imports go downstairs only, and rooms on a floor do not know each other."""

import ast
from pathlib import Path

import pytest

import skdplda

ROOT = Path(skdplda.__file__).parent
FLOORS = [  # rooms of each floor; whoever is in no list fails the test
    {"_kernels", "_types", "_validation", "_files", "_optional", "exceptions"},
    {"privacy", "metrics", "datasets", "semantics"},
    {"local", "distributed"},
    {"rounds", "attacks"},
    {"models", "vocabulary"},
    {"releases"},
    {"model_selection"},
    {"audit"},
    {"plots"},
    {"cli"},
    {"__init__", "__main__"},
]
FLOOR_OF = {room: number for number, floor in enumerate(FLOORS) for room in floor}
SOURCES = sorted(ROOT.rglob("*.py"))


def room_of(path):
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
def test_imports_go_downstairs(path):
    room = room_of(path)
    assert room in FLOOR_OF, f"{room} stands on no floor: add it to FLOORS"
    for line, module in imported(path):
        parts = module.split(".")
        if parts[0] != "skdplda":
            continue
        assert len(parts) > 1, f"{path}:{line}: a room imports the whole house"
        other = parts[1]
        if other == room or FLOOR_OF[room] == len(FLOORS) - 1:
            continue
        assert other in FLOOR_OF, f"{path}:{line}: import names from their rooms, not {module} from the door"
        same_ground = FLOOR_OF[room] == FLOOR_OF[other] == 0  # kernels, checks and exceptions may lean on each other
        assert same_ground or FLOOR_OF[other] < FLOOR_OF[room], f"{path}:{line}: {room} may not import {module}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_other_rooms_are_entered_by_their_door(path):
    """What another package keeps in an underscored module is its own business.

    Kernels have no other modules, and the models are made of the parts of the private loop.
    """
    for line, module in imported(path):
        parts = module.split(".")
        if parts[0] != "skdplda" or len(parts) < 3 or parts[1] in (room_of(path), "_kernels"):
            continue
        if (room_of(path), parts[1]) == ("models", "rounds"):
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

    `from skdplda.x import _y` leans on the module `_y`, and on the package's `__init__` only if `_y` is none.
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
