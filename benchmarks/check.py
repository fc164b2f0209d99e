"""Which code the stored results are of, and how to make each again.

    python benchmarks/check.py                       # every table: rows of this code, of older code, of unknown code
    python benchmarks/check.py --rows                # and each row that is not of this code
    python benchmarks/check.py --make hdp_figure5    # run the program that makes a table or figure; it goes on
    python benchmarks/check.py --built doc/html      # fail where a built page shows other rows and does not say so

The state of a row is what `results.py` says of it. A table without the columns `code` and `data` has no fingerprint:
its rows are of unknown code, not newer than the commit that stored them. Cells that are absent are those of the lists
that programs declare by a function `cells()`. `doc/conf.py` puts the paragraph of `with_note` at the end of each page
that shows a table or figure, so that none shows a row of other code, or lacks a cell, without saying so; `--built`
looks whether it is there. In a page, `{seconds hdp_figure5 corpus=KOS}` stands for the processor time of these rows,
`{seeds ...}` for the number of their seeds on a corpus, `{table audit}` for the table of these rows. Other numbers of
the text are not compared with rows, but for those that tests/test_results.py names.
"""

import argparse
import importlib
import re
import shlex
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pandas as pd
from results import BENCHMARKS, FRESH, STALE, UNKNOWN, Rows, state

RESULTS, DOC = BENCHMARKS / "results", BENCHMARKS.parent / "doc"
STATES = (FRESH, STALE, UNKNOWN)
ASKED = re.compile(r"\{(seconds|seeds|table) (\w+)((?: [\w.]+=[\w.]+)*)\}")
SHADOWS = "--directory shadows"  # keeps what an attack has done so far
COMMANDS = {  # beginning of the names of tables and figures: the program that makes them, where its name is another
    "attacks_": f"reproduce/attacks_manzonelli.py {SHADOWS}",
    "attacks_classifier": "reproduce/attacks_classifier.py",
    "attacks_fdptm": f"reproduce/attacks_fdptm.py {SHADOWS}",
    "attacks_few_shadows": f"few_shadows.py --output benchmarks/results/attacks_few_shadows.csv {SHADOWS}",
    "attacks_zeta": "attacks.py --output benchmarks/results/attacks_zeta.csv",
    "audit": "audits.py bounds",
    "audit_variants": "audits.py variants",
    "fdptm_": "reproduce/fdptm_figures.py",
    "frontier": "frontier.py --frontier",
    "frontier_ablation": "frontier.py --ablation",
    "frontier_attack": "frontier.py --attack",
    "frontier_floor": "frontier.py --floor",
    "frontier_little": "frontier.py --little",
    "frontier_short": "frontier.py --short",
    "frontier_vocabulary": "frontier.py --vocabulary",
    "gibbs": "gibbs.py sooner --warplda warplda",
    "gibbs_paths": "gibbs.py paths",
    "gibbs_serve": "gibbs.py serve",
    "gibbs_speed": "gibbs.py speed",
    "hdp_": "hdp.py --seeds 0 1 2",
    "hdp_figure": "reproduce/hdp_figures.py",
    "local_figure": "reproduce/local_figures.py",
    "pctd_figure": "reproduce/pctd_figures.py",
    "pctd_table": "reproduce/pctd_figures.py",
    "private_updates": "private_cost.py --updates",
    "vips_table": "reproduce/vips_figure1.py --table",
    "vocabulary_scale": "vocabulary_scale.py --folder scratch --output benchmarks/results",
    "utility": "utility.py --epsilon 0.5 1 2 5 10 --topics 10 20 --output benchmarks/results/utility.csv",
    "vocabulary_measures": "vocabulary_unseen.py",
}


def programs():
    """Return {name: file} of all programs."""
    return {path.stem: path for path in [*BENCHMARKS.glob("*.py"), *BENCHMARKS.glob("reproduce/*.py")]}


@cache
def command_of(stem):
    """Return the arguments that make a table or figure again, or None."""
    known = {name: path.relative_to(BENCHMARKS).as_posix() for name, path in programs().items()} | COMMANDS
    fitting = [name for name in known if stem == name or stem.startswith(name if name[-1] == "_" else name + "_")]
    fitting += [name for name in COMMANDS if stem.startswith(name)]
    return known[max(fitting, key=len)] if fitting else None


