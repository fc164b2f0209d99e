"""A row of a benchmark says what was run: settings, commit, corpora; and pages take their numbers from rows."""

import dataclasses
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pd = pytest.importorskip("pandas")
FOLDER = Path(__file__).parents[1] / "benchmarks"
DOC = FOLDER.parent / "doc"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not beside the tests")


@pytest.fixture
def results(monkeypatch):
    """The module, as if it were new."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.delitem(sys.modules, "results", raising=False)
    return importlib.import_module("results")


@pytest.fixture(scope="module")
def tables():
    """All tables of all programs, by name."""
    path, known = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    try:
        yield {table.name: table for table in importlib.import_module("results").tables()}
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - known:
            if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]


OTHER = {
    str: lambda x: x + "?",
    int: lambda x: x + 1,
    float: lambda x: 0.5 if x == 1 else 1.0,
    tuple: lambda x: (*x, 7.0),
}


def test_a_change_of_any_setting_is_another_row(tables):
    assert len(tables) > 50
    for name, table in tables.items():
        cells = list(table.cells())
        keys = {tuple(table.key(cell).values()) for cell in cells}
        assert cells and len(keys) == len(cells), name
        for field in dataclasses.fields(table.settings):
            changed = dataclasses.replace(cells[0], **{field.name: OTHER[field.type](getattr(cells[0], field.name))})
            assert table.key(changed) != table.key(cells[0]), (name, field.name)
        for cell in cells[:50]:
            assert table.of(table.key(cell)) == cell, name


def test_every_setting_is_used_by_its_program(tables):
    """A setting that nothing reads would be a column that says what was not so."""
    for name, table in tables.items():
        source = Path(sys.modules[table.settings.__module__].__file__).read_text(encoding="utf-8")
        for field in dataclasses.fields(table.settings):
            read = re.search(rf"\b(s|settings|cell|table)\.{field.name}\b", source)
            assert read or f'"{field.name}"' in source, (name, field.name)


def test_edits_that_once_went_unnoticed_are_settings(tables):
    names = {name: {field.name for field in dataclasses.fields(table.settings)} for name, table in tables.items()}
    assert {"published_sweeps", "delta"} <= names["frontier"]
    assert {"models", "fpr"} <= names["frontier_attack"]
    assert {"published_sweeps", "models", "repetitions", "topics", "cutoff"} <= names["attacks_fdptm"]
    assert {"shadows", "sweeps", "topics"} <= names["attacks_classifier"]
    assert {"run", "topics", "alpha", "inherent"} <= names["hdp_figure5"]
    assert {"sweeps", "every", "correlation"} <= names["local_figures"]
    assert {"seeds", "bounds", "delta"} <= names["vocabulary"]
    assert {"canaries", "fits"} <= names["audit_variants"]


def test_stored_tables_and_figures_have_programs(tables):
    stored = [path for path in (FOLDER / "results").glob("*") if path.suffix in (".csv", ".png")]
    if not stored:
        pytest.skip("the results are not beside the tests")
    programs = [path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.py")]
    for path in stored:
        if path.suffix == ".csv" and path.stem != "mutants":  # which is a table of its own
            assert path.stem in tables, path.name
            header = list(pd.read_csv(path, nrows=0))
            assert {field.name for field in dataclasses.fields(tables[path.stem].settings)} <= set(header), path.name
            assert "commit" in header and not pd.read_csv(path, usecols=["commit"])["commit"].isna().any()
        elif path.suffix == ".png":
            parts = path.name.split("_")[0]
            assert any(path.name in source or f'"{parts}_' in source for source in programs), path.name


@pytest.fixture
def toy(results, tmp_path, monkeypatch):
    """A program of one table, and what it was asked to measure."""
    asked = []

    @dataclasses.dataclass(frozen=True)
    class Settings:
        corpus: str
        epsilon: float
        sweeps: int = 300
        bounds: tuple = (5.0, 20.0)

    def measure(settings):
        asked.append(settings)
        return [{"value": settings.epsilon * settings.sweeps + n, "ms": 1.0} for n in range(2)]

    cells = [Settings("a, b", epsilon) for epsilon in (0.5, float("inf"))]
    table = results.Table("toy", Settings, lambda: cells, measure, timed=("ms",))
    monkeypatch.setattr(results, "commit", lambda: "abc")

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["toy.py", *words, "--output", str(tmp_path)])
        results.run([table], "A program.", lambda found, folder: asked.append(len(found["toy"])))
        return pd.read_csv(tmp_path / "toy.csv", dtype=str, keep_default_na=False)

    return run, table, asked, tmp_path / "toy.csv"


def test_a_row_has_all_settings_and_what_it_is_of(toy):
    run, _, asked, _ = toy
    found = run()
    settings = ["corpus", "epsilon", "sweeps", "bounds"]
    assert list(found) == [*settings, "value", "ms", "cpu s", "commit", "version", "corpora", "processor"]
    assert found.iloc[0][[*settings, "commit", "corpora"]].tolist() == ["a, b", "0.5", "300", "5 20", "abc", "none"]
    assert len(found) == asked[-1] == 4
    assert (found[["version", "processor"]] != "").all(axis=None)


def test_rows_are_measured_once_unless_a_setting_or_again_says_otherwise(toy, results, monkeypatch):
    run, _, asked, _ = toy
    run()
    run()
    assert len([one for one in asked if not isinstance(one, int)]) == 2
    asked.clear()
    assert len(run("--set", "sweeps=30", "--only", "epsilon=0.5")) == 6
    assert [one.sweeps for one in asked] == [30]  # and no report of a table in part
    asked.clear()
    run("--again")
    assert asked == [6]
    monkeypatch.setattr(results, "commit", lambda: "abc+012345")
    assert sorted(run("--again", "--first", "1")["commit"]) == ["abc"] * 4 + ["abc+012345"] * 2
    with pytest.raises(SystemExit):
        run("--only", "sweep=3")


def test_rows_of_unknown_settings_give_way_to_the_planned_cell_alone(toy, results):
    run, table, _, path = toy
    old = {"corpus": "a, b", "epsilon": "0.5", "sweeps": "", "bounds": "", "value": "1", "commit": "old"}
    results.write([{name: "" for name in results.STAMP} | old], path)
    assert table.of(old) is None
    assert table.of(old, assume=True) == table.cells()[0]
    assert "old" in set(run("--set", "sweeps=30", "--first", "1")["commit"])
    assert "old" not in set(run()["commit"])


def test_values_cannot_stand_in_for_settings(toy, results):
    _, table, *_ = toy
    wrong = dataclasses.replace(table, measure=lambda settings: {"sweeps": 3})
    with pytest.raises(ValueError, match="are settings and values"):
        results.measured(wrong, table.cells()[0])


def test_the_commit_says_whether_and_which_files_were_changed(results, tmp_path, monkeypatch):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    who = {f"GIT_{role}_{what}": "a" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def git(*given):
        done = subprocess.run(
            ["git", *given], cwd=tmp_path, check=True, capture_output=True, text=True, env=os.environ | who
        )
        return done.stdout.strip()

    for name in ("skdplda/model.py", "benchmarks/program.py", "benchmarks/results/t.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("SWEEPS = 300\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    monkeypatch.setattr(results, "BENCHMARKS", tmp_path / "benchmarks")

    def said():
        results.commit.cache_clear()
        return results.commit()

    clean = said()
    assert git("rev-parse", "HEAD").startswith(clean)
    (tmp_path / "benchmarks/results/t.csv").write_text("1\n")
    assert said() == clean  # rows are no code
    seen = {clean}
    for name in ("skdplda/model.py", "benchmarks/program.py"):
        for text in ("SWEEPS = 30\n", "SWEEPS = 50\n"):
            (tmp_path / name).write_text(text)
            seen.add(said())
    assert len(seen) == 5
    assert all(one.startswith(clean) for one in seen)
    results.commit.cache_clear()


def test_check_tells_what_comes_again(toy, results, monkeypatch):
    run, table, _, path = toy
    run()
    monkeypatch.setattr(results, "tables", lambda: iter([table]))
    assert results.check(1.0, folder=path.parent) == {("toy", "same"): 4}
    assert sum(results.check(0.5, 3, folder=path.parent).values()) == 2
    rows = results.read(path)
    rows[1] |= {"value": "1.5", "ms": "7"}
    rows[3] |= {"ms": "7", "sweeps": ""}
    results.write(rows, path)
    found = results.check(1.0, folder=path.parent)
    assert found == {("toy", "same"): 2, ("toy", "differs"): 1, ("toy", "settings not known"): 1}
    for measure, state in (
        (lambda settings: {}[settings], "fails"),
        (lambda settings: path.with_name("x").open(), "left out"),
    ):
        monkeypatch.setattr(
            results, "tables", lambda measure=measure: iter([dataclasses.replace(table, measure=measure)])
        )
        assert results.check(1.0, folder=path.parent)["toy", state] == 3
    monkeypatch.setattr(results, "tables", lambda: iter([dataclasses.replace(table, timed=True)]))
    assert results.check(1.0, folder=path.parent) == {("toy", "not to be compared"): 4}
    assert sum(results.check(0.01, folder=path.parent).values()) == 1  # one row of a table at least


@pytest.fixture
def rows(monkeypatch):
    """What puts numbers into pages."""
    if not DOC.is_dir():
        pytest.skip("the documentation is not beside the tests")
    monkeypatch.syspath_prepend(DOC)
    monkeypatch.delitem(sys.modules, "rows", raising=False)
    return importlib.import_module("rows")


def test_a_page_takes_numbers_from_rows_and_names_their_commits(rows, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "program.py").write_text('TABLES = [\n    Table("t", Settings, cells, measure),\n]\n')
    table = {"corpus": list("aab"), "seed": [0, 1, 0], "x y": [1.0, 2.0, 9.0], "cpu s": [1000.4, 9998.8, None]}
    table |= {"commit": ["c1", "c1", "c2"], "processor": ["", "", "cpu"]}
    pd.DataFrame(table).to_csv(tmp_path / "results" / "t.csv", index=False)
    text = '{mean t "x y" corpus=a :.2f}, {max t "x y"}; {seconds t}; {seeds t}; {hours}; {mean}.'
    said = rows.with_rows(f"Of benchmarks/program.py: {text}", tmp_path)
    assert said.startswith("Of benchmarks/program.py: 1.50, 9; 10,999 for 2 of 3 rows; 1; 3; {mean}.")
    assert "``t.csv``: 1 measured at c2; 2 stored by c1." in said
    assert rows.with_rows("no program", tmp_path) == "no program"
    assert rows.with_rows('{mean t "x y" corpus=a|b seed=0 :.0f}', tmp_path) == "1, 9"
    wide = rows.with_rows('{table t corpus "x y":.1f across=seed corpus=b|a}', tmp_path).splitlines()
    assert [line.split() for line in wide[1:5:2]] == [["corpus", "0", "1"], ["a", "1.0", "2.0"]]
    assert wide[4].split() == ["b", "9.0"]
    assert rows.with_rows("{seeds t corpus=a}", tmp_path) == "2"
    with pytest.raises(ValueError, match="no row fits"):
        rows.with_rows('{mean t "x y" corpus=c}', tmp_path)


def test_how_much_sooner_is_of_the_quickest_fit_that_is_no_worse(rows):
    columns = ["corpus", "topics", "threads", "library", "sweeps", "seconds", "perplexity"]
    found = [("kos", 5, 1, "warplda", 25, 8.0, 100.0), ("kos", 5, 1, "warplda", 50, 16.0, 80.0)]
    found += [("kos", 5, 1, "skdplda", n, n / 1.0, p) for n, p in ((1, 101.0), (2, 100.0), (4, 99.0), (3, 81.0))]
    table = rows.sooner(pd.DataFrame(found, columns=columns))
    assert table["times sooner"].tolist() == ["4.0", "not reached"]
    assert table["our rounds"].tolist() == [2, 3]
    text = rows.sooner_table(pd.DataFrame(found, columns=columns).astype(str)).splitlines()
    assert text[1].split()[:4] == ["corpus", "topics", "25", "50"] and "4.0 not reached" in text[3]


def test_all_pages_find_their_rows(rows):
    if not (FOLDER / "results").is_dir():
        pytest.skip("the results are not beside the tests")
    assert 'app.connect("source-read", say_which_rows)' in (DOC / "conf.py").read_text(encoding="utf-8")
    shown = {}
    for page in DOC.rglob("*.rst"):
        text = page.read_text(encoding="utf-8")
        if not {"_build", "generated", "auto_examples"} & set(page.parts):
            name = page.relative_to(DOC).with_suffix("").as_posix()
            said, shown[name] = rows.with_rows(text, FOLDER), rows.tables_of(text, FOLDER)
            assert not rows.ASKED.search(said)
            assert all(f"``{stem}.csv``: " in said for stem in shown[name])
    assert all(shown[name] for name in ("attacks", "frontier", "kernels", "reproductions", "theory/pctd"))


def rows_of(stem):
    """Return a table that the pages speak of."""
    path = FOLDER / "results" / f"{stem}.csv"
    if not path.is_file() or not DOC.is_dir():
        pytest.skip("the results, or the pages, are not beside the tests")
    return pd.read_csv(path)


def test_the_page_on_audits_has_the_numbers_of_its_rows(rows):
    found = rows_of("audit")
    text = (DOC / "attacks.rst").read_text(encoding="utf-8")
    assert "\n{table audit}\n" in text
    table = rows.ASKED.sub(lambda match: rows.told(FOLDER / "results", match), "{table audit}").splitlines()
    assert len(table) == found["estimator"].nunique() + 4
    width = table[0].index(" ")
    for estimator, some in found[found["bound"] == "independent noise"].groupby("estimator"):
        line = next(line for line in table if line[:width].rstrip() == estimator)[width:]
        assert all(f" {share:.0f} " in f"{line} " for share in some["per cent"])
    per_cent = found.loc[(found["bound"] == "any dependence") & (found["attack"] == "white-box"), "per cent"]
    words = " ".join(rows.with_rows(text, FOLDER).split())
    assert f"white-box numbers are {per_cent.min():.0f} to {per_cent.max():.0f}." in words
    assert f"{found['cpu s'].sum():.0f} s of processor time" in words


def test_the_readme_has_the_numbers_of_its_rows():
    found = rows_of("frontier_little").query("corpus == '20 Newsgroups' and topics == 10 and model == 'VIPSLDA'")
    gain = 100 * (found["unigram"] - found["perplexity"]) / (found["unigram"] - found["non-private"])
    gain = gain.groupby([found["help"], found["epsilon"]]).mean()
    words = " ".join((FOLDER.parent / "README.md").read_text(encoding="utf-8").split())
    for help_, text in (
        ("none", "keep {}, {}, {} and {} % with `VIPSLDA`"),
        ("vectors", "{}, {}, {} and {} % with public"),
    ):
        assert text.format(*(f"{gain[help_, epsilon]:.0f}" for epsilon in (0.5, 1.0, 2.0, 5.0))) in words
