"""One process of two, for the questions of the quiz about several processes.

Each of eight devices holds one of the numbers 1 to 8. Process 1 then calls two
collectives in another order than process 0.
"""

from collections.abc import Callable

import jax
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.launcher import join, report

join()
mesh = jax.make_mesh((8,), ("i",))
own = jax.local_device_count()
numbers = np.arange(1, own + 1, dtype=np.float32) + own * jax.process_index()
placed = jax.make_array_from_process_local_data(NamedSharding(mesh, P("i")), numbers)


def over_all(reduction: Callable) -> float:
    """Reduce the eight numbers; the result is the same on all devices."""
    mapped = jax.shard_map(
        lambda v: reduction(v[0], "i"), mesh=mesh, in_specs=P("i"), out_specs=P()
    )
    return float(jax.jit(mapped)(placed))


in_order = {"sum": over_all(lax.psum), "max": over_all(lax.pmax)}
by_pmap = jax.pmap(lambda v: lax.psum(v, "i"), axis_name="i")(numbers)
if jax.process_index() == 0:
    swapped = {"sum": over_all(lax.psum), "max": over_all(lax.pmax)}
else:  # the mistake
    swapped = {"max": over_all(lax.pmax), "sum": over_all(lax.psum)}

report(
    {
        "devices": jax.device_count(),
        "local devices": own,
        "pmap": [float(shard.data[0]) for shard in by_pmap.addressable_shards],
        "in order": in_order,
        "swapped": swapped,
    }
)