def writes(stem):
    """Whether the program of a table names it, whole or by what follows the name of the program."""
    command = command_of(stem)
    path = BENCHMARKS / (command or "check.py").split()[0]
    text = path.read_text(encoding="utf-8")
    return stem in f"{command} {text}" or f'"{stem.removeprefix(f"{path.stem}_")}"' in text


def tables(folder=RESULTS):
    """Return {stem: states of its rows} of all tables."""
    return {path.stem: states_of(path) for path in sorted(Path(folder).glob("*.csv"))}


@cache
def states_of(path):
    """Return the states of the rows of a table."""
    return tuple(map(state, pd.read_csv(path, dtype=str).to_dict("records")))


@cache
def stored(path):
    """Return the last commit that changed a file and its day, or nothing where there is no history, or a part of it."""

    def git(*given):
        return subprocess.run(["git", *given], cwd=path.parent, capture_output=True, text=True).stdout.strip()

    try:
        whole = git("rev-parse", "--is-shallow-repository") == "false"
        return git("log", "-1", "--format=%h of %as", "--", path.name) if whole else ""
    except OSError:
        return ""


@cache
def pages():
    """Return {page: tables it shows}: those of the programs and figures that it names."""
    found, makers = {}, {stem: Path((command_of(stem) or "none").split()[0]).name for stem in tables()}
    for page in sorted(DOC.rglob("*.rst")):
        name = page.relative_to(DOC).as_posix()
        if name.split("/")[0] in ("_build", "generated", "auto_examples"):
            continue
        text = page.read_text(encoding="utf-8")
        named = {Path(program).name for program in re.findall(r"benchmarks/((?:reproduce/)?\w+\.py)", text)}
        drawn = {command_of(Path(figure).stem) for figure in re.findall(r"figures/(\w+\.png)", text)} - {None}
        named |= {Path(command.split()[0]).name for command in drawn}
        shown = [stem for stem, maker in makers.items() if maker in named]
        if shown:
            found[name] = shown
    return found


