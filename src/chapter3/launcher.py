"""Run a script in several processes on this machine, so that no failure is a hang.

JAX leaves it to others to start the processes of a program, and to see that one of them
has failed: the rest then wait, for minutes or for ever. This launcher watches them all.
It stops them when one fails or time is up, says which one it was and shows *its* last
words, and leaves no process behind, even if it is killed itself.
"""

import json
import math
import socket
import sys
import tempfile
import textwrap
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chapter3._watching import Watched
from chapter3.fresh import clean_environment
from chapter3.joining import LAUNCH, join, report
from chapter3.last_words import how_it_ended, last_words, where_it_stood
from chapter3.separate_hosts import Host

__all__ = ["LaunchError", "ProcessFailedError", "Report", "TimeLimitError", "launch"]
__all__ += ["join", "report"]


@dataclass(frozen=True)
class Report:
    """What came out of one process.

    Attributes:
        process: its number, from 0.
        value: what it gave to `report`; None if nothing.
        output: what it printed, without the last line break.
        seconds: how long it ran.
    """

    process: int
    value: Any
    output: str
    seconds: float


class LaunchError(RuntimeError):
    """A launch that gave no result; all its processes are gone."""


class ProcessFailedError(LaunchError):
    """A process failed; the others were stopped.

    Attributes:
        process: the number of the first that failed.
        returncode: its exit status; negative if a signal ended it.
    """

    def __init__(self, message: str, process: int, returncode: int):
        super().__init__(message)
        self.process = process
        self.returncode = returncode


class TimeLimitError(LaunchError):
    """The time was up; what still ran was stopped.

    Attributes:
        running: the numbers of the processes that had not ended.
    """

    def __init__(self, message: str, running: list[int]):
        super().__init__(message)
        self.running = running


def launch(
    script: str | Path,
    *arguments: str,
    processes: int = 2,
    devices: int = 4,
    seconds: float = 120.0,
    environment: Mapping[str, str] | None = None,
    hosts: Sequence[Host] = (),
) -> list[Report]:
    """Run a script in several processes, each with simulated devices of its own.

    The script calls `join` before anything else of JAX, and may call `report`.

    Args:
        script: a Python file.
        *arguments: what the script finds in `sys.argv[1:]`.
        processes: how many.
        devices: how many simulated CPU devices each of them gets.
        seconds: time limit for all of it.
        environment: variables to set; `XLA_FLAGS` is added to that of the devices.
            Variables of this process that choose JAX's devices have no influence.
        hosts: process I runs on the I-th of these, and process 0 is reached there;
            without them all run here. Made by `chapter3.separate_hosts.two_hosts`.

    Returns:
        What each process gave, in the order of their numbers.

    Raises:
        ProcessFailedError: one ended with another exit status than 0 or by a signal, or
            without joining while another waited for it.
        FileNotFoundError: there is no such script.
        ValueError: another number of hosts than processes.
        TimeLimitError: the time is up. The message says where each process stood.

    `os._exit(0)` passes for a normal end, whenever a process calls it. If the others
    still need that process, they fail of it, or wait for it until the time is up.
    """
    script = Path(script).absolute()
    if not script.is_file():
        raise FileNotFoundError(f"there is no script {script}")
    if hosts and len(hosts) != processes:
        raise ValueError(f"{processes=} cannot run one on each of {len(hosts)} hosts")
    command = [sys.executable, str(script), *arguments]
    commands = [host.command(*command) for host in hosts] or [command] * processes
    coordinator = hosts[0].address if hosts else "127.0.0.1"
    end = time.monotonic() + seconds
    for attempts_left in (2, 1, 0):
        with free_port() as port, tempfile.TemporaryDirectory() as folder:
            place = {
                "coordinator": f"{coordinator}:{port}",
                "processes": processes,
                "seconds": math.ceil(seconds) + 60,
                "folder": folder,
                "alone": not hosts,  # on one machine
            }
            common = _environment(devices, environment or {})
            environments = [
                common | {LAUNCH: json.dumps(place | {"process": number})}
                for number in range(processes)
            ]
            watched = Watched(Path(folder), processes)
            watched.run(commands, environments, end)
            if not (attempts_left and watched.port_was_taken()):
                return _result(watched, script, seconds)
    raise AssertionError("the last attempt returns or raises")


def _environment(devices: int, asked_for: Mapping[str, str]) -> dict[str, str]:
    flags = f"--xla_force_host_platform_device_count={devices}"
    return {
        **clean_environment(),
        "JAX_PLATFORMS": "cpu",
        "PYTHONUNBUFFERED": "1",  # what was printed is there if it is killed
        "PYTHONFAULTHANDLER": "1",  # SIGABRT writes the stacks
        **asked_for,
        "XLA_FLAGS": f"{flags} {asked_for.get('XLA_FLAGS', '')}".strip(),
    }


def _result(watched: Watched, script: Path, seconds: float) -> list[Report]:
    """Make the reports, or say what went wrong.

    Raises:
        LaunchError: as `launch`.
    """
    if watched.guard:
        raise LaunchError(
            f"the process that guards those of {script.name}: "
            f"{how_it_ended(watched.guard)}. They were stopped; start again."
        )
    everyone = range(watched.processes)
    standing = [_standing(watched, script, number) for number in everyone]
    first = watched.first_failed()
    if first is not None:
        code, error = watched.returncodes[first], watched.written(first, "err")
        others = [standing[number] for number in everyone if number != first]
        message = (
            f"process {first} of {script.name} failed after {watched.took[first]:.1f} "
            f"s: {how_it_ended(code) if code else 'it ended without join()'}"
        )
        if words := last_words(error, script.parent):
            message += f". It wrote:\n\n{words}\n"
        if stood := where_it_stood(error, script.parent):
            message += f"\nIt stood in:\n{textwrap.indent(stood, '    ')}\n"
        if others:
            message += "\nThe others, now stopped:\n" + "\n".join(others)
        raise ProcessFailedError(message, first, code)
    running = [number for number in everyone if number not in watched.returncodes]
    if running:
        raise TimeLimitError(
            f"{script.name} did not end within {seconds:g} s. Where its processes "
            "stood:\n\n" + "\n".join(standing),
            running,
        )
    return [
        Report(
            number,
            json.loads(watched.written(number, "json") or "null"),
            watched.written(number, "out").rstrip(),
            watched.took[number],
        )
        for number in everyone
    ]


def _standing(watched: Watched, script: Path, number: int) -> str:
    """Say how far a process came: how it ended, or in which calls it still was."""
    if number in watched.returncodes:
        how = how_it_ended(watched.returncodes[number])
        return f"process {number}: {how} after {watched.took[number]:.1f} s"
    stood = where_it_stood(watched.written(number, "err"), script.parent)
    return f"process {number}: was running\n{textwrap.indent(stood, '    ')}".rstrip()


@contextmanager
def free_port() -> Generator[int]:
    """Reserve a TCP port of this machine that nothing uses.

    The socket stays bound, so that no one else is given the port; it does not listen,
    so that the coordinator, which allows sharing (SO_REUSEPORT), can.

    Yields:
        The port's number.
    """
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]
