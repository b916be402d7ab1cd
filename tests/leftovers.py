"""Find processes that are left behind (where there is /proc: on Linux)."""

import contextlib
from pathlib import Path


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
