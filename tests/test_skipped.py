"""Where all tests must run, one that is skipped for another reason than those of conftest.py has failed."""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILES = {
    "test_marked.py": """
import pytest

@pytest.mark.skipif(True, reason="an installed package has no README.md")
def test_of_nothing():
    raise AssertionError

@pytest.mark.skip(reason="fit releases nothing")
def test_that_may_be_skipped():
    raise AssertionError

def test_that_runs():
    pass
""",
    "test_empty.py": "import pytest\n\n@pytest.mark.parametrize('path', [])\ndef test_of_no_file(path):\n    pass\n",
    "test_missing.py": "import pytest\n\npytest.importorskip('no_such_package')\n",
}


def test_a_test_that_must_run_fails_where_it_is_skipped(tmp_path):
    for name, code in FILES.items():
        (tmp_path / name).write_text(code)
    path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"SKDPLDA_ALL_TESTS": "1", "PYTHONPATH": path}
    options = ["-q", "-p", "conftest", "-p", "no:cacheprovider", "-c", os.devnull, "--continue-on-collection-errors"]
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", tmp_path, tmp_path]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    last = ended.stdout.splitlines()[-1]
    found = {name: int(number) for number, name in re.findall(r"(\d+) (\w+?)s?\b(?=[, ])", last)}
    assert found == {"passed": 1, "skipped": 1, "error": 3}, ended.stdout
    assert "where all tests must run" in ended.stdout and ended.returncode != 0
