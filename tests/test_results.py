"""Results that know their code: fingerprints of source, tables that grow cell by cell, and what pages say of them."""

import importlib
import inspect
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not beside the tests")


@pytest.fixture
def results(monkeypatch):
    """The module, as if it were new."""
    return fresh(monkeypatch, "results")


def fresh(monkeypatch, name):
    monkeypatch.syspath_prepend(FOLDER)
    for each in ("results", "check", "trials"):
        monkeypatch.delitem(sys.modules, each, raising=False)
    return importlib.import_module(name)


PROGRAM = '''
"""A program."""
from helper import weigh, Base

STEPS = 3
OTHER = 4

class Model(Base):
    """A model."""
    def fit(self):
        return STEPS

def judge(model):
    # look
    if not model:
        raise ValueError("no model")
    return weigh(model)

def draw():
    return OTHER
'''
HELPER = """
FACTOR = 2

def weigh(model):
    return FACTOR * model.fit()

class Base:
    power = 1

def unused():
    return 0
"""


@pytest.fixture
def project(results, monkeypatch, tmp_path):
    """A made-up program and its helper; a call writes them, changed, and returns the fingerprint of names."""
    monkeypatch.setattr(results, "ROOTS", (tmp_path, tmp_path))

    def mark(*names, old="", new="", helper=HELPER):
        (tmp_path / "program.py").write_text(PROGRAM.replace(old, new) if old else PROGRAM)
        (tmp_path / "helper.py").write_text(helper)
        for cached in (results.path_of, results.module_of, results.digest):
            cached.cache_clear()
        return results.digest(names)

    return mark


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("STEPS = 3", "STEPS = 4"),
        ("return weigh(model)", "return -weigh(model)"),
        ("return STEPS", "return STEPS + 1"),
        ("if not model", "if model is None"),
        ("raise ValueError", "raise TypeError"),
        ("Model(Base)", "Model"),
    ],
)
def test_a_change_of_what_is_reached_changes_the_fingerprint(project, old, new):
    names = ("program.Model", "program.judge")
    assert project(*names) != project(*names, old=old, new=new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("OTHER = 4", "OTHER = 5"),
        ('"""A model."""', '"""Another text."""'),
        ("    # look\n", ""),
        ('"no model"', '"a model, please"'),
        ("return weigh(model)", "return weigh(\n        model\n    )"),
    ],
)
def test_text_and_what_is_not_reached_leave_it(project, old, new):
    names = ("program.Model", "program.judge")
    assert project(*names) == project(*names, old=old, new=new)


def test_it_follows_imports_base_classes_and_constants_of_other_files(project):
    before = {name: project(f"program.{name}") for name in ("judge", "Model", "draw")}
    for old, new, changed in (("FACTOR = 2", "FACTOR = 3", "judge"), ("power = 1", "power = 2", "Model")):
        for name, mark in before.items():
            assert (project(f"program.{name}", helper=HELPER.replace(old, new)) != mark) == (name == changed)
    assert project("program.judge", helper=HELPER.replace("return 0", "return 1")) == before["judge"]


def test_a_name_that_is_gone_has_no_fingerprint(project):
    with pytest.raises(ValueError, match="has no 'gone'"):
        project("program.gone")
    with pytest.raises(ValueError, match="nothing is called"):
        project("nowhere.gone")


@pytest.fixture
def trials(monkeypatch):
    """The module, with short trials in place of its own, so that none takes time here; whose own are under `kept`."""
    module = fresh(monkeypatch, "trials")
    module.kept = dict(module.TRIALS)
    for name in module.TRIALS:
        monkeypatch.setitem(module.TRIALS, name, lambda: [[1.0]])
    return module


def test_estimators_stand_for_what_they_make_of_the_trials(results, trials, monkeypatch):
    found = {}
    for root in ("PrivateCGSLDA", "metrics.perplexity", "privacy.calibrate_gaussian", "models._base.BaseRoundsModel"):
        results.reach(*results.split_root(f"skdplda.{root}"), found)
    tried = {("trial", name) for name in ("PrivateCGSLDA", "metrics", "privacy", "BaseRoundsModel")}
    assert set(found) == tried | {("skdplda.metrics._gensim", "")}  # by its source
    before = {name: results.digest((f"skdplda.{name}",)) for name in ("PrivateCGSLDA", "VIPSLDA")}
    monkeypatch.setitem(trials.TRIALS, "PrivateCGSLDA", lambda: [[1.0001]])
    trials.letters.cache_clear()
    results.digest.cache_clear()
    after = {name: results.digest((f"skdplda.{name}",)) for name in before}
    assert before["PrivateCGSLDA"] != after["PrivateCGSLDA"] and before["VIPSLDA"] == after["VIPSLDA"]


