"""Rows of results that know which code and which corpora they are of.

Each row of a table in `results/` may end with two columns. `code` names the functions and classes that measured the
row, and has a digest of what these reach by name: in benchmarks/ of the source of each definition, constants and base
classes included; where `trials.py` has a trial (estimators, measures, accounting, rounds) of what the code makes of
made-up corpora; of the source of all else in skdplda, whole kernels with their headers included. Comments, docstrings,
formatting, what an error says, and the modules of SILENT, which take no part in a number, do not count. `data` names
the corpora, with the digests of `corpora.py`. So `state` tells by the row alone whether it is of the present code.

It tells as much as trials do. One trial stands for a whole class, or for all of a package, and does not see a change of
what it does not run, nor one below five digits. It runs the options that the programs here set, and each published
form; tests edit such parts. What a trial cannot run is named in `trials.SOURCES`, and counts by its source beside it.
Of other packages, scikit-learn among them, nothing is known here. A setting should be a column of the row: what a
`main` passes to the code beside the columns, is not seen, and how it makes a corpus only where the code names it.

A program keeps its table like this; it goes on where it was stopped, and measures again what is older than the code:

    rows = Rows(path, ["corpus", "epsilon", "seed"])
    for cell in cells():                                    # dicts of these columns
        rows.measure(cell, partial(judge, cell), [judge, VIPSLDA], ["kos"])

or, where all is measured in one go, `save(table, path, [judge], ["kos"])`. A function `cells()` that returns
{name of the table: list of cells} tells `check.py` what there is to measure.
"""

import ast
import hashlib
import importlib
import inspect
import os
import re
import time
from functools import cache
from pathlib import Path

import pandas as pd
from corpora import CORPORA

BENCHMARKS = Path(__file__).resolve().parent
ROOTS = (BENCHMARKS.parent, BENCHMARKS, BENCHMARKS / "reproduce")  # where skdplda and the programs are
STAMP = ["code", "data"]
SILENT = {  # modules and rooms that check, keep books, state, or share out work of the same bits: they make no number
    f"skdplda.{name}"
    for name in (
        "_files",
        "_optional",
        "_types",
        "_validation",
        "distributed",
        "exceptions",
        "models._hints",
        "privacy._accountant",
        "privacy._budget_charge",
        "privacy._filter",
        "privacy._ledger_file",
        "privacy._open_ledgers",
        "privacy._statement",
        "releases",
    )
}
KERNEL = re.compile(r'"(\w+\.h)"|skdplda\._kernels\.(\w+) c?import')
FRESH, STALE, UNKNOWN = "of this code", "of older code", "of unknown code"


@cache
def path_of(module):
    """Return the file of a module of skdplda or of a program, or None."""
    relative = Path(*module.split("."))
    roots = ROOTS[:1] if module.split(".")[0] == "skdplda" else ROOTS[1:]
    for root in roots:
        for path in (root / relative.with_suffix(".py"), root / relative / "__init__.py", root / f"{relative}.pyx"):
            if path.is_file():
                return path
    return None


@cache
def plain(node):
    """Return the text of a definition without comments, docstrings, formatting and what errors say."""
    node = ast.parse(ast.unparse(node))
    for part in ast.walk(node):
        if isinstance(part, ast.Raise) and isinstance(part.exc, ast.Call):
            part.exc = part.exc.func
        body = getattr(part, "body", None)
        if isinstance(body, list):
            part.body = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return ast.unparse(node)


@cache
def names_in(node):
    """Return the pairs (name, attribute) that a definition reads, and all names."""
    bases, bare = set(), set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            bases.add((part.value.id, part.attr))
        elif isinstance(part, ast.Name):
            bare.add(part.id)
    return bases, bare


