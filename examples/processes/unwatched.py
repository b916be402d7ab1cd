"""Two processes that nobody watches, one of which has a fault: what becomes of them?

    JAX_NUM_CPU_DEVICES=4 unwatched.py FAULT

starts itself twice, waits for both, and reports how and when they ended.
"""

import os
import signal
import socket
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.joining import let_gloo_use, report


def work(fault: str, port: str, number: int) -> None:
    """Be process `number` of two, and fail as told."""
    let_gloo_use("127.0.0.1")
    try:
        jax.distributed.initialize(
            f"127.0.0.1:{port}",
            coordinator_bind_address=f"127.0.0.1:{port}",
            num_processes=2,
            process_id=number,
            initialization_timeout=60 if fault.startswith(("kill", "raise")) else 1,
            heartbeat_timeout_seconds=6,
            shutdown_timeout_seconds=3,
        )
    except BaseException as error:
        print("caught", type(error).__name__)
        raise
    x = jax.device_put(
        jnp.arange(8.0), NamedSharding(jax.make_mesh((8,), ("i",)), P("i"))
    )
    total = jax.jit(jnp.sum)
    for step in range(3):
        if step == 1 and fault == f"raise {number}":
            raise ValueError("no more data")
        if step == 1 and fault == f"kill {number}":
            os.kill(os.getpid(), signal.SIGKILL)
        float(total(x))


def watch_nobody(fault: str) -> None:
    """Start both processes (or one, if it shall be alone), and wait in order."""
    taken = socket.create_server(("127.0.0.1", 0))
    port = str(taken.getsockname()[1])
    if fault != "port taken":
        taken.close()
    command = [sys.executable, __file__, fault, port]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    began = time.monotonic()
    numbers = ["0"] if fault in ("alone", "port taken") else ["0", "1"]
    started = [subprocess.Popen([*command, number], **pipes) for number in numbers]
    ended = []
    for process in started:
        output, _ = process.communicate()
        ended.append([process.returncode, time.monotonic() - began, output])
    report(ended)


if sys.argv[2:]:
    work(sys.argv[1], sys.argv[2], int(sys.argv[3]))
else:
    watch_nobody(sys.argv[1])
