"""What some tests need besides Python, and how they wait for it."""

import os
import shutil
import time

import pytest


def need(package, *programs):
    """Skip if a program is missing. In CI, which sets CI, nothing is skipped.

    A reader may not have it, and can still check all the rest.
    """
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        reason = f"needs {', '.join(missing)} (Debian, Ubuntu: apt install {package})"
        pytest.fail(reason) if "CI" in os.environ else pytest.skip(reason)


def wait_until(condition, what, seconds=30):
    """Wait until `condition` returns something true; fail after so many seconds."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.05)
    return found
