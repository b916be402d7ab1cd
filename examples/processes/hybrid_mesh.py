"""One process of several: a mesh of hosts by devices, and what crosses between hosts.

mpirun -n 2 python hybrid_mesh.py
"""

import jax
import numpy as np
from jax.experimental.mesh_utils import create_hybrid_device_mesh
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.crossing import crossing_bytes, pair_bytes
from chapter3.hierarchical import flat_all_reduce, hierarchical_all_reduce
from chapter3.launcher import join, report

BOTH = P(("host", "device"))


def hybrid_mesh() -> Mesh:
    """Build a mesh whose outer axis is the processes, and whose inner their devices."""
    devices = create_hybrid_device_mesh(
        mesh_shape=(1, jax.local_device_count()),  # of one process
        dcn_mesh_shape=(jax.process_count(), 1),  # of processes
        process_is_granule=True,
    )
    return Mesh(devices, ("host", "device"))


def main() -> None:
    """Join the other processes, sum in two ways, report sums and bytes."""
    join()
    mesh = hybrid_mesh()
    hosts = [device.process_index for device in mesh.devices.flat]
    # Each device holds 1024 times its position in the mesh, counted from 1.
    own = 1 + np.flatnonzero(np.array(hosts) == jax.process_index())
    local = np.repeat(own.astype(np.float32), 1024)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, BOTH), local)
    found = {}
    for body in (flat_all_reduce, hierarchical_all_reduce):

        def summed(x, body=body):
            return body(x, "device", "host")

        f = jax.jit(jax.shard_map(summed, mesh=mesh, in_specs=BOTH, out_specs=P()))
        sent = pair_bytes(f.lower(x).compile(), mesh.size)
        found[body.__name__] = {
            "sums": sorted(set(np.asarray(f(x)).tolist())),
            "crossing": crossing_bytes(sent, hosts).tolist(),
        }
    report({"hosts": np.reshape(hosts, mesh.devices.shape).tolist(), **found})


if __name__ == "__main__":
    main()
