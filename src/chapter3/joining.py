"""What a process of a multi-process program does first, and how it gives a result.

The same script runs under `chapter3.launcher.launch`, under `mpirun` and `srun`, and on
any cluster that JAX recognises.
"""

import contextlib
import errno
import functools
import json
import os
import socket
import sys
import traceback
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

import jax
from jaxlib import _jax

LAUNCH = "CHAPTER3_LAUNCH"
"""The variable in which `launch` tells a process who it is; its children inherit it."""
_TOOL = 4  # a number for tools of `sys.monitoring` that is nobody's
_UNWIND = sys.monitoring.events.PY_UNWIND


def join(**options: Any) -> None:
    """Join the other processes of this program; call it before anything else of JAX.

    In a process started by `chapter3.launcher.launch` it joins the others of that
    launch. Elsewhere it is `jax.distributed.initialize`, which finds out by itself who
    this process is under Open MPI, Slurm, on Cloud TPU and Kubernetes.

    From then on an uncaught exception prints its traceback and ends the process at
    once, and so does an exit with another status than 0. Without that, JAX would first
    wait for the other processes to end as well, which they cannot: they wait for this
    one.

    Args:
        **options: further arguments of `jax.distributed.initialize`.
    """
    sys.excepthook = _print_and_leave
    _leave_at_exits()
    told = os.environ.get(LAUNCH)
    if told is None:
        jax.distributed.initialize(**options)
    else:
        _join_launch(json.loads(told), options)


def _join_launch(place: dict[str, Any], options: dict[str, Any]) -> None:
    """Join as the launcher says, and let it know when that begins and has succeeded."""
    files, number = Path(place["folder"]), place["process"]
    (files / f"{number}.joining").touch()
    _keep_output_to_python()
    if number == 0:
        _make_sure_that_nobody_answers(place["coordinator"])
    if place["alone"]:
        let_gloo_use("127.0.0.1")
    # The launcher watches all processes and has one time limit, so JAX's own may be
    # longer. Only this machine's processes can connect to a loopback address.
    given = {
        "coordinator_address": place["coordinator"],
        "coordinator_bind_address": place["coordinator"],
        "num_processes": place["processes"],
        "process_id": number,
        "initialization_timeout": place["seconds"],
        "shutdown_timeout_seconds": place["seconds"],
    }
    jax.distributed.initialize(**given | options)
    (files / f"{number}.joined").touch()


def report(value: Any) -> None:
    """Hand a result to whoever started this process.

    Under `launch` it becomes `Report.value`; the last call counts. Elsewhere it is
    printed, on one line: `process 0 of 2: {"sum": 36.0}`.

    Args:
        value: what JSON can hold: numbers, strings, lists and dicts of them. Make other
            things such first: `float(loss)`, `numpy.asarray(x).tolist()`.

    Raises:
        TypeError: it is something else.
    """
    text = json.dumps(value)
    told = os.environ.get(LAUNCH)
    if told is None:
        print(f"process {jax.process_index()} of {jax.process_count()}: {text}")
    else:
        place = json.loads(told)
        Path(place["folder"], f"{place['process']}.json").write_text(text)


def _keep_output_to_python() -> None:
    """Let only `print` write to standard output, and libraries to standard error.

    Gloo greets each of its peers there, from several threads at a time.
    """
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(output, "w", encoding="utf-8", buffering=1)


def let_gloo_use(address: str) -> None:
    """Make Gloo listen at `address` alone.

    It takes the address of the machine's host name: often one of the network, and on
    some machines none. JAX has no option for it, so this reaches inside.
    """
    make = getattr(_jax, "make_gloo_tcp_collectives", None)
    if make is not None:
        _jax.make_gloo_tcp_collectives = functools.partial(make, hostname=address)


def _make_sure_that_nobody_answers(address: str) -> None:
    """Refuse to coordinate at a port where another program listens.

    JAX would share the port with another coordinator, whose processes and ours would
    then meet at random, or it would end with a segmentation fault.

    Raises:
        OSError: somebody answers; `launch` then tries another port.
    """
    host, port = address.rsplit(":", 1)
    try:
        with contextlib.suppress(TimeoutError):  # it listens, and has no time for us
            socket.create_connection((host, int(port)), timeout=5).close()
    except ConnectionRefusedError:
        return
    raise OSError(errno.EADDRINUSE, f"{os.strerror(errno.EADDRINUSE)}: {address}")


def _leave_at_exits() -> None:
    """End the process at once when its script exits with another status than 0.

    Python has no hook for it, as `sys.excepthook` is for all other exceptions. But it
    tells a tool that monitors the program when an exception leaves a function, and the
    script is the outermost of them. A SystemExit that the script catches is none of it.
    """

    def left(code: CodeType, _: int, error: BaseException) -> None:
        if code is not script or not isinstance(error, SystemExit):
            return
        status = error.code or 0
        if not isinstance(status, int):  # what Python prints, with status 1
            print(status, file=sys.stderr)
            status = 1
        if status:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status & 0xFF)

    frame, script = sys._getframe(), None
    while frame is not None:
        if frame.f_globals["__name__"] == "__main__":
            script = frame.f_code
        frame = frame.f_back
    if sys.monitoring.get_tool(_TOOL) is None:
        sys.monitoring.use_tool_id(_TOOL, __name__)
        sys.monitoring.register_callback(_TOOL, _UNWIND, left)
        sys.monitoring.set_events(_TOOL, _UNWIND)


def _print_and_leave(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    sys.stdout.flush()
    traceback.print_exception(kind, error, trace)
    sys.stderr.flush()
    os._exit(1)