@pytest.fixture
def letters(trials, monkeypatch):
    """The letters of a trial of the module's own, anew at each call."""

    def tried(name):
        monkeypatch.setitem(trials.TRIALS, name, trials.kept[name])
        trials.letters.cache_clear()
        return trials.letters(name)

    return tried


def test_letters_differ_for_an_estimator_that_learns_otherwise(trials, letters, monkeypatch):
    before = letters("DPVocabularySelector")
    assert before == letters("DPVocabularySelector") != letters("metrics")
    constants = trials.DPVocabularySelector.__init__.__kwdefaults__
    monkeypatch.setitem(constants, "max_words_per_unit", 40)
    assert letters("DPVocabularySelector") != before
    assert set(trials.kept) >= {"PrivateCGSLDA", "VIPSLDA", "HDPLDA", "LocalPrivateLDA", "PCTD", "EmbeddingTopics"}


DEFEATS = [  # a trial, its part, and an edit of a module that no former trial saw
    ("privacy", "monitor", "privacy._monitor", "float(2 * max(", "float(3 * max("),
    ("privacy", "shares", "published._vips", "return epsilon / steps", "return 0.5 * epsilon / steps"),
    ("LocalPrivateLDA", "reports", "models._local", "n_documents, self.prior_weight)", "n_documents, 0.99)"),
    ("PrivateCGSLDA", "published", "published._gibbs_sampler", "form.noise_of_last / ", "10 * form.noise_of_last / "),
    ("PrivateCGSLDA", "published", "published._gibbs_sampler", "(form.noise / ", "(9 * form.noise / "),
    ("VIPSLDA", "bounded", "models._vips", "else float(self.max_norm)", "else 1.5 * float(self.max_norm)"),
    ("VIPSLDA", "bounded", "esteps._variational", "max_length=max_length", "max_length=None"),
    ("VIPSLDA", "helped", "rounds._adaptive", "= unit_columns((yield from", "= -unit_columns((yield from"),
    ("DPVocabularySelector", "selection", "privacy._partition", "np.full(most, grid)", "np.full(most, 3 * grid)"),
]


@pytest.fixture
def edit(monkeypatch):
    """A call gives the functions of a module of skdplda the code that they have where its source is edited."""

    def edited(name, old, new):
        module = importlib.import_module(f"skdplda.{name}")
        source = Path(module.__file__).read_text(encoding="utf-8")
        assert old in source
        other = dict(vars(module))
        exec(compile(source.replace(old, new), module.__file__, "exec"), other)
        n_changed = 0
        for key, value in other.items():
            pairs = [(getattr(module, key, None), value)]
            if isinstance(value, type) and value.__module__ == module.__name__:
                pairs = [(vars(pairs[0][0]).get(each), made) for each, made in vars(value).items()]
            for before, after in pairs:
                before, after = inspect.unwrap(before), inspect.unwrap(after)
                if inspect.isfunction(after) and before.__code__ != after.__code__:
                    monkeypatch.setattr(before, "__code__", after.__code__)
                    n_changed += 1
        assert n_changed
        forget()

    def forget():
        for module in [module for key, module in sys.modules.items() if key.startswith("skdplda.")]:
            for each in vars(module).values():
                if callable(getattr(each, "cache_clear", None)):
                    each.cache_clear()

    yield edited
    monkeypatch.undo()
    forget()


@pytest.fixture(scope="module")
def known():
    """The letters of parts of trials, as the code is."""
    return {}


@pytest.mark.parametrize(("name", "part", "module", "old", "new"), DEFEATS)
def test_letters_differ_after_an_edit_of_each_part(trials, edit, known, monkeypatch, name, part, module, old, new):
    kept = trials.kept[name]
    assert part == kept.__name__ or part in kept.__code__.co_names
    monkeypatch.setitem(trials.TRIALS, name, getattr(trials, part))
    if part not in known:
        trials.letters.cache_clear()
        known[part] = trials.letters(name)
    edit(module, old, new)
    trials.letters.cache_clear()
    assert trials.letters(name) != known[part]


