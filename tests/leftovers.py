"""Find processes that a launch has left behind (where there is /proc: on Linux)."""

import contextlib
from pathlib import Path

from chapter3.joining import LAUNCH


def launched(mark: str) -> list[str]:
    """List the living processes of launches whose environment contains `mark`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is another's
            environment = (process / "environ").read_text(errors="replace")
            if f"{LAUNCH}=" in environment and mark in environment:
                command = (process / "cmdline").read_text().replace("\0", " ")
                found.append(f"{process.name} {command}")
    return found
