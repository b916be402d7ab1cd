"""Watches the processes of a launch through the guard that starts them."""

import json
import math
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from chapter3.fresh import clean_environment
from chapter3.joining import LAUNCH


@dataclass
class Watched:
    """The processes of one launch.

    Attributes:
        folder: where the guard, the processes and this one leave their files.
        processes: how many there are.
        returncodes: by number, of those that ended by themselves, in this order.
        took: by number, the seconds from the start to the end.
        guard: the guard's exit status.
    """

    folder: Path
    processes: int
    returncodes: dict[int, int] = field(default_factory=dict)
    took: dict[int, float] = field(default_factory=dict)
    guard: int = 0

    def run(
        self,
        commands: Sequence[Sequence[str]],
        environments: Sequence[Mapping[str, str]],
        end: float,
    ) -> None:
        """Start the processes; return when all have ended or were stopped.

        They are stopped at the first failure, and when it is `end` by
        `time.monotonic()`. Then they first write where they stand.
        """
        order = {
            "folder": str(self.folder),
            "commands": commands,
            "environments": environments,
        }
        guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("_guard.py"))],
            env=clean_environment() | {LAUNCH: "guard"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert guard.stdin and guard.stdout
        pids: list[int] = []
        try:
            guard.stdin.write(json.dumps(order).encode() + b"\n")
            guard.stdin.flush()
            if not self._listen(guard.stdout, pids, end):
                ended = self.returncodes.copy()
                guard.stdin.write(b"stacks\n")
                guard.stdin.flush()
                self._listen(guard.stdout, pids, time.monotonic() + 5, to_the_last=True)
                self.returncodes = ended
        except BrokenPipeError:
            pass  # the guard is gone: its exit status says so
        finally:
            with suppress(BrokenPipeError):
                guard.stdin.close()
            # Only then its output: a guard that cannot write ends with another status.
            self.guard = guard.wait()
            guard.stdout.close()
            for pid in pids if self.guard else ():
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)

    def _listen(
        self, events: IO[bytes], pids: list[int], end: float, to_the_last: bool = False
    ) -> bool:
        """Note what the guard tells, until there is nothing to wait for.

        Args:
            events: the guard's output.
            pids: gets the ids of the processes.
            end: the time until which to listen.
            to_the_last: wait for all processes, even after a failure.

        Returns:
            False if the time was up first.
        """
        began, begun, failed_at = time.monotonic(), b"", math.inf
        os.set_blocking(events.fileno(), False)
        while len(self.returncodes) < self.processes:
            now = time.monotonic()
            # Who fails at the same moment is heard before the first is named.
            hopeless = now > failed_at + 0.2 or self.never_joined() is not None
            if hopeless and not to_the_last:
                return True
            if now > end:
                return False
            select.select([events], [], [], 0.1)
            chunk = events.read()
            if chunk == b"":
                return True
            *lines, begun = (begun + (chunk or b"")).split(b"\n")
            for what, number, value in (line.split() for line in lines):
                if what == b"started":
                    pids.append(int(value))
                    continue
                self.returncodes[int(number)] = int(value)
                self.took[int(number)] = time.monotonic() - began
                if int(value):
                    failed_at = min(failed_at, time.monotonic())
        return True

    def never_joined(self) -> int | None:
        """Find a process that has ended without joining, while another waits for it."""
        names = {path.name for path in self.folder.glob("*.join*")}
        waiting = any(
            f"{number}.joining" in names and f"{number}.joined" not in names
            for number in range(self.processes)
            if number not in self.returncodes
        )
        for number, code in self.returncodes.items():
            if waiting and code == 0 and f"{number}.joining" not in names:
                return number
        return None

    def written(self, number: int, kind: str) -> str:
        """Read what process `number` wrote: "out", "err", or "json"."""
        path = self.folder / f"{number}.{kind}"
        return path.read_text(errors="replace") if path.exists() else ""

    def first_failed(self) -> int | None:
        """Find the process that failed first or never joined; None if all is well.

        When a process fails, JAX soon ends the others, by SIGABRT or with a
        JaxRuntimeError. So such a one is the first only if there is no other.
        """
        failed = [number for number, code in self.returncodes.items() if code]
        if not failed:
            return self.never_joined()

        def looks_like_a_consequence(number: int) -> int:
            written = self.written(number, "err").rstrip()
            error = written.rpartition("\n")[2]
            aborted = self.returncodes[number] == -signal.SIGABRT
            # It may be about to be aborted when it ends with its own error.
            aborted |= "Terminating process because the JAX distributed" in written
            by_jax = aborted or error.startswith("jax.errors.JaxRuntimeError")
            return by_jax + (by_jax and "UNAVAILABLE:" in error)  # process 0 is gone

        return min(failed, key=looks_like_a_consequence)  # of equals, the earliest

    def port_was_taken(self) -> bool:
        """Say whether the coordinator, process 0, could not have its port.

        Once it has joined it had it, and the port that is taken is the script's own.
        """
        if (self.folder / "0.joined").exists() or not self.returncodes.get(0):
            return False
        return "Address already in use" in self.written(0, "err")
