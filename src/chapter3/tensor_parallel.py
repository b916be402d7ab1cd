"""Tensor parallelism in the manner of Megatron, with data parallelism on a second axis.

A block is x + relu(x w1) w2. `w1` is cut by columns and `w2` by rows over mesh axis
"model": the element-wise relu needs no communication between them, and the second
product leaves partial sums, which one all-reduce over "model" adds up.

Source: “Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
Parallelism” (Shoeybi and others, 2019), section 3.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Float

WEIGHTS = {"w1": P(None, "model"), "w2": P("model", None)}
"""How tensor parallelism cuts the weights of a block."""

WEIGHTS_FSDP = {"w1": P("data", "model"), "w2": P("model", "data")}
"""The same, with each piece cut once more over the data axis."""


def block(
    weights: dict[str, Array], x: Float[Array, "batch width"]
) -> Float[Array, "batch width"]:
    """One block on one device. Call it inside `shard_map`.

    Args:
        weights: per device, `w1` (width, hidden/model) and `w2` (hidden/model, width).
        x: per device, its part of the batch: the same on all devices of a model group.
    """
    h = jax.nn.relu(x @ weights["w1"])  # (batch/data, hidden/model)
    partial_sum = h @ weights["w2"]  # (batch/data, width), a term of the sum
    with jax.named_scope("sum_over_model"):
        return x + lax.psum(partial_sum, "model")


def gathered_block(weights: dict[str, Array], x: Array) -> Array:
    """The same for weights that are cut over the data axis as well (FSDP x TP).

    Args:
        weights: per device, `w1` (width/data, hidden/model) and `w2`
            (hidden/model, width/data).
        x: as in `block`.
    """
    with jax.named_scope("gather_over_data"):
        w1 = lax.all_gather(weights["w1"], "data", axis=0, tiled=True)
        w2 = lax.all_gather(weights["w2"], "data", axis=1, tiled=True)
    return block({"w1": w1, "w2": w2}, x)


def gradients(mesh: Mesh, layers: int, *, fsdp: bool = False) -> Any:
    """Build the loss and its gradient for a stack of blocks.

    Args:
        mesh: has the axes "data" and "model".
        layers: number of blocks.
        fsdp: cut the weights over the data axis too.

    Returns:
        A compiled function of the list of blocks, cut as `WEIGHTS` (or `WEIGHTS_FSDP`)
        says, and of x and y, cut over "data". It returns the loss and the gradients,
        cut like the weights.
    """
    apply = gathered_block if fsdp else block
    specs = [WEIGHTS_FSDP if fsdp else WEIGHTS] * layers

    def local(layers, x, y):
        def loss(layers):
            out = x
            for weights in layers:
                out = apply(weights, out)
            return lax.pmean(jnp.mean((out - y) ** 2), "data")

        return jax.value_and_grad(loss)(layers)

    rows = P("data", None)
    mapped = jax.shard_map(
        local, mesh=mesh, in_specs=(specs, rows, rows), out_specs=(P(), specs)
    )
    return jax.jit(mapped)
