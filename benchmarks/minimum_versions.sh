#!/usr/bin/env bash
# Run the test suite against the minimum versions that pyproject.toml states, and print the digests of seeded fits.
#
# Every ">=" of the dependencies becomes "==", and so do those of the build, so that the kernels compile against the
# oldest NumPy too. Needs Python 3.11, the oldest one supported: PYTHON=python3.11 names it.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mkdir "$folder/source" "$folder/run"
git -C "$repository" archive HEAD | tar -x -C "$folder/source"
"$python" -c 'import sys; assert sys.version_info[:2] == (3, 11), f"PYTHON must be 3.11, got {sys.version}"'
"$python" -m venv "$folder/venv"
python=$folder/venv/bin/python

"$python" - "$folder/source/pyproject.toml" > "$folder/constraints.txt" <<'END'
import sys
import tomllib

with open(sys.argv[1], "rb") as file:
    project = tomllib.load(file)["project"]
for requirement in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
    print(requirement.replace(">=", "=="))
END
echo "pyparsing<3.3" >> "$folder/constraints.txt"  # it has deprecated what matplotlib 3.9 calls
cat "$folder/constraints.txt"

PIP_CONSTRAINT=$folder/constraints.txt "$python" -m pip install --quiet --disable-pip-version-check "$folder/source[test]"
"$python" -m pip list --disable-pip-version-check

cp -r "$folder/source/tests" "$folder/source/doc" "$folder/source/pyproject.toml" "$folder/run"
[ ! -d "$folder/source/examples" ] || cp -r "$folder/source/examples" "$folder/run"
cd "$folder/run"
"$folder/venv/bin/python" tests/fit_digests.py | tee "${FITS:-/dev/null}" # the same lines as with the newest
# Old libraries warn of things that newer ones have settled: their warnings are shown, ours are asserted by the tests.
"$folder/venv/bin/pytest" -q -W default