class Module:
    """What the names of a module are: definitions of its own, or names of other modules."""

    def __init__(self, path):
        self.own, self.imported, self.loose = {}, {}, []
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self.imported.setdefault(alias.asname or alias.name, []).append((node.module, alias.name))
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    self.imported.setdefault(alias.asname or alias.name.split(".")[0], []).append((alias.name, None))
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self.own.setdefault(node.name, []).append(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for part in (part for target in targets for part in ast.walk(target)):
                    if isinstance(part, ast.Name):
                        self.own.setdefault(part.id, []).append(node)
            elif isinstance(node, (ast.If, ast.For, ast.With, ast.Try)) and "__name__" not in ast.unparse(node):
                self.loose.append(node)  # such as fills a registry
        self.own.pop("__all__", None)


@cache
def module_of(name):
    """Return a module that is read."""
    return Module(path_of(name))


def kernel(path, found):
    """Add the source of a kernel, and of what it includes."""
    for file in (path, path.with_suffix(".pxd")):
        if file.is_file() and file.name not in found:
            text = file.read_text(encoding="utf-8")
            comment = r"/\*(?s:.*?)\*/|//.*" if file.suffix == ".h" else r"(?m)#( .*)?$"  # not #define
            found[file.name] = re.sub(r"\s+", " ", re.sub(comment, "", text))
            for header, module in KERNEL.findall(text):
                for other in (path.parent / (header or f"{module}.pyx"), path.parent / f"{header or module}.pxd"):
                    if other.is_file():
                        kernel(other, found)


def silent(module):
    """Whether a module, or the room that it is in, takes no part in a number."""
    return module in SILENT or ".".join(module.split(".")[:2]) in SILENT


@cache
def trials():
    """Return the module `trials`, which imports skdplda."""
    return importlib.import_module("trials")


def tried_as(module, name):
    """Return the trial that stands for a name of skdplda, or None."""
    package, _, rest = module.partition(".")
    if package != "skdplda" or rest.startswith("_kernels"):
        return None
    return next((one for one in (name, rest.split(".")[0]) if one in trials().TRIALS), None)


def reach(module, name, found):
    """Add the definition of a name, and those that it names; all of a module, for the name None."""
    path = path_of(module)
    if path is None or silent(module) or (module, name) in found:
        return
    tried = tried_as(module, name)
    if tried:
        found["trial", tried] = trials().letters(tried)
        for source in trials().SOURCES.get(tried, ()):
            text = path_of(f"skdplda.{source}").read_text(encoding="utf-8")
            found[f"skdplda.{source}", ""] = plain(ast.parse(text))
        return
    if path.suffix == ".pyx":
        kernel(path, found)
        return
    found[module, name] = ""
    known = module_of(module)
    if name is None:
        for each in known.own:
            reach(module, each, found)
    nodes = list(known.own.get(name, ()))
    if nodes or name is None:
        found[module, ""] = "\n".join(map(plain, known.loose))
        nodes += known.loose
    found[module, name] = "\n".join(map(plain, known.own.get(name, ())))
    used = [names_in(node) for node in nodes]
    bases = {base for found_bases, _ in used for base in found_bases}
    bare = {each for _, found_bare in used for each in found_bare}
    uses = [(each, None) for each in bare - {base for base, _ in bases}] + sorted(bases)
    if not nodes and name is not None:
        uses = [(name, None)]  # a name that the module passes on
    for each, attribute in uses:
        if each in known.own:
            reach(module, each, found)
        for source, original in known.imported.get(each, ()):
            inner = f"{source}.{original}" if original else source
            if path_of(inner):
                reach(inner, attribute, found)
            elif original:
                reach(source, original, found)


def split_root(root):
    """Return (module, name) of a dotted name; raise ValueError if there is none."""
    parts = root.split(".")
    for cut in range(len(parts), 0, -1):
        if path_of(".".join(parts[:cut])):
            return ".".join(parts[:cut]), parts[cut] if cut < len(parts) else None
    raise ValueError(f"nothing is called {root!r} in skdplda or benchmarks/")


@cache
def digest(roots):
    """Return letters that change with the source that dotted names reach; raise ValueError if one is gone."""
    found = {}
    for root in roots:
        module, name = split_root(root)
        if name is not None and path_of(module).suffix == ".py":
            known = module_of(module)
            if name not in known.own and name not in known.imported:
                raise ValueError(f"{module} has no {name!r}")
        reach(module, name, found)
    text = repr(sorted((str(key), value) for key, value in found.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def name_of(root):
    """Return the dotted name of a function or class; of a program that runs, that of its file."""
    if isinstance(root, str):
        return root
    module = root.__module__
    if module == "__main__":
        module = Path(inspect.getsourcefile(inspect.unwrap(root))).stem
    return f"{module}.{root.__qualname__}"


def code_of(*roots):
    """Return the value of the column `code` for functions, classes or their dotted names."""
    names = tuple(sorted(map(name_of, roots)))
    return f"{' '.join(names)}@{digest(names)}"


def data_of(*names):
    """Return the value of the column `data` for names of `corpora.CORPORA`; none: made up, by the code."""
    return " ".join(f"{name}@{CORPORA[name].sha256[:10]}" for name in names) or "none"


def state(row):
    """Return whether a row is of the present code and corpora."""
    code, data = (str(row.get(column, "")) for column in STAMP)
    if "@" not in code:
        return UNKNOWN
    names, _, mark = code.rpartition("@")
    try:
        same = digest(tuple(names.split())) == mark
        same &= data == "none" or data_of(*(part.split("@")[0] for part in data.split())) == data
    except (KeyError, ValueError):  # the function, or the corpus, is gone
        same = False
    return FRESH if same else STALE


def save(table, path, roots, data=()):
    """Write a table that was measured in one go, and say of what; `roots` may be a function of a row."""
    stamped = table.reset_index(drop=table.index.names == [None])
    if callable(roots):
        stamped["code"] = [code_of(*roots(row)) for row in stamped.to_dict("records")]
    else:
        stamped["code"] = code_of(*roots)
    stamped["data"] = data_of(*data)
    write(stamped, path)


def write(table, path):
    """Replace a table at once, so that one that is stopped leaves the former."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    table.to_csv(fresh, index=False, float_format="%.6g", lineterminator="\n")
    os.replace(fresh, path)


class Rows:
    """A table on disk that grows cell by cell.

    Parameters
    ----------
    path : Path
        Of the CSV file, which may be there.
    keys : list of str
        Columns that name a cell. A cell has one row or more.
    """

    def __init__(self, path, keys):
        self.path, self.keys = Path(path), list(keys)
        self.table = pd.read_csv(self.path, dtype=dict.fromkeys(STAMP, str)) if self.path.exists() else pd.DataFrame()
        self._states = None
        missing = [key for key in self.keys if key not in self.table] if len(self.table) else []
        if missing:
            raise ValueError(f"{self.path.name} has no columns {missing}: it is of another program, or older; move it")

    def _name(self, row):
        return tuple(f"{row[k]:.6g}" if isinstance(row[k], (int, float)) else str(row[k]) for k in self.keys)

    def states(self):
        """Return the state of each cell that is there: that of its oldest row when the table was read, or measured."""
        if self._states is None:
            self._states = {}
            for row in self.table.to_dict("records"):
                name, one = self._name(row), state(row)
                self._states[name] = one if self._states.get(name, FRESH) == FRESH else self._states[name]
        return self._states

    def absent(self, cells):
        """Return the cells that have no row."""
        known = self.states()
        return [cell for cell in cells if self._name(cell) not in known]

    def measure(self, cell, work, roots, data=()):
        """Measure a cell that is not there or not of this code: `work()` returns a dict of values, or a list of them.

        "cpu s" is the processor time of the work, in seconds, divided among the rows of the cell.
        """
        if self.states().get(self._name(cell)) == FRESH:
            return
        stamp = dict(
            zip(STAMP, (code_of(*roots), data_of(*data)), strict=True)
        )  # before: the code may change meanwhile
        begin = time.process_time()
        values = work()
        values = [values] if isinstance(values, dict) else values
        seconds = round(time.process_time() - begin, 2)
        share = round(seconds / max(len(values), 1), 4)
        new = pd.DataFrame([{**cell, **one, "cpu s": one.get("cpu s", share), **stamp} for one in values])
        if len(self.table):
            others = [self._name(row) != self._name(cell) for row in self.table.to_dict("records")]
            new = pd.concat([self.table[others], new], ignore_index=True) if any(others) else new
        rest = [column for column in new if column not in STAMP]
        self.table = new[[*rest, *STAMP]]
        write(self.table, self.path)
        self._states[self._name(cell)] = FRESH
        print(*self._name(cell), values[-1], f"{seconds:.1f} s CPU", flush=True)