@pytest.mark.parametrize(
    ("root", "file", "old", "new", "seen"),
    [
        ("metrics.coherence", "metrics/_gensim.py", "_EPSILON = 1e-12", "_EPSILON = 2e-12", True),
        ("metrics.coherence", "metrics/_gensim.py", "# gensim's pseudo-count", "# the pseudo-count", False),
        ("attacks.max_log_likelihood", "_kernels/mixture_weights.h", "#define PASSES 6", "#define PASSES 1", True),
        ("attacks.max_log_likelihood", "_kernels/mixture_weights.h", "#ifndef", "#ifdef", True),
        ("attacks.max_log_likelihood", "_kernels/mixture_weights.h", "/* Sums over", "/* All sums over", False),
        (
            "attacks.max_log_likelihood",
            "_kernels/_zeta.pyx",
            "import numpy as np",
            "import numpy as np  # first",
            False,
        ),
    ],
)
def test_fingerprints_see_edits_of_sources(results, trials, monkeypatch, tmp_path, root, file, old, new, seen):
    before = results.digest((f"skdplda.{root}",))
    shutil.copytree(results.ROOTS[0] / "skdplda", tmp_path / "skdplda", ignore=shutil.ignore_patterns("*.so", "*.c"))
    path = tmp_path / "skdplda" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    monkeypatch.setattr(results, "ROOTS", (tmp_path, *results.ROOTS[1:]))
    for cached in (results.path_of, results.module_of, results.digest):
        cached.cache_clear()
    assert (results.digest((f"skdplda.{root}",)) != before) == seen


@pytest.mark.parametrize(
    ("root", "file", "old", "new"),
    [
        ("frontier.judge_short", "frontier.py", "split(len(posts.data)), 10,", "split(len(posts.data)), 8,"),
        ("frontier.judge_short", "frontier.py", "name=KOS, binary=True", "name=KOS, binary=False"),
        (
            "attacks_manzonelli.experiment",
            "attacks_manzonelli.py",
            "LDA(topics, random_state=0)",
            "LDA(topics, max_iter=2)",
        ),
    ],
)
def test_fingerprints_see_edits_of_settings_and_of_how_corpora_are_read(
    results, trials, monkeypatch, tmp_path, root, file, old, new
):
    before = results.digest((root,))
    for folder in results.ROOTS[1:]:
        for path in folder.glob("*.py"):
            shutil.copy(path, tmp_path)
    text = (tmp_path / file).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / file).write_text(text.replace(old, new), encoding="utf-8")
    monkeypatch.setattr(results, "ROOTS", (results.ROOTS[0], tmp_path))
    for cached in (results.path_of, results.module_of, results.digest):
        cached.cache_clear()
    assert results.digest((root,)) != before


def test_letters_do_not_tell_of_the_last_bit_of_a_logarithm(letters, monkeypatch):
    before, random = letters("HDPLDA"), np.random.default_rng(0)

    def of_another_processor(function):
        def off(*given, **options):
            found = function(*given, **options)
            found += random.integers(-2, 3, np.shape(found)) * np.spacing(found)
            return found

        return off

    with monkeypatch.context() as patched:
        for function in (np.exp, np.log, np.expm1, np.log1p):
            patched.setattr(np, function.__name__, of_another_processor(function))
        assert letters("HDPLDA") == before
    monkeypatch.setattr("skdplda.models._hdp_sampler.SMOOTHING", 0.501)  # 0.5
    assert letters("HDPLDA") != before


def test_what_has_no_trial_counts_by_its_source_and_kernels(results, trials):
    found = {}
    results.reach("skdplda.attacks", "membership_experiment", found)
    names = {key if isinstance(key, str) else ".".join(map(str, key)) for key in found}
    assert {"skdplda.attacks._experiment.membership_experiment", "_zeta.pyx", "mixture_weights.h"} <= names
    assert not any(name.startswith(("skdplda.models._vips", "skdplda.audit")) for name in names)
    assert not results.SILENT & {key[0] for key in found if not isinstance(key, str)}
    assert all(results.path_of(module) for module in results.SILENT)


def test_states_tell_this_code_from_older_and_unknown(results, trials):
    row = {"code": results.code_of("skdplda.metrics.perplexity"), "data": results.data_of("kos")}
    assert results.state(row) == results.FRESH
    for changed in ({"code": f"{row['code'][:-1]}?"}, {"data": "kos@0000000000"}, {"data": "gone@0000000000"}):
        assert results.state(row | changed) == results.STALE
    assert results.state({"code": "skdplda.metrics.gone@0123456789", "data": "none"}) == results.STALE
    assert results.state({"value": 1}) == results.state({"code": "unknown", "data": ""}) == results.UNKNOWN


