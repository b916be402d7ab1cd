"""Starts the processes of one launch, and outlives them all.

`chapter3.launcher` runs this file as a program of its own, between itself and its
workers. It uses the standard library alone, so that it starts in an instant.

- It has one thread. So the workers may be told to die with it (Linux counts the death
  of the *thread* that made them, a trap in a program with many).
- It is in a session of its own, out of reach of what kills its starter's group.
- It adopts the orphans among the workers' descendants (Linux: child subreaper), and
  kills them too. Elsewhere it kills the workers' process groups.
- When its standard input ends, it stops everything. That happens in any case: the
  system closes the pipe of a starter that was killed.

It reads one line, an object with `commands` and `environments` (one for each worker)
and `folder`, where the workers' outputs go. It writes
`started I PID` and `ended I STATUS`; to the line `stacks` it answers by SIGABRT to all
workers, at which Python prints where each thread stands.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

_LINUX = sys.platform == "linux"
_SET_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # from <linux/prctl.h>


def _prctl(option: int, value: int) -> None:
    if _LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with(guard: int) -> None:
    _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != guard:  # it was killed just before: no signal comes any more
        os._exit(1)


def _start(order: dict, numbers: dict[int, int]) -> None:
    """Start the workers, each writing to files; note their numbers by their ids."""
    files, guard = Path(order["folder"]), os.getpid()
    each = zip(order["commands"], order["environments"], strict=True)
    for number, (command, environment) in enumerate(each):
        with (
            (files / f"{number}.out").open("wb") as out,
            (files / f"{number}.err").open("wb") as err,
        ):
            child = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                process_group=0,
                preexec_fn=lambda: _die_with(guard),  # safe: there is one thread
            )
        child.returncode = 0  # this program waits for it itself
        numbers[child.pid] = number
        print("started", number, child.pid, flush=True)


def _reap(numbers: dict[int, int], running: set[int]) -> None:
    """Tell of each worker that has ended; take adopted orphans silently."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid in running:
                running.remove(pid)
                code = os.waitstatus_to_exitcode(status)
                print("ended", numbers[pid], code, flush=True)


def _children() -> list[int]:
    """List the living children of this process, adopted ones included (Linux)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            _, after_name = stat.read_text(errors="replace").rsplit(")", 1)
            if int(after_name.split()[1]) == os.getpid():
                found.append(int(stat.parent.name))
    return found


def _kill(pid: int) -> bool:
    """Kill a child; say whether that was allowed (a setuid program is another's)."""
    with contextlib.suppress(PermissionError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def _kill_all(numbers: dict[int, int]) -> None:
    """Kill the workers and their descendants, and wait until they are gone."""
    for pid in numbers:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            if _LINUX and not any([_kill(pid) for pid in _children()]):
                return
            os.waitpid(-1, 0)  # its own children come to this process now


def main() -> None:
    """Do what the first line of standard input orders, until that input ends."""
    starter = os.getppid()
    _prctl(_SET_CHILD_SUBREAPER, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    received = b""
    while not received.endswith(b"\n"):
        chunk = os.read(0, 65536)
        if not chunk:
            return
        received += chunk
    order = json.loads(received)

    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    numbers: dict[int, int] = {}
    try:
        _start(order, numbers)
        running = set(numbers)
        while os.getppid() == starter:
            ready, _, _ = select.select([0, wake], [], [], 0.5)
            if wake in ready:
                os.read(wake, 4096)
            _reap(numbers, running)
            if 0 in ready:
                if not os.read(0, 4096):
                    break
                for pid in running:
                    os.kill(pid, signal.SIGABRT)
    except BrokenPipeError:
        pass  # the starter is gone
    finally:
        _kill_all(numbers)
        if os.getppid() != starter:
            shutil.rmtree(order["folder"], ignore_errors=True)


if __name__ == "__main__":
    main()
