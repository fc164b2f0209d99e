"""What all tests share."""

import os
from pathlib import Path

import skdplda

# Programs that tests start must use the package under test. `python -c` looks into the current folder first, and at the
# root of a clone that folder holds the source, whose kernels are not compiled.
os.environ["PYTHONSAFEPATH"] = "1"
home = Path(skdplda.__file__).resolve().parents[1]
if home == Path(__file__).resolve().parents[1]:  # kernels compiled in place, perhaps without an installation
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home), os.environ.get("PYTHONPATH"))))