def test_rows_go_on_and_measure_again_what_is_older(results, trials, tmp_path):
    path, calls = tmp_path / "table.csv", []

    def work(*values):
        calls.append(values)
        return [{"value": value} for value in values]

    def rows():
        return results.Rows(path, ["corpus", "epsilon"])

    cells = [{"corpus": "a", "epsilon": epsilon} for epsilon in (1.0, float("inf"))]
    for _ in range(2):
        for cell in cells:
            rows().measure(cell, partial(work, 1, 2), ["skdplda.metrics.perplexity"])
    assert len(calls) == 2
    table = pd.read_csv(path)
    assert list(table) == ["corpus", "epsilon", "value", "cpu s", "code", "data"]
    assert len(table) == 4
    assert rows().absent([*cells, {"corpus": "b", "epsilon": 1}]) == [{"corpus": "b", "epsilon": 1}]
    table.loc[0, "code"] = "skdplda.metrics.perplexity@0000000000"  # one row of the first cell is older
    table.to_csv(path, index=False)
    for cell in cells:
        rows().measure(cell, partial(work, 3), ["skdplda.metrics.perplexity"])
    assert calls[2:] == [(3,)]
    assert sorted(pd.read_csv(path)["value"]) == [1, 2, 3]
    with pytest.raises(ValueError, match=r"has no columns \['seed'\]"):
        results.Rows(path, ["corpus", "seed"])


def test_a_table_of_one_go_is_stamped(results, trials, tmp_path):
    results.save(pd.DataFrame({"value": [1, 2]}), tmp_path / "t.csv", ["skdplda.metrics.perplexity"], ["kos"])
    assert [results.state(row) for row in pd.read_csv(tmp_path / "t.csv", dtype=str).to_dict("records")] == [
        results.FRESH
    ] * 2


@pytest.fixture
def check(monkeypatch):
    """The module."""
    return fresh(monkeypatch, "check")


def test_every_page_says_which_of_its_results_are_not_of_this_code(check, monkeypatch):
    known = (check.FRESH,), (check.FRESH, check.STALE), (check.UNKNOWN,)
    monkeypatch.setattr(check, "states_of", lambda path: known[len(path.stem) % 3])
    monkeypatch.setattr(check, "absent_cells", lambda: {"vips_table1": [{"seed": 0}] * 7, "pctd_table1": []})
    shown = check.pages()
    if not shown:
        pytest.skip("the documentation is not beside the tests")
    assert {"frontier.rst", "reproductions.rst", "theory/pctd.rst"} <= set(shown)
    for page, tables in shown.items():
        text = check.with_note(page, "Page\n====\n")
        for stem in tables:
            older = set(check.states_of(check.RESULTS / f"{stem}.csv")) - {check.FRESH}
            lacks = stem == "vips_table1"
            assert (f"``{stem}.csv``" in text) == bool(older or lacks), (page, stem)
            assert ("7 cells were not measured" in text) == ("vips_table1" in tables)
    assert check.with_note("no_such_page.rst", "text") == "text"
    assert 'app.connect("source-read", say_which_code)' in (check.DOC / "conf.py").read_text(encoding="utf-8")


def test_a_page_asks_stored_rows_for_seconds_and_seeds(check, tmp_path, monkeypatch):
    monkeypatch.setattr(check, "RESULTS", tmp_path)
    monkeypatch.setattr(check, "pages", dict)
    rows = {"corpus": list("aab"), "run": [9, 9, 1], "seed": [0, 1, 0], "cpu s": [1000.4, 1.2, None]}
    pd.DataFrame(rows).to_csv(tmp_path / "t.csv", index=False)
    asked = "{seconds t run=9}, {seconds t}, {seconds t run=1}; {seeds t}, {seeds t corpus=a}"
    assert check.with_note("none.rst", asked) == "1,002, 1,002 for 2 of 3 rows, not kept; 1 to 2, 2"


