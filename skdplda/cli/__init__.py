"""The command line: `skdplda fit`, `cost`, `release` and the others."""

import sys

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run the console script.

    Parameters
    ----------
    argv : list of str, default=None
        Arguments; None takes those of the process.

    Returns
    -------
    code : int
        0, 1 where an audit refutes a claim, 2 for usage and bad input, 70 for a defect
        of the package, 130 when interrupted, 141 when whoever read the output has left.
    """
    try:
        from skdplda.cli._main import main as run

        return run(argv)  # the module of the command loads the kernels, which may refuse
    except ValueError as error:
        if not str(error).startswith("SKDPLDA_SIMD"):
            raise
        print(f"skdplda: error: {error}", file=sys.stderr)
        return 2  # as for other bad input
