"""Numbers of the pages that come from rows of benchmarks/results, and the commits at which these were measured."""

import re
import shlex
from collections import Counter
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

ASKED = re.compile(r'\{(seconds|seeds|mean|min|max|table)\s(\w+)((?:\s+(?:[^\s{}"]|"[^"{}]*")+)*)\}')
TABLE = re.compile(r'\n +Table\(\s*"(\w+)"')
FRACTION = re.compile(r"-?\d*\.\d+(?:e-?\d+)?")
DOC = Path(__file__).parent


@cache
def table(path):
    """Return the rows of a table, as text."""
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def audit_table(rows):
    """Return per cents of the claimed epsilon, and in brackets those that can be shown at most; as reStructuredText."""
    rows = rows[rows["bound"] == "independent noise"].astype({"epsilon": float, "per cent": float, "attainable": float})
    most = 100 * rows["attainable"] / rows["epsilon"]
    shown = rows["per cent"].map("{:.0f}".format) + most.map(lambda part: f" ({part:.0f})" if part < 100 else "")
    columns = rows["attack"] + rows["epsilon"].map(", {:g}".format)
    wide = pd.DataFrame({"estimator": rows["estimator"], "column": columns, "shown": shown})
    order = [f"{attack}, {epsilon}" for attack in ("white-box", "black-box") for epsilon in (1, 5)]
    wide = wide.pivot(index="estimator", columns="column", values="shown")
    wide = wide.loc[rows["estimator"].unique(), order].fillna("not measured").reset_index()
    return simple_table(wide)


def testers_table(rows):
    """Return per cents of the claim that the best tester of each claim shows, and which it is; as reStructuredText."""
    rows = rows.astype({"epsilon": float, "per cent": float})
    best = rows.loc[rows.groupby(["claim", "epsilon"])["per cent"].idxmax()]
    best = best.assign(shown=best["per cent"].map("{:.0f}".format) + " (" + best["tester"] + ")")
    wide = best.pivot(index="claim", columns="epsilon", values="shown").loc[rows["claim"].unique()]
    wide.columns = [f"epsilon {epsilon:g}" for epsilon in wide]
    return simple_table(wide.fillna("not measured").reset_index())


def sooner(rows):
    """Return how much sooner than a peer, after so many sweeps, the quickest of our fits ends that is no worse."""
    found = []
    for (corpus, topics, threads), group in rows.groupby(["corpus", "topics", "threads"], sort=False):
        ours = group[group["library"] == "skdplda"].sort_values("seconds")
        peers = group[(group["library"] == "warplda") | ((group["library"] == "tomotopy") & (group["sweeps"] == 200))]
        for peer in peers.sort_values(["library", "sweeps"]).to_dict("records") if len(ours) else ():
            reached = ours[ours["perplexity"] <= peer["perplexity"]].head(1)
            best = (reached if len(reached) else ours.sort_values("perplexity")).iloc[0]
            times = f"{peer['seconds'] / best['seconds']:.1f}" if len(reached) else "not reached"
            one = {"corpus": corpus, "topics": topics, "threads": threads, "peer": peer["library"]}
            one |= {name: peer[name] for name in ("sweeps", "seconds", "perplexity")}
            one |= {"our rounds": best["sweeps"], "our seconds": best["seconds"]}
            found.append(one | {"our perplexity": best["perplexity"], "times sooner": times})
    return pd.DataFrame(found)


def sooner_table(rows):
    """Return how many times sooner than WarpLDA after so many sweeps, and than 200 of tomotopy; as reStructuredText.

    Beside it is what WarpLDA's last length and the fit that is compared with it took, and how well they ended.
    """
    found = sooner(rows.astype(dict.fromkeys(["topics", "threads", "sweeps", "seconds", "perplexity"], float)))
    found["column"] = found["sweeps"].map("{:.0f}".format).where(found["peer"] == "warplda", "200 of tomotopy")
    shown_as = {"seconds": "{:.3g} s", "perplexity": ", {:.0f}", "our rounds": "{:.0f} rounds, "}
    shown_as |= {"our seconds": "{:.3g} s", "our perplexity": ", {:.0f}"}
    parts = {name: found[name].map(form.format) for name, form in shown_as.items()}
    found["WarpLDA's last"] = parts["seconds"] + parts["perplexity"]
    found["ours"] = parts["our rounds"] + parts["our seconds"] + parts["our perplexity"]
    found["topics"] = found["topics"].map("{:.0f}".format)
    wide = across(found, ["corpus", "topics"], "column", "times sooner")
    last = found[found["peer"] == "warplda"].groupby(["corpus", "topics"]).last()[["WarpLDA's last", "ours"]]
    order = sorted(list(wide)[2:], key=lambda name: (len(name.split()), int(name.split()[0])))
    return simple_table(wide.join(last, on=["corpus", "topics"])[["corpus", "topics", *order, *last]])


def across(rows, index, columns, cells):
    """Return the texts of one column as a table, in the order of the rows, "" where there is none."""
    wide = rows.pivot(index=index, columns=columns, values=cells)[list(rows[columns].unique())].reset_index()
    return rows[index].drop_duplicates().merge(wide).fillna("")