def test_a_built_page_that_does_not_say_so_is_found(check, tmp_path, monkeypatch):
    shown = {"a.rst": ["old", "new"], "b/c.rst": ["old"], "d.rst": ["few"], "gone.rst": ["new"]}
    monkeypatch.setattr(check, "pages", lambda: shown)
    monkeypatch.setattr(check, "absent_cells", lambda: {"few": [{"seed": 0}]})
    monkeypatch.setattr(check, "RESULTS", tmp_path)
    monkeypatch.setattr(check, "states_of", lambda path: (check.STALE if path.stem == "old" else check.FRESH,))
    (tmp_path / "b").mkdir()
    (tmp_path / "a.html").write_text("old.csv, a figure. Which code the numbers are of: <code>old.csv</code> (1)")
    (tmp_path / "b" / "c.html").write_text("old.csv, a figure, and nothing else")
    (tmp_path / "d.html").write_text("few.csv. Which code the numbers are of: all is of this code")
    assert check.silent_pages(tmp_path) == [("b/c.rst", "old"), ("d.rst", "few")]
    monkeypatch.setattr(sys, "argv", ["check.py", "--built", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        check.main()
    assert end.value.code == 1


def test_a_shallow_clone_names_no_commits(check, tmp_path):
    def git(*given, cwd):
        who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a"}
        subprocess.run(["git", *given], cwd=cwd, check=True, capture_output=True, env=os.environ | who)

    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    whole = tmp_path / "whole"
    whole.mkdir()
    git("init", "-q", cwd=whole)
    for name in "ab":
        (whole / f"{name}.csv").write_text(name)
        git("add", ".", cwd=whole)
        git("commit", "-qm", name, cwd=whole)
    git("clone", "-q", "--depth", "1", whole.as_uri(), "shallow", cwd=tmp_path)
    assert " of 2" in check.stored(whole / "a.csv")
    assert check.stored(whole / "a.csv") != check.stored(whole / "b.csv")
    assert check.stored(tmp_path / "shallow" / "a.csv") == ""


def rows_of(check, stem):
    """Return a table that the pages speak of."""
    path = check.RESULTS / f"{stem}.csv"
    if not path.is_file() or not check.DOC.is_dir():
        pytest.skip("the results, or the pages, are not beside the tests")
    return pd.read_csv(path)


def test_the_page_on_audits_has_the_numbers_of_its_rows(check):
    rows = rows_of(check, "audit")
    text = (check.DOC / "attacks.rst").read_text(encoding="utf-8")
    assert "\n{table audit}\n" in text
    table = check.ASKED.sub(check.told, "{table audit}").splitlines()
    assert len(table) == rows["estimator"].nunique() + 4
    width = table[0].index(" ")
    for estimator, found in rows[rows["bound"] == "independent noise"].groupby("estimator"):
        line = next(line for line in table if line[:width].rstrip() == estimator)[width:]
        assert all(f" {share:.0f} " in f"{line} " for share in found["per cent"])
    per_cent = rows.loc[(rows["bound"] == "any dependence") & (rows["attack"] == "white-box"), "per cent"]
    seconds = rows.groupby(["estimator", "epsilon"])["cpu s"].sum()
    words = " ".join(text.split())
    assert f"white-box numbers are {per_cent.min():.0f} to {per_cent.max():.0f}." in words
    assert f"{seconds.min() + 1e-9:.1f} to {seconds.max():.0f} s of processor time" in words


def test_the_readme_has_the_numbers_of_its_rows(check):
    rows = rows_of(check, "frontier_little").query("corpus == '20 Newsgroups' and topics == 10 and model == 'VIPSLDA'")
    gain = 100 * (rows["unigram"] - rows["perplexity"]) / (rows["unigram"] - rows["non-private"])
    gain = gain.groupby([rows["help"], rows["epsilon"]]).mean()
    words = " ".join((FOLDER.parent / "README.md").read_text(encoding="utf-8").split())
    for help_, text in (
        ("none", "keep {}, {}, {} and {} % with `VIPSLDA`"),
        ("vectors", "{}, {}, {} and {} % with public"),
    ):
        assert text.format(*(f"{gain[help_, epsilon]:.0f}" for epsilon in (0.5, 1.0, 2.0, 5.0))) in words


def test_every_stored_table_and_figure_has_a_program(check):
    stored = [path for path in check.RESULTS.glob("*") if path.suffix in (".csv", ".png")]
    if not stored:
        pytest.skip("the results are not beside the tests")
    for path in stored:
        command = check.command_of(path.stem)
        assert command, f"benchmarks/check.py does not know what makes {path.name}"
        assert (check.BENCHMARKS / command.split()[0]).is_file()
