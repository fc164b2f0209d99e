"""A row of a table says what was run: every setting, commit, version, corpora, processor, seconds; then what came out.

A program has a frozen dataclass of settings, of which each field is a column, and for each of its tables a function
that lists the settings and one from settings to values (a dict, or a list of them for several rows):

    TABLES = [Table("relevance", Settings, cells, measure, data=lambda s: [DATA[s.corpus]])]
    if __name__ == "__main__":
        run(TABLES, __doc__, report)  # report(tables, folder) prints and draws

Beside the settings only code changes a number, and the commit names that: with "+" and six letters of the difference
where files were changed. A run leaves alone the rows that have its settings; --again measures those of other commits.
An empty setting is not known: the row was stored before settings were, and `commit` then is the first that has its
values, which were measured there or earlier. Corpora are in SKDPLDA_DATA; SKDPLDA_SCRATCH keeps shadow models.

    python benchmarks/results.py check --share 0.01 [--quick] [--seed N]    # measure some rows again, and compare
"""

import argparse
import hashlib
import importlib
import math
import os
import platform
import random
import re
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from corpora import checksum

BENCHMARKS = Path(__file__).resolve().parent
RESULTS = BENCHMARKS / "results"
STAMP = ["cpu s", "commit", "version", "corpora", "processor"]
QUICK = 10  # seconds of the processor, of a cell


@dataclass(frozen=True)
class Table:
    """What a program measures into one file; `timed` names values that do not come again, or is True for all."""

    name: str
    settings: type
    cells: object
    measure: object
    data: object = lambda settings: []
    timed: object = ()

    def key(self, settings):
        """Return the settings as they stand in a row."""
        return {name: text(value) for name, value in asdict(settings).items()}

    def typed(self, pairs):
        """Return settings of their types from (name, text); an unknown name raises KeyError."""
        kinds = {field.name: field.type for field in fields(self.settings)}
        kinds = {n: (lambda v: tuple(map(float, v.split()))) if kind is tuple else kind for n, kind in kinds.items()}
        return {name: kinds[name](value) for name, value in pairs}

    def of(self, row, assume=False):
        """Return the settings of a row, or None if one is not known; `assume` takes those of a cell that it may be."""
        if all(row.get(field.name) for field in fields(self.settings)):
            return self.settings(**self.typed([(field.name, row[field.name]) for field in fields(self.settings)]))
        return next((one for one in self.cells() if fits(row, self.key(one), "")), None) if assume else None


def fits(row, key, *unknown):
    """Whether a row has these settings, or what stands for one that is not known."""
    return all(row.get(name, "") in (value, *unknown) for name, value in key.items())


def text(value, digits=10):
    """Return a setting or a value as it stands in a row."""
    value = value.item() if hasattr(value, "item") else value  # of numpy
    if isinstance(value, tuple):
        return " ".join(map(text, value))
    return str(value) if not isinstance(value, float) else "" if math.isnan(value) else f"{value:.{digits}g}"


@cache
def commit():
    """Return the commit of the code, and letters of what was changed since."""
    git = partial(subprocess.run, cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    try:
        changed = git(["git", "diff", "HEAD", "--", "../skdplda", ".", ":!results"]).stdout
        head = git(["git", "rev-parse", "--short=9", "HEAD"]).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}+{hashlib.sha256(changed.encode()).hexdigest()[:6]}" if changed else head


def stamp(names):
    """Return the columns that say of what a row is."""
    info = Path("/proc/cpuinfo")
    told = re.findall(r"^(model name|cpu family|model)\s*: (.*)", info.read_text() if info.exists() else "", re.M)
    told = dict(reversed(told))  # of the first processor; x86 has family and model beside a name that may be of many
    corpora = " ".join(f"{name}@{checksum(name)[:10]}" for name in names) or "none"
    processor = told.get("model name") or platform.processor() or platform.machine()
    processor += f", family {told['cpu family']} model {told['model']}" if "cpu family" in told else ""
    return {"commit": commit(), "version": version("skdplda"), "corpora": corpora, "processor": processor}


def read(path):
    """Return the rows of a table, as text."""
    return pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records") if path.exists() else []


