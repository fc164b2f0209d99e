"""`python -m skdplda`, the same as the console script."""

import sys

from skdplda.cli import main

if __name__ == "__main__":
    sys.exit(main())
