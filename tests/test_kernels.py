"""What the compiled kernels have in common: how they are found, and which copy of them runs."""

import shutil
import subprocess
import sys
from pathlib import Path

import skdplda

SOURCE = Path(skdplda.__file__).parent


def run_python(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **options)


def uncompiled(folder):
    """Copy the source without its compiled kernels, as a fresh clone has it; return `folder`."""
    shutil.copytree(SOURCE, folder / "skdplda", ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"))
    return folder


def test_a_child_at_the_root_of_a_clone_uses_the_package_under_test(tmp_path):
    done = run_python("import skdplda.models; print(skdplda.__file__)", cwd=uncompiled(tmp_path))
    assert done.stdout.strip() == skdplda.__file__, done.stderr


def test_an_uncompiled_source_folder_says_what_to_do(tmp_path):
    code = f"import sys; sys.path.insert(0, {str(uncompiled(tmp_path))!r}); import skdplda"
    done = run_python(code)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: skdplda was imported from its source folder, {tmp_path}, where")
    assert last.endswith("python setup.py build_ext --inplace")
