"""Run small programs in fresh Python processes.

Some of JAX's choices are made once per process: how many devices there are, which
platform is used. A page whose own process has chosen shows the others here.
"""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True)
class Finished:
    """A process that has ended.

    Attributes:
        returncode: its exit status; negative if a signal ended it.
        stdout: what it printed, without the last line break.
        stderr: likewise, what it wrote to standard error.
    """

    returncode: int
    stdout: str
    stderr: str


def clean_environment() -> dict[str, str]:
    """Take this process's environment without what chooses JAX's devices, or colours.

    Returns:
        All variables but `XLA_FLAGS` and those that begin with `JAX_` or force colours.
    """
    clean = {
        name: value
        for name, value in os.environ.items()
        if not re.match(r"XLA_FLAGS$|JAX_|FORCE_COLOR$|CLICOLOR_FORCE$", name)
    }
    # Jupyter asks for colours, which would mark up what is printed.
    return clean | {"PYTHON_COLORS": "0"}


def run_python(program: str, *, seconds: float = 120, **environment: str) -> Finished:
    """Run `program` in a new Python process that knows nothing of this one's devices.

    Args:
        program: Python source; common indentation is removed.
        seconds: time limit.
        **environment: variables to set. Those that choose JAX's devices and platform
            (`XLA_FLAGS` and all that begin with `JAX_`) or force colours are removed.

    Raises:
        subprocess.TimeoutExpired: the time limit was reached; the process is gone then.
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=clean_environment() | environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return Finished(done.returncode, done.stdout.rstrip(), done.stderr.rstrip())


def run_python_each(
    programs: Mapping[str, tuple[str, Mapping[str, str]]],
) -> dict[str, Finished]:
    """Run several programs at the same time, each as `run_python` does.

    Args:
        programs: by name, the source and the variables to set.

    Returns:
        The finished processes by the same names, in the same order.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {
            name: pool.submit(partial(run_python, source, **environment))
            for name, (source, environment) in programs.items()
        }
        return {name: future.result() for name, future in started.items()}
