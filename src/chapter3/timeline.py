"""What ran on which device, and when: read from a trace of JAX's profiler.

Calls return before the work is done, so that Python's own clock says little. The
runtime writes down the beginning and the end of each operation that it executes.

Source: JAX documentation, “Profiling computation”; the names in the trace are those of
the CPU backend of jaxlib 0.12.
"""

import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import jax
from jax.profiler import ProfileData, ProfileEvent


@dataclass(frozen=True)
class Execution:
    """One execution of a compiled program on one device.

    Attributes:
        program: its name: the name of the function, after `jit_`.
        run: number of the execution; the same on all devices of a program that spans
            several.
        device: position in `jax.local_devices()`.
        begin: of its first operation, seconds after the first of the trace.
        end: of its last operation, likewise.
    """

    program: str
    run: int
    device: int
    begin: float
    end: float


def record(work: Callable[[], Any]) -> tuple[Any, list[Execution]]:
    """Do `work`, wait until its results are there, and list what was executed.

    Args:
        work: takes nothing and returns a tree of arrays; call it once before, so that
            nothing has to be compiled.

    Returns:
        What it returned, and the executions in the order in which they began.

    Raises:
        RuntimeError: the trace names no execution, as on a backend that writes it in
            another form.
    """
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            result = jax.block_until_ready(work())
        (file,) = Path(folder).glob("**/*.xplane.pb")
        trace = ProfileData.from_file(str(file))
    spans: dict[tuple[str, int, int], tuple[float, float]] = {}
    for event, about in _events(trace):
        if not {"hlo_module", "run_id", "device_ordinal"} <= about.keys():
            continue  # not an operation of a compiled program
        key = about["hlo_module"], about["run_id"], about["device_ordinal"]
        begin, end = spans.get(key, (event.start_ns, event.end_ns))
        spans[key] = min(begin, event.start_ns), max(end, event.end_ns)
    if not spans:
        raise RuntimeError(
            f"no execution in the trace of backend {jax.default_backend()!r}; "
            "this reader knows the trace of the CPU backend"
        )
    first = min(begin for begin, _ in spans.values())
    found = [
        Execution(*key, (begin - first) / 1e9, (end - first) / 1e9)
        for key, (begin, end) in spans.items()
    ]
    return result, sorted(found, key=lambda execution: execution.begin)


def _events(trace: ProfileData) -> Iterator[tuple[ProfileEvent, dict[str, Any]]]:
    with warnings.catch_warnings():
        # Python warns of a type of jaxlib that names no module. Where warnings are
        # errors, this one would end the process.
        warnings.simplefilter("ignore", DeprecationWarning)
        for plane in trace.planes:
            for line in plane.lines:
                for event in line.events:
                    yield event, dict(event.stats)


def in_flight_together(
    executions: Iterable[Execution],
) -> list[tuple[Execution, Execution]]:
    """List the pairs of different runs that overlap in time on different devices."""
    return [
        (a, b)
        for a, b in combinations(executions, 2)
        if (a.program, a.run) != (b.program, b.run)
        and a.device != b.device
        and a.begin < b.end
        and b.begin < a.end
    ]
