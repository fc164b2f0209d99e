"""Check all proofs about the code as it is: `python proofs/check.py`; `--mutants` checks that each can fail.

It needs z3 (`pip install z3-solver`), clang for what is C, and the package itself.
"""

import argparse
import importlib.util
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
PROOFS = ("contributions", "soft_counts", "reports", "selection", "spending", "tables")
NEED_CLANG = ("soft_counts", "reports")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", action="store_true", help="also break each function, and say which proofs fail")
    parser.add_argument("--all", action="store_true", help="tables of a thousand scales: minutes")
    parser.add_argument("--only", nargs="*", default=PROOFS, choices=PROOFS)
    given = parser.parse_args()
    if importlib.util.find_spec("z3") is None:
        print("NOT RUN: proofs: z3-solver is not installed")
        return 0
    from llvm import Failed

    failures = passed = 0
    for name in given.only:
        missing = "clang" if name in NEED_CLANG and not shutil.which("clang") else None
        if name == "tables" and importlib.util.find_spec("flint") is None:
            missing = "python-flint"
        if missing:
            print(f"NOT RUN: proof {name}: {missing} is not installed")
            continue
        start, module = time.perf_counter(), importlib.import_module(name)
        try:
            many = {"n": module.MANY} if given.all and hasattr(module, "MANY") else {}
            result, good = f"proven: {module.prove(**many)}", True
        except Failed as failure:
            result, good = f"NOT PROVEN: {failure}", False
        passed, failures = passed + good, failures + (not good)
        what = " ".join(module.__doc__.partition("\n\n")[0].split())
        print(f"{name}: {what}\n  {result}, in {time.perf_counter() - start:.1f} s", flush=True)
        for mutant, change in module.MUTANTS.items() if given.mutants else ():
            try:
                module.prove(change)
                result, good = "STILL PROVEN", False
            except Failed as failure:
                result, good = f"fails, as it must ({failure})".splitlines()[0][:110], True
            passed, failures = passed + good, failures + (not good)
            print(f"  mutant: {mutant}: {result}", flush=True)
    print(f"{passed} passed, {failures} failed")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