def simple_table(table):
    """Return a table of texts as reStructuredText."""
    lines = [list(table), *table.to_numpy().tolist()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = " ".join("=" * width for width in widths)
    text = [" ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return "\n".join([rule, text[0], rule, *text[1:], rule])


def told(results, match):
    """Return what a page asks of rows: `{mean TABLE COLUMN KEY=VALUE ... :FORMAT}`, or seconds, seeds, a table.

    Seeds are the least number over the cells; what tells cells apart stands before the seed in a table. Of
    `KEY=A|B`, that of A and that of B, with a comma. A table has the rows of both, the columns that are named,
    `NAME:FORMAT` where one has a format of its own, and in the format numbers that have a decimal point. With
    `across=COLUMN` it has a column for each value of that, with those of NAME:FORMAT in its cells. Without
    columns, it is that of the audits, of testers, or of how much sooner than others a fit ends.
    """
    what, stem, rest = match.groups()
    parts = shlex.split(rest)
    return ", ".join(
        told_once(results, what, stem, some) for some in ([parts] if what == "table" else alternatives(parts))
    )


def alternatives(parts):
    """Return the parts with each value of those that have several."""
    keyed = (part.partition("=") for part in parts)
    return product(*([key + equals + value for value in values.split("|")] for key, equals, values in keyed))


def told_once(results, what, stem, parts):
    """Return what is asked of rows that have one value of each key."""
    rows, fits, columns, form, wide = table(results / f"{stem}.csv"), [], [], ",.0f", None
    for part in parts:
        key, equals, value = part.partition("=")
        if key == "across":
            wide = value
        elif equals:
            fits.append(rows[key].isin(value.split("|")))
        elif part.startswith(":"):
            form = part[1:]
        else:
            columns.append(part)
    if fits:
        rows = rows[np.logical_and.reduce(fits)]
    if not len(rows):
        raise ValueError(f"no row fits {stem} {shlex.join(parts)}")
    if what == "table" and columns:
        forms = [column.partition(":")[::2] for column in columns]
        values = pd.DataFrame({name: [shown(text, own or form) for text in rows[name]] for name, own in forms})
        if wide is not None:
            index, cells = ([name for name, own in forms if bool(own) == of_cells] for of_cells in (False, True))
            values = values.assign(**{wide: rows[wide].to_numpy(), "cell": values[cells].agg(", ".join, axis=1)})
            values = across(values, index, wide, "cell")
        return simple_table(values)
    if what == "table":
        return (testers_table if "tester" in rows else sooner_table if "library" in rows else audit_table)(rows)
    if what == "seeds":
        cells = [*rows.columns[: rows.columns.get_loc("seed")]]
        return str(rows.groupby(cells)["seed"].nunique().min() if cells else rows["seed"].nunique())
    known = pd.to_numeric(rows["cpu s" if what == "seconds" else columns[0]]).dropna()
    if what != "seconds":
        return f"{getattr(known, what)():{form}}"
    part = f" for {len(known):,} of {len(rows):,} rows" if 0 < len(known) < len(rows) else ""
    return f"{known.sum():,.0f}{part}" if len(known) else "not kept"


def shown(value, form):
    """Return a value of a row, in the format if it has a decimal point."""
    return f"{float(value):{form}}" if FRACTION.fullmatch(value) else value


def measured(rows):
    """Return the commits of rows: at which they were measured, or the first ones that have their values."""
    said = []
    for some, verb in ((rows[rows["processor"] != ""], "measured at"), (rows[rows["processor"] == ""], "stored by")):
        commits = [name for name, _ in Counter(some["commit"]).most_common()]
        more = f" and {len(commits) - 3} more" if len(commits) > 3 else ""
        said += [f"{len(some):,} {verb} {', '.join(commits[:3])}{more}"] * bool(commits)
    return "; ".join(said)


def hours(results):
    """Return the hours of processor time that rows name: of "cpu s", or of "seconds" in a table without it."""
    rows = [table(path) for path in sorted(results.glob("*.csv"))]
    named = [some.get("cpu s", some.get("seconds", pd.Series(dtype=str))) for some in rows]
    return sum(pd.to_numeric(some).sum() for some in named) / 3600


def tables_of(text, benchmarks):
    """Return the tables that a page shows: those of the programs that it names, and of its figures."""
    programs = {path.name: path.read_text(encoding="utf-8") for path in benchmarks.rglob("*.py")}
    figures = [f'"{figure}"' for figure in re.findall(r"figures/(\w+\.png)", text)]
    named = set(re.findall(r"benchmarks/(?:reproduce/)?(\w+\.py)", text))
    named |= {name for name, source in programs.items() if any(figure in source for figure in figures)}
    stems = sorted({stem for name in named for stem in TABLE.findall(programs.get(name, ""))})
    return [stem for stem in stems if (benchmarks / "results" / f"{stem}.csv").is_file()]


def with_rows(text, benchmarks):
    """Return the text of a page with what it asks of rows, and a last paragraph that names their commits."""
    results, stems = benchmarks / "results", tables_of(text, benchmarks)
    text = ASKED.sub(lambda match: told(results, match), text)
    text = text.replace("{hours}", f"{hours(results):.0f}") if "{hours}" in text else text
    if not stems:
        return text
    said = "; ".join(f"``{stem}.csv``: {measured(table(results / f'{stem}.csv'))}" for stem in stems)
    about = "A row that was stored before rows named their commit has the first that has its values."
    return f"{text.rstrip()}\n\n.. admonition:: At which commits the rows were measured\n\n   {said}. {about}\n"
