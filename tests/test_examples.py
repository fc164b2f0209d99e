"""The examples run, on small corpora and without a download, as a reader would run them."""

import os
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
UNSET = ("SKDPLDA_DATA", "DISPLAY", "WAYLAND_DISPLAY")
SMALL_CORPORA = ".* topics hold more noise than topic"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run an example in an empty folder and return what it prints; warnings are errors, but that of noisy topics."""

    def run(name, *arguments):
        plt.switch_backend("agg")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [str(EXAMPLES / name), *arguments])
        for variable in UNSET:
            monkeypatch.delenv(variable, raising=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", SMALL_CORPORA)
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        plt.close("all")
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return run


def test_an_example_runs_in_a_new_interpreter(tmp_path):
    """As a reader runs it; the others here share the imports."""
    environment = {name: value for name, value in os.environ.items() if name not in UNSET}
    command = [sys.executable, "-W", "always", str(EXAMPLES / "streaming.py"), "--batches", "6", "--batch", "200"]
    options = {"cwd": tmp_path, "env": {**environment, "MPLBACKEND": "agg"}, "timeout": 120}
    done = subprocess.run(command, **options, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set(re.findall(r"\w+Warning(?=: )", done.stderr)) <= {"NoisyTopicsWarning"}  # of batches as small as these
    assert "resumed after 3 batches" in done.stdout
    assert "one more batch is refused" in done.stdout
    assert "spent: epsilon 2 in 1 entry" in done.stdout
    assert re.findall(r"^(6 batches|one fit): \d+% of the topics", done.stdout, re.MULTILINE) == [
        "6 batches",
        "one fit",
    ]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_example_is_run_here(path):
    assert f'"{path.name}"' in Path(__file__).read_text(encoding="utf-8")


def test_quickstart(run):
    out = run("quickstart.py", "--documents", "2000")
    assert "PrivacyGuarantee(epsilon=1, delta=1e-6, document, add-remove, central, proven)" in out
    assert len(re.findall(r"^topic_\d ", out, re.MULTILINE)) == 5
    assert "Differential privacy statement" in out


def test_choose_epsilon(run):
    out = run("choose_epsilon.py", "--documents", "300")
    assert out.count("documents, epsilon") == 10
    assert "Differential privacy statement" in out
    (row,) = (line.split() for line in out.splitlines() if line.startswith("5.0 "))
    assert row[1:3] == ["99.3%", "11.4%"]


def test_hospital(run, tmp_path):
    out = run("hospital.py", "--notes", "2500")
    assert "epsilon = 2, delta = 1e-6" in out and "all documents of any one user together" in out
    assert out.count("topic_7") == 2
    page = (tmp_path / "topics.html").read_text(encoding="utf-8")
    assert "<h1>What the notes are about</h1>" in page and "epsilon = 2, delta = 1e-6 per user" in page
    assert {path.name for path in tmp_path.iterdir()} == {
        *("topics.html", "topics.zip", "topics.card.md", "topics.card.json"),
    }


def test_look_at_topics(run):
    assert "topics.html: " in run("look_at_topics.py", "--documents", "1000")


def test_attack_and_defence(run):
    out = run("attack_and_defence.py", "--documents", "80", "--shadows", "4")
    assert out.count("of the members found at 1 % false alarms") == 4


def test_audit_a_claim(run):
    out = run("audit_a_claim.py", "--canaries", "600")
    assert out.count("VIOLATED") == 2
    assert out.count("consistent") == 3


def test_user_level_mail(run):
    out = run("user_level_mail.py", "--messages", "4000")
    assert "4,000 messages of" in out
    assert "PrivacyGuarantee(epsilon=8, delta=1e-6, user, add-remove, central, proven)" in out


def test_local_crowd(run):
    out = run("local_crowd.py", "--clients", "600", "--batch", "150")
    assert "600 report files" in out
    assert out.count("perplexity") == 4
    assert "refused 3" in out
    assert "Trust:        local" in out


def test_pipeline_grid_search(run):
    out = run("pipeline_grid_search.py", "--documents", "300")
    assert out.count("log-likelihood") == 4
    assert "spent: epsilon 3.00" in out
    assert "a second fit is refused" in out
    assert "9 fits" in out


def test_fdptm_end_to_end(run):
    out = run("fdptm_end_to_end.py", "--documents", "2000")
    assert "make epsilon 5.0000, accounted jointly" in out
    assert "saved topics.card.json, topics.card.md, topics.zip" in out
    assert "Differential privacy statement" in out
    assert "names in the pickled pipeline: 1,997 of 1,997" in out
    assert "names in the released file: 0 of 1,997" in out


def test_vips_top_words(run):
    out = run("vips_top_words.py", "--topics", "3", "--words", "60", "--show", "2")
    assert out.count("claimed, epsilon 5; its noise is worth") == 3
    assert out.count("Topic ") == 2
