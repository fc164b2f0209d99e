"""What the compiled kernels have in common: how they are found, and which copy of them runs."""

import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import skdplda
import skdplda._kernels

SOURCE = Path(skdplda.__file__).parent


def run_python(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, **options)


def uncompiled(folder):
    """Copy the source without its compiled kernels, as a fresh clone has it; return `folder`."""
    shutil.copytree(SOURCE, folder / "skdplda", ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"))
    return folder


def test_a_child_at_the_root_of_a_clone_uses_the_package_under_test(tmp_path):
    done = run_python("import skdplda._kernels._foldin; print(skdplda.__file__)", cwd=uncompiled(tmp_path))
    assert done.stdout.strip() == skdplda.__file__, done.stderr


def test_an_uncompiled_source_folder_says_what_to_do(tmp_path):
    code = f"import sys; sys.path.insert(0, {str(uncompiled(tmp_path))!r}); import skdplda"
    done = run_python(code)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: skdplda was imported from its source folder, {tmp_path}, where")
    assert last.endswith("python setup.py build_ext --inplace")


def public_functions():
    """Yield (name, function) of all that the compiled kernels offer, methods included."""
    for found in pkgutil.iter_modules(skdplda._kernels.__path__):
        if found.name == "_shared":
            continue
        module = import_module(f"skdplda._kernels.{found.name}")
        classes = [owner for owner in vars(module).values() if inspect.isclass(owner)]
        for owner in (module, *(owner for owner in classes if owner.__module__ == module.__name__)):
            for name, function in vars(owner).items():
                if not name.startswith("_") and "cython_function" in type(function).__name__:
                    yield f"{found.name}.{name}", function


def test_each_kernel_says_which_numpy_code_it_is_equivalent_to():
    functions = dict(public_functions())
    assert {"_gibbs.sweep", "_blocks.move", "_foldin.fold_in", "_sequential.sequential_sweep"} <= functions.keys()
    assert [name for name, function in functions.items() if "Equivalent to" not in (function.__doc__ or "")] == []


def with_simd(name, *arguments):
    """Run Python with the switch set, or not set for None."""
    environment = {key: value for key, value in os.environ.items() if key != "SKDPLDA_SIMD"}
    environment |= {"SKDPLDA_SIMD": name} if name is not None else {}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, env=environment, check=False
    )


def test_every_path_of_the_processor_gives_the_same_bits():
    """Each copy of the kernels that runs here, and the one taken by default."""
    program = str(Path(__file__).parent / "kernel_bits.py")
    default = with_simd(None, program)
    assert default.stdout.count("\n") == 18, default.stderr  # `_blocks` has a part of what `_gibbs` does
    for name in ("plain", "avx2", "avx512"):
        done = with_simd(name, program)
        if name == "plain" or "on this processor" not in done.stderr:
            assert done.stdout == default.stdout, done.stderr


def test_the_digests_have_every_function_but_those_that_the_page_names():
    text = Path(__file__).with_name("kernel_bits.py").read_text()
    missing = {name for name, _ in public_functions() if not re.search(rf"\b{name.split('.')[1]}\b", text)}
    assert missing == {"_noise.fill", "_noise.system_key"}


LOAD = """
from importlib import import_module
for kernel in ("gibbs", "expected", "variational", "zeta"):
    try:
        import_module(f"skdplda._kernels._{kernel}")
        print("loaded")
    except ValueError as error:
        print(error)
"""


def test_a_path_that_is_not_there_is_refused_by_every_kernel():
    said = with_simd("sse9", "-c", LOAD).stdout.splitlines()
    assert len(said) == 4
    for line in said:
        assert line.startswith("SKDPLDA_SIMD must be one of plain")
        assert "on this processor, or not set; got 'sse9'" in line
    for name in ("", "plain"):
        assert with_simd(name, "-c", LOAD).stdout.split() == ["loaded"] * 4


def test_the_command_line_refuses_it_in_one_line():
    done = with_simd("sse9", "-m", "skdplda", "cost", "--epsilon", "1", "--delta", "1e-6")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("skdplda: error: SKDPLDA_SIMD must be one of plain")
    assert done.stderr.endswith("on this processor, or not set; got 'sse9'\n") and done.stderr.count("\n") == 1
