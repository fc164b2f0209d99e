"""A process of its own for a function, so that its peak of memory is its own; CPU seconds; a folder for models."""

import os
import re
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from results import commit


def apart(function, *given):
    """Return the result of a function."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *given).result()


def peak(anew=False):
    """Return the peak of this process's memory in bytes; Linux only. (ru_maxrss would count the parent's as well.)

    It is that of the time since it was last called with `anew`, where it returns what is held now.
    """
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text()).group(1))


def timed(function, *arguments, **options):
    """Return the result and the CPU seconds."""
    begin = time.process_time()
    result = function(*arguments, **options)
    return result, time.process_time() - begin


@cache
def scratch():
    """Return a folder for what a run keeps beside rows, such as shadow models: of this commit alone."""
    folder = Path(os.environ.get("SKDPLDA_SCRATCH") or tempfile.mkdtemp(), commit())
    folder.mkdir(parents=True, exist_ok=True)
    return folder
