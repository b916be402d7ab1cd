"""One process of several: who it is, three sums over all devices, a training run.

Every process runs this same file. Start it with `examples/multihost.py`, which checks
what the processes report, or yourself: `mpirun -n 2 python two_processes.py`, or
`srun -n 2 python two_processes.py`. Set `JAX_NUM_CPU_DEVICES=4` then, if each process
shall have four simulated devices.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3 import data_parallel, hlo
from chapter3.launcher import join, report
from chapter3.reference import linear_data


def identity() -> dict:
    """Say which process this is, and which devices it sees and owns."""
    return {
        "process": jax.process_index(),
        "processes": jax.process_count(),
        "devices": [device.id for device in jax.devices()],
        "owners": [device.process_index for device in jax.devices()],
        "local devices": [device.id for device in jax.local_devices()],
        "collectives": jax.config.jax_cpu_collectives_implementation,
    }


def sums(mesh: Mesh) -> dict:
    """Add the numbers 1 to N, one on each of all N devices, in three ways."""
    own = jax.local_device_count()
    local = np.arange(own, dtype=np.float32) + own * jax.process_index() + 1
    by_device = NamedSharding(mesh, P("data"))
    x = jax.make_array_from_process_local_data(by_device, local, (mesh.size,))  # (N,)

    def body(v):  # one device: float32[1]
        return lax.psum(v[0], "data")

    mapped = jax.shard_map(body, mesh=mesh, in_specs=P("data"), out_specs=P())
    by_pmap = jax.pmap(lambda v: lax.psum(v, "i"), axis_name="i")(local)  # (own,)
    return {
        "this process gives": local.tolist(),
        "type": str(jax.typeof(x)),
        "fully addressable": x.is_fully_addressable,
        "shard_map": float(jax.jit(mapped)(x)),
        "jit": float(jax.jit(jnp.sum)(x)),
        "pmap in": local.shape,
        "pmap out": by_pmap.shape,
        "pmap": [float(s.data[0]) for s in by_pmap.addressable_shards],
    }


def train(mesh: Mesh, steps: int, rows: int, rate: float) -> dict:
    """Train a linear model, data-parallel; this process feeds only its own rows."""
    each = rows // jax.process_count()
    first = each * jax.process_index()
    batch = [
        jax.make_array_from_process_local_data(
            NamedSharding(mesh, P("data")), a[first : first + each], a.shape
        )
        for a in linear_data(rows)  # stands for reading these rows from a file
    ]
    params = {"w": np.zeros((5, 1), np.float32), "b": np.zeros(1, np.float32)}
    params = jax.device_put(params, NamedSharding(mesh, P()))
    step = jax.jit(data_parallel.step, static_argnums=3)
    program = step.lower(params, *batch, rate).compile()
    losses = []
    for _ in range(steps):
        params, loss = program(params, *batch)
        losses.append(float(loss))
    return {
        "rows": [first, first + each],
        "w": np.asarray(params["w"])[:, 0].tolist(),
        "b": float(params["b"][0]),
        "losses": losses,
        "collectives of a step": hlo.executed(program),
        "bytes sent per device": hlo.wire_bytes(program),
    }


def main() -> None:
    """Join the other processes, run the three parts, report."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=30)
    options.add_argument("--rows", type=int, default=64, help="of the global batch")
    options.add_argument("--rate", type=float, default=0.1, help="learning rate")
    given = options.parse_args()

    join()  # before anything else uses JAX
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    trained = train(mesh, given.steps, given.rows, given.rate)
    report(identity() | sums(mesh) | trained)


if __name__ == "__main__":
    main()
