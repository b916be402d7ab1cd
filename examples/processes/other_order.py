"""Two collectives, which process 1 calls the other way round."""

import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.launcher import join, report


def over_all(reduction: Callable, x: jax.Array) -> jax.Array:
    """Reduce over all devices of all processes."""
    f = jax.shard_map(
        lambda v: reduction(v, "data"), mesh=mesh, in_specs=P("data"), out_specs=P()
    )
    return jax.jit(f)(x)


join()
mesh = jax.make_mesh((8,), ("data",))
rows = NamedSharding(mesh, P("data"))
ones_to_eight = jax.device_put(jnp.arange(1.0, 9.0), rows)
for_the_largest = ones_to_eight
if "sizes" in sys.argv:  # the second collective is larger than the first
    for_the_largest = jax.device_put(jnp.ones((8, 1000)), rows)

if jax.process_index() == 1 and "right" not in sys.argv:
    largest = over_all(lax.pmax, for_the_largest)
    total = over_all(lax.psum, ones_to_eight)
else:
    total = over_all(lax.psum, ones_to_eight)
    largest = over_all(lax.pmax, for_the_largest)
report({"sum": float(total[0]), "largest": float(largest.ravel()[0])})
