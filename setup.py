"""Extension table: one row a kernel. Metadata lives in pyproject.toml."""

import os
import tempfile
from glob import glob

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = {  # extension -> uses threads
    "blocks": True,
    "gibbs": True,
    "live": False,
    "foldin": True,
    "mixture": True,
    "noise": True,
    "released": True,
    "partition": False,
    "reports": True,
    "zeta": True,
    "variational": True,
}
# -ffp-contract=off: a fused multiply-add would make results depend on the processor.
COMPILE_ARGS = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]
OPENMP_FLAGS = (  # compile, link: the first pair that links is taken
    (["-fopenmp"], ["-fopenmp"]),
    (["-Xpreprocessor", "-fopenmp"], ["-lomp"]),
)
OPENMP_PROBE = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n"
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "embedsignature": True,
}


class BuildKernels(build_ext):
    """Compile the kernels, with OpenMP where a probe program links."""

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
            if KERNELS[extension.name.rpartition("._")[2]]:
                extension.extra_compile_args += compile_args
                extension.extra_link_args += link_args
        super().build_extensions()


def extensions():
    """Return one Extension for each kernel."""
    trace = os.environ.get("CYTHON_COVERAGE") == "1"
    macros = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")]
    if trace:
        macros += [("CYTHON_TRACE_NOGIL", "1"), ("CYTHON_USE_SYS_MONITORING", "0")]
    modules = [
        Extension(
            f"skdplda._kernels._{name}",
            [f"skdplda/_kernels/_{name}.pyx"],
            depends=glob("skdplda/_kernels/*.h"),
            include_dirs=[np.get_include(), "skdplda/_kernels"],
            define_macros=macros,
            extra_compile_args=list(COMPILE_ARGS),
        )
        for name in KERNELS
    ]
    return cythonize(modules, compiler_directives={**DIRECTIVES, "linetrace": trace})


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
