"""Compiled loops. They know nothing of privacy or papers: contiguous arrays in, arrays out."""

from importlib.util import find_spec
from pathlib import Path

if find_spec("skdplda._kernels._gibbs") is None:
    raise ImportError(
        f"skdplda was imported from its source folder, {Path(__file__).resolve().parents[2]}, where its kernels are not"
        " compiled. Start Python in another folder to use the installed package, or compile the kernels in place:"
        " python setup.py build_ext --inplace"
    )
