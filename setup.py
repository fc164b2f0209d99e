"""Extension table: one row a kernel. Metadata lives in pyproject.toml."""

import gzip
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import tempfile

KERNELS = {  # extension -> uses threads; the longest to compile come first
    "gibbs": True,
    "arithmetic": True,
    "linear_algebra": True,
    "listed": True,
    "expected": True,
    "words": False,
    "variational": True,
    "zeta": True,
    "blocks": True,
    "foldin_rows": True,
    "foldin": True,
    "held_out": True,
    "sequential": False,
    "mixture": True,
    "noise": True,
    "partition": False,
    "released": True,
    "reports": True,
}
SHARED = "skdplda._kernels._shared"  # what Cython would else repeat in each kernel
# -ffp-contract=off: a fused multiply-add would make results depend on the processor.
# -Wno-psabi: gcc remarks on each vector that a function takes; all of these are inlined.
COMPILE_ARGS = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]
HOMEBREW = ("/opt/homebrew/opt/libomp", "/usr/local/opt/libomp")  # where no compiler looks by itself
OPENMP_FLAGS = (  # compile, link: the first pair that links is taken
    (["-fopenmp"], ["-fopenmp"]),
    (["-Xpreprocessor", "-fopenmp"], ["-lomp"]),
    *((["-Xpreprocessor", "-fopenmp", f"-I{home}/include"], [f"-L{home}/lib", "-lomp"]) for home in HOMEBREW),
)
OPENMP_PROBE = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
PYTHON_PROBE = "#include <Python.h>\n#ifndef __GNUC__\n#error neither gcc nor clang\n#endif\n"
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "embedsignature": True,
}


def refusal():
    """Say in one sentence why this machine cannot compile the kernels; None where it can."""
    if sys.version_info < (3, 11):  # noqa: UP036
        version = ".".join(map(str, sys.version_info[:2]))
        return f"skdplda needs Python 3.11 or newer, and this is Python {version}: install it into a newer one."
    if sys.platform == "win32":
        return "skdplda does not compile on Windows: use it in the Windows Subsystem for Linux (wsl --install)."
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    folders = sorted({sysconfig.get_path("include"), sysconfig.get_path("platinclude")})
    flags = shlex.split(os.environ.get("CFLAGS", "")) + shlex.split(os.environ.get("CPPFLAGS", ""))
    command = [*compiler, *flags, *(f"-I{folder}" for folder in folders), "-fsyntax-only", "-x", "c", "-"]
    try:
        done = subprocess.run(command, input=PYTHON_PROBE, capture_output=True, text=True, check=False)
    except OSError:
        found = "is not there"
    else:
        if done.returncode == 0:
            return None
        found = "cannot compile a program that includes Python.h"
    return (
        f"skdplda needs gcc or clang and the headers of Python, and {shlex.join(compiler)!r} {found}: install them, by"
        " 'apt install gcc python3-dev' (Debian, Ubuntu), 'dnf install gcc python3-devel' (Fedora) or"
        " 'xcode-select --install' (macOS), or name another compiler, as in CC=clang."
    )


if message := refusal():
    sys.exit(message)

from Cython.Build import cythonize  # noqa: E402
from setuptools import Extension, setup  # noqa: E402
from setuptools.command.build_ext import build_ext  # noqa: E402
from setuptools.command.sdist import sdist  # noqa: E402


def processors():
    """Return how many processors this program may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


NAMED = re.compile(r'"(\w+\.h)"|from skdplda\._kernels\.(\w+) cimport')


def headers_of(source):
    """Return the headers that a kernel's source names, and those that they name."""
    found, left = set(), [source]
    while left:
        with open(os.path.join("skdplda", "_kernels", left.pop())) as file:
            names = {header or f"{declared}.pxd" for header, declared in NAMED.findall(file.read())}
        left += names - found
        found |= names
    return sorted(os.path.join("skdplda", "_kernels", name) for name in found)


class BuildKernels(build_ext):
    """Compile the kernels side by side, with OpenMP where a probe program links."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or processors()

    def openmp_flags(self):
        """Return the (compile, link) flags of OpenMP, or empty lists where the compiler has none."""
        for compile_args, link_args in OPENMP_FLAGS:
            with tempfile.TemporaryDirectory() as folder:
                source = os.path.join(folder, "probe.c")
                with open(source, "w") as file:
                    file.write(OPENMP_PROBE)
                try:
                    objects = self.compiler.compile([source], output_dir=folder, extra_postargs=compile_args)
                    self.compiler.link_executable(objects, os.path.join(folder, "probe"), extra_postargs=link_args)
                except Exception:  # each compiler raises its own error for a flag it does not know
                    continue
                return compile_args, link_args
        self.announce("OpenMP not found: the kernels will use one thread.", level=3)
        return [], []

    def build_extensions(self):
        compile_args, link_args = self.openmp_flags()
        for extension in self.extensions:
            if KERNELS.get(extension.name.rpartition("._")[2]):
                extension.extra_compile_args += compile_args
                extension.extra_link_args += link_args
        super().build_extensions()


class SameArchive(sdist):
    """Make the same source archive from the same files, wherever and whenever: SOURCE_DATE_EPOCH says of what time."""

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, **owners):
        when = os.environ.get("SOURCE_DATE_EPOCH")
        if when is None or format != "gztar":
            return super().make_archive(base_name, format, root_dir, base_dir, **owners)

        def plain(member):
            member.mtime, member.uid, member.gid, member.uname, member.gname = int(when), 0, 0, "", ""
            member.mode = 0o755 if member.mode & 0o100 else 0o644
            return member

        with (
            open(f"{base_name}.tar.gz", "wb") as file,
            gzip.GzipFile("", "wb", mtime=int(when), fileobj=file) as packed,
            tarfile.open(mode="w", fileobj=packed) as archive,
        ):
            archive.add(base_dir, filter=plain)
        return file.name


def extensions():
    """Return one Extension for each kernel, and the one that they share."""
    trace = os.environ.get("CYTHON_COVERAGE") == "1"
    macros = [("CYTHON_TRACE_NOGIL", "1"), ("CYTHON_USE_SYS_MONITORING", "0")] if trace else []
    # Debug information takes a third of the time; CFLAGS=-g asks for it.
    compile_args = COMPILE_ARGS + ([] if "-g" in os.environ.get("CFLAGS", "").split() else ["-g0"])
    modules = [
        Extension(
            f"skdplda._kernels._{name}",
            [f"skdplda/_kernels/_{name}.pyx"],
            depends=headers_of(f"_{name}.pyx"),
            include_dirs=["skdplda/_kernels"],
            define_macros=macros,
            extra_compile_args=list(compile_args),
        )
        for name in KERNELS
    ]
    shared = Extension(SHARED, ["skdplda/_kernels/_shared.c"], extra_compile_args=["-O1", "-g0"])
    return cythonize(
        [*modules, shared],
        compiler_directives={**DIRECTIVES, "linetrace": trace},
        shared_utility_qualified_name=SHARED,
    )


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels, "sdist": SameArchive})
