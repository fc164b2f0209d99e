"""The examples run, on small corpora, as a reader would run them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(folder, name, *arguments):
    """Run an example in an empty folder, warnings as errors, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_example_is_run_here(path):
    assert path.name in Path(__file__).read_text(encoding="utf-8")


def test_plot_privacy_utility(tmp_path):
    out = run(tmp_path, "plot_privacy_utility.py", "--documents", "300", "--output", "curve.png")
    assert out.count("documents, epsilon") == 10
    assert "Differential privacy statement" in out
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_pipeline_grid_search(tmp_path):
    out = run(tmp_path, "pipeline_grid_search.py", "--documents", "300")
    assert out.count("log-likelihood") == 4
    assert "spent: epsilon 3.00" in out
    assert "a second fit is refused" in out
    assert "9 fits" in out


def test_fdptm_end_to_end(tmp_path):
    out = run(tmp_path, "fdptm_end_to_end.py", "--corpus", "synthetic", "--documents", "2000")
    assert "make epsilon 5.0000, accounted jointly" in out
    assert "saved topics.card.json, topics.card.md, topics.zip" in out
    assert "Differential privacy statement" in out
    assert "names in the pickled pipeline: 1,997 of 1,997" in out
    assert "names in the released file: 0 of 1,997" in out
