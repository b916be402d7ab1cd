"""One process of two: how long all-reduces and training steps take, and what they send.

`examples/hosts/link_speed.py` starts it on two hosts with a link between them. What
crossed the link is read from the counter of this host's end of it.
"""

import argparse
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.multihost_utils import broadcast_one_to_all
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3 import hlo, model
from chapter3.hierarchical import flat_all_reduce, hierarchical_all_reduce
from chapter3.launcher import join, report

BOTH = P(("host", "device"))


def sent() -> int:
    """Count the bytes that this host has sent over the link, headers included."""
    counters = Path("/proc/self/net/dev").read_text()
    found = re.search(r"cable:\s*(.*)", counters)
    return int(found[1].split()[8]) if found else 0


def seconds_of(f: Callable, *arguments) -> float:
    """Call a compiled function and wait for its result."""
    start = time.perf_counter()
    jax.block_until_ready(f(*arguments))
    return time.perf_counter() - start


def measure(f: Callable, *arguments, most: int) -> dict:
    """Call a compiled function for about a second, from 5 times up to `most`."""
    seconds_of(f, *arguments)
    wanted = int(1 / seconds_of(f, *arguments))
    # Every process must call it equally often, or one waits for ever.
    repeats = int(broadcast_one_to_all(min(max(wanted, 5), most)))
    before = sent()
    seconds = [seconds_of(f, *arguments) for _ in range(repeats)]
    crossed = (sent() - before) / repeats
    return {"seconds": statistics.median(seconds), "crossed": round(crossed)}


def all_reduce(name: str, mesh: Mesh, nbytes: int, most: int) -> dict:
    """Sum `nbytes` per device over all devices, and check the sum."""
    body = hierarchical_all_reduce if name == "hierarchical" else flat_all_reduce
    f = jax.jit(
        jax.shard_map(
            lambda x: body(x, "device", "host"),
            mesh=mesh,
            in_specs=BOTH,
            out_specs=P(),
        )
    )
    own = jax.local_device_count()
    local = np.full(own * nbytes // 4, 1 + jax.process_index(), np.float32)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, BOTH), local)
    total = np.asarray(f(x).addressable_shards[0].data)
    assert np.all(total == own * sum(range(1, jax.process_count() + 1))), total
    return {"nbytes": nbytes, **measure(f, x, most=most)}


def training(mesh: Mesh, most: int) -> dict:
    """Time a data-parallel step, and the same without any communication."""
    params = model.init_blocks(jax.random.key(0), 2, 256, 256)  # 1 MiB
    params = jax.device_put(jax.device_get(params), NamedSharding(mesh, P()))
    rows = np.ones((1024, 256), np.float32)
    batch = jax.make_array_from_process_local_data(NamedSharding(mesh, BOTH), rows)

    @jax.jit
    def step(layers, x):
        gradients = jax.grad(model.blocks_loss)(layers, x, jnp.sin(x))
        return jax.tree.map(lambda w, g: w - 0.01 * g, layers, gradients)

    own = batch.addressable_shards[0].data
    alone = jax.tree.map(lambda w: w.addressable_shards[0].data, params)
    synced = hlo.collectives(step.lower(params, batch).compile())
    return {
        "nbytes": sum(operation.nbytes for operation in synced),
        "collectives": len(synced),
        "compute": measure(step, alone, own, most=most)["seconds"],
        **measure(step, params, batch, most=most),
    }


def main() -> None:
    """Join the other process, measure, report."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="*", default=[2**16, 2**20])
    options.add_argument("--kinds", nargs="*", default=["flat"])
    options.add_argument("--train", action="store_true")
    options.add_argument("--most", type=int, default=5, help="calls of each function")
    given = options.parse_args()

    join()
    by_host = np.array(jax.devices()).reshape(jax.process_count(), -1)
    mesh = Mesh(by_host, ("host", "device"))
    # One ring through devices that alternate between the hosts.
    mixed = Mesh(by_host.T.reshape(by_host.shape), ("host", "device"))
    found = {
        kind: [
            all_reduce(kind, mixed if kind == "mixed" else mesh, size, given.most)
            for size in given.sizes
        ]
        for kind in given.kinds
    }
    trained = training(mesh, given.most) if given.train else None
    report({"all-reduce": found, "training": trained})


if __name__ == "__main__":
    main()
