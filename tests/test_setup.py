"""What setup.py says where the kernels cannot be compiled: one sentence, before any compiler's log."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parents[1] / "setup.py"
pytestmark = pytest.mark.skipif(not SETUP.exists(), reason="setup.py is in the source only")


@pytest.mark.parametrize(
    ("machine", "compiler", "expected"),
    [
        ("sys.version_info = (3, 10, 4)", None, "needs Python 3.11 or newer, and this is Python 3.10: install"),
        ("sys.platform = 'win32'", None, "does not compile on Windows: use it in the Windows Subsystem for Linux"),
        ("", "no-such-compiler", "'no-such-compiler' is not there: install them"),
        ("", "false", "'false' cannot compile a program that includes Python.h: install them"),
    ],
    ids=["old Python", "Windows", "no compiler", "no headers"],
)
def test_a_machine_that_cannot_compile_is_told_what_to_do(machine, compiler, expected):
    code = f"import runpy, shutil, sys; {machine}\nrunpy.run_path({str(SETUP)!r})"
    environment = {**os.environ, "CC": compiler} if compiler else None
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("skdplda ")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
