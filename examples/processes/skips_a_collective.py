"""Only process 0 wants to print a number, so only process 0 computes it: a hang."""

import sys

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3.launcher import join

join()
mesh = jax.make_mesh((8,), ("data",))
losses = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("data")))
mean = jax.jit(jnp.mean)
largest = jax.jit(jnp.max)
average = float(mean(losses))  # every process does this

if "right" in sys.argv:  # every process computes, process 0 prints
    worst = float(largest(losses))
    if jax.process_index() == 0:
        print("mean", average, "largest", worst)
elif jax.process_index() == 0:  # a collective of both processes, in one of them
    print("mean", average, "largest", float(largest(losses)))
