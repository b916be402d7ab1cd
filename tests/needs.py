"""What some tests need besides Python."""

import os
import shutil

import pytest


def need(package, *programs):
    """Skip if a program is missing. In CI, which sets CI, nothing is skipped.

    A reader may not have it, and can still check all the rest.
    """
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        reason = f"needs {', '.join(missing)} (Debian, Ubuntu: apt install {package})"
        pytest.fail(reason) if "CI" in os.environ else pytest.skip(reason)