def audit_table(rows):
    """Return per cents of the claimed epsilon, and in brackets those that can be shown at most; as reStructuredText."""
    rows = rows[rows["bound"] == "independent noise"].astype({"epsilon": float, "per cent": float, "attainable": float})
    most = 100 * rows["attainable"] / rows["epsilon"]
    shown = rows["per cent"].map("{:.0f}".format) + most.map(lambda part: f" ({part:.0f})" if part < 100 else "")
    columns = rows["attack"] + rows["epsilon"].map(", {:g}".format)
    table = pd.DataFrame({"estimator": rows["estimator"], "column": columns, "shown": shown})
    order = [f"{attack}, {epsilon}" for attack in ("white-box", "black-box") for epsilon in (1, 5)]
    table = table.pivot(index="estimator", columns="column", values="shown")
    table = table.loc[rows["estimator"].unique(), order].fillna("not measured").reset_index()
    lines = [list(table), *table.to_numpy().tolist()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = " ".join("=" * width for width in widths)
    text = [" ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return "\n".join([rule, text[0], rule, *text[1:], rule])


TABLES = {"audit": audit_table}


def told(match):
    """Return what a page asks of stored rows: their seconds, the number of their seeds, or a table."""
    what, stem, wanted = match.groups()
    if not (RESULTS / f"{stem}.csv").is_file():
        return "none stored"
    rows = pd.read_csv(RESULTS / f"{stem}.csv", dtype=str)
    for key, value in (pair.split("=") for pair in wanted.split()):
        rows = rows[rows[key] == value]
    if what == "table":
        return TABLES[stem](rows)
    if what == "seeds":
        seeds = rows.groupby("corpus" if "corpus" in rows else rows["seed"].isna())["seed"].nunique()
        return " to ".join(sorted({str(seeds.min()), str(seeds.max())}, key=int))
    seconds = rows.get("cpu s", pd.Series(dtype=str)).dropna().astype(float)
    if not len(seconds):
        return "not kept"
    part = f" for {len(seconds):,} of {len(rows):,} rows" if len(seconds) < len(rows) else ""
    return f"{seconds.sum():,.0f}{part}"


def with_note(page, text):
    """Return the text of a page with what it asks of rows; a last paragraph says which results are not of this code."""
    text = ASKED.sub(told, text)
    older, shown = [], pages().get(page, [])
    for stem in shown:
        path = RESULTS / f"{stem}.csv"
        count, missing = Counter(states_of(path)), len(absent_cells().get(stem, ()))
        if missing or set(count) - {FRESH}:
            rows = ", ".join(f"{count[one]} {one}" for one in STATES if count[one])
            rows += f"; {missing} cells were not measured" if missing else ""
            older.append(f"``{stem}.csv`` ({rows}{f'; stored by {commit}' if (commit := stored(path)) else ''})")
    if not shown:
        return text
    if older:
        said = f"""Not all numbers and figures of this page are of the code that it was built from, or whole. Rows of
   ``benchmarks/results``: {"; ".join(older)}. Those of older code were measured before what they depend on changed;
   of those of unknown code, commit and time of measurement were not kept: they are not newer than the commit that
   stored them. ``python benchmarks/check.py --rows`` lists them."""
    else:
        said = "All stored results that this page shows are of the code that it was built from."
    return f"{text.rstrip()}\n\n.. admonition:: Which code the numbers are of\n\n   {said}\n"


def silent_pages(folder):
    """Return [(page, table)] where HTML shows rows of other code, or a table that lacks cells, and does not say so."""
    found = []
    for page, stems in pages().items():
        path = Path(folder, page).with_suffix(".html")
        said = path.read_text(encoding="utf-8") if path.is_file() else ""
        said = said[said.rfind("Which code the numbers are of") :] if "Which code the numbers are of" in said else ""
        found += [
            (page, stem)
            for stem in stems
            if (set(states_of(RESULTS / f"{stem}.csv")) - {FRESH} or absent_cells().get(stem))
            and f"{stem}.csv" not in said
        ]
    return found


@cache
def absent_cells():
    """Return {stem: cells not measured} of the programs that say what there is to measure, and can be imported."""
    found = {}
    sys.path[:0] = [str(BENCHMARKS / "reproduce")]
    for name, path in programs().items():
        if "\ndef cells(" not in path.read_text(encoding="utf-8"):
            continue
        try:
            program = importlib.import_module(name)
        except ImportError:  # of a package that a benchmark needs
            continue
        for stem, cells in program.cells().items():
            found[stem] = Rows(RESULTS / f"{stem}.csv", list(cells[0])).absent(cells)
    return found


def main():
    """Tell the state of the results, or make some again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", action="store_true", help="list each row that is not of this code")
    parser.add_argument("--make", nargs="+", metavar="NAME", help="tables or figures to make again")
    parser.add_argument("--built", metavar="FOLDER", help="the HTML of doc/")
    args = parser.parse_args()
    for name in args.make or ():
        command = command_of(Path(name).stem)
        if command is None:
            parser.error(f"no program makes {name!r}; there are {sorted(programs())}")
        print("python", f"benchmarks/{command}", flush=True)
        program, *rest = shlex.split(command)
        subprocess.run([sys.executable, str(BENCHMARKS / program), *rest], cwd=BENCHMARKS.parent, check=True)
    if args.make:
        return
    if args.built:
        silent = silent_pages(args.built)
        for page, stem in silent:
            print(f"{page} shows {stem}.csv, which is not all of this code or not whole, and does not say so")
        print(f"{len(pages())} pages show results; {len(silent)} tables are shown as if they were of this code")
        sys.exit(bool(silent))
    absent, lines = absent_cells(), []
    for stem, states in tables().items():
        count = Counter(states)
        lines.append({"table": stem, **{one: count[one] for one in STATES}})
        lines[-1] |= {"absent cells": len(absent[stem]) if stem in absent else "?"}
        lines[-1] |= {"stored": stored(RESULTS / f"{stem}.csv"), "command": command_of(stem)}
    nothing = dict.fromkeys(STATES, 0)
    lines += [
        {"table": stem} | nothing | {"absent cells": len(cells), "stored": "", "command": command_of(stem)}
        for stem, cells in absent.items()
        if stem not in tables()
    ]
    print(pd.DataFrame(lines).to_string(index=False))
    if orphans := [stem for stem in tables() if not writes(stem)]:
        print("tables that no program seems to write:", *orphans)
    if args.rows:
        for stem, states in tables().items():
            if not set(states) & {FRESH, STALE}:
                print(f"{stem}: no fingerprints, {len(states)} rows {UNKNOWN}")
                continue
            table = pd.read_csv(RESULTS / f"{stem}.csv", dtype=str, keep_default_na=False)
            for row, one in zip(table.to_dict("records"), states, strict=True):
                if one != FRESH:
                    print(f"{stem}, {one}:", *list(row.values())[:8])
        for stem, cells in absent.items():
            for cell in cells:
                print(f"{stem}, not measured:", *cell.values())


if __name__ == "__main__":
    main()
