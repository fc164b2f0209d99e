"""Check that a tag, pyproject.toml, CITATION.cff and CHANGELOG.md name one version: `python .ci/version.py v0.1.0`."""

import re
import sys
import tomllib
from pathlib import Path

root = Path(__file__).resolve().parents[1]
version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
citation = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
section = re.search(r"^## (.+)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)

problems = []
if sys.argv[1:] != [f"v{version}"]:
    problems.append(f"pyproject.toml has version {version}: the tag must be v{version}, got {sys.argv[1:]}.")
if citation is None or citation.group(1) != version:
    problems.append(f"CITATION.cff must have version: {version}.")
if section is None or not re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", section.group(1)):
    problems.append(f"the first section of CHANGELOG.md must be ## [{version}] - and the day, year first.")
if problems:
    sys.exit("\n".join(problems))
