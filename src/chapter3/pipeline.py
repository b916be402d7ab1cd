"""A GPipe pipeline as one SPMD program: every device runs the same ticks.

Device s holds stage s. At each tick it works on the activation that it has just
received, and passes the result to the next device, together with the number of the
microbatch. Microbatch i arrives at stage s at tick i + s. A device that has received
nothing computes on some input all the same, and the result is not used: that is the
bubble.

Source: “GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism”
(Huang and others, 2019).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

AXIS = "stage"


def pipeline(stage: Callable, mesh: Mesh, microbatches: int) -> Callable:
    """Build the pipeline for a chain of equal stages.

    Args:
        stage: of one stage's weights and an activation, to an activation of that shape.
        mesh: has the axis "stage", one device for each stage (p of them).
        microbatches: number m of equal parts of the batch.

    Returns:
        A function of the weights, every leaf with a leading axis of p stages, cut over
        "stage", and of x, shape (batch, ...), the same on all devices. It returns the
        result of the whole chain, of the shape of x, and who worked when: an int32
        array of shape (p, m+p-1) with the number of the microbatch that had arrived
        with the activation, or -1 for idle. Differentiable.

    Raises:
        ValueError: m does not divide the batch.
    """
    p, m = mesh.shape[AXIS], microbatches
    to_next = [(s, s + 1) for s in range(p - 1)]

    def local(weights, x):
        own = jax.tree.map(lambda leaf: leaf[0], weights)  # this device's stage
        s = lax.axis_index(AXIS)
        parts = x.reshape(m, -1, *x.shape[1:])
        nothing = lax.pcast(jnp.zeros_like(parts[0]), AXIS, to="varying")
        no_number = lax.pcast(jnp.int32(-1), AXIS, to="varying")

        def tick(received, t):
            x, number = received  # what came from the stage before, and which it is
            number = jnp.where(s == 0, jnp.where(t < m, t, -1), number)
            x = jnp.where(s == 0, parts[jnp.minimum(t, m - 1)], x)
            # Idle: any real input will do. The result is not used, but zeros could make
            # the stage's derivative infinite, and zero times infinity is not zero.
            y = stage(own, jnp.where(number < 0, parts[0], x))
            with jax.named_scope("to_next_stage"):
                sent = lax.ppermute((y, number + 1), AXIS, to_next)
            return (sent[0], sent[1] - 1), (y, number)

        start = (nothing, no_number)
        _, (results, log) = lax.scan(
            tick, start, jnp.arange(m + p - 1, dtype=jnp.int32)
        )
        # Results of the last stage, from its first microbatch on; zero on the others.
        mine = jnp.where(s == p - 1, results[p - 1 :], 0)
        with jax.named_scope("share_result"):
            return lax.psum(mine, AXIS).reshape(x.shape), log[None]

    mapped = jax.shard_map(
        local, mesh=mesh, in_specs=(P(AXIS), P()), out_specs=(P(), P(AXIS))
    )

    def run(weights: Any, x: Any) -> tuple[Any, Any]:
        if len(x) % m:
            raise ValueError(
                f"{len(x)=} must be a multiple of {microbatches=}; pad the batch or "
                "change the number of microbatches"
            )
        return mapped(weights, x)

    return run


def idle_share(log: Any) -> float:
    """Count the share of idle slots in what the run recorded, shape (p, ticks)."""
    return float((log < 0).mean())