def write(rows, path):
    """Replace a table at once, so that one that is stopped leaves the former."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(rows).fillna("")
    table = table[[*(name for name in table if name not in STAMP), *STAMP]]
    table.to_csv(f"{path}.new", index=False, lineterminator="\n")
    os.replace(f"{path}.new", path)


def measured(table, settings):
    """Measure a cell and return its rows, as text; "cpu s" is its processor time, divided among them."""
    said, begin = stamp(table.data(settings)), time.process_time()  # before: the code may change meanwhile
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of seeds, which make rows repeatable
        values = table.measure(settings)
    values = [values] if isinstance(values, dict) else values
    if both := table.key(settings).keys() & values[0].keys():
        raise ValueError(f"{table.name}: {sorted(both)} are settings and values")
    cost = {"cpu s": (time.process_time() - begin) / max(len(values), 1)}
    return [table.key(settings) | {k: text(v, 6) for k, v in (cost | one).items()} | said for one in values]


def fill(table, wanted, folder, again=False):
    """Measure the cells without a row; their rows replace those that may be theirs and do not know all settings."""
    path, planned = folder / f"{table.name}.csv", set(table.cells())
    for settings in wanted:
        rows, key = read(path), table.key(settings)
        there = [row for row in rows if fits(row, key)]
        if there and not (again and there[0]["commit"] != commit()):
            continue
        try:
            new = measured(table, settings)
        except (ImportError, FileNotFoundError) as error:
            print(f"{table.name} left out: {error}; {settings}", file=sys.stderr)
            continue
        unknown = [""] if settings in planned else []
        write([row for row in rows if not fits(row, key, *unknown)] + new, path)
        print(*(f"{name}={value}" for name, value in new[-1].items() if name not in STAMP[1:]), flush=True)


def run(tables, doc, report=None):
    """Run a program from the command line."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    named = {table.name: table for table in tables}
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(named)}; default: all")
    parser.add_argument("--only", nargs="+", default=[], metavar="KEY=VALUE", help="cells of these settings")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="change settings of all cells")
    parser.add_argument("--first", type=int, help="so many cells of each table")
    parser.add_argument("--again", action="store_true", help="rows of other commits, too")
    parser.add_argument("--draw", action="store_true", help="measure nothing: print and draw what is there")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of tables and pictures")
    args = parser.parse_args()
    if unknown := set(args.tables) - set(named):
        parser.error(f"there are no tables {sorted(unknown)}")
    only, changes = ([one.split("=", 1) for one in given] for given in (args.only, args.set))
    for table in [] if args.draw else [named[name] for name in args.tables or named]:
        try:
            allowed = [(name, text(table.typed([(name, value)])[name])) for name, value in only]
            cells = [one for one in table.cells() if all((n, table.key(one)[n]) in allowed for n, _ in allowed)]
            cells = [replace(one, **table.typed(changes)) for one in cells]
        except KeyError as error:
            parser.error(f"{table.name} has no setting {error}; it has {[one.name for one in fields(table.settings)]}")
        fill(table, dict.fromkeys(cells[: args.first]), args.output, args.again)
    found = {name: pd.read_csv(path) for name in named if (path := args.output / f"{name}.csv").exists()}
    if report is not None and found and (args.draw or not (only or changes or args.first)):  # whole tables
        report(found, args.output)


def programs():
    """Return {file of a program: names of its tables}."""
    found = {path: path.read_text(encoding="utf-8") for path in sorted(BENCHMARKS.rglob("*.py"))}
    return {path: stems for path, source in found.items() if (stems := re.findall(r'\n +Table\(\s*"(\w+)"', source))}


def tables():
    """Yield the tables of the programs that can be imported."""
    sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS / "reproduce"), str(BENCHMARKS.parent / "tests")]
    for path, stems in programs().items():
        try:
            yield from importlib.import_module(path.stem).TABLES
        except ImportError as error:
            print(f"{', '.join(stems)} left out: {error}", file=sys.stderr)


def same(stored, now):
    """Whether two values are the same text, or the same number of six digits."""
    try:
        return text(float(stored), 6) == text(float(now), 6)
    except ValueError:
        return stored == now


def check(share, seed=None, quick=False, assume=False, folder=RESULTS):
    """Measure a share of each table's rows again, one at least; return {(table, what was found): number of rows}."""
    count, drawn, rng = Counter(), {}, random.Random(seed)
    for table in tables():
        cells, every = {}, []
        for row in read(folder / f"{table.name}.csv"):
            cells.setdefault(tuple(row[field.name] for field in fields(table.settings)), []).append(row)
        for rows in cells.values():
            if not quick or 0 < sum(float(row["cpu s"] or 0) for row in rows) <= QUICK:
                every += list(enumerate(rows))
        for place, row in rng.sample(every, math.ceil(share * len(every))):
            settings = None if table.timed is True else table.of(row, assume)
            if settings is None:
                count[table.name, "not to be compared" if table.timed is True else "settings not known"] += 1
            else:
                drawn.setdefault((table, settings), []).append((place, row))
    for (table, settings), stored in drawn.items():
        beside = {*STAMP, *table.timed, *table.key(settings)}
        try:
            again = measured(table, settings)
        except Exception as error:  # of any program: the others are to be checked, too
            left_out = isinstance(error, (ImportError, FileNotFoundError))
            print(f"{settings}: {error}") if left_out else traceback.print_exc()
            count[table.name, "left out" if left_out else "fails"] += len(stored)
            continue
        for place, row in stored:
            now = again[place] if place < len(again) else {}
            other = {n: (row[n], now.get(n, "")) for n in row if n not in beside and not same(row[n], now.get(n, ""))}
            count[table.name, "differs" if other else "same"] += 1
            print(f"{settings}: differs from {row['commit']}: {other}" if other else f"{settings}: same", flush=True)
    return count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["check"])
    parser.add_argument("--share", type=float, default=0.01, help="of all rows (default: 0.01)")
    parser.add_argument("--seed", type=int, help="of the draw; default: another one each time")
    parser.add_argument("--quick", action="store_true", help=f"only cells that took at most {QUICK} s of the processor")
    parser.add_argument("--assume", action="store_true", help="a setting that is not known is that of a cell that fits")
    args = parser.parse_args()
    found = check(args.share, args.seed, args.quick, args.assume)
    print("\n".join(f"{n:6} {name}: {state}" for (name, state), n in sorted(found.items())))
    sys.exit(any(state in ("differs", "fails") for _, state in found))
