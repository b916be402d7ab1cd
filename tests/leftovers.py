"""Find processes that are left behind (where there is /proc: on Linux)."""

import contextlib
import sys
from pathlib import Path

import pytest

# macOS does not show another process's environment, by which `living` knows it. What is
# tested with it is skipped there, and only there.
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def living(mark: str) -> list[str]:
    """List the processes that were started with `mark` in their environment.

    Whoever started them, and whatever they are: all that they start inherits it.
    """
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is another's
            if mark in (process / "environ").read_text(errors="replace"):
                command = (process / "cmdline").read_text().replace("\0", " ")
                found.append(f"{process.name} {command}")
    return found
