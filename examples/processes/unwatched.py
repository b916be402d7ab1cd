"""Two processes that nobody watches, one of which has a fault: what becomes of them?

Started with the name of a fault it starts itself twice, waits for both to end, and
reports how, when, and with which last line of JAX's log.
"""

import os
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.launcher import free_port, report

TIMEOUTS = dict(heartbeat_timeout_seconds=10, shutdown_timeout_seconds=3)


def worker(fault: str, port: str, number: int) -> None:
    try:
        alone = fault == "alone"
        jax.distributed.initialize(
            f"127.0.0.1:{port}",
            num_processes=2,
            process_id=number,
            initialization_timeout=2 if alone else 60,
            **TIMEOUTS,
        )
    except BaseException as error:
        print("caught", type(error).__name__)
        raise
    mesh = jax.make_mesh((8,), ("i",))
    x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("i")))
    total = jax.jit(jnp.sum)
    for step in range(3):
        if step == 1 and fault == f"exception in {number}":
            raise ValueError("no more data")
        if step == 1 and fault == f"kill -9 {number}":
            os.kill(os.getpid(), signal.SIGKILL)
        float(total(x))


def main(fault: str) -> None:
    with free_port() as port:
        began = time.monotonic()
        numbers = [0] if fault == "alone" else [0, 1]
        command = [sys.executable, __file__, fault, str(port)]
        pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started = [subprocess.Popen([*command, str(n)], **pipes) for n in numbers]
        for process in started:
            print(process.communicate()[0])
            print("####", process.returncode, time.monotonic() - began)


if __name__ == "__main__":
    if sys.argv[2:]:
        worker(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main(sys.argv[1])
